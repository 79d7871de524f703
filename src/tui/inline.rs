//! `--inline`: no alternate screen. What has ended stands in the terminal's own lines, for good, and so do the finished
//! blocks of an answer that is still being written; what is open, the draft and what is around it live in a region at the
//! bottom, and pages that need room borrow the alternate screen. What stands there was broken for the width that the
//! terminal had then: nothing of ours is ever written twice.
//!
//! The region is pinned to the bottom of the terminal, so its first line is known without asking. Above it stands the
//! history; lines between the two are blank and are used first. All of a frame is one write.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{
    app::{App, Focus},
    doc::{MEASURE, Sheet},
    layer::Layer,
    paint::Screen,
    pane::{Item, transcript::Following},
    tty,
};
use crate::{
    protocol::{Document, Kind},
    say,
    text::{NoColours, markdown::Flow},
};

/// Items that are put into the terminal's lines when a long conversation is taken up; those before them are named.
const MOST_AT_ONCE: usize = 400;

/// The least lines of a region: rule, draft, keys, state.
const LEAST: usize = 4;

/// What the state knows of it.
#[derive(Clone, Debug, Default)]
pub struct Inline {
    /// So many items of the pane stand in the terminal's lines.
    pub printed: usize,
    /// The alternate screen is there, for something that needs room.
    pub is_away: bool,
    /// Lines of what is still open, as of the last look.
    pub live: usize,
    /// What is to stand in the terminal's lines besides documents.
    pub aside: String,
    /// How much of the item behind those stands there, too.
    pub flowed: Flowed,
}

/// How much of an open document stands in the terminal's lines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flowed {
    /// `None`: nothing of any.
    item: Option<Item>,
    /// Its rows, for a width.
    rows: usize,
    width: usize,
    /// Bytes of the text that they show.
    bytes: usize,
    /// What they said.
    said: u64,
}

/// Where the region is on the terminal, and what is above it.
pub struct Region {
    /// Lines of the terminal.
    rows: usize,
    columns: u16,
    /// Lines of the region; 0 before it was put anywhere.
    height: usize,
    /// The first line below the history, from 0.
    end: usize,
    /// The terminal has another size since the region was painted, or since a page was.
    is_torn: bool,
    is_page_torn: bool,
    /// The terminal breaks lines anew when it gets narrower, as most do.
    reflows: bool,
}

impl Region {
    pub fn new((columns, rows): (u16, u16)) -> Self {
        Self {
            rows: usize::from(rows.max(1)),
            columns,
            height: 0,
            end: 0,
            is_torn: false,
            is_page_torn: false,
            reflows: std::env::var_os("XTERM_VERSION").is_none(),
        }
    }

