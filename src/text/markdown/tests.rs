#![expect(
    clippy::format_collect,
    clippy::string_slice,
    reason = "samples are short and cut where the test means it"
)]

use proptest::prelude::*;

use super::{prose::plain, *};
use crate::text::{NoColours, Role, Span, width::spans_width};

const SAMPLE: &str = include_str!("sample.md");

fn whole(source: &str, width: usize) -> Vec<StyledLine> {
    let mut rows = Vec::new();
    Flow::new(7).update(source, true, width, &NoColours, &mut rows);
    rows
}

fn picture(rows: &[StyledLine], width: usize) -> String {
    let mut text = String::new();
    for row in rows {
        let left = row.plain();
        let right: String = row.facts.iter().map(|it| it.text.as_str()).collect();
        let free = width.saturating_sub(spans_width(&row.spans) + spans_width(&row.facts));
        text.push_str(format!("{left}{}{right}", " ".repeat(free)).trim_end());
        text.push('\n');
    }
    text
}

/// Streams `source` in pieces and calls `each` with what is shown after each of them.
fn stream(
    source: &str,
    width: usize,
    pieces: impl Iterator<Item = usize>,
    mut each: impl FnMut(&Flow, &str, &[StyledLine]),
) -> Vec<StyledLine> {
    let mut flow = Flow::new(7);
    let mut rows = Vec::new();
    let mut end = 0;
    let mut before: Vec<StyledLine> = Vec::new();
    for piece in pieces {
        if end >= source.len() {
            break;
        }
        end = (end + piece.max(1)).min(source.len());
        while !source.is_char_boundary(end) {
            end += 1;
        }
        let changed = flow.update(&source[..end], false, width, &NoColours, &mut rows);
        assert!(
            before.iter().take(changed).eq(rows.iter().take(changed)),
            "rows before {changed} changed at {:?}",
            &source[..end]
        );
        each(&flow, &source[..end], &rows);
        before.clone_from(&rows);
    }
    flow.update(source, true, width, &NoColours, &mut rows);
    rows
}

fn text(rows: &[StyledLine]) -> String {
    rows.iter().map(|it| it.plain() + "\n").collect()
}

/// Text that is shown of `source` while more may come.
fn open(source: &str) -> String {
    let mut rows = Vec::new();
    Flow::new(7).update(source, false, 60, &NoColours, &mut rows);
    text(&rows).trim_end().to_owned()
}

#[test]
fn marks_are_hidden_until_they_are_decided() {
    for (source, shown) in [
        ("this is **bo", "this is bo"),
        ("this is **", "this is"),
        ("this is **bold*", "this is bold"),
        ("this is *it", "this is it"),
        ("both ***bo", "both bo"),
        ("a ~~str", "a str"),
        ("call `co", "call co"),
        ("call ``co`", "call co"),
        ("call `", "call"),
        ("see [te", "see te"),
        ("see [text]", "see text"),
        ("see [text](http", "see text"),
        ("see [text](http://x.y \"ti", "see text"),
        ("see [text](http://x.y)", "see text (x.y)"),
        ("see [text][re", "see text"),
        ("see ![al", "see"),
        ("see ![alt](http://x.y/", "see"),
        ("see <https://x.y", "see"),
        ("see <https://x.y>", "see https://x.y"),
        ("cats &am", "cats"),
        ("cats &amp;", "cats &"),
        ("a \\", "a"),
        ("a \\*", "a *"),
        ("wow!", "wow"),
        ("2 * 3", "2 * 3"),
        ("a_b_c and snake_case", "a_b_c and snake_case"),
        ("index [0] of", "index [0] of"),
        ("a < b", "a < b"),
        ("if a <b and", "if a <b and"),
        ("text\n#", "text"),
        ("text\n##", "text"),
        ("text\n## He", "text\n\nHe"),
        ("text\n-", "text"),
        ("text\n--", "text"),
        ("text\n- ", "text"),
        ("text\n- a", "text\n\n• a"),
        ("text\n- [", "text"),
        ("- a\n- [x", "• a"),
        ("- [x] do", "☑ do"),
        ("text\n1", "text"),
        ("text\n1.", "text"),
        ("text\n``", "text"),
        ("text\n```ru", "text"),
        ("- item\n\n  ```ru", "• item"),
        ("text\n>", "text"),
        ("> a\n> > ", "│ a"),
        ("> a **b", "│ a b"),
        ("***", ""),
        ("# Title #", "Title"),
        ("[a]: http://x", ""),
        ("| a | b |", ""),
        ("| a | b |\n", ""),
        ("| a | b |\n|--", ""),
        ("| a | b |\n|---|---|\n| **x** | `y", "a  b\n─  ─\nx  y"),
        ("| a | b |\n|---|---|\n|", "a  b\n─  ─"),
        ("see a | b", "see a  b"),
        ("see a | b\n", "see a  b"),
        ("see a | b\nand", "see a | b and"),
        ("see a | b\n--", "see a  b"),
        ("text\n| a", "text"),
        ("see `a | b` and", "see a | b and"),
        ("| no table\nmore", "| no table more"),
        ("```\nlet a = 1;\n``", "  let a = 1;"),
        ("```\n# not a heading", "  # not a heading"),
        ("**bold** and _it_ and `code`", "bold and it and code"),
        ("**a *b", "a b"),
        ("**a [b", "a b"),
        ("a **[b](http://x", "a b"),
    ] {
        assert_eq!(open(source), shown, "{source:?}");
    }
}

