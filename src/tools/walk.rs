//! What the searching tools share: walking the workspace on threads of its own, until there is enough or nobody waits.
//!
//! The walk itself, with everything that ignore files and secrets keep out of it, is the sandbox's. What a model filters by
//! (globs, types) is looked at here, afterwards: to the walk a glob that is asked for would bring back what is hidden.

use std::{
    cmp::{Ordering, Reverse},
    fs::File,
    io,
    path::{Path, PathBuf},
    sync::mpsc,
    time::Instant,
};

use ignore::{
    WalkState,
    overrides::{Override, OverrideBuilder},
    types::{Types, TypesBuilder},
};

use rustix::fs::{Mode, OFlags};

use super::tool::{Access, Context, Fault, Input, Outcome, Stop, Work};
use crate::{
    config::{ResultLimits, nearest},
    sandbox::{Bounds, Located, Place, Refused, Walk, Workspace},
};

/// Paths that one walk holds at most; about a hundred megabytes.
const MOST_FILES: usize = 1_000_000;

/// The limits of work on another thread: its deadline, and the size of its result.
#[derive(Clone)]
pub struct Until {
    pub limits: ResultLimits,
    stop: Stop,
    /// Set when the promise was dropped.
    gone: Stop,
    deadline: Instant,
}

impl Until {
    /// Nobody wants the result any more.
    pub fn is_unwanted(&self) -> bool {
        self.stop.is_set() || self.gone.is_set()
    }

    /// Nobody wants more than there is.
    pub fn is_over(&self) -> bool {
        self.is_unwanted() || Instant::now() >= self.deadline
    }

    /// The same for a walk.
    pub fn bounds(&self) -> Bounds {
        let own = self.clone();
        Bounds::until(move || own.is_over())
    }
}

#[cfg(test)]
impl Until {
    /// Work that is wanted for as long as a test may take.
    pub fn done() -> Self {
        Self {
            stop: Stop::default(),
            gone: Stop::default(),
            deadline: Instant::now() + std::time::Duration::from_hours(1),
            limits: ResultLimits::default(),
        }
    }

    /// Tells the work to stop.
    pub fn set(&mut self) {
        self.stop.set();
    }
}

/// Sets the sign when the promise that holds it is dropped.
struct Gone(Stop);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.set();
    }
}

/// Does the work on another thread. Dropping the promise stops it, at the next look at [`Until`].
pub async fn away<T, F>(context: &Context, work: F) -> Result<T, Fault>
where
    T: Send + 'static,
    F: FnOnce(&Until) -> Result<T, Fault> + Send + 'static,
{
    let gone = Gone(Stop::default());
    let until = Until {
        stop: context.stop.clone(),
        gone: gone.0.clone(),
        deadline: Instant::now() + context.settings.limits.search_time,
        limits: context.settings.limits,
    };
    let done = tokio::task::spawn_blocking(move || work(&until)).await;
    drop(gone);
    done.unwrap_or_else(|_| Err(Fault::new("TOOL_FAILED", "the tool came to an unexpected end")))
}

/// The work of a tool that reads the place in its argument `name`, by `read` on a thread that may block.
pub fn work(name: &'static str, read: fn(&Context, &Input, &Until) -> Result<Outcome, Fault>) -> Work {
    Work::call(
        move |input, context| reads(name, input, context),
        move |input, context| async move {
            let own = context.clone();
            away(&context, move |until| read(&own, &input, until)).await
        },
    )
}

/// A place that may be looked at: the one the model wrote, else the workspace.
pub fn place(workspace: &Workspace, written: Option<&str>) -> Result<Located, Fault> {
    let written = written.map(str::trim).filter(|it| !it.is_empty()).unwrap_or(".");
    let located = workspace.locate(written)?;
    match located.place {
        Place::Hidden => Err(Refused::Hidden(located.shown).into()),
        Place::Inside | Place::Added | Place::Outside => Ok(located),
    }
}

