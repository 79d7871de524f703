//! A frame: `measure` lays out what will be seen, `draw` renders the panes into the surface from the top to the bottom.
//!
//! Each pane is a widget with a version or, where lines move, a key for each line: both are made from what the widget
//! draws, and the surface renders only what has changed.

use ratatui::{
    buffer::Buffer,
    layout::{Position, Rect},
    widgets::StatefulWidget,
};

use super::{
    app::{
        App, ApprovalLayout, DraftList, Focus, Overlay, Placement, Scene, SeenApproval, keymap::KeyContext,
        search::Search, selection::Selection,
    },
    areas::{Areas, DRAFT, Demand, MARGIN, PAGE_INDENT, outline_columns},
    bars::{header, hints::hints, placeholder::placeholder, rule, trust},
    overlays::Picker,
    terminal::{
        Surface,
        surface::{Links, mix},
    },
    widgets::{
        MEASURE, TYPING,
        bar::{Bar, BarWidget, Bars},
        composer::{self, ComposerWidget},
        first_row, footer,
        list::ListCursor,
        question_rows,
        queue::QueueWidget,
        row_key,
        styled_line::{LinesWidget, put_spans},
        transcript::{Following, Item, Light, Lit, Pane, TranscriptContext, TranscriptWidget, VisibleLine},
    },
};
use crate::{
    t,
    text::{Background, Modifier, Role, Sanitized, Span, StyledLine, width, wrap::wrap},
    transcript::{DocumentIndex, is_approval},
};

/// Columns and lines below which the screen says only that it is too small.
const LEAST: (u16, u16) = (20, 5);

fn bars(app: &App) -> Bars {
    let columns = app.viewport.areas.columns;
    let margin = MARGIN as u16;
    // On a wide screen what stands at the right is where the facts of the documents are, not at its edge.
    let edge = columns.min(app.viewport.areas.gutter + MEASURE + MARGIN);
    let beyond = margin + (columns - edge) as u16;
    let (conversation, composer) = (&app.conversation, &app.composer);
    let status = app.status.line();
    let settings = &app.preferences.settings;
    let (place, state) = header::spans(conversation, composer, settings, status, edge.saturating_sub(2));
    let above_draft = rule::spans(
        composer,
        (&app.viewport, app.unread()),
        conversation,
        app.now_ms,
        (edge, columns),
    );
    let areas = &app.viewport.areas;
    let is_room_above = !areas.above_footer.is_empty() && !areas.footer.is_empty();
    let footer = footer::spans(
        hints(app),
        app.toast.as_deref(),
        is_room_above,
        if app.toast.is_some() { edge } else { columns }.saturating_sub(3),
    );
    let asked = conversation.transcript.trust.as_ref();
    // Tab may lead to something else that waits; on a page neither the key nor the command opens another.
    let way = if conversation.waits_for_trust() {
        "tab"
    } else {
        "/trust"
    };
    let way = app.overlays.is_empty().then_some(way);
    let (asked, review) = asked.map_or_else(Default::default, |it| trust::spans(it, way, edge.saturating_sub(3)));
    let reading = if conversation.backfill.holds_keys() {
        t!("transcript-reading-back-esc")
    } else {
        t!("transcript-reading-back")
    };
    let reading = Span::new(Sanitized::literal(reading), Role::Dim);
    Bars {
        earlier: Bar::new(vec![reading], Vec::new(), (areas.gutter as u16, margin)),
        header: Bar::new(place, state, (1, beyond)),
        status: app.status.more().iter().map(|it| status_line(it, columns)).collect(),
        trust: Bar::new(asked, review, (2, beyond)),
        rule: Bar::new(above_draft, Vec::new(), (0, 0)),
        above_footer: Bar::new(footer.above, Vec::new(), (2, margin)),
        footer: Bar::new(
            footer.left,
            footer.right,
            (2, if app.toast.is_some() { beyond } else { margin }),
        ),
    }
}

