//! Hearing of moves: what whoever follows the stream sleeps on between its looks at the store. It
//! says that it looks, looks, and hears of everything that the look may have missed. Nothing is
//! read here, so that many who follow the same jobs can share what one of them reads.

use crate::engine::{Engine, Shared};
use crate::limits::PASS_OVER_EVERY;
use crate::waiters::Place;
use mainspring_kernel::TenantId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

/// Somebody who follows the moves of jobs: of one tenant's, or of all.
pub struct Listening {
    shared: Arc<Shared>,
    place: Option<Place<TenantId>>,
    moved: watch::Receiver<u64>,
    looked_at: Instant,
}

impl Engine {
    /// Hears of moves of one tenant's jobs at once, of others' now and then; or of all at once.
    pub fn listen(&self, tenant: Option<&TenantId>) -> Listening {
        Listening {
            place: tenant.map(|tenant| self.shared.waiters.tenants.wait(tenant.clone())),
            moved: self.shared.moved.subscribe(),
            looked_at: Instant::now(),
            shared: self.shared.clone(),
        }
    }
}

impl Listening {
    /// Said before a look at the store: what moved until now is seen by it.
    pub fn looks(&mut self) {
        self.moved.mark_unchanged();
        if let Some(place) = &mut self.place {
            place.forgets();
        }
        self.looked_at = Instant::now();
    }

    /// Ends when there may be more to see than at the last look, and when the engine stops.
    pub async fn news(&mut self) {
        let pause = if self.place.is_some() { PASS_OVER_EVERY } else { Duration::ZERO };
        let (moved, pass_over_at) = (&mut self.moved, self.looked_at + pause);
        let anything = async {
            let _ = moved.changed().await;
            sleep_until(pass_over_at).await;
        };
        let place = &mut self.place;
        let ours = async {
            match place {
                Some(place) => place.is_rung().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = ours => {}
            () = anything => {}
            () = self.shared.stop.cancelled() => {}
        }
    }
}
