//! What holds for every conversation: one fold for both dialects and the body however the bytes are cut, every prefix
//! readable, nothing unknown lost, and no second thoughts about what was once decoded.

use std::collections::HashSet;

use proptest::{
    collection::{btree_map, vec},
    prelude::*,
    sample::Index,
};
use serde_json::{Map, Value, json};
use sheaf::protocol::{
    Dialect, DocumentId, DocumentStart, Done, Entry, Event, FinishReason, Kind, Message, Mode, Notice, Position,
    Progress, Response, ResponseStart, Severity, Status, Turn, Usage,
    codec::{Decoder, Identity, Limits, Strict, frame, record},
};

use super::{Encoder, answer, assert_strict, feed, fold, identity};

/// Text with what breaks naive readers: line ends, quotes, escapes, astral characters, combining marks, fences.
fn text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[a-z ]{0,8}",
        Just("\n".to_owned()),
        Just("\r\n".to_owned()),
        Just("data: x\n\n".to_owned()),
        Just("[DONE]".to_owned()),
        Just("\"\\\u{0}\u{1b}[31m".to_owned()),
        Just("漢字 🧵 e\u{301} \u{2028}\u{feff}".to_owned()),
        Just("```rust\n".to_owned()),
        any::<char>().prop_map(String::from),
    ];
    vec(piece, 0..6).prop_map(|it| it.concat())
}

/// JSON without floats: printing and parsing one may change its last digit.
fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000..1000_i32).prop_map(|it| Value::from(f64::from(it) / 4.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::from),
            btree_map("[a-zü]{1,4}", inner, 0..4).prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

/// Members that nobody knows. Their names are none that any kind or alias has.
fn unknown_members() -> impl Strategy<Value = Map<String, Value>> {
    btree_map("x_[a-zé漢.]{1,5}", json_value(), 0..3).prop_map(|it| it.into_iter().collect())
}

fn word(known: &'static [&'static str]) -> impl Strategy<Value = Value> {
    prop_oneof![4 => proptest::sample::select(known).prop_map(Value::from), 1 => "[a-z_]{1,9}".prop_map(Value::from)]
}

