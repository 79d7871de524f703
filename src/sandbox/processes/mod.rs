//! The processes that run what a model asked for: starting them, collecting their output, and ending all that they started.

mod attendant;
mod commands;
mod launch;
mod output_capture;
mod overlay;
mod process_tree;
mod running;
mod service;
mod session;
mod trial;

pub use commands::{BatchLine, Commands, Spec};
pub use launch::NotStarted;
pub use output_capture::{Apart, Excerpt};
pub use overlay::Overlay;
pub use process_tree::end_marked;
pub use running::{Ended, Foreground, How, Running};
pub use service::{Service, ServiceError, ServiceSpec, ServiceStreams};
pub use trial::{NotRun, Tried, run as run_trial};
