//! Cuts what a model writes into documents while it is being written: text, code blocks and citations.
//!
//! A fence opens on a line with at most three leading spaces, as in CommonMark; a fence that is indented further,
//! quoted, or on the line of a list marker stays in the text around it. Text is forwarded at once; only what could
//! still become a fence, or turn out to be blank space at the end of a text, is held back.
//!
//! What does not travel: the fence lines themselves (they become the header), blank lines at the start of a text,
//! white space at its end, the line break before a closing fence, and the fence's own indentation in front of the
//! lines inside. A text that is nothing but white space is never opened. Everything else arrives, in order, and
//! where the input was cut into pieces never shows in the documents.

/// A change of the one document that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Segment {
    /// Nothing was open; now this is.
    Open(Header),
    /// Never empty.
    Delta(String),
    /// `incomplete`: the input ended inside a fence.
    Close { incomplete: bool },
}

/// The kind of a document and what its first line says about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    Text,
    Code {
        /// In lower case; empty when the fence names none.
        language: String,
        /// The whole info line, when it says more than the language.
        info: Option<String>,
    },
    /// Code that exists: lines counted from 1, both inclusive, `first <= last`.
    Citation {
        path: String,
        first: u64,
        last: u64,
        /// The word in front of the numbers, in lower case.
        language: Option<String>,
    },
}

/// A longer first line is not taken for a fence, so that what is held back stays small.
const FENCE_LINE_LIMIT_BYTES: usize = 2 * 1024;

/// Characters that may follow a closing fence; other white space is content, as in CommonMark.
const BLANK: [char; 3] = [' ', '\t', '\r'];

/// Numbers with more digits count no lines.
const LINE_NUMBER_DIGITS: usize = 9;

/// The state between two pieces.
#[derive(Debug, Default)]
pub struct Segmenter {
    /// The fence we are in, or none: text.
    code: Option<Code>,
    /// The line being read: what is held back of it and, in text, also what went on already (for [`Nested`]).
    line: String,
    guess: Guess,
    /// White space after the last visible character of a text: forwarded before the next one, dropped at the end.
    blank: String,
    text_is_open: bool,
    nested: Option<Nested>,
}

/// The kinds of line that the line being read can still become.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Guess {
    /// Nothing yet but up to three spaces.
    #[default]
    Start,
    /// Spaces, then marks of one kind, perhaps not enough of them.
    Marks(Fence),
    /// A fence, then what may follow on its line.
    Tail(Fence),
    /// A line like any other.
    Plain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

impl Fence {
    /// CommonMark: three marks make a fence.
    const SHORTEST: usize = 3;
}

#[derive(Debug)]
struct Code {
    fence: Fence,
    /// The line break in front of the line being read; the one before the closing fence is not content.
    line_break: &'static str,
    /// A `\r` that is content unless `\n` follows.
    carriage_return: bool,
}

/// A fence that stands on the line of a list marker (`- ```rust`): its closing line must not open one of ours.
/// It lives as long as lines are indented to the content of its list item.
#[derive(Debug)]
struct Nested {
    mark: char,
    length: usize,
    content_column: usize,
}

impl Segmenter {
    /// Takes the next piece of the text, which may end anywhere. Returns what it adds.
    pub fn push(&mut self, piece: &str) -> Vec<Segment> {
        let mut out = Vec::new();
        for part in piece.split_inclusive('\n') {
            let (line, ended) = match part.strip_suffix('\n') {
                Some(line) => (line, true),
                None => (part, false),
            };
            if self.code.is_some() {
                self.code_line(line, ended, &mut out);
            } else {
                self.text_line(line, ended, &mut out);
            }
        }
        out
    }

    /// Returns true in the midst of a text or of a code block.
    pub fn is_within(&self) -> bool {
        self.code.is_some() || self.text_is_open || !self.line.is_empty()
    }

    /// Closes what is open, as at the end of a turn or before a tool call, and starts afresh.
    pub fn finish(&mut self) -> Vec<Segment> {
        let mut out = Vec::new();
        match (&self.code, self.guess) {
            (None, Guess::Marks(fence) | Guess::Tail(fence)) if fence.length >= Fence::SHORTEST => {
                self.open_code(fence, &mut out);
                out.push(Segment::Close { incomplete: true });
            }
            (None, Guess::Marks(_)) => {
                let line = std::mem::take(&mut self.line);
                self.forward_text(&line, &mut out);
                self.close_text(&mut out);
            }
            (None, Guess::Start | Guess::Tail(_) | Guess::Plain) => self.close_text(&mut out),
            (Some(code), guess) => {
                let closed = code.is_closed_by(guess);
                if !closed {
                    self.end_open_code(&mut out);
                }
                out.push(Segment::Close { incomplete: !closed });
            }
        }
        *self = Self::default();
        out
    }

