//! The memory store and its journal.
