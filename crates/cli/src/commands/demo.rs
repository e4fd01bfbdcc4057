//! `serve --demo`: a trickle of sample jobs, and somebody who does them, so that there is something
//! to see: most succeed, some are retried, a few end in the dead letter queue. Who does them is a
//! worker that speaks HTTP like any other, or, in mode `inprocess`, handlers in the server.

use crate::config::{Settings, file};
use mainspring_executor::Handlers;
use mainspring_executor::worker::{Context, Failure};
use mainspring_sdk::{Client, Submit, Worker};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The types of the demo.
pub(crate) const CONFIG: &str = include_str!("../../../../examples/quant.toml");

/// The types sample jobs are made of, in turn.
const SAMPLES: [&str; 6] = [
    "market_data_sync",
    "risk_batch_check",
    "backtest_run",
    "signal_batch_generate",
    "trading_refresh_prices",
    "strategy_backtest_run",
];
/// How often a sample job is submitted.
const RHYTHM: Duration = Duration::from_millis(700);

/// Starts the demo beside the server.
pub(crate) fn start(
    url: String,
    token: Option<String>,
    has_worker: bool,
    shutdown: CancellationToken,
) -> JoinHandle<()> {
    tokio::spawn(async move {
        let Some(token) = token else {
            tracing::warn!("no admin token at hand: the demo runs without jobs and worker");
            return;
        };
        if let Err(error) = run(&url, &token, has_worker, shutdown).await {
            tracing::warn!(%error, "the demo has ended");
        }
    })
}

async fn run(
    url: &str,
    token: &str,
    has_worker: bool,
    shutdown: CancellationToken,
) -> Result<(), mainspring_sdk::Error> {
    let client = Client::new(url, Some(token))?;
    if !has_worker {
        tokio::select! {
            () = trickle(client) => {}
            () = shutdown.cancelled() => {}
        }
        return Ok(());
    }
    let mut builder = Worker::builder(client.clone())
        .id("demo-worker")
        .concurrency(4)
        .wait(Duration::from_secs(5))
        .drain_grace(Duration::from_secs(2));
    for job_type in SAMPLES {
        builder = builder.on(job_type, |ctx| handle((*ctx).clone()));
    }
    let trickle = tokio::spawn(trickle(client));
    let worked = builder.build().run(shutdown).await;
    trickle.abort();
    worked.map(|_| ())
}

/// Handlers for all types of the demo.
pub(crate) fn handlers() -> Handlers {
    let settings =
        file::read(CONFIG, Settings::standard()).unwrap_or_else(|_| Settings::standard());
    let types = settings.types.iter().map(|spec| spec.name.as_str().to_owned());
    types.fold(Handlers::new(), |handlers, name| handlers.on(name, handle))
}

/// What a trickle does not show: a job that is not due yet, and one that nobody works on.
async fn still_life(client: &Client) {
    let later = Submit::job("trading_refresh_prices", &json!({"demo": "due in an hour"}));
    let later = later.map(|wish| wish.delay(Duration::from_secs(3_600)));
    let nobody = Submit::job("signal_cleanup_expired", &json!({"demo": "no worker asks for it"}));
    for (wish, key) in [(later, "demo-later"), (nobody, "demo-nobody")] {
        let Ok(wish) = wish else { continue };
        if let Err(error) = client.submit(&wish.label("source", "demo").key(key)).await {
            tracing::debug!(%error, "a demo job was not accepted");
        }
    }
}

async fn trickle(client: Client) {
    still_life(&client).await;
    for n in 0_u64.. {
        let job_type = SAMPLES[(n % SAMPLES.len() as u64) as usize];
        let symbol = ["BTC", "ETH", "SOL"][(n % 3) as usize];
        let payload = json!({"demo": true, "n": n, "symbol": symbol});
        let wish = Submit::job(job_type, &payload).map(|wish| wish.label("source", "demo"));
        let Ok(wish) = wish else { return };
        if let Err(error) = client.submit(&wish).await {
            tracing::debug!(%error, "a demo job was not accepted");
        }
        tokio::time::sleep(RHYTHM).await;
    }
}

async fn handle(ctx: Context) -> Result<Value, Failure> {
    let payload: Value = ctx.payload()?;
    let n = payload["n"].as_u64().unwrap_or(0);
    let steps = 1 + n % 10;
    for step in 0..steps {
        tokio::time::sleep(Duration::from_millis(120)).await;
        ctx.progress(100.0 * step as f64 / steps as f64);
    }
    if n % 17 == 5 {
        return Err(Failure::permanent("DEMO_BAD_INPUT", "this sample can never work"));
    }
    if n % 7 == 2 && ctx.job().retry_count == 0 {
        return Err(Failure::retryable("DEMO_UPSTREAM_BUSY", "the upstream was busy"));
    }
    let quote = ctx.step("quote", || async move { Ok(json!({"price": 100 + n % 50})) }).await?;
    Ok(json!({"rows": n * 3, "quote": quote}))
}
