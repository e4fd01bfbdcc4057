//! Shows what test binaries print, with the words of tests that passed and without noise.
//!
//! Some tests count: kills, acknowledged changes, tries lost. libtest hides such lines unless asked
//! with `--show-output`; then it also repeats every name, and that repetition is left out here.

use crate::failures::heading;

/// Asks libtest for the words of tests that passed.
pub(crate) const SHOW_OUTPUT: [&str; 2] = ["--", "--show-output"];

/// What part of libtest's output we are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Plain,
    /// What tests that passed have printed.
    Words,
    /// Their names once more.
    Names,
}

/// Turns lines as they come into lines to show.
#[derive(Debug, Default)]
pub(crate) struct Echo {
    part: Part,
}

impl Echo {
    /// The line as it is shown, if it is.
    pub(crate) fn shown(&mut self, line: &str) -> Option<String> {
        if line == "successes:" {
            self.part = if self.part == Part::Words { Part::Names } else { Part::Words };
            return None;
        }
        match self.part {
            Part::Plain => Some(line.to_owned()),
            Part::Words | Part::Names if line.trim().is_empty() => None,
            Part::Words => Some(match heading(line) {
                Some(test) => format!("{test} says:"),
                None => format!("    {line}"),
            }),
            Part::Names if line.starts_with("    ") => None,
            Part::Names => {
                self.part = Part::Plain;
                Some(line.to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Echo;

    fn shown(text: &str) -> String {
        let mut echo = Echo::default();
        text.lines().filter_map(|line| echo.shown(line)).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn words_of_passed_tests_are_shown_once_and_their_names_are_not_repeated() {
        let text = "running 3 tests
test a ... ok
test b ... ok
test c ... FAILED

successes:

---- a stdout ----
44 kill -9 cycles
  0 violations


successes:
    a
    b

failures:

---- c stdout ----
left is not right


failures:
    c

test result: FAILED. 2 passed; 1 failed";
        let expected = "running 3 tests
test a ... ok
test b ... ok
test c ... FAILED

a says:
    44 kill -9 cycles
      0 violations
failures:

---- c stdout ----
left is not right


failures:
    c

test result: FAILED. 2 passed; 1 failed";
        assert_eq!(shown(text), expected);
    }

    #[test]
    fn the_next_binary_starts_anew() {
        let text = "\nsuccesses:\n\nsuccesses:\n    a\n\ntest result: ok.\n\n    Running b";
        assert_eq!(shown(text), "\ntest result: ok.\n\n    Running b");
    }
}
