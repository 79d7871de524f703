//! Differences of chat completion servers from OpenAI, by their address and their models' names.
//!
//! A rule stands here only where a server refuses the common form, or reads it wrongly. Whatever else a server refuses
//! is learned from its refusal ([`Learned`]), so that a server nobody has heard of works at the second try.

use std::collections::BTreeSet;

use crate::{
    config,
    models::{Effort, Failure, FailureKind, ModelMessage, ModelRequest},
    text::WordList,
};

/// Differences of one server and model from OpenAI.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Ids of calls are nine letters and digits.
    pub has_short_ids: bool,
    /// A word of the assistant's stands between a result and the user.
    pub wants_bridge: bool,
    /// Sides take turns.
    pub wants_turns: bool,
    /// True if an empty text beside calls must be `null`.
    pub has_null_text: bool,
    /// The limit of tokens is called `max_completion_tokens`.
    pub has_new_limit: bool,
    pub effort: EffortWord,
    /// Several calls in one answer have to be asked for.
    pub asks_parallel: bool,
    /// A call that was made while thinking goes back with its reasoning, be it empty.
    pub wants_reasoning: bool,
}

/// The request field that sets the reasoning effort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffortWord {
    /// `reasoning_effort`; with the word that turns thinking off.
    Named(&'static str),
    /// `reasoning: { effort }`
    Object,
    /// `thinking: { type }`, which knows only on and off.
    Switch,
    /// `chat_template_kwargs: { enable_thinking }`, beside `reasoning_effort`.
    Template,
    /// Never.
    Never,
}

impl Profile {
    pub fn of(request: &ModelRequest, settings: &config::Provider) -> Self {
        let url = settings.connection.url().unwrap_or_default();
        let host = url.split_once("://").map_or(url, |(_, it)| it);
        let host = host.split(['/', ':', '?']).next().unwrap_or_default();
        let model = request.model.to_ascii_lowercase();
        let name = model.rsplit('/').next().unwrap_or_default();
        let is = |domain: &str| host == domain || host.strip_suffix(domain).is_some_and(|it| it.ends_with('.'));
        // Mistral's templates are strict wherever they run; other makers' gateways translate.
        let is_mistral = is("mistral.ai")
            || (!is("openrouter.ai")
                && ["mistral", "mixtral", "ministral", "devstral", "codestral", "magistral"]
                    .iter()
                    .any(|it| name.contains(it)));
        let common = Self {
            has_short_ids: is_mistral,
            wants_bridge: is_mistral,
            wants_turns: true,
            has_null_text: false,
            has_new_limit: false,
            effort: EffortWord::Template,
            asks_parallel: true,
            wants_reasoning: false,
        };
        let cloud = Self {
            effort: EffortWord::Named("none"),
            asks_parallel: false,
            ..common
        };
        if is("openai.com") || is("azure.com") {
            let thinks = ["gpt-5", "gpt-6", "o1", "o3", "o4"]
                .iter()
                .any(|it| name.starts_with(it));
            // The first of them cannot but think.
            let off = if name.starts_with("gpt-5-") || name == "gpt-5" {
                "minimal"
            } else if name.starts_with('o') {
                "low"
            } else {
                "none"
            };
            Self {
                wants_turns: false,
                has_null_text: true,
                has_new_limit: true,
                effort: if thinks {
                    EffortWord::Named(off)
                } else {
                    EffortWord::Never
                },
                ..cloud
            }
        } else if is("openrouter.ai") {
            Self {
                wants_turns: false,
                has_null_text: true,
                effort: EffortWord::Object,
                ..cloud
            }
        } else if is("deepseek.com") {
            Self {
                effort: EffortWord::Switch,
                wants_reasoning: true,
                ..cloud
            }
        } else if is("googleapis.com") {
            Self {
                has_null_text: true,
                ..cloud
            }
        } else if is("mistral.ai") || is("x.ai") {
            Self {
                effort: if is_mistral {
                    EffortWord::Never
                } else {
                    EffortWord::Named("low")
                },
                ..cloud
            }
        } else if is("groq.com") {
            let off = if name.starts_with("gpt-oss") { "low" } else { "none" };
            Self {
                effort: EffortWord::Named(off),
                ..cloud
            }
        } else if is("together.xyz") || is("fireworks.ai") || is("cerebras.ai") {
            cloud
        } else {
            common
        }
    }
}

