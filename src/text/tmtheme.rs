//! Themes for code in TextMate's form (`.tmTheme`): what their scopes say about the roles that code is shown in.
//!
//! The file is a property list in XML, of which themes use a handful of elements; it is read here, with the place of each
//! value, so that a mistake can be named by its line. Which rule wins for a token is syntect's to say.

use std::{ops::Range, str::FromStr as _};

use syntect::{
    highlighting::ScopeSelectors,
    parsing::{Scope, ScopeStack},
};

use super::{Modifier, Role, WordList};

/// Dictionaries in dictionaries: a theme has four levels.
const DEEPEST: usize = 16;

/// Scopes below `source` that a role's colour is taken from; those that most themes name come first.
const TOKENS: [(Role, WordList); 6] = [
    (
        Role::Keyword,
        WordList("keyword.control keyword storage.modifier storage"),
    ),
    (
        Role::Type,
        WordList("entity.name.type storage.type support.type entity.name.class support.class"),
    ),
    (
        Role::Function,
        WordList("entity.name.function support.function variable.function"),
    ),
    (Role::String, WordList("string.quoted.double string")),
    (Role::Number, WordList("constant.numeric constant.language constant")),
    (Role::Comment, WordList("comment.line comment.block comment")),
];

/// Colour and style that a theme gives a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shade {
    pub role: Role,
    /// Red, green, blue.
    pub colour: (u8, u8, u8),
    pub modifier: Modifier,
}

/// A defect of a file, and the byte at which it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub at: Range<usize>,
    pub message: String,
}

/// Reads a theme. Defective parts are left out and returned.
pub fn read(text: &str) -> (Vec<Shade>, Vec<Wrong>) {
    let mut reader = PlistReader {
        text,
        at: 0,
        wrong: Vec::new(),
    };
    let rules = match reader.document() {
        Some(root) => rules(&root, &mut reader.wrong),
        None => Vec::new(),
    };
    if rules.is_empty() && reader.wrong.is_empty() {
        reader.fail(0..0, "not a theme: it has no `settings` with scopes".to_owned());
    }
    let shades = TOKENS.iter().filter_map(|(role, tokens)| {
        let best = |token: &str| {
            let stack = ScopeStack::from_str(&format!("source {token}")).ok()?;
            let stack: Vec<Scope> = stack.as_slice().to_vec();
            let fitting = rules.iter().filter_map(|it| Some((it.scopes.does_match(&stack)?, it)));
            // Of equal ones the later wins.
            fitting.max_by(|a, b| a.0.cmp(&b.0)).map(|it| it.1)
        };
        let rule = tokens.iter().find_map(best)?;
        Some(Shade {
            role: *role,
            colour: rule.colour,
            modifier: rule.mark,
        })
    });
    (shades.collect(), reader.wrong)
}

struct ScopeRule {
    scopes: ScopeSelectors,
    colour: (u8, u8, u8),
    mark: Modifier,
}

fn rules(root: &Value, wrong: &mut Vec<Wrong>) -> Vec<ScopeRule> {
    let Some(Value::List(entries)) = root.member("settings") else {
        return Vec::new();
    };
    let mut rules = Vec::new();
    for entry in entries {
        let (Some(Value::Text(scope, at)), Some(settings)) = (entry.member("scope"), entry.member("settings")) else {
            continue;
        };
        let scopes = match ScopeSelectors::from_str(scope) {
            Ok(it) => it,
            Err(error) => {
                wrong.push(Wrong {
                    at: at.clone(),
                    message: format!("`{scope}` is not a scope: {error:?}"),
                });
                continue;
            }
        };
        let Some(Value::Text(colour, at)) = settings.member("foreground") else {
            continue;
        };
        let Some(colour) = hex(colour) else {
            wrong.push(Wrong {
                at: at.clone(),
                message: format!("`{colour}` is not a color such as #7fc8a9"),
            });
            continue;
        };
        let mut mark = Modifier::NONE;
        if let Some(Value::Text(style, _)) = settings.member("fontStyle") {
            for word in style.split_whitespace() {
                mark |= match word {
                    "bold" => Modifier::BOLD,
                    "italic" => Modifier::ITALIC,
                    "underline" => Modifier::UNDERLINE,
                    _ => Modifier::NONE,
                };
            }
        }
        rules.push(ScopeRule { scopes, colour, mark });
    }
    rules
}

