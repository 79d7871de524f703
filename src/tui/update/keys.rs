//! Hands a key or pasted text to the first of [`TARGETS`] that takes it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use crate::{
    protocol::{Command, Kind, View},
    t,
    transcript::is_approval,
    tui::{
        actions::{
            self,
            focus::{focus_composer, focus_transcript},
        },
        app::{
            Action, Answer, App, Choice, Effect, Focus, Mark, Scene, Verdict,
            keymap::{Chord, KeyContext},
        },
        command,
        editor::{field::row_step, vim},
        mention,
        overlays::Page,
        picture,
        widgets::{Form, Outcome as FormOutcome},
    },
};

/// A part of the screen that may take a key.
struct KeyTarget {
    /// Returns true if the key is for this target, as things stand.
    is_meant: fn(&App, KeyEvent) -> bool,
    /// Handles the key; `None` leaves it to the targets below.
    take: fn(&mut App, KeyEvent) -> Option<Vec<Effect>>,
}

/// The targets of keys, from the top overlay down to the composer.
const TARGETS: &[KeyTarget] = &[
    // An action waits for what is read, and takes what follows then.
    KeyTarget {
        is_meant: |app, _| app.conversation.backfill.holds_keys(),
        take: |app, event| app.conversation.backfill.hold(event).then(Vec::new),
    },
    // F1 leads to the help from every overlay.
    KeyTarget {
        is_meant: |app, event| !app.overlays.is_empty() && event.code == KeyCode::F(1),
        take: |app, _| {
            let is_open = app.overlays.top::<Page>().is_some_and(|it| it.is_help);
            Some(if is_open {
                Vec::new()
            } else {
                actions::everywhere::KEYS.go(app, "")
            })
        },
    },
    // The top overlay takes every key.
    KeyTarget {
        is_meant: |app, _| !app.overlays.is_empty(),
        take: |app, event| Some(overlay_key(app, event)),
    },
    // The open question that has the focus.
    KeyTarget {
        is_meant: |app, _| app.viewport.question(&app.conversation.transcript).is_some(),
        take: form_key,
    },
    // The list of files and documents.
    KeyTarget {
        is_meant: |app, _| app.viewport.focus == Focus::Composer,
        take: |app, event| mention::key(app, event).then(|| mention::look(app)),
    },
    // The list of commands.
    KeyTarget {
        is_meant: |app, _| app.viewport.focus == Focus::Composer,
        take: |app, event| match command::key(app, event) {
            command::KeyResult::No => None,
            command::KeyResult::Yes => Some(command::look(app)),
            command::KeyResult::Send => Some((actions::SEND.run)(app, "")),
        },
    },
    // Vim: `:` and `/`, then its motions and operators.
    KeyTarget {
        is_meant: |app, event| vim_action(app, event).is_some(),
        take: |app, event| vim_action(app, event).map(|it| (it.run)(app, "")),
    },
    KeyTarget {
        is_meant: |app, _| app.viewport.focus == Focus::Composer,
        take: |app, event| {
            let is_taken = app.composer.field.vim_key(event);
            is_taken.then(|| {
                app.composer.history.at = None;
                Vec::new()
            })
        },
    },
    // Enter after a letter that marks something does it; every other key removes the mark.
    KeyTarget {
        is_meant: |app, _| app.questions.marked.is_some(),
        take: |app, event| {
            let (mark, item) = app.questions.marked.take()?;
            let is_here = app.viewport.focus == Focus::Transcript && app.viewport.pane.selected == Some(item);
            let confirms = event.code == KeyCode::Enter && event.modifiers.is_empty() && is_here;
            confirms.then(|| match mark {
                Mark::Build => actions::plan::BUILD.go(app, ""),
                Mark::EditPlan => actions::plan::edit(app),
                Mark::Open { path, line } => vec![Effect::OpenFile { path, line }],
                Mark::Retry => actions::answer::RETRY.go(app, ""),
                Mark::RemoveTodo(id) => actions::plan::remove_todo(app, &id),
            })
        },
    },
    // To the question of trust, where nothing else waits: Tab, and from an empty draft Up and Enter.
    KeyTarget {
        is_meant: |app, event| {
            let leads = match event.code {
                KeyCode::Tab => true,
                KeyCode::Up | KeyCode::Enter => app.composer.field.is_empty(),
                _ => false,
            };
            leads
                && event.modifiers.is_empty()
                && app.viewport.focus == Focus::Composer
                && app.questions.submitted_ms.is_none()
                && app.conversation.waits_for_trust()
        },
        take: |app, _| Some(actions::everywhere::TRUST.go(app, "")),
    },
    // With text Tab queues it while an answer is coming, unless something waits.
    KeyTarget {
        is_meant: |app, event| {
            event.code == KeyCode::Tab
                && event.modifiers.is_empty()
                && app.viewport.focus == Focus::Composer
                && app.conversation.is_busy()
                && app.conversation.about.written_elsewhere.is_none()
                && app.conversation.waiting().is_none()
                && !app.composer.field.is_empty()
        },
        take: |app, _| Some(actions::writing::QUEUE.go(app, "")),
    },
    // A question mark on an empty draft asks for help.
    KeyTarget {
        is_meant: |app, event| {
            let is_empty = app.viewport.focus == Focus::Composer && app.composer.field.is_empty();
            is_empty && event.code == KeyCode::Char('?') && is_text(event)
        },
        take: |app, _| Some(actions::everywhere::KEYS.go(app, "")),
    },
    // From an empty draft Up and Enter lead to what waits.
    KeyTarget {
        is_meant: |app, event| {
            let leads = matches!(event.code, KeyCode::Up | KeyCode::Enter) && event.modifiers.is_empty();
            leads
                && app.viewport.focus == Focus::Composer
                && app.composer.field.is_empty()
                && app.questions.submitted_ms.is_none()
                && app.conversation.waiting().is_some()
        },
        take: |app, _| {
            focus_transcript(app);
            Some(Vec::new())
        },
    },
    // The keymap of where the focus is.
    KeyTarget {
        is_meant: |app, event| action_of(app, event).is_some(),
        take: |app, event| {
            let selected = app.viewport.pane.selected;
            let mut effects = action_of(app, event)?.go(app, "");
            effects.extend(command::look(app));
            if app.viewport.pane.selected != selected {
                app.viewport.pane.todo = None;
            }
            Some(effects)
        },
    },
    // A letter that means nothing in the transcript belongs to a message, with those that were typed before it; other keys mean
    // nothing there.
    KeyTarget {
        is_meant: |app, _| app.viewport.focus == Focus::Transcript,
        take: |app, event| {
            if !is_text(event) {
                return Some(Vec::new());
            }
            begin_draft(app);
            // In Vim's normal mode it is a command there.
            let is_taken = app.composer.field.vim_key(event);
            is_taken.then(|| {
                app.composer.history.at = None;
                Vec::new()
            })
        },
    },
    // What was sent before.
    KeyTarget {
        is_meant: |_, event| recall_step(event).is_some(),
        take: |app, event| recall(app, event).then(Vec::new),
    },
    // The draft.
    KeyTarget {
        is_meant: |_, _| true,
        take: |app, event| {
            if app.composer.field.key(event) && is_text(event) {
                app.composer.history.at = None;
            }
            let mut effects = mention::look(app);
            effects.extend(command::look(app));
            Some(effects)
        },
    },
];

