//! Strings on a grid of cells: cleaning, measuring, wrapping, Markdown, highlighting, diffs.
//!
//! Everything here is pure and knows neither documents nor ratatui. What comes out is [`StyledLine`]s of
//! [`Span`]s that name a [`Role`]; the theme turns roles into colours later. A span holds only
//! [`Sanitized`] text, so nothing a stranger wrote can reach the terminal unsanitised.

pub mod ansi;
mod budget;
pub mod clean;
pub mod diff;
pub mod figure;
pub mod highlight;
pub mod language;
pub mod latex;
pub mod markdown;
pub mod mermaid;
pub mod redact;
pub mod row;
pub mod target;
pub mod tmtheme;
pub mod visible;
pub mod width;
mod word_list;
pub mod wrap;

pub use clean::{Cleaner, Sanitized, picture_place, sanitize};
pub use highlight::{Highlighter, code_lines};
pub use language::language_of;
pub use row::{Background, CodeLine, Colours, Modifier, NoColours, Role, Span, StyledLine};
pub use target::{link_host, link_target};
pub use visible::{title, visible, visible_line};
pub use word_list::{WordList, WordTable};
