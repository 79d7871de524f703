//! A provider that plays a script: it answers as a model would and asks nobody.
//!
//! It is there for showing the program to people who have no account, and for tests of everything above a model. A script
//! is scenes, chosen by what the user says, and each is a row of steps: one message of the model's. How far a scene is, is
//! read from the conversation itself: nothing is remembered here, and the same conversation gets the same answer.
//!
//! A step may go elsewhere by what its calls came to: so the script hears that a command was refused, which option was
//! chosen, and that a test still fails.

use std::{future, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    CallResult, EndReason, Failure, Model, ModelMessage, ModelRequest, Out, Part, Piece, PieceStream, Promise,
    Provider, Said, Tokens, produce,
};

/// A scripted model: scenes with prepared answers.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Said of words that came in the middle of a scene; the scene goes on behind it.
    heard: String,
    /// Said when a scene is over and somebody wants more.
    over: String,
    /// Said when a call went wrong and its step has no way for that.
    astray: String,
    /// The first that hears what was said is played; the last one hears everything.
    scenes: Vec<Scene>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Scene {
    name: String,
    /// Words that bring it up, in lower case; none: any.
    #[serde(default)]
    hears: Vec<String>,
    /// Text to type for it, in the list of scenes. Empty: it is not listed.
    #[serde(default, rename = "try")]
    attempt: String,
    #[serde(default)]
    about: String,
    steps: Vec<SceneStep>,
}

/// A message of the model. Without calls it ends the answer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct SceneStep {
    /// Name by which other steps refer to it.
    #[serde(default)]
    name: String,
    #[serde(default)]
    thinking: String,
    /// In it, `{scenes}` is the list of scenes, `{reason}` what the user said to a refusal, `{heard}` what came in between.
    #[serde(default)]
    text: String,
    #[serde(default)]
    calls: Vec<Planned>,
    /// Next steps by the text of a result; the first match wins.
    #[serde(default)]
    when: Vec<Branch>,
    /// Next step after a failed or refused call.
    #[serde(default)]
    on_error: Option<String>,
    /// Next step in other cases. `None`: the following one.
    #[serde(default)]
    then: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Planned {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Branch {
    result: String,
    go: String,
}

/// Reason why a text is no script.
#[derive(Debug, thiserror::Error)]
pub enum Unsound {
    #[error("the script cannot be read")]
    Garbled(#[from] toml::de::Error),
    #[error("the script has no last scene that hears everything\ngive it one without `hears`")]
    Deaf,
    #[error("scene `{0}` has no steps")]
    Empty(String),
    #[error("scene `{scene}` goes to `{to}`, which is neither one of its steps nor a scene")]
    Nowhere { scene: String, to: String },
}

/// A place in the script: scene and step. The step may be behind the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ScriptPosition {
    scene: usize,
    step: usize,
}

/// The next answer.
#[derive(Debug, Default, PartialEq)]
struct NextAnswer<'a> {
    place: Option<ScriptPosition>,
    /// The call before went wrong, and nobody thought of that.
    is_astray: bool,
    /// Came in the middle of the scene.
    heard: Option<&'a str>,
    reason: Option<&'a str>,
    /// Text that started the scene.
    query: &'a str,
}

impl Script {
    /// The script in `text`, a TOML file. `{folder}` in it is where it is played.
    pub fn read(text: &str, folder: &str) -> Result<Self, Unsound> {
        let mut script: Self = toml::from_str(text)?;
        if script.scenes.last().is_none_or(|it| !it.hears.is_empty()) {
            return Err(Unsound::Deaf);
        }
        let steps = script.scenes.iter_mut().flat_map(|it| &mut it.steps);
        steps.for_each(|it| it.text = it.text.replace("{folder}", folder));
        for (at, scene) in script.scenes.iter().enumerate() {
            if scene.steps.is_empty() {
                return Err(Unsound::Empty(scene.name.clone()));
            }
            for step in &scene.steps {
                let ways = step
                    .when
                    .iter()
                    .map(|it| &it.go)
                    .chain(&step.on_error)
                    .chain(&step.then);
                for to in ways {
                    if script.find(at, to).is_none() {
                        return Err(Unsound::Nowhere {
                            scene: scene.name.clone(),
                            to: to.clone(),
                        });
                    }
                }
            }
        }
        Ok(script)
    }

    /// A provider that plays it, with a pause of `pace` behind each word.
    pub fn provider(self, pace: Duration) -> Arc<dyn Provider> {
        Arc::new(Player {
            script: Arc::new(self),
            pace,
        })
    }

