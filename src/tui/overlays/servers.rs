//! The page of servers of tools (MCP): their states, their tools and what those cost, and a switch for each.

use std::collections::BTreeSet;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{buffer::Buffer, layout::Rect, widgets::StatefulWidget};

use super::frame;
use crate::{
    protocol::{Query, Reply, ServerChange, ServerReport, ServerState, ServerTool, ServersReport},
    t,
    text::{Role, Sanitized, Span, StyledLine, visible_line, width, wrap::wrap},
    tui::{
        app::{Answer, App, Effect, Overlay, Scene, TOO_EARLY_MS, effects::ask_for},
        terminal::surface::Links,
        widgets::list::{ListCursor, ListWidget, bold_if},
    },
};

/// Lines by which the details are turned.
const TURN_LINES: usize = 5;
/// Lines of a server's log that are shown.
const LOG_LINES: usize = 3;
/// Columns between the parts of a row, and those that a name and a file have at least.
const GAP: usize = 2;
const LEAST_NAME: usize = 12;
const LEAST_FILE: usize = 12;
/// Columns of the sign that there are tools to unfold.
const FOLD: usize = 2;

/// The page.
pub struct ServersPage {
    report: ServersReport,
    cursor: ListCursor,
    /// Servers whose tools are listed.
    opened: BTreeSet<String>,
    /// When the page, or the chosen entry, was first shown, in milliseconds since the Unix epoch; `None`: it is drawn next.
    since_ms: Option<u64>,
    /// First line of the details that is shown.
    turned: usize,
    /// Their last line has been shown.
    is_read: bool,
}

/// A row: a server, or one of its tools.
#[derive(Clone, Copy)]
struct Place {
    server: usize,
    tool: Option<usize>,
}

impl ServersPage {
    pub fn new(report: ServersReport, now_ms: u64) -> Self {
        Self {
            report,
            cursor: ListCursor::new(0),
            opened: BTreeSet::new(),
            since_ms: Some(now_ms),
            turned: 0,
            is_read: false,
        }
    }

    /// Shows a newer report.
    pub fn renew(&mut self, report: ServersReport) {
        self.report = report;
        self.cursor.step(0, self.places().len());
        self.begin_reading();
    }

    /// Another entry, or a newer one, is shown from its beginning.
    fn begin_reading(&mut self) {
        self.since_ms = None;
        self.turned = 0;
        self.is_read = false;
    }

    /// Approves the chosen entry, unless it cannot have been read yet: then the next part of it is shown.
    fn approve(&mut self, now_ms: u64) -> Answer {
        let is_early = self.since_ms.is_none_or(|it| now_ms.saturating_sub(it) < TOO_EARLY_MS);
        if !self.is_read {
            self.turned = self.turned.saturating_add(TURN_LINES);
            return Answer::Taken;
        }
        let Some((server, tool)) = self.chosen().filter(|_| !is_early) else {
            return Answer::Taken;
        };
        self.change(ServerChange::Approve {
            tool: tool.map(|it| it.name.clone()),
            shown: server.print.clone(),
        })
    }

    fn places(&self) -> Vec<Place> {
        let servers = self.report.servers.iter().enumerate();
        let rows = servers.flat_map(|(server, it)| {
            let count = if self.opened.contains(&it.name) {
                it.tools.len()
            } else {
                0
            };
            let own = Place { server, tool: None };
            std::iter::once(own).chain((0..count).map(move |tool| Place {
                server,
                tool: Some(tool),
            }))
        });
        rows.collect()
    }

    fn chosen(&self) -> Option<(&ServerReport, Option<&ServerTool>)> {
        let place = *self.places().get(self.cursor.at)?;
        let server = self.report.servers.get(place.server)?;
        Some((server, place.tool.and_then(|it| server.tools.get(it))))
    }

    fn change(&self, change: ServerChange) -> Answer {
        match self.chosen() {
            Some((server, _)) => Answer::Does(ask_for(
                Query::ChangeServer {
                    server: server.name.clone(),
                    change,
                },
                changed,
            )),
            None => Answer::Taken,
        }
    }

    fn switch(&self) -> Answer {
        match self.chosen() {
            Some((_, Some(tool))) => self.change(ServerChange::SwitchTool(tool.name.clone(), !tool.is_on)),
            Some((server, None)) => self.change(ServerChange::Switch(server.state == ServerState::Off)),
            None => Answer::Taken,
        }
    }

