//! When the alarm of an entity stands (`entity.alarm_at`): the first one, and who is to be rung.
//! Which kinds have alarms, and what ringing means, is the kernel's.

use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use crate::values::At;
use mainspring_kernel::entity::Kind;
use mainspring_kernel::{EntityId, Timestamp};
use std::sync::atomic::{AtomicI64, Ordering};
use tokio_postgres::Row;
use uuid::Uuid;

/// The first alarm of an entity, as far as this server knows: its own to the instant, others' by
/// looking. While none stands, the database is not asked.
pub(crate) struct FirstEntityAlarm(AtomicI64);

impl Default for FirstEntityAlarm {
    fn default() -> Self {
        FirstEntityAlarm(AtomicI64::new(i64::MAX))
    }
}

impl FirstEntityAlarm {
    /// An alarm stands at that instant.
    pub(crate) fn stands_at(&self, at: Timestamp) {
        self.0.fetch_min(at.0, Ordering::AcqRel);
    }

    /// The first one, if it is after `now`.
    pub(crate) fn after(&self, now: Timestamp) -> Option<Timestamp> {
        let at = self.0.load(Ordering::Acquire);
        (at > now.0 && at < i64::MAX).then_some(Timestamp(at))
    }

    /// Forgets alarms until `now`, if there may be any: the database is asked for them.
    fn take(&self, now: Timestamp) -> bool {
        let at = self.0.load(Ordering::Acquire);
        at <= now.0
            && self.0.compare_exchange(at, i64::MAX, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// Whose alarm stands at `now` or earlier.
pub(crate) async fn find_due(
    server: &ThisServer,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(EntityId, Timestamp)>, Fault> {
    if !server.due.entities.take(now) {
        return Ok(Vec::new());
    }
    let found = read_due_rows(server, now, limit).await;
    // What is due stays so until it was rung, and whoever could not look looks again.
    if !found.as_ref().is_ok_and(Vec::is_empty) {
        server.due.entities.stands_at(now);
    }
    found
}

async fn read_due_rows(
    server: &ThisServer,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<(EntityId, Timestamp)>, Fault> {
    let most = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows =
        server.connections.read(Query::FindAlarms, vec![Box::new(At(now)), Box::new(most)]).await?;
    if rows.is_empty() {
        let next = server.connections.read(Query::NextEntityAlarm, vec![Box::new(At(now))]).await?;
        if let Some(row) = next.first() {
            server.due.entities.stands_at(row.try_get::<_, At>(0)?.0);
        }
    }
    rows.iter().map(read_due).collect()
}

fn read_due(row: &Row) -> Result<(EntityId, Timestamp), Fault> {
    let number: i16 = row.try_get(0)?;
    let kind = u8::try_from(number).ok().and_then(Kind::of_number);
    let kind = kind.ok_or_else(|| Fault::Broken(format!("kind {number} is unknown")))?;
    let (bits, at): (Uuid, At) = (row.try_get(1)?, row.try_get(2)?);
    Ok((EntityId { kind, bits: bits.as_u128() }, at.0))
}
