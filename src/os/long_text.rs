//! Text that may be too long for memory: above a limit it moves to a file.
//!
//! The file is private and has no name ([`NamelessFile`]), so nothing is left of it when the program ends, even by a crash.
//! It is written with `write`, which reports a full disk, and read through a mapping, so the text is a `str` in either place.
//! If no file can be created, the text stays in memory. A file that another machine may cut, on a network file system, is not
//! mapped: reading it would end the program.

use std::{
    cmp::Ordering as Order,
    fmt,
    fs::File,
    hash::{Hash, Hasher},
    io,
    ops::Deref,
    os::unix::fs::FileExt as _,
    path::PathBuf,
    ptr::NonNull,
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::scratch::{NamelessFile, ScratchFile, is_local};

/// Longest text in memory, in bytes. A longer one is moved to a file.
const TEXT_BYTES: usize = 4 << 20;

/// Total size of the texts in memory, in bytes, above which shorter texts move to files, too.
const ALL_BYTES: usize = 32 << 20;

/// The same for a program that holds many texts at a time.
const ALL_OF_MANY_BYTES: usize = 256 << 10;

/// Minimum size in bytes of a text that moves to a file of its own.
const OWN_FILE_BYTES: usize = 256 << 10;

/// Minimum size in bytes of an ended text that moves to a file shared with others.
const SHARED_FILE_BYTES: usize = 256;

/// Size in bytes of a file's mapping: the longest document and a little more.
const MAPPED_BYTES: usize = 68 << 20;

/// Bytes to copy at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Bytes of a part of a text that is read from beginning to end.
const PART_BYTES: usize = 64 << 10;

/// Number of bytes read from files after which their pages are dropped from memory. The system reads them again on demand.
const READ_BYTES: usize = 32 << 20;

/// The same for a program that holds many texts at a time: each is read once, when it has ended.
const READ_OF_MANY_BYTES: usize = 1 << 20;

/// Size in bytes of all texts in memory. A shared text counts once.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// The policy of the program.
static POLICY: LazyLock<Mutex<Arc<SpillPolicy>>> = LazyLock::new(|| Mutex::new(Arc::new(SpillPolicy::none())));

/// Size in bytes up to which a growing text never moves: the smaller limit of the policy.
static STAYS_BYTES: AtomicUsize = AtomicUsize::new(OWN_FILE_BYTES);

/// Number of bytes read from files after which their pages are dropped: that of the policy.
static READ_LIMIT: AtomicUsize = AtomicUsize::new(READ_BYTES);

/// Text in memory or in a file. It grows only at its end.
#[derive(Clone)]
pub struct LongText(Storage);

#[derive(Clone)]
enum Storage {
    /// Still growing. A clone copies the text.
    Own {
        text: Counted,
        /// Size in bytes at which to try again to create a file; 0 if that has not failed.
        retry_at: usize,
    },
    Shared(Arc<Counted>),
    Stored(Stored),
}

/// A part of a file.
struct Stored {
    file: Arc<MappedFile>,
    start: usize,
    length: usize,
    /// Bytes from the start on that only this text may write. 0: it may grow at the end of the file.
    room: usize,
}

impl Clone for Stored {
    fn clone(&self) -> Self {
        Self {
            file: Arc::clone(&self.file),
            room: 0,
            ..*self
        }
    }
}

/// Decides which texts move to files, and where the files are.
#[derive(Clone, Debug)]
pub struct SpillPolicy {
    /// Folder of the files, created when needed. `None`: all texts stay in memory.
    pub folder: Option<PathBuf>,
    /// Maximum size of a text in memory, in bytes.
    pub text_bytes: usize,
    /// Total size of the texts in memory, in bytes, above which shorter texts move, too.
    pub all_bytes: usize,
    /// Minimum size of a text that gets a file of its own, in bytes.
    pub own_file_bytes: usize,
    /// Maximum room for a growing text in a file shared with others, in bytes.
    pub room_bytes: usize,
    /// Number of bytes read from files after which their pages are dropped from memory.
    pub read_bytes: usize,
}

impl SpillPolicy {
    /// Returns the default limits, with files in `folder`.
    pub fn in_folder(folder: PathBuf) -> Self {
        Self {
            folder: Some(folder),
            ..Self::none()
        }
    }

    /// Returns the policy that keeps all texts in memory.
    pub const fn none() -> Self {
        Self {
            folder: None,
            text_bytes: TEXT_BYTES,
            all_bytes: ALL_BYTES,
            own_file_bytes: OWN_FILE_BYTES,
            room_bytes: 0,
            read_bytes: READ_BYTES,
        }
    }

    /// Returns the same policy with a lower limit, for a program that holds many texts at a time. Those that are not very long
    /// share files: a process may not have as many open as it has texts.
    pub fn with_text_bytes(self, text_bytes: usize) -> Self {
        Self {
            text_bytes,
            all_bytes: ALL_OF_MANY_BYTES,
            own_file_bytes: text_bytes.min(self.own_file_bytes),
            room_bytes: OWN_FILE_BYTES,
            read_bytes: READ_OF_MANY_BYTES,
            ..self
        }
    }

    /// Makes this the policy of the program. Texts that exist already move when they grow.
    pub fn apply(self) {
        STAYS_BYTES.store(self.text_bytes.min(self.own_file_bytes), Ordering::Relaxed);
        READ_LIMIT.store(self.read_bytes, Ordering::Relaxed);
        *POLICY.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(self);
    }

    /// Creates a file for a text that may grow to `bytes` bytes. Fails without a folder.
    fn create_file(&self, bytes: usize) -> io::Result<MappedFile> {
        self.create_file_if(bytes, is_local)
    }

    /// The same with a judge of files that may be mapped. If one in the folder may not, it is one among the temporary files.
    fn create_file_if(&self, bytes: usize, may_map: impl Fn(&File) -> bool) -> io::Result<MappedFile> {
        let folder = self.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut file = NamelessFile::new(folder)?;
        if !may_map(&file) {
            file = NamelessFile::temporary()?;
            if !may_map(&file) {
                return Err(io::Error::other("files here are on a network file system"));
            }
        }
        MappedFile::new(file, bytes.max(MAPPED_BYTES))
    }

    fn is_too_long(&self, bytes: usize) -> bool {
        bytes > self.text_bytes || (bytes > self.own_file_bytes && HELD.load(Ordering::Relaxed) > self.all_bytes)
    }
}

/// Creates a file for other bytes in the folder of the texts. Fails without a folder.
pub fn scratch_file() -> io::Result<ScratchFile> {
    ScratchFile::new(policy().folder.as_deref().ok_or(io::ErrorKind::NotFound)?)
}

/// The policy as it is now. Nothing is locked while a file is made or written.
fn policy() -> Arc<SpillPolicy> {
    // A policy is replaced whole.
    Arc::clone(&POLICY.lock().unwrap_or_else(PoisonError::into_inner))
}

/// A string that is part of [`HELD`] as long as it lives.
struct Counted(String);

impl Counted {
    fn new(text: String) -> Self {
        HELD.fetch_add(text.len(), Ordering::Relaxed);
        Self(text)
    }

    fn push(&mut self, more: &str) {
        HELD.fetch_add(more.len(), Ordering::Relaxed);
        self.0.push_str(more);
    }

    fn truncate(&mut self, length: usize) {
        HELD.fetch_sub(self.0.len().saturating_sub(length), Ordering::Relaxed);
        self.0.truncate(length);
    }

    fn take(&mut self) -> String {
        HELD.fetch_sub(self.0.len(), Ordering::Relaxed);
        std::mem::take(&mut self.0)
    }
}

impl Clone for Counted {
    fn clone(&self) -> Self {
        Self::new(self.0.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        HELD.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

impl LongText {
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends to the end. Copies of the text stay as they are.
    pub fn push_str(&mut self, more: &str) {
        if let Storage::Own { text, retry_at } = &mut self.0 {
            text.push(more);
            if text.0.len() > STAYS_BYTES.load(Ordering::Relaxed).max(*retry_at) {
                self.move_if_too_long(&policy());
            }
        } else {
            self.push_after(more, &policy());
        }
    }

    /// Appends to a text that is shared or in a file.
    fn push_after(&mut self, more: &str, policy: &SpillPolicy) {
        if more.is_empty() {
            return;
        }
        if let Storage::Stored(stored) = &mut self.0 {
            if stored.push(more) {
                return;
            }
            // A clone has grown in the same file, or the room or the file is full.
            let room = (stored.length + more.len()) * 2;
            if let Some(mut copy) = stored.copy(policy, room)
                && copy.push(more)
            {
                self.0 = Storage::Stored(copy);
                return;
            }
        }
        let mut text = String::with_capacity(self.len() + more.len());
        text.push_str(self);
        text.push_str(more);
        *self = Self::own(text);
        self.move_if_too_long(policy);
    }

    fn own(text: String) -> Self {
        Self(Storage::Own {
            text: Counted::new(text),
            retry_at: 0,
        })
    }

    /// Moves a text to a file of its own if it is too long for memory.
    fn move_if_too_long(&mut self, policy: &SpillPolicy) {
        let Storage::Own { text, retry_at } = &mut self.0 else {
            return;
        };
        let length = text.0.len();
        if !policy.is_too_long(length) {
            return;
        }
        if let Some(mut stored) = Stored::empty(policy, length * 2)
            && stored.push(&text.0)
        {
            self.0 = Storage::Stored(stored);
        } else {
            // There may be room later.
            *retry_at = length * 2;
        }
    }

    /// Returns the text as one that has ended: a clone shares it. It moves to a file if much is in memory.
    pub fn settled(self) -> Self {
        self.settled_in(&policy())
    }

    fn settled_in(mut self, policy: &SpillPolicy) -> Self {
        self.move_if_too_long(policy);
        match self.0 {
            Storage::Own { mut text, .. } => {
                let is_much = HELD.load(Ordering::Relaxed) > policy.all_bytes;
                if is_much
                    && text.0.len() >= SHARED_FILE_BYTES
                    && let Some(stored) = Stored::among_others(&text.0, policy)
                {
                    return Self(Storage::Stored(stored));
                }
                let mut text = text.take();
                text.shrink_to_fit();
                Self(Storage::Shared(Arc::new(Counted::new(text))))
            }
            Storage::Stored(stored) => {
                // Others go on in a shared file.
                if !stored.file.is_shared {
                    stored.file.close();
                }
                Self(Storage::Stored(stored))
            }
            Storage::Shared(_) => self,
        }
    }

    pub fn as_str(&self) -> &str {
        #[cfg(test)]
        seen::note(self.len());
        if let Storage::Stored(stored) = &self.0 {
            stored.note_read();
        }
        self.unread()
    }

    /// Returns the text for a look at a small part of it.
    fn unread(&self) -> &str {
        match &self.0 {
            Storage::Own { text, .. } => &text.0,
            Storage::Shared(text) => &text.0,
            Storage::Stored(stored) => stored.file.text(stored.start, stored.length),
        }
    }

    /// Length in bytes. Reads nothing.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Own { text, .. } => text.0.len(),
            Storage::Shared(text) => text.0.len(),
            Storage::Stored(stored) => stored.length,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cuts the text to `length` bytes. Does nothing if it is no longer than that, or if a character would be cut.
    pub fn truncate(&mut self, length: usize) {
        if length >= self.len() || !self.unread().is_char_boundary(length) {
            return;
        }
        match &mut self.0 {
            Storage::Own { text, .. } => text.truncate(length),
            Storage::Shared(text) => {
                let text = text.0.get(..length).unwrap_or_default().to_owned();
                *self = Self::own(text);
            }
            // What is appended then goes to another file: bytes that were written never change.
            Storage::Stored(stored) => (stored.length, stored.room) = (length, 0),
        }
    }

    /// Returns the text from byte `start` on, empty if that is in a character or behind the end. In a file it is the same file.
    pub fn from_byte(&self, start: usize) -> Self {
        if !self.unread().is_char_boundary(start) {
            return Self::new();
        }
        match &self.0 {
            Storage::Own { text, .. } => Self::own(text.0.get(start..).unwrap_or_default().to_owned()),
            Storage::Shared(text) => Self::own(text.0.get(start..).unwrap_or_default().to_owned()),
            Storage::Stored(stored) => Self(Storage::Stored(Stored {
                file: Arc::clone(&stored.file),
                start: stored.start + start,
                length: stored.length - start,
                room: 0,
            })),
        }
    }

    /// Returns the text from byte `start` on, empty if that is in a character or behind the end. Only this part counts as read, so a
    /// text that grows can be looked at with each piece.
    pub fn after(&self, start: usize) -> &str {
        let part = self.unread().get(start..).unwrap_or_default();
        #[cfg(test)]
        seen::note(part.len());
        if self.is_stored() {
            note_read(part.len());
        }
        part
    }

    /// Returns at most `most` bytes from byte `start` on.
    pub fn bytes_from(&self, start: usize, most: usize) -> &[u8] {
        let rest = self.unread().as_bytes().get(start..).unwrap_or_default();
        let bytes = rest.get(..most).unwrap_or(rest);
        if self.is_stored() {
            note_read(bytes.len());
        }
        bytes
    }

    /// Returns the text in parts of at most 64 KiB, none if it is empty. Of one in a file not all parts are in memory at a time.
    pub fn parts(&self) -> impl Iterator<Item = &str> {
        let mut rest = self.unread();
        let is_stored = self.is_stored();
        std::iter::from_fn(move || {
            let (part, behind) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
            rest = behind;
            if is_stored {
                note_read(part.len());
            }
            (!part.is_empty()).then_some(part)
        })
    }

    /// Returns the text as a string of its own.
    pub fn into_string(mut self) -> String {
        match &mut self.0 {
            Storage::Own { text, .. } => text.take(),
            Storage::Shared(_) | Storage::Stored(_) => self.as_str().to_owned(),
        }
    }

    /// Returns true if the text is in a file.
    pub fn is_stored(&self) -> bool {
        matches!(self.0, Storage::Stored(_))
    }
}

impl Stored {
    /// Counts a text that is about to be read.
    fn note_read(&self) {
        if self.length >= PIECE_BYTES || self.file.is_shared {
            note_read(self.length);
        }
    }

    /// Creates an empty text with room for `room` bytes, in a file of its own if that is much.
    fn empty(policy: &SpillPolicy, room: usize) -> Option<Self> {
        if room <= policy.room_bytes {
            let (file, start) = in_shared_file(policy, room, |it| it.reserve(room))?;
            return Some(Self {
                file,
                start,
                length: 0,
                room,
            });
        }
        Some(Self {
            file: policy.create_file(room).ok()?.registered(false),
            start: 0,
            length: 0,
            room: 0,
        })
    }

    /// Appends in the file. Returns false if that is not possible.
    fn push(&mut self, more: &str) -> bool {
        self.push_bytes(more.as_bytes())
    }

    /// The same for a part of a text, which may end within a character.
    fn push_bytes(&mut self, more: &[u8]) -> bool {
        let at = self.start + self.length;
        let is_written = if self.room == 0 {
            self.file.append(at, more)
        } else {
            self.length + more.len() <= self.room && self.file.write(at, more)
        };
        if is_written {
            self.length += more.len();
        }
        is_written
    }

    /// Copies the text to where there is room for `room` bytes. Pages of the mapping stay as they are: a text that grows is not
    /// read by anybody yet.
    fn copy(&self, policy: &SpillPolicy, room: usize) -> Option<Self> {
        let mut copy = Self::empty(policy, room)?;
        let mut buffer = vec![0; self.length.min(PART_BYTES)];
        while copy.length < self.length {
            let most = buffer.len().min(self.length - copy.length);
            let part = buffer.get_mut(..most)?;
            if !self.file.read(self.start + copy.length, part) || !copy.push_bytes(part) {
                return None;
            }
        }
        Some(copy)
    }

    /// Moves a text to a file that many texts share.
    fn among_others(text: &str, policy: &SpillPolicy) -> Option<Self> {
        let length = text.len();
        let (file, start) = in_shared_file(policy, length, |it| it.append_anywhere(text.as_bytes()))?;
        Some(Self {
            file,
            start,
            length,
            room: 0,
        })
    }
}

/// Takes `bytes` bytes of a file that many texts share. Returns the file and their offset.
fn in_shared_file(
    policy: &SpillPolicy,
    bytes: usize,
    take: impl Fn(&MappedFile) -> Option<usize>,
) -> Option<(Arc<MappedFile>, usize)> {
    /// The file that is being filled. It goes with the last text in it.
    static SHARED: Mutex<Weak<MappedFile>> = Mutex::new(Weak::new());
    // Not held while the disk is written: of two files that are made at once the later one is filled.
    let shared = || SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let current = shared().upgrade();
    if let Some(file) = current
        && let Some(start) = take(&file)
    {
        return Some((file, start));
    }
    let file = policy.create_file(bytes).ok()?.registered(true);
    let start = take(&file)?;
    *shared() = Arc::downgrade(&file);
    Some((file, start))
}

/// A file without a name and its mapping. Bytes never change once they are written.
struct MappedFile {
    writer: Mutex<Writer>,
    base: NonNull<u8>,
    mapped: usize,
    /// Many texts are in it, and more may come.
    is_shared: bool,
}

struct Writer {
    /// `None`: nothing more will be written.
    file: Option<NamelessFile>,
    end: usize,
}

#[expect(
    unsafe_code,
    reason = "a pointer to a mapping that many read and nobody writes through"
)]
// SAFETY: the mapping is read-only and lives as long as the value; its bytes never change once they belong to a text.
unsafe impl Send for MappedFile {}
#[expect(
    unsafe_code,
    reason = "a pointer to a mapping that many read and nobody writes through"
)]
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps `mapped` bytes of a file that nobody else can write. What is not written takes no room on the disk.
    fn new(file: NamelessFile, mapped: usize) -> io::Result<Self> {
        file.set_len(mapped as u64)?;
        #[expect(unsafe_code, reason = "mmap(2) has no safe wrapper")]
        // SAFETY: a new mapping at an address of the system's choice; the file is as long as the mapping and stays so.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                mapped,
                ProtFlags::READ,
                MapFlags::SHARED,
                &*file,
                0,
            )
        }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            writer: Mutex::new(Writer {
                file: Some(file),
                end: 0,
            }),
            base,
            mapped,
            is_shared: false,
        })
    }

    /// Adds it to the list of files, for [`note_read`].
    fn registered(mut self, is_shared: bool) -> Arc<Self> {
        self.is_shared = is_shared;
        let file = Arc::new(self);
        files().push(Arc::downgrade(&file));
        file
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        // The end is moved when the bytes are there.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes `bytes` at `at`. Returns false if that is not the end, or if there is no room.
    fn append(&self, at: usize, bytes: &[u8]) -> bool {
        let mut writer = self.writer();
        writer.end == at && writer.append(bytes, self.mapped).is_some()
    }

    /// Writes `bytes` at the end. Returns the offset at which they are; `None` if there is no room.
    fn append_anywhere(&self, bytes: &[u8]) -> Option<usize> {
        self.writer().append(bytes, self.mapped)
    }

    /// Sets `room` bytes apart for one text. Returns their offset; `None` if there is no room.
    fn reserve(&self, room: usize) -> Option<usize> {
        let mut writer = self.writer();
        let start = writer.end;
        writer.end = start.checked_add(room).filter(|it| *it <= self.mapped)?;
        Some(start)
    }

    /// Writes `bytes` at `at`, in room that was set apart and is not written yet.
    fn write(&self, at: usize, bytes: &[u8]) -> bool {
        self.writer().write(at, bytes).is_some()
    }

    /// Reads bytes that were written before, from the file while it is open. Returns false if they cannot be read.
    fn read(&self, at: usize, bytes: &mut [u8]) -> bool {
        let writer = self.writer();
        if let Some(file) = &writer.file {
            return file
                .read_exact_at(bytes, at as u64)
                .inspect_err(|error| tracing::debug!(%error, "a long text cannot be read"))
                .is_ok();
        }
        drop(writer);
        bytes.copy_from_slice(self.bytes(at, bytes.len()));
        note_read(bytes.len());
        true
    }

    /// Closes the file's descriptor: nothing more is written. The text stays readable.
    fn close(&self) {
        self.writer().file = None;
    }

    /// Returns a text that was written before.
    fn text(&self, start: usize, length: usize) -> &str {
        #[expect(unsafe_code, reason = "a text in a mapping")]
        // SAFETY: a `Stored` is a whole text that was written before.
        unsafe {
            std::str::from_utf8_unchecked(self.bytes(start, length))
        }
    }

    /// Returns bytes that were written before.
    fn bytes(&self, start: usize, length: usize) -> &[u8] {
        debug_assert!(start + length <= self.writer().end, "only what was written is read");
        #[expect(unsafe_code, reason = "a text in a mapping")]
        // SAFETY: they were written before, within the mapping; no byte of them changes, because the file has no name, no other
        // process has it, and writes go after the end.
        unsafe {
            std::slice::from_raw_parts(self.base.as_ptr().add(start), length)
        }
    }

    /// Drops its pages from memory. Elsewhere than on Linux the system may keep them.
    fn release(&self) {
        #[cfg(target_os = "linux")]
        let advice = rustix::mm::Advice::LinuxDontNeed;
        #[cfg(not(target_os = "linux"))]
        let advice = rustix::mm::Advice::DontNeed;
        #[expect(unsafe_code, reason = "madvise(2) has no safe wrapper")]
        // SAFETY: the mapping is shared and read-only: its pages come back from the file with the same bytes.
        let result = unsafe { rustix::mm::madvise(self.base.as_ptr().cast(), self.mapped, advice) };
        if let Err(error) = result {
            tracing::debug!(%error, "pages of a text stay in memory");
        }
    }
}

