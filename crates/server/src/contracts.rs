//! The contracts: each translates its own words into commands and receipts back into its words.

pub(crate) mod native;
