//! What a batch changed, as statements over arrays: their number does not depend on how many jobs
//! the batch touched.

use crate::commit::columns::{Ends, Lives, Submissions, Text, Waits, pairs};
use crate::commit::desk::{Entry, Origin, PostgresDesk};
use crate::commit::effects::Effects;
use crate::commit::items::write_items;
use crate::commit::keys::write_keys;
use crate::commit::tallies::Tallies;
use crate::connections::Call;
use crate::fault::Fault;
use crate::lanes::Lanes;
use crate::queries::Query;
use crate::registry::Registry;
use crate::rows::{hastening, more, state_number};
use crate::terms;
use crate::values::{At, hash_uuid, uuid};
use mainspring_kernel::dispatch::LaneKey;
use mainspring_kernel::{Job, StateName, Timestamp};
use mainspring_store::record::{encode_progress, encode_steps};
use std::collections::HashSet;
use uuid::Uuid;

/// The statements of one batch, under construction.
struct Writes<'a> {
    registry: &'a Registry,
    lanes: &'a Lanes,
    now: Timestamp,
    /// Rows of `job`.
    submitted: Submissions,
    /// Rows that come into `ready` and `waiting`.
    to_ready: Waits,
    to_waiting: Waits,
    /// Rows of `ready` that are claimed, and rows of `ready` or `waiting` that go for another
    /// reason.
    claimed: Waits,
    left_waiting: Waits,
    /// Where else those may have waited.
    left_waiting_beside: Vec<i32>,
    /// Rows of `job` that are due from now on.
    hastened: (Vec<Uuid>, Vec<At>, Vec<Option<String>>),
    /// Rows that come into `expiry` and go from there.
    to_expiry: (Vec<At>, Vec<Uuid>),
    left_expiry: (Vec<At>, Vec<Uuid>),
    /// Rows of `live`: new, changed, and gone.
    to_live: Lives,
    changed_live: Lives,
    left_live: (Vec<Uuid>, Vec<i32>),
    /// Rows of `finished`.
    to_finished: Ends,
    effects: Effects,
    /// Rows of `checkpoint` that come, and that go.
    checkpoints: (Vec<Uuid>, Vec<Text>),
    left_checkpoints: Vec<Uuid>,
    /// Rows of `term`: labels of submissions and codes of failed attempts that come, and codes that
    /// go.
    new_terms: (Vec<i64>, Vec<Uuid>),
    old_codes: (Vec<i64>, Vec<Uuid>),
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
        if entry.was_retry && !lane.is_retry {
            // Where it waited.
            let was = LaneKey { is_retry: true, ..lane.clone() };
            if known.number(&was).is_none() {
                needed.insert(was);
            }
        }
        if last.as_ref() == Some(&lane) {
            continue;
        }
        if entry.origin == Origin::New && lane.is_passing() {
            let home = lane.clone().home();
            if known.number(&home).is_none() {
                needed.insert(home);
            }
        }
        if known.number(&lane).is_none() {
            needed.insert(lane.clone());
        }
        last = Some(lane);
    }
    needed
}

/// The statements that make the database agree with the desk; none if nothing changed.
pub(crate) fn statements(desk: &mut PostgresDesk<'_>, lanes: &Lanes) -> Result<Vec<Call>, Fault> {
    let mut tallies = std::mem::take(&mut desk.tallies);
    let mut writes = Writes {
        registry: desk.registry,
        lanes,
        now: desk.now,
        submitted: Submissions::default(),
        to_ready: Waits::default(),
        to_waiting: Waits::default(),
        claimed: Waits::default(),
        left_waiting: Waits::default(),
        left_waiting_beside: Vec::new(),
        hastened: Default::default(),
        to_expiry: Default::default(),
        left_expiry: Default::default(),
        to_live: Lives::default(),
        changed_live: Lives::default(),
        left_live: Default::default(),
        to_finished: Ends::default(),
        effects: Effects::default(),
        checkpoints: Default::default(),
        left_checkpoints: Vec::new(),
        new_terms: Default::default(),
        old_codes: Default::default(),
        tallies: &mut tallies,
    };
    for id in &desk.changed {
        if let Some(entry) = desk.entries.get(id) {
            writes.write_job(entry)?;
        }
    }
    let mut calls = writes.into_calls();
    calls.extend(write_keys(desk));
    calls.extend(write_items(desk));
    calls.extend(desk.entities.write_entities());
    calls.extend(desk.meters.write());
    calls.extend(write_outbox(desk, &tallies));
    Ok(calls)
}

