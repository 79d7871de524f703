//! Recordings: entries with times, read from any form in which they were saved.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, OnceLock},
};

use serde_json::{Map, Value};

use super::branch::without_marks;
use crate::{
    journal::file::read_lines,
    net::sse::{Frame, Frames},
    protocol::{
        ClarificationResponse, DocumentId, DocumentStart, Entry, Event, Kind, Message, Mode, Position, Role, Turn,
        codec::{Breach, DecodeError, Decoder, Identity},
    },
    transcript::{self, ObjectError},
};

/// The pace of a recording that has no times: 50 events a second.
const UNTIMED_STEP_MS: u64 = 20;

/// A text is brought in at most this many pieces.
const MOST_PIECES: usize = 2_000;

/// Lines of which one has to be whole for a session to be known as one.
const FIRST_LINES: usize = 8;

/// A conversation that happened, ready to be played any number of times.
#[derive(Clone, Debug)]
pub struct Recording {
    name: String,
    entries: Arc<Vec<Entry>>,
    is_timed: bool,
    derived: Arc<Derived>,
}

/// Forms of a recording that are computed once, for all who play it.
#[derive(Debug, Default)]
struct Derived {
    paced: OnceLock<Arc<Vec<Entry>>>,
    turns: OnceLock<Vec<Recording>>,
}

/// Reason why a file cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum RecordingError {
    #[error("{name} contains no answer\n  a recording is a saved event stream, a response object or a session file")]
    Empty { name: String },
    #[error("{name} cannot be played")]
    Conversation {
        name: String,
        #[source]
        source: ObjectError,
    },
    #[error("{name} was written by a newer sheaf\n  update sheaf to play it")]
    Newer { name: String },
    #[error("{name} cannot be played")]
    Unreadable {
        name: String,
        #[source]
        source: DecodeError,
    },
}

impl Recording {
    /// Reads an event stream of either dialect, a response object, or the lines of a session.
    ///
    /// What is damaged is left out and said in notices, as it was when it came.
    pub fn read(name: impl Into<String>, bytes: &[u8]) -> Result<Self, RecordingError> {
        let name = name.into();
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii_start();
        if let Some(entries) = transcript::read(text) {
            return match entries {
                Ok(entries) => Ok(Self::new(name, entries)),
                Err(source) => Err(RecordingError::Conversation { name, source }),
            };
        }
        let entries = match FileFormat::of(text) {
            FileFormat::Lines => {
                let Some(stored) = read_lines(&name, text) else {
                    return Err(RecordingError::Newer { name });
                };
                let notices = stored.notices.clone();
                let mut entries = stored.closed();
                // Behind the first message: what stands before it would be an answer of its own.
                let first = entries.iter().position(|it| matches!(it.event, Event::UserMessage(_)));
                let at = first.map_or(0, |it| it + 1);
                let (turn, at_ms) = first
                    .and_then(|it| entries.get(it))
                    .map_or((Turn(0), 0), |it| (it.turn, it.at_ms));
                let said = notices.into_iter().map(|it| Entry {
                    at_ms,
                    ..of_no_time(turn, Event::Notice(it))
                });
                entries.splice(at..at, said);
                Ok(entries)
            }
            FileFormat::Body => Decoder::body(identity(), &String::from_utf8_lossy(text))
                .map(|events| events.into_iter().map(|it| of_no_time(Turn(0), it)).collect()),
            FileFormat::Stream => read_stream(bytes),
        };
        match entries {
            Err(source) => Err(RecordingError::Unreadable { name, source }),
            Ok(entries) if !entries.iter().any(|it| shows(&it.event)) => Err(RecordingError::Empty { name }),
            Ok(entries) => Ok(Self::new(name, entries)),
        }
    }

    /// `name` is what the header calls it. Entries without times of their own get an even pace.
    pub fn new(name: impl Into<String>, mut entries: Vec<Entry>) -> Self {
        let is_timed = entries.first().map(|it| it.at_ms) < entries.last().map(|it| it.at_ms);
        let mut clock = 0;
        for (at, entry) in entries.iter_mut().enumerate() {
            // Clocks are set back now and then; a recording goes forward only.
            clock = if is_timed {
                clock.max(entry.at_ms)
            } else {
                at as u64 * UNTIMED_STEP_MS
            };
            entry.at_ms = clock;
        }
        Self::of(name.into(), Arc::new(entries), is_timed)
    }

