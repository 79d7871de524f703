//! Simple LaTeX as Unicode: `x^2` becomes x², `\frac{a}{b}` a/b, a matrix its rows.
//!
//! Pure, and all or nothing: whatever it does not know (a command, a superscript that Unicode lacks a letter for in a long
//! expression, a brace too few) leaves the whole source as it is, which is still better to read than half of a formula.

use super::{WordList, width};

/// Deepest nesting of a simple formula.
const DEEPEST: usize = 24;

/// Longer ones are no simple formulas.
const LONGEST_BYTES: usize = 4096;

/// Most rows, and most columns, of a matrix; larger ones are shown as written.
const MOST_ROWS: usize = 32;

/// Cells that may be copied for joining boxes of several lines. A formula that needs more is not simple.
const MOST_CELLS: usize = 50_000;

/// Commands that are one sign: command, tab, sign.
const SIGNS: &str = include_str!("../../assets/latex.txt");

/// Commands that are words.
const WORDS: WordList = WordList(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim limsup liminf max min sup inf arg
     det dim ker deg gcd hom Pr bmod",
);

/// Commands that only change the look of their argument.
const PLAIN: WordList = WordList(
    "text textbf textit textrm texttt mathrm mathbf mathit mathsf mathtt boldsymbol bm operatorname mbox displaystyle
     textstyle limits nolimits",
);

/// Commands of those that have no argument.
const SILENT: &[&str] = &["displaystyle", "textstyle", "limits", "nolimits"];

const BLACKBOARD: &str = "CℂHℍNℕPℙQℚRℝZℤE𝔼F𝔽1𝟙";

const ACCENTS: &[(&str, char)] = &[
    ("hat", '\u{302}'),
    ("widehat", '\u{302}'),
    ("bar", '\u{304}'),
    ("overline", '\u{305}'),
    ("tilde", '\u{303}'),
    ("vec", '\u{20d7}'),
    ("dot", '\u{307}'),
    ("ddot", '\u{308}'),
];

const RAISED: &str = "0⁰1¹2²3³4⁴5⁵6⁶7⁷8⁸9⁹+⁺-⁻=⁼(⁽)⁾aᵃbᵇcᶜdᵈeᵉfᶠgᵍhʰiⁱjʲkᵏlˡmᵐnⁿoᵒpᵖrʳsˢtᵗuᵘvᵛwʷxˣyʸzᶻAᴬBᴮDᴰEᴱGᴳHᴴIᴵJᴶKᴷLᴸMᴹNᴺOᴼPᴾRᴿTᵀUᵁVⱽWᵂβᵝγᵞδᵟθᶿϕᶲ′′∗*";
const LOWERED: &str = "0₀1₁2₂3₃4₄5₅6₆7₇8₈9₉+₊-₋=₌(₍)₎aₐeₑhₕiᵢjⱼkₖlₗmₘnₙoₒpₚrᵣsₛtₜuᵤvᵥxₓβᵦγᵧρᵨϕᵩχᵪ";

/// Returns the character that follows `letter` in a table of pairs. `None` if it is not in it.
fn paired(table: &str, letter: char) -> Option<char> {
    let mut pairs = table.chars();
    while let (Some(from), Some(to)) = (pairs.next(), pairs.next()) {
        if from == letter {
            return Some(to);
        }
    }
    None
}

/// The formula as lines of text; `None`: it is not simple, and the source is to be shown.
///
/// A formula in a line of words has to be one line.
pub fn unicode(source: &str) -> Option<Vec<String>> {
    if source.len() > LONGEST_BYTES || source.contains(|it: char| it.is_control() && !it.is_whitespace()) {
        return None;
    }
    let mut reader = FormulaReader {
        rest: source,
        depth: 0,
        cells: MOST_CELLS,
    };
    let read = reader.lines(None)?;
    let lines: Vec<String> = read.lines.iter().map(|it| it.trim_end().to_owned()).collect();
    lines.iter().any(|it| !it.trim().is_empty()).then_some(lines)
}

/// Returns true if the text between two dollar signs was meant as a formula.
pub fn is_formula(source: &str) -> bool {
    if source.contains(['\\', '^', '{', '=', '<', '>']) {
        return true;
    }
    let mut letters = source.chars();
    match (letters.next(), letters.next()) {
        (Some(only), None) => only.is_alphabetic(),
        (Some(first), Some('(' | '_' | '+' | '-')) => {
            let is_part = |it: char| it.is_alphanumeric() || matches!(it, '(' | ')' | ',' | '_' | '+' | '-' | ' ');
            first.is_alphabetic() && source.chars().all(is_part) && source.len() < 24
        }
        _ => false,
    }
}

