//! Ollama, by its own protocol: the only one by which it can be told how long a conversation it must hold.
//!
//! Asked by `/v1`, a server cuts the oldest messages silently where its window of a few thousand tokens ends. Here it is
//! asked first what the model can hold, and told to hold that.

mod request;
mod show;
mod stream;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::json;

use super::{
    Failure, Format, Model, ModelRequest,
    body::Read,
    listing::{self, Page},
    request::{Server, Wire},
};
use crate::{
    config,
    net::client::{Request, Url},
};
use show::Shown;

pub const FORMAT: Format = Format {
    name: "ollama",
    open: |settings, environment| Ok(Arc::new(Server::new(Ollama::default(), settings, environment)?)),
};

#[derive(Default)]
pub struct Ollama {
    /// Properties of models by name; empty if the server could not tell.
    shown: Mutex<HashMap<String, Shown>>,
}

impl Ollama {
    fn shown(&self, model: &str) -> Option<Shown> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.get(model).cloned()
    }
}

impl Wire for Ollama {
    fn name(&self) -> &'static str {
        "ollama"
    }

    fn base(&self, pasted: &Url) -> Url {
        request::base(pasted)
    }

    fn inquire(&self, request: &ModelRequest, _: &config::Provider) -> Option<Request> {
        let is_known = self.shown(&request.model).is_some();
        (!is_known).then(|| Request::post("api/show", json!({ "model": request.model }).to_string()))
    }

    fn learn(&self, request: &ModelRequest, body: Option<&[u8]>) {
        // A server that could not be reached is asked again; one that answered nonsense is not.
        if let Some(body) = body {
            let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
            shown.insert(request.model.clone(), Shown::read(body).unwrap_or_default());
        }
    }

    fn window(&self, request: &ModelRequest, settings: &config::Provider) -> Option<u64> {
        settings.num_ctx.or_else(|| self.shown(&request.model)?.window())
    }

    fn ask(&self, request: &ModelRequest, settings: &config::Provider) -> Request {
        let shown = self.shown(&request.model);
        Request::post("api/chat", request::body(request, settings, shown.as_ref()).to_string())
    }

    fn media_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn read(&self, _: &ModelRequest, _: &config::Provider) -> Box<dyn Read> {
        Box::new(stream::Reading::default())
    }

    fn prints_calls(&self) -> bool {
        true
    }

    fn mend(&self, failure: &Failure, request: &mut ModelRequest, _: &config::Provider) -> Option<String> {
        let said = failure.said.as_deref()?;
        if said.contains("does not support thinking") && request.effort.take().is_some() {
            return Some("the model cannot think: it is asked without".to_owned());
        }
        if said.contains("does not support tools") && !request.tools.is_empty() {
            request.tools.clear();
            return Some("the model cannot call tools: it is asked without, and can only talk".to_owned());
        }
        None
    }

    fn list(&self, _: Option<&str>) -> Request {
        Request::get("api/tags")
    }

    fn listed(&self, body: &[u8]) -> Result<Page, Failure> {
        let page = listing::listed(body)?;
        // What the model was made for says nothing of the window that it is given here.
        let models = page.models.into_iter().map(|it| Model { window: None, ..it });
        Ok(Page {
            models: models.collect(),
            next: None,
        })
    }

    fn embed(&self, texts: &[String], settings: &config::Provider) -> Option<Request> {
        let body = json!({ "model": settings.model, "input": texts });
        Some(Request::post("api/embed", body.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;
    use pretty_assertions::assert_eq;
    use serde_json::Value;

    use super::*;
    use crate::{
        config::{Connection, Environment},
        models::{Effort, ModelMessage, Piece, Provider, ToolSpec, conformance::shape},
        net::test_server::{self, Socket, page},
    };

    const SHOWN: &str =
        r#"{"model_info":{"general.architecture":"q","q.context_length":8192},"capabilities":["completion","tools"]}"#;
    const ANSWER: &str =
        "{\"message\":{\"content\":\"hi\"},\"done\":false}\n{\"done\":true,\"done_reason\":\"stop\"}\n";

    /// An Ollama: answers by path, refuses what `refused` says as often as it is found in a request, tells what was asked.
    async fn server(refused: &'static str) -> (String, test_server::Diary<String>) {
        let (told, diary) = test_server::diary();
        let url = test_server::listen(move |mut socket: Socket| {
            let told = told.clone();
            async move {
                let request = socket.request().await;
                let path = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
                let answer = match path.as_str() {
                    "/api/show" => page("200 OK", "application/json", SHOWN),
                    "/api/tags" => page("200 OK", "application/json", r#"{"models":[{"name":"q:latest","model":"q:latest","size":1}]}"#),
                    "/api/embed" => page("200 OK", "application/json", r#"{"model":"q","embeddings":[[1,2],[0.5,-0.5]]}"#),
                    _ if !refused.is_empty() && request.contains(&format!("\"{refused}\"")) => {
                        let error = json!({ "error": format!("registry.ollama.ai/library/q does not support {}", if refused == "think" { "thinking" } else { refused }) });
                        page("400 Bad Request", "application/json", &error.to_string())
                    }
                    _ => page("200 OK", "application/x-ndjson", ANSWER),
                };
                told.send(request).ok();
                socket.send(answer.replacen("\r\n", "\r\nConnection: close\r\n", 1)).await;
            }
        })
        .await;
        (url, diary)
    }

    fn provider(url: &str) -> Server {
        let settings = config::Provider {
            connection: Connection::default().at(url),
            model: Some("q".to_owned()),
            ..config::Provider::default()
        };
        Server::new(Ollama::default(), &settings, &Environment::default())
            .expect("sound settings")
            .hurried()
    }

    fn body(request: &str) -> Value {
        serde_json::from_str(request.split_once("\r\n\r\n").expect("a body").1).expect("JSON")
    }

    #[tokio::test]
    async fn the_window_is_asked_for_once_and_sent_with_every_request() {
        let (url, mut diary) = server("").await;
        let provider = provider(&format!("{url}/v1"));
        let nameless = ModelRequest {
            messages: vec![ModelMessage::user("hello")],
            ..ModelRequest::default()
        };
        for _ in 0..2 {
            let pieces: Vec<Piece> = provider.stream(nameless.clone()).collect().await;
            assert_eq!(shape(&pieces), r#"text "hi" | end Stop"#);
        }
        let asked = diary.so_far();
        let paths: Vec<&str> = asked.iter().filter_map(|it| it.split_whitespace().nth(1)).collect();
        assert_eq!(paths, ["/api/tags", "/api/show", "/api/chat", "/api/tags", "/api/chat"]);
        assert_eq!(body(&asked[1]), json!({ "model": "q:latest" }));
        assert_eq!(body(&asked[4])["options"], json!({ "num_ctx": 8192 }));
        assert_eq!(provider.window("q:latest".to_owned()).await, Some(8192));
        let vectors = provider.embed(vec!["a".to_owned(), "b".to_owned()]).await;
        assert_eq!(vectors.expect("vectors"), [[1.0, 2.0], [0.5, -0.5]]);
        assert_eq!(body(&diary.next().await), json!({ "model": "q", "input": ["a", "b"] }));
    }

    #[tokio::test]
    async fn a_model_that_cannot_is_asked_for_less() {
        for refused in ["tools", "think"] {
            let (url, mut diary) = server(refused).await;
            let request = ModelRequest {
                model: "q".to_owned(),
                messages: vec![ModelMessage::user("hello")],
                tools: vec![
                    ToolSpec {
                        name: "ls".to_owned(),
                        aliases: Vec::new(),
                        about: String::new().into(),
                        parameters: json!({ "type": "object" }).into(),
                    }
                    .into(),
                ],
                effort: Some(Effort::High),
                ..ModelRequest::default()
            };
            let settings = config::Provider {
                connection: Connection::default().at(&url),
                ..config::Provider::default()
            };
            let wire = Ollama::default();
            // A server that cannot say what the model can.
            wire.learn(&request, Some(b"{}"));
            let provider = Server::new(wire, &settings, &Environment::default()).expect("sound settings");
            let pieces: Vec<Piece> = provider.stream(request).collect().await;
            assert_eq!(shape(&pieces), r#"text "hi" | end Stop"#, "{refused}");
            let asked = diary.so_far();
            assert_eq!(asked.len(), 2, "{refused}");
            assert!(
                body(&asked[0]).get(refused).is_some() && body(&asked[1]).get(refused).is_none(),
                "{refused}"
            );
        }
    }
}
