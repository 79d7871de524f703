//! Words of tools: what the screen shows instead of the name that a tool has on the wire.
//!
//! The screen knows calls only, not the tools, and shows those of a recording or a gateway by the same words. Who knows the
//! tools publishes their labels when the program starts; until then a tool is shown by its name.

use std::sync::OnceLock;

/// Subject of a call: decides which argument its line shows, and how its result is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallSubject {
    /// A file and the lines of it.
    Read,
    /// Hits of a pattern in files.
    Grep,
    /// Pieces of code that fit a question.
    Search,
    /// Files by their names.
    Find,
    /// Entries of a folder.
    List,
    /// Problems that checkers report.
    Lints,
    /// Places of a symbol.
    Symbol,
    /// A file that is changed.
    File,
    /// A command line.
    Command,
    /// A page or a search of the web.
    Web,
    /// Work that another agent does.
    Task,
    /// The conversation itself, which is made shorter.
    Compact,
    /// Anything else.
    Other,
}

/// The label of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolLabel {
    /// The word on the screen.
    pub word: String,
    /// The subject of its calls.
    pub subject: CallSubject,
    /// All names that it has on the wire.
    pub names: Vec<String>,
}

static SOURCE: OnceLock<fn() -> Vec<ToolLabel>> = OnceLock::new();
static LABELS: OnceLock<Vec<ToolLabel>> = OnceLock::new();

/// Registers the function that makes the labels. It is called when the first label is needed. Only the first
/// registration has an effect.
pub fn publish(labels: fn() -> Vec<ToolLabel>) {
    let _ = SOURCE.set(labels);
}

/// The name that people are shown for a tool of a server, by its name on the wire: `git › status` for `mcp__git__status`. `None` for
/// other tools.
pub fn served(name: &str) -> Option<String> {
    let (server, tool) = name.strip_prefix("mcp__")?.split_once("__")?;
    (!server.is_empty() && !tool.is_empty()).then(|| format!("{server} › {tool}"))
}

/// Returns the label of the tool with this name on the wire. `None` for unknown tools.
pub fn label(name: &str) -> Option<&'static ToolLabel> {
    let source = SOURCE.get()?;
    LABELS
        .get_or_init(source)
        .iter()
        .find(|it| it.names.iter().any(|it| it == name))
}
