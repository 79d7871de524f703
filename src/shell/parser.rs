//! Reads a line for the shell into a [`CommandLine`].
//!
//! The grammar is a real one (tree-sitter's), and what it does not call plain is a doubt: rules never allow a line with a
//! doubt in it. This is user interface, not the fence: the sandbox holds whatever was read here.

use tree_sitter::{Node, Parser};

use super::{CommandLine, Doubt, HARMLESS_DEVICES, Redirect, ShellWord, SimpleCommand, programs};
use crate::text::visible;

/// Longer lines are asked about without being read.
const LIMIT_BYTES: usize = 16 << 10;
/// The grammar's patience with errors and pipes grows faster than the text: thousands of signs cost it seconds.
const LIMIT_SIGNS: usize = 400;
const LIMIT_COMMANDS: usize = 32;
const LIMIT_DEPTH: usize = 48;

impl CommandLine {
    /// Parses a line. Never fails: what is not understood is a doubt.
    pub fn read(text: &str) -> Self {
        let mut line = Self::default();
        if text.len() > LIMIT_BYTES {
            line.doubt(Doubt::Long);
            return line;
        }
        if text.trim().is_empty() {
            line.doubt(Doubt::Empty);
            return line;
        }
        if text.contains('\n') {
            line.doubt(Doubt::Lines);
        }
        let is_odd =
            |it: char| (it.is_control() && !matches!(it, '\t' | '\n')) || (it.is_whitespace() && !it.is_ascii());
        if text.chars().any(is_odd) || &*visible(text) != text {
            line.doubt(Doubt::Control);
        }
        if !is_readable(text) {
            line.doubt(Doubt::Many);
            return line;
        }
        let mut parser = Parser::new();
        if parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_err() {
            line.doubt(Doubt::Unknown);
            return line;
        }
        let Some(tree) = parser.parse(text, None) else {
            line.doubt(Doubt::Broken);
            return line;
        };
        if tree.root_node().has_error() {
            line.doubt(Doubt::Broken);
        }
        line.statement(tree.root_node(), text, 0, false);
        if line.commands.is_empty() {
            line.doubt(Doubt::Empty);
        }
        if line.commands.len() > LIMIT_COMMANDS {
            line.doubt(Doubt::Many);
        }
        line
    }

    /// Reads a node where a statement may stand, and everything in it.
    fn statement(&mut self, node: Node<'_>, text: &str, depth: usize, is_fed: bool) {
        if depth > LIMIT_DEPTH {
            self.doubt(Doubt::Deep);
            return;
        }
        match node.kind() {
            "program" | "list" | "subshell" | "compound_statement" | "negated_command" => {}
            "pipeline" => {
                let mut is_fed = is_fed;
                for child in children(node) {
                    match child.kind() {
                        "|" => is_fed = true,
                        "|&" => {
                            is_fed = true;
                            self.doubt(Doubt::Unknown);
                        }
                        _ => self.statement(child, text, depth + 1, is_fed),
                    }
                }
                return;
            }
            "redirected_statement" => {
                let is_fed = is_fed || has_input(node, text);
                for child in children(node) {
                    match child.kind() {
                        "file_redirect" => self.redirect(child, text, depth + 1),
                        "herestring_redirect" => self.here_string(child, text, depth + 1),
                        "heredoc_redirect" => self.here_document(child, text, depth + 1),
                        _ => self.statement(child, text, depth + 1, is_fed),
                    }
                }
                return;
            }
            "command" => {
                self.command(node, text, depth + 1, is_fed);
                return;
            }
            ";" | "&&" | "||" | "(" | ")" | "{" | "}" | "!" | "|" | "\n" => return,
            "&" => {
                self.doubt(Doubt::Background);
                return;
            }
            "file_redirect" => {
                self.redirect(node, text, depth + 1);
                return;
            }
            other => self.doubt(match other {
                "variable_assignment" | "variable_assignments" | "declaration_command" | "unset_command" => {
                    Doubt::Assignment
                }
                "function_definition" => Doubt::Function,
                "if_statement"
                | "for_statement"
                | "c_style_for_statement"
                | "while_statement"
                | "case_statement"
                | "test_command"
                | "do_group"
                | "elif_clause"
                | "else_clause"
                | "case_item" => Doubt::Keyword,
                "command_substitution" | "process_substitution" => Doubt::Substitution,
                "heredoc_redirect" | "heredoc_body" | "heredoc_start" | "heredoc_end" | "heredoc_content" => {
                    Doubt::HereDocument
                }
                _ => Doubt::Unknown,
            }),
        }
        for child in children(node) {
            self.statement(child, text, depth + 1, is_fed);
        }
    }

