//! The rules as text tables: what was, what is asked, what comes of it.
//!
//! A script is a list of acts separated by `;`. The last one is the question, and its outcome is
//! the moves it brought about, the answer when nothing moved, or the code of the refusal.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/world.rs"]
mod world;

use mainspring_kernel::event::Change;
use mainspring_kernel::retry::{Backoff, delay_ms};
use mainspring_kernel::{Decision, Event, JobId, Receipt, Rejection, StateName};
use world::{Act, Holder, World};

/// Plays `given`, which must be accepted, then compares what `when` brings about with `then`.
#[track_caller]
fn check(given: &str, when: &str, then: &str) -> World {
    let mut world = World::default();
    for line in given.split(';').map(str::trim).filter(|line| !line.is_empty()) {
        let outcome = world.act(0, &read(line));
        assert!(outcome.is_none_or(|outcome| outcome.answer.is_ok()), "given: {line}");
    }
    let before = world.jobs.clone();
    let answer = world.act(0, &read(when)).expect("a question is not about the clock").answer;
    assert_eq!(told(&answer), then, "given {given:?} when {when:?}");
    if answer.is_err() {
        assert_eq!(world.jobs, before, "a refusal changes nothing");
    }
    world
}

#[track_caller]
fn check_all(table: &[(&str, &str, &str)]) {
    for (given, when, then) in table {
        check(given, when, then);
    }
}

fn read(line: &str) -> Act {
    let words: Vec<&'static str> = line.to_owned().leak().split(' ').collect();
    let named =
        |name: &str| words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let number = |name: &str| named(name).map(|text| text.parse::<u64>().unwrap());
    let word = |index: usize| words.get(index).copied().filter(|word| !word.contains('='));
    let by = match named("as") {
        Some("earlier") => Holder::Earlier(0),
        Some("foreign") => Holder::Nobody,
        Some(other) => panic!("no holder {other}"),
        None => Holder::Newest,
    };
    let lease_ms = number("lease").unwrap_or(1_000) as u32;
    match words[0] {
        "submit" => Act::Submit {
            ahead_ms: number("ahead"),
            max_retries: number("retries").unwrap_or(1) as u16,
            timeout_ms: number("timeout").unwrap_or(60_000) as u32,
            expires_ms: number("expires"),
        },
        "claim" => Act::Claim { lease_ms },
        "complete" => Act::Complete { by, result: word(1) },
        "fail" => Act::Fail {
            by,
            code: word(1).unwrap_or(""),
            retryable: word(2) != Some("fatal"),
            delay_ms: number("delay"),
        },
        "release" => Act::Release { by },
        "beat" => Act::Heartbeat { by, lease_ms },
        "effect" => Act::Effect { by, name: word(1).unwrap_or("") },
        "cancel" => Act::Cancel,
        "reap" => Act::Reap,
        "extend" => Act::Extend { ms: word(1).unwrap().parse().unwrap() },
        "move" => Act::Transition { to: StateName::parse(words[1]).unwrap() },
        "run" => Act::Run { ending: words[1] },
        "requeue" => Act::Requeue { key: word(1) },
        "propose" => Act::Propose { by: words[1], reason: word(2).unwrap_or(" ") },
        "approve" => Act::Approve { by: words[1] },
        "reject" => Act::Reject,
        "review" => Act::Review { one: words[1], two: word(2).unwrap_or("") },
        "wait" => Act::Wait { ms: words[1].parse().unwrap() },
        "back" => Act::ClockBack { ms: words[1].parse().unwrap() },
        other => panic!("no act {other}"),
    }
}

fn told(answer: &Result<Decision, Rejection>) -> String {
    let Decision { events, receipt } = match answer {
        Ok(decision) => decision,
        Err(rejection) => return rejection.code().to_owned(),
    };
    let steps: Vec<String> = events.iter().filter_map(step).collect();
    match receipt {
        Receipt::Moved { state } if steps.is_empty() => format!("again: {state}"),
        Receipt::Requeued { .. } if steps.is_empty() => "again: requeued".to_owned(),
        Receipt::CancelledMeanwhile => "told to stop".to_owned(),
        Receipt::Effect { is_first: true, .. } => "first".to_owned(),
        Receipt::Effect { is_first: false, .. } => "kept from before".to_owned(),
        _ => steps.join(", "),
    }
}

