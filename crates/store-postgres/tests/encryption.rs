//! What an address says about encryption holds, against servers with certificates of their own. For
//! every row of the tables the same is asked of `psql`: what libpq takes and refuses is the rule.

use mainspring_kernel::Timestamp;
use mainspring_store::Store;
use mainspring_store_postgres::doctor::examine;
use mainspring_store_postgres::{MigrateError, PostgresConfig, PostgresStore, connect, status};
use mainspring_testkit::blackbox::eventually;
use mainspring_testkit::postgres::{
    Admin, Authority, Cluster, ClusterOptions, Signature, Signed, programs, shared,
};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tempfile::TempDir;

const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];
const PASSWORD: &str = "hush-0815";
const IS_ENCRYPTED: &str = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

/// Files of a client.
struct Files {
    directory: TempDir,
}

impl Files {
    fn new() -> Self {
        Files { directory: tempfile::tempdir().expect("a directory") }
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, text).expect("it is written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("ours");
        path
    }

    /// The parameters, with the names of files made whole.
    fn whole(&self, parameters: &str) -> String {
        let here = format!("={}/", self.directory.path().display());
        parameters.replace("=./", &here)
    }
}

/// Whether a connection is encrypted, or why there is none.
async fn ours(address: &str) -> Result<bool, MigrateError> {
    let (client, connection) = connect(address).await?;
    tokio::spawn(connection);
    let row = client.query_one(IS_ENCRYPTED, &[]).await.expect("an answer");
    Ok(row.get(0))
}

/// The same through libpq.
fn libpq(address: &str) -> Option<bool> {
    let ran = Command::new(programs::directory().join("psql"))
        .args(["-X", "-A", "-t", "-c", IS_ENCRYPTED, "-d", address])
        .env_clear()
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .expect("psql starts");
    ran.status.success().then(|| ran.stdout.starts_with(b"t"))
}

/// What is expected: encrypted or not, or an error with these words.
type Expected = Result<bool, &'static str>;

/// Tries rows of host, parameters and what is expected of them, here and in libpq.
async fn compare(admin: &Admin, files: &Files, rows: &[(&str, &str, Expected)]) {
    for (host, parameters, expected) in rows {
        let here = Admin { host: (*host).to_owned(), ..admin.clone() };
        let address = format!("{}?{}", here.url("postgres"), files.whole(parameters));
        let found = expect(&address, expected).await;
        assert_eq!(libpq(&address), found, "libpq: {address}");
    }
}

async fn expect(address: &str, expected: &Expected) -> Option<bool> {
    match (ours(address).await, expected) {
        (Ok(is_encrypted), Ok(expected)) => {
            assert_eq!(is_encrypted, *expected, "{address}");
            Some(is_encrypted)
        }
        (Err(error), Err(words)) => {
            let told = error.to_string();
            assert!(told.contains(words), "{address}: {told}");
            assert!(!told.contains(PASSWORD), "{told}");
            None
        }
        (found, _) => panic!("{address}: {found:?}"),
    }
}

