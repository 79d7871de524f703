use super::*;

const OLD: &str = "fn a() {\n    1\n}\n\nfn b() {\n    2\n}\n\nfn c() {\n    3\n}\n";
const SKETCH: &str = "// ... existing code ...\nfn b() {\n    22\n}\n// ... existing code ...\n";

fn task() -> Task<'static> {
    Task {
        old: OLD,
        sketch: SKETCH,
        instructions: "I change b.",
        language: "rust",
    }
}

fn judge(answer: &str) -> Result<String, Unfit> {
    accept(&task(), answer, |_| None)
}

#[test]
fn a_whole_file_is_taken_however_it_is_wrapped() {
    let new = OLD.replace("    2\n", "    22\n");
    for answer in [
        new.clone(),
        new.trim_end().to_owned(),
        format!("<updated-code>{new}</updated-code>"),
        format!("Here it is:\n<updated-code>\n{new}</updated-code>\nDone."),
        format!("```rust\n{new}```"),
        format!("\n````\n{new}\n````\n"),
        format!("<updated-code>\n```rust\n{new}```\n</updated-code>"),
        new.replace('\n', "\r\n"),
    ] {
        assert_eq!(
            judge(&answer).map(|it| it.trim_end().to_owned()),
            Ok(new.trim_end().to_owned()),
            "{answer}"
        );
    }
}

#[test]
fn what_cannot_be_believed_is_not_taken() {
    let new = OLD.replace("    2\n", "    22\n");
    for (answer, wants) in [
        (String::new(), Unfit::Empty),
        ("```\n\n```".to_owned(), Unfit::Empty),
        (OLD.to_owned(), Unfit::Idle),
        (format!("<updated-code>{new}"), Unfit::Cut),
        (format!("```rust\n{new}"), Unfit::Cut),
        (
            new.replace("fn a() {\n    1\n}", "// ... existing code ..."),
            Unfit::Mark("// ... existing code ...".to_owned()),
        ),
    ] {
        assert_eq!(judge(&answer), Err(wants), "{answer}");
    }
    for (answer, wants) in [
        (
            OLD.replace("    2\n", "    23\n"),
            "it has the line `23`, which is neither",
        ),
        (
            "fn b() {\n    22\n}\n".to_owned(),
            "it lacks line 1 of the file, `fn a() {`",
        ),
        (
            new.replace("fn a() {\n    1\n}\n", ""),
            "it lacks line 1 of the file, `fn a() {`",
        ),
        (
            new.replace("\nfn c() {\n    3\n}\n", ""),
            "it lacks line 11 of the file, `}`",
        ),
        (
            new.replace("    3\n", "    33\n"),
            "it has the line `33`, which is neither",
        ),
        (
            new.replace("    22\n", "        22\n    \n")
                .replace("    1\n", "  1\n"),
            "it has the line `1`",
        ),
        (
            format!("{new}// Done.\n"),
            "it has the line `// Done.`, which is neither",
        ),
        (
            new.replace("}\n\nfn c", "}\nfn b() {\n    22\n}\n\nfn c"),
            "is not the file with the sketch in it",
        ),
    ] {
        let unfit = judge(&answer).expect_err(&answer).to_string();
        assert!(unfit.contains(wants), "{unfit}\n{answer}");
    }
}

/// What a sketch of `OLD` and the answer come to: the whole answer, or a part of the reason.
#[track_caller]
fn check(sketch: &str, instructions: &str, answer: &str, wants: Result<(), &str>) {
    let task = Task {
        sketch,
        instructions,
        ..task()
    };
    match (accept(&task, answer, |_| None), wants) {
        (Ok(text), Ok(())) => assert_eq!(text, answer, "{sketch}"),
        (Err(unfit), Err(wants)) => assert!(unfit.to_string().contains(wants), "{unfit}\n{sketch}"),
        (judged, wants) => panic!("{judged:?}, wants {wants:?}\n{sketch}"),
    }
}

#[test]
fn a_part_without_unchanged_lines_has_few_places() {
    let new = "fn d() {\n    4\n}\n";
    let sketch = format!("// ...\n{new}// ...\n");
    check(&sketch, "", &format!("{OLD}\n{new}"), Ok(()));
    check(&sketch, "", &OLD.replace("fn b", &format!("{new}\nfn b")), Ok(()));
    // Inside of a function, or in place of one.
    check(
        &sketch,
        "",
        &OLD.replace("    2\n", &format!("    2\n{new}")),
        Err("says where `fn d() {` belongs"),
    );
    check(
        &sketch,
        "",
        &OLD.replace("fn b() {\n    2\n}\n", new),
        Err("lacks line 5 of the file, `fn b() {`"),
    );
    // It declares what is there.
    let sketch = "// ...\nfn b(x: u8) {\n    x\n}\n// ...\n";
    let whole = "fn b(x: u8) {\n    x\n}\n";
    check(sketch, "", &OLD.replace("fn b() {\n    2\n}\n", whole), Ok(()));
    check(
        sketch,
        "",
        &format!("{OLD}\n{whole}"),
        Err("keeps the old form of `b` beside the new one"),
    );
    check(
        "// ...\n    call();\n// ...\n",
        "",
        &OLD.replace("    2\n", "    2\n    call();\n"),
        Err("says where `call();`"),
    );
    // An import comes to imports, or to the top.
    let sketch = "use a::B;\n// ...\n";
    check(sketch, "", &format!("use a::B;\n{OLD}"), Ok(()));
    check(
        sketch,
        "",
        &OLD.replace("fn b", "use a::B;\nfn b"),
        Err("says where `use a::B;`"),
    );
}

