//! Which types are executed here, and how: what the registry says, read anew whenever it changes.

use crate::inprocess::Handlers;
use crate::process::typed::Commands;
use crate::webhook::Webhooks;
use mainspring_kernel::TypeSpec;
use mainspring_kernel::executor::{Executor, Mode};
use mainspring_kernel::registry::TASK;
use mainspring_worker::{BoxHandler, Context, Outcome, Roster};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

/// The types that are executed here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan(BTreeMap<String, Executor>);

impl Plan {
    /// What holds for these types where a deployment says `otherwise`.
    pub(crate) fn of(types: &[TypeSpec], otherwise: &Executor) -> Self {
        let mut plan = BTreeMap::new();
        // There without being registered; an entry of its own comes after it.
        let built_in = [TypeSpec::task()];
        for spec in built_in.iter().chain(types) {
            let executor = spec.executor.as_deref().unwrap_or(otherwise);
            let name = spec.name.as_str().to_owned();
            match executor.mode() {
                Mode::Pull => plan.remove(&name),
                Mode::InProcess | Mode::Process | Mode::Webhook => {
                    plan.insert(name, executor.clone())
                }
            };
        }
        debug_assert!(built_in.iter().all(|spec| spec.name.as_str() == TASK));
        Plan(plan)
    }

    /// The types of one mode.
    pub(crate) fn types(&self, mode: Mode) -> Arc<[String]> {
        let of_mode = self.0.iter().filter(|(_, executor)| executor.mode() == mode);
        of_mode.map(|(name, _)| name.clone()).collect()
    }
}

/// Everything that executes.
pub(crate) struct Means {
    pub(crate) handlers: Handlers,
    pub(crate) commands: Commands,
    pub(crate) webhooks: Webhooks,
}

/// What the loop of one mode does at present.
pub(crate) struct Desk {
    pub(crate) mode: Mode,
    means: Arc<Means>,
    /// The types of the mode with how they are executed, and their names.
    present: RwLock<(Arc<Plan>, Arc<[String]>)>,
}

impl Desk {
    pub(crate) fn new(mode: Mode, means: Arc<Means>) -> Self {
        Desk { mode, means, present: RwLock::default() }
    }

    /// Goes by `plan` from now on; answers whether other types are asked for than before.
    pub(crate) fn change(&self, plan: &Arc<Plan>) -> bool {
        let types = plan.types(self.mode);
        let mut present = self.present.write().unwrap_or_else(PoisonError::into_inner);
        let has_changed = present.1 != types;
        *present = (plan.clone(), types);
        has_changed
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.types().is_empty()
    }
}

impl Roster for Desk {
    fn types(&self) -> Arc<[String]> {
        self.present.read().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    fn handler(&self, job_type: &str) -> Option<BoxHandler> {
        let plan = self.present.read().unwrap_or_else(PoisonError::into_inner).0.clone();
        let executor = plan.0.get(job_type).filter(|executor| executor.mode() == self.mode)?;
        if *executor == Executor::InProcess {
            return Some(told(self.mode, self.means.handlers.handler(job_type)));
        }
        let (executor, means) = (executor.clone(), self.means.clone());
        let outside: BoxHandler = Arc::new(move |ctx| {
            let (executor, means) = (executor.clone(), means.clone());
            Box::pin(async move { means.work(&ctx, &executor).await })
        });
        Some(told(self.mode, outside))
    }
}

impl Means {
    async fn work(&self, ctx: &Context, executor: &Executor) -> Outcome {
        match executor {
            Executor::Process(process) => self.commands.work(ctx, process).await,
            Executor::Webhook(webhook) => self.webhooks.work(ctx, webhook).await,
            Executor::InProcess => self.handlers.handler(&ctx.job().job_type)(ctx.clone()).await,
            // Never planned: such jobs are left to those who ask for them.
            Executor::Pull => Err(mainspring_worker::Failure::release("the type is pulled")),
        }
    }
}

/// The same handler, whose failures are logged with what it takes to follow them.
fn told(mode: Mode, handler: BoxHandler) -> BoxHandler {
    Arc::new(move |ctx: Context| {
        let work = handler(ctx.clone());
        Box::pin(async move {
            let outcome = work.await;
            if let Err(failure) = &outcome {
                let (job, executor) = (ctx.job(), mode.as_str());
                let (dispatch_id, trace_id) = (job.dispatch_id(), &*job.trace_id);
                let job_type = &*job.job_type;
                tracing::info!(executor, dispatch_id, trace_id, job_type, %failure, "not done");
            }
            outcome
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::JobType;

    fn spec(name: &str, executor: Option<Executor>) -> TypeSpec {
        let executor = executor.map(Box::new);
        TypeSpec { executor, ..TypeSpec::plain(JobType::new(name).unwrap()) }
    }

    #[test]
    fn a_type_goes_its_own_way_or_that_of_the_deployment() {
        let types = [
            spec("a", None),
            spec("b", Some(Executor::InProcess)),
            spec("c", Some(Executor::Pull)),
        ];
        let pulled = Plan::of(&types, &Executor::Pull);
        assert_eq!(*pulled.types(Mode::InProcess), ["b".to_owned()]);
        assert!(pulled.types(Mode::Pull).is_empty());
        let inside = Plan::of(&types, &Executor::InProcess);
        assert_eq!(*inside.types(Mode::InProcess), ["a", "b", "task"].map(str::to_owned));
        let types = [spec("task", Some(Executor::Pull))];
        assert_eq!(Plan::of(&types, &Executor::InProcess), Plan::default());
    }
}
