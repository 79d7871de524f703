//! Messages of one language.

use std::{
    borrow::Cow,
    collections::HashMap,
    sync::{LazyLock, Mutex, OnceLock, PoisonError},
};

use fluent_bundle::{FluentArgs, FluentResource, FluentValue, concurrent::FluentBundle};
use rustc_hash::{FxBuildHasher, FxHashMap};
use unic_langid::LanguageIdentifier;

use crate::text::{figure, sanitize};

/// A part of a file that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    /// Reason, from the Fluent parser, in English.
    pub because: String,
}

/// Messages of a language. Catalogues are few and never freed.
pub struct Catalogue {
    tag: &'static str,
    /// Messages without placeables: most of them, and the most used.
    plain: FxHashMap<&'static str, &'static str>,
    /// The other messages of a compiled-in language. They are parsed when the first of them is needed.
    unparsed: String,
    bundle: OnceLock<FluentBundle<&'static FluentResource>>,
    /// Fallback for messages that this one lacks.
    under: Option<&'static Self>,
}

impl Catalogue {
    /// Returns a catalogue without messages.
    pub fn empty() -> &'static Self {
        Self::read("en", Cow::Borrowed("")).0
    }

    /// Parses a file. Broken messages are left out and reported.
    pub fn read(tag: &str, text: Cow<'static, str>) -> (&'static Self, Vec<Fault>) {
        Self::read_over(None, tag, text)
    }

    /// Reads a file with a fallback for messages that it lacks. An owned text is the user's: it is sanitized and parsed at once.
    pub fn read_over(under: Option<&'static Self>, tag: &str, text: Cow<'static, str>) -> (&'static Self, Vec<Fault>) {
        let mut catalogue = Self {
            tag: kept(tag),
            plain: FxHashMap::default(),
            unparsed: String::new(),
            bundle: OnceLock::new(),
            under,
        };
        let mut faults = Vec::new();
        match text {
            Cow::Borrowed(text) => (catalogue.plain, catalogue.unparsed) = split(text),
            // A user's file: escape sequences must not reach the terminal.
            Cow::Owned(text) => {
                let (resource, found) = parse(sanitize(&text).into_owned());
                faults = found;
                catalogue.plain = resource.entries().filter_map(plain).collect();
                let _ = catalogue.bundle.set(catalogue.bundle_of(resource));
            }
        }
        (Box::leak(Box::new(catalogue)), faults)
    }

    fn bundle_of(&self, resource: &'static FluentResource) -> FluentBundle<&'static FluentResource> {
        let language: LanguageIdentifier = self.tag.parse().unwrap_or_default();
        let mut bundle = FluentBundle::new_concurrent(vec![language]);
        // Isolation marks around arguments are drawn differently by every terminal.
        bundle.set_use_isolating(false);
        bundle.add_resource_overriding(resource);
        let group = self.plain.get("figure-group").copied();
        let group = group.or_else(|| self.under?.plain("figure-group")).unwrap_or(",");
        // It cannot exist already: nothing else is added.
        let _ = bundle.add_function("NUMBER", move |values, _| number(values.first(), group));
        bundle
    }

    fn bundle(&self) -> &FluentBundle<&'static FluentResource> {
        self.bundle
            .get_or_init(|| self.bundle_of(parse(self.unparsed.clone()).0))
    }

    pub fn tag(&self) -> &'static str {
        self.tag
    }

    #[cfg(test)]
    pub fn has(&self, id: &str) -> bool {
        self.plain.contains_key(id) || self.bundle().has_message(id)
    }

    /// Returns a message that needs no arguments. `None` if there is none of that id.
    pub fn plain(&self, id: &str) -> Option<&'static str> {
        if let Some(text) = self.plain.get(id) {
            return Some(text);
        }
        // It refers to another message, or lacks its arguments.
        let own = self.own(id, &FluentArgs::new()).map(|it| kept(&it));
        own.or_else(|| self.under?.plain(id))
    }

    /// Returns all messages without placeables, by id.
    #[cfg(test)]
    pub fn all_plain(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.plain.iter().map(|(id, text)| (*id, *text))
    }

    /// Returns a message with these arguments. `None` if there is none of that id.
    pub fn format(&self, id: &str, arguments: &FluentArgs<'_>) -> Option<String> {
        if let Some(text) = self.plain.get(id) {
            return Some((*text).to_owned());
        }
        self.own(id, arguments).or_else(|| self.under?.format(id, arguments))
    }

    fn own(&self, id: &str, arguments: &FluentArgs<'_>) -> Option<String> {
        let bundle = self.bundle();
        let pattern = bundle.get_message(id)?.value()?;
        // Errors appear in the text, in braces, which is better than no text.
        let mut errors = Vec::new();
        Some(
            bundle
                .format_pattern(pattern, Some(arguments), &mut errors)
                .into_owned(),
        )
    }
}

