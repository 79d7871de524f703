//! What is judged of a call before it runs, and again when rules have come.

use super::{
    super::{Effect, Fault, Memory, Phase, Prepared, Preview, Purpose, Running},
    Job, Stage,
};
use crate::{
    agent::{
        approval::{self, Facts, Rules, RunMode, Verdict},
        tool_selection,
    },
    extensions::hooks::Decision,
    link::Asker,
    protocol::Permission,
    sandbox::Place,
    tools::{Access, Tool, Work},
};

impl Running {
    /// Judges a call that is prepared: lets it run, rejects it, or asks the user.
    pub fn judge(&mut self, job: &mut Job, memory: &Memory) {
        let Some(tool) = job.tool.clone() else { return };
        if let Some(fault) = self.forbidden_command(&job.prepared) {
            return self.refuse(job, &fault);
        }
        let facts = self.facts(memory, &job.prepared);
        let settings = &self.setup.settings;
        let (verdict, is_bound) = self.verdict(job, &tool, &facts);
        let verdict = match verdict {
            Verdict::Ask(_)
                if !facts.is_attended && tool_selection::must_ask(settings, &tool, &job.prepared.accesses) =>
            {
                job.refusal.missing = Some(Vec::new());
                Verdict::Deny(format!("{} needs approval, and nobody can give it", tool.name))
            }
            // A program decides no more than --force does.
            Verdict::Ask(question) if self.setup.asker == Asker::Program && question.needs_person => {
                job.refusal.missing = Some(Vec::new());
                job.refusal.needs_person = true;
                Verdict::Deny(format!("{}; only a person at the screen can allow it", question.why))
            }
            // Whoever typed the command has decided on it.
            Verdict::Ask(question) if self.is_decided_by_typing(&question, &facts) => Verdict::Allow,
            verdict => verdict,
        };
        // A bound that was set is no question, and a person could not answer it.
        if matches!(verdict, Verdict::Deny(_)) && !facts.is_attended && !is_bound && job.refusal.missing.is_none() {
            let attended = Facts {
                is_attended: true,
                ..facts
            };
            if let Verdict::Ask(question) = approval::judge(&job.prepared.accesses, tool.class, &attended) {
                job.refusal.missing = Some(question.always.iter().map(ToString::to_string).collect());
                job.refusal.needs_person = question.needs_person;
            } else {
                let rules = Rules {
                    deny: Vec::new(),
                    ..facts.rules.clone()
                };
                let undenied = Facts { rules: &rules, ..facts };
                // What is hidden because a rule forbids it is refused without the rule, too, and for another reason.
                job.refusal.is_forbidden = approval::judge(&job.prepared.accesses, tool.class, &undenied) != verdict;
            }
        }
        let verdict = if self.setup.asker.is_afar() {
            from_afar(verdict, job, &facts)
        } else {
            verdict
        };
        match verdict {
            Verdict::Allow => job.stage = Stage::Ready,
            Verdict::Deny(reason) => {
                let fault = Fault::new("TOOL_REJECTED", reason);
                self.reject(job, &fault);
            }
            Verdict::Ask(_) if job.prepared.preview == Preview::Wanted => {
                job.stage = Stage::Preparing;
                let proposal = job.prepared.proposal.as_ref();
                self.output.effects.push(Effect::Preview {
                    job: job.id,
                    changes: proposal.map(|it| it.changes.clone()).unwrap_or_default(),
                });
            }
            Verdict::Ask(question) => {
                self.calls.sent_back.clear();
                job.stage = Stage::Asking;
                job.was_asked = true;
                self.ask_approval(job, &tool, &question, memory);
            }
        }
    }

    /// Returns true for the question about a command that the user just typed, unless the reason for it is a rule or a hook of
    /// theirs, something protected, or git in a repository that was not there before.
    fn is_decided_by_typing(&self, question: &approval::Question, facts: &Facts<'_>) -> bool {
        self.setup.purpose == Purpose::Typed
            && self.setup.asker == Asker::Here
            && !question.needs_person
            && !question.is_wanted
            && !facts.is_new_repository
    }

    /// The verdict of rules and settings; true if a bound in the settings is the reason.
    pub fn verdict(&self, job: &Job, tool: &Tool, facts: &Facts<'_>) -> (Verdict, bool) {
        let settings = &self.setup.settings;
        if let Some(path) = tool_selection::out_of_bounds(settings, &tool.name, &job.prepared.accesses) {
            let reason = format!("`{path}` is not among the paths that {} may touch", tool.name);
            return (Verdict::Deny(reason), true);
        }
        let accesses = &job.prepared.accesses;
        if let Some(name) = tool_selection::switched_off(settings, accesses, self.mode) {
            return (Verdict::Deny(format!("{name} is switched off in the settings")), true);
        }
        let verdict = approval::judge(accesses, tool.class, facts);
        let is_asked = verdict == Verdict::Allow
            && tool_selection::must_ask(settings, tool, accesses)
            && facts.run != RunMode::Force;
        let verdict = if is_asked {
            Verdict::Ask(approval::Question {
                why: format!("your settings ask before every use of {}", tool.name),
                is_wanted: true,
                ..approval::Question::default()
            })
        } else {
            verdict
        };
        let is_afar = self.setup.asker.is_afar();
        (by_hook(verdict, &job.prepared, facts, is_afar), false)
    }

