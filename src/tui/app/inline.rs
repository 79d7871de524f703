//! `--inline`: no alternate screen. Ended documents, and finished blocks of an answer that is being written, are printed
//! into the terminal's own lines. Open documents and the draft are in a region at the bottom; pages borrow the alternate
//! screen. Printed lines are wrapped for the width at that time and never printed again.
//!
//! The region is pinned to the bottom of the terminal, so its first line is known without asking. Blank lines between the
//! history and the region are used first. A frame is one write.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::tui::{
    app::{App, Focus},
    terminal::{Surface, inline_region::Region, tty},
    widgets::transcript::{Following, Item},
    widgets::{DocumentState, MEASURE},
};
use crate::{
    protocol::{Document, Kind},
    t,
    text::{NoColours, markdown::Flow},
    transcript::approved,
};

/// Items that are put into the terminal's lines when a long conversation is taken up; those before them are named.
const MOST_AT_ONCE: usize = 400;

/// The least lines of a region: rule, draft, keys, state.
const LEAST: usize = 4;

/// The part of the conversation that is in the terminal's own lines.
#[derive(Clone, Debug, Default)]
pub struct Inline {
    /// Items of the pane that are in the terminal's lines.
    pub printed: usize,
    /// The alternate screen is there, for something that needs room.
    pub is_away: bool,
    /// Lines of what is still open, as of the last look.
    pub live: usize,
    /// Text for the terminal's lines besides documents.
    pub aside: String,
    /// The part of the next item that is there, too.
    pub flowed: Flowed,
}

/// The part of an open document that is in the terminal's lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flowed {
    /// `None`: nothing of any.
    item: Option<Item>,
    /// Its rows, for a width.
    rows: usize,
    width: usize,
    /// Bytes of the text that they show.
    bytes: usize,
    /// A hash of their texts.
    said: u64,
}

impl App {
    /// Makes the terminal ready for the next frame: what has ended goes above the region, which gets the lines that it
    /// needs.
    pub fn prepare_inline(&mut self, region: &mut Region, surface: &mut Surface, out: &mut Vec<u8>) {
        let is_away = self.terminal.inline.as_ref().is_some_and(|it| it.is_away);
        let size @ (columns, rows) = region.size();
        self.terminal.size = size;
        if self.wants_room() {
            region.show_page(is_away, surface, out);
            self.set_away(true);
            return;
        }
        if is_away {
            region.leave_page(surface, out);
            self.set_away(false);
        }
        let text = match &mut self.terminal.inline {
            Some(inline) if self.conversation.transcript.exchanges.is_empty() => std::mem::take(&mut inline.aside),
            Some(_) | None => self.ended(),
        };
        let height = self.region(usize::from(rows));
        self.terminal.size = (columns, height as u16);
        region.show(&text, height, is_away, surface, out);
    }

    /// Takes the region away: the next thing written stands right below the history.
    pub fn leave_inline(&mut self, region: &mut Region, out: &mut Vec<u8>) {
        let is_away = self.terminal.inline.as_ref().is_some_and(|it| it.is_away);
        region.leave(is_away, out);
        self.set_away(false);
    }

    /// The terminal's own lines are shown, whatever was before.
    pub fn come_back(&mut self) {
        self.set_away(false);
    }

    fn set_away(&mut self, is_away: bool) {
        if let Some(inline) = &mut self.terminal.inline {
            if inline.is_away != is_away {
                self.terminal.images.is_elsewhere();
                self.viewport.bars = None;
            }
            inline.is_away = is_away;
            tty::borrow_all(is_away);
        }
    }

    /// Returns true if the whole terminal is needed: for a page, or a reader in items that are printed already.
    fn wants_room(&self) -> bool {
        let Some(inline) = &self.terminal.inline else {
            return false;
        };
        let is_page = self.overlays.has_page();
        let selected = self
            .viewport
            .pane
            .selected
            .and_then(|it| self.viewport.pane.index_of(it));
        let is_reading = self.viewport.focus == Focus::Transcript
            && !self.questions.took_focus
            && selected.is_none_or(|it| it < inline.printed);
        let is_above = self.viewport.pane.follow == Following::Here;
        is_page || is_reading || is_above || !self.viewport.pane.filter.is_empty() || self.viewport.search.is_some()
    }