    /// What is said about the chosen entry.
    fn details(&self, columns: usize) -> Vec<StyledLine> {
        let Some((server, tool)) = self.chosen() else {
            let none = [Span::new(Sanitized::literal(t!("servers-none")), Role::Dim)];
            return wrap(&none, columns, &[], &[]);
        };
        let mut texts: Vec<(Sanitized, Role)> = Vec::new();
        match tool {
            Some(tool) => match &tool.change {
                Some(change) => difference(change, &mut texts),
                None => texts.push((visible_line(&tool.about), Role::Text)),
            },
            None => {
                // The row above cuts it where there is little room.
                let mut about = state(server).2;
                for more in [server.title.as_str(), server.version.as_str()] {
                    if !more.is_empty() {
                        about = format!("{about} · {more}");
                    }
                }
                texts.push((visible_line(&about), Role::Dim));
                if let ServerState::Unapproved { was: Some(was) } = &server.state {
                    texts.push((Sanitized::from(format!("- {}", visible_line(was))), Role::Removed));
                }
                texts.push((visible_line(&server.line), Role::Code));
                if !server.given.is_empty() {
                    let given = visible_line(&server.given.join(", "));
                    texts.push((Sanitized::from(t!("servers-given", names = given.as_str())), Role::Dim));
                }
                if !server.reach.is_empty() {
                    texts.push((visible_line(&server.reach.join(", ")), Role::Dim));
                }
                if !server.gaps.is_empty() {
                    let gaps = visible_line(&server.gaps);
                    texts.push((Sanitized::from(t!("servers-gaps", gaps = gaps.as_str())), Role::Waiting));
                }
                if let ServerState::Failed(why) | ServerState::Unusable(why) = &server.state {
                    texts.push((visible_line(why), Role::Error));
                }
                for tool in &server.tools {
                    let Some(change) = &tool.change else { continue };
                    texts.push((visible_line(&tool.name), Role::Waiting));
                    difference(change, &mut texts);
                }
                for it in &server.prompts {
                    let line = format!("/{} {}  {}", it.command, it.arguments, it.about);
                    texts.push((visible_line(&line), Role::Text));
                }
                for it in &server.resources {
                    let line = format!("@{}  {}  {}", it.mention, it.name, it.about);
                    texts.push((visible_line(&line), Role::Text));
                }
                let first = server.log.len().saturating_sub(LOG_LINES);
                texts.extend(server.log.iter().skip(first).map(|it| (visible_line(it), Role::Faint)));
            }
        }
        let rows = texts
            .into_iter()
            .flat_map(|(text, role)| wrap(&[Span::new(text, role)], columns, &[], &[]));
        rows.collect()
    }
}

/// What a tool was and what it is.
fn difference(change: &(Option<String>, String), texts: &mut Vec<(Sanitized, Role)>) {
    if let Some(was) = &change.0 {
        texts.push((Sanitized::from(format!("- {}", visible_line(was))), Role::Removed));
    }
    texts.push((Sanitized::from(format!("+ {}", visible_line(&change.1))), Role::Added));
}

/// Shows what has become of a change.
fn changed(app: &mut App, reply: Result<Reply, String>) -> Vec<Effect> {
    match reply {
        Ok(Reply::Servers(report)) => {
            if let Some(page) = app.overlays.find::<ServersPage>(|_| true) {
                page.renew(report);
            }
            Vec::new()
        }
        Ok(_) => Vec::new(),
        Err(why) => app.toast(why),
    }
}

