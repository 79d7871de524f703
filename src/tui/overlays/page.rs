//! A page to read over the conversation: keys and commands, costs, context, permissions.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect};
use serde_json::Value;

use super::frame;
use crate::{
    locale::figure,
    protocol::{
        ContextName, ContextNote, ContextPart, ExtensionEntry, ExtensionState, Mechanism, NotOffered, RateLimit,
        RuleTrigger, Sandbox, SandboxLayer, SandboxNote,
    },
    t,
    text::{Role, Sanitized, Span, StyledLine, width, wrap::wrap},
    transcript::Transcript,
    tui::{
        app::{Answer, Keymap, Overlay, Scene, keymap::KeyContext},
        editor::draft::Draft,
        spoken,
        terminal::surface::Links,
    },
};

/// A page that is scrolled and closed.
pub struct Page {
    /// It lists the keys.
    pub is_help: bool,
    blocks: Vec<PageBlock>,
    /// For the width of the last drawing.
    rows: Vec<StyledLine>,
    columns: usize,
    /// The first row in view.
    top: usize,
    /// Rows in view as of the last drawing.
    height: usize,
    /// On the page of keys, words that an entry must contain.
    filter: Draft,
}

enum PageBlock {
    /// A paragraph; empty for a blank line.
    Text(Vec<Span>),
    /// Keys or a command, and their description.
    Entry(String, &'static str),
    /// A sign, and a text whose further rows are indented by the sign's width.
    Item(Span, Vec<Span>),
    /// A table of turns and their costs, titles first; columns that there is no room for are left out.
    Costs(Vec<[String; 7]>),
    /// Tokens, the largest number of tokens on the page, and their use.
    Share(u64, u64, Vec<Span>),
}

impl PageBlock {
    const BLANK: Self = Self::Text(Vec::new());

    fn line(text: &str, role: Role) -> Self {
        Self::Text(vec![Span::new(Sanitized::line(text), role)])
    }

    fn heading(text: &'static str) -> Self {
        Self::Text(vec![Span::new(Sanitized::literal(text), Role::Strong).bold()])
    }

    fn lay_out(&self, columns: usize) -> Vec<StyledLine> {
        match self {
            Self::Text(spans) => wrap(spans, columns, &[], &[]),
            Self::Entry(keys, about) => entry(keys, about, columns),
            Self::Item(sign, text) => {
                let indent = space(width::width(sign.text.as_str()));
                wrap(text, columns, std::slice::from_ref(sign), &[indent])
            }
            Self::Costs(lines) => costs(lines, columns),
            Self::Share(tokens, most, text) => share(*tokens, *most, text, columns),
        }
    }
}

/// Columns of the keys, where there is room beside them.
const KEYS: usize = 26;

impl Page {
    fn of(blocks: Vec<PageBlock>) -> Self {
        Self {
            is_help: false,
            blocks,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            height: 1,
            filter: Draft::default(),
        }
    }

    /// The rows for the width. With a filter, the title with it, and the entries that contain all its words.
    fn lay_out(&self, columns: usize) -> Vec<StyledLine> {
        if self.filter.is_empty() {
            return self.blocks.iter().flat_map(|it| it.lay_out(columns)).collect();
        }
        let filter = self.filter.text().to_lowercase();
        let passes = |block: &&PageBlock| match block {
            PageBlock::Entry(keys, about) => {
                let text = format!("{keys} {about}").to_lowercase();
                filter.split_whitespace().all(|it| text.contains(it))
            }
            _ => false,
        };
        let mut rows: Vec<StyledLine> = title(t!("page-keys"), &format!("› {filter}")).lay_out(columns);
        rows.push(StyledLine::blank());
        let heads = rows.len();
        rows.extend(self.blocks.iter().filter(passes).flat_map(|it| it.lay_out(columns)));
        if rows.len() == heads {
            rows.extend(PageBlock::line(t!("list-nothing"), Role::Dim).lay_out(columns));
        }
        rows
    }

    /// Gives a key to the filter of the page of keys. Returns true if it took it.
    fn filter_key(&mut self, event: KeyEvent) -> bool {
        let is_scroll = event.code == KeyCode::Char(' ') && self.filter.is_empty();
        let commands = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER;
        let is_text =
            matches!(event.code, KeyCode::Char(_) | KeyCode::Backspace) && !event.modifiers.intersects(commands);
        if !self.is_help || is_scroll || !is_text || event.code == KeyCode::Char('?') {
            return false;
        }
        self.filter.edit(event);
        (self.columns, self.top) = (0, 0);
        true
    }

