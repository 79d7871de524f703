//! A recording played as if it happened now: a stream that was saved, a response object, a journal, the tour.
//!
//! What the user says is really taken: a message takes the place of the recorded one, an answer that of the recorded
//! answer. Everything else comes from the recording, so nothing is run and nobody is asked.
//!
//! ```text
//! Recording (what happened, when) ─► Player (pure: what comes next) ─► the task here (clock, commands) ─► Log
//! ```

mod branch;
mod player;
mod recording;

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use tokio::time::{Instant, sleep_until};

pub use recording::Recording;

use self::player::{Need, Player};
use super::{About, AskError, Link};
use crate::{
    journal::Log,
    os::lazy_channel,
    protocol::{Command, Query, Reply},
};

/// Events that are sent without a look at the commands when no pause is due.
const STEPS_AT_ONCE: usize = 256;

/// The longest pause at any speed.
const LONGEST_PAUSE: Duration = Duration::from_hours(1);

/// Pace of a recording.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speed {
    /// Times the recorded pace; 1 is as it was.
    Times(f64),
    AtOnce,
    /// A document at a time, whenever the user says so ([`Command::Next`]). At other speeds that skips the pauses up to
    /// the end of a document.
    ByStep,
}

impl Speed {
    /// `2`, `0.5`, `10x`; `0` and `max` are at once; `step`. `None`: not a speed.
    pub fn parse(word: &str) -> Option<Self> {
        let word = word.trim();
        if word.eq_ignore_ascii_case("step") {
            return Some(Self::ByStep);
        }
        if word.eq_ignore_ascii_case("max") {
            return Some(Self::AtOnce);
        }
        let word = word.strip_suffix(['x', '×']).unwrap_or(word);
        match word.parse::<f64>() {
            Ok(0.0) => Some(Self::AtOnce),
            Ok(factor) if factor.is_finite() && factor > 0.0 => Some(Self::Times(factor)),
            Ok(_) | Err(_) => None,
        }
    }

    /// Returns the length of a pause that was recorded as `recorded`.
    pub fn takes(self, recorded: Duration) -> Duration {
        match self {
            // A tiny factor makes more than a duration can hold; an hour is as good as for ever.
            Self::Times(factor) => Duration::try_from_secs_f64(recorded.as_secs_f64() / factor)
                .map_or(LONGEST_PAUSE, |it| it.min(LONGEST_PAUSE)),
            Self::AtOnce | Self::ByStep => Duration::ZERO,
        }
    }
}

/// Readers of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Someone at a keyboard: the first turn plays, each further one waits for a message, questions wait for answers.
    Present,
    /// Nobody: everything plays to the end with the recorded messages and answers, then the log is closed.
    Absent,
    /// Someone who asks first, as at a gateway: each turn waits for a message, and after the last comes the first.
    Asking,
}

/// A recording behind the same door as everybody else.
#[derive(Debug)]
pub struct Replay {
    log: Arc<Log>,
    about: About,
    commands: lazy_channel::Outbox<Command>,
}

impl Replay {
    /// Starts to play on the current Tokio runtime; stops when the link is dropped.
    pub fn start(recording: &Recording, speed: Speed, audience: Audience) -> Self {
        let log = Log::new();
        let (commands, inbox) = lazy_channel::channel();
        let player = Player::new(recording, speed, audience);
        let about = About {
            peer: format!("replay of {}", recording.name()),
            model: recording.model(),
            is_replay: true,
            ..About::default()
        };
        tokio::spawn(play(player, Arc::clone(&log), inbox, speed));
        Self { log, about, commands }
    }
}

impl Link for Replay {
    fn log(&self) -> &Arc<Log> {
        &self.log
    }

    fn send(&self, command: Command) {
        // The player has ended only when its log is closed, and then nothing more is promised.
        let _ = self.commands.send(command);
    }

    fn about(&self) -> About {
        self.about.clone()
    }

    fn ask(&self, query: Query) -> Pin<Box<dyn Future<Output = Result<Reply, AskError>> + Send>> {
        let reply = if query == Query::Models {
            Ok(Reply::Models(self.about.model.clone().into_iter().collect()))
        } else {
            Err(AskError::Unsupported {
                peer: self.about.peer.clone(),
            })
        };
        Box::pin(std::future::ready(reply))
    }
}

