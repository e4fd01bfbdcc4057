//! What a commit brought about: one value, made from the desk before the batch is sent, and handled
//! in one place once the database has taken it. Whatever this server keeps in mind (the stock, the
//! jobs it handed out, alarms, due instants, backlogs, registries) learns of a commit here and
//! nowhere else.

use super::Writer;
use super::desk::{Entry, Origin, PostgresDesk};
use crate::backlog::Amount;
use crate::registry::Registry;
use crate::rows::Stored;
use crate::stock::{Offer, Plan, ReadyKey, Stock};
use crate::this_server::ThisServer;
use crate::values::{Map, uuid};
use mainspring_kernel::dispatch::LaneKey;
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::{JobId, StateName, TenantId, Timestamp};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What is true once a batch is committed.
pub(super) struct Consequences {
    now: Timestamp,
    /// Jobs with a row in `live` that a worker of this server holds, and those none holds any more.
    handed_out: Vec<(JobId, Option<Stored>)>,
    /// Jobs whose alarm in `live` or `expiry` was, and is.
    alarms: Vec<(JobId, Option<Timestamp>, Option<Timestamp>)>,
    /// The first alarm that was set in `entity`.
    entity_alarm: Option<Timestamp>,
    /// When the first of the jobs that were put in `waiting` is due.
    next_due: Option<Timestamp>,
    /// What was read of `ready`.
    plan: Plan,
    /// Rows of `ready` that were offered and not claimed.
    unclaimed: Vec<Offer>,
    /// The last row of `ready` that was claimed in each lane.
    claimed_to: Map<i32, ReadyKey>,
    /// Jobs that had a row in `ready` or `waiting`, were not offered, and have none any more.
    gone: HashSet<JobId>,
    /// Rows that were put in `ready`, with their jobs if those go into the stock.
    made_ready: Vec<(i32, ReadyKey, Option<Stored>)>,
    /// What tenants have more, or less, that has not ended.
    pub(super) backlog: Vec<(TenantId, Amount)>,
    /// The registries, if the batch changed them.
    pub(super) registry: Option<Arc<Registry>>,
    /// Lanes of keys that are full, and limits under which there may be room again.
    full: Vec<(i32, Digest, Option<Timestamp>)>,
    freed_limits: HashSet<Digest>,
    /// Whether there are lanes that the pulls could not look at.
    has_more: bool,
    /// Whether other servers want to hear of it: jobs moved, or rows in `ready` were left for them.
    is_news: bool,
}

impl Consequences {
    /// What committing a desk will bring about.
    pub(super) fn of(
        desk: PostgresDesk<'_>,
        plan: Plan,
        stock: &Stock,
        server: &ThisServer,
    ) -> Consequences {
        let entity_alarm = desk.entities.first_alarm();
        let PostgresDesk {
            entries,
            registry,
            now,
            steps,
            full,
            freed_limits,
            has_uncounted,
            is_short,
            ..
        } = desk;
        let has_more = has_uncounted || is_short || (plan.has_more && !full.is_empty());
        let full = {
            let lanes = server.lanes();
            let number = |(lane, limit, until): (LaneKey, Digest, Option<Timestamp>)| {
                Some((lanes.number(&lane)?, limit, until))
            };
            full.into_iter().filter_map(number).collect()
        };
        let mut all = Consequences {
            now,
            handed_out: Vec::with_capacity(entries.len()),
            alarms: Vec::with_capacity(entries.len()),
            entity_alarm,
            next_due: None,
            plan,
            unclaimed: Vec::new(),
            claimed_to: Map::default(),
            gone: HashSet::new(),
            made_ready: Vec::new(),
            backlog: Vec::new(),
            registry: None,
            full,
            freed_limits,
            has_more,
            is_news: !steps.is_empty(),
        };
        let lanes = server.lanes();
        for (id, entry) in entries {
            match entry.ready_row {
                Some((lane, key)) if !entry.is_changed => {
                    all.unclaimed.push((lane, key, stored(entry)));
                    continue;
                }
                Some((lane, key)) => {
                    let place = (key, uuid(id));
                    let last = all.claimed_to.entry(lane).or_insert(place);
                    *last = place.max(*last);
                }
                None if !entry.is_changed => continue,
                None if entry.was_due_at.is_some() => {
                    all.gone.insert(id);
                }
                None => {}
            }
            all.alarms.push((id, entry.was_alarm, entry.job.alarm_at()));
            let waits = entry.job.due_at();
            if waits.is_some() && entry.origin != Origin::New {
                // Back in line: what it was when it was handed out is not true any more.
                all.handed_out.push((id, None));
            }
            match waits {
                Some(due_at) if due_at > now => {
                    all.next_due = all.next_due.into_iter().chain([due_at]).min();
                }
                Some(due_at) => {
                    all.is_news = true;
                    if let Some(lane) = lanes.number(&registry.lane(&entry.job)) {
                        let place = (registry.key(&entry.job, due_at), uuid(id));
                        let stored = stock.is_stocked(lane).then(|| stored(entry));
                        all.made_ready.push((lane, place, stored));
                    }
                }
                None => {
                    let runs = entry.job.state.name() == StateName::Running;
                    all.handed_out.push((id, runs.then(|| stored(entry))));
                }
            }
        }
        all
    }

    /// The batch changed nothing: only the stock gets back what it offered.
    pub(super) fn of_nothing(self, server: &ThisServer, writer: &mut Writer) {
        writer.stock.lanes_full(self.full);
        if self.has_more {
            server.work_by(self.now);
        }
        writer.stock.put_back(self.unclaimed);
        writer.stock.rows_claimed(&self.plan, None);
    }

    /// The database has taken the batch.
    pub(super) fn come_true(self, server: &ThisServer, writer: &mut Writer) {
        server.backlog().committed(self.backlog);
        server.neighbours.own_commits.fetch_add(1, Ordering::AcqRel);
        if let Some(registry) = self.registry {
            server.learn_registry(registry);
        }
        server.set_alarms(&self.alarms);
        if let Some(at) = self.entity_alarm {
            server.due.entities.stands_at(at);
        }
        if let Some(at) = self.next_due {
            server.due_by(at);
        }
        writer.stock.lanes_full(self.full);
        writer.stock.limits_freed(&self.freed_limits);
        if self.has_more {
            server.work_by(self.now);
        }
        writer.remember_handed_out(self.handed_out, self.now);
        writer.stock.put_back(self.unclaimed);
        writer.stock.rows_claimed(&self.plan, Some(&self.claimed_to));
        writer.stock.rows_gone(&self.gone);
        for (lane, place, stored) in self.made_ready {
            writer.stock.row_written(lane, place, stored);
        }
        if self.is_news {
            server.neighbours.to_tell.notify_one();
        }
    }
}

/// A job as it is in the database once the batch is committed.
fn stored(mut entry: Entry) -> Stored {
    entry.put_effects_away();
    if let Some(course) = entry.job.extras.as_mut().and_then(|it| it.course.as_mut()) {
        course.is_checkpoint_elsewhere |= course.checkpoint.take().is_some();
    }
    let version = match entry.origin {
        Origin::Live(version) if entry.is_changed => Some(version + 1),
        Origin::Live(version) => Some(version),
        Origin::New | Origin::Queued if entry.job.state.name() == StateName::Queued => None,
        Origin::New | Origin::Queued | Origin::Finished => Some(1),
    };
    Stored { job: entry.job, history: entry.history, version, lane: entry.lane }
}
