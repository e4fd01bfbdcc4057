//! Reads what `cargo test` prints: which binary runs, each test's outcome, the sums.
//!
//! It only listens. A test binary that starts and never prints its sum has died; that counts as
//! one failure, so that a crash can never look like a smaller green run.

/// How one test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    Failed,
    Ignored,
}

/// One test of one binary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TestRun {
    /// The binary's name without path and hash, or `doc-tests`.
    pub(crate) binary: String,
    /// The test's path inside the binary, such as `memory::g05_retries_stop`.
    pub(crate) path: String,
    pub(crate) outcome: Outcome,
}

/// Everything heard so far.
#[derive(Debug, Default)]
pub(crate) struct Log {
    pub(crate) runs: Vec<TestRun>,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// Binaries that stopped before they printed a sum.
    pub(crate) died: Vec<String>,
    binary: String,
    /// Index into `runs` of the binary's first test, while it has not printed its sum.
    open_since: Option<usize>,
    /// A test whose name was printed and whose outcome stands on a later line.
    unfinished: Option<String>,
}

impl Log {
    /// Takes in one line without its line end.
    pub(crate) fn hear(&mut self, line: &str) {
        if let Some(binary) = started_binary(line) {
            self.close();
            self.binary = binary;
        } else if is_opening(line) {
            self.close();
            self.open_since = Some(self.runs.len());
        } else if let Some((passed, failed)) = sums(line) {
            self.passed += passed;
            self.failed += failed;
            self.open_since = None;
            self.unfinished = None;
        } else if let Some((path, end)) = named_test(line) {
            match outcome(end) {
                Some(outcome) => self.record(path.to_owned(), outcome),
                None => self.unfinished = Some(path.to_owned()),
            }
        } else if let Some(outcome) = outcome(line)
            && let Some(path) = self.unfinished.take()
        {
            self.record(path, outcome);
        }
    }

    /// These failed beside others and passed alone.
    pub(crate) fn passed_again(&mut self, tests: &[String]) {
        for run in &mut self.runs {
            if run.outcome == Outcome::Failed && tests.contains(&run.path) {
                run.outcome = Outcome::Passed;
                self.failed -= 1;
                self.passed += 1;
            }
        }
    }

    /// Says that no more lines follow.
    pub(crate) fn close(&mut self) {
        self.unfinished = None;
        let Some(first) = self.open_since.take() else { return };
        for run in &self.runs[first..] {
            match run.outcome {
                Outcome::Passed => self.passed += 1,
                Outcome::Failed => self.failed += 1,
                Outcome::Ignored => {}
            }
        }
        self.failed += 1;
        self.died.push(self.binary.clone());
    }

    fn record(&mut self, path: String, outcome: Outcome) {
        self.unfinished = None;
        self.runs.push(TestRun { binary: self.binary.clone(), path, outcome });
    }
}

/// The binary named by cargo's `Running tests/x.rs (target/debug/deps/x-0a1b)` or `Doc-tests x`.
fn started_binary(line: &str) -> Option<String> {
    let announced = line.trim_start();
    if announced.len() == line.len() {
        return None;
    }
    if announced.starts_with("Doc-tests ") {
        return Some("doc-tests".to_owned());
    }
    let (_, path) = announced.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('(')?;
    let file = path.rsplit(['/', '\\']).next()?;
    let name = file.rsplit_once('-').map_or(file, |(name, _hash)| name);
    Some(name.to_owned())
}

/// `running 12 tests`
fn is_opening(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| rest.strip_suffix(" tests").or_else(|| rest.strip_suffix(" test")))
        .is_some_and(|count| count.parse::<u64>().is_ok())
}

/// Passed and failed of `test result: ok. 12 passed; 0 failed; 0 ignored; ...`.
fn sums(line: &str) -> Option<(u64, u64)> {
    let (_verdict, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |word: &str| {
        let part = counts.split("; ").find_map(|part| part.trim().strip_suffix(word))?;
        part.trim().parse::<u64>().ok()
    };
    Some((count("passed")?, count("failed")?))
}

/// Path and end of `test path::name ... ok`.
fn named_test(line: &str) -> Option<(&str, &str)> {
    let (path, end) = line.strip_prefix("test ")?.split_once(" ... ")?;
    Some((path.trim_end_matches(" - should panic"), end))
}

fn outcome(text: &str) -> Option<Outcome> {
    let word = text.split([',', ' ']).next()?;
    match word {
        "ok" if text == "ok" || text.starts_with("ok <") => Some(Outcome::Passed),
        "FAILED" => Some(Outcome::Failed),
        "ignored" => Some(Outcome::Ignored),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
