//! Kinds of values: parsing from a file, a variable or a flag, and storing in a field of [`Settings`](super::Settings).

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf, time::Duration};

use toml::de::{DeInteger, DeValue};

use super::{KeySource, Secret, suggestion};

/// Kind of value that a key takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ValueKind {
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    Flag,
    /// Integer in this range, both ends included.
    Whole {
        least: u64,
        most: u64,
    },
    /// Finite number that is not negative.
    Number,
    /// Positive duration such as `"60s"`.
    Duration,
    /// A duration that may be nothing.
    Grace,
    /// An `http://` or `https://` address without a password.
    Url,
    /// Address of a proxy, which may hold a password, or `none`.
    Proxy,
    Path,
    List,
    /// Approval rules: texts, or tables of a rule and its examples.
    Rules,
    /// Table of HTTP header names and values.
    Headers,
    /// Table of variables and their values.
    Variables,
    Secret,
    /// A program with its arguments, or a line for the shell.
    Command,
    /// Some of these words, in any order.
    Words(&'static [&'static str]),
}

/// An approval rule as written in the settings, with examples that are checked when it is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfiguredRule {
    /// Source text, such as `Shell(git push)`.
    pub rule: String,
    /// Calls that the rule must match.
    pub matches: Vec<String>,
    /// Calls that the rule must not match.
    pub not_matches: Vec<String>,
}

impl ConfiguredRule {
    /// Returns the rule that stands for settings which cannot be read: nobody knows what they forbid.
    pub fn unreadable() -> Self {
        Self::new("(settings that cannot be read)")
    }

    pub fn new(rule: &str) -> Self {
        Self {
            rule: rule.to_owned(),
            ..Self::default()
        }
    }
}

/// A value, parsed and checked.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    Flag(bool),
    Whole(u64),
    Number(f64),
    Duration(Duration),
    List(Vec<String>),
    Rules(Vec<ConfiguredRule>),
    Headers(BTreeMap<String, Secret>),
    Variables(BTreeMap<String, String>),
    Secret(Secret),
}

/// Reason why a value is refused, and a suggested fix.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InvalidValue {
    pub message: String,
    pub hint: Option<String>,
}

fn invalid(message: impl Into<String>, hint: impl Into<Option<String>>) -> InvalidValue {
    InvalidValue {
        message: message.into(),
        hint: hint.into(),
    }
}

