//! The question whether a workspace may act, and news of protected files.

use std::pin::Pin;

use tokio::sync::mpsc;

use super::notices::{now_ms, warn};
use crate::{
    agent::{
        quarantine::{self, QuarantinePage},
        runner::{context_builder::ContextBuilder, sandbox_status, setup::Setup},
        trust::{Standing, TrustAnswer, TrustPage},
    },
    journal::Log,
    link::Asker,
    protocol::{ClarificationResponse, DocumentId, Event, Position, Turn, UserAction},
    sandbox::{LeftFile, Settled},
};

/// A look at what a workspace would do; the flag: the user wants to hear what came of it in any case.
pub type Looking = (bool, Pin<Box<dyn Future<Output = Option<Standing>> + Send>>);

/// The question whether the workspace may act.
pub struct TrustQuestion {
    /// Looks whether the workspace has something that the user is to be asked about.
    pub looking: Option<Looking>,
    /// The question, in its turn, while it is open.
    page: Option<(TrustPage, Turn)>,
    /// Checkers that are off, to be named after the first answer; nothing else asks for trust.
    unasked: Option<Standing>,
    /// The question about protected files that were put aside, in its turn, while it is open.
    left: Option<(QuarantinePage, Turn)>,
    /// Reports about protected files that commands made or changed.
    pub settled: Option<mpsc::UnboundedReceiver<Settled>>,
}

impl TrustQuestion {
    /// Begins to look, where somebody is there to be asked.
    pub fn new(setup: &Setup, context: &ContextBuilder) -> Self {
        Self {
            looking: (setup.asker == Asker::Here).then(|| (false, context.standing())),
            page: None,
            unasked: None,
            left: None,
            settled: setup.workspace.as_ref().and_then(|it| it.commands().settled()),
        }
    }

    /// Returns true if the open question is this document.
    pub fn is(&self, turn: Turn, document: &DocumentId) -> bool {
        let page = self.page.as_ref();
        page.is_some_and(|(page, its)| *its == turn && page.is(document))
    }

    /// Asks about protected files that are new or changed since the program was killed during a command. Without anybody to
    /// ask they stay aside, and a notice names them.
    pub fn ask_about_left(&mut self, files: Vec<LeftFile>, setup: &Setup, log: &Log) {
        if files.is_empty() {
            return;
        }
        if setup.asker != Asker::Here {
            return warn(log, "protected", quarantine::warning(&files));
        }
        if log.last() != Position(0) {
            log.append(now_ms(), QuarantinePage::message());
        }
        let (page, events) = QuarantinePage::open(files);
        self.left = Some((page, log.turn()));
        for event in events {
            log.append(now_ms(), event);
        }
    }

    /// Returns true if a question about files that were put aside is open.
    pub fn asks_about_left(&self) -> bool {
        self.left.is_some()
    }

    /// Takes an answer to that question, or closes it without one. Returns false if it is not open, or not meant.
    pub fn close_left(&mut self, answer: Option<(Turn, &ClarificationResponse)>, setup: &Setup, log: &Log) -> bool {
        let is_meant = |(page, its): &mut (QuarantinePage, Turn)| {
            answer.is_none_or(|(turn, response)| turn == *its && page.is(&response.document_id))
        };
        let (Some((page, turn)), Some(workspace)) = (self.left.take_if(is_meant), &setup.workspace) else {
            return false;
        };
        for event in page.close(answer.map(|it| it.1), workspace) {
            log.append_to(turn, now_ms(), event);
        }
        true
    }

    /// Looks again because the user asks for it, unless the question is open.
    pub fn look_again(&mut self, setup: &Setup, context: &mut ContextBuilder) {
        if self.page.is_none() {
            self.looking = Some((true, context.look_again(setup)));
        }
    }

