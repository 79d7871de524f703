//! The paths that a line names, to judge what it would read as the tools that read files are judged.
//!
//! What a program opens by itself no line says: the sandbox holds that. Here it counts what a person would see.

use super::{CommandLine, Doubt, ShellWord, programs};

/// Maximum number of paths of a line.
const MOST: usize = 256;
/// Programs that only print their arguments.
const PRINTING: [&str; 2] = ["echo", "printf"];

/// Texts of a line that may be paths, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedPaths {
    /// Those that may stand where a program does.
    pub programs: Vec<String>,
    pub others: Vec<String>,
}

impl NamedPaths {
    /// Finds the paths of a line. `~` and `$HOME` are left as `~`, `$PWD` as `.`.
    pub fn of(text: &str) -> Self {
        let line = CommandLine::read(text);
        let mut found = Self::default();
        for command in &line.commands {
            let Some((program, arguments)) = command.words.split_first() else {
                continue;
            };
            let name = program.text.as_deref().unwrap_or_default();
            if name.contains('/') {
                add(&mut found.programs, name);
            }
            if PRINTING.contains(&programs::base(name).as_str()) {
                continue;
            }
            for word in arguments {
                found.word(word);
            }
            if programs::runs_others(command) {
                for inner in programs::inner_words(command) {
                    found.guess(inner);
                }
            }
        }
        for input in line.redirects.iter().filter(|it| !it.writes) {
            found.word(&input.file);
        }
        // Bash reads the file itself.
        for inner in text.split("$(<").skip(1) {
            let path = inner.split(')').next().unwrap_or_default().trim();
            if !path.starts_with('<') {
                found.add(path.trim_matches(['"', '\'']));
            }
        }
        if is_partly_read(&line.doubts) {
            let is_part = |it: char| it.is_alphanumeric() || "_-./+@%~".contains(it);
            for token in text.split(|it| !is_part(it)).filter(|it| leads_elsewhere(it)) {
                found.guess(token);
            }
        }
        found
    }

    fn word(&mut self, word: &ShellWord) {
        let text = match &word.text {
            Some(text) => text.clone(),
            None => match folder_relative(&word.source) {
                Some(text) if !text.contains(['$', '`', '*', '?', '[', '{']) => text,
                // As far as it is certain: the folder.
                _ => {
                    let known = folder_relative(&word.source).map_or_else(|| word.start.clone(), |it| certain(&it));
                    match known.rsplit_once('/') {
                        Some((folder, _)) => format!("{folder}/"),
                        None => return,
                    }
                }
            },
        };
        if let Some((scheme, rest)) = text.split_once("://") {
            if scheme.ends_with("file") {
                self.add(rest);
            }
            return;
        }
        self.add(&text);
        for part in text.split(['=', ',', ':', '@']).filter(|it| leads_elsewhere(it)) {
            self.add(part);
        }
        let value = text.strip_prefix('-').filter(|it| !it.starts_with('-'));
        if let Some(value) = value.and_then(|it| it.get(1..)).filter(|it| leads_elsewhere(it)) {
            self.add(value);
        }
    }

    fn add(&mut self, path: &str) {
        add(&mut self.others, path);
    }

    /// Adds a part of a text that some program may read as code or as a list. What has no name in it is more often a sign:
    /// `10 / 2`, `<br />`.
    fn guess(&mut self, part: &str) {
        if part.contains(|it| !"/.~".contains(it)) {
            add(&mut self.programs, part);
        }
    }
}

fn add(paths: &mut Vec<String>, path: &str) {
    if !path.is_empty() && paths.len() < MOST && !paths.iter().any(|it| it == path) {
        paths.push(path.to_owned());
    }
}

/// Returns true if some of a line was not taken apart. A here-document that becomes a file, or is printed, names nothing; one
/// that a program may run, or that the shell fills in, does.
fn is_partly_read(doubts: &[Doubt]) -> bool {
    let is_unread = |it: &Doubt| {
        matches!(
            it,
            Doubt::Long | Doubt::Many | Doubt::Broken | Doubt::Deep | Doubt::Unknown
        )
    };
    let is_text = |it: &Doubt| matches!(it, Doubt::HereDocument | Doubt::Lines);
    doubts.iter().any(is_unread) || (doubts.contains(&Doubt::HereDocument) && !doubts.iter().all(is_text))
}

