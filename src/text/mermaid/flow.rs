//! Flowcharts: boxes in layers, and the ways between them.

use super::{
    canvas::{Canvas, DOWN, UP},
    label,
};
use crate::text::width::width;

/// More is read better as its source.
const MOST_NODES: usize = 40;
const MOST_EDGES: usize = 80;

/// Columns between two boxes.
const GAP: usize = 3;

/// What opens a node's shape and what closes it, the longest first.
const SHAPES: [(&str, &str, Shape); 11] = [
    ("([", "])", Shape::Round),
    ("[[", "]]", Shape::Square),
    ("[(", ")]", Shape::Round),
    ("((", "))", Shape::Round),
    ("{{", "}}", Shape::Square),
    ("[/", "/]", Shape::Square),
    ("[\\", "\\]", Shape::Square),
    ("[", "]", Shape::Square),
    ("(", ")", Shape::Round),
    ("{", "}", Shape::Decision),
    (">", "]", Shape::Square),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Square,
    Round,
    Decision,
}

#[derive(Debug)]
struct Node {
    id: String,
    label: String,
    shape: Shape,
}

#[derive(Clone, Debug)]
struct Edge {
    from: usize,
    to: usize,
    label: String,
    has_head: bool,
}

#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

pub fn draw(direction: &str, lines: &[&str], columns: usize) -> Option<Canvas> {
    let direction = direction.trim_end_matches(';');
    if !matches!(direction, "TD" | "TB" | "LR" | "RL") {
        return None;
    }
    let mut graph = Graph::default();
    for line in lines {
        for statement in line.split(';').map(str::trim).filter(|it| !it.is_empty()) {
            graph.read(statement)?;
        }
    }
    if graph.nodes.is_empty() {
        return None;
    }
    if direction == "LR"
        && let Some(canvas) = graph.chain(columns)
    {
        return Some(canvas);
    }
    graph.layers()
}

impl Graph {
    fn read(&mut self, statement: &str) -> Option<()> {
        let word = statement.split_whitespace().next()?;
        match word {
            "style" | "classDef" | "class" | "click" | "linkStyle" => return Some(()),
            "subgraph" | "end" | "direction" => return None,
            _ => {}
        }
        let mut rest = statement;
        let mut from = self.group(&mut rest)?;
        while !rest.trim_start().is_empty() {
            let (label, has_head) = arrow(&mut rest)?;
            let to = self.group(&mut rest)?;
            for a in &from {
                for b in &to {
                    self.edges.push(Edge {
                        from: *a,
                        to: *b,
                        label: label.clone(),
                        has_head,
                    });
                }
            }
            from = to;
        }
        (self.nodes.len() <= MOST_NODES && self.edges.len() <= MOST_EDGES).then_some(())
    }

    /// Nodes with `&` between them.
    fn group(&mut self, rest: &mut &str) -> Option<Vec<usize>> {
        let mut nodes = vec![self.node(rest)?];
        while let Some(more) = rest.trim_start().strip_prefix('&') {
            *rest = more;
            nodes.push(self.node(rest)?);
        }
        Some(nodes)
    }

    fn node(&mut self, rest: &mut &str) -> Option<usize> {
        let text = rest.trim_start();
        let end = text
            .find(|c: char| !(c.is_alphanumeric() || c == '_'))
            .unwrap_or(text.len());
        let (id, mut behind) = text.split_at_checked(end)?;
        if id.is_empty() {
            return None;
        }
        let at = self.nodes.iter().position(|it| it.id == id).unwrap_or_else(|| {
            self.nodes.push(Node {
                id: id.to_owned(),
                label: id.to_owned(),
                shape: Shape::Square,
            });
            self.nodes.len() - 1
        });
        let shape = SHAPES.iter().find_map(|it| Some((it, behind.strip_prefix(it.0)?)));
        if let Some(((_, closes, shape), inside)) = shape {
            // A quoted label may hold what would close it.
            let (text, after) = match inside.strip_prefix('"') {
                Some(quoted) => {
                    let (text, after) = quoted.split_once('"')?;
                    (text, after.strip_prefix(closes)?)
                }
                None => inside.split_once(closes)?,
            };
            let node = self.nodes.get_mut(at)?;
            (node.label, node.shape) = (label(text), *shape);
            behind = after;
        }
        if let Some(class) = behind.strip_prefix(":::") {
            let end = class
                .find(|c: char| !(c.is_alphanumeric() || c == '_'))
                .unwrap_or(class.len());
            behind = class.get(end..)?;
        }
        *rest = behind;
        Some(at)
    }

