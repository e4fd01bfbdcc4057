//! The reads of the model, each a scan over everything.

use super::model::Memory;
use crate::filter::{EntityFilter, ItemFilter, JobFilter};
use crate::read::{Counts, Page, QueueCount, Standing, TypeCount};
use crate::store::Wake;
use mainspring_kernel::dispatch::Taken;
use mainspring_kernel::{
    DlqId, DlqItem, Entity, EntityId, Job, JobId, JobType, StateName, Timestamp,
};
use std::collections::BTreeMap;

fn all(memory: &Memory) -> impl Iterator<Item = &Job> {
    memory.jobs.values().map(|whole| &whole.job)
}

pub(super) fn jobs(
    memory: &Memory,
    filter: &JobFilter,
    before: Option<JobId>,
    limit: usize,
) -> Page<Job> {
    let is_older = |job: &&Job| before.is_none_or(|before| job.id < before);
    let newest_first = memory.jobs.values().rev().map(|whole| &whole.job).filter(is_older);
    let found = newest_first.filter(|job| filter.admits(job)).take(limit + 1).cloned().collect();
    Page::cut(found, limit, |job| job.id)
}

pub(super) fn count_jobs(memory: &Memory, filter: &JobFilter, most: usize) -> usize {
    all(memory).filter(|job| filter.admits(job)).take(most).count()
}

pub(super) fn items(
    memory: &Memory,
    filter: &ItemFilter,
    before: Option<DlqId>,
    limit: usize,
) -> Page<DlqItem> {
    let is_older = |item: &&DlqItem| before.is_none_or(|before| item.id < before);
    let newest_first = memory.items.values().rev().filter(is_older);
    let found = newest_first.filter(|item| filter.admits(item)).take(limit + 1).cloned().collect();
    Page::cut(found, limit, |item| item.id.job())
}

pub(super) fn count_items(memory: &Memory, filter: &ItemFilter, most: usize) -> usize {
    memory.items.values().filter(|item| filter.admits(item)).take(most).count()
}

pub(super) fn entities<'a>(
    memory: &'a Memory,
    filter: &'a EntityFilter,
    before: Option<EntityId>,
) -> impl Iterator<Item = &'a Entity> {
    let greatest_first = memory.entities.values().rev();
    let below = greatest_first.filter(move |one| before.is_none_or(|before| one.id < before));
    below.filter(|entity| filter.admits(entity))
}

pub(super) fn alarms(memory: &Memory, now: Timestamp, limit: usize) -> Vec<(EntityId, Timestamp)> {
    let alarm = |entity: &Entity| Some((entity.alarm_at()?, entity.id));
    let mut due: Vec<_> = memory.entities.values().filter_map(alarm).collect();
    due.retain(|(at, _)| *at <= now);
    due.sort_unstable();
    due.into_iter().take(limit).map(|(at, id)| (id, at)).collect()
}

pub(super) fn standing(memory: &Memory, id: JobId, now: Timestamp) -> Option<Standing> {
    let job = &memory.jobs.get(&id)?.job;
    let order = memory.order_of(job)?;
    let goes_before = |other: &&Job| {
        (&other.tenant, &other.queue, &other.job_type) == (&job.tenant, &job.queue, &job.job_type)
            && other.is_retry() == job.is_retry()
            && other.due_at().is_some_and(|due_at| due_at <= now)
            && memory.order_of(other).is_some_and(|other| other < order)
    };
    let is_fresh = |other: &Job| {
        (&other.tenant, &other.queue) == (&job.tenant, &job.queue)
            && !other.is_retry()
            && other.due_at().is_some_and(|due_at| due_at <= now)
    };
    let spec = memory.types.get(&job.job_type);
    let rate_key = job.limit_keys().and_then(|keys| keys.rate.as_deref());
    Some(Standing {
        is_queue_paused: memory.is_paused(&job.queue),
        limit: memory.limit(job),
        holders: memory.holders(job),
        type_paused: spec.and_then(|spec| spec.flow.paused.clone()),
        held: spec.and_then(|spec| memory.meters.held(spec, rate_key, now, &Taken::default())),
        ahead: all(memory).filter(goes_before).count(),
        is_fresh_first: memory.gives_way(job) && all(memory).any(is_fresh),
    })
}

pub(super) fn counts(memory: &Memory, now: Timestamp) -> Counts {
    let mut counts = Counts {
        submitted: memory.totals.submitted,
        claims: memory.totals.claims,
        retries: memory.totals.retries,
        jobs_retried: memory.totals.jobs_retried,
        ..Counts::default()
    };
    let mut queues = BTreeMap::new();
    let mut types: BTreeMap<JobType, TypeCount> = BTreeMap::new();
    for job in all(memory) {
        let none = TypeCount { name: job.job_type.clone(), queued: 0, running: 0, retrying: 0 };
        let of_type = || types.entry(job.job_type.clone()).or_insert(none);
        match job.state.name() {
            StateName::Queued => of_type().queued += 1,
            StateName::Running => of_type().running += 1,
            StateName::Retrying => of_type().retrying += 1,
            StateName::DlqPending
            | StateName::DlqRecorded
            | StateName::Succeeded
            | StateName::Failed
            | StateName::Cancelled => {}
        }
        let name = job.state.name();
        let index = StateName::ALL.iter().position(|state| *state == name).unwrap_or(0);
        counts.by_state[index] += 1;
        let name = job.queue.clone();
        let none = QueueCount { name, ready: 0, pending: 0, running: 0, oldest_due: None };
        let queue = queues.entry(job.queue.clone()).or_insert(none);
        match job.due_at() {
            Some(due_at) if due_at <= now => {
                queue.ready += 1;
                counts.due += 1;
                let due_at = due_at.whole_second();
                for oldest in [&mut counts.oldest_due, &mut queue.oldest_due] {
                    *oldest = Some(oldest.map_or(due_at, |oldest| oldest.min(due_at)));
                }
            }
            Some(_) => queue.pending += 1,
            None => queue.running += u64::from(job.lease().is_some()),
        }
    }
    counts.queues = queues.into_values().collect();
    counts.types = types.into_values().collect();
    let is_waiting = |item: &&DlqItem| item.state.is_waiting();
    counts.items_open = memory.items.values().filter(is_waiting).count() as u64;
    counts
}

pub(super) fn overdue(memory: &Memory, now: Timestamp, limit: usize) -> Vec<JobId> {
    let mut late: Vec<_> = all(memory)
        .filter_map(|job| Some((job.alarm_at()?, job.id)))
        .filter(|(at, _)| *at <= now)
        .collect();
    late.sort_unstable();
    late.into_iter().take(limit).map(|(_, id)| id).collect()
}

pub(super) fn wake(memory: &Memory, now: Timestamp, since: Option<Timestamp>) -> Wake {
    let is_new = |at: Timestamp| at <= now && since.is_none_or(|since| at > since);
    let instants = all(memory).flat_map(|job| [job.alarm_at(), job.due_at()]).flatten();
    let instants = instants.chain(memory.entities.values().filter_map(Entity::alarm_at));
    Wake {
        is_work_due: all(memory).filter_map(Job::due_at).chain(memory.opens_at).any(is_new),
        next: instants.chain(memory.opens_at).filter(|at| *at > now).min(),
    }
}