    /// Returns the listed scenes: the text to type, and a description.
    pub fn offers(&self) -> impl Iterator<Item = (&str, &str)> {
        let listed = self.scenes.iter().filter(|it| !it.attempt.is_empty());
        listed.map(|it| (it.attempt.as_str(), it.about.as_str()))
    }

    /// Returns true if a scene answers `text`.
    #[cfg(test)]
    pub fn hears(&self, text: &str) -> bool {
        self.called(text).is_some()
    }

    /// A step of the scene by its name, else the beginning of a scene, or `scene.step`.
    fn find(&self, scene: usize, name: &str) -> Option<ScriptPosition> {
        let step = |scene: usize, name: &str| {
            let mut steps = self.scenes.get(scene)?.steps.iter();
            let step = steps.position(|it| it.name == name)?;
            Some(ScriptPosition { scene, step })
        };
        let named = |name: &str| self.scenes.iter().position(|it| it.name == name);
        step(scene, name)
            .or_else(|| named(name).map(|scene| ScriptPosition { scene, step: 0 }))
            .or_else(|| {
                let (scene, name) = name.split_once('.')?;
                step(named(scene)?, name)
            })
    }

    fn step(&self, place: ScriptPosition) -> Option<&SceneStep> {
        self.scenes.get(place.scene)?.steps.get(place.step)
    }

    /// The scene that hears `text` by name, if one does.
    fn called(&self, text: &str) -> Option<usize> {
        let text = text.to_lowercase();
        self.scenes
            .iter()
            .position(|scene| scene.hears.iter().any(|it| has_words(&text, it)))
    }

