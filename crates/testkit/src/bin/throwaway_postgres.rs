//! A PostgreSQL for as long as somebody holds our input open: `cargo xtask test` starts this once
//! for all tests. The first line of output is the cluster's address; when the input ends, however
//! it ends, the cluster goes away.

use mainspring_testkit::postgres::{Cluster, ClusterOptions};
use std::io::{Read, Write};

fn main() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let mut out = std::io::stdout();
    let told = writeln!(out, "{}", cluster.admin().url("postgres")).and_then(|()| out.flush());
    if told.is_ok() {
        // Nobody says anything; what counts is the end.
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
    }
}
