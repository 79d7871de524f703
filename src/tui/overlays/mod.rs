//! Pages and lists over the conversation.

mod branches;
mod commit;
mod documents;
mod edit_list;
mod frame;
mod inspector;
mod memory;
mod outline;
mod page;
mod picker;
mod prompt;
mod queue;
mod review;
mod rewind;
mod servers;
mod sessions;
mod tasks;
#[cfg(test)]
mod tests;
mod trust;

pub use branches::Branches;
pub use commit::CommitCard;
pub use documents::DocumentPage;
pub use edit_list::EditList;
pub use inspector::Inspector;
pub use memory::MemoryCard;
pub use outline::Outline;
pub use page::Page;
pub use picker::{AskingAgent, DraftOffer, Picker};
pub use prompt::Prompt;
pub use queue::QueueList;
pub use review::Review;
pub use rewind::Rewind;
pub use servers::ServersPage;
pub use sessions::Sessions;
pub use tasks::Tasks;
pub use trust::TrustPage;