impl Writer {
    fn append(&mut self, bytes: &[u8], most: usize) -> Option<usize> {
        let start = self.end;
        let end = start.checked_add(bytes.len()).filter(|it| *it <= most)?;
        self.write(start, bytes)?;
        self.end = end;
        Some(start)
    }

    fn write(&self, at: usize, bytes: &[u8]) -> Option<()> {
        let written = self.file.as_ref()?.write_all_at(bytes, at as u64);
        written
            .inspect_err(|error| tracing::debug!(%error, "a long text stays in memory"))
            .ok()
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "munmap(2) has no safe wrapper")]
        // SAFETY: the mapping is ours, and no text in it is left.
        let result = unsafe { munmap(self.base.as_ptr().cast(), self.mapped) };
        debug_assert!(result.is_ok(), "a mapping of ours can be taken away");
    }
}

/// All files that exist.
fn files() -> MutexGuard<'static, Vec<Weak<MappedFile>>> {
    static FILES: Mutex<Vec<Weak<MappedFile>>> = Mutex::new(Vec::new());
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if files.len() == files.capacity() {
        files.retain(|it| it.strong_count() > 0);
    }
    files
}

/// Counts bytes that were read from files, and drops the pages of all files each time that many were read. Called
/// also while a text is read that may be in one.
pub fn note_read(bytes: usize) {
    static READ: AtomicUsize = AtomicUsize::new(0);
    if READ.fetch_add(bytes, Ordering::Relaxed) + bytes < READ_LIMIT.load(Ordering::Relaxed) {
        return;
    }
    READ.store(0, Ordering::Relaxed);
    release_pages();
}

