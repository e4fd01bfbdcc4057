//! An engine with everything it needs, and short words for what a test does to it.

use mainspring_engine::{Clock, Config, Engine, Inside, SystemClock, SystemEntropy};
use mainspring_kernel::command::Submit;
use mainspring_kernel::{
    Command, Job, JobId, JobType, Receipt, State, StateName, TenantId, UserId,
};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use mainspring_store_postgres::{PostgresConfig, PostgresStore};
use mainspring_testkit::blackbox::Store;
use mainspring_testkit::postgres::Database;
use mainspring_worker::{Error, Summary, Worker, WorkerBuilder};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct House {
    pub(crate) engine: Engine,
    /// Goes when the house does.
    _database: Option<Database>,
}

/// Runs a test in a house on that store, which is closed properly in the end.
pub(crate) fn on(store: Store, test: impl AsyncFnOnce(&House)) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(async {
        let house = House::open(store).await;
        test(&house).await;
        if !house.engine.stopping().is_cancelled() {
            house.engine.shutdown().await.unwrap();
        }
    });
}

impl House {
    async fn open(store: Store) -> Self {
        let clock = Arc::new(SystemClock::new());
        let database = store.database();
        let store: Arc<dyn mainspring_engine::store::Store> = match &database {
            None => Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(1))),
            Some(database) => {
                let now = clock.clone();
                let config = PostgresConfig {
                    allows_unsafe: true,
                    are_types_strict: false,
                    ..PostgresConfig::standard(&database.url, Arc::new(move || now.now()))
                };
                Arc::new(PostgresStore::open(config, 1).await.unwrap())
            }
        };
        let config = Config { are_types_strict: false, ..Config::standard() };
        let entropy = Arc::new(SystemEntropy::default());
        let engine = Engine::start(store, clock, entropy, config).await.unwrap();
        House { engine, _database: database }
    }

    /// A worker of this house.
    pub(crate) fn worker(&self) -> WorkerBuilder {
        let employer = Inside::new(self.engine.clone());
        Worker::builder(employer).id("inside").drain_grace(Duration::from_secs(5))
    }

    /// Submits jobs of type `work` with these payloads.
    pub(crate) async fn submit(&self, payloads: impl IntoIterator<Item = String>) -> Vec<JobId> {
        let wishes = payloads.into_iter().map(|payload| wish("acme", &payload)).collect();
        let (outcomes, error) = self.engine.submit_many(wishes).await.unwrap();
        assert!(error.is_none(), "{error:?}");
        let id = |outcome| match outcome {
            Ok(Receipt::Submitted { job }) => job,
            other => panic!("{other:?}"),
        };
        outcomes.into_iter().map(id).collect()
    }

    pub(crate) async fn submit_one(&self, payload: &str) -> JobId {
        self.submit([payload.to_owned()]).await.remove(0)
    }

    pub(crate) async fn cancel(&self, job: JobId) {
        let by = UserId::new("ada").unwrap();
        let cancel = Command::Cancel { job, by, reason: None };
        self.engine.execute_one(cancel).await.unwrap().unwrap();
    }

    pub(crate) async fn job(&self, id: JobId) -> Job {
        self.engine.job(id).await.unwrap().unwrap().job
    }

    /// The job once it has ended.
    pub(crate) async fn ended(&self, id: JobId) -> Job {
        let job = self.engine.job_ended(id, PATIENCE).await.unwrap().unwrap().job;
        assert!(job.state.name().is_terminal(), "{id} is still {}", job.state.name());
        job
    }

    /// The job once `is` says yes to it.
    pub(crate) async fn once(&self, id: JobId, is: impl Fn(&Job) -> bool) -> Job {
        let end = tokio::time::Instant::now() + PATIENCE;
        loop {
            let job = self.job(id).await;
            if is(&job) {
                return job;
            }
            assert!(tokio::time::Instant::now() < end, "it never came to that: {job:?}");
            tokio::time::sleep(Duration::from_millis(20)).await; // paced: looked at again
        }
    }
}

pub(crate) fn wish(tenant: &str, payload: &str) -> Submit {
    let (user, job_type) = (UserId::new("ada").unwrap(), JobType::new("work").unwrap());
    let plain = Submit::plain(TenantId::new(tenant).unwrap(), user, job_type);
    Submit { payload: payload.into(), ..plain }
}

/// What a job that succeeded gave back.
pub(crate) fn result(job: &Job) -> serde_json::Value {
    let State::Succeeded { result, .. } = &job.state else { panic!("{job:?}") };
    result.as_deref().map_or(serde_json::Value::Null, |text| serde_json::from_str(text).unwrap())
}

/// The code of the last failure of a job that failed.
pub(crate) fn code(job: &Job) -> String {
    assert_eq!(job.state.name(), StateName::Failed, "{job:?}");
    job.last_failure.as_ref().unwrap().failure.code.to_string()
}

/// A worker that runs.
pub(crate) struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<Summary, Error>>,
}

pub(crate) fn run(builder: WorkerBuilder) -> Running {
    let stop = CancellationToken::new();
    Running { task: tokio::spawn(builder.build().run(stop.clone())), stop }
}

impl Running {
    pub(crate) async fn stopped(self) -> Summary {
        self.stop.cancel();
        self.ended().await.unwrap()
    }

    /// Its end, without being told to.
    pub(crate) async fn ended(self) -> Result<Summary, Error> {
        tokio::time::timeout(PATIENCE, self.task).await.expect("it ends").unwrap()
    }
}
