//! How often a sketch is merged rightly, refused, and merged wrongly: thousands of edits of real sources, made up from a
//! fixed seed, written as a careful model would write them.
//!
//! Each edit is known beforehand, so a merge that gives anything else is wrong. Two fifths of the text that edits put in is
//! copied from elsewhere in the same file, which is what leads a merge astray: the same lines stand in two places.

use std::{collections::BTreeMap, fmt::Write as _, path::Path, thread};

use sheaf::tools::edit::merge::merge;

use crate::source::root;

const SEED: u64 = 0x5eaf_ed17;
/// Share of the edits' new text that stands elsewhere in the file, in percent.
const COPIED: u64 = 40;

/// splitmix64: the same edits everywhere and always.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn percent(&mut self, share: u64) -> bool {
        self.next() % 100 < share
    }
}

/// Lines `from..until` become `new`.
pub struct Hunk {
    pub from: usize,
    pub until: usize,
    pub new: Vec<String>,
}

/// New lines for a place: copied from elsewhere, the old ones reworded, or such as stand nowhere.
fn invent(dice: &mut Dice, file: &[&str], from: usize, until: usize) -> Vec<String> {
    let count = 1 + dice.below(8);
    if dice.percent(COPIED) {
        let start = dice.below(file.len() - count);
        return file[start..start + count].iter().map(|it| (*it).to_owned()).collect();
    }
    let near = file[from.saturating_sub(1)];
    let indent = &near[..near.len() - near.trim_start().len()];
    if from < until && dice.percent(50) {
        let reword = |line: &&str| {
            let word = line.split(|it: char| !it.is_alphanumeric()).find(|it| it.len() > 3);
            word.map_or_else(|| (*line).to_owned(), |it| line.replacen(it, &format!("{it}_new"), 1))
        };
        return file[from..until].iter().map(reword).collect();
    }
    (0..count)
        .map(|_| format!("{indent}call_{}(value, {});", dice.below(1000), dice.below(1000)))
        .collect()
}

/// One to three changes of a file, apart from each other and from its ends.
pub fn edit(dice: &mut Dice, file: &[&str]) -> Vec<Hunk> {
    let mut hunks: Vec<Hunk> = Vec::new();
    for _ in 0..=dice.below(3) {
        let (removed, is_insertion) = match dice.below(10) {
            0..3 => (0, true),
            3..5 => (1 + dice.below(5), false),
            _ => (1 + dice.below(6), true),
        };
        let from = 1 + dice.below(file.len() - removed - 1);
        let until = from + removed;
        if hunks.iter().any(|it| from <= it.until + 1 && it.from <= until + 1) {
            continue;
        }
        let new = if is_insertion {
            invent(dice, file, from, until)
        } else {
            Vec::new()
        };
        let is_same = new.iter().eq(&file[from..until]);
        if !is_same {
            hunks.push(Hunk { from, until, new });
        }
    }
    hunks.sort_by_key(|it| it.from);
    hunks
}

pub fn applied(file: &[&str], hunks: &[Hunk]) -> String {
    let mut lines: Vec<&str> = Vec::with_capacity(file.len() + 30);
    let mut at = 0;
    for hunk in hunks {
        lines.extend(&file[at..hunk.from]);
        lines.extend(hunk.new.iter().map(String::as_str));
        at = hunk.until;
    }
    lines.extend(&file[at..]);
    lines.join("\n") + "\n"
}

/// The sketch of an edit, with so many lines of context on each side of a change.
pub fn sketch(dice: &mut Dice, file: &[&str], hunks: &[Hunk], context: usize, mark: &str) -> String {
    let mut text = String::new();
    let mut push = |line: &str| {
        text.push_str(line);
        text.push('\n');
    };
    // Models forget the outermost marks.
    if dice.percent(75) {
        push(mark);
    }
    let mut at = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let start = hunk.from.saturating_sub(context);
        if index > 0 && start > at {
            push(mark);
        }
        file[start.max(at)..hunk.from].iter().for_each(|it| push(it));
        hunk.new.iter().for_each(|it| push(it));
        let next = hunks.get(index + 1).map_or(file.len(), |it| it.from);
        at = (hunk.until + context).min(next);
        file[hunk.until..at].iter().for_each(|it| push(it));
    }
    if dice.percent(75) {
        push(mark);
    }
    text
}

