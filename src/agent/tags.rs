//! Text of others inside our tags: it may not close the tag that it stands in, nor open one of ours.
//!
//! Only the `<` of a tag that we use is changed, and only in such text; everything else stays as it was written, because
//! the model is to see files as they are. So our own tags have names that files seldom have.

use crate::text::WordList;
use std::borrow::Cow;

/// Every tag that a model is told something in. A tag that is missing here could be forged.
pub const TAGS: WordList = WordList(
    "agent_requestable_workspace_rule agent_requestable_workspace_rules available_skills always_applied_workspace_rule
     always_applied_workspace_rules ask_mode attached_file attached_files attached_folder
     auto_attached_workspace_rule citing_code client_context command_output commit_patch communication conversation_summary
     debug_mode earlier_conversation earlier_subjects edit_history git_status hook_context included_file linter_errors making_code_changes
     manual_workspace_rule maximize_context_understanding maximize_parallel_tool_calls mcp_instructions mcp_prompt mcp_resource mcp_result mcp_server mcp_tools
     nested_workspace_rule no_tools open_and_recently_viewed_files plan_mode project_layout quoted_document rules
     rules_not_loaded rules_update side_question skill_content system_reminder task_management tool_calling long_work model_guidance using_git user_info user_query user_rule
     user_rules",
);

/// More blanks than this in front of a name, and it is no tag; it also keeps the search linear.
const FILLER_CHARS: usize = 64;

/// The text with the `<` of every tag of ours made harmless.
///
/// A tag counts whatever its case, with `-` for `_`, and with blanks around its slash.
pub fn guard(text: &str) -> Cow<'_, str> {
    let mut safe = String::new();
    let mut kept = 0;
    for (at, _) in text.match_indices('<') {
        if is_tag(text.get(at + 1..).unwrap_or_default()) {
            safe.push_str(text.get(kept..at).unwrap_or_default());
            safe.push_str("&lt;");
            kept = at + 1;
        }
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(text.get(kept..).unwrap_or_default());
    Cow::Owned(safe)
}

/// Returns true if the text after a `<` makes it one of our tags.
fn is_tag(rest: &str) -> bool {
    let is_filler = |it: char| it == '/' || it.is_whitespace() || it.is_control() || is_unseen(it);
    let mut chars = rest.char_indices().take(FILLER_CHARS);
    let Some((start, _)) = chars.find(|(_, it)| !is_filler(*it)) else {
        return false;
    };
    let name = rest.get(start..).unwrap_or_default();
    let mut name = name.chars().filter(|it| !is_unseen(*it)).map(|it| match it {
        '-' => '_',
        it => it.to_ascii_lowercase(),
    });
    // Two tags that begin alike are told apart by what follows the shorter one.
    let name: String = name
        .by_ref()
        .take(64)
        .take_while(|it| it.is_ascii_alphanumeric() || *it == '_')
        .collect();
    TAGS.contains(&name)
}

