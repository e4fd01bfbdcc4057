//! Three servers on one database, and everything fails in turn while clients and workers talk to
//! all of them: servers are killed and frozen, their networks are cut and swallow everything,
//! PostgreSQL is killed, restarted, paused, made read-only. The checker judges the record of
//! everybody. `MAINSPRING_TEST=full` does more rounds.

use mainspring_testkit::blackbox::{Nodes, eventually};
use mainspring_testkit::checker::{self, Coverage};
use mainspring_testkit::history::History;
use mainspring_testkit::load::{Fleet, Stopwatch, Temper, config};
use mainspring_testkit::postgres::ClusterOptions;
use mainspring_testkit::rng::Rng;
use std::collections::BTreeMap;
use std::time::Duration;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    NodeKilled,
    /// Long enough that leases end meanwhile.
    NodeFrozen,
    NodeCut,
    NodeRefused,
    NodeSwallowed,
    NodeSlow,
    PostgresKilled,
    PostgresStopped,
    PostgresPaused,
    PostgresReadOnly,
    Disconnected,
}

/// How often each happens in a round.
const PLAN: [(Kind, usize); 11] = [
    (Kind::NodeKilled, 3),
    (Kind::NodeFrozen, 2),
    (Kind::NodeCut, 2),
    (Kind::NodeRefused, 1),
    (Kind::NodeSwallowed, 2),
    (Kind::NodeSlow, 1),
    (Kind::PostgresKilled, 2),
    (Kind::PostgresStopped, 2),
    (Kind::PostgresPaused, 2),
    (Kind::PostgresReadOnly, 2),
    (Kind::Disconnected, 3),
];

/// From "the database is back" to the first job handed out.
const RECOVERY_MAX: Duration = Duration::from_secs(3);
/// Acknowledged changes between two faults.
const ACKNOWLEDGED_MIN: u64 = 40;
/// How long a client or worker waits for one server before it asks another.
const PATIENCE: Duration = Duration::from_millis(1_200);

fn is_full() -> bool {
    std::env::var("MAINSPRING_TEST").is_ok_and(|mode| mode == "full")
}

/// What a round did.
#[derive(Debug, Default)]
struct Seen {
    faults: BTreeMap<Kind, usize>,
    /// From the database's return to the next grant, in milliseconds.
    recoveries_ms: Vec<(Kind, u128)>,
    /// Jobs handed out while one server was away.
    granted_beside: u64,
}

/// One round: its nodes, its load and its dice.
struct Round {
    nodes: Nodes,
    fleet: Fleet,
    rng: Rng,
    seen: Seen,
}

fn hold(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms)); // paced: the fault has to last
}

impl Round {
    /// Lets one thing go wrong and makes it good again.
    fn inflict(&mut self, kind: Kind) {
        let before = self.fleet.recorder.acknowledged();
        eventually("the load gets on", || {
            (self.fleet.recorder.acknowledged() - before >= ACKNOWLEDGED_MIN).then_some(())
        });
        self.fleet.recorder.fault(&format!("{kind:?}"));
        let nth = self.rng.below(self.nodes.servers.len() as u64) as usize;
        let before = self.fleet.recorder.granted();
        match kind {
            Kind::NodeKilled => {
                self.nodes.servers[nth].kill9();
                hold(self.rng.within(50, 800));
                self.nodes.servers[nth].restart();
            }
            Kind::NodeFrozen => {
                self.nodes.servers[nth].pause();
                hold(3_000);
                self.nodes.servers[nth].resume();
            }
            Kind::NodeCut => self.nodes.proxies[nth].cut(),
            Kind::NodeRefused => {
                self.nodes.proxies[nth].refuse();
                hold(1_500);
                self.nodes.proxies[nth].heal();
            }
            Kind::NodeSwallowed => {
                self.nodes.proxies[nth].swallow();
                hold(3_000);
                self.nodes.proxies[nth].heal();
            }
            Kind::NodeSlow => {
                self.nodes.proxies[nth].delay(Duration::from_millis(40));
                hold(1_500);
                self.nodes.proxies[nth].heal();
            }
            Kind::PostgresKilled
            | Kind::PostgresStopped
            | Kind::PostgresPaused
            | Kind::PostgresReadOnly
            | Kind::Disconnected => self.strike_the_database(kind),
        }
        if matches!(kind, Kind::NodeFrozen | Kind::NodeRefused | Kind::NodeSwallowed) {
            let beside = self.fleet.recorder.granted() - before;
            assert!(beside > 0, "nobody was served while one server was away ({kind:?})");
            self.seen.granted_beside += beside;
        }
        *self.seen.faults.entry(kind).or_default() += 1;
    }

