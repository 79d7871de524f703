//! The documents of a stream that are still open, how they are called and how much they may hold.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{
    Limits,
    payload::{weigh, weigh_all},
};
use crate::protocol::{Document, DocumentId};

/// One open document: the decoder's own copy, from which its end is written.
pub struct OpenDocument {
    pub document: Document,
    /// Which document of the response it is, by arrival.
    pub arrival: u64,
    /// Members that readers have a value for. If one is gone at the end, the end must remove it.
    named: HashSet<String>,
    /// The identity that it took over from a document that is still open.
    shadows: Option<(String, DocumentId)>,
    /// Lower bound of its size, in bytes.
    bound: usize,
    /// True if the document is full.
    pub is_cut: bool,
}

impl OpenDocument {
    pub fn new(document: Document, arrival: u64) -> Self {
        let mut open = Self {
            document,
            arrival,
            named: HashSet::new(),
            shadows: None,
            bound: 0,
            is_cut: false,
        };
        open.remember();
        open.bound = open.held();
        open
    }

    /// Returns the number of `wanted` bytes that fit into the document.
    ///
    /// The bound counts replaced members as if they were still there, so the document is measured before anything is
    /// cut. One that is nearly full by then accepts no more, because measuring it for every event would be quadratic.
    pub fn room(&mut self, wanted: usize, limit: usize) -> usize {
        if self.is_cut {
            return 0;
        }
        if self.bound + wanted > limit {
            self.bound = self.held();
            self.is_cut = self.bound > limit / 8 * 7;
        }
        let room = limit.saturating_sub(self.bound).min(wanted);
        self.is_cut |= room < wanted;
        self.bound += room;
        room
    }

    /// Notes which members readers have, before the end takes some away.
    pub fn remember(&mut self) {
        let said = self.document.metadata.iter().filter(|(_, value)| !value.is_null());
        self.named.extend(said.map(|(name, _)| name.clone()));
    }

    /// The complete metadata after `finish`, as the end carries it.
    pub fn settled(&mut self) -> Map<String, Value> {
        let mut metadata = std::mem::take(&mut self.document.metadata);
        metadata.retain(|_, value| !value.is_null());
        for name in std::mem::take(&mut self.named) {
            metadata.entry(name).or_insert(Value::Null);
        }
        metadata
    }

    fn held(&self) -> usize {
        self.document.text().len() + weigh_all(&self.document.metadata) + self.document.pending_arguments()
    }
}

/// All open documents, by id and by arrival.
#[derive(Default)]
pub struct Shelf {
    open: HashMap<DocumentId, Box<OpenDocument>>,
    by_arrival: BTreeMap<u64, DocumentId>,
    /// Every id that was given out, open or not.
    known: HashSet<DocumentId>,
    /// Ids on the wire that now mean a document of another name.
    routes: HashMap<DocumentId, DocumentId>,
    copies: HashMap<DocumentId, u64>,
    fresh: u64,
}

/// Origin of a document's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    AsSent,
    Missing,
    /// Too long, empty or with characters that no id should have.
    Hashed,
    Duplicate,
}

impl Shelf {
    /// An id that no document of the response has had.
    pub fn name(&mut self, wire: Option<&str>, limits: &Limits) -> (DocumentId, Naming) {
        let Some(wire) = wire else {
            return (self.fresh(), Naming::Missing);
        };
        let (id, is_sound) = sound(wire, limits.id_bytes);
        if !self.known.contains(&id) {
            return (id, if is_sound { Naming::AsSent } else { Naming::Hashed });
        }
        loop {
            let copy = self.copies.entry(id.clone()).or_insert(1);
            *copy += 1;
            let (candidate, _) = sound(&format!("{id}#{copy}"), limits.id_bytes);
            if !self.known.contains(&candidate) {
                return (candidate, Naming::Duplicate);
            }
        }
    }

