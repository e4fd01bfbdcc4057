//! Places on the clock: IANA time zones from the table that is compiled in. The machine's own zone
//! files are never read, so that two servers cannot disagree.

use super::{Date, FIRST_SECOND, LAST_SECOND};
use crate::time::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use std::fmt;

/// Further from UTC no clock has ever been: twenty-six hours hold with room to spare.
pub(super) const OFFSET_SECS_MAX: i64 = 26 * 3600;
/// Two instants this far apart are shown in the same order by all clocks.
pub(super) const APART_SECS: i64 = 2 * OFFSET_SECS_MAX + 1;

/// A time zone.
#[derive(Clone)]
pub struct Zone(TimeZone);

impl Zone {
    /// Coordinated universal time.
    pub const UTC: Zone = Zone(TimeZone::UTC);

    /// The zone of that IANA name, such as `Europe/Berlin`, whatever the case of its letters.
    pub fn parse(name: &str) -> Option<Zone> {
        let zone = TimeZoneDatabase::bundled().get(name).ok()?;
        (!zone.is_unknown() && zone.iana_name().is_some()).then_some(Zone(zone))
    }

    /// Its IANA name, as IANA writes it.
    pub fn name(&self) -> &str {
        self.0.iana_name().expect("a zone is only made from its name")
    }

    /// What its clocks show at `at`, with the offset, as RFC 3339 has it; whole seconds. `None`
    /// outside of the calendar.
    pub fn local_text(&self, at: Timestamp) -> Option<String> {
        let second = in_calendar(at)?;
        let local = self.0.to_datetime(instant(second));
        let offset = self.offset(second);
        // RFC 3339 has no seconds in offsets; the few zones that had them had them before 1973.
        let (sign, minutes) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
        Some(format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{sign}{:02}:{:02}",
            local.year(),
            local.month(),
            local.day(),
            local.hour(),
            local.minute(),
            local.second(),
            minutes / 60,
            minutes % 60
        ))
    }

    /// The date that its clocks show at `at`; `None` outside of the calendar.
    pub fn date(&self, at: Timestamp) -> Option<Date> {
        let second = in_calendar(at)?;
        let days = (second + self.offset(second)).div_euclid(86_400);
        Date::from_days(i32::try_from(days).ok()?)
    }

    /// The first instant from `at` on at which its clocks show a date after `last`.
    pub(super) fn first_instant_beyond(&self, at: Timestamp, last: Date) -> Option<Timestamp> {
        let midnight = (i64::from(last.days()) + 1) * 86_400;
        // No clock shows that midnight earlier than this.
        let mut second = in_calendar(at)?.max(midnight - OFFSET_SECS_MAX);
        while second <= LAST_SECOND {
            let stretch = self.stretch(second);
            let shown = (midnight - stretch.offset).max(second);
            if shown < stretch.end {
                return (shown <= LAST_SECOND).then_some(Timestamp(shown * 1_000_000));
            }
            second = stretch.end;
        }
        None
    }

    /// Seconds by which its clocks are ahead of UTC at a second of the calendar.
    pub(super) fn offset(&self, second: i64) -> i64 {
        i64::from(self.0.to_offset(instant(second)).seconds())
    }

    /// The stretch without a change of the clocks that this second of the calendar is in.
    pub(super) fn stretch(&self, second: i64) -> Stretch {
        let changes = self.0.following(instant(second)).next();
        let end = changes.map_or(i64::MAX, |change| change.timestamp().as_second());
        let end = end.min(LAST_SECOND + 1);
        let offset = self.offset(second);
        let mut stretch = Stretch { start: i64::MIN, end, offset, passed: i64::MIN };
        for change in self.0.preceding(instant(second + 1)) {
            let at = change.timestamp().as_second();
            if stretch.start == i64::MIN {
                stretch.start = at;
            }
            // Earlier changes can not have taken the clocks further than they are now.
            if at < stretch.start - APART_SECS || at <= FIRST_SECOND {
                break;
            }
            stretch.passed = stretch.passed.max(at + self.offset(at - 1));
        }
        stretch
    }
}

/// A stretch of time in which the clocks of a zone are not changed. Its ends are seconds since
/// 1970; `passed` is a time of the clocks, counted in the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stretch {
    /// The first second.
    pub(super) start: i64,
    /// The second after the last; at most the one after the calendar's last.
    pub(super) end: i64,
    /// Seconds that the clocks are ahead of UTC.
    pub(super) offset: i64,
    /// Before the stretch, the clocks had shown everything up to this, or jumped over it. From
    /// here to what they show at its start is a gap; if that is earlier, it is shown again.
    pub(super) passed: i64,
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name())
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The second that `at` is in, if it is one of the calendar.
pub(super) fn in_calendar(at: Timestamp) -> Option<i64> {
    let second = at.0.div_euclid(1_000_000);
    (FIRST_SECOND..=LAST_SECOND).contains(&second).then_some(second)
}

fn instant(second: i64) -> jiff::Timestamp {
    // The scale of jiff ends where ours does, and starts ten thousand years earlier.
    jiff::Timestamp::from_second(second.min(LAST_SECOND)).unwrap_or(jiff::Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_microsecond())
    }

    #[test]
    fn names_are_those_of_iana() {
        assert_eq!(Zone::parse("europe/BERLIN").unwrap().name(), "Europe/Berlin");
        assert_eq!(Zone::parse("Asia/Calcutta").unwrap().name(), "Asia/Calcutta");
        assert_eq!(Zone::parse("utc"), Some(Zone::UTC));
        assert_ne!(Zone::parse("Europe/Berlin"), Zone::parse("Europe/Paris"));
        for bad in ["", "Etc/Unknown", "Mars/Base", "+02:00", "../etc/passwd", "CET-1CEST", "UTC "]
        {
            assert_eq!(Zone::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn local_times_carry_their_offset() {
        let nepal = Zone::parse("Asia/Kathmandu").unwrap();
        let shown = nepal.local_text(at("2026-11-16T21:00:00.999Z")).unwrap();
        assert_eq!(shown, "2026-11-17T02:45:00+05:45");
        let york = Zone::parse("America/New_York").unwrap();
        let shown = york.local_text(at("2026-11-16T04:59:59Z")).unwrap();
        assert_eq!(shown, "2026-11-15T23:59:59-05:00");
        assert_eq!(york.local_text(Timestamp::MAX), None);
        assert_eq!(york.date(at("2026-11-16T04:59:59Z")), Date::parse("2026-11-15"));
    }

    #[test]
    fn a_stretch_knows_what_the_clocks_have_shown() {
        let berlin = Zone::parse("Europe/Berlin").unwrap();
        let spring = at("2026-03-29T01:00:00Z").0 / 1_000_000;
        let summer = berlin.stretch(spring);
        assert_eq!((summer.start, summer.offset), (spring, 7200));
        assert_eq!(summer.passed, spring + 3600, "02:00 to 03:00 is a gap");
        let autumn = berlin.stretch(summer.end);
        assert_eq!(autumn.passed, autumn.start + 7200, "02:00 to 03:00 is shown again");
        assert_eq!(berlin.stretch(summer.end - 1), summer);
        assert_eq!(Zone::UTC.stretch(0).end, LAST_SECOND + 1);
    }
}
