//! Names of languages: from a file's path or a fence's info string to the one name we use.
//!
//! A static table, so that asking costs nothing and loads no grammar. Grammars are found by their own name in the last
//! column, because their lists of extensions contradict each other (`fs` is F# here and a shader there).

/// A language as people and files name it.
#[derive(Debug, PartialEq, Eq)]
pub struct Language {
    /// The name in fences that we write.
    pub tag: &'static str,
    /// Other names in fences, and extensions of files; lower case.
    aliases: &'static [&'static str],
    /// Whole names of files; lower case.
    files: &'static [&'static str],
    /// The grammar's name; empty for plain text.
    pub grammar: &'static str,
}

const fn language(
    tag: &'static str,
    aliases: &'static [&'static str],
    files: &'static [&'static str],
    grammar: &'static str,
) -> Language {
    Language {
        tag,
        aliases,
        files,
        grammar,
    }
}

/// Plain text, which has no colours.
pub const PLAIN: Language = language(
    "text",
    &[
        "txt",
        "plain",
        "plaintext",
        "none",
        "nohighlight",
        "output",
        "ascii",
        "raw",
        "out",
    ],
    &["license", "copying", "notice", "authors", "readme", "codeowners"],
    "",
);

/// A session at a prompt: commands behind `$`, output between them.
pub const CONSOLE: Language = language(
    "console",
    &[
        "shell-session",
        "shellsession",
        "terminal",
        "sh-session",
        "bash-session",
        "session",
    ],
    &[],
    "Bourne Again Shell (bash)",
);

