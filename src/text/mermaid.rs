//! Mermaid diagrams as text, drawn by `mermaid-text`.
//!
//! The source says more than a wrong picture, and the crate draws some: it takes a line that it does not understand for a
//! node, leaves out arrows from a node to itself, panics on some sources and takes gigabytes for others. So a source is
//! bounded before the crate sees it, and a drawing that lost a word is not shown. It takes up to 40 ms: call it on the
//! highlighter's thread only.

use mermaid_text::{
    Graph, RenderOptions, SequenceDiagram,
    detect::{self, DiagramKind},
    parser,
};
use unicode_width::UnicodeWidthChar as _;

use super::width::width;

/// Longest source that is drawn, in bytes; larger ones are easier to read as text.
const MOST_BYTES: usize = 4 << 10;
/// Maximum number of edges, of nodes, of messages or of lines: the time to draw grows with their cube.
const MOST_PARTS: usize = 60;
/// Maximum number of boxes around nodes: 20 within each other take 5 ms, 100 take 4.5 s.
const MOST_GROUPS: usize = 12;
/// Digits of a number that is a size: `0-99999999` in a packet would need a gigabyte.
const MOST_DIGITS: usize = 4;
/// Rows between layers of nodes, and columns between the nodes of one.
const GAPS: (usize, usize) = (3, 2);

/// Draws a diagram in at most `columns` columns; its lines end with a line break each. Returns `None` if the source is to
/// be shown instead: it is too large or too wide, of an unknown kind, or not understood to its last word.
pub fn draw(source: &str, columns: usize) -> Option<String> {
    if source.len() > MOST_BYTES {
        return None;
    }
    let source = source.replace('\t', "    ");
    // A panic is a way of the crate to say that it cannot.
    std::panic::catch_unwind(|| drawn(&source, columns)).ok().flatten()
}

fn drawn(source: &str, columns: usize) -> Option<String> {
    if !source.lines().all(is_measurable) {
        return None;
    }
    let kind = detect::detect(source).ok()?;
    let is_wide = source.chars().any(|it| it.width() == Some(2));
    let source = match kind {
        DiagramKind::Sequence => with_known_arrows(source),
        _ => source.to_owned(),
    };
    let words = understood(kind, &source, is_wide)?;
    let render = |gaps_override| {
        let options = RenderOptions {
            max_width: Some(columns),
            max_width_strict: true,
            gaps_override,
            ..RenderOptions::default()
        };
        mermaid_text::render_with_options(&source, &options).ok()
    };
    // The second one makes narrow what is too wide for the first.
    let mut text = render(Some(GAPS)).or_else(|| render(None))?;
    if matches!(
        kind,
        DiagramKind::Flowchart | DiagramKind::State | DiagramKind::Sequence
    ) {
        text = without_fillers(&text);
    }
    let is_whole = words.split_whitespace().all(|it| text.contains(it));
    let is_fitting = text.lines().all(|it| width(it) <= columns);
    let lines: Vec<&str> = text.trim_matches('\n').lines().map(str::trim_end).collect();
    (is_whole && is_fitting).then(|| lines.join("\n") + "\n")
}

/// Returns true if the crate, which adds the widths of characters, gets the width that the terminal shows.
fn is_measurable(line: &str) -> bool {
    let widths: Option<Vec<usize>> = line.chars().map(|it| it.width().filter(|&it| it > 0)).collect();
    widths.is_some_and(|it| it.iter().sum::<usize>() == width(line))
}

