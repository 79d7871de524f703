//! Colours for code, computed beside the program and never waited for.
//!
//! [`Highlighter::code`] answers with the lines that are ready and hands new ones to one background thread, which starts
//! with the first of them and owns the grammars. Every line is parsed once while a block grows; a block whose source
//! was replaced starts again. Long lines and endless blocks stay plain.
//!
//! Some grammars can be made to go round for ever by hostile text (JavaScript's among them), and a thread cannot be
//! stopped from outside. So a line that takes too long costs its block the colours and the program that thread: another
//! takes its place, and after a few of those code stays plain. Where it takes memory as well, as it mostly does, it sleeps
//! once that is too much (`budget`).

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
        mpsc::{self, Receiver, Sender},
    },
    time::{Duration, Instant},
};

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use super::{
    CodeLine, Colours, Role, Sanitized, Span, budget,
    language::{self, Language},
    mermaid,
};

/// Longest line that is coloured: minified code costs seconds, and nobody reads its colours.
const LONGEST_LINE_BYTES: usize = 4096;
/// Lines that are coloured; later ones stay plain.
const MOST_LINES: usize = 2000;
/// Bytes that are coloured, because a grammar's stack can grow with every byte.
const MOST_BYTES: usize = 512 << 10;
/// Lines that are parsed before other blocks get their turn and the result is shown.
const SLICE_LINES: usize = 32;
/// Memory that one line may take while it is parsed, in bytes, the grammar included if the line is the first. A
/// parser that never ends takes gigabytes a minute: it gets no more than this.
const MOST_LINE_BYTES: usize = 64 << 20;
/// Scopes looked at for one token, from the innermost outwards.
const DEEPEST_LOOK: usize = 48;
/// A line that takes longer is not going to end: the slowest honest ones of this length take a tenth of it.
const LONGEST_LINE_MS: u64 = 4000;
/// Time for one line in exports: longer than on the screen, where somebody waits.
const PATIENCE: Duration = Duration::from_secs(8);
/// Milliseconds between two checks of running threads, so that few of them happen while code arrives.
const LOOK_MS: u64 = 1000;
/// Threads that may be abandoned; after that no new ones are started.
const MOST_GIVEN_UP: usize = 3;
/// Bytes that all finished and growing blocks may take together.
const LIMIT_BYTES: usize = 8 << 20;

/// Callback of the background thread: [`Highlighter::take_ready`] has something.
pub type OnReady = Arc<dyn Fn() + Send + Sync>;

/// Coloured code for all blocks of a program; dropping it ends its thread.
pub struct Highlighter {
    shared: Arc<Shared>,
    crew: Mutex<Crew>,
}

/// The thread at work, and how many were given up.
#[derive(Default)]
struct Crew {
    jobs: Option<Sender<Job>>,
    beat: Arc<Beat>,
    given_up: usize,
    /// When the last lines were handed over, in milliseconds since `epoch`.
    sent_ms: u64,
}

/// State of a thread, for other threads.
#[derive(Default)]
struct Beat {
    /// Milliseconds since `epoch` at which the line was begun, plus one; 0 while it waits.
    line_since: AtomicU64,
    block: AtomicU64,
    /// True once another thread does its work.
    retired: AtomicBool,
}

struct Shared {
    blocks: Mutex<Blocks>,
    on_ready: Option<OnReady>,
    lines_parsed: AtomicU64,
    stopped: AtomicBool,
}

#[derive(Default)]
struct Blocks {
    by_id: HashMap<u64, Block>,
    ready: Vec<u64>,
    /// Counts requests, to find the block that was not asked for the longest time.
    clock: u64,
    weight_bytes: usize,
    limit_bytes: usize,
    /// Blocks whose grammar did not end.
    plain: HashSet<u64>,
}

/// A block: the source that was handed over, and the lines that are ready.
struct Block {
    language: String,
    source: String,
    closed: bool,
    lines: Arc<Vec<CodeLine>>,
    /// Results for an older source of this block carry another number.
    generation: u64,
    last_asked: u64,
    weight_bytes: usize,
}

/// Work on the lines of a block.
#[derive(Clone, Copy)]
enum Work {
    Colour(&'static Language),
    /// Draws a Mermaid source in at most this many columns; the lines are those of the drawing.
    Draw(usize),
}

enum Job {
    Lines {
        block: u64,
        generation: u64,
        kind: Work,
        text: String,
        closed: bool,
    },
    Forget(u64),
}

impl Highlighter {
    /// Creates a highlighter. `on_ready` is called once when lines become ready, and again only after
    /// [`Highlighter::take_ready`].
    pub fn new(on_ready: Option<OnReady>) -> Self {
        Self {
            shared: Arc::new(Shared {
                blocks: Mutex::new(Blocks {
                    limit_bytes: LIMIT_BYTES,
                    ..Blocks::default()
                }),
                on_ready,
                lines_parsed: AtomicU64::new(0),
                stopped: AtomicBool::new(false),
            }),
            crew: Mutex::default(),
        }
    }

    /// The blocks that got new lines since the last call.
    pub fn take_ready(&self) -> Vec<u64> {
        std::mem::take(&mut self.shared.lock().ready)
    }

    /// Lines that went through a grammar since the start.
    #[cfg(test)]
    pub fn lines_parsed(&self) -> u64 {
        self.shared.lines_parsed.load(Ordering::Relaxed)
    }

    /// Drops the source and the lines of `block`.
    #[cfg(test)]
    pub fn forget(&self, block: u64) {
        if self.shared.lock().remove(block) {
            self.send(Job::Forget(block));
        }
    }

