use proptest::prelude::*;

use super::*;

fn check(cases: &[(&str, &str)]) {
    for (source, shown) in cases {
        let got = unicode(source).map_or_else(|| "as it stands".to_owned(), |it| it.join("\n"));
        assert_eq!(&got, shown, "{source}");
    }
}

#[test]
fn simple_formulas_are_signs() {
    check(&[
        ("x^2", "x²"),
        ("x^{n+1} + y_{ij}", "xⁿ⁺¹ + yᵢⱼ"),
        ("a_{12}^2", "a₁₂²"),
        (r"\frac{a}{b}", "a/b"),
        (r"\frac{x+1}{2}", "(x+1)/2"),
        (r"\frac12", "1/2"),
        (r"\sqrt{2} + \sqrt{x+1} + \sqrt[3]{y}", "√2 + √(x+1) + ∛y"),
        (r"\alpha + \beta \le \Omega", "α + β ≤ Ω"),
        (r"\sum_{i=1}^{n} i = \frac{n(n+1)}{2}", "∑ᵢ₌₁ⁿ i = (n(n+1))/2"),
        (r"O(n \log n)", "O(n log n)"),
        (r"f: A \to B", "f: A → B"),
        (r"e^{i\pi} + 1 = 0", "e^(iπ) + 1 = 0"),
        (r"\text{if } x \in \mathbb{R}", "if x ∈ ℝ"),
        (r"\left( \frac{1}{x} \right)^2", "(1/x)²"),
        (r"90^\circ", "90°"),
        (r"E = \frac{1}{2}mv^2", "E = (1/2)mv²"),
        (r"2\frac{1}{2}", "2(1/2)"),
        (r"\frac{a}{b}c", "(a/b)c"),
        (r"{\frac{a}{b}}^2 + {\frac{a}{b}}", "(a/b)² + a/b"),
        (r"\frac{a}{b}\frac{c}{d}", "(a/b)(c/d)"),
        (r"\frac{a}{b} + c", "a/b + c"),
        (r"\sqrt{x}y + \sqrt{x}", "√(x)y + √x"),
        (r"\hat{x} \ne \vec{v}", "x\u{302} ≠ v\u{20d7}"),
        (r"50\%\ of\ \$5", "50% of $5"),
        (r"x_{max}", "xₘₐₓ"),
    ]);
}

#[test]
fn a_matrix_stands_in_rows() {
    check(&[
        (
            r"A = \begin{pmatrix} 1 & 0 \\ 0 & 10 \end{pmatrix}",
            "A = ⎛1  0 ⎞\n    ⎝0  10⎠",
        ),
        (r"\begin{bmatrix} a & b \end{bmatrix}", "[a  b]"),
        (
            r"f(x) = \begin{cases} 1 & x > 0 \\ 0 & x = 0 \\ -1 & x < 0 \end{cases}",
            "       ⎧1   x > 0\nf(x) = ⎨0   x = 0\n       ⎩−1  x < 0",
        ),
        (r"\begin{aligned} a &= b \\ &= c \end{aligned}", "a = b\n  = c"),
    ]);
}

#[test]
fn what_is_not_known_stays_as_it_stands() {
    let stays = "as it stands";
    check(&[
        (r"\unknown{x}", stays),
        (r"\frac{a", stays),
        (r"a } b", stays),
        (r"\begin{tikzpicture} x \end{tikzpicture}", stays),
        (r"a & b", stays),
        (r"\left( x", stays),
        ("", stays),
        ("$", stays),
    ]);
}

#[test]
fn prices_and_variables_of_a_shell_are_no_formulas() {
    for text in ["5 and", "5 for two and 10", "HOME/", "PATH:", "5M", "(pwd)/"] {
        assert!(!is_formula(text), "{text}");
    }
    for text in ["x", "x^2", "f(x)", "O(n)", r"\pi", "a=b", "x_1"] {
        assert!(is_formula(text), "{text}");
    }
}

proptest! {
    #[test]
    fn nothing_makes_it_panic_or_go_on_for_ever(source in r"([\\a-z{}^_&$ 0-9()\[\]]|\\frac|\\sqrt|\\begin\{pmatrix\}|\\end\{pmatrix\}|\\left\(|\\right\)|\\\\|é|漢){0,60}") {
        if let Some(lines) = unicode(&source) {
            let cells: usize = lines.iter().map(|it| it.chars().count()).sum();
            prop_assert!(cells <= 16 * source.len() * MOST_ROWS, "{source:?}: {lines:?}");
            prop_assert!(lines.iter().all(|it| !it.contains('\n')));
        }
    }

    #[test]
    fn one_unknown_command_leaves_the_whole_source(before in "[a-z +^0-9]{0,8}", after in "[a-z +0-9]{0,8}") {
        prop_assert_eq!(unicode(&format!("{before}\\qwertz {after}")), None);
    }
}

/// A formula that costs more than its length is shown as it is written.
#[test]
fn what_is_small_and_would_grow_is_not_simple() {
    let rows = "é\\\\".repeat(500);
    let deep = format!("{}x", "\\sqrt".repeat(600));
    let wide = format!("{}{}", "&".repeat(1500), "\\\\".repeat(1000));
    for source in [
        format!("\\begin{{matrix}}{rows}\\end{{matrix}}{}", "x".repeat(2000)),
        format!(
            "\\begin{{matrix}}{}\\end{{matrix}}{}",
            "é\\\\".repeat(30),
            "x".repeat(3900)
        ),
        format!("\\begin{{matrix}}{wide}\\end{{matrix}}"),
        deep,
    ] {
        assert_eq!(unicode(&source), None, "{}", source.len());
    }
}
