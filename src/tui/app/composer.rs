//! The draft, what is offered for it, and what the next message is sent with.

use std::{cmp::Reverse, collections::BTreeMap};

use ratatui::{buffer::Buffer, layout::Rect};
use serde_json::Value;

use super::{App, Effect, effects::ask};
use crate::{
    extensions::CustomMode,
    link::About,
    protocol::{
        CUSTOM_MODE, Message, Mode, PromptValues, Query, Reply, ServerPrompt, ServerReport, ServerResource,
        ServerState, Submit, SymbolLocation,
    },
    theme::Theme,
    tui::{custom::Custom, editor::field::Field, widgets::list::ListCursor},
};

/// The draft and everything that is sent with it.
#[derive(Default)]
pub struct Composer {
    pub field: Field,
    /// The mode of the next message.
    pub mode: Mode,
    /// In agent mode: the model asks before each change and each command.
    pub asks_first: bool,
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
    /// A draft that was put aside, or that an earlier session left, in its stored form.
    pub stash: Option<Value>,
}

impl Composer {
    /// The rest of a typed line that begins with `#`: something to remember, for which Enter opens a choice. `#7.3` names a
    /// document.
    pub fn to_remember(&self) -> Option<String> {
        let text = self.field.text();
        let line = text.trim().strip_prefix('#')?;
        let first = line.split_whitespace().next()?;
        let is_address = first.starts_with(|it: char| it.is_ascii_digit());
        // A backslash before Enter is a line break.
        let is_line = !text.trim().contains('\n') && !text.ends_with('\\') && !self.field.has_paste();
        (is_line && !is_address).then(|| line.trim().to_owned())
    }

    /// The command that sends a message in the chosen mode, to the chosen model.
    pub fn submit(&self, mut message: Message) -> Submit {
        message.extra.shift_remove(CUSTOM_MODE);
        if let Some(name) = &self.commands.custom_mode {
            message.extra.insert(CUSTOM_MODE.to_owned(), name.as_str().into());
        }
        Submit {
            message,
            mode: self.mode,
            model: self.model.clone(),
        }
    }

    /// Chooses one of the program's own modes for the next message.
    pub fn enter(&mut self, mode: Mode) {
        (self.mode, self.commands.custom_mode) = (mode, None);
    }

    /// The model of the next message; `None` if not even the link has one.
    pub fn model_name<'a>(&'a self, about: &'a About) -> Option<&'a str> {
        self.model.as_deref().or(about.model.as_deref())
    }
}

/// The list of files, functions and types offered for an `@` in the draft, or of documents for a `#`.
#[derive(Clone, Debug, Default)]
pub struct Mention {
    /// The text after the `@`.
    pub pattern: String,
    /// Documents by their addresses, behind a `#`, instead of files.
    pub is_documents: bool,
    pub offers: Vec<MentionOffer>,
    /// The chosen one of `offers`.
    pub at: usize,
    /// The user has moved in the list.
    pub is_moved: bool,
    /// The files that were found; `offers` are made of these and of `symbols`.
    pub paths: Vec<String>,
    /// The pattern that `paths` were found for; until that is the one that is typed, nothing can be chosen.
    pub found_for: Option<String>,
    /// The functions and types that were found.
    pub symbols: Vec<SymbolLocation>,
    /// The pattern that `symbols` were found for.
    pub symbols_for: Option<String>,
    /// Tab was pressed before they were found: the first one is meant.
    pub takes_first: bool,
    /// Sent away, until something else is typed.
    pub is_hidden: bool,
}

/// A file, symbol or document that is offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MentionOffer {
    pub name: String,
    /// The text that is put into the draft: a path, with lines for a symbol, or a document's address.
    pub target: String,
    /// The summary of a document; the keyword, the owner and the path of a symbol.
    pub about: String,
    /// The rest of a resource's address is to be typed after it.
    pub is_open: bool,
}

impl Mention {
    pub fn is_shown(&self) -> bool {
        !self.is_hidden && !self.offers.is_empty()
    }

    /// The list is that of what is typed.
    pub fn is_found(&self) -> bool {
        self.found_for.as_ref() == Some(&self.pattern)
    }
}

/// The messages sent before, and the draft that was left to recall one.
#[derive(Default)]
pub struct History {
    pub sent: Vec<String>,
    /// Index in `sent` of the message in the field; `None` at the draft.
    pub at: Option<usize>,
    pub draft: String,
}

