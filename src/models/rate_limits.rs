//! Limits that a server reports with its answers, in headers that each service names in its own way.

use crate::{net::client::HeaderMap, protocol::RateLimit};

/// Limits that are kept.
const MOST: usize = 16;
/// Longest value of a header that is kept, in characters.
const VALUE_CHARS: usize = 40;

/// Reads `x-ratelimit-remaining-requests`, `anthropic-ratelimit-tokens-reset`, `ratelimit-limit` and the like; empty if
/// there are none.
pub fn read(headers: &HeaderMap) -> Vec<RateLimit> {
    let mut limits: Vec<RateLimit> = Vec::new();
    for (name, value) in headers {
        let Some((_, rest)) = name.as_str().split_once("ratelimit") else {
            continue;
        };
        let words: Vec<&str> = rest.split('-').filter(|it| !it.is_empty()).collect();
        let is_field = |it: &&str| matches!(*it, "limit" | "remaining" | "reset");
        let (Some(field), Ok(value)) = (words.iter().find(|it| is_field(it)), value.to_str()) else {
            continue;
        };
        let value: String = value.trim().chars().take(VALUE_CHARS).collect();
        let scope: Vec<&str> = words.iter().copied().filter(|it| !is_field(it)).collect();
        let scope = scope.join(" ");
        let at = limits.iter().position(|it| it.scope == scope).unwrap_or_else(|| {
            limits.push(RateLimit {
                scope,
                ..RateLimit::default()
            });
            limits.len() - 1
        });
        if let Some(limit) = limits.get_mut(at) {
            match *field {
                "limit" => limit.limit = value,
                "remaining" => limit.remaining = value,
                _ => limit.reset = value,
            }
        }
    }
    limits.sort_by(|one, other| one.scope.cmp(&other.scope));
    limits.truncate(MOST);
    limits
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[test]
    fn each_service_names_its_limits_in_its_own_way() {
        type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str, &'a str, &'a str)]);
        let cases: &[Case<'_>] = &[
            (
                &[
                    ("x-ratelimit-limit-requests", "100"),
                    ("x-ratelimit-remaining-requests", "99"),
                    ("x-ratelimit-reset-requests", "1s"),
                    ("x-ratelimit-remaining-tokens", "5000"),
                ],
                &[("requests", "100", "99", "1s"), ("tokens", "", "5000", "")],
            ),
            (
                &[
                    ("anthropic-ratelimit-input-tokens-limit", "50000"),
                    ("anthropic-ratelimit-input-tokens-remaining", "49000"),
                    ("anthropic-ratelimit-input-tokens-reset", "2026-01-01T00:00:00Z"),
                ],
                &[("input tokens", "50000", "49000", "2026-01-01T00:00:00Z")],
            ),
            (
                &[
                    ("ratelimit-limit", "10"),
                    ("ratelimit-remaining", "9"),
                    ("x-ratelimit-policy", "x"),
                ],
                &[("", "10", "9", "")],
            ),
            (&[("content-type", "text/event-stream"), ("retry-after", "3")], &[]),
        ];
        for (headers, expected) in cases {
            let headers: HeaderMap = headers
                .iter()
                .map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
                .collect();
            let found = read(&headers);
            let found: Vec<_> = found
                .iter()
                .map(|it| {
                    (
                        it.scope.as_str(),
                        it.limit.as_str(),
                        it.remaining.as_str(),
                        it.reset.as_str(),
                    )
                })
                .collect();
            assert_eq!(found, *expected);
        }
    }
}