#[test]
fn what_fits_twice_needs_a_sign() {
    let old = "impl A {\n    fn go() {\n        x\n    }\n}\n\nimpl B {\n    fn go() {\n        x\n    }\n}\n";
    let change = |at: usize| {
        let (before, after) = old.split_at(old.match_indices("        x\n").nth(at).expect("it is there").0);
        format!("{before}{}", after.replacen("        x\n", "        x\n        y\n", 1))
    };
    let judge = |sketch: &str, instructions: &str, at: usize| {
        let task = Task {
            old,
            sketch,
            instructions,
            language: "rust",
        };
        accept(&task, &change(at), |_| None)
    };
    let sketch = "// ...\n    fn go() {\n        x\n        y\n    }\n// ...\n";
    for at in [0, 1] {
        let unfit = judge(sketch, "I add y.", at).expect_err("nothing says which");
        assert!(unfit.to_string().contains("nothing says which is meant"), "{unfit}");
    }
    assert!(judge(sketch, "I add y to B.", 0).is_err());
    assert!(judge(sketch, "I add y to `B`.", 1).is_ok());
    let shown = "// ...\nimpl B {\n    // ...\n    fn go() {\n        x\n        y\n    }\n}\n";
    assert!(judge(shown, "", 0).is_err());
    assert!(judge(shown, "", 1).is_ok());
}

#[test]
fn what_goes_is_named() {
    let without = OLD.replace("fn b() {\n    2\n}\n\n", "");
    check("// ...\n// removed b\n// ...\n", "", &without, Ok(()));
    check("// ...\n// removed c\n// ...\n", "", &without, Err("removed c"));
    check("// ...\n    1\n}\n\nfn c() {\n    3\n// ...\n", "", &without, Ok(()));
    let body: String = (0..40).map(|it| format!("    line_{it}();\n")).collect();
    let old = OLD.replace("    2\n", &body);
    let judge = |instructions| {
        let sketch = "// ...\n    1\n}\n\nfn c() {\n    3\n// ...\n";
        let task = Task {
            old: &old,
            sketch,
            instructions,
            language: "rust",
        };
        accept(&task, &without, |_| None)
    };
    assert!(judge("I remove b.").is_ok());
    assert!(judge("I remove the middle.").is_err());
    assert!(judge("I change b.").is_err());
}

#[test]
fn syntax_may_not_get_worse() {
    let new = OLD.replace("    2\n", "    22\n");
    let errors = |text: &str| Some(usize::from(text.contains("22")));
    assert_eq!(
        accept(&task(), &new, errors),
        Err(Unfit::Broken { before: 0, after: 1 })
    );
    assert!(accept(&task(), &new, |_| Some(3)).is_ok());
}

#[test]
fn a_file_may_have_such_a_comment_of_its_own() {
    let old = format!("// ... rest of it ...\n{OLD}");
    let own = Task { old: &old, ..task() };
    let new = old.replace("    2\n", "    22\n");
    assert_eq!(accept(&own, &new, |_| None), Ok(new.clone()));
}

#[test]
fn models_that_are_trained_to_merge_have_no_system_prompt() {
    for (peer, model) in [
        ("openai at api.morphllm.com", "auto"),
        ("openai at instantapply.endpoint.relace.run", "auto"),
        ("openai at openrouter.ai", "morph/morph-v3-fast"),
        ("openai at openrouter.ai", "relace/relace-apply-3"),
    ] {
        assert_eq!(system(peer, model), "", "{peer} {model}");
    }
    for (peer, model) in [
        ("openai at 127.0.0.1:8080", "FastApply-7B-v1.0"),
        ("openai at openrouter.ai", "morphic/large"),
        ("openai at openrouter.ai", "a/polymorph"),
    ] {
        assert_eq!(system(peer, model), SYSTEM, "{peer} {model}");
    }
}