/// Each member is there or not.
fn members(strategies: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Map<String, Value>> {
    let each: Vec<_> = strategies
        .into_iter()
        .map(|(name, value)| {
            proptest::option::weighted(0.8, value).prop_map(move |it| it.map(|it| (name.to_owned(), it)))
        })
        .collect();
    each.prop_map(|it| it.into_iter().flatten().collect()).boxed()
}

fn object(strategies: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    members(strategies).prop_map(Value::Object).boxed()
}

fn metadata(kind: &Kind) -> BoxedStrategy<Map<String, Value>> {
    let string = || text().prop_map(Value::from).boxed();
    let count = || (0..500_u64).prop_map(Value::from).boxed();
    let path = || "(src/)?[a-z]{1,6}\\.(rs|py|md|x)".prop_map(Value::from).boxed();
    let yes = || any::<bool>().prop_map(Value::from).boxed();
    let todo = || {
        object(vec![
            ("id", "[a-d]".prop_map(Value::from).boxed()),
            ("content", string()),
            (
                "status",
                word(&["pending", "in_progress", "completed", "cancelled"]).boxed(),
            ),
            ("dependencies", vec("[a-e]", 0..3).prop_map(Value::from).boxed()),
        ])
    };
    let known = match kind {
        Kind::Text => vec![("format", word(&["markdown", "plain"]).boxed())],
        Kind::CodeReference => vec![("filePath", path()), ("startLine", count()), ("endLine", count())],
        Kind::CodeBlock => vec![
            ("language", "[a-z]{0,5}".prop_map(Value::from).boxed()),
            ("purpose", word(&["new_code", "example", "suggestion"]).boxed()),
        ],
        Kind::FileEdit => vec![
            ("filePath", path()),
            ("operation", word(&["create", "edit", "delete", "rename"]).boxed()),
            (
                "diff",
                object(vec![
                    ("oldString", string()),
                    ("newString", string()),
                    ("startLine", count()),
                    ("endLine", count()),
                ]),
            ),
            ("applied", word(&["pending", "applied", "rejected", "failed"]).boxed()),
            ("hunk", object(vec![("index", count()), ("count", count())])),
            ("toolCallId", "call_[a-z]{3}".prop_map(Value::from).boxed()),
        ],
        Kind::ToolCall => vec![
            ("toolName", "[a-z_]{1,8}".prop_map(Value::from).boxed()),
            ("toolCallId", "call_[a-z]{3}".prop_map(Value::from).boxed()),
            (
                "arguments",
                btree_map("[a-z]{1,4}", json_value(), 0..3)
                    .prop_map(|it| Value::Object(it.into_iter().collect()))
                    .boxed(),
            ),
            (
                "result",
                (word(&["success", "error"]), json_value())
                    .prop_map(|(status, data)| match status.as_str() {
                        Some("success" | "error") => json!({ "status": status, "data": data }),
                        _ => json!({ "status": "success", "data": data }),
                    })
                    .boxed(),
            ),
            ("duration_ms", count()),
            ("truncated", yes()),
        ],
        Kind::TerminalCommand => vec![
            ("command", string()),
            ("workingDirectory", path()),
            ("exitCode", (-1..3_i64).prop_map(Value::from).boxed()),
            ("output", string()),
            ("duration_ms", count()),
            (
                "permissions",
                vec(word(&["network", "git_write", "all"]), 0..3)
                    .prop_map(Value::from)
                    .boxed(),
            ),
            ("state", word(&["running", "completed", "background"]).boxed()),
        ],
        Kind::Plan => vec![
            ("title", string()),
            ("overview", string()),
            ("todos", vec(todo(), 0..4).prop_map(Value::from).boxed()),
        ],
        Kind::Clarification => {
            let option = object(vec![("id", "[a-d]".prop_map(Value::from).boxed()), ("label", string())]);
            let question = object(vec![
                ("id", "q[1-4]".prop_map(Value::from).boxed()),
                ("text", string()),
                ("options", vec(option, 0..3).prop_map(Value::from).boxed()),
                ("allowMultiple", yes()),
            ]);
            vec![
                ("questions", vec(question, 0..3).prop_map(Value::from).boxed()),
                ("kind", word(&["question", "approval"]).boxed()),
                (
                    "subject",
                    string()
                        .prop_map(|it| json!({ "type": "text", "content": null, "metadata": { "x": it } }))
                        .boxed(),
                ),
            ]
        }
        Kind::Error => vec![
            ("errorCode", word(&["INTERNAL", "TOOL_FAILED"]).boxed()),
            ("source", string()),
            ("details", json_value().boxed()),
        ],
        // To some kinds these members mean nothing.
        _ => vec![
            ("todos", vec(todo(), 0..4).prop_map(Value::from).boxed()),
            ("merge", yes()),
            ("points", json_value().boxed()),
            ("title", json_value().boxed()),
        ],
    };
    (members(known), unknown_members())
        .prop_map(|(mut known, unknown)| {
            known.extend(unknown);
            known
        })
        .boxed()
}

fn kind() -> impl Strategy<Value = Kind> {
    let mut kinds: Vec<_> = Kind::KNOWN.iter().map(|it| Kind::parse(it)).collect();
    kinds.push(Kind::Other("chart".to_owned()));
    proptest::sample::select(kinds)
}

/// The events of one document as a producer of ours makes them, between its start and its end.
#[derive(Clone, Debug)]
struct Story {
    kind: Kind,
    content: Option<String>,
    /// Where to cut the content.
    cuts: Vec<Index>,
    metadata: Map<String, Value>,
    /// Which members come with the start, which by a delta; the rest comes with the end.
    when: Vec<u8>,
    /// A patch after the end.
    update: Option<Map<String, Value>>,
    /// The end says the text once more.
    says_final: bool,
}

fn story() -> impl Strategy<Value = Story> {
    kind().prop_flat_map(|kind| {
        let update = btree_map("(x_[a-c]|note)", json_value(), 0..3).prop_map(|it| it.into_iter().collect());
        (
            proptest::option::weighted(0.8, text()),
            vec(any::<Index>(), 0..4),
            metadata(&kind),
            vec(0..3_u8, 12),
            proptest::option::weighted(0.2, update),
            any::<bool>(),
        )
            .prop_map(move |(content, cuts, metadata, when, update, says_final)| Story {
                kind: kind.clone(),
                content,
                cuts,
                metadata,
                when,
                update,
                says_final,
            })
    })
}

/// Whether no patch could carry the value: RFC 7396 takes nulls for removals.
fn has_nulls(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.values().any(has_nulls),
        _ => false,
    }
}

