//! Pictures of what opens over a conversation, at four widths.

use super::{super::desk::*, finding::conversation, reviewing::changed};

const WIDTHS: [u16; 4] = [40, 80, 120, 200];

/// One picture a width, without the time of day, which is the machine's own.
fn pictures(open: impl Fn(u16) -> Desk) -> String {
    let mut text = String::new();
    for width in WIDTHS {
        let desk = open(width);
        text.push_str(&format!("{width} {}\n", "=".repeat(usize::from(width) - 4)));
        for line in desk.picture().lines() {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn after(desk: Desk, keys: &str) -> Desk {
    let mut desk = desk;
    desk.keys(keys);
    desk
}

#[test]
fn the_outline() {
    insta::with_settings!({ filters => vec![(r"\d\d:\d\d\b", "HH:MM")] }, {
        insta::assert_snapshot!(pictures(|width| after(conversation(width, 18), "<tab>v<up><up>")));
    });
}

#[test]
fn a_search() {
    insta::with_settings!({ filters => vec![(r"\d\d:\d\d\b", "HH:MM")] }, {
        insta::assert_snapshot!(pictures(|width| after(conversation(width, 24), "<tab>g/cart")));
    });
}

#[test]
fn a_filter() {
    insta::with_settings!({ filters => vec![(r"\d\d:\d\d\b", "HH:MM")] }, {
        insta::assert_snapshot!(pictures(|width| after(conversation(width, 24), "/filter failed<enter><tab>f")));
    });
}

#[test]
fn a_review() {
    insta::assert_snapshot!(pictures(|width| {
        let mut desk = changed(width);
        desk.resize(width, 16);
        after(desk, "<ctrl+e>")
    }));
}
