//! Tables that fit the terminal. A line of the table is a line of the screen: what is too long is
//! cut, the widest column first, and never an id, because an id that is cut is of no use. If that
//! does not suffice, the last columns are left out. Where nobody looks, nothing is cut to fit.

use console::{Style, measure_text_width, truncate_str};

/// Between two columns.
const GAP: usize = 2;
/// No column is made narrower than this, or than its head: what is left of it would say nothing.
const NARROWEST: usize = 8;

/// Lays a table out. `width` is the terminal's, if there is one; with colours, the words of states
/// have theirs.
pub(super) fn lay_out(
    columns: &[&str],
    rows: &[Vec<String>],
    width: Option<usize>,
    has_colours: bool,
) -> String {
    let heads: Vec<String> = columns.iter().map(|column| column.to_uppercase()).collect();
    let widths = widths(&heads, rows, width);
    let mut lines = Vec::with_capacity(rows.len() + 1);
    let dim = Style::new().force_styling(has_colours).dim();
    lines.push(line(&heads, &widths, |_, text| dim.apply_to(text).to_string()));
    for row in rows {
        lines.push(line(row, &widths, |nth, text| {
            let is_state =
                matches!(columns[nth], "status" | "state" | "verdict" | "to" | "severity");
            match style_of(row[nth].as_str()).filter(|_| is_state && has_colours) {
                Some(style) => style.force_styling(true).apply_to(text).to_string(),
                None => text.to_owned(),
            }
        }));
    }
    lines.join("\n")
}

/// How wide each column that is shown is: all of them, or the first ones if not all have room.
fn widths(heads: &[String], rows: &[Vec<String>], most: Option<usize>) -> Vec<usize> {
    let cells = |nth: usize| rows.iter().filter_map(move |row| row.get(nth));
    let natural = |nth: usize| {
        let all = cells(nth).chain([&heads[nth]]);
        all.map(|cell| measure_text_width(cell)).max().unwrap_or(0)
    };
    let natural: Vec<usize> = (0..heads.len()).map(natural).collect();
    let Some(most) = most else { return natural };
    let least = |nth: usize| match nth == 0 || cells(nth).any(|cell| is_id(cell)) {
        true => natural[nth],
        false => natural[nth].min(NARROWEST.max(measure_text_width(&heads[nth]))),
    };
    let least: Vec<usize> = (0..heads.len()).map(least).collect();
    let fits = |widths: &[usize]| {
        let gaps = GAP * widths.len().saturating_sub(1);
        widths.iter().sum::<usize>() + gaps <= most
    };
    let shown = (1..=heads.len()).rev().find(|count| fits(&least[..*count])).unwrap_or(1);
    let mut widths = natural[..shown].to_vec();
    // The widest gives way first, so that no column pays alone.
    while !fits(&widths) {
        let can_shrink = (0..shown).filter(|nth| widths[*nth] > least[*nth]);
        let Some(widest) = can_shrink.max_by_key(|nth| widths[*nth]) else { break };
        widths[widest] -= 1;
    }
    widths
}

fn line(cells: &[String], widths: &[usize], paint: impl Fn(usize, &str) -> String) -> String {
    let mut out = String::new();
    for (nth, width) in widths.iter().enumerate() {
        let cell = cells.get(nth).map_or("", String::as_str);
        let cell = match is_id(cell) || nth == 0 {
            true => cell.into(),
            false => truncate_str(cell, *width, "…"),
        };
        let pad = width.saturating_sub(measure_text_width(&cell));
        out.push_str(&paint(nth, &cell));
        if nth + 1 < widths.len() {
            out.extend(std::iter::repeat_n(' ', pad + GAP));
        }
    }
    out.truncate(out.trim_end().len());
    out
}

/// Whether a text is an id as the server makes them: a few letters, and 26 that mean it.
fn is_id(text: &str) -> bool {
    text.rsplit_once('_').is_some_and(|(kind, rest)| {
        !kind.is_empty()
            && kind.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            && rest.len() == 26
            && rest.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
    })
}

