//! Rules for retrying a failed request. Pure: the time and the dice are given.
//!
//! Only a request of which no complete call came back may be asked about here; after that a repetition could run tools
//! twice.
//! A retry crate is no help, because the wait is shown as a countdown, can be skipped or given up by a key, and may
//! be so long that somebody has to be asked.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use reqwest::header::HeaderMap;

use super::client;

/// Limits of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Tries after the first.
    pub retries: u32,
    /// The shortest wait before the first retry; it doubles with each.
    pub floor: Duration,
    /// Limit of that doubling.
    pub highest_floor: Duration,
    /// Time from the first failure in which all retries, and pauses that a server imposes, have to begin.
    pub within: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            retries: 10,
            floor: Duration::from_millis(500),
            highest_floor: Duration::from_secs(30),
            within: Duration::from_mins(3),
        }
    }
}

/// Cause of a failed request, as far as retrying is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No answer: the words for it.
    Connection(String),
    /// An answer with an error's status.
    Status {
        status: u16,
        /// The error's code, type and message, in any case and order: an exhausted quota says so only there.
        words: String,
        advice: Advice,
    },
    /// Anything that would fail again.
    Lasting,
}

impl From<&client::Error> for Failure {
    fn from(error: &client::Error) -> Self {
        if error.is_connection() {
            let words = error.to_string();
            Self::Connection(words.lines().next().unwrap_or_default().to_owned())
        } else {
            Self::Lasting
        }
    }
}

/// Advice on retrying from the headers of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Advice {
    /// `x-should-retry`.
    pub retry: Option<bool>,
    /// `retry-after-ms` or `retry-after`, counted from the answer. Never zero.
    pub after: Option<Duration>,
}

impl Advice {
    /// Reads the headers of an answer that came at `now`. What cannot be understood is absent.
    pub fn of(headers: &HeaderMap, now: DateTime<Utc>) -> Self {
        let get = |name| headers.get(name).and_then(|it| it.to_str().ok()).map(str::trim);
        let retry = match get("x-should-retry").map(str::to_ascii_lowercase).as_deref() {
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(_) | None => None,
        };
        let after = get("retry-after-ms")
            .and_then(|it| span(it, 0.001))
            .or_else(|| get("retry-after").and_then(|it| span(it, 1.0).or_else(|| until(it, now))))
            .filter(|it| !it.is_zero());
        Self { retry, after }
    }
}

/// A number of units of so many seconds. More than a week is a week.
fn span(text: &str, unit: f64) -> Option<Duration> {
    const WEEK: f64 = 7.0 * 24.0 * 3600.0;
    let number: f64 = text.parse().ok()?;
    if !number.is_finite() || number < 0.0 {
        return None;
    }
    Duration::try_from_secs_f64((number * unit).min(WEEK)).ok()
}

/// The time until an HTTP date, in each of its three forms. A date in the past is no time.
fn until(text: &str, now: DateTime<Utc>) -> Option<Duration> {
    let date = DateTime::parse_from_rfc2822(text)
        .map(|it| it.to_utc())
        .ok()
        .or_else(|| {
            // The obsolete forms of RFC 850 and asctime are always in GMT.
            ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"]
                .iter()
                .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
                .map(|it| it.and_utc())
        })?;
    (date - now).to_std().ok()
}

/// Failures so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tries {
    /// Number of retries: 0 after the first request.
    pub retried: u32,
    /// Time of the first failure.
    pub since: DateTime<Utc>,
}

impl Tries {
    /// The first failure is now.
    pub const fn first(now: DateTime<Utc>) -> Self {
        Self { retried: 0, since: now }
    }
}

/// Decision after a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Try again at this time.
    Wait {
        until: DateTime<Utc>,
        because: String,
    },
    /// The server asks for more patience than we have without asking the user. Where nobody can be asked, this is
    /// [`Decision::GiveUp`].
    Ask {
        until: DateTime<Utc>,
        because: String,
    },
    GiveUp,
}

