//! Pictures in the transcript: what a message carries and what a tool has read, as cells where the terminal can draw it, and in
//! words where it cannot.
//!
//! Drawn are PNGs, by terminals that know kitty's graphics protocol with its placeholders: the picture is sent once and has
//! a number, and a cell names the number (as its colour), a row and a column. Such cells are text like any other, so that
//! scrolling, cutting and covering them needs nothing of us. A terminal is known by its own name in the environment; inside
//! of tmux and screen, which would keep the cells and lose the picture, nothing is drawn.
//!
//! A picture is hostile until its head was read: what says that it is huge, or is no base64, is words only. Nothing is
//! decoded here.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    path::Path,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::{
    app::App,
    effect::Effect,
    pane::{Item, transcript::Shown},
};
use crate::{
    locale::figure,
    os::file,
    protocol::{Document, DocumentId, Kind, Message, Turn, View},
    say,
    text::{Clean, Role, Row, Span},
};

/// Cells that a picture takes at most. The protocol has signs for more; a conversation has better things to show.
const MOST_COLUMNS: usize = 60;
const MOST_ROWS: usize = 20;
/// A cell is about so many times as high as it is wide.
const CELL_HEIGHT: u64 = 2;
/// Columns per this many pixels: a small picture is not blown up.
const PIXELS: u64 = 8;
/// Larger pictures are words: all of it would have to go through the terminal while somebody types.
const MOST_BYTES: usize = 4 << 20;
/// More pixels are a bomb, or nothing to look at in cells.
const MOST_PIXELS: u64 = 40_000_000;
/// What the terminal is given to keep; beyond it, the oldest picture goes.
const KEPT_BYTES: usize = 32 << 20;
/// As much of a picture is read to learn its size.
const HEAD_BYTES: usize = 64 << 10;
/// What the protocol takes in one piece.
const CHUNK: usize = 4096;

/// How pictures reach the terminal, and which of them it has.
#[derive(Debug, Default)]
pub struct Images {
    /// It draws them.
    is_on: bool,
    /// Numbers and sizes of what it keeps, the oldest first.
    kept: VecDeque<(u32, usize)>,
    /// The cells that each was placed on.
    has: HashMap<u32, (usize, usize)>,
    /// What tools have read, in base64; `None`: it is asked for, or cannot be had.
    read: HashMap<(Turn, DocumentId), Option<String>>,
}

/// What can be said of a picture without decoding it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Head {
    kind: &'static str,
    /// Pixels.
    size: Option<(u64, u64)>,
    bytes: usize,
}

/// Whether the terminal draws pictures in cells, by what it says of itself.
pub fn is_able(variable: &dyn Fn(&str) -> Option<String>) -> bool {
    let is = |name: &str, value: &str| variable(name).is_some_and(|it| it == value);
    let is_inside = variable("TMUX").is_some()
        || variable("STY").is_some()
        || variable("TERM").is_some_and(|it| it.starts_with("tmux") || it.starts_with("screen"));
    let is_known = variable("KITTY_WINDOW_ID").is_some()
        || is("TERM", "xterm-kitty")
        || is("TERM", "xterm-ghostty")
        || is("TERM_PROGRAM", "ghostty");
    is_known && !is_inside
}

impl Images {
    /// `is_on`: the terminal draws them, and the user wants it to.
    pub fn new(is_on: bool) -> Self {
        Self {
            is_on,
            ..Self::default()
        }
    }

    /// The rows of a message's pictures.
    pub fn rows(&self, message: &Message, width: usize) -> Vec<Row> {
        let mut rows = Vec::new();
        for data in pictures(message) {
            let head = head(data);
            if let Some((columns, height)) = cells(&head, width).filter(|_| self.is_on && is_base64(data)) {
                rows.push(Row::blank());
                rows.extend(drawn(number(data), columns, height));
            }
            rows.push(Row::of([Span::new(words(&head), Role::Dim)]));
        }
        rows
    }

