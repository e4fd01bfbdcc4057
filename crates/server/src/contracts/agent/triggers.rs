//! Triggers in the agent contract: the document's own shapes around what is told in
//! `server/src/triggers.rs`.

use super::runs::bare;
use super::translate::version;
use super::view::SCHEMA_VERSION;
use crate::answer::Reply;
use crate::ask::Ask;
use crate::json;
use crate::refusal::Refusal;
use crate::triggers::{self, Spelling, Wish};
use hyper::StatusCode;
use mainspring_api as api;
use mainspring_api::Time;
use mainspring_kernel::limits::TOTAL_MAX;
use mainspring_kernel::{Entity, Principal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// The parameters of the list.
pub(super) const LIST: [(&str, &str); 4] = [
    ("status", "Only those that are `active`, or `paused`."),
    ("type", "Only those of this type."),
    ("limit", "How many entries, 1 to 100; 20 if left out."),
    ("cursor", "Where to go on: `nextCursor` of the page before, with the same parameters."),
];

/// The wish for a trigger. Times are RFC 3339 in UTC.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CreateTrigger {
    /// 1 or 2; 1 if left out. What is shown is always 2.
    schema_version: Option<u32>,
    /// The name, unique in the tenant; one is made if it is left out.
    id: Option<String>,
    /// `recurring`, `scheduled` or `conditional`.
    #[serde(rename = "type")]
    kind: String,
    /// The trace of its runs; if left out, that of the task it waited for.
    trace_id: Option<String>,
    /// The parent of its runs; if left out, that of the task it waited for.
    parent_task_id: Option<String>,
    /// What its runs are to do.
    prompt: String,
    /// The priority of its runs, 0 to 10; 5 if left out.
    priority: Option<u8>,
    /// When it was made, if that was before and elsewhere.
    created_at: Option<Time>,
    /// Seconds that one attempt of a run may take.
    timeout: Option<u32>,
    /// When; for `recurring` and `scheduled`.
    schedule: Option<AgentTriggerSchedule>,
    /// On which condition, `{"type", "params"}`; for `conditional`.
    #[schema(value_type = Option<Object>)]
    condition: Option<Value>,
    /// Seconds that must lie between two runs; for `conditional`.
    cooldown: Option<u64>,
    /// What it brings along from elsewhere.
    state: Option<AgentTriggerState>,
}

/// When a trigger fires.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct AgentTriggerSchedule {
    /// Seconds from one run to the next; for `recurring`.
    #[serde(skip_serializing_if = "Option::is_none")]
    interval: Option<u64>,
    /// When; for `scheduled`.
    #[serde(skip_serializing_if = "Option::is_none")]
    run_at: Option<Time>,
    /// When it last fired; for `recurring`.
    last_run_at: Option<Time>,
    /// When it fires next; for `recurring`.
    next_run_at: Option<Time>,
}

/// What a trigger knows of itself and of the world.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct AgentTriggerState {
    /// When it last fired.
    last_triggered_at: Option<Time>,
    /// When its condition was last looked at with an outcome.
    last_eval_at: Option<Time>,
    /// The last task whose result it fired for.
    last_seen_result_id: Option<String>,
    /// The change of the newest file that it fired for, or began with. Milliseconds since 1970 are
    /// read, too.
    #[schema(value_type = Option<Value>)]
    last_mtime: Option<Value>,
    /// Whether it has begun to look at files.
    initialized: Option<bool>,
    /// Since when a run, or a question, of it has not ended.
    running_at: Option<Time>,
    /// How its last run ended: `ok`, `error`, or `skipped` if it was refused.
    last_status: Option<String>,
    /// What that run had to say.
    last_error: Option<String>,
    /// How long it took.
    last_duration_ms: Option<u64>,
    /// When something is due for it by the clock.
    next_run_at: Option<Time>,
}

/// A trigger.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTrigger {
    /// 2.
    schema_version: u32,
    /// Its name.
    id: String,
    /// `recurring`, `scheduled` or `conditional`.
    #[serde(rename = "type")]
    kind: String,
    /// The trace of its runs.
    trace_id: Option<String>,
    /// The parent of its runs.
    parent_task_id: Option<String>,
    /// What its runs are to do.
    prompt: String,
    /// The priority of its runs.
    priority: u8,
    /// When it was made.
    created_at: Time,
    /// Seconds that one attempt of a run may take.
    timeout: Option<u32>,
    /// When.
    schedule: Option<AgentTriggerSchedule>,
    /// On which condition.
    #[schema(value_type = Option<Object>)]
    condition: Option<Value>,
    /// Seconds that must lie between two runs.
    cooldown: u64,
    /// What it knows of itself and of the world.
    state: AgentTriggerState,
}

