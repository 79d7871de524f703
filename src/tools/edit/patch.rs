//! Patches in the envelope that some models are trained on: `*** Begin Patch`, a section for each file, `*** End Patch`.
//!
//! A chunk carries no line numbers, only lines that must stand in the file, and perhaps a line somewhere before them. As
//! long as these say one place in one order it is taken; blanks at the ends of lines do not count. What fits twice is
//! refused, unlike in the program that the form comes from, which takes the first place.

use std::collections::HashMap;

use super::text::{plain, rows};

/// The part of a patch that changes one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    Add {
        path: String,
        contents: String,
    },
    Delete {
        path: String,
    },
    Update {
        path: String,
        to: Option<String>,
        chunks: Vec<PatchChunk>,
    },
}

impl Section {
    /// The path of the file, as the patch has it.
    pub fn path(&self) -> &str {
        match self {
            Self::Add { path, .. } | Self::Delete { path } | Self::Update { path, .. } => path,
        }
    }
}

/// Lines of a file replaced by others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PatchChunk {
    /// Lines that stand somewhere before, one after the other.
    pub context: Vec<String>,
    /// Each line with what becomes of it.
    pub lines: Vec<(Sign, String)>,
    /// The lines are the last of the file.
    pub is_end: bool,
    /// Its first line in the patch, counted from 1.
    pub at: usize,
}

/// The sign of a line in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Stays,
    Goes,
    Comes,
}

/// Why a text is no patch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("a patch begins with `*** Begin Patch`")]
    Begin,
    #[error("the patch ends without `*** End Patch`: it may have been cut off")]
    End,
    #[error("the patch changes no file")]
    Empty,
    #[error("line {at} of the patch does not begin a section: `{line}`")]
    Head { at: usize, line: String },
    #[error("line {at} of the patch begins with none of blank, `+` and `-`: `{line}`")]
    Line { at: usize, line: String },
    #[error("the section of `{path}` at line {at} of the patch changes nothing")]
    Idle { at: usize, path: String },
}

/// Why a chunk was not applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    #[error(
        "the lines of the chunk at line {at} of the patch do not follow each other in the file; the first is `{line}`"
    )]
    Absent { at: usize, line: String },
    #[error("the context `{line}` of the chunk at line {at} of the patch is not a line of the file")]
    Context { at: usize, line: String },
    #[error("the chunk at line {at} of the patch fits only before an earlier chunk of the patch")]
    Order { at: usize },
    #[error("the lines of the chunk at line {at} of the patch stand in the file at line {first} and at line {last}")]
    Many { at: usize, first: usize, last: usize },
    #[error("the chunk at line {at} of the patch adds lines after `{line}` without a line that exists there")]
    Bare { at: usize, line: String },
}

impl Misfit {
    /// More than one place fits, rather than none.
    pub fn is_ambiguous(&self) -> bool {
        match self {
            Self::Many { .. } => true,
            Self::Absent { .. } | Self::Context { .. } | Self::Order { .. } | Self::Bare { .. } => false,
        }
    }
}

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move File:";
const TO: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// The sections of a patch, in its order.
pub fn parse(input: &str) -> Result<Vec<Section>, Malformed> {
    let input = plain(input);
    let input = unwrapped(input.trim());
    let lines: Vec<&str> = input.split('\n').collect();
    if lines.first().is_none_or(|it| it.trim() != BEGIN) {
        return Err(Malformed::Begin);
    }
    if lines.last().is_none_or(|it| it.trim() != END) {
        return Err(Malformed::End);
    }
    let mut parser = Parser {
        lines: &lines[..lines.len() - 1],
        at: 1,
    };
    let mut sections = Vec::new();
    while parser.at < parser.lines.len() {
        if parser.lines[parser.at].trim().is_empty() {
            parser.at += 1;
            continue;
        }
        sections.push(parser.section()?);
    }
    if sections.is_empty() {
        return Err(Malformed::Empty);
    }
    Ok(sections)
}

