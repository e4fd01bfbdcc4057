//! Schedules as the contract shows them.

use mainspring_api as api;
use mainspring_kernel::Timestamp;
use mainspring_kernel::calendar::{Language, Remark, Rhythm};
use mainspring_kernel::entity::Entity;
use mainspring_kernel::entity::schedule::{Outcome, Schedule, ScheduleSpec, Status};
use serde_json::value::RawValue;

fn time(at: Timestamp) -> api::Time {
    api::Time(at.0)
}

/// All of a schedule.
pub(super) fn schedule(
    entity: &Entity,
    schedule: &Schedule,
    language: Language,
) -> api::schedule::Schedule {
    let spec = &schedule.spec;
    let labels = spec.labels.iter().map(|(name, value)| (name.to_string(), value.to_string()));
    let mut answer = api::schedule::Schedule {
        schedule_id: entity.id.to_string(),
        version: entity.version,
        tenant_id: entity.tenant.to_string(),
        user_id: entity.owner.to_string(),
        namespace: schedule.namespace.to_string(),
        template: schedule.template.as_ref().map(|template| template.name.to_string()),
        name: spec.name.as_ref().map(ToString::to_string),
        status: schedule.state().to_owned(),
        description: spec.rhythm.describe(language),
        job_type: spec.job_type.to_string(),
        payload: RawValue::from_string(spec.payload.to_string()).unwrap_or_default(),
        kind: String::new(),
        at: None,
        interval_seconds: None,
        phase_seconds: None,
        cron: None,
        timezone: spec.zone.to_string(),
        dst_gap: None,
        dst_fold: None,
        misfire: spec.misfire.as_str().to_owned(),
        misfire_limit: spec.misfire_limit,
        overlap: spec.overlap.as_str().to_owned(),
        jitter_seconds: spec.jitter_secs,
        start_at: spec.start_at.map(time),
        end_at: spec.end_at.map(time),
        max_runs: spec.max_runs,
        exclude: excluded(spec),
        pause_after_failures: spec.pause_after_failures,
        queue: spec.queue.as_ref().map(ToString::to_string),
        priority: spec.priority,
        timeout_ms: spec.timeout_ms,
        max_retries: spec.max_retries,
        labels: labels.collect(),
        next_fire_at: schedule.next_fire_at().map(time),
        last_fire_at: schedule.last_fire_at.map(time),
        fired_count: schedule.fired_count(),
        skipped_count: schedule.skipped,
        failures_in_a_row: schedule.failures_in_a_row,
        paused_at: None,
        paused_by: None,
        pause_note: None,
        created_at: time(entity.created_at),
        updated_at: time(entity.updated_at),
    };
    match &spec.rhythm {
        Rhythm::At(at) => {
            answer.kind = "at".to_owned();
            answer.at = Some(time(*at));
        }
        Rhythm::Interval { every_secs, phase_secs } => {
            answer.kind = "interval".to_owned();
            answer.interval_seconds = Some(*every_secs);
            answer.phase_seconds = Some(*phase_secs);
        }
        Rhythm::Cron { cron, zone: _, gap, fold } => {
            answer.kind = "cron".to_owned();
            answer.cron = Some(cron.as_str().to_owned());
            answer.dst_gap = Some(gap.as_str().to_owned());
            answer.dst_fold = Some(fold.as_str().to_owned());
        }
    }
    match &schedule.status {
        Status::Paused(pause) => {
            answer.paused_at = Some(time(pause.at));
            answer.paused_by = pause.by.as_ref().map(ToString::to_string);
            answer.pause_note = pause.note.as_ref().map(ToString::to_string);
        }
        Status::Active | Status::Stopped | Status::Ended => {}
    }
    answer
}

fn excluded(spec: &ScheduleSpec) -> Vec<api::schedule::Exclude> {
    let range = |(from, to): &(_, _)| api::schedule::Exclude {
        from: mainspring_kernel::calendar::Date::to_string(from),
        to: mainspring_kernel::calendar::Date::to_string(to),
    };
    spec.exclude.ranges().iter().map(range).collect()
}

/// Firings to come.
pub(super) fn preview(
    spec: &ScheduleSpec,
    firings: &[Timestamp],
    language: Language,
) -> api::schedule::Preview {
    let item = |at: &Timestamp| api::schedule::PreviewItem {
        fire_at: time(*at),
        local_time: spec.zone.local_text(*at).unwrap_or_default(),
        note: spec.rhythm.remark(*at).map(|remark| told(remark, language).to_owned()),
    };
    api::schedule::Preview {
        description: spec.rhythm.describe(language),
        items: firings.iter().map(item).collect(),
    }
}

const fn told(remark: Remark, language: Language) -> &'static str {
    match (remark, language) {
        (Remark::Shifted, Language::English) => {
            "the clocks jump over its time: it fires at the jump"
        }
        (Remark::Shifted, Language::Chinese) => "时钟跳过该时刻：在跳变时触发",
        (Remark::FirstPass, Language::English) => "the clocks show this time twice: the first time",
        (Remark::FirstPass, Language::Chinese) => "时钟两次显示该时刻：第一次",
        (Remark::SecondPass, Language::English) => {
            "the clocks show this time twice: the second time"
        }
        (Remark::SecondPass, Language::Chinese) => "时钟两次显示该时刻：第二次",
    }
}

/// What became of its latest firings, the latest first.
pub(super) fn history(schedule: &Schedule) -> api::schedule::ScheduleHistory {
    let item = |outcome: &Outcome| api::schedule::ScheduleOutcome {
        fire_at: time(outcome.at),
        until: time(outcome.until),
        count: outcome.count,
        outcome: outcome.kind.as_str().to_owned(),
        reason: outcome.reason.as_ref().map(ToString::to_string),
        job_id: outcome.job.map(|job| job.to_string()),
        late_ms: (outcome.late_ms > 0).then_some(outcome.late_ms),
    };
    api::schedule::ScheduleHistory { items: schedule.history.iter().rev().map(item).collect() }
}
