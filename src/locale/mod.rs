//! What the interface says, in the reader's language: Fluent messages, one file a language.
//!
//! Documents, errors that are documents, logs and what a model is told are data: they are the same for every reader and stay in
//! English. What is drawn around them is named here by an id and stands in `assets/locale/<tag>.ftl`.
//!
//! ```
//! use sheaf::say;
//! assert_eq!(say!("composer-working"), "working");
//! assert_eq!(say!("composer-unseen", count = 3), "3 new ↓");
//! ```
//!
//! Another language is one file: `<tag>.ftl` in the user's `locale` folder, or here with a line in [`LANGUAGES`]. What a file does
//! not say is said in English.

mod catalogue;
pub mod figure;

use std::{
    borrow::Cow,
    path::Path,
    sync::{LazyLock, PoisonError, RwLock},
};

use crate::os::file;

pub use catalogue::{Catalogue, Fault};
use fluent_bundle::FluentArgs;
pub use fluent_bundle::FluentValue;

/// A language that is part of the program.
pub struct Language {
    /// BCP 47, as short as it is unambiguous: `en`.
    pub tag: &'static str,
    /// What those who speak it call it.
    pub name: &'static str,
    /// Fluent.
    pub text: &'static str,
}

/// The first one is complete by definition: it is what everything else falls back to.
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

/// What was chosen; none: English.
static CHOSEN: RwLock<Option<&'static Catalogue>> = RwLock::new(None);

#[cfg(test)]
thread_local! {
    /// A test's own language, so that tests beside it see English.
    static OF_TEST: std::cell::Cell<Option<&'static Catalogue>> = const { std::cell::Cell::new(None) };
}

/// A message without arguments.
///
/// What a message says is sanitized when its file is read, so it may be shown as it is. One that is in no file is its own id, which
/// a test finds.
pub fn text(id: &str) -> &'static str {
    let chosen = chosen();
    chosen
        .and_then(|it| it.plain(id))
        .or_else(|| ENGLISH.plain(id))
        .unwrap_or_else(|| catalogue::kept(id))
}

/// A message without arguments in English, whatever was chosen: for references, and so that what is looked for by its English
/// name is found.
pub fn english(id: &str) -> &'static str {
    ENGLISH.plain(id).unwrap_or_else(|| catalogue::kept(id))
}

/// Whether English has the message.
pub fn has(id: &str) -> bool {
    ENGLISH.has(id)
}

/// A message with arguments. Arguments are put in as they are: what comes from elsewhere is sanitized by who shows it.
pub fn format(id: &str, arguments: &[(&str, FluentValue<'_>)]) -> String {
    let arguments: FluentArgs<'_> = arguments.iter().cloned().collect();
    chosen()
        .and_then(|it| it.format(id, &arguments))
        .or_else(|| ENGLISH.format(id, &arguments))
        .unwrap_or_else(|| id.to_owned())
}

/// The tag of the language in use.
pub fn tag() -> &'static str {
    chosen().map_or("en", Catalogue::tag)
}

/// Says everything in another language from now on.
pub fn choose(catalogue: &'static Catalogue) {
    *CHOSEN.write().unwrap_or_else(PoisonError::into_inner) = Some(catalogue);
}

/// One of [`LANGUAGES`].
pub fn built_in(tag: &str) -> Option<&'static Catalogue> {
    let language = LANGUAGES.iter().find(|it| it.tag == tag)?;
    Some(Catalogue::read(language.tag, Cow::Borrowed(language.text)).0)
}

/// The best catalogue for what is wanted, best first: the user's file, else one of ours; the faults are those of the user's file.
///
/// `de-AT` finds `de-AT.ftl`, then `de.ftl`, then our German. None of them: English.
///
/// # Errors
///
/// When the user has a file that cannot be read.
pub fn find(wanted: &[String], folder: Option<&Path>) -> Result<(Option<&'static Catalogue>, Vec<Fault>), file::Error> {
    for tag in wanted {
        let mut tags = vec![tag.as_str()];
        tags.extend(tag.split_once('-').map(|it| it.0));
        for tag in tags {
            if let Some(folder) = folder {
                match file::read(&folder.join(format!("{tag}.ftl")), MOST_BYTES) {
                    Ok(bytes) => {
                        let text = String::from_utf8_lossy(&bytes).into_owned();
                        // What it does not say ours may, of this language or that of the country.
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

/// A user's file is read up to here.
const MOST_BYTES: u64 = 4 << 20;

/// The languages that the environment asks for, best first, as gettext reads it: `LANGUAGE` counts unless the locale is `C`.
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

/// Runs `then` with everything said in the language `tag`, on this thread.
#[cfg(test)]
pub fn within<T>(tag: &str, then: impl FnOnce() -> T) -> T {
    let before = OF_TEST.replace(built_in(tag));
    let answer = then();
    OF_TEST.set(before);
    answer
}

/// What English says without arguments and the language `tag` in other words.
#[cfg(test)]
pub fn said_otherwise(tag: &str) -> Vec<&'static str> {
    let other = built_in(tag);
    let differs = |(id, text): &(&'static str, &'static str)| other.and_then(|it| it.plain(id)) != Some(*text);
    ENGLISH.all_plain().filter(differs).map(|it| it.1).collect()
}

/// What the interface says under an id: `&'static str` without arguments, else a `String`.
///
/// Ids are literals, so that a test can find them all; where a table names them, see [`text`](crate::locale::text).
#[macro_export]
macro_rules! say {
    ($id:literal) => { $crate::locale::text($id) };
    ($id:literal, $($name:ident = $value:expr),+ $(,)?) => {
        $crate::locale::format($id, &[$((stringify!($name), $crate::locale::FluentValue::from($value))),+])
    };
}

#[cfg(test)]
mod tests;
