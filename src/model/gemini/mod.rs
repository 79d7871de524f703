//! Gemini, by its own protocol: `generateContent` of generativelanguage.googleapis.com.

mod request;
mod schema;
mod stream;

use std::sync::Arc;

use serde_json::{Value, json};

use super::{
    Failure, FailureKind, Format, Model, ModelRequest,
    body::Read,
    catalogue,
    exchange::{Server, Wire},
    lenient,
    listing::Page,
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

    fn read(&self, request: &ModelRequest, _: &config::Provider) -> Box<dyn Read> {
        Box::new(stream::Reading::new(schema::Tools::new(&request.tools)))
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

    fn mend(&self, failure: &Failure, _: &mut ModelRequest) -> Option<String> {
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

    fn embedded(&self, body: &[u8]) -> Result<Vec<Vec<f32>>, Failure> {
        let garbled = || Failure::new(FailureKind::Garbled, "the embeddings cannot be read");
        let whole: Value = serde_json::from_slice(body).map_err(|_| garbled())?;
        let items = whole.get("embeddings").and_then(Value::as_array).ok_or_else(garbled)?;
        let vectors = items.iter().map(|it| lenient::numbers(it.get("values")?));
        vectors.collect::<Option<_>>().ok_or_else(garbled)
    }
}

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
