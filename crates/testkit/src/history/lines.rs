//! The line format: one JSON object per line, in any order but that of time within one writer, so
//! that several processes can each append to a file of their own and the files be joined. A call is
//! an `invoke` line and, if an answer came, an `end` line with the same `id`.

use super::{
    Answer, AuditDump, Call, Dump, EventDump, FiringDump, Grant, History, Injected, ItemDump,
    JobDump, Operation, Outcome, PullScope, Seen, Streamed, TrailDump, TypeRules, Work,
};
use mainspring_kernel::StateName;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Its number, counted from one.
    pub number: usize,
}

/// The line that begins call `id`.
pub fn invoke(id: u64, at: u64, call: &Call) -> String {
    json!({"line": "invoke", "id": id, "at": at, "call": call_value(call)}).to_string()
}

/// The line that ends call `id`.
pub fn end(id: u64, at: u64, outcome: &Outcome) -> String {
    let mut line = json!({"line": "end", "id": id, "at": at});
    match outcome {
        Outcome::Ok(answer) => line["ok"] = answer_value(answer),
        Outcome::Fail(code) => line["fail"] = json!(code),
        Outcome::Info => line["info"] = json!(true),
        Outcome::Gone => line["gone"] = json!(true),
    }
    line.to_string()
}

/// A line of a worker's ledger.
pub fn work(work: &Work) -> String {
    let Work { at, worker, job, token, is_end } = work;
    json!({"line": "work", "at": at, "worker": worker, "job": job, "token": token, "end": is_end})
        .to_string()
}

/// A fault line.
pub fn fault(fault: &Injected) -> String {
    json!({"line": "fault", "at": fault.at, "kind": fault.kind}).to_string()
}

/// A stream line.
pub fn streamed(move_: &Streamed) -> String {
    let Streamed { position, job, seq, to, is_reset } = move_;
    let to = to.as_str();
    json!({"line": "stream", "position": position, "job": job, "seq": seq, "to": to,
        "reset": is_reset})
    .to_string()
}

/// Everything as lines.
pub fn write(history: &History) -> String {
    let mut lines = Vec::new();
    for (id, operation) in history.operations.iter().enumerate() {
        let id = id as u64;
        lines.push(invoke(id, operation.invoked_at, &operation.call));
        if let Some(at) = operation.ended_at {
            lines.push(end(id, at, &operation.outcome));
        }
    }
    lines.extend(history.ledger.iter().map(work));
    lines.extend(history.faults.iter().map(fault));
    lines.extend(history.stream.iter().map(streamed));
    for rules in &history.types {
        let TypeRules { name, base_ms, max_ms, limit, is_per_tenant, rate, key, circuit } = rules;
        let line = json!({"line": "type", "name": name, "base_ms": base_ms, "max_ms": max_ms,
            "limit": limit, "per_tenant": is_per_tenant, "rate": rate, "key": key,
            "circuit": circuit});
        lines.push(line.to_string());
    }
    lines.extend(history.dump.jobs.iter().map(job_line));
    lines.extend(history.dump.items.iter().map(item_line));
    let Dump { jobs: _, items: _, by_state, is_settled, kept_since, firings, silent, trails } =
        &history.dump;
    lines.extend(trails.iter().map(trail_line));
    for FiringDump { entity, count, due, told } in firings {
        let line = json!({"line": "firing", "entity": entity, "count": count, "due": due,
            "told": told});
        lines.push(line.to_string());
    }
    for entity in silent {
        lines.push(json!({"line": "silent", "entity": entity}).to_string());
    }
    let line = json!({"line": "final", "by_state": by_state, "settled": is_settled,
        "kept_since": kept_since, "whole_stream": history.is_stream_whole,
        "simulated": history.is_simulated});
    lines.push(line.to_string());
    lines.join("\n") + "\n"
}

/// The history in `text`.
///
/// # Errors
/// At the first line that is not one of ours.
pub fn read(text: &str) -> Result<History, BadLine> {
    let mut history = History::default();
    let mut calls = BTreeMap::new();
    for (nth, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let bad = BadLine { number: nth + 1 };
        let value: Value = serde_json::from_str(line).map_err(|_| bad.clone())?;
        take(&value, &mut history, &mut calls).ok_or(bad)?;
    }
    history.operations = calls.into_values().collect();
    history.operations.sort_by_key(|operation| operation.invoked_at);
    history.stream.sort_by_key(|moved| moved.position);
    Ok(history)
}

