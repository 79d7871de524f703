//! The fold of a conversation: turns, each a message and its response, and the live list of todos.
//!
//! Pure and total, like the fold of a response that it is made of. It does not know whether it is live or replayed; news
//! is what the caller makes of the [`ResponseChange`] that comes back.

mod branch;
pub mod object;
pub mod query;

pub mod approved;
pub mod blame;
mod receipt;
mod todos;

use std::{collections::HashMap, sync::Arc};

pub use branch::Fork;
pub use object::{ObjectError, object, read};
pub use receipt::{Receipt, has_done_something};
pub use todos::{Todo, Todos};

use crate::protocol::{
    Address, Branch, Cost, Document, DocumentId, Done, Entry, Event, FinishReason, Kind, Message, Outcome, Progress,
    QuestionKind, Response, ResponseChange, Title, TrustAsked, Turn, Usage, UserAction, View,
};

/// A conversation, folded from its entries.
#[derive(Debug, Default)]
pub struct Transcript {
    /// Exchanges of the current branch, in order.
    pub exchanges: Vec<Exchange>,
    /// Exchanges outside of the current branch, with all their documents.
    shelf: Vec<Exchange>,
    pub todos: Todos,
    title: Option<Title>,
    pub progress: Option<Progress>,
    /// The question whether the workspace may act, while it is open.
    pub trust: Option<TrustAsked>,
    /// Completed and total todos after each update of them.
    steps: HashMap<DocumentIndex, (usize, usize)>,
    /// Turns before this one are stored elsewhere and were not folded.
    since: Option<Turn>,
    /// Cost of the turns that are not folded.
    spent: Cost,
    /// First turn whose cost is not part of `spent`.
    spent_before: Turn,
    /// Cost of requests beside the conversation.
    spent_beside: Cost,
}

/// A user's message and the response to it.
#[derive(Debug, Default)]
pub struct Exchange {
    pub turn: Turn,
    /// `None` for a response without a message, as in recordings without user messages.
    pub message: Option<Message>,
    /// When it began, in milliseconds since the Unix epoch.
    pub at_ms: u64,
    /// Time of its last event, in milliseconds since the Unix epoch.
    pub last_ms: u64,
    pub response: Response,
    /// Number of updates of documents after their end.
    pub updates: u64,
    /// The point after which this exchange continues.
    pub parent: Branch,
    /// Only the first of its documents count on this branch.
    pub is_cut: bool,
    /// The last of these is a question that is to be answered in another way.
    pub is_reopened: bool,
    /// Actions of the user, in their order.
    pub actions: Vec<DoneAction>,
}

impl Exchange {
    /// Returns true if it holds only actions of the user from before the first message.
    pub fn is_margin(&self) -> bool {
        self.turn == Turn(0) && self.message.is_none() && self.response.documents.is_empty()
    }

    /// Returns the text of the message; empty without one.
    pub fn asked(&self) -> &str {
        self.message.as_ref().map_or("", |it| &it.content)
    }

    /// Returns the cost that the answer states.
    fn cost(&self) -> Cost {
        let dollars = self.response.extra_usage.get("costUsd");
        Cost {
            usage: self.response.usage,
            dollars: dollars.and_then(serde_json::Value::as_f64),
        }
    }

    /// Returns true if the end of the answer states the size of the context.
    fn says_context(&self) -> bool {
        self.response.usage.total_tokens > 0 || self.response.extra_usage.contains_key("contextTokens")
    }
}

/// An action of the user, where it happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneAction {
    pub action: UserAction,
    /// Facts that its line names; see [`UserAction`].
    pub facts: Vec<String>,
    /// Number of documents before it. `None`: the response had ended.
    pub before: Option<usize>,
}

/// Index of a document in [`Transcript::exchanges`] and in its response's documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentIndex {
    pub exchange: usize,
    pub document: usize,
}

/// Effect of an entry, and the exchange that it changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeChange {
    pub exchange: usize,
    pub change: ResponseChange,
}