static LANGUAGES: &[Language] = &[
    PLAIN,
    CONSOLE,
    language("ada", &["adb", "ads"], &[], "Ada"),
    language("asciidoc", &["adoc"], &[], "AsciiDoc (Asciidoctor)"),
    language("asm", &["nasm", "x86asm", "assembly", "yasm"], &[], "x86_64 Assembly"),
    language("awk", &["gawk"], &[], "AWK"),
    language(
        "bash",
        &["sh", "shell", "zsh", "ash", "ksh", "dash", "bats", "ebuild", "envrc"],
        &[
            ".bashrc",
            ".bash_profile",
            ".bash_aliases",
            ".bash_logout",
            ".profile",
            ".zshrc",
            ".zshenv",
            ".zprofile",
            ".zlogin",
            ".envrc",
            "pkgbuild",
            "gradlew",
            "configure",
        ],
        "Bourne Again Shell (bash)",
    ),
    language("batch", &["bat", "cmd", "dosbatch"], &[], "Batch File"),
    language("bibtex", &["bib"], &[], "BibTeX"),
    language("c", &["h"], &[], "C"),
    language("clojure", &["clj", "cljs", "cljc", "edn"], &[], "Clojure"),
    language("cmake", &[], &["cmakelists.txt"], "CMake"),
    language("coffeescript", &["coffee", "cson"], &["cakefile"], "CoffeeScript"),
    language(
        "cpp",
        &[
            "c++", "cc", "cxx", "hpp", "hh", "hxx", "h++", "ipp", "inl", "cu", "cuda", "ino",
        ],
        &[],
        "C++",
    ),
    language("crystal", &["cr"], &[], "Crystal"),
    language("csharp", &["c#", "cs", "csx"], &[], "C#"),
    language("css", &[], &[], "CSS"),
    language("csv", &[], &[], "Comma Separated Values"),
    language("d", &["di", "dlang"], &[], "D"),
    language("dart", &[], &[], "Dart"),
    language("diff", &["patch", "udiff"], &[], "Diff"),
    language(
        "dockerfile",
        &["docker", "containerfile"],
        &["dockerfile", "containerfile"],
        "Dockerfile",
    ),
    language("dotenv", &["env"], &[".env"], "DotENV"),
    language("elixir", &["ex", "exs"], &["mix.lock"], "Elixir"),
    language("elm", &[], &[], "Elm"),
    language("erlang", &["erl", "hrl", "escript"], &["rebar.config"], "Erlang"),
    language("fish", &[], &[], "Fish"),
    language("fortran", &["f90", "f95", "f03", "f08"], &[], "Fortran (Modern)"),
    language("fsharp", &["f#", "fs", "fsi", "fsx"], &[], "F#"),
    language("gdscript", &["gd"], &[], "GDScript (Godot Engine)"),
    language("gitconfig", &[], &[".gitconfig", ".gitmodules"], "Git Config"),
    language(
        "gitignore",
        &["ignore"],
        &[
            ".gitignore",
            ".dockerignore",
            ".ignore",
            ".npmignore",
            ".prettierignore",
            ".cursorignore",
            ".sheafignore",
            ".eslintignore",
        ],
        "Git Ignore",
    ),
    language("gitcommit", &[], &["commit_editmsg", "merge_msg"], "Git Commit"),
    language("glsl", &["vert", "frag", "geom", "comp", "shader", "hlsl"], &[], "GLSL"),
    language("go", &["golang"], &[], "Go"),
    language("gomod", &["go.mod"], &["go.mod", "go.work"], "Gomod"),
    language("gosum", &[], &["go.sum"], "Gosum"),
    language("graphql", &["gql", "graphqls"], &[], "GraphQL"),
    language("groovy", &["gradle", "gvy", "jenkinsfile"], &["jenkinsfile"], "Groovy"),
    language("haskell", &["hs", "lhs"], &[], "Haskell"),
    language(
        "hcl",
        &["tf", "tfvars", "terraform", "opentofu"],
        &[".terraform.lock.hcl"],
        "Terraform",
    ),
    language("html", &["htm", "xhtml", "shtml"], &[], "HTML"),
    language("http", &["https", "rest"], &[], "HTTP Request and Response"),
    language(
        "ini",
        &[
            "cfg",
            "inf",
            "reg",
            "desktop",
            "editorconfig",
            "service",
            "timer",
            "socket",
            "conf",
        ],
        &[
            ".editorconfig",
            ".pylintrc",
            ".coveragerc",
            ".flake8",
            ".npmrc",
            "setup.cfg",
            "tox.ini",
        ],
        "INI",
    ),
    language("java", &["bsh"], &[], "Java"),
    language(
        "javascript",
        &["js", "mjs", "cjs", "node", "es6"],
        &[],
        "JavaScript (Babel)",
    ),
    language("jinja2", &["jinja", "j2"], &[], "Jinja2"),
    language("jq", &[], &[], "JQ"),
    language(
        "json",
        &[
            "jsonc",
            "json5",
            "jsonl",
            "ndjson",
            "geojson",
            "webmanifest",
            "ipynb",
            "sublime-settings",
        ],
        &[
            "composer.lock",
            "flake.lock",
            ".prettierrc",
            ".eslintrc",
            ".babelrc",
            ".swcrc",
            "deno.lock",
            "bun.lock",
        ],
        "JSON",
    ),
    language("jsonnet", &["libsonnet"], &[], "jsonnet"),
    language("jsx", &[], &[], "JavaScript (Babel)"),
    language("julia", &["jl"], &[], "Julia"),
    language("kotlin", &["kt", "kts"], &[], "Kotlin"),
    language("latex", &["tex", "ltx", "sty", "cls"], &[], "LaTeX"),
    language("lean", &["lean4"], &[], "Lean 4"),
    language("less", &[], &[], "Less"),
    language(
        "lisp",
        &["cl", "el", "elisp", "emacs-lisp", "common-lisp", "lsp", "scm", "scheme"],
        &[".emacs"],
        "Lisp",
    ),
    language("llvm", &["ll"], &[], "LLVM"),
    language("log", &[], &[], "log"),
    language("lua", &["luau"], &[".luacheckrc"], "Lua"),
    language(
        "make",
        &["makefile", "mk", "mak", "gnumakefile", "just", "justfile"],
        &["makefile", "gnumakefile", "makefile.am", "makefile.in", "justfile"],
        "Makefile",
    ),
    language(
        "markdown",
        &["md", "mdx", "mdc", "markdn", "mdown", "rmd"],
        &[],
        "Markdown",
    ),
    language("matlab", &["octave"], &[], "MATLAB"),
    language("nginx", &[], &["nginx.conf"], "nginx"),
    language("nim", &["nims", "nimble"], &[], "Nim"),
    language("ninja", &[], &[], "Ninja"),
    language("nix", &[], &[], "Nix"),
    language("objective-c", &["objc", "objectivec", "m", "obj-c"], &[], "Objective-C"),
    language(
        "objective-cpp",
        &["objc++", "mm", "objective-c++"],
        &[],
        "Objective-C++",
    ),
    language("ocaml", &["ml", "mli"], &["dune", "dune-project"], "OCaml"),
    language("odin", &[], &[], "Odin"),
    language("org", &["orgmode"], &[], "orgmode"),
    language("pascal", &["pas", "delphi", "dpr"], &[], "Pascal"),
    language("perl", &["pl", "pm"], &["cpanfile"], "Perl"),
    language("php", &["php3", "php4", "php5", "phtml"], &[], "PHP"),
    language("powershell", &["ps1", "psm1", "psd1", "pwsh", "ps"], &[], "PowerShell"),
    language("properties", &[], &[], "Java Properties"),
    language("protobuf", &["proto", "proto3"], &[], "Protocol Buffer"),
    language("puppet", &["pp"], &[], "Puppet"),
    language("purescript", &["purs"], &[], "PureScript"),
    language(
        "python",
        &[
            "py", "py3", "python3", "pyi", "pyw", "pyx", "pycon", "starlark", "bzl", "bazel", "sage",
        ],
        &[
            "sconstruct",
            "snakefile",
            "build",
            "build.bazel",
            "workspace",
            "wscript",
            "tiltfile",
        ],
        "Python",
    ),
    language("qml", &[], &[], "QML"),
    language("r", &["rprofile"], &[".rprofile"], "R"),
    language("racket", &["rkt"], &[], "Racket"),
    language("rego", &[], &[], "Rego"),
    language(
        "requirements",
        &["pip"],
        &[
            "requirements.txt",
            "requirements.in",
            "constraints.txt",
            "requirements-dev.txt",
        ],
        "Requirements.txt",
    ),
    language("rst", &["restructuredtext"], &[], "reStructuredText"),
    language(
        "ruby",
        &["rb", "gemspec", "rake", "podspec", "jbuilder", "ru"],
        &[
            "gemfile",
            "rakefile",
            "podfile",
            "vagrantfile",
            "brewfile",
            "fastfile",
            "guardfile",
            "config.ru",
        ],
        "Ruby",
    ),
    language("erb", &["rhtml", "ejs", "html.erb"], &[], "HTML (Rails)"),
    language("rust", &["rs"], &[], "Rust"),
    language("sass", &[], &[], "Sass"),
    language("scala", &["sbt", "sc"], &[], "Scala"),
    language("scss", &[], &[], "SCSS"),
    language("solidity", &["sol"], &[], "Solidity"),
    language(
        "sql",
        &[
            "mysql",
            "postgres",
            "postgresql",
            "psql",
            "pgsql",
            "plsql",
            "sqlite",
            "tsql",
            "ddl",
            "dml",
        ],
        &[".psqlrc"],
        "SQL",
    ),
    language(
        "ssh-config",
        &["ssh_config", "sshconfig"],
        &["ssh_config"],
        "SSH Config",
    ),
    language("stylus", &["styl"], &[], "Stylus"),
    language("svelte", &[], &[], "Svelte"),
    language("swift", &[], &["package.resolved"], "Swift"),
    language("systemverilog", &["sv", "svh"], &[], "SystemVerilog"),
    language("tcl", &["tk"], &[], "Tcl"),
    language(
        "toml",
        &["tml"],
        &[
            "cargo.lock",
            "poetry.lock",
            "uv.lock",
            "pdm.lock",
            "pipfile",
            "gopkg.lock",
        ],
        "TOML",
    ),
    language("tsv", &["tab"], &[], "Tab Separated Values"),
    language("tsx", &[], &[], "TypeScriptReact"),
    language("twig", &[], &[], "HTML (Twig)"),
    language("typescript", &["ts", "mts", "cts", "deno"], &[], "TypeScript"),
    language("typst", &["typ"], &[], "Typst"),
    language("verilog", &["v", "vh"], &[], "Verilog"),
    language("vhdl", &["vhd"], &[], "VHDL"),
    language(
        "vim",
        &["viml", "vimscript", "vimrc"],
        &[".vimrc", ".gvimrc", "_vimrc"],
        "VimL",
    ),
    language("vue", &[], &[], "Vue Component"),
    language("wgsl", &[], &[], "WGSL"),
    language(
        "xml",
        &[
            "xsd", "xslt", "xsl", "svg", "rss", "atom", "plist", "csproj", "fsproj", "vcxproj", "props", "targets",
            "xaml", "opml", "wsdl", "resx",
        ],
        &["pom.xml"],
        "XML",
    ),
    language(
        "yaml",
        &["yml", "sublime-syntax"],
        &[".clang-format", ".clang-tidy", ".clangd", "pnpm-lock.yaml"],
        "YAML",
    ),
    language("zig", &["zon"], &[], "Zig"),
];

