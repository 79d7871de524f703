//! Flattens a response into answer text and reasoning text, piece by piece, for clients that know no documents.
//!
//! The pieces joined are the same whether a response is read while it runs or after it has ended.

use axum::http::StatusCode;

use crate::{
    os::long_text::LongText,
    protocol::{
        Document, DocumentId, Entry, Event, FinishReason, KindGroup, QuestionKind, Response, Status, Usage, View,
        document::Clarification,
    },
    server::refusal::Refusal,
    text::WordList,
};

/// A piece of output text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputPart<T = String> {
    /// Part of the answer.
    Content(T),
    /// Part of the thinking, or a line about a tool call.
    Reasoning(T),
}

impl OutputPart<LongText> {
    /// Returns an empty part of the same sort, and the text.
    pub fn apart(self) -> (OutputPart, LongText) {
        match self {
            Self::Content(text) => (OutputPart::Content(String::new()), text),
            Self::Reasoning(text) => (OutputPart::Reasoning(String::new()), text),
        }
    }
}

/// Why a response ended, as far as other APIs have words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    End,
    /// A limit on tokens or on turns was reached.
    Length,
    Refusal,
}

/// Turns log entries into [`OutputPart`]s.
#[derive(Default)]
pub struct Flattener {
    response: Response,
    /// Document whose text is being written, and the number of its bytes written so far.
    saying: Option<(DocumentId, usize)>,
    has_content: bool,
    has_reasoning: bool,
    is_thinking: bool,
    /// Last error document, which may turn out to end the response.
    trouble: Option<Failure>,
    /// Error that ended the response; `None` while it runs or if it ended well.
    pub failure: Option<Failure>,
}

/// An error document's code, message and details.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: String,
    pub message: String,
    pub details: String,
}

impl Failure {
    /// Message and details in one text.
    pub fn sentence(&self) -> String {
        self.refusal().sentence()
    }

    /// Returns the error response for a request that failed this way.
    pub fn refusal(&self) -> Refusal {
        let status = match self.code.as_str() {
            "LLM_RATE_LIMITED" => StatusCode::TOO_MANY_REQUESTS,
            "LLM_CONTEXT_LENGTH" => StatusCode::BAD_REQUEST,
            "LLM_OVERLOADED" | "LLM_UNAVAILABLE" | "STREAM_INTERRUPTED" => StatusCode::SERVICE_UNAVAILABLE,
            // A wrong provider key is the gateway's problem, not the client's: no 401.
            _ => StatusCode::BAD_GATEWAY,
        };
        Refusal::new(status, &*self.message)
            .code(&self.code)
            .details(&*self.details)
    }
}

impl Flattener {
    /// Returns the token usage so far.
    pub fn usage(&self) -> Usage {
        self.response.usage
    }

    /// Returns why the response ended; [`StopReason::End`] while it runs.
    pub fn stop_reason(&self) -> StopReason {
        let reason = self.response.ending.as_ref().map(|it| &it.finish_reason);
        match reason {
            Some(FinishReason::Length | FinishReason::MaxTurns) => StopReason::Length,
            Some(FinishReason::Refusal) => StopReason::Refusal,
            Some(
                FinishReason::Stop
                | FinishReason::AwaitingInput
                | FinishReason::Cancelled
                | FinishReason::Error
                | FinishReason::Interrupted
                | FinishReason::Other(_),
            )
            | None => StopReason::End,
        }
    }

    /// Takes the next log entry and returns the new pieces.
    pub fn push(&mut self, entry: &Entry) -> Vec<OutputPart> {
        let mut pieces = Vec::new();
        self.response.apply(&entry.event, entry.at_ms);
        match &entry.event {
            Event::ContentDelta { document, .. } => self.grow(document, false, &mut pieces),
            Event::DocumentStart(start) => self.grow(&start.id, false, &mut pieces),
            Event::DocumentEnd { document, .. } => self.grow(document, true, &mut pieces),
            Event::ThinkingDelta { delta } => self.think(delta, &mut pieces),
            Event::Done(_) => self.end(&mut pieces),
            _ => {}
        }
        pieces
    }

