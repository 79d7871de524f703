//! Images for terminals that paint one at the cursor and forget it when its cells are written: iTerm2's protocol and sixel.
//!
//! An image is cut into strips of one row of cells. A strip behaves like text: it is written in its row, moves when the
//! screen scrolls, and goes when something else is written there, so nothing has to be known of what the terminal holds.

use std::{collections::BTreeMap, fmt::Write as _, ops::Range};

use base64::{Engine, engine::general_purpose::STANDARD};
use color_quant::NeuQuant;

use super::{super::terminal::pictures, pixels::Pixels};

/// Colours of a picture, besides none at all: every terminal with sixel has as many.
const COLOURS: usize = 255;
/// Rows of pixels that one sign of sixel stands for.
const BAND: usize = 6;
/// More than half of it can be seen through.
const OPAQUE: u8 = 128;
/// Sampling step of the colour quantiser, from 1 (exact) to 30 (fast).
const SAMPLES: i32 = 10;

/// The protocol of a strip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Iterm2,
    Sixel,
}

/// A picture in the size of its cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Painted {
    /// Pixels of a cell.
    cell: (usize, usize),
    columns: usize,
    inks: Inks,
    /// Each row, whole: that is how nearly all of them are shown.
    rows: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Inks {
    Iterm2(Pixels),
    Sixel(Palette),
}

/// A picture of few colours.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Palette {
    wide: usize,
    /// Red, green and blue in hundredths.
    colours: Vec<[u8; 3]>,
    /// The colour of each pixel; [`COLOURS`] for none.
    pixels: Vec<u8>,
}

impl Painted {
    /// `place`: columns and rows; `cell`: pixels of one.
    pub fn new(dialect: Dialect, pixels: &Pixels, place: (usize, usize), cell: (usize, usize)) -> Self {
        let (columns, rows) = place;
        let fitted = pixels.fitted_inside(columns * cell.0, rows * cell.1);
        let inks = match dialect {
            Dialect::Iterm2 => Inks::Iterm2(fitted),
            Dialect::Sixel => Inks::Sixel(Palette::of(&fitted)),
        };
        let mut painted = Self {
            cell,
            columns,
            inks,
            rows: Vec::new(),
        };
        painted.rows = (0..rows).map(|row| painted.encoded(row, 0..columns)).collect();
        painted
    }

    /// The bytes that paint these columns of a row at the cursor.
    pub fn strip(&self, row: usize, columns: Range<usize>, out: &mut Vec<u8>) {
        match self.rows.get(row) {
            Some(whole) if columns == (0..self.columns) => out.extend_from_slice(whole),
            Some(_) => out.extend(self.encoded(row, columns)),
            None => {}
        }
    }

    /// Bytes that the strip takes in memory.
    pub fn bytes(&self) -> usize {
        let pixels = match &self.inks {
            Inks::Iterm2(pixels) => pixels.rgba.len(),
            Inks::Sixel(palette) => palette.pixels.len(),
        };
        pixels + self.rows.iter().map(Vec::len).sum::<usize>()
    }

    fn encoded(&self, row: usize, columns: Range<usize>) -> Vec<u8> {
        let (wide, high) = self.cell;
        let across = columns.start * wide..columns.end * wide;
        let down = row * high..(row + 1) * high;
        match &self.inks {
            Inks::Iterm2(pixels) => {
                let png = pixels.cropped(across, down).to_png();
                pictures::iterm2(&STANDARD.encode(&png), png.len(), columns.len())
            }
            Inks::Sixel(palette) => palette.sixels(across, down).into_bytes(),
        }
    }
}

impl Palette {
    fn of(pixels: &Pixels) -> Self {
        let hundredths = |it: u8| ((u16::from(it) * 100 + 127) / 255) as u8;
        let seen = pixels.rgba.as_chunks::<4>().0.iter().map(|[rgb @ .., alpha]| {
            let rgb = rgb.map(hundredths);
            (*alpha >= OPAQUE).then_some(rgb)
        });
        let mut known: BTreeMap<[u8; 3], u8> = BTreeMap::new();
        for rgb in seen.clone().flatten() {
            if known.len() > COLOURS {
                break;
            }
            known.entry(rgb).or_default();
        }
        let none = COLOURS as u8;
        if known.len() <= COLOURS {
            for (at, number) in known.values_mut().enumerate() {
                *number = at as u8;
            }
            let number = |rgb: Option<[u8; 3]>| rgb.and_then(|it| known.get(&it).copied()).unwrap_or(none);
            return Self {
                wide: pixels.wide,
                pixels: seen.map(number).collect(),
                colours: known.keys().copied().collect(),
            };
        }
        // What is seen through is left out where colours are looked for.
        let shown = pixels.rgba.as_chunks::<4>().0;
        let shown: Vec<u8> = shown.iter().filter(|it| it[3] >= OPAQUE).flatten().copied().collect();
        let found = NeuQuant::new(SAMPLES, COLOURS, &shown);
        let number = |pixel: &[u8; 4]| {
            if pixel[3] >= OPAQUE {
                found.index_of(pixel) as u8
            } else {
                none
            }
        };
        let colours = found.color_map_rgb();
        Self {
            wide: pixels.wide,
            pixels: pixels.rgba.as_chunks::<4>().0.iter().map(number).collect(),
            colours: colours.as_chunks::<3>().0.iter().map(|it| it.map(hundredths)).collect(),
        }
    }

