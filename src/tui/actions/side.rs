//! A question beside the conversation, and a turn that writes down what an agent must know of the workspace.

use serde_json::Map;

use super::{focus::focus_composer, writing};
use crate::{
    protocol::{Document, DocumentStart, Kind, Message, Mode, PartKind, Query, Reply},
    t,
    tui::{
        app::{Action, effects::ask_for},
        overlays::DocumentPage,
    },
};

/// The message of `/init`.
const INIT: &str = include_str!("../../../assets/prompts/init.md");

/// Asks a question about the conversation; the answer is a page, and stays out of the conversation. Without a question the
/// last answer is shown again.
pub const BTW: Action = Action::new("btw", "btw", |app, question| {
    let question = question.trim().to_owned();
    if question.is_empty() {
        let Some((question, answer)) = &app.conversation.side_answer else {
            // What is typed next is the question.
            app.composer.field.set("/btw ");
            focus_composer(app);
            return app.toast(t!("btw-how"));
        };
        let mut page = DocumentPage::waiting(question, t!("btw-facts"), "");
        page.fill(text(answer), "");
        return app.open(page);
    }
    let page = DocumentPage::waiting(&question, t!("btw-facts"), t!("btw-asking"));
    app.open(page);
    let title = question.clone();
    vec![ask_for(Query::SideQuestion(question), move |app, reply| {
        if let Ok(Reply::SideAnswer(it)) = &reply
            && !it.text.is_empty()
        {
            app.conversation.side_answer = Some((title.clone(), it.text.clone()));
        }
        let Some(page) = app.overlays.find::<DocumentPage>(|it| it.waits_for(&title)) else {
            return match reply {
                Ok(Reply::SideAnswer(it)) if !it.text.is_empty() => app.toast(t!("btw-answered")),
                Ok(Reply::SideAnswer(it)) if !it.problem.is_empty() => app.toast(it.problem),
                Ok(_) => Vec::new(),
                Err(why) => app.toast(why),
            };
        };
        match reply {
            Ok(Reply::SideAnswer(it)) if !it.text.is_empty() => page.fill(text(&it.text), ""),
            Ok(Reply::SideAnswer(it)) if !it.problem.is_empty() => page.fill(Vec::new(), &it.problem),
            Ok(_) => page.fill(Vec::new(), t!("btw-no-answer")),
            Err(why) => page.fill(Vec::new(), &why),
        }
        Vec::new()
    })]
});

/// Has the model write AGENTS.md, as a turn in agent mode; `words` are added.
pub const INIT_RULES: Action = Action::new("init", "init", |app, words| {
    let mut text = t!("init-message").to_owned();
    if !words.is_empty() {
        text.push_str(": ");
        text.push_str(words);
    }
    text.push_str("\n\n");
    let start = text.len();
    text.push_str(INIT.trim());
    let mut message = Message::user(text);
    message.mark_end(start, PartKind::Instructions);
    app.viewport.pane.go_to_end();
    let effects = writing::submit_in(app, message, Some(Mode::Agent));
    super::focus::focus_composer(app);
    effects
});

/// A text as a document to read.
fn text(markdown: &str) -> Vec<Document> {
    vec![Document::finished(DocumentStart {
        id: "side".into(),
        kind: Kind::Text,
        sequence: None,
        content: Some(markdown.into()),
        metadata: Map::new(),
    })]
}
