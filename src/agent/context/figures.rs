//! What would be sent, part by part, and what each costs. Estimates, until the server has counted.

use std::collections::BTreeMap;

use crate::{
    agent::{
        prompt::{Facts, TAGS, blocks, servers, tokens, tokens_in},
        rules::Kind,
        told::{IMAGE_TOKENS, said_size, tool_size},
    },
    model::{ModelMessage, Part, ToolSpec},
    protocol::ContextPart,
};

/// A request, as far as it costs something.
#[derive(Clone, Debug, Default)]
pub struct Sent<'a> {
    pub facts: Facts<'a>,
    /// The parts of the first message: [`super::FirstContext::parts`].
    pub first: Vec<(&'static str, String)>,
    /// Everything behind the first context.
    pub messages: &'a [&'a ModelMessage],
    pub tools: &'a [ToolSpec],
    /// Tools that could be offered and are not, and why.
    pub missing: Vec<(String, String)>,
    /// What the server counted for the last request.
    pub counted: Option<u64>,
    /// What the model's tokens cost is known.
    pub is_priced: bool,
}

/// The parts of what would be sent, in its order; the last one is their sum. Rules that wait for their file stand there
/// with what they would cost and are no part of the sum.
pub fn measure(sent: &Sent<'_>) -> Vec<ContextPart> {
    let mut parts = Vec::new();
    let mut sum = 0;
    let mut add = |name: String, tokens: u64, note: String| {
        sum += tokens;
        parts.push(ContextPart { name, tokens, note });
    };
    let said = blocks(&sent.facts);
    let prompt: u64 = said.iter().map(|it| tokens(&it.1)).sum();
    let own = sent.facts.custom.map_or(0, |it| tokens(&it.append));
    let replaced = sent.facts.custom.map_or(0, |it| it.replace.len());
    let note = match (replaced, own) {
        (0, 0) => String::new(),
        (0, _) => "with your words at its end".to_owned(),
        (count, _) => format!("with {count} of its parts in your words"),
    };
    add("system prompt".to_owned(), prompt + own, note);
    let mut waiting = Vec::new();
    for rule in sent.facts.rules.iter().flat_map(|it| it.listed()) {
        let name = format!("rule {}", rule.path);
        match rule.kind {
            None => add(
                name,
                0,
                "not loaded: you have not said that you trust this workspace".to_owned(),
            ),
            Some(Kind::AgentRequested) if rule.is_said => add(name, rule.tokens, "its description".to_owned()),
            Some(_) if rule.is_said => add(name, rule.tokens, String::new()),
            Some(kind) => waiting.push(ContextPart {
                name,
                tokens: rule.tokens,
                note: format!("not sent: {}", kind.as_str()),
            }),
        }
    }
    if let Some(text) = servers(sent.facts.servers) {
        add("instructions of servers".to_owned(), tokens(&text), String::new());
    }
    if !sent.tools.is_empty() {
        let count = sent.tools.len();
        let word = if count == 1 { "tool" } else { "tools" };
        add(
            "tools".to_owned(),
            sent.tools.iter().map(tool_size).sum(),
            format!("{count} {word}"),
        );
    }
    for (tool, why) in &sent.missing {
        add(format!("tool {tool}"), 0, format!("not offered: {why}"));
    }
    for (tag, text) in &sent.first {
        add((*tag).to_owned(), tokens(text), String::new());
    }
    let mut costs = Costs {
        has_rules: sent.facts.rules.is_some(),
        ..Costs::default()
    };
    for message in sent.messages {
        costs.count(message);
    }
    for (tag, cost) in &costs.tags {
        add((*tag).to_owned(), *cost, String::new());
    }
    for (name, cost, note) in [
        ("your messages", costs.user, ""),
        ("answers", costs.answers, ""),
        ("results of tools", costs.results, ""),
        ("images", costs.images * IMAGE_TOKENS, "a guess: servers differ"),
    ] {
        if cost > 0 {
            add(name.to_owned(), cost, note.to_owned());
        }
    }
    parts.extend(waiting);
    let window = sent.facts.window.map(|it| format!("of {it}"));
    let counted = sent
        .counted
        .map(|it| format!("the server counted {it} for the last request"));
    let unpriced = (!sent.is_priced).then(|| format!("what {} costs is not known here", name_of(sent.facts.model)));
    let notes: Vec<String> = window.into_iter().chain(counted).chain(unpriced).collect();
    parts.push(ContextPart {
        name: "all".to_owned(),
        tokens: sum,
        note: notes.join("; "),
    });
    parts
}

fn name_of(model: &str) -> &str {
    if model.is_empty() {
        "the server's own model"
    } else {
        model
    }
}

#[derive(Default)]
struct Costs {
    /// Rules are counted by themselves.
    has_rules: bool,
    user: u64,
    /// What the program says in front of the user's words, by its tags.
    tags: BTreeMap<&'static str, u64>,
    answers: u64,
    results: u64,
    images: u64,
}

