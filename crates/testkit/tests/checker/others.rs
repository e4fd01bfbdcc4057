//! Tenants, order, keys with a window, lists and whole streams.

use super::refused::operation;
use crate::{clean, names};
use mainspring_kernel::StateName;
use mainspring_testkit::checker::check;
use mainspring_testkit::history::{
    Answer, Call, Dump, EventDump, Grant, History, JobDump, Outcome, PullScope, TypeRules,
};

const SECOND: i64 = 1_000_000;

/// A job of `tenant` that was queued at `at` and first tried at `start`.
fn job(id: &str, tenant: &str, at: i64, start: i64) -> JobDump {
    let event = |seq, from, to, at, actor: &str| EventDump {
        seq,
        from,
        to,
        at,
        attempt: 1,
        code: None,
        actor: actor.to_owned(),
    };
    JobDump {
        id: id.to_owned(),
        tenant: tenant.to_owned(),
        job_type: "plain".to_owned(),
        payload: format!("\"{id}\""),
        queue: "default".to_owned(),
        priority: 50,
        key: None,
        source_item: None,
        state: StateName::Running,
        retry_count: 0,
        max_retries: 3,
        timeout_ms: 900_000,
        created_at: at,
        updated_at: start,
        run_at: at,
        started_at: Some(start),
        finished_at: None,
        effects: Vec::new(),
        events: vec![
            event(1, None, StateName::Queued, at, "user:ada"),
            event(2, Some(StateName::Queued), StateName::Running, start, "worker:w"),
        ],
    }
}

/// Jobs in the order in which they were handed out, all submitted at second 1 and granted one per
/// second from second 10 on. Harness and server have the same time.
fn handed_out(jobs: &[(&str, &str)]) -> History {
    let mut history = History { is_simulated: true, ..History::default() };
    history.types = vec![TypeRules {
        name: "plain".to_owned(),
        base_ms: 1_000,
        max_ms: 30_000,
        limit: None,
        is_per_tenant: false,
        rate: None,
        key: None,
        circuit: None,
    }];
    for (nth, (id, tenant)) in jobs.iter().enumerate() {
        let at = SECOND;
        let start = (10 + nth as i64) * SECOND;
        let made = job(id, tenant, at, start);
        let submit = Call::Submit {
            tenant: made.tenant.clone(),
            key: None,
            window_secs: None,
            job_type: made.job_type.clone(),
            payload: made.payload.clone(),
            delay_ms: 0,
        };
        let answer = Answer::Submitted { job: made.id.clone(), is_hit: false, created_at: at };
        history.operations.push(operation(at as u64, submit, Outcome::Ok(answer)));
        let grant = Grant {
            job: made.id.clone(),
            attempt: 1,
            token: "1.secret".to_owned(),
            granted_at: start,
            lease_until: start + 60 * SECOND,
            payload: made.payload.clone(),
            queue: made.queue.clone(),
        };
        let scope = PullScope::default();
        let pull = Call::Pull { worker: "w".to_owned(), lease_ms: 60_000, scope };
        let answer = Outcome::Ok(Answer::Grants(vec![grant]));
        history.operations.push(operation(start as u64, pull, answer));
        history.dump.jobs.push(made);
    }
    history
}

fn rules(history: &History) -> Vec<&'static str> {
    let mut rules: Vec<_> = check(history).iter().map(|violation| violation.rule).collect();
    rules.dedup();
    rules
}

#[test]
fn overtaking_and_waiting_in_vain_are_named() {
    let fair = handed_out(&[("a", "acme"), ("b", "bolt"), ("c", "acme")]);
    assert_eq!(rules(&fair), Vec::<&str>::new());

    // The second of acme's jobs was worth more.
    let mut wrong = fair.clone();
    wrong.dump.jobs[2].priority = 60;
    assert_eq!(rules(&wrong), ["F2"]);
    wrong.is_simulated = false;
    assert_eq!(rules(&wrong), Vec::<&str>::new());

    let others = ["b", "c", "d", "e", "f", "g", "h"].map(|id| (id, "bolt"));
    let unfair = handed_out(&[&others[..], &[("a", "acme")]].concat());
    assert_eq!(rules(&unfair), ["F3"]);
    let bearable = handed_out(&[&others[1..], &[("a", "acme")]].concat());
    assert_eq!(rules(&bearable), Vec::<&str>::new());
}