    /// Opens the question whether the workspace may act, where there is something to ask and nobody else has the word (`is_busy`).
    pub fn ask(&mut self, is_wanted: bool, standing: Option<Standing>, is_busy: bool, log: &Log) {
        self.looking = None;
        let is_held = |it: &Standing| is_wanted && it.shut.is_empty() && it.is_held();
        let asked = |it: &Standing| {
            if is_wanted {
                !it.shut.is_empty() || is_held(it)
            } else {
                !it.asked.is_empty()
            }
        };
        // A project that has only checkers is none to ask about before there is something to check.
        if !is_wanted && standing.as_ref().is_some_and(Standing::asks_for_checkers_only) {
            self.unasked = standing;
            return;
        }
        let Some(mut standing) = standing.filter(asked) else {
            if is_wanted {
                warn(log, "trust", "nothing in this folder needs your trust");
            }
            return;
        };
        let is_held = is_held(&standing);
        if is_wanted {
            standing.asked = std::mem::take(&mut standing.shut);
        }
        if is_held && is_busy {
            warn(log, "trust", "still working: /trust when it has ended");
            return;
        }
        if is_busy || self.page.is_some() {
            let names: Vec<&str> = standing.asked.iter().take(3).map(|it| it.path.as_str()).collect();
            let message = format!(
                "{} files of this folder are off until you trust them ({}): /trust",
                standing.asked.len(),
                names.join(", ")
            );
            warn(log, "trust", message);
            return;
        }
        if log.last() != Position(0) {
            log.append(now_ms(), TrustPage::message());
        }
        let (page, events) = if is_held {
            TrustPage::open_held(&standing)
        } else {
            TrustPage::open(&standing)
        };
        self.page = Some((page, log.turn()));
        for event in events {
            log.append(now_ms(), event);
        }
    }

    /// Names checkers that are off, once, after the first answer.
    pub fn remind(&mut self, setup: &Setup, log: &Log) {
        let Some(standing) = self.unasked.take() else { return };
        let (Some(workspace), Some(paths)) = (&setup.workspace, &setup.paths) else {
            return;
        };
        let (page, _) = TrustPage::open(&standing);
        if page.keep(TrustAnswer::Later, workspace, paths).is_ok() {
            warn(
                log,
                "trust",
                "the project's checkers are off until you trust this folder: /trust",
            );
        }
    }

    /// Closes that question, if it is open; no answer is a no until something changes.
    pub fn close(
        &mut self,
        response: Option<&ClarificationResponse>,
        setup: &Setup,
        context: &mut ContextBuilder,
        log: &Log,
    ) {
        let Some((page, turn)) = self.page.take() else { return };
        let verdict = response.map_or(TrustAnswer::Later, TrustPage::verdict);
        let kept = match (&setup.workspace, &setup.paths) {
            (Some(workspace), Some(paths)) => page.keep(verdict, workspace, paths),
            (Some(_) | None, _) => Err("no folder to save it in".to_owned()),
        };
        let word = match (verdict, &kept) {
            (TrustAnswer::Later, _) if page.is_held() => "Still trusted.".to_owned(),
            (TrustAnswer::Later, _) => "Not trusted. `/trust` to change.".to_owned(),
            (TrustAnswer::Never, Err(why)) => format!("Still trusted: your answer could not be saved. {why}"),
            (TrustAnswer::Trusted, Err(why)) => format!("Not trusted: your answer could not be saved. {why}"),
            (TrustAnswer::Never, Ok(_)) => {
                self.looking = Some((false, context.look_again(setup)));
                "Not trusted, from your next message. You are asked again when a file changes.".to_owned()
            }
            (TrustAnswer::Trusted, Ok(_)) => {
                // What holds from now on is read again, and compared with what was shown.
                self.looking = Some((false, context.look_again(setup)));
                "Trusted, from your next message.".to_owned()
            }
        };
        for event in page.close(response, &word) {
            log.append_to(turn, now_ms(), event);
        }
        let action = match (verdict, kept) {
            (TrustAnswer::Trusted, Ok(_)) => UserAction::Trusted,
            (TrustAnswer::Never, Ok(_)) => UserAction::Distrusted,
            (TrustAnswer::Trusted | TrustAnswer::Never | TrustAnswer::Later, _) => return,
        };
        log.append(now_ms(), Event::Notice(action.notice(&[])));
    }
}

/// Tells the user what was done about protected files, whoever waited for the command. `is_halted` is set when one was changed.
pub fn tell_settled(settled: &Settled, is_halted: &mut bool, setup: &Setup, log: &Log) {
    let mut told = settled.told();
    let more = told.len().saturating_sub(1);
    if let Some(first) = told.first_mut().filter(|_| more > 0) {
        first.push_str(&format!(" (and {more} more)"));
    }
    if settled.is_breach() && !std::mem::replace(is_halted, true) {
        told.push("in this conversation every command now asks, and new top-level files are blocked".to_owned());
        // The header says what holds from now on.
        if let Some(workspace) = &setup.workspace {
            sandbox_status::report(workspace, &setup.hold);
        }
    }
    // One notice: what comes later would take the place of what came before.
    if !told.is_empty() {
        warn(log, "protected", told.join("\n"));
    }
}
