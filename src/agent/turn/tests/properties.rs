//! What must hold whatever a model says, the world answers and the user does.

use proptest::prelude::*;

use super::*;

fn any_piece() -> impl Strategy<Value = Piece> {
    let text = prop::sample::select(vec!["a", "\n", "```", "```rust\n", "1:2:a\n", " ", "~~~\n", "é"]);
    let name = prop::sample::select(vec![
        "look",
        "look",
        "change",
        "run",
        "ask",
        "create_plan",
        "CreatePlan",
        "todo_write",
        "switch_mode",
        "write",
        "Bash",
        "nobody",
    ]);
    let arguments = prop::sample::select(vec![
        json!({}),
        json!({ "command": "x", "file_path": "y" }),
        json!({ "questions": ["a?"], "name": "n", "plan": "p", "target_mode_id": "agent" }),
        json!({ "merge": true, "todos": [{ "id": "a" }] }),
    ]);
    prop_oneof![
        4 => text.clone().prop_map(|it| Piece::Text(it.to_owned())),
        1 => text.clone().prop_map(|it| Piece::Thinking(it.to_owned())),
        1 => text.prop_map(|it| Piece::Refusal(it.to_owned())),
        1 => Just(Piece::ThinkingDone { opaque: json!(1) }),
        4 => (name, arguments, "[ab]?").prop_map(|(name, arguments, id)| Piece::CallDone {
            slot: 0,
            id,
            name: name.to_owned(),
            arguments: Ok(object(arguments)),
            opaque: None,
        }),
        1 => Just(Piece::CallDone { slot: 0, id: String::new(), name: "run".to_owned(), arguments: Err("{".to_owned()), opaque: None }),
        1 => Just(Piece::Usage(Tokens { prompt: 1, completion: u64::MAX, ..Tokens::default() })),
    ]
}

fn any_end() -> impl Strategy<Value = EndReason> {
    prop::sample::select(vec![
        EndReason::Stop,
        EndReason::ToolUse,
        EndReason::ToolUse,
        EndReason::Length,
        EndReason::Refusal,
        EndReason::ContentFilter,
        EndReason::Pause,
        EndReason::Other("x".to_owned()),
    ])
}

/// The world's next answer to what is open: the choices come from outside.
#[derive(Clone, Debug)]
struct World {
    messages: Vec<(Vec<Piece>, EndReason)>,
    choices: Vec<u8>,
    mode: Mode,
    is_attended: bool,
    cancel_after: usize,
    steer_after: usize,
    /// When the model has said all of its messages.
    failure: FailureKind,
    /// The model's window.
    window: Option<u64>,
}

fn any_world() -> impl Strategy<Value = World> {
    (
        prop::collection::vec((prop::collection::vec(any_piece(), 0..8), any_end()), 1..5),
        prop::collection::vec(any::<u8>(), 1..40),
        prop::sample::select(Mode::ALL.to_vec()),
        any::<bool>(),
        0_usize..80,
        0_usize..80,
        prop::sample::select(vec![
            FailureKind::Interrupted,
            FailureKind::Overloaded,
            FailureKind::Unreachable,
            FailureKind::Key,
            FailureKind::TooLong,
        ]),
        // A little more, and a little less, than what the tools take.
        prop::sample::select(vec![None, None, Some(1500), Some(1900), Some(2600)]),
    )
        .prop_map(
            |(messages, choices, mode, is_attended, cancel_after, steer_after, failure, window)| World {
                messages,
                choices,
                mode,
                is_attended,
                cancel_after,
                steer_after,
                failure,
                window,
            },
        )
}

/// Plays a whole answer and gives every effect, in order.
fn play(world: &World) -> (Turn, Vec<Effect>) {
    let mut turn = Turn::default();
    let effects = play_on(&mut turn, world);
    (turn, effects)
}

