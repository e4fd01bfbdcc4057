//! V2 and V4: at the end everything has ended and the counts are right. V6: a run that did too
//! little proves nothing, so runs are counted.

use super::Findings;
use super::facts::Facts;
use crate::history::History;
use mainspring_kernel::StateName;
use std::collections::BTreeMap;

pub(super) fn check_settled(facts: &Facts<'_>, found: &mut Findings) {
    let dump = &facts.history.dump;
    if dump.is_settled {
        for job in &dump.jobs {
            let text = format!("is {} although everything was well for long", job.state);
            found.expect(job.state.is_terminal(), "V2", &job.id, text);
        }
    }
    let Some(by_state) = dump.by_state else { return };
    for (state, counted) in StateName::ALL.into_iter().zip(by_state) {
        let actual = dump.jobs.iter().filter(|job| job.state == state).count() as u64;
        let text = format!("{counted} are counted and {actual} are there");
        found.expect(counted == actual, "V4", state.as_str(), text);
    }
}

/// What a number of runs did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Runs.
    pub runs: u64,
    /// Calls.
    pub operations: u64,
    /// Calls that were accepted.
    pub successes: u64,
    /// Calls whose outcome nobody knows.
    pub unknown: u64,
    /// Faults by kind.
    pub faults: BTreeMap<String, u64>,
    /// Moves by their ends.
    pub moves: BTreeMap<(&'static str, &'static str), u64>,
    /// Refusals by code.
    pub refusals: BTreeMap<String, u64>,
}

/// What a number of runs must have done to count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Minimum {
    /// Accepted calls.
    pub successes: u64,
    /// Of every kind of fault.
    pub faults: Vec<(&'static str, u64)>,
    /// Of every move of the table.
    pub moves: u64,
}

impl Coverage {
    /// Counts one run.
    pub fn add(&mut self, history: &History) {
        self.runs += 1;
        for operation in &history.operations {
            self.operations += 1;
            match &operation.outcome {
                crate::history::Outcome::Ok(_) => self.successes += 1,
                crate::history::Outcome::Fail(code) => {
                    *self.refusals.entry(code.clone()).or_default() += 1;
                }
                crate::history::Outcome::Info | crate::history::Outcome::Gone => self.unknown += 1,
            }
        }
        for fault in &history.faults {
            *self.faults.entry(fault.kind.clone()).or_default() += 1;
        }
        for event in history.dump.jobs.iter().flat_map(|job| &job.events) {
            let from = event.from.map_or("", StateName::as_str);
            *self.moves.entry((from, event.to.as_str())).or_default() += 1;
        }
    }

    /// V6: what is missing for these runs to prove anything.
    pub fn missing(&self, minimum: &Minimum) -> Vec<String> {
        let mut missing = Vec::new();
        if self.successes < minimum.successes {
            missing.push(format!("V6: {} successful calls", self.successes));
        }
        for (kind, least) in &minimum.faults {
            let fired = self.faults.get(*kind).copied().unwrap_or(0);
            if fired < *least {
                missing.push(format!("V6: fault {kind} fired {fired} times"));
            }
        }
        for from in StateName::ALL {
            for to in StateName::ALL.into_iter().filter(|to| from.may_become(*to)) {
                let count = self.moves.get(&(from.as_str(), to.as_str())).copied().unwrap_or(0);
                if count < minimum.moves {
                    missing.push(format!("V6: {from} to {to} happened {count} times"));
                }
            }
        }
        missing
    }
}
