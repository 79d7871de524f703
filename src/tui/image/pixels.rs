//! Images as pixels: decoded within limits and scaled to their cells.

use std::{io::Cursor, ops::Range};

use zune_jpeg::{
    JpegDecoder,
    zune_core::{bytestream::ZCursor, colorspace::ColorSpace, options::DecoderOptions},
};

use super::head::{MOST_PIXELS, orientation};

/// Most bytes that a decoder may allocate.
const MOST_BYTES: usize = MOST_PIXELS as usize * 4 + (32 << 20);

/// Rows of pixels from the top, each red, green, blue and opacity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pixels {
    pub wide: usize,
    pub high: usize,
    pub rgba: Vec<u8>,
}

impl Pixels {
    /// Decodes a PNG, JPEG, WebP or GIF, of which the first frame; `None` when it is none, is broken, or is too large.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let decoded = match bytes {
            [0x89, b'P', b'N', b'G', ..] => png(bytes),
            [0xff, 0xd8, ..] => jpeg(bytes),
            [b'G', b'I', b'F', ..] => gif(bytes),
            [b'R', b'I', b'F', b'F', ..] => webp(bytes),
            _ => None,
        };
        decoded.filter(|it| it.wide > 0 && it.high > 0 && it.rgba.len() == it.wide * it.high * 4)
    }

    /// The same picture in another size: each pixel is the mean of those that it stands for.
    pub fn fitted(&self, wide: usize, high: usize) -> Self {
        let mut rgba = Vec::with_capacity(wide * high * 4);
        for y in 0..high {
            let rows = part(y, high, self.high);
            for x in 0..wide {
                let columns = part(x, wide, self.wide);
                let (mut sums, mut opacity, mut count) = ([0_u64; 3], 0_u64, 0_u64);
                for row in rows.clone() {
                    let from = (row * self.wide + columns.start) * 4;
                    let to = (row * self.wide + columns.end) * 4;
                    for pixel in self.rgba.get(from..to).unwrap_or_default().as_chunks::<4>().0 {
                        let [colours @ .., alpha] = pixel;
                        let alpha = u64::from(*alpha);
                        for (sum, colour) in sums.iter_mut().zip(colours) {
                            // What cannot be seen has no say in the colour.
                            *sum += u64::from(*colour) * alpha;
                        }
                        opacity += alpha;
                        count += 1;
                    }
                }
                rgba.extend(sums.map(|it| it.checked_div(opacity).unwrap_or_default() as u8));
                rgba.push(opacity.checked_div(count).unwrap_or_default() as u8);
            }
        }
        Self { wide, high, rgba }
    }

    /// In so much room, as large as its shape allows; nothing is painted beside and below it.
    pub fn fitted_inside(&self, wide: usize, high: usize) -> Self {
        // As wide as the room, unless that is too high.
        let as_high = (wide * self.high + self.wide / 2) / self.wide.max(1);
        let (across, down) = if as_high <= high {
            (wide, as_high.max(1))
        } else {
            (
                ((high * self.wide + self.high / 2) / self.high.max(1)).clamp(1, wide),
                high,
            )
        };
        let fitted = self.fitted(across, down);
        let mut rgba = Vec::with_capacity(wide * high * 4);
        for row in fitted.rgba.chunks_exact(across * 4) {
            rgba.extend_from_slice(row);
            rgba.resize(rgba.len() + (wide - across) * 4, 0);
        }
        rgba.resize(wide * high * 4, 0);
        Self { wide, high, rgba }
    }

    /// Held as the camera was, by the number that it noted.
    fn upright(self, orientation: u8) -> Self {
        let (wide, high) = (self.wide, self.high);
        let is_turned = orientation >= 5;
        let (across, down) = if is_turned { (high, wide) } else { (wide, high) };
        // Where the pixel at a column and a row comes from.
        let from = |x: usize, y: usize| match orientation {
            2 => (wide - 1 - x, y),
            3 => (wide - 1 - x, high - 1 - y),
            4 => (x, high - 1 - y),
            5 => (y, x),
            6 => (y, high - 1 - x),
            7 => (wide - 1 - y, high - 1 - x),
            8 => (wide - 1 - y, x),
            _ => (x, y),
        };
        if !(2..=8).contains(&orientation) {
            return self;
        }
        let pixels = self.rgba.as_chunks::<4>().0;
        let places = (0..down).flat_map(|y| (0..across).map(move |x| (x, y)));
        let turned = places.filter_map(|(x, y)| {
            let (x, y) = from(x, y);
            pixels.get(y * wide + x)
        });
        Self {
            wide: across,
            high: down,
            rgba: turned.flatten().copied().collect(),
        }
    }

    /// A part of it.
    pub fn cropped(&self, columns: Range<usize>, rows: Range<usize>) -> Self {
        let columns = columns.start.min(self.wide)..columns.end.min(self.wide);
        let rows = rows.start.min(self.high)..rows.end.min(self.high);
        let mut rgba = Vec::with_capacity(columns.len() * rows.len() * 4);
        for row in rows.clone() {
            let from = (row * self.wide + columns.start) * 4;
            let to = (row * self.wide + columns.end) * 4;
            rgba.extend_from_slice(self.rgba.get(from..to).unwrap_or_default());
        }
        Self {
            wide: columns.len(),
            high: rows.len(),
            rgba,
        }
    }

    /// As a PNG.
    pub fn to_png(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = ::png::Encoder::new(&mut bytes, self.wide as u32, self.high as u32);
        encoder.set_color(::png::ColorType::Rgba);
        encoder.set_depth(::png::BitDepth::Eight);
        encoder.set_compression(::png::Compression::Balanced);
        let written = encoder.write_header().and_then(|mut it| {
            it.write_image_data(&self.rgba)?;
            it.finish()
        });
        if written.is_err() {
            bytes.clear();
        }
        bytes
    }
}

