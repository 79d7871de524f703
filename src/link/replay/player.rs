//! The next step of a recording. Pure except for the log it appends to: no clock, no waiting.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::{Audience, Recording, Speed, branch::Mark};
use crate::{
    journal::{Cut, Log, closing, settled},
    protocol::{
        ClarificationResponse, Command, DocumentId, DocumentStart, Done, Entry, Event, FinishReason, Kind, Message,
        Outcome, QuestionAnswer, QuestionKind, Response, ResponseStart, Status, Turn, View,
    },
};

/// Maximum pause of a recording.
const LONGEST_GAP: Duration = Duration::from_secs(5);

/// Condition for the player's next step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A pause of this length in recorded time.
    Pause(Duration),
    /// The user: a message or an answer.
    Command,
    /// Everything was played and nobody is there to go on.
    Nothing,
}

/// A position in a recording, with the commands that were heard.
#[derive(Debug)]
pub struct Player {
    script: Arc<Vec<Entry>>,
    next: usize,
    /// Counts every step ever made, so that one step can be told from another.
    steps: u64,
    audience: Audience,
    /// Entries keep their recorded times.
    keeps_times: bool,
    /// The first turn has begun.
    begun: bool,
    /// The script stands at its start and a message sets it off.
    waits_to_begin: bool,
    current: Current,
    /// Messages that wait for their turn.
    queue: VecDeque<Message>,
    answers: Answers,
    /// Live turns by recorded turn.
    turns: HashMap<Turn, Turn>,
    /// A document has ended since somebody wanted one.
    has_shown: bool,
}

/// The fold of the current response.
#[derive(Debug, Default)]
struct Current {
    response: Response,
    /// The response has not ended.
    is_open: bool,
}

/// Answers to the recorded questions.
#[derive(Debug, Default)]
struct Answers {
    /// The answer to the question at `next`.
    answer: Option<ClarificationResponse>,
    /// Options chosen in the current turn, for branches.
    chosen: HashMap<DocumentId, Vec<String>>,
}

impl Player {
    pub fn new(recording: &Recording, speed: Speed, audience: Audience) -> Self {
        let script = match speed {
            Speed::AtOnce | Speed::ByStep => recording.entries(),
            Speed::Times(_) => recording.paced(),
        };
        let mut player = Self {
            script,
            next: 0,
            steps: 0,
            audience,
            keeps_times: speed == Speed::AtOnce && recording.is_timed(),
            begun: false,
            waits_to_begin: audience == Audience::Asking,
            current: Current::default(),
            queue: VecDeque::new(),
            answers: Answers::default(),
            turns: HashMap::new(),
            has_shown: false,
        };
        player.pass_marks();
        player
    }

    /// Differs for each step.
    pub fn step_number(&self) -> u64 {
        self.steps
    }

    /// Returns true if a document, or an answer, has ended since [`Self::go_on`].
    pub fn has_shown(&self) -> bool {
        self.has_shown
    }

    /// The next document is wanted.
    pub fn go_on(&mut self) {
        self.has_shown = false;
    }

    /// Returns the condition for the next step.
    pub fn need(&self) -> Need {
        let now = Need::Pause(Duration::ZERO);
        if self.must_close() {
            return now;
        }
        if self.wants_message() {
            return if self.queue.is_empty() { Need::Command } else { now };
        }
        if self.next >= self.script.len() {
            return Need::Nothing;
        }
        match self.question() {
            Some((document, _)) if self.answers.answer.is_some() || !self.shows_questions(document) => now,
            Some(_) => Need::Command,
            None => Need::Pause(self.gap()),
        }
    }

    /// Makes the next step; to be called when [`Self::need`] is a pause and the pause is over.
    pub fn step(&mut self, log: &Log, now_ms: u64) {
        self.steps += 1;
        if self.must_close() {
            self.close(Cut::Interrupted, log, now_ms);
        } else if self.wants_message() {
            if let Some(message) = self.queue.pop_front() {
                self.begin_turn(message, log, now_ms);
            }
        } else if let Some((document, metadata)) = self.question() {
            let (document, metadata) = (document.clone(), metadata.clone());
            self.step_question(document, metadata, log, now_ms);
        } else if let Some(entry) = self.script.get(self.next).cloned() {
            self.next += 1;
            if let Event::UserMessage(message) = entry.event {
                self.next -= 1;
                self.begin_turn(message, log, self.time(entry.at_ms, now_ms));
            } else {
                self.emit(&entry, log, now_ms);
            }
        }
        self.pass_marks();
    }