    fn text_line(&mut self, part: &str, ended: bool, out: &mut Vec<Segment>) {
        let mut rest = part.chars();
        while self.guess != Guess::Plain {
            let Some(c) = rest.next() else { break };
            self.guess = self.guess_in_text(c);
            self.line.push(c);
            if self.guess == Guess::Plain {
                let line = std::mem::take(&mut self.line);
                self.forward_text(&line, out);
                self.line = line;
            }
        }
        if self.guess == Guess::Plain {
            if self.line.len() <= FENCE_LINE_LIMIT_BYTES && self.may_matter_for_nested() {
                self.line.push_str(rest.as_str());
            }
            self.forward_text(rest.as_str(), out);
        }
        if !ended {
            return;
        }
        match self.guess {
            Guess::Marks(fence) | Guess::Tail(fence) if fence.length >= Fence::SHORTEST => self.open_code(fence, out),
            Guess::Start | Guess::Marks(_) | Guess::Tail(_) => {
                let line = std::mem::take(&mut self.line);
                self.forward_text(&line, out);
                self.forward_text("\n", out);
                self.line = line;
                self.follow_nested();
            }
            Guess::Plain => {
                self.forward_text("\n", out);
                self.follow_nested();
            }
        }
        self.line.clear();
        self.guess = Guess::Start;
    }

    fn guess_in_text(&self, c: char) -> Guess {
        if self.line.len() >= FENCE_LINE_LIMIT_BYTES {
            return Guess::Plain;
        }
        match self.guess {
            Guess::Start => match c {
                ' ' if self.line.len() < 3 => Guess::Start,
                '`' | '~'
                    if self
                        .nested
                        .as_ref()
                        .is_none_or(|it| self.line.len() < it.content_column) =>
                {
                    Guess::Marks(Fence {
                        mark: c,
                        length: 1,
                        indent: self.line.len(),
                    })
                }
                _ => Guess::Plain,
            },
            Guess::Marks(fence) if c == fence.mark => Guess::Marks(Fence {
                length: fence.length + 1,
                ..fence
            }),
            Guess::Marks(fence) if fence.length < Fence::SHORTEST => Guess::Plain,
            // With a backtick in its info line it is a span of code: ```like this```.
            Guess::Tail(Fence { mark: '`', .. }) if c == '`' => Guess::Plain,
            Guess::Marks(fence) | Guess::Tail(fence) => Guess::Tail(fence),
            Guess::Plain => Guess::Plain,
        }
    }

    /// Forwards up to the last visible character and holds back the white space after it.
    fn forward_text(&mut self, text: &str, out: &mut Vec<Segment>) {
        let visible = text.trim_end();
        if !visible.is_empty() {
            if !self.text_is_open {
                self.text_is_open = true;
                out.push(Segment::Open(Header::Text));
                // The indentation of the first line has a meaning; the blank lines before it have none.
                if let Some((_, indentation)) = self.blank.rsplit_once('\n') {
                    self.blank = indentation.to_owned();
                }
            }
            delta(&self.blank, out);
            delta(visible, out);
            self.blank.clear();
        }
        self.blank.push_str(text.strip_prefix(visible).unwrap_or_default());
    }

    fn close_text(&mut self, out: &mut Vec<Segment>) {
        self.blank.clear();
        if std::mem::take(&mut self.text_is_open) {
            out.push(Segment::Close { incomplete: false });
        }
    }

    fn open_code(&mut self, fence: Fence, out: &mut Vec<Segment>) {
        self.close_text(out);
        self.nested = None;
        let info = self.line.trim_start_matches(' ').trim_start_matches(fence.mark);
        out.push(Segment::Open(Header::parse(info)));
        self.code = Some(Code {
            fence,
            line_break: "",
            carriage_return: false,
        });
    }