/// Text in lines, one of which is the base line for its neighbours.
#[derive(Clone, Debug)]
struct TextBox {
    lines: Vec<String>,
    base: usize,
    /// The text with parentheses, for neighbours that would be taken for a part of it: `(1/2)` for `1/2`.
    closed: Option<Closed>,
}

#[derive(Clone, Debug)]
struct Closed {
    text: String,
    /// True if the text before it matters, too.
    is_both: bool,
}

/// Returns true if a text that begins or ends with this letter would join its neighbour.
fn joins(letter: char) -> bool {
    letter.is_alphanumeric()
        || matches!(
            letter,
            '√' | '∛' | '∜' | '(' | ')' | '^' | '_' | '∑' | '∏' | '∫' | '∞' | '′'
        )
}

impl TextBox {
    fn of(text: &str) -> Self {
        Self {
            lines: vec![text.to_owned()],
            base: 0,
            closed: None,
        }
    }

    fn rows(lines: Vec<String>, base: usize) -> Self {
        Self {
            lines,
            base,
            closed: None,
        }
    }

    fn or_closed(mut self, text: String, is_both: bool) -> Self {
        self.closed = Some(Closed { text, is_both });
        self
    }

    /// The only line.
    fn line(&self) -> Option<&str> {
        match self.lines.as_slice() {
            [line] => Some(line),
            _ => None,
        }
    }

    fn columns(&self) -> usize {
        self.lines.iter().map(|it| width::width(it)).max().unwrap_or(0)
    }

    /// Puts another piece to the right.
    fn push(&mut self, other: Self) {
        if let ([own], [new]) = (self.lines.as_mut_slice(), other.lines.as_slice()) {
            own.push_str(new);
            return;
        }
        let columns = self.columns();
        let base = self.base.max(other.base);
        let below = (self.lines.len() - self.base).max(other.lines.len() - other.base);
        let lines = (0..base + below).map(|at| {
            let own = (at + self.base).checked_sub(base).and_then(|it| self.lines.get(it));
            let new = (at + other.base).checked_sub(base).and_then(|it| other.lines.get(it));
            let mut line = width::pad(own.map_or("", String::as_str), columns);
            line.push_str(new.map_or("", String::as_str));
            line
        });
        self.lines = lines.collect();
        self.base = base;
    }
}

struct FormulaReader<'a> {
    rest: &'a str,
    depth: usize,
    /// That may still be laid out.
    cells: usize,
}

