//! Pictures as terminals get them.

use serde_json::json;

use super::{head::*, *};
use crate::{protocol::Message, text::picture_place, tui::terminal::TerminalName};

fn png_of(wide: u32, high: u32, rest: usize) -> String {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
    bytes.extend(wide.to_be_bytes());
    bytes.extend(high.to_be_bytes());
    bytes.extend(std::iter::repeat_n(7, rest));
    STANDARD.encode(bytes)
}

fn in_kitty() -> Images {
    Images::new(ImageSetting::Only(ImageProtocol::Kitty), None)
}

/// As much as a frame has.
fn room() -> usize {
    KEPT_BYTES
}

/// All that the terminal is to get.
fn flown(images: &mut Images) -> Vec<u8> {
    let mut out = Vec::new();
    while images.is_sending() {
        images.flow(&mut out);
    }
    out
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
    for (name, named) in [
        ("kitty(0.35.2)", TerminalName::Draws(ImageProtocol::Kitty)),
        ("kitty(1.0.0)", TerminalName::Draws(ImageProtocol::Kitty)),
        ("kitty(0.28.0)", TerminalName::Draws(ImageProtocol::Kitty)),
        ("kitty(0.26.5)", TerminalName::Other),
        ("kitty", TerminalName::Other),
        ("ghostty 1.0.1", TerminalName::Draws(ImageProtocol::Kitty)),
        ("iTerm2 3.5.10", TerminalName::Draws(ImageProtocol::Iterm2)),
        (
            "WezTerm 20240203-110809-5046fc22",
            TerminalName::Draws(ImageProtocol::Iterm2),
        ),
        ("Konsole 22.12.3", TerminalName::Draws(ImageProtocol::Konsole)),
        ("XTerm(379)", TerminalName::Other),
        ("tmux 3.5a", TerminalName::Between),
        ("", TerminalName::Other),
    ] {
        assert_eq!(TerminalName::of(name), named, "{name}");
    }
    for (variables, wish) in [
        (&[("TERM", "xterm-256color")][..], ImageSetting::Auto),
        (
            &[("TERM", "xterm-kitty"), ("KONSOLE_VERSION", "221203")],
            ImageSetting::Auto,
        ),
        (&[("TERM", "tmux-256color")], ImageSetting::Off),
        (&[("TERM", "xterm-256color"), ("TMUX", "/tmp/x")], ImageSetting::Off),
        (&[("STY", "1.x")], ImageSetting::Off),
    ] {
        let variable = |name: &str| {
            let found = variables.iter().find(|it| it.0 == name);
            found.map(|it| it.1.to_owned())
        };
        assert_eq!(ImageSetting::Auto.here(&variable), wish, "{variables:?}");
        let only = ImageSetting::Only(ImageProtocol::Sixel);
        assert_eq!(only.here(&variable), only);
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
        assert_eq!(cells(&head(&data), 80, CELL), None);
    }
}

#[test]
fn a_picture_takes_its_shape_in_cells() {
    let size = |wide, high, width| cells(&head(&png_of(wide, high, 0)), width, CELL);
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
    let rows = Images::default().rows(&message(&png_of(64, 32, 3)), 80);
    let said: Vec<String> = rows.iter().map(StyledLine::plain).collect();
    assert_eq!(said, ["image 64×32 png, 27 B"]);
}

#[test]
fn cells_name_the_picture_and_it_is_sent_once() {
    let data = png_of(32, 32, 9000);
    let mut images = in_kitty();
    let message = message(&data);
    let rows = images.rows(&message, 80);
    // A blank, two rows of four cells, the words.
    assert_eq!(rows.len(), 4);
    let id = number(&data);
    let [highest, red, green, blue] = id.to_be_bytes();
    let places: Vec<_> = rows[2]
        .plain()
        .split_inclusive('\u{10eeee}')
        .skip(1)
        .map(|it| format!("\u{10eeee}{}", it.trim_end_matches('\u{10eeee}')))
        .map(|it| picture_place(&it))
        .collect();
    assert_eq!(
        places,
        [0, 1, 2, 3].map(|column| Some((1, column, highest))),
        "row, column, and the byte of the number that no colour has"
    );
    assert_eq!(rows[1].spans[0].role, Role::Picture(red, green, blue));
    let mut out = Vec::new();
    images.send(pictures(&message), 80, &mut room());
    out.extend(flown(&mut images));
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
    images.send(pictures(&message), 80, &mut room());
    out.extend(flown(&mut images));
    assert_eq!(out.len(), text.len(), "the terminal has it");
    out.clear();
    images.send(pictures(&message), 8, &mut room());
    out.extend(flown(&mut images));
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
    let mut images = in_kitty();
    images.send(pictures(&message(&data)), 80, &mut room());
    out.extend(flown(&mut images));
    assert!(out.is_empty());
    assert_eq!(images.rows(&message(&data), 80).len(), 1);
}

