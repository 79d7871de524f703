//! Vim's keys for a draft: normal, insert and visual mode, operators with motions and text objects, counts, dot.
//!
//! Pure: keys and a draft go in. It takes only what it knows; Enter, Tab and everything with Ctrl but Ctrl+R stay the
//! composer's own, so that a message is sent as always.

mod motion;

use std::ops::Range;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use self::motion::{
    end_before, find, inclusive, last_of_word, line_number, lines, next_word, object, paragraph, partner, to, word_end,
    word_start,
};
use super::draft::{CLOSE, Class, Draft, TextPosition, is_private};

/// Most keys of a change that are repeated.
const MOST_KEYS: usize = 10_000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Insert,
    Normal,
    Visual,
    /// Whole lines.
    VisualLine,
}

impl Mode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Normal => "normal",
            Self::Visual => "visual",
            Self::VisualLine => "visual line",
        }
    }
}

/// A command for the text that a motion or an object covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Delete,
    Change,
    Yank,
    Indent,
    Outdent,
    Lower,
    Upper,
    Swap,
}

/// The key that a command waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    /// The letter of `f`, `t`, `F` or `T`.
    Find(char),
    /// The letter behind `r`.
    Replace,
    /// The second letter of a command that begins with `g`.
    G,
    /// The name of a text object behind `i` or `a`.
    Object(char),
    /// The name behind a command that a draft has no use for (registers, marks, recordings): it is not one itself.
    Name(char),
}

/// A range of the text, or whole lines.
struct Span {
    range: Range<TextPosition>,
    lines: bool,
}

/// A command that is half typed.
#[derive(Clone, Copy, Debug, Default)]
struct Pending {
    count: Option<usize>,
    operator: Option<Operator>,
    /// The count before the operator.
    operator_count: Option<usize>,
    wait: Option<Wait>,
}

impl Pending {
    fn is_some(self) -> bool {
        self.operator.is_some() || self.wait.is_some() || self.count.is_some()
    }

    fn take_count(&mut self) -> usize {
        self.count.take().unwrap_or(1)
    }

    fn times(self) -> usize {
        (self.count.unwrap_or(1) * self.operator_count.unwrap_or(1)).min(9999)
    }
}

/// The keys of changes, for the dot.
#[derive(Clone, Debug, Default)]
struct Recording {
    /// Keys of the last change.
    dot: Vec<KeyEvent>,
    /// Keys of the command that is being typed.
    keys: Vec<KeyEvent>,
    is_repeating: bool,
}

impl Recording {
    fn push(&mut self, key: KeyEvent) {
        if !self.is_repeating {
            self.keys.push(key);
        }
    }

    /// Makes the keys that were typed the last change.
    fn keep(&mut self) {
        if !self.is_repeating {
            self.dot = std::mem::take(&mut self.keys);
        }
    }
}