impl Story {
    fn events(&self, number: u64) -> Vec<Event> {
        let id = DocumentId::numbered(number);
        let mut start = Map::new();
        let mut delta = Map::new();
        let mut between = Vec::new();
        for ((name, value), when) in self.metadata.iter().zip(self.when.iter().cycle()) {
            let is_whole = matches!(name.as_str(), "arguments" | "result" | "subject");
            if has_nulls(value) && !is_whole {
                start.insert(name.clone(), value.clone());
                continue;
            }
            match (name.as_str(), when) {
                ("arguments", 0) if self.kind == Kind::ToolCall => between.push(Event::ToolCallArguments {
                    document: id.clone(),
                    arguments: value.clone(),
                }),
                // As pieces of its text.
                ("arguments", 1) if self.kind == Kind::ToolCall => {
                    let text = value.to_string();
                    let middle = text.floor_char_boundary(text.len() / 2);
                    between.extend([&text[..middle], &text[middle..]].map(|it| Event::ToolCallArguments {
                        document: id.clone(),
                        arguments: it.into(),
                    }));
                }
                ("result", 0 | 1) if self.kind == Kind::ToolCall => between.push(Event::ToolResult {
                    document: id.clone(),
                    result: value.clone(),
                    duration_ms: self.metadata.get("duration_ms").and_then(Value::as_u64),
                }),
                ("toolName", 1) if self.kind == Kind::ToolCall => between.push(Event::ToolCallStart {
                    document: id.clone(),
                    tool_name: value.as_str().unwrap_or_default().to_owned(),
                    tool_call_id: None,
                }),
                ("output", 0 | 1) => between.extend(
                    pieces(value.as_str().unwrap_or_default(), &self.cuts)
                        .into_iter()
                        .map(|it| Event::MetadataDelta {
                            document: id.clone(),
                            metadata: Map::new(),
                            append: vec![("output".to_owned(), it)],
                        }),
                ),
                (_, 0) => {
                    start.insert(name.clone(), value.clone());
                }
                (_, 1) => {
                    delta.insert(name.clone(), value.clone());
                }
                _ => {}
            }
        }
        if !delta.is_empty() {
            between.push(Event::MetadataDelta {
                document: id.clone(),
                metadata: delta,
                append: Vec::new(),
            });
        }
        if let Some(content) = &self.content {
            between.extend(
                pieces(content, &self.cuts)
                    .into_iter()
                    .map(|delta| Event::ContentDelta {
                        document: id.clone(),
                        delta,
                    }),
            );
        }
        // An empty text has no deltas: only the end can say that it is there.
        let is_empty = self.content.as_ref().is_some_and(String::is_empty);
        let mut events = vec![Event::DocumentStart(DocumentStart {
            id: id.clone(),
            kind: self.kind.clone(),
            sequence: None,
            content: None,
            metadata: start,
        })];
        events.extend(between);
        events.push(Event::DocumentEnd {
            document: id.clone(),
            final_content: self
                .content
                .clone()
                .filter(|_| self.says_final || is_empty)
                .map(Into::into),
            metadata: self
                .metadata
                .iter()
                .filter(|(_, it)| !it.is_null())
                .map(|(name, it)| (name.clone(), it.clone()))
                .collect(),
        });
        events.extend(self.update.clone().map(|metadata| Event::DocumentUpdate {
            document: id.clone(),
            metadata,
        }));
        events
    }
}

/// The text cut at these places; no piece is empty.
fn pieces(text: &str, cuts: &[Index]) -> Vec<String> {
    let mut places: Vec<_> = cuts
        .iter()
        .map(|it| text.floor_char_boundary(it.index(text.len() + 1)))
        .collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places
        .windows(2)
        .filter(|it| it[0] < it[1])
        .map(|it| text[it[0]..it[1]].to_owned())
        .collect()
}

