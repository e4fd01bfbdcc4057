//! What refused and repeated calls may not do, what is shown of a job, and how long things take.

use crate::{clean, grants_mut, names};
use mainspring_kernel::StateName;
use mainspring_testkit::checker::check;
use mainspring_testkit::history::{
    Answer, Call, EventDump, History, Injected, JobDump, Operation, Outcome, PullScope, Seen,
};

pub(super) fn fault(at: u64, kind: &str) -> Injected {
    Injected { at, kind: kind.to_owned() }
}

pub(super) fn operation(at: u64, call: Call, outcome: Outcome) -> Operation {
    Operation { invoked_at: at, ended_at: Some(at + 1), call, outcome }
}

fn seen_mut(history: &mut History) -> impl Iterator<Item = &mut Seen> {
    history.operations.iter_mut().filter_map(|operation| match &mut operation.outcome {
        Outcome::Ok(Answer::Seen(seen)) => Some(seen),
        Outcome::Ok(_) | Outcome::Fail(_) | Outcome::Info | Outcome::Gone => None,
    })
}

/// The first attempt that the reaper ended, of a job whose grant was delivered.
fn reaped_mut(history: &mut History) -> Option<(&mut JobDump, usize)> {
    let granted: Vec<String> =
        grants_mut(history).flatten().map(|grant| grant.job.clone()).collect();
    history.dump.jobs.iter_mut().find_map(|job| {
        let is_reaped = |event: &EventDump| {
            event.actor == "system:reaper" && event.code.as_deref() == Some("TASK_LEASE_LOST")
        };
        let nth = job.events.iter().position(is_reaped)?;
        granted.contains(&job.id).then_some((job, nth))
    })
}

#[test]
fn what_refused_calls_do_is_named() {
    let clean = clean();
    names("S4", &clean, |history| {
        let mut reports = history.operations.iter_mut().filter(|op| op.is_report());
        reports.next().is_some_and(|report| {
            report.outcome = Outcome::Fail("SOMETHING_ELSE".to_owned());
            true
        })
    });
    names("S4", &clean, |history| {
        let mut is_one = false;
        for operation in &mut history.operations {
            if matches!(operation.call, Call::Cancel { .. }) {
                is_one |= operation.answer().is_some();
                operation.outcome = Outcome::Fail("JOB_CANCEL_CONFLICT".to_owned());
            }
        }
        is_one
    });
    names("S4", &clean, |history| {
        let mut jobs = history.dump.jobs.iter_mut();
        jobs.next().is_some_and(|job| {
            job.effects.push(("mail".to_owned(), "\"nobody's\"".to_owned()));
            true
        })
    });
}

#[test]
fn what_is_shown_in_part_is_named() {
    let clean = clean();
    let first = |history: &mut History, change: fn(&mut Seen)| {
        seen_mut(history).next().map(change).is_some()
    };
    names("S6", &clean, |history| {
        first(history, |seen| seen.retry_count = seen.retry_count.map(|count| count + 1))
    });
    names("S6", &clean, |history| first(history, |seen| seen.updated_at += 1));
    names("S6", &clean, |history| first(history, |seen| seen.has_item = Some(false)));
    names("R3", &clean, |history| {
        let mut due = seen_mut(history).filter_map(|seen| seen.due_at.as_mut());
        due.next().map(|due_at| *due_at += 10_000_000).is_some()
    });
}

#[test]
fn what_takes_too_long_is_named() {
    let clean = clean();
    names("V2", &clean, |history| {
        history.faults.clear();
        let Some((job, nth)) = reaped_mut(history) else { return false };
        job.events[nth].at += 60_000_000;
        true
    });
    names("V1", &clean, |history| {
        history.faults = vec![fault(5, "restart"), fault(20_000_000, "ready")];
        true
    });
    names("V1", &clean, |history| {
        let ends = history.operations.iter().filter_map(|op| op.answer().and(op.ended_at));
        let Some(at) = ends.into_iter().find(|at| *at > 3_000_000) else { return false };
        let went = at.saturating_sub(2_000_000);
        history.faults =
            vec![fault(went, "crash"), fault(at + 1, "restart"), fault(at + 2, "ready")];
        true
    });
    names("L11", &clean, |history| {
        history.faults.clear();
        let Some((job, nth)) = reaped_mut(history) else { return false };
        job.events[nth - 1].actor = "worker:ghost".to_owned();
        let (worker, scope) = ("ghost".to_owned(), PullScope::default());
        let pull = Call::Pull { worker, lease_ms: 1_000, scope };
        history.operations.insert(0, operation(1, pull, Outcome::Gone));
        true
    });
    names("V2", &clean, |history| {
        let job = history.dump.jobs.first_mut();
        job.is_some_and(|job| {
            job.state = StateName::Running;
            true
        })
    });
}

#[test]
fn what_retention_removed_is_not_missed_and_nothing_else_is_excused() {
    let mut history = clean().swap_remove(0);
    let job = history.dump.jobs.remove(0);
    history.dump.by_state = None;
    let missed = |history: &History| {
        check(history).iter().any(|violation| violation.rule == "D1" && violation.subject == job.id)
    };
    assert!(missed(&history));
    history.dump.kept_since = Some(job.created_at - 1_000);
    assert!(missed(&history), "it was made later than that");
    history.dump.kept_since = Some(job.created_at + 1_000);
    assert!(!missed(&history));
}

#[test]
fn clocks_and_reads_that_go_back_are_named() {
    let clean = clean();
    names("S7", &clean, |history| {
        history.faults.clear();
        let mut last = None;
        for operation in &mut history.operations {
            if let Outcome::Ok(Answer::Submitted { is_hit: false, created_at, .. }) =
                &mut operation.outcome
            {
                last = Some(created_at);
            }
        }
        last.map(|created_at| *created_at -= 600_000_000).is_some()
    });
    names("D2", &clean, |history| {
        let mut reads = history
            .operations
            .iter()
            .filter(|op| matches!(&op.outcome, Outcome::Ok(Answer::Seen(seen)) if seen.seq >= 2));
        let Some(mut again) = reads.next_back().cloned() else { return false };
        again.invoked_at = u64::MAX - 1;
        again.ended_at = Some(u64::MAX);
        let Call::Read { job } = &again.call else { return false };
        let job = history.dump.jobs.iter().find(|dump| dump.id == *job);
        let Some(first) = job.map(|job| job.events[0].clone()) else { return false };
        if let Outcome::Ok(Answer::Seen(seen)) = &mut again.outcome {
            (seen.seq, seen.state, seen.updated_at) = (first.seq, first.to, first.at);
            (seen.retry_count, seen.due_at, seen.has_item) = (None, None, None);
        }
        history.operations.push(again);
        true
    });
}