fn row(place: Place, report: &ServersReport, is_open: bool, is_here: bool, columns: usize) -> Vec<Span> {
    let Some(server) = report.servers.get(place.server) else {
        return Vec::new();
    };
    let tool = place.tool.and_then(|it| server.tools.get(it));
    let (sign, role, name, facts) = match tool {
        Some(tool) => {
            let (sign, role) = match (&tool.change, tool.is_on) {
                (Some(_), _) => ("  ! ", Role::Waiting),
                (None, true) => ("  ● ", Role::Done),
                (None, false) => ("  ○ ", Role::Dim),
            };
            let mut facts = t!("servers-tokens", count = tool.tokens);
            if tool.change.is_some() {
                facts = format!("{facts}  {}", t!("servers-changed"));
            }
            (sign, role, &tool.name, facts)
        }
        None => {
            let (sign, role, state) = state(server);
            let fold = if server.tools.is_empty() || is_open { "" } else { " …" };
            (sign, role, &server.name, format!("{state}{fold}"))
        }
    };
    let columns = columns.saturating_sub(width::width(sign));
    // Names stand below each other, and what follows them, too.
    let widest = match tool {
        Some(_) => server
            .tools
            .iter()
            .map(|it| width::width(&visible_line(&it.name)))
            .max(),
        None => report
            .servers
            .iter()
            .map(|it| width::width(&visible_line(&it.name)))
            .max(),
    };
    let facts = visible_line(&facts);
    // What matters of a server is seen as a whole, its name as far as there is room, the place of its file if there is any left.
    let longest = match tool {
        Some(_) => width::width(&facts),
        None => report
            .servers
            .iter()
            .map(|it| width::width(&state(it).2) + FOLD)
            .max()
            .unwrap_or_default(),
    };
    let room = columns.saturating_sub(longest + GAP);
    let room = room.clamp(LEAST_NAME.min(columns), columns);
    let name = width::cut_middle(&visible_line(name), room);
    let room = room.min(widest.unwrap_or_default());
    let padding = " ".repeat(room.saturating_sub(width::width(&name)) + GAP);
    let facts = width::cut_end(
        &format!("{padding}{facts}"),
        columns.saturating_sub(width::width(&name)),
    );
    let left = columns.saturating_sub(width::width(&name) + width::width(&facts) + GAP);
    let mut spans = vec![
        Span::new(Sanitized::literal(sign), role),
        Span::new(Sanitized::new(&name), Role::Text).modified(bold_if(is_here)),
        Span::new(Sanitized::new(&facts), Role::Text),
    ];
    if tool.is_none() && left >= LEAST_FILE {
        let file = width::cut_start(&visible_line(&server.file), left);
        spans.push(Span::new(Sanitized::from(format!("{:GAP$}{file}", "")), Role::Dim));
    }
    spans
}

/// The sign of a server's state, its role, and the state in words.
fn state(server: &ServerReport) -> (&'static str, Role, String) {
    let tokens: u64 = server.tools.iter().filter(|it| it.is_on).map(|it| it.tokens).sum();
    match &server.state {
        ServerState::Off => ("○ ", Role::Dim, t!("servers-off").to_owned()),
        ServerState::Unapproved { was: None } => ("? ", Role::Waiting, t!("servers-unapproved").to_owned()),
        ServerState::Unapproved { was: Some(_) } => ("? ", Role::Waiting, t!("servers-redefined").to_owned()),
        ServerState::Untrusted => ("? ", Role::Waiting, t!("servers-untrusted").to_owned()),
        ServerState::Unusable(_) => ("✗ ", Role::Error, t!("servers-unusable").to_owned()),
        ServerState::Starting => ("◐ ", Role::Waiting, t!("servers-starting").to_owned()),
        ServerState::Ready => (
            "● ",
            Role::Done,
            t!("servers-ready", tools = server.tools.len(), tokens = tokens),
        ),
        ServerState::SignIn => (
            "? ",
            Role::Waiting,
            t!("servers-sign-in", name = visible_line(&server.name).as_str()),
        ),
        ServerState::Failed(_) => ("✗ ", Role::Error, t!("servers-failed").to_owned()),
    }
}

impl Overlay for ServersPage {
    fn key(&mut self, event: KeyEvent, scene: &Scene<'_>) -> Answer {
        let (count, at) = (self.places().len(), self.cursor.at);
        match event.code {
            KeyCode::Esc => return Answer::Close,
            KeyCode::Char('c') if event.modifiers.contains(KeyModifiers::CONTROL) => return Answer::Close,
            // Words are words: what stands here starts programs.
            KeyCode::Char(_) if (event.modifiers - KeyModifiers::SHIFT).is_empty() => return Answer::Typed(event),
            KeyCode::Enter => {
                if let Some((server, None)) = self.chosen() {
                    let name = server.name.clone();
                    if !self.opened.remove(&name) {
                        self.opened.insert(name);
                    }
                }
            }
            KeyCode::Delete => return self.switch(),
            KeyCode::Char('y') if event.modifiers == KeyModifiers::ALT => return self.approve(scene.now_ms),
            // Drawing knows where the details end.
            KeyCode::PageDown => self.turned = self.turned.saturating_add(TURN_LINES),
            KeyCode::PageUp => self.turned = self.turned.saturating_sub(TURN_LINES),
            KeyCode::F(5) => return self.change(ServerChange::Restart),
            _ => {
                self.cursor.key(event, count);
            }
        }
        if self.cursor.at != at {
            self.begin_reading();
        }
        Answer::Taken
    }

    fn list(&self) -> Option<&ListCursor> {
        Some(&self.cursor)
    }

