//! The index of what has ended: every run and plan with a result, newest first. It is no second
//! copy: what is in it follows from the jobs themselves, so it is exact at all times, and a plan
//! that waits for an answer is never in it.

use super::find::{self, Wanted};
use super::wire::AgentStatuses;
use super::{errors, runs, view};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::refusal::{self, Refusal};
use hyper::StatusCode;
use mainspring_kernel::agent::Purpose;
use mainspring_kernel::view::agent as shown;
use mainspring_kernel::{Principal, StateName};

/// What has results that anybody is told of.
const INDEXED: [Purpose; 2] = [Purpose::Run, Purpose::Plan];

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&find::LIST.map(|(name, _)| name))?;
    let states = match query.get("status") {
        None => StateName::ALL.into_iter().filter(|state| state.is_terminal()).collect(),
        Some("done") => vec![StateName::Succeeded],
        Some("failed") => vec![StateName::Failed, StateName::Cancelled],
        Some(_) => return Err(refusal::invalid("status", "must be done or failed")),
    };
    let wanted = Wanted { purposes: INDEXED.to_vec(), states: Some(states) };
    let found = find::page(&ask, &who, &query, &wanted).await?;
    let statuses = AgentStatuses {
        items: found.jobs.iter().filter_map(view::status).collect(),
        next_cursor: found.next,
        total: found.total,
        total_at_least: found.total_at_least,
    };
    Ok(runs::bare(StatusCode::OK, &statuses))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let job = find::visible(&ask, &who, &INDEXED).await?;
    let status = view::status(&job);
    let status = status.ok_or_else(|| errors::not_ended(shown::state(&job).as_str()))?;
    Ok(runs::bare(StatusCode::OK, &status))
}
