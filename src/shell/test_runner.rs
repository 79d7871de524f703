//! Finds the tests that a line runs, and whether its exit code speaks for them.
//!
//! `cargo test | tail` ends as `tail` does, and `cargo test; date` as `date` does: such lines run tests and say nothing of
//! how they went. A table of programs is never complete; what it misses has no mark.

use tree_sitter::{Node, Parser};

use super::{
    CommandLine, SimpleCommand,
    parser::{self, children},
    programs::{self, base},
};
use crate::text::{WordList, WordTable};

/// The tests of a line that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tests {
    Passed,
    Failed,
    /// The exit code is that of another command, or there is none.
    Unknown,
}

/// Programs that do nothing but run tests.
const RUNNERS: WordList = WordList(
    "ava bats behave busted cargo-nextest ctest cucumber gotestsum jasmine jest karma mocha nose2 nosetests pest phpunit
     prove py.test pytest rspec tap tox trial vitest",
);

/// Programs that run tests when their first word is one of these.
const SUBCOMMANDS: WordTable = WordTable(
    "bazel: test
     bun: test
     cabal: test
     cargo: test t nextest llvm-cov tarpaulin
     composer: test
     crystal: spec
     dart: test
     deno: test
     dotnet: test vstest
     flutter: test
     go: test
     hatch: test
     lein: test
     meson: test
     mix: test
     ng: test
     npm: test t tst
     playwright: test
     cypress: run
     pnpm: test t
     rails: test
     sbt: test
     stack: test
     swift: test
     yarn: test
     zig: test",
);

/// Programs that run targets of a file, of which several may be named.
const TARGETS: WordList = WordList("gmake gradle gradlew just make mvn mvnw ninja poe rake task");

/// Programs that run a script of the project after one of their words `run`, `run-script` or `task`.
const SCRIPTS: WordList = WordList("bun deno npm pnpm turbo yarn");

/// Programs that run the program after them, and words of theirs that stand before it.
const PREFIXES: WordTable = WordTable(
    "bundle: exec
     bunx: -
     caffeinate: -
     command: -
     env: -
     exec: -
     gtimeout: -
     hatch: run
     ionice: -
     nice: -
     nohup: -
     npx: -
     pdm: run
     pipenv: run
     pixi: run
     pnpm: exec dlx
     poetry: run
     rye: run
     setsid: -
     stdbuf: -
     sudo: -
     time: -
     timeout: -
     unbuffer: -
     uv: run
     uvx: -
     xvfb-run: -
     yarn: exec dlx",
);

/// Options whose value is the next word.
const VALUES: WordList = WordList(
    "--config --cwd --dir --directory --file --filter --manifest-path --prefix --workspace -C -F -W -f -u -w --color
     --project --package -p --with --extra --group",
);

/// Options with which nothing is run.
const IDLE: WordList = WordList("--collect-only --co --help --list --listTests --no-run --version -h --dry-run");

/// Commands beside a test whose exit code is never news: they prepare, or print.
const QUIET: WordList =
    WordList(". : cat cd echo export head mkdir popd printf pushd set sleep source tail tee true ulimit umask unset");

/// Shells inside shells that are read.
const DEPTH: usize = 3;

/// Nodes inside each other that are read.
const NODES_DEPTH: usize = 48;

/// Returns the outcome of the tests that a line runs; `None` if it runs none.
pub fn tests_of(line: &str, exit_code: Option<i64>) -> Option<Tests> {
    let chain = read(line, 0)?;
    if !chain.runs {
        return None;
    }
    Some(match exit_code {
        Some(0) if chain.passes => Tests::Passed,
        Some(code) if code != 0 && chain.blames => Tests::Failed,
        Some(_) | None => Tests::Unknown,
    })
}

/// What the exit code of a part of a line says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Chain {
    /// Tests run somewhere in it.
    runs: bool,
    /// With exit code 0, tests have passed.
    passes: bool,
    /// With another one, nothing but tests can have failed.
    blames: bool,
}

impl Chain {
    const TESTS: Self = Self {
        runs: true,
        passes: true,
        blames: true,
    };
    const QUIET: Self = Self {
        runs: false,
        passes: false,
        blames: true,
    };

