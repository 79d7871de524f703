//! A document of an unknown kind: its name and its members as JSON.

use super::{
    DocumentKind, Leaf, RenderContext, copy,
    heading::{Facts, Weight, first_line, heading, sign},
    value::{ValueFrame, json_rows, text_rows},
};
use crate::{
    protocol::{Document, document::Unknown},
    t,
    text::{Role, Sanitized, Span},
};

impl DocumentKind for Unknown<'_> {
    fn whole(&self, document: &Document, context: &RenderContext<'_>) -> Leaf {
        let mut rows = self.folded(document, context).rows;
        let frame = ValueFrame {
            columns: context.width,
            indent: &[],
            role: Role::Dim,
        };
        if let Some(content) = self.content {
            rows.extend(text_rows(
                content,
                ValueFrame {
                    role: Role::Text,
                    ..frame
                },
            ));
        }
        if !self.metadata.is_empty() {
            rows.extend(json_rows(self.metadata, frame));
        }
        Leaf::block(glyph(), rows)
    }

    fn folded(&self, _: &Document, context: &RenderContext<'_>) -> Leaf {
        let mut facts = Facts::default();
        facts.word(Weight::Heavy, t!("document-unknown"), Role::Dim);
        let title = Span::new(first_line(self.content.unwrap_or_default()), Role::Text);
        Leaf::line(glyph(), heading(self.kind, &[title], facts, context.width))
    }

    fn summary(&self, _: &Document) -> Sanitized {
        Sanitized::line(format!("{}  {}", self.kind, first_line(self.content.unwrap_or_default())).trim_end())
    }

    fn copy_text(&self, _: &Document) -> Sanitized {
        let json = serde_json::to_string_pretty(self.metadata).unwrap_or_default();
        let json = if self.metadata.is_empty() { "" } else { &json };
        Sanitized::from(copy::joined(&[self.content.unwrap_or_default(), json], "\n"))
    }

    fn markdown(&self, document: &Document) -> String {
        copy::fenced("", &self.copy_text(document))
    }

    #[cfg(test)]
    fn examples(&self, word: &str) -> Vec<super::matrix::State> {
        use super::{
            matrix::state,
            testing::{closed, open},
        };
        let members = serde_json::json!({ "root": { "label": "Discounts", "children": [1, "two"] } });
        vec![
            state("open", open(word, Some("A map"), members.clone())),
            state("closed", closed(word, Some("A map"), members)),
        ]
    }
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
                RenderContext {
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