impl History {
    /// Puts the messages of earlier runs in front.
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

/// The commands that are offered while a draft begins with a slash.
#[derive(Default)]
pub struct Commands {
    /// The commands of files, as far as they have been read.
    pub custom: Vec<Custom>,
    /// The modes of files, and the one that the next message is sent in; it stands on a mode of the program.
    pub modes: Vec<CustomMode>,
    pub custom_mode: Option<String>,
    /// Prompts and resources of servers (MCP), as far as they are known.
    pub prompts: Vec<ServerPrompt>,
    pub resources: Vec<ServerResource>,
    /// Values for the argument of a prompt, as its server offered them last; and true while it is asked for more.
    pub values: PromptValues,
    pub is_asking: bool,
    /// The draft for which it was asked last.
    pub asked_for: String,
    /// The files have been read.
    pub is_read: bool,
    /// The draft is an unknown command, and nothing was typed since.
    pub is_unknown: bool,
    /// The list, while one is shown.
    pub list: Option<CommandList>,
    /// Uses of commands by name: of actions, and of commands of files with a slash in front.
    pub uses: BTreeMap<String, u32>,
}

/// Asks for what servers (MCP) offer to a message, which starts them. `shown`: shows it.
pub fn ask_servers(shown: fn(&mut App)) -> Effect {
    // A link that knows no servers offers nothing of theirs.
    ask!(Query::Servers, Reply::Servers, or_default, move |app, report| {
        let ready = |it: &ServerReport| it.state == ServerState::Ready;
        let servers = || report.servers.iter().filter(|it| ready(it));
        let commands = &mut app.composer.commands;
        commands.prompts = servers().flat_map(|it| it.prompts.clone()).collect();
        commands.resources = servers().flat_map(|it| it.resources.clone()).collect();
        shown(app);
        Vec::new()
    })
}

/// A list of drafts to choose from, drawn over the composer.
pub trait DraftList: Send {
    /// Moves to the next or the previous draft.
    fn step(&mut self, forward: bool);

    /// The chosen draft; `None` if the list is empty.
    fn offered(&self) -> Option<String>;

    /// Lines that it takes with its frame.
    fn lines(&self) -> usize;

    /// Draws itself; returns the cursor with the view that it has then.
    fn draw(&self, area: Rect, buf: &mut Buffer, theme: &Theme) -> ListCursor;
}

/// The list of commands over the composer.
pub struct CommandList {
    pub picker: Box<dyn DraftList>,
    /// The draft that it was made for.
    pub draft: String,
    /// Sent away, until something else is typed.
    pub is_hidden: bool,
    /// The user has moved in it.
    pub is_moved: bool,
    /// True if what was typed may be meant as it stands: Enter takes only what was chosen.
    pub takes_free_text: bool,
}

impl CommandList {
    /// Returns true if Enter takes what is marked: it was chosen, or its name was begun. A word that only resembles a command
    /// is no command.
    pub fn takes_marked(&self) -> bool {
        let is_begun = |it: String| it.starts_with(self.draft.trim_end());
        self.is_moved || !self.takes_free_text && self.picker.offered().is_some_and(is_begun)
    }

    /// Returns true if Enter runs a command.
    pub fn runs(&self) -> bool {
        self.takes_marked() || self.takes_free_text
    }

    /// Moves to the next or the previous command.
    pub fn step(&mut self, forward: bool) {
        self.picker.step(forward);
        self.is_moved = true;
    }
}

impl Commands {
    pub fn shown(&self) -> Option<&dyn DraftList> {
        self.list
            .as_ref()
            .filter(|it| !it.is_hidden)
            .map(|it| it.picker.as_ref())
    }

    /// Counts a use of a command; the effect stores it.
    pub fn note(&mut self, name: &str) -> Effect {
        let count = self.uses.entry(name.to_owned()).or_default();
        *count = count.saturating_add(1);
        Effect::CountUse(name.to_owned())
    }

    /// Returns the sort key of a command: those that are used more come first.
    pub fn rank(&self, name: &str) -> Reverse<u32> {
        Reverse(self.uses.get(name).copied().unwrap_or_default())
    }

    /// The mode of a file with this name.
    pub fn mode(&self, name: &str) -> Option<&CustomMode> {
        self.modes.iter().find(|it| it.name.eq_ignore_ascii_case(name.trim()))
    }

    pub fn custom(&self, word: &str) -> Option<&Custom> {
        self.custom.iter().find(|it| it.name == word)
    }
}