#[test]
fn an_open_mark_already_looks_like_what_it_will_be() {
    let mut rows = Vec::new();
    Flow::new(7).update("this is **bo", false, 60, &NoColours, &mut rows);
    let expected = [Span::new("this is ", Role::Text), Span::new("bo", Role::Strong).bold()];
    assert_eq!(rows, [StyledLine::of(expected)]);
}

fn check(source: &str, width: usize, expected: &str) {
    let shown = picture(&whole(source, width), width);
    assert_eq!(shown.trim_end(), expected.trim_matches('\n'), "{source}");
}

#[test]
fn the_sample_reads_well() {
    insta::assert_snapshot!(picture(&whole(SAMPLE, 40), 40));
    insta::assert_snapshot!(picture(&whole(SAMPLE, 80), 80));
}

#[test]
fn a_table_gives_way_to_narrow_screens() {
    let table = "| Step | Cost | Remark |\n|---|--:|---|\n| dry run | 2 s | nothing is written |\n| migrate | 40 s | one lock |\n";
    check(
        table,
        40,
        "
Step     Cost  Remark
───────  ────  ──────────────────
dry run   2 s  nothing is written
migrate  40 s  one lock",
    );
    check(
        table,
        24,
        "
Step     Cost  Remark
───────  ────  ─────────
dry run   2 s  nothing
               is
               written
migrate  40 s  one lock",
    );
    check(
        table,
        19,
        "
Step: dry run
Cost: 2 s
Remark: nothing is
  written

Step: migrate
Cost: 40 s
Remark: one lock",
    );
}

#[test]
fn blocks_look_calm() {
    for (source, width, expected) in [
        ("9. nine\n10. ten\n", 20, " 9. nine\n10. ten"),
        (
            "> a quote that wraps\n>\n> - item\n",
            14,
            "│ a quote that\n│ wraps\n│\n│ • item",
        ),
        ("one\ntwo  \nthree\n", 20, "one two\nthree"),
        ("```\na long line of code\n```\n", 14, "  a long line\n    of code"),
        ("```sh\nls\n```\n", 12, "  ls      sh"),
        ("- a\n\n  b\n- c\n", 20, "• a\n\n  b\n\n• c"),
        ("- [x] done\n- [ ] not\n", 20, "☑ done\n☐ not"),
        ("***\n", 60, "────────────────────────────────────────"),
        ("<b>\nraw\n</b>\n", 20, "<b>\nraw\n</b>"),
        ("Title\n=====\ntext\n", 20, "Title\n\ntext"),
        ("", 20, ""),
    ] {
        check(source, width, expected);
    }
}

#[test]
fn a_link_says_where_it_leads() {
    for (source, expected) in [
        ("[docs](https://a.b/c)", "docs (a.b)"),
        ("[https://a.b/c](https://a.b/c)", "https://a.b/c"),
        ("[see a.b](https://a.b/c)", "see a.b"),
        (
            "[https://microsoft.com](https://t.co/x)",
            "https://microsoft.com (t.co)",
        ),
        (
            "[github.com](https://github.com.evil.org)",
            "github.com (github.com.evil.org)",
        ),
        ("[github.com](https://github.com@evil.org)", "github.com (evil.org)"),
        ("<me@a.b>", "me@a.b"),
        ("[write](mailto:me@a.b)", "write (me@a.b)"),
        ("[cart](src/cart.rs:41)", "cart (src/cart.rs:41)"),
        ("[`src/cart.rs`](src/cart.rs)", "src/cart.rs"),
        ("[it](Makefile:3)", "it (Makefile:3)"),
        ("[above](#total) [C](c:x) [file](file:///etc/passwd)", "above C file"),
        ("[run](javascript:alert(1))", "run"),
        ("![a](https://a.b/c.png)", "[image: a] (a.b)"),
        ("[![a](https://i.j/c.png)](https://a.b)", "[image: a] (i.j) (a.b)"),
    ] {
        check(source, 80, expected);
    }
    for (source, linked) in [
        (
            "see https://a.b/c, and **http://d.e**.",
            &["https://a.b/c", "http://d.e"] as &[&str],
        ),
        ("`https://a.b` <b title=https://a.b>", &[]),
        ("https://github.com@evil.org", &[]),
        ("# https://a.b/c_d_e", &["https://a.b/c_d_e"]),
    ] {
        let rows = whole(source, 80);
        let links = rows.iter().flat_map(|it| &it.spans).filter(|it| it.link.is_some());
        let links: Vec<_> = links
            .map(|it| it.text.as_str())
            .filter(|it| it.contains("://"))
            .collect();
        assert_eq!(links, linked, "{source}");
        assert!(
            !text(&rows).contains(" ("),
            "{source}: no more is said of where it leads"
        );
    }
    let rows = whole("[docs](https://a.b/c) [run](javascript:x)", 80);
    let links = rows[0]
        .spans
        .iter()
        .filter_map(|it| it.link.as_deref().map(|link| (it.text.as_str(), link)));
    assert_eq!(links.collect::<Vec<_>>(), [("docs", "https://a.b/c")]);
}