    /// Both, the second one only after the first one's success.
    fn and(self, next: Self) -> Self {
        Self {
            runs: self.runs || next.runs,
            passes: self.passes || next.passes,
            blames: self.blames && next.blames,
        }
    }

    /// One after the other, whatever the first one did.
    fn then(self, next: Self) -> Self {
        if next.runs { next } else { self.hidden() }
    }

    /// The second one only after the first one's failure.
    fn or(self, next: Self) -> Self {
        Self {
            runs: self.runs || next.runs,
            passes: false,
            blames: self.runs && self.blames,
        }
    }

    /// The exit code says nothing.
    fn hidden(self) -> Self {
        Self {
            passes: false,
            blames: false,
            ..self
        }
    }
}

/// Options of the shell that a line sets.
#[derive(Default)]
struct Strictness {
    /// `set -e`
    ends_at_failure: bool,
    /// `set -o pipefail`
    counts_pipes: bool,
}

fn read(text: &str, depth: usize) -> Option<Chain> {
    if depth > DEPTH || !parser::is_readable(text) {
        return None;
    }
    let mut shell = Parser::new();
    shell.set_language(&tree_sitter_bash::LANGUAGE.into()).ok()?;
    let tree = shell.parse(text, None)?;
    let reader = Reader { text, depth };
    Some(reader.part(tree.root_node(), &mut Strictness::default(), 0))
}

struct Reader<'a> {
    text: &'a str,
    /// Shells around this one.
    depth: usize,
}

impl Reader<'_> {
    fn part(&self, node: Node<'_>, set: &mut Strictness, depth: usize) -> Chain {
        if depth > NODES_DEPTH {
            return Chain::default();
        }
        let depth = depth + 1;
        match node.kind() {
            "command" => self.command(node, set),
            "variable_assignment" | "variable_assignments" | "declaration_command" | "unset_command" => Chain::QUIET,
            "program" | "subshell" | "compound_statement" => self.sequence(node, set, depth),
            "redirected_statement" => {
                let inner = children(node).into_iter().next();
                inner.map_or_else(Chain::default, |it| self.part(it, set, depth))
            }
            "list" => {
                let parts = children(node);
                let is_or = parts.iter().any(|it| it.kind() == "||");
                let mut parts = parts.into_iter().filter(Node::is_named);
                let first = parts.next().map(|it| self.part(it, set, depth)).unwrap_or_default();
                parts.fold(first, |before, it| {
                    let next = self.part(it, set, depth);
                    if is_or { before.or(next) } else { before.and(next) }
                })
            }
            "pipeline" => {
                let mut stages = children(node).into_iter().filter(Node::is_named);
                let first = stages.next().map(|it| self.part(it, set, depth)).unwrap_or_default();
                stages.fold(first, |before, it| {
                    let next = self.part(it, set, depth);
                    if set.counts_pipes {
                        before.and(next)
                    } else {
                        before.then(next)
                    }
                })
            }
            // Loops, conditions, functions, `!`: what ran last, and whether it ran, is not known.
            _ => {
                let inner = children(node).into_iter().filter(Node::is_named);
                inner
                    .fold(Chain::default(), |before, it| before.then(self.part(it, set, depth)))
                    .hidden()
            }
        }
    }

    fn sequence(&self, node: Node<'_>, set: &mut Strictness, depth: usize) -> Chain {
        let mut whole: Option<Chain> = None;
        let mut last = Chain::default();
        for child in children(node) {
            if child.kind() == "&" {
                whole = whole.map(Chain::hidden);
                continue;
            }
            if !child.is_named() || child.kind() == "comment" {
                continue;
            }
            last = self.part(child, set, depth);
            whole = Some(match whole {
                None => last,
                Some(before) if set.ends_at_failure => before.and(last),
                Some(before) => before.then(last),
            });
        }
        whole.unwrap_or(last)
    }

    fn command(&self, node: Node<'_>, set: &mut Strictness) -> Chain {
        let mut line = CommandLine::default();
        line.command(node, self.text, 0, false);
        let Some(command) = line.commands.pop() else {
            return Chain::QUIET;
        };
        let words: Vec<&str> = texts(&command);
        if let [program, options @ ..] = words.as_slice()
            && *program == "set"
        {
            for option in options {
                let letters = option.strip_prefix('-').unwrap_or_default();
                set.ends_at_failure |= !letters.starts_with('-') && letters.contains('e') || *option == "errexit";
                set.counts_pipes |= *option == "pipefail";
            }
        }
        self.judge(&words)
    }

    fn judge(&self, words: &[&str]) -> Chain {
        let Some((program, rest)) = words.split_first() else {
            return Chain::default();
        };
        let name = base(program);
        if programs::is_shell(&name) {
            let script = rest.iter().position(|it| it.starts_with('-') && it.ends_with('c'));
            let script = script.and_then(|at| rest.get(at + 1));
            return script.and_then(|it| read(it, self.depth + 1)).unwrap_or_default();
        }
        if let Some(inner) = behind_prefix(&name, rest) {
            return self.judge(inner);
        }
        if QUIET.contains(&name) {
            return Chain::QUIET;
        }
        if is_runner(&name, rest) {
            Chain::TESTS
        } else {
            Chain::default()
        }
    }
}

