//! Theme files: TOML with a table of roles and a table of grounds (backgrounds).
//!
//! A value is a colour and modifiers as words, in any order: `"7fc8a9"`, `"blue underline"`, `"default dim"`. A number
//! of 16 to 255 after a colour replaces it in terminals with 256 colours.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use ratatui::style::Modifier;
use toml::{Spanned, de::DeTable, de::DeValue};

use super::{BUILT_IN, Depth, GROUNDS, Palette, ROLES, Rgb, RoleStyle, Theme, ThemeColour};
use crate::{
    config::{Location, Problem, SourceText, suggestion},
    os::file,
};

/// Maximum size of a theme file, in bytes.
const LIMIT_BYTES: u64 = 256 * 1024;

const COLOUR_NAMES: [&str; 8] = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

const MODIFIER_NAMES: [(&str, Modifier); 6] = [
    ("bold", Modifier::BOLD),
    ("dim", Modifier::DIM),
    ("italic", Modifier::ITALIC),
    ("underline", Modifier::UNDERLINED),
    ("strike", Modifier::CROSSED_OUT),
    ("reverse", Modifier::REVERSED),
];

/// Returns the names of all themes, without duplicates: the built-in ones, then those in `folder`, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = BUILT_IN.iter().map(|it| it.0.to_owned()).collect();
    let mut own: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|it| it == "toml"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .filter(|name| !names.contains(name))
        .collect();
    own.sort();
    names.append(&mut own);
    names
}

/// Loads the theme `name`: the user's file in `folder`, else a built-in theme.
///
/// Wrong parts of a file are left out and reported. `sheaf-dark` if there is no such theme; `asked` is the location of
/// the name, for that problem.
pub fn load(name: &str, folder: &Path, asked: &Location) -> (Theme, Vec<Problem>) {
    let mut problems = Vec::new();
    let plain = !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    if plain && let Some(palette) = own(name, folder, &mut problems) {
        return (Theme::new(Arc::new(palette), Depth::True, None), problems);
    }
    if let Some(theme) = Theme::built_in(name) {
        return (theme, problems);
    }
    // An unreadable file is reported already.
    if problems.is_empty() {
        let names = names(folder);
        let hint = suggestion(name, names.iter().map(String::as_str))
            .unwrap_or_else(|| format!("themes: {}", names.join(", ")));
        problems.push(Problem::new(asked.clone(), format!("unknown theme `{name}`")).hint(hint));
    }
    (Theme::default(), problems)
}

fn own(name: &str, folder: &Path, problems: &mut Vec<Problem>) -> Option<Palette> {
    let path = folder.join(format!("{name}.toml"));
    let text = read(&path).unwrap_or_else(|problem| {
        problems.push(problem);
        None
    })?;
    let source = SourceText {
        path: &path,
        text: &text,
    };
    let (palette, mut found) = parse(name, &source, false);
    problems.append(&mut found);
    Some(palette)
}

/// Reads a file; `None` if it does not exist.
fn read(path: &Path) -> Result<Option<String>, Problem> {
    let problem = |message: String| {
        let place = Location::File {
            path: path.to_owned(),
            line: 0,
            column: 0,
        };
        Problem::new(place, message)
    };
    let bytes = match file::read(path, LIMIT_BYTES) {
        Ok(it) => it,
        Err(error) if error.is_absent() => return Ok(None),
        Err(error) => return Err(problem(error.to_string())),
    };
    let text = String::from_utf8(bytes).map_err(|_| problem("the theme is not UTF-8 text".to_owned()))?;
    Ok(Some(text))
}

