//! Alerts: something about a tenant's jobs that a person should look at. A rule and a subject have
//! one alert, whose id follows from both, so that servers that see the same thing raise it once.
//!
//! It does not flap. Something must be beyond its threshold for a while before it raises an alert
//! (`alert/watch.rs`), and an alert clears by its alarm, once nobody has seen it beyond a lower
//! threshold for as long as it says; so a server that sees less than another clears nothing. A job
//! of a governed object that fails for good raises one in the commit that buries it.
//!
//! What is looked at, and when, is the engine's (`engine/src/alerts.rs`).

pub mod watch;

use super::{Body, Entity, EntityCommand, EntityId, Kind};
use crate::command::Command;
use crate::decide::{Decision, Receipt};
use crate::event::Event;
use crate::facts::Facts;
use crate::fingerprint::digest;
use crate::governance::words;
use crate::job::Job;
use crate::limits::{ALERT_KEEP_MS, ALERT_LATE_MS, MESSAGE_BYTES_MAX};
use crate::name::{TenantId, UserId};
use crate::rejection::Rejection;
use crate::text::{cleaned, refuse_control};
use crate::time::Timestamp;
use std::fmt;

words! {
    /// What is looked at.
    Rule {
        /// How many of the jobs that have not ended are being retried.
        RetryingRatio = "retrying_ratio",
        /// How many jobs fail for good in a minute.
        DlqGrowth = "dlq_growth",
        /// How many moves in a row the lifecycle does not have.
        InvalidTransitions = "invalid_transitions",
        /// A job of a governed object has failed for good.
        DeadLetter = "dead_letter",
        /// How much later than due jobs start.
        Lag = "lag",
        /// Jobs of a type wait, and no worker anywhere asks for them.
        NoWorker = "no_worker",
        /// A schedule left out a firing that was due.
        ScheduleSkipped = "schedule_skipped",
        /// The disk is almost full, and new work is refused.
        LowOnSpace = "low_on_space",
        /// A part of the server died, and the process ended with it.
        PartDied = "part_died",
        /// Jobs of a type wait because too many of them failed.
        CircuitOpen = "circuit_open",
        /// How much later than due jobs of a type end, of which something else was promised.
        Overdue = "overdue",
        /// The certificate that the server shows ends soon, or a new one cannot be used.
        Certificate = "certificate",
    }
}

/// The type of jobs that tell of alerts: one for each time that one is raised or cleared. Nobody
/// but the server makes them.
pub const ALERT_TYPE: &str = "mainspring.alert";
/// The scope of their keys, which nobody else can have.
pub const ALERT_KEY_SCOPE: &str = "alert";
/// Whose alerts about the server itself are.
pub const SERVER_TENANT: &str = "default";

words! {
    /// How much it matters.
    Severity {
        /// Now.
        P1 = "P1",
        /// Today.
        P2 = "P2",
        /// When there is time.
        P3 = "P3",
    }
}

words! {
    /// Where an alert stands.
    AlertState {
        /// Nobody has taken notice.
        Open = "open",
        /// Somebody has.
        Acknowledged = "acknowledged",
        /// It is over.
        Cleared = "cleared",
    }
}

impl Rule {
    /// How much its alerts matter.
    pub const fn severity(self) -> Severity {
        match self {
            Rule::InvalidTransitions | Rule::LowOnSpace | Rule::PartDied => Severity::P1,
            Rule::RetryingRatio
            | Rule::DlqGrowth
            | Rule::DeadLetter
            | Rule::Lag
            | Rule::NoWorker
            | Rule::CircuitOpen
            | Rule::Overdue
            | Rule::Certificate => Severity::P2,
            Rule::ScheduleSkipped => Severity::P3,
        }
    }