    pub(super) fn command(&mut self, node: Node<'_>, text: &str, depth: usize, is_fed: bool) {
        let is_fed = is_fed || has_input(node, text);
        let mut words = Vec::new();
        for child in children(node) {
            match child.kind() {
                "command_name" => {
                    let inner = child.child(0).filter(|_| child.child_count() == 1).unwrap_or(child);
                    words.push(self.word(inner, text, depth + 1));
                }
                "file_redirect" => self.redirect(child, text, depth + 1),
                "herestring_redirect" => self.here_string(child, text, depth + 1),
                "variable_assignment" => {
                    self.doubt(Doubt::Assignment);
                    self.inside(child, text, depth + 1);
                }
                "heredoc_redirect" => self.here_document(child, text, depth + 1),
                _ => words.push(self.word(child, text, depth + 1)),
            }
        }
        let Some(first) = words.first() else {
            self.doubt(Doubt::Empty);
            return;
        };
        match &first.text {
            Some(it) if it.is_empty() => self.doubt(Doubt::Program),
            Some(it) if !first.is_quoted && KEYWORDS.contains(&it.as_str()) => self.doubt(Doubt::Keyword),
            Some(_) => {}
            None => self.doubt(Doubt::Program),
        }
        let command = SimpleCommand { words, is_fed };
        if let Some(doubt) = programs::doubt(&command) {
            self.doubt(doubt);
        }
        if self.commands.len() <= LIMIT_COMMANDS {
            self.commands.push(command);
        }
    }

    fn redirect(&mut self, node: Node<'_>, text: &str, depth: usize) {
        let mut sign = "";
        let mut files = Vec::new();
        for child in children(node) {
            match child.kind() {
                "file_descriptor" => {}
                it if !child.is_named() => sign = it,
                _ => files.push(self.word(child, text, depth + 1)),
            }
        }
        match (sign, files.as_slice()) {
            // To another descriptor, or closed.
            (">&" | "<&", [one]) if one.is_number() => {}
            (">&-" | "<&-", []) => {}
            // Bash takes the number for the descriptor of what follows.
            (_, [one]) if one.is_number() && !one.is_quoted => self.doubt(Doubt::Unknown),
            ("<", [file]) => self.redirects.push(Redirect {
                file: file.clone(),
                writes: false,
            }),
            (">" | ">>" | ">|" | "&>" | "&>>" | "<>" | ">&", [file]) => self.redirects.push(Redirect {
                file: file.clone(),
                writes: true,
            }),
            _ => self.doubt(Doubt::Unknown),
        }
        for file in &files {
            let device = file.text.as_deref().or(Some(&file.source)).unwrap_or_default();
            if device.starts_with("/dev/") && !HARMLESS_DEVICES.contains(&device) {
                self.doubt(Doubt::Device);
            }
        }
    }

