//! How time goes on when a clock is set. One rule for both stores:
//!
//! - Time never runs backwards and never stands still. When the wall is set back, time goes on at
//!   nine tenths of the pace until the wall has caught up.
//! - When the wall is set forward, or the machine slept, time follows at once, because people mean
//!   the wall. The span that never was is a [`Jump`]: leases and deadlines that were running are
//!   longer by it (`Lease::settled`), so that no worker loses its job to a time server.
//! - While no server can reach the database, nobody can renew a lease. That span is a [`Silence`]:
//!   it does not count against leases that were running, and what is left of them at its end is
//!   enough for a heartbeat. Deadlines stay, because the work went on. A server that was away alone
//!   makes no silence: workers could ask another one. That is known from when any of them last
//!   looked, so a server away alone for less than the time between two looks may make a short one.
//!
//! Servers that share a database share its clock and this record of it, kept in the database and
//! changed by compare-and-set. So all of them see one time, and a jump counts once.

use crate::time::Timestamp;
use std::time::Duration;

/// A span of time that never was: a clock was set forward over it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Jump {
    /// The last instant before it.
    pub from: Timestamp,
    /// The first instant after it.
    pub to: Timestamp,
}

impl Jump {
    /// How long it is.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// A span in which no server could reach the store, so that nobody could renew a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Silence {
    /// When somebody last could.
    pub from: Timestamp,
    /// When somebody could again.
    pub to: Timestamp,
}

impl Silence {
    /// How long it was.
    pub fn span(&self) -> Duration {
        self.to.since(self.from)
    }

    /// What a lease that was running has left at its end, at least. Not longer than the silence:
    /// a store that is more often there than not keeps no dead worker's lease alive.
    pub fn grace(&self) -> Duration {
        self.span().min(SILENCE_GRACE_MAX)
    }
}

/// A difference between wall and monotonic time that is no longer mere slewing.
pub const JUMP_MIN: Duration = Duration::from_secs(2);
/// Jumps that are remembered: no lease and no deadline outlives that many.
pub const JUMPS_MAX: usize = 16;
/// Servers look at the shared time far more often than this. If nobody did for longer, either
/// nobody was there or the clock was set.
pub const LOOK_GAP_MAX: Duration = Duration::from_secs(5);
/// A look that took this long is repeated, as long as there is time for it.
pub const LOOK_SLACK_MAX: Duration = Duration::from_millis(50);
/// A server that could not reach the database for this long asks whether anybody could.
pub const BLIND_MIN: Duration = Duration::from_secs(1);
/// Leases that were running when nobody could reach the store last at least this long after, or as
/// long as that lasted.
pub const SILENCE_GRACE_MAX: Duration = Duration::from_secs(5);
/// Silences that are remembered: leases are settled long before there were that many.
pub const SILENCES_MAX: usize = 16;
/// What is ahead of the wall is worked off at one part in this many.
const WORK_OFF: u32 = 10;

/// What is left of being `ahead` of the wall after `passed`.
pub fn worked_off(ahead: Duration, passed: Duration) -> Duration {
    ahead.saturating_sub(passed / WORK_OFF)
}

/// Adds a jump to those that are remembered.
pub fn remember(jumps: &[Jump], jump: Jump) -> Vec<Jump> {
    let skipped = (jumps.len() + 1).saturating_sub(JUMPS_MAX);
    jumps.iter().skip(skipped).copied().chain([jump]).collect()
}

/// What servers of one database know about its clock.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SharedTime {
    /// Grows by one with every change; a change names the one it was made on.
    pub epoch: i64,
    /// How far time was ahead of the wall when the wall showed `since`.
    pub ahead: Duration,
    /// See `ahead`.
    pub since: Timestamp,
    /// What the wall showed when somebody last looked and found nothing odd.
    pub seen: Timestamp,
    /// The last jumps, oldest first.
    pub jumps: Vec<Jump>,
    /// The last silences, oldest first.
    pub silences: Vec<Silence>,
}

/// A look at the database's clock. It takes its time, and nobody knows when on the way the clock
/// was read, so what it shows is a span: `slack` long, with `wall` in its middle.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// What the clock shows now, if it was read half-way.
    pub wall: Timestamp,
    /// How long the look took.
    pub slack: Duration,
    /// How long this server could not reach the database before, as far as it noticed.
    pub blind_for: Duration,
}

impl Look {
    /// If nobody looked for this long before, the record has to say more than that this one did.
    pub fn gap_max(&self) -> Duration {
        match self.is_after_blindness() {
            true => self.blind_for.min(LOOK_GAP_MAX),
            false => LOOK_GAP_MAX,
        }
    }