#[test]
fn limits_that_are_exceeded_are_named() {
    let three = handed_out(&[("a", "acme"), ("b", "bolt"), ("c", "acme")]);
    let with = |change: fn(&mut TypeRules)| {
        let mut history = three.clone();
        change(&mut history.types[0]);
        rules(&history)
    };
    let none = Vec::<&str>::new();
    assert_eq!(with(|rules| rules.rate = Some((1_000_000_000, 1))), none);
    assert_eq!(with(|rules| rules.rate = Some((900_000_000, 1))), ["F4"]);
    assert_eq!(with(|rules| rules.rate = Some((500_000_000, 2))), none);
    assert_eq!(with(|rules| rules.limit = Some(2)), ["F1"]);
    let keyed = |keys: [u32; 3]| {
        let mut history = three.clone();
        history.types[0] =
            TypeRules { limit: Some(2), key: Some("k".to_owned()), ..history.types[0].clone() };
        for (job, key) in history.dump.jobs.iter_mut().zip(keys) {
            job.payload = format!("{{\"k\":{key}}}");
        }
        rules(&history).contains(&"F1")
    };
    assert!(keyed([7, 7, 7]) && !keyed([7, 8, 7]));
}

/// Attempts of a type whose circuit opens for three seconds: from which second to which, and
/// whether it fails. Whether that is found to be wrong.
fn fused(attempts: &[(i64, i64, bool)]) -> bool {
    let mut history = handed_out(&[]);
    history.types[0].circuit = Some(3 * SECOND);
    for (nth, (from, to, has_failed)) in attempts.iter().enumerate() {
        let mut made = job(&nth.to_string(), "acme", SECOND, from * SECOND);
        let state = if *has_failed { StateName::DlqPending } else { StateName::Succeeded };
        let end = EventDump { seq: 3, to: state, at: to * SECOND, ..made.events[1].clone() };
        made.events.push(end);
        history.dump.jobs.push(made);
    }
    rules(&history).contains(&"F5")
}

#[test]
fn circuits_that_stay_closed_or_let_two_through_are_named() {
    let two = [(10, 20, true), (11, 21, true)];
    let then = |more: &[(i64, i64, bool)]| fused(&[&two[..], more].concat());
    assert!(then(&[(22, 23, false)]), "it opened a second ago");
    assert!(!then(&[(25, 26, false), (26, 27, false)]));
    assert!(then(&[(25, 28, false), (26, 27, false)]), "one at a time");
    assert!(!then(&[(25, 28, true), (31, 32, false)]));
    // What failed before may have opened it earlier; and what went well in between keeps it closed.
    assert!(!then(&[(10, 19, true), (22, 23, false)]));
    assert!(!fused(&[(10, 20, true), (10, 21, false), (11, 22, true), (23, 24, false)]));
    // The first one opened it, because another had failed before: the one that was tried beside the
    // second closed it again (seed 1361).
    let early = [(8, 9, true), (10, 20, true), (11, 30, true), (24, 31, false)];
    assert!(!fused(&[&early[..], &[(32, 35, false), (32, 36, false)]].concat()));
}

#[test]
fn retries_that_keep_fresh_jobs_waiting_are_named() {
    let storm = |second: u32, tenant: &str| {
        let jobs = [("a", tenant), ("b", tenant), ("c", "acme")];
        let mut history = handed_out(&jobs);
        let attempts = [("a", 2), ("b", second)];
        for operation in &mut history.operations {
            let Outcome::Ok(Answer::Grants(grants)) = &mut operation.outcome else { continue };
            for (id, attempt) in attempts {
                grants.iter_mut().filter(|it| it.job == id).for_each(|it| it.attempt = attempt);
            }
        }
        for (id, attempt) in attempts {
            let made = history.dump.jobs.iter_mut().filter(|it| it.id == id);
            made.for_each(|it| it.events[1].attempt = attempt);
        }
        rules(&history).contains(&"F6")
    };
    assert!(storm(2, "acme"), "two in a row while another waited");
    assert!(!storm(1, "acme") && !storm(2, "bolt"));
}

#[test]
fn jobs_in_the_wrong_hands_are_named() {
    let mut history = handed_out(&[("a", "acme"), ("b", "bolt")]);
    for operation in &mut history.operations {
        if let Call::Pull { scope, .. } = &mut operation.call {
            scope.tenant = Some("acme".to_owned());
        }
    }
    assert_eq!(rules(&history), ["L10"]);
    let clean = clean();
    for confine in [
        |scope: &mut PullScope| scope.types = Some(Vec::new()),
        |scope: &mut PullScope| scope.queues = Some(vec!["elsewhere".to_owned()]),
    ] {
        names("L10", &clean, |history| {
            history.operations.iter_mut().for_each(|operation| {
                if let Call::Pull { scope, .. } = &mut operation.call {
                    confine(scope);
                }
            });
            true
        });
    }
}

