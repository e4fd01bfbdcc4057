//! How long something has been beyond its threshold. Whoever looks keeps one of these for each
//! thing it looks at; it is made anew at a restart, which costs the time that it must have been so.

use super::{Level, Milli};
use crate::time::Timestamp;

/// When an alert is raised, and when one goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thresholds {
    /// From here on it is raised.
    pub raise: Milli,
    /// For this long it must have been so.
    pub hold_ms: u64,
}

impl Thresholds {
    /// Below this an alert does not go on: half of where it is raised.
    pub const fn clear(&self) -> Milli {
        Milli(self.raise.0.div_ceil(2))
    }
}

/// Since when something is beyond its threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Watch {
    beyond_since: Option<Timestamp>,
}

impl Watch {
    /// It is `value` now. How far that is beyond, if it is.
    pub fn see(&mut self, value: Milli, thresholds: Thresholds, now: Timestamp) -> Option<Level> {
        if value < thresholds.raise {
            self.beyond_since = None;
            return (value >= thresholds.clear()).then_some(Level::Lingering);
        }
        let since = *self.beyond_since.get_or_insert(now);
        match now >= since.plus_millis(thresholds.hold_ms) {
            true => Some(Level::Beyond),
            false => Some(Level::Lingering),
        }
    }
}