/// Parses `#rgb`, `#rrggbb` or `#rrggbbaa`; the alpha part is ignored, because nothing shines through a letter.
/// `None` for others.
fn hex(text: &str) -> Option<(u8, u8, u8)> {
    let digits = text.trim().strip_prefix('#')?;
    let digits: Vec<u8> = digits
        .chars()
        .map(|it| it.to_digit(16).map(|it| it as u8))
        .collect::<Option<_>>()?;
    let at = |place: usize| digits.get(place).copied().unwrap_or_default();
    let pair = |place: usize| at(place) * 16 + at(place + 1);
    match digits.len() {
        3 => Some((at(0) * 17, at(1) * 17, at(2) * 17)),
        6 | 8 => Some((pair(0), pair(2), pair(4))),
        _ => None,
    }
}

/// A value of a property list; kinds that themes do not use are `Other`.
enum Value {
    Text(String, Range<usize>),
    List(Vec<Value>),
    Members(Vec<(String, Value)>),
    Other,
}

impl Value {
    fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Members(members) => members.iter().find(|it| it.0 == name).map(|it| &it.1),
            Self::Text(..) | Self::List(_) | Self::Other => None,
        }
    }
}

struct PlistReader<'a> {
    text: &'a str,
    at: usize,
    wrong: Vec<Wrong>,
}

impl<'a> PlistReader<'a> {
    fn fail(&mut self, at: Range<usize>, message: String) {
        self.wrong.push(Wrong { at, message });
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn document(&mut self) -> Option<Value> {
        let (name, is_empty, at) = self.open()?;
        if name != "plist" || is_empty {
            self.fail(at, "a theme begins with `<plist>`".to_owned());
            return None;
        }
        self.value(0)
    }

    /// Skips blanks, comments and declarations.
    fn skip(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
            self.at += rest.len() - trimmed.len();
            let end = match () {
                () if trimmed.starts_with("<!--") => "-->",
                () if trimmed.starts_with("<?") => "?>",
                () if trimmed.starts_with("<!") => ">",
                () => return,
            };
            let Some(length) = trimmed.find(end) else {
                self.at = self.text.len();
                return;
            };
            self.at += length + end.len();
        }
    }

    /// Reads an opening tag. Returns its name, whether it closes itself, and its range.
    fn open(&mut self) -> Option<(&'a str, bool, Range<usize>)> {
        self.skip();
        let from = self.at;
        let rest = self.rest();
        let Some(inner) = rest.strip_prefix('<').filter(|it| !it.starts_with('/')) else {
            let what = if rest.is_empty() {
                "the file ends too early"
            } else {
                "a value is missing here"
            };
            self.fail(from..from, what.to_owned());
            return None;
        };
        let Some(end) = inner.find('>') else {
            self.fail(from..from, "a tag does not end".to_owned());
            return None;
        };
        let tag = inner.get(..end).unwrap_or_default();
        self.at = from + end + 2;
        let is_empty = tag.ends_with('/');
        let name = tag.trim_end_matches('/').split_whitespace().next().unwrap_or_default();
        Some((name, is_empty, from..self.at))
    }

    /// Takes the tag that closes an element.
    fn close(&mut self, name: &str, opened: &Range<usize>) -> Option<()> {
        self.skip();
        let tag = format!("</{name}>");
        if self.rest().starts_with(&tag) {
            self.at += tag.len();
            return Some(());
        }
        self.fail(opened.clone(), format!("`<{name}>` is not closed where it should be"));
        None
    }

    fn is_at_end(&mut self) -> bool {
        self.skip();
        self.rest().starts_with("</") || self.rest().is_empty()
    }

    /// The words between two tags, entities resolved.
    fn words(&mut self, name: &str, opened: &Range<usize>) -> Option<(String, Range<usize>)> {
        let from = self.at;
        let length = self.rest().find('<').unwrap_or(self.rest().len());
        let words = self.rest().get(..length).unwrap_or_default();
        self.at += length;
        self.close(name, opened)?;
        Some((resolved(words), from..from + length))
    }

