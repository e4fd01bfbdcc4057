//! From the contract's words to the kernel's, purely.

use super::wire::CreateTask;
use super::{NAMESPACE, errors, view};
use crate::limits::TASK_ID_BYTES_MAX;
use crate::refusal::Refusal;
use mainspring_api::Time;
use mainspring_kernel::calendar::{Cron, Fold, Gap, Rhythm, Zone};
use mainspring_kernel::command::{Plan, Submit};
use mainspring_kernel::entity::EntityId;
use mainspring_kernel::entity::schedule::{Schedule, ScheduleSpec};
use mainspring_kernel::fingerprint::digest;
use mainspring_kernel::firing::TASK_LABEL;
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
    /// The fields in which the task `job` is another one; `plan` is its schedule, if it is a plan.
    pub(super) fn conflicts(&self, job: &Job, plan: Option<&Schedule>) -> Vec<&'static str> {
        let kind = if job.plan().is_some() { ScheduleType::Cron } else { ScheduleType::At };
        let (cron, zone) = plan.and_then(view::rhythm).unzip();
        let is_cron = |text: &str| Cron::parse(text).is_ok_and(|it| cron == Some(&it));
        let is_zone = |text: &str| Zone::parse(text).is_some_and(|it| zone == Some(&it));
        let differ = [
            ("schedule_type", self.schedule_type.is_some_and(|it| it != kind)),
            (
                "scheduled_at",
                self.scheduled_at.is_some_and(|at| view::scheduled_at(job) != Some(at)),
            ),
            ("cron_expr", self.cron_expr.as_deref().is_some_and(|text| !is_cron(text))),
            ("timezone", self.timezone.as_deref().is_some_and(|text| !is_zone(text))),
            ("timeout_ms", self.timeout_ms.is_some_and(|ms| ms != job.timeout_ms)),
            ("max_retries", self.max_retries.is_some_and(|tries| tries != job.max_retries)),
        ];
        differ.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name).collect()
    }
}

/// Reads a wish of `who`; if it makes a plan, its schedule will be `schedule`.
pub(super) fn wish(
    wire: &CreateTask,
    who: &Principal,
    trace: Option<&str>,
    windows: Windows,
    schedule: EntityId,
) -> Result<Wish, Refusal> {
    check_id("task_id", &wire.task_id)?;
    let schedule_type = wire.schedule_type.as_deref().map(schedule_type).transpose()?;
    let scheduled_at = instant("scheduled_at", wire.scheduled_at.as_deref())?;
    instant("next_run_at", wire.next_run_at.as_deref())?;
    instant("last_run_at", wire.last_run_at.as_deref())?;
    let fire_time = instant("fire_time", wire.fire_time.as_deref())?;
    for (field, text) in [("cron_expr", &wire.cron_expr), ("timezone", &wire.timezone)] {
        if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
            return Err(errors::schedule(field, "must not be blank"));
        }
    }
    let run = match (wire.schedule_id.as_deref(), fire_time) {
        (Some(_), None) => return Err(errors::schedule("fire_time", "goes with schedule_id")),
        (None, Some(_)) => return Err(errors::schedule("schedule_id", "goes with fire_time")),
        (Some(id), Some(at)) => Some((check_text("schedule_id", id).map(|()| id)?, at)),
        (None, None) => None,
    };
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
    let plain = Submit {
        payload: wire.payload.as_ref().map_or("{}".into(), |it| Payload::from(it.get())),
        timeout_ms: wire.timeout_ms,
        max_retries: wire.max_retries,
        idempotency: key.clone().map(Box::new),
        alias: Some(Box::new(alias.clone())),
        trace: trace.map(Into::into),
        labels: vec![(TASK_LABEL.into(), wire.task_id.as_str().into())],
        ..Submit::plain(who.tenant.clone(), who.user.clone(), TypeSpec::task().name)
    };
    // A name or key that is taken must not hide that the rest of the wish makes no sense.
    plain.check()?;
    let submit = match schedule_type {
        None => Err(errors::schedule("schedule_type", "is missing")),
        Some(ScheduleType::At) => once(wire, scheduled_at, run, plain),
        Some(ScheduleType::Cron) => plan(wire, schedule, plain),
    };
    Ok(Wish { submit, critical, alias, key })
}

/// A task that runs once.
fn once(
    wire: &CreateTask,
    scheduled_at: Option<Timestamp>,
    run: Option<(&str, Timestamp)>,
    mut submit: Submit,
) -> Result<Submit, Refusal> {
    refuse_strays(
        "cron",
        &[
            ("cron_expr", &wire.cron_expr),
            ("timezone", &wire.timezone),
            ("next_run_at", &wire.next_run_at),
            ("last_run_at", &wire.last_run_at),
        ],
    )?;
    let at = scheduled_at.ok_or_else(|| errors::schedule("scheduled_at", "is missing"))?;
    submit.run_at = Some(at);
    let text = |at: Timestamp| Time(at.0).to_string().into();
    submit.labels.push((view::AT_LABEL.into(), text(at)));
    if let Some((schedule_id, fire_time)) = run {
        submit.labels.push((view::SCHEDULE_LABEL.into(), schedule_id.into()));
        submit.labels.push((view::FIRE_LABEL.into(), text(fire_time)));
    }
    submit.check()?;
    Ok(submit)
}

