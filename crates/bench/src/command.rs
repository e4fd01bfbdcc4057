//! `mainspring bench`: measures this binary against a server it starts itself, and the peers beside
//! it in the same run. What was asked for is read here; how rows are shown is up to the caller, who
//! also measures servers that run already, as far as [`Args::running`] says.

use crate::peers::table as peers;
use crate::postgres::stand::{Plan, Stand, Store};
use crate::postgres::suite as postgres;
use crate::report::{self, Row};
use crate::{chart, echo as bare, limits, neighbours, schedules, suite, turn as limit};
use anyhow::bail;
use jiff::SignedDuration;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The workloads of a short pass: what most people ask first.
const SHORT: [&str; 3] = ["E1", "E3", "E5"];
/// How long latency is measured in a hurry.
const QUICK_SPAN: Duration = Duration::from_secs(3);
/// The load average above which a machine has something else to do.
const LOAD_MAX: f64 = 0.7;

/// What to measure.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without anything a short pass over E1, E3 and E5, on a server that is started for it and goes again.

With --url URL a server of yours that runs already is measured, from where you are: submit, drain, and
latency from submit to handler, by jobs of the type mainspring-bench in a queue of their own. It needs a
token that may submit and work. Only --jobs, --span and --quick go along.

Workloads:
  E1   submit in batches of 1000           E5   latency from submit to handler
  E2   submit one per request              E6   submit and drain beside a million waiting jobs
  E3   drain 1000 per request              E7   submit while draining
  E4   drain one per request               E8   start after kill -9
  ram  memory per waiting job

With --store postgres, beside the limits of PostgreSQL and graphile-worker:
  P1   submit in batches of 1000           P5   latency from submit to handler
  P2   drain 1000 per request              P6   submit and drain beside a million waiting jobs
  P3   submit one per request              P7   submit to one node, drain another
  P4   drain one per request               P8   a long load with a transaction held open
  idle statements of ten idle nodes        raw, peer   the limits or graphile-worker alone
  scale  one, two and four nodes, and what a job costs

On either store, what a tenant feels of a hostile one (N1 to N12, or --neighbours for all):
  N1   control characters                  N7   connections that never read
  N2   a key held by a transaction         N8   slow anonymous bodies
  N3   large effects                       N9   large payloads
  N4   a thousand waiting submissions      N10  ever new names
  N5   backdated jobs                      N11  lists with filters
  N6   all the streams                     N12  streams that nobody reads

On either store, what schedules and triggers cost:
  S1   ten thousand due at once            S3   ten thousand triggers on files
  S2   a hundred thousand far ahead

Other systems beside both of our stores, by the same loads (or --peers for all):
  W1   submit in batches of 1000           W2   drain in batches
  W1s  submit one per request              W2s  drain one by one
  W3   latency from submit to handler

On either store, what limits are for (or --scenario):
  L1   noisy-tenant: one tenant floods, nine quiet ones are measured
  L2   retry-storm: one type fails over and over, another goes on

Every figure is the median of some runs. Compare ratios within one run, never figures of two days.")]
pub struct Args {
    /// Workloads, such as E1 or ram
    #[arg(value_name = "WORKLOAD")]
    only: Vec<String>,
    /// The same as a list, such as P1,P3
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    rows: Vec<String>,
    /// All workloads of the store: E1 to E8, or P1 to idle
    #[arg(long)]
    suite: bool,
    /// What limits are for: L1 and L2 by name
    #[arg(long, value_enum, value_name = "NAME")]
    scenario: Option<Scenario>,
    /// The neighbours of every hostile client: N1 to N12
    #[arg(long)]
    neighbours: bool,
    /// beanstalkd, graphile-worker, pg-boss, BullMQ and Restate beside us: W1 to W3
    #[arg(long)]
    peers: bool,
    /// What servers keep their jobs in; postgres alone means all of its workloads
    #[arg(long, value_enum, default_value = "memory", value_name = "STORE")]
    store: Store,
    /// One run, few jobs: shows that everything works, not how fast it is
    #[arg(long, conflicts_with = "full")]
    quick: bool,
    /// Ten minutes of P8 instead of three, and P6 beside five million finished jobs too
    #[arg(long)]
    full: bool,
    /// Leave out what npm would install
    #[arg(long)]
    no_peer: bool,
    /// Install peers here and keep them for the next time
    #[arg(long, value_name = "DIR")]
    peer_dir: Option<PathBuf>,
    /// Put the table into this file, between its markers
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "docs/benchmarks.md")]
    write: Option<PathBuf>,
    /// Runs per workload
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..))]
    runs: u16,
    /// Jobs of the batch workloads; the single ones do a fifth [default: 200000; P: 100000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(10_000..))]
    jobs: Option<u32>,
    /// Jobs that wait in E6, E8, P6 and ram
    #[arg(long, default_value_t = 1_000_000,
        value_parser = clap::value_parser!(u32).range(1_000..))]
    waiting: u32,
    /// Jobs that have ended in P6, which is measured beside them too [default with --full: 5000000]
    #[arg(long, value_parser = clap::value_parser!(u32).range(100_000..))]
    finished: Option<u32>,
    /// How long latency is measured
    #[arg(long, value_parser = read_span, default_value = "10s", value_name = "SPAN")]
    span: Duration,
    /// Where servers keep their state; put it on the disk you mean [default: the temporary folder]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

