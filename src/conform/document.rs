//! Rules for a document of each kind: its members by the kind's table, and all that a table cannot state.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::{
    report::{ByteRange, Findings},
    rule::{self, Rule},
};
use crate::{
    protocol::{
        ERROR_CODES, Kind, Mode, Permission,
        document::{
            CHANGE, ContentRule, DIFF, Member,
            MemberForm::{self, Any, Code, Count, Details, Flag, List, Loose, Nullable, Object, Record, Text, Word},
            Need::{Always, Expected, Free, Placed, Structure, Timed},
            QUESTION, TODO,
        },
    },
    text::{WordList, visible_line},
};

/// Place and bytes of a statement.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    pub place: Option<ByteRange>,
    pub bytes: String,
}

/// A document as its writer made it, whole.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    pub id: String,
    pub kind: String,
    pub content: Option<String>,
    pub metadata: Map<String, Value>,
    /// Last statement of each member.
    pub marks: HashMap<String, Mark>,
    pub mark: Mark,
    /// True for the concept's form, which lacks members that the structure requires.
    pub is_concept: bool,
}

/// Other names of members that readers accept: kind of document (`*`: every kind), other name, right name.
pub const ALIASES: [(&str, &str, &str); 16] = [
    ("*", "durationMs", "duration_ms"),
    ("*", "path", "filePath"),
    ("*", "file", "filePath"),
    ("*", "target_file", "filePath"),
    ("*", "call_id", "toolCallId"),
    ("*", "callId", "toolCallId"),
    ("tool_call", "name", "toolName"),
    ("plan", "name", "title"),
    ("plan", "plan", "content"),
    ("*", "exit_code", "exitCode"),
    ("*", "cwd", "workingDirectory"),
    ("file_edit", "old_string", "diff.oldString"),
    ("file_edit", "new_string", "diff.newString"),
    ("file_edit", "oldString", "diff.oldString"),
    ("file_edit", "newString", "diff.newString"),
    ("error", "code", "errorCode"),
];

/// Tools whose calls are documents of another type.
const TYPED_TOOLS: WordList = WordList(
    "edit_file search_replace StrReplace MultiEdit apply_patch edit_notebook write Write delete_file Delete
     run_terminal_cmd Shell Bash create_plan CreatePlan todo_write TodoWrite ask_question AskQuestion",
);

/// Returns true if this program knows the type.
pub fn is_known(kind: &str) -> bool {
    Kind::KNOWN.contains(&kind)
}

/// Returns true for an id of 1 to 256 bytes, all of whose characters are visible.
pub fn is_sound(id: &str) -> bool {
    !id.trim().is_empty() && id.len() <= 256 && visible_line(id).as_str() == id
}

/// Checks the code of an error.
pub fn error_code(code: &str, report: &mut dyn FnMut(&'static Rule, &str)) {
    let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if code.is_empty() || !code.chars().all(is_upper) || !code.starts_with(|c: char| c.is_ascii_uppercase()) {
        report(&rule::ERROR_CODE_FORM, &format!("`{code}` is not UPPER_SNAKE"));
    } else if !ERROR_CODES.contains(&code) {
        report(&rule::ERROR_CODE, &format!("`{code}` is not on the list"));
    }
}

/// Judges a document that has ended.
pub fn judge(seen: &Seen, mode: Option<Mode>, found: &mut Findings) {
    Judge { seen, found }.all(mode);
}

struct Judge<'a> {
    seen: &'a Seen,
    found: &'a mut Findings,
}

