//! The final look through the public API: every job with its history and effects, every dead-letter
//! item, and the counts. Also fills in what calls could not know when they were made.

use super::Api;
use super::api::{number, state, text, time};
use super::fleet::TENANTS;
use crate::blackbox::eventually;
use crate::history::{
    Answer, AuditDump, Call, Dump, EventDump, History, ItemDump, JobDump, Outcome, TrailDump,
};
use mainspring_kernel::StateName;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Waits until no job is left that has not ended.
///
/// # Panics
/// If some do not end; says how many are where.
pub fn wait_until_settled(admin: &mut Api) {
    let mut last = Value::Null;
    let settled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        eventually("every job ends", || {
            let runtime = admin.ask("GET", "/api/v1/runtime", None).ok()?;
            last = runtime["counters"]["jobs"].clone();
            let open: u64 = StateName::ALL
                .into_iter()
                .filter(|state| !state.is_terminal())
                .map(|state| last[state.as_str()].as_u64().unwrap_or(0))
                .sum();
            (open == 0).then_some(())
        });
    }));
    assert!(settled.is_ok(), "jobs do not end: {last}{}", why_open(admin));
}

/// What the server says about the first jobs that have not ended.
fn why_open(admin: &mut Api) -> String {
    let mut words = String::new();
    for state in StateName::ALL.into_iter().filter(|state| !state.is_terminal()) {
        let page = read(admin, &format!("/api/v1/jobs?limit=5&status={}", state.as_str()));
        for job in page["items"].as_array().into_iter().flatten() {
            let why = read(admin, &format!("/api/v1/jobs/{}/explain", text(job, "job_id")));
            words.push_str(&format!("\n{job}\n  {why}"));
        }
    }
    words
}

/// Reads everything and completes the history with it.
///
/// # Panics
/// If something cannot be read.
pub fn fill(admin: &mut Api, history: &mut History) {
    let mut effects: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for operation in history.operations.iter().filter(|call| call.may_have_happened()) {
        if let Call::Effect { job, name, .. } = &operation.call {
            effects.entry(job.clone()).or_default().insert(name.clone());
        }
    }
    // A server tells of alerts by jobs of its own, at any time: what is counted and what is there
    // are of one moment if nothing was counted in between.
    let mut by_state = counts(admin);
    let (jobs, items, queues) = loop {
        let all = everything(admin, &effects);
        let now = counts(admin);
        if std::mem::replace(&mut by_state, now) == now {
            break all;
        }
    };
    let trails = TENANTS.map(|tenant| trail(admin, tenant)).into();
    let by_state = Some(by_state);
    history.dump = Dump { jobs, items, by_state, is_settled: true, trails, ..Dump::default() };
    complete(history, &queues);
}

/// How many jobs are in each state, as the server counts.
fn counts(admin: &mut Api) -> [u64; StateName::ALL.len()] {
    let counted = read(admin, "/api/v1/runtime");
    let counted = &counted["counters"]["jobs"];
    StateName::ALL.map(|state| counted[state.as_str()].as_u64().unwrap_or(0))
}

/// Every job, every dead-letter item, and which queue each job is in.
fn everything(
    admin: &mut Api,
    effects: &BTreeMap<String, BTreeSet<String>>,
) -> (Vec<JobDump>, Vec<ItemDump>, BTreeMap<String, String>) {
    let (mut jobs, mut queues) = (Vec::new(), BTreeMap::new());
    for job in pages(admin, "/api/v1/jobs?limit=100") {
        let id = text(&job, "job_id");
        let events = read(admin, &format!("/api/v1/jobs/{id}/events"));
        let names = effects.get(&id).into_iter().flatten();
        let kept = names.filter_map(|name| effect(admin, &id, name).map(|value| (name, value)));
        let kept = kept.map(|(name, value)| (name.clone(), value)).collect();
        queues.insert(id, text(&job, "queue"));
        jobs.push(job_dump(&job, &events, kept));
    }
    let items = pages(admin, "/api/v1/dlq/items?limit=100").iter().map(item_dump).collect();
    (jobs, items, queues)
}

