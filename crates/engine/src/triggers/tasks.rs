//! The tasks that triggers wait for: who waits for which, and how those ended that have.

use crate::engine::Shared;
use crate::limits::TASKS_LOOKED_UP;
use mainspring_kernel::agent::{self, NAMESPACE, PARENT_LABEL};
use mainspring_kernel::entity::trigger::Ended;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::idempotency::alias_hash;
use mainspring_kernel::{EntityId, Job, JobId, StateName, TenantId, UserId};
use mainspring_store::{Error, Scope};
use std::collections::{HashMap, HashSet, VecDeque};

/// Names a task: whose, and how it is called.
pub(super) type TaskName = (TenantId, Box<str>);

/// A task that has ended.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) ended: Ended,
    /// Whose it was.
    pub(super) user: UserId,
}

#[derive(Default)]
struct Awaited {
    by: HashSet<EntityId>,
    known: Option<Known>,
}

/// The tasks that triggers wait for.
#[derive(Default)]
pub(super) struct Tasks {
    awaited: HashMap<TaskName, Awaited>,
    by_alias: HashMap<Digest, TaskName>,
    by_job: HashMap<JobId, TaskName>,
    /// Those that have not ended, as far as is known, in the order in which they are looked up.
    open: VecDeque<TaskName>,
    /// Those that are to be looked up at once.
    soon: Vec<TaskName>,
}

impl Tasks {
    /// A trigger waits for a task.
    pub(super) fn wait(&mut self, by: EntityId, name: &TaskName) {
        let is_new = !self.awaited.contains_key(name);
        self.awaited.entry(name.clone()).or_default().by.insert(by);
        if is_new {
            self.by_alias.insert(alias_hash(&name.0, NAMESPACE, &name.1), name.clone());
            if let Ok(job) = name.1.parse::<JobId>() {
                self.by_job.insert(job, name.clone());
            }
            self.open.push_back(name.clone());
            self.soon.push(name.clone());
        }
    }

    /// It does so no more.
    pub(super) fn forget(&mut self, by: EntityId, name: &TaskName) {
        let Some(awaited) = self.awaited.get_mut(name) else { return };
        awaited.by.remove(&by);
        if awaited.by.is_empty() {
            self.awaited.remove(name);
            self.by_alias.remove(&alias_hash(&name.0, NAMESPACE, &name.1));
            if let Ok(job) = name.1.parse::<JobId>() {
                self.by_job.remove(&job);
            }
            self.open.retain(|other| other != name);
        }
    }

    /// How a task ended, if that is known.
    pub(super) fn known(&self, name: &TaskName) -> Option<&Known> {
        self.awaited.get(name).and_then(|awaited| awaited.known.as_ref())
    }

    /// A job has ended.
    pub(super) fn ended(&mut self, job: JobId, alias: Option<Digest>) {
        let named = alias.and_then(|alias| self.by_alias.get(&alias));
        self.soon.extend(named.or_else(|| self.by_job.get(&job)).cloned());
    }

    /// Whether something is to be looked up at once.
    pub(super) fn is_due(&self) -> bool {
        !self.soon.is_empty()
    }

    /// Whether a task has not ended, as far as is known.
    pub(super) fn is_waiting(&self) -> bool {
        !self.open.is_empty()
    }

    /// Looks up those that are due at once, and some of the others if it is their turn: they may
    /// have ended elsewhere. The triggers that this concerns.
    pub(super) async fn look_up(
        &mut self,
        shared: &Shared,
        is_their_turn: bool,
    ) -> Result<Vec<EntityId>, Error> {
        let mut names = std::mem::take(&mut self.soon);
        if is_their_turn {
            for _ in 0..self.open.len().min(TASKS_LOOKED_UP) {
                let Some(name) = self.open.pop_front() else { break };
                self.open.push_back(name.clone());
                names.push(name);
            }
        }
        let mut concerned = Vec::new();
        for name in names {
            if self.known(&name).is_some() || !self.awaited.contains_key(&name) {
                continue;
            }
            let Some(known) = look_up(shared, &name).await? else { continue };
            self.open.retain(|other| *other != name);
            if let Some(awaited) = self.awaited.get_mut(&name) {
                awaited.known = Some(known);
                concerned.extend(&awaited.by);
            }
        }
        Ok(concerned)
    }
}

/// How a task ended, if it has: by the name that its caller chose, or by the id of its job.
pub(super) async fn look_up(shared: &Shared, name: &TaskName) -> Result<Option<Known>, Error> {
    let scope = Scope::Tenant(name.0.clone());
    let holder = shared.store.holder_of_key(alias_hash(&name.0, NAMESPACE, &name.1)).await?;
    let id = holder.map(|holder| holder.job).or_else(|| name.1.parse().ok());
    let Some(id) = id else { return Ok(None) };
    let found = shared.store.job_within(id, &scope).await?;
    Ok(found.and_then(|found| known(&found.job)))
}

fn known(job: &Job) -> Option<Known> {
    if !job.state.name().is_terminal() {
        return None;
    }
    let ended = Ended {
        job: job.id,
        is_done: job.state.name() == StateName::Succeeded,
        trace: Some(job.trace_id().into()),
        parent_task_id: agent::label(job, PARENT_LABEL).map(Into::into),
    };
    Some(Known { ended, user: job.user.clone() })
}
