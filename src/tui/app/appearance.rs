//! Colours, and the details that documents show.

use std::{path::PathBuf, sync::Arc};

use crate::{
    text::Colours,
    theme::{self, Theme},
};

/// The theme in use, the colours of code, and which details are shown.
pub struct Appearance {
    pub theme: Theme,
    pub themes: Themes,
    /// Grows with every change of the theme.
    pub look_version: u64,
    pub colours: Arc<dyn Colours + Send + Sync>,
    /// Grows whenever code got its colours.
    pub colours_version: u64,
    /// The model's thinking is shown unfolded.
    pub show_thinking: bool,
    /// Each document shows when it began and how long it took.
    pub show_times: bool,
    /// Unchanged lines shown around each change.
    pub context_lines: usize,
    /// Lines of a command's output that stand for it.
    pub output_rows: usize,
}

/// The themes to choose from, the choice, and what the terminal reported of its colours.
#[derive(Clone, Debug, Default)]
pub struct Themes {
    pub names: Vec<String>,
    /// `auto` or a name.
    pub chosen: String,
    pub folder: PathBuf,
    /// Colours for code that replace the theme's own.
    pub syntax: theme::Syntax,
    pub seen: theme::KnownBackground,
    pub surroundings: theme::TerminalEnvironment,
}

impl Appearance {
    /// Switches to the theme `name`; `auto` chooses by the background that the terminal reported.
    pub fn choose(&mut self, name: &str, has_colour: bool) {
        name.clone_into(&mut self.themes.chosen);
        self.theme = self.themes.resolve(has_colour);
        self.look_version += 1;
    }
}

impl Themes {
    /// Returns the chosen theme, adapted to the background and the colour depth of the terminal.
    pub fn resolve(&self, has_colour: bool) -> Theme {
        let name = theme::choose(&self.chosen, self.seen, &self.surroundings).to_owned();
        let place = crate::config::Location::Flag("--theme".into());
        let (theme, _) = theme::load(&name, &self.folder, &place);
        let depth = if has_colour {
            self.surroundings.depth()
        } else {
            theme::Depth::None
        };
        let theme = theme.with_syntax(&self.syntax).with_depth(depth);
        match self.seen.reported {
            Some(background) => theme.adapted(background),
            None => theme,
        }
    }
}