/// Bytes of texts that a test has read, wherever the texts are.
#[cfg(test)]
pub mod seen {
    use std::cell::Cell;

    thread_local! {
        static SEEN: Cell<usize> = const { Cell::new(0) };
    }

    pub(super) fn note(bytes: usize) {
        SEEN.set(SEEN.get() + bytes);
    }

    /// The bytes that were read on this thread since the last call.
    pub fn take() -> usize {
        SEEN.replace(0)
    }
}

/// Drops the pages of all files from memory. The system reads them again on demand.
pub fn release_pages() {
    let files: Vec<_> = files().iter().filter_map(Weak::upgrade).collect();
    for file in files {
        file.release();
    }
}

impl Default for LongText {
    fn default() -> Self {
        Self::own(String::new())
    }
}

impl Deref for LongText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl From<String> for LongText {
    fn from(text: String) -> Self {
        let mut text = Self::own(text);
        if text.len() > STAYS_BYTES.load(Ordering::Relaxed) {
            text.move_if_too_long(&policy());
        }
        text
    }
}

impl From<&str> for LongText {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<LongText> for String {
    fn from(text: LongText) -> Self {
        text.into_string()
    }
}

impl Hash for LongText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let is_stored = self.is_stored();
        // In pieces wherever it is: equal texts have equal hashes.
        for piece in self.as_str().as_bytes().chunks(PIECE_BYTES) {
            state.write(piece);
            if is_stored {
                note_read(piece.len());
            }
        }
        state.write_u8(u8::MAX);
    }
}

