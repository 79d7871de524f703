//! Markdown as HTML, for a page in which nothing foreign is loaded or run.

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd, html::push_html};

use super::options;
use crate::text::{Sanitized, target::link_target};

/// Returns HTML. `code` formats a block of code from its language and its text.
///
/// Foreign markup is shown as text, a picture becomes a link to it, and links lead to the web or nowhere.
pub fn to_html(source: &str, code: &dyn Fn(&str, &str) -> String) -> String {
    let source = Sanitized::new(source);
    let mut events = Vec::new();
    let mut block: Option<(String, String)> = None;
    let mut ends: Vec<&str> = Vec::new();
    for event in Parser::new_ext(source.as_str(), options()) {
        if let Some((language, text)) = &mut block {
            match event {
                Event::Text(it) => text.push_str(&it),
                Event::End(TagEnd::CodeBlock) => {
                    events.push(Event::Html(code(language, text).into()));
                    block = None;
                }
                _ => {}
            }
            continue;
        }
        match event {
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',', '{']).next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                block = Some((language, String::new()));
            }
            Event::Html(it) | Event::InlineHtml(it) => events.push(Event::Text(it)),
            Event::Start(Tag::HtmlBlock) => events.push(Event::Start(Tag::Paragraph)),
            Event::End(TagEnd::HtmlBlock) => events.push(Event::End(TagEnd::Paragraph)),
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => match link_target(&dest_url) {
                Some(target) => {
                    let target = escape(&target);
                    events.push(Event::InlineHtml(
                        format!("<a href=\"{target}\" rel=\"noopener noreferrer\">").into(),
                    ));
                    ends.push("</a>");
                }
                None => ends.push(""),
            },
            Event::End(TagEnd::Link | TagEnd::Image) => {
                events.push(Event::InlineHtml(ends.pop().unwrap_or_default().into()));
            }
            other => events.push(other),
        }
    }
    let mut out = String::with_capacity(source.len() * 3 / 2);
    push_html(&mut out, events.into_iter());
    out
}

/// Text between tags, or between quotes in one.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    fn html(source: &str) -> String {
        to_html(source, &|language, text| {
            format!("<pre {}>{}</pre>\n", escape(language), escape(text))
        })
    }

    #[test]
    fn foreign_markup_is_text() {
        assert_eq!(
            html("a <b>x</b> <script>alert(1)</script>"),
            "<p>a &lt;b&gt;x&lt;/b&gt; &lt;script&gt;alert(1)&lt;/script&gt;</p>\n"
        );
        let block = html("<script>\nalert(1)\n</script>\n\nafter");
        assert!(!block.contains("<script"), "{block}");
        assert!(block.contains("<p>after</p>"), "{block}");
    }

    #[test]
    fn links_lead_to_the_web_or_nowhere_and_pictures_are_not_loaded() {
        assert_eq!(
            html("[a](https://example.com/?a=1&b=2)"),
            "<p><a href=\"https://example.com/?a=1&amp;b=2\" rel=\"noopener noreferrer\">a</a></p>\n"
        );
        assert_eq!(html("[a](javascript:alert%281%29)"), "<p>a</p>\n");
        assert_eq!(html("[a](file:///etc/passwd)"), "<p>a</p>\n");
        let picture = html("![it](https://example.com/x.png)");
        assert!(!picture.contains("<img") && picture.contains(">it</a>"), "{picture}");
        // One in the other.
        let both = html("[![it](https://example.com/x.png)](data:text/html,x)");
        assert_eq!(both.matches("<a ").count(), both.matches("</a>").count(), "{both}");
    }

    #[test]
    fn code_is_given_away_whole() {
        assert_eq!(
            html("```rust,ignore\nlet x = \"<\";\n```"),
            "<pre rust>let x = &quot;&lt;&quot;;\n</pre>\n"
        );
        assert_eq!(html("```\nnever closed"), "<pre >never closed</pre>\n");
    }
}
