//! From the contract's words to the kernel's, purely.

use super::wire;
use crate::ask::Query;
use crate::refusal::{self, Refusal};
use mainspring_engine::store::{JobFilter, Scope};
use mainspring_kernel::command::Submit;
use mainspring_kernel::fingerprint::{Digest, digest};
use mainspring_kernel::idempotency::Keyed;
use mainspring_kernel::view::jobs::State;
use mainspring_kernel::{JobType, Payload, Principal};

/// The command of a submission by `who` in the trace of the request. Keys last `window_secs`.
pub(super) fn submit(
    wish: &wire::OrchestrationSubmit,
    who: &Principal,
    trace: Option<&str>,
    window_secs: Option<u32>,
) -> Result<Submit, Refusal> {
    let job_type = task_type(&wish.task_type)?;
    let payload = wish.payload.as_ref().map_or("{}", |payload| payload.get());
    if !payload.starts_with('{') {
        return Err(refusal::invalid("payload", "must be an object"));
    }
    let keyed = Keyed {
        tenant: &who.tenant,
        user: &who.user,
        key: &wish.idempotency_key,
        scope: None,
        job_type: &job_type,
        payload,
        window_secs,
    };
    let idempotency = Some(Box::new(keyed.idempotency_of_jobs()?));
    let submit = Submit {
        payload: Payload::from(payload),
        idempotency,
        trace: trace.map(Into::into),
        ..Submit::plain(who.tenant.clone(), who.user.clone(), job_type)
    };
    // A key that is taken must not hide that the rest of the wish makes no sense.
    submit.check()?;
    Ok(submit)
}

/// A type's name.
pub(super) fn task_type(text: &str) -> Result<JobType, Refusal> {
    JobType::new(text).map_err(|bad| refusal::invalid("taskType", bad.reason))
}

/// A state by its name.
pub(super) fn state(field: &'static str, text: &str) -> Result<State, Refusal> {
    State::parse(text).ok_or_else(|| {
        let names: Vec<_> = State::ALL.iter().map(|state| state.as_str()).collect();
        refusal::invalid(field, format_args!("must be one of {}", names.join(", ")))
    })
}

/// How many entries a page is to have: `most` unless less is asked for.
pub(super) fn limit(query: &Query, most: usize) -> Result<usize, Refusal> {
    match query.number("limit")? {
        None => Ok(most),
        Some(limit) if (1..=most as u64).contains(&limit) => Ok(limit as usize),
        Some(_) => Err(refusal::invalid("limit", format_args!("must be between 1 and {most}"))),
    }
}

/// What a list of one's own jobs is asked for: one filter for each of our states that is shown as
/// the wanted one.
pub(super) fn own(who: &Principal, state: Option<State>, of: Option<&JobType>) -> Vec<JobFilter> {
    let scope = Scope::User(who.tenant.clone(), who.user.clone());
    let all = JobFilter { job_type: of.cloned(), ..JobFilter::of(scope) };
    match state {
        None => vec![all],
        Some(state) => {
            let of = |native| JobFilter { state: Some(native), ..all.clone() };
            state.shows().map(of).collect()
        }
    }
}

/// What a cursor of a list of one's own schedules is bound to.
pub(super) fn schedule_list(who: &Principal) -> Digest {
    let parts = ["orchestration schedules", who.tenant.as_str(), who.user.as_str()];
    digest(&parts.map(str::as_bytes))
}

/// What a cursor of such a list is bound to.
pub(super) fn list(who: &Principal, state: Option<State>, of: Option<&JobType>) -> Digest {
    let state = state.map_or("", State::as_str);
    let parts = [
        "orchestration jobs",
        who.tenant.as_str(),
        who.user.as_str(),
        state,
        of.map_or("", |of| of.as_str()),
    ];
    digest(&parts.map(str::as_bytes))
}