/// The pixels of a side that one of so many stands for.
fn part(at: usize, of: usize, size: usize) -> Range<usize> {
    let from = at * size / of.max(1);
    from..((at + 1) * size)
        .div_ceil(of.max(1))
        .clamp(from + 1, size.max(from + 1))
}

/// `None` if a picture has more pixels than are decoded: a small file may hold a huge one.
fn fit(wide: usize, high: usize) -> Option<()> {
    (wide.checked_mul(high)? <= MOST_PIXELS as usize).then_some(())
}

fn png(bytes: &[u8]) -> Option<Pixels> {
    let mut decoder = ::png::Decoder::new_with_limits(Cursor::new(bytes), ::png::Limits { bytes: MOST_BYTES });
    decoder.set_transformations(::png::Transformations::normalize_to_color8() | ::png::Transformations::ALPHA);
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().ok()?;
    fit(reader.info().width as usize, reader.info().height as usize)?;
    let mut read = vec![0; reader.output_buffer_size().filter(|it| *it <= MOST_BYTES)?];
    let info = reader.next_frame(&mut read).ok()?;
    read.truncate(info.buffer_size());
    let rgba = match info.color_type {
        ::png::ColorType::Rgba => read,
        ::png::ColorType::GrayscaleAlpha => {
            let grey = read.as_chunks::<2>().0;
            grey.iter().flat_map(|[it, alpha]| [*it, *it, *it, *alpha]).collect()
        }
        ::png::ColorType::Rgb => opaque(&read),
        ::png::ColorType::Grayscale => read.iter().flat_map(|it| [*it, *it, *it, u8::MAX]).collect(),
        ::png::ColorType::Indexed => return None,
    };
    Some(Pixels {
        wide: info.width as usize,
        high: info.height as usize,
        rgba,
    })
}

fn jpeg(bytes: &[u8]) -> Option<Pixels> {
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    decoder.decode_headers().ok()?;
    let info = decoder.info()?;
    let (wide, high) = (usize::from(info.width), usize::from(info.height));
    fit(wide, high)?;
    let rgba = opaque(&decoder.decode().ok()?);
    let orientation = decoder.exif().map_or(1, |it| orientation(it));
    let pixels = Pixels { wide, high, rgba };
    // What is turned has to be whole.
    (pixels.rgba.len() == wide * high * 4).then(|| pixels.upright(orientation))
}

fn webp(bytes: &[u8]) -> Option<Pixels> {
    let mut decoder = image_webp::WebPDecoder::new(Cursor::new(bytes)).ok()?;
    decoder.set_memory_limit(MOST_BYTES);
    let (wide, high) = decoder.dimensions();
    fit(wide as usize, high as usize)?;
    let mut read = vec![0; decoder.output_buffer_size().filter(|it| *it <= MOST_BYTES)?];
    decoder.read_image(&mut read).ok()?;
    Some(Pixels {
        wide: wide as usize,
        high: high as usize,
        rgba: if decoder.has_alpha() { read } else { opaque(&read) },
    })
}

fn gif(bytes: &[u8]) -> Option<Pixels> {
    let mut options = ::gif::DecodeOptions::new();
    options.set_color_output(::gif::ColorOutput::RGBA);
    let limit = std::num::NonZeroU64::new(MOST_BYTES as u64)?;
    options.set_memory_limit(::gif::MemoryLimit::Bytes(limit));
    let mut decoder = options.read_info(Cursor::new(bytes)).ok()?;
    let (wide, high) = (usize::from(decoder.width()), usize::from(decoder.height()));
    fit(wide, high)?;
    let frame = decoder.read_next_frame().ok()??;
    // A frame may be a part of the picture only.
    let mut rgba = vec![0; wide * high * 4];
    let (left, top) = (usize::from(frame.left), usize::from(frame.top));
    let across = usize::from(frame.width).min(wide.saturating_sub(left)) * 4;
    let rows = frame.buffer.chunks_exact((usize::from(frame.width) * 4).max(1));
    for (row, pixels) in rows.enumerate() {
        let from = ((top + row) * wide + left) * 4;
        if let (Some(to), Some(pixels)) = (rgba.get_mut(from..from + across), pixels.get(..across)) {
            to.copy_from_slice(pixels);
        }
    }
    Some(Pixels { wide, high, rgba })
}

fn opaque(rgb: &[u8]) -> Vec<u8> {
    let pixels = rgb.as_chunks::<3>().0;
    pixels
        .iter()
        .flat_map(|[red, green, blue]| [*red, *green, *blue, u8::MAX])
        .collect()
}