fn encrypted(shown: &Signed) -> Cluster {
    Cluster::start(&ClusterOptions::default().encrypted(shown))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mode_takes_and_refuses_what_libpq_does() {
    let (authority, stranger) = (Authority::new("ours"), Authority::new("a stranger"));
    let mut cluster = encrypted(&authority.server(&HOSTS));
    let files = Files::new();
    files.put("ca", &authority.certificate);
    files.put("wrong", &stranger.certificate);
    files.put("both", &format!("{}{}", stranger.certificate, authority.certificate));
    files.put("empty", "nothing\n");
    let not_signed = Err("is not signed by a CA of");
    let at_home = [
        ("127.0.0.1", "", Ok(true)),
        ("127.0.0.1", "sslmode=disable", Err("no encryption")),
        ("127.0.0.1", "sslmode=prefer", Ok(true)),
        ("127.0.0.1", "sslmode=require", Ok(true)),
        ("127.0.0.1", "sslmode=require&sslrootcert=./ca", Ok(true)),
        ("127.0.0.1", "sslmode=require&sslrootcert=./wrong", not_signed),
        ("127.0.0.1", "sslmode=verify-ca", Err("needs sslrootcert")),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=./ca", Ok(true)),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=./both", Ok(true)),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=./wrong", not_signed),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=./none", Err("sslrootcert: cannot use")),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=./empty", Err("holds no certificate")),
        ("127.0.0.1", "sslmode=verify-full", Err("needs sslrootcert")),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=./ca", Ok(true)),
        ("localhost", "sslmode=verify-full&sslrootcert=./ca", Ok(true)),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=./wrong", not_signed),
        ("127.0.0.1", "sslmode=sometimes", Err("sslmode must be")),
    ];
    compare(cluster.admin(), &files, &at_home).await;
    let admin = cluster.admin().clone();
    let pairs = format!(
        "host=127.0.0.1 port={} user={} dbname=postgres sslmode = 'verify-full' sslrootcert={}",
        admin.port,
        admin.role,
        files.directory.path().join("ca").display()
    );
    assert_eq!(expect(&pairs, &Ok(true)).await, libpq(&pairs));
    let nameless = format!(
        "hostaddr=127.0.0.1 port={} user={} dbname=postgres sslmode=require",
        admin.port, admin.role
    );
    assert_eq!(expect(&nameless, &Ok(true)).await, libpq(&nameless));

    let elsewhere = authority.server(&["db.example", "10.0.0.1"]);
    show(&mut cluster, &elsewhere);
    let other_name = Err("is for db.example, 10.0.0.1, not for localhost");
    let rows = [
        ("localhost", "sslmode=require&sslrootcert=./ca", Ok(true)),
        ("localhost", "sslmode=verify-ca&sslrootcert=./ca", Ok(true)),
        ("localhost", "sslmode=verify-full&sslrootcert=./ca", other_name),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=./ca", Err("not for 127.0.0.1")),
    ];
    compare(&admin, &files, &rows).await;

    show(&mut cluster, &authority.expired_server(&HOSTS));
    let rows = [
        ("localhost", "sslmode=require", Ok(true)),
        ("localhost", "sslmode=require&sslrootcert=./ca", Err("expired")),
        ("localhost", "sslmode=verify-ca&sslrootcert=./ca", Err("days ago; renew it")),
        ("localhost", "sslmode=verify-full&sslrootcert=./ca", Err("expired")),
    ];
    compare(&admin, &files, &rows).await;

    // Here we ask for more than libpq: what a certificate is for stands in its subjectAltName.
    show(&mut cluster, &authority.server(&[]));
    let address = format!("{}?sslmode=verify-full&sslrootcert=./ca", admin.url("postgres"));
    expect(&files.whole(&address), &Err("no subjectAltName")).await;
}