    /// Does what the user wants; what comes of it is in the log at once or after the next steps.
    pub fn obey(&mut self, command: Command, log: &Log, now_ms: u64) {
        match command {
            Command::Submit(submit) | Command::Begin(submit) | Command::Steer(submit) => {
                if let Some(answer) = self.answer_by(&submit.message) {
                    self.answers.answer = Some(answer);
                    return;
                }
                self.queue.push_back(submit.message);
                // At once, so that a stop right behind it finds a turn to stop.
                if self.wants_message() && !self.must_close() {
                    self.step(log, now_ms);
                }
            }
            Command::Rename(text) => {
                log.append(now_ms, Event::Title(crate::protocol::Title { text, by_user: true }));
            }
            Command::Record(notice) => {
                log.append(now_ms, Event::Notice(notice));
            }
            // A recording runs nothing.
            Command::Run { .. }
            | Command::RepeatCall { .. }
            | Command::Compact { .. }
            | Command::Restore(_)
            | Command::Restrict(_)
            | Command::Background
            | Command::StopCommand { .. }
            | Command::Next => {}
            // To look at another branch changes nothing.
            Command::SwitchBranch(branch) => {
                if !self.current.is_open {
                    log.append(now_ms, Event::Branch(branch));
                }
            }
            Command::Answer { turn, response } => {
                if turn == log.turn() {
                    self.take_answer(response);
                }
            }
            Command::Cancel => {
                if self.current.is_open {
                    self.steps += 1;
                    self.close(Cut::Cancelled, log, now_ms);
                    self.skip_to_message();
                    self.pass_marks();
                }
            }
            Command::Update {
                turn,
                document,
                metadata,
            } => {
                log.append_to(turn, now_ms, Event::DocumentUpdate { document, metadata });
            }
        }
    }

    /// Returns true if the script goes on with a new turn although the response has no end.
    fn must_close(&self) -> bool {
        self.current.is_open
            && self
                .script
                .get(self.next)
                .is_none_or(|it| matches!(it.event, Event::UserMessage(_)))
    }

    fn wants_message(&self) -> bool {
        if self.waits_to_begin {
            return true;
        }
        // Where the next message goes elsewhere, the conversation stays where it is until that message comes.
        let rest = self.script.get(self.next..).unwrap_or_default();
        let next = rest.iter().find(|it| !matches!(it.event, Event::Branch(_)));
        let at_message = rest.is_empty() || next.is_some_and(|it| matches!(it.event, Event::UserMessage(_)));
        match self.audience {
            Audience::Absent => false,
            Audience::Asking => at_message,
            Audience::Present => at_message && (self.begun || self.next >= self.script.len()),
        }
    }

    /// The live question that ends at `next`, with its recorded metadata; `None` when the recorded answer will do.
    fn question(&self) -> Option<(&DocumentId, &Map<String, Value>)> {
        if self.audience == Audience::Absent {
            return None;
        }
        let Event::DocumentEnd { document, metadata, .. } = &self.script.get(self.next)?.event else {
            return None;
        };
        let open = self.current.response.get(document)?;
        // Without an outcome it is the form that ends the turn, and the next message answers it.
        let is_live = open.kind == Kind::Clarification && open.is_open() && metadata.contains_key("outcome");
        is_live.then_some((document, metadata))
    }

    fn shows_questions(&self, document: &DocumentId) -> bool {
        self.current
            .response
            .get(document)
            .and_then(|it| it.metadata.get("questions"))
            .and_then(Value::as_array)
            .is_some_and(|it| !it.is_empty())
    }