    /// Adds pieces for the new part of a document.
    fn grow(&mut self, id: &DocumentId, is_over: bool, pieces: &mut Vec<OutputPart>) {
        let Some(document) = self.response.get(id) else { return };
        let group = document.kind.row().group;
        if group == KindGroup::Text {
            return self.say(id, is_over, pieces);
        }
        if !is_over {
            return;
        }
        match group {
            KindGroup::Page => {
                let text = document
                    .clarification()
                    .map_or_else(|| document.plain_text(), |it| question(&it));
                self.block(text.trim_end(), pieces);
            }
            KindGroup::Failure => {
                let word = |name: &str| {
                    let word = document.metadata.get(name).and_then(|it| it.as_str());
                    word.unwrap_or_default().to_owned()
                };
                let trouble = Failure {
                    code: word("errorCode"),
                    message: document.text().to_owned(),
                    details: word("details"),
                };
                self.complain(pieces);
                self.trouble = Some(trouble);
            }
            KindGroup::Action | KindGroup::Unknown => {
                let line = done(document);
                self.note(&line, pieces);
            }
            KindGroup::Text => {}
        }
    }

    /// Writes text and code while they stream.
    fn say(&mut self, id: &DocumentId, is_over: bool, pieces: &mut Vec<OutputPart>) {
        let said = self.saying.as_ref().filter(|(it, _)| it == id).map(|it| it.1);
        // Two documents that stream at once cannot be told apart in one text: the second waits for its end.
        if said.is_none() && self.saying.is_some() && !is_over {
            return;
        }
        let Some(document) = self.response.get(id) else { return };
        // Only the end of it is read: it may be very long, and a piece comes every millisecond.
        let after = |start| document.content.as_ref().map_or("", |it| it.after(start));
        // Text that was replaced cannot be taken back; text that was appended to continues.
        let more = after(said.unwrap_or_default()).to_owned();
        let length = document.content.as_ref().map_or(0, LongText::len);
        let is_closed = length == 0 || after(length - 1) == "\n";
        let (mark, word) = if said.is_none() || is_over {
            fence(document)
        } else {
            ("", String::new())
        };
        if said.is_none() {
            if length == 0 && (mark.is_empty() || !is_over) {
                return;
            }
            self.complain(pieces);
            let head = if mark.is_empty() {
                String::new()
            } else {
                format!("{mark}{word}\n")
            };
            self.open(&head, pieces);
        }
        if !more.is_empty() {
            pieces.push(OutputPart::Content(more));
        }
        if is_over {
            if !mark.is_empty() {
                let gap = if is_closed { "" } else { "\n" };
                pieces.push(OutputPart::Content(format!("{gap}{mark}")));
            }
            if said.is_some() {
                self.saying = None;
            }
        } else {
            self.saying = Some((id.clone(), length));
        }
    }

    /// Writes a text that is complete.
    fn block(&mut self, text: &str, pieces: &mut Vec<OutputPart>) {
        self.complain(pieces);
        if !text.is_empty() {
            self.open(text, pieces);
        }
    }

    /// Begins a block, with a blank line after the previous one.
    fn open(&mut self, text: &str, pieces: &mut Vec<OutputPart>) {
        let gap = if std::mem::replace(&mut self.has_content, true) {
            "\n\n"
        } else {
            ""
        };
        self.is_thinking = false;
        if !gap.is_empty() || !text.is_empty() {
            pieces.push(OutputPart::Content(format!("{gap}{text}")));
        }
    }

    fn think(&mut self, delta: &str, pieces: &mut Vec<OutputPart>) {
        let gap = match (std::mem::replace(&mut self.has_reasoning, true), self.is_thinking) {
            (true, false) => "\n\n",
            (true, true) | (false, _) => "",
        };
        self.is_thinking = true;
        pieces.push(OutputPart::Reasoning(format!("{gap}{delta}")));
    }

    /// Writes a line about an action to the reasoning.
    fn note(&mut self, line: &str, pieces: &mut Vec<OutputPart>) {
        self.complain(pieces);
        let gap = if std::mem::replace(&mut self.has_reasoning, true) {
            "\n"
        } else {
            ""
        };
        self.is_thinking = false;
        pieces.push(OutputPart::Reasoning(format!("{gap}{line}")));
    }

    /// Reports an error that did not end the response.
    fn complain(&mut self, pieces: &mut Vec<OutputPart>) {
        if let Some(Failure { message, details, .. }) = self.trouble.take() {
            let details = if details.is_empty() {
                details
            } else {
                format!(" ({details})")
            };
            self.note(&format!("error: {message}{details}"), pieces);
        }
    }

