//! What an ended command means for its job: the exit code decides.

use super::{Ending, Finished};
use crate::failing::{EXECUTION_FAILED, OUTPUT_TOO_LARGE, result, told_by};
use mainspring_worker::{Failure, Json};

/// Exit code of a command whose input can never work (`EX_DATAERR`): no retry.
const EXIT_DATA_ERROR: i32 = 65;

/// How failures of a command are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Codes {
    /// By exit code or signal: `EXIT_3`, `SIGNAL_11`.
    ByExit,
    /// As every executor calls them, unless the command says on stdout how: an object with an
    /// `error_code`, and perhaps `message` and `retryable`.
    Common,
}

/// What an ended command means, if it was allowed `max` bytes of output.
///
/// # Errors
/// If it did not end well.
pub fn judge(finished: Finished, max: usize, codes: Codes) -> Result<Option<Json>, Failure> {
    let Finished { ending, output, complaint } = finished;
    let message = |otherwise: String| match complaint.is_empty() {
        true => otherwise,
        false => complaint.clone(),
    };
    let code = |by_exit: String| match codes {
        Codes::ByExit => by_exit,
        Codes::Common => EXECUTION_FAILED.to_owned(),
    };
    let failure = match ending {
        Ending::Exit(0) => return Ok(result(&output)),
        Ending::Flooded => {
            let message = format!("the command wrote more than {max} bytes");
            return Err(Failure::permanent(OUTPUT_TOO_LARGE, message));
        }
        // Told to stop: the loop knows why and reports accordingly.
        Ending::Stopped => return Err(Failure::release("the command was stopped")),
        Ending::Exit(EXIT_DATA_ERROR) => {
            let message = message("the input can never work".into());
            Failure::permanent(code(format!("EXIT_{EXIT_DATA_ERROR}")), message)
        }
        Ending::Exit(number) => {
            let message = message(format!("the command exited with {number}"));
            Failure::retryable(code(format!("EXIT_{number}")), message)
        }
        Ending::Signal(number) => {
            let message = message(format!("the command was ended by signal {number}"));
            Failure::retryable(code(format!("SIGNAL_{number}")), message)
        }
    };
    Err(match codes {
        Codes::ByExit => failure,
        Codes::Common => told_by(&output, failure),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(ending: Ending, complaint: &str, codes: Codes) -> Failure {
        let (output, complaint) = (Vec::new(), complaint.to_owned());
        judge(Finished { ending, output, complaint }, 9, codes).unwrap_err()
    }

    #[test]
    fn exit_codes_decide_about_the_next_try() {
        let failed = failure(Ending::Exit(3), "no luck", Codes::ByExit);
        assert_eq!(failed, Failure::retryable("EXIT_3", "no luck"));
        let failed = failure(Ending::Exit(1), "", Codes::ByExit);
        assert_eq!(failed.message, "the command exited with 1");
        assert!(!failure(Ending::Exit(65), "bad row", Codes::ByExit).retryable);
        assert_eq!(failure(Ending::Signal(11), "", Codes::ByExit).code, "SIGNAL_11");
        let flood = failure(Ending::Flooded, "", Codes::ByExit);
        assert_eq!((flood.code.as_str(), flood.retryable), (OUTPUT_TOO_LARGE, false));
    }

    #[test]
    fn common_codes_are_one_unless_the_command_says_more() {
        for ending in [Ending::Exit(3), Ending::Signal(9)] {
            assert_eq!(failure(ending, "", Codes::Common).code, EXECUTION_FAILED);
        }
        assert!(!failure(Ending::Exit(65), "", Codes::Common).retryable);
        let output = br#"{"error_code":"NO_PAPER"}"#.to_vec();
        let finished = Finished { ending: Ending::Exit(1), output, complaint: "why".into() };
        let told = judge(finished, 9, Codes::Common).unwrap_err();
        assert_eq!(told, Failure::retryable("NO_PAPER", "why"));
    }
}
