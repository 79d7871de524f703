//! Choice of theme and colour depth, from the settings and the terminal.

use std::path::Path;

use super::{Rgb, colour};
use crate::{
    os::file::{self, Access},
    text::WordList,
};

/// Number of colours that a terminal shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Depth {
    /// No colours: bold, dim, underline and reverse carry the meaning.
    None,
    /// The 16 ANSI colours.
    Sixteen,
    /// The 256 indexed colours.
    Indexed,
    /// 24-bit colours.
    #[default]
    True,
}

/// Environment variables that describe the terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalEnvironment {
    /// True if `NO_COLOR` is set and not empty.
    pub no_colour: bool,
    pub term: String,
    pub colorterm: String,
    pub term_program: String,
    pub colorfgbg: String,
    /// True if a variable is set that only terminals with 24-bit colours set, such as `WT_SESSION` and
    /// `KITTY_WINDOW_ID`.
    pub known: bool,
}

impl TerminalEnvironment {
    /// Reads the variables through `lookup`.
    pub fn of(lookup: impl Fn(&str) -> Option<String>) -> Self {
        let text = |name: &str| lookup(name).unwrap_or_default();
        let known = [
            "WT_SESSION",
            "KITTY_WINDOW_ID",
            "WEZTERM_PANE",
            "GHOSTTY_RESOURCES_DIR",
            "ALACRITTY_WINDOW_ID",
        ];
        Self {
            no_colour: !text("NO_COLOR").is_empty(),
            term: text("TERM"),
            colorterm: text("COLORTERM"),
            term_program: text("TERM_PROGRAM"),
            colorfgbg: text("COLORFGBG"),
            known: known.iter().any(|it| lookup(it).is_some()),
        }
    }

    /// Returns the colour depth to use.
    pub fn depth(&self) -> Depth {
        let term = self.term.as_str();
        // `COLORTERM` comes from the outer terminal: screen passes it on and cannot show those colours.
        let screen = term == "screen" || term.starts_with("screen.") || term.starts_with("screen-");
        let tmux = self.term_program == "tmux";
        let full = ["truecolor", "24bit"].contains(&self.colorterm.as_str());
        let program = WordList("iTerm.app WezTerm ghostty vscode Hyper mintty rio WarpTerminal");
        let kind = WordList("xterm-kitty xterm-ghostty alacritty wezterm foot contour rio iterm2 konsole");
        let has_full_colour = full
            || term.ends_with("-direct")
            || term.ends_with("-truecolor")
            || kind.iter().any(|it| term.starts_with(it))
            || program.contains(&self.term_program)
            || self.known && !screen && !term.starts_with("tmux");
        if self.no_colour || term == "dumb" {
            Depth::None
        } else if ["linux", "vt220", "ansi", "cons25"].contains(&term) {
            Depth::Sixteen
        } else if has_full_colour && (!screen || tmux) {
            Depth::True
        } else if term.contains("256color") || screen || tmux || term.starts_with("tmux") {
            Depth::Indexed
        } else {
            Depth::Sixteen
        }
    }

    /// Returns true if `COLORFGBG` (`15;0`, `0;default;15`) names a dark background; `None` if it names none.
    pub fn is_dark(&self) -> Option<bool> {
        let background = self.colorfgbg.rsplit(';').next()?.trim();
        match background.parse::<u8>().ok()? {
            // White and the bright colours except grey are light, as in Vim.
            7 | 9..=15 => Some(false),
            0..=6 | 8 => Some(true),
            index => colour::of_index(index).map(Rgb::is_dark),
        }
    }
}

/// Known background colours, best source first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownBackground {
    /// Answer of this terminal to a query.
    pub reported: Option<Rgb>,
    /// Answer of a terminal in an earlier run ([`recall`]).
    pub remembered: Option<Rgb>,
}

/// Returns the name of the theme to use for the setting `theme`. `auto` depends on the background and is dark if
/// unknown.
pub fn choose<'a>(setting: &'a str, seen: KnownBackground, surroundings: &TerminalEnvironment) -> &'a str {
    if setting != "auto" {
        return setting;
    }
    let dark = seen
        .reported
        .map(Rgb::is_dark)
        .or_else(|| surroundings.is_dark())
        .or_else(|| seen.remembered.map(Rgb::is_dark))
        .unwrap_or(true);
    if dark { "sheaf-dark" } else { "sheaf-light" }
}

/// File in the state folder.
const MEMORY: &str = "background";

/// Reads the background that a terminal reported in an earlier run, from the state folder.
pub fn recall(state: &Path) -> Option<Rgb> {
    // We write about a dozen bytes; a longer file is not ours.
    let bytes = file::read(&state.join(MEMORY), 64).ok()?;
    Rgb::parse(std::str::from_utf8(&bytes).ok()?)
}

