//! From the contract's words to the kernel's, purely.

use super::wire::CreateTask;
use super::{NAMESPACE, errors, view};
use crate::limits::TASK_ID_BYTES_MAX;
use crate::refusal::Refusal;
use mainspring_api::Time;
use mainspring_kernel::command::Submit;
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::idempotency;
use mainspring_kernel::job::Idempotency;
use mainspring_kernel::registry::TypeSpec;
use mainspring_kernel::text;
use mainspring_kernel::{Job, JobId, Payload, Principal, Timestamp};

/// How long keys and names are held.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    /// Seconds a key stays taken after its task ended.
    pub(super) key_secs: Option<u32>,
    /// Seconds after which nothing of a task that has ended is kept any more.
    pub(super) name_secs: Option<u32>,
}

/// A wish that makes sense as far as it goes.
#[derive(Debug)]
pub(super) struct Wish {
    /// The job, or what is missing to make one. A repeat need not say everything again.
    pub(super) submit: Result<Submit, Refusal>,
    pub(super) critical: Critical,
    pub(super) alias: Idempotency,
    pub(super) key: Option<Idempotency>,
}

/// What a repeat must agree with, as far as it says so.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Critical {
    schedule_type: Option<ScheduleType>,
    scheduled_at: Option<Timestamp>,
    cron_expr: Option<String>,
    timezone: Option<String>,
    timeout_ms: Option<u32>,
    max_retries: Option<u16>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ScheduleType {
    At,
    Cron,
}

impl Critical {
    /// The fields in which the task `job` is another one.
    pub(super) fn conflicts(&self, job: &Job) -> Vec<&'static str> {
        let differ = [
            ("schedule_type", self.schedule_type.is_some_and(|it| it != ScheduleType::At)),
            ("scheduled_at", self.scheduled_at.is_some_and(|at| at != view::scheduled_at(job))),
            ("cron_expr", self.cron_expr.is_some()),
            ("timezone", self.timezone.is_some()),
            ("timeout_ms", self.timeout_ms.is_some_and(|ms| ms != job.timeout_ms)),
            ("max_retries", self.max_retries.is_some_and(|tries| tries != job.max_retries)),
        ];
        differ.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}

/// Reads a wish of `who`.
pub(super) fn wish(
    wire: &CreateTask,
    who: &Principal,
    trace: Option<&str>,
    windows: Windows,
) -> Result<Wish, Refusal> {
    check_id(&wire.task_id)?;
    let schedule_type = wire.schedule_type.as_deref().map(schedule_type).transpose()?;
    let scheduled_at = instant("scheduled_at", wire.scheduled_at.as_deref())?;
    instant("next_run_at", wire.next_run_at.as_deref())?;
    for (field, text) in [("cron_expr", &wire.cron_expr), ("timezone", &wire.timezone)] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(errors::schedule(field, "must not be blank"));
        }
    }
    if wire.payload.as_ref().is_some_and(|payload| !payload.get().starts_with('{')) {
        return Err(errors::field("payload", "must be an object"));
    }
    let alias = idempotency::alias(&who.tenant, NAMESPACE, &wire.task_id, windows.name_secs);
    let key = key(wire, who, windows.key_secs)?;
    let critical = Critical {
        schedule_type,
        scheduled_at,
        cron_expr: wire.cron_expr.clone(),
        timezone: wire.timezone.clone(),
        timeout_ms: wire.timeout_ms,
        max_retries: wire.max_retries,
    };
    let labels = |at: Timestamp| {
        vec![
            (view::TASK_LABEL.into(), wire.task_id.as_str().into()),
            (view::AT_LABEL.into(), Time(at.0).to_string().into()),
        ]
    };
    let plain = Submit::plain(who.tenant.clone(), who.user.clone(), TypeSpec::task().name);
    let submit = start(schedule_type, scheduled_at).map(|at| Submit {
        payload: wire.payload.as_ref().map_or("{}".into(), |it| Payload::from(it.get())),
        run_at: Some(at),
        timeout_ms: wire.timeout_ms,
        max_retries: wire.max_retries,
        idempotency: key.clone().map(Box::new),
        alias: Some(Box::new(alias.clone())),
        trace: trace.map(Into::into),
        labels: labels(at),
        ..plain.clone()
    });
    // A name or key that is taken must not hide that the rest of the wish makes no sense.
    let rest = Submit { timeout_ms: wire.timeout_ms, max_retries: wire.max_retries, ..plain };
    submit.as_ref().unwrap_or(&rest).check()?;
    Ok(Wish { submit, critical, alias, key })
}

