//! Clocks that are set while we look.

use super::*;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

const NOON: Timestamp = Timestamp::from_millis(43_200_000);
const HOUR: Duration = Duration::from_secs(3_600);
const SECOND: Duration = Duration::from_secs(1);

/// The two clocks of a machine, in microseconds.
#[derive(Clone, Default)]
struct Machine {
    wall: Arc<AtomicI64>,
    steady: Arc<AtomicU64>,
}

impl Machine {
    fn at(start: Timestamp) -> Self {
        let machine = Machine::default();
        machine.wall.store(start.0, Ordering::Relaxed);
        machine
    }

    fn sources(&self) -> Sources {
        let (wall, steady) = (self.wall.clone(), self.steady.clone());
        Sources {
            wall: Box::new(move || Timestamp(wall.load(Ordering::Relaxed))),
            steady: Box::new(move || Duration::from_micros(steady.load(Ordering::Relaxed))),
        }
    }

    fn wall(&self) -> Timestamp {
        Timestamp(self.wall.load(Ordering::Relaxed))
    }

    /// Time goes by for everybody.
    fn pass(&self, span: Duration) {
        self.steady.fetch_add(span.as_micros() as u64, Ordering::Relaxed);
        self.set(span.as_micros() as i64);
    }

    /// Only the wall moves: it is set, or the machine sleeps.
    fn set(&self, micros: i64) {
        self.wall.fetch_add(micros, Ordering::Relaxed);
    }
}

#[test]
fn small_corrections_are_followed_without_a_word() {
    let machine = Machine::at(NOON);
    let clock = SystemClock::of(machine.sources());
    for micros in [900_000, -900_000, 1_500_000] {
        let before = clock.now();
        machine.pass(SECOND);
        machine.set(micros);
        assert!(clock.now() >= before);
        machine.pass(HOUR);
        assert_eq!(clock.now(), machine.wall());
    }
    assert_eq!(clock.course(), Course::default());
    assert!(clock.jumps().is_empty());
}

#[test]
fn set_back_it_goes_on_and_meets_the_wall_in_the_end() {
    let machine = Machine::at(NOON);
    let clock = SystemClock::of(machine.sources());
    machine.set(-(HOUR.as_micros() as i64));
    let mut last = clock.now();
    assert!(last >= NOON, "never backwards");
    for _ in 0..11 * 60 {
        machine.pass(Duration::from_secs(60));
        let now = clock.now();
        assert!(now >= last + Duration::from_secs(53), "it must not stand still");
        assert!(now <= last + Duration::from_secs(60));
        last = now;
    }
    assert_eq!(last, machine.wall(), "the wall has caught up");
    let course = clock.course();
    assert_eq!((course.back, course.forward, course.ahead), (1, 0, Duration::ZERO));
}

#[test]
fn set_forward_it_follows_and_remembers_the_span() {
    let machine = Machine::at(NOON);
    let clock = SystemClock::of(machine.sources());
    machine.pass(SECOND);
    machine.set(HOUR.as_micros() as i64);
    assert_eq!(clock.now(), NOON + SECOND + HOUR);
    assert_eq!(*clock.jumps(), [Jump { from: NOON + SECOND, to: NOON + SECOND + HOUR }]);
    machine.pass(SECOND);
    clock.now();
    assert_eq!((clock.jumps().len(), clock.course().forward), (1, 1), "it counts once");
}

#[test]
fn a_sleep_of_the_machine_is_a_jump() {
    let machine = Machine::at(NOON);
    let clock = SystemClock::of(machine.sources());
    // While it sleeps the steady clock stands still.
    machine.set(8 * HOUR.as_micros() as i64);
    assert_eq!(clock.now(), NOON + 8 * HOUR);
    assert_eq!(clock.jumps()[0].span(), 8 * HOUR);
}

