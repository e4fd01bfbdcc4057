//! The rows that compare us with ourselves: beside many jobs (P6), for a long time under a
//! transaction that is held open (P8), and with nothing to do.

use super::cluster::Cluster;
use super::load;
use super::session::Session;
use super::stand::{Node, Stand, settle};
use crate::report::{Row, Target as Goal};
use crate::stopwatch::{Stopwatch, median};
use crate::suite::row;
use crate::workload::{self, TOMORROW_MS, Target};
use indicatif::HumanCount;
use std::time::Duration;

/// Into how many stretches the load of P8 is cut.
const STRETCHES: u32 = 10;
/// The load before the transaction is opened.
const WARM_UP: Duration = Duration::from_secs(5);
/// Nodes that idle, and workers that wait at each.
const NODES: usize = 10;
const WORKERS: usize = 10;
/// What a node may still have to do after its start.
const SETTLING: Duration = Duration::from_secs(10);
/// Statements a second that ten idle nodes may send.
const IDLE_MAX: f64 = 50.0;
/// The statements sent most often.
const MOST_SENT: &str = "
    select left(regexp_replace(query, '\\s+', ' ', 'g'), 90), calls from pg_stat_statements
    order by calls desc limit 8";
/// The tables with the most dead rows.
const MOST_DEAD: &str = "
    select relname::text, n_dead_tup from pg_stat_user_tables order by n_dead_tup desc limit 5";
/// Bytes of the database; reading it takes the snapshot that P8 holds.
const SIZE: &str = "select pg_database_size(current_database())";
/// Jobs are ended in portions of this size, so that few wait at a time.
const PORTION: usize = 100_000;

/// Submit and drain beside jobs that are due tomorrow, and beside jobs that have ended. An empty
/// server and a full one take turns, so that what else the machine does hits both alike.
pub(crate) fn beside_many(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let plan = &stand.plan;
    let (mut submit, mut drain) = (vec![], vec![]);
    let (mut submit_empty, mut drain_empty) = (vec![], vec![]);
    let (mut drain_finished, mut drain_beside_finished) = (vec![], vec![]);
    let fill = stand.on_fresh_node(|empty, empty_url| {
        stand.on_fresh_node(|full, full_url| {
            let pass = |target, url, submit: &mut Vec<f64>, drain: &mut Vec<f64>| {
                settle(url)?;
                submit.push(workload::submit_batches(target, plan.jobs, None)?);
                settle(url)?;
                drain.push(workload::drain_batches(target, plan.jobs)?);
                anyhow::Ok(())
            };
            let fill = workload::submit_batches(full, plan.waiting, Some(TOMORROW_MS))?;
            for _ in 0..plan.runs {
                pass(empty, empty_url, &mut submit_empty, &mut drain_empty)?;
                pass(full, full_url, &mut submit, &mut drain)?;
            }
            if let Some(finished) = plan.finished {
                finish(full, finished)?;
                for _ in 0..plan.runs {
                    pass(empty, empty_url, &mut vec![], &mut drain_finished)?;
                    pass(full, full_url, &mut vec![], &mut drain_beside_finished)?;
                }
            }
            Ok(fill)
        })
    })?;
    let waiting = HumanCount(plan.waiting as u64);
    let mut rows = vec![
        row("P6", format!("fill with {waiting} jobs for tomorrow"), fill, None, Goal::Told),
        row(
            "P6",
            format!("submit beside {waiting} waiting jobs"),
            median(submit),
            Some(("empty".into(), median(submit_empty))),
            Goal::AtLeast(0.95),
        ),
        row(
            "P6",
            format!("drain beside {waiting} waiting jobs"),
            median(drain),
            Some(("empty".into(), median(drain_empty))),
            Goal::AtLeast(0.95),
        ),
    ];
    if let Some(finished) = plan.finished {
        let finished = HumanCount(finished as u64);
        let what = format!("drain beside {waiting} waiting and {finished} finished jobs");
        let empty = Some(("empty".to_owned(), median(drain_finished)));
        rows.push(row("P6", what, median(drain_beside_finished), empty, Goal::AtLeast(0.85)));
    }
    Ok(rows)
}

