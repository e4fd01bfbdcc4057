//! Every workload against a fresh server, three times, with the peers in between, so that what else
//! the machine does hits all of them alike. The figure is the median.

use super::beanstalk::{self, Beanstalkd};
use super::job::{Requests, number};
use super::latency::{self, Latency};
use super::report::{Row, Target as Goal};
use super::server::{Server, free_address};
use super::stopwatch::{Figure, median};
use super::workload::{self as load, TOMORROW_MS, Target};
use anyhow::{Context, bail};
use indicatif::HumanCount;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How much is done.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Runs per workload.
    pub(crate) runs: usize,
    /// Jobs of the batch workloads; the single ones do a fifth.
    pub(crate) jobs: usize,
    /// Jobs that wait in E6 and E8.
    pub(crate) waiting: usize,
    /// How long latency is measured.
    pub(crate) span: Duration,
    /// Where servers keep their state.
    pub(crate) directory: PathBuf,
}

/// The workloads by name.
pub(crate) const NAMES: [&str; 8] = ["E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8"];

/// Runs one workload with its peers.
pub(crate) fn run(name: &str, plan: &Plan) -> anyhow::Result<Vec<Row>> {
    match name {
        "E1" => submit_batches(plan),
        "E2" => submit_single(plan),
        "E3" => drain_batches(plan),
        "E4" => drain_single(plan),
        "E5" => latency(plan),
        "E6" => beside_a_million(plan),
        "E7" => submit_while_draining(plan),
        "E8" => recovery(plan).map(|row| vec![row]),
        _ => bail!("there is no workload {name:?}"),
    }
    .with_context(|| format!("workload {name}"))
}

/// A server on an empty directory, both gone at the end.
fn on_fresh_server<T>(
    plan: &Plan,
    work: impl FnOnce(&Server, &Target) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let folder = tempfile::tempdir_in(&plan.directory)?;
    let server = Server::start(folder.path())?;
    let target = Target { address: server.address(), requests: server.requests() };
    work(&server, &target)
}

/// One way to take a figure.
pub(crate) type Measure<'a> = Box<dyn FnMut() -> anyhow::Result<f64> + 'a>;

/// The figures of some rounds; every round takes each figure once, in turn.
pub(crate) fn side_by_side<const N: usize>(
    runs: usize,
    mut measures: [Measure<'_>; N],
) -> anyhow::Result<[Figure; N]> {
    let mut figures: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
    for _ in 0..runs {
        for (measure, taken) in measures.iter_mut().zip(&mut figures) {
            taken.push(measure()?);
        }
    }
    Ok(figures.map(Figure::of))
}

/// A figure of beanstalkd in memory; not a number where it is not installed.
fn in_memory<'a>(work: impl Fn(&Beanstalkd) -> anyhow::Result<f64> + 'a) -> Measure<'a> {
    Box::new(move || match beanstalk::is_present() {
        true => work(&Beanstalkd::start(None)?),
        false => Ok(f64::NAN),
    })
}

/// A figure of beanstalkd with a log that is synced at every command.
fn synced<'a>(
    plan: &'a Plan,
    work: impl Fn(&Beanstalkd) -> anyhow::Result<f64> + 'a,
) -> Measure<'a> {
    Box::new(move || {
        if !beanstalk::is_present() {
            return Ok(f64::NAN);
        }
        let folder = tempfile::tempdir_in(&plan.directory)?;
        work(&Beanstalkd::start(Some(folder.path()))?)
    })
}

/// A figure of ours, on a fresh server.
fn ours<'a>(plan: &'a Plan, work: impl Fn(&Target) -> anyhow::Result<f64> + 'a) -> Measure<'a> {
    Box::new(move || on_fresh_server(plan, |_, target| work(target)))
}

const IN_MEMORY: &str = "beanstalkd in memory";
const SYNCED: &str = "beanstalkd -f0";
const BARE: &str = "bare handler";
const LIMIT: &str = "limit program";

pub(crate) fn beside(name: &str, figure: impl Into<Figure>) -> Option<(String, f64)> {
    let Figure { median, .. } = figure.into();
    median.is_finite().then(|| (name.to_owned(), median))
}

pub(crate) fn row(
    id: &'static str,
    what: impl Into<String>,
    figure: impl Into<Figure>,
    beside: Option<(String, f64)>,
    target: Goal,
) -> Row {
    let figure = figure.into();
    let (figure, spread) = (figure.median, figure.spread());
    Row { id, what: what.into(), figure, spread, unit: "jobs/s", beside, target }
}

fn submit_batches(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let [figure, memory, durable] = side_by_side(
        plan.runs,
        [
            ours(plan, |target| load::submit_batches(target, plan.jobs, None)),
            in_memory(|peer| peer.put_pipelined(plan.jobs)),
            synced(plan, |peer| peer.put_single(plan.jobs / 20, 16)),
        ],
    )?;
    let what = "submit, batches of 1000, 2 connections";
    Ok(vec![
        row("E1", what, figure, beside(IN_MEMORY, memory), Goal::AtLeast(4.0)),
        row("E1", what, figure, beside(SYNCED, durable), Goal::AtLeast(50.0)),
    ])
}

