//! Text that may grow beyond what memory should hold: it stays in memory up to a limit, and lies in a file beyond it.
//!
//! The file is the user's alone and has no name ([`file::nameless`]), so nothing of it is left when the program ends, however
//! it ends. It is written with `write`, which reports a full disk, and read through a mapping, so a text is a `str` wherever it
//! lies. Where there is no file to be had, it stays in memory. Whoever reads a text need not know any of this.

use std::{
    cmp::Ordering as Order,
    fmt,
    fs::File,
    io,
    ops::Deref,
    os::unix::fs::FileExt as _,
    path::PathBuf,
    ptr::NonNull,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{file, scratch::ScratchFile};

/// Longest text in memory, in bytes. A longer one is moved to a file.
const TEXT_BYTES: usize = 4 << 20;

/// Size of all texts in memory together, in bytes, above which shorter ones are moved to files, too.
const ALL_BYTES: usize = 32 << 20;

/// Shortest text that is worth a file of its own while it grows, and a place in a shared file when it has ended, in bytes.
const WORTH_FILE_BYTES: usize = 256 << 10;
const WORTH_PLACE_BYTES: usize = 256;

/// Address space that is set aside for a file, in bytes: the longest document and a little more.
const MAPPED_BYTES: usize = 68 << 20;

/// Bytes that are copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// After reading so much of texts in files, in bytes, their pages are dropped from memory. They are read again on demand.
const READ_BYTES: usize = 32 << 20;

/// Bytes of all texts in memory. Shared ones count once.
static HELD: AtomicUsize = AtomicUsize::new(0);

/// Place of the files; without one all texts stay in memory.
static PLACE: Mutex<Place> = Mutex::new(Place::nowhere());

/// Length in bytes up to which a text never moves while it grows: the smaller limit of the place.
static STAYS_BYTES: AtomicUsize = AtomicUsize::new(WORTH_FILE_BYTES);

/// Text in memory or in a file. Grows at its end only.
#[derive(Clone)]
pub struct LongText(Storage);

#[derive(Clone)]
enum Storage {
    /// Still growing: a copy of it is a copy of the text.
    Own {
        text: Counted,
        /// Length from which on a file is wanted, if that failed before.
        retry_at: usize,
    },
    Shared(Arc<Counted>),
    Stored(Stored),
}

/// A part of a file.
#[derive(Clone)]
struct Stored {
    file: Arc<MappedFile>,
    start: usize,
    length: usize,
}

/// Folder and limits of texts in files.
#[derive(Clone, Debug)]
pub struct Place {
    /// Folder of the files. It is created when needed. `None`: everything stays in memory.
    pub folder: Option<PathBuf>,
    /// Longest text in memory, in bytes.
    pub text_bytes: usize,
    /// Size of all texts in memory together, in bytes, above which shorter ones are moved, too.
    pub all_bytes: usize,
    /// Shortest text that gets a file of its own, in bytes.
    pub worth_file_bytes: usize,
}

impl Place {
    /// Returns the usual limits, with files in `folder`.
    pub fn of(folder: PathBuf) -> Self {
        Self {
            folder: Some(folder),
            ..Self::nowhere()
        }
    }

    /// Returns the usual limits without a folder: everything stays in memory.
    pub const fn nowhere() -> Self {
        Self {
            folder: None,
            text_bytes: TEXT_BYTES,
            all_bytes: ALL_BYTES,
            worth_file_bytes: WORTH_FILE_BYTES,
        }
    }

    /// Returns the same for a program that holds many texts at a time: one of more than `text_bytes` bytes is moved.
    pub fn with_texts_of(self, text_bytes: usize) -> Self {
        Self {
            text_bytes,
            worth_file_bytes: text_bytes.min(self.worth_file_bytes),
            ..self
        }
    }

    /// Uses this place for all texts that grow from now on.
    pub fn apply(self) {
        STAYS_BYTES.store(self.text_bytes.min(self.worth_file_bytes), Ordering::Relaxed);
        *place() = self;
    }

    /// Creates a file for a text that may grow to `bytes` bytes. Fails without a folder.
    fn file(&self, bytes: usize) -> io::Result<MappedFile> {
        let folder = self.folder.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let file = file::nameless(folder).map_err(io::Error::other)?;
        MappedFile::new(file, bytes.max(MAPPED_BYTES))
    }

    fn is_too_long(&self, bytes: usize) -> bool {
        bytes > self.text_bytes || (bytes > self.worth_file_bytes && HELD.load(Ordering::Relaxed) > self.all_bytes)
    }
}

/// Creates a file for other bytes in the folder of the texts. Fails without a folder.
pub fn scratch_file() -> io::Result<ScratchFile> {
    let place = place();
    ScratchFile::new(place.folder.as_deref().ok_or(io::ErrorKind::NotFound)?)
}

fn place() -> MutexGuard<'static, Place> {
    // A place is replaced whole.
    PLACE.lock().unwrap_or_else(PoisonError::into_inner)
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
                self.move_if_too_long(&place());
            }
        } else {
            self.push_behind(more, &place());
        }
    }

    /// Appends to a text that is shared or in a file.
    fn push_behind(&mut self, more: &str, place: &Place) {
        if more.is_empty() {
            return;
        }
        if let Storage::Stored(stored) = &mut self.0 {
            if stored.file.append(stored.start + stored.length, more.as_bytes()) {
                stored.length += more.len();
                return;
            }
            // Somebody else has written behind it, or it is full.
            let room = (stored.length + more.len()) * 2;
            if let Some(copy) = stored
                .copy(place, room)
                .filter(|it| it.file.append(it.length, more.as_bytes()))
            {
                let length = copy.length + more.len();
                self.0 = Storage::Stored(Stored { length, ..copy });
                return;
            }
        }
        let mut text = String::with_capacity(self.len() + more.len());
        text.push_str(self);
        text.push_str(more);
        *self = Self::own(text);
        self.move_if_too_long(place);
    }

    fn own(text: String) -> Self {
        Self(Storage::Own {
            text: Counted::new(text),
            retry_at: 0,
        })
    }

    /// Moves a text to a file of its own if it is too long for memory.
    fn move_if_too_long(&mut self, place: &Place) {
        let Storage::Own { text, retry_at } = &mut self.0 else {
            return;
        };
        let length = text.0.len();
        if !place.is_too_long(length) {
            return;
        }
        let moved = place.file(length * 2).ok().filter(|it| it.append(0, text.0.as_bytes()));
        match moved {
            Some(file) => {
                self.0 = Storage::Stored(Stored {
                    file: file.registered(),
                    start: 0,
                    length,
                });
            }
            // Where there is no room now, there may be some later.
            None => *retry_at = length * 2,
        }
    }

    /// Returns the same text as one that has ended: a copy of it costs nothing. It is moved to a file if memory holds much.
    pub fn settled(self) -> Self {
        self.settled_in(&place())
    }

    fn settled_in(mut self, place: &Place) -> Self {
        self.move_if_too_long(place);
        match self.0 {
            Storage::Own { mut text, .. } => {
                let is_much = HELD.load(Ordering::Relaxed) > place.all_bytes;
                if is_much
                    && text.0.len() >= WORTH_PLACE_BYTES
                    && let Some(stored) = Stored::among_others(&text.0, place)
                {
                    return Self(Storage::Stored(stored));
                }
                let mut text = text.take();
                text.shrink_to_fit();
                Self(Storage::Shared(Arc::new(Counted::new(text))))
            }
            Storage::Stored(stored) => {
                stored.file.close();
                Self(Storage::Stored(stored))
            }
            Storage::Shared(_) => self,
        }
    }

    pub fn as_str(&self) -> &str {
        match &self.0 {
            Storage::Own { text, .. } => &text.0,
            Storage::Shared(text) => &text.0,
            Storage::Stored(stored) => stored.text(),
        }
    }

    /// Returns the text as a string of its own.
    pub fn into_string(mut self) -> String {
        match &mut self.0 {
            Storage::Own { text, .. } => text.take(),
            Storage::Shared(_) | Storage::Stored(_) => self.as_str().to_owned(),
        }
    }

    /// Returns true if the text lies in a file.
    pub fn is_stored(&self) -> bool {
        matches!(self.0, Storage::Stored(_))
    }
}

