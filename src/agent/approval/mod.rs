//! May it be done? What a call would touch, judged by the user's rules, the mode and the fence around commands.
//!
//! Pure: accesses and facts go in, a [`Verdict`] comes out. Where a rule denies, nothing else counts; where one asks, none
//! allows. What the rules allow is spared the question and nothing else: a command still runs in the sandbox.

mod judge;
pub mod rule;
mod rules;

pub use judge::{Facts, Question, Verdict, changes, judge, unfit, wants};
pub use rule::Rule;
pub use rules::{FORCE, Rules, RunMode, permissions, remember};

pub use crate::sandbox::{LookLimit, Tier};

#[cfg(test)]
mod tests;