fn step(event: &Event) -> Option<String> {
    Some(match event {
        Event::JobMoved(moved) => match &moved.change {
            Change::Claimed(lease) => format!("running {}", lease.fence),
            Change::Succeeded { .. } => "succeeded".to_owned(),
            Change::RetryScheduled { failure, .. } => format!("retrying {}", failure.code),
            Change::Released { .. } => "released".to_owned(),
            Change::Hastened => "hastened".to_owned(),
            Change::Unblocked { .. } => "unblocked".to_owned(),
            Change::DeadLettered { failure, is_exhausted: false, .. } => {
                format!("dlq_pending {}", failure.code)
            }
            Change::DeadLettered { .. } => "dlq_pending exhausted".to_owned(),
            Change::DlqRecorded => "dlq_recorded".to_owned(),
            Change::Failed => "failed".to_owned(),
            Change::Cancelled { code, .. } => (*code).to_owned(),
        },
        Event::ItemOpened(_) => "item".to_owned(),
        Event::ItemChanged { state, .. } => state.as_str().to_owned(),
        Event::JobSubmitted(_) => "submitted".to_owned(),
        Event::LeaseRenewed { .. } => "renewed".to_owned(),
        Event::EffectCommitted { .. }
        | Event::EntitySet(_)
        | Event::EntityRemoved { .. }
        | Event::TypeSet(_)
        | Event::QueueSet(_)
        | Event::TokenIssued(_)
        | Event::TokenRevoked { .. } => return None,
    })
}

const BURIED: &str = "dlq_pending exhausted, item, dlq_recorded, failed";

#[test]
fn retryable_failures_retry_until_none_is_left_and_others_never() {
    check_all(&[
        ("submit; claim", "fail E", "retrying E"),
        ("submit retries=0; claim", "fail E", BURIED),
        ("submit; claim; fail E; wait 2000; claim", "fail E", BURIED),
        ("submit; claim", "fail E fatal", "dlq_pending E, item, dlq_recorded, failed"),
        ("submit; claim", "fail", "retrying TASK_EXECUTION_FAILED"),
        ("submit retries=0; claim; release; claim", "fail E", BURIED),
        ("submit retries=0; claim; release; claim", "release", "released"),
        (
            "submit; run retry; wait 2000",
            "run retry",
            "running 2, dlq_pending exhausted, item, dlq_recorded, failed",
        ),
        ("submit", "run dlq", "running 1, dlq_pending FORCED, item, dlq_recorded, failed"),
    ]);
}

/// G05 and G06 with the default policy: three retries, and delays that follow the formula.
#[test]
fn the_fourth_failure_is_the_last_and_delays_double() {
    let mut world = World::default();
    world.act(0, &read("submit retries=3 timeout=60000"));
    for (retry, low) in [(1, 1_000), (2, 2_000), (3, 4_000)] {
        assert_eq!(told(&world.act(0, &read("claim")).unwrap().answer), format!("running {retry}"));
        assert_eq!(told(&world.act(0, &read("fail E")).unwrap().answer), "retrying E");
        let job = world.jobs.values().next().unwrap();
        let delay = job.due_at().unwrap().since(world.now).as_millis() as u64;
        assert!((low..=low + 300).contains(&delay), "retry {retry} waits {delay} ms");
        assert_eq!(delay, delay_ms(Backoff::DEFAULT, job.id, retry), "a replay waits as long");
        assert_eq!(job.retry_count, retry);
        world.now = job.due_at().unwrap();
        world.now.0 -= 1;
        assert_eq!(told(&world.act(0, &read("claim")).unwrap().answer), "NOT_DUE");
        world.now.0 += 1;
    }
    world.act(0, &read("claim"));
    assert_eq!(told(&world.act(0, &read("fail E")).unwrap().answer), BURIED);
    assert_eq!(world.jobs[&JobId(1)].retry_count, 3);
}

#[test]
fn a_worker_may_choose_the_delay() {
    let world = check("submit; claim", "fail E delay=250", "retrying E");
    assert_eq!(world.jobs[&JobId(1)].due_at(), Some(world.now.plus_millis(250)));
    let world = check("submit; claim", "fail E delay=99999999999", "retrying E");
    let most = mainspring_kernel::limits::RETRY_DELAY_MS_MAX;
    assert_eq!(world.jobs[&JobId(1)].due_at(), Some(world.now.plus_millis(most)));
}

