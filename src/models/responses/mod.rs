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
    Failure, FailureKind, Format, ModelRequest, THOUGHTS_DROPPED,
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

    fn searches_web(&self, _: &str, _: &config::Provider) -> bool {
        true
    }

    fn read(&self, _: &ModelRequest, _: &config::Provider) -> Box<dyn Read> {
        Box::new(Reading::new(stream::Decoder::default()))
    }

    /// Some models do not reason, some accounts may not see a summary of it, and none reads the thoughts of another account; all of
    /// it is 400.
    fn mend(&self, failure: &Failure, request: &mut ModelRequest, _: &config::Provider) -> Option<String> {
        if let Some(mended) = request.drop_search(failure) {
            return Some(mended);
        }
        let said = failure.said.as_deref().unwrap_or_default().to_lowercase();
        let is_thought = ["encrypted content", "encrypted_content", "item of type 'reasoning'"];
        if failure.kind == FailureKind::Request
            && is_thought.iter().any(|it| said.contains(it))
            && request.drop_thoughts()
        {
            return Some(THOUGHTS_DROPPED.to_owned());
        }
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

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::models::{Call, ModelMessage, Said};

    #[test]
    fn a_server_that_cannot_read_earlier_thoughts_is_asked_without_them() {
        let call = Call {
            id: "a".to_owned(),
            name: "x".to_owned(),
            arguments: Map::new(),
            opaque: Some(json!("signed")),
        };
        let thought = Said::Opaque(json!({ "type": "reasoning", "encrypted_content": "x" }));
        let said = vec![thought, Said::Text("hi".into()), Said::Call(call.clone())];
        let mut request = ModelRequest {
            messages: vec![ModelMessage::user("hello"), ModelMessage::Assistant(said)],
            ..ModelRequest::default()
        };
        let failure = Failure::new(FailureKind::Request, "refused")
            .saying("The encrypted content gAAA could not be verified. Reason: it could not be decrypted or parsed.");
        let (wire, settings) = (Responses::default(), config::Provider::default());
        let mended = wire.mend(&failure, &mut request, &settings);
        assert_eq!(mended.as_deref(), Some(THOUGHTS_DROPPED));
        let plain = Call { opaque: None, ..call };
        assert_eq!(
            request.messages[1],
            ModelMessage::Assistant(vec![Said::Text("hi".into()), Said::Call(plain)])
        );
        assert!(wire.wishes() == Wishes::All, "nothing else is given up");
        // Where there were none, it is about what was asked for.
        assert_ne!(
            wire.mend(&failure, &mut request, &settings).as_deref(),
            Some(THOUGHTS_DROPPED)
        );
        assert!(wire.wishes() != Wishes::All);
    }
}
