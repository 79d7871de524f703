//! The head of a Markdown file: YAML between two lines `---`.
//!
//! Scalars stay texts, as they are written. A head that is not YAML is read once more with its values quoted: a colon in a
//! description is the usual mistake. Aliases are refused, because a short text with them can grow without limit.

use serde_json::{Map, Value};
use yaml_rust2::{
    parser::{Event, Parser},
    scanner::TScalarStyle,
};

/// Maximum size of a head, in bytes.
const HEAD_BYTES: usize = 64 << 10;
/// The member whose value is a text whatever it looks like.
const HINT: &str = "argument-hint";
/// Maximum number of values in a head.
const VALUES: usize = 4096;
/// Maximum depth of lists and maps.
const DEPTH: usize = 16;

/// The head of a file. Empty if the file has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrontMatter {
    members: Map<String, Value>,
    /// The head was not YAML, and its values were quoted to read it.
    pub is_repaired: bool,
}

impl FrontMatter {
    /// Splits a file into its head and its body. Fails if there is a head that cannot be read, with the reason.
    pub fn split(text: &str) -> Result<(Self, &str), String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Some((head, body)) = parts(text) else {
            return Ok((Self::default(), text));
        };
        Self::read(head).map(|it| (it, body))
    }

    fn read(head: &str) -> Result<Self, String> {
        if head.len() > HEAD_BYTES {
            return Err(format!("its head is larger than {} KiB", HEAD_BYTES >> 10));
        }
        // `[file]` is a hint as it stands, and a list to YAML.
        let head = quoted(head, |name| name == HINT);
        let (members, is_repaired) = match parse(&head) {
            Ok(members) => (members, false),
            Err(why) => (parse(&quoted(&head, |_| true)).map_err(|_| why)?, true),
        };
        Ok(Self { members, is_repaired })
    }

    /// The text of a member; `None` if it is absent, empty or no text.
    pub fn text(&self, name: &str) -> Option<&str> {
        let text = self.members.get(name)?.as_str()?.trim();
        (!text.is_empty()).then_some(text)
    }

    /// A member that is true or false; `None` if it is absent or neither.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.text(name)?.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        }
    }

    /// The items of a member: a list, or a text whose items stand between commas or blanks. Brackets keep what is in them
    /// together: `Bash(git add *)` is one item.
    pub fn list(&self, name: &str) -> Vec<String> {
        match self.members.get(name) {
            Some(Value::Array(items)) => items
                .iter()
                .filter_map(|it| Some(it.as_str()?.trim().to_owned()))
                .filter(|it| !it.is_empty())
                .collect(),
            Some(Value::String(text)) => items(text),
            Some(_) | None => Vec::new(),
        }
    }

    /// The names in a table of a member that are `false` or `deny`; of a table in it, those with a `deny`. Empty if it is no table.
    pub fn switched_off(&self, name: &str) -> Vec<String> {
        let is_off = |it: &Value| matches!(it.as_str(), Some("false" | "deny"));
        let table = self.members.get(name).and_then(Value::as_object);
        let off = table.into_iter().flatten().filter(|it| match it.1 {
            Value::Object(inner) => inner.values().any(is_off),
            other => is_off(other),
        });
        off.map(|it| it.0.clone()).collect()
    }

    /// Returns true if a member is a table.
    pub fn is_table(&self, name: &str) -> bool {
        self.members.get(name).is_some_and(Value::is_object)
    }

    /// The names of all members.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.members.keys().map(String::as_str)
    }
}

/// The head and the body of a text; `None`: it has no head.
fn parts(text: &str) -> Option<(&str, &str)> {
    let (first, rest) = text.split_once('\n')?;
    if first.trim_end() != "---" {
        return None;
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((rest.get(..at)?, rest.get(at + line.len()..)?));
        }
        at += line.len();
    }
    None
}

