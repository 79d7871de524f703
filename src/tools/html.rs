//! A page of HTML as Markdown, for a model to read.
//!
//! What a reader came for is found by `dom_smoothie`. It builds the whole tree, and pages can be written that make any tree
//! builder work for minutes or fall off the stack; so the tags are counted first, and what is not tame, or has nothing that
//! looks like an article, is told in the order of its text by a plain pass over the tags.

use crate::text::WordList;
use dom_smoothie::{Config, Readability, TextMode};

/// The readable text of a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadableText {
    pub title: String,
    pub markdown: String,
}

/// Reads a page. May take as long as a page of a megabyte takes: not on a thread that others wait for.
pub fn read(html: &str, url: &str) -> ReadableText {
    let plain = plain(html);
    let Some(article) = article(html, url) else {
        return plain;
    };
    // An article that is a crumb of a long page is not what the page is about.
    if article.markdown.len() < 250 && plain.markdown.len() > 4 * article.markdown.len() {
        return plain;
    }
    ReadableText {
        title: if article.title.is_empty() {
            plain.title
        } else {
            article.title
        },
        markdown: article.markdown,
    }
}

/// The words of a scrap of HTML, on one line.
pub fn text(html: &str) -> String {
    let mut text = String::new();
    for token in Tokens::of(html) {
        match token {
            Token::Text(it) => text.push_str(&entities(it)),
            Token::Open { name, .. } | Token::Close(name) => {
                if is_block(&name) || name == "br" {
                    text.push(' ');
                }
            }
        }
    }
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ")
}

fn article(html: &str, url: &str) -> Option<ReadableText> {
    if !is_tame(html) {
        return None;
    }
    let config = Config {
        disable_json_ld: true,
        text_mode: TextMode::Markdown,
        ..Config::default()
    };
    let article = Readability::new(html, Some(url), Some(config)).ok()?.parse().ok()?;
    Some(ReadableText {
        title: line(&article.title),
        markdown: tidy(&article.text_content),
    })
}

/// Pages of one megabyte that are documents have some ten thousand tags, nested some thirty deep.
const MOST_TAGS: usize = 30_000;
const MOST_DEPTH: usize = 200;
/// Tags for the look of text that are open at a time: a tree builder opens them anew in every paragraph.
const MOST_LOOKS: usize = 24;
/// Each sign that may begin a reference costs the tree builder a look at all that it holds back.
const MOST_REFERENCES: usize = 5000;
const MOST_ATTRIBUTES: usize = 100;

const LOOKS: [&str; 14] = [
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];
const VOID: [&str; 14] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
];

/// Returns true if its tree can be built in a moment.
fn is_tame(html: &str) -> bool {
    if html.bytes().filter(|it| *it == b'&').count() > MOST_REFERENCES {
        return false;
    }
    let (mut tags, mut depth, mut looks) = (0, 0_usize, 0_usize);
    for token in Tokens::of(html) {
        match token {
            Token::Text(_) => continue,
            Token::Open { name, attributes, .. } => {
                if attributes > MOST_ATTRIBUTES {
                    return false;
                }
                if !VOID.contains(&name.as_str()) {
                    depth += 1;
                }
                if LOOKS.contains(&name.as_str()) {
                    looks += 1;
                }
            }
            Token::Close(name) => {
                depth = depth.saturating_sub(1);
                if LOOKS.contains(&name.as_str()) {
                    looks = looks.saturating_sub(1);
                }
            }
        }
        tags += 1;
        // Tags that nobody closes (list items, paragraphs, cells) do not nest; there is room for them.
        if tags > MOST_TAGS || depth > MOST_DEPTH + tags / 2 || looks > MOST_LOOKS {
            return false;
        }
    }
    true
}

/// The text of a page in its order.
fn plain(html: &str) -> ReadableText {
    let mut out = Plain::default();
    for token in Tokens::of(html) {
        match token {
            Token::Text(text) => out.text(text),
            Token::Open { name, link, .. } => out.open(&name, link.as_deref()),
            Token::Close(name) => out.close(&name),
        }
    }
    ReadableText {
        title: line(&out.title),
        markdown: tidy(&out.text),
    }
}

#[derive(Default)]
struct Plain {
    text: String,
    title: String,
    in_title: bool,
    /// Number of open `pre` elements, in which blanks count.
    verbatim: usize,
    /// Targets of the open links, innermost last.
    links: Vec<Option<String>>,
}

