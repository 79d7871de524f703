//! A JSON answer: the same events as the stream of the same response.

use serde_json::{Map, Value};

use super::{
    super::{
        DecodeError, Failure, Foreign, Identity, Limits,
        payload::{Parts, cut, parse},
    },
    Decoder, Phase, quote,
};
use crate::protocol::{Event, Severity, Status};

impl Decoder {
    /// Reads a whole JSON answer.
    pub fn body(identity: Identity, text: &str) -> Result<Vec<Event>, DecodeError> {
        Self::body_within(identity, Limits::default(), text)
    }

    pub fn body_within(identity: Identity, limits: Limits, text: &str) -> Result<Vec<Event>, DecodeError> {
        let mut decoder = Self::with_limits(identity, limits);
        let limit_bytes = decoder.limits.body_bytes;
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
                Ok(decoder.out)
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

    /// A whole response object: the same events as its stream.
    pub(super) fn answer(&mut self, mut members: Map<String, Value>) {
        let documents = members.shift_remove("documents");
        let status = members.get("status").cloned();
        let mut ending = Map::new();
        for name in ["usage", "metadata", "status"] {
            if let Some(value) = members.shift_remove(name) {
                ending.insert(name.to_owned(), value);
            }
        }
        let error = members.shift_remove("error").filter(|it| !it.is_null());
        let start = self.start_of(&mut members);
        if self.phase == Phase::Waiting {
            self.begin(start);
        } else {
            self.late = Some(start);
        }
        let documents = match documents {
            Some(Value::Array(documents)) => documents,
            None | Some(Value::Null) => Vec::new(),
            Some(_) => {
                self.notice(Severity::Error, "wrong-type", "documents is no list", None);
                Vec::new()
            }
        };
        let mut all = Vec::with_capacity(documents.len());
        for document in documents {
            match document {
                Value::Object(members) => all.push(Parts::of(members)),
                other => {
                    let message = format!("skipped a document that is no object: {}", quote(&other.to_string()));
                    self.notice(Severity::Warning, "not-an-object", &message, None);
                }
            }
        }
        if all.iter().all(|it| it.sequence.is_some()) {
            all.sort_by_key(|it| it.sequence);
        }
        for parts in all {
            self.settled(parts);
        }
        let failed = error.is_some();
        if let Some(error) = error {
            let failure = Failure::of(Map::from_iter([("error".to_owned(), error)]));
            self.report(vec![failure.to_document()]);
        }
        self.close_all(false);
        let mut done = self.done_of(ending);
        if failed && status.is_none() {
            done.status = Some(Status::Error);
        }
        self.done(done);
    }
}
