//! From the wish for a schedule to what it is to do.

use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_kernel::calendar::{
    BadExclusions, Cron, Date, Exclusions, FIRST_SECOND, Fold, Gap, LAST_SECOND, Rhythm, Zone,
};
use mainspring_kernel::entity::schedule::{Misfire, Overlap, ScheduleSpec};
use mainspring_kernel::limits::EXCLUSIONS_MAX;
use mainspring_kernel::{JobType, QueueName, Timestamp};

/// What the schedule of a wish is to do.
pub(super) fn spec(wish: &api::schedule::SetSchedule) -> Result<ScheduleSpec, Refusal> {
    let job_type = JobType::new(&wish.job_type).map_err(|bad| refusal::invalid("job_type", bad))?;
    let zone = match wish.timezone.as_deref() {
        None => Zone::UTC,
        Some(name) => Zone::parse(name).ok_or_else(|| {
            refusal::invalid("timezone", "is not the name of an IANA time zone, such as Asia/Tokyo")
        })?,
    };
    let queue = wish.queue.as_deref().map(QueueName::new).transpose();
    let plain = ScheduleSpec::plain(job_type, rhythm(wish, &zone)?);
    let spec = ScheduleSpec {
        name: wish.name.as_deref().map(Into::into),
        payload: wish.payload.as_ref().map_or(plain.payload, |payload| payload.get().into()),
        misfire: word("misfire", &wish.misfire, Misfire::parse)?,
        misfire_limit: wish.misfire_limit.unwrap_or(plain.misfire_limit),
        overlap: word("overlap", &wish.overlap, Overlap::parse)?,
        jitter_secs: wish.jitter_seconds.unwrap_or(0),
        start_at: instant("start_at", wish.start_at)?,
        end_at: instant("end_at", wish.end_at)?,
        max_runs: wish.max_runs,
        exclude: exclusions(&wish.exclude)?,
        zone,
        pause_after_failures: wish.pause_after_failures,
        queue: queue.map_err(|bad| refusal::invalid("queue", bad))?,
        priority: wish.priority,
        timeout_ms: wish.timeout_ms,
        max_retries: wish.max_retries,
        labels: wish
            .labels
            .iter()
            .map(|(name, value)| (name.as_str().into(), value.as_str().into()))
            .collect(),
        ..plain
    };
    spec.check()?;
    Ok(spec)
}

/// When it fires. Fields of another kind are a mistake, not something to pass over.
fn rhythm(wish: &api::schedule::SetSchedule, zone: &Zone) -> Result<Rhythm, Refusal> {
    let given = [
        ("at", wish.at.is_some(), "at"),
        ("interval_seconds", wish.interval_seconds.is_some(), "interval"),
        ("phase_seconds", wish.phase_seconds.is_some(), "interval"),
        ("cron", wish.cron.is_some(), "cron"),
        ("dst_gap", wish.dst_gap.is_some(), "cron"),
        ("dst_fold", wish.dst_fold.is_some(), "cron"),
    ];
    let stray = given.iter().find(|(_, is_given, kind)| *is_given && *kind != wish.kind);
    if !["at", "interval", "cron"].contains(&wish.kind.as_str()) {
        return Err(refusal::invalid("kind", "must be at, interval or cron"));
    }
    if let Some((field, _, kind)) = stray {
        let reason = format_args!("belongs to schedules of the kind {kind}");
        return Err(refusal::invalid(*field, reason));
    }
    let needed = |field: &'static str| refusal::invalid(field, "is needed for this kind");
    match wish.kind.as_str() {
        "at" => {
            let at = instant("at", wish.at)?.ok_or_else(|| needed("at"))?;
            Ok(Rhythm::At(at))
        }
        "interval" => Ok(Rhythm::Interval {
            every_secs: wish.interval_seconds.ok_or_else(|| needed("interval_seconds"))?,
            phase_secs: wish.phase_seconds.unwrap_or(0),
        }),
        _ => {
            let text = wish.cron.as_deref().ok_or_else(|| needed("cron"))?;
            let cron = Cron::parse(text);
            let cron =
                cron.map_err(|bad| refusal::invalid("cron", format_args!("is refused: {bad}")))?;
            let gap = word("dst_gap", &wish.dst_gap, Gap::parse)?;
            let fold = word("dst_fold", &wish.dst_fold, Fold::parse)?;
            Ok(Rhythm::Cron { cron, zone: zone.clone(), gap, fold })
        }
    }
}

/// The value of a word; the default if it is left out.
fn word<T: Default>(
    field: &'static str,
    text: &Option<String>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, Refusal> {
    match text.as_deref() {
        None => Ok(T::default()),
        Some(text) => parse(text).ok_or_else(|| refusal::invalid(field, "is not one of its words")),
    }
}

/// An instant of the calendar.
fn instant(field: &'static str, time: Option<api::Time>) -> Result<Option<Timestamp>, Refusal> {
    let Some(time) = time else { return Ok(None) };
    let second = time.0.div_euclid(1_000_000);
    if !(FIRST_SECOND..=LAST_SECOND).contains(&second) {
        return Err(refusal::invalid(field, "must lie in the years 1 to 9999"));
    }
    Ok(Some(Timestamp(time.0)))
}

fn exclusions(wish: &[api::schedule::Exclude]) -> Result<Exclusions, Refusal> {
    if wish.len() > EXCLUSIONS_MAX {
        let reason = format_args!("must have at most {EXCLUSIONS_MAX} entries");
        return Err(refusal::invalid("exclude", reason));
    }
    let mut ranges = Vec::with_capacity(wish.len());
    for (index, range) in wish.iter().enumerate() {
        let date = |text: &str| {
            Date::parse(text).ok_or_else(|| {
                refusal::invalid(format!("exclude[{index}]"), "must be a date such as 2026-12-25")
            })
        };
        ranges.push((date(&range.from)?, date(&range.to)?));
    }
    Exclusions::new(ranges).map_err(|bad| match bad {
        BadExclusions::TooMany => refusal::invalid("exclude", "has too many entries"),
        BadExclusions::Backwards(index) => {
            refusal::invalid(format!("exclude[{index}]"), "must not end before it starts")
        }
    })
}
