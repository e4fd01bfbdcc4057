//! The rows of the peers' table: what each system does with one workload, in turn, and which part
//! that is of what we do on the store of the same sort. How durable each is stands in its row.

use super::npm::Peer;
use super::redis::{self, Redis};
use super::{BULLMQ, GRAPHILE_WORKER, Home, Kind, PG_BOSS, RESTATE};
use crate::beanstalk::{self, Beanstalkd};
use crate::latency::{self, Latency};
use crate::postgres::stand::{Plan, Stand, Store, settle};
use crate::report::{Row, Target as Goal};
use crate::stopwatch::Figure;
use crate::suite::beside;
use crate::workload::{self as load, BATCH, Target};
use anyhow::{Context, bail};

/// The workloads by name.
pub(crate) const NAMES: [&str; 5] = ["W1", "W1S", "W2", "W2S", "W3"];
/// Connections and workers of the workloads that go one by one.
const SINGLES: usize = 16;

/// The systems, installed and in the order of the table.
pub(crate) struct Table<'a> {
    stand: &'a Stand,
    systems: Vec<System<'a>>,
}

struct System<'a> {
    /// With what it keeps a job in before it says that it has it.
    name: String,
    way: Way<'a>,
    /// The part of the jobs that it gets: a slow system would take all day.
    share: usize,
}

enum Way<'a> {
    Ours(Store),
    Beanstalkd,
    Npm(&'a Kind, Peer),
}

/// One figure, or two of a latency; nothing where a system has no way to do it.
enum Taken {
    Rate(f64),
    Latency(Latency),
    Nothing,
}