/// Acts on a key.
pub(super) fn key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    app.drop_toast();
    let effects = give(app, event);
    app.next_notice();
    effects
}

/// Gives a key to the first target that takes it.
fn give(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    app.viewport.selection = None;
    if app.viewport.focus == Focus::Transcript && is_text(event) {
        let is_step = action_of(app, event).is_some_and(|it| matches!(it.name, "next" | "previous"));
        app.viewport.typed.add(event, is_step, app.now_ms);
    } else {
        app.viewport.typed.clear();
    }
    replace_unknown(app, !is_text(event) || event.code == KeyCode::Char('/'));
    let continues = continues(app, event);
    if continues && event.code == KeyCode::Char(' ') {
        return vec![Effect::Send(Command::Next)];
    }
    let take = |target: &KeyTarget| {
        let is_meant = (target.is_meant)(app, event);
        is_meant.then(|| (target.take)(app, event)).flatten()
    };
    let mut effects = TARGETS.iter().find_map(take).unwrap_or_default();
    // Esc counts twice only if nothing was typed between.
    if app.terminal.last_escape_ms != 0 && !app.composer.field.is_empty() {
        if app.toast_ms == app.terminal.last_escape_ms {
            app.toast = None;
        }
        app.terminal.last_escape_ms = 0;
    }
    if continues {
        effects.push(Effect::Send(Command::Next));
    }
    effects
}

