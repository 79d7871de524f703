//! Figures with the marks of the language in use: `5.3 s` is `5,3 s` in German.

use crate::text::{Clean, figure};

pub use crate::text::figure::pause;

/// As [`figure::duration`].
pub fn duration(milliseconds: u64) -> Clean {
    marked(figure::duration(milliseconds))
}

/// As [`figure::grouped`].
pub fn grouped(number: u64) -> String {
    marked(Clean::from(figure::grouped(number))).into_string()
}

/// As [`figure::bytes`].
pub fn bytes(number: u64) -> Clean {
    marked(figure::bytes(number))
}

/// As [`figure::tokens`].
pub fn tokens(number: u64) -> Clean {
    marked(figure::tokens(number))
}

/// As [`figure::money`].
pub fn money(dollars: f64) -> Clean {
    marked(figure::money(dollars))
}

/// An English figure in the language's marks.
fn marked(figure: Clean) -> Clean {
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
    Clean::from(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{locale::within, say};

    #[test]
    fn figures_have_the_marks_of_the_language() {
        let all = || {
            [
                duration(5300).into_string(),
                grouped(1_234_567),
                bytes(1_200).into_string(),
                tokens(1_200).into_string(),
                money(1234.5).into_string(),
                say!("count-lines", count = 12_345),
                say!("count-lines", count = 1),
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
