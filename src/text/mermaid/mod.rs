//! Simple Mermaid diagrams as text: flowcharts from top to bottom, and sequence diagrams.
//!
//! What is not simple (subgraphs, other kinds of diagrams, anything that is not understood to the last sign) or does not fit
//! the width is not drawn at all: the source says more than a wrong picture.

mod canvas;
mod flow;
mod sequence;

/// Larger diagrams are read better as their source.
const MOST_BYTES: usize = 8 * 1024;

/// The diagram in at most so many columns, its lines with a line break each; `None` where the source is to be shown.
pub fn draw(source: &str, columns: usize) -> Option<String> {
    if source.len() > MOST_BYTES {
        return None;
    }
    let mut lines = source.lines().map(str::trim).filter(|it| {
        let is_comment = it.starts_with("%%");
        !it.is_empty() && !is_comment
    });
    let head = lines.next()?;
    let mut words = head.trim_end_matches(';').split_whitespace();
    let lines: Vec<&str> = lines.collect();
    let canvas = match words.next()? {
        "graph" | "flowchart" => flow::draw(words.next().unwrap_or("TD"), &lines, columns)?,
        "sequenceDiagram" => sequence::draw(&lines)?,
        _ => return None,
    };
    let text = canvas.text();
    let is_fitting = text.lines().all(|it| super::width::width(it) <= columns);
    is_fitting.then_some(text)
}

/// What a label says, without quotes and line breaks of HTML.
fn label(text: &str) -> String {
    let text = text.trim().trim_matches('"');
    let text = ["<br/>", "<br>", "<br />"]
        .iter()
        .fold(text.to_owned(), |it, tag| it.replace(tag, " "));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drawn(source: &str) -> String {
        format!("\n{}", draw(source, 80).expect("it is simple"))
    }

    #[test]
    fn a_decision_and_its_ways() {
        insta::assert_snapshot!(drawn(
            "flowchart TD\n  A[Start] --> B{Valid?}\n  B -->|yes| C(Apply the code)\n  B -- no --> D[Say why];\n  C --> E[Total]\n  D --> E\n"
        ), @r"
             ┌───────┐
             │ Start │
             └───┬───┘
                 ▼
           ╭──────────╮
           │ ◇ Valid? │
           ╰─────┬────╯
         ┌───────┴────────┐
         │ yes            │ no
         ▼                ▼
╭────────────────╮   ┌─────────┐
│ Apply the code │   │ Say why │
╰────────┬───────╯   └────┬────┘
         ├────────────────┘
         ▼
     ┌───────┐
     │ Total │
     └───────┘
");
    }

    #[test]
    fn a_chain_from_left_to_right() {
        insta::assert_snapshot!(drawn("graph LR\nA[Cart] --> B[Total] -->|rounded| C[Receipt 漢字]"), @r"
┌──────┐   ┌───────┐            ┌──────────────┐
│ Cart │──▶│ Total │─ rounded ─▶│ Receipt 漢字 │
└──────┘   └───────┘            └──────────────┘
");
    }

    #[test]
    fn a_way_over_a_layer_and_a_way_back() {
        insta::assert_snapshot!(drawn("graph TD\nA-->B-->C\nA-->C\nC-->A\nA & B --> D"), @r"
            ┌───┐
            │ A │
            └─┬─┘
         ┌────┴┬───┐
         ▼     │   │
       ┌───┐   │   │
       │ B │   │   │
       └─┬─┘   │   │
     ┌───┴───┐ │   │
     ├───────│─┘   │
     │       ├─────┘
     ▼       ▼
   ┌───┐   ┌───┐
   │ C │   │ D │
   └───┘   └───┘
↺ C ─▶ A
");
    }

    #[test]
    fn who_says_what_to_whom() {
        insta::assert_snapshot!(drawn(
            "sequenceDiagram\n  participant C as Client\n  participant S as Server\n  C->>S: POST /chat\n  loop each token\n    S-->>C: delta\n  end\n  S->>S: settle\n  Note over C,S: the stream ends\n  S--xC: done"
        ), @r"
┌────────┐       ┌────────┐
│ Client │       │ Server │
└────┬───┘       └────┬───┘
     │ POST /chat     │
     │───────────────▶│
┄ loop each token ┄┄┄┄┄
     │ delta          │
     │◀╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌│
┄ end ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄
     │                │──╮ settle
     │                │◀─╯
     [the stream ends]│
     │ done           │
     │✗╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌│
     ╵                ╵
");
    }

    #[test]
    fn what_is_not_simple_is_left_to_its_source() {
        for source in [
            "",
            "pie\n  \"a\": 1",
            "graph TD\nsubgraph x\nA-->B\nend",
            "graph TD\nA --> ",
            "graph TD\nA[never closed --> B",
            "sequenceDiagram\nrect rgb(0,0,0)\nA->>B: x\nend",
            "graph BT\nA-->B",
        ] {
            assert_eq!(draw(source, 80), None, "{source}");
        }
        assert_eq!(draw("graph TD\nA[a label that is too long for that]", 20), None);
    }

    proptest! {
        #[test]
        fn nothing_breaks_it_and_nothing_is_too_wide(
            source in "(graph TD|graph LR|sequenceDiagram)\n([A-E](-->|---|-->[|]x[|]|->>|&)[A-E](: x)?\n){0,12}",
            columns in 1usize..100,
        ) {
            if let Some(text) = draw(&source, columns) {
                for line in text.lines() {
                    prop_assert!(crate::text::width::width(line) <= columns);
                }
            }
        }

        #[test]
        fn no_text_breaks_it(source in "(graph TD|sequenceDiagram)\n\\PC{0,80}") {
            let _ = draw(&source, 60);
        }
    }
}
