//! Bounds of the engine. What concerns jobs is in the kernel's own `limits`.

use mainspring_kernel::limits::{BATCH_MAX, PAYLOAD_BYTES_MAX};
use std::time::Duration;

/// A batch that carries this many bytes takes no further request. Together with the bound on one
/// request's body it keeps what a commit holds in RAM small, however many callers come at once.
pub const BATCH_BYTES_MAX: usize = 16 << 20;
/// A pull that got this many bytes of payload gets no further job; the rest stays ready.
pub const PULL_BYTES_MAX: usize = 32 << 20;
/// How often one pull looks for further jobs in place of those that were held; the next one goes
/// on.
pub(crate) const TAKES_PER_PULL: usize = 32;
/// Held objects whose jobs one commit lets go, once a gate is opened.
pub(crate) const LET_GO_STEP: usize = 50;
/// What a command weighs besides the texts it carries, roughly.
pub(crate) const COMMAND_BYTES: usize = 64;

/// Requests that may wait for the commit loop before callers have to.
pub(crate) const QUEUE_MAX: usize = 8_192;

/// Ended jobs, and new waits, that are kept in mind for whoever waits; those beyond are found by
/// looking.
pub(crate) const ENDS_IN_MIND_MAX: usize = 100_000;
/// Jobs whose end is told at once; more follow.
pub(crate) const ENDS_AT_ONCE: usize = 200;
/// Waits that are told of it at once; more follow.
pub(crate) const SETTLED_AT_ONCE: usize = 1_000;
/// An entity is told of an end this often in vain; then it is left to look for itself.
pub(crate) const TELLS_MAX: u32 = 20;
/// Whether anybody waits for other jobs at all is looked up at most this often.
pub(crate) const WAITS_LOOK_EVERY: Duration = Duration::from_millis(500);
/// Jobs that an explanation names of those that are waited for.
pub(crate) const WAITED_FOR_SHOWN: usize = 5;

/// Jobs the reaper takes at once; more follow.
pub(crate) const REAP_MAX: usize = 1_000;
/// Overdue jobs that somebody outside holds and that the reaper passes over meanwhile.
pub(crate) const PASSED_OVER_MAX: usize = 10_000;
/// No sleep of the timers is longer, so that a clock set by hand is noticed.
pub(crate) const SLEEP_MAX: Duration = Duration::from_secs(30);
/// A failing store is asked again after this long, and so is a job that somebody outside holds.
pub(crate) const RETRY_AFTER: Duration = Duration::from_millis(500);

/// Jobs whose end callers wait for, looked up in one read.
pub(crate) const LOOK_MAX: usize = 1_000;
/// What other processes did is looked up at most this often.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(250);
/// It is looked up this often even if nobody told of anything: news may get lost.
pub(crate) const LOOK_UNTOLD_EVERY: Duration = Duration::from_secs(2);
/// A stream passes over moves of others at most this often.
pub(crate) const PASS_OVER_EVERY: Duration = Duration::from_millis(250);

/// Requests that may wait for what somebody outside holds; those beyond are refused at once.
pub(crate) const ASIDE_MAX: usize = 1_024;
/// How long a request waits for what somebody outside holds.
pub(crate) const ASIDE_WAIT: Duration = Duration::from_secs(2);
/// Keys, jobs and items that are known to be held by somebody outside.
pub(crate) const HELD_MAX: usize = 10_000;
/// What one request makes known as held, at most.
pub(crate) const HELD_PER_REQUEST_MAX: usize = 64;
/// Something that was held is tried again after this long, then after twice as long.
pub(crate) const HELD_PAUSE: Duration = Duration::from_millis(20);
/// What was held is tried again no later than after this long.
pub(crate) const HELD_PAUSE_MAX: Duration = Duration::from_millis(250);
/// Tenants whose submissions with a key are decided apart from others'.
pub(crate) const SUSPECTS_MAX: usize = 1_000;
/// How long a tenant is decided apart after one of its keys was last found held.
pub(crate) const SUSPECT_FOR: Duration = Duration::from_secs(10);
/// Attempts that may run into what is held before it is everybody else's turn.
pub(crate) const ATTEMPTS_PER_TURN: usize = 4;
/// Of the time of the one writer, those attempts take one part in this many.
pub(crate) const ASIDE_SHARE: u32 = 5;
/// Running jobs that are counted when a server starts.
pub(crate) const RESTORED_COUNTED_MAX: usize = 1_000_000;
/// Jobs read at once for a list that begins with the oldest.
pub(crate) const OLDEST_STEP: usize = 100;

/// Names and files that one look at the path of a trigger goes through.
pub(crate) const WALK_MAX: usize = 1_000_000;
/// Folders below a root that such a look goes down.
pub(crate) const WALK_DEPTH_MAX: usize = 64;
/// Folders that one server has watched for triggers; files in others are looked at now and then.
pub(crate) const WATCHES_MAX: usize = 16_384;
/// Looks at paths that are made one after the other on one thread.
pub(crate) const LOOKS_AT_ONCE: usize = 256;
/// The same path is looked at at most this often, whatever happens to its files.
pub(crate) const LOOK_GAP: Duration = Duration::from_millis(50);
/// A look that takes time is made again after this many times that long.
pub(crate) const LOOK_SHARE: u32 = 50;
/// What triggers are told before they take it in: with more, everything is looked at anew.
pub(crate) const TRIGGER_HINTS_MAX: usize = 50_000;
/// Tasks that triggers wait for, looked up at once.
pub(crate) const TASKS_LOOKED_UP: usize = 200;
/// Triggers read at once.
pub(crate) const TRIGGERS_STEP: usize = 500;

