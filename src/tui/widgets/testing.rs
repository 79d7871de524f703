//! Documents and pictures of them for the tests of looks.

use ratatui::{
    buffer::{Buffer, Cell},
    layout::Rect,
    widgets::StatefulWidget,
};
use serde_json::{Map, Value};

use super::{Cited, DocumentState, Fold, RenderContext};
use crate::{
    protocol::{Document, DocumentStart, Event, Kind, Response, Turn},
    text::{Modifier, NoColours, Span, StyledLine, diff::ContextLines, width::spans_width},
    transcript::Todos,
    tui::terminal::surface::Links,
};

/// 12 s after a document of [`open`] began.
pub const NOW: u64 = 1_012_345;
pub const BEGAN: u64 = 1_000_000;

pub fn look(width: usize) -> RenderContext<'static> {
    static NO_TODOS: std::sync::LazyLock<Todos> = std::sync::LazyLock::new(Todos::default);
    RenderContext {
        width,
        fold: Fold::Usual,
        selected: false,
        elsewhere: false,
        read_only: false,
        joined: false,
        context: ContextLines::default(),
        output_rows: 8,
        approval: None,
        newest: true,
        superseded: false,
        waits: false,
        turn: Turn(7),
        colours: &NoColours,
        colours_version: 0,
        todos: &NO_TODOS,
        now_ms: NOW,
        progress: None,
        form: None,
        todo: None,
        cited: Cited::Unread,
        root: None,
        theme: None,
        times: None,
    }
}

pub fn members(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => panic!("metadata is an object, not {other}"),
    }
}

/// A response with one document that is still open.
pub fn opened(kind: &str, content: Option<&str>, metadata: Value) -> Response {
    let mut response = Response::default();
    let start = DocumentStart {
        id: "doc_001".into(),
        kind: Kind::parse(kind),
        sequence: Some(1),
        content: content.map(Into::into),
        metadata: crate::protocol::document::normalise(&Kind::parse(kind), members(metadata)),
    };
    response.apply(&Event::DocumentStart(start), BEGAN);
    response
}

pub fn open(kind: &str, content: Option<&str>, metadata: Value) -> Document {
    opened(kind, content, metadata).documents.remove(0)
}

pub fn closed(kind: &str, content: Option<&str>, metadata: Value) -> Document {
    let mut response = opened(kind, content, metadata);
    let end = Event::DocumentEnd {
        document: "doc_001".into(),
        final_content: None,
        metadata: Map::new(),
    };
    response.apply(&end, NOW);
    response.documents.remove(0)
}

/// Returns `count` numbered lines.
pub fn numbered(prefix: &str, count: usize) -> String {
    let lines: Vec<String> = (1..=count).map(|it| format!("{prefix}{it}\n")).collect();
    lines.concat()
}

/// A document as it looks: glyph, content, facts at the right edge.
pub fn picture(document: &Document, look: &RenderContext<'_>) -> String {
    let mut sheet = DocumentState::default();
    sheet.lay_out(document, look);
    paint(&sheet, look.width)
}

/// A widget that shows a document or what stands beside one, as [`picture`] shows it.
pub fn drawn(widget: impl StatefulWidget<State = DocumentState>, width: usize) -> String {
    let mut state = DocumentState::default();
    state.lay_out_widget(widget, width);
    paint(&state, width)
}

/// The text of a widget of this size, without blanks at the ends of its lines.
pub fn text_of(widget: impl StatefulWidget<State = Links>, width: u16, height: u16) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    widget.render(buffer.area, &mut buffer, &mut Links::new());
    let lines = buffer.content.chunks(usize::from(width.max(1)));
    let lines = lines.map(|it| it.iter().map(Cell::symbol).collect::<String>());
    lines.map(|it| it.trim_end().to_owned() + "\n").collect()
}

pub fn paint(sheet: &DocumentState, width: usize) -> String {
    let mut picture = String::new();
    for (at, row) in sheet.rows.iter().enumerate() {
        let glyph = if at == 0 || sheet.is_bar {
            sheet.glyph.text.as_str()
        } else {
            ""
        };
        let facts: String = row.facts.iter().map(|it| it.text.as_str()).collect();
        let used = spans_width(&row.spans) + spans_width(&row.facts);
        let gap = if facts.is_empty() {
            0
        } else {
            width.saturating_sub(used)
        };
        let line = format!("{glyph:1} {}{}{facts}", row.plain(), " ".repeat(gap));
        picture.push_str(line.trim_end());
        picture.push('\n');
    }
    picture
}

/// One row with the role of each span: `read:Dim src/cart.rs:Text | 18 ms:Dim`. Gaps are left out.
pub fn roles(row: &StyledLine) -> String {
    let list = |spans: &[Span]| {
        let named = spans.iter().filter(|it| !it.text.trim().is_empty());
        let named = named.map(|it| {
            let bold = if it.modifier.contains(Modifier::BOLD) {
                "+bold"
            } else {
                ""
            };
            let line = if it.modifier.contains(Modifier::UNDERLINE) {
                "+underline"
            } else {
                ""
            };
            format!("{}:{:?}{bold}{line}", it.text.trim(), it.role)
        });
        named.collect::<Vec<_>>().join(" ")
    };
    if row.facts.is_empty() {
        list(&row.spans)
    } else {
        format!("{} | {}", list(&row.spans), list(&row.facts))
    }
}

/// The first row that is wider than it may be, facts included.
pub fn too_wide(sheet: &DocumentState, width: usize) -> Option<String> {
    let is_wide = |row: &&StyledLine| {
        let facts = spans_width(&row.facts);
        let gap = usize::from(facts > 0);
        spans_width(&row.spans) + facts + gap > width
    };
    let found = sheet.rows.iter().find(is_wide);
    found.map(|it| format!("{:?} | {:?}", it.plain(), it.facts))
}

/// Each state at screens of 40, 80 and 120 columns, as the pane gives them to a look.
pub fn pictures(states: &[(&str, &Document, RenderContext<'_>)]) -> String {
    let mut pictures = String::new();
    for (screen, width) in [(40, 37), (80, 71), (120, 111)] {
        pictures.extend([format!("{screen:=<0$}\n", width + 2)]);
        for (name, document, look) in states {
            let picture = picture(document, &RenderContext { width, ..*look });
            pictures.extend([format!("-- {name}\n{picture}")]);
        }
    }
    pictures
}