/// The text that is being typed in insert mode.
#[derive(Clone, Debug, Default)]
struct Insertion {
    /// A command began it: all of it is one change.
    is_change: bool,
    /// The number of times that the text is to stand there in the end.
    times: usize,
    /// Each time on a line of its own.
    on_lines: bool,
    keys: Vec<KeyEvent>,
    /// The caret was moved: text that is typed next is a change of its own.
    has_moved: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Vim {
    pub mode: Mode,
    pending: Pending,
    /// The last `f`, `t`, `F` or `T` and its letter.
    found: Option<(char, char)>,
    /// The column that up and down keep to.
    column: Option<usize>,
    recording: Recording,
    insertion: Insertion,
}

impl Vim {
    /// Takes an edit or a motion; returns false for other keys, which are the composer's.
    pub fn key(&mut self, event: KeyEvent, draft: &mut Draft) -> bool {
        let ctrl = event
            .modifiers
            .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER);
        match self.mode {
            Mode::Insert => {
                if event.code == KeyCode::Esc {
                    self.leave_insert(draft);
                    return true;
                }
                let is_break = event.code == KeyCode::Enter || event.code == KeyCode::Char('j') && ctrl;
                let typed = match event {
                    _ if is_break => Some(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)),
                    _ if ctrl => None,
                    event => Some(event),
                };
                // What is typed belongs to the change that began it; a motion ends that, and nothing is typed so often.
                if typed.is_none_or(|it| is_motion(it.code)) {
                    self.insertion = Insertion {
                        is_change: self.insertion.is_change,
                        has_moved: true,
                        ..Insertion::default()
                    };
                    return false;
                }
                let insertion = &mut self.insertion;
                if std::mem::take(&mut insertion.has_moved) && insertion.is_change && !self.recording.is_repeating {
                    self.recording.keys = vec![KeyEvent::new(KeyCode::Char('i'), KeyModifiers::NONE)];
                }
                if let Some(typed) = typed.filter(|_| insertion.is_change && insertion.keys.len() < MOST_KEYS) {
                    insertion.keys.push(typed);
                    self.recording.push(typed);
                }
                false
            }
            Mode::Normal | Mode::Visual | Mode::VisualLine => {
                if ctrl {
                    return match event.code {
                        KeyCode::Char('r') if event.modifiers == KeyModifiers::CONTROL && self.mode == Mode::Normal => {
                            let count = self.pending.take_count();
                            for _ in 0..count {
                                draft.redo();
                            }
                            self.reset();
                            true
                        }
                        _ => false,
                    };
                }
                self.command(event, draft)
            }
        }
    }

    /// Returns true if a command is half typed.
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    fn command(&mut self, event: KeyEvent, draft: &mut Draft) -> bool {
        let letter = match event.code {
            KeyCode::Char(letter) => letter,
            KeyCode::Esc => {
                let was_busy = self.pending.is_some() || self.mode != Mode::Normal;
                self.enter_normal(draft);
                return was_busy;
            }
            // What is half typed is not meant to be sent.
            KeyCode::Enter | KeyCode::Tab if self.pending.is_some() => {
                self.reset();
                return true;
            }
            KeyCode::Left | KeyCode::Backspace => 'h',
            KeyCode::Right => 'l',
            KeyCode::Up if self.mode != Mode::Normal || draft.caret().row > 0 => 'k',
            KeyCode::Down if self.mode != Mode::Normal || draft.line_after(draft.caret()).is_some() => 'j',
            KeyCode::Home => '0',
            KeyCode::End => '$',
            KeyCode::Delete => 'x',
            _ => return false,
        };
        self.recording.push(event);
        draft.end_run();
        if let Some(wait) = self.pending.wait.take() {
            self.waited(wait, letter, draft);
        } else if letter.is_ascii_digit()
            && (letter != '0' || self.pending.count.is_some())
            && event.code == KeyCode::Char(letter)
        {
            let digit = letter as usize - '0' as usize;
            self.pending.count = Some((self.pending.count.unwrap_or(0) * 10 + digit).min(9999));
        } else {
            self.act(letter, draft);
        }
        if self.mode == Mode::Normal && !self.pending.is_some() {
            Self::settle(draft);
        }
        true
    }

    fn act(&mut self, letter: char, draft: &mut Draft) {
        let is_visual = matches!(self.mode, Mode::Visual | Mode::VisualLine);
        match letter {
            'f' | 't' | 'F' | 'T' => self.pending.wait = Some(Wait::Find(letter)),
            'r' => self.pending.wait = Some(Wait::Replace),
            'g' => self.pending.wait = Some(Wait::G),
            'q' | '@' | 'm' | '\'' | '`' | '"' | 'z' | 'Z' => self.pending.wait = Some(Wait::Name(letter)),
            'i' | 'a' if self.pending.operator.is_some() || is_visual => self.pending.wait = Some(Wait::Object(letter)),
            'd' | 'c' | 'y' | '>' | '<' if is_visual => self.on_selection(operator(letter), draft),
            'd' | 'c' | 'y' | '>' | '<' => self.operate(operator(letter), draft),
            'x' | 's' | 'X' | 'D' | 'C' | 'S' | 'Y' | 'u' | 'U' | '~' | 'p' | 'P' | 'J' | 'o' | 'O' if is_visual => {
                self.visual(letter, draft);
            }
            'x' => self.shorthand(Operator::Delete, 'l', draft),
            'X' => self.shorthand(Operator::Delete, 'h', draft),
            's' => self.shorthand(Operator::Change, 'l', draft),
            'D' => self.shorthand(Operator::Delete, '$', draft),
            'C' => self.shorthand(Operator::Change, '$', draft),
            'S' => self.operate_lines(Operator::Change, draft),
            'Y' => self.operate_lines(Operator::Yank, draft),
            'i' => self.insert(draft, |_, at| at),
            'a' => self.insert(draft, |draft, at| draft.after(at).min(draft.line_end(at))),
            'I' => self.insert(draft, Draft::line_text),
            'A' => self.insert(draft, Draft::line_end),
            'o' => self.open(draft, true),
            'O' => self.open(draft, false),
            'v' => self.enter_visual(Mode::Visual, draft),
            'V' => self.enter_visual(Mode::VisualLine, draft),
            'u' => {
                let count = self.pending.take_count();
                for _ in 0..count {
                    draft.undo();
                }
                self.reset();
            }
            // Keys of a change mean other things in a selection (`o` changes ends there, and a typed full stop would then be
            // this command again, for ever), and none is ever repeated while one is.
            '.' if is_visual || self.recording.is_repeating || self.pending.operator.is_some() => self.reset(),
            '.' => self.repeat(draft),
            'p' | 'P' => {
                let count = self.pending.take_count();
                put(draft, letter == 'p', count);
                self.changed();
            }
            'J' => {
                let count = self.pending.take_count().max(2) - 1;
                draft.as_one(|draft| (0..count).for_each(|_| join(draft)));
                self.changed();
            }
            '~' => {
                let count = self.pending.take_count();
                let (start, line_end) = (draft.caret(), draft.line_end(draft.caret()));
                let end = (0..count).fold(start, |at, _| draft.after(at)).min(line_end);
                recase(draft, start..end, Operator::Swap);
                draft.go(end, false);
                self.changed();
            }
            _ => {
                let pending = self.pending;
                let counted = pending.count.is_some() || pending.operator_count.is_some();
                let times = pending.count.unwrap_or(1) * pending.operator_count.unwrap_or(1);
                match self.motion(letter, times, counted, draft) {
                    Some(span) => self.arrive(&span, draft),
                    None => self.reset(),
                }
            }
        }
    }

    fn waited(&mut self, wait: Wait, letter: char, draft: &mut Draft) {
        match wait {
            Wait::Find(kind) => {
                self.found = Some((kind, letter));
                let times = self.pending.times();
                match find(draft, kind, letter, times, false) {
                    Some(at) => self.arrive(&to(draft, at, matches!(kind, 'f' | 't')), draft),
                    None => self.reset(),
                }
            }
            Wait::Replace => {
                let count = self.pending.take_count();
                let span = draft.selection_or_caret(count, self.mode != Mode::Normal);
                if let Some(range) = span {
                    let mut replaced = String::new();
                    let mut at = range.start;
                    while at < range.end {
                        let next = draft.after(at);
                        replaced.push(if next.row > at.row { '\n' } else { letter });
                        at = next;
                    }
                    let start = range.start;
                    draft.replace(range, &replaced);
                    let last = draft.before(draft.caret());
                    draft.go(if self.mode == Mode::Normal { last } else { start }, false);
                }
                self.changed();
                self.mode = Mode::Normal;
            }
            Wait::G => match letter {
                'u' | 'U' | '~' => {
                    let operator = match letter {
                        'u' => Operator::Lower,
                        'U' => Operator::Upper,
                        _ => Operator::Swap,
                    };
                    if self.mode == Mode::Normal {
                        self.operate(operator, draft);
                    } else {
                        self.on_selection(operator, draft);
                    }
                }
                'g' | 'e' | 'E' | '_' => {
                    let counted = self.pending.count.is_some();
                    let times = self.pending.times();
                    let span = match letter {
                        'g' => lines(draft, line_number(draft, if counted { times } else { 1 })),
                        '_' => {
                            let start = draft.caret().line_start();
                            let last = start.right(draft.line(start.row).trim_end().len());
                            to(draft, draft.before(last).max(start), true)
                        }
                        _ => {
                            let big = letter == 'E';
                            let at = (0..times).fold(draft.caret(), |at, _| end_before(draft, at, big));
                            inclusive(draft, at)
                        }
                    };
                    self.arrive(&span, draft);
                }
                _ => self.reset(),
            },
            Wait::Name('"') if self.pending.operator.is_none() => {
                // There is one register; what is done with the named one is done with it.
                let known = self.recording.keys.len().saturating_sub(2);
                self.recording.keys.truncate(known);
            }
            Wait::Name(_) => self.reset(),
            Wait::Object(kind) => match object(draft, kind == 'a', letter, self.pending.times()) {
                Some(span) if self.pending.operator.is_some() => self.arrive(&span, draft),
                Some(span) => {
                    draft.select(span.range.start..draft.before(span.range.end).max(span.range.start));
                    if span.lines {
                        self.mode = Mode::VisualLine;
                    }
                    self.pending.count = None;
                }
                None => self.reset(),
            },
        }
    }

    /// The span of a motion; `None` if the letter is none, or leads nowhere.
    fn motion(&mut self, letter: char, times: usize, counted: bool, draft: &Draft) -> Option<Span> {
        let at = draft.caret();
        let fold = |step: &dyn Fn(TextPosition) -> TextPosition| (0..times).fold(at, |at, _| step(at));
        let column = self.column.take();
        Some(match letter {
            'h' => to(draft, fold(&|at| draft.before(at).max(at.line_start())), false),
            'l' | ' ' => to(draft, fold(&|at| draft.after(at).min(draft.line_end(at))), false),
            '0' => to(draft, at.line_start(), false),
            '^' => to(draft, draft.line_text(at), false),
            '$' => {
                let last = (1..times).fold(at, |at, _| draft.after(draft.line_end(at)));
                self.column = Some(usize::MAX);
                to(draft, draft.line_end(last), false)
            }
            'w' | 'W' => {
                let big = letter == 'W';
                let goal = fold(&|at| next_word(draft, at, big));
                // `cw` leaves the blanks behind the word, and `dw` the break of the line.
                if self.pending.operator == Some(Operator::Change) && draft.class_at(at) != Class::Blank {
                    let before = (1..times).fold(at, |at, _| next_word(draft, at, big));
                    return Some(to(draft, word_end(draft, before, big), false));
                }
                let is_line_over = self.pending.operator.is_some() && goal.row > at.row;
                let end = draft.line_end((1..times).fold(at, |at, _| next_word(draft, at, big)));
                to(draft, if is_line_over && end > at { end } else { goal }, false)
            }
            'e' | 'E' => {
                let big = letter == 'E';
                inclusive(draft, fold(&|at| last_of_word(draft, at, big)))
            }
            'b' | 'B' => to(draft, fold(&|at| word_start(draft, at, letter == 'B')), false),
            'j' | 'k' => {
                let column = column.unwrap_or_else(|| draft.column(at));
                self.column = Some(column);
                // As far as there are lines.
                let row = if letter == 'j' {
                    (at.row + times).min(draft.end().row)
                } else {
                    at.row.saturating_sub(times)
                };
                if row == at.row {
                    return self.pending.operator.is_none().then(|| to(draft, at, false));
                }
                lines(draft, draft.in_line(TextPosition { row, byte: 0 }, column))
            }
            'G' => {
                let at = if counted {
                    line_number(draft, times)
                } else {
                    draft.end().line_start()
                };
                lines(draft, at)
            }
            '{' => to(draft, fold(&|at| paragraph(draft, at, false)), false),
            '}' => to(draft, fold(&|at| paragraph(draft, at, true)), false),
            '%' => {
                let line = draft.slice(at..draft.line_end(at));
                let here = line.find(['(', ')', '[', ']', '{', '}'])?;
                inclusive(draft, partner(draft, at.right(here))?)
            }
            ';' | ',' => {
                let (kind, wanted) = self.found?;
                let kind = match (letter, kind) {
                    (';', kind) => kind,
                    (_, kind) if kind.is_lowercase() => kind.to_ascii_uppercase(),
                    (_, kind) => kind.to_ascii_lowercase(),
                };
                to(
                    draft,
                    find(draft, kind, wanted, times, true)?,
                    matches!(kind, 'f' | 't'),
                )
            }
            _ => return None,
        })
    }

    /// Moves the caret along the span, or applies the operator to it.
    fn arrive(&mut self, span: &Span, draft: &mut Draft) {
        match self.pending.operator.take() {
            Some(operator) => self.apply(operator, span, draft),
            None => {
                let goal = if span.range.start == draft.caret() {
                    span.range.end
                } else {
                    span.range.start
                };
                // What includes its last letter goes onto that letter.
                let goal = if span.lines || !self.includes(span, draft) {
                    goal
                } else {
                    draft.before(goal)
                };
                let column = self.column;
                draft.go(goal, self.mode != Mode::Normal);
                self.reset();
                self.column = column;
            }
        }
    }

    fn includes(&self, span: &Span, draft: &Draft) -> bool {
        // Motions forward to a letter are spans behind it.
        matches!(self.recording.keys.last().map(|it| it.code), Some(KeyCode::Char(it)) if span.range.start == draft.caret()
            && span.range.end > span.range.start
            && (matches!(it, 'e' | 'E' | '%' | '_') || self.was_find()))
    }

    fn was_find(&self) -> bool {
        let codes: Vec<_> = self.recording.keys.iter().rev().take(2).map(|it| it.code).collect();
        matches!(codes.first(), Some(KeyCode::Char(';' | ',')))
            || matches!(codes.get(1), Some(KeyCode::Char('f' | 't')))
    }

    fn operate(&mut self, operator: Operator, draft: &mut Draft) {
        if self.pending.operator == Some(operator) {
            self.operate_lines(operator, draft);
            return;
        }
        if self.pending.operator.is_some() {
            self.reset();
            return;
        }
        self.pending.operator = Some(operator);
        self.pending.operator_count = self.pending.count.take();
    }

    fn operate_lines(&mut self, operator: Operator, draft: &mut Draft) {
        let times = self.pending.times();
        let start = draft.caret().line_start();
        let row = (start.row + times - 1).min(draft.end().row);
        let end = draft.line_end(TextPosition { row, byte: 0 });
        self.pending.operator = None;
        self.apply(
            operator,
            &Span {
                range: start..end,
                lines: true,
            },
            draft,
        );
    }

    fn shorthand(&mut self, operator: Operator, motion: char, draft: &mut Draft) {
        self.pending.operator = Some(operator);
        let times = self.pending.times();
        match self.motion(motion, times, false, draft) {
            Some(span) => {
                self.pending.operator = None;
                self.apply(operator, &span, draft);
            }
            None => self.reset(),
        }
    }

    fn apply(&mut self, operator: Operator, span: &Span, draft: &mut Draft) {
        let range = if span.lines {
            span.range.start.line_start()..draft.line_end(span.range.end)
        } else {
            span.range.clone()
        };
        if range.is_empty() && !span.lines && operator != Operator::Change {
            self.reset();
            return;
        }
        match operator {
            Operator::Yank => {
                draft.keep(range.clone(), span.lines);
                let at = if span.lines {
                    range.start.max(draft.caret().line_start())
                } else {
                    range.start
                };
                draft.go(at.min(draft.caret()), false);
                self.reset();
                return;
            }
            Operator::Delete => {
                draft.keep(range.clone(), span.lines);
                let cut = if span.lines {
                    with_break(draft, &range)
                } else {
                    range.clone()
                };
                draft.replace(cut, "");
                if span.lines {
                    let at = range.start.min(draft.end());
                    draft.go(draft.line_text(at.line_start()), false);
                }
            }
            Operator::Change => {
                self.begin_insert(1, false, draft);
                draft.keep(range.clone(), span.lines);
                draft.replace(range, "");
                return;
            }
            Operator::Indent | Operator::Outdent => indent(draft, &range, operator == Operator::Indent),
            Operator::Lower | Operator::Upper | Operator::Swap => {
                let start = range.start;
                recase(draft, range, operator);
                draft.go(start, false);
            }
        }
        self.changed();
    }

    fn on_selection(&mut self, operator: Operator, draft: &mut Draft) {
        let Some(range) = draft.selection_or_caret(1, true) else {
            self.enter_normal(draft);
            return;
        };
        let lines = self.mode == Mode::VisualLine || matches!(operator, Operator::Indent | Operator::Outdent);
        self.mode = Mode::Normal;
        draft.deselect();
        let end = if lines && range.end > range.start {
            draft.before(range.end)
        } else {
            range.end
        };
        self.apply(
            operator,
            &Span {
                range: range.start..end.max(range.start),
                lines,
            },
            draft,
        );
    }

    fn visual(&mut self, letter: char, draft: &mut Draft) {
        match letter {
            'x' | 'X' | 'D' => self.on_selection(Operator::Delete, draft),
            's' | 'C' | 'S' => self.on_selection(Operator::Change, draft),
            'Y' => self.on_selection(Operator::Yank, draft),
            'u' => self.on_selection(Operator::Lower, draft),
            'U' => self.on_selection(Operator::Upper, draft),
            '~' => self.on_selection(Operator::Swap, draft),
            'p' | 'P' => {
                if let Some(range) = draft.selection_or_caret(1, true) {
                    let is_lines = self.mode == Mode::VisualLine;
                    let range = if is_lines {
                        range.start.line_start()..draft.line_end(draft.before(range.end).max(range.start))
                    } else {
                        range
                    };
                    let kept = if draft.kept_lines && !is_lines {
                        format!("\n{}\n", draft.kept())
                    } else {
                        draft.kept()
                    };
                    draft.as_one(|draft| {
                        let start = range.start;
                        draft.keep(range.clone(), is_lines);
                        draft.replace(range, &kept);
                        if is_lines {
                            draft.go(draft.line_text(start), false);
                        }
                    });
                }
                self.mode = Mode::Normal;
                self.changed();
            }
            'J' => {
                let text = draft.selection_or_caret(1, true).unwrap_or_default();
                let breaks = (text.end.row - text.start.row).max(1);
                draft.go(text.start, false);
                draft.as_one(|draft| (0..breaks).for_each(|_| join(draft)));
                self.mode = Mode::Normal;
                self.changed();
            }
            // `o` goes to the other end.
            _ => {
                if let Some(anchor) = draft.anchor() {
                    draft.select(draft.caret()..anchor);
                }
                self.pending = Pending::default();
            }
        }
    }

    fn insert(&mut self, draft: &mut Draft, place: impl Fn(&Draft, TextPosition) -> TextPosition) {
        let times = self.pending.take_count();
        self.begin_insert(times, false, draft);
        let at = place(draft, draft.caret());
        draft.go(at, false);
    }

    /// Begins a change that is typed; its text is to stand there `times` times.
    fn begin_insert(&mut self, times: usize, on_lines: bool, draft: &mut Draft) {
        draft.begin_step();
        self.insertion = Insertion {
            is_change: true,
            times,
            on_lines,
            keys: Vec::new(),
            has_moved: self.insertion.has_moved,
        };
        self.mode = Mode::Insert;
        self.pending = Pending::default();
    }

    fn open(&mut self, draft: &mut Draft, below: bool) {
        let times = self.pending.take_count();
        self.begin_insert(times, true, draft);
        let at = if below {
            draft.line_end(draft.caret())
        } else {
            draft.caret().line_start()
        };
        draft.replace(at..at, "\n");
        draft.go(if below { draft.after(at) } else { at }, false);
    }

    fn enter_visual(&mut self, mode: Mode, draft: &mut Draft) {
        if self.mode == mode {
            self.enter_normal(draft);
            return;
        }
        self.mode = mode;
        if draft.anchor().is_none() {
            draft.select(draft.caret()..draft.caret());
        }
        self.pending = Pending::default();
    }

    fn leave_insert(&mut self, draft: &mut Draft) {
        self.mode = Mode::Normal;
        if self.insertion.is_change {
            self.insert_again(draft);
            draft.end_step();
            self.recording.keep();
        }
        self.reset();
        let at = draft.caret();
        draft.go(draft.before(at).max(at.line_start()), false);
    }

    /// Repeats the text that was typed after a count.
    fn insert_again(&mut self, draft: &mut Draft) {
        let keys = std::mem::take(&mut self.insertion.keys);
        for _ in 1..self.insertion.times.min(MOST_KEYS / keys.len().max(1)) {
            if self.insertion.on_lines {
                draft.go(draft.line_end(draft.caret()), false);
                draft.insert("\n");
            }
            for key in &keys {
                typed(*key, draft);
            }
        }
        self.insertion.times = 0;
    }

    /// Repeats the keys of the last change.
    fn repeat(&mut self, draft: &mut Draft) {
        let count = self.pending.count.take();
        let mut keys = self.recording.dot.clone();
        if let Some(count) = count {
            // A new count takes the place of the one that the change had.
            let first = keys.iter().position(|it| !matches!(it.code, KeyCode::Char('1'..='9')));
            keys.drain(..first.unwrap_or_default());
            let digits = count.to_string();
            let digits = digits
                .chars()
                .map(|it| KeyEvent::new(KeyCode::Char(it), KeyModifiers::NONE));
            keys.splice(0..0, digits);
        }
        self.reset();
        self.recording.is_repeating = true;
        for key in keys {
            if !self.key(key, draft) && self.mode == Mode::Insert {
                typed(key, draft);
            }
        }
        if self.mode == Mode::Insert {
            self.leave_insert(draft);
        }
        self.recording.is_repeating = false;
        self.reset();
    }

    fn enter_normal(&mut self, draft: &mut Draft) {
        self.mode = Mode::Normal;
        draft.deselect();
        self.reset();
    }

    /// Ends a change; the dot repeats it.
    fn changed(&mut self) {
        self.recording.keep();
        self.reset();
    }

    /// Forgets what was half typed.
    fn reset(&mut self) {
        self.pending = Pending::default();
        (self.insertion.is_change, self.insertion.has_moved) = (false, false);
        self.column = None;
        if !self.recording.is_repeating {
            self.recording.keys.clear();
        }
    }

    /// Moves the caret onto the last letter of its line: in normal mode it is never behind it.
    fn settle(draft: &mut Draft) {
        let at = draft.caret();
        let (start, end) = (at.line_start(), draft.line_end(at));
        if at == end && at > start {
            draft.go(draft.before(at), false);
        }
    }
}