    /// What was seen, for people.
    fn told(self, subject: &str, value: Milli, threshold: Milli) -> String {
        match self {
            Rule::RetryingRatio => format!(
                "{} of the jobs that have not ended are being retried; {} is too much",
                value.percent(),
                threshold.percent()
            ),
            Rule::DlqGrowth => {
                format!("{value} jobs failed for good within a minute; {threshold} are too many")
            }
            Rule::InvalidTransitions => format!(
                "{value} moves in a row were refused with WF_STATE_TRANSITION_INVALID; \
                 {threshold} are too many"
            ),
            Rule::DeadLetter => format!("job {subject} failed for good"),
            Rule::Lag if subject.is_empty() => {
                format!("a job started {value} seconds after it was due; {threshold} are too many")
            }
            Rule::Lag => format!(
                "a job of type {subject} had not started {value} seconds after it was due; \
                 {threshold} are too many"
            ),
            Rule::Overdue => format!(
                "a job of type {subject} had not ended {value} seconds after it was due; \
                 {threshold} are too many"
            ),
            Rule::NoWorker if value == Milli::whole(1) => {
                format!("1 job of type {subject} is due and no worker asks for that type")
            }
            Rule::NoWorker => {
                format!("{value} jobs of type {subject} are due and no worker asks for that type")
            }
            Rule::CircuitOpen => {
                format!("jobs of type {subject} are not handed out: too many of them failed")
            }
            Rule::ScheduleSkipped => format!(
                "schedule {subject} left out a firing that was due, {value} so far; \
                 its history says why"
            ),
            Rule::LowOnSpace => {
                "the disk of the journal is almost full: new work is refused".to_owned()
            }
            Rule::PartDied => {
                format!("the server ended by itself and was started again: {subject}")
            }
            Rule::Certificate => {
                format!("the certificate for https needs to be looked at: {subject}")
            }
        }
    }
}

/// A number in thousandths: shares and seconds have a fraction, and equality must be exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Milli(pub u64);

impl Milli {
    /// A whole number.
    pub const fn whole(number: u64) -> Self {
        Milli(number.saturating_mul(1_000))
    }

    /// How much of `whole` is `part`; nothing is no part of nothing.
    pub fn share(part: u64, whole: u64) -> Self {
        let part = u128::from(part.min(whole));
        Milli(u64::try_from(part * 1_000 / u128::from(whole.max(1))).unwrap_or(u64::MAX))
    }

    fn percent(self) -> String {
        format!("{}.{} %", self.0 / 10, self.0 % 10)
    }
}

impl fmt::Display for Milli {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0 / 1_000, self.0 % 1_000) {
            (whole, 0) => write!(f, "{whole}"),
            (whole, rest) => write!(f, "{whole}.{rest:03}"),
        }
    }
}

/// Something that a person should look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// Which rule saw it.
    pub rule: Rule,
    /// What it is about, if not about all jobs of the tenant: a job, a type, a schedule.
    pub subject: Box<str>,
    /// What was seen, for people.
    pub message: Box<str>,
    /// The number that was seen last.
    pub value: Milli,
    /// The number at which it is raised.
    pub threshold: Milli,
    /// Since when it stands.
    pub raised_at: Timestamp,
    /// When it was last seen beyond the lower threshold.
    pub seen_at: Timestamp,
    /// How often it was raised.
    pub count: u32,
    /// How long nobody must have seen it before it clears.
    pub quiet_ms: u64,
    /// Who took notice.
    pub acknowledged: Option<Acknowledged>,
    /// Since when it is over.
    pub cleared_at: Option<Timestamp>,
}

/// Somebody took notice of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledged {
    /// Who.
    pub by: UserId,
    /// When.
    pub at: Timestamp,
    /// What they say about it.
    pub note: Option<Box<str>>,
}

impl Alert {
    /// Where it stands.
    pub const fn state(&self) -> AlertState {
        match (&self.cleared_at, &self.acknowledged) {
            (Some(_), _) => AlertState::Cleared,
            (None, Some(_)) => AlertState::Acknowledged,
            (None, None) => AlertState::Open,
        }
    }

    /// When it clears unless it is seen again; one about a single job goes when it is old.
    pub fn alarm_at(&self) -> Option<Timestamp> {
        match (self.rule, self.cleared_at) {
            (Rule::DeadLetter, _) => Some(self.raised_at.plus_millis(ALERT_KEEP_MS)),
            (_, Some(_)) => None,
            (_, None) => Some(self.seen_at.plus_millis(self.quiet_ms)),
        }
    }
}

/// How far something is beyond its thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Beyond the upper one for long enough: an alert is raised.
    Beyond,
    /// Beyond the lower one: an alert that stands goes on.
    Lingering,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sighting {
    /// Whose jobs.
    pub tenant: TenantId,
    /// By which rule.
    pub rule: Rule,
    /// What it is about, if not about all jobs of the tenant.
    pub subject: Box<str>,
    /// How far beyond its thresholds.
    pub level: Level,
    /// The number.
    pub value: Milli,
    /// The number at which an alert is raised.
    pub threshold: Milli,
    /// How long nobody must see it before the alert clears.
    pub quiet_ms: u64,
}

