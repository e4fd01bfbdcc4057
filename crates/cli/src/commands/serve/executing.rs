//! What `serve` executes by itself, put together from the settings.

use crate::commands::demo;
use crate::config::{Settings, StoreChoice};
use anyhow::{Context, anyhow};
use mainspring_engine::Engine;
use mainspring_executor::{Bus, BusConfig, Config, Executors, Handlers};
use mainspring_kernel::executor::Mode;
use mainspring_server::Executing;
use mainspring_store::Fatal;
use std::net::SocketAddr;

/// What the server says about it, and takes through the API.
pub(super) fn told(settings: &Settings) -> Executing {
    Executing {
        mode: settings.executing.wish.mode,
        startable: settings.startable(),
        can_sign: !settings.webhooks.secrets.is_empty(),
    }
}

/// Starts the loops of the modes that types ask for. Of handlers this program has only the demo's.
pub(super) async fn start(
    engine: &Engine,
    settings: &Settings,
    address: SocketAddr,
    is_demo: bool,
    fatal: Fatal,
) -> anyhow::Result<Executors> {
    let handlers = if is_demo { demo::handlers() } else { Handlers::new() };
    let otherwise = settings.executor().map_err(|bad| anyhow!("[executor] {bad}"))?;
    if otherwise.mode() == Mode::InProcess && !is_demo {
        tracing::warn!(
            "this program has no handlers of its own: jobs that are executed in process fail with \
             TASK_HANDLER_NOT_FOUND"
        );
    }
    let config = Config {
        otherwise,
        handlers,
        startable: settings.startable(),
        // By this name it is the same program, even if its file has been replaced meanwhile.
        supervisor: Some("/proc/self/exe".into()),
        url: Some(own_url(settings, address)),
        secrets: settings.webhooks.secrets.clone(),
        allows_private: settings.webhooks.allow_private,
        concurrency: settings.executing.concurrency,
        grace: settings.executing.grace,
        fatal,
    };
    Executors::start(engine.clone(), config).await.context("cannot start the executors")
}

/// Starts passing events on.
pub(super) fn start_bus(engine: &Engine, settings: &Settings, fatal: Fatal) -> Bus {
    let config = BusConfig {
        allows_private: settings.webhooks.allow_private,
        nats: settings.nats.clone(),
        otlp: settings.otlp.clone(),
        sends_alerts: !settings.alerts.webhook_url.is_empty(),
        is_alone: !matches!(settings.store, StoreChoice::Postgres { .. }),
        fatal,
    };
    Bus::start(engine.clone(), config)
}

/// Where this machine reaches the server.
pub(crate) fn own_url(settings: &Settings, address: SocketAddr) -> String {
    let port = address.port();
    let scheme = if settings.tls.cert.is_some() { "https" } else { "http" };
    match address {
        // A certificate has names rather than addresses in it.
        _ if scheme == "https" => format!("https://localhost:{port}"),
        _ if address.ip().is_unspecified() => format!("http://127.0.0.1:{port}"),
        SocketAddr::V4(v4) => format!("http://{}:{port}", v4.ip()),
        SocketAddr::V6(v6) => format!("http://[{}]:{port}", v6.ip()),
    }
}