impl ValueKind {
    /// Returns a description for the reference.
    pub fn describe(self) -> Cow<'static, str> {
        match self {
            Self::Text => "text".into(),
            Self::Word(words) => words.join(" | ").into(),
            Self::Flag => "true | false".into(),
            Self::Whole { least, most: u64::MAX } => format!("whole number from {least}").into(),
            Self::Whole { least, most } => format!("whole number, {least} to {most}").into(),
            Self::Number => "number".into(),
            Self::Duration | Self::Grace => "duration, such as \"60s\"".into(),
            Self::Url => "address".into(),
            Self::Proxy => "address of a proxy | none".into(),
            Self::Path => "path".into(),
            Self::List => "list of texts".into(),
            Self::Words(words) => format!("list of {}", words.join(" | ")).into(),
            Self::Rules => "list of rules".into(),
            Self::Headers | Self::Variables => "table of texts".into(),
            Self::Secret => "secret text".into(),
            Self::Command => "command, as a text for the shell or a list".into(),
        }
    }

    /// Reads a value from TOML.
    pub(super) fn read(self, value: &DeValue<'_>) -> Result<Value, InvalidValue> {
        match (self, value) {
            (
                Self::Text
                | Self::Word(_)
                | Self::Duration
                | Self::Grace
                | Self::Url
                | Self::Path
                | Self::Proxy
                | Self::Secret
                | Self::Command,
                DeValue::String(text),
            ) => self.parse(text),
            (Self::Flag, DeValue::Boolean(it)) => Ok(Value::Flag(*it)),
            (Self::Whole { .. }, DeValue::Integer(it)) => match whole(it) {
                Some(it) => self.in_range(it),
                None => Err(self.out_of_range(&it.to_string())),
            },
            (Self::Number, DeValue::Integer(it)) => number(it.as_str(), it.radix()),
            (Self::Number, DeValue::Float(it)) => number(it.as_str(), 10),
            (Self::List | Self::Command | Self::Words(_), DeValue::Array(items)) => {
                let texts = items.iter().map(|it| it.get_ref().as_str().map(str::to_owned));
                match texts.collect::<Option<Vec<_>>>() {
                    Some(texts) => self.listed(texts),
                    None => Err(invalid("every entry of the list must be a text", None)),
                }
            }
            (Self::Rules, DeValue::Array(items)) => {
                let rules = items.iter().map(|it| guard(it.get_ref()));
                rules.collect::<Result<_, _>>().map(Value::Rules)
            }
            (Self::Headers | Self::Variables, DeValue::Table(entries)) => {
                let what = if self == Self::Headers { "header" } else { "variable" };
                let mut headers = BTreeMap::new();
                for (name, value) in entries {
                    let name = name.get_ref().as_ref();
                    let Some(text) = value.get_ref().as_str() else {
                        return Err(invalid(format!("the {what} `{name}` must be a text"), None));
                    };
                    let token = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&it);
                    if name.is_empty() || !name.bytes().all(token) {
                        return Err(invalid(format!("`{name}` cannot be the name of a {what}"), None));
                    }
                    if text.chars().any(|it| it.is_control() && it != '\t') {
                        return Err(invalid(format!("the {what} `{name}` has a control character"), None));
                    }
                    headers.insert(name.to_owned(), text.to_owned());
                }
                Ok(if self == Self::Headers {
                    Value::Headers(headers.into_iter().map(|(name, it)| (name, Secret::new(it))).collect())
                } else {
                    Value::Variables(headers)
                })
            }
            (_, found) => {
                let hint = match (self, found) {
                    (Self::Duration | Self::Grace, DeValue::Integer(it)) => Some(format!("\"{it}s\" for seconds")),
                    (Self::Text | Self::Word(_) | Self::Path | Self::Url, _) => Some("put text in quotes".to_owned()),
                    (Self::Flag | Self::Whole { .. } | Self::Number, DeValue::String(_)) => {
                        Some("without quotes".to_owned())
                    }
                    _ => None,
                };
                let message = format!("expected {}, found {}", self.describe(), article(found.type_str()));
                Err(invalid(message, hint))
            }
        }
    }

    /// Parses a value from a variable or a flag.
    pub(super) fn parse(self, text: &str) -> Result<Value, InvalidValue> {
        // A list may be written as in the file.
        if let Some(texts) = array(text) {
            match self {
                Self::List | Self::Command | Self::Words(_) => return self.listed(texts),
                Self::Rules => return Ok(Value::Rules(texts.iter().map(|it| ConfiguredRule::new(it)).collect())),
                _ => {}
            }
        }
        match self {
            Self::Path if text.is_empty() => Err(invalid("the path is empty", None)),
            Self::Text | Self::Path => Ok(Value::Text(text.to_owned())),
            Self::Word(words) => {
                if let Some(word) = words.iter().find(|it| it.eq_ignore_ascii_case(text)) {
                    return Ok(Value::Text((*word).to_owned()));
                }
                let hint =
                    suggestion(text, words.iter().copied()).unwrap_or_else(|| format!("one of {}", words.join(", ")));
                Err(invalid(format!("`{text}` is not among its values"), hint))
            }
            Self::Flag => match text.to_ascii_lowercase().as_str() {
                "true" | "1" | "yes" | "on" => Ok(Value::Flag(true)),
                "false" | "0" | "no" | "off" => Ok(Value::Flag(false)),
                _ => Err(invalid(format!("`{text}` is neither true nor false"), None)),
            },
            Self::Whole { .. } => match text.trim().replace('_', "").parse() {
                Ok(it) => self.in_range(it),
                Err(_) => Err(self.out_of_range(text)),
            },
            Self::Number => number(text, 10),
            Self::Duration | Self::Grace => match duration(text) {
                Some(it) if it.is_zero() && matches!(self, Self::Duration) => {
                    Err(invalid("the duration must be longer than nothing", None))
                }
                Some(it) => Ok(Value::Duration(it)),
                None => {
                    let hint = "a number and its unit: \"500ms\", \"60s\", \"2m\", \"1h\"".to_owned();
                    Err(invalid(format!("`{text}` is not a duration"), hint))
                }
            },
            Self::Url => address(text),
            Self::Proxy => proxy(text),
            Self::List | Self::Words(_) => {
                let items = text.split(',').map(str::trim).filter(|it| !it.is_empty());
                self.listed(items.map(str::to_owned).collect())
            }
            // A rule may contain commas, so the text is one rule.
            Self::Rules => {
                let rule = Some(text.trim()).filter(|it| !it.is_empty()).map(ConfiguredRule::new);
                Ok(Value::Rules(rule.into_iter().collect()))
            }
            Self::Headers => Err(invalid(
                "headers are a table; write one line per header in config.toml",
                None,
            )),
            Self::Variables => Err(invalid(
                "variables are a table; write one line per variable in config.toml",
                None,
            )),
            Self::Secret => {
                let text = text.trim();
                if text.is_empty() || text.chars().any(char::is_control) {
                    return Err(invalid("the secret is empty or has more than one line", None));
                }
                Ok(Value::Secret(Secret::new(text)))
            }
            Self::Command => {
                if text.trim().is_empty() {
                    return Err(invalid("the command is empty", None));
                }
                self.listed(["sh", "-c", text].map(str::to_owned).to_vec())
            }
        }
    }

    fn listed(self, texts: Vec<String>) -> Result<Value, InvalidValue> {
        if self == Self::Command && texts.first().is_none_or(std::string::String::is_empty) {
            return Err(invalid("the command is empty", None));
        }
        let Self::Words(words) = self else {
            return Ok(Value::List(texts));
        };
        let mut list = Vec::new();
        for text in texts {
            match Self::Word(words).parse(&text)? {
                Value::Text(word) if !list.contains(&word) => list.push(word),
                _ => {}
            }
        }
        Ok(Value::List(list))
    }

    fn in_range(self, it: u64) -> Result<Value, InvalidValue> {
        match self {
            Self::Whole { least, most } if (least..=most).contains(&it) => Ok(Value::Whole(it)),
            _ => Err(self.out_of_range(&it.to_string())),
        }
    }

    fn out_of_range(self, text: &str) -> InvalidValue {
        invalid(format!("`{text}` is not a {}", self.describe()), None)
    }
}