    fn end(&mut self, pieces: &mut Vec<OutputPart>) {
        if self.response.status() != Status::Error {
            // An error document at the end of a successful answer is meant for the reader, such as a limit that was
            // reached.
            if let Some(Failure { message, .. }) = self.trouble.take() {
                self.open(&message, pieces);
            }
            return;
        }
        self.failure = Some(self.trouble.take().unwrap_or_else(|| Failure {
            code: "STREAM_INTERRUPTED".to_owned(),
            message: "the answer broke off".to_owned(),
            details: String::new(),
        }));
    }
}

/// Returns the fence around a code document and the info string after it; both empty for other kinds.
fn fence(document: &Document) -> (&'static str, String) {
    match document.view() {
        View::CodeBlock(it) => {
            // Markdown often contains fences itself.
            let mark = if matches!(it.language, "markdown" | "md") {
                "````"
            } else {
                "```"
            };
            (mark, it.language.to_owned())
        }
        View::CodeReference(it) => ("```", format!("{}:{}:{}", it.start_line, it.end_line, it.file_path)),
        _ => ("", String::new()),
    }
}

/// Describes an action of the agent in one line.
fn done(document: &Document) -> String {
    match document.view() {
        View::ToolCall(it) => {
            let about = WordList("target_file file_path path pattern query target_directory url search_term");
            let about = about
                .iter()
                .find_map(|name| it.arguments.get(name)?.as_str())
                .unwrap_or_default();
            let failed = if it.result.is_some_and(|it| it.failed) {
                " (failed)"
            } else {
                ""
            };
            format!(
                "[{}{}{about}{failed}]",
                it.tool_name,
                if about.is_empty() { "" } else { " " }
            )
        }
        View::FileEdit(it) => format!("[{} {}: {}]", it.operation, it.file_path, it.applied),
        View::TerminalCommand(it) => {
            let end = it
                .exit_code
                .map_or_else(|| it.state.to_string(), |it| format!("exit {it}"));
            format!("[$ {}: {end}]", it.command.lines().next().unwrap_or_default())
        }
        View::TodoUpdate(it) => format!("[{} todos]", it.todos.len()),
        _ => format!("[{}]", document.kind),
    }
}

/// Writes a question and its numbered options as text.
fn question(it: &Clarification<'_>) -> String {
    let mut lines = Vec::new();
    if !it.content.trim().is_empty() {
        lines.push(it.content.trim().to_owned());
    }
    for question in &it.questions {
        lines.push(question.text.to_owned());
        for (at, option) in question.options.iter().enumerate() {
            lines.push(format!("{}. {}", at + 1, option.label));
        }
    }
    if it.kind == QuestionKind::Approval {
        lines.push("(This cannot be agreed to over this API, and was not done.)".to_owned());
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::{
        os::long_text::seen,
        protocol::{DocumentStart, Kind, Position, Turn},
    };

    #[test]
    fn of_a_text_that_grows_only_the_new_part_is_read() {
        let id = DocumentId::from("doc_001");
        let start = DocumentStart {
            id: id.clone(),
            kind: Kind::Text,
            sequence: None,
            content: None,
            metadata: Map::new(),
        };
        let piece = "a piece of some text\n".repeat(10);
        let grown = || Event::ContentDelta {
            document: id.clone(),
            delta: piece.clone(),
        };
        let end = Event::DocumentEnd {
            document: id.clone(),
            final_content: Some(piece.repeat(200).into()),
            metadata: Map::new(),
        };
        let events = std::iter::once(Event::DocumentStart(start)).chain(std::iter::repeat_with(grown).take(200));
        let (mut flat, mut said) = (Flattener::default(), String::new());
        seen::take();
        for event in events.chain([end]) {
            let entry = Entry {
                position: Position(1),
                turn: Turn(1),
                at_ms: 0,
                event,
            };
            for part in flat.push(&entry) {
                match part {
                    OutputPart::Content(text) => said.push_str(&text),
                    OutputPart::Reasoning(text) => panic!("{text}"),
                }
            }
        }
        let read = seen::take();
        assert_eq!(said, piece.repeat(200));
        assert!(read <= said.len() * 3, "{read} bytes for {}", said.len());
    }
}