/// A whole conversation: documents interleaved at will, with everything else that may stand between.
fn conversation() -> impl Strategy<Value = Vec<Event>> {
    let start = (unknown_members(), vec("[a-z_]{1,8}", 0..2)).prop_map(|(extra, capabilities)| {
        Event::ResponseStart(ResponseStart {
            id: Some("chat_1".into()),
            conversation_id: Some("conv_1".into()),
            model: Some("paper-1".to_owned()),
            mode: Some(Mode::Plan),
            created: Some("2026-05-04T10:20:30Z".to_owned()),
            capabilities,
            extra,
        })
    });
    let done = (
        proptest::option::of((0..99_u64, 0..99_u64)),
        proptest::option::of(0..9_u64),
        proptest::sample::select(vec![
            FinishReason::Stop,
            FinishReason::Length,
            FinishReason::Other("bored".to_owned()),
        ]),
        unknown_members(),
        unknown_members(),
    )
        .prop_map(|(usage, count, finish_reason, extra, extra_metadata)| {
            Event::Done(Done {
                usage: usage.map(|(prompt_tokens, completion_tokens)| Usage {
                    prompt_tokens,
                    completion_tokens,
                    total_tokens: prompt_tokens + completion_tokens,
                }),
                status: Some(Status::Completed),
                finish_reason: Some(finish_reason),
                duration_ms: count,
                turn_count: count,
                extra,
                extra_metadata,
                ..Done::default()
            })
        });
    let aside = prop_oneof![
        text()
            .prop_filter("no empty delta", |it| !it.is_empty())
            .prop_map(|delta| Event::ThinkingDelta { delta }),
        ("[a-z]{3,9}_event", btree_map("[a-zü]{1,4}", json_value(), 0..3)).prop_map(|(name, data)| Event::Unknown {
            name,
            data: Value::Object(data.into_iter().collect()),
        }),
        text().prop_map(|it| Event::Title(it.into())),
        text().prop_map(|it| Event::UserMessage(Message::user(it))),
        Just(Event::Progress(Progress::Idle)),
        text().prop_map(|message| {
            Event::Notice(Notice {
                severity: Severity::Info,
                code: "seen".to_owned(),
                message,
                document: None,
            })
        }),
    ];
    (vec(story(), 0..6), vec(any::<u8>(), 64), vec(aside, 0..4), start, done).prop_map(
        |(stories, picks, asides, start, done)| {
            let mut threads: Vec<std::collections::VecDeque<_>> = (1..)
                .zip(&stories)
                .map(|(number, it)| it.events(number).into())
                .collect();
            threads.push(asides.into());
            let mut events = vec![start];
            let mut picks = picks.into_iter().cycle();
            let mut started = 0;
            while threads.iter().any(|it| !it.is_empty()) {
                // A document starts only after those before it did, so that their order is that of their ids.
                let ready: Vec<_> = (0..threads.len())
                    .filter(|&it| !threads[it].is_empty() && (it <= started || it == threads.len() - 1))
                    .collect();
                let at = ready[usize::from(picks.next().unwrap_or(0)) % ready.len()];
                if at == started && at < stories.len() {
                    started += 1;
                }
                events.extend(threads[at].pop_front());
            }
            events.push(done);
            events
        },
    )
}

fn encoded(dialect: Dialect, events: &[Event]) -> String {
    let mut encoder = Encoder::new(dialect, writer());
    let mut text: String = events.iter().map(|it| encoder.push(it)).collect();
    text.push_str(&encoder.finish());
    text
}

/// Everything is said by the source, so nothing of this may be seen.
fn writer() -> Identity {
    Identity {
        id: "chat_writer".into(),
        conversation_id: Some("conv_writer".into()),
        model: "writer".to_owned(),
        mode: Mode::Debug,
        created_ms: 5,
    }
}

/// The bytes in pieces.
fn split<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<_> = cuts.iter().map(|it| it.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|it| &bytes[it[0]..it[1]]).collect()
}

/// All that a person could see of a response.
fn seen(response: &Response) -> Value {
    let thinking: Vec<_> = response
        .thinking
        .iter()
        .map(|it| (it.before, it.text.clone()))
        .collect();
    json!([answer(response, &identity()), thinking, response.origin.capabilities])
}

fn without_thinking(mut seen: Value) -> Value {
    seen[1] = json!([]);
    seen[2] = json!([]);
    seen
}

