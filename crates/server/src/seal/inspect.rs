//! Comparing the history of jobs with its seals: the digest of every stretch is made again from the
//! stream as it is kept now, and every move of it is looked for in the history that its job shows.

use super::{line, read, seals, tenant};
use crate::ask::Ask;
use crate::limits::{AUDIT_MOVES_MAX, AUDIT_PAGE, SEAL_PAGE, STREAM_SURELY_KEPT};
use crate::refusal::Refusal;
use mainspring_api::audit::AuditHistory;
use mainspring_engine::store::{Error, JobWithHistory, PlacedStep};
use mainspring_kernel::sealing::{Seal, Stretch, is_submission};
use mainspring_kernel::{JobId, Timestamp};
use std::collections::HashMap;

/// What became of the comparison.
pub(crate) enum Verdict {
    /// It is as it was sealed, as far as was looked.
    Whole(AuditHistory),
    /// These moves are not, after the first position and up to the second.
    Changed(u64, u64),
}

/// What a stretch turned out to be.
enum Found {
    Same,
    Changed,
    /// The stream does not go back so far any more.
    Gone,
}

/// Looks at the seals of stretches that begin before a position, the latest first, and at so many
/// moves as one call may.
pub(crate) async fn inspect(ask: &Ask, until: Option<u64>) -> Result<Verdict, Refusal> {
    let engine = ask.engine();
    let mut history = AuditHistory { checked: 0, seals: 0, from: None, to: None, next: None };
    let mut before = None;
    loop {
        let page = seals(engine, before, AUDIT_PAGE).await?;
        for line in page.items.iter().filter_map(line) {
            let Some(seal) = read(line).filter(|_| line.true_hash(&tenant()) == line.hash) else {
                return Ok(Verdict::Changed(0, 0));
            };
            if until.is_some_and(|until| seal.after >= until) {
                continue;
            }
            if history.checked >= AUDIT_MOVES_MAX {
                history.next = history.from.map(|from| from - 1);
                return Ok(Verdict::Whole(history));
            }
            match compare(ask, &seal, line.at).await? {
                Found::Same => {}
                Found::Changed => return Ok(Verdict::Changed(seal.after, seal.to)),
                Found::Gone => return Ok(Verdict::Whole(history)),
            }
            history.checked += seal.moves;
            history.seals += 1;
            history.from = Some(seal.after + 1);
            history.to = history.to.or(Some(seal.to));
        }
        match page.next {
            Some(next) => before = Some(next),
            None => return Ok(Verdict::Whole(history)),
        }
    }
}

async fn compare(ask: &Ask, seal: &Seal, sealed_at: Timestamp) -> Result<Found, Refusal> {
    let engine = ask.engine();
    let mut stretch = Stretch::after(seal.after);
    while stretch.position() < seal.to {
        let page = engine.steps_after(stretch.position(), SEAL_PAGE).await?;
        let first = page.steps.first().map_or(page.newest + 1, |(at, ..)| *at);
        if first > stretch.position() + 1 {
            // The stream loses its beginning when that is old, or when there is too much of it.
            let is_old = engine.now().since(sealed_at) >= ask.app.config.audit_history_keep;
            let is_much = page.newest.saturating_sub(first) >= STREAM_SURELY_KEPT;
            let is_beginning = page.has_gap && (is_old || is_much);
            return Ok(if is_beginning { Found::Gone } else { Found::Changed });
        }
        let steps: Vec<&PlacedStep> =
            page.steps.iter().take_while(|(at, ..)| *at <= seal.to).collect();
        if steps.is_empty() || !are_in_histories(ask, &steps).await? {
            return Ok(Found::Changed);
        }
        for (at, job, step) in steps {
            if *at != stretch.position() + 1 {
                return Ok(Found::Changed);
            }
            stretch.add(*at, *job, step.as_ref());
        }
    }
    Ok(if stretch.seal() == *seal { Found::Same } else { Found::Changed })
}

/// Whether every move is one that its job tells of. A job that is no longer kept tells nothing.
async fn are_in_histories(ask: &Ask, steps: &[&PlacedStep]) -> Result<bool, Refusal> {
    let mut jobs: HashMap<JobId, Option<JobWithHistory>> = HashMap::new();
    for (_, id, step) in steps {
        if !jobs.contains_key(id) {
            let found = match ask.engine().job(*id).await {
                Ok(found) => found,
                Err(Error::Unreadable(_)) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            jobs.insert(*id, found);
        }
        let Some(found) = jobs.get(id).and_then(Option::as_ref) else { continue };
        let is_told = match step.as_ref().filter(|step| !is_submission(step)) {
            Some(step) => found.history.iter().any(|told| told == step),
            None => found.history.first().is_some_and(is_submission),
        };
        if !is_told {
            return Ok(false);
        }
    }
    Ok(true)
}
