//! Sequence diagrams: who says what to whom, in order.

use super::{canvas::Canvas, label};
use crate::text::width::width;

/// More is read better as its source.
const MOST_PARTICIPANTS: usize = 12;
const MOST_STEPS: usize = 80;

/// Arrows, the longest first: whether they are dashed, and what their head is.
const ARROWS: [(&str, bool, &str); 8] = [
    ("-->>", true, "▶"),
    ("->>", false, "▶"),
    ("--x", true, "✗"),
    ("--)", true, "▷"),
    ("-x", false, "✗"),
    ("-)", false, "▷"),
    ("-->", true, ""),
    ("->", false, ""),
];

enum Step {
    Message {
        from: usize,
        to: usize,
        is_dashed: bool,
        head: &'static str,
        text: String,
    },
    /// Over the lines from the first to the last participant.
    Note(usize, usize, String),
    /// A block begins, goes on or ends.
    Block(String),
}

#[derive(Default)]
struct Diagram {
    ids: Vec<String>,
    labels: Vec<String>,
    steps: Vec<Step>,
}

impl Diagram {
    fn participant(&mut self, id: &str) -> Option<usize> {
        let id = id.trim().trim_start_matches(['+', '-']).trim();
        let is_name = !id.is_empty() && id.chars().all(|c| c.is_alphanumeric() || "_ ./".contains(c));
        if !is_name {
            return None;
        }
        if let Some(at) = self.ids.iter().position(|it| it == id) {
            return Some(at);
        }
        self.ids.push(id.to_owned());
        self.labels.push(id.to_owned());
        (self.ids.len() <= MOST_PARTICIPANTS).then(|| self.ids.len() - 1)
    }

    fn read(&mut self, line: &str) -> Option<()> {
        let line = line.trim_end_matches(';').trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "participant" | "actor" => {
                let (id, name) = rest.split_once(" as ").unwrap_or((rest, rest));
                let at = self.participant(id)?;
                *self.labels.get_mut(at)? = label(name);
            }
            "activate" | "deactivate" | "autonumber" => {}
            "loop" | "alt" | "opt" | "else" | "par" | "and" | "break" | "critical" => {
                self.steps
                    .push(Step::Block(format!("{word} {}", label(rest)).trim().to_owned()));
            }
            "end" => self.steps.push(Step::Block("end".to_owned())),
            "Note" | "note" => {
                let (place, text) = rest.split_once(':')?;
                let place = place.trim();
                let names = ["over ", "left of ", "right of "];
                let names = names.iter().find_map(|it| place.strip_prefix(it))?;
                let (first, last) = names.split_once(',').unwrap_or((names, names));
                let (first, last) = (self.participant(first)?, self.participant(last)?);
                self.steps
                    .push(Step::Note(first.min(last), first.max(last), label(text)));
            }
            _ => {
                let (from_to, text) = line.split_once(':').unwrap_or((line, ""));
                let found = ARROWS.iter().find_map(|it| Some((it, from_to.split_once(it.0)?)));
                let ((_, is_dashed, head), (from, to)) = found?;
                let (from, to) = (self.participant(from)?, self.participant(to)?);
                self.steps.push(Step::Message {
                    from,
                    to,
                    is_dashed: *is_dashed,
                    head,
                    text: label(text),
                });
            }
        }
        (self.steps.len() <= MOST_STEPS).then_some(())
    }

    /// The column of each line of life.
    fn columns(&self) -> Vec<usize> {
        let half = |at: usize| self.labels.get(at).map_or(0, |it| width(it) / 2 + 2);
        let mut gaps: Vec<usize> = (1..self.ids.len()).map(|at| half(at - 1) + half(at) + 2).collect();
        for step in &self.steps {
            let (first, last, wanted) = match step {
                Step::Message { from, to, text, .. } if from != to => (*from.min(to), *from.max(to), width(text) + 4),
                // What somebody says to itself stands at the right of its line.
                Step::Message { from, text, .. } => (*from, from + 1, width(text) + 7),
                Step::Note(first, last, text) if first != last => (*first, *last, width(text) + 2),
                Step::Note(at, _, text) => {
                    for side in [at.wrapping_sub(1), *at] {
                        if let Some(gap) = gaps.get_mut(side) {
                            *gap = (*gap).max(width(text) / 2 + 3);
                        }
                    }
                    continue;
                }
                Step::Block(_) => continue,
            };
            let Some(range) = gaps.get_mut(first..last.min(self.ids.len() - 1)) else {
                continue;
            };
            let there: usize = range.iter().sum();
            if let Some(gap) = range.last_mut() {
                *gap += wanted.saturating_sub(there);
            }
        }
        let mut columns = vec![half(0)];
        for gap in gaps {
            columns.push(columns.last().copied().unwrap_or_default() + gap);
        }
        columns
    }
}

pub fn draw(lines: &[&str]) -> Option<Canvas> {
    let mut diagram = Diagram::default();
    for line in lines {
        diagram.read(line)?;
    }
    if diagram.ids.is_empty() {
        return None;
    }
    let columns = diagram.columns();
    let mut canvas = Canvas::default();
    for (label, at) in diagram.labels.iter().zip(&columns) {
        let x = at.saturating_sub(width(label) / 2 + 2);
        canvas.frame(x, 0, label, ["┌", "┐", "┘", "└"]);
        canvas.write(*at, 2, "┬");
    }
    let right = columns.last().copied().unwrap_or_default();
    let mut y = 3;
    for step in &diagram.steps {
        let rows = match step {
            Step::Message { .. } => 2,
            Step::Note(..) | Step::Block(_) => 1,
        };
        for row in y..y + rows {
            for at in &columns {
                canvas.write(*at, row, "│");
            }
        }
        match step {
            Step::Message {
                from,
                to,
                is_dashed,
                head,
                text,
            } => {
                let (a, b) = (*columns.get(*from)?, *columns.get(*to)?);
                let line = if *is_dashed { "╌" } else { "─" };
                if a == b {
                    canvas.write(a + 1, y, &format!("{}╮ {text}", line.repeat(2)));
                    let head = if head.is_empty() { line } else { back(head) };
                    canvas.write(a + 1, y + 1, &format!("{head}{line}╯"));
                } else {
                    let (left, between) = (a.min(b), a.abs_diff(b) - 1);
                    canvas.write(left + 2, y, text);
                    let body = line.repeat(between.saturating_sub(usize::from(!head.is_empty())));
                    let arrow = if a < b {
                        format!("{body}{head}")
                    } else {
                        format!("{}{body}", back(head))
                    };
                    canvas.write(left + 1, y + 1, &arrow);
                }
            }
            Step::Note(first, last, text) => {
                let (a, b) = (*columns.get(*first)?, *columns.get(*last)?);
                let wide = width(text) + 2;
                let x = usize::midpoint(a, b).saturating_sub(wide / 2);
                canvas.write(x, y, &format!("[{text}]"));
            }
            Step::Block(text) => {
                let text = format!("┄ {text} ");
                let rest = (right + 1).saturating_sub(width(&text));
                canvas.write(0, y, &format!("{text}{}", "┄".repeat(rest)));
            }
        }
        y += rows;
    }
    for at in &columns {
        canvas.write(*at, y, "╵");
    }
    Some(canvas)
}

/// The head of an arrow to the left.
fn back(head: &str) -> &str {
    match head {
        "▶" => "◀",
        "▷" => "◁",
        other => other,
    }
}
