//! Anthropic's messages, and the gateways and local servers that speak them too.

mod family;
mod request;
mod stream;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use super::{
    Failure, FailureKind, Format, ModelMessage, ModelRequest, Said,
    body::{Read, Reading},
    exchange::{Server, Wire},
    listing::{self, Page},
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
    /// Whether it is Anthropic itself: what stands in between often wants the key the way OpenAI takes it.
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
        let body = request::body(request, settings, self.is_plain.load(Ordering::Relaxed)).to_string();
        Request::post("v1/messages", body).header("anthropic-version", VERSION)
    }

    fn read(&self, _: &ModelRequest, _: &config::Provider) -> Box<dyn Read> {
        Box::new(Reading::new(stream::Decoder::default()))
    }

    /// Which thoughts a server takes back, and what it lets be said about thinking, differs by model and by month.
    fn mend(&self, failure: &Failure, request: &mut ModelRequest) -> Option<String> {
        let said = failure.said.as_deref().unwrap_or_default().to_lowercase();
        if failure.kind != FailureKind::Request {
            return None;
        }
        if said.contains("thinking` block") || said.contains("thinking block") || said.contains("signature") {
            let mut is_changed = false;
            for message in &mut request.messages {
                if let ModelMessage::Assistant(all) = message {
                    let before = all.len();
                    all.retain(|it| !matches!(it, Said::Opaque(_)));
                    is_changed |= all.len() != before;
                }
            }
            return is_changed.then(|| "the server did not take earlier thoughts back: asked without them".to_owned());
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
