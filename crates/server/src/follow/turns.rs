//! When a stream looks: at once as long as its tenant has few; where there are many, each in a turn
//! of its own, a few at a time, so that a commit does not wake them all at the same moment and a
//! tenant's streams cost the same however much moves.

use crate::limits::{STREAM_TURN_MS, STREAMS_PER_TURN};
use std::time::Duration;
use tokio::time::Instant;

/// The turns of one stream.
#[derive(Debug)]
pub(super) struct Turns {
    /// Turns are counted from here on.
    epoch: Instant,
    /// Which of the streams it is.
    number: u64,
    /// The turn in which it looked last.
    last: Option<u64>,
}

impl Turns {
    pub(super) fn new(epoch: Instant, number: u64) -> Self {
        Turns { epoch, number, last: None }
    }

    /// When the next turn is, among so many streams; none while they need not take turns.
    pub(super) fn next(&self, now: Instant, streams: usize) -> Option<Instant> {
        let round = streams.div_ceil(STREAMS_PER_TURN) as u64;
        if round <= 1 {
            return None;
        }
        let first = self.last.map_or(0, |last| last + 1).max(self.at(now));
        let ahead = (self.number % round + round - first % round) % round;
        let turn = self.epoch + Duration::from_millis((first + ahead) * STREAM_TURN_MS);
        Some(turn.max(now))
    }

    /// It looks now.
    pub(super) fn takes(&mut self, now: Instant) {
        self.last = Some(self.at(now));
    }

    fn at(&self, now: Instant) -> u64 {
        let past = now.saturating_duration_since(self.epoch).as_millis();
        u64::try_from(past).unwrap_or(u64::MAX) / STREAM_TURN_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: Duration = Duration::from_millis(STREAM_TURN_MS);

    #[test]
    fn a_few_streams_need_no_turns() {
        let epoch = Instant::now();
        let mut turns = Turns::new(epoch, 3);
        turns.takes(epoch);
        assert_eq!(turns.next(epoch, STREAMS_PER_TURN), None);
        assert!(turns.next(epoch, STREAMS_PER_TURN + 1).is_some());
    }

    #[test]
    fn every_stream_has_one_turn_in_a_round_and_each_turn_few_streams() {
        let (epoch, streams) = (Instant::now(), 500_usize);
        let round = streams.div_ceil(STREAMS_PER_TURN);
        let mut looks = vec![0; 3 * round];
        for number in 0..streams as u64 {
            let (mut turns, mut now) = (Turns::new(epoch, number), epoch);
            for _ in 0..3 {
                now = turns.next(now, streams).unwrap();
                looks[usize::try_from(turns.at(now)).unwrap()] += 1;
                turns.takes(now);
                // Within its turn it does not look again.
                assert!(turns.next(now, streams).unwrap() >= now + TURN * (round as u32 - 1));
                now += Duration::from_millis(1);
            }
        }
        assert!(looks.iter().all(|looks| (1..=STREAMS_PER_TURN).contains(looks)), "{looks:?}");
        assert_eq!(looks.iter().sum::<usize>(), 3 * streams);
    }

    #[test]
    fn whose_turn_it_is_looks_at_once() {
        let epoch = Instant::now();
        let now = epoch + TURN * 5 + Duration::from_millis(3);
        assert_eq!(Turns::new(epoch, 5).next(now, 160), Some(now));
        assert_eq!(Turns::new(epoch, 6).next(now, 160), Some(epoch + TURN * 6));
        assert_eq!(Turns::new(epoch, 4).next(now, 160), Some(epoch + TURN * 14));
    }
}
