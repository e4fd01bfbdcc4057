// Bounds of clients and of the worker loop, in milliseconds and bytes. The Rust worker has the same.

/** Where a server is found when nobody says. */
export const URL_DEFAULT = "http://127.0.0.1:7070";
/** How long an answer may take, beyond what the call itself waits for. */
export const ANSWER_WAIT = 30_000;
/** How often a call is tried in all. */
export const TRIES = 5;
/** The wait after the first failed try; it doubles, up to the second one. */
export const BACKOFF = 50;
export const BACKOFF_MAX = 2_000;
/** Longest wait between two calls that a server can ask for. */
export const BACKOFF_ASKED_MAX = 30_000;

export const CONCURRENCY_MAX = 10_000;
export const LEASE_MIN = 100;
export const LEASE_MAX = 24 * 3_600_000;
/** Longest lease of a job that its worker has not shown to have. */
export const FIRST_LEASE_MAX = 5_000;
export const WAIT_MAX = 60_000;
/** No timer of Node is longer. */
export const TIMER_MAX = 2 ** 31 - 1;
/** How long a worker that stops waits for its last poll after it has said so. */
export const LAST_POLL_MAX = 5_000;
/** A heartbeat that is not answered by then does not keep the next one from going out. */
export const BEAT_WAIT_MAX = 2_000;
/** A heartbeat that failed is repeated after this long at most. */
export const BEAT_AGAIN_MAX = 500;
/** Most leases that one heartbeat renews; after one failed, the next go out in so many parts. */
export const BEAT_ITEMS_MAX = 2_000;
export const BEAT_PARTS_MAX = 16;
/** Most report calls on the way at a time; what finishes meanwhile shares the next one. */
export const REPORTS_OUT_MAX = 2;
/** A report that is on its way for longer does not keep the worker from polling. */
export const REPORT_FRESH = 1_000;
/** Most bytes of reports in one call, unless a single one is larger. */
export const REPORT_BYTES_MAX = 512 * 1024;
export const RESULT_BYTES_MAX = 1 << 20;
export const MESSAGE_BYTES_MAX = 4_096;
export const CODE_BYTES_MAX = 100;
export const EFFECT_TRIES_MAX = 5;
/** Largest value that is left for the next try. */
export const CHECKPOINT_BYTES_MAX = 64 * 1024;
/** Longest rest of a worker that is sent home empty, or with jobs it cannot use, before its time. */
export const REST_MAX = 500;
