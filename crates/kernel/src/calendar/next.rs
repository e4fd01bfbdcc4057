//! The next time a cron pattern fires, through every change of the clocks.
//!
//! A pattern whose hour field has all 24 hours (`*`, `*/1`, `0-23`) is *hourly*: it fires at every
//! instant at which the clocks show a matching time. When the clocks are put back it runs in both
//! passes, when they jump it goes on with what they show next, and neither gap nor fold policy
//! matters: `*/15 * * * *` fires every fifteen minutes of real time through both.
//!
//! Every other pattern has *fixed times* (also `*/30 1 * * *` and `0 */2 * * *`). A fixed time that
//! the clocks jump over fires at the instant of the jump, together with whatever else was jumped
//! over and with what the clocks then show: once ([`Gap::Shift`]); or not at all ([`Gap::Skip`]). A
//! fixed time that the clocks show again fires the first time only ([`Fold::Once`]) or both times
//! ([`Fold::Twice`]). Jumps of any size count: half an hour, or the date that Samoa left out in
//! 2011.
//!
//! The search ends after [`SEARCH_YEARS`]. Patterns are at most forty years apart (29 February on
//! one weekday, around a year like 2100), so only a pattern whose every time is jumped over is ever
//! given up.

use super::zone::{APART_SECS, OFFSET_SECS_MAX, Stretch, in_calendar};
use super::{Cron, FIRST_SECOND, Fold, Gap, LAST_SECOND, Zone};
use crate::time::Timestamp;

/// How far ahead a pattern is looked for, in years.
pub const SEARCH_YEARS: i64 = 48;

const SEARCH_SECS: i64 = SEARCH_YEARS * 366 * 86_400;

/// What is worth a word about one firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// The clocks jumped over its time; it fires at the jump.
    Shifted,
    /// The clocks will show this time again.
    FirstPass,
    /// The clocks show this time again.
    SecondPass,
}

/// The first second strictly after `after` at which the pattern fires.
pub(super) fn next_after(
    cron: &Cron,
    zone: &Zone,
    policy: (Gap, Fold),
    after: Timestamp,
) -> Option<Timestamp> {
    let mut second = (after.0.div_euclid(1_000_000) + 1).max(FIRST_SECOND);
    let until = LAST_SECOND.min(second.saturating_add(SEARCH_SECS));
    while second <= until {
        let stretch = zone.stretch(second);
        let from = match fires(cron, stretch, policy, second) {
            Fires::At(at) if at > until => return None,
            Fires::At(at) => return Some(Timestamp(at * 1_000_000)),
            Fires::NotBefore(from) => from,
        };
        let end = stretch.end;
        if end - second <= APART_SECS {
            second = end;
            continue;
        }
        // From the end of this stretch on, the clocks show nothing earlier than `from` again, and
        // what they show next that matches is `next`. No clock shows that earlier than this:
        let next = cron.next_local(from, until + OFFSET_SECS_MAX)?;
        second = end.max(next - OFFSET_SECS_MAX);
    }
    None
}

enum Fires {
    /// At this second.
    At(i64),
    /// Not in the stretch. Nothing that the clocks show from this time on was looked at.
    NotBefore(i64),
}

/// Whether the pattern fires in `stretch` from `second` on.
fn fires(cron: &Cron, stretch: Stretch, (gap, fold): (Gap, Fold), second: i64) -> Fires {
    let Stretch { start, end, offset, passed } = stretch;
    let shown = second + offset;
    let from = if cron.is_hourly() {
        shown
    } else {
        if second == start && gap == Gap::Shift && cron.next_local(passed, shown).is_some() {
            return Fires::At(start);
        }
        match fold {
            Fold::Once => shown.max(passed),
            Fold::Twice => shown,
        }
    };
    match cron.next_local(from, end + offset) {
        Some(local) => Fires::At(local - offset),
        None => Fires::NotBefore(from),
    }
}

/// What is worth a word about the pattern firing at `at`.
pub(super) fn remark(cron: &Cron, zone: &Zone, at: Timestamp) -> Option<Remark> {
    let second = in_calendar(at)?;
    let stretch = zone.stretch(second);
    let shown = second + stretch.offset;
    if !cron.matches(shown) {
        return Some(Remark::Shifted);
    }
    if shown < stretch.passed {
        return Some(Remark::SecondPass);
    }
    if stretch.end > LAST_SECOND {
        return None;
    }
    let after = zone.stretch(stretch.end);
    (shown >= after.start + after.offset).then_some(Remark::FirstPass)
}