    /// The sixels of a part of the image; transparent pixels stay as they are.
    fn sixels(&self, across: Range<usize>, down: Range<usize>) -> String {
        let rows: Vec<&[u8]> = down
            .filter_map(|row| {
                self.pixels
                    .get(row * self.wide + across.start..row * self.wide + across.end)
            })
            .collect();
        let mut used = [false; COLOURS + 1];
        for number in rows.iter().copied().flatten() {
            if let Some(slot) = used.get_mut(usize::from(*number)) {
                *slot = true;
            }
        }
        let mut text = String::new();
        for (number, [red, green, blue]) in self.colours.iter().enumerate() {
            if used.get(number) == Some(&true) {
                let _ = write!(text, "#{number};2;{red};{green};{blue}");
            }
        }
        let mut bits = vec![0_u8; across.len()];
        for band in rows.chunks(BAND) {
            for number in 0..self.colours.len() {
                if used.get(number) != Some(&true) {
                    continue;
                }
                bits.fill(0);
                let mut has_any = false;
                for (n, row) in band.iter().enumerate() {
                    for (bit, pixel) in bits.iter_mut().zip(*row) {
                        if usize::from(*pixel) == number {
                            *bit |= 1 << n;
                            has_any = true;
                        }
                    }
                }
                if has_any {
                    let _ = write!(text, "#{number}");
                    runs(&bits, &mut text);
                    text.push('$');
                }
            }
            text.push('-');
        }
        // The last line feed would begin a band that belongs to the row below.
        pictures::sixel(across.len(), rows.len(), text.trim_end_matches(['-', '$']))
    }
}

