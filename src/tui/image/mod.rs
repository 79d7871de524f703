//! Pictures in the transcript: what a message carries and what a tool has read, as cells where the terminal can draw it, and in
//! words where it cannot.
//!
//! A cell of a picture names the picture, a row and a column, as kitty's protocol has it. Where the terminal speaks that,
//! the picture is sent once and such cells are text like any other, so that scrolling, cutting and covering them needs
//! nothing of us. Where it speaks iTerm2's protocol or sixel, they are the screen's business: it writes blanks instead, and
//! over them the strip of the picture that belongs there.
//!
//! How a terminal is known: by the name that it answers with, or because it says that it knows sixel. tmux and screen would
//! keep the cells and lose the picture, and a tmux that knows sixel keeps a few strips and puts words in place of the others:
//! inside of them a picture is words.
//!
//! A picture is hostile until its head was read: what says that it is huge, or is no base64, is words only. It is decoded
//! on another thread, one at a time, and within bounds.

mod head;
mod pixels;
mod strip;

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    path::Path,
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use self::{
    head::{ImageHead, MOST_BYTES, cells, head, words},
    pixels::Pixels,
    strip::{Dialect, Painted},
};
use super::terminal::{ImageProtocol, ImageSetting, Strips, pictures as sequences};
use crate::{
    os::file,
    protocol::{Document, DocumentId, Kind, Message, Turn, View},
    text::{Role, Sanitized, Span, StyledLine},
};

/// Most bytes of images that are kept, here or by the terminal; the oldest goes first.
pub const KEPT_BYTES: usize = 32 << 20;
/// Larger ones are made smaller before the terminal gets them.
const SENT_AS_IS: usize = 128 << 10;
/// As many bytes of pictures go with a frame.
const PER_FRAME: usize = 32 << 10;
/// Pixels of a cell where nobody says how many there are: terminals fit what they get.
const CELL: (u16, u16) = (10, 20);

/// As fine as a picture is painted where the terminal enlarges it: a row of it goes out with each line that comes into view.
const FINE: (usize, usize) = (12, 24);

/// Columns and rows.
type CellSize = (usize, usize);

/// The images of the conversation: those that tools have read, those prepared for the terminal, and those it keeps.
#[derive(Debug, Default)]
pub struct Images {
    pub wish: ImageSetting,
    pub way: Option<ImageProtocol>,
    /// Pixels of a cell, as the terminal says.
    pub cell: Option<(u16, u16)>,
    /// Images stay with the terminal after the program ends.
    stays: bool,
    /// Numbers and sizes of what it keeps, the oldest first.
    kept: VecDeque<(u32, usize)>,
    /// The cells that each was placed on.
    has: HashMap<u32, CellSize>,
    /// Sequences that the terminal has not got yet. Text may stand between them.
    queue: VecDeque<Vec<u8>>,
    /// Images that tools have read.
    pub read: HashMap<(Turn, DocumentId), ReadImage>,
    /// Images that were prepared, the oldest first; `None` for one that cannot be decoded.
    made: VecDeque<(u32, Option<Made>)>,
    /// One is being made.
    pub is_making: bool,
    /// Numbers of those in view, as of the last look.
    pub in_view: Vec<u32>,
}

/// An image that a tool has read.
#[derive(Debug)]
pub enum ReadImage {
    Asked,
    Missing,
    /// In base64.
    Data(Arc<str>),
}

/// A picture that is to be made into what the terminal takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageOrder {
    id: u32,
    /// In base64.
    data: Arc<str>,
    place: CellSize,
    cell: (u16, u16),
    /// `None`: a PNG is wanted.
    dialect: Option<Dialect>,
}

/// An image, prepared for the terminal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Made {
    /// A PNG in base64, of whatever it was.
    Png(Arc<str>),
    Strips(CellSize, (u16, u16), Arc<Painted>),
}

impl Made {
    fn bytes(&self) -> usize {
        match self {
            Self::Png(data) => data.len(),
            Self::Strips(_, _, painted) => painted.bytes(),
        }
    }
}

/// The state of an image on its way to the screen.
enum ImageState {
    Ready,
    /// Its cells are left blank until it is there.
    Awaited,
    /// It is words only.
    Never,
}

impl Images {
    /// `cell`: pixels of one, if the terminal says so.
    pub fn new(wish: ImageSetting, cell: Option<(u16, u16)>) -> Self {
        Self {
            wish,
            way: match wish {
                ImageSetting::Off | ImageSetting::Auto => None,
                ImageSetting::Only(way) => Some(way),
            },
            cell,
            ..Self::default()
        }
    }

