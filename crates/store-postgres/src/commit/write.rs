//! What a batch changed, as statements over arrays: their number does not depend on how many jobs
//! the batch touched.

use crate::commit::columns::{Ends, Lives, Submissions, Text, Waits, pairs};
use crate::commit::desk::{Entry, Origin, PostgresDesk};
use crate::commit::effects::Effects;
use crate::commit::tallies::Tallies;
use crate::connections::Call;
use crate::fault::Fault;
use crate::queries::Query;
use crate::registry::{Lanes, Registry};
use crate::rows::more;
use crate::terms;
use crate::values::{At, hash_uuid, item_uuid, uuid};
use mainspring_kernel::dispatch::LaneKey;
use mainspring_kernel::{DlqItem, Job, StateName, Timestamp};
use mainspring_store::record::{encode_item, encode_progress, encode_steps};
use std::collections::HashSet;
use uuid::Uuid;

/// The statements of one batch, under construction.
struct Writes<'a> {
    registry: &'a Registry,
    lanes: &'a Lanes,
    now: Timestamp,
    jobs: Submissions,
    ready: Waits,
    waiting: Waits,
    claimed: Waits,
    unwaiting: Waits,
    expiring: (Vec<At>, Vec<Uuid>),
    unexpiring: (Vec<At>, Vec<Uuid>),
    started: Lives,
    changed: Lives,
    ended: (Vec<Uuid>, Vec<i32>),
    finished: Ends,
    effects: Effects,
    coded: (Vec<i64>, Vec<Uuid>),
    uncoded: (Vec<i64>, Vec<Uuid>),
    tallies: &'a mut Tallies,
}

/// The lanes of jobs that the batch leaves waiting or submits, which need numbers.
pub(crate) fn lanes_needed(desk: &PostgresDesk<'_>, known: &Lanes) -> HashSet<LaneKey> {
    let changed = desk.changed.iter().filter_map(|id| desk.entries.get(id));
    // Jobs of one batch are mostly alike: the last lane is the next one, too.
    let mut last: Option<LaneKey> = None;
    let mut needed = HashSet::new();
    for entry in changed {
        let job = &entry.job;
        if entry.origin != Origin::New && job.due_at().is_none() && entry.ready_row.is_some() {
            continue;
        }
        let lane = desk.registry.lane(job);
        if last.as_ref() == Some(&lane) {
            continue;
        }
        if known.number(&lane).is_none() {
            needed.insert(lane.clone());
        }
        last = Some(lane);
    }
    needed
}

/// The statements that make the database agree with the desk; none if nothing changed.
pub(crate) fn calls(desk: &mut PostgresDesk<'_>, lanes: &Lanes) -> Result<Vec<Call>, Fault> {
    let mut tallies = std::mem::take(&mut desk.tallies);
    let mut writes = Writes {
        registry: desk.registry,
        lanes,
        now: desk.now,
        jobs: Submissions::default(),
        ready: Waits::default(),
        waiting: Waits::default(),
        claimed: Waits::default(),
        unwaiting: Waits::default(),
        expiring: Default::default(),
        unexpiring: Default::default(),
        started: Lives::default(),
        changed: Lives::default(),
        ended: Default::default(),
        finished: Ends::default(),
        effects: Effects::default(),
        coded: Default::default(),
        uncoded: Default::default(),
        tallies: &mut tallies,
    };
    for id in &desk.changed {
        if let Some(entry) = desk.entries.get(id) {
            writes.entry(entry)?;
        }
    }
    let mut calls = writes.into_calls();
    calls.extend(key_calls(desk));
    calls.extend(item_calls(desk));
    calls.extend(desk.entities.calls());
    calls.extend(outbox(desk, &tallies));
    Ok(calls)
}

