//! What was decided about a trigger lately: a line for whatever changed or decided something.

use super::evaluate::{Evaluated, Finding, Truth};
use crate::id::JobId;
use crate::limits::TRIGGER_LOG_MAX;
use crate::time::Timestamp;

/// One look at a trigger that changed or decided something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// When.
    pub at: Timestamp,
    /// What came of it.
    pub outcome: Outcome,
    /// What was found at each leaf.
    pub findings: Vec<Finding>,
    /// The run or question that was made.
    pub job: Option<JobId>,
    /// When it is looked at next by the clock, if so.
    pub next_at: Option<Timestamp>,
}

/// What came of a look at a trigger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It fired.
    Fired,
    /// Somebody was asked.
    Asked,
    /// It is about to fire.
    Due,
    /// It would fire, but for its cooldown.
    Cooling,
    /// It would fire, but its last run has not ended.
    Running,
    /// The condition does not hold.
    NotYet,
    /// A question has to be answered first.
    Undecided,
    /// It was to fire, and its run was refused: the code.
    Refused(Box<str>),
    /// Its last run took too long and holds it up no longer.
    Stuck,
}

impl Outcome {
    /// The name on the wire.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Outcome::Fired => "fired",
            Outcome::Asked => "asked",
            Outcome::Due => "due",
            Outcome::Cooling => "cooldown",
            Outcome::Running => "running",
            Outcome::NotYet => "not_yet",
            Outcome::Undecided => "undecided",
            Outcome::Refused(_) => "refused",
            Outcome::Stuck => "stuck",
        }
    }

    /// In words.
    pub fn reason(&self) -> String {
        match self {
            Outcome::Fired => "it fired".to_owned(),
            Outcome::Asked => "a question was handed to a worker".to_owned(),
            Outcome::Due => "it holds: a run is made at once".to_owned(),
            Outcome::Cooling => "it holds, and waits for the end of its cooldown".to_owned(),
            Outcome::Running => "it waits for its last run, or its question, to end".to_owned(),
            Outcome::NotYet => "the condition does not hold".to_owned(),
            Outcome::Undecided => "the answer to a question is needed first".to_owned(),
            Outcome::Refused(code) => format!("its run was refused: {code}"),
            Outcome::Stuck => "its last run took too long and holds it up no longer".to_owned(),
        }
    }
}

/// Adds a line unless the last one says the same; the oldest goes when there are too many.
pub(super) fn push(log: &mut Vec<Evaluation>, line: Evaluation) {
    let truths =
        |line: &Evaluation| -> Vec<Truth> { line.findings.iter().map(|it| it.truth).collect() };
    let is_news = match &line.outcome {
        Outcome::Fired | Outcome::Asked | Outcome::Stuck => true,
        Outcome::Due
        | Outcome::Cooling
        | Outcome::Running
        | Outcome::NotYet
        | Outcome::Undecided
        | Outcome::Refused(_) => log
            .last()
            .is_none_or(|last| last.outcome != line.outcome || truths(last) != truths(&line)),
    };
    if is_news {
        if log.len() >= TRIGGER_LOG_MAX {
            log.drain(..=log.len() - TRIGGER_LOG_MAX);
        }
        log.push(line);
    }
}

/// The line for what was found.
pub(super) fn line(at: Timestamp, outcome: Outcome, found: &Evaluated) -> Evaluation {
    Evaluation { at, outcome, findings: found.findings.clone(), job: None, next_at: None }
}