/// Plays another answer of a conversation.
fn play_on(turn: &mut Turn, world: &World) -> Vec<Effect> {
    turn.memory.window.tokens = world.window;
    let mut said = submission("hi");
    said.mode = world.mode;
    said.setup.asker = if world.is_attended { Asker::Here } else { Asker::Nobody };
    said.setup.model.fallbacks = 1;
    let mut all = turn.step(Input::Submit(Box::new(said)), 0);
    let mut open: Vec<Input> = Vec::new();
    let mut messages = world.messages.iter();
    let mut choices = world.choices.iter().cycle();
    let mut seen = 0;
    let mut steps = 0;
    while turn.is_running() {
        for effect in &all[seen..] {
            match effect {
                Effect::CallModel { .. } => match messages.next() {
                    Some((pieces, reason)) => {
                        open.extend(pieces.iter().cloned().map(Input::Piece));
                        open.push(Input::Piece(Piece::End(reason.clone())));
                    }
                    None => open.push(fails(world.failure)),
                },
                Effect::Prepare { job, tool, .. } => open.push(match tool.name.as_str() {
                    "change" => proposing(job.0),
                    "run" => touching(job.0, command("cargo test")),
                    _ => harmless(job.0),
                }),
                Effect::Run { job, .. } => open.push(ran(job.0, "x")),
                Effect::Make { job, .. } if world.is_attended => open.push(made(job.0)),
                Effect::Make { job, .. } => open.push(ran(job.0, "")),
                Effect::Summarise { .. } => match choices.next() {
                    Some(it) if it % 4 > 0 => {
                        open.push(says("In short."));
                        open.push(ends(EndReason::Stop));
                    }
                    _ => open.push(fails(FailureKind::Unreachable)),
                },
                Effect::Preview { job, .. } => open.push(Input::Previewed {
                    job: *job,
                    report: ProposalReport::default(),
                }),
                Effect::Check(_) => open.push(Input::Checked {
                    report: CheckReport {
                        text: "New lint errors".to_owned(),
                        checked: Some(json!({ "newProblems": 1 })),
                    },
                }),
                Effect::FindMarks => open.push(Input::Marks(Vec::new())),
                Effect::Append(Event::DocumentStart(start)) if start.kind == crate::protocol::Kind::Clarification => {
                    let options = [
                        "allow_once",
                        "allow_session",
                        "allow_always",
                        "reject_once",
                        "yes",
                        "no",
                    ];
                    let choice = usize::from(*choices.next().unwrap_or(&0));
                    open.push(answer(start.id.as_str(), options[choice % options.len()]));
                }
                Effect::Append(_)
                | Effect::Forgot
                | Effect::ServerAnswered { .. }
                | Effect::StopModel
                | Effect::StopJobs
                | Effect::Store(_)
                | Effect::Expire(_) => {}
            }
        }
        seen = all.len();
        steps += 1;
        if open.is_empty() || steps > world.cancel_after {
            all.extend(turn.step(Input::Cancel, 1));
            break;
        }
        if steps == world.steer_after {
            open.push(Input::Steer {
                message: Message::user("and tabs"),
                parts: vec![Part::Text("and tabs".to_owned())],
                mode: Mode::ALL[usize::from(*choices.next().unwrap_or(&0)) % Mode::ALL.len()],
            });
        }
        // Pieces come in their order; everything else in any.
        let choice = usize::from(*choices.next().unwrap_or(&0)) % open.len();
        let is_piece = |it: &Input| matches!(it, Input::Piece(_));
        let at = if is_piece(&open[choice]) {
            open.iter().position(is_piece).unwrap_or(choice)
        } else {
            choice
        };
        let next = open.remove(at);
        all.extend(turn.step(next, 1));
    }
    all
}