/// The place as it is: a file or a directory.
pub fn existing(located: Located) -> Result<Located, Fault> {
    match std::fs::metadata(&located.path) {
        Ok(metadata) if metadata.is_file() || metadata.is_dir() => Ok(located),
        Ok(_) => Err(Refused::Special(located.shown).into()),
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => Err(Refused::Missing(located.shown).into()),
        Err(source) => Err(Refused::Failed {
            path: located.shown,
            source,
        }
        .into()),
    }
}

/// A directory that may be looked at.
pub fn directory(workspace: &Workspace, written: Option<&str>) -> Result<Located, Fault> {
    let located = existing(place(workspace, written)?)?;
    if located.path.is_dir() {
        return Ok(located);
    }
    Err(Fault::new("TOOL_FAILED", format!("`{}` is no directory", located.shown)).hint("Read it with `read_file`."))
}

/// The access of a call that reads the place in its argument `name`, else the workspace.
fn reads(name: &str, input: &Input, context: &Context) -> Result<Vec<Access>, Fault> {
    Ok(vec![Access::Read(place(&context.workspace, input.text(name))?)])
}

/// A path as people and models read it.
pub fn shown(workspace: &Workspace, path: &Path) -> String {
    let path = path.strip_prefix(workspace.root()).unwrap_or(path);
    path.to_string_lossy().into_owned()
}

/// Opens a file that a walk found. A link or a pipe that has come to its place since leads nowhere.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// As many threads as help.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from).min(8)
}

/// The model's filter of files.
#[derive(Default)]
pub struct Filter {
    globs: Option<Override>,
    types: Option<Types>,
}

impl Filter {
    /// `globs` as ripgrep's `-g`, several with commas between; `kinds` as its `-t`.
    pub fn new(workspace: &Workspace, globs: Option<&str>, kinds: Option<&str>) -> Result<Self, Fault> {
        let invalid = |message: String| Fault::arguments(message);
        let mut filter = Self::default();
        let globs: Vec<_> = globs.map(split).into_iter().flatten().collect();
        if !globs.is_empty() {
            let mut builder = OverrideBuilder::new(workspace.root());
            for glob in &globs {
                let root = workspace.root().to_string_lossy();
                let glob = glob.strip_prefix("./").unwrap_or(glob);
                let glob = glob.strip_prefix(&*root).unwrap_or(glob);
                builder
                    .add(glob)
                    .map_err(|it| invalid(format!("the glob `{glob}` cannot be read: {it}")))?;
            }
            let built = builder
                .build()
                .map_err(|it| invalid(format!("the glob cannot be read: {it}")))?;
            filter.globs = Some(built);
        }
        let kinds: Vec<_> = kinds.into_iter().flat_map(|it| it.split(',')).map(str::trim).collect();
        if kinds.iter().any(|it| !it.is_empty()) {
            let mut builder = TypesBuilder::new();
            builder.add_defaults();
            let known: Vec<_> = builder.definitions().iter().map(|it| it.name().to_owned()).collect();
            for kind in kinds.into_iter().filter(|it| !it.is_empty()) {
                let kind = kind.trim_start_matches('.');
                if !known.iter().any(|it| it == kind) {
                    let near = nearest(kind, known.iter().map(String::as_str));
                    let near = near.map_or_else(String::new, |it| format!("`{it}` is one. "));
                    return Err(invalid(format!("unknown file type `{kind}`"))
                        .hint(format!("{near}Or filter by `glob`, such as `*.{kind}`.")));
                }
                builder.select(kind);
            }
            let built = builder
                .build()
                .map_err(|it| invalid(format!("the type cannot be read: {it}")))?;
            filter.types = Some(built);
        }
        Ok(filter)
    }

    fn keeps(&self, path: &Path, is_directory: bool) -> bool {
        let is_out = |it: &Override| it.matched(path, is_directory).is_ignore();
        let is_other = |it: &Types| it.matched(path, is_directory).is_ignore();
        !self.globs.as_ref().is_some_and(is_out) && !self.types.as_ref().is_some_and(is_other)
    }
}

