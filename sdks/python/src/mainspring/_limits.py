"""Bounds of clients and of the worker loop, in seconds and bytes. The Rust worker has the same."""

#: Where a server is found when nobody says.
URL_DEFAULT = "http://127.0.0.1:7070"
#: How long an answer may take, beyond what the call itself waits for.
ANSWER_WAIT = 30.0
CONNECT_WAIT = 5.0
#: How often a call is tried in all.
TRIES = 5
#: The wait after the first failed try; it doubles, up to the second one.
BACKOFF = 0.05
BACKOFF_MAX = 2.0
#: Longest wait between two calls that a server can ask for.
BACKOFF_ASKED_MAX = 30.0
#: Most connections that are kept open without a call.
IDLE_CONNECTIONS_MAX = 8

CONCURRENCY_MAX = 10_000
LEASE_MIN = 0.1
LEASE_MAX = 24 * 3600.0
#: Longest lease of a job that its worker has not shown to have.
FIRST_LEASE_MAX = 5.0
WAIT_MAX = 60.0
GRACE_MAX = 366 * 24 * 3600.0
#: How long a worker that stops waits for its last poll after it has said so.
LAST_POLL_MAX = 5.0
#: A heartbeat that is not answered by then does not keep the next one from going out.
BEAT_WAIT_MAX = 2.0
#: A heartbeat that failed is repeated after this long at most.
BEAT_AGAIN_MAX = 0.5
#: Most leases that one heartbeat renews; after one failed, the next go out in so many parts.
BEAT_ITEMS_MAX = 2_000
BEAT_PARTS_MAX = 16
#: Most report calls on the way at a time; what finishes meanwhile shares the next one.
REPORTS_OUT_MAX = 2
#: A report that is on its way for longer does not keep the worker from polling.
REPORT_FRESH = 1.0
#: Most bytes of reports in one call, unless a single one is larger.
REPORT_BYTES_MAX = 512 * 1024
RESULT_BYTES_MAX = 1 << 20
MESSAGE_BYTES_MAX = 4_096
CODE_BYTES_MAX = 100
EFFECT_TRIES_MAX = 5
#: Longest rest of a worker that is sent home empty, or with jobs it cannot use, before its time.
REST_MAX = 0.5
#: Largest value that is left for the next try, in bytes of JSON.
CHECKPOINT_BYTES_MAX = 64 * 1024