/// Writes columns of bits; equal ones are counted, and what is blank at the end is left out.
fn runs(bits: &[u8], text: &mut String) {
    let used = bits.iter().rposition(|it| *it != 0).map_or(0, |it| it + 1);
    for run in bits.get(..used).unwrap_or_default().chunk_by(|a, b| a == b) {
        let sign = char::from(run.first().copied().unwrap_or_default() + b'?');
        if run.len() > 3 {
            let _ = write!(text, "!{}{sign}", run.len());
        } else {
            text.extend(std::iter::repeat_n(sign, run.len()));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Paints sixels as a terminal does: the colour of each pixel, in hundredths, that anything was painted on.
    fn painted(bytes: &[u8]) -> BTreeMap<(usize, usize), [u8; 3]> {
        let text = std::str::from_utf8(bytes).unwrap();
        let body = text
            .strip_prefix("\x1bP0;1;0q\"")
            .unwrap()
            .strip_suffix("\x1b\\")
            .unwrap();
        let (mut colours, mut pixels) = (BTreeMap::new(), BTreeMap::new());
        let (mut x, mut top, mut colour) = (0, 0, 0);
        let mut rest = body.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';');
        let numbers = |rest: &mut &str| {
            let end = rest
                .find(|it: char| !it.is_ascii_digit() && it != ';')
                .unwrap_or(rest.len());
            let (numbers, after) = rest.split_at(end);
            *rest = after;
            numbers
                .split(';')
                .map(|it| it.parse::<usize>().unwrap())
                .collect::<Vec<_>>()
        };
        fn next(rest: &mut &str) -> Option<char> {
            let mut signs = rest.chars();
            let sign = signs.next();
            *rest = signs.as_str();
            sign
        }
        while let Some(sign) = next(&mut rest) {
            match sign {
                '#' => match numbers(&mut rest)[..] {
                    [number] => colour = number,
                    [number, 2, red, green, blue] => {
                        colours.insert(number, [red as u8, green as u8, blue as u8]);
                    }
                    ref other => panic!("{other:?}"),
                },
                '$' => x = 0,
                '-' => (x, top) = (0, top + BAND),
                '!' | '?'..='~' => {
                    let (count, sign) = match sign {
                        '!' => {
                            let count = numbers(&mut rest)[0];
                            (count, next(&mut rest).unwrap())
                        }
                        sign => (1, sign),
                    };
                    let bits = sign as u8 - b'?';
                    for column in x..x + count {
                        for bit in (0..BAND).filter(|it| bits >> it & 1 == 1) {
                            assert_eq!(
                                pixels.insert((column, top + bit), colours[&colour]),
                                None,
                                "painted twice"
                            );
                        }
                    }
                    x += count;
                }
                other => panic!("{other:?}"),
            }
        }
        pixels
    }

    fn shown(pixels: &Pixels) -> BTreeMap<(usize, usize), [u8; 3]> {
        let all = pixels.rgba.as_chunks::<4>().0.iter().enumerate();
        let seen = all.filter(|it| it.1[3] >= OPAQUE);
        let hundredths = |it: u8| ((f64::from(it) / 255.0 * 100.0).round()) as u8;
        seen.map(|(at, [rgb @ .., _])| ((at % pixels.wide, at / pixels.wide), rgb.map(hundredths)))
            .collect()
    }

    fn pictures() -> impl Strategy<Value = (Pixels, (usize, usize), (usize, usize))> {
        let sizes = (1_usize..5, 1_usize..4, 1_usize..9, 1_usize..20);
        let colours = prop::collection::vec(any::<[u8; 4]>(), 1..12);
        (sizes, colours, any::<u64>()).prop_map(|((columns, rows, wide, high), colours, seed)| {
            let (across, down) = (columns * wide, rows * high);
            let mut state = seed;
            let rgba = (0..across * down).flat_map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                colours[(state >> 33) as usize % colours.len()]
            });
            let pixels = Pixels {
                wide: across,
                high: down,
                rgba: rgba.collect(),
            };
            (pixels, (columns, rows), (wide, high))
        })
    }

    proptest! {
        #[test]
        fn strips_of_sixels_are_the_picture((pixels, place, cell) in pictures(), cut in 0_usize..5) {
            let made = Painted::new(Dialect::Sixel, &pixels, place, cell);
            for row in 0..place.1 {
                for columns in [0..place.0, cut.min(place.0 - 1)..place.0, 0..cut.clamp(1, place.0)] {
                    let mut bytes = Vec::new();
                    made.strip(row, columns.clone(), &mut bytes);
                    let part = pixels.cropped(
                        columns.start * cell.0..columns.end * cell.0,
                        row * cell.1..(row + 1) * cell.1,
                    );
                    prop_assert_eq!(painted(&bytes), shown(&part));
                }
            }
        }

        #[test]
        fn strips_for_iterm2_are_the_picture((pixels, place, cell) in pictures()) {
            let made = Painted::new(Dialect::Iterm2, &pixels, place, cell);
            for row in 0..place.1 {
                let mut bytes = Vec::new();
                made.strip(row, 0..place.0, &mut bytes);
                let text = String::from_utf8(bytes).unwrap();
                let (head, data) = text.strip_suffix('\x07').unwrap().split_once(':').unwrap();
                let png = STANDARD.decode(data).unwrap();
                let sizes = format!(";size={};width={};height=1;", png.len(), place.0);
                prop_assert!(head.contains(&sizes));
                let part = pixels.cropped(0..pixels.wide, row * cell.1..(row + 1) * cell.1);
                let (sent, part) = (Pixels::decode(&png).unwrap(), shown(&part));
                prop_assert_eq!(shown(&sent), part);
            }
        }
    }

    #[test]
    fn a_picture_of_many_colours_comes_near() {
        let rgba = (0..128 * 128_usize).flat_map(|at| [(at % 128 * 2) as u8, (at / 128 * 2) as u8, 90, 255]);
        let pixels = Pixels {
            wide: 128,
            high: 128,
            rgba: rgba.collect(),
        };
        let made = Painted::new(Dialect::Sixel, &pixels, (16, 8), (8, 16));
        for row in 0..8 {
            let mut bytes = Vec::new();
            made.strip(row, 0..16, &mut bytes);
            let wanted = shown(&pixels.cropped(0..128, row * 16..(row + 1) * 16));
            let got = painted(&bytes);
            assert_eq!(got.len(), wanted.len());
            for (at, colour) in got {
                let far = colour.iter().zip(wanted[&at]).map(|(a, b)| a.abs_diff(b)).max();
                assert!(far < Some(16), "{at:?}: {colour:?} for {:?}", wanted[&at]);
            }
        }
        assert!(made.bytes() > 128 * 128);
    }
}
