//! Figures as a person reads them: durations, counts, sizes, money. Never more than three digits that matter.

use super::Sanitized;

/// `18 ms`, `4.1 s`, `41 s`, `2 min 5 s`, `1 h 3 min`, `3 d 4 h`.
pub fn duration(milliseconds: u64) -> Sanitized {
    // Rounded before the unit is chosen, so that nothing reads `60 s` or `1000 ms`.
    let tenths = milliseconds.saturating_add(50) / 100;
    let seconds = milliseconds.saturating_add(500) / 1000;
    let text = if milliseconds < 1000 {
        format!("{milliseconds} ms")
    } else if tenths < 100 {
        format!("{}.{} s", tenths / 10, tenths % 10)
    } else if seconds < 60 {
        format!("{seconds} s")
    } else if seconds < 3600 {
        two(seconds / 60, "min", seconds % 60, "s")
    } else if seconds < 86_400 {
        two(seconds / 3600, "h", seconds % 3600 / 60, "min")
    } else {
        two(seconds / 86_400, "d", seconds % 86_400 / 3600, "h")
    };
    Sanitized::from(text)
}

/// A pause that is counted down or asked for: `5 s`, `2 min`, `7 d`.
pub fn pause(seconds: u64) -> Sanitized {
    if seconds < 60 {
        Sanitized::from(format!("{seconds} s"))
    } else {
        duration(seconds.saturating_mul(1000))
    }
}

fn two(large: u64, large_unit: &str, small: u64, small_unit: &str) -> String {
    match small {
        0 => format!("{large} {large_unit}"),
        _ => format!("{large} {large_unit} {small} {small_unit}"),
    }
}

/// Age of something in the largest unit that it fills.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    Now,
    Seconds(u64),
    Minutes(u64),
    Hours(u64),
    Days(u64),
    Months(u64),
    Years(u64),
}

impl Age {
    pub fn of(milliseconds: u64) -> Self {
        let minutes = milliseconds / 60_000;
        match minutes {
            0 => match milliseconds / 1000 {
                0 => Self::Now,
                seconds => Self::Seconds(seconds),
            },
            1..60 => Self::Minutes(minutes),
            60..1440 => Self::Hours(minutes / 60),
            1440..43_200 => Self::Days(minutes / 1440),
            43_200..525_600 => Self::Months(minutes / 43_200),
            _ => Self::Years(minutes / 525_600),
        }
    }
}

/// Formats an age: `now`, `12 s ago`, `5 min ago`, `3 h ago`, `2 d ago`, `4 mo ago`, `1 y ago`.
pub fn ago(milliseconds: u64) -> Sanitized {
    let (number, unit) = match Age::of(milliseconds) {
        Age::Now => return Sanitized::literal("now"),
        Age::Seconds(number) => (number, "s"),
        Age::Minutes(number) => (number, "min"),
        Age::Hours(number) => (number, "h"),
        Age::Days(number) => (number, "d"),
        Age::Months(number) => (number, "mo"),
        Age::Years(number) => (number, "y"),
    };
    Sanitized::from(format!("{number} {unit} ago"))
}

/// `1 line`, `12 lines`, `12,345 lines`.
pub fn count(number: usize, one: &str, many: &str) -> Sanitized {
    let word = if number == 1 { one } else { many };
    Sanitized::from(format!("{} {word}", grouped(number as u64)))
}

/// `12,345`.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `0 B`, `999 B`, `1.2 kB`, `34 MB`: powers of 1000, as disks and networks count.
pub fn bytes(number: u64) -> Sanitized {
    Sanitized::from(scaled(number, &[" B", " kB", " MB", " GB", " TB", " PB", " EB"]))
}

/// `950`, `1.2k`, `128k`, `1.5M`.
pub fn tokens(number: u64) -> Sanitized {
    Sanitized::from(scaled(number, &["", "k", "M", "G", "T", "P", "E"]))
}

/// Formats a number in steps of a thousand: with one decimal below ten, unless that is zero.
fn scaled(number: u64, units: &[&str]) -> String {
    let mut step: u128 = 1;
    let number = u128::from(number);
    for (i, unit) in units.iter().enumerate() {
        let next = step * 1000;
        // Rounding must not give 1000 of a unit.
        if i + 1 < units.len() && (number + step / 2) / step >= 1000 {
            step = next;
            continue;
        }
        let tenths = (number * 10 + step / 2) / step;
        return if step == 1 || tenths >= 100 || tenths.is_multiple_of(10) {
            format!("{}{unit}", (number + step / 2) / step)
        } else {
            format!("{}.{}{unit}", tenths / 10, tenths % 10)
        };
    }
    String::new()
}