/// Reads a rule: a text, or a table of it and its examples.
fn guard(value: &DeValue<'_>) -> Result<ConfiguredRule, InvalidValue> {
    let hint = || {
        r#""Shell(git push)" or { rule = "Shell(git push)", match = ["git push origin"], not_match = ["git push; ls"] }"#.to_owned()
    };
    if let Some(rule) = value.as_str() {
        return Ok(ConfiguredRule::new(rule));
    }
    let Some(table) = value.as_table() else {
        return Err(invalid("every entry of the list must be a text or a table", hint()));
    };
    let mut guard = ConfiguredRule::new("");
    for (name, value) in table {
        let name = name.get_ref().as_ref();
        let value = value.get_ref();
        let texts = || match value {
            DeValue::Array(items) => items
                .iter()
                .map(|it| it.get_ref().as_str().map(str::to_owned))
                .collect(),
            it => it.as_str().map(|it| vec![it.to_owned()]),
        };
        let filled = match name {
            "rule" => value.as_str().map(|it| it.clone_into(&mut guard.rule)),
            "match" => texts().map(|it| guard.matches = it),
            "not_match" => texts().map(|it| guard.not_matches = it),
            _ => {
                let hint = suggestion(name, ["rule", "match", "not_match"]).unwrap_or_else(hint);
                return Err(invalid(format!("a rule has no `{name}`"), hint));
            }
        };
        if filled.is_none() {
            return Err(invalid(format!("the `{name}` of a rule is text"), hint()));
        }
    }
    if guard.rule.is_empty() {
        return Err(invalid("an entry of the list has no `rule`", hint()));
    }
    Ok(guard)
}

fn article(kind: &str) -> String {
    let vowel = kind.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {kind}", if vowel { "an" } else { "a" })
}

fn whole(it: &DeInteger<'_>) -> Option<u64> {
    u64::from_str_radix(it.as_str(), it.radix()).ok()
}

