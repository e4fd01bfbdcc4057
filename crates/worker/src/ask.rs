//! Asking an employer: no call lasts for ever, and no defect of an employer is one of the loop.

use crate::error::Error;
use crate::limits::{BACKOFF, BACKOFF_ASKED_MAX, BACKOFF_MAX};
use futures_util::FutureExt;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

/// Makes a call that ends after `wait` at the latest. What the employer does before it gives out
/// its answer to wait for belongs into `call`, too: it may panic there.
pub(crate) async fn ask<T>(
    name: &'static str,
    wait: Duration,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Error> {
    // Nothing of ours is shared with the call but what it was given to read.
    match tokio::time::timeout(wait, AssertUnwindSafe(call).catch_unwind()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(Error::Panicked { call: name }),
        Err(_) => Err(Error::Late { call: name }),
    }
}

/// How long to wait before the next try.
pub(crate) fn pause(tries: u32, error: &Error) -> Duration {
    let grown = backoff(tries);
    error.wait().map_or(grown, |asked| asked.min(BACKOFF_ASKED_MAX).max(grown))
}

/// A wait that doubles with every try.
pub(crate) fn backoff(tries: u32) -> Duration {
    BACKOFF.saturating_mul(1 << tries.saturating_sub(1).min(16)).min(BACKOFF_MAX)
}
