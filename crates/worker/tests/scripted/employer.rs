//! An employer that does as a script says, and tells the test what it was asked.

use mainspring_worker::{
    About, Answer, Beat, Employer, Error, Failure, Job, Json, Recorded, Renewal, Report, Reported,
    Summary, Time, Wish, Worker, WorkerBuilder,
};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// One call as it came.
#[derive(Debug, Clone)]
pub(crate) enum Asked {
    Pull(Wish),
    Beat(Beat),
    Report(Vec<Report>, Option<Wish>),
    Effect,
    Record(Json),
    Leave,
}

/// What to do about it.
pub(crate) enum Reply {
    /// A pull that waits for its time, or until the worker leaves; then with these.
    UntilLeft(Vec<Job>),
    Jobs(Vec<Job>),
    Renewals(Vec<Renewal>),
    Reported(Reported),
    Effect(Option<Json>),
    Recorded(Recorded),
    Left,
    NotNow,
    Refused(About),
    Gone,
    Hang,
    Panic,
    /// The other one, after a while.
    After(Duration, Box<Reply>),
}

type Script = Box<dyn FnMut(&Asked) -> Reply + Send>;

/// The employer.
pub(crate) struct Scripted {
    script: Mutex<Script>,
    tell: mpsc::UnboundedSender<Asked>,
    left: Notify,
}

/// The test's end of it.
pub(crate) struct Heard {
    asked: mpsc::UnboundedReceiver<Asked>,
}

pub(crate) fn employer(
    script: impl FnMut(&Asked) -> Reply + Send + 'static,
) -> (Arc<Scripted>, Heard) {
    let (tell, asked) = mpsc::unbounded_channel();
    let script: Mutex<Script> = Mutex::new(Box::new(script));
    (Arc::new(Scripted { script, tell, left: Notify::new() }), Heard { asked })
}

impl Heard {
    /// The next call that `pick` finds something in, skipping others.
    pub(crate) async fn next<T>(&mut self, pick: impl Fn(Asked) -> Option<T>) -> T {
        let wait = Duration::from_secs(7_200);
        loop {
            let asked = tokio::time::timeout(wait, self.asked.recv()).await;
            if let Some(found) = pick(asked.expect("it is asked in time").unwrap()) {
                return found;
            }
        }
    }

    pub(crate) async fn pull(&mut self) -> Wish {
        self.next(|asked| if let Asked::Pull(wish) = asked { Some(wish) } else { None }).await
    }

    pub(crate) async fn beat(&mut self) -> Beat {
        self.next(|asked| if let Asked::Beat(beat) = asked { Some(beat) } else { None }).await
    }

    pub(crate) async fn report(&mut self) -> (Vec<Report>, Option<Wish>) {
        self.next(|asked| {
            if let Asked::Report(reports, wish) = asked { Some((reports, wish)) } else { None }
        })
        .await
    }

    /// All calls so far that `is` says yes to.
    pub(crate) fn count(&mut self, is: impl Fn(&Asked) -> bool) -> usize {
        let mut count = 0;
        while let Ok(asked) = self.asked.try_recv() {
            count += usize::from(is(&asked));
        }
        count
    }
}

impl Scripted {
    fn reply(&self, asked: Asked) -> Reply {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = script(&asked);
        let _ = self.tell.send(asked);
        reply
    }

    async fn act(&self, mut reply: Reply) -> Result<Reply, Error> {
        while let Reply::After(wait, later) = reply {
            tokio::time::sleep(wait).await; // paced: an answer that takes its time
            reply = *later;
        }
        let no = || Box::<dyn std::error::Error + Send + Sync>::from("no");
        match reply {
            Reply::NotNow => Err(Error::NotNow { wait: None, cause: no() }),
            Reply::Refused(about) => {
                Err(Error::Refused { code: Some("NO".into()), about, cause: no() })
            }
            Reply::Gone => Err(Error::Gone { cause: no() }),
            Reply::Hang => std::future::pending().await,
            Reply::Panic => panic!("a bug in the employer"),
            other => Ok(other),
        }
    }
}

/// What another kind of answer than the one that belongs there comes to.
fn wrong<T>() -> Result<T, Error> {
    panic!("the script answers something else than it was asked")
}

/// The loop gets the employer, the test keeps a hand on it.
pub(crate) struct Hired(pub(crate) Arc<Scripted>);

