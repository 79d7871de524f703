//! Checks the terminal: its capabilities, and the keys that terminals send in different ways.

use std::time::Duration;

use super::{Check, CheckVerdict, Topic};
use crate::{
    config::{Environment, Settings},
    os::process,
    theme::{Depth, Rgb, TerminalEnvironment},
    tui::{ImageProtocol, ImageSetting, TerminalName},
};

/// Keyboard protocol of the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keyboard {
    /// Unknown: there was no terminal to ask.
    #[default]
    Unknown,
    /// Ctrl with a point is a point.
    Legacy,
    /// Every key says what it is.
    Kitty,
}

/// Options of the tmux around us.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tmux {
    /// Such as `3.5a`.
    pub version: String,
    /// Option `extended-keys`.
    pub extended_keys: String,
    /// Option `extended-keys-format`; empty before 3.5.
    pub format: String,
    /// Option `set-clipboard`.
    pub clipboard: String,
}

/// Facts about the terminal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TerminalFacts {
    /// False if standard input or output is not a terminal.
    pub is_terminal: bool,
    pub terminal: TerminalEnvironment,
    /// True if an `SSH_…` variable is set.
    pub is_remote: bool,
    /// The variable that decides the encoding, and its value.
    pub encoding: Option<(&'static str, String)>,
    /// Columns and rows.
    pub size: Option<(u16, u16)>,
    /// Background that the terminal reported.
    pub background: Option<Rgb>,
    pub keyboard: Keyboard,
    /// Protocol for pictures, if there is one.
    pub images: Option<ImageProtocol>,
    /// `None` outside of tmux.
    pub tmux: Option<Tmux>,
}

impl TerminalFacts {
    /// Reads the environment and queries the terminal. Waits up to 1.5 s for a terminal that does not answer.
    pub(super) fn gather(environment: &Environment) -> Self {
        use std::io::IsTerminal;

        let text = |name: &str| environment.get(name).map(str::to_owned);
        let encoding = ["LC_ALL", "LC_CTYPE", "LANG"];
        let encoding = encoding.into_iter().find_map(|name| Some((name, text(name)?)));
        let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
        let answers = if is_terminal { ask() } else { None };
        let answers = answers.unwrap_or_default();
        Self {
            is_terminal,
            terminal: TerminalEnvironment::of(text),
            is_remote: ["SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT"]
                .iter()
                .any(|it| environment.get(it).is_some()),
            encoding,
            size: answers.size,
            background: answers.background,
            keyboard: answers.keyboard,
            images: match ImageSetting::Auto.here(&|name| text(name)) {
                ImageSetting::Auto => answers.images(),
                ImageSetting::Off | ImageSetting::Only(_) => None,
            },
            tmux: None,
        }
    }
}

impl Tmux {
    /// Queries the tmux around us; `None` outside of one.
    pub(super) async fn gather(environment: &Environment) -> Option<Self> {
        environment.get("TMUX")?;
        let ask = |words: &'static [&'static str]| async move {
            let command = process::Command::new("tmux").args(words.iter().copied());
            let output = command
                .timeout(Duration::from_secs(2))
                .output()
                .await
                .unwrap_or_default();
            String::from_utf8_lossy(&output).trim().to_owned()
        };
        let (version, extended_keys, format, clipboard) = tokio::join!(
            ask(&["-V"]),
            ask(&["show-options", "-sv", "extended-keys"]),
            ask(&["show-options", "-sv", "extended-keys-format"]),
            ask(&["show-options", "-sv", "set-clipboard"]),
        );
        Some(Self {
            version: version.trim_start_matches("tmux ").to_owned(),
            extended_keys,
            format,
            clipboard,
        })
    }

    /// Returns major and minor version; `next-3.6` counts as 3.6. `None` if it is no version.
    fn number(&self) -> Option<(u32, u32)> {
        let text = self.version.trim_start_matches(|it: char| !it.is_ascii_digit());
        let (major, rest) = text.split_once('.')?;
        let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
        Some((major.parse().ok()?, minor.parse().ok()?))
    }

    /// Returns the lines missing in tmux's configuration for all keys to arrive. Empty if none.
    fn missing(&self) -> Vec<&'static str> {
        let mut missing = Vec::new();
        if !matches!(self.extended_keys.as_str(), "on" | "always") {
            missing.push("set -s extended-keys on");
        }
        // Before 3.5 this format was the only one; the newer default is read by few programs.
        if self.number() >= Some((3, 5)) && self.format != "csi-u" {
            missing.push("set -s extended-keys-format csi-u");
        }
        missing
    }
}