impl Policy {
    /// Decides after a failure.
    ///
    /// `tries` says how often it failed and since when. `dice` is a random number from 0 to 1.
    pub fn after_failure(&self, tries: Tries, failure: &Failure, dice: f64, now: DateTime<Utc>) -> Decision {
        let (because, advice) = match failure {
            Failure::Lasting => return Decision::GiveUp,
            Failure::Connection(words) => (words.clone(), Advice::default()),
            Failure::Status { status, words, advice } => {
                let may = advice.retry.unwrap_or_else(|| is_passing(*status));
                if !may || is_forbidden(*status) || is_quota(words) {
                    return Decision::GiveUp;
                }
                (reason(*status), *advice)
            }
        };
        if tries.retried >= self.retries {
            return Decision::GiveUp;
        }
        let wait = advice.after.unwrap_or_else(|| self.backoff(tries.retried, dice));
        let span = TimeDelta::from_std(wait).unwrap_or(TimeDelta::MAX);
        let until = now.checked_add_signed(span).unwrap_or(DateTime::<Utc>::MAX_UTC);
        let passed = (now - tries.since).to_std().unwrap_or_default();
        match (passed.saturating_add(wait) > self.within, advice.after) {
            (false, _) => Decision::Wait { until, because },
            (true, Some(_)) => Decision::Ask { until, because },
            (true, None) => Decision::GiveUp,
        }
    }

    /// Jitter above a floor: clients that failed together do not return together, and none returns at once.
    fn backoff(&self, retried: u32, dice: f64) -> Duration {
        let doubled = self.floor.saturating_mul(2u32.saturating_pow(retried));
        let floor = doubled.min(self.highest_floor);
        let dice = if dice.is_finite() { dice.clamp(0.0, 1.0) } else { 1.0 };
        floor + floor.mul_f64(dice)
    }
}

/// Statuses that say "not now" rather than "not this".
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500 | 502 | 503 | 504 | 529)
}

/// A refused token is never sent again by itself, whatever the server thinks of it.
fn is_forbidden(status: u16) -> bool {
    matches!(status, 401 | 403)
}

/// A limit that only money lifts comes as 429 too.
fn is_quota(words: &str) -> bool {
    let words = words.to_ascii_lowercase();
    ["insufficient_quota", "billing", "credit"]
        .iter()
        .any(|it| words.contains(it))
}

