//! The model of a provider's list that is meant by a name in somebody's file.
//!
//! The order of the list means nothing: many gateways sort it by name.

use std::cmp::Reverse;

use chrono::{DateTime, Datelike};

use super::{Model, catalogue};

/// Names of families that Claude Code's files use for the newest model of each.
const FAMILIES: [&str; 3] = ["haiku", "sonnet", "opus"];

/// Returns true for a name that stands for the newest model of a family, and is the name of none itself.
pub fn is_family(wanted: &str) -> bool {
    FAMILIES.contains(&wanted)
}

/// Returns the model of the list that is meant by `wanted`: the one of this name, else the newest one of the family or of those whose
/// names differ only by their makers, a date or the word `latest` at the end. `None`: the list has none.
pub fn find<'a>(wanted: &str, listed: &'a [Model]) -> Option<&'a Model> {
    if let Some(exact) = listed.iter().find(|it| it.id == wanted) {
        return Some(exact);
    }
    let named = Name::of(wanted);
    let is_meant = |it: &Name| {
        if is_family(wanted) {
            let mut words = it.words();
            words.clone().any(|it| it == "claude") && words.any(|it| it == wanted)
        } else {
            it.stem == named.stem && (named.date.is_none() || named.date == it.date)
        }
    };
    let meant = listed.iter().map(|it| (Name::of(&it.id), it));
    let newest = meant.filter(|(name, _)| is_meant(name)).max_by_key(|(name, model)| {
        let length = Reverse(model.id.len());
        (name.version(), !name.is_variant(), name.day(model), length, &model.id)
    });
    newest.map(|it| it.1)
}

/// The name of a model, taken apart.
struct Name {
    /// The name as all makers and gateways write it, without what follows.
    stem: String,
    /// The date at its end, as the number 20250929.
    date: Option<u32>,
    /// It ends with `latest`.
    is_latest: bool,
}

impl Name {
    fn of(id: &str) -> Self {
        let plain = catalogue::plain(id);
        let mut stem = plain.as_str();
        // Amazon's revisions: `-v1:0`.
        if let Some((name, revision)) = stem.rsplit_once("-v")
            && revision.contains(':')
            && revision.chars().all(|it| it.is_ascii_digit() || it == ':')
        {
            stem = name;
        }
        let latest = [":latest", "-latest", "@latest"]
            .iter()
            .find_map(|it| stem.strip_suffix(it));
        if let Some(name) = latest {
            stem = name;
        }
        let dated = before_date(stem).filter(|_| latest.is_none());
        Self {
            stem: dated.map_or(stem, |it| it.0).to_owned(),
            date: dated.map(|it| it.1),
            is_latest: latest.is_some(),
        }
    }

    fn words(&self) -> impl Iterator<Item = &str> + Clone {
        self.stem.split(['-', ':', '@'])
    }

    /// Numbers of its version: 4 and 5 of `claude-sonnet-4-5`.
    fn version(&self) -> Vec<u32> {
        self.words()
            .filter(|it| it.len() <= 2)
            .filter_map(|it| it.parse().ok())
            .collect()
    }

    /// Returns true for a model with something of its own at its end: `claude-3-7-sonnet:thinking`.
    fn is_variant(&self) -> bool {
        self.stem.contains(':')
    }

    /// The day from which it is. One that says nothing of it stands for the newest.
    fn day(&self, model: &Model) -> u32 {
        let created = model.created.filter(|_| !self.is_latest);
        let created = created.and_then(|it| DateTime::from_timestamp(it.try_into().ok()?, 0));
        let created =
            created.and_then(|it| Some(u32::try_from(it.year()).ok()? * 10_000 + it.month() * 100 + it.day()));
        self.date.or(created).unwrap_or(u32::MAX)
    }
}

