//! The image protocol of a terminal, by its own replies.
//!
//! Environment variables are less reliable: they are inherited by everything that is started from a terminal, and lost on
//! the way to another machine.

/// The protocol by which images get to the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageProtocol {
    /// kitty's protocol, with cells that stand for a picture.
    Kitty,
    Iterm2,
    /// iTerm2's protocol, and pictures that do not go away when they are written over.
    Konsole,
    Sixel,
}

/// The user's setting for images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageSetting {
    #[default]
    Off,
    /// As the terminal can.
    Auto,
    /// In this way, whatever the terminal says.
    Only(ImageProtocol),
}

/// The terminal, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TerminalName {
    Draws(ImageProtocol),
    /// It stands between the terminal and us: it answers for itself, and pictures do not come through.
    Between,
    /// Nothing.
    Other,
}

impl ImageSetting {
    /// The setting `ui.images`.
    pub fn of(setting: &str) -> Self {
        match setting {
            "auto" => Self::Auto,
            "kitty" => Self::Only(ImageProtocol::Kitty),
            "iterm2" => Self::Only(ImageProtocol::Iterm2),
            "sixel" => Self::Only(ImageProtocol::Sixel),
            _ => Self::Off,
        }
    }

    /// With what is known before the terminal answers: inside of tmux and screen, nothing is drawn unless it is said how.
    pub fn here(self, variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let is_between = variable("TMUX").is_some()
            || variable("STY").is_some()
            || variable("TERM").is_some_and(|it| it.starts_with("tmux") || it.starts_with("screen"));
        match self {
            Self::Auto if is_between => Self::Off,
            other => other,
        }
    }
}

impl TerminalName {
    /// By the name and version that a terminal answers with.
    pub fn of(name: &str) -> Self {
        let (first, version) = name.split_once([' ', '(']).unwrap_or((name, ""));
        let numbers: Vec<u32> = version
            .split(|it: char| !it.is_ascii_digit())
            .map_while(|it| it.parse().ok())
            .collect();
        match first {
            // Cells that stand for pictures came with 0.28.
            "kitty" if numbers < vec![0, 28] => Self::Other,
            "kitty" | "ghostty" => Self::Draws(ImageProtocol::Kitty),
            "iTerm2" | "WezTerm" | "mintty" => Self::Draws(ImageProtocol::Iterm2),
            "Konsole" => Self::Draws(ImageProtocol::Konsole),
            "tmux" | "screen" => Self::Between,
            _ => Self::Other,
        }
    }
}
