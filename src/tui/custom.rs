//! Commands of a workspace or a user: a Markdown file each, whose text becomes the message.
//!
//! They are text only: nothing in them is run, and none is sent unless the user names it.

use std::path::{Path, PathBuf};

use crate::{config::COMMANDS, os::file};

/// More than this is no prompt.
const MOST_BYTES: u64 = 256 << 10;

/// More files than this are a mistake.
const MOST: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Custom {
    /// `/name`
    pub name: String,
    /// Its first line of words.
    pub about: String,
    /// `.cursor/commands/name.md`, or `~` for the user's own.
    pub origin: String,
    /// The text of the message, before its arguments are filled in.
    pub text: String,
}

impl Custom {
    /// The message. `$ARGUMENTS` and `$1` … `$9` are what stands behind the command; where the text asks for neither,
    /// the words are put behind it.
    pub fn message(&self, arguments: &str) -> String {
        let arguments = arguments.trim();
        let words: Vec<&str> = arguments.split_whitespace().collect();
        let mut message = String::with_capacity(self.text.len() + arguments.len());
        let (mut rest, mut asks) = (self.text.as_str(), false);
        while let Some((before, after)) = rest.split_once('$') {
            message.push_str(before);
            let digit = after.chars().next().and_then(|it| it.to_digit(10)).filter(|it| *it > 0);
            if let Some(after) = after.strip_prefix("ARGUMENTS") {
                message.push_str(arguments);
                rest = after;
                asks = true;
            } else if let Some(n) = digit
                && !after
                    .get(1..)
                    .is_some_and(|it| it.starts_with(|it: char| it.is_ascii_digit()))
            {
                message.push_str(words.get(n as usize - 1).copied().unwrap_or_default());
                rest = after.get(1..).unwrap_or_default();
                asks = true;
            } else {
                message.push('$');
                rest = after;
            }
        }
        message.push_str(rest);
        if !asks && !arguments.is_empty() {
            message.truncate(message.trim_end().len());
            message.push_str("\n\n");
            message.push_str(arguments);
        }
        message
    }

    fn read(name: &str, origin: String, text: &str) -> Option<Self> {
        let (about, text) = front(text);
        let is_name = !name.is_empty()
            && name
                .chars()
                .all(|it| it.is_ascii_alphanumeric() || it == '-' || it == '_');
        let said = text.lines().map(|it| it.trim_start_matches('#').trim());
        let first = said.filter(|it| !it.is_empty()).map(str::to_owned).next()?;
        is_name.then(|| Self {
            name: name.replace('_', "-").to_lowercase(),
            about: about.unwrap_or(first),
            origin,
            text: text.to_owned(),
        })
    }
}

/// Splits front matter from a command's text; returns the hint for its argument, its description, and the text.
fn front(text: &str) -> (Option<String>, &str) {
    let text = text.trim_start_matches('\u{feff}');
    let Some(rest) = text.strip_prefix("---\n") else {
        return (None, text);
    };
    let Some((head, body)) = rest.split_once("\n---") else {
        return (None, text);
    };
    let said = |key: &str| {
        let value = head.lines().find_map(|it| it.strip_prefix(key));
        let value = value.map(|it| it.trim().trim_matches(['"', '\'']).to_owned());
        value.filter(|it| !it.is_empty())
    };
    let about = match (said("argument-hint:"), said("description:")) {
        (Some(hint), Some(about)) => Some(format!("{hint}   {about}")),
        (hint, about) => about.or(hint),
    };
    (about, body.trim_start_matches(['-', '\r', '\n']))
}

