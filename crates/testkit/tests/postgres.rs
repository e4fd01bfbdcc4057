//! The throw-away PostgreSQL does what tests will ask of it, and leaves nothing behind.

use mainspring_testkit::blackbox::command::signal;
use mainspring_testkit::blackbox::eventually;
use mainspring_testkit::postgres::{Admin, Cluster, ClusterOptions, Database, PgBouncer, shared};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn directory_of(admin: &Admin) -> PathBuf {
    Path::new(&admin.sql("postgres", "SHOW data_directory")).parent().expect("a parent").to_owned()
}

/// Whether any process lives there.
fn is_inhabited(directory: &Path) -> bool {
    let homes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let mut homes = homes.filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok());
    homes.any(|home| home.starts_with(directory))
}

#[test]
fn each_test_gets_a_database_of_its_own_and_it_goes_away() {
    let (one, two) = (Database::create(shared()), Database::create(shared()));
    assert_ne!(one.url, two.url);
    one.sql("CREATE TABLE mine (n int)");
    one.sql("INSERT INTO mine VALUES (1), (2)");
    assert_eq!(one.sql("SELECT n, n * 10 FROM mine ORDER BY n"), "1|10\n2|20");
    assert_eq!(two.sql("SELECT count(*) FROM pg_tables WHERE tablename = 'mine'"), "0");
    assert!(one.dump().contains("CREATE TABLE public.mine"));
    // The process of a session that has just ended may be on its way out.
    eventually("nobody is connected", || two.back_ends().is_empty().then_some(()));
    let name = one.name.clone();
    drop(one);
    let ask = format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'");
    assert_eq!(shared().sql("postgres", &ask), "0");
}

#[test]
fn a_cluster_survives_every_kind_of_end_on_the_same_port() {
    let options = ClusterOptions::durable().setting("work_mem", "5MB");
    let mut cluster = Cluster::start(&options);
    let database = cluster.database();
    assert_eq!(database.sql("SHOW fsync"), "on");
    assert_eq!(database.sql("SHOW work_mem"), "5MB");
    database.sql("CREATE TABLE kept (n int)");
    for round in 1..=3 {
        database.sql(&format!("INSERT INTO kept VALUES ({round})"));
        if round == 2 {
            cluster.stop_immediate();
        } else {
            cluster.kill9();
        }
        assert!(cluster.admin().try_sql("postgres", "SELECT 1").is_err(), "it is down");
        cluster.start_again();
        assert_eq!(database.sql("SELECT count(*) FROM kept"), round.to_string());
    }
    let directory = directory_of(cluster.admin());
    assert!(is_inhabited(&directory));
    cluster.kill9();
    drop(database);
    drop(cluster);
    assert!(!directory.exists() && !is_inhabited(&directory), "nothing is left");
}

#[test]
fn a_paused_cluster_answers_nobody_until_it_goes_on() {
    let mut cluster = Cluster::start(&ClusterOptions::default());
    let admin = cluster.admin().clone();
    cluster.pause();
    let question = std::thread::spawn(move || admin.sql("postgres", "SELECT 'awake'"));
    std::thread::sleep(std::time::Duration::from_millis(500)); // paced: silence is the point
    assert!(!question.is_finished());
    cluster.resume();
    assert_eq!(question.join().expect("an answer"), "awake");
    // It can also be killed in its sleep.
    cluster.pause();
    cluster.kill9();
    cluster.start_again();
    assert_eq!(cluster.admin().sql("postgres", "SELECT 1"), "1");
}

#[test]
fn a_read_only_cluster_refuses_writes_and_takes_them_again() {
    let cluster = Cluster::start(&ClusterOptions::default());
    let database = cluster.database();
    database.sql("CREATE TABLE t (n int)");
    cluster.set_read_only(true);
    let admin = cluster.admin();
    let refused = admin.try_sql(&database.name, "INSERT INTO t VALUES (1)").unwrap_err();
    assert!(refused.contains("read-only"), "{refused}");
    assert_eq!(database.sql("SELECT count(*) FROM t"), "0");
    cluster.set_read_only(false);
    database.sql("INSERT INTO t VALUES (1)");
}

#[test]
fn pgbouncer_stands_in_front_of_a_cluster() {
    let database = Database::create(shared());
    let bouncer = PgBouncer::start(shared());
    assert_ne!(bouncer.url(&database), database.url);
    let through = bouncer.admin();
    assert_eq!(through.sql(&database.name, "SELECT current_database()"), database.name);
    assert!(through.sql("pgbouncer", "SHOW CONFIG").contains("pool_mode|transaction"));
}

/// The launcher that serves a whole run ends when its input ends, also by a kill.
#[test]
fn nothing_is_left_when_the_process_that_started_a_cluster_is_killed() {
    for is_kill in [false, true] {
        let mut launcher = Command::new(env!("CARGO_BIN_EXE_throwaway-postgres"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the launcher starts");
        let mut address = String::new();
        let out = launcher.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut address).expect("its address");
        let admin = Admin::parse(address.trim()).expect("an address");
        let directory = directory_of(&admin);
        assert!(directory.exists());
        if is_kill {
            signal(launcher.id(), Signal::KILL);
        }
        drop(launcher.stdin.take());
        launcher.wait().expect("it ends");
        eventually("everything is gone", || {
            (!directory.exists() && !is_inhabited(&directory)).then_some(())
        });
        assert!(admin.try_sql("postgres", "SELECT 1").is_err());
    }
}
