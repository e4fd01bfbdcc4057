//! Several processes: one that is killed, one that finds the directory taken, and the example that
//! the documentation shows.

use crate::house::{House, Work, on, options};
use mainspring::{Error, Mainspring};
use mainspring_testkit::blackbox::Store;
use mainspring_testkit::both_stores;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

both_stores![what_was_accepted_survives_the_death_of_the_process];

/// Says to a copy of this test what it is to submit to.
const CHILD: &str = "MAINSPRING_LIBRARY_CHILD";
/// Jobs that have to be accepted before the process is killed.
const ACCEPTED: usize = 200;

/// Not a test of its own: the process that is killed. It says the id of each job once it was
/// accepted.
#[test]
fn child_that_submits_until_it_is_killed() {
    let Ok(place) = std::env::var(CHILD) else { return };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().unwrap().block_on(async {
        let spring = match place.starts_with("postgres") {
            true => options().connect(&place).await.unwrap(),
            false => options().open(&place).await.unwrap(),
        };
        for n in 0.. {
            let job = spring.submit(&Work { n }).key(format!("job-{n}")).await.unwrap();
            println!("accepted {}", job.id());
        }
    });
}

fn what_was_accepted_survives_the_death_of_the_process(store: Store) {
    on(store, async |house: &House| {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["processes::child_that_submits_until_it_is_killed", "--exact", "--nocapture"])
            .env(CHILD, house.place())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let accepted: Vec<String> = lines
            .filter_map(|line| line.unwrap().strip_prefix("accepted ").map(str::to_owned))
            .take(ACCEPTED)
            .collect();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(accepted.len(), ACCEPTED);

        let spring = house.open().await;
        let worker =
            spring.worker().concurrency(16).on(|work: Work, _| async move { Ok(work.n) }).start();
        for (n, id) in (0..).zip(&accepted) {
            let job = spring.job::<Work>(id.parse().unwrap()).await.unwrap();
            assert_eq!(job.wait().await.unwrap(), n);
        }
        // Keys survive as well.
        let again = spring.submit(&Work { n: 0 }).key("job-0").await.unwrap();
        assert!(again.was_there() && again.id().to_string() == accepted[0]);
        worker.stop().await.unwrap();
        spring.close().await.unwrap();
    });
}

#[tokio::test]
async fn a_directory_belongs_to_one_process_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er");
    let spring = Mainspring::open(&path).await.unwrap();
    let second = Mainspring::open(&path).await;
    let Err(Error::Directory { path: named, .. }) = second.map(|_| ()) else { panic!("opened") };
    assert_eq!(named, path.display().to_string());
    spring.close().await.unwrap();
    Mainspring::open(&path).await.unwrap().close().await.unwrap();
    let Err(file) = Mainspring::open("/dev/null/data").await.map(|_| ()) else { panic!("opened") };
    assert!(matches!(file, Error::Made { .. }), "{file:?}");
}

#[tokio::test]
async fn a_database_that_is_none_is_named_without_its_password() {
    let url = "postgres://ann:secret@127.0.0.1:1/none";
    let Err(error) = Mainspring::connect(url).await.map(|_| ()) else { panic!("connected") };
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    assert!(text.contains("127.0.0.1:1") && !text.contains("secret"), "{text}");
}

#[test]
fn the_example_says_hello_on_every_run() {
    let directory = tempfile::tempdir().unwrap();
    let test = std::env::current_exe().unwrap();
    let build = test.parent().and_then(Path::parent).unwrap();
    for _ in 0..2 {
        let mut example = Command::new(build.join("examples/hello"));
        let output = example.current_dir(directory.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "hello Ada\n");
    }
}

#[test]
fn the_documentation_shows_the_example() {
    let example = include_str!("../../examples/hello.rs");
    for page in [
        include_str!("../../../../docs/library.md"),
        include_str!("../../../../docs/library.zh-CN.md"),
    ] {
        assert!(page.contains(&format!("```rust\n{example}```")));
    }
}
