//! Edges: seen once, by whomever, each has one run. Nothing is lost to a false `and`, a cooldown
//! or a run that has not ended.

#![allow(clippy::unwrap_used, reason = "a test may fail loudly")]

use crate::sentry::{Sentry, changed, done, ended, exists, files, ms, on};
use mainspring_kernel::agent::{PARENT_LABEL, TRIGGER_LABEL, TRIGGERED_LABEL, label};
use mainspring_kernel::entity::trigger::{Condition, LeafState, Past, TriggerCommand, TriggerSpec};
use mainspring_kernel::{Rejection, Timestamp, UserId};
use proptest::prelude::*;

fn begun(condition: Condition) -> Sentry {
    let leaves = condition.leaves().len() as u16;
    Sentry::of(on(condition), (0..leaves).map(|leaf| files(leaf, Some(ms(-1_000)))).collect())
}

#[test]
fn what_is_there_from_the_beginning_is_no_edge() {
    let mut sentry = begun(changed("a"));
    assert_eq!(sentry.trigger().last_mtime(), Some(ms(-1_000)));
    assert_eq!(sentry.see(vec![files(0, Some(ms(-1_000)))]), Err(Rejection::NotDue));
    sentry.wake_at(ms(60_000));
    assert_eq!((sentry.runs(), sentry.writes), (0, 1), "and nothing is rewritten meanwhile");
    let fires_on_init = true;
    let mut eager = begun(Condition::FileChanged { path: "a".into(), fires_on_init });
    eager.wake_at(ms(0));
    assert_eq!(eager.runs(), 1);
}

#[test]
fn a_file_that_comes_to_be_has_changed() {
    let mut sentry = Sentry::of(on(changed("a")), vec![files(0, None)]);
    assert!(sentry.trigger().is_initialized());
    sentry.now = ms(5_000);
    sentry.see(vec![files(0, Some(ms(4_000)))]).unwrap();
    sentry.wake_at(ms(5_000));
    assert_eq!(sentry.runs(), 1);
}

#[test]
fn an_edge_inside_of_a_false_and_is_not_lost() {
    let mut sentry = begun(Condition::And(vec![changed("a"), changed("b")]));
    sentry.now = ms(10_000);
    sentry.see(vec![files(0, Some(ms(2_000)))]).unwrap();
    sentry.wake_at(ms(10_000));
    assert_eq!(sentry.runs(), 0);
    // The first file is even gone by the time the second one changes.
    sentry.see(vec![files(0, None), files(1, Some(ms(9_000)))]).unwrap();
    sentry.wake_at(ms(10_000));
    assert_eq!(sentry.runs(), 1);
    sentry.finish();
    sentry.wake_at(ms(60_000));
    assert_eq!(sentry.runs(), 1, "both edges were taken");
}

#[test]
fn what_two_servers_see_is_one_edge() {
    let mut sentry = begun(changed("a"));
    sentry.now = ms(10_000);
    sentry.see(vec![files(0, Some(ms(2_000)))]).unwrap();
    assert_eq!(sentry.see(vec![files(0, Some(ms(2_000)))]), Err(Rejection::NotDue));
    sentry.wake_at(ms(10_000));
    // One that looked before the firing and tells of it afterwards.
    assert_eq!(sentry.see(vec![files(0, Some(ms(2_000)))]), Err(Rejection::NotDue));
    // One whose view of the files is behind.
    assert_eq!(sentry.see(vec![files(0, Some(ms(1_000)))]), Err(Rejection::NotDue));
    sentry.finish();
    sentry.wake_at(ms(60_000));
    assert_eq!(sentry.runs(), 1);
}

#[test]
fn changes_during_a_cooldown_are_one_edge_at_its_end() {
    let mut sentry = begun(changed("a"));
    sentry.entity = None;
    let spec = TriggerSpec { cooldown_secs: 60, ..on(changed("a")) };
    sentry.create(spec, vec![files(0, Some(ms(-1_000)))], Past::default()).unwrap();
    sentry.now = ms(1_000);
    sentry.see(vec![files(0, Some(ms(0)))]).unwrap();
    sentry.wake_at(ms(1_000));
    assert_eq!(sentry.runs(), 1);
    sentry.finish();
    for at in [10_000, 20_000, 30_000] {
        sentry.now = ms(at + 1_000);
        sentry.see(vec![files(0, Some(ms(at)))]).unwrap();
        sentry.wake_at(ms(at + 1_000));
    }
    assert_eq!(sentry.trigger().next_run_at, Some(ms(61_000)));
    sentry.wake_at(ms(60_999));
    assert_eq!(sentry.runs(), 1);
    sentry.wake_at(ms(61_000));
    assert_eq!(sentry.runs(), 2);
    sentry.finish();
    sentry.wake_at(ms(600_000));
    assert_eq!(sentry.runs(), 2);
}

