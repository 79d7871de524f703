//! Which key does what, where: `assets/keymap.toml`, over it the user's own file.
//!
//! A key belongs to a place (composer, transcript, question, plan); what a place does not claim is looked up under
//! `everywhere`. A key that nobody claims goes to the composer as text. Where the user's keys get in each other's way, or in
//! the way of what could not be done any more, that is a problem like a wrong name.

use std::{collections::HashMap, fmt, path::Path};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::Action;
use crate::config::{Problem, SourceText, suggestion};

/// The built-in keys.
pub const BUILT_IN: &str = include_str!("../../../assets/keymap.toml");

/// A key with its modifiers, in one form for every way a terminal may report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chord {
    pub code: KeyCode,
    pub modifiers: KeyModifiers,
}

/// A context in which keys have a meaning of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyContext {
    Everywhere,
    Composer,
    Transcript,
    Plan,
}

impl KeyContext {
    pub const ALL: [Self; 4] = [Self::Everywhere, Self::Composer, Self::Transcript, Self::Plan];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Everywhere => "everywhere",
            Self::Composer => "composer",
            Self::Transcript => "transcript",
            Self::Plan => "plan",
        }
    }
}

/// Keys to names of actions.
#[derive(Clone, Default)]
pub struct Keymap {
    /// All actions that a key may do.
    pub actions: &'static [Action],
    table: HashMap<(KeyContext, Chord), &'static Action>,
    by_name: HashMap<(KeyContext, &'static str), Vec<Chord>>,
}

impl Keymap {
    /// The built-in keys for `actions`.
    pub fn built_in(actions: &'static [Action]) -> Self {
        let mut keymap = Self {
            actions,
            ..Self::default()
        };
        let source = SourceText {
            path: Path::new("keymap.toml"),
            text: BUILT_IN,
        };
        let problems = keymap.read(&source);
        debug_assert_eq!(problems, []);
        keymap
    }

    /// Puts the user's keys over the built-in ones; what is wrong is named and left out.
    pub fn load(&mut self, path: &Path) -> Vec<Problem> {
        match std::fs::read_to_string(path) {
            Ok(text) => self.read(&SourceText { path, text: &text }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => vec![Problem::new(
                SourceText { path, text: "" }.whole(),
                format!("could not be read: {error}"),
            )],
        }
    }

    /// The action of the chord at `place`; one of the place itself wins over one of `everywhere`.
    pub fn find(&self, place: KeyContext, chord: Chord) -> Option<&'static Action> {
        self.table
            .get(&(place, chord))
            .or_else(|| self.table.get(&(KeyContext::Everywhere, chord)))
            .copied()
    }

    /// The action of the chord at `place` and only there.
    pub fn find_only(&self, place: KeyContext, chord: Chord) -> Option<&'static Action> {
        self.table.get(&(place, chord)).copied()
    }

    /// The keys of an action at a place, the shortest first.
    pub fn keys(&self, place: KeyContext, name: &'static str) -> &[Chord] {
        self.by_name.get(&(place, name)).map_or(&[], Vec::as_slice)
    }

    /// Lists the keys by what they do: the footer asks on every frame.
    fn index(&mut self) {
        self.by_name.clear();
        for ((place, chord), action) in &self.table {
            self.by_name.entry((*place, action.name)).or_default().push(*chord);
        }
        for keys in self.by_name.values_mut() {
            keys.sort_by_key(|it| {
                let text = it.to_string();
                (text.len(), text)
            });
        }
    }

    fn read(&mut self, source: &SourceText<'_>) -> Vec<Problem> {
        let mut problems = Vec::new();
        let document = match toml::de::DeTable::parse(source.text) {
            Ok(document) => document,
            Err(error) => {
                return vec![Problem::new(
                    source.place(error.span().unwrap_or_default()),
                    error.message().to_owned(),
                )];
            }
        };
        let before = self.clone();
        let mut taken: Vec<Taken> = Vec::new();
        let fault = |span, message: String| Problem::new(source.place(span), message);
        for (section, keys) in document.get_ref() {
            let Some(place) = KeyContext::ALL
                .into_iter()
                .find(|it| it.as_str() == section.get_ref().as_ref())
            else {
                let names = KeyContext::ALL.map(KeyContext::as_str);
                problems.push(unknown(source, section.span(), "place", section.get_ref(), names));
                continue;
            };
            let toml::de::DeValue::Table(keys) = keys.get_ref() else {
                problems.push(fault(
                    keys.span(),
                    format!("`{}` must be a table of keys", section.get_ref()),
                ));
                continue;
            };
            for (key, name) in keys {
                let Some(chord) = Chord::parse(key.get_ref()) else {
                    let problem = fault(key.span(), format!("`{}` is no key", key.get_ref()));
                    problems.push(problem.hint("keys look like \"ctrl+k\", \"shift+tab\", \"f2\", \"G\""));
                    continue;
                };
                if let Some(other) = taken.iter().find(|it| (it.place, it.chord) == (place, chord)) {
                    let message = format!("`{}` is the same key as `{}`", key.get_ref(), other.written);
                    problems.push(fault(key.span(), message));
                    continue;
                }
                if matches!(place, KeyContext::Everywhere | KeyContext::Composer) && chord.is_text() {
                    let message = format!("`{chord}` could not be typed any more");
                    problems.push(fault(key.span(), message).hint("put ctrl or alt before it"));
                    continue;
                }
                let Some(word) = name.get_ref().as_str() else {
                    problems.push(fault(name.span(), "the name of an action must be a text".to_owned()));
                    continue;
                };
                let action = self.actions.iter().find(|it| it.name == word);
                if word.is_empty() || action.is_some() {
                    taken.push(Taken {
                        place,
                        chord,
                        written: key.get_ref().to_string(),
                        span: key.span(),
                        by: action,
                    });
                }
                if word.is_empty() {
                    self.table.remove(&(place, chord));
                    continue;
                }
                match action {
                    Some(action) => {
                        self.table.insert((place, chord), action);
                    }
                    None => problems.push(unknown(
                        source,
                        name.span(),
                        "action",
                        word,
                        self.actions.iter().map(|it| it.name),
                    )),
                }
            }
        }
        self.index();
        for it in &taken {
            let conflict = self.hidden(it, &taken).or_else(|| self.lost(it, &before));
            problems.extend(conflict.map(|(message, hint)| fault(it.span.clone(), message).hint(hint)));
        }
        problems
    }

