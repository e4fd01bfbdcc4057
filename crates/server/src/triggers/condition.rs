//! Conditions as JSON: `{"type": ..., "params": {...}}`, in either spelling of names.

use crate::refusal::{self, Refusal};
use mainspring_kernel::entity::trigger::Condition;
use mainspring_kernel::limits::{TRIGGER_DEPTH_MAX, TRIGGER_NODES_MAX};
use serde_json::{Map, Value, json};

/// How a contract spells names of several words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spelling {
    /// `task_id`.
    Snake,
    /// `taskId`.
    Camel,
}

impl Spelling {
    const fn task(self) -> &'static str {
        match self {
            Spelling::Snake => "task_id",
            Spelling::Camel => "taskId",
        }
    }

    const fn fires_on_init(self) -> &'static str {
        match self {
            Spelling::Snake => "fire_on_init",
            Spelling::Camel => "fireOnInit",
        }
    }
}

/// Reads a condition.
pub(super) fn read(value: &Value, spelling: Spelling) -> Result<Condition, Refusal> {
    part(value, spelling, 1, &mut 0)
}

fn part(
    value: &Value,
    spelling: Spelling,
    depth: usize,
    count: &mut usize,
) -> Result<Condition, Refusal> {
    *count += 1;
    if depth > TRIGGER_DEPTH_MAX || *count > TRIGGER_NODES_MAX {
        let reason = "must be at most 8 deep and have at most 64 parts";
        return Err(refusal::invalid("condition", reason));
    }
    let whole = object(value, "must be an object with type and params")?;
    only(whole, &["type", "params"])?;
    let kind = whole.get("type").and_then(Value::as_str);
    let kind = kind.ok_or_else(|| refusal::invalid("condition", "has a part without a type"))?;
    let none = json!({});
    let params = whole.get("params").filter(|params| !params.is_null()).unwrap_or(&none);
    let params = object(params, "must have objects as params")?;
    let text = |name: &'static str| match params.get(name).and_then(Value::as_str) {
        Some(text) => Ok(text.into()),
        None => Err(refusal::invalid("condition", format_args!("lacks the text {name} in {kind}"))),
    };
    let mut parts = || {
        only(params, &["conditions"])?;
        let list = params.get("conditions").and_then(Value::as_array);
        let list = list.ok_or_else(|| {
            refusal::invalid("condition", format_args!("lacks the list conditions in {kind}"))
        })?;
        let parts = list.iter().map(|value| part(value, spelling, depth + 1, count));
        parts.collect::<Result<Vec<Condition>, Refusal>>()
    };
    let (task, fires_on_init) = (spelling.task(), spelling.fires_on_init());
    Ok(match kind {
        "file_changed" => {
            only(params, &["path", fires_on_init])?;
            let fires = params.get(fires_on_init).unwrap_or(&Value::Bool(false));
            let fires = fires.as_bool().ok_or_else(|| {
                refusal::invalid(
                    "condition",
                    format_args!("needs true or false as {fires_on_init}"),
                )
            })?;
            Condition::FileChanged { path: text("path")?, fires_on_init: fires }
        }
        "file_exists" => {
            only(params, &["path"])?;
            Condition::FileExists { path: text("path")? }
        }
        "task_done" => {
            only(params, &[task])?;
            Condition::TaskDone { task: text(task)? }
        }
        "task_failed" => {
            only(params, &[task])?;
            Condition::TaskFailed { task: text(task)? }
        }
        "llm_eval" => {
            only(params, &["prompt"])?;
            Condition::LlmEval { prompt: text("prompt")? }
        }
        "and" => Condition::And(parts()?),
        "or" => Condition::Or(parts()?),
        _ => {
            let reason = "has a type other than file_changed, file_exists, task_done, \
                          task_failed, llm_eval, and, or";
            return Err(refusal::invalid("condition", reason));
        }
    })
}

fn object<'a>(value: &'a Value, reason: &'static str) -> Result<&'a Map<String, Value>, Refusal> {
    value.as_object().ok_or_else(|| refusal::invalid("condition", reason))
}

fn only(object: &Map<String, Value>, known: &[&str]) -> Result<(), Refusal> {
    match object.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => {
            let shown: String = key.chars().take(80).collect();
            Err(refusal::invalid("condition", format_args!("has an unknown field {shown:?}")))
        }
        None => Ok(()),
    }
}

/// Shows a condition.
pub(super) fn show(condition: &Condition, spelling: Spelling) -> Value {
    let params = match condition {
        Condition::FileChanged { path, fires_on_init: false } => json!({ "path": path }),
        Condition::FileChanged { path, fires_on_init: true } => {
            json!({ "path": path, spelling.fires_on_init(): true })
        }
        Condition::FileExists { path } => json!({ "path": path }),
        Condition::TaskDone { task } | Condition::TaskFailed { task } => {
            json!({ spelling.task(): task })
        }
        Condition::LlmEval { prompt } => json!({ "prompt": prompt }),
        Condition::And(parts) | Condition::Or(parts) => {
            let parts: Vec<Value> = parts.iter().map(|part| show(part, spelling)).collect();
            json!({ "conditions": parts })
        }
    };
    json!({ "type": condition.as_str(), "params": params })
}
