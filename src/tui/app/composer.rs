//! The draft, what is offered for it, and what the next message is sent with.

use crate::{
    link::About,
    protocol::{Mode, Submit, SymbolLocation},
    tui::{command::Commands, field::Field},
};

/// The draft and everything that is sent with it.
#[derive(Default)]
pub struct Composer {
    pub field: Field,
    /// The mode of the next message.
    pub mode: Mode,
    /// The model that was chosen here; `None`: the link's own.
    pub model: Option<String>,
    /// The model's reasoning effort; `None`: as the settings say.
    pub effort: Option<&'static str>,
    /// Messages that wait until the running turn has ended, oldest first.
    pub queue: Vec<Submit>,
    /// Messages to the running answer that it has not read yet.
    pub said: Vec<String>,
    /// The files that are offered for the `@` before the caret.
    pub mention: Option<Mention>,
    pub commands: Commands,
    /// The draft's version when a file was put in, with a space after it.
    pub put_in: Option<u64>,
    pub history: History,
}

impl Composer {
    /// The model of the next message; `None` if not even the link has one.
    pub fn model_name<'a>(&'a self, about: &'a About) -> Option<&'a str> {
        self.model.as_deref().or(about.model.as_deref())
    }
}

/// Files that are offered for an `@` in the draft.
#[derive(Clone, Debug, Default)]
pub struct Mention {
    /// What was typed behind the `@`.
    pub pattern: String,
    /// Documents by their addresses, behind a `#`, instead of files.
    pub is_documents: bool,
    /// What a document says, beside its address; what a symbol is, and where.
    pub about: Vec<String>,
    /// Somebody has moved in the list.
    pub is_moved: bool,
    pub files: Vec<String>,
    /// What is put into the draft for each of these, where that is not its name.
    pub places: Vec<String>,
    /// The files that were found, and the functions and types, with what they were found for: `files` is made of both.
    pub paths: Vec<String>,
    pub symbols: Vec<SymbolLocation>,
    pub symbols_for: Option<String>,
    /// What they were found for; until they are found for the pattern, nothing can be chosen.
    pub found_for: Option<String>,
    /// Tab was pressed before they were found: the first one is meant.
    pub takes_first: bool,
    pub at: usize,
    /// Sent away, until something else is typed.
    pub is_hidden: bool,
}

impl Mention {
    pub fn is_shown(&self) -> bool {
        !self.is_hidden && !self.files.is_empty()
    }

    /// The list is that of what is typed.
    pub fn is_found(&self) -> bool {
        self.found_for.as_ref() == Some(&self.pattern)
    }
}

/// What was sent before, and the draft that was left for it.
#[derive(Default)]
pub struct History {
    pub sent: Vec<String>,
    /// Where in `sent` the field is; `None`: at the draft.
    pub at: Option<usize>,
    pub draft: String,
}

impl History {
    /// What was sent before the program began.
    pub fn begin(&mut self, before: Vec<String>) {
        let now = std::mem::replace(&mut self.sent, before);
        for text in now {
            self.keep(&text);
        }
    }

    /// Remembers a text once, as the newest.
    pub fn keep(&mut self, text: &str) {
        self.at = None;
        if text.trim().is_empty() {
            return;
        }
        self.sent.retain(|it| it != text);
        self.sent.push(text.to_owned());
    }

    pub fn older(&mut self, draft: &str) -> Option<String> {
        let at = match self.at {
            None => {
                draft.clone_into(&mut self.draft);
                self.sent.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(at);
        self.sent.get(at).cloned()
    }

    pub fn newer(&mut self) -> Option<String> {
        let at = self.at? + 1;
        if at >= self.sent.len() {
            self.at = None;
            return Some(std::mem::take(&mut self.draft));
        }
        self.at = Some(at);
        self.sent.get(at).cloned()
    }
}