impl Draft {
    /// The selection with the letter under the caret; without one, `count` letters from the caret on. `None`: the line is too
    /// short.
    fn selection_or_caret(&self, count: usize, visual: bool) -> Option<Range<TextPosition>> {
        let at = self.caret();
        if visual && let Some(anchor) = self.anchor() {
            let (start, end) = (anchor.min(at), anchor.max(at));
            return Some(start..self.after(end));
        }
        let (mut end, line_end) = (at, self.line_end(at));
        for _ in 0..count {
            if end >= line_end {
                return None;
            }
            end = self.after(end);
        }
        Some(at..end)
    }
}

fn operator(letter: char) -> Operator {
    match letter {
        'c' => Operator::Change,
        'y' => Operator::Yank,
        '>' => Operator::Indent,
        '<' => Operator::Outdent,
        _ => Operator::Delete,
    }
}

fn is_motion(key: KeyCode) -> bool {
    matches!(
        key,
        KeyCode::Left
            | KeyCode::Right
            | KeyCode::Up
            | KeyCode::Down
            | KeyCode::Home
            | KeyCode::End
            | KeyCode::PageUp
            | KeyCode::PageDown
    )
}

/// A key of insert mode while a change is repeated.
fn typed(key: KeyEvent, draft: &mut Draft) {
    match key.code {
        KeyCode::Char(letter) => draft.insert(&letter.to_string()),
        KeyCode::Enter => draft.insert("\n"),
        KeyCode::Backspace => {
            let at = draft.caret();
            draft.replace(draft.before(at)..at, "");
        }
        KeyCode::Delete => {
            let at = draft.caret();
            draft.replace(at..draft.after(at), "");
        }
        _ => {}
    }
}

