//! What is played to a worker, and what it must do.

use super::stage::{Answer, Job, Said, Stage};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::time::Duration;

/// Work that nobody waits for the end of.
const LONG: Duration = Duration::from_secs(600);
/// A clock that is wrong by this much, one way or the other.
const SKEW_SECS: i64 = 3_600;
/// Leases up to this long are watched being renewed.
const LEASE_MAX: Duration = Duration::from_secs(20);
/// How long nothing must be said where nothing must be said.
const SILENCE: Duration = Duration::from_millis(700);

type Played<'a> = BoxFuture<'a, Result<(), String>>;

/// One scene.
pub(super) struct Scene {
    pub(super) name: &'static str,
    /// What a worker must do, as the end of a sentence.
    pub(super) about: &'static str,
    /// Plays it, given the worker's process.
    pub(super) play: for<'a> fn(&'a Stage, Option<u32>) -> Played<'a>,
    /// Whether the worker must be gone after it.
    pub(super) is_stop: bool,
}

const fn scene(
    name: &'static str,
    about: &'static str,
    play: for<'a> fn(&'a Stage, Option<u32>) -> Played<'a>,
) -> Scene {
    Scene { name, about, play, is_stop: false }
}

pub(super) const SCENES: [Scene; 10] = [
    scene("complete", "reports results, each with its own lease", |stage, _| {
        complete(stage).boxed()
    }),
    scene("fail", "reports failures with their code", |stage, _| fail(stage).boxed()),
    scene("double-ack", "repeats a report that was not answered", |stage, _| {
        double_ack(stage).boxed()
    }),
    scene("stale-ack", "takes no for an answer, and goes on", |stage, _| stale_ack(stage).boxed()),
    scene("heartbeat", "renews its leases in time", |stage, _| heartbeat(stage).boxed()),
    scene("lost-lease", "says nothing more about a job that it lost", |stage, _| {
        told_to_stop(stage, Answer::Lost).boxed()
    }),
    scene("cancel", "stops working on a cancelled job", |stage, _| {
        told_to_stop(stage, Answer::Cancelled).boxed()
    }),
    scene("skew", "does not mind another clock", |stage, _| skew(stage).boxed()),
    scene("away", "comes back to a server that was away", |stage, _| away(stage).boxed()),
    Scene {
        name: "drain",
        about: "gives back what it does not finish",
        play: |stage, worker| drain(stage, worker).boxed(),
        is_stop: true,
    },
];

fn payload(work: Duration, value: &Value) -> Value {
    json!({ "work_ms": work.as_millis() as u64, "value": value, "fail": null })
}

/// A job that takes no time and gives this value.
fn quick(value: &str) -> Job {
    Job::new(payload(Duration::ZERO, &json!(value)))
}

fn expect(is_so: bool, otherwise: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(otherwise()) }
}

/// Completed with the value that it should have.
fn completed(said: &Said, value: &str) -> Result<(), String> {
    let is_so = said.verb == "complete" && said.item["result"] == value;
    expect(is_so, || format!("it should have completed with {value:?}, not: {said}"))
}

async fn complete(stage: &Stage) -> Result<(), String> {
    let jobs: Vec<(String, String)> =
        (0..3).map(|n| (stage.hand_out(quick(&format!("v{n}"))), format!("v{n}"))).collect();
    for (job, value) in &jobs {
        completed(&stage.report(job, 1).await?, value)?;
    }
    tokio::time::sleep(SILENCE).await;
    let counts = jobs.iter().map(|(job, _)| stage.reports(job)).collect::<Vec<_>>();
    expect(counts == [1, 1, 1], || format!("reports that were taken are repeated: {counts:?}"))
}

