//! How many jobs of each kind this server started lately: what an estimate of a start rests on.
//! Only a memory of this process, for people; nothing is decided by it. A tenant has room for so
//! many kinds, and what it does never makes those of others forgotten.

use crate::limits::{PACED_KINDS_PER_TENANT_MAX, PACED_TENANTS_MAX};
use crate::meters::JobKind;
use mainspring_kernel::{Job, JobType, QueueName, TenantId, Timestamp};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Starts are counted by stretches of this long.
const STRETCH: Duration = Duration::from_secs(30);
/// So many stretches are looked back over.
const STRETCHES: usize = 10;

/// The starts of one kind of jobs in the last stretches.
#[derive(Debug, Clone, Copy, Default)]
struct Pace {
    counts: [u32; STRETCHES],
    /// The number of the newest stretch.
    newest: i64,
    first: Option<Timestamp>,
}

impl Pace {
    /// Forgets the stretches that are over by `now`.
    fn turn(&mut self, now: Timestamp) {
        let stretch = now.0.div_euclid(micros(STRETCH));
        let over = usize::try_from(stretch - self.newest).unwrap_or(0).min(STRETCHES);
        if over > 0 {
            self.counts.rotate_right(over);
            self.counts[..over].fill(0);
            self.newest = stretch;
        }
        if self.counts.iter().all(|count| *count == 0) {
            self.first = None;
        }
    }

    fn add(&mut self, started: u32, now: Timestamp) {
        self.turn(now);
        self.counts[0] = self.counts[0].saturating_add(started);
        self.first = self.first.or(Some(now));
    }

    /// How many were started, and in which time.
    fn read(mut self, now: Timestamp) -> Option<(u32, Duration)> {
        self.turn(now);
        let first = self.first?;
        let started = self.counts.iter().fold(0u32, |sum, count| sum.saturating_add(*count));
        let begun = Timestamp((self.newest + 1 - STRETCHES as i64) * micros(STRETCH));
        // One that has just begun says little: it is taken for as long as a second.
        let over = now.since(begun.max(first)).max(Duration::from_secs(1));
        Some((started, over))
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

type Kinds = HashMap<(QueueName, JobType), Pace>;

/// The paces of all kinds of jobs.
#[derive(Debug, Default)]
pub(crate) struct Paces(Mutex<HashMap<TenantId, Kinds>>);

impl Paces {
    /// So many jobs of a kind were started.
    pub(crate) fn add(&self, kind: &JobKind, started: u32, now: Timestamp) {
        let JobKind { tenant, queue, job_type } = kind;
        let mut tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !tenants.contains_key(tenant) && tenants.len() >= PACED_TENANTS_MAX {
            tenants.retain(|_, kinds| kinds.values().any(|pace| pace.read(now).is_some()));
            if tenants.len() >= PACED_TENANTS_MAX {
                return;
            }
        }
        let kinds = tenants.entry(tenant.clone()).or_default();
        let key = (queue.clone(), job_type.clone());
        if !kinds.contains_key(&key) && kinds.len() >= PACED_KINDS_PER_TENANT_MAX {
            kinds.retain(|_, pace| pace.read(now).is_some());
            if kinds.len() >= PACED_KINDS_PER_TENANT_MAX {
                return;
            }
        }
        kinds.entry(key).or_default().add(started, now);
    }

    /// How many jobs like `job` were started lately, and in which time.
    pub(crate) fn of(&self, job: &Job, now: Timestamp) -> Option<(u32, Duration)> {
        let tenants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (job.queue.clone(), job.job_type.clone());
        tenants.get(&job.tenant)?.get(&key)?.read(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(tenant: &str, job_type: &str) -> JobKind {
        JobKind {
            tenant: TenantId::new(tenant).unwrap(),
            queue: QueueName::new("q").unwrap(),
            job_type: JobType::new(job_type).unwrap(),
        }
    }

    fn at(seconds: i64) -> Timestamp {
        Timestamp(1_790_000_010_000_000 + seconds * 1_000_000)
    }

    #[test]
    fn a_pace_is_of_the_last_minutes() {
        let mut pace = Pace::default();
        assert_eq!(pace.read(at(0)), None);
        pace.add(6, at(0));
        assert_eq!(pace.read(at(0)), Some((6, Duration::from_secs(1))));
        assert_eq!(pace.read(at(60)), Some((6, Duration::from_secs(60))));
        pace.add(2, at(100));
        assert_eq!(pace.read(at(100)), Some((8, Duration::from_secs(100))));
        let (later, over) = pace.read(at(340)).unwrap();
        assert_eq!(later, 2, "the first are forgotten");
        assert!((270..=300).contains(&over.as_secs()), "{over:?}");
        assert_eq!(pace.read(at(1_000)), None);
        pace.add(1, at(1_000));
        assert_eq!(pace.read(at(1_030)), Some((1, Duration::from_secs(30))), "counted anew");
    }

    #[test]
    fn a_tenant_has_room_for_its_own_kinds_and_no_others() {
        let paces = Paces::default();
        paces.add(&kind("a", "t"), 1, at(0));
        for number in 0..=PACED_KINDS_PER_TENANT_MAX {
            paces.add(&kind("b", &format!("t{number}")), 1, at(0));
        }
        let count = |tenant: &str| {
            let tenants = paces.0.lock().unwrap();
            tenants.get(&TenantId::new(tenant).unwrap()).map_or(0, HashMap::len)
        };
        assert_eq!((count("a"), count("b")), (1, PACED_KINDS_PER_TENANT_MAX));
        paces.add(&kind("b", "late"), 1, at(2_000));
        assert_eq!(count("b"), 1, "those that are over make room");
        for number in 0..PACED_TENANTS_MAX {
            paces.add(&kind(&format!("c{number}"), "t"), 1, at(2_000));
        }
        assert_eq!(paces.0.lock().unwrap().len(), PACED_TENANTS_MAX);
        assert_eq!((count("a"), count("b")), (0, 1), "whose jobs start is not forgotten");
    }
}