    /// A key for everywhere that a place has another use for.
    fn hidden(&self, taken: &Taken, all: &[Taken]) -> Option<(String, String)> {
        let action = taken.by.filter(|_| taken.place == KeyContext::Everywhere)?;
        let chord = taken.chord;
        let (place, other) = KeyContext::ALL.into_iter().find_map(|place| {
            let is_own = all.iter().any(|it| (it.place, it.chord) == (place, chord));
            let found = self.find_only(place, chord)?;
            (!is_own && found.name != action.name).then_some((place.as_str(), found.name))
        })?;
        Some((
            format!(
                "`{chord}` does `{other}` in [{place}], so it does not do `{}` there",
                action.name
            ),
            format!("\"{chord}\" = \"\" under [{place}] takes it away"),
        ))
    }

    /// A key that was the last one of something that only a key does.
    fn lost(&self, taken: &Taken, before: &Self) -> Option<(String, String)> {
        let chord = taken.chord;
        let lost = before.find_only(taken.place, chord)?;
        let is_there = self.table.values().any(|it| it.name == lost.name);
        (taken.by.is_some() && !is_there && lost.slash.is_empty()).then(|| {
            (
                format!("`{chord}` was the key of `{}`, which has none now", lost.name),
                format!("give `{}` another key", lost.name),
            )
        })
    }
}

/// A key that the file that is being read says something of.
struct Taken {
    place: KeyContext,
    chord: Chord,
    /// As it stands there.
    written: String,
    span: std::ops::Range<usize>,
    /// Its new action; `None`: the key was removed.
    by: Option<&'static Action>,
}

fn unknown<'a>(
    source: &SourceText<'_>,
    span: std::ops::Range<usize>,
    what: &str,
    word: &str,
    names: impl IntoIterator<Item = &'a str>,
) -> Problem {
    let problem = Problem::new(source.place(span), format!("unknown {what} `{word}`"));
    match suggestion(word, names) {
        Some(hint) => problem.hint(hint),
        None => problem,
    }
}

impl Chord {
    pub fn of(event: KeyEvent) -> Self {
        let mut modifiers =
            event.modifiers & (KeyModifiers::SHIFT | KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER);
        let code = match event.code {
            KeyCode::BackTab => {
                modifiers |= KeyModifiers::SHIFT;
                KeyCode::Tab
            }
            KeyCode::Char(letter) => {
                // The letter says whether Shift was down; only with Ctrl is it a modifier of its own.
                if modifiers.contains(KeyModifiers::CONTROL) {
                    KeyCode::Char(letter.to_ascii_lowercase())
                } else {
                    modifiers -= KeyModifiers::SHIFT;
                    KeyCode::Char(letter)
                }
            }
            other => other,
        };
        Self { code, modifiers }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        loop {
            let (word, tail) = match rest.split_once('+') {
                Some((word, tail)) if !word.is_empty() && !tail.is_empty() => (word, tail),
                _ => break,
            };
            modifiers |= match word {
                "ctrl" => KeyModifiers::CONTROL,
                "alt" => KeyModifiers::ALT,
                "shift" => KeyModifiers::SHIFT,
                "super" => KeyModifiers::SUPER,
                _ => return None,
            };
            rest = tail;
        }
        let mut letters = rest.chars();
        let code = match (letters.next(), letters.next()) {
            (Some(letter), None) => KeyCode::Char(letter),
            _ => match NAMES.iter().find(|(name, _)| *name == rest) {
                Some((_, code)) => *code,
                None => KeyCode::F(
                    rest.strip_prefix('f')?
                        .parse()
                        .ok()
                        .filter(|it| (1..=24).contains(it))?,
                ),
            },
        };
        // As it will be pressed, however it is written.
        let code = match code {
            KeyCode::Char(letter) if modifiers.contains(KeyModifiers::SHIFT) => {
                KeyCode::Char(letter.to_ascii_uppercase())
            }
            code => code,
        };
        Some(Self::of(KeyEvent::new(code, modifiers)))
    }

