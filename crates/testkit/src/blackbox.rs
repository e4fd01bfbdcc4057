//! Driving the real binary from outside, as a user would: start it, talk HTTP to it, run its
//! commands, kill it. Nothing here knows the insides of the server, and nothing here retries a
//! request: what the server answered is what the test sees.

pub mod caller;
pub mod command;
pub mod http;
pub mod nodes;
pub mod server;
pub mod stores;
pub mod visitor;

pub use caller::Caller;
pub use command::{Ran, run};
pub use http::{Request, Response};
pub use nodes::Nodes;
pub use server::{Options, Server, unpack};
pub use stores::{PerStore, Store};
pub use visitor::Visitor;

use std::time::Duration;

/// How long [`eventually`] tries at least.
const PATIENCE: Duration = Duration::from_secs(30);
const STEP: Duration = Duration::from_millis(10);

/// Asks again and again until `probe` has an answer, for at least half a minute.
///
/// # Panics
/// If there is none in time; `what` says what was waited for.
pub fn eventually<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    eventually_within(PATIENCE, what, probe)
}

/// The same for what may take longer by its own rules.
///
/// # Panics
/// If there is no answer in time; `what` says what was waited for.
pub fn eventually_within<T>(
    patience: Duration,
    what: &str,
    mut probe: impl FnMut() -> Option<T>,
) -> T {
    for _ in 0..patience.as_millis() / STEP.as_millis() {
        if let Some(found) = probe() {
            return found;
        }
        std::thread::sleep(STEP); // paced: the server has no way to tell a test to look again
    }
    panic!("waited in vain: {what}");
}