    /// Returns the approximate size of the stored lines, in bytes.
    #[cfg(test)]
    pub fn weight_bytes(&self) -> usize {
        self.shared.lock().weight_bytes
    }

    fn send(&self, job: Job) {
        let mut crew = self.crew.lock().unwrap_or_else(PoisonError::into_inner);
        if crew.jobs.is_none() && crew.given_up < MOST_GIVEN_UP {
            crew.jobs = self.start(&crew.beat);
        }
        crew.sent_ms = elapsed_ms();
        if let Some(jobs) = &crew.jobs {
            // It fails only when the thread is gone, and then code stays plain.
            let _ = jobs.send(job);
        }
    }

    /// Starts a thread for one worker. `None` if that fails; then code stays plain.
    fn start(&self, beat: &Arc<Beat>) -> Option<Sender<Job>> {
        let (sender, receiver) = mpsc::channel();
        let (shared, beat) = (Arc::clone(&self.shared), Arc::clone(beat));
        std::thread::Builder::new()
            .name("highlight".to_owned())
            .spawn(move || Worker::default().run(&receiver, &shared, &beat))
            .ok()
            .map(|_| sender)
    }

    /// Returns the time by which [`Highlighter::look_after`] must be called if nobody asks for code before. `None`
    /// while there is no work.
    pub fn look_at(&self) -> Option<Instant> {
        let crew = self.crew.lock().unwrap_or_else(PoisonError::into_inner);
        let since = match crew.beat.line_since.load(Ordering::Relaxed) {
            // The thread may not have begun with what it was handed last.
            0 => Some(crew.sent_ms).filter(|&it| it > 0 && elapsed_ms() < it + LONGEST_LINE_MS)?,
            since => since,
        };
        let at = (since + LONGEST_LINE_MS).next_multiple_of(LOOK_MS);
        Some(epoch() + Duration::from_millis(at))
    }

    /// Abandons a thread that has spent too long on one line; returns true if it did. Another thread starts its
    /// unfinished work anew when that is asked for again.
    pub fn look_after(&self) -> bool {
        let mut crew = self.crew.lock().unwrap_or_else(PoisonError::into_inner);
        let since = crew.beat.line_since.load(Ordering::Relaxed);
        if since == 0 || elapsed_ms() < since + LONGEST_LINE_MS {
            return false;
        }
        let stuck = crew.beat.block.load(Ordering::Relaxed);
        crew.beat.retired.store(true, Ordering::Relaxed);
        crew.jobs = None;
        crew.beat = Arc::default();
        crew.given_up += 1;
        drop(crew);
        let mut blocks = self.shared.lock();
        blocks.plain.insert(stuck);
        blocks.begin_anew();
        true
    }
}

/// When time began to be counted here.
fn epoch() -> Instant {
    static EPOCH: OnceLock<Instant> = OnceLock::new();
    *EPOCH.get_or_init(Instant::now)
}

/// Milliseconds since then, from 1 on.
fn elapsed_ms() -> u64 {
    epoch().elapsed().as_millis() as u64 + 1
}

impl Drop for Highlighter {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Highlighter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Highlighter").finish_non_exhaustive()
    }
}

impl Colours for Highlighter {
    fn code(&self, block: u64, language: &str, source: &str, closed: bool) -> Arc<Vec<CodeLine>> {
        let Some(found) = language_for(language, source) else {
            return Arc::default();
        };
        self.ask(block, language, Work::Colour(found), source, closed)
    }

    fn diagram(&self, block: u64, source: &str, columns: usize) -> Arc<Vec<CodeLine>> {
        // At another width it is another drawing, as code is in another language.
        self.ask(block, &format!("mermaid {columns}"), Work::Draw(columns), source, true)
    }
}

impl Highlighter {
    fn ask(&self, block: u64, language: &str, kind: Work, source: &str, closed: bool) -> Arc<Vec<CodeLine>> {
        self.look_after();
        let mut blocks = self.shared.lock();
        let (lines, job) = blocks.ask(block, language, source, closed);
        let forgotten = blocks.shed(block);
        drop(blocks);
        for block in forgotten {
            self.send(Job::Forget(block));
        }
        if let Some((generation, text)) = job {
            self.send(Job::Lines {
                block,
                generation,
                kind,
                text,
                closed,
            });
        }
        lines
    }
}

/// Returns the language for colouring. `None` for plain text and unknown names.
fn language_for(name: &str, source: &str) -> Option<&'static Language> {
    let found = if name.trim().is_empty() {
        let first = source.split('\n').next().unwrap_or_default();
        language::of_first_line(first)
    } else {
        language::find(name)
    };
    found.filter(|it| !it.grammar.is_empty())
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Blocks> {
        // Nothing that runs under the lock leaves it half done.
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds lines to a block, unless its source was replaced or forgotten in the meantime.
    fn publish(&self, block: u64, generation: u64, lines: Vec<CodeLine>) {
        let mut guard = self.lock();
        let blocks = &mut *guard;
        let Some(entry) = blocks.by_id.get_mut(&block).filter(|it| it.generation == generation) else {
            return;
        };
        let weight: usize = lines.iter().map(weight_bytes).sum();
        entry.weight_bytes += weight;
        blocks.weight_bytes += weight;
        Arc::make_mut(&mut entry.lines).extend(lines);
        let silent = blocks.ready.is_empty();
        if !blocks.ready.contains(&block) {
            blocks.ready.push(block);
        }
        drop(guard);
        if silent && let Some(on_ready) = &self.on_ready {
            on_ready();
        }
    }
}

