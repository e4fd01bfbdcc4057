//! The table of figures: on the screen, as JSON, and between the markers of `docs/benchmarks.md`.

use anyhow::{Context, bail};
use indicatif::HumanCount;
use serde::Serialize;
use std::path::Path;

/// What a figure is compared with, and how.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// The ratio must be at least this.
    AtLeast(f64),
    /// The ratio must be at most this.
    AtMost(f64),
    /// Told, not judged.
    Told,
}

/// One line of the table.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    pub(crate) id: &'static str,
    pub(crate) what: String,
    pub(crate) figure: f64,
    /// From the least to the most of what it is the median of.
    pub(crate) spread: Option<[f64; 2]>,
    pub(crate) unit: &'static str,
    /// The yardstick and its figure; `None` where it could not be measured.
    pub(crate) beside: Option<(String, f64)>,
    pub(crate) target: Target,
}

impl Row {
    /// The figure divided by its yardstick.
    pub fn ratio(&self) -> Option<f64> {
        let (_, beside) = self.beside.as_ref()?;
        (*beside > 0.0).then(|| self.figure / beside)
    }

    /// Whether the target is met; `None` if it cannot be said.
    pub fn is_met(&self) -> Option<bool> {
        let ratio = self.ratio()?;
        match self.target {
            Target::AtLeast(bound) => Some(ratio >= bound),
            Target::AtMost(bound) => Some(ratio <= bound),
            Target::Told => None,
        }
    }

    fn figure_and_spread(&self) -> String {
        let figure = format!("{} {}", number(self.figure), self.unit);
        match self.spread {
            Some([least, most]) => format!("{figure} ({} to {})", number(least), number(most)),
            None => figure,
        }
    }

    /// The cells of the table.
    pub fn cells(&self) -> Vec<String> {
        let beside = match &self.beside {
            Some((name, figure)) => format!("{name}: {}", number(*figure)),
            None => "-".into(),
        };
        let target = match self.target {
            Target::AtLeast(bound) => format!(">= {bound}"),
            Target::AtMost(bound) => format!("<= {bound}"),
            Target::Told => "-".into(),
        };
        let met = match self.is_met() {
            Some(true) => "met",
            Some(false) => "NOT MET",
            None => "-",
        };
        vec![
            self.id.to_owned(),
            self.what.clone(),
            self.figure_and_spread(),
            beside,
            self.ratio().map_or("-".into(), |ratio| format!("{ratio:.2}")),
            target,
            met.to_owned(),
        ]
    }
}

/// The heads of the columns.
pub const COLUMNS: [&str; 7] = ["#", "workload", "figure", "beside", "ratio", "target", "verdict"];

pub(crate) fn number(figure: f64) -> String {
    match figure >= 1_000.0 {
        true => HumanCount(figure.round() as u64).to_string(),
        false => format!("{figure:.2}"),
    }
}

/// The part of the file that belongs to one suite, between its markers.
#[derive(Debug)]
pub(crate) struct Section {
    begin: &'static str,
    end: &'static str,
    /// Put before the part where the file does not have it yet.
    heading: &'static str,
}

/// E1 to E8.
pub(crate) const JOURNAL: Section =
    Section { begin: "<!-- bench:begin -->", end: "<!-- bench:end -->", heading: "## Figures" };

/// P1 to P8.
pub(crate) const POSTGRES: Section = Section {
    begin: "<!-- bench-postgres:begin -->",
    end: "<!-- bench-postgres:end -->",
    heading: "## Figures of the PostgreSQL store",
};

/// N1 to N12 on the memory store.
pub(crate) const NEIGHBOURS: Section = Section {
    begin: "<!-- bench-neighbours:begin -->",
    end: "<!-- bench-neighbours:end -->",
    heading: "## Neighbours of a hostile client, memory store",
};

/// N1 to N12 on the PostgreSQL store.
pub(crate) const NEIGHBOURS_POSTGRES: Section = Section {
    begin: "<!-- bench-neighbours-postgres:begin -->",
    end: "<!-- bench-neighbours-postgres:end -->",
    heading: "## Neighbours of a hostile client, PostgreSQL store",
};

/// W1 to W3 of other systems.
pub(crate) const PEERS: Section = Section {
    begin: "<!-- bench-peers:begin -->",
    end: "<!-- bench-peers:end -->",
    heading: "## Peers",
};