/// Returns true if a key skips the pause of a recording: in the composer, on an empty draft, while nothing waits for an
/// answer. A letter begins a message all the same. Enter is the sender's.
fn continues(app: &App, event: KeyEvent) -> bool {
    let is_free = app.conversation.about.is_replay
        && app.overlays.is_empty()
        && app.viewport.focus == Focus::Composer
        && app.composer.field.is_empty()
        && app.conversation.waiting().is_none();
    let is_arrow = matches!(event.code, KeyCode::Up | KeyCode::Down | KeyCode::Left | KeyCode::Right);
    let is_symbol = event.code == KeyCode::Char('/') || event.code == KeyCode::Char('?');
    is_free && (is_arrow || (is_text(event) && !is_symbol))
}

fn overlay_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    let Some(overlay) = app.overlays.last_mut() else {
        return Vec::new();
    };
    let scene = Scene::of(&app.conversation, &app.questions, &app.appearance, app.now_ms);
    match overlay.key(event, &scene) {
        Answer::Taken => Vec::new(),
        Answer::Close => {
            close(app);
            Vec::new()
        }
        Answer::Chosen(choice) => {
            app.take_overlay();
            chosen(app, choice)
        }
        Answer::Live(choice) => chosen(app, choice),
        Answer::Does(effect) => vec![effect],
        Answer::Said(text) => app.say(text),
        Answer::Typed(event) => {
            app.take_overlay();
            begin_draft(app);
            key(app, event)
        }
    }
}

/// Moves the focus to the draft for a letter that belongs there. The letters that were typed before it in the transcript go with it
/// to an empty draft; somebody with a draft, or in Vim's normal mode, was reading.
fn begin_draft(app: &mut App) {
    let before = app.viewport.typed.take_before_last();
    focus_composer(app);
    if !app.composer.field.is_empty() || app.composer.field.vim_mode() == Some(vim::Mode::Normal) {
        return;
    }
    for letter in before.chars() {
        app.composer.field.key(KeyCode::Char(letter).into());
    }
}

fn close(app: &mut App) {
    if let Some(overlay) = app.take_overlay() {
        overlay.closed(app);
    }
}

/// Before a key or a paste: text that is typed directly after an unknown command takes the place of all of it, as its arguments are
/// no part of a message. `keeps`: another command, or a key that goes on with the draft.
pub(super) fn replace_unknown(app: &mut App, keeps: bool) {
    let is_unknown = std::mem::take(&mut app.composer.commands.is_unknown);
    if is_unknown && !keeps && app.viewport.focus == Focus::Composer && app.overlays.is_empty() {
        app.composer.field.select_all();
    }
}

fn is_text(event: KeyEvent) -> bool {
    let commands = KeyModifiers::CONTROL | KeyModifiers::ALT | KeyModifiers::SUPER;
    matches!(event.code, KeyCode::Char(_)) && !event.modifiers.intersects(commands)
}

/// Returns true if the focus is on a plan.
fn is_on_plan(app: &App) -> bool {
    let selected = app.viewport.selected();
    let document = selected.and_then(|it| app.conversation.transcript.get(it));
    app.viewport.focus == Focus::Transcript && document.is_some_and(|it| it.kind == Kind::Plan)
}

/// The action of a key where the focus is.
fn action_of(app: &App, event: KeyEvent) -> Option<&'static Action> {
    let (chord, keymap) = (Chord::of(event), &app.preferences.keymap);
    let place = match app.viewport.focus {
        Focus::Composer => KeyContext::Composer,
        Focus::Transcript => KeyContext::Transcript,
    };
    let on_plan = is_on_plan(app)
        .then(|| keymap.find_only(KeyContext::Plan, chord))
        .flatten();
    on_plan.or_else(|| keymap.find(place, chord))
}

/// The actions of `:` and `/` for users of Vim, where they are not text.
fn vim_action(app: &App, event: KeyEvent) -> Option<&'static Action> {
    let vim = app.composer.field.vim.as_ref()?;
    let is_free = app.viewport.focus == Focus::Composer && vim.mode == vim::Mode::Normal && !vim.is_pending();
    match event.code {
        KeyCode::Char(':') if is_free => Some(&actions::everywhere::PALETTE),
        KeyCode::Char('/') if is_free && event.modifiers.is_empty() => Some(&actions::finding::SEARCH),
        _ => None,
    }
}

