//! The embedded producer: it asks a model and appends what comes back to a log, as documents.

pub mod segment;
