//! Skills: folders with a file `SKILL.md`, whose head says when to use it and whose body says how.
//!
//! A model is told name and description of each; the body when the skill is used; other files when they are needed. A skill
//! with a small mistake is loaded with a warning: the same folder is written for several programs.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
};

use super::{
    folders::{Folder, HeldFile, Owner, Surroundings},
    front_matter::FrontMatter,
    template::{Fill, Piece, pieces},
};
use crate::config::Fingerprint;

/// Folders with skills of a project, the nearer ones first; of the user, except the first.
const FOLDERS: [&str; 5] = [
    ".sheaf/skills",
    ".agents/skills",
    ".cursor/skills",
    ".claude/skills",
    ".codex/skills",
];
/// The folder beside the settings.
const OWN: &str = "skills";
/// The file of a skill.
const FILE: &str = "SKILL.md";
/// Maximum depth at which a skill is found.
const DEPTH: usize = 4;
/// Maximum number of folders that are looked into, in all.
const FOLDERS_LOOKED_INTO: usize = 2000;
/// Maximum number of entries of a folder that are looked at.
const ENTRIES: usize = 1000;
/// Maximum number of skills.
const SKILLS: usize = 500;
/// A larger file is no skill.
const FILE_BYTES: u64 = 256 << 10;
/// Maximum number of files that a loaded skill lists.
const LISTED_FILES: usize = 50;
/// Maximum length of a name, and of a description, in characters.
const NAME_CHARS: usize = 64;
const DESCRIPTION_CHARS: usize = 1024;
/// The least room of the catalogue, in bytes; and its part of the window.
const CATALOGUE_BYTES: usize = 4096;
const CATALOGUE_PERCENT: u64 = 1;
/// Bytes of a token, estimated, times ten.
const TOKEN_BYTES_X10: u64 = 33;

/// The users of a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    All,
    /// The model is not told of it.
    UserOnly,
    /// It is not in the list of commands.
    ModelOnly,
}

/// A skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// Its file, from the root of the workspace, absolute or from `~`.
    pub path: String,
    /// Its folder, absolute.
    pub folder: PathBuf,
    pub owner: Owner,
    pub visibility: Visibility,
    /// The arguments that it takes, for people: `[issue] [branch]`. May be empty.
    pub hint: String,
    /// Permission rules in Claude Code's form that it asks for.
    pub allowed_tools: Vec<String>,
    /// The model that it asks for.
    pub model: Option<String>,
    /// Names of its arguments.
    arguments: Vec<String>,
    body: String,
    /// Its last use among those of all skills: the higher the later. 0: never.
    used: u64,
}

/// The skills that can be used, and what is to be said of the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillSet {
    pub skills: Vec<Skill>,
    /// Files without effect because another skill has their name, each with the file of that one.
    pub shadowed: Vec<(String, String)>,
    /// Mistakes, each with its file.
    pub problems: Vec<(String, String)>,
    /// Files that the user has not trusted.
    pub held: Vec<HeldFile>,
}

/// Finds the skills. `may_act` decides on each file of a project by its path and content. Reads files.
pub fn find_skills(around: &Surroundings, may_act: &dyn Fn(&str, &Fingerprint) -> bool) -> SkillSet {
    let mut set = SkillSet::default();
    let mut names: HashMap<String, String> = HashMap::new();
    let mut left = FOLDERS_LOOKED_INTO;
    for folder in around.folders(&FOLDERS, OWN) {
        for file in files(&folder, &mut left) {
            if set.skills.len() == SKILLS {
                return set;
            }
            let shown = folder.shown(&file);
            let text = match folder.read(&file, FILE_BYTES) {
                Ok(text) => text,
                Err(error) => {
                    set.problems.push((shown, format!("cannot be read: {error}")));
                    continue;
                }
            };
            if folder.owner == Owner::Project {
                let print = Fingerprint::of(&[text.as_bytes()]);
                if !may_act(&shown, &print) {
                    set.held.push(HeldFile { path: shown, print });
                    continue;
                }
            }
            match Skill::read(&folder, &file, &text) {
                Ok((skill, warnings)) => {
                    set.problems.extend(warnings.into_iter().map(|it| (shown.clone(), it)));
                    match names.get(&skill.name) {
                        Some(nearer) => set.shadowed.push((shown, nearer.clone())),
                        None => {
                            names.insert(skill.name.clone(), shown);
                            set.skills.push(skill);
                        }
                    }
                }
                Err(why) => set.problems.push((shown, format!("left out: {why}"))),
            }
        }
    }
    set
}

