//! Lanes, and how many jobs of a type may run at once.

use crate::fingerprint::{Digest, digest};
use crate::flow::LimitKeys;
use crate::job::Job;
use crate::name::{JobType, QueueName, TenantId, UserId};
use crate::registry::{ConcurrencyScope, TypeSpec};
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

/// Jobs that compete by order key alone, and share one concurrency count.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneKey {
    /// The tenant.
    pub tenant: TenantId,
    /// The queue.
    pub queue: QueueName,
    /// The type.
    pub job_type: JobType,
    /// The user, for types whose concurrency is limited per user.
    pub user: Option<UserId>,
    /// The keys, for types whose limits are counted by key.
    pub keys: Option<Arc<LimitKeys>>,
    /// Whether they are retries: see [`super::Book`] for what becomes of those.
    pub is_retry: bool,
}

impl LaneKey {
    /// The lane of a job whose type is registered so, or not at all.
    pub fn of(job: &Job, spec: Option<&TypeSpec>) -> LaneKey {
        LaneKey {
            tenant: job.tenant.clone(),
            queue: job.queue.clone(),
            job_type: job.job_type.clone(),
            user: spec.is_some_and(TypeSpec::is_limited_by_user).then(|| job.user.clone()),
            keys: spec.and_then(|spec| LaneKey::keys_of(spec, job)).map(Arc::new),
            is_retry: job.is_retry(),
        }
    }

    /// The keys of a job that limits of its type are counted by.
    fn keys_of(spec: &TypeSpec, job: &Job) -> Option<LimitKeys> {
        let keys = job.limit_keys().filter(|_| spec.is_limited_by_key())?;
        let is_rate_keyed = spec.flow.rate_limit.as_ref().is_some_and(|limit| limit.key.is_some());
        let keys = LimitKeys {
            concurrency: keys.concurrency.clone().filter(|_| spec.concurrency_limit.is_some()),
            rate: keys.rate.clone().filter(|_| is_rate_keyed),
        };
        (!keys.is_empty()).then_some(keys)
    }

    /// What its concurrency limit is counted under.
    pub fn concurrency_key(&self) -> Option<&str> {
        self.keys.as_ref()?.concurrency.as_deref()
    }

    /// Whose bucket its jobs take from.
    pub fn rate_key(&self) -> Option<&str> {
        self.keys.as_ref()?.rate.as_deref()
    }

    /// Stands between the parts of a lane: no name and no key has it.
    const BETWEEN: char = '\u{1f}';
    /// Ends the part of a lane of retries.
    const RETRY: char = '\u{1e}';

    /// What sets it apart from other lanes of its tenant, queue and type, as one text.
    pub fn part(&self) -> String {
        let user = self.user.as_ref().map_or("", |user| user.as_str());
        let mut part = match &self.keys {
            None => user.to_owned(),
            Some(keys) => {
                let LimitKeys { concurrency, rate } = &**keys;
                let (concurrency, rate) = (spelled(concurrency), spelled(rate));
                let between = LaneKey::BETWEEN;
                format!("{user}{between}{concurrency}{between}{rate}")
            }
        };
        part.extend(self.is_retry.then_some(LaneKey::RETRY));
        part
    }

    /// The lane of `tenant`, `queue` and `job_type` that such a text sets apart.
    pub fn of_part(tenant: TenantId, queue: QueueName, job_type: JobType, part: &str) -> LaneKey {
        let rest = part.strip_suffix(LaneKey::RETRY);
        let is_retry = rest.is_some();
        let mut parts = rest.unwrap_or(part).split(LaneKey::BETWEEN);
        let user = parts.next().filter(|user| !user.is_empty());
        let mut key = || parts.next().and_then(|key| key.strip_prefix('=')).map(Into::into);
        let keys = LimitKeys { concurrency: key(), rate: key() };
        let keys = (!keys.is_empty()).then(|| Arc::new(keys));
        let user = user.map(|user| UserId::stored(user.into()));
        LaneKey { tenant, queue, job_type, user, keys, is_retry }
    }

