//! What a page of metrics says, and how long it can get.

use super::*;
use mainspring_engine::store::Recovery;
use mainspring_kernel::{JobType, QueueName};

fn status() -> RuntimeStatus {
    RuntimeStatus {
        started_at: Timestamp(0),
        commits: 0,
        commands: 0,
        illegal_moves: 0,
        stale_leases: 0,
        idempotent_hits: 0,
        parked_pulls: 0,
        clock: mainspring_engine::Course::default(),
    }
}

fn queue(name: &str, ready: u64) -> QueueCount {
    let oldest_due = (ready > 0).then_some(Timestamp(1_000_000));
    QueueCount { name: QueueName::new(name).unwrap(), ready, pending: 2, running: 3, oldest_due }
}

fn rendered(counts: &Counts, detail: Detail) -> String {
    let mut page = Page(String::new());
    whole(&mut page, counts, &status(), detail, Timestamp(3_500_000));
    let health = Health {
        kind: "memory",
        broken: None,
        is_low_on_space: false,
        damaged_blocks: 3,
        recovery: Recovery::default(),
    };
    condition(&mut page, &status(), &health);
    page.0
}

#[test]
fn the_five_gauges_have_their_names() {
    let counts = Counts {
        by_state: [1, 0, 0, 0, 0, 3, 1, 5],
        due: 7,
        oldest_due: Some(Timestamp(1_000_000)),
        submitted: 10,
        jobs_retried: 5,
        items_open: 1,
        queues: vec![queue("a\"b", 1)],
        ..Counts::default()
    };
    let text = rendered(&counts, Detail::Names);
    for line in [
        "jobs_due_count 7",
        "jobs_lag_seconds 2.5",
        "job_success_rate 0.75",
        "job_retry_rate 0.5",
        "dead_letter_count 1",
        "mainspring_jobs{state=\"cancelled\"} 5",
        "mainspring_store_damaged_blocks 3",
        "mainspring_queue_ready{queue=\"a\\\"b\"} 1",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} is missing in\n{text}");
    }
}

fn of_type(name: &str, queued: u64) -> TypeCount {
    TypeCount { name: JobType::new(name).unwrap(), queued, running: 2, retrying: 3 }
}

#[test]
fn fifty_thousand_types_are_a_short_page_and_strangers_see_no_names() {
    let types = (0..50_000).map(|n| of_type(&format!("type-{n}"), n)).collect();
    let counts = Counts { types, ..Counts::default() };
    let text = rendered(&counts, Detail::Names);
    assert!(text.len() < 32 << 10, "{} bytes", text.len());
    for (state, count) in [("queued", 49_999), ("running", 2), ("retrying", 3)] {
        let line = format!("mainspring_type_jobs{{type=\"type-49999\",state=\"{state}\"}} {count}");
        assert!(text.contains(&line), "{line} is missing in {text}");
    }
    let rest = 50_000 - METRICS_TYPES_MAX as u64;
    for (state, count) in
        [("queued", (0..rest).sum::<u64>()), ("running", 2 * rest), ("retrying", 3 * rest)]
    {
        let line = format!("mainspring_type_jobs{{type=\"\",state=\"{state}\"}} {count}\n");
        assert!(text.contains(&line), "{line} is missing");
    }
    let text = rendered(&counts, Detail::Numbers);
    assert!(!text.contains("type-"), "{text}");
    assert!(text.contains("mainspring_type_jobs{type=\"\",state=\"running\"} 100000"), "{text}");
    assert!(text.contains("\nmainspring_types 50000\n"));
}

#[test]
fn fifty_thousand_queues_are_a_short_page_and_strangers_see_no_names() {
    let queues = (0..50_000).map(|n| queue(&format!("queue-{n}"), n)).collect();
    let counts = Counts { queues, ..Counts::default() };
    let text = rendered(&counts, Detail::Names);
    assert!(text.len() < 32 << 10, "{} bytes", text.len());
    assert!(text.contains("mainspring_queue_ready{queue=\"queue-49999\"} 49999"));
    let others: u64 = (0..50_000 - METRICS_QUEUES_MAX as u64).sum();
    let line = format!("mainspring_queue_ready{{queue=\"\"}} {others}");
    assert!(text.contains(&line), "{line} is missing");
    let text = rendered(&counts, Detail::Numbers);
    assert!(!text.contains("queue-"), "{text}");
    let all: u64 = (0..50_000).sum();
    assert!(text.contains(&format!("mainspring_queue_ready{{queue=\"\"}} {all}")), "{text}");
    assert!(text.contains("\nmainspring_queues 50000\n"));
}