impl EffortWord {
    /// The member of a request that says it.
    pub fn member(self, effort: Effort) -> Option<(&'static str, serde_json::Value)> {
        let word = |off: &'static str| match effort {
            Effort::Off => off,
            Effort::Low => "low",
            Effort::Medium => "medium",
            Effort::High => "high",
        };
        match self {
            Self::Named(off) => Some(("reasoning_effort", word(off).into())),
            Self::Object if effort == Effort::Off => Some(("reasoning", serde_json::json!({ "enabled": false }))),
            Self::Object => Some(("reasoning", serde_json::json!({ "effort": word("none") }))),
            Self::Switch => {
                let word = if effort == Effort::Off { "disabled" } else { "enabled" };
                Some(("thinking", serde_json::json!({ "type": word })))
            }
            Self::Template if effort == Effort::Off => {
                Some(("chat_template_kwargs", serde_json::json!({ "enable_thinking": false })))
            }
            Self::Template => Some(("reasoning_effort", word("none").into())),
            Self::Never => None,
        }
    }
}

/// When earlier reasoning is sent back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replay {
    Always,
    /// Since the user last spoke.
    ToolLoop,
    Never,
}

impl Replay {
    pub fn of(settings: &config::Provider) -> Self {
        match settings.replay_reasoning.as_str() {
            "always" => Self::Always,
            "never" => Self::Never,
            _ => Self::ToolLoop,
        }
    }
}

/// Adjustments learned from a server's refusals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    pub replay: Option<Replay>,
    /// Members that it does not take.
    pub refused: BTreeSet<&'static str>,
    /// The other name of the limit of tokens.
    pub swaps_limit: bool,
}

/// Members that a server may do without.
const OPTIONAL: WordList =
    WordList("parallel_tool_calls stream_options reasoning_effort chat_template_kwargs temperature thinking reasoning");