/// Things of a bulk operation that one commit takes.
pub(crate) const BULK_STEP: usize = 50;
/// No further ones once the payloads of their jobs come to this.
pub(crate) const BULK_BYTES_MAX: usize = 4 << 20;
/// Bulk operations that go on side by side.
pub(crate) const BULKS_AT_ONCE: usize = 50;
/// How often is looked for bulk operations that another server left behind.
pub(crate) const BULK_LOOK: Duration = Duration::from_secs(5);
/// How often is looked at the first jobs of a bulk operation.
pub(crate) const CANARY_LOOK: Duration = Duration::from_millis(250);
/// Dead letters, the latest, that are looked at to group them by their failure.
pub(crate) const GROUPED_MAX: usize = 10_000;
/// No further ones are looked at once their payloads come to this.
pub(crate) const GROUPED_BYTES_MAX: usize = 32 << 20;
/// Dead letters that are read at once for that.
pub(crate) const GROUPED_STEP: usize = 200;
/// Kinds of jobs, by tenant, queue and type, that are counted by themselves for metrics.
pub(crate) const METERED_KINDS_MAX: usize = 64;
/// Kinds of jobs that one commit looks back over to count a job with others of its kind.
pub(crate) const METERED_PER_COMMIT_MAX: usize = 16;
/// Kinds of jobs of one tenant whose starts are counted for estimates.
pub(crate) const PACED_KINDS_PER_TENANT_MAX: usize = 100;
/// Tenants whose starts are counted for estimates.
pub(crate) const PACED_TENANTS_MAX: usize = 2_000;
/// How often the entities of each kind are counted for metrics.
pub(crate) const CENSUS_EVERY: Duration = Duration::from_secs(30);
/// Entities of one kind are counted up to this many.
pub(crate) const CENSUS_MAX: usize = 100_000;
/// Tenants of which something out of the ordinary is remembered until it is looked at.
pub(crate) const REPORTED_TENANTS_MAX: usize = 10_000;
/// The latest of the moves that one tenant was refused in a row at one place whose times are kept:
/// so many of them still count when a move was made elsewhere before them.
pub(crate) const REFUSALS_DATED_MAX: usize = 32;
/// A job that starts less than this after it was due is not late to anybody.
pub(crate) const LATE_START_MIN: Duration = Duration::from_secs(1);
/// Types of one tenant of which it is remembered how late their jobs were.
pub(crate) const LATE_TYPES_MAX: usize = 256;
/// Alerts that stand and are looked up when a server starts.
pub(crate) const ALERTS_FOUND_MAX: usize = 1_000;
/// Alerts of one rule that a tenant can have about different things; further ones are not raised.
pub(crate) const ALERTS_PER_RULE_MAX: usize = 1_000;
/// Dead letters of one minute are counted up to this many.
pub(crate) const GROWTH_COUNTED_MAX: usize = 10_000;
/// The least jobs that have not ended for a share of them to mean anything.
pub(crate) const RATIO_JOBS_MIN: u64 = 20;
/// Tenants whose share of retries is looked up at a time.
pub(crate) const RATIOS_PER_TURN: usize = 200;
/// Retries that are counted for their share; of more it is the share of these.
pub(crate) const RETRYING_COUNTED_MAX: usize = 100_000;
/// Queues, the fullest, in which is looked for jobs that no worker asks for.
pub(crate) const QUEUES_LOOKED_AT: usize = 20;
/// Types of which something is promised that are looked at for jobs that are late.
pub(crate) const PROMISES_LOOKED_AT: usize = 100;
/// Types that no worker names of which is looked for jobs.
pub(crate) const TYPES_LOOKED_AT: usize = 50;
/// Jobs of each that are looked at, the latest.
pub(crate) const WAITING_LOOKED_AT: usize = 20;
/// Jobs that no worker asks for are counted up to this many.
pub(crate) const WAITING_COUNTED_MAX: usize = 1_000;

const _: () = assert!(PAYLOAD_BYTES_MAX <= BATCH_BYTES_MAX && PAYLOAD_BYTES_MAX <= PULL_BYTES_MAX);
const _: () =
    assert!(BATCH_MAX * COMMAND_BYTES <= BATCH_BYTES_MAX, "small commands count by number");
const _: () = assert!(ASIDE_MAX <= QUEUE_MAX);
const _: () = assert!(HELD_PER_REQUEST_MAX <= HELD_MAX);
const _: () = assert!(HELD_PAUSE.as_millis() < HELD_PAUSE_MAX.as_millis());
const _: () = assert!(HELD_PAUSE_MAX.as_millis() < ASIDE_WAIT.as_millis());
