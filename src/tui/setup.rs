//! The parameters of the screen, and the state that it begins in.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use tokio::sync::mpsc;

use super::{
    actions::ACTIONS,
    app::{
        App, Appearance, Composer, Conversation, Keymap, Overlays, Preferences, Questions, Terminal, Themes, Viewport,
        Workspace,
    },
    image::Images,
    library::Library,
    terminal::{ImageSetting, Mouse},
};
use crate::{
    config::{Location, Paths, Problem, Settings},
    link::Link,
    locale,
    os::file,
    protocol::Mode,
    t,
    text::{Colours, diff::CONTEXT_LINES},
    theme,
};

/// The parameters of the screen.
pub struct Setup {
    pub link: Arc<dyn Link>,
    /// Links that replace the first one.
    pub switch: mpsc::UnboundedReceiver<Arc<dyn Link>>,
    pub settings: Settings,
    pub paths: Paths,
    pub workspace: PathBuf,
    pub problems: Vec<Problem>,
    pub mode: Mode,
    /// Custom mode of the first message.
    pub custom_mode: Option<String>,
    /// Sent as the first message.
    pub prompt: Option<String>,
    pub is_developer: bool,
    /// Drafts and sent messages are stored for the next time.
    pub keeps: bool,
    /// Runs without the alternate screen.
    pub is_inline: bool,
    /// The stored conversations; `None` if there is only this one.
    pub library: Option<Arc<dyn Library>>,
}

/// The state before anything has happened.
pub fn app(setup: &Setup, size: (u16, u16), cell: Option<(u16, u16)>, colours: Arc<dyn Colours + Send + Sync>) -> App {
    let settings = setup.settings.clone();
    let terminal = theme::TerminalEnvironment::of(|name| std::env::var(name).ok());
    let seen = theme::KnownBackground {
        reported: None,
        remembered: theme::recall(&setup.paths.state),
    };
    let mut themes = Themes {
        names: theme::names(&setup.paths.themes()),
        chosen: settings.theme.clone(),
        folder: setup.paths.themes(),
        syntax: theme::Syntax::default(),
        seen,
        surroundings: terminal,
    };
    let mut keymap = Keymap::built_in(ACTIONS);
    let mut problems: Vec<_> = setup.problems.iter().map(ToString::to_string).collect();
    problems.extend(keymap.load(&setup.paths.keymap()).iter().map(ToString::to_string));
    problems.extend(speak(&settings, &setup.paths));
    if themes.chosen != "auto" {
        let asked = settings.origin("theme").place.clone();
        let asked = asked.unwrap_or_else(|| Location::Variable("SHEAF_THEME".to_owned()));
        let (_, wrong) = theme::load(&themes.chosen, &themes.folder, &asked);
        problems.extend(wrong.iter().map(ToString::to_string));
    }
    if let Some(asked) = &settings.ui.syntax_theme {
        let place = settings.origin("ui.syntax_theme").place.clone();
        let place = place.unwrap_or_else(|| Location::Variable("SHEAF_UI_SYNTAX_THEME".to_owned()));
        let home = std::env::home_dir();
        let (syntax, wrong) = theme::syntax(asked, &themes.folder, home.as_deref(), &place);
        themes.syntax = syntax;
        problems.extend(wrong.iter().map(ToString::to_string));
    }
    // The page that stands where no conversation is shows them whole; there may be a conversation at once.
    let toast = match problems.len() {
        0 => None,
        count => Some(t!("news-problems", count = count)),
    };
    let wish = ImageSetting::of(&settings.ui.images);
    let mut images = Images::new(wish.here(&|name| std::env::var(name).ok()), cell);
    if setup.is_inline {
        images = images.staying();
    }
    let mut composer = Composer::default();
    composer.field.vim = settings.ui.vim.then(crate::tui::editor::vim::Vim::default);
    composer.mode = setup.mode;
    composer.commands.custom_mode.clone_from(&setup.custom_mode);
    App {
        conversation: Conversation::of(Arc::clone(&setup.link), workspace(&setup.workspace), setup.is_inline),
        viewport: Viewport::default(),
        composer,
        questions: Questions::default(),
        overlays: Overlays::default(),
        appearance: Appearance {
            theme: themes.resolve(settings.color),
            themes,
            look_version: 1,
            colours,
            colours_version: 1,
            show_thinking: settings.ui.thinking == "shown",
            show_times: false,
            context_lines: CONTEXT_LINES,
            output_rows: usize::try_from(settings.ui.output_rows).unwrap_or(usize::MAX),
        },
        terminal: Terminal {
            size,
            mouse: if settings.mouse { Mouse::Full } else { Mouse::Off },
            inline: setup.is_inline.then(crate::tui::app::inline::Inline::default),
            images,
            ..Terminal::default()
        },
        status: crate::tui::app::Status::new(settings.ui.status_command.clone().unwrap_or_default()),
        preferences: Preferences {
            settings,
            keymap,
            is_developer: setup.is_developer,
            problems,
            written: BTreeMap::new(),
        },
        toast,
        toast_ms: now_ms(),
        now_ms: now_ms(),
    }
}

/// Sets the language of the interface; returns what is wrong with its texts.
pub fn speak(settings: &Settings, paths: &Paths) -> Vec<String> {
    let asked = settings.ui.language.as_str();
    let is_auto = asked == "auto";
    let wanted = if is_auto {
        locale::of_environment(|name| std::env::var(name).ok())
    } else {
        vec![asked.to_owned()]
    };
    let folder = paths.locales();
    match locale::find(&wanted, Some(&folder)) {
        Ok((found, faults)) => {
            let tag = found.map_or("en", locale::Catalogue::tag);
            if let Some(found) = found {
                locale::choose(found);
            }
            let name = folder.join(format!("{tag}.ftl"));
            let mut problems: Vec<_> = faults
                .iter()
                .map(|it| format!("{}:{}: {}", name.display(), it.line, it.because))
                .collect();
            let is_known = asked == tag || asked.split_once('-').is_some_and(|it| it.0 == tag);
            if !is_auto && !is_known {
                let known: Vec<_> = locale::LANGUAGES.iter().map(|it| it.tag).collect();
                problems.push(t!(
                    "problem-language",
                    language = asked,
                    known = known.join(", "),
                    folder = folder.display().to_string()
                ));
            }
            problems
        }
        Err(error) => vec![error.to_string()],
    }
}

/// The workspace as the header shows it, with the branch that `.git/HEAD` names.
pub fn workspace(folder: &Path) -> Workspace {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let label = match home.as_deref().and_then(|home| folder.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => folder.display().to_string(),
    };
    Workspace {
        folder: folder.to_owned(),
        home,
        label,
        branch: branch(folder),
    }
}

/// Returns the branch of the git repository around a folder, or the beginning of the commit that it is at; `None` without a
/// repository.
pub fn branch(workspace: &Path) -> Option<String> {
    let git = workspace.ancestors().map(|it| it.join(".git")).find(|it| it.exists())?;
    // In a linked worktree `.git` is a file that names the folder.
    let folder = if git.is_file() {
        let text = String::from_utf8(file::read(&git, 4096).ok()?).ok()?;
        git.parent()?.join(text.strip_prefix("gitdir:")?.trim())
    } else {
        git
    };
    let head = String::from_utf8(file::read(&folder.join("HEAD"), 4096).ok()?).ok()?;
    let head = head.trim();
    Some(match head.strip_prefix("ref: refs/heads/") {
        Some(name) => name.to_owned(),
        None => head.get(..8)?.to_owned(),
    })
}

pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |it| it.as_millis() as u64)
}
