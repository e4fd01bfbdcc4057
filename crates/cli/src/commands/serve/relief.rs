//! A thread of the runtime in reserve. Small commits are synced on the thread that reads requests,
//! which is quick as long as the disk is; one that stalls must not keep health checks waiting. So
//! the runtime has a thread more than it needs, which sleeps inside this task and wakes when a sync
//! takes long: then it does everything that the other one would have done.

use mainspring_engine::{Engine, Reserve};
use std::time::Duration;

/// How long a sync may take before somebody else does the work meanwhile.
const PATIENCE: Duration = Duration::from_millis(20);

/// The largest commit that the thread which reads requests syncs by itself. Larger ones go to the
/// journal's thread, and the next one is prepared meanwhile.
pub(super) const SETTLED_HERE_MAX: usize = 8;

/// Until the engine stops.
pub(super) fn start(engine: Engine) {
    tokio::spawn(async move {
        // Blocks one thread of the runtime, which is what it is there for.
        loop {
            match engine.wait_until_held_up(PATIENCE) {
                Reserve::Over => return,
                Reserve::Quiet => {}
                Reserve::HeldUp => {
                    while engine.is_held_up() {
                        tokio::time::sleep(PATIENCE).await;
                    }
                }
            }
            // What this thread has in hand meanwhile is done before it sleeps again.
            tokio::task::yield_now().await;
        }
    });
}