proptest! {
    #![proptest_config(super::cases(128))]

    #[test]
    fn both_dialects_and_the_body_fold_to_the_same_however_the_bytes_are_cut(
        events in conversation(),
        cuts in vec(any::<Index>(), 0..40),
        line_end in proptest::sample::select(vec!["\n", "\r\n", "\r"]),
    ) {
        let local = fold(&events);
        for dialect in [Dialect::Named, Dialect::Data] {
            let text = encoded(dialect, &events).replace('\n', line_end);
            let decoded = feed(split(text.as_bytes(), &cuts), Limits::default());
            assert_strict(&decoded);
            let response = fold(&decoded);
            prop_assert_eq!(&seen(&response), &seen(&local), "{:?}", dialect);
            let complaints: Vec<_> = response.notices.iter().filter(|it| it.code != "bad-dependency").collect();
            prop_assert!(complaints.is_empty(), "{:?}", complaints);
        }
        let body = answer(&local, &writer());
        let decoded = Decoder::body(identity(), &body.to_string()).expect("an answer");
        assert_strict(&decoded);
        prop_assert_eq!(seen(&fold(&decoded)), without_thinking(seen(&local)));
    }

    #[test]
    fn what_was_made_strict_folds_to_the_same_is_one_event_each_and_stays_as_it_is(events in conversation()) {
        let (mut strict, mut again) = (Strict::new(writer()), Strict::new(writer()));
        let mut said: Vec<_> = events.iter().flat_map(|it| strict.push(it)).collect();
        said.extend(strict.finish());
        let twice: Vec<_> = said.iter().flat_map(|it| again.push(it)).collect();
        prop_assert_eq!(&twice, &said);
        prop_assert_eq!(seen(&fold(&said)), seen(&fold(&events)));
        for event in &said {
            prop_assert_eq!(frame(Dialect::Named, event).matches("\n\n").count(), 1, "{:?}", event);
        }
    }

    #[test]
    fn a_reader_that_only_patches_sees_the_same(events in conversation()) {
        // What another program would do that takes the tables by the letter: no fold of ours.
        for dialect in [Dialect::Named, Dialect::Data] {
            let text = encoded(dialect, &events);
            let naive = naive_fold(&text);
            for (document, whole) in naive.iter().zip(answer(&fold(&events), &writer())["documents"].as_array().expect("a list")) {
                prop_assert_eq!(&document["id"], &whole["id"]);
                prop_assert_eq!(&document["sequence"], &whole["sequence"]);
                prop_assert_eq!(document["content"].as_str().unwrap_or_default(), whole["content"].as_str().unwrap_or_default());
                for (name, value) in whole["metadata"].as_object().expect("an object") {
                    if !has_nulls(value) {
                        prop_assert_eq!(&document["metadata"][name], value, "{} of {}", name, whole);
                    }
                }
            }
        }
    }

    #[test]
    fn what_was_decoded_once_is_decoded_to_itself_without_a_notice(events in conversation()) {
        for dialect in [Dialect::Named, Dialect::Data] {
            let read = |events: &[Event]| feed([encoded(dialect, events).as_bytes()], Limits::default());
            let once = read(&events);
            let again = read(&once);
            let plain = |events: &[Event]| -> Vec<Event> {
                events.iter().filter(|it| !matches!(it, Event::Notice(it) if it.code == "bad-dependency")).cloned().collect()
            };
            prop_assert_eq!(plain(&once), plain(&again));
        }
    }

    #[test]
    fn a_settled_log_writes_the_same_conversation(events in conversation()) {
        let settled: Vec<_> = feed([encoded(Dialect::Named, &events).as_bytes()], Limits::default())
            .into_iter().filter(|it| !super::is_delta(it)).collect();
        let read = feed([encoded(Dialect::Data, &settled).as_bytes()], Limits::default());
        prop_assert_eq!(seen(&fold(&read)), seen(&fold(&events)));
    }

    #[test]
    fn every_prefix_folds_and_keeps_what_has_ended(events in conversation(), cut in any::<Index>()) {
        // Changes after the end may be cut off, too.
        let events: Vec<_> = events.into_iter().filter(|it| !matches!(it, Event::DocumentUpdate { .. })).collect();
        let whole = fold(&events);
        for dialect in [Dialect::Named, Dialect::Data] {
            let text = encoded(dialect, &events);
            let prefix = &text.as_bytes()[..cut.index(text.len() + 1)];
            let decoded = feed([prefix], Limits::default());
            assert_strict(&decoded);
            let read = fold(&decoded);
            for document in read.documents.iter().filter(|it| !it.is_incomplete()) {
                let wanted = whole.get(&document.id).expect("it started").to_json(0);
                prop_assert_eq!(document.to_json(0), wanted);
            }
            let marks = String::from_utf8_lossy(prefix);
            let ended: HashSet<_> = read.documents.iter().filter(|it| !it.is_incomplete()).map(|it| it.id.clone()).collect();
            prop_assert!(ended.len() + 1 >= marks.matches("document_end").count().min(ended.len() + 1));
        }
    }

    #[test]
    fn records_lose_nothing(events in conversation(), turn in any::<u32>(), at_ms in any::<u64>()) {
        for (position, event) in (1..).zip(events) {
            let entry = Entry { position: Position(position), turn: Turn(turn), at_ms, event };
            match record::to_line(&entry) {
                None => prop_assert!(matches!(entry.event, Event::Progress(_))),
                Some(line) => {
                    prop_assert!(!line.contains('\n'));
                    let members = record::to_json(&entry).expect("it is stored");
                    prop_assert_eq!(&line, &Value::Object(members).to_string());
                    prop_assert_eq!(record::from_line(&line).expect("a record"), entry);
                }
            }
        }
    }

    #[test]
    fn unknown_members_survive_decoding_saving_writing_and_decoding(
        kind in kind(),
        metadata in unknown_members(),
        extra in unknown_members(),
        is_flat in any::<bool>(),
        is_stream in any::<bool>(),
    ) {
        let mut document = json!({ "id": "a", "type": kind, "content": "c" });
        if is_flat {
            document.as_object_mut().expect("an object").extend(metadata.clone());
        } else {
            document["metadata"] = metadata.clone().into();
        }
        let decoded = if is_stream {
            let mut end = Value::Object(extra.clone());
            end["type"] = "done".into();
            let start = json!({ "type": "document_start", "document": document });
            feed([format!("data: {start}\n\ndata: {end}\n\n").as_bytes()], Limits::default())
        } else {
            let mut body = Value::Object(extra.clone());
            body["documents"] = json!([document]);
            Decoder::body(identity(), &body.to_string()).expect("an answer")
        };
        let saved: Vec<_> = decoded.into_iter().map(|event| {
            let entry = Entry { position: Position(1), turn: Turn(1), at_ms: 0, event };
            record::from_line(&record::to_line(&entry).expect("no progress")).expect("a record").event
        }).collect();
        for dialect in [Dialect::Named, Dialect::Data] {
            let whole = answer(&fold(&feed([encoded(dialect, &saved).as_bytes()], Limits::default())), &identity());
            for (name, value) in &metadata {
                prop_assert_eq!(whole["documents"][0]["metadata"].get(name), Some(value), "{:?} {}", dialect, name);
            }
            for (name, value) in &extra {
                prop_assert_eq!(whole.get(name), Some(value));
            }
        }
    }
}

