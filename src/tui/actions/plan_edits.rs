//! The user's edits of a plan, which go along with the next message about it.

use crate::{
    protocol::{Message, Mode, PartKind, View, document, plan_file},
    transcript::{Exchange, Todo},
    tui::app::App,
};

/// Adds the newest plan to a message in plan mode, if the user has edited it and has not sent it: who made it knows only
/// what it wrote. The screen only says that it goes along.
pub fn with_edits(app: &App, mut message: Message) -> Message {
    let transcript = &app.conversation.transcript;
    let plan = transcript.newest_plan().and_then(|it| transcript.get(it));
    let Some(document) = plan.filter(|it| it.metadata.contains_key("edited") && !it.is_open()) else {
        return message;
    };
    let View::Plan(mut plan) = document.view() else {
        return message;
    };
    plan.todos = transcript.todos.list.iter().map(borrowed).collect();
    let text = plan_file::write(&plan);
    let is_sent = |it: &Exchange| it.message.as_ref().is_some_and(|it| it.content.contains(&text));
    if app.composer.mode != Mode::Plan || transcript.exchanges.iter().any(is_sent) {
        return message;
    }
    let start = message.content.len();
    message.content = format!(
        "{}\n\nThis is the plan as I have changed it:\n\n{text}",
        message.content
    );
    message.mark_end(start, PartKind::Plan);
    message
}

/// A todo as a plan's document holds it.
pub fn borrowed(todo: &Todo) -> document::Todo<'_> {
    document::Todo {
        id: &todo.id,
        content: &todo.content,
        status: todo.status.clone(),
        dependencies: todo.dependencies.iter().map(String::as_str).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        protocol::{Done, FinishReason, ResponseStart, Submit},
        tui::test_app::{TestApp, document},
    };

    use super::*;
    use crate::{
        protocol::{Command, Event},
        tui::actions::plan::COMMENT,
    };

    fn messages(app: &TestApp) -> Vec<Message> {
        let submitted = app.sent().into_iter().filter_map(|it| match it {
            Command::Submit(Submit { message, .. }) => Some(message),
            _ => None,
        });
        submitted.collect()
    }

    #[test]
    fn a_comment_takes_the_edits_of_a_plan_along_once() {
        let mut app = TestApp::new(80, 24);
        app.events([
            Event::UserMessage(Message::user("go")),
            Event::ResponseStart(ResponseStart::default()),
        ]);
        let todos = json!([{ "id": "t", "content": "Sum up", "status": "pending" }]);
        let metadata = json!({ "title": "Sums", "overview": "All.", "todos": todos });
        app.events(document("1", "plan", Some("Do it."), metadata));
        app.events([Event::Done(Done {
            finish_reason: Some(FinishReason::AwaitingInput),
            ..Done::default()
        })]);
        (COMMENT.run)(&mut app.app, "");
        app.keys("why?\r");
        assert!(!messages(&app)[0].content.contains("Sum up"), "nothing was edited");
        app.events([
            Event::UserMessage(messages(&app)[0].clone()),
            Event::Done(Done::default()),
        ]);
        let todos = json!([{ "id": "t", "content": "Add it all up", "status": "pending" }]);
        let metadata = json!({ "todos": todos, "edited": true });
        let update = Event::DocumentUpdate {
            document: "1".into(),
            metadata: metadata.as_object().cloned().expect("an object"),
        };
        let entry = crate::protocol::Entry {
            position: crate::protocol::Position(100),
            turn: crate::protocol::Turn(1),
            at_ms: 0,
            event: update,
        };
        app.app.conversation.transcript.apply(&entry);
        (COMMENT.run)(&mut app.app, "");
        app.keys("smaller\r");
        let second = messages(&app)[1].clone();
        assert!(
            second.content.contains("as I have changed it") && second.content.contains("Add it all up"),
            "{second:?}"
        );
        assert!(
            second.typed().contains("smaller") && !second.typed().contains("Add it all up"),
            "{}",
            second.typed()
        );
        let shown = crate::tui::widgets::message_text(&second);
        assert!(shown.ends_with("smaller · with your edited plan"), "{shown}");
        app.events([Event::UserMessage(second), Event::Done(Done::default())]);
        (COMMENT.run)(&mut app.app, "");
        app.keys("and smaller\r");
        assert!(!messages(&app)[2].content.contains("Add it all up"), "they were sent");
    }
}