#[test]
fn trespassers_are_named() {
    let told = |outcome: &str| match outcome {
        "" => Outcome::Ok(Answer::Done),
        code => Outcome::Fail(code.to_owned()),
    };
    let knock = |at: u64, job: &str, outcome: &str| {
        let (tenant, token) = ("acme".to_owned(), "t1".to_owned());
        let (job, what) = (job.to_owned(), "read".to_owned());
        operation(at, Call::Knock { tenant, token, job, what }, told(outcome))
    };
    let with = |more: &[mainspring_testkit::history::Operation]| {
        let mut history = handed_out(&[("a", "acme"), ("b", "bolt")]);
        history.operations.extend_from_slice(more);
        rules(&history)
    };
    let none = Vec::<&str>::new();
    assert_eq!(with(&[knock(1, "a", ""), knock(1, "b", "NO"), knock(1, "x", "NO")]), none);
    assert_eq!(with(&[knock(1, "b", "")]), ["T3"]);
    assert_eq!(with(&[knock(1, "b", "NOT_YOURS"), knock(1, "x", "NOT_FOUND")]), ["T2"]);
    assert_eq!(with(&[knock(1, "b", "UNREACHABLE"), knock(1, "x", "NOT_FOUND")]), none);

    let revoke = operation(5, Call::Revoke { token: "t1".to_owned() }, told(""));
    assert_eq!(with(&[revoke.clone(), knock(900_000, "a", "")]), none);
    assert_eq!(with(&[revoke.clone(), knock(1_100_000, "a", "")]), ["T4"]);
    assert_eq!(with(&[revoke, knock(1_100_000, "a", "AUTH_UNAUTHORIZED")]), none);

    let listed = |id: &str| {
        let call = Call::ListJobs { tenant: "acme".to_owned() };
        operation(1, call, Outcome::Ok(Answer::Listed(vec![id.to_owned()])))
    };
    assert_eq!(with(&[listed("a")]), none);
    assert_eq!(with(&[listed("b")]), ["T1"]);
}

#[test]
fn keys_that_are_free_too_soon_or_too_late_are_named() {
    let again = |ended: i64, second_at: i64, is_hit: bool| {
        let mut history = handed_out(&[("a", "acme"), ("b", "acme")]);
        history.is_simulated = false;
        for made in &mut history.dump.jobs {
            made.key = Some("k".to_owned());
            made.payload = "\"same\"".to_owned();
        }
        let first = &mut history.dump.jobs[0];
        (first.state, first.finished_at, first.updated_at) =
            (StateName::Cancelled, Some(ended), ended);
        let second = &mut history.dump.jobs[1];
        (second.created_at, second.run_at) = (second_at, second_at);
        if is_hit {
            history.dump.jobs.truncate(1);
        }
        history.operations.retain(|op| matches!(op.call, Call::Submit { .. }));
        for (nth, operation) in history.operations.iter_mut().enumerate() {
            let at = if nth == 0 { SECOND } else { second_at };
            (operation.invoked_at, operation.ended_at) = (at as u64, Some(at as u64));
            if let Call::Submit { key, window_secs, payload, .. } = &mut operation.call {
                (*key, *window_secs) = (Some("k".to_owned()), Some(5));
                *payload = "\"same\"".to_owned();
            }
            if let Outcome::Ok(Answer::Submitted { job, is_hit: hit, created_at }) =
                &mut operation.outcome
            {
                *created_at = at;
                if nth == 1 && is_hit {
                    (*job, *hit) = ("a".to_owned(), true);
                }
            }
        }
        check(&history).iter().any(|violation| violation.rule == "I1")
    };
    let end = 20 * SECOND;
    assert!(again(end, end + 4 * SECOND, false), "taken again within the window");
    assert!(!again(end, end + 5 * SECOND, false));
    assert!(!again(end, end + 5 * SECOND, true));
    assert!(again(end, end + 8 * SECOND, true), "still taken long after the window");
}

#[test]
fn items_that_vanish_and_moves_that_are_not_told_are_named() {
    let clean = clean();
    let list = |ids: &[&str], at| {
        let ids = ids.iter().map(|id| (*id).to_owned()).collect();
        operation(at, Call::ListItems, Outcome::Ok(Answer::Listed(ids)))
    };
    names("Q5", &clean, |history| {
        history.operations.push(list(&["dlq_gone"], 1));
        true
    });
    names("Q5", &clean, |history| {
        let Some(item) = history.dump.items.first().map(|item| item.id.clone()) else {
            return false;
        };
        history.operations = vec![list(&[&item], 1), list(&[], 10)];
        true
    });
    names("E1", &clean, |history| {
        history.is_stream_whole = true;
        history.stream.clear();
        true
    });
    assert!(check(&History { dump: Dump::default(), ..History::default() }).is_empty());
}