    /// Whether there may be any number of its like: such a lane is forgotten when nothing waits in
    /// it.
    pub fn is_passing(&self) -> bool {
        self.keys.is_some() || self.is_retry
    }

    /// The lane of its like that is kept for good: for all keys, and for retries as for others.
    #[must_use]
    pub fn home(self) -> LaneKey {
        LaneKey { keys: None, is_retry: false, ..self }
    }
}

/// A key in the part of a lane; none is not the same as an empty one.
fn spelled(key: &Option<Box<str>>) -> String {
    key.as_ref().map(|key| format!("={key}")).unwrap_or_default()
}

/// Whether a job of a lane may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// It may, and a place was taken for it.
    Free,
    /// It may not. The next pull asks again.
    Full,
    /// It may not, and nobody need ask again before [`super::Book::free`] is called with this: what
    /// it belongs to is full, and is one of many.
    Aside(Digest),
}

impl From<bool> for Room {
    fn from(has_room: bool) -> Self {
        if has_room { Room::Free } else { Room::Full }
    }
}

/// What a concurrency limit is counted under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LimitKey {
    job_type: JobType,
    tenant: Option<TenantId>,
    user: Option<UserId>,
    key: Option<Box<str>>,
}

impl LimitKey {
    /// What the jobs of a lane are counted under, and how many may run; `None` if the type has no
    /// limit.
    pub fn of_lane(spec: &TypeSpec, lane: &LaneKey) -> Option<(LimitKey, u32)> {
        LimitKey::of(spec, &lane.tenant, lane.user.as_ref(), lane.concurrency_key())
    }

    /// The same for a job.
    pub fn of_job(spec: &TypeSpec, job: &Job) -> Option<(LimitKey, u32)> {
        let key = job.limit_keys().and_then(|keys| keys.concurrency.as_deref());
        LimitKey::of(spec, &job.tenant, Some(&job.user), key)
    }

    /// What jobs of `user` of `tenant` with that key are counted under, and how many may run;
    /// `None` if the type has no limit. The user counts only where the limit is per user. Each key
    /// has a count of its own, and so have all jobs without one.
    pub fn of(
        spec: &TypeSpec,
        tenant: &TenantId,
        user: Option<&UserId>,
        key: Option<&str>,
    ) -> Option<(LimitKey, u32)> {
        let most = spec.concurrency_limit?;
        let (tenant, user) = match spec.concurrency_scope {
            ConcurrencyScope::Global => (None, None),
            ConcurrencyScope::Tenant => (Some(tenant.clone()), None),
            ConcurrencyScope::User => (Some(tenant.clone()), user.cloned()),
        };
        let key = key.map(Into::into);
        Some((LimitKey { job_type: spec.name.clone(), tenant, user, key }, most))
    }

    /// Whether it is one of many of its type.
    pub fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// The type it limits.
    pub fn job_type(&self) -> &JobType {
        &self.job_type
    }

    /// The same as fixed bytes, for stores that keep it in a row.
    pub fn digest(&self) -> Digest {
        let mut parts = match &self.key {
            None => vec![&b"limit"[..], self.job_type.as_str().as_bytes()],
            Some(key) => {
                vec![&b"limit-by-key"[..], self.job_type.as_str().as_bytes(), key.as_bytes()]
            }
        };
        parts.extend(self.tenant.as_ref().map(|tenant| tenant.as_str().as_bytes()));
        parts.extend(self.user.as_ref().map(|user| user.as_str().as_bytes()));
        digest(&parts)
    }
}

/// Whether one more job may run under a limit of `most`, of which `running` are in use.
pub const fn has_room(running: u32, most: u32) -> bool {
    running < most
}

/// Places under limits that one pull has taken, beside the jobs that run.
#[derive(Debug)]
pub struct Taken<K>(HashMap<K, u32>);

impl<K> Default for Taken<K> {
    fn default() -> Self {
        Taken(HashMap::new())
    }
}

