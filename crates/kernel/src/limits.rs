//! Every bound that the rules know as a named constant, and the relations between them.

/// Largest payload or result, in bytes of JSON text.
pub const PAYLOAD_BYTES_MAX: usize = 1 << 20;
/// Deepest nesting of arrays and objects in a payload that comes with an idempotency key.
pub const PAYLOAD_DEPTH_MAX: usize = 64;
/// Longest name of a type, queue, tenant, user, worker or effect.
pub const NAME_BYTES_MAX: usize = 200;
/// Longest idempotency key or scope.
pub const KEY_BYTES_MAX: usize = 512;
/// Longest error code that is kept; a longer one is cut.
pub const ERROR_CODE_BYTES_MAX: usize = 100;
/// Longest error or reason text that is kept; longer text is cut.
pub const MESSAGE_BYTES_MAX: usize = 4096;
/// What keeping a job costs besides what the caller sent, counted against the backlog.
pub const JOB_BYTES: usize = 512;
/// What a job costs besides for each job that it names to wait for.
pub const AFTER_BYTES: usize = 100;
/// Room for jobs that have not ended, unless configured or chosen by the memory of the machine.
pub const BACKLOG_BYTES_DEFAULT: u64 = 64 << 30;
/// Most labels on one job.
pub const LABELS_MAX: usize = 32;
/// Most jobs in one submit call, and most items in one work call.
pub const BATCH_MAX: usize = 10_000;
/// Most commands that are taken all or none.
pub const TOGETHER_MAX: usize = 1_000;
/// Most jobs in one pull.
pub const PULL_MAX: usize = 10_000;
/// Matches of a list that are counted; of more it is only told that there are more.
pub const TOTAL_MAX: usize = 10_000;
/// Most labels one list may ask for.
pub const LABELS_WANTED_MAX: usize = 4;
/// Most committed effects of one job.
pub const EFFECTS_MAX: usize = 1_000;
/// Largest committed effect value, in bytes of JSON text.
pub const EFFECT_BYTES_MAX: usize = 64 * 1024;
/// Most bytes of all committed effects of one job, names and values.
pub const EFFECTS_BYTES_MAX: usize = 4 << 20;
/// Most retries a job may ask for.
pub const RETRIES_MAX: u16 = 1_000;
/// Retries of a job whose type does not say.
pub const RETRIES_DEFAULT: u16 = 3;
/// Priority of a job whose type does not say.
pub const PRIORITY_DEFAULT: u8 = 50;
/// Start-to-close timeout of a job whose type does not say.
pub const TIMEOUT_MS_DEFAULT: u32 = 900_000;
/// Shortest start-to-close timeout.
pub const TIMEOUT_MS_MIN: u32 = 1;
/// Longest start-to-close timeout: seven days.
pub const TIMEOUT_MS_MAX: u32 = 7 * 24 * 3600 * 1000;
/// Shortest time that can be promised of a type: a second is late to nobody.
pub const SLA_MS_MIN: u32 = 1_000;
/// Lease of a pull that does not say.
pub const LEASE_MS_DEFAULT: u32 = 60_000;
/// Shortest lease.
pub const LEASE_MS_MIN: u32 = 100;
/// Longest lease: one day.
pub const LEASE_MS_MAX: u32 = 24 * 3600 * 1000;
/// Furthest `run_at` ahead of now: ten years.
pub const RUN_AHEAD_MS_MAX: u64 = 10 * 366 * 24 * 3600 * 1000;
/// Longest delay a worker may choose for a retry: thirty days.
pub const RETRY_DELAY_MS_MAX: u64 = 30 * 24 * 3600 * 1000;
/// Longest that a job may ask to wait for a worker, at each try: thirty days.
pub const QUEUE_TIMEOUT_MS_MAX: u32 = 30 * 24 * 3600 * 1000;
/// Longest that a worker may put a job off at a time: thirty days.
pub const SNOOZE_MS_MAX: u64 = 30 * 24 * 3600 * 1000;
/// How often workers may put one job off.
pub const SNOOZES_MAX: u16 = 1_000;
/// Longest text about a job's progress that is kept; longer text is cut.
pub const PROGRESS_MESSAGE_BYTES_MAX: usize = 500;
/// Largest value that a worker leaves for the next try, in bytes of JSON text.
pub const CHECKPOINT_BYTES_MAX: usize = 64 * 1024;
/// Most jobs that one job can name to wait for. Of a batch it can follow all.
pub const AFTER_MAX: usize = 100;
/// What a job waits for is looked at after this long, should no word of it come; then after twice
/// as long each time, up to a minute.
pub const WAIT_LOOK_MS_FIRST: u64 = 2_000;
/// Jobs of a batch that one such look takes in; the rest follow at once.
pub const WAIT_LOOK_JOBS: usize = 1_000;
/// Of so many jobs in a row that a queue of a tenant hands out, one at most is a retry, as long as
/// others are ready.
pub const RETRY_EVERY: u32 = 20;
/// Most turns of a tenant to one of another.
pub const TENANT_WEIGHT_MAX: u16 = 100;
/// Highest rate at which jobs of a type may be handed out, a second.
pub const RATE_PER_SECOND_MAX: u32 = 100_000;
/// Most jobs that a rate limit lets through at once after a pause.
pub const RATE_BURST_MAX: u32 = 10_000;
/// Lowest rate, in billionths of a job a second: about one a day. A bucket that is full is
/// forgotten, so there are never more of them than jobs were handed out while one fills up.
pub const RATE_NANOS_MIN: u64 = 10_000;
/// Most attempts that a circuit looks back at.
pub const CIRCUIT_CALLS_MAX: u8 = 100;
/// Longest time for which a circuit stays open before a job is tried: one day.
pub const CIRCUIT_OPEN_SECS_MAX: u32 = 24 * 3600;
/// For so long a circuit is kept in mind after its type last ran: thirty days.
pub const CIRCUIT_KEPT_MS: u64 = 30 * 24 * 3600 * 1000;
/// Most arguments of a command that runs the jobs of a type.
pub const EXECUTOR_ARGS_MAX: usize = 100;
/// Most variables such a command is given besides those of its job.
pub const EXECUTOR_VARIABLES_MAX: usize = 100;
/// Most bytes of such a command with its arguments, variables and directory.
pub const EXECUTOR_BYTES_MAX: usize = 16 * 1024;
/// What such a command has between SIGTERM and SIGKILL, if nothing is said.
pub const EXECUTOR_KILL_MS_DEFAULT: u32 = 5_000;
/// The most it can be given.
pub const EXECUTOR_KILL_MS_MAX: u32 = 60_000;
/// Longest address that jobs of a type are sent to.
pub const EXECUTOR_URL_BYTES_MAX: usize = 2_048;
/// How long such an address may take to answer, if nothing is said.
pub const EXECUTOR_ANSWER_MS_DEFAULT: u32 = 30_000;
/// Longest long poll.
pub const WAIT_MS_MAX: u64 = 60_000;
/// A DLQ move that stopped half way is finished after this long.
pub const DLQ_UNFINISHED_MS: u64 = 30_000;
/// How long an idempotency key stays taken after its job ended, unless configured: one day.
pub const KEY_WINDOW_SECS_DEFAULT: u32 = 24 * 3600;
/// What one point of priority is worth in waiting time: a job this much older outranks it.
pub const AGING_MICROS_PER_POINT: i64 = 1_000_000;
/// Longest name of a governed object.
pub const OBJECT_ID_BYTES_MAX: usize = 160;
/// Jobs that one governed object can have parked; more of them look for themselves now and then.
pub const PARKED_MAX: usize = 100;
/// What a closed gate holds is looked at this often, should no word of its opening come.
pub const HELD_LOOK_MS: u64 = 60_000;
/// How long a request that takes a second person can be approved: seven days. Then it has to be
/// asked for again.
pub const APPROVAL_WITHIN_MS: u64 = 7 * 24 * 3_600_000;
/// Changes by users of one tenant that its audit trail takes in a day; more are refused. Operators
/// are not bound.
pub const AUDIT_PER_DAY_MAX: u32 = 100_000;
/// Refused attempts of one tenant that its audit trail takes in a day; more are not written.
pub const AUDIT_DENIALS_PER_DAY_MAX: u32 = 1_000;
/// Longest text of what a thing was before or after, in an entry of the audit trail; longer text is
/// told by its digest.
pub const AUDIT_TEXT_BYTES_MAX: usize = 4096;
/// Most references to evidence in an entry of the audit trail.
pub const AUDIT_EVIDENCE_MAX: usize = 16;
/// How long the alert of a job that failed for good is kept: seven days.
pub const ALERT_KEEP_MS: u64 = 7 * 24 * 3_600_000;
/// An alert that is to clear and is not looked at for this long gets another chance to be seen.
pub const ALERT_LATE_MS: u64 = 10_000;
/// Types that are named of dead letters with the same failure.
pub const GROUP_TYPES_MAX: usize = 10;
/// Most things that one bulk operation may be about.
pub const BULK_MAX: u64 = 100_000;
/// More things than this take a second person, unless configured.
pub const BULK_APPROVAL_ABOVE_DEFAULT: u64 = 1_000;
/// How long a second person may take to agree to a bulk operation: one day.
pub const BULK_WAIT_MS: u64 = 24 * 3_600_000;
/// How long a bulk operation is kept after its end: 30 days.
pub const BULK_KEEP_MS: u64 = 30 * 24 * 3_600_000;
/// Most jobs that go first to see how they end.
pub const CANARY_MAX: u32 = 100;
/// Outcomes of a bulk operation that are kept together.
pub const OUTCOMES_PER_PAGE: usize = 50;
/// Longest text of a cron pattern.
pub const CRON_BYTES_MAX: usize = 256;
/// Most dates and ranges that one schedule may leave out.
pub const EXCLUSIONS_MAX: usize = 366;

