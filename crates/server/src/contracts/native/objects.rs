//! Governed objects and gates in the native envelope.

use crate::answer::Reply;
use crate::ask::Ask;
use crate::governed;
use crate::refusal::Refusal;
use mainspring_api as api;
use mainspring_kernel::Principal;

pub(super) async fn put(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&governed::put(&ask, &who).await?))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&governed::get(&ask, &who).await?))
}

pub(super) async fn set_gate(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&governed::set_gate(&ask, &who).await?))
}

pub(super) async fn get_gate(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&governed::get_gate(&ask, &who).await?))
}

pub(super) async fn gates(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    Ok(Reply::data(&api::Page::whole(governed::gates(&ask, &who).await?)))
}
