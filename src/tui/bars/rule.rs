//! The rule above the draft: the mode, what the running answer does, and the state of the conversation.

use crate::{
    locale::figure,
    protocol::{Document, Kind, Mode, Progress, TodoStatus, View, tool_label},
    t,
    text::{Role, Sanitized, Span, width},
    transcript::Todo,
    tui::{
        app::{Composer, Conversation, SeenApproval, Viewport},
        widgets::{
            composer::role_of,
            transcript::{Following, Item},
            with_code,
        },
    },
};

/// Documents at the end of an answer among which one that runs is looked for.
const OPEN_AMONG: usize = 64;
/// Columns below which there is no room for the reason of a retry.
const WHOLE_COUNTDOWN: usize = 80;
/// Columns for the time since an answer began, and for the gaps around it and the reason of a retry.
const ELAPSED: usize = 16;
/// Columns below which what an answer does is left out.
const LEAST_PHASE: usize = 12;

/// Returns the rule above the draft, `── mode ◐ phase ─────── state`. Where there is little room, the todo goes first, then
/// the phase's figure, then the first parts of the state. Of an approval that was not read as a whole it says where the rest is.
/// The state ends at the first of both columns, the rule at the second.
pub fn spans(
    composer: &Composer,
    (viewport, seen): (&Viewport, Option<&SeenApproval>),
    conversation: &Conversation,
    now_ms: u64,
    (columns, end): (usize, usize),
) -> Vec<Span> {
    // The mode of the running answer; another one is for the next message.
    let mode = conversation.running_mode().unwrap_or(composer.mode);
    let asks_now = if conversation.is_busy() {
        conversation.asks_first()
    } else {
        composer.asks_first
    };
    let restricted = conversation.restricted_mode().filter(|it| !it.is_read_only());
    let is_other =
        restricted.is_some() || mode != composer.mode || mode == Mode::Agent && asks_now != composer.asks_first;
    let chosen = composer.commands.custom_mode.as_deref();
    let custom = if conversation.is_busy() {
        conversation.running_custom_mode()
    } else {
        chosen
    };
    let is_other = is_other || custom != chosen;
    let next = is_other.then(|| chosen.unwrap_or(mode_word(composer.mode, composer.asks_first)));
    let word = match restricted {
        Some(from) => t!("composer-restricted-mode", mode = mode_word(from, false)),
        None => custom.unwrap_or(mode_word(mode, asks_now)).to_owned(),
    };
    let word = Sanitized::line(&word);
    let mut right = Parts::default();
    right.push_view(viewport);
    right.push_draft(composer);
    right.push_search(viewport);
    if conversation.is_unstored {
        right.push(t!("composer-unstored"), Role::Waiting);
    }
    if mode.is_read_only() && restricted.is_none() {
        right.push(t!("composer-read-only"), Role::Dim);
    }
    if !composer.queue.is_empty() {
        right.push(&t!("composer-queued", count = composer.queue.len()), Role::Dim);
    }
    let next = next.map_or_else(Sanitized::default, |it| {
        Sanitized::from(t!("composer-next-mode", mode = it))
    });
    let gap = usize::from(!next.is_empty());
    let head = 4 + width::width(&word) + gap + width::width(&next);
    let mut phases = phases(conversation, columns, now_ms);
    let shortest = phases.first().map_or(0, |it| width::spans_width(it));
    let room = columns.saturating_sub(head + shortest + width::spans_width(&right.0));
    right.push_progress(conversation, columns, room, now_ms);
    if let Some(seen) = seen.filter(|it| it.left > 0) {
        let text = if seen.is_above {
            t!("composer-rest-above", count = seen.left)
        } else {
            t!("composer-rest", count = seen.left)
        };
        right.push(&text, Role::Waiting);
    }
    let mut right = right.0;
    let state = width::spans_width(&right) + 4;
    while phases.len() > 1
        && phases
            .last()
            .is_some_and(|it| width::spans_width(it) + head + state > columns)
    {
        phases.pop();
    }
    let mut phase = phases.pop().unwrap_or_default();
    let beside = columns.saturating_sub(head + state);
    let room = if beside < LEAST_PHASE {
        columns.saturating_sub(head + 4)
    } else {
        beside
    };
    if width::spans_width(&phase) > room {
        phase = if room < LEAST_PHASE {
            Vec::new()
        } else {
            let mut cut = width::cut_spans(&phase, room - 1);
            cut.push(Span::new(Sanitized::literal(" "), Role::Rule));
            cut
        };
    }
    let head = head + width::spans_width(&phase);
    while width::spans_width(&right) + head + 4 > columns && !right.is_empty() {
        right.remove(0);
    }
    let taken = head + width::spans_width(&right) + if right.is_empty() { 0 } else { 3 };
    let mut spans = vec![
        Span::new(Sanitized::literal("── "), Role::Rule),
        Span::new(word, role_of(mode)).bold(),
        Span::new(Sanitized::new(&" ".repeat(gap)), Role::Rule),
        Span::new(next, Role::Dim),
        Span::new(Sanitized::literal(" "), Role::Rule),
    ];
    spans.extend(phase);
    spans.extend([Span::new(
        Sanitized::new(&"─".repeat(columns.saturating_sub(taken))),
        Role::Rule,
    )]);
    let rule = |columns: usize| Span::new(Sanitized::new(&"─".repeat(columns)), Role::Rule);
    let beyond = end.saturating_sub(columns);
    if right.is_empty() {
        spans.push(rule(beyond));
    } else {
        spans.push(Span::new(Sanitized::literal(" "), Role::Rule));
        spans.extend(right);
        if beyond > 0 {
            spans.extend([Span::new(Sanitized::literal(" "), Role::Rule), rule(beyond + 1)]);
        }
    }
    spans
}

