//! Changes the state by messages, with one arm per source. The work of a key is in the actions.

mod follow;
mod keys;
mod mouse;
mod outcomes;

use std::sync::Arc;

use ratatui::layout::Position;

use super::{
    actions,
    app::{AnswerFacts, App, Effect, Focus, Questions, backfill, inline},
    msg::Msg,
    overlays::Sessions,
    terminal::{ImageProtocol, Input, Reply},
};
use crate::{
    link::Link,
    protocol::{Command, Query},
    t,
};

/// Lines that one notch of the wheel moves.
const WHEEL_LINES: isize = 3;

pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    // What is clicked is what was drawn.
    if let Msg::Input(Input::Click { x, y }) = msg
        && let Some(name) = mouse::footer_key(app, Position { x, y })
    {
        app.viewport.bars = None;
        return mouse::press_key(app, &name);
    }
    // Whether the growth of an answer changes anything around it is for `follow` to say.
    if !matches!(msg, Msg::Entries(_) | Msg::Colours) {
        app.viewport.bars = None;
    }
    let is_input = matches!(msg, Msg::Input(_));
    let must_end = matches!(msg, Msg::End(_));
    let mut effects = told(app, msg);
    if !must_end {
        stay_for_commits(app, &mut effects);
    }
    if is_input {
        effects.extend(app.look_back_from_the_top());
    }
    effects
}

/// Keeps the conversation while the hooks of its commit run: what they end with is part of it.
fn stay_for_commits(app: &mut App, effects: &mut Vec<Effect>) {
    let commits = &mut app.conversation.commits;
    let is_commit = |it: &Effect| matches!(it, Effect::Ask(ask) if matches!(ask.query, Query::Commit(_)));
    if effects.iter().any(is_commit) {
        commits.running += 1;
    }
    if commits.running == 0 {
        return;
    }
    let has_warned = commits.has_warned;
    let before = effects.len();
    effects.retain(|it| match it {
        Effect::Quit(_) => {
            commits.has_warned = true;
            has_warned
        }
        Effect::Begin | Effect::Resume(_) => false,
        _ => true,
    });
    if effects.len() < before {
        app.toast(t!("commit-running-stay"));
    }
}

fn told(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Input(Input::Key(event)) => keys::key(app, event),
        Msg::Input(Input::Paste(text)) => keys::paste(app, &text),
        Msg::Input(Input::Wheel { down, .. }) => {
            let by = if down { WHEEL_LINES } else { -WHEEL_LINES };
            match app.overlays.last_mut() {
                Some(layer) => layer.wheel(by.signum()),
                None => app.with_pane(|pane, context| pane.scroll(by, context)),
            }
            Vec::new()
        }
        Msg::Input(Input::Click { x, y }) => mouse::press(app, Position { x, y }),
        Msg::Input(Input::Drag { x, y }) => {
            mouse::drag(app, x, y);
            Vec::new()
        }
        Msg::Input(Input::Release { x, y }) => mouse::release(app, x, y),
        Msg::Input(Input::Focus(has_focus)) => {
            if has_focus {
                app.terminal.clicks.came_ms = Some(app.now_ms);
            }
            Vec::new()
        }
        Msg::Input(Input::Reply(reply)) => answered(app, reply),
        Msg::Resize(width, height) => {
            app.terminal.size = (width, height);
            Vec::new()
        }
        Msg::Entries(entries) => follow::follow(app, &entries),
        Msg::Switch(link) => switch(app, link),
        Msg::Done(outcome) => outcomes::done(app, outcome),
        Msg::Colours => {
            app.appearance.colours_version += 1;
            Vec::new()
        }
        Msg::Tick | Msg::SandboxStatus => Vec::new(),
        Msg::Line(text) => keys::line(app, &text),
        Msg::Answer(turn, response) => actions::approve::send(app, turn, response),
        Msg::Interrupt if app.conversation.is_busy() => (actions::everywhere::INTERRUPT.run)(app, ""),
        Msg::Interrupt => vec![Effect::Quit(130)],
        Msg::End(code) => vec![Effect::Quit(code)],
    }
}

fn answered(app: &mut App, reply: Reply) -> Vec<Effect> {
    match reply {
        Reply::Background(colour) => {
            if app.appearance.themes.seen.reported == Some(colour) {
                return Vec::new();
            }
            app.appearance.themes.seen.reported = Some(colour);
            let name = app.appearance.themes.chosen.clone();
            app.appearance.choose(&name, app.preferences.settings.color);
            if app.appearance.themes.seen.remembered == Some(colour) {
                Vec::new()
            } else {
                vec![Effect::Remember(colour)]
            }
        }
        Reply::Keyboard(_) => {
            app.terminal.has_keyboard_protocol = true;
            Vec::new()
        }
        // Which colours it has now is asked, as at the beginning.
        Reply::Scheme => vec![Effect::AskColours],
        Reply::Attributes { sixel } => {
            if sixel {
                app.draws_by(ImageProtocol::Sixel);
            }
            Vec::new()
        }
        Reply::Named(named) => {
            app.terminal_is(named);
            Vec::new()
        }
        Reply::Cell(wide, high) => {
            app.cells_are(Some((wide, high)));
            Vec::new()
        }
    }
}

/// Puts another link in the place of this one. What waited for the old one goes to the new one.
fn switch(app: &mut App, link: Arc<dyn Link>) -> Vec<Effect> {
    app.conversation.about = link.about();
    app.conversation.link = link;
    app.conversation.transcript = backfill::beginning(app.conversation.link.log(), app.conversation.reads_whole).0;
    app.conversation.backfill.reset();
    app.viewport.pane.reset();
    if let Some(inline) = &mut app.terminal.inline {
        inline.flowed = inline::Flowed::default();
        inline.printed = 0;
    }
    (app.viewport.search, app.viewport.selection) = (None, None);
    app.questions = Questions::default();
    app.terminal.notices.clear();
    app.composer.model = None;
    app.conversation.is_unstored = false;
    app.conversation.side_answer = None;
    app.conversation.answer = AnswerFacts::default();
    app.viewport.focus = Focus::Composer;
    // The page may have been read while this conversation was being opened.
    let is_listed = app.overlays.find::<Sessions>(|_| true).is_some();
    let mut effects = Vec::from_iter(is_listed.then_some(Effect::RelistSessions));
    if app.composer.queue.is_empty() {
        return effects;
    }
    let about = &app.conversation.about;
    let is_tour = about.is_replay || about.is_scripted;
    if is_tour || about.written_elsewhere.is_some() {
        follow::take_back_queue(app);
        if is_tour {
            // The next Enter would give the message, which is for a model, to the tour.
            effects.extend(actions::writing::STASH.go(app, ""));
        }
    } else {
        effects.push(Effect::Send(Command::Submit(app.composer.queue.remove(0))));
    }
    effects
}
