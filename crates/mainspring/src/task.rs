//! What a job is about, as a type of yours.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The payload of a job, and with it what kind of job it is and what it gives back.
///
/// Fields may be added later with `#[serde(default)]`: jobs that wait were written before.
pub trait Task: Serialize + DeserializeOwned + Send + Sync + 'static {
    /// The job type, as it is called everywhere else: letters, digits, `_`, `.` and `-`.
    const TYPE: &'static str;
    /// What a handler answers.
    type Output: Serialize + DeserializeOwned + Send + 'static;
}
