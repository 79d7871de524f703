//! Colour arithmetic: luminance, contrast, and the nearest colour that a terminal can show.

use std::{fmt, sync::LazyLock};

/// Red, green and blue of an sRGB colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Rgb(pub u8, pub u8, pub u8);

impl Rgb {
    pub const BLACK: Self = Self(0, 0, 0);
    pub const WHITE: Self = Self(255, 255, 255);

    /// Parses `7fc8a9`, `#7fc8a9`, `#7ca`, and a terminal's answers: `rgb:7f7f/c8c8/a9a9`, `rgba:…`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Some(parts) = text.strip_prefix("rgb:").or_else(|| text.strip_prefix("rgba:")) {
            // One to four digits per channel, each a fraction of its own maximum.
            let mut channels = parts.split('/').map(|part| {
                let full = (1..=4).contains(&part.len()).then(|| (1_u32 << (4 * part.len())) - 1)?;
                let value = hexadecimal(part)?;
                u8::try_from((value * 255 + full / 2) / full).ok()
            });
            return Some(Self(channels.next()??, channels.next()??, channels.next()??));
        }
        let digits = text.strip_prefix('#').unwrap_or(text);
        let value = hexadecimal(digits)?;
        let nibble = |shift: u32| ((value >> shift) & 15) as u8 * 17;
        let byte = |shift: u32| (value >> shift) as u8;
        match digits.len() {
            3 => Some(Self(nibble(8), nibble(4), nibble(0))),
            6 => Some(Self(byte(16), byte(8), byte(0))),
            _ => None,
        }
    }

    /// Returns the relative luminance of WCAG 2: 0 for black, 1 for white.
    pub fn luminance(self) -> f32 {
        static LINEAR: LazyLock<[f32; 256]> = LazyLock::new(|| {
            std::array::from_fn(|it| {
                let value = it as f32 / 255.0;
                if value <= 0.04045 {
                    value / 12.92
                } else {
                    ((value + 0.055) / 1.055).powf(2.4)
                }
            })
        });
        let linear = |it: u8| LINEAR[usize::from(it)];
        0.2126 * linear(self.0) + 0.7152 * linear(self.1) + 0.0722 * linear(self.2)
    }

    /// Returns the contrast ratio of WCAG 2: 1 for equal colours, 21 for black on white.
    pub fn contrast(self, other: Self) -> f32 {
        let (one, two) = (self.luminance() + 0.05, other.luminance() + 0.05);
        if one > two { one / two } else { two / one }
    }

    /// Returns true if white is easier to read on this colour than black.
    pub fn is_dark(self) -> bool {
        self.contrast(Self::WHITE) >= self.contrast(Self::BLACK)
    }

    /// Returns a mix: `amount` of 255 parts of the way to `other`.
    pub fn toward(self, other: Self, amount: u8) -> Self {
        let mix = |from: u8, to: u8| {
            let (from, to, amount) = (i32::from(from), i32::from(to), i32::from(amount));
            (from + ((to - from) * amount + (to - from).signum() * 127) / 255) as u8
        };
        Self(mix(self.0, other.0), mix(self.1, other.1), mix(self.2, other.2))
    }

    /// Returns the colour nearest to this one with at least `contrast` on `ground`, on the way to white or to black.
    ///
    /// It stays lighter or darker than the ground if that is enough. One of the two always reaches 4.5.
    pub fn legible_on(self, ground: Self, contrast: f32) -> Self {
        if self.contrast(ground) >= contrast {
            return self;
        }
        let own = if self.luminance() > ground.luminance() || (self == ground && ground.is_dark()) {
            Self::WHITE
        } else {
            Self::BLACK
        };
        let reaches = |target: Self| ground.contrast(target) >= contrast;
        let target = match (reaches(own), ground.is_dark()) {
            (true, _) => own,
            (false, true) => Self::WHITE,
            (false, false) => Self::BLACK,
        };
        // On the way the contrast may first fall to 1 (when it crosses the ground), so the side is checked as well.
        let far_enough = |it: Self| {
            let beyond = (it.luminance() > ground.luminance()) == (target == Self::WHITE);
            beyond && it.contrast(ground) >= contrast
        };
        let (mut near, mut far) = (0_u8, 255_u8);
        while far - near > 1 {
            let middle = near + (far - near) / 2;
            if far_enough(self.toward(target, middle)) {
                far = middle;
            } else {
                near = middle;
            }
        }
        self.toward(target, far)
    }

    /// Returns true if a large area of this colour can be told from one of `other`, by lightness or by a strong hue.
    pub fn differs_visibly(self, other: Self) -> bool {
        let steps = [(self.0, other.0), (self.1, other.1), (self.2, other.2)].map(|(one, two)| one.abs_diff(two));
        self.contrast(other) >= 1.1 || steps.into_iter().max() >= Some(48)
    }

    /// Perceived difference of two colours: weighted squares of the channels.
    fn distance(self, other: Self) -> u32 {
        let square = |one: u8, two: u8| u32::from(one.abs_diff(two)).pow(2);
        2 * square(self.0, other.0) + 4 * square(self.1, other.1) + 3 * square(self.2, other.2)
    }
}

