//! What a schedule may be asked to do.

use super::ScheduleSpec;
use super::turn::LABEL;
use crate::calendar::Rhythm;
use crate::command::Submit;
use crate::facts::Facts;
use crate::limits::{
    JITTER_SECS_MAX, LABELS_MAX, MESSAGE_BYTES_MAX, MISFIRE_LIMIT_MAX, NAME_BYTES_MAX,
    SCHEDULE_INTERVAL_SECS_MAX, SCHEDULE_PAYLOAD_BYTES_MAX,
};
use crate::name::{TenantId, UserId};
use crate::registry::TypeSpec;
use crate::rejection::Rejection;
use crate::text::refuse_control;
use crate::time::Timestamp;

impl ScheduleSpec {
    /// Refuses what could never be taken, whatever the moment.
    ///
    /// # Errors
    /// If a field breaks a rule that needs no facts.
    pub fn check(&self) -> Result<(), Rejection> {
        if let Some(name) = &self.name {
            if name.is_empty() || name.len() > NAME_BYTES_MAX {
                return Err(invalid("name", "must be between 1 and 200 bytes long"));
            }
            refuse_control("name", name)?;
        }
        if self.payload.len() > SCHEDULE_PAYLOAD_BYTES_MAX {
            return Err(invalid("payload", "must be at most 16 KiB of JSON"));
        }
        if let Rhythm::Interval { every_secs, phase_secs } = &self.rhythm {
            if !(1..=SCHEDULE_INTERVAL_SECS_MAX).contains(every_secs) {
                return Err(invalid(
                    "interval_seconds",
                    "must be between 1 and 31622400 (366 days)",
                ));
            }
            if phase_secs >= every_secs {
                return Err(invalid("phase_seconds", "must be less than interval_seconds"));
            }
        }
        if !(1..=MISFIRE_LIMIT_MAX).contains(&self.misfire_limit) {
            return Err(invalid("misfire_limit", "must be between 1 and 1000"));
        }
        if self.jitter_secs > JITTER_SECS_MAX {
            return Err(invalid("jitter_seconds", "must be at most 86400 (one day)"));
        }
        if self.max_runs == Some(0) {
            return Err(invalid("max_runs", "must be at least 1"));
        }
        if self.pause_after_failures == Some(0) {
            return Err(invalid("pause_after_failures", "must be at least 1"));
        }
        if let (Some(start), Some(end)) = (self.start_at, self.end_at)
            && end < start
        {
            return Err(invalid("end_at", "must not be before start_at"));
        }
        // One is ours.
        if self.labels.len() >= LABELS_MAX {
            return Err(invalid("labels", "must have at most 31 entries"));
        }
        if self.labels.iter().any(|(name, _)| **name == *LABEL) {
            return Err(invalid("labels", "must not have the name schedule_id"));
        }
        Submit {
            timeout_ms: self.timeout_ms,
            max_retries: self.max_retries,
            labels: self.labels.clone(),
            ..Submit::plain(
                TenantId::stored("t".into()),
                UserId::stored("u".into()),
                self.job_type.clone(),
            )
        }
        .check()
    }
}

/// Refuses what cannot be taken now.
pub(super) fn check(spec: &ScheduleSpec, facts: &Facts<'_>) -> Result<(), Rejection> {
    spec.check()?;
    match facts.job_type {
        None if facts.are_types_strict && TypeSpec::built_in(&spec.job_type).is_none() => {
            Err(Rejection::TypeUnknown { name: spec.job_type.to_string() })
        }
        None if TypeSpec::built_in(&spec.job_type).is_some_and(|it| !it.is_schedulable) => {
            Err(invalid("job_type", "is of a type that cannot be scheduled"))
        }
        Some(known) if !known.is_schedulable => {
            Err(invalid("job_type", "is of a type that cannot be scheduled"))
        }
        Some(_) | None => Ok(()),
    }
}

/// When it fires first.
pub(super) fn first(spec: &ScheduleSpec, now: Timestamp) -> Result<Timestamp, Rejection> {
    let never = match &spec.rhythm {
        Rhythm::At(_) => invalid("at", "must lie in the future, between start_at and end_at"),
        Rhythm::Interval { .. } => invalid("interval_seconds", "never fires before end_at"),
        Rhythm::Cron { .. } => invalid("cron", "never fires"),
    };
    spec.next_after(now).ok_or(never)
}

pub(super) fn note(note: &str) -> Result<(), Rejection> {
    if note.len() > MESSAGE_BYTES_MAX {
        return Err(invalid("note", "must be at most 4096 bytes long"));
    }
    refuse_control("note", note)
}

fn invalid(field: &'static str, reason: &'static str) -> Rejection {
    Rejection::FieldInvalid { field, reason }
}
