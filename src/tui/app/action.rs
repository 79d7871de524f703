//! An action: something that a key, a slash command or the palette does.

use super::{App, Effect};
use crate::{
    locale,
    protocol::Mode,
    t,
    tui::{terminal::Mouse, widgets::filter::FACETS},
};

/// An action of the user's. Its texts are in the locale files, under `hint-` and `about-` followed by its name.
pub struct Action {
    /// The name in a keymap; also the slash command's unless `slash` is another word.
    pub name: &'static str,
    /// `/word` in the composer; empty: none.
    pub slash: &'static str,
    pub run: fn(&mut App, &str) -> Vec<Effect>,
}

impl Action {
    pub const fn new(name: &'static str, slash: &'static str, run: fn(&mut App, &str) -> Vec<Effect>) -> Self {
        Self { name, slash, run }
    }

    /// One to three words for footer and palette.
    pub fn hint(&self) -> &'static str {
        locale::text(&self.id("hint"))
    }

    /// One line for help and palette.
    pub fn about(&self) -> &'static str {
        locale::text(&self.id("about"))
    }

    /// Words that find the action besides the ones that are shown: what Vim calls it, and in other languages than English its
    /// name and both hints.
    pub fn aliases(&self) -> String {
        let vim = self.vim_words().join(" ");
        if locale::tag() == "en" {
            return vim;
        }
        format!(
            "{} {} {} {vim}",
            self.name,
            self.hint(),
            locale::english(&self.id("hint"))
        )
    }

    /// Words that users of Vim type after `:` for the action.
    pub fn vim_words(&self) -> &'static [&'static str] {
        match self.name {
            "quit" => &["q", "q!", "qa", "qa!", "wq", "wqa", "x", "xa"],
            _ => &[],
        }
    }

    /// The id of the text about the action in the locale files: `hint` or `about`.
    pub fn id(&self, of: &str) -> String {
        format!("{of}-{}", self.name.replace('.', "-"))
    }

    /// The arguments that the slash command may take, each with one line about it; empty if it takes none or free text.
    pub fn arguments(&self, app: &App) -> Vec<(String, &'static str)> {
        let literal = |words: &[(&str, &'static str)]| -> Vec<(String, &'static str)> {
            words.iter().map(|(word, about)| ((*word).to_owned(), *about)).collect()
        };
        match self.slash {
            "mode" => Mode::ALL.map(|it| (it.as_str().to_owned(), "")).into(),
            "theme" => {
                let names = app.appearance.themes.names.iter().map(|it| (it.clone(), ""));
                std::iter::once(("auto".to_owned(), t!("theme-about-auto")))
                    .chain(names)
                    .collect()
            }
            "effort" => literal(&[
                ("auto", t!("effort-about-auto")),
                ("off", t!("effort-about-off")),
                ("low", ""),
                ("medium", ""),
                ("high", ""),
            ]),
            "filter" => {
                let facets = FACETS.iter().map(|it| (it.name.to_owned(), it.about()));
                facets.chain([("everything".to_owned(), "")]).collect()
            }
            "mouse" => Mouse::ALL.map(|it| (it.as_str().to_owned(), "")).into(),
            "sandbox" => literal(&[
                ("guard", t!("sandbox-about-guard")),
                ("strict", t!("sandbox-about-strict")),
            ]),
            "copy" => literal(&[
                ("markdown", t!("copy-about-markdown")),
                ("plain", t!("copy-about-plain")),
                ("code", t!("copy-about-code")),
                ("markdown all", t!("copy-about-all")),
                ("plain all", t!("copy-about-all")),
                ("code all", t!("copy-about-all-code")),
            ]),
            _ => Vec::new(),
        }
    }
}
