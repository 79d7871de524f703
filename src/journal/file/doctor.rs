//! Examines the sessions on disk and offers repairs. Examining changes nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    os::unix::fs::PermissionsExt as _,
    path::Path,
};

use super::{
    ARCHIVED, Store, StoreError, is_id,
    line::{self, Bad},
    load, record, recorder,
};
use crate::{
    protocol::{ConversationId, Event, Position, Turn},
    text::figure,
};

/// The sessions that were examined, and their defects.
#[derive(Debug, Default)]
pub struct Examined {
    pub sessions: usize,
    /// Conversations in the sessions, by the ids in their answers.
    pub conversations: BTreeSet<ConversationId>,
    pub findings: Vec<FileFinding>,
}

/// Something about a file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileFinding {
    /// The file's name.
    pub file: String,
    pub wrong: Wrong,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The system does not let us read it.
    Unreadable(String),
    /// A newer sheaf has written it.
    Newer,
    /// The line with the session's facts is lost.
    Nameless,
    /// Bytes at the end that cannot be read.
    Tail(usize),
    /// Unreadable lines with good ones after them.
    Lines(usize),
    /// Complete lines that mean nothing to this version.
    Strange(usize),
    /// Lines that are out of order, or repeated.
    Order(usize),
    /// Answers without an end.
    Open(usize),
    /// Others may read it.
    Exposed(u32),
    /// A lock, or a mark, of a session that is not there.
    Orphan,
    /// Unreadable bytes at the end that were moved aside.
    Aside(u64),
}

impl Wrong {
    /// Describes the defect.
    pub fn words(&self) -> String {
        let lines = |count: usize| figure::count(count, "line", "lines").as_str().to_owned();
        match self {
            Self::Unreadable(why) => format!("cannot be read: {why}"),
            Self::Newer => "was written by a newer sheaf".to_owned(),
            Self::Nameless => "its first line is lost".to_owned(),
            Self::Tail(bytes) => format!("its last {} cannot be read", figure::bytes(*bytes as u64)),
            Self::Lines(count) => format!("{} in the middle cannot be read", lines(*count)),
            Self::Strange(count) => format!("{} unknown to this sheaf", lines(*count)),
            Self::Order(count) => format!("{} out of order, or twice", lines(*count)),
            Self::Open(count) => format!("{} without an end", figure::count(*count, "answer", "answers")),
            Self::Exposed(mode) => format!("others may read it (mode {mode:o})"),
            Self::Orphan => "belongs to no session".to_owned(),
            Self::Aside(bytes) => format!("{} unreadable, moved aside", figure::bytes(*bytes)),
        }
    }

    /// Describes the repair. `None` if nothing needs to be done, or nothing can be.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Tail(_) => Some("move the end aside"),
            Self::Open(_) => Some("close them as interrupted"),
            Self::Exposed(_) => Some("make it readable only by you"),
            Self::Orphan => Some("remove it"),
            Self::Unreadable(_)
            | Self::Newer
            | Self::Nameless
            | Self::Lines(_)
            | Self::Strange(_)
            | Self::Order(_)
            | Self::Aside(_) => None,
        }
    }

    /// Describes the effect on readers if nothing needs to be done.
    pub fn comfort(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "look at its owner and mode",
            Self::Newer => "update sheaf to open it",
            Self::Nameless => "it is listed under all workspaces",
            Self::Lines(_) | Self::Strange(_) => "they are left out, the rest is read",
            Self::Order(_) => "each is read once",
            Self::Aside(_) => "remove it when you do not miss anything",
            Self::Tail(_) | Self::Open(_) | Self::Exposed(_) | Self::Orphan => "",
        }
    }
}

impl Store {
    /// Looks at every file of the folder.
    pub fn examine(&self) -> io::Result<Examined> {
        let mut examined = Examined::default();
        let files = match fs::read_dir(self.folder()) {
            Ok(files) => files,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(examined),
            Err(error) => return Err(error),
        };
        let names: BTreeSet<String> = files
            .flatten()
            .filter_map(|it| it.file_name().into_string().ok())
            .collect();
        for name in &names {
            let path = self.folder().join(name);
            let mut say = |wrong: Wrong| {
                examined.findings.push(FileFinding {
                    file: name.clone(),
                    wrong,
                });
            };
            match name.rsplit_once('.') {
                Some((id, "jsonl")) if is_id(id) => {
                    if let Some(mode) = exposed(&path) {
                        say(Wrong::Exposed(mode));
                    }
                    match load::bytes(&path) {
                        Ok(bytes) => {
                            let (wrongs, conversations) = journal(&bytes);
                            wrongs.into_iter().for_each(say);
                            examined.conversations.extend(conversations);
                        }
                        Err(error) => say(Wrong::Unreadable(error.to_string())),
                    }
                    examined.sessions += 1;
                }
                Some((id, "lock" | ARCHIVED)) if !names.contains(&format!("{id}.jsonl")) => say(Wrong::Orphan),
                Some((_, end)) if end.starts_with("damaged-") => {
                    say(Wrong::Aside(fs::metadata(&path).map_or(0, |it| it.len())));
                }
                Some(_) | None => {}
            }
        }
        Ok(examined)
    }