#[test]
fn an_edge_waits_for_the_run_before_it() {
    let mut sentry = begun(changed("a"));
    sentry.now = ms(1_000);
    sentry.see(vec![files(0, Some(ms(0)))]).unwrap();
    sentry.wake_at(ms(1_000));
    sentry.now = ms(5_000);
    sentry.see(vec![files(0, Some(ms(4_000)))]).unwrap();
    sentry.wake_at(ms(50_000));
    assert_eq!(sentry.runs(), 1);
    sentry.finish();
    sentry.wake_at(ms(50_000));
    assert_eq!(sentry.runs(), 2);
}

#[test]
fn a_task_has_one_run_and_gives_it_its_trace() {
    let mut sentry = Sentry::of(on(done("a")), Vec::new());
    assert_eq!(sentry.see(vec![ended(0, 5, false)]), Err(Rejection::NotDue), "it failed");
    sentry.see(vec![ended(0, 6, true)]).unwrap();
    sentry.wake_at(ms(1_000));
    let run = sentry.latest();
    assert_eq!(run.trace.as_deref(), Some("trace-a"));
    assert_eq!(label(run, PARENT_LABEL), Some("parent-a"));
    assert_eq!(label(run, TRIGGER_LABEL), Some("trigger-001"));
    assert_eq!(label(run, TRIGGERED_LABEL), Some("2026-01-05T00:00:01.000000Z"));
    assert_eq!(sentry.trigger().last_seen_result_id(), Some("a"));
    sentry.finish();
    assert_eq!(sentry.see(vec![ended(0, 6, true)]), Err(Rejection::NotDue));
    // Its own trace comes first.
    let trace = Some("mine".into());
    let mut sentry = Sentry::of(TriggerSpec { trace, ..on(done("a")) }, vec![ended(0, 6, true)]);
    sentry.wake_at(ms(0));
    assert_eq!(sentry.latest().trace.as_deref(), Some("mine"));
}

#[test]
fn what_goes_on_fires_again_after_each_cooldown() {
    let mut sentry = Sentry::of(on(exists("a")), vec![files(0, Some(ms(-9)))]);
    sentry.wake_at(ms(0));
    assert_eq!(sentry.runs(), 1);
    sentry.finish();
    sentry.wake_at(ms(4_999));
    assert_eq!(sentry.runs(), 1, "without a cooldown it is looked at every so often");
    sentry.wake_at(ms(5_000));
    assert_eq!(sentry.runs(), 2);
    sentry.finish();
    sentry.see(vec![files(0, None)]).unwrap();
    sentry.wake_at(ms(90_000));
    assert_eq!(sentry.runs(), 2);
}

#[test]
fn what_happens_during_a_pause_is_no_edge() {
    let mut sentry = begun(Condition::Or(vec![changed("a"), done("t")]));
    let by = UserId::new("ada").unwrap();
    let id = crate::sentry::ID;
    sentry.ask(TriggerCommand::Pause { id, by, note: None }).unwrap();
    sentry.now = ms(10_000);
    assert_eq!(sentry.see(vec![files(0, Some(ms(5_000)))]), Err(Rejection::NotDue));
    let sights = vec![files(0, Some(ms(5_000)))];
    sentry.ask(TriggerCommand::Resume { id, sights }).unwrap();
    sentry.wake_at(ms(20_000));
    assert_eq!(sentry.runs(), 0);
    sentry.see(vec![files(0, Some(ms(15_000)))]).unwrap();
    sentry.wake_at(ms(20_000));
    assert_eq!(sentry.runs(), 1);
}

#[test]
fn one_that_comes_from_elsewhere_goes_on_where_it_was() {
    let past = Past { is_initialized: true, last_mtime: Some(ms(-9_000)), ..Past::default() };
    let mut sentry = Sentry::empty();
    sentry.create(on(changed("a")), vec![files(0, Some(ms(-2_000)))], past).unwrap();
    sentry.wake_at(ms(0));
    assert_eq!(sentry.runs(), 1, "the file changed while nobody looked");
    let last_seen_result_id = Some("t".into());
    let past = Past { last_seen_result_id, ..Past::default() };
    let mut sentry = Sentry::empty();
    sentry.create(on(done("t")), vec![ended(0, 6, true)], past).unwrap();
    sentry.wake_at(ms(60_000));
    assert_eq!(sentry.runs(), 0, "it had fired for that result");
    let ahead = Past { last_triggered_at: Some(ms(1)), ..Past::default() };
    assert!(Sentry::empty().create(on(done("t")), Vec::new(), ahead).is_err());
}

#[test]
fn another_one_of_the_same_name_is_not_told_what_was_seen_for_the_first() {
    let mut sentry = begun(changed("a"));
    let made_at = Timestamp(sentry.entity.as_ref().unwrap().created_at.0 - 1);
    let sights = vec![files(0, Some(ms(-1)))];
    let id = crate::sentry::ID;
    let observe = TriggerCommand::Observe { id, made_at, sights };
    assert_eq!(sentry.ask(observe), Err(Rejection::NotDue));
}

