//! Text tables of the rules; the full grid is in `tests/lifecycle.rs`.