/// Returns the words that the drawing must contain. `None` if the crate would draw something wrong, or take too long.
fn understood(kind: DiagramKind, source: &str, is_wide: bool) -> Option<String> {
    let is_short = source.lines().count() <= MOST_PARTS;
    let has_size = source
        .split(|it: char| !it.is_ascii_digit())
        .any(|it| it.len() > MOST_DIGITS);
    match kind {
        DiagramKind::Flowchart => words_of_graph(&parser::parse(source).ok()?, true),
        DiagramKind::State => words_of_graph(&parser::state::parse(source).ok()?, false),
        DiagramKind::Sequence => words_of_sequence(&parser::sequence::parse(source).ok()?),
        DiagramKind::Er if !is_wide => {
            let diagram = parser::er::parse(source).ok()?;
            let is_plain = is_short && diagram.relationships.iter().all(|it| it.from != it.to);
            let labels = diagram.relationships.into_iter().filter_map(|it| it.label);
            is_plain.then(|| labels.collect::<Vec<_>>().join(" "))
        }
        DiagramKind::Pie | DiagramKind::Timeline | DiagramKind::Mindmap => is_short.then(String::new),
        // Without a range it scales to zero.
        DiagramKind::XyChart if source.contains("y-axis") => is_short.then(String::new),
        DiagramKind::Gantt | DiagramKind::BlockDiagram => (is_short && !has_size).then(String::new),
        DiagramKind::Packet => (is_short && !has_size && !is_wide).then(String::new),
        DiagramKind::Journey
        | DiagramKind::GitGraph
        | DiagramKind::QuadrantChart
        | DiagramKind::RequirementDiagram
        | DiagramKind::Architecture
        | DiagramKind::Sankey => (is_short && !is_wide).then(String::new),
        // Of three classes two cover each other.
        DiagramKind::Class | DiagramKind::Er | DiagramKind::XyChart => None,
    }
}

/// Returns the words of a flowchart or of states. With `has_names`, nodes keep the ids of the source.
fn words_of_graph(graph: &Graph, has_names: bool) -> Option<String> {
    let is_name = |it: &str| it.chars().all(|it| it.is_alphanumeric() || "_-.".contains(it)) && !it.contains("--");
    let is_understood = graph.edges.len() <= MOST_PARTS
        && graph.nodes.len() <= MOST_PARTS
        && graph.subgraphs.len() <= MOST_GROUPS
        && graph.edges.iter().all(|it| it.from != it.to)
        && (!has_names || graph.nodes.iter().all(|it| is_name(&it.id)))
        // An arrow to a group gets a node of its own.
        && (!has_names || graph.subgraphs.iter().all(|group| graph.nodes.iter().all(|it| it.id != group.id)));
    let nodes = graph.nodes.iter().map(|it| it.label.as_str());
    let edges = graph.edges.iter().filter_map(|it| it.label.as_deref());
    let groups = graph.subgraphs.iter().map(|it| it.label.as_str());
    is_understood.then(|| nodes.chain(edges).chain(groups).collect::<Vec<_>>().join(" "))
}

fn words_of_sequence(diagram: &SequenceDiagram) -> Option<String> {
    let names = diagram.participants.iter().map(|it| it.label.as_str());
    let texts = diagram.messages.iter().map(|it| it.text.as_str());
    let notes = diagram.notes.iter().map(|it| it.text.as_str());
    let is_bounded = diagram.messages.len() <= MOST_PARTS && diagram.notes.len() <= MOST_PARTS;
    (is_bounded && !diagram.participants.is_empty())
        .then(|| names.chain(texts).chain(notes).collect::<Vec<_>>().join(" "))
}

