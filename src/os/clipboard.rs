//! Text to the clipboard, by whichever way leads there: a tool of the desktop, tmux, the terminal (OSC 52), a file.
//!
//! The way is chosen by the surroundings. Only a tool and tmux say whether it worked; a terminal never answers, so
//! the screen must name the way that was taken. Far away over SSH the desktop's tools would fill the wrong clipboard.

use std::{
    env,
    ffi::OsString,
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    file::{self, Access},
    process::{self, Command},
};

/// The longest text, in base64, that terminals take by OSC 52 without cutting it.
const TERMINAL_LIMIT_BYTES: usize = 74_000;

/// Time limit for one tool.
const PATIENCE: Duration = Duration::from_secs(1);

/// Environment of the program, as far as clipboards are concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Surroundings {
    pub wayland: bool,
    pub x11: bool,
    pub macos: bool,
    /// Linux inside of Windows.
    pub wsl: bool,
    /// The terminal is on another machine.
    pub ssh: bool,
    pub tmux: bool,
    /// GNU screen.
    pub screen: bool,
    /// `PATH` in which tools are searched.
    pub path: OsString,
}

impl Surroundings {
    /// Reads the environment.
    pub fn read() -> Self {
        let set = |name| env::var_os(name).is_some_and(|it| !it.is_empty());
        Self {
            wayland: set("WAYLAND_DISPLAY"),
            x11: set("DISPLAY"),
            macos: cfg!(target_os = "macos"),
            wsl: set("WSL_DISTRO_NAME"),
            ssh: set("SSH_TTY") || set("SSH_CONNECTION"),
            tmux: set("TMUX"),
            screen: set("STY"),
            path: env::var_os("PATH").unwrap_or_default(),
        }
    }