/// Returns the texts of a list in TOML syntax; `None` if it is not one.
fn array(text: &str) -> Option<Vec<String>> {
    let text = text.trim();
    if !text.starts_with('[') {
        return None;
    }
    let mut table: toml::Table = toml::from_str(&format!("list = {text}")).ok()?;
    table.remove("list")?.try_into().ok()
}

fn number(text: &str, radix: u32) -> Result<Value, InvalidValue> {
    let parsed = if radix == 10 {
        text.trim().replace('_', "").parse::<f64>().ok()
    } else {
        u64::from_str_radix(text, radix).ok().map(|it| it as f64)
    };
    match parsed {
        Some(it) if it.is_finite() && it >= 0.0 => Ok(Value::Number(it)),
        _ => Err(invalid(format!("`{text}` is not a number from 0"), None)),
    }
}

/// Parses `500ms`, `60s`, `2m`, `1h`. `None` for other texts and for a year or more.
pub fn duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    let digits = text.find(|it: char| !it.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(digits)?;
    let number: u64 = number.parse().ok()?;
    let seconds = |each: u64| number.checked_mul(each).map(Duration::from_secs);
    // A year or more is a typing error, and its sums would overflow clocks.
    let found = match unit.trim() {
        "ms" => Some(Duration::from_millis(number)),
        "s" => seconds(1),
        "m" | "min" => seconds(60),
        "h" => seconds(3600),
        _ => None,
    };
    found.filter(|it| it.as_secs() < 366 * 24 * 3600)
}

/// Returns a duration as it would be written in a file.
pub(super) fn written(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    match (seconds, millis) {
        (0, 0) => "0s".to_owned(),
        (_, 1..) => format!("{}ms", duration.as_millis()),
        (it, 0) if it % 3600 == 0 => format!("{}h", it / 3600),
        (it, 0) if it % 60 == 0 && it > 60 => format!("{}m", it / 60),
        (it, 0) => format!("{it}s"),
    }
}

fn address(text: &str) -> Result<Value, InvalidValue> {
    let text = text.trim();
    let start = "an address starts with https:// or http://".to_owned();
    let not_one = || {
        // The message must not repeat a password.
        let shown = (!text.contains('@')).then(|| format!("`{text}`"));
        invalid(
            format!("{} is not an address", shown.as_deref().unwrap_or("this")),
            start.clone(),
        )
    };
    let url = url::Url::parse(text).map_err(|_| not_one())?;
    if !url.username().is_empty() || url.password().is_some() {
        let hint = "a token has its own key, and shows in fewer places".to_owned();
        return Err(invalid("the address contains a user name or a password", hint));
    }
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(not_one());
    }
    Ok(Value::Text(text.trim_end_matches('/').to_owned()))
}

/// Parses a proxy address. The message never repeats the text, which may hold a password.
fn proxy(text: &str) -> Result<Value, InvalidValue> {
    let text = text.trim();
    let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"];
    let is_fit =
        text == "none" || url::Url::parse(text).is_ok_and(|it| schemes.contains(&it.scheme()) && it.host().is_some());
    if is_fit {
        return Ok(Value::Secret(Secret::new(text)));
    }
    let hint = "http://HOST:PORT, socks5h://HOST:PORT, or none".to_owned();
    Err(invalid("this is not the address of a proxy", hint))
}

/// Declares [`Slot`], with a conversion from each type of field.
macro_rules! slots {
    ($($variant:ident($type:ty),)*) => {
        /// Reference to the field of a setting.
        pub(super) enum Slot<'a> {
            $($variant(&'a mut $type),)*
            /// An API key or token. The alternatives replace each other, so the last one set counts.
            Key(&'a mut KeySource, KeyMethod),
        }

        $(impl<'a> From<&'a mut $type> for Slot<'a> {
            fn from(it: &'a mut $type) -> Self {
                Self::$variant(it)
            }
        })*
    };
}

slots! {
    Text(String),
    MaybeText(Option<String>),
    Flag(bool),
    MaybeFlag(Option<bool>),
    Whole(u64),
    MaybeWhole(Option<u64>),
    MaybeNumber(Option<f64>),
    Duration(Duration),
    Path(Option<PathBuf>),
    List(Vec<String>),
    Rules(Vec<ConfiguredRule>),
    MaybeList(Option<Vec<String>>),
    Headers(BTreeMap<String, Secret>),
    Variables(BTreeMap<String, String>),
    Secret(Option<Secret>),
}

/// Alternative for setting an API key or token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyMethod {
    Given,
    Variable,
    Command,
    File,
    Keyring,
}