impl Costs {
    /// A message of the user's: what stands in tags of ours beside their words.
    fn count_user(&mut self, text: &str) {
        let mut own = 0;
        let mut tag: Option<(&'static str, usize)> = None;
        for line in text.split_inclusive('\n') {
            let name = |start: &str| {
                let rest = line.strip_prefix(start)?;
                let end = rest.find(['>', ' '])?;
                TAGS.iter().copied().find(|it| rest.get(..end) == Some(*it))
            };
            match &mut tag {
                None => match name("<") {
                    Some(found) if found != "user_query" => tag = Some((found, line.len())),
                    Some(_) | None => own += line.len(),
                },
                Some((_, size)) => *size += line.len(),
            }
            if let Some((open, size)) = tag.take_if(|(open, _)| name("</") == Some(*open)) {
                let is_rule = self.has_rules && matches!(open, "rules_update" | "manual_workspace_rule");
                if !is_rule {
                    *self.tags.entry(open).or_default() += tokens_in(size);
                }
            }
        }
        self.user += tokens_in(own + tag.map_or(0, |it| it.1));
    }

    fn count(&mut self, message: &ModelMessage) {
        match message {
            ModelMessage::User(parts) => {
                for part in parts {
                    match part {
                        Part::Text(text) => self.count_user(text),
                        Part::Image(_) => self.images += 1,
                    }
                }
            }
            ModelMessage::Assistant(said) => self.answers += said.iter().map(said_size).sum::<u64>(),
            ModelMessage::Results(results) => {
                for result in results {
                    self.results += tokens(&result.text);
                    self.images += result.images.len() as u64;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pretty_assertions::assert_eq;
    use serde_json::json;

    use super::*;
    use crate::{
        agent::{prompt, rules::RuleSet},
        model::{Call, CallResult, Image, Said},
        sandbox::Workspace,
    };

    #[test]
    fn every_part_is_named_and_the_sum_is_theirs() {
        let folder = tempfile::tempdir().expect("a folder");
        for (path, text) in [
            ("AGENTS.md", "x".repeat(330)),
            (".cursor/rules/rust.mdc", "---\nglobs: *.rs\n---\nNo unwrap.".to_owned()),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
            std::fs::write(path, text).expect("a file");
        }
        let workspace = Arc::new(Workspace::open(folder.path()).expect("a workspace"));
        let rules = RuleSet::load(&workspace, crate::agent::rules::Trust::Whole);
        let image = Image {
            media_type: "image/png".to_owned(),
            bytes: Arc::from([0_u8; 4]),
        };
        let messages = [
            ModelMessage::User(vec![
                Part::Text(format!(
                    "<linter_errors>\n{}\n</linter_errors>\n<rules_update>\nNo unwrap.\n</rules_update>\n<user_query>\n{}\n</user_query>",
                    "l".repeat(66),
                    "y".repeat(33)
                )),
                Part::Image(image),
            ]),
            ModelMessage::Assistant(vec![
                Said::Text("z".repeat(66)),
                Said::Call(Call {
                    id: "1".to_owned(),
                    name: "grep".to_owned(),
                    arguments: json!({ "pattern": "a" }).as_object().cloned().unwrap_or_default(),
                    opaque: None,
                }),
            ]),
            ModelMessage::Results(vec![CallResult {
                call: "1".to_owned(),
                name: "grep".to_owned(),
                text: "r".repeat(99),
                is_error: false,
                images: Vec::new(),
            }]),
        ];
        let tools = [ToolSpec {
            name: "grep".to_owned(),
            aliases: &[],
            about: "Searches.".to_owned(),
            parameters: json!({}),
        }];
        let sent = Sent {
            facts: Facts {
                rules: Some(&rules),
                window: Some(100_000),
                tools: &["grep"],
                ..Facts::default()
            },
            first: vec![("user_info", "u".repeat(33))],
            messages: &messages.iter().collect::<Vec<_>>(),
            tools: &tools,
            missing: vec![("web_search".to_owned(), "no service is configured".to_owned())],
            counted: Some(1234),
            is_priced: true,
        };
        let parts = measure(&sent);
        let shown: Vec<String> = parts
            .iter()
            .filter(|it| !matches!(it.name.as_str(), "system prompt" | "all"))
            .map(|it| format!("{} {} {}", it.name, it.tokens, it.note))
            .collect();
        // 3.3 bytes are a token.
        assert_eq!(
            shown,
            [
                "rule AGENTS.md 100 ",
                "tools 6 1 tool",
                "tool web_search 0 not offered: no service is configured",
                "user_info 10 ",
                "linter_errors 31 ",
                "your messages 19 ",
                "answers 27 ",
                "results of tools 30 ",
                "images 1000 a guess: servers differ",
                "rule .cursor/rules/rust.mdc 4 not sent: with matching files",
            ]
        );
        let all = parts.last().expect("a sum");
        let sum: u64 = parts
            .iter()
            .filter(|it| it.name != "all" && !it.note.starts_with("not sent"))
            .map(|it| it.tokens)
            .sum();
        assert_eq!(all.tokens, sum);
        assert_eq!(all.note, "of 100000; the server counted 1234 for the last request");
        let whole = prompt::tokens(&prompt::system(&sent.facts));
        let told: u64 = parts
            .iter()
            .filter(|it| it.name.starts_with("rule A") || it.name == "system prompt")
            .map(|it| it.tokens)
            .sum();
        assert!(told.abs_diff(whole) < 200, "{told} of {whole}");
    }
}
