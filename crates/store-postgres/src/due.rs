//! What happens by time alone, and when this server next has to see to it: jobs that become due
//! (`waiting.rs`), jobs whose lease, timeout or expiry rings (`job_alarms.rs`), entities whose
//! alarm stands (`entity_alarms.rs`). Every server sees to what it set itself, to the instant; what
//! others set it finds by looking.

pub(crate) mod entity_alarms;
pub(crate) mod job_alarms;
mod made_ready;
mod waiting;

use crate::connections::Value;
use crate::due::entity_alarms::FirstEntityAlarm;
use crate::due::job_alarms::JobAlarms;
use crate::due::made_ready::MadeReadyElsewhere;
use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use crate::values::At;
use mainspring_kernel::{JobId, Timestamp};
use mainspring_store::Wake;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The instants that this server has in mind.
pub(crate) struct Due {
    /// When the next row of `waiting` is due.
    next_waiting: AtomicI64,
    /// When the first row of `ready` is due that is not by our clock.
    early: AtomicI64,
    /// Alarms of jobs: `live.alarm_at` and `expiry`.
    jobs: Mutex<JobAlarms>,
    /// The first alarm in `entity`.
    pub(crate) entities: FirstEntityAlarm,
    /// Lanes in which jobs became ready by time alone, for the writer.
    filled: Mutex<Vec<i32>>,
    /// Rows that the second writer put in `ready`, for the first one.
    made_ready: Mutex<MadeReadyElsewhere>,
    /// Whether jobs became ready by time alone since the engine last asked.
    has_promoted: AtomicBool,
}

impl Default for Due {
    /// Nothing is known: what waits may be due already.
    fn default() -> Self {
        Due {
            next_waiting: AtomicI64::new(i64::MIN),
            early: AtomicI64::new(i64::MAX),
            jobs: Mutex::default(),
            entities: FirstEntityAlarm::default(),
            filled: Mutex::default(),
            made_ready: Mutex::default(),
            has_promoted: AtomicBool::new(false),
        }
    }
}

/// What a look at all servers' doings found (`NextInstants`).
#[derive(Debug)]
pub(crate) struct Glance {
    /// When the first row of `waiting` is due.
    pub(crate) due: Option<Timestamp>,
    /// Whether the alarm of a job has rung that nobody has seen to.
    pub(crate) is_overdue: bool,
    /// The number of the newest commit in `outbox`, of any server.
    pub(crate) newest: i64,
    /// The version of the registries.
    pub(crate) registry: i64,
    /// The first alarm in `entity`.
    pub(crate) alarm: Option<Timestamp>,
    /// The position of the newest move that is stamped.
    pub(crate) stamped: Option<i64>,
}

impl ThisServer {
    /// Looks at what may have changed by `now`, and for the first job due after `due_from`.
    pub(crate) async fn look(&self, now: Timestamp, due_from: Timestamp) -> Result<Glance, Fault> {
        let seen_to = self.job_alarms().look_from();
        let values: Vec<Value> =
            vec![Box::new(At(now)), Box::new(At(seen_to)), Box::new(At(due_from))];
        let rows = self.connections.read(Query::NextInstants, values).await?;
        let row = rows.first().ok_or_else(|| Fault::Broken("nothing to see".into()))?;
        Ok(Glance {
            due: row.try_get::<_, Option<At>>(0)?.map(|at| at.0),
            is_overdue: row.try_get(1)?,
            newest: row.try_get(2)?,
            stamped: row.try_get(3)?,
            registry: row.try_get(4)?,
            alarm: row.try_get::<_, Option<At>>(5)?.map(|at| at.0),
        })
    }

    /// Keeps the first alarms of the database in mind, whoever set them.
    pub(crate) async fn learn_alarms(&self) -> Result<(), Fault> {
        let rows = self.connections.read(Query::NextAlarm, Vec::new()).await?;
        let first: Option<At> = rows.first().map_or(Ok(None), |row| row.try_get(0))?;
        self.job_alarms().moved(JobId(0), None, first.map(|at| at.0));
        let now = self.now();
        if let Some(first) = self.look(now, now).await?.alarm {
            self.due.entities.stands_at(first);
        }
        Ok(())
    }

    /// When something next becomes due or overdue after `now`, as far as this server knows.
    fn next_instant(&self, now: Timestamp) -> Option<Timestamp> {
        let waiting = self.due.next_waiting.load(Ordering::Acquire);
        let due = waiting.min(self.due.early.load(Ordering::Acquire));
        let due = (due > now.0 && due < i64::MAX).then_some(Timestamp(due));
        let alarms = self.job_alarms().next(now).into_iter().chain(self.due.entities.after(now));
        due.into_iter().chain(alarms).min()
    }

    /// Sees to what became due by `now` and says when to ask again.
    pub(crate) async fn wake(&self, now: Timestamp) -> Result<Wake, Fault> {
        self.promote(now).await?;
        Ok(Wake {
            is_work_due: self.due.has_promoted.swap(false, Ordering::AcqRel)
                | self.is_early_due(now),
            next: self.next_instant(now),
        })
    }
}