impl Writes<'_> {
    fn entry(&mut self, entry: &Entry) -> Result<(), Fault> {
        let job = &entry.job;
        let state = job.state.name();
        match entry.origin {
            Origin::New => self.submitted(job)?,
            Origin::Queued if state == StateName::Queued => return Ok(()),
            Origin::Queued => {
                self.leave(entry)?;
                if let Some(expires_at) = job.expires_at() {
                    self.unexpiring.0.push(At(expires_at));
                    self.unexpiring.1.push(uuid(job.id));
                }
            }
            Origin::Live(_) => {
                if entry.was_due_at.is_some() && job.seq != entry.was_seq {
                    self.leave(entry)?;
                }
            }
            Origin::Finished => return Ok(()),
        }
        self.effects.push_last(job, entry.unwritten_effects());
        self.code(entry);
        let version = match entry.origin {
            Origin::Live(version) => Some(version),
            Origin::New | Origin::Queued | Origin::Finished => None,
        };
        if state.is_terminal() {
            if let Some(version) = version {
                self.ended.0.push(uuid(job.id));
                self.ended.1.push(version);
            }
            self.finish(entry);
        } else if state == StateName::Queued {
            self.wait(job, false)?;
            if let Some(expires_at) = job.expires_at() {
                self.expiring.0.push(At(expires_at));
                self.expiring.1.push(uuid(job.id));
            }
        } else {
            if state == StateName::Retrying {
                self.wait(job, true)?;
            }
            self.live(entry, version)?;
        }
        Ok(())
    }

    /// Lists find a job by the code of its last failed attempt. One that failed before there were
    /// such lists is noted when it moves next.
    fn code(&mut self, entry: &Entry) {
        let (id, code) = (uuid(entry.job.id), terms::code(&entry.job));
        if let Some(code) = code.filter(|_| entry.job.seq != entry.was_seq) {
            self.coded.0.push(code);
            self.coded.1.push(id);
        }
        if let Some(was) = entry.was_code.filter(|_| code != entry.was_code) {
            self.uncoded.0.push(was);
            self.uncoded.1.push(id);
        }
    }

    fn lane(&self, job: &Job) -> Result<i32, Fault> {
        let lane = self.registry.lane(job);
        let number = self.lanes.number(&lane);
        number.ok_or_else(|| Fault::Broken(format!("{lane:?} has no number")))
    }

    fn submitted(&mut self, job: &Job) -> Result<(), Fault> {
        let lane = self.lane(job)?;
        let jobs = &mut self.jobs;
        jobs.ids.push(uuid(job.id));
        jobs.lanes.push(lane);
        jobs.priorities.push(i16::from(job.priority));
        jobs.max_retries.push(i16::try_from(job.max_retries).unwrap_or(i16::MAX));
        jobs.timeouts.push(i32::try_from(job.timeout_ms).unwrap_or(i32::MAX));
        jobs.run_at.push(At(job.run_at));
        jobs.users.push(job.user.as_str().to_owned());
        jobs.payloads.push(Text(job.payload.clone()));
        jobs.traces.push(job.trace.as_deref().map(str::to_owned));
        jobs.more.push(more(job));
        Ok(())
    }

    /// A job begins to wait.
    fn wait(&mut self, job: &Job, is_retry: bool) -> Result<(), Fault> {
        let Some(due_at) = job.due_at() else { return Ok(()) };
        let lane = self.lane(job)?;
        let tally = self.tallies.queue(&job.queue);
        let waits = if due_at <= self.now {
            tally.ready += 1;
            &mut self.ready
        } else {
            tally.pending += 1;
            &mut self.waiting
        };
        waits.push(lane, self.registry.key(job, due_at), job, due_at, is_retry);
        Ok(())
    }

    /// A job waits no longer where it was loaded from.
    fn leave(&mut self, entry: &Entry) -> Result<(), Fault> {
        let Some(due_at) = entry.was_due_at else { return Ok(()) };
        let job = &entry.job;
        if let Some((lane, key)) = entry.ready_row {
            self.claimed.push(lane, key, job, due_at, false);
            self.tallies.queue(&job.queue).ready -= 1;
        } else {
            let lane = self.lane(job)?;
            let key = self.registry.key(job, due_at);
            self.unwaiting.push(lane, key, job, due_at, false);
        }
        Ok(())
    }

    fn live(&mut self, entry: &Entry, version: Option<i32>) -> Result<(), Fault> {
        let job = &entry.job;
        let lane = entry.lane.map_or_else(|| self.lane(job), Ok)?;
        let lives = if version.is_some() { &mut self.changed } else { &mut self.started };
        lives.ids.push(uuid(job.id));
        lives.versions.extend(version);
        lives.states.push(number(job.state.name()));
        lives.lanes.push(lane);
        lives.alarms.push(job.alarm_at().map(At));
        let limit = job.lease().and_then(|_| self.registry.limit_key(job));
        lives.limits.push(limit.map(hash_uuid));
        lives.workers.push(job.lease().map(|lease| lease.worker.as_str().to_owned()));
        lives.records.push(record(entry));
        Ok(())
    }

    fn finish(&mut self, entry: &Entry) {
        let job = &entry.job;
        self.finished.ids.push(uuid(job.id));
        self.finished.states.push(number(job.state.name()));
        self.finished.at.push(At(job.finished_at().unwrap_or(self.now)));
        self.finished.records.push(record(entry));
    }

    /// In an order in which no row is written before what it takes the place of is gone.
    fn into_calls(self) -> Vec<Call> {
        let created_at = At(self.now);
        let calls = [
            self.jobs.insert(created_at),
            self.claimed.delete(Query::DeleteReady),
            self.unwaiting.delete(Query::DeleteWaiting),
            pairs(Query::DeleteExpiry, self.unexpiring),
            pairs(Query::DeleteLive, self.ended),
            self.changed.update(),
            self.started.insert(),
            self.finished.insert(),
            self.effects.insert(),
            self.ready.insert_ready(),
            self.waiting.insert_waiting(),
            pairs(Query::InsertExpiry, self.expiring),
            pairs(Query::DeleteTerms, self.uncoded),
            pairs(Query::InsertTerms, self.coded),
        ];
        calls.into_iter().flatten().collect()
    }
}