impl Employer for Hired {
    fn pull(&self, wish: Wish) -> Answer<'_, Vec<Job>> {
        Box::pin(async move {
            let left = self.0.left.notified();
            let wait = wish.wait;
            match self.0.act(self.0.reply(Asked::Pull(wish))).await? {
                Reply::Jobs(jobs) => Ok(jobs),
                Reply::UntilLeft(jobs) => match tokio::time::timeout(wait, left).await {
                    Ok(()) => Ok(jobs),
                    Err(_) => Ok(Vec::new()),
                },
                _ => wrong(),
            }
        })
    }

    fn heartbeat<'a>(&'a self, beat: &'a Beat) -> Answer<'a, Vec<Renewal>> {
        Box::pin(async move {
            match self.0.act(self.0.reply(Asked::Beat(beat.clone()))).await? {
                Reply::Renewals(renewals) => Ok(renewals),
                _ => wrong(),
            }
        })
    }

    fn report<'a>(&'a self, reports: &'a [Report], wish: Option<Wish>) -> Answer<'a, Reported> {
        // Not in the future: what an employer does before it answers counts, too.
        let reply = self.0.reply(Asked::Report(reports.to_vec(), wish));
        Box::pin(async move {
            match self.0.act(reply).await? {
                Reply::Reported(reported) => Ok(reported),
                _ => wrong(),
            }
        })
    }

    fn effect<'a>(&'a self, _: &'a Job, _: &'a str) -> Answer<'a, Option<Json>> {
        Box::pin(async move {
            match self.0.act(self.0.reply(Asked::Effect)).await? {
                Reply::Effect(effect) => Ok(effect),
                _ => wrong(),
            }
        })
    }

    fn record<'a>(&'a self, _: &'a Job, _: &'a str, value: Json) -> Answer<'a, Recorded> {
        Box::pin(async move {
            match self.0.act(self.0.reply(Asked::Record(value))).await? {
                Reply::Recorded(recorded) => Ok(recorded),
                _ => wrong(),
            }
        })
    }

    fn leave<'a>(&'a self, _: &'a str) -> Answer<'a, ()> {
        Box::pin(async move {
            let reply = self.0.reply(Asked::Leave);
            self.0.left.notify_waiters();
            match self.0.act(reply).await? {
                Reply::Left => Ok(()),
                _ => wrong(),
            }
        })
    }
}

/// Job `n`, of type `t`; its payload says which it is.
pub(crate) fn job(n: usize) -> Job {
    Job {
        job_id: format!("job-{n}"),
        job_type: "t".into(),
        payload: json(&serde_json::json!({ "n": n })),
        attempt: 1,
        retry_count: 0,
        lease_token: format!("lease-{n}"),
        lease_expires_at: Time(5_000_000),
        deadline_at: Time(900_000_000),
        time_allowed: Duration::from_secs(900),
        execution_key: "k".into(),
        trace_id: "t".into(),
        traceparent: None,
        labels: std::collections::BTreeMap::new(),
        checkpoint: None,
    }
}

pub(crate) fn json(value: &serde_json::Value) -> Json {
    serde_json::value::to_raw_value(value).unwrap()
}

/// Takes every report.
pub(crate) fn taken(reports: &[Report]) -> Reply {
    let items = reports.iter().map(|_| Ok(())).collect();
    Reply::Reported(Reported { items, jobs: Vec::new() })
}

/// Hands out jobs 1 to `count` in the first pull, then nothing, and agrees to everything.
pub(crate) fn agreeing(count: usize) -> impl FnMut(&Asked) -> Reply + Send {
    let mut is_first = true;
    move |asked| match asked {
        Asked::Pull(_) if std::mem::take(&mut is_first) && count > 0 => {
            Reply::Jobs((1..=count).map(job).collect())
        }
        Asked::Pull(_) => Reply::UntilLeft(Vec::new()),
        Asked::Beat(beat) => Reply::Renewals(vec![Renewal::Renewed; beat.signs.len()]),
        Asked::Report(reports, _) => taken(reports),
        Asked::Effect => Reply::Effect(None),
        Asked::Record(value) => Reply::Recorded(Recorded { value: value.clone(), is_first: true }),
        Asked::Leave => Reply::Left,
    }
}

pub(crate) fn quick(employer: &Arc<Scripted>) -> WorkerBuilder {
    Worker::builder(Hired(employer.clone()))
        .drain_grace(Duration::from_secs(5))
        .stop_grace(Duration::from_secs(1))
}

/// A handler that never ends, however often it is told to stop.
pub(crate) fn deaf(builder: WorkerBuilder) -> WorkerBuilder {
    builder.on("t", |_| async { std::future::pending::<Result<(), Failure>>().await })
}

/// A worker that runs.
pub(crate) struct Running {
    pub(crate) stop: CancellationToken,
    task: JoinHandle<Result<Summary, Error>>,
}

pub(crate) fn run(builder: WorkerBuilder) -> Running {
    let stop = CancellationToken::new();
    Running { task: tokio::spawn(builder.build().run(stop.clone())), stop }
}

impl Running {
    /// Tells it to stop and waits for its end, which must come within `bound`.
    pub(crate) async fn stopped_within(self, bound: Duration) -> Result<Summary, Error> {
        let began = Instant::now();
        self.stop.cancel();
        let ended = self.task.await.unwrap();
        assert!(began.elapsed() <= bound, "it took {:?}", began.elapsed());
        ended
    }

    pub(crate) async fn stopped(self) -> Summary {
        self.stopped_within(Duration::from_secs(60)).await.unwrap()
    }

    /// Its end, without being told to.
    pub(crate) async fn ended(self) -> Result<Summary, Error> {
        self.task.await.unwrap()
    }
}
