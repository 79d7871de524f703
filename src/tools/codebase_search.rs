//! `codebase_search`: code by what a question is about.

use std::{io::Read, path::Path, sync::Arc};

use serde_json::{Value, json};

use super::{
    cursor::{Answer, CursorCall, words},
    tool::{Access, Class, Context, Fault, Input, Outcome, Tool, Work, names, schema},
    walk::{self, Filter, Until},
};
use crate::{
    config,
    embedding::{Found, Meaning},
    index::{self, File, Hit},
    protocol::CallSubject,
    sandbox::{Located, Workspace, is_named_like_at_home},
};

/// The description that a model is shown.
const ABOUT: &str = "Find code by what it is about: ask a complete question, such as \"Where are discounts validated?\". Chunks of \
    code come back, best first, each with its place as `startLine:endLine:file`. For exact names and texts use \
    `grep`.";

/// The tool `codebase_search`.
pub fn tool() -> Tool {
    Tool {
        aliases: names(["SemanticSearch", "semSearch"]),
        about: ABOUT.into(),
        schema: schema(
            json!({
                "query": { "type": "string", "description": "Complete question in natural language" },
                "target_directories": {
                    "type": "array",
                    "items": { "type": "string" },
                    "description": "At most one directory; empty list = whole workspace"
                },
                "explanation": { "type": "string", "description": "One sentence: why this search" }
            }),
            &["query", "target_directories"],
        ),
        synonyms: &[("target_directories", &["targetDirectories", "target_directory"])],
        word: "search".into(),
        subject: CallSubject::Search,
        cursor: Some(CursorCall {
            complete: |own, _| {
                own.entry("targetDirectories").or_insert_with(|| json!([]));
            },
            result: |it| json!({ "results": printed(it) }),
            ..CursorCall::new(
                "semSearchToolCall",
                &[
                    ("query", &["query"]),
                    ("targetDirectories", &["target_directories", "targetDirectories"]),
                    ("explanation", &["explanation"]),
                ],
            )
        }),
        examples: &[r#"{ "query": "Where is the total?", "target_directories": ["src"] }"#],
        ..Tool::new(
            "codebase_search",
            Class::Reads,
            Work::call(touches, |input, context| async move {
                let own = context.clone();
                walk::away(&context, move |until| search(&own, &input, until)).await
            }),
        )
    }
}

/// Characters of a line.
const MOST_CHARACTERS: usize = 400;
/// Lists files that may be read and are not indexed.
pub const UNINDEXED: &str = ".cursorindexingignore";

fn touches(input: &Input, context: &Context) -> Result<Vec<Access>, Fault> {
    let places = places(&context.workspace, input)?;
    Ok(places.into_iter().map(Access::Read).collect())
}

/// The places to search: the named ones, else the workspace. The schema asks for one; several work too.
fn places(workspace: &Workspace, input: &Input) -> Result<Vec<Located>, Fault> {
    let mut named = input.texts("target_directories");
    named.retain(|it| !it.trim().is_empty());
    if named.is_empty() {
        return Ok(vec![walk::place(workspace, None)?]);
    }
    named.into_iter().map(|it| walk::place(workspace, Some(it))).collect()
}

/// The files of some places that are searched, and whether those are all.
fn files(workspace: &Workspace, places: Vec<Located>, until: &Until) -> Result<(Vec<File>, bool), Fault> {
    let mut files = Vec::new();
    let mut is_whole = true;
    for place in places {
        let place = walk::existing(place)?;
        let walker = workspace.walker(&place, until.bounds())?.also_without(UNINDEXED);
        let listing = walk::files(&walker, &Filter::default(), until);
        is_whole &= listing.is_whole;
        files.extend(listing.files.into_iter().filter_map(|it| file(workspace, &it)));
    }
    files.dedup();
    Ok((files, is_whole))
}

/// The files of the workspace that are searched, and whether those are all. Looks for them as long as a search may take.
pub async fn workspace_files(context: &Context) -> Result<(Vec<File>, bool), Fault> {
    let workspace = Arc::clone(&context.workspace);
    walk::away(context, move |until| {
        files(&workspace, vec![walk::place(&workspace, None)?], until)
    })
    .await
}

fn search(context: &Context, input: &Input, until: &Until) -> Result<Outcome, Fault> {
    let question = input.text("query").unwrap_or_default();
    if question.trim().is_empty() {
        return Err(Fault::arguments("the argument `query` is empty"));
    }
    let (files, is_whole) = files(&context.workspace, places(&context.workspace, input)?, until)?;
    let most = config::size(until.limits.search_chunks);
    let is_over = || until.is_over();
    let survey = context.index.survey(&files, &read, &is_over);
    let found = match context.embeddings.get() {
        Ok(Some(embeddings)) => Some(embeddings.search((&survey, &files), &read, question, most, &is_over)),
        Ok(None) => None,
        Err(error) => Some(Found::by_words(
            index::choose(survey.by_words(question), most),
            error.to_string(),
        )),
    };
    let is_ready = is_whole && survey.is_whole();
    let searched = survey.searched();
    let is_small = found.as_ref().is_some_and(|it| it.is_small);
    let (hits, meaning) = match found {
        Some(found) => (found.hits, Some(found.meaning)),
        None => (index::choose(survey.by_words(question), most), None),
    };
    drop(survey);
    let chunks: Vec<_> = hits.iter().filter_map(|it| Chunk::new(&files, it)).collect();
    let (mut text, state) = match &meaning {
        None | Some(Meaning::Absent(_)) => (
            "Ranked by the words of the question, not by its meaning.".to_owned(),
            "lexical_only",
        ),
        Some(Meaning::Whole) => ("Ranked by words and meaning.".to_owned(), "ready"),
        Some(Meaning::Part { with, of }) => (
            format!("Ranked by words and meaning; the meaning of {with} of {of} chunks was compared."),
            "building",
        ),
    };
    text.push('\n');
    let state = if is_ready { state } else { "building" };
    let note = match &meaning {
        _ if !is_ready => Some(format!(
            "Only {searched} of {} files are indexed: there was no time or no room for more.",
            files.len()
        )),
        Some(Meaning::Absent(why)) => Some(format!("Meaning is not compared: {why}.")),
        Some(Meaning::Whole | Meaning::Part { .. }) | None => None,
    };
    if let Some(note) = &note {
        text.push_str(note);
        text.push('\n');
    }
    if is_small && matches!(meaning, Some(Meaning::Part { .. })) {
        context.embeddings.complete(&context.index, files.clone(), read);
    }
    let mut shown = Vec::new();
    for chunk in &chunks {
        let fence = chunk.fence();
        if text.len() + fence.len() > config::size(until.limits.search_bytes) && !shown.is_empty() {
            break;
        }
        text.push('\n');
        text.push_str(&fence);
        shown.push(chunk.data());
    }
    if shown.is_empty() {
        text.push_str("\nNothing was found. Ask with other words, or search for a name with `grep`.");
    }
    let is_cut = shown.len() < chunks.len();
    if is_cut {
        text.push_str(&format!(
            "\n[cut: {} of {} chunks shown; ask about less, or name a directory]",
            shown.len(),
            chunks.len()
        ));
    }
    text.truncate(text.trim_end().len());
    let mut data = json!({ "chunks": shown, "indexState": state });
    if let Some(note) = note {
        data["note"] = note.into();
    }
    Ok(Outcome {
        text,
        is_truncated: is_cut,
        data,
        images: Vec::new(),
    })
}

/// A file of a walk, unless it is gone or has the name of a secret: its words would be stored.
fn file(workspace: &Workspace, path: &Path) -> Option<File> {
    let shown = walk::shown(workspace, path);
    if is_named_like_at_home(Path::new(&shown)) {
        return None;
    }
    let metadata = std::fs::symlink_metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)?;
    Some(File {
        shown,
        modified: metadata.modified().ok(),
        bytes: metadata.len(),
        path: path.to_owned(),
    })
}