impl Judge<'_> {
    /// Adds a finding about a member; about the document if `member` is `""`.
    fn say(&mut self, rule: &'static Rule, member: &str, said: &str) {
        let mark = self.seen.marks.get(member).unwrap_or(&self.seen.mark);
        self.found.add(rule, said, Some(&self.seen.id), mark.place, &mark.bytes);
    }

    fn member(&self, name: &str) -> Option<&Value> {
        self.seen.metadata.get(name)
    }

    fn word(&self, name: &str) -> Option<&str> {
        self.member(name).and_then(Value::as_str)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.member(name).and_then(Value::as_u64)
    }

    fn all(&mut self, mode: Option<Mode>) {
        let kind = self.seen.kind.as_str();
        if !is_known(kind) {
            self.say(&rule::UNKNOWN_TYPE, "", &format!("unknown type `{kind}`"));
            return;
        }
        let row = Kind::parse(kind).row();
        let members = row.members;
        for (scope, alias, name) in ALIASES {
            let is_known = members.iter().any(|it| it.0 == alias);
            if (scope == "*" || scope == kind) && !is_known && self.member(alias).is_some() {
                self.say(&rule::ALIAS, alias, &format!("`{alias}` should be `{name}`"));
            }
        }
        // What an alias stands for is there, as far as readers go.
        let stands = |name: &str| {
            let of_kind = |it: &&(&str, &str, &str)| (it.0 == "*" || it.0 == kind) && it.2 == name;
            let aliases = ALIASES.iter().filter(of_kind);
            aliases.map(|it| it.1).any(|it| self.seen.metadata.contains_key(it))
        };
        let needed: Vec<Member> = members.iter().filter(|it| !stands(it.0)).copied().collect();
        self.members("", "", &self.seen.metadata, &needed);
        self.content(kind, row.content);
        match kind {
            "code_reference" => self.code_reference(),
            "file_edit" => self.file_edit(),
            "tool_call" => self.tool_call(),
            "terminal_command" => self.terminal_command(),
            "plan" => self.plan(),
            "clarification" => self.clarification(),
            "error" => {
                if let Some(code) = self.word("errorCode").map(str::to_owned) {
                    error_code(&code, &mut |rule, said| self.say(rule, "errorCode", said));
                }
            }
            "todo_update" => {
                self.todos(CHANGE.members);
            }
            _ => {}
        }
        if let Some(mode) = mode {
            self.mode(kind, mode);
        }
    }

    /// Compares members with a table. `inside` is the member that a finding's place belongs to.
    fn members(&mut self, inside: &str, prefix: &str, members: &Map<String, Value>, table: &[Member]) {
        for (name, form, need, _) in table {
            let at = if inside.is_empty() { *name } else { inside };
            let full = format!("{prefix}{name}");
            let Some(value) = members.get(*name) else {
                match need {
                    Always | Placed => self.say(&rule::MEMBER_MISSING, at, &format!("`{full}` is missing")),
                    Structure | Timed if self.seen.is_concept => {}
                    Timed => self.say(&rule::UNTIMED, at, &format!("`{full}` is left out")),
                    Structure | Expected => {
                        self.say(&rule::MEMBER_LEFT_OUT, at, &format!("`{full}` is left out"));
                    }
                    Free => {}
                }
                continue;
            };
            if let Err((rule, wanted)) = holds(*form, value) {
                let said = format!("`{full}` has to be {wanted}, not {}", described(value));
                self.say(rule, at, &said);
            }
        }
    }

    fn content(&mut self, kind: &str, rule: ContentRule) {
        let content = self.seen.content.as_deref();
        match rule {
            ContentRule::Absent if content.is_some_and(|it| !it.is_empty()) => {
                self.say(&rule::CONTENT, "content", &format!("a {kind} has no content"));
            }
            ContentRule::NotEmpty if content.is_none_or(|it| it.trim().is_empty()) => {
                self.say(&rule::EMPTY_TEXT, "content", "this text is empty");
            }
            ContentRule::Required if content.is_none() => {
                let said = match kind {
                    "code_reference" => "a citation without the code that it cites",
                    "error" => "an error without a message",
                    _ => "the content is missing",
                };
                self.say(&rule::CONTENT, "content", said);
            }
            // The concept has plans without a body, and an empty code block is one.
            _ => {}
        }
    }

    fn code_reference(&mut self) {
        self.path("filePath");
        if let (Some(first), Some(last)) = (self.number("startLine"), self.number("endLine"))
            && last < first
        {
            let said = format!("line {last} is before line {first}");
            self.say(&rule::LINES, "endLine", &said);
        }
    }

    fn path(&mut self, name: &str) {
        let Some(path) = self.word(name).map(str::to_owned) else {
            return;
        };
        let mut letters = path.chars();
        let has_drive = letters.next().is_some_and(|it| it.is_ascii_alphabetic()) && letters.next() == Some(':');
        let said = if path.is_empty() {
            "it is empty"
        } else if path.starts_with('/') || has_drive {
            "it is absolute"
        } else if path.contains('\\') {
            "it is divided by backslashes"
        } else if path.split('/').any(|it| it == "..") {
            "it leads upwards"
        } else {
            return;
        };
        self.say(&rule::PATH, name, &format!("`{path}`: {said}"));
    }

    fn file_edit(&mut self) {
        self.path("filePath");
        let operation = self.word("operation").unwrap_or_default().to_owned();
        let diff = self.member("diff").and_then(Value::as_object).cloned();
        // The hunk of an edit that never came about may be nothing to show.
        let is_done = matches!(self.word("applied"), None | Some("applied" | "pending"));
        match (&diff, operation.as_str()) {
            (None, "edit") if is_done => {
                let has_strings = ["oldString", "old_string"].iter().any(|it| self.member(it).is_some());
                if !has_strings {
                    self.say(&rule::DIFF, "diff", "this edit has no diff");
                }
            }
            (Some(_), "create" | "delete" | "rename") => {
                self.say(&rule::DIFF, "diff", &format!("a {operation} has no diff"));
            }
            _ => {}
        }
        if let Some(diff) = &diff {
            self.members("diff", "diff.", diff, DIFF.members);
            self.diff_lines(diff);
        }
        let new = diff.as_ref().and_then(|it| it.get("newString")?.as_str());
        let content = self.seen.content.clone();
        match (operation.as_str(), content.as_deref()) {
            ("delete" | "rename", Some(_)) => {
                self.say(&rule::EDIT_CONTENT, "content", &format!("a {operation} has no content"));
            }
            ("edit", Some(content)) if new.is_some_and(|it| it != content) => {
                let said = "the content is not the `newString` of the diff";
                self.say(&rule::EDIT_CONTENT, "content", said);
            }
            ("edit", None) if new.is_some_and(|it| !it.is_empty()) => {
                self.say(&rule::EDIT_CONTENT, "content", "the new text is not in the content");
            }
            ("create", None) if is_done => {
                self.say(&rule::EDIT_CONTENT, "content", "the new file is not in the content");
            }
            _ => {}
        }
        if operation == "rename" {
            if self.member("newFilePath").is_some() {
                self.path("newFilePath");
            } else {
                self.say(&rule::RENAME_TARGET, "", "the new path is missing");
            }
        }
        if let Some(hunk) = self.member("hunk").and_then(Value::as_object) {
            let part = |name: &str| hunk.get(name).and_then(Value::as_u64);
            let is_good =
                matches!((part("index"), part("count")), (Some(index), Some(count)) if (1..=count).contains(&index));
            if !is_good {
                let said = format!(
                    "this hunk is {}",
                    described(self.member("hunk").unwrap_or(&Value::Null))
                );
                self.say(&rule::HUNK, "hunk", &said);
            }
        }
    }

    fn diff_lines(&mut self, diff: &Map<String, Value>) {
        let number = |name: &str| diff.get(name).and_then(Value::as_u64);
        let Some(old) = diff.get("oldString").and_then(Value::as_str) else {
            return;
        };
        let (Some(first), Some(last)) = (number("startLine"), number("endLine")) else {
            return;
        };
        let lines = old.lines().count() as u64;
        // An edit inside of a line has a part of it, so that a break at the end begins no further line.
        let is_good =
            last + 1 >= first && (last + 1 - first == lines || (old.ends_with('\n') && last - first == lines));
        if !is_good {
            let said = format!("lines {first} to {last}, where `oldString` has {lines}");
            self.say(&rule::DIFF_LINES, "diff", &said);
        }
    }

    fn tool_call(&mut self) {
        if let Some(name) = self.word("toolName").filter(|it| TYPED_TOOLS.contains(it)) {
            let said = format!("`{name}` as a tool_call");
            self.say(&rule::EDIT_AS_CALL, "toolName", &said);
        }
        match self.member("result") {
            None => self.say(&rule::NO_RESULT, "", "the result is missing"),
            Some(Value::Object(it)) => {
                let status = it.get("status").and_then(Value::as_str);
                if !matches!(status, Some("success" | "error")) || !it.contains_key("data") {
                    self.say(&rule::RESULT_FORM, "result", "the result has another form");
                }
            }
            Some(Value::String(_)) if self.seen.is_concept => {}
            Some(other) => {
                let said = format!("the result is {}", described(other));
                self.say(&rule::RESULT_FORM, "result", &said);
            }
        }
    }

    fn terminal_command(&mut self) {
        let code = self.member("exitCode").and_then(Value::as_i64);
        let state = self.word("state").map(str::to_owned);
        match (state.as_deref(), code) {
            (None, None) if self.seen.is_concept && self.member("exitCode").is_none() => {}
            (None, None) => self.say(&rule::EXIT_CODE, "exitCode", "neither an exit code nor a state"),
            (Some("completed"), None) => self.say(&rule::EXIT_CODE, "exitCode", "it completed without an exit code"),
            (Some("running"), _) => self.say(&rule::EXIT_CODE, "state", "the document has ended, the command runs"),
            (Some(state @ "rejected"), Some(_)) => {
                let said = format!("an exit code of a command that was {state}");
                self.say(&rule::EXIT_CODE, "exitCode", &said);
            }
            _ => {}
        }
        let permissions = self.member("permissions").and_then(Value::as_array).cloned();
        for it in permissions.into_iter().flatten() {
            if !it.as_str().is_some_and(|it| Permission::KNOWN.contains(&it)) {
                let said = format!("`permissions` contains {}", described(&it));
                self.say(&rule::MEMBER_WORD, "permissions", &said);
            }
        }
    }

    /// Checks the todos. Returns their ids and dependencies.
    fn todos(&mut self, table: &[Member]) -> Vec<(String, Vec<String>)> {
        let todos = self.member("todos").and_then(Value::as_array).cloned();
        let mut ids = Vec::new();
        for (at, todo) in todos.into_iter().flatten().enumerate() {
            let Value::Object(todo) = todo else {
                let said = format!("`todos[{at}]` has to be an object, not {}", described(&todo));
                self.say(&rule::MEMBER_TYPE, "todos", &said);
                continue;
            };
            self.members("todos", &format!("todos[{at}]."), &todo, table);
            let list = todo.get("dependencies").and_then(Value::as_array);
            let needs = list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
            let id = todo.get("id").and_then(Value::as_str).unwrap_or_default();
            ids.push((id.to_owned(), needs.collect()));
        }
        let mut known = HashSet::new();
        for (id, _) in &ids {
            if !id.is_empty() && !known.insert(id) {
                self.say(&rule::TODO_IDS, "todos", &format!("`{id}` appears twice"));
            }
        }
        ids
    }

    fn plan(&mut self) {
        let todos = self.todos(TODO.members);
        let is_slug = |id: &str| {
            let is_part = |it: &str| !it.is_empty() && it.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
            id.split('-').all(is_part)
        };
        for (id, needs) in &todos {
            if !id.is_empty() && !is_slug(id) {
                self.say(&rule::TODO_SLUG, "todos", &format!("`{id}` is not a slug"));
            }
            for need in needs.iter().filter(|need| todos.iter().all(|it| it.0 != **need)) {
                let said = format!("`{id}` depends on `{need}`, which is not in the plan");
                self.say(&rule::DEPENDENCIES, "todos", &said);
            }
        }
        // What is left when everything is taken away whose needs are met goes in circles.
        let mut left: Vec<_> = todos.iter().collect();
        loop {
            let open: HashSet<&str> = left.iter().map(|it| it.0.as_str()).collect();
            let before = left.len();
            left.retain(|it| it.1.iter().any(|need| open.contains(need.as_str())));
            if left.len() == before {
                break;
            }
        }
        if let Some((id, _)) = left.first() {
            self.say(&rule::DEPENDENCIES, "todos", &format!("`{id}` waits for itself"));
        }
    }

    fn clarification(&mut self) {
        let questions = self
            .member("questions")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        if self.member("questions").is_some_and(Value::is_array) && questions.is_empty() {
            self.say(&rule::QUESTIONS, "questions", "it has no questions");
        }
        let mut asked: HashMap<String, Vec<String>> = HashMap::new();
        for (at, question) in questions.iter().enumerate() {
            let Value::Object(question) = question else {
                let said = format!("`questions[{at}]` has to be an object, not {}", described(question));
                self.say(&rule::MEMBER_TYPE, "questions", &said);
                continue;
            };
            let mut table = QUESTION.members.to_vec();
            if let Some(alias) = ["prompt", "question"].iter().find(|it| question.contains_key(**it)) {
                let said = format!("`questions[{at}].{alias}` should be `text`");
                self.say(&rule::ALIAS, "questions", &said);
                table.retain(|it| it.0 != "text");
            }
            self.members("questions", &format!("questions[{at}]."), question, &table);
            let mut offered = Vec::new();
            for option in question.get("options").and_then(Value::as_array).into_iter().flatten() {
                let part = |name: &str| option.get(name).and_then(Value::as_str);
                match (part("id"), part("label")) {
                    (Some(id), Some(_)) if offered.iter().any(|it| it == id) => {
                        let said = format!("the option `{id}` appears twice");
                        self.say(&rule::OPTIONS, "questions", &said);
                    }
                    (Some(id), Some(_)) => offered.push(id.to_owned()),
                    _ => {
                        offered.extend(option.as_str().map(str::to_owned));
                        let said = format!("an option of `questions[{at}]` is {}", described(option));
                        self.say(&rule::OPTIONS, "questions", &said);
                    }
                }
            }
            let id = question.get("id").and_then(Value::as_str).unwrap_or_default();
            if asked.insert(id.to_owned(), offered).is_some() {
                let said = format!("two questions are called `{id}`");
                self.say(&rule::QUESTIONS, "questions", &said);
            }
        }
        self.answers(&asked);
        if self.word("kind") == Some("approval") {
            self.approval(&asked);
        }
    }

    fn answers(&mut self, asked: &HashMap<String, Vec<String>>) {
        let answers = self
            .member("answers")
            .and_then(Value::as_array)
            .cloned()
            .unwrap_or_default();
        for answer in &answers {
            let id = answer.get("questionId").and_then(Value::as_str).unwrap_or_default();
            let Some(offered) = asked.get(id) else {
                self.say(&rule::ANSWERS, "answers", &format!("`{id}` was not asked"));
                continue;
            };
            for chosen in answer
                .get("selectedOptionIds")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
            {
                if !chosen.as_str().is_some_and(|it| offered.iter().any(|id| id == it)) {
                    let said = format!("`{id}` does not offer {}", described(chosen));
                    self.say(&rule::ANSWERS, "answers", &said);
                }
            }
        }
        if !answers.is_empty() && self.member("outcome").is_none() {
            self.say(&rule::ANSWERS, "answers", "it has answers but no outcome");
        }
    }

    fn approval(&mut self, asked: &HashMap<String, Vec<String>>) {
        let problem = match self.member("subject").and_then(Value::as_object) {
            None => Some("`subject` is missing"),
            Some(it) if it.contains_key("id") || it.contains_key("sequence") => {
                Some("the `subject` has an id or a sequence")
            }
            Some(it) if !it.get("type").and_then(Value::as_str).is_some_and(is_known) => {
                Some("the `subject` is of no known type")
            }
            Some(it) if it.get("metadata").is_some_and(|it| !it.is_object()) => {
                Some("the `subject`'s metadata is not an object")
            }
            Some(_) => None,
        };
        if let Some(said) = problem {
            self.say(&rule::APPROVAL, "subject", said);
        }
        let offers = |start: &str| asked.values().flatten().any(|it| it.starts_with(start));
        if !offers("allow_") || !offers("reject_") {
            let said = "an option to allow or to reject is missing";
            self.say(&rule::APPROVAL, "questions", said);
        }
    }

    fn mode(&mut self, kind: &str, mode: Mode) {
        let is_refused = |it: Option<&str>| matches!(it, Some("rejected" | "failed" | "cancelled"));
        let breaks = match kind {
            "file_edit" => mode.is_read_only() && !is_refused(self.word("applied")),
            "plan" => mode == Mode::Ask,
            _ => false,
        };
        if breaks {
            self.say(&rule::MODE, "operation", &format!("a {kind} in {mode} mode"));
        }
    }
}