#[test]
fn a_late_definition_links_when_the_document_closes() {
    let source = "see [docs]\n\nmore\n\n[docs]: https://a.b\n";
    let mut rows = Vec::new();
    let mut flow = Flow::new(7);
    for end in 0..=source.len() {
        flow.update(&source[..end], false, 60, &NoColours, &mut rows);
    }
    assert_eq!(text(&rows), "see [docs]\n\nmore\n");
    flow.update(source, true, 60, &NoColours, &mut rows);
    assert_eq!(text(&rows), "see docs (a.b)\n\nmore\n");
}

#[test]
fn an_early_definition_links_in_later_blocks() {
    let mut rows = Vec::new();
    let mut flow = Flow::new(7);
    for source in [
        "[docs]: https://a.b\n\none\n\n",
        "[docs]: https://a.b\n\none\n\ntwo\n\n",
        "[docs]: https://a.b\n\none\n\ntwo\n\nsee [docs] now",
    ] {
        flow.update(source, false, 60, &NoColours, &mut rows);
    }
    assert_eq!(text(&rows), "one\n\ntwo\n\nsee docs (a.b) now\n");
}

/// Colours as many lines as it was told to.
struct Few(std::cell::Cell<usize>);

impl Colours for Few {
    fn code(&self, _: u64, language: &str, source: &str, _: bool) -> std::sync::Arc<Vec<crate::text::CodeLine>> {
        assert_eq!(language, "rust");
        let lines = source.lines().take(self.0.get());
        std::sync::Arc::new(lines.map(|it| vec![Span::new(it, Role::Keyword)].into()).collect())
    }
}

fn coloured(rows: &[StyledLine]) -> Vec<usize> {
    let is = |row: &StyledLine| row.spans.iter().any(|it| it.role == Role::Keyword);
    rows.iter()
        .enumerate()
        .filter(|(_, row)| is(row))
        .map(|(index, _)| index)
        .collect()
}

#[test]
fn colours_that_come_later_are_picked_up() {
    for (name, source, closed) in [
        ("open code", "text\n\n```rust\na\nb\nc\n", false),
        ("closed code", "text\n\n```rust\na\nb\nc\n```\n", true),
        ("frozen code", "text\n\n```rust\na\nb\nc\n```\n\nmore\n", false),
        ("code in an open item", "text\n\n- ```rust\n  a\n  b\n  c\n", false),
        (
            "code in a frozen quote",
            "text\n\n> ```rust\n> a\n> b\n> c\n> ```\n\nmore\n",
            false,
        ),
    ] {
        let colours = Few(std::cell::Cell::new(1));
        let mut rows = Vec::new();
        let mut flow = Flow::new(7);
        flow.update(source, closed, 60, &colours, &mut rows);
        assert_eq!(coloured(&rows), [2], "{name}");
        assert_eq!(
            flow.update(source, closed, 60, &colours, &mut rows),
            rows.len(),
            "{name}"
        );
        colours.0.set(3);
        assert_eq!(flow.update(source, closed, 60, &colours, &mut rows), 3, "{name}");
        assert_eq!(coloured(&rows), [2, 3, 4], "{name}");
    }
}

#[test]
fn colours_come_while_the_code_grows() {
    let colours = Few(std::cell::Cell::new(0));
    let mut rows = Vec::new();
    let mut flow = Flow::new(7);
    let source: String = (0..20).map(|it| format!("line {it}\n")).collect();
    let source = format!("```rust\n{source}");
    for end in 8..source.len() {
        flow.update(&source[..end], false, 60, &colours, &mut rows);
        colours.0.set(source[..end].matches('\n').count() / 2);
    }
    flow.update(&source, false, 60, &colours, &mut rows);
    assert_eq!(coloured(&rows), (0..10).collect::<Vec<_>>());
}