/// The mode's word, with a remark for the agent that asks first.
fn mode_word(mode: Mode, asks_first: bool) -> &'static str {
    if mode == Mode::Agent && asks_first {
        t!("composer-agent-asks")
    } else {
        mode.as_str()
    }
}

/// What a running answer is doing.
struct Phase {
    words: String,
    /// How long it has, or how much was written; empty at the beginning.
    figure: String,
}

/// Returns what the running answer is doing; `None` if none runs, or it waits for the person.
fn phase(conversation: &Conversation, columns: usize, now_ms: u64) -> Option<Phase> {
    let transcript = &conversation.transcript;
    let is_waiting = transcript.open_question().is_some();
    let exchange = transcript
        .exchanges
        .last()
        .filter(|_| conversation.is_busy() && !is_waiting)?;
    let documents = &exchange.response.documents;
    let since = |words: String, began_ms: u64| {
        let seconds = now_ms.saturating_sub(began_ms) / 1000;
        let figure = if seconds == 0 {
            String::new()
        } else {
            figure::pause(seconds).to_string()
        };
        Some(Phase { words, figure })
    };
    match &transcript.progress {
        Some(Progress::Connecting { peer }) => {
            return since(t!("composer-connecting", peer = peer.as_str()), exchange.last_ms);
        }
        Some(Progress::Listing { peer }) => {
            return since(t!("composer-asking-models", peer = peer.as_str()), exchange.last_ms);
        }
        Some(Progress::Retrying { at_ms, .. }) => {
            let seconds = at_ms.saturating_sub(now_ms).div_ceil(1000);
            return Some(Phase {
                words: t!("composer-retry", time = figure::pause(seconds).as_str()),
                figure: String::new(),
            });
        }
        Some(Progress::Waiting { .. } | Progress::Stalled { .. }) => {
            return since(t!("composer-first-word").to_owned(), exchange.last_ms);
        }
        Some(Progress::Idle) | None => {}
    }
    // Those that run are among the last ones.
    if let Some(open) = documents.iter().rev().take(OPEN_AMONG).find(|it| it.is_open()) {
        return match open.view() {
            View::TerminalCommand(it) => since(t!("phase-running", what = short(it.command, columns)), open.started_ms),
            View::ToolCall(it) => since(
                t!("phase-running", what = short(&tool(it.tool_name), columns)),
                open.started_ms,
            ),
            View::FileEdit(it) => {
                let name = it.file_path.rsplit('/').next().unwrap_or_default();
                since(t!("phase-writing-file", file = short(name, columns)), open.started_ms)
            }
            _ => {
                let is_prose = |it: &&Document| matches!(it.kind, Kind::Text | Kind::CodeBlock | Kind::CodeReference);
                let written = documents
                    .iter()
                    .rev()
                    .take_while(is_prose)
                    .map(|it| it.text().len())
                    .sum::<usize>();
                let tokens = (written.max(open.text().len()) as u64) * 10 / 33;
                let figure = (tokens > 0).then(|| {
                    let count = figure::tokens(tokens);
                    format!("· {}", t!("header-tokens", count = count.as_str()))
                });
                Some(Phase {
                    words: t!("phase-writing").to_owned(),
                    figure: figure.unwrap_or_default(),
                })
            }
        };
    }
    if let Some(change) = documents.iter().rev().take(OPEN_AMONG).find(|it| it.is_checking()) {
        return since(t!("phase-checking").to_owned(), change.ended_ms);
    }
    let is_thinking = exchange
        .response
        .thinking
        .last()
        .is_some_and(|it| it.before == documents.len());
    if is_thinking {
        let began_ms = documents.last().map_or(exchange.at_ms, |it| it.ended_ms);
        return since(t!("phase-thinking").to_owned(), began_ms);
    }
    since(t!("composer-first-word").to_owned(), exchange.last_ms)
}