    /// Reads the conversation up to where it is.
    fn turn<'a>(&self, messages: &'a [ModelMessage]) -> NextAnswer<'a> {
        let mut turn = NextAnswer::default();
        // The step whose results are to come, and whether the scene waits for the model.
        let mut said: Option<ScriptPosition> = None;
        let mut is_midway = false;
        for message in messages {
            match message {
                ModelMessage::User(parts) => {
                    let Some(query) = query(parts) else { continue };
                    let scene = self.called(query);
                    let goes_on = is_midway && turn.place.is_some_and(|it| self.step(it).is_some());
                    if scene.is_none() && goes_on {
                        turn.heard = Some(query);
                        continue;
                    }
                    turn = NextAnswer {
                        place: Some(ScriptPosition {
                            scene: scene.unwrap_or(self.scenes.len().saturating_sub(1)),
                            step: 0,
                        }),
                        query,
                        ..NextAnswer::default()
                    };
                    is_midway = false;
                }
                ModelMessage::Assistant(_) => {
                    turn.heard = None;
                    is_midway = false;
                    said = if turn.is_astray { None } else { turn.place };
                    turn.is_astray = false;
                    turn.place = turn.place.map(|it| self.after(it));
                }
                ModelMessage::Results(results) => {
                    let Some(place) = said.take() else { continue };
                    is_midway = !results.iter().any(is_cancelled);
                    turn.reason = results.iter().find_map(reason);
                    match self.way(place, results) {
                        Ok(Some(next)) => turn.place = Some(next),
                        Ok(None) => {}
                        Err(Astray) => turn.is_astray = true,
                    }
                }
            }
        }
        turn
    }

    fn after(&self, place: ScriptPosition) -> ScriptPosition {
        let then = self.step(place).and_then(|it| it.then.as_ref());
        then.and_then(|it| self.find(place.scene, it))
            .unwrap_or(ScriptPosition {
                step: place.step.saturating_add(1),
                ..place
            })
    }

    /// Returns the place that results lead to. `None`: the following one.
    fn way(&self, place: ScriptPosition, results: &[CallResult]) -> Result<Option<ScriptPosition>, Astray> {
        let Some(step) = self.step(place) else { return Ok(None) };
        let went_wrong = results.iter().any(|it| it.is_error);
        let fits = |way: &&Branch| results.iter().any(|it| it.text.contains(&way.result));
        let to = match step.when.iter().find(fits) {
            Some(way) => Some(&way.go),
            None if went_wrong => Some(step.on_error.as_ref().ok_or(Astray)?),
            None => None,
        };
        Ok(to.and_then(|it| self.find(place.scene, it)))
    }

    /// The step to be played, with everything filled in.
    fn play(&self, messages: &[ModelMessage]) -> SceneStep {
        let turn = self.turn(messages);
        let plain = |text: &str| SceneStep {
            text: text.to_owned(),
            ..SceneStep::default()
        };
        let found = turn.place.and_then(|it| self.step(it)).cloned();
        let mut step = match found {
            _ if turn.is_astray => plain(&self.astray),
            Some(step) => step,
            // Nobody has said anything, or the scene is over.
            None => plain(&self.over),
        };
        if let Some(heard) = turn.heard {
            step.text = format!("{}\n\n{}", self.heard.trim(), step.text);
            step.text = step.text.replace("{heard}", &quoted(heard));
        }
        let reason = turn.reason.map_or_else(String::new, |it| format!(" ({})", quoted(it)));
        step.text = step.text.replace("{reason}", &reason);
        step.calls.retain_mut(|it| is_wanted(it, turn.query));
        if step.text.contains("{scenes}") {
            step.text = step.text.replace("{scenes}", &self.list());
        }
        step
    }

    fn list(&self) -> String {
        let lines = self
            .offers()
            .map(|(attempt, about)| format!("- **{attempt}** ({about})"));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A call failed where the script has no way for it.
struct Astray;

/// Takes out of a call what the user has struck out of the plan that they sent along; `false`: nothing is left of it.
fn is_wanted(call: &mut Planned, query: &str) -> bool {
    let is_list = call.name == "todo_write" && query.contains("\ntodos:\n");
    let Some(Value::Array(todos)) = call.arguments.get_mut("todos").filter(|_| is_list) else {
        return true;
    };
    todos.retain(|it| query.contains(&format!("- id: {}\n", it.get("id").unwrap_or(&Value::Null))));
    !todos.is_empty()
}

/// Returns true if `text` contains `words` as whole words.
fn has_words(text: &str, words: &str) -> bool {
    text.match_indices(words).any(|(at, found)| {
        let before = text.get(..at).and_then(|it| it.chars().next_back());
        let after = text.get(at + found.len()..).and_then(|it| it.chars().next());
        !found.is_empty() && [before, after].iter().flatten().all(|it| !it.is_alphanumeric())
    })
}

/// Returns the user's text. `None`: the message is not the user's.
fn query(parts: &[Part]) -> Option<&str> {
    parts.iter().rev().find_map(|it| match it {
        Part::Text(text) => {
            let (_, rest) = text.rsplit_once("<user_query>")?;
            Some(rest.split_once("</user_query>").map_or(rest, |(it, _)| it).trim())
        }
        Part::Image(_) => None,
    })
}

/// Returns the user's reason for a refusal.
fn reason(result: &CallResult) -> Option<&str> {
    let (_, rest) = result.text.split_once("; reason: ")?;
    let first = rest.lines().next().unwrap_or_default().trim();
    (result.is_error && !first.is_empty()).then_some(first)
}

/// The user stopped the answer: what comes next is not a part of it.
fn is_cancelled(result: &CallResult) -> bool {
    let last = result.text.lines().last().unwrap_or_default();
    let is_stop = last.starts_with("Cancelled by the user") || last.starts_with("The user stopped this command");
    result.is_error && is_stop
}

/// Returns a line of the user's text, quoted as Markdown.
fn quoted(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().replace('`', "'");
    format!("`{}`", line.trim())
}

struct Player {
    script: Arc<Script>,
    pace: Duration,
}

impl Provider for Player {
    fn peer(&self) -> &'static str {
        "a script"
    }

    fn stream(&self, request: ModelRequest) -> PieceStream {
        let script = Arc::clone(&self.script);
        let pace = self.pace;
        produce(move |pieces| async move {
            let step = script.play(&request.messages);
            speak(&step, &request, pace, &pieces).await;
        })
    }

    fn warm(&self) -> Promise<()> {
        Box::pin(future::ready(()))
    }

    fn models(&self) -> Promise<Result<Vec<Model>, Failure>> {
        let models = vec![Model {
            id: NAME.to_owned(),
            ..Model::default()
        }];
        Box::pin(future::ready(Ok(models)))
    }
}

/// Name of the model.
pub const NAME: &str = "script";

