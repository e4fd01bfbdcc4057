//! Bounds of the HTTP surface. What concerns jobs is in the kernel's own `limits`.

use mainspring_kernel::limits::PAYLOAD_BYTES_MAX;

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
/// Longest error code a worker may report.
pub const ERROR_CODE_BYTES_MAX: usize = 100;
/// Most entries of one page of a list.
pub const PAGE_MAX: usize = 100;
/// Entries of one page of a list, unless asked for otherwise.
pub const PAGE_DEFAULT: usize = 20;
/// Moves fetched at a time for an event stream.
pub const STREAM_PAGE: usize = 256;
/// Seconds between signs of life on an event stream.
pub const STREAM_BEAT_SECS: u64 = 15;
/// Shortest text that is accepted as an admin token given from outside.
pub const ADMIN_TOKEN_BYTES_MIN: usize = 16;

const _: () = assert!(PAYLOAD_BYTES_MAX < BODY_BYTES_MAX, "the largest payload must fit a body");
const _: () = assert!(BODY_BYTES_MAX <= BATCH_BYTES_MAX);
