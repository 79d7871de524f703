//! The question whether the workspace may act, and news of protected files.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
};

use super::notices::{now_ms, warn};
use crate::{
    agent::{
        quarantine::{self, QuarantinePage},
        runner::{context_builder::ContextBuilder, sandbox_status, setup::Setup},
        trust::Standing,
    },
    journal::Log,
    link::{
        Asker,
        local::{Inbox, Request},
    },
    os::lazy_channel,
    protocol::{ClarificationResponse, Event, Position, TrustAnswer, TrustReport, Turn, UserAction},
    sandbox::{self, LeftBehind, Settled},
};

/// A look at what a workspace would do.
pub type Looking = Pin<Box<dyn Future<Output = Option<Standing>> + Send>>;

/// The question whether the workspace may act: a line that holds nobody up, and a page.
pub struct TrustQuestion {
    /// Looks whether the workspace has something that the user is to be asked about.
    pub looking: Option<Looking>,
    /// The question that is open.
    open: Option<Standing>,
    /// What the page showed last: an answer is about that.
    reported: Arc<Mutex<Option<Standing>>>,
    /// Checkers that are off, to be asked about after the first answer; nothing else asks for trust.
    unasked: Option<Standing>,
    /// The question about protected files that were put aside, in its turn, while it is open.
    left: Option<(QuarantinePage, Turn)>,
    /// Reports about protected files that commands made or changed.
    pub settled: Option<lazy_channel::Inbox<Settled>>,
}

impl TrustQuestion {
    /// Begins to look, where somebody is there to be asked.
    pub fn new(setup: &Setup, context: &ContextBuilder) -> Self {
        Self {
            looking: (setup.asker == Asker::Here).then(|| context.standing()),
            open: None,
            reported: Arc::default(),
            unasked: None,
            left: None,
            settled: setup.workspace.as_ref().and_then(|it| it.commands().settled()),
        }
    }

    /// Asks about protected files that are new or changed since the program was killed during a command. Without anybody to
    /// ask they stay aside, and a notice names them.
    pub fn ask_about_left(&mut self, left: LeftBehind, setup: &Setup, log: &Log) {
        if left.is_empty() {
            return;
        }
        if setup.asker != Asker::Here || left.aside.is_empty() {
            return warn(log, "protected", quarantine::warning(&left));
        }
        if log.last() != Position(0) {
            log.append(now_ms(), QuarantinePage::message());
        }
        let (page, events) = QuarantinePage::open(left);
        self.left = Some((page, log.turn()));
        for event in events {
            log.append(now_ms(), event);
        }
    }

    /// Returns true while that question is open: what was said before it waits.
    pub const fn is_asking_about_left(&self) -> bool {
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

    /// Opens the question, where there is something to ask.
    pub fn ask(&mut self, standing: Option<Standing>, log: &Log) {
        self.looking = None;
        let Some(standing) = standing.filter(|it| !it.asked.is_empty()) else {
            return;
        };
        // A project that has only checkers is none to ask about before there is something to check.
        if standing.asks_for_checkers_only() {
            self.unasked = Some(standing);
            return;
        }
        self.open(standing, log);
    }

    fn open(&mut self, standing: Standing, log: &Log) {
        log.append(now_ms(), Event::Notice(standing.question().notice()));
        self.open = Some(standing);
    }

    /// Asks about checkers that are off, after the first answer.
    pub fn remind(&mut self, log: &Log) {
        if let Some(standing) = self.unasked.take() {
            self.open(standing, log);
        }
    }

    /// Looks again because the user wants to see it.
    pub fn report(
        &self,
        setup: &Setup,
        context: &mut ContextBuilder,
    ) -> impl Future<Output = TrustReport> + Send + use<> {
        let (looking, reported) = (context.look_again(setup), Arc::clone(&self.reported));
        async move {
            let standing = looking.await;
            let report = standing.as_ref().map(Standing::report).unwrap_or_default();
            *reported.lock().unwrap_or_else(PoisonError::into_inner) = standing;
            report
        }
    }

    /// Keeps the answer to what was reported last, and reads anew what holds from now on.
    pub fn decide(
        &mut self,
        answer: TrustAnswer,
        setup: &Setup,
        context: &mut ContextBuilder,
        log: &Log,
    ) -> Result<(), String> {
        let reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner).take();
        let standing = reported.ok_or("nothing was asked")?;
        keep(&standing, answer, setup)?;
        if answer == TrustAnswer::Distrust {
            context.servers().end();
        }
        self.open = None;
        let action = match answer {
            TrustAnswer::Trust => UserAction::Trusted,
            TrustAnswer::Distrust => UserAction::Distrusted,
            TrustAnswer::Later => UserAction::TrustPassed,
        };
        log.append(now_ms(), Event::Notice(action.notice(&[])));
        self.looking = Some(context.look_again(setup));
        Ok(())
    }

    /// Closes the question, if it is open: who goes on has not said yes, and is asked again when something changes.
    pub fn pass(&mut self, setup: &Setup, log: &Log) {
        let Some(standing) = self.open.take() else { return };
        if let Err(why) = keep(&standing, TrustAnswer::Later, setup) {
            warn(log, "trust", why);
        }
        log.append(now_ms(), Event::Notice(UserAction::TrustPassed.notice(&[])));
    }
}

/// Looks at what a command has left whose program was killed, before anything of the workspace is read. That may take seconds, so
/// it does not happen on this thread; the requests that come meanwhile are given back, too. `None`: whoever made them has gone.
///
/// A gateway looks once, for all its clients.
pub async fn look_back(setup: &Setup, inbox: &mut Inbox) -> Option<(LeftBehind, Vec<Request>)> {
    let mut early = Vec::new();
    let workspace = setup
        .workspace
        .clone()
        .filter(|it| !setup.asker.is_afar() && it.has_lists());
    let Some(workspace) = workspace else {
        return Some((LeftBehind::default(), early));
    };
    // When this ends, the other end of the channel has gone, and nothing is moved that nobody would hear of.
    let (_alive, ended) = tokio::sync::watch::channel(());
    let is_wanted = move || ended.has_changed().is_ok();
    let mut looking = tokio::task::spawn_blocking(move || workspace.left_behind(is_wanted));
    loop {
        tokio::select! {
            left = &mut looking => {
                let left = left.unwrap_or_else(|error| {
                    tracing::error!(%error, "it is not known what a command has left");
                    LeftBehind::default()
                });
                return Some((left, early));
            }
            request = inbox.recv() => early.push(request?),
        }
    }
}

fn keep(standing: &Standing, answer: TrustAnswer, setup: &Setup) -> Result<(), String> {
    match (&setup.workspace, &setup.paths) {
        (Some(workspace), Some(paths)) => {
            let kept = standing.keep(answer, workspace, paths);
            kept.map(drop).map_err(|it| it.to_string())
        }
        (Some(_) | None, _) => Err("no folder to save it in".to_owned()),
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
        let code = if settled.gaps.is_some() {
            "sandbox-partial"
        } else {
            "protected"
        };
        warn(log, code, told.join("\n"));
    }
    sandbox::said(settled);
}
