//! The rows that have a yardstick beside us: P1 to P5 and P7. A round takes every figure once, in
//! turn, so that what else the machine does hits all of them alike.

use super::stand::{Node, Stand, Store, settle, warm_up};
use super::{endurance, raw, scale};
use crate::latency::{self, Latency};
use crate::report::{Row, Target as Goal};
use crate::stopwatch::Figure;
use crate::suite::{beside, row, side_by_side};
use crate::workload::{self as load, BATCH};
use anyhow::{Context, bail};

/// The rows of the suite, in order.
pub(crate) const NAMES: [&str; 9] = ["P1", "P2", "P3", "P4", "P5", "P6", "P7", "P8", "IDLE"];
/// What several nodes can do, and what a job costs them: not part of the suite.
pub(crate) const SCALE: &str = "SCALE";
/// The yardsticks alone.
pub(crate) const YARDSTICKS: [&str; 2] = ["RAW", "PEER"];

const PEER: &str = "graphile-worker";
const CONNECTIONS: usize = 16;

/// Runs one workload with its yardsticks.
pub(crate) fn run(name: &str, stand: &Stand) -> anyhow::Result<Vec<Row>> {
    match name {
        "P1" => submit_batches(stand),
        "P2" => drain_batches(stand),
        "P3" => submit_single(stand),
        "P4" => drain_single(stand),
        "P5" => latency(stand),
        "P6" => endurance::beside_many(stand),
        "P7" => two_nodes(stand),
        "P8" => endurance::held_open(stand),
        "IDLE" => endurance::idle(stand),
        SCALE => scale::nodes(stand),
        "RAW" => limits(stand),
        "PEER" => peer(stand),
        _ => bail!("there is no workload {name:?}"),
    }
    .with_context(|| format!("workload {name}"))
}

/// Jobs of the workloads that go one by one.
fn singles(stand: &Stand) -> usize {
    stand.plan.jobs / 5 / BATCH * BATCH
}

fn submit_batches(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let jobs = stand.plan.jobs;
    let [one, two, raw_one, raw_two, peer] = side_by_side(
        stand.plan.runs,
        [
            stand.ours(|target, _| load::submit_batches_over(target, jobs, None, 1)),
            stand.ours(|target, _| load::submit_batches_over(target, jobs, None, 2)),
            stand.raw(|url| raw::insert_batches(url, jobs, 1)),
            stand.raw(|url| raw::insert_batches(url, jobs, 2)),
            stand.theirs("W1", jobs),
        ],
    )?;
    let raw_one = beside("raw insert, 1 connection", raw_one);
    let raw_two = beside("raw insert, 2 connections", raw_two);
    let peer = beside(PEER, peer);
    let what_one = "submit, batches of 1000, 1 connection";
    let what_two = "submit, batches of 1000, 2 connections";
    Ok(vec![
        row("P1", what_one, one, raw_one.clone(), Goal::AtLeast(0.5)),
        row("P1", what_one, one, peer.clone(), Goal::AtLeast(2.5)),
        row("P1", what_two, two, raw_one, Goal::AtLeast(0.5)),
        row("P1", what_two, two, raw_two, Goal::Told),
        row("P1", what_two, two, peer, Goal::AtLeast(2.5)),
    ])
}

fn drain_batches(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let jobs = stand.plan.jobs;
    let [figure, raw, peer] = side_by_side(
        stand.plan.runs,
        [
            stand.ours(|target, url| {
                load::submit_batches(target, jobs, None)?;
                settle(url)?;
                load::drain_batches(target, jobs)
            }),
            stand.raw(|url| raw::claim_and_complete(url, jobs)),
            stand.theirs("W2", jobs),
        ],
    )?;
    let what = "drain, 1000 per request, report and fetch";
    Ok(vec![
        row("P2", what, figure, beside(PEER, peer), Goal::AtLeast(2.5)),
        row("P2", what, figure, beside("raw lease, 1 connection", raw), Goal::AtLeast(0.45)),
    ])
}

fn submit_single(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let jobs = singles(stand);
    let [figure, raw, peer] = side_by_side(
        stand.plan.runs,
        [
            stand.ours(|target, _| load::submit_single(target, jobs, CONNECTIONS)),
            stand.raw(|url| raw::insert_single(url, jobs / 2, 2)),
            stand.theirs("W1s", jobs / 2),
        ],
    )?;
    let what = "submit, one per request, 16 connections";
    let raw = beside("raw single inserts, 2 connections", raw);
    Ok(vec![
        row("P3", what, figure, beside(PEER, peer), Goal::AtLeast(10.0)),
        row("P3", what, figure, raw, Goal::AtLeast(3.5)),
    ])
}

fn drain_single(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let jobs = singles(stand);
    let [figure, peer] = side_by_side(
        stand.plan.runs,
        [
            stand.ours(|target, url| {
                load::submit_batches(target, jobs, None)?;
                settle(url)?;
                load::drain_single(target, jobs, CONNECTIONS)
            }),
            stand.theirs("W2s", jobs / 2 / BATCH * BATCH),
        ],
    )?;
    let what = "drain, one per request, 16 workers";
    let peer = beside("graphile-worker, no batching", peer);
    Ok(vec![row("P4", what, figure, peer, Goal::AtLeast(5.0))])
}

