//! A page to read over the conversation: keys and commands.

use crossterm::event::{KeyCode, KeyEvent};
use serde_json::Value;

use super::Answer;
use crate::{
    locale::figure,
    protocol::{
        Awaits, ContextName, ContextNote, ContextPart, Means, NotOffered, Permissions, Sandbox, SandboxNote, Wall,
    },
    say,
    text::{Clean, Role, Row, Span, width, wrap::wrap},
    transcript::Transcript,
    tui::{
        action::ACTIONS,
        keymap::{Keymap, Place},
    },
};

pub struct Page {
    parts: Vec<Part>,
    /// For the width of the last layout.
    pub rows: Vec<Row>,
    columns: usize,
    pub top: usize,
    /// Rows in view as of the last paint.
    pub height: usize,
}

enum Part {
    Row(Row),
    /// What is said of keys or of a command.
    Entry(String, &'static str),
    /// A sign, and a text whose further rows stand below its first.
    Hung(Span, Vec<Span>),
    /// Turns and what they cost, under a line of titles; where there is little room some columns go.
    Costs(Vec<[String; 7]>),
    /// Tokens, their share of the most there are, and what they are for.
    Share(u64, u64, Vec<Span>),
}

/// Columns of the keys, where there is room beside them.
const KEYS: usize = 26;

impl Page {
    /// Every key and command, from the tables that run them.
    pub fn keys(keymap: &Keymap, is_developer: bool) -> Self {
        let mut rows = vec![title(say!("page-keys"), "")];
        for (place, title) in [
            (Place::Everywhere, say!("page-everywhere")),
            (Place::Composer, say!("page-in-composer")),
            (Place::Transcript, say!("page-in-transcript")),
            (Place::Plan, say!("page-on-plan")),
        ] {
            rows.push(Part::Row(Row::blank()));
            rows.push(Part::Row(Row::of(vec![
                Span::new(Clean::literal(title), Role::Strong).bold(),
            ])));
            for action in ACTIONS.iter().filter(|it| is_developer || it.name != "panic") {
                let keys = keymap.keys(place, action.name);
                if keys.is_empty() {
                    continue;
                }
                let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
                rows.push(Part::Entry(keys.join(" "), action.about()));
            }
        }
        rows.push(Part::Row(Row::blank()));
        rows.push(Part::Row(Row::of(vec![
            Span::new(Clean::literal(say!("page-in-text")), Role::Strong).bold(),
        ])));
        let writing: [(&[&str], &'static str); 9] = [
            (&["ctrl+/"], say!("page-text-undo")),
            (&["alt+/"], say!("page-text-redo")),
            (&["ctrl+←", "→", "alt+b", "f"], say!("page-text-word")),
            (&["ctrl+a", "home", "end"], say!("page-text-line")),
            (&["shift+←", "→", "home", "end"], say!("page-text-select")),
            (&["alt+a"], say!("page-text-all")),
            (&["ctrl+w", "alt+backspace"], say!("page-text-cut-before")),
            (&["alt+d", "alt+k"], say!("page-text-cut-after")),
            (&["ctrl+y"], say!("page-text-yank")),
        ];
        for (keys, about) in writing {
            rows.push(Part::Entry(keys.join(" "), about));
        }
        let question = [
            ("1 2 3", say!("page-question-choose")),
            ("enter", say!("page-question-send")),
            ("o", say!("page-question-other")),
            ("s", say!("page-question-skip")),
            ("y a A n", say!("page-question-approval")),
        ];
        let review = [
            ("a", say!("page-review-accept")),
            ("r", say!("page-review-reject")),
            ("e", say!("page-review-edit")),
            ("c", say!("page-review-comment")),
            ("j k", say!("page-review-step")),
            ("J K", say!("page-review-file")),
            ("↑ ↓ ← →", say!("page-review-scroll")),
            ("u", say!("page-review-sides")),
            ("s", say!("page-review-scope")),
        ];
        for (title, keys) in [
            (say!("page-on-question"), &question[..]),
            (say!("page-in-review"), &review[..]),
        ] {
            rows.push(Part::Row(Row::blank()));
            rows.push(Part::Row(Row::of(vec![
                Span::new(Clean::literal(title), Role::Strong).bold(),
            ])));
            let entry = |(keys, about): &(&str, &'static str)| Part::Entry((*keys).to_owned(), about);
            rows.extend(keys.iter().map(entry));
        }
        rows.push(Part::Row(Row::blank()));
        rows.push(Part::Row(Row::of(vec![
            Span::new(Clean::literal(say!("page-commands")), Role::Strong).bold(),
        ])));
        for action in ACTIONS
            .iter()
            .filter(|it| !it.slash.is_empty() && (is_developer || it.name != "panic"))
        {
            rows.push(Part::Entry(format!("/{}", action.slash), action.about()));
        }
        Self {
            parts: rows,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            height: 1,
        }
    }

    /// What is wrong with the settings, each with its hint.
    pub fn problems(problems: &[String]) -> Self {
        let mut parts = vec![title(say!("page-settings"), "")];
        for problem in problems {
            parts.push(Part::Row(Row::blank()));
            let lines = problem
                .lines()
                .map(|it| Row::of(vec![Span::new(Clean::line(it), Role::Waiting)]));
            parts.extend(lines.map(Part::Row));
        }
        Self {
            parts,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            height: 1,
        }
    }

    /// A text that was pasted.
    pub fn pasted(text: &str) -> Self {
        let mut parts = vec![title(say!("page-pasted"), "")];
        parts.push(Part::Row(Row::blank()));
        let lines = text
            .lines()
            .map(|it| Row::of(vec![Span::new(Clean::line(it), Role::Text)]));
        parts.extend(lines.map(Part::Row));
        Self {
            parts,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            height: 1,
        }
    }

    /// What the model is told, part by part, and how much of the window it takes.
    pub fn context(parts: &[ContextPart], window: Option<u64>) -> Self {
        // The last part is the sum of the others.
        let total = parts.last().map_or(0, |it| it.tokens);
        let total = figure::tokens(total);
        let facts = match window.map(figure::tokens) {
            Some(of) => say!("page-context-about-of", count = total.as_str(), of = of.as_str()),
            None => say!("page-context-about", count = total.as_str()),
        };
        let mut rows = vec![title(say!("page-context"), &facts)];
        rows.push(Part::Row(Row::blank()));
        let most = parts.iter().map(|it| it.tokens).max().unwrap_or(1).max(1);
        for part in parts {
            let mut spans = vec![Span::new(Clean::line(&name(&part.name)), Role::Text)];
            if !part.notes.is_empty() {
                let notes: Vec<_> = part.notes.iter().map(note).collect();
                spans.push(Span::new(Clean::line(&format!("   {}", notes.join("; "))), Role::Dim));
            }
            rows.push(Part::Share(part.tokens, most, spans));
        }
        Self {
            parts: rows,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            height: 1,
        }
    }

    /// What each turn took: tokens in and out, from the cache, time, dollars where they are known.
    pub fn cost(transcript: &Transcript) -> Self {
        let (_, total) = transcript.usage();
        let sum = transcript.cost().map_or_else(
            || say!("page-cost-unknown").to_owned(),
            |it| figure::money(it).to_string(),
        );
        let facts = say!(
            "page-cost-facts",
            sum = sum,
            sent = figure::tokens(total.prompt_tokens).as_str(),
            made = figure::tokens(total.completion_tokens).as_str(),
        );
        let mut rows = vec![title(say!("page-cost"), &facts)];
        rows.push(Part::Row(Row::blank()));
        let titles = [
            say!("page-cost-turn"),
            say!("page-cost-in"),
            say!("page-cost-cached"),
            say!("page-cost-out"),
            say!("page-cost-time"),
            say!("page-cost-cost"),
            say!("page-cost-model"),
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
        rows.push(Part::Costs(lines));
        Self {
            parts: rows,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            height: 1,
        }
    }

    /// What holds commands, wall by wall.
    pub fn sandbox(sandbox: &Sandbox) -> Self {
        let mut rows = vec![title(say!("page-sandbox"), "")];
        rows.push(Part::Row(Row::blank()));
        for wall in &sandbox.walls {
            let (sign, role) = if wall.holds {
                ("✓ ", Role::Done)
            } else {
                ("✗ ", Role::Waiting)
            };
            let mut spans = vec![
                Span::new(Clean::line(wall_name(&wall.name)), Role::Strong),
                Span::new(Clean::line(&format!("  {}", wall_about(wall))), Role::Text),
            ];
            if !wall.remedy.is_empty() {
                spans.push(Span::new(Clean::line(&format!("  → {}", wall.remedy)), Role::Dim));
            }
            rows.push(Part::Hung(Span::new(Clean::literal(sign), role), spans));
        }
        for note in &sandbox.notes {
            rows.push(Part::Row(Row::blank()));
            let note = match note {
                SandboxNote::HereOnly(why) => say!("wall-note-here-only", why = why.as_str()),
                SandboxNote::Halted => say!("wall-note-halted").to_owned(),
                SandboxNote::Guarded => say!("wall-note-guarded").to_owned(),
                SandboxNote::Strict => say!("wall-note-strict").to_owned(),
                SandboxNote::Needless => say!("wall-note-needless").to_owned(),
            };
            rows.push(Part::Row(Row::of(vec![Span::new(Clean::line(&note), Role::Text)])));
        }
        Self {
            parts: rows,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            height: 1,
        }
    }

    /// What runs without a question, and what does not.
    pub fn permissions(permissions: &Permissions) -> Self {
        let run = match permissions.run.as_str() {
            "ask" => say!("permissions-run-ask"),
            "list" => say!("permissions-run-list"),
            "force" => say!("permissions-run-force"),
            _ => say!("permissions-run-sandbox"),
        };
        let line = |text: &str, role| Part::Row(Row::of(vec![Span::new(Clean::line(text), role)]));
        let mut rows = vec![title(say!("page-permissions"), "")];
        rows.extend([Part::Row(Row::blank()), line(run, Role::Text)]);
        if permissions.is_doubtful {
            rows.push(line(say!("permissions-doubtful"), Role::Waiting));
        }
        // In the order in which they are looked at: what forbids wins.
        for (name, rules, sign, role) in [
            (say!("permissions-deny"), &permissions.deny, "✗ ", Role::Error),
            (say!("permissions-ask"), &permissions.ask, "? ", Role::Waiting),
            (say!("permissions-allow"), &permissions.allow, "✓ ", Role::Done),
            (say!("permissions-session"), &permissions.session, "✓ ", Role::Done),
        ] {
            rows.extend([Part::Row(Row::blank()), line(name, Role::Strong)]);
            if rules.is_empty() {
                rows.push(line(say!("permissions-none"), Role::Dim));
            }
            for rule in rules {
                let rule = vec![Span::new(Clean::line(rule), Role::Text)];
                rows.push(Part::Hung(Span::new(Clean::literal(sign), role), rule));
            }
        }
        rows.extend([Part::Row(Row::blank()), line(say!("permissions-where"), Role::Dim)]);
        Self {
            parts: rows,
            rows: Vec::new(),
            columns: 0,
            top: 0,
            height: 1,
        }
    }

    /// Makes the rows for so many columns and so much height.
    pub fn lay_out(&mut self, columns: usize, height: usize) {
        self.height = height.max(1);
        if self.columns != columns {
            self.columns = columns;
            self.rows.clear();
            for part in &self.parts {
                match part {
                    Part::Row(row) => self.rows.extend(wrap(&row.spans, columns, &[], &[])),
                    Part::Entry(keys, about) => self.rows.extend(entry(keys, about, columns)),
                    Part::Hung(sign, text) => {
                        let below = space(width::width(sign.text.as_str()));
                        self.rows
                            .extend(wrap(text, columns, std::slice::from_ref(sign), &[below]));
                    }
                    Part::Costs(lines) => self.rows.extend(costs(lines, columns)),
                    Part::Share(tokens, most, text) => self.rows.extend(share(*tokens, *most, text, columns)),
                }
            }
        }
        self.scroll(0);
    }

    pub fn key(&mut self, event: KeyEvent) -> Answer {
        match event.code {
            KeyCode::Esc | KeyCode::Enter | KeyCode::Char('q' | '?') | KeyCode::F(1) => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(crossterm::event::KeyModifiers::CONTROL) => {
                return Answer::Close;
            }
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

    pub fn scroll(&mut self, by: isize) {
        self.top = self
            .top
            .saturating_add_signed(by)
            .min(self.rows.len().saturating_sub(self.height));
    }
}

/// What the page is called, what there is to say of all of it, and how to leave.
/// What a part of the context is called; what stands between tags is called as they are.
fn name(name: &ContextName) -> String {
    match name {
        ContextName::SystemPrompt => say!("context-system-prompt").to_owned(),
        ContextName::Rule(path) => say!("context-rule", path = path.as_str()),
        ContextName::ServerInstructions => say!("context-servers").to_owned(),
        ContextName::Tools => say!("context-tools").to_owned(),
        ContextName::Tool(name) => say!("context-tool", name = name.as_str()),
        ContextName::Tag(tag) => (*tag).to_owned(),
        ContextName::Messages => say!("context-messages").to_owned(),
        ContextName::Answers => say!("context-answers").to_owned(),
        ContextName::Results => say!("context-results").to_owned(),
        ContextName::Images => say!("context-images").to_owned(),
        ContextName::All => say!("context-all").to_owned(),
    }
}

fn note(note: &ContextNote) -> String {
    match note {
        ContextNote::Appended => say!("context-appended").to_owned(),
        ContextNote::Replaced(count) => say!("context-replaced", count = *count),
        ContextNote::Untrusted => say!("context-untrusted").to_owned(),
        ContextNote::Description => say!("context-description").to_owned(),
        ContextNote::NotSent(awaits) => say!(
            "context-not-sent",
            when = match awaits {
                Awaits::Nothing => say!("context-awaits-nothing"),
                Awaits::Files => say!("context-awaits-files"),
                Awaits::Model => say!("context-awaits-model"),
                Awaits::User => say!("context-awaits-user"),
            }
        ),
        ContextNote::ToolCount(count) => say!("context-tool-count", count = *count),
        ContextNote::NotOffered(why) => say!(
            "context-not-offered",
            why = match why {
                NotOffered::SwitchedOff => say!("context-switched-off"),
                NotOffered::ModelCallsNone => say!("context-calls-none"),
                NotOffered::NoSearchService => say!("context-no-search"),
                NotOffered::EditStyle => say!("context-edit-style"),
                NotOffered::OtherModels => say!("context-other-models"),
                NotOffered::SmallWindow => say!("context-small-window"),
            }
        ),
        ContextNote::Guess => say!("context-guess").to_owned(),
        ContextNote::Window(tokens) => say!("context-window", count = *tokens),
        ContextNote::Counted(tokens) => say!("context-counted", count = *tokens),
        ContextNote::Unpriced(Some(model)) => say!("context-unpriced", model = model.as_str()),
        ContextNote::Unpriced(None) => say!("context-unpriced-own").to_owned(),
    }
}

/// What a wall is called; one that has no word here keeps its name.
fn wall_name(name: &str) -> &str {
    match name {
        "files" => say!("wall-files"),
        "processes" => say!("wall-processes"),
        "network" => say!("wall-network"),
        "capabilities" => say!("wall-capabilities"),
        "system calls" => say!("wall-system-calls"),
        other => other,
    }
}

/// What it does, or why it is missing; reasons of the system stay as it gave them.
fn wall_about(wall: &Wall) -> String {
    let known = match (wall.means, wall.name.as_str()) {
        (Some(Means::Kernel), "files") => say!("wall-kernel-files"),
        (Some(Means::Kernel), "processes") => say!("wall-kernel-processes"),
        (Some(Means::Kernel), "network") => say!("wall-kernel-network"),
        (Some(Means::Kernel), "capabilities") => say!("wall-kernel-capabilities"),
        (Some(Means::Kernel), "system calls") => say!("wall-kernel-system-calls"),
        (Some(Means::Seatbelt), "files") => say!("wall-seatbelt-files"),
        (Some(Means::Seatbelt), "processes") => say!("wall-seatbelt-processes"),
        (Some(Means::Seatbelt), "network") => say!("wall-seatbelt-network"),
        (Some(Means::Landlock(0)), _) => say!("wall-no-landlock"),
        (Some(Means::Landlock(version @ 1..6)), _) => return say!("wall-landlock-old", version = version),
        (Some(Means::Landlock(version)), _) => return say!("wall-landlock", version = version),
        (Some(Means::Needless), _) => say!("wall-needless"),
        (Some(Means::Kernel | Means::Seatbelt) | None, _) => &wall.about,
    };
    known.to_owned()
}

fn title(title: &'static str, facts: &str) -> Part {
    let mut spans = vec![Span::new(Clean::literal(title), Role::Strong).bold()];
    if !facts.is_empty() {
        spans.push(Span::new(Clean::line(&format!("   {facts}")), Role::Text));
    }
    spans.push(Span::new(Clean::new(&format!("   {}", say!("page-leave"))), Role::Dim));
    Part::Row(Row::of(spans))
}

fn space(columns: usize) -> Span {
    Span::new(Clean::new(&" ".repeat(columns)), Role::Text)
}

/// The lines of a table, without the columns that there is no room for.
fn costs(lines: &[[String; 7]], columns: usize) -> Vec<Row> {
    const WIDE: [usize; 6] = [5, 9, 9, 9, 10, 10];
    /// What goes first where there is too little room: cached, model, time, cost.
    const LESS: [usize; 4] = [2, 6, 4, 5];
    let model = lines.iter().map(|it| width::width(&it[6])).max().unwrap_or(0);
    let mut wide = [0; 7];
    wide[..6].copy_from_slice(&WIDE);
    wide[6] = 2 + model;
    // What is known of no turn is no loss at all.
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
        let mut spans = vec![Span::new(Clean::line(&figures), role)];
        if wide[6] > 0 {
            let role = if n == 0 { Role::Dim } else { Role::Faint };
            spans.push(Span::new(Clean::line(&format!("  {}", cells[6])), role));
        }
        Row::of(spans)
    };
    lines.iter().enumerate().map(line).collect()
}

/// A figure and a bar on the left, and beside them what they are of.
fn share(tokens: u64, most: u64, text: &[Span], columns: usize) -> Vec<Row> {
    let long = if columns >= 60 { 12 } else { 4 };
    let cells = usize::try_from((tokens * long).div_ceil(most)).unwrap_or_default();
    let long = usize::try_from(long).unwrap_or_default();
    let bar = format!("{}{}", "▰".repeat(cells), "▱".repeat(long - cells.min(long)));
    let head = [
        Span::new(
            Clean::line(&width::pad_start(figure::tokens(tokens).as_ref(), 7)),
            Role::Text,
        ),
        space(2),
        Span::new(Clean::new(&bar), Role::Accent),
        space(2),
    ];
    wrap(text, columns, &head, &[space(11 + long)])
}

/// Keys on the left and what they do beside them; below them where the screen is narrow or the keys are many.
fn entry(keys: &str, about: &'static str, columns: usize) -> Vec<Row> {
    let beside = if columns >= 2 * KEYS { KEYS } else { 4 };
    let about = [Span::new(Clean::new(about), Role::Text)];
    let name = Span::new(Clean::new(keys), Role::Accent);
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
    fn nothing_of_the_keys_is_cut_at_any_width() {
        let all = |columns| {
            let mut page = Page::keys(&Keymap::built_in(), false);
            page.lay_out(columns, 10);
            let rows: Vec<String> = page
                .rows
                .iter()
                .map(|it| it.spans.iter().map(|it| it.text.as_str()).collect())
                .collect();
            assert!(
                rows.iter().all(|it| width::width(it) <= columns),
                "{columns}: {rows:#?}"
            );
            rows.join(" ").split_whitespace().map(str::to_owned).collect::<Vec<_>>()
        };
        let wide = all(300);
        assert!(wide.windows(2).any(|it| it == ["shift+enter", "break"]), "{wide:?}");
        for columns in [60, 80, 120] {
            assert_eq!(all(columns), wide, "{columns}");
        }
        assert_eq!(all(30), wide);
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
            page.lay_out(columns, 10);
            let text = |it: &Row| -> String { it.spans.iter().map(|it| it.text.as_str()).collect() };
            let rows = page.rows.iter().map(text);
            // Behind the title.
            rows.skip_while(|it| !it.is_empty()).skip(1).collect()
        };
        assert_eq!(
            rows(80),
            [
                "      0  ▱▱▱▱▱▱▱▱▱▱▱▱  tool web_search   not offered: no service is configured:",
                "                       set web.search.kind",
                "   1.5k  ▰▰▰▰▰▰▱▱▱▱▱▱  results of tools",
                "     3k  ▰▰▰▰▰▰▰▰▰▰▰▰  all",
            ]
        );
        assert_eq!(
            rows(37),
            [
                "      0  ▱▱▱▱  tool web_search   not",
                "               offered: no service is",
                "               configured: set",
                "               web.search.kind",
                "   1.5k  ▰▰▱▱  results of tools",
                "     3k  ▰▰▰▰  all",
            ]
        );
    }
}
