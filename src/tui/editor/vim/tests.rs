use proptest::prelude::*;

use super::*;

/// Types keys at a draft whose caret is at `|`; `<esc>` is Esc, `<cr>` Enter. What comes of it, with the caret.
fn edit(text: &str, keys: &str) -> String {
    let at = text.find('|').expect("a caret");
    let mut draft = Draft::new(&text.replacen('|', "", 1));
    draft.go(draft.place(at), false);
    let mut vim = Vim {
        mode: Mode::Normal,
        ..Vim::default()
    };
    press(&mut vim, &mut draft, keys);
    let before = draft.slice(TextPosition::default()..draft.caret());
    let after = draft.slice(draft.caret()..draft.end());
    format!("{before}|{after}")
}

fn press(vim: &mut Vim, draft: &mut Draft, keys: &str) {
    let mut rest = keys;
    while let Some(letter) = rest.chars().next() {
        let (event, used) = if let Some(after) = rest.strip_prefix("<esc>") {
            (
                KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE),
                rest.len() - after.len(),
            )
        } else if let Some(after) = rest.strip_prefix("<c-r>") {
            (
                KeyEvent::new(KeyCode::Char('r'), KeyModifiers::CONTROL),
                rest.len() - after.len(),
            )
        } else {
            (
                KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE),
                letter.len_utf8(),
            )
        };
        rest = rest.get(used..).expect("a key ends between characters");
        if !vim.key(event, draft) && vim.mode == Mode::Insert {
            typed(event, draft);
        }
    }
}

#[test]
fn it_edits_as_vim_does() {
    let mut wrong = Vec::new();
    // What Vim itself makes of these keys.
    for (text, keys, result) in [
        ("|one two three", "w", "one |two three"),
        ("|one two three", "2w", "one two |three"),
        ("one two| three", "b", "one |two three"),
        ("|one two three", "e", "on|e two three"),
        ("one two |three", "ge", "one tw|o three"),
        ("|a.b c", "w", "a|.b c"),
        ("|a.b c", "W", "a.b |c"),
        ("one |two", "0", "|one two"),
        ("  one |two", "^", "  |one two"),
        ("|one two", "$", "one tw|o"),
        ("|one", "x", "|ne"),
        ("|foo", "3ix<esc>", "xx|xfoo"),
        ("|foo", "2Aab<esc>", "fooaba|b"),
        ("|foo", "2ox<esc>", "foo\nx\n|x"),
        ("|foo", "2ix<esc>.", "xx|xxfoo"),
        ("|foo", "ix<esc>3.", "xx|xxfoo"),
        ("|a\nb\nc", "9j", "a\nb\n|c"),
        ("|a\nb\nc\nd", "jd9j", "|a"),
        ("|one\ntwo", "yyjVp", "one\n|one"),
        ("|one two", "ywwviwp", "one one| "),
        ("|one two", "\"ayiw\"aP", "on|eone two"),
        ("|one two", "qqx", "|ne two"),
        ("|one two", "zzx", "|ne two"),
        ("|one two", "3x", "| two"),
        ("on|e", "x", "o|n"),
        ("o|ne", "X", "|ne"),
        ("|one two three", "dw", "|two three"),
        ("|one two three", "d2w", "|three"),
        ("|one two three", "2dw", "|three"),
        ("one |two\nthree", "dw", "one| \nthree"),
        ("|one two", "de", "| two"),
        ("|one two three", "dfo", "| three"),
        ("|one two three", "dto", "|o three"),
        ("one two| three", "dFo", "one tw| three"),
        ("|one two", "D", "|"),
        ("one |two three", "d$", "one| "),
        ("one\nt|wo\nthree", "dd", "one\n|three"),
        ("one\ntwo\nth|ree", "dd", "one\n|two"),
        ("o|ne\ntwo\nthree", "2dd", "|three"),
        ("o|ne\ntwo\nthree", "dj", "|three"),
        ("one\ntwo\nth|ree", "dk", "|one"),
        ("one\nt|wo\nthree", "dG", "|one"),
        ("one\nt|wo\nthree", "dgg", "|three"),
        ("|one two", "cwthree<esc>", "thre|e two"),
        ("|one two", "ccx<esc>", "|x"),
        ("one |two", "Cx<esc>", "one |x"),
        ("|one", "sx<esc>", "|xne"),
        ("|one", "ix<esc>", "|xone"),
        ("|one", "ax<esc>", "o|xne"),
        ("o|ne", "Ix<esc>", "|xone"),
        ("|one", "Ax<esc>", "one|x"),
        ("|one", "ox<esc>", "one\n|x"),
        ("|one", "Ox<esc>", "|x\none"),
        ("|one two", "ywP", "one| one two"),
        ("|one\ntwo", "yyjp", "one\ntwo\n|one"),
        ("|one\ntwo", "ddp", "two\n|one"),
        ("|ab", "xp", "b|a"),
        ("|ab", "x3p", "baa|a"),
        ("|one two three", "dw.", "|three"),
        ("|one two three", "cwx<esc>w.", "x |x three"),
        ("|one two three four", "dw2.", "|four"),
        ("|aaaa", "x2.", "|a"),
        ("|one two", "dwu", "|one two"),
        ("|one two", "cwxyz<esc>u", "|one two"),
        ("|one two three", "dwdwuu<c-r>", "|two three"),
        ("a (b |c) d", "di(", "a (|) d"),
        ("a (b (|c) d) e", "2di(", "a (|) e"),
        ("a (b |c) d", "da)", "a | d"),
        ("say \"he|llo\" now", "ci\"x<esc>", "say \"|x\" now"),
        ("say |\"hello\" now", "di\"", "say \"|\" now"),
        ("one t|wo three", "diw", "one | three"),
        ("one t|wo three", "daw", "one |three"),
        ("one t|wo", "daw", "on|e"),
        ("a\nb|b\n\nc", "dip", "|\nc"),
        ("a\nb|b\n\nc", "dap", "|c"),
        ("f|(a, b)", "%", "f(a, b|)"),
        ("f(a, b|)", "%", "f|(a, b)"),
        ("|f(a, b) c", "d%", "| c"),
        ("|one", "~", "O|ne"),
        ("|one two", "gUw", "|ONE two"),
        ("|ONE two", "guiw", "|one two"),
        ("|one", "rx", "|xne"),
        ("|one", "3rx", "xx|x"),
        ("|one", "4rx", "|one"),
        ("o|ne\n  two", "J", "one| two"),
        ("|one\ntwo", ">>", "  |one\ntwo"),
        ("  |one", "<<", "|one"),
        ("|one two", "vex", "| two"),
        ("|one two", "vlly", "|one two"),
        ("o|ne\ntwo\nthree", "Vjd", "|three"),
        ("|one two", "viwcx<esc>", "|x two"),
        ("|one two", "veU", "|ONE two"),
        ("|one x two x", "fx;", "one x two |x"),
        ("|one x two x", "fx;,", "one |x two x"),
        ("|abc\na\nabc", "lljj", "abc\na\nab|c"),
        ("|abc\nabcd", "$j", "abc\nabc|d"),
        ("a\n\n|b\nc\n\nd", "}", "a\n\nb\nc\n|\nd"),
        ("a\n\nb\n|c\n\nd", "{", "a\n|\nb\nc\n\nd"),
        ("|one\ntwo\nthree", "3G", "one\ntwo\n|three"),
        ("e\u{301}|👨‍👩‍👧語", "x", "e\u{301}|語"),
        ("|", "x", "|"),
        ("|", "dd", "|"),
        ("|one", "dz", "|one"),
        ("|one", "o.<esc>V.", "one\n|."),
        ("|one", "o.<esc>vo.d", "one\n|"),
        ("|one", "i.<esc>d.x", "|one"),
    ] {
        let edited = edit(text, keys);
        if edited != result {
            wrong.push(format!("{keys} in {text:?}: {edited:?}, not {result:?}"));
        }
    }
    assert_eq!(wrong, [] as [String; 0]);
}