fn weight_bytes(line: &CodeLine) -> usize {
    // A small allocation costs about 16 bytes beside its content.
    line.iter()
        .map(|it| size_of::<Span>() + it.text.len() + 16)
        .sum::<usize>()
        + 32
}

impl Blocks {
    /// Returns the lines so far, and the generation and text that must be parsed now.
    fn ask(
        &mut self,
        block: u64,
        language: &str,
        source: &str,
        closed: bool,
    ) -> (Arc<Vec<CodeLine>>, Option<(u64, String)>) {
        self.clock += 1;
        let clock = self.clock;
        if self.plain.contains(&block) {
            return (
                self.by_id
                    .get(&block)
                    .map_or_else(Arc::default, |it| Arc::clone(&it.lines)),
                None,
            );
        }
        let source = bounded(source);
        let entry = self.by_id.entry(block).or_insert_with(|| Block {
            language: language.to_owned(),
            source: String::new(),
            closed: false,
            lines: Arc::default(),
            generation: clock,
            last_asked: clock,
            weight_bytes: 0,
        });
        entry.last_asked = clock;
        let grown = source.strip_prefix(entry.source.as_str());
        let replaced = match grown {
            // While it grows, a source may be shorter by its open line only, which was not handed over.
            None => true,
            Some(more) => entry.language != language || (entry.closed && !more.is_empty()),
        };
        let mut more = grown.unwrap_or_default();
        if replaced {
            self.weight_bytes -= entry.weight_bytes;
            language.clone_into(&mut entry.language);
            entry.source.clear();
            entry.closed = false;
            entry.lines = Arc::default();
            entry.generation = clock;
            entry.weight_bytes = 0;
            more = source;
        }
        if !closed {
            let complete = more.rfind('\n').map_or(0, |it| it + 1);
            more = more.get(..complete).unwrap_or_default();
        }
        let lines = Arc::clone(&entry.lines);
        if more.is_empty() && (!closed || entry.closed) {
            return (lines, None);
        }
        entry.source.push_str(more);
        entry.closed = closed;
        entry.weight_bytes += more.len();
        self.weight_bytes += more.len();
        (lines, Some((entry.generation, more.to_owned())))
    }

    /// Removes the blocks that were not asked for the longest time until the rest fits; `keep` stays. Returns the
    /// removed ones.
    fn shed(&mut self, keep: u64) -> Vec<u64> {
        let mut gone = Vec::new();
        while self.weight_bytes > self.limit_bytes {
            let others = self.by_id.iter().filter(|(id, _)| **id != keep);
            let Some(oldest) = others.min_by_key(|(_, it)| it.last_asked).map(|(id, _)| *id) else {
                break;
            };
            self.remove(oldest);
            gone.push(oldest);
        }
        gone
    }

    /// Resets source that was handed over without a result, so that it is handed over again.
    fn begin_anew(&mut self) {
        self.clock += 1;
        for (id, entry) in &mut self.by_id {
            let is_complete = entry.closed && entry.lines.len() >= entry.source.lines().count();
            if is_complete {
                continue;
            }
            self.weight_bytes -= entry.weight_bytes;
            entry.weight_bytes = 0;
            entry.source.clear();
            entry.closed = false;
            entry.generation = self.clock;
            if !self.plain.contains(id) {
                entry.lines = Arc::default();
            }
        }
    }

    fn remove(&mut self, block: u64) -> bool {
        let Some(entry) = self.by_id.remove(&block) else {
            return false;
        };
        self.weight_bytes -= entry.weight_bytes;
        self.ready.retain(|&it| it != block);
        true
    }
}

/// The part of a source that is coloured: its first lines.
fn bounded(source: &str) -> &str {
    let mut end = source.len();
    if end > MOST_BYTES {
        let within = source.as_bytes().get(..MOST_BYTES).unwrap_or_default();
        end = within.iter().rposition(|&it| it == b'\n').map_or(0, |it| it + 1);
    }
    let source = source.get(..end).unwrap_or_default();
    match source.match_indices('\n').nth(MOST_LINES - 1) {
        Some((last, _)) => source.get(..=last).unwrap_or_default(),
        None => source,
    }
}

/// The background thread's side.
#[derive(Default)]
struct Worker {
    blocks: HashMap<u64, Growing>,
    /// Blocks that have lines to parse, in the order of their turns.
    turns: VecDeque<u64>,
}

struct Growing {
    generation: u64,
    parser: Parser,
    /// Source to parse, from `at` on.
    text: String,
    at: usize,
    closed: bool,
}

impl Worker {
    fn run(mut self, jobs: &Receiver<Job>, shared: &Shared, beat: &Beat) {
        while !shared.stopped.load(Ordering::Relaxed) && !beat.retired.load(Ordering::Relaxed) {
            if self.turns.is_empty() {
                match jobs.recv() {
                    Ok(job) => self.take(job),
                    Err(_) => return,
                }
            }
            while let Ok(job) = jobs.try_recv() {
                self.take(job);
            }
            self.turn(shared, beat);
        }
    }

    fn take(&mut self, job: Job) {
        let (block, generation, kind, text, closed) = match job {
            Job::Forget(block) => {
                self.blocks.remove(&block);
                return;
            }
            Job::Lines {
                block,
                generation,
                kind,
                text,
                closed,
            } => (block, generation, kind, text, closed),
        };
        let start = || Growing {
            generation,
            parser: match kind {
                Work::Colour(language) => Parser::new(language, &text),
                Work::Draw(columns) => Parser::Diagram(columns),
            },
            text: String::new(),
            at: 0,
            closed: false,
        };
        let growing = self.blocks.entry(block).or_insert_with(start);
        if growing.generation != generation {
            *growing = start();
        }
        growing.text.push_str(&text);
        growing.closed |= closed;
        if !self.turns.contains(&block) {
            self.turns.push_back(block);
        }
    }