/// Extends whole lines by one line break, so that none is left over.
fn with_break(draft: &Draft, range: &Range<TextPosition>) -> Range<TextPosition> {
    match draft.line_after(range.end) {
        Some(next) => range.start..next,
        None => draft.before(range.start)..range.end,
    }
}

fn put(draft: &mut Draft, behind: bool, count: usize) {
    let kept = draft.kept();
    if kept.is_empty() {
        return;
    }
    let count = count.min(1000);
    let at = draft.caret();
    if draft.kept_lines {
        let lines = vec![kept; count].join("\n");
        let start = if behind {
            let end = draft.line_end(at);
            draft.replace(end..end, &format!("\n{lines}"));
            draft.after(end)
        } else {
            let start = at.line_start();
            draft.replace(start..start, &format!("{lines}\n"));
            start
        };
        draft.go(draft.line_text(start), false);
    } else {
        let place = if behind {
            draft.after(at).min(draft.line_end(at))
        } else {
            at
        };
        draft.replace(place..place, &kept.repeat(count));
        draft.go(draft.before(draft.caret()), false);
    }
}

/// Joins the next line with this one, with one blank between them.
fn join(draft: &mut Draft) {
    let end = draft.line_end(draft.caret());
    let Some(next) = draft.line_after(end).map(|it| draft.line_text(it)) else {
        return;
    };
    let blank = if draft.line_end(next) == next || draft.line(end.row).ends_with(' ') {
        ""
    } else {
        " "
    };
    draft.replace(end..next, blank);
    draft.go(end, false);
}