#[test]
fn a_summary_is_the_first_line_of_prose() {
    for (source, expected) in [
        ("# The **title** of it\n\ntext", "The title of it"),
        ("- [x] do `this` [now](https://a.b)\n- that", "do this now (a.b)"),
        ("```\ncode\n```\n\nThen prose.  \nMore", "Then prose."),
        ("```\n\n  only code\n```\n", "only code"),
        ("> quoted", "quoted"),
        ("&#27;[31m red", "red"),
        ("", ""),
    ] {
        assert_eq!(&*summary(source), expected, "{source:?}");
    }
}

#[test]
fn plain_text_has_no_marks() {
    let source = "# A *title*\n\ntext `code` [link](https://a.b)\n\n1. one\n   - two\n2. [ ] three\n\n> quote\n\n```rust\nfn a() {}\n```\n\n|a|b|\n|-|-|\n|1|**2**|\n";
    let expected =
        "A title\n\ntext code link (a.b)\n\n1. one\n   • two\n☐ three\n\n> quote\n\nfn a() {}\n\na\tb\n1\t2\n";
    assert_eq!(plain(source), expected);
}

/// Shown text without what depends on widths: spaces, lines and bars.
fn squeeze(rows: &[StyledLine]) -> String {
    let text = rows.iter().flat_map(|it| &it.spans).flat_map(|it| it.text.chars());
    text.filter(|it| !it.is_whitespace() && !matches!(it, '─' | '│'))
        .collect()
}

#[test]
fn each_frame_shows_a_beginning_of_what_is_shown_in_the_end() {
    let samples = [
        SAMPLE,
        "Plain words, with (parens), a colon: and *emphasis*, **strong**, ***both***, `code` and ``co`de``.\n",
        "**Bold start** then [a link](https://a.b/c \"title\") and [an address](<https://a.b/d e>)!\n\nNext.\n",
        "- a **b\n  c** d\n- `x\n  y`\n\n1) one\n2) two\n\n   more\n",
        "> quoted *text\n> over* lines\nlazy\n\nafter\n",
        "a *b **c** d* e **f *g* h** i\n",
        "math 2 * 3 * 4, snake_case_name, __init__ and a_b\n",
        "~~~python\nx = '`' * 3\n```\n~~~\n\ntext\n",
        "| a | b |\n|---|---|\n| **x** | `y` |\n| [l](http://m.n) | z |\n\ntail\n",
        "1. one\n\n   ```sh\n   ls | wc\n   ```\n\n2. two\n",
        "Ends with a mark: *\n\n\\*not emphasis\\* &lt;tag&gt; &amp; &copy;\n",
        "Term\n====\n\nOther\n---\n\nText - with dash -- and more\n",
        "see ![a picture](https://i.j/k.png) and <https://l.m> or <b>raw</b> x\n",
        "[ref]: https://r.s\n\n[ref] and [text][ref]\n",
    ];
    for source in samples {
        let last = squeeze(&whole(source, 60));
        stream(source, 60, std::iter::repeat(1), |_, prefix, rows| {
            let shown = squeeze(rows);
            assert!(
                last.starts_with(&shown),
                "{prefix:?}\nshows {shown:?}\nbut ends as {last:?}"
            );
        });
    }
}