#[test]
fn the_terminal_keeps_no_more_than_so_much() {
    let mut images = in_kitty();
    for n in 0..12_usize {
        let data = png_of(32, 32, 9000 + n);
        images.take_made(number(&data), Some(Made::Png("A".repeat(3 << 20).into())));
        images.send(std::iter::once(data.as_str()), 80, &mut room());
        let _ = flown(&mut images);
        // Another frame, in which it is not in view.
        images.in_view.clear();
    }
    assert!(images.kept.iter().map(|it| it.1).sum::<usize>() <= KEPT_BYTES);
    assert_eq!(images.kept.len(), images.has.len());
}

/// The fixtures: name and bytes.
fn fixtures() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/pictures");
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut all: Vec<_> = files
        .map(|it| {
            let name = it.file_name().unwrap().to_str().unwrap().to_owned();
            (name, std::fs::read(&it).unwrap())
        })
        .collect();
    all.sort();
    all
}

/// Four squares: red, green, blue, white.
#[test]
fn every_kind_of_picture_is_decoded() {
    let seen = fixtures();
    assert!(seen.len() >= 13);
    for (name, bytes) in seen {
        let head = head(&STANDARD.encode(&bytes));
        assert_eq!(head.size, Some((16, 8)), "{name}");
        let pixels = Pixels::decode(&bytes).unwrap_or_else(|| panic!("{name}"));
        assert_eq!((pixels.wide, pixels.high), (16, 8), "{name}");
        let at = |x: usize, y: usize| &pixels.rgba[(y * 16 + x) * 4..][..4];
        let squares = [at(2, 1), at(13, 1), at(2, 6), at(13, 6)];
        let wanted: [[u8; 4]; 4] = match name.as_str() {
            "deep.png" => [[156, 156, 156, 255]; 4],
            _ if name.starts_with("grey") => [76, 150, 29, 255].map(|it| [it, it, it, 255]),
            _ if name.starts_with("alpha") => {
                let seen_through = squares[0][3] == 0;
                assert!(seen_through, "{name}");
                let [red, green, blue, _] = squares[0].try_into().unwrap();
                [[red, green, blue, 0], [0, 255, 0, 255], [0, 0, 255, 255], [255; 4]]
            }
            _ => [[255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [255; 4]],
        };
        for (square, wanted) in squares.iter().zip(wanted) {
            let near = square.iter().zip(wanted).all(|(a, b)| a.abs_diff(b) < 24);
            assert!(near, "{name}: {squares:?}");
        }
    }
}

/// Small files that are sound, and would unpack to more than is decoded.
#[test]
fn a_small_file_that_holds_a_huge_picture_is_not_unpacked() {
    const SIDE: u16 = 5000;
    let mut png = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut png, u32::from(SIDE), u32::from(SIDE));
    encoder.set_color(::png::ColorType::Grayscale);
    encoder.set_depth(::png::BitDepth::One);
    let mut writer = encoder.write_header().expect("memory takes it");
    let row = usize::from(SIDE).div_ceil(8);
    let pixels = vec![0; row * usize::from(SIDE)];
    writer.write_image_data(&pixels).expect("memory takes it");
    writer.finish().expect("memory takes it");
    let mut gif = fixtures()
        .into_iter()
        .find(|it| std::path::Path::new(&it.0).extension().is_some_and(|it| it == "gif"))
        .expect("there is one")
        .1;
    for at in [6, 8] {
        gif[at..at + 2].copy_from_slice(&SIDE.to_le_bytes());
    }
    for bytes in [png, gif] {
        assert!(bytes.len() < 100_000, "{}", bytes.len());
        assert!(Pixels::decode(&bytes).is_none());
    }
}

