//! What a worker can do: the types it asks for, and who does the work when a job has come. A roster
//! may change while the worker runs; most never do.

use crate::context::{BoxHandler, Context};
use crate::failure::Failure;
use crate::report;
use serde::Serialize;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

/// What a worker can do. The types are asked for before each pull, and the handler when a job has
/// come: one whose type was struck off meanwhile is given back. A pull that waits learns of a
/// change when it comes back; [`crate::Employer::leave`] brings it back at once.
pub trait Roster: Send + Sync + 'static {
    /// The types to ask for. While there are none nothing is asked for.
    fn types(&self) -> Arc<[String]>;

    /// Who does the work of a type.
    fn handler(&self, job_type: &str) -> Option<BoxHandler>;
}

/// A handler as workers keep it. What it answers becomes the job's result.
pub fn handler<F, Fut, T>(handler: F) -> BoxHandler
where
    F: Fn(Context) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<T, Failure>> + Send + 'static,
    T: Serialize,
{
    let handler = Arc::new(handler);
    Arc::new(move |ctx| {
        let handler = handler.clone();
        Box::pin(async move {
            let value = handler(ctx).await?;
            report::result_of(&value)
        })
    })
}

/// Handlers that stay as they are.
#[derive(Default)]
pub(crate) struct Fixed {
    handlers: BTreeMap<String, BoxHandler>,
    /// The names of the handlers.
    types: Arc<[String]>,
}

impl Fixed {
    pub(crate) fn of(handlers: BTreeMap<String, BoxHandler>) -> Self {
        Fixed { types: handlers.keys().cloned().collect(), handlers }
    }
}

impl Roster for Fixed {
    fn types(&self) -> Arc<[String]> {
        self.types.clone()
    }

    fn handler(&self, job_type: &str) -> Option<BoxHandler> {
        self.handlers.get(job_type).cloned()
    }
}
