//! Passing events on: one relay for each subscription that does not rest, reading the durable
//! stream from where the subscription stands. It works beside the engine like any reader of the
//! stream; a receiver that is slow or dead costs a waiting task.
//!
//! Every server of a store has this. Which of them sends for a subscription is settled by a hold on
//! it that runs out (`kernel/src/entity/subscription.rs`); the others look again now and then.
//! Read next: `bus/relay.rs`, then `bus/nats.rs` and `webhook/postbox.rs` for the ways out.

mod event;
mod herald;
mod nats;
mod otlp;
mod relay;
mod spans;

pub use nats::{BadNats, NatsServer};
pub use otlp::Otlp;

use crate::limits::{LOOK_AGAIN, SUBSCRIPTIONS_LOOKED_AT, SUBSCRIPTIONS_RELAYED_MAX};
use crate::webhook::Exchange;
use mainspring_engine::Engine;
use mainspring_kernel::entity::{Body, Kind};
use mainspring_kernel::{Entity, EntityId};
use mainspring_store::{EntityFilter, Error, Fatal, Scope};
use relay::Relay;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::task::{Id, JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// How events are passed on.
#[derive(Clone)]
pub struct BusConfig {
    /// Whether receivers may be at addresses of our own network.
    pub allows_private: bool,
    /// The NATS server, if there is one.
    pub nats: Option<NatsServer>,
    /// Whether no other server uses the store: whoever held a subscription before is gone.
    pub is_alone: bool,
    /// Where traces of jobs are sent, if anywhere.
    pub otlp: Option<Otlp>,
    /// Whether alerts are sent: their type has a receiver. Otherwise they are told of in the stream
    /// alone.
    pub sends_alerts: bool,
    /// What a dead relay strikes.
    pub fatal: Fatal,
}

/// The relays, running.
pub struct Bus {
    stop: CancellationToken,
    keeper: JoinHandle<()>,
    herald: JoinHandle<()>,
    tracer: Option<JoinHandle<()>>,
}

/// What all relays share.
struct Means {
    config: BusConfig,
    exchange: Exchange,
    /// What this server calls itself, for as long as it lives.
    holder: u128,
}

impl Bus {
    /// Starts a relay for every subscription, and goes by them from then on.
    pub fn start(engine: Engine, config: BusConfig) -> Self {
        let (stop, fatal) = (CancellationToken::new(), config.fatal.clone());
        let holder = engine.fresh_bits();
        let herald = herald::Herald::new(engine.clone(), config.sends_alerts);
        let heard = fatal.clone().watch("the herald", herald.run(stop.clone()));
        let herald = tokio::spawn(heard);
        let exchange = Exchange::default();
        let tracer = config.otlp.clone().map(|otlp| {
            let sending = (exchange.clone(), holder, config.is_alone);
            let tracer = otlp::Tracer::new(engine.clone(), otlp, sending, stop.clone());
            tokio::spawn(fatal.clone().watch("the tracer", tracer.run()))
        });
        let means = Arc::new(Means { config, exchange, holder });
        let keeper = Keeper { engine, means, relays: JoinSet::new(), running: HashMap::new() };
        let kept = fatal.watch("the event bus", keeper.keep(stop.clone()));
        Bus { keeper: tokio::spawn(kept), herald, tracer, stop }
    }

    /// Ends when `stop` does and every subscription has noted where it stands. If this is dropped
    /// before, what was sent since the last note is sent again by whoever comes next.
    pub async fn until(mut self, stop: CancellationToken) {
        stop.cancelled().await;
        self.stop.cancel();
        // A keeper that died has told so.
        let _ = (&mut self.keeper).await;
        let _ = (&mut self.herald).await;
        if let Some(tracer) = &mut self.tracer {
            let _ = tracer.await;
        }
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        self.stop.cancel();
        self.keeper.abort();
        self.herald.abort();
        if let Some(tracer) = &self.tracer {
            tracer.abort();
        }
    }
}

/// Keeps the relays in step with the subscriptions.
struct Keeper {
    engine: Engine,
    means: Arc<Means>,
    relays: JoinSet<()>,
    running: HashMap<Id, EntityId>,
}

impl Keeper {
    async fn keep(mut self, stop: CancellationToken) {
        let mut changed = self.engine.bus_changed();
        loop {
            changed.mark_unchanged();
            match self.look(&stop).await {
                Ok(()) => {}
                Err(Error::Stopped) => break,
                // In an outage the store tells the log itself, once.
                Err(Error::Away(_)) => {}
                Err(error) => tracing::warn!(%error, "the subscriptions could not be read"),
            }
            tokio::select! {
                () = stop.cancelled() => break,
                _ = changed.changed() => {}
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
        while let Some(ended) = self.relays.join_next().await {
            if let Err(error) = ended {
                tracing::warn!(%error, "a relay did not end well");
            }
        }
    }

    /// Starts relays for those subscriptions that have none anywhere.
    async fn look(&mut self, stop: &CancellationToken) -> Result<(), Error> {
        while let Some(ended) = self.relays.try_join_next_with_id() {
            let id = match ended {
                Ok((id, ())) => id,
                Err(error) => error.id(),
            };
            self.running.remove(&id);
        }
        for state in ["active", "failing"] {
            let filter = EntityFilter {
                state: Some(state.to_owned()),
                ..EntityFilter::of(Kind::Subscription, Scope::All)
            };
            let mut before = None;
            loop {
                let page = self.engine.entities(&filter, before, SUBSCRIPTIONS_LOOKED_AT).await?;
                page.items.into_iter().for_each(|entity| self.begin(entity, stop));
                before = page.next;
                if before.is_none() || self.running.len() >= SUBSCRIPTIONS_RELAYED_MAX {
                    break;
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, entity: Entity, stop: &CancellationToken) {
        let is_running = self.running.values().any(|running| *running == entity.id);
        if is_running || self.running.len() >= SUBSCRIPTIONS_RELAYED_MAX {
            return;
        }
        let Body::Subscription(subscription) = &entity.body else { return };
        let now = self.engine.now();
        let is_elsewhere = subscription
            .hold
            .is_some_and(|hold| hold.holder != self.means.holder && now < hold.until);
        if is_elsewhere && !self.means.config.is_alone {
            return;
        }
        let id = entity.id;
        let relay = Relay::new(self.engine.clone(), self.means.clone(), &entity, stop.clone());
        let Some(relay) = relay else { return };
        let fatal = self.means.config.fatal.clone();
        let task = self.relays.spawn(fatal.watch("a relay of the event bus", relay.run()));
        self.running.insert(task.id(), id);
    }
}
