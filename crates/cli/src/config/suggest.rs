//! "Did you mean": the nearest known word, if one is near enough to be meant.

/// The known word nearest to `word`, at most a third of its letters away.
pub(crate) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let reach = (word.chars().count() / 3).max(1);
    known
        .iter()
        .map(|candidate| (distance(word, candidate), *candidate))
        .filter(|(far, candidate)| *far <= reach.max(candidate.len() / 4) && *candidate != word)
        .min_by_key(|(far, _)| *far)
        .map(|(_, candidate)| candidate)
}

/// `; did you mean "x"?`, or nothing.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    nearest(word, known).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}

/// How many letters must be added, dropped, changed or swapped with their neighbour.
fn distance(from: &str, to: &str) -> usize {
    let (from, to): (Vec<char>, Vec<char>) = (from.chars().collect(), to.chars().collect());
    let mut rows = vec![vec![0usize; to.len() + 1]; from.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    rows[0] = (0..=to.len()).collect();
    for i in 1..=from.len() {
        for j in 1..=to.len() {
            let change = usize::from(from[i - 1] != to[j - 1]);
            let mut best = (rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            best = best.min(rows[i - 1][j - 1] + change);
            if i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[from.len()][to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_find_their_word_and_strangers_do_not() {
        let known = ["listen", "internal_routes", "contracts"];
        assert_eq!(nearest("lisen", &known), Some("listen"));
        assert_eq!(nearest("lsiten", &known), Some("listen"));
        assert_eq!(nearest("internal-route", &known), Some("internal_routes"));
        assert_eq!(nearest("contract", &known), Some("contracts"));
        assert_eq!(nearest("password", &known), None);
        assert_eq!(hint("lisen", &known), "; did you mean \"listen\"?");
        assert_eq!(hint("zzz", &known), "");
    }
}
