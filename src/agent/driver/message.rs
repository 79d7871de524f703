//! A message of the user's is made ready: what was said before, who answers, what that one takes in.

use std::sync::Arc;

use futures::StreamExt;

use super::{Driver, now_ms};
use crate::{
    agent::{brief::Said, history},
    link::Asker,
    model::{Chosen, Effort, ModelMessage, ModelRequest, Piece, catalogue},
    protocol::{Entry, Event, Mode, Notice, Position, ResponseId, Severity, Submit},
};

impl Driver {
    pub(super) fn submit(&mut self, submit: Submit) {
        if !std::mem::replace(&mut self.is_seeded, true) {
            let entries = self.log.after(Position(0));
            // A server that is offered no tools may refuse calls of them.
            let before = if self.setup.tools.is_empty() {
                history::spoken(&entries)
            } else {
                history::told(&entries)
            };
            self.turn.memory.remember(before);
            let is_title = |it: &Arc<Entry>| matches!(it.event, Event::Title(_));
            self.turn.memory.is_titled = entries.iter().any(is_title);
            self.turn.memory.dollars = spent(&entries);
        }
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
        // What only makes room tells the model nothing.
        let facts = Said {
            is_aside: self.shorten.is_some(),
            ..self.facts(!self.turn.memory.is_opened)
        };
        self.next = Some(self.briefing.brief(submit, facts, &self.setup));
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
        // A conversation that was taken up again has its title: the user's, or one that was thought of then.
        let entries = self.log.after(Position(0));
        let titles = entries.iter().filter_map(|it| match &it.event {
            Event::Title(title) => Some(title),
            _ => None,
        });
        if titles.clone().count() > 1 || titles.clone().any(|it| it.by_user) {
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