#[test]
fn set_back_and_forward_again_makes_no_jump() {
    let machine = Machine::at(NOON);
    let clock = SystemClock::of(machine.sources());
    machine.set(-(HOUR.as_micros() as i64));
    clock.now();
    machine.pass(SECOND);
    machine.set(HOUR.as_micros() as i64);
    assert!(clock.now() >= NOON + SECOND * 9 / 10);
    assert!(clock.jumps().is_empty());
}

/// A database whose clock can be set, with the record that servers keep in it.
struct Database {
    machine: Machine,
    record: SharedTime,
}

impl Database {
    /// What the statement of a look does, and what follows from it.
    fn look(&mut self, clock: &SharedClock, blind_for: Duration) -> bool {
        let look = Look { wall: self.machine.wall(), slack: Duration::ZERO, blind_for };
        let was = self.record.clone();
        if look.wall >= was.seen && look.wall.since(was.seen) < look.gap_max() {
            self.record.seen = look.wall;
        }
        match clock.set(&look, &was) {
            Some(better) => {
                assert_eq!(better.epoch, was.epoch + 1);
                if self.record.epoch == was.epoch {
                    self.record = better;
                }
                false
            }
            None => true,
        }
    }

    fn settle(&mut self, clock: &SharedClock) {
        self.settle_after(clock, Duration::ZERO);
    }

    /// As a server does that could not reach the database for so long.
    fn settle_after(&mut self, clock: &SharedClock, blind_for: Duration) {
        while !self.look(clock, blind_for) {}
    }
}

fn nodes() -> (Database, [Machine; 2], [SharedClock; 2]) {
    let machine = Machine::at(NOON);
    let mut database = Database { machine, record: SharedTime::default() };
    // Their own walls are far off, and do not matter.
    let machines = [Machine::at(NOON + 9 * HOUR), Machine::at(NOON - 9 * HOUR)];
    let clocks = [0, 1].map(|nth| SharedClock::of(machines[nth].sources()));
    for clock in &clocks {
        database.settle(clock);
        assert_eq!(clock.now(), NOON);
    }
    (database, machines, clocks)
}

fn pass(database: &Database, machines: &[Machine], span: Duration) {
    database.machine.pass(span);
    machines.iter().for_each(|machine| machine.pass(span));
}

#[test]
fn one_jump_of_the_database_is_one_jump_for_all_its_servers() {
    let (mut database, machines, clocks) = nodes();
    pass(&database, &machines, SECOND);
    database.machine.set(600_000_000);
    // Both look before either has corrected the record: neither goes by the new time yet.
    let before = clocks[1].now();
    let wall = database.machine.wall();
    let look = Look { wall, slack: Duration::ZERO, blind_for: Duration::ZERO };
    let proposed = clocks[1].set(&look, &database.record);
    assert!(proposed.is_some() && clocks[1].now() == before);
    for clock in &clocks {
        database.settle(clock);
        assert_eq!(clock.now(), wall);
        assert_eq!((clock.jumps().len(), clock.course().forward), (1, 1));
        assert_eq!(clock.jumps()[0], Jump { from: NOON + SECOND, to: wall });
    }
    assert_eq!(clocks[0].jumps(), clocks[1].jumps());
}

#[test]
fn a_database_set_back_an_hour_holds_nobody_up() {
    let (mut database, machines, clocks) = nodes();
    pass(&database, &machines, SECOND);
    database.machine.set(-(HOUR.as_micros() as i64));
    let mut last = NOON;
    for _ in 0..300 {
        pass(&database, &machines, 2 * SECOND);
        for clock in &clocks {
            database.settle(clock);
        }
        let now = clocks[0].now();
        assert!(now >= last + SECOND, "it must not stand still");
        assert!(clocks[1].now().since(now) < SECOND && now.since(clocks[1].now()) < SECOND);
        last = now;
    }
    assert_eq!((clocks[0].course().back, clocks[1].course().back), (1, 1));
    assert!(clocks[0].jumps().is_empty());
    for _ in 0..11 * 3_600 / 4 {
        pass(&database, &machines, 4 * SECOND);
        database.settle(&clocks[0]);
    }
    assert_eq!(clocks[0].now(), database.machine.wall(), "the wall has caught up");
}

