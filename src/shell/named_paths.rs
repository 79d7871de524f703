//! The paths that a line names, to judge what it would read as the tools that read files are judged.
//!
//! What a program opens by itself no line says: the sandbox holds that. Here it counts what a person would see.

use super::{CommandLine, Doubt, ShellWord, programs};

/// Maximum number of paths of a line.
const MOST: usize = 256;
/// Programs that only print their arguments.
const PRINTING: [&str; 2] = ["echo", "printf"];

/// Texts of a line that may be paths, each once. `programs` are those that stand where a program does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedPaths {
    pub programs: Vec<String>,
    pub others: Vec<String>,
}

impl NamedPaths {
    /// Finds the paths of a line. `~` and `$HOME` are left as `~`.
    pub fn of(text: &str) -> Self {
        let line = CommandLine::read(text);
        let mut found = Self::default();
        for command in &line.commands {
            let Some((program, arguments)) = command.words.split_first() else {
                continue;
            };
            let name = program.text.as_deref().unwrap_or_default();
            found.programs.extend(name.contains('/').then(|| name.to_owned()));
            if PRINTING.contains(&programs::base(name).as_str()) {
                continue;
            }
            for word in arguments {
                found.word(word);
            }
            if programs::runs_others(command) {
                for inner in programs::inner_words(command) {
                    found.add(inner);
                }
            }
        }
        for input in line.redirects.iter().filter(|it| !it.writes) {
            found.word(&input.file);
        }
        let is_unread = |it: &Doubt| {
            matches!(
                it,
                Doubt::Long | Doubt::Many | Doubt::Broken | Doubt::Deep | Doubt::HereDocument | Doubt::Unknown
            )
        };
        if line.doubts.iter().any(is_unread) {
            let is_part = |it: char| it.is_alphanumeric() || "_-./+@%~".contains(it);
            for token in text.split(|it| !is_part(it)).filter(|it| leads_elsewhere(it)) {
                found.add(token);
            }
        }
        found
    }

    fn word(&mut self, word: &ShellWord) {
        let text = match &word.text {
            Some(text) => text.clone(),
            None => match home_relative(&word.source) {
                Some(text) if !text.contains(['$', '`', '*', '?', '[', '{']) => text,
                // As far as it is certain: the folder.
                _ => {
                    let known = home_relative(&word.source).map_or_else(|| word.start.clone(), |it| certain(&it));
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
        let is_new = !path.is_empty() && !self.others.iter().any(|it| it == path);
        if is_new && self.others.len() < MOST {
            self.others.push(path.to_owned());
        }
    }
}

/// Returns true for a path that may lead out of the folder that it is relative to.
fn leads_elsewhere(path: &str) -> bool {
    path.starts_with(['/', '~']) || path.split('/').any(|it| it == "..")
}

/// A word of the shell that begins with the home, with `~` in its place. `None`: it begins with something else.
fn home_relative(source: &str) -> Option<String> {
    let source = source.trim_matches('"');
    let rest = ["~", "$HOME", "${HOME}"]
        .iter()
        .find_map(|it| source.strip_prefix(it))?;
    (rest.is_empty() || rest.starts_with('/')).then(|| format!("~{}", rest.replace(['"', '\''], "")))
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
                "",
                "-c print(open(\"/etc/x\").read()) print open /etc/x .read",
            ),
            ("cat <<EOF\n$(< /etc/y)\nEOF", "", "/etc/y"),
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