/// Long blocks of each kind, in pieces of ten bytes.
fn long_blocks() -> [(&'static str, String); 9] {
    let words = "some **bold words** and `code` then [a link](https://a.b/c) in a row. ";
    let lines: String = (0..2_000).map(|it| format!("    let value_{it} = {it};\n")).collect();
    let items: String = (0..800)
        .map(|it| format!("- item *number* {it} of the list\n"))
        .collect();
    let numbers: String = (0..800).map(|it| format!("{}. item number {it}\n\n", it + 1)).collect();
    let table: String = (0..800)
        .map(|it| format!("| row {it} | `cell` | {} |\n", it * 7))
        .collect();
    let quote: String = (0..800).map(|it| format!("> quoted line {it} of many\n")).collect();
    [
        ("a paragraph", words.repeat(24_000 / words.len())),
        (
            "a paragraph of lines",
            words.replace(". ", ".\n").repeat(24_000 / words.len()),
        ),
        (
            "a paragraph with a stray asterisk",
            format!("*{}", "word ".repeat(5_000)),
        ),
        ("one word", "x".repeat(24_000)),
        ("code", format!("```rust\n{lines}")),
        ("a list", items),
        ("a loose list of numbers", numbers),
        ("a table", format!("| a | b | c |\n|---|---|--:|\n{table}")),
        ("a quote", quote),
    ]
}

#[test]
fn a_long_open_block_costs_little_per_piece_and_ends_as_it_does_at_once() {
    for (name, source) in long_blocks() {
        for width in [76, 14] {
            let mut flow = Flow::new(7);
            let mut rows = Vec::new();
            let mut shown = 0;
            // The work of one piece is bound by what is laid out again for it.
            let mut work = 0;
            for end in (0..source.len()).step_by(120) {
                let before = rows.len();
                let changed = flow.update(&source[..end], false, width, &NoColours, &mut rows);
                work += before.max(rows.len()) - changed;
                shown = shown.max(rows.len());
            }
            flow.update(&source, true, width, &NoColours, &mut rows);
            let at_once = whole(&source, width);
            assert!(rows == at_once, "{name} in {width}");
            assert!(
                shown * 20 > at_once.len() * 19,
                "{name} in {width}: {shown} of {}",
                at_once.len()
            );
            let each = work * 120 / source.len();
            assert!(each < 800, "{name} in {width}: {each} rows for each piece");
        }
    }
}

#[test]
fn bombs_do_no_harm() {
    let nested: String = (0..1_000).map(|it| format!("{}- x\n", "  ".repeat(it))).collect();
    let table = format!("|a|b|\n|-|-|\n{}", "|some cell|another|\n".repeat(50_000));
    let wide = format!(
        "{}\n{}\n{}",
        "|a".repeat(20_000),
        "|-".repeat(20_000),
        "|b\n".repeat(20)
    );
    for (name, source) in [
        ("quotes", ">".repeat(5_000)),
        ("quotes with text", format!("{}x", "> ".repeat(10_000))),
        ("brackets", "[".repeat(50_000)),
        ("links in links", "[a](".repeat(20_000)),
        ("pictures", "![".repeat(20_000)),
        ("asterisks", "*".repeat(10_000)),
        ("dollars", "$".repeat(60_000)),
        ("dollars in a word", "$a".repeat(40_000)),
        ("dollars in an address", format!("https://{}", "$a/".repeat(30_000))),
        ("emphases", "*a ".repeat(50_000)),
        ("mixed emphases", "*a _b **c __d ~~e ".repeat(5_000)),
        (
            "closed emphases",
            format!("{}{}", "*a **b".repeat(5_000), "b** a*".repeat(5_000)),
        ),
        ("backticks", (1..300).map(|it| "`".repeat(it) + " ").collect()),
        ("angles", "<".repeat(50_000)),
        ("tags", "<a ".repeat(20_000)),
        ("entities", "&#".repeat(20_000)),
        ("backslashes", "\\".repeat(20_001)),
        ("nested lists", nested),
        ("lists in a line", "- ".repeat(5_000)),
        ("lists and quotes", "> - ".repeat(3_000)),
        ("a table", table),
        ("a wide table", wide),
        ("definitions", "[a]: b\n".repeat(10_000)),
        ("headings", "# x\n".repeat(5_000)),
        ("line breaks", "\n".repeat(100_000)),
        ("returns", "a\r".repeat(10_000)),
    ] {
        for width in [1, 80] {
            let rows = whole(&source, width);
            assert!(
                rows.iter().all(|it| spans_width(&it.spans) <= width),
                "{name} in {width}"
            );
        }
        let mut rows = Vec::new();
        let mut flow = Flow::new(7);
        for end in (0..=source.len()).step_by(1 + source.len() / 5) {
            flow.update(&source[..end], false, 60, &NoColours, &mut rows);
        }
        summary(&source);
        plain(&source);
    }
}

fn hidden(it: char) -> bool {
    it.is_control() && it != '\n'
}

fn markdown() -> impl Strategy<Value = String> {
    let unit = prop_oneof![
        8 => "[a-z]{1,7} ",
        4 => Just("\n".to_owned()),
        3 => Just("\n\n".to_owned()),
        1 => "[ -~]{1,5}",
        10 => proptest::sample::select(vec![
            "**", "*", "_", "`", "``", "```", "~~", "[", "](", ")", "](http://x.y/z)", "[a][b]", "\n\n[b]: http://q.r\n\n", "![", "<", "<b>", "</b>",
            "<https://x.y>", "&amp;", "&#27;", "&", "\\", "#", "# ", "## ", "- ", "\n- ", "\n  - ", "\n* ", "1. ", "\n2) ", "> ", "\n> ", ">", "---\n", "===\n", "\n---\n",
            "\n```rust\n", "\n~~~\n", "\n| a | b |\n|---|:-:|\n", "| x | y |\n", "|", "    ", "\t", "[ ] ", "[x] ", "漢字", "。", "👨‍👩‍👧‍👦", "🇩🇪", "e\u{301}", "!", ":", "\r\n",
            "$", "$$", "$x^2$", "\\(", "\\)", "\\[", "\\]", "\\(a_1\\) ", "$$\\frac{a}{b}$$", "$5 and $10 ",
        ]).prop_map(str::to_owned),
    ];
    proptest::collection::vec(unit, 0..40).prop_map(|it| it.concat())
}

/// Markdown in which each mark is closed in its place.
fn well_formed() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        6 => "[a-z]{1,6}",
        1 => "[a-z][A-Za-z0-9.,:;()'\"/-]{1,6}x",
        1 => "`[a-z*_ |<&]{1,6}z`",
        1 => Just("\\#".to_owned()),
        1 => Just("&amp;".to_owned()),
        1 => Just("<https://x.y>".to_owned()),
        1 => Just("![alt](http://x.y/z.png)".to_owned()),
        1 => Just("漢字。".to_owned()),
        1 => Just("2 * 3 < 4".to_owned()),
        1 => Just("wow! snake_case".to_owned()),
    ];
    let inline = word.prop_recursive(3, 12, 4, |inner| {
        let words = proptest::collection::vec(inner, 1..4).prop_map(|it| it.join(" "));
        (words, 0..8).prop_map(|(words, kind)| match kind {
            0 => format!("**{}**", words.replace('*', "")),
            1 => format!("*{}*", words.replace('*', "")),
            2 => format!("~~{}~~", words.replace('~', "")),
            6 => format!("_{}_", words.replace('_', "")),
            3 => format!(
                "[{}](https://x.y/{})",
                words.replace(['<', '[', ']', '!'], ""),
                words.len()
            ),
            _ => words,
        })
    });
    let line = proptest::collection::vec(inline, 1..6).prop_map(|it| it.join(" "));
    let block = (proptest::collection::vec(line, 1..4), 0..10).prop_map(|(lines, kind)| {
        let bare = |it: &str| it.replace('|', "");
        match kind {
            0 => format!("## w {}", lines[0]),
            1 => lines.iter().map(|it| format!("- w {it}\n")).collect(),
            2 => lines
                .iter()
                .enumerate()
                .map(|(index, it)| format!("{}. w {it}\n", index + 1))
                .collect(),
            3 => lines.iter().map(|it| format!("> w {it}\n")).collect(),
            4 => format!("```rust\n{}\n```", lines.join("\n")),
            5 => format!("| h | {} |\n|---|---|\n", bare(&lines[0])),
            6 => "---".to_owned(),
            7 => format!("- w {}\n  - w {}\n\n  w more", lines[0], lines[0]),
            _ => lines.iter().map(|it| format!("w {it}\n")).collect(),
        }
    });
    proptest::collection::vec(block, 1..5).prop_map(|it| it.join("\n\n") + "\n")
}

