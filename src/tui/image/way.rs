//! How a terminal draws pictures, by what it says of itself.

/// How pictures get to the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// kitty's protocol, with cells that stand for a picture.
    Kitty,
    Iterm2,
    /// iTerm2's protocol, and pictures that do not go away when they are written over.
    Konsole,
    Sixel,
}

/// What the user wants of pictures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wish {
    #[default]
    Off,
    /// As the terminal can.
    Auto,
    /// In this way, whatever the terminal says.
    Only(Way),
}

impl Wish {
    /// The setting `ui.images`.
    pub fn of(setting: &str) -> Self {
        match setting {
            "auto" => Self::Auto,
            "kitty" => Self::Only(Way::Kitty),
            "iterm2" => Self::Only(Way::Iterm2),
            "sixel" => Self::Only(Way::Sixel),
            _ => Self::Off,
        }
    }
}

impl Way {
    /// By the names of the environment; `None` inside of tmux and screen, which stand between the terminal and us.
    pub fn of_environment(variable: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        let is = |name: &str, value: &str| variable(name).is_some_and(|it| it == value);
        let is_inside = variable("TMUX").is_some()
            || variable("STY").is_some()
            || variable("TERM").is_some_and(|it| it.starts_with("tmux") || it.starts_with("screen"));
        if is_inside {
            return None;
        }
        // Older versions of kitty would show the cells as they are: which one it is it says when it is asked.
        let is_kitty = is("TERM", "xterm-ghostty") || is("TERM_PROGRAM", "ghostty");
        let is_iterm2 = is("LC_TERMINAL", "iTerm2")
            || ["iTerm.app", "WezTerm", "mintty"]
                .iter()
                .any(|it| is("TERM_PROGRAM", it));
        if is_kitty {
            Some(Self::Kitty)
        } else if is_iterm2 {
            Some(Self::Iterm2)
        } else {
            variable("KONSOLE_VERSION").map(|_| Self::Konsole)
        }
    }

    /// By the name and version that a terminal answers with.
    pub fn of_name(name: &str) -> Option<Self> {
        let (first, version) = name.split_once([' ', '(']).unwrap_or((name, ""));
        let numbers: Vec<u32> = version
            .split(|it: char| !it.is_ascii_digit())
            .map_while(|it| it.parse().ok())
            .collect();
        match first {
            // Cells that stand for pictures came with 0.28.
            "kitty" if numbers < vec![0, 28] => None,
            "kitty" | "ghostty" => Some(Self::Kitty),
            "iTerm2" | "WezTerm" | "mintty" => Some(Self::Iterm2),
            "Konsole" => Some(Self::Konsole),
            _ => None,
        }
    }
}
