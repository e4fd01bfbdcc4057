//! Lines over the last hour, drawn as SVG. Only numbers of our own go in; colours come from the
//! style sheet, so that light and dark are one drawing.

use super::parts::Html;
use super::pulse::Course;
use mainspring_kernel::Timestamp;
use std::fmt::Write;
use std::time::Duration;

const WIDTH: f64 = 600.0;
const HEIGHT: f64 = 96.0;
/// What a chart may span, in minutes: as little as there is to show, and an hour at most.
const SPANS: [u64; 4] = [5, 15, 30, 60];
/// A line breaks where nothing was seen for this long.
const GAP: Duration = Duration::from_secs(45);

/// How many minutes a chart of this course spans.
pub(super) fn minutes(course: &Course, now: Timestamp) -> u64 {
    let age = course.points.first().map_or(Duration::ZERO, |(first, _)| now.since(*first));
    let fits = |minutes: &u64| Duration::from_secs(minutes * 60) >= age;
    SPANS.into_iter().find(fits).unwrap_or(SPANS[3])
}

/// A chart of one or two lines over the last minutes until `now`; `title` is read out.
pub(super) fn lines(courses: &[&Course], (minutes, now): (u64, Timestamp), title: &str) -> Html {
    let whole = Duration::from_secs(minutes * 60);
    let most = courses.iter().map(|course| course.most()).fold(0.0, f64::max);
    let scale = if most > 0.0 { most * 1.15 } else { 1.0 };
    let start = now - whole;
    let place = |at: Timestamp, value: f64| {
        let x = WIDTH * at.since(start).as_secs_f64() / whole.as_secs_f64();
        (x.clamp(0.0, WIDTH), HEIGHT - 2.0 - (HEIGHT - 6.0) * value / scale)
    };
    let mut svg = format!(
        "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" \
         role=\"img\" aria-label=\"{}\">",
        escaped(title)
    );
    // Writing to a string cannot fail, here and below.
    for quarter in 1..4 {
        let x = WIDTH * f64::from(quarter) / 4.0;
        let _ = write!(svg, "<path class=\"grid\" d=\"M{x} 0V{HEIGHT}\"/>");
    }
    let _ = write!(svg, "<path class=\"axis\" d=\"M0 {0}H{WIDTH}\"/>", HEIGHT - 1.0);
    for (index, course) in courses.iter().enumerate() {
        for stretch in stretches(course, start) {
            let points: Vec<(f64, f64)> =
                stretch.iter().map(|(at, value)| place(*at, *value)).collect();
            let (Some(first), Some(last)) = (points.first(), points.last()) else { continue };
            let mut path = format!("M{:.1} {:.1}", first.0, first.1);
            if points.len() == 1 {
                let _ = write!(path, "h2");
            }
            for (x, y) in points.iter().skip(1) {
                let _ = write!(path, "L{x:.1} {y:.1}");
            }
            if index == 0 {
                let (from, to) = (first.0, last.0);
                let _ = write!(
                    svg,
                    "<path class=\"area\" d=\"{path}L{to:.1} {HEIGHT}L{from:.1} {HEIGHT}Z\"/>"
                );
            }
            let _ = write!(svg, "<path class=\"line line-{index}\" d=\"{path}\"/>");
        }
    }
    svg.push_str("</svg>");
    Html(svg)
}

/// The points since `start`, apart where nothing was seen.
fn stretches(course: &Course, start: Timestamp) -> Vec<Vec<(Timestamp, f64)>> {
    let mut stretches: Vec<Vec<(Timestamp, f64)>> = Vec::new();
    for point in course.points.iter().filter(|(at, _)| *at >= start) {
        match stretches.last_mut() {
            Some(stretch) if stretch.last().is_some_and(|last| point.0.since(last.0) < GAP) => {
                stretch.push(*point);
            }
            _ => stretches.push(vec![*point]),
        }
    }
    stretches
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(points: &[(i64, f64)]) -> Course {
        let points = points.iter().map(|(secs, value)| (Timestamp(secs * 1_000_000), *value));
        Course { points: points.collect() }
    }

    #[test]
    fn lines_break_where_nothing_was_seen() {
        let now = Timestamp(3_600_000_000);
        let seen = course(&[(10, 1.0), (20, 2.0), (1_000, 1.0)]);
        assert_eq!(minutes(&seen, now), 60);
        assert_eq!(minutes(&course(&[(3_590, 1.0)]), now), 5);
        assert_eq!(minutes(&course(&[(2_000, 1.0)]), now), 30);
        let svg = lines(&[&seen], (60, now), "a \"b\"").0;
        assert_eq!(svg.matches("class=\"line line-0\"").count(), 2, "{svg}");
        assert!(svg.contains("aria-label=\"a &quot;b&quot;\""), "{svg}");
        let empty = lines(&[&Course::default()], (5, now), "").0;
        assert!(!empty.contains("class=\"line"), "{empty}");
        assert!(!empty.contains("NaN") && !svg.contains("NaN"));
    }
}
