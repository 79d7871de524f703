//! An exported page in a real browser without a window: it is spoken to through the browser's own debugging pipe, because the page
//! itself allows no script.
//!
//! `SHEAF_TEST_BROWSER` names one; `SHEAF_TEST_PICTURES` a folder for pictures of what it shows.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

const BROWSERS: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("SHEAF_TEST_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    BROWSERS
        .iter()
        .flat_map(|name| folders.iter().map(move |it| it.join(name)))
        .find(|it| it.is_file())
}

/// A browser, and the pipes to it.
struct Page {
    child: Child,
    to: File,
    from: File,
    read: Vec<u8>,
    asked: u64,
    session: Option<String>,
    /// What it wanted from anywhere.
    requests: Vec<String>,
    _folder: tempfile::TempDir,
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Page {
    /// `None`: the browser does not start here.
    fn open(browser: &Path) -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let (to, from) = (folder.path().join("to"), folder.path().join("from"));
        let made = Command::new("mkfifo").args([&to, &from]).status();
        if !made.is_ok_and(|it| it.success()) {
            return None;
        }
        // The browser reads from 3 and writes to 4.
        let line = "exec \"$0\" --headless=new --no-sandbox --disable-gpu --no-first-run --disable-dev-shm-usage \
                    --user-data-dir=\"$3\" --remote-debugging-pipe about:blank 3<\"$1\" 4>\"$2\"";
        let child = Command::new("/bin/sh")
            .args(["-c", line])
            .arg(browser)
            .args([&to, &from])
            .arg(folder.path().join("profile"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let to = OpenOptions::new().write(true).open(&to).ok()?;
        let from = File::open(&from).ok()?;
        let mut page = Self {
            child,
            to,
            from,
            read: Vec::new(),
            asked: 0,
            session: None,
            requests: Vec::new(),
            _folder: folder,
        };
        let target = page.ask("Target.createTarget", json!({ "url": "about:blank" }))?;
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = page.ask("Target.attachToTarget", attach)?;
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        page.ask("Network.enable", json!({}))?;
        page.ask("Page.enable", json!({}))?;
        Some(page)
    }

    /// Asks and reads until the answer; `None`: the browser is gone.
    fn ask(&mut self, method: &str, params: Value) -> Option<Value> {
        self.asked += 1;
        let id = self.asked;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        self.to.write_all(format!("{message}\0").as_bytes()).ok()?;
        loop {
            let answer = self.next()?;
            if answer["id"] == id {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return Some(answer["result"].clone());
            }
        }
    }

    fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.read.iter().position(|it| *it == 0) {
                let message: Vec<u8> = self.read.drain(..=end).collect();
                let message: Value = serde_json::from_slice(&message[..end]).expect("JSON");
                if message["method"] == "Network.requestWillBeSent" {
                    let url = message["params"]["request"]["url"].as_str().unwrap_or_default();
                    self.requests.push(url.to_owned());
                }
                return Some(message);
            }
            let mut some = [0; 1 << 14];
            let count = self.from.read(&mut some).ok().filter(|it| *it > 0)?;
            self.read.extend_from_slice(&some[..count]);
        }
    }

    fn go(&mut self, url: &str) {
        self.ask("Page.navigate", json!({ "url": url })).expect("it goes there");
        while self.next().expect("the browser is there")["method"] != "Page.loadEventFired" {}
    }

