//! What the performance figures of the parts come from: `cargo bench`.

#![expect(clippy::print_stdout, reason = "figures are for the person who runs the bench")]

#[path = "../tests/it/test_app.rs"]
mod test_app;

use std::{
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use divan::{Bencher, black_box};
use ratatui::{layout::Rect, widgets::StatefulWidget};
use serde_json::json;
use sheaf::{
    agent::approval::RunMode,
    agent::prompt::{
        self,
        context::{Files, Gathering, Style, files, layout},
        rules::{RuleSet, Trust},
    },
    net::sse,
    protocol::{Event, Message, Mode, codec},
    sandbox::{Checkpoints, Workspace},
    text::{NoColours, Role, Sanitized, Span, StyledLine, markdown::Flow},
    theme::Theme,
    tools::Stop,
    tui::{
        terminal::Surface,
        widgets::{row_key, styled_line::LinesWidget},
    },
};

use self::test_app::{TestApp, delta, document, end, start};

fn main() -> std::process::ExitCode {
    // Commands are held by this very program, started once more.
    let arguments: Vec<_> = std::env::args_os().collect();
    if let Some(code) = sheaf::sandbox::helper(&arguments) {
        return code;
    }
    if !arguments.iter().any(|it| it == "--list") {
        println!("120×40, a frame for each of 20,000 tokens of 4 bytes:");
        print_cost("all from event to bytes", whole_frames);
        print_cost("surface alone", surface_frames);
    }
    divan::main();
    std::process::ExitCode::SUCCESS
}

/// Prints time and bytes per token; `run` shows tokens one by one and returns the bytes that were written.
fn print_cost(name: &str, run: fn(&[String]) -> usize) {
    let tokens = tokens(20_000);
    let began = Instant::now();
    let bytes = run(&tokens) as f64;
    let count = tokens.len() as f64;
    let micros = began.elapsed().as_secs_f64() * 1e6;
    println!("  {name:<24} {:6.2} µs  {:5.1} bytes", micros / count, bytes / count);
}

fn whole_frames(tokens: &[String]) -> usize {
    let mut desk = TestApp::new(120, 40).blind();
    desk.events([Event::UserMessage(Message::user("go")), start("a", "text", json!({}))]);
    for token in tokens {
        desk.events([delta("a", token)]);
    }
    desk.bytes()
}

/// Lines that are filled token by token, without anything that makes them.
fn surface_frames(tokens: &[String]) -> usize {
    const LINES: usize = 36;
    let theme = Theme::built_in("sheaf-dark").expect("it is in the table");
    let mut surface = Surface::new(120, 40);
    let area = Rect::new(0, 1, 120, LINES as u16);
    let (mut lines, mut keys) = (vec![StyledLine::blank()], vec![0]);
    let (mut out, mut bytes) = (Vec::new(), 0);
    for token in tokens {
        if lines.last().is_some_and(|it| it.plain().len() > 100) {
            lines.push(StyledLine::blank());
            keys.push(0);
        }
        if let (Some(line), Some(key)) = (lines.last_mut(), keys.last_mut()) {
            let text = line.plain() + &token.replace('\n', " ");
            line.spans = vec![Span::new(Sanitized::new(&text), Role::Text)];
            *key = row_key::of_row(line);
        }
        let first = lines.len().saturating_sub(LINES);
        let mut frame = surface.frame(1, None);
        frame.rows(area, &keys[first..], |at, row, buf, links| {
            // Rows below the text are blank.
            let lines = lines.get(first + at..=first + at).unwrap_or_default();
            LinesWidget { lines, theme: &theme }.render(row, buf, links);
        });
        frame.finish(Some((2, 38)), &mut out);
        bytes += out.len();
        out.clear();
    }
    bytes
}

/// What the sandbox costs a command: one that does nothing, held and by itself.
mod commands {
    use divan::Bencher;
    use sheaf::{
        protocol::Permission,
        sandbox::{Commands, Spec, Tier, Workspace},
    };

    fn run(bencher: Bencher<'_, '_>, permissions: &[Permission]) {
        let folder = tempfile::tempdir().expect("a folder");
        let workspace = Workspace::open(folder.path()).expect("a workspace");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        bencher.bench_local(|| {
            runtime.block_on(async {
                let spec = Spec {
                    folders: Vec::new(),
                    line: "true".to_owned(),
                    directory: workspace.root().to_owned(),
                    permissions: permissions.to_vec(),
                    only_reads: false,
                    limit: None,
                    variables: Vec::new(),
                };
                let running = workspace.commands().start(spec, |_| {}).expect("it runs").foreground();
                assert_eq!(running.running().ended().await.how, sheaf::sandbox::How::Exited(0));
            });
        });
    }

    #[divan::bench(sample_count = 200, ignore = Commands::tier() == Tier::None)]
    fn held(bencher: Bencher<'_, '_>) {
        run(bencher, &[]);
    }

    #[divan::bench(sample_count = 200)]
    fn by_itself(bencher: Bencher<'_, '_>) {
        run(bencher, &[Permission::All]);
    }
}

/// Markdown as models write it, about four characters a token.
fn tokens(count: usize) -> Vec<String> {
    let paragraph = "The **scheduler** keeps `frames` apart, so that a *slow* terminal never delays a key. ";
    let block = format!(
        "{}\n\n- one item of a list\n- another with `code`\n\n",
        paragraph.repeat(4)
    );
    let text = block.repeat(count * 4 / block.len() + 1);
    text.as_bytes()
        .chunks(4)
        .take(count)
        .map(|it| String::from_utf8_lossy(it).into_owned())
        .collect()
}

#[divan::bench(args = [5_000, 20_000])]
fn markdown_token_by_token(bencher: Bencher<'_, '_>, count: usize) {
    let tokens = tokens(count);
    bencher.bench_local(|| {
        let mut flow = Flow::new(1);
        let (mut source, mut rows) = (String::new(), Vec::new());
        for token in &tokens {
            source.push_str(token);
            flow.update(&source, false, 110, &NoColours, &mut rows);
        }
        rows.len()
    });
}

#[divan::bench(args = [20_000])]
fn events_decoded(bencher: Bencher<'_, '_>, count: usize) {
    let mut body =
        String::from("event: document_start\ndata: {\"id\":\"doc_001\",\"type\":\"text\",\"sequence\":1}\n\n");
    for token in tokens(count) {
        body.push_str(&format!(
            "event: content_delta\ndata: {}\n\n",
            json!({ "documentId": "doc_001", "delta": token })
        ));
    }
    body.push_str("event: done\ndata: {}\n\n");
    bencher.bench_local(|| {
        let mut frames = sse::Frames::new();
        let identity = codec::Identity::local("model", Mode::Agent, 0);
        let mut decoder = codec::Decoder::new(identity);
        let mut events = 0;
        for chunk in body.as_bytes().chunks(1400) {
            for frame in frames.push(chunk) {
                let frame = frame.expect("no line is too long");
                let decoded = decoder.frame(frame.event.as_deref(), &frame.data);
                events += decoded.expect("the dialect is known").len();
            }
        }
        black_box(events)
    });
}

#[divan::bench]
fn frame_per_token(bencher: Bencher<'_, '_>) {
    let tokens = tokens(2_000);
    bencher.bench_local(|| {
        let mut desk = TestApp::new(120, 40).blind();
        desk.events([Event::UserMessage(Message::user("go")), start("a", "text", json!({}))]);
        for token in &tokens {
            desk.events([delta("a", token)]);
        }
        desk.events([end("a", None, json!({}))]);
        desk.bytes()
    });
}

fn long_conversation(documents: usize) -> Vec<Event> {
    let mut events = Vec::new();
    for n in 0..documents {
        if n % 20 == 0 {
            events.push(Event::UserMessage(Message::user(format!("question {n}"))));
        }
        let id = format!("doc_{:03}", n % 20 + 1);
        if n % 3 == 0 {
            let arguments =
                json!({ "toolName": "read_file", "arguments": { "target_file": "src/cart.rs" }, "result": "text" });
            events.extend(document(&id, "tool_call", None, arguments));
        } else {
            events.extend(document(
                &id,
                "text",
                Some("An answer of **some** words.\n\n- with\n- a list"),
                json!({}),
            ));
        }
    }
    events
}

#[divan::bench(sample_count = 10)]
fn ten_thousand_documents_open(bencher: Bencher<'_, '_>) {
    let events = long_conversation(10_000);
    bencher.with_inputs(|| events.clone()).bench_local_values(|events| {
        let mut desk = TestApp::new(120, 40).blind();
        desk.events(events);
        desk.bytes()
    });
}

#[divan::bench]
fn ten_thousand_documents_scroll_one_page(bencher: Bencher<'_, '_>) {
    let mut desk = TestApp::new(120, 40).blind();
    desk.events(long_conversation(10_000));
    bencher.bench_local(|| desk.keys("<pgup>"));
}

/// What opens over ten thousand documents, a key in it, and away again.
#[divan::bench(args = ["v<down><esc>", "vquestion<esc>", "/what<esc>", "f<esc>", "<f3>mode<esc>", "<alt+r>j<esc>"])]
fn over_ten_thousand_documents(bencher: Bencher<'_, '_>, keys: &str) {
    let mut desk = TestApp::new(120, 40).blind();
    desk.events(long_conversation(10_000));
    desk.events([Event::UserMessage(Message::user("change"))]);
    for n in 0..500 {
        let path = format!("src/part{}.rs", n % 40);
        let diff = json!({ "oldString": "let a = 1;\n", "newString": "let a = 2;\n", "startLine": n + 1 });
        let metadata = json!({ "filePath": path, "operation": "edit", "diff": diff });
        desk.events(document(
            &format!("edit{n}"),
            "file_edit",
            Some("let a = 2;\n"),
            metadata,
        ));
    }
    desk.keys("<tab>");
    bencher.bench_local(|| desk.keys(keys));
}

#[divan::bench]
fn key_to_frame(bencher: Bencher<'_, '_>) {
    let mut desk = TestApp::new(120, 40).blind();
    desk.events(long_conversation(200));
    bencher.bench_local(|| desk.keys("x"));
}

/// A tree of `count` files such as large projects have: ignore files here and there, a folder that they name.
#[expect(clippy::disallowed_methods, reason = "a tree to measure with is no file of ours")]
fn tree(count: usize) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    std::fs::create_dir(root.join(".git")).expect("a folder");
    let put = |path: &Path, text: &str| {
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        std::fs::write(path, text).expect("a file");
    };
    put(&root.join(".gitignore"), "node_modules/\n*.log\n/build/\n!keep.log\n");
    put(&root.join(".cursorignore"), "private/\n");
    put(&root.join("AGENTS.md"), "Tests sit next to the code.\n");
    for n in 0..count {
        let ending = ["rs", "ts", "md", "json", "log"][n % 5];
        let path = format!("part{:02}/src/group{:02}/module{n}.{ending}", n % 40, n / 40 % 50);
        put(&root.join(path), "");
    }
    for n in 0..40 {
        put(&root.join(format!("part{n:02}/.gitignore")), "target/\n*.tmp\n");
    }
    folder
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
}