/// Largest payload of a schedule's jobs, in bytes of JSON text: a schedule is rewritten as a whole
/// whenever it fires.
pub const SCHEDULE_PAYLOAD_BYTES_MAX: usize = 16 * 1024;
/// What became of a schedule's latest firings is kept in this many entries; neighbours with the
/// same fate and no job share one. Its jobs are found by their label `schedule_id` beyond that.
pub const SCHEDULE_HISTORY_MAX: usize = 100;
/// For which instants a schedule has had jobs is kept in this many stretches of firings in a row;
/// beyond that, those with the least between them count as one.
pub const FIRED_STRETCHES_MAX: usize = 32;
/// Longest interval of a schedule: 366 days.
pub const SCHEDULE_INTERVAL_SECS_MAX: u64 = 366 * 24 * 3600;
/// Most missed firings that a schedule can ask to have made up for.
pub const MISFIRE_LIMIT_MAX: u32 = 1_000;
/// Missed firings that are made up for, unless the schedule says.
pub const MISFIRE_LIMIT_DEFAULT: u32 = 100;
/// Longest span over which a schedule can spread the starts of its jobs: one day.
pub const JITTER_SECS_MAX: u32 = 24 * 3600;
/// Firings that one turn of a schedule looks at; what else is due takes further turns.
pub const FIRINGS_LOOKED_AT_MAX: usize = 1_500;
/// Most firings of a schedule that one call fills in.
pub const BACKFILL_MAX: usize = 1_000;
/// Jobs of a schedule whose end it waits to hear of, at most; the oldest are forgotten.
pub const OUTSTANDING_MAX: usize = 16;
/// A firing that comes more than this after its instant is late: it is told so, and it is skipped
/// if the schedule skips what it missed.
pub const LATE_MS: u64 = 1_000;
/// A schedule that waits for a job to end looks at it this often, should no word of it come.
pub const LOOK_AGAIN_MS: u64 = 60_000;