impl fmt::Debug for LongText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl fmt::Display for LongText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_str(), formatter)
    }
}

impl PartialEq for LongText {
    fn eq(&self, other: &Self) -> bool {
        if let (Storage::Stored(one), Storage::Stored(other)) = (&self.0, &other.0)
            && Arc::ptr_eq(&one.file, &other.file)
            && (one.start, one.length) == (other.start, other.length)
        {
            return true;
        }
        let (one, other) = (self.unread().as_bytes(), other.unread().as_bytes());
        let mut pieces = one.chunks(PIECE_BYTES).zip(other.chunks(PIECE_BYTES));
        one.len() == other.len()
            && pieces.all(|(one, other)| {
                let is_same = one == other;
                // Both may be in files.
                note_read(one.len() * 2);
                is_same
            })
    }
}

impl Eq for LongText {}

impl PartialOrd for LongText {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Ord for LongText {
    fn cmp(&self, other: &Self) -> Order {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialEq<str> for LongText {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for LongText {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for LongText {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl Serialize for LongText {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.is_stored() {
            to.collect_str(&InParts(self))
        } else {
            to.serialize_str(self.unread())
        }
    }
}

/// A text that is written in parts.
struct InParts<'a>(&'a LongText);

impl fmt::Display for InParts<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.parts().try_for_each(|it| formatter.write_str(it))
    }
}

/// Text that is written to, such as JSON. Each write has to be whole characters.
impl io::Write for LongText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(bytes).map_err(|it| io::Error::new(io::ErrorKind::InvalidData, it))?;
        self.push_str(text);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'de> Deserialize<'de> for LongText {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::from(String::deserialize(from)?).settled())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use proptest::prelude::*;

