//! Format and size of an image, without decoding it.

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::{locale::figure, t, text::Sanitized};

/// Cells that a picture takes at most. The protocol has signs for more; a conversation has better things to show.
const MOST_COLUMNS: usize = 60;
const MOST_ROWS: usize = 20;
/// Columns per this many pixels: a small picture is not blown up.
const PIXELS: u64 = 8;
/// Larger pictures are words: all of it would have to go through the terminal while somebody types.
pub const MOST_BYTES: usize = 4 << 20;
/// More pixels are a bomb, or nothing to look at in cells.
pub const MOST_PIXELS: u64 = 24_000_000;
/// As much of a picture is read to learn its size, and of a JPEG.
const SHORT_BYTES: usize = 96;
const HEAD_BYTES: usize = 64 << 10;

/// Format and size of an image, from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageHead {
    pub kind: &'static str,
    /// Pixels.
    pub size: Option<(u64, u64)>,
    pub bytes: usize,
}

/// Reads the head of what is written in base64.
pub fn head(data: &str) -> ImageHead {
    let padding = data.bytes().rev().take_while(|it| *it == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    let first = |bytes: usize| {
        let part = data.get(..(bytes / 3 * 4).min(data.len() / 4 * 4));
        STANDARD.decode(part.unwrap_or_default()).unwrap_or_default()
    };
    let mut read = first(SHORT_BYTES);
    if read.starts_with(&[0xff, 0xd8]) {
        // What a camera notes stands before the size.
        read = first(HEAD_BYTES);
    }
    let (kind, size) = match read.as_slice() {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => ("png", png(&read)),
        [0xff, 0xd8, 0xff, ..] => ("jpeg", jpeg(&read)),
        [b'G', b'I', b'F', b'8', ..] => ("gif", gif(&read)),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => ("webp", webp(&read)),
        _ => ("?", None),
    };
    ImageHead {
        kind,
        size: size.filter(|it| it.0 > 0 && it.1 > 0),
        bytes,
    }
}

fn number_at<const BYTES: usize>(bytes: &[u8], at: usize, is_big: bool) -> Option<u64> {
    let part = bytes.get(at..at + BYTES)?;
    let add = |sum: u64, byte: &u8| sum << 8 | u64::from(*byte);
    Some(if is_big {
        part.iter().fold(0, add)
    } else {
        part.iter().rev().fold(0, add)
    })
}

fn png(bytes: &[u8]) -> Option<(u64, u64)> {
    Some((number_at::<4>(bytes, 16, true)?, number_at::<4>(bytes, 20, true)?))
}

fn gif(bytes: &[u8]) -> Option<(u64, u64)> {
    Some((number_at::<2>(bytes, 6, false)?, number_at::<2>(bytes, 8, false)?))
}

/// The orientation in a TIFF header (Exif), from 1 (upright) to 8; 1 without one.
pub fn orientation(tiff: &[u8]) -> u8 {
    const TAG: u64 = 0x0112;
    let is_big = tiff.starts_with(b"MM");
    let find = || {
        let entries = usize::try_from(number_at::<4>(tiff, 4, is_big)?).ok()?;
        let count = number_at::<2>(tiff, entries, is_big)?;
        let entry = (0..count as usize)
            .map(|it| entries + 2 + it * 12)
            .find(|it| number_at::<2>(tiff, *it, is_big) == Some(TAG))?;
        u8::try_from(number_at::<2>(tiff, entry + 8, is_big)?).ok()
    };
    find().filter(|it| (1..=8).contains(it)).unwrap_or(1)
}

/// The size stands in the first segment that begins a frame, and how it is held before that.
fn jpeg(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut at = 2;
    let mut held = 1;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else {
            return None;
        };
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            let wide = number_at::<2>(bytes, at + 7, true)?;
            let high = number_at::<2>(bytes, at + 5, true)?;
            return Some(if held >= 5 { (high, wide) } else { (wide, high) });
        }
        let noted = bytes.get(at + 4..).and_then(|it| it.strip_prefix(b"Exif\0\0"));
        if let Some(tiff) = noted.filter(|_| marker == 0xe1) {
            held = orientation(tiff);
        }
        at += 2 + usize::try_from(number_at::<2>(bytes, at + 2, true)?).ok()?.max(2);
    }
}

fn webp(bytes: &[u8]) -> Option<(u64, u64)> {
    match bytes.get(12..16)? {
        b"VP8X" => Some((
            number_at::<3>(bytes, 24, false)? + 1,
            number_at::<3>(bytes, 27, false)? + 1,
        )),
        b"VP8L" => {
            let bits = number_at::<4>(bytes, 21, false)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8 " => Some((
            number_at::<2>(bytes, 26, false)? & 0x3fff,
            number_at::<2>(bytes, 28, false)? & 0x3fff,
        )),
        _ => None,
    }
}

/// `image 640×480 png, 34 kB`.
pub fn words(head: &ImageHead) -> Sanitized {
    let bytes = figure::bytes(head.bytes as u64);
    let bytes = bytes.as_str();
    Sanitized::from(match head.size {
        Some((width, height)) => {
            let size = format!("{width}×{height}");
            t!("image-sized", size = size, kind = head.kind, bytes = bytes)
        }
        None => t!("image-unsized", kind = head.kind, bytes = bytes),
    })
}

/// Columns and rows of a picture that is drawn; `cell`: pixels of one.
pub fn cells(head: &ImageHead, width: usize, cell: (u16, u16)) -> Option<(usize, usize)> {
    let (wide, high) = head.size?;
    let (across, down) = (u64::from(cell.0), u64::from(cell.1));
    let is_fit = head.kind != "?" && head.bytes <= MOST_BYTES && wide.checked_mul(high)? <= MOST_PIXELS;
    if !is_fit || width < 8 || across == 0 || down == 0 {
        return None;
    }
    let most = MOST_COLUMNS.min(width) as u64;
    let columns = wide.div_ceil(PIXELS).clamp(1, most);
    // To the nearest: a row that is hardly begun would be a gap.
    let rows = |columns: u64| ((columns * across * high + wide * down / 2) / (wide * down)).max(1);
    let (columns, rows) = match rows(columns) {
        high_enough if high_enough <= MOST_ROWS as u64 => (columns, high_enough),
        _ => {
            let rows = MOST_ROWS as u64;
            ((rows * down * wide / (high * across)).clamp(1, most), rows)
        }
    };
    Some((columns as usize, rows as usize))
}