/// The fence tag for the file at `path`, by its name and extension alone; `text` for what is not known.
pub fn language_of(path: &str) -> &'static str {
    of_path(path).unwrap_or(&PLAIN).tag
}

/// The language that a fence's info string, an extension or a path names.
///
/// Takes what people write: `Rust`, `language-rs`, `{.python .numberLines}`, `rust,ignore`, `ts title="a.ts"`.
pub fn find(name: &str) -> Option<&'static Language> {
    let breaks = |c: char| c.is_whitespace() || matches!(c, ',' | ';' | '{' | '}' | '=' | '"' | '(');
    let word = name.split(breaks).find(|it| !it.is_empty())?;
    let word = word
        .strip_prefix("language-")
        .or_else(|| word.strip_prefix("lang-"))
        .unwrap_or(word);
    let lower = word.to_ascii_lowercase();
    let short = lower.strip_prefix('.').unwrap_or(&lower);
    by_tag(&lower).or_else(|| by_tag(short)).or_else(|| of_path(word))
}

/// The language of a script, by its first line: `#!/usr/bin/env python3`.
pub fn of_first_line(line: &str) -> Option<&'static Language> {
    let Some(command) = line.strip_prefix("#!") else {
        return if line.starts_with("<?php") {
            by_tag("php")
        } else if line.starts_with("<?xml") {
            by_tag("xml")
        } else if line.starts_with("diff --git ") {
            by_tag("diff")
        } else {
            None
        };
    };
    let mut words = command.split_whitespace();
    let program = |word: &str| word.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let mut name = program(words.next()?);
    if name == "env" {
        name = program(words.find(|it| !it.starts_with('-') && !it.contains('='))?);
    }
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    match bare {
        "node" | "bun" => by_tag("javascript"),
        "deno" | "ts-node" | "tsx" => by_tag("typescript"),
        "rscript" => by_tag("r"),
        _ => by_tag(bare),
    }
}