    /// Repairs a defect as [`Wrong::remedy`] describes. Fails if that is not possible now.
    pub fn repair(&self, finding: &FileFinding, now_ms: u64) -> Result<(), StoreError> {
        let path = self.folder().join(&finding.file);
        let id = finding.file.rsplit_once('.').map_or("", |it| it.0);
        let failed = |source: io::Error| StoreError::Failed {
            id: id.to_owned(),
            source: source.into(),
        };
        match finding.wrong {
            // Whoever takes a session up again mends it.
            Wrong::Tail(_) | Wrong::Open(_) => Ok(self.resume_to_change(id, now_ms)?.recorder.finish()?),
            Wrong::Exposed(_) => fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).map_err(failed),
            Wrong::Orphan => {
                // A program that begins a session has its lock before there is a file.
                let is_lock = Path::new(&finding.file).extension().is_some_and(|it| it == "lock");
                let _lock = if is_lock {
                    let own = recorder::claim(&path).map_err(|source| StoreError::Failed {
                        id: id.to_owned(),
                        source,
                    })?;
                    Some(own)
                } else {
                    None
                };
                fs::remove_file(&path).map_err(failed)
            }
            Wrong::Unreadable(_)
            | Wrong::Newer
            | Wrong::Nameless
            | Wrong::Lines(_)
            | Wrong::Strange(_)
            | Wrong::Order(_)
            | Wrong::Aside(_) => Ok(()),
        }
    }
}

fn exposed(path: &Path) -> Option<u32> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then_some(mode)
}

/// Returns the defects of a session's bytes, and the conversations in it.
fn journal(bytes: &[u8]) -> (Vec<Wrong>, BTreeSet<ConversationId>) {
    let mut conversations = BTreeSet::new();
    let mut open: BTreeMap<Turn, bool> = BTreeMap::new();
    let (mut lines, mut pending, mut strange, mut order) = (0, 0, 0, 0);
    let (mut good_bytes, mut at, mut last) = (0, 0, 0);
    let mut is_named = false;
    for whole in bytes.split_inclusive(|it| *it == b'\n') {
        at += whole.len();
        let text = whole.trim_ascii();
        if text.is_empty() {
            continue;
        }
        let (position, members) = match line::read(text, true) {
            Ok(read) => read,
            Err(Bad::Newer) => return (vec![Wrong::Newer], conversations),
            Err(Bad::Damaged) => {
                pending += 1;
                continue;
            }
        };
        lines += std::mem::take(&mut pending);
        good_bytes = at;
        if members.contains_key("session") {
            is_named = true;
            continue;
        }
        if position <= last {
            order += 1;
            continue;
        }
        last = position;
        let Some(entry) = record::from_members(Position(position), members) else {
            strange += 1;
            continue;
        };
        match &entry.event {
            Event::ResponseStart(start) => {
                conversations.extend(start.conversation_id.clone());
                open.insert(entry.turn, true);
            }
            Event::UserMessage(_) | Event::DocumentStart(_) => {
                open.entry(entry.turn).or_insert(true);
            }
            Event::Done(done) => {
                conversations.extend(done.conversation_id.clone());
                open.insert(entry.turn, false);
            }
            // What others have added is kept as it is, and none of ours to judge.
            _ => {}
        }
    }
    let open = open.values().filter(|it| **it).count();
    let found = [
        (!is_named, Wrong::Nameless),
        (pending > 0, Wrong::Tail(bytes.len() - good_bytes)),
        (lines > 0, Wrong::Lines(lines)),
        (strange > 0, Wrong::Strange(strange)),
        (order > 0, Wrong::Order(order)),
        (open > 0, Wrong::Open(open)),
    ];
    let found = found.into_iter().filter(|it| it.0).map(|it| it.1);
    (found.collect(), conversations)
}
