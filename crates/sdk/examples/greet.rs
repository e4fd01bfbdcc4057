//! The worker of docs/workers.md, in Rust.

use mainspring_sdk::{Client, Worker};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let worker = Worker::builder(Client::from_env()?).on("greet", |ctx| async move {
        let payload: Value = ctx.payload()?;
        let who = payload["who"].as_str().unwrap_or("you").to_owned();
        ctx.step("greet", || async move { Ok(format!("hello, {who}")) }).await
    });
    let stopped = async move {
        terminate.recv().await;
    };
    worker.run_until(stopped).await?;
    Ok(())
}
