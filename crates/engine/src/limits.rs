//! Bounds of the engine. What concerns jobs is in the kernel's own `limits`.

use mainspring_kernel::limits::{BATCH_MAX, PAYLOAD_BYTES_MAX};

/// A batch that carries this many bytes takes no further request. Together with the bound on one
/// request's body it keeps what a commit holds in RAM small, however many callers come at once.
pub const BATCH_BYTES_MAX: usize = 16 << 20;
/// A pull that got this many bytes of payload gets no further job; the rest stays ready.
pub const PULL_BYTES_MAX: usize = 32 << 20;
/// What a command weighs besides the texts it carries, roughly.
pub(crate) const COMMAND_BYTES: usize = 64;

const _: () = assert!(PAYLOAD_BYTES_MAX <= BATCH_BYTES_MAX && PAYLOAD_BYTES_MAX <= PULL_BYTES_MAX);
const _: () =
    assert!(BATCH_MAX * COMMAND_BYTES <= BATCH_BYTES_MAX, "small commands count by number");