/// What is compared with the limit program: a row's name, connections, and how near we want to be.
const SINGLE: [(&str, usize, Goal); 4] = [
    ("E2a", 1, Goal::AtLeast(0.9)),
    ("E2", 4, Goal::Told),
    ("E2", 16, Goal::AtLeast(0.95)),
    ("E2", 64, Goal::AtLeast(0.75)),
];

fn submit_single(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (id, connections, goal) in SINGLE {
        // One connection waits for every sync: a tenth of the jobs takes as long.
        let jobs = if connections < 16 { plan.jobs / 20 } else { plan.jobs / 5 };
        let [figure, limit, bare] = side_by_side(
            plan.runs,
            [
                ours(plan, |target| load::submit_single(target, jobs, connections)),
                Box::new(|| Rival::turn(plan)?.submit_single(jobs, connections)),
                Box::new(|| Rival::echo()?.submit_single(jobs, connections)),
            ],
        )?;
        let s = if connections == 1 { "" } else { "s" };
        let what = format!("submit, one per request, {connections} connection{s}");
        rows.push(row(id, what.clone(), figure, beside(LIMIT, limit), goal));
        rows.push(row(id, what.clone(), figure, beside(BARE, bare), Goal::Told));
        if connections == 16 {
            let put = || synced(plan, |peer| peer.put_single(jobs / 4, 16));
            let [durable] = side_by_side(plan.runs, [put()])?;
            rows.push(row(id, what, figure, beside(SYNCED, durable), Goal::AtLeast(6.0)));
        }
    }
    Ok(rows)
}

fn drain_batches(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let [figure, memory] = side_by_side(
        plan.runs,
        [
            ours(plan, |target| {
                load::submit_batches(target, plan.jobs, None)?;
                load::drain_batches(target, plan.jobs)
            }),
            in_memory(|peer| {
                peer.put_pipelined(plan.jobs)?;
                peer.drain_pipelined(plan.jobs)
            }),
        ],
    )?;
    let what = "drain, 1000 per request, report and fetch";
    Ok(vec![row("E3", what, figure, beside(IN_MEMORY, memory), Goal::AtLeast(4.0))])
}

fn drain_single(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let jobs = plan.jobs / 5 / load::BATCH * load::BATCH;
    let [figure, limit, durable, bare] = side_by_side(
        plan.runs,
        [
            ours(plan, |target| {
                load::submit_batches(target, jobs, None)?;
                load::drain_single(target, jobs, 16)
            }),
            Box::new(|| Rival::turn(plan)?.submit_single(jobs, 16)),
            synced(plan, |peer| {
                peer.put_single(jobs / 8, 16)?;
                peer.drain_single(jobs / 16, 16)
            }),
            Box::new(|| Rival::echo()?.submit_single(jobs, 16)),
        ],
    )?;
    let what = "drain, one per request, 16 workers";
    Ok(vec![
        row("E4", what, figure, beside(LIMIT, limit), Goal::AtLeast(0.9)),
        row("E4", what, figure, beside(SYNCED, durable), Goal::AtLeast(6.0)),
        row("E4", what, figure, beside(BARE, bare), Goal::Told),
    ])
}

fn latency(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for _ in 0..plan.runs {
        ours.push(on_fresh_server(plan, |_, target| latency::measure(target, plan.span))?);
        if beanstalk::is_present() {
            let folder = tempfile::tempdir_in(&plan.directory)?;
            theirs.push(Beanstalkd::start(Some(folder.path()))?.latency(plan.span)?);
        }
    }
    let mid =
        |all: &[Latency], pick: fn(&Latency) -> f64| Figure::of(all.iter().map(pick).collect());
    let rows = [
        ("p50", (|l| l.p50_ms) as fn(&Latency) -> f64, 0.9),
        ("p99", (|l| l.p99_ms) as fn(&Latency) -> f64, 0.8),
    ];
    let rows = rows.map(|(name, pick, bound)| Row {
        unit: "ms",
        ..row(
            "E5",
            format!("submit to handler at 200/s, {name}"),
            mid(&ours, pick),
            beside(SYNCED, mid(&theirs, pick)),
            Goal::AtMost(bound),
        )
    });
    Ok(rows.to_vec())
}

