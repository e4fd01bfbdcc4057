//! Schedules whose jobs have not ended when the next is due, and those whose jobs fail.

use crate::clockwork::{Clockwork, ID, every, s};
use mainspring_kernel::entity::schedule::{Overlap, ScheduleSpec, Status};
use mainspring_kernel::{Command, JobId, Rejection, StateName};

fn of(overlap: Overlap) -> Clockwork {
    Clockwork::of(ScheduleSpec { overlap, ..every(60) })
}

fn kinds(it: &Clockwork) -> Vec<(i64, &'static str, String)> {
    it.history().into_iter().map(|line| (line.0, line.3, line.4)).collect()
}

#[test]
fn allow_fires_whatever_runs() {
    let mut it = of(Overlap::Allow);
    it.live_until(s(200));
    assert_eq!(it.fired(), [60, 120, 180]);
    assert!(it.schedule().outstanding.is_empty(), "nobody wants to know");
}

#[test]
fn skip_waits_for_the_end_and_says_so() {
    let mut it = of(Overlap::Skip);
    it.live_until(s(190));
    assert_eq!(it.fired(), [60]);
    assert_eq!(it.history()[1], (120, 180, 2, "skipped", "overlap".to_owned()));
    let job = it.latest().id;
    it.end(job, true);
    // The word of it gets lost: it looks for itself.
    it.live_until(s(250));
    assert_eq!(it.fired(), [60, 240]);
}

#[test]
fn queue_one_fires_once_when_the_job_has_ended() {
    let mut it = of(Overlap::QueueOne);
    it.live_until(s(250));
    assert_eq!(it.fired(), [60]);
    let job = it.latest().id;
    it.end(job, false);
    it.now = s(255);
    assert!(it.tell(job).is_ok());
    assert_eq!(it.tell(job), Err(Rejection::NotDue), "once is enough");
    assert_eq!(it.entity.as_ref().unwrap().alarm_at(), Some(s(120)), "at once");
    it.wake_at(s(255));
    assert_eq!(it.fired(), [60, 120]);
    assert_eq!(
        kinds(&it)[1..],
        [(180, "skipped", "overlap".to_owned()), (120, "late", "queued".to_owned())]
    );
    // The rhythm goes on beside it.
    it.live_until(s(310));
    assert_eq!(it.schedule().waiting.map(|waiting| waiting.at), Some(s(300)));
}

#[test]
fn queue_one_finds_out_by_itself_if_no_word_comes() {
    let mut it = Clockwork::of(ScheduleSpec { overlap: Overlap::QueueOne, ..every(600) });
    it.live_until(s(1_210));
    let job = it.latest().id;
    it.now = s(1_215);
    it.end(job, true);
    it.live_until(s(1_290));
    assert_eq!(it.fired(), [600, 1_200], "within the minute");
}

#[test]
fn what_waits_looks_no_more_than_once_a_minute() {
    let mut it = Clockwork::of(ScheduleSpec { overlap: Overlap::QueueOne, ..every(3_600) });
    it.live_until(s(7_200));
    let before = it.rings;
    it.live_until(s(7_200 + 3_599));
    assert!((58..=60).contains(&(it.rings - before)), "{} looks", it.rings - before);
    assert_eq!(it.fired(), [3_600]);
}

#[test]
fn cancel_running_ends_what_runs_and_fires() {
    for is_running in [true, false] {
        let mut it = of(Overlap::CancelRunning);
        it.live_until(s(60));
        let first = it.latest().id;
        if is_running {
            it.claim(first);
        }
        it.live_until(s(125));
        assert_eq!(it.fired(), [60, 120]);
        assert_eq!(it.jobs[&first].state.name(), StateName::Cancelled);
        assert_eq!(it.latest().state.name(), StateName::Queued);
        assert_eq!(kinds(&it)[1], (120, "fired", "cancelled_running".to_owned()));
        assert_eq!(it.schedule().outstanding, [it.latest().id]);
        let second = it.latest().id;
        it.end(second, true);
        it.live_until(s(185));
        assert_eq!(kinds(&it)[2], (180, "fired", String::new()), "nothing ran");
    }
}

