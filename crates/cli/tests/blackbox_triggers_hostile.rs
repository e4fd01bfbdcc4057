//! Triggers in a hostile world: paths that lead out, trees that are too deep or too wide, files
//! that never rest, roots that go away, servers that die, and servers that see the same.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

#[path = "blackbox_triggers/support.rs"]
mod support;

use mainspring_testkit::blackbox::caller::text;
use mainspring_testkit::blackbox::{PerStore, Server, Store, eventually};
use mainspring_testkit::both_stores;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;
use support::{CONFIG, Place, USER, changed, exists, options, task};

both_stores![
    a07_no_link_and_no_path_leads_out_of_a_root,
    a07_trees_that_are_too_deep_or_too_wide_are_refused,
    a07_a_glob_bomb_stalls_nobody,
    a07_a_file_that_changes_a_thousand_times_a_second_makes_few_runs,
    a07_a_root_that_goes_away_is_no_edge_and_comes_back,
    a07_a09_no_edge_is_lost_or_doubled_by_a_kill,
    a07_many_triggers_on_many_files_fire_for_their_own,
    a10_what_one_tenant_watches_is_not_told_to_another,
    a07_folders_that_cannot_be_watched_are_polled_and_it_says_so,
];

const BINARY: &str = env!("CARGO_BIN_EXE_mainspring");

fn server(store: Store) -> &'static Server {
    static SERVERS: PerStore = PerStore::new();
    SERVERS.get(store, || options(store, BINARY))
}

fn a07_no_link_and_no_path_leads_out_of_a_root(store: Store) {
    let here = Place::new(server(store), "links");
    let outside = server(store).directory().join("outside");
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret"), "s").unwrap();
    symlink(&outside, here.folder.join("folder")).unwrap();
    symlink(outside.join("secret"), here.folder.join("file")).unwrap();
    let ids = ["through", "link", "all", "wild"];
    let paths = ["folder/secret", "file", "**", "*/secret"];
    for (id, path) in ids.iter().zip(paths) {
        here.on(id, exists(&here.path(path)));
        here.watched(id);
    }
    fs::write(outside.join("secret"), "again").unwrap();
    for id in ids {
        let told = here.native(id, "/explain");
        assert_eq!(told["leaves"][0]["truth"], "false", "{told}");
        assert_eq!(here.fired(id), 0, "{id}");
    }
    // A folder that is watched becomes a link: what is behind that is not there.
    here.write("inner/real");
    here.on("swap", exists(&here.path("inner/secret")));
    here.watched("swap");
    fs::rename(here.folder.join("inner"), here.folder.join("moved")).unwrap();
    symlink(&outside, here.folder.join("inner")).unwrap();
    fs::write(outside.join("secret"), "once more").unwrap();
    assert_eq!(here.native("swap", "/explain")["leaves"][0]["truth"], "false");
    assert_eq!(here.fired("swap"), 0);
    for path in ["../outside/secret", "links/../../outside/secret", "/etc/hostname", "links/."] {
        let wish = json!({ "type": "conditional", "prompt": "x", "condition": exists(path) });
        let answer = here.who.post("/agent/triggers", &wish);
        assert_eq!((answer.status, &answer.json()["field"]), (400, &json!("condition")), "{path}");
    }
}

