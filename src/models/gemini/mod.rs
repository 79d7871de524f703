//! Gemini, by its own protocol: `generateContent` of generativelanguage.googleapis.com.

mod request;
mod schema;
mod stream;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Failure, FailureKind, Format, Model, ModelRequest, THOUGHTS_DROPPED,
    body::Read,
    catalogue, lenient,
    listing::Page,
    request::{Server, Wire},
};
use crate::{
    config::{self, Secret},
    net::client::{Request, Url},
};

pub const FORMAT: Format = Format {
    name: "gemini",
    open: |settings, environment| Ok(Arc::new(Server::new(Gemini, settings, environment)?)),
};

pub struct Gemini;

impl Wire for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn base(&self, pasted: &Url) -> Url {
        request::base(pasted)
    }

    fn authorise(&self, request: Request, key: &Secret) -> Request {
        request.header("x-goog-api-key", key.expose())
    }

    fn ask(&self, request: &ModelRequest, settings: &config::Provider) -> Request {
        let path = request::path(&request.model, "streamGenerateContent");
        Request::post(path, request::body(request, settings).to_string()).query("alt", "sse")
    }

    fn searches_web(&self, model: &str, _: &config::Provider) -> bool {
        searches_web(model)
    }

    fn read(&self, request: &ModelRequest, _: &config::Provider) -> Box<dyn Read> {
        Box::new(stream::Reading::new(schema::Tools::new(&request::functions(request))))
    }

    fn list(&self, after: Option<&str>) -> Request {
        let request = Request::get("models").query("pageSize", "1000");
        match after {
            Some(after) => request.query("pageToken", after),
            None => request,
        }
    }

    fn listed(&self, body: &[u8]) -> Result<Page, Failure> {
        listed(body)
    }

    fn mend(&self, failure: &Failure, request: &mut ModelRequest, _: &config::Provider) -> Option<String> {
        if let Some(mended) = request.drop_search(failure) {
            return Some(mended);
        }
        let said = failure.said.as_deref().unwrap_or_default().to_lowercase();
        let is_thought = failure.kind == FailureKind::Request && said.contains("thought") && said.contains("signature");
        if is_thought && request.drop_thoughts() {
            return Some(THOUGHTS_DROPPED.to_owned());
        }
        (&*failure.message == stream::MALFORMED).then(|| format!("{}: it is asked once more", stream::MALFORMED))
    }

    fn embed(&self, texts: &[String], settings: &config::Provider) -> Option<Request> {
        let model = settings.model.as_deref()?;
        let path = request::path(model, "batchEmbedContents");
        let name = path.trim_end_matches(":batchEmbedContents");
        let ask = |text: &String| json!({ "model": name, "content": { "parts": [{ "text": text }] } });
        let body = json!({ "requests": texts.iter().map(ask).collect::<Vec<_>>() });
        Some(Request::post(path, body.to_string()))
    }
}

pub use request::searches_web;