impl Plain {
    fn text(&mut self, text: &str) {
        let text = entities(text);
        if self.in_title {
            self.title.push_str(&text);
            return;
        }
        if self.verbatim > 0 {
            self.text.push_str(&text);
            return;
        }
        for it in text.chars() {
            if !it.is_whitespace() {
                self.text.push(it);
            } else if !self.text.is_empty() && !self.text.ends_with([' ', '\n']) {
                self.text.push(' ');
            }
        }
    }

    fn lines(&mut self, count: usize) {
        let ended = self.text.trim_end_matches(' ').len();
        self.text.truncate(ended);
        let present = self
            .text
            .bytes()
            .rev()
            .take(count)
            .take_while(|it| *it == b'\n')
            .count();
        if !self.text.is_empty() {
            self.text.extend(std::iter::repeat_n('\n', count - present));
        }
    }

    fn open(&mut self, name: &str, link: Option<&str>) {
        match name {
            "title" => self.in_title = true,
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => {
                self.lines(2);
                let level = name.bytes().last().map_or(1, |it| usize::from(it - b'0'));
                self.text.extend(std::iter::repeat_n('#', level));
                self.text.push(' ');
            }
            "li" => {
                self.lines(1);
                self.text.push_str("- ");
            }
            "br" | "tr" | "dt" | "dd" => self.lines(1),
            "td" | "th" if !self.text.is_empty() && !self.text.ends_with('\n') => self.text.push_str(" | "),
            "pre" => {
                self.lines(2);
                self.text.push_str("```\n");
                self.verbatim += 1;
            }
            "a" if self.links.len() < MOST_LOOKS => {
                let link = link
                    .map(entities)
                    .filter(|it| !it.is_empty() && !it.starts_with('#') && !it.contains(char::is_whitespace));
                if link.is_some() {
                    self.text.push('[');
                }
                self.links.push(link);
            }
            name if is_block(name) => self.lines(2),
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "title" => self.in_title = false,
            "pre" if self.verbatim > 0 => {
                self.verbatim -= 1;
                self.lines(1);
                self.text.push_str("```\n\n");
            }
            "a" => {
                if let Some(Some(link)) = self.links.pop() {
                    self.text.push_str(&format!("]({link})"));
                }
            }
            "h1" | "h2" | "h3" | "h4" | "h5" | "h6" => self.lines(2),
            name if is_block(name) => self.lines(2),
            _ => {}
        }
    }
}

fn is_block(name: &str) -> bool {
    let blocks = WordList(
        "address article aside blockquote body details div dl fieldset figure footer form header hr main nav ol p
         section summary table ul",
    );
    blocks.contains(name)
}

/// At most one empty line at a time, no blanks at the ends of lines.
fn tidy(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut empty = 0;
    for line in text.lines() {
        let line = line.trim_end();
        empty = if line.is_empty() { empty + 1 } else { 0 };
        if empty < 2 {
            out.push_str(line);
            out.push('\n');
        }
    }
    out.trim().to_owned()
}

/// One line of a text, blanks run together.
fn line(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    words.join(" ").chars().take(300).collect()
}

/// Text with its character references replaced; a blank that does not break is a blank.
fn entities(text: &str) -> String {
    html_escape::decode_html_entities(text).replace('\u{a0}', " ")
}

enum Token<'a> {
    Text(&'a str),
    Open {
        /// In lower case.
        name: String,
        attributes: usize,
        /// The value of `href`.
        link: Option<String>,
    },
    Close(String),
}