fn take(line: &Value, history: &mut History, calls: &mut BTreeMap<u64, Operation>) -> Option<()> {
    match line["line"].as_str()? {
        "invoke" => {
            let invoked_at = line["at"].as_u64()?;
            let call = read_call(&line["call"])?;
            let (ended_at, outcome) = (None, Outcome::Info);
            let operation = Operation { invoked_at, ended_at, call, outcome };
            calls.insert(line["id"].as_u64()?, operation);
        }
        "end" => {
            let operation = calls.get_mut(&line["id"].as_u64()?)?;
            operation.ended_at = line["at"].as_u64();
            operation.outcome = match (line.get("ok"), line.get("fail")) {
                (Some(answer), _) => Outcome::Ok(read_answer(answer)?),
                (None, Some(code)) => Outcome::Fail(code.as_str()?.to_owned()),
                (None, None) if line.get("gone").is_some() => Outcome::Gone,
                (None, None) => Outcome::Info,
            };
        }
        "firing" => {
            let (entity, count) = (text(line, "entity")?, line["count"].as_u64()?);
            let number = |name: &str| line.get(name).and_then(Value::as_u64).unwrap_or(0);
            let (due, told) = (number("due"), number("told"));
            history.dump.firings.push(FiringDump { entity, count, due, told });
        }
        "trail" => history.dump.trails.push(read_trail(line)?),
        "silent" => history.dump.silent.push(text(line, "entity")?),
        "work" => history.ledger.push(Work {
            at: line["at"].as_u64()?,
            worker: text(line, "worker")?,
            job: text(line, "job")?,
            token: text(line, "token")?,
            is_end: line["end"].as_bool()?,
        }),
        "fault" => {
            let (at, kind) = (line["at"].as_u64()?, text(line, "kind")?);
            history.faults.push(Injected { at, kind });
        }
        "stream" => history.stream.push(Streamed {
            position: line["position"].as_u64()?,
            job: text(line, "job")?,
            seq: number(line, "seq")?,
            to: state(line, "to")?,
            is_reset: line["reset"].as_bool()?,
        }),
        "type" => history.types.push(TypeRules {
            name: text(line, "name")?,
            base_ms: line["base_ms"].as_u64()?,
            max_ms: line["max_ms"].as_u64()?,
            limit: number(line, "limit"),
            is_per_tenant: line["per_tenant"].as_bool()?,
            rate: line["rate"].as_array().and_then(|rate| {
                let burst = rate.get(1)?.as_u64()?;
                Some((rate.first()?.as_u64()?, u32::try_from(burst).ok()?))
            }),
            key: line["key"].as_str().map(str::to_owned),
            circuit: line["circuit"].as_i64(),
        }),
        "job" => history.dump.jobs.push(read_job(line)?),
        "item" => history.dump.items.push(ItemDump {
            id: text(line, "id")?,
            job: text(line, "job")?,
            state: text(line, "state")?,
            requeued_as: text(line, "requeued_as"),
            proposed_by: text(line, "proposed_by"),
            approved_by: text(line, "approved_by"),
        }),
        "final" => {
            history.dump.is_settled = line["settled"].as_bool()?;
            history.dump.kept_since = line["kept_since"].as_i64();
            history.is_stream_whole = line["whole_stream"].as_bool()?;
            history.is_simulated = line["simulated"].as_bool()?;
            if let Some(counts) = line["by_state"].as_array() {
                let counts: Option<Vec<u64>> = counts.iter().map(Value::as_u64).collect();
                history.dump.by_state = Some(counts?.try_into().ok()?);
            }
        }
        _ => return None,
    }
    Some(())
}

fn text(value: &Value, field: &str) -> Option<String> {
    value[field].as_str().map(str::to_owned)
}