    /// The rows of what a tool has read, where it can be drawn: in words it stands in the document already.
    pub fn rows_of_tool(&self, turn: Turn, document: &Document, width: usize) -> Vec<Row> {
        // Most documents are no picture: nothing is hashed for them.
        if self.read.is_empty() {
            return Vec::new();
        }
        let data = self.read.get(&(turn, document.id.clone())).and_then(Option::as_deref);
        let cells = data.and_then(|it| Some((it, cells(&head(it), width)?)));
        let drawn = cells.map(|(data, (columns, rows))| drawn(number(data), columns, rows));
        drawn.into_iter().flatten().collect()
    }

    /// A picture that was asked for is there, or cannot be had.
    pub fn take(&mut self, turn: Turn, document: DocumentId, data: Option<String>) {
        let data = data.filter(|it| is_base64(it));
        let bytes = |it: &Option<String>| it.as_ref().map_or(0, String::len);
        let kept: usize = self.read.values().map(bytes).sum();
        // What is not kept is read again when somebody comes back to it in another run of the program.
        let data = data.filter(|it| kept + it.len() <= KEPT_BYTES);
        self.read.insert((turn, document), data);
    }

    /// Gives the terminal what is in view and it does not have.
    fn send<'a>(&mut self, pictures: impl Iterator<Item = &'a str>, width: usize, out: &mut Vec<u8>) {
        let mut in_view = Vec::new();
        let mut room = KEPT_BYTES;
        for data in pictures {
            let id = number(data);
            // What is in view is never sent away for something else in view: it would come again with each frame.
            match room.checked_sub(data.len()) {
                Some(rest) => room = rest,
                None => continue,
            }
            in_view.push(id);
            let Some(place @ (columns, rows)) = cells(&head(data), width) else {
                continue;
            };
            match self.has.get(&id) {
                Some(known) if *known == place => continue,
                Some(_) => {
                    // The terminal has another width: only its place is new.
                    self.has.insert(id, place);
                    out.extend_from_slice(
                        format!("\x1b_Ga=p,U=1,p=1,q=2,i={id},c={columns},r={rows}\x1b\\").as_bytes(),
                    );
                    continue;
                }
                None if !is_base64(data) => continue,
                None => {}
            }
            transmit(id, data, columns, rows, out);
            self.has.insert(id, place);
            self.kept.push_back((id, data.len()));
            while self.kept.iter().map(|it| it.1).sum::<usize>() > KEPT_BYTES {
                let is_behind = |it: &(u32, usize)| !in_view.contains(&it.0);
                let Some(at) = self.kept.iter().position(is_behind) else {
                    break;
                };
                let Some((old, _)) = self.kept.remove(at) else { break };
                self.has.remove(&old);
                forget(old, out);
            }
        }
    }

    /// Takes back all that the terminal was given.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        for (id, _) in self.kept.drain(..) {
            forget(id, out);
        }
        self.has.clear();
    }
}

impl App {
    /// Gives the terminal the pictures that are in view. Nothing is done for a conversation without any.
    pub fn send_images(&mut self) {
        if !self.images.is_on {
            return;
        }
        let mut last = None;
        let width = self.layout.content();
        for shown in &self.pane.lines {
            let Some(item) = shown.item().filter(|it| last != Some(*it)) else {
                continue;
            };
            last = Some(item);
            match item {
                Item::Message(at) => {
                    let exchange = self.transcript.exchanges.get(at);
                    if let Some(message) = exchange.and_then(|it| it.message.as_ref()) {
                        self.images.send(pictures(message), width, &mut self.aside);
                    }
                }
                Item::Document(place) if !self.images.read.is_empty() => {
                    let Some(document) = self.transcript.get(place) else {
                        continue;
                    };
                    let key = (self.turn_of(place), document.id.clone());
                    if let Some(data) = self.images.read.get(&key).cloned().flatten() {
                        self.images.send(std::iter::once(data.as_str()), width, &mut self.aside);
                    }
                }
                Item::Document(_) | Item::Thinking(..) | Item::Ending(_) => {}
            }
        }
    }

    /// Pictures that tools have read, in view and not looked at yet.
    pub fn pictures_read(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.images.is_on {
            return effects;
        }
        for shown in &self.pane.lines {
            let Shown::Row {
                item: Item::Document(place),
                row: 0,
            } = *shown
            else {
                continue;
            };
            let Some(document) = self.transcript.get(place) else {
                continue;
            };
            let Some(path) = read_picture(document) else { continue };
            let key = (self.turn_of(place), document.id.clone());
            if let Entry::Vacant(free) = self.images.read.entry(key) {
                let (turn, document) = free.key().clone();
                let path = path.to_owned();
                effects.push(Effect::ReadPicture { turn, document, path });
                free.insert(None);
            }
        }
        effects
    }
}