/// The name before a date (`-20250929`, `-2025-09-29`, `@20250929`), and the date as a number.
fn before_date(name: &str) -> Option<(&str, u32)> {
    let split = |length: usize| name.split_at_checked(name.len().checked_sub(length)?);
    let packed = split(8).map(|(before, date)| (before, date.to_owned()));
    let spaced = split(10).filter(|(_, date)| {
        let mut hyphens = date.bytes().enumerate().filter(|(_, it)| *it == b'-').map(|it| it.0);
        (hyphens.next(), hyphens.next(), hyphens.next()) == (Some(4), Some(7), None)
    });
    let spaced = spaced.map(|(before, date)| (before, date.replace('-', "")));
    let dated = [packed, spaced].into_iter().flatten().find_map(|(before, date)| {
        let before = before.strip_suffix(['-', '@'])?;
        let is_number = date.bytes().all(|it| it.is_ascii_digit());
        let date: u32 = date.parse().ok().filter(|_| is_number)?;
        let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
        let is_date = (2000..2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
        is_date.then_some((before, date))
    });
    dated.filter(|it| !it.0.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in the list in every order that turning it round and back to front gives.
    fn found(wanted: &str, listed: &[(&str, Option<u64>)]) -> Option<String> {
        let mut models: Vec<Model> = listed
            .iter()
            .map(|(id, created)| Model {
                id: (*id).to_owned(),
                created: *created,
                ..Model::default()
            })
            .collect();
        let mut answers = Vec::new();
        for _ in 0..2 {
            for _ in listed {
                models.rotate_left(1);
                answers.push(find(wanted, &models).map(|it| it.id.clone()));
            }
            models.reverse();
        }
        answers.dedup();
        assert_eq!(answers.len(), 1, "{wanted}: the order counts: {answers:?}");
        answers.remove(0)
    }

    fn named(wanted: &str, listed: &[&str]) -> Option<String> {
        let listed: Vec<_> = listed.iter().map(|it| (*it, None)).collect();
        found(wanted, &listed)
    }

    #[test]
    fn a_name_without_a_date_is_the_newest_of_those_with_one() {
        let cases: &[(&str, &[&str], Option<&str>)] = &[
            ("a", &["b", "a", "a-20250101"], Some("a")),
            (
                "claude-sonnet-4-5",
                &[
                    "claude-sonnet-4-20250514",
                    "claude-sonnet-4-5-20250929",
                    "claude-opus-4-5-20251101",
                ],
                Some("claude-sonnet-4-5-20250929"),
            ),
            (
                "gpt-4o",
                &[
                    "gpt-4o-2024-05-13",
                    "gpt-4o-2024-11-20",
                    "gpt-4o-2024-08-06",
                    "gpt-4o-mini",
                    "gpt-4o-mini-2024-07-18",
                ],
                Some("gpt-4o-2024-11-20"),
            ),
            (
                "qwen3",
                &["qwen3:4b", "qwen3:latest", "qwen3-coder:latest"],
                Some("qwen3:latest"),
            ),
            (
                "claude-3-5-haiku",
                &["claude-3-5-haiku-20241022", "claude-3-5-haiku-latest"],
                Some("claude-3-5-haiku-latest"),
            ),
            // The other way.
            (
                "claude-3-5-haiku-latest",
                &[
                    "claude-3-5-haiku-20241022",
                    "claude-3-5-haiku-20250101",
                    "claude-3-haiku-20240307",
                ],
                Some("claude-3-5-haiku-20250101"),
            ),
            ("qwen3:latest", &["qwen3", "qwen3-coder"], Some("qwen3")),
            // Makers and gateways write it in their own ways.
            (
                "claude-sonnet-4-5",
                &["anthropic/claude-sonnet-4.5", "anthropic/claude-sonnet-4"],
                Some("anthropic/claude-sonnet-4.5"),
            ),
            (
                "claude-sonnet-4-5-20250929",
                &[
                    "eu.anthropic.claude-sonnet-4-5-20250929-v1:0",
                    "claude-sonnet-4-5@20250930",
                ],
                Some("eu.anthropic.claude-sonnet-4-5-20250929-v1:0"),
            ),
            (
                "claude-sonnet-4-5",
                &["claude-sonnet-4-5@20250929"],
                Some("claude-sonnet-4-5@20250929"),
            ),
            // Another version, another size, another date, and what is no date.
            (
                "claude-sonnet-4",
                &["claude-sonnet-4-5", "claude-sonnet-4-5-20250929"],
                None,
            ),
            ("gpt-5", &["gpt-5-mini", "gpt-5-codex-2025-09-29", "gpt-5-10"], None),
            ("a-20250929", &["a-20250930", "a", "a-latest"], None),
            (
                "a",
                &["a-20251399", "a-2025-9-29", "a-12345678", "a20250929", "a:free"],
                None,
            ),
            ("", &["-20250929"], None),
        ];
        for (wanted, listed, expected) in cases {
            assert_eq!(named(wanted, listed).as_deref(), *expected, "{wanted} {listed:?}");
        }
    }

    #[test]
    fn a_family_is_its_newest_model_in_whatever_order_they_are_listed() {
        let cases: &[(&str, &[&str], Option<&str>)] = &[
            (
                "sonnet",
                &[
                    "claude-3-5-sonnet-20241022",
                    "claude-3-7-sonnet-latest",
                    "claude-haiku-4-5-20251001",
                    "claude-opus-4-5-20251101",
                    "claude-sonnet-4-20250514",
                    "claude-sonnet-4-5-20250929",
                ],
                Some("claude-sonnet-4-5-20250929"),
            ),
            (
                "sonnet",
                &[
                    "claude-3-5-sonnet-20240620",
                    "claude-3-5-sonnet-20241022",
                    "claude-3-sonnet-20240229",
                ],
                Some("claude-3-5-sonnet-20241022"),
            ),
            (
                "opus",
                &[
                    "anthropic/claude-opus-4",
                    "anthropic/claude-opus-4.1",
                    "anthropic/claude-3-opus",
                ],
                Some("anthropic/claude-opus-4.1"),
            ),
            (
                "sonnet",
                &[
                    "anthropic/claude-3.7-sonnet:thinking",
                    "anthropic/claude-3.7-sonnet",
                    "anthropic/claude-3.5-sonnet",
                ],
                Some("anthropic/claude-3.7-sonnet"),
            ),
            ("haiku", &["claude-haiku-4-5", "haiku"], Some("haiku")),
            ("haiku", &["haiku-poems", "claude-haikus", "gpt-5"], None),
        ];
        for (wanted, listed, expected) in cases {
            assert_eq!(named(wanted, listed).as_deref(), *expected, "{wanted} {listed:?}");
        }
        // The day on which the server says that it was made.
        let listed = [
            ("claude-opus-one", Some(1_700_000_000)),
            ("claude-opus-two", Some(1_760_000_000)),
            ("claude-opus-three", Some(1_730_000_000)),
        ];
        assert_eq!(found("opus", &listed).as_deref(), Some("claude-opus-two"));
    }
}
