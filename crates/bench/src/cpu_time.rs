//! Processor time of processes, as Linux tells it: in steps of 10 ms, of threads that have ended
//! too.

use anyhow::{Context, bail};
use std::time::Duration;

/// One step.
const TICK_MS: u64 = 10;

/// What the process took so far.
pub(crate) fn taken(pid: u32) -> anyhow::Result<Duration> {
    Ok(Times::of(pid)?.own)
}

/// What a process and its children took so far, those that have ended among them.
pub(crate) fn taken_with_children(pid: u32) -> anyhow::Result<Duration> {
    let parent = Times::of(pid)?;
    let mut sum = parent.own + parent.ended_children;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(child) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        // One that ends meanwhile is counted by its parent the next time.
        match Times::of(child) {
            Ok(times) if times.parent == pid => sum += times.own,
            Ok(_) | Err(_) => {}
        }
    }
    Ok(sum)
}

struct Times {
    parent: u32,
    own: Duration,
    ended_children: Duration,
}

impl Times {
    fn of(pid: u32) -> anyhow::Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
        Self::read(&stat).with_context(|| format!("no times in {stat}"))
    }

    fn read(stat: &str) -> anyhow::Result<Self> {
        // The name, in parentheses, may hold spaces. Behind it: the state, the parent, and as the
        // 12th to 15th field user and system time, its own and those of children that have ended.
        let fields = stat.rsplit_once(')').map(|(_, rest)| rest).unwrap_or_default();
        let fields: Vec<u64> =
            fields.split_whitespace().skip(1).map(|field| field.parse().unwrap_or(0)).collect();
        let [parent, _, _, _, _, _, _, _, _, _, user, system, their_user, their_system, ..] =
            fields[..]
        else {
            bail!("too few fields")
        };
        let span = |ticks: u64| Duration::from_millis(ticks * TICK_MS);
        Ok(Times {
            parent: u32::try_from(parent)?,
            own: span(user + system),
            ended_children: span(their_user + their_system),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_behind_any_name() {
        let stat = "42 (a) b c) S 7 1 1 0 -1 4194560 10 0 0 0 3 4 50 60 20 0 1 0 100";
        let times = Times::read(stat).unwrap();
        assert_eq!((times.parent, times.own.as_millis()), (7, 70));
        assert_eq!(times.ended_children.as_millis(), 1_100);
        assert!(Times::read("42 (short) S 1 2").is_err());
    }

    #[test]
    fn this_process_has_a_time_and_its_parent_counts_it() {
        let (me, parent) = (std::process::id(), std::os::unix::process::parent_id());
        let mut sum = 0_u64;
        while taken(me).unwrap().is_zero() {
            sum = (0..1_000_000).fold(sum, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
        }
        assert!(taken_with_children(parent).unwrap() >= taken(me).unwrap(), "{sum}");
    }
}