    /// Whether it took so long that another look would tell more.
    pub fn is_vague(&self) -> bool {
        self.slack >= LOOK_SLACK_MAX
    }

    fn is_after_blindness(&self) -> bool {
        self.blind_for >= BLIND_MIN
    }
}

/// What a server knows of the shared time without looking.
#[derive(Debug, Clone, Copy)]
pub struct Known {
    /// The record it last saw.
    pub epoch: i64,
    /// What the time should be by its own steady clock.
    pub expected: Timestamp,
}

/// What to make of a look at the shared time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// It is this time.
    Fine(Timestamp),
    /// The record has to say more before anybody may go by it.
    Correct(SharedTime),
}

impl SharedTime {
    /// The time when the wall shows `wall`.
    pub fn at(&self, wall: Timestamp) -> Timestamp {
        wall + worked_off(self.ahead, wall.since(self.since))
    }

    /// Judges a look at the wall.
    pub fn judge(&self, look: &Look, known: Option<Known>) -> Judgement {
        let (wall, slack) = (look.wall, JUMP_MIN + look.slack);
        let (time, gap) = (self.at(wall), wall.since(self.seen));
        let was_looked_at = wall >= self.seen && gap < look.gap_max();
        let silences = |to: Timestamp| self.silences_until(to, look, known.is_some());
        match known.filter(|known| known.epoch == self.epoch) {
            // Others saw the time go by: it is this machine that slept, and their leases are right.
            Some(known) if time >= known.expected + slack && was_looked_at => {
                Judgement::Fine(self.within(look, Some(known)))
            }
            Some(known) if time >= known.expected + slack || time + slack <= known.expected => {
                // Time goes on from where it is: ahead of a wall that is behind, and at the wall if
                // that is ahead.
                let jump = Jump { from: known.expected, to: wall };
                let is_jump = wall >= known.expected + slack;
                let jumps = if is_jump { remember(&self.jumps, jump) } else { self.jumps.clone() };
                let ahead = known.expected.since(wall);
                self.corrected(wall, ahead, jumps, silences(known.expected))
            }
            // The clock was set back while nobody was there.
            None if wall + slack <= self.seen => {
                let ahead = self.at(self.seen).since(wall);
                self.corrected(wall, ahead, self.jumps.clone(), self.silences.clone())
            }
            Some(_) | None if was_looked_at => Judgement::Fine(self.within(look, known)),
            Some(_) | None => {
                self.corrected(wall, self.ahead_at(wall), self.jumps.clone(), silences(time))
            }
        }
    }

    /// The time, as far as a look tells: what this server expected, unless the look rules that out.
    /// Were the middle of the look always taken, one slow answer would make a clock wrong that was
    /// right before, and this server would refuse reports that are within their leases.
    fn within(&self, look: &Look, known: Option<Known>) -> Timestamp {
        let (earliest, latest) =
            (self.at(look.wall - look.slack / 2), self.at(look.wall + look.slack / 2));
        match known {
            Some(known) => known.expected.clamp(earliest, latest),
            None => self.at(look.wall),
        }
    }

    /// The silences, with the one until `to` if there was one: nobody has looked since this server
    /// last could, or, for one that has only just come, for longer than servers go without.
    fn silences_until(&self, to: Timestamp, look: &Look, was_there: bool) -> Vec<Silence> {
        let seen = self.at(self.seen);
        let (from, is_one) = match was_there {
            true => {
                let from = to - look.blind_for - look.slack;
                let is_one = look.is_after_blindness() && seen + look.blind_for <= to;
                (from.max(seen), is_one)
            }
            false => (seen, seen + LOOK_GAP_MAX <= to),
        };
        let silence = Silence { from, to };
        // Before the first look there was nobody to be silent.
        let is_one = is_one && self.seen > Timestamp::EPOCH;
        let skipped = (self.silences.len() + usize::from(is_one)).saturating_sub(SILENCES_MAX);
        let kept = self.silences.iter().skip(skipped).copied();
        kept.chain(is_one.then_some(silence)).collect()
    }

    /// How far time is ahead of the wall when that shows `wall`.
    pub fn ahead_at(&self, wall: Timestamp) -> Duration {
        self.at(wall).since(wall)
    }

