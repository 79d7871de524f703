//! A message of the user's is made ready: what was said before, who answers, what that one takes in.

use std::{collections::HashSet, sync::Arc};

use futures::StreamExt;

use super::{Driver, now_ms};
use crate::{
    agent::{brief::Said, history, told::Told},
    journal::Recent,
    link::Asker,
    model::{Chosen, Effort, ModelMessage, ModelRequest, Piece, catalogue},
    protocol::{Entry, Event, Mode, Notice, Position, ResponseId, Severity, Submit},
};

/// Few models of which nobody knows it take in more, in tokens.
const USUAL_WINDOW: u64 = 300_000;

impl Driver {
    pub(super) fn submit(&mut self, submit: Submit) {
        self.seen.begin(u64::from(self.log.turn().0) + 1);
        self.briefing.begin();
        let was = self.mode.replace(submit.mode);
        if was == Some(Mode::Debug) && submit.mode != Mode::Debug {
            self.look_for_marks();
        }
        if self.setup.asker == Asker::Here && !submit.mode.is_read_only() {
            self.look_first();
        }
        self.choose(submit.model.as_deref());
        self.size_up();
        self.remember_once();
        // What only makes room tells the model nothing.
        let facts = Said {
            is_aside: self.shorten.is_some(),
            ..self.facts(!self.turn.memory.is_opened)
        };
        self.next = Some(self.briefing.brief(submit, facts, &self.setup));
    }

    /// What was said before this program ran, when it is needed first.
    pub(super) fn remember_once(&mut self) {
        if !std::mem::replace(&mut self.is_seeded, true) {
            self.remember();
        }
    }

    fn remember(&mut self) {
        if let Some(recent) = self.log.recent().cloned()
            && let Some(before) = self.said_lately(&recent)
        {
            let is_whole = before.has_summary();
            self.turn.memory.remember(before);
            self.turn.memory.is_titled = true;
            if self.setup.settings.agent.max_dollars_in_all.is_some() {
                let earlier = self.log.spent_earlier().dollars.unwrap_or_default();
                self.turn.memory.dollars = earlier + spent(&self.log.after(recent.after));
            }
            if !is_whole {
                let notice = Notice {
                    severity: Severity::Info,
                    code: "remembered-lately".to_owned(),
                    message: "the conversation is longer than any request: the model is told the later part of it"
                        .to_owned(),
                    document: None,
                };
                self.log.append(now_ms(), Event::Notice(notice));
            }
            return;
        }
        let entries = self.log.after(Position(0));
        let before = self.told(&entries);
        self.turn.memory.remember(before);
        let is_title = |it: &Arc<Entry>| matches!(it.event, Event::Title(_));
        self.turn.memory.is_titled = entries.iter().any(is_title);
        self.turn.memory.dollars = spent(&entries);
    }

    /// Of a conversation that was opened at its end, that end, where the model could be told no more anyway: a summary stands
    /// for what was before, or it fills the window. Reading all of it would take seconds and hundreds of megabytes.
    fn said_lately(&self, recent: &Recent) -> Option<Told> {
        let window = self.turn.memory.window.unwrap_or(USUAL_WINDOW);
        let is_enough = |it: &Told| !it.is_short && (it.has_summary() || it.size_of(0..) >= window);
        let told = self.told(&self.log.after(recent.after));
        if is_enough(&told) {
            return Some(told);
        }
        let told = self.told(&self.log.lately()?);
        is_enough(&told).then_some(told)
    }

    fn told(&self, entries: &[Arc<Entry>]) -> Told {
        // A server that is offered no tools may refuse calls of them.
        if self.setup.tools.is_empty() {
            history::spoken(entries)
        } else {
            history::told(entries)
        }
    }