    /// Parses some lines of the next block.
    fn turn(&mut self, shared: &Shared, beat: &Beat) {
        let Some(block) = self.turns.pop_front() else { return };
        let Some(growing) = self.blocks.get_mut(&block) else {
            return;
        };
        let mut lines = Vec::new();
        while lines.len() < SLICE_LINES && !shared.stopped.load(Ordering::Relaxed) {
            let rest = growing.text.get(growing.at..).unwrap_or_default();
            if rest.is_empty() {
                break;
            }
            beat.block.store(block, Ordering::Relaxed);
            beat.line_since.store(elapsed_ms(), Ordering::Relaxed);
            if let Parser::Diagram(columns) = growing.parser {
                lines = diagram(rest, columns);
                growing.at = growing.text.len();
            } else {
                let line = rest.split_inclusive('\n').next().unwrap_or_default();
                lines.push(growing.parser.line(line.strip_suffix('\n').unwrap_or(line)));
                growing.at += line.len();
            }
            beat.line_since.store(0, Ordering::Relaxed);
            shared.lines_parsed.fetch_add(1, Ordering::Relaxed);
        }
        let generation = growing.generation;
        if growing.at < growing.text.len() {
            self.turns.push_back(block);
        } else if growing.closed {
            // Only the lines are kept of a finished block.
            self.blocks.remove(&block);
        } else {
            growing.text = String::new();
            growing.at = 0;
        }
        if !lines.is_empty() {
            shared.publish(block, generation, lines);
        }
    }
}

/// Returns the lines of a drawing, or of the source if it cannot be drawn.
fn diagram(source: &str, columns: usize) -> Vec<CodeLine> {
    let drawn = budget::within(MOST_LINE_BYTES, || mermaid::draw(source, columns));
    let text = drawn.as_deref().unwrap_or(source);
    text.lines().map(|it| Parser::Plain.line(it)).collect()
}

/// Returns the coloured lines of an entire source, for export and tests. After a line that takes too long all lines
/// are plain.
pub fn code_lines(language: &str, source: &str) -> Vec<CodeLine> {
    let Some(found) = language_for(language, source) else {
        return Vec::new();
    };
    let source = bounded(source);
    LazyLock::force(&SYNTAXES);
    let (send, lines) = mpsc::channel();
    let text = source.to_owned();
    // On a thread of its own, because it cannot be stopped; without one, code stays plain.
    let started = std::thread::Builder::new().name("highlight".to_owned()).spawn(move || {
        let mut parser = Parser::new(found, &text);
        for line in text.lines() {
            if send.send(parser.line(line)).is_err() {
                return;
            }
        }
    });
    if let Err(error) = started {
        tracing::warn!(%error, "code stays plain");
    }
    let mut is_there = true;
    source
        .lines()
        .map(|line| {
            let coloured = if is_there {
                lines.recv_timeout(PATIENCE).ok()
            } else {
                None
            };
            is_there = coloured.is_some();
            coloured.unwrap_or_else(|| Parser::Plain.line(line))
        })
        .collect()
}

/// Grammars, loaded by the first block that needs them; regular expressions are compiled on first use.
static SYNTAXES: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// The state of one block between its lines.
enum Parser {
    Code(Box<Grammar>),
    /// Commands after prompts; each is parsed from the start.
    Console,
    /// A Mermaid source, drawn as a whole in at most this many columns.
    Diagram(usize),
    Plain,
}

struct Grammar {
    state: ParseState,
    stack: ScopeStack,
    /// Meaning of each scope met so far; `None` means that of the scope around it.
    meanings: HashMap<Scope, Option<Meaning>>,
    line: String,
}

impl Parser {
    /// `start` is how the source begins.
    fn new(language: &'static Language, start: &str) -> Self {
        if language.tag == language::CONSOLE {
            return Self::Console;
        }
        // PHP outside of `<?php` is HTML, but in a fence people write bare statements.
        let bare = language.grammar == "PHP" && !start.trim_start().starts_with('<');
        let grammar = if bare { "PHP Source" } else { language.grammar };
        Grammar::new(grammar).map_or(Self::Plain, |it| Self::Code(Box::new(it)))
    }

    /// The spans of one line that has no line end.
    fn line(&mut self, line: &str) -> CodeLine {
        let mut line = Sanitized::new(line);
        if line.contains('\n') {
            // A separator of Unicode's own becomes a line end when it is cleaned; inside a line of code it is a blank.
            line = Sanitized::from(line.replace('\n', " "));
        }
        if line.len() > LONGEST_LINE_BYTES {
            return plain(&line);
        }
        match self {
            Self::Plain | Self::Diagram(_) => plain(&line),
            Self::Console => console(&line),
            Self::Code(grammar) => grammar.line(&line, 0).unwrap_or_else(|| {
                *self = Self::Plain;
                plain(&line)
            }),
        }
    }
}

fn plain(line: &Sanitized) -> CodeLine {
    if line.is_empty() {
        return CodeLine::from([]);
    }
    CodeLine::from([Span::new(line.as_str(), Role::Text)])
}