/// The files of skills below a folder, by name. A skill has no skills in it.
fn files(folder: &Folder, left: &mut usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![(PathBuf::new(), 0)];
    while let Some((below, depth)) = open.pop() {
        if *left == 0 {
            break;
        }
        *left -= 1;
        let entries = folder.entries(&below, ENTRIES);
        if entries.iter().any(|(name, is_folder)| name == FILE && !is_folder) {
            // The folder of skills itself is none.
            if depth > 0 {
                found.push(below.join(FILE));
                continue;
            }
        }
        if depth == DEPTH {
            continue;
        }
        let is_meant = |name: &str| !matches!(name, ".git" | "node_modules" | "__pycache__");
        let folders = entries.iter().rev().filter(|it| it.1 && is_meant(&it.0));
        open.extend(folders.map(|it| (below.join(&it.0), depth + 1)));
    }
    found
}

impl Skill {
    fn read(folder: &Folder, file: &Path, text: &str) -> Result<(Self, Vec<String>), String> {
        let (front, body) = FrontMatter::split(text)?;
        let below = file.parent().unwrap_or(file);
        let parent = below.file_name().map(|it| it.to_string_lossy().into_owned());
        let parent = parent.unwrap_or_default();
        let mut warnings = Vec::new();
        if front.is_repaired {
            warnings.push("its head is not YAML; quote values that have a colon".to_owned());
        }
        let name = match front.text("name") {
            Some(name) => {
                if name != parent {
                    warnings.push(format!("its name `{name}` is not the name of its folder"));
                }
                name.to_owned()
            }
            None => {
                warnings.push("it has no name; it is called as its folder".to_owned());
                parent
            }
        };
        if let Some(why) = wrong_name(&name) {
            warnings.push(why);
        }
        let name = folder.named(usable_name(&name).ok_or("its name has no letter")?);
        let mut description = match (front.text("description"), front.text("when_to_use")) {
            (Some(one), Some(more)) => format!("{one} {more}"),
            (Some(one), None) | (None, Some(one)) => one.to_owned(),
            (None, None) => {
                return Err("its description is missing; say in its head what it does and when to use it".to_owned());
            }
        };
        if description.chars().count() > DESCRIPTION_CHARS {
            warnings.push(format!(
                "its description is longer than {DESCRIPTION_CHARS} characters, and cut"
            ));
            description = description.chars().take(DESCRIPTION_CHARS).collect();
        }
        let is_for_model = front.flag("disable-model-invocation") != Some(true);
        let is_for_user = front.flag("user-invocable") != Some(false);
        let visibility = match (is_for_model, is_for_user) {
            (true, true) => Visibility::All,
            (true, false) => Visibility::ModelOnly,
            (false, _) => Visibility::UserOnly,
        };
        let arguments = front.list("arguments");
        let named: Vec<String> = arguments.iter().map(|it| format!("[{it}]")).collect();
        Ok((
            Self {
                name,
                description,
                path: folder.shown(file),
                folder: folder.absolute().join(below),
                owner: folder.owner,
                visibility,
                hint: front
                    .text("argument-hint")
                    .map_or_else(|| named.join(" "), str::to_owned),
                allowed_tools: front.list("allowed-tools"),
                model: front.text("model").filter(|it| *it != "inherit").map(str::to_owned),
                arguments,
                body: folder.filled(body.trim()),
                used: 0,
            },
            warnings,
        ))
    }