/// The name of a tool as the transcript shows it.
fn tool(name: &str) -> String {
    let own = || tool_label::label(name).map_or(name, |it| it.word.as_str()).to_owned();
    tool_label::served(name).unwrap_or_else(own)
}

fn short(text: &str, columns: usize) -> String {
    width::cut_end(
        &Sanitized::line(text.trim_start().lines().next().unwrap_or_default()),
        (columns / 3).max(24),
    )
}

/// The current item of an unfinished list: `2 of 5 · Add the field`.
fn todo(conversation: &Conversation) -> Option<String> {
    let todos = &conversation.transcript.todos;
    let (done, count) = todos.progress();
    let is_current = |it: &&Todo| matches!(it.status, TodoStatus::InProgress);
    let is_next = |it: &&Todo| matches!(it.status, TodoStatus::Pending | TodoStatus::Other(_));
    let current = todos.list.iter().find(is_current);
    let current = current.or_else(|| todos.list.iter().find(|it| !conversation.is_busy() && is_next(it)))?;
    let place = (done + 1).min(count);
    let words = with_code(&Sanitized::line(&current.content), Role::Dim);
    let words: String = words.iter().map(|it| it.text.as_str()).collect();
    let words = width::cut_end(&words, 40);
    Some(t!("phase-todo", place = place, count = count, todo = words.as_str()))
}

/// Returns the phase as it stands in the rule, from the shortest form to the longest; while no answer runs, what is left
/// to do.
fn phases(conversation: &Conversation, columns: usize, now_ms: u64) -> Vec<Vec<Span>> {
    let dim = |text: &str| Span::new(Sanitized::line(text), Role::Dim);
    let end = Span::new(Sanitized::literal(" "), Role::Rule);
    let Some(phase) = phase(conversation, columns, now_ms) else {
        // What is left to do stays in view between the answers.
        let is_idle = !conversation.is_busy() && conversation.waiting().is_none();
        let is_shown = is_idle || conversation.transcript.open_question().is_some();
        let left = todo(conversation).filter(|_| is_shown);
        return left.map(|it| vec![vec![], vec![dim(&it), end]]).unwrap_or_default();
    };
    let short = vec![Span::new(Sanitized::literal("◐ "), Role::Waiting), dim(&phase.words)];
    let mut forms = vec![short.clone()];
    let mut whole = short;
    if !phase.figure.is_empty() {
        whole.push(dim(&format!(" {}", phase.figure)));
        forms.push(whole.clone());
    }
    if let Some(todo) = todo(conversation) {
        whole.push(dim(&format!("  {todo}")));
        forms.push(whole);
    }
    for form in &mut forms {
        form.push(end.clone());
    }
    forms
}

/// The state at the right of the rule, with gaps between its parts.
#[derive(Default)]
struct Parts(Vec<Span>);

impl Parts {
    fn push(&mut self, text: &str, role: Role) {
        if !self.0.is_empty() {
            self.0.push(Span::new(Sanitized::literal("  "), Role::Dim));
        }
        self.0.push(Span::new(Sanitized::line(text), role));
    }

    fn push_view(&mut self, viewport: &Viewport) {
        let pane = &viewport.pane;
        if pane.unseen > 0 && pane.follow != Following::End {
            self.push(&t!("composer-unseen", count = pane.unseen), Role::Link);
        }
    }

    fn push_draft(&mut self, composer: &Composer) {
        if composer.field.starts_with("!!") {
            self.push(t!("composer-shell-silent"), Role::Waiting);
        } else if composer.field.starts_with("!") {
            self.push(t!("composer-shell"), Role::Waiting);
        }
        if let Some(mode) = composer.field.vim_mode() {
            self.push(mode.as_str(), Role::Dim);
        }
    }

    fn push_search(&mut self, viewport: &Viewport) {
        if let Some(search) = &viewport.search {
            let is_at = |it: &Item| search.at.is_some_and(|(item, _)| item == *it);
            let place = search.hits.iter().position(is_at).map_or(0, |it| it + 1);
            let pattern = width::cut_end(&search.pattern, 24);
            let place = place.to_string();
            let text = t!(
                "composer-search",
                pattern = pattern,
                place = place,
                count = search.hits.len()
            );
            self.push(&text, Role::Waiting);
        }
        if !viewport.pane.filter.is_empty() {
            let text = t!("composer-filter", filter = viewport.pane.filter.words());
            self.push(&text, Role::Waiting);
        }
    }

