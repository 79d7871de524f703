//! Points in time as the protocol writes them.

use chrono::{DateTime, NaiveDateTime, SecondsFormat, Utc};
use serde_json::Value;

/// Formats a time as ISO 8601 in UTC with `Z`; with milliseconds only if they are not 0.
pub fn iso(ms: u64) -> String {
    i64::try_from(ms)
        .ok()
        .and_then(DateTime::<Utc>::from_timestamp_millis)
        .map_or_else(|| print(DateTime::UNIX_EPOCH), print)
}

/// Reads ISO 8601 in any zone (none means UTC) and Unix seconds, milliseconds, micro- or nanoseconds, also as digits in
/// a string.
pub fn read(value: &Value) -> Option<String> {
    let time = match value {
        Value::Number(number) => unix(number.as_f64()?)?,
        Value::String(text) => {
            let text = text.trim();
            match text.parse::<f64>() {
                Ok(number) => unix(number)?,
                Err(_) => DateTime::parse_from_rfc3339(text)
                    .map(|it| it.with_timezone(&Utc))
                    .ok()
                    .or_else(|| {
                        ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"]
                            .iter()
                            .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
                            .map(|it| it.and_utc())
                    })?,
            }
        }
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    Some(print(time))
}

/// Returns true if the text is a time in strict ISO 8601.
pub fn is_time(text: &str) -> bool {
    DateTime::parse_from_rfc3339(text).is_ok()
}

/// The unit follows from the size: seconds stay below 10¹¹ until the year 5138.
fn unix(number: f64) -> Option<DateTime<Utc>> {
    if !number.is_finite() || number < 0.0 {
        return None;
    }
    let mut ms = number * 1000.0;
    while ms >= 1e14 {
        ms /= 1000.0;
    }
    DateTime::from_timestamp_millis(ms.round() as i64)
}

fn print(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::AutoSi, true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_of_a_time_becomes_iso_in_utc() {
        let cases = [
            (
                "as the protocol writes it",
                json!("2026-03-02T08:15:00Z"),
                "2026-03-02T08:15:00Z",
            ),
            (
                "another zone",
                json!("2026-03-02T09:15:00+01:00"),
                "2026-03-02T08:15:00Z",
            ),
            ("no zone", json!("2026-03-02T08:15:00"), "2026-03-02T08:15:00Z"),
            ("a space", json!("2026-03-02 08:15:00.5"), "2026-03-02T08:15:00.500Z"),
            ("seconds", json!(1_772_439_300), "2026-03-02T08:15:00Z"),
            ("milliseconds", json!(1_772_439_300_250_u64), "2026-03-02T08:15:00.250Z"),
            (
                "nanoseconds",
                json!(1_772_439_300_000_000_000_u64),
                "2026-03-02T08:15:00Z",
            ),
            ("seconds in a string", json!("1772439300"), "2026-03-02T08:15:00Z"),
        ];
        for (name, value, wanted) in cases {
            assert_eq!(read(&value).as_deref(), Some(wanted), "{name}");
        }
        for value in [
            json!(null),
            json!("soon"),
            json!(-1),
            json!([1]),
            json!("NaN"),
            json!("inf"),
        ] {
            assert_eq!(read(&value), None, "{value}");
        }
    }

    #[test]
    fn a_time_beyond_the_calendar_is_the_epoch() {
        assert_eq!(iso(u64::MAX), "1970-01-01T00:00:00Z");
        assert_eq!(iso(1_772_439_300_250), "2026-03-02T08:15:00.250Z");
    }
}
