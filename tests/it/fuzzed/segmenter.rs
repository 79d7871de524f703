//! The documents of an answer are the same, whatever the pieces that it came in.

use sheaf::agent::segmenter::{Segment, Segmenter};

/// The first byte is the size of a piece.
pub fn check(data: &[u8]) {
    let Some((size, bytes)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(bytes);
    let whole = told(&[&text]);
    let mut pieces = Vec::new();
    let mut rest = &*text;
    while !rest.is_empty() {
        let at = rest.floor_char_boundary(usize::from(*size).max(4).min(rest.len()));
        let (piece, more) = rest.split_at(at);
        pieces.push(piece);
        rest = more;
    }
    assert_eq!(told(&pieces), whole, "{text:?} in pieces of {size}");
}

/// What was said, with the pieces of a text joined.
fn told(pieces: &[&str]) -> Vec<Segment> {
    let mut segmenter = Segmenter::default();
    let mut segments: Vec<Segment> = pieces.iter().flat_map(|it| segmenter.push(it)).collect();
    segments.extend(segmenter.finish());
    joined(segments)
}

fn joined(segments: Vec<Segment>) -> Vec<Segment> {
    let mut told: Vec<Segment> = Vec::new();
    for segment in segments {
        match (told.last_mut(), segment) {
            (Some(Segment::Delta(before)), Segment::Delta(more)) => before.push_str(&more),
            (_, segment) => told.push(segment),
        }
    }
    told
}
