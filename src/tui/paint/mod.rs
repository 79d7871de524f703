//! From rows that name roles to cells, and from cells to the fewest bytes.

pub mod key;
pub mod line;
pub mod screen;

pub use line::{Cell, Line};
pub use screen::{Frame, Screen, Strips, print_pictures};