fn indent(draft: &mut Draft, range: &Range<TextPosition>, more: bool) {
    let text = draft.slice(range.clone());
    let changed: Vec<String> = text
        .split('\n')
        .map(|line| {
            if !more {
                let blanks = line.len() - line.trim_start_matches(' ').len();
                line.get(blanks.min(2)..).unwrap_or_default().to_owned()
            } else if line.is_empty() {
                String::new()
            } else {
                format!("  {line}")
            }
        })
        .collect();
    let start = range.start;
    draft.replace(range.clone(), &changed.join("\n"));
    draft.go(draft.line_text(start), false);
}

fn recase(draft: &mut Draft, range: Range<TextPosition>, operator: Operator) {
    let text = draft.slice(range.clone());
    // The label of a chip stays as it is.
    let parts = text.split_inclusive(CLOSE).map(|part| {
        let (words, chip) = part.split_at(part.find(is_private).unwrap_or(part.len()));
        let words = match operator {
            Operator::Lower => words.to_lowercase(),
            Operator::Upper => words.to_uppercase(),
            Operator::Swap
            | Operator::Delete
            | Operator::Change
            | Operator::Yank
            | Operator::Indent
            | Operator::Outdent => {
                let swap = |it: char| -> String {
                    if it.is_lowercase() {
                        it.to_uppercase().collect()
                    } else {
                        it.to_lowercase().collect()
                    }
                };
                words.chars().map(swap).collect()
            }
        };
        words + chip
    });
    let changed: String = parts.collect();
    if changed != text {
        draft.replace(range, &changed);
    }
}

#[cfg(test)]
mod tests;
