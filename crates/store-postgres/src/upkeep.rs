//! Upkeep: partitions of `job`, `finished` and `stream` made ahead and dropped behind; rows of
//! `held_key`, `item`, `meter`, `tally` and `term` that nobody needs any more. Every server does it
//! now and then; what two do at once, one of them does for nothing.

use crate::connections::Value;
use crate::fault::Fault;
use crate::list::list_old_items;
use crate::queries::{Query, in_schema};
use crate::this_server::ThisServer;
use crate::values::At;
use jiff::civil::{Date, date};
use mainspring_kernel::Timestamp;

/// Days for which partitions are made ahead, today included.
const DAYS_AHEAD: i32 = 4;
/// Lanes that are kept though nothing may wait in them.
const LANES_KEPT: usize = 20_000;
/// Lanes forgotten at once, at most.
const LANES_FORGOTTEN_MAX: i32 = 50_000;
/// Rows forgotten at once, at most.
const FORGOTTEN_MAX: i32 = 5_000;

/// Makes the partitions of the days ahead.
pub(crate) async fn make_partitions(server: &ThisServer) -> Result<(), Fault> {
    server.connections.read(Query::MakePartitions, vec![Box::new(DAYS_AHEAD)]).await.map(|_| ())
}

/// Does what is to be done.
pub(crate) async fn maintain(server: &ThisServer, now: Timestamp) -> Result<(), Fault> {
    make_partitions(server).await?;
    let keep = now - server.config.keep_items;
    let values = |at: Timestamp| -> Vec<Value> { vec![Box::new(At(at)), Box::new(FORGOTTEN_MAX)] };
    server.connections.read(Query::DeleteKeys, values(now)).await?;
    server.connections.read(Query::DeleteItems, values(keep)).await?;
    server.connections.read(Query::ForgetMeters, values(now)).await?;
    server.connections.read(Query::ForgetTallies, Vec::new()).await?;
    forget_lanes(server).await?;
    list_old_items(server).await?;
    drop_old(server, now).await?;
    // Of days that are over, with the day that is being dropped left to the next time.
    let day = 86_400_000_000;
    let gone = Timestamp((now - server.config.keep_finished).0.div_euclid(day) * day);
    server.connections.read(Query::ForgetTerms, values(gone)).await.map(|_| ())
}

/// Drops lanes of keys in which nothing waits, if there are very many lanes.
async fn forget_lanes(server: &ThisServer) -> Result<(), Fault> {
    if server.lanes().len() <= LANES_KEPT {
        return Ok(());
    }
    server.connections.read(Query::ForgetLanes, vec![Box::new(LANES_FORGOTTEN_MAX)]).await?;
    // Whatever it was, the next look is at the lanes as they are.
    server.lanes_mut().forget_passing();
    Ok(())
}

/// Drops the partitions of days that are past keeping. What outlived its day moves to the partition
/// `old` first: jobs that have not ended, or ended so late that they are still kept.
async fn drop_old(server: &ThisServer, now: Timestamp) -> Result<(), Fault> {
    let rows = server.connections.read(Query::ListPartitions, Vec::new()).await?;
    let day = |at: Timestamp| at.0.div_euclid(86_400_000_000);
    let finished_before = day(now - server.config.keep_finished);
    let stream_before = day(now - server.config.keep_stream);
    for row in rows {
        let (parent, name): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        let Some(of_day) = name.rsplit_once('_').and_then(|(_, suffix)| days_of(suffix)) else {
            continue;
        };
        let before = if parent == "stream" { stream_before } else { finished_before };
        if of_day >= before {
            continue;
        }
        let sql = match parent {
            "stream" => format!("DROP TABLE mainspring.{name}"),
            // Jobs and their ends go together, led by the jobs.
            "job" => retire(&name["job_".len()..], now - server.config.keep_finished),
            _ => continue,
        };
        let mut connection = server.connections.get().await?;
        connection.script(&in_schema(&sql, &server.config.schema)).await?;
        tracing::info!(partition = name, "a partition past its time was dropped");
    }
    Ok(())
}

/// The statements that retire one day of jobs.
fn retire(suffix: &str, kept_since: Timestamp) -> String {
    include_str!("../scripts/retire_day.sql")
        .replace("{suffix}", suffix)
        .replace("{kept_since}", &kept_since.0.to_string())
}

/// Days since 1970 of a partition's `YYYYMMDD`.
fn days_of(suffix: &str) -> Option<i64> {
    let is_plain = suffix.len() == 8 && suffix.bytes().all(|byte| byte.is_ascii_digit());
    let day = is_plain.then(|| Date::strptime("%Y%m%d", suffix).ok())??;
    Some(i64::from((day - date(1970, 1, 1)).get_days()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_tell_their_day() {
        assert_eq!(days_of("19700101"), Some(0));
        assert_eq!(days_of("20000301"), Some(11_017));
        assert_eq!(days_of("20261116"), Some(20_773));
        assert_eq!(days_of("later"), None);
        assert_eq!(days_of("2026111x"), None);
    }
}
