//! Instants for people: how long ago, or in how long. `--exact`, and every reader that is no
//! terminal, gets the instant itself.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether instants are wanted as they are.
static IS_EXACT: AtomicBool = AtomicBool::new(false);

/// From now on, instants are shown as they are.
pub(crate) fn be_exact() {
    IS_EXACT.store(true, Ordering::Relaxed);
}

/// An instant as it is to be shown.
pub(crate) fn when(at: mainspring_sdk::api::Time) -> String {
    match IS_EXACT.load(Ordering::Relaxed) || !std::io::stdout().is_terminal() {
        true => at.to_string(),
        false => relative(at.0, jiff::Timestamp::now().as_microsecond()),
    }
}

/// An instant as it is to be shown in a list that goes on: the time of the day in UTC. What is told
/// as "now" would be wrong a moment later.
pub(crate) fn clock(at: mainspring_sdk::api::Time) -> String {
    let whole = at.to_string();
    match IS_EXACT.load(Ordering::Relaxed) || !std::io::stdout().is_terminal() {
        true => whole,
        false => whole.get(11..19).map_or_else(|| whole.clone(), |time| format!("{time}Z")),
    }
}

/// `at` as seen from `now`, both in microseconds.
fn relative(at: i64, now: i64) -> String {
    let apart = (i128::from(at) - i128::from(now)) / 1_000_000;
    let text = match apart.unsigned_abs() {
        0 => return "now".to_owned(),
        seconds @ 1..60 => format!("{seconds}s"),
        seconds @ 60..3_600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        seconds @ 3_600..86_400 => format!("{}h {:02}m", seconds / 3_600, seconds / 60 % 60),
        seconds => format!("{}d {:02}h", seconds / 86_400, seconds / 3_600 % 24),
    };
    if apart > 0 { format!("in {text}") } else { format!("{text} ago") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_told_from_here() {
        let second = 1_000_000;
        for (apart, told) in [
            (0, "now"),
            (-1, "1s ago"),
            (59, "in 59s"),
            (-61, "1m 01s ago"),
            (3_600, "in 1h 00m"),
            (-90_061, "1d 01h ago"),
            (86_400 * 400, "in 400d 00h"),
        ] {
            assert_eq!(relative(apart * second, 0), told);
        }
        assert_eq!(relative(i64::MAX, i64::MIN).split(' ').next(), Some("in"));
    }
}
