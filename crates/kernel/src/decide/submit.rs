//! Accepting a job: defaults from its type, bounds, and the idempotency rule.

use super::{Decision, Receipt, attempt, internal};
use crate::command::{Ended, Submit};
use crate::entity::alert::{ALERT_KEY_SCOPE, ALERT_TYPE};
use crate::entity::wait::{self, Start};
use crate::entity::{Kind, schedule};
use crate::event::{Event, KeyHolder};
use crate::facts::Facts;
use crate::flow::check_given;
use crate::governance::{KEY_SCOPE, is_governed};
use crate::id::JobId;
use crate::idempotency;
use crate::job::{Bounds, EffectTotals, Extras, Idempotency, Job, State};
use crate::limits::{
    AFTER_MAX, LABELS_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX, QUEUE_TIMEOUT_MS_MAX, RETRIES_MAX,
    RUN_AHEAD_MS_MAX, TIMEOUT_MS_MAX, TIMEOUT_MS_MIN,
};
use crate::registry::TypeSpec;
use crate::rejection::Rejection;
use crate::text::refuse_control;
use crate::time::Timestamp;

impl Submit {
    /// Refuses a wish that could never be taken, whatever the moment and whoever holds its key. A
    /// decision looks at the key first; a door that tells of mistakes early asks here.
    ///
    /// # Errors
    /// If a field breaks a rule that needs no facts.
    pub fn check(&self) -> Result<(), Rejection> {
        check_shape(self)?;
        check_details(self)
    }
}

pub(crate) fn submit(wish: &Submit, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    wish.idempotency.as_deref().map_or(Ok(()), idempotency::check)?;
    wish.alias.as_deref().map_or(Ok(()), idempotency::check_alias)?;
    let named = wish.alias.as_ref().and_then(|_| alias_holder(facts));
    if let (Some(key), Some(holder)) = (&wish.idempotency, facts.key_holder)
        && holder.holds_at(facts.now)
    {
        return match named {
            Some(named) if named.id != holder.job => Err(Rejection::KeysDisagree),
            Some(_) | None => repeat(wish, key, holder, facts),
        };
    }
    check_governed(wish, facts.now)?;
    if let Some(job) = named {
        let asked = wish.alias.as_ref().and_then(|alias| alias.fingerprint);
        let held = job.alias().and_then(|alias| alias.fingerprint);
        if asked.is_some() && asked != held {
            return Err(Rejection::IdempotencyConflict);
        }
        let receipt = Receipt::Existing { job: job.id, state: Some(job.state.name()) };
        return Ok(Decision { events: Vec::new(), receipt });
    }
    let plain;
    let spec = match (facts.job_type, TypeSpec::built_in(&wish.job_type)) {
        (Some(spec), _) => spec,
        (None, Some(spec)) => {
            plain = spec;
            &plain
        }
        (None, None) if facts.are_types_strict => {
            return Err(Rejection::TypeUnknown { name: wish.job_type.to_string() });
        }
        (None, None) => {
            plain = TypeSpec::plain(wish.job_type.clone());
            &plain
        }
    };
    check_shape(wish)?;
    let run_at = match wish.plan {
        Some(_) => Timestamp::NEVER,
        None => run_at(wish, facts.now),
    };
    if wish.plan.is_none() {
        check_times(wish, run_at, facts.now)?;
    }
    check_details(wish)?;
    let start = wait::start(wish, run_at, facts)?;
    let job = Job {
        id: JobId(facts.fresh_id),
        tenant: wish.tenant.clone(),
        user: wish.user.clone(),
        // The registry's own name, so that a million jobs share it.
        job_type: spec.name.clone(),
        queue: wish.queue.clone().unwrap_or_else(|| spec.queue.clone()),
        payload: wish.payload.clone(),
        priority: wish.priority.unwrap_or(spec.priority),
        max_retries: wish.max_retries.unwrap_or(spec.max_retries),
        retry_count: 0,
        timeout_ms: wish.timeout_ms.unwrap_or(spec.timeout_ms),
        seq: 1,
        fence: 0,
        created_at: facts.now,
        updated_at: facts.now,
        run_at: if matches!(start, Start::Waits(_)) { Timestamp::NEVER } else { run_at },
        started_at: None,
        trace: wish.trace.clone(),
        idempotency: wish.idempotency.clone(),
        last_failure: None,
        last_report: None,
        extras: extras(wish, spec),
        state: State::Queued,
    };
    facts.backlog.admit(&job)?;
    let planned = match &wish.plan {
        Some(plan) => Some(schedule::of_plan(plan, &job, facts)?),
        None => None,
    };
    let receipt = Receipt::Submitted { job: job.id };
    let ended = wish.ended.as_ref().map(|ended| internal::end_elsewhere(&job, ended, facts));
    let waits = match start {
        Start::AtOnce => None,
        Start::Waits(wait) => Some(wait::of_job(&job, wait)),
        Start::Never(culprit, state) => Some(wait::cancelled(&job, culprit, state, facts)),
    };
    let mut events = vec![Event::JobSubmitted(Box::new(job))];
    events.extend(planned);
    events.extend(waits);
    events.extend(ended.into_iter().flatten());
    Ok(Decision { events, receipt })
}

