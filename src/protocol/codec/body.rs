//! A JSON answer: the same events as the stream of the same response.

use serde_json::Value;

use super::{
    DecodeError, Decoder, Foreign, Identity, Limits,
    payload::{cut, parse},
};
use crate::protocol::Event;

impl Decoder {
    /// Reads a whole JSON answer.
    pub fn body(identity: Identity, text: &str) -> Result<Vec<Event>, DecodeError> {
        Self::body_within(identity, Limits::default(), text)
    }

    pub fn body_within(identity: Identity, limits: Limits, text: &str) -> Result<Vec<Event>, DecodeError> {
        let mut decoder = Self::with_limits(identity, limits);
        let limit_bytes = decoder.limits().body_bytes;
        if text.len() > limit_bytes {
            return Err(DecodeError::TooLarge { limit_bytes });
        }
        let text = text.trim_start_matches('\u{feff}').trim();
        let unreadable = |source| DecodeError::NotAnObject {
            start: cut(text, 300).to_owned(),
            source,
        };
        match parse(text) {
            Ok((Value::Object(members), _)) => {
                if let Some(what) = Foreign::of(&members) {
                    return Err(DecodeError::Foreign { what });
                }
                decoder.answer(members);
                Ok(decoder.take())
            }
            Ok(_) => Err(unreadable(None)),
            Err(error) => {
                // Ollama streams one object per line and calls that JSON.
                let first = text.lines().next().unwrap_or_default();
                if let Ok((Value::Object(members), _)) = parse(first)
                    && let Some(what) = Foreign::of(&members)
                {
                    return Err(DecodeError::Foreign { what });
                }
                Err(unreadable(Some(error)))
            }
        }
    }
}
