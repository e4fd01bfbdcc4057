//! Rows of `ready` that the second writer of this server made, on their way to the stock of the
//! first. Nobody may ask for jobs for long, so of many only the first place in each lane is kept:
//! from there on the first writer reads.

use crate::due::Due;
use crate::stock::{MadeReady, ReadyKey};
use std::collections::BTreeMap;
use std::sync::{MutexGuard, PoisonError};

/// Rows that are kept with their jobs, at most.
const ROWS_MAX: usize = 2_000;

/// What the first writer has not been told.
#[derive(Debug, Default)]
pub(crate) struct MadeReadyElsewhere {
    rows: Vec<MadeReady>,
    /// The first place in each lane of rows that were too many.
    first: BTreeMap<i32, ReadyKey>,
}

impl MadeReadyElsewhere {
    pub(crate) fn extend(&mut self, rows: Vec<MadeReady>) {
        self.rows.extend(rows);
        if self.rows.len() > ROWS_MAX {
            for (lane, place, _) in self.rows.drain(..) {
                let first = self.first.entry(lane).or_insert(place);
                *first = place.min(*first);
            }
        }
    }

    pub(crate) fn take(&mut self) -> Vec<MadeReady> {
        let first = std::mem::take(&mut self.first).into_iter();
        let without_jobs = first.map(|(lane, place)| (lane, place, None));
        std::mem::take(&mut self.rows).into_iter().chain(without_jobs).collect()
    }
}

impl Due {
    pub(crate) fn made_ready(&self) -> MutexGuard<'_, MadeReadyElsewhere> {
        self.made_ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::{MadeReadyElsewhere, ROWS_MAX};
    use crate::stock::MadeReady;
    use uuid::Uuid;

    fn row(lane: i32, key: i64) -> MadeReady {
        (lane, (key, Uuid::nil()), None)
    }

    #[test]
    fn of_too_many_rows_the_first_place_of_each_lane_is_kept() {
        let mut made = MadeReadyElsewhere::default();
        made.extend(vec![row(1, 7)]);
        made.extend((0..ROWS_MAX as i64).map(|n| row(2, 100 - n)).collect());
        made.extend(vec![row(1, 9)]);
        let told: Vec<(i32, i64)> =
            made.take().into_iter().map(|(lane, (key, _), _)| (lane, key)).collect();
        assert_eq!(told, [(1, 9), (1, 7), (2, 101 - ROWS_MAX as i64)]);
        assert!(made.take().is_empty());
    }
}
