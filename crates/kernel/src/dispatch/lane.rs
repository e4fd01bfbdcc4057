//! Lanes, and how many jobs of a type may run at once.

use crate::fingerprint::{Digest, digest};
use crate::job::Job;
use crate::name::{JobType, QueueName, TenantId, UserId};
use crate::registry::{ConcurrencyScope, TypeSpec};
use std::collections::HashMap;
use std::hash::Hash;

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
}

impl LaneKey {
    /// The lane of a job whose type is registered so, or not at all.
    pub fn of(job: &Job, spec: Option<&TypeSpec>) -> LaneKey {
        LaneKey {
            tenant: job.tenant.clone(),
            queue: job.queue.clone(),
            job_type: job.job_type.clone(),
            user: spec.is_some_and(TypeSpec::is_limited_by_user).then(|| job.user.clone()),
        }
    }
}

/// What a concurrency limit is counted under.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LimitKey {
    job_type: JobType,
    tenant: Option<TenantId>,
    user: Option<UserId>,
}

impl LimitKey {
    /// What jobs of `user` of `tenant` are counted under, and how many may run; `None` if the type
    /// has no limit. The user counts only where the limit is per user.
    pub fn of(
        spec: &TypeSpec,
        tenant: &TenantId,
        user: Option<&UserId>,
    ) -> Option<(LimitKey, u32)> {
        let most = spec.concurrency_limit?;
        let (tenant, user) = match spec.concurrency_scope {
            ConcurrencyScope::Global => (None, None),
            ConcurrencyScope::Tenant => (Some(tenant.clone()), None),
            ConcurrencyScope::User => (Some(tenant.clone()), user.cloned()),
        };
        Some((LimitKey { job_type: spec.name.clone(), tenant, user }, most))
    }

    /// The type it limits.
    pub fn job_type(&self) -> &JobType {
        &self.job_type
    }

    /// The same as fixed bytes, for stores that keep it in a row.
    pub fn digest(&self) -> Digest {
        let mut parts = vec![&b"limit"[..], self.job_type.as_str().as_bytes()];
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
        let key = |tenant, user| LimitKey::of(&spec, tenant, Some(user)).unwrap().0;
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
        assert_eq!(LimitKey::of(&spec, &TenantId::new("a").unwrap(), None), None);
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
}