    fn look(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", params).expect("the browser is there");
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    fn prefer(&mut self, scheme: &str, width: u32) {
        let feature = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.ask("Emulation.setEmulatedMedia", feature).expect("it can");
        let size = json!({ "width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", size).expect("it can");
    }

    fn picture(&mut self, name: &str) {
        let Some(folder) = std::env::var_os("SHEAF_TEST_PICTURES") else {
            return;
        };
        let answer = self.ask("Page.captureScreenshot", json!({})).expect("it can");
        let text = answer["data"].as_str().expect("a picture");
        let coded = Path::new(&folder).join(format!("{name}.b64"));
        std::fs::write(&coded, text).expect("written");
        let decoded = File::create(Path::new(&folder).join(format!("{name}.png"))).expect("a file");
        let status = Command::new("base64").arg("-d").arg(&coded).stdout(decoded).status();
        assert!(status.is_ok_and(|it| it.success()));
        std::fs::remove_file(&coded).expect("it is there");
    }
}

/// How far two colours such as `rgb(1, 2, 3)` are apart, as WCAG counts contrast.
const CONTRAST: &str = "(() => {
    const light = text => {
        const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map(it => it / 255)
            .map(it => it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const ground = element => {
        for (let it = element; it; it = it.parentElement) {
            const colour = getComputedStyle(it).backgroundColor;
            if (!/rgba\\(.*, 0\\)/.test(colour)) return colour;
        }
        return 'rgb(255, 255, 255)';
    };
    let least = 99;
    for (const it of document.querySelectorAll('p, li, .line, .message .body, h1, summary')) {
        const [a, b] = [light(getComputedStyle(it).color), light(ground(it))];
        least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
    }
    return least;
})()";

const FOLDS: &str = "(() => {
    const folds = [...document.querySelectorAll('details')];
    let bad = 0;
    for (const it of folds) {
        const was = it.open, before = it.getBoundingClientRect().height;
        it.querySelector('summary').click();
        const after = it.getBoundingClientRect().height;
        const inner = it.querySelector(':scope > :not(summary)');
        if (it.open === was || (inner && inner.textContent.trim() && (was ? after >= before : after <= before))) bad++;
        it.querySelector('summary').click();
        if (it.open !== was) bad++;
    }
    return [folds.length, folds.filter(it => it.open).length, bad];
})()";

#[test]
fn a_page_folds_shows_changes_in_both_schemes_and_asks_nobody() {
    let Some(mut page) = browser().and_then(|it| Page::open(&it)) else {
        crate::skipped("no browser starts here: an exported page was not looked at in one");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let run = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_sheaf"))
            .args(arguments)
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path())
            .output()
            .expect("it runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let tour = Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/tour/tour.jsonl");
    let id = run(&["sessions", "import", tour.to_str().expect("plain")]);
    let file = folder.path().join("tour.html");
    run(&[
        "sessions",
        "export",
        id.trim(),
        "-o",
        file.to_str().expect("plain"),
        "--all-branches",
    ]);
    let url = format!("file://{}", file.display());

    let mut grounds = Vec::new();
    for scheme in ["light", "dark"] {
        for width in [1200, 400] {
            page.prefer(scheme, width);
            page.go(&url);
            grounds.push(page.look("getComputedStyle(document.body).backgroundColor"));
            let least = page.look(CONTRAST).as_f64().expect("a number");
            assert!(least >= 4.5, "{scheme} {width}: {least}");
            let is_wide = page.look("document.documentElement.scrollWidth > document.documentElement.clientWidth");
            assert_eq!(is_wide, false, "{scheme} {width}: only code scrolls sideways");
            page.picture(&format!("page-{scheme}-{width}"));
            page.look("document.querySelector('pre.diff').scrollIntoView(), 0");
            page.picture(&format!("page-{scheme}-{width}-changes"));
        }
    }
    assert!(grounds[0] != grounds[2], "{grounds:?}");
    let folds = page.look(FOLDS);
    let (all, open) = (folds[0].as_u64().unwrap_or(0), folds[1].as_u64().unwrap_or(0));
    assert!(all > 10 && open > 0 && open < all && folds[2] == 0, "{folds}");
    // What was taken away and what was added are told apart by their colour and by their sign.
    let changes = page.look(
        "['removed', 'added'].map(it => document.querySelector('.line.' + it)).map(it => \
         [getComputedStyle(it).backgroundColor, getComputedStyle(it, '::before').content])",
    );
    assert!(
        changes[0][0] != changes[1][0] && changes[0][1] != changes[1][1],
        "{changes}"
    );
    let coloured = page.look("document.querySelectorAll('pre code span[style*=color]').length");
    assert!(coloured.as_u64().is_some_and(|it| it > 20), "{coloured}");
    // An address leads to its document.
    page.look("document.querySelector('a[href=\"#d1.4\"]').click(), 0");
    assert_eq!(page.look("document.querySelector(':target').id"), "d1.4");
    // Whatever is done with it, it wants nothing but itself.
    let foreign: Vec<&String> = page.requests.iter().filter(|it| !it.starts_with(&url)).collect();
    assert!(foreign.is_empty() && !page.requests.is_empty(), "{foreign:?}");
}
