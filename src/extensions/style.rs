//! Output styles: Markdown files whose text replaces what the system prompt says of how to write.

use std::path::Path;

use super::{
    folders::{HeldFile, Owner, Surroundings},
    front_matter::FrontMatter,
};
use crate::config::Fingerprint;

/// Folders of styles of a project; of the user, except the first.
const FOLDERS: [&str; 2] = [".sheaf/output-styles", ".claude/output-styles"];
/// The folder beside the settings.
const OWN: &str = "output-styles";
/// A larger file is no style.
const FILE_BYTES: u64 = 64 << 10;
/// Maximum number of files of a folder that are looked at.
const MOST: usize = 200;

/// Finds the text of the style `name`, by the name in its head or of its file; the nearest counts. `None`: there is none, or it may
/// not act. Reads files.
pub fn find_style(around: &Surroundings, name: &str, may_act: &dyn Fn(&str, &Fingerprint) -> bool) -> Option<String> {
    let mut found = None;
    styles(around, &mut |style| {
        let is_free = style.owner != Owner::Project || may_act(&style.path, &style.print);
        if is_free && style.name.eq_ignore_ascii_case(name) && found.is_none() {
            found = Some(style.text);
        }
    });
    found
}

/// The styles of the project, which have an effect only if the user trusts them.
pub fn project_styles(around: &Surroundings) -> Vec<HeldFile> {
    let mut held = Vec::new();
    styles(around, &mut |style| {
        if style.owner == Owner::Project {
            held.push(HeldFile {
                path: style.path,
                print: style.print,
            });
        }
    });
    held
}

/// The names of all styles.
pub fn style_names(around: &Surroundings) -> Vec<String> {
    let mut names = Vec::new();
    styles(around, &mut |style| names.push(style.name));
    names
}

/// A file of a style.
struct Style {
    name: String,
    owner: Owner,
    path: String,
    print: Fingerprint,
    text: String,
}

fn styles(around: &Surroundings, take: &mut dyn FnMut(Style)) {
    for folder in around.folders(&FOLDERS, OWN) {
        for (file, is_folder) in folder.entries(Path::new(""), MOST) {
            let file = Path::new(&file);
            if is_folder || file.extension().is_none_or(|it| it != "md") {
                continue;
            }
            let Ok(text) = folder.read(file, FILE_BYTES) else {
                continue;
            };
            let Ok((front, body)) = FrontMatter::split(&text) else {
                continue;
            };
            let stem = file.file_stem().map(|it| it.to_string_lossy().into_owned());
            let name = front.text("name").map(str::to_owned).or(stem).unwrap_or_default();
            let name = folder.named(name);
            if !body.trim().is_empty() {
                take(Style {
                    name,
                    owner: folder.owner,
                    path: folder.shown(file),
                    print: Fingerprint::of(&[text.as_bytes()]),
                    text: body.trim().to_owned(),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_style_is_found_by_its_name_and_only_if_it_may_act() {
        let top = tempfile::tempdir().unwrap();
        let files = [
            (
                "work/.claude/output-styles/terse.md",
                "---\nname: Terse\ndescription: d\n---\nOne line.\n",
            ),
            ("home/.claude/output-styles/terse.md", "The user's."),
            ("config/output-styles/teacher.md", "Teach."),
            ("config/output-styles/empty.md", "---\nname: x\n---\n"),
        ];
        let around = Surroundings::test(top.path(), &files);
        let find = |name: &str, is_trusted: bool| find_style(&around, name, &|_, _| is_trusted);
        assert_eq!(find("terse", true).as_deref(), Some("One line."));
        assert_eq!(find("terse", false).as_deref(), Some("The user's."));
        assert_eq!(find("teacher", false).as_deref(), Some("Teach."));
        assert_eq!((find("x", true), find("none", true)), (None, None));
        assert_eq!(project_styles(&around).len(), 1);
    }
}