/// The words of a command; one that the shell replaces is empty.
fn texts(command: &SimpleCommand) -> Vec<&str> {
    let words = command.words.iter();
    words.map(|it| it.text.as_deref().unwrap_or_default()).collect()
}

/// Returns the command that a program runs for another one; `None` if it runs none.
fn behind_prefix<'a>(name: &str, rest: &'a [&'a str]) -> Option<&'a [&'a str]> {
    if is_python(name) {
        let module = rest.iter().position(|it| *it == "-m")?;
        return rest.get(module + 1..).filter(|it| !it.is_empty());
    }
    let (_, between) = PREFIXES.iter().find(|(key, _)| *key == name)?;
    let mut at = 0;
    let mut is_begun = between.contains("-");
    while let Some(word) = rest.get(at) {
        let is_figure = word.starts_with(|it: char| it.is_ascii_digit());
        let is_assignment = word
            .split_once('=')
            .is_some_and(|it| !it.0.is_empty() && !it.0.starts_with('-'));
        if VALUES.contains(word) {
            at += 2;
        } else if word.starts_with('-') || is_figure || is_assignment {
            at += 1;
        } else if !is_begun {
            if !between.contains(word) {
                return None;
            }
            is_begun = true;
            at += 1;
        } else {
            return rest.get(at..);
        }
    }
    None
}

fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    name == "py" || version.is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit() || it == b'.'))
}

fn is_runner(name: &str, rest: &[&str]) -> bool {
    let own = rest.iter().take_while(|it| **it != "--");
    if own.clone().any(|it| IDLE.contains(it)) {
        return false;
    }
    if RUNNERS.contains(name) || name == "unittest" || (name == "manage.py" && rest.first() == Some(&"test")) {
        return true;
    }
    if is_python(name) {
        return matches!(rest, [script, "test", ..] if base(script) == "manage.py");
    }
    let words = plain(rest);
    if TARGETS.contains(name) {
        let is_check = |it: &str| it == "check" || it == "verify" && name.starts_with("mvn");
        return words.iter().any(|it| is_check(it) || names_tests(it));
    }
    let Some(first) = words.first() else { return false };
    if SCRIPTS.contains(name) && matches!(*first, "run" | "run-script" | "task") {
        return words.get(1).is_some_and(|it| names_tests(it));
    }
    if name == "php" {
        return matches!(words.as_slice(), ["artisan", "test", ..]);
    }
    let is_subcommand = SUBCOMMANDS
        .iter()
        .any(|(key, words)| key == name && words.contains(first));
    // `npm test:unit` is `yarn`'s and `pnpm`'s short form of `run test:unit`.
    is_subcommand || SCRIPTS.contains(name) && first.starts_with("test:")
}

/// The words that are no options, nor the values of any.
fn plain<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut words = rest.iter().take_while(|it| **it != "--");
    while let Some(word) = words.next() {
        if VALUES.contains(word) {
            words.next();
        } else if !word.starts_with(['-', '+']) && !word.contains('=') {
            found.push(*word);
        }
    }
    found
}

