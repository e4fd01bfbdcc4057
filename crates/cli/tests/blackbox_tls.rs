//! Encrypted connections to PostgreSQL, from outside: a server and every command that talks to the
//! database, directly and through PgBouncer, and what is said when encryption fails.

use mainspring_testkit::blackbox::{Options, Ran, Server, eventually, run};
use mainspring_testkit::postgres::{
    Authority, Cluster, ClusterOptions, Database, PgBouncer, Signed, shared,
};
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];
const PASSWORD: &str = "hush-4711";
/// Plain text is allowed too: whoever encrypts here does so of his own accord.
const EITHER: &str = "local all all trust\nhost all all 127.0.0.1/32 trust\n";

/// A cluster that encrypts, with the file of who signed its certificate.
struct Encrypted {
    cluster: Cluster,
    authority: Authority,
    files: TempDir,
}

impl Encrypted {
    fn start(hba: &str) -> Self {
        let authority = Authority::new("ours");
        let options = ClusterOptions::default()
            .encrypted(&authority.server(&HOSTS))
            .file("pg_hba.conf", hba)
            .setting("log_connections", "on");
        let cluster = Cluster::start(&options);
        let files = tempfile::tempdir().expect("a directory");
        std::fs::write(files.path().join("ca"), &authority.certificate).expect("it is written");
        Encrypted { cluster, authority, files }
    }

    fn file(&self, name: &str) -> String {
        self.files.path().join(name).display().to_string()
    }

    fn checked(&self, url: &str) -> String {
        format!("{url}?sslmode=verify-full&sslrootcert={}", self.file("ca"))
    }

    /// Connections to a database since the cluster exists: those that were encrypted, and others.
    fn connections(&self, database: &Database) -> (usize, usize) {
        let log = self.cluster.log();
        let to = format!("database={}", database.name);
        let made = log.lines().filter(|line| line.contains("authorized") && line.contains(&to));
        let (encrypted, plain): (Vec<_>, Vec<_>) =
            made.partition(|line| line.contains("SSL enabled"));
        (encrypted.len(), plain.len())
    }
}

fn works(server: &Server) {
    let ann = server.caller("acme", "ann", &["submitter", "worker", "viewer"]);
    let id = ann.submit_plain("greet");
    let grant = ann.pull_one("greet");
    assert_eq!(grant["job_id"], id.as_str());
    assert_eq!(ann.complete(&grant)["status"], "succeeded");
}

fn serve(address: &str) -> Ran {
    let line = ["serve", "--listen", "127.0.0.1:0", "--database-url", address];
    run(BINARY, &line, &[], Path::new("/"))
}

#[test]
fn o05_o15_a_server_encrypts_every_connection_and_does_so_after_a_restart_of_the_database() {
    let mut place = Encrypted::start(EITHER);
    let database = Arc::new(place.cluster.database());
    let url = place.checked(&database.url);
    let ran = |args: &[&str]| run(BINARY, args, &[], Path::new("/"));
    let up = ran(&["migrate", "up", "--database-url", &url]).expect(0);
    assert!(up.stdout.contains("done"), "{up:?}");
    let mut options = Options::new(BINARY).through(&url);
    options.database = Some(database.clone());
    let mut server = Server::start(options);
    works(&server);
    let ask = "SELECT bool_and(ssl), count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity \
               USING (pid) WHERE datname = current_database()";
    assert_eq!(database.sql(ask), "t|t");
    let told = ran(&["doctor", "--database-url", &url]);
    assert!(told.stdout.contains("sslmode=verify-full"), "{told:?}");

    place.cluster.stop_immediate();
    place.cluster.start_again();
    eventually("the server is ready again", || {
        let answer = server.admin().get("/readyz");
        (answer.status == 200).then_some(())
    });
    works(&server);
    assert_eq!(database.sql(ask), "t|t");
    assert!(server.terminate().success());

    let target = place.files.path().join("moved");
    let to = format!("memory:{}", target.display());
    ran(&["move", "--from", &url, "--to", &to]).expect(0);
    let (encrypted, plain) = place.connections(&database);
    assert_eq!(plain, 0, "{}", place.cluster.log());
    assert!(encrypted > 10, "{encrypted}");
}

#[test]
fn o05_both_stretches_are_encrypted_with_a_pooler_in_between() {
    // The cluster takes nothing else.
    let place = Encrypted::start("local all all trust\nhostssl all all 127.0.0.1/32 trust\n");
    let database = Arc::new(place.cluster.database());
    let bouncers = Authority::new("the pooler's");
    std::fs::write(place.files.path().join("pooler"), &bouncers.certificate).expect("written");
    let shown: Signed = bouncers.server(&HOSTS);
    let bouncer = PgBouncer::start_encrypted(place.cluster.admin(), &shown, &place.authority);
    let through = bouncer.url(&database);
    let url = format!("{through}?sslmode=verify-full&sslrootcert={}", place.file("pooler"));
    let mut options = Options::new(BINARY).through(&url);
    options.database = Some(database.clone());
    let server = Server::start(options);
    works(&server);
    assert!(place.connections(&database).0 > 0);
    // The pooler has another authority than the cluster, and takes no plain text.
    let refused = serve(&place.checked(&through)).expect(3);
    assert!(refused.stderr.contains("is not signed by a CA of"), "{refused:?}");
    let refused = serve(&format!("{through}?sslmode=disable")).expect(3);
    assert!(refused.stderr.contains("SSL required"), "{refused:?}");
}

#[test]
fn o05_what_is_wrong_with_encryption_is_said_in_words_that_hold_no_password() {
    let place = Encrypted::start(EITHER);
    let stranger = Authority::new("a stranger");
    std::fs::write(place.files.path().join("wrong"), &stranger.certificate).expect("written");
    let port = place.cluster.admin().port;
    let at = |port: u16, parameters: &str| {
        let address = format!("postgres://mainspring:{PASSWORD}@127.0.0.1:{port}/postgres?");
        address + &parameters.replace("=./", &format!("={}/", place.files.path().display()))
    };
    let check = |address: &str, code: i32, words: &str| {
        for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["migrate", "status"]] {
            let line = [args, &["--database-url", address]].concat();
            let ran = run(BINARY, &line, &[], Path::new("/")).expect(code);
            assert!(ran.stderr.contains(words), "{ran:?}");
            assert!(!format!("{ran:?}").contains(PASSWORD), "{ran:?}");
        }
    };
    let full = "sslmode=verify-full&sslrootcert=";
    check(&at(port, &format!("{full}./wrong")), 3, "is not signed by a CA of");
    check(&at(port, &format!("{full}./none")), 2, "sslrootcert: cannot use");
    check(&at(port, "sslmode=verify-full"), 2, "needs sslrootcert");
    check(&at(port, "sslmode=hush"), 2, "sslmode must be");
    check(&at(shared().port, "sslmode=require"), 3, "takes no encrypted connections");
    for (shown, words) in [
        (place.authority.server(&["db.example"]), "is for db.example, not for 127.0.0.1"),
        (place.authority.expired_server(&HOSTS), "days ago; renew it"),
    ] {
        let other = Cluster::start(&ClusterOptions::default().encrypted(&shown));
        check(&at(other.admin().port, &format!("{full}./ca")), 3, words);
    }
}