#[test]
fn only_the_live_lease_may_report_and_its_repeat_is_answered_again() {
    check_all(&[
        ("submit; claim", "complete 1 as=foreign", "LEASE_LOST"),
        ("submit; claim; release; claim", "complete 1 as=earlier", "REPORT_CONFLICT"),
        ("submit; claim; wait 1000; reap; wait 2000; claim", "complete 1 as=earlier", "LEASE_LOST"),
        ("submit; claim; wait 999", "complete 1", "succeeded"),
        ("submit; claim; wait 1000", "complete 1", "LEASE_LOST"),
        ("submit timeout=500; claim; wait 500", "complete 1", "LEASE_LOST"),
        ("submit; claim; complete 1", "complete 1", "again: succeeded"),
        ("submit; claim; complete 1", "complete 2", "REPORT_CONFLICT"),
        ("submit; claim; complete 1", "fail E", "REPORT_CONFLICT"),
        ("submit; claim; fail E", "fail E", "again: retrying"),
        ("submit; claim; fail E", "fail F", "REPORT_CONFLICT"),
        ("submit; claim; fail E", "fail E fatal", "REPORT_CONFLICT"),
        ("submit; claim; fail E; wait 2000; claim", "fail E as=earlier", "again: running"),
        ("submit; claim; release", "release", "again: retrying"),
        ("submit; claim; move succeeded", "complete 1", "LEASE_LOST"),
    ]);
}

#[test]
fn heartbeats_renew_live_leases_only_and_tell_of_a_cancellation() {
    check_all(&[
        ("submit; claim", "beat lease=5000", "renewed"),
        ("submit; claim; beat lease=5000; wait 4999", "complete", "succeeded"),
        ("submit; claim lease=9000; beat lease=200; wait 8999", "complete", "succeeded"),
        ("submit; claim; wait 1000", "beat", "LEASE_LOST"),
        ("submit; claim", "beat as=foreign", "LEASE_LOST"),
        ("submit timeout=2000; claim; beat lease=9000; wait 2000", "beat", "LEASE_LOST"),
        ("submit; claim; cancel", "beat", "told to stop"),
        ("submit; claim; cancel", "beat as=foreign", "LEASE_LOST"),
        ("submit; claim; cancel", "complete 1", "LEASE_LOST"),
    ]);
}

#[test]
fn an_effect_is_committed_by_the_live_lease_and_once() {
    check_all(&[
        ("submit; claim", "effect x", "first"),
        ("submit; claim; effect x", "effect x", "kept from before"),
        ("submit; claim; effect x", "effect y", "first"),
        ("submit; claim; effect x; fail E; wait 2000; claim", "effect x", "kept from before"),
        ("submit; claim; effect x; fail E; wait 2000; claim", "effect y as=earlier", "LEASE_LOST"),
        ("submit; claim; wait 1000", "effect x", "LEASE_LOST"),
        ("submit; claim", "effect", "REQ_VALIDATION_FAILED"),
    ]);
}

#[test]
fn a_job_can_be_cancelled_until_it_is_ending() {
    check_all(&[
        ("submit", "cancel", "JOB_CANCELLED"),
        ("submit ahead=5000", "cancel", "JOB_CANCELLED"),
        ("submit; claim", "cancel", "JOB_CANCELLED"),
        ("submit; claim; fail E", "cancel", "JOB_CANCELLED"),
        ("submit; claim; move dlq_pending", "cancel", "JOB_CANCEL_CONFLICT"),
        ("submit; claim; move dlq_pending; move dlq_recorded", "cancel", "JOB_CANCEL_CONFLICT"),
        ("submit; claim; complete", "cancel", "JOB_CANCEL_CONFLICT"),
        ("submit; claim; fail E fatal", "cancel", "JOB_CANCEL_CONFLICT"),
        ("submit; cancel", "cancel", "JOB_CANCEL_CONFLICT"),
        ("submit; claim; cancel", "claim", "WF_STATE_TRANSITION_INVALID"),
    ]);
}

#[test]
fn the_reaper_is_never_early_and_never_twice() {
    check_all(&[
        ("submit", "reap", "NOT_DUE"),
        ("submit; claim; wait 999", "reap", "NOT_DUE"),
        ("submit; claim; wait 1000", "reap", "retrying TASK_LEASE_LOST"),
        ("submit; claim; wait 1000; reap", "reap", "NOT_DUE"),
        ("submit; claim; beat lease=5000; wait 1000", "reap", "NOT_DUE"),
        ("submit timeout=500; claim; wait 499", "reap", "NOT_DUE"),
        ("submit timeout=500; claim; wait 500", "reap", "retrying TASK_TIMEOUT"),
        ("submit timeout=500; claim; wait 90000", "reap", "retrying TASK_TIMEOUT"),
        ("submit; claim; wait 90000", "reap", "retrying TASK_LEASE_LOST"),
        ("submit retries=0; claim; wait 1000", "reap", BURIED),
        ("submit; claim; wait 1000; extend 500", "reap", "NOT_DUE"),
        ("submit; claim; wait 1000; extend 500", "complete", "succeeded"),
        ("submit; claim", "extend 500", "NOT_DUE"),
        ("submit; claim; wait 500; back 9000", "reap", "NOT_DUE"),
    ]);
}

