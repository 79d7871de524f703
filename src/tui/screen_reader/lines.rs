//! The lines of standard input, and which of them came at once: that is a paste, and one message.
//!
//! Nothing is asked of the terminal for it, so that nothing is written to it either. What is pasted may end within a line,
//! which comes only when Enter is pressed: so a paste waits for one more line, an empty one if there is nothing to add.

use std::{
    io::{self, BufRead},
    time::Duration,
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc;

/// Nobody writes two lines within this; what is pasted comes faster.
const AT_ONCE: Duration = Duration::from_millis(15);

/// A line, and whether the next one was there with it.
pub struct InputLine {
    pub text: String,
    pub goes_on: bool,
}

/// The lines of standard input, read by a thread that may wait for them for ever. Only lines that are typed can be pasted.
pub fn read(is_typed: bool) -> mpsc::Receiver<InputLine> {
    let (send, lines) = mpsc::channel(1);
    std::thread::spawn(move || {
        let mut input = io::stdin().lock();
        let mut bytes = Vec::new();
        while input.read_until(b'\n', &mut bytes).is_ok_and(|it| it > 0) {
            let text = String::from_utf8_lossy(&bytes)
                .trim_end_matches(['\n', '\r'])
                .to_owned();
            bytes.clear();
            let goes_on = is_typed && is_there(AT_ONCE);
            if send.blocking_send(InputLine { text, goes_on }).is_err() {
                break;
            }
        }
    });
    lines
}

/// Returns true if more can be read within a while; at once if it is there.
fn is_there(within: Duration) -> bool {
    let input = io::stdin();
    let mut fds = [PollFd::new(&input, PollFlags::IN)];
    let within = Timespec::try_from(within).ok();
    poll(&mut fds, within.as_ref()).is_ok_and(|it| it > 0)
        && rustix::io::ioctl_fionread(io::stdin()).is_ok_and(|it| it > 0)
}

/// Lines that were pasted and wait for one that is not.
#[derive(Debug, Default)]
pub struct Paste {
    lines: Vec<String>,
    /// More of it is on its way.
    goes_on: bool,
}

/// The meaning of a line.
#[derive(Debug, PartialEq, Eq)]
pub enum LineMeaning {
    /// A message of one line or several.
    Whole(String),
    /// A line of a paste that goes on.
    Part,
    /// The number of lines that were pasted; no more come by themselves.
    Pasted(usize),
}

impl Paste {
    /// Takes the lines that still wait when the input has ended.
    pub fn rest(&mut self) -> Option<String> {
        let lines = std::mem::take(&mut self.lines);
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    pub fn take(&mut self, line: InputLine) -> LineMeaning {
        let is_pasted = self.goes_on || line.goes_on;
        self.goes_on = line.goes_on;
        if !is_pasted && self.lines.is_empty() {
            return LineMeaning::Whole(line.text);
        }
        // A line alone ends it; what was pasted may have an empty one at its end.
        if is_pasted || !line.text.is_empty() {
            self.lines.push(line.text);
        }
        match (is_pasted, self.goes_on) {
            (true, true) => LineMeaning::Part,
            (true, false) => LineMeaning::Pasted(self.lines.len()),
            (false, _) => LineMeaning::Whole(std::mem::take(&mut self.lines).join("\n")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_at_once_is_one_message() {
        let whole = |text: &str| LineMeaning::Whole(text.to_owned());
        let mut paste = Paste::default();
        let mut take = |text: &str, goes_on: bool| {
            paste.take(InputLine {
                text: text.to_owned(),
                goes_on,
            })
        };
        assert_eq!(take("one", false), whole("one"));
        assert_eq!(take("", false), whole(""));
        // It ended within a line: that comes with Enter.
        assert_eq!(take("a", true), LineMeaning::Part);
        assert_eq!(take("b", false), LineMeaning::Pasted(2));
        assert_eq!(take("c", false), whole("a\nb\nc"));
        // It ended with a line; an empty one sends it.
        assert_eq!(take("a", true), LineMeaning::Part);
        assert_eq!(take("", true), LineMeaning::Part);
        assert_eq!(take("b", false), LineMeaning::Pasted(3));
        // And one more paste belongs to it.
        assert_eq!(take("c", true), LineMeaning::Part);
        assert_eq!(take("d", false), LineMeaning::Pasted(5));
        assert_eq!(take("", false), whole("a\n\nb\nc\nd"));
        assert_eq!(take("two", false), whole("two"));
        assert_eq!(take("x", true), LineMeaning::Part);
        assert_eq!(take("y", false), LineMeaning::Pasted(2));
        assert_eq!(paste.rest().as_deref(), Some("x\ny"), "the input has ended");
        assert_eq!(paste.rest(), None);
    }
}