    fn strike_the_database(&mut self, kind: Kind) {
        let cluster = &mut self.nodes.cluster;
        match kind {
            Kind::PostgresKilled => {
                cluster.kill9();
                hold(self.rng.within(100, 900));
                cluster.start_again();
            }
            Kind::PostgresStopped => {
                cluster.stop_immediate();
                hold(self.rng.within(100, 900));
                cluster.start_again();
            }
            Kind::PostgresPaused => {
                let is_long = !self.seen.faults.contains_key(&kind);
                cluster.pause();
                hold(if is_long { 6_500 } else { 2_500 });
                cluster.resume();
            }
            Kind::PostgresReadOnly => {
                cluster.set_read_only(true);
                hold(1_500);
                cluster.set_read_only(false);
            }
            Kind::Disconnected => cluster.disconnect_all(),
            Kind::NodeKilled
            | Kind::NodeFrozen
            | Kind::NodeCut
            | Kind::NodeRefused
            | Kind::NodeSwallowed
            | Kind::NodeSlow => panic!("{kind:?} is not the database's"),
        }
        let (back, before) = (Stopwatch::start(), self.fleet.recorder.granted());
        eventually("jobs are handed out again", || {
            (self.fleet.recorder.granted() > before).then_some(())
        });
        self.seen.recoveries_ms.push((kind, back.elapsed().as_millis()));
    }
}

/// Every server says the same.
fn agree(nodes: &Nodes) {
    const KEPT: [&str; 4] = [
        "mainspring_jobs{",
        "mainspring_jobs_submitted",
        "mainspring_attempts",
        "mainspring_retries",
    ];
    let said = |nth: usize| {
        let admin = nodes.admin(nth);
        let counters = admin.get("/api/v1/runtime").data()["counters"]["jobs"].clone();
        let metrics = admin.get("/metrics").text();
        let lines = metrics.lines().filter(|line| KEPT.iter().any(|name| line.starts_with(name)));
        (counters, lines.map(str::to_owned).collect::<Vec<_>>())
    };
    let first = said(0);
    assert!(first.1.len() >= 11, "{first:?}");
    for nth in 1..nodes.servers.len() {
        assert_eq!(said(nth), first, "the servers do not agree");
    }
}

/// Everything that happens in a round, in an order of its own.
fn plan(rng: &mut Rng) -> Vec<Kind> {
    let mut plan: Vec<Kind> =
        PLAN.iter().flat_map(|(kind, times)| std::iter::repeat_n(*kind, *times)).collect();
    for nth in (1..plan.len()).rev() {
        plan.swap(nth, rng.below(nth as u64 + 1) as usize);
    }
    plan
}

fn judge(history: &History, seed: u64) {
    let violations = checker::check(history);
    if violations.is_empty() {
        return;
    }
    let path = std::env::temp_dir().join(format!("mainspring-chaos-{seed}.history"));
    let text = mainspring_testkit::history::lines::write(history);
    std::fs::write(&path, text).expect("the record is kept");
    for violation in violations.iter().take(30) {
        println!("{violation}");
    }
    panic!("{} violations; the record is in {}", violations.len(), path.display());
}