    /// Adds the state of the answer: a question or plan that waits, its progress, the time since it began. `room`: the columns that
    /// the parts before it leave.
    fn push_progress(&mut self, conversation: &Conversation, columns: usize, room: usize, now_ms: u64) {
        let transcript = &conversation.transcript;
        if transcript.open_question().is_some() || conversation.plan_to_build().is_some() {
            self.push(t!("composer-waiting"), Role::Waiting);
            return;
        }
        let seconds_to = |at_ms: u64| figure::pause(at_ms.saturating_sub(now_ms).div_ceil(1000));
        if !conversation.is_busy() {
            if let Some(Progress::Retrying { at_ms, .. }) = &transcript.progress {
                let time = seconds_to(*at_ms);
                self.push(&t!("composer-retry", time = time.as_str()), Role::Waiting);
            }
            return;
        }
        match &transcript.progress {
            // The phase says when it goes on.
            Some(Progress::Retrying {
                attempt, of, because, ..
            }) if columns >= WHOLE_COUNTDOWN => {
                let text = |because: &str| t!("composer-retrying", because = because, attempt = *attempt, of = *of);
                let room = room.saturating_sub(width::width(&text("")) + ELAPSED);
                self.push(&text(&width::cut_end(because, room)), Role::Waiting);
            }
            Some(Progress::Stalled { silent_ms }) => {
                let text = t!("composer-silent", time = figure::duration(*silent_ms).as_str());
                self.push(&text, Role::Waiting);
            }
            // The phase says it.
            Some(
                Progress::Retrying { .. }
                | Progress::Connecting { .. }
                | Progress::Listing { .. }
                | Progress::Waiting { .. }
                | Progress::Idle,
            )
            | None => {}
        }
        // In whole seconds, from the first one on.
        let elapsed_ms = now_ms.saturating_sub(transcript.exchanges.last().map_or(now_ms, |it| it.at_ms)) / 1000 * 1000;
        if elapsed_ms > 0 {
            self.push(figure::duration(elapsed_ms).as_str(), Role::Dim);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use pretty_assertions::assert_eq;
    use serde_json::{Map, Value, json};

    use crate::{
        protocol::{
            Done, Event, Message, Progress, ResponseStart,
            document::{pending_check, unchecked},
        },
        tui::{
            msg::Msg,
            test_app::{TestApp, delta, document, end, start},
        },
    };

    fn rule(app: &mut TestApp) -> String {
        let picture = app.picture();
        let line = picture.lines().rev().find(|it| it.starts_with("── "));
        line.map(|it| it.trim_end_matches(['─', ' ']).to_owned())
            .unwrap_or_default()
    }

    fn tick(app: &mut TestApp, ms: u64) {
        app.later(ms);
        app.take(Msg::Tick);
    }

    /// An answer that is asked for again after a pause.
    fn retrying(columns: u16, pause_ms: u64, because: &str) -> TestApp {
        let mut app = TestApp::new(columns, 20);
        app.events([
            Event::UserMessage(Message::user("go")),
            Event::ResponseStart(ResponseStart::default()),
            Event::Progress(Progress::Retrying {
                attempt: 2,
                of: 10,
                at_ms: app.app.now_ms + pause_ms,
                because: because.to_owned(),
            }),
        ]);
        app
    }

    #[test]
    fn the_countdown_of_a_retry_is_seen_at_every_width() {
        for (columns, expected) in [
            (40, "── agent ◐ retrying in 3 s"),
            (60, "── agent ◐ retrying in 3 s"),
            (
                100,
                "── agent ◐ retrying in 3 s ──────── it is overloaded (529) · 2 of 10",
            ),
            (
                80,
                "── agent ◐ retrying in 3 s ──────── it is overloaded (529) · 2 of 10",
            ),
        ] {
            let mut app = retrying(columns, 3000, "it is overloaded (529)");
            let shown = rule(&mut app);
            assert!(
                shown.starts_with(expected.split(" ─").next().unwrap_or_default()),
                "{columns}: {shown}"
            );
            assert_eq!(
                shown.contains("it is overloaded (529) · 2 of 10"),
                columns >= 80,
                "{shown}"
            );
        }
    }

    #[test]
    fn the_reason_of_a_retry_takes_the_room_that_is_there() {
        let because = "connection refused: http://127.0.0.1:8080/v1";
        for (columns, expected) in [
            (100, "connection refused: http://127.0.0.1:8080/v1 · 2 of 10 "),
            (80, "connection refused: http:"),
        ] {
            let mut app = retrying(columns, 13_000, because);
            tick(&mut app, 10_000);
            let shown = rule(&mut app);
            assert!(shown.starts_with("── agent ◐ retrying in 3 s "), "{shown}");
            assert!(
                shown.contains(expected) && shown.contains("· 2 of 10"),
                "{columns}: {shown}"
            );
            assert!(shown.trim_end().ends_with("10 s"), "{shown}");
        }
    }

    fn todos(place: usize) -> [Event; 2] {
        let todo = |at: usize| {
            let status = match at.cmp(&place) {
                Ordering::Less => "completed",
                Ordering::Equal => "in_progress",
                Ordering::Greater => "pending",
            };
            json!({ "id": at.to_string(), "content": format!("Add field {at}"), "status": status })
        };
        let list: Vec<Value> = (1..=5).map(todo).collect();
        document("todos", "todo_update", None, json!({ "merge": false, "todos": list }))
    }

    #[test]
    fn the_rule_says_what_the_answer_does() {
        let mut app = TestApp::new(100, 24);
        app.events([
            Event::UserMessage(Message::user("go")),
            Event::ResponseStart(ResponseStart::default()),
        ]);
        let peer = "openai".to_owned();
        app.events([Event::Progress(Progress::Listing { peer })]);
        let listing = rule(&mut app);
        assert!(
            listing.starts_with("── agent ◐ asking openai for its models"),
            "{listing}"
        );
        app.events([Event::Progress(Progress::Waiting { peer: "model".into() })]);
        tick(&mut app, 3000);
        let first = rule(&mut app);
        assert!(first.starts_with("── agent ◐ waiting for the model 3 s ─"), "{first}");
        assert!(first.ends_with("─ 3.0 s"), "{first}");
        app.events([Event::ThinkingDelta { delta: "hm".into() }]);
        tick(&mut app, 1000);
        assert!(rule(&mut app).starts_with("── agent ◐ thinking "), "{}", rule(&mut app));
        app.events([start("c", "terminal_command", json!({ "command": "cargo test" }))]);
        tick(&mut app, 12_000);
        assert!(
            rule(&mut app).starts_with("── agent ◐ running cargo test 12 s ─"),
            "{}",
            rule(&mut app)
        );
        app.events([end(
            "c",
            None,
            json!({ "command": "cargo test", "exitCode": 0, "output": "" }),
        )]);
        let checked = json!({ "filePath": "a.rs", "operation": "create", "checked": pending_check() });
        app.events(document("e", "file_edit", Some("b"), checked));
        tick(&mut app, 2000);
        assert!(
            rule(&mut app).starts_with("── agent ◐ checking the changes 2 s ─"),
            "{}",
            rule(&mut app)
        );
        let metadata = Map::from_iter([("checked".to_owned(), unchecked(&[]))]);
        app.events([Event::DocumentUpdate {
            document: "e".into(),
            metadata,
        }]);
        app.events(todos(2));
        app.events([start("t", "text", json!({}))]);
        app.events([delta("t", &"word ".repeat(272))]);
        tick(&mut app, 1000);
        assert!(
            rule(&mut app).starts_with("── agent ◐ writing · 412 tokens  2 of 5 · Add field 2 ─"),
            "{}",
            rule(&mut app)
        );
        // The todo goes first, then the figure; what waits for the person has no phase.
        for (columns, expected) in [
            (70, "── agent ◐ writing · 412 tokens  2 of 5 · Add field 2 ─"),
            (50, "── agent ◐ writing · 412 tokens ─"),
            (30, "── agent ◐ writing ─"),
        ] {
            app.resize(columns, 24);
            let rule = rule(&mut app);
            assert!(rule.starts_with(expected), "{columns} {rule}");
        }
        app.resize(100, 24);
        app.events([end("t", Some("done"), json!({}))]);
        app.events([Event::Done(Done::default())]);
        assert_eq!(
            rule(&mut app),
            "── agent 2 of 5 · Add field 2",
            "it stays while nobody works at it"
        );
        app.keys("/todo<enter>");
        assert!(app.shows("Add field 5"), "{}", app.picture());
        let all: Vec<Value> = (1..=5)
            .map(|at| json!({ "id": at.to_string(), "status": "completed" }))
            .collect();
        app.events(document(
            "done",
            "todo_update",
            None,
            json!({ "merge": true, "todos": all }),
        ));
        app.events([Event::Done(Done::default())]);
        assert!(!rule(&mut app).contains("of 5"), "{}", rule(&mut app));
    }
}