/// Markdown with many words, of which each may come alone or cut anywhere.
fn wordy() -> impl Strategy<Value = Vec<String>> {
    let words = prop_oneof![
        12 => "[a-z]{1,9}[ ,.]{0,2}",
        3 => "[ -~]{1,6}",
        3 => "[a-zA-Z0-9 ,.;?(){}'\"+=/%$@^-]{1,30}",
        2 => proptest::sample::select(vec!["漢字", "かな。", "한글 ", "ß", "é", "e\u{301}", "\u{301}", "👍", "\u{200d}", "\u{fe0f}", "…", "\u{a0}", "\u{1b}[3", "&#27;[", "&#x9d;0;", "\u{7f}"]).prop_map(str::to_owned),
        6 => markdown().prop_map(|it| it.chars().take(24).collect::<String>()),
        1 => ("[a-z]{1,5} ", 20_usize..300).prop_map(|(word, times)| word.repeat(times)),
    ];
    proptest::collection::vec(words, 1..60)
}

/// Checks that each update gives the same with and without the short way for words; returns how often that was taken.
fn both_ways(pieces: &[String], width: usize) -> usize {
    let (mut short, mut long) = (Flow::new(7), Flow::new(7));
    let (mut rows, mut expected) = (Vec::new(), Vec::new());
    let mut source = String::new();
    let mut taken = 0;
    for piece in pieces {
        source.push_str(piece);
        let before = rows.clone();
        let waits = short.words.is_some();
        long.place = None;
        let first = short.update(&source, false, width, &NoColours, &mut rows);
        taken += usize::from(waits && piece.chars().all(words::is_word));
        long.words = None;
        long.update(&source, false, width, &NoColours, &mut expected);
        assert_eq!(rows, expected, "{piece:?} at the end of {source:?} in {width}");
        assert!(before.iter().take(first).eq(rows.iter().take(first)), "{source:?}");
    }
    short.update(&source, true, width, &NoColours, &mut rows);
    long.update(&source, true, width, &NoColours, &mut expected);
    assert_eq!(rows, expected, "closed {source:?} in {width}");
    taken
}

