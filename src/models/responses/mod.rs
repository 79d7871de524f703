//! OpenAI's responses, as OpenAI and others serve them.
//!
//! Nothing is stored at the server: each request carries the whole conversation, and reasoning travels in it encrypted.

mod request;
mod stream;

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use super::{
    Failure, FailureKind, Format, ModelRequest,
    body::{Read, Reading},
    openai,
    request::{Server, Wire},
};
use crate::{
    config,
    net::client::{Request, Url},
};
use request::Wishes;

pub use request::reasons;

pub const FORMAT: Format = Format {
    name: "openai-responses",
    open: |settings, environment| Ok(Arc::new(Server::new(Responses::default(), settings, environment)?)),
};

/// Responses.
#[derive(Default)]
pub struct Responses {
    /// Number of reasoning options that the server has refused: first the summary, then all.
    refused: AtomicU8,
}

impl Responses {
    fn wishes(&self) -> Wishes {
        match self.refused.load(Ordering::Relaxed) {
            0 => Wishes::All,
            1 => Wishes::NoSummary,
            _ => Wishes::None,
        }
    }
}

impl Wire for Responses {
    fn name(&self) -> &'static str {
        "openai"
    }

    fn base(&self, pasted: &Url) -> Url {
        openai::base(pasted)
    }

    fn ask(&self, request: &ModelRequest, settings: &config::Provider) -> Request {
        let body = request::body(request, settings, self.wishes());
        Request::post("responses", body.to_string())
    }

    fn read(&self, _: &ModelRequest, _: &config::Provider) -> Box<dyn Read> {
        Box::new(Reading::new(stream::Decoder::default()))
    }

    /// Some models do not reason, and some accounts may not see a summary of it; both are 400.
    fn mend(&self, failure: &Failure, _: &mut ModelRequest, _: &config::Provider) -> Option<String> {
        let said = failure.said.as_deref().unwrap_or_default().to_lowercase();
        let is_summary = said.contains("summar");
        if failure.kind != FailureKind::Request
            || !(is_summary || said.contains("reasoning") || said.contains("encrypted"))
        {
            return None;
        }
        let next = if is_summary && self.wishes() == Wishes::All {
            1
        } else {
            2
        };
        let before = self.refused.swap(next, Ordering::Relaxed);
        (before < next).then(|| "the model does not take every wish about reasoning: asked without".to_owned())
    }
}