    /// Prints the items that ended since the last time; returns their lines.
    fn ended(&mut self) -> String {
        let Some(inline) = &mut self.terminal.inline else {
            return String::new();
        };
        let mut text = std::mem::take(&mut inline.aside);
        let count = self.viewport.pane.items.len();
        let mut from = inline.printed.min(count);
        if count - from > MOST_AT_ONCE {
            from = count - MOST_AT_ONCE;
            text.push_str("  ");
            text.push_str(t!("inline-earlier"));
            text.push_str("\r\n");
        }
        self.lay_out();
        let to = self.settled_to(from);
        if to > from {
            let mut room = usize::MAX;
            for item in self.viewport.pane.items.get(from..to).unwrap_or_default().to_vec() {
                self.send_images_of(item, &mut room);
            }
            text.push_str(&self.go_on(from));
            text.push_str(&self.printed(from + 1..to));
        }
        if let Some(inline) = &mut self.terminal.inline {
            inline.printed = to;
        }
        text.push_str(&self.flow_out(to));
        text
    }

    /// The first item that does not stand in the terminal's lines.
    pub fn next_to_print(&self) -> Option<Item> {
        let inline = self.terminal.inline.as_ref()?;
        self.viewport.pane.items.get(inline.printed).copied()
    }

    /// The item at `at` has ended: what of it is not printed yet.
    fn go_on(&mut self, at: usize) -> String {
        let flowed = self.flowed(at);
        if let Some(inline) = &mut self.terminal.inline {
            inline.flowed = Flowed::default();
        }
        // Where it ended as something else than it began, all of it stands there again: nothing that counts is missing.
        let rows = flowed.rows;
        let is_same = rows == 0 || flowed.width != self.viewport.areas.columns || self.said(at, rows) == flowed.said;
        self.printed_rows(at, if is_same { rows..usize::MAX } else { 0..usize::MAX })
    }

    /// The blocks of the open document at `at` that are finished and not printed yet.
    fn flow_out(&mut self, at: usize) -> String {
        let Some(item) = self.viewport.pane.items.get(at).copied() else {
            return String::new();
        };
        let Item::Document(place) = item else {
            return String::new();
        };
        let is_text = |it: &Document| it.is_open() && it.kind == Kind::Text;
        if !self.conversation.transcript.get(place).is_some_and(is_text) {
            return String::new();
        }
        let (rows, bytes) = self.with_pane(|pane, context| {
            let count = pane.rows_of(item, context).len();
            let settled = pane.state(item).map(DocumentState::settled);
            // What is folded is not written as it stands there.
            settled.filter(|it| it.0 <= count).unwrap_or_default()
        });
        let before = self.flowed(at).rows;
        if rows <= before {
            return String::new();
        }
        let text = self.printed_rows(at, before..rows);
        let flowed = Flowed {
            item: Some(item),
            rows,
            width: self.viewport.areas.columns,
            bytes,
            said: self.said(at, rows),
        };
        if let Some(inline) = &mut self.terminal.inline {
            inline.flowed = flowed;
        }
        text
    }

    /// The printed part of the item at `at`, in rows of the current width.
    fn flowed(&self, at: usize) -> Flowed {
        let Some(inline) = &self.terminal.inline else {
            return Flowed::default();
        };
        let mut flowed = inline.flowed;
        let Some(item) = self
            .viewport
            .pane
            .items
            .get(at)
            .copied()
            .filter(|it| flowed.item == Some(*it))
        else {
            return Flowed::default();
        };
        if flowed.width != self.viewport.areas.columns
            && let Item::Document(place) = item
            && let Some(text) = self.conversation.transcript.get(place).map(Document::text)
        {
            let text = text.get(..text.floor_char_boundary(flowed.bytes)).unwrap_or_default();
            let mut rows = Vec::new();
            Flow::new(0).update(
                text,
                true,
                self.viewport.areas.content().min(MEASURE),
                &NoColours,
                &mut rows,
            );
            flowed.rows = rows.len();
        }
        flowed
    }

    /// A hash of the texts of an item's first rows.
    fn said(&mut self, at: usize, rows: usize) -> u64 {
        let Some(item) = self.viewport.pane.items.get(at).copied() else {
            return 0;
        };
        self.with_pane(|pane, context| {
            let mut hasher = DefaultHasher::new();
            for row in pane.rows_of(item, context).iter().take(rows) {
                row.plain().hash(&mut hasher);
            }
            hasher.finish()
        })
    }