#[derive(Clone, Copy, Default)]
struct Count {
    right: usize,
    refused: usize,
    wrong: usize,
}

impl Count {
    fn all(self) -> usize {
        self.right + self.refused + self.wrong
    }

    fn share(self, count: usize) -> f64 {
        100.0 * count as f64 / self.all() as f64
    }
}

/// Merges `edits` sketches, spread evenly over the sources.
fn measure(sources: &[(&str, String)], edits: usize, context: usize) -> BTreeMap<&'static str, Count> {
    let mut counts: BTreeMap<&'static str, Count> = BTreeMap::new();
    let files: Vec<Vec<&str>> = sources.iter().map(|it| it.1.lines().collect()).collect();
    // The same edits for each width of the context.
    let mut dice = Dice(SEED);
    for round in 0..edits {
        let (name, source) = &sources[round % sources.len()];
        let (language, mark) = match name.rsplit('.').next() {
            Some("py") => ("python", "# ... existing code ..."),
            Some("js") => ("javascript", "// ... existing code ..."),
            _ => ("rust", "// ... existing code ..."),
        };
        let file = &files[round % files.len()];
        let mut dice = Dice(dice.next());
        let hunks = edit(&mut dice, file);
        let wants = applied(file, &hunks);
        if hunks.is_empty() || wants == *source {
            continue;
        }
        let sketch = sketch(&mut dice, file, &hunks, context, mark);
        let count = counts.entry(language).or_default();
        match merge(source, &sketch, language) {
            Ok(text) if text == wants => count.right += 1,
            Ok(_) => count.wrong += 1,
            Err(_) => count.refused += 1,
        }
    }
    counts
}

#[test]
fn sketches_are_merged_rightly_or_refused() {
    let folder = root().join("tests/fixtures/merge");
    let names = [
        "command.js",
        "encode.rs",
        "types.py",
        "help.js",
        "framed_read.rs",
        "parser.py",
        "response.js",
        "table.rs",
        "validators.py",
        "application.js",
        "help_template.rs",
        "_funcs.py",
    ];
    let read = |name: &&'static str| {
        let text = std::fs::read_to_string(Path::new(&folder).join(name)).expect("a source");
        (*name, text)
    };
    let sources: Vec<_> = names.iter().map(read).collect();
    // A few edits come to nothing and are not counted.
    let widths = [(1, 600), (2, 4200), (3, 4200), (5, 600)];
    let counts: Vec<_> = thread::scope(|scope| {
        let started: Vec<_> = widths
            .map(|(context, edits)| {
                let sources = &sources;
                scope.spawn(move || measure(sources, edits, context))
            })
            .into_iter()
            .collect();
        started
            .into_iter()
            .map(|it| it.join().expect("a measurement"))
            .collect()
    });
    let mut table = String::from("context  language     edits   right  refused   wrong\n");
    let mut totals = BTreeMap::new();
    for ((context, _), counts) in widths.iter().zip(counts) {
        let mut total = Count::default();
        for count in counts.values() {
            total.right += count.right;
            total.refused += count.refused;
            total.wrong += count.wrong;
        }
        for (language, it) in counts.iter().chain([(&"all", &total)]) {
            let _ = writeln!(
                table,
                "{context:>7}  {language:<10} {:>7} {:>6.1}% {:>7.1}% {:>6.2}%",
                it.all(),
                it.share(it.right),
                it.share(it.refused),
                it.share(it.wrong),
            );
        }
        totals.insert(*context, total);
    }
    println!("{table}");
    for (context, least) in [(2, 60.0), (3, 80.0)] {
        let it = totals[&context];
        assert!(it.all() >= 4000, "{} edits\n{table}", it.all());
        assert!(it.share(it.right) >= least, "{context} lines of context\n{table}");
    }
    let it = totals[&3];
    assert!(it.share(it.wrong) <= 0.1, "{table}");
}
