//! Branches: a conversation goes on behind an older message, or behind a document of an answer, and what was said since stays.
//!
//! `exchanges` is the branch that one is on, from its first message to its last; everything else looks at nothing else. What is
//! not on it lies on the shelf, whole. An answer of which only a part counts stands on the branch cut, and whole on the shelf.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{DocumentIndex, Exchange, Transcript, is_approval};
use crate::protocol::{Branch, Document, DocumentId, Event, FinishReason, Kind, Turn, UserAction};

/// A turn in the tree of branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fork {
    pub turn: Turn,
    /// Number of forks on the way to it.
    pub depth: usize,
    /// It is on the branch that one is on.
    pub is_here: bool,
    /// Number of this way among those after the same turn, from 1, and their count.
    pub sibling: (usize, usize),
    /// True if no turns follow it.
    pub is_end: bool,
    /// If set, the row is not the turn itself but the rest of its answer, from this document on, after other branches
    /// left it.
    pub rest_from: Option<usize>,
}

/// A turn or the rest of one: turn, first document, depth of forks, and its number among the ways after the same
/// turn.
type BranchWalk = (Turn, Option<usize>, usize, (usize, usize));

impl Transcript {
    /// All exchanges there are, on whatever branch, in the order in which they began; each of them whole.
    pub fn all(&self) -> Vec<&Exchange> {
        let here = self.exchanges.iter().filter(|it| !it.is_cut && !it.is_margin());
        let mut all: Vec<&Exchange> = here.chain(&self.shelf).collect();
        all.sort_by_key(|it| it.turn);
        all
    }

    /// The exchange of a turn, be it on this branch or not.
    pub fn exchange_of(&self, turn: Turn) -> Option<&Exchange> {
        let is_it = |it: &&Exchange| it.turn == turn;
        self.shelf
            .iter()
            .find(is_it)
            .or_else(|| self.exchanges.iter().find(is_it))
    }

    /// Returns true if there is more than one branch.
    pub fn is_branched(&self) -> bool {
        !self.shelf.is_empty()
    }

    /// Returns the other branches: for each the turn after which it continues, and its exchanges in order, each with
    /// the number of its first documents that are also on this branch.
    pub fn other_branches(&self) -> Vec<(Turn, Vec<(&Exchange, usize)>)> {
        let mut others: Vec<(Turn, Vec<(&Exchange, usize)>)> = Vec::new();
        for fork in self.tree().iter().filter(|it| it.rest_from.is_none()) {
            let Some(exchange) = self.shelf.iter().find(|it| it.turn == fork.turn) else {
                continue;
            };
            let here = self.exchanges.iter().find(|it| it.turn == fork.turn);
            let shared = here.map_or(0, |it| it.response.documents.len());
            let after = exchange.parent.after;
            match others.last_mut() {
                Some((_, turns)) if turns.last().is_some_and(|it| it.0.turn == after) => turns.push((exchange, shared)),
                Some(_) | None => others.push((after, vec![(exchange, shared)])),
            }
        }
        others
    }

    /// Returns the point after which the conversation would continue now.
    pub fn head(&self) -> Branch {
        match self.exchanges.last() {
            None => Branch::default(),
            Some(last) => Branch {
                after: last.turn,
                upto: last
                    .is_cut
                    .then(|| last.response.documents.last().map(|it| it.id.clone()))
                    .flatten(),
                is_open: last.is_reopened,
            },
        }
    }

    /// Returns the branch that ends just before a turn.
    pub fn parent_of(&self, turn: Turn) -> Branch {
        self.exchange_of(turn).map(|it| it.parent.clone()).unwrap_or_default()
    }

    /// The newest end of the branches that a turn leads to.
    pub fn newest_below(&self, turn: Turn) -> Turn {
        let children = self.children();
        let mut at = turn;
        while let Some(last) = children.get(&Some(at)).and_then(|it| it.last()) {
            at = *last;
        }
        at
    }

