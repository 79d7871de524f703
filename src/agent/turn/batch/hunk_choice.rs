//! A change of which the user lets only some hunks be made.

use serde_json::{Value, json};

use super::{
    super::{Fault, Running},
    ChangeAnswer, Job,
    documents::{diffs, parts},
};
use crate::{
    protocol::{Kind, Operation},
    tools::{
        Change, Proposal,
        edit::{
            file::proposals,
            pick::{self, Picked},
        },
        object,
    },
};

/// Hunks that are longer together are not said one by one: the whole change stands in the question already.
const MOST_BYTES: usize = 1 << 20;

/// The hunks of a change that waits, as the question lists them; `None`: it is made whole or not at all.
pub fn choices(change: &Change) -> Option<Value> {
    let hunks = pick::choices(change);
    let bytes: usize = hunks.iter().map(|it| it.old.len() + it.new.len()).sum();
    if hunks.is_empty() || bytes > MOST_BYTES {
        return None;
    }
    let hunks = diffs(change).into_iter().zip(1_u64..).map(|(diff, index)| {
        let mut hunk = object(json!({ "index": index }));
        match change.operation {
            // Its text is the content.
            Operation::Create => {}
            Operation::Edit | Operation::Rename | Operation::Delete | Operation::Other(_) => hunk.extend(diff),
        }
        Value::Object(hunk)
    });
    Some(hunks.collect())
}

impl Running {
    /// The part of a proposal that the user's choice of hunks leaves; `None`: nothing, and the call is over.
    pub fn pick(&mut self, job: &mut Job, proposal: Proposal) -> Option<Proposal> {
        if job.said.is_empty() {
            return Some(proposal);
        }
        let said = std::mem::take(&mut job.said);
        let all = proposal
            .changes
            .iter()
            .enumerate()
            .map(|(at, change)| match said.iter().rfind(|it| it.0 == at) {
                Some((_, ChangeAnswer::Hunks(answers))) => pick::pick(change, answers),
                Some((_, ChangeAnswer::LeftOut(why))) => Ok(Picked::left_out(change, why.as_deref())),
                None => Ok(Picked::whole(change)),
            });
        let picked: Vec<Picked> = match all.collect() {
            Ok(picked) => picked,
            Err(fault) => {
                job.prepared.proposal = Some(proposal);
                self.refuse(job, &fault);
                return None;
            }
        };
        let told = pick::told(&picked);
        let changes: Vec<Change> = picked.iter().filter_map(|it| it.change.clone()).collect();
        if changes.is_empty() {
            for (start, content, end) in picked.iter().flat_map(|it| parts(it, &job.name(), &job.call.id)) {
                self.output.whole(Kind::FileEdit, start, content.as_deref(), end);
            }
            let fault = Fault::new("TOOL_REJECTED", format!("nothing was written\n{told}"));
            job.fail(fault.text());
            return None;
        }
        let mut hunks = picked.iter().flat_map(|it| &it.hunks);
        let is_whole = picked.iter().all(|it| it.change.is_some()) && hunks.all(|it| it.is_made && !it.is_edited);
        // What the tool says of a change holds as long as all of it is made.
        let mut proposal = if is_whole { proposal } else { proposals(changes, "") };
        if !told.is_empty() {
            proposal.text.push_str("\n\n");
            proposal.text.push_str(&told);
        }
        job.picked = picked;
        Some(proposal)
    }
}