impl Stored {
    fn text(&self) -> &str {
        if self.length >= PIECE_BYTES {
            note_read(self.length);
        }
        self.file.text(self.start, self.length)
    }

    /// Copies the text to a file of its own with room for `room` bytes.
    fn copy(&self, place: &Place, room: usize) -> Option<Self> {
        let file = place.file(room).ok()?.registered();
        let (mut at, mut rest) = (0, self.file.text(self.start, self.length).as_bytes());
        while !rest.is_empty() {
            let (piece, others) = rest.split_at(rest.len().min(PIECE_BYTES));
            if !file.append(at, piece) {
                return None;
            }
            (at, rest) = (at + piece.len(), others);
            note_read(piece.len());
        }
        Some(Self {
            file,
            start: 0,
            length: self.length,
        })
    }

    /// Puts a text into a file that many share.
    fn among_others(text: &str, place: &Place) -> Option<Self> {
        /// The file that is being filled; gone with the last text in it.
        static SHARED: Mutex<Weak<MappedFile>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        let length = text.len();
        if let Some(file) = shared.upgrade()
            && let Some(start) = file.append_anywhere(text.as_bytes())
        {
            return Some(Self { file, start, length });
        }
        let file = place.file(length).ok()?.registered();
        let start = file.append_anywhere(text.as_bytes())?;
        *shared = Arc::downgrade(&file);
        Some(Self { file, start, length })
    }
}

