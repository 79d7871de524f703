//! What identifies a line: a hash of what it shows.

use std::hash::{Hash, Hasher};

use crate::text::{Row, Span};

/// A quick hash of what a line shows. It meets no adversary: two lines that share a key by chance, once in 2⁶⁴, would
/// show one of them twice until something changes.
#[derive(Default)]
pub struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.write_u64(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        if let Some(slot) = last.get_mut(..rest.len()) {
            slot.copy_from_slice(rest);
        }
        // The length tells a short text from one that ends in zeros.
        self.write_u64(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(u64::from(n));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(u64::from(n));
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_isize(&mut self, n: isize) {
        self.write_u64(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(5) ^ n).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

pub fn hash_row(row: &Row, hasher: &mut impl Hasher) {
    hash_spans(&row.spans, hasher);
    hash_spans(&row.facts, hasher);
    row.ground.hash(hasher);
}

pub fn hash_spans(spans: &[Span], hasher: &mut impl Hasher) {
    spans.len().hash(hasher);
    for span in spans {
        span.text.as_str().hash(hasher);
        (span.role, span.mark, span.ground).hash(hasher);
        span.link.hash(hasher);
    }
}

/// The key of a row by itself.
pub fn of_row(row: &Row) -> u64 {
    let mut hasher = Quick::default();
    hash_row(row, &mut hasher);
    hasher.finish()
}
