//! Fuzzy ranking of entries by a pattern: letters in order, words in any order.

use nucleo_matcher::{
    Config, Matcher, Utf32Str,
    pattern::{AtomKind, CaseMatching, Normalization, Pattern},
};

/// Nobody types more to find something.
const MOST_CHARS: usize = 64;

/// The indices of the texts that fit, the best first; of equals the earlier one. What is in the first text of a pair
/// counts for more than what is in the second.
pub fn rank<'a>(typed: &str, texts: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<usize> {
    let cut = typed.char_indices().nth(MOST_CHARS).map_or(typed.len(), |it| it.0);
    let typed = typed.get(..cut).unwrap_or_default().trim();
    if typed.is_empty() {
        return texts.enumerate().map(|it| it.0).collect();
    }
    let pattern = Pattern::parse(typed, CaseMatching::Smart, Normalization::Smart);
    // Letters that lie scattered over a sentence mean nothing: there it is words that count.
    let words = Pattern::new(typed, CaseMatching::Smart, Normalization::Smart, AtomKind::Substring);
    let mut matcher = Matcher::new(Config::DEFAULT);
    let (mut letters, mut whole) = (Vec::new(), String::new());
    let mut found: Vec<(Fit, std::cmp::Reverse<u32>, usize)> = Vec::new();
    for (at, (name, about)) in texts.enumerate() {
        let mut score = |pattern: &Pattern, text: &str| pattern.score(Utf32Str::new(text, &mut letters), &mut matcher);
        let by_name = score(&pattern, name).map(|it| it * 4 + 1000);
        whole.clear();
        whole.extend([name, " ", about]);
        if let Some(score) = by_name.or_else(|| score(&words, &whole)) {
            let fit = Fit::of(typed, name);
            // Among names that begin alike the order of the list counts.
            let score = if fit == Fit::Within { score } else { 0 };
            found.push((fit, std::cmp::Reverse(score), at));
        }
    }
    found.sort_unstable();
    found.into_iter().map(|it| it.2).collect()
}

/// The part of a name that is typed, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Whole,
    Beginning,
    Within,
}

impl Fit {
    /// Compares without case and without the slash of a command.
    fn of(typed: &str, name: &str) -> Self {
        let name = name.strip_prefix('/').unwrap_or(name).to_lowercase();
        let typed = typed.strip_prefix('/').unwrap_or(typed).to_lowercase();
        match name.strip_prefix(&typed) {
            Some("") => Self::Whole,
            Some(_) => Self::Beginning,
            None => Self::Within,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_what_is_said_of_them() {
        let texts = [
            ("/keys", "show all keys and commands"),
            ("/theme", "choose the colours"),
            ("/mode", "choose a mode"),
            ("/model", "choose the model"),
            ("next error", "go to the next error"),
        ];
        let rank = |typed: &str| rank(typed, texts.into_iter());
        assert_eq!(rank(""), [0, 1, 2, 3, 4]);
        assert_eq!(rank("mode"), [2, 3], "the whole name, then the beginning");
        assert_eq!(rank("mo"), [2, 3], "names that begin alike keep their order");
        assert_eq!(rank("error next"), [4]);
        assert_eq!(rank("colours"), [1]);
        assert_eq!(rank("thm"), [1]);
        assert_eq!(rank("zzz"), [] as [usize; 0]);
        assert_eq!(rank(&"chosen ".repeat(100)), [] as [usize; 0]);
    }
}
