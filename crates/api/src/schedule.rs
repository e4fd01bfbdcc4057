//! Schedules: making and changing them, reading them, and what they will do and have done.

use crate::{Json, Time};
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::fmt;

/// The wish for a schedule, or all of what one is to do from now on.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SetSchedule {
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The type of its jobs.
    pub job_type: String,
    /// What its jobs carry: any JSON value, at most 16 KiB; `{}` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub payload: Option<Json>,
    /// `at`, `interval` or `cron`; the fields of the others must be left out.
    pub kind: String,
    /// With `at`: when it fires, once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<Time>,
    /// With `interval`: seconds from one firing to the next, counted from 1970-01-01T00:00:00Z.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_seconds: Option<u64>,
    /// With `interval`: seconds by which all firings are moved; fewer than `interval_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_seconds: Option<u64>,
    /// With `cron`: a pattern of five or six fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// The IANA time zone of the pattern and of excluded dates; `UTC` if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// With `cron`, a fixed time that the clocks jump over: `shift` (fires at the jump) or `skip`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_gap: Option<String>,
    /// With `cron`, a fixed time that the clocks show twice: `once` or `twice`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dst_fold: Option<String>,
    /// What becomes of firings that were missed: `coalesce` (one job for all), `skip` or `all`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfire: Option<String>,
    /// With `all`: how many of them are made up for at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub misfire_limit: Option<u32>,
    /// When it is to fire while a job of it has not ended: `allow`, `skip`, `queue_one` or
    /// `cancel_running`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<String>,
    /// Its jobs start up to this much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_seconds: Option<u32>,
    /// No firing before this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_at: Option<Time>,
    /// No firing after this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_at: Option<Time>,
    /// It ends after this many firings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_runs: Option<u32>,
    /// Dates and ranges of dates, in the zone, on which it does not fire.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Value>))]
    pub exclude: Vec<Exclude>,
    /// It pauses itself after this many failed jobs in a row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause_after_failures: Option<u32>,
    /// The queue of its jobs; that of their type if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// The priority of its jobs; that of their type if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// How long one attempt of its jobs may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u32>,
    /// Extra tries of its jobs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<u16>,
    /// Labels of its jobs.
    #[serde(
        default,
        deserialize_with = "none_if_null",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
}

impl SetSchedule {
    /// A schedule of that kind, everything else left to the defaults.
    pub fn new(job_type: impl Into<String>, kind: impl Into<String>) -> Self {
        SetSchedule {
            name: None,
            job_type: job_type.into(),
            payload: None,
            kind: kind.into(),
            at: None,
            interval_seconds: None,
            phase_seconds: None,
            cron: None,
            timezone: None,
            dst_gap: None,
            dst_fold: None,
            misfire: None,
            misfire_limit: None,
            overlap: None,
            jitter_seconds: None,
            start_at: None,
            end_at: None,
            max_runs: None,
            exclude: Vec::new(),
            pause_after_failures: None,
            queue: None,
            priority: None,
            timeout_ms: None,
            max_retries: None,
            labels: BTreeMap::new(),
        }
    }
}

/// Dates on which a schedule does not fire: one, as `"2026-12-25"`, or all from one to another, as
/// `{"from": "2026-12-24", "to": "2027-01-01"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exclude {
    /// The first.
    pub from: String,
    /// The last; the same as the first for a single date.
    pub to: String,
}

