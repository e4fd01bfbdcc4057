//! The checker itself: a clean history passes, every kind of damage to it is named, and the line
//! format keeps everything.

mod checker {
    mod audit;
    mod others;
    mod refused;
}

use mainspring_kernel::StateName;
use mainspring_testkit::checker::check;
use mainspring_testkit::history::{Answer, Call, History, Outcome, lines};
use mainspring_testkit::planted::Plant;
use mainspring_testkit::sim;

pub(crate) fn clean() -> Vec<History> {
    // Of worlds that forget nothing: what is missed there was lost.
    let worlds = (1..).map(|seed| sim::run(seed, Plant::None).history);
    worlds.filter(|history| history.dump.kept_since.is_none()).take(12).collect()
}

/// Damages a copy of each history until one damage takes, and wants `rule` among the findings.
pub(crate) fn names(rule: &str, histories: &[History], damage: impl Fn(&mut History) -> bool) {
    for history in histories {
        let mut history = history.clone();
        if damage(&mut history) {
            let found = check(&history);
            let rules: Vec<&str> = found.iter().map(|violation| violation.rule).collect();
            assert!(rules.contains(&rule), "{rule} is not among {rules:?}");
            return;
        }
    }
    panic!("no history can be damaged for {rule}");
}

pub(crate) fn grants_mut(
    history: &mut History,
) -> impl Iterator<Item = &mut Vec<mainspring_testkit::history::Grant>> {
    history.operations.iter_mut().filter_map(|operation| match &mut operation.outcome {
        Outcome::Ok(Answer::Grants(grants)) if !grants.is_empty() => Some(grants),
        Outcome::Ok(_) | Outcome::Fail(_) | Outcome::Info | Outcome::Gone => None,
    })
}

#[test]
fn the_line_format_keeps_everything() {
    for history in clean() {
        let mut read = lines::read(&lines::write(&history)).expect("our own lines can be read");
        // Calls that began together may come back in another order.
        let mut history = history;
        history.operations.sort_by_key(|op| (op.invoked_at, format!("{:?}", op.call)));
        read.operations.sort_by_key(|op| (op.invoked_at, format!("{:?}", op.call)));
        assert_eq!(read, history);
    }
    assert_eq!(lines::read("{\"line\":\"end\",\"id\":1}\n").map_err(|bad| bad.number), Err(1));
}

#[test]
fn lost_and_changed_jobs_are_named() {
    let clean = clean();
    assert!(clean.iter().all(|history| check(history).is_empty()));
    names("D1", &clean, |history| history.dump.jobs.pop().is_some());
    names("D4", &clean, |history| {
        history.dump.jobs.iter_mut().for_each(|job| job.payload.push(' '));
        true
    });
    names("D3", &clean, |history| {
        let mut jobs = history.dump.jobs.iter();
        let twin = jobs.find(|job| job.source_item.is_none() && job.key.is_none()).cloned();
        let Some(mut twin) = twin else { return false };
        twin.id.push('x');
        history.dump.jobs.push(twin);
        true
    });
    names("D2", &clean, |history| {
        let is_cancelled = |job: &&mut mainspring_testkit::history::JobDump| {
            job.state == StateName::Cancelled && job.events.len() > 2
        };
        let Some(job) = history.dump.jobs.iter_mut().find(is_cancelled) else { return false };
        job.state = StateName::Retrying;
        true
    });
    names("D5", &clean, |history| {
        let Some(at) = history.operations.iter().find_map(|op| {
            matches!(op.outcome, Outcome::Ok(Answer::Submitted { .. })).then_some(op.ended_at)?
        }) else {
            return false;
        };
        let fault =
            |at, kind: &str| mainspring_testkit::history::Injected { at, kind: kind.into() };
        history.faults = vec![fault(at - 1, "disk_failed"), fault(at + 1, "restart")];
        true
    });
}

#[test]
fn broken_histories_are_named() {
    let clean = clean();
    names("S5", &clean, |history| {
        history.dump.jobs.iter_mut().any(|job| {
            let last = job.events.len() - 1;
            job.events[last].seq += 1;
            true
        })
    });
    names("S1", &clean, |history| {
        let job = history.dump.jobs.iter_mut().find(|job| job.state == StateName::Succeeded);
        job.is_some_and(|job| {
            job.events.retain(|event| event.to != StateName::Running);
            job.events.len() >= 2 && {
                job.events[1].from = Some(StateName::Queued);
                true
            }
        })
    });
    names("S7", &clean, |history| {
        history.dump.jobs.iter_mut().any(|job| {
            job.updated_at -= 1;
            true
        })
    });
    names("Q1", &clean, |history| history.dump.items.pop().is_some());
    names("V4", &clean, |history| {
        history.dump.by_state.as_mut().is_some_and(|counts| {
            counts[0] += 1;
            true
        })
    });
    names("E1", &clean, |history| {
        history.stream.len() > 3 && {
            history.stream.remove(1);
            true
        }
    });
    names("E2", &clean, |history| {
        history.stream.first_mut().is_some_and(|moved| {
            moved.seq = 99;
            true
        })
    });
}

#[test]
fn broken_leases_and_keys_are_named() {
    let clean = clean();
    names("L1", &clean, |history| {
        let first = grants_mut(history).next().map(|grants| grants[0].clone());
        let Some((first, grants)) = first.zip(grants_mut(history).nth(1)) else { return false };
        grants.push(first);
        true
    });
    names("L9", &clean, |history| {
        let Some(id) = grants_mut(history).next().map(|grants| grants[0].job.clone()) else {
            return false;
        };
        let job = history.dump.jobs.iter_mut().find(|job| job.id == id);
        job.is_some_and(|job| {
            job.run_at += 1 << 40;
            true
        })
    });
    names("L7", &clean, |history| {
        history.ledger.first_mut().is_some_and(|work| {
            work.worker.push('x');
            true
        })
    });
    names("L6", &clean, |history| {
        // A promise far beyond what the reaper waited for.
        let grants = grants_mut(history).flatten();
        grants.for_each(|grant| grant.lease_until += 1 << 40);
        history.dump.jobs.iter().any(|job| {
            job.events.iter().any(|event| event.code.as_deref() == Some("TASK_LEASE_LOST"))
        })
    });
    names("I1", &clean, |history| {
        let Some(mut twin) = history.dump.jobs.iter().find(|job| job.key.is_some()).cloned() else {
            return false;
        };
        twin.id.push('x');
        history.dump.jobs.push(twin);
        true
    });
    names("Q3", &clean, |history| {
        let item = history.dump.items.iter_mut().find(|item| item.state == "discarded");
        item.is_some_and(|item| {
            item.approved_by.clone_from(&item.proposed_by);
            true
        })
    });
    names("R1", &clean, |history| {
        let job = history.dump.jobs.iter_mut().find(|job| job.retry_count > 0);
        job.is_some_and(|job| {
            job.max_retries = 0;
            true
        })
    });
    names("P1", &clean, |history| {
        let Some(queue) = grants_mut(history).next().map(|grants| grants[0].queue.clone()) else {
            return false;
        };
        history.operations.retain(|op| !matches!(op.call, Call::Pause { .. }));
        let mut pause = history.operations[0].clone();
        (pause.invoked_at, pause.ended_at) = (0, Some(0));
        pause.call = Call::Pause { queue, is_paused: true };
        pause.outcome = Outcome::Ok(Answer::Done);
        history.operations.insert(0, pause);
        true
    });
}