/// The models that can be talked with.
fn listed(body: &[u8]) -> Result<Page, Failure> {
    let text = String::from_utf8_lossy(body);
    let garbled = || Failure::new(FailureKind::Garbled, "the server's list of models cannot be read").saying(&text);
    let whole: Value = serde_json::from_slice(body).map_err(|_| garbled())?;
    if let Some(error) = whole.as_object().and_then(lenient::error_of) {
        return Err(Failure::from_server(None, error));
    }
    let items = whole.get("models").and_then(Value::as_array);
    // A page may be empty; something else is no page.
    if items.is_none() && whole.as_object().is_none_or(|it| !it.is_empty()) {
        return Err(garbled());
    }
    let is_for_talk = |it: &&Value| {
        let methods = it.get("supportedGenerationMethods").and_then(Value::as_array);
        methods.is_none_or(|it| it.iter().any(|it| it == "generateContent"))
    };
    let model = |it: &Value| {
        let name = it.get("name")?.as_str()?;
        let id = name.strip_prefix("models/").unwrap_or(name);
        let window = it
            .get("inputTokenLimit")
            .and_then(lenient::whole_number)
            .filter(|it| *it > 0);
        (!id.is_empty()).then(|| Model {
            id: id.to_owned(),
            window: window.or_else(|| catalogue::window(id)),
            created: None,
        })
    };
    let next = whole
        .get("nextPageToken")
        .and_then(Value::as_str)
        .filter(|it| !it.is_empty());
    Ok(Page {
        models: items
            .into_iter()
            .flatten()
            .filter(is_for_talk)
            .filter_map(model)
            .collect(),
        next: next.map(str::to_owned),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures::StreamExt;
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::{
        config::{Connection, Environment, KeySource},
        models::{ModelMessage, Piece, Provider, conformance::shape},
        net::test_server::{self, STREAM, Socket, page},
    };

    /// Answers the n-th request with the n-th of these and the rest with the last; tells what was asked.
    async fn server(answers: Vec<String>) -> (String, test_server::Diary<String>) {
        let (told, diary) = test_server::diary();
        let answers = Arc::new(Mutex::new(answers));
        let url = test_server::listen(move |mut socket: Socket| {
            let (told, answers) = (told.clone(), Arc::clone(&answers));
            async move {
                told.send(socket.request().await).ok();
                let answer = {
                    let mut answers = answers.lock().expect("nobody panics with it");
                    if answers.len() > 1 {
                        answers.remove(0)
                    } else {
                        answers[0].clone()
                    }
                };
                socket
                    .send(answer.replacen("\r\n", "\r\nConnection: close\r\n", 1))
                    .await;
            }
        })
        .await;
        (url, diary)
    }

    fn provider(url: &str) -> Server {
        let settings = config::Provider {
            connection: Connection::default().at(url),
            key: KeySource::Given(Secret::new("k-1")),
            model: Some("gemini-embedding-2".to_owned()),
            ..config::Provider::default()
        };
        Server::new(Gemini, &settings, &Environment::default())
            .expect("sound settings")
            .hurried()
    }

    fn asked() -> ModelRequest {
        ModelRequest {
            model: "gemini-3.8-flash".to_owned(),
            messages: vec![ModelMessage::user("hello")],
            ..ModelRequest::default()
        }
    }

    const HI: &str =
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]},\"finishReason\":\"STOP\"}]}\n\n";
    const BROKEN: &str = "data: {\"candidates\":[{\"finishReason\":\"MALFORMED_FUNCTION_CALL\",\"finishMessage\":\"print(x)\"}],\"usageMetadata\":{\"promptTokenCount\":3}}\n\n";

    #[tokio::test]
    async fn a_call_that_gemini_cannot_read_is_asked_for_once_more() {
        let (url, mut diary) = server(vec![format!("{STREAM}{BROKEN}"), format!("{STREAM}{HI}")]).await;
        let pieces: Vec<Piece> = provider(&url).stream(asked()).collect().await;
        assert_eq!(shape(&pieces), r#"text "hi" | end Stop"#);
        assert!(
            pieces
                .iter()
                .any(|it| matches!(it, Piece::Notice(it) if it.code == "asked-again"))
        );
        let head = diary.next().await;
        assert!(
            head.starts_with("POST /v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(head.to_lowercase().contains("\r\nx-goog-api-key: k-1\r\n"), "{head}");

        let (url, mut diary) = server(vec![format!("{STREAM}{BROKEN}")]).await;
        let pieces: Vec<Piece> = provider(&url).stream(asked()).collect().await;
        assert_eq!(shape(&pieces), "usage 3(0)+0 | error LLM_BAD_RESPONSE");
        let Some(Piece::Error(failure)) = pieces.last() else {
            panic!("{pieces:?}")
        };
        assert_eq!(failure.said.as_deref(), Some("print(x)"));
        diary.next().await;
        diary.next().await;
        assert!(diary.so_far().is_empty(), "and then no more");
    }

    #[tokio::test]
    async fn the_delay_in_an_error_is_kept() {
        let busy = |delay: &str| {
            let error = json!([{ "error": { "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Slow down", "details": [
                { "@type": "type.googleapis.com/google.rpc.QuotaFailure" },
                { "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay },
            ] } }]);
            page("429 Slow", "application/json", &error.to_string())
        };
        let (url, _diary) = server(vec![busy("0.002s"), format!("{STREAM}{HI}")]).await;
        let pieces: Vec<Piece> = provider(&url).stream(asked()).collect().await;
        assert_eq!(shape(&pieces), r#"retry | text "hi" | end Stop"#);
        let (url, _diary) = server(vec![busy("3600s")]).await;
        let pieces: Vec<Piece> = provider(&url).stream(asked()).collect().await;
        let Some(Piece::Error(failure)) = pieces.last() else {
            panic!("{pieces:?}")
        };
        let details = failure.details();
        // A moment of it may have passed already.
        assert!(
            details.contains("a pause of 1 h:") || details.contains("a pause of 59 min 59 s:"),
            "{details}"
        );
    }

    #[tokio::test]
    async fn models_are_listed_page_by_page_and_texts_become_vectors() {
        let one = r#"{"models":[{"name":"models/gemini-a","inputTokenLimit":1000,"supportedGenerationMethods":["generateContent"]},
            {"name":"models/embedder","supportedGenerationMethods":["embedContent"]}],"nextPageToken":"t&2"}"#;
        let two = r#"{"models":[{"name":"models/gemini-b"},{"no":1}]}"#;
        let json = |body: &str| page("200 OK", "application/json", body);
        let (url, mut diary) = server(vec![json(one), json(two)]).await;
        let models = provider(&url).models().await.expect("a list");
        let ids: Vec<(&str, Option<u64>)> = models.iter().map(|it| (it.id.as_str(), it.window)).collect();
        assert_eq!(ids.first(), Some(&("gemini-a", Some(1000))));
        assert_eq!(ids.get(1).map(|it| it.0), Some("gemini-b"));
        assert_eq!(ids.len(), 2);
        assert!(diary.next().await.starts_with("GET /v1beta/models?pageSize=1000 "));
        assert!(
            diary
                .next()
                .await
                .starts_with("GET /v1beta/models?pageSize=1000&pageToken=t%262 ")
        );

        let (url, mut diary) = server(vec![json(
            r#"{"embeddings":[{"values":[0.5,-1]},{"values":[2,0.25]}]}"#,
        )])
        .await;
        let vectors = provider(&url)
            .embed(vec!["a".to_owned(), "b".to_owned()])
            .await
            .expect("vectors");
        assert_eq!(vectors, [[0.5, -1.0], [2.0, 0.25]]);
        let request = diary.next().await;
        let (head, body) = request.split_once("\r\n\r\n").expect("a body");
        assert!(
            head.starts_with("POST /v1beta/models/gemini-embedding-2:batchEmbedContents "),
            "{head}"
        );
        let body: Value = serde_json::from_str(body).expect("JSON");
        assert_eq!(
            body["requests"][1],
            json!({ "model": "models/gemini-embedding-2", "content": { "parts": [{ "text": "b" }] } })
        );
        let few = provider(&url)
            .embed(vec!["a".to_owned()])
            .await
            .expect_err("two for one");
        assert_eq!(few.kind, FailureKind::Garbled);
    }
}