/// From the start of the program until all is there.
#[divan::bench(args = [50_000, 100_000], sample_count = 10)]
fn context_gathered(bencher: Bencher<'_, '_>, count: usize) {
    let folder = tree(count);
    let workspace = Arc::new(Workspace::open(folder.path()).expect("a workspace"));
    let runtime = runtime();
    bencher.bench_local(|| {
        runtime.block_on(async {
            let first = Gathering::start(Arc::clone(&workspace), RunMode::Sandbox)
                .ready(Duration::from_mins(1))
                .await;
            assert!(!first.is_partial);
            first.text().len()
        })
    });
}

/// A look at the workspace before a command, or after one that changed nothing: what each command costs twice.
#[divan::bench(args = [5_000, 50_000], sample_count = 20)]
fn snapshot_around_a_command(bencher: Bencher<'_, '_>, count: usize) {
    let (folder, state) = (tree(count), tempfile::tempdir().expect("a folder"));
    let workspace = Workspace::open(folder.path()).expect("a workspace");
    let store = Checkpoints::open(state.path(), "bench").expect("a store");
    store.prepare(&workspace);
    bencher.bench_local(|| store.before_command(&workspace));
}

/// The first look, which nobody waits for.
#[divan::bench(args = [50_000], sample_count = 3)]
fn snapshot_for_the_first_time(bencher: Bencher<'_, '_>, count: usize) {
    let (folder, state) = (tree(count), tempfile::tempdir().expect("a folder"));
    let workspace = Workspace::open(folder.path()).expect("a workspace");
    bencher.bench_local(|| {
        let store = Checkpoints::open(state.path(), "bench").expect("a store");
        store.prepare(&workspace);
    });
}