#[test]
fn words_are_added_as_they_are_read() {
    for (name, pieces) in [
        (
            "a tag that the next word completes",
            &["text <di", "v ", "a> x"] as &[&str],
        ),
        ("a definition", &["text\n\n[a]: ht", "tp", " x", "\n\nc d", "e"]),
        ("a definition's title", &["[a]: b\n'tit", "le'", " x", "\n\nc d", "e"]),
        ("an entity", &["a &am", "p", "; b"]),
        ("an entity of an escape", &["a &#27;[3", "1", "m b"]),
        ("a heading", &["# a b", "c", " d ", "e"]),
        ("a heading that ends", &["# a b #", "c", " d ", "e"]),
        ("a mark that is open", &["a **b", "c d ", "e", "** f", " g"]),
        (
            "marks that are open",
            &["2) _y **l o s **===\nj wiz", "m,", "n", ",", "o"],
        ),
        ("code that is open", &["a `b", " c ", " ", "d` e", "f"]),
        ("a link that is open", &["a [b", " c", "d](https://e.f", "g) h", "i"]),
        ("an address", &["see https", "://a.b/c", "d", " e", "f"]),
        (
            "an address that is none yet",
            &["see https://a_b", ".c", ".d", " e", "f"],
        ),
        ("an address in a sentence", &["it (see https://a.b", ").", " e", "f"]),
        ("an item", &["- a b", " c", "\n- [x] d", "e f ", "g"]),
        ("an item's next line", &["- a b\n  c", " d", " ", "e"]),
        ("a quote", &["> a b", " c\n> d", "e f ", "g"]),
        ("a table", &["a | b\n--- | ---\nc", " d", " | e", "f"]),
        ("the head of a table", &["see a | b", "c", " d", "\ne", "f"]),
        ("signs that join", &["a e", "\u{301}", "b"]),
        ("a wide word", &["漢", "字漢字漢字漢字漢字漢字漢字漢", "字"]),
        (
            "a word that is broken",
            &["/usr/lib", "/some-thing/else-where/again-and/", "again"],
        ),
        ("spaces at the border", &["aaaaaaaa bbbb", "  ", "  ", "c", " ", " d"]),
        (
            "a break in the paragraph",
            &["a b  \nc", " d", "e f g h i j k l m n o p q"],
        ),
    ] {
        let pieces: Vec<_> = pieces.iter().map(|it| (*it).to_owned()).collect();
        let letters: Vec<_> = pieces.concat().chars().map(|it| it.to_string()).collect();
        for width in [1, 2, 3, 8, 13, 14, 15, 60] {
            both_ways(&pieces, width);
            assert!(both_ways(&letters, width) > 0 || width < 8, "{name} in {width}: never");
        }
    }
}