impl FormulaReader<'_> {
    /// Puts another piece to the right of one, as far as that is not too much.
    fn join(&mut self, piece: &mut TextBox, other: TextBox) -> Option<()> {
        if piece.lines.len() > 1 || other.lines.len() > 1 {
            let rows = piece.lines.len() + other.lines.len();
            self.cells = self.cells.checked_sub(rows * (piece.columns() + other.columns() + 1))?;
        }
        piece.push(other);
        Some(())
    }

    /// Reads to the end of the source, or of an environment; `\\` begins a new line below.
    fn lines(&mut self, environment: Option<&str>) -> Option<TextBox> {
        let rows = self.rows(environment)?;
        let is_aligned = environment.is_some();
        // What stands before `&` ends in the same column in each row.
        let wide = widths(&rows);
        let mut lines = Vec::new();
        for row in rows {
            let mut line = TextBox::of("");
            let last = row.len().saturating_sub(1);
            for (at, cell) in row.into_iter().enumerate() {
                if at > 0 && !is_aligned {
                    return None;
                }
                let room = wide.get(at).copied().unwrap_or(0).saturating_sub(cell.columns());
                let room = TextBox::of(&" ".repeat(room));
                if at % 2 == 0 && last > 0 {
                    self.join(&mut line, room)?;
                    self.join(&mut line, cell)?;
                } else {
                    self.join(&mut line, cell)?;
                    if at < last {
                        self.join(&mut line, room)?;
                    }
                }
            }
            lines.append(&mut line.lines);
        }
        let base = lines.len().saturating_sub(1) / 2;
        (!lines.is_empty()).then(|| TextBox::rows(lines, base))
    }

    /// Rows of cells, up to `\end` of the environment or the end of the source.
    fn rows(&mut self, environment: Option<&str>) -> Option<Vec<Vec<TextBox>>> {
        let mut rows = vec![Vec::new()];
        loop {
            let cell = self.sequence()?;
            rows.last_mut()?.push(cell);
            if rows.len() > MOST_ROWS || rows.last()?.len() > MOST_ROWS {
                return None;
            }
            if self.take("&") {
                continue;
            }
            if self.take("\\\\") {
                self.skip_option();
                rows.push(Vec::new());
                continue;
            }
            if let Some(name) = environment {
                let end = format!("\\end{{{name}}}");
                self.take(&end).then_some(())?;
            } else if !self.rest.is_empty() {
                return None;
            }
            break;
        }
        // A break at the end begins no row.
        if rows.len() > 1
            && rows
                .last()
                .is_some_and(|it| it.iter().all(|it| it.line().is_some_and(|it| it.trim().is_empty())))
        {
            rows.pop();
        }
        Some(rows)
    }

    /// Skips `[2pt]` after a line break.
    fn skip_option(&mut self) {
        if let Some((_, rest)) = self.rest.strip_prefix('[').and_then(|it| it.split_once(']')) {
            self.rest = rest;
        }
    }

    /// Everything up to a brace that closes, `&`, `\\`, `\end` or `\right`.
    fn sequence(&mut self) -> Option<TextBox> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return None;
        }
        let mut piece = TextBox::of("");
        // Where the last atom begins in the only line, and how it is written if it has to be closed.
        let mut tail: Option<(usize, String)> = None;
        loop {
            let is_over = self.rest.is_empty()
                || self.rest.starts_with(['}', '&'])
                || self.rest.starts_with("\\\\")
                || self.rest.starts_with("\\end{")
                || (self.rest.starts_with("\\right") && !self.rest.starts_with("\\rightarrow"));
            if is_over {
                break;
            }
            let spaces = self.rest.len() - self.rest.trim_start().len();
            if spaces > 0 {
                self.rest = self.rest.trim_start();
                if !piece
                    .lines
                    .get(piece.base)
                    .is_none_or(|it| it.is_empty() || it.ends_with(' '))
                {
                    self.join(&mut piece, TextBox::of(" "))?;
                }
                tail = None;
                continue;
            }
            let mut atom = if self.rest.starts_with(['^', '_']) {
                TextBox::of(&self.script()?)
            } else {
                self.atom()?
            };
            let next = atom.line().and_then(|it| it.chars().next());
            if let Some((at, closed)) = tail.take_if(|_| next.is_some_and(joins))
                && let [line] = piece.lines.as_mut_slice()
            {
                line.truncate(at);
                line.push_str(&closed);
            }
            let before = piece.line().and_then(|it| it.chars().next_back());
            let closed = atom.closed.take();
            let is_closed = closed.as_ref().is_some_and(|it| it.is_both) && before.is_some_and(joins);
            match closed {
                Some(closed) if is_closed => {
                    self.join(&mut piece, TextBox::of(&closed.text))?;
                    tail = None;
                }
                closed => {
                    tail = closed.and_then(|it| Some((piece.line()?.len(), it.text)));
                    self.join(&mut piece, atom)?;
                }
            }
        }
        self.depth -= 1;
        if let Some((0, text)) = tail {
            return Some(piece.or_closed(text, true));
        }
        Some(piece)
    }

    /// `^2`, `_{i+1}`, raised or lowered.
    fn script(&mut self) -> Option<String> {
        let is_raised = self.take("^");
        if !is_raised {
            self.take("_");
        }
        let argument = self.argument()?;
        let text = argument.line()?.replace(' ', "");
        let table = if is_raised { RAISED } else { LOWERED };
        let text = text.replace('−', "-");
        if text == "∘" || text == "°" {
            return Some("°".to_owned());
        }
        if let Some(moved) = text.chars().map(|it| paired(table, it)).collect::<Option<String>>() {
            return Some(moved);
        }
        let sign = if is_raised { '^' } else { '_' };
        Some(
            if text.chars().count() == 1 || (!is_raised && text.chars().all(char::is_alphanumeric)) {
                format!("{sign}{text}")
            } else {
                format!("{sign}({text})")
            },
        )
    }

    /// Reads a group, a command with its arguments, or one letter.
    fn argument(&mut self) -> Option<TextBox> {
        self.rest = self.rest.trim_start();
        self.atom()
    }

    fn atom(&mut self) -> Option<TextBox> {
        self.depth += 1;
        let atom = (self.depth <= 2 * DEEPEST).then(|| self.one())?;
        self.depth -= 1;
        atom
    }

    fn one(&mut self) -> Option<TextBox> {
        if self.take("{") {
            let piece = self.sequence()?;
            return self.take("}").then_some(piece);
        }
        if let Some(rest) = self.rest.strip_prefix('\\') {
            self.rest = rest;
            return self.command();
        }
        let letter = self.rest.chars().next()?;
        self.rest = self.rest.get(letter.len_utf8()..)?;
        Some(TextBox::of(&match letter {
            '-' => "−".to_owned(),
            '\'' => "′".to_owned(),
            '~' => " ".to_owned(),
            // A dollar sign, a comment, a superscript without anything under it: not simple.
            '$' | '%' | '#' => return None,
            letter => letter.to_string(),
        }))
    }

    fn command(&mut self) -> Option<TextBox> {
        let end = self
            .rest
            .find(|it: char| !it.is_ascii_alphabetic())
            .unwrap_or(self.rest.len());
        if end == 0 {
            let letter = self.rest.chars().next()?;
            self.rest = self.rest.get(letter.len_utf8()..)?;
            return Some(TextBox::of(match letter {
                ',' | ':' | ';' | ' ' => " ",
                '!' => "",
                '%' => "%",
                '$' => "$",
                '&' => "&",
                '#' => "#",
                '_' => "_",
                '{' => "{",
                '}' => "}",
                '|' => "‖",
                _ => return None,
            }));
        }
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let spaces = [("quad", "  "), ("qquad", "    ")];
        let mut signs = SIGNS.lines().filter_map(|it| it.split_once('\t')).chain(spaces);
        if let Some((_, sign)) = signs.find(|it| it.0 == name) {
            return Some(TextBox::of(sign));
        }
        if WORDS.contains(name) {
            return Some(TextBox::of(name));
        }
        if SILENT.contains(&name) {
            self.rest = self.rest.trim_start();
            return Some(TextBox::of(""));
        }
        if PLAIN.contains(name) {
            return self.words();
        }
        if let Some((_, accent)) = ACCENTS.iter().find(|it| it.0 == name) {
            let argument = self.argument()?;
            let mut text = argument.line()?.to_owned();
            (text.chars().count() == 1 && text.chars().all(char::is_alphanumeric)).then_some(())?;
            text.push(*accent);
            return Some(TextBox::of(&text));
        }
        match name {
            "frac" | "dfrac" | "tfrac" => {
                let (above, below) = (self.argument()?, self.argument()?);
                let text = format!("{}/{}", grouped(above.line()?), grouped(below.line()?));
                let closed = format!("({text})");
                Some(TextBox::of(&text).or_closed(closed, true))
            }
            "binom" => {
                let (above, below) = (self.argument()?, self.argument()?);
                Some(TextBox::of(&format!("C({}, {})", above.line()?, below.line()?)))
            }
            "sqrt" => self.root(),
            "mathbb" => {
                let argument = self.argument()?;
                let letter = argument.line()?.chars().next()?;
                let found = paired(BLACKBOARD, letter)?;
                (argument.line()?.chars().count() == 1).then(|| TextBox::of(&found.to_string()))
            }
            "mathcal" | "mathscr" | "mathfrak" => self.argument(),
            "pmod" => {
                let argument = self.argument()?;
                Some(TextBox::of(&format!("(mod {})", argument.line()?)))
            }
            "left" => self.fenced(),
            "big" | "Big" | "bigg" | "Bigg" | "bigl" | "bigr" | "Bigl" | "Bigr" => {
                self.delimiter().map(|it| TextBox::of(&it))
            }
            "begin" => self.environment(),
            _ => None,
        }
    }

    /// Reads the words of `\text{…}` with their spaces.
    fn words(&mut self) -> Option<TextBox> {
        self.rest = self.rest.trim_start();
        let inner = self.rest.strip_prefix('{')?;
        let end = inner.find(['{', '}', '\\', '$'])?;
        let (text, rest) = inner.split_at(end);
        self.rest = rest.strip_prefix('}')?;
        Some(TextBox::of(&text.replace(['\n', '\t'], " ")))
    }

    fn root(&mut self) -> Option<TextBox> {
        let mut sign = "√".to_owned();
        if let Some(inner) = self.rest.strip_prefix('[') {
            let (degree, rest) = inner.split_once(']')?;
            self.rest = rest;
            sign = match degree.trim() {
                "3" => "∛".to_owned(),
                "4" => "∜".to_owned(),
                other => {
                    let raised: Option<String> = other.chars().map(|it| paired(RAISED, it)).collect();
                    format!("{}√", raised.filter(|it| !it.is_empty())?)
                }
            };
        }
        let argument = self.argument()?;
        let text = argument.line()?;
        let is_one = text.chars().count() == 1 || text.chars().all(|it| it.is_ascii_digit());
        let closed = format!("{sign}({text})");
        Some(if is_one {
            TextBox::of(&format!("{sign}{text}")).or_closed(closed, false)
        } else {
            TextBox::of(&closed)
        })
    }

    /// Reads a delimiter after `\left` and similar commands; a dot is an empty one.
    fn delimiter(&mut self) -> Option<String> {
        self.rest = self.rest.trim_start();
        if self.take(".") {
            return Some(String::new());
        }
        self.rest
            .starts_with(['(', ')', '[', ']', '|', '/', '\\', '<', '>'])
            .then_some(())?;
        let piece = self.atom()?;
        Some(piece.line()?.to_owned())
    }

    /// `\left( … \right)`.
    fn fenced(&mut self) -> Option<TextBox> {
        let open = self.delimiter()?;
        let mut inner = self.sequence()?;
        if let [line] = inner.lines.as_mut_slice() {
            line.truncate(line.trim_end().len());
        }
        self.take("\\right").then_some(())?;
        let close = self.delimiter()?;
        let mut piece = side(&open, inner.lines.len(), inner.base, true)?;
        let (count, base) = (inner.lines.len(), inner.base);
        self.join(&mut piece, inner)?;
        self.join(&mut piece, side(&close, count, base, false)?)?;
        Some(piece)
    }

    fn environment(&mut self) -> Option<TextBox> {
        let inner = self.rest.strip_prefix('{')?;
        let (name, rest) = inner.split_once('}')?;
        self.rest = rest;
        let (open, close) = match name {
            "matrix" | "smallmatrix" => ("", ""),
            "pmatrix" => ("(", ")"),
            "bmatrix" => ("[", "]"),
            "vmatrix" => ("|", "|"),
            "cases" => ("{", ""),
            "aligned" | "align" | "align*" | "gathered" | "equation" | "equation*" | "split" => {
                return self.lines(Some(name));
            }
            _ => return None,
        };
        let rows = self.rows(Some(name))?;
        let columns = rows.iter().map(Vec::len).max()?;
        let texts: Option<Vec<Vec<String>>> = rows
            .iter()
            .map(|row| row.iter().map(|it| Some(it.line()?.trim().to_owned())).collect())
            .collect();
        let texts = texts?;
        let wide: Vec<usize> = (0..columns)
            .map(|at| {
                texts
                    .iter()
                    .filter_map(|it| it.get(at))
                    .map(|it| width::width(it))
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let lines: Vec<String> = texts
            .iter()
            .map(|row| {
                let cell = |at: usize| {
                    width::pad(
                        row.get(at).map_or("", String::as_str),
                        wide.get(at).copied().unwrap_or(0),
                    )
                };
                (0..columns).map(cell).collect::<Vec<_>>().join("  ")
            })
            .collect();
        let (count, base) = (lines.len(), lines.len().saturating_sub(1) / 2);
        let mut piece = side(open, count, base, true)?;
        self.join(&mut piece, TextBox::rows(lines, base))?;
        self.join(&mut piece, side(close, count, base, false)?)?;
        Some(piece)
    }

    fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

/// Returns the width of each column, in terminal columns.
fn widths(rows: &[Vec<TextBox>]) -> Vec<usize> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let of = |at: usize| rows.iter().filter_map(|it| it.get(at)).map(TextBox::columns).max();
    (0..columns).map(|at| of(at).unwrap_or(0)).collect()
}

/// Returns a delimiter as high as its neighbour.
fn side(sign: &str, lines: usize, base: usize, is_left: bool) -> Option<TextBox> {
    let parts = match (sign, is_left) {
        _ if lines == 1 => return Some(TextBox::of(sign)),
        ("", _) => ["", "", ""],
        ("(", true) => ["⎛", "⎜", "⎝"],
        (")", false) => ["⎞", "⎟", "⎠"],
        ("[", true) => ["⎡", "⎢", "⎣"],
        ("]", false) => ["⎤", "⎥", "⎦"],
        ("{", true) => ["⎧", "⎨", "⎩"],
        ("|", _) => ["|", "|", "|"],
        _ => return None,
    };
    let [first, middle, last] = parts;
    let lines = (0..lines)
        .map(|at| match at {
            0 => first,
            it if it + 1 == lines => last,
            _ => middle,
        })
        .map(str::to_owned);
    Some(TextBox::rows(lines.collect(), base))
}

/// With parentheses, unless it is one number or letter.
fn grouped(text: &str) -> String {
    let text = text.trim();
    let is_one =
        text.chars().all(char::is_alphanumeric) && (text.chars().count() == 1 || text.chars().all(char::is_numeric));
    let is_raised = text.chars().count() < 6
        && text
            .chars()
            .all(|it| it.is_alphanumeric() || RAISED.contains(it) && !it.is_ascii());
    if is_one || is_raised {
        text.to_owned()
    } else {
        format!("({text})")
    }
}

#[cfg(test)]
mod tests;
