//! What goes wrong in a world: each kind of fault is on or off for a seed, so that every mixture
//! occurs.

use super::server::Server;
use crate::rng::Rng;
use mainspring_store_memory::disk::sim::Faults;
use mainspring_store_memory::disk::{Disk, SimDisk};

/// The faults of one seed.
#[derive(Debug)]
pub(super) struct Plan {
    /// Lives of the server before the quiet one.
    pub(super) lives: u64,
    pub(super) recovery_crashes: bool,
    pub(super) has_write_errors: bool,
    pub(super) has_sync_errors: bool,
    pub(super) has_full_disks: bool,
    pub(super) jumps_forward: bool,
    pub(super) jumps_back: bool,
    /// Longest simulated delay of a sync, in milliseconds.
    pub(super) sync_ms_max: u64,
    /// How often the keeper runs after a sync, in percent.
    pub(super) tidy_percent: u64,
    pub(super) bad_luck: BadLuck,
    /// How long finished jobs are kept, if not for ever.
    pub(super) keep_secs: Option<u64>,
    /// How often an answer is lost, in percent.
    pub(super) lost_percent: u64,
    /// How often a worker that waits for jobs goes away, in percent.
    pub(super) vanish_percent: u64,
}

/// How many of a thousand commits come to grief, and how.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BadLuck {
    pub(super) again: u64,
    pub(super) busy: u64,
    pub(super) failed: u64,
    pub(super) unknown: u64,
}

impl Plan {
    pub(super) fn new(rng: &mut Rng) -> Self {
        let mut plan = Self::drawn(rng);
        // A commit that fails must not take the news of a clock that was set forward with it. As
        // long as it does, the two are not tried together.
        if plan.jumps_forward {
            let again = plan.bad_luck.again;
            plan.bad_luck = BadLuck { again, ..BadLuck::default() };
        }
        plan
    }

    fn drawn(rng: &mut Rng) -> Self {
        Plan {
            lives: rng.within(1, 3),
            recovery_crashes: rng.chance(35),
            has_write_errors: rng.chance(20),
            has_sync_errors: rng.chance(20),
            has_full_disks: rng.chance(25),
            jumps_forward: rng.chance(35),
            jumps_back: rng.chance(35),
            sync_ms_max: *rng.pick(&[1, 10, 60, 300]),
            tidy_percent: *rng.pick(&[0, 5, 30]),
            bad_luck: BadLuck {
                again: *rng.pick(&[0, 0, 30, 200]),
                busy: *rng.pick(&[0, 0, 10, 80]),
                failed: *rng.pick(&[0, 0, 0, 10, 40]),
                unknown: *rng.pick(&[0, 0, 0, 10, 40]),
            },
            keep_secs: rng.chance(15).then(|| rng.within(10, 60)),
            lost_percent: *rng.pick(&[0, 0, 2, 10]),
            vanish_percent: *rng.pick(&[0, 0, 5, 25]),
        }
    }
}

/// Makes trouble until the server ends.
pub(super) async fn nemesis(server: Server, disk: SimDisk, plan: Hazards) {
    loop {
        server.pass(1_000 + server.world.below(6_000)).await;
        let mut kinds = Vec::new();
        let wanted = [
            (plan.has_write_errors, "write_error"),
            (plan.has_sync_errors, "sync_error"),
            (plan.has_full_disks, "disk_full"),
            (plan.jumps_forward, "clock_forward"),
            (plan.jumps_back, "clock_back"),
        ];
        kinds.extend(wanted.iter().filter(|(is_on, _)| *is_on).map(|(_, kind)| *kind));
        if kinds.is_empty() {
            return;
        }
        let kind = kinds[server.world.below(kinds.len() as u64) as usize];
        strike(&server, &disk, kind).await;
    }
}

/// Which faults one life may see.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hazards {
    pub(super) has_write_errors: bool,
    pub(super) has_sync_errors: bool,
    pub(super) has_full_disks: bool,
    pub(super) jumps_forward: bool,
    pub(super) jumps_back: bool,
}

async fn strike(server: &Server, disk: &SimDisk, kind: &str) {
    server.world.fault(kind);
    let nth = 1 + server.world.below(3);
    if matches!(kind, "write_error" | "sync_error") {
        server.world.lock().has_bad_disk = true;
    }
    match kind {
        "write_error" => {
            disk.set_faults(Faults { fail_write: Some(nth), ..Faults::default() });
        }
        "sync_error" => {
            disk.set_faults(Faults { fail_sync: Some(nth), ..Faults::default() });
        }
        "disk_full" => {
            let used = u64::MAX - disk.free_bytes().unwrap_or(u64::MAX);
            let quota_bytes = Some(used + server.world.below(4_000));
            disk.set_faults(Faults { quota_bytes, ..Faults::default() });
            server.pass(2_000 + server.world.below(5_000)).await;
            disk.set_faults(Faults::default());
            server.world.fault("disk_healed");
        }
        "clock_forward" => {
            let micros = 1_000_000 + server.world.below(120_000_000);
            server.world.time.jump(micros as i64);
        }
        _ => {
            let micros = 1_000_000 + server.world.below(60_000_000);
            server.world.time.jump(-(micros as i64));
        }
    }
}
