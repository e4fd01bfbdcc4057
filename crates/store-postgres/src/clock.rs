//! The clock of the database, as all its servers keep it: looks, and has what servers know about it
//! corrected by compare-and-set. The rule is the kernel's (`kernel/src/shared_time.rs`).

use crate::connections::Value;
use crate::fault::Fault;
use crate::queries::Query;
use crate::this_server::ThisServer;
use mainspring_kernel::Timestamp;
use mainspring_kernel::shared_time::{Jump, Look, SharedTime, Silence};
use std::time::Duration;
use tokio::time::Instant;
use tokio_postgres::Row;

/// Looks in a row: one to notice, one to see what came of it, and some for races that were lost or
/// answers that were slow.
const LOOKS_MAX: usize = 4;
/// Nobody looks again for a quicker answer after this long: a busy database is not asked more often
/// for being slow.
const LOOK_AGAIN_FOR: Duration = Duration::from_secs(1);

/// Sets this server's clock by the database's; what that showed.
pub(crate) async fn follow(server: &ThisServer) -> Result<Timestamp, Fault> {
    let (mut wall, began) = (Timestamp::EPOCH, Instant::now());
    for _ in 0..LOOKS_MAX {
        let asked = Instant::now();
        let mut look = Look { wall, slack: Duration::ZERO, blind_for: server.blind_for() };
        let gap = Box::new(micros(look.gap_max()));
        let rows = server.connections.read(Query::LookAtClock, vec![gap]).await?;
        look.slack = asked.elapsed();
        let Some(row) = rows.first() else {
            return Err(Fault::Broken("the clock of the database has no row".to_owned()));
        };
        // The answer was made about half the way ago.
        wall = Timestamp(row.try_get::<_, i64>(0)?) + look.slack / 2;
        look.wall = wall;
        match (server.config.on_time)(&look, &record(row)?) {
            Some(better) => correct(server, &better).await?,
            None if look.is_vague() && began.elapsed() < LOOK_AGAIN_FOR => {}
            None => return Ok(wall),
        }
    }
    // Others are at it; the clock goes on by itself until the next look.
    Ok(wall)
}

fn record(row: &Row) -> Result<SharedTime, Fault> {
    let (jumps, silences): (Vec<i64>, Vec<i64>) = (row.try_get(5)?, row.try_get(6)?);
    let jump = |pair: &[i64]| Jump { from: Timestamp(pair[0]), to: Timestamp(pair[1]) };
    let silence = |pair: &[i64]| Silence { from: Timestamp(pair[0]), to: Timestamp(pair[1]) };
    Ok(SharedTime {
        epoch: row.try_get(1)?,
        ahead: Duration::from_micros(u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or(0)),
        since: Timestamp(row.try_get(3)?),
        seen: Timestamp(row.try_get(4)?),
        jumps: jumps.chunks_exact(2).map(jump).collect(),
        silences: silences.chunks_exact(2).map(silence).collect(),
    })
}

async fn correct(server: &ThisServer, better: &SharedTime) -> Result<(), Fault> {
    let jumps = better.jumps.iter().flat_map(|jump| [jump.from.0, jump.to.0]);
    let silences = better.silences.iter().flat_map(|silence| [silence.from.0, silence.to.0]);
    let values: Vec<Value> = vec![
        Box::new(better.epoch - 1),
        Box::new(micros(better.ahead)),
        Box::new(better.since.0),
        Box::new(jumps.collect::<Vec<i64>>()),
        Box::new(silences.collect::<Vec<i64>>()),
    ];
    server.connections.read(Query::CorrectClock, values).await.map(|_| ())
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
