//! Addresses that stand in the text without marks: `see https://example.org/a.`
//!
//! What is found is what GitHub would link: a web address where a word begins, up to the next space, without the punctuation
//! of the sentence around it. Names of hosts are ASCII only: of another, a reader could not tell where it leads.

use std::ops::Range;

/// Longer ones are no addresses that anybody follows.
const LONGEST_BYTES: usize = 2048;

/// Returns the range of the first address after byte `from`. `None` if there is none.
pub(super) fn find(text: &str, from: usize) -> Option<Range<usize>> {
    let mut at = from;
    while let Some(found) = text.get(at..)?.find("://") {
        let colon = at + found;
        at = colon + "://".len();
        let scheme = ["https", "http"].into_iter().find(|it| ends_with(text, colon, it));
        let Some(start) = scheme.map(|it| colon - it.len()).filter(|&it| it >= from) else {
            continue;
        };
        let before = text.get(..start).and_then(|it| it.chars().next_back());
        if before.is_some_and(|it| !it.is_whitespace() && !matches!(it, '*' | '_' | '~' | '(')) {
            continue;
        }
        let rest = text.get(at..)?;
        let rest = rest.get(..rest.floor_char_boundary(LONGEST_BYTES))?;
        let end = rest
            .find(|it: char| it.is_whitespace() || it == '<')
            .unwrap_or(rest.len());
        let behind = rest.get(..end)?;
        let domain = behind.len() - behind.trim_start_matches(in_domain).len();
        let (host, path) = behind.split_at(domain);
        if !is_domain(host) || path.starts_with(char::is_alphanumeric) {
            continue;
        }
        let end = at + sentence_off(behind).len().max(domain);
        return Some(start..start + sentence_off(text.get(start..end)?).len());
    }
    None
}

fn ends_with(text: &str, end: usize, scheme: &str) -> bool {
    end.checked_sub(scheme.len())
        .and_then(|start| text.get(start..end))
        .is_some_and(|it| it.eq_ignore_ascii_case(scheme))
}

fn in_domain(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '.' | '-' | '_')
}

/// No part of it is empty, but for the full stop of a sentence, and the last two have no underscore.
fn is_domain(domain: &str) -> bool {
    let domain = domain.trim_end_matches('.');
    !domain.is_empty()
        && domain.split('.').all(|it| !it.is_empty())
        && !domain.rsplit('.').take(2).any(|it| it.contains('_'))
}

/// Returns the address without parts of the sentence: punctuation, an entity, a parenthesis that was opened outside.
fn sentence_off(address: &str) -> &str {
    let mut address = address;
    let opened = address.matches('(').count();
    let mut closed = address.matches(')').count();
    loop {
        let less = match address.chars().next_back() {
            Some('?' | '!' | '.' | ',' | ':' | '*' | '_' | '~' | '\'' | '"') => 1,
            Some(')') if closed > opened => {
                closed -= 1;
                1
            }
            Some(';') => {
                let name = address
                    .trim_end_matches(';')
                    .trim_end_matches(|it: char| it.is_ascii_alphanumeric());
                if name.ends_with('&') {
                    address.len() - name.len() + 1
                } else {
                    1
                }
            }
            Some(_) | None => return address,
        };
        address = address.get(..address.len() - less).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<&str> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(range) = find(text, at) {
            assert!(range.start >= at && range.end > range.start, "{range:?} in {text:?}");
            at = range.end;
            found.extend(text.get(range));
        }
        found
    }

    #[test]
    fn addresses_are_those_that_github_links() {
        for (text, expected) in [
            ("see https://a.b/c now", &["https://a.b/c"] as &[&str]),
            ("HTTP://a.b", &["HTTP://a.b"]),
            (
                "http://localhost:8080/x?y=1&z=2#q",
                &["http://localhost:8080/x?y=1&z=2#q"],
            ),
            ("two: http://a.b, https://c.d.", &["http://a.b", "https://c.d"]),
            ("(https://a.b/c_(d))", &["https://a.b/c_(d)"]),
            ("(see https://a.b/c)", &["https://a.b/c"]),
            ("https://a.b/c?q=(d)", &["https://a.b/c?q=(d)"]),
            ("https://a.b/x&copy;", &["https://a.b/x"]),
            ("https://a.b<c", &["https://a.b"]),
            ("\"https://a.b\"", &[]),
            ("xhttps://a.b", &[]),
            ("ftp://a.b", &[]),
            ("https://", &[]),
            ("https://.a", &[]),
            ("https://a..b", &[]),
            ("https://a_b.c", &[]),
            ("https://a_b.c.d", &["https://a_b.c.d"]),
            ("https://münchen.de", &[]),
            ("https://a.b/straße", &["https://a.b/straße"]),
            ("https://a.b\u{a0}c", &["https://a.b"]),
            ("", &[]),
        ] {
            assert_eq!(all(text), expected, "{text:?}");
        }
    }

    #[test]
    fn a_flood_of_addresses_is_linear() {
        for unit in ["http://", "https://a.b ", "://", "http://a.b)))))", "https://a.b/;;;;"] {
            all(&unit.repeat(100_000));
        }
    }
}
