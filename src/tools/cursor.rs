//! Shapes in which Cursor's command line prints calls of tools: a kind such as `readToolCall`, arguments and a result.
//!
//! They are made from what a document says of a call, so that they are the same for the embedded agent, a gateway and a recording.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::object;

/// Names by which models and gateways call one argument, the likeliest first.
pub type Names = &'static [&'static str];

/// Names of a file's path.
pub const PATH: Names = &["target_file", "filePath", "file_path", "path", "file"];
/// Names of a folder's path.
pub const FOLDER: Names = &["target_directory", "targetDirectory", "path", "directory", "filePath"];

/// The shape of the calls of one tool.
#[derive(Clone, Copy)]
pub struct CursorCall {
    /// The member that the call is printed under: `readToolCall`.
    pub kind: &'static str,
    /// The members of `args`, and the names that each has in a document. One that is not there is left out.
    pub arguments: &'static [(&'static str, Names)],
    /// Adds to `args` what a list of names cannot say.
    pub complete: fn(&mut Map<String, Value>, &Asked<'_>),
    /// The last member of `args` is `toolCallId`.
    pub has_id: bool,
    /// The argument that stands beside an error or a refusal.
    pub subject: Option<(&'static str, Names)>,
    /// Makes the value of `success`.
    pub result: fn(&Answer<'_>) -> Value,
}

impl CursorCall {
    /// A shape whose result is printed as it is.
    pub const fn new(kind: &'static str, arguments: &'static [(&'static str, Names)]) -> Self {
        Self {
            kind,
            arguments,
            complete: |_, _| {},
            has_id: false,
            subject: None,
            result: |it| whole(it.data),
        }
    }

    /// The value of `args`.
    pub fn arguments_of(&self, asked: &Asked<'_>) -> Map<String, Value> {
        let mut arguments = asked.arguments.renamed(self.arguments);
        (self.complete)(&mut arguments, asked);
        if self.has_id {
            arguments.insert("toolCallId".to_owned(), asked.id.into());
        }
        arguments
    }
}

/// A call as it is asked for.
pub struct Asked<'a> {
    /// Its arguments.
    pub arguments: Arguments<'a>,
    /// Its id.
    pub id: &'a str,
    /// The time when it began, in milliseconds since the Unix epoch.
    pub started_ms: u64,
}

/// The result of a call.
pub struct Answer<'a> {
    /// The arguments of the call.
    pub arguments: Arguments<'a>,
    /// The data of the result, as the document has them.
    pub data: &'a Value,
    /// The members of `data`; empty where it is no object.
    pub members: &'a Map<String, Value>,
    /// Something was cut.
    pub is_truncated: bool,
    /// The folder that relative paths begin in.
    pub workspace: &'a Path,
}

impl Answer<'_> {
    /// A path of the workspace as an absolute one.
    pub fn absolute(&self, path: &str) -> PathBuf {
        absolute(self.workspace, path)
    }

    /// The list under `name`, or the data where they are a list, or else their lines.
    pub fn list(&self, name: &str) -> Vec<Value> {
        let list = self.members.get(name).or(Some(self.data)).and_then(Value::as_array);
        list.cloned().unwrap_or_else(|| lines(self.data))
    }
}

/// `path` below `workspace`, without the parts that say nothing (`.`).
pub fn absolute(workspace: &Path, path: &str) -> PathBuf {
    workspace.join(path).components().collect()
}

/// The arguments of a call, by any of the names that models and gateways have for them.
#[derive(Clone, Copy)]
pub struct Arguments<'a>(pub &'a Map<String, Value>);

impl<'a> Arguments<'a> {
    /// The first of `names` that is there, unless it is `null`.
    pub fn get(&self, names: &[&str]) -> Option<&'a Value> {
        let found = names.iter().find_map(|it| self.0.get(*it));
        found.filter(|it| !it.is_null())
    }

    /// A text; empty where there is none.
    pub fn text(&self, names: &[&str]) -> &'a str {
        self.get(names).and_then(Value::as_str).unwrap_or_default()
    }

    /// Those that are there, under the first name of each pair.
    pub fn renamed(&self, names: &[(&str, &[&str])]) -> Map<String, Value> {
        let mut renamed = Map::new();
        for (name, from) in names {
            if let Some(value) = self.get(from) {
                renamed.insert((*name).to_owned(), value.clone());
            }
        }
        renamed
    }
}

/// The shape of calls that edit a file.
pub const EDIT: CursorCall = CursorCall {
    complete: |own, asked| own.extend(edit_arguments(asked.arguments.0)),
    subject: Some(("path", PATH)),
    ..CursorCall::new(
        "editToolCall",
        &[("path", &["file_path", "target_file", "target_notebook", "path"])],
    )
};

/// The arguments by which Cursor would make the change that `arguments` mean.
pub fn edit_arguments(arguments: &Map<String, Value>) -> Map<String, Value> {
    let meant = Arguments(arguments);
    let (old, new) = (meant.get(&["old_string"]), meant.get(&["new_string"]));
    if let (Some(old), Some(new)) = (old, new) {
        let mut part = object(json!({ "oldText": old, "newText": new }));
        if let Some(all) = meant.get(&["replace_all"]) {
            part.insert("replaceAll".to_owned(), all.clone());
        }
        return object(json!({ "strReplace": part }));
    }
    if let Some(patch) = meant.get(&["patch", "input"]) {
        return object(json!({ "applyPatch": { "patchContent": patch } }));
    }
    meant.renamed(&[("streamContent", &["code_edit", "contents", "new_source"])])
}

/// A value as text: texts without their quotes, `null` as nothing.
pub fn words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A result that has no shape of its own: an object as it is, anything else as `output`.
pub fn whole(data: &Value) -> Value {
    match data {
        Value::Object(_) => data.clone(),
        Value::Null => json!({}),
        other => json!({ "output": words(other) }),
    }
}

/// The lines of a text that are not blank.
fn lines(data: &Value) -> Vec<Value> {
    let text = data.as_str().unwrap_or_default();
    let lines = text.lines().map(str::trim);
    lines.filter(|it| !it.is_empty()).map(Value::from).collect()
}

/// The text of a member.
pub fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}
