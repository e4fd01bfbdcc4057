//! The certificate that `serve` shows, and the watch over its files: SIGHUP takes them over at
//! once, a change is found by looking. What people should know of it becomes an alert.

use crate::config::{Settings, TlsFiles};
use crate::exit::usage;
use anyhow::Context;
use mainspring_engine::Engine;
use mainspring_sdk::api::Time;
use mainspring_server::Tls;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

/// How often the files are looked at. What has changed is taken over when it rested for as long.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The certificate, if there is to be one.
pub(super) fn open(settings: &Settings, is_demo: bool) -> anyhow::Result<Option<Tls>> {
    let TlsFiles { cert: Some(cert), key: Some(key) } = &settings.tls else {
        if !super::is_loopback(settings.listen.ip()) {
            tracing::warn!(
                address = %settings.listen,
                "tokens and payloads cross the network unencrypted: set tls_cert and tls_key, or \
                 let a proxy on this machine encrypt"
            );
        }
        return Ok(None);
    };
    if is_demo {
        return Err(usage("--demo speaks to itself without encryption; leave out the certificate"));
    }
    Tls::open(cert, key).map(Some).map_err(|bad| usage(bad.to_string()))
}

/// Watches until it is dropped.
pub(super) struct Watch(JoinHandle<()>);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Watches over the files of a certificate. Where there is none, SIGHUP is heard all the same: it
/// would end the server otherwise.
pub(super) fn watch(tls: Option<Tls>, engine: Engine) -> anyhow::Result<Watch> {
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?;
    let Some(tls) = tls else {
        return Ok(Watch(tokio::spawn(async move {
            while hang_up.recv().await.is_some() {
                tracing::info!("SIGHUP takes over a new certificate, and there is none");
            }
        })));
    };
    let until = Time(tls.until().0);
    match tls.until() < engine.now() {
        true => tracing::warn!(%until, "the certificate is out of date; clients will refuse it"),
        false => tracing::info!(%until, "the certificate is valid"),
    }
    Ok(Watch(tokio::spawn(async move {
        loop {
            // Heard of only when it changes.
            engine.certificate_is(tls.worry(engine.now()).as_deref());
            let is_told = tokio::select! {
                told = hang_up.recv() => told.is_some(),
                () = tokio::time::sleep(LOOK_EVERY) => false,
            };
            let (tls, now) = (tls.clone(), engine.now());
            // Files may lie on a disk that is slow, or gone.
            let looked = tokio::task::spawn_blocking(move || match is_told {
                true => Some(tls.reload(now)),
                false => tls.look(now),
            });
            match looked.await {
                Ok(Some(Ok(until))) => {
                    tracing::info!(until = %Time(until.0), "a new certificate is shown");
                }
                Ok(Some(Err(error))) => {
                    tracing::error!(%error, "the new certificate is not used; the old one is kept");
                }
                Ok(None) | Err(_) => {}
            }
        }
    })))
}