fn reason(status: u16) -> String {
    let name = match status {
        408 | 504 => "it took too long",
        409 | 425 => "it was not ready",
        429 => "too many requests",
        503 | 529 => "it is overloaded",
        _ => "it failed",
    };
    format!("{name} ({status})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    fn now() -> DateTime<Utc> {
        "2026-03-02T08:15:00Z".parse().unwrap()
    }

    fn advice(headers: &[(&'static str, &str)]) -> Advice {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        Advice::of(&map, now())
    }

    fn status(status: u16, words: &str, advice: Advice) -> Failure {
        Failure::Status {
            status,
            words: words.into(),
            advice,
        }
    }

    /// `wait 1500`, `ask 61000` (milliseconds) or `give up`.
    fn decide(retried: u32, failure: &Failure, dice: f64) -> String {
        let tries = Tries { retried, since: now() };
        match Policy::default().after_failure(tries, failure, dice, now()) {
            Decision::Wait { until, .. } => format!("wait {}", (until - now()).num_milliseconds()),
            Decision::Ask { until, .. } => format!("ask {}", (until - now()).num_milliseconds()),
            Decision::GiveUp => "give up".to_owned(),
        }
    }

    #[test]
    fn ten_retries_with_growing_waits_and_then_no_more() {
        let failure = Failure::Connection("nobody there".into());
        let cases = [
            (0, 0.0, "wait 500"),
            (0, 0.5, "wait 750"),
            (0, 1.0, "wait 1000"),
            (1, 0.0, "wait 1000"),
            (2, 0.0, "wait 2000"),
            (2, 7.0, "wait 4000"),
            (2, -1.0, "wait 2000"),
            (2, f64::NAN, "wait 4000"),
            (6, 0.0, "wait 30000"),
            (9, 0.0, "wait 30000"),
            (9, 1.0, "wait 60000"),
            (10, 0.0, "give up"),
            (u32::MAX, 0.0, "give up"),
        ];
        for (retried, dice, expected) in cases {
            assert_eq!(
                decide(retried, &failure, dice),
                expected,
                "after {retried} retries, dice {dice}"
            );
        }
    }

    #[test]
    fn all_retries_begin_within_a_time() {
        let failure = Failure::Connection("nobody there".into());
        let busy = status(429, "", advice(&[("retry-after", "60")]));
        let after = |seconds: i64, failure: &Failure| {
            let tries = Tries {
                retried: 3,
                since: now() - TimeDelta::seconds(seconds),
            };
            match Policy::default().after_failure(tries, failure, 0.0, now()) {
                Decision::Wait { .. } => "wait",
                Decision::Ask { .. } => "ask",
                Decision::GiveUp => "give up",
            }
        };
        // The fourth retry waits for 4 s.
        assert_eq!((after(176, &failure), after(177, &failure)), ("wait", "give up"));
        assert_eq!((after(120, &busy), after(121, &busy)), ("wait", "ask"));
    }

    #[test]
    fn statuses_that_pass_are_retried_and_the_others_not() {
        let passing = [408, 409, 425, 429, 500, 502, 503, 504, 529];
        for code in 100..600 {
            let expected = if passing.contains(&code) { "wait 500" } else { "give up" };
            assert_eq!(decide(0, &status(code, "", Advice::default()), 0.0), expected, "{code}");
        }
        assert_eq!(decide(0, &Failure::Lasting, 1.0), "give up");
    }

    #[test]
    fn the_server_may_overrule_the_list_but_not_for_tokens_or_money() {
        let (yes, no) = (
            advice(&[("x-should-retry", "True")]),
            advice(&[("x-should-retry", "false")]),
        );
        let cases = [
            (status(429, "", no), "give up"),
            (status(503, "", no), "give up"),
            (status(400, "", yes), "wait 500"),
            (status(401, "", yes), "give up"),
            (status(403, "", yes), "give up"),
            (status(429, "insufficient_quota", yes), "give up"),
            (status(429, "type: Billing_Error", Advice::default()), "give up"),
            (
                status(429, "Your credit balance is too low", Advice::default()),
                "give up",
            ),
            (status(429, "rate_limit_exceeded", Advice::default()), "wait 500"),
        ];
        for (failure, expected) in cases {
            assert_eq!(decide(0, &failure, 0.0), expected, "{failure:?}");
        }
    }

    #[test]
    fn the_server_says_when_to_come_back() {
        let cases: &[(&[(&'static str, &str)], &str)] = &[
            (&[("retry-after", "12")], "wait 12000"),
            (&[("retry-after", " 1.5 ")], "wait 1500"),
            (&[("retry-after-ms", "40")], "wait 40"),
            (&[("retry-after-ms", "40"), ("retry-after", "12")], "wait 40"),
            (&[("retry-after-ms", "soon"), ("retry-after", "12")], "wait 12000"),
            (&[("retry-after", "180")], "wait 180000"),
            (&[("retry-after", "181")], "ask 181000"),
            (&[("retry-after", "Mon, 02 Mar 2026 08:15:30 GMT")], "wait 30000"),
            (&[("retry-after", "Monday, 02-Mar-26 08:15:30 GMT")], "wait 30000"),
            (&[("retry-after", "Mon Mar  2 08:15:30 2026")], "wait 30000"),
            (&[("retry-after", "Mon, 02 Mar 2026 09:15:00 GMT")], "ask 3600000"),
            (&[("retry-after", "Mon, 02 Mar 2026 08:14:00 GMT")], "wait 500"),
            (&[("retry-after", "1e300")], "ask 604800000"),
            // Nonsense, and no time at all, leave the choice to us.
            (&[("retry-after", "0")], "wait 500"),
            (&[("retry-after", "-5")], "wait 500"),
            (&[("retry-after", "NaN")], "wait 500"),
            (&[("retry-after", "inf")], "wait 500"),
            (&[("retry-after", "later")], "wait 500"),
            (&[("retry-after", "")], "wait 500"),
        ];
        for (headers, expected) in cases {
            assert_eq!(
                decide(0, &status(429, "", advice(headers)), 0.0),
                *expected,
                "{headers:?}"
            );
        }
        assert_eq!(
            decide(10, &status(429, "", advice(&[("retry-after", "999")])), 1.0),
            "give up"
        );
    }

    #[test]
    fn only_failures_of_the_connection_are_connection_failures() {
        let timeout = |after| Duration::from_secs(after);
        let peer = || "http://h".to_owned();
        let connect = client::Error::ConnectTimeout {
            peer: peer(),
            after: timeout(10),
        };
        assert_eq!(
            Failure::from(&connect),
            Failure::Connection("no connection to http://h within 10 s".into())
        );
        let silent = client::Error::FirstByteTimeout {
            peer: peer(),
            after: timeout(120),
        };
        assert_eq!(Failure::from(&silent), Failure::Lasting);
    }

    proptest! {
        #[test]
        fn no_header_panics(value in "[ -~]{0,40}", millis in any::<bool>()) {
            let name = if millis { "retry-after-ms" } else { "retry-after" };
            let found = advice(&[(name, &value)]);
            decide(0, &status(429, "", found), 1.0);
        }
    }
}