impl Writes<'_> {
    /// The rows of one job that the batch changed.
    fn write_job(&mut self, entry: &Entry) -> Result<(), Fault> {
        let job = &entry.job;
        let state = job.state.name();
        match entry.origin {
            Origin::New => self.write_submission(entry)?,
            Origin::Queued if job.seq == entry.was_seq => return Ok(()),
            Origin::Queued if state == StateName::Queued => {
                self.leave_line(entry)?;
                self.hasten(entry);
                self.write_alarm(entry);
                return self.write_wait(job, false);
            }
            Origin::Queued => {
                self.leave_line(entry)?;
                self.hasten(entry);
                self.write_alarm(entry);
            }
            Origin::Live(_) => {
                if entry.was_due_at.is_some() && job.seq != entry.was_seq {
                    self.leave_line(entry)?;
                }
            }
            Origin::Finished => return Ok(()),
        }
        self.effects.push_last(job, entry.unwritten_effects());
        self.write_error_code(entry);
        self.write_checkpoint(entry);
        let version = match entry.origin {
            Origin::Live(version) => Some(version),
            Origin::New | Origin::Queued | Origin::Finished => None,
        };
        if state.is_terminal() {
            if let Some(version) = version {
                self.left_live.0.push(uuid(job.id));
                self.left_live.1.push(version);
            }
            self.write_end(entry);
        } else if state == StateName::Queued {
            self.write_wait(job, false)?;
            self.write_alarm(entry);
        } else {
            if state == StateName::Retrying {
                self.write_wait(job, true)?;
            }
            self.write_live(entry, version)?;
        }
        Ok(())
    }

    /// The alarm of a job that nobody has started is a row of `expiry`; that of any other is in
    /// `live`.
    fn write_alarm(&mut self, entry: &Entry) {
        let job = &entry.job;
        let alarm_at = job.alarm_at().filter(|_| job.state.name() == StateName::Queued);
        if entry.was_alarm == alarm_at {
            return;
        }
        if let Some(at) = entry.was_alarm {
            self.left_expiry.0.push(At(at));
            self.left_expiry.1.push(uuid(job.id));
        }
        if let Some(at) = alarm_at {
            self.to_expiry.0.push(At(at));
            self.to_expiry.1.push(uuid(job.id));
        }
    }

    /// What its worker left for the next try; gone when there is none.
    fn write_checkpoint(&mut self, entry: &Entry) {
        let job = &entry.job;
        if let Some(value) = job.course().and_then(|course| course.checkpoint.as_ref()) {
            self.checkpoints.0.push(uuid(job.id));
            self.checkpoints.1.push(Text(value.clone()));
        } else if entry.had_checkpoint && !job.has_checkpoint() {
            self.left_checkpoints.push(uuid(job.id));
        }
    }

    /// Lists find a job by the code of its last failed attempt. One that failed before there were
    /// such lists is noted when it moves next.
    fn write_error_code(&mut self, entry: &Entry) {
        let (id, code) = (uuid(entry.job.id), terms::code(&entry.job));
        if let Some(code) = code.filter(|_| entry.job.seq != entry.was_seq) {
            self.new_terms.0.push(code);
            self.new_terms.1.push(id);
        }
        if let Some(was) = entry.was_code.filter(|_| code != entry.was_code) {
            self.old_codes.0.push(was);
            self.old_codes.1.push(id);
        }
    }

    /// The number of the lane that a job waits in.
    fn lane(&self, job: &Job) -> Result<i32, Fault> {
        self.number(&self.registry.lane(job))
    }

    fn number(&self, lane: &LaneKey) -> Result<i32, Fault> {
        let number = self.lanes.number(lane);
        number.ok_or_else(|| match lane.is_passing() {
            // Such lanes are forgotten when the registries change.
            true => Fault::RegistryChanged,
            false => Fault::Broken(format!("{lane:?} has no number")),
        })
    }

    /// A row of `job`, written once and never changed, unless the job is hastened.
    fn write_submission(&mut self, entry: &Entry) -> Result<(), Fault> {
        let job = &entry.job;
        let lane = self.number(&self.registry.home(job))?;
        let jobs = &mut self.submitted;
        jobs.ids.push(uuid(job.id));
        jobs.lanes.push(lane);
        jobs.priorities.push(i16::from(job.priority));
        jobs.max_retries.push(i16::try_from(job.max_retries).unwrap_or(i16::MAX));
        jobs.timeouts.push(i32::try_from(job.timeout_ms).unwrap_or(i32::MAX));
        jobs.run_at.push(At(job.run_at));
        jobs.users.push(job.user.as_str().to_owned());
        jobs.payloads.push(Text(job.payload.clone()));
        jobs.traces.push(job.trace.as_deref().map(str::to_owned));
        jobs.more.push(more(job, &entry.history));
        for term in terms::submitted(job) {
            self.new_terms.0.push(term);
            self.new_terms.1.push(uuid(job.id));
        }
        Ok(())
    }

    /// A job that nobody had started was made ready, by hand or because the jobs that it waited for
    /// are done: what alone changes the row of a submission. That it was still waiting is told by
    /// the row that it leaves.
    fn hasten(&mut self, entry: &Entry) {
        if hastening(&entry.history).is_some_and(|step| step.seq > entry.was_seq) {
            self.hastened.0.push(uuid(entry.job.id));
            self.hastened.1.push(At(entry.job.run_at));
            self.hastened.2.push(more(&entry.job, &entry.history));
        }
    }

    /// A job begins to wait: in `ready` if it is due, else in `waiting`.
    fn write_wait(&mut self, job: &Job, is_retry: bool) -> Result<(), Fault> {
        let Some(due_at) = job.due_at() else { return Ok(()) };
        let lane = self.lane(job)?;
        let tally = self.tallies.queue(&job.queue);
        let waits = if due_at <= self.now {
            tally.ready += 1;
            &mut self.to_ready
        } else {
            tally.pending += 1;
            &mut self.to_waiting
        };
        waits.push(lane, self.registry.key(job, due_at), job, due_at, is_retry);
        Ok(())
    }

    /// A job waits no longer where it was loaded from.
    fn leave_line(&mut self, entry: &Entry) -> Result<(), Fault> {
        match (entry.was_due_at, entry.ready_row) {
            (Some(due_at), Some(row)) => self.claim_by_delete(&entry.job, row, due_at),
            (Some(due_at), None) => self.delete_wait(entry, due_at)?,
            (None, _) => {}
        }
        Ok(())
    }

    /// Claims an offered job: `ready` gives its row to one who deletes it, and only to one.
    fn claim_by_delete(&mut self, job: &Job, (lane, key): (i32, i64), due_at: Timestamp) {
        self.claimed.push(lane, key, job, due_at, false);
        self.tallies.queue(&job.queue).ready -= 1;
    }

    /// Takes a job that was not offered out of `waiting`, or out of `ready` if it became due since.
    /// A retry is looked for beside the others, too: servers of before have no lanes for retries.
    fn delete_wait(&mut self, entry: &Entry, due_at: Timestamp) -> Result<(), Fault> {
        let job = &entry.job;
        let beside = LaneKey { is_retry: false, ..self.registry.lane(job) };
        let (number, key) = (self.lanes.number(&beside), self.registry.key(job, due_at));
        let own = LaneKey { is_retry: entry.was_retry, ..beside.clone() };
        let (lane, other) = match (self.lanes.number(&own), number) {
            (Some(own), other) => (own, other.unwrap_or(own)),
            (None, Some(other)) => (other, other),
            (None, None) => (self.number(&own)?, self.number(&beside)?),
        };
        self.left_waiting.push(lane, key, job, due_at, false);
        self.left_waiting_beside.push(other);
        Ok(())
    }

    /// A row of `live`: a job that was started and has not ended, at its next version.
    fn write_live(&mut self, entry: &Entry, version: Option<i32>) -> Result<(), Fault> {
        let job = &entry.job;
        let lane = match entry.lane {
            Some(lane) => lane,
            None => self.number(&self.registry.home(job))?,
        };
        let lives = if version.is_some() { &mut self.changed_live } else { &mut self.to_live };
        lives.ids.push(uuid(job.id));
        lives.versions.extend(version);
        lives.states.push(state_number(job.state.name()));
        lives.lanes.push(lane);
        lives.alarms.push(job.alarm_at().map(At));
        lives.limits.push(self.registry.counted_under(job).map(hash_uuid));
        lives.workers.push(job.lease().map(|lease| lease.worker.as_str().to_owned()));
        lives.records.push(record(entry));
        Ok(())
    }

    /// A row of `finished`.
    fn write_end(&mut self, entry: &Entry) {
        let job = &entry.job;
        self.to_finished.ids.push(uuid(job.id));
        self.to_finished.states.push(state_number(job.state.name()));
        self.to_finished.at.push(At(job.finished_at().unwrap_or(self.now)));
        self.to_finished.records.push(record(entry));
    }

    /// In an order in which no row is written before what it takes the place of is gone.
    fn into_calls(self) -> Vec<Call> {
        let created_at = At(self.now);
        let (ids, run_at, more) = self.hastened;
        let hastened = (!ids.is_empty()).then(|| {
            Call::new(Query::HastenJobs, vec![Box::new(ids), Box::new(run_at), Box::new(more)])
        });
        let gone = self.left_checkpoints;
        let gone =
            (!gone.is_empty()).then(|| Call::new(Query::DeleteCheckpoints, vec![Box::new(gone)]));
        let calls = [
            self.submitted.insert(created_at),
            self.claimed.delete(Query::DeleteReady),
            self.left_waiting.leave(self.left_waiting_beside),
            hastened,
            pairs(Query::DeleteExpiry, self.left_expiry),
            pairs(Query::DeleteLive, self.left_live),
            self.changed_live.update(),
            self.to_live.insert(),
            self.to_finished.insert(),
            self.effects.insert(),
            pairs(Query::PutCheckpoints, self.checkpoints),
            gone,
            self.to_ready.insert_ready(),
            self.to_waiting.insert_waiting(),
            pairs(Query::InsertExpiry, self.to_expiry),
            pairs(Query::DeleteTerms, self.old_codes),
            pairs(Query::InsertTerms, self.new_terms),
        ];
        calls.into_iter().flatten().collect()
    }
}

fn record(entry: &Entry) -> Vec<u8> {
    let mut record = Vec::with_capacity(160);
    encode_progress(&entry.job, &entry.history, &mut record);
    record
}

/// What the batch moved and counted, if anything: one row of `outbox`, from which it is stamped
/// into `stream` and `tally`.
fn write_outbox(desk: &PostgresDesk<'_>, tallies: &Tallies) -> Option<Call> {
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
