//! From names to jobs, and lists of jobs in several states: what the filters of a store admit one
//! at a time is merged here by id, newest first.

use crate::ask::{Ask, Query};
use crate::auth;
use crate::cursor;
use crate::refusal::{self, Refusal};
use mainspring_engine::store::{JobFilter, Scope};
use mainspring_kernel::agent::{NAMESPACE, PARENT_LABEL, Purpose, TRIGGER_LABEL};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::idempotency::alias_hash;
use mainspring_kernel::limits::{NAME_BYTES_MAX, TOTAL_MAX};
use mainspring_kernel::{Job, JobId, Principal, StateName, TenantId};

/// The job of that name in a tenant, or of that id, if it is in `scope` and for one of `purposes`.
pub(super) async fn job(
    ask: &Ask,
    tenant: &TenantId,
    scope: &Scope,
    id: &str,
    purposes: &[Purpose],
) -> Result<Option<Job>, Refusal> {
    let mut found = ask.engine().job_of_key(alias_hash(tenant, NAMESPACE, id), scope).await?;
    if let (None, Ok(id)) = (&found, id.parse::<JobId>()) {
        found = ask.engine().job_within(id, scope).await?;
    }
    let is_wanted =
        |job: &Job| Purpose::of(&job.job_type).is_some_and(|purpose| purposes.contains(&purpose));
    Ok(found.map(|found| found.job).filter(is_wanted))
}

/// The job of the path, if the caller may see it. Nonsense, unknown and foreign names are one case.
pub(super) async fn visible(
    ask: &Ask,
    who: &Principal,
    purposes: &[Purpose],
) -> Result<Job, Refusal> {
    let found = job(ask, &who.tenant, &auth::scope(who), ask.param(), purposes).await?;
    found.ok_or_else(|| unseen(who))
}

/// What whoever asks for something they cannot see is told.
pub(super) fn unseen(who: &Principal) -> Refusal {
    if who.is_admin() { refusal::job_unknown() } else { refusal::denied() }
}

/// The parameters of every list.
pub(super) const LIST: [(&str, &str); 6] = [
    ("status", "Only those that stand so."),
    ("traceId", "Only those of this trace."),
    ("sourceTriggerId", "Only those that this trigger made."),
    ("parentTaskId", "Only those that were made for this task."),
    ("limit", "How many entries, 1 to 100; 20 if left out."),
    ("cursor", "Where to go on: `nextCursor` of the page before, with the same parameters."),
];

/// Which jobs a list shows.
pub(super) struct Wanted {
    /// Of these purposes.
    pub(super) purposes: Vec<Purpose>,
    /// In these states; in any if `None`.
    pub(super) states: Option<Vec<StateName>>,
}

/// A page of a list.
pub(super) struct Found {
    pub(super) jobs: Vec<Job>,
    pub(super) next: Option<String>,
    pub(super) total: Option<u64>,
    pub(super) total_at_least: Option<u64>,
}

/// The page that the query asks for.
pub(super) async fn page(
    ask: &Ask,
    who: &Principal,
    query: &Query,
    wanted: &Wanted,
) -> Result<Found, Refusal> {
    let common = common(query, auth::scope(who))?;
    let states = wanted.states.as_ref().map(|states| states.iter().map(|state| Some(*state)));
    let states: Vec<Option<StateName>> = states.map_or_else(|| vec![None], Iterator::collect);
    let filter = |purpose: &Purpose, state: Option<StateName>| JobFilter {
        job_type: Some(purpose.job_type()),
        state,
        ..common.clone()
    };
    let filters: Vec<JobFilter> = wanted
        .purposes
        .iter()
        .flat_map(|purpose| states.iter().map(move |state| filter(purpose, *state)))
        .collect();
    let list = digest(&[b"agent list", format!("{filters:?}").as_bytes()]);
    let before = match query.get("cursor") {
        Some(text) => Some(cursor::read(list, text).ok_or_else(refusal::cursor_invalid)?),
        None => None,
    };
    let limit = query.limit()?;
    let (mut jobs, mut is_more) = (Vec::new(), false);
    let mut counted = 0;
    for filter in &filters {
        let page = ask.engine().jobs(filter, before.map(JobId), limit).await?;
        is_more |= page.next.is_some();
        jobs.extend(page.items);
        counted += ask.engine().count_jobs(filter, TOTAL_MAX + 1).await?;
    }
    jobs.sort_unstable_by_key(|job| std::cmp::Reverse(job.id));
    is_more |= jobs.len() > limit;
    jobs.truncate(limit);
    let last = jobs.last().map(|job| job.id.0).filter(|_| is_more);
    let is_exact = counted <= TOTAL_MAX;
    Ok(Found {
        next: last.map(|last| cursor::write(list, last)),
        total: is_exact.then_some(counted as u64),
        total_at_least: (!is_exact).then_some(TOTAL_MAX as u64),
        jobs,
    })
}

fn common(query: &Query, scope: Scope) -> Result<JobFilter, Refusal> {
    let mut filter = JobFilter::of(scope);
    filter.trace_id = bounded(query, "traceId")?;
    let labels = [("sourceTriggerId", TRIGGER_LABEL), ("parentTaskId", PARENT_LABEL)];
    for (parameter, label) in labels {
        if let Some(value) = bounded(query, parameter)? {
            filter.labels.push((label.to_owned(), value));
        }
    }
    Ok(filter)
}

/// A text to look for; one that no job can have is a mistake, not a list without entries.
fn bounded(query: &Query, name: &'static str) -> Result<Option<String>, Refusal> {
    match query.get(name) {
        Some(text) if text.is_empty() || text.len() > NAME_BYTES_MAX => {
            Err(refusal::invalid(name, "must be between 1 and 200 bytes long"))
        }
        text => Ok(text.map(str::to_owned)),
    }
}
