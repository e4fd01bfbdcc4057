//! The table of peers: other systems under the same loads as we, in turn in one run, each as
//! durable as it can be told to be. `npm.rs` drives those that live on Node, `redis.rs` is the
//! server that one of them needs, `table.rs` the rows; beanstalkd has a client of its own
//! (`beanstalk.rs`), because it is fast enough for one to matter.

pub(crate) mod npm;
mod redis;
pub(crate) mod table;

/// A system that npm installs, and how it is driven.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// The versions are fixed, so that figures of two days have the same peer.
    packages: &'static [&'static str],
    script: &'static str,
    home: Home,
}

/// What a peer keeps its jobs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    /// A database of the cluster that we use, too, with the settings that PostgreSQL comes with.
    Database,
    /// A Redis that syncs its log before it answers.
    Redis,
    /// A folder of its own.
    Folder,
}

pub(crate) const GRAPHILE_WORKER: Kind = Kind {
    name: "graphile-worker",
    packages: &["graphile-worker@0.18.0", "node@22", "pg@8"],
    script: include_str!("peers/graphile-worker.mjs"),
    home: Home::Database,
};

const PG_BOSS: Kind = Kind {
    name: "pg-boss",
    // 12.38 wants a version of a package that the registry does not have.
    packages: &["pg-boss@12.35.0", "node@22", "pg@8"],
    script: include_str!("peers/pg-boss.mjs"),
    home: Home::Database,
};

const BULLMQ: Kind = Kind {
    name: "bullmq",
    packages: &["bullmq@6.7.0", "ioredis@5", "node@22"],
    script: include_str!("peers/bullmq.mjs"),
    home: Home::Redis,
};

const RESTATE: Kind = Kind {
    name: "restate",
    packages: &[
        "@restatedev/restate-server@1.7.12",
        "@restatedev/restate-sdk@1.17.2",
        "@restatedev/restate-sdk-clients@1.17.2",
        "node@22",
    ],
    script: include_str!("peers/restate.mjs"),
    home: Home::Folder,
};