#[test]
fn a_job_not_started_in_time_expires_and_is_not_handed_out() {
    check_all(&[
        ("submit expires=3000; wait 2999", "reap", "NOT_DUE"),
        ("submit expires=3000; wait 2999", "claim", "running 1"),
        ("submit expires=3000; wait 3000", "claim", "NOT_DUE"),
        ("submit expires=3000; wait 3000", "reap", "TASK_EXPIRED"),
        ("submit expires=3000; wait 3000; reap", "reap", "NOT_DUE"),
        ("submit expires=3000; claim; fail E; wait 9000", "reap", "NOT_DUE"),
        ("submit expires=3000; claim; fail E; wait 9000", "claim", "running 2"),
        ("submit ahead=1", "claim", "NOT_DUE"),
        ("submit ahead=1; wait 1", "claim", "running 1"),
    ]);
}

#[test]
fn a_dead_letter_that_stopped_half_way_is_finished() {
    let pending = "submit; claim; move dlq_pending";
    let recorded = "submit; claim; move dlq_pending; move dlq_recorded";
    check(&format!("{pending}; wait 29999"), "reap", "NOT_DUE");
    check(&format!("{pending}; wait 30000"), "reap", "item, dlq_recorded, failed");
    check(&format!("{recorded}; wait 29999"), "reap", "NOT_DUE");
    let world = check(&format!("{recorded}; wait 30000"), "reap", "failed");
    assert_eq!(world.items.len(), 1, "the item is not written again");
}

#[test]
fn an_item_is_requeued_once_as_a_new_job() {
    let dead = "submit retries=0; claim; fail E";
    let world = check(dead, "requeue k", "submitted, requeued");
    let (old, new) = (&world.jobs[&JobId(1)], world.jobs.values().last().unwrap());
    assert_eq!(old.state.name(), StateName::Failed);
    assert_eq!((new.retry_count, new.fence, new.seq), (0, 0, 1));
    assert_eq!((&new.payload, &new.job_type), (&old.payload, &old.job_type));
    assert_eq!(new.trace_id(), old.trace_id());
    check(&format!("{dead}; requeue k"), "requeue k", "again: requeued");
    check(&format!("{dead}; requeue k"), "requeue l", "DLQ_REQUEUE_CONFLICT");
    check(&format!("{dead}; requeue k"), "requeue", "DLQ_REQUEUE_CONFLICT");
    check(&format!("{dead}; requeue"), "requeue", "DLQ_REQUEUE_CONFLICT");
    check(&format!("{dead}; requeue k"), "propose ann why", "DLQ_DISCARD_CONFLICT");
    check(&format!("{dead}; propose ann why"), "requeue k", "DLQ_REQUEUE_CONFLICT");
}

#[test]
fn moves_by_hand_keep_the_bound_on_retries_and_fence_old_leases() {
    check_all(&[
        ("submit", "move running", "running 1"),
        ("submit ahead=5000", "move running", "running 1"),
        ("submit; move running", "move retrying", "retrying INTERNAL_TRANSITION"),
        ("submit retries=0; move running", "move retrying", "WF_STATE_TRANSITION_INVALID"),
        ("submit; claim; move retrying; move running", "complete as=earlier", "LEASE_LOST"),
        ("submit; claim; move retrying", "move dlq_pending", "dlq_pending INTERNAL_TRANSITION"),
        ("submit; claim; move dlq_pending", "move dlq_recorded", "item, dlq_recorded"),
        ("submit; claim", "move cancelled", "WF_STATE_TRANSITION_INVALID"),
        ("submit; claim", "run success", "succeeded"),
    ]);
}

#[test]
fn a_clock_that_runs_back_does_not_move_a_job_back() {
    let world = check("submit; claim; back 50000", "complete", "succeeded");
    let job = &world.jobs[&JobId(1)];
    assert!(job.finished_at().unwrap() >= job.started_at.unwrap());
    assert!(job.updated_at > world.now);
}
