//! What is known of programs: which run others, which options make a harmless one dangerous, which words of a command
//! say what it does, where it reaches and what it writes.
//!
//! A table is never complete. What it misses is still held by the sandbox; what it has too much costs a question.

mod address;
pub mod git_remote;
mod known;
mod reach;
mod sed;
mod table;

pub use self::{
    address::host_of,
    reach::{Others, Reach},
};
use self::{
    sed::Script,
    table::{BUILTINS, COMMANDED, INTERPRETERS, OPTIONS, RUNNING, SAME, SECOND, SHELLS, THIRD, UNBOUND, WRAPPERS},
};
use super::{Doubt, ShellWord, SimpleCommand};
use crate::text::{WordList, WordTable};

/// The last part of a path, in lower case: disks may not know letters of either case apart.
pub fn base(word: &str) -> String {
    word.rsplit('/').next().unwrap_or_default().to_ascii_lowercase()
}

/// Returns true for a shell, by the last part of its path.
pub fn is_shell(name: &str) -> bool {
    SHELLS.contains(name)
}

/// Why no rule allows this command, whatever it says.
pub fn doubt(command: &SimpleCommand) -> Option<Doubt> {
    let (first, arguments) = command.words.split_first()?;
    let Some(program) = first.text.as_deref() else {
        return Some(Doubt::Program);
    };
    let name = base(program);
    let texts: Vec<Option<&str>> = arguments.iter().map(|it| it.text.as_deref()).collect();
    if WRAPPERS.contains(&name) || name.starts_with("ld-linux") || name.starts_with("ld-musl") {
        return Some(Doubt::Wrapper);
    }
    if BUILTINS.contains(&name) {
        return Some(Doubt::Builtin);
    }
    if SHELLS.contains(&name) {
        // A script by its name is as good as a program.
        let is_script = arguments
            .first()
            .is_some_and(|it| it.text.is_some() && !it.may_be_option());
        return (!is_script || command.is_fed).then_some(Doubt::Script);
    }
    if is_interpreter(&name) {
        let is_known = match texts.as_slice() {
            [Some("--version" | "-V" | "-v" | "--help" | "-h")] => true,
            [Some("-m"), Some(module), ..] => name.contains("py") && !module.is_empty(),
            [Some(script), ..] => !script.is_empty() && !arguments.iter().take(1).any(ShellWord::may_be_option),
            [None, ..] | [] => false,
        };
        return (!is_known).then_some(Doubt::Script);
    }
    if command.is_fed && COMMANDED.contains(&name) {
        return Some(Doubt::Script);
    }
    match same(&name) {
        "find" => {
            let is_danger = |it: &ShellWord| match it.text.as_deref() {
                Some(text) => {
                    let acts = ["-exec", "-ok", "-delete", "-fprint", "-fls", "-files0-from"];
                    acts.iter().any(|act| text.starts_with(act))
                }
                None => it.may_be_option(),
            };
            arguments.iter().any(is_danger).then_some(Doubt::Wrapper)
        }
        "cd" => match texts.as_slice() {
            [Some(to)] if !to.starts_with('-') => None,
            _ => Some(Doubt::Builtin),
        },
        "echo" | "true" | "false" | ":" | "pwd" => None,
        // `-v` names a variable, and an index in its name is worked out as code.
        "printf" | "test" | "[" | "kill" | "type" => {
            let is_plain = |it: Option<&str>| it.is_some_and(|it| it != "-R" && !it.starts_with("-v"));
            (!texts.iter().copied().all(is_plain)).then_some(Doubt::Builtin)
        }
        "git" => {
            let runs = WordList("bisect daemon difftool filter-branch instaweb mergetool shell submodule");
            // Before the subcommand a setting can be given that runs a program, or another repository with such a setting.
            let harmless = WordList("--help --no-optional-locks --no-pager --version -P -h -v");
            let mut rest = texts.iter().flatten().skip_while(|it| harmless.contains(it));
            match rest.next() {
                Some(it)
                    if ["-c", "--config-env", "--exec-path"]
                        .iter()
                        .any(|run| it.starts_with(run)) =>
                {
                    Some(Doubt::Wrapper)
                }
                Some(it) if it.starts_with('-') => Some(Doubt::Option),
                Some(it) if runs.contains(it) => Some(Doubt::Wrapper),
                Some(_) | None => None,
            }
        }
        "sed" => match sed::script(arguments) {
            Script::Plain => None,
            Script::Writes => Some(Doubt::Option),
            Script::Runs => Some(Doubt::Wrapper),
        },
        "awk" => {
            // A word that is not known is a file, if it comes after the program.
            let program = texts.iter().position(|it| it.is_none_or(|it| !it.starts_with('-')));
            let is_known = program.is_none_or(|it| texts.get(it).is_some_and(Option::is_some));
            let has = |acts: &[&str]| {
                let mut known = texts.iter().flatten().map(|it| it.replace("||", ""));
                known.any(|it| acts.iter().any(|act| it.contains(act)))
            };
            if !is_known || has(&["system", "|", "getline", "@"]) {
                Some(Doubt::Wrapper)
            } else {
                let is_plain = texts.iter().all(Option::is_some) && !has(&[">", "close", "fflush"]);
                (!is_plain).then_some(Doubt::Option)
            }
        }
        // Its own commands begin with a dot, in any argument; an abbreviation is enough.
        "sqlite3" => {
            let runs = |it: &&str| {
                let mut rest = it.trim_start().chars();
                let is_own = rest.next() == Some('.') && rest.next().is_some_and(|it| it.is_ascii_alphabetic());
                let calls = ["load_extension", "edit(", "writefile", "readfile", "fts3_tokenizer"];
                is_own || calls.iter().any(|call| it.to_ascii_lowercase().contains(call))
            };
            let runs = texts.iter().any(|it| it.as_ref().is_none_or(runs));
            runs.then_some(Doubt::Wrapper)
        }
        _ => None,
    }
}

