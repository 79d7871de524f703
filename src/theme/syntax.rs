//! Colours for code from a TextMate theme, in place of the theme's own.

use std::path::{Path, PathBuf};

use ratatui::style;

use super::{Rgb, RoleStyle, Theme, ThemeColour, role_index};
use crate::{
    config::{Location, Problem, SourceText},
    os::file,
    text::{
        Modifier,
        tmtheme::{self, Shade},
    },
};

/// Maximum size of a TextMate theme, in bytes.
const LIMIT_BYTES: u64 = 1 << 20;

/// Colours and modifiers of code roles. Empty: the theme's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Syntax(Vec<Shade>);

/// Loads a TextMate theme: `asked` is a path, or the name of a `.tmTheme` file in the themes `folder`.
///
/// Wrong parts are left out and reported; `place` is the location of the setting, for a theme that cannot be read.
pub fn syntax(asked: &str, folder: &Path, home: Option<&Path>, place: &Location) -> (Syntax, Vec<Problem>) {
    let path = path_of(asked, folder, home);
    let bytes = match file::read(&path, LIMIT_BYTES) {
        Ok(it) => it,
        Err(error) if error.is_absent() => {
            let problem = Problem::new(place.clone(), format!("there is no {}", path.display()));
            let hint = "a path, or the name of a .tmTheme file in the folder of themes".to_owned();
            return (Syntax::default(), vec![problem.hint(hint)]);
        }
        Err(error) => return (Syntax::default(), vec![Problem::new(place.clone(), error.to_string())]),
    };
    let text = String::from_utf8_lossy(&bytes);
    let (shades, wrong) = tmtheme::read(&text);
    let source = SourceText {
        path: &path,
        text: &text,
    };
    let problems = wrong
        .into_iter()
        .map(|it| Problem::new(source.place(it.at), it.message));
    (Syntax(shades), problems.collect())
}

fn path_of(asked: &str, folder: &Path, home: Option<&Path>) -> PathBuf {
    if let (Some(rest), Some(home)) = (asked.strip_prefix("~/"), home) {
        return home.join(rest);
    }
    if asked.contains('/') {
        return folder.join(asked);
    }
    let name = asked.strip_suffix(".tmTheme").unwrap_or(asked);
    folder.join(format!("{name}.tmTheme"))
}

impl Theme {
    /// Returns the theme with these colours for code, made legible like all others.
    pub fn with_syntax(&self, syntax: &Syntax) -> Self {
        if syntax.0.is_empty() {
            return self.clone();
        }
        let mut palette = (*self.palette).clone();
        for shade in &syntax.0 {
            let (red, green, blue) = shade.colour;
            let mut modifiers = style::Modifier::empty();
            for (mark, modifier) in [
                (Modifier::BOLD, style::Modifier::BOLD),
                (Modifier::ITALIC, style::Modifier::ITALIC),
                (Modifier::UNDERLINE, style::Modifier::UNDERLINED),
            ] {
                modifiers.set(modifier, shade.modifier.contains(mark));
            }
            if let Some(slot) = role_index(shade.role).and_then(|it| palette.roles.get_mut(it)) {
                *slot = RoleStyle {
                    tint: ThemeColour::Rgb {
                        colour: Rgb(red, green, blue),
                        index: None,
                    },
                    modifiers,
                };
            }
        }
        Self::new(palette.into(), self.depth, self.reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        text::{Background, Role},
        theme::BUILT_IN,
    };

    #[test]
    fn colours_that_cannot_be_read_are_pushed_like_those_of_roles() {
        let black = Shade {
            role: Role::Keyword,
            colour: (0, 0, 0),
            modifier: Modifier::BOLD,
        };
        let white = Shade {
            role: Role::String,
            colour: (255, 255, 255),
            modifier: Modifier::NONE,
        };
        let syntax = Syntax(vec![black, white]);
        for (name, _) in BUILT_IN.iter().filter(|it| it.0 != "terminal") {
            let theme = Theme::built_in(name).expect("it is in the table").with_syntax(&syntax);
            let behind = theme.background().expect("it has one");
            for role in [Role::Keyword, Role::String] {
                let colour = theme.colour(role).expect("one of its own");
                assert!(colour.contrast(behind) >= 4.5, "{name} {role:?}");
            }
            let style = theme.style(Role::Keyword, Modifier::NONE, Background::Plain);
            assert!(style.add_modifier.contains(style::Modifier::BOLD));
        }
    }

    #[test]
    fn a_name_is_a_file_in_the_folder_of_themes() {
        let folder = Path::new("/c/themes");
        let home = Some(Path::new("/home/kim"));
        for (asked, path) in [
            ("mine", "/c/themes/mine.tmTheme"),
            ("mine.tmTheme", "/c/themes/mine.tmTheme"),
            ("~/a.tmTheme", "/home/kim/a.tmTheme"),
            ("/x/a.tmTheme", "/x/a.tmTheme"),
        ] {
            assert_eq!(path_of(asked, folder, home), Path::new(path), "{asked}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let place = Location::Flag("--set".to_owned());
        let (syntax, problems) = syntax("none", Path::new("/nowhere"), None, &place);
        assert_eq!(syntax, Syntax::default());
        assert_eq!(problems.len(), 1);
        assert!(
            problems[0].to_string().contains("/nowhere/none.tmTheme"),
            "{}",
            problems[0]
        );
    }
}
