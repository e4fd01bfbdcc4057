//! What lists are asked for: the parameters, the filters they make, and the frame of a page.

use crate::ask::{Ask, Query};
use crate::cursor;
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_engine::Error;
use mainspring_engine::store::{ItemFilter, JobFilter, Scope};
use mainspring_kernel::fingerprint::{Digest, digest};
use mainspring_kernel::limits::{
    ERROR_CODE_BYTES_MAX, LABELS_WANTED_MAX, NAME_BYTES_MAX, TOTAL_MAX,
};
use mainspring_kernel::signature::Signature;
use mainspring_kernel::text::is_code_letter;
use mainspring_kernel::{DlqState, JobId, JobType, QueueName, StateName, Timestamp, UserId};

/// The parameters of both lists, with what they say.
pub(super) const FILTERS: [(&str, &str); 11] = [
    ("status", "Only those in this state."),
    ("type", "Only those of this type."),
    ("queue", "Only those in this queue."),
    ("trace_id", "Only those of this trace."),
    ("user_id", "Only those submitted by this user."),
    ("label", "Only those with this label, as `name=value`; up to four times."),
    ("error_code", "Only those whose last failed attempt said this code."),
    ("created_after", "Only those created then or later; RFC 3339."),
    ("created_before", "Only those created earlier; RFC 3339."),
    ("limit", "How many entries, 1 to 100; 20 if left out."),
    ("cursor", "Where to go on: `next_cursor` of the page before, with the same filters."),
];

/// The parameters of the list of jobs.
pub(crate) const JOB_FILTERS: [(&str, &str); 12] =
    with_one_more(&FILTERS, ("parent_id", "Only those made from this job."));

/// The parameters of the list of dead letters.
pub(super) const ITEM_FILTERS: [(&str, &str); 12] = with_one_more(
    &FILTERS,
    ("signature", "Only those with this failure, as `GET /api/v1/dlq/groups` names it."),
);

/// The parameters of the list of failures.
pub(super) const GROUP_FILTERS: [(&str, &str); 12] = with_one_more(
    &FILTERS,
    ("new_since", "Tell which failures were first seen then or later; RFC 3339."),
);

const fn with_one_more(
    some: &[(&'static str, &'static str); 11],
    last: (&'static str, &'static str),
) -> [(&'static str, &'static str); 12] {
    let mut all = [last; 12];
    let mut at = 0;
    while at < some.len() {
        all[at] = some[at];
        at += 1;
    }
    all
}

/// The parameters of a list that has no filters.
pub(super) const PAGE: [(&str, &str); 2] = [FILTERS[9], FILTERS[10]];

/// The names of the parameters of the list of jobs.
pub(crate) fn job_names() -> [&'static str; JOB_FILTERS.len()] {
    JOB_FILTERS.map(|(name, _)| name)
}

/// The jobs of the parameters, in `scope`.
pub(crate) fn jobs(query: &Query, scope: Scope) -> Result<JobFilter, Refusal> {
    let state = query.get("status").map(|text| {
        StateName::parse(text).ok_or_else(|| refusal::invalid("status", "is not a state"))
    });
    let parent = query.get("parent_id").map(|text| {
        text.parse::<JobId>().map_err(|_| refusal::invalid("parent_id", "is not the id of a job"))
    });
    let (state, parent) = (state.transpose()?, parent.transpose()?);
    let (since, until) = times(query)?;
    Ok(JobFilter { state, parent, since, until, ..common(query, scope)? })
}

/// The dead-letter items of the parameters, in `scope`.
pub(crate) fn items(query: &Query, scope: Scope) -> Result<ItemFilter, Refusal> {
    let state = query.get("status");
    if state.is_some_and(|state| !DlqState::NAMES.contains(&state)) {
        return Err(refusal::invalid("status", "is not a state of an item"));
    }
    let signature = query.get("signature");
    if signature.is_some_and(|text| Signature::parse(text).is_none()) {
        return Err(refusal::invalid("signature", "must be sixteen hexadecimal digits"));
    }
    let (signature, state) = (signature.map(str::to_owned), state.map(str::to_owned));
    let (since, until) = times(query)?;
    Ok(ItemFilter { state, job: common(query, scope)?, signature, since, until })
}

fn common(query: &Query, scope: Scope) -> Result<JobFilter, Refusal> {
    let name = |of: &'static str, bad: &dyn std::fmt::Display| refusal::invalid(of, bad);
    let job_type = query.get("type").map(JobType::new).transpose();
    let queue = query.get("queue").map(QueueName::new).transpose();
    let user = query.get("user_id").map(UserId::new).transpose();
    let labels: Vec<(String, String)> = query.all("label").map(label).collect::<Result<_, _>>()?;
    if labels.len() > LABELS_WANTED_MAX {
        return Err(refusal::invalid("label", "comes more than four times"));
    }
    Ok(JobFilter {
        job_type: job_type.map_err(|bad| name("type", &bad))?,
        queue: queue.map_err(|bad| name("queue", &bad))?,
        user: user.map_err(|bad| name("user_id", &bad))?,
        trace_id: bounded(query, "trace_id", NAME_BYTES_MAX)?,
        error_code: error_code(query)?,
        labels,
        ..JobFilter::of(scope)
    })
}