    /// Returns the turns after each turn, in the order in which they began; under `None` those after no turn.
    fn children(&self) -> BTreeMap<Option<Turn>, Vec<Turn>> {
        let all = self.all();
        let mut children: BTreeMap<Option<Turn>, Vec<Turn>> = BTreeMap::new();
        for exchange in &all {
            let after = exchange.parent.after;
            let has_parent = after < exchange.turn && all.iter().any(|it| it.turn == after);
            children
                .entry(has_parent.then_some(after))
                .or_default()
                .push(exchange.turn);
        }
        children
    }

    /// Returns the tree as one row per turn: followers are below their turn, one level deeper at a fork.
    pub fn tree(&self) -> Vec<Fork> {
        let children = self.children();
        let mut forks = Vec::new();
        // What is still to be listed, the next one last.
        let mut left: Vec<BranchWalk> = Vec::new();
        let push = |parent: Option<Turn>, depth: usize, left: &mut Vec<BranchWalk>| {
            let turns = children.get(&parent).map(Vec::as_slice).unwrap_or_default();
            let rest = parent.and_then(|it| Some((it, Some(self.rest_of(it, turns)?))));
            let ways: Vec<(Turn, Option<usize>)> = rest.into_iter().chain(turns.iter().map(|it| (*it, None))).collect();
            let deeper = usize::from(ways.len() > 1);
            for (n, (turn, rest)) in ways.iter().enumerate().rev() {
                left.push((*turn, *rest, depth + deeper, (n + 1, ways.len())));
            }
        };
        push(None, 0, &mut left);
        while let Some((turn, rest, depth, nth)) = left.pop() {
            let here = self.exchanges.iter().position(|it| it.turn == turn);
            let is_whole_end =
                |at: usize| self.exchanges.get(at).is_some_and(|it| !it.is_cut) && at + 1 == self.exchanges.len();
            if rest.is_none() {
                push(Some(turn), depth, &mut left);
            }
            let has_rest = rest.is_none() && left.last().is_some_and(|it| it.0 == turn && it.1.is_some());
            forks.push(Fork {
                turn,
                depth,
                is_here: here.is_some_and(|at| rest.is_none() || is_whole_end(at)),
                sibling: nth,
                is_end: rest.is_some() || !(has_rest || children.contains_key(&Some(turn))),
                rest_from: rest,
            });
        }
        forks
    }

    /// Returns the index of the first document that belongs to this answer alone; the turns in `behind` continue
    /// after parts of it. `None` if one of them continues after the entire answer.
    fn rest_of(&self, turn: Turn, behind: &[Turn]) -> Option<usize> {
        let whole = self.exchange_of(turn)?;
        let count = whole.response.documents.len();
        let here = self.exchanges.iter().find(|it| it.turn == turn && it.is_cut);
        let kept = |it: &Turn| match self.exchange_of(*it)?.parent.upto.as_ref()? {
            none if none.as_str() == Branch::NOTHING => Some(0),
            upto => whole.response.position_of(upto).map(|it| it + 1),
        };
        let mut parts = behind.iter().map(|it| kept(it).unwrap_or(count)).collect::<Vec<_>>();
        parts.extend(here.map(|it| it.response.documents.len()));
        if parts.iter().any(|it| *it >= count) {
            return None;
        }
        here.map(|it| it.response.documents.len()).or(parts.into_iter().min())
    }

    /// Returns the question on this branch that is being answered again, if it is the given one.
    pub fn reopened(&self, turn: Turn, document: &DocumentId) -> Option<&Document> {
        let last = self.exchanges.last().filter(|it| it.turn == turn && it.is_reopened)?;
        last.response.documents.last().filter(|it| it.id == *document)
    }