impl Serialize for Exclude {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Range<'a> {
            from: &'a str,
            to: &'a str,
        }
        if self.from == self.to {
            return serializer.serialize_str(&self.from);
        }
        Range { from: &self.from, to: &self.to }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Exclude {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Exclude;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a date such as \"2026-12-25\", or an object of `from` and `to`")
            }

            fn visit_str<E: de::Error>(self, date: &str) -> Result<Exclude, E> {
                Ok(Exclude { from: date.to_owned(), to: date.to_owned() })
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Exclude, A::Error> {
                let (mut from, mut to) = (None, None);
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "from" => from = Some(map.next_value()?),
                        "to" => to = Some(map.next_value()?),
                        other => return Err(de::Error::unknown_field(other, &["from", "to"])),
                    }
                }
                let from = from.ok_or_else(|| de::Error::missing_field("from"))?;
                let to = to.ok_or_else(|| de::Error::missing_field("to"))?;
                Ok(Exclude { from, to })
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A schedule.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Schedule {
    /// Its name for good.
    pub schedule_id: String,
    /// Grows with every change.
    pub version: u32,
    /// The tenant it belongs to.
    pub tenant_id: String,
    /// Whose it is.
    pub user_id: String,
    /// `user:` and whose it is, or `system`.
    pub namespace: String,
    /// The template it was made from.
    pub template: Option<String>,
    /// A name for people.
    pub name: Option<String>,
    /// `active`, `paused`, `stopped` or `ended`.
    pub status: String,
    /// When it fires, in a sentence.
    pub description: String,
    /// The type of its jobs.
    pub job_type: String,
    /// What its jobs carry.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub payload: Json,
    /// `at`, `interval` or `cron`.
    pub kind: String,
    /// With `at`: when it fires.
    pub at: Option<Time>,
    /// With `interval`: seconds from one firing to the next.
    pub interval_seconds: Option<u64>,
    /// With `interval`: seconds by which all firings are moved.
    pub phase_seconds: Option<u64>,
    /// With `cron`: the pattern.
    pub cron: Option<String>,
    /// The time zone of the pattern and of excluded dates.
    pub timezone: String,
    /// What becomes of fixed times that the clocks jump over.
    pub dst_gap: Option<String>,
    /// What becomes of fixed times that the clocks show twice.
    pub dst_fold: Option<String>,
    /// What becomes of firings that were missed.
    pub misfire: String,
    /// How many of them are made up for at most.
    pub misfire_limit: u32,
    /// What happens when it is to fire while a job of it has not ended.
    pub overlap: String,
    /// Its jobs start up to this much later.
    pub jitter_seconds: u32,
    /// No firing before this.
    pub start_at: Option<Time>,
    /// No firing after this.
    pub end_at: Option<Time>,
    /// It ends after this many firings.
    pub max_runs: Option<u32>,
    /// Dates on which it does not fire.
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Value>))]
    pub exclude: Vec<Exclude>,
    /// It pauses itself after this many failed jobs in a row.
    pub pause_after_failures: Option<u32>,
    /// The queue of its jobs, unless their type says.
    pub queue: Option<String>,
    /// The priority of its jobs, unless their type says.
    pub priority: Option<u8>,
    /// How long one attempt of its jobs may run, unless their type says.
    pub timeout_ms: Option<u32>,
    /// Extra tries of its jobs, unless their type says.
    pub max_retries: Option<u16>,
    /// Labels of its jobs.
    pub labels: BTreeMap<String, String>,
    /// When it fires next.
    pub next_fire_at: Option<Time>,
    /// For which instant it last fired by itself.
    pub last_fire_at: Option<Time>,
    /// How many jobs it made.
    pub fired_count: u64,
    /// How many firings had no job of their own.
    pub skipped_count: u64,
    /// How many of its jobs failed, one after the other, up to now.
    pub failures_in_a_row: u32,
    /// When it was paused, if it is.
    pub paused_at: Option<Time>,
    /// Who paused it; nobody if it did so itself.
    pub paused_by: Option<String>,
    /// Why it is paused.
    pub pause_note: Option<String>,
    /// When it was made.
    pub created_at: Time,
    /// When it last changed.
    pub updated_at: Time,
}

/// Why a schedule is to rest. The body may be left out.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PauseSchedule {
    /// For people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Where a schedule stands after something was asked of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RemovedSchedule {
    /// Which.
    pub schedule_id: String,
    /// `deleted`, or `stopped` for one that a template would bring back.
    pub status: String,
}

/// The job that was made because somebody asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Triggered {
    /// The job.
    pub job_id: String,
}

/// Which firings of the past are to get the jobs that they have not had.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backfill {
    /// From here on.
    pub from: Time,
    /// Up to here, included.
    pub to: Time,
    /// How many at most; 100 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// What a backfill came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Backfilled {
    /// How many jobs were made.
    pub fired: u32,
    /// Every firing that was looked at, in order.
    pub items: Vec<BackfilledItem>,
    /// Where to go on, if there are more firings than the limit.
    pub next_from: Option<Time>,
}

/// What became of one firing of a backfill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct BackfilledItem {
    /// The firing.
    pub fire_at: Time,
    /// `backfilled`; `existing` if it had its job; `refused` if it gets none.
    pub outcome: String,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// Why it gets none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::ErrorCode>,
}

/// When a schedule will fire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Preview {
    /// In a sentence.
    pub description: String,
    /// The firings, in order.
    pub items: Vec<PreviewItem>,
}

/// A firing to come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PreviewItem {
    /// When.
    pub fire_at: Time,
    /// What the clocks of its zone show then.
    pub local_time: String,
    /// What is worth a word: a change of the clocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What became of a schedule's latest firings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleHistory {
    /// The latest first. Only so many are kept; its jobs are found by their label `schedule_id`.
    pub items: Vec<ScheduleOutcome>,
}

/// What became of a firing, or of several in a row with the same fate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ScheduleOutcome {
    /// The firing, or the first of them.
    pub fire_at: Time,
    /// The last of them.
    pub until: Time,
    /// How many.
    pub count: u64,
    /// `fired`, `late`, `skipped`, `coalesced` or `backfilled`.
    pub outcome: String,
    /// Why, if there is more to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job_id: Option<String>,
    /// How much later than it should it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_ms: Option<u64>,
}

/// No labels if there is a null in their place, as if they had been left out.
fn none_if_null<'de, D>(reader: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    Option::deserialize(reader).map(Option::unwrap_or_default)
}
