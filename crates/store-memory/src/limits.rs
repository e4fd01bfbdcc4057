//! Bounds of the files, and why what the rules of a job allow always fits.

use crate::journal::FRAME_BYTES_MAX;
use crate::snapshot::CHUNK_BYTES_MAX;
use mainspring_kernel::limits::{
    EFFECT_BYTES_MAX, EFFECTS_MAX, KEY_BYTES_MAX, LABELS_MAX, MESSAGE_BYTES_MAX, NAME_BYTES_MAX,
    PAYLOAD_BYTES_MAX, RETRIES_MAX,
};

/// A commit's frame that has grown to this is closed; what the commit decides after that goes into
/// another frame. One decision is never torn apart, so a crash keeps or loses it whole.
pub(crate) const FRAME_BYTES: usize = 8 << 20;
/// Bytes of a snapshot gathered before they are written as one chunk.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;
/// Frames that may wait for the disk before commits have to.
pub(crate) const QUEUE_BYTES_MAX: usize = 64 << 20;
/// Moves of jobs that are kept in RAM for streams.
pub(crate) const MOVES_KEPT: usize = 1 << 15;
/// Moves that are in no file yet, at which the keeper writes one.
pub(crate) const MOVES_WRITTEN_FROM: u64 = 1 << 13;
/// Moves that may wait for a file in RAM. Streams lose the oldest if there are more: only a keeper
/// that cannot write comes that far.
pub(crate) const MOVES_HELD_MAX: usize = 1 << 18;
/// Moves of one file of the stream.
pub(crate) const MOVES_PER_FILE: usize = 1 << 14;
/// Moves of one chunk of such a file.
pub(crate) const MOVES_PER_CHUNK: usize = 1 << 10;
/// Bytes of all files of the stream; the oldest go when there are more, however young they are.
pub(crate) const STREAM_BYTES_MAX: u64 = 1 << 30;

/// A job with everything that hangs on it: payload and result, effects, labels and names, the
/// moves of all its attempts with a message each. The effects by number, not by their sum: jobs
/// that are older than the bound on the sum may have that many.
const JOB_BYTES_MAX: usize = 2 * PAYLOAD_BYTES_MAX
    + EFFECTS_MAX * (EFFECT_BYTES_MAX + NAME_BYTES_MAX)
    + LABELS_MAX * 2 * NAME_BYTES_MAX
    + 8 * (KEY_BYTES_MAX + NAME_BYTES_MAX)
    + 8 * (RETRIES_MAX as usize + 1) * (MESSAGE_BYTES_MAX + NAME_BYTES_MAX);

// The largest decision is a requeue: an item with its job, and the new job. Twice, for what the
// encoding adds.
const _: () =
    assert!(FRAME_BYTES + 4 * JOB_BYTES_MAX <= FRAME_BYTES_MAX, "a frame fits the journal");
const _: () = assert!(CHUNK_BYTES + 2 * JOB_BYTES_MAX <= CHUNK_BYTES_MAX, "a job fits a chunk");
