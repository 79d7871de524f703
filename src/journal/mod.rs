//! The conversation as an append-only list of events with positions.
//!
//! A [`Log`] is what every link writes and every consumer follows. It keeps *settled* events: once a document has ended
//! its deltas are dropped, because `document_end` carries the whole. A reader that comes late sees gaps in the
//! positions and the same fold.

mod backfill;
mod close;
mod delta_memory;
mod event_limit;
pub mod file;
mod log;
mod run;
mod trace;
mod whole;

pub use backfill::{Earlier, Recent};
pub use close::{Cut, closing};
pub use event_limit::{EventLimit, PollBudget, TooMany};
pub use log::{Follower, Log};
pub use trace::{Raw, Ring, Sent, Trace, TraceStep};
pub use whole::settled;
