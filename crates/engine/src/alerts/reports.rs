//! What the sentry should know and has not taken in yet. Telling is on the path of every commit:
//! one that has nothing out of the ordinary tells nothing and takes no lock.

use super::AlertConfig;
use super::rows::Rows;
use crate::limits::{LATE_START_MIN, LATE_TYPES_MAX, REPORTED_TENANTS_MAX};
use mainspring_kernel::entity::{Body, Entity, EntityId};
use mainspring_kernel::{DlqItem, Job, JobType, State, StateName, TenantId, Timestamp};
use mainspring_store::RefusalNote;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// What one commit has that is out of the ordinary.
#[derive(Debug, Default)]
pub(crate) struct Signals {
    /// Whose jobs are to be retried.
    retried: Vec<TenantId>,
    /// Whose jobs failed for good.
    dead: Vec<TenantId>,
    /// Whose jobs of which type started late, and by how much at most.
    late: Vec<(TenantId, JobType, Duration)>,
    /// The same of jobs that ended.
    ended: Vec<(TenantId, JobType, Duration)>,
    /// Schedules that left out a firing, and how many so far.
    skips: Vec<(EntityId, TenantId, u64)>,
}

impl Signals {
    /// A job moved and is so now.
    pub(crate) fn moved(&mut self, job: &Job) {
        let state = job.state.name();
        if state == StateName::Retrying && self.retried.last() != Some(&job.tenant) {
            self.retried.push(job.tenant.clone());
        }
        // When a later attempt was due is not known any more.
        if state == StateName::Running && job.fence == 1 {
            let due_at = job.run_at.max(job.created_at);
            let late = job.started_at.map_or(Duration::ZERO, |at| at.since(due_at));
            note(&mut self.late, job, late);
        }
        if let State::Succeeded { finished_at, .. } | State::Failed { finished_at } = &job.state {
            let due_at = job.run_at.max(job.created_at);
            note(&mut self.ended, job, finished_at.since(due_at));
        }
    }

    /// A job failed for good.
    pub(crate) fn buried(&mut self, item: &DlqItem) {
        self.dead.push(item.job.tenant.clone());
    }

    /// An entity changes.
    pub(crate) fn changed(&mut self, before: Option<&Entity>, after: &Entity) {
        if let (Some(before), Body::Schedule(now)) = (before, &after.body)
            && let Body::Schedule(before) = &before.body
            && now.has_skipped_since(before)
        {
            self.skips.push((after.id, after.tenant.clone(), now.skipped));
        }
    }

    fn is_empty(&self) -> bool {
        self.retried.is_empty()
            && self.dead.is_empty()
            && self.late.is_empty()
            && self.skips.is_empty()
    }
}

/// Notes that a job was late by so much, if that is late to anybody.
fn note(of: &mut Vec<(TenantId, JobType, Duration)>, job: &Job, late: Duration) {
    if late < LATE_START_MIN {
        return;
    }
    let is_like = |(tenant, job_type, _): &&mut (TenantId, JobType, Duration)| {
        *tenant == job.tenant && *job_type == job.job_type
    };
    match of.last_mut().filter(is_like) {
        Some((_, _, most)) => *most = late.max(*most),
        None => of.push((job.tenant.clone(), job.job_type.clone(), late)),
    }
}

/// How late jobs of a type were, at most.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Late {
    pub(super) start: Duration,
    pub(super) end: Duration,
}

/// What was told of one tenant.
#[derive(Debug, Default)]
pub(super) struct Signs {
    pub(super) has_retried: bool,
    pub(super) dead: u64,
    pub(super) late: Duration,
    /// How late they were by type; of more types than are kept nothing is noted.
    pub(super) by_type: BTreeMap<JobType, Late>,
}

impl Signs {
    fn of_type(&mut self, job_type: &JobType, note: impl FnOnce(&mut Late)) {
        if let Some(late) = self.by_type.get_mut(job_type) {
            note(late);
        } else if self.by_type.len() < LATE_TYPES_MAX {
            note(self.by_type.entry(job_type.clone()).or_default());
        }
    }
}

