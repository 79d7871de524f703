//! What would be sent, part by part, and what each costs. Estimates, until the server has counted.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    agent::{
        cut::{tokens, tokens_in},
        history::message_history::{IMAGE_TOKENS, said_size, tool_size},
        prompt::{Facts, blocks, rules::RuleKind, servers},
        tags::TAGS,
    },
    models::{ModelMessage, Part, ToolSpec},
    protocol::{ContextName, ContextNote, ContextPart, NotOffered},
};

/// A request, as far as it costs something.
#[derive(Clone, Debug, Default)]
pub struct Sent<'a> {
    pub facts: Facts<'a>,
    /// The parts of the first message: [`super::FirstContext::parts`].
    pub first: Vec<(&'static str, String)>,
    /// Everything behind the first context.
    pub messages: &'a [&'a ModelMessage],
    pub tools: &'a [Arc<ToolSpec>],
    /// Tools that could be offered and are not, and why.
    pub missing: Vec<(String, NotOffered)>,
    /// Tokens of the last request, as the server counted them.
    pub counted: Option<u64>,
    /// The price of the model's tokens is known.
    pub is_priced: bool,
}

/// The parts of what would be sent, in its order; the last one is their sum. Rules that wait for their file stand there
/// with what they would cost and are no part of the sum.
pub fn measure(sent: &Sent<'_>) -> Vec<ContextPart> {
    let mut parts = Vec::new();
    let mut sum = 0;
    let mut add = |name: ContextName, tokens: u64, note: Option<ContextNote>| {
        sum += tokens;
        parts.push(ContextPart {
            name,
            tokens,
            notes: note.into_iter().collect(),
        });
    };
    let said = blocks(&sent.facts);
    let prompt: u64 = said.iter().map(|it| tokens(&it.1)).sum();
    let own = sent.facts.custom.map_or(0, |it| tokens(&it.append));
    let replaced = sent.facts.custom.map_or(0, |it| it.replace.len());
    let note = match (replaced, own) {
        (0, 0) => None,
        (0, _) => Some(ContextNote::UserAddition),
        (count, _) => Some(ContextNote::UserReplacements(count)),
    };
    add(ContextName::SystemPrompt, prompt + own, note);
    let mut waiting = Vec::new();
    for rule in sent.facts.rules.iter().flat_map(|it| it.listed()) {
        let name = ContextName::Rule(rule.path);
        match rule.kind {
            None => add(name, 0, Some(ContextNote::Untrusted)),
            Some(RuleKind::AgentRequested) if rule.is_said => {
                add(name, rule.tokens, Some(ContextNote::DescriptionOnly));
            }
            Some(_) if rule.is_said => add(name, rule.tokens, None),
            Some(kind) => waiting.push(ContextPart {
                name,
                tokens: rule.tokens,
                notes: vec![ContextNote::NotSent(kind.trigger())],
            }),
        }
    }
    if let Some(text) = servers(sent.facts.servers) {
        add(ContextName::ServerInstructions, tokens(&text), None);
    }
    if !sent.tools.is_empty() {
        add(
            ContextName::Tools,
            sent.tools.iter().map(|it| tool_size(it)).sum(),
            Some(ContextNote::ToolCount(sent.tools.len())),
        );
    }
    for (tool, why) in &sent.missing {
        add(ContextName::Tool(tool.clone()), 0, Some(ContextNote::NotOffered(*why)));
    }
    for (tag, text) in &sent.first {
        add(ContextName::Tag(tag), tokens(text), None);
    }
    let mut costs = Costs {
        has_rules: sent.facts.rules.is_some(),
        ..Costs::default()
    };
    for message in sent.messages {
        costs.count(message);
    }
    for (tag, cost) in &costs.tags {
        add(ContextName::Tag(tag), *cost, None);
    }
    for (name, cost, note) in [
        (ContextName::Messages, costs.user, None),
        (ContextName::Answers, costs.answers, None),
        (ContextName::Results, costs.results, None),
        (
            ContextName::Images,
            costs.images * IMAGE_TOKENS,
            Some(ContextNote::Estimate),
        ),
    ] {
        if cost > 0 {
            add(name, cost, note);
        }
    }
    parts.extend(waiting);
    let window = sent.facts.window.map(ContextNote::Window);
    let counted = sent.counted.map(ContextNote::CountedByServer);
    let model = Some(sent.facts.model).filter(|it| !it.is_empty());
    let unpriced = (!sent.is_priced).then(|| ContextNote::Unpriced(model.map(str::to_owned)));
    parts.push(ContextPart {
        name: ContextName::All,
        tokens: sum,
        notes: window.into_iter().chain(counted).chain(unpriced).collect(),
    });
    parts
}

#[derive(Default)]
struct Costs {
    /// Rules are counted by themselves.
    has_rules: bool,
    user: u64,
    /// Tokens of the context around the user's words, by tag.
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
                TAGS.iter().find(|it| rest.get(..end) == Some(*it))
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
        agent::prompt::{self, rules::RuleSet},
        models::{Call, CallResult, Image, Said},
        protocol::RuleTrigger,
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
        let rules = RuleSet::load(&workspace, crate::agent::prompt::rules::Trust::Whole);
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
                Said::Text("z".repeat(66).into()),
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
            aliases: Vec::new(),
            about: "Searches.".to_owned().into(),
            parameters: json!({}).into(),
        }
        .into()];
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
            missing: vec![("web_search".to_owned(), NotOffered::NoSearchService)],
            counted: Some(1234),
            is_priced: true,
        };
        let parts = measure(&sent);
        let part = |name, tokens, notes: &[ContextNote]| ContextPart {
            name,
            tokens,
            notes: notes.to_vec(),
        };
        let rule = |path: &str| ContextName::Rule(path.to_owned());
        let shown: Vec<ContextPart> = parts
            .iter()
            .filter(|it| !matches!(it.name, ContextName::SystemPrompt | ContextName::All))
            .cloned()
            .collect();
        // 3.3 bytes are a token.
        assert_eq!(
            shown,
            [
                part(rule("AGENTS.md"), 100, &[]),
                part(ContextName::Tools, 6, &[ContextNote::ToolCount(1)]),
                part(
                    ContextName::Tool("web_search".to_owned()),
                    0,
                    &[ContextNote::NotOffered(NotOffered::NoSearchService)]
                ),
                part(ContextName::Tag("user_info"), 10, &[]),
                part(ContextName::Tag("linter_errors"), 31, &[]),
                part(ContextName::Messages, 19, &[]),
                part(ContextName::Answers, 27, &[]),
                part(ContextName::Results, 30, &[]),
                part(ContextName::Images, 1000, &[ContextNote::Estimate]),
                part(
                    rule(".cursor/rules/rust.mdc"),
                    4,
                    &[ContextNote::NotSent(RuleTrigger::Files)]
                ),
            ]
        );
        let all = parts.last().expect("a sum");
        let sum: u64 = parts
            .iter()
            .filter(|it| it.name != ContextName::All && !matches!(it.notes[..], [ContextNote::NotSent(_)]))
            .map(|it| it.tokens)
            .sum();
        assert_eq!(all.tokens, sum);
        assert_eq!(
            all.notes,
            [ContextNote::Window(100_000), ContextNote::CountedByServer(1234)]
        );
        let whole = tokens(&prompt::system(&sent.facts));
        let told: u64 = parts
            .iter()
            .filter(|it| it.name == rule("AGENTS.md") || it.name == ContextName::SystemPrompt)
            .map(|it| it.tokens)
            .sum();
        assert!(told.abs_diff(whole) < 200, "{told} of {whole}");
    }
}
