//! Keys of lines: hashes of what they show. `FxHasher` meets no adversary here: two lines that share a key by chance, once
//! in 2⁶⁴, would show one of them twice until something changes.

use std::hash::{Hash, Hasher};

use rustc_hash::FxHasher;

use crate::text::{Span, StyledLine};

/// Adds all that a row shows to `hasher`.
pub fn hash_row(row: &StyledLine, hasher: &mut impl Hasher) {
    hash_spans(&row.spans, hasher);
    hash_spans(&row.facts, hasher);
    row.background.hash(hasher);
}

/// Adds texts, looks and links of `spans` to `hasher`.
pub fn hash_spans(spans: &[Span], hasher: &mut impl Hasher) {
    spans.len().hash(hasher);
    for span in spans {
        span.text.as_str().hash(hasher);
        (span.role, span.modifier, span.background).hash(hasher);
        span.link.hash(hasher);
    }
}

/// Returns the key of a row by itself.
pub fn of_row(row: &StyledLine) -> u64 {
    let mut hasher = FxHasher::default();
    hash_row(row, &mut hasher);
    hasher.finish()
}
