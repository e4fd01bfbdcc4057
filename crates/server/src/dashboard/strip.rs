//! Firings on a calendar: a row for each day that has some, a mark at the time of day that the
//! clocks of the schedule's zone show. Drawn as SVG from numbers of our own; colours come from the
//! style sheet.

use super::parts::{Html, escaped};
use super::words::Lang;
use mainspring_api::schedule::PreviewItem;
use std::fmt::Write;

/// Rows that are drawn.
const DAYS_SHOWN: usize = 14;
const LABEL: f64 = 104.0;
const WIDTH: f64 = 532.0;
const ROW: f64 = 24.0;
const FOOT: f64 = 20.0;

/// A firing as it is drawn: its day, its second of the day, and whether there is a word about it.
#[derive(Debug, PartialEq, Eq)]
struct Dot<'a> {
    day: &'a str,
    second: u32,
    is_noted: bool,
}

/// The firings as rows of days; nothing if there are none.
pub(super) fn days(items: &[PreviewItem], name: &str, lang: Lang) -> Html {
    let dots: Vec<Dot<'_>> = items.iter().filter_map(dot).collect();
    let mut days: Vec<&str> = dots.iter().map(|dot| dot.day).collect();
    days.dedup();
    days.truncate(DAYS_SHOWN);
    if days.is_empty() {
        return Html::default();
    }
    let height = ROW * days.len() as f64 + FOOT;
    let mut svg = format!(
        "<svg class=\"days\" viewBox=\"0 0 {:.0} {height:.0}\" role=\"img\" aria-label=\"{}\">",
        LABEL + WIDTH + 4.0,
        escaped(name)
    );
    // Writing to a string cannot fail, here and below.
    for (index, day) in days.iter().enumerate() {
        let (y, weekday) = (ROW * index as f64, weekday(day));
        let rest = if weekday.is_some_and(|day| day >= 5) { " is-rest" } else { "" };
        let label = weekday.map_or("", |day| lang.of_two(WEEKDAYS[day]));
        let _ = write!(
            svg,
            "<text x=\"0\" y=\"{:.0}\">{} {label}<title>{}</title></text><rect \
             class=\"day{rest}\" x=\"{LABEL}\" y=\"{:.0}\" width=\"{WIDTH}\" \
             height=\"{:.0}\" rx=\"4\"/>",
            y + 17.0,
            // The year goes without saying; it is there for whoever points at the day.
            escaped(day.get(5..).unwrap_or(day)),
            escaped(day),
            y + 2.0,
            ROW - 4.0
        );
    }
    for hour in [0, 6, 12, 18, 24] {
        let x = LABEL + WIDTH * f64::from(hour) / 24.0;
        let anchor = if hour == 24 {
            "end"
        } else if hour == 0 {
            "start"
        } else {
            "middle"
        };
        let foot = height - 4.0;
        let line = height - FOOT;
        let _ = write!(
            svg,
            "<path class=\"tick\" d=\"M{x:.0} 0V{line:.0}\"/><text x=\"{x:.0}\" y=\"{foot:.0}\" \
             text-anchor=\"{anchor}\">{hour:02}:00</text>"
        );
    }
    for dot in &dots {
        let Some(row) = days.iter().position(|day| *day == dot.day) else { break };
        let x = LABEL + WIDTH * f64::from(dot.second) / 86_400.0;
        let y = ROW * row as f64 + 2.0;
        let class = if dot.is_noted { "fire noted" } else { "fire" };
        let _ = write!(
            svg,
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{y:.0}\" width=\"5\" height=\"{:.0}\" \
             rx=\"2\"/>",
            x.min(LABEL + WIDTH - 5.0),
            ROW - 4.0
        );
    }
    svg.push_str("</svg>");
    Html(svg)
}

const WEEKDAYS: [[&str; 2]; 7] = [
    ["Mon", "周一"],
    ["Tue", "周二"],
    ["Wed", "周三"],
    ["Thu", "周四"],
    ["Fri", "周五"],
    ["Sat", "周六"],
    ["Sun", "周日"],
];

/// Reads what the clocks show, such as `2026-11-18T09:00:00+08:00`.
fn dot(item: &PreviewItem) -> Option<Dot<'_>> {
    let (day, clock) = item.local_time.split_once('T')?;
    let mut parts = clock.get(..8)?.split(':').map(|part| part.parse::<u32>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    let second = hours * 3_600 + minutes * 60 + seconds;
    Some(Dot { day, second, is_noted: item.note.is_some() })
}

/// The day of the week, Monday first.
fn weekday(day: &str) -> Option<usize> {
    let date: jiff::civil::Date = day.parse().ok()?;
    usize::try_from(date.weekday().to_monday_zero_offset()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_api::Time;

    fn item(local: &str) -> PreviewItem {
        PreviewItem { fire_at: Time(0), local_time: local.to_owned(), note: None }
    }

    #[test]
    fn a_day_is_a_row_and_a_firing_a_mark() {
        let items = [
            item("2026-11-18T09:00:00+08:00"),
            item("2026-11-18T21:00:00+08:00"),
            item("2026-11-21T09:00:00+08:00"),
        ];
        let svg = days(&items, "a \"b\"", Lang::En).0;
        assert_eq!(svg.matches("class=\"day").count(), 3, "{svg}");
        assert_eq!(svg.matches("class=\"day is-rest").count(), 1, "Saturday: {svg}");
        assert_eq!(svg.matches("class=\"fire").count(), 3, "{svg}");
        assert!(
            svg.contains(">11-18 Wed<title>2026-11-18<") && svg.contains("a &quot;b&quot;"),
            "{svg}"
        );
        assert_eq!(days(&[item("nonsense")], "", Lang::En).0, "");
    }

    #[test]
    fn only_so_many_days_are_drawn() {
        let items: Vec<_> =
            (1..=28).map(|day| item(&format!("2026-02-{day:02}T00:00:00+00:00"))).collect();
        let svg = days(&items, "", Lang::Zh).0;
        assert_eq!(svg.matches("class=\"fire").count(), DAYS_SHOWN);
        assert!(svg.contains("周日"), "{svg}");
    }
}