    /// The facts that calls are judged by now.
    pub fn facts<'a>(&self, memory: &'a Memory, prepared: &'a Prepared) -> Facts<'a> {
        Facts {
            mode: self.mode,
            run: memory.policy.run,
            tier: prepared.tier,
            gaps: &prepared.gaps,
            rules: &memory.policy.rules,
            is_attended: self.setup.asker.is_attended(),
            is_halted: memory.is_halted,
            limit_reached: prepared.limit_reached,
            is_new_repository: prepared.is_new_repository,
            is_sandbox_off: memory.policy.is_sandbox_off,
            remotes: &prepared.remotes,
        }
    }

    /// Judges again what waits for the user: a rule that was just given may answer it.
    pub fn judge_again(&mut self, memory: &mut Memory) {
        let Some(mut batch) = self.take_batch() else { return };
        // Of what was looked at hunk by hunk, the rest is not for a rule to say.
        let open = |it: &&mut Job| it.stage == Stage::Asking && it.said.is_empty();
        for job in batch.jobs.iter_mut().filter(open) {
            let Some(tool) = job.tool.as_ref().filter(|it| !matches!(it.work, Work::Turn(_))) else {
                continue;
            };
            let facts = self.facts(memory, &job.prepared);
            if self.verdict(job, tool, &facts).0 == Verdict::Allow {
                self.close_approvals(job.id, None);
                job.stage = Stage::Ready;
            }
        }
        self.phase = Phase::Jobs(batch);
        self.advance(memory);
    }
}

/// The verdict with what hooks say: they make it stricter. A yes of theirs leaves out an ordinary question about what the sandbox
/// holds. It never lifts a refusal, nor a question that the user's rules and settings want, that is for a person, or that is
/// about more than the sandbox allows; and it says nothing to a client of a gateway.
fn by_hook(verdict: Verdict, prepared: &Prepared, facts: &Facts<'_>, is_afar: bool) -> Verdict {
    let hook = &prepared.hook;
    match (hook.decision, verdict) {
        (_, Verdict::Deny(why)) => Verdict::Deny(why),
        (Some(Decision::Deny), _) => Verdict::Deny(hook.reason.clone()),
        (Some(Decision::Ask), Verdict::Allow) if facts.run == RunMode::Force => Verdict::Allow,
        (Some(Decision::Ask), Verdict::Allow | Verdict::Ask(_)) if !facts.is_attended => Verdict::Deny(format!(
            "a hook asks for approval, and nobody can give it: {}",
            hook.reason
        )),
        (Some(Decision::Ask), verdict) => {
            let why = if hook.reason.is_empty() {
                "a hook asks".to_owned()
            } else {
                format!("a hook asks: \u{201c}{}\u{201d}", hook.reason)
            };
            let question = match verdict {
                Verdict::Ask(question) => approval::Question {
                    why: format!("{}; {why}", question.why),
                    is_wanted: true,
                    always: Vec::new(),
                    session: Vec::new(),
                    ..question
                },
                Verdict::Allow | Verdict::Deny(_) => approval::Question {
                    why,
                    is_wanted: true,
                    ..approval::Question::default()
                },
            };
            Verdict::Ask(question)
        }
        (Some(Decision::Allow), Verdict::Ask(question))
            if hook.lifts_question
                && !is_afar
                && !question.needs_person
                && !question.is_protected
                && !question.is_wanted
                && !prepared.accesses.iter().any(is_unheld(facts))
                && !prepared.accesses.iter().any(goes_beyond) =>
        {
            Verdict::Allow
        }
        (Some(Decision::Allow) | None, verdict) => verdict,
    }
}

/// Returns true for what needs more than the sandbox gives by itself.
fn goes_beyond(access: &Access) -> bool {
    match access {
        Access::Command { permissions, .. } => !permissions.is_empty(),
        Access::Read(file) | Access::Write(file) | Access::Delete(file) => {
            matches!(file.place, Place::Outside | Place::Hidden)
        }
        Access::Fetch { .. } | Access::Search | Access::Mcp { .. } => false,
    }
}

/// The client of a gateway says yes to what the sandbox holds, inside the workspace, for its own conversation: anything else
/// is for whoever runs the gateway to allow.
pub fn from_afar(verdict: Verdict, job: &Job, facts: &Facts<'_>) -> Verdict {
    let is_beyond = job.prepared.accesses.iter().any(|it| match it {
        Access::Read(file) | Access::Write(file) | Access::Delete(file) => {
            matches!(file.place, Place::Outside | Place::Hidden)
        }
        Access::Command { permissions, .. } => {
            permissions.contains(&Permission::All) || facts.tier == approval::Tier::None
        }
        Access::Fetch { .. } | Access::Search | Access::Mcp { .. } => false,
    });
    match verdict {
        Verdict::Ask(question) if is_beyond || question.is_protected => {
            Verdict::Deny(format!("{}; a client of this gateway cannot allow it", question.why))
        }
        Verdict::Ask(question) => Verdict::Ask(approval::Question {
            always: Vec::new(),
            ..question
        }),
        // Even a rule does not let what comes from elsewhere out of the sandbox.
        Verdict::Allow if job.prepared.accesses.iter().any(is_unheld(facts)) => {
            Verdict::Deny("without a sandbox, clients of this gateway cannot run commands".to_owned())
        }
        verdict @ (Verdict::Allow | Verdict::Deny(_)) => verdict,
    }
}

/// Commands that run outside of any sandbox.
pub fn is_unheld(facts: &Facts<'_>) -> impl Fn(&Access) -> bool {
    let has_none = facts.tier == approval::Tier::None;
    move |it| match it {
        Access::Command { permissions, .. } => has_none || permissions.contains(&Permission::All),
        Access::Read(_) | Access::Write(_) | Access::Delete(_) => false,
        Access::Fetch { .. } | Access::Search | Access::Mcp { .. } => false,
    }
}