    fn of(name: String, entries: Arc<Vec<Entry>>, is_timed: bool) -> Self {
        Self {
            name,
            entries,
            is_timed,
            derived: Arc::default(),
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// As recorded, ordered in time.
    pub fn entries(&self) -> Arc<Vec<Entry>> {
        Arc::clone(&self.entries)
    }

    /// Returns true if the times are the recorded ones.
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// The model that answered first.
    pub fn model(&self) -> Option<String> {
        self.entries.iter().find_map(|it| {
            if let Event::ResponseStart(start) = &it.event {
                start.model.clone()
            } else {
                None
            }
        })
    }

    /// Returns the answer to the last of `messages` as a recording of its own: the n-th message of the user gets the
    /// n-th turn, and after the last turn comes the first.
    ///
    /// A message that answers a question inside of a turn is answered by what follows the question there.
    pub fn reply_to(&self, messages: &[Message]) -> Self {
        let turns = self.turns();
        let turn_at = |at: usize| turns.get(at % turns.len().max(1));
        let asked = messages.iter().filter(|it| it.role == Role::User).skip(1);
        let mut at = 0;
        let mut answers: Vec<ClarificationResponse> = Vec::new();
        for message in asked {
            let turn = turn_at(at).map_or(&[][..], |it| &it.entries);
            match &message.clarification_response {
                Some(answer) if turn.iter().any(|it| is_end_of_live_question(&it.event, answer)) => {
                    answers.push(answer.clone());
                }
                Some(_) | None => {
                    at += 1;
                    answers.clear();
                }
            }
        }
        let Some(whole) = turn_at(at) else { return self.clone() };
        let Some(last) = answers.last() else {
            return whole.clone();
        };
        let turn = &whole.entries;
        let end = turn.iter().position(|it| is_end_of_live_question(&it.event, last));
        let rest = end.and_then(|it| turn.get(it + 1..)).unwrap_or_default();
        let begin = |it: &&Entry| matches!(it.event, Event::UserMessage(_) | Event::ResponseStart(_));
        let begin = turn.iter().filter(begin).cloned();
        let entries = begin.chain(without_marks(rest, &answers)).collect();
        Self::of(self.name.clone(), Arc::new(entries), self.is_timed)
    }

    /// Returns each turn as a recording of its own; the whole recording if it has no message. All players share them.
    fn turns(&self) -> &[Self] {
        self.derived.turns.get_or_init(|| {
            let is_message = |it: &Entry| matches!(it.event, Event::UserMessage(_));
            let of = |entries| Self::of(self.name.clone(), entries, self.is_timed);
            let Some(first) = self.entries.iter().position(is_message) else {
                return vec![of(Arc::clone(&self.entries))];
            };
            let rest = self.entries.get(first..).unwrap_or_default();
            let turns = rest.chunk_by(|_, next| !is_message(next));
            turns.map(|it| of(Arc::new(it.to_vec()))).collect()
        })
    }

    /// With the pieces that a journal dropped made up again: a text that took three seconds to come takes them again.
    ///
    /// Says the same in the end, because `document_end` wins.
    pub fn paced(&self) -> Arc<Vec<Entry>> {
        if !self.is_timed {
            return self.entries();
        }
        Arc::clone(self.derived.paced.get_or_init(|| self.pace()))
    }

    fn pace(&self) -> Arc<Vec<Entry>> {
        let (streamed, ends) = (self.streamed(), self.ends());
        let mut paced = Vec::with_capacity(self.entries.len());
        for (at, entry) in self.entries.iter().enumerate() {
            if let Event::ThinkingDelta { delta } = &entry.event {
                let until = self.entries.get(at + 1).map_or(entry.at_ms, |it| it.at_ms);
                spread(entry, until, &pieces(delta), &mut paced, |piece| Event::ThinkingDelta {
                    delta: piece.to_owned(),
                });
                continue;
            }
            paced.push(entry.clone());
            if let Event::DocumentStart(start) = &entry.event
                && let name = (entry.turn, start.id.clone())
                && !streamed.contains(&name)
                && let Some(&end) = ends.get(&name).filter(|&&end| end > at)
            {
                self.spread_document(at, start, end, &mut paced);
            }
        }
        // Documents that were open together come together; equal times keep their order.
        paced.sort_by_key(|it| it.at_ms);
        for (at, entry) in paced.iter_mut().enumerate() {
            entry.position = Position(at as u64 + 1);
        }
        Arc::new(paced)
    }

    /// Documents whose pieces the recording still has.
    fn streamed(&self) -> HashSet<(Turn, DocumentId)> {
        let mut streamed = HashSet::new();
        for entry in self.entries.iter() {
            if let Event::ContentDelta { document, .. } = &entry.event {
                streamed.insert((entry.turn, document.clone()));
            } else if let Event::MetadataDelta { document, append, .. } = &entry.event
                && !append.is_empty()
            {
                streamed.insert((entry.turn, document.clone()));
            }
        }
        streamed
    }

    /// Returns the index of each document's end.
    fn ends(&self) -> HashMap<(Turn, DocumentId), usize> {
        let mut ends = HashMap::new();
        for (at, entry) in self.entries.iter().enumerate() {
            if let Event::DocumentEnd { document, .. } = &entry.event {
                ends.entry((entry.turn, document.clone())).or_insert(at);
            }
        }
        ends
    }

    /// Brings the content or output of the document that starts at `at` in pieces until its end.
    fn spread_document(&self, at: usize, start: &DocumentStart, end: usize, paced: &mut Vec<Entry>) {
        let (Some(entry), Some(end)) = (self.entries.get(at), self.entries.get(end)) else {
            return;
        };
        let Event::DocumentEnd {
            final_content,
            metadata,
            ..
        } = &end.event
        else {
            return;
        };
        let until_ms = end.at_ms;
        if start.kind == Kind::TerminalCommand {
            let output = metadata.get("output").and_then(Value::as_str).unwrap_or_default();
            let lines: Vec<_> = output.split_inclusive('\n').collect();
            spread(entry, until_ms, &grouped(output, &lines), paced, |piece| {
                Event::MetadataDelta {
                    document: start.id.clone(),
                    metadata: Map::new(),
                    append: vec![("output".to_owned(), piece.to_owned())],
                }
            });
        } else if let (None, Some(content)) = (&start.content, final_content) {
            spread(entry, until_ms, &pieces(content), paced, |piece| Event::ContentDelta {
                document: start.id.clone(),
                delta: piece.to_owned(),
            });
        }
    }
}

/// Returns true if the event ends the question that `answer` is for, with the recorded answer.
fn is_end_of_live_question(event: &Event, answer: &ClarificationResponse) -> bool {
    matches!(event, Event::DocumentEnd { document, metadata, .. }
        if *document == answer.document_id && metadata.contains_key("outcome"))
}

/// File format of a recording.
enum FileFormat {
    Lines,
    Body,
    Stream,
}

impl FileFormat {
    fn of(text: &[u8]) -> Self {
        if text.first() != Some(&b'{') {
            return Self::Stream;
        }
        // The first lines of a session may be damaged; a response object may stand on one line.
        let is_record = |line: &[u8]| {
            let members = serde_json::from_slice::<Map<String, Value>>(line);
            members.is_ok_and(|it| it.contains_key("event") || it.contains_key("session"))
        };
        if text.split(|&it| it == b'\n').take(FIRST_LINES).any(is_record) {
            Self::Lines
        } else {
            Self::Body
        }
    }
}

/// Reads frames to their end. A message between responses opens a turn.
fn read_stream(bytes: &[u8]) -> Result<Vec<Entry>, DecodeError> {
    let mut frames = Frames::new();
    let mut found = frames.push(bytes);
    found.extend(frames.finish());
    let mut entries = Vec::new();
    let mut turn = Turn(0);
    let mut decoder = None;
    for frame in found {
        let events = match frame {
            Ok(frame) => {
                if let Some(message) = message_of(&frame) {
                    if let Some(mut open) = decoder.take() {
                        close(&mut open, turn, &mut entries);
                    }
                    turn.0 += 1;
                    vec![Event::UserMessage(message)]
                } else {
                    decoder
                        .get_or_insert_with(|| Decoder::new(identity()))
                        .frame(frame.event.as_deref(), &frame.data)?
                }
            }
            Err(error) => decoder.get_or_insert_with(|| Decoder::new(identity())).fail(&Breach {
                code: "STREAM_PROTOCOL",
                source: "stream",
                message: "the recording cannot be read further",
                details: &error.to_string(),
            }),
        };
        entries.extend(events.into_iter().map(|it| of_no_time(turn, it)));
    }
    if let Some(mut open) = decoder.take() {
        close(&mut open, turn, &mut entries);
    }
    Ok(entries)
}

fn close(decoder: &mut Decoder, turn: Turn, entries: &mut Vec<Entry>) {
    entries.extend(decoder.finish().into_iter().map(|it| of_no_time(turn, it)));
}

/// The message of a `user_message` event, in either dialect.
fn message_of(frame: &Frame) -> Option<Message> {
    if frame.event.as_deref().is_some_and(|it| it != "user_message")
        || !frame.data.contains("user_message") && frame.event.is_none()
    {
        return None;
    }
    let mut members: Map<String, Value> = serde_json::from_str(&frame.data).ok()?;
    if frame.event.is_none() && members.get("type").and_then(Value::as_str) != Some("user_message") {
        return None;
    }
    serde_json::from_value(members.shift_remove("message")?).ok()
}

fn of_no_time(turn: Turn, event: Event) -> Entry {
    Entry {
        position: Position(0),
        turn,
        at_ms: 0,
        event,
    }
}

/// Returns true if the event is visible.
fn shows(event: &Event) -> bool {
    matches!(
        event,
        Event::UserMessage(_) | Event::DocumentStart(_) | Event::ThinkingDelta { .. } | Event::Done(_)
    )
}

/// Returns the identity of a response that does not name its own.
fn identity() -> Identity {
    Identity::local("", Mode::Agent, super::now_ms())
}

/// Puts one event for each piece between `from` and `until_ms`; a single one when there is no time between them.
fn spread(from: &Entry, until_ms: u64, pieces: &[&str], paced: &mut Vec<Entry>, event: impl Fn(&str) -> Event) {
    let span = until_ms.saturating_sub(from.at_ms);
    let count = pieces.len() as u64;
    for (at, piece) in pieces.iter().enumerate() {
        paced.push(Entry {
            // The last piece comes a step before the end.
            at_ms: from.at_ms + span * at as u64 / count.max(1),
            event: event(piece),
            ..from.clone()
        });
    }
}

/// Words with the space behind them.
fn pieces(text: &str) -> Vec<&str> {
    let words: Vec<_> = text.split_inclusive([' ', '\n']).collect();
    grouped(text, &words)
}

/// Neighbours joined until there are few enough of them. `parts` make up `text`.
fn grouped<'a>(text: &'a str, parts: &[&'a str]) -> Vec<&'a str> {
    let size = parts.len().div_ceil(MOST_PIECES).max(1);
    let mut from = 0;
    parts
        .chunks(size)
        .map(|group| {
            let to = from + group.iter().map(|it| it.len()).sum::<usize>();
            let piece = text.get(from..to).unwrap_or_default();
            from = to;
            piece
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Transcript;

    const TURNS: &str = "event: user_message\ndata: {\"turn\":1,\"message\":{\"role\":\"user\",\"content\":\"first\"}}\n\n\
        event: document_start\ndata: {\"id\":\"d\",\"type\":\"text\"}\n\n\
        event: content_delta\ndata: {\"documentId\":\"d\",\"delta\":\"grüße\"}\n\n\
        event: document_end\ndata: {\"documentId\":\"d\"}\n\nevent: done\ndata: {}\n\n\
        data: {\"type\":\"user_message\",\"message\":{\"role\":\"user\",\"content\":\"second\"}}\n\n\
        data: {\"type\":\"document_start\",\"document\":{\"id\":\"d\",\"type\":\"text\"}}\n\n\
        data: {\"type\":\"content_delta\",\"documentId\":\"d\",\"delta\":\"fine\"}\n\n\
        data: {\"type\":\"document_end\",\"documentId\":\"d\"}\n\ndata: [DONE]\n\n";

    fn fold(entries: &[Entry]) -> Transcript {
        let mut transcript = Transcript::default();
        for entry in entries {
            transcript.apply(entry);
        }
        transcript
    }

    fn shown(transcript: &Transcript) -> Vec<(Option<String>, String)> {
        let exchanges = transcript.exchanges.iter();
        exchanges
            .map(|it| {
                (
                    it.message.as_ref().map(|it| it.content.clone()),
                    it.response.plain_text(),
                )
            })
            .collect()
    }

    #[test]
    fn a_stream_may_hold_several_turns_in_either_dialect() {
        let recording = Recording::read("x", TURNS.as_bytes()).expect("it can be played");
        assert_eq!(
            shown(&fold(&recording.entries())),
            [
                (Some("first".to_owned()), "grüße".to_owned()),
                (Some("second".to_owned()), "fine".to_owned()),
            ]
        );
        assert!(!recording.is_timed());
    }

    #[test]
    fn a_stream_cut_at_any_byte_is_played_as_far_as_it_goes() {
        let mut longest = 0;
        for length in 0..=TURNS.len() {
            let bytes = &TURNS.as_bytes()[..length];
            let Ok(recording) = Recording::read("x", bytes) else {
                assert_eq!(longest, 0, "{length} bytes give nothing where fewer gave something");
                continue;
            };
            let transcript = fold(&recording.entries());
            let text: String = shown(&transcript).into_iter().map(|it| it.1).collect();
            assert!(text.len() >= longest, "{length} bytes show less than fewer");
            longest = text.len();
            let open = transcript.exchanges.iter().flat_map(|it| &it.response.documents);
            assert!(
                open.clone().all(|it| !it.is_open()),
                "{length} bytes leave a document open"
            );
        }
        assert_eq!(longest, "grüßefine".len());
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_recording() {
        for text in [
            TURNS,
            "{\"documents\":[{\"id\":\"d\",\"type\":\"text\",\"content\":\"x\"}]}",
        ] {
            let marked = format!("\u{feff}{text}");
            assert!(Recording::read("x", marked.as_bytes()).is_ok());
        }
    }

    #[test]
    fn a_session_with_a_damaged_beginning_is_still_a_session() {
        let lines = "{\"v\":1,\"n\":0,\"sess\n\
            {\"turn\":1,\"at\":5,\"event\":\"user_message\",\"data\":{\"message\":{\"role\":\"user\",\"content\":\"hi\"}}}\n\
            {\"turn\":1,\"at\":6,\"event\":\"document_start\",\"data\":{\"id\":\"d\",\"type\":\"text\",\"content\":\"half\"}}\n";
        let recording = Recording::read("x", lines.as_bytes()).expect("it can be played");
        let transcript = fold(&recording.entries());
        let exchange = transcript
            .exchanges
            .iter()
            .find(|it| it.turn == Turn(1))
            .expect("it is there");
        assert_eq!(exchange.response.plain_text(), "half");
        assert!(!exchange.response.is_running(), "what had no end is ended");
        assert_eq!(
            transcript.exchanges.len(),
            1,
            "what is said of the damage is no answer of its own"
        );
        assert!(!exchange.response.notices.is_empty());
    }

    #[test]
    fn clocks_that_were_set_back_do_not_play_backwards() {
        let at = |at_ms| Entry {
            at_ms,
            ..of_no_time(Turn(1), Event::Title("x".into()))
        };
        let recording = Recording::new("x", vec![at(10), at(30), at(20), at(40)]);
        let times: Vec<_> = recording.entries().iter().map(|it| it.at_ms).collect();
        assert_eq!(times, [10, 30, 30, 40]);
        let untimed = Recording::new("x", vec![at(7), at(7), at(7)]);
        let times: Vec<_> = untimed.entries().iter().map(|it| it.at_ms).collect();
        assert_eq!(times, [0, 20, 40]);
    }

    #[test]
    fn long_texts_come_in_a_bounded_number_of_pieces_that_make_up_the_whole() {
        for text in ["", "one", "a b\nc  d ", &"word ".repeat(50_000), &"ä".repeat(9_999)] {
            let pieces = pieces(text);
            assert!(pieces.len() <= MOST_PIECES);
            assert_eq!(pieces.concat(), text);
        }
    }
}