/// Makes jobs that have ended, through the front door: a row put into the tables by hand could be
/// one that the server would never have written.
fn finish(target: &Target, count: usize) -> anyhow::Result<()> {
    eprintln!("  ending {} jobs first", HumanCount(count as u64));
    for _ in 0..count / PORTION {
        workload::submit_batches(target, PORTION, None)?;
        workload::drain_batches(target, PORTION)?;
    }
    Ok(())
}

/// Submit and drain while somebody holds a snapshot, so that no dead row can be taken away.
pub(crate) fn held_open(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let span = stand.plan.sustained;
    let rates = stand.on_fresh_node(|target, url| {
        load::sustained(target, WARM_UP, 1)?;
        let mut holder = Session::open(url)?;
        holder.run("begin isolation level repeatable read")?;
        let before = holder.number(SIZE)?;
        let rates = load::sustained(target, span, STRETCHES)?;
        let grown = (holder.number(SIZE)? - before).max(0) / 1_000_000;
        eprintln!("  the database has grown by {} MB", HumanCount(grown.unsigned_abs()));
        holder.run("rollback")?;
        for (table, dead) in Session::open(url)?.told(MOST_DEAD)? {
            eprintln!("  {} dead rows in {table}", HumanCount(dead.unsigned_abs()));
        }
        Ok(rates)
    })?;
    let told: Vec<String> =
        rates.iter().map(|rate| HumanCount(rate.round() as u64).to_string()).collect();
    eprintln!("  stretches of {:?}: {}", span / STRETCHES, told.join(", "));
    let first = rates.first().copied().unwrap_or(f64::NAN);
    let last = rates.last().copied().unwrap_or(f64::NAN);
    let what = format!("submit and drain for {span:?}, a transaction held open, last tenth");
    let beside = Some(("first tenth".to_owned(), first));
    Ok(vec![row("P8", what, last, beside, Goal::AtLeast(0.9))])
}

/// What ten nodes with a hundred waiting workers and no job ask of the database.
pub(crate) fn idle(stand: &Stand) -> anyhow::Result<Vec<Row>> {
    let (cluster, counts_statements) = counting_cluster(stand)?;
    let database = cluster.database()?;
    let mut session = Session::open(&database.url)?;
    if counts_statements {
        session.run("create extension pg_stat_statements")?;
    }
    let (count, unit) = match counts_statements {
        true => ("select coalesce(sum(calls), 0)::bigint from pg_stat_statements", "statements/s"),
        false => (
            "select sum(xact_commit + xact_rollback)::bigint from pg_stat_database",
            "transactions/s",
        ),
    };
    let nodes: anyhow::Result<Vec<Node>> = (0..NODES).map(|_| stand.node(&database.url)).collect();
    let nodes = nodes?;
    let targets: Vec<Target> = nodes.iter().map(|node| node.target.clone()).collect();
    let rate = load::while_waiting(&targets, WORKERS, || {
        std::thread::sleep(SETTLING);
        if counts_statements {
            session.text("select pg_stat_statements_reset()::text")?;
        }
        let before = session.number(count)?;
        let stopwatch = Stopwatch::start();
        std::thread::sleep(stand.plan.idle);
        // The first count is among the second.
        let sent = (session.number(count)? - before - 1).max(0);
        let rate = stopwatch.rate(usize::try_from(sent)?);
        if counts_statements {
            for (statement, calls) in session.told(MOST_SENT)? {
                eprintln!("  {calls} x {statement}");
            }
        }
        Ok(rate)
    })?;
    let what = format!("idle: {NODES} nodes, {} waiting workers", NODES * WORKERS);
    let goal = Some(("goal".to_owned(), IDLE_MAX));
    Ok(vec![Row { unit, ..row("IDLE", what, rate, goal, Goal::AtMost(1.0)) }])
}

/// A cluster that counts statements, or the plain one where the extension is not installed.
fn counting_cluster(stand: &Stand) -> anyhow::Result<(Cluster, bool)> {
    // Ten nodes may want more connections than the hundred of the default.
    let room = "max_connections=400";
    let counting = ["shared_preload_libraries=pg_stat_statements", room];
    match Cluster::start(&stand.plan.directory, &counting) {
        Ok(cluster) => Ok((cluster, true)),
        Err(_) => Ok((Cluster::start(&stand.plan.directory, &[room])?, false)),
    }
}
