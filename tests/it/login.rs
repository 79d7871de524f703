//! `sheaf login` and `sheaf logout`: the real binary against providers on this machine.

use std::{
    fs,
    io::Write as _,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::mpsc::{Receiver, channel},
    time::Duration,
};

use axum::{
    Json, Router,
    extract::Request,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse as _, Response},
};
use serde_json::json;

use crate::{
    print::{home, sheaf},
    pty::{Sheaf, Start},
};

/// No real key, but shaped like one.
const KEY: &str = "sk-test-0123456789abcdefghij";

/// How a provider answers a request for its models.
#[derive(Clone, Copy, Debug)]
enum Manner {
    Lists,
    Refuses,
    HasNoList,
    IsSilent,
    Fails,
}

struct Provider {
    url: String,
    /// Method and path of each request.
    requests: Receiver<String>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Provider {
    fn start(manner: Manner) -> Self {
        let (send, requests) = channel();
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = runtime
            .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
            .expect("a port");
        let address = listener.local_addr().expect("an address");
        let answer = move |request: Request| {
            let send = send.clone();
            async move {
                let (path, headers) = (request.uri().path().to_owned(), request.headers().clone());
                let line = format!("{} {path}", request.method());
                let body = axum::body::to_bytes(request.into_body(), 1 << 20)
                    .await
                    .unwrap_or_default();
                send.send(format!("{line} {}", String::from_utf8_lossy(&body))).ok();
                respond(manner, &path, &headers).await
            }
        };
        let router = Router::new().fallback(answer);
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            url: format!("http://{address}/v1"),
            requests,
            runtime: Some(runtime),
        }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

impl Drop for Provider {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn respond(manner: Manner, path: &str, headers: &HeaderMap) -> Response {
    let key = headers
        .get("authorization")
        .and_then(|it| it.to_str().ok())
        .unwrap_or_default();
    let is_right = key == format!("Bearer {KEY}");
    match manner {
        Manner::IsSilent => std::future::pending().await,
        Manner::Fails => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Manner::HasNoList if path.ends_with("/models") => StatusCode::NOT_FOUND.into_response(),
        Manner::HasNoList if is_right => {
            let chunk = json!({ "choices": [{ "index": 0, "delta": { "content": "H" }, "finish_reason": "length" }] });
            let body = format!("data: {chunk}\n\ndata: [DONE]\n\n");
            ([("content-type", "text/event-stream")], body).into_response()
        }
        Manner::Lists if is_right => {
            let list = json!({ "object": "list", "data": [{ "id": "whisper-1" }, { "id": "gpt-5.4" }] });
            Json(list).into_response()
        }
        // Servers repeat the key that they refuse.
        Manner::Lists | Manner::Refuses | Manner::HasNoList => {
            let error = json!({ "error": { "message": format!("Incorrect API key provided: {key}"), "code": "invalid_api_key" } });
            (StatusCode::UNAUTHORIZED, Json(error)).into_response()
        }
    }
}

/// A home whose settings have the provider `mine` at `url`.
fn home_with(url: &str) -> tempfile::TempDir {
    let home = home();
    let folder = home.path().join(".config/sheaf");
    fs::create_dir_all(&folder).expect("folders");
    let text = format!("[providers.mine]\nbase_url = '{url}' # ours\nfirst_byte_timeout = '1s'\n");
    fs::write(folder.join("config.toml"), text).expect("settings");
    home
}

fn settings(home: &Path) -> String {
    fs::read_to_string(home.join(".config/sheaf/config.toml")).unwrap_or_default()
}

fn key_file(home: &Path, name: &str) -> PathBuf {
    home.join(".local/state/sheaf/keys").join(name)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

/// Runs it with `input` at its standard input; the texts that it printed, and its exit code.
fn run(mut command: Command, input: &str) -> (String, String, Option<i32>) {
    command.stdin(std::process::Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // A program that reads nothing closes it.
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).ok();
    let Output { stdout, stderr, status } = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is text");
    (text(stdout), text(stderr), status.code())
}

fn login(home: &Path, arguments: &[&str], input: &str) -> (String, String, Option<i32>) {
    let mut command = sheaf(home);
    command.arg("login").args(arguments);
    let (out, err, code) = run(command, input);
    assert!(
        !format!("{out}{err}").contains(KEY),
        "the key is never printed: {out}{err}"
    );
    (out, err, code)
}

/// Every file below `folder` that contains the key.
fn holders(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if fs::read(&path).is_ok_and(|it| it.windows(KEY.len()).any(|it| it == KEY.as_bytes())) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn a_key_is_checked_stored_for_its_owner_used_and_removed() {
    let server = Provider::start(Manner::Lists);
    let home = home_with(&server.url);
    let log = home.path().join("log");
    let (out, err, code) = login(
        home.path(),
        &["mine", "--log", &log.to_string_lossy()],
        &format!("  {KEY}\n"),
    );
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("mine accepts the key: 2 models."), "{out}");
    assert!(out.contains("sheaf starts with mine, gpt-5.4"), "{out}");
    assert_eq!(server.requests(), ["GET /v1/models "]);
    let file = key_file(home.path(), "mine");
    assert_eq!((mode(&file), mode(file.parent().expect("a folder"))), (0o600, 0o700));
    assert_eq!(
        holders(home.path()),
        std::slice::from_ref(&file),
        "the key is in one file, and in no log"
    );
    let text = settings(home.path());
    assert!(
        text.contains("# ours") && text.contains(&format!("key_file = \"{}\"", file.display())),
        "{text}"
    );

    let (out, ..) = run(
        {
            let mut command = sheaf(home.path());
            command.arg("status");
            command
        },
        "",
    );
    assert_eq!(out, "provider mine, gpt-5.4\n");
    let (out, _, code) = login(home.path(), &[], "");
    assert_eq!(code, Some(0));
    assert!(
        out.contains("✓ mine        works, 2 models · file ~/.local/state/sheaf/keys/mine"),
        "{out}"
    );
    assert!(
        out.contains("· OpenAI      no key\n") && out.contains("sheaf login openai"),
        "{out}"
    );
    assert!(out.contains("ChatGPT") && out.contains("Ollama"), "{out}");

    let mut command = sheaf(home.path());
    command.args(["logout", "mine"]);
    let (out, err, code) = run(command, "");
    assert_eq!(code, Some(0), "{err}");
    assert!(out.contains("Removed ~/.local/state/sheaf/keys/mine."), "{out}");
    assert_eq!(holders(home.path()), Vec::<PathBuf>::new());
    assert!(!settings(home.path()).contains("key_file"), "{}", settings(home.path()));
    let mut command = sheaf(home.path());
    command.args(["logout", "openai"]).env("OPENAI_API_KEY", KEY);
    let (out, ..) = run(command, "");
    assert!(
        out.contains("OPENAI_API_KEY still provides a key of OpenAI") && !out.contains(KEY),
        "{out}"
    );
}

#[test]
fn a_key_that_was_not_accepted_is_not_stored_and_the_error_says_why() {
    for (manner, sentence) in [
        (Manner::Refuses, "the key was refused by mine"),
        (Manner::IsSilent, "the key could not be checked"),
        (Manner::Fails, "the key could not be checked"),
        (Manner::HasNoList, "mine has no list of models to check the key with"),
    ] {
        let server = Provider::start(manner);
        let home = home_with(&server.url);
        let before = settings(home.path());
        let (out, err, code) = login(home.path(), &["mine"], KEY);
        assert_eq!((out.as_str(), code), ("", Some(1)), "{manner:?}: {err}");
        assert!(err.contains(sentence), "{manner:?}: {err}");
        assert_eq!(holders(home.path()), Vec::<PathBuf>::new(), "{manner:?}");
        assert_eq!(settings(home.path()), before, "{manner:?}");
        let (_, err, code) = login(home.path(), &["mine", "--no-check"], KEY);
        assert_eq!(code, Some(0), "{manner:?}: {err}");
        assert_eq!(holders(home.path()), [key_file(home.path(), "mine")], "{manner:?}");
    }
    let home = home_with("http://127.0.0.1:9/v1");
    let (_, err, code) = login(home.path(), &["mine"], KEY);
    assert_eq!(code, Some(1));
    assert!(err.contains("connection refused") && err.contains("proxy"), "{err}");
}

#[test]
fn what_is_no_key_or_no_provider_is_refused_and_never_repeated() {
    let home = home();
    for (arguments, input, sentence, wanted) in [
        (&["openai"][..], "", "no key was given", 1),
        (&["openai"], "  \n", "no key was given", 1),
        (&["openai"], "one\ntwo\n", "is not a key", 1),
        (&["openai", "--keyring"], KEY, "keyring", 1),
        (
            &["openai", "--key-command", "exit 3"],
            "",
            "the key command returned no key",
            1,
        ),
        (&["opnai"], "", "did you mean `openai`", 2),
        (&[KEY], "", "this is not the name of a provider", 2),
        (&["openai", KEY], "", "a key is never an argument", 2),
        (&["openai", "--key", KEY], "", "a key is never an argument", 2),
        (
            &["openai", &format!("--api-key={KEY}")],
            "",
            "a key is never an argument",
            2,
        ),
        (&["ollama"], "", "no server answers", 1),
    ] {
        let arguments: Vec<&str> = arguments.to_vec();
        let mut command = sheaf(home.path());
        // No test reaches the network.
        command
            .env("HTTPS_PROXY", "http://127.0.0.1:9")
            .env("OLLAMA_HOST", "127.0.0.1:9");
        command.arg("login").args(&arguments);
        let (out, err, code) = run(command, input);
        assert!(!format!("{out}{err}").contains(KEY), "{arguments:?}: {out}{err}");
        assert_eq!(code, Some(wanted), "{arguments:?}: {out}{err}");
        assert!(err.contains(sentence), "{arguments:?}: {err}");
        assert_eq!(holders(home.path()), Vec::<PathBuf>::new(), "{arguments:?}");
    }
}

#[test]
fn a_file_that_others_can_read_becomes_private_and_a_link_is_refused() {
    let server = Provider::start(Manner::Lists);
    let home = home_with(&server.url);
    let file = key_file(home.path(), "mine");
    fs::create_dir_all(file.parent().expect("a folder")).expect("folders");
    fs::write(&file, "old").expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
    let (_, err, code) = login(home.path(), &["mine"], KEY);
    assert_eq!((code, mode(&file)), (Some(0), 0o600), "{err}");

    let target = home.path().join("elsewhere");
    fs::write(&target, "mine").expect("a file");
    fs::remove_file(&file).expect("removed");
    symlink(&target, &file).expect("linked");
    let (_, err, code) = login(home.path(), &["mine"], KEY);
    assert_eq!(code, Some(1), "{err}");
    assert!(err.contains("is not a regular file"), "{err}");
    assert_eq!(fs::read_to_string(&target).expect("it is there"), "mine");
}

#[test]
fn logins_at_the_same_time_all_arrive() {
    let server = Provider::start(Manner::Lists);
    let home = home();
    let names = ["one", "two", "three", "four", "five"];
    let folder = home.path().join(".config/sheaf");
    fs::create_dir_all(&folder).expect("folders");
    let text: String = names
        .iter()
        .map(|it| format!("[providers.{it}]\nbase_url = '{}'\n", server.url))
        .collect();
    fs::write(folder.join("config.toml"), text).expect("settings");
    std::thread::scope(|scope| {
        for name in names {
            let home = home.path();
            scope.spawn(move || {
                let (out, err, code) = login(home, &[name], KEY);
                assert_eq!(code, Some(0), "{name}: {out}{err}");
            });
        }
    });
    let text = settings(home.path());
    for name in names {
        assert_eq!(mode(&key_file(home.path(), name)), 0o600);
        assert!(
            text.contains(&key_file(home.path(), name).display().to_string()),
            "{name}: {text}"
        );
    }
    assert_eq!(
        text.matches("\nprovider = ").count() + usize::from(text.starts_with("provider = ")),
        1,
        "{text}"
    );
}

/// `sheaf login mine` at a terminal.
fn at_terminal(server: &Provider, arguments: &[&str]) -> Sheaf {
    let text = format!("[providers.mine]\nbase_url = '{}'\n", server.url);
    let arguments: Vec<&str> = ["login", "mine"].iter().chain(arguments).copied().collect();
    Start::new(&arguments).file(".config/sheaf/config.toml", &text).run()
}

#[test]
fn a_key_that_is_typed_is_not_shown() {
    let server = Provider::start(Manner::Lists);
    let sheaf = at_terminal(&server, &[]);
    sheaf.wait_for("it is not shown): ");
    sheaf.send(&format!("\u{1b}[200~{KEY}\u{1b}[201~\r"));
    sheaf.wait_for("sheaf starts with mine, gpt-5.4");
    assert_eq!(sheaf.exit(), 0);
    assert!(!sheaf.look(|it| it.wrote(KEY.as_bytes())));
    assert_eq!(holders(sheaf.home()), [key_file(sheaf.home(), "mine")]);
}

#[test]
fn a_signal_at_the_question_leaves_the_terminal_as_it_was() {
    let server = Provider::start(Manner::Lists);
    let sheaf = at_terminal(&server, &[]);
    sheaf.wait_for("it is not shown): ");
    sheaf.send("sk-half\u{3}");
    assert_eq!(sheaf.exit(), 130);
    assert!(!sheaf.is_raw());
    assert!(!sheaf.look(|it| it.wrote(b"sk-half")));
    assert_eq!(server.requests(), Vec::<String>::new());
}

/// A check takes up to half a minute, and a question waits for ever: Ctrl+C ends both.
#[test]
fn a_signal_ends_the_check_and_its_questions() {
    for (manner, arguments, place) in [
        (Manner::IsSilent, &[][..], "Checking the key"),
        (Manner::Fails, &[], "Store the key unchecked?"),
        (Manner::HasNoList, &["--model", "m"], "one token of m?"),
    ] {
        let server = Provider::start(manner);
        let sheaf = at_terminal(&server, arguments);
        sheaf.wait_for("it is not shown): ");
        sheaf.send(&format!("{KEY}\r"));
        sheaf.wait_for(place);
        sheaf.send("\u{3}");
        assert_eq!(sheaf.exit(), 130, "{manner:?}");
        assert!(!sheaf.is_raw());
        assert_eq!(holders(sheaf.home()), Vec::<PathBuf>::new(), "{manner:?}");
    }
}

/// Without a terminal nobody can say yes: `--model` says it, and nothing else stores an unchecked key but `--no-check`.
#[test]
fn a_piped_key_is_checked_with_the_model_that_was_named() {
    for (key, arguments, code, sentence, asks) in [
        (KEY, &["--model", "m"][..], 0, "sheaf starts with mine, m", true),
        (
            "sk-wrong-0123456789abcdefghij",
            &["--model", "m"],
            1,
            "the key was refused by mine",
            true,
        ),
        (KEY, &[], 1, "--no-check", false),
    ] {
        let server = Provider::start(Manner::HasNoList);
        let home = home_with(&server.url);
        let path = home.path().join(".config/sheaf/config.toml");
        if arguments.is_empty() {
            fs::write(&path, settings(home.path()) + "model = 'other'\n").expect("settings");
        }
        let arguments: Vec<&str> = ["mine"].iter().chain(arguments).copied().collect();
        let (out, err, found) = login(home.path(), &arguments, key);
        assert_eq!(found, Some(code), "{arguments:?}: {out}{err}");
        assert!(format!("{out}{err}").contains(sentence), "{arguments:?}: {out}{err}");
        let asked = server.requests();
        let is_asked = asked.iter().any(|it| it.contains("/chat/completions"));
        assert_eq!(is_asked, asks, "{asked:?}");
        assert_eq!(key_file(home.path(), "mine").exists(), code == 0, "{arguments:?}");
    }
}

#[test]
fn one_token_is_asked_for_only_after_yes() {
    let limit = Duration::from_mins(1);
    for (answer, asks) in [("n\r", false), ("y\r", true)] {
        let server = Provider::start(Manner::HasNoList);
        let sheaf = at_terminal(&server, &["--model", "m"]);
        sheaf.wait_for("it is not shown): ");
        sheaf.send(&format!("{KEY}\r"));
        sheaf.wait_for("one token of m?");
        assert_eq!(server.requests.recv_timeout(limit).as_deref(), Ok("GET /v1/models "));
        assert_eq!(server.requests(), Vec::<String>::new(), "nothing before the answer");
        sheaf.send(answer);
        sheaf.wait_for("sheaf starts with mine, m");
        assert_eq!(sheaf.look(|seen| seen.shows("stored unchecked")), !asks);
        let asked = server.requests();
        assert_eq!(asked.len(), usize::from(asks), "{asked:?}");
        assert!(
            asked
                .iter()
                .all(|it| it.contains("/chat/completions") && it.contains("_tokens\":1")),
            "{asked:?}"
        );
    }
}