    /// Returns true if the end of the line may open or close a fence inside a list item. Of other lines, the start is enough to
    /// see that.
    fn may_matter_for_nested(&self) -> bool {
        let start = self.line.trim_start().chars().next();
        self.nested.is_some() || start.is_none_or(|it| matches!(it, '-' | '*' | '+' | '0'..='9'))
    }

    /// Notes whether the text line that ended opened or closed a fence inside a list item.
    fn follow_nested(&mut self) {
        if self.line.len() > FENCE_LINE_LIMIT_BYTES {
            return;
        }
        let (column, content) = indentation(&self.line);
        if let Some(nested) = &self.nested {
            if content.trim().is_empty() {
                return;
            }
            if column >= nested.content_column {
                let (length, tail) = run(content, nested.mark);
                if length >= nested.length && tail.trim_matches(BLANK).is_empty() {
                    self.nested = None;
                }
                return;
            }
        }
        self.nested = Nested::opened_by(&self.line);
    }

    fn code_line(&mut self, part: &str, ended: bool, out: &mut Vec<Segment>) {
        let Some(code) = &mut self.code else { return };
        let mut rest = part.chars();
        while self.guess != Guess::Plain {
            let Some(c) = rest.next() else { break };
            self.guess = code.guess(self.guess, &self.line, c);
            self.line.push(c);
            if self.guess == Guess::Plain {
                code.forward_start(&self.line, out);
                self.line.clear();
            }
        }
        if self.guess == Guess::Plain {
            code.forward(rest.as_str(), out);
        }
        if !ended {
            return;
        }
        if code.is_closed_by(self.guess) {
            out.push(Segment::Close { incomplete: false });
            self.code = None;
        } else {
            if self.guess != Guess::Plain {
                code.forward_start(&self.line, out);
            }
            let is_crlf = std::mem::take(&mut code.carriage_return);
            code.line_break = if is_crlf { "\r\n" } else { "\n" };
        }
        self.line.clear();
        self.guess = Guess::Start;
    }

    /// The last line of a fence that was not closed, as far as it was held back.
    fn end_open_code(&mut self, out: &mut Vec<Segment>) {
        let Some(code) = &mut self.code else { return };
        // Nothing but the fence's own indentation is no line yet.
        let is_begun = !self.line.trim_start_matches(' ').is_empty() || self.line.len() > code.fence.indent;
        if self.guess != Guess::Plain && is_begun {
            code.forward_start(&self.line, out);
        }
        if code.carriage_return {
            delta("\r", out);
        }
    }
}

impl Code {
    fn guess(&self, guess: Guess, line: &str, c: char) -> Guess {
        if line.len() >= FENCE_LINE_LIMIT_BYTES {
            return Guess::Plain;
        }
        let is_blank = BLANK.contains(&c);
        match guess {
            Guess::Start if c == ' ' && line.len() < 3 => Guess::Start,
            Guess::Start if c == self.fence.mark => Guess::Marks(Fence {
                length: 1,
                ..self.fence
            }),
            Guess::Marks(fence) if c == fence.mark => Guess::Marks(Fence {
                length: fence.length + 1,
                ..fence
            }),
            Guess::Marks(fence) if fence.length >= self.fence.length && is_blank => Guess::Tail(fence),
            Guess::Tail(fence) if is_blank => Guess::Tail(fence),
            Guess::Start | Guess::Marks(_) | Guess::Tail(_) | Guess::Plain => Guess::Plain,
        }
    }

    fn is_closed_by(&self, guess: Guess) -> bool {
        match guess {
            Guess::Marks(fence) | Guess::Tail(fence) => fence.length >= self.fence.length,
            Guess::Start | Guess::Plain => false,
        }
    }

    /// The start of a line, with the line break before it and without the fence's indentation.
    fn forward_start(&mut self, line: &str, out: &mut Vec<Segment>) {
        delta(self.line_break, out);
        self.line_break = "";
        let spaces = line.len() - line.trim_start_matches(' ').len();
        self.forward(line.get(spaces.min(self.fence.indent)..).unwrap_or_default(), out);
    }

    fn forward(&mut self, text: &str, out: &mut Vec<Segment>) {
        if text.is_empty() {
            return;
        }
        if self.carriage_return {
            delta("\r", out);
        }
        let body = text.strip_suffix('\r');
        self.carriage_return = body.is_some();
        delta(body.unwrap_or(text), out);
    }
}

