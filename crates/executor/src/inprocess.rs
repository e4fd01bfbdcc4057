//! Mode `inprocess`: handlers that whoever embeds the server has registered.

use crate::failing::HANDLER_NOT_FOUND;
use mainspring_worker::{BoxHandler, Context, Failure, Json, handler};
use serde::Serialize;
use std::collections::BTreeMap;
use std::future::Future;

/// Handlers by the types whose jobs they do.
///
/// ```
/// use mainspring_executor::Handlers;
///
/// let handlers = Handlers::new().on("send_mail", |ctx| async move {
///     let to: String = ctx.payload()?;
///     Ok(format!("sent to {to}"))
/// });
/// assert!(handlers.has("send_mail") && !handlers.has("print"));
/// ```
#[derive(Clone, Default)]
pub struct Handlers(BTreeMap<String, BoxHandler>);

impl Handlers {
    /// None at all.
    pub fn new() -> Self {
        Handlers::default()
    }

    /// With a handler for one more type. What it answers becomes the job's result.
    #[must_use]
    pub fn on<F, Fut, T>(mut self, job_type: impl Into<String>, work: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, Failure>> + Send + 'static,
        T: Serialize,
    {
        self.0.insert(job_type.into(), handler(work));
        self
    }

    /// Whether there is one for this type.
    pub fn has(&self, job_type: &str) -> bool {
        self.0.contains_key(job_type)
    }

    /// The handler of a type; where there is none, one that says so.
    pub(crate) fn handler(&self, job_type: &str) -> BoxHandler {
        self.0.get(job_type).cloned().unwrap_or_else(|| handler(missing))
    }
}

async fn missing(ctx: Context) -> Result<Option<Json>, Failure> {
    let job_type = &ctx.job().job_type;
    let message = format!("no handler is registered for type {job_type} in this process");
    Err(Failure::permanent(HANDLER_NOT_FOUND, message))
}
