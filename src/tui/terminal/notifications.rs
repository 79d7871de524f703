//! The window's title shows the state; a notification reports its change to a user who looks elsewhere.
//!
//! Notifications are sent only while the terminal has reported that its window has no focus.

use crate::{
    t,
    text::{Sanitized, visible},
};

/// State of the conversation, as the window's title shows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// Nothing is asked of anybody.
    #[default]
    Idle,
    Working,
    /// The user is asked something.
    Asking,
}

/// Way in which the terminal is asked to notify the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// iTerm2's, which many know.
    Osc9,
    /// kitty's.
    Osc99,
    /// rxvt's and VTE's.
    Osc777,
    Bell,
    Off,
}

impl Method {
    /// Reads the setting `ui.notify`. `auto` picks the method that the terminal is known to take, or the bell.
    pub fn of(word: &str, environment: impl Fn(&str) -> Option<String>) -> Self {
        match word {
            "osc9" => return Self::Osc9,
            "osc99" => return Self::Osc99,
            "osc777" => return Self::Osc777,
            "bell" => return Self::Bell,
            "off" => return Self::Off,
            _ => {}
        }
        // What stands between lets no such sequence through by itself, but passes the bell on.
        if environment("TMUX").is_some() || environment("STY").is_some() {
            return Self::Bell;
        }
        let term = environment("TERM").unwrap_or_default();
        let program = environment("TERM_PROGRAM").unwrap_or_default();
        match program.as_str() {
            "iTerm.app" | "WezTerm" | "ghostty" => return Self::Osc9,
            _ => {}
        }
        if term.contains("kitty") || environment("KITTY_WINDOW_ID").is_some() {
            Self::Osc99
        } else if term.starts_with("foot") || term.starts_with("rxvt") || environment("VTE_VERSION").is_some() {
            Self::Osc777
        } else if environment("WT_SESSION").is_some() {
            Self::Osc9
        } else {
            Self::Bell
        }
    }

    fn write(self, text: &Sanitized, out: &mut Vec<u8>) {
        match self {
            Self::Osc9 => out.extend_from_slice(format!("\x1b]9;{text}\x1b\\").as_bytes()),
            Self::Osc99 => out.extend_from_slice(format!("\x1b]99;;{text}\x1b\\").as_bytes()),
            // A semicolon would begin the next part.
            Self::Osc777 => {
                let text = text.replace(';', ",");
                out.extend_from_slice(format!("\x1b]777;notify;sheaf;{text}\x1b\\").as_bytes());
            }
            Self::Bell => out.push(0x07),
            Self::Off => {}
        }
    }
}

/// Writes the window's title and notifications when the state changes.
#[derive(Debug)]
pub struct Notifier {
    way: Method,
    /// `None`: the terminal has not said.
    has_focus: Option<bool>,
    state: Activity,
    /// Title that the window has now; empty before the first one.
    title: Sanitized,
}

impl Notifier {
    /// A notifier that has shown nothing yet. `way`: how it calls for attention outside the window title.
    pub fn new(way: Method) -> Self {
        Self {
            way,
            has_focus: None,
            state: Activity::Idle,
            title: Sanitized::default(),
        }
    }

    /// Notes that the window got the focus or lost it.
    pub fn focus(&mut self, has_focus: bool) {
        self.has_focus = Some(has_focus);
    }

