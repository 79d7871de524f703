//! `sheaf search QUESTION`: finds code by what it is about, as the tool `codebase_search` does for a model.

use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};

use super::{
    CliContext,
    arguments::{Search, TargetArguments},
    code, complain, open, runtime, say,
};
use crate::{
    index::Index,
    print::harmless,
    sandbox::{Fence, Workspace},
    tools::{self, Context, Input, Work},
};

/// Lines of a chunk that are printed.
const SHOWN_LINES: usize = 8;

/// Runs the subcommand.
pub fn run(asked: &Search) -> Result<u8> {
    let mut base = CliContext::of(&asked.common, &TargetArguments::default())?;
    // The program ends with the answer: nothing happens in the background.
    base.settings.index.background = false;
    let question = asked.question.join(" ");
    if question.trim().is_empty() {
        complain("the question is empty; ask as you would ask a person: sheaf search \"where are prices rounded?\"");
        return Ok(code::USAGE);
    }
    let fence = Fence::configured(&base.settings, Some(&base.paths), Vec::new());
    let workspace = Workspace::fenced(&base.workspace, fence)
        .with_context(|| format!("{} cannot be opened", base.workspace.display()))?;
    let input = tools::object(json!({ "query": question, "target_directories": asked.folders }));
    let embeddings = open::embeddings(&base);
    let mut settings = base.settings;
    if let Some(count) = asked.count {
        settings.limits.search_chunks = count;
    }
    let index = Index::stored(&base.paths.cache, workspace.root());
    let context = Context {
        embeddings: Arc::new(embeddings),
        ..Context::apart(Arc::new(workspace), Arc::new(settings), Arc::new(index))
    };
    let tool = tools::built_in().iter().find(|it| it.name == "codebase_search");
    let Some(Work::Call { run, .. }) = tool.map(|it| &it.work) else {
        bail!("there is no code search in this build");
    };
    let found = runtime(false)?.block_on(async {
        Arc::clone(&context.workspace).look_once().await;
        run(Input(input), context).await
    });
    let found = found.map_err(|it| anyhow::anyhow!("{}", it.message))?;
    if asked.json {
        say(&format!("{}\n", found.data));
    } else {
        say(&harmless(printed(&found.data)));
    }
    if let Some(note) = found.data.get("note").and_then(Value::as_str) {
        complain(note);
    }
    let chunks = found.data.get("chunks").and_then(Value::as_array);
    if chunks.is_none_or(Vec::is_empty) {
        complain("nothing was found; ask with other words");
        return Ok(code::FAILED);
    }
    Ok(code::OK)
}

/// The chunks as a person reads them: the place, then its first lines with their numbers.
fn printed(data: &Value) -> String {
    let mut text = String::new();
    for chunk in data.get("chunks").and_then(Value::as_array).into_iter().flatten() {
        let word = |name: &str| chunk.get(name).and_then(Value::as_str).unwrap_or_default();
        let number = |name: &str| chunk.get(name).and_then(Value::as_u64).unwrap_or_default();
        let (first, last) = (number("startLine"), number("endLine"));
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("{}:{first}-{last}\n", word("filePath")));
        let lines = word("text").lines().enumerate();
        for (at, line) in lines.take(SHOWN_LINES) {
            text.push_str(&format!("{:6}  {line}\n", first + at as u64));
        }
        let left = (last + 1).saturating_sub(first + SHOWN_LINES as u64);
        if left > 0 {
            text.push_str(&format!("        … {left} more\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_printed_with_the_numbers_of_their_lines() {
        let lines: Vec<String> = (0..10).map(|it| format!("line {it}")).collect();
        let data = json!({ "chunks": [
            { "filePath": "src/a.rs", "startLine": 8, "endLine": 9, "text": "fn a() {\n}" },
            { "filePath": "b.py", "startLine": 1, "endLine": 10, "text": lines.join("\n") },
        ] });
        let expected = "src/a.rs:8-9\n     8  fn a() {\n     9  }\n\nb.py:1-10\n     1  line 0\n     2  line 1\n     3  line 2\n     4  line 3\n     \
                        5  line 4\n     6  line 5\n     7  line 6\n     8  line 7\n        … 2 more\n";
        assert_eq!(printed(&data), expected);
    }
}