    /// An id of our own making.
    pub fn fresh(&mut self) -> DocumentId {
        loop {
            self.fresh = self.fresh.max(self.known.len() as u64) + 1;
            let id = DocumentId::numbered(self.fresh);
            if !self.known.contains(&id) {
                return id;
            }
        }
    }

    /// Which document the wire means by this id now.
    pub fn route(&self, wire: &str, limits: &Limits) -> DocumentId {
        let (id, _) = sound(wire, limits.id_bytes);
        self.routes.get(&id).cloned().unwrap_or(id)
    }

    /// Puts a document on the shelf. From here on `wire` means it, until it ends.
    pub fn put(&mut self, wire: Option<&str>, mut open: OpenDocument, limits: &Limits) {
        let id = open.document.id.clone();
        if let Some(wire) = wire {
            let before = self.route(wire, limits);
            let (wire, _) = sound(wire, limits.id_bytes);
            if wire != id {
                if self.open.contains_key(&before) {
                    open.shadows = Some((wire.as_str().to_owned(), before));
                }
                self.routes.insert(wire, id.clone());
            }
        }
        self.known.insert(id.clone());
        self.by_arrival.insert(open.arrival, id.clone());
        self.open.insert(id, Box::new(open));
    }

    pub fn take(&mut self, id: &DocumentId) -> Option<OpenDocument> {
        let mut open = self.open.remove(id)?;
        self.by_arrival.remove(&open.arrival);
        if let Some((wire, before)) = open.shadows.take()
            && self.open.contains_key(&before)
        {
            self.routes.insert(wire.into(), before);
        }
        Some(*open)
    }

    pub fn get(&mut self, id: &DocumentId) -> Option<&mut OpenDocument> {
        self.open.get_mut(id).map(Box::as_mut)
    }

    pub fn is_open(&self, id: &DocumentId) -> bool {
        self.open.contains_key(id)
    }

    pub fn is_known(&self, id: &DocumentId) -> bool {
        self.known.contains(id)
    }

    /// Returns the number of documents so far.
    pub fn count(&self) -> usize {
        self.known.len()
    }

    pub fn oldest(&self) -> Option<DocumentId> {
        self.by_arrival.values().next().cloned()
    }

    pub fn newest(&self) -> Option<DocumentId> {
        self.by_arrival.values().next_back().cloned()
    }
}

/// Returns the id if it is sound, else a hash of it: equal texts give equal ids. The flag is true for a sound id.
pub fn sound(wire: &str, limit_bytes: usize) -> (DocumentId, bool) {
    if is_sound(wire, limit_bytes) {
        return (wire.into(), true);
    }
    let digest = Sha256::digest(wire.as_bytes());
    let start = digest
        .iter()
        .take(8)
        .fold(0, |hash: u64, it| hash << 8 | u64::from(*it));
    (format!("doc_{start:016x}").into(), false)
}

/// Neither empty nor long, and every character can be seen.
pub fn is_sound(id: &str, limit_bytes: usize) -> bool {
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    !id.trim().is_empty() && id.len() <= limit_bytes && !id.chars().any(is_hidden)
}

/// Cuts a document down to `limit` bytes: texts are shortened, other values removed. Returns true if something was
/// cut.
pub fn fit(content: &mut Option<String>, metadata: &mut Map<String, Value>, limit: usize) -> bool {
    let mut room = limit;
    let mut is_cut = false;
    let mut shorten = |text: &mut String, room: &mut usize| {
        if text.len() > *room {
            text.truncate(text.floor_char_boundary(*room));
            is_cut = true;
        }
        *room -= text.len();
    };
    if let Some(text) = content {
        shorten(text, &mut room);
    }
    let mut dropped = false;
    metadata.retain(|_, value| match value {
        Value::String(text) => {
            shorten(text, &mut room);
            true
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::Array(_) | Value::Object(_) => {
            let weight = weigh(value);
            let fits = weight <= room;
            if fits {
                room -= weight;
            }
            dropped |= !fits;
            fits
        }
    });
    is_cut || dropped
}