#[test]
fn a_motion_in_insert_mode_ends_what_is_repeated() {
    // What Vim itself makes of these keys; `←` is the arrow.
    for (keys, result) in [
        ("3iab←c⎋", "acbxyz"),
        ("3iab←⎋", "abxyz"),
        ("iab←c⎋$.", "acbxycz"),
        ("iab←⎋$.", "abxyabz"),
        ("cwab←c⎋$.", "accb"),
        ("3ofoo←c⎋", "xyz\nfoco"),
    ] {
        let mut draft = Draft::new("xyz");
        draft.go(TextPosition::default(), false);
        let mut vim = Vim {
            mode: Mode::Normal,
            ..Vim::default()
        };
        for letter in keys.chars() {
            let code = match letter {
                '←' => KeyCode::Left,
                '⎋' => KeyCode::Esc,
                letter => KeyCode::Char(letter),
            };
            let event = KeyEvent::new(code, KeyModifiers::NONE);
            if !vim.key(event, &mut draft) {
                draft.edit(event);
            }
        }
        assert_eq!(draft.text(), result, "{keys}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_keys_break_a_draft(
        text in "[a-c (\")\n語\u{301}]{0,20}",
        at in 0usize..30,
        keys in proptest::collection::vec(prop_oneof![
            Just("d"), Just("c"), Just("y"), Just("w"), Just("b"), Just("e"), Just("i"), Just("a"), Just("("), Just("\""), Just("p"),
            Just("P"), Just("x"), Just("."), Just("u"), Just("<esc>"), Just("v"), Just("V"), Just("f"), Just("t"), Just("T"), Just(";"),
            Just(","), Just("j"), Just("k"), Just("g"), Just("G"), Just("%"), Just("2"), Just("J"), Just("~"), Just("r"), Just("o"),
            Just("O"), Just("{"), Just("}"), Just(">"), Just("<"), Just("$"), Just("<c-r>"), Just("語"), Just("s"), Just("D"),
        ], 0..40)
    ) {
        let mut draft = Draft::new(&text);
        draft.go(draft.place(at), false);
        let mut vim = Vim { mode: Mode::Normal, ..Vim::default() };
        for key in keys {
            press(&mut vim, &mut draft, key);
            let caret = draft.caret();
            prop_assert!(caret == draft.before(draft.after(caret)) || caret == draft.end());
        }
    }
}