#[cfg(test)]
pub(super) fn all() -> &'static [Language] {
    LANGUAGES
}

fn by_tag(name: &str) -> Option<&'static Language> {
    LANGUAGES
        .iter()
        .find(|it| it.tag == name)
        .or_else(|| LANGUAGES.iter().find(|it| it.aliases.contains(&name)))
}

fn of_path(path: &str) -> Option<&'static Language> {
    let name = path.rsplit(['/', '\\']).next()?.to_ascii_lowercase();
    if let Some(found) = LANGUAGES.iter().find(|it| it.files.contains(&name.as_str())) {
        return Some(found);
    }
    if name.starts_with(".env.") || name.starts_with("dockerfile.") || name.starts_with("makefile.") {
        let stem = name.trim_start_matches('.').split('.').next()?;
        return by_tag(stem);
    }
    let (_, extension) = name.rsplit_once('.')?;
    by_tag(extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_tells_the_fence_tag() {
        let cases = [
            ("src/a.rs", "rust"),
            ("a.py", "python"),
            ("x.pyi", "python"),
            ("a.ts", "typescript"),
            ("a.d.ts", "typescript"),
            ("a.tsx", "tsx"),
            ("a.jsx", "jsx"),
            ("a.mjs", "javascript"),
            ("main.go", "go"),
            ("go.mod", "gomod"),
            ("go.sum", "gosum"),
            ("Main.java", "java"),
            ("a.kt", "kotlin"),
            ("build.gradle.kts", "kotlin"),
            ("build.gradle", "groovy"),
            ("Jenkinsfile", "groovy"),
            ("a.c", "c"),
            ("a.h", "c"),
            ("a.cc", "cpp"),
            ("a.HPP", "cpp"),
            ("a.cs", "csharp"),
            ("a.fs", "fsharp"),
            ("a.swift", "swift"),
            ("a.m", "objective-c"),
            ("a.rb", "ruby"),
            ("Gemfile", "ruby"),
            ("Rakefile", "ruby"),
            ("a.php", "php"),
            ("a.pl", "perl"),
            ("a.lua", "lua"),
            ("a.sh", "bash"),
            (".zshrc", "bash"),
            ("home/.bashrc", "bash"),
            ("a.fish", "fish"),
            ("a.ps1", "powershell"),
            ("a.bat", "batch"),
            ("Dockerfile", "dockerfile"),
            ("docker/Dockerfile.dev", "dockerfile"),
            ("Containerfile", "dockerfile"),
            ("Makefile", "make"),
            ("rules.mk", "make"),
            ("CMakeLists.txt", "cmake"),
            ("Cargo.toml", "toml"),
            ("Cargo.lock", "toml"),
            ("package.json", "json"),
            ("tsconfig.jsonc", "json"),
            ("a.yml", "yaml"),
            (".github/workflows/ci.yaml", "yaml"),
            ("a.xml", "xml"),
            ("logo.svg", "xml"),
            ("index.html", "html"),
            ("a.css", "css"),
            ("a.scss", "scss"),
            ("a.vue", "vue"),
            ("a.svelte", "svelte"),
            ("README.md", "markdown"),
            ("README", "text"),
            ("LICENSE", "text"),
            ("notes.txt", "text"),
            ("requirements.txt", "requirements"),
            ("a.sql", "sql"),
            ("a.proto", "protobuf"),
            ("a.graphql", "graphql"),
            ("a.tf", "hcl"),
            ("a.nix", "nix"),
            ("a.hs", "haskell"),
            ("a.ml", "ocaml"),
            ("a.ex", "elixir"),
            ("a.erl", "erlang"),
            ("a.clj", "clojure"),
            ("a.scala", "scala"),
            ("a.dart", "dart"),
            ("a.zig", "zig"),
            ("a.jl", "julia"),
            ("a.R", "r"),
            ("a.tex", "latex"),
            ("a.patch", "diff"),
            (".gitignore", "gitignore"),
            (".env.local", "dotenv"),
            (".editorconfig", "ini"),
            ("C:\\work\\a.rs", "rust"),
            ("a.unknown", "text"),
            ("", "text"),
            (".", "text"),
            ("rust", "text"),
        ];
        for (path, tag) in cases {
            assert_eq!(language_of(path), tag, "{path:?}");
        }
    }

    #[test]
    fn an_info_string_names_a_language() {
        let cases = [
            ("rust", "rust"),
            ("Rust", "rust"),
            ("rs", "rust"),
            ("rust,ignore", "rust"),
            ("rust edition=2021", "rust"),
            ("language-rust", "rust"),
            (".rs", "rust"),
            ("ts", "typescript"),
            ("tsx", "tsx"),
            ("jsx", "jsx"),
            ("js", "javascript"),
            ("js {1,3}", "javascript"),
            ("javascript title=\"a.js\"", "javascript"),
            ("py", "python"),
            ("python3", "python"),
            ("{.python .numberLines}", "python"),
            ("sh", "bash"),
            ("shell", "bash"),
            ("bash", "bash"),
            ("zsh", "bash"),
            ("console", "console"),
            ("shell-session", "console"),
            ("yml", "yaml"),
            ("c++", "cpp"),
            ("C", "c"),
            ("cs", "csharp"),
            ("c#", "csharp"),
            ("f#", "fsharp"),
            ("ps1", "powershell"),
            ("pwsh", "powershell"),
            ("dockerfile", "dockerfile"),
            ("docker", "dockerfile"),
            ("make", "make"),
            ("makefile", "make"),
            ("toml", "toml"),
            ("json", "json"),
            ("jsonc", "json"),
            ("vue", "vue"),
            ("svelte", "svelte"),
            ("text", "text"),
            ("plaintext", "text"),
            ("golang", "go"),
            ("kt", "kotlin"),
            ("objc", "objective-c"),
            ("hcl", "hcl"),
            ("terraform", "hcl"),
            ("proto", "protobuf"),
            ("postgresql", "sql"),
            ("elisp", "lisp"),
            ("vim", "vim"),
            ("diff", "diff"),
            ("md", "markdown"),
            ("html", "html"),
            ("src/main.rs", "rust"),
            ("12:15:src/main.rs", "rust"),
            ("Cargo.lock", "toml"),
        ];
        for (name, tag) in cases {
            assert_eq!(find(name).map(|it| it.tag), Some(tag), "{name:?}");
        }
        for name in ["", "  ", "nonsense", "{}", ",", "mermaid"] {
            assert_eq!(find(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_script_names_its_interpreter() {
        let cases = [
            ("#!/bin/sh", Some("bash")),
            ("#!/bin/bash -e", Some("bash")),
            ("#!/usr/bin/env python3.12", Some("python")),
            ("#!/usr/bin/env -S deno run", Some("typescript")),
            ("#!/usr/bin/env -S A=1 node", Some("javascript")),
            ("#! /usr/bin/perl", Some("perl")),
            ("<?php", Some("php")),
            ("<?xml version=\"1.0\"?>", Some("xml")),
            ("#!", None),
            ("#!/usr/bin/env", None),
            ("# a comment", None),
            ("", None),
        ];
        for (line, tag) in cases {
            assert_eq!(of_first_line(line).map(|it| it.tag), tag, "{line:?}");
        }
    }

    #[test]
    fn no_name_means_two_languages() {
        let mut names = std::collections::HashMap::new();
        for it in LANGUAGES {
            for name in it.aliases.iter().chain([&it.tag]) {
                assert_eq!(names.insert(*name, it.tag), None, "{name}");
                assert_eq!(name.to_ascii_lowercase(), *name);
            }
        }
    }
}
