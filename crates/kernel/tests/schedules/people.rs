//! What people ask of schedules.

use crate::clockwork::{Clockwork, ID, every, s};
use mainspring_kernel::calendar::Rhythm;
use mainspring_kernel::entity::schedule::{Overlap, ScheduleCommand, ScheduleSpec, Status, named};
use mainspring_kernel::fingerprint::Digest;
use mainspring_kernel::limits::FIRED_STRETCHES_MAX;
use mainspring_kernel::{JobType, Receipt, Rejection, TenantId, Timestamp, TypeSpec, UserId};

fn refused(spec: ScheduleSpec) -> (&'static str, &'static str) {
    match Clockwork::empty().create(spec) {
        Err(Rejection::FieldInvalid { field, reason }) => (field, reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_could_never_work_is_refused_with_its_field() {
    let interval = |every_secs, phase_secs| ScheduleSpec {
        rhythm: Rhythm::Interval { every_secs, phase_secs },
        ..every(60)
    };
    let label = |name: &str| vec![(name.into(), "x".into())];
    let many: Vec<_> = (0..32).map(|n| (n.to_string().into(), "x".into())).collect();
    for (spec, field) in [
        (interval(0, 0), "interval_seconds"),
        (interval(60, 60), "phase_seconds"),
        (interval(u64::MAX, 0), "interval_seconds"),
        (ScheduleSpec { rhythm: Rhythm::At(s(0)), ..every(60) }, "at"),
        (ScheduleSpec { end_at: Some(s(59)), ..every(60) }, "interval_seconds"),
        (ScheduleSpec { start_at: Some(s(9)), end_at: Some(s(8)), ..every(60) }, "end_at"),
        (ScheduleSpec { misfire_limit: 0, ..every(60) }, "misfire_limit"),
        (ScheduleSpec { misfire_limit: 1_001, ..every(60) }, "misfire_limit"),
        (ScheduleSpec { jitter_secs: 86_401, ..every(60) }, "jitter_seconds"),
        (ScheduleSpec { max_runs: Some(0), ..every(60) }, "max_runs"),
        (ScheduleSpec { pause_after_failures: Some(0), ..every(60) }, "pause_after_failures"),
        (ScheduleSpec { payload: "x".repeat(16_385).into(), ..every(60) }, "payload"),
        (ScheduleSpec { name: Some("".into()), ..every(60) }, "name"),
        (ScheduleSpec { name: Some("a\0b".into()), ..every(60) }, "name"),
        (ScheduleSpec { labels: label("schedule_id"), ..every(60) }, "labels"),
        (ScheduleSpec { labels: label("a\u{7}"), ..every(60) }, "labels"),
        (ScheduleSpec { labels: many, ..every(60) }, "labels"),
        (ScheduleSpec { timeout_ms: Some(0), ..every(60) }, "timeout_ms"),
        (ScheduleSpec { max_retries: Some(1_001), ..every(60) }, "max_retries"),
    ] {
        assert_eq!(refused(spec.clone()).0, field, "{spec:?}");
    }
}

#[test]
fn types_must_be_there_and_schedulable() {
    let mut it = Clockwork::empty();
    it.are_types_strict = true;
    assert!(matches!(it.create(every(60)), Err(Rejection::TypeUnknown { .. })));
    let spec = TypeSpec::plain(JobType::new("mill").unwrap());
    it.job_type = Some(TypeSpec { is_schedulable: false, ..spec.clone() });
    let answer = it.create(every(60));
    assert!(matches!(answer, Err(Rejection::FieldInvalid { field: "job_type", .. })), "{answer:?}");
    it.job_type = Some(TypeSpec { is_schedulable: true, ..spec });
    assert!(it.create(every(60)).is_ok());
    assert!(matches!(it.create(every(60)), Err(Rejection::EntityExists { .. })));
}

#[test]
fn what_goes_by_in_a_pause_was_not_missed() {
    let mut it = Clockwork::of(every(60));
    it.live_until(s(61));
    let by = UserId::new("bob").unwrap();
    it.ask(ScheduleCommand::Pause { id: ID, by, note: Some("tea".into()) }).unwrap();
    let Status::Paused(pause) = &it.schedule().status else { panic!("{:?}", it.schedule()) };
    assert_eq!(pause.by.as_ref().unwrap().as_str(), "bob");
    assert_eq!(it.entity.as_ref().unwrap().alarm_at(), None);
    it.live_until(s(605));
    it.ask(ScheduleCommand::Resume { id: ID }).unwrap();
    it.live_until(s(665));
    assert_eq!(it.fired(), [60, 660]);
    assert_eq!(it.history().len(), 2);
    assert_eq!(it.ask(ScheduleCommand::Resume { id: ID }), Ok(Receipt::Done), "it runs already");
}

#[test]
fn a_stop_is_for_good_and_harmless_twice() {
    let mut it = Clockwork::of(every(60));
    for _ in 0..2 {
        assert_eq!(it.ask(ScheduleCommand::Stop { id: ID }), Ok(Receipt::Done));
    }
    assert_eq!(it.entity.as_ref().unwrap().version, 2);
    it.live_until(s(600));
    assert!(it.fired().is_empty());
    let by = UserId::new("bob").unwrap();
    for command in [
        ScheduleCommand::Resume { id: ID },
        ScheduleCommand::Pause { id: ID, by, note: None },
        ScheduleCommand::Update { id: ID, spec: Box::new(every(5)) },
        ScheduleCommand::Trigger { id: ID, at: s(600) },
        ScheduleCommand::Backfill { id: ID, at: s(60) },
    ] {
        let answer = it.ask(command.clone());
        assert_eq!(answer, Err(Rejection::ScheduleConflict { state: "stopped" }), "{command:?}");
    }
    assert_eq!(it.ask(ScheduleCommand::Remove { id: ID }), Ok(Receipt::Done));
    assert!(it.entity.is_none());
    let unknown = Err(Rejection::EntityUnknown { kind: ID.kind });
    assert_eq!(it.ask(ScheduleCommand::Stop { id: ID }), unknown);
}

#[test]
fn an_update_counts_from_now_and_wakes_one_that_has_ended() {
    let mut it = Clockwork::of(every(60));
    it.live_until(s(61));
    it.ask(ScheduleCommand::Update { id: ID, spec: Box::new(every(7)) }).unwrap();
    it.live_until(s(75));
    assert_eq!(it.fired(), [60, 67, 74], "multiples of seven since 1970, as every server counts");
    let once = ScheduleSpec { rhythm: Rhythm::At(s(80)), ..every(60) };
    it.ask(ScheduleCommand::Update { id: ID, spec: Box::new(once) }).unwrap();
    it.live_until(s(100));
    assert_eq!(it.schedule().state(), "ended");
    it.ask(ScheduleCommand::Update { id: ID, spec: Box::new(every(60)) }).unwrap();
    assert_eq!(it.schedule().state(), "active");
    it.live_until(s(121));
    assert_eq!(it.fired(), [60, 67, 74, 80, 120]);
}

#[test]
fn a_trigger_makes_its_own_job_beside_the_rhythm() {
    let mut it =
        Clockwork::of(ScheduleSpec { overlap: Overlap::Skip, max_runs: Some(2), ..every(60) });
    it.now = s(10);
    let first = it.ask(ScheduleCommand::Trigger { id: ID, at: s(10) }).unwrap();
    let Receipt::Submitted { job } = first else { panic!("{first:?}") };
    let again = it.ask(ScheduleCommand::Trigger { id: ID, at: s(10) }).unwrap();
    assert!(matches!(again, Receipt::Existing { job: same, .. } if same == job));
    assert_eq!((it.schedule().runs, it.schedule().by_hand), (0, 1), "it is no run of the rhythm");
    assert_eq!(it.history()[0].4, "triggered");
    it.live_until(s(65));
    assert_eq!(it.fired(), [10], "it still runs, and the next is skipped for it");
    it.end(job, true);
    it.live_until(s(300));
    assert_eq!(it.schedule().fired_count(), 2);
    assert_eq!(it.latest().run_at, s(120));
}

#[test]
fn a_backfill_makes_what_is_missing_once() {
    let mut it = Clockwork::of(every(60));
    it.wake_at(s(600));
    assert_eq!(it.fired(), [600]);
    let firings = it.schedule().spec.firings(s(0), s(600), 100);
    assert_eq!(firings.len(), 10);
    for (turn, at) in firings.iter().chain(&firings).enumerate() {
        let answer = it.ask(ScheduleCommand::Backfill { id: ID, at: *at }).unwrap();
        let is_new = matches!(answer, Receipt::Submitted { .. });
        assert_eq!(is_new, turn < 9, "{at:?}: {answer:?}");
    }
    assert_eq!(it.fired(), (1..=10).map(|turn| turn * 60).collect::<Vec<_>>());
    assert_eq!(it.schedule().by_hand, 9);
    let last = it.history().pop().unwrap();
    assert_eq!((last.0, last.1, last.2, last.3), (60, 540, 9, "backfilled"));
    for (at, what) in [(s(660), "ahead"), (s(61), "no firing of it")] {
        assert!(it.ask(ScheduleCommand::Backfill { id: ID, at }).is_err(), "{what}");
    }
    it.now = s(661);
    let due = it.ask(ScheduleCommand::Backfill { id: ID, at: s(660) });
    assert_eq!(due, Err(Rejection::NotDue), "it fires by itself");
}

/// The jobs and keys of everything that has fired are forgotten, as they are some time after it.
fn forget(it: &mut Clockwork) {
    it.keys.clear();
    it.jobs.clear();
}

#[test]
fn a_firing_has_one_job_for_as_long_as_the_schedule_exists() {
    let mut it = Clockwork::of(every(60));
    it.live_until(s(300));
    let by = UserId::new("bob").unwrap();
    it.ask(ScheduleCommand::Pause { id: ID, by, note: None }).unwrap();
    it.live_until(s(601));
    it.ask(ScheduleCommand::Resume { id: ID }).unwrap();
    it.live_until(s(700));
    it.ask(ScheduleCommand::Backfill { id: ID, at: s(420) }).unwrap();
    assert_eq!(it.fired(), [60, 120, 180, 240, 300, 420, 660]);
    assert_eq!(it.schedule().fired.stretches().len(), 3);
    for _ in 0..2 {
        forget(&mut it);
        let before = it.entity.clone();
        for second in [60, 120, 180, 240, 300, 420, 660] {
            let again = it.ask(ScheduleCommand::Backfill { id: ID, at: s(second) });
            assert_eq!(again, Err(Rejection::FiringDone), "{second}");
        }
        assert_eq!(it.entity, before, "nothing changed");
        // Another rhythm with the same instants knows of them all the same.
        it.ask(ScheduleCommand::Update { id: ID, spec: Box::new(every(30)) }).unwrap();
    }
    // What went by in the pause had no job, nor had what was before the schedule.
    for second in [360, 480, 540, 600, 0, -60] {
        let made = it.ask(ScheduleCommand::Backfill { id: ID, at: s(second) });
        assert!(matches!(made, Ok(Receipt::Submitted { .. })), "{second}: {made:?}");
    }
}

#[test]
fn however_a_schedule_fires_its_account_is_bounded_and_never_lets_one_fire_twice() {
    // Every firing but each third is skipped, for a job that runs.
    let mut it = Clockwork::of(ScheduleSpec { overlap: Overlap::Skip, ..every(60) });
    let mut fired = Vec::new();
    for turn in 1..=600 {
        it.live_until(s(turn * 60));
        if turn % 3 == 0 {
            let ended: Vec<_> = it.schedule().outstanding.clone();
            ended.into_iter().for_each(|job| it.end(job, true));
        }
        if let Some(at) = it.schedule().last_fire_at.filter(|at| fired.last() != Some(at)) {
            fired.push(at);
        }
    }
    assert_eq!(fired.len(), 200);
    assert_eq!(it.schedule().fired.stretches().len(), FIRED_STRETCHES_MAX);
    forget(&mut it);
    for at in &fired {
        let again = it.ask(ScheduleCommand::Backfill { id: ID, at: *at });
        assert_eq!(again, Err(Rejection::FiringDone), "{at:?}");
    }
    // The gaps of late can be filled in; those of long ago count as done.
    let latest = *fired.last().unwrap();
    let gap = |at: Timestamp| ScheduleCommand::Backfill { id: ID, at: at.plus_millis(60_000) };
    assert!(it.ask(gap(latest)).is_ok());
    assert_eq!(it.ask(gap(fired[0])), Err(Rejection::FiringDone));
}

#[test]
fn what_waits_for_a_job_to_end_is_not_filled_in_beside_it() {
    let mut it = Clockwork::of(ScheduleSpec { overlap: Overlap::QueueOne, ..every(60) });
    it.live_until(s(125));
    assert_eq!(it.schedule().waiting.map(|waiting| waiting.at), Some(s(120)));
    let beside = it.ask(ScheduleCommand::Backfill { id: ID, at: s(120) });
    assert_eq!(beside, Err(Rejection::NotDue));
}

/// Servers' clocks differ a little, and the clock of a process may be behind that of the one before
/// it. Whatever was fired or told of by the faster clock stays so by the slower one.
#[test]
fn a_clock_that_is_behind_makes_nothing_fire_or_be_told_of_again() {
    let late = |at: Timestamp| at.plus_millis(400);
    let early = |at: Timestamp| Timestamp(at.0 - 300_000);
    let by = UserId::new("bob").unwrap();
    let pause = ScheduleCommand::Pause { id: ID, by, note: None };
    let resume = ScheduleCommand::Resume { id: ID };
    let update = ScheduleCommand::Update { id: ID, spec: Box::new(every(60)) };
    // It fired at 60 by one clock; by the other it is not yet 60 when somebody changes it.
    for commands in [vec![update], vec![pause.clone(), resume.clone()]] {
        let mut it = Clockwork::of(every(60));
        it.wake_at(late(s(60)));
        it.now = early(s(60));
        for command in commands {
            it.ask(command).unwrap();
        }
        assert_eq!(it.schedule().next_at, Some(s(120)));
        it.live_until(s(121));
        assert_eq!(it.fired(), [60, 120]);
        assert_eq!((it.schedule().runs, it.schedule().skipped), (2, 0));
    }
    // One clock has seen 60 and had not fired yet; the other gives it up, and says so.
    let mut it = Clockwork::of(every(60));
    it.now = late(s(60));
    it.ask(ScheduleCommand::Trigger { id: ID, at: late(s(60)) }).unwrap();
    it.now = early(s(60));
    it.ask(pause).unwrap();
    it.ask(resume).unwrap();
    it.live_until(s(121));
    assert_eq!((it.schedule().runs, it.schedule().skipped), (1, 1), "{:?}", it.history());
}

#[test]
fn a_template_is_there_once_and_stays_as_people_left_it() {
    let tenant = TenantId::new("acme").unwrap();
    let id = named(&tenant, "template", "nightly");
    assert_eq!(id, named(&tenant, "template", "nightly"));
    assert_ne!(id, named(&TenantId::new("other").unwrap(), "template", "nightly"));
    let mut it = Clockwork::empty();
    let ensure = |entry: u8, secs| ScheduleCommand::Ensure {
        id: ID,
        tenant: tenant.clone(),
        name: "nightly".into(),
        entry: Digest([entry; 16]),
        spec: Box::new(every(secs)),
    };
    assert_eq!(it.ask(ensure(1, 60)), Ok(Receipt::Ensured { is_new: true }));
    assert_eq!(it.ask(ensure(1, 60)), Ok(Receipt::Ensured { is_new: false }));
    assert_eq!(it.entity.as_ref().unwrap().version, 1);
    let entity = it.entity.clone().unwrap();
    assert_eq!((entity.owner.as_str(), &*it.schedule().namespace), ("system", "system"));
    it.ask(ScheduleCommand::Update { id: ID, spec: Box::new(every(5)) }).unwrap();
    it.ask(ensure(1, 60)).unwrap();
    assert_eq!(it.schedule().spec, every(5), "what people changed holds");
    it.ask(ensure(2, 90)).unwrap();
    assert_eq!(it.schedule().spec, every(90), "until the template changes");
    it.ask(ScheduleCommand::Remove { id: ID }).unwrap();
    assert_eq!(it.schedule().state(), "stopped");
    assert_eq!(it.ask(ensure(3, 60)), Ok(Receipt::Ensured { is_new: false }));
    assert_eq!(it.schedule().state(), "stopped", "a template does not bring back what was stopped");
}

#[test]
fn a_waiting_firing_is_given_up_with_a_word() {
    let mut it = Clockwork::of(ScheduleSpec { overlap: Overlap::QueueOne, ..every(60) });
    it.live_until(s(125));
    assert!(it.schedule().waiting.is_some());
    it.ask(ScheduleCommand::Stop { id: ID }).unwrap();
    let last = it.history().pop().unwrap();
    assert_eq!((last.0, last.3, &*last.4), (120, "skipped", "dropped"));
}