impl<'a> Table<'a> {
    /// Installs what is to be had. What is not, is said, and has no row.
    pub(crate) fn new(stand: &'a Stand) -> anyhow::Result<Self> {
        let ours = |store: Store, name: &str| System {
            name: name.to_owned(),
            way: Way::Ours(store),
            share: 1,
        };
        let mut systems = vec![
            ours(Store::Memory, "Mainspring, memory (journal synced)"),
            ours(Store::Postgres, "Mainspring, PostgreSQL (synchronous commit)"),
        ];
        match beanstalk::is_present() {
            true => systems.push(System {
                name: "beanstalkd -f0 (log synced)".to_owned(),
                way: Way::Beanstalkd,
                share: 10,
            }),
            false => eprintln!("beanstalkd is not installed, so it is not beside us"),
        }
        let Plan { peer_folder, directory, has_peer, .. } = &stand.plan;
        let kinds: [(&'static Kind, usize); 4] =
            [(&GRAPHILE_WORKER, 2), (&PG_BOSS, 4), (&BULLMQ, 10), (&RESTATE, 20)];
        for (kind, share) in kinds.into_iter().filter(|_| *has_peer) {
            if kind.home == Home::Redis && !redis::is_present() {
                eprintln!("redis-server is not installed, so {} is not beside us", kind.name);
                continue;
            }
            match Peer::install(kind, peer_folder.as_deref(), directory) {
                Ok(Some(peer)) => {
                    let kept = match kind.home {
                        Home::Database => "PostgreSQL, synchronous commit",
                        Home::Redis => "Redis, appendfsync always",
                        Home::Folder => "one node, its own settings",
                    };
                    let name = format!("{} ({kept})", peer.name);
                    systems.push(System { name, way: Way::Npm(kind, peer), share });
                }
                Ok(None) => {}
                Err(error) => eprintln!("{} is not beside us: {error:#}", kind.name),
            }
        }
        Ok(Table { stand, systems })
    }

    /// Runs one workload on every system, round by round.
    pub(crate) fn run(&self, name: &str) -> anyhow::Result<Vec<Row>> {
        let mut taken: Vec<Vec<Taken>> = self.systems.iter().map(|_| Vec::new()).collect();
        for _ in 0..self.stand.plan.runs {
            for (system, figures) in self.systems.iter().zip(&mut taken) {
                let figure = self.take(name, system);
                figures.push(figure.with_context(|| format!("{name} of {}", system.name))?);
            }
        }
        if name == "W3" {
            let pick = |one: &Taken, pick: fn(&Latency) -> f64| match one {
                Taken::Latency(latency) => Some(pick(latency)),
                Taken::Rate(_) | Taken::Nothing => None,
            };
            let p50 = self.rows("W3", "submit to handler at 200/s, p50", "ms", &taken, |one| {
                pick(one, |latency| latency.p50_ms)
            });
            let p99 = self.rows("W3", "submit to handler at 200/s, p99", "ms", &taken, |one| {
                pick(one, |latency| latency.p99_ms)
            });
            return Ok([p50, p99].concat());
        }
        let (id, what) = match name {
            "W1" => ("W1", "submit, 1000 a call"),
            "W1S" => ("W1s", "submit, one a call, 16 at a time"),
            "W2" => ("W2", "drain, in batches"),
            "W2S" => ("W2s", "drain, one by one"),
            _ => bail!("there is no workload {name:?}"),
        };
        Ok(self.rows(id, what, "jobs/s", &taken, |one| match one {
            Taken::Rate(rate) => Some(*rate),
            Taken::Latency(_) | Taken::Nothing => None,
        }))
    }

    fn rows(
        &self,
        id: &'static str,
        what: &str,
        unit: &'static str,
        taken: &[Vec<Taken>],
        pick: impl Fn(&Taken) -> Option<f64>,
    ) -> Vec<Row> {
        let figures: Vec<Vec<f64>> =
            taken.iter().map(|figures| figures.iter().filter_map(&pick).collect()).collect();
        let ours = |store: Store| {
            let mine = self.systems.iter().zip(&figures).find(|(system, _)| system.is_ours(store));
            mine.and_then(|(system, figures)| beside(&system.name, Figure::of(figures.clone())))
        };
        let had = self.systems.iter().zip(&figures).filter(|(_, figures)| !figures.is_empty());
        had.map(|(system, figures)| {
            let figure = Figure::of(figures.clone());
            Row {
                id,
                what: format!("{what}: {}", system.name),
                figure: figure.median,
                spread: figure.spread(),
                unit,
                beside: system.rival().and_then(ours),
                target: Goal::Told,
            }
        })
        .collect()
    }

    fn take(&self, name: &str, system: &System<'_>) -> anyhow::Result<Taken> {
        let is_single = name.ends_with('S');
        let jobs = self.stand.plan.jobs / if is_single { 5 } else { 1 } / system.share;
        let jobs = jobs / BATCH * BATCH;
        let span = self.stand.plan.span;
        let stamps = (span.as_secs_f64() * f64::from(latency::RATE)) as usize;
        match &system.way {
            Way::Ours(store) => self.stand.on_fresh_node_of(*store, |target, url| match name {
                "W3" => latency::measure(target, span).map(Taken::Latency),
                _ => ours(name, target, url, jobs).map(Taken::Rate),
            }),
            Way::Beanstalkd => {
                let folder = tempfile::tempdir_in(&self.stand.plan.directory)?;
                let peer = Beanstalkd::start(Some(folder.path()))?;
                match name {
                    "W1" => peer.put_pipelined(jobs).map(Taken::Rate),
                    "W1S" => peer.put_single(jobs, SINGLES).map(Taken::Rate),
                    "W2" => {
                        peer.put_pipelined(jobs)?;
                        peer.drain_pipelined(jobs).map(Taken::Rate)
                    }
                    "W2S" => {
                        peer.put_pipelined(jobs)?;
                        peer.drain_single(jobs, SINGLES).map(Taken::Rate)
                    }
                    _ => peer.latency(span).map(Taken::Latency),
                }
            }
            Way::Npm(kind, peer) => self.at_home(kind.home, |address| match name {
                "W3" => peer.latency(address, stamps).map(Taken::Latency),
                _ => {
                    // Their names, as their script has them.
                    let workload = name.replace('S', "s");
                    let rate = peer.rate(address, &workload, jobs)?;
                    Ok(rate.map_or(Taken::Nothing, Taken::Rate))
                }
            }),
        }
    }

    /// With what the system keeps its jobs in, made for this figure.
    fn at_home(
        &self,
        home: Home,
        work: impl Fn(&str) -> anyhow::Result<Taken>,
    ) -> anyhow::Result<Taken> {
        if home == Home::Database {
            return work(&self.stand.database()?.url);
        }
        let folder = tempfile::tempdir_in(&self.stand.plan.directory)?;
        match home {
            Home::Redis => work(&Redis::start(folder.path())?.url()),
            Home::Folder | Home::Database => work(&folder.path().to_string_lossy()),
        }
    }
}

impl System<'_> {
    fn is_ours(&self, store: Store) -> bool {
        matches!(self.way, Way::Ours(ours) if ours == store)
    }

    /// Which of ours it is compared with.
    fn rival(&self) -> Option<Store> {
        match &self.way {
            Way::Ours(_) => None,
            Way::Beanstalkd => Some(Store::Memory),
            Way::Npm(kind, _) => Some(match kind.home {
                Home::Database => Store::Postgres,
                Home::Redis | Home::Folder => Store::Memory,
            }),
        }
    }
}

fn ours(name: &str, target: &Target, url: Option<&str>, jobs: usize) -> anyhow::Result<f64> {
    let filled = || {
        load::submit_batches(target, jobs, None)?;
        url.map_or(Ok(()), settle)
    };
    match name {
        "W1" => load::submit_batches(target, jobs, None),
        "W1S" => load::submit_single(target, jobs, SINGLES),
        "W2" => {
            filled()?;
            load::drain_batches(target, jobs)
        }
        _ => {
            filled()?;
            load::drain_single(target, jobs, SINGLES)
        }
    }
}
