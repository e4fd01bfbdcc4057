//! What is true of a condition, purely: by what is known of its leaves and what was just seen. The
//! kernel decides by it, and whoever looks at the world asks it whether there is anything to tell.
//!
//! Nothing is cut short: every leaf is judged, so that no edge is lost by the order in which they
//! stand. Only those leaves are taken by a firing that brought it about.

use super::leaf::{LeafState, Sight};
use super::{Condition, Pace};
use crate::id::JobId;
use crate::time::Timestamp;

/// What a condition is judged by besides what is seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// How quickly the trigger goes by what happens.
    pub pace: Pace,
    /// Milliseconds between two runs, and between two questions.
    pub cooldown_ms: u64,
}

impl Rules {
    /// Milliseconds between two questions, and between two runs for something that just goes on.
    pub fn between_ms(&self) -> u64 {
        self.cooldown_ms.max(self.pace.check_ms)
    }
}

/// Whether something holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// It does.
    True,
    /// It does not.
    False,
    /// A question has to be answered first.
    Undecided,
}

impl Truth {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Truth::True => "true",
            Truth::False => "false",
            Truth::Undecided => "undecided",
        }
    }
}

/// What was found at a leaf.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// Whether it holds.
    pub truth: Truth,
    /// Why.
    pub why: Why,
}

/// Why a leaf holds, or does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// No file is newer than the one that was fired for.
    Unchanged,
    /// The newest file has changed, then.
    Changed(Timestamp),
    /// The newest file has changed and may go on to do so: it counts from then on.
    Unsettled(Timestamp),
    /// There is such a file.
    Exists,
    /// There is none.
    Missing,
    /// The task has not ended so, or was fired for.
    NoResult,
    /// The task has ended so.
    Ended(JobId),
    /// The question has no answer that still counts.
    Unanswered,
    /// The answer was yes.
    Yes,
    /// The answer was no.
    No,
}

impl Why {
    /// In words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Why::Unchanged => "no file is newer than the last one fired for",
            Why::Changed(_) => "a file has changed",
            Why::Unsettled(_) => "a file has changed and is given time to settle",
            Why::Exists => "there is such a file",
            Why::Missing => "there is no such file",
            Why::NoResult => "the task has no such result that was not fired for",
            Why::Ended(_) => "the task has ended so",
            Why::Unanswered => "the question has no answer that still counts",
            Why::Yes => "the answer was yes",
            Why::No => "the answer was no",
        }
    }
}

/// What a condition comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluated {
    /// Whether it holds.
    pub truth: Truth,
    /// What is known of the leaves now.
    pub leaves: Vec<LeafState>,
    /// What was found at each.
    pub findings: Vec<Finding>,
    /// The leaves that bring it about, if it holds.
    pub takes: Vec<usize>,
    /// Whether an edge is among them, and not only what goes on.
    pub has_edge: bool,
    /// The leaf that has to be asked about, if that is what it takes, and from when on.
    pub asks: Option<(usize, Timestamp)>,
    /// When to look again because a file has not settled.
    pub look_at: Option<Timestamp>,
}

/// Judges `condition` at `now` by what is known of its leaves and what was just `seen`.
pub fn evaluate(
    condition: &Condition,
    known: &[LeafState],
    seen: &[Sight],
    rules: Rules,
    now: Timestamp,
) -> Evaluated {
    let shapes = condition.leaves();
    let mut leaves: Vec<LeafState> = shapes
        .iter()
        .enumerate()
        .map(|(at, shape)| known.get(at).cloned().unwrap_or_else(|| LeafState::of(shape)))
        .collect();
    let mut unsettled = vec![None; leaves.len()];
    for sight in seen {
        let at = usize::from(sight.leaf);
        if let (Some(shape), Some(state)) = (shapes.get(at), leaves.get(at)) {
            let (next, look_at) = state.with(shape, &sight.seen, rules.pace.settle_ms, now);
            leaves[at] = next;
            unsettled[at] = look_at;
        }
    }
    let findings: Vec<Finding> =
        leaves.iter().zip(&unsettled).map(|(leaf, later)| find(leaf, *later, rules, now)).collect();
    let judged = judge(condition, &findings, &mut 0);
    let has_edge = judged.takes.iter().any(|at| !matches!(leaves[*at], LeafState::Exists { .. }));
    let asks = judged.asks.map(|at| (at, ask_from(&leaves[at], rules, now)));
    let look_at = unsettled.into_iter().flatten().min();
    let Judged { truth, takes, .. } = judged;
    Evaluated { truth, leaves, findings, takes, has_edge, asks, look_at }
}

