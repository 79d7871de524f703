//! A kind that this program does not know: its name and what it holds, as JSON.

use super::{
    Leaf, Look,
    heading::{Facts, Weight, first_line, heading, sign},
    value::{Frame, json_rows, text_rows},
};
use crate::{
    protocol::document::Unknown,
    say,
    text::{Clean, Role, Span},
};

pub(super) fn leaf(unknown: &Unknown<'_>, look: &Look<'_>) -> Leaf {
    let mut rows = folded(unknown, look).rows;
    let frame = Frame {
        columns: look.width,
        indent: &[],
        role: Role::Dim,
    };
    if let Some(content) = unknown.content {
        rows.extend(text_rows(
            content,
            Frame {
                role: Role::Text,
                ..frame
            },
        ));
    }
    if !unknown.metadata.is_empty() {
        rows.extend(json_rows(unknown.metadata, frame));
    }
    Leaf {
        glyph: glyph(),
        rows,
        is_line: false,
    }
}

pub(super) fn folded(unknown: &Unknown<'_>, look: &Look<'_>) -> Leaf {
    let mut facts = Facts::default();
    facts.word(Weight::Heavy, say!("document-unknown"), Role::Dim);
    let title = Span::new(first_line(unknown.content.unwrap_or_default()), Role::Text);
    Leaf {
        glyph: glyph(),
        rows: vec![heading(unknown.kind, &[title], facts, look.width)],
        is_line: true,
    }
}

pub(super) fn summary(unknown: &Unknown<'_>) -> Clean {
    Clean::line(format!("{}  {}", unknown.kind, first_line(unknown.content.unwrap_or_default())).trim_end())
}

fn glyph() -> Span {
    sign("·", Role::Dim)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{
        Fold,
        testing::{closed, look, picture, pictures},
    };
    use super::*;

    #[test]
    fn kinds_of_the_future() {
        let map = closed(
            "mind_map",
            Some("Discounts\n  codes"),
            json!({ "root": { "label": "Discounts", "children": [1, "zwei"] } }),
        );
        let bare = closed("chart", None, json!({}));
        let states = [
            ("content and members", &map, look(0)),
            ("nothing", &bare, look(0)),
            (
                "folded",
                &map,
                Look {
                    fold: Fold::Folded,
                    ..look(0)
                },
            ),
        ];
        insta::assert_snapshot!(pictures(&states), @r#"
40=====================================
-- content and members
· mind_map  Discounts      unknown kind
  Discounts
    codes
  {
    "root": {
      "label": "Discounts",
      "children": [
        1,
        "zwei"
      ]
    }
  }
-- nothing
· chart                    unknown kind
-- folded
· mind_map  Discounts      unknown kind
80=======================================================================
-- content and members
· mind_map  Discounts                                        unknown kind
  Discounts
    codes
  {
    "root": {
      "label": "Discounts",
      "children": [
        1,
        "zwei"
      ]
    }
  }
-- nothing
· chart                                                      unknown kind
-- folded
· mind_map  Discounts                                        unknown kind
120==============================================================================================================
-- content and members
· mind_map  Discounts                                                                                unknown kind
  Discounts
    codes
  {
    "root": {
      "label": "Discounts",
      "children": [
        1,
        "zwei"
      ]
    }
  }
-- nothing
· chart                                                                                              unknown kind
-- folded
· mind_map  Discounts                                                                                unknown kind
"#);
    }

    #[test]
    fn what_is_long_is_bounded() {
        let list: Vec<u32> = (0..100_000).collect();
        let long = closed("chart", None, json!({ "points": list }));
        let rows = picture(&long, &look(60)).lines().count();
        assert!(rows < 200, "{rows} rows");
    }
}