impl Transcript {
    /// Folds entries into a transcript.
    pub fn from_entries(entries: &[Arc<Entry>]) -> Self {
        let mut transcript = Self::default();
        transcript.apply_all(entries);
        transcript
    }

    /// Returns only the last `count` exchanges of the current branch, to look at: nothing can be applied to them.
    pub fn ending_with(mut self, count: usize) -> Self {
        let from = self.exchanges.len().saturating_sub(count);
        Self {
            exchanges: self.exchanges.split_off(from),
            todos: self.todos,
            title: self.title,
            ..Self::default()
        }
    }

    /// Creates a transcript that starts at `turn`: older turns are not folded. `title` is the title by then.
    pub fn starting_at(turn: Turn, title: Option<Title>) -> Self {
        Self {
            since: Some(turn),
            title,
            ..Self::default()
        }
    }

    /// Returns true if there are older turns than those here.
    pub fn is_partial(&self) -> bool {
        self.since.is_some()
    }

    /// Sets the cost of the turns before `before`; some or none of them are folded. The cost of later turns that were
    /// forgotten meanwhile is added.
    pub fn set_earlier_cost(&mut self, spent: Cost, before: Turn) {
        if self.since.is_none() {
            return;
        }
        if self.spent_before > before {
            self.spent.add(&spent);
        } else {
            (self.spent, self.spent_before) = (spent, before);
        }
    }

    /// Removes the turns before `turn`, which are stored elsewhere; their cost still counts. Returns the number of exchanges
    /// that were removed.
    pub fn forget_before(&mut self, turn: Turn) -> usize {
        let count = self.exchanges.iter().take_while(|it| it.turn < turn).count();
        if count == 0 || count == self.exchanges.len() {
            return 0;
        }
        for exchange in self.exchanges.drain(..count) {
            if exchange.turn >= self.spent_before {
                self.spent.add(&exchange.cost());
            }
        }
        self.spent_before = self.spent_before.max(turn);
        self.since = Some(turn);
        self.shelf.retain(|it| it.turn >= turn);
        let steps = std::mem::take(&mut self.steps);
        self.steps.extend(steps.into_iter().filter_map(|(place, step)| {
            let exchange = place.exchange.checked_sub(count)?;
            Some((DocumentIndex { exchange, ..place }, step))
        }));
        count
    }

    /// Takes over what a fold of a shorter part knows of earlier turns: it may have seen them before it forgot them.
    pub fn inherit(&mut self, less: &Self) {
        self.set_earlier_cost(less.spent, less.spent_before);
        if self.todos.list.is_empty() {
            self.todos = less.todos.clone();
        }
        let (beside, more) = (&self.spent_beside, &less.spent_beside);
        if more.usage.total_tokens > beside.usage.total_tokens || more.dollars > beside.dollars {
            self.spent_beside = less.spent_beside;
        }
    }

    /// Returns the exchanges whose cost is not in `spent`.
    fn uncounted(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(|it| it.turn >= self.spent_before)
    }

    /// Returns the title. `None` if the conversation has none.
    pub fn title(&self) -> Option<&str> {
        self.title.as_ref().map(|it| it.text.as_str())
    }

    /// Returns true if the user set the title.
    pub fn is_named(&self) -> bool {
        self.title.as_ref().is_some_and(|it| it.by_user)
    }

    /// A change that is shown with the last exchange.
    fn change_of_last(&self, change: ResponseChange) -> ExchangeChange {
        ExchangeChange {
            exchange: self.exchanges.len().saturating_sub(1),
            change,
        }
    }

