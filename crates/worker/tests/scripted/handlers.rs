//! Handlers that panic, block, and use the effect ledger.

use crate::employer::{Asked, Reply, agreeing, employer, json, quick, run};
use mainspring_worker::{About, Failure, Recorded, Said, Summary};
use serde_json::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_fails_its_attempt_and_no_neighbour() {
    let (employer, mut heard) = employer(agreeing(3));
    let running = run(quick(&employer).on("t", |ctx| {
        assert!(ctx.job().job_id != "job-1", "a bug before the first await");
        async move {
            tokio::task::yield_now().await;
            assert!(ctx.job().job_id != "job-2", "a bug after it");
            Ok(1)
        }
    }));
    let mut failed = 0;
    while failed < 2 {
        for report in heard.report().await.0 {
            if let Said::Fail(failure) = report.said {
                assert_eq!((&*failure.code, failure.retryable), ("HANDLER_PANICKED", true));
                failed += 1;
            }
        }
    }
    assert_eq!(running.stopped().await, Summary { completed: 1, failed: 2, ..Summary::default() });
}

/// A gate that blocks threads, not tasks.
#[derive(Default)]
struct Gate {
    is_open: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicUsize,
}

impl Gate {
    fn pass(&self) {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let mut is_open = self.is_open.lock().unwrap();
        while !*is_open {
            is_open = self.opened.wait(is_open).unwrap();
        }
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

/// Opens the gate in the end, also if the test fails: nobody can end a thread that waits there.
struct Opened(Arc<Gate>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// Two of four threads are blocked. The attempts are given up in time, and their places are not
/// given to others, who would block the other two threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_block_are_given_up_but_keep_their_places_until_they_return() {
    let (employer, mut heard) = employer(agreeing(2));
    let gate = Arc::new(Gate::default());
    let (blocked, _opened) = (gate.clone(), Opened(gate.clone()));
    let builder = quick(&employer).concurrency(2).lease(Duration::from_millis(300));
    let running = run(builder
        .drain_grace(Duration::ZERO)
        .stop_grace(Duration::from_millis(100))
        .on("t", move |_| {
            let gate = blocked.clone();
            async move {
                gate.pass();
                Ok(1)
            }
        }));
    // Heartbeats go out although the handlers' threads are blocked.
    for _ in 0..3 {
        heard.beat().await;
    }
    assert_eq!(gate.waiting.load(Ordering::SeqCst), 2);
    let summary = running.stopped_within(Duration::from_secs(20)).await.unwrap();
    assert_eq!(summary, Summary { released: 2, ..Summary::default() });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_place_of_a_handler_that_blocks_is_free_when_it_returns() {
    let mut base = agreeing(1);
    let (employer, mut heard) = employer(move |asked| match asked {
        // Its lease is lost: it should stop, and cannot.
        Asked::Beat(beat) => {
            Reply::Renewals(vec![mainspring_worker::Renewal::Lost; beat.signs.len()])
        }
        other => base(other),
    });
    let gate = Arc::new(Gate::default());
    let (blocked, _opened) = (gate.clone(), Opened(gate.clone()));
    let builder = quick(&employer).concurrency(1).lease(Duration::from_millis(300));
    let running = run(builder.stop_grace(Duration::from_millis(50)).on("t", move |_| {
        let gate = blocked.clone();
        async move {
            gate.pass();
            Ok(1)
        }
    }));
    heard.pull().await;
    heard.beat().await;
    tokio::time::sleep(Duration::from_millis(500)).await; // paced: nothing may happen meanwhile
    let pulls = heard.count(|asked| matches!(asked, Asked::Pull(_)));
    assert_eq!(pulls, 0, "its place is taken as long as it blocks a thread");
    gate.open();
    assert_eq!(heard.pull().await.limit, 1, "now it is free");
    assert_eq!(running.stopped().await, Summary { lost: 1, ..Summary::default() });
}

/// Runs a handler of one step and answers with what it failed with, or its result.
async fn step(mut answer: impl FnMut(&Asked) -> Option<Reply> + Send + 'static) -> Said {
    let mut base = agreeing(1);
    let (employer, mut heard) = employer(move |asked| answer(asked).unwrap_or_else(|| base(asked)));
    let builder = quick(&employer).lease(Duration::from_secs(60));
    let running = run(builder.on("t", |ctx| async move {
        ctx.step("charge", || async { Ok("mine".to_owned()) }).await
    }));
    let said = heard.report().await.0.remove(0).said;
    running.stopped().await;
    said
}

fn failure(said: Said) -> Failure {
    let Said::Fail(failure) = said else { panic!("{said:?}") };
    failure
}

fn result(said: Said) -> String {
    let Said::Complete(Some(result)) = said else { panic!("{said:?}") };
    serde_json::from_str(result.get()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_step_gives_the_first_value_that_was_recorded() {
    assert_eq!(result(step(|_| None).await), "mine");
    let known = || json(&Value::from("first"));
    let found = step(move |asked| match asked {
        Asked::Effect => Some(Reply::Effect(Some(known()))),
        Asked::Record(..) => panic!("there is nothing to record"),
        _ => None,
    });
    assert_eq!(result(found.await), "first");
    let beaten = step(move |asked| match asked {
        Asked::Record(..) => Some(Reply::Recorded(Recorded { value: known(), is_first: false })),
        _ => None,
    });
    assert_eq!(result(beaten.await), "first", "somebody was faster");
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_does_not_answer_fails_the_attempt_for_now() {
    for answer in [|| Reply::NotNow, || Reply::Hang, || Reply::Panic, || Reply::Gone] {
        let said = step(move |asked| match asked {
            Asked::Effect => Some(answer()),
            _ => None,
        });
        let failure = failure(said.await);
        assert_eq!((&*failure.code, failure.retryable), ("EFFECT_LEDGER_UNREACHABLE", true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_hiccups_is_asked_again() {
    let mut hiccups = 4;
    let said = step(move |asked| match asked {
        Asked::Effect | Asked::Record(..) if hiccups > 0 => {
            hiccups -= 1;
            Some(Reply::NotNow)
        }
        _ => None,
    });
    assert_eq!(result(said.await), "mine");
}

#[tokio::test(start_paused = true)]
async fn what_the_ledger_refuses_fails_the_attempt_for_good() {
    let said = step(|asked| match asked {
        Asked::Record(..) => Some(Reply::Refused(About::Content)),
        _ => None,
    });
    let failure = failure(said.await);
    assert_eq!((&*failure.code, failure.retryable), ("EFFECT_REFUSED", false));
}
