//! The question whether a workspace may act, and what became of files that are protected.

use super::{Driver, now_ms};
use crate::{
    agent::{
        hold,
        trust::{Page, Standing, Verdict},
    },
    protocol::{ClarificationResponse, Position},
    sandbox::Settled,
};

impl Driver {
    /// Opens the question whether the workspace may act, where there is something to ask and nobody else has the word.
    pub(super) fn ask_for_trust(&mut self, is_wanted: bool, standing: Option<Standing>) {
        let asked = |it: &Standing| {
            if is_wanted {
                !it.shut.is_empty()
            } else {
                !it.asked.is_empty()
            }
        };
        let Some(mut standing) = standing.filter(asked) else {
            if is_wanted {
                self.notice("trust", "nothing here waits for your trust".to_owned());
            }
            return;
        };
        if is_wanted {
            standing.asked = std::mem::take(&mut standing.shut);
        }
        let is_free = !self.turn.is_running() && self.next.is_none() && self.queue.is_empty() && self.page.is_none();
        if !is_free {
            let names: Vec<&str> = standing.asked.iter().take(3).map(|it| it.path.as_str()).collect();
            let message = format!(
                "{} of this folder do nothing before you trust them ({}): /trust asks about it",
                standing.asked.len(),
                names.join(", ")
            );
            self.notice("trust", message);
            return;
        }
        if self.log.last() != Position(0) {
            self.log.append(now_ms(), Page::message());
        }
        let (page, events) = Page::open(&standing);
        self.page = Some((page, self.log.turn()));
        for event in events {
            self.log.append(now_ms(), event);
        }
    }

    /// Closes that question, if it is open; no answer is a no for now.
    pub(super) fn take_trust(&mut self, response: Option<&ClarificationResponse>) {
        let Some((page, turn)) = self.page.take() else { return };
        let verdict = response.map_or(Verdict::Later, Page::verdict);
        let kept = match (&self.setup.workspace, &self.setup.paths) {
            (Some(workspace), Some(paths)) => page.keep(verdict, workspace, paths),
            (Some(_) | None, _) => Err("there is nowhere to keep it".to_owned()),
        };
        let word = match (verdict, &kept) {
            (Verdict::Later, _) => "Nothing of this folder acts. /trust asks again.".to_owned(),
            (Verdict::Trusted | Verdict::Never, Err(why)) => {
                format!("Nothing of this folder acts: what you said could not be kept. {why}")
            }
            (Verdict::Never, Ok(_)) => "Nothing of this folder acts. It is asked again when a file changes.".to_owned(),
            (Verdict::Trusted, Ok(_)) => {
                // What holds from now on is read again, and compared with what was shown.
                self.looking = Some((false, self.briefing.look_again(&self.setup)));
                "These files act from your next message on.".to_owned()
            }
        };
        for event in page.close(response, &word) {
            self.log.append_to(turn, now_ms(), event);
        }
    }

    /// What was done about protected files is said to the user, whoever waited for the command.
    pub(super) fn tell_settled(&mut self, settled: &Settled) {
        let mut told = settled.told();
        let more = told.len().saturating_sub(1);
        if let Some(first) = told.first_mut().filter(|_| more > 0) {
            first.push_str(&format!(" (and {more} more)"));
        }
        if settled.is_breach() && !std::mem::replace(&mut self.turn.memory.is_halted, true) {
            told.push(
                "from here on every command of this conversation asks, and the top of the workspace is held again"
                    .to_owned(),
            );
            self.tell_hold();
        }
        // One notice: what comes later would take the place of what came before.
        if !told.is_empty() {
            self.notice("protected", told.join("\n"));
        }
    }

    /// The header says what holds from now on.
    pub(super) fn tell_hold(&self) {
        if let Some(workspace) = &self.setup.workspace {
            hold::tell(workspace, &self.setup.hold);
        }
    }
}
