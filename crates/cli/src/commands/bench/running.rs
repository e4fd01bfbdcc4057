//! `mainspring bench --url`: measures a server that runs already, as it is reached from here. The
//! jobs are of a type and in a queue of the benchmark's own; it works on them itself and leaves
//! none waiting; nobody else's job is ever asked for. What it submits goes by itself after a while,
//! too, in case nobody is left to clean up.

use crate::exit::{self, usage};
use crate::output::{say, say_json, table};
use crate::progress::Progress;
use crate::session::Session;
use crate::signals::StopSignals;
use anyhow::{Context, bail};
use futures_util::future::try_join_all;
use mainspring_bench::Running;
use mainspring_sdk as sdk;
use mainspring_sdk::api::Time;
use mainspring_sdk::api::job::Submit;
use mainspring_sdk::api::registry::{SetType, TypeExecutor};
use mainspring_sdk::api::work::{Complete, CompleteItem, Pull, PulledJob};
use mainspring_sdk::client::JobFilter;
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::time::Duration;
use tokio::time::Instant;

/// The type of every job; it stays registered.
const JOB_TYPE: &str = "mainspring-bench";
/// Jobs of one request.
const BATCH: usize = 1_000;
/// Requests under way at a time, of those with many jobs and those with one.
const BATCHES_AT_ONCE: usize = 2;
const SINGLES_AT_ONCE: usize = 16;
/// Jobs a second while latency is measured.
const RATE: u32 = 50;
/// Workers that wait meanwhile.
const WORKERS: usize = 2;
/// A pull waits this long.
const WAIT_MS: u64 = 500;
/// Jobs that nobody took by then go by themselves.
const KEPT_MICROS: i64 = 15 * 60 * 1_000_000;
/// After this long without a job those that are missing will not come.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes of a payload.
const PAYLOAD_BYTES: usize = 200;

/// A server, and the jobs that are this run's.
struct Bench<'a> {
    session: &'a Session,
    queue: String,
    /// When what is left goes by itself, by the server's clock.
    expires_at: Option<Time>,
}

/// Jobs that some workers do together.
struct Drain {
    count: usize,
    taken: Cell<usize>,
    /// When the last report was answered.
    ended: Cell<Instant>,
    progress: Progress,
}

/// What was measured.
struct Figure {
    what: String,
    figure: f64,
    unit: &'static str,
}

pub(crate) async fn run(plan: Running, session: Session) -> anyhow::Result<u8> {
    let who = session.client.whoami().await?;
    let may = |role: &str| who.roles.iter().any(|given| given == role || given == "admin");
    if !may("submitter") || !may("worker") {
        return Err(usage(format!(
            "this measures by submitting jobs and working on them: the token of {} needs the roles \
             submitter and worker",
            who.user_id
        )));
    }
    let queue = format!("bench-{:x}", jiff::Timestamp::now().as_microsecond());
    eprintln!(
        "measuring {}: about {} jobs of the type {JOB_TYPE} in the queue {queue} of tenant {}, \
         submitted and worked on from here.\nOther work on that server is slower meanwhile. Ctrl-C \
         stops and cleans up; jobs that were done are kept as long as any others.",
        session.client.url(),
        plan.jobs * 2 + plan.jobs / 5,
        who.tenant_id,
    );
    let mut signals = StopSignals::listen()?;
    let mut bench = Bench { session: &session, queue, expires_at: None };
    if may("admin") {
        bench.make_type().await?;
    }
    bench.begin().await?;
    let measured = tokio::select! {
        measured = bench.measure(&plan) => measured.map(Some),
        () = signals.first() => Ok(None),
    };
    let left = bench.clean_up().await.context("cleaning up")?;
    if left > 0 {
        eprintln!("{left} jobs were left and are gone");
    }
    match measured? {
        Some(figures) => show(&figures, &session),
        None => bail!("stopped before the end"),
    }
    Ok(exit::OK)
}

fn show(figures: &[Figure], session: &Session) {
    if session.is_json() {
        let told = figures.iter().map(
            |Figure { what, figure, unit }| json!({ "what": what, "figure": figure, "unit": unit }),
        );
        say_json(&told.collect());
        return;
    }
    let row = |Figure { what, figure, unit }: &Figure| {
        let digits = if *figure >= 100.0 { 0 } else { 2 };
        vec![what.clone(), format!("{figure:.digits$} {unit}")]
    };
    say(&table(&["workload", "figure"], figures.iter().map(row)));
}