    /// The terminal has another size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        (self.is_torn, self.is_page_torn) = (true, true);
        self.columns = columns;
        self.rows = usize::from(rows.max(1));
    }

    /// Makes the terminal ready for the next frame: what has ended goes above the region, which gets the lines that it needs.
    pub fn prepare(&mut self, app: &mut App, screen: &mut Screen, out: &mut Vec<u8>) {
        let wants_room = app.wants_room();
        let is_away = app.inline.as_ref().is_some_and(|it| it.is_away);
        if wants_room {
            if !is_away {
                out.extend_from_slice(b"\x1b[?1049h");
            }
            // What the terminal does to the other screen meanwhile is seen when we are back.
            if std::mem::take(&mut self.is_page_torn) || !is_away {
                screen.place(self.columns, self.rows as u16, 0);
                screen.forget();
            }
            app.size = (self.columns, self.rows as u16);
            app.set_away(true);
            return;
        }
        if is_away {
            out.extend_from_slice(b"\x1b[?1049l");
            app.set_away(false);
            screen.place(self.columns, self.height as u16, self.top());
        }
        app.size = (self.columns, self.rows as u16);
        let text = if app.transcript.exchanges.is_empty() {
            app.inline
                .as_mut()
                .map(|it| std::mem::take(&mut it.aside))
                .unwrap_or_default()
        } else {
            app.ended()
        };
        let height = app.region(self.rows);
        app.size = (self.columns, height as u16);
        if std::mem::take(&mut self.is_torn) {
            self.mend(height, screen, out);
        }
        if self.height == 0 {
            self.begin(height, screen, out);
        }
        if !text.is_empty() {
            self.print(&text, height, screen, out);
        } else if height != self.height {
            self.reshape(height, screen, out);
        } else if is_away {
            clear_from(out, self.top());
        }
    }

    /// Takes the region away: the next thing written stands right below the history.
    pub fn leave(&mut self, app: &mut App, out: &mut Vec<u8>) {
        if app.inline.as_ref().is_some_and(|it| it.is_away) {
            out.extend_from_slice(b"\x1b[?1049l");
            app.set_away(false);
        }
        if self.height > 0 {
            clear_from(out, self.end);
        }
        self.height = 0;
    }

    fn top(&self) -> usize {
        self.rows.saturating_sub(self.height)
    }

    /// Puts the region below wherever the cursor is.
    fn begin(&mut self, height: usize, screen: &mut Screen, out: &mut Vec<u8>) {
        out.push(b'\r');
        out.extend(std::iter::repeat_n(b'\n', height));
        self.height = height;
        self.end = self.top();
        screen.place(self.columns, height as u16, self.top());
        clear_from(out, self.top());
    }

    /// After a resize the terminal may have moved and broken lines; the cursor is still where the caret was in our text.
    fn mend(&mut self, height: usize, screen: &mut Screen, out: &mut Vec<u8>) {
        let above = screen.rows_above_caret(usize::from(self.columns), self.reflows);
        out.push(b'\r');
        if above > 0 {
            out.extend(format!("\x1b[{above}A").into_bytes());
        }
        out.extend_from_slice(b"\x1b[m\x1b[J");
        out.extend(std::iter::repeat_n(b'\n', height.saturating_sub(1)));
        self.height = height;
        self.end = self.top();
        screen.place(self.columns, height as u16, self.top());
    }

    /// Writes lines above the region, which goes up or down with them.
    fn print(&mut self, text: &str, height: usize, screen: &mut Screen, out: &mut Vec<u8>) {
        let from = self.end.min(self.top());
        clear_from(out, from);
        out.extend_from_slice(text.as_bytes());
        let lines = text.matches("\r\n").count();
        self.end = (from + lines).min(self.rows - 1);
        self.scroll_for(height, out);
        self.height = height;
        screen.place(self.columns, height as u16, self.top());
    }

    /// Gives the region more or fewer lines.
    fn reshape(&mut self, height: usize, screen: &mut Screen, out: &mut Vec<u8>) {
        let from = self.top();
        let scrolled = self.scroll_for(height, out);
        let grown = height.saturating_sub(self.height);
        self.height = height;
        if scrolled > 0 && scrolled == grown {
            // All that was shown has moved up with the history: only what is new at the bottom is painted.
            screen.grow(self.columns, height as u16, self.top());
            return;
        }
        clear_from(out, from.saturating_sub(scrolled).min(self.top()));
        screen.place(self.columns, height as u16, self.top());
    }

    /// Scrolls the terminal until so many lines are free below the history; by how many.
    fn scroll_for(&mut self, height: usize, out: &mut Vec<u8>) -> usize {
        let missing = (self.end + height).saturating_sub(self.rows);
        if missing > 0 {
            out.extend(format!("\x1b[m\x1b[{}H", self.rows).into_bytes());
            out.extend(std::iter::repeat_n(b'\n', missing));
            self.end -= missing;
        }
        missing
    }
}

/// Everything from a line on, counted from 0, becomes blank; the cursor stands there.
fn clear_from(out: &mut Vec<u8>, line: usize) {
    out.extend(format!("\x1b[m\x1b[{}H\x1b[J", line + 1).into_bytes());
}

impl App {
    /// The terminal's own lines are shown, whatever was before.
    pub fn come_back(&mut self) {
        self.set_away(false);
    }

    fn set_away(&mut self, is_away: bool) {
        if let Some(inline) = &mut self.inline {
            if inline.is_away != is_away {
                self.images.is_elsewhere();
                self.chrome = None;
            }
            inline.is_away = is_away;
            tty::borrow_all(is_away);
        }
    }

