//! Bounds of the worker loop. They hold whoever the employer is and whatever it answers.

use std::time::Duration;

/// Most jobs that one worker runs side by side.
pub const CONCURRENCY_MAX: usize = 10_000;
/// Shortest lease a worker asks for.
pub const LEASE_MIN: Duration = Duration::from_millis(100);
/// Longest lease a worker asks for.
pub const LEASE_MAX: Duration = Duration::from_secs(24 * 3600);
/// Longest lease of a job that its worker has not shown to have.
pub const FIRST_LEASE_MAX: Duration = Duration::from_secs(5);
/// How long one pull waits for work at most.
pub const WAIT_MAX: Duration = Duration::from_secs(60);
/// Longest grace when draining, and for a handler that was told to stop.
pub const GRACE_MAX: Duration = Duration::from_secs(366 * 24 * 3600);

/// How long an employer may take to answer, beyond what the call itself waits for. The client over
/// HTTP gives up a little earlier, by itself and with a better reason.
pub(crate) const ANSWER_WAIT_MAX: Duration = Duration::from_secs(35);
/// How long a worker that stops waits for its last poll after it has said so.
pub(crate) const LAST_POLL_MAX: Duration = Duration::from_secs(5);
/// A heartbeat that is not answered by then does not keep the next one from going out.
pub(crate) const BEAT_WAIT_MAX: Duration = Duration::from_secs(2);
/// A heartbeat that failed is repeated after this long at most.
pub(crate) const BEAT_AGAIN_MAX: Duration = Duration::from_millis(500);
/// Most leases that one heartbeat renews; more go out beside it.
pub(crate) const BEAT_ITEMS_MAX: usize = 2_000;
/// After a heartbeat failed, the next ones go out in this many parts.
pub(crate) const BEAT_PARTS_MAX: usize = 16;

/// Most report calls on the way at a time; what finishes meanwhile shares the next one.
pub(crate) const REPORTS_OUT_MAX: usize = 2;
/// A report that is on its way for longer does not keep the worker from polling.
pub(crate) const REPORT_FRESH: Duration = Duration::from_secs(1);
/// Most bytes of reports in one call, unless a single one is larger.
pub(crate) const REPORT_BYTES_MAX: usize = 512 * 1024;
/// What a report weighs besides the texts it carries, roughly.
pub(crate) const REPORT_BYTES: usize = 256;
/// Largest result, in bytes of JSON text.
pub(crate) const RESULT_BYTES_MAX: usize = 1 << 20;
/// Longest message that is sent; no more would be kept.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4_096;
/// Longest error code that is sent; no more would be kept.
pub(crate) const CODE_BYTES_MAX: usize = 100;

/// How often the effect ledger is asked in all before the attempt fails.
pub(crate) const EFFECT_TRIES_MAX: u32 = 5;
/// The wait after the first failed call; it doubles.
pub(crate) const BACKOFF: Duration = Duration::from_millis(50);
/// No wait between two calls is longer, unless the employer asks for more.
pub(crate) const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Longest wait between two calls that an employer can ask for.
pub(crate) const BACKOFF_ASKED_MAX: Duration = Duration::from_secs(30);
/// Longest rest of a worker that is sent home empty, or with jobs it cannot use, before its time.
pub(crate) const REST_MAX: Duration = Duration::from_millis(500);

const _: () = assert!(LEASE_MIN.as_millis() < FIRST_LEASE_MAX.as_millis());
const _: () = assert!(RESULT_BYTES_MAX > REPORT_BYTES_MAX, "a large result goes alone");
const _: () = assert!(CONCURRENCY_MAX / BEAT_PARTS_MAX <= BEAT_ITEMS_MAX);
const _: () = assert!(BACKOFF.as_millis() < REST_MAX.as_millis());
/// Largest value that is left for the next try, in bytes of JSON text.
pub(crate) const CHECKPOINT_BYTES_MAX: usize = 64 * 1024;