/// How deep a trigger's condition may be nested.
pub const TRIGGER_DEPTH_MAX: usize = 8;
/// Most parts of a trigger's condition, `and`, `or` and leaves.
pub const TRIGGER_NODES_MAX: usize = 64;
/// Most leaves of a trigger's condition: what is known of each is rewritten with the trigger.
pub const TRIGGER_LEAVES_MAX: usize = 16;
/// Longest path of a condition about files.
pub const TRIGGER_PATH_BYTES_MAX: usize = 1_024;
/// Longest prompt of a trigger's runs, and longest question of its condition.
pub const TRIGGER_PROMPT_BYTES_MAX: usize = 16 * 1024;
/// Evaluations of a trigger that are kept, the latest.
pub const TRIGGER_LOG_MAX: usize = 32;
/// Longest id of a run, a plan or a trigger; room is left for what stands before it in a subject.
pub const RUN_ID_BYTES_MAX: usize = 160;
/// Highest priority of a run.
pub const RUN_PRIORITY_MAX: u8 = 10;
/// Priority of a run that does not say.
pub const RUN_PRIORITY_DEFAULT: u8 = 5;
/// What one point of priority is worth in waiting time in the queue of runs: one minute.
pub const RUN_AGING_MICROS_PER_POINT: i64 = 60_000_000;
/// How long one attempt at a run or a plan may take, unless it says: ten minutes.
pub const RUN_TIMEOUT_MS_DEFAULT: u32 = 600_000;
/// How long an evaluation of a condition may take: two minutes.
pub const EVALUATION_TIMEOUT_MS: u32 = 120_000;
/// Most bytes of a question to a person, with its options and default, and of an answer.
pub const QUESTION_BYTES_MAX: usize = 8 * 1024;
/// Most answers that a question offers.
pub const QUESTION_OPTIONS_MAX: usize = 50;
/// How long a schedule that has ended is kept: 30 days.
pub const SCHEDULE_KEEP_MS: u64 = 30 * 24 * 3_600_000;
/// How long a question that nobody waits for any more is kept, and then looked at anew until its
/// job has ended: seven days.
pub const QUESTION_KEEP_MS: u64 = 7 * 24 * 3_600_000;
/// How long an answer is waited for, unless the question says: one hour.
pub const QUESTION_MS_DEFAULT: u64 = 3_600_000;
/// How long a job that was interrupted by hand waits for a person: one day.
pub const INTERRUPT_MS: u64 = 24 * 3_600_000;
/// Longest that an answer is waited for: 90 days.
pub const QUESTION_MS_MAX: u64 = 90 * 24 * 3_600_000;
/// Most questions that one job may ask.
pub const QUESTIONS_PER_JOB_MAX: u32 = 100;
/// Runs of one tenant that may be executed at a time, unless configured.
pub const RUN_CONCURRENCY_DEFAULT: u32 = 3;