    /// The first item from `from` on that may still change.
    fn settled_to(&mut self, from: usize) -> usize {
        let items: Vec<Item> = self.viewport.pane.items.iter().skip(from).copied().collect();
        let transcript = &self.conversation.transcript;
        let is_over = |item: &Item| match *item {
            Item::Message(_) | Item::Ending(_) | Item::Action(..) => true,
            Item::Thinking(at, n) => transcript.exchanges.get(at).is_some_and(|it| {
                let response = &it.response;
                let before = response.thinking.get(n).map_or(0, |it| it.before);
                !response.is_running() || response.documents.len() > before || response.thinking.len() > n + 1
            }),
            // A question that waits is answered where it stands, also when its document has ended.
            Item::Document(place) => {
                let response = transcript.exchanges.get(place.exchange).map(|it| &it.response);
                let is_running = response.is_some_and(crate::protocol::Response::is_running);
                // The action that was decided on is about to take the place of its approval.
                let is_open = |it: &Document| {
                    let is_replaced = is_running && approved::is_decided(it);
                    it.is_open() || it.is_checking() || transcript.is_open_question(place.exchange, it) || is_replaced
                };
                transcript.get(place).is_some_and(|it| !is_open(it))
            }
        };
        let over = items
            .iter()
            .take_while(|it| is_over(it) && self.has_pictures(**it))
            .count();
        // Code waits for its colours: what is printed stays as it is.
        let coloured = self.with_pane(|pane, context| {
            let is_coloured = |item: &&Item| {
                pane.rows_of(**item, context);
                pane.state(**item).is_none_or(|it| !it.is_colouring())
            };
            items.iter().take(over).take_while(is_coloured).count()
        });
        from + coloured
    }

    /// Lines that the region wants on a terminal of so many.
    fn region(&mut self, rows: usize) -> usize {
        let most = rows.saturating_sub(2).max(1);
        let drafted = usize::from(self.composer.field.rows(self.terminal.size.0.saturating_sub(4)));
        let drafted = drafted.clamp(1, (rows / 3).max(1));
        let waiting = (self.composer.said.len() + self.composer.queue.len()).min(3);
        let asked = usize::from(self.conversation.transcript.trust.is_some());
        let around = LEAST - 1 + drafted + waiting + asked;
        let printed = self.terminal.inline.as_ref().map_or(0, |it| it.printed);
        let room = most.saturating_sub(around);
        let flowed = self.flowed(printed).rows;
        let live = self.with_pane(|pane, context| {
            let mut lines = 0;
            for at in (printed.min(pane.items.len())..pane.items.len()).rev() {
                let Some(item) = pane.items.get(at).copied() else { break };
                let count = pane.rows_of(item, context).len();
                if at == printed && flowed > 0 {
                    lines += count.saturating_sub(flowed);
                } else if count > 0 {
                    lines += count + pane.gap(at, context);
                }
                if lines > room {
                    break;
                }
            }
            lines
        });
        // A question is read whole; what only grows leaves the history in view.
        let is_asked = self.conversation.transcript.open_question().is_some();
        let live = live.min(if is_asked { room } else { room.min(rows * 2 / 3) });
        // One blank line keeps the newest words off the rule.
        let mut above = live + 1;
        let has_popup = !self.overlays.is_empty()
            || self.composer.commands.shown().is_some()
            || self.composer.mention.as_ref().is_some_and(super::Mention::is_shown);
        if has_popup {
            above = above.max(14);
        }
        if self.conversation.transcript.exchanges.is_empty() && !self.preferences.problems.is_empty() {
            above = above.max(self.preferences.problems.len() * 4 + 3);
        }
        if let Some(inline) = &mut self.terminal.inline {
            inline.live = live;
        }
        (above.min(room) + around).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::{overlays::Page, test_app::TestApp};

    #[test]
    fn a_resize_is_made_up_for_once_on_a_page_and_once_below_it() {
        let mut desk = TestApp::new(80, 24);
        desk.app.terminal.inline = Some(Inline::default());
        let mut screen = Surface::new(80, 24);
        let mut region = Region::new((80, 24));
        let mut prepare = |region: &mut Region, desk: &mut TestApp| {
            desk.app.prepare_inline(region, &mut screen, &mut Vec::new());
            region.torn()
        };
        assert_eq!(prepare(&mut region, &mut desk), (false, false));
        // The page opens in the frame that makes up for a resize.
        desk.app.overlays.push(Page::context(&[], None));
        region.resize(60, 20);
        assert_eq!(
            prepare(&mut region, &mut desk),
            (true, false),
            "the page is painted anew, once"
        );
        region.resize(50, 20);
        assert_eq!(prepare(&mut region, &mut desk), (true, false));
        assert_eq!(prepare(&mut region, &mut desk), (true, false));
        desk.app.overlays.clear();
        assert_eq!(
            prepare(&mut region, &mut desk),
            (false, false),
            "and so are the lines below it"
        );
    }
}