/// A line of a session: a prompt and a command, or output.
fn console(line: &Sanitized) -> CodeLine {
    let prompt = ["$ ", "% ", "> ", "# ", "❯ ", "➜ "].iter().find_map(|sign| {
        let at = line.find(sign)?;
        // Something like `user@host:~/work` may stand before the sign, prose may not.
        let before = line.get(..at).unwrap_or_default();
        let named = before.is_empty() || (before.contains(['@', '~']) && !before.trim().contains(' '));
        named.then_some(at + sign.len())
    });
    let coloured = prompt.and_then(|at| Grammar::new(language::find(language::CONSOLE)?.grammar)?.line(line, at));
    coloured.unwrap_or_else(|| plain(line))
}

impl Grammar {
    fn new(name: &str) -> Option<Self> {
        let syntax = SYNTAXES.find_syntax_by_name(name)?;
        Some(Self {
            state: ParseState::new(syntax),
            stack: ScopeStack::new(),
            meanings: HashMap::new(),
            line: String::new(),
        })
    }

    /// The spans of `line`; its first `skip` bytes are a prompt. `None` when the grammar is broken.
    fn line(&mut self, line: &Sanitized, skip: usize) -> Option<CodeLine> {
        self.line.clear();
        self.line.push_str(line.get(skip..)?);
        self.line.push('\n');
        let (state, line_end) = (&mut self.state, &self.line);
        let steps = budget::within(MOST_LINE_BYTES, || state.parse_line(line_end, &SYNTAXES)).ok()?;
        let mut pieces = Pieces {
            line,
            start: 0,
            end: skip,
            role: Role::Dim,
            spans: Vec::new(),
        };
        for (at, step) in steps {
            self.piece(&mut pieces, skip + at);
            self.stack.apply(&step).ok()?;
        }
        self.piece(&mut pieces, line.len());
        pieces.flush();
        Some(CodeLine::from(pieces.spans))
    }

    /// Adds the text from the last step to `to` as one token.
    fn piece(&mut self, pieces: &mut Pieces<'_>, to: usize) {
        let to = to.min(pieces.line.len());
        let token = pieces.line.get(pieces.end..to).unwrap_or_default();
        if token.is_empty() {
            return;
        }
        let blank = token.trim().is_empty();
        let role = if blank && pieces.end > 0 {
            pieces.role
        } else {
            self.role(token)
        };
        pieces.push(to, role);
    }

    fn role(&mut self, token: &str) -> Role {
        let meanings = &mut self.meanings;
        let mut scopes = self.stack.as_slice().iter().rev().take(DEEPEST_LOOK);
        let meaning = scopes.find_map(|&it| *meanings.entry(it).or_insert_with(|| meaning(it)));
        match meaning {
            Some(Meaning::Is(role)) => role,
            Some(Meaning::Operator) if token.chars().all(char::is_alphabetic) => Role::Keyword,
            None | Some(Meaning::Operator) => Role::Text,
            Some(Meaning::Storage) if PRIMITIVES.contains(&token.trim()) => Role::Type,
            Some(Meaning::Storage) => Role::Keyword,
            Some(Meaning::String) => {
                let key = scopes.take(3).any(|&it| KEYS.iter().any(|key| key.is_prefix_of(it)));
                if key { Role::Type } else { Role::String }
            }
        }
    }
}

/// Spans of one line so far; neighbours with one role are joined.
struct Pieces<'a> {
    line: &'a Sanitized,
    start: usize,
    end: usize,
    role: Role,
    spans: Vec<Span>,
}

impl Pieces<'_> {
    fn push(&mut self, to: usize, role: Role) {
        if role != self.role {
            self.flush();
            self.role = role;
        }
        self.end = to;
    }

    fn flush(&mut self) {
        if self.start < self.end {
            let text = self.line.slice(self.start..self.end);
            self.spans.push(Span::new(text, self.role));
        }
        self.start = self.end;
    }
}

#[derive(Clone, Copy)]
enum Meaning {
    Is(Role),
    /// Symbols are plain, words such as `and` are keywords.
    Operator,
    /// `let` is a keyword, `u8` a type; grammars give both the same scope.
    Storage,
    /// A string, unless it is the key of a mapping.
    String,
}

/// Returns the meaning of a scope: that of the longest entry in the table that it begins with. `None` if there is
/// none.
fn meaning(scope: Scope) -> Option<Meaning> {
    let fitting = MEANINGS.iter().filter(|(prefix, _)| prefix.is_prefix_of(scope));
    fitting.max_by_key(|(prefix, _)| prefix.len()).map(|it| it.1)
}

/// Beginnings of scopes with their meanings.
static MEANINGS: LazyLock<Vec<(Scope, Meaning)>> = LazyLock::new(|| {
    let meaning = |word| {
        Some(Meaning::Is(match word {
            "operator" => return Some(Meaning::Operator),
            "storage" => return Some(Meaning::Storage),
            "a-string" => return Some(Meaning::String),
            "comment" => Role::Comment,
            "number" => Role::Number,
            "string" => Role::String,
            "keyword" => Role::Keyword,
            "type" => Role::Type,
            "function" => Role::Function,
            "added" => Role::Added,
            "removed" => Role::Removed,
            "text" => Role::Text,
            _ => return None,
        }))
    };
    let rows = include_str!("../../assets/scopes.txt").lines();
    let rows = rows.filter_map(|it| it.split_once(' '));
    rows.filter_map(|(scope, word)| Some((Scope::new(scope).ok()?, meaning(word)?)))
        .collect()
});

