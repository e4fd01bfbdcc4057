//! SIGTERM and SIGINT: the first one asks to stop, a second one insists.

use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// `timeout` and some supervisors send the same signal to the process and to its group. A second
/// one this soon is an echo, not a decision.
const ECHO_MAX: Duration = Duration::from_millis(500);

/// Listens for both signals from when it is made.
pub(crate) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// # Errors
    /// If the system does not let us listen.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Ready at the first signal.
    pub(crate) async fn first(&mut self) {
        self.next().await;
    }

    /// Ready at the next signal that is not an echo of the first; call it right after.
    pub(crate) async fn second(&mut self) {
        let echo_ends = tokio::time::Instant::now() + ECHO_MAX;
        loop {
            self.next().await;
            if tokio::time::Instant::now() >= echo_ends {
                return;
            }
        }
    }
}