    use super::*;

    /// A policy with a folder of its own that moves texts of more than `text_bytes` bytes.
    fn some(text_bytes: usize) -> (SpillPolicy, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let policy = SpillPolicy::in_folder(folder.path().join("texts")).with_text_bytes(text_bytes);
        (policy, folder)
    }

    impl LongText {
        fn grow(&mut self, more: &str, policy: &SpillPolicy) {
            if let Storage::Own { text, .. } = &mut self.0 {
                text.push(more);
                self.move_if_too_long(policy);
            } else {
                self.push_after(more, policy);
            }
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_text_that_grows_is_not_resident_wherever_it_is_copied_to() {
        let (mut policy, _folder) = some(4 << 10);
        // A file of its own, so that no other test reads beside it.
        policy.room_bytes = 0;
        let mut text = LongText::new();
        text.grow(&"é word ".repeat(4 << 10), &policy);
        // A clone keeps the file, so that what follows is a copy in another one.
        let before = text.clone();
        text.clone().grow("x", &policy);
        text.grow("y", &policy);
        let mut resident = Vec::new();
        for it in [&before, &text] {
            let Storage::Stored(stored) = &it.0 else {
                panic!("it is long")
            };
            resident.push(resident_kib(stored.file.base.as_ptr().expose_provenance()));
        }
        assert_eq!(resident, [0, 0]);
        assert!(text.ends_with("word y") && text.len() == before.len() + 1);
    }

    /// Resident memory of the mapping that begins at `start`, in kibibytes.
    #[cfg(target_os = "linux")]
    fn resident_kib(start: usize) -> u64 {
        let maps = std::fs::read_to_string("/proc/self/smaps").expect("it is Linux");
        let begins = format!("{start:08x}-");
        let mut lines = maps.lines().skip_while(|it| !it.starts_with(&begins));
        let line = lines.find_map(|it| it.strip_prefix("Rss:")).expect("it is mapped");
        line.trim().trim_end_matches(" kB").parse().expect("a figure")
    }

    #[test]
    fn a_long_text_is_in_a_private_file_without_a_name() {
        let (policy, folder) = some(10);
        let mut text = LongText::new();
        text.grow("0123456789", &policy);
        assert!(!text.is_stored(), "the limit itself is short");
        text.grow("ä", &policy);
        assert!(text.is_stored());
        assert_eq!(text, "0123456789ä");
        let Storage::Stored(stored) = &text.0 else {
            panic!("it is stored")
        };
        let about = stored
            .file
            .writer()
            .file
            .as_ref()
            .expect("open")
            .metadata()
            .expect("there");
        assert_eq!((about.mode() & 0o777, about.nlink()), (0o600, 0));
        let in_folder = std::fs::read_dir(folder.path().join("texts")).expect("it was made");
        assert_eq!(in_folder.count(), 0, "a crash leaves nothing");
        text.grow(" and on", &policy);
        assert_eq!(text.settled_in(&policy), "0123456789ä and on");
    }

    #[test]
    fn a_clone_and_its_original_grow_apart() {
        let (policy, _folder) = some(4);
        for start in ["abc", "abcdefgh"] {
            let mut one = LongText::new();
            one.grow(start, &policy);
            let (mut two, settled) = (one.clone(), one.clone().settled_in(&policy));
            one.grow("1", &policy);
            two.grow("2", &policy);
            let mut three = settled.clone();
            three.grow("3", &policy);
            one.grow("!", &policy);
            assert_eq!(one, format!("{start}1!"));
            assert_eq!(two, format!("{start}2"));
            assert_eq!(three, format!("{start}3"));
            assert_eq!(settled, start);
        }
    }

    #[test]
    fn without_room_on_the_disk_a_text_stays_in_memory() {
        let (mut policy, folder) = some(4);
        let file = folder.path().join("no-folder");
        std::fs::write(&file, "").expect("a file");
        policy.folder = Some(file);
        // Another test may have a file that is shared.
        policy.room_bytes = 0;
        let mut text = LongText::new();
        for _ in 0..100 {
            text.grow("abcdef", &policy);
        }
        assert!(!text.is_stored());
        assert_eq!(text.len(), 600);
        // And when the room ends in the middle of it.
        let (policy, _folder) = some(4);
        let mut text = LongText::new();
        text.grow("abcdef", &policy);
        let Storage::Stored(stored) = &text.0 else {
            panic!("it is stored")
        };
        stored.file.close();
        let none = SpillPolicy {
            folder: None,
            room_bytes: 0,
            ..policy
        };
        text.grow("ghi", &none);
        assert!(!text.is_stored());
        assert_eq!(text, "abcdefghi");
    }

    #[test]
    fn a_text_may_outgrow_its_file() {
        let (policy, _folder) = some(4);
        let mut text = LongText::new();
        let piece = "x".repeat(1 << 20);
        for _ in 0..70 {
            text.grow(&piece, &policy);
        }
        assert!(text.is_stored());
        assert_eq!(text.len(), 70 << 20);
        assert!(text.bytes().all(|it| it == b'x'));
    }

    #[test]
    fn short_texts_share_a_file_when_much_is_in_memory() {
        let (mut policy, _folder) = some(1 << 20);
        policy.all_bytes = 0;
        let words = |at: usize| format!("{at} ").repeat(200);
        let texts: Vec<_> = (0..50)
            .map(|at| LongText::from(words(at)).settled_in(&policy))
            .collect();
        let files: std::collections::HashSet<_> = texts
            .iter()
            .map(|it| match &it.0 {
                Storage::Stored(it) => Arc::as_ptr(&it.file),
                Storage::Own { .. } | Storage::Shared(_) => panic!("it is stored"),
            })
            .collect();
        // Another test may have begun one.
        assert!(files.len() <= 2, "{}", files.len());
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(*text, words(at));
        }
        assert!(!LongText::from("short").settled_in(&policy).is_stored());
    }