    /// Everything in one row, where each node leads to the next.
    fn chain(&self, columns: usize) -> Option<Canvas> {
        let is_chain = self.edges.len() + 1 == self.nodes.len()
            && self
                .edges
                .iter()
                .enumerate()
                .all(|(at, it)| (it.from, it.to) == (at, at + 1));
        if !is_chain {
            return None;
        }
        let mut canvas = Canvas::default();
        let mut x = 0;
        for (at, node) in self.nodes.iter().enumerate() {
            node.draw(&mut canvas, x, 0);
            x += node.width();
            if let Some(edge) = self.edges.get(at) {
                let head = if edge.has_head { "▶" } else { "─" };
                let line = if edge.label.is_empty() {
                    format!("──{head}")
                } else {
                    format!("─ {} ─{head}", edge.label)
                };
                canvas.write(x, 1, &line);
                x += width(&line);
            }
        }
        (x <= columns).then_some(canvas)
    }

    /// Marks the edges that lead back to where one came from.
    fn backward(&self) -> Vec<bool> {
        // 0: not seen, 1: on the way, 2: done.
        let mut seen = vec![0_u8; self.nodes.len()];
        let mut is_back = vec![false; self.edges.len()];
        for start in 0..self.nodes.len() {
            if seen.get(start) != Some(&0) {
                continue;
            }
            let mut way = vec![(start, 0)];
            seen[start] = 1;
            while let Some((node, next)) = way.last_mut() {
                let found = (*next..self.edges.len()).find(|at| self.edges[*at].from == *node);
                let Some(at) = found else {
                    seen[*node] = 2;
                    way.pop();
                    continue;
                };
                *next = at + 1;
                let to = self.edges[at].to;
                match seen[to] {
                    0 => {
                        seen[to] = 1;
                        way.push((to, 0));
                    }
                    1 => is_back[at] = true,
                    _ => {}
                }
            }
        }
        is_back
    }

    fn layers(&self) -> Option<Canvas> {
        let is_back = self.backward();
        let forward: Vec<&Edge> = self
            .edges
            .iter()
            .zip(&is_back)
            .filter(|it| !it.1)
            .map(|it| it.0)
            .collect();
        let mut layer = vec![0_usize; self.nodes.len()];
        // No way is longer than there are nodes.
        for _ in 0..self.nodes.len() {
            for it in &forward {
                layer[it.to] = layer[it.to].max(layer[it.from] + 1);
            }
        }
        let mut plan = Plan::new(self, &layer, &forward);
        plan.order();
        plan.place();
        let mut canvas = plan.draw(self)?;
        // Ways back would cross everything: they are told.
        let back = self.edges.iter().zip(&is_back).filter(|it| *it.1);
        for (y, (edge, _)) in (canvas.height()..).zip(back) {
            let (from, to) = (self.nodes.get(edge.from)?, self.nodes.get(edge.to)?);
            let why = if edge.label.is_empty() {
                String::new()
            } else {
                format!("  ({})", edge.label)
            };
            canvas.write(0, y, &format!("↺ {} ─▶ {}{why}", from.label, to.label));
        }
        Some(canvas)
    }
}

impl Node {
    fn text(&self) -> String {
        match self.shape {
            Shape::Decision => format!("◇ {}", self.label),
            Shape::Square | Shape::Round => self.label.clone(),
        }
    }

    fn width(&self) -> usize {
        width(&self.text()) + 4
    }

    fn draw(&self, canvas: &mut Canvas, x: usize, y: usize) {
        let corners = match self.shape {
            Shape::Square => ["┌", "┐", "┘", "└"],
            Shape::Round | Shape::Decision => ["╭", "╮", "╯", "╰"],
        };
        canvas.frame(x, y, &self.text(), corners);
    }
}

/// An arrow with its label, and whether it has a head.
fn arrow(rest: &mut &str) -> Option<(String, bool)> {
    let text = rest.trim_start();
    let is_line = |c: char| "-=.<>".contains(c);
    let end = text.find(|c| !is_line(c)).unwrap_or(text.len());
    let (run, mut behind) = text.split_at_checked(end)?;
    let mut text = String::new();
    let mut has_head = run.ends_with('>');
    match run.trim_start_matches('<') {
        // A label between two halves: `-- no -->`.
        "--" | "-." | "==" if !behind.starts_with(['o', 'x', '|']) || behind.starts_with("o ") => {
            let closes = match run.trim_start_matches('<') {
                "--" => "--",
                "-." => ".-",
                _ => "==",
            };
            let at = behind.find(closes)?;
            text = label(behind.get(..at)?);
            behind = behind.get(at..)?;
            let end = behind.find(|c| !is_line(c)).unwrap_or(behind.len());
            has_head = behind.get(..end)?.ends_with('>');
            behind = behind.get(end..)?;
        }
        run if run.len() >= 3 => {}
        _ => return None,
    }
    if let Some(inside) = behind.trim_start().strip_prefix('|') {
        let (said, after) = inside.split_once('|')?;
        text = label(said);
        behind = after;
    }
    *rest = behind;
    Some((text, has_head))
}