fn label(text: &str) -> Result<(String, String), Refusal> {
    let parts = text.split_once('=').filter(|(name, _)| !name.is_empty());
    let Some((name, value)) = parts.filter(|_| text.len() <= 2 * NAME_BYTES_MAX + 1) else {
        return Err(refusal::invalid("label", "must be a name, an equals sign and a value"));
    };
    Ok((name.to_owned(), value.to_owned()))
}

/// A text to look for; one that no job can have is a mistake, not a list without entries.
pub(super) fn bounded(
    query: &Query,
    name: &'static str,
    most: usize,
) -> Result<Option<String>, Refusal> {
    let text = query.get(name);
    if text.is_some_and(|text| text.is_empty() || text.len() > most) {
        return Err(refusal::invalid(
            name,
            format_args!("must be between 1 and {most} bytes long"),
        ));
    }
    Ok(text.map(str::to_owned))
}

fn error_code(query: &Query) -> Result<Option<String>, Refusal> {
    let code = bounded(query, "error_code", ERROR_CODE_BYTES_MAX)?;
    if code.as_deref().is_some_and(|code| !code.chars().all(is_code_letter)) {
        return Err(refusal::invalid("error_code", "must be letters, digits and _.:- only"));
    }
    Ok(code)
}

fn times(query: &Query) -> Result<(Option<Timestamp>, Option<Timestamp>), Refusal> {
    Ok((time(query, "created_after")?, time(query, "created_before")?))
}

/// A parameter that is an instant.
pub(super) fn time(query: &Query, name: &'static str) -> Result<Option<Timestamp>, Refusal> {
    let parsed = query.get(name).map(str::parse::<api::Time>).transpose();
    let parsed = parsed.map_err(|bad| refusal::invalid(name, bad))?;
    Ok(parsed.map(|time| Timestamp(time.0)))
}

/// What a cursor for jobs is bound to.
pub(crate) fn job_list(filter: &JobFilter) -> Digest {
    bound("jobs", &parts(filter))
}

/// What a cursor for items is bound to.
pub(crate) fn item_list(filter: &ItemFilter) -> Digest {
    let ItemFilter { state, job, signature, since, until } = filter;
    let mut parts = parts(job);
    let texts = [text(state.as_ref()), text(signature.as_ref())];
    parts.extend(texts.into_iter().chain([instant(*since), instant(*until)]));
    bound("items", &parts)
}

fn bound(list: &str, parts: &[String]) -> Digest {
    let parts = parts.iter().map(String::as_bytes);
    digest(&std::iter::once(list.as_bytes()).chain(parts).collect::<Vec<_>>())
}

fn parts(filter: &JobFilter) -> Vec<String> {
    let JobFilter {
        scope,
        state,
        job_type,
        queue,
        trace_id,
        user,
        labels,
        error_code,
        parent,
        since,
        until,
    } = filter;
    let (tenant, owner) = match scope {
        Scope::All => (None, None),
        Scope::Tenant(tenant) => (Some(tenant), None),
        Scope::User(tenant, owner) => (Some(tenant), Some(owner)),
    };
    let mut parts = vec![
        text(tenant),
        text(owner),
        text(state.as_ref()),
        text(job_type.as_ref()),
        text(queue.as_ref()),
        text(trace_id.as_ref()),
        text(user.as_ref()),
        text(error_code.as_ref()),
        text(parent.as_ref()),
        instant(*since),
        instant(*until),
    ];
    let mut labels: Vec<_> = labels.iter().collect();
    labels.sort_unstable();
    parts.extend(labels.into_iter().flat_map(|(name, value)| [name.clone(), value.clone()]));
    parts
}

/// What is not asked for differs from every text that can be.
fn text(part: Option<&impl ToString>) -> String {
    part.map_or_else(String::new, |part| format!("={}", part.to_string()))
}

fn instant(at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| at.0.to_string())
}

/// The id behind which the page of the parameters starts.
pub(crate) fn before(query: &Query, list: Digest) -> Result<Option<u128>, Refusal> {
    let Some(text) = query.get("cursor") else { return Ok(None) };
    cursor::read(list, text).map(Some).ok_or_else(refusal::cursor_invalid)
}

/// How many matches there are: exactly, or that there are more than are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Total {
    pub(super) exact: Option<u64>,
    pub(super) at_least: Option<u64>,
}

/// How far matches are counted to tell a total.
pub(super) const COUNTED: usize = TOTAL_MAX + 1;

/// How many matches a list has in all. A list that is `whole` need not be counted, and a page of
/// the dashboard shows no such number.
pub(super) async fn total(
    ask: &Ask,
    whole: Option<usize>,
    count: impl Future<Output = Result<usize, Error>>,
) -> Result<Total, Refusal> {
    Ok(match whole {
        Some(all) => Total::of(all),
        None if ask.is_glance => Total::UNTOLD,
        None => Total::of(count.await?),
    })
}

impl Total {
    /// Nobody has counted.
    pub(super) const UNTOLD: Self = Total { exact: None, at_least: None };

    /// Of a count up to [`COUNTED`].
    pub(super) fn of(count: usize) -> Self {
        if count > TOTAL_MAX {
            return Total { exact: None, at_least: Some(TOTAL_MAX as u64) };
        }
        Total { exact: Some(count as u64), at_least: None }
    }
}
