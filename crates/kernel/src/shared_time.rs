//! How time goes on when a clock is set. One rule for both stores:
//!
//! - Time never runs backwards and never stands still. When the wall is set back, time goes on at
//!   nine tenths of the pace until the wall has caught up.
//! - When the wall is set forward, or the machine slept, time follows at once, because people mean
//!   the wall. The span that never was is a [`Jump`]: leases and deadlines that were running are
//!   longer by it (`Lease::settled`), so that no worker loses its job to a time server.
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

/// A difference between wall and monotonic time that is no longer mere slewing.
pub const JUMP_MIN: Duration = Duration::from_secs(2);
/// Jumps that are remembered: no lease and no deadline outlives that many.
pub const JUMPS_MAX: usize = 16;
/// Servers look at the shared time far more often than this. If nobody did for longer, either
/// nobody was there or the clock was set.
pub const LOOK_GAP_MAX: Duration = Duration::from_secs(5);
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

    /// Judges a look at the wall. `slack` is what the look itself may be wrong by.
    pub fn judge(&self, wall: Timestamp, known: Option<Known>, slack: Duration) -> Judgement {
        let slack = JUMP_MIN + slack;
        let (time, gap) = (self.at(wall), wall.since(self.seen));
        let was_looked_at = wall >= self.seen && gap < LOOK_GAP_MAX;
        match known.filter(|known| known.epoch == self.epoch) {
            // Others saw the time go by: it is this machine that slept, and their leases are right.
            Some(known) if time >= known.expected + slack && was_looked_at => Judgement::Fine(time),
            Some(known) if time >= known.expected + slack || time + slack <= known.expected => {
                // Time goes on from where it is: ahead of a wall that is behind, and at the wall if
                // that is ahead.
                let jump = Jump { from: known.expected, to: wall };
                let is_jump = wall >= known.expected + slack;
                let jumps = if is_jump { remember(&self.jumps, jump) } else { self.jumps.clone() };
                self.corrected(wall, known.expected.since(wall), jumps)
            }
            // The clock was set back while nobody was there.
            None if wall + slack <= self.seen => {
                let ahead = self.at(self.seen).since(wall);
                self.corrected(wall, ahead, self.jumps.clone())
            }
            Some(_) | None if was_looked_at => Judgement::Fine(time),
            Some(_) | None => self.corrected(wall, self.ahead_at(wall), self.jumps.clone()),
        }
    }

    fn ahead_at(&self, wall: Timestamp) -> Duration {
        self.at(wall).since(wall)
    }

    fn corrected(&self, wall: Timestamp, ahead: Duration, jumps: Vec<Jump>) -> Judgement {
        let epoch = self.epoch + 1;
        Judgement::Correct(SharedTime { epoch, ahead, since: wall, seen: wall, jumps })
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
            assert_eq!(record.judge(later, known(later + drift), SECOND), Judgement::Fine(later));
            assert_eq!(record.judge(later, known(later - drift), SECOND), Judgement::Fine(later));
        }
        assert_eq!(record.judge(later, None, SECOND), Judgement::Fine(later), "a newcomer");
    }

    #[test]
    fn set_forward_it_is_followed_and_the_span_is_remembered_once() {
        let expected = NOON + SECOND;
        let wall = expected + HOUR;
        let record = corrected(looked_at(NOON).judge(wall, known(expected), SECOND));
        assert_eq!(record.jumps, [Jump { from: expected, to: wall }]);
        assert_eq!((record.epoch, record.at(wall)), (8, wall));
        // Another server that had not noticed yet sees the new record and makes no second jump.
        let other = record.judge(wall + SECOND, known(expected + SECOND), SECOND);
        assert_eq!(other, Judgement::Fine(wall + SECOND));
    }

    #[test]
    fn a_machine_that_slept_while_others_looked_makes_no_jump() {
        let wall = NOON + HOUR;
        let judgement = looked_at(wall - SECOND).judge(wall, known(NOON), SECOND);
        assert_eq!(judgement, Judgement::Fine(wall));
    }

    #[test]
    fn set_back_time_goes_on_and_meets_the_wall_in_the_end() {
        let expected = NOON + SECOND;
        let wall = expected - HOUR;
        let record = corrected(looked_at(NOON).judge(wall, known(expected), SECOND));
        assert_eq!((record.at(wall), &*record.jumps), (expected, &[][..]), "nothing jumps");
        let mut last = expected;
        for hours in 1..=12 {
            let time = record.at(wall + HOUR * hours);
            assert!(time >= last + HOUR * 9 / 10, "it goes on");
            last = time;
        }
        assert_eq!(last, wall + HOUR * 12, "by then the wall has caught up");
        // Set forward again to where it was: that is no jump.
        let back = record.judge(
            expected + SECOND,
            Some(Known { epoch: 8, expected: expected + SECOND }),
            SECOND,
        );
        assert!(corrected(back).jumps.is_empty());
    }

    #[test]
    fn set_back_while_nobody_was_there_time_does_not_start_over() {
        let wall = NOON - HOUR;
        let record = corrected(looked_at(NOON).judge(wall, None, SECOND));
        assert_eq!(record.at(wall), NOON);
    }

    #[test]
    fn after_a_pause_of_everybody_the_first_look_is_noted() {
        let wall = NOON + HOUR;
        let record = corrected(looked_at(NOON).judge(wall, None, SECOND));
        assert_eq!((record.at(wall), record.seen, &*record.jumps), (wall, wall, &[][..]));
        let own = corrected(looked_at(NOON).judge(wall, known(wall), SECOND));
        assert!(own.jumps.is_empty(), "a database that was away for an hour made no jump");
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