/// A page of triggers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AgentTriggers {
    /// They.
    items: Vec<AgentTrigger>,
    /// Where the next page starts.
    next_cursor: Option<String>,
    /// How many there are; `null` if more than are counted.
    total: Option<u64>,
    /// In place of a total: there are more than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    total_at_least: Option<u64>,
}

/// A trigger that was taken away.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RemovedAgentTrigger {
    /// `true`.
    success: bool,
    /// Its name.
    id: String,
}

pub(super) async fn create(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let wish = read(&ask, &who, json::read(json::check(&ask.body)?)?)?;
    let made = triggers::make(&ask, &who, wish).await?;
    Ok(bare(StatusCode::CREATED, &shown(&ask, &made)?))
}

/// Reads a trigger as the document has it.
pub(super) fn read(ask: &Ask, who: &Principal, wire: CreateTrigger) -> Result<Wish, Refusal> {
    version(wire.schema_version)?;
    let engine = ask.engine();
    let by = (who, engine.fresh_id(), engine.trigger_pace());
    triggers::wish(&wire.into(), Spelling::Camel, by)
}

pub(super) async fn list(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let query = ask.query(&LIST.map(|(name, _)| name))?;
    let found = triggers::list(&ask, &who, &query).await?;
    let items =
        found.entities.iter().map(|entity| shown(&ask, entity)).collect::<Result<_, _>>()?;
    let total = found.total.filter(|total| *total <= TOTAL_MAX).map(|total| total as u64);
    let total_at_least = found.total.filter(|total| *total > TOTAL_MAX).map(|_| TOTAL_MAX as u64);
    let page = AgentTriggers { items, next_cursor: found.next, total, total_at_least };
    Ok(bare(StatusCode::OK, &page))
}

pub(super) async fn get(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let entity = triggers::visible(&ask, &who).await?;
    Ok(bare(StatusCode::OK, &shown(&ask, &entity)?))
}

pub(super) async fn remove(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let removed = triggers::remove(&ask, &who).await?;
    let id = triggers::body(&removed)?.spec.name.to_string();
    Ok(bare(StatusCode::OK, &RemovedAgentTrigger { success: true, id }))
}

/// A trigger as the document has it.
pub(super) fn shown(ask: &Ask, entity: &Entity) -> Result<AgentTrigger, Refusal> {
    let now = ask.engine().now();
    let trigger = triggers::trigger(entity, triggers::body(entity)?, Spelling::Camel, now);
    Ok(AgentTrigger {
        schema_version: SCHEMA_VERSION,
        id: trigger.id,
        kind: trigger.kind,
        trace_id: trigger.trace_id,
        parent_task_id: trigger.parent_task_id,
        prompt: trigger.prompt,
        priority: trigger.priority,
        created_at: trigger.created_at,
        timeout: trigger.timeout,
        schedule: trigger.schedule.map(|schedule| AgentTriggerSchedule {
            interval: schedule.interval,
            run_at: schedule.run_at,
            last_run_at: schedule.last_run_at,
            next_run_at: schedule.next_run_at,
        }),
        condition: trigger.condition,
        cooldown: trigger.cooldown,
        state: AgentTriggerState {
            last_triggered_at: trigger.state.last_triggered_at,
            last_eval_at: trigger.state.last_eval_at,
            last_seen_result_id: trigger.state.last_seen_result_id,
            last_mtime: trigger.state.last_mtime,
            initialized: trigger.state.initialized,
            running_at: trigger.state.running_at,
            last_status: trigger.state.last_status,
            last_error: trigger.state.last_error,
            last_duration_ms: trigger.state.last_duration_ms,
            next_run_at: trigger.state.next_run_at,
        },
    })
}

impl From<CreateTrigger> for api::trigger::SetTrigger {
    fn from(wire: CreateTrigger) -> Self {
        api::trigger::SetTrigger {
            id: wire.id,
            kind: wire.kind,
            prompt: wire.prompt,
            priority: wire.priority,
            timeout: wire.timeout,
            trace_id: wire.trace_id,
            parent_task_id: wire.parent_task_id,
            created_at: wire.created_at,
            schedule: wire.schedule.map(|schedule| api::trigger::TriggerSchedule {
                interval: schedule.interval,
                run_at: schedule.run_at,
                last_run_at: schedule.last_run_at,
                next_run_at: schedule.next_run_at,
            }),
            condition: wire.condition,
            cooldown: wire.cooldown,
            state: wire.state.map(|state| api::trigger::TriggerState {
                last_triggered_at: state.last_triggered_at,
                last_eval_at: state.last_eval_at,
                last_seen_result_id: state.last_seen_result_id,
                last_mtime: state.last_mtime,
                initialized: state.initialized,
                running_at: state.running_at,
                last_status: state.last_status,
                last_error: state.last_error,
                last_duration_ms: state.last_duration_ms,
                next_run_at: state.next_run_at,
            }),
        }
    }
}