/// How much is done to a server that runs already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Running {
    /// Jobs that are submitted in batches; a fifth of them one by one.
    pub jobs: usize,
    /// How long latency is measured.
    pub span: Duration,
}

impl Args {
    /// What to do to a server that runs already.
    ///
    /// # Errors
    /// [`Usage`] if something was asked for that needs servers of the benchmark's own.
    pub fn running(&self) -> anyhow::Result<Running> {
        let is_own = !self.is_bare()
            || self.full
            || self.no_peer
            || self.finished.is_some()
            || self.peer_dir.is_some()
            || self.write.is_some()
            || self.dir.is_some();
        if is_own {
            return Err(usage("only --jobs, --span and --quick go along with --url"));
        }
        let usual = if self.quick { 2_000 } else { 20_000 };
        let jobs = self.jobs.map_or(usual, |jobs| jobs as usize);
        let span = if self.quick { self.span.min(QUICK_SPAN) } else { self.span };
        Ok(Running { jobs, span })
    }

    /// Whether nothing was named.
    fn is_bare(&self) -> bool {
        let is_named = !self.only.is_empty() || !self.rows.is_empty() || self.suite;
        let is_named = is_named || self.neighbours || self.peers;
        !is_named && self.scenario.is_none() && self.store == Store::Memory
    }

    /// Whether it is to be over soon.
    fn is_quick(&self) -> bool {
        self.quick || self.is_bare()
    }
}

/// Where the bare handler listens.
#[derive(Debug, clap::Args)]
pub struct EchoArgs {
    address: SocketAddr,
}

/// Where the limit program listens, and where it keeps its file.
#[derive(Debug, clap::Args)]
pub struct TurnArgs {
    address: SocketAddr,
    folder: PathBuf,
}

/// A mistake in what was asked for.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(String);

fn usage(text: impl Into<String>) -> anyhow::Error {
    anyhow::Error::new(Usage(text.into()))
}

/// Shows rows as they were taken.
pub type Show<'a> = &'a dyn Fn(&[Row]);

/// Serves the bare handler until the process ends.
///
/// # Errors
/// If nobody can listen there.
pub async fn echo(args: EchoArgs) -> anyhow::Result<()> {
    bare::serve(args.address).await
}

/// Serves the limit program until the process ends.
///
/// # Errors
/// If nobody can listen there, or its file cannot be written.
pub fn turn(args: &TurnArgs) -> anyhow::Result<()> {
    limit::serve(args.address, &args.folder)
}

/// Measures and shows.
///
/// # Errors
/// [`Usage`] for what cannot be measured; whatever stops a measurement.
pub fn run(args: &Args, show: Show<'_>) -> anyhow::Result<()> {
    let names = names(args)?;
    match names.first().map(|name| Suite::of(name)) {
        Some(Some(Suite::Postgres)) => run_postgres(&names, args, show),
        Some(Some(Suite::Neighbours)) => run_neighbours(&names, args, show),
        Some(Some(Suite::Schedules)) => run_schedules(&names, args, show),
        Some(Some(Suite::Limits)) => run_limits(&names, args, show),
        Some(Some(Suite::Peers)) => run_peers(&names, args, show),
        Some(Some(Suite::Journal) | None) | None => run_journal(&names, args, show),
    }
}

