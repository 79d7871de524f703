//! Processes, files, memory and the clipboard for our own use; nothing that a model or a repository asked for runs here.

pub mod clipboard;
#[cfg(unix)]
pub mod ending;
pub mod file;
pub mod lazy_channel;
pub mod long_text;
pub mod memory_trim;
pub mod panic;
pub mod process;
#[cfg(all(test, target_os = "linux"))]
pub mod refused_sync;
pub mod scratch;
