//! Prints the text of responses as they stream: each document once, in order.
//!
//! A text may be too long for memory, so no copy of printed text is kept, and long text is written in parts.

use std::{borrow::Cow, collections::HashSet};

use crate::{
    os::long_text::note_read,
    protocol::{Document, DocumentId, Kind, KindGroup, Response},
    text::{Sanitized, clean::Cleaner},
    transcript::is_approval,
};

/// Bytes of a text that are held back until it is complete. A longer one is printed as it comes.
const HELD_BYTES: usize = 256 << 10;

/// Prints responses one after another: text as it grows, other documents when they have ended.
#[derive(Default)]
pub struct TextPrinter {
    /// A program decides approvals: they are no text for a reader.
    skips_approvals: bool,
    /// Text is printed once it is complete.
    is_held: bool,
    /// Text of the model that is not printed yet; `None` once there was too much to hold: then it is printed as it comes.
    pending: Option<String>,
    done: HashSet<DocumentId>,
    /// Number of documents at the front that are done.
    passed: usize,
    current: Option<OpenText>,
    /// The model's own text, while the link says it: documents of text are then not printed.
    said: Option<SaidText>,
    /// True once something was printed.
    has_begun: bool,
    /// Number of newlines at the end of the output.
    newlines: usize,
}

/// Text that is printed exactly as the model wrote it, but for what a terminal would obey.
#[derive(Default)]
struct SaidText {
    cleaner: Cleaner,
    /// After something else was done or printed: number of newlines that the model has written since, which are
    /// held back until it writes more.
    held: Option<usize>,
}

/// A text document that is being printed.
struct OpenText {
    id: DocumentId,
    printed: PrintedText,
    cleaner: Cleaner,
}

/// Length and checksum of the text printed so far, before sanitizing.
#[derive(Debug, Default)]
pub(super) struct PrintedText {
    pub(super) bytes: usize,
    /// Number of newlines with which it begins.
    pub(super) newlines: usize,
    checksum: crc32fast::Hasher,
}

/// Bytes of a text that are looked at before the pages of its file may go.
const LOOK_BYTES: usize = 1 << 20;

impl PrintedText {
    pub(super) fn push(&mut self, text: &str) {
        if self.has_only_newlines() {
            self.newlines += text.len() - text.trim_start_matches('\n').len();
        }
        self.bytes += text.len();
        self.checksum.update(text.as_bytes());
    }

    pub(super) fn has_only_newlines(&self) -> bool {
        self.newlines == self.bytes
    }

    /// Returns true if `text` begins with the printed text.
    pub(super) fn begins(&self, text: &str) -> bool {
        let Some(text) = text.get(..self.bytes) else {
            return false;
        };
        let mut checksum = crc32fast::Hasher::new();
        for bytes in text.as_bytes().chunks(LOOK_BYTES) {
            checksum.update(bytes);
            note_read(bytes.len());
        }
        checksum.finalize() == self.checksum.clone().finalize()
    }
}

/// Gathers text, so that a step is one write unless it is long.
struct Output<'a> {
    text: Sanitized,
    write: &'a mut dyn FnMut(&Sanitized),
}

/// Bytes of text that are sanitized and written at a time.
const PART_BYTES: usize = 64 << 10;

impl Output<'_> {
    fn push(&mut self, text: &Sanitized) {
        self.text.push(text);
        if self.text.len() >= PART_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            (self.write)(&std::mem::take(&mut self.text));
        }
    }
}

/// Splits a text into parts of at most [`PART_BYTES`].
pub(super) fn parts(mut text: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (part, rest) = text.split_at(text.floor_char_boundary(PART_BYTES));
        text = rest;
        (!part.is_empty()).then_some(part)
    })
}