/// The colour of a state.
pub(super) fn style_of(word: &str) -> Option<Style> {
    let style = Style::new();
    Some(match word {
        "succeeded" | "ok" | "completed" | "cleared" | "healthy" => style.green(),
        "failed" | "failure" | "dlq_pending" | "dlq_recorded" | "p1" | "failing" => style.red(),
        "retrying" | "paused" | "warning" | "raised" | "needs_input" => style.yellow(),
        "running" => style.cyan(),
        "cancelled" | "stopped" | "discarded" => style.dim(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "job_01k5zq8y3v0000000000000abc";

    fn rows() -> Vec<Vec<String>> {
        let row = |text: &str| vec![ID.to_owned(), "a_rather_long_type".into(), text.to_owned()];
        vec![row("short"), row(&"long ".repeat(30)), row("漢字漢字漢字漢字漢字漢字漢字漢字漢字")]
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_id_is_cut() {
        for width in 31..200 {
            let shown = lay_out(&["job", "type", "error"], &rows(), Some(width), false);
            assert_eq!(shown.lines().count(), 4, "{shown}");
            for line in shown.lines() {
                assert!(measure_text_width(line) <= width, "{width}: {line}");
            }
            assert_eq!(shown.matches(ID).count(), 3, "{width}");
        }
        // Nor is one that stands elsewhere; what stands beside it makes room.
        let inside = [vec!["a".repeat(9), "b".repeat(60), ID.to_owned(), "c".repeat(60)]];
        let shown = lay_out(&["x", "y", "job", "z"], &inside, Some(60), false);
        assert!(shown.contains(ID) && shown.lines().all(|line| measure_text_width(line) <= 60));
        // An id that is wider than the terminal is shown all the same.
        assert!(lay_out(&["job", "type", "error"], &rows(), Some(10), false).contains(ID));
    }

    #[test]
    fn a_column_less_rather_than_columns_that_say_nothing() {
        let row = |state: &str, queue: &str| {
            [ID, "mainspring.alert", state, "1/4", "3m 22s ago", "EXIT_3", queue]
                .map(str::to_owned)
                .to_vec()
        };
        let rows = [row("succeeded", "default"), row("retrying", "default")];
        let heads = ["job", "type", "status", "try", "created", "error", "queue"];
        let shown = lay_out(&heads, &rows, Some(80), false);
        for whole in ["succeeded", "retrying", "STATUS", "CREATED", "3m 22s ago", "EXIT_3"] {
            assert!(shown.contains(whole), "{whole}:\n{shown}");
        }
        assert!(!shown.contains("QUEUE") && shown.contains("mainspri"), "{shown}");
    }

    #[test]
    fn nothing_is_cut_to_fit_where_nobody_looks() {
        let shown = lay_out(&["job", "type", "error"], &rows(), None, false);
        assert!(shown.contains(&"long ".repeat(29)) && !shown.contains('…'), "{shown}");
    }

    #[test]
    fn ids_are_known_by_their_form() {
        assert!(is_id(ID) && is_id("dlq_01k5zq8y3v0000000000000abc"));
        for other in ["job_x", "_01k5zq8y3v0000000000000abc", "job_01K5ZQ8Y3V0000000000000ABC", ""]
        {
            assert!(!is_id(other), "{other}");
        }
    }

    #[test]
    fn colours_come_with_states_only_and_only_if_wanted() {
        let rows = [vec!["a".to_owned(), "failed".into(), "failed".into()]];
        let shown = lay_out(&["job", "status", "error"], &rows, Some(80), true);
        assert_eq!(shown.matches("\u{1b}[31m").count(), 1, "{shown:?}");
        assert!(!lay_out(&["job", "status", "error"], &rows, Some(80), false).contains('\u{1b}'));
    }
}