    /// All keys and commands, from the tables that run them.
    pub fn keys(keymap: &Keymap, is_developer: bool) -> Self {
        let mut rows = vec![title(t!("page-keys"), "")];
        for (place, title) in [
            (KeyContext::Everywhere, t!("page-everywhere")),
            (KeyContext::Composer, t!("page-in-composer")),
            (KeyContext::Transcript, t!("page-in-transcript")),
            (KeyContext::Plan, t!("page-on-plan")),
        ] {
            rows.push(PageBlock::BLANK);
            rows.push(PageBlock::heading(title));
            for action in keymap.actions.iter().filter(|it| is_developer || it.name != "panic") {
                let keys = keymap.keys(place, action.name);
                if keys.is_empty() {
                    continue;
                }
                let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
                rows.push(PageBlock::Entry(keys.join(" "), action.about()));
            }
        }
        rows.push(PageBlock::BLANK);
        rows.push(PageBlock::heading(t!("page-in-text")));
        let writing: [(&[&str], &'static str); 13] = [
            (&["ctrl+/"], t!("page-text-undo")),
            (&["alt+/"], t!("page-text-redo")),
            (&["ctrl+b", "f", "p", "n"], t!("page-text-move")),
            (&["ctrl+←", "→", "alt+b", "f"], t!("page-text-word")),
            (&["ctrl+a", "e", "home", "end"], t!("page-text-line")),
            (&["shift+←", "→", "home", "end"], t!("page-text-select")),
            (&["alt+s"], t!("page-text-all")),
            (&["ctrl+h", "d"], t!("page-text-delete")),
            (&["ctrl+w", "alt+backspace"], t!("page-text-cut-before")),
            (&["alt+d"], t!("page-text-cut-after")),
            (&["ctrl+u", "k"], t!("page-text-cut-line")),
            (&["ctrl+t"], t!("page-text-transpose")),
            (&["ctrl+y"], t!("page-text-yank")),
        ];
        for (keys, about) in writing {
            rows.push(PageBlock::Entry(keys.join(" "), about));
        }
        let question = [
            ("1 2 3 ↑ ↓", t!("page-question-choose")),
            ("space", t!("page-question-check")),
            ("enter", t!("page-question-send")),
            ("shift+tab", t!("page-question-previous")),
            ("a b c", t!("page-question-other")),
            ("esc", t!("page-question-later")),
            ("alt+y alt+a alt+n", t!("page-question-approval")),
            ("y n N", t!("page-question-decide")),
            ("a A", t!("page-question-mark")),
        ];
        let review = [
            ("a A", t!("page-review-accept")),
            ("r", t!("page-review-reject")),
            ("e", t!("page-review-edit")),
            ("c", t!("page-review-comment")),
            ("C", t!("page-review-commit")),
            ("j k", t!("page-review-step")),
            ("J K", t!("page-review-file")),
            ("↑ ↓ ← →", t!("page-review-scroll")),
            ("u", t!("page-review-sides")),
            ("+ -", t!("page-review-context")),
            ("s", t!("page-review-scope")),
        ];
        for (title, keys) in [
            (t!("page-on-question"), &question[..]),
            (t!("page-in-review"), &review[..]),
        ] {
            rows.push(PageBlock::BLANK);
            rows.push(PageBlock::heading(title));
            let entry = |(keys, about): &(&str, &'static str)| PageBlock::Entry((*keys).to_owned(), about);
            rows.extend(keys.iter().map(entry));
        }
        rows.push(PageBlock::BLANK);
        rows.push(PageBlock::heading(t!("page-commands")));
        for action in keymap
            .actions
            .iter()
            .filter(|it| !it.slash.is_empty() && (is_developer || it.name != "panic"))
        {
            rows.push(PageBlock::Entry(format!("/{}", action.slash), action.about()));
        }
        Self {
            is_help: true,
            ..Self::of(rows)
        }
    }

    /// Problems of the settings, each with its hint.
    pub fn problems(problems: &[String]) -> Self {
        let mut parts = vec![title(t!("page-settings"), "")];
        for problem in problems {
            parts.push(PageBlock::BLANK);
            parts.extend(problem.lines().map(|it| PageBlock::line(it, Role::Waiting)));
        }
        Self::of(parts)
    }

    /// A text that was pasted.
    pub fn pasted(text: &str) -> Self {
        let mut parts = vec![title(t!("page-pasted"), "")];
        parts.push(PageBlock::BLANK);
        parts.extend(text.lines().map(|it| PageBlock::line(it, Role::Text)));
        Self::of(parts)
    }

    /// The parts of the model's context, and their shares of the window.
    pub fn context(parts: &[ContextPart], window: Option<u64>) -> Self {
        // The last part is the sum of the others.
        let total = parts.last().map_or(0, |it| it.tokens);
        let total = figure::tokens(total);
        let facts = match window.map(figure::tokens) {
            Some(of) => t!("page-context-about-of", count = total.as_str(), of = of.as_str()),
            None => t!("page-context-about", count = total.as_str()),
        };
        let mut rows = vec![title(t!("page-context"), &facts)];
        rows.push(PageBlock::BLANK);
        let most = parts.iter().map(|it| it.tokens).max().unwrap_or(1).max(1);
        let spans = |part: &ContextPart| {
            let notes: Vec<_> = part.notes.iter().map(note).collect();
            let notes = Sanitized::line(&format!("   {}", notes.join("; ")));
            vec![
                Span::new(Sanitized::line(&name(&part.name)), Role::Text),
                Span::new(notes, Role::Dim),
            ]
        };
        let (unsent, sent): (Vec<_>, Vec<_>) = parts.iter().partition(|it| is_unsent(it));
        rows.extend(sent.iter().map(|it| PageBlock::Share(it.tokens, most, spans(it))));
        if !unsent.is_empty() {
            rows.push(PageBlock::BLANK);
            rows.push(PageBlock::heading(t!("context-unsent")));
            rows.extend(unsent.iter().map(|it| PageBlock::Item(space(2), spans(it))));
        }
        Self::of(rows)
    }

    /// Tokens in, out and cached, time and known cost of each turn.
    pub fn cost(transcript: &Transcript) -> Self {
        let (_, total) = transcript.usage();
        let sum = transcript.cost().map_or_else(
            || t!("page-cost-unknown").to_owned(),
            |it| figure::money(it).to_string(),
        );
        let facts = t!(
            "page-cost-facts",
            sum = sum,
            sent = figure::tokens(total.prompt_tokens).as_str(),
            made = figure::tokens(total.completion_tokens).as_str(),
        );
        let mut rows = vec![title(t!("page-cost"), &facts)];
        rows.push(PageBlock::BLANK);
        let titles = [
            t!("page-cost-turn"),
            t!("page-cost-in"),
            t!("page-cost-cached"),
            t!("page-cost-out"),
            t!("page-cost-time"),
            t!("page-cost-cost"),
            t!("page-cost-model"),
        ];
        let mut lines = vec![titles.map(str::to_owned)];
        for it in transcript.exchanges.iter().filter(|it| it.turn.0 > 0) {
            let response = &it.response;
            let extra = |name: &str| response.extra_usage.get(name);
            let count = |tokens: u64| match tokens {
                0 => "·".to_owned(),
                it => figure::tokens(it).to_string(),
            };
            let cached = extra("cachedTokens").and_then(Value::as_u64).unwrap_or_default();
            let cost = extra("costUsd").and_then(Value::as_f64);
            lines.push([
                it.turn.0.to_string(),
                count(response.usage.prompt_tokens),
                count(cached),
                count(response.usage.completion_tokens),
                figure::duration(it.last_ms.saturating_sub(it.at_ms)).to_string(),
                cost.map_or_else(|| "·".to_owned(), |it| figure::money(it).to_string()),
                response.model.clone().unwrap_or_default(),
            ]);
        }
        rows.push(PageBlock::Costs(lines));
        Self::of(rows)
    }

    /// The layers of the sandbox.
    pub fn sandbox(sandbox: &Sandbox) -> Self {
        let mut rows = vec![title(t!("page-sandbox"), "")];
        rows.push(PageBlock::BLANK);
        for wall in &sandbox.layers {
            let (sign, role) = if wall.is_active {
                ("✓ ", Role::Done)
            } else {
                ("✗ ", Role::Waiting)
            };
            let mut spans = vec![
                Span::new(Sanitized::line(wall_name(&wall.name)), Role::Strong),
                Span::new(Sanitized::line(&format!("  {}", wall_about(wall))), Role::Text),
            ];
            if !wall.remedy.is_empty() {
                spans.push(Span::new(Sanitized::line(&format!("  → {}", wall.remedy)), Role::Dim));
            }
            rows.push(PageBlock::Item(Span::new(Sanitized::literal(sign), role), spans));
        }
        for note in &sandbox.notes {
            rows.push(PageBlock::BLANK);
            let note = match note {
                SandboxNote::NotSaved(why) => t!("wall-note-here-only", why = why.as_str()),
                SandboxNote::GuardTripped => t!("wall-note-halted").to_owned(),
                SandboxNote::GuardOn => [
                    t!("wall-note-guarded"),
                    t!("wall-note-guarded-files"),
                    t!("wall-note-guarded-meanwhile"),
                    t!("wall-note-guarded-lost"),
                    t!("wall-note-guarded-after"),
                    t!("wall-note-guarded-off"),
                ]
                .join(" "),
                SandboxNote::GuardOff => [t!("wall-note-strict"), t!("wall-note-strict-off")].join(" "),
                SandboxNote::GuardNotNeeded => t!("wall-note-needless").to_owned(),
            };
            rows.push(PageBlock::line(&note, Role::Text));
        }
        Self::of(rows)
    }

    /// The server that answers, and what it and the conversation cost so far: label and text. `limits` stand below.
    pub fn status(name: &'static str, facts: &[(&'static str, String)], limits: &[RateLimit], note: &str) -> Self {
        let mut rows = vec![title(name, ""), PageBlock::BLANK];
        let wide = facts.iter().map(|it| width::width(it.0)).max().unwrap_or_default() + 2;
        for (label, text) in facts {
            let label = Span::new(Sanitized::new(&width::pad(label, wide)), Role::Dim);
            rows.push(PageBlock::Item(
                label,
                vec![Span::new(Sanitized::line(text), Role::Text)],
            ));
        }
        rows.extend([PageBlock::BLANK, PageBlock::heading(t!("status-limits"))]);
        let scope = |it: &RateLimit| match it.scope.as_str() {
            "" => t!("status-limit-all").to_owned(),
            scope => scope.to_owned(),
        };
        let number = |text: &str| text.parse().map_or_else(|_| text.to_owned(), figure::grouped);
        let text = |it: &RateLimit| match (number(&it.remaining).as_str(), number(&it.limit).as_str()) {
            ("", limit) => t!("status-limit", limit = limit),
            (left, "") => t!("status-limit-left", left = left),
            (left, limit) => t!("status-limit-left-of", left = left, limit = limit),
        };
        let widest = |of: &dyn Fn(&RateLimit) -> String| limits.iter().map(|it| width::width(&of(it))).max();
        let [scopes, texts] = [widest(&scope), widest(&text)].map(Option::unwrap_or_default);
        for it in limits {
            let reset = match it.reset.as_str() {
                "" => String::new(),
                reset => format!("   {}", t!("status-limit-reset", reset = reset)),
            };
            let label = width::pad(&Sanitized::line(&scope(it)), scopes + 2);
            let text = width::pad(&Sanitized::line(&text(it)), texts);
            rows.push(PageBlock::Item(
                Span::new(Sanitized::new(&label), Role::Dim),
                vec![Span::new(
                    Sanitized::line(format!("{text}{reset}").trim_end()),
                    Role::Text,
                )],
            ));
        }
        rows.push(PageBlock::line(note, Role::Dim));
        Self::of(rows)
    }