    pub fn apply(&mut self, entry: &Entry) -> ExchangeChange {
        if let Event::Progress(progress) = &entry.event {
            self.progress = Some(progress.clone());
            return self.change_of_last(ResponseChange::Response);
        }
        self.progress = None;
        if let Event::Title(title) = &entry.event {
            title.clone().replace(&mut self.title);
            return self.change_of_last(ResponseChange::Response);
        }
        if let Event::Branch(to) = &entry.event {
            self.branch(to, entry.at_ms);
            return self.change_of_last(ResponseChange::Response);
        }
        if let Event::Notice(notice) = &entry.event
            && let Some((action, facts)) = UserAction::read(notice)
        {
            if action.closes_trust() {
                self.trust = None;
            }
            return self.act(action, &facts, entry.at_ms);
        }
        match &entry.event {
            Event::Notice(notice) if let Some(asked) = TrustAsked::read(notice) => {
                self.trust = Some(asked);
                return self.change_of_last(ResponseChange::Notice);
            }
            Event::Notice(notice) if let Some(cost) = Cost::read(notice) => {
                self.spent_beside.add(&cost);
                return self.change_of_last(ResponseChange::Notice);
            }
            // Who goes on has not said yes.
            Event::UserMessage(_) => self.trust = None,
            _ => {}
        }
        if self.since.is_some_and(|since| entry.turn < since) {
            return self.change_of_last(ResponseChange::Nothing);
        }
        // What is not on this branch is kept as it becomes.
        if let Some(exchange) = self.shelf.iter_mut().find(|it| it.turn == entry.turn) {
            exchange.response.apply(&entry.event, entry.at_ms);
            if !self.exchanges.iter().any(|it| it.turn == entry.turn) {
                return self.change_of_last(ResponseChange::Nothing);
            }
        }
        let at = self.exchange_for(entry);
        let Some(exchange) = self.exchanges.get_mut(at) else {
            return ExchangeChange {
                exchange: at,
                change: ResponseChange::Nothing,
            };
        };
        exchange.last_ms = entry.at_ms;
        let change = match &entry.event {
            Event::UserMessage(message) => {
                exchange.message = Some(message.clone());
                self.settle_answer(at);
                ResponseChange::Response
            }
            event => {
                let change = exchange.response.apply(event, entry.at_ms);
                exchange.updates += u64::from(matches!(change, ResponseChange::Updated(_)));
                change
            }
        };
        match change {
            ResponseChange::Ended(document) => self.fold_todos(DocumentIndex { exchange: at, document }),
            // A plan that the user has edited says what there is to do; an older one does not any more.
            ResponseChange::Updated(document)
                if self.newest_plan() == Some(DocumentIndex { exchange: at, document }) =>
            {
                self.fold_todos(DocumentIndex { exchange: at, document });
            }
            _ => {}
        }
        ExchangeChange { exchange: at, change }
    }

    /// Adds an action of the user to what is shown last: the newest turn of all may be on another branch.
    fn act(&mut self, action: UserAction, facts: &[&str], at_ms: u64) -> ExchangeChange {
        if self.exchanges.is_empty() {
            let mut exchange = Exchange {
                parent: self.head(),
                at_ms,
                last_ms: at_ms,
                ..Exchange::default()
            };
            // Nobody answers it.
            exchange.response.apply(&Event::Done(Done::default()), at_ms);
            self.exchanges.push(exchange);
        }
        let at = self.exchanges.len() - 1;
        let Some(exchange) = self.exchanges.last_mut() else {
            return self.change_of_last(ResponseChange::Nothing);
        };
        let response = &exchange.response;
        exchange.actions.push(DoneAction {
            action,
            facts: facts.iter().map(|it| (*it).to_owned()).collect(),
            before: response.is_running().then_some(response.documents.len()),
        });
        ExchangeChange {
            exchange: at,
            change: ResponseChange::Acted(exchange.actions.len() - 1),
        }
    }

    pub fn apply_all(&mut self, entries: &[Arc<Entry>]) {
        for entry in entries {
            self.apply(entry);
        }
    }

    pub fn get(&self, place: DocumentIndex) -> Option<&Document> {
        self.exchanges
            .get(place.exchange)?
            .response
            .documents
            .get(place.document)
    }

    pub fn address(&self, place: DocumentIndex) -> Option<Address> {
        let exchange = self.exchanges.get(place.exchange)?;
        Some(Address {
            turn: exchange.turn,
            number: exchange.response.number(place.document),
        })
    }

