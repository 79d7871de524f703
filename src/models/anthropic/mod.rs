//! Anthropic's messages, and the gateways and local servers that speak them too.

mod family;
mod request;
mod stream;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    Failure, FailureKind, Format, ModelRequest, THOUGHTS_DROPPED,
    body::{Read, Reading},
    listing::{self, Page},
    request::{Server, Wire},
};
use crate::{
    config::{self, Secret},
    net::client::{Request, Url},
};

pub const FORMAT: Format = Format {
    name: "anthropic",
    open: |settings, environment| Ok(Arc::new(Server::new(Messages::at(settings), settings, environment)?)),
};

/// The version of the format that is spoken here.
const VERSION: &str = "2023-06-01";

/// As many models as a page may hold.
const PAGE_MODELS: &str = "1000";

/// Messages.
pub struct Messages {
    /// True for Anthropic itself: proxies often want the key the way OpenAI takes it.
    is_anthropic: bool,
    /// The server has refused to hear how the model is to think.
    is_plain: AtomicBool,
}

impl Messages {
    pub fn at(settings: &config::Provider) -> Self {
        let url = settings.connection.url().ok().and_then(|it| Url::parse(it).ok());
        let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
        Self {
            is_anthropic: host == "anthropic.com" || host.ends_with(".anthropic.com"),
            is_plain: AtomicBool::new(false),
        }
    }
}

impl Wire for Messages {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn base(&self, pasted: &Url) -> Url {
        request::base(pasted)
    }

    fn authorise(&self, request: Request, key: &Secret) -> Request {
        let key = key.expose();
        // A token of a login instead of a key.
        if key.starts_with("sk-ant-oat") {
            return request.bearer(key).header("anthropic-beta", "oauth-2025-04-20");
        }
        let request = request.header("x-api-key", key);
        if self.is_anthropic {
            request
        } else {
            request.bearer(key)
        }
    }

    fn ask(&self, request: &ModelRequest, settings: &config::Provider) -> Request {
        let body = request::body(request, settings, self.is_plain.load(Ordering::Relaxed));
        let beta = request::beta(&body).filter(|_| self.is_anthropic);
        let asked = Request::post("v1/messages", body.to_string()).header("anthropic-version", VERSION);
        match beta {
            Some(beta) => asked.header("anthropic-beta", beta),
            None => asked,
        }
    }

    fn searches_web(&self, _: &str, _: &config::Provider) -> bool {
        true
    }

    fn read(&self, _: &ModelRequest, _: &config::Provider) -> Box<dyn Read> {
        Box::new(Reading::new(stream::Decoder::default()))
    }

    /// Repeats without earlier thoughts, or without options for thinking: what a server accepts differs by model and by
    /// month.
    fn mend(&self, failure: &Failure, request: &mut ModelRequest, _: &config::Provider) -> Option<String> {
        let said = failure.said.as_deref().unwrap_or_default().to_lowercase();
        if failure.kind != FailureKind::Request {
            return None;
        }
        if let Some(mended) = request.drop_search(failure) {
            return Some(mended);
        }
        if said.contains("thinking` block") || said.contains("thinking block") || said.contains("signature") {
            return request.drop_thoughts().then(|| THOUGHTS_DROPPED.to_owned());
        }
        let is_about = ["thinking", "effort", "output_config", "temperature", "budget_tokens"];
        let is_new = is_about.iter().any(|it| said.contains(it)) && !self.is_plain.swap(true, Ordering::Relaxed);
        is_new.then(|| "the model does not take how it is to think: asked without".to_owned())
    }

    fn list(&self, after: Option<&str>) -> Request {
        let request = Request::get("v1/models").header("anthropic-version", VERSION);
        let request = request.query("limit", PAGE_MODELS);
        match after {
            Some(after) => request.query("after_id", after),
            None => request,
        }
    }