impl Sighting {
    /// The alert that it is about.
    pub fn id(&self) -> EntityId {
        named(&self.tenant, self.rule, &self.subject)
    }
}

/// What can be asked of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertCommand {
    /// Something was seen: raise it, or have it go on.
    See(Box<Sighting>),
    /// Somebody takes notice.
    Acknowledge {
        /// Which alert.
        id: EntityId,
        /// Who.
        by: UserId,
        /// What they say about it.
        note: Option<Box<str>>,
    },
}

impl AlertCommand {
    pub(super) fn entity(&self) -> EntityId {
        match self {
            AlertCommand::See(sighting) => sighting.id(),
            AlertCommand::Acknowledge { id, .. } => *id,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            AlertCommand::See(_) => "see_alert",
            AlertCommand::Acknowledge { .. } => "acknowledge_alert",
        }
    }

    pub(super) fn text_bytes(&self) -> usize {
        match self {
            AlertCommand::See(sighting) => sighting.subject.len(),
            AlertCommand::Acknowledge { note, .. } => note.as_ref().map_or(0, |note| note.len()),
        }
    }
}

impl From<AlertCommand> for Command {
    fn from(command: AlertCommand) -> Command {
        Command::Entity(Box::new(EntityCommand::Alert(command)))
    }
}

/// The id of the alert of a rule about a subject.
pub fn named(tenant: &TenantId, rule: Rule, subject: &str) -> EntityId {
    let parts = [&b"alert"[..], tenant.as_str().as_bytes(), rule.as_str().as_bytes()];
    let [alert, tenant, rule] = parts;
    let bits = u128::from_be_bytes(digest(&[alert, tenant, rule, subject.as_bytes()]).0);
    EntityId { kind: Kind::Alert, bits }
}

/// The alert of a job that has just failed for good. A job does so once: nobody else makes an
/// alert of this id, so it need not be looked for.
pub(crate) fn of_dead_letter(job: &Job, at: Timestamp) -> Event {
    let subject = job.id.to_string();
    let why = job.last_failure.as_ref().map(|last| &last.failure);
    let about = job.extras.as_ref().and_then(|extras| extras.subject.as_deref());
    let attempts = if job.attempt() == 1 { "attempt" } else { "attempts" };
    let message = format!(
        "job {subject} on {} failed for good after {} {attempts}: {} {}",
        about.unwrap_or("an object"),
        job.attempt(),
        why.map_or("", |failure| &failure.code),
        why.map_or("", |failure| &failure.message),
    );
    let alert = Alert {
        rule: Rule::DeadLetter,
        subject: subject.into(),
        message: kept(&message),
        value: Milli::whole(u64::from(job.attempt())),
        threshold: Milli::whole(u64::from(job.max_retries) + 1),
        raised_at: at,
        seen_at: at,
        count: 1,
        quiet_ms: ALERT_KEEP_MS,
        acknowledged: None,
        cleared_at: None,
    };
    let id = EntityId { kind: Kind::Alert, bits: job.id.0 };
    Event::EntitySet(Box::new(made(id, &job.tenant, alert, at)))
}

pub(super) fn decide(command: &AlertCommand, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    match command {
        AlertCommand::See(sighting) => see(sighting, facts),
        AlertCommand::Acknowledge { by, note, .. } => acknowledge(by, note.as_deref(), facts),
    }
}

