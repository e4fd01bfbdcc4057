//! Whether the database can be used.

pub(crate) mod log;