/// S1 and S2 on the memory store.
pub(crate) const SCHEDULES: Section = Section {
    begin: "<!-- bench-schedules:begin -->",
    end: "<!-- bench-schedules:end -->",
    heading: "## Schedules, memory store",
};

/// S1 and S2 on the PostgreSQL store.
pub(crate) const SCHEDULES_POSTGRES: Section = Section {
    begin: "<!-- bench-schedules-postgres:begin -->",
    end: "<!-- bench-schedules-postgres:end -->",
    heading: "## Schedules, PostgreSQL store",
};

/// L1 and L2 on the memory store.
pub(crate) const LIMITS: Section = Section {
    begin: "<!-- bench-limits:begin -->",
    end: "<!-- bench-limits:end -->",
    heading: "## Limits, memory store",
};

/// L1 and L2 on the PostgreSQL store.
pub(crate) const LIMITS_POSTGRES: Section = Section {
    begin: "<!-- bench-limits-postgres:begin -->",
    end: "<!-- bench-limits-postgres:end -->",
    heading: "## Limits, PostgreSQL store",
};

/// Puts the notes and the table into their section of the file; both are made if need be.
pub(crate) fn write(
    path: &Path,
    section: &Section,
    notes: &[String],
    rows: &[Row],
) -> anyhow::Result<()> {
    let old = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            "# Benchmarks\n\nMade by `mainspring bench --write`.\n".to_owned()
        }
        Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::write(path, replaced(&old, section, &markdown(notes, rows))?)
        .with_context(|| format!("writing {}", path.display()))
}

fn replaced(old: &str, section: &Section, text: &str) -> anyhow::Result<String> {
    let Section { begin, end, heading } = section;
    let Some((before, rest)) = old.split_once(begin) else {
        return Ok(format!("{}\n\n{heading}\n\n{begin}\n{text}{end}\n", old.trim_end()));
    };
    let Some((_, after)) = rest.split_once(end) else {
        bail!("the file has {begin}, but no {end}")
    };
    Ok(format!("{before}{begin}\n{text}{end}{after}"))
}

fn markdown(notes: &[String], rows: &[Row]) -> String {
    let mut text = String::new();
    for note in notes {
        text.push_str(&format!("{note}\n\n"));
    }
    text.push_str(&format!("| {} |\n|{}\n", COLUMNS.join(" | "), "---|".repeat(COLUMNS.len())));
    for row in rows {
        text.push_str(&format!("| {} |\n", row.cells().join(" | ")));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figure: f64, target: Target) -> Row {
        let beside = Some(("peer".to_owned(), 50.0));
        Row { id: "E1", what: "x".into(), figure, spread: None, unit: "/s", beside, target }
    }

    #[test]
    fn ratios_are_judged_in_the_right_direction() {
        assert_eq!(row(200.0, Target::AtLeast(4.0)).is_met(), Some(true));
        assert_eq!(row(199.0, Target::AtLeast(4.0)).is_met(), Some(false));
        assert_eq!(row(50.0, Target::AtMost(1.0)).is_met(), Some(true));
        assert_eq!(row(50.0, Target::Told).is_met(), None);
        assert_eq!(Row { beside: None, ..row(1.0, Target::AtMost(1.0)) }.is_met(), None);
    }

    #[test]
    fn only_the_part_between_the_markers_changes() {
        let Section { begin, end, heading } = POSTGRES;
        let table = markdown(&["note".to_owned()], &[row(123_456.0, Target::Told)]);
        let old = format!("before\n{begin}\nold\n{end}\nafter\n");
        let new = replaced(&old, &POSTGRES, &table).unwrap();
        assert!(new.starts_with("before\n") && new.ends_with("\nafter\n"));
        assert!(new.contains("123,456 /s") && new.contains("note\n\n| #") && !new.contains("old"));
        let first = replaced("no markers\n", &POSTGRES, &table).unwrap();
        assert!(first.starts_with(&format!("no markers\n\n{heading}\n\n{begin}\n")));
        assert_eq!(replaced(&first, &POSTGRES, &table).unwrap(), first);
        assert!(replaced(begin, &POSTGRES, "").is_err());
    }
}