impl fmt::Display for Rgb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// Parses hexadecimal digits only (`from_str_radix` accepts a sign).
fn hexadecimal(digits: &str) -> Option<u32> {
    let plain = digits.bytes().all(|it| it.is_ascii_hexdigit());
    plain.then(|| u32::from_str_radix(digits, 16).ok())?
}

/// xterm's defaults for the 16 ANSI colours. Users change them, so they only serve to find the nearest.
const SIXTEEN: [Rgb; 16] = [
    Rgb(0, 0, 0),
    Rgb(205, 0, 0),
    Rgb(0, 205, 0),
    Rgb(205, 205, 0),
    Rgb(0, 0, 238),
    Rgb(205, 0, 205),
    Rgb(0, 205, 205),
    Rgb(229, 229, 229),
    Rgb(127, 127, 127),
    Rgb(255, 0, 0),
    Rgb(0, 255, 0),
    Rgb(255, 255, 0),
    Rgb(92, 92, 255),
    Rgb(255, 0, 255),
    Rgb(0, 255, 255),
    Rgb(255, 255, 255),
];

/// Colours 16 to 255 of the 256: a cube of 6 × 6 × 6, then greys. Computed once, because each role on each ground
/// searches all of them.
const FIXED: [Rgb; 240] = {
    const fn step(it: usize) -> u8 {
        [0, 95, 135, 175, 215, 255][it % 6]
    }
    let mut colours = [Rgb(0, 0, 0); 240];
    let mut at = 0;
    while at < 216 {
        colours[at] = Rgb(step(at / 36), step(at / 6), step(at));
        at += 1;
    }
    while at < 240 {
        let grey = 8 + 10 * (at - 216) as u8;
        colours[at] = Rgb(grey, grey, grey);
        at += 1;
    }
    colours
};

/// Returns the colour of an index from 16 on. `None` below, since users change those.
pub fn of_index(index: u8) -> Option<Rgb> {
    FIXED.get(usize::from(index).checked_sub(16)?).copied()
}

/// Returns the index, from 16 on, of the nearest colour that `passes`; of the nearest one at all if none does.
pub fn nearest_index(colour: Rgb, passes: impl Fn(Rgb) -> bool) -> u8 {
    let (mut nearest, mut passing) = ((u32::MAX, 16), None);
    for (index, &it) in (16..=255_u8).zip(&FIXED) {
        let distance = it.distance(colour);
        if distance < nearest.0 {
            nearest = (distance, index);
        }
        // `passes` is expensive, so it is called for few.
        let is_nearer = passing.is_none_or(|(other, _)| distance < other);
        if is_nearer && passes(it) {
            passing = Some((distance, index));
        }
    }
    passing.unwrap_or(nearest).1
}

