//! What tests that failed have said, kept for the end of the run: between them and the end lie
//! thousands of lines, and whoever reads a log from its end must find the reason there.

/// How many lines of one failed test are kept: the first say what was compared.
const LINES_MAX: usize = 30;

/// One failed test and its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// As libtest names it, `path::name`.
    pub(crate) test: String,
    pub(crate) words: Vec<String>,
}

/// Listens to libtest and keeps what stands between its two lines `failures:`.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    heard: Vec<Failure>,
    is_open: bool,
}

impl Failures {
    pub(crate) fn hear(&mut self, line: &str) {
        if line == "failures:" {
            self.is_open = !self.is_open;
        } else if line.starts_with("test result: ") {
            self.is_open = false;
        } else if !self.is_open || line.trim().is_empty() {
        } else if let Some(test) = heading(line) {
            self.heard.push(Failure { test: test.to_owned(), words: Vec::new() });
        } else if let Some(last) = self.heard.last_mut()
            && last.words.len() < LINES_MAX
        {
            last.words.push(line.to_owned());
        }
    }

    pub(crate) fn heard(&self) -> &[Failure] {
        &self.heard
    }
}

/// The test named by `---- path::name stdout ----`.
pub(crate) fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

#[cfg(test)]
mod tests {
    use super::{Failure, Failures, LINES_MAX};

    fn heard(text: &str) -> Vec<Failure> {
        let mut failures = Failures::default();
        text.lines().for_each(|line| failures.hear(line));
        failures.heard().to_vec()
    }

    #[test]
    fn the_words_of_failed_tests_are_kept_and_nobody_elses() {
        let text = "running 3 tests
successes:

---- a stdout ----
44 kill -9 cycles

successes:
    a

failures:

---- b stdout ----
left is not right

---- c stdout ----
no answer


failures:
    b
    c

test result: FAILED. 1 passed; 2 failed
successes:

---- d stdout ----
all well";
        let failure = |test: &str, words: &str| Failure {
            test: test.to_owned(),
            words: vec![words.to_owned()],
        };
        assert_eq!(heard(text), [failure("b", "left is not right"), failure("c", "no answer")]);
    }

    #[test]
    fn a_test_that_says_much_is_cut() {
        let text = format!("failures:\n---- a stdout ----\n{}", "word\n".repeat(LINES_MAX + 1));
        assert_eq!(heard(&text)[0].words.len(), LINES_MAX);
    }
}