/// A line of the status command.
fn status_line(spans: &[Span], columns: usize) -> Bar {
    let spans: Vec<Span> = spans.iter().cloned().map(header::quiet).collect();
    let left = width::cut_spans(&spans, columns.saturating_sub(2));
    Bar::new(left, Vec::new(), (1, MARGIN as u16))
}

/// Cells that were rendered before the frame, and their links.
struct Rendered {
    buffer: Buffer,
    links: Links,
}

impl Rendered {
    fn new(area: Rect, render: impl FnOnce(&mut Buffer, &mut Links)) -> Self {
        let (mut buffer, mut links) = (Buffer::empty(area), Links::new());
        render(&mut buffer, &mut links);
        Self { buffer, links }
    }
}

impl App {
    pub(super) fn lay_out(&mut self) {
        let size @ (columns, height) = self.terminal.size;
        let is_inline = self.terminal.inline.as_ref().is_some_and(|it| !it.is_away);
        let most_rows = if is_inline {
            (height / 2).max(1)
        } else {
            composer::MOST_ROWS.max(height / 3).min(height / 2).max(1)
        };
        let is_beside = self.overlays.last().map(|it| it.placement()) == Some(Placement::Beside);
        // Text in the terminal's own lines keeps all of the width.
        let beside = match outline_columns(columns) {
            wide if wide < columns && is_beside && self.terminal.inline.is_none() => usize::from(wide),
            _ => 0,
        };
        self.viewport.areas.solve(Demand {
            size,
            draft_rows: self.composer.field.rows(columns.saturating_sub(4)).min(most_rows),
            queued: self.composer.said.len() + self.composer.queue.len(),
            is_asked: self.conversation.transcript.trust.is_some(),
            is_reading_back: self.conversation.backfill.is_reading(),
            status_rows: self.status.more().len(),
            beside,
            is_inline,
        });
    }

    /// Returns true if signs of a Nerd Font are wanted.
    pub fn has_nerd_font(&self) -> bool {
        self.preferences.settings.ui.glyphs == "nerd"
    }