/// Stores the reported background in the state folder, for the first frame of the next run.
pub fn remember(state: &Path, background: Rgb) -> Result<(), file::Error> {
    file::private_folder(state)?;
    file::write(
        &state.join(MEMORY),
        format!("#{background}\n").as_bytes(),
        Access::Private,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(words: &str) -> TerminalEnvironment {
        let pairs: Vec<(&str, &str)> = words.split_whitespace().filter_map(|it| it.split_once('=')).collect();
        TerminalEnvironment::of(|name| pairs.iter().find(|it| it.0 == name).map(|it| it.1.to_owned()))
    }

    #[test]
    fn the_environment_says_how_many_colours_there_are() {
        for (words, expected) in [
            ("TERM=xterm-256color COLORTERM=truecolor", Depth::True),
            ("TERM=xterm-256color COLORTERM=24bit", Depth::True),
            ("TERM=xterm-256color COLORTERM=yes", Depth::Indexed),
            ("TERM=xterm-256color", Depth::Indexed),
            ("TERM=xterm-kitty", Depth::True),
            ("TERM=xterm-direct", Depth::True),
            ("TERM=xterm-256color TERM_PROGRAM=iTerm.app", Depth::True),
            ("TERM=xterm-256color TERM_PROGRAM=Apple_Terminal", Depth::Indexed),
            ("TERM=xterm-256color WT_SESSION=1", Depth::True),
            ("TERM=tmux-256color TERM_PROGRAM=tmux COLORTERM=truecolor", Depth::True),
            (
                "TERM=screen-256color TERM_PROGRAM=tmux COLORTERM=truecolor",
                Depth::True,
            ),
            ("TERM=tmux-256color TERM_PROGRAM=tmux KITTY_WINDOW_ID=1", Depth::Indexed),
            ("TERM=screen-256color COLORTERM=truecolor", Depth::Indexed),
            ("TERM=screen.xterm-256color KITTY_WINDOW_ID=1", Depth::Indexed),
            ("TERM=xterm", Depth::Sixteen),
            ("TERM=linux", Depth::Sixteen),
            ("TERM=linux COLORTERM=truecolor", Depth::Sixteen),
            ("TERM=dumb", Depth::None),
            ("", Depth::Sixteen),
            ("TERM=xterm-kitty NO_COLOR=1", Depth::None),
            ("TERM=xterm-kitty NO_COLOR=", Depth::True),
        ] {
            assert_eq!(surroundings(words).depth(), expected, "{words}");
        }
    }

    #[test]
    fn colorfgbg_is_read_in_all_its_forms() {
        for (words, expected) in [
            ("COLORFGBG=15;0", Some(true)),
            ("COLORFGBG=0;15", Some(false)),
            ("COLORFGBG=0;default;15", Some(false)),
            ("COLORFGBG=12;8", Some(true)),
            ("COLORFGBG=0;7", Some(false)),
            ("COLORFGBG=0;231", Some(false)),
            ("COLORFGBG=7;234", Some(true)),
            ("COLORFGBG=default;default", None),
            ("COLORFGBG=", None),
            ("", None),
        ] {
            assert_eq!(surroundings(words).is_dark(), expected, "{words}");
        }
    }

    #[test]
    fn the_theme_goes_by_the_best_that_is_known_of_the_background() {
        let (white, black) = (Some(Rgb::WHITE), Some(Rgb::BLACK));
        for (sentence, setting, reported, words, remembered, expected) in [
            ("a named theme is kept", "owl", white, "COLORFGBG=0;15", white, "owl"),
            (
                "the answer comes first",
                "auto",
                white,
                "COLORFGBG=15;0",
                black,
                "sheaf-light",
            ),
            ("then the variable", "auto", None, "COLORFGBG=15;0", white, "sheaf-dark"),
            (
                "then the memory",
                "auto",
                None,
                "COLORFGBG=default",
                white,
                "sheaf-light",
            ),
            ("else it is dark", "auto", None, "", None, "sheaf-dark"),
        ] {
            let seen = KnownBackground { reported, remembered };
            assert_eq!(choose(setting, seen, &surroundings(words)), expected, "{sentence}");
        }
    }

    #[test]
    fn a_background_is_remembered_until_the_next_start() {
        let folder = tempfile::tempdir().expect("a folder");
        let state = folder.path().join("state");
        assert_eq!(recall(&state), None);
        remember(&state, Rgb(1, 2, 254)).expect("written");
        assert_eq!(recall(&state), Some(Rgb(1, 2, 254)));
        std::fs::write(state.join(MEMORY), "nonsense").expect("written");
        assert_eq!(recall(&state), None);
        std::fs::write(state.join(MEMORY), "#000000\n".repeat(100)).expect("written");
        assert_eq!(recall(&state), None);
    }
}