/// Returns the index of the nearest ANSI colour, going by xterm's defaults.
pub fn nearest_of_sixteen(colour: Rgb) -> u8 {
    (0..16_u8)
        .min_by_key(|&it| SIXTEEN[usize::from(it)].distance(colour))
        .unwrap_or(7)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn colours_are_read_in_every_notation_a_terminal_or_a_person_uses() {
        for (text, expected) in [
            ("7fc8a9", Some(Rgb(0x7f, 0xc8, 0xa9))),
            ("#7FC8A9", Some(Rgb(0x7f, 0xc8, 0xa9))),
            ("#7ca", Some(Rgb(0x77, 0xcc, 0xaa))),
            ("rgb:1e1e/1e1e/1e1e", Some(Rgb(0x1e, 0x1e, 0x1e))),
            ("rgb:ff/80/00", Some(Rgb(255, 128, 0))),
            ("rgb:f/8/0", Some(Rgb(255, 136, 0))),
            ("rgba:ffff/0000/0000/ffff", Some(Rgb(255, 0, 0))),
            ("rgb:ffff/0000", None),
            ("rgb:fffff/0/0", None),
            ("rgb:+f/0/0", None),
            ("#12345", None),
            ("+12345", None),
            ("green", None),
            ("", None),
            ("äöü", None),
        ] {
            assert_eq!(Rgb::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn contrast_agrees_with_published_values() {
        // From WebAIM's contrast checker.
        for (one, two, expected) in [
            ("000000", "ffffff", 21.0),
            ("777777", "ffffff", 4.48),
            ("767676", "ffffff", 4.54),
            ("0000ff", "ffffff", 8.59),
            ("ff0000", "ffffff", 4.0),
        ] {
            let ratio = Rgb::parse(one)
                .expect("a colour")
                .contrast(Rgb::parse(two).expect("a colour"));
            assert!((ratio - expected).abs() < 0.01, "{one} on {two}: {ratio}");
        }
    }

    #[test]
    fn the_cube_and_the_greys_have_their_fixed_colours() {
        for (index, expected) in [
            (16, "000000"),
            (231, "ffffff"),
            (196, "ff0000"),
            (22, "005f00"),
            (232, "080808"),
            (255, "eeeeee"),
        ] {
            assert_eq!(
                of_index(index).map(|it| it.to_string()).as_deref(),
                Some(expected),
                "{index}"
            );
        }
        assert_eq!(of_index(15), None);
    }

    fn any_colour() -> impl Strategy<Value = Rgb> {
        any::<(u8, u8, u8)>().prop_map(|(red, green, blue)| Rgb(red, green, blue))
    }

    proptest! {
        #[test]
        fn any_colour_becomes_legible_on_any_ground(colour in any_colour(), ground in any_colour()) {
            prop_assert!(colour.legible_on(ground, 4.5).contrast(ground) >= 4.5);
        }

        #[test]
        fn a_legible_colour_is_left_alone(colour in any_colour(), ground in any_colour()) {
            if colour.contrast(ground) >= 3.0 {
                prop_assert_eq!(colour.legible_on(ground, 3.0), colour);
            }
        }

        #[test]
        fn one_of_the_256_is_legible_on_any_of_them(colour in any_colour(), ground in 16..=255_u8) {
            let ground = of_index(ground).expect("fixed");
            let index = nearest_index(colour, |it| it.contrast(ground) >= 4.5);
            prop_assert!(of_index(index).expect("fixed").contrast(ground) >= 4.5);
        }

        #[test]
        fn what_is_shown_of_the_256_is_itself(index in 16..=255_u8) {
            let colour = of_index(index).expect("fixed");
            prop_assert_eq!(of_index(nearest_index(colour, |_| true)), Some(colour));
        }
    }
}