    /// Leaves the images to the terminal when the program ends: they are among its own lines.
    pub fn staying(mut self) -> Self {
        self.stays = true;
        self
    }

    /// Returns true if the terminal keeps the images after the program ends.
    pub fn do_stay(&self) -> bool {
        self.stays
    }

    pub fn is_on(&self) -> bool {
        match self.way {
            None => false,
            // Without the size of a cell, what is painted would end somewhere.
            Some(ImageProtocol::Sixel) => self.cell.is_some(),
            Some(ImageProtocol::Kitty | ImageProtocol::Iterm2 | ImageProtocol::Konsole) => true,
        }
    }

    fn dialect(&self) -> Option<Dialect> {
        match self.way? {
            ImageProtocol::Kitty => None,
            ImageProtocol::Iterm2 | ImageProtocol::Konsole => Some(Dialect::Iterm2),
            ImageProtocol::Sixel => Some(Dialect::Sixel),
        }
    }

    fn cell(&self) -> (u16, u16) {
        self.cell.unwrap_or(CELL)
    }

    /// The strips that the screen paints, where it has to.
    pub fn strips(&self) -> Option<&dyn Strips> {
        self.dialect().map(|_| self as &dyn Strips)
    }

    /// Returns the rows of a message's pictures, with a line about each.
    pub fn rows(&self, message: &Message, width: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        for data in pictures(message) {
            let drawn = self.drawn(data, width);
            if !drawn.is_empty() {
                rows.push(StyledLine::blank());
                rows.extend(drawn);
            }
            rows.push(StyledLine::of([Span::new(words(&head(data)), Role::Dim)]));
        }
        rows
    }

    /// Returns the rows of the image that a tool has read, which its document names already; none for other documents.
    pub fn rows_of_document(&self, turn: Turn, document: &DocumentId, width: usize) -> Vec<StyledLine> {
        // Most documents are no picture: nothing is hashed for them.
        if self.read.is_empty() {
            return Vec::new();
        }
        match self.read.get(&(turn, document.clone())) {
            Some(ReadImage::Data(data)) => self.drawn(data, width),
            Some(ReadImage::Asked | ReadImage::Missing) | None => Vec::new(),
        }
    }

    fn drawn(&self, data: &str, width: usize) -> Vec<StyledLine> {
        if !self.is_on() {
            return Vec::new();
        }
        let head = head(data);
        let Some(place @ (columns, rows)) = cells(&head, width, self.cell()).filter(|_| is_base64(data)) else {
            return Vec::new();
        };
        let id = number(data);
        match self.state(id, &head, place) {
            ImageState::Ready => drawn(id, columns, rows).collect(),
            ImageState::Awaited => vec![StyledLine::blank(); rows],
            ImageState::Never => Vec::new(),
        }
    }

    fn state(&self, id: u32, head: &ImageHead, place: CellSize) -> ImageState {
        let made = self.made.iter().find(|it| it.0 == id);
        match (self.dialect(), made) {
            (None, _) if is_sent_as_is(head) => ImageState::Ready,
            (_, Some((_, None))) => ImageState::Never,
            (None, Some((_, Some(Made::Png(_))))) => ImageState::Ready,
            (Some(_), Some((_, Some(Made::Strips(known, cell, _))))) if (*known, *cell) == (place, self.cell()) => {
                ImageState::Ready
            }
            _ => ImageState::Awaited,
        }
    }

    /// A picture that was asked for is there, or cannot be had.
    pub fn take(&mut self, turn: Turn, document: DocumentId, data: Option<String>) {
        let data = data.filter(|it| is_base64(it));
        let bytes = |it: &ReadImage| match it {
            ReadImage::Data(data) => data.len(),
            ReadImage::Asked | ReadImage::Missing => 0,
        };
        let kept: usize = self.read.values().map(bytes).sum();
        // What is not kept is read again when somebody comes back to it in another run of the program.
        let data = data.filter(|it| kept + it.len() <= KEPT_BYTES);
        let read = data.map_or(ReadImage::Missing, |it| ReadImage::Data(it.into()));
        self.read.insert((turn, document), read);
    }

    /// An order was carried out, or cannot be.
    pub fn take_made(&mut self, id: u32, made: Option<Made>) {
        self.is_making = false;
        self.made.retain(|it| it.0 != id);
        self.made.push_back((id, made));
        let bytes = |it: &(u32, Option<Made>)| it.1.as_ref().map_or(0, Made::bytes);
        let mut all: usize = self.made.iter().map(bytes).sum();
        while all > KEPT_BYTES {
            // What is in view would be made again at once.
            let is_behind = |it: &(u32, Option<Made>)| it.0 != id && it.1.is_some() && !self.in_view.contains(&it.0);
            let Some(at) = self.made.iter().position(is_behind) else {
                break;
            };
            all -= self.made.remove(at).as_ref().map_or(0, bytes);
        }
    }

