//! Texts of the interface in the user's language: Fluent messages, one file per language.
//!
//! Documents, error documents, logs and prompts are data: they are the same for every user and stay in English. Texts
//! drawn around them are named by an id and stored in `assets/locale/<tag>.ftl`.
//!
//! ```
//! use sheaf::t;
//! assert_eq!(t!("phase-writing"), "writing");
//! assert_eq!(t!("composer-unseen", count = 3), "3 new ↓");
//! ```
//!
//! To add a language, add one file: `<tag>.ftl` in the user's `locale` folder, or in `assets/locale` with a line in
//! [`LANGUAGES`]. Messages that a file lacks appear in English.

mod catalogue;
pub mod figure;

use std::{
    borrow::Cow,
    path::Path,
    sync::{LazyLock, OnceLock, PoisonError, RwLock},
};

use crate::os::file;

pub use catalogue::{Catalogue, Fault};
use fluent_bundle::FluentArgs;
pub use fluent_bundle::FluentValue;

/// A language compiled into the program.
pub struct Language {
    /// BCP 47 tag, as short as possible: `en`.
    pub tag: &'static str,
    /// Its own name for itself.
    pub name: &'static str,
    /// Fluent source.
    pub text: &'static str,
}

/// All compiled-in languages. The first one, English, is complete: the others fall back to it.
pub static LANGUAGES: &[Language] = &[
    Language {
        tag: "en",
        name: "English",
        text: include_str!("../../assets/locale/en.ftl"),
    },
    Language {
        tag: "de",
        name: "Deutsch",
        text: include_str!("../../assets/locale/de.ftl"),
    },
];

static ENGLISH: LazyLock<&'static Catalogue> = LazyLock::new(|| built_in("en").unwrap_or_else(Catalogue::empty));

/// Chosen catalogue; `None` for English.
static CHOSEN: RwLock<Option<&'static Catalogue>> = RwLock::new(None);

#[cfg(test)]
thread_local! {
    /// Language of a test's own thread, so that parallel tests still see English.
    static OF_TEST: std::cell::Cell<Option<&'static Catalogue>> = const { std::cell::Cell::new(None) };
}

/// Returns a message without arguments. The id itself if no file has it, which a test reports.
///
/// Messages are sanitized when their file is read, so they can be shown directly.
pub fn text(id: &str) -> &'static str {
    let chosen = chosen();
    chosen
        .and_then(|it| it.plain(id))
        .or_else(|| ENGLISH.plain(id))
        .unwrap_or_else(|| catalogue::kept(id))
}

/// Returns a message without arguments, or `english` if English is chosen or the language lacks it: for texts whose English is
/// the documentation of an item.
pub fn text_or(id: &str, english: &'static str) -> &'static str {
    chosen().and_then(|it| it.plain(id)).unwrap_or(english)
}

/// Returns a message without arguments in English: for references, and to find things by their English name.
pub fn english(id: &str) -> &'static str {
    ENGLISH.plain(id).unwrap_or_else(|| catalogue::kept(id))
}

/// Returns true if English has the message.
#[cfg(test)]
pub fn has(id: &str) -> bool {
    ENGLISH.has(id)
}

