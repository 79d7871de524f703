//! An answer that must be one JSON value of a required form.

use serde_json::Value;

use super::Printer;
use crate::protocol::{Document, FinishReason, Kind, Response, Status};

/// Required form of an answer.
pub struct AnswerSchema {
    pub parse: ParseAnswer,
    /// Number of times that the model may be asked for a better answer.
    pub retries: u32,
}

/// Returns the value in a text, or the reason why it does not fit the schema.
type ParseAnswer = Box<dyn Fn(&str) -> Result<Value, String>>;

/// Required form of the answer, and the answer once it has that form.
pub(super) struct StructuredAnswer {
    pub(super) schema: Option<AnswerSchema>,
    pub(super) value: Option<Value>,
}

/// Returns the parts of an answer that may be the required value: its code blocks, the last first, its last text, all
/// text.
fn candidates(response: &Response) -> Vec<String> {
    let documents = || response.documents.iter();
    let mut found: Vec<String> = documents()
        .rev()
        .filter(|it| it.kind == Kind::CodeBlock)
        .map(|it| it.text().to_owned())
        .collect();
    let text: Vec<&str> = documents()
        .filter(|it| it.kind == Kind::Text)
        .map(Document::text)
        .collect();
    found.extend(text.last().map(|it| (*it).to_owned()));
    found.push(text.join("\n\n"));
    found.retain(|it| !it.trim().is_empty());
    found
}

impl Printer<'_> {
    /// Parses the answer if it must have a form. Returns the message that asks for a better one, while retries are
    /// left.
    pub(super) fn ask_again(&mut self) -> Option<String> {
        // A question is answered by a person.
        if self.waiting_question().is_some() {
            return None;
        }
        let schema = self.structured.schema.as_mut()?;
        let exchange = self.transcript.exchanges.last()?;
        let reason = exchange.response.ending.as_ref().map(|it| &it.finish_reason);
        if exchange.response.status() == Status::Error || reason != Some(&FinishReason::Stop) {
            return None;
        }
        let mut why = "not JSON".to_owned();
        for text in candidates(&exchange.response) {
            match (schema.parse)(&text) {
                Ok(value) => {
                    self.structured.value = Some(value);
                    return None;
                }
                Err(problem) => why = problem,
            }
        }
        if schema.retries == 0 {
            self.outputs
                .say("error", &format!("the answer does not fit the schema\n{why}"));
            self.failure = Some(Status::Error);
            return None;
        }
        schema.retries -= 1;
        self.first = self.transcript.exchanges.len();
        Some(format!(
            "Your answer does not fit the JSON Schema: {why}\nAnswer again, with the JSON value alone."
        ))
    }
}