fn latency(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let span = stand.plan.span;
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for _ in 0..stand.plan.runs {
        ours.push(stand.on_fresh_node(|target, _| latency::measure(target, span))?);
        theirs.extend(their_latency(stand)?);
    }
    Ok(latency_rows("P5", "submit to handler at 200/s", &ours, &theirs))
}

fn their_latency(stand: &Stand) -> anyhow::Result<Option<Latency>> {
    let jobs = (stand.plan.span.as_secs_f64() * f64::from(latency::RATE)) as usize;
    let Some(peer) = stand.peer()? else { return Ok(None) };
    Ok(Some(peer.latency(&stand.database()?.url, jobs)?))
}

fn latency_rows(id: &'static str, what: &str, ours: &[Latency], theirs: &[Latency]) -> Vec<Row> {
    let mid =
        |all: &[Latency], pick: fn(&Latency) -> f64| Figure::of(all.iter().map(pick).collect());
    let rows = [
        ("p50", (|l| l.p50_ms) as fn(&Latency) -> f64, 0.6),
        ("p99", (|l| l.p99_ms) as fn(&Latency) -> f64, 0.8),
    ];
    let rows = rows.map(|(name, pick, bound)| {
        let peer = beside(PEER, mid(theirs, pick));
        let what = format!("{what}, {name}");
        Row { unit: "ms", ..row(id, what, mid(ours, pick), peer, Goal::AtMost(bound)) }
    });
    rows.to_vec()
}

/// One node takes jobs, another hands them out.
fn two_nodes(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let jobs = stand.plan.jobs;
    let one = || {
        let database = stand.database()?;
        let here = stand.node(&database.url)?;
        // Without a database there is nothing that two nodes could share.
        let other: Option<Node> = match stand.plan.store {
            Store::Postgres => Some(stand.node(&database.url)?),
            Store::Memory => None,
        };
        let there = other.as_ref().unwrap_or(&here);
        warm_up(&here.target, &there.target)?;
        load::submit_here_drain_there(&here.target, &there.target, jobs)
    };
    let [figure, raw] = side_by_side(
        stand.plan.runs,
        [Box::new(one), stand.raw(|url| raw::whole_path(url, jobs))],
    )?;
    let what = "submit to one node while another is drained";
    let raw = beside("raw lease, whole path", raw);
    Ok(vec![row("P7", what, figure, raw, Goal::AtLeast(0.45))])
}

/// R1 to R4 alone.
fn limits(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let jobs = stand.plan.jobs;
    let few = singles(stand) / 2;
    let figures = side_by_side(
        stand.plan.runs,
        [
            stand.raw(|url| raw::insert_batches(url, jobs, 1)),
            stand.raw(|url| raw::insert_batches(url, jobs, 2)),
            stand.raw(|url| raw::claim_and_complete(url, jobs)),
            stand.raw(|url| raw::insert_single(url, few, 2)),
            stand.raw(|url| raw::whole_path(url, jobs)),
        ],
    )?;
    let names = [
        ("R1", "raw insert, batches of 1000, 1 connection"),
        ("R1", "raw insert, batches of 1000, 2 connections"),
        ("R2", "raw lease claim and complete, 1 connection"),
        ("R3", "raw single-row inserts, 2 connections"),
        ("R4", "raw lease, one connection inserts, one claims"),
    ];
    let rows = names.into_iter().zip(figures);
    Ok(rows.map(|((id, what), figure)| row(id, what, figure, None, Goal::Told)).collect())
}

/// W1 to W3 of graphile-worker alone.
fn peer(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let jobs = stand.plan.jobs;
    let few = singles(stand) / 2 / BATCH * BATCH;
    let figures = side_by_side(
        stand.plan.runs,
        [
            stand.theirs("W1", jobs),
            stand.theirs("W1s", few),
            stand.theirs("W2", jobs),
            stand.theirs("W2s", few),
        ],
    )?;
    let names = [
        ("W1", "graphile-worker, add_jobs of 1000"),
        ("W1s", "graphile-worker, 16 concurrent single adds"),
        ("W2", "graphile-worker, drain, localQueue 500, batch complete, 24 concurrent"),
        ("W2s", "graphile-worker, drain, no batching, 24 concurrent"),
    ];
    let rows = names.into_iter().zip(figures);
    let mut rows: Vec<Row> =
        rows.map(|((id, what), figure)| row(id, what, figure, None, Goal::Told)).collect();
    let mut latencies = Vec::new();
    for _ in 0..stand.plan.runs {
        latencies.extend(their_latency(stand)?);
    }
    let told = latency_rows("W3", "graphile-worker, submit to handler", &latencies, &[]);
    rows.extend(told.into_iter().map(|row| Row { target: Goal::Told, ..row }));
    Ok(rows)
}
