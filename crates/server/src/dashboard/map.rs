//! The lifecycle as a map: states with how many jobs are in them, moves with how often they are
//! made. Drawn twice, wide and tall; the style sheet shows the one that fits.

use super::parts::{self, Html};
use super::pulse::Rates;
use super::tally::Tally;
use super::words::{self, Lang};
use mainspring_kernel::StateName;
use std::fmt::Write;

/// Where states stand, by their middle, and how moves are drawn between them.
struct Plan {
    class: &'static str,
    size: (u32, u32),
    /// Half of the width and of the height of a state.
    half: (i32, i32),
    states: [(StateName, i32, i32); 8],
    /// A path, and where its number stands.
    moves: &'static [(&'static str, Option<Told>)],
}

/// Which number, where, and on which side of that.
type Told = (Rate, i32, i32, &'static str);

/// Which number stands at a move.
#[derive(Clone, Copy)]
enum Rate {
    Submitted,
    Claims,
    Retries,
    Succeeded,
    Failed,
    Cancelled,
}

const WIDE: Plan = Plan {
    class: "map map-wide",
    size: (1040, 250),
    half: (75, 32),
    states: [
        (StateName::Queued, 160, 56),
        (StateName::Running, 420, 56),
        (StateName::Retrying, 420, 204),
        (StateName::DlqPending, 600, 204),
        (StateName::DlqRecorded, 770, 204),
        (StateName::Succeeded, 940, 56),
        (StateName::Failed, 940, 204),
        (StateName::Cancelled, 160, 204),
    ],
    moves: &[
        ("M20 56H80", Some((Rate::Submitted, 50, 44, "middle"))),
        ("M235 56H340", Some((Rate::Claims, 288, 44, "middle"))),
        ("M495 56H860", Some((Rate::Succeeded, 680, 44, "middle"))),
        ("M404 88V167", Some((Rate::Retries, 396, 134, "end"))),
        ("M436 172V93", None),
        ("M482 88C510 130 550 130 582 167", Some((Rate::Failed, 566, 134, "start"))),
        ("M495 204H520", None),
        ("M675 204H690", None),
        ("M845 204H860", None),
        ("M160 88V167", Some((Rate::Cancelled, 168, 134, "start"))),
        ("M357 88C330 140 280 160 239 186", None),
        ("M345 204H240", None),
    ],
};

const TALL: Plan = Plan {
    class: "map map-tall",
    size: (360, 560),
    half: (70, 30),
    states: [
        (StateName::Queued, 86, 74),
        (StateName::Running, 86, 206),
        (StateName::Retrying, 274, 206),
        (StateName::DlqPending, 274, 330),
        (StateName::DlqRecorded, 274, 424),
        (StateName::Succeeded, 86, 330),
        (StateName::Failed, 274, 518),
        (StateName::Cancelled, 274, 74),
    ],
    moves: &[
        ("M86 8V39", Some((Rate::Submitted, 96, 26, "start"))),
        ("M86 104V171", Some((Rate::Claims, 78, 144, "end"))),
        ("M86 236V295", Some((Rate::Succeeded, 78, 272, "end"))),
        ("M156 198H199", Some((Rate::Retries, 180, 168, "middle"))),
        ("M204 216H161", None),
        ("M130 236C150 270 200 280 228 297", Some((Rate::Failed, 188, 262, "start"))),
        ("M274 236V295", None),
        ("M274 360V389", None),
        ("M274 454V483", None),
        ("M156 74H199", Some((Rate::Cancelled, 180, 64, "middle"))),
        ("M120 176C140 150 200 140 240 109", None),
        ("M290 176V109", None),
    ],
};

/// The map, wide and tall.
pub(super) fn drawn(tally: &Tally, rates: Option<&Rates>, lang: Lang) -> Html {
    let mut svg = String::with_capacity(16 << 10);
    for plan in [&WIDE, &TALL] {
        draw(&mut svg, plan, tally, rates, lang);
    }
    Html(svg)
}

fn draw(svg: &mut String, plan: &Plan, tally: &Tally, rates: Option<&Rates>, lang: Lang) {
    let (width, height) = plan.size;
    let name = lang.of_two(["Lifecycle of jobs", "作业的生命周期"]);
    // Writing to a string cannot fail, here and below.
    let _ = write!(
        svg,
        "<svg class=\"{}\" viewBox=\"0 0 {width} {height}\" role=\"group\" aria-label=\"{name}\">",
        plan.class
    );
    for (path, at) in plan.moves {
        let per_second = at.zip(rates).map(|((rate, ..), rates)| of(rate, rates));
        let is_on = if per_second.is_some_and(|rate| rate > 0.0) { " is-on" } else { "" };
        let _ = write!(svg, "<path class=\"move{is_on}\" d=\"{path}\"/>");
        let _ = write!(svg, "<path class=\"head{is_on}\" d=\"{}\"/>", head(path));
        if let (Some((_, x, y, anchor)), Some(rate)) = (at, per_second) {
            let told = parts::rate(rate);
            let _ = write!(
                svg,
                "<text class=\"rate{is_on}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">\
                 {told}</text>"
            );
        }
    }
    let (across, down) = plan.half;
    for (state, x, y) in plan.states {
        let (code, label) = (state.as_str(), words::state(lang, state));
        let (left, top, wide, high) = (x - across, y - down, 2 * across, 2 * down);
        let count = tally.text(state);
        let _ = write!(
            svg,
            "<a class=\"node s-{code}\" href=\"/ui/jobs?status={code}\"><rect x=\"{left}\" \
             y=\"{top}\" width=\"{wide}\" height=\"{high}\" rx=\"10\"/><rect class=\"mark\" \
             x=\"{left}\" y=\"{}\" width=\"4\" height=\"{}\" rx=\"2\"/><text class=\"number\" x=\"{x}\" y=\"{}\" \
             text-anchor=\"middle\">{count}</text><text class=\"label\" x=\"{x}\" y=\"{}\" \
             text-anchor=\"middle\">{label}</text></a>",
            top + 10,
            high - 20,
            y + 1,
            y + 20,
        );
    }
    svg.push_str("</svg>");
}

/// A small triangle at the end of a path, in the direction of its last part.
fn head(path: &str) -> String {
    let mut numbers = Vec::new();
    let mut last_letter = 'M';
    for letter in path.chars().filter(char::is_ascii_alphabetic) {
        last_letter = letter;
    }
    for part in path.split(|letter: char| !(letter.is_ascii_digit() || letter == '-')) {
        numbers.extend(part.parse::<f64>().ok());
    }
    let ((fx, fy), (tx, ty)) = match (last_letter, numbers.as_slice()) {
        ('H', [x, y, to]) => ((*x, *y), (*to, *y)),
        ('V', [x, y, to]) => ((*x, *y), (*x, *to)),
        ('C', [.., cx, cy, x, y]) => ((*cx, *cy), (*x, *y)),
        _ => return String::new(),
    };
    let long = ((tx - fx).powi(2) + (ty - fy).powi(2)).sqrt().max(1.0);
    let (dx, dy) = ((tx - fx) / long, (ty - fy) / long);
    format!(
        "M{:.1} {:.1}L{:.1} {:.1}L{:.1} {:.1}Z",
        tx + 5.0 * dx,
        ty + 5.0 * dy,
        tx - 3.0 * dx - 4.0 * dy,
        ty - 3.0 * dy + 4.0 * dx,
        tx - 3.0 * dx + 4.0 * dy,
        ty - 3.0 * dy - 4.0 * dx
    )
}

fn of(rate: Rate, rates: &Rates) -> f64 {
    match rate {
        Rate::Submitted => rates.submitted,
        Rate::Claims => rates.claims,
        Rate::Retries => rates.retries,
        Rate::Succeeded => rates.succeeded,
        Rate::Failed => rates.failed,
        Rate::Cancelled => rates.cancelled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_is_on_both_maps_and_every_move_has_a_head() {
        let svg = drawn(&Tally::default(), Some(&Rates::default()), Lang::En).0;
        for state in StateName::ALL {
            let link = format!("href=\"/ui/jobs?status={state}\"");
            assert_eq!(svg.matches(&link).count(), 2, "{state}");
        }
        for plan in [&WIDE, &TALL] {
            for (path, _) in plan.moves {
                assert!(head(path).starts_with('M'), "{path}");
            }
        }
        assert_eq!(svg.matches("class=\"rate\"").count(), 12);
        assert!(!drawn(&Tally::default(), None, Lang::Zh).0.contains("class=\"rate"));
    }
}