/// The items of a line, between commas and blanks outside brackets.
fn items(text: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut depth = 0_usize;
    for it in text.chars() {
        match it {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && (it == ',' || it.is_whitespace()) {
            items.push(String::new());
        } else if let Some(last) = items.last_mut() {
            last.push(it);
        }
    }
    items.retain(|it| !it.is_empty());
    items
}

/// The head with the plain values of these names of its top level quoted.
fn quoted(head: &str, is_meant: impl Fn(&str) -> bool) -> String {
    let quote = |line: &str| {
        let line = line.trim_end();
        let is_inner = line.starts_with([' ', '\t', '#', '-']);
        match line.split_once(':').filter(|_| !is_inner) {
            Some((name, value)) if is_meant(name) => {
                let value = value.trim();
                let is_quoted = value.starts_with(['"', '\'']);
                let is_other = name != HINT && value.starts_with(['[', '{', '|', '>']);
                let is_plain = !value.is_empty() && !is_quoted && !is_other;
                if is_plain {
                    format!("{name}: {}", Value::from(value))
                } else {
                    line.to_owned()
                }
            }
            Some(_) | None => line.to_owned(),
        }
    };
    head.lines().map(quote).collect::<Vec<_>>().join("\n")
}

fn parse(head: &str) -> Result<Map<String, Value>, String> {
    let mut reader = Reader {
        parser: Parser::new_from_str(head),
        values: 0,
    };
    loop {
        match reader.next()? {
            Event::StreamStart | Event::DocumentStart | Event::Nothing => {}
            Event::MappingStart(..) => return reader.map(0),
            Event::StreamEnd | Event::DocumentEnd => return Ok(Map::new()),
            Event::Scalar(text, ..) if text.trim().is_empty() || text == "~" => return Ok(Map::new()),
            _ => return Err("its head is not a list of `name: value`".to_owned()),
        }
    }
}

struct Reader<'a> {
    parser: Parser<std::str::Chars<'a>>,
    values: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<Event, String> {
        self.values += 1;
        if self.values > VALUES {
            return Err("its head has too many values".to_owned());
        }
        let event = self.parser.next_token();
        event.map(|it| it.0).map_err(|it| format!("its head is not YAML: {it}"))
    }

    fn map(&mut self, depth: usize) -> Result<Map<String, Value>, String> {
        let mut members = Map::new();
        loop {
            let name = match self.next()? {
                Event::MappingEnd => return Ok(members),
                Event::Scalar(name, ..) => name,
                _ => return Err("a name in its head is not a text".to_owned()),
            };
            let first = self.next()?;
            let value = self.value(first, depth + 1)?;
            members.insert(name, value);
        }
    }

    fn value(&mut self, first: Event, depth: usize) -> Result<Value, String> {
        if depth > DEPTH {
            return Err("its head is nested too deeply".to_owned());
        }
        match first {
            Event::Scalar(text, TScalarStyle::Plain, ..) if matches!(text.as_str(), "" | "~" | "null") => {
                Ok(Value::Null)
            }
            Event::Scalar(text, ..) => Ok(text.into()),
            Event::MappingStart(..) => self.map(depth).map(Value::Object),
            Event::SequenceStart(..) => {
                let mut items = Vec::new();
                loop {
                    match self.next()? {
                        Event::SequenceEnd => return Ok(items.into()),
                        first => items.push(self.value(first, depth + 1)?),
                    }
                }
            }
            Event::Alias(_) => Err("its head has an alias (`*name`)".to_owned()),
            _ => Err("its head ends too early".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front(head: &str) -> FrontMatter {
        let text = format!("---\n{head}\n---\nbody");
        FrontMatter::split(&text).expect("it can be read").0
    }

    #[test]
    fn a_head_is_split_from_its_body() {
        for (text, names, body) in [
            ("---\nname: a\n---\nbody\n", "name", "body\n"),
            ("\u{feff}---\r\nname: a\r\n---\r\nbody", "name", "body"),
            ("no head", "", "no head"),
            ("---\nnever closed", "", "---\nnever closed"),
            ("---\n---\nbody", "", "body"),
            ("--- \nname: a\n...\nbody\n---\n", "name", "body\n---\n"),
        ] {
            let (front, rest) = FrontMatter::split(text).unwrap();
            assert_eq!(
                (front.names().collect::<Vec<_>>().join(" ").as_str(), rest),
                (names, body),
                "{text:?}"
            );
        }
    }

    #[test]
    fn values_keep_their_text() {
        let front = front("a: 1.10\nb: \"true\"\nc: ~\nd: >-\n  two\n  lines\ne: [x, 'y z']\nf:\n- p\n- q\ng: \"\"");
        assert_eq!(front.text("a"), Some("1.10"));
        assert_eq!((front.flag("b"), front.flag("a")), (Some(true), None));
        assert_eq!(
            (front.text("c"), front.text("g"), front.text("none")),
            (None, None, None)
        );
        assert_eq!(front.text("d"), Some("two lines"));
        assert_eq!(
            (front.list("e"), front.list("f")),
            (vec!["x".into(), "y z".into()], vec!["p".into(), "q".into()])
        );
    }

    #[test]
    fn items_of_a_line_stand_between_commas_or_blanks() {
        let front = front("a: Read, Bash(git add:*)  Edit\nb: Bash(npm run test, lint), Write");
        assert_eq!(front.list("a"), ["Read", "Bash(git add:*)", "Edit"]);
        assert_eq!(front.list("b"), ["Bash(npm run test, lint)", "Write"]);
    }

    #[test]
    fn a_colon_in_a_description_is_no_mistake() {
        let front = front("name: pdf\ndescription: Use this: it reads \"PDF\" files\nallowed-tools: Read");
        assert!(front.is_repaired);
        assert_eq!(front.text("description"), Some("Use this: it reads \"PDF\" files"));
        assert_eq!(front.text("name"), Some("pdf"));
    }

    #[test]
    fn a_hint_is_a_text_whatever_it_looks_like() {
        for (head, hint) in [
            ("argument-hint: [file]", "[file]"),
            ("argument-hint: [issue] [branch]", "[issue] [branch]"),
            ("argument-hint: \"[a]\"", "[a]"),
            ("argument-hint: add | remove: x", "add | remove: x"),
        ] {
            let front = front(head);
            assert_eq!(
                (front.text("argument-hint"), front.is_repaired),
                (Some(hint), false),
                "{head}"
            );
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_or_refused(head in "[-:\\[\\]{}|>&*!%@`\"'#, \na-c0-9]{0,80}", body in ".{0,40}") {
            let text = format!("---\n{head}\n---\n{body}");
            if let Ok((front, _)) = FrontMatter::split(&text) {
                for name in front.names().map(str::to_owned).collect::<Vec<_>>() {
                    front.list(&name);
                    front.flag(&name);
                }
            }
        }
    }

    #[test]
    fn a_hostile_head_is_refused_with_the_reason() {
        let deep = format!("a: {}1{}", "[".repeat(40), "]".repeat(40));
        let long = format!("a: {}", "x".repeat(HEAD_BYTES));
        let many = format!("a: [{}]", "1,".repeat(VALUES));
        for (head, why) in [
            ("a: &x [1]\nb: [*x, *x]", "its head has an alias (`*name`)"),
            (deep.as_str(), "its head is nested too deeply"),
            (long.as_str(), "its head is larger than 64 KiB"),
            (many.as_str(), "its head has too many values"),
            ("- a\n- b", "its head is not a list of `name: value`"),
        ] {
            let text = format!("---\n{head}\n---\n");
            assert_eq!(FrontMatter::split(&text).unwrap_err(), why);
        }
    }
}