    /// Shows the questions first, should the recording bring them at the end only; then ends the document as answered.
    fn step_question(&mut self, document: DocumentId, mut metadata: Map<String, Value>, log: &Log, now_ms: u64) {
        for member in ["outcome", "answers", "reason"] {
            metadata.shift_remove(member);
        }
        let Some(answer) = self.answers.answer.take() else {
            self.append(
                Event::MetadataDelta {
                    document: document.clone(),
                    metadata,
                    append: Vec::new(),
                },
                log,
                now_ms,
            );
            if !self.shows_questions(&document) {
                // There is nothing to answer: the recorded outcome stands.
                if let Some(entry) = self.script.get(self.next).cloned() {
                    self.next += 1;
                    self.emit(&entry, log, now_ms);
                }
            }
            return;
        };
        metadata.insert("outcome".into(), json!(answer.outcome));
        metadata.insert("answers".into(), json!(answer.answers));
        if let Some(reason) = &answer.reason {
            metadata.insert("reason".into(), reason.as_str().into());
        }
        let chosen = answer
            .answers
            .into_iter()
            .flat_map(|it| it.selected_option_ids)
            .collect();
        self.answers.chosen.insert(document.clone(), chosen);
        let final_content = self.current.response.get(&document).and_then(|it| it.content.clone());
        self.next += 1;
        self.append(
            Event::DocumentEnd {
                document,
                final_content,
                metadata,
            },
            log,
            now_ms,
        );
    }

    /// A message while a question waits answers it in the user's own words; to an approval that is a no.
    fn answer_by(&self, message: &Message) -> Option<ClarificationResponse> {
        let (document, _) = self.question().filter(|_| self.answers.answer.is_none())?;
        let View::Clarification(asked) = self.current.response.get(document)?.view() else {
            return None;
        };
        let first = asked.questions.first()?;
        let is_question = asked.kind == QuestionKind::Question;
        Some(ClarificationResponse {
            document_id: document.clone(),
            outcome: if is_question {
                Outcome::Answered
            } else {
                Outcome::Skipped
            },
            answers: if is_question {
                vec![QuestionAnswer {
                    question_id: first.id.to_owned(),
                    selected_option_ids: Vec::new(),
                    free_text: Some(message.content.clone()),
                    hunks: Vec::new(),
                }]
            } else {
                Vec::new()
            },
            reason: (!is_question).then(|| message.content.clone()),
        })
    }

    fn take_answer(&mut self, response: ClarificationResponse) {
        if let Some((document, _)) = self.question() {
            if *document == response.document_id && self.answers.answer.is_none() {
                self.answers.answer = Some(response);
            }
            return;
        }
        // A question that ended its turn is answered by a message.
        if self.current.is_open || !self.wants_message() {
            return;
        }
        let Some(View::Clarification(asked)) = self.current.response.get(&response.document_id).map(|it| it.view())
        else {
            return;
        };
        let mut message = Message::user(asked.readable(&response));
        message.clarification_response = Some(response);
        self.queue.push_back(message);
    }

    fn begin_turn(&mut self, message: Message, log: &Log, at_ms: u64) {
        // What stands before a recorded message (a title) is not the turn that the message opens.
        let rest = self.script.get(self.next..).unwrap_or_default();
        let is_aside = |it: &&Entry| {
            matches!(
                it.event,
                Event::Title(_) | Event::Branch(_) | Event::Notice(_) | Event::Progress(_)
            )
        };
        let aside: Vec<_> = rest.iter().take_while(is_aside).cloned().collect();
        if let Some(Event::UserMessage(_)) = rest.get(aside.len()).map(|it| &it.event) {
            self.next += aside.len();
            for entry in aside {
                log.append(self.time(entry.at_ms, at_ms), self.here(entry.event));
            }
        }
        log.append(at_ms, Event::UserMessage(message));
        self.begun = true;
        self.waits_to_begin = false;
        self.current.response = Response::default();
        self.current.is_open = true;
        self.answers.chosen.clear();
        match self.script.get(self.next) {
            Some(Entry {
                turn,
                event: Event::UserMessage(_),
                ..
            }) => {
                self.turns.insert(*turn, log.turn());
                self.next += 1;
            }
            Some(entry) => {
                self.turns.insert(entry.turn, log.turn());
            }
            None => self.say_the_end(log, at_ms),
        }
    }

    /// Writes a recorded entry to the turn that its own became.
    fn emit(&mut self, entry: &Entry, log: &Log, now_ms: u64) {
        let at_ms = self.time(entry.at_ms, now_ms);
        let turn = self.turns.get(&entry.turn).copied().unwrap_or_else(|| log.turn());
        if turn != log.turn() {
            log.append_to(turn, at_ms, entry.event.clone());
            return;
        }
        if let Event::DocumentEnd { document, metadata, .. } = &entry.event
            && let Some(answers) = metadata.get("answers")
        {
            self.answers.chosen.insert(document.clone(), option_ids(answers));
        }
        let event = self.here(entry.event.clone());
        self.append(event, log, at_ms);
    }