/// When the task may start.
fn start(
    schedule_type: Option<ScheduleType>,
    scheduled_at: Option<Timestamp>,
) -> Result<Timestamp, Refusal> {
    match schedule_type {
        None => Err(errors::schedule("schedule_type", "is missing")),
        Some(ScheduleType::Cron) => {
            Err(errors::schedule("schedule_type", "cron is not served yet: use at"))
        }
        Some(ScheduleType::At) => {
            scheduled_at.ok_or_else(|| errors::schedule("scheduled_at", "is missing"))
        }
    }
}

fn schedule_type(text: &str) -> Result<ScheduleType, Refusal> {
    match text {
        "at" => Ok(ScheduleType::At),
        "cron" | "daily" => Ok(ScheduleType::Cron),
        _ => Err(errors::schedule("schedule_type", "must be at, cron or daily")),
    }
}

fn check_id(id: &str) -> Result<(), Refusal> {
    let refuse = |reason| Err(errors::field("task_id", reason));
    if id.trim().is_empty() || id.trim() != id {
        return refuse("must not be blank, nor begin or end with a space");
    }
    if id.len() > TASK_ID_BYTES_MAX {
        return refuse("must be at most 160 bytes long");
    }
    if text::has_control(id) {
        return refuse(text::NO_CONTROL);
    }
    // Each of these is found at the same path as the task would be.
    let is_firing = id.rsplit_once('@').is_some_and(|(_, time)| time.parse::<Time>().is_ok());
    if id.parse::<JobId>().is_ok() || is_firing || matches!(id, "events" | "." | "..") {
        return refuse(
            "must not look like the id of a job or of a firing, nor be a part of a path",
        );
    }
    Ok(())
}

/// The key of a wish that has one, in the scope that it names.
fn key(
    wire: &CreateTask,
    who: &Principal,
    window_secs: Option<u32>,
) -> Result<Option<Idempotency>, Refusal> {
    let Some(key) = wire.idempotency_key.as_deref().filter(|key| !key.is_empty()) else {
        return Ok(None);
    };
    let scope =
        format!("{}{}", view::SCOPE_PREFIX, wire.idempotency_scope.as_deref().unwrap_or(""));
    let parts: [&[u8]; 4] =
        [b"key", who.tenant.as_str().as_bytes(), scope.as_bytes(), key.as_bytes()];
    let made = Idempotency {
        hash: digest(&parts),
        scope: scope.into(),
        key: key.into(),
        fingerprint: None,
        window_secs,
    };
    idempotency::check(&made)?;
    Ok(Some(made))
}

/// An instant in UTC: one with another offset is refused, because the contract has none.
fn instant(field: &'static str, text: Option<&str>) -> Result<Option<Timestamp>, Refusal> {
    let Some(text) = text else { return Ok(None) };
    let is_utc = ["Z", "z", "+00:00", "-00:00"].iter().any(|end| text.ends_with(end));
    match text.parse::<Time>() {
        Ok(time) if is_utc => Ok(Some(Timestamp(time.0))),
        Ok(_) => Err(errors::schedule(field, "must be in UTC: end it with Z")),
        Err(_) => Err(errors::schedule(field, "must be an RFC 3339 instant in UTC")),
    }
}