    /// The number and place of a picture of which something has to be made before it can be drawn.
    pub fn awaited(&self, data: &str, width: usize) -> Option<(u32, CellSize)> {
        let head = head(data);
        let place = cells(&head, width, self.cell())?;
        let id = number(data);
        let is_awaited = matches!(self.state(id, &head, place), ImageState::Awaited);
        (is_awaited && is_base64(data)).then_some((id, place))
    }

    pub fn order(&self, data: &str, width: usize) -> Option<ImageOrder> {
        self.awaited(data, width).map(|(id, place)| ImageOrder {
            id,
            data: data.into(),
            place,
            cell: self.cell(),
            dialect: self.dialect(),
        })
    }

    /// Has the terminal be given what is in view and it does not have.
    pub fn send<'a>(&mut self, pictures: impl Iterator<Item = &'a str>, width: usize, room: &mut usize) {
        if self.way != Some(ImageProtocol::Kitty) {
            return;
        }
        let mut in_view = std::mem::take(&mut self.in_view);
        for data in pictures {
            let id = number(data);
            // What is in view is never sent away for something else in view: it would come again with each frame.
            match room.checked_sub(data.len()) {
                Some(rest) => *room = rest,
                None => continue,
            }
            in_view.push(id);
            let head = head(data);
            let Some(place @ (columns, rows)) = cells(&head, width, self.cell()) else {
                continue;
            };
            let as_png = match self.made.iter().find(|it| it.0 == id) {
                Some((_, Some(Made::Png(png)))) => Some(Arc::clone(png)),
                _ => None,
            };
            match self.has.get(&id) {
                Some(known) if *known == place => continue,
                Some(_) => {
                    // The terminal has another width: only its place is new.
                    self.has.insert(id, place);
                    self.queue.push_back(sequences::place(id, columns, rows));
                    continue;
                }
                None if !is_base64(data) || (!is_sent_as_is(&head) && as_png.is_none()) => continue,
                None => {}
            }
            let data = as_png.as_deref().unwrap_or(data);
            self.queue.extend(sequences::transmit(id, data, columns, rows));
            self.has.insert(id, place);
            self.kept.push_back((id, data.len()));
            while self.kept.iter().map(|it| it.1).sum::<usize>() > KEPT_BYTES {
                let is_behind = |it: &(u32, usize)| !in_view.contains(&it.0);
                let Some(at) = self.kept.iter().position(is_behind) else {
                    break;
                };
                let Some((old, _)) = self.kept.remove(at) else { break };
                self.has.remove(&old);
                if !self.stays {
                    self.queue.push_back(sequences::forget(old));
                }
            }
        }
        self.in_view = in_view;
    }

    /// The terminal shows its other screen, which has pictures of its own.
    pub fn is_elsewhere(&mut self) {
        self.kept.clear();
        self.has.clear();
        self.break_off();
    }

    /// Returns true if more has to be sent than the last frame had room for.
    pub fn is_sending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Adds a part of what has to be sent to the frame, small enough to keep typing fluent.
    pub fn flow(&mut self, out: &mut Vec<u8>) {
        let from = out.len();
        // What stands among the terminal's own lines has to be whole before another screen is shown.
        while (self.stays || out.len() - from < PER_FRAME)
            && let Some(piece) = self.queue.pop_front()
        {
            out.extend_from_slice(&piece);
        }
    }

    fn break_off(&mut self) {
        if !self.queue.is_empty() {
            self.queue.clear();
            self.queue.push_back(sequences::BREAK_OFF.to_vec());
        }
    }

    /// Takes back all that the terminal was given, where it does not stay.
    pub fn leave(&mut self, out: &mut Vec<u8>) {
        self.break_off();
        out.extend(self.queue.drain(..).flatten());
        for (id, _) in self.kept.drain(..) {
            if !self.stays {
                out.extend(sequences::forget(id));
            }
        }
        self.has.clear();
    }
}

impl Strips for Images {
    fn strip(&self, id: u32, row: usize, columns: Range<usize>, out: &mut Vec<u8>) {
        let made = self.made.iter().find(|it| it.0 == id);
        if let Some((_, Some(Made::Strips(_, _, painted)))) = made {
            painted.strip(row, columns, out);
        }
    }