    /// A here-document, and what stands behind its sign on the line.
    fn here_document(&mut self, node: Node<'_>, text: &str, depth: usize) {
        self.doubt(Doubt::HereDocument);
        let mut is_quoted = false;
        for child in children(node) {
            match child.kind() {
                "<<" | "<<-" | "file_descriptor" | "heredoc_end" => {}
                "heredoc_start" => is_quoted = slice(text, child).contains(['\'', '"', '\\']),
                "heredoc_body" => {
                    let body = slice(text, child);
                    if !is_quoted && (body.contains('`') || body.contains("$(")) {
                        self.doubt(Doubt::Substitution);
                    }
                    self.inside(child, text, depth + 1);
                }
                _ => self.statement(child, text, depth + 1, true),
            }
        }
    }

    fn here_string(&mut self, node: Node<'_>, text: &str, depth: usize) {
        for child in children(node).into_iter().filter(Node::is_named) {
            let word = self.word(child, text, depth + 1);
            if word.text.is_none() {
                self.doubt(Doubt::Expansion);
            }
            // As with a file: `<<<2>&1` is a here string without a text, and then a redirection of descriptor 2.
            if word.is_number() && !word.is_quoted {
                self.doubt(Doubt::Unknown);
            }
        }
    }

    /// A word, with doubts about what stands in it.
    fn word(&mut self, node: Node<'_>, text: &str, depth: usize) -> ShellWord {
        let source = slice(text, node);
        let mut word = ShellWord {
            text: Some(String::new()),
            source: source.to_owned(),
            start: String::new(),
            is_quoted: false,
        };
        self.part(node, text, depth, &mut word, true);
        word
    }

    /// Adds what a node says to the word that it is part of.
    fn part(&mut self, node: Node<'_>, text: &str, depth: usize, word: &mut ShellWord, is_first: bool) {
        if depth > LIMIT_DEPTH {
            self.doubt(Doubt::Deep);
            word.text = None;
            return;
        }
        let source = slice(text, node);
        match node.kind() {
            "word" | "number" if node.child_count() == 0 => {
                if is_first && source.starts_with('~') {
                    word.unknown();
                }
                let mut rest = source.chars();
                while let Some(it) = rest.next() {
                    match it {
                        '\\' => {
                            word.is_quoted = true;
                            word.extend(rest.next());
                        }
                        '*' | '?' | '[' | '{' | '!' | '^' => {
                            // `!` and `^` alone are plain here, yet worth no second thought.
                            if matches!(it, '!' | '^') {
                                word.extend(Some(it));
                            } else {
                                word.unknown();
                            }
                        }
                        // Grammar and shell may differ over where a word ends: these end it for the shell.
                        ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '\'' | '"' => {
                            self.doubt(Doubt::Unknown);
                            word.unknown();
                        }
                        it => word.extend(Some(it)),
                    }
                }
            }
            "raw_string" => {
                word.is_quoted = true;
                match source.strip_prefix('\'').and_then(|it| it.strip_suffix('\'')) {
                    Some(inner) if !inner.contains('\'') => word.extend(inner.chars()),
                    Some(_) | None => {
                        self.doubt(Doubt::Unknown);
                        word.unknown();
                    }
                }
            }
            "string" => {
                word.is_quoted = true;
                self.string(node, text, depth, word);
            }
            "concatenation" => {
                let mut end = node.start_byte();
                for (at, child) in children(node).into_iter().enumerate() {
                    if child.start_byte() != end {
                        self.doubt(Doubt::Unknown);
                    }
                    end = child.end_byte();
                    self.part(child, text, depth + 1, word, is_first && at == 0);
                }
            }
            "simple_expansion" => {
                word.unknown();
                if !is_plain_variable(source) {
                    self.doubt(Doubt::Expansion);
                }
            }
            "command_substitution" | "process_substitution" => {
                word.unknown();
                self.doubt(Doubt::Substitution);
                self.inside(node, text, depth + 1);
            }
            "expansion"
            | "arithmetic_expansion"
            | "brace_expression"
            | "ansi_c_string"
            | "translated_string"
            | "extglob_pattern"
            | "regex" => {
                word.unknown();
                self.doubt(Doubt::Expansion);
                self.inside(node, text, depth + 1);
            }
            _ => {
                word.unknown();
                self.doubt(Doubt::Unknown);
                self.inside(node, text, depth + 1);
            }
        }
    }