    /// Switches to another branch.
    pub(super) fn branch(&mut self, to: &Branch, at_ms: u64) {
        let mut all: BTreeMap<Turn, Exchange> = BTreeMap::new();
        for mut exchange in self.shelf.drain(..).chain(self.exchanges.drain(..)) {
            // Turns are shared: where another branch continued is not true of this one.
            exchange.actions.retain(|it| it.action != UserAction::Branched);
            if !exchange.is_cut {
                all.insert(exchange.turn, exchange);
            }
        }
        let mut way: Vec<Exchange> = Vec::new();
        let mut next = Some(to.clone());
        while let Some(Branch { after, upto, is_open }) = next.take() {
            let cut = upto
                .as_ref()
                .and_then(|document| cut(all.get(&after)?, document, is_open));
            let Some(exchange) = cut.or_else(|| all.remove(&after)) else {
                break;
            };
            // Whoever wrote the file, the way ends.
            next = Some(exchange.parent.clone()).filter(|it| it.after < exchange.turn);
            way.push(exchange);
        }
        way.reverse();
        self.exchanges = way;
        self.shelf = all.into_values().collect();
        // Whoever answered it here answered it in their own way.
        for at in 1..self.exchanges.len() {
            if self.exchanges.get(at - 1).is_some_and(|it| it.is_reopened) {
                self.settle_answer(at);
            }
        }
        self.fold_again();
        // A question that is open again says it by itself; an empty conversation has no place for a line.
        if !to.is_open && !self.exchanges.is_empty() {
            let upto = to.upto.as_ref();
            let document = upto.and_then(|it| self.exchange_of(to.after)?.response.position_of(it));
            let address = match document {
                Some(at) => format!("{}.{}", to.after, at + 1),
                None => to.after.to_string(),
            };
            self.act(UserAction::Branched, &[&address], at_ms);
        }
    }

    /// The list of todos as this branch has it.
    fn fold_again(&mut self) {
        self.todos = super::Todos::default();
        self.steps.clear();
        let places: Vec<DocumentIndex> = self
            .exchanges
            .iter()
            .enumerate()
            .flat_map(|(exchange, it)| {
                (0..it.response.documents.len()).map(move |document| DocumentIndex { exchange, document })
            })
            .collect();
        for place in places {
            self.fold_todos(place);
        }
    }
}