/// Times that an answer did not tell come from the dump: when a job of a batch was made, and when
/// an attempt began (its deadline is known, and how long it may take).
fn complete(history: &mut History, queues: &BTreeMap<String, String>) {
    let jobs: BTreeMap<&str, &JobDump> =
        history.dump.jobs.iter().map(|job| (&*job.id, job)).collect();
    for operation in &mut history.operations {
        match &mut operation.outcome {
            Outcome::Ok(Answer::Submitted { job, created_at, .. }) if *created_at == 0 => {
                *created_at = jobs.get(&**job).map_or(0, |job| job.created_at);
            }
            Outcome::Ok(Answer::Grants(grants)) => {
                for grant in grants {
                    let Some(job) = jobs.get(&*grant.job) else { continue };
                    grant.granted_at -= i64::try_from(job.timeout_ms).unwrap_or(0) * 1000;
                    grant.queue = queues.get(&grant.job).cloned().unwrap_or_default();
                }
            }
            Outcome::Ok(_) | Outcome::Fail(_) | Outcome::Info | Outcome::Gone => {}
        }
    }
}

fn read(admin: &mut Api, path: &str) -> Value {
    admin.ask("GET", path, None).unwrap_or_else(|outcome| panic!("{path}: {outcome:?}"))
}

/// All pages of a list.
fn pages(admin: &mut Api, path: &str) -> Vec<Value> {
    let mut all = Vec::new();
    let mut next = path.to_owned();
    loop {
        let mut page = read(admin, &next);
        all.extend(page["items"].as_array_mut().map(std::mem::take).unwrap_or_default());
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("{path}&cursor={cursor}"),
            None => return all,
        }
    }
}

/// The audit trail of a tenant, and whether the server finds it whole.
fn trail(admin: &mut Api, tenant: &str) -> TrailDump {
    let verdict = admin.ask_in(tenant, "/api/v1/audit/verify");
    let mut lines = Vec::new();
    let mut next = String::from("/api/v1/audit?limit=100");
    loop {
        let page = admin.ask_in(tenant, &next);
        let page = page.unwrap_or_else(|outcome| panic!("the trail of {tenant}: {outcome:?}"));
        lines.extend(page["items"].as_array().into_iter().flatten().map(audit_dump));
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("/api/v1/audit?limit=100&cursor={cursor}"),
            None => break,
        }
    }
    lines.reverse();
    let is_valid = verdict.is_ok_and(|verdict| verdict["valid"] == true);
    TrailDump { tenant: tenant.to_owned(), is_valid, lines }
}

fn audit_dump(line: &Value) -> AuditDump {
    AuditDump {
        seq: line["seq"].as_u64().unwrap_or(0),
        action: text(line, "action"),
        object: text(line, "object_id"),
        actor: text(&line["actor"], "user_id"),
        is_denied: line["outcome"] == "denied",
    }
}

fn effect(admin: &mut Api, job: &str, name: &str) -> Option<String> {
    let path = format!("/api/v1/work/effects/{job}/{name}");
    let found = admin.ask("GET", &path, None).ok()?;
    Some(text(&found, "value"))
}

fn job_dump(job: &Value, events: &Value, effects: Vec<(String, String)>) -> JobDump {
    let maybe_text = |field: &str| job[field].as_str().map(str::to_owned);
    let maybe_time = |field: &str| job[field].is_string().then(|| time(job, field));
    let events = events["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    JobDump {
        id: text(job, "job_id"),
        tenant: text(job, "tenant_id"),
        job_type: text(job, "job_type"),
        payload: text(job, "payload_json"),
        queue: text(job, "queue"),
        priority: number(job, "priority"),
        key: maybe_text("idempotency_key"),
        source_item: maybe_text("source_dlq_id"),
        state: state(job, "status"),
        retry_count: number(job, "retry_count"),
        max_retries: number(job, "max_retries"),
        timeout_ms: u64::from(number(job, "timeout_ms")),
        created_at: time(job, "created_at"),
        updated_at: time(job, "updated_at"),
        run_at: time(job, "run_at"),
        started_at: maybe_time("started_at"),
        finished_at: maybe_time("finished_at"),
        effects,
        events: events.iter().map(event_dump).collect(),
    }
}

fn event_dump(event: &Value) -> EventDump {
    EventDump {
        seq: number(event, "seq"),
        from: event["from_state"].as_str().and_then(StateName::parse),
        to: state(event, "to_state"),
        at: time(event, "occurred_at"),
        attempt: number(event, "attempt"),
        code: event["reason_code"].as_str().map(str::to_owned),
        actor: text(event, "actor"),
    }
}

fn item_dump(item: &Value) -> ItemDump {
    let maybe_text = |field: &str| item[field].as_str().map(str::to_owned);
    ItemDump {
        id: text(item, "dlq_id"),
        job: text(item, "job_id"),
        state: text(item, "status"),
        requeued_as: maybe_text("requeued_job_id"),
        proposed_by: maybe_text("requested_by"),
        approved_by: maybe_text("approved_by"),
    }
}
