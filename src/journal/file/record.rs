//! An entry as the members of a line.

use serde_json::{Map, Value};

use crate::protocol::{Entry, Position, codec::record};

/// Returns the entry. `None` for a record that this version cannot read.
pub fn from_members(position: Position, mut members: Map<String, Value>) -> Option<Entry> {
    members.insert("n".to_owned(), position.0.into());
    record::from_json(members).ok()
}