/// From Enter to the request, two seconds after the start: all has been read by then.
#[divan::bench(sample_count = 10)]
fn enter_to_request(bencher: Bencher<'_, '_>) {
    let folder = tree(50_000);
    let workspace = Arc::new(Workspace::open(folder.path()).expect("a workspace"));
    let runtime = runtime();
    let rules = RuleSet::load(&workspace, Trust::Whole);
    let gathered = || {
        let gathering = runtime.block_on(async {
            let gathering = Gathering::start(Arc::clone(&workspace), RunMode::Sandbox);
            gathering.files().ready(Duration::from_mins(1)).await;
            tokio::time::sleep(Duration::from_secs(2)).await;
            gathering
        });
        (gathering, rules.clone())
    };
    bencher
        .with_inputs(gathered)
        .bench_local_values(|(gathering, mut rules)| {
            runtime.block_on(async {
                let first = gathering.ready(Duration::from_millis(250)).await;
                assert!(!first.is_partial);
                let system = prompt::system(&prompt::Facts {
                    tools: &["read_file", "edit_file", "grep"],
                    rules: Some(&rules),
                    ..prompt::Facts::default()
                });
                let update = rules.attach(["part03/src/group01/module43.rs"]);
                system.len() + first.text().len() + prompt::query("hi", update.as_slice()).len()
            })
        });
}