/// Gives the player its clock and its commands, until the link is dropped or everything was played to nobody.
async fn play(mut player: Player, log: Arc<Log>, mut inbox: lazy_channel::Inbox<Command>, speed: Speed) {
    let mut due = Instant::now();
    // The step that `due` was computed for: a command in between must not make it wait anew.
    let mut armed = None;
    // Somebody does not want to wait: until a document has ended, pauses are skipped.
    let mut is_hurried = false;
    loop {
        is_hurried &= !player.has_shown();
        match player.need() {
            Need::Pause(_) if speed == Speed::ByStep && player.has_shown() => match inbox.recv().await {
                Some(Command::Next) => player.go_on(),
                Some(command) => player.obey(command, &log, now_ms()),
                None => return,
            },
            Need::Pause(pause) => {
                if armed != Some(player.step_number()) {
                    armed = Some(player.step_number());
                    due = if is_hurried {
                        Instant::now()
                    } else {
                        after(due, speed.takes(pause))
                    };
                }
                tokio::select! {
                    biased;
                    command = inbox.recv() => match command {
                        Some(Command::Next) => {
                            player.go_on();
                            (is_hurried, armed) = (true, None);
                        }
                        Some(command) => player.obey(command, &log, now_ms()),
                        None => return,
                    },
                    () = sleep_until(due) => {
                        player.step(&log, now_ms());
                        if speed == Speed::AtOnce {
                            for _ in 1..STEPS_AT_ONCE {
                                if !matches!(player.need(), Need::Pause(_)) {
                                    break;
                                }
                                player.step(&log, now_ms());
                            }
                            tokio::task::yield_now().await;
                        }
                    }
                }
            }
            Need::Command => match inbox.recv().await {
                Some(command) => {
                    player.obey(command, &log, now_ms());
                    due = Instant::now();
                }
                None => return,
            },
            Need::Nothing => {
                log.close();
                return;
            }
        }
    }
}

/// Returns the time of the step after the one at `due`; steps that a sleeping machine missed are not caught up.
fn after(due: Instant, pause: Duration) -> Instant {
    let now = Instant::now();
    let from = if now.saturating_duration_since(due) > Duration::from_secs(1) {
        now
    } else {
        due
    };
    from.checked_add(pause).unwrap_or(from)
}