fn texts(value: &Value, field: &str) -> Option<Vec<String>> {
    let texts = value[field].as_array()?.iter();
    texts.map(|text| text.as_str().map(str::to_owned)).collect()
}

fn number(value: &Value, field: &str) -> Option<u32> {
    value[field].as_u64().and_then(|number| u32::try_from(number).ok())
}

fn state(value: &Value, field: &str) -> Option<StateName> {
    StateName::parse(value[field].as_str()?)
}

fn call_value(call: &Call) -> Value {
    match call {
        Call::Submit { tenant, key, window_secs, job_type, payload, delay_ms } => json!({
            "op": "submit", "tenant": tenant, "key": key, "window_secs": window_secs,
            "job_type": job_type, "payload": payload, "delay_ms": delay_ms}),
        Call::Complete { job, token, result } => {
            json!({"op": "complete", "job": job, "token": token, "result": result})
        }
        Call::Fail { job, token, code, retryable, delay_ms } => json!({"op": "fail", "job": job,
            "token": token, "code": code, "retryable": retryable, "delay_ms": delay_ms}),
        Call::Release { job, token } => json!({"op": "release", "job": job, "token": token}),
        Call::Heartbeat { job, token, lease_ms } => {
            json!({"op": "heartbeat", "job": job, "token": token, "lease_ms": lease_ms})
        }
        Call::Effect { job, token, name, value } => {
            json!({"op": "effect", "job": job, "token": token, "name": name, "value": value})
        }
        Call::Pull { worker, lease_ms, scope: PullScope { tenant, queues, types } } => {
            json!({"op": "pull", "worker": worker, "lease_ms": lease_ms, "tenant": tenant,
                "queues": queues, "types": types})
        }
        Call::Cancel { job } => json!({"op": "cancel", "job": job}),
        Call::Read { job } => json!({"op": "read", "job": job}),
        Call::Requeue { item, key } => json!({"op": "requeue", "item": item, "key": key}),
        Call::RequestDiscard { item, by, reason } => {
            json!({"op": "request_discard", "item": item, "by": by, "reason": reason})
        }
        Call::ApproveDiscard { item, by } => {
            json!({"op": "approve_discard", "item": item, "by": by})
        }
        Call::RejectDiscard { item, by } => json!({"op": "reject_discard", "item": item, "by": by}),
        Call::Pause { queue, is_paused } => {
            json!({"op": "pause", "queue": queue, "is_paused": is_paused})
        }
        Call::ListJobs { tenant } => json!({"op": "list_jobs", "tenant": tenant}),
        Call::ListItems => json!({"op": "list_items"}),
        Call::Knock { tenant, token, job, what } => json!({"op": "knock", "tenant": tenant,
            "token": token, "job": job, "what": what}),
        Call::Revoke { token } => json!({"op": "revoke", "token": token}),
    }
}

fn read_call(value: &Value) -> Option<Call> {
    let get = |field: &str| text(value, field);
    let (job, token) = (get("job"), get("token"));
    Some(match value["op"].as_str()? {
        "submit" => Call::Submit {
            tenant: get("tenant")?,
            key: get("key"),
            window_secs: number(value, "window_secs"),
            job_type: get("job_type")?,
            payload: get("payload")?,
            delay_ms: value["delay_ms"].as_u64()?,
        },
        "complete" => Call::Complete { job: job?, token: token?, result: get("result")? },
        "fail" => Call::Fail {
            job: job?,
            token: token?,
            code: get("code")?,
            retryable: value["retryable"].as_bool()?,
            delay_ms: value["delay_ms"].as_u64(),
        },
        "release" => Call::Release { job: job?, token: token? },
        "heartbeat" => {
            Call::Heartbeat { job: job?, token: token?, lease_ms: value["lease_ms"].as_u64()? }
        }
        "effect" => {
            Call::Effect { job: job?, token: token?, name: get("name")?, value: get("value")? }
        }
        "pull" => Call::Pull {
            worker: get("worker")?,
            lease_ms: value["lease_ms"].as_u64()?,
            scope: PullScope {
                tenant: get("tenant"),
                queues: texts(value, "queues"),
                types: texts(value, "types"),
            },
        },
        "cancel" => Call::Cancel { job: job? },
        "read" => Call::Read { job: job? },
        "requeue" => Call::Requeue { item: get("item")?, key: get("key")? },
        "request_discard" => {
            Call::RequestDiscard { item: get("item")?, by: get("by")?, reason: get("reason")? }
        }
        "approve_discard" => Call::ApproveDiscard { item: get("item")?, by: get("by")? },
        "reject_discard" => Call::RejectDiscard { item: get("item")?, by: get("by")? },
        "pause" => Call::Pause { queue: get("queue")?, is_paused: value["is_paused"].as_bool()? },
        "list_jobs" => Call::ListJobs { tenant: get("tenant")? },
        "list_items" => Call::ListItems,
        "knock" => {
            Call::Knock { tenant: get("tenant")?, token: token?, job: job?, what: get("what")? }
        }
        "revoke" => Call::Revoke { token: token? },
        _ => return None,
    })
}