/// A box, or the place where a long way passes a layer.
#[derive(Clone, Debug)]
struct Stop {
    node: Option<usize>,
    columns: usize,
    /// Columns that it takes at the right of its middle, with what is written there.
    right: usize,
    x: usize,
}

impl Stop {
    fn middle(&self) -> usize {
        self.x + self.columns / 2
    }
}

/// A way from one layer to the next: the stops in each, what stands at its end.
#[derive(Clone, Debug)]
struct Leg {
    from: usize,
    to: usize,
    label: String,
    has_head: bool,
}

#[derive(Debug)]
struct Plan {
    layers: Vec<Vec<Stop>>,
    /// Between each layer and the next.
    legs: Vec<Vec<Leg>>,
}

impl Plan {
    fn new(graph: &Graph, layer: &[usize], edges: &[&Edge]) -> Self {
        let count = layer.iter().max().map_or(0, |it| it + 1);
        let mut layers: Vec<Vec<Stop>> = vec![Vec::new(); count];
        let mut legs: Vec<Vec<Leg>> = vec![Vec::new(); count.saturating_sub(1)];
        let mut place = vec![0; layer.len()];
        for (at, node) in graph.nodes.iter().enumerate() {
            let stops = &mut layers[layer[at]];
            place[at] = stops.len();
            let columns = node.width();
            stops.push(Stop {
                node: Some(at),
                columns,
                right: columns - columns / 2,
                x: 0,
            });
        }
        for edge in edges {
            let (first, last) = (layer[edge.from], layer[edge.to]);
            let mut from = place[edge.from];
            for passed in first + 1..last {
                layers[passed].push(Stop {
                    node: None,
                    columns: 1,
                    right: 1,
                    x: 0,
                });
                let to = layers[passed].len() - 1;
                legs[passed - 1].push(Leg {
                    from,
                    to,
                    label: String::new(),
                    has_head: false,
                });
                from = to;
            }
            let to = place[edge.to];
            let stop = &mut layers[last][to];
            stop.right = stop.right.max(width(&edge.label) + 2);
            legs[last - 1].push(Leg {
                from,
                to,
                label: edge.label.clone(),
                has_head: edge.has_head,
            });
        }
        Self { layers, legs }
    }

    /// Puts the stops of each layer below those that lead to them.
    fn order(&mut self) {
        for at in 1..self.layers.len() {
            let legs = &mut self.legs[at - 1];
            let mean = |stop: usize| {
                let from: Vec<usize> = legs.iter().filter(|it| it.to == stop).map(|it| it.from).collect();
                from.iter().sum::<usize>() * 100 / from.len().max(1)
            };
            let mut order: Vec<usize> = (0..self.layers[at].len()).collect();
            order.sort_by_key(|it| mean(*it));
            let mut now = vec![0; order.len()];
            for (place, was) in order.iter().enumerate() {
                now[*was] = place;
            }
            self.layers[at] = order.iter().map(|it| self.layers[at][*it].clone()).collect();
            for leg in legs {
                leg.to = now[leg.to];
            }
            if let Some(below) = self.legs.get_mut(at) {
                for leg in below {
                    leg.from = now[leg.from];
                }
            }
        }
    }

    /// Gives each stop its column: in the middle of what leads to it, or of where it leads to.
    fn place(&mut self) {
        let middles = |stops: &[Stop]| stops.iter().map(Stop::middle).collect::<Vec<_>>();
        for at in 0..self.layers.len() {
            let above = at
                .checked_sub(1)
                .map(|it| middles(&self.layers[it]))
                .unwrap_or_default();
            let legs = at.checked_sub(1).map(|it| self.legs[it].clone()).unwrap_or_default();
            let wanted = |stop: usize| {
                mean(
                    legs.iter()
                        .filter(|it| it.to == stop)
                        .filter_map(|it| above.get(it.from)),
                )
            };
            spread(&mut self.layers[at], wanted);
        }
        for at in (0..self.layers.len().saturating_sub(1)).rev() {
            let below = middles(&self.layers[at + 1]);
            let legs = self.legs[at].clone();
            let wanted = |stop: usize| {
                mean(
                    legs.iter()
                        .filter(|it| it.from == stop)
                        .filter_map(|it| below.get(it.to)),
                )
            };
            spread(&mut self.layers[at], wanted);
        }
    }