/// Judges terminal and keys.
pub(super) fn judge(facts: &TerminalFacts, settings: &Settings) -> Vec<Check> {
    let mut checks = vec![
        kind(facts),
        colours(facts, settings),
        images(facts, settings),
        background(facts),
        encoding(facts),
    ];
    checks.extend(size(facts));
    checks.extend(clipboard(facts));
    let others = [
        ("ctrl+.", "a plain `.`", "use F2 or /mode instead"),
        (
            "shift+enter",
            "a plain enter",
            "alt+enter, ctrl+j, or a backslash before enter also insert a newline",
        ),
    ];
    checks.extend(others.map(|(key, instead, other)| arrival(facts, key, instead, other)));
    checks
}

fn kind(facts: &TerminalFacts) -> Check {
    let (topic, name) = (Topic::Terminal, "kind");
    let term = facts.terminal.term.as_str();
    let mut seen = vec![if term.is_empty() { "TERM is not set" } else { term }.to_owned()];
    if !facts.terminal.term_program.is_empty() && facts.terminal.term_program != "tmux" {
        seen.push(facts.terminal.term_program.clone());
    }
    if let Some(tmux) = &facts.tmux {
        seen.push(format!("in tmux {}", tmux.version).trim().to_owned());
    }
    if facts.is_remote {
        seen.push("over ssh".to_owned());
    }
    let seen = seen.join(", ");
    if !facts.is_terminal {
        let remedy = "run sheaf doctor in a terminal, without a pipe";
        return Check::doubtful(topic, name, &format!("not a terminal ({seen})"), remedy);
    }
    match term {
        "" | "dumb" => {
            let remedy = "set TERM to your terminal's type, usually: export TERM=xterm-256color";
            Check::bad(topic, name, &seen, remedy)
        }
        _ => Check::good(topic, name, &seen),
    }
}

fn colours(facts: &TerminalFacts, settings: &Settings) -> Check {
    let (topic, name) = (Topic::Terminal, "colours");
    let terminal = &facts.terminal;
    if !settings.color {
        let who = settings.origin("color");
        return Check::good(topic, name, &format!("off ({who})"));
    }
    // The settings override the variable, which they have read.
    let depth = TerminalEnvironment {
        no_colour: false,
        ..terminal.clone()
    }
    .depth();
    match depth {
        Depth::True => Check::good(topic, name, "all"),
        Depth::Indexed => Check::good(topic, name, "256"),
        Depth::Sixteen => {
            let remedy = "if it supports more: export COLORTERM=truecolor";
            Check::doubtful(topic, name, "the terminal's own 16", remedy)
        }
        Depth::None => Check::doubtful(topic, name, "none", "set TERM to your terminal's type"),
    }
}

fn background(facts: &TerminalFacts) -> Check {
    let (topic, name) = (Topic::Terminal, "background");
    let word = |dark: bool| if dark { "dark" } else { "light" };
    if let Some(background) = facts.background {
        return Check::good(topic, name, &format!("#{background}, {}", word(background.is_dark())));
    }
    if let Some(dark) = facts.terminal.is_dark() {
        Check::good(topic, name, &format!("{}, from COLORFGBG", word(dark)))
    } else {
        let remedy = "if it is light: theme = \"sheaf-light\"";
        Check::doubtful(topic, name, "unknown, assuming dark", remedy)
    }
}

fn images(facts: &TerminalFacts, settings: &Settings) -> Check {
    let way = match ImageSetting::of(&settings.ui.images) {
        ImageSetting::Off => {
            let who = settings.origin("ui.images");
            return Check::good(Topic::Terminal, "images", &format!("off ({who})"));
        }
        ImageSetting::Auto => facts.images,
        ImageSetting::Only(way) => Some(way),
    };
    let seen = match way {
        Some(ImageProtocol::Kitty) => "kitty protocol",
        Some(ImageProtocol::Iterm2 | ImageProtocol::Konsole) => "iTerm2 protocol",
        Some(ImageProtocol::Sixel) => "sixel",
        None => "not supported here, shown as a line of text",
    };
    Check::good(Topic::Terminal, "images", seen)
}