    /// Completed todos and all todos as the update at `place` left them.
    pub fn progress_at(&self, place: DocumentIndex) -> Option<(usize, usize)> {
        self.steps.get(&place).copied()
    }

    pub fn index_of(&self, address: Address) -> Option<DocumentIndex> {
        let exchange = self.exchanges.iter().position(|it| it.turn == address.turn)?;
        let response = &self.exchanges.get(exchange)?.response;
        let document = (0..response.documents.len()).find(|&at| response.number(at) == address.number)?;
        Some(DocumentIndex { exchange, document })
    }

    pub fn index_of_document(&self, turn: Turn, id: &DocumentId) -> Option<DocumentIndex> {
        let exchange = self.exchanges.iter().position(|it| it.turn == turn)?;
        Some(DocumentIndex {
            exchange,
            document: self.exchanges.get(exchange)?.response.position_of(id)?,
        })
    }

    /// Returns true if a response is streaming.
    pub fn is_running(&self) -> bool {
        self.exchanges.last().is_some_and(|it| it.response.is_running())
    }

    /// The question that the user is to answer next: the oldest of the live ones, or the one that the last turn ended with.
    pub fn open_question(&self) -> Option<DocumentIndex> {
        let exchange = self.exchanges.len().checked_sub(1)?;
        let response = &self.exchanges.get(exchange)?.response;
        let is_waiting = |it: &usize| {
            let document = response.documents.get(*it);
            document.is_some_and(|it| self.is_open_question(exchange, it))
        };
        let waiting = response.unanswered().filter(is_waiting);
        let document = if response.is_running() {
            waiting.min()?
        } else {
            waiting.max()?
        };
        Some(DocumentIndex { exchange, document })
    }

    /// Returns true if the document is a question that can be answered now.
    pub fn is_open_question(&self, exchange: usize, document: &Document) -> bool {
        if document.kind != Kind::Clarification || exchange + 1 != self.exchanges.len() {
            return false;
        }
        let View::Clarification(it) = document.view() else {
            return false;
        };
        if it.outcome.is_some() || it.questions.is_empty() {
            return false;
        }
        let ended = self.exchanges.get(exchange).and_then(|it| it.response.ending.as_ref());
        match ended {
            None => true,
            Some(ending) => match ending.finish_reason {
                FinishReason::AwaitingInput => true,
                // A reader of gateways that do not say why they ended: the last document decides.
                FinishReason::Stop => self
                    .exchanges
                    .get(exchange)
                    .and_then(|it| it.response.documents.last())
                    .is_some_and(|last| last.id == document.id),
                FinishReason::Cancelled
                | FinishReason::MaxTurns
                | FinishReason::Length
                | FinishReason::Refusal
                | FinishReason::Error
                | FinishReason::Interrupted
                | FinishReason::Other(_) => false,
            },
        }
    }

    /// Returns the tokens in context, as of the last request; 0 if unknown.
    pub fn context_tokens(&self) -> u64 {
        let last = self.exchanges.iter().rev().find(|it| it.says_context());
        last.map_or(0, |it| {
            let said = it
                .response
                .extra_usage
                .get("contextTokens")
                .and_then(serde_json::Value::as_u64);
            said.unwrap_or(it.response.usage.total_tokens)
        })
    }

    /// Returns the context window of the model that answered last, in tokens. `None` if the answer does not state it.
    pub fn context_window(&self) -> Option<u64> {
        let last = self.exchanges.iter().rev().find(|it| it.says_context())?;
        let said = last.response.extra_usage.get("contextWindow")?;
        said.as_u64().filter(|it| *it > 0)
    }

    /// Returns the cost in dollars. `None` unless the answers state it.
    pub fn cost(&self) -> Option<f64> {
        self.total().dollars
    }