fn answer_value(answer: &Answer) -> Value {
    match answer {
        Answer::Submitted { job, is_hit, created_at } => {
            json!({"is": "submitted", "job": job, "hit": is_hit, "created_at": created_at})
        }
        Answer::State { state } => json!({"is": "state", "state": state.as_str()}),
        Answer::Lease { until } => json!({"is": "lease", "until": until}),
        Answer::Cancelled => json!({"is": "cancelled"}),
        Answer::Effect { value, is_first } => {
            json!({"is": "effect", "value": value, "first": is_first})
        }
        Answer::Grants(grants) => {
            let grants: Vec<Value> = grants.iter().map(grant_value).collect();
            json!({"is": "grants", "grants": grants})
        }
        Answer::Seen(Seen { state, seq, updated_at, retry_count, due_at, has_item }) => {
            json!({"is": "seen", "state": state.as_str(), "seq": seq, "updated_at": updated_at,
                "retry_count": retry_count, "due_at": due_at, "has_item": has_item})
        }
        Answer::Listed(ids) => json!({"is": "listed", "ids": ids}),
        Answer::Requeued { job } => json!({"is": "requeued", "job": job}),
        Answer::Done => json!({"is": "done"}),
    }
}

fn read_answer(value: &Value) -> Option<Answer> {
    Some(match value["is"].as_str()? {
        "submitted" => Answer::Submitted {
            job: text(value, "job")?,
            is_hit: value["hit"].as_bool()?,
            created_at: value["created_at"].as_i64()?,
        },
        "state" => Answer::State { state: state(value, "state")? },
        "lease" => Answer::Lease { until: value["until"].as_i64()? },
        "cancelled" => Answer::Cancelled,
        "effect" => {
            Answer::Effect { value: text(value, "value")?, is_first: value["first"].as_bool()? }
        }
        "grants" => {
            let grants = value["grants"].as_array()?;
            Answer::Grants(grants.iter().map(read_grant).collect::<Option<_>>()?)
        }
        "seen" => Answer::Seen(Seen {
            state: state(value, "state")?,
            seq: number(value, "seq")?,
            updated_at: value["updated_at"].as_i64()?,
            retry_count: number(value, "retry_count"),
            due_at: value["due_at"].as_i64(),
            has_item: value["has_item"].as_bool(),
        }),
        "listed" => Answer::Listed(texts(value, "ids")?),
        "requeued" => Answer::Requeued { job: text(value, "job")? },
        "done" => Answer::Done,
        _ => return None,
    })
}

fn grant_value(grant: &Grant) -> Value {
    let Grant { job, attempt, token, granted_at, lease_until, payload, queue } = grant;
    json!({"job": job, "attempt": attempt, "token": token, "granted_at": granted_at,
        "lease_until": lease_until, "payload": payload, "queue": queue})
}

fn read_grant(value: &Value) -> Option<Grant> {
    Some(Grant {
        job: text(value, "job")?,
        attempt: number(value, "attempt")?,
        token: text(value, "token")?,
        granted_at: value["granted_at"].as_i64()?,
        lease_until: value["lease_until"].as_i64()?,
        payload: text(value, "payload")?,
        queue: text(value, "queue")?,
    })
}