#[test]
fn simple_formulas_are_shown_as_signs_and_nothing_else_is_taken_for_one() {
    for (source, shown) in [
        ("so $x^2 + y^2 = z^2$ holds", "so x² + y² = z² holds"),
        (r"so \(a_1 \le a_2\), always", "so a₁ ≤ a₂, always"),
        (r"\[\sum_{i=1}^n i\]", "∑ᵢ₌₁ⁿ i"),
        (r"$$\frac{a}{b}$$", "a/b"),
        ("$5 and $10", "$5 and $10"),
        ("$HOME_A/$USER", "$HOME_A/$USER"),
        (r"`$x^2$` and `\(x\)`", r"$x^2$ and \(x\)"),
        (r"\[not a link\] and \(an aside\)", "[not a link] and (an aside)"),
        (r"a $\strange{x}$ b", r"a $\strange{x}$ b"),
        (r"a \(\strange{x}\) b", r"a \(\strange{x}\) b"),
        (r"a \( b", "a ( b"),
        (r"costs \$5 and \$6", "costs $5 and $6"),
        ("$5, or `$HOME` and **$6**, $x$", "$5, or $HOME and $6, x"),
        (r"it costs $5, so \(x = 5\)", "it costs $5, so x = 5"),
        ("[a](https://x.y/$1)", "a (x.y)"),
        ("$a$b", "$a$b"),
    ] {
        let rows = whole(source, 90);
        let lines: Vec<String> = rows.iter().map(StyledLine::plain).collect();
        assert_eq!(lines.join("\n").trim_end(), shown, "{source}");
    }
    let rows = whole("$$\n\\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix}\n$$", 90);
    let lines: Vec<String> = rows.iter().map(|it| it.plain().trim_end().to_owned()).collect();
    assert_eq!(lines, ["⎛1  2⎞", "⎝3  4⎠"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn words_are_added_as_they_are_read_in_any_text(pieces in wordy(), width in 1_usize..100, size in 0_usize..12) {
        if size == 0 {
            both_ways(&pieces, width);
        } else {
            let letters: Vec<char> = pieces.concat().chars().collect();
            let pieces: Vec<String> = letters.chunks(size).map(|it| it.iter().collect()).collect();
            both_ways(&pieces, width);
        }
    }

    #[test]
    fn streamed_it_ends_as_it_does_at_once(source in markdown(), width in 1_usize..120, piece in 1_usize..9) {
        let streamed = stream(&source, width, std::iter::repeat(piece), |_, _, rows| {
            let wide = rows.iter().find(|it| spans_width(&it.spans) > width);
            assert_eq!(wide, None, "in {width} columns");
        });
        prop_assert_eq!(text(&streamed), text(&whole(&source, width)));
        prop_assert_eq!(streamed, whole(&source, width));
    }

    #[test]
    fn each_frame_of_well_formed_markdown_shows_a_beginning_of_the_end(source in well_formed()) {
        let last = squeeze(&whole(&source, 90));
        stream(&source, 90, std::iter::repeat(1), |_, prefix, rows| {
            let shown = squeeze(rows);
            assert!(last.starts_with(&shown), "{prefix:?}\nshows {shown:?}\nbut ends as {last:?}");
        });
    }

    #[test]
    fn frozen_rows_never_change(source in markdown(), width in 8_usize..60) {
        let mut frozen: Vec<StyledLine> = Vec::new();
        stream(&source, width, std::iter::repeat(1), |flow, prefix, rows| {
            assert!(rows.get(..frozen.len()) == Some(&frozen[..]), "at {prefix:?}");
            frozen = rows[..flow.frozen.rows].to_vec();
        });
    }

    #[test]
    fn no_control_character_gets_through(codes in proptest::collection::vec(0_u32..0x2100, 1..20), width in 1_usize..300) {
        let entities: String = codes.iter().map(|it| format!("&#{it};`&#{it};`[x&#x{it:x};](http://x.y/&#{it};) ")).collect();
        for row in whole(&entities, width) {
            for span in row.spans {
                prop_assert_eq!(&*crate::text::clean::sanitize(&span.text), &*span.text);
                prop_assert!(!span.text.contains(hidden));
                prop_assert!(span.link.is_none_or(|it| it.is_ascii() && !it.contains(char::is_control)));
            }
        }
    }
}

#[test]
fn blanks_where_a_fence_breaks_off_are_no_line_of_code() {
    for source in [
        "a\n```\n\n ",
        "a\n```\nb\n\t",
        "```\nb\n  ",
        "```\nb\n     ",
        "```\n   ",
        " ```\n\n  ",
        "a\n```\n```\t\n",
        "```\nb\n``` \t\nc\n```  \r\nd",
    ] {
        let mut whole = Vec::new();
        Flow::new(1).update(source, true, 40, &NoColours, &mut whole);
        for cut in (1..source.len()).filter(|&at| source.is_char_boundary(at)) {
            let (mut flow, mut rows) = (Flow::new(1), Vec::new());
            flow.update(&source[..cut], false, 40, &NoColours, &mut rows);
            flow.update(source, false, 40, &NoColours, &mut rows);
            flow.update(source, true, 40, &NoColours, &mut rows);
            assert_eq!(rows, whole, "{source:?} cut at {cut}");
        }
    }
}

#[test]
fn what_comes_in_two_pieces_is_shown_as_if_it_came_in_one() {
    for source in [
        "see [a][b]\n> \n\n[b]: http://q.r/x\n\nend",
        "see [a][b]\n~~~\n\n~~~\n\n\n[b]: http://q.r\n\n",
        "```\n\\[$\\] \\($x$\\) $x$\\(a\\)$y$\n\\[\na\n\\]\n```\n",
        "    \\[\na \\(a_1\\) \n",
        "    \\[\n\\] a\n\n    \\[\n    b\n\\]\n\\[\nx^2\n\\]\n",
    ] {
        for cut in 1..source.len() {
            let (mut flow, mut rows) = (Flow::new(1), Vec::new());
            flow.update(&source[..cut], false, 40, &NoColours, &mut rows);
            flow.update(source, false, 40, &NoColours, &mut rows);
            flow.update(source, true, 40, &NoColours, &mut rows);
            assert_eq!(rows, whole(source, 40), "{source:?} cut at {cut}");
        }
    }
}
