//! Names of languages: from a file's path or a fence's info string to the one name we use.
//!
//! The table is `assets/languages.txt`; reading it loads no grammar. Grammars are found by their own name in the last
//! column, because their lists of extensions contradict each other (`fs` is F# here and a shader there).

use std::sync::LazyLock;

/// A language as people and files name it.
#[derive(Debug, PartialEq, Eq)]
pub struct Language {
    /// Name in fences that we write.
    pub tag: &'static str,
    /// Other names in fences, and extensions of files; lower case.
    aliases: Vec<&'static str>,
    /// Names of files; lower case.
    files: Vec<&'static str>,
    /// Name of the grammar; `""` for plain text.
    pub grammar: &'static str,
}

/// Tag of a session at a prompt: commands after `$`, output between them.
pub const CONSOLE: &str = "console";

static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    let rows = include_str!("../../assets/languages.txt").lines();
    let language = |row: &'static str| {
        let mut cells = row.split('|').map(str::trim);
        Some(Language {
            tag: cells.next()?,
            aliases: cells.next()?.split_whitespace().collect(),
            files: cells.next()?.split_whitespace().collect(),
            grammar: cells.next()?,
        })
    };
    rows.filter(|it| !it.starts_with('#')).filter_map(language).collect()
});

/// Returns the fence tag for a file by its name and extension alone; `text` if they are unknown.
pub fn language_of(path: &str) -> &'static str {
    of_path(path).map_or("text", |it| it.tag)
}

/// Returns the language that an info string, an extension or a path names. `None` if it is unknown.
///
/// Accepts common spellings: `Rust`, `language-rs`, `{.python .numberLines}`, `rust,ignore`, `ts title="a.ts"`.
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

/// The language of a text by its first line: an interpreter (`#!/usr/bin/env python3`), `<?php`, `<?xml` or `diff --git `.
/// `None` if the line does not tell.
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
    &LANGUAGES
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
        for it in LANGUAGES.iter() {
            for name in it.aliases.iter().chain([&it.tag]) {
                assert_eq!(names.insert(*name, it.tag), None, "{name}");
                assert_eq!(name.to_ascii_lowercase(), *name);
            }
        }
    }
}
