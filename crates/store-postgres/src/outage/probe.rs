//! The probe: finds out when an outage ends, by saying that this server is alive until it is heard.

use super::NO_ANSWER;
use crate::fault::Fault;
use crate::neighbours;
use crate::this_server::ThisServer;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often a database that is away is asked whether it is back.
const PROBE_EVERY: Duration = Duration::from_millis(50);
/// How long such a question waits for its answer.
const QUICK_PROBE: Duration = Duration::from_secs(1);
/// Every so many of them wait as long as callers do.
const PATIENT_EVERY: u32 = 4;

/// Runs until the store is closed.
pub(crate) async fn run(server: Arc<ThisServer>) {
    loop {
        server.reach.is_lost.notified().await;
        let mut tries: u32 = 0;
        while server.away().is_some() {
            // What went into a dead connection never comes back; a slow one gets its time, too.
            let is_quick = !tries.is_multiple_of(PATIENT_EVERY);
            let patience = server.config.patience;
            let patience = if is_quick { patience.min(QUICK_PROBE) } else { patience };
            let asked = Instant::now();
            let outcome = tokio::time::timeout(patience, neighbours::say_alive(&server)).await;
            let outcome = outcome.unwrap_or_else(|_| {
                server.connections.shed();
                Err(Fault::Away(NO_ANSWER.into()))
            });
            server.note_look(&outcome, asked);
            tries += 1;
            tokio::time::sleep(PROBE_EVERY).await;
        }
    }
}
