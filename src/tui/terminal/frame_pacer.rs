//! When the next frame may be drawn for what comes by itself.
//!
//! On average a frame comes every [`FRAME`] at most, and one may come early when the one before had been late: tokens that come
//! a hundred times a second, and never quite on time, are drawn as they come instead of waiting for a timer each. A frame that
//! took long is followed by a rest of three times that, so that what the frames show (a flood, an enormous table) and whoever
//! wants to stop it have most of the thread.

use std::time::{Duration, Instant};

/// Average time between two frames that nobody asked for: entries are gathered for that long before they are drawn.
pub const FRAME: Duration = Duration::from_millis(8);

/// After a frame that took *t*, the next unsolicited frame waits at least `REST` × *t*.
const REST: u32 = 3;

/// Decides when the next frame may be drawn that no key asked for.
#[derive(Debug)]
pub struct FramePacer {
    /// Until then the frames that were drawn are enough.
    paid_until: Instant,
}

impl FramePacer {
    pub fn start(now: Instant) -> Self {
        Self { paid_until: now }
    }

    /// Returns the earliest time of the next unsolicited frame.
    pub fn due(&self) -> Instant {
        self.paid_until.checked_sub(FRAME).unwrap_or(self.paid_until)
    }

    /// Notes a frame that was drawn from `began` to `now`, whoever asked for it. Frames for keys never push the due time
    /// further than two frames ahead.
    pub fn drawn(&mut self, began: Instant, now: Instant) {
        self.paid_until = (self.paid_until.max(now) + FRAME).min(now + 2 * FRAME);
        let rest = REST * now.saturating_duration_since(began);
        self.paid_until = self.paid_until.max(now + rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// When frames are drawn for something that comes at these times, in milliseconds.
    fn drawn(times: &[u64]) -> Vec<u64> {
        let start = Instant::now() + Duration::from_secs(1);
        let mut pace = FramePacer::start(start);
        let mut frames: Vec<u64> = Vec::new();
        for at in times {
            // What came before the last frame was drawn is in it.
            if frames.last().is_some_and(|last| last > at) {
                continue;
            }
            let now = (start + Duration::from_millis(*at)).max(pace.due());
            pace.drawn(now, now);
            frames.push(u64::try_from((now - start).as_millis()).unwrap_or(u64::MAX));
        }
        frames
    }

    #[test]
    fn what_comes_a_little_early_is_drawn_at_once() {
        let times = [100, 107, 120, 126, 140, 147, 160, 171, 178];
        assert_eq!(drawn(&times), times);
    }

    #[test]
    fn a_flood_gets_a_frame_each_eight_milliseconds() {
        let frames = drawn(&(0..1000).collect::<Vec<_>>());
        assert!((124..=127).contains(&frames.len()), "{}", frames.len());
        assert!(frames.windows(2).skip(2).all(|it| it[1] - it[0] >= 8), "{frames:?}");
    }

    #[test]
    fn whoever_types_delays_the_answer_by_no_more_than_a_frame() {
        let start = Instant::now();
        let mut pace = FramePacer::start(start);
        for _ in 0..100 {
            pace.drawn(start, start);
        }
        assert_eq!(pace.due(), start + FRAME);
    }

    #[test]
    fn frames_that_take_long_leave_most_of_the_time_to_others() {
        let mut now = Instant::now();
        let mut pace = FramePacer::start(now);
        let took = Duration::from_millis(40);
        let mut worked = Duration::ZERO;
        let start = now;
        for _ in 0..10 {
            pace.drawn(now, now + took);
            worked += took;
            now = (now + took).max(pace.due());
        }
        assert!((now - start) > 3 * worked, "{:?}", now - start);
    }

    #[test]
    fn a_long_rest_saves_no_more_than_one_frame() {
        assert_eq!(drawn(&[0, 10_000, 10_001, 10_002]), [0, 10_000, 10_001, 10_008]);
    }
}