/// The number of a state in the tables.
pub(crate) fn number(state: StateName) -> i16 {
    StateName::ALL.iter().position(|other| *other == state).unwrap_or(0) as i16
}

fn record(entry: &Entry) -> Vec<u8> {
    let mut record = Vec::with_capacity(160);
    encode_progress(&entry.job, &entry.history, &mut record);
    record
}

fn key_calls(desk: &PostgresDesk<'_>) -> Vec<Call> {
    let mut calls = Vec::new();
    let (mut hashes, mut jobs, mut fingerprints, mut old, mut free_at) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let mut taken = HashSet::new();
    // Sorted, so that two servers that take the same keys wait for each other in one order.
    let mut keys: Vec<_> = desk.keys.iter().collect();
    keys.sort_by_key(|(hash, _)| **hash);
    for (hash, key) in keys {
        let Some(now) = key.now else { continue };
        if key.was.is_some_and(|was| was.job == now.job) {
            continue;
        }
        taken.insert(*hash);
        hashes.push(hash_uuid(*hash));
        jobs.push(uuid(now.job));
        fingerprints.push(now.fingerprint.map(hash_uuid));
        old.push(key.was.map(|was| uuid(was.job)));
        free_at.push(now.free_at.map(At));
    }
    if !hashes.is_empty() {
        calls.push(Call::new(
            Query::InsertKeys,
            vec![
                Box::new(hashes),
                Box::new(jobs),
                Box::new(fingerprints),
                Box::new(old),
                Box::new(free_at),
            ],
        ));
    }
    let freed: Vec<_> = desk.freed.iter().filter(|(hash, ..)| !taken.contains(hash)).collect();
    if !freed.is_empty() {
        let hashes: Vec<Uuid> = freed.iter().map(|(hash, ..)| hash_uuid(*hash)).collect();
        let jobs: Vec<Uuid> = freed.iter().map(|(_, job, _)| uuid(*job)).collect();
        let at: Vec<At> = freed.iter().map(|(.., at)| At(*at)).collect();
        let values: Vec<crate::connections::Value> =
            vec![Box::new(hashes), Box::new(jobs), Box::new(at)];
        calls.push(Call::new(Query::FreeKeys, values));
    }
    calls
}

