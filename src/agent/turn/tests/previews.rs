//! What language servers say of a proposal before the user is asked about it.

use pretty_assertions::assert_eq;

use super::*;

fn begin() -> Talk {
    let mut said = submission("hi");
    said.policy.run = RunMode::Ask;
    Talk::of(said)
}

/// A proposal that is to be looked at first.
fn wanting(job: u64) -> Input {
    let Input::Prepared {
        job,
        result: Ok(prepared),
    } = proposing(job)
    else {
        unreachable!("it is prepared")
    };
    let preview = Preview::Wanted;
    Input::Prepared {
        job,
        result: Ok(Prepared { preview, ..prepared }),
    }
}

fn previewed(job: u64, errors: usize) -> Input {
    let problems: Vec<Value> = (0..errors).map(|_| json!({ "filePath": "b.rs" })).collect();
    Input::Previewed {
        job: JobId(job),
        report: ProposalReport {
            errors,
            text: (0..errors)
                .map(|_| "New lint errors in `b.rs`:\n1:1 error: x")
                .collect(),
            checked: Some(json!({
                "isPending": false, "isChecked": true, "newProblems": errors, "fixedProblems": 0,
                "problems": problems, "unchecked": [],
            })),
        },
    }
}

/// The next call of a change, as it is after the look.
fn looked_at(talk: &mut Talk, job: u64, arguments: Value, errors: usize) -> String {
    talk.all([
        call(&job.to_string(), "change", arguments),
        ends(EndReason::ToolUse),
        wanting(job),
    ]);
    assert_eq!(show(&talk.effects), format!("preview {job}"), "nobody is asked before");
    talk.says(previewed(job, errors))
}

#[test]
fn the_question_about_a_change_has_what_was_found() {
    let mut talk = begin();
    let asked = looked_at(&mut talk, 1, json!({}), 0);
    assert!(asked.contains("+1 clarification"), "{asked}");
    let subject = talk.effects.iter().find_map(|it| match it {
        Effect::Append(Event::MetadataDelta { metadata, .. }) => metadata.get("subject").cloned(),
        _ => None,
    });
    let checked = subject.and_then(|it| it.pointer("/metadata/checked/newProblems").cloned());
    assert_eq!(checked, Some(json!(0)));
    assert_eq!(talk.says(previewed(1, 1)), "", "one report is all");
    let made = talk.says(answer("doc_001", "allow_once"));
    assert!(made.ends_with("make 1"), "{made}");
}

#[test]
fn a_change_that_brings_errors_is_sent_back_at_most_three_times() {
    let mut talk = begin();
    for at in 1..=3 {
        let shown = looked_at(&mut talk, at, json!({ "at": at }), 1);
        assert!(!shown.contains("clarification") && shown.contains("failed"), "{shown}");
        let result = talk.results().remove(0);
        assert!(
            result.contains("EDIT_BRINGS_ERRORS") && result.contains("New lint errors in `b.rs`:\n1:1 error: x"),
            "{result}"
        );
    }
    let asked = looked_at(&mut talk, 4, json!({ "at": 4 }), 1);
    assert!(asked.contains("clarification"), "{asked}");
    // Whoever has decided on one is not asked about the next before it was sent back.
    let document = talk.effects.iter().find_map(|it| match it {
        Effect::Append(Event::DocumentStart(start)) => Some(start.id.to_string()),
        _ => None,
    });
    talk.says(answer(&document.expect("a question"), "reject_once"));
    let result = talk.results().remove(0);
    assert!(
        result.contains("rejected") && result.contains("the user has seen them:\nNew lint errors"),
        "{result}"
    );
    let shown = looked_at(&mut talk, 5, json!({ "at": 5 }), 1);
    assert!(!shown.contains("clarification"), "{shown}");
}

#[test]
fn the_same_change_again_is_shown_with_its_errors() {
    let mut talk = begin();
    looked_at(&mut talk, 1, json!({ "at": 1 }), 2);
    let asked = looked_at(&mut talk, 2, json!({ "at": 1 }), 2);
    assert!(asked.contains("clarification"), "{asked}");
}

#[test]
fn errors_that_a_later_change_of_the_message_may_mend_are_no_reason_to_send_one_back() {
    let mut talk = begin();
    talk.all([
        call("a", "change", json!({ "at": 1 })),
        call("b", "change", json!({ "at": 2 })),
        ends(EndReason::ToolUse),
        wanting(1),
    ]);
    let asked = talk.says(previewed(1, 1));
    assert!(asked.contains("+1 clarification"), "{asked}");
    talk.all([answer("doc_001", "allow_once"), ran(1, "")]);
    talk.says(wanting(2));
    let shown = talk.says(previewed(2, 1));
    assert!(!shown.contains("clarification"), "{shown}");
}

#[test]
fn a_rule_that_allows_a_change_needs_no_look() {
    let mut talk = Talk::begin();
    talk.all([call("a", "change", json!({})), ends(EndReason::ToolUse)]);
    assert_eq!(talk.says(wanting(1)), "make 1");
    let mut talk = begin();
    talk.all([call("a", "change", json!({})), ends(EndReason::ToolUse), wanting(1)]);
    let end = talk.says(Input::Cancel);
    assert!(end.starts_with("stop jobs") || end.contains("| stop jobs"), "{end}");
    assert_eq!(talk.says(previewed(1, 1)), "", "nobody waits for it");
}