/// Parses a theme. Missing roles come from its base, by default the built-in theme of its appearance.
///
/// A built-in theme is complete and has no base.
pub(super) fn parse(name: &str, source: &SourceText<'_>, is_built_in: bool) -> (Palette, Vec<Problem>) {
    let (document, errors) = DeTable::parse_recoverable(source.text);
    let mut problems: Vec<Problem> = errors
        .iter()
        .map(|it| {
            Problem::new(
                it.span().map_or_else(|| source.whole(), |span| source.place(span)),
                it.message(),
            )
        })
        .collect();
    let mut reader = ThemeReader {
        source,
        problems: &mut problems,
    };
    let document = document.get_ref();
    let appearance = reader.word(document, "appearance", &["dark", "light"]);
    let built_in: Vec<&str> = BUILT_IN.iter().map(|it| it.0).collect();
    let base = reader.word(document, "base", &built_in);
    let mut palette = match (base, appearance) {
        _ if is_built_in => empty(),
        (Some(base), _) => based_on(base),
        (None, Some("light")) => based_on("sheaf-light"),
        (None, _) => based_on("sheaf-dark"),
    };
    name.clone_into(&mut palette.name);
    for (key, value) in document {
        match key.get_ref().as_ref() {
            "base" | "appearance" => {}
            "background" => {
                let colour = reader.text(value).map(Rgb::parse);
                match colour {
                    Some(Some(colour)) => palette.background = Some(colour),
                    Some(None) => {
                        let problem = Problem::new(source.place(value.span()), "`background` is not a colour");
                        reader
                            .problems
                            .push(problem.hint("six hexadecimal digits, such as 1e1e1e"));
                    }
                    None => {}
                }
            }
            "roles" => {
                let known: Vec<&str> = ROLES.iter().map(|it| it.0).collect();
                for (index, paint) in reader.paints("role", value, &known) {
                    palette.roles[index] = paint;
                }
            }
            "grounds" => {
                let known: Vec<&str> = GROUNDS.iter().map(|it| it.0).skip(1).collect();
                for (index, paint) in reader.paints("ground", value, &known) {
                    palette.grounds[index + 1] = paint;
                }
            }
            other => {
                let known = ["base", "appearance", "background", "roles", "grounds"];
                let mut problem = Problem::new(source.place(key.span()), format!("a theme has no `{other}`"));
                problem.hint = suggestion(other, known).or_else(|| {
                    let role = ROLES.iter().any(|it| it.0 == other);
                    role.then(|| "colours stand under `[roles]` and `[grounds]`".to_owned())
                });
                reader.problems.push(problem);
            }
        }
    }
    problems.sort();
    (palette, problems)
}

fn based_on(name: &str) -> Palette {
    Theme::built_in(name).map_or_else(empty, |it| Palette::clone(&it.palette))
}

fn empty() -> Palette {
    let nothing = RoleStyle {
        tint: ThemeColour::Default,
        modifiers: Modifier::empty(),
    };
    Palette {
        name: String::new(),
        background: None,
        roles: [nothing; ROLES.len()],
        grounds: [nothing; GROUNDS.len()],
    }
}

struct ThemeReader<'a> {
    source: &'a SourceText<'a>,
    problems: &'a mut Vec<Problem>,
}

impl ThemeReader<'_> {
    fn text<'v>(&mut self, value: &'v Spanned<DeValue<'_>>) -> Option<&'v str> {
        let found = value.get_ref();
        if let DeValue::String(it) = found {
            return Some(it);
        }
        let message = format!("a text is wanted here, this is {}", found.type_str());
        self.problems
            .push(Problem::new(self.source.place(value.span()), message));
        None
    }

    /// Returns the value of `key` if it is one of `words`; reports others.
    fn word<'w>(&mut self, table: &DeTable<'_>, key: &str, words: &[&'w str]) -> Option<&'w str> {
        let (_, value) = table.iter().find(|it| it.0.get_ref() == key)?;
        let text = self.text(value)?;
        let found = words.iter().find(|it| **it == text).copied();
        if found.is_none() {
            let hint =
                suggestion(text, words.iter().copied()).unwrap_or_else(|| format!("one of {}", words.join(", ")));
            let message = format!("`{text}` cannot be the {key} of a theme");
            self.problems
                .push(Problem::new(self.source.place(value.span()), message).hint(hint));
        }
        found
    }

    /// Reads a table of styles. Returns them by position in `known`; `mode.agent` may be a nested table or a quoted
    /// key.
    fn paints(&mut self, what: &str, value: &Spanned<DeValue<'_>>, known: &[&str]) -> BTreeMap<usize, RoleStyle> {
        let mut found = BTreeMap::new();
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("a table of {what}s is wanted here");
            self.problems
                .push(Problem::new(self.source.place(value.span()), message));
            return found;
        };
        for (key, value) in table {
            let inner = value.get_ref().as_table().into_iter().flatten();
            let inner = inner.map(|(second, value)| (format!("{}.{}", key.get_ref(), second.get_ref()), second, value));
            let leaf = !value.get_ref().is_table();
            let leaf = leaf.then(|| (key.get_ref().clone().into_owned(), key, value));
            for (name, key, value) in leaf.into_iter().chain(inner) {
                let Some(index) = known.iter().position(|it| *it == name) else {
                    let mut problem = Problem::new(self.source.place(key.span()), format!("unknown {what} `{name}`"));
                    problem.hint = suggestion(&name, known.iter().copied());
                    self.problems.push(problem);
                    continue;
                };
                let paint = self.text(value).map(paint);
                match paint {
                    Some(Ok(paint)) => {
                        found.insert(index, paint);
                    }
                    Some(Err(problem)) => {
                        let place = self.source.place(value.span());
                        self.problems.push(Problem { place, ..problem });
                    }
                    None => {}
                }
            }
        }
        found
    }
}