    /// The inside of double quotes: what the grammar gives no node to is text.
    fn string(&mut self, node: Node<'_>, text: &str, depth: usize, word: &mut ShellWord) {
        let source = slice(text, node);
        if source.len() < 2 || !source.starts_with('"') || !source.ends_with('"') {
            self.doubt(Doubt::Unknown);
            word.unknown();
            return;
        }
        let end = node.end_byte() - 1;
        let mut at = node.start_byte() + 1;
        for child in children(node) {
            match child.kind() {
                "string_content" | "\"" => continue,
                "simple_expansion" => {
                    self.quoted(text.get(at..child.start_byte()), word);
                    word.unknown();
                    if !is_plain_variable(slice(text, child)) {
                        self.doubt(Doubt::Expansion);
                    }
                }
                kind => {
                    self.quoted(text.get(at..child.start_byte()), word);
                    word.unknown();
                    self.doubt(match kind {
                        "command_substitution" | "process_substitution" => Doubt::Substitution,
                        _ => Doubt::Expansion,
                    });
                    self.inside(child, text, depth + 1);
                }
            }
            at = child.end_byte();
        }
        self.quoted(text.get(at..end), word);
    }

    /// Text between double quotes.
    fn quoted(&mut self, text: Option<&str>, word: &mut ShellWord) {
        let mut rest = text.unwrap_or_default().chars().peekable();
        while let Some(it) = rest.next() {
            match it {
                '\\' if rest.peek().is_some_and(|it| matches!(it, '$' | '`' | '"' | '\\')) => word.extend(rest.next()),
                '$' | '`' | '"' => {
                    self.doubt(Doubt::Expansion);
                    word.unknown();
                }
                it => word.extend(Some(it)),
            }
        }
    }

    /// Finds the commands in a node that is itself a doubt.
    fn inside(&mut self, node: Node<'_>, text: &str, depth: usize) {
        if depth > LIMIT_DEPTH {
            self.doubt(Doubt::Deep);
            return;
        }
        for child in children(node) {
            match child.kind() {
                "command"
                | "pipeline"
                | "list"
                | "redirected_statement"
                | "subshell"
                | "compound_statement"
                | "negated_command" => self.statement(child, text, depth + 1, false),
                _ => self.inside(child, text, depth + 1),
            }
        }
    }
}

/// Returns true if the grammar reads a text in no time.
pub(super) fn is_readable(text: &str) -> bool {
    let is_sign = |it: &u8| b"!#&()*<>;[]`{|}".contains(it);
    text.len() <= LIMIT_BYTES && text.bytes().filter(is_sign).count() <= LIMIT_SIGNS
}

/// `$name`, which puts in text and does nothing else. What stands in `$IFS` cuts words apart.
fn is_plain_variable(source: &str) -> bool {
    let name = source.strip_prefix('$').unwrap_or_default();
    let is_start = name.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_');
    is_start && name != "IFS" && name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_')
}

fn slice<'a>(text: &'a str, node: Node<'_>) -> &'a str {
    text.get(node.byte_range()).unwrap_or_default()
}

/// Returns true if a redirection among the parts of a node is an input.
fn has_input(node: Node<'_>, text: &str) -> bool {
    let reads = |it: &Node<'_>| match it.kind() {
        "file_redirect" => slice(text, *it).contains('<'),
        kind => matches!(kind, "herestring_redirect" | "heredoc_redirect"),
    };
    children(node).iter().any(reads)
}

pub(super) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

/// Words that the shell takes for its own where a command may begin. The grammar knows most of them.
const KEYWORDS: [&str; 23] = [
    "!", "[[", "]]", "{", "}", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function", "if",
    "in", "select", "then", "time", "until", "while", "((",
];
