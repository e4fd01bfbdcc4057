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

/// How long the lease of a job holds without a heartbeat of the loop that has it.
pub(crate) const LEASE: Duration = Duration::from_secs(15);
/// How long one pull waits: a change of types that found no pull waiting is noticed by then.
pub(crate) const PULL_WAIT: Duration = Duration::from_secs(2);
/// How long a handler that was told to stop has before it is dropped. Those that need less go by
/// themselves.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(65);
/// How long to wait before the types are read again after that failed.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_secs(1);