    /// Skills or hooks: `about` stands below the title, `none` where there is nothing to list.
    pub fn extensions(name: &'static str, about: &'static str, none: &'static str, entries: &[ExtensionEntry]) -> Self {
        let each: u64 = entries.iter().filter_map(|it| Some(it.tokens?.0)).sum();
        let facts = match each {
            0 => String::new(),
            each => t!("extensions-cost", count = figure::tokens(each).as_str()),
        };
        let mut rows = vec![title(name, &facts), PageBlock::line(about, Role::Dim), PageBlock::BLANK];
        if entries.is_empty() {
            rows.push(PageBlock::line(none, Role::Text));
        }
        for entry in entries {
            rows.push(extension(entry));
        }
        Self::of(rows)
    }

    fn scroll(&mut self, by: isize) {
        self.top = self
            .top
            .saturating_add_signed(by)
            .min(self.rows.len().saturating_sub(self.height));
    }
}

impl Overlay for Page {
    fn key(&mut self, event: KeyEvent, _: &Scene<'_>) -> Answer {
        if self.filter_key(event) {
            return Answer::Taken;
        }
        match event.code {
            KeyCode::Esc if !self.filter.is_empty() => {
                self.filter.take_all();
                (self.columns, self.top) = (0, 0);
            }
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?') | KeyCode::F(1) => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::PageUp => self.scroll(-(self.height as isize)),
            KeyCode::PageDown | KeyCode::Char(' ') => self.scroll(self.height as isize),
            KeyCode::Home | KeyCode::Char('g') => self.top = 0,
            KeyCode::End | KeyCode::Char('G') => self.scroll(isize::MAX / 2),
            _ => {}
        }
        Answer::Taken
    }

