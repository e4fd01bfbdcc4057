//! A store driven by hand, with the kernel deciding, and a way in between what a commit has read
//! and what it writes: the batch itself runs there.

use mainspring_kernel::command::{Claim, Submit};
use mainspring_kernel::dispatch::Wanted;
use mainspring_kernel::{
    Command, DlqId, Job, JobId, Receipt, StateName, Timestamp, UserId, WorkerId,
};
use mainspring_store::conformance::{Outcome, act, submit};
use mainspring_store::needs_of;
use mainspring_store::{Desk, Needs, PullNeeds, Store};
use mainspring_store_postgres::doctor::{self, Severity};
use mainspring_store_postgres::{PostgresConfig, PostgresStore};
use mainspring_testkit::postgres::{Database, shared};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) struct Hand {
    pub(crate) store: PostgresStore,
    pub(crate) database: Arc<Database>,
    pub(crate) clock: Arc<AtomicI64>,
}

/// Ids of all hands of this process differ.
static FRESH: AtomicU64 = AtomicU64::new(1);

pub(crate) fn user(name: &str) -> UserId {
    UserId::stored(name.into())
}

/// Runs something to its end from within a batch.
pub(crate) fn meanwhile<T>(what: impl Future<Output = T>) -> T {
    tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(what))
}

/// The present, by which partitions are made.
const PRESENT: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

impl Hand {
    pub(crate) async fn new() -> Self {
        let database = Arc::new(Database::create(shared()));
        let present = database.sql(PRESENT).parse().expect("a number");
        Hand::on(database, Arc::new(AtomicI64::new(present))).await
    }

    /// Another server on a database.
    pub(crate) async fn on(database: Arc<Database>, clock: Arc<AtomicI64>) -> Self {
        let url = database.url.clone();
        Hand::through(&url, database, clock).await
    }

    pub(crate) async fn through(url: &str, database: Arc<Database>, clock: Arc<AtomicI64>) -> Self {
        let told = clock.clone();
        let config = PostgresConfig {
            is_notified: false,
            allows_unsafe: true,
            are_types_strict: false,
            // Nobody looks by itself: what happens, happens by hand.
            poll_every: Duration::from_secs(3600),
            ..PostgresConfig::standard(url, Arc::new(move || at(&told)))
        };
        let node = u128::from(FRESH.fetch_add(1, Ordering::Relaxed));
        let store = PostgresStore::open(config, node).await.expect("it opens");
        Hand { store, database, clock }
    }

    /// Two servers on one database.
    pub(crate) async fn pair() -> (Self, Self) {
        let here = Hand::new().await;
        let there = Hand::on(here.database.clone(), here.clock.clone()).await;
        (here, there)
    }

    pub(crate) fn now(&self) -> Timestamp {
        at(&self.clock)
    }

    pub(crate) fn pass(&self, span: Duration) {
        self.clock.fetch_add(i64::try_from(span.as_micros()).expect("short"), Ordering::Relaxed);
    }

    pub(crate) async fn run(&mut self, commands: &[Command]) -> Vec<Outcome> {
        self.run_and(commands, |_| ()).await.0
    }

    /// Runs commands as one batch; `then` is called after each time they were decided, before
    /// anything is written. The outcomes, and how often they were decided.
    pub(crate) async fn run_and(
        &mut self,
        commands: &[Command],
        mut then: impl FnMut(u32) + Send,
    ) -> (Vec<Outcome>, u32) {
        let now = self.now();
        let (mut outcomes, mut decisions) = (Vec::new(), 0);
        let mut work = |desk: &mut dyn Desk| {
            decisions += 1;
            outcomes = commands.iter().map(|it| act(it, desk, now, fresh())).collect();
            then(decisions);
        };
        let committed = self.store.commit(needs_of(commands, now), &mut work).await;
        committed.expect("it commits");
        (outcomes, decisions)
    }

    /// The same, if the store may refuse.
    pub(crate) async fn try_run(
        &mut self,
        commands: &[Command],
    ) -> Result<Vec<Outcome>, mainspring_store::Error> {
        let now = self.now();
        let mut outcomes = Vec::new();
        let mut work = |desk: &mut dyn Desk| {
            outcomes = commands.iter().map(|it| act(it, desk, now, fresh())).collect();
        };
        self.store.commit(needs_of(commands, now), &mut work).await?;
        Ok(outcomes)
    }

    pub(crate) async fn submit(&mut self, wish: Submit) -> JobId {
        match self.run(&[submit(wish)]).await.remove(0) {
            Ok(Receipt::Submitted { job }) => job,
            other => panic!("answered with {other:?}"),
        }
    }

    pub(crate) async fn pull(&mut self, limit: usize) -> Vec<Job> {
        self.pull_and(limit, |_| ()).await.0
    }

    pub(crate) async fn pull_and(
        &mut self,
        limit: usize,
        mut then: impl FnMut(u32) + Send,
    ) -> (Vec<Job>, u32) {
        let now = self.now();
        let (mut granted, mut decisions) = (Vec::new(), 0);
        let mut work = |desk: &mut dyn Desk| {
            decisions += 1;
            granted.clear();
            let wanted = Wanted { tenant: None, types: None, queues: None };
            for job in desk.take_ready(&wanted, limit, now) {
                let worker = WorkerId::stored("w".into());
                let claim = Command::Claim(Claim { job, worker, lease_ms: 60_000 });
                if act(&claim, desk, now, fresh()).is_ok() {
                    granted.extend(desk.job(job).cloned());
                }
            }
            then(decisions);
        };
        let needs = Needs { pulls: vec![PullNeeds::any(limit)], now, ..Needs::default() };
        self.store.commit(needs, &mut work).await.expect("it commits");
        (granted, decisions)
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.found(id).await.expect("it is kept")
    }

    pub(crate) async fn found(&self, id: JobId) -> Option<Job> {
        self.store.job(id).await.expect("it reads").map(|found| found.job)
    }

    /// The states a job went through.
    pub(crate) async fn path(&self, id: JobId) -> Vec<StateName> {
        let found = self.store.job(id).await.expect("it reads").expect("it is kept");
        assert_eq!(found.history.last().map(|it| it.to), Some(found.job.state.name()));
        found.history.iter().map(|step| step.to).collect()
    }

    pub(crate) async fn item_state(&self, id: DlqId) -> &'static str {
        let item = self.store.item(id).await.expect("it reads").expect("it is kept");
        item.state.as_str()
    }

    /// The doctor finds every job in one place, and every number as counted.
    pub(crate) async fn assert_sound(&self) {
        let (told, url) = (self.now(), &self.database.url);
        let config = PostgresConfig::standard(url, Arc::new(move || told));
        let report = doctor::examine(&config).await.expect("it can be examined");
        let bad = report.findings.iter().filter(|it| it.severity == Severity::Failure);
        let bad: Vec<_> = bad.filter(|it| it.code != "durability_off").collect();
        assert!(bad.is_empty(), "{bad:?}");
        let unseen: Vec<_> =
            report.notes.iter().filter(|note| note.contains("not looked at")).collect();
        assert!(unseen.is_empty(), "{unseen:?}");
    }
}

fn at(clock: &AtomicI64) -> Timestamp {
    Timestamp(clock.load(Ordering::Relaxed))
}

fn fresh() -> u128 {
    u128::from(FRESH.fetch_add(1, Ordering::Relaxed))
}
