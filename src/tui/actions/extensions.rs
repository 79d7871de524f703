//! Skills and hooks of the user and of the project: what there is, what it costs, and what has no effect.

use crate::{
    protocol::{Query, Reply},
    t,
    tui::{
        app::{Action, effects::ask},
        overlays::Page,
    },
};

pub const SKILLS: Action = Action::new("skills", "skills", |app, _| {
    let draft = app.composer.field.version();
    vec![ask!(Query::Skills, Reply::Extensions, move |app, entries| {
        let page = Page::extensions(t!("skills-title"), t!("skills-about"), t!("skills-none"), &entries);
        app.open_late(draft, page)
    })]
});

pub const HOOKS: Action = Action::new("hooks", "hooks", |app, _| {
    let draft = app.composer.field.version();
    vec![ask!(Query::Hooks, Reply::Extensions, move |app, entries| {
        let page = Page::extensions(t!("hooks-title"), t!("hooks-about"), t!("hooks-none"), &entries);
        app.open_late(draft, page)
    })]
});