fn encoding(facts: &TerminalFacts) -> Check {
    let (topic, name) = (Topic::Terminal, "encoding");
    let remedy = "export LANG=C.UTF-8";
    match &facts.encoding {
        Some((variable, value)) => {
            let seen = format!("{variable}={value}");
            let upper = value.to_ascii_uppercase();
            if upper.contains("UTF-8") || upper.contains("UTF8") {
                Check::good(topic, name, &seen)
            } else {
                Check::doubtful(topic, name, &format!("{seen}; sheaf writes UTF-8 anyway"), remedy)
            }
        }
        None if cfg!(target_os = "macos") => Check::good(topic, name, "the system's"),
        None => Check::doubtful(topic, name, "no LANG is set; sheaf writes UTF-8 anyway", remedy),
    }
}

fn size(facts: &TerminalFacts) -> Option<Check> {
    let (topic, name) = (Topic::Terminal, "size");
    if !facts.is_terminal {
        return None;
    }
    let remedy = "80 columns and 24 rows show everything";
    Some(match facts.size {
        None | Some((0, _) | (_, 0)) => Check::doubtful(topic, name, "unknown", remedy),
        Some((columns, rows)) => {
            let seen = format!("{columns} × {rows}");
            let verdict = match (columns, rows) {
                (0..20, _) | (_, 0..5) => CheckVerdict::Bad,
                (20..60, _) | (_, 5..12) => CheckVerdict::Doubtful,
                (60.., 12..) => CheckVerdict::Good,
            };
            let check = Check::new(topic, name, verdict, &seen);
            match verdict {
                CheckVerdict::Good => check,
                CheckVerdict::Doubtful | CheckVerdict::Bad => check.remedy(remedy),
            }
        }
    })
}

/// Checks the clipboard; only tmux's option can be read.
fn clipboard(facts: &TerminalFacts) -> Option<Check> {
    let tmux = facts.tmux.as_ref()?;
    (tmux.clipboard == "off").then(|| {
        let remedy = "set -s set-clipboard on";
        Check::doubtful(
            Topic::Terminal,
            "clipboard",
            "tmux does not pass copied text on",
            remedy,
        )
    })
}

fn arrival(facts: &TerminalFacts, key: &str, instead: &str, other: &str) -> Check {
    let topic = Topic::Keys;
    if let Some(tmux) = &facts.tmux {
        let missing = tmux.missing();
        if missing.is_empty() {
            return Check::good(topic, key, "arrives (tmux is configured for it)");
        }
        let remedy = format!("add to ~/.tmux.conf: {}\nuntil then: {other}", missing.join("; "));
        return Check::doubtful(topic, key, &format!("arrives as {instead} in tmux"), &remedy);
    }
    match facts.keyboard {
        Keyboard::Kitty => Check::good(topic, key, "arrives"),
        Keyboard::Legacy => Check::doubtful(topic, key, &format!("arrives as {instead}"), other),
        Keyboard::Unknown => Check::doubtful(topic, key, "unknown, the terminal did not reply", other),
    }
}

/// Answers of a terminal to our queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TerminalAnswers {
    size: Option<(u16, u16)>,
    background: Option<Rgb>,
    keyboard: Keyboard,
    named: Option<TerminalName>,
    knows_sixel: bool,
    /// True if the terminal reports the size of a cell.
    has_cell: bool,
}

impl TerminalAnswers {
    /// Returns the protocol for pictures, if there is one.
    fn images(&self) -> Option<ImageProtocol> {
        match self.named {
            Some(TerminalName::Draws(way)) => Some(way),
            Some(TerminalName::Between) => None,
            Some(TerminalName::Other) | None => (self.knows_sixel && self.has_cell).then_some(ImageProtocol::Sixel),
        }
    }
}

/// Queries: keyboard protocol, background, name, cell size, and last the device attributes, which every terminal
/// answers.
const QUESTIONS: &[u8] = b"\x1b7\x1b[?u\x1b8\x1b]11;?\x1b\\\x1b[>0q\x1b[16t\x1b[c";

/// Time limit for an answer, enough for a remote terminal.
#[cfg(unix)]
const PATIENCE: Duration = Duration::from_millis(1500);

