//! Text that has to fit: cut at the end of a line where there is one.

/// The longest beginning of `text` of at most `limit_bytes`, up to the end of a line if that keeps half of it.
///
/// `None` when all of it fits.
pub fn head(text: &str, limit_bytes: usize) -> Option<&str> {
    if text.len() <= limit_bytes {
        return None;
    }
    let end = text.floor_char_boundary(limit_bytes);
    let whole = text.get(..end).unwrap_or_default();
    let lines = whole.rfind('\n').filter(|it| *it >= end / 2);
    Some(lines.map_or(whole, |it| whole.get(..=it).unwrap_or(whole)))
}

/// Tokens that `text` will be, roughly: the server counts exactly, when it has been asked.
pub fn tokens(text: &str) -> u64 {
    tokens_in(text.len())
}

/// The same for so many bytes of text.
pub fn tokens_in(bytes: usize) -> u64 {
    (bytes as u64 * 10).div_ceil(33)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_cut_keeps_whole_lines_and_characters() {
        for (text, limit, want) in [
            ("abc", 3, None),
            ("a\nb\nc", 4, Some("a\nb\n")),
            ("ab\ncdefgh", 8, Some("ab\ncdefg")),
            ("äöü", 3, Some("ä")),
            ("x", 0, Some("")),
        ] {
            assert_eq!(head(text, limit), want, "{text} {limit}");
        }
    }

    proptest! {
        #[test]
        fn a_cut_is_a_beginning_that_fits(text in "(?s).{0,40}", limit in 0_usize..60) {
            match head(&text, limit) {
                None => prop_assert!(text.len() <= limit),
                Some(cut) => {
                    prop_assert!(cut.len() <= limit && text.starts_with(cut) && cut.len() < text.len());
                }
            }
        }
    }
}
