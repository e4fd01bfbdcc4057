//! Several servers on one database of a PostgreSQL of their own, each behind a network of its own,
//! so that everything can fail apart.

use super::{Caller, Options, Server};
use crate::postgres::{Cluster, ClusterOptions, Database, Proxy};
use std::sync::Arc;

/// Servers, networks, database and cluster; they go away in this order.
#[derive(Debug)]
pub struct Nodes {
    /// The servers.
    pub servers: Vec<Server>,
    /// Between each server and the cluster.
    pub proxies: Vec<Proxy>,
    /// What they share.
    pub database: Arc<Database>,
    /// Where it is.
    pub cluster: Cluster,
}

impl Nodes {
    /// Starts so many servers with one configuration on a fresh cluster.
    pub fn start(
        binary: &'static str,
        count: usize,
        cluster: &ClusterOptions,
        config: &str,
    ) -> Self {
        let cluster = Cluster::start(cluster);
        let database = Arc::new(cluster.database());
        let mut nodes = Nodes { servers: Vec::new(), proxies: Vec::new(), database, cluster };
        for _ in 0..count {
            let proxy = Proxy::start(nodes.cluster.admin());
            let mut options = Options::new(binary).config(config);
            options.database = Some(nodes.database.clone());
            options = options.through(&proxy.admin().url(&nodes.database.name));
            nodes.proxies.push(proxy);
            nodes.servers.push(Server::start(options));
        }
        nodes
    }

    /// The first admin at one of them.
    pub fn admin(&self, nth: usize) -> Caller {
        self.servers[nth].admin()
    }
}