/// A patch without the fence or the here-document around it.
fn unwrapped(input: &str) -> &str {
    let Some((first, rest)) = input.split_once('\n') else {
        return input;
    };
    let is_wrapped = first.starts_with("```") || first.contains("<<");
    match rest.rsplit_once('\n') {
        Some((body, last)) if is_wrapped && !last.starts_with("***") => body.trim(),
        Some(_) | None => input,
    }
}

struct Parser<'a> {
    lines: &'a [&'a str],
    at: usize,
}

impl Parser<'_> {
    fn section(&mut self) -> Result<Section, Malformed> {
        let line = self.lines[self.at];
        let start = self.at + 1;
        self.at += 1;
        let head = |sign: &str| {
            let path = line.trim().strip_prefix(sign)?.trim();
            (!path.is_empty()).then(|| path.to_owned())
        };
        if let Some(path) = head(ADD) {
            let contents = self.added()?;
            return Ok(Section::Add { path, contents });
        }
        if let Some(path) = head(DELETE) {
            return Ok(Section::Delete { path });
        }
        let Some(mut path) = head(UPDATE).or_else(|| head(MOVE)) else {
            return Err(Malformed::Head {
                at: start,
                line: line.to_owned(),
            });
        };
        let next = self.lines.get(self.at).and_then(|it| it.trim().strip_prefix(TO));
        let mut to = next.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
        if to.is_some() {
            self.at += 1;
        } else if line.trim().starts_with(MOVE)
            && let Some((from, target)) = path.clone().split_once(" -> ")
        {
            from.trim().clone_into(&mut path);
            to = Some(target.trim().to_owned());
        }
        let to = to.filter(|it| *it != path);
        let chunks = self.chunks()?;
        if chunks.is_empty() && to.is_none() {
            return Err(Malformed::Idle { at: start, path });
        }
        Ok(Section::Update { path, to, chunks })
    }

    fn added(&mut self) -> Result<String, Malformed> {
        let mut contents = String::new();
        while let Some(line) = self.lines.get(self.at).filter(|it| !it.starts_with("***")) {
            match line.strip_prefix('+') {
                Some(line) => {
                    contents.push_str(line);
                    contents.push('\n');
                }
                // Between sections.
                None if line.trim().is_empty() => {}
                None => return Err(self.odd(line)),
            }
            self.at += 1;
        }
        Ok(contents)
    }

    fn chunks(&mut self) -> Result<Vec<PatchChunk>, Malformed> {
        let mut chunks = Vec::new();
        let mut open = self.chunk();
        // Empty lines in a row: behind the last line of a chunk they only part it from what follows.
        let mut blanks = 0;
        let mut close = |open: &mut PatchChunk, next: PatchChunk, blanks: &mut usize| {
            let mut chunk = std::mem::replace(open, next);
            chunk.lines.truncate(chunk.lines.len() - *blanks);
            *blanks = 0;
            if chunk.lines.iter().any(|it| it.0 != Sign::Stays) {
                chunks.push(chunk);
            }
        };
        while let Some(line) = self.lines.get(self.at).copied() {
            if line.trim() == END_OF_FILE {
                self.at += 1;
                open.is_end = true;
                close(&mut open, self.chunk(), &mut blanks);
                continue;
            }
            if line.starts_with("***") {
                break;
            }
            if let Some(context) = line.strip_prefix("@@") {
                if !open.lines.is_empty() {
                    close(&mut open, self.chunk(), &mut blanks);
                }
                open.context.extend(named(context));
                self.at += 1;
                continue;
            }
            let mut rest = line.chars();
            let sign = match rest.next() {
                // A blank line that lost its blank.
                None | Some(' ') => Sign::Stays,
                Some('+') => Sign::Comes,
                Some('-') => Sign::Goes,
                Some(_) => return Err(self.odd(line)),
            };
            blanks = if line.is_empty() { blanks + 1 } else { 0 };
            open.lines.push((sign, rest.as_str().to_owned()));
            self.at += 1;
        }
        close(&mut open, PatchChunk::default(), &mut blanks);
        Ok(chunks)
    }

    fn chunk(&self) -> PatchChunk {
        PatchChunk {
            at: self.at + 1,
            ..PatchChunk::default()
        }
    }

    fn odd(&self, line: &str) -> Malformed {
        Malformed::Line {
            at: self.at + 1,
            line: line.to_owned(),
        }
    }
}