/// Formats dollars: `$0.04`, `$1.20`, `$1,234.50`; `<$0.01` for less than a cent.
pub fn money(dollars: f64) -> Sanitized {
    if !dollars.is_finite() {
        return Sanitized::literal("$?");
    }
    let sign = if dollars < 0.0 { "-" } else { "" };
    let amount = dollars.abs();
    if amount == 0.0 {
        return Sanitized::literal("$0.00");
    }
    if amount < 0.005 {
        return Sanitized::literal("<$0.01");
    }
    // Saturates for sums nobody has.
    let cents = (amount * 100.0).round() as u64;
    Sanitized::from(format!("{sign}${}.{:02}", grouped(cents / 100), cents % 100))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses() {
        for (seconds, expected) in [
            (0, "0 s"),
            (5, "5 s"),
            (59, "59 s"),
            (60, "1 min"),
            (90, "1 min 30 s"),
            (604_800, "7 d"),
        ] {
            assert_eq!(pause(seconds), expected);
        }
    }

    #[test]
    fn durations() {
        let cases = [
            (0, "0 ms"),
            (18, "18 ms"),
            (999, "999 ms"),
            (1000, "1.0 s"),
            (4120, "4.1 s"),
            (9949, "9.9 s"),
            (9950, "10 s"),
            (41_000, "41 s"),
            (59_499, "59 s"),
            (59_500, "1 min"),
            (125_000, "2 min 5 s"),
            (3_599_499, "59 min 59 s"),
            (3_599_500, "1 h"),
            (3_780_000, "1 h 3 min"),
            (86_400_000, "1 d"),
            (273_600_000, "3 d 4 h"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(duration(milliseconds), text, "{milliseconds}");
        }
        assert!(duration(u64::MAX).ends_with('h'));
    }

    #[test]
    fn how_long_ago() {
        let minute = 60_000;
        let cases = [
            (999, "now"),
            (1000, "1 s ago"),
            (59_999, "59 s ago"),
            (minute, "1 min ago"),
            (59 * minute, "59 min ago"),
            (60 * minute, "1 h ago"),
            (23 * 60 * minute, "23 h ago"),
            (24 * 60 * minute, "1 d ago"),
            (45 * 24 * 60 * minute, "1 mo ago"),
            (800 * 24 * 60 * minute, "2 y ago"),
        ];
        for (milliseconds, text) in cases {
            assert_eq!(ago(milliseconds), text, "{milliseconds}");
        }
    }

    #[test]
    fn counts() {
        let cases = [
            (0, "0 lines"),
            (1, "1 line"),
            (2, "2 lines"),
            (999, "999 lines"),
            (1000, "1,000 lines"),
            (1_234_567, "1,234,567 lines"),
        ];
        for (number, text) in cases {
            assert_eq!(count(number, "line", "lines"), text);
        }
    }

    #[test]
    fn sizes() {
        let cases = [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1 kB"),
            (1249, "1.2 kB"),
            (9_960, "10 kB"),
            (34_000_000, "34 MB"),
            (999_499, "999 kB"),
            (999_500, "1 MB"),
            (u64::MAX, "18 EB"),
        ];
        for (number, text) in cases {
            assert_eq!(bytes(number), text, "{number}");
        }
    }

    #[test]
    fn token_counts() {
        let cases = [
            (0, "0"),
            (950, "950"),
            (1000, "1k"),
            (1234, "1.2k"),
            (128_000, "128k"),
            (1_500_000, "1.5M"),
        ];
        for (number, text) in cases {
            assert_eq!(tokens(number), text, "{number}");
        }
    }

    #[test]
    fn sums_of_money() {
        let cases = [
            (0.0, "$0.00"),
            (0.0004, "<$0.01"),
            (0.005, "$0.01"),
            (0.04, "$0.04"),
            (1.2, "$1.20"),
            (1234.5, "$1,234.50"),
            (-2.0, "-$2.00"),
            (f64::NAN, "$?"),
        ];
        for (dollars, text) in cases {
            assert_eq!(money(dollars), text, "{dollars}");
        }
    }
}