fn now_ms() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |it| it.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        protocol::{
            ClarificationResponse, DocumentStart, Done, Entry, Event, Kind, Message, Mode, Position, ResponseStart,
            Submit, Turn,
        },
        transcript::Transcript,
    };

    /// One line per event: `user hi`, `start a text`, `end a {metadata}`, `say a words`, `done`, `when a x`, `join`.
    fn recording(script: &str) -> Recording {
        let mut turn = Turn(0);
        let entries = script.lines().map(str::trim).filter(|it| !it.is_empty()).enumerate();
        let entries = entries.map(|(at, line)| {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            let (id, more) = rest.split_once(' ').unwrap_or((rest, ""));
            let members = || match serde_json::from_str(if more.is_empty() { "{}" } else { more }) {
                Ok(Value::Object(members)) => members,
                other => panic!("{line}: {other:?}"),
            };
            let event = match word {
                "title" => Event::Title(rest.into()),
                "user" => {
                    turn.0 += 1;
                    Event::UserMessage(Message::user(rest))
                }
                "begin" => Event::ResponseStart(ResponseStart::default()),
                "start" => Event::DocumentStart(DocumentStart {
                    id: id.into(),
                    kind: Kind::parse(more),
                    sequence: None,
                    content: None,
                    metadata: serde_json::Map::new(),
                }),
                "say" => Event::ContentDelta {
                    document: id.into(),
                    delta: more.into(),
                },
                "end" => Event::DocumentEnd {
                    document: id.into(),
                    final_content: None,
                    metadata: members(),
                },
                "write" => Event::DocumentEnd {
                    document: id.into(),
                    final_content: Some(more.into()),
                    metadata: serde_json::Map::new(),
                },
                "update" => Event::DocumentUpdate {
                    document: id.into(),
                    metadata: members(),
                },
                "done" => Event::Done(Done::default()),
                "when" | "unless" => Event::Unknown {
                    name: "replay_branch".into(),
                    data: json!({ "document": id, word: [more] }),
                },
                "join" => Event::Unknown {
                    name: "replay_join".into(),
                    data: json!({}),
                },
                other => panic!("no such word: {other}"),
            };
            Entry {
                position: Position(at as u64 + 1),
                turn: if word == "update" { Turn(1) } else { turn },
                at_ms: 1_000 + at as u64 * 10,
                event,
            }
        });
        Recording::new("test", entries.collect())
    }

    fn submit(text: &str) -> Command {
        Command::Submit(Submit {
            message: Message::user(text),
            mode: Mode::Agent,
            model: None,
        })
    }

    fn answer(turn: u32, document: &str, option: &str) -> Command {
        let response = json!({
            "documentId": document, "outcome": "answered",
            "answers": [{ "questionId": "q1", "selectedOptionIds": [option] }],
        });
        Command::Answer {
            turn: Turn(turn),
            response: serde_json::from_value::<ClarificationResponse>(response).expect("is an answer"),
        }
    }

    /// Returns what a reader sees: messages with `>`, then each document's text or outcome, then the end.
    fn shown(transcript: &Transcript) -> String {
        let mut lines = Vec::new();
        for exchange in &transcript.exchanges {
            if let Some(message) = &exchange.message {
                lines.push(format!("> {}", message.content));
            }
            for it in &exchange.response.documents {
                let open = if it.is_open() { "…" } else { "" };
                match it.metadata.get("outcome") {
                    Some(outcome) => lines.push(format!(
                        "{} {} {}{open}",
                        it.id,
                        outcome.as_str().unwrap_or("?"),
                        json!(it.metadata)["answers"][0]["selectedOptionIds"]
                    )),
                    None => lines.push(format!("{} {}{open}", it.id, it.text())),
                }
            }
            if let Some(ending) = &exchange.response.ending {
                lines.push(ending.finish_reason.to_string());
            }
        }
        lines.join("\n")
    }

    struct Viewer {
        link: Replay,
        follower: crate::journal::Follower,
        transcript: Transcript,
        seen: Vec<Arc<Entry>>,
    }

    impl Viewer {
        fn of(link: Replay) -> Self {
            let follower = link.log().follow(Position(0));
            Self {
                link,
                follower,
                transcript: Transcript::default(),
                seen: Vec::new(),
            }
        }

        async fn until(&mut self, is_there: impl Fn(&Transcript) -> bool) {
            while !is_there(&self.transcript) {
                let mut batch = Vec::new();
                let more = tokio::time::timeout(Duration::from_secs(10), self.follower.next(&mut batch));
                let more = more
                    .await
                    .unwrap_or_else(|_| panic!("nothing more comes:\n{}", shown(&self.transcript)));
                assert!(more, "the log ended:\n{}", shown(&self.transcript));
                self.transcript.apply_all(&batch);
                self.seen.extend(batch);
            }
        }

        async fn until_shows(&mut self, screen: &str) {
            let screen: Vec<_> = screen.lines().map(str::trim).collect();
            let screen = screen.join("\n");
            self.until(|it| shown(it) == screen).await;
        }
    }

    const TWO_TURNS: &str = "user first
         start a text
         say a one
         end a
         done
         user second
         start a text
         say a two
         end a
         update a {\"note\": 1}
         done";

    #[tokio::test]
    async fn the_first_turn_plays_and_the_next_waits_for_a_message() {
        for speed in [Speed::AtOnce, Speed::Times(1000.0)] {
            let mut viewer = Viewer::of(Replay::start(&recording(TWO_TURNS), speed, Audience::Present));
            viewer.until_shows("> first\na one\nstop").await;
            tokio::task::yield_now().await;
            assert!(
                !viewer.follower.take(&mut Vec::new()),
                "nothing comes before the message"
            );
            viewer.link.send(submit("mine"));
            viewer.until_shows("> first\na one\nstop\n> mine\na two\nstop").await;
            assert_eq!(viewer.transcript.exchanges[0].response.documents[0].metadata["note"], 1);
            viewer.link.send(submit("more"));
            viewer.until(|it| it.exchanges.len() == 3 && !it.is_running()).await;
            assert!(shown(&viewer.transcript).contains("The recording ends here"));
        }
    }

    #[tokio::test]
    async fn nobody_there_hears_everything_and_the_log_ends() {
        let link = Replay::start(&recording(TWO_TURNS), Speed::AtOnce, Audience::Absent);
        let mut follower = link.log().follow(Position(0));
        let mut transcript = Transcript::default();
        let mut batch = Vec::new();
        while follower.next(&mut batch).await {
            transcript.apply_all(&batch);
            batch.clear();
        }
        assert_eq!(shown(&transcript), "> first\na one\nstop\n> second\na two\nstop");
        assert_eq!(transcript.exchanges[0].at_ms, 1_000, "recorded times stay");
    }

    #[tokio::test]
    async fn a_gateway_begins_anew_after_the_last_turn() {
        let titled = recording(&format!("title a talk\n{TWO_TURNS}"));
        let mut viewer = Viewer::of(Replay::start(&titled, Speed::AtOnce, Audience::Asking));
        assert!(!viewer.follower.take(&mut Vec::new()));
        for (text, says) in [("x", "a one"), ("y", "a two"), ("z", "a one")] {
            viewer.link.send(submit(text));
            viewer
                .until(|it| shown(it).ends_with(&format!("> {text}\n{says}\nstop")))
                .await;
        }
    }

    fn says(text: &str) -> Message {
        Message::user(text)
    }

    fn answers(document: &str, option: &str) -> Message {
        let Command::Answer { response, .. } = answer(1, document, option) else {
            panic!("an answer")
        };
        Message {
            clarification_response: Some(response),
            ..Message::user(option)
        }
    }

    #[tokio::test]
    async fn whoever_remembers_nothing_still_answers_in_the_middle_of_a_conversation() {
        let with_question = format!("{QUESTION}\nuser second\nstart c text\nwrite c two\ndone");
        let ends_with_question = "user first
             start q clarification
             end q {\"questions\": [{\"id\": \"q1\", \"text\": \"Which?\", \"options\": [\"x\"]}]}
             done
             user recorded
             start a text
             write a fine
             done";
        let said = Message::assistant("whatever");
        let cases = [
            ("the first", TWO_TURNS, vec![says("p")], "a one\nstop"),
            (
                "the second",
                TWO_TURNS,
                vec![says("p"), said.clone(), says("p")],
                "a two\nstop",
            ),
            (
                "the first again",
                TWO_TURNS,
                vec![says("p"), said.clone(), says("p"), said.clone(), says("p")],
                "a one\nstop",
            ),
            (
                "inside of a turn, one way",
                &with_question,
                vec![says("p"), said.clone(), answers("q", "x")],
                "a took x\nstop",
            ),
            (
                "inside of a turn, the other way",
                &with_question,
                vec![says("p"), said.clone(), answers("q", "y")],
                "b not x\nstop",
            ),
            (
                "behind it",
                &with_question,
                vec![says("p"), said.clone(), answers("q", "y"), said.clone(), says("p")],
                "c two\nstop",
            ),
            (
                "a question that ended its turn",
                ends_with_question,
                vec![says("p"), said.clone(), answers("q", "x")],
                "a fine\nstop",
            ),
            (
                "no messages in the recording",
                "start a text\nsay a one\nend a\ndone",
                vec![says("p"), said.clone(), says("p")],
                "a one\nstop",
            ),
        ];
        for (name, script, messages, wanted) in cases {
            for speed in [Speed::AtOnce, Speed::Times(1000.0)] {
                let reply = recording(script).reply_to(&messages);
                let mut viewer = Viewer::of(Replay::start(&reply, speed, Audience::Asking));
                viewer.link.send(submit("mine"));
                viewer.until(|it| !it.exchanges.is_empty() && !it.is_running()).await;
                assert_eq!(shown(&viewer.transcript), format!("> mine\n{wanted}"), "{name}");
            }
        }
    }

    #[tokio::test]
    async fn a_recording_without_messages_answers_any() {
        let bare = recording("start a text\nsay a one\nend a\ndone");
        let mut viewer = Viewer::of(Replay::start(&bare, Speed::AtOnce, Audience::Asking));
        for turn in 1..=2 {
            viewer.link.send(submit("hello"));
            viewer.until(|it| it.exchanges.len() == turn && !it.is_running()).await;
        }
        assert_eq!(shown(&viewer.transcript), "> hello\na one\nstop\n> hello\na one\nstop");
    }

    const QUESTION: &str = "user first
         start q clarification
         end q {\"questions\": [{\"id\": \"q1\", \"text\": \"Which?\", \"options\": [\"x\", \"y\"]}], \"outcome\": \"answered\", \"answers\": [{\"questionId\": \"q1\", \"selectedOptionIds\": [\"x\"]}]}
         when q x
         start a text
         write a took x
         join
         unless q x
         start b text
         write b not x
         join
         done";

    #[tokio::test]
    async fn a_question_waits_open_and_the_real_answer_counts() {
        for (option, says) in [("x", "a took x"), ("y", "b not x")] {
            let mut viewer = Viewer::of(Replay::start(&recording(QUESTION), Speed::AtOnce, Audience::Present));
            viewer.until(|it| it.open_question().is_some()).await;
            assert!(viewer.transcript.is_running(), "the document stays open while it waits");
            viewer.link.send(answer(1, "other", option));
            viewer.link.send(answer(7, "q", option));
            viewer.link.send(answer(1, "q", option));
            viewer.link.send(answer(1, "q", "late"));
            viewer
                .until_shows(&format!("> first\nq answered [\"{option}\"]\n{says}\nstop"))
                .await;
        }
    }

    #[tokio::test]
    async fn a_message_answers_an_open_question_in_the_users_words() {
        let mut viewer = Viewer::of(Replay::start(&recording(QUESTION), Speed::AtOnce, Audience::Present));
        viewer.until(|it| it.open_question().is_some()).await;
        viewer.link.send(submit("neither"));
        viewer.until(|it| !it.is_running()).await;
        let question = &viewer.transcript.exchanges[0].response.documents[0];
        assert_eq!(question.metadata["outcome"], "answered");
        assert_eq!(question.metadata["answers"][0]["freeText"], "neither");
        assert!(shown(&viewer.transcript).ends_with("b not x\nstop"));
        assert_eq!(viewer.transcript.exchanges.len(), 1, "it is no turn of its own");
    }

    #[tokio::test]
    async fn a_stop_right_behind_a_message_stops_its_turn() {
        let mut viewer = Viewer::of(Replay::start(
            &recording(TWO_TURNS),
            Speed::Times(0.001),
            Audience::Asking,
        ));
        viewer.link.send(submit("x"));
        viewer.link.send(Command::Cancel);
        viewer.until_shows("> x\ncancelled").await;
    }

    #[tokio::test]
    async fn recorded_answers_stand_when_nobody_is_there() {
        let mut viewer = Viewer::of(Replay::start(&recording(QUESTION), Speed::AtOnce, Audience::Absent));
        viewer.until_shows("> first\nq answered [\"x\"]\na took x\nstop").await;
    }

    #[tokio::test]
    async fn a_question_that_ended_its_turn_is_answered_by_the_next_message() {
        let script = "user first
             start q clarification
             end q {\"questions\": [{\"id\": \"q1\", \"text\": \"Which?\", \"options\": [{\"id\": \"x\", \"label\": \"The X\"}]}]}
             done
             user recorded
             start a text
             write a fine
             done";
        let mut viewer = Viewer::of(Replay::start(&recording(script), Speed::AtOnce, Audience::Present));
        viewer
            .until(|it| it.open_question().is_some() && !it.is_running())
            .await;
        viewer.link.send(answer(1, "q", "x"));
        viewer.until(|it| it.exchanges.len() == 2 && !it.is_running()).await;
        assert_eq!(
            shown(&viewer.transcript),
            "> first\nq answered [\"x\"]\nstop\n> Which? -> The X\na fine\nstop"
        );
    }

    #[tokio::test]
    async fn a_cancel_ends_the_turn_at_once_and_the_next_can_be_had() {
        let slow = recording(TWO_TURNS);
        let mut viewer = Viewer::of(Replay::start(&slow, Speed::Times(0.001), Audience::Present));
        viewer.until(|it| !it.exchanges.is_empty()).await;
        let asked = Instant::now();
        viewer.link.send(Command::Cancel);
        viewer.until(|it| !it.is_running()).await;
        assert!(asked.elapsed() < Duration::from_millis(100));
        assert!(shown(&viewer.transcript).ends_with("cancelled"));
        viewer.link.send(Command::Cancel);
        viewer.link.send(submit("go on"));
        viewer.until(|it| it.exchanges.len() == 2).await;
    }

    #[tokio::test]
    async fn a_cancelled_question_is_closed_as_cancelled() {
        let mut viewer = Viewer::of(Replay::start(&recording(QUESTION), Speed::AtOnce, Audience::Present));
        viewer.until(|it| it.open_question().is_some()).await;
        viewer.link.send(Command::Cancel);
        viewer.until(|it| !it.is_running()).await;
        assert_eq!(shown(&viewer.transcript), "> first\nq cancelled null\ncancelled");
    }

    #[tokio::test]
    async fn a_recording_that_breaks_off_is_shown_as_interrupted() {
        let broken = recording("user first\nstart a text\nsay a one");
        let mut viewer = Viewer::of(Replay::start(&broken, Speed::AtOnce, Audience::Present));
        viewer.until_shows("> first\na one\ninterrupted").await;
        assert!(viewer.transcript.exchanges[0].response.documents[0].is_incomplete());
    }

    #[tokio::test]
    async fn a_settled_recording_is_brought_in_pieces_and_says_the_same() {
        let settled = recording("user first\nbegin\nstart a text\nwrite a one two three\ndone");
        let mut viewer = Viewer::of(Replay::start(&settled, Speed::Times(50.0), Audience::Present));
        let deltas = settled.paced();
        let deltas: Vec<_> = deltas
            .iter()
            .filter_map(|it| match &it.event {
                Event::ContentDelta { delta, .. } => Some(delta.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(deltas, ["one ", "two ", "three"]);
        viewer.until_shows("> first\na one two three\nstop").await;
    }

    #[tokio::test]
    async fn step_by_step_a_document_comes_with_each_word() {
        let link = Replay::start(&recording(TWO_TURNS), Speed::ByStep, Audience::Absent);
        let mut follower = link.log().follow(Position(0));
        let mut entries = Vec::new();
        let shown = |entries: &[Arc<Entry>]| {
            let ends = |it: &&Arc<Entry>| matches!(it.event, Event::DocumentEnd { .. } | Event::Done(_));
            entries.iter().filter(ends).count()
        };
        let all = recording(TWO_TURNS);
        let whole: Vec<_> = all.entries().iter().cloned().map(Arc::new).collect();
        for wanted in 1..=shown(&whole) {
            while shown(&entries) < wanted {
                assert!(follower.next(&mut entries).await, "the log ended");
            }
            tokio::task::yield_now().await;
            follower.take(&mut entries);
            assert_eq!(shown(&entries), wanted, "not one more");
            link.send(Command::Next);
        }
    }

    #[tokio::test]
    async fn whoever_does_not_want_to_wait_gets_the_rest_of_the_document_at_once() {
        let link = Replay::start(&recording(TWO_TURNS), Speed::Times(0.000_001), Audience::Absent);
        let mut viewer = Viewer::of(link);
        viewer.link.send(Command::Next);
        viewer.until(|it| shown(it).contains("one")).await;
        // The end of the answer, and the next document. Somebody presses keys as often as they like.
        let keys = Replay::start(&recording(TWO_TURNS), Speed::Times(0.000_001), Audience::Absent);
        let mut presser = Viewer::of(keys);
        while !shown(&presser.transcript).contains("two") {
            presser.link.send(Command::Next);
            let mut batch = Vec::new();
            let more = tokio::time::timeout(Duration::from_millis(50), presser.follower.next(&mut batch)).await;
            assert!(more != Ok(false), "the log ended");
            presser.transcript.apply_all(&batch);
        }
    }

    #[tokio::test]
    async fn a_dropped_link_stops_its_player() {
        let link = Replay::start(&recording(TWO_TURNS), Speed::AtOnce, Audience::Present);
        let log = Arc::downgrade(link.log());
        drop(link);
        while log.upgrade().is_some() {
            tokio::task::yield_now().await;
        }
    }

    #[test]
    fn speeds_are_factors_or_at_once() {
        for (word, speed) in [
            ("1", Some(Speed::Times(1.0))),
            ("0.5", Some(Speed::Times(0.5))),
            ("10x", Some(Speed::Times(10.0))),
            ("×4", None),
            ("4×", Some(Speed::Times(4.0))),
            ("0", Some(Speed::AtOnce)),
            ("max", Some(Speed::AtOnce)),
            ("step", Some(Speed::ByStep)),
            ("-1", None),
            ("nan", None),
            ("inf", None),
            ("", None),
        ] {
            assert_eq!(Speed::parse(word), speed, "{word}");
        }
        assert_eq!(Speed::Times(1e-300).takes(Duration::from_secs(5)), LONGEST_PAUSE);
    }
}