impl Learned {
    /// Learns from a refusal and adapts the request. Returns a note for the user if the request may be repeated.
    pub fn from(&mut self, failure: &Failure, request: &mut ModelRequest) -> Option<String> {
        let said = failure.said.as_deref().unwrap_or_default();
        // A model that wrote no sound call may do so when it is told.
        if said.contains("failed_generation") || said.contains("tool_use_failed") {
            let (words, wrote) = said.split_once('\n').unwrap_or((said, ""));
            if !wrote.trim().is_empty() {
                request.messages.push(ModelMessage::assistant(wrote));
            }
            let order = format!(
                "That was no call that could be read ({words}) Call the tool again, with sound JSON as its arguments."
            );
            request.messages.push(ModelMessage::user(order));
            return Some("the server could not parse the model's call: asking the model again".to_owned());
        }
        if failure.kind != FailureKind::Request {
            return None;
        }
        let lower = said.to_ascii_lowercase();
        if lower.contains("reasoning_content") || lower.contains("reasoning content") {
            let wants = ["must be", "missing", "pass", "required", "expected", "need"]
                .iter()
                .any(|it| lower.contains(it));
            let refuses = [
                "not allowed",
                "not permitted",
                "extra",
                "unexpected",
                "unsupported",
                "should not",
                "must not",
            ];
            let replay = if wants && !refuses.iter().any(|it| lower.contains(it)) {
                Replay::Always
            } else {
                Replay::Never
            };
            return (self.replay.replace(replay) != Some(replay)).then(|| match replay {
                Replay::Always => "the server needs its earlier reasoning: sending it from now on".to_owned(),
                Replay::ToolLoop | Replay::Never => {
                    "the server refuses its earlier reasoning: it does not get it any more".to_owned()
                }
            });
        }
        // The limit has two names, and a server that refuses one mostly names the other.
        if lower.contains("max_tokens") || lower.contains("max_completion_tokens") {
            let is_name = [
                "unsupported",
                "extra",
                "not permitted",
                "unrecognized",
                "unknown",
                "instead",
            ]
            .iter()
            .any(|it| lower.contains(it));
            return (is_name && !std::mem::replace(&mut self.swaps_limit, true))
                .then(|| "the server calls the limit of tokens otherwise: it is asked in its words".to_owned());
        }
        let found = OPTIONAL.iter().find(|it| lower.contains(it))?;
        self.refused
            .insert(found)
            .then(|| format!("the server refuses `{found}`: it is asked without"))
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use serde_json::{Value, json};

    use super::*;

    fn profile(url: &str, model: &str) -> Profile {
        let settings = config::Provider {
            connection: config::Connection::default().at(url),
            ..config::Provider::default()
        };
        let request = ModelRequest {
            model: model.to_owned(),
            ..ModelRequest::default()
        };
        Profile::of(&request, &settings)
    }

    #[test]
    fn each_server_is_told_to_think_in_its_own_words() {
        let all = [Effort::Off, Effort::High];
        for (url, model, want) in [
            (
                "https://api.openai.com/v1",
                "gpt-6.1-sol",
                [
                    json!({ "reasoning_effort": "none" }),
                    json!({ "reasoning_effort": "high" }),
                ],
            ),
            (
                "https://api.openai.com/v1",
                "gpt-5-mini",
                [
                    json!({ "reasoning_effort": "minimal" }),
                    json!({ "reasoning_effort": "high" }),
                ],
            ),
            (
                "https://api.openai.com/v1",
                "o3",
                [
                    json!({ "reasoning_effort": "low" }),
                    json!({ "reasoning_effort": "high" }),
                ],
            ),
            ("https://api.openai.com/v1", "gpt-4.1", [json!({}), json!({})]),
            (
                "https://openrouter.ai/api/v1",
                "openai/gpt-5",
                [
                    json!({ "reasoning": { "enabled": false } }),
                    json!({ "reasoning": { "effort": "high" } }),
                ],
            ),
            (
                "https://api.deepseek.com/v1",
                "deepseek-v4-pro",
                [
                    json!({ "thinking": { "type": "disabled" } }),
                    json!({ "thinking": { "type": "enabled" } }),
                ],
            ),
            (
                "https://api.groq.com/openai/v1",
                "openai/gpt-oss-20b",
                [
                    json!({ "reasoning_effort": "low" }),
                    json!({ "reasoning_effort": "high" }),
                ],
            ),
            (
                "https://api.mistral.ai/v1",
                "magistral-medium-latest",
                [json!({}), json!({})],
            ),
            (
                "http://127.0.0.1:8080/v1",
                "qwen3",
                [
                    json!({ "chat_template_kwargs": { "enable_thinking": false } }),
                    json!({ "reasoning_effort": "high" }),
                ],
            ),
            (
                "https://api.openai.com.evil.example/v1",
                "o3",
                [
                    json!({ "chat_template_kwargs": { "enable_thinking": false } }),
                    json!({ "reasoning_effort": "high" }),
                ],
            ),
        ] {
            let got = all.map(|effort| {
                let member = profile(url, model).effort.member(effort);
                member.map_or_else(
                    || json!({}),
                    |(name, value)| Value::Object([(name.to_owned(), value)].into_iter().collect()),
                )
            });
            assert_eq!(got, want, "{url} {model}");
        }
    }

    #[test]
    fn a_refusal_teaches_once() {
        let refused = |words: &str| Failure::new(FailureKind::Request, "refused").saying(words);
        let mut request = ModelRequest::default();
        for (words, lesson) in [
            (
                "The `reasoning_content` in the thinking mode must be passed back to the API.",
                Learned {
                    replay: Some(Replay::Always),
                    ..Learned::default()
                },
            ),
            (
                "Missing `reasoning_content` field in the assistant message at message index 2",
                Learned {
                    replay: Some(Replay::Always),
                    ..Learned::default()
                },
            ),
            (
                "messages.3.assistant.reasoning_content: Extra inputs are not permitted",
                Learned {
                    replay: Some(Replay::Never),
                    ..Learned::default()
                },
            ),
            (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
                Learned {
                    swaps_limit: true,
                    ..Learned::default()
                },
            ),
            (
                "[{'type': 'extra_forbidden', 'loc': ['body', 'stream_options'], 'msg': 'Extra inputs are not permitted'}]",
                Learned {
                    refused: ["stream_options"].into(),
                    ..Learned::default()
                },
            ),
            (
                "Unsupported value: 'temperature' does not support 0.2 with this model.",
                Learned {
                    refused: ["temperature"].into(),
                    ..Learned::default()
                },
            ),
            ("max_tokens is too large: 9000000", Learned::default()),
            ("messages must not be empty", Learned::default()),
        ] {
            let mut learned = Learned::default();
            let is_lesson = learned.from(&refused(words), &mut request).is_some();
            assert_eq!(
                (is_lesson, &learned),
                (lesson != Learned::default(), &lesson),
                "{words}"
            );
            assert_eq!(
                learned.from(&refused(words), &mut request),
                None,
                "{words}: a second time"
            );
        }
        assert_eq!(request, ModelRequest::default());
        let busy = Failure::new(FailureKind::Busy, "busy").saying("temperature");
        assert_eq!(Learned::default().from(&busy, &mut request), None);
        let groq = refused("Failed to call a function. See 'failed_generation' for more details.\n<function=ls{>");
        assert!(Learned::default().from(&groq, &mut request).is_some());
        assert_eq!(request.messages.len(), 2);
        assert_eq!(request.messages[0], ModelMessage::assistant("<function=ls{>"));
    }
}