impl Nested {
    fn opened_by(line: &str) -> Option<Self> {
        let (mut column, mut rest) = indentation(line);
        let mut is_in_item = false;
        loop {
            if is_in_item && let Some(mark @ ('`' | '~')) = rest.chars().next() {
                let (length, info) = run(rest, mark);
                let opens = length >= Fence::SHORTEST && !(mark == '`' && info.contains('`'));
                return opens.then_some(Self {
                    mark,
                    length,
                    content_column: column,
                });
            }
            let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let after = match digits {
                0 => rest.strip_prefix(['-', '*', '+'])?,
                1..=9 => rest.get(digits..)?.strip_prefix(['.', ')'])?,
                _ => return None,
            };
            let content = after.trim_start_matches(' ');
            // Five spaces or more start indented code, none is no list item.
            let spaces = after.len() - content.len();
            if !(1..=4).contains(&spaces) {
                return None;
            }
            column += rest.len() - content.len();
            rest = content;
            is_in_item = true;
        }
    }
}

impl Header {
    fn parse(info: &str) -> Self {
        let info = info.trim();
        Self::citation(info).unwrap_or_else(|| {
            let word = info.split([' ', '\t', ',', '{']).next().unwrap_or_default();
            Self::Code {
                language: word.to_lowercase(),
                info: (word.len() < info.len()).then(|| info.to_owned()),
            }
        })
    }

    /// `12:40:src/a b:c.rs`, perhaps with a word before it; nothing looser.
    fn citation(info: &str) -> Option<Self> {
        let (language, place) = match info.split_once(char::is_whitespace) {
            Some((word, place)) if word.chars().all(|c| c.is_alphanumeric() || c == '_') => {
                (Some(word.to_lowercase()), place.trim_start())
            }
            Some(_) | None => (None, info),
        };
        let (first, rest) = place.split_once(':')?;
        let (last, path) = rest.split_once(':')?;
        let (first, last, path) = (line_number(first)?, line_number(last)?, path.trim());
        (!path.is_empty()).then(|| Self::Citation {
            path: path.to_owned(),
            first: first.min(last),
            last: first.max(last),
            language,
        })
    }
}

fn line_number(text: &str) -> Option<u64> {
    let is_number = (1..=LINE_NUMBER_DIGITS).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_digit());
    is_number.then(|| text.parse().ok())?.map(|it: u64| it.max(1))
}

/// The column where a line's content starts, and that content.
fn indentation(line: &str) -> (usize, &str) {
    let content = line.trim_start_matches([' ', '\t']);
    let blank = line.chars().take(line.len() - content.len());
    let column = blank.fold(0, |column, c| if c == '\t' { (column / 4 + 1) * 4 } else { column + 1 });
    (column, content)
}

/// The number of marks that a line starts with, and the rest of the line.
fn run(line: &str, mark: char) -> (usize, &str) {
    let tail = line.trim_start_matches(mark);
    (line.len() - tail.len(), tail)
}