/// The job that has the chosen name: a name is taken for as long as its job is kept, however long
/// its note is.
fn alias_holder<'a>(facts: &Facts<'a>) -> Option<&'a Job> {
    facts.alias_job.filter(|_| facts.alias_holder.is_some_and(|holder| holder.holds_at(facts.now)))
}

/// The key is taken: the same wish gets the same job, another one a conflict.
fn repeat(
    wish: &Submit,
    key: &Idempotency,
    holder: KeyHolder,
    facts: &Facts<'_>,
) -> Result<Decision, Rejection> {
    let is_same_text =
        |held| idempotency::is_same_to_the_letter(held, &wish.job_type, &wish.payload);
    match (key.fingerprint, holder.fingerprint) {
        (Some(asked), Some(held)) if asked != held && !is_same_text(held) => {
            Err(Rejection::IdempotencyConflict)
        }
        _ => Ok(Decision {
            events: Vec::new(),
            receipt: Receipt::Existing {
                job: holder.job,
                state: facts.key_job.map(|job| job.state.name()),
            },
        }),
    }
}

/// A governed job is made by its contract or by its object, which each have keys that nobody else
/// can have; and its time must not lie in the past, to the second. What tells of alerts is made by
/// the server alone.
fn check_governed(wish: &Submit, now: Timestamp) -> Result<(), Rejection> {
    let scope = wish.idempotency.as_ref().map_or("", |key| &*key.scope);
    if wish.job_type.as_str() == ALERT_TYPE && scope != ALERT_KEY_SCOPE {
        return Err(invalid("job_type", "is made by the server only"));
    }
    if !is_governed(&wish.job_type) {
        return Ok(());
    }
    if scope == KEY_SCOPE {
        let is_past = |at: Timestamp| at.whole_second() < now.whole_second();
        return match wish.run_at.is_none_or(is_past) {
            true => Err(invalid("run_at", "must not lie in the past")),
            false => Ok(()),
        };
    }
    match scope == Kind::Object.as_str() {
        true => Ok(()),
        false => Err(invalid("job_type", "is made through /scheduler only")),
    }
}

fn run_at(wish: &Submit, now: Timestamp) -> Timestamp {
    match (wish.run_at, wish.delay_ms) {
        // Kept to the letter, because it orders governed jobs; it is a second old at most, or was
        // set by the object itself.
        (Some(run_at), _) if is_governed(&wish.job_type) => run_at,
        // The past counts as now: a date behind everybody else's must not jump the queue.
        (Some(run_at), _) => run_at.max(now),
        (None, Some(delay)) => now.plus_millis(delay),
        (None, None) => now,
    }
}

/// What depends on the moment: a repeat is not held to it.
fn check_times(wish: &Submit, run_at: Timestamp, now: Timestamp) -> Result<(), Rejection> {
    if run_at > now.plus_millis(RUN_AHEAD_MS_MAX) {
        return Err(invalid("run_at", "must be within ten years from now"));
    }
    if wish.expires_at.is_some_and(|expires_at| expires_at <= run_at) {
        return Err(invalid("expires_at", "must be after run_at and in the future"));
    }
    if wish.bounds.deadline_at.is_some_and(|deadline_at| deadline_at <= run_at) {
        return Err(invalid("deadline_at", "must be after run_at and in the future"));
    }
    Ok(())
}