    fn value(&mut self, depth: usize) -> Option<Value> {
        let (name, is_empty, at) = self.open()?;
        if depth > DEEPEST {
            self.fail(at, "nested too deep".to_owned());
            return None;
        }
        if is_empty {
            return Some(match name {
                "dict" => Value::Members(Vec::new()),
                "array" => Value::List(Vec::new()),
                "string" => Value::Text(String::new(), at),
                _ => Value::Other,
            });
        }
        match name {
            "dict" => {
                let mut members = Vec::new();
                while !self.is_at_end() {
                    let (key, _, key_at) = self.open()?;
                    if key != "key" {
                        self.fail(key_at, format!("`<key>` is missing before `<{key}>`"));
                        return None;
                    }
                    let (key, _) = self.words("key", &key_at)?;
                    members.push((key, self.value(depth + 1)?));
                }
                self.close(name, &at)?;
                Some(Value::Members(members))
            }
            "array" => {
                let mut list = Vec::new();
                while !self.is_at_end() {
                    list.push(self.value(depth + 1)?);
                }
                self.close(name, &at)?;
                Some(Value::List(list))
            }
            "string" => {
                let (text, at) = self.words(name, &at)?;
                Some(Value::Text(text, at))
            }
            "integer" | "real" | "date" | "data" | "true" | "false" => {
                self.words(name, &at)?;
                Some(Value::Other)
            }
            other => {
                self.fail(at, format!("a property list has no `<{other}>`"));
                None
            }
        }
    }
}

fn resolved(text: &str) -> String {
    // The ampersand last, so that nothing is resolved twice.
    let pairs = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&apos;", "'"),
        ("&amp;", "&"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn theme(rules: &[(&str, &str, &str)]) -> String {
        let rule = |(scope, colour, style): &(&str, &str, &str)| {
            format!(
                "<dict><key>name</key><string>n</string><key>scope</key><string>{scope}</string>\n<key>settings</key><dict><key>foreground</key>\n\
                 <string>{colour}</string><key>fontStyle</key><string>{style}</string></dict></dict>\n"
            )
        };
        let rules: String = rules.iter().map(rule).collect();
        format!(
            "<?xml version=\"1.0\"?>\n<!DOCTYPE plist PUBLIC \"-//x\">\n<plist version=\"1.0\"><!-- mine --><dict>\n<key>settings</key><array>\n\
             <dict><key>settings</key><dict><key>background</key><string>#101010</string></dict></dict>\n{rules}</array></dict></plist>"
        )
    }

    #[test]
    fn scopes_say_what_roles_look_like() {
        let text = theme(&[
            ("comment", "#808898", "italic"),
            ("string, constant.other", "#a8cc8c80", ""),
            ("keyword", "#f00", ""),
            ("source keyword.control", "#c099e6", "bold underline"),
            ("entity.name.function - entity.name.function.macro", "#8ab4f0", ""),
        ]);
        let (shades, wrong) = read(&text);
        assert_eq!(wrong, []);
        let shade = |role, colour, mark| Shade {
            role,
            colour,
            modifier: mark,
        };
        assert_eq!(
            shades,
            [
                shade(Role::Keyword, (0xc0, 0x99, 0xe6), Modifier::BOLD | Modifier::UNDERLINE),
                shade(Role::Function, (0x8a, 0xb4, 0xf0), Modifier::NONE),
                shade(Role::String, (0xa8, 0xcc, 0x8c), Modifier::NONE),
                shade(Role::Comment, (0x80, 0x88, 0x98), Modifier::ITALIC),
            ]
        );
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        let good = theme(&[("string", "#a8cc8c", "")]);
        let line = |text: &str, at: usize| text.get(..at).unwrap_or_default().matches('\n').count() + 1;
        for (text, at, message) in [
            (
                theme(&[("string", "blue", "")]),
                8,
                "`blue` is not a color such as #7fc8a9",
            ),
            (
                good.replace("</plist>", "").replace("</array>", ""),
                4,
                "`<array>` is not closed where it should be",
            ),
            (
                good.replace("<key>scope</key>", ""),
                6,
                "`<key>` is missing before `<string>`",
            ),
            (good.replace("<array>", "<list>"), 4, "a property list has no `<list>`"),
            ("{ \"name\": \"a\" }".to_owned(), 1, "a value is missing here"),
            (String::new(), 1, "the file ends too early"),
            (
                "<plist><dict></dict></plist>".to_owned(),
                1,
                "not a theme: it has no `settings` with scopes",
            ),
        ] {
            let (_, wrong) = read(&text);
            let found: Vec<_> = wrong
                .iter()
                .map(|it| (line(&text, it.at.start), it.message.as_str()))
                .collect();
            assert_eq!(found, [(at, message)], "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(text in "(<plist>|<dict>|</dict>|<key>|</key>|<string>|</string>|<array>|</array>|settings|scope|<!--|-->|<|>|&amp;|é|[a-z ]){0,40}") {
            read(&text);
        }
    }
}