/// The path of the picture that a call has read.
fn read_picture(document: &Document) -> Option<&str> {
    if document.kind != Kind::ToolCall || document.is_open() {
        return None;
    }
    let View::ToolCall(call) = document.view() else {
        return None;
    };
    let data = call.result.filter(|it| !it.failed)?.data;
    let is_png = data.get("mediaType").and_then(Value::as_str) == Some("image/png");
    let path = call
        .arguments
        .get("path")
        .or_else(|| call.arguments.get("target_file"))?;
    path.as_str().filter(|_| is_png && call.tool_name == "read_file")
}

/// Reads a picture beneath a folder, as the terminal takes it.
pub fn read(root: &Path, path: &str) -> Option<String> {
    let path = Path::new(path);
    let path = path.strip_prefix(root).unwrap_or(path);
    let bytes = file::read_beneath(root, path, MOST_BYTES as u64).ok()?;
    Some(STANDARD.encode(bytes))
}

/// What a message carries, in base64.
fn pictures(message: &Message) -> impl Iterator<Item = &str> {
    let list = message.extra.get("images").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|it| it.get("data")?.as_str())
}

/// Nothing else may be written into the sequence that carries it.
fn is_base64(data: &str) -> bool {
    data.bytes()
        .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'='))
}

/// A number for a picture that is the same wherever it stands; three bytes, as a colour has.
fn number(data: &str) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    // Its ends and its length tell pictures apart, and it need not be read whole for every look.
    let bytes = data.as_bytes();
    let (head, tail) = (bytes.iter().take(4096), bytes.iter().rev().take(4096));
    for byte in head.chain(tail).chain(&data.len().to_le_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // Not near those that others count from one.
    ((hash >> 24) as u32 & 0x00ff_ffff) | 0x0080_0000
}

