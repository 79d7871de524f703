//! A change of which the user lets only some hunks be made.

use serde_json::{Value, json};

use super::{
    super::{Effect, Fault, Running},
    Job, Word,
    call_documents::{Edit, edits, settle},
};
use crate::{
    protocol::{Applied, Kind, Operation},
    tools::{
        Change, Proposal,
        edit::{
            file::proposals,
            pick::{self, Picked},
        },
    },
};

/// Hunks that are longer together are not said one by one: the whole change stands in the question already.
const MOST_BYTES: usize = 1 << 20;

/// What is refused of a change whose hunks were all left out.
const LEFT_OUT: &str = "the user left this out";

/// The hunks of a change that waits, as the question lists them; `None`: it is made whole or not at all.
pub fn choices(change: &Change) -> Option<Value> {
    let hunks = pick::choices(change);
    let bytes: usize = hunks.iter().map(|it| it.old.len() + it.new.len()).sum();
    if hunks.is_empty() || bytes > MOST_BYTES {
        return None;
    }
    let hunks = hunks.iter().zip(1_u64..).map(|(hunk, index)| match change.operation {
        // Its text is the content.
        Operation::Create => json!({ "index": index }),
        Operation::Edit | Operation::Rename | Operation::Delete | Operation::Other(_) => json!({
            "index": index,
            "oldString": hunk.old,
            "newString": hunk.new,
            "startLine": hunk.start,
            "endLine": hunk.end,
        }),
    });
    Some(hunks.collect())
}

impl Running {
    /// What is to be made of a proposal after what the user said of its hunks; `None`: nothing, and the call is over.
    pub fn pick(&mut self, job: &mut Job, proposal: Proposal, effects: &mut Vec<Effect>) -> Option<Proposal> {
        if job.said.is_empty() {
            return Some(proposal);
        }
        let said = std::mem::take(&mut job.said);
        let all = proposal
            .changes
            .iter()
            .enumerate()
            .map(|(at, change)| match said.iter().rfind(|it| it.0 == at) {
                Some((_, Word::Hunks(answers))) => pick::pick(change, answers),
                Some((_, Word::LeftOut(why))) => Ok(Picked::left_out(change, why.as_deref())),
                None => Ok(Picked::whole(change)),
            });
        let picked: Vec<Picked> = match all.collect() {
            Ok(picked) => picked,
            Err(fault) => {
                job.prepared.proposal = Some(proposal);
                self.refuse(job, &fault, effects);
                return None;
            }
        };
        let told = pick::told(&picked);
        let changes: Vec<Change> = picked.iter().filter_map(|it| it.change.clone()).collect();
        if changes.is_empty() {
            for (start, content, end) in picked.iter().flat_map(|it| parts(it, &job.name(), &job.call.id)) {
                let events = self.output.writer.whole(Kind::FileEdit, start, content.as_deref(), end);
                self.output.say(events, effects);
            }
            let fault = Fault::new("TOOL_REJECTED", format!("nothing was written\n{told}"));
            settle(job, fault.text(), true, Vec::new());
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

/// The documents of a change that was made in part: what was left out is said to be rejected.
pub fn parts(picked: &Picked, name: &str, call: &str) -> Vec<Edit> {
    if picked.hunks.is_empty() {
        if picked.change.is_some() {
            return edits(&picked.proposed, name, call, &Applied::Applied);
        }
        let mut documents = edits(&picked.proposed, name, call, &Applied::Rejected);
        for (_, _, end) in &mut documents {
            let reason = picked.why.as_deref().unwrap_or(LEFT_OUT);
            end.insert("reason".into(), reason.into());
        }
        return documents;
    }
    // As it was proposed, with what the user wrote in the place of some hunks.
    let whole = Change {
        hunks: picked.hunks.iter().map(|it| it.hunk.clone()).collect(),
        new: picked
            .change
            .as_ref()
            .map_or_else(|| picked.proposed.new.clone(), |it| it.new.clone()),
        ..picked.proposed.clone()
    };
    let mut documents = edits(&whole, name, call, &Applied::Applied);
    for ((_, _, end), said) in documents.iter_mut().zip(&picked.hunks) {
        // Where what the user wrote is what was there, nothing was made.
        let is_made = said.is_made && picked.change.is_some();
        if is_made {
            // They have looked at it: a review need not ask again.
            end.insert("accepted".into(), true.into());
            end.extend(said.comment.clone().map(|it| ("comment".to_owned(), it.into())));
        } else {
            let reason = said.comment.as_deref().unwrap_or(LEFT_OUT);
            end.insert("applied".into(), Applied::Rejected.as_str().into());
            end.insert("reason".into(), reason.into());
        }
        if said.is_edited {
            end.insert("edited".into(), true.into());
        }
    }
    documents
}