fn job_line(job: &JobDump) -> String {
    let events: Vec<Value> = job
        .events
        .iter()
        .map(|event| {
            let EventDump { seq, from, to, at, attempt, code, actor } = event;
            json!({"seq": seq, "from": from.map(StateName::as_str), "to": to.as_str(), "at": at,
                "attempt": attempt, "code": code, "actor": actor})
        })
        .collect();
    json!({"line": "job", "id": job.id, "tenant": job.tenant, "job_type": job.job_type,
        "payload": job.payload, "queue": job.queue, "priority": job.priority, "key": job.key, "source_item": job.source_item,
        "state": job.state.as_str(), "retry_count": job.retry_count,
        "max_retries": job.max_retries, "timeout_ms": job.timeout_ms,
        "created_at": job.created_at, "updated_at": job.updated_at, "run_at": job.run_at,
        "started_at": job.started_at, "finished_at": job.finished_at, "effects": job.effects,
        "events": events})
    .to_string()
}

fn read_job(line: &Value) -> Option<JobDump> {
    let effects = line["effects"]
        .as_array()?
        .iter()
        .map(|pair| Some((pair[0].as_str()?.to_owned(), pair[1].as_str()?.to_owned())));
    Some(JobDump {
        id: text(line, "id")?,
        tenant: text(line, "tenant")?,
        job_type: text(line, "job_type")?,
        payload: text(line, "payload")?,
        queue: text(line, "queue")?,
        priority: number(line, "priority")?,
        key: text(line, "key"),
        source_item: text(line, "source_item"),
        state: state(line, "state")?,
        retry_count: number(line, "retry_count")?,
        max_retries: number(line, "max_retries")?,
        timeout_ms: line["timeout_ms"].as_u64()?,
        created_at: line["created_at"].as_i64()?,
        updated_at: line["updated_at"].as_i64()?,
        run_at: line["run_at"].as_i64()?,
        started_at: line["started_at"].as_i64(),
        finished_at: line["finished_at"].as_i64(),
        effects: effects.collect::<Option<_>>()?,
        events: line["events"].as_array()?.iter().map(read_event).collect::<Option<_>>()?,
    })
}

fn read_event(value: &Value) -> Option<EventDump> {
    Some(EventDump {
        seq: number(value, "seq")?,
        from: state(value, "from"),
        to: state(value, "to")?,
        at: value["at"].as_i64()?,
        attempt: number(value, "attempt")?,
        code: text(value, "code"),
        actor: text(value, "actor")?,
    })
}

fn item_line(item: &ItemDump) -> String {
    let ItemDump { id, job, state, requeued_as, proposed_by, approved_by } = item;
    let mut line = Map::new();
    line.insert("line".to_owned(), json!("item"));
    for (field, value) in [("id", id), ("job", job), ("state", state)] {
        line.insert(field.to_owned(), json!(value));
    }
    let optional =
        [("requeued_as", requeued_as), ("proposed_by", proposed_by), ("approved_by", approved_by)];
    for (field, value) in optional {
        line.insert(field.to_owned(), json!(value));
    }
    Value::Object(line).to_string()
}

fn trail_line(trail: &TrailDump) -> String {
    let line = |line: &AuditDump| {
        let AuditDump { seq, action, object, actor, is_denied } = line;
        json!({"seq": seq, "action": action, "object": object, "actor": actor,
            "denied": is_denied})
    };
    let lines: Vec<Value> = trail.lines.iter().map(line).collect();
    json!({"line": "trail", "tenant": trail.tenant, "valid": trail.is_valid, "lines": lines})
        .to_string()
}

fn read_trail(line: &Value) -> Option<TrailDump> {
    let read = |line: &Value| {
        Some(AuditDump {
            seq: line["seq"].as_u64()?,
            action: text(line, "action")?,
            object: text(line, "object")?,
            actor: text(line, "actor")?,
            is_denied: line["denied"].as_bool()?,
        })
    };
    let lines: Option<Vec<AuditDump>> = line["lines"].as_array()?.iter().map(read).collect();
    let is_valid = line["valid"].as_bool()?;
    Some(TrailDump { tenant: text(line, "tenant")?, is_valid, lines: lines? })
}