impl<K: Eq + Hash> Taken<K> {
    /// How many places were taken under `key`.
    pub fn count(&self, key: &K) -> u32 {
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Takes a place under `key`.
    pub fn add(&mut self, key: K) {
        *self.0.entry(key).or_default() += 1;
    }

    /// Takes a place under `key` if there is one: of `most`, so many are running.
    pub fn take(&mut self, key: K, running: u32, most: u32) -> bool {
        let taken = self.0.entry(key).or_default();
        let is_taken = has_room(running.saturating_add(*taken), most);
        *taken += u32::from(is_taken);
        is_taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limited(scope: ConcurrencyScope) -> TypeSpec {
        TypeSpec {
            concurrency_limit: Some(2),
            concurrency_scope: scope,
            ..TypeSpec::plain(JobType::new("mail").unwrap())
        }
    }

    /// Whether two users, and two tenants, share a count.
    fn shares(scope: ConcurrencyScope) -> (bool, bool) {
        let spec = limited(scope);
        let [a, b] = ["a", "b"].map(|name| TenantId::new(name).unwrap());
        let [ann, bob] = ["ann", "bob"].map(|name| UserId::new(name).unwrap());
        let key = |tenant, user| LimitKey::of(&spec, tenant, Some(user), None).unwrap().0;
        let same = |one: LimitKey, other: LimitKey| {
            assert_eq!(one == other, one.digest() == other.digest(), "bytes say the same");
            one == other
        };
        (same(key(&a, &ann), key(&a, &bob)), same(key(&a, &ann), key(&b, &ann)))
    }

    #[test]
    fn a_limit_is_counted_over_its_scope() {
        assert_eq!(shares(ConcurrencyScope::Global), (true, true));
        assert_eq!(shares(ConcurrencyScope::Tenant), (true, false));
        assert_eq!(shares(ConcurrencyScope::User), (false, false));
    }

    #[test]
    fn a_type_without_a_limit_is_counted_under_nothing() {
        let spec = TypeSpec { concurrency_limit: None, ..limited(ConcurrencyScope::User) };
        assert_eq!(LimitKey::of(&spec, &TenantId::new("a").unwrap(), None, None), None);
        assert!(!spec.is_limited_by_user());
    }

    #[test]
    fn what_was_taken_counts_beside_what_runs() {
        let mut taken = Taken::default();
        assert!(taken.take("mail", 1, 3));
        assert!(taken.take("mail", 1, 3));
        assert!(!taken.take("mail", 1, 3));
        assert!(!taken.take("fax", 0, 0), "a limit of zero holds everything");
        assert!(taken.take("other", 0, 1));
    }

    #[test]
    fn each_key_has_a_count_of_its_own_and_so_have_those_without() {
        let spec = limited(ConcurrencyScope::Tenant);
        let tenant = TenantId::new("a").unwrap();
        let keys = [None, Some(""), Some("x"), Some("y")];
        let all = keys.map(|key| LimitKey::of(&spec, &tenant, None, key).unwrap().0);
        for (one, left) in all.iter().enumerate() {
            for (other, right) in all.iter().enumerate() {
                assert_eq!(left == right, one == other);
                assert_eq!(left.digest() == right.digest(), one == other);
            }
        }
    }

    #[test]
    fn a_lane_is_the_same_after_it_was_spelled() {
        for user in [None, Some("ann")] {
            for concurrency in [None, Some(""), Some("=x")] {
                for rate in [None, Some(""), Some("y")] {
                    let keys = LimitKeys {
                        concurrency: concurrency.map(Into::into),
                        rate: rate.map(Into::into),
                    };
                    for is_retry in [false, true] {
                        let keys = (!keys.is_empty()).then(|| Arc::new(keys.clone()));
                        let lane = LaneKey {
                            tenant: TenantId::new("a").unwrap(),
                            queue: QueueName::new("q").unwrap(),
                            job_type: JobType::new("t").unwrap(),
                            user: user.map(|user| UserId::new(user).unwrap()),
                            keys,
                            is_retry,
                        };
                        let LaneKey { tenant, queue, job_type, .. } = lane.clone();
                        let again = LaneKey::of_part(tenant, queue, job_type, &lane.part());
                        assert_eq!(again, lane);
                        assert_eq!(lane.is_passing(), lane != lane.clone().home());
                    }
                }
            }
        }
    }
}