    /// Whether what is shown needs the whole terminal: a page, or the reader who walks through what is printed already.
    fn wants_room(&self) -> bool {
        let Some(inline) = &self.inline else { return false };
        let is_page = self.layers.iter().any(|it| match it {
            Layer::Picker(_) | Layer::Prompt(_) | Layer::Waiting(_) => false,
            Layer::Page(_)
            | Layer::Outline(_)
            | Layer::Review(_)
            | Layer::Rewind(_)
            | Layer::Branches(_)
            | Layer::Inspector(_)
            | Layer::Sessions(_) => true,
        });
        let selected = self.pane.selected.and_then(|it| self.pane.index_of(it));
        let is_reading =
            self.focus == Focus::Transcript && !self.asking.took_focus && selected.is_none_or(|it| it < inline.printed);
        let is_above = self.pane.follow == Following::Here;
        is_page || is_reading || is_above || !self.pane.filter.is_empty() || self.search.is_some()
    }

    /// What has ended since the last time, as lines.
    fn ended(&mut self) -> String {
        let Some(inline) = &mut self.inline else {
            return String::new();
        };
        let mut text = std::mem::take(&mut inline.aside);
        let count = self.pane.items.len();
        let mut from = inline.printed.min(count);
        if count - from > MOST_AT_ONCE {
            from = count - MOST_AT_ONCE;
            text.push_str("  ");
            text.push_str(say!("inline-earlier"));
            text.push_str("\r\n");
        }
        self.lay_out();
        let to = self.settled_to(from);
        if to > from {
            let mut room = usize::MAX;
            for item in self.pane.items.get(from..to).unwrap_or_default().to_vec() {
                self.send_images_of(item, &mut room);
            }
            text.push_str(&self.go_on(from));
            text.push_str(&self.printed(from + 1..to));
        }
        if let Some(inline) = &mut self.inline {
            inline.printed = to;
        }
        text.push_str(&self.flow_out(to));
        text
    }

    /// The first item that does not stand in the terminal's lines.
    pub fn next_to_print(&self) -> Option<Item> {
        let inline = self.inline.as_ref()?;
        self.pane.items.get(inline.printed).copied()
    }

    /// The item at `at` has ended: what of it is not printed yet.
    fn go_on(&mut self, at: usize) -> String {
        let flowed = self.flowed(at);
        if let Some(inline) = &mut self.inline {
            inline.flowed = Flowed::default();
        }
        // Where it ended as something else than it began, all of it stands there again: nothing that counts is missing.
        let rows = flowed.rows;
        let is_same = rows == 0 || flowed.width != self.layout.columns || self.said(at, rows) == flowed.said;
        self.printed_rows(at, if is_same { rows..usize::MAX } else { 0..usize::MAX })
    }