/// Parses the answers. The flag is true if the last one is there.
fn understand(bytes: &[u8]) -> (TerminalAnswers, bool) {
    let text = String::from_utf8_lossy(bytes);
    let mut answers = TerminalAnswers::default();
    let mut is_whole = false;
    for part in text.split('\u{1b}') {
        if let Some(rest) = part.strip_prefix("]11;") {
            let end = rest.find(['\u{7}', '\\']).unwrap_or(rest.len());
            answers.background = Rgb::parse(rest.get(..end).unwrap_or_default());
        } else if let Some(name) = part.strip_prefix("P>|") {
            answers.named = Some(TerminalName::of(name));
        } else if part.starts_with("[6;") && part.contains('t') {
            answers.has_cell = true;
        } else if let Some(rest) = part.strip_prefix("[?") {
            let end = rest
                .find(|it: char| !it.is_ascii_digit() && it != ';')
                .unwrap_or(rest.len());
            match rest.get(end..).and_then(|it| it.chars().next()) {
                Some('u') => answers.keyboard = Keyboard::Kitty,
                Some('c') => {
                    is_whole = true;
                    answers.knows_sixel = rest
                        .get(..end)
                        .is_some_and(|it| it.split(';').skip(1).any(|it| it == "4"));
                }
                Some(_) | None => {}
            }
        }
    }
    if is_whole && answers.keyboard == Keyboard::Unknown {
        answers.keyboard = Keyboard::Legacy;
    }
    (answers, is_whole)
}

#[cfg(unix)]
fn ask() -> Option<TerminalAnswers> {
    let tty = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/tty")
        .ok()?;
    ask_at(&tty, PATIENCE)
}

#[cfg(not(unix))]
fn ask() -> Option<TerminalAnswers> {
    let size = crossterm::terminal::size().ok();
    Some(TerminalAnswers {
        size,
        ..understand(QUESTIONS).0
    })
}