/// Returns a message with arguments. Arguments are inserted unchanged: the caller sanitizes the result or the
/// arguments.
pub fn format(id: &str, arguments: &[(&str, FluentValue<'_>)]) -> String {
    let arguments: FluentArgs<'_> = arguments.iter().cloned().collect();
    chosen()
        .and_then(|it| it.format(id, &arguments))
        .or_else(|| ENGLISH.format(id, &arguments))
        .unwrap_or_else(|| id.to_owned())
}

/// Returns the tag of the chosen language.
pub fn tag() -> &'static str {
    chosen().map_or("en", Catalogue::tag)
}

/// Switches the interface to another language.
pub fn choose(catalogue: &'static Catalogue) {
    *CHOSEN.write().unwrap_or_else(PoisonError::into_inner) = Some(catalogue);
}

/// Returns the catalogue of a compiled-in language, which is read once.
pub fn built_in(tag: &str) -> Option<&'static Catalogue> {
    static READ: [OnceLock<&'static Catalogue>; LANGUAGES.len()] = [const { OnceLock::new() }; LANGUAGES.len()];
    let (language, read) = LANGUAGES.iter().zip(&READ).find(|it| it.0.tag == tag)?;
    Some(read.get_or_init(|| Catalogue::read(language.tag, Cow::Borrowed(language.text)).0))
}

/// Returns the best catalogue for the wanted languages (best first), and the faults of the user's file if it is one.
///
/// The user's file wins over a compiled-in language: `de-AT` looks for `de-AT.ftl`, `de.ftl`, then the compiled-in
/// German. `None` means English.
///
/// # Errors
///
/// A file of the user's exists but cannot be read.
pub fn find(wanted: &[String], folder: Option<&Path>) -> Result<(Option<&'static Catalogue>, Vec<Fault>), file::Error> {
    for tag in wanted {
        let mut tags = vec![tag.as_str()];
        tags.extend(tag.split_once('-').map(|it| it.0));
        for tag in tags {
            if let Some(folder) = folder {
                match file::read(&folder.join(format!("{tag}.ftl")), MOST_BYTES) {
                    Ok(bytes) => {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        // A compiled-in language of the same tag, or of its first part, fills the gaps.
                        let ours = built_in(tag).or_else(|| built_in(tag.split_once('-')?.0));
                        let (catalogue, faults) = Catalogue::read_over(ours, tag, Cow::Owned(text));
                        return Ok((Some(catalogue), faults));
                    }
                    Err(error) if error.is_absent() => {}
                    Err(error) => return Err(error),
                }
            }
            if tag == "en" {
                return Ok((None, Vec::new()));
            }
            if let Some(catalogue) = built_in(tag) {
                return Ok((Some(catalogue), Vec::new()));
            }
        }
    }
    Ok((None, Vec::new()))
}

/// Maximum size of a user's file, in bytes.
const MOST_BYTES: u64 = 4 << 20;

/// Returns the languages that the environment asks for, best first, by gettext's rules: `LANGUAGE` counts unless the
/// locale is `C`. `get` returns a variable's value.
pub fn of_environment(get: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let set = |name: &str| get(name).filter(|it| !it.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_MESSAGES")).or_else(|| set("LANG"));
    let tag = |locale: &str| -> Option<String> {
        let name = locale.split(['.', '@']).next().unwrap_or_default().replace('_', "-");
        let is_tag = !name.is_empty() && name.chars().all(|it| it.is_ascii_alphanumeric() || it == '-');
        (is_tag && name != "C" && name != "POSIX").then_some(name)
    };
    let Some(first) = locale.as_deref().and_then(tag) else {
        return Vec::new();
    };
    let mut wanted: Vec<String> = set("LANGUAGE")
        .iter()
        .flat_map(|it| it.split(':'))
        .filter_map(tag)
        .collect();
    wanted.push(first);
    wanted
}

#[cfg(not(test))]
fn chosen() -> Option<&'static Catalogue> {
    *CHOSEN.read().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
fn chosen() -> Option<&'static Catalogue> {
    OF_TEST
        .get()
        .or_else(|| *CHOSEN.read().unwrap_or_else(PoisonError::into_inner))
}

/// Runs `then` on this thread with the language `tag`.
#[cfg(test)]
pub fn within<T>(tag: &str, then: impl FnOnce() -> T) -> T {
    let before = OF_TEST.replace(built_in(tag));
    let answer = then();
    OF_TEST.set(before);
    answer
}

/// Returns the English messages without arguments that differ in the language `tag`.
#[cfg(test)]
pub fn said_otherwise(tag: &str) -> Vec<&'static str> {
    let other = built_in(tag);
    let differs = |(id, text): &(&'static str, &'static str)| other.and_then(|it| it.plain(id)) != Some(*text);
    ENGLISH.all_plain().filter(differs).map(|it| it.1).collect()
}

/// Returns the interface's text for an id: `&'static str` without arguments, else a `String`.
///
/// Ids are literals, so that a test can find all of them; for ids from a table, use [`text`](crate::locale::text).
#[macro_export]
macro_rules! t {
    ($id:literal) => { $crate::locale::text($id) };
    ($id:literal, $($name:ident = $value:expr),+ $(,)?) => {
        $crate::locale::format($id, &[$((stringify!($name), $crate::locale::FluentValue::from($value))),+])
    };
}

#[cfg(test)]
mod tests;
