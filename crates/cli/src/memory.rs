//! How much memory there is for this process: the machine's, or less where a container says so.

use std::path::Path;

/// Assumed where the system does not say.
const UNKNOWN_BYTES: u64 = 4 << 30;

/// The memory this process may use.
pub(crate) fn bytes() -> u64 {
    let read = |path: &str| std::fs::read_to_string(Path::new(path)).unwrap_or_default();
    least(
        &read("/proc/meminfo"),
        &[&read("/sys/fs/cgroup/memory.max"), &read("/sys/fs/cgroup/memory/memory.limit_in_bytes")],
    )
}

fn least(meminfo: &str, limits: &[&str]) -> u64 {
    let machine =
        meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:")).and_then(|line| {
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kib.checked_mul(1024)
        });
    let limits = limits.iter().filter_map(|text| text.trim().parse::<u64>().ok());
    machine.into_iter().chain(limits).filter(|bytes| *bytes > 0).min().unwrap_or(UNKNOWN_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_counts() {
        let machine = "MemTotal:       16384 kB\nMemFree: 1 kB\n";
        assert_eq!(least(machine, &["max\n", ""]), 16 << 20);
        assert_eq!(least(machine, &["1048576\n"]), 1 << 20);
        assert_eq!(least("", &["max"]), UNKNOWN_BYTES);
        // The old interface writes a number beyond any machine for "no limit".
        assert_eq!(least(machine, &["9223372036854771712"]), 16 << 20);
    }
}