/// Queries the terminal at `tty`, and restores its mode afterwards.
#[cfg(unix)]
fn ask_at(tty: &std::fs::File, patience: Duration) -> Option<TerminalAnswers> {
    use std::{
        io::{Read, Write},
        time::Instant,
    };

    use rustix::termios::{OptionalActions, QueueSelector, SpecialCodeIndex, Termios};

    struct Restored<'a>(&'a std::fs::File, Termios);

    impl Drop for Restored<'_> {
        fn drop(&mut self) {
            // Late answers must not be typed into the shell.
            rustix::termios::tcflush(self.0, QueueSelector::IFlush).ok();
            rustix::termios::tcsetattr(self.0, OptionalActions::Now, &self.1).ok();
        }
    }

    let window = rustix::termios::tcgetwinsize(tty).ok();
    let size = window.map(|it| (it.ws_col, it.ws_row));
    let has_pixels = window.is_some_and(|it| it.ws_xpixel > 0 && it.ws_ypixel > 0);
    let before = rustix::termios::tcgetattr(tty).ok()?;
    let mut raw = before.clone();
    raw.make_raw();
    // A read ends after 0.1 s without a byte.
    raw.special_codes[SpecialCodeIndex::VMIN] = 0;
    raw.special_codes[SpecialCodeIndex::VTIME] = 1;
    let restored = Restored(tty, before);
    rustix::termios::tcsetattr(tty, OptionalActions::Now, &raw).ok()?;
    let (mut reading, mut writing) = (tty, tty);
    writing.write_all(QUESTIONS).ok()?;
    let end = Instant::now() + patience;
    let mut bytes = Vec::new();
    let mut piece = [0; 256];
    // A key held down is no answer.
    while Instant::now() < end && bytes.len() < 4096 {
        match reading.read(&mut piece) {
            Ok(count) => bytes.extend_from_slice(piece.get(..count).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
        if understand(&bytes).1 {
            break;
        }
    }
    drop(restored);
    let answers = understand(&bytes).0;
    Some(TerminalAnswers {
        size,
        has_cell: answers.has_cell || has_pixels,
        ..answers
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    fn facts() -> TerminalFacts {
        TerminalFacts {
            is_terminal: true,
            terminal: TerminalEnvironment {
                term: "xterm-256color".to_owned(),
                colorterm: "truecolor".to_owned(),
                ..TerminalEnvironment::default()
            },
            encoding: Some(("LANG", "de_DE.UTF-8".to_owned())),
            size: Some((120, 40)),
            background: Some(Rgb(0x1e, 0x1e, 0x1e)),
            keyboard: Keyboard::Kitty,
            ..TerminalFacts::default()
        }
    }

    fn rows(facts: &TerminalFacts) -> Vec<String> {
        let checks = judge(facts, &Settings::default());
        let row = |it: Check| format!("{:?} {}: {} → {}", it.verdict, it.name, it.seen, it.remedy);
        checks.into_iter().map(row).collect()
    }

    #[test]
    fn a_good_terminal_is_all_good() {
        assert_eq!(
            rows(&facts()),
            [
                "Good kind: xterm-256color → ",
                "Good colours: all → ",
                "Good images: not supported here, shown as a line of text → ",
                "Good background: #1e1e1e, dark → ",
                "Good encoding: LANG=de_DE.UTF-8 → ",
                "Good size: 120 × 40 → ",
                "Good ctrl+.: arrives → ",
                "Good shift+enter: arrives → ",
            ]
        );
    }

    #[test]
    fn each_lack_has_its_verdict_and_remedy() {
        type Change = fn(&mut TerminalFacts);
        let cases: &[(Change, &str)] = &[
            (
                |it| it.is_terminal = false,
                "Doubtful kind: not a terminal (xterm-256color) → run sheaf doctor in a terminal, without a pipe",
            ),
            (
                |it| it.terminal.term = "dumb".to_owned(),
                "Bad kind: dumb → set TERM to your terminal's type, usually: export TERM=xterm-256color",
            ),
            (
                |it| it.terminal.term.clear(),
                "Bad kind: TERM is not set → set TERM to your terminal's type, usually: export TERM=xterm-256color",
            ),
            (|it| it.is_remote = true, "Good kind: xterm-256color, over ssh → "),
            (|it| it.terminal.colorterm.clear(), "Good colours: 256 → "),
            (
                |it| {
                    it.terminal.colorterm.clear();
                    it.terminal.term = "xterm".to_owned();
                },
                "Doubtful colours: the terminal's own 16 → if it supports more: export COLORTERM=truecolor",
            ),
            (
                |it| it.background = None,
                "Doubtful background: unknown, assuming dark → if it is light: theme = \"sheaf-light\"",
            ),
            (
                |it| {
                    it.background = None;
                    it.terminal.colorfgbg = "0;15".to_owned();
                },
                "Good background: light, from COLORFGBG → ",
            ),
            (
                |it| it.encoding = Some(("LC_ALL", "C".to_owned())),
                "Doubtful encoding: LC_ALL=C; sheaf writes UTF-8 anyway → export LANG=C.UTF-8",
            ),
            (
                |it| it.size = Some((59, 40)),
                "Doubtful size: 59 × 40 → 80 columns and 24 rows show everything",
            ),
            (
                |it| it.size = Some((19, 40)),
                "Bad size: 19 × 40 → 80 columns and 24 rows show everything",
            ),
            (
                |it| it.size = Some((0, 0)),
                "Doubtful size: unknown → 80 columns and 24 rows show everything",
            ),
            (
                |it| it.keyboard = Keyboard::Legacy,
                "Doubtful ctrl+.: arrives as a plain `.` → use F2 or /mode instead",
            ),
            (
                |it| it.keyboard = Keyboard::Unknown,
                "Doubtful shift+enter: unknown, the terminal did not reply → alt+enter, ctrl+j, or a backslash before \
                 enter also insert a newline",
            ),
        ];
        for (change, expected) in cases {
            let mut facts = facts();
            change(&mut facts);
            let rows = rows(&facts);
            assert!(rows.iter().any(|it| it == expected), "{expected} in {rows:#?}");
        }
    }

    #[test]
    fn tmux_is_told_what_it_lacks() {
        let on = "Good ctrl+.: arrives (tmux is configured for it) → ";
        let lacks = |it: &str| {
            format!(
                "Doubtful ctrl+.: arrives as a plain `.` in tmux → add to ~/.tmux.conf: {it}\nuntil then: use F2 or \
                 /mode instead"
            )
        };
        let (keys, format) = ("set -s extended-keys on", "set -s extended-keys-format csi-u");
        for (version, extended_keys, key_format, expected) in [
            ("3.3a", "on", "", on.to_owned()),
            ("3.3a", "always", "", on.to_owned()),
            ("3.3a", "off", "", lacks(keys)),
            ("3.4", "on", "", on.to_owned()),
            ("3.5", "on", "xterm", lacks(format)),
            ("3.5a", "on", "csi-u", on.to_owned()),
            ("next-3.6", "off", "xterm", lacks(&format!("{keys}; {format}"))),
            ("", "", "", lacks(keys)),
        ] {
            let facts = TerminalFacts {
                tmux: Some(Tmux {
                    version: version.to_owned(),
                    extended_keys: extended_keys.to_owned(),
                    format: key_format.to_owned(),
                    clipboard: "external".to_owned(),
                }),
                ..facts()
            };
            let rows = rows(&facts);
            assert!(rows.contains(&expected), "{version} {extended_keys}: {rows:#?}");
            assert!(!rows.iter().any(|it| it.contains("clipboard")));
        }
    }

    #[test]
    fn answers_are_understood_in_any_order_and_company() {
        let dark = Some(Rgb(0, 0x2b, 0x36));
        for (bytes, background, keyboard, is_whole) in [
            ("", None, Keyboard::Unknown, false),
            ("\x1b[?62;22c", None, Keyboard::Legacy, true),
            (
                "\x1b[?0u\x1b]11;rgb:0000/2b2b/3636\x1b\\\x1b[?62;4c",
                dark,
                Keyboard::Kitty,
                true,
            ),
            ("\x1b]11;rgb:00/2b/36\x07\x1b[?1u", dark, Keyboard::Kitty, false),
            ("jk\x1b[A\x1b[?6c", None, Keyboard::Legacy, true),
            ("\x1b]11;nonsense\x07\x1b[?6c", None, Keyboard::Legacy, true),
            ("\x1b[?62;22", None, Keyboard::Unknown, false),
        ] {
            let (answers, is_last) = understand(bytes.as_bytes());
            let understood = (answers.background, answers.keyboard, is_last);
            assert_eq!(understood, (background, keyboard, is_whole), "{bytes:?}");
        }
        for (bytes, images) in [
            ("\x1b[?62;22c", None),
            ("\x1b[?4;6c", None),
            ("\x1b[?63;1;2;4c", None),
            ("\x1b[6;18;9t\x1b[?63;1;2;4c", Some(ImageProtocol::Sixel)),
            (
                "\x1bP>|XTerm(379)\x1b\\\x1b[6;18;9t\x1b[?63;1;2;4c",
                Some(ImageProtocol::Sixel),
            ),
            ("\x1bP>|tmux 3.5a\x1b\\\x1b[6;18;9t\x1b[?1;2;4c", None),
            ("\x1bP>|kitty(0.35.2)\x1b\\\x1b[?62;c", Some(ImageProtocol::Kitty)),
            (
                "\x1bP>|Konsole 22.12.3\x1b\\\x1b[?62;1;4c",
                Some(ImageProtocol::Konsole),
            ),
        ] {
            assert_eq!(understand(bytes.as_bytes()).0.images(), images, "{bytes:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_terminal_is_asked_and_left_as_it_was() {
        use std::{
            fs::{File, OpenOptions},
            io::{Read, Write},
            os::unix::fs::OpenOptionsExt,
        };

        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pty");
        grantpt(&ours).expect("granted");
        unlockpt(&ours).expect("unlocked");
        let name = ptsname(&ours, Vec::new()).expect("a name");
        let tty = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOCTTY)
            .open(name.to_str().expect("a path"))
            .expect("opened");
        let size = rustix::termios::Winsize {
            ws_row: 40,
            ws_col: 120,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&ours, size).expect("set");
        let before = rustix::termios::tcgetattr(&tty).expect("attributes");
        let mut terminal = File::from(ours);
        let playing = std::thread::spawn(move || {
            let mut asked = Vec::new();
            let mut byte = [0];
            while !asked.ends_with(b"\x1b[c") && terminal.read(&mut byte).is_ok() {
                asked.extend(byte);
            }
            terminal
                .write_all(b"\x1b[?5u\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c")
                .expect("answered");
            terminal
        });
        let answers = ask_at(&tty, Duration::from_secs(20));
        let expected = TerminalAnswers {
            size: Some((120, 40)),
            background: Some(Rgb::WHITE),
            keyboard: Keyboard::Kitty,
            ..TerminalAnswers::default()
        };
        assert_eq!(answers, Some(expected));
        let after = rustix::termios::tcgetattr(&tty).expect("attributes");
        assert_eq!(after.local_modes, before.local_modes);
        assert_eq!(after.input_modes, before.input_modes);
        let _terminal = playing.join().expect("it answered");
        // Nobody plays the terminal now.
        let mute = ask_at(&tty, Duration::from_millis(1)).expect("it is a terminal still");
        assert_eq!((mute.background, mute.keyboard), (None, Keyboard::Unknown));
    }

    proptest! {
        #[test]
        fn anything_may_come_back(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = understand(&bytes);
        }
    }
}