    /// With the turns as they are numbered here.
    fn here(&self, mut event: Event) -> Event {
        if let Event::Branch(branch) = &mut event
            && let Some(turn) = self.turns.get(&branch.after)
        {
            branch.after = *turn;
        }
        event
    }

    fn append(&mut self, event: Event, log: &Log, at_ms: u64) {
        match &event {
            Event::ResponseStart(_)
            | Event::DocumentStart(_)
            | Event::ContentDelta { .. }
            | Event::ToolCallStart { .. }
            | Event::ToolCallArguments { .. }
            | Event::ToolResult { .. }
            | Event::MetadataDelta { .. }
            | Event::ThinkingDelta { .. }
            | Event::DocumentEnd { .. } => {
                self.begun = true;
                self.current.is_open = self.current.response.is_running();
            }
            Event::Done(_) => self.current.is_open = false,
            _ => {}
        }
        self.has_shown |= matches!(event, Event::DocumentEnd { .. } | Event::Done(_));
        self.current.response.apply(&event, at_ms);
        log.append(at_ms, settled(event, &self.current.response));
    }

    fn close(&mut self, cut: Cut, log: &Log, now_ms: u64) {
        for event in closing(&self.current.response, cut) {
            self.append(event, log, now_ms);
        }
        self.current.is_open = false;
        self.answers.answer = None;
    }

    /// Leaves out the rest of the turn.
    fn skip_to_message(&mut self) {
        let rest = self.script.get(self.next..).unwrap_or_default();
        let skipped = match self.audience {
            Audience::Absent => rest.len(),
            Audience::Present | Audience::Asking => rest
                .iter()
                .position(|it| matches!(it.event, Event::UserMessage(_)))
                .unwrap_or(rest.len()),
        };
        self.next += skipped;
    }

    /// Stands on something that can be played: decides branches, and begins anew where that is wanted.
    fn pass_marks(&mut self) {
        while let Some(mark) = self.script.get(self.next).and_then(|it| Mark::of(&it.event)) {
            self.next += 1;
            match mark {
                Mark::Join => {}
                Mark::Branch(branch) => {
                    if !branch.is_taken(&self.answers.chosen) {
                        let rest = self.script.get(self.next..).unwrap_or_default();
                        let is_join = |it: &Entry| matches!(Mark::of(&it.event), Some(Mark::Join));
                        self.next += rest.iter().position(is_join).map_or(rest.len(), |it| it + 1);
                    }
                }
            }
        }
        if self.audience == Audience::Asking && self.next >= self.script.len() && !self.must_close() {
            self.next = 0;
            self.waits_to_begin = true;
        }
    }

    fn say_the_end(&mut self, log: &Log, at_ms: u64) {
        let document = DocumentId::numbered(1);
        let text = "The recording ends here. What you type goes nowhere; nothing was sent.";
        for event in [
            Event::ResponseStart(ResponseStart::default()),
            Event::DocumentStart(DocumentStart {
                id: document.clone(),
                kind: Kind::Text,
                sequence: Some(1),
                content: None,
                metadata: Map::new(),
            }),
            Event::DocumentEnd {
                document,
                final_content: Some(text.into()),
                metadata: Map::new(),
            },
            Event::Done(Done {
                status: Some(Status::Completed),
                finish_reason: Some(FinishReason::Stop),
                ..Done::default()
            }),
        ] {
            self.append(event, log, at_ms);
        }
    }

    /// Recorded time between the entry before and the next one.
    fn gap(&self) -> Duration {
        let time = |at: usize| self.script.get(at).map(|it| it.at_ms);
        let gap = match (self.next.checked_sub(1).and_then(time), time(self.next)) {
            (Some(before), Some(next)) => Duration::from_millis(next.saturating_sub(before)),
            (None, _) | (_, None) => Duration::ZERO,
        };
        gap.min(LONGEST_GAP)
    }

    fn time(&self, recorded_ms: u64, now_ms: u64) -> u64 {
        if self.keeps_times { recorded_ms } else { now_ms }
    }
}

fn option_ids(answers: &Value) -> Vec<String> {
    answers
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .filter_map(|it| it.get("selectedOptionIds")?.as_array())
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}