    #[test]
    fn a_shared_file_stays_open_when_a_text_in_it_ends_again() {
        let (mut policy, _folder) = some(1 << 20);
        policy.all_bytes = 0;
        let settled = |text: LongText| text.settled_in(&policy);
        let file = |text: &LongText| match &text.0 {
            Storage::Stored(it) => Arc::clone(&it.file),
            Storage::Own { .. } | Storage::Shared(_) => panic!("it is stored"),
        };
        let one = settled(LongText::from("one ".repeat(200)));
        let one = settled(one);
        assert!(file(&one).writer().file.is_some(), "others may go on in it");
        // Its own file is closed.
        let long = settled(LongText::from("x".repeat(2 << 20)));
        assert!(file(&long).writer().file.is_none());
    }

    #[test]
    fn a_text_is_not_mapped_where_another_machine_may_cut_its_file() {
        let (policy, folder) = some(4);
        let folder = folder.path().to_owned();
        let is_in_folder = |file: &File| {
            let path = std::fs::read_link(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file)));
            path.is_ok_and(|it| it.starts_with(&folder))
        };
        // Beside the folder, if the temporary files are on this machine.
        let elsewhere = policy.create_file_if(10, |it| !is_in_folder(it)).expect("a file");
        assert!(elsewhere.append(0, b"text") && elsewhere.text(0, 4) == "text");
        assert!(policy.create_file_if(10, |_| false).is_err());
        assert!(policy.create_file_if(10, |_| true).is_ok());
    }