async fn fail(stage: &Stage) -> Result<(), String> {
    let wish = json!({ "work_ms": 0, "value": null, "fail": "NO_ADDRESS" });
    let job = stage.hand_out(Job::new(wish));
    let said = stage.report(&job, 1).await?;
    let is_so = said.verb == "fail" && said.item["error_code"] == "NO_ADDRESS";
    expect(is_so, || format!("it should have failed with NO_ADDRESS, not: {said}"))?;
    expect(said.item["retryable"] == false, || format!("it should not be retried: {said}"))
}

async fn double_ack(stage: &Stage) -> Result<(), String> {
    let job = stage.hand_out(quick("once").answer(Answer::AwayFor(2)));
    let first = stage.report(&job, 1).await?;
    completed(&first, "once")?;
    let last = stage.report(&job, 3).await?;
    let is_same = (&first.verb, &first.item) == (&last.verb, &last.item);
    expect(is_same, || format!("the repeat says something else: {first}; {last}"))?;
    goes_on(stage).await?;
    expect(stage.reports(&job) == 3, || "a report that was taken is repeated".to_owned())
}

async fn stale_ack(stage: &Stage) -> Result<(), String> {
    let job = stage.hand_out(quick("late").answer(Answer::Stale));
    completed(&stage.report(&job, 1).await?, "late")?;
    goes_on(stage).await?;
    expect(stage.reports(&job) == 1, || "it insists after LEASE_LOST".to_owned())
}

/// It takes another job and does it.
async fn goes_on(stage: &Stage) -> Result<(), String> {
    let next = stage.hand_out(quick("next"));
    completed(&stage.report(&next, 1).await?, "next")?;
    tokio::time::sleep(SILENCE).await;
    Ok(())
}

async fn heartbeat(stage: &Stage) -> Result<(), String> {
    let lease = stage.lease_asked().await?;
    expect(lease <= LEASE_MAX, || {
        format!("it asks for leases of {lease:?}; with shorter ones its heartbeats can be watched")
    })?;
    let work = lease + lease / 2 + Duration::from_secs(1);
    let jobs = [stage.hand_out(Job::new(payload(work, &json!("done"))))];
    for job in &jobs {
        // A lease that ends meanwhile is an offence, which the stage keeps.
        let said = stage.report_within(job, 1, work + stage.patience()).await?;
        completed(&said, "done")?;
    }
    Ok(())
}

async fn told_to_stop(stage: &Stage, why: Answer) -> Result<(), String> {
    let job = stage.hand_out(Job::new(payload(LONG, &json!("too late"))).answer(why));
    stage.told(&job).await?;
    // Free again: as many as it has room for would not do, so it is asked for one after the other.
    for _ in 0..3 {
        goes_on(stage).await?;
    }
    expect(stage.reports(&job) == 0, || "it reports about a job that is not its own".to_owned())
}

async fn skew(stage: &Stage) -> Result<(), String> {
    for skew in [-SKEW_SECS, SKEW_SECS] {
        let work = Duration::from_millis(500);
        let job = stage.hand_out(Job::new(payload(work, &json!("done"))).skew(skew));
        let said = stage.report(&job, 1).await?;
        completed(&said, "done").map_err(|it| format!("with a clock off by {skew} s: {it}"))?;
    }
    Ok(())
}

async fn away(stage: &Stage) -> Result<(), String> {
    stage.refuse_pulls(2);
    goes_on(stage).await
}

async fn drain(stage: &Stage, worker: Option<u32>) -> Result<(), String> {
    let job = stage.hand_out(Job::new(payload(LONG, &json!("too late"))));
    stage.taken(&job).await?;
    // A worker that has only just got it may not have begun.
    tokio::time::sleep(SILENCE).await;
    let pid = worker.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    let pid = pid.ok_or("the worker has no process")?;
    kill_process(pid, Signal::TERM).map_err(|error| format!("it cannot be asked: {error}"))?;
    let said = stage
        .report_within(&job, 1, stage.patience() * 2)
        .await
        .map_err(|error| format!("{error}: it leaves its job to the lease, which costs a try"))?;
    expect(said.verb == "release", || format!("it should have given the job back, not: {said}"))
}