/// Starts the cluster again with another certificate.
fn show(cluster: &mut Cluster, shown: &Signed) {
    cluster.put_file("server.crt", &shown.certificate);
    cluster.put_file("server.key", &shown.key);
    cluster.stop_immediate();
    cluster.start_again();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_encryption_is_refused_only_where_it_was_asked_for() {
    let files = Files::new();
    files.put("ca", &Authority::new("ours").certificate);
    let no = Err("takes no encrypted connections");
    let rows = [
        ("127.0.0.1", "", Ok(false)),
        ("127.0.0.1", "sslmode=disable", Ok(false)),
        ("127.0.0.1", "sslmode=prefer", Ok(false)),
        ("127.0.0.1", "sslmode=require", no),
        ("127.0.0.1", "sslmode=verify-ca&sslrootcert=./ca", no),
        ("127.0.0.1", "sslmode=verify-full&sslrootcert=./ca", no),
    ];
    compare(shared(), &files, &rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prefer_goes_on_in_plain_text_where_encryption_fails() {
    let shown = Authority::new("ours").server(&HOSTS);
    let plain_only = "local all all trust\nhostnossl all all 127.0.0.1/32 trust\n";
    let options = ClusterOptions::default().encrypted(&shown).file("pg_hba.conf", plain_only);
    let files = Files::new();
    let rows = [
        ("127.0.0.1", "", Ok(false)),
        ("127.0.0.1", "sslmode=prefer", Ok(false)),
        ("127.0.0.1", "sslmode=require", Err("no pg_hba.conf entry")),
    ];
    compare(Cluster::start(&options).admin(), &files, &rows).await;

    // A server from long ago, with which no handshake works out.
    let options = options
        .file("pg_hba.conf", "local all all trust\nhost all all 127.0.0.1/32 trust\n")
        .setting("ssl_min_protocol_version", "TLSv1")
        .setting("ssl_max_protocol_version", "TLSv1.1");
    let rows = [
        ("127.0.0.1", "sslmode=prefer", Ok(false)),
        ("127.0.0.1", "sslmode=require", Err("the TLS handshake failed")),
    ];
    compare(Cluster::start(&options).admin(), &files, &rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_of_the_same_machine_are_never_encrypted() {
    let authority = Authority::new("ours");
    let cluster = encrypted(&authority.server(&HOSTS));
    let files = Files::new();
    files.put("ca", &authority.certificate);
    let directory = cluster.admin().try_sql("postgres", "SHOW unix_socket_directories");
    let directory = directory.expect("an answer").replace('/', "%2F");
    let rows = [
        (directory.as_str(), "sslmode=require", Ok(false)),
        (directory.as_str(), "sslmode=verify-full&sslrootcert=./ca", Ok(false)),
    ];
    compare(cluster.admin(), &files, &rows).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_can_be_bound_to_the_connection() {
    let hba = "local all all trust\nhostssl all mainspring 127.0.0.1/32 trust\n\
               host all bound 127.0.0.1/32 scram-sha-256\n";
    for signature in [Signature::Usual, Signature::Long, Signature::WithoutHash] {
        let shown = Authority::signing("ours", signature).server(&HOSTS);
        let options = ClusterOptions::default().encrypted(&shown).file("pg_hba.conf", hba);
        let cluster = Cluster::start(&options);
        let role = format!("CREATE ROLE bound LOGIN PASSWORD '{PASSWORD}'");
        cluster.admin().sql("postgres", &role);
        let at = |password: &str, parameters: &str| {
            let port = cluster.admin().port;
            format!("postgres://bound:{password}@127.0.0.1:{port}/postgres?{parameters}")
        };
        let is_bound = match signature {
            Signature::Usual | Signature::Long => Ok(true),
            Signature::WithoutHash => Err("channel binding"),
        };
        for (parameters, expected) in [
            ("sslmode=require&channel_binding=require", is_bound),
            ("sslmode=require&channel_binding=disable", Ok(true)),
            ("sslmode=require", Ok(true)),
            ("sslmode=disable", Ok(false)),
            ("sslmode=disable&channel_binding=require", Err("channel binding")),
        ] {
            expect(&at(PASSWORD, parameters), &expected).await;
        }
        let wrong = at(&format!("{PASSWORD}-wrong"), "sslmode=require&channel_binding=prefer");
        expect(&wrong, &Err("password authentication failed")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_can_show_a_certificate_instead_of_a_password() {
    let (authority, stranger) = (Authority::new("ours"), Authority::new("a stranger"));
    let hba = "local all all trust\nhostssl all certified 127.0.0.1/32 cert\n\
               hostssl all all 127.0.0.1/32 trust\n";
    let options = ClusterOptions::default()
        .encrypted(&authority.server(&HOSTS))
        .file("pg_hba.conf", hba)
        .file("root.crt", &authority.certificate)
        .setting("ssl_ca_file", "root.crt");
    let cluster = Cluster::start(&options);
    cluster.admin().sql("postgres", "CREATE ROLE certified LOGIN");
    let files = Files::new();
    let own = authority.client("certified");
    files.put("ca", &authority.certificate);
    files.put("own", &own.certificate);
    files.put("own-key", &own.key);
    let open = files.put("open-key", &own.key);
    std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o644)).expect("ours");
    for (name, signed) in
        [("other", authority.client("somebody")), ("stranger", stranger.client("certified"))]
    {
        files.put(name, &signed.certificate);
        files.put(&format!("{name}-key"), &signed.key);
    }
    let admin = Admin { role: "certified".to_owned(), ..cluster.admin().clone() };
    let checked = "sslmode=verify-full&sslrootcert=./ca";
    for (parameters, expected) in [
        ("sslcert=./own&sslkey=./own-key", Ok(true)),
        ("", Err("client certificate")),
        ("sslcert=./other&sslkey=./other-key", Err("certificate authentication failed")),
        ("sslcert=./stranger&sslkey=./stranger-key", Err("look at sslcert")),
        ("sslcert=./own&sslkey=./other-key", Err("do not belong together")),
        ("sslcert=./own&sslkey=./open-key", Err("others may read it")),
        ("sslcert=./own&sslkey=./ca", Err("no private key")),
        ("sslcert=./own", Err("needs sslkey")),
    ] {
        compare(&admin, &files, &[("127.0.0.1", &format!("{checked}&{parameters}"), expected)])
            .await;
    }
}

fn config(url: &str) -> PostgresConfig {
    let now = Arc::new(|| Timestamp::from_millis(1_790_000_000_000));
    PostgresConfig { allows_unsafe: true, ..PostgresConfig::standard(url, now) }
}

/// The applications connected to a database, each with whether it is encrypted.
fn connections(cluster: &Cluster, database: &str) -> Vec<String> {
    let ask = format!(
        "SELECT ssl, left(query, 6) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
         WHERE datname = '{database}'"
    );
    cluster.admin().sql("postgres", &ask).lines().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_encrypts_all_of_its_connections_and_reads_renewed_certificates() {
    let first = Authority::new("the first");
    // In two lives: the certificate is renewed under another authority in between.
    let mut cluster = encrypted(&first.server(&HOSTS));
    let database = cluster.database();
    let files = Files::new();
    files.put("ca", &first.certificate);
    let url = files.whole(&format!("{}?sslmode=verify-full&sslrootcert=./ca", database.url));
    let store = PostgresStore::open(config(&url), 1).await.expect("it opens");
    let all_encrypted = |cluster: &Cluster| {
        let found = connections(cluster, &database.name);
        assert!(found.iter().all(|line| line.starts_with('t')), "{found:?}");
        found.iter().any(|line| line == "t|LISTEN").then_some(())
    };
    eventually("the store listens", || all_encrypted(&cluster));

    let report = examine(&config(&url)).await.expect("it looks");
    let (_, told) = report.facts.iter().find(|(topic, _)| *topic == "encryption").expect("it says");
    assert!(told.starts_with("TLSv1.") && told.contains("sslmode=verify-full"), "{told}");
    let idle = files.whole(&format!("{}?sslrootcert=./ca", database.url));
    let report = examine(&config(&idle)).await.expect("it looks");
    assert!(report.findings.iter().any(|found| found.code == "certificate_unchecked"));

    let second = Authority::new("the second");
    show(&mut cluster, &second.server(&HOSTS));
    let refused = status(&config(&url)).await.expect_err("signed by somebody else");
    assert!(refused.to_string().contains("is not signed by a CA of"), "{refused}");
    files.put("ca", &second.certificate);
    status(&config(&url)).await.expect("the file was read again");
    // The store is the same one; nobody started it again.
    let asked = std::time::Duration::from_secs(30);
    let is_back = async {
        while store.running().await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(asked, is_back).await.expect("it goes on");
    eventually("the store listens again", || all_encrypted(&cluster));
    store.close().await.expect("it closes");
}
