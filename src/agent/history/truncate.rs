//! Results cut to what the user wants of a tool: a model with a small window has no room for all that one can give.

use std::sync::Arc;

use crate::{models::CallResult, tools::Tool};

/// A command's output that is cut keeps its end; one part in this many goes to the beginning.
const HEAD_SHARE: usize = 4;

/// The limit of a result.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The tool that gave it; `None`: there is no such tool.
    pub tool: Option<Arc<Tool>>,
    /// Maximum size of the result in bytes, as the user wants it; `None`: no limit.
    pub most: Option<u64>,
}

/// Cuts the results of one message. `bounds` are those of the results, in their order.
pub fn fit(results: &mut [CallResult], bounds: &[Bound]) {
    for (result, bound) in results.iter_mut().zip(bounds) {
        let most = bound.most.and_then(|it| usize::try_from(it).ok());
        if let (Some(most), Some(tool)) = (most.filter(|it| result.text.len() > *it), &bound.tool) {
            cut(result, tool, most);
        }
    }
}

fn cut(result: &mut CallResult, tool: &Tool, most: usize) {
    let text = std::mem::take(&mut result.text);
    let from = if tool.keeps_end { most - most / HEAD_SHARE } else { 0 };
    let head = lines(text.get(..text.floor_char_boundary(most - from)).unwrap_or_default());
    let tail = text
        .get(text.ceil_char_boundary(text.len() - from)..)
        .unwrap_or_default();
    let tail = match tail.split_once('\n') {
        Some((part, rest)) if part.len() < tail.len() / 2 => rest,
        Some(_) | None => tail,
    };
    let gap = if tail.is_empty() { "" } else { "\n[…]\n" };
    result.text = format!(
        "{head}{gap}{tail}\n[cut: {} of {} bytes shown, as tools.{}.max_bytes wants; ask for less at a time]",
        head.len() + tail.len(),
        text.len(),
        tool.name,
    );
}

/// Whole lines, where they are not very long.
fn lines(text: &str) -> &str {
    match text.rsplit_once('\n') {
        Some((whole, part)) if part.len() < text.len() / 2 => whole,
        Some(_) | None => text,
    }
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;
    use proptest::prelude::*;

    use super::*;
    use crate::tools::built_in;

    fn result(text: &str) -> CallResult {
        CallResult {
            call: "a".to_owned(),
            name: "x".to_owned(),
            text: text.to_owned(),
            is_error: false,
            images: Vec::new(),
        }
    }

    fn bound(tool: &str, most: Option<u64>) -> Bound {
        Bound {
            tool: built_in().get(tool).cloned(),
            most,
        }
    }

    fn fitted(texts: &[(&str, &str)], most: Option<u64>) -> Vec<String> {
        let mut results: Vec<_> = texts.iter().map(|it| result(it.1)).collect();
        let bounds: Vec<_> = texts.iter().map(|it| bound(it.0, most)).collect();
        fit(&mut results, &bounds);
        results.into_iter().map(|it| it.text).collect()
    }

    #[test]
    fn a_result_is_cut_at_a_line_and_says_what_is_missing() {
        let text = "1|one\n2|two\n3|three\n4|four";
        for (tool, most, want) in [
            ("read_file", 26, text.to_owned()),
            (
                "read_file",
                15,
                "1|one\n2|two\n[cut: 11 of 26 bytes shown, as tools.read_file.max_bytes wants; ask for less at a time]".to_owned(),
            ),
            (
                "run_terminal_cmd",
                20,
                "1|one\n[…]\n3|three\n4|four\n[cut: 19 of 26 bytes shown, as tools.run_terminal_cmd.max_bytes wants; ask for less at a time]"
                    .to_owned(),
            ),
        ] {
            assert_eq!(fitted(&[(tool, text)], Some(most)), [want]);
        }
        // One long line is cut where it is long enough.
        let long = fitted(&[("grep", &"é".repeat(100))], Some(21));
        assert!(
            long[0].starts_with("éééééééééé\n[cut: 20 of 200 bytes shown, "),
            "{}",
            long[0]
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn whatever_comes_is_not_longer_than_it_may_be(
            texts in prop::collection::vec("[a-zé\n]{0,300}", 1..6),
            most in 1_u64..400,
            is_command: bool,
        ) {
            let tool = if is_command { "run_terminal_cmd" } else { "grep" };
            let mut results: Vec<_> = texts.iter().map(|it| result(it)).collect();
            fit(&mut results, &vec![bound(tool, Some(most)); texts.len()]);
            for (before, after) in texts.iter().zip(&results) {
                let said = after.text.rsplit_once("\n[cut: ").map_or(after.text.len(), |(it, _)| it.len());
                prop_assert!(said as u64 <= most + "\n[…]\n".len() as u64);
                prop_assert!(after.text == *before || after.text.contains("[cut: "));
            }
        }
    }
}
