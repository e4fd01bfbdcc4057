//! Bounds of what the server executes by itself.

use std::time::Duration;

/// Most bytes of output of a command, or of an answer to a webhook, that become a result.
pub const OUTPUT_BYTES_MAX: usize = 1_000_000;
/// How much of the end of a command's stderr is kept.
pub const COMPLAINT_BYTES_MAX: usize = 2_048;
/// Jobs that one mode runs side by side, if nothing is said.
pub const CONCURRENCY_DEFAULT: usize = 16;
/// Most that can be asked for.
pub const CONCURRENCY_MAX: usize = 1_000;
/// How long running jobs may go on when the server is told to stop, if nothing is said.
pub const GRACE_DEFAULT: Duration = Duration::from_secs(10);
/// Most programs that types set through the API may start.
pub const PROGRAMS_MAX: usize = 1_000;
/// Most secrets that requests are signed with at a time: two while one replaces the other.
pub const SECRETS_MAX: usize = 4;
/// Shortest secret, in bytes.
pub const SECRET_BYTES_MIN: usize = 24;
/// Longest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 64;
/// Most bytes of the head of an answer to a webhook.
pub const ANSWER_HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most addresses of one name that are tried in turn.
pub const ADDRESSES_MAX: usize = 8;
/// Subscriptions that one server passes events on for.
pub const SUBSCRIPTIONS_RELAYED_MAX: usize = 10_000;
/// Events that a relay reads at once.
pub const RELAY_PAGE: usize = 256;
/// Longest line of a NATS server.
pub const NATS_LINE_BYTES_MAX: u64 = 64 * 1024;
/// Most bytes of an acknowledgement of a NATS server.
pub const NATS_ACK_BYTES_MAX: usize = 64 * 1024;

/// Jobs of one tenant that tell of alerts and were not taken yet; what more there is to tell waits.
pub(crate) const ALERTS_UNTAKEN_MAX: usize = 1_000;
/// Alerts of one page when all of them are looked at.
pub(crate) const ALERTS_LOOKED_AT: usize = 500;
/// Pages of alerts in one state that are looked at.
pub(crate) const ALERT_PAGES_MAX: usize = 20;
/// How often alerts are looked at though nobody told of a change: another server may have died
/// before it told of one.
pub(crate) const ALERTS_LOOKED_AT_EVERY: Duration = Duration::from_secs(30);
/// Changes of alerts that come together are told of together.
pub(crate) const ALERTS_GATHERED: Duration = Duration::from_millis(200);
/// Alerts that changed longer ago than this were told of, or will not be.
pub(crate) const ALERTS_TOLD_WITHIN: Duration = Duration::from_secs(24 * 3_600);
/// Subscriptions of one page when all of them are looked at.
pub(crate) const SUBSCRIPTIONS_LOOKED_AT: usize = 100;
/// For how long a server holds a subscription that it sends for.
pub(crate) const HOLD: Duration = Duration::from_secs(15);
/// How often it says that it still does.
pub(crate) const HOLD_RENEWED: Duration = Duration::from_secs(5);
/// How often it notes where it stands, at most: what was sent since is sent again after a crash.
pub(crate) const NOTED_EVERY: Duration = Duration::from_secs(1);
/// How long a receiver has to take one event.
pub(crate) const TAKEN_WITHIN: Duration = Duration::from_secs(8);
/// How long a connection to a receiver is used. After that it is looked up anew.
pub(crate) const LINE_KEPT: Duration = Duration::from_secs(60);
/// A connection to a NATS server that was not used for this long is not trusted.
pub(crate) const NATS_TRUSTED: Duration = Duration::from_secs(30);

/// How long the lease of a job holds without a heartbeat of the loop that has it.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// How long one pull waits: a change of types that found no pull waiting is noticed by then.
pub(crate) const PULL_WAIT: Duration = Duration::from_secs(2);
/// How long a handler that was told to stop has before it is dropped. Those that need less go by
/// themselves.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(65);
/// How long to wait before the types are read again after that failed.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(1);

const _: () = assert!(TAKEN_WITHIN.as_secs() + HOLD_RENEWED.as_secs() < HOLD.as_secs());
