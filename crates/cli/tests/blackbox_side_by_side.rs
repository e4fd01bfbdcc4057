//! An older server and this one on one database while clients and workers talk to both: the new one
//! migrates beside the old one, both go on, the old one is started again on what the new one made,
//! and in the end it is replaced. Nothing is lost, and no server that runs refuses anything.
//!
//! `cargo xtask test --full` builds the older server from the history (`cargo xtask older`) and
//! names it in `MAINSPRING_OLDER`. Without that, this version takes its part: then it is a rolling
//! restart that is tried.

use mainspring_kernel::StateName;
use mainspring_testkit::blackbox::{Options, Server, Store, eventually};
use mainspring_testkit::checker::{self, Coverage};
use mainspring_testkit::history::JobDump;
use mainspring_testkit::load::{Fleet, Stopwatch, Temper, config};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
/// Acknowledged changes in each part of a run.
const ACKNOWLEDGED_MIN: u64 = 400;
/// Jobs that one pull of a worker may get.
const GRANTS_MAX: u64 = 6;
/// How long a client or worker waits for one server before it asks another.
const PATIENCE: Duration = Duration::from_secs(10);

fn is_full() -> bool {
    std::env::var("MAINSPRING_TEST").is_ok_and(|mode| mode == "full")
}

/// The older server's binary, or this one.
fn older() -> &'static str {
    let named = std::env::var("MAINSPRING_OLDER").ok().filter(|path| !path.is_empty());
    named.map_or(BINARY, |path| Box::leak(path.into_boxed_str()))
}

/// Two servers that share a database, and everybody who talks to them.
struct Run {
    servers: [Server; 2],
    fleet: Fleet,
}

impl Run {
    fn start(seed: u64, temper: Temper) -> Self {
        let options: Options = Store::Postgres.options(older()).config(&config());
        let servers = [Server::start(options.clone()), Server::start(options)];
        let among = [&servers[0], &servers[1]];
        let fleet = Fleet::start_among(&among, Some(PATIENCE), seed, temper);
        let fleet = fleet.watched(&servers[0], seed);
        Run { servers, fleet }
    }

    /// What runs takes everything: some changes are acknowledged, and every call is answered.
    fn goes_on(&self, when: &str) {
        let recorder = &self.fleet.recorder;
        let gets_on = |by: u64| {
            let before = recorder.acknowledged();
            eventually("the load gets on", || {
                (recorder.acknowledged() - before >= by).then_some(())
            });
        };
        // What a server that stopped had taken is told of first.
        gets_on(40);
        let unanswered = recorder.unanswered();
        gets_on(ACKNOWLEDGED_MIN);
        assert_eq!(recorder.unanswered() - unanswered, 0, "calls that failed while {when}");
    }

    /// Stops one server as an operator would and starts it as another version, beside the other.
    fn replace(&mut self, nth: usize, binary: &'static str) {
        let status = self.servers[nth].terminate();
        assert!(status.success(), "{status}");
        self.goes_on("one server is away");
        self.servers[nth].restart_with(|options| options.binary = binary);
    }

    /// Both hand out, take and end jobs.
    fn both_work(&self) {
        let totals = ["submitted", "started", "succeeded"];
        for server in &self.servers {
            for total in totals {
                let name = format!("mainspring_work_{total}_total");
                eventually("a server does its part", || {
                    let text = server.admin().get("/metrics").text();
                    let lines = text.lines().filter(|line| line.starts_with(&name));
                    let counts =
                        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
                    (counts.sum::<f64>() > 0.0).then_some(())
                });
            }
        }
    }
}

fn attempts(job: &JobDump) -> usize {
    job.events.iter().filter(|event| event.to == StateName::Running).count()
}

fn version(server: &Server) -> String {
    let database = server.database().expect("it has one");
    database.sql("SELECT max(version) FROM mainspring.migration")
}

fn round(seed: u64, temper: Temper) {
    let started = Stopwatch::start();
    let mut run = Run::start(seed, temper);
    let before = version(&run.servers[0]);
    run.goes_on("both are old");
    // The first new one takes the steps while the old one has all the load.
    run.replace(1, BINARY);
    let after = version(&run.servers[0]);
    run.goes_on("an old and a new one share the database");
    run.both_work();
    // An old one may be started again on what the new one made, also after a power cut.
    run.servers[0].kill9();
    run.servers[0].restart();
    run.goes_on("the old one is back");
    run.both_work();
    run.replace(0, BINARY);
    run.goes_on("both are new");
    run.both_work();
    let Run { servers, fleet } = run;
    let history = fleet.finish();
    let mut coverage = Coverage::default();
    coverage.add(&history);
    let kind = if older() == BINARY { "this version instead of an older one" } else { "older" };
    println!(
        "{temper:?}, {kind}: schema {before} to {after}, {} calls, {} accepted, {} unknown (servers \
         that were stopped), refusals {:?}, {} jobs, {:?}",
        coverage.operations,
        coverage.successes,
        coverage.unknown,
        coverage.refusals,
        history.dump.jobs.len(),
        started.elapsed(),
    );
    let violations = checker::check(&history);
    violations.iter().take(30).for_each(|violation| println!("{violation}"));
    assert!(violations.is_empty(), "{} violations", violations.len());
    for code in coverage.refusals.keys() {
        let is_of_the_server = code.starts_with("STORE_") || code.starts_with("INTERNAL");
        assert!(!is_of_the_server, "{code}: {:?}", coverage.refusals);
    }
    // Workers who do all they get, within their leases, are asked twice only for what a server that
    // was stopped may have handed out without being heard.
    let again = history.dump.jobs.iter().filter(|job| attempts(job) > 1).count() as u64;
    let is_explained = again <= coverage.unknown * GRANTS_MAX;
    assert!(temper == Temper::Rough || is_explained, "{again} jobs had a second try");
    for server in &servers {
        let log = server.log();
        let bad = log.lines().find(|line| line.contains("\"ERROR\"") || line.contains(" ERROR "));
        assert_eq!(bad, None, "a server logged an error");
    }
}

mod postgres {
    use mainspring_testkit::load::Temper;

    #[test]
    fn an_older_and_this_version_work_side_by_side() {
        super::round(1, Temper::Polite);
        super::round(2, Temper::Rough);
        if super::is_full() {
            (3..=6).for_each(|seed| super::round(seed, Temper::Rough));
        }
    }
}
