//! Notices of the runner in the log, and the time of its entries.

use crate::{
    journal::Log,
    protocol::{Event, Notice, Severity},
};

/// Appends a notice about the conversation as a whole.
pub fn notice(log: &Log, severity: Severity, code: &str, message: impl Into<String>) {
    let notice = Notice::new(severity, code, message);
    log.append(now_ms(), Event::Notice(notice));
}

/// Appends a warning about the conversation as a whole.
pub fn warn(log: &Log, code: &str, message: impl Into<String>) {
    notice(log, Severity::Warning, code, message);
}

/// Milliseconds since the Unix epoch.
pub fn now_ms() -> u64 {
    u64::try_from(chrono::Utc::now().timestamp_millis()).unwrap_or_default()
}