impl Bench<'_> {
    /// Registers the type, unless it is.
    async fn make_type(&self) -> anyhow::Result<()> {
        let client = &self.session.client;
        match client.job_type(JOB_TYPE).await {
            Ok(_) => return Ok(()),
            Err(sdk::Error::Refused(refusal)) if refusal.status == 404 => {}
            Err(error) => return Err(error.into()),
        }
        // Whatever the server does with types that do not say: these jobs are done from here.
        let executor = TypeExecutor { mode: "pull".to_owned(), ..TypeExecutor::default() };
        let spec = SetType {
            domain: Some("bench".to_owned()),
            schedulable: Some(false),
            executor: Some(executor),
            ..SetType::default()
        };
        client.set_type(JOB_TYPE, &spec).await?;
        Ok(())
    }

    /// One job there and back: shows that all is as it should be, and what time it is there.
    async fn begin(&mut self) -> anyhow::Result<()> {
        let wish = sdk::Submit { wish: self.wish(0)? };
        let submitted = match self.session.client.submit(&wish).await {
            Err(sdk::Error::Refused(refusal)) if refusal.code == "TYPE_UNKNOWN" => bail!(
                "the server takes jobs of known types only; let an admin run `mainspring types set \
                 {JOB_TYPE}`, or run this with an admin's token"
            ),
            other => other?,
        };
        let job = submitted.into_job().context("the server does not show the job it took")?;
        self.expires_at = Some(Time(job.created_at.0 + KEPT_MICROS));
        self.drain_all("first job", 1).await?;
        Ok(())
    }

    async fn measure(&self, plan: &Running) -> anyhow::Result<Vec<Figure>> {
        let rate = |what: String, figure| Figure { what, figure, unit: "jobs/s" };
        let jobs = plan.jobs / BATCH * BATCH;
        let mut figures = Vec::new();
        let taken = self.submit(jobs, BATCH, BATCHES_AT_ONCE).await?;
        figures.push(rate(format!("submit {jobs}, {BATCH} per request"), taken));
        let taken = self.drain_all("drain", jobs).await?;
        figures.push(rate(format!("drain {jobs}, {BATCH} per request, report and fetch"), taken));
        let few = jobs / 5 / SINGLES_AT_ONCE * SINGLES_AT_ONCE;
        let taken = self.submit(few, 1, SINGLES_AT_ONCE).await?;
        let what = format!("submit {few}, one per request, {SINGLES_AT_ONCE} at a time");
        figures.push(rate(what, taken));
        self.drain_all("drain those", few).await?;
        let (p50, p99) = self.latency(plan.span).await?;
        for (name, figure) in [("p50", p50), ("p99", p99)] {
            let what = format!("submit to handler at {RATE} jobs/s, {name}");
            figures.push(Figure { what, figure, unit: "ms" });
        }
        Ok(figures)
    }

    /// A job. The stamp comes back with the pull.
    fn wish(&self, stamp: u128) -> anyhow::Result<Submit> {
        let start = format!("{{\"stamp\":{stamp},\"text\":\"");
        let fill = PAYLOAD_BYTES.saturating_sub(start.len() + 2);
        let payload = format!("{start}{}\"}}", "x".repeat(fill));
        let mut wish = Submit::new(JOB_TYPE, serde_json::value::RawValue::from_string(payload)?);
        wish.queue = Some(self.queue.clone());
        wish.expires_at = self.expires_at;
        Ok(wish)
    }

    /// Submits so many, so many per request, with so many requests under way; jobs a second.
    async fn submit(&self, count: usize, each: usize, at_once: usize) -> anyhow::Result<f64> {
        let progress = Progress::of_things("submitting", Some(count as u64), self.session.output);
        let left = Cell::new(count / each);
        let start = Instant::now();
        let lane = async || {
            while left.get() > 0 {
                left.set(left.get() - 1);
                let wishes = (0..each).map(|_| self.wish(0)).collect::<Result<Vec<_>, _>>()?;
                self.take_in(wishes).await?;
                progress.add(each as u64);
            }
            anyhow::Ok(())
        };
        try_join_all((0..at_once).map(|_| lane())).await?;
        Ok(rate(count / each * each, start.elapsed()))
    }

    async fn take_in(&self, mut wishes: Vec<Submit>) -> anyhow::Result<()> {
        let client = &self.session.client;
        if wishes.len() == 1
            && let Some(wish) = wishes.pop()
        {
            client.submit(&sdk::Submit { wish }).await?;
            return Ok(());
        }
        let answer = client.submit_batch(wishes).await?;
        match answer.items.into_iter().find_map(|item| item.error) {
            Some(error) => bail!("jobs were refused: {}: {}", error.code, error.message),
            None => Ok(()),
        }
    }

    /// Works on so many jobs; jobs a second.
    async fn drain_all(&self, what: &'static str, count: usize) -> anyhow::Result<f64> {
        let start = Instant::now();
        let drain = Drain {
            count,
            taken: Cell::new(0),
            ended: Cell::new(start),
            progress: Progress::of_things(what, Some(count as u64), self.session.output),
        };
        try_join_all(["bench-1", "bench-2"].map(|worker| self.drain(worker, &drain))).await?;
        Ok(rate(count, drain.ended.get() - start))
    }

    /// One worker's part: until all are taken, and those that it took are done.
    async fn drain(&self, worker: &str, drain: &Drain) -> anyhow::Result<()> {
        let mut heard = Instant::now();
        let mut held = Vec::new();
        loop {
            let done = held.len();
            let is_more = drain.taken.get() < drain.count;
            if done == 0 && !is_more {
                return Ok(());
            }
            held = self.report(held, is_more.then(|| self.pull(worker, BATCH))).await?;
            drain.taken.set(drain.taken.get() + held.len());
            if done > 0 {
                drain.ended.set(Instant::now());
                drain.progress.add(done as u64);
            }
            if done > 0 || !held.is_empty() {
                heard = Instant::now();
            } else if heard.elapsed() > PATIENCE {
                bail!("{} of {} jobs never came", drain.count - drain.taken.get(), drain.count);
            }
        }
    }

    fn pull(&self, worker: &str, limit: usize) -> Pull {
        Pull {
            worker_id: worker.to_owned(),
            types: Some(vec![JOB_TYPE.to_owned()]),
            queues: Some(vec![self.queue.clone()]),
            limit: u32::try_from(limit).ok(),
            wait_ms: Some(WAIT_MS),
            lease_ms: None,
        }
    }

    /// Completes what is held and fetches more.
    async fn report(
        &self,
        held: Vec<PulledJob>,
        pull: Option<Pull>,
    ) -> anyhow::Result<Vec<PulledJob>> {
        let client = &self.session.client;
        if held.is_empty() {
            return Ok(match pull {
                Some(pull) => client.pull(&pull).await?.jobs,
                None => Vec::new(),
            });
        }
        let item = |job: PulledJob| CompleteItem {
            job_id: job.job_id,
            lease_token: job.lease_token,
            result: None,
        };
        let items = held.into_iter().map(item).collect();
        let told = client.complete(&Complete { items, pull }).await?;
        match told.items.into_iter().find_map(|item| item.error) {
            Some(error) => bail!("a job could not be reported: {}: {}", error.code, error.message),
            None => Ok(told.jobs.unwrap_or_default()),
        }
    }

    /// From submit to the start of the handler at a steady rate: the median, and what all but one
    /// in a hundred stay below, in milliseconds.
    async fn latency(&self, span: Duration) -> anyhow::Result<(f64, f64)> {
        let count = (span.as_secs_f64() * f64::from(RATE)) as u32;
        let progress = Progress::of_things("latency", Some(count.into()), self.session.output);
        let (clock, seen) = (Instant::now(), RefCell::new(Vec::new()));
        let send = async {
            for n in 0..count {
                tokio::time::sleep_until(clock + Duration::from_secs(1) / RATE * n).await;
                let wish = self.wish(clock.elapsed().as_micros())?;
                self.take_in(vec![wish]).await?;
            }
            anyhow::Ok(())
        };
        let work = async |nth: usize| {
            let (worker, mut heard, mut held) =
                (format!("bench-{nth}"), Instant::now(), Vec::new());
            while seen.borrow().len() < count as usize || !held.is_empty() {
                held = self.report(held, Some(self.pull(&worker, 1))).await?;
                let now = clock.elapsed().as_micros();
                for job in &held {
                    heard = Instant::now();
                    seen.borrow_mut().push(now.saturating_sub(stamp(job)) as f64 / 1e3);
                    progress.add(1);
                }
                if heard.elapsed() > PATIENCE {
                    bail!("{} of {count} jobs never came", count as usize - seen.borrow().len());
                }
            }
            anyhow::Ok(())
        };
        let workers = try_join_all((1..=WORKERS).map(work));
        tokio::try_join!(send, workers)?;
        let mut seen = seen.into_inner();
        seen.sort_by(f64::total_cmp);
        let at = |share: usize| seen.get((seen.len() * share).div_ceil(100).saturating_sub(1));
        Ok((at(50).copied().unwrap_or(f64::NAN), at(99).copied().unwrap_or(f64::NAN)))
    }

    /// Works off what is left, and cancels what a worker that was stopped held. How many it was.
    async fn clean_up(&self) -> anyhow::Result<usize> {
        let mut count = 0;
        let mut held = Vec::new();
        loop {
            count += held.len();
            let pull = Pull { wait_ms: None, ..self.pull("bench-1", BATCH) };
            held = self.report(held, Some(pull)).await?;
            if held.is_empty() {
                break;
            }
        }
        for status in ["running", "retrying", "queued"] {
            let filter = JobFilter {
                status: Some(status.to_owned()),
                queue: Some(self.queue.clone()),
                limit: Some(100),
                ..JobFilter::default()
            };
            loop {
                let jobs = self.session.client.jobs(&filter).await?.items;
                for job in &jobs {
                    self.session.client.cancel(&job.job_id, Some("the benchmark is over")).await?;
                }
                count += jobs.len();
                if jobs.len() < 100 {
                    break;
                }
            }
        }
        Ok(count)
    }
}

fn rate(count: usize, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64().max(1e-9)
}

/// When a job was submitted.
fn stamp(job: &PulledJob) -> u128 {
    let payload: Result<serde_json::Value, _> = serde_json::from_str(job.payload.get());
    payload.ok().and_then(|it| it["stamp"].as_u64()).map_or(0, u128::from)
}