/// A file without a name whose bytes never change once they are written, and its mapping.
struct MappedFile {
    /// `None` when nothing more will be written.
    writer: Mutex<Writer>,
    base: NonNull<u8>,
    mapped: usize,
}

struct Writer {
    /// `None`: nothing more will be written.
    file: Option<File>,
    end: usize,
}

#[expect(
    unsafe_code,
    reason = "a pointer to a mapping that many read and nobody writes through"
)]
// SAFETY: the mapping is read-only and lives as long as the value; its bytes before `Writer::end` never change.
unsafe impl Send for MappedFile {}
#[expect(
    unsafe_code,
    reason = "a pointer to a mapping that many read and nobody writes through"
)]
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps `mapped` bytes of a file that nobody else can write. The rest of the file is a hole that takes no room.
    fn new(file: File, mapped: usize) -> io::Result<Self> {
        file.set_len(mapped as u64)?;
        #[expect(unsafe_code, reason = "mmap(2) has no safe wrapper")]
        // SAFETY: a new mapping at an address of the system's choice; the file is as long as the mapping and stays so.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                mapped,
                ProtFlags::READ,
                MapFlags::SHARED,
                &file,
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
        })
    }

    /// Makes its pages known to those that drop them.
    fn registered(self) -> Arc<Self> {
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

    /// Gives the file's descriptor back: nothing more is written. The text stays.
    fn close(&self) {
        self.writer().file = None;
    }

    /// Returns a part that is the text that was written there.
    fn text(&self, start: usize, length: usize) -> &str {
        debug_assert!(start + length <= self.writer().end, "only what was written is read");
        #[expect(unsafe_code, reason = "a text in a mapping")]
        // SAFETY: `Stored` is made for whole texts that were written before, within the mapping; no byte of them changes,
        // because the file has no name, no other process has it, and writes only go behind the end.
        unsafe {
            let bytes = std::slice::from_raw_parts(self.base.as_ptr().add(start), length);
            std::str::from_utf8_unchecked(bytes)
        }
    }

    /// Drops its pages from memory.
    #[cfg(target_os = "linux")]
    fn release(&self) {
        #[expect(unsafe_code, reason = "madvise(2) has no safe wrapper")]
        // SAFETY: the mapping is shared and read-only: its pages come back from the file with the same bytes.
        let result = unsafe {
            rustix::mm::madvise(
                self.base.as_ptr().cast(),
                self.mapped,
                rustix::mm::Advice::LinuxDontNeed,
            )
        };
        if let Err(error) = result {
            tracing::debug!(%error, "pages of a text stay in memory");
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn release(&self) {}
}

impl Writer {
    fn append(&mut self, bytes: &[u8], most: usize) -> Option<usize> {
        let start = self.end;
        let end = start.checked_add(bytes.len()).filter(|it| *it <= most)?;
        let file = self.file.as_ref()?;
        if let Err(error) = file.write_all_at(bytes, start as u64) {
            tracing::debug!(%error, "a long text stays in memory");
            return None;
        }
        self.end = end;
        Some(start)
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

/// All files that there are.
fn files() -> MutexGuard<'static, Vec<Weak<MappedFile>>> {
    static FILES: Mutex<Vec<Weak<MappedFile>>> = Mutex::new(Vec::new());
    let mut files = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    if files.len() == files.capacity() {
        files.retain(|it| it.strong_count() > 0);
    }
    files
}

/// Counts bytes that were read of texts in files, and drops their pages from memory from time to time.
fn note_read(bytes: usize) {
    static READ: AtomicUsize = AtomicUsize::new(0);
    if READ.fetch_add(bytes, Ordering::Relaxed) + bytes < READ_BYTES {
        return;
    }
    READ.store(0, Ordering::Relaxed);
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
            text.move_if_too_long(&place());
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
        self.as_str() == other.as_str()
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
        to.serialize_str(self)
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

    /// A place in a folder of its own, for texts of more than `text_bytes` bytes.
    fn some(text_bytes: usize) -> (Place, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::of(folder.path().join("texts")).with_texts_of(text_bytes);
        (place, folder)
    }

    impl LongText {
        fn grow(&mut self, more: &str, place: &Place) {
            if let Storage::Own { text, .. } = &mut self.0 {
                text.push(more);
                self.move_if_too_long(place);
            } else {
                self.push_behind(more, place);
            }
        }
    }

    #[test]
    fn a_long_text_lies_in_a_file_that_is_private_and_has_no_name() {
        let (place, folder) = some(10);
        let mut text = LongText::new();
        text.grow("0123456789", &place);
        assert!(!text.is_stored(), "the limit itself is short");
        text.grow("ä", &place);
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
        text.grow(" and on", &place);
        assert_eq!(text.settled_in(&place), "0123456789ä and on");
    }

    #[test]
    fn copies_go_their_own_ways() {
        let (place, _folder) = some(4);
        for start in ["abc", "abcdefgh"] {
            let mut one = LongText::new();
            one.grow(start, &place);
            let (mut two, settled) = (one.clone(), one.clone().settled_in(&place));
            one.grow("1", &place);
            two.grow("2", &place);
            let mut three = settled.clone();
            three.grow("3", &place);
            one.grow("!", &place);
            assert_eq!(one, format!("{start}1!"));
            assert_eq!(two, format!("{start}2"));
            assert_eq!(three, format!("{start}3"));
            assert_eq!(settled, start);
        }
    }

    #[test]
    fn without_room_on_the_disk_a_text_stays_in_memory() {
        let (mut place, folder) = some(4);
        let file = folder.path().join("no-folder");
        std::fs::write(&file, "").expect("a file");
        place.folder = Some(file);
        let mut text = LongText::new();
        for _ in 0..100 {
            text.grow("abcdef", &place);
        }
        assert!(!text.is_stored());
        assert_eq!(text.len(), 600);
        // And when the room ends in the middle of it.
        let (place, _folder) = some(4);
        let mut text = LongText::new();
        text.grow("abcdef", &place);
        let Storage::Stored(stored) = &text.0 else {
            panic!("it is stored")
        };
        stored.file.close();
        let none = Place { folder: None, ..place };
        text.grow("ghi", &none);
        assert!(!text.is_stored());
        assert_eq!(text, "abcdefghi");
    }

    #[test]
    fn a_text_may_outgrow_its_file() {
        let (place, _folder) = some(4);
        let mut text = LongText::new();
        let piece = "x".repeat(1 << 20);
        for _ in 0..70 {
            text.grow(&piece, &place);
        }
        assert!(text.is_stored());
        assert_eq!(text.len(), 70 << 20);
        assert!(text.bytes().all(|it| it == b'x'));
    }

    #[test]
    fn where_memory_holds_much_short_texts_share_a_file() {
        let (mut place, _folder) = some(1 << 20);
        place.all_bytes = 0;
        let words = |at: usize| format!("{at} ").repeat(200);
        let texts: Vec<_> = (0..50).map(|at| LongText::from(words(at)).settled_in(&place)).collect();
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
        assert!(!LongText::from("short").settled_in(&place).is_stored());
    }

    #[test]
    fn pages_that_were_dropped_come_back() {
        let (place, _folder) = some(4);
        let mut text = LongText::new();
        for at in 0..200_000 {
            text.grow(&format!("{at:06}\n"), &place);
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
        fn it_is_a_string_wherever_it_lies(pieces in prop::collection::vec(".{0,12}", 0..20), limit in 0_usize..60) {
            let (place, _folder) = some(limit);
            let (mut text, mut string) = (LongText::new(), String::new());
            for piece in &pieces {
                text.grow(piece, &place);
                string.push_str(piece);
                prop_assert_eq!(text.as_str(), &string);
            }
            let json = serde_json::to_string(&text).expect("text is JSON");
            prop_assert_eq!(&json, &serde_json::to_string(&string).expect("text is JSON"));
            let back: LongText = serde_json::from_str(&json).expect("JSON of ours");
            prop_assert_eq!(&back, &text);
            prop_assert_eq!(text.settled_in(&place).into_string(), string);
        }
    }
}
