//! The peers' table as pictures: one SVG for each workload, a bar for each system, ours marked.
//! Drawn by hand, because a bar is a rectangle; it follows the reader's light or dark mode by
//! itself.

use crate::report::{Row, number};
use anyhow::Context;
use std::fmt::Write;
use std::path::Path;

/// Where the pictures are, beside the file that shows them.
const FOLDER: &str = "charts";
const WIDTH: f64 = 760.0;
/// Where bars begin: names of systems stand before them.
const LEFT: f64 = 360.0;
/// What figures need behind the longest bar.
const RIGHT: f64 = 90.0;
const BAR: f64 = 20.0;
const STEP: f64 = 30.0;
const TOP: f64 = 46.0;
const STYLE: &str = "\
text{font:13px system-ui,sans-serif;fill:#1f2328}.t{font-weight:600;font-size:15px}\
.b{fill:#8c959f}.o{fill:#0969da}.w{stroke:#1f2328;stroke-width:1}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.b{fill:#6e7681}.o{fill:#4493f8}.w{stroke:#e6edf3}}";

/// Draws each workload of the table into the folder beside `page`.
pub(crate) fn write(page: &Path, rows: &[Row]) -> anyhow::Result<()> {
    let folder = page.parent().unwrap_or(Path::new(".")).join(FOLDER);
    std::fs::create_dir_all(&folder)?;
    for (name, title, bars) in groups(rows) {
        let path = folder.join(format!("peers-{name}.svg"));
        std::fs::write(&path, drawn(&title, &bars))
            .with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

/// The name of a picture's file, what it shows, and its bars: a system and its row each.
type Group<'a> = (String, String, Vec<(&'a str, &'a Row)>);

/// Rows of one workload: the name of its file, what it is, and its rows.
fn groups(rows: &[Row]) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for row in rows {
        let Some((what, system)) = row.what.split_once(": ") else { continue };
        let title = format!("{}: {what}, {}", row.id, row.unit);
        match groups.iter_mut().find(|(_, known, _)| *known == title) {
            Some((_, _, bars)) => bars.push((system, row)),
            None => {
                let end = what.rsplit_once(", ").map(|(_, end)| end).filter(|_| row.unit == "ms");
                let name = [Some(row.id), end].into_iter().flatten().collect::<Vec<_>>().join("-");
                groups.push((name.to_lowercase(), title, vec![(system, row)]));
            }
        }
    }
    groups
}

fn drawn(title: &str, bars: &[(&str, &Row)]) -> String {
    let longest = bars.iter().map(|(_, row)| most(row)).fold(f64::MIN_POSITIVE, f64::max);
    let height = TOP + STEP * bars.len() as f64;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{0}\"><style>{STYLE}</style><text class=\"t\" x=\"8\" y=\"24\">{0}</text>\n",
        escaped(title)
    );
    let wide = |figure: f64| (figure / longest * (WIDTH - LEFT - RIGHT)).max(1.0);
    for (nth, (system, row)) in bars.iter().enumerate() {
        let (y, width) = (TOP + STEP * nth as f64, wide(row.figure));
        let class = if system.starts_with("Mainspring") { "o" } else { "b" };
        let base = y + BAR * 0.72;
        let _ = writeln!(
            text,
            "<text x=\"{}\" y=\"{base:.1}\" text-anchor=\"end\">{}</text>\
             <rect class=\"{class}\" x=\"{LEFT}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{BAR}\"/>",
            LEFT - 8.0,
            escaped(system),
        );
        // From the least to the most of what was measured.
        if let Some([least, most]) = row.spread {
            let (from, to, mid) = (LEFT + wide(least), LEFT + wide(most), y + BAR / 2.0);
            let _ = writeln!(
                text,
                "<line class=\"w\" x1=\"{from:.1}\" y1=\"{mid:.1}\" x2=\"{to:.1}\" y2=\"{mid:.1}\"/>"
            );
        }
        let behind = LEFT + wide(most(row)) + 6.0;
        let _ =
            writeln!(text, "<text x=\"{behind:.1}\" y=\"{base:.1}\">{}</text>", number(row.figure));
    }
    text.push_str("</svg>\n");
    text
}

fn most(row: &Row) -> f64 {
    row.spread.map_or(row.figure, |[_, most]| most)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Target;

    fn row(id: &'static str, what: &str, figure: f64, unit: &'static str) -> Row {
        let spread = Some([figure / 2.0, figure * 2.0]);
        Row { id, what: what.into(), figure, spread, unit, beside: None, target: Target::Told }
    }

    #[test]
    fn each_workload_has_a_picture_with_a_bar_for_each_system() {
        let folder = tempfile::tempdir().unwrap();
        let rows = [
            row("W1", "submit, 1000 a call: Mainspring <memory>", 1_000.0, "jobs/s"),
            row("W1", "submit, 1000 a call: other", 250.0, "jobs/s"),
            row("W3", "submit to handler at 200/s, p50: other", 1.5, "ms"),
            row("W3", "submit to handler at 200/s, p99: other", 4.5, "ms"),
        ];
        write(&folder.path().join("page.md"), &rows).unwrap();
        let drawn =
            |name: &str| std::fs::read_to_string(folder.path().join(FOLDER).join(name)).unwrap();
        let first = drawn("peers-w1.svg");
        assert_eq!(first.matches("<rect").count(), 2);
        assert!(
            first.contains("Mainspring &lt;memory&gt;") && first.contains(">1,000<"),
            "{first}"
        );
        // The whole width is the most that was measured: 2,000 of the first.
        let bar = (WIDTH - LEFT - RIGHT) / 2.0;
        assert!(first.contains(&format!("width=\"{bar:.1}\"")), "{first}");
        assert!(drawn("peers-w3-p50.svg").contains(">1.50<"));
        assert!(drawn("peers-w3-p99.svg").contains(">4.50<"));
    }
}