/// Returns true if a command may run another one that its words name: rules that forbid or ask look for it there, and ask
/// where they do not find it.
pub fn runs_others(command: &SimpleCommand) -> bool {
    match doubt(command) {
        Some(Doubt::Option) | None => has_option(&RUNNING, command, 1),
        Some(_) => true,
    }
}

/// Returns true if the word after the program is one that runs what follows it: `npm exec`, `poetry run`.
pub fn runs_its_arguments(command: &SimpleCommand) -> bool {
    let mut texts = command.words.iter().filter_map(|it| it.text.as_deref());
    let Some(program) = texts.next().map(base) else {
        return false;
    };
    let running = WordList("dlx exec run run-script tool x");
    let second = texts.find(|it| !it.starts_with('-')).unwrap_or_default();
    matches!(program.as_str(), "bunx" | "npx" | "pnpx" | "uvx")
        || (SECOND.contains(&program) && running.contains(second))
}

/// The words in the arguments of a command that may be those of another one, in their order: an argument may be a whole line, and
/// the line may be in quotes, behind a sign or behind the letter of an option.
pub fn inner_words(command: &SimpleCommand) -> Vec<&str> {
    let is_part = |it: char| it.is_alphanumeric() || "_-./+@%,".contains(it);
    let mut words = Vec::new();
    for word in command.words.iter().skip(1) {
        let text = word.text.as_deref().unwrap_or(&word.source);
        for part in text.split(|it| !is_part(it)).filter(|it| !it.is_empty()) {
            words.push(part);
            let value = part.strip_prefix('-').filter(|it| !it.starts_with('-'));
            words.extend(value.and_then(|it| it.get(1..)).filter(|it| !it.is_empty()));
        }
    }
    words
}

