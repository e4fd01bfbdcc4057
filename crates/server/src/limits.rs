//! Bounds of the HTTP surface. What concerns jobs is in the kernel's own `limits`.

use mainspring_kernel::limits::{EFFECT_BYTES_MAX, PAYLOAD_BYTES_MAX, TOGETHER_MAX};

/// Largest body of a request about one thing, unless configured.
pub const BODY_BYTES_MAX: usize = 2 << 20;
/// Largest body of a request about many things, unless configured.
pub const BATCH_BYTES_MAX: usize = 16 << 20;
/// Deepest nesting of arrays and objects in a body.
pub const JSON_DEPTH_MAX: usize = 64;
/// Longest trace id that is taken from a caller.
pub const TRACE_BYTES_MAX: usize = 128;
/// Longest request target.
pub const TARGET_BYTES_MAX: usize = 8 << 10;
/// Most entries of one page of a list.
pub const PAGE_MAX: usize = 100;
/// Entries of one page of a list, unless asked for otherwise.
pub const PAGE_DEFAULT: usize = 20;
/// Moves fetched at a time for an event stream.
pub const STREAM_PAGE: usize = 256;
/// Furthest position of an event stream that is taken from a caller: what has eighteen digits.
pub const POSITION_MAX: u64 = 999_999_999_999_999_999;
/// Seconds between signs of life on an event stream.
pub const STREAM_BEAT_SECS: u64 = 15;
/// Longest time for which a token that was replaced goes on working.
pub const TOKEN_OVERLAP_SECS_MAX: u64 = 30 * 86_400;
/// Shortest text that is accepted as an admin token given from outside.
pub const ADMIN_TOKEN_BYTES_MIN: usize = 16;
/// Longest text that a connection remembers of the token it showed last: whoever has none may send
/// much longer ones.
pub const SEEN_BYTES_MAX: usize = 256;