/// The globs of a list: commas inside of braces and brackets belong to the glob.
fn split(globs: &str) -> Vec<String> {
    let mut list = vec![String::new()];
    let mut depth = 0_usize;
    for it in globs.chars() {
        match it {
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match list.last_mut() {
            Some(last) if it != ',' || depth > 0 => last.push(it),
            _ => list.push(String::new()),
        }
    }
    let list = list.into_iter().map(|it| it.trim().to_owned());
    list.filter(|it| !it.is_empty() && it != "!").collect()
}

/// The result of a walk.
pub struct Listing {
    /// Absolute, in the order in which a reader goes through a tree.
    pub files: Vec<PathBuf>,
    /// The walk came to its end.
    pub is_whole: bool,
}

/// All regular files of a place. Links are not followed.
pub fn files(walker: &Walk, filter: &Filter, until: &Until) -> Listing {
    let (sender, receiver) = mpsc::channel();
    let mut files = std::thread::scope(|scope| {
        let gather = scope.spawn(move || {
            receiver
                .into_iter()
                .flatten()
                .take(MOST_FILES)
                .collect::<Vec<PathBuf>>()
        });
        walker.visit(threads(), || {
            let mut batch = Batch {
                files: Vec::new(),
                sender: sender.clone(),
            };
            Box::new(move |entry| {
                if until.is_over() {
                    return WalkState::Quit;
                }
                let Ok(entry) = entry else {
                    return WalkState::Continue;
                };
                let Some(kind) = entry.file_type() else {
                    return WalkState::Continue;
                };
                // What was named itself is wanted, whatever the filter says.
                if entry.depth() > 0 && !filter.keeps(entry.path(), kind.is_dir()) {
                    return WalkState::Skip;
                }
                if kind.is_file() && !batch.push(entry.into_path()) {
                    return WalkState::Quit;
                }
                WalkState::Continue
            })
        });
        drop(sender);
        gather.join().unwrap_or_default()
    });
    // `/` before everything else makes it the order of components, for a fraction of the work.
    files.sort_unstable_by(|left, right| order(left, right));
    Listing {
        is_whole: files.len() < MOST_FILES && !walker.is_cut() && !until.is_over(),
        files,
    }
}

/// The files that one thread of a walk found: handed over many at a time, so that threads do not wait for one another.
struct Batch {
    files: Vec<PathBuf>,
    sender: mpsc::Sender<Vec<PathBuf>>,
}

impl Batch {
    /// False: nobody takes more.
    fn push(&mut self, file: PathBuf) -> bool {
        self.files.push(file);
        self.files.len() < 500 || self.sender.send(std::mem::take(&mut self.files)).is_ok()
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // Where nobody takes it, nobody wants it.
        let _ = self.sender.send(std::mem::take(&mut self.files));
    }
}

/// By bytes, the separator before everything else.
fn order(left: &Path, right: &Path) -> Ordering {
    let (left, right) = (
        left.as_os_str().as_encoded_bytes(),
        right.as_os_str().as_encoded_bytes(),
    );
    // Neighbours share most of their path.
    const STEP: usize = 16;
    let same = left
        .chunks(STEP)
        .zip(right.chunks(STEP))
        .take_while(|(left, right)| left == right)
        .count()
        * STEP;
    let low = |it: &u8| if *it == b'/' { 0 } else { *it };
    let (left, right) = (
        left.get(same..).unwrap_or_default(),
        right.get(same..).unwrap_or_default(),
    );
    left.iter().map(low).cmp(right.iter().map(low))
}

/// Up to three files whose names are like the one that is not there, best first.
pub fn similar(workspace: &Workspace, missing: &Located, until: &Until) -> Vec<String> {
    let Ok(root) = place(workspace, None) else {
        return Vec::new();
    };
    let Some(name) = missing.path.file_name().map(|it| it.to_string_lossy().into_owned()) else {
        return Vec::new();
    };
    let Ok(walker) = workspace.walker(&root, until.bounds()) else {
        return Vec::new();
    };
    let files = files(&walker, &Filter::default(), until).files;
    let wanted: Vec<_> = missing.path.components().collect();
    let mut found: Vec<_> = files
        .iter()
        .filter_map(|it| {
            let other = it.file_name()?.to_string_lossy();
            let likeness = if other == name {
                0
            } else if other.eq_ignore_ascii_case(&name) {
                1
            } else if is_same_stem(&other, &name) {
                2
            } else {
                nearest(&name, [&*other]).map(|_| 3)?
            };
            let shared = it.components().filter(|it| wanted.contains(it)).count();
            Some((likeness, Reverse(shared), it))
        })
        .collect();
    found.sort();
    found
        .into_iter()
        .take(3)
        .map(|(_, _, it)| shown(workspace, it))
        .collect()
}

fn is_same_stem(left: &str, right: &str) -> bool {
    let stem = |it: &str| Path::new(it).file_stem().map(|it| it.to_string_lossy().to_lowercase());
    stem(left) == stem(right)
}

/// A number of bytes for a sentence: `3 bytes`, `1.5 KiB`.
pub fn size(bytes: u64) -> String {
    match bytes {
        1 => "1 byte".to_owned(),
        0..1024 => format!("{bytes} bytes"),
        1024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

/// At most `most` characters of a text, the last of them an ellipsis where it is longer.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
pub mod tests {
    use std::{
        fs,
        time::{Duration, SystemTime},
    };

    use serde_json::Value;

    use super::*;

    /// A workspace of its own with these files, the first the newest.
    pub struct Tree {
        pub workspace: Workspace,
        pub folder: tempfile::TempDir,
    }

    impl Tree {
        /// A workspace with these files, the first the newest.
        pub fn new(files: &[(&str, &[u8])]) -> Self {
            let folder = tempfile::tempdir().expect("a folder");
            for (at, (name, content)) in files.iter().enumerate() {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
                fs::write(&path, content).expect("a file");
                let file = fs::File::options().write(true).open(&path).expect("a file");
                let age = Duration::from_secs(1_000_000 - at as u64);
                file.set_modified(SystemTime::UNIX_EPOCH + age).expect("a time");
            }
            let workspace = Workspace::open(folder.path()).expect("a workspace");
            Self { workspace, folder }
        }
    }

    /// Arguments as a model writes them, read.
    pub fn input(tool: &crate::tools::Tool, given: Value) -> Input {
        let given = given.as_object().expect("an object");
        crate::tools::arguments::read(tool, Ok(given)).expect("sound arguments")
    }

    #[test]
    fn lists_of_globs_are_taken_apart() {
        for (globs, expected) in [
            ("*.rs", vec!["*.rs"]),
            ("*.rs,!tests/**", vec!["*.rs", "!tests/**"]),
            (" *.{ts,tsx} , [a,b].c,", vec!["*.{ts,tsx}", "[a,b].c"]),
            ("", vec![]),
            ("!", vec![]),
            ("}{,", vec!["}{,"]),
        ] {
            assert_eq!(split(globs), expected, "{globs}");
        }
    }

    #[test]
    fn files_come_in_the_order_of_a_tree() {
        let names = ["a/b", "a.b", "a-b", "b/a/c", "b/a.c", "Z", "a/b.c/d"];
        let files: Vec<_> = names.iter().map(|it| (*it, &b"x"[..])).collect();
        // Two that cannot stand side by side.
        let files: Vec<_> = files.into_iter().filter(|(it, _)| *it != "a/b").collect();
        let tree = Tree::new(&files);
        let place = place(&tree.workspace, None).expect("the root");
        let listing = super::files(
            &tree.workspace.walker(&place, Until::done().bounds()).expect("a walk"),
            &Filter::default(),
            &Until::done(),
        );
        let mut expected: Vec<_> = files.iter().map(|(it, _)| tree.workspace.root().join(it)).collect();
        expected.sort();
        assert_eq!(listing.files, expected);
        assert!(listing.is_whole);
    }

    #[test]
    fn what_is_like_a_missing_name_is_found() {
        let tree = Tree::new(&[
            ("src/cart.rs", b"x"),
            ("src/discount.rs", b"x"),
            ("src/Config.toml", b"x"),
            ("lib/cart.ts", b"x"),
            ("far/away/cart.rs", b"x"),
            ("src/carts.rs", b"x"),
        ]);
        for (missing, expected) in [
            ("lib/cart.rs", vec!["far/away/cart.rs", "src/cart.rs", "lib/cart.ts"]),
            ("src/config.toml", vec!["src/Config.toml"]),
            ("src/discuont.rs", vec!["src/discount.rs"]),
            ("src/nothing_like_it.zip", vec![]),
        ] {
            let missing = tree.workspace.locate(missing).expect("a path");
            assert_eq!(similar(&tree.workspace, &missing, &Until::done()), expected);
        }
    }

    /// The listed files are those that git would add, apart from those that only we leave out.
    #[test]
    fn git_ignores_the_same_files() {
        let tree = Tree::new(&[
            (
                ".gitignore",
                b"*.log\n!keep.log\n/build/\ndocs/*.txt\n**/tmp\n# no\n\\#odd\ntrail   \n",
            ),
            ("a.log", b"x"),
            ("keep.log", b"x"),
            ("build/out.rs", b"x"),
            ("sub/build/in.rs", b"x"),
            ("docs/a.txt", b"x"),
            ("docs/deep/a.txt", b"x"),
            ("docs/.gitignore", b"!a.txt\n"),
            ("x/y/tmp/z", b"x"),
            ("x/tmp", b"x"),
            ("#odd", b"x"),
            ("trail", b"x"),
            ("sub/.gitignore", b"*\n!*.rs\n!*/\n"),
            ("sub/a.rs", b"x"),
            ("sub/b.c", b"x"),
            ("sub/n/c.rs", b"x"),
            (".hidden/file", b"x"),
            ("out/keep/b", b"x"),
            ("out/.gitignore", b"keep\n"),
            ("ex/cluded", b"x"),
        ]);
        let git = |arguments: &[&str]| {
            let mut command = std::process::Command::new("git");
            command
                .current_dir(tree.folder.path())
                .env("GIT_CONFIG_GLOBAL", "/dev/null");
            command.args(arguments).output()
        };
        if git(&["init", "-q"]).is_err() {
            // Past the capture of a test's output, which would swallow it.
            std::io::Write::write_all(
                &mut std::io::stderr(),
                b"\nSKIPPED: a comparison with git, which is not there\n",
            )
            .ok();
            return;
        }
        fs::write(tree.folder.path().join(".git/info/exclude"), "ex/\n").expect("a file");
        let theirs = git(&["ls-files", "-co", "--exclude-standard"]).expect("a list");
        let theirs = String::from_utf8(theirs.stdout).expect("text");
        let mut theirs: Vec<_> = theirs.lines().map(str::to_owned).collect();
        let place = place(&tree.workspace, None).expect("the root");
        let walker = tree.workspace.walker(&place, Until::done().bounds()).expect("a walk");
        let ours = super::files(&walker, &Filter::default(), &Until::done()).files;
        let mut ours: Vec<_> = ours.iter().map(|it| shown(&tree.workspace, it)).collect();
        theirs.sort();
        ours.sort();
        assert!(theirs.len() > 8, "{theirs:?}");
        assert_eq!(ours, theirs);
    }

    #[test]
    fn filters_are_read_or_explained() {
        let tree = Tree::new(&[("a", b"x")]);
        let fault = |globs: Option<&str>, kinds: Option<&str>| {
            let fault = Filter::new(&tree.workspace, globs, kinds).err().expect("a fault");
            fault.text()
        };
        assert_eq!(
            fault(None, Some("pyton")),
            "Error [TOOL_ARGUMENTS_INVALID]: unknown file type `pyton`\n\
             `python` is one. Or filter by `glob`, such as `*.pyton`."
        );
        assert!(fault(Some("a["), None).starts_with("Error [TOOL_ARGUMENTS_INVALID]: the glob `a[` cannot be read: "));
    }
}