    fn eraser(&self) -> &'static [u8] {
        match self.way {
            // Writing over a picture leaves it there; it has kitty's way of taking it away.
            Some(ImageProtocol::Konsole) => sequences::ERASE,
            Some(ImageProtocol::Kitty | ImageProtocol::Iterm2 | ImageProtocol::Sixel) | None => b"",
        }
    }
}

/// The path of the picture that a call has read.
pub fn read_picture(document: &Document) -> Option<&str> {
    if document.kind != Kind::ToolCall || document.is_open() {
        return None;
    }
    let View::ToolCall(call) = document.view() else {
        return None;
    };
    let data = call.result.filter(|it| !it.failed)?.data;
    let kind = data.get("mediaType").and_then(Value::as_str)?;
    let is_picture = matches!(kind, "image/png" | "image/jpeg" | "image/gif" | "image/webp");
    let path = call
        .arguments
        .get("path")
        .or_else(|| call.arguments.get("target_file"))?;
    path.as_str().filter(|_| is_picture && call.tool_name == "read_file")
}

/// Reads a picture beneath a folder, as the terminal takes it.
pub fn read(root: &Path, path: &str) -> Option<String> {
    let path = Path::new(path);
    let path = path.strip_prefix(root).unwrap_or(path);
    let bytes = file::read_beneath(root, path, MOST_BYTES as u64).ok()?;
    Some(STANDARD.encode(bytes))
}

/// Carries an order out: takes as long as decoding does.
pub fn make(order: &ImageOrder) -> (u32, Option<Made>) {
    // A picture that is too much for a decoder is words, like any that is broken.
    let made = std::panic::catch_unwind(|| carried_out(order)).ok().flatten();
    (order.id, made)
}

fn carried_out(order: &ImageOrder) -> Option<Made> {
    let pixels = STANDARD.decode(&*order.data).ok().and_then(|it| Pixels::decode(&it));
    let cell = (usize::from(order.cell.0), usize::from(order.cell.1));
    let (columns, rows) = order.place;
    pixels.map(|pixels| match order.dialect {
        Some(dialect) => {
            let cell = match dialect {
                // The terminal fits what it gets.
                Dialect::Iterm2 => (cell.0.min(FINE.0), cell.1.min(FINE.1)),
                Dialect::Sixel => cell,
            };
            let painted = Painted::new(dialect, &pixels, order.place, cell);
            Made::Strips(order.place, order.cell, Arc::new(painted))
        }
        None => {
            // No more of it than can be seen.
            let (wide, high) = (columns * cell.0, rows * cell.1);
            let is_larger = pixels.wide * pixels.high > wide * high;
            let fitted = is_larger.then(|| pixels.fitted(wide, high));
            Made::Png(STANDARD.encode(fitted.as_ref().unwrap_or(&pixels).to_png()).into())
        }
    })
}

/// Returns true if kitty can be given the file as it is.
fn is_sent_as_is(head: &ImageHead) -> bool {
    head.kind == "png" && head.bytes <= SENT_AS_IS
}

/// The images of a message, in Base64.
pub fn pictures(message: &Message) -> impl Iterator<Item = &str> {
    let list = message.extra.get("images").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|it| it.get("data")?.as_str())
}

/// Nothing else may be written into the sequence that carries it.
fn is_base64(data: &str) -> bool {
    data.bytes()
        .all(|it| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'/' | b'='))
}

/// A number for a picture that is the same wherever it stands: three bytes, as a colour has, and one that a mark has.
pub fn number(data: &str) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    // Its ends and its length tell pictures apart, and it need not be read whole for every look.
    let bytes = data.as_bytes();
    let (head, tail) = (bytes.iter().take(4096), bytes.iter().rev().take(4096));
    for byte in head.chain(tail).chain(&data.len().to_le_bytes()) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    }
    // Not near those that others count from one.
    let highest = (hash >> 24) % 63 + 1;
    (highest as u32) << 24 | (hash >> 32) as u32 & 0x00ff_ffff
}

/// The rows of cells that stand for a picture.
fn drawn(id: u32, columns: usize, rows: usize) -> impl Iterator<Item = StyledLine> {
    let [highest, red, green, blue] = id.to_be_bytes();
    (0..rows).map(move |row| {
        let mut cells = Sanitized::default();
        for column in 0..columns {
            cells.push(&Sanitized::picture_cell(row, column, highest));
        }
        StyledLine::of([Span::new(cells, Role::Picture(red, green, blue))])
    })
}

#[cfg(test)]
mod tests;