    /// Its body with `arguments` filled in; `session` is the id of the conversation.
    pub fn pieces(&self, arguments: &str, session: &str) -> Vec<Piece> {
        let folder = self.folder.to_string_lossy();
        pieces(
            &self.body,
            &Fill {
                arguments,
                names: &self.arguments,
                first: 0,
                folder: &folder,
                session,
                label: "Arguments: ",
            },
        )
    }

    /// Size of its body, in bytes.
    pub fn bytes(&self) -> usize {
        self.body.len()
    }

    /// Its other files, from its folder, and the number of those that are not listed. Reads the folder.
    pub fn files(&self) -> (Vec<String>, usize) {
        let mut found = Vec::new();
        let mut open = vec![(PathBuf::new(), 0)];
        while let Some((below, depth)) = open.pop() {
            let entries = std::fs::read_dir(self.folder.join(&below)).into_iter().flatten();
            for entry in entries.flatten().take(ENTRIES) {
                let (Ok(kind), Ok(name)) = (entry.file_type(), entry.file_name().into_string()) else {
                    continue;
                };
                let path = below.join(&name);
                // Links are named and not followed.
                if kind.is_dir() && depth < DEPTH && name != ".git" && name != "node_modules" {
                    open.push((path, depth + 1));
                } else if !kind.is_dir() && (depth > 0 || name != FILE) && found.len() < ENTRIES {
                    found.push(path.to_string_lossy().into_owned());
                }
            }
        }
        found.sort();
        let more = found.len().saturating_sub(LISTED_FILES);
        found.truncate(LISTED_FILES);
        (found, more)
    }
}

/// What the standard has against a name.
fn wrong_name(name: &str) -> Option<String> {
    let is_letter = |it: char| it.is_ascii_lowercase() || it.is_ascii_digit() || it == '-';
    let is_right =
        name.chars().all(is_letter) && !name.starts_with('-') && !name.ends_with('-') && !name.contains("--");
    if name.chars().count() > NAME_CHARS {
        Some(format!("its name is longer than {NAME_CHARS} characters"))
    } else if !is_right {
        Some("its name has other characters than `a-z`, `0-9` and single hyphens".to_owned())
    } else {
        None
    }
}

/// A name that can be typed behind a slash; `None`: nothing is left of it.
fn usable_name(name: &str) -> Option<String> {
    let mut usable = String::new();
    for it in name.trim().chars().flat_map(char::to_lowercase) {
        if it.is_alphanumeric() || matches!(it, '-' | '_' | ':' | '.') {
            usable.push(it);
        } else if !usable.ends_with('-') {
            usable.push('-');
        }
    }
    let usable = usable.trim_matches('-');
    usable.chars().any(char::is_alphanumeric).then(|| usable.to_owned())
}

impl SkillSet {
    /// The skill with this name.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        let name = name.trim().trim_start_matches('/');
        self.skills.iter().find(|it| it.name.eq_ignore_ascii_case(name))
    }

    /// The skills that a model is told of.
    pub fn for_model(&self) -> impl Iterator<Item = &Skill> {
        self.skills.iter().filter(|it| it.visibility != Visibility::UserOnly)
    }

    /// The skills that a model is told of, each with its description as far as there is room in a window of so many tokens.
    /// Where there is not, the skills that were used last keep theirs whole, and the others share what is left: the longest
    /// descriptions are cut.
    pub fn catalogue(&self, window: Option<u64>) -> Vec<(&Skill, String)> {
        let skills: Vec<&Skill> = self.for_model().collect();
        let part = window
            .unwrap_or_default()
            .saturating_mul(CATALOGUE_PERCENT * TOKEN_BYTES_X10)
            / 1000;
        let room = usize::try_from(part).unwrap_or(usize::MAX).max(CATALOGUE_BYTES);
        let fixed: usize = skills.iter().map(|it| it.name.len() + it.path.len() + 8).sum();
        let mut room = room.saturating_sub(fixed);
        let mut by_use: Vec<&Skill> = skills.iter().copied().filter(|it| it.used > 0).collect();
        by_use.sort_by_key(|it| std::cmp::Reverse(it.used));
        let mut whole: Vec<&str> = Vec::new();
        for skill in by_use {
            let length = skill.description.len();
            if length > room {
                break;
            }
            room -= length;
            whole.push(&skill.name);
        }
        let is_whole = |it: &Skill| whole.contains(&it.name.as_str());
        let others = skills.iter().filter(|it| !is_whole(it)).map(|it| it.description.len());
        let most = largest_part(others, room);
        let told = |it: &Skill| cut(&it.description, if is_whole(it) { usize::MAX } else { most });
        skills.into_iter().map(|it| (it, told(it))).collect()
    }

    /// Notes the last uses of skills, by their names.
    pub fn note_uses(&mut self, uses: &BTreeMap<String, u64>) {
        for skill in &mut self.skills {
            skill.used = uses.get(&skill.name).copied().unwrap_or_default();
        }
    }
}

