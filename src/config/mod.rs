//! Typed settings from layers: defaults, user, project, environment, flags.

mod problem;

pub use problem::{Place, Problem, Source, nearest, suggestion};
