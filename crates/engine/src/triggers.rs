//! Triggers that go by a condition are told here what is seen of the world: files that change,
//! tasks that end. What comes of it the kernel decides; what was seen and says nothing new is not
//! even told. Everything is in memory and made anew at the next start: what has changed meanwhile
//! is seen by comparing it with what the trigger knows.
//!
//! `triggers/watcher.rs` is the task that does so and `watched.rs` what it knows, `files.rs` the
//! paths and `tasks.rs` the tasks that are asked for; `pattern.rs` says which files a path means,
//! `walk.rs` looks at them, and `notice.rs` is told of changes by the operating system.

mod files;
mod notice;
mod pattern;
mod tasks;
mod walk;
mod watched;
mod watcher;

pub use pattern::Unseeable;
pub(crate) use watcher::run;

use crate::engine::Engine;
use crate::limits::TRIGGER_HINTS_MAX;
use mainspring_kernel::entity::trigger::{Condition, Pace, Seen, Sight, TriggerSpec};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{Entity, EntityId, JobId, TenantId, UserId};
use mainspring_store::Error;
use pattern::{Pattern, patterns};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use walk::walk;

/// What triggers can be told by the settings.
#[derive(Debug, Clone)]
pub struct TriggerConfig {
    /// Files are looked at below these folders only.
    pub roots: Vec<PathBuf>,
    /// How quickly new triggers go by what happens.
    pub pace: Pace,
    /// How often triggers are looked for that others made, where the store is shared.
    pub look_elsewhere_every: Option<Duration>,
}

impl TriggerConfig {
    /// No files are looked at.
    pub const fn none() -> Self {
        TriggerConfig { roots: Vec::new(), pace: Pace::DEFAULT, look_elsewhere_every: None }
    }
}

/// Something that the task should know.
pub(crate) enum Hint {
    /// A trigger is so now, or is gone.
    Trigger(EntityId, Option<Box<Entity>>),
    /// A job has ended; with the name that its caller chose.
    Ended(JobId, Option<Digest>),
    /// Somebody asks how the leaves of a trigger are looked at.
    Ways(EntityId, oneshot::Sender<Vec<String>>),
}

/// What the task should know and has not taken in yet.
#[derive(Default)]
pub(crate) struct Hints {
    waiting: Mutex<Vec<Hint>>,
    changed: Notify,
    /// Whether triggers wait for tasks.
    wants_ends: AtomicBool,
}

impl Hints {
    /// Whether the ends of jobs should be told.
    pub(crate) fn wants_ends(&self) -> bool {
        self.wants_ends.load(Ordering::SeqCst)
    }

    /// Tells it. With too much of it nothing is kept, and everything is looked at anew.
    pub(crate) fn tell(&self, some: impl IntoIterator<Item = Hint>) {
        let mut some = some.into_iter().peekable();
        if some.peek().is_none() {
            return;
        }
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend(some);
        waiting.truncate(TRIGGER_HINTS_MAX);
        self.changed.notify_one();
    }

    /// What there is; whether it may not be all.
    fn take(&self) -> (Vec<Hint>, bool) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let some = std::mem::take(&mut *waiting);
        let is_full = some.len() >= TRIGGER_HINTS_MAX;
        (some, is_full)
    }
}

impl Engine {
    /// The pace of triggers that are made now.
    pub fn trigger_pace(&self) -> Pace {
        self.shared.config.triggers.pace
    }

    /// Looks at everything that the condition of a trigger of `owner` asks for.
    ///
    /// # Errors
    /// If the store failed; the inner error if nobody can look at files that it asks for.
    pub async fn trigger_sights(
        &self,
        (tenant, owner): (&TenantId, &UserId),
        spec: &TriggerSpec,
    ) -> Result<Result<Vec<Sight>, Unseeable>, Error> {
        let Some(condition) = spec.watched_condition() else { return Ok(Ok(Vec::new())) };
        let mut sights = Vec::new();
        let mut looks: Vec<(u16, Vec<Pattern>)> = Vec::new();
        for (leaf, at) in condition.leaves().into_iter().zip(0u16..) {
            if let Some(path) = leaf.path() {
                match patterns(&self.shared.config.triggers.roots, path) {
                    Ok(patterns) => looks.push((at, patterns)),
                    Err(why) => return Ok(Err(why)),
                }
            } else if let Some(task) = leaf.task() {
                let known = tasks::look_up(&self.shared, &(tenant.clone(), task.into())).await?;
                let known = known.filter(|known| spec.sees_tenant || known.user == *owner);
                let seen = Seen::Task(known.map(|known| Box::new(known.ended)));
                sights.push(Sight { leaf: at, seen });
            }
        }
        if looks.is_empty() {
            return Ok(Ok(sights));
        }
        let looked = tokio::task::spawn_blocking(move || look_at_all(&looks)).await;
        Ok(looked.unwrap_or(Err(Unseeable::TooWide)).map(|files| {
            sights.extend(files);
            sights
        }))
    }

    /// How this server looks at the leaves of a trigger, in words.
    pub async fn trigger_ways(&self, id: EntityId) -> Vec<String> {
        let (answer, told) = oneshot::channel();
        self.shared.hints.tell([Hint::Ways(id, answer)]);
        tokio::select! {
            biased;
            told = told => told.unwrap_or_default(),
            () = self.shared.stop.cancelled() => Vec::new(),
        }
    }

    /// Refuses paths that nobody can look at, before anything is made.
    ///
    /// # Errors
    /// The first of them.
    pub fn check_paths(&self, condition: &Condition) -> Result<(), Unseeable> {
        let roots = &self.shared.config.triggers.roots;
        let leaves = condition.leaves();
        leaves
            .iter()
            .filter_map(|leaf| leaf.path())
            .try_for_each(|path| patterns(roots, path).map(drop))
    }
}

fn look_at_all(looks: &[(u16, Vec<Pattern>)]) -> Result<Vec<Sight>, Unseeable> {
    let mut sights = Vec::new();
    for (leaf, patterns) in looks {
        let mut newest = None;
        for pattern in patterns {
            let walked = walk(pattern, &mut |_| {});
            if walked.is_cut {
                return Err(Unseeable::TooWide);
            }
            newest = newest.max(walked.newest);
        }
        sights.push(Sight { leaf: *leaf, seen: Seen::Files(newest) });
    }
    Ok(sights)
}