    /// Remembers what the model that answers takes in: what the settings or the catalogue say, else what its server says,
    /// which is asked once.
    pub(super) fn size_up(&mut self) {
        let Chosen { provider, model } = &self.chosen;
        let known = catalogue::known(model, &self.setup.settings.models).window;
        let asked = (provider.peer().to_owned(), model.clone());
        self.turn.memory.window = known.or(self.windows.get(&asked).copied().flatten());
        if known.is_some() || !self.setup.asker.is_attended() || self.windows.contains_key(&asked) {
            return;
        }
        self.windows.insert(asked.clone(), None);
        let provider = Arc::clone(provider);
        self.sizing.push(Box::pin(async move {
            let model = asked.1.clone();
            if let Some(window) = provider.window(model.clone()).await {
                return (asked, Some(window));
            }
            let listed = provider.models().await.unwrap_or_default();
            let found = listed.iter().find(|it| it.id == model || model.is_empty());
            (asked, found.and_then(|it| it.window))
        }));
    }

    pub(super) fn facts(&self, is_first: bool) -> Said {
        Said {
            response: ResponseId::fresh(),
            is_first,
            is_aside: false,
            chosen: self.chosen.clone(),
            seen: Arc::clone(&self.seen),
            log: Arc::clone(&self.log),
        }
    }

    /// Who answers from here on: a model of the provider, or another provider's as `provider/model`.
    pub(super) fn choose(&mut self, wanted: Option<&str>) {
        let provider = Arc::clone(&self.setup.provider);
        let Some(wanted) = wanted.filter(|it| !it.is_empty()) else {
            self.chosen = Chosen {
                provider,
                model: self.setup.model.clone(),
            };
            return;
        };
        let is_elsewhere = wanted
            .split_once('/')
            .is_some_and(|(name, _)| self.setup.settings.providers.contains_key(name));
        if is_elsewhere {
            match self.setup.roles.named(wanted) {
                Ok(chosen) => return self.chosen = chosen,
                Err(failure) => {
                    let notice = Notice {
                        severity: Severity::Error,
                        code: "no-such-model".to_owned(),
                        message: failure.message.into(),
                        document: None,
                    };
                    self.log.append(now_ms(), Event::Notice(notice));
                }
            }
        }
        self.chosen = Chosen {
            provider,
            model: wanted.to_owned(),
        };
    }

    /// Asks the model for side jobs for a title, once, where there is one.
    pub(super) fn think_of_title(&mut self) {
        if std::mem::replace(&mut self.has_title, true) || !self.setup.asker.is_attended() {
            return;
        }
        let Ok(Some(fast)) = self.setup.roles.fast() else {
            return;
        };
        // A long one has had time for it.
        if self.log.recent().is_some() {
            return;
        }
        // A conversation that was taken up again has its title: the user's, or one that was thought of then.
        let entries = self.log.after(Position(0));
        let titles = entries.iter().filter_map(|it| match &it.event {
            Event::Title(title) => Some(title),
            _ => None,
        });
        // One that stands in its file several times was only repeated there: it is the beginning of the first message.
        let texts: HashSet<&str> = titles.clone().map(|it| it.text.as_str()).collect();
        if texts.len() > 1 || titles.clone().any(|it| it.by_user) {
            return;
        }
        let mut said = history::spoken(&self.log.after(Position(0))).messages;
        said.truncate(2);
        said.push(ModelMessage::user(
            "Give this conversation a title of at most six words, in its language. Answer with the title alone.",
        ));
        let request = ModelRequest {
            model: fast.model,
            messages: said,
            effort: Some(Effort::Off),
            ..ModelRequest::default()
        };
        let mut pieces = fast.provider.stream(request);
        self.titles.push(Box::pin(async move {
            let mut title = String::new();
            while let Some(piece) = pieces.next().await {
                match piece {
                    Piece::Text(text) if title.len() < 400 => title.push_str(&text),
                    Piece::Error(_) => return None,
                    _ => {}
                }
            }
            let line = title.lines().map(str::trim).find(|it| !it.is_empty())?;
            let line = line.trim_matches(['"', '#', '*', ' ', '.']);
            (!line.is_empty() && line.chars().count() <= 80).then(|| line.to_owned())
        }));
    }
}

/// What the answers of a conversation have cost, as far as it was known.
pub(super) fn spent(entries: &[Arc<Entry>]) -> f64 {
    let cost = |it: &Arc<Entry>| match &it.event {
        Event::Done(done) => done.extra_usage.get("costUsd")?.as_f64(),
        _ => None,
    };
    entries.iter().filter_map(cost).sum()
}
