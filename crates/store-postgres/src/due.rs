//! What becomes due by time alone.

pub(crate) mod job_alarms;
