//! The region of an inline program: the last lines of the terminal, below the history.
//!
//! It is pinned to the bottom, so its first line is known without asking. Lines between history and region are blank and
//! are used first. Pages that need room borrow the alternate screen.

use super::Surface;

/// Borrows the alternate screen.
const ENTER_PAGE: &[u8] = b"\x1b[?1049h";

/// Gives the alternate screen back.
const LEAVE_PAGE: &[u8] = b"\x1b[?1049l";

/// Place of the region on the terminal, and of the history above it.
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

    /// Takes another size of the terminal.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        (self.is_torn, self.is_page_torn) = (true, true);
        self.columns = columns;
        self.rows = usize::from(rows.max(1));
    }

    /// Columns and lines of the terminal.
    pub fn size(&self) -> (u16, u16) {
        (self.columns, self.rows as u16)
    }

    /// Gives the whole terminal to a page; `is_away`: a page has it already.
    pub fn show_page(&mut self, is_away: bool, surface: &mut Surface, out: &mut Vec<u8>) {
        if !is_away {
            out.extend_from_slice(ENTER_PAGE);
        }
        // What the terminal does to the other screen meanwhile is seen when we are back.
        if std::mem::take(&mut self.is_page_torn) || !is_away {
            surface.place(self.columns, self.rows as u16, 0);
            surface.forget();
        }
    }

    /// Goes back from a page to the region.
    pub fn leave_page(&mut self, surface: &mut Surface, out: &mut Vec<u8>) {
        out.extend_from_slice(LEAVE_PAGE);
        surface.place(self.columns, self.height as u16, self.top() as u16);
    }

    /// Gives the region `height` lines, and puts `text` above it. `was_away`: the terminal shows it again after a page.
    pub fn show(&mut self, text: &str, height: usize, was_away: bool, surface: &mut Surface, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_torn) {
            self.mend(height, surface, out);
        }
        if self.height == 0 {
            self.begin(height, surface, out);
        }
        if !text.is_empty() {
            self.print(text, height, surface, out);
        } else if height != self.height {
            self.reshape(height, surface, out);
        } else if was_away {
            clear_from(out, self.top());
        }
    }

    /// Takes the region away: the next thing written stands right below the history. `is_away`: a page is shown.
    pub fn leave(&mut self, is_away: bool, out: &mut Vec<u8>) {
        if is_away {
            out.extend_from_slice(LEAVE_PAGE);
        }
        if self.height > 0 {
            clear_from(out, self.end);
        }
        self.height = 0;
    }

    /// Returns true, each, if the region and a page have to make up for another size of the terminal.
    #[cfg(test)]
    pub fn torn(&self) -> (bool, bool) {
        (self.is_torn, self.is_page_torn)
    }

    fn top(&self) -> usize {
        self.rows.saturating_sub(self.height)
    }

    /// Puts the region below wherever the cursor is.
    fn begin(&mut self, height: usize, surface: &mut Surface, out: &mut Vec<u8>) {
        out.push(b'\r');
        out.extend(std::iter::repeat_n(b'\n', height));
        self.height = height;
        self.end = self.top();
        surface.place(self.columns, height as u16, self.top() as u16);
        clear_from(out, self.top());
    }

    /// After a resize the terminal may have moved and broken lines; the cursor is still where the caret was in our text.
    fn mend(&mut self, height: usize, surface: &mut Surface, out: &mut Vec<u8>) {
        let above = surface.rows_above_caret(usize::from(self.columns), self.reflows);
        out.push(b'\r');
        if above > 0 {
            out.extend(format!("\x1b[{above}A").into_bytes());
        }
        out.extend_from_slice(b"\x1b[m\x1b[J");
        out.extend(std::iter::repeat_n(b'\n', height.saturating_sub(1)));
        self.height = height;
        self.end = self.top();
        surface.place(self.columns, height as u16, self.top() as u16);
    }

    /// Writes lines above the region, which goes up or down with them.
    fn print(&mut self, text: &str, height: usize, surface: &mut Surface, out: &mut Vec<u8>) {
        let from = self.end.min(self.top());
        clear_from(out, from);
        out.extend_from_slice(text.as_bytes());
        let lines = text.matches("\r\n").count();
        self.end = (from + lines).min(self.rows - 1);
        self.scroll_for(height, out);
        self.height = height;
        surface.place(self.columns, height as u16, self.top() as u16);
    }

    /// Gives the region more or fewer lines.
    fn reshape(&mut self, height: usize, surface: &mut Surface, out: &mut Vec<u8>) {
        let from = self.top();
        let scrolled = self.scroll_for(height, out);
        let grown = height.saturating_sub(self.height);
        self.height = height;
        if scrolled > 0 && scrolled == grown {
            // All that was shown has moved up with the history: only what is new at the bottom is painted.
            surface.grow(self.columns, height as u16, self.top() as u16);
            return;
        }
        clear_from(out, from.saturating_sub(scrolled).min(self.top()));
        surface.place(self.columns, height as u16, self.top() as u16);
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
