//! Subscriptions: each passes the moves of jobs on to a receiver outside, in the order of the
//! stream, from a position that goes on only once the receiver has taken what is before it. So a
//! receiver gets every event that the stream keeps, in order, and after a failure some of them
//! twice, under the same id.
//!
//! Sending is the executor's (`executor/src/bus.rs`). One server at a time does so for a
//! subscription: the one whose hold on it has not run out.

mod command;
mod decide;
mod filter;

pub use command::SubscriptionCommand;
pub use filter::{EventName, Filter};

pub(super) use decide::decide;

use crate::entity::{EntityId, Kind};
use crate::fingerprint::digest;
use crate::id::JobId;
use crate::limits::{SUBSCRIPTION_WAIT_MS_FIRST, SUBSCRIPTION_WAIT_MS_MAX};
use crate::name::{TenantId, UserId};
use crate::time::Timestamp;
use std::fmt;

/// Where events go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// Each is a signed request to this URL.
    Webhook {
        /// Where to.
        url: Box<str>,
    },
    /// Each is a message of a JetStream stream.
    Nats {
        /// What the subjects of the messages begin with.
        subject: Box<str>,
    },
    /// Nothing is sent: whoever goes by this name comes and takes them.
    Consumer {
        /// The name.
        name: Box<str>,
    },
}

impl Target {
    /// The name of its kind.
    pub const fn kind(&self) -> &'static str {
        match self {
            Target::Webhook { .. } => "webhook",
            Target::Nats { .. } => "nats",
            Target::Consumer { .. } => "consumer",
        }
    }
}

/// What a subscription is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubscriptionSpec {
    /// For people.
    pub name: Box<str>,
    /// Where events go.
    pub target: Target,
    /// Which of them.
    pub filter: Filter,
}

/// What requests are signed with. It is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningSecret(pub [u8; 32]);

impl fmt::Debug for SigningSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningSecret(..)")
    }
}

/// The secret before the present one: it signs, too, until receivers know the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormerSecret {
    /// The secret.
    pub secret: SigningSecret,
    /// Until then.
    pub until: Timestamp,
}

/// Who sends for a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// A number that one server has drawn for one life.
    pub holder: u128,
    /// Others may take over from then on.
    pub until: Timestamp,
}

/// Events that were no longer kept when their turn came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The first that is missing.
    pub from: u64,
    /// The last.
    pub to: u64,
    /// When that was found.
    pub at: Timestamp,
}

/// Why it rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pause {
    /// Who paused it; nobody if the receiver said that it is gone.
    pub by: Option<UserId>,
    /// Why, for people.
    pub note: Option<Box<str>>,
}

/// What went wrong last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    /// When.
    pub at: Timestamp,
    /// What, for people.
    pub message: Box<str>,
}

/// Passes the moves of jobs on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// What it is to do.
    pub spec: SubscriptionSpec,
    /// What its requests are signed with; a target that is not signed for has none.
    pub secret: Option<SigningSecret>,
    /// What they are signed with besides.
    pub former: Option<FormerSecret>,
    /// Why it rests, if it does.
    pub pause: Option<Pause>,
    /// Everything up to here was taken by the receiver, or was none of its business.
    pub position: u64,
    /// Who sends.
    pub hold: Option<Hold>,
    /// Events that the receiver has taken.
    pub delivered: u64,
    /// Tries that failed.
    pub failed: u64,
    /// Tries that failed since the last that did not.
    pub failures: u32,
    /// When the receiver last took something.
    pub delivered_at: Option<Timestamp>,
    /// What went wrong last.
    pub trouble: Option<Trouble>,
    /// Events that were missed in all.
    pub missed: u64,
    /// The latest gaps, the newest last.
    pub gaps: Vec<Gap>,
    /// Jobs of whose submission the consumer was told before its turn came, in no order.
    pub ahead: Vec<JobId>,
}

/// The subscription of the consumer of this name, of one queue or (with no name) of all: the same
/// for ever.
pub fn of_consumer(tenant: &TenantId, queue: &str, name: &str) -> EntityId {
    let parts = [&b"consumer"[..], tenant.as_str().as_bytes(), queue.as_bytes(), name.as_bytes()];
    EntityId { kind: Kind::Subscription, bits: u128::from_be_bytes(digest(&parts).0) }
}

impl Subscription {
    /// The states that a list can ask for.
    pub const STATES: [&'static str; 3] = ["active", "failing", "paused"];

    /// Where it stands.
    pub const fn state(&self) -> &'static str {
        match (&self.pause, self.failures) {
            (Some(_), _) => "paused",
            (None, 0) => "active",
            (None, _) => "failing",
        }
    }

    /// The secrets that count at `now`, the present one first.
    pub fn secrets(&self, now: Timestamp) -> impl Iterator<Item = &SigningSecret> {
        let former = self.former.as_ref().filter(|former| now < former.until);
        self.secret.iter().chain(former.map(|former| &former.secret))
    }

    /// Whether `holder` may send at `now`.
    pub fn is_held_by(&self, holder: u128, now: Timestamp) -> bool {
        self.hold.is_some_and(|hold| hold.holder == holder && now < hold.until)
    }
}

/// How long to wait after so many failures in a row, in milliseconds.
pub fn wait_ms(failures: u32) -> u64 {
    let doublings = failures.saturating_sub(1).min(20);
    (SUBSCRIPTION_WAIT_MS_FIRST << doublings).min(SUBSCRIPTION_WAIT_MS_MAX)
}
