//! Rules about several fields of one type.

use super::{desk, subscriptions};
use serde_json::{Value, json};

/// Rules about several fields of one type, as far as JSON Schema has words for them.
pub(in crate::openapi) fn together(of: &str) -> Option<Value> {
    let is_left_out = |field: &str| json!({ "properties": { field: { "type": "null" } } });
    match of {
        "SetSchedule" => {
            let kinds = [
                ("at", "at", ["interval_seconds", "phase_seconds", "cron", "dst_gap", "dst_fold"]),
                ("interval", "interval_seconds", ["at", "at", "cron", "dst_gap", "dst_fold"]),
                ("cron", "cron", ["at", "at", "at", "interval_seconds", "phase_seconds"]),
            ];
            let kind = |(kind, needed, strays): (&str, &str, [&str; 5])| {
                chosen("kind", kind, &[needed], &strays)
            };
            Some(json!({ "anyOf": kinds.map(kind) }))
        }
        "CreateTask" => {
            let once = ["cron_expr", "timezone", "next_run_at", "last_run_at"];
            let plan = ["scheduled_at", "schedule_id", "fire_time"];
            let kind = |kind: &str, needed: &[&str], strays: &[&str]| {
                chosen("schedule_type", kind, needed, strays)
            };
            let planned = ["cron_expr", "timezone", "next_run_at"];
            Some(json!({ "anyOf": [
                kind("at", &["scheduled_at"], &[&once[..], &["schedule_id", "fire_time"]].concat()),
                kind("at", &["scheduled_at", "schedule_id", "fire_time"], &once),
                kind("cron", &planned, &plan),
                kind("daily", &planned, &plan),
            ] }))
        }
        "CreateSubscription" => Some(subscriptions::together()),
        "CreateBulk" => Some(desk::bulks_together()),
        "Submit" => Some(json!({ "anyOf": [is_left_out("run_at"), is_left_out("delay_ms")] })),
        "Discard" => {
            let (one, two) = ("reviewer_id", "reviewer_id_2");
            let text = json!({ "type": "string" });
            Some(json!({ "anyOf": [
                { "properties": { one: { "type": "null" }, two: { "type": "null" } } },
                { "properties": { one: text, two: text }, "required": [one, two] },
            ] }))
        }
        "ReportRun" => Some(json!({ "anyOf": [
            chosen("status", "done", &[], &["failureReason"]),
            chosen("status", "failed", &[], &[]),
        ] })),
        "PutGovernedObject" => {
            let not_certain = json!({ "epistemic": { "not": { "const": "certain" } } });
            Some(json!({ "anyOf": [is_left_out("unknown_type"), { "properties": not_certain }] }))
        }
        "SetTrigger" => Some(trigger("run_at")),
        "CreateTrigger" => Some(trigger("runAt")),
        // Not of `TypeExecutor` itself: what is shown of an executor may be its mode alone.
        "SetType" => {
            let process = ["command", "args", "cwd", "env", "shell", "kill_grace_ms"];
            let webhook = ["url", "timeout_ms"];
            let others = [&process[..], &webhook[..]].concat();
            let executor = json!({ "anyOf": [
                { "type": "null" },
                chosen("mode", "pull", &[], &others),
                chosen("mode", "inprocess", &[], &others),
                chosen("mode", "process", &["command"], &webhook),
                chosen("mode", "webhook", &["url"], &process),
            ] });
            let is_there = |field: &str| {
                let value = json!({ "not": { "type": "null" } });
                json!({ "properties": { field: value }, "required": [field] })
            };
            let either = ["start_within_ms", "finish_within_ms"].map(is_there);
            let sla = json!({ "anyOf": [{ "type": "null" }, { "anyOf": either }] });
            Some(json!({ "allOf": [{ "properties": { "executor": executor, "sla": sla } }] }))
        }
        _ => None,
    }
}

/// An object whose `word` is `chosen`: with all that is needed then, and without what belongs to
/// another choice.
fn chosen(word: &str, chosen: &str, needed: &[&str], strays: &[&str]) -> Value {
    let mut properties = json!({ word: { "const": chosen } });
    for field in needed {
        properties[field] = json!({ "not": { "type": "null" } });
    }
    for stray in strays {
        properties[stray] = json!({ "type": "null" });
    }
    let required: Vec<&str> = [&[word], needed].concat();
    json!({ "properties": properties, "required": required })
}

/// What a trigger needs by its type; `run_at` is spelled as the contract does.
fn trigger(run_at: &str) -> Value {
    let with = |kind: &str, field: &str| {
        let mut rule = chosen("type", kind, &["schedule"], &[]);
        rule["properties"]["schedule"] = json!({
            "type": "object",
            "properties": { field: { "not": { "type": "null" } } },
            "required": [field],
        });
        rule
    };
    json!({ "anyOf": [
        with("recurring", "interval"),
        with("scheduled", run_at),
        chosen("type", "conditional", &["condition"], &[]),
    ] })
}