    fn render(&mut self, area: Rect, buf: &mut Buffer, _: &mut Links, scene: &Scene<'_>) {
        let (theme, columns) = (scene.theme, usize::from(area.width));
        let title = [Span::new(Sanitized::literal(t!("servers-title")), Role::Strong).bold()];
        let mut head = wrap(&title, columns, &[], &[]);
        for problem in self.report.problems.iter().take(3) {
            head.extend(wrap(
                &[Span::new(visible_line(problem), Role::Waiting)],
                columns,
                &[],
                &[],
            ));
        }
        let rest = frame::lines(area, buf, &head, theme);
        let details = self.details(columns);
        self.since_ms.get_or_insert(scene.now_ms);
        // The list keeps half of the room, if it needs that much.
        let rows = u16::try_from(self.places().len()).unwrap_or(u16::MAX);
        let room = rest.height - rows.min(rest.height / 2);
        let height = u16::try_from(details.len() + 1).unwrap_or(u16::MAX).min(room);
        let [list_area, below] = frame::cut(rest, rest.height - height);
        let places = self.places();
        let (report, opened) = (&self.report, &self.opened);
        let list = ListWidget {
            count: places.len(),
            sign: "› ",
            is_active: true,
            line: |at, is_here, columns| {
                let Some(place) = places.get(at) else { return Vec::new() };
                let is_open = report
                    .servers
                    .get(place.server)
                    .is_some_and(|it| opened.contains(&it.name));
                row(*place, report, is_open, is_here, columns)
            },
            theme,
        };
        list.render(list_area, buf, &mut self.cursor);
        let [line, below] = frame::cut(below, 1);
        let room = usize::from(below.height);
        self.turned = self.turned.min(details.len().saturating_sub(room));
        let left = details.len().saturating_sub(self.turned + room);
        self.is_read |= left == 0;
        if left > 0 {
            let more = Sanitized::from(t!("servers-more", count = left));
            frame::lines(
                line,
                buf,
                &wrap(&[Span::new(more, Role::Waiting)], columns, &[], &[]),
                theme,
            );
        }
        frame::lines(below, buf, details.get(self.turned..).unwrap_or_default(), theme);
    }