/// From when on a question may be asked.
fn ask_from(leaf: &LeafState, rules: Rules, now: Timestamp) -> Timestamp {
    match leaf {
        LeafState::Llm { asked_at: Some(at), .. } => at.plus_millis(rules.between_ms()).max(now),
        LeafState::Llm { asked_at: None, .. }
        | LeafState::Changed { .. }
        | LeafState::Exists { .. }
        | LeafState::Task { .. } => now,
    }
}

fn find(leaf: &LeafState, unsettled: Option<Timestamp>, rules: Rules, now: Timestamp) -> Finding {
    let (truth, why) = match leaf {
        LeafState::Changed { held: Some(at), .. } => (Truth::True, Why::Changed(*at)),
        LeafState::Changed { held: None, .. } => {
            (Truth::False, unsettled.map_or(Why::Unchanged, Why::Unsettled))
        }
        LeafState::Exists { is_there: true } => (Truth::True, Why::Exists),
        LeafState::Exists { is_there: false } => (Truth::False, Why::Missing),
        LeafState::Task { held: Some(ended), .. } => (Truth::True, Why::Ended(ended.job)),
        LeafState::Task { held: None, .. } => (Truth::False, Why::NoResult),
        LeafState::Llm { answer: Some(true), .. } => (Truth::True, Why::Yes),
        LeafState::Llm { answer: Some(false), asked_at } => {
            let is_fresh = asked_at.is_some_and(|at| now < at.plus_millis(rules.between_ms()));
            match is_fresh {
                true => (Truth::False, Why::No),
                false => (Truth::Undecided, Why::Unanswered),
            }
        }
        LeafState::Llm { answer: None, .. } => (Truth::Undecided, Why::Unanswered),
    };
    Finding { truth, why }
}

struct Judged {
    truth: Truth,
    takes: Vec<usize>,
    asks: Option<usize>,
}

/// Judges one part; `next` is the number of its first leaf, and is left at that behind its last.
fn judge(condition: &Condition, findings: &[Finding], next: &mut usize) -> Judged {
    let parts = match condition {
        Condition::And(parts) | Condition::Or(parts) => parts,
        Condition::FileChanged { .. }
        | Condition::FileExists { .. }
        | Condition::TaskDone { .. }
        | Condition::TaskFailed { .. }
        | Condition::LlmEval { .. } => {
            let at = *next;
            *next += 1;
            let truth = findings.get(at).map_or(Truth::False, |finding| finding.truth);
            let takes = if truth == Truth::True { vec![at] } else { Vec::new() };
            return Judged { truth, takes, asks: (truth == Truth::Undecided).then_some(at) };
        }
    };
    // What decides an `and` is a part that does not hold, and an `or` one that does.
    let (decisive, otherwise) = match condition {
        Condition::Or(_) => (Truth::True, Truth::False),
        Condition::And(_)
        | Condition::FileChanged { .. }
        | Condition::FileExists { .. }
        | Condition::TaskDone { .. }
        | Condition::TaskFailed { .. }
        | Condition::LlmEval { .. } => (Truth::False, Truth::True),
    };
    let judged: Vec<Judged> = parts.iter().map(|part| judge(part, findings, next)).collect();
    let truth = if judged.iter().any(|part| part.truth == decisive) {
        decisive
    } else if judged.iter().any(|part| part.truth == Truth::Undecided) {
        Truth::Undecided
    } else {
        otherwise
    };
    // An edge inside a part that does not hold is not taken by what its neighbours bring about.
    let holds = truth == Truth::True;
    let of_true = judged.iter().filter(|part| holds && part.truth == Truth::True);
    let takes = of_true.flat_map(|part| part.takes.iter().copied()).collect();
    let open = judged.iter().find(|part| truth == Truth::Undecided && part.asks.is_some());
    Judged { truth, takes, asks: open.and_then(|part| part.asks) }
}