    /// Everything that the looks of documents depend on.
    fn context(&self) -> TranscriptContext<'_> {
        let workspace = &self.conversation.workspace;
        let has_links = self.preferences.settings.links;
        TranscriptContext {
            transcript: &self.conversation.transcript,
            forms: &self.questions.forms,
            cited: &self.questions.cited,
            colours: self.appearance.colours.as_ref(),
            colours_version: self.appearance.colours_version,
            now_ms: self.now_ms,
            width: self.viewport.areas.content(),
            show_thinking: self.appearance.show_thinking,
            has_focus: self.viewport.focus == Focus::Transcript,
            context_lines: self.appearance.context_lines,
            output_rows: self.appearance.output_rows,
            root: has_links.then(|| workspace.folder.to_str()).flatten(),
            images: &self.terminal.images,
            has_nerd_font: self.has_nerd_font(),
            theme: &self.appearance.theme,
            is_preview: false,
            builds_plans: self.conversation.plan_to_build().is_some(),
            review_key: self
                .preferences
                .keymap
                .keys(KeyContext::Everywhere, "review")
                .first()
                .map(ToString::to_string),
        }
    }

    /// Calls `f` with the pane and everything that looks depend on.
    pub fn with_pane<R>(&mut self, f: impl FnOnce(&mut Pane, &TranscriptContext<'_>) -> R) -> R {
        let mut pane = std::mem::take(&mut self.viewport.pane);
        let result = f(&mut pane, &self.context());
        self.viewport.pane = pane;
        result
    }

    /// Lays out what will be seen.
    pub fn measure(&mut self) {
        self.lay_out();
        let rows = usize::from(self.viewport.areas.transcript.height);
        // One blank line keeps the newest words off the rule.
        let height = match &self.terminal.inline {
            Some(inline) if !inline.is_away => inline.live.min(rows),
            Some(_) | None if self.terminal.size.1 >= 16 => rows.saturating_sub(1),
            Some(_) | None => rows,
        };
        let before = (self.viewport.pane.unseen, self.viewport.pane.follow);
        self.with_pane(|pane, context| pane.measure(context, height));
        self.show_approval(height);
        self.show_question(height);
        self.send_images();
        if before != (self.viewport.pane.unseen, self.viewport.pane.follow) {
            self.viewport.bars = None;
        }
        let viewport = &mut self.viewport;
        viewport.lights.clear();
        if let Some(search) = &viewport.search {
            light_found(search, &viewport.pane, &mut viewport.lights);
        }
        if let Some(selection) = viewport.selection.filter(|it| !it.is_empty()) {
            light_marked(&selection, &viewport.pane, &mut viewport.lights);
        }
    }

    /// Shows a new approval from its first row, whatever its height, and notes which rows of all that wait have been on the screen.
    fn show_approval(&mut self, height: usize) {
        let transcript = &self.conversation.transcript;
        let Some((at, exchange)) = transcript.exchanges.iter().enumerate().next_back() else {
            self.questions.seen.clear();
            return;
        };
        let oldest = transcript.open_question();
        let waiting = exchange.response.unanswered().filter_map(|document| {
            let place = DocumentIndex { exchange: at, document };
            let document = transcript.get(place).filter(|it| is_approval(it))?;
            let name = (exchange.turn, document.id.clone());
            transcript
                .is_open_question(at, document)
                .then_some((place, name, document.version))
        });
        let mut waiting: Vec<_> = waiting.collect();
        // The view moves to the oldest one before the others are looked at.
        waiting.sort_by_key(|it| (Some(it.0) != oldest, it.0.document));
        let told = |it: &Self| it.unread().map(|it| (it.left, it.is_above));
        let before = told(self);
        self.questions
            .seen
            .retain(|name, _| waiting.iter().any(|it| it.1 == *name));
        for (place, name, version) in waiting {
            let mut seen = self.questions.seen.remove(&name).unwrap_or_default();
            self.note_seen(&mut seen, (place, version), Some(place) == oldest, height);
            self.questions.seen.insert(name, seen);
        }
        if told(self) != before {
            self.viewport.bars = None;
        }
    }

    /// What was seen of the approval that has the keys, else of the oldest one. `None`: none waits.
    fn unread(&self) -> Option<&SeenApproval> {
        let transcript = &self.conversation.transcript;
        let is_approval = |it: &DocumentIndex| transcript.get(*it).is_some_and(is_approval);
        let place = self.viewport.question(transcript).filter(is_approval);
        let place = place.or_else(|| transcript.open_question().filter(is_approval))?;
        let name = (self.conversation.turn_of(place), transcript.get(place)?.id.clone());
        self.questions.seen.get(&name)
    }

    /// Brings the current question of a form into view, with the marked choice, whenever the form has changed: nobody is to
    /// answer what they cannot read. Who scrolls away afterwards stays there.
    fn show_question(&mut self, height: usize) {
        let transcript = &self.conversation.transcript;
        let place = self
            .viewport
            .question(transcript)
            .filter(|_| self.terminal.inline.is_none());
        let document = place.and_then(|it| transcript.get(it)).filter(|it| !is_approval(it));
        let Some((place, document)) = place.zip(document) else {
            self.questions.in_view = None;
            return;
        };
        let name = (self.conversation.turn_of(place), document.id.clone());
        let version = self.questions.forms.get(&name).map_or(0, |it| it.version);
        let state = Some((name.1, version, height));
        let item = Item::Document(place);
        let rows = self.viewport.pane.state(item).and_then(|it| question_rows(&it.rows));
        let Some(rows) = rows.filter(|_| self.questions.in_view != state) else {
            return;
        };
        self.questions.in_view = state;
        let from = first_row(&rows, height);
        let is_shown = |(first, last): (usize, usize)| first <= from && *rows.end() <= last;
        if !self.viewport.pane.rows_in_view(item).is_some_and(is_shown) {
            self.with_pane(|pane, context| {
                pane.show_from(item, from, context);
                pane.measure(context, height);
            });
        }
    }

    fn note_seen(
        &mut self,
        seen: &mut SeenApproval,
        (place, version): (DocumentIndex, u64),
        is_oldest: bool,
        height: usize,
    ) {
        let item = Item::Document(place);
        let is_inline = self.terminal.inline.is_some();
        let pane = &self.viewport.pane;
        let is_hidden = !seen.has_begun && !is_inline && pane.rows_in_view(item).is_none_or(|it| it.0 > 0);
        if is_oldest && is_hidden && pane.follow == Following::End {
            self.with_pane(|pane, context| {
                pane.show_start(item, context);
                pane.measure(context, height);
            });
        }
        let pane = &self.viewport.pane;
        let all = pane.rows(item);
        let layout = ApprovalLayout {
            version,
            width: self.viewport.areas.content(),
            context_lines: self.appearance.context_lines,
        };
        // Inline all of it is in the terminal's own lines.
        let view = if is_inline {
            all.checked_sub(1).map(|last| (0, last))
        } else {
            pane.rows_in_view(item)
        };
        seen.note(layout, all, view);
    }

    /// Draws the measured state; the bytes for the terminal are added to `out`.
    pub fn draw(&mut self, surface: &mut Surface, out: &mut Vec<u8>) {
        let Rect { width, height, .. } = surface.area();
        let least = match self.terminal.inline {
            Some(_) => LEAST.1.min(3),
            None => LEAST.1,
        };
        if width < LEAST.0 || height < least {
            self.draw_too_small(surface, out);
            return;
        }
        let plain = self
            .appearance
            .theme
            .style(Role::Text, Modifier::NONE, Background::Plain);
        let draft_rows = self.viewport.areas.composer.height;
        let drawn = self.composer.field.draw(width.saturating_sub(4), draft_rows, plain);
        let bars = self.viewport.bars.take().unwrap_or_else(|| bars(self));
        let question = self
            .viewport
            .question(&self.conversation.transcript)
            .map(Item::Document);
        let (page, popup) = (self.page(), self.popup());
        let welcome = self.viewport.pane.items.is_empty().then(|| self.welcome());
        let placeholder = placeholder(self);
        let mut pane = std::mem::take(&mut self.viewport.pane);
        let areas = &self.viewport.areas;
        let theme = &self.appearance.theme;
        let context = self.context();
        let mut frame = surface.frame(self.appearance.look_version, self.terminal.images.strips());
        if let Some(popup) = popup {
            frame.overlay(popup.buffer, popup.links);
        }
        let is_header_first = areas.header.y < areas.transcript.y;
        let header = BarWidget {
            bar: &bars.header,
            theme,
        };
        if is_header_first {
            frame.pane(areas.header, header.bar.version, |buf, links| {
                header.render(areas.header, buf, links);
            });
        }
        for (row, bar) in areas.status().rows().zip(&bars.status) {
            frame.pane(row, bar.version, |buf, links| {
                BarWidget { bar, theme }.render(row, buf, links);
            });
        }
        let earlier = BarWidget {
            bar: &bars.earlier,
            theme,
        };
        frame.pane(areas.earlier(), earlier.bar.version, |buf, links| {
            earlier.render(areas.earlier(), buf, links);
        });
        if let Some(page) = page {
            frame.lines(&page.buffer, &page.links);
        } else if let Some(lines) = welcome {
            let (x, right) = (areas.gutter as u16, (MARGIN + areas.beside) as u16);
            let place = |row: Rect| Rect {
                x,
                width: row.width.saturating_sub(x + right),
                ..row
            };
            let inside = u64::from(x) << 16 | u64::from(right);
            let keys: Vec<u64> = lines.iter().map(|it| mix(row_key::of_row(it), inside)).collect();
            frame.rows(areas.transcript, &keys, |at, row, buf, links| {
                let lines = lines.get(at..=at).unwrap_or_default();
                LinesWidget { lines, theme }.render(place(row), buf, links);
            });
        } else {
            let widget = TranscriptWidget {
                context: &context,
                lights: &self.viewport.lights,
                gutter: areas.gutter,
                beside: areas.beside,
                show_times: self.appearance.show_times && areas.columns >= 60,
                offset: 0,
            };
            frame.rows(areas.transcript, &widget.keys(&pane), |at, row, buf, links| {
                let widget = TranscriptWidget { offset: at, ..widget };
                widget.render(row, buf, &mut pane);
                links.append(&mut pane.take_links());
            });
        }
        let queue = QueueWidget {
            said: &self.composer.said,
            queue: &self.composer.queue,
            indent: areas.gutter.saturating_sub(5),
            theme,
        };
        frame.pane(areas.queue, queue.version(areas.queue.height), |buf, links| {
            queue.render(areas.queue, buf, links);
        });
        for (area, bar) in [(areas.trust, &bars.trust), (areas.rule, &bars.rule)] {
            frame.pane(area, bar.version, |buf, links| {
                BarWidget { bar, theme }.render(area, buf, links);
            });
        }
        let version = mix(self.composer.field.version(), self.composer.mode as u64);
        let version = mix(version, placeholder.as_ptr().addr() as u64);
        let answer = question.and_then(|it| self.caret_of_answer(&pane, it));
        let caret = self.caret(answer, drawn.caret);
        let draft = ComposerWidget {
            drawn: (!self.composer.field.is_empty()).then_some(&drawn),
            mode: self.composer.mode,
            placeholder,
            theme,
        };
        frame.pane(areas.composer, version, |buf, links| {
            draft.render(areas.composer, buf, links);
        });
        for (area, bar) in [(areas.above_footer, &bars.above_footer), (areas.footer, &bars.footer)] {
            frame.pane(area, bar.version, |buf, links| {
                BarWidget { bar, theme }.render(area, buf, links);
            });
        }
        if !is_header_first {
            let header = BarWidget {
                bar: &bars.header,
                theme,
            };
            frame.pane(areas.header, header.bar.version, |buf, links| {
                header.render(areas.header, buf, links);
            });
        }
        frame.finish(caret, out);
        self.viewport.pane = pane;
        self.viewport.bars = Some(bars);
    }

    fn draw_too_small(&self, surface: &mut Surface, out: &mut Vec<u8>) {
        let area = Rect {
            height: 1,
            ..surface.area()
        };
        let mut frame = surface.frame(self.appearance.look_version, None);
        frame.pane(area, 0, |buf, links| {
            let span = [Span::new(Sanitized::literal(t!("view-too-small")), Role::Text)];
            put_spans(buf, area, &span, Background::Plain, &self.appearance.theme, links);
        });
        frame.finish(None, out);
    }

    /// The page instead of the transcript: the uppermost overlay that is one.
    fn page(&mut self) -> Option<Rendered> {
        let areas = &self.viewport.areas;
        let scene = Scene::of(&self.conversation, &self.questions, &self.appearance, self.now_ms);
        let is_page = |it: &&mut Box<dyn Overlay>| it.placement() == Placement::Page;
        let page = self.overlays.iter_mut().rev().find(is_page)?;
        let area = area_of(page.as_ref(), areas);
        let render = |buf: &mut Buffer, links: &mut Links| page.render(area, buf, links, &scene);
        Some(Rendered::new(areas.transcript, render))
    }

    /// The list over the panes: the uppermost overlay that is one, else the offers for the draft.
    fn popup(&mut self) -> Option<Rendered> {
        let areas = &self.viewport.areas;
        let scene = Scene::of(&self.conversation, &self.questions, &self.appearance, self.now_ms);
        // A page over a list hides it.
        let is_popup = |it: &&mut Box<dyn Overlay>| it.placement() != Placement::Page;
        if let Some(overlay) = self.overlays.iter_mut().next_back().filter(is_popup) {
            let area = area_of(overlay.as_ref(), areas);
            let render = |buf: &mut Buffer, links: &mut Links| overlay.render(area, buf, links, &scene);
            return Some(Rendered::new(covered(area, areas), render));
        }
        if !self.overlays.is_empty() {
            return None;
        }
        let files;
        let (list, columns) = match self.composer.mention.as_ref().filter(|it| it.is_shown()) {
            Some(mention) => {
                let title = if mention.is_documents {
                    t!("mention-documents")
                } else if mention.offers.iter().any(|it| !it.about.is_empty()) {
                    t!("mention-files-and-code")
                } else {
                    t!("mention-files")
                };
                files = Picker::files(title, &mention.offers, mention.at);
                (&files as &dyn DraftList, 76)
            }
            None => (self.composer.commands.shown()?, 90),
        };
        let area = areas.popup(columns, list.lines());
        let mut offers = ListCursor::default();
        let rendered = Rendered::new(covered(area, areas), |buf, _| {
            offers = list.draw(area, buf, scene.theme);
        });
        self.viewport.offers = offers;
        Some(rendered)
    }

    /// The content of the top overlay as lines, and how to go on.
    pub fn spoken_overlay(&mut self) -> Option<(Vec<String>, Option<&'static str>)> {
        let scene = Scene::of(&self.conversation, &self.questions, &self.appearance, self.now_ms);
        let overlay = self.overlays.last_mut()?;
        let area = area_of(overlay.as_ref(), &self.viewport.areas);
        let drawn = Rendered::new(area, |buf, links| overlay.render(area, buf, links, &scene));
        Some(overlay.spoken(&drawn.buffer))
    }

    /// Column and line of the caret; `None` where nothing is typed. `answer` is the caret inside a question,
    /// `draft` that inside the draft.
    fn caret(&self, answer: Option<(u16, u16)>, draft: (u16, u16)) -> Option<(u16, u16)> {
        let areas = &self.viewport.areas;
        // The terminal's own caret stands wherever something is typed: input methods draw there.
        if let Some(overlay) = self.overlays.last() {
            let Position { x, y } = overlay.caret(area_of(overlay.as_ref(), areas))?;
            return Some((x, y));
        }
        if self.viewport.focus != Focus::Composer {
            return answer;
        }
        Some((draft.0 + DRAFT as u16, draft.1 + areas.composer.y))
    }

    /// Returns the caret of an answer that is being typed into a question.
    fn caret_of_answer(&self, pane: &Pane, question: Item) -> Option<(u16, u16)> {
        let areas = &self.viewport.areas;
        (areas.transcript.y..).zip(&pane.lines).find_map(|(y, shown)| {
            let (row, _) = pane.row(shown).filter(|_| shown.item() == Some(question))?;
            let before = row.spans.iter().position(|it| it.text.as_str() == TYPING)?;
            let column = width::spans_width(row.spans.get(..before)?);
            Some(((areas.gutter + column) as u16, y))
        })
    }

    /// The lines of an empty conversation, or of a filter that shows nothing of it.
    fn welcome(&self) -> Vec<StyledLine> {
        let (areas, pane) = (&self.viewport.areas, &self.viewport.pane);
        let columns = areas.columns.saturating_sub(areas.gutter + MARGIN);
        if !pane.filter.is_empty() && !self.conversation.transcript.exchanges.is_empty() {
            let text = t!("filter-nothing", filter = pane.filter.words());
            let text = [Span::new(Sanitized::line(&text), Role::Dim)];
            return std::iter::once(StyledLine::blank())
                .chain(wrap(&text, columns, &[], &[]))
                .collect();
        }
        if self.conversation.transcript.is_running() {
            return Vec::new();
        }
        let text = |text: &str, role| Span::new(Sanitized::line(text), role);
        let about = &self.conversation.about;
        let who = match self.composer.model_name(about) {
            Some(model) if about.peer.is_empty() => model.to_owned(),
            Some(model) => format!("{model}  {}", about.peer),
            None => self.conversation.peer(),
        };
        let mut rows = vec![
            StyledLine::blank(),
            StyledLine::of([
                text("sheaf ", Role::Strong).bold(),
                text(env!("CARGO_PKG_VERSION"), Role::Faint),
            ]),
        ];
        if !who.is_empty() {
            rows.push(StyledLine::of([text(&who, Role::Dim)]));
        }
        if !about.also.is_empty() {
            let names = about.also.join(", ");
            let also = t!("welcome-other-keys", names = names.as_str());
            rows.extend(wrap(&[text(&also, Role::Dim)], columns, &[], &[]));
        }
        for problem in &self.preferences.problems {
            rows.push(StyledLine::blank());
            for part in problem.lines() {
                // What names a file, a line and the right name is of no use when half of it is cut.
                let words = part.trim_start_matches(' ');
                let indent = [Span::new(
                    Sanitized::new(&" ".repeat(part.len() - words.len())),
                    Role::Waiting,
                )];
                rows.extend(wrap(&[text(words, Role::Waiting)], columns, &indent, &indent));
            }
        }
        rows
    }
}

