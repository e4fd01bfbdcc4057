//! For tests of your own handlers: nothing is kept, and the clock is tokio's, so that a test with
//! `start_paused = true` lives through retries, delays and schedules without waiting for them.
//!
//! ```
//! use mainspring::{Failure, Task, testing};
//! use std::time::Duration;
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Flaky;
//!
//! impl Task for Flaky {
//!     const TYPE: &'static str = "flaky";
//!     type Output = u32;
//! }
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), mainspring::Error> {
//! // In a #[tokio::test(start_paused = true)]:
//! let spring = testing::mainspring().await?;
//! let worker = spring.worker().on(|_: Flaky, ctx| async move {
//!     match ctx.job().attempt {
//!         3 => Ok(3),
//!         _ => Err(Failure::retryable("NOT_YET", "try again")),
//!     }
//! });
//! let worker = worker.start();
//! let job = spring.submit(&Flaky).delay(Duration::from_secs(86_400)).await?;
//! assert_eq!(job.wait().await?, 3); // a day and two retries later, at once
//! worker.stop().await?;
//! # Ok(())
//! # }
//! ```

use crate::error::Error;
use crate::options::Options;
use crate::spring::Mainspring;
use mainspring_engine::Clock;
use mainspring_kernel::Timestamp;
use mainspring_kernel::shared_time::Jump;
use std::sync::Arc;
use tokio::time::Instant;

/// Midnight before the first day of 2030, UTC: when time begins in tests.
pub const BEGINNING: Timestamp = Timestamp::from_millis(1_893_456_000_000);

/// A Mainspring that keeps nothing and goes by tokio's clock, beginning at [`BEGINNING`].
///
/// # Errors
/// None that a test need expect.
pub async fn mainspring() -> Result<Mainspring, Error> {
    with(Options::default()).await
}

/// The same with settings.
///
/// # Errors
/// If a name is none.
pub async fn with(options: Options) -> Result<Mainspring, Error> {
    options.start_forgetful(Arc::new(TokioClock(Instant::now()))).await
}

/// Goes as tokio's clock does, from the instant it was made.
struct TokioClock(Instant);

impl Clock for TokioClock {
    fn now(&self) -> Timestamp {
        BEGINNING + self.0.elapsed()
    }

    fn jumps(&self) -> Arc<[Jump]> {
        Arc::default()
    }
}