    /// The desktop's tools that may work here, best first: name, arguments, whether it wants UTF-16.
    fn tools(&self) -> impl Iterator<Item = (&'static str, &'static [&'static str], bool)> + use<> {
        // A display that SSH forwards belongs to the far side; without one, tools can only reach this machine.
        let here = !self.ssh;
        let table: [(bool, &'static str, &'static [&'static str], bool); 5] = [
            (self.wsl && here, "clip.exe", &[], true),
            (self.macos && here, "pbcopy", &[], false),
            (self.wayland, "wl-copy", &["--type", "text/plain;charset=utf-8"], false),
            (self.x11, "xclip", &["-selection", "clipboard", "-in"], false),
            (self.x11, "xsel", &["--clipboard", "--input"], false),
        ];
        table
            .into_iter()
            .filter(|it| it.0)
            .map(|(_, name, arguments, utf16)| (name, arguments, utf16))
    }

    /// The sequence that sets the terminal's clipboard, wrapped for the multiplexer; `None` when the text is too long.
    fn sequence(&self, text: &str) -> Option<Vec<u8>> {
        // Checked before encoding, so that a huge text costs nothing.
        if text.len().div_ceil(3) * 4 > TERMINAL_LIMIT_BYTES {
            return None;
        }
        let plain = format!("\x1b]52;c;{}\x07", STANDARD.encode(text));
        let wrapped = if self.tmux {
            format!("\x1bPtmux;{}\x1b\\", plain.replace('\x1b', "\x1b\x1b"))
        } else if self.screen {
            // It takes short strings only; the terminal behind it sees them as one.
            let mut wrapped = String::new();
            for piece in plain.as_bytes().chunks(76) {
                wrapped.extend(["\x1bP", &String::from_utf8_lossy(piece), "\x1b\\"]);
            }
            wrapped
        } else {
            plain
        };
        Some(wrapped.into_bytes())
    }
}

/// The way that a text took.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClipboardRoute {
    /// A tool of the desktop.
    Tool(&'static str),
    /// tmux's own buffer, which it hands on to its terminal.
    Tmux,
    /// These bytes, still to be written to the terminal at once and in one piece.
    Terminal(Vec<u8>),
    /// None of the others: this file.
    File(PathBuf),
}

impl fmt::Display for ClipboardRoute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tool(name) => f.write_str(name),
            Self::Tmux => f.write_str("tmux"),
            Self::Terminal(_) => f.write_str("terminal (OSC 52)"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

/// Copies `text`, which must be sanitised: what is pasted from it may go to a shell. Gives the way that was taken.
///
/// `folder` gets the file when there is no other way. Takes a second for each tool that hangs, so it has no place on
/// the thread that draws.
pub async fn copy(text: &str, around: &Surroundings, folder: &Path) -> Result<ClipboardRoute, file::Error> {
    for (name, arguments, utf16) in around.tools() {
        let input = if utf16 {
            utf16_of(text)
        } else {
            text.as_bytes().to_vec()
        };
        if run(name, arguments, input, around).await {
            return Ok(ClipboardRoute::Tool(name));
        }
    }
    if around.tmux && run("tmux", &["load-buffer", "-w", "-"], text.into(), around).await {
        return Ok(ClipboardRoute::Tmux);
    }
    if let Some(bytes) = around.sequence(text) {
        return Ok(ClipboardRoute::Terminal(bytes));
    }
    let path = folder.join("copied.txt");
    file::private_folder(folder)?;
    file::write(&path, text.as_bytes(), Access::Private)?;
    Ok(ClipboardRoute::File(path))
}

/// The picture that the desktop's clipboard holds, as PNG; `None` when there is none or no tool to get it.
pub async fn picture(around: &Surroundings) -> Option<Vec<u8>> {
    let here = !around.ssh;
    let tools: [(bool, &'static str, &[&str]); 3] = [
        (around.macos && here, "pngpaste", &["-"]),
        (around.wayland, "wl-paste", &["--no-newline", "--type", "image/png"]),
        (
            around.x11,
            "xclip",
            &["-selection", "clipboard", "-t", "image/png", "-out"],
        ),
    ];
    for (_, name, arguments) in tools.into_iter().filter(|it| it.0) {
        let Some(program) = process::find(name, &around.path) else {
            continue;
        };
        let output = Command::new(program).args(arguments).timeout(PATIENCE).output().await;
        if let Ok(bytes) = output
            && !bytes.is_empty()
        {
            return Some(bytes);
        }
    }
    None
}

async fn run(name: &'static str, arguments: &[&str], input: Vec<u8>, around: &Surroundings) -> bool {
    let Some(program) = process::find(name, &around.path) else {
        return false;
    };
    let command = Command::new(program)
        .args(arguments)
        .input(input)
        .timeout(PATIENCE)
        .without_output();
    match command.output().await {
        Ok(_) => true,
        Err(error) => {
            tracing::debug!(%error, "a clipboard tool failed");
            false
        }
    }
}

/// Returns UTF-16 for `clip.exe`, which reads letters beyond its code page only so: little-endian, with a byte order
/// mark.
fn utf16_of(text: &str) -> Vec<u8> {
    std::iter::once(0xFEFF)
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;
    use std::{fs, os::unix::fs::PermissionsExt};

    /// Tools that write what they read and how they were called into files of their own name, or do as told.
    struct Desk(tempfile::TempDir);

    impl Desk {
        fn new(tools: &[(&str, &str)]) -> Self {
            let desk = Self(tempfile::tempdir().unwrap());
            for (name, script) in tools {
                let path = desk.path().join(name);
                let copies = format!("echo \"$*\" > {0}.args\ncat > {0}.text", path.display());
                let script = if script.is_empty() { copies.as_str() } else { script };
                // Written by a child: a file that this process had open for writing may not start for a moment,
                // because another test's fork can hold it open.
                let script = format!("#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n");
                let mut writer = std::process::Command::new("/bin/sh");
                writer
                    .args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""])
                    .arg(&path)
                    .arg(script);
                assert!(writer.status().unwrap().success());
            }
            desk
        }

        fn path(&self) -> &Path {
            self.0.path()
        }

        fn text(&self, tool: &str) -> Vec<u8> {
            fs::read(self.path().join(format!("{tool}.text"))).unwrap()
        }

        fn arguments(&self, tool: &str) -> String {
            fs::read_to_string(self.path().join(format!("{tool}.args"))).unwrap()
        }

        /// Surroundings by their short names: `x11 tmux`.
        fn around(&self, words: &str) -> Surroundings {
            let is = |word: &str| words.split(' ').any(|it| it == word);
            Surroundings {
                wayland: is("wayland"),
                x11: is("x11"),
                macos: is("macos"),
                wsl: is("wsl"),
                ssh: is("ssh"),
                tmux: is("tmux"),
                screen: is("screen"),
                path: self.path().into(),
            }
        }

        async fn copy(&self, text: &str, words: &str) -> String {
            copy(text, &self.around(words), &self.path().join("state"))
                .await
                .unwrap()
                .to_string()
        }
    }

    #[tokio::test]
    async fn the_surroundings_choose_the_way() {
        let desk = Desk::new(&[
            ("wl-copy", ""),
            ("xclip", ""),
            ("xsel", ""),
            ("pbcopy", ""),
            ("clip.exe", ""),
            ("tmux", ""),
        ]);
        let cases = [
            ("", "terminal (OSC 52)"),
            ("wayland", "wl-copy"),
            ("x11", "xclip"),
            ("wayland x11", "wl-copy"),
            ("macos", "pbcopy"),
            ("wsl wayland x11", "clip.exe"),
            ("tmux", "tmux"),
            ("tmux x11", "xclip"),
            ("ssh", "terminal (OSC 52)"),
            ("ssh macos", "terminal (OSC 52)"),
            ("ssh wsl", "terminal (OSC 52)"),
            ("ssh tmux", "tmux"),
            ("ssh x11", "xclip"),
            ("screen", "terminal (OSC 52)"),
        ];
        for (words, expected) in cases {
            assert_eq!(desk.copy("text", words).await, expected, "in `{words}`");
        }
    }

    #[tokio::test]
    async fn tools_get_the_text_as_it_is() {
        let desk = Desk::new(&[
            ("wl-copy", ""),
            ("xclip", ""),
            ("xsel", ""),
            ("clip.exe", ""),
            ("tmux", ""),
        ]);
        let text = "fn main() {\n\t\"é漢👍\" $HOME `id`\n}\n";
        for (words, tool, arguments) in [
            ("wayland", "wl-copy", "--type text/plain;charset=utf-8\n"),
            ("x11", "xclip", "-selection clipboard -in\n"),
            ("tmux", "tmux", "load-buffer -w -\n"),
        ] {
            assert_eq!(desk.copy(text, words).await, tool);
            assert_eq!(desk.text(tool), text.as_bytes());
            assert_eq!(desk.arguments(tool), arguments);
        }
        fs::remove_file(desk.path().join("xclip")).unwrap();
        assert_eq!(desk.copy(text, "x11").await, "xsel");
        assert_eq!(
            (desk.text("xsel").as_slice(), desk.arguments("xsel").as_str()),
            (text.as_bytes(), "--clipboard --input\n")
        );
        assert_eq!(desk.copy("é", "wsl").await, "clip.exe");
        assert_eq!(desk.text("clip.exe"), [0xFF, 0xFE, 0xE9, 0x00]);
    }

    #[tokio::test]
    async fn a_tool_that_fails_or_hangs_makes_room_for_the_next_way() {
        let desk = Desk::new(&[
            ("wl-copy", "exit 1"),
            ("xclip", "exec sleep 600"),
            ("xsel", ""),
            ("tmux", "exit 1"),
        ]);
        assert_eq!(desk.copy("text", "wayland x11").await, "xsel");
        assert_eq!(desk.copy("text", "wayland tmux").await, "terminal (OSC 52)");
        assert_eq!(
            Desk::new(&[]).copy("text", "wayland x11 tmux").await,
            "terminal (OSC 52)"
        );
    }

    #[tokio::test]
    async fn a_tool_that_stays_to_serve_the_text_is_not_waited_for() {
        let desk = Desk::new(&[("xclip", "cat > /dev/null\nsleep 3 &")]);
        let start = std::time::Instant::now();
        assert_eq!(desk.copy("text", "x11").await, "xclip");
        assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn what_no_terminal_takes_goes_to_a_private_file() {
        let desk = Desk::new(&[]);
        let most = TERMINAL_LIMIT_BYTES / 4 * 3;
        assert_eq!(desk.copy(&"x".repeat(most), "").await, "terminal (OSC 52)");
        let text = "x".repeat(most + 1);
        let path = desk.path().join("state/copied.txt");
        assert_eq!(desk.copy(&text, "").await, path.display().to_string());
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn the_sequence_is_wrapped_for_what_stands_between() {
        let desk = Desk::new(&[]);
        let sequence = |words| String::from_utf8(desk.around(words).sequence("héllo").unwrap()).unwrap();
        assert_eq!(sequence(""), "\x1b]52;c;aMOpbGxv\x07");
        assert_eq!(sequence("tmux"), "\x1bPtmux;\x1b\x1b]52;c;aMOpbGxv\x07\x1b\\");
        assert_eq!(sequence("screen"), "\x1bP\x1b]52;c;aMOpbGxv\x07\x1b\\");
        let long = String::from_utf8(desk.around("screen").sequence(&"x".repeat(300)).unwrap()).unwrap();
        let inner: String = long.split("\x1b\\").map(|it| it.trim_start_matches("\x1bP")).collect();
        assert_eq!(inner.as_bytes(), desk.around("").sequence(&"x".repeat(300)).unwrap());
        assert!(long.split("\x1b\\").all(|it| it.len() <= 80));
    }
}