/// The line that the head of a chunk names. Line numbers, which other forms of patches have there, are no line.
fn named(head: &str) -> Option<String> {
    let head = head.strip_prefix(' ').unwrap_or(head);
    let is_counted = head.trim_start().starts_with('-') && head.contains("@@");
    let line = match head.split_once("@@") {
        Some((_, behind)) if is_counted => behind.strip_prefix(' ').unwrap_or(behind),
        Some((line, behind)) if behind.trim().is_empty() => line,
        Some(_) | None => head,
    };
    (!line.trim().is_empty()).then(|| line.trim_end().to_owned())
}

/// `text`, whose lines end in `\n`, after the chunks.
pub fn apply(text: &str, chunks: &[PatchChunk]) -> Result<String, Misfit> {
    let file = rows(text);
    let index = Index::new(&file);
    let places: Vec<Vec<ChunkPlace>> = chunks.iter().map(|it| index.places(it)).collect::<Result<_, _>>()?;
    let chosen = chosen(chunks, &places)?;
    let mut lines: Vec<&str> = Vec::with_capacity(file.len());
    let mut at = 0;
    for (chunk, place) in chunks.iter().zip(chosen) {
        lines.extend(&file[at..place.start]);
        at = place.start;
        for (sign, line) in chunk.lines.iter().take(place.lines) {
            match sign {
                Sign::Comes => lines.push(line),
                Sign::Goes => at += 1,
                Sign::Stays => {
                    // As the file has it, with its own blanks.
                    lines.push(file[at]);
                    at += 1;
                }
            }
        }
    }
    lines.extend(&file[at..]);
    let mut done = lines.join("\n");
    if !lines.is_empty() && (text.is_empty() || text.ends_with('\n')) {
        done.push('\n');
    }
    Ok(done)
}

/// A place for a chunk: from the line `start` on, with its first `lines` lines, of which `len` are the file's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ChunkPlace {
    start: usize,
    len: usize,
    lines: usize,
}

/// The one way to place the chunks in their order, if there is just one.
fn chosen(chunks: &[PatchChunk], places: &[Vec<ChunkPlace>]) -> Result<Vec<ChunkPlace>, Misfit> {
    let mut first: Vec<ChunkPlace> = Vec::new();
    let mut from = 0;
    for (chunk, places) in chunks.iter().zip(places) {
        let Some(place) = places.iter().find(|it| it.start >= from) else {
            return Err(Misfit::Order { at: chunk.at });
        };
        from = place.start + place.len;
        first.push(*place);
    }
    // The last way is another one if any chunk has two places.
    let mut until = usize::MAX;
    for ((chunk, places), first) in chunks.iter().zip(places).zip(&first).rev() {
        let place = places.iter().rev().find(|it| it.start + it.len <= until);
        let last = place.unwrap_or(first);
        if last.start != first.start {
            return Err(Misfit::Many {
                at: chunk.at,
                first: first.start + 1,
                last: last.start + 1,
            });
        }
        until = last.start;
    }
    Ok(first)
}

/// The positions of each line of a file, blanks at its end apart.
struct Index<'a> {
    file: &'a [&'a str],
    lines: HashMap<&'a str, Vec<usize>>,
    /// Blanks at both ends apart.
    bare: HashMap<&'a str, Vec<usize>>,
}

