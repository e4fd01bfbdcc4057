//! What a handler sees of its job, and how it says that it failed: as any handler of the worker
//! loop, with the client at hand.

pub use mainspring_worker::{Failure, Job, StopReason};

use crate::client::Client;
use std::ops::Deref;

/// A running attempt, as its handler sees it: [`mainspring_worker::Context`] and the client.
///
/// ```no_run
/// # use mainspring_sdk::{Context, Failure};
/// # async fn charge() -> Result<String, Failure> { Ok("receipt".into()) }
/// async fn handler(ctx: Context) -> Result<String, Failure> {
///     let receipt = ctx.step("charge", || async { charge().await }).await?;
///     Ok(receipt)
/// }
/// ```
#[derive(Clone)]
pub struct Context {
    pub(crate) attempt: mainspring_worker::Context,
    pub(crate) client: Client,
}

impl Context {
    /// The client of the worker, for submitting more jobs.
    pub fn client(&self) -> &Client {
        &self.client
    }
}

impl Deref for Context {
    type Target = mainspring_worker::Context;

    fn deref(&self) -> &Self::Target {
        &self.attempt
    }
}