/// The name under which the tables have a program: without its version, its machine and its flavour.
fn same(name: &str) -> &str {
    let known = |name: &str| SAME.iter().find(|it| it.0 == name).and_then(|it| it.1.iter().next());
    let has_row = |name: &str| {
        let is_of = |(begin, _): (&str, WordList)| begin.split(' ').next() == Some(name);
        RUNNING.iter().chain(OPTIONS.iter()).any(is_of)
    };
    if let Some(known) = known(name) {
        return known;
    }
    if has_row(name) {
        return name;
    }
    let bare = name
        .trim_end_matches(|it: char| it.is_ascii_digit() || it == '.')
        .trim_end_matches('-');
    // `x86_64-linux-gnu-gcc-12`
    let tools = WordList("ar as c++ cc clang clang++ g++ gcc gfortran ld nm objdump ranlib strip");
    let tool = bare.rsplit_once('-').map_or(bare, |it| it.1);
    let bare = if tools.contains(tool) { tool } else { bare };
    match known(bare) {
        Some(known) => known,
        None if has_row(bare) => bare,
        None => name,
    }
}

/// Python and its like, with their versions.
fn is_interpreter(name: &str) -> bool {
    let bare = name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.');
    INTERPRETERS.contains(name) || INTERPRETERS.contains(bare)
}

/// Returns true if a program is harmless or not depending on its second word, such as an interpreter.
pub fn wants_second_word(program: &str) -> bool {
    let name = base(program);
    SHELLS.contains(&name) || is_interpreter(&name)
}

/// Returns true if a word from `from` on can run a program, load code or write a file.
pub fn has_loose_option(command: &SimpleCommand, from: usize) -> bool {
    has_option(&RUNNING, command, from) || has_option(&OPTIONS, command, from)
}

/// Returns true if a word from `from` on is in a table for this program, or may be.
fn has_option(table: &WordTable, command: &SimpleCommand, from: usize) -> bool {
    let texts: Vec<&str> = command.words.iter().map_while(|it| it.text.as_deref()).collect();
    let Some(program) = texts.first().map(|it| base(it)) else {
        return true;
    };
    let program = same(&program);
    let options = table.iter().filter(|(begin, _)| {
        let mut begin = begin.split(' ');
        begin.next() == Some(program) && begin.all(|it| texts.iter().skip(1).any(|text| *text == it))
    });
    let options: Vec<&str> = options.flat_map(|it| it.1.iter()).collect();
    if options.is_empty() {
        return false;
    }
    let mut rest = command.words.iter().enumerate().skip(from.max(1));
    rest.any(|(at, word)| match word.text.as_deref() {
        None => word.may_be_option(),
        // `tar xfI …`: the first word is a bundle without a dash.
        Some(text) if at == 1 && program == "tar" && !text.starts_with('-') => {
            let bundle = format!("-{text}");
            options.iter().any(|option| is_option(&bundle, option))
        }
        Some(text) => options.iter().any(|option| is_option(text, option)),
    })
}

/// Returns true if `text` is `option`, in a bundle, shortened or with its value; or what else the tables know.
fn is_option(text: &str, option: &str) -> bool {
    if option == "=" {
        return !text.starts_with('-') && text.contains('=');
    }
    if let Some(word) = option.strip_prefix('^') {
        return text.split('=').next() == Some(word);
    }
    if let Some(part) = option.strip_prefix('*') {
        let text = text.to_ascii_lowercase();
        return match part.strip_suffix('*') {
            Some(part) => text.contains(part),
            None => text.ends_with(part),
        };
    }
    if let Some(start) = option.strip_suffix('*') {
        return text.starts_with(start);
    }
    if let Some(long) = option.strip_prefix("--") {
        let Some(given) = text.strip_prefix("--") else {
            return false;
        };
        let name = given.split('=').next().unwrap_or_default();
        return !name.is_empty() && long.starts_with(name);
    }
    match option.strip_prefix('-') {
        // One letter: `-x`, `-vx`, `-xvalue`.
        Some(letter) if letter.len() == 1 => text
            .strip_prefix('-')
            .is_some_and(|it| !it.starts_with('-') && it.contains(letter)),
        // Words after a single dash, as in Go; two dashes are as good.
        Some(word) => {
            let given = text.trim_start_matches('-');
            text.starts_with('-') && given.split('=').next() == Some(word)
        }
        None => text == option,
    }
}