/// Characters that take no room: a reader, of flesh or not, may well skip them.
fn is_unseen(it: char) -> bool {
    matches!(it, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// The text of others inside a tag of ours.
pub fn wrap(tag: &'static str, foreign: &str) -> String {
    wrap_ours(tag, &guard(foreign))
}

/// Our own text, or text that was guarded, inside a tag.
pub fn wrap_ours(tag: &'static str, text: &str) -> String {
    debug_assert!(TAGS.contains(tag), "{tag} could be forged");
    format!("<{tag}>\n{}\n</{tag}>", text.trim_matches('\n'))
}

/// The text of others inside a tag that says in attributes what it is.
pub fn wrap_with(tag: &'static str, attributes: &[(&str, &str)], foreign: &str) -> String {
    debug_assert!(TAGS.contains(tag), "{tag} could be forged");
    let mut said = String::new();
    for (name, value) in attributes {
        said.push_str(&format!(" {name}=\"{}\"", attribute(value)));
    }
    let foreign = guard(foreign);
    format!("<{tag}{said}>\n{}\n</{tag}>", foreign.trim_matches('\n'))
}

/// A value that can neither end its quotes nor its line.
fn attribute(value: &str) -> String {
    let mut safe = String::new();
    for it in value.chars() {
        match it {
            '"' => safe.push_str("&quot;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            it => push_visible(it, &mut safe),
        }
    }
    safe
}

/// A name of a file on one line: what could break the line, hide in it or begin a tag is written out.
pub fn name(text: &str) -> String {
    let mut shown = String::new();
    for it in text.chars() {
        match it {
            '<' => shown.push_str("&lt;"),
            it => push_visible(it, &mut shown),
        }
    }
    shown
}

fn push_visible(it: char, shown: &mut String) {
    let is_odd = it.is_control()
        || is_unseen(it)
        || matches!(it, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if is_odd {
        shown.extend(it.escape_default());
    } else {
        shown.push(it);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_tags_of_ours_are_changed() {
        for (text, want) in [
            ("a < b && c > d", "a < b && c > d"),
            ("</rules>", "&lt;/rules>"),
            ("<RULES>", "&lt;RULES>"),
            ("< / User_Query >", "&lt; / User_Query >"),
            ("<system-reminder>", "&lt;system-reminder>"),
            ("<system_reminder now=\"1\">", "&lt;system_reminder now=\"1\">"),
            ("<ru\u{200b}les>", "&lt;ru\u{200b}les>"),
            ("</\nuser_info>", "&lt;/\nuser_info>"),
            ("<ruleset>", "<ruleset>"),
            ("<user_query_2>", "<user_query_2>"),
            ("Vec<Rules>", "Vec&lt;Rules>"),
            ("<<rules>", "<&lt;rules>"),
            ("<p>&lt;rules></p>", "<p>&lt;rules></p>"),
            ("<", "<"),
            ("</", "</"),
            ("", ""),
        ] {
            assert_eq!(guard(text), want, "{text}");
        }
    }

    #[test]
    fn names_stay_on_their_line() {
        assert_eq!(name("a\nb\u{1b}[31m\u{202e}c"), "a\\nb\\u{1b}[31m\\u{202e}c");
        assert_eq!(name("</project_layout>"), "&lt;/project_layout>");
        assert_eq!(name("grüße 日本.rs"), "grüße 日本.rs");
        let said = wrap_with("attached_file", &[("path", "a\"><b>\n")], "x");
        assert_eq!(
            said,
            "<attached_file path=\"a&quot;&gt;&lt;b&gt;\\n\">\nx\n</attached_file>"
        );
    }

    #[test]
    fn a_flood_of_angles_takes_no_square() {
        let flood = "<".repeat(1 << 20) + &" ".repeat(1 << 20);
        assert_eq!(guard(&flood), flood);
    }

    /// Pieces that forgeries are made of.
    fn hostile() -> impl Strategy<Value = String> {
        let tag = prop::sample::select(TAGS.iter().collect::<Vec<_>>()).prop_map(str::to_owned);
        let piece = prop_oneof![
            3 => tag,
            3 => prop::sample::select(vec!["<", "</", "< /", ">", "-", "_", " ", "\n", "&lt;", "\u{200b}"])
                .prop_map(str::to_owned),
            1 => "\\PC{0,4}",
        ];
        prop::collection::vec(piece, 0..24).prop_map(|it| it.concat())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Read by somebody who knows nothing of the guard: case folded, blanks and unseen characters dropped.
        #[test]
        fn no_text_closes_or_opens_a_tag(text in hostile()) {
            let inside = guard(&text).into_owned();
            let folded: String = inside
                .to_lowercase()
                .replace('-', "_")
                .chars()
                .filter(|it| !it.is_whitespace() && !is_unseen(*it))
                .collect();
            for tag in TAGS.iter() {
                for forged in [format!("<{tag}>"), format!("</{tag}>")] {
                    prop_assert!(!folded.contains(&forged), "{forged} in {inside}");
                }
            }
            prop_assert_eq!(guard(&inside), inside.as_str(), "once is enough");
            prop_assert_eq!(inside.replace("&lt;", "<"), text.replace("&lt;", "<"), "nothing else changes");
        }

        #[test]
        fn what_is_wrapped_has_one_end(text in hostile(), value in hostile()) {
            let said = wrap_with("attached_file", &[("path", &value)], &text);
            prop_assert_eq!(said.matches("</attached_file>").count(), 1);
            let opened = [" ", "\n", ">", "/"].map(|it| said.matches(&format!("<attached_file{it}")).count());
            prop_assert_eq!(opened.iter().sum::<usize>(), 1);
            prop_assert_eq!(said.lines().next().map(|it| it.matches('>').count()), Some(1));
        }
    }
}
