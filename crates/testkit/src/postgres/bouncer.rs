//! PgBouncer with transaction pooling in front of a cluster: two statements of one client may run
//! on two connections, unless a transaction holds them together.

use super::place::{Place, free_port};
use super::{Admin, Authority, Database, Signed, programs};
use crate::blackbox::eventually;
use std::fs::OpenOptions;
use std::process::{Child, Stdio};

/// A running PgBouncer.
#[derive(Debug)]
pub struct PgBouncer {
    admin: Admin,
    behind: Admin,
    child: Option<Child>,
    /// Lines of its configuration.
    settings: String,
    place: Place,
}

impl PgBouncer {
    /// Starts one in front of the cluster and waits until it passes statements on.
    ///
    /// # Panics
    /// If it is not installed or does not start; its log is shown.
    pub fn start(cluster: &Admin) -> Self {
        PgBouncer::start_in(Place::new("mainspring-bouncer-"), cluster, String::new())
    }

    /// The same with encryption on both sides: clients must encrypt and are shown `shown`; the
    /// cluster must show a certificate for its host that `authority` signed.
    ///
    /// # Panics
    /// If it is not installed or does not start; its log is shown.
    pub fn start_encrypted(cluster: &Admin, shown: &Signed, authority: &Authority) -> Self {
        let place = Place::new("mainspring-bouncer-");
        let mut settings = String::new();
        for (setting, name, text) in [
            ("client_tls_cert_file", "bouncer.crt", &shown.certificate),
            ("client_tls_key_file", "bouncer.key", &shown.key),
            ("server_tls_ca_file", "authority.crt", &authority.certificate),
        ] {
            let path = place.put_private(name, text);
            settings.push_str(&format!("{setting} = {}\n", path.display()));
        }
        settings.push_str("client_tls_sslmode = require\nserver_tls_sslmode = verify-full\n");
        PgBouncer::start_in(place, cluster, settings)
    }

    fn start_in(place: Place, cluster: &Admin, settings: String) -> Self {
        let (admin, behind) = (cluster.clone(), cluster.clone());
        let mut bouncer = PgBouncer { admin, behind, child: None, settings, place };
        eventually("PgBouncer passes statements on", || {
            let is_running = match &mut bouncer.child {
                Some(child) => matches!(child.try_wait(), Ok(None)),
                None => false,
            };
            if !is_running {
                bouncer.child = Some(bouncer.spawn());
            }
            bouncer.admin.try_sql("postgres", "SELECT 1").ok()
        });
        bouncer
    }

    fn spawn(&mut self) -> Child {
        self.admin.port = free_port();
        let behind = &self.behind;
        let config = format!(
            "[databases]\n* = host={} port={} user={}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 20\nmax_client_conn = 500\n\
             ignore_startup_parameters = extra_float_digits\n{}",
            behind.host, behind.port, behind.role, self.admin.port, self.settings
        );
        std::fs::write(self.place.path().join("config.ini"), config).expect("writes");
        let log = OpenOptions::new().create(true).append(true).open(self.place.path().join("log"));
        let program = programs::of_the_system("pgbouncer");
        let program = program.expect("PgBouncer is installed (package `pgbouncer`)");
        let mut command = programs::command(&program, self.place.path());
        command.arg("config.ini").stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(log.expect("a file for its log")).spawn().expect("pgbouncer starts")
    }

    /// How to reach databases through it.
    pub fn admin(&self) -> &Admin {
        &self.admin
    }

    /// The address of a database of the cluster, through it. A server goes this way if the `url` of
    /// its database is replaced by it.
    pub fn url(&self, database: &Database) -> String {
        self.admin.url(&database.name)
    }

    /// Everything it logged.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.place.path().join("log")).unwrap_or_default()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- log of PgBouncer ---\n{}---", self.log());
        }
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