/// Removes the space at the end of a text in pieces: nothing follows it.
pub(super) fn trimmed(mut pieces: Vec<Cow<'_, str>>) -> Vec<Cow<'_, str>> {
    while let Some(last) = pieces.pop() {
        let length = last.trim_end().len();
        if length > 0 {
            pieces.push(match last {
                Cow::Borrowed(text) => text.get(..length).unwrap_or_default().into(),
                Cow::Owned(mut text) => {
                    text.truncate(length);
                    text.into()
                }
            });
            break;
        }
    }
    pieces
}

/// Returns true for a text that broke off and was asked for again: something other than an error follows it.
pub(super) fn is_replaced(response: &Response, document: &Document) -> bool {
    let mut later = response.documents.iter().rev().take_while(|it| it.id != document.id);
    document.is_incomplete() && later.any(|it| it.kind.row().group != KindGroup::Failure)
}

impl TextPrinter {
    /// Prints no approvals if `skips_approvals`, and each text once it is complete if `is_held`.
    pub fn new(skips_approvals: bool, is_held: bool) -> Self {
        Self {
            skips_approvals,
            is_held,
            pending: is_held.then(String::new),
            ..Self::default()
        }
    }

    /// Writes the text that can be printed now.
    pub fn next(&mut self, response: &Response, write: &mut dyn FnMut(&Sanitized)) {
        let mut out = Output {
            text: Sanitized::default(),
            write,
        };
        self.print(response, &mut out);
        out.flush();
    }

    fn print(&mut self, response: &Response, out: &mut Output<'_>) {
        loop {
            if let Some(mut current) = self.current.take() {
                let Some(document) = response.get(&current.id) else {
                    continue;
                };
                self.grow(document, &mut current, out);
                if document.is_open() {
                    self.current = Some(current);
                    return;
                }
                self.done.insert(current.id);
            }
            if !self.advance(response, out) {
                return;
            }
        }
    }

    /// Returns the next text of the model. A blank line is added if something else came in between and the model
    /// wrote none.
    pub fn say(&mut self, delta: &str) -> Sanitized {
        let has_begun = self.has_begun;
        let mut said = self.said.take().unwrap_or_else(|| SaidText {
            held: has_begun.then_some(0),
            ..SaidText::default()
        });
        let mut out = Sanitized::default();
        match &mut self.pending {
            Some(pending) if pending.len() + delta.len() <= HELD_BYTES => pending.push_str(delta),
            pending => {
                if let Some(text) = pending.take() {
                    self.write(&mut said, &text, &mut out);
                }
                self.write(&mut said, delta, &mut out);
            }
        }
        self.said = Some(said);
        out
    }

    /// Returns the text of the model that was held back; what comes then is held again.
    fn release(&mut self) -> Sanitized {
        let mut out = Sanitized::default();
        let pending = std::mem::replace(&mut self.pending, self.is_held.then(String::new));
        let pending = pending.unwrap_or_default();
        if let Some(mut said) = self.said.take() {
            self.write(&mut said, &pending, &mut out);
            self.said = Some(said);
        }
        out
    }

    fn write(&mut self, said: &mut SaidText, delta: &str, out: &mut Sanitized) {
        let mut text = delta;
        if let Some(held) = &mut said.held {
            text = delta.trim_start_matches('\n');
            *held += delta.len() - text.len();
        }
        if !text.is_empty() {
            if let Some(held) = said.held.take() {
                let missing = held.max(2_usize.saturating_sub(self.newlines));
                let gap = Sanitized::new(&"\n".repeat(missing));
                self.note(&gap);
                out.push(&gap);
            }
            let text = said.cleaner.push(text);
            self.note(&text);
            out.push(&text);
        }
    }

    /// Something else is done between what the model says. Returns the text that was held back.
    pub fn pause(&mut self) -> Sanitized {
        let text = self.release();
        if let Some(said) = self.said.as_mut().filter(|_| self.has_begun) {
            said.cleaner.finish();
            said.held.get_or_insert(0);
        }
        text
    }

    /// Ends text that is void, since the model begins again. Returns the missing newline.
    pub fn break_off(&mut self) -> Sanitized {
        if let Some(pending) = &mut self.pending {
            pending.clear();
            return Sanitized::default();
        }
        self.pending = self.is_held.then(String::new);
        if let Some(said) = &mut self.said {
            *said = SaidText::default();
        }
        if !self.is_mid_line() {
            return Sanitized::default();
        }
        self.newlines = 1;
        Sanitized::literal("\n")
    }

    /// Returns true if the output does not end with a newline.
    pub fn is_mid_line(&self) -> bool {
        self.has_begun && self.newlines == 0
    }

    /// Ends a response: returns the text that was held back and the missing newline, if any.
    pub fn end(&mut self) -> Sanitized {
        let mut text = self.release();
        self.done.clear();
        self.passed = 0;
        self.current = None;
        self.said = None;
        if self.is_mid_line() {
            self.newlines = 1;
            text.push(&Sanitized::literal("\n"));
        }
        text
    }

    /// Begins the next text or prints the next ended document. Returns false if there is none yet.
    fn advance(&mut self, response: &Response, out: &mut Output<'_>) -> bool {
        while response
            .documents
            .get(self.passed)
            .is_some_and(|it| self.done.contains(&it.id))
        {
            self.passed += 1;
        }
        for document in response.documents.iter().skip(self.passed) {
            if self.done.contains(&document.id) {
                continue;
            }
            match document.kind.row().group {
                // Actions are no text, and errors go to standard error.
                KindGroup::Action | KindGroup::Failure => {}
                KindGroup::Text if self.said.is_some() => {
                    self.done.insert(document.id.clone());
                    return true;
                }
                KindGroup::Text if self.is_held && is_replaced(response, document) => {
                    self.done.insert(document.id.clone());
                    return true;
                }
                KindGroup::Text
                    if self.is_held
                        && response.is_running()
                        && (document.is_open() || document.is_incomplete())
                        && document.text().len() <= HELD_BYTES =>
                {
                    return false;
                }
                KindGroup::Text if document.kind == Kind::Text => {
                    if document.text().trim().is_empty() && document.is_open() {
                        return false;
                    }
                    self.current = Some(OpenText {
                        id: document.id.clone(),
                        printed: PrintedText::default(),
                        cleaner: Cleaner::default(),
                    });
                    self.separate(out);
                    return true;
                }
                KindGroup::Page if self.skips_approvals && is_approval(document) => {}
                KindGroup::Text | KindGroup::Page | KindGroup::Unknown => {
                    if document.is_open() {
                        return false;
                    }
                    self.done.insert(document.id.clone());
                    self.whole(document, out);
                    return true;
                }
            }
        }
        false
    }

    fn grow(&mut self, document: &Document, current: &mut OpenText, out: &mut Output<'_>) {
        let text = document.text();
        // An open document only grows; its end may replace the text.
        if !document.is_open() && !current.printed.begins(text) {
            current.printed = PrintedText::default();
            current.cleaner.finish();
            self.separate(out);
        }
        // Trailing space waits: nothing else may follow.
        let until = text.trim_end().len();
        let Some(more) = text.get(current.printed.bytes..until) else {
            return;
        };
        let is_first = current.printed.bytes == 0;
        current.printed.push(more);
        for part in parts(if is_first { more.trim_start_matches('\n') } else { more }) {
            let part = current.cleaner.push(part);
            self.push(&part, out);
        }
    }

    /// Prints a document that has ended.
    fn whole(&mut self, document: &Document, out: &mut Output<'_>) {
        let pieces = trimmed(document.plain_pieces());
        if pieces.is_empty() {
            return;
        }
        self.separate(out);
        let mut cleaner = Cleaner::default();
        for part in pieces.iter().flat_map(|it| parts(it)) {
            let part = cleaner.push(part);
            self.push(&part, out);
        }
    }

    /// Adds a blank line after the previous output.
    fn separate(&mut self, out: &mut Output<'_>) {
        while self.has_begun && self.newlines < 2 {
            self.push(&Sanitized::literal("\n"), out);
        }
    }

    fn push(&mut self, text: &Sanitized, out: &mut Output<'_>) {
        self.note(text);
        out.push(text);
    }

    /// Notes how the output ends with `text`.
    fn note(&mut self, text: &Sanitized) {
        if text.is_empty() {
            return;
        }
        self.has_begun = true;
        let at_end = text.bytes().rev().take_while(|&it| it == b'\n').count();
        self.newlines = if at_end == text.len() {
            self.newlines + at_end
        } else {
            at_end
        };
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;
    use crate::protocol::{DocumentStart, Done, Event};

    fn start(id: &str, kind: &str) -> Event {
        Event::DocumentStart(DocumentStart {
            id: id.into(),
            kind: Kind::parse(kind),
            sequence: None,
            content: None,
            metadata: Map::new(),
        })
    }

    fn say(id: &str, delta: &str) -> Event {
        Event::ContentDelta {
            document: id.into(),
            delta: delta.into(),
        }
    }

    fn end(id: &str, text: Option<&str>) -> Event {
        Event::DocumentEnd {
            document: id.into(),
            final_content: text.map(Into::into),
            metadata: Map::new(),
        }
    }

    /// Checks what is printed after each event; the pieces are divided by `|`.
    fn check(events: &[Event], says: &str) {
        check_with(TextPrinter::default(), events, says);
    }

    fn check_with(mut text: TextPrinter, events: &[Event], says: &str) {
        let mut response = Response::default();
        let mut printed = Vec::new();
        for event in events {
            response.apply(event, 0);
            let mut said = String::new();
            text.next(&response, &mut |it| said.push_str(it));
            printed.push(said);
        }
        printed.push(text.end().into_string());
        printed.retain(|it| !it.is_empty());
        assert_eq!(printed.join("|"), says);
    }

    #[test]
    fn a_text_is_printed_as_it_grows() {
        check(
            &[
                start("a", "text"),
                say("a", "one "),
                say("a", "two\n\n"),
                say("a", "three\n"),
                end("a", None),
            ],
            "one| two|\n\nthree|\n",
        );
    }

    #[test]
    fn a_text_that_is_held_is_printed_once_it_is_complete_and_what_broke_off_is_not() {
        let cut = |id: &str| Event::DocumentEnd {
            document: id.into(),
            final_content: None,
            metadata: [("incomplete".to_owned(), true.into())].into_iter().collect(),
        };
        let half = [start("a", "text"), say("a", "half"), cut("a")];
        let mut events = half.to_vec();
        events.extend([start("b", "text"), say("b", "the "), say("b", "whole"), end("b", None)]);
        check_with(TextPrinter::new(false, true), &events, "the whole|\n");
        // Nothing was said instead of it.
        let mut events = half.to_vec();
        events.extend([start("e", "error"), end("e", Some("bad")), Event::Done(Done::default())]);
        check_with(TextPrinter::new(false, true), &events, "half|\n");
    }

    #[test]
    fn what_the_model_says_is_held_until_something_is_done() {
        let mut text = TextPrinter::new(false, true);
        let mut out = String::new();
        for (said, ends) in [("half ", false), ("one", true), ("two", true)] {
            out.push_str(&text.say(said));
            out.push_str(&if ends { text.pause() } else { text.break_off() });
            out.push('|');
        }
        out.push_str(&text.end());
        assert_eq!(out, "|one|\n\ntwo|\n");
    }

    #[test]
    fn what_is_too_long_to_be_held_is_printed_as_it_comes() {
        let mut text = TextPrinter::new(false, true);
        let long = "a".repeat(HELD_BYTES);
        assert_eq!(&*text.say(&long), "");
        assert_eq!(text.say("b").len(), HELD_BYTES + 1);
        assert_eq!(&*text.say("c"), "c");
        assert_eq!(&*text.pause(), "");
        // The next one is held again.
        assert_eq!(&*text.say("d"), "");
        assert_eq!(&*text.end(), "\n\nd\n");
    }

    #[test]
    fn documents_come_in_order_and_apart_whatever_order_they_grow_in() {
        check(
            &[
                start("a", "text"),
                start("b", "code_block"),
                start("c", "text"),
                say("c", "last"),
                say("b", "let x;"),
                end("c", None),
                end("b", None),
                say("a", "first"),
                end("a", None),
            ],
            "first|\n\n```\nlet x;\n```\n\nlast|\n",
        );
    }

    #[test]
    fn what_was_done_is_not_what_was_said() {
        let command = Event::DocumentEnd {
            document: "a".into(),
            final_content: None,
            metadata: match json!({ "command": "ls", "output": "x" }) {
                serde_json::Value::Object(it) => it,
                _ => Map::new(),
            },
        };
        check(
            &[
                start("a", "terminal_command"),
                start("b", "error"),
                start("c", "text"),
                say("c", "hi"),
                command,
                end("b", Some("bad")),
                end("c", None),
            ],
            "hi|\n",
        );
    }

    #[test]
    fn an_end_that_says_something_else_is_printed_whole() {
        check(
            &[start("a", "text"), say("a", "wrong"), end("a", Some("right"))],
            "wrong|\n\nright|\n",
        );
        check(
            &[start("a", "text"), say("a", "half"), end("a", Some("half and half"))],
            "half| and half|\n",
        );
    }

    #[test]
    fn escape_sequences_are_dropped_across_pieces() {
        check(
            &[
                start("a", "text"),
                say("a", "x\u{1b}"),
                say("a", "[31"),
                say("a", "my"),
                end("a", None),
            ],
            "x|y|\n",
        );
    }

    #[test]
    fn an_empty_answer_prints_nothing() {
        check(
            &[
                start("a", "text"),
                say("a", " \n"),
                end("a", None),
                Event::Done(Done::default()),
            ],
            "",
        );
    }
}
