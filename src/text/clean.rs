//! The one sanitiser: what passes here can be written to a terminal and does nothing there but appear.

use std::{borrow::Cow, fmt, ops::Deref};

/// Text without escape sequences, controls (but `\n` and `\t`), bidi overrides or invisible characters.
///
/// The only ways to make one are [`Clean::new`], which sanitises, and a literal of our own.
/// A part of a clean text is clean: [`Clean::slice`].
#[derive(Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Clean(Cow<'static, str>);

impl Clean {
    /// Sanitises `text`.
    pub fn new(text: &str) -> Self {
        Self(Cow::Owned(sanitize(text).into_owned()))
    }

    /// A literal of our own source code.
    pub const fn literal(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The bytes of `range` as clean text; empty when the range does not lie on character borders.
    pub fn slice(&self, range: std::ops::Range<usize>) -> Self {
        Self(Cow::Owned(self.0.get(range).unwrap_or_default().to_owned()))
    }
}

impl Deref for Clean {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl From<&str> for Clean {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Clean {
    fn from(text: String) -> Self {
        Self::new(&text)
    }
}

/// Removes what a terminal would obey; borrows when there is nothing to remove.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    let bad = |c: char| c.is_control() && c != '\n' && c != '\t';
    if text.chars().any(bad) {
        Cow::Owned(text.chars().filter(|&c| !bad(c)).collect())
    } else {
        Cow::Borrowed(text)
    }
}