fn item_calls(desk: &PostgresDesk<'_>) -> Vec<Call> {
    let mut calls = Vec::new();
    let changed = desk.items.values().filter(|entry| entry.is_changed);
    let (new, old): (Vec<_>, Vec<_>) = changed.partition(|entry| entry.was.is_none());
    let record = |entry: &&crate::commit::desk::ItemEntry| {
        let mut record = Vec::new();
        encode_item(&entry.item, &mut record);
        record
    };
    let version = |version: u32| i32::try_from(version).unwrap_or(i32::MAX);
    if !new.is_empty() {
        let text = |of: fn(&crate::commit::desk::ItemEntry) -> &str| -> Vec<String> {
            new.iter().map(|entry| of(entry).to_owned()).collect()
        };
        let at: Vec<At> = new.iter().map(|entry| At(entry.item.created_at)).collect();
        calls.push(Call::new(
            Query::InsertItems,
            vec![
                Box::new(new.iter().map(|it| item_uuid(it.item.id)).collect::<Vec<_>>()),
                Box::new(new.iter().map(|it| version(it.item.version)).collect::<Vec<_>>()),
                Box::new(text(|entry| entry.item.state.as_str())),
                Box::new(text(|entry| entry.item.job.tenant.as_str())),
                Box::new(text(|entry| entry.item.job.user.as_str())),
                Box::new(text(|entry| entry.item.job.job_type.as_str())),
                Box::new(at),
                Box::new(new.iter().map(record).collect::<Vec<_>>()),
            ],
        ));
        calls.extend(item_terms(new.iter().map(|entry| &entry.item)));
    }
    if !old.is_empty() {
        let states: Vec<String> =
            old.iter().map(|entry| entry.item.state.as_str().to_owned()).collect();
        let was: Vec<i32> = old.iter().filter_map(|entry| entry.was.map(version)).collect();
        calls.push(Call::new(
            Query::UpdateItems,
            vec![
                Box::new(old.iter().map(|it| item_uuid(it.item.id)).collect::<Vec<_>>()),
                Box::new(was),
                Box::new(old.iter().map(|it| version(it.item.version)).collect::<Vec<_>>()),
                Box::new(states),
                Box::new(old.iter().map(record).collect::<Vec<_>>()),
            ],
        ));
    }
    calls
}

/// The facts by which lists find items.
pub(crate) fn item_terms<'a>(items: impl Iterator<Item = &'a DlqItem>) -> Option<Call> {
    let (mut numbers, mut ids) = (Vec::new(), Vec::new());
    for item in items {
        for number in terms::of_item(item) {
            numbers.push(number);
            ids.push(item_uuid(item.id));
        }
    }
    pairs(Query::InsertItemTerms, (numbers, ids))
}

/// What the batch moved and counted, if anything.
fn outbox(desk: &PostgresDesk<'_>, tallies: &Tallies) -> Option<Call> {
    let (names, deltas) = tallies.by_name();
    if desk.steps.is_empty() && deltas.is_empty() {
        return None;
    }
    let mut steps = Vec::new();
    encode_steps(&desk.steps, desk.now, &mut steps);
    let moves = i32::try_from(desk.steps.len()).unwrap_or(i32::MAX);
    Some(Call::new(
        Query::InsertOutbox,
        vec![Box::new(moves), Box::new(steps), Box::new(names), Box::new(deltas)],
    ))
}