async fn speak(step: &SceneStep, request: &ModelRequest, pace: Duration, out: &Out) {
    let say = async |piece: Piece| out.give(piece).await;
    say(Piece::Start {
        response_id: None,
        model: Some(NAME.to_owned()),
    })
    .await;
    for word in pieces_of(&step.thinking) {
        say(Piece::Thinking(word.to_owned())).await;
        // Faster than it would be read: it is looked at, not read.
        rest(pace / 2).await;
    }
    for word in pieces_of(step.text.trim_end()) {
        say(Piece::Text(word.to_owned())).await;
        rest(pace).await;
    }
    let before = count_calls(&request.messages);
    for (slot, call) in step.calls.iter().enumerate() {
        rest(pace * 8).await;
        let id = format!("call_{}", before + slot + 1);
        say(Piece::CallStart {
            slot,
            id: id.clone(),
            name: call.name.clone(),
        })
        .await;
        say(Piece::CallArguments {
            slot,
            fragment: Value::from(call.arguments.clone()).to_string(),
        })
        .await;
        say(Piece::CallDone {
            slot,
            id,
            name: call.name.clone(),
            arguments: Ok(call.arguments.clone()),
            opaque: None,
        })
        .await;
    }
    say(Piece::Usage(tokens(step, request))).await;
    let reason = if step.calls.is_empty() {
        EndReason::Stop
    } else {
        EndReason::ToolUse
    };
    say(Piece::End(reason)).await;
}

async fn rest(pause: Duration) {
    if !pause.is_zero() {
        tokio::time::sleep(pause).await;
    }
}

/// A word each, with the blanks behind it.
fn pieces_of(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.len() - rest.trim_start().len();
        let blank = rest
            .get(word..)?
            .find(char::is_whitespace)
            .map_or(rest.len(), |it| word + it);
        let behind = rest.get(blank..)?;
        let end = blank + behind.len() - behind.trim_start().len();
        let (piece, more) = rest.split_at_checked(end)?;
        rest = more;
        (!piece.is_empty()).then_some(piece)
    })
}

fn count_calls(messages: &[ModelMessage]) -> usize {
    let said = messages.iter().filter_map(|it| match it {
        ModelMessage::Assistant(said) => Some(said),
        ModelMessage::User(_) | ModelMessage::Results(_) => None,
    });
    said.flatten().filter(|it| matches!(it, Said::Call(_))).count()
}

/// A script has no tokens: as many bytes are counted as one.
const TOKEN_BYTES: usize = 4;

