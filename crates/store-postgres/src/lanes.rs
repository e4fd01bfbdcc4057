//! The numbers of lanes: each tenant, queue and type (and user or key, where a limit is counted by
//! it) that ever had a job has a row in `lane`, and rows of `job`, `ready`, `waiting` and `live`
//! name it by its number. Rows are only ever added, so what was learned from committed rows stays
//! true; but those of keys are dropped when nothing waits in them, and the registries have another
//! version then.

use crate::connections::Wait;
use crate::fault::Fault;
use crate::queries::Query;
use crate::rows::lane_of;
use crate::this_server::ThisServer;
use mainspring_kernel::dispatch::LaneKey;
use mainspring_kernel::{JobType, QueueName, TenantId};
use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};
use tokio_postgres::Row;

/// The numbers of lanes, both ways.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    by_number: HashMap<i32, LaneKey>,
    by_key: HashMap<LaneKey, i32>,
    newest: i32,
}

impl Lanes {
    pub(crate) fn key(&self, number: i32) -> Option<&LaneKey> {
        self.by_number.get(&number)
    }

    pub(crate) fn number(&self, key: &LaneKey) -> Option<i32> {
        self.by_key.get(key).copied()
    }

    /// Every lane that is known, by its number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (i32, &LaneKey)> {
        self.by_number.iter().map(|(number, key)| (*number, key))
    }

    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Numbers are given before they are seen: look a little further back than the newest.
    pub(crate) fn look_from(&self) -> i32 {
        (self.newest - 64).max(0)
    }

    /// Takes in rows of `lane`; answers the numbers that were new.
    pub(crate) fn learn(&mut self, rows: &[Row]) -> Result<Vec<i32>, Fault> {
        let mut new = Vec::new();
        for row in rows {
            let number: i32 = row.try_get(0)?;
            if self.by_number.contains_key(&number) {
                continue;
            }
            let text = |at: usize| row.try_get::<_, &str>(at);
            let key = LaneKey::of_part(
                TenantId::stored(text(1)?.into()),
                QueueName::stored(text(2)?.into()),
                JobType::stored(text(3)?.into()),
                text(4)?,
            );
            self.newest = self.newest.max(number);
            self.by_key.insert(key.clone(), number);
            self.by_number.insert(number, key);
            new.push(number);
        }
        Ok(new)
    }

    /// The lanes of keys and of retries may be gone.
    pub(crate) fn forget_passing(&mut self) {
        self.by_number.retain(|_, key| !key.is_passing());
        self.by_key.retain(|key, _| !key.is_passing());
    }

    /// These numbers were never given: the transaction that saw them did not commit.
    pub(crate) fn forget(&mut self, numbers: &[i32]) {
        for number in numbers {
            if let Some(key) = self.by_number.remove(number) {
                self.by_key.remove(&key);
            }
        }
    }
}

impl ThisServer {
    pub(crate) fn lanes(&self) -> RwLockReadGuard<'_, Lanes> {
        self.lanes.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn lanes_mut(&self) -> RwLockWriteGuard<'_, Lanes> {
        self.lanes.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes sure that the lanes of rows with a job from column `at` on are known.
    pub(crate) async fn learn_lanes(&self, rows: &[Row], at: usize) -> Result<(), Fault> {
        let lanes: Result<Vec<i32>, Fault> = rows.iter().map(|row| lane_of(row, at)).collect();
        self.know_lanes(&lanes?).await
    }

    /// Makes sure that these lanes are known.
    pub(crate) async fn know_lanes(&self, numbers: &[i32]) -> Result<(), Fault> {
        for is_last in [false, true] {
            let from = {
                let lanes = self.lanes();
                if numbers.iter().all(|number| lanes.key(*number).is_some()) {
                    return Ok(());
                }
                if is_last { 0 } else { lanes.look_from() }
            };
            self.load_lanes(from).await?;
        }
        Ok(())
    }

    /// Makes sure that all lanes are known: a list must not miss those of other servers.
    pub(crate) async fn know_all_lanes(&self) -> Result<(), Fault> {
        let rows = self.connections.read(Query::CountLanes, Vec::new()).await?;
        let count: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        let is_known = || usize::try_from(count).is_ok_and(|count| self.lanes().len() >= count);
        if is_known() {
            return Ok(());
        }
        let from = self.lanes().look_from();
        self.load_lanes(from).await?;
        if is_known() { Ok(()) } else { self.load_lanes(0).await }
    }

    async fn load_lanes(&self, from: i32) -> Result<(), Fault> {
        let rows = self.connections.read(Query::LoadLanes, vec![Box::new(from)]).await?;
        self.lanes_mut().learn(&rows).map(|_| ())
    }

    /// Gives lanes that have none a number.
    pub(crate) async fn number_lanes(
        &self,
        lanes: HashSet<LaneKey>,
        wait: Wait,
    ) -> Result<(), Fault> {
        if lanes.is_empty() {
            return Ok(());
        }
        let column = |of: fn(&LaneKey) -> &str| -> Vec<String> {
            lanes.iter().map(|lane| of(lane).to_owned()).collect()
        };
        self.connections
            .write(
                wait,
                Query::AddLanes,
                vec![
                    Box::new(column(|lane| lane.tenant.as_str())),
                    Box::new(column(|lane| lane.queue.as_str())),
                    Box::new(column(|lane| lane.job_type.as_str())),
                    Box::new(lanes.iter().map(LaneKey::part).collect::<Vec<_>>()),
                ],
            )
            .await?;
        let from = self.lanes().look_from();
        self.load_lanes(from).await?;
        let is_known = lanes.iter().all(|lane| self.lanes().number(lane).is_some());
        if is_known { Ok(()) } else { self.load_lanes(0).await }
    }
}
