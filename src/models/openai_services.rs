//! The kind `openai`: chat completions, or responses for OpenAI's own models that reason.
//!
//! Those keep their thoughts between calls only in responses. All other servers and models are asked for chat
//! completions.

use std::sync::Arc;

use super::{
    Failure, Format, ModelRequest,
    body::Read,
    openai::{self, Chat},
    request::{Server, Wire},
    responses::{self, Responses},
};
use crate::{
    config,
    net::client::{Request, Url},
};

pub const FORMAT: Format = Format {
    name: "openai",
    open: |settings, environment| Ok(Arc::new(Server::new(OpenAi::default(), settings, environment)?)),
};

/// OpenAI's two interfaces.
#[derive(Default)]
pub struct OpenAi {
    chat: Chat,
    responses: Responses,
}

/// Returns true for OpenAI's own models that reason.
fn is_for_responses(model: &str, settings: &config::Provider) -> bool {
    openai::is_own(settings) && responses::reasons(model)
}

impl OpenAi {
    fn wire(&self, request: &ModelRequest, settings: &config::Provider) -> &dyn Wire {
        if is_for_responses(&request.model, settings) {
            &self.responses
        } else {
            &self.chat
        }
    }
}

impl Wire for OpenAi {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn base(&self, pasted: &Url) -> Url {
        openai::base(pasted)
    }

    fn ask(&self, request: &ModelRequest, settings: &config::Provider) -> Request {
        self.wire(request, settings).ask(request, settings)
    }

    fn mend(&self, failure: &Failure, request: &mut ModelRequest, settings: &config::Provider) -> Option<String> {
        self.wire(request, settings).mend(failure, request, settings)
    }

    fn searches_web(&self, model: &str, settings: &config::Provider) -> bool {
        is_for_responses(model, settings)
    }

    fn prints_calls(&self) -> bool {
        true
    }

    fn embed(&self, texts: &[String], settings: &config::Provider) -> Option<Request> {
        self.chat.embed(texts, settings)
    }

    fn read(&self, request: &ModelRequest, settings: &config::Provider) -> Box<dyn Read> {
        self.wire(request, settings).read(request, settings)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::StreamExt;
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        config::{Connection, Environment},
        models::{FailureKind, ModelMessage, Piece, Provider},
        net::test_server::{self, STREAM, Socket},
    };

    fn settings(url: &str) -> config::Provider {
        config::Provider {
            connection: Connection::default().at(url),
            ..config::Provider::default()
        }
    }

    fn request() -> ModelRequest {
        ModelRequest {
            model: "m".to_owned(),
            messages: vec![ModelMessage::user("hello")],
            ..ModelRequest::default()
        }
    }

    #[test]
    fn models_of_openais_own_that_reason_are_asked_for_responses() {
        let path = |url: &str, model: &str| {
            let settings = settings(url);
            let request = ModelRequest {
                model: model.to_owned(),
                cache_key: "conv_1".to_owned(),
                ..request()
            };
            let asked = OpenAi::default().ask(&request, &settings);
            let body: Value = serde_json::from_slice(asked.body()).expect("JSON");
            let url = asked.url(&"https://h/v1".parse().expect("an address"));
            (url.path().to_owned(), body["prompt_cache_key"].clone())
        };
        let own = "https://api.openai.com/v1";
        for (url, model, wanted, has_key) in [
            (own, "gpt-5.1", "/v1/responses", true),
            (own, "gpt-5.1-codex", "/v1/responses", true),
            (own, "codex-mini-latest", "/v1/responses", true),
            (own, "o3", "/v1/responses", true),
            (own, "gpt-4.1", "/v1/chat/completions", true),
            (own, "gpt-5-chat-latest", "/v1/chat/completions", true),
            ("https://eu.api.openai.com/v1", "gpt-5", "/v1/responses", true),
            (
                "https://openrouter.ai/api/v1",
                "openai/gpt-5",
                "/v1/chat/completions",
                false,
            ),
            ("http://127.0.0.1:8080/v1", "gpt-oss-20b", "/v1/chat/completions", false),
            ("https://notopenai.com/v1", "gpt-5", "/v1/chat/completions", false),
        ] {
            let key = if has_key { json!("conv_1") } else { Value::Null };
            assert_eq!(path(url, model), (wanted.to_owned(), key), "{url} {model}");
        }
    }

    #[test]
    fn a_search_at_the_provider_that_is_offered_is_sent() {
        let own = "https://api.openai.com/v1";
        for (url, model, wanted) in [
            (own, "gpt-5.1", true),
            (own, "o3", true),
            (own, "gpt-4.1", false),
            ("http://127.0.0.1:8080/v1", "gpt-5.1", false),
        ] {
            let settings = settings(url);
            let is_sent = OpenAi::default().searches_web(model, &settings);
            assert_eq!(is_sent, wanted, "{url} {model}");
            assert_eq!(crate::models::searches_web(&settings, model), is_sent, "{url} {model}");
        }
    }

    #[tokio::test]
    async fn behind_a_complete_call_nothing_is_asked_for_again() {
        let event = |kind: &str, index: u64, id: &str| {
            let item = json!({ "type": "function_call", "id": id, "call_id": id, "name": "f", "arguments": "{}" });
            let data = json!({ "type": kind, "output_index": index, "item": item });
            format!("event: {kind}\ndata: {data}\n\n")
        };
        let broken = format!(
            "{STREAM}{}{}{}",
            event("response.output_item.added", 0, "a"),
            event("response.output_item.done", 0, "a"),
            event("response.output_item.added", 1, "b"),
        );
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let url = test_server::listen(move |mut socket: Socket| {
            counted.fetch_add(1, Ordering::SeqCst);
            let answer = broken.clone();
            async move {
                socket.request().await;
                socket.send(answer).await;
            }
        })
        .await;
        let server = Server::new(Responses::default(), &settings(&url), &Environment::default());
        let server = server.expect("sound settings").hurried();
        let pieces: Vec<Piece> = server.stream(request()).collect().await;
        assert!(
            pieces.iter().any(|it| matches!(it, Piece::CallDone { .. })),
            "{pieces:?}"
        );
        assert_eq!(count.load(Ordering::SeqCst), 1, "{pieces:?}");
        let Some(Piece::Error(failure)) = pieces.last() else {
            panic!("{pieces:?}")
        };
        assert_eq!(failure.kind, FailureKind::Interrupted);
    }
}