/// Replaces arrows of a sequence that the crate does not know: lost messages get a cross before their text,
/// asynchronous messages become plain ones.
fn with_known_arrows(source: &str) -> String {
    let line = |line: &str| {
        let (ends, text) = line.split_once(':').unwrap_or((line, ""));
        let arrows = [
            ("--x", "-->>", "✗ "),
            ("-x", "->>", "✗ "),
            ("--)", "-->>", ""),
            ("-)", "->>", ""),
        ];
        let found = arrows.iter().find(|it| !ends.contains("->") && ends.contains(it.0));
        match found {
            Some((old, new, sign)) => format!("{}: {sign}{}", ends.replacen(old, new, 1), text.trim()),
            None => line.to_owned(),
        }
    };
    source.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Removes the blank for the second column of each wide character.
fn without_fillers(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut is_filler = false;
    for character in text.chars() {
        if !(is_filler && character == ' ') {
            kept.push(character);
        }
        is_filler = character.width() == Some(2);
    }
    kept
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(source: &str) -> String {
        format!("\n{}", draw(source, 80).expect("it is understood"))
    }

    #[test]
    fn a_decision_and_its_ways() {
        insta::assert_snapshot!(shown(
            "flowchart TD\n  A[Start] --> B{Valid?}\n  B -->|yes| C(Apply the code)\n  B -- no --> D[Say why];\n  C --> E[Total]\n  D --> E\n"
        ), @r"
           ┌───────┐
           │ Start │
           └───────┘
               └┐
                │
                │
                │
           ╱────▾───╲
           │ Valid? │
           ╲────────╱
         ┌─────┘ └────────┐
     yes │                │no
         │                │
         │                │
╭────────▾───────╮   ┌────▾────┐
│ Apply the code │   │ Say why │
╰────────────────╯   └─────────┘
         └────┐ ┌─────────┘
              │ │
              │ │
              │ │
           ┌──▾─▾──┐
           │ Total │
           └───────┘
");
    }

    #[test]
    fn a_chain_from_left_to_right() {
        insta::assert_snapshot!(shown("graph LR\nA[Cart] --> B[Total] -->|rounded| C[Receipt 漢字]"), @r"
                      rounded
┌──────┐    ┌───────┐    ┌──────────────┐
│ Cart │───▸│ Total │───▸│ Receipt 漢字 │
└──────┘    └───────┘    └──────────────┘
");
    }

    #[test]
    fn a_way_over_a_layer_and_a_way_back() {
        insta::assert_snapshot!(shown("graph TD\nA-->B-->C\nA-->C\nC-->A\nA & B --> D"), @r"
       ┌───┐
       │ A │◂┐
       └───┘ │
  ┌────┬─┘ │ │
  │   ┌┘   │ │
  │ ┌─▾─┐  │ │
  │ │ B │  │ │
  │ └───┘┌─┘ │
 ┌┼──┘ └─┼─┐ │
 │└┐     │ │ │
 │ │     │ │ │
 │ │     │ │ │
┌▾─▾┐   ┌▾─▾┐│
│ C ├┘  │ D ││
└───┘│  └───┘│
     └───────┘
");
    }

    #[test]
    fn who_says_what_to_whom() {
        insta::assert_snapshot!(shown(
            "sequenceDiagram\n  participant C as Client\n  participant S as Server\n  C->>S: POST /chat\n  loop each token\n    S-->>C: delta\n  end\n  S->>S: settle\n  Note over C,S: the stream ends\n  S--xC: done"
        ), @r"
 ┌──────────┐            ┌──────────┐
 │  Client  │            │  Server  │
 └──────────┘            └──────────┘
       ┆ POST /chat            ┆
       ────────────────────────▸
       ┆                       ┆
╔═[loop]══[each token]════════════════╗
║░░░░░░┆░delta░░░░░░░░░░░░░░░░░┆░░░░░░║
║░░░░░░◂┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄░░░░░░║
║░░░░░░┆░░░░░░░░░░░░░░░░░░░░░░░┆░░░░░░║
╚═════════════════════════════════════╝
       ┆                       ┆
       ┆                       ├────────┐
       ┆                       ┆settle  │
       ┆                       ├◂───────┘
       ┆                       ┆
      ╭─────────────────────────╮
      │ the stream ends         │
      ╰─────────────────────────╯
       ┆ ✗ done                ┆
       ◂┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
       ┆                       ┆
 ┌──────────┐            ┌──────────┐
 │  Client  │            │  Server  │
 └──────────┘            └──────────┘
");
    }

    #[test]
    fn states_and_a_group() {
        insta::assert_snapshot!(shown("stateDiagram-v2\n[*] --> Idle\nIdle --> Busy: start\nBusy --> Idle: done\nBusy --> [*]"), @r"
                                          ╭───────╮
╭─────╮    ╭──────╮    start  ╭──────╮    │╭─────╮│
(  ●  )───▸│ Idle │──────────▸│ Busy │───▸││  ●  ││
╰─────╯    ╰───▴──╯           ╰──────╯    │╰─────╯│
               │                done      ╰───────╯
               └──────────────────┘
");
        insta::assert_snapshot!(shown("graph TD\nsubgraph x\nA-->B\nend\nB-->C"), @r"
╭─x─────╮
│       │
│ ┌───┐ │
│ │ A │ │
│ └───┘ │
│   │   │
│   │   │
│ ┌─▾─┐ │
│ │ B │ │
│ └───┘ │
│   │   │
╰───────╯
    │
    │
  ┌─▾─┐
  │ C │
  └───┘
");
    }

    #[test]
    fn tables_and_charts() {
        insta::assert_snapshot!(shown("pie\n  \"apples\": 3\n  \"漢字\": 1"), @r"
apples  ████████████████████████████████████████████████░░░░░░░░░░░░░░░░   75.0%
漢字    ████████████████░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░   25.0%
");
        insta::assert_snapshot!(shown("erDiagram\nCUSTOMER ||--o{ ORDER : places\nCUSTOMER {\nstring name\nint id PK\n}"), @r"
                      places
┌──────────────────┐          ┌─────────┐
│     CUSTOMER     ┤1────────*├  ORDER  │
├──────────────────┤          └─────────┘
│  string name     │
│  int    id   PK  │
└──────────────────┘
");
        insta::assert_snapshot!(shown("gantt\ntitle Plan\ndateFormat YYYY-MM-DD\nsection S\nRead :a1, 2024-01-01, 30d\nWrite :after a1, 20d"), @r"
Gantt: Plan (2024-01-01 → 2024-02-19, 50 days)

                  01-01     01-15     01-29     02-12

S
  Read            █████████████████████░░░░░░░░░░░░░░░  [01-01 → 01-30, 30d]
  Write           ░░░░░░░░░░░░░░░░░░░░░░██████████████  [01-31 → 02-19, 20d]
");
        insta::assert_snapshot!(shown("mindmap\n  root((plan))\n    read\n      漢字\n    write"), @r"
╭──────╮
│ plan │
╰───┬──╯
    │
    ├── read
    │   └── 漢字
    └── write
");
    }

    #[test]
    fn the_source_stays_where_a_drawing_would_be_wrong_or_costly() {
        let many = |line: &dyn Fn(usize) -> String, count| (0..count).map(line).collect::<String>();
        let groups = format!(
            "graph TD\n{}A-->B\n{}",
            many(&|it| format!("subgraph s{it}\n"), 13),
            "end\n".repeat(13)
        );
        let edges = format!("graph TD\n{}", many(&|it| format!("N{it}-->N{}\n", it + 1), 61));
        let nodes = format!("graph TD\n{}", many(&|it| format!("N{it}[x]\n"), 61));
        let lines = format!("pie\n{}", many(&|it| format!("\"p{it}\": 1\n"), 60));
        let bytes = format!("graph TD\nA[{}]", "x ".repeat(MOST_BYTES / 2));
        let sources = [
            ("nothing", ""),
            ("an unknown kind", "venn\nA --> B"),
            ("half an arrow", "graph TD\nA --> "),
            ("an open bracket", "graph TD\nA[never closed --> B"),
            ("prose", "graph TD\nthis is no diagram"),
            ("an arrow to itself", "graph TD\nA-->A\nA-->B"),
            ("an arrow to a group", "graph TD\nsubgraph one\nA-->B\nend\none-->C"),
            ("a table that refers to itself", "erDiagram\nA ||--o{ A : parent"),
            ("classes", "classDiagram\nA <|-- B"),
            ("a chart without a range", "xychart-beta\nbar [1, 2]"),
            ("combining characters", "graph TD\nA[e\u{301}] --> B"),
            ("an emoji of two characters", "graph TD\nA[👍🏽] --> B"),
            ("control characters", "graph TD\nA[\u{1b}[31m] --> B"),
            ("a packet of a gigabyte", "packet-beta\n0-99999999: \"x\""),
            ("many columns", "block-beta\ncolumns 99999999\na b"),
            ("the end of time", "gantt\nsection S\nA :a1, 2024-01-01, 99999999d"),
            ("many groups", &groups),
            ("many edges", &edges),
            ("many nodes", &nodes),
            ("many lines", &lines),
            ("many bytes", &bytes),
        ];
        for (name, source) in sources {
            assert_eq!(draw(source, 200), None, "{name}");
        }
        assert_eq!(draw("graph TD\nA[a label that is too long for that]", 20), None);
        assert_eq!(draw("sequenceDiagram\nA->>B: a text that is too long", 20), None);
    }

    proptest! {
        #[test]
        fn nothing_breaks_it_and_nothing_is_too_wide(
            source in "(graph TD|graph LR|sequenceDiagram)\n([A-E](-->|---|-->[|]x[|]|->>|&)[A-E](: x)?\n){0,12}",
            columns in 1usize..100,
        ) {
            if let Some(text) = draw(&source, columns) {
                for line in text.lines() {
                    prop_assert!(width(line) <= columns);
                }
            }
        }

        #[test]
        fn no_text_breaks_it(source in "(graph TD|sequenceDiagram|stateDiagram|pie|gantt|erDiagram|mindmap|gitGraph)\n(\\PC{0,20}\n){0,6}") {
            let _ = draw(&source, 60);
        }
    }
}