    /// Returns true if the chord writes a character in a text.
    fn is_text(self) -> bool {
        let command = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER;
        matches!(self.code, KeyCode::Char(_)) && !self.modifiers.intersects(command)
    }
}

const NAMES: &[(&str, KeyCode)] = &[
    ("enter", KeyCode::Enter),
    ("esc", KeyCode::Esc),
    ("tab", KeyCode::Tab),
    ("space", KeyCode::Char(' ')),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pgup", KeyCode::PageUp),
    ("pgdn", KeyCode::PageDown),
];

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (modifier, word) in [
            (KeyModifiers::SUPER, "super+"),
            (KeyModifiers::CONTROL, "ctrl+"),
            (KeyModifiers::ALT, "alt+"),
            (KeyModifiers::SHIFT, "shift+"),
        ] {
            if self.modifiers.contains(modifier) {
                f.write_str(word)?;
            }
        }
        if let Some((name, _)) = NAMES.iter().find(|(_, code)| *code == self.code) {
            return f.write_str(name);
        }
        match self.code {
            KeyCode::Char(letter) => write!(f, "{letter}"),
            KeyCode::F(n) => write!(f, "f{n}"),
            other => write!(f, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_table_prints_as_it_is_written() {
        for text in [
            "ctrl+k",
            "shift+tab",
            "alt+enter",
            "f12",
            "G",
            "?",
            "ctrl+.",
            "ctrl+shift+up",
            "+",
            "space",
            "/",
        ] {
            assert_eq!(Chord::parse(text).map(|it| it.to_string()).as_deref(), Some(text));
        }
        for text in ["", "hyper+x", "ctrl+", "f99", "nokey"] {
            assert_eq!(Chord::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_key_is_found_however_it_is_written() {
        for (written, pressed) in [
            ("ctrl+K", "ctrl+k"),
            ("shift+g", "G"),
            ("shift+ctrl+up", "ctrl+shift+up"),
        ] {
            assert_eq!(Chord::parse(written), Chord::parse(pressed), "{written}");
        }
    }

    #[test]
    fn keys_that_get_in_the_way_of_others_are_reported() {
        for (text, expected) in [
            (
                "[composer]\n\"enter\" = \"newline\"\n",
                &["k.toml:2:1: `enter` was the key of `send`, which has none now; give `send` another key"][..],
            ),
            ("[composer]\n\"enter\" = \"newline\"\n\"f9\" = \"send\"\n", &[]),
            ("[everywhere]\n\"ctrl+e\" = \"palette\"\n", &[]),
            ("[composer]\n\"ctrl+d\" = \"\"\n[transcript]\n\"ctrl+d\" = \"\"\n", &[]),
            (
                "[everywhere]\n\"ctrl+g\" = \"review\"\n",
                &[
                    "k.toml:2:1: `ctrl+g` does `editor` in [composer], so it does not do `review` there; \"ctrl+g\" = \"\" under \
                     [composer] takes it away",
                ],
            ),
            (
                "[everywhere]\n\"ctrl+g\" = \"review\"\n[composer]\n\"ctrl+g\" = \"\"\n",
                &[],
            ),
            (
                "[everywhere]\n\"ctrl+g\" = \"review\"\n[composer]\n\"ctrl+g\" = \"history\"\n\"f9\" = \"editor\"\n",
                &[],
            ),
            (
                "[everywhere]\n\"x\" = \"palette\"\n",
                &["k.toml:2:1: `x` could not be typed any more; put ctrl or alt before it"],
            ),
            (
                "[everywhere]\n\"ctrl+K\" = \"review\"\n\"ctrl+k\" = \"mode\"\n",
                &["k.toml:3:1: `ctrl+k` is the same key as `ctrl+K`"],
            ),
        ] {
            let mut keymap = Keymap::built_in(crate::tui::actions::ACTIONS);
            let problems = keymap.read(&SourceText {
                path: Path::new("k.toml"),
                text,
            });
            let shown: Vec<_> = problems.iter().map(|it| it.to_string().replace("\n  ", "; ")).collect();
            assert_eq!(shown, expected, "{text}");
        }
    }

    #[test]
    fn a_wrong_line_names_itself_and_the_nearest_name() {
        let mut keymap = Keymap::built_in(crate::tui::actions::ACTIONS);
        let text = "[transcript]\n\"x\" = \"copi\"\n[composr]\n\"ctrl+k\" = \"palette\"\n";
        let problems = keymap.read(&SourceText {
            path: Path::new("k.toml"),
            text,
        });
        let mut shown: Vec<_> = problems.iter().map(ToString::to_string).collect();
        shown.sort();
        assert_eq!(shown.len(), 2, "{shown:?}");
        assert!(
            shown[0].contains("copi") && shown[0].contains("copy") && shown[0].contains('2'),
            "{shown:?}"
        );
        assert!(
            shown[1].contains("composr") && shown[1].contains("composer"),
            "{shown:?}"
        );
    }
}