    /// The blocks of the open document at `at` that are finished and not printed yet.
    fn flow_out(&mut self, at: usize) -> String {
        let Some(item) = self.pane.items.get(at).copied() else {
            return String::new();
        };
        let Item::Document(place) = item else {
            return String::new();
        };
        let is_text = |it: &Document| it.is_open() && it.kind == Kind::Text;
        if !self.transcript.get(place).is_some_and(is_text) {
            return String::new();
        }
        let (rows, bytes) = self.with_pane(|pane, context| {
            let count = pane.rows_of(item, context).len();
            let settled = pane.sheet(item).map(Sheet::settled);
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
            width: self.layout.columns,
            bytes,
            said: self.said(at, rows),
        };
        if let Some(inline) = &mut self.inline {
            inline.flowed = flowed;
        }
        text
    }

    /// How much of the item at `at` is printed, in rows as they are broken now.
    fn flowed(&self, at: usize) -> Flowed {
        let Some(inline) = &self.inline else {
            return Flowed::default();
        };
        let mut flowed = inline.flowed;
        let Some(item) = self.pane.items.get(at).copied().filter(|it| flowed.item == Some(*it)) else {
            return Flowed::default();
        };
        if flowed.width != self.layout.columns
            && let Item::Document(place) = item
            && let Some(text) = self.transcript.get(place).map(Document::text)
        {
            let text = text.get(..text.floor_char_boundary(flowed.bytes)).unwrap_or_default();
            let mut rows = Vec::new();
            Flow::new(0).update(text, true, self.layout.content().min(MEASURE), &NoColours, &mut rows);
            flowed.rows = rows.len();
        }
        flowed
    }

    /// What the first rows of an item say.
    fn said(&mut self, at: usize, rows: usize) -> u64 {
        let Some(item) = self.pane.items.get(at).copied() else {
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
        let items: Vec<Item> = self.pane.items.iter().skip(from).copied().collect();
        let transcript = &self.transcript;
        let is_over = |item: &Item| match *item {
            Item::Message(_) | Item::Ending(_) => true,
            Item::Thinking(at, n) => transcript.exchanges.get(at).is_some_and(|it| {
                let response = &it.response;
                let before = response.thinking.get(n).map_or(0, |it| it.before);
                !response.is_running() || response.documents.len() > before || response.thinking.len() > n + 1
            }),
            // A question that waits is answered where it stands, also when its document has ended.
            Item::Document(place) => {
                let is_over = |it: &Document| !it.is_open() && !transcript.is_waiting(place.exchange, it);
                transcript.get(place).is_some_and(is_over)
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
                pane.sheet(**item).is_none_or(|it| !it.is_colouring())
            };
            items.iter().take(over).take_while(is_coloured).count()
        });
        from + coloured
    }

    /// Lines that the region wants on a terminal of so many.
    fn region(&mut self, rows: usize) -> usize {
        let most = rows.saturating_sub(2).max(1);
        let drafted = usize::from(self.composer.field.rows(self.size.0.saturating_sub(4)));
        let drafted = drafted.clamp(1, (rows / 3).max(1));
        let waiting = (self.composer.said.len() + self.composer.queue.len()).min(3);
        let around = LEAST - 1 + drafted + waiting;
        let printed = self.inline.as_ref().map_or(0, |it| it.printed);
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
        let is_asked = self.transcript.waiting().is_some();
        let live = live.min(if is_asked { room } else { room.min(rows * 2 / 3) });
        // One blank line keeps the newest words off the rule.
        let mut above = live + 1;
        let has_popup = !self.layers.is_empty()
            || self.composer.commands.shown().is_some()
            || self
                .composer
                .mention
                .as_ref()
                .is_some_and(super::app::Mention::is_shown);
        if has_popup {
            above = above.max(14);
        }
        if self.transcript.exchanges.is_empty() && !self.problems.is_empty() {
            above = above.max(self.problems.len() * 4 + 3);
        }
        if let Some(inline) = &mut self.inline {
            inline.live = live;
        }
        (above.min(room) + around).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{desk::Desk, layer::Page},
        *,
    };

    #[test]
    fn a_resize_is_made_up_for_once_on_a_page_and_once_below_it() {
        let mut desk = Desk::new(80, 24);
        desk.app.inline = Some(Inline::default());
        let mut screen = Screen::new(80, 24);
        let mut region = Region::new((80, 24));
        let mut prepare = |region: &mut Region, desk: &mut Desk| {
            region.prepare(&mut desk.app, &mut screen, &mut Vec::new());
            (region.is_torn, region.is_page_torn)
        };
        assert_eq!(prepare(&mut region, &mut desk), (false, false));
        // The page opens in the frame that makes up for a resize.
        desk.app.layers.push(Layer::Page(Page::context(&[], None)));
        region.resize(60, 20);
        assert_eq!(
            prepare(&mut region, &mut desk),
            (true, false),
            "the page is painted anew, once"
        );
        region.resize(50, 20);
        assert_eq!(prepare(&mut region, &mut desk), (true, false));
        assert_eq!(prepare(&mut region, &mut desk), (true, false));
        desk.app.layers.clear();
        assert_eq!(
            prepare(&mut region, &mut desk),
            (false, false),
            "and so are the lines below it"
        );
    }
}
