//! Findings, and reports of them as text and JSON.

use std::{collections::HashMap, fmt::Write as _};

use serde_json::{Value, json};

use super::rule::Rule;
use crate::{
    protocol::Severity,
    text::{Sanitized, figure, visible_line, width},
};

/// A rule that is broken everywhere is shown so often; then it is counted.
const MOST_OF_A_RULE: usize = 20;

/// As much of the bytes is shown.
const EXCERPT_BYTES: usize = 160;

/// Bytes of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteRange {
    /// From the first byte of the body.
    pub offset: u64,
    pub length: u64,
}

/// A rule that does not hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub rule: &'static Rule,
    /// Description of the finding, in a sentence without a full stop.
    pub said: Sanitized,
    pub document: Option<Sanitized>,
    /// `None`: the answer as a whole, or its head.
    pub place: Option<ByteRange>,
    pub excerpt: Sanitized,
}

/// Findings of one answer.
#[derive(Debug, Default)]
pub struct Findings {
    pub list: Vec<Finding>,
    counts: HashMap<&'static str, usize>,
    totals: [usize; 3],
}

impl Findings {
    pub fn add(
        &mut self,
        rule: &'static Rule,
        said: &str,
        document: Option<&str>,
        place: Option<ByteRange>,
        bytes: &str,
    ) {
        self.totals[rule.severity as usize] += 1;
        let count = self.counts.entry(rule.id).or_default();
        *count += 1;
        if *count <= MOST_OF_A_RULE {
            self.list.push(Finding {
                rule,
                said: visible_line(beginning(said, 2 * EXCERPT_BYTES)),
                document: document.map(|it| visible_line(beginning(it, EXCERPT_BYTES))),
                place,
                excerpt: excerpt(bytes),
            });
        }
    }

    pub fn count(&self, severity: Severity) -> usize {
        self.totals[severity as usize]
    }

    /// Returns the rules that were broken too often to list each time, with the number of times.
    pub fn left_out(&self) -> Vec<(&'static str, usize)> {
        let mut left: Vec<_> = self.counts.iter().filter(|it| *it.1 > MOST_OF_A_RULE).collect();
        left.sort();
        left.into_iter()
            .map(|(id, count)| (*id, count - MOST_OF_A_RULE))
            .collect()
    }

    /// The ids of the rules that were broken, each once, in the order of the findings.
    #[cfg(test)]
    pub fn rules(&self) -> Vec<&'static str> {
        let mut ids: Vec<&'static str> = Vec::new();
        for finding in &self.list {
            if !ids.contains(&finding.rule.id) {
                ids.push(finding.rule.id);
            }
        }
        ids
    }
}

fn beginning(text: &str, most_bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(most_bytes)).unwrap_or(text)
}

fn excerpt(bytes: &str) -> Sanitized {
    let start = beginning(bytes, EXCERPT_BYTES);
    // JSON that was laid out over lines is shown on one.
    let rows: Vec<_> = start
        .lines()
        .enumerate()
        .map(|(at, row)| if at == 0 { row } else { row.trim_start() })
        .collect();
    let mut shown = visible_line(&rows.join(" ")).into_string();
    if start.len() < bytes.len() {
        shown.push('…');
    }
    Sanitized::from(shown)
}

/// One answer that was judged.
#[derive(Debug)]
pub struct Judged {
    /// Name of the request, or of the file.
    pub what: String,
    /// `stream in dialect A`, `object`, `refusal`.
    pub form: String,
    pub events: usize,
    pub documents: usize,
    pub bytes: u64,
    pub findings: Findings,
}

/// Everything that was judged.
#[derive(Debug, Default)]
pub struct Report {
    pub target: String,
    pub answers: Vec<Judged>,
}

impl Report {
    pub fn count(&self, severity: Severity) -> usize {
        self.answers.iter().map(|it| it.findings.count(severity)).sum()
    }

    /// For a person, in rows of about `columns` cells.
    pub fn to_text(&self, columns: usize) -> String {
        let mut out = String::new();
        for answer in &self.answers {
            // Writing to a string does not fail.
            let _ = writeln!(
                out,
                "{}: {}, {}, {}, {}",
                visible_line(&answer.what),
                answer.form,
                figure::count(answer.events, "event", "events"),
                figure::count(answer.documents, "document", "documents"),
                figure::bytes(answer.bytes),
            );
            for finding in &answer.findings.list {
                finding.write(&mut out, columns);
            }
            for (id, more) in answer.findings.left_out() {
                let _ = writeln!(out, "  … and {id} {more} times more");
            }
        }
        let verdict = match (self.count(Severity::Error), self.count(Severity::Warning)) {
            (0, 0) => "conforms",
            (0, _) => "conforms, with warnings",
            (_, _) => "does not conform",
        };
        let _ = writeln!(
            out,
            "{} {verdict}: {}, {}, {}",
            visible_line(&self.target),
            figure::count(self.count(Severity::Error), "error", "errors"),
            figure::count(self.count(Severity::Warning), "warning", "warnings"),
            figure::count(self.count(Severity::Info), "note", "notes"),
        );
        out
    }

    /// The report as JSON, for a program to read.
    pub fn to_json(&self) -> Value {
        let answers: Vec<_> = self
            .answers
            .iter()
            .map(|answer| {
                let findings: Vec<_> = answer.findings.list.iter().map(Finding::to_json).collect();
                let left: serde_json::Map<_, _> = answer
                    .findings
                    .left_out()
                    .into_iter()
                    .map(|(id, count)| (id.to_owned(), count.into()))
                    .collect();
                json!({
                    "what": answer.what, "form": answer.form, "events": answer.events,
                    "documents": answer.documents, "bytes": answer.bytes, "findings": findings, "leftOut": left,
                })
            })
            .collect();
        json!({
            "target": self.target,
            "conforms": self.count(Severity::Error) == 0,
            "errors": self.count(Severity::Error),
            "warnings": self.count(Severity::Warning),
            "notes": self.count(Severity::Info),
            "answers": answers,
        })
    }
}

/// As the verdict counts them.
pub fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

impl Finding {
    fn write(&self, out: &mut String, columns: usize) {
        let place = self.place.map(|it| format!("  byte {}", it.offset)).unwrap_or_default();
        let document = self.document.as_ref().map(|it| format!("  {it}")).unwrap_or_default();
        let rule = self.rule;
        let _ = writeln!(
            out,
            "  {:<7} {}  §{}{place}{document}",
            word(rule.severity),
            rule.id,
            rule.section
        );
        let _ = writeln!(out, "          {}", self.said);
        let _ = writeln!(out, "          rule: {}", rule.text);
        if !self.excerpt.is_empty() {
            let shown = width::cut_end(&self.excerpt, columns.saturating_sub(12).max(20));
            let _ = writeln!(out, "          > {shown}");
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "rule": self.rule.id,
            "section": self.rule.section,
            "severity": word(self.rule.severity),
            "text": self.rule.text,
            "said": self.said.as_str(),
            "document": self.document.as_deref(),
            "offset": self.place.map(|it| it.offset),
            "length": self.place.map(|it| it.length),
            "excerpt": self.excerpt.as_str(),
        })
    }
}