/// A plan that makes tasks.
fn plan(wire: &CreateTask, schedule: EntityId, mut submit: Submit) -> Result<Submit, Refusal> {
    refuse_strays(
        "at",
        &[
            ("scheduled_at", &wire.scheduled_at),
            ("schedule_id", &wire.schedule_id),
            ("fire_time", &wire.fire_time),
        ],
    )?;
    let needed = |field: &'static str, text: &Option<String>| match text {
        Some(text) => Ok(text.clone()),
        None => Err(errors::schedule(field, "is missing")),
    };
    let cron = Cron::parse(&needed("cron_expr", &wire.cron_expr)?)
        .map_err(|bad| errors::schedule("cron_expr", &format!("is refused: {bad}")))?;
    let zone = Zone::parse(&needed("timezone", &wire.timezone)?).ok_or_else(|| {
        errors::schedule("timezone", "is not the name of an IANA time zone, such as Asia/Shanghai")
    })?;
    // It was read, and that is all: when the plan fires is ours to say.
    needed("next_run_at", &wire.next_run_at)?;
    let (gap, fold) = (Gap::default(), Fold::default());
    let rhythm = Rhythm::Cron { cron, zone: zone.clone(), gap, fold };
    let spec = ScheduleSpec {
        name: Some(wire.task_id.as_str().into()),
        payload: submit.payload.clone(),
        zone,
        timeout_ms: submit.timeout_ms,
        max_retries: submit.max_retries,
        ..ScheduleSpec::plain(submit.job_type.clone(), rhythm)
    };
    spec.check()?;
    submit.plan = Some(Box::new(Plan { schedule, spec: Box::new(spec) }));
    Ok(submit)
}

/// Fields of another schedule type are a mistake, not something to pass over.
fn refuse_strays(of: &str, fields: &[(&'static str, &Option<String>)]) -> Result<(), Refusal> {
    match fields.iter().find(|(_, text)| text.is_some()) {
        Some((field, _)) => {
            Err(errors::schedule(field, &format!("belongs to tasks of the schedule type {of}")))
        }
        None => Ok(()),
    }
}

fn schedule_type(text: &str) -> Result<ScheduleType, Refusal> {
    match text {
        "at" => Ok(ScheduleType::At),
        "cron" | "daily" => Ok(ScheduleType::Cron),
        _ => Err(errors::schedule("schedule_type", "must be at, cron or daily")),
    }
}

/// Refuses what is no name.
fn check_text(field: &'static str, id: &str) -> Result<(), Refusal> {
    let refuse = |reason| Err(errors::field(field, reason));
    if id.trim().is_empty() || id.trim() != id {
        return refuse("must not be blank, nor begin or end with a space");
    }
    if id.len() > TASK_ID_BYTES_MAX {
        return refuse("must be at most 160 bytes long");
    }
    if text::has_control(id) {
        return refuse(text::NO_CONTROL);
    }
    Ok(())
}

fn check_id(field: &'static str, id: &str) -> Result<(), Refusal> {
    check_text(field, id)?;
    // Each of these is found at the same path as the task would be.
    if id.parse::<JobId>().is_ok() || run_of(id).is_some() || matches!(id, "events" | "." | "..") {
        let reason = "must not look like the id of a job or of a firing, nor be a part of a path";
        return Err(errors::field(field, reason));
    }
    Ok(())
}

/// The plan and the instant that the name of a firing is made of.
pub(super) fn run_of(task_id: &str) -> Option<(&str, Timestamp)> {
    let (plan, at) = task_id.rsplit_once('@')?;
    Some((plan, Timestamp(at.parse::<Time>().ok()?.0)))
}

/// The key of a wish that has one, in the scope that it names.
fn key(
    wire: &CreateTask,
    who: &Principal,
    window_secs: Option<u32>,
) -> Result<Option<Idempotency>, Refusal> {
    let key = wire.idempotency_key.as_deref().filter(|key| !key.is_empty());
    let scope = format!(
        "{}{}",
        idempotency::TASK_SCOPE_PREFIX,
        wire.idempotency_scope.as_deref().unwrap_or("")
    );
    // A scope without a key makes nothing unique, and has to be one all the same.
    let text = key.unwrap_or("none");
    let parts: [&[u8]; 4] =
        [b"key", who.tenant.as_str().as_bytes(), scope.as_bytes(), text.as_bytes()];
    let made = Idempotency {
        hash: digest(&parts),
        scope: scope.into(),
        key: text.into(),
        fingerprint: None,
        window_secs,
    };
    idempotency::check(&made)?;
    Ok(key.map(|_| made))
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