/// Returns true for a path that may lead out of the folder that it is relative to.
fn leads_elsewhere(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.split('/').any(|it| it == "..")
}

/// A word of the shell that begins with the home or the folder that it is in, with `~` or `.` in its place. `None`: it begins with
/// something else.
fn folder_relative(source: &str) -> Option<String> {
    let source = source.trim_matches('"');
    let known = [
        ("~", "~"),
        ("$HOME", "~"),
        ("${HOME}", "~"),
        ("$PWD", "."),
        ("${PWD}", "."),
    ];
    let (rest, folder) = known
        .iter()
        .find_map(|(word, folder)| Some((source.strip_prefix(word)?, folder)))?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("{folder}{}", rest.replace(['"', '\''], "")))
}

/// The beginning of a word up to what the shell would expand.
fn certain(text: &str) -> String {
    text.split(['$', '`', '*', '?', '[', '{'])
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pretty_assertions::assert_eq;

    #[test]
    fn paths_are_found_where_a_line_names_them() {
        for (line, programs, others) in [
            ("ls", "", ""),
            ("cat a /etc/passwd", "", "a /etc/passwd"),
            ("/usr/bin/cat ../x", "/usr/bin/cat", "../x"),
            ("cat /e\"tc\"/pass\\wd", "", "/etc/passwd"),
            ("cat ~/x \"$HOME/y z\" ${HOME}/w", "", "~/x ~/y z ~/w"),
            ("cat \"$PWD/../x\" ${PWD}/y", "", "./../x ./y"),
            ("printf '%s' \"$(<../x)\"", "", "../x"),
            ("cat $(<list)", "", "list"),
            ("cat /etc/pass*", "", "/etc/"),
            ("cat ~/.config/*/x", "", "~/.config/"),
            ("cat $x", "", ""),
            (
                "tool --file=/etc/x -I/usr/include",
                "",
                "--file=/etc/x /etc/x -I/usr/include /usr/include",
            ),
            ("sort < /etc/x > out", "", "/etc/x"),
            ("echo /etc/passwd", "", ""),
            ("ls $(cat /etc/x)", "", "/etc/x"),
            ("curl file:///x https://a.example/etc", "", "/x"),
            (
                "python3 -c 'print(open(\"/etc/x\").read())'",
                "-c print open /etc/x .read",
                "-c print(open(\"/etc/x\").read())",
            ),
            ("cat <<EOF\n$(< /etc/y)\nEOF", "/etc/y", "/etc/y"),
            // A here-document is read where something may run it.
            ("bash <<'EOF'\ncat /etc/y\nEOF", "/etc/y", ""),
            ("xargs cat <<'EOF'\n/etc/y\nEOF", "cat /etc/y", "cat"),
            ("cat > a.html <<'EOF'\n<br /> is in /etc/y\nEOF", "", ""),
            ("cd x && cat > a <<'EOF'\n/etc/y\nEOF", "", "x"),
            ("cat <<'EOF' | sh\ncat /etc/y\nEOF", "/etc/y", ""),
            ("cat > a <<EOF\n`cat /etc/y`\nEOF", "/etc/y", ""),
            ("while read x; do cat $x; done <<'EOF'\n/etc/y\nEOF", "x /etc/y", "x"),
            // A sign is no path.
            ("python3 -c 'print(10 / 2)'", "-c print 10 2", "-c print(10 / 2)"),
            ("node -e '1 / 2 + ~3'", "-e 1 2 + 3", "-e 1 / 2 + ~3"),
        ] {
            let found = NamedPaths::of(line);
            assert_eq!(found.programs.join(" "), programs, "{line}");
            let shown: Vec<_> = found.others.iter().map(String::as_str).collect();
            assert_eq!(shown.join(" "), others, "{line}");
        }
        let many: String = (0..1000).map(|it| format!(" /x{it}")).collect();
        assert!(NamedPaths::of(&format!("cat{many}")).others.len() <= MOST);
    }
}