/// The narrowest beginning of a command that a rule may stand for; none where only the whole would be narrow enough.
pub fn prefix(command: &SimpleCommand) -> Option<Vec<String>> {
    let word = |at: usize| {
        let word = command.words.get(at)?;
        let text = word.text.as_deref()?;
        let is_plain = |it: char| it.is_ascii_alphanumeric() || "_-./+@%,=:".contains(it);
        (!text.is_empty() && text.chars().all(is_plain)).then(|| text.to_owned())
    };
    let program = word(0)?;
    let name = base(&program);
    if program.contains('=') || UNBOUND.contains(&name) {
        return None;
    }
    let argument = |at: usize| word(at).filter(|_| !command.words.get(at).is_some_and(ShellWord::may_be_option));
    if wants_second_word(&program) {
        return match word(1)?.as_str() {
            "-m" => Some(vec![program, "-m".to_owned(), argument(2)?]),
            _ => Some(vec![program, argument(1)?]),
        };
    }
    if !SECOND.contains(&name) {
        return Some(vec![program]);
    }
    let second = argument(1)?;
    let has_third =
        |(program, words): (&str, WordList)| program == name && (words.contains("*") || words.contains(&second));
    if !THIRD.iter().any(has_third) {
        return Some(vec![program, second]);
    }
    Some(vec![program, second, argument(2)?])
}

/// Returns true if the paths that a command writes are gone afterwards.
pub fn removes(command: &SimpleCommand) -> bool {
    let texts: Vec<_> = command.words.iter().map(|it| it.text.as_deref()).collect();
    let name = base(texts.first().copied().flatten().unwrap_or_default());
    match name.as_str() {
        "rm" | "rmdir" | "unlink" | "shred" | "mv" | "rename" => true,
        "git" => matches!(texts.get(1), Some(Some("rm" | "mv" | "clean"))),
        _ => false,
    }
}

/// The paths that a command writes or removes, as far as they stand there in so many words.
pub fn written(command: &SimpleCommand) -> Vec<String> {
    let Some((first, rest)) = command.words.split_first() else {
        return Vec::new();
    };
    let name = base(first.text.as_deref().unwrap_or_default());
    let shown = |it: &ShellWord| it.text.clone().unwrap_or_else(|| it.source.clone());
    let plain = || rest.iter().filter(|it| !it.source.starts_with('-'));
    let after = |options: &[&str]| {
        let mut found = Vec::new();
        for pair in rest.windows(2) {
            if let [option, value] = pair
                && option.text.as_deref().is_some_and(|it| options.contains(&it))
            {
                found.push(shown(value));
            }
        }
        found
    };
    match name.as_str() {
        "rm" | "rmdir" | "unlink" | "touch" | "mkdir" | "tee" | "truncate" | "shred" | "mv" | "rename" => {
            plain().map(shown).collect()
        }
        "chmod" | "chown" | "chgrp" => plain().skip(1).map(shown).collect(),
        "cp" | "ln" | "install" | "rsync" | "scp" => {
            let into = after(&["-t", "--target-directory"]);
            match plain().count() {
                _ if !into.is_empty() => into,
                0 | 1 => Vec::new(),
                _ => plain().next_back().map(shown).into_iter().collect(),
            }
        }
        "dd" => {
            let target = |it: &ShellWord| shown(it).strip_prefix("of=").map(str::to_owned);
            rest.iter().filter_map(target).collect()
        }
        "curl" => after(&["-o", "--output", "-D", "--dump-header", "-c", "--cookie-jar"]),
        "wget" => after(&["-O", "--output-document", "-o", "-P", "--directory-prefix"]),
        "sort" | "shuf" => after(&["-o", "--output"]),
        "sed" | "gsed" | "perl" => {
            let in_place = |it: &ShellWord| it.source.starts_with("-i") || it.source.starts_with("--in-place");
            let is_in_place = rest.iter().any(in_place);
            plain().skip(1).filter(|_| is_in_place).map(shown).collect()
        }
        "git" => match rest.first().and_then(|it| it.text.as_deref()) {
            Some("rm" | "mv" | "clean") => plain().skip(1).map(shown).collect(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}
