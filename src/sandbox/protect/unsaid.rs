//! What was found after commands and was told to nobody: a command may be looked at while the person quits, when the conversation
//! that would tell it is gone. The program says it at its end, when the terminal is the person's again.

use std::sync::{Mutex, PoisonError};

use super::Settled;

/// Maximum number of commands whose findings wait.
const MOST: usize = 100;

static UNSAID: Mutex<Vec<Settled>> = Mutex::new(Vec::new());

/// Notes what was found after a command. Nothing found is nothing to say.
pub fn note(settled: &Settled) {
    if *settled != Settled::default() {
        let mut unsaid = UNSAID.lock().unwrap_or_else(PoisonError::into_inner);
        if unsaid.len() >= MOST {
            unsaid.remove(0);
        }
        unsaid.push(settled.clone());
    }
}

/// Somebody has been told.
pub fn said(settled: &Settled) {
    let mut unsaid = UNSAID.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = unsaid.iter().position(|it| it == settled) {
        unsaid.remove(at);
    }
}

/// Takes what nobody has been told, as sentences without their ends.
pub fn take() -> Vec<String> {
    let unsaid = std::mem::take(&mut *UNSAID.lock().unwrap_or_else(PoisonError::into_inner));
    unsaid.iter().flat_map(Settled::told).collect()
}
