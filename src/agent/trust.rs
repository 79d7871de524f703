//! The question whether a workspace may act, and what becomes of the answer.
//!
//! A repository is data until the user has said otherwise. The question names everything that would be switched on; it
//! stands in the transcript, holds nobody up, and not to answer it is a no. Keys, addresses, proxies, permissions and the
//! sandbox are no part of it: no file of a repository sets them, trusted or not.

use std::{collections::BTreeMap, fmt::Write as _, sync::Arc};

use serde_json::{Map, Value, json};

use crate::{
    agent::{
        prompt::rules::{self, HeldBack, RuleSet, Trust},
        tags::name,
    },
    config::{COMMANDS, Fingerprint, Paths, Settings, SettingsFile, TrustRecord, TrustStore},
    os::file,
    protocol::{
        ASIDE, ClarificationResponse, DocumentId, DocumentStart, Done, Event, FinishReason, Kind, Message, Outcome,
        ResponseStart, Status,
    },
    sandbox::Workspace,
    tools::lints::checkers,
};

/// Files that are listed by name in the question.
const MOST_NAMED: usize = 24;
/// Entries of a workspace that are searched for rules in subfolders.
const MOST_ENTRIES: usize = 20_000;
/// More rules are never asked about at once.
const MOST_RULES: usize = 2000;
/// A longer file is no command.
const MOST_COMMAND_BYTES: u64 = 256 << 10;
/// In the place of a path, for what is no file of its own.
const CHECKERS: &str = "(checkers)";
/// The question's own names.
const QUESTION: &str = "trust";
const YES: &str = "trust";
const LATER: &str = "not_now";
const NEVER: &str = "never";

/// Something of the workspace that would act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acting {
    pub path: String,
    /// In words, for the question.
    pub about: String,
    pub print: Fingerprint,
    /// The user has let a file of this name act, with other content.
    pub is_changed: bool,
}

/// The files of a workspace that take effect by themselves, and which of them the user trusts.
#[derive(Clone, Debug)]
pub struct Standing {
    pub trust: Trust,
    /// Files that the user has not been asked about; empty: there is nothing to ask.
    pub asked: Vec<Acting>,
    /// Files that have no effect, including those that the user has declined.
    pub shut: Vec<Acting>,
    /// Everything that would act, also what holds already: a yes is one to all of it.
    pub all: BTreeMap<String, Fingerprint>,
}

/// The trust that holds here without a question.
pub fn trust(settings: &Settings, paths: Option<&Paths>, workspace: &Workspace, is_attended: bool) -> Trust {
    if settings.is_trusted(workspace.root()) {
        return Trust::Whole;
    }
    match paths.filter(|_| is_attended) {
        Some(paths) => Trust::Said(TrustStore::under(&paths.state).record(workspace.root())),
        // Nobody is there to be shown what has changed.
        None => Trust::nobody(),
    }
}

/// Lists the files of a workspace that take effect, and those that would if the user trusted them. Reads files.
pub fn look(workspace: &Arc<Workspace>, trust: Trust, settings: &Settings) -> Standing {
    let mut found = Vec::new();
    if let Some(file) = SettingsFile::of_project(workspace.root()) {
        found.push((
            ".sheaf/config.toml".to_owned(),
            "settings, from the next start".to_owned(),
            Fingerprint::of(&[file.text.as_bytes()]),
        ));
    }
    for folder in COMMANDS {
        let entries = std::fs::read_dir(workspace.root().join(folder)).into_iter().flatten();
        let mut names: Vec<_> = entries
            .flatten()
            .take(MOST_ENTRIES)
            .filter_map(|it| it.file_name().into_string().ok())
            .collect();
        names.sort();
        names.truncate(MOST_RULES);
        for name in names
            .iter()
            .filter(|it| std::path::Path::new(it).extension() == Some("md".as_ref()))
        {
            let path = format!("{folder}/{name}");
            let text = file::read_beneath(workspace.root(), path.as_ref(), MOST_COMMAND_BYTES);
            if let Ok(text) = text {
                found.push((
                    path,
                    "a prompt, sent when you type its name".to_owned(),
                    Fingerprint::of(&[&text]),
                ));
            }
        }
    }
    let held = RuleSet::load(workspace, Trust::nobody()).held_back().to_vec();
    let deeper = rules::deeper(workspace, MOST_ENTRIES);
    for rule in held.into_iter().chain(deeper).take(MOST_RULES) {
        let HeldBack { path, kind, print } = rule;
        found.push((path, format!("rule, sent {}", kind.as_str()), print));
    }
    let checkers = checkers::checkers(workspace, settings);
    if !checkers.is_empty() {
        let print: Vec<&[u8]> = checkers.iter().map(String::as_bytes).collect();
        found.push((
            CHECKERS.to_owned(),
            format!(
                "`{}`, in the sandbox (runs build scripts and other code of this project)",
                checkers.join("`, `")
            ),
            Fingerprint::of(&print),
        ));
    }
    let said = match &trust {
        Trust::Whole => None,
        Trust::Said(said) => Some(said.clone()),
    };
    // Whoever trusts all of it means checkers of the user's own choice, too.
    let is_checked = found.iter().any(|it| it.0 == CHECKERS && trust.lets(CHECKERS, &it.2));
    if is_checked || matches!(trust, Trust::Whole) {
        workspace.let_act();
    } else {
        workspace.stop_acting();
    }
    let all = found.iter().map(|it| (it.0.clone(), it.2.clone())).collect();
    let shut = found.into_iter().filter(|it| !trust.lets(&it.0, &it.2));
    let shut: Vec<Acting> = shut
        .map(|(path, about, print)| Acting {
            is_changed: said
                .as_ref()
                .is_some_and(|it| it.is_trusted && it.files.contains_key(&path)),
            path,
            about,
            print,
        })
        .collect();
    let asked = shut.iter().filter(|it| !trust.knows(&it.path, &it.print));
    let asked = asked.cloned().collect();
    Standing {
        trust,
        asked,
        shut,
        all,
    }
}