    fn listed(&self, body: &[u8]) -> Result<Page, Failure> {
        listing::listed(body)
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::{
        super::{ModelMessage, Said},
        *,
    };
    use crate::{
        config::{Connection, Environment, KeySource},
        models::{Effort, Piece, Provider, conformance::shape},
        net::test_server::{self, STREAM, Socket, page},
    };

    const FINE: &str =
        "data: {\"type\":\"message_start\",\"message\":{\"id\":\"m\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n";

    fn settings(url: &str) -> config::Provider {
        config::Provider {
            connection: Connection::default().at(url),
            key: KeySource::Given(Secret::new("sk-1")),
            ..config::Provider::default()
        }
    }

    fn server(settings: &config::Provider) -> Server {
        let server = Server::new(Messages::at(settings), settings, &Environment::default());
        server.expect("sound settings").hurried()
    }

    fn request(model: &str) -> ModelRequest {
        ModelRequest {
            model: model.to_owned(),
            messages: vec![ModelMessage::user("hello")],
            ..ModelRequest::default()
        }
    }

    /// A server that answers by what `answer` makes of a request, and tells what it was asked.
    async fn answering(answer: fn(&str) -> String) -> (String, test_server::Diary<String>) {
        let (told, diary) = test_server::diary();
        let url = test_server::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                let request = socket.request().await;
                socket
                    .send(answer(&request).replacen("\r\n", "\r\nConnection: close\r\n", 1))
                    .await;
                told.send(request).ok();
            }
        })
        .await;
        (url, diary)
    }

    #[tokio::test]
    async fn a_request_carries_the_key_the_version_and_the_limit() {
        let (url, mut diary) = answering(|_| format!("{STREAM}{FINE}")).await;
        let mut settings = settings(&format!("{url}/v1"));
        let pieces: Vec<Piece> = server(&settings).stream(request("m")).collect().await;
        assert_eq!(shape(&pieces), "end Stop");
        let sent = diary.next().await;
        let (head, body) = sent.split_once("\r\n\r\n").expect("a head and a body");
        assert!(head.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{head}");
        let head = head.to_lowercase();
        for line in [
            "x-api-key: sk-1",
            "authorization: bearer sk-1",
            "anthropic-version: 2023-06-01",
            "accept: text/event-stream",
        ] {
            assert!(head.contains(&format!("\r\n{line}")), "{line} in {head}");
        }
        let text = json!({ "type": "text", "text": "hello", "cache_control": { "type": "ephemeral" } });
        assert_eq!(
            serde_json::from_str::<Value>(body).expect("JSON"),
            json!({ "model": "m", "max_tokens": 8192, "stream": true, "messages": [{ "role": "user", "content": [text] }] })
        );
        settings.key = KeySource::Given(Secret::new("sk-ant-oat01-x"));
        let _: Vec<Piece> = server(&settings).stream(request("m")).collect().await;
        let head = diary.next().await.to_lowercase();
        assert!(head.contains("\r\nauthorization: bearer sk-ant-oat01-x"), "{head}");
        assert!(!head.contains("x-api-key"), "a login's token is no key: {head}");
    }

    #[test]
    fn models_that_think_with_a_budget_are_asked_to_think_between_calls() {
        let tool = crate::models::ToolSpec {
            name: "read".to_owned(),
            aliases: Vec::new(),
            about: String::new().into(),
            parameters: json!({}).into(),
        };
        for (model, effort, has_tools, url, is_wanted) in [
            (
                "claude-sonnet-4-5-20250929",
                None,
                true,
                "https://api.anthropic.com",
                true,
            ),
            (
                "claude-opus-4-5",
                Some(Effort::High),
                true,
                "https://api.anthropic.com",
                true,
            ),
            (
                "claude-opus-4-5",
                Some(Effort::Off),
                true,
                "https://api.anthropic.com",
                false,
            ),
            (
                "claude-opus-4-5",
                Some(Effort::High),
                false,
                "https://api.anthropic.com",
                false,
            ),
            ("claude-opus-4-1", None, true, "https://api.anthropic.com", false),
            (
                "claude-opus-4-1",
                Some(Effort::Low),
                true,
                "https://api.anthropic.com",
                true,
            ),
            // It does so by itself.
            (
                "claude-opus-4-6",
                Some(Effort::High),
                true,
                "https://api.anthropic.com",
                false,
            ),
            // Others may refuse a header that they do not know.
            (
                "claude-opus-4-5",
                Some(Effort::High),
                true,
                "http://127.0.0.1:4000",
                false,
            ),
        ] {
            let request = ModelRequest {
                effort,
                tools: has_tools.then(|| tool.clone().into()).into_iter().collect(),
                ..request(model)
            };
            let asked = Messages::at(&settings(url)).ask(&request, &settings(url));
            let beta = asked.headers().find(|it| it.0 == "anthropic-beta").and_then(|it| it.1);
            let wanted = is_wanted.then_some("interleaved-thinking-2025-05-14");
            assert_eq!(beta, wanted, "{model} {effort:?} {has_tools} {url}");
            let body: Value = serde_json::from_slice(asked.body()).expect("JSON");
            if let Some(budget) = body.pointer("/thinking/budget_tokens").and_then(Value::as_u64) {
                let most = body["max_tokens"].as_u64().expect("a number");
                assert!(budget >= 1024 && budget <= most / 2, "{model}: {budget} of {most}");
            }
        }
    }

    #[test]
    fn only_others_than_anthropic_get_the_key_in_two_places() {
        for (url, want) in [
            ("https://api.anthropic.com", true),
            ("https://anthropic.com.example.org", false),
            ("http://127.0.0.1:4000", false),
        ] {
            assert_eq!(Messages::at(&settings(url)).is_anthropic, want, "{url}");
        }
    }

    #[tokio::test]
    async fn what_a_model_does_not_take_is_left_out_the_second_time() {
        let (url, mut diary) = answering(|request| {
            let refused = |words: &str| {
                let error = json!({ "type": "error", "error": { "type": "invalid_request_error", "message": words } });
                page("400 Bad Request", "application/json", &error.to_string())
            };
            if request.contains("adaptive") {
                refused("adaptive thinking is not supported on this model")
            } else if request.contains("signature") {
                refused("messages.1.content.0: Invalid `signature` in `thinking` block")
            } else {
                format!("{STREAM}{FINE}")
            }
        })
        .await;
        let server = server(&settings(&url));
        let thinking = ModelRequest {
            effort: Some(Effort::High),
            ..request("claude-opus-4-9")
        };
        let pieces: Vec<Piece> = server.stream(thinking).collect().await;
        assert_eq!(shape(&pieces), "end Stop");
        assert!(diary.next().await.contains("\"thinking\"") && !diary.next().await.contains("\"thinking\""));
        let mut remembering = request("m");
        let thought = json!({ "type": "thinking", "thinking": "a", "signature": "b" });
        remembering.messages.push(ModelMessage::Assistant(vec![
            Said::Opaque(thought),
            Said::Text("hi".into()),
        ]));
        remembering.messages.push(ModelMessage::user("more"));
        let pieces: Vec<Piece> = server.stream(remembering).collect().await;
        assert_eq!(shape(&pieces), "end Stop");
        assert!(diary.next().await.contains("signature") && !diary.next().await.contains("signature"));
    }

    #[tokio::test]
    async fn models_are_listed_to_the_last_page() {
        let (url, mut diary) = answering(|request| {
            let body = if request.contains("after_id=b") {
                r#"{"data":[{"type":"model","id":"claude-haiku-4-5","display_name":"Haiku"}],"has_more":false,"first_id":"c","last_id":"c"}"#
            } else {
                r#"{"data":[{"type":"model","id":"a","max_input_tokens":1000},{"type":"model","id":"b"}],"has_more":true,"first_id":"a","last_id":"b"}"#
            };
            page("200 OK", "application/json", body)
        })
        .await;
        let models = server(&settings(&url)).models().await.expect("a list");
        let shown: Vec<(&str, Option<u64>)> = models.iter().map(|it| (it.id.as_str(), it.window)).collect();
        assert_eq!(
            shown,
            [("a", Some(1000)), ("b", None), ("claude-haiku-4-5", Some(200_000))]
        );
        assert!(diary.next().await.starts_with("GET /v1/models?limit=1000 HTTP/1.1\r\n"));
        assert!(
            diary
                .next()
                .await
                .starts_with("GET /v1/models?limit=1000&after_id=b HTTP/1.1\r\n")
        );
    }
}