/// Gives the key to the question that has the focus; `None`: it is not for the question.
fn form_key(app: &mut App, event: KeyEvent) -> Option<Vec<Effect>> {
    let place = app.viewport.question(&app.conversation.transcript)?;
    let document = app.conversation.transcript.get(place)?;
    if !matches!(document.view(), View::Clarification(_)) {
        return None;
    }
    let name = (app.conversation.turn_of(place), document.id.clone());
    if app.questions.sent.contains(&name) {
        return None;
    }
    let is_enter = event.code == KeyCode::Enter && event.modifiers.is_empty();
    let decides = is_enter || is_approval(document) && matches!(event.code, KeyCode::Char('y' | 'n'));
    let approves = is_approval(document);
    let is_too_early = app.questions.is_too_early(app.now_ms);
    let allows = decides && is_approval(document) && event.code != KeyCode::Char('n');
    if allows && let Some(why) = actions::approve::unseen(app, place) {
        return Some(app.toast(why));
    }
    let is_answer = is_enter || matches!(event.code, KeyCode::Char(it) if it.is_ascii_digit() || it == ' ');
    if is_answer && !approves && actions::approve::hidden_form(app, place) {
        return Some(app.toast(t!("approval-unseen")));
    }
    let document = app.conversation.transcript.get(place)?;
    let View::Clarification(view) = document.view() else {
        return None;
    };
    let form = app
        .questions
        .forms
        .entry(name.clone())
        .or_insert_with(|| Form::new(name.1.clone()));
    if is_too_early && decides && form.reason().is_none() {
        return Some(Vec::new());
    }
    match form.key(event, &view) {
        // The arrows leave a question that one has gone to, and never one that has taken the focus by itself.
        FormOutcome::Ignored if app.questions.took_focus && matches!(event.code, KeyCode::Up | KeyCode::Down) => {
            Some(Vec::new())
        }
        FormOutcome::Ignored => None,
        FormOutcome::Changed => {
            if is_enter {
                // The next question is read before the next Enter answers it.
                app.questions.since_ms = app.now_ms;
            }
            Some(Vec::new())
        }
        FormOutcome::Message(text) => {
            focus_composer(app);
            app.composer.field.paste(&text);
            Some(Vec::new())
        }
        FormOutcome::Answer(response) => Some(actions::approve::send(app, name.0, response)),
    }
}

/// Adds a line that was typed without a screen to the draft, and sends that unless the line goes on.
pub(super) fn line(app: &mut App, line: &str) -> Vec<Effect> {
    app.viewport.focus = Focus::Composer;
    // Only a line that goes on is one with the next; what else may be left in the draft nobody sees, and Enter alone sends it.
    let draft = app.composer.field.text();
    let begun = if line.is_empty() || draft.ends_with('\n') {
        draft
    } else {
        String::new()
    };
    app.composer.field.set(&format!("{begun}{line}"));
    let mut effects = command::look(app);
    app.composer.commands.list = None;
    effects.extend((actions::SEND.run)(app, ""));
    if !app.composer.field.text().ends_with('\n') {
        // It was an unknown command, and the user was told.
        app.composer.field.clear();
    }
    effects
}

