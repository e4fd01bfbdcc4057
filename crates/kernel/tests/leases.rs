//! Leases while the clock is set and while nobody can reach the store.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "a test may panic")]

#[path = "support/world.rs"]
mod world;

use mainspring_kernel::shared_time::{Jump, Silence};
use mainspring_kernel::{JobId, StateName, Timestamp};
use std::time::Duration;
use world::{Act, Holder, World};

/// A running job whose lease and timeout have `lease_ms` and `timeout_ms` left.
fn running(lease_ms: u32, timeout_ms: u32) -> World {
    let mut world = World::default();
    let submit = Act::Submit { ahead_ms: None, max_retries: 3, timeout_ms, expires_ms: None };
    for act in [submit, Act::Claim { lease_ms }] {
        assert!(world.act(0, &act).unwrap().answer.is_ok());
    }
    world
}

/// The clock is set forward.
fn set_forward(world: &mut World, ms: u64) {
    let (from, to) = (world.now, world.now.plus_millis(ms));
    world.jumps.push(Jump { from, to });
    world.now = to;
}

fn is_ok(world: &mut World, act: &Act) -> bool {
    world.act(0, act).unwrap().answer.is_ok()
}

const BEAT: Act = Act::Heartbeat { by: Holder::Newest, lease_ms: 5_000 };
const DONE_WELL: Act = Act::Complete { by: Holder::Newest, result: None };

#[test]
fn a_clock_set_forward_takes_no_lease_and_no_deadline() {
    for then in [BEAT, DONE_WELL] {
        let mut world = running(5_000, 60_000);
        set_forward(&mut world, 1_800_000);
        assert!(is_ok(&mut world, &then), "{then:?}");
    }
    // The reaper that finds it overdue puts it right instead, once.
    let mut world = running(5_000, 60_000);
    set_forward(&mut world, 1_800_000);
    assert!(is_ok(&mut world, &Act::Reap));
    let lease = world.jobs[&JobId(1)].lease().unwrap().clone();
    assert_eq!(lease.expires_at, world.now.plus_millis(5_000));
    assert_eq!(lease.deadline_at, world.now.plus_millis(60_000));
    assert!(!is_ok(&mut world, &Act::Reap), "nothing is left to do");
    world.now = world.now.plus_millis(5_000);
    assert!(is_ok(&mut world, &Act::Reap), "in the end it does run out");
    assert_eq!(world.jobs[&JobId(1)].state.name(), StateName::Retrying);
}

#[test]
fn a_jump_counts_once_and_the_deadline_still_comes() {
    let mut world = running(5_000, 20_000);
    world.now = world.now.plus_millis(1_000);
    set_forward(&mut world, 600_000);
    for _ in 0..6 {
        assert!(is_ok(&mut world, &BEAT));
        world.now = world.now.plus_millis(3_000);
    }
    // 19 seconds were used of the 20, whatever the clock says.
    assert!(is_ok(&mut world, &BEAT));
    let lease = world.jobs[&JobId(1)].lease().unwrap();
    assert!(lease.expires_at <= world.now.plus_millis(5_000), "a renewal is not longer for it");
    world.now = world.now.plus_millis(1_000);
    assert!(!is_ok(&mut world, &BEAT), "the attempt is over");
    assert!(is_ok(&mut world, &Act::Reap));
}

#[test]
fn what_had_run_out_before_the_jump_stays_so() {
    let mut world = running(5_000, 60_000);
    world.now = world.now.plus_millis(5_000);
    set_forward(&mut world, 600_000);
    assert!(!is_ok(&mut world, &BEAT));
    assert!(is_ok(&mut world, &Act::Reap));
    assert_eq!(world.jobs[&JobId(1)].state.name(), StateName::Retrying);
}

#[test]
fn a_grant_by_a_server_that_had_not_noticed_the_jump_is_longer_by_it() {
    let mut world = running(5_000, 60_000);
    let late = world.now;
    // The other server noticed a second before this one granted by the old time.
    let from = Timestamp(late.0 - 1_000_000);
    world.jumps.push(Jump { from, to: from.plus_millis(600_000) });
    assert!(is_ok(&mut world, &BEAT), "still in the old time: the jump is yet to come");
    assert_eq!(world.jobs[&JobId(1)].lease().unwrap().settled_at, None);
    world.now = late.plus_millis(600_000);
    assert!(is_ok(&mut world, &BEAT));
}

/// Nobody can reach the store for so long.
fn be_silent(world: &mut World, ms: u64) {
    let (from, to) = (world.now, world.now.plus_millis(ms));
    world.silences.push(Silence { from, to });
    world.now = to;
}

fn state(world: &World) -> StateName {
    world.jobs[&JobId(1)].state.name()
}

