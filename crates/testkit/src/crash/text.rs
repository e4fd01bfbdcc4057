//! Stores as text that can be compared, and what differs.

use super::FAR;
use crate::drive;
use mainspring_store::Store;
use mainspring_store::conformance::dump;

/// Everything a store answers; of the moves only how many there were.
pub(super) fn text(store: &dyn Store) -> String {
    let all = drive::ready(dump(store, FAR)).expect("reads of a settled store work");
    let end = all.find("\nmoved ").unwrap_or(all.len());
    all[..end].lines().map(|line| to_the_second(line) + "\n").collect()
}

/// Whether the alarm of an entity stands in such a text.
pub(super) fn has_alarm(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("alarms [("))
}

/// The age of the oldest due job is promised to the second only.
fn to_the_second(line: &str) -> String {
    let Some(rest) = line.strip_prefix("counts ") else { return line.to_owned() };
    let (states, rest) = rest.split_once("] ").unwrap_or_default();
    let numbers: Vec<&str> = rest.split(' ').collect();
    let oldest = numbers.get(1).and_then(|text| text.get(..25)).unwrap_or("None");
    let others = numbers.get(2..).unwrap_or_default().join(" ");
    format!("counts {states} {} {oldest} {others}", numbers[0])
}

pub(super) fn difference(what: &str, wanted: &str, found: &str) -> String {
    let mut lines = vec![format!("{what} does not fit")];
    let (wanted, found): (Vec<_>, Vec<_>) = (wanted.lines().collect(), found.lines().collect());
    let short = |line: &str| line.replace("xxxx", "").chars().take(300).collect::<String>();
    let only = |these: &[&str], those: &[&str], mark: &str| -> Vec<String> {
        let missing = these.iter().filter(|line| !those.contains(line));
        missing.map(|line| format!("{mark} {}", short(line))).collect()
    };
    lines.extend(only(&wanted, &found, "-"));
    lines.extend(only(&found, &wanted, "+"));
    lines.join("\n")
}