/// Which workloads can be measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suite {
    Journal,
    Postgres,
    Neighbours,
    Schedules,
    Limits,
    Peers,
}

/// L1 and L2 by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Scenario {
    NoisyTenant,
    RetryStorm,
}

impl Suite {
    fn of(name: &str) -> Option<Self> {
        let is_journal = name == "RAM" || suite::NAMES.contains(&name);
        let is_postgres = postgres::NAMES.contains(&name)
            || postgres::YARDSTICKS.contains(&name)
            || name == postgres::SCALE;
        let is_neighbour = neighbours::names().any(|known| known == name);
        match (is_journal, is_postgres, is_neighbour) {
            (true, _, _) => Some(Suite::Journal),
            (_, true, _) => Some(Suite::Postgres),
            (_, _, true) => Some(Suite::Neighbours),
            (false, false, false) if limits::NAMES.contains(&name) => Some(Suite::Limits),
            (false, false, false) if peers::NAMES.contains(&name) => Some(Suite::Peers),
            (false, false, false) => schedules::NAMES.contains(&name).then_some(Suite::Schedules),
        }
    }
}

fn run_neighbours(names: &[String], args: &Args, show: Show<'_>) -> anyhow::Result<()> {
    let directory = suite::directory(args.dir.as_deref());
    let plan =
        neighbours::Plan { store: args.store, runs: runs(args), span: span(args), directory };
    warn_if_busy();
    let take = |name: &str| Ok(neighbours::run(name, &plan)?.into_iter().collect());
    let rows = taken(names, &plan.directory, take, show)?;
    if let Some(path) = &args.write {
        let section = match args.store {
            Store::Memory => &report::NEIGHBOURS,
            Store::Postgres => &report::NEIGHBOURS_POSTGRES,
        };
        report::write(path, section, &[], &rows)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

fn run_limits(names: &[String], args: &Args, show: Show<'_>) -> anyhow::Result<()> {
    let plan = schedules::Plan {
        store: args.store,
        runs: runs(args),
        due: 0,
        ahead: Duration::ZERO,
        far: 0,
        idle: span(args),
        directory: suite::directory(args.dir.as_deref()),
    };
    let flood = if args.is_quick() { 10_000 } else { 100_000 };
    warn_if_busy();
    let rows = taken(names, &plan.directory, |name| limits::run(name, &plan, flood), show)?;
    if let Some(path) = &args.write {
        let section = match args.store {
            Store::Memory => &report::LIMITS,
            Store::Postgres => &report::LIMITS_POSTGRES,
        };
        report::write(path, section, &[], &rows)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

fn run_schedules(names: &[String], args: &Args, show: Show<'_>) -> anyhow::Result<()> {
    let (due, ahead, far) =
        if args.is_quick() { (1_000, 15, 2_000) } else { (10_000, 60, 100_000) };
    let plan = schedules::Plan {
        store: args.store,
        runs: runs(args),
        due,
        ahead: Duration::from_secs(ahead),
        far,
        idle: span(args),
        directory: suite::directory(args.dir.as_deref()),
    };
    warn_if_busy();
    let rows = taken(names, &plan.directory, |name| schedules::run(name, &plan), show)?;
    if let Some(path) = &args.write {
        let section = match args.store {
            Store::Memory => &report::SCHEDULES,
            Store::Postgres => &report::SCHEDULES_POSTGRES,
        };
        report::write(path, section, &[], &rows)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

/// Takes row after row and shows them. A suite of half an hour does not stop at the first row that
/// cannot be had; it fails in the end.
fn taken(
    names: &[String],
    directory: &Path,
    take: impl Fn(&str) -> anyhow::Result<Vec<Row>>,
    show: Show<'_>,
) -> anyhow::Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut failed = Vec::new();
    for name in names {
        eprintln!("measuring {name} in {}", directory.display());
        match take(name) {
            Ok(taken) => rows.extend(taken),
            Err(error) => {
                eprintln!("{name} failed: {error:#}");
                failed.push(name.as_str());
            }
        }
    }
    show(&rows);
    if !failed.is_empty() {
        bail!("these workloads failed: {}", failed.join(", "));
    }
    Ok(rows)
}

fn run_journal(names: &[String], args: &Args, show: Show<'_>) -> anyhow::Result<()> {
    let plan = suite::Plan {
        runs: runs(args),
        jobs: jobs(args, 200_000),
        waiting: waiting(args),
        span: span(args),
        directory: suite::directory(args.dir.as_deref()),
    };
    if args.is_bare() {
        eprintln!(
            "a short pass, on servers of its own; --suite for everything, --url URL for a server of \
             yours, --help for the list"
        );
    }
    let mut rows: Vec<Row> = Vec::new();
    for (nth, name) in names.iter().enumerate() {
        let (nth, all) = (nth + 1, names.len());
        eprintln!("measuring {name} ({nth} of {all}) in {}", plan.directory.display());
        match name.as_str() {
            "RAM" => rows.push(suite::ram(&plan)?),
            _ => rows.extend(suite::run(name, &plan)?),
        }
    }
    show(&rows);
    if let Some(path) = &args.write {
        report::write(path, &report::JOURNAL, &[], &rows)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

fn run_postgres(names: &[String], args: &Args, show: Show<'_>) -> anyhow::Result<()> {
    if args.write.is_some() && args.store != Store::Postgres {
        return Err(usage("only figures of --store postgres are written down"));
    }
    let stand = stand(args)?;
    let has_ours = names.iter().any(|name| postgres::NAMES.contains(&name.as_str()));
    if args.store != Store::Postgres && has_ours {
        eprintln!("our figures are those of the memory store: they try the drivers, no more");
    }
    warn_if_busy();
    let rows = taken(names, &stand.plan.directory, |name| postgres::run(name, &stand), show)?;
    if let Some(path) = &args.write {
        report::write(path, &report::POSTGRES, &stand.notes()?, &rows)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

fn run_peers(names: &[String], args: &Args, show: Show<'_>) -> anyhow::Result<()> {
    let stand = stand(args)?;
    let table = peers::Table::new(&stand)?;
    warn_if_busy();
    let rows = taken(names, &stand.plan.directory, |name| table.run(name), show)?;
    if let Some(path) = &args.write {
        report::write(path, &report::PEERS, &stand.notes()?, &rows)?;
        chart::write(path, &rows)?;
        eprintln!("written to {}", path.display());
    }
    Ok(())
}

/// One cluster for all rows.
fn stand(args: &Args) -> anyhow::Result<Stand> {
    let seconds = |quick, usual, full| {
        Duration::from_secs(if args.is_quick() {
            quick
        } else {
            [usual, full][usize::from(args.full)]
        })
    };
    Stand::new(Plan {
        store: args.store,
        runs: runs(args),
        jobs: jobs(args, 100_000),
        waiting: waiting(args),
        finished: args.finished.or(args.full.then_some(5_000_000)).map(|count| count as usize),
        span: span(args),
        sustained: seconds(30, 180, 600),
        idle: seconds(10, 30, 60),
        directory: suite::directory(args.dir.as_deref()),
        has_peer: !args.no_peer,
        peer_folder: args.peer_dir.clone(),
    })
}

/// Others who use the processor or the disk are in every figure.
fn warn_if_busy() {
    let told = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = told.split_whitespace().next().and_then(|load| load.parse::<f64>().ok());
    if let Some(load) = load.filter(|load| *load > LOAD_MAX) {
        eprintln!("the machine is busy (load {load}): figures will be too low and ratios uneven");
    }
}

fn runs(args: &Args) -> usize {
    if args.is_quick() { 1 } else { usize::from(args.runs) }
}

fn jobs(args: &Args, usual: u32) -> usize {
    args.jobs.unwrap_or(if args.is_quick() { 20_000 } else { usual }) as usize
}

fn waiting(args: &Args) -> usize {
    if args.is_quick() { args.waiting.min(100_000) as usize } else { args.waiting as usize }
}

fn span(args: &Args) -> Duration {
    if args.is_quick() { args.span.min(QUICK_SPAN) } else { args.span }
}

/// A length of time as people write it, such as `10s`.
fn read_span(text: &str) -> Result<Duration, String> {
    let told =
        |_: jiff::Error| format!("{text:?} is not a length of time; write it like 10s or 1m30s");
    let span: SignedDuration = text.parse().map_err(told)?;
    Duration::try_from(span).map_err(told)
}

fn names(args: &Args) -> anyhow::Result<Vec<String>> {
    let named = args.only.iter().chain(&args.rows);
    let mut names: Vec<String> = named.map(|name| name.trim().to_uppercase()).collect();
    names.extend(args.scenario.map(|scenario| match scenario {
        Scenario::NoisyTenant => "L1".to_owned(),
        Scenario::RetryStorm => "L2".to_owned(),
    }));
    if args.neighbours {
        names.extend(neighbours::names().map(ToOwned::to_owned));
    }
    if args.peers {
        names.extend(peers::NAMES.map(ToOwned::to_owned));
    }
    match args.store {
        Store::Memory if args.suite => names.extend(suite::NAMES.map(ToOwned::to_owned)),
        Store::Postgres if args.suite || names.is_empty() => {
            names.extend(postgres::NAMES.map(ToOwned::to_owned));
        }
        Store::Memory if args.is_bare() => names.extend(SHORT.map(ToOwned::to_owned)),
        Store::Memory | Store::Postgres => {}
    }
    if let Some(name) = names.iter().find(|name| Suite::of(name).is_none()) {
        return Err(usage(format!("there is no workload {name:?}; see --help for the list")));
    }
    let first = Suite::of(&names[0]);
    if names.iter().any(|name| Suite::of(name) != first) {
        return Err(usage("workloads of different suites cannot be mixed"));
    }
    if first == Some(Suite::Journal) && args.store == Store::Postgres {
        return Err(usage("E1 to E8 and ram measure the memory store; see --help for the list"));
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn named(line: &str) -> Result<Vec<String>, String> {
        let line =
            Line::try_parse_from(line.split_whitespace()).map_err(|told| told.to_string())?;
        names(&line.args).map_err(|told| told.to_string())
    }

    #[test]
    fn each_store_has_its_workloads() {
        assert_eq!(named("bench e1 ram").unwrap(), ["E1", "RAM"]);
        assert_eq!(named("bench --suite").unwrap(), suite::NAMES);
        assert_eq!(named("bench --store postgres").unwrap(), postgres::NAMES);
        assert_eq!(named("bench --store postgres --rows p1,P3").unwrap(), ["P1", "P3"]);
        assert_eq!(named("bench --store memory --rows p8").unwrap(), ["P8"]);
        assert_eq!(named("bench raw").unwrap(), ["RAW"]);
        assert_eq!(named("bench n1 N12").unwrap(), ["N1", "N12"]);
        assert_eq!(named("bench --store postgres s1 S3").unwrap(), ["S1", "S3"]);
        assert_eq!(named("bench --neighbours --store postgres").unwrap().len(), 12);
        assert_eq!(named("bench w1s W3").unwrap(), ["W1S", "W3"]);
        assert_eq!(named("bench --peers").unwrap(), peers::NAMES);
        assert_eq!(named("bench --scenario noisy-tenant").unwrap(), ["L1"]);
        assert_eq!(named("bench --store postgres --scenario retry-storm").unwrap(), ["L2"]);
        assert_eq!(named("bench").unwrap(), SHORT);
        assert_eq!(named("bench --jobs 10000").unwrap(), SHORT);
        for refused in [
            "bench P9",
            "bench E1 P1",
            "bench N1 E1",
            "bench S1 N1",
            "bench S4",
            "bench L3",
            "bench L1 S1",
            "bench N13",
            "bench --store postgres E1",
            "bench --quick --full raw",
        ] {
            assert!(named(refused).is_err(), "{refused}");
        }
    }
    #[test]
    fn a_server_that_runs_is_measured_by_few_jobs_unless_told() {
        let running = |line: &str| {
            let line = Line::try_parse_from(line.split_whitespace()).expect("it parses");
            line.args.running().map(|plan| (plan.jobs, plan.span.as_secs()))
        };
        assert_eq!(running("bench").unwrap(), (20_000, 10));
        assert_eq!(running("bench --quick").unwrap(), (2_000, 3));
        assert_eq!(running("bench --jobs 50000 --span 1m").unwrap(), (50_000, 60));
        for refused in ["E1", "--suite", "--store postgres", "--write", "--neighbours", "--full"] {
            assert!(running(&format!("bench {refused}")).is_err(), "{refused}");
        }
    }
}