    /// Returns the cost of the whole conversation.
    fn total(&self) -> Cost {
        let mut total = self.spent;
        total.add(&self.spent_beside);
        for exchange in self.uncounted() {
            total.add(&exchange.cost());
        }
        total
    }

    /// Returns the usage of the last request (which fills the window) and of the entire conversation.
    pub fn usage(&self) -> (Usage, Usage) {
        let mut newest = self.exchanges.iter().rev().map(|it| it.response.usage);
        let last = newest.find(|it| it.total_tokens > 0).unwrap_or_default();
        (last, self.total().usage)
    }

    /// The plan that the live list belongs to.
    pub fn newest_plan(&self) -> Option<DocumentIndex> {
        self.exchanges.iter().enumerate().rev().find_map(|(exchange, it)| {
            let is_plan = |it: &Document| it.kind == Kind::Plan && !it.is_open();
            let document = it.response.documents.iter().rposition(is_plan)?;
            Some(DocumentIndex { exchange, document })
        })
    }

    /// The plan that the newest answer has ended with: the user has the word.
    pub fn open_plan(&self) -> Option<DocumentIndex> {
        let ending = self.exchanges.last()?.response.ending.as_ref()?;
        let has_word = ending.finish_reason == FinishReason::AwaitingInput && self.open_question().is_none();
        let place = has_word.then(|| self.newest_plan())??;
        (place.exchange + 1 == self.exchanges.len()).then_some(place)
    }

    fn exchange_for(&mut self, entry: &Entry) -> usize {
        if let Some(at) = self.exchanges.iter().rposition(|it| it.turn == entry.turn) {
            return at;
        }
        self.exchanges.push(Exchange {
            parent: self.head(),
            turn: entry.turn,
            at_ms: entry.at_ms,
            ..Exchange::default()
        });
        self.exchanges.len() - 1
    }

    /// A message that answers the question the turn before ended with closes that question; any other message leaves
    /// it unanswered, which for an approval means no.
    pub(super) fn settle_answer(&mut self, at: usize) {
        let Some(answer) = self.exchanges.get(at).and_then(|it| it.message.as_ref()) else {
            return;
        };
        let answer = answer.clarification_response.clone();
        let Some(before) = at.checked_sub(1).and_then(|it| self.exchanges.get_mut(it)) else {
            return;
        };
        let response = &mut before.response;
        for document in unanswered(response) {
            let patch = match &answer {
                Some(answer) if answer.document_id == document => serde_json::json!({
                    "outcome": answer.outcome, "answers": answer.answers, "reason": answer.reason,
                }),
                Some(_) | None => serde_json::json!({ "outcome": Outcome::Skipped }),
            };
            if let serde_json::Value::Object(metadata) = patch {
                response.apply(&Event::DocumentUpdate { document, metadata }, 0);
            }
        }
    }

    fn fold_todos(&mut self, place: DocumentIndex) {
        let Some(document) = self
            .exchanges
            .get(place.exchange)
            .and_then(|it| it.response.documents.get(place.document))
        else {
            return;
        };
        match document.view() {
            View::Plan(plan) => self.todos.load_plan(&plan),
            View::FileEdit(_) | View::TerminalCommand(_) => {
                if let Some(address) = self.address(place) {
                    self.todos.attach(address);
                }
            }
            View::TodoUpdate(update) => {
                self.todos.apply(&update);
                self.steps.insert(place, self.todos.progress());
            }
            _ => {}
        }
    }
}

/// Returns ended clarifications without an outcome.
fn unanswered(response: &Response) -> Vec<DocumentId> {
    let is_open = |it: &&Document| match it.view() {
        View::Clarification(view) => !it.is_open() && view.outcome.is_none() && !view.questions.is_empty(),
        _ => false,
    };
    response
        .documents
        .iter()
        .filter(is_open)
        .map(|it| it.id.clone())
        .collect()
}

/// Returns true for an approval, false for any other question; both are the same kind.
pub fn is_approval(document: &Document) -> bool {
    matches!(document.view(), View::Clarification(it) if it.kind == QuestionKind::Approval)
}