/// Checks a member's value. Fails with the rule that does not hold, and with what the member had to be.
fn holds(form: MemberForm, value: &Value) -> Result<(), (&'static Rule, String)> {
    let wrong = |wanted: &str| Err((&rule::MEMBER_TYPE, wanted.to_owned()));
    match (form, value) {
        (Any | Loose(_), _)
        | (Text | Details | Word(_), Value::String(_))
        | (Flag, Value::Bool(_))
        | (Record(_) | Object(_) | Nullable(_), Value::Object(_))
        | (Code | Nullable(_), Value::Null)
        | (List(_), Value::Array(_)) => {
            if let (Word(words), Value::String(word)) = (form, value)
                && !words.contains(&word.as_str())
            {
                return Err((&rule::MEMBER_WORD, format!("one of {}", words.join(", "))));
            }
            Ok(())
        }
        (Code, _) if value.as_i64().is_some() => Ok(()),
        (Count(least), _) => match value.as_u64() {
            Some(number) if number >= least => Ok(()),
            Some(_) => Err((&rule::LINES, format!("at least {least}"))),
            None => wrong("a whole number"),
        },
        (Text | Details | Word(_), _) => wrong("a text"),
        (Flag, _) => wrong("true or false"),
        (Record(_) | Object(_), _) => wrong("an object"),
        (Nullable(_), _) => wrong("an object or null"),
        (Code, _) => wrong("a whole number or null"),
        (List(_), _) => wrong("a list"),
    }
}

/// A value in few words.
pub fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(it) => it.to_string(),
        Value::Number(it) => it.to_string(),
        Value::String(it) => format!("`{}`", it.get(..it.floor_char_boundary(60)).unwrap_or(it)),
        Value::Array(it) => format!("a list of {}", it.len()),
        Value::Object(it) => {
            let names: Vec<_> = it.keys().take(5).map(String::as_str).collect();
            format!(
                "an object with {}",
                if names.is_empty() {
                    "nothing".to_owned()
                } else {
                    names.join(", ")
                }
            )
        }
    }
}
