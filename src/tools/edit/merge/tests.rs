use proptest::prelude::*;

use super::*;

const FILE: &str = "\
use std::fmt;

struct A;

impl A {
    fn one(&self) -> u8 {
        let x = 1;
        x
    }

    fn two(&self) -> u8 {
        let x = 2;
        x
    }
}

fn main() {
    println!(\"{}\", A.one());
}
";

#[track_caller]
fn check(old: &str, sketch: &str, wants: &str) {
    assert_eq!(merge(old, sketch, "rust").as_deref(), Ok(wants), "{sketch}");
}

/// `FILE` with a text in it replaced.
fn with(old: &str, new: &str) -> String {
    assert_eq!(FILE.matches(old).count(), 1, "{old}");
    FILE.replace(old, new)
}

#[test]
fn a_part_goes_where_its_edges_are() {
    check(
        FILE,
        "// ... existing code ...\n    fn two(&self) -> u8 {\n        let x = 22;\n        x\n    }\n// ... existing code ...\n",
        &with("let x = 2;", "let x = 22;"),
    );
    // Marks at the start and the end may be missing.
    check(
        FILE,
        "struct A;\n\n#[derive(Debug)]\nstruct B;\n\nimpl A {\n    fn one(&self) -> u8 {",
        &with("struct A;\n", "struct A;\n\n#[derive(Debug)]\nstruct B;\n"),
    );
    check(
        FILE,
        "use std::fmt;\nuse std::io;\n\nstruct A;\n// ...\n    println!(\"{}\", A.one());\n    println!(\"done\");\n}\n",
        &with("use std::fmt;", "use std::fmt;\nuse std::io;")
            .replace("A.one());\n", "A.one());\n    println!(\"done\");\n"),
    );
}

#[test]
fn lines_between_the_edges_can_go() {
    check(
        FILE,
        "// ...\nstruct A;\n\nimpl A {\n    fn two(&self) -> u8 {\n        let x = 2;\n// ...",
        &with(
            "    fn one(&self) -> u8 {\n        let x = 1;\n        x\n    }\n\n",
            "",
        ),
    );
}

#[test]
fn a_file_keeps_how_it_ends() {
    check("a\nb\nc", "// ...\na\nB\nc\n", "a\nB\nc");
    check("a\nb\nc\n", "// ...\na\nB\nc", "a\nB\nc\n");
    check("a\nb\n\n\n", "// ...\na\nnew\nb", "a\nnew\nb\n\n\n");
}

#[test]
fn indentation_follows_the_file() {
    // All of it lost.
    check(
        FILE,
        "// ...\nfn two(&self) -> u8 {\n    let x = 2;\n    let y = x;\n    y\n}\n// ...",
        &with("let x = 2;\n        x\n", "let x = 2;\n        let y = x;\n        y\n"),
    );
    // Lost by the first line of the sketch alone.
    check(
        FILE,
        "fn two(&self) -> u8 {\n        let x = 2;\n        let y = x;\n        y\n    }\n// ...",
        &with("let x = 2;\n        x\n", "let x = 2;\n        let y = x;\n        y\n"),
    );
    // More than the file has.
    check(
        "a {\n  b\n}\n",
        "    a {\n      b\n      c\n    }\n// ...",
        "a {\n  b\n  c\n}\n",
    );
    let refused = merge(
        "\ta {\n\t\tb;\n\t}\n",
        "    a {\n        b;\n        c;\n    }\n// ...",
        "rust",
    );
    assert!(
        matches!(refused, Err(MergeRefusal::Indent { at: 1, .. })),
        "{refused:?}"
    );
}

#[test]
fn blanks_at_the_ends_of_lines_are_no_change() {
    check("a  \nb\t\nc \nd\n", "// ...\na\nb\nC\nd\n", "a  \nb\t\nC\nd\n");
    let refused = merge("a  \nb\n", "// ...\na\nb\n", "rust");
    assert!(matches!(refused, Err(MergeRefusal::Idle { .. })), "{refused:?}");
}

#[test]
fn what_fits_nowhere_is_refused_by_name() {
    for (sketch, wants) in [
        ("// ...", MergeRefusal::Empty),
        (
            "// ...\n    fn three() {\n        x\n    }\n// ...",
            MergeRefusal::Missing {
                line: "fn three() {".into(),
                at: 2,
            },
        ),
        (
            "// ...\n    fn two(&self) -> u8 {\n        let x = 9;\n        return x;\n",
            MergeRefusal::Missing {
                line: "return x;".into(),
                at: 4,
            },
        ),
        (
            "// ...\nfn main() {\n    let y = 1;\nstruct A;\n// ...",
            MergeRefusal::Apart {
                first: "fn main() {".into(),
                last: "struct A;".into(),
                at: 2,
                until: 4,
            },
        ),
        (
            "fn main() {\n    now();\n    println!(\"{}\", A.one());\n// ...\nuse std::fmt;\nuse std::io;\n\nstruct A;\n// ...",
            MergeRefusal::Order {
                line: "use std::fmt;".into(),
                at: 5,
            },
        ),
        (
            "// ...\nstruct A;\n\nimpl A {\n// ...",
            MergeRefusal::Idle {
                line: "struct A;".into(),
                at: 2,
                place: 3,
            },
        ),
    ] {
        assert_eq!(merge(FILE, sketch, "rust"), Err(wants), "{sketch}");
    }
}

#[test]
fn what_fits_twice_is_refused() {
    // Both functions end alike: where does the line go?
    let refused = merge(FILE, "// ...\n        x\n    }\n    // here\n\n    fn", "rust");
    assert!(matches!(refused, Err(MergeRefusal::Missing { .. })), "{refused:?}");
    let refused = merge("a {\n  x\n}\nb {\n  x\n}\nc\n", "// ...\n  x\n  y\n}\n// ...", "rust");
    assert_eq!(
        refused,
        Err(MergeRefusal::Doubtful {
            line: "x".into(),
            at: 2,
            place: 2,
            rival: 5
        })
    );
    assert!(refused.is_err_and(|it| it.is_ambiguous()));
    // A line more, and it is clear.
    check(
        "a {\n  x\n}\nb {\n  x\n}\nc\n",
        "// ...\nb {\n  x\n  y\n}\nc\n// ...",
        "a {\n  x\n}\nb {\n  x\n  y\n}\nc\n",
    );
}

#[test]
fn code_is_not_swallowed() {
    let between: String = (0..60).map(|it| format!("    line_{it}();\n")).collect();
    let file = format!("fn a() {{\n{between}}}\nfn b() {{}}\n");
    let refused = merge(&file, "fn a() {\n    new();\n}\nfn b() {}\n", "rust");
    assert!(matches!(refused, Err(MergeRefusal::Apart { .. })), "{refused:?}");
}

#[test]
fn a_sketch_without_marks_may_be_the_file() {
    let new = FILE.replace("A.one()", "A.two()").replace("use std::fmt;\n", "");
    check(FILE, &new, &new);
    check(FILE, new.trim_end(), &new);
    // Three of ten lines are no file: they are a part of one.
    check(
        FILE,
        "fn main() {\n    let a = A;\n    println!(\"{}\", A.one());\n}",
        &with("fn main() {\n", "fn main() {\n    let a = A;\n"),
    );
    check("", "new\n", "new\n");
    check("\n\n", "new", "new\n");
}

#[test]
fn much_that_is_alike_is_refused_at_once() {
    let file = "}\n".repeat(200_000);
    let sketch = format!("// ...\n}}\n{}}}\n// ...", "x\n".repeat(3000));
    assert_eq!(merge(&file, &sketch, "rust"), Err(MergeRefusal::Everywhere));
    let file: String = (0..100_000).map(|it| format!("{}\n}}\n", it % 50)).collect();
    let sketch: String = (0..500).map(|it| format!("// ...\n{}\nnew\n}}\n", it % 50)).collect();
    assert!(merge(&file, &sketch, "rust").is_err());
    let line = "x".repeat(1 << 20);
    check(&format!("a\n{line}\nb\n"), "// ...\na\nshort\nb\n", "a\nshort\nb\n");
}

#[test]
fn changed_lines_are_counted_as_by_the_diff() {
    // Against the longest common subsequence by the book.
    fn book(old: &[u32], new: &[u32]) -> usize {
        let mut row = vec![0_usize; new.len() + 1];
        for a in old {
            let mut corner = 0;
            for (at, b) in new.iter().enumerate() {
                let above = row[at + 1];
                row[at + 1] = if a == b { corner + 1 } else { above.max(row[at]) };
                corner = above;
            }
        }
        old.len() + new.len() - 2 * row[new.len()]
    }
    proptest!(ProptestConfig::with_cases(256), |(
        old in proptest::collection::vec(0_u32..5, 0..24),
        new in proptest::collection::vec(0_u32..5, 0..24),
        limit in 0_usize..50,
    )| {
        let wants = book(&old, &new);
        let (found, _) = distance(&old, &new, limit, usize::MAX);
        prop_assert_eq!(found, (wants <= limit).then_some(wants));
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_sketch_is_merged_or_refused(
        old in "(([ab] ?|\t?[cd{}])\n){0,12}",
        sketch in "((// \\.\\.\\.|[ab] ?|\t?[cd{}])\n){0,12}",
    ) {
        if let Ok(merged) = merge(&old, &sketch, "rust") {
            prop_assert!(!rows(&merged).iter().any(|it| it.contains("...")));
            prop_assert!(old.is_empty() || merged.ends_with('\n'));
        }
    }
}
