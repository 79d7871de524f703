//! Copying documents in several formats.

use crate::{
    protocol::Kind,
    t,
    transcript::{DocumentIndex, Transcript},
    tui::{
        app::{Action, App, Effect, selection::text_of},
        overlays::Picker,
        widgets::{self, Fold, transcript::Item},
    },
};

pub const COPY: Action = Action::new("copy", "copy", copy);

pub const PRINT: Action = Action::new("print", "print", |app, _| {
    if app.viewport.pane.items.is_empty() {
        return app.toast(t!("action-nothing-to-print"));
    }
    let text = app.printed(0..app.viewport.pane.items.len());
    app.toast(t!("action-printed"));
    vec![Effect::Print(text)]
});

pub const COPY_CODE: Action = Action::new("copy.code", "", |app, _| copy(app, "code"));

pub const COPY_AS: Action = Action::new("copy.as", "", |app, _| {
    app.open(Picker::copies(app.viewport.pane.selected.is_some()))
});

/// The format of a copy.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CopyFormat {
    /// As it was written: Markdown of a text, the patch of an edit.
    Source,
    /// Markdown of everything, so that it can be read elsewhere.
    Markdown,
    /// As it is shown, without marks.
    Plain,
    Code,
}

/// The extent of a copy.
enum CopyScope {
    Selected,
    /// Everything that is listed.
    All,
    At(DocumentIndex),
}

pub fn copy(app: &mut App, words: &str) -> Vec<Effect> {
    let (mut form, mut scope) = (CopyFormat::Source, CopyScope::Selected);
    for word in words.split_whitespace() {
        match word {
            "markdown" | "md" => form = CopyFormat::Markdown,
            "plain" | "text" => form = CopyFormat::Plain,
            "code" => form = CopyFormat::Code,
            "all" | "shown" => scope = CopyScope::All,
            _ => match place(&app.conversation.transcript, word) {
                Some(place) => scope = CopyScope::At(place),
                None => {
                    return app.toast(t!("action-copy-how", word = word));
                }
            },
        }
    }
    let (what, items) = match scope {
        CopyScope::All => (t!("copied-conversation").to_owned(), app.viewport.pane.items.clone()),
        CopyScope::At(place) => (name(app, Item::Document(place)), vec![Item::Document(place)]),
        CopyScope::Selected => match app.viewport.pane.selected {
            Some(item) => (name(app, item), vec![item]),
            None => (t!("copied-last-answer").to_owned(), last_answer(app)),
        },
    };
    if matches!(scope, CopyScope::All) && form == CopyFormat::Source {
        form = CopyFormat::Markdown;
    }
    let parts: Vec<String> = items.into_iter().filter_map(|it| part(app, it, form)).collect();
    let text = parts.join("\n\n");
    if text.trim().is_empty() {
        return app.toast(if form == CopyFormat::Code {
            t!("action-no-code")
        } else {
            t!("action-nothing-to-copy")
        });
    }
    vec![Effect::Copy { text, what }]
}

/// The document with a number such as `7.3` or `#7.3`.
fn place(transcript: &Transcript, word: &str) -> Option<DocumentIndex> {
    let (turn, number) = word.trim_start_matches('#').split_once('.')?;
    let (turn, number) = (turn.parse().ok()?, number.parse().ok()?);
    transcript.index_of(crate::protocol::Address {
        turn: crate::protocol::Turn(turn),
        number,
    })
}

fn name(app: &App, item: Item) -> String {
    match item {
        Item::Document(place) => app
            .conversation
            .transcript
            .address(place)
            .map(|it| it.to_string())
            .unwrap_or_default(),
        Item::Message(at) => {
            let exchange = app.conversation.transcript.exchanges.get(at);
            exchange.map(|it| it.turn.to_string()).unwrap_or_default()
        }
        Item::Thinking(..) => t!("copied-reasoning").into(),
        Item::Ending(_) | Item::Action(..) => String::new(),
    }
}

fn last_answer(app: &App) -> Vec<Item> {
    let exchanges = app.conversation.transcript.exchanges.iter().enumerate().rev();
    let last = exchanges
        .map(|(at, it)| (at, it.response.documents.len()))
        .find(|it| it.1 > 0);
    let (exchange, count) = last.unwrap_or_default();
    (0..count)
        .map(|document| Item::Document(DocumentIndex { exchange, document }))
        .collect()
}

fn part(app: &mut App, item: Item, form: CopyFormat) -> Option<String> {
    let text = match item {
        Item::Document(place) => {
            let document = app.conversation.transcript.get(place)?;
            match form {
                CopyFormat::Source => widgets::copy_text(document).into_string(),
                CopyFormat::Markdown => widgets::markdown(document),
                CopyFormat::Code => widgets::code_only(document)?.into_string(),
                CopyFormat::Plain if document.kind == Kind::Text => {
                    let fold = app.viewport.pane.fold_of(item);
                    app.viewport.pane.set_fold(item, Fold::Full);
                    let text = app.with_pane(|pane, context| text_of(pane.rows_of(item, context)));
                    app.viewport.pane.set_fold(item, fold);
                    text
                }
                CopyFormat::Plain => widgets::copy_text(document).into_string(),
            }
        }
        Item::Message(at) => {
            let message = app.conversation.transcript.exchanges.get(at)?.message.as_ref()?;
            match form {
                CopyFormat::Source | CopyFormat::Plain => message.content.clone(),
                // A heading would stand above the answer's own; a quotation does not mix with it.
                CopyFormat::Markdown => message.content.lines().map(|it| format!("> {it}\n")).collect(),
                CopyFormat::Code => return None,
            }
        }
        Item::Thinking(at, n) => match form {
            CopyFormat::Source | CopyFormat::Plain => {
                let exchange = app.conversation.transcript.exchanges.get(at)?;
                exchange.response.thinking.get(n)?.text.to_string()
            }
            CopyFormat::Markdown | CopyFormat::Code => return None,
        },
        Item::Action(at, n) => {
            let exchange = app.conversation.transcript.exchanges.get(at)?;
            widgets::action_line(exchange.actions.get(n)?)
        }
        Item::Ending(_) => return None,
    };
    let text = text.trim_end().to_owned();
    (!text.is_empty()).then_some(text)
}