    fn draw(&self, graph: &Graph) -> Option<Canvas> {
        let mut canvas = Canvas::default();
        let mut y = 0;
        for (at, stops) in self.layers.iter().enumerate() {
            for stop in stops {
                match stop.node.and_then(|it| graph.nodes.get(it)) {
                    Some(node) => node.draw(&mut canvas, stop.x, y),
                    None => (y..y + 3).for_each(|y| canvas.join(stop.middle(), y, UP | DOWN)),
                }
            }
            if let Some(legs) = self.legs.get(at) {
                y = self.connect(&mut canvas, at, legs, y + 3)?;
            }
        }
        Some(canvas)
    }

    /// Draws the ways below a layer; gives the row where the next one begins.
    fn connect(&self, canvas: &mut Canvas, at: usize, legs: &[Leg], y: usize) -> Option<usize> {
        let (above, below) = (self.layers.get(at)?, self.layers.get(at + 1)?);
        // Each stop that leads sideways has a row of its own for that, where the rows would overlap.
        let mut lanes: Vec<Vec<(usize, usize, usize)>> = Vec::new();
        let mut lane_of = vec![None; above.len()];
        for (from, stop) in above.iter().enumerate() {
            let ends = legs
                .iter()
                .filter(|it| it.from == from)
                .filter_map(|it| below.get(it.to));
            let ends: Vec<usize> = ends.map(Stop::middle).collect();
            if ends.iter().all(|it| *it == stop.middle()) {
                continue;
            }
            let left = ends.iter().copied().min()?.min(stop.middle());
            let right = ends.iter().copied().max()?.max(stop.middle());
            let is_free = |lane: &Vec<(usize, usize, usize)>| lane.iter().all(|it| right + 1 < it.0 || it.1 + 1 < left);
            let lane = lanes.iter().position(is_free).unwrap_or(lanes.len());
            if lane == lanes.len() {
                lanes.push(Vec::new());
            }
            lanes.get_mut(lane)?.push((left, right, from));
            lane_of[from] = Some(lane);
        }
        let first = y;
        let has_labels = legs.iter().any(|it| !it.label.is_empty());
        let last = y + lanes.len() + usize::from(has_labels);
        for leg in legs {
            let (from, to) = (above.get(leg.from)?, below.get(leg.to)?);
            match lane_of.get(leg.from).copied().flatten() {
                Some(lane) => {
                    let row = first + lane;
                    canvas.down(from.middle(), first - 1, row);
                    canvas.across(from.middle(), to.middle(), row);
                    canvas.down(to.middle(), row, last + 1);
                }
                None => canvas.down(from.middle(), first - 1, last + 1),
            }
        }
        for leg in legs {
            let (from, to) = (above.get(leg.from)?, below.get(leg.to)?);
            if from.node.is_some() {
                canvas.write(from.middle(), first - 1, "┬");
            }
            if leg.has_head {
                canvas.write(to.middle(), last, "▼");
            } else {
                canvas.write(to.middle(), last, "│");
            }
        }
        for leg in legs.iter().filter(|it| !it.label.is_empty()) {
            let x = below.get(leg.to)?.middle() + 2;
            let columns = width(&leg.label);
            if !canvas.is_free(x, last - 1, columns + 1) {
                return None;
            }
            canvas.write(x, last - 1, &leg.label);
        }
        Some(last + 1)
    }
}

fn mean<'a>(places: impl Iterator<Item = &'a usize>) -> Option<usize> {
    let (mut sum, mut count) = (0, 0);
    for it in places {
        sum += it;
        count += 1;
    }
    (count > 0).then(|| sum / count)
}

/// Puts stops side by side, each as near as can be to where it is wanted.
fn spread(stops: &mut [Stop], wanted: impl Fn(usize) -> Option<usize>) {
    let mut free = 0;
    for (at, stop) in stops.iter_mut().enumerate() {
        let half = stop.columns / 2;
        let wanted = wanted(at).map_or(stop.x, |it| it.saturating_sub(half));
        stop.x = wanted.max(free);
        free = (stop.x + stop.columns).max(stop.middle() + stop.right) + GAP;
    }
}