/// A fold that another program might have: patches by RFC 7396, `finalContent`, results; defaults nowhere.
fn naive_fold(stream: &str) -> Vec<Value> {
    let mut documents: Vec<Value> = Vec::new();
    for frame in stream.split("\n\n") {
        let field = |name: &str| frame.lines().find_map(|it| it.strip_prefix(name)).map(str::trim);
        let Some(data) = field("data:").filter(|it| *it != "[DONE]") else {
            continue;
        };
        let data: Value = serde_json::from_str(data).expect("a strict writer writes JSON");
        let name = field("event:")
            .map(str::to_owned)
            .or_else(|| data["type"].as_str().map(str::to_owned))
            .expect("a name");
        if name == "document_start" {
            documents.push(data.get("document").unwrap_or(&data).clone());
            continue;
        }
        let Some(document) = documents.iter_mut().find(|it| it["id"] == data["documentId"]) else {
            continue;
        };
        match name.as_str() {
            "content_delta" => {
                let text = document["content"].as_str().unwrap_or_default().to_owned();
                document["content"] = (text + data["delta"].as_str().expect("text")).into();
            }
            "tool_call_start" => {
                document["metadata"]["toolName"] = data["toolName"].clone();
                document["metadata"]["toolCallId"] = data["toolCallId"].clone();
            }
            "tool_call_arguments" => document["metadata"]["arguments"] = data["arguments"].clone(),
            "tool_result" => document["metadata"]["result"] = data["result"].clone(),
            "metadata_delta" | "document_end" | "document_update" => {
                if let Some(text) = data.get("finalContent") {
                    document["content"] = text.clone();
                }
                if let Some(patch) = data.get("metadata") {
                    merge(&mut document["metadata"], patch);
                }
                for (member, text) in data.get("append").and_then(Value::as_object).into_iter().flatten() {
                    let before = document["metadata"][member].as_str().unwrap_or_default().to_owned();
                    document["metadata"][member] = (before + text.as_str().expect("text")).into();
                }
            }
            _ => {}
        }
    }
    documents
}

/// RFC 7396 as its text has it.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let members = target.as_object_mut().expect("it was made one");
    for (name, value) in patch {
        if value.is_null() {
            members.shift_remove(name);
        } else {
            merge(members.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