fn tokens(step: &SceneStep, request: &ModelRequest) -> Tokens {
    let arguments = |it: &Map<String, Value>| Value::from(it.clone()).to_string().len();
    let messages = request.messages.iter().map(|it| match it {
        ModelMessage::User(parts) => parts
            .iter()
            .map(|it| match it {
                Part::Text(text) => text.len(),
                Part::Image(_) => 0,
            })
            .sum::<usize>(),
        ModelMessage::Assistant(said) => said
            .iter()
            .map(|it| match it {
                Said::Text(text) => text.len(),
                Said::Call(call) => call.name.len() + arguments(&call.arguments),
                Said::Opaque(_) => 0,
            })
            .sum(),
        ModelMessage::Results(results) => results.iter().map(|it| it.text.len()).sum(),
    });
    let tools = request.tools.iter();
    let tools = tools.map(|it| it.name.len() + it.about.len() + it.parameters.to_string().len());
    let calls = step.calls.iter().map(|it| it.name.len() + arguments(&it.arguments));
    let count = |bytes: usize| bytes.div_ceil(TOKEN_BYTES) as u64;
    Tokens {
        prompt: count(request.system.len() + messages.sum::<usize>() + tools.sum::<usize>()),
        completion: count(step.thinking.len() + step.text.len() + calls.sum::<usize>()),
        reasoning: count(step.thinking.len()),
        ..Tokens::default()
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt as _;
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::models::Call;

    const SCRIPT: &str = r#"
heard = "You said {heard}."
over = "It is over."
astray = "It went astray{reason}."

[[scenes]]
name = "tests"
hears = ["run the tests", "test"]
try = "Run the tests"
about = "runs them"

[[scenes.steps]]
text = "I run them in {folder}."
calls = [{ name = "run", arguments = { command = "make test" } }]
when = [{ result = "0 failed", go = "good" }]
on_error = "refused"

[[scenes.steps]]
text = "They fail."
calls = [{ name = "edit" }]

[[scenes.steps]]
text = "Mended."

[[scenes.steps]]
name = "good"
text = "They pass."

[[scenes.steps]]
name = "refused"
text = "Not run{reason}."

[[scenes]]
name = "plan"
hears = ["plan"]

[[scenes.steps]]
text = "A plan."
calls = [{ name = "create_plan" }]

[[scenes]]
name = "build"
hears = ["build"]

[[scenes.steps]]
text = "Building."
then = "tests.good"
calls = [{ name = "todo_write", arguments = { merge = true, todos = [{ id = "a" }, { id = "b" }] } }]

[[scenes]]
name = "else"

[[scenes.steps]]
text = "Try:\n{scenes}"
"#;

    fn script() -> Script {
        Script::read(SCRIPT, "/tmp/x").expect("it is sound")
    }

    fn user(text: &str) -> ModelMessage {
        ModelMessage::user(format!("<info>a test</info>\n<user_query>\n{text}\n</user_query>"))
    }

    fn calls() -> ModelMessage {
        ModelMessage::Assistant(vec![Said::Call(Call {
            id: "call_1".to_owned(),
            name: "run".to_owned(),
            arguments: Map::new(),
            opaque: None,
        })])
    }

    fn result(text: &str, is_error: bool) -> ModelMessage {
        ModelMessage::Results(vec![CallResult {
            call: "call_1".to_owned(),
            name: "run".to_owned(),
            text: text.to_owned(),
            is_error,
            images: Vec::new(),
        }])
    }

    fn says() -> ModelMessage {
        ModelMessage::assistant("something")
    }

    #[test]
    fn what_is_said_next_follows_from_the_conversation() {
        let list = "Try:\n- **Run the tests** (runs them)";
        let run = "I run them in /tmp/x.";
        let cases: Vec<(&str, Vec<ModelMessage>, &str)> = vec![
            ("nobody has spoken", vec![], "It is over."),
            ("a scene is heard", vec![user("Run the TESTS, please")], run),
            ("a word in a word is not", vec![user("the latest contest")], list),
            ("nothing is heard", vec![user("hello")], list),
            (
                "a message that is not the user's",
                vec![
                    user("test"),
                    ModelMessage::user("<system_reminder>plan</system_reminder>"),
                ],
                run,
            ),
            (
                "the calls failed as a test",
                vec![user("test"), calls(), result("2 failed", false)],
                "They fail.",
            ),
            (
                "the calls went well",
                vec![user("test"), calls(), result("0 failed", false)],
                "They pass.",
            ),
            (
                "the user said no",
                vec![user("test"), calls(), result("the user rejected this\nGo on.", true)],
                "Not run.",
            ),
            (
                "and why",
                vec![
                    user("test"),
                    calls(),
                    result("the user rejected this; reason: not `now`\nGo on.", true),
                ],
                "Not run (`not 'now'`).",
            ),
            (
                "the third step",
                vec![
                    user("test"),
                    calls(),
                    result("2 failed", false),
                    calls(),
                    result("done", false),
                ],
                "Mended.",
            ),
            (
                "a step without a way for its error",
                vec![
                    user("test"),
                    calls(),
                    result("2 failed", false),
                    calls(),
                    result("no such file", true),
                ],
                "It went astray.",
            ),
            (
                "words in between",
                vec![user("test"), calls(), result("2 failed", false), user("hurry up")],
                "You said `hurry up`.\n\nThey fail.",
            ),
            (
                "a scene in between",
                vec![user("test"), calls(), result("2 failed", false), user("no, plan first")],
                "A plan.",
            ),
            (
                "words after a cancelled call",
                vec![
                    user("test"),
                    calls(),
                    result("Cancelled by the user.", true),
                    user("hello"),
                ],
                list,
            ),
            (
                "words after a command that was stopped",
                vec![
                    user("test"),
                    calls(),
                    result(
                        "1 passed\nThe user stopped this command; this is its output until then.",
                        true,
                    ),
                    user("hello"),
                ],
                list,
            ),
            (
                "words after the last step of a scene, though it had a call",
                vec![
                    user("plan"),
                    calls(),
                    result("The user sees the plan.", false),
                    user("hello"),
                ],
                list,
            ),
            (
                "nothing is left of the scene",
                vec![user("plan"), calls(), result("The user sees the plan.", false)],
                "It is over.",
            ),
            (
                "words after an answer",
                vec![user("test"), calls(), result("0 failed", false), says(), user("hello")],
                list,
            ),
            (
                "the same again",
                vec![user("test"), calls(), result("0 failed", false), says(), user("test")],
                run,
            ),
            (
                "into the middle of another scene",
                vec![user("build"), calls(), result("ok", false)],
                "They pass.",
            ),
            (
                "asked again after the end, by the program",
                vec![
                    user("test"),
                    calls(),
                    result("2 failed", false),
                    calls(),
                    result("ok", false),
                    says(),
                    ModelMessage::user("<system_reminder>x</system_reminder>"),
                ],
                "They pass.",
            ),
        ];
        for (name, messages, want) in cases {
            assert_eq!(script().play(&messages).text, want, "{name}");
        }
    }

    #[test]
    fn todos_that_the_user_struck_out_are_not_ticked() {
        let ids = |query: &str| -> Vec<Value> {
            let step = script().play(&[user(query)]);
            let todos = step.calls.iter().filter_map(|it| it.arguments.get("todos")?.as_array());
            todos.flatten().filter_map(|it| it.get("id").cloned()).collect()
        };
        assert_eq!(ids("Build it."), ["a", "b"]);
        assert_eq!(
            ids("build it:\n\n---\nname: x\ntodos:\n  - id: \"b\"\n    content: \"x\"\n---"),
            ["b"]
        );
        assert_eq!(ids("build it:\n\n---\nname: x\ntodos:\n---"), Vec::<Value>::new());
    }

    #[test]
    fn what_cannot_be_played_is_said() {
        let scene = |more: &str| format!("heard = ''\nover = ''\nastray = ''\n{more}");
        for (text, want) in [
            (
                scene("scenes = []"),
                "the script has no last scene that hears everything",
            ),
            (
                scene("scenes = [{ name = 'a', hears = ['a'], steps = [{}] }]"),
                "the script has no last scene that hears everything",
            ),
            (scene("scenes = [{ name = 'a', steps = [] }]"), "scene `a` has no steps"),
            (
                scene("scenes = [{ name = 'a', steps = [{ then = 'b' }] }]"),
                "scene `a` goes to `b`, which is neither one of its steps nor a scene",
            ),
            (
                scene("scenes = [{ name = 'a', steps = [{ txt = '' }] }]"),
                "the script cannot be read",
            ),
        ] {
            let error = Script::read(&text, "").expect_err(want).to_string();
            assert_eq!(error.lines().next(), Some(want));
        }
    }

    #[tokio::test]
    async fn it_speaks_like_a_model() {
        let provider = script().provider(Duration::ZERO);
        let request = ModelRequest {
            system: "You are a script.".to_owned().into(),
            messages: vec![user("test")],
            ..ModelRequest::default()
        };
        let pieces: Vec<Piece> = provider.stream(request).collect().await;
        let text: String = pieces
            .iter()
            .filter_map(|it| match it {
                Piece::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "I run them in /tmp/x.");
        let arguments = Map::from_iter([("command".to_owned(), Value::from("make test"))]);
        assert!(pieces.contains(&Piece::CallDone {
            slot: 0,
            id: "call_1".to_owned(),
            name: "run".to_owned(),
            arguments: Ok(arguments),
            opaque: None,
        }));
        // 17 bytes of a prompt and 51 of a message; 21 of an answer, 3 and 23 of a call.
        assert!(pieces.contains(&Piece::Usage(Tokens {
            prompt: (17 + 51_u64).div_ceil(4),
            completion: (21 + 3 + 23_u64).div_ceil(4),
            ..Tokens::default()
        })));
        assert_eq!(pieces.last(), Some(&Piece::End(EndReason::ToolUse)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn pieces_are_the_text(text in "[ab é\n`]{0,40}") {
            let pieces: Vec<&str> = pieces_of(&text).collect();
            prop_assert_eq!(pieces.concat(), text.as_str());
            prop_assert!(pieces.iter().all(|it| !it.is_empty()));
        }

        /// Whatever the conversation, something is said.
        #[test]
        fn any_conversation_is_answered(kinds in prop::collection::vec(0..7_u8, 0..12)) {
            let messages: Vec<ModelMessage> = kinds
                .iter()
                .map(|it| match it {
                    0 => user("test"),
                    1 => user("hm"),
                    2 => calls(),
                    3 => says(),
                    4 => result("fine", false),
                    5 => result("no; reason: x", true),
                    _ => result("Cancelled by the user.", true),
                })
                .collect();
            let step = script().play(&messages);
            prop_assert!(!step.text.is_empty());
            let is_open = ["{heard}", "{reason}", "{scenes}"].iter().any(|it| step.text.contains(it));
            prop_assert!(!is_open, "{}", step.text);
        }
    }
}
