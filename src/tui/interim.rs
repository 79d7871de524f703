//! Stand-ins until the looks of questions are there.
use crate::protocol::{ClarificationResponse, Document, document::Clarification};
use crossterm::event::KeyEvent;
#[derive(Debug, Default)]
pub struct Form;
pub enum Outcome {
    Ignored,
    Changed,
    Answer(ClarificationResponse),
}
impl Form {
    pub fn new(_: &Clarification<'_>) -> Self {
        Self
    }
    pub fn key(&mut self, _: KeyEvent, _: &Clarification<'_>) -> Outcome {
        Outcome::Ignored
    }
    pub fn is_typing(&self) -> bool {
        false
    }
    pub fn paste(&mut self, _: &str) {}
}
pub fn copy_text(document: &Document) -> String {
    document.plain_text()
}
pub fn code_only(document: &Document) -> Option<String> {
    document.content.clone()
}
