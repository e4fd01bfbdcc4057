//! What PostgreSQL itself can do: prepared statements on the smallest tables that could hold jobs,
//! without vacuum. Ceilings, not designs; every function answers with jobs per second.

use super::session::Session;
use crate::job::payload;
use crate::stopwatch::Stopwatch;
use crate::workload::{BATCH, together};
use anyhow::ensure;
use std::sync::Mutex;

/// One table whose ready rows have an index of their own.
const ONE_TABLE: &str = "
    create table raw_job (
        id bigint generated always as identity primary key,
        state smallint not null default 0,
        due_at timestamptz not null default now(),
        payload text not null
    ) with (autovacuum_enabled = off);
    create index raw_job_ready on raw_job (due_at, id) where state = 0;";

/// Payloads apart from a narrow table of what is ready; a lease is one row per batch.
const LEASES: &str = "
    create table raw_payload (
        id bigint generated always as identity primary key,
        payload text not null
    ) with (autovacuum_enabled = off);
    create table raw_ready (id bigint primary key) with (autovacuum_enabled = off);
    create table raw_lease (
        id bigint generated always as identity primary key,
        jobs bigint[] not null,
        until timestamptz not null
    ) with (autovacuum_enabled = off);";

const INSERT: &str = "insert into raw_job (payload) select unnest($1::text[])";
const INSERT_ONE: &str = "insert into raw_job (payload) values ($1)";
const INSERT_READY: &str = "
    with new as (
        insert into raw_payload (payload) select unnest($1::text[]) returning id
    ) insert into raw_ready select id from new";
const CLAIM: &str = "
    with picked as (
        delete from raw_ready where ctid = any (array(
            select ctid from raw_ready order by id limit $1 for update skip locked
        )) returning id
    ), lease as (
        insert into raw_lease (jobs, until)
        select array_agg(id), now() + interval '10 minutes' from picked having count(*) > 0
        returning id
    ) select lease.id, job.id, job.payload
      from lease, raw_payload job where job.id = any (array(select id from picked))";
const COMPLETE: &str = "
    with done as (
        delete from raw_lease where id = $1 returning jobs
    ) delete from raw_payload where id = any ((select jobs from done)::bigint[])";

/// R1: inserts in batches of 1000.
pub(crate) fn insert_batches(url: &str, jobs: usize, connections: usize) -> anyhow::Result<f64> {
    Session::open(url)?.run(ONE_TABLE)?;
    let rounds = jobs / BATCH / connections;
    timed(url, INSERT, connections, rounds * BATCH * connections, |session, insert| {
        let batch = batch();
        for _ in 0..rounds {
            session.execute(insert, &[&batch])?;
        }
        Ok(())
    })
}

/// R3: inserts, one row per transaction.
pub(crate) fn insert_single(url: &str, jobs: usize, connections: usize) -> anyhow::Result<f64> {
    Session::open(url)?.run(ONE_TABLE)?;
    let rounds = jobs / connections;
    timed(url, INSERT_ONE, connections, rounds * connections, |session, insert| {
        let one = payload(0);
        for _ in 0..rounds {
            session.execute(insert, &[&one])?;
        }
        Ok(())
    })
}

/// Runs `work` on every connection with the prepared statement.
fn timed(
    url: &str,
    sql: &str,
    connections: usize,
    jobs: usize,
    work: impl Fn(&mut Session, &tokio_postgres::Statement) -> anyhow::Result<()> + Sync,
) -> anyhow::Result<f64> {
    let mut sessions = Vec::new();
    for _ in 0..connections {
        let mut session = Session::open(url)?;
        let statement = session.prepare(sql)?;
        sessions.push(Mutex::new((session, statement)));
    }
    let stopwatch = Stopwatch::start();
    together(connections, |thread| {
        let mut mine = sessions[thread].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (session, statement) = &mut *mine;
        work(session, statement)
    })?;
    Ok(stopwatch.rate(jobs))
}

/// R2: claims by deleting from the narrow table and completes by deleting payloads and lease.
pub(crate) fn claim_and_complete(url: &str, jobs: usize) -> anyhow::Result<f64> {
    let mut session = Session::open(url)?;
    session.run(LEASES)?;
    insert_ready(&mut session, jobs / BATCH)?;
    session.run("analyze")?;
    session.run("checkpoint")?;
    drain(&mut session, jobs / BATCH * BATCH)
}

/// R4: one connection inserts, one claims and completes.
pub(crate) fn whole_path(url: &str, jobs: usize) -> anyhow::Result<f64> {
    Session::open(url)?.run(LEASES)?;
    let rounds = jobs / BATCH;
    let stopwatch = Stopwatch::start();
    together(2, |thread| {
        let mut session = Session::open(url)?;
        match thread {
            0 => insert_ready(&mut session, rounds),
            _ => drain(&mut session, rounds * BATCH).map(|_| ()),
        }
    })?;
    Ok(stopwatch.rate(rounds * BATCH))
}

fn batch() -> Vec<String> {
    vec![payload(0); BATCH]
}

fn insert_ready(session: &mut Session, rounds: usize) -> anyhow::Result<()> {
    let insert = session.prepare(INSERT_READY)?;
    let batch = batch();
    for _ in 0..rounds {
        session.execute(&insert, &[&batch])?;
    }
    Ok(())
}

/// Claims and completes until `jobs` are done.
fn drain(session: &mut Session, jobs: usize) -> anyhow::Result<f64> {
    let claim = session.prepare(CLAIM)?;
    let complete = session.prepare(COMPLETE)?;
    let limit = i64::try_from(BATCH)?;
    let mut done = 0;
    let stopwatch = Stopwatch::start();
    while done < jobs {
        let rows = session.query(&claim, &[&limit])?;
        let Some(first) = rows.first() else { continue };
        let lease: i64 = first.try_get(0)?;
        let completed = session.execute(&complete, &[&lease])?;
        ensure!(completed == rows.len() as u64, "{completed} of {} rows went", rows.len());
        done += rows.len();
    }
    Ok(stopwatch.rate(done))
}

#[cfg(test)]
mod tests {
    use super::super::cluster::Cluster;
    use super::*;

    #[test]
    fn every_limit_can_be_taken_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let cluster = Cluster::start(folder.path(), &[]).unwrap();
        for limit in [
            |url: &str| insert_batches(url, 2 * BATCH, 2),
            |url: &str| insert_single(url, 20, 2),
            |url: &str| claim_and_complete(url, 2 * BATCH),
            |url: &str| whole_path(url, 2 * BATCH),
        ] {
            let database = cluster.database().unwrap();
            assert!(limit(&database.url).unwrap() > 0.0);
        }
        drop(cluster);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
