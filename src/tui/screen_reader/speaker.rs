//! Writes documents as lines.

use std::io::Write;

use crate::{
    protocol::Document,
    t,
    text::{Sanitized, StyledLine},
    transcript::{DocumentIndex, is_approval},
    tui::{
        app::App,
        setup::now_ms,
        spoken,
        widgets::{
            Fold,
            transcript::{Item, Pane, TranscriptContext, address},
        },
    },
};

/// A writer of lines.
pub struct Speaker {
    out: Box<dyn Write + Send>,
    /// Nobody reads any more.
    pub is_gone: bool,
    /// A person types: their own messages are not repeated.
    pub is_typed: bool,
}

impl Speaker {
    pub fn new(out: Box<dyn Write + Send>, is_typed: bool) -> Self {
        Self {
            out,
            is_gone: false,
            is_typed,
        }
    }

    /// Writes one line; its text may be anybody's.
    pub fn write_line(&mut self, line: &str) {
        let line = format!("{}\n", Sanitized::line(line));
        let written = self.out.write_all(line.as_bytes()).and_then(|()| self.out.flush());
        self.is_gone |= written.is_err();
    }

    pub fn note(&mut self, text: &str) {
        self.write_line(&t!("plain-note", text = text));
    }

    /// Reads an item out: as it is folded, or all of it.
    pub fn tell(&mut self, app: &mut App, item: Item, is_whole: bool) {
        let mut rows = rows(app, item, is_whole);
        if rows.is_empty() {
            return;
        }
        let transcript = &app.conversation.transcript;
        let address = address(transcript, item);
        let mut taken = 0;
        match item {
            Item::Message(_) if self.is_typed && !is_whole && !app.conversation.about.is_replay => {
                // The person who typed it knows what it says.
                self.write_line(&t!("plain-turn", address = address));
                return;
            }
            Item::Message(_) => {
                // The time of day is of no use in the middle of the words.
                for row in &mut rows {
                    row.facts.clear();
                }
                self.write_line(&t!("plain-message", address = address));
            }
            Item::Thinking(..) | Item::Ending(_) | Item::Action(..) => {}
            Item::Document(place) => {
                let Some(document) = transcript.get(place) else { return };
                let (label, heading) = label(document, &address, is_approval(document), &rows);
                taken = heading;
                self.write_line(&label);
            }
        }
        for line in spoken::lines(rows.get(taken..).unwrap_or_default()) {
            self.write_line(format!("  {line}").trim_end());
        }
    }

    /// Says what is being worked at, and for how long already.
    pub fn tell_state(&mut self, app: &mut App) {
        let exchanges = &app.conversation.transcript.exchanges;
        let since = exchanges.last().map_or(app.now_ms, |it| it.at_ms);
        let seconds = now_ms().saturating_sub(since) / 1000;
        let open = exchanges.last().and_then(|exchange| {
            Some(DocumentIndex {
                exchange: exchanges.len() - 1,
                document: exchange.response.documents.iter().rposition(Document::is_open)?,
            })
        });
        let what = open.and_then(|place| {
            let rows = rows(app, Item::Document(place), false);
            let transcript = &app.conversation.transcript;
            let address = address(transcript, Item::Document(place));
            Some(label(transcript.get(place)?, &address, false, &rows).0)
        });
        let said = match what {
            Some(what) => t!("plain-working-on", seconds = seconds, what = what),
            None => t!("plain-working", seconds = seconds),
        };
        self.write_line(&said);
    }
}

/// The label of a document, and how many of its rows the label stands for.
fn label(document: &Document, address: &str, is_approval: bool, rows: &[StyledLine]) -> (String, usize) {
    let has_heading = spoken::has_heading(&document.kind);
    let heading = has_heading.then(|| spoken::heading(rows)).flatten();
    let label = spoken::label(address, &document.kind, is_approval, heading.as_ref().map(|it| &it.0));
    (label, heading.map_or(0, |it| it.1))
}

/// The rows of an item: as it is folded, or all of them.
pub fn rows(app: &mut App, item: Item, is_whole: bool) -> Vec<StyledLine> {
    app.with_pane(|pane: &mut Pane, context| {
        let context = TranscriptContext {
            has_focus: false,
            review_key: None,
            is_preview: false,
            builds_plans: false,
            ..*context
        };
        let fold = pane.fold_of(item);
        if is_whole {
            pane.set_fold(item, Fold::Full);
        }
        let rows = pane.rows_of(item, &context).to_vec();
        pane.set_fold(item, fold);
        rows
    })
}