/// A file that the walk found; it may have grown since.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = walk::open(path).ok()?;
    let read = file.take(index::LONGEST_FILE + 1).read_to_end(&mut bytes).ok()?;
    (read as u64 <= index::LONGEST_FILE).then_some(bytes)
}

/// A hit and what stands there.
struct Chunk<'a> {
    file: &'a str,
    hit: &'a Hit,
    text: String,
}

impl<'a> Chunk<'a> {
    fn new(files: &'a [File], hit: &'a Hit) -> Option<Self> {
        let file = files.get(hit.file)?;
        let bytes = read(&file.path)?;
        let text = String::from_utf8_lossy(&bytes);
        let (first, last) = (*hit.lines.start(), *hit.lines.end());
        let lines = text.lines().skip(first - 1).take(last + 1 - first);
        let lines: Vec<_> = lines.map(|it| walk::shortened(it, MOST_CHARACTERS)).collect();
        (!lines.is_empty()).then(|| Self {
            file: &file.shown,
            hit,
            text: lines.join("\n"),
        })
    }

    /// In the form in which a model quotes code.
    fn fence(&self) -> String {
        let longest = self
            .text
            .lines()
            .map(str::trim_start)
            .map(|it| it.len() - it.trim_start_matches('`').len());
        let fence = "`".repeat(longest.max().unwrap_or_default().max(2) + 1);
        let (first, last) = (self.hit.lines.start(), self.hit.lines.end());
        format!("{fence}{first}:{last}:{}\n{}\n{fence}\n", self.file, self.text)
    }