fn beside_a_million(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let (mut fill, mut submit, mut drain) = (vec![], vec![], vec![]);
    let (mut submit_empty, mut drain_empty) = (vec![], vec![]);
    for _ in 0..plan.runs {
        on_fresh_server(plan, |_, target| {
            submit_empty.push(load::submit_batches(target, plan.jobs, None)?);
            drain_empty.push(load::drain_batches(target, plan.jobs)?);
            fill.push(load::submit_batches(target, plan.waiting, Some(TOMORROW_MS))?);
            submit.push(load::submit_batches(target, plan.jobs, None)?);
            drain.push(load::drain_batches(target, plan.jobs)?);
            Ok(())
        })?;
    }
    let waiting = HumanCount(plan.waiting as u64);
    let own = |figures| Some(("empty".to_owned(), median(figures)));
    Ok(vec![
        row(
            "E6",
            format!("fill with {waiting} jobs for tomorrow"),
            Figure::of(fill),
            Some(("goal".into(), 150_000.0)),
            Goal::AtLeast(1.0),
        ),
        row(
            "E6",
            format!("submit beside {waiting} waiting jobs"),
            Figure::of(submit),
            own(submit_empty),
            Goal::AtLeast(0.95),
        ),
        row(
            "E6",
            format!("drain beside {waiting} waiting jobs"),
            Figure::of(drain),
            own(drain_empty),
            Goal::AtLeast(0.95),
        ),
    ])
}

fn submit_while_draining(plan: &Plan) -> anyhow::Result<Vec<Row>> {
    let [both, alone] = side_by_side(
        plan.runs,
        [
            ours(plan, |target| load::submit_while_draining(target, plan.jobs)),
            ours(plan, |target| load::submit_batches(target, plan.jobs, None)),
        ],
    )?;
    let alone = beside("submit alone", alone);
    Ok(vec![row("E7", "submit while draining", both, alone, Goal::AtLeast(0.45))])
}

fn recovery(plan: &Plan) -> anyhow::Result<Row> {
    let one = || {
        let folder = tempfile::tempdir_in(&plan.directory)?;
        let server = Server::start(folder.path())?;
        let target = Target { address: server.address(), requests: server.requests() };
        load::submit_batches(&target, plan.waiting, Some(TOMORROW_MS))?;
        server.kill()?;
        let server = Server::start(folder.path())?;
        let queued = number(&server.runtime()?, "queued").unwrap_or(0);
        let accepted = (plan.waiting / load::BATCH * load::BATCH) as u64;
        if queued != accepted {
            bail!("{accepted} jobs were acknowledged, {queued} were there after kill -9");
        }
        Ok(server.started_in.as_secs_f64())
    };
    let [seconds] = side_by_side(plan.runs, [Box::new(one)])?;
    let waiting = HumanCount(plan.waiting as u64);
    let what = format!("start with {waiting} jobs after kill -9, nothing lost");
    let beside = Some(("goal".to_owned(), 1.0));
    Ok(Row { unit: "s", ..row("E8", what, seconds, beside, Goal::AtMost(1.0)) })
}

/// Bytes of RAM per waiting job.
pub(crate) fn ram(plan: &Plan) -> anyhow::Result<Row> {
    let bytes = on_fresh_server(plan, |server, target| {
        let before = server.resident_bytes()?;
        load::submit_batches(target, plan.waiting, Some(TOMORROW_MS))?;
        let after = server.resident_bytes()?;
        Ok(after.saturating_sub(before) as f64 / plan.waiting as f64)
    })?;
    let waiting = HumanCount(plan.waiting as u64);
    let what = format!("RAM per waiting job, {waiting} jobs of 200 bytes");
    let beside = Some(("goal".to_owned(), 600.0));
    Ok(Row { unit: "bytes", ..row("RAM", what, bytes, beside, Goal::AtMost(1.0)) })
}

/// The bare handler or the limit program, in a process of its own.
struct Rival {
    child: Child,
    target: Target,
    /// Where it keeps its file; removed when it has ended.
    _folder: Option<TempDir>,
}

impl Rival {
    fn echo() -> anyhow::Result<Self> {
        Self::start("bench-echo", None)
    }

    fn turn(plan: &Plan) -> anyhow::Result<Self> {
        Self::start("bench-turn", Some(tempfile::tempdir_in(&plan.directory)?))
    }

    fn start(command: &str, folder: Option<TempDir>) -> anyhow::Result<Self> {
        let address = free_address()?;
        let child = Command::new(std::env::current_exe()?)
            .args([command, &address.to_string()])
            .args(folder.as_ref().map(TempDir::path))
            .stdin(Stdio::null())
            .spawn()?;
        let requests = Requests::new(address, "none");
        let rival = Rival { child, target: Target { address, requests }, _folder: folder };
        for _ in 0..1_000 {
            if std::net::TcpStream::connect(address).is_ok() {
                return Ok(rival);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        bail!("{command} did not come up")
    }

    fn submit_single(&self, jobs: usize, connections: usize) -> anyhow::Result<f64> {
        load::submit_single(&self.target, jobs, connections)
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The directory servers are started in.
pub(crate) fn directory(given: Option<&Path>) -> PathBuf {
    given.map_or_else(std::env::temp_dir, Path::to_owned)
}