impl<'a> Index<'a> {
    fn new(file: &'a [&'a str]) -> Self {
        let mut lines: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut bare: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, line) in file.iter().enumerate() {
            lines.entry(line.trim_end()).or_default().push(at);
            bare.entry(line.trim()).or_default().push(at);
        }
        Self { file, lines, bare }
    }

    /// All places of a chunk, first to last.
    fn places(&self, chunk: &PatchChunk) -> Result<Vec<ChunkPlace>, Misfit> {
        let count = chunk.lines.len();
        let mut old: Vec<&str> = Vec::new();
        old.extend(
            chunk
                .lines
                .iter()
                .filter(|it| it.0 != Sign::Comes)
                .map(|it| it.1.as_str()),
        );
        if old.is_empty() {
            return match chunk.context.last() {
                Some(line) if !chunk.is_end => Err(Misfit::Bare {
                    at: chunk.at,
                    line: line.clone(),
                }),
                Some(_) | None => Ok(vec![ChunkPlace {
                    start: self.file.len(),
                    len: 0,
                    lines: count,
                }]),
            };
        }
        let mut lines = count;
        let mut starts = self.starts(&old);
        if starts.is_empty()
            && let Some((Sign::Stays, last)) = chunk.lines.last()
            && last.trim().is_empty()
            && old.len() > 1
        {
            // An empty line that stands for the end of the last one.
            old.pop();
            lines -= 1;
            starts = self.starts(&old);
        }
        if chunk.is_end {
            starts.retain(|it| it + old.len() == self.file.len());
        }
        if starts.is_empty() {
            return Err(Misfit::Absent {
                at: chunk.at,
                line: old[0].to_owned(),
            });
        }
        if !chunk.context.is_empty() {
            starts = self.behind(chunk, &starts)?;
        }
        let place = |start| ChunkPlace {
            start,
            len: old.len(),
            lines,
        };
        Ok(starts.into_iter().map(place).collect())
    }

    /// Positions where these lines follow each other in the file; only those with the same blanks at the ends, if there
    /// are any.
    fn starts(&self, old: &[&str]) -> Vec<usize> {
        // The rarest line has the fewest places to look at.
        let rarest = old
            .iter()
            .enumerate()
            .min_by_key(|it| self.lines.get(it.1.trim_end()).map_or(0, Vec::len));
        let Some((offset, line)) = rarest else {
            return Vec::new();
        };
        let none = Vec::new();
        let found = self.lines.get(line.trim_end()).unwrap_or(&none);
        let fits = |start: &usize| {
            let there = self.file.get(*start..*start + old.len());
            there.is_some_and(|it| it.iter().zip(old).all(|(a, b)| a.trim_end() == b.trim_end()))
        };
        let starts: Vec<usize> = found
            .iter()
            .filter_map(|it| it.checked_sub(offset))
            .filter(fits)
            .collect();
        let exact = |start: &usize| self.file[*start..*start + old.len()] == *old;
        let same: Vec<usize> = starts.iter().copied().filter(exact).collect();
        if same.is_empty() { starts } else { same }
    }

    /// The places of a chunk that come first after its context.
    fn behind(&self, chunk: &PatchChunk, starts: &[usize]) -> Result<Vec<usize>, Misfit> {
        let mut reached: Option<Vec<usize>> = None;
        for line in &chunk.context {
            let found = self.lines.get(line.trim_end()).or_else(|| self.bare.get(line.trim()));
            let Some(found) = found else {
                return Err(Misfit::Context {
                    at: chunk.at,
                    line: line.clone(),
                });
            };
            let next = |from: &usize| found.get(found.partition_point(|it| it <= from)).copied();
            reached = Some(match reached {
                None => found.clone(),
                Some(reached) => reached.iter().filter_map(next).collect(),
            });
        }
        // The context may be told again as the first line of the chunk.
        let next = |from: usize| starts.get(starts.partition_point(|it| *it < from)).copied();
        let mut behind: Vec<usize> = reached.unwrap_or_default().into_iter().filter_map(next).collect();
        behind.dedup();
        match (behind.is_empty(), chunk.context.last()) {
            (true, Some(line)) => Err(Misfit::Context {
                at: chunk.at,
                line: line.clone(),
            }),
            (true, None) | (false, _) => Ok(behind),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FILE: &str = "class A:\n    def f(self):\n        return 1\n\n    def g(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 2\n";

    fn update(body: &str) -> Result<String, Misfit> {
        update_of(FILE, body)
    }

    fn update_of(text: &str, body: &str) -> Result<String, Misfit> {
        let patch = format!("*** Begin Patch\n*** Update File: a.py\n{body}*** End Patch");
        match parse(&patch).expect("a patch").remove(0) {
            Section::Update { chunks, .. } => apply(text, &chunks),
            other => panic!("{other:?}"),
        }
    }

    /// The file with a text in it replaced.
    fn with(old: &str, new: &str) -> String {
        assert_eq!(FILE.matches(old).count(), 1, "{old}");
        FILE.replace(old, new)
    }

    #[test]
    fn a_patch_has_sections() {
        let patch = "*** Begin Patch\n*** Add File: new/a.txt\n+one\n+\n+two\n*** Delete File: old.txt\n\
                     *** Update File: src/a.rs\n*** Move to: src/b.rs\n@@ fn a() {\n ctx\n-old\n+new\n@@\n-x\n*** End of File\n\
                     *** Update File: moved.rs\n*** Move to: here.rs\n*** Move File: one -> two\n*** End Patch\n";
        let sections = parse(patch).expect("a patch");
        let line = |sign, line: &str| (sign, line.to_owned());
        assert_eq!(
            sections,
            [
                Section::Add {
                    path: "new/a.txt".into(),
                    contents: "one\n\ntwo\n".into()
                },
                Section::Delete { path: "old.txt".into() },
                Section::Update {
                    path: "src/a.rs".into(),
                    to: Some("src/b.rs".into()),
                    chunks: vec![
                        PatchChunk {
                            context: vec!["fn a() {".into()],
                            lines: vec![
                                line(Sign::Stays, "ctx"),
                                line(Sign::Goes, "old"),
                                line(Sign::Comes, "new")
                            ],
                            is_end: false,
                            at: 9,
                        },
                        PatchChunk {
                            context: vec![],
                            lines: vec![line(Sign::Goes, "x")],
                            is_end: true,
                            at: 13,
                        },
                    ],
                },
                Section::Update {
                    path: "moved.rs".into(),
                    to: Some("here.rs".into()),
                    chunks: vec![]
                },
                Section::Update {
                    path: "one".into(),
                    to: Some("two".into()),
                    chunks: vec![]
                },
            ]
        );
        for wrapped in [
            format!("```\n{patch}```"),
            format!("apply_patch <<'EOF'\n{patch}EOF\n"),
            patch.replace('\n', "\r\n"),
        ] {
            assert_eq!(parse(&wrapped).as_ref(), Ok(&sections), "{wrapped}");
        }
    }

    #[test]
    fn what_is_no_patch_is_refused() {
        let inside = |body: &str| parse(&format!("*** Begin Patch\n{body}\n*** End Patch"));
        assert_eq!(parse(""), Err(Malformed::Begin));
        assert_eq!(parse("--- a\n+++ b\n"), Err(Malformed::Begin));
        assert_eq!(parse("*** Begin Patch\n*** Add File: a\n+x\n"), Err(Malformed::End));
        assert_eq!(inside(""), Err(Malformed::Empty));
        assert_eq!(
            inside("*** Copy File: a"),
            Err(Malformed::Head {
                at: 2,
                line: "*** Copy File: a".into()
            })
        );
        assert!(matches!(inside("*** Add File:"), Err(Malformed::Head { .. })));
        assert_eq!(
            inside("*** Add File: a\n+x\ny"),
            Err(Malformed::Line {
                at: 4,
                line: "y".into()
            })
        );
        assert_eq!(
            inside("*** Update File: a\n@@\n x\ny"),
            Err(Malformed::Line {
                at: 5,
                line: "y".into()
            })
        );
        assert!(matches!(
            inside("*** Update File: a\n x"),
            Err(Malformed::Idle { at: 2, .. })
        ));
    }

    #[test]
    fn lines_that_stand_once_need_no_context() {
        assert_eq!(
            update("@@\n-        return 2\n+        return 3\n"),
            Ok(with("return 2", "return 3"))
        );
        // The first chunk needs no head either.
        assert_eq!(
            update(" class B:\n+    x = 1\n"),
            Ok(with("class B:\n", "class B:\n    x = 1\n"))
        );
        // Blanks at the ends of lines do not count, and stay.
        assert_eq!(
            update_of("a  \nb	\nc\n", " a\n-b\n+B\n c \n"),
            Ok("a  \nB\nc\n".to_owned())
        );
        assert_eq!(update_of("a\nb", " a\n-b\n+c\n"), Ok("a\nc".to_owned()));
        assert_eq!(update_of("a\n", "-a\n"), Ok(String::new()));
    }

    #[test]
    fn what_stands_twice_is_refused() {
        assert_eq!(
            update("-        return 1\n+        return 3\n"),
            Err(Misfit::Many {
                at: 3,
                first: 3,
                last: 6
            })
        );
        let context = |line: &str| update(&format!("@@ {line}\n-        return 1\n+        return 3\n"));
        assert_eq!(
            context("    def g(self):"),
            Ok(with("def g(self):\n        return 1", "def g(self):\n        return 3"))
        );
        // The context without its indentation.
        assert_eq!(context("def g(self):"), context("    def g(self):"));
        assert_eq!(
            context("class A:"),
            Ok(with("def f(self):\n        return 1", "def f(self):\n        return 3"))
        );
        // Two heads, one inside of the other.
        assert_eq!(
            update("@@ class B:\n@@     def f(self):\n+        print()\n         return 2\n"),
            Ok(with("return 2", "print()\n        return 2"))
        );
        // The order of the chunks says which one is meant.
        assert_eq!(
            update("@@\n-        return 1\n+        return 3\n@@\n-    def g(self):\n+    def h(self):\n"),
            Ok(FILE.replacen("return 1", "return 3", 1).replace("def g", "def h"))
        );
    }

    #[test]
    fn what_stands_nowhere_is_refused() {
        assert!(matches!(update("-nothing\n+x\n"), Err(Misfit::Absent { at: 3, .. })));
        assert!(matches!(update("-    return 2\n+x\n"), Err(Misfit::Absent { .. })));
        assert!(matches!(
            update("@@ def h(self):\n-        return 1\n+x\n"),
            Err(Misfit::Context { .. })
        ));
        assert!(matches!(
            update("@@ class B:\n-        return 1\n+x\n"),
            Err(Misfit::Context { .. })
        ));
        assert!(matches!(
            update("-        return 2\n+x\n@@\n-class A:\n+class C:\n"),
            Err(Misfit::Order { at: 5 })
        ));
        assert!(matches!(update("@@ class B:\n+    x = 1\n"), Err(Misfit::Bare { .. })));
    }

    #[test]
    fn the_end_of_the_file_is_a_place() {
        assert_eq!(
            update("+class C:\n+    pass\n"),
            Ok(format!("{FILE}class C:\n    pass\n"))
        );
        assert_eq!(update("@@\n+x\n*** End of File\n"), Ok(format!("{FILE}x\n")));
        assert_eq!(
            update_of("a\nb\na\n", " a\n+c\n*** End of File\n"),
            Ok("a\nb\na\nc\n".to_owned())
        );
        assert!(matches!(
            update_of("a\nb\n", " a\n+c\n*** End of File\n"),
            Err(Misfit::Absent { .. })
        ));
        assert_eq!(update_of("", "+a\n"), Ok("a\n".to_owned()));
        // Heads as of a unified diff, and an empty line at the end.
        assert_eq!(
            update_of("a\nb\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n\n"),
            Ok("a\nc\n".to_owned())
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        #[test]
        fn a_chunk_with_the_whole_file_makes_what_it_says(
            old in proptest::collection::vec("[ab]{0,2}", 1..8),
            new in proptest::collection::vec("[ab]{0,2}", 1..8),
        ) {
            prop_assume!(old != new);
            let text: String = old.iter().map(|it| format!("{it}\n")).collect();
            let wants: String = new.iter().map(|it| format!("{it}\n")).collect();
            let mut body = String::new();
            body.extend(old.iter().map(|it| format!("-{it}\n")));
            body.extend(new.iter().map(|it| format!("+{it}\n")));
            prop_assert_eq!(update_of(&text, &body), Ok(wants));
        }

        #[test]
        fn any_text_is_a_patch_or_is_not(input in "((\\*\\*\\* (Begin Patch|End Patch|Update File: a|Add File: b|End of File|Move to: c)|[ +@-]{0,2}[ab]?)\n){0,12}") {
            if let Ok(sections) = parse(&input) {
                for section in sections {
                    if let Section::Update { chunks, .. } = section {
                        let _ = apply("a\nb\n\na\n", &chunks);
                    }
                }
            }
        }
    }
}