/// Lights the cells in view that the search found.
fn light_found(search: &Search, pane: &Pane, lights: &mut Vec<Light>) {
    let mut shown = pane.lines.iter().enumerate().peekable();
    while let Some((line, it)) = shown.next() {
        let VisibleLine::StyledLine { item, row } = *it else {
            continue;
        };
        let mut last = row;
        while let Some((_, VisibleLine::StyledLine { row, .. })) =
            shown.next_if(|(_, it)| matches!(it, VisibleLine::StyledLine { item: of, .. } if *of == item))
        {
            last = *row;
        }
        let Some(state) = pane.state(item) else {
            continue;
        };
        // What is broken over the edge of the view is read as a whole.
        let mut first = row;
        while first > 0 && state.rows.get(first).is_some_and(|it| it.continues) {
            first -= 1;
        }
        let mut end = last + 1;
        while state.rows.get(end).is_some_and(|it| it.continues) {
            end += 1;
        }
        let rows = state.rows.get(first..end).unwrap_or_default();
        let found = search.needle.occurrences(rows);
        // Counting those above is only needed in the item where the reader is.
        let here = search.at.filter(|it| it.0 == item).map(|(_, n)| {
            let above = state.rows.get(..first).unwrap_or_default();
            n.wrapping_sub(search.needle.occurrences(above).len())
        });
        for (n, occurrence) in found.into_iter().enumerate() {
            let kind = if here == Some(n) { Lit::Here } else { Lit::Found };
            for (at, columns) in occurrence {
                let at = first + at;
                if (row..=last).contains(&at) {
                    let line = line + (at - row);
                    lights.push(Light { line, columns, kind });
                }
            }
        }
    }
}