/// Connections at a time, unless configured.
pub const CONNECTIONS_MAX: usize = 4_096;
/// Connections beyond that, for probes and operators only.
pub const CONNECTIONS_KEPT: usize = 64;
/// Milliseconds a client may keep the server waiting before its connection makes room for another.
pub const EVICT_AFTER_MS: u64 = 1_000;
/// Seconds an answer may find no taker before its connection ends.
pub const WRITE_TIMEOUT_SECS: u64 = 20;
/// The least pace at which an answer must be taken: a trickle buys no more time than this.
pub const WRITE_BYTES_PER_SEC_MIN: usize = 4 << 10;
/// Bytes of an answer that the operating system holds beyond what it could send. All connections of
/// the machine share its memory for that, so clients that never read must not fill it.
pub const UNSENT_BYTES_MAX: u32 = 64 << 10;
/// Largest file of certificates, or of a key, that is read.
pub const TLS_FILE_BYTES_MAX: u64 = 1 << 20;
/// Event streams of one tenant that look for moves at once; where there are more, they take turns.
pub const STREAMS_PER_TURN: usize = 16;
/// Milliseconds of a turn of event streams.
pub const STREAM_TURN_MS: u64 = 16;
/// Milliseconds between two reads of the store for streams that take turns and show the same jobs.
pub const STREAM_READ_MS_MIN: u64 = 64;
/// Bytes of moves, in a contract's words, that are kept for the streams that show the same jobs.
pub const SHARED_BYTES_MAX: usize = 512 << 10;
/// Bytes of them that are sent in one go.
pub const SHARED_PIECE_BYTES_MAX: usize = 256 << 10;
/// Event streams at a time, unless configured.
pub const STREAMS_MAX: usize = 256;
/// Calls that wait (pulls, submissions, reads) at a time, unless configured.
pub const WAITS_MAX: usize = 4_096;
/// Bytes of request bodies held at a time, unless configured.
pub const BODIES_BYTES_MAX: usize = 256 << 20;
/// Bytes a body's share grows by as it arrives.
pub const BODY_STEP_BYTES: usize = 64 << 10;
/// Largest body that comes with a lease token and no access token.
pub const LEASE_BODY_BYTES_MAX: usize = 128 << 10;
/// Most items in a call that comes with lease tokens and no access token.
pub const LEASE_ITEMS_MAX: usize = 100;
/// Most types, and most queues, that one pull may name.
pub const PULL_NAMES_MAX: usize = 100;
/// Most firings that one preview shows.
pub const PREVIEW_MAX: usize = 100;
/// Firings that a preview shows, unless asked for otherwise.
pub const PREVIEW_DEFAULT: usize = 10;
/// Firings that one call fills in, unless asked for otherwise.
pub const BACKFILL_DEFAULT: usize = 100;
/// Most schedules of one tenant that a caller can make; those of templates come on top.
pub const SCHEDULES_PER_TENANT_MAX: usize = 10_000;
/// Most triggers of one tenant.
pub const TRIGGERS_PER_TENANT_MAX: usize = 20_000;
/// Most subscriptions of one tenant.
pub const SUBSCRIPTIONS_PER_TENANT_MAX: usize = 50;
/// Most templates of schedules in a configuration file.
pub const TEMPLATES_MAX: usize = 256;
/// Queues that have lines of their own in the metrics; the others are added up.
pub const METRICS_QUEUES_MAX: usize = 50;
/// Types that have lines of their own in the metrics; the others are added up.
pub const METRICS_TYPES_MAX: usize = 50;
/// Schedules of one page of the contract `/jobs`.
pub const SCHEDULES_PAGE_MAX: usize = 1_000;
/// Jobs of one page of the contract `/jobs`.
pub const JOBS_PAGE_MAX: usize = 1_000;
/// Bytes of payloads and results in one page of the contract `/jobs`; one job is always shown.
pub const JOBS_PAGE_BYTES_MAX: usize = 16 << 20;
/// Most jobs in one pull of the contract `/scheduler`.
pub const SCHEDULER_PULL_MAX: usize = 1_000;
/// Jobs in each state that the numbers of the contract `/scheduler` look at one by one.
pub const SCHEDULER_LOOK_MAX: usize = 1_000;
/// Most governed objects of one tenant; a job on another one leaves nothing behind.
pub const OBJECTS_PER_TENANT_MAX: usize = 100_000;
/// Most bulk operations of one tenant that are kept; old ones go by themselves.
pub const BULKS_PER_TENANT_MAX: usize = 1_000;
/// Things that the preview of a bulk operation shows.
pub const SAMPLES_MAX: usize = 10;
/// Pages of the stream that one look at the outbox goes through.
pub const OUTBOX_PAGES_MAX: usize = 40;
/// Submissions that were not told of are counted up to this many.
pub const OUTBOX_COUNTED_MAX: usize = 1_000;
/// Lines of an audit trail that are looked at in one go.
pub const AUDIT_PAGE: usize = 1_000;
/// Moves of jobs that are compared with their seals in one go; whole seals, at least one.
pub const AUDIT_MOVES_MAX: u64 = 20_000;
/// Moves that are sealed or compared at once.
pub const SEAL_PAGE: usize = 500;
/// Moves after which a seal comes sooner than configured, though not ten times as soon.
pub const SEAL_MOVES_MAX: u64 = 1_000_000;
/// Milliseconds that moves gather before they are looked at for the next seal.
pub const SEAL_PAUSE_MS: u64 = 1_000;
/// So many of the latest moves the stream has in any case, however large they are.
pub const STREAM_SURELY_KEPT: u64 = 30_000;
/// Longest id of a task; room is left in a name for the time of a firing.
pub const TASK_ID_BYTES_MAX: usize = 160;
/// Most runs and triggers that one plan may make.
pub const PLAN_CHILDREN_MAX: usize = 200;
/// Most records that one call takes over from another system.
pub const IMPORT_MAX: usize = 1_000;
/// Tasks whose names one stream of events remembers.
pub const FOLLOWED_MAX: usize = 1_024;
/// Largest form that the dashboard takes.
pub const FORM_BYTES_MAX: usize = 64 << 10;
/// Browsers that are signed in to the dashboard at a time; the one that came first goes.
pub const SESSIONS_MAX: usize = 1_024;
/// Browsers that are signed in with one token at a time; the one that came first goes.
pub const SESSIONS_PER_TOKEN_MAX: usize = 16;
/// Hours after which somebody has to sign in again.
pub const SESSION_HOURS_MAX: u64 = 12;
/// Minutes for which the sign-in link that `serve` prints holds.
pub const ONCE_MINUTES_MAX: u64 = 10;
/// Jobs on one page of the dashboard.
pub const DASHBOARD_PAGE: usize = 50;
/// Bytes of a payload, a result or an effect that a page of the dashboard shows.
pub const SHOWN_BYTES_MAX: usize = 32 << 10;
/// Moves of a job that a page of the dashboard shows: the latest.
pub const SHOWN_MOVES_MAX: usize = 200;
/// Things that need a person, of each kind, that the overview shows.
pub const NEEDS_SHOWN_MAX: usize = 5;
/// Jobs before a job, and as many behind it, that its page draws.
pub const KIN_SHOWN_MAX: usize = 6;
/// Samples of the server's pulse: an hour of them.
pub const PULSE_SAMPLES_MAX: usize = 360;
/// Seconds between two samples of the server's pulse.
pub const PULSE_EVERY_SECS: u64 = 10;
/// Callers whose jobs are counted for the dashboard, beside the whole server.
pub const WATCHED_SCOPES_MAX: usize = 64;
/// How far the jobs of one caller are counted for the dashboard, by state.
pub const WATCHED_JOBS_MAX: usize = 1_000;
/// How far the dashboard's preview of a bulk operation counts, unless it has to count further to
/// tell whether a second person has to agree.
pub const PREVIEWED_MAX: usize = 1_000;
/// Dead letters, the latest, that a page of the dashboard groups by failure while it is asked for.
pub const GROUPED_AT_ONCE_MAX: usize = 400;
/// Milliseconds between two signs to a page of the dashboard that something has moved.
pub const LIVE_PACE_MS_MIN: u64 = 700;

const _: () = assert!(PLAN_CHILDREN_MAX < TOGETHER_MAX, "a plan and all it makes are one commit");
const _: () = assert!(POSITION_MAX < i64::MAX as u64, "every store can write a position down");
const _: () = assert!(LEASE_BODY_BYTES_MAX < BODY_BYTES_MAX);
const _: () = assert!(EFFECT_BYTES_MAX < LEASE_BODY_BYTES_MAX, "an effect needs only its lease");
const _: () = assert!(BATCH_BYTES_MAX <= BODIES_BYTES_MAX / 4, "one body must fit a token's share");
const _: () = assert!(PAYLOAD_BYTES_MAX < BODY_BYTES_MAX, "the largest payload must fit a body");
const _: () = assert!(BODY_BYTES_MAX <= BATCH_BYTES_MAX);