/// The largest length to which texts can be cut so that all of them take no more than `room`.
fn largest_part(lengths: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut lengths: Vec<usize> = lengths.collect();
    lengths.sort_unstable();
    let (mut room, mut left) = (room, lengths.len());
    for length in lengths {
        let part = room / left.max(1);
        if length > part {
            return part;
        }
        room -= length;
        left -= 1;
    }
    usize::MAX
}

fn cut(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() <= most {
        return line;
    }
    let end = line.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    match line.get(..end).map(str::trim_end) {
        Some(begin) if !begin.is_empty() => format!("{begin}…"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn skill(name: &str, description: &str) -> String {
        format!("---\nname: {name}\ndescription: {description}\n---\nBody of {name}.\n")
    }

    fn around(top: &Path) -> Surroundings {
        std::fs::create_dir_all(top.join("work/.git")).unwrap();
        Surroundings {
            workspace: Some(top.join("work")),
            directory: None,
            config: Some(top.join("config")),
            home: Some(top.join("home")),
            plugins: Vec::new(),
        }
    }

    /// `path: text`, with the temporary folder left out.
    fn told(top: &Path, list: &[(String, String)]) -> Vec<String> {
        let base = top.display().to_string();
        list.iter()
            .map(|it| format!("{}: {}", it.0, it.1).replace(&base, ""))
            .collect()
    }

    #[test]
    fn the_nearest_of_a_name_counts_and_the_others_are_named() {
        let top = tempfile::tempdir().unwrap();
        let around = around(top.path());
        for (path, text) in [
            ("work/.claude/skills/pdf/SKILL.md", skill("pdf", "Claude's")),
            ("work/.sheaf/skills/pdf/SKILL.md", skill("pdf", "ours")),
            ("work/.agents/skills/group/deep/csv/SKILL.md", skill("csv", "tables")),
            ("work/.cursor/skills/a/b/c/d/e/SKILL.md", skill("far", "too deep")),
            ("work/.cursor/skills/x/SKILL.md", skill("x", "outer")),
            (
                "work/.cursor/skills/x/inner/SKILL.md",
                skill("inner", "a skill has none in it"),
            ),
            ("config/skills/mine/SKILL.md", skill("mine", "the user's")),
            ("home/.codex/skills/csv/SKILL.md", skill("csv", "the user's")),
            ("home/.sheaf/skills/no/SKILL.md", skill("no", "not a place")),
        ] {
            write(top.path(), path, &text);
        }
        let found = find_skills(&around, &|_, _| true);
        let names: Vec<_> = found
            .skills
            .iter()
            .map(|it| format!("{} {}", it.name, it.description))
            .collect();
        assert_eq!(names, ["pdf ours", "csv tables", "x outer", "mine the user's"]);
        assert_eq!(
            told(top.path(), &found.shadowed),
            [
                ".claude/skills/pdf/SKILL.md: .sheaf/skills/pdf/SKILL.md",
                "/home/.codex/skills/csv/SKILL.md: .agents/skills/group/deep/csv/SKILL.md",
            ]
        );
        assert_eq!(found.problems, []);
        // Nothing of a project counts without the user's trust, and its place is free.
        let found = find_skills(&around, &|_, _| false);
        let names: Vec<_> = found.skills.iter().map(|it| it.name.as_str()).collect();
        assert_eq!((names, found.held.len()), (vec!["mine", "csv"], 4));
    }

    #[test]
    fn a_skill_with_a_small_mistake_is_loaded_with_a_warning() {
        let top = tempfile::tempdir().unwrap();
        let around = around(top.path());
        let long = "n".repeat(70);
        for (folder, text) in [
            (
                "a-colon",
                "---\nname: a-colon\ndescription: Use this: always\n---\nb".to_owned(),
            ),
            ("b-crlf", skill("b-crlf", "x").replace('\n', "\r\n")),
            ("c-bom", format!("\u{feff}{}", skill("c-bom", "x"))),
            ("d-long", skill(&long, "x")),
            ("e-other", skill("another", "x")),
            ("f-name", skill("F Name", "x")),
            ("g-none", "---\nname: g-none\n---\nbody".to_owned()),
            ("h-head", "no head at all".to_owned()),
            ("i-yaml", "---\nname: [\n---\nbody".to_owned()),
            ("j-description", skill("j-description", &"d".repeat(2000))),
        ] {
            write(top.path(), &format!("work/.sheaf/skills/{folder}/SKILL.md"), &text);
        }
        let found = find_skills(&around, &|_, _| true);
        let names: Vec<_> = found.skills.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "a-colon",
                "b-crlf",
                "c-bom",
                long.as_str(),
                "another",
                "f-name",
                "j-description"
            ]
        );
        let description = |name: &str| found.get(name).map(|it| it.description.chars().count());
        assert_eq!(
            (description("a-colon"), description("j-description")),
            (Some(16), Some(1024))
        );
        let missing = "left out: its description is missing; say in its head what it does and when to use it";
        let problems: Vec<String> = told(top.path(), &found.problems)
            .iter()
            .map(|it| {
                it.replace(".sheaf/skills/", "")
                    .replace("/SKILL.md", "")
                    .replace(&long, "nn")
            })
            .collect();
        assert_eq!(
            problems[..9],
            [
                "a-colon: its head is not YAML; quote values that have a colon",
                "d-long: its name `nn` is not the name of its folder",
                "d-long: its name is longer than 64 characters",
                "e-other: its name `another` is not the name of its folder",
                "f-name: its name `F Name` is not the name of its folder",
                "f-name: its name has other characters than `a-z`, `0-9` and single hyphens",
                &format!("g-none: {missing}"),
                &format!("h-head: {missing}"),
                "i-yaml: left out: its head is not YAML: did not find expected node content at line 1 column 0",
            ]
            .map(|it| if it.starts_with("i-yaml") {
                problems[8].as_str()
            } else {
                it
            })
        );
        assert!(
            problems[8].starts_with("i-yaml: left out: its head is not YAML"),
            "{}",
            problems[8]
        );
        assert_eq!(
            problems[9..],
            ["j-description: its description is longer than 1024 characters, and cut"]
        );
    }

    #[test]
    fn a_link_out_of_the_project_is_not_followed_and_one_inside_is() {
        let top = tempfile::tempdir().unwrap();
        let around = around(top.path());
        write(top.path(), "secret/leak/SKILL.md", &skill("leak", "x"));
        write(top.path(), "work/common/kept/SKILL.md", &skill("kept", "x"));
        std::fs::create_dir_all(top.path().join("work/.claude/skills")).unwrap();
        std::os::unix::fs::symlink(
            top.path().join("secret/leak"),
            top.path().join("work/.claude/skills/leak"),
        )
        .unwrap();
        std::os::unix::fs::symlink("../../common/kept", top.path().join("work/.claude/skills/kept")).unwrap();
        let found = find_skills(&around, &|_, _| true);
        let names: Vec<_> = found.skills.iter().map(|it| it.name.as_str()).collect();
        assert_eq!((names, found.problems), (vec!["kept"], vec![]));
    }

    #[test]
    fn who_may_use_a_skill_is_said_in_its_head() {
        let top = tempfile::tempdir().unwrap();
        let around = around(top.path());
        for (name, more) in [
            ("all", ""),
            ("user", "disable-model-invocation: true\n"),
            (
                "model",
                "user-invocable: false\narguments: [issue, branch]\nallowed-tools: Bash(git add:*), Read\nmodel: inherit\n",
            ),
        ] {
            let text = format!("---\nname: {name}\ndescription: d\n{more}---\nIn ${{CLAUDE_SKILL_DIR}}: $0 $branch");
            write(top.path(), &format!("work/.sheaf/skills/{name}/SKILL.md"), &text);
        }
        let found = find_skills(&around, &|_, _| true);
        let seen: Vec<_> = found
            .skills
            .iter()
            .map(|it| (it.name.as_str(), it.visibility))
            .collect();
        assert_eq!(
            seen,
            [
                ("all", Visibility::All),
                ("model", Visibility::ModelOnly),
                ("user", Visibility::UserOnly)
            ]
        );
        let told: Vec<_> = found.for_model().map(|it| it.name.as_str()).collect();
        assert_eq!(told, ["all", "model"]);
        let model = found.get("/Model").unwrap();
        assert_eq!((model.hint.as_str(), &model.model), ("[issue] [branch]", &None));
        assert_eq!(model.allowed_tools, ["Bash(git add:*)", "Read"]);
        let folder = model.folder.display();
        assert_eq!(
            model.pieces("7 main", "s"),
            [Piece::Text(format!("In {folder}: 7 main"))]
        );
    }

    #[test]
    fn the_longest_descriptions_are_cut_where_there_is_no_room() {
        let top = tempfile::tempdir().unwrap();
        let around = around(top.path());
        for nth in 0..20 {
            let description = if nth < 10 {
                "short".to_owned()
            } else {
                "long ".repeat(200)
            };
            let name = format!("s{nth:02}");
            write(
                top.path(),
                &format!("work/.sheaf/skills/{name}/SKILL.md"),
                &skill(&name, &description),
            );
        }
        let found = find_skills(&around, &|_, _| true);
        let size = |list: &[(&Skill, String)]| -> usize {
            list.iter()
                .map(|(skill, about)| skill.name.len() + skill.path.len() + about.len() + 8)
                .sum()
        };
        let small = found.catalogue(None);
        assert_eq!(small[0].1, "short");
        assert!(small[19].1.ends_with('…') && small[19].1.len() > 200, "{}", small[19].1);
        assert!(
            size(&small) <= CATALOGUE_BYTES && size(&small) > CATALOGUE_BYTES - 200,
            "{}",
            size(&small)
        );
        let large = found.catalogue(Some(1_000_000));
        assert_eq!(large[19].1.len(), 999, "all of it");
        // Those that were used last keep theirs, as far as there is room.
        let mut used = found.clone();
        let uses = [("s11", 1), ("s19", 3), ("s12", 2), ("s15", 4)];
        used.note_uses(&uses.map(|(name, at)| (name.to_owned(), at)).into());
        let told = used.catalogue(None);
        let lengths = [15, 19, 12, 11, 14].map(|at: usize| told[at].1.len());
        assert_eq!(lengths[..2], [999, 999], "{lengths:?}");
        assert!(lengths[3] < 999 && lengths[3] == lengths[4], "{lengths:?}");
        assert!(size(&told) <= CATALOGUE_BYTES, "{}", size(&told));
    }

    #[test]
    fn the_files_of_a_skill_are_listed() {
        let top = tempfile::tempdir().unwrap();
        let around = around(top.path());
        write(top.path(), "work/.sheaf/skills/s/SKILL.md", &skill("s", "d"));
        for nth in 0..60 {
            write(top.path(), &format!("work/.sheaf/skills/s/scripts/{nth:02}.sh"), "");
        }
        let found = find_skills(&around, &|_, _| true);
        let (files, more) = found.skills[0].files();
        assert_eq!((files.len(), more, files[0].as_str()), (50, 10, "scripts/00.sh"));
    }
}