/// The messages without parts that only their maker can read.
fn without_opaque(messages: &[ModelMessage]) -> Vec<ModelMessage> {
    let mut messages = messages.to_vec();
    for message in &mut messages {
        if let ModelMessage::Assistant(said) = message {
            said.retain(|it| !matches!(it, Said::Opaque(_)));
        }
    }
    messages
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The strict writer's rules, whatever a model says, the world answers and the user does.
    #[test]
    fn every_answer_is_well_formed(world in any_world()) {
        let (turn, effects) = play(&world);
        prop_assert!(!turn.is_running());
        let mut open: BTreeMap<DocumentId, String> = BTreeMap::new();
        let mut count = 0;
        let mut starts = 0;
        let mut dones = 0;
        let mut response = crate::protocol::Response::default();
        for effect in &effects {
            let Effect::Append(event) = effect else { continue };
            if matches!(event, Event::UserMessage(_) | Event::Title(_)) {
                continue;
            }
            prop_assert_eq!(dones, 0, "nothing comes after the end");
            match event {
                Event::ResponseStart(_) => starts += 1,
                Event::Done(_) => dones += 1,
                Event::DocumentStart(start) => {
                    count += 1;
                    prop_assert_eq!(start.sequence, Some(count));
                    open.insert(start.id.clone(), String::new());
                }
                Event::ContentDelta { document, delta } => {
                    open.get_mut(document).expect("it is open").push_str(delta);
                }
                Event::DocumentEnd { document, final_content, .. } => {
                    let content = open.remove(document).expect("it is open");
                    prop_assert_eq!(Some(content.as_str()), final_content.as_deref().or(Some("")));
                }
                Event::MetadataDelta { document, .. } | Event::ToolResult { document, .. } => {
                    prop_assert!(open.contains_key(document));
                }
                _ => {}
            }
            response.apply(event, 0);
        }
        prop_assert_eq!((starts, dones), (1, 1));
        prop_assert!(open.is_empty(), "{:?}", open);
        prop_assert!(response.documents.iter().all(|it| !it.is_open()));
    }

    /// Servers refuse a conversation in which a call has no result, or two.
    #[test]
    fn every_call_has_one_result_before_the_next_request(world in any_world()) {
        let (turn, effects) = play(&world);
        let requests = effects.iter().filter_map(|it| match it {
            Effect::CallModel { request, .. } => Some(&request.messages),
            _ => None,
        });
        for messages in requests.chain([&turn.memory.history.messages]) {
            let mut waiting: Vec<&str> = Vec::new();
            let mut ids = std::collections::BTreeSet::new();
            for message in messages {
                match message {
                    ModelMessage::Results(results) => {
                        let given: Vec<&str> = results.iter().map(|it| it.call.as_str()).collect();
                        prop_assert_eq!(std::mem::take(&mut waiting), given);
                        prop_assert!(results.iter().all(|it| !it.text.trim().is_empty()));
                    }
                    ModelMessage::User(_) | ModelMessage::Assistant(_) => {
                        prop_assert!(waiting.is_empty(), "{:?}", waiting);
                    }
                }
                if let ModelMessage::Assistant(said) = message {
                    for part in said {
                        if let Said::Call(call) = part {
                            prop_assert!(ids.insert(call.id.clone()), "{} twice", call.id);
                            waiting.push(&call.id);
                        }
                    }
                }
            }
            prop_assert!(waiting.is_empty());
        }
    }

    /// A tool that the mode forbids is neither prepared nor run, whatever the model calls; the list is the same in all modes.
    #[test]
    fn a_mode_holds_whatever_the_model_says(world in any_world()) {
        let (_, effects) = play(&world);
        let mut mode = world.mode;
        for effect in &effects {
            match effect {
                Effect::Append(Event::ToolResult { result, .. }) => {
                    if let Some(word) = result["data"]["mode"].as_str() {
                        mode = Mode::parse(word).unwrap_or(mode);
                    }
                }
                Effect::Append(Event::Notice(notice)) => {
                    if let Some((UserAction::ModeChanged, facts)) = UserAction::read(notice) {
                        mode = facts.first().and_then(|it| Mode::parse(it)).unwrap_or(mode);
                    }
                }
                Effect::CallModel { request, .. } => {
                    let names: Vec<&str> = request.tools.iter().map(|it| it.name.as_str()).collect();
                    let all = submission("").setup.tools;
                    prop_assert_eq!(names, all.iter().map(|it| it.name.as_str()).collect::<Vec<_>>());
                }
                Effect::Prepare { tool, .. } | Effect::Run { tool, .. } => {
                    prop_assert!(tool.modes.contains(&mode), "{} in {}", tool.name, mode);
                }
                Effect::Make { .. } => prop_assert!(!mode.is_read_only()),
                _ => {}
            }
        }
    }

    /// Every request begins with the same bytes as the one before: after an answer that was stopped, failed or cut,
    /// after another model stood in, in another mode, and with words that came in between.
    #[test]
    fn what_was_sent_is_never_rewritten(mut worlds in prop::collection::vec(any_world(), 1..4)) {
        let mut turn = Turn::default();
        let mut before: Option<ModelRequest> = None;
        for world in &mut worlds {
            let mut nth = 0;
            // Room is made where there is none.
            world.window = None;
            if world.failure == FailureKind::TooLong {
                world.failure = FailureKind::Key;
            }
            for effect in play_on(&mut turn, world) {
                let Effect::CallModel { request, stand_in } = effect else { continue };
                if let Some(before) = &before {
                    let (old, new) = (without_opaque(&before.messages), without_opaque(&request.messages));
                    prop_assert_eq!(new.get(..old.len()), Some(&old[..]));
                    if old.len() < new.len() {
                        // Formats in which sides take turns would join the two.
                        let sides = (old.last().map(is_users), new.get(old.len()).map(is_users));
                        prop_assert_ne!(sides, (Some(true), Some(true)), "the next message runs into the last one");
                    }
                    if nth > 0 && stand_in == 0 {
                        prop_assert_eq!(&request.messages[..before.messages.len()], &before.messages[..]);
                    }
                }
                nth += 1;
                before = Some(request);
            }
        }
    }
}

/// In most formats, results are the user's.
fn is_users(message: &ModelMessage) -> bool {
    match message {
        ModelMessage::User(_) | ModelMessage::Results(_) => true,
        ModelMessage::Assistant(_) => false,
    }
}
