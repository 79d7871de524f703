//! The best way to give each part of a sketch a place: in order, apart from each other, with the least total of scores.

/// A possible place of a part: lines `first..=last` of the file.
#[derive(Clone, Copy, Debug)]
pub struct PartPlace {
    pub first: usize,
    pub last: usize,
    /// Lines deleted and inserted, less what the edges say. A bound from below until it is counted out.
    pub score: i64,
    /// The part of the score that changed lines make.
    pub changed: usize,
    /// Equal lines at the head and the tail, as far as they count.
    pub equal: (i64, i64),
}

/// The best ways to take one place for each part, in order and apart from each other.
pub struct Chain<'a> {
    pub places: &'a [Vec<PartPlace>],
    /// For each place the least total of it and a way through all parts before, and the place before it.
    before: Vec<Vec<Option<(i64, usize)>>>,
    /// The same of it and all parts behind.
    behind: Vec<Vec<Option<(i64, usize)>>>,
}

impl<'a> Chain<'a> {
    /// Works out the best ways through the possible places of each part.
    pub fn new(places: &'a [Vec<PartPlace>]) -> Self {
        let count = places.len();
        let mut before: Vec<Vec<Option<(i64, usize)>>> = Vec::with_capacity(count);
        for part in 0..count {
            let row = match part.checked_sub(1) {
                None => places[part].iter().map(|it| Some((it.score, 0))).collect(),
                Some(last) => {
                    let ends = ways(&places[last], &before[last], |it| it.last);
                    // The best way that ends above.
                    let reach = |it: &PartPlace| {
                        let above = ends.partition_point(|end| end.0 < it.first);
                        ends.get(above.checked_sub(1)?).copied()
                    };
                    row(&places[part], reach)
                }
            };
            before.push(row);
        }
        let mut behind: Vec<Vec<Option<(i64, usize)>>> = vec![Vec::new(); count];
        for part in (0..count).rev() {
            behind[part] = if part + 1 == count {
                places[part].iter().map(|it| Some((it.score, 0))).collect()
            } else {
                // Counted from the end of the file, what is behind is before.
                let starts = ways(&places[part + 1], &behind[part + 1], |it| usize::MAX - it.first);
                let reach = |it: &PartPlace| {
                    let below = starts.partition_point(|start| start.0 < usize::MAX - it.last);
                    starts.get(below.checked_sub(1)?).copied()
                };
                row(&places[part], reach)
            };
        }
        Self { places, before, behind }
    }

    /// The best way; else the first part that does not come behind the ones before it.
    pub fn best(&self) -> Result<Vec<usize>, usize> {
        if let Some(part) = self.before.iter().position(|row| row.iter().all(Option::is_none)) {
            return Err(part);
        }
        let last = self.before.len() - 1;
        let ends = self.before[last].iter().enumerate();
        let best = ends.filter_map(|(at, it)| Some((it.as_ref()?.0, at))).min();
        Ok(self.with(last, best.map_or(0, |it| it.1)))
    }

    /// The least total of a way that takes a place.
    pub fn through(&self, part: usize, at: usize) -> Option<i64> {
        let own = self.places[part][at].score;
        Some(self.before[part][at]?.0 + self.behind[part][at]?.0 - own)
    }

    /// The best way that takes a place, which is on one.
    pub fn with(&self, part: usize, at: usize) -> Vec<usize> {
        let mut way = vec![at; self.places.len()];
        for it in (0..part).rev() {
            way[it] = self.before[it + 1][way[it + 1]].map_or(0, |it| it.1);
        }
        for it in part + 1..self.places.len() {
            way[it] = self.behind[it - 1][way[it - 1]].map_or(0, |it| it.1);
        }
        way
    }

    /// The sum of the scores of a way's places; the least is the best.
    pub fn total(&self, way: &[usize]) -> i64 {
        let scores = way.iter().enumerate().map(|(part, at)| self.places[part][*at].score);
        scores.sum()
    }
}

/// Ways by where they end, each with the best of those that end there or above: (end, total, place).
fn ways(
    places: &[PartPlace],
    totals: &[Option<(i64, usize)>],
    end: impl Fn(&PartPlace) -> usize,
) -> Vec<(usize, i64, usize)> {
    let pairs = places.iter().zip(totals).enumerate();
    let mut ways: Vec<_> = pairs
        .filter_map(|(at, (place, total))| Some((end(place), total.as_ref()?.0, at)))
        .collect();
    ways.sort_unstable();
    for at in 1..ways.len() {
        if ways[at - 1].1 < ways[at].1 {
            ways[at].1 = ways[at - 1].1;
            ways[at].2 = ways[at - 1].2;
        }
    }
    ways
}

fn row(places: &[PartPlace], reach: impl Fn(&PartPlace) -> Option<(usize, i64, usize)>) -> Vec<Option<(i64, usize)>> {
    let total = |place: &PartPlace| reach(place).map(|(_, total, at)| (total + place.score, at));
    places.iter().map(total).collect()
}