    #[test]
    fn dropped_pages_are_read_again() {
        let (policy, _folder) = some(4);
        let mut text = LongText::new();
        for at in 0..200_000 {
            text.grow(&format!("{at:06}\n"), &policy);
        }
        let before: String = text.to_string();
        let Storage::Stored(stored) = &text.0 else {
            panic!("it is stored")
        };
        stored.file.release();
        assert!(text == before);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_cut_text_and_the_end_of_one_equal_those_of_the_string(
            pieces in prop::collection::vec(".{0,12}", 1..20), limit in 0_usize..60, at in 0_usize..100, is_settled: bool,
        ) {
            let (policy, _folder) = some(limit);
            let (mut text, mut string) = (LongText::new(), String::new());
            for piece in &pieces {
                text.grow(piece, &policy);
                string.push_str(piece);
            }
            if is_settled {
                text = text.settled_in(&policy);
            }
            let whole = text.clone();
            prop_assert_eq!(text.len(), string.len());
            prop_assert_eq!(text.parts().collect::<String>(), string.as_str());
            prop_assert_eq!(text.from_byte(at).into_string(), string.get(at..).unwrap_or_default());
            prop_assert_eq!(text.after(at), string.get(at..).unwrap_or_default());
            if string.is_char_boundary(at) {
                string.truncate(at);
            }
            text.truncate(at);
            prop_assert_eq!(text.as_str(), string.as_str());
            // What comes behind the cut changes no other copy.
            text.grow("more", &policy);
            prop_assert_eq!(text.as_str(), format!("{string}more"));
            prop_assert_eq!(whole.as_str(), pieces.concat());
        }

        #[test]
        fn it_equals_the_string_in_memory_and_in_a_file(pieces in prop::collection::vec(".{0,12}", 0..20), limit in 0_usize..60) {
            let (policy, _folder) = some(limit);
            let (mut text, mut string) = (LongText::new(), String::new());
            for piece in &pieces {
                text.grow(piece, &policy);
                string.push_str(piece);
                prop_assert_eq!(text.as_str(), &string);
            }
            let json = serde_json::to_string(&text).expect("text is JSON");
            prop_assert_eq!(&json, &serde_json::to_string(&string).expect("text is JSON"));
            let back: LongText = serde_json::from_str(&json).expect("JSON of ours");
            prop_assert_eq!(&back, &text);
            prop_assert_eq!(text.settled_in(&policy).into_string(), string);
        }
    }
}