/// Adds to the last delta, or starts one.
fn delta(text: &str, out: &mut Vec<Segment>) {
    if text.is_empty() {
        return;
    }
    match out.last_mut() {
        Some(Segment::Delta(last)) => last.push_str(text),
        Some(Segment::Open(_) | Segment::Close { .. }) | None => out.push(Segment::Delta(text.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A finished document, as a reader would hold it.
    #[derive(Clone, Debug, PartialEq)]
    struct Finished {
        header: Header,
        content: String,
        incomplete: bool,
    }

    /// Folds segments, and holds them to their grammar: one document at a time, no empty delta.
    fn fold(segments: impl IntoIterator<Item = Segment>) -> Vec<Finished> {
        let mut finished = Vec::new();
        let mut open: Option<Finished> = None;
        for segment in segments {
            match segment {
                Segment::Open(header) => {
                    assert!(open.is_none(), "a second document opens");
                    open = Some(Finished {
                        header,
                        content: String::new(),
                        incomplete: false,
                    });
                }
                Segment::Delta(text) => {
                    assert!(!text.is_empty(), "an empty delta");
                    open.as_mut()
                        .expect("a delta belongs to a document")
                        .content
                        .push_str(&text);
                }
                Segment::Close { incomplete } => {
                    finished.push(Finished {
                        incomplete,
                        ..open.take().expect("what closes is open")
                    });
                }
            }
        }
        assert!(open.is_none(), "a document stays open");
        finished
    }

    fn documents<'a>(pieces: impl IntoIterator<Item = &'a str>) -> Vec<Finished> {
        let mut segmenter = Segmenter::default();
        let mut segments = Vec::new();
        for piece in pieces {
            segments.extend(segmenter.push(piece));
        }
        segments.extend(segmenter.finish());
        fold(segments)
    }

    fn text(content: &str) -> Finished {
        Finished {
            header: Header::Text,
            content: content.to_owned(),
            incomplete: false,
        }
    }

    fn code(language: &str, content: &str) -> Finished {
        let header = Header::Code {
            language: language.to_owned(),
            info: None,
        };
        Finished {
            header,
            content: content.to_owned(),
            incomplete: false,
        }
    }

    fn citation(path: &str, first: u64, last: u64, content: &str) -> Finished {
        let header = Header::Citation {
            path: path.to_owned(),
            first,
            last,
            language: None,
        };
        Finished {
            header,
            content: content.to_owned(),
            incomplete: false,
        }
    }

    fn cut(document: Finished) -> Finished {
        Finished {
            incomplete: true,
            ..document
        }
    }

    /// Every case whole, character by character, and cut in two at every place.
    fn check(name: &str, input: &str, want: &[Finished]) {
        assert_eq!(documents([input]), want, "{name}");
        let characters: Vec<String> = input.chars().map(String::from).collect();
        assert_eq!(
            documents(characters.iter().map(String::as_str)),
            want,
            "{name}, character by character"
        );
        for at in (0..=input.len()).filter(|&at| input.is_char_boundary(at)) {
            let (head, tail) = input.split_at(at);
            assert_eq!(documents([head, tail]), want, "{name}, cut at {at}");
        }
    }

    #[test]
    fn fences_open_and_close() {
        let cases: &[(&str, &str, &[Finished])] = &[
            ("nothing", "", &[]),
            ("white space is no text", " \n\t\n  ", &[]),
            ("plain text", "Hello, world.", &[text("Hello, world.")]),
            (
                "a block between texts",
                "Look:\n\n```rust\nfn a() {}\n```\n\nDone.\n",
                &[text("Look:"), code("rust", "fn a() {}"), text("Done.")],
            ),
            (
                "no text between two blocks",
                "```a\n1\n```\n \n\n```b\n2\n```",
                &[code("a", "1"), code("b", "2")],
            ),
            ("no text before the first block", "\n\n```\nx\n```\n", &[code("", "x")]),
            ("a block with nothing in it", "```rust\n```\n", &[code("rust", "")]),
            (
                "blank lines inside stay",
                "```\n\na\n\n\nb\n\n```",
                &[code("", "\na\n\n\nb\n")],
            ),
            ("tildes", "~~~py\nprint()\n~~~", &[code("py", "print()")]),
            ("backticks do not close tildes", "~~~\n```\n~~~", &[code("", "```")]),
            (
                "a shorter fence is content",
                "````md\n```rust\nx\n```\n````",
                &[code("md", "```rust\nx\n```")],
            ),
            (
                "a longer fence closes",
                "```\nx\n``````  \t\nafter",
                &[code("", "x"), text("after")],
            ),
            (
                "a fence with words does not close",
                "```\nx\n``` no\n```",
                &[code("", "x\n``` no")],
            ),
            (
                "and not with odd white space",
                "```\nx\n```\u{a0}\n```",
                &[code("", "x\n```\u{a0}")],
            ),
            (
                "a closing fence may be indented by three",
                "```\nx\n   ```\ny",
                &[code("", "x"), text("y")],
            ),
            ("and not by four", "```\nx\n    ```\n```", &[code("", "x\n    ```")]),
            ("a tab is four", "\t```\nx", &[text("\t```\nx")]),
            (
                "an indented fence takes its indent from each line",
                "  ```c\n  a\n    b\n c\n  ```\nend",
                &[code("c", "a\n  b\nc"), text("end")],
            ),
            (
                "two backticks are no fence",
                "``x``\nand ``` in a line",
                &[text("``x``\nand ``` in a line")],
            ),
            (
                "three around a word are a span of code",
                "```x``` is code",
                &[text("```x``` is code")],
            ),
            (
                "tildes allow backticks after them",
                "~~~a`b\nx\n~~~",
                &[code("a`b", "x")],
            ),
            (
                "windows line ends",
                "a\r\n```rust\r\nx\r\ny\r\n```\r\nb",
                &[text("a"), code("rust", "x\r\ny"), text("b")],
            ),
            (
                "a lone carriage return is content",
                "```\na\rb\r\rc\r\n```",
                &[code("", "a\rb\r\rc")],
            ),
            (
                "leading blank lines go, the first indent stays",
                "\n \n    code\ntext",
                &[text("    code\ntext")],
            ),
            (
                "a hard break between lines stays",
                "a  \nb   \n\n```\n```",
                &[text("a  \nb"), code("", "")],
            ),
        ];
        for (name, input, want) in cases {
            check(name, input, want);
        }
    }

    #[test]
    fn info_lines() {
        let with_info = |language: &str, info: &str| Finished {
            header: Header::Code {
                language: language.to_owned(),
                info: Some(info.to_owned()),
            },
            ..code("", "x")
        };
        let in_language = |language: &str| Finished {
            header: Header::Citation {
                path: "src/a.rs".to_owned(),
                first: 12,
                last: 40,
                language: Some(language.to_owned()),
            },
            ..code("", "x")
        };
        let cases: &[(&str, &str, Finished)] = &[
            ("a citation", "12:40:src/cart.rs", citation("src/cart.rs", 12, 40, "x")),
            (
                "a path with spaces and colons",
                "12:40:src/a b:c.rs",
                citation("src/a b:c.rs", 12, 40, "x"),
            ),
            ("space around it", "  1:2:a.rs  ", citation("a.rs", 1, 2, "x")),
            (
                "reversed lines are turned round",
                "40:12:a.rs",
                citation("a.rs", 12, 40, "x"),
            ),
            ("lines count from one", "0:0:a.rs", citation("a.rs", 1, 1, "x")),
            ("a language before it", "rust 12:40:src/a.rs", in_language("rust")),
            ("in capitals", "Rust \t12:40:src/a.rs", in_language("rust")),
            (
                "the path first is a language",
                "src/a.rs:12:40",
                code("src/a.rs:12:40", "x"),
            ),
            ("no path", "12:40:", code("12:40:", "x")),
            (
                "numbers that count no lines",
                "1234567890:1:a",
                code("1234567890:1:a", "x"),
            ),
            ("one number", "12:a.rs", code("12:a.rs", "x")),
            ("two words before it", "a b 1:2:c.rs", with_info("a", "a b 1:2:c.rs")),
            ("a language in capitals", "Rust", code("rust", "x")),
            (
                "attributes after the language",
                "js title=\"a.js\"",
                with_info("js", "js title=\"a.js\""),
            ),
            (
                "attributes without a space",
                "rust,no_run",
                with_info("rust", "rust,no_run"),
            ),
        ];
        for (name, info, want) in cases {
            check(name, &format!("```{info}\nx\n```"), std::slice::from_ref(want));
        }
    }

    #[test]
    fn a_fence_that_the_input_leaves_open_is_incomplete() {
        let cases: &[(&str, &str, &[Finished])] = &[
            ("in the middle of a line", "```rust\nfn a", &[cut(code("rust", "fn a"))]),
            ("after a line", "```rust\nfn a\n", &[cut(code("rust", "fn a"))]),
            ("after a blank line", "```\na\n\n", &[cut(code("", "a\n"))]),
            (
                "in what may be the closing fence",
                "```\na\n``",
                &[cut(code("", "a\n``"))],
            ),
            ("in its indentation", "```\na\n  ", &[cut(code("", "a\n  "))]),
            ("in the fence's own", "  ```\na\n  ", &[cut(code("", "a"))]),
            ("after a carriage return", "```\na\r", &[cut(code("", "a\r"))]),
            ("on the opening line", "a\n```ru", &[text("a"), cut(code("ru", ""))]),
            ("right behind the marks", "```", &[cut(code("", ""))]),
            ("a closing fence needs no line break", "```\na\n```", &[code("", "a")]),
            ("two marks are text", "a\n``", &[text("a\n``")]),
        ];
        for (name, input, want) in cases {
            check(name, input, want);
        }
    }

    #[test]
    fn fences_in_lists_and_quotes_stay_in_the_text() {
        let kept = [
            ("quoted", "> ```rust\n> x\n> ```\nafter"),
            ("indented by four", "1. a\n\n    ```rust\n    x\n    ```\n2. b"),
            ("behind a bullet", "- ```rust\n  x\n  ```\n- b"),
            ("behind a bullet, with a blank line", "- ```rust\n\n  x\n  ```\n- b"),
            ("behind a number", "1. ```rust\n   x\n   ```\n2. b"),
            ("behind two bullets", "- - ~~~\n    x\n    ~~~\nb"),
            ("a longer one behind a bullet", "* ````\n  ```\n  x\n  ```\n  ````\nb"),
        ];
        for (name, input) in kept {
            check(name, input, &[text(input)]);
        }
        check(
            "the list item ends, its fence with it",
            "- ```rust\n  x\nb\n```c\ny\n```",
            &[text("- ```rust\n  x\nb"), code("c", "y")],
        );
        check(
            "a fence to the left of the item is ours",
            "- ```rust\n  x\n```c\ny\n```",
            &[text("- ```rust\n  x"), code("c", "y")],
        );
        check(
            "a span of code behind a bullet",
            "- ```x```\n  ```c\n  y\n  ```",
            &[text("- ```x```"), code("c", "y")],
        );
    }

    #[test]
    fn what_cannot_be_a_fence_goes_on_at_once() {
        // (piece, what of the content it brings)
        let cases: &[(&str, &[(&str, &str)])] = &[
            ("a word", &[("Hel", "Hel"), ("lo", "lo")]),
            (
                "white space waits for what follows",
                &[("a ", "a"), ("\n", ""), ("b", " \nb")],
            ),
            (
                "marks at the start of a line wait",
                &[("a\n", "a"), ("`", ""), ("`", ""), ("b", "\n``b")],
            ),
            ("marks in a line do not", &[("a ``", "a ``"), ("`", "`")]),
            (
                "four spaces are no fence",
                &[("a\n   ", "a"), (" ", ""), ("`", "\n    `")],
            ),
            (
                "a span of three is known at its end",
                &[("```x", ""), ("``", "```x``"), ("`", "`")],
            ),
            (
                "code, but for its last line break",
                &[
                    ("```c\n", ""),
                    ("let ", "let "),
                    ("x;\n", "x;"),
                    ("  ", ""),
                    ("y", "\n  y"),
                    ("\n``", ""),
                    ("`x", "\n```x"),
                ],
            ),
        ];
        for (name, steps) in cases {
            let mut segmenter = Segmenter::default();
            for (piece, want) in *steps {
                let segments = segmenter.push(piece);
                let deltas = segments.iter().map(|it| match it {
                    Segment::Delta(text) => text.as_str(),
                    Segment::Open(_) | Segment::Close { .. } => "",
                });
                assert_eq!(deltas.collect::<String>(), *want, "{name}: {piece:?}");
            }
        }
    }

    #[test]
    fn finishing_starts_afresh() {
        let mut segmenter = Segmenter::default();
        segmenter.push("- ```rust\n```");
        segmenter.finish();
        let mut segments = segmenter.push("```\na\n```");
        segments.extend(segmenter.finish());
        assert_eq!(fold(segments), [code("", "a")]);
    }

    #[test]
    fn long_lines_cost_their_length() {
        // Quadratic work on any of these would take its square.
        let size = 1 << 16;
        for unit in ["`", "~", " ", "a", "\n", "```\n", "- ", "\r", "`\n"] {
            for opening in ["", "a", "```\n", "``` ", "- ```\n"] {
                let mut segmenter = Segmenter::default();
                let mut seen = 0;
                for piece in std::iter::once(opening).chain(std::iter::repeat_n(unit, size / unit.len())) {
                    seen += segmenter.push(piece).len();
                }
                seen += segmenter.finish().len();
                assert!(seen <= 2 * size + 4);
            }
        }
    }

    /// The same rules on whole lines, with everything known: slow and plain.
    fn by_lines(input: &str) -> Vec<Finished> {
        let mut finished = Vec::new();
        let mut paragraph = String::new();
        let mut nested: Option<Nested> = None;
        let mut lines = input.split_inclusive('\n').peekable();
        let end_text = |paragraph: &mut String, finished: &mut Vec<Finished>| {
            let whole = std::mem::take(paragraph);
            let mut rest = whole.as_str();
            while let Some((first, others)) = rest.split_once('\n')
                && first.trim().is_empty()
            {
                rest = others;
            }
            if !rest.trim().is_empty() {
                finished.push(text(rest.trim_end()));
            }
        };
        let fence = |line: &str| {
            let bare = line.trim_start_matches(' ');
            let indent = line.len() - bare.len();
            let mark = bare.chars().next().filter(|it| matches!(it, '`' | '~'))?;
            let (length, info) = run(bare, mark);
            (indent <= 3 && length >= 3).then(|| (indent, mark, length, info.trim_matches(BLANK).to_owned()))
        };
        while let Some(line) = lines.next() {
            let body = line.strip_suffix('\n').unwrap_or(line);
            let (column, content) = indentation(body);
            let inside = nested
                .as_ref()
                .is_some_and(|it| content.trim().is_empty() || column >= it.content_column);
            let opening = fence(body).filter(|(_, mark, _, info)| !(inside || *mark == '`' && info.contains('`')));
            if let Some((indent, mark, length, info)) = opening {
                end_text(&mut paragraph, &mut finished);
                nested = None;
                let mut content = String::new();
                let mut closed = false;
                for line in lines.by_ref() {
                    let body = line.strip_suffix('\n').unwrap_or(line);
                    if fence(body).is_some_and(|it| it.1 == mark && it.2 >= length && it.3.is_empty()) {
                        closed = true;
                        break;
                    }
                    let spaces = body.len() - body.trim_start_matches(' ').len();
                    content.push_str(line.split_at(spaces.min(indent)).1);
                }
                let content = match content.strip_suffix('\n') {
                    Some(it) => it.strip_suffix('\r').unwrap_or(it),
                    None => &content,
                };
                finished.push(Finished {
                    header: Header::parse(&info),
                    content: content.to_owned(),
                    incomplete: !closed,
                });
                continue;
            }
            if inside {
                let closing = nested.as_ref().is_some_and(|it| {
                    let (length, tail) = run(content, it.mark);
                    length >= it.length && tail.trim_matches(BLANK).is_empty()
                });
                if closing {
                    nested = None;
                }
            } else {
                nested = Nested::opened_by(body);
            }
            paragraph.push_str(line);
        }
        end_text(&mut paragraph, &mut finished);
        finished
    }

    /// Text that is rich in what matters here.
    fn inputs() -> impl Strategy<Value = String> {
        let words = prop::sample::select(vec![
            "```",
            "````",
            "``",
            "`",
            "~~~",
            "~~~~",
            "\n",
            "\n",
            "\n",
            "\r\n",
            "\r",
            " ",
            "  ",
            "   ",
            "    ",
            "\t",
            "a",
            "rust",
            "12:40:a b.rs",
            "1:2:é",
            "> ",
            "- ",
            "1. ",
            "🦀",
            "\u{a0}",
            "\u{2028}",
            "x y",
        ]);
        prop::collection::vec(words, 0..40).prop_map(|it| it.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn the_documents_are_those_of_the_whole_lines(input in inputs()) {
            prop_assert_eq!(documents([input.as_str()]), by_lines(&input));
        }

        #[test]
        fn pieces_never_matter(input in inputs(), cuts in prop::collection::vec(0usize..200, 0..8)) {
            let mut places: Vec<usize> = cuts.into_iter().filter(|&at| input.is_char_boundary(at)).collect();
            places.extend([0, input.len()]);
            places.sort_unstable();
            let pieces = places.windows(2).filter_map(|it| input.get(it[0]..it[1]));
            prop_assert_eq!(documents(pieces), documents([input.as_str()]));
        }

        #[test]
        fn any_text_is_taken(input in any::<String>()) {
            prop_assert_eq!(documents([input.as_str()]), by_lines(&input));
        }

        #[test]
        fn what_can_be_seen_arrives(input in inputs()) {
            // Outside the fence lines nothing visible is dropped: every other visible character is in a document.
            let in_documents: String = documents([input.as_str()]).into_iter().map(|it| it.content).collect();
            let visible = |text: &str| text.chars().filter(|it| it.is_alphanumeric()).count();
            let in_headers: usize = documents([input.as_str()])
                .iter()
                .map(|it| match &it.header {
                    Header::Text => 0,
                    Header::Code { language, info } => visible(info.as_ref().unwrap_or(language)),
                    Header::Citation { path, first, last, language } => {
                        visible(&format!("{first}{last}{path}")) + language.as_deref().map_or(0, visible)
                    }
                })
                .sum();
            prop_assert_eq!(visible(&in_documents) + in_headers, visible(&input));
        }
    }
}