    /// Writes the sequences for what has changed to `out`. `place` is the folder, `about` the conversation's title or what is asked.
    pub fn look(&mut self, state: Activity, place: &str, about: &str, out: &mut Vec<u8>) {
        if self.state == state && !self.title.is_empty() && state != Activity::Idle {
            return;
        }
        let sign = match state {
            Activity::Idle => "sheaf",
            Activity::Working => "◐ sheaf",
            Activity::Asking => "? sheaf",
        };
        let title = visible::title(&format!("{sign} {place} {about}"));
        if title != self.title {
            out.extend_from_slice(format!("\x1b]0;{title}\x07").as_bytes());
            self.title = title;
        }
        let before = std::mem::replace(&mut self.state, state);
        if self.has_focus != Some(false) {
            return;
        }
        let about = if about.is_empty() { place } else { about };
        let text = match (before, state) {
            (Activity::Working, Activity::Idle) => t!("attention-finished", about = about),
            (Activity::Idle | Activity::Working, Activity::Asking) => t!("attention-asks", about = about),
            _ => return,
        };
        self.way.write(&visible::title(&text), out);
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn told(attention: &mut Notifier, state: Activity, about: &str) -> String {
        let mut out = Vec::new();
        attention.look(state, "~/shop", about, &mut out);
        String::from_utf8(out).expect("it is text").replace('\x1b', "^")
    }

    #[test]
    fn only_who_looks_elsewhere_is_told() {
        let mut attention = Notifier::new(Method::Osc9);
        assert_eq!(told(&mut attention, Activity::Idle, ""), "^]0;sheaf ~/shop\x07");
        assert_eq!(told(&mut attention, Activity::Idle, ""), "");
        assert_eq!(
            told(&mut attention, Activity::Working, "codes"),
            "^]0;◐ sheaf ~/shop codes\x07"
        );
        // The terminal never said that nobody looks.
        assert_eq!(
            told(&mut attention, Activity::Idle, "codes"),
            "^]0;sheaf ~/shop codes\x07"
        );
        attention.focus(true);
        assert!(!told(&mut attention, Activity::Working, "codes").contains("]9;"));
        assert!(!told(&mut attention, Activity::Asking, "codes").contains("]9;"));
        attention.focus(false);
        assert_eq!(
            told(&mut attention, Activity::Asking, "codes"),
            "",
            "it has been asking"
        );
        told(&mut attention, Activity::Working, "codes");
        assert_eq!(
            told(&mut attention, Activity::Idle, "codes"),
            "^]0;sheaf ~/shop codes\x07^]9;sheaf finished: codes^\\"
        );
        told(&mut attention, Activity::Working, "codes");
        assert!(told(&mut attention, Activity::Asking, "codes").ends_with("^]9;sheaf has a question: codes^\\"));
    }

    #[test]
    fn no_title_gets_out_of_its_sequence() {
        for way in [Method::Osc9, Method::Osc99, Method::Osc777, Method::Bell] {
            let mut attention = Notifier::new(way);
            attention.focus(false);
            told(&mut attention, Activity::Working, "");
            let said = told(&mut attention, Activity::Idle, "a\x1b]52;c;eA==\x07b\u{9c}\n;c");
            let (title, rest) = said.split_once('\x07').expect("the title ends");
            assert!(title.starts_with("^]0;") && title.matches('^').count() == 1, "{title}");
            assert!(rest.trim_end_matches("^\\").matches('^').count() <= 1, "{rest}");
            assert!(!rest.contains(['\u{9c}', '\n']), "{rest}");
        }
    }

    #[test]
    fn the_way_is_the_terminals() {
        let way = |pairs: &[(&str, &str)], word| {
            let pairs: Vec<_> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            Method::of(word, |name| pairs.iter().find(|it| it.0 == name).map(|it| it.1.clone()))
        };
        assert_eq!(way(&[("TERM", "xterm-kitty")], "auto"), Method::Osc99);
        assert_eq!(way(&[("TERM", "foot")], "auto"), Method::Osc777);
        assert_eq!(
            way(&[("TERM", "xterm-256color"), ("VTE_VERSION", "7000")], "auto"),
            Method::Osc777
        );
        assert_eq!(way(&[("TERM_PROGRAM", "WezTerm")], "auto"), Method::Osc9);
        assert_eq!(way(&[("TERM", "xterm-kitty"), ("TMUX", "x")], "auto"), Method::Bell);
        assert_eq!(way(&[], "auto"), Method::Bell);
        assert_eq!(way(&[("TERM", "foot")], "off"), Method::Off);
        assert_eq!(way(&[], "osc9"), Method::Osc9);
    }
}