impl Standing {
    /// Returns true if the user trusts all of it by their own answer.
    pub fn is_held(&self) -> bool {
        matches!(&self.trust, Trust::Said(said) if said.is_trusted) && self.shut.is_empty() && !self.all.is_empty()
    }

    /// Returns true if there is something to ask, and it is only checkers.
    pub fn asks_for_checkers_only(&self) -> bool {
        !self.asked.is_empty() && self.asked.iter().all(|it| it.path == CHECKERS && !it.is_changed)
    }
}

/// The question, while it is open.
#[derive(Debug)]
pub struct TrustPage {
    asked: Vec<Acting>,
    all: BTreeMap<String, Fingerprint>,
    /// All of it is trusted; the user may stop that.
    is_held: bool,
    document: DocumentId,
    questions: Value,
}

/// The user's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrustAnswer {
    Trusted,
    /// It is trusted no more.
    Never,
    /// It stays as it is, and is asked again when something changes.
    Later,
}

impl TrustPage {
    /// The question, as events that open it.
    pub fn open(standing: &Standing) -> (Self, Vec<Event>) {
        let page = Self {
            asked: standing.asked.clone(),
            all: standing.all.clone(),
            document: DocumentId::numbered(2),
            is_held: false,
            questions: questions(false),
        };
        page.opened()
    }

    /// The question whether a trusted folder stays trusted, as events that open it.
    pub fn open_held(standing: &Standing) -> (Self, Vec<Event>) {
        let page = Self {
            asked: Vec::new(),
            all: standing.all.clone(),
            document: DocumentId::numbered(2),
            is_held: true,
            questions: questions(true),
        };
        page.opened()
    }

    fn opened(self) -> (Self, Vec<Event>) {
        let events = open_question(&self.document, &self.text(), &self.questions);
        (self, events)
    }

    /// The message that opens a turn for the question in a conversation that has begun.
    pub fn message() -> Event {
        let mut message = Message::user("/trust");
        message.extra.insert(ASIDE.to_owned(), true.into());
        Event::UserMessage(message)
    }

    /// Returns true if the question is this document.
    pub fn is(&self, document: &DocumentId) -> bool {
        self.document == *document
    }

    /// Reads the user's answer from a response.
    pub fn verdict(response: &ClarificationResponse) -> TrustAnswer {
        let answer = response.answers.iter().find(|it| it.question_id == QUESTION);
        let chosen = answer.map(|it| it.selected_option_ids.as_slice());
        match (&response.outcome, chosen) {
            (Outcome::Answered, Some([one])) if one == YES => TrustAnswer::Trusted,
            (Outcome::Answered, Some([one])) if one == NEVER => TrustAnswer::Never,
            (Outcome::Answered | Outcome::Skipped | Outcome::Cancelled | Outcome::Other(_), _) => TrustAnswer::Later,
        }
    }

    /// Keeps what was said; `None`: there was nothing to keep.
    pub fn keep(
        &self,
        verdict: TrustAnswer,
        workspace: &Workspace,
        paths: &Paths,
    ) -> Result<Option<TrustRecord>, String> {
        let store = TrustStore::under(&paths.state);
        let kept = match verdict {
            TrustAnswer::Trusted => store.store(workspace.root(), true, self.all.clone()),
            TrustAnswer::Never => store.store(workspace.root(), false, self.all.clone()),
            TrustAnswer::Later if self.is_held => return Ok(None),
            TrustAnswer::Later => {
                let asked = self.asked.iter().map(|it| (it.path.clone(), it.print.clone()));
                store.decline(workspace.root(), asked.collect())
            }
        };
        kept.map(Some).map_err(|it| it.to_string())
    }