#[test]
fn what_is_broken_is_no_picture_and_breaks_nothing() {
    for (name, bytes) in fixtures() {
        for cut in 0..bytes.len() {
            let pixels = Pixels::decode(&bytes[..cut]);
            assert!(pixels.is_none_or(|it| it.rgba.len() == it.wide * it.high * 4), "{name}");
            let mut other = bytes.clone();
            other[cut] ^= 0x55;
            let pixels = Pixels::decode(&other);
            assert!(pixels.is_none_or(|it| it.rgba.len() == it.wide * it.high * 4), "{name}");
        }
    }
    let order = |data: &str| ImageOrder {
        id: 7,
        data: data.into(),
        place: (4, 2),
        cell: CELL,
        dialect: None,
    };
    assert_eq!(make(&order("no base64!")), (7, None));
    assert_eq!(make(&order(&png_of(60_000, 60_000, 10))), (7, None));
}

#[test]
fn a_picture_of_another_size_is_the_mean_of_it() {
    let pixels = Pixels {
        wide: 2,
        high: 2,
        rgba: [[200, 0, 0, 255], [0, 0, 0, 255], [0, 100, 0, 255], [9, 9, 9, 0]].concat(),
    };
    assert_eq!(
        pixels.fitted(1, 1).rgba,
        [66, 33, 0, 191],
        "what is not seen has no colour"
    );
    let large = pixels.fitted(4, 2);
    assert_eq!(large.rgba[..8], [200, 0, 0, 255, 200, 0, 0, 255]);
    let same = pixels.fitted(2, 2);
    assert_eq!(same.rgba[..12], pixels.rgba[..12]);
    for (wide, high) in [(1, 7), (7, 1), (3, 5)] {
        assert_eq!(pixels.fitted(wide, high).rgba.len(), wide * high * 4);
    }
    assert_eq!(Pixels::decode(&pixels.to_png()), Some(pixels));
}

#[test]
fn where_cells_are_strips_a_picture_is_made_once_for_each_place() {
    let (_, bytes) = fixtures().into_iter().find(|it| it.0 == "photo.jpg").unwrap();
    let data = STANDARD.encode(&bytes);
    let mut images = Images::new(ImageSetting::Only(ImageProtocol::Sixel), None);
    assert_eq!(
        images.rows(&message(&data), 80).len(),
        1,
        "nobody knows how large a cell is"
    );
    images.cell = Some((4, 8));
    let rows = images.rows(&message(&data), 80);
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[1].plain(), "", "its place is kept");
    let order = images.order(&data, 80).unwrap();
    assert_eq!(
        (order.place, order.cell, order.dialect),
        ((2, 1), (4, 8), Some(Dialect::Sixel))
    );
    let (id, made) = make(&order);
    images.take_made(id, made);
    assert!(images.rows(&message(&data), 80)[1].is_picture());
    assert_eq!(images.order(&data, 80), None);
    let mut out = Vec::new();
    images.strip(id, 0, 0..2, &mut out);
    assert!(
        out.starts_with(b"\x1bP0;1;0q\"1;1;8;8#"),
        "{}",
        String::from_utf8_lossy(&out)
    );
    images.strip(id, 1, 0..2, &mut out);
    images.strip(id + 1, 0, 0..2, &mut out);
    assert!(out.ends_with(b"\x1b\\"));
    // Other letters, another picture.
    images.cell = Some((8, 16));
    assert_eq!(images.order(&data, 80).unwrap().cell, (8, 16));
    assert_eq!(images.rows(&message(&data), 80)[1].plain(), "");
    // What cannot be made is words.
    images.take_made(id, None);
    assert_eq!(images.rows(&message(&data), 80).len(), 1);
    assert_eq!(images.order(&data, 80), None);
}