    fn hints(&self) -> Vec<(&'static str, &'static str)> {
        let mut hints = vec![("enter", t!("footer-tools")), ("delete", t!("footer-switch"))];
        let is_asking = self.chosen().is_some_and(|(server, tool)| {
            matches!(server.state, ServerState::Unapproved { .. })
                || tool.map_or_else(
                    || server.tools.iter().any(|it| it.change.is_some()),
                    |it| it.change.is_some(),
                )
        });
        if is_asking {
            hints.insert(0, ("alt+y", t!("footer-approve")));
        }
        hints.extend([("f5", t!("footer-restart")), ("esc", t!("footer-close"))]);
        hints
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transcript::Transcript;

    fn report() -> ServersReport {
        let tool = |name: &str, is_on, change| ServerTool {
            name: name.to_owned(),
            about: format!("does {name}\u{202e}\u{1b}[2J"),
            tokens: 120,
            is_on,
            change,
        };
        let server = |name: &str, state, tools| ServerReport {
            name: name.to_owned(),
            file: ".mcp.json".to_owned(),
            line: format!("uvx {name}\u{1b}[2J"),
            given: vec!["TOKEN".to_owned()],
            gaps: "no namespaces".to_owned(),
            state,
            tools,
            log: vec!["started".to_owned()],
            print: "as shown".to_owned(),
            ..ServerReport::default()
        };
        let tools = vec![
            tool("status", true, None),
            tool("push", false, None),
            tool(
                "log",
                true,
                Some((Some("shows the log".to_owned()), "does log".to_owned())),
            ),
        ];
        ServersReport {
            servers: vec![
                server("git", ServerState::Ready, tools),
                server(
                    "new",
                    ServerState::Unapproved {
                        was: Some("uvx old".to_owned()),
                    },
                    Vec::new(),
                ),
                server("time", ServerState::Failed("it has ended".to_owned()), Vec::new()),
            ],
            problems: vec!["server `git`: that of .cursor/mcp.json is used".to_owned()],
        }
    }

    fn alt_y() -> KeyEvent {
        KeyEvent::new(KeyCode::Char('y'), KeyModifiers::ALT)
    }

    fn press(page: &mut ServersPage, key: impl Into<KeyEvent>, now_ms: u64) -> Answer {
        let key = key.into();
        Scene::test(&Transcript::default(), |scene| {
            let scene = Scene {
                now_ms,
                ..Scene { ..*scene }
            };
            page.key(key, &scene)
        })
    }

    fn asked(answer: Answer) -> Option<(String, ServerChange)> {
        let Answer::Does(Effect::Ask(ask)) = answer else {
            return None;
        };
        match ask.query {
            Query::ChangeServer { server, change } => Some((server, change)),
            _ => None,
        }
    }

    #[test]
    fn the_page_shows_states_costs_and_what_would_run() {
        for (columns, height) in [(90, 24), (40, 20), (20, 8)] {
            let mut page = ServersPage::new(report(), 0);
            let lines = Scene::drawn(&mut page, &Transcript::default(), columns, height).join("\n");
            assert!(!lines.contains(['\u{1b}', '\u{202e}']), "{lines}");
            assert!(lines.contains("› ● git"), "{lines}");
            if columns == 90 {
                for wanted in [
                    "3 tools",
                    "240 tokens",
                    "uvx git",
                    "TOKEN",
                    "no namespaces",
                    "started",
                    "? new",
                    "✗ time",
                ] {
                    assert!(lines.contains(wanted), "{wanted}\n{lines}");
                }
            }
        }
        let mut page = ServersPage::new(report(), 0);
        press(&mut page, KeyCode::Enter, 0);
        for _ in 0..3 {
            press(&mut page, KeyCode::Down, 0);
        }
        let lines = Scene::drawn(&mut page, &Transcript::default(), 90, 24).join("\n");
        for wanted in ["  ● status", "  ○ push", "›   ! log", "- shows the log", "+ does log"] {
            assert!(lines.contains(wanted), "{wanted}\n{lines}");
        }
    }

    #[test]
    fn name_state_and_cost_are_seen_however_long_names_and_files_are() {
        let mut report = report();
        report.servers[0].file =
            "~/projects/a-very-long-name-of-a-folder/and-another-one/below/it/.cursor/mcp.json".to_owned();
        report.servers[1].name = "a-server-with-a-very-long-name-indeed".to_owned();
        for columns in [60, 80, 110] {
            let mut page = ServersPage::new(report.clone(), 0);
            let lines = Scene::drawn(&mut page, &Transcript::default(), columns, 24);
            let row = |name: &str| {
                lines
                    .iter()
                    .find(|it| it.contains(name))
                    .expect(name)
                    .trim_end()
                    .to_owned()
            };
            assert!(
                row("● git").contains("ready, 3 tools, 240 tokens …"),
                "{columns}: {lines:#?}"
            );
            let new = row("? a-server");
            assert!(new.contains("changed since you approved it"), "{columns}: {lines:#?}");
            assert!(
                columns < 80 || new.contains("? a-server-with-a-very-long-name-indeed"),
                "{new}"
            );
            assert!(
                columns < 110 || row("● git").ends_with(".cursor/mcp.json"),
                "{lines:#?}"
            );
        }
    }

    #[test]
    fn keys_switch_approve_and_restart() {
        let mut page = ServersPage::new(report(), 0);
        let git = || "git".to_owned();
        assert_eq!(
            asked(press(&mut page, KeyCode::Delete, 0)),
            Some((git(), ServerChange::Switch(false)))
        );
        assert_eq!(
            asked(press(&mut page, KeyCode::F(5), 0)),
            Some((git(), ServerChange::Restart))
        );
        press(&mut page, KeyCode::Enter, 0);
        press(&mut page, KeyCode::Down, 0);
        press(&mut page, KeyCode::Down, 0);
        let push = ServerChange::SwitchTool("push".to_owned(), true);
        assert_eq!(asked(press(&mut page, KeyCode::Delete, 0)), Some((git(), push)));
        // Nothing is approved before it could be read.
        press(&mut page, KeyCode::End, 0);
        press(&mut page, KeyCode::Up, 0);
        assert_eq!(asked(press(&mut page, alt_y(), 100)), None);
        assert_eq!(asked(press(&mut page, alt_y(), 1000)), None, "it was not drawn yet");
        let drawn = |page: &mut ServersPage, height| {
            Scene::drawn(page, &Transcript::default(), 90, height).join("\n");
        };
        drawn(&mut page, 24);
        let approve = |tool: Option<&str>| ServerChange::Approve {
            tool: tool.map(str::to_owned),
            shown: "as shown".to_owned(),
        };
        let new = Some(("new".to_owned(), approve(None)));
        assert_eq!(asked(press(&mut page, alt_y(), 9000)), new);
        // Nor before its end was on the screen: one tool by itself, in a page that is too low.
        press(&mut page, KeyCode::Up, 9000);
        page.report.servers[0].tools[2].change = Some((Some("word ".repeat(400)), "word ".repeat(400)));
        drawn(&mut page, 24);
        let mut presses = 0;
        while asked(press(&mut page, alt_y(), 20_000)) != Some((git(), approve(Some("log")))) {
            drawn(&mut page, 24);
            presses += 1;
            assert!(presses < 20, "it is never read");
        }
        assert!(presses > 1, "{presses}");
    }
}