impl Slot<'_> {
    /// Stores a value that the key's [`ValueKind`] has read. Returns false if the kind does not fit the field.
    pub(super) fn put(self, value: Value, home: Option<&std::path::Path>) -> bool {
        let path = |text: String| match (text.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => PathBuf::from(text),
        };
        match (self, value) {
            (Self::Text(slot), Value::Text(it)) => *slot = it,
            (Self::MaybeText(slot), Value::Text(it)) => *slot = Some(it),
            (Self::Flag(slot), Value::Flag(it)) => *slot = it,
            (Self::MaybeFlag(slot), Value::Flag(it)) => *slot = Some(it),
            (Self::Whole(slot), Value::Whole(it)) => *slot = it,
            (Self::MaybeWhole(slot), Value::Whole(it)) => *slot = Some(it),
            (Self::MaybeNumber(slot), Value::Number(it)) => *slot = Some(it),
            (Self::Duration(slot), Value::Duration(it)) => *slot = it,
            (Self::Path(slot), Value::Text(it)) => *slot = Some(path(it)),
            (Self::List(slot), Value::List(it)) => *slot = it,
            (Self::Rules(slot), Value::Rules(it)) => *slot = it,
            (Self::MaybeList(slot), Value::List(it)) => *slot = Some(it),
            (Self::Headers(slot), Value::Headers(it)) => *slot = it,
            (Self::Variables(slot), Value::Variables(it)) => *slot = it,
            (Self::Secret(slot), Value::Secret(it)) => *slot = Some(it),
            (Self::Key(slot, KeyMethod::Given), Value::Secret(it)) => *slot = KeySource::Given(it),
            (Self::Key(slot, KeyMethod::Variable), Value::Text(it)) => *slot = KeySource::Variables(vec![it]),
            (Self::Key(slot, KeyMethod::Command), Value::List(it)) => *slot = KeySource::Command(it),
            (Self::Key(slot, KeyMethod::File), Value::Text(it)) => *slot = KeySource::File(path(it)),
            (Self::Key(slot, KeyMethod::Keyring), Value::Text(it)) => *slot = KeySource::Keyring(it),
            _ => return false,
        }
        true
    }

    /// Returns the value as it would be written in a file, with secrets hidden. `None` if unset.
    pub(super) fn show(&self, kind: ValueKind) -> Option<String> {
        let quoted = |it: &str| toml::Value::String(it.to_owned()).to_string();
        let list = |it: &[String]| format!("[{}]", it.iter().map(|it| quoted(it)).collect::<Vec<_>>().join(", "));
        match self {
            Self::Text(it) => Some(quoted(it)),
            Self::MaybeText(it) => it.as_deref().map(quoted),
            Self::Flag(it) => Some(it.to_string()),
            Self::MaybeFlag(it) => it.map(|it| it.to_string()),
            Self::Whole(it) => Some(it.to_string()),
            Self::MaybeWhole(it) => it.map(|it| it.to_string()),
            Self::MaybeNumber(it) => it.map(|it| it.to_string()),
            Self::Duration(it) => Some(quoted(&written(**it))),
            Self::Path(it) => it.as_deref().map(|it| quoted(&it.to_string_lossy())),
            Self::List(it) => Some(list(it)),
            Self::MaybeList(it) => it.as_deref().map(list),
            Self::Rules(it) => {
                let rules: Vec<_> = it.iter().map(|it| it.rule.clone()).collect();
                Some(list(&rules))
            }
            Self::Headers(it) if it.is_empty() => None,
            Self::Headers(it) => {
                let entries = it.keys().map(|name| format!("{} = \"***\"", quoted(name)));
                Some(format!("{{ {} }}", entries.collect::<Vec<_>>().join(", ")))
            }
            Self::Variables(it) if it.is_empty() => None,
            Self::Variables(it) => {
                let entries = it.keys().map(|name| format!("{} = \"***\"", quoted(name)));
                Some(format!("{{ {} }}", entries.collect::<Vec<_>>().join(", ")))
            }
            Self::Secret(it) => it.as_ref().map(|it| match it.expose() {
                // A proxy is hidden only if it contains a password.
                text if kind == ValueKind::Proxy && !text.contains('@') => quoted(text),
                _ => "\"***\"".to_owned(),
            }),
            Self::Key(KeySource::Given(_), KeyMethod::Given) => Some("\"***\"".to_owned()),
            Self::Key(KeySource::Variables(names), KeyMethod::Variable) => Some(quoted(&names.join(", "))),
            Self::Key(KeySource::Command(words), KeyMethod::Command) => match words.as_slice() {
                [shell, option, line] if shell == "sh" && option == "-c" => Some(quoted(line)),
                words => Some(list(words)),
            },
            Self::Key(KeySource::File(path), KeyMethod::File) => Some(quoted(&path.to_string_lossy())),
            Self::Key(KeySource::Keyring(name), KeyMethod::Keyring) => Some(quoted(name)),
            Self::Key(..) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_number_and_a_unit() {
        let millis = Duration::from_millis;
        for (text, expected) in [
            ("500ms", Some(millis(500))),
            ("60s", Some(millis(60_000))),
            (" 2 m ", Some(millis(120_000))),
            ("3min", Some(millis(180_000))),
            ("1h", Some(millis(3_600_000))),
            ("0s", Some(millis(0))),
            ("60", None),
            ("s", None),
            ("1.5s", None),
            ("-1s", None),
            ("1d", None),
            ("", None),
            ("9999999999h", None),
            ("99999999999999999999s", None),
            ("18446744073709551615h", None),
        ] {
            assert_eq!(duration(text), expected, "{text}");
        }
    }

    #[test]
    fn a_duration_is_written_as_it_can_be_read() {
        for (millis, expected) in [
            (0, "0s"),
            (1, "1ms"),
            (1500, "1500ms"),
            (60_000, "60s"),
            (120_000, "2m"),
            (7_200_000, "2h"),
        ] {
            let it = Duration::from_millis(millis);
            assert_eq!(written(it), expected);
            assert_eq!(duration(expected), Some(it));
        }
    }

    #[test]
    fn a_proxy_is_an_address_or_none_and_its_password_is_never_repeated() {
        for (text, is_fit) in [
            ("none", true),
            ("http://proxy:3128", true),
            ("socks5h://me:hidden@proxy:1", true),
            ("proxy:3128", false),
            ("me:hidden@proxy", false),
            ("ftp://me:hidden@proxy", false),
            ("", false),
        ] {
            let found = ValueKind::Proxy.parse(text);
            assert_eq!(found.is_ok(), is_fit, "{text}");
            assert!(!format!("{found:?}").contains("hidden"), "{text}");
        }
        for (text, expected) in [
            ("http://proxy:1", "\"http://proxy:1\""),
            ("http://a:b@proxy:1", "\"***\""),
            ("none", "\"none\""),
        ] {
            assert_eq!(
                Slot::Secret(&mut Some(Secret::new(text)))
                    .show(ValueKind::Proxy)
                    .as_deref(),
                Some(expected)
            );
        }
    }

    #[test]
    fn an_address_is_http_and_holds_no_password() {
        let text = |it: &str| Ok(Value::Text(it.to_owned()));
        for (given, expected) in [
            ("https://api.example.com/v1/", text("https://api.example.com/v1")),
            (" http://[::1]:8080 ", text("http://[::1]:8080")),
            (
                "https://me:pw@example.com",
                Err("the address contains a user name or a password".to_owned()),
            ),
            (
                "ftp://me:pw@example.com",
                Err("the address contains a user name or a password".to_owned()),
            ),
            (
                "file:///etc/passwd",
                Err("`file:///etc/passwd` is not an address".to_owned()),
            ),
            ("example.com", Err("`example.com` is not an address".to_owned())),
            ("me:pw@example.com", Err("this is not an address".to_owned())),
        ] {
            assert_eq!(
                ValueKind::Url.parse(given).map_err(|it| it.message),
                expected,
                "{given}"
            );
        }
    }
}
