//! What several nodes on one database can do, and what a job costs each side: processor time of
//! PostgreSQL, of the nodes and of whoever drives them, bytes of log and of data, connections.
//! What is submitted to one node is drained at the next.

use super::session::Session;
use super::stand::{Node, Stand, settle, warm_up};
use crate::cpu_time;
use crate::report::{Row, Target as Goal};
use crate::stopwatch::{Figure, Stopwatch};
use crate::suite::{beside, row};
use crate::workload::{BATCH, submit_here_drain_there, together};
use std::time::Duration;

/// What it is, its unit, and how a pass tells it.
type Cost = (&'static str, &'static str, fn(&Pass) -> f64);

/// How many nodes there are.
const NODES: [usize; 3] = [1, 2, 4];
/// Bytes of log so far.
const LOG: &str = "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint";
/// Bytes of the database.
const SIZE: &str = "select pg_database_size(current_database())";
/// Connections of our nodes.
const CONNECTIONS: &str = "
    select count(*) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()";

/// What one pass was and took.
struct Pass {
    rate: f64,
    costs: Costs,
}

/// Of one job, from submission to its end.
struct Costs {
    database_us: f64,
    nodes_us: f64,
    client_us: f64,
    log_bytes: f64,
    data_bytes: f64,
    connections: f64,
}

/// Submit and drain at one, two and four nodes: each node takes its part of both.
pub(crate) fn nodes(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    let mut alone = None;
    for count in NODES {
        let passes: anyhow::Result<Vec<Pass>> =
            (0..stand.plan.runs).map(|_| pass(stand, count)).collect();
        let passes = passes?;
        let of = |pick: fn(&Pass) -> f64| Figure::of(passes.iter().map(pick).collect());
        let nodes = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        let rate = of(|pass| pass.rate);
        let first = alone.and_then(|alone: Figure| beside("1 node", alone));
        rows.push(row("SCALE", format!("{nodes}, submit and drain"), rate, first, Goal::Told));
        alone.get_or_insert(rate);
        let costs: [Cost; 6] = [
            ("processor time of PostgreSQL for a job", "us", |pass| pass.costs.database_us),
            ("processor time of the nodes for a job", "us", |pass| pass.costs.nodes_us),
            ("processor time of the client for a job", "us", |pass| pass.costs.client_us),
            ("log for a job", "bytes", |pass| pass.costs.log_bytes),
            ("data of a job that has ended", "bytes", |pass| pass.costs.data_bytes),
            ("connections of all nodes", "", |pass| pass.costs.connections),
        ];
        rows.extend(costs.map(|(what, unit, pick)| {
            let what = format!("{nodes}, {what}");
            Row { unit, ..row("SCALE", what, of(pick), None, Goal::Told) }
        }));
    }
    Ok(rows)
}

fn pass(stand: &Stand, count: usize) -> anyhow::Result<Pass> {
    let database = stand.database()?;
    let nodes: anyhow::Result<Vec<Node>> = (0..count).map(|_| stand.node(&database.url)).collect();
    let nodes = nodes?;
    for node in &nodes {
        warm_up(&node.target, &node.target)?;
    }
    settle(&database.url)?;
    let each = stand.plan.jobs / count / BATCH * BATCH;
    let jobs = (each * count) as f64;
    let mut session = Session::open(&database.url)?;
    let times = |nodes: &[Node]| -> anyhow::Result<[Duration; 3]> {
        let ours: anyhow::Result<Duration> = nodes.iter().map(Node::processor_time).sum();
        Ok([stand.database_time()?, ours?, cpu_time::taken(std::process::id())?])
    };
    let (log, data) = (session.number(LOG)?, session.number(SIZE)?);
    let before = times(&nodes)?;
    let stopwatch = Stopwatch::start();
    // What one node submits another drains, as it is behind a balancer.
    together(count, |nth| {
        let (here, there) = (&nodes[nth], &nodes[(nth + 1) % count]);
        submit_here_drain_there(&here.target, &there.target, each).map(|_| ())
    })?;
    let rate = stopwatch.rate(each * count);
    let after = times(&nodes)?;
    let connections = session.number(CONNECTIONS)? as f64;
    let grown = (session.number(LOG)? - log, session.number(SIZE)? - data);
    let micros = |nth: usize| (after[nth] - before[nth]).as_secs_f64() * 1e6 / jobs;
    let costs = Costs {
        database_us: micros(0),
        nodes_us: micros(1),
        client_us: micros(2),
        log_bytes: grown.0 as f64 / jobs,
        data_bytes: grown.1 as f64 / jobs,
        connections,
    };
    Ok(Pass { rate, costs })
}
