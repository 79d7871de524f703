//! Pages and lists over the conversation.

mod branches;
mod commit;
mod documents;
mod frame;
mod inspector;
mod outline;
mod page;
mod picker;
mod prompt;
mod queue;
mod review;
mod rewind;
mod sessions;
#[cfg(test)]
mod tests;

pub use branches::Branches;
pub use commit::CommitCard;
pub use documents::DocumentPage;
pub use inspector::Inspector;
pub use outline::Outline;
pub use page::Page;
pub use picker::{DraftOffer, Picker};
pub use prompt::Prompt;
pub use queue::QueueList;
pub use review::Review;
pub use rewind::Rewind;
pub use sessions::Sessions;