#[test]
fn a_refused_firing_cancels_nothing() {
    let mut it = of(Overlap::CancelRunning);
    it.live_until(s(60));
    let first = it.latest().id;
    it.claim(first);
    let full = mainspring_kernel::Backlog {
        tenant: 9,
        tenant_max: 1,
        ..mainspring_kernel::Backlog::UNBOUNDED
    };
    it.backlog = full;
    it.live_until(s(125));
    assert_eq!(it.jobs[&first].state.name(), StateName::Running);
    assert_eq!(it.fired(), [60]);
}

#[test]
fn failures_in_a_row_pause_it_and_a_resume_starts_anew() {
    let mut it = Clockwork::of(ScheduleSpec { pause_after_failures: Some(3), ..every(60) });
    let turn = |it: &mut Clockwork, well: bool, is_told: bool| {
        let next = it.schedule().next_at.unwrap();
        it.live_until(next);
        let job = it.latest().id;
        it.end(job, well);
        if is_told {
            it.tell(job).unwrap();
        }
    };
    for well in [false, false, true, false, false] {
        turn(&mut it, well, true);
    }
    assert_eq!(it.schedule().failures_in_a_row, 2);
    // This one is not heard of, and still counts before the next would fire.
    turn(&mut it, false, false);
    assert_eq!(it.schedule().status, Status::Active);
    let fired = it.fired().len();
    it.live_until(s(3_600));
    assert_eq!(it.fired().len(), fired, "it does not fire a fourth time");
    let Status::Paused(pause) = &it.schedule().status else { panic!("{:?}", it.schedule()) };
    assert_eq!((pause.by.as_ref(), pause.note.as_deref()), (None, Some("3 jobs in a row failed")));
    assert_eq!(it.entity.as_ref().unwrap().alarm_at(), None);
    it.ask(mainspring_kernel::entity::schedule::ScheduleCommand::Resume { id: ID }).unwrap();
    assert_eq!(it.schedule().failures_in_a_row, 0);
    it.live_until(s(3_700));
    assert_eq!(it.fired().len(), fired + 1);
}

#[test]
fn cancelled_jobs_and_jobs_that_are_gone_say_nothing() {
    let spec = ScheduleSpec { pause_after_failures: Some(2), overlap: Overlap::Skip, ..every(60) };
    let mut it = Clockwork::of(spec);
    it.live_until(s(60));
    it.end(JobId(it.latest().id.0), false);
    it.live_until(s(120));
    let second = it.latest().id;
    let by = it.entity.as_ref().unwrap().owner.clone();
    it.run(&Command::Cancel { job: second, by, reason: None }).unwrap();
    it.live_until(s(180));
    assert_eq!(it.schedule().failures_in_a_row, 1, "a cancel is no failure and no success");
    let third = it.latest().id;
    it.jobs.remove(&third);
    it.live_until(s(240));
    assert_eq!(it.fired(), [60, 120, 240], "a job that is not kept any more holds nothing up");
    assert_eq!(it.schedule().status, Status::Active);
}

#[test]
fn a_word_of_strangers_is_not_believed() {
    let mut it = of(Overlap::Skip);
    it.live_until(s(60));
    let job = it.latest().id;
    assert_eq!(it.tell(job), Err(Rejection::NotDue), "it has not ended");
    assert_eq!(it.tell(JobId(999)), Err(Rejection::NotDue));
    assert_eq!(it.schedule().outstanding, [job]);
}

#[test]
fn no_more_jobs_are_watched_than_there_is_room_for() {
    let mut it = Clockwork::of(ScheduleSpec { pause_after_failures: Some(5), ..every(60) });
    it.live_until(s(60 * 40));
    assert_eq!(it.fired().len(), 40);
    assert_eq!(it.schedule().outstanding.len(), 16);
}
