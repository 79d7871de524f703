//! A sketch of an edit is merged or refused, and what is merged holds every line that the sketch says.

use sheaf::tools::edit::{merge::merge, sketch::is_mark};

/// The file, a NUL, the sketch.
pub fn check(data: &[u8]) {
    if data.len() > 8 << 10 {
        return;
    }
    let text = String::from_utf8_lossy(data);
    let (old, sketch) = text.split_once('\0').unwrap_or((&text, ""));
    for language in ["rust", "python"] {
        let Ok(new) = merge(old, sketch, language) else {
            continue;
        };
        let mut there = new.lines().map(str::trim);
        let said = sketch
            .lines()
            .filter(|it| !is_mark(it, language) && !it.trim().is_empty());
        for line in said {
            assert!(
                there.any(|it| it == line.trim()),
                "{line:?} is lost: {old:?} {sketch:?} {new:?}"
            );
        }
    }
}
