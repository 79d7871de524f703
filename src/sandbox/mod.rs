//! The sandbox: the only module that reads, writes or runs what a model or a repository asked for.
//!
//! A path that a model wrote becomes a [`Located`] first: its links are resolved, and the result is compared with the roots of
//! the workspace and with the hidden and protected names. No other module opens a file of the workspace. Whether a call is
//! allowed is decided elsewhere, earlier; the sandbox refuses regardless of that decision.
//!
//! A path is resolved once. Afterwards files are opened without following any link, so that a link which is put in place in
//! between leads nowhere.
//!
//! The folders, from the bottom up; each uses only those above it in this table:
//!
//! | folder | contents |
//! | --- | --- |
//! | `policy` | what a command may write, read and see: tables of names, ignore files, the environment |
//! | `files` | located paths, opening without following links, replacing a file whole, git's index |
//! | `kernel` | the helper process that puts a policy into force, and the probe of what this machine supports |
//! | `protect` | protected files around a command: placeholders before it, comparison and quarantine after it |
//! | `processes` | commands: starting, attending, ending, their output; `sheaf sandbox run` |
//! | `walk` | the walk over a folder |
//! | `workspace` | [`Workspace`]: the folders of a conversation, and its commands |
//! | `checkpoints` | earlier states of files, and undo |
//! | `edits` | changes of files by tools, all of them or none, and which files the model has read |

mod checkpoints;
mod edits;
mod files;
mod kernel;
mod policy;
mod processes;
mod protect;
mod walk;
mod workspace;

pub use checkpoints::{Changed, Checkpoints, Clash, Done, Marked, PathState, Plan, Turning, Which};
pub use edits::{Cell, Change, Hunk, Seen, SeenFile};
pub use files::{Located, Place, Refused};
#[cfg(target_os = "linux")]
pub use kernel::{End, Report};
pub use kernel::{Layer, Layers, NOT_BUILT, force_off, helper, is_off, layers, use_helper};
pub use policy::{LookLimit, Tier, hidden::is_named_like_at_home};
pub use processes::{
    Apart, BatchLine, Commands, Ended, Excerpt, Foreground, How, NotRun, NotStarted, Overlay, Running, Service,
    ServiceError, ServiceSpec, ServiceStreams, Spec, Tried,
};
pub use protect::{LeftBehind, LeftFile, LeftNote, Mended, Settled, said, take_unsaid};
pub use walk::{Bounds, Walk};
pub use workspace::{Fence, Workspace};