/// Everything that was told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) tenants: BTreeMap<TenantId, Signs>,
    pub(super) skips: BTreeMap<EntityId, (TenantId, u64)>,
    /// What the server died of when it last ran.
    pub(super) died: Option<Box<str>>,
}

/// Where it is told.
#[derive(Debug)]
pub(crate) struct Reports {
    pub(super) is_on: bool,
    told: Mutex<Told>,
    /// What is wrong with the certificate, for as long as it is.
    certificate: Mutex<Option<Box<str>>>,
    /// Moves that were refused in a row.
    pub(crate) rows: Rows,
    /// Whether anything is promised of a type.
    pub(super) has_promises: AtomicBool,
    pub(super) changed: Notify,
}

impl Reports {
    pub(crate) fn new(config: &AlertConfig) -> Self {
        Reports {
            is_on: config.is_on(),
            told: Mutex::default(),
            certificate: Mutex::default(),
            rows: Rows::default(),
            has_promises: AtomicBool::new(false),
            changed: Notify::new(),
        }
    }

    /// Tells what a durable commit has.
    pub(crate) fn tell(&self, signals: &Signals) {
        // Most jobs that end late were promised to nobody.
        let has_ended = !signals.ended.is_empty() && self.has_promises.load(Ordering::Relaxed);
        if !self.is_on || (signals.is_empty() && !has_ended) {
            return;
        }
        let mut told = self.told();
        for tenant in &signals.retried {
            told.of(tenant, |signs| signs.has_retried = true);
        }
        for tenant in &signals.dead {
            told.of(tenant, |signs| signs.dead += 1);
        }
        for (tenant, job_type, late) in &signals.late {
            told.of(tenant, |signs| {
                signs.late = signs.late.max(*late);
                signs.of_type(job_type, |of| of.start = of.start.max(*late));
            });
        }
        for (tenant, job_type, late) in signals.ended.iter().filter(|_| has_ended) {
            told.of(tenant, |signs| {
                signs.of_type(job_type, |of| of.end = of.end.max(*late));
            });
        }
        for (schedule, tenant, skipped) in &signals.skips {
            if told.skips.len() < REPORTED_TENANTS_MAX {
                told.skips.insert(*schedule, (tenant.clone(), *skipped));
            }
        }
        self.changed.notify_one();
    }

    /// The server died when it last ran.
    pub(super) fn died(&self, why: &str) {
        self.told().died = Some(subject(why));
        self.changed.notify_one();
    }

    /// How the certificate is.
    pub(super) fn certificate(&self, trouble: Option<&str>) {
        let mut known = self.certificate.lock().unwrap_or_else(PoisonError::into_inner);
        let trouble = trouble.map(subject);
        if *known != trouble {
            *known = trouble;
            self.changed.notify_one();
        }
    }

    /// What is wrong with the certificate.
    pub(super) fn certificate_trouble(&self) -> Option<Box<str>> {
        self.certificate.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A move was refused.
    pub(super) fn refused(&self, tenant: &TenantId, place: &'static str, now: Timestamp) {
        if self.is_on {
            self.rows.refused(tenant, place, now);
            self.changed.notify_one();
        }
    }

    /// There is something to look at that is looked up.
    pub(crate) fn something(&self) {
        self.changed.notify_one();
    }

    /// What other servers refused.
    pub(crate) fn refused_elsewhere(&self, notes: Vec<RefusalNote>) {
        if self.is_on && self.rows.heard(notes) {
            self.changed.notify_one();
        }
    }

    /// What there is.
    pub(super) fn take(&self) -> Told {
        std::mem::take(&mut *self.told())
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reason as the subject of an alert.
fn subject(why: &str) -> Box<str> {
    let why: String = why.chars().filter(|letter| !letter.is_control()).take(100).collect();
    why.trim().into()
}

impl Told {
    /// Notes something of a tenant; of more tenants than are kept nothing is noted.
    fn of(&mut self, tenant: &TenantId, note: impl FnOnce(&mut Signs)) {
        if let Some(signs) = self.tenants.get_mut(tenant) {
            note(signs);
        } else if self.tenants.len() < REPORTED_TENANTS_MAX {
            note(self.tenants.entry(tenant.clone()).or_default());
        }
    }
}