/// Lights the cells in view that the mouse has marked.
fn light_marked(selection: &Selection, pane: &Pane, lights: &mut Vec<Light>) {
    let Some(marked) = selection.marked(pane) else { return };
    for (line, it) in pane.lines.iter().enumerate() {
        if let VisibleLine::StyledLine { item, row } = it
            && let Some(columns) = marked.columns(pane, *item, *row)
        {
            let kind = Lit::Marked;
            lights.push(Light { line, columns, kind });
        }
    }
}

/// The area of an overlay.
fn area_of(overlay: &dyn Overlay, areas: &Areas) -> Rect {
    match overlay.placement() {
        Placement::Page => {
            let page = areas.page();
            Rect {
                width: page.width.min(overlay.most_columns()),
                ..page
            }
        }
        Placement::Popup { columns, lines } => areas.popup(columns, lines),
        Placement::Beside => areas.outline(),
    }
}

/// The cells that a popup covers: all columns where only a few letters of the lines below would be left.
fn covered(area: Rect, areas: &Areas) -> Rect {
    let screen = areas.columns as u16;
    let is_nearly_whole = area.x <= PAGE_INDENT && screen.saturating_sub(area.right()) <= PAGE_INDENT;
    if is_nearly_whole {
        Rect {
            x: 0,
            width: screen,
            ..area
        }
    } else {
        area
    }
}