    fn data(&self) -> Value {
        json!({
            "filePath": self.file,
            "startLine": self.hit.lines.start(),
            "endLine": self.hit.lines.end(),
            "score": (self.hit.score * 1000.0).round() / 1000.0,
            "text": self.text,
        })
    }
}

/// The chunks of a result as Cursor has them: elements of XML.
fn printed(answer: &Answer<'_>) -> String {
    let Some(chunks) = answer.members.get("chunks").and_then(Value::as_array) else {
        return words(answer.data);
    };
    let mut results = String::new();
    for chunk in chunks {
        let word = |name: &str| chunk.get(name).map(words).unwrap_or_default();
        let path = word("filePath")
            .replace('&', "&amp;")
            .replace('"', "&quot;")
            .replace('<', "&lt;");
        results.push_str(&format!(
            "<search_result path=\"{path}\" startLine=\"{}\" endLine=\"{}\">\n{}\n</search_result>\n",
            word("startLine"),
            word("endLine"),
            word("text").trim_end(),
        ));
    }
    results
}

#[cfg(test)]
mod tests {
    use super::{
        super::walk::tests::{Tree, input},
        *,
    };
    use crate::index::Index;

    const CART: &[u8] = b"//! A cart.\n\n/// What the customer pays in the end.\npub fn total(cart: &Cart) -> Money {\n    cart.items.iter().map(price).sum()\n}\n";
    const MAIL: &[u8] = b"def send_mail(to, body):\n    \"\"\"Deliver a letter.\"\"\"\n    smtp.send(to, body)\n";

    fn context(tree: &Tree, index: &Arc<Index>) -> Context {
        Context::apart(Arc::new(tree.workspace.fresh()), Arc::default(), Arc::clone(index))
    }

    fn ask(tree: &Tree, index: &Arc<Index>, given: Value) -> Result<Outcome, Fault> {
        search(&context(tree, index), &input(&tool(), given), &Until::done())
    }

    fn files(outcome: &Outcome) -> Vec<&str> {
        let chunks = outcome.data["chunks"].as_array().expect("chunks");
        chunks.iter().filter_map(|it| it["filePath"].as_str()).collect()
    }

    #[test]
    fn chunks_are_shown_as_citations() {
        let tree = Tree::new(&[("src/cart.rs", CART), ("mail/send.py", MAIL)]);
        let index = Arc::default();
        let given = json!({ "query": "How much does the customer pay?", "target_directories": [] });
        let outcome = ask(&tree, &index, given).expect("chunks");
        assert_eq!(
            outcome.text,
            format!(
                "Ranked by the words of the question, not by its meaning.\n\n```1:6:src/cart.rs\n{}```",
                String::from_utf8_lossy(CART)
            )
        );
        assert_eq!(outcome.data["indexState"], "lexical_only");
        assert_eq!(outcome.data["chunks"][0]["endLine"], 6);
    }