fn round(seed: u64) {
    let started = Stopwatch::start();
    let binary = env!("CARGO_BIN_EXE_mainspring");
    let nodes = Nodes::start(binary, 3, &ClusterOptions::durable(), &config());
    let mut rng = Rng::new(seed, 77);
    let plan = plan(&mut rng);
    let servers: Vec<_> = nodes.servers.iter().collect();
    let fleet = Fleet::start_among(&servers, Some(PATIENCE), seed, Temper::Rough);
    let mut round = Round { nodes, fleet, rng, seen: Seen::default() };
    for kind in &plan {
        round.inflict(*kind);
    }
    let acknowledged = round.fleet.recorder.acknowledged();
    let granted = round.fleet.recorder.granted();
    let Round { nodes, fleet, seen, .. } = round;
    let history = fleet.finish();
    agree(&nodes);
    let mut coverage = Coverage::default();
    coverage.add(&history);
    let worst = seen.recoveries_ms.iter().max_by_key(|(_, took)| *took).copied();
    println!(
        "chaos, seed {seed}: {} faults {:?}, worst recovery {worst:?} ms of {}, {acknowledged} \
         acknowledged changes and {granted} grants under fire ({} while one server was away), {} \
         calls of which {} accepted and {} unknown, {} jobs, {} dead letters, {:?}",
        plan.len(),
        seen.faults,
        seen.recoveries_ms.len(),
        seen.granted_beside,
        coverage.operations,
        coverage.successes,
        coverage.unknown,
        history.dump.jobs.len(),
        history.dump.items.len(),
        started.elapsed(),
    );
    println!("chaos, seed {seed}: refusals {:?}", coverage.refusals);
    judge(&history, seed);
    assert!(plan.len() >= 20);
    for (kind, times) in PLAN {
        assert_eq!(seen.faults.get(&kind), Some(&times), "{kind:?} did not happen");
    }
    assert!(acknowledged >= plan.len() as u64 * ACKNOWLEDGED_MIN, "{acknowledged}");
    assert!(coverage.refusals.contains_key("LEASE_LOST"), "{:?}", coverage.refusals);
    assert!(!coverage.refusals.contains_key("INTERNAL_ERROR"), "{:?}", coverage.refusals);
    for (kind, took) in &seen.recoveries_ms {
        assert!(*took <= RECOVERY_MAX.as_millis(), "{kind:?}: back at work after {took} ms");
    }
}

/// Mistakes that a database can be taught, each with how long servers use it before the end.
const SABOTAGE: [(&str, &str); 3] = [
    (
        "nothing is compared before it is changed",
        "CREATE OR REPLACE FUNCTION mainspring.expect(got bigint, wanted bigint) RETURNS void \
         LANGUAGE plpgsql AS $$ BEGIN END $$",
    ),
    (
        "moves are forgotten now and then",
        "CREATE FUNCTION mainspring.forgets() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RETURN CASE WHEN random() < 0.03 THEN NULL ELSE NEW END; END $$; \
         CREATE TRIGGER forgets BEFORE INSERT ON mainspring.outbox \
         FOR EACH ROW EXECUTE FUNCTION mainspring.forgets()",
    ),
    (
        "a dead letter does not change although it says so",
        "CREATE FUNCTION mainspring.forgets() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
         RETURN CASE WHEN random() < 0.3 THEN OLD ELSE NEW END; END $$; \
         CREATE TRIGGER forgets BEFORE UPDATE ON mainspring.item \
         FOR EACH ROW EXECUTE FUNCTION mainspring.forgets()",
    ),
];

/// Acknowledged changes before a sabotaged run is judged.
const SABOTAGED_MIN: u64 = 1_500;

/// What is found wrong with a run on a database that makes a mistake.
fn found_out(statement: &str, seed: u64) -> Option<String> {
    let options = mainspring_testkit::blackbox::Store::Postgres
        .options(env!("CARGO_BIN_EXE_mainspring"))
        .config(&config());
    let servers: Vec<_> =
        (0..2).map(|_| mainspring_testkit::blackbox::Server::start(options.clone())).collect();
    servers[0].database().expect("has one").sql(statement);
    let fleet = Fleet::start_among(&servers.iter().collect::<Vec<_>>(), None, seed, Temper::Rough)
        .watched(&servers[0], seed);
    eventually("the load gets on", || {
        (fleet.recorder.acknowledged() >= SABOTAGED_MIN).then_some(())
    });
    // A run that does not even come to its end has been found out, too.
    let end = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| fleet.finish()));
    match end {
        Ok(history) => checker::check(&history).first().map(ToString::to_string),
        Err(_) => Some("jobs did not end".to_owned()),
    }
}

mod postgres {
    /// The checker sees what a database does wrong, and nothing if it does nothing wrong.
    #[test]
    fn a_database_that_does_not_keep_its_word_is_found_out() {
        assert_eq!(super::found_out("SELECT 1", 1), None);
        let count = if super::is_full() { super::SABOTAGE.len() } else { 2 };
        for (nth, (mistake, statement)) in super::SABOTAGE.into_iter().take(count).enumerate() {
            let found = super::found_out(statement, 2 + nth as u64);
            println!("planted in PostgreSQL: {mistake}: {found:?}");
            assert!(found.is_some(), "not found: {mistake}");
        }
    }

    /// Whatever fails, nothing acknowledged is lost, nothing is done twice, and all goes on.
    #[test]
    fn o05_o06_o15_d17_three_servers_survive_everything_that_can_fail() {
        for seed in if super::is_full() { 1..=5 } else { 1..=1 } {
            super::round(seed);
        }
    }
}