fn check_shape(wish: &Submit) -> Result<(), Rejection> {
    if wish.run_at.is_some() && wish.delay_ms.is_some() {
        return Err(invalid("delay_ms", "cannot be combined with run_at"));
    }
    if wish.payload.len() > PAYLOAD_BYTES_MAX {
        return Err(invalid("payload", "must be at most 1 MiB of JSON"));
    }
    match wish.ended.as_deref() {
        Some(Ended::Well { result } | Ended::Badly { result, .. }) => {
            attempt::check_result(result.as_ref())?;
        }
        None => {}
    }
    if wish.delay_ms.is_some_and(|delay| delay > RUN_AHEAD_MS_MAX) {
        return Err(invalid("run_at", "must be within ten years from now"));
    }
    Ok(())
}

fn check_details(wish: &Submit) -> Result<(), Rejection> {
    wish.timeout_ms.map_or(Ok(()), check_timeout)?;
    wish.max_retries.map_or(Ok(()), check_retries)?;
    if wish.bounds.queue_timeout_ms.is_some_and(|ms| !(1..=QUEUE_TIMEOUT_MS_MAX).contains(&ms)) {
        let reason = "must be between 1 and 2592000000 (thirty days)";
        return Err(invalid("queue_timeout_ms", reason));
    }
    if wish.bounds.after.as_ref().is_some_and(|after| after.jobs.len() > AFTER_MAX) {
        return Err(invalid("after", "must name at most 100 jobs"));
    }
    if wish.bounds.after.is_some() && (wish.plan.is_some() || wish.ended.is_some()) {
        return Err(invalid("after", "is for jobs that are to be executed"));
    }
    if wish.bounds.after.is_some() && is_governed(&wish.job_type) {
        return Err(invalid("after", "is not for governed jobs"));
    }
    if wish.labels.len() > LABELS_MAX {
        return Err(invalid("labels", "must have at most 32 entries"));
    }
    let long_label = |text: &str| text.len() > NAME_BYTES_MAX;
    if wish.labels.iter().any(|(name, value)| long_label(name) || long_label(value)) {
        return Err(invalid("labels", "must have names and values of at most 200 bytes"));
    }
    for (name, value) in &wish.labels {
        refuse_control("labels", name)?;
        refuse_control("labels", value)?;
    }
    let is_repeated = |(place, (name, _)): (usize, &(Box<str>, _))| {
        wish.labels[..place].iter().any(|(earlier, _)| earlier == name)
    };
    if wish.labels.iter().enumerate().any(is_repeated) {
        return Err(invalid("labels", "must not repeat a name"));
    }
    if wish.trace.as_ref().is_some_and(|trace| trace.is_empty() || long_label(trace)) {
        return Err(invalid("trace_id", "must be between 1 and 200 bytes long"));
    }
    wish.trace.as_deref().map_or(Ok(()), |trace| refuse_control("trace_id", trace))?;
    wish.concurrency_key.as_deref().map_or(Ok(()), check_given)?;
    if wish.subject.as_ref().is_some_and(|subject| long_label(subject)) {
        return Err(invalid("subject", "must be at most 200 bytes long"));
    }
    wish.subject.as_deref().map_or(Ok(()), |subject| refuse_control("subject", subject))
}

pub(super) fn check_timeout(timeout_ms: u32) -> Result<(), Rejection> {
    match timeout_ms {
        TIMEOUT_MS_MIN..=TIMEOUT_MS_MAX => Ok(()),
        _ => Err(invalid("timeout_ms", "must be between 1 and 604800000 (seven days)")),
    }
}

pub(super) fn check_retries(max_retries: u16) -> Result<(), Rejection> {
    match max_retries {
        0..=RETRIES_MAX => Ok(()),
        _ => Err(invalid("max_retries", "must be at most 1000")),
    }
}

fn invalid(field: &'static str, reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field, reason }
}

fn extras(wish: &Submit, spec: &TypeSpec) -> Option<Box<Extras>> {
    let extras = Extras {
        parent: wish.parent,
        source_dlq: None,
        subject: wish.subject.clone(),
        labels: wish.labels.clone(),
        expires_at: wish.expires_at,
        effects: Vec::new(),
        effects_elsewhere: EffectTotals::default(),
        progress_pct: None,
        alias: wish.alias.clone(),
        plan: wish.plan.as_ref().map(|plan| plan.schedule),
        traceparent: wish.traceparent.clone(),
        bounds: (wish.bounds != Bounds::default()).then(|| Box::new(wish.bounds.clone())),
        course: None,
        limit_keys: spec.keys_of(wish),
    };
    (extras != Extras::default()).then(|| Box::new(extras))
}
