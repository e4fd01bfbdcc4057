//! Handing out runs, plans and evaluations. The lease is the native one: `/api/v1/work/heartbeat`
//! renews it under `jobId` and `leaseToken`.

use super::wire::{PullRuns, PulledRuns};
use super::{plans, runs, translate, view};
use crate::answer::Reply;
use crate::ask::Ask;
use crate::json;
use crate::refusal::{self, Refusal};
use hyper::StatusCode;
use mainspring_kernel::Principal;

pub(super) async fn pull(mut ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let pull = {
        let wire: PullRuns = json::read(json::check(&ask.body)?)?;
        translate::pull(&wire, &who)?
    };
    ask.let_go_of_body();
    let grants = if pull.wait.is_zero() {
        ask.engine().pull(pull).await?
    } else {
        let _place = ask.place_to_wait(&who)?;
        let served = ask.while_live(&who, ask.engine().pull(pull)).await;
        served.ok_or_else(refusal::unauthorized)??
    };
    let mut runs = Vec::with_capacity(grants.len());
    for grant in &grants {
        let question = plans::question(&ask, &grant.job).await?;
        runs.push(view::asked(view::granted(&grant.job), question.as_ref()));
    }
    Ok(runs::bare(StatusCode::OK, &PulledRuns { runs }))
}