fn head(data: &str) -> Head {
    let padding = data.bytes().rev().take_while(|it| *it == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    let part = data
        .get(..(HEAD_BYTES / 3 * 4).min(data.len() / 4 * 4))
        .unwrap_or_default();
    let read = STANDARD.decode(part).unwrap_or_default();
    let (kind, size) = match read.as_slice() {
        [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => ("png", png(&read)),
        [0xff, 0xd8, 0xff, ..] => ("jpeg", jpeg(&read)),
        [b'G', b'I', b'F', b'8', ..] => ("gif", gif(&read)),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => ("webp", webp(&read)),
        _ => ("?", None),
    };
    Head {
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

/// The size stands in the first segment that begins a frame.
fn jpeg(bytes: &[u8]) -> Option<(u64, u64)> {
    let mut at = 2;
    loop {
        let [0xff, marker] = *bytes.get(at..at + 2)? else {
            return None;
        };
        let is_frame = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if is_frame {
            return Some((
                number_at::<2>(bytes, at + 7, true)?,
                number_at::<2>(bytes, at + 5, true)?,
            ));
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
fn words(head: &Head) -> Clean {
    let bytes = figure::bytes(head.bytes as u64);
    let bytes = bytes.as_str();
    Clean::from(match head.size {
        Some((width, height)) => {
            let size = format!("{width}×{height}");
            say!("image-sized", size = size, kind = head.kind, bytes = bytes)
        }
        None => say!("image-unsized", kind = head.kind, bytes = bytes),
    })
}

/// Columns and rows of a picture that is drawn.
fn cells(head: &Head, width: usize) -> Option<(usize, usize)> {
    let (wide, high) = head.size?;
    let is_fit = head.kind == "png" && head.bytes <= MOST_BYTES && wide.checked_mul(high)? <= MOST_PIXELS;
    if !is_fit || width < 8 {
        return None;
    }
    let most = MOST_COLUMNS.min(width) as u64;
    let columns = wide.div_ceil(PIXELS).clamp(1, most);
    let rows = |columns: u64| (columns * high).div_ceil(wide * CELL_HEIGHT).max(1);
    let (columns, rows) = match rows(columns) {
        high_enough if high_enough <= MOST_ROWS as u64 => (columns, high_enough),
        _ => {
            let rows = MOST_ROWS as u64;
            ((rows * CELL_HEIGHT * wide / high).clamp(1, most), rows)
        }
    };
    Some((columns as usize, rows as usize))
}

/// The rows of cells that stand for a picture.
fn drawn(id: u32, columns: usize, rows: usize) -> impl Iterator<Item = Row> {
    let [_, red, green, blue] = id.to_be_bytes();
    (0..rows).map(move |row| {
        let mut cells = Clean::default();
        for column in 0..columns {
            cells.push(&Clean::picture_cell(row, column));
        }
        Row::of([Span::new(cells, Role::Picture(red, green, blue))])
    })
}

/// Sends a picture with the size of its place. No answer is wanted.
fn transmit(id: u32, data: &str, columns: usize, rows: usize, out: &mut Vec<u8>) {
    let mut rest = data;
    let mut is_first = true;
    while is_first || !rest.is_empty() {
        let (part, more) = rest.split_at_checked(CHUNK.min(rest.len())).unwrap_or((rest, ""));
        let goes_on = u8::from(!more.is_empty());
        let keys = if is_first {
            format!("a=T,U=1,p=1,f=100,t=d,q=2,i={id},c={columns},r={rows},m={goes_on}")
        } else {
            format!("q=2,m={goes_on}")
        };
        out.extend_from_slice(format!("\x1b_G{keys};{part}\x1b\\").as_bytes());
        (rest, is_first) = (more, false);
    }
}

fn forget(id: u32, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("\x1b_Ga=d,d=I,q=2,i={id}\x1b\\").as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn png_of(wide: u32, high: u32, rest: usize) -> String {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(wide.to_be_bytes());
        bytes.extend(high.to_be_bytes());
        bytes.extend(std::iter::repeat_n(7, rest));
        STANDARD.encode(bytes)
    }

    fn message(data: &str) -> Message {
        let mut message = Message::user("look");
        message
            .extra
            .insert("images".to_owned(), json!([{ "mediaType": "image/png", "data": data }]));
        message
    }

    #[test]
    fn a_terminal_is_known_by_its_name() {
        for (variables, able) in [
            (&[("TERM", "xterm-kitty")][..], true),
            (&[("TERM", "xterm-ghostty")], true),
            (&[("TERM", "xterm-256color"), ("KITTY_WINDOW_ID", "1")], true),
            (&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "ghostty")], true),
            (&[("TERM", "xterm-256color")], false),
            (&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")], false),
            (&[("TERM", "xterm-kitty"), ("TMUX", "/tmp/x")], false),
            (&[("TERM", "screen"), ("KITTY_WINDOW_ID", "1")], false),
            (&[], false),
        ] {
            let variable = |name: &str| {
                let found = variables.iter().find(|it| it.0 == name);
                found.map(|it| it.1.to_owned())
            };
            assert_eq!(is_able(&variable), able, "{variables:?}");
        }
    }

    #[test]
    fn the_size_of_a_picture_is_in_its_head() {
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x01\x02\x03\x04\x01".to_vec();
        let gif = b"GIF89a\x40\x01\xf0\x00".to_vec();
        let mut webp = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0".to_vec();
        webp.extend([0x7f, 2, 0, 0xdf, 1, 0]);
        for (bytes, said) in [
            (STANDARD.decode(png_of(640, 480, 3)).unwrap(), "image 640×480 png, 27 B"),
            (jpeg, "image 772×258 jpeg, 18 B"),
            (gif, "image 320×240 gif, 10 B"),
            (webp, "image 640×480 webp, 30 B"),
            (b"\xff\xd8\xff".to_vec(), "image jpeg, 3 B"),
            (b"text".to_vec(), "image ?, 4 B"),
            (Vec::new(), "image ?, 0 B"),
        ] {
            assert_eq!(&*words(&head(&STANDARD.encode(&bytes))), said);
        }
        // What lies about itself breaks nothing.
        for cut in 0..30 {
            let bytes = STANDARD.decode(png_of(u32::MAX, u32::MAX, 3)).unwrap();
            let data = STANDARD.encode(&bytes[..cut.min(bytes.len())]);
            assert_eq!(cells(&head(&data), 80), None);
        }
    }

    #[test]
    fn a_picture_takes_its_shape_in_cells() {
        let size = |wide, high, width| cells(&head(&png_of(wide, high, 0)), width);
        assert_eq!(size(640, 480, 100), Some((53, 20)), "twenty rows at most");
        assert_eq!(size(640, 160, 100), Some((60, 8)), "sixty columns at most");
        assert_eq!(size(64, 32, 100), Some((8, 2)), "a small one stays small");
        assert_eq!(size(640, 160, 20), Some((20, 3)));
        assert_eq!(size(1, 1, 100), Some((1, 1)));
        assert_eq!(size(1, 9000, 100), Some((1, 20)));
        assert_eq!(size(9000, 1, 100), Some((60, 1)));
        assert_eq!(size(0, 5, 100), None);
        assert_eq!(size(40_000, 40_000, 100), None, "a bomb");
        assert_eq!(size(640, 480, 4), None, "no room");
    }

    #[test]
    fn where_nothing_can_be_drawn_it_is_said() {
        let rows = Images::new(false).rows(&message(&png_of(64, 32, 3)), 80);
        let said: Vec<String> = rows.iter().map(Row::plain).collect();
        assert_eq!(said, ["image 64×32 png, 27 B"]);
    }

    #[test]
    fn cells_name_the_picture_and_it_is_sent_once() {
        let data = png_of(32, 32, 9000);
        let mut images = Images::new(true);
        let message = message(&data);
        let rows = images.rows(&message, 80);
        // A blank, two rows of four cells, the words.
        assert_eq!(rows.len(), 4);
        assert_eq!(
            rows[2].plain(),
            "\u{10eeee}\u{30d}\u{305}\u{10eeee}\u{30d}\u{30d}\u{10eeee}\u{30d}\u{30e}\u{10eeee}\u{30d}\u{310}"
        );
        let id = number(&data);
        let [_, red, green, blue] = id.to_be_bytes();
        assert_eq!(rows[1].spans[0].role, Role::Picture(red, green, blue));
        let mut out = Vec::new();
        images.send(pictures(&message), 80, &mut out);
        let text = String::from_utf8(out.clone()).unwrap();
        assert!(
            text.starts_with(&format!(
                "\u{1b}_Ga=T,U=1,p=1,f=100,t=d,q=2,i={id},c=4,r=2,m=1;iVBORw0KGgo"
            )),
            "{text:.80}"
        );
        let parts: String = text
            .split("\x1b\\")
            .filter_map(|it| Some(it.split_once(';')?.1))
            .collect();
        assert_eq!(parts, data);
        assert!(text.split("\x1b\\").all(|it| it.len() < 4096 + 100));
        images.send(pictures(&message), 80, &mut out);
        assert_eq!(out.len(), text.len(), "the terminal has it");
        out.clear();
        images.send(pictures(&message), 8, &mut out);
        assert!(out.is_empty(), "it has the same place there");
        images.leave(&mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            format!("\u{1b}_Ga=d,d=I,q=2,i={id}\u{1b}\\")
        );
    }

    #[test]
    fn what_is_no_base64_is_never_written() {
        let data = format!("{}\x1b\\\x1b[2J", png_of(32, 32, 30));
        let mut out = Vec::new();
        let mut images = Images::new(true);
        images.send(pictures(&message(&data)), 80, &mut out);
        assert!(out.is_empty());
        assert_eq!(images.rows(&message(&data), 80).len(), 1);
    }

    #[test]
    fn the_terminal_keeps_no_more_than_so_much() {
        let mut images = Images::new(true);
        let mut out = Vec::new();
        for n in 0..12_usize {
            let data = png_of(32, 32, (3 << 20) + n);
            images.send(std::iter::once(data.as_str()), 80, &mut out);
        }
        assert!(images.kept.iter().map(|it| it.1).sum::<usize>() <= KEPT_BYTES);
        assert_eq!(images.kept.len(), images.has.len());
    }
}
