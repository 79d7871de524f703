//! Nothing that reaches a terminal controls it, however it was cut; and what a command printed takes bounded memory.

use sheaf::text::{Cleaner, ansi, sanitize, visible};

/// The first byte says where the text is cut.
pub fn check(data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let text = String::from_utf8_lossy(bytes);
    let clean = sanitize(&text).into_owned();
    assert!(!clean.chars().any(is_dangerous), "{clean:?}");
    assert_eq!(sanitize(&clean), clean, "cleaning is done once");
    let at = text.floor_char_boundary(usize::from(*cut) * text.len() / 256);
    let (first, last) = text.split_at(at);
    let mut cleaner = Cleaner::default();
    let mut pieces = cleaner.push(first).into_string();
    pieces.push_str(cleaner.push(last).as_str());
    assert_eq!(pieces, clean, "cut at {at}");
    assert!(!visible(&text).as_str().chars().any(is_dangerous));
    let mut whole = ansi::Output::default();
    whole.push(&text);
    whole.finish();
    let mut cut = ansi::Output::default();
    cut.push(first);
    cut.push(last);
    cut.finish();
    assert_eq!(whole.plain(), cut.plain(), "cut at {at}");
    assert!(!whole.plain().chars().any(is_dangerous));
    // Fifty rows of two hundred and forty cells are there whatever is printed.
    assert!(
        whole.plain().len() <= 100 * text.len() + (1 << 20),
        "{} bytes",
        whole.plain().len()
    );
}

fn is_dangerous(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
        || matches!(
            c,
            '\u{200b}' | '\u{2060}' | '\u{feff}' | '\u{2028}' | '\u{2029}' | '\u{e0000}'..='\u{e007f}'
        )
}