    /// The events that close it, with a last word.
    pub fn close(&self, response: Option<&ClarificationResponse>, word: &str) -> Vec<Event> {
        close_question(&self.document, &self.questions, response, word)
    }

    /// Returns true if the question is whether a trusted folder stays trusted.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    fn text(&self) -> String {
        if self.is_held {
            let mut text = "**This folder is trusted.** This is on:\n".to_owned();
            for path in self.all.keys().take(MOST_NAMED) {
                let path = if path == CHECKERS {
                    "checkers of the project"
                } else {
                    path
                };
                let _ = write!(text, "\n- `{}`", plain(path));
            }
            if let Some(more @ 1..) = self.all.len().checked_sub(MOST_NAMED) {
                let _ = write!(text, "\n- and {more} more");
            }
            return text;
        }
        let is_changed = self.asked.iter().any(|it| it.is_changed);
        let mut text = if is_changed {
            "**Files of this folder are new or have changed.** They are off. Trusting them turns on:\n".to_owned()
        } else {
            "**This folder is not trusted yet.** Its rules and checkers are off. Trusting it turns on:\n".to_owned()
        };
        for it in self.asked.iter().take(MOST_NAMED) {
            let change = if it.is_changed { " (changed)" } else { "" };
            // Writing to a string does not fail.
            if it.path == CHECKERS {
                let _ = write!(text, "\n- {}{change}", it.about);
            } else {
                let _ = write!(text, "\n- `{}`{change}: {}", plain(&it.path), it.about);
            }
        }
        if let Some(more @ 1..) = self.asked.len().checked_sub(MOST_NAMED) {
            let _ = write!(text, "\n- and {more} more rules");
        }
        text.push_str(
            "\n\nTrusted files can instruct the model. They cannot change keys, servers, proxies, permissions or the \
             sandbox.",
        );
        text
    }
}

/// The events of an answer of the program's own: a text, and a question to the user that stays open. No model hears of it.
pub fn open_question(document: &DocumentId, text: &str, questions: &Value) -> Vec<Event> {
    let mut events = vec![Event::ResponseStart(ResponseStart::default())];
    events.extend(written(1, text));
    events.push(started(2, Kind::Clarification));
    events.push(Event::MetadataDelta {
        document: document.clone(),
        metadata: members([
            (ASIDE, true.into()),
            ("kind", "question".into()),
            ("questions", questions.clone()),
        ]),
        append: Vec::new(),
    });
    events
}

/// The events that close the question, and the answer, with a last word.
pub fn close_question(
    document: &DocumentId,
    questions: &Value,
    response: Option<&ClarificationResponse>,
    word: &str,
) -> Vec<Event> {
    let outcome = response.map_or(Outcome::Skipped, |it| it.outcome.clone());
    let answers = response.map(|it| it.answers.clone()).unwrap_or_default();
    let mut events = vec![Event::DocumentEnd {
        document: document.clone(),
        final_content: None,
        metadata: members([
            (ASIDE, true.into()),
            ("kind", "question".into()),
            ("questions", questions.clone()),
            ("outcome", json!(outcome)),
            ("answers", json!(answers)),
        ]),
    }];
    events.extend(written(3, word));
    events.push(Event::Done(Done {
        status: Some(Status::Completed),
        finish_reason: Some(FinishReason::Stop),
        ..Done::default()
    }));
    events
}

/// A path that cannot end the code it stands in, and shows what it is made of.
pub fn plain(path: &str) -> String {
    let path = name(path);
    crate::text::visible_line(&path).as_str().replace('`', "‹U+0060›")
}

fn questions(is_held: bool) -> Value {
    if is_held {
        return json!([{
            "id": QUESTION,
            "text": "Keep trusting this folder?",
            "allowFreeText": false,
            "options": [
                { "id": LATER, "label": "Keep trusting", "description": "default" },
                { "id": NEVER, "label": "Stop trusting", "description": "from your next message" },
            ],
        }]);
    }
    json!([{
        "id": QUESTION,
        "text": "Trust this folder?",
        "allowFreeText": false,
        "options": [
            { "id": LATER, "label": "Not now", "description": "default; asked again when something changes" },
            { "id": YES, "label": "Trust", "description": "until one of these files changes" },
        ],
    }])
}

fn started(number: u64, kind: Kind) -> Event {
    Event::DocumentStart(DocumentStart {
        id: DocumentId::numbered(number),
        kind,
        sequence: Some(number),
        content: None,
        metadata: members([(ASIDE, true.into())]),
    })
}

fn written(number: u64, text: &str) -> [Event; 2] {
    [
        started(number, Kind::Text),
        Event::DocumentEnd {
            document: DocumentId::numbered(number),
            final_content: Some(text.to_owned()),
            metadata: members([(ASIDE, true.into()), ("format", "markdown".into())]),
        },
    ]
}

fn members<const N: usize>(pairs: [(&str, Value); N]) -> Map<String, Value> {
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
}