/// The tags of a page and the text between them. Comments, scripts and styles are left out. Each byte is looked at once.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn of(html: &'a str) -> Self {
        Self { rest: html }
    }

    /// Goes on behind the first `end`, or to the end.
    fn skip(&mut self, end: &str) {
        self.rest = self.rest.split_once(end).map_or("", |it| it.1);
    }

    /// Goes on at the closing tag of an element whose inside is no text.
    fn skip_inside(&mut self, name: &str) {
        let bytes = self.rest.as_bytes();
        let is_end = |at: &usize| {
            let tag = bytes.get(at + 2..at + 2 + name.len());
            bytes.get(at + 1) == Some(&b'/') && tag.is_some_and(|it| it.eq_ignore_ascii_case(name.as_bytes()))
        };
        let end = bytes
            .iter()
            .enumerate()
            .filter(|it| *it.1 == b'<')
            .map(|it| it.0)
            .find(is_end);
        self.rest = end.and_then(|it| self.rest.get(it..)).unwrap_or_default();
    }

    /// The attributes of a tag whose name has been read, and the end of it.
    fn attributes(&mut self) -> (usize, Option<String>) {
        let bytes = self.rest.as_bytes();
        let (mut at, mut count, mut link) = (0, 0, None);
        let is_blank = |it: u8| it.is_ascii_whitespace() || it == b'/';
        loop {
            while bytes.get(at).is_some_and(|it| is_blank(*it)) {
                at += 1;
            }
            match bytes.get(at) {
                None => break,
                Some(b'>') => {
                    at += 1;
                    break;
                }
                Some(_) => {}
            }
            let start = at;
            // An equals sign at the front belongs to the name.
            at += 1;
            while bytes
                .get(at)
                .is_some_and(|it| !is_blank(*it) && !matches!(it, b'=' | b'>'))
            {
                at += 1;
            }
            let name = self.rest.get(start..at).unwrap_or_default();
            count += 1;
            let mut behind = at;
            while bytes.get(behind).is_some_and(u8::is_ascii_whitespace) {
                behind += 1;
            }
            if bytes.get(behind) != Some(&b'=') {
                continue;
            }
            at = behind + 1;
            while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
                at += 1;
            }
            let value = match bytes.get(at) {
                Some(quote @ (b'"' | b'\'')) => {
                    let start = at + 1;
                    at = start;
                    while bytes.get(at).is_some_and(|it| it != quote) {
                        at += 1;
                    }
                    let value = self.rest.get(start..at);
                    at = (at + 1).min(bytes.len());
                    value
                }
                _ => {
                    let start = at;
                    while bytes.get(at).is_some_and(|it| !it.is_ascii_whitespace() && *it != b'>') {
                        at += 1;
                    }
                    self.rest.get(start..at)
                }
            };
            if link.is_none() && name.eq_ignore_ascii_case("href") {
                link = value.map(|it| it.trim().chars().take(2000).collect());
            }
        }
        self.rest = self.rest.get(at..).unwrap_or_default();
        (count, link)
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            if self.rest.is_empty() {
                return None;
            }
            let bytes = self.rest.as_bytes();
            if bytes.first() != Some(&b'<') {
                let end = bytes.iter().position(|it| *it == b'<').unwrap_or(bytes.len());
                let (text, rest) = self.rest.split_at_checked(end)?;
                self.rest = rest;
                return Some(Token::Text(text));
            }
            match bytes.get(1) {
                Some(b'!') if self.rest.starts_with("<!--") => self.skip("-->"),
                Some(b'!' | b'?') => self.skip(">"),
                Some(it) if it.is_ascii_alphabetic() || *it == b'/' => {
                    let is_close = *it == b'/';
                    let start = if is_close { 2 } else { 1 };
                    let is_name = |it: &u8| !it.is_ascii_whitespace() && !matches!(it, b'/' | b'>');
                    let length = bytes.iter().skip(start).take_while(|it| is_name(it)).count();
                    let name = self.rest.get(start..start + length).unwrap_or_default();
                    let name: String = name.chars().take(40).collect::<String>().to_ascii_lowercase();
                    self.rest = self.rest.get(start + length..).unwrap_or_default();
                    let (attributes, link) = self.attributes();
                    if is_close {
                        return Some(Token::Close(name));
                    }
                    let is_raw = [
                        "script", "style", "noscript", "template", "svg", "iframe", "textarea", "noembed", "noframes",
                    ];
                    if is_raw.contains(&name.as_str()) {
                        self.skip_inside(&name);
                    }
                    return Some(Token::Open { name, attributes, link });
                }
                // A sign, not a tag.
                Some(_) | None => {
                    let (text, rest) = self.rest.split_at_checked(1)?;
                    self.rest = rest;
                    return Some(Token::Text(text));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_page_is_told_in_its_order() {
        for (sentence, html, expected) in [
            ("paragraphs", "<p>one\n  two</p><p>three</p>", "one two\n\nthree"),
            ("headings", "<h1>One</h1>text<h3>Two</h3>", "# One\n\ntext\n\n### Two"),
            ("lists", "<ul><li>one<li>two</ul>after", "- one\n- two\n\nafter"),
            ("code", "<pre>a\n  b</pre>after", "```\na\n  b\n```\n\nafter"),
            (
                "links",
                "see <a href='/x?a=1&amp;b=2'>this</a>.",
                "see [this](/x?a=1&b=2).",
            ),
            (
                "links to nowhere",
                "<a name=x>here</a> <a href=#y>there</a>",
                "here there",
            ),
            ("a table", "<table><tr><td>a<td>b<tr><td>c<td>d</table>", "a | b\nc | d"),
            (
                "what is no text",
                "a<script>if (1<2) x('</p>')</script><style>p{}</style><!-- <p> -->b",
                "ab",
            ),
            ("what never ends", "a<script>b", "a"),
            (
                "references",
                "&lt;a&gt; &amp;amp; &#65;&#x42;&hellip; &nope; & &#0; &#xd800;",
                "<a> &amp; AB… &nope; & &#0; &#xd800;",
            ),
            ("signs", "1 < 2 > 3 <4", "1 < 2 > 3 <4"),
            ("a quoted end", "<p title='a>b'>text", "text"),
            (
                "upper case",
                "<P>one<BR>two</P><SCRIPT>x</ScRiPt>three",
                "one\ntwo\n\nthree",
            ),
        ] {
            assert_eq!(plain(html).markdown, expected, "{sentence}");
        }
        assert_eq!(plain("<title>A \n <b>&amp; B</title>text").title, "A & B");
    }

    #[test]
    fn an_article_is_found_among_the_rest() {
        let paragraph = "<p>The borrow checker looks at every reference, and asks how long what it points to will live, so that none is left over.</p>";
        let html = format!(
            "<html><head><title>Borrowing</title></head><body><nav><a href=/a>Home</a><a href=/b>About us</a></nav>\
             <article><h1>Borrowing</h1>{}<h2>Code</h2><pre><code>let a = &amp;b;</code></pre>{}<p>See <a href=\"/book\">the book</a>, it says more.</p></article>\
             <footer>Cookies and such</footer><script>alert(1)</script></body></html>",
            paragraph.repeat(4),
            paragraph.repeat(3)
        );
        let ReadableText { title, markdown } = read(&html, "https://doc.example/x");
        assert_eq!(title, "Borrowing");
        for part in [
            "The borrow checker",
            "let a = &b;",
            "## Code",
            "https://doc.example/book",
        ] {
            assert!(markdown.contains(part), "{part}: {markdown}");
        }
        for part in ["About us", "Cookies", "alert"] {
            assert!(!markdown.contains(part), "{part}: {markdown}");
        }
    }

    #[test]
    fn what_would_choke_a_tree_builder_is_told_plainly() {
        let many = |part: &str, times: usize| format!("<p>start</p>{}<p>end", part.repeat(times));
        for (sentence, html) in [
            ("deep", many("<div>", 200_000)),
            ("deeper than it is long", many("<i>", 100)),
            (
                "looks in every paragraph",
                format!(
                    "{}{}",
                    (0..200).map(|it| format!("<b id={it}>")).collect::<String>(),
                    "<p>x".repeat(50_000)
                ),
            ),
            (
                "many attributes",
                many(
                    &format!("<p {}>", (0..50_000).map(|it| format!("a{it} ")).collect::<String>()),
                    1,
                ),
            ),
            (
                "many attributes by slashes",
                many(
                    &format!("<p{}>", (0..50_000).map(|it| format!("/a{it}")).collect::<String>()),
                    1,
                ),
            ),
            ("many tags", many("<p>x", 60_000)),
            ("tables in tables", many("<table><tr><td>", 10_000)),
            ("comments that never end", many("<!-", 300_000)),
            ("references that never end", many("&", 500_000)),
            ("tags that never end", many("<a ", 300_000)),
            ("links in links", many("<a href=x>", 50_000)),
        ] {
            let found = read(&html, "https://x.example/");
            assert!(found.markdown.len() <= html.len() + 100, "{sentence}");
        }
        for (sentence, html) in [
            ("deep", many("<div>", 200_000)),
            ("looks", many("<i>", 100)),
            ("attributes", many(&format!("<p{}>", "/a".repeat(500)), 1)),
            ("tags", many("<p>x", 60_000)),
        ] {
            assert!(!is_tame(&html), "{sentence}");
        }
        assert!(is_tame(&many("<p>x</p>", 10_000)));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn any_text_is_read(parts in prop::collection::vec(prop::sample::select(vec![
            "<", ">", "</", "<!--", "-->", "<p>", "<pre>", "</pre>", "<a href=", "'", "\"", "x", " ", "\n", "&", "&#", "&amp;", ";", "é", "<script>",
            "</script>", "<title>", "</title>", "<h2>", "<li>", "<td>", "/", "=", "<b>", "</b>", "<table>", "<svg>",
        ]), 0..60)) {
            let html = parts.concat();
            read(&html, "https://x.example/");
            prop_assert_eq!(plain(&html), plain(&html));
        }
    }
}
