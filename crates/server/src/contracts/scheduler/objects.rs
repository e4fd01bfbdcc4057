//! Objects and gates in the words of this contract, which has no envelope.

use super::jobs::bare;
use crate::answer::Reply;
use crate::ask::Ask;
use crate::governed;
use crate::refusal::Refusal;
use hyper::StatusCode;
use mainspring_kernel::Principal;

pub(super) async fn put(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(bare(StatusCode::OK, &governed::put(&ask, &who).await?))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(bare(StatusCode::OK, &governed::get(&ask, &who).await?))
}

pub(super) async fn set_gate(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(bare(StatusCode::OK, &governed::set_gate(&ask, &who).await?))
}

pub(super) async fn get_gate(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(bare(StatusCode::OK, &governed::get_gate(&ask, &who).await?))
}

pub(super) async fn gates(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let items = governed::gates(&ask, &who).await?;
    Ok(bare(StatusCode::OK, &governed::GovernedGates { items }))
}