#[test]
fn the_question_has_three_parts() {
    assert_eq!(
        prompt(&Task {
            old: "a\n",
            sketch: "b\n",
            instructions: "c",
            language: ""
        }),
        "<instruction>c</instruction>\n<code>a\n</code>\n<update>b\n</update>"
    );
}

/// Checks that of two answers to a sketch the right one is taken and the wrong one is not. Without a right one, the sketch
/// leaves open what it means.
#[track_caller]
fn choose(language: &str, old: &str, sketch: &str, instructions: &str, right: Option<&str>, wrong: &str) {
    let task = Task {
        old,
        sketch,
        instructions,
        language,
    };
    if let Some(right) = right {
        assert_eq!(accept(&task, right, |_| None).as_deref(), Ok(right));
    }
    if let Ok(text) = accept(&task, wrong, |_| None) {
        panic!("accepted:\n{text}");
    }
}

const TWO: &str =
    "fn one() {\n    start();\n    stop();\n}\n\nfn two() {\n    start();\n    work(1);\n    stop();\n}\n";

#[test]
fn a_cheaper_place_is_not_the_one_that_is_named() {
    let sketch = "// ...\n    start();\n    work(2);\n    stop();\n// ...\n";
    let right = TWO.replace("work(1)", "work(2)");
    let wrong = TWO.replacen("    start();\n", "    start();\n    work(2);\n", 1);
    choose("rust", TWO, sketch, "I change work in `two`.", Some(&right), &wrong);
    choose("rust", TWO, sketch, "I change work in two.", Some(&right), &wrong);
    choose("rust", TWO, sketch, "I change work.", None, &right);
    choose("rust", TWO, sketch, "I change work.", None, &wrong);
}

#[test]
fn a_word_for_removal_settles_no_place() {
    let old = "impl A {\n    fn go() {\n        x\n    }\n}\n\nimpl B {\n    fn go() {\n        x\n    }\n}\n";
    let sketch = "// ...\n    fn go() {\n        x\n        y\n    }\n// ...\n";
    let wrong = old.replacen("        x\n", "        x\n        y\n", 1);
    for instructions in [
        "I clean up go.",
        "I add a movement.",
        "I remove the bug in go.",
        "I add y for this test.",
    ] {
        choose("rust", old, sketch, instructions, None, &wrong);
    }
}

#[test]
fn what_stands_above_a_declaration_is_not_lost_with_it() {
    let head = "#!/usr/bin/env python\n# Copyright A\n\n";
    let old = format!("{head}# About f.\n@cached\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n");
    let sketch = "# New.\n@cached\ndef f():\n    return 3\n\n# ...\n";
    let new = "# New.\n@cached\ndef f():\n    return 3\n";
    let right = format!("{head}{new}\n\ndef g():\n    return 2\n");
    let wrong = format!("{new}\n\ndef g():\n    return 2\n");
    choose("python", &old, sketch, "I change f.", Some(&right), &wrong);
    let wrong = format!("{head}# About f.\n@cached\n{new}\n\ndef g():\n    return 2\n");
    choose("python", &old, sketch, "I change f.", None, &wrong);
    // The decorator is not in the sketch.
    let sketch = "# ...\n# New.\ndef f():\n    return 3\n\n# ...\n";
    let wrong = format!("{head}# New.\ndef f():\n    return 3\n\n\ndef g():\n    return 2\n");
    choose("python", &old, sketch, "I change f.", None, &wrong);
    let old = "// License\n\n#[test]\nfn f() {\n    1\n}\n\nfn g() {}\n";
    let wrong = "fn g() {}\n";
    let right = "// License\n\nfn g() {}\n";
    choose(
        "rust",
        old,
        "// ...\n// removed f\n// ...\n",
        "I remove f.",
        Some(right),
        wrong,
    );
}

#[test]
fn the_old_line_does_not_stay_beside_its_new_form() {
    let old = "import a\n\nVERSION = \"1\"\nNAME = \"x\"\n";
    let sketch = "# ...\nVERSION = \"2\"\nNAME = \"x\"\n";
    let right = old.replace('1', "2");
    let wrong = old.replace("NAME", "VERSION = \"2\"\nNAME");
    choose("python", old, sketch, "", Some(&right), &wrong);
    let old = "const A = 1;\nfoo();\n";
    choose(
        "javascript",
        old,
        "const A = 2;\nfoo();\n// ...\n",
        "",
        None,
        "const A = 1;\nconst A = 2;\nfoo();\n",
    );
    let old = "a();\nconnect(\"a\", 1);\nfoo();\nb();\n";
    let wrong = "a();\nconnect(\"a\", 1);\nconnect(\"a\", 2);\nfoo();\nb();\n";
    choose(
        "javascript",
        old,
        "// ...\nconnect(\"a\", 2);\nfoo();\n// ...\n",
        "",
        None,
        wrong,
    );
    let old = "a:\n  timeout: 1\n  name: x\nb:\n  timeout: 1\n";
    let wrong = "a:\n  timeout: 1\n  name: x\n  timeout: 2\nb:\n  timeout: 1\n";
    choose(
        "yaml",
        old,
        "a:\n  # ...\n  name: x\n  timeout: 2\n# ...\n",
        "",
        None,
        wrong,
    );
}