/// Longest beginning of the subjects that a subscription publishes under.
pub const SUBJECT_BYTES_MAX: usize = 128;
/// Most types, and most queues, that a subscription can ask for.
pub const SUBSCRIPTION_NAMES_MAX: usize = 100;
/// Submissions that a consumer can be told of before their turn.
pub const SUBSCRIPTION_AHEAD_MAX: usize = 1_000;
/// Gaps that a subscription remembers, the latest.
pub const SUBSCRIPTION_GAPS_MAX: usize = 16;
/// How long the secret before the present one still signs, unless the rotation says: one day.
pub const SUBSCRIPTION_OVERLAP_MS_DEFAULT: u64 = 24 * 3_600_000;
/// Longest that it may: seven days.
pub const SUBSCRIPTION_OVERLAP_MS_MAX: u64 = 7 * 24 * 3_600_000;
/// Wait before the first repeat of what a subscription's receiver did not take; it doubles.
pub const SUBSCRIPTION_WAIT_MS_FIRST: u64 = 500;
/// Longest wait between two tries of a subscription.
pub const SUBSCRIPTION_WAIT_MS_MAX: u64 = 60_000;

const _: () = assert!((MISFIRE_LIMIT_MAX as usize) < FIRINGS_LOOKED_AT_MAX);
const _: () = assert!(SCHEDULE_PAYLOAD_BYTES_MAX <= PAYLOAD_BYTES_MAX);
const _: () = assert!(EFFECT_BYTES_MAX <= PAYLOAD_BYTES_MAX);
const _: () = assert!(WAIT_LOOK_MS_FIRST < LOOK_AGAIN_MS);
const _: () = assert!(EFFECT_BYTES_MAX + NAME_BYTES_MAX <= EFFECTS_BYTES_MAX);
const _: () = assert!(LEASE_MS_MIN < LEASE_MS_DEFAULT && LEASE_MS_DEFAULT < LEASE_MS_MAX);
const _: () = assert!(RETRIES_DEFAULT <= RETRIES_MAX);
const _: () = assert!(TIMEOUT_MS_MIN < TIMEOUT_MS_DEFAULT && TIMEOUT_MS_DEFAULT < TIMEOUT_MS_MAX);