/// Returns an exchange whose answer ends with this document. With `is_open`, a question there is open again.
fn cut(exchange: &Exchange, document: &DocumentId, is_open: bool) -> Option<Exchange> {
    let mut response = exchange.response.upto(document)?;
    let last = response.documents.last();
    let is_reopened = is_open && last.is_some_and(|it| it.kind == Kind::Clarification && !is_approval(it));
    if is_reopened {
        let metadata = ["outcome", "answers", "reason"].map(|it| (it.to_owned(), Value::Null));
        let document = document.clone();
        let metadata = metadata.into_iter().collect();
        response.apply(&Event::DocumentUpdate { document, metadata }, exchange.last_ms);
    }
    if let Some(ending) = &mut response.ending {
        ending.finish_reason = FinishReason::Stop;
    }
    let count = response.documents.len();
    let actions = exchange
        .actions
        .iter()
        .filter(|it| it.before.is_none_or(|it| it <= count));
    Some(Exchange {
        actions: actions.cloned().collect(),
        turn: exchange.turn,
        message: exchange.message.clone(),
        at_ms: exchange.at_ms,
        last_ms: exchange.last_ms,
        updates: exchange.updates,
        parent: exchange.parent.clone(),
        is_cut: true,
        is_reopened,
        response,
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::protocol::{
        ClarificationResponse, DocumentStart, Done, Entry, Message, Outcome, Position, QuestionAnswer,
    };

    /// Entries as a log numbers them.
    #[derive(Default)]
    struct Log(Vec<std::sync::Arc<Entry>>);

    impl Log {
        fn append(&mut self, event: Event) {
            let last = self.0.iter().map(|it| it.turn.0).max().unwrap_or_default();
            let turn = last + u32::from(matches!(event, Event::UserMessage(_)));
            self.append_to(Turn(turn), event);
        }

        fn append_to(&mut self, turn: Turn, event: Event) {
            let position = Position(self.0.len() as u64 + 1);
            self.0.push(std::sync::Arc::new(Entry {
                position,
                turn,
                at_ms: 0,
                event,
            }));
        }

        fn transcript(&self) -> Transcript {
            Transcript::from_entries(&self.0)
        }
    }

    fn say(log: &mut Log, words: &str, documents: &[&str]) {
        log.append(Event::UserMessage(Message::user(words)));
        for (at, text) in documents.iter().enumerate() {
            let id = DocumentId::numbered(at as u64 + 1);
            log.append(Event::DocumentStart(DocumentStart {
                id: id.clone(),
                kind: Kind::Text,
                sequence: Some(at as u64 + 1),
                content: None,
                metadata: serde_json::Map::new(),
            }));
            log.append(Event::DocumentEnd {
                document: id,
                final_content: Some((*text).into()),
                metadata: serde_json::Map::new(),
            });
        }
        log.append(Event::Done(Done::default()));
    }

    fn go(log: &mut Log, after: u32, upto: Option<u64>) {
        let upto = upto.map(DocumentId::numbered);
        log.append(Event::Branch(Branch {
            after: Turn(after),
            upto,
            is_open: false,
        }));
    }

    /// Messages and documents of the current branch, as text.
    fn said(log: &Log) -> String {
        let transcript = log.transcript();
        let lines = transcript.exchanges.iter().map(|it| {
            let documents: Vec<_> = it.response.documents.iter().map(|it| it.text().to_owned()).collect();
            let message = it.message.as_ref().map_or("", |it| it.content.as_str());
            format!("{message}: {}", documents.join(" "))
        });
        lines.collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn a_branch_goes_on_behind_what_it_left_and_nothing_is_lost() {
        let mut log = Log::default();
        say(&mut log, "one", &["a", "b"]);
        say(&mut log, "two", &["c"]);
        say(&mut log, "three", &[]);
        go(&mut log, 1, None);
        assert_eq!(said(&log), "one: a b");
        say(&mut log, "other two", &["d"]);
        assert_eq!(said(&log), "one: a b | other two: d");
        go(&mut log, 3, None);
        assert_eq!(said(&log), "one: a b | two: c | three: ");
        go(&mut log, 1, Some(1));
        say(&mut log, "after a", &["e"]);
        assert_eq!(said(&log), "one: a | after a: e");
        go(&mut log, 0, None);
        assert_eq!(said(&log), "");
        say(&mut log, "first again", &[]);
        let transcript = log.transcript();
        let tree: Vec<_> = transcript
            .tree()
            .iter()
            .map(|it| (it.turn.0, it.depth, it.is_here, it.sibling))
            .collect();
        assert_eq!(
            tree,
            [
                (1, 1, false, (1, 2)),
                (2, 2, false, (1, 3)),
                (3, 2, false, (1, 1)),
                (4, 2, false, (2, 3)),
                (5, 2, false, (3, 3)),
                (6, 1, true, (2, 2)),
            ]
        );
        assert_eq!(transcript.all().len(), 6);
        assert_eq!(transcript.newest_below(Turn(1)), Turn(5));
        assert_eq!(transcript.newest_below(Turn(2)), Turn(3));
        assert_eq!(
            transcript.parent_of(Turn(5)),
            Branch {
                after: Turn(1),
                upto: Some(DocumentId::numbered(1)),
                is_open: false,
            }
        );
    }

    #[test]
    fn what_changes_later_on_another_branch_is_there_when_one_comes_back() {
        let mut log = Log::default();
        say(&mut log, "one", &["a"]);
        say(&mut log, "two", &["b"]);
        go(&mut log, 1, None);
        let metadata = serde_json::Map::from_iter([("undone".to_owned(), true.into())]);
        let document = DocumentId::numbered(1);
        log.append_to(Turn(2), Event::DocumentUpdate { document, metadata });
        assert_eq!(said(&log), "one: a");
        go(&mut log, 2, None);
        let transcript = log.transcript();
        let document = &transcript.exchanges[1].response.documents[0];
        assert_eq!(document.metadata.get("undone"), Some(&true.into()));
    }

    #[test]
    fn a_branch_that_leads_nowhere_is_an_empty_conversation() {
        let mut log = Log::default();
        say(&mut log, "one", &[]);
        go(&mut log, 7, None);
        assert_eq!(said(&log), "");
        go(&mut log, 1, Some(9));
        assert_eq!(said(&log), "one: ", "a document that is not there cuts nothing");
    }

    /// The tree as it is drawn: depth, turn, `…` for the rest of one, `*` for what one is on.
    fn tree(log: &Log) -> String {
        let forks = log.transcript().tree();
        let lines = forks.iter().map(|it| {
            let rest = it.rest_from.map(|it| format!("…{it}")).unwrap_or_default();
            let here = if it.is_here { "*" } else { "" };
            format!("{}{}{rest}{here}", " ".repeat(it.depth), it.turn.0)
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_an_answer_went_on_to_say_is_a_branch_where_others_go_on_behind_a_part_of_it() {
        let mut log = Log::default();
        say(&mut log, "one", &["a", "b", "c"]);
        assert_eq!(tree(&log), "1*");
        go(&mut log, 1, Some(2));
        assert_eq!(tree(&log), "1*\n1…2", "there is a way back before anything was said");
        say(&mut log, "behind b", &["d"]);
        assert_eq!(tree(&log), "1*\n 1…2\n 2*");
        go(&mut log, 1, None);
        assert_eq!(said(&log), "one: a b c");
        assert_eq!(tree(&log), "1*\n 1…2*\n 2");
        say(&mut log, "behind all of it", &[]);
        assert_eq!(tree(&log), "1*\n 2\n 3*", "what follows all of it leads there");
        let transcript = log.transcript();
        assert_eq!(transcript.other_branches().len(), 1);
        assert_eq!(transcript.tree().iter().filter(|it| it.is_end).count(), 2);
    }

    #[test]
    fn a_question_is_answered_in_another_way_and_each_branch_keeps_its_answer() {
        let question = DocumentId::numbered(1);
        let answered = |word: &str| {
            let mut message = Message::user(word);
            message.clarification_response = Some(ClarificationResponse {
                document_id: DocumentId::numbered(1),
                outcome: Outcome::Answered,
                answers: vec![QuestionAnswer {
                    question_id: "q".into(),
                    selected_option_ids: Vec::new(),
                    free_text: Some(word.to_owned()),
                    hunks: Vec::new(),
                }],
                reason: None,
            });
            Event::UserMessage(message)
        };
        let chosen = |log: &Log| {
            let transcript = log.transcript();
            let document = transcript
                .exchanges
                .first()
                .and_then(|it| it.response.documents.first())
                .cloned();
            document.and_then(|it| {
                Some(
                    it.metadata
                        .get("answers")?
                        .get(0)?
                        .get("freeText")?
                        .as_str()?
                        .to_owned(),
                )
            })
        };
        let mut log = Log::default();
        log.append(Event::UserMessage(Message::user("go")));
        let metadata = |value: Value| value.as_object().cloned().unwrap_or_default();
        log.append(Event::DocumentStart(DocumentStart {
            id: question.clone(),
            kind: Kind::Clarification,
            sequence: Some(1),
            content: None,
            metadata: metadata(serde_json::json!({ "questions": [{ "id": "q", "prompt": "up or down?" }] })),
        }));
        // It was answered while the answer was being made, and the answer went on.
        log.append(Event::DocumentEnd {
            document: question.clone(),
            final_content: None,
            metadata: metadata(serde_json::json!({
                "questions": [{ "id": "q", "prompt": "up or down?" }],
                "outcome": "answered", "answers": [{ "questionId": "q", "freeText": "up" }],
            })),
        });
        log.append(Event::Done(Done::default()));
        say(&mut log, "then", &["x"]);
        assert_eq!(chosen(&log).as_deref(), Some("up"));
        let again = Branch {
            after: Turn(1),
            upto: Some(question.clone()),
            is_open: true,
        };
        log.append(Event::Branch(again.clone()));
        let transcript = log.transcript();
        assert_eq!(chosen(&log), None);
        assert_eq!(
            transcript.open_question().map(|it| (it.exchange, it.document)),
            Some((0, 0))
        );
        assert!(transcript.reopened(Turn(1), &question).is_some());
        assert_eq!(transcript.head(), again);
        log.append(answered("down"));
        log.append(Event::Done(Done::default()));
        assert_eq!(chosen(&log).as_deref(), Some("down"));
        go(&mut log, 2, None);
        assert_eq!(
            chosen(&log).as_deref(),
            Some("up"),
            "what was answered there stands there"
        );
        go(&mut log, 3, None);
        assert_eq!(chosen(&log).as_deref(), Some("down"));
        // Without that word what stands there is behind its answer.
        go(&mut log, 1, Some(1));
        assert_eq!(chosen(&log).as_deref(), Some("up"));
        assert_eq!(log.transcript().open_question(), None);
    }
}