/// The commands of a workspace that `may_act`, by their path and text, then the user's own; of two with one name the first
/// counts.
pub fn find(workspace: &Path, config: &Path, may_act: &dyn Fn(&str, &str) -> bool) -> Vec<Custom> {
    let mut found: Vec<Custom> = Vec::new();
    let folders = COMMANDS.map(|it| (workspace.to_owned(), PathBuf::from(it), it.to_owned()));
    let own = (config.to_owned(), PathBuf::from("commands"), "~".to_owned());
    for (root, folder, shown) in folders.into_iter().chain([own]) {
        let Ok(entries) = std::fs::read_dir(root.join(&folder)) else {
            continue;
        };
        let mut names: Vec<_> = entries.flatten().map(|it| it.file_name()).take(MOST).collect();
        names.sort_unstable();
        for name in names {
            let path = folder.join(&name);
            let Some(stem) = Path::new(&name)
                .extension()
                .filter(|it| *it == "md")
                .and(Path::new(&name).file_stem())
                .and_then(|it| it.to_str())
            else {
                continue;
            };
            // A link out of the workspace is not followed.
            let Some(text) = file::read_beneath(&root, &path, MOST_BYTES)
                .ok()
                .and_then(|it| String::from_utf8(it).ok())
            else {
                continue;
            };
            // A stranger's command must not stand in the place of one of the user's.
            if shown != "~" && !may_act(&path.to_string_lossy(), &text) {
                continue;
            }
            let command = Custom::read(stem, shown.clone(), &text);
            found.extend(command.filter(|it| found.iter().all(|had| had.name != it.name)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(text: &str) -> Custom {
        Custom::read("fix", "~".into(), text).expect("it says something")
    }

    #[test]
    fn words_behind_a_command_go_where_it_asks_for_them() {
        for (text, arguments, message) in [
            ("Fix $ARGUMENTS now.", "the cart", "Fix the cart now."),
            ("Move $1 to $2.", "a b c", "Move a to b."),
            ("Move $1 to $2.", "a", "Move a to ."),
            ("It costs $5 or $10.", "1 2 3 4 five", "It costs five or $10."),
            ("Review it.\n", "", "Review it.\n"),
            ("Review it.\n", "all of it", "Review it.\n\nall of it"),
            ("$ARGUMENTS", "$ARGUMENTS $1", "$ARGUMENTS $1"),
            ("a $ b", "", "a $ b"),
        ] {
            assert_eq!(command(text).message(arguments), message, "{text:?} {arguments:?}");
        }
    }

    #[test]
    fn a_command_says_what_it_is_for() {
        assert_eq!(command("\n# Review\n\nLook.").about, "Review");
        let told = command("---\ndescription: \"Looks twice\"\n---\nLook.");
        assert_eq!((told.about.as_str(), told.text.as_str()), ("Looks twice", "Look."));
        let told = command("---\nargument-hint: FILE\ndescription: Looks twice\n---\nLook.");
        assert_eq!(told.about, "FILE   Looks twice", "and what stands behind it");
        assert_eq!(Custom::read("fix", "~".into(), " \n"), None);
        assert_eq!(Custom::read("a b", "~".into(), "x"), None);
    }

    #[test]
    fn the_nearest_of_a_name_counts_and_nothing_outside_is_read() {
        let home = tempfile::tempdir().unwrap();
        let (workspace, config) = (home.path().join("work"), home.path().join("config"));
        for (path, text) in [
            ("work/.cursor/commands/review.md", "Cursor's"),
            ("work/.cursor/commands/note.txt", "no command"),
            ("work/.sheaf/commands/review.md", "ours"),
            ("config/commands/review.md", "the user's"),
            ("config/commands/mine.md", "mine"),
            ("secret.md", "secret"),
        ] {
            let path = home.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        std::os::unix::fs::symlink(
            home.path().join("secret.md"),
            workspace.join(".cursor/commands/leak.md"),
        )
        .unwrap();
        let told = |found: &[Custom]| {
            found
                .iter()
                .map(|it| format!("{} {}", it.name, it.text))
                .collect::<Vec<_>>()
        };
        let stranger = find(&workspace, &config, &|_, _| false);
        assert_eq!(told(&stranger), ["mine mine", "review the user's"]);
        let one = find(&workspace, &config, &|path, text| {
            (path, text) == (".cursor/commands/review.md", "Cursor's")
        });
        assert_eq!(told(&one), ["review Cursor's", "mine mine"]);
        let found = find(&workspace, &config, &|_, _| true);
        let shown: Vec<_> = found.iter().map(|it| (it.name.as_str(), it.text.as_str())).collect();
        assert_eq!(shown, [("review", "ours"), ("mine", "mine")]);
    }
}