/// Separates the messages of one line without placeables, by id, from the others, without the parser: parsing all of them would
/// be a good part of a start.
fn split(text: &'static str) -> (FxHashMap<&'static str, &'static str>, String) {
    // A line has about 60 bytes.
    let mut plain = FxHashMap::with_capacity_and_hasher(text.len() / 60, FxBuildHasher);
    let mut others = String::new();
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let goes_on = |it: &&str| it.starts_with([' ', '}']);
        let is_single = !lines.peek().is_some_and(goes_on);
        let message = line
            .split_once(" = ")
            .filter(|it| is_single && !goes_on(&line) && !it.1.contains('{') && !it.0.starts_with(['#', '-']));
        if let Some((id, text)) = message {
            plain.insert(id, text.trim_end());
        } else if !line.starts_with('#') {
            others.push_str(line);
        }
    }
    (plain, others)
}

/// Parses the text of a file. Broken messages are left out and reported.
fn parse(text: String) -> (&'static FluentResource, Vec<Fault>) {
    let (resource, faults) = match FluentResource::try_new(text.clone()) {
        Ok(resource) => (resource, Vec::new()),
        Err((resource, errors)) => {
            let line_of = |at: usize| text.get(..at).unwrap_or(&text).matches('\n').count() + 1;
            let faults = errors.iter().map(|it| Fault {
                line: line_of(it.slice.as_ref().map_or(it.pos.start, |slice| slice.start)),
                because: it.kind.to_string(),
            });
            (resource, faults.collect())
        }
    };
    (Box::leak(Box::new(resource)), faults)
}

/// Formats a count with group separators; other values are returned unchanged.
fn number<'a>(value: Option<&FluentValue<'a>>, group: &str) -> FluentValue<'a> {
    match value {
        Some(FluentValue::Number(number)) if number.value >= 0.0 => {
            let text = figure::grouped(number.value as u64);
            FluentValue::from(text.replace(',', group))
        }
        Some(other) => other.clone(),
        None => FluentValue::None,
    }
}

/// Returns id and text of a message without placeables.
fn plain(entry: &'static fluent_syntax::ast::Entry<&'static str>) -> Option<(&'static str, &'static str)> {
    use fluent_syntax::ast::{Entry, PatternElement};
    let Entry::Message(message) = entry else { return None };
    let elements = &message.value.as_ref()?.elements;
    let mut texts = elements.iter().map(|it| match it {
        PatternElement::TextElement { value } => Some(*value),
        PatternElement::Placeable { .. } => None,
    });
    if let [PatternElement::TextElement { value }] = elements.as_slice() {
        return Some((message.id.name, value));
    }
    let whole: String = texts.by_ref().collect::<Option<Vec<_>>>()?.concat();
    Some((message.id.name, kept(&whole)))
}

/// Interns a text: it is leaked once and never freed.
pub(super) fn kept(text: &str) -> &'static str {
    static KEPT: LazyLock<Mutex<HashMap<String, &'static str>>> = LazyLock::new(Mutex::default);
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(text) = kept.get(text) {
        return text;
    }
    let leaked: &'static str = Box::leak(text.to_owned().into_boxed_str());
    kept.insert(text.to_owned(), leaked);
    leaked
}