/// Parses one style. The caller fills in the problem's location.
fn paint(text: &str) -> Result<RoleStyle, Problem> {
    let nowhere = || Location::Variable(String::new());
    let mut tint = None;
    let mut modifiers = Modifier::empty();
    for word in text.split_whitespace() {
        let mark = MODIFIER_NAMES.iter().find(|it| it.0 == word);
        let number = (word.len() <= 3).then(|| word.parse::<u8>().ok()).flatten();
        let name = COLOUR_NAMES.iter().position(|it| *it == word);
        let read = match (mark, number, name) {
            (Some((_, modifier)), _, _) => {
                modifiers |= *modifier;
                continue;
            }
            (None, Some(index), _) => match &mut tint {
                Some(ThemeColour::Rgb { index: spare, .. }) if index >= 16 => {
                    *spare = Some(index);
                    continue;
                }
                _ => Some(ThemeColour::Index(index)),
            },
            (None, None, Some(index)) => Some(ThemeColour::Index(index as u8)),
            (None, None, None) if word == "default" || word == "none" => Some(ThemeColour::Default),
            (None, None, None) => Rgb::parse(word).map(|colour| ThemeColour::Rgb { colour, index: None }),
        };
        let Some(read) = read else {
            let marks = MODIFIER_NAMES.iter().map(|it| it.0);
            let words = marks.chain(COLOUR_NAMES).chain(["default", "none"]);
            let hint = suggestion(word, words)
                .unwrap_or_else(|| "six hexadecimal digits, a number up to 255, or a name such as green".to_owned());
            return Err(Problem::new(nowhere(), format!("`{word}` is neither a colour nor a mark")).hint(hint));
        };
        if tint.is_some() {
            return Err(Problem::new(nowhere(), format!("`{text}` names two colours")));
        }
        tint = Some(read);
    }
    Ok(RoleStyle {
        tint: tint.unwrap_or(ThemeColour::Default),
        modifiers,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn read(text: &str) -> (Palette, Vec<String>) {
        let source = SourceText {
            path: Path::new("mine.toml"),
            text,
        };
        let (palette, problems) = parse("mine", &source, false);
        (palette, problems.iter().map(ToString::to_string).collect())
    }

    fn role(palette: &Palette, name: &str) -> RoleStyle {
        palette.roles[ROLES.iter().position(|it| it.0 == name).expect("a role")]
    }

    #[test]
    fn the_built_in_themes_are_whole_and_free_of_problems() {
        for (name, text) in BUILT_IN {
            let source = SourceText {
                path: Path::new(name),
                text,
            };
            assert_eq!(parse(name, &source, true).1, [], "{name}");
            let document = DeTable::parse(text).expect("TOML");
            let mut found = Vec::new();
            for (section, names) in [
                ("roles", &ROLES.map(|it| it.0)[..]),
                ("grounds", &GROUNDS.map(|it| it.0)[1..]),
            ] {
                let table = document
                    .get_ref()
                    .iter()
                    .find(|it| it.0.get_ref() == section)
                    .expect("a section")
                    .1;
                for name in names {
                    let mut here = Some(table);
                    for part in name.split('.') {
                        here = here.and_then(|it| it.get_ref().get(part));
                    }
                    if here.is_none() {
                        found.push(*name);
                    }
                }
            }
            assert_eq!(found, Vec::<&str>::new(), "missing in {name}");
        }
    }

    #[test]
    fn a_theme_says_what_differs_from_its_base() {
        let (palette, problems) = read(
            "base = 'sheaf-light'\nbackground = '#fdf6e3'\n[roles]\ntext = 'red bold'\nmode.plan = '268bd2 33 italic'\n'mode.ask' = '17'",
        );
        assert_eq!(problems, [""; 0]);
        assert_eq!(palette.background, Some(Rgb(0xfd, 0xf6, 0xe3)));
        let tint = |tint, modifiers| RoleStyle { tint, modifiers };
        assert_eq!(role(&palette, "text"), tint(ThemeColour::Index(1), Modifier::BOLD));
        let blue = ThemeColour::Rgb {
            colour: Rgb(0x26, 0x8b, 0xd2),
            index: Some(33),
        };
        assert_eq!(role(&palette, "mode.plan"), tint(blue, Modifier::ITALIC));
        assert_eq!(
            role(&palette, "mode.ask"),
            tint(ThemeColour::Index(17), Modifier::empty())
        );
        let light = based_on("sheaf-light");
        assert_eq!(role(&palette, "strong"), role(&light, "strong"));
        assert_eq!(palette.grounds, light.grounds);
    }

    #[test]
    fn without_a_base_the_appearance_decides_what_is_missing() {
        assert_eq!(read("appearance = 'light'").0.roles, based_on("sheaf-light").roles);
        assert_eq!(read("appearance = 'dark'").0.roles, based_on("sheaf-dark").roles);
        assert_eq!(read("").0.roles, based_on("sheaf-dark").roles);
    }

    #[test]
    fn every_mistake_is_named_with_its_line_and_what_was_meant() {
        let (palette, problems) = read(concat!(
            "bsae = 'sheaf-dark'\n",
            "base = 'sheaf-drak'\n",
            "appearance = 3\n",
            "background = 'greenish'\n",
            "text = 'red'\n",
            "[roles]\n",
            "txet = 'red'\n",
            "strong = 'gren'\n",
            "dim = 7\n",
            "link = 'red blue'\n",
            "error = 'zzzzzz'\n",
            "mode.paln = 'red'\n",
            "done = 'cyan'\n",
            "[grounds]\n",
            "added.wrod = 'red'\n",
        ));
        assert_eq!(
            problems,
            [
                "mine.toml:1:1: a theme has no `bsae`\n  did you mean `base`?",
                "mine.toml:2:8: `sheaf-drak` cannot be the base of a theme\n  did you mean `sheaf-dark`?",
                "mine.toml:3:14: a text is wanted here, this is integer",
                "mine.toml:4:14: `background` is not a colour\n  six hexadecimal digits, such as 1e1e1e",
                "mine.toml:5:1: a theme has no `text`\n  colours stand under `[roles]` and `[grounds]`",
                "mine.toml:7:1: unknown role `txet`\n  did you mean `text`?",
                "mine.toml:8:10: `gren` is neither a colour nor a mark\n  did you mean `green`?",
                "mine.toml:9:7: a text is wanted here, this is integer",
                "mine.toml:10:8: `red blue` names two colours",
                "mine.toml:11:9: `zzzzzz` is neither a colour nor a mark\n  six hexadecimal digits, a number up to 255, or a name such as green",
                "mine.toml:12:6: unknown role `mode.paln`\n  did you mean `mode.plan`?",
                "mine.toml:15:7: unknown ground `added.wrod`\n  did you mean `added.word`?",
            ]
        );
        assert_eq!(
            role(&palette, "done").tint,
            ThemeColour::Index(6),
            "the rest of the file holds"
        );
    }

    #[test]
    fn broken_toml_keeps_what_could_be_read() {
        let (palette, problems) = read("[roles]\ntext = 'red'\nstrong = \ndim = 'blue'\n");
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("mine.toml:3:"), "{problems:?}");
        assert_eq!(role(&palette, "text").tint, ThemeColour::Index(1));
    }

    #[test]
    fn the_users_theme_comes_before_the_built_in_one_and_a_wrong_name_falls_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let asked = Location::Flag("--theme".to_owned());
        std::fs::write(folder.path().join("sheaf-dark.toml"), "[roles]\ntext = 'red'").expect("written");
        std::fs::write(folder.path().join("owl.toml"), "").expect("written");
        std::fs::create_dir(folder.path().join("nest.toml")).expect("made");
        let load = |name: &str| {
            let (theme, problems) = load(name, folder.path(), &asked);
            let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
            (
                role(&theme.palette, "text").tint,
                theme.name().to_owned(),
                problems.join("; "),
            )
        };
        let name = |it: &str| it.to_owned();
        let text = role(&based_on("sheaf-dark"), "text").tint;
        assert_eq!(
            load("sheaf-dark"),
            (ThemeColour::Index(1), name("sheaf-dark"), String::new())
        );
        assert_eq!(load("owl"), (text, name("owl"), String::new()));
        let missing = "--theme: unknown theme `owll`\n  did you mean `owl`?";
        assert_eq!(load("owll"), (text, name("sheaf-dark"), name(missing)));
        assert!(load("../owl").2.contains("unknown theme"));
        assert!(load("nest").2.contains("not a regular file"));
        let mut expected: Vec<&str> = super::super::BUILT_IN.iter().map(|it| it.0).collect();
        expected.extend(["nest", "owl"]);
        assert_eq!(names(folder.path()), expected);
    }
}