/// What happens to a world of two files.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// A file is written.
    Touch(u16),
    /// A server looks at one file and tells of it; now or, if it is slow, at its next look.
    Look { server: usize, leaf: u16, is_slow: bool },
    /// Time goes by.
    Pass(i64),
    /// The run that there is ends; its trigger hears of it, or does not.
    End { is_told: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..2u16).prop_map(Step::Touch),
        (0..2usize, 0..2u16, any::<bool>()).prop_map(|(server, leaf, is_slow)| Step::Look {
            server,
            leaf,
            is_slow
        }),
        (1..20_000i64).prop_map(Step::Pass),
        any::<bool>().prop_map(|is_told| Step::End { is_told }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400, failure_persistence: None, ..Default::default()
    })]

    /// Whatever two servers see, in whichever order, and whenever runs end: after it all has come
    /// to rest, everything that changed has a run that began after it, no run began without a
    /// change that none before it was made for, and no two began within a cooldown.
    #[test]
    fn no_edge_is_lost_or_doubled(steps in proptest::collection::vec(step(), 1..60), both: bool) {
        let parts = vec![changed("a"), changed("b")];
        let condition = if both { Condition::And(parts) } else { Condition::Or(parts) };
        let spec = TriggerSpec { cooldown_secs: 10, ..on(condition) };
        let mut sentry = Sentry::of(spec, vec![files(0, None), files(1, None)]);
        let mut mtimes = [None, None];
        // What each server has seen and not told yet.
        let mut slow: [Vec<(u16, Option<Timestamp>)>; 2] = [Vec::new(), Vec::new()];
        // For each run: when it began, and what of each file was taken.
        let mut runs: Vec<(Timestamp, [Option<Timestamp>; 2])> = Vec::new();
        let note = |sentry: &Sentry, runs: &mut Vec<_>| {
            while runs.len() < sentry.runs() {
                let taken = sentry.trigger().leaves.iter().map(|leaf| {
                    if let LeafState::Changed { taken, .. } = leaf { *taken } else { None }
                });
                let taken: Vec<_> = taken.collect();
                runs.push((sentry.now, [taken[0], taken[1]]));
            }
        };
        for step in steps {
            match step {
                Step::Touch(leaf) => {
                    sentry.now = Timestamp(sentry.now.0 + 1);
                    mtimes[usize::from(leaf)] = Some(sentry.now);
                }
                Step::Look { server, leaf, is_slow } => {
                    slow[server].push((leaf, mtimes[usize::from(leaf)]));
                    if !is_slow {
                        for (leaf, newest) in std::mem::take(&mut slow[server]) {
                            let _ = sentry.see(vec![files(leaf, newest)]);
                        }
                    }
                }
                Step::Pass(millis) => {
                    let to = Timestamp(sentry.now.0 + millis * 1_000);
                    while sentry.entity.as_ref().unwrap().alarm_at().is_some_and(|at| at <= to) {
                        let at = sentry.entity.as_ref().unwrap().alarm_at().unwrap();
                        sentry.now = sentry.now.max(at);
                        sentry.ring();
                        note(&sentry, &mut runs);
                    }
                    sentry.now = to;
                }
                Step::End { is_told } => {
                    let mut jobs = sentry.jobs.values();
                    let is_running = jobs.any(|job| !job.state.name().is_terminal());
                    if is_running {
                        sentry.end(true);
                        if is_told {
                            sentry.tell().unwrap();
                        }
                    }
                }
            }
        }
        // It comes to rest: all have looked, every run ends.
        for _ in 0..6 {
            sentry.now = Timestamp(sentry.now.0 + 300_000_000);
            for leaf in 0..2u16 {
                let _ = sentry.see(vec![files(leaf, mtimes[usize::from(leaf)])]);
            }
            while sentry.ring() {
                note(&sentry, &mut runs);
            }
            if sentry.jobs.values().any(|job| !job.state.name().is_terminal()) {
                sentry.end(true);
                sentry.tell().unwrap();
            }
        }
        let taken = runs.last().map_or([None, None], |(_, taken)| *taken);
        let is_edge = |leaf: usize| mtimes[leaf].is_some() && taken[leaf] < mtimes[leaf];
        let is_lost = if both { is_edge(0) && is_edge(1) } else { is_edge(0) || is_edge(1) };
        prop_assert!(!is_lost, "lost: {mtimes:?} {runs:?}");
        let mut before = [None, None];
        for (at, taken) in &runs {
            let has_new = |leaf: usize| taken[leaf] > before[leaf];
            let is_owed = if both { has_new(0) && has_new(1) } else { has_new(0) || has_new(1) };
            prop_assert!(is_owed, "doubled at {at:?}: {runs:?}");
            prop_assert!(taken.iter().flatten().all(|mtime| mtime <= at));
            before = *taken;
        }
        for pair in runs.windows(2) {
            prop_assert!(pair[1].0.0 - pair[0].0.0 >= 10_000_000, "cooldown: {runs:?}");
        }
    }
}