    #[test]
    fn the_index_follows_the_files() {
        let tree = Tree::new(&[
            ("src/cart.rs", CART),
            ("mail/send.py", MAIL),
            (".cursorindexingignore", b"generated\n"),
            (".npmrc", b"//registry.test/:_authToken=letters\n"),
        ]);
        let index = Arc::default();
        let ask = |query: &str, directories: Value| {
            ask(
                &tree,
                &index,
                json!({ "query": query, "target_directories": directories }),
            )
            .expect("an answer")
        };
        let add = |name: &str, content: &str| std::fs::write(tree.folder.path().join(name), content).expect("a file");
        assert_eq!(files(&ask("who delivers letters", json!([]))), ["mail/send.py"]);
        add(
            "mail/post.py",
            "def stamp():\n    '''Put stamps on letters and deliver letters.'''\n",
        );
        assert_eq!(
            files(&ask("who delivers letters", json!([]))),
            ["mail/post.py", "mail/send.py"]
        );
        add("mail/post.py", "def stamp():\n    '''Nothing.'''\n");
        assert_eq!(files(&ask("who delivers letters", json!([]))), ["mail/send.py"]);
        assert!(files(&ask("who delivers letters", json!(["src"]))).is_empty());
        assert_eq!(
            files(&ask("who delivers letters", json!("mail/send.py"))),
            ["mail/send.py"]
        );
        std::fs::remove_file(tree.folder.path().join("mail/send.py")).expect("gone");
        assert!(files(&ask("who delivers letters", json!([]))).is_empty());
        std::fs::create_dir(tree.folder.path().join("generated")).expect("a folder");
        add("generated/a.py", "letters = 1");
        add("mail/.env", "letters = 1");
        add(".gitignore", "*.tmp\n");
        add("mail/a.tmp", "letters");
        let nothing = ask("letters", json!([]));
        assert!(files(&nothing).is_empty());
        assert!(
            nothing
                .text
                .ends_with("Nothing was found. Ask with other words, or search for a name with `grep`.")
        );
    }

    #[test]
    fn what_is_not_whole_is_said() {
        let tree = Tree::new(&[("src/cart.rs", CART)]);
        let given = json!({ "query": "customer", "target_directories": [] });
        let mut until = Until::done();
        until.set();
        let outcome = search(&context(&tree, &Arc::default()), &input(&tool(), given), &until).expect("an answer");
        assert_eq!(outcome.data["indexState"], "building");
        assert_eq!(outcome.data["chunks"], json!([]));
        let note = outcome.data["note"].as_str().unwrap_or_default();
        assert!(
            note.starts_with("Only 0 of ") && outcome.text.contains(note),
            "{}",
            outcome.text
        );
    }

    #[test]
    fn chunks_that_do_not_fit_are_left_out_and_counted() {
        let word = "letters and postage ";
        let files: Vec<_> = (0..12)
            .map(|at| {
                // Few lines, and long ones.
                let lines: String = (0..30)
                    .map(|it| format!("note {at} {it}: {}\n", word.repeat(18)))
                    .collect();
                (format!("{at}.txt"), lines)
            })
            .collect();
        let files: Vec<_> = files
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_bytes()))
            .collect();
        let given = json!({ "query": "letters", "target_directories": [] });
        let outcome = ask(&Tree::new(&files), &Arc::default(), given).expect("chunks");
        let shown = outcome.data["chunks"].as_array().map_or(0, Vec::len);
        assert!(outcome.is_truncated && outcome.text.len() <= (32 << 10) + 200 && shown < 10);
        let end = format!("\n[cut: {shown} of 10 chunks shown; ask about less, or name a directory]");
        assert!(outcome.text.ends_with(&end), "{}", outcome.text);
    }

    #[test]
    fn fences_hold_what_has_fences() {
        let text = "# Letters\n\n````md\n```sh\nsend\n```\n````\n";
        let tree = Tree::new(&[("a.md", text.as_bytes())]);
        let outcome = ask(
            &tree,
            &Arc::default(),
            json!({ "query": "letters", "target_directories": [] }),
        );
        let outcome = outcome.expect("a chunk");
        assert!(
            outcome.text.ends_with(&format!("`````1:7:a.md\n{text}`````")),
            "{}",
            outcome.text
        );
    }
}
