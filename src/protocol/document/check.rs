//! What checkers and language servers reported of a change, in its document.

use serde_json::{Map, Value, json};

use super::{
    Member,
    MemberForm::{Count, Flag, List, Object, Text},
    Need::{Always, Free},
    Shape, member,
};

/// The member that holds it.
pub const CHECKED: &str = "checked";

static PROBLEM: Shape = Shape {
    name: "Problem",
    about: "A problem that a checker or a language server reports.",
    members: &[
        ("filePath", Text, Always, "file, relative to the workspace"),
        ("line", Count(1), Always, "line, from 1"),
        ("column", Count(1), Always, "column in characters, from 1"),
        ("severity", Text, Always, "`error` or `warning`"),
        ("message", Text, Always, "what is wrong"),
        ("source", Text, Always, "program that reports it"),
        ("code", Text, Free, "its code of the problem"),
    ],
};

static CHECK: Shape = Shape {
    name: "ChangeCheck",
    about: "What checkers and language servers reported of a change.",
    members: &[
        (
            "isPending",
            Flag,
            Free,
            "true until the changes of the step have been looked at; where the answer has ended, they were not",
        ),
        ("isChecked", Flag, Always, "true if something has looked at the change"),
        (
            "newProblems",
            Count(0),
            Always,
            "number of problems that were not there before",
        ),
        ("fixedProblems", Count(0), Always, "number of problems that are gone"),
        (
            "openProblems",
            Count(0),
            Free,
            "number of problems that earlier changes of the answer have brought and that are left",
        ),
        (
            "problems",
            List(&Object(&PROBLEM)),
            Always,
            "the new problems, at most 20",
        ),
        (
            "olderProblems",
            List(&Object(&PROBLEM)),
            Free,
            "problems that may be older than the change, at most 20",
        ),
        ("olderCount", Count(0), Free, "number of all problems that may be older"),
        ("unchecked", List(&Text), Always, "why files were not looked at"),
    ],
};

pub(super) const MEMBER: Member = (
    CHECKED,
    Object(&CHECK),
    Free,
    "what checkers and language servers reported of the change of the call, on its last document; the last document of a step also \
     has what they reported of other files",
);

/// The member that is true until a change has been looked at.
const PENDING: &str = "isPending";

/// The check of a change that has not been looked at.
pub fn pending_check() -> Value {
    let mut check = unchecked(&[]);
    check[PENDING] = true.into();
    check
}

/// The check of a change that nothing looks at, and why.
pub fn unchecked(why: &[&str]) -> Value {
    // An update is merged with what was there.
    json!({ "isPending": false, "isChecked": false, "newProblems": 0, "fixedProblems": 0, "problems": [], "unchecked": why })
}

/// Returns true while a change is being looked at.
pub(super) fn is_pending(metadata: &Map<String, Value>) -> bool {
    let pending = metadata.get(CHECKED).and_then(|it| it.get(PENDING));
    pending.and_then(Value::as_bool).unwrap_or_default()
}

/// The answer has ended: what has not been looked at by then never is. Returns false if nothing changes.
pub(super) fn settle_check(metadata: &mut Map<String, Value>) -> bool {
    if !is_pending(metadata) {
        return false;
    }
    metadata.insert(CHECKED.to_owned(), unchecked(&["the answer ended first"]));
    true
}

/// A problem that a change has brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem<'a> {
    pub file_path: &'a str,
    /// From 1, as the column.
    pub line: u64,
    pub column: u64,
    pub is_error: bool,
    pub message: &'a str,
    pub source: &'a str,
}

/// The result of the check of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangeCheck<'a> {
    /// It is being looked at.
    pub is_pending: bool,
    /// Something has looked at the change.
    pub is_checked: bool,
    pub new_problems: u64,
    pub fixed_problems: u64,
    /// Those that earlier changes of the answer have brought and that are left.
    pub open_problems: u64,
    /// The first of the new problems.
    pub problems: Vec<Problem<'a>>,
    /// The first of those that may be older than the change.
    pub older_problems: Vec<Problem<'a>>,
    pub older_count: u64,
    /// Why files were not looked at.
    pub unchecked: Vec<&'a str>,
}

/// The check in the metadata of a document; `None`: nothing is known of one.
pub fn change_check(metadata: &Map<String, Value>) -> Option<ChangeCheck<'_>> {
    let check = metadata.get(CHECKED)?.as_object()?;
    let objects = |name| member::list(check, name).iter().filter_map(Value::as_object);
    let problem = |it| Problem {
        file_path: member::text(it, "filePath").unwrap_or_default(),
        line: member::count(it, "line").unwrap_or(1),
        column: member::count(it, "column").unwrap_or(1),
        is_error: member::text(it, "severity") != Some("warning"),
        message: member::text(it, "message").unwrap_or_default(),
        source: member::text(it, "source").unwrap_or_default(),
    };
    let older_problems: Vec<_> = objects("olderProblems").map(problem).collect();
    let shown = older_problems.len() as u64;
    Some(ChangeCheck {
        is_pending: is_pending(metadata),
        is_checked: check.get("isChecked").and_then(Value::as_bool).unwrap_or_default(),
        new_problems: member::count(check, "newProblems").unwrap_or_default(),
        fixed_problems: member::count(check, "fixedProblems").unwrap_or_default(),
        open_problems: member::count(check, "openProblems").unwrap_or_default(),
        problems: objects("problems").map(problem).collect(),
        older_problems,
        older_count: member::count(check, "olderCount").unwrap_or_default().max(shown),
        unchecked: member::list(check, "unchecked")
            .iter()
            .filter_map(Value::as_str)
            .collect(),
    })
}
