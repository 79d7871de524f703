//! How a part of a sketch is moved sideways to stand where its place in the file does.

/// The change of indentation that moves a part to its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift<'a> {
    add: &'a str,
    remove: &'a str,
    /// The first line of the sketch lost its indentation, which happens to first lines.
    pub is_bare: bool,
}

impl Shift<'_> {
    /// Returns true if the indentation of a part differs from that of its place.
    pub fn moves(&self) -> bool {
        !self.add.is_empty() || !self.remove.is_empty()
    }

    /// The lines, moved; `None` if one has not the indentation to lose.
    pub fn apply(&self, lines: &[&str]) -> Option<Vec<String>> {
        let moved = |(at, line): (usize, &&str)| {
            if line.trim().is_empty() || (at == 0 && self.is_bare) {
                return Some((*line).to_owned());
            }
            let rest = line.strip_prefix(self.remove)?;
            Some(format!("{}{rest}", self.add))
        };
        lines.iter().enumerate().map(moved).collect()
    }
}

/// The shift between the edges of a place and those of a part, if both edges say the same.
pub fn shift<'a>(place: &[&'a str], part: &[&'a str], is_first: bool) -> Option<Shift<'a>> {
    let last = edge(place[place.len() - 1], part[part.len() - 1])?;
    let first = edge(place[0], part[0]);
    if first == Some(last) {
        return Some(last);
    }
    let is_straight = last.add.is_empty() && last.remove.is_empty();
    let is_bare = is_first && is_straight && place.len() > 1 && indent(part[0]).is_empty();
    is_bare.then_some(Shift { is_bare, ..last })
}

fn edge<'a>(file: &'a str, part: &'a str) -> Option<Shift<'a>> {
    let (file, part) = (indent(file), indent(part));
    let (add, remove) = match (file.strip_suffix(part), part.strip_suffix(file)) {
        (Some(add), _) => (add, ""),
        (None, Some(remove)) => ("", remove),
        (None, None) => return None,
    };
    Some(Shift {
        add,
        remove,
        is_bare: false,
    })
}

fn indent(line: &str) -> &str {
    line.split_at(line.len() - line.trim_start().len()).0
}
