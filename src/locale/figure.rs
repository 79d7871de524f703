//! Numbers in the chosen language's format: `5.3 s` is `5,3 s` in German.

use crate::text::{Sanitized, figure};

pub use crate::text::figure::pause;

/// Localized [`figure::duration`].
pub fn duration(milliseconds: u64) -> Sanitized {
    marked(figure::duration(milliseconds))
}

/// Localized [`figure::grouped`].
pub fn grouped(number: u64) -> String {
    marked(Sanitized::from(figure::grouped(number))).into_string()
}

/// Localized [`figure::bytes`].
pub fn bytes(number: u64) -> Sanitized {
    marked(figure::bytes(number))
}

/// Localized [`figure::tokens`].
pub fn tokens(number: u64) -> Sanitized {
    marked(figure::tokens(number))
}

/// Localized [`figure::money`].
pub fn money(dollars: f64) -> Sanitized {
    marked(figure::money(dollars))
}

/// Replaces decimal and group separators of an English number by the language's.
fn marked(figure: Sanitized) -> Sanitized {
    let (decimal, group) = (super::text("figure-decimal"), super::text("figure-group"));
    if decimal == "." && group == "," || !figure.contains(['.', ',']) {
        return figure;
    }
    let mut text = String::with_capacity(figure.len());
    for sign in figure.chars() {
        match sign {
            '.' => text.push_str(decimal),
            ',' => text.push_str(group),
            sign => text.push(sign),
        }
    }
    Sanitized::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{locale::within, t};

    #[test]
    fn figures_have_the_marks_of_the_language() {
        let all = || {
            [
                duration(5300).into_string(),
                grouped(1_234_567),
                bytes(1_200).into_string(),
                tokens(1_200).into_string(),
                money(1234.5).into_string(),
                t!("count-lines", count = 12_345),
                t!("count-lines", count = 1),
            ]
        };
        assert_eq!(
            all(),
            [
                "5.3 s",
                "1,234,567",
                "1.2 kB",
                "1.2k",
                "$1,234.50",
                "12,345 lines",
                "1 line"
            ]
        );
        assert_eq!(
            within("de", all),
            [
                "5,3 s",
                "1.234.567",
                "1,2 kB",
                "1,2k",
                "$1.234,50",
                "12.345 Zeilen",
                "1 Zeile"
            ]
        );
    }
}