#[test]
fn an_answer_does_not_choose_the_indentation_of_new_lines() {
    let old = "def f(a):\n    if a:\n        b()\n    c()\n    return 1\n";
    choose(
        "python",
        old,
        "# ...\n    if a:\n        b()\n    d()\n    c()\n# ...\n",
        "",
        Some(&old.replace("    c()\n", "    d()\n    c()\n")),
        &old.replace("    c()\n", "        d()\n    c()\n"),
    );
    // Out of the function.
    let old = "def f(a):\n    if a:\n        b()\n\n\ndef g():\n    pass\n";
    choose(
        "python",
        old,
        "# ...\n    if a:\n        b()\n    d()\n# ...\n",
        "",
        Some(&old.replace("        b()\n", "        b()\n    d()\n")),
        &old.replace("        b()\n", "        b()\nd()\n"),
    );
    // A method within a method.
    let old = "class A:\n    def one(self):\n        return 1\n\n    def two(self):\n        return 2\n";
    let new = "    def three(self):\n        return 3\n";
    let nested = "        def three(self):\n            return 3\n";
    let sketch = format!("class A:\n    # ...\n\n{new}\n    # ...\n");
    choose(
        "python",
        old,
        &sketch,
        "",
        Some(&format!("{old}\n{new}")),
        &format!("{old}\n{nested}"),
    );
}

#[test]
fn tabs_stay_tabs() {
    let old = "all: a b\n\tmake a\n\tmake b\n\nclean:\n\trm a\n";
    let sketch = "# ...\nall: a b\n\tmake a\n\tmake c\n\tmake b\n# ...\n";
    let right = old.replace("\tmake b\n", "\tmake c\n\tmake b\n");
    let wrong = right.replace('\t', "    ");
    choose("makefile", old, sketch, "", Some(&right), &wrong);
    let wrong = right.replace("\tmake c", "    make c");
    choose("makefile", old, sketch, "", Some(&right), &wrong);
    let sketch = "// ...\nfunc b() {\n\tb()\n}\n";
    let old = "func a() {\n\ta()\n}\n";
    let right = format!("{old}\nfunc b() {{\n\tb()\n}}\n");
    choose(
        "go",
        old,
        sketch,
        "",
        Some(&right),
        &format!("{old}\nfunc b() {{\n    b()\n}}\n"),
    );
}

#[test]
fn everyday_words_name_nothing() {
    let old = "impl A {\n    fn go() {\n        x\n    }\n}\n\nmod test {\n    fn go() {\n        x\n    }\n}\n";
    let sketch = "// ...\n    fn go() {\n        x\n        y\n    }\n// ...\n";
    let wrong =
        "impl A {\n    fn go() {\n        x\n    }\n}\n\nmod test {\n    fn go() {\n        x\n        y\n    }\n}\n";
    for instructions in [
        "I add y so that it passes the test.",
        "I add y for the mod in use.",
        "I add y with a new class.",
    ] {
        choose("rust", old, sketch, instructions, None, wrong);
    }
    choose("rust", old, sketch, "I add y in `test`.", Some(wrong), old);
}

#[test]
fn a_mark_behind_a_function_may_stand_for_the_rest_of_it() {
    let old = "def f(a):\n    b()\n    c()\n    return a\n\n\ndef g():\n    pass\n";
    let new = "def f(a):\n    e()\n\n\ndef g():\n    pass\n";
    let sketch = "def f(a):\n    e()\n# ... existing code ...\n";
    choose("python", old, sketch, "I call e in f.", None, new);
    choose("python", old, sketch, "I rewrite f.", Some(new), old);
}

#[test]
fn a_setter_is_no_second_property() {
    let old = "class A:\n    @property\n    def x(self):\n        return 1\n\n    def y(self):\n        pass\n";
    let new = "    @x.setter\n    def x(self, it):\n        self.it = it\n";
    let right = old.replace("    def y", &format!("{new}\n    def y"));
    let sketch = format!("class A:\n    # ...\n\n{new}\n    # ...\n");
    choose("python", old, &sketch, "", Some(&right), old);
}

#[test]
fn many_parts_are_refused_rather_than_read_to_the_end_of_the_stack() {
    let old: String = (0..5000).map(|it| format!("line {it}\n")).collect();
    let sketch: String = (0..4500).map(|it| format!("line {it}\n// ...\n")).collect();
    let answer = old.replace("line 9\n", "line 9\nnew\n");
    choose("rust", &old, &sketch, "", None, &answer);
}