/// Scopes in which a string is the key of a mapping.
static KEYS: LazyLock<Vec<Scope>> = LazyLock::new(|| {
    let names = [
        "meta.mapping.key",
        "meta.structure.dictionary.key",
        "meta.object-literal.key",
    ];
    names.iter().filter_map(|it| Scope::new(it).ok()).collect()
});

/// Built-in types that grammars call storage.
const PRIMITIVES: &[&str] = &[
    "bool", "boolean", "byte", "char", "double", "f32", "f64", "float", "i8", "i16", "i32", "i64", "i128", "int",
    "int8", "int16", "int32", "int64", "int8_t", "int16_t", "int32_t", "int64_t", "isize", "long", "number", "object",
    "short", "signed", "size_t", "str", "string", "u8", "u16", "u32", "u64", "u128", "uint", "uint8", "uint16",
    "uint32", "uint64", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "unsigned", "usize", "void", "error", "rune",
    "any", "unknown", "never",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::{Condvar, atomic::AtomicUsize};

    /// The role of the span that holds `token`.
    fn role_of(lines: &[CodeLine], token: &str) -> Role {
        let mut spans = lines.iter().flat_map(|it| it.iter());
        let found = spans.find(|it| it.text.trim() == token);
        found.unwrap_or_else(|| panic!("no span {token:?} in {lines:?}")).role
    }

    #[test]
    fn tokens_have_the_role_they_play() {
        use Role::{Added, Comment, Function, Keyword, Number, Removed, String, Type};
        type Tokens = &'static [(&'static str, Role)];
        let cases: &[(&str, &str, Tokens)] = &[
            (
                "rust",
                "pub fn main() {\n    let x: u32 = 42; // why\n    call(\"text\");\n}\nstruct Point;\n",
                &[
                    ("main", Function),
                    ("u32", Type),
                    ("42", Number),
                    ("// why", Comment),
                    ("\"text\"", String),
                    ("Point", Type),
                    ("let", Keyword),
                ],
            ),
            (
                "python",
                "import os\ndef run(a):\n    # note\n    return None if not a else 'x'\nclass Thing(Base): pass\n",
                &[
                    ("run", Function),
                    ("import", Keyword),
                    ("# note", Comment),
                    ("return", Keyword),
                    ("None", Number),
                    ("'x'", String),
                    ("Thing", Type),
                ],
            ),
            (
                "ts",
                "export const a: number = 1;\ninterface Box { name: string }\nfunction go() { return `a ${b} c`; }\n",
                &[
                    ("1", Number),
                    ("number", Type),
                    ("Box", Type),
                    ("go", Function),
                    ("return", Keyword),
                    ("b", Role::Text),
                ],
            ),
            (
                "json",
                "{\"key\": \"value\", \"n\": 1.5, \"t\": true}\n",
                &[
                    ("\"key\"", Type),
                    ("\"value\"", String),
                    ("1.5", Number),
                    ("true", Number),
                ],
            ),
            (
                "yaml",
                "name: value # note\nlist:\n  - 1\n",
                &[("name", Type), ("# note", Comment), ("1", Number)],
            ),
            (
                "toml",
                "[table]\nkey = \"value\"\n",
                &[("key", Type), ("\"value\"", String)],
            ),
            (
                "sh",
                "if [ -f x ]; then echo \"hi\"; fi # done\n",
                &[
                    ("if", Keyword),
                    ("echo", Function),
                    ("\"hi\"", String),
                    ("# done", Comment),
                ],
            ),
            (
                "go",
                "func main() {\n\treturn nil\n}\n",
                &[("main", Function), ("func", Keyword), ("nil", Number)],
            ),
            (
                "c",
                "int main(void) { return 0; } /* c */\n",
                &[
                    ("int", Type),
                    ("main", Function),
                    ("return", Keyword),
                    ("0", Number),
                    ("/* c */", Comment),
                ],
            ),
            (
                "html",
                "<a href=\"x\">t</a>\n",
                &[("href", Type), ("\"x\"", String), (">t</", Role::Text)],
            ),
            (
                "css",
                "p { color: red; width: 5px }\n",
                &[("color", Type), ("red", Number)],
            ),
            (
                "sql",
                "SELECT a FROM t WHERE b = 'x';\n",
                &[("SELECT", Keyword), ("'x'", String)],
            ),
            (
                "diff",
                "@@ -1 +1 @@\n-old\n+new\n same\n",
                &[("-old", Removed), ("+new", Added), ("same", Role::Text)],
            ),
            (
                "php",
                "function go() { return 1; }\n",
                &[("go", Function), ("return", Keyword), ("1", Number)],
            ),
            (
                "console",
                "$ echo \"hi\"\nhi \"there\"\n",
                &[
                    ("$", Role::Dim),
                    ("echo", Function),
                    ("\"hi\"", String),
                    ("hi \"there\"", Role::Text),
                ],
            ),
            ("", "#!/bin/sh\necho 'x'\n", &[("'x'", String)]),
        ];
        for (language, source, expected) in cases {
            let lines = code_lines(language, source);
            for (token, role) in *expected {
                assert_eq!(role_of(&lines, token), *role, "{token:?} in {language}: {lines:?}");
            }
        }
    }

    #[test]
    fn every_language_has_a_grammar() {
        for it in language::all() {
            let known = it.grammar.is_empty() || SYNTAXES.find_syntax_by_name(it.grammar).is_some();
            assert!(known, "{}", it.tag);
        }
    }

    #[test]
    fn plain_and_unknown_languages_have_no_colours() {
        for language in ["text", "plaintext", "nonsense", ""] {
            assert_eq!(
                code_lines(language, "fn main() {}\n"),
                Vec::<CodeLine>::new(),
                "{language}"
            );
        }
    }

    fn texts(lines: &[CodeLine]) -> Vec<String> {
        let text = |line: &CodeLine| line.iter().map(|it| it.text.as_str()).collect();
        lines.iter().map(text).collect()
    }

    #[test]
    fn long_lines_and_endless_blocks_stay_plain() {
        let long = format!("let a = \"{}\";", "x".repeat(LONGEST_LINE_BYTES));
        let lines = code_lines("rust", &format!("{long}\nlet b = 1;\n"));
        assert_eq!(*lines[0], [Span::new(long.as_str(), Role::Text)]);
        assert_eq!(role_of(&lines, "1"), Role::Number);
        let endless = "let b = 1;\n".repeat(MOST_LINES + 5);
        assert_eq!(code_lines("rust", &endless).len(), MOST_LINES);
    }

    /// A highlighter, and a way to wait until it has something new.
    struct Watched {
        highlighter: Highlighter,
        calls: Arc<(Mutex<usize>, Condvar)>,
    }

    impl Watched {
        fn new() -> Self {
            let calls = Arc::new((Mutex::new(0), Condvar::new()));
            let heard = Arc::clone(&calls);
            let on_ready: OnReady = Arc::new(move || {
                *heard.0.lock().unwrap() += 1;
                heard.1.notify_all();
            });
            Self {
                highlighter: Highlighter::new(Some(on_ready)),
                calls,
            }
        }

        /// Asks until `count` lines are ready.
        fn wait(&self, block: u64, language: &str, source: &str, closed: bool, count: usize) -> Arc<Vec<CodeLine>> {
            self.wait_for(count, |it| it.code(block, language, source, closed))
        }

        fn wait_for(&self, count: usize, ask: impl Fn(&Highlighter) -> Arc<Vec<CodeLine>>) -> Arc<Vec<CodeLine>> {
            for _ in 0..2000 {
                let before = *self.calls.0.lock().unwrap();
                self.highlighter.take_ready();
                let lines = ask(&self.highlighter);
                if lines.len() >= count {
                    return lines;
                }
                let calls = self.calls.0.lock().unwrap();
                let silent = |now: &mut usize| *now == before;
                drop(
                    self.calls
                        .1
                        .wait_timeout_while(calls, Duration::from_millis(20), silent),
                );
            }
            panic!("{count} lines did not become ready");
        }
    }

    #[test]
    fn a_growing_block_is_parsed_once() {
        let watched = Watched::new();
        let mut source = String::new();
        for i in 0..200 {
            for piece in ["let a", " = \"b\"", "; // c\n"] {
                source.push_str(piece);
                watched.highlighter.code(7, "rust", &source, false);
            }
            if i % 50 == 0 {
                watched.wait(7, "rust", &source, false, i + 1);
            }
        }
        source.push_str("let end");
        let lines = watched.wait(7, "rust", &source, true, 201);
        assert_eq!(texts(&lines), source.lines().collect::<Vec<_>>());
        assert_eq!(*lines, code_lines("rust", &source));
        for _ in 0..50 {
            watched.highlighter.code(7, "rust", &source, true);
        }
        assert_eq!(watched.highlighter.lines_parsed(), 201);
    }

    #[test]
    fn an_open_line_is_left_to_the_caller() {
        let watched = Watched::new();
        let lines = watched.wait(1, "rust", "let a = 1;\nlet b", false, 1);
        assert_eq!(texts(&lines), ["let a = 1;"]);
        let lines = watched.wait(1, "rust", "let a = 1;\nlet b", true, 2);
        assert_eq!(texts(&lines), ["let a = 1;", "let b"]);
    }

    #[test]
    fn a_replaced_source_starts_again() {
        let watched = Watched::new();
        watched.wait(1, "rust", "/* a\nb\n", false, 2);
        let lines = watched.wait(1, "rust", "let b = 2;\n", true, 1);
        assert_eq!(*lines, code_lines("rust", "let b = 2;\n"));
        let lines = watched.wait(1, "python", "let b = 2;\n", true, 1);
        assert_eq!(*lines, code_lines("python", "let b = 2;\n"));
        // Longer than what was said to be the end.
        let lines = watched.wait(1, "python", "let b = 2;\nx = 3\n", true, 2);
        assert_eq!(texts(&lines), ["let b = 2;", "x = 3"]);
    }

    #[test]
    fn a_diagram_is_drawn_on_the_thread_and_anew_at_another_width() {
        let watched = Watched::new();
        let source = "graph LR\nA[Cart] --> B[Total]\n";
        assert_eq!(
            watched.highlighter.diagram(1, source, 80).len(),
            0,
            "it is not waited for"
        );
        let lines = watched.wait_for(3, |it| it.diagram(1, source, 80));
        assert_eq!(texts(&lines).join("\n") + "\n", mermaid::draw(source, 80).unwrap());
        assert!(texts(&lines).concat().contains("─▸"));
        // Too narrow for it: the source.
        let lines = watched.wait_for(2, |it| it.diagram(1, source, 12));
        assert_eq!(texts(&lines), ["graph LR", "A[Cart] --> B[Total]"]);
    }

    #[test]
    fn ready_blocks_are_named_once_and_the_call_is_not_repeated() {
        let watched = Watched::new();
        watched.highlighter.code(1, "rust", "a\n", true);
        watched.highlighter.code(2, "rust", "b\n", true);
        let waiting = AtomicUsize::new(0);
        while watched.highlighter.lines_parsed() < 2 || watched.highlighter.shared.lock().ready.len() < 2 {
            assert!(
                waiting.fetch_add(1, Ordering::Relaxed) < 20_000,
                "the lines did not become ready"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(*watched.calls.0.lock().unwrap(), 1);
        let mut ready = watched.highlighter.take_ready();
        ready.sort_unstable();
        assert_eq!(ready, [1, 2]);
        assert_eq!(watched.highlighter.take_ready(), Vec::<u64>::new());
    }

    #[test]
    fn what_was_not_asked_for_longest_goes_first() {
        let watched = Watched::new();
        let source = "let a = 1;\n".repeat(50);
        watched.wait(1, "rust", &source, true, 50);
        let one = watched.highlighter.weight_bytes();
        watched.highlighter.shared.lock().limit_bytes = one * 5 / 2;
        for block in 2..10 {
            watched.wait(block, "rust", &source, true, 50);
            watched.highlighter.code(block, "rust", &source, true);
        }
        assert!(watched.highlighter.weight_bytes() <= one * 3);
        let kept: Vec<u64> = watched.highlighter.shared.lock().by_id.keys().copied().collect();
        assert!(kept.contains(&9) && !kept.contains(&1), "{kept:?}");
        // What went is computed again when it is asked for again.
        watched.wait(1, "rust", &source, true, 50);
    }

    #[test]
    fn a_line_that_never_ends_costs_its_block_the_colours_and_nobody_else() {
        // A soup in which the grammar of Svelte pushes and pops for ever.
        let hostile = concat!(
            "? typename//^!#' \'\'\'var{foo=beginfunction ?>| ~ ]async </script>\t>#{ enum =end {?end  <a href=</script>",
            "begin //! +</a>|typename] ]:: {<style>from*!]<?php ...</a>;(>3.14type< =end \\\n /*?> \n!+/*.... template ",
            "</script>x\\<%}}\"#class\n"
        );
        let highlighter = Highlighter::new(None);
        assert_eq!(highlighter.look_at(), None, "there is no work");
        highlighter.code(1, "svelte", hostile, true);
        highlighter.code(2, "rust", "fn main() {}\n", true);
        // Nobody asks for code any more: the answer is complete.
        let mut is_given_up = false;
        while let Some(at) = highlighter.look_at() {
            std::thread::sleep(at.saturating_duration_since(Instant::now()));
            if highlighter.look_after() {
                is_given_up = true;
                break;
            }
        }
        assert!(is_given_up);
        // Whoever cannot go on without the colours does without.
        let lines = code_lines("svelte", &format!("let a = 1;\n{hostile}let b = 2;\n"));
        assert_eq!(*lines[lines.len() - 1], [Span::new("let b = 2;", Role::Text)]);
        let counted = hostile.lines().count() + 2;
        assert_eq!(texts(&lines).len(), counted);
        highlighter.code(1, "svelte", hostile, true);
        let began = Instant::now();
        while highlighter.code(2, "rust", "fn main() {}\n", true).is_empty() {
            assert!(began.elapsed().as_secs() < 120, "nobody took over");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn the_thread_ends_with_its_highlighter() {
        let watched = Watched::new();
        watched.wait(1, "rust", "let a = 1;\n", false, 1);
        let shared = Arc::downgrade(&watched.highlighter.shared);
        drop(watched);
        for _ in 0..20_000 {
            if shared.strong_count() == 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        panic!("the thread still holds the blocks");
    }

    #[test]
    fn a_forgotten_block_weighs_nothing() {
        let watched = Watched::new();
        watched.wait(1, "rust", "let a = 1;\n", true, 1);
        watched.highlighter.forget(1);
        assert_eq!(watched.highlighter.weight_bytes(), 0);
    }

    #[test]
    fn a_large_block_does_not_hold_up_a_small_one() {
        let highlighter = Highlighter::new(None);
        let shared = &*highlighter.shared;
        let mut worker = Worker::default();
        for (block, source) in [
            (1, "let a = vec![1, 2, 3]; // comment\n".repeat(2000)),
            (2, "let b = 1;\n".to_owned()),
        ] {
            let (_, job) = shared.lock().ask(block, "rust", &source, true);
            let (generation, text) = job.expect("a new block has lines to parse");
            worker.take(Job::Lines {
                block,
                generation,
                kind: Work::Colour(language::find("rust").expect("rust is known")),
                text,
                closed: true,
            });
        }
        worker.turn(shared, &Beat::default());
        worker.turn(shared, &Beat::default());
        assert_eq!(highlighter.take_ready(), [1, 2]);
        assert_eq!(highlighter.lines_parsed(), SLICE_LINES as u64 + 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn spans_make_up_the_line(
            language in proptest::sample::select(vec!["rust", "python", "ts", "html", "yaml", "md", "console", "php", "c"]),
            source in "([a-z0-9 \t\"'`<>/*#{}()\\[\\]$:;=.\u{e4}\u{4e16}-]{0,30}\n){0,12}"
        ) {
            let lines = code_lines(language, &source);
            let clean = Sanitized::new(&source);
            prop_assert_eq!(texts(&lines), clean.lines().collect::<Vec<_>>());
        }

        #[test]
        fn hostile_source_is_only_cleaned(source in "\\PC*|[a\u{2028}\u{2029}\u{85}\r\n\u{1b}]{0,9}") {
            for line in code_lines("rust", &source) {
                prop_assert!(line.iter().all(|it| !it.text.contains(|c: char| c.is_control() && c != '\t')));
            }
        }
    }
}
