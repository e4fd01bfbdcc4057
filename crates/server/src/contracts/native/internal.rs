//! Moves by hand, for replay and rehearsal. Mounted only where the configuration says so, for the
//! internal role only, and under the same transition table as everything else. Beside this file,
//! what other systems call queues (`queue.rs`), outbox (`outbox.rs`) and workflows
//! (`workflows.rs`): other words for the same jobs, stream and questions.

pub(super) mod outbox;
pub(super) mod queue;
pub(super) mod workflows;

use super::{jobs, translate};
use crate::answer::Reply;
use crate::ask::{Ask, Query};
use crate::json;
use crate::refusal::{self, Refusal};
use mainspring_api as api;
use mainspring_kernel::command::{Ending, RunInternally};
use mainspring_kernel::error_class::is_retryable;
use mainspring_kernel::{Command, Failure, Principal, Receipt, StateName};

/// What `force_fail` reports unless told.
const FORCED: &str = "INTERNAL_DEBUG_FORCED_FAIL";
/// What `transient_fail` reports unless told.
const UPSTREAM: &str = "RAG_UPSTREAM_UNAVAILABLE";

pub(super) async fn run(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&["force_fail", "transient_fail", "error_code"])?;
    let ending = ending(failing(&query)?, query.get("error_code"))?;
    let job = jobs::visible(&ask, &who).await?.job.id;
    let command = Command::RunInternally(RunInternally { job, by: who.user, ending });
    let receipt = ask.engine().execute_one(command).await??;
    let Receipt::Ran { state, retry_count, item, retry_at, retry_after_ms } = receipt else {
        return Err(refusal::internal());
    };
    Ok(Reply::data(&api::internal::Ran {
        job_id: job.to_string(),
        final_status: state.as_str().to_owned(),
        retry_count,
        dlq_id: item.map(|item| item.to_string()),
        retry_after_ms,
        retry_at: retry_at.map(|at| api::Time(at.0)),
    }))
}

/// How an attempt is to fail, if it is: at once for good, or by the rules.
fn failing(query: &Query) -> Result<(bool, bool), Refusal> {
    Ok((query.flag("force_fail")?, query.flag("transient_fail")?))
}

fn ending((is_forced, is_transient): (bool, bool), code: Option<&str>) -> Result<Ending, Refusal> {
    if code.is_some_and(|code| !translate::is_code(code)) {
        let reason = "must be 1 to 100 capitals, digits and underscores";
        return Err(refusal::invalid("error_code", reason));
    }
    // A code has its class by the registry, whichever way the failure is brought about.
    let failure = |default: &str| {
        let code = code.unwrap_or(default);
        let retryable = is_retryable(code);
        Failure { code: code.into(), message: "failed by hand".into(), retryable }
    };
    match (is_forced, is_transient) {
        (true, true) => Err(refusal::invalid("force_fail", "cannot be combined")),
        (true, false) => Ok(Ending::DeadLetter(failure(FORCED))),
        (false, true) => Ok(Ending::Failure(failure(UPSTREAM))),
        (false, false) => Ok(Ending::Success),
    }
}

pub(super) async fn transition(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish: api::internal::Transition = json::read(json::check(&ask.body)?)?;
    let to = StateName::parse(&wish.new_status)
        .ok_or_else(|| refusal::invalid("new_status", "is not a state"))?;
    let job = jobs::visible(&ask, &who).await?.job.id;
    let command = Command::Transition { job, to, by: who.user.clone() };
    ask.engine().execute_one(command).await??;
    let after = ask.engine().job(job).await?.ok_or_else(|| jobs::unseen(&who))?.job;
    Ok(Reply::data(&api::internal::Moved {
        job_id: job.to_string(),
        status: after.state.name().as_str().to_owned(),
        retry_count: after.retry_count,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permanent_codes_are_never_retried() {
        assert!(matches!(ending((false, false), None), Ok(Ending::Success)));
        let Ok(Ending::Failure(failure)) = ending((false, true), None) else { panic!() };
        assert_eq!((&*failure.code, failure.retryable), (UPSTREAM, true));
        let permanent = Some("TEXT_ENCODING_UNSUPPORTED");
        let Ok(Ending::Failure(failure)) = ending((false, true), permanent) else { panic!() };
        assert!(!failure.retryable);
        assert!(ending((true, true), None).is_err());
    }

    #[test]
    fn forcing_a_failure_does_not_change_its_class() {
        for (code, retryable) in [
            (None, true),
            (Some(UPSTREAM), true),
            (Some("MY_OWN"), true),
            (Some("TEXT_ENCODING_UNSUPPORTED"), false),
        ] {
            let Ok(Ending::DeadLetter(failure)) = ending((true, false), code) else { panic!() };
            assert_eq!(&*failure.code, code.unwrap_or(FORCED));
            assert_eq!(failure.retryable, retryable, "{code:?}");
        }
    }
}