fn see(sighting: &Sighting, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let Sighting { tenant, rule, subject, level, value, threshold, quiet_ms } = sighting;
    let message = kept(&rule.told(subject, *value, *threshold));
    let raised = |count: u32| Alert {
        rule: *rule,
        subject: subject.clone(),
        message: message.clone(),
        value: *value,
        threshold: *threshold,
        raised_at: facts.now,
        seen_at: facts.now,
        count,
        quiet_ms: *quiet_ms,
        acknowledged: None,
        cleared_at: None,
    };
    let event = match (known(facts).ok(), level) {
        (None, Level::Beyond) => {
            Event::EntitySet(Box::new(made(sighting.id(), tenant, raised(1), facts.now)))
        }
        (None, Level::Lingering) => return Err(Rejection::NotDue),
        (Some((entity, alert)), level) => {
            let next = match (alert.cleared_at, level) {
                (Some(_), Level::Beyond) => raised(alert.count.saturating_add(1)),
                (Some(_), Level::Lingering) => return Err(Rejection::NotDue),
                // What has just been seen need not be written again.
                (None, _) if facts.now < alert.seen_at.plus_millis(quiet_ms / 4) => {
                    return Ok(Decision { events: Vec::new(), receipt: Receipt::Done });
                }
                (None, Level::Beyond | Level::Lingering) => Alert {
                    acknowledged: alert.acknowledged.clone(),
                    raised_at: alert.raised_at,
                    ..raised(alert.count)
                },
            };
            changed(entity, next, facts)
        }
    };
    Ok(Decision { events: vec![event], receipt: Receipt::Done })
}

fn acknowledge(by: &UserId, note: Option<&str>, facts: &Facts<'_>) -> Result<Decision, Rejection> {
    let (entity, alert) = known(facts)?;
    if let Some(note) = note {
        if note.len() > MESSAGE_BYTES_MAX {
            let reason = "must be at most 4096 bytes long";
            return Err(Rejection::FieldInvalid { field: "note", reason });
        }
        refuse_control("note", note)?;
    }
    match alert.state() {
        AlertState::Open => {}
        // Whoever comes second finds it done.
        AlertState::Acknowledged => {
            return Ok(Decision { events: Vec::new(), receipt: Receipt::Done });
        }
        state @ AlertState::Cleared => {
            return Err(Rejection::AlertConflict { state: state.as_str() });
        }
    }
    let note = note.map(Into::into);
    let acknowledged = Some(Acknowledged { by: by.clone(), at: facts.now, note });
    let event = changed(entity, Alert { acknowledged, ..alert.clone() }, facts);
    Ok(Decision { events: vec![event], receipt: Receipt::Done })
}

/// Nobody has seen it for long enough: it is over. If nobody rang it in time, nobody was there to
/// see it either, and it gets another chance. One about a single job goes.
pub(super) fn ring(entity: &Entity, alert: &Alert, at: Timestamp, facts: &Facts<'_>) -> Decision {
    let event = match alert.rule {
        Rule::DeadLetter => Event::EntityRemoved { entity: entity.id, version: entity.version + 1 },
        Rule::RetryingRatio
        | Rule::DlqGrowth
        | Rule::InvalidTransitions
        | Rule::Lag
        | Rule::Overdue
        | Rule::NoWorker
        | Rule::ScheduleSkipped
        | Rule::LowOnSpace
        | Rule::PartDied
        | Rule::CircuitOpen
        | Rule::Certificate => {
            let is_late = facts.now > at.plus_millis(ALERT_LATE_MS);
            let next = match is_late {
                true => Alert { seen_at: facts.now, ..alert.clone() },
                false => Alert { cleared_at: Some(facts.now), ..alert.clone() },
            };
            changed(entity, next, facts)
        }
    };
    Decision { events: vec![event], receipt: Receipt::Done }
}

fn made(id: EntityId, tenant: &TenantId, alert: Alert, at: Timestamp) -> Entity {
    Entity {
        id,
        version: 1,
        tenant: tenant.clone(),
        owner: UserId::stored("mainspring".into()),
        created_at: at,
        updated_at: at,
        body: Body::Alert(Box::new(alert)),
    }
}

fn changed(entity: &Entity, alert: Alert, facts: &Facts<'_>) -> Event {
    Event::EntitySet(Box::new(entity.changed(Body::Alert(Box::new(alert)), facts.now)))
}

fn known<'a>(facts: &Facts<'a>) -> Result<(&'a Entity, &'a Alert), Rejection> {
    let unknown = Rejection::EntityUnknown { kind: Kind::Alert };
    let entity = facts.entity.ok_or(unknown.clone())?;
    let Body::Alert(alert) = &entity.body else { return Err(unknown) };
    Ok((entity, alert))
}

/// A text as it is kept.
fn kept(text: &str) -> Box<str> {
    let text = cleaned(&text[..text.floor_char_boundary(MESSAGE_BYTES_MAX)]).into_owned();
    text[..text.floor_char_boundary(MESSAGE_BYTES_MAX)].into()
}
