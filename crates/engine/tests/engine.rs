//! The engine alone, on a store that fails when it is told to and a clock that only the test moves.
//! Start with `engine/bench.rs`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "engine/bench.rs"]
mod bench;
#[path = "engine/busy.rs"]
mod busy;
#[path = "engine/deliveries.rs"]
mod deliveries;
#[path = "engine/draft.rs"]
mod draft;
#[path = "engine/flow.rs"]
mod flow;
#[path = "engine/many.rs"]
mod many;
#[path = "engine/pulls.rs"]
mod pulls;
#[path = "engine/reaper.rs"]
mod reaper;
#[path = "engine/schedules.rs"]
mod schedules;
#[path = "engine/scripted.rs"]
mod scripted;
#[path = "engine/settling.rs"]
mod settling;
#[path = "engine/waiting.rs"]
mod waiting;