#[test]
fn kitty_gets_a_png_of_whatever_it_was() {
    let (_, bytes) = fixtures().into_iter().find(|it| it.0 == "lossy.webp").unwrap();
    let data = STANDARD.encode(&bytes);
    let mut images = in_kitty();
    let mut out = Vec::new();
    images.send(std::iter::once(data.as_str()), 80, &mut room());
    out.extend(flown(&mut images));
    assert!(out.is_empty());
    let (id, made) = make(&images.order(&data, 80).unwrap());
    images.take_made(id, made);
    images.send(std::iter::once(data.as_str()), 80, &mut room());
    out.extend(flown(&mut images));
    let text = String::from_utf8(out).unwrap();
    let sent = text.split_once(';').unwrap().1.trim_end_matches("\x1b\\");
    let pixels = Pixels::decode(&STANDARD.decode(sent).unwrap()).unwrap();
    assert_eq!((pixels.wide, pixels.high), (16, 8));
    assert!(images.rows(&message(&data), 80)[1].is_picture());
}

#[test]
fn what_was_made_is_bounded() {
    let mut images = in_kitty();
    images.in_view = vec![3];
    for id in 0..20 {
        images.take_made(id, Some(Made::Png("A".repeat(4 << 20).into())));
    }
    let numbers: Vec<u32> = images.made.iter().map(|it| it.0).collect();
    assert_eq!(
        numbers,
        [3, 13, 14, 15, 16, 17, 18, 19],
        "what is in view, and the newest"
    );
}

#[test]
fn a_picture_comes_in_parts_that_nobody_waits_for() {
    let data = png_of(640, 480, 100 << 10);
    let mut images = in_kitty();
    images.send(std::iter::once(data.as_str()), 80, &mut room());
    let mut frames = Vec::new();
    while images.is_sending() {
        let mut out = Vec::new();
        images.flow(&mut out);
        assert!(out.len() < PER_FRAME + 5000, "{}", out.len());
        frames.push(out);
    }
    assert!(frames.len() > 3);
    // Who leaves in the middle leaves nothing open.
    let mut images = in_kitty();
    images.send(std::iter::once(data.as_str()), 80, &mut room());
    images.flow(&mut Vec::new());
    let mut out = Vec::new();
    images.leave(&mut out);
    assert!(out.starts_with(sequences::BREAK_OFF) && !images.is_sending());
    // Of a large one no more is sent than can be seen.
    let data = png_of(640, 480, 1 << 20);
    images.send(std::iter::once(data.as_str()), 80, &mut room());
    assert!(!images.is_sending());
    assert_eq!(images.order(&data, 80).unwrap().dialect, None);
}

#[test]
fn a_picture_that_was_held_askew_stands_upright() {
    // Two by one: red, blue.
    let pixels = Pixels {
        wide: 2,
        high: 1,
        rgba: [[255, 0, 0, 255], [0, 0, 255, 255]].concat(),
    };
    let inside = pixels.fitted_inside(4, 4);
    assert_eq!((inside.wide, inside.high), (4, 4));
    let opaque: Vec<bool> = inside.rgba.chunks(4).map(|it| it[3] > 0).collect();
    assert_eq!(opaque[..8], [true; 8], "as wide as the room");
    assert_eq!(opaque[8..], [false; 8], "and no higher than its shape");
    let (_, bytes) = fixtures().into_iter().find(|it| it.0 == "photo.jpg").unwrap();
    for (held, corner) in [
        (1, [255, 0, 0]),
        (2, [0, 255, 0]),
        (3, [255, 255, 255]),
        (4, [0, 0, 255]),
        (5, [255, 0, 0]),
        (6, [0, 0, 255]),
        (7, [255, 255, 255]),
        (8, [0, 255, 0]),
    ] {
        let mut noted = b"\xff\xe1\x00\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0".to_vec();
        noted.extend([held, 0, 0, 0, 0, 0, 0]);
        let turned = [&bytes[..2], &noted, &bytes[2..]].concat();
        let size = if held >= 5 { (8, 16) } else { (16, 8) };
        assert_eq!(
            head(&STANDARD.encode(&turned)).size,
            Some((size.0 as u64, size.1 as u64))
        );
        let pixels = Pixels::decode(&turned).unwrap();
        assert_eq!((pixels.wide, pixels.high), size, "{held}");
        let at = (pixels.wide + 1) * 4;
        let near = pixels.rgba[at..at + 3]
            .iter()
            .zip(corner)
            .all(|(a, b): (&u8, u8)| a.abs_diff(b) < 30);
        assert!(near, "{held}: {:?}", &pixels.rgba[at..at + 3]);
    }
}