fn a07_trees_that_are_too_deep_or_too_wide_are_refused(store: Store) {
    let here = Place::new(server(store), "deep");
    let deep = |depth: usize| {
        let (open, close) = (r#"{"type":"and","params":{"conditions":["#, "]}}");
        let leaf = r#"{"type":"task_done","params":{"taskId":"t"}}"#;
        let condition = format!("{}{leaf}{}", open.repeat(depth), close.repeat(depth));
        format!(r#"{{"type":"conditional","prompt":"x","condition":{condition}}}"#)
    };
    let post = |body: &str| {
        let request = here.who.request("POST", "/agent/triggers");
        let request = request.header("content-type", "application/json").body(body.as_bytes());
        request.send(here.who.address).status
    };
    assert_eq!(post(&deep(7)), 201);
    for depth in [8, 40, 10_000] {
        assert_eq!(post(&deep(depth)), 400, "{depth}");
    }
    let wide: Vec<Value> = vec![task("task_done", "t"); 17];
    let condition = support::all("or", &wide);
    let wish = json!({ "type": "conditional", "prompt": "x", "condition": condition });
    assert_eq!(here.who.post("/agent/triggers", &wish).status, 400);
}

fn a07_a_glob_bomb_stalls_nobody(store: Store) {
    let here = Place::new(server(store), "bomb");
    let name = "a".repeat(200);
    for folder in 0..20 {
        here.write(&format!("{folder}/{name}/{name}/{name}"));
    }
    let bomb = format!("{}b", "*a".repeat(150));
    for (id, path) in [
        ("one", format!("**/{bomb}")),
        ("two", format!("**/{bomb}/**/{bomb}")),
        ("all", "**/*".to_owned()),
    ] {
        here.on(id, changed(&here.path(&path)));
        here.watched(id);
    }
    let three = json!({ "type": "conditional", "prompt": "x", "condition": changed("**/**/**/a") });
    assert_eq!(here.who.post("/agent/triggers", &three).status, 400);
    here.write("plain");
    here.fires("all", 1);
    assert_eq!((here.fired("one"), here.fired("two")), (0, 0));
}

fn a07_a_file_that_changes_a_thousand_times_a_second_makes_few_runs(store: Store) {
    let here = Place::new(server(store), "restless");
    here.on("restless", changed(&here.path("log")));
    here.watched("restless");
    for turn in 0..2_000 {
        fs::write(here.folder.join("log"), turn.to_string()).unwrap();
    }
    eventually("it fires when the file rests", || (here.fired("restless") > 0).then_some(()));
    let version = here.native("restless", "")["version"].as_u64().unwrap();
    assert!(version < 200, "2,000 changes rewrote the trigger {version} times");
    assert_eq!(here.fired("restless"), 1, "its run has not ended");
}

fn a07_a_root_that_goes_away_is_no_edge_and_comes_back(store: Store) {
    let own = Server::start(options(store, BINARY));
    let here = Place::new(&own, "gone");
    here.write("a");
    here.on("gone", changed(&here.path("*")));
    here.watched("gone");
    let (root, away) = (own.directory().join("files"), own.directory().join("away"));
    fs::rename(&root, &away).unwrap();
    let told = here.native("gone", "/explain");
    assert_eq!((&told["outcome"], here.fired("gone")), (&json!("not_yet"), 0));
    // Another trigger can be made meanwhile: there is nothing to begin with.
    here.on("meanwhile", changed(&here.path("*")));
    fs::rename(&away, &root).unwrap();
    here.write("b");
    here.fires("gone", 1);
    here.fires("meanwhile", 1);
    fs::remove_dir_all(&root).unwrap();
    assert_eq!(here.native("gone", "/explain")["leaves"][0]["truth"], "false");
}

fn a07_a09_no_edge_is_lost_or_doubled_by_a_kill(store: Store) {
    let mut own = Server::start(options(store, BINARY));
    let here = Place::new(&own, "killed");
    here.on("killed", changed(&here.path("*")));
    for round in 1..=8u64 {
        here.write("a");
        let pause = Duration::from_millis(round * 15);
        std::thread::sleep(pause); // paced: the kill is to come before, in and after the firing
        own.restart();
        here.fires("killed", round);
        // Killed again with the run in hand.
        let run = here.pull();
        if round % 2 == 0 {
            own.restart();
        }
        here.finish(&run);
        eventually("the run has ended", || {
            here.get("killed")["state"]["runningAt"].is_null().then_some(())
        });
        assert_eq!(here.fired("killed"), round);
    }
    let runs = here.who.get("/agent/runs?sourceTriggerId=killed&limit=100").json();
    assert_eq!(runs["total"], 8);
}

fn a07_many_triggers_on_many_files_fire_for_their_own(store: Store) {
    const MANY: usize = 300;
    let here = Place::new(server(store), "many");
    for at in 0..MANY {
        here.write(&format!("{at}"));
    }
    for at in 0..MANY {
        here.on(&format!("t{at}"), changed(&here.path(&at.to_string())));
    }
    here.watched(&format!("t{}", MANY - 1));
    for at in (0..MANY).step_by(30) {
        here.write(&format!("{at}"));
        here.fires(&format!("t{at}"), 1);
    }
    let listed = here.who.get("/agent/triggers?limit=100").json();
    assert_eq!(listed["total"], MANY);
    let runs = here.who.get("/agent/runs?limit=100").json();
    assert_eq!(runs["total"], MANY / 30);
    let (mut seen, mut cursor) = (0, None::<String>);
    loop {
        let more = cursor.map_or(String::new(), |cursor| format!("&cursor={cursor}"));
        let page = here.who.get(&format!("/agent/triggers?limit=70{more}")).json();
        seen += page["items"].as_array().unwrap().len();
        cursor = page["nextCursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen, MANY);
}

fn a10_what_one_tenant_watches_is_not_told_to_another(store: Store) {
    let here = Place::new(server(store), "wall");
    here.on("mine", changed(&here.path("*")));
    let other = server(store).caller("wall-other", "ann", &USER);
    for path in ["", "/explain", "/evaluations"] {
        let foreign = other.get(&format!("/api/v1/triggers/mine{path}"));
        let unknown = other.get(&format!("/api/v1/triggers/none{path}"));
        let without_meta = |answer: &Value| answer["error"].clone();
        assert_eq!(
            (foreign.status, without_meta(&foreign.json())),
            (403, without_meta(&unknown.json()))
        );
    }
    for verb in ["pause", "resume", "dry-run"] {
        assert_eq!(other.poke(&format!("/api/v1/triggers/mine/{verb}")).status, 403, "{verb}");
    }
    let operator = server(store).caller("wall", "otto", &["operator"]);
    assert_eq!(operator.get("/api/v1/triggers/mine").data()["user_id"], "ann");
    assert_eq!(operator.poke("/api/v1/triggers/mine/pause").status, 200);
}

/// A server that the operating system gives four watches, in a user namespace of its own.
fn a07_folders_that_cannot_be_watched_are_polled_and_it_says_so(store: Store) {
    let place = tempfile::tempdir().unwrap();
    let wrapper = place.path().join("mainspring");
    let script = format!(
        "#!/bin/sh\nexec unshare --user --map-root-user sh -c \
         'echo 4 > /proc/sys/user/max_inotify_watches && exec {BINARY} \"$@\"' sh \"$@\"\n"
    );
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let binary: &'static str = wrapper.to_str().unwrap().to_owned().leak();
    let server = Server::start(options(store, binary));
    let here = Place::new(&server, "many-folders");
    for folder in 0..8 {
        here.write(&format!("{folder}/file"));
    }
    here.on("wide", changed(&here.path("*/file")));
    let way = eventually("it is known how its files are looked at", || {
        let told = here.native("wide", "/explain");
        told["leaves"][0]["way"].as_str().filter(|way| way.starts_with("polled")).map(str::to_owned)
    });
    assert_eq!(way, "polled: in more folders than can be watched");
    assert!(server.log().contains("in more folders than can be watched"), "{}", server.log());
    for round in 1..=3u64 {
        here.write(&format!("{}/file", 8 - round));
        here.fires("wide", round);
        here.work();
    }
}

/// Two servers, one database, the same folder.
#[test]
fn a07_two_servers_with_the_same_roots_make_one_run_for_an_edge() {
    let folder = tempfile::tempdir().unwrap();
    let config = CONFIG.replace("\"files\"", &format!("{:?}", folder.path()));
    let options = Store::Postgres.options(BINARY).config(&config);
    let (first, second) = (Server::start(options.clone()), Server::start(options));
    let place = |server: &Server| Place {
        who: server.caller("nodes", "ann", &USER),
        folder: folder.path().to_owned(),
        name: String::new(),
    };
    let (here, there) = (place(&first), place(&second));
    here.on("shared", changed("*"));
    there.watched("shared");
    for round in 1..=20u64 {
        fs::write(folder.path().join("a"), round.to_string()).unwrap();
        there.fires("shared", round);
        let run = if round % 2 == 0 { here.pull() } else { there.pull() };
        assert_eq!(text(&run, "sourceTriggerId"), "shared");
        here.finish(&run);
        eventually("the trigger hears of the end of its run", || {
            there.get("shared")["state"]["runningAt"].is_null().then_some(())
        });
    }
    assert_eq!(here.who.get("/agent/runs?limit=100").json()["total"], 20);
    // The end of a task on one server is an edge on the other.
    here.who.post("/agent/runs", &json!({ "id": "t", "prompt": "x" }));
    there.on("after", task("task_done", "t"));
    let run = here.pull();
    here.finish(&run);
    there.fires("after", 1);
}