    fn wheel(&mut self, by: isize) {
        self.scroll(by);
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        self.height = usize::from(area.height).max(1);
        let columns = usize::from(area.width);
        if self.columns != columns {
            self.columns = columns;
            self.rows = self.lay_out(columns);
        }
        self.scroll(0);
        frame::lines(area, buf, self.rows.get(self.top..).unwrap_or_default(), scene.theme);
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        let mut hints = vec![("↑↓", t!("footer-lines")), ("space", t!("footer-page"))];
        if self.is_help {
            hints.push((t!("footer-letters"), t!("footer-find")));
        }
        hints.push(("esc", t!("footer-back")));
        hints
    }

    fn spoken(&self, _: &Buffer) -> (Vec<String>, Option<&'static str>) {
        (spoken::lines(&self.rows), None)
    }
}

/// Returns true for what is not in the request.
fn is_unsent(part: &ContextPart) -> bool {
    let is_why = |it: &ContextNote| {
        matches!(
            it,
            ContextNote::NotOffered(_) | ContextNote::NotSent(_) | ContextNote::Untrusted
        )
    };
    part.notes.iter().any(is_why)
}

/// The name of a part of the context; a tag is its own name.
fn name(name: &ContextName) -> String {
    match name {
        ContextName::SystemPrompt => t!("context-system-prompt").to_owned(),
        ContextName::Rule(path) => t!("context-rule", path = path.as_str()),
        ContextName::ServerInstructions => t!("context-servers").to_owned(),
        ContextName::Tools => t!("context-tools").to_owned(),
        ContextName::Tool(name) => t!("context-tool", name = name.as_str()),
        ContextName::Tag(tag) => tag.replace('_', " "),
        ContextName::Messages => t!("context-messages").to_owned(),
        ContextName::Answers => t!("context-answers").to_owned(),
        ContextName::Results => t!("context-results").to_owned(),
        ContextName::Images => t!("context-images").to_owned(),
        ContextName::All => t!("context-all").to_owned(),
    }
}

fn note(note: &ContextNote) -> String {
    match note {
        ContextNote::UserAddition => t!("context-appended").to_owned(),
        ContextNote::UserReplacements(count) => t!("context-replaced", count = *count),
        ContextNote::Untrusted => t!("context-untrusted").to_owned(),
        ContextNote::DescriptionOnly => t!("context-description").to_owned(),
        ContextNote::NotSent(awaits) => match awaits {
            RuleTrigger::Nothing => t!("context-awaits-nothing"),
            RuleTrigger::Files => t!("context-awaits-files"),
            RuleTrigger::Model => t!("context-awaits-model"),
            RuleTrigger::User => t!("context-awaits-user"),
        }
        .to_owned(),
        ContextNote::ToolCount(count) => t!("context-tool-count", count = *count),
        ContextNote::NotOffered(why) => match why {
            NotOffered::SwitchedOff => t!("context-switched-off"),
            NotOffered::ModelCallsNone => t!("context-calls-none"),
            NotOffered::NoSearchService => t!("context-no-search"),
            NotOffered::NoChecker => t!("context-no-checker"),
            NotOffered::Untrusted => t!("reason-workspace-untrusted"),
            NotOffered::NoServer => t!("context-no-server"),
            NotOffered::NoSkill => t!("context-no-skill"),
            NotOffered::EditStyle => t!("context-edit-style"),
            NotOffered::OtherModels => t!("context-other-models"),
            NotOffered::SmallWindow => t!("context-small-window"),
        }
        .to_owned(),
        ContextNote::Estimate => t!("context-guess").to_owned(),
        ContextNote::Window(tokens) => t!("context-window", count = *tokens),
        ContextNote::CountedByServer(tokens) => t!("context-counted", count = *tokens),
        ContextNote::Unpriced(Some(model)) => t!("context-unpriced", model = model.as_str()),
        ContextNote::Unpriced(None) => t!("context-unpriced-own").to_owned(),
    }
}

/// The name of a sandbox layer; one without a translation keeps its own.
fn wall_name(name: &str) -> &str {
    match name {
        "files" => t!("wall-files"),
        "processes" => t!("wall-processes"),
        "network" => t!("wall-network"),
        "capabilities" => t!("wall-capabilities"),
        "system calls" => t!("wall-system-calls"),
        other => other,
    }
}

/// The effect of a sandbox layer, or the reason why it is missing, in the system's words where it gave some.
fn wall_about(wall: &SandboxLayer) -> String {
    let known = match (wall.mechanism, wall.name.as_str()) {
        (Some(Mechanism::Kernel), "files") => t!("wall-kernel-files"),
        (Some(Mechanism::Kernel), "processes") => t!("wall-kernel-processes"),
        (Some(Mechanism::Kernel), "network") => t!("wall-kernel-network"),
        (Some(Mechanism::Kernel), "capabilities") => t!("wall-kernel-capabilities"),
        (Some(Mechanism::Kernel), "system calls") => t!("wall-kernel-system-calls"),
        (Some(Mechanism::Seatbelt), "files") => t!("wall-seatbelt-files"),
        (Some(Mechanism::Seatbelt), "processes") => t!("wall-seatbelt-processes"),
        (Some(Mechanism::Seatbelt), "network") => t!("wall-seatbelt-network"),
        (Some(Mechanism::Landlock(0)), _) => t!("wall-no-landlock"),
        (Some(Mechanism::Landlock(version @ 1..6)), _) => return t!("wall-landlock-old", version = version),
        (Some(Mechanism::Landlock(version)), _) => return t!("wall-landlock", version = version),
        (Some(Mechanism::Needless), _) => t!("wall-needless"),
        (Some(Mechanism::Kernel | Mechanism::Seatbelt) | None, _) => &wall.about,
    };
    known.to_owned()
}

/// The title of a page, facts about all of it, and the keys that close it.
/// An extension: its name, its state, what it is for and its file.
fn extension(entry: &ExtensionEntry) -> PageBlock {
    let (sign, role, state) = match &entry.state {
        ExtensionState::Active => ("✓ ", Role::Done, String::new()),
        ExtensionState::Loaded => ("● ", Role::Done, t!("extension-loaded").to_owned()),
        ExtensionState::UserOnly => ("✓ ", Role::Done, t!("extension-user-only").to_owned()),
        ExtensionState::ModelOnly => ("✓ ", Role::Done, t!("extension-model-only").to_owned()),
        ExtensionState::Untrusted => ("○ ", Role::Waiting, t!("extension-untrusted").to_owned()),
        ExtensionState::Shadowed(by) => ("○ ", Role::Dim, t!("extension-shadowed", path = by.as_str())),
        ExtensionState::Unsupported => ("! ", Role::Waiting, t!("extension-unsupported").to_owned()),
        ExtensionState::Problem(why) => ("! ", Role::Waiting, why.clone()),
    };
    let mut spans = Vec::new();
    if !entry.name.is_empty() {
        spans.push(Span::new(Sanitized::line(&format!("{}  ", entry.name)), Role::Strong));
    }
    if !state.is_empty() {
        spans.push(Span::new(Sanitized::line(&format!("{state}  ")), role));
    }
    if !entry.about.is_empty() {
        spans.push(Span::new(Sanitized::line(&format!("{}  ", entry.about)), Role::Text));
    }
    let mut facts = entry.path.clone();
    if let Some((each, used)) = entry.tokens {
        let cost = t!(
            "extension-tokens",
            each = figure::tokens(each).as_str(),
            used = figure::tokens(used).as_str()
        );
        facts = format!("{facts}  {cost}");
    }
    spans.push(Span::new(Sanitized::line(&facts), Role::Dim));
    PageBlock::Item(Span::new(Sanitized::literal(sign), role), spans)
}

fn title(title: &'static str, facts: &str) -> PageBlock {
    let mut spans = vec![Span::new(Sanitized::literal(title), Role::Strong).bold()];
    if !facts.is_empty() {
        spans.push(Span::new(Sanitized::line(&format!("   {facts}")), Role::Text));
    }
    spans.push(Span::new(
        Sanitized::new(&format!("   {}", t!("page-leave"))),
        Role::Dim,
    ));
    PageBlock::Text(spans)
}

fn space(columns: usize) -> Span {
    Span::new(Sanitized::new(&" ".repeat(columns)), Role::Text)
}

/// The lines of a table, without the columns that there is no room for.
fn costs(lines: &[[String; 7]], columns: usize) -> Vec<StyledLine> {
    const WIDE: [usize; 6] = [5, 9, 9, 9, 10, 10];
    /// Columns in the order in which they are left out: cached, model, time, cost.
    const LESS: [usize; 4] = [2, 6, 4, 5];
    let model = lines.iter().map(|it| width::width(&it[6])).max().unwrap_or(0);
    let mut wide = [0; 7];
    wide[..6].copy_from_slice(&WIDE);
    wide[6] = 2 + model;
    // A column without any figure goes first.
    let is_unknown = |at: &usize| lines.iter().skip(1).all(|it| it[*at] == "·");
    let (unknown, known): (Vec<_>, Vec<_>) = LESS.into_iter().partition(is_unknown);
    for at in unknown.into_iter().chain(known) {
        if wide.iter().sum::<usize>() > columns {
            wide[at] = 0;
        }
    }
    let line = |(n, cells): (usize, &[String; 7])| {
        let figures: String = (0..6)
            .filter(|at| wide[*at] > 0)
            .map(|at| width::pad_start(&cells[at], wide[at]))
            .collect();
        let role = if n == 0 { Role::Dim } else { Role::Text };
        let mut spans = vec![Span::new(Sanitized::line(&figures), role)];
        if wide[6] > 0 {
            let role = if n == 0 { Role::Dim } else { Role::Faint };
            spans.push(Span::new(Sanitized::line(&format!("  {}", cells[6])), role));
        }
        StyledLine::of(spans)
    };
    lines.iter().enumerate().map(line).collect()
}

/// A figure and a bar, and beside them their use.
fn share(tokens: u64, most: u64, text: &[Span], columns: usize) -> Vec<StyledLine> {
    let long = if columns >= 60 { 12 } else { 4 };
    let cells = usize::try_from((tokens * long).div_ceil(most)).unwrap_or_default();
    let long = usize::try_from(long).unwrap_or_default();
    let bar = format!("{}{}", "▰".repeat(cells), "▱".repeat(long - cells.min(long)));
    let head = [
        Span::new(
            Sanitized::line(&width::pad_start(figure::tokens(tokens).as_ref(), 7)),
            Role::Text,
        ),
        space(2),
        Span::new(Sanitized::new(&bar), Role::Accent),
        space(2),
    ];
    wrap(text, columns, &head, &[space(11 + long)])
}

/// Keys and, beside them, their description; below them where the screen is narrow or the keys are many.
fn entry(keys: &str, about: &'static str, columns: usize) -> Vec<StyledLine> {
    let beside = if columns >= 2 * KEYS { KEYS } else { 4 };
    let about = [Span::new(Sanitized::new(about), Role::Text)];
    let name = Span::new(Sanitized::new(keys), Role::Accent);
    let used = width::width(keys);
    if used + 2 <= beside {
        return wrap(&about, columns, &[name, space(beside - used)], &[space(beside)]);
    }
    let mut rows = wrap(&[name], columns, &[], &[]);
    rows.extend(wrap(&about, columns, &[space(beside)], &[space(beside)]));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_filter_the_page_of_keys_and_esc_shows_all_again() {
        let mut page = Page::keys(&Keymap::built_in(crate::tui::actions::ACTIONS), false);
        let shown = |page: &mut Page| Scene::drawn(page, &Transcript::default(), 80, 400).join("\n");
        let press = |page: &mut Page, code| {
            let event = KeyEvent::new(code, KeyModifiers::NONE);
            Scene::test(&Transcript::default(), |scene| page.key(event, scene))
        };
        let all = shown(&mut page);
        for letter in "quit j".chars() {
            assert!(matches!(press(&mut page, KeyCode::Char(letter)), Answer::Taken));
        }
        assert!(shown(&mut page).contains(t!("list-nothing")));
        press(&mut page, KeyCode::Backspace);
        let few = shown(&mut page);
        assert!(
            few.contains("› quit") && few.contains("/quit") && !few.contains("/theme"),
            "{few}"
        );
        assert!(matches!(press(&mut page, KeyCode::Esc), Answer::Taken));
        assert_eq!(shown(&mut page), all);
        assert!(matches!(press(&mut page, KeyCode::Esc), Answer::Close));
    }

    #[test]
    fn nothing_of_the_keys_is_cut_at_any_width() {
        let all = |columns| {
            let mut page = Page::keys(&Keymap::built_in(crate::tui::actions::ACTIONS), false);
            let rows = Scene::drawn(&mut page, &Transcript::default(), columns, 600);
            assert!(
                rows.iter().all(|it| width::width(it) <= usize::from(columns)),
                "{columns}: {rows:#?}"
            );
            rows.join(" ").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let wide = all(300);
        assert!(wide.windows(2).any(|it| it == ["shift+enter", "insert"]), "{wide:?}");
        for columns in [60, 80, 120] {
            assert_eq!(all(columns), wide, "{columns}");
        }
        assert_eq!(all(30), wide);
    }

    /// `docs/keys.md`, from the tables that make the page. `SHEAF_UPDATE_DOCS=1` writes it.
    #[test]
    fn the_page_of_keys_in_the_docs_is_up_to_date() {
        use std::fmt::Write as _;

        let mut text = "# Keys and commands\n\n\
            <!-- Generated from the keymap by `SHEAF_UPDATE_DOCS=1 cargo test --lib page_of_keys`; do not edit. -->\n\n\
            F1 shows this page, F3 searches all commands, and the footer shows the keys that matter now. Change keys in\n\
            `keymap.toml` beside your settings; `sheaf config keymap` prints the default, and `sheaf doctor` shows which keys\n\
            your terminal sends.\n"
            .to_owned();
        let page = Page::keys(&Keymap::built_in(crate::tui::actions::ACTIONS), false);
        let mut is_table = false;
        for block in page.blocks.iter().skip(1) {
            match block {
                PageBlock::Text(spans) if !spans.is_empty() => {
                    let heading: String = spans.iter().map(|it| it.text.as_str()).collect();
                    let _ = write!(text, "\n## {heading}\n\n| key | action |\n| --- | --- |\n");
                    is_table = true;
                }
                PageBlock::Entry(keys, about) if is_table => {
                    let keys: Vec<String> = keys.split(' ').map(|it| format!("`{it}`")).collect();
                    let _ = writeln!(text, "| {} | {} |", keys.join(" "), about.replace('|', "\\|"));
                }
                _ => {}
            }
        }
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/keys.md");
        if std::env::var_os("SHEAF_UPDATE_DOCS").is_some() {
            std::fs::write(path, &text).expect("the docs can be written");
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert_eq!(written, text, "SHEAF_UPDATE_DOCS=1 writes docs/keys.md");
    }

    #[test]
    fn what_a_part_costs_stands_beside_its_figure_at_any_width() {
        let part = |name, tokens, notes: &[ContextNote]| ContextPart {
            name,
            tokens,
            notes: notes.to_vec(),
        };
        let missing = ContextNote::NotOffered(NotOffered::NoSearchService);
        let parts = [
            part(ContextName::Tool("web_search".to_owned()), 0, &[missing]),
            part(ContextName::Results, 1500, &[]),
            part(ContextName::All, 3000, &[]),
        ];
        let rows = |columns| -> Vec<String> {
            let mut page = Page::context(&parts, None);
            let mut rows = Scene::drawn(&mut page, &Transcript::default(), columns, 12);
            rows.truncate(rows.iter().rposition(|it| !it.is_empty()).map_or(0, |it| it + 1));
            // Behind the title.
            rows.into_iter().skip_while(|it| !it.is_empty()).skip(1).collect()
        };
        assert_eq!(
            rows(80),
            [
                "   1.5k  ▰▰▰▰▰▰▱▱▱▱▱▱  tool results",
                "     3k  ▰▰▰▰▰▰▰▰▰▰▰▰  total",
                "",
                "Not sent",
                "  tool web_search   no search service configured: set web.search.kind",
            ]
        );
        assert_eq!(
            rows(37),
            [
                "   1.5k  ▰▰▱▱  tool results",
                "     3k  ▰▰▰▰  total",
                "",
                "Not sent",
                "  tool web_search   no search service",
                "  configured: set web.search.kind",
            ]
        );
    }
}