#[test]
fn a_server_that_slept_alone_follows_the_others() {
    let (mut database, machines, clocks) = nodes();
    for _ in 0..60 {
        // Only the first server is awake.
        database.machine.pass(2 * SECOND);
        machines[0].pass(2 * SECOND);
        database.settle(&clocks[0]);
    }
    database.settle(&clocks[1]);
    assert_eq!(clocks[1].now(), clocks[0].now());
    assert!(clocks[1].jumps().is_empty(), "nobody's lease is longer for it");
}

/// A steady clock that runs a little fast is put right by the database's, and nobody sees it.
#[test]
fn a_small_correction_never_takes_time_back() {
    let (mut database, machines, clocks) = nodes();
    database.machine.pass(SECOND);
    machines[0].pass(2 * SECOND);
    let before = clocks[0].now();
    assert_eq!(before, NOON + 2 * SECOND);
    database.settle(&clocks[0]);
    assert_eq!(clocks[0].now(), before, "it waits for the database");
    pass(&database, &machines, 3 * SECOND);
    assert_eq!(clocks[0].now(), database.machine.wall(), "and goes on with it");
}

/// The way of a look took 0.7 s, all of it before or all of it after the clock was read: half of
/// that is what its middle is wrong by, and what the server knew before is right.
#[test]
fn one_slow_look_makes_no_clock_wrong() {
    let (database, machines, clocks) = nodes();
    let slack = SECOND * 7 / 10;
    for (way_there, way_back) in [(slack, Duration::ZERO), (Duration::ZERO, slack)] {
        pass(&database, &machines, way_there);
        let read = database.machine.wall();
        pass(&database, &machines, way_back);
        let look = Look { wall: read + slack / 2, slack, blind_for: Duration::ZERO };
        assert_eq!(clocks[0].set(&look, &database.record), None);
        assert_eq!(clocks[0].now(), database.machine.wall());
        assert_eq!(clocks[0].course(), Course::default(), "and nothing was set");
    }
}

/// A newcomer has only the look; the next one that is quick puts it right.
#[test]
fn a_newcomer_with_a_slow_look_is_put_right_by_a_quick_one() {
    let (mut database, _, _) = nodes();
    let machine = Machine::at(NOON);
    let clock = SharedClock::of(machine.sources());
    let slow = Look { wall: NOON + SECOND, slack: 2 * SECOND, blind_for: Duration::ZERO };
    assert_eq!(clock.set(&slow, &database.record), None);
    assert_eq!(clock.now(), NOON + SECOND, "wrong by all that the look left open");
    pass(&database, &[machine], 2 * SECOND);
    database.settle(&clock);
    assert_eq!(clock.now(), database.machine.wall());
}

#[test]
fn an_outage_of_all_is_one_silence_and_an_outage_of_one_is_none() {
    let (mut database, machines, clocks) = nodes();
    for away in [3 * SECOND, HOUR] {
        pass(&database, &machines, SECOND);
        clocks.iter().for_each(|clock| database.settle(clock));
        let from = database.machine.wall();
        pass(&database, &machines, away);
        for clock in &clocks {
            database.settle_after(clock, away);
        }
        let told = *clocks[0].silences().last().unwrap();
        assert_eq!(told, Silence { from, to: from + away });
    }
    assert_eq!(clocks[0].silences(), clocks[1].silences());
    assert_eq!(clocks[0].silences().len(), 2, "each outage counts once");
    for _ in 0..60 {
        // Only the first server has a way to the database.
        pass(&database, &machines, 2 * SECOND);
        database.settle(&clocks[0]);
    }
    database.settle_after(&clocks[1], 120 * SECOND);
    assert_eq!(clocks[1].silences().len(), 2, "workers could ask the other one");
    assert!(clocks[1].jumps().is_empty());
}