#[test]
fn a_lease_that_ran_out_while_nobody_could_be_reached_can_be_renewed_and_reported_on() {
    for then in [BEAT, DONE_WELL] {
        let mut world = running(5_000, 900_000);
        world.now = world.now.plus_millis(3_000);
        be_silent(&mut world, 600_000);
        world.now = world.now.plus_millis(4_999);
        assert!(is_ok(&mut world, &then), "{then:?}");
    }
    // The reaper leaves it alone until what is left of it, or the grace, is over.
    for (left, lasts) in [(2_000, 5_000), (4_000, 5_000), (9_000, 9_000)] {
        let mut world = running(10_000, 900_000);
        world.now = world.now.plus_millis(10_000 - left);
        be_silent(&mut world, 600_000);
        assert!(is_ok(&mut world, &Act::Reap), "{left}");
        let lease = world.jobs[&JobId(1)].lease().unwrap().clone();
        assert_eq!(lease.expires_at, world.now.plus_millis(lasts), "{left}");
        assert!(!is_ok(&mut world, &Act::Reap), "it counts once");
        world.now = world.now.plus_millis(lasts);
        assert!(!is_ok(&mut world, &BEAT), "the grace is no second lease");
        assert!(is_ok(&mut world, &Act::Reap));
        assert_eq!(state(&world), StateName::Retrying);
    }
}

#[test]
fn a_short_silence_gives_a_short_grace_so_that_many_keep_no_dead_worker() {
    let mut world = running(1_000, 900_000);
    let mut rounds = 0;
    // Away for one second of every three.
    while state(&world) == StateName::Running {
        be_silent(&mut world, 1_000);
        world.now = world.now.plus_millis(2_000);
        world.act(0, &Act::Reap).unwrap();
        rounds += 1;
        assert!(rounds < 5, "never rescued");
    }
}

#[test]
fn a_silence_moves_no_deadline_and_revives_nothing() {
    let mut world = running(5_000, 20_000);
    be_silent(&mut world, 20_000);
    assert!(!is_ok(&mut world, &DONE_WELL), "the attempt is over");
    assert!(is_ok(&mut world, &Act::Reap));
    let last_failure = world.jobs[&JobId(1)].last_failure.clone().unwrap();
    assert_eq!(&*last_failure.failure.code, "TASK_TIMEOUT", "that is what came first");
    let mut world = running(5_000, 900_000);
    world.now = world.now.plus_millis(5_000);
    be_silent(&mut world, 600_000);
    assert!(!is_ok(&mut world, &BEAT), "it had run out before");
}

#[test]
fn a_lease_granted_within_a_silence_is_longer_by_the_rest_of_it_only() {
    let mut world = running(5_000, 900_000);
    let granted = world.now;
    // Its server had decided it when the way to the store broke, or its clock is a little behind.
    let (from, to) = (granted - Duration::from_secs(172_800), granted.plus_millis(3_000));
    world.silences.push(Silence { from, to });
    world.now = granted.plus_millis(7_999);
    assert!(is_ok(&mut world, &BEAT));
    let mut world = running(5_000, 900_000);
    world.silences.push(Silence { from, to });
    world.now = granted.plus_millis(8_000);
    assert!(!is_ok(&mut world, &BEAT));
}

#[test]
fn a_silence_and_a_jump_count_in_the_order_in_which_they_were() {
    let mut world = running(5_000, 60_000);
    be_silent(&mut world, 10_000);
    set_forward(&mut world, 600_000);
    be_silent(&mut world, 10_000);
    world.now = world.now.plus_millis(4_999);
    assert!(is_ok(&mut world, &BEAT));
    let lease = world.jobs[&JobId(1)].lease().unwrap();
    assert_eq!(lease.deadline_at, lease.granted_at.plus_millis(660_000), "by the jump alone");
}

#[test]
fn what_was_asked_within_a_silence_is_decided_after_it_and_counts_it_once() {
    let mut world = running(5_000, 900_000);
    let from = world.now;
    world.silences.push(Silence { from, to: from.plus_millis(20_000) });
    // It waited in the server until the store was back.
    world.now = from.plus_millis(8_000);
    assert!(is_ok(&mut world, &BEAT));
    let lease = world.jobs[&JobId(1)].lease().unwrap().clone();
    assert_eq!(lease.expires_at, from.plus_millis(25_000));
    world.now = from.plus_millis(25_000);
    assert!(!is_ok(&mut world, &BEAT), "it counts once");
}

#[test]
fn a_lease_that_was_over_before_the_clock_was_set_stays_over() {
    let world = running(5_000, 60_000);
    let lease = world.jobs[&JobId(1)].lease().unwrap();
    let span = 600_000;
    let jump = |from: Timestamp| [Jump { from, to: from.plus_millis(span) }];
    let now = lease.expires_at.plus_millis(2 * span);
    let before = Timestamp(lease.expires_at.0 - 1);
    let longer = lease.settled(&jump(before), &[], now).map(|settled| settled.expires_at);
    assert_eq!(longer, Some(lease.expires_at.plus_millis(span)), "it was running");
    assert_eq!(lease.settled(&jump(lease.expires_at), &[], now), None, "it had just ended");
    assert_eq!(lease.settled(&jump(lease.expires_at.plus_millis(1)), &[], now), None);
}