fn chosen(app: &mut App, choice: Choice) -> Vec<Effect> {
    match choice {
        Choice::Mode(mode) => return actions::everywhere::set_mode(app, mode),
        Choice::Model(name) => return actions::everywhere::use_model(app, name),
        Choice::Export { path, overwrites } => {
            let draft = app.composer.field.version();
            return vec![Effect::Export {
                path,
                overwrites,
                draft,
            }];
        }
        Choice::ExportElsewhere(path) => return app.open(actions::conversation::export_prompt(&path)),
        Choice::Replace { path, text } => {
            let draft = app.composer.field.version();
            return vec![Effect::Save {
                path,
                text,
                overwrites: true,
                draft,
            }];
        }
        Choice::Theme(name) => app.appearance.choose(&name, app.preferences.settings.color),
        Choice::Action(action, words) => {
            let counted = app.composer.commands.note(action.name);
            let mut effects = vec![counted];
            effects.extend(action.go(app, &words));
            return effects;
        }
        Choice::Chip(way) => return actions::writing::chip(app, way),
        Choice::Review(verdict, spot) => return actions::review::judge(app, verdict, spot),
        Choice::AcceptAll(changes) => {
            let accept = |it| actions::review::judge(app, Verdict::Accept, it);
            return changes.into_iter().flat_map(accept).collect();
        }
        Choice::ContextLines(more) => return actions::review::show_context(app, more),
        Choice::Commit(documents) => return actions::commit::open(app, documents),
        Choice::Remark(text) => return actions::review::remark(app, text),
        Choice::Branch(turn, is_whole) => return actions::branch::go_to(app, turn, is_whole),
        Choice::Rewind(back) => return actions::undo::go_back(app, back),
        Choice::Trust(answer) => return actions::everywhere::decide_trust(answer),
        Choice::StopCommand(..) if !app.conversation.about.runs => {
            let text = t!("action-runs-nothing", peer = app.conversation.peer());
            return app.toast(text);
        }
        Choice::StopCommand(turn, document) => {
            return vec![Effect::Send(Command::StopCommand { turn, document })];
        }
        Choice::Queue(change) => actions::writing::change_waiting(app, change),
        Choice::Custom(name) => {
            app.composer.field.set(&format!("/{name} "));
            focus_composer(app);
        }
        Choice::Draft(draft) => {
            app.composer.field.set(&draft);
            focus_composer(app);
        }
        Choice::Search(pattern) => app.seek(&pattern),
        Choice::Copy(words) => return actions::copying::copy(app, words),
        Choice::Filter(words) => return actions::finding::show_only(app, &words),
        Choice::Item(item) => return actions::reading::select(app, item),
        Choice::OpenRules(path) => return vec![Effect::OpenRules(path)],
        Choice::Open(path, line) => return vec![Effect::OpenFile { path, line }],
        Choice::Session(it) if it.elsewhere.is_empty() => return vec![Effect::Resume(it.id)],
        Choice::Session(it) => {
            // Another folder has its own settings, its own trust and its own sandbox.
            let line = format!("cd {} && sheaf --resume {}", shell_word(&it.folder), it.id);
            return vec![Effect::Copy {
                text: line,
                what: t!("copied-resume", folder = it.elsewhere),
            }];
        }
        Choice::Reworded(words) => return actions::plan::written(app, words, false),
        Choice::Inserted(words) => return actions::plan::written(app, words, true),
    }
    Vec::new()
}

/// As a shell reads it in one piece.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-~".contains(c);
    if text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The direction of a key that may recall a message: true for a newer one.
fn recall_step(event: KeyEvent) -> Option<bool> {
    row_step(event).filter(|_| event.modifiers.is_empty() || matches!(event.code, KeyCode::Char(_)))
}

/// Up from an empty draft, and both where the draft is a message that was recalled, go through what was sent.
fn recall(app: &mut App, event: KeyEvent) -> bool {
    let field = &mut app.composer.field;
    let history = &mut app.composer.history;
    let text = match recall_step(event) {
        Some(false) if field.is_at_top() && (field.is_empty() || history.at.is_some()) => history.older(&field.text()),
        Some(true) if history.at.is_some() && field.is_at_bottom() => history.newer(),
        _ => return false,
    };
    match text {
        Some(text) => {
            field.set(&text);
            true
        }
        None => false,
    }
}

pub(super) fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    replace_unknown(app, text.starts_with('/'));
    if let Some(overlay) = app.overlays.last_mut() {
        match overlay.paste(text) {
            Some(Answer::Live(choice)) => return chosen(app, choice),
            Some(Answer::Does(effect)) => return vec![effect],
            Some(Answer::Close) => close(app),
            Some(_) => return Vec::new(),
            None => {}
        }
    } else if let Some(place) = app.viewport.question(&app.conversation.transcript)
        && let Some(document) = app.conversation.transcript.get(place)
        && let View::Clarification(view) = document.view()
        && let Some(form) = app.questions.forms.get_mut(&(
            app.conversation.transcript.exchanges[place.exchange].turn,
            document.id.clone(),
        ))
        && form.paste(text, &view)
    {
        return Vec::new();
    }
    if app.viewport.focus == Focus::Transcript {
        focus_composer(app);
    }
    // A file that was dragged onto the terminal is a picture, or its path as it was written.
    if let Some(path) = picture::dragged(text, app.conversation.workspace.home.as_deref()) {
        return vec![Effect::Picture(picture::Source::Path(path, text.to_owned()))];
    }
    // Where a terminal has pictures only in its clipboard, its paste is empty.
    if text.is_empty() {
        return vec![Effect::Picture(picture::Source::Clipboard)];
    }
    app.composer.field.paste(text);
    let mut effects = mention::look(app);
    effects.extend(command::look(app));
    effects
}