    fn corrected(
        &self,
        wall: Timestamp,
        ahead: Duration,
        jumps: Vec<Jump>,
        silences: Vec<Silence>,
    ) -> Judgement {
        let epoch = self.epoch + 1;
        Judgement::Correct(SharedTime { epoch, ahead, since: wall, seen: wall, jumps, silences })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Timestamp = Timestamp::from_millis(43_200_000);
    const HOUR: Duration = Duration::from_secs(3_600);
    const SECOND: Duration = Duration::from_secs(1);

    fn looked_at(seen: Timestamp) -> SharedTime {
        SharedTime { epoch: 7, since: seen, seen, ..SharedTime::default() }
    }

    fn look(wall: Timestamp) -> Look {
        Look { wall, slack: Duration::ZERO, blind_for: Duration::ZERO }
    }

    fn known(expected: Timestamp) -> Option<Known> {
        Some(Known { epoch: 7, expected })
    }

    fn corrected(judgement: Judgement) -> SharedTime {
        match judgement {
            Judgement::Correct(record) => record,
            Judgement::Fine(time) => panic!("nothing to correct at {time:?}"),
        }
    }

    #[test]
    fn a_wall_that_goes_on_is_followed() {
        let record = looked_at(NOON);
        let later = NOON + SECOND;
        for drift in [Duration::ZERO, SECOND] {
            assert_eq!(record.judge(&look(later), known(later + drift)), Judgement::Fine(later));
            assert_eq!(record.judge(&look(later), known(later - drift)), Judgement::Fine(later));
        }
        assert_eq!(record.judge(&look(later), None), Judgement::Fine(later), "a newcomer");
    }

    #[test]
    fn a_slow_look_rules_out_what_it_can_and_nothing_more() {
        let record = looked_at(NOON);
        let wall = NOON + 2 * SECOND;
        let slow = Look { slack: SECOND, ..look(wall) };
        for (expected, told) in [
            (wall, wall),
            (wall - SECOND / 2, wall - SECOND / 2),
            (wall + SECOND / 3, wall + SECOND / 3),
            (wall - SECOND, wall - SECOND / 2),
            (wall + SECOND, wall + SECOND / 2),
            // Behind by more than a jump, but others saw the time go by: it slept.
            (wall - HOUR, wall - SECOND / 2),
        ] {
            assert_eq!(record.judge(&slow, known(expected)), Judgement::Fine(told), "{expected:?}");
        }
        assert_eq!(record.judge(&slow, None), Judgement::Fine(wall), "a newcomer knows no better");
        let other = Some(Known { epoch: 6, expected: wall + SECOND / 3 });
        let told = wall + SECOND / 3;
        assert_eq!(
            record.judge(&slow, other),
            Judgement::Fine(told),
            "a new record is no new time"
        );
    }

    /// What a look leaves open is of the wall, not of the time that is worked off beside it.
    #[test]
    fn a_slow_look_at_a_wall_that_is_behind_leaves_as_much_open() {
        let wall = NOON + SECOND;
        let record = SharedTime { ahead: HOUR, ..looked_at(NOON) };
        let slow = Look { slack: SECOND, ..look(wall) };
        for wrong in [SECOND, 2 * SECOND] {
            let told = record.judge(&slow, known(record.at(wall) + wrong));
            assert_eq!(told, Judgement::Fine(record.at(wall + SECOND / 2)));
        }
    }

    #[test]
    fn a_look_is_vague_when_it_took_long() {
        assert!(!look(NOON).is_vague());
        assert!(Look { slack: LOOK_SLACK_MAX, ..look(NOON) }.is_vague());
    }

    #[test]
    fn set_forward_it_is_followed_and_the_span_is_remembered_once() {
        let expected = NOON + SECOND;
        let wall = expected + HOUR;
        let record = corrected(looked_at(NOON).judge(&look(wall), known(expected)));
        assert_eq!(record.jumps, [Jump { from: expected, to: wall }]);
        assert_eq!((record.epoch, record.at(wall)), (8, wall));
        // Another server that had not noticed yet sees the new record and makes no second jump.
        let other = record.judge(&look(wall + SECOND), known(expected + SECOND));
        assert_eq!(other, Judgement::Fine(wall + SECOND));
    }

    #[test]
    fn a_machine_that_slept_while_others_looked_makes_no_jump() {
        let wall = NOON + HOUR;
        let judgement = looked_at(wall - SECOND).judge(&look(wall), known(NOON));
        assert_eq!(judgement, Judgement::Fine(wall));
    }

    #[test]
    fn set_back_time_goes_on_and_meets_the_wall_in_the_end() {
        let expected = NOON + SECOND;
        let wall = expected - HOUR;
        let record = corrected(looked_at(NOON).judge(&look(wall), known(expected)));
        assert_eq!((record.at(wall), &*record.jumps), (expected, &[][..]), "nothing jumps");
        let mut last = expected;
        for hours in 1..=12 {
            let time = record.at(wall + HOUR * hours);
            assert!(time >= last + HOUR * 9 / 10, "it goes on");
            last = time;
        }
        assert_eq!(last, wall + HOUR * 12, "by then the wall has caught up");
        // Set forward again to where it was: that is no jump.
        let back = record
            .judge(&look(expected + SECOND), Some(Known { epoch: 8, expected: expected + SECOND }));
        assert!(corrected(back).jumps.is_empty());
    }

    #[test]
    fn set_back_while_nobody_was_there_time_does_not_start_over() {
        let wall = NOON - HOUR;
        let record = corrected(looked_at(NOON).judge(&look(wall), None));
        assert_eq!(record.at(wall), NOON);
    }

    #[test]
    fn after_a_pause_of_everybody_the_first_look_is_noted() {
        let wall = NOON + HOUR;
        let record = corrected(looked_at(NOON).judge(&look(wall), None));
        assert_eq!((record.at(wall), record.seen, &*record.jumps), (wall, wall, &[][..]));
        assert_eq!(record.silences, [Silence { from: NOON, to: wall }], "nobody was there");
        let away = Look { blind_for: HOUR - 3 * SECOND, slack: SECOND, ..look(wall) };
        let own = corrected(looked_at(NOON).judge(&away, known(wall)));
        assert!(own.jumps.is_empty(), "a database that was away for an hour made no jump");
        assert_eq!(own.silences, [Silence { from: NOON + 2 * SECOND, to: wall }]);
        let idle = corrected(looked_at(NOON).judge(&look(wall), known(wall)));
        assert_eq!(idle.silences, [], "it did not look, but it was there");
        let first = corrected(SharedTime::default().judge(&look(wall), None));
        assert_eq!(first.silences, [], "there was nobody before the first one");
    }

    #[test]
    fn who_was_away_alone_makes_no_silence() {
        let away = |wall, blind_for| Look { blind_for, ..look(wall) };
        let wall = NOON + 3 * SECOND;
        // Nobody has looked since this server last could.
        let all = looked_at(NOON).judge(&away(wall, 3 * SECOND), known(wall));
        assert_eq!(corrected(all).silences, [Silence { from: NOON, to: wall }]);
        // Somebody has.
        let alone = looked_at(NOON + SECOND).judge(&away(wall, 3 * SECOND), known(wall));
        assert_eq!(alone, Judgement::Fine(wall));
        let long = looked_at(wall - SECOND).judge(&away(wall, HOUR), known(wall));
        assert_eq!(long, Judgement::Fine(wall));
        // A hiccup is none, and neither is what lies between two looks.
        let hiccup = looked_at(NOON).judge(&away(wall, SECOND / 2), known(wall));
        assert_eq!(hiccup, Judgement::Fine(wall));
        // Many servers come back at once: the first one's word counts.
        let noted = corrected(looked_at(NOON).judge(&away(wall, 3 * SECOND), known(wall)));
        let later = away(wall + SECOND, 4 * SECOND);
        let second = noted.judge(&later, known(wall + SECOND));
        assert_eq!(second, Judgement::Fine(wall + SECOND));
    }

    #[test]
    fn a_clock_that_is_set_during_a_silence_counts_for_itself() {
        let expected = NOON + HOUR;
        let wall = expected + 2 * HOUR;
        let away = Look { blind_for: HOUR, ..look(wall) };
        let record = corrected(looked_at(NOON).judge(&away, known(expected)));
        assert_eq!(record.silences, [Silence { from: NOON, to: expected }]);
        assert_eq!(record.jumps, [Jump { from: expected, to: wall }]);
        let soon = NOON + SECOND;
        let record = corrected(looked_at(NOON).judge(&look(soon + HOUR), known(soon)));
        assert_eq!(record.silences, [], "it was looked at a second ago");
    }

    #[test]
    fn only_so_many_silences_are_remembered() {
        let mut record = looked_at(NOON);
        for hour in 1..40u32 {
            let wall = NOON + HOUR * hour;
            record = corrected(record.judge(&look(wall), None));
        }
        assert_eq!(record.silences.len(), SILENCES_MAX);
        assert_eq!(record.silences.last().unwrap().from, NOON + HOUR * 38);
    }

    #[test]
    fn only_so_many_jumps_are_remembered() {
        let mut jumps = Vec::new();
        for hour in 0..40u32 {
            let from = NOON + HOUR * hour * 2;
            jumps = remember(&jumps, Jump { from, to: from + HOUR });
        }
        assert_eq!(jumps.len(), JUMPS_MAX);
        assert_eq!(jumps.last().unwrap().from, NOON + HOUR * 78);
    }
}