fn known(count: usize) -> files::List {
    let folder = tree(count);
    let workspace = Workspace::open(folder.path()).expect("a workspace");
    files::walk(&workspace, &Stop::default())
}

#[divan::bench(args = [50_000, 100_000], sample_count = 10)]
fn layout_of_files(bencher: Bencher<'_, '_>, count: usize) {
    let list = known(count);
    bencher.bench_local(|| layout(&list.files, Style::List, 8 << 10).len());
}

#[divan::bench(args = ["", "mod", "part03module43"], sample_count = 10)]
fn files_by_name(bencher: Bencher<'_, '_>, pattern: &str) {
    let list = known(50_000);
    bencher.bench_local(|| files::rank(&list, pattern, 20).len());
}

/// While the first walk goes on, a picker gets what is known.
#[divan::bench(sample_count = 10)]
fn files_asked_at_once(bencher: Bencher<'_, '_>) {
    let folder = tree(50_000);
    let workspace = Arc::new(Workspace::open(folder.path()).expect("a workspace"));
    bencher.bench_local(|| Files::of(Arc::clone(&workspace)).list().files.len());
}

/// The same search by the tool and by ripgrep, over the folder that `SHEAF_BENCH_TREE` names. What is published is measured with
/// `--profile release`: without link-time optimization the engine's search for bytes is not inlined, which costs the tool a tenth.
mod search {
    use std::{path::PathBuf, sync::Arc};

    use divan::Bencher;
    use serde_json::json;
    use sheaf::{
        sandbox::Workspace,
        tools::{Context, Stop, Work, arguments, grep},
    };

    const PATTERN: &str = "zebra_[a-z]+_nowhere";

    fn folder() -> Option<PathBuf> {
        std::env::var_os("SHEAF_BENCH_TREE").map(PathBuf::from)
    }

    #[divan::bench(sample_count = 10, ignore = folder().is_none())]
    fn by_the_tool(bencher: Bencher<'_, '_>) {
        let (Some(folder), Work::Call { run, .. }) = (folder(), grep::tool().work) else {
            return;
        };
        let context = Context {
            workspace: Arc::new(Workspace::open(&folder).expect("a folder")),
            seen: Arc::default(),
            index: Arc::default(),
            embeddings: Arc::default(),
            findings: Arc::default(),
            servers: Arc::default(),
            skills: std::sync::Arc::default(),
            settings: Arc::default(),
            apply: None,
            call: String::new(),
            only_reads: false,
            output: tokio::sync::mpsc::unbounded_channel().0,
            stop: Stop::default(),
        };
        let given = json!({ "pattern": PATTERN });
        let input = arguments::read(&grep::tool(), Ok(given.as_object().expect("an object"))).expect("arguments");
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        bencher.bench_local(|| runtime.block_on(run(input.clone(), context.clone())));
    }

    #[divan::bench(sample_count = 10, ignore = folder().is_none())]
    #[expect(clippy::disallowed_methods, reason = "what is measured against is a program")]
    fn by_ripgrep(bencher: Bencher<'_, '_>) {
        let Some(folder) = folder() else {
            return;
        };
        let arguments = [
            "--no-config",
            "--hidden",
            "--heading",
            "-n",
            "--no-messages",
            "-e",
            PATTERN,
            ".",
        ];
        bencher.bench_local(|| {
            let mut command = std::process::Command::new("rg");
            command
                .current_dir(&folder)
                .stdin(std::process::Stdio::null())
                .args(arguments)
                .output()
        });
    }
}