/// Returns true for `test`, `unit-test`, `test:e2e`, `:app:testDebug`; not for `latest`.
fn names_tests(word: &str) -> bool {
    let mut parts = word.split(|it: char| !it.is_ascii_alphanumeric());
    parts.any(|it| {
        let camel = it
            .strip_prefix("test")
            .is_some_and(|it| it.starts_with(|it: char| it.is_ascii_uppercase()));
        camel || matches!(it, "test" | "tests" | "spec" | "specs")
    })
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;

    #[track_caller]
    fn check(lines: &str, with_zero: Option<Tests>, with_one: Option<Tests>) {
        for line in lines.lines().map(str::trim).filter(|it| !it.is_empty()) {
            let found = (tests_of(line, Some(0)), tests_of(line, Some(1)));
            assert_eq!(found, (with_zero, with_one), "{line}");
        }
    }

    #[test]
    fn the_exit_code_of_a_test_runner_is_the_outcome() {
        check(
            r"
            cargo test
            cargo test -q --lib wrap -- --nocapture
            cargo +nightly nextest run
            cargo --manifest-path a/Cargo.toml test
            cd x && cargo test -q
            FOO=1 pytest
            export A=1; cd b; pytest -x
            env -u HOME FOO=1 pytest tests/
            python -m pytest -q
            python3.12 -m unittest discover
            python manage.py test shop
            npm test
            npm t
            npm run test:unit
            npm --prefix web test
            npm -w core run unit-test
            pnpm test
            pnpm exec vitest run
            yarn test
            yarn test:e2e
            bun test
            bunx jest
            npx jest --ci
            npx --yes vitest
            go test ./...
            jest
            ./node_modules/.bin/vitest run
            mvn -q clean test
            ./mvnw verify
            ./gradlew :app:testDebugUnitTest
            gradle check
            make test
            make -C build check
            make -j8 unit-tests
            ctest --output-on-failure
            dotnet test
            bundle exec rspec
            vendor/bin/phpunit
            php artisan test
            mix test
            tox -e py312
            deno test -A
            deno task test
            uv run pytest
            poetry run pytest -k a
            timeout 60 cargo test
            time go test ./...
            (cd web && npm test)
            { cd web; npm test; }
            bash -c 'cd a && cargo test'
            cargo test 2>&1
            cargo test > /tmp/log 2>&1
            set -euo pipefail; cargo test 2>&1 | tail -20
            set -e; cargo test; echo passed
            cargo test && echo ok
            cat orders.txt | pytest
            ",
            Some(Tests::Passed),
            Some(Tests::Failed),
        );
    }

    #[test]
    fn a_line_that_names_tests_runs_none() {
        check(
            r#"
            echo cargo test
            echo "npm test"
            cat test
            cargo build
            cargo test --no-run
            cargo nextest --help
            pytest --collect-only
            grep -r 'cargo test' .
            make -C tests all
            make latest
            npm run lint
            npm run type-check
            npm install jest
            go vet ./...
            git commit -m 'cargo test'
            # cargo test
            ls
            $RUNNER test
            "#,
            None,
            None,
        );
        assert_eq!(tests_of("", Some(0)), None);
        assert_eq!(tests_of(&"cargo test;".repeat(20_000), Some(0)), None);
    }

    #[test]
    fn an_exit_code_of_another_command_says_nothing_of_tests() {
        check(
            "
            cargo test | tail -20
            cargo test; date
            cargo test &
            ! cargo test
            if cargo test; then date; fi
            for i in 1 2; do cargo test; done
            ",
            Some(Tests::Unknown),
            Some(Tests::Unknown),
        );
        // What came with the tests may have failed in their place.
        check("cargo test && cargo clippy", Some(Tests::Passed), Some(Tests::Unknown));
        check(
            "cargo fmt --check && cargo test",
            Some(Tests::Passed),
            Some(Tests::Unknown),
        );
        check("cargo test || exit 1", Some(Tests::Unknown), Some(Tests::Failed));
        assert_eq!(tests_of("cargo test", None), Some(Tests::Unknown));
    }
}
