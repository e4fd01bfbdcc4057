//! What the file may say, what it may not, and who wins.

use super::layers::{Flags, resolve};
use super::*;
use mainspring_kernel::calendar::Rhythm;

fn read(text: &str) -> Result<Settings, Vec<String>> {
    file::read(text, Settings::standard()).map_err(|problems| {
        problems
            .into_iter()
            .map(|problem| format!("{}: {}", problem.line.unwrap_or(0), problem.text))
            .collect()
    })
}

const WHOLE: &str = r#"
[server]
listen = "127.0.0.1:7071"
internal_routes = true
contracts = ["native", "jobs"]
hosts = ["jobs.example.org"]
[strict]
idempotency_key = true
trace_id = true
[idempotency]
window = "2h"
[store]
data_dir = "/tmp/x"
segment_bytes = 1_048_576
snapshot_bytes_min = 4194304
finished_bytes_max = 131072
[limits]
connections = 100
streams = 40
streams_per_token = 7
waits_per_tenant = 9
body_bytes = 134217728
backlog_bytes = 1073741824
backlog_bytes_per_tenant = 2097152
[executor]
mode = "process"
command = "/usr/bin/job"
args = ["--one", "two words"]
cwd = "/srv"
env = ["LANG", "A=b"]
kill_grace_ms = 700
url = "https://a.example/hook"
timeout_ms = 900
programs = ["/usr/bin/other"]
concurrency = 3
grace = "2s"
[webhooks]
allow_private = true
[nats]
url = "nats://127.0.0.1:4333"
[scheduler]
allow_client_clock = true
restart_grace = "1500ms"
[retention]
finished = "1d"
dlq = "2d"
audit = "36h"
stream = "12h"
[audit]
anchor = "/srv/anchor"
history_every = "90s"
[types]
strict = false
[types."market_data_sync"]
domain = "market-data"
schedulable = true
priority = 50
timeout_seconds = 1800
max_retries = 0
concurrency_limit = 2
executor = { mode = "process", command = "a\nb \"c\"", shell = true }
[types."print"]
executor = "inprocess"
sla = { start_within_ms = 5000 }
[types."send".executor]
mode = "webhook"
url = "https://b.example"
[templates."risk-continuous-monitor-interval"]
job_type = "risk_continuous_monitor"
interval_seconds = 120
[governance]
auto_verify_budget = 2
unknowable_tries_max = 3
[bulk]
approval_above = 10
[alerts]
retrying_ratio = 0.2
dlq_growth_per_minute = 20
invalid_transitions = 5
lag = "10m"
no_worker = "30s"
schedule_skipped = false
check = "1s"
hold = "2s"
quiet = "1h"
webhook_url = ""
[triggers]
roots = ["/srv/inbox"]
check_ms = 1000
settle_ms = 200
stuck_ms = 60000
"#;

#[test]
fn a_limit_brings_the_shares_that_are_not_said() {
    let limits = read(WHOLE).unwrap().limits;
    assert_eq!(limits.connections, Bounds { all: 100, tenant: 50, token: 25 });
    assert_eq!(limits.streams, Bounds { all: 40, tenant: 20, token: 7 });
    assert_eq!(limits.waits, Bounds { tenant: 9, ..Settings::standard().limits.waits });
    assert_eq!(limits.body_bytes, Bounds::shared(128 << 20));
    // The largest body fits the share of a token, however small the whole is.
    let small = read("[limits]\nbody_bytes = 20971520").unwrap().limits.body_bytes;
    assert_eq!(small, Bounds { all: 20 << 20, tenant: 16 << 20, token: 16 << 20 });
    assert_eq!(read("[limits]\nbody_bytes = 1000").unwrap_err().len(), 1);
}

#[test]
fn room_for_jobs_is_half_of_the_memory_unless_it_is_said() {
    let standard = Settings::standard();
    let (all, tenant) = standard.backlog();
    assert_eq!((all, tenant), (memory::bytes() / 2, memory::bytes() / 4));
    assert_eq!(read(WHOLE).unwrap().backlog(), (1 << 30, 2 << 20));
    let store = StoreChoice::Postgres { url: String::new(), from: "" };
    assert_eq!(Settings { store, ..standard }.backlog().0, BACKLOG_BYTES_DEFAULT);
    let tenant = read("[limits]\nbacklog_bytes = 1048576\nbacklog_bytes_per_tenant = 9999999");
    assert_eq!(tenant.unwrap().backlog(), (1 << 20, 1 << 20), "a part is not more than the whole");
}

#[test]
fn every_documented_key_is_read() {
    let settings = read(WHOLE).unwrap();
    assert_eq!(settings.listen.port(), 7071);
    assert!(settings.internal_routes && settings.allow_client_clock && !settings.types_strict);
    assert!(settings.contracts.contains(&"native"));
    assert_eq!(settings.hosts, ["jobs.example.org"]);
    assert!(settings.strict.idempotency_key && settings.strict.trace_id);
    assert_eq!(settings.retention.stream.as_secs(), 12 * 3600);
    let nats = settings.nats.as_ref().map(ToString::to_string);
    assert_eq!(nats.as_deref(), Some("nats://127.0.0.1:4333"));
    assert_eq!(settings.key_window_secs(), Some(7_200));
    assert_eq!(settings.store, StoreChoice::Directory("/tmp/x".into()));
    assert_eq!(settings.layout.segment_bytes, 1 << 20);
    assert_eq!(settings.layout.snapshot_bytes_min, 4 << 20);
    assert_eq!(settings.layout.finished_bytes_max, 128 << 10);
    assert_eq!(settings.restart_grace, Duration::from_millis(1500));
    assert_eq!(settings.retention.audit, Duration::from_secs(36 * 3600));
    assert_eq!(settings.audit_anchor.as_deref(), Some(std::path::Path::new("/srv/anchor")));
    assert_eq!(settings.audit_history_every, Duration::from_secs(90));
    assert_eq!(settings.executing.wish.mode, Mode::Process);
    assert_eq!((settings.executing.concurrency, settings.webhooks.allow_private), (3, true));
    let modes: Vec<_> = settings.types.iter().map(|spec| spec.mode(Mode::Pull)).collect();
    assert_eq!(modes, [Mode::Process, Mode::InProcess, Mode::Webhook]);
    let spec = &settings.types[0];
    assert_eq!(
        (spec.timeout_ms, spec.max_retries, spec.concurrency_limit),
        (1_800_000, 0, Some(2))
    );
    let rhythm = Rhythm::Interval { every_secs: 120, phase_secs: 0 };
    assert_eq!(settings.templates[0].spec.rhythm, rhythm);
}

#[test]
fn contracts_are_those_that_are_named_and_exist() {
    let contracts = |text: &str| {
        read(&format!("[server]\ncontracts = {text}")).map(|it| (it.contracts, it.not_yet))
    };
    let built = mainspring_server::contract_names();
    assert_eq!(Settings::standard().contracts, built, "all of them unless it is said");
    assert_eq!(contracts("[\"native\", \"native\"]"), Ok((vec!["native"], Vec::new())));
    // What the version before printed is still read, whatever of it exists.
    let (all, later) = contracts(&format!("{CONTRACTS:?}")).unwrap();
    assert_eq!(all, built);
    assert_eq!(later.len(), CONTRACTS.len() - built.len());
    for later in CONTRACTS.iter().filter(|name| !built.contains(name)) {
        let told = contracts(&format!("[{later:?}]")).unwrap_err();
        assert!(told[0].contains("must name at least one of native"), "{told:?}");
    }
    let told = contracts("[]").unwrap_err();
    assert!(told[0].contains("must name at least one of native"), "{told:?}");
    assert_eq!(
        contracts("[\"nativ\", \"tasks\", \"x\"]").unwrap_err(),
        [
            "2: server.contracts names no contract \"nativ\"; did you mean \"native\"?",
            "2: server.contracts names no contract \"x\"",
        ]
    );
}

#[test]
fn a_key_window_is_a_span_or_for_ever() {
    let window = |text: &str| {
        read(&format!("[idempotency]\nwindow = {text:?}")).map(|it| it.key_window_secs())
    };
    assert_eq!(window("forever"), Ok(None));
    assert_eq!(window("1s"), Ok(Some(1)));
    for bad in ["", "0s", "999ms", "never", "200000d"] {
        assert!(window(bad).is_err(), "{bad}");
    }
    for bad in ["[server]\nhosts = [\"\"]", "[server]\nhosts = [\"a b\"]", "[strict]\nkeys = true"]
    {
        assert!(read(bad).is_err(), "{bad}");
    }
}

#[test]
fn an_entry_of_a_type_is_told_from_another_by_what_it_says() {
    let entry = |text: &str| read(&format!("[types.a]\n{text}")).unwrap().types[0].file_entry;
    assert!(entry("priority = 7").is_some());
    assert_eq!(entry("priority = 7\nqueue = \"q\""), entry("queue = \"q\"\npriority = 7"));
    let all = [
        "priority = 7",
        "priority = 8",
        "queue = \"7\"",
        "domain = \"7\"",
        "schedulable = false",
        "timeout_seconds = 7",
        "max_retries = 7",
        "concurrency_limit = 7",
        "concurrency_scope = \"user\"",
        "backoff_base_ms = 7",
        "backoff_max_ms = 77777",
        "executor = \"pull\"",
        "executor = \"inprocess\"",
        "executor = { mode = \"process\", command = \"x\" }",
        "executor = { mode = \"process\", command = \"x\", args = [\"y\"] }",
        "",
    ];
    let mut digests: Vec<_> = all.iter().map(|text| entry(text)).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), all.len());
}

#[test]
fn what_is_shown_can_be_read_again() {
    let settings = read(WHOLE).unwrap();
    let again = read(&show::toml(&settings)).unwrap();
    assert_eq!(
        Settings { not_yet: Vec::new(), ..settings },
        Settings { not_yet: Vec::new(), ..again }
    );
}

#[test]
fn all_problems_are_told_at_once_with_lines_and_suggestions() {
    let told = read(
        "[server]\nlisten = 7070\nintrnal_routes = true\n[retention]\nfinished = \"7\"\n\
         [serever]\n[types.a]\nprioritty = 1\npriority = 999\n[executor]\nmode = \"pul\"\n",
    )
    .unwrap_err();
    assert_eq!(
        told,
        [
            "2: server.listen must be text in quotes, not an integer",
            "3: unknown key \"intrnal_routes\" in [server]; did you mean \"internal_routes\"?",
            "5: retention.finished is wrong: \"7\" is not a length of time; \
         write it like 7d, 36h, 15m, 30s, 250ms",
            "6: unknown key \"serever\"; did you mean \"server\"?",
            "8: unknown key \"prioritty\" in [types.a]; did you mean \"priority\"?",
            "9: types.a.priority must be between 0 and 255",
            "11: executor.mode is \"pul\", must be one of pull, inprocess, process, webhook; \
         did you mean \"pull\"?",
        ]
    );
}

#[test]
fn broken_toml_names_its_line() {
    let told = read("[server]\nlisten = \n").unwrap_err();
    assert!(told[0].starts_with("2: "), "{told:?}");
}

#[test]
fn a_file_may_choose_one_store_only() {
    let told = read("[store]\ndata_dir = \"a\"\nephemeral = true\n").unwrap_err();
    assert!(told[0].contains("choose one of"), "{told:?}");
}

#[test]
fn flag_beats_environment_beats_file_beats_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mainspring.toml");
    std::fs::write(&path, "[server]\nlisten = \"127.0.0.1:1\"\n[store]\ndata_dir = \"file\"\n")
        .unwrap();
    let env = |name: &str| match name {
        "MAINSPRING_LISTEN" => Some("127.0.0.1:2".to_owned()),
        "DATABASE_URL" => Some("postgres://u:p@h/db".to_owned()),
        _ => None,
    };
    let none = |_: &str| None;
    let base = Settings::standard;
    let file = Flags { config: Some(path), ..Flags::default() };
    let settings = resolve(base(), &Flags::default(), &none).unwrap();
    assert_eq!(settings.store, StoreChoice::Directory("./mainspring-data".into()));
    let settings = resolve(base(), &file, &none).unwrap();
    assert_eq!(settings.listen.port(), 1);
    let settings = resolve(base(), &file, &env).unwrap();
    assert_eq!(settings.listen.port(), 2);
    assert!(matches!(settings.store, StoreChoice::Postgres { from: "DATABASE_URL", .. }));
    let flags = Flags { ephemeral: true, listen: Some(([127, 0, 0, 1], 3).into()), ..file.clone() };
    let settings = resolve(base(), &flags, &env).unwrap();
    assert_eq!((settings.listen.port(), settings.store), (3, StoreChoice::Ephemeral));
}

#[test]
fn bad_variables_are_all_told() {
    let env = |name: &str| match name {
        "MAINSPRING_LISTEN" => Some("nowhere".to_owned()),
        "MAINSPRING_EPHEMERAL" => Some("perhaps".to_owned()),
        _ => None,
    };
    let error = resolve(Settings::standard(), &Flags::default(), &env).unwrap_err();
    assert_eq!(error.problems.len(), 2, "{error}");
}

/// The mode that a server would start with, for this file and these variables.
fn mode(file: &str, variables: &[(&str, &str)]) -> Result<&'static str, String> {
    let base = read(file).map_err(|told| told.join("\n"))?;
    let env = |name: &str| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let told = resolve(base, &Flags::default(), &env);
    told.map(|it| it.executing.wish.mode.as_str()).map_err(|error| error.to_string())
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

#[test]
fn the_executor_mode_is_chosen_by_file_and_environment() {
    let env = |mode| [("MAINSPRING_EXECUTOR_MODE", mode)];
    for plain in ["pull", "inprocess"] {
        assert_eq!(mode("", &env(plain)).as_deref(), Ok(plain));
        assert_eq!(mode(&format!("[executor]\nmode = {plain:?}"), &[]).as_deref(), Ok(plain));
    }
    let told = mode("", &env("celery")).unwrap_err();
    assert!(told.contains("must be one of pull, inprocess, process, webhook"), "{told}");
    // What goes with the other modes may stand there all the same.
    let file = "[executor]\nmode = \"pull\"\ncommand = \"x\"\nurl = \"https://a.example\"";
    assert_eq!(mode(file, &[]), Ok("pull"));
    assert_eq!(mode(file, &env("process")), Ok("process"));
    let told = mode(file, &env("webhook")).unwrap_err();
    assert!(told.contains("needs a secret to sign with"), "{told}");
    let both = [env("webhook")[0], ("MAINSPRING_WEBHOOK_SECRET", SECRET)];
    assert_eq!(mode(file, &both), Ok("webhook"));
    let told = mode("", &env("process")).unwrap_err();
    assert!(told.contains("executor.command is needed by a process"), "{told}");
    let told = mode("", &[("MAINSPRING_WEBHOOK_SECRET", "hush")]).unwrap_err();
    assert!(told.contains("must be whsec_") && !told.contains("hush"), "{told}");
    let told = mode("[types.a]\nexecutor = { mode = \"webhook\", url = \"https://b\" }", &[]);
    assert!(told.unwrap_err().contains("needs a secret"));
}

#[test]
fn an_executor_that_makes_no_sense_is_told_with_its_line() {
    for (text, told) in [
        ("[types.a]\nexecutor = \"process\"", "2: types.a.executor executor.command is needed"),
        ("[types.a]\nexecutor = 7", "2: types.a.executor must be text"),
        ("[types.a.executor]\nmode = \"pull\"\nurl = \"https://a\"", "2: types.a.executor.mode"),
        ("[types.a.executor]\nmode = \"pull\"\nurll = \"\"", "3: unknown key \"urll\""),
        ("[executor]\nmode = \"pull\"\nurl = \"ftp://a\"", "2: executor.mode cannot be used"),
        ("[webhooks]\nsecrets = [\"hush\"]", "2: webhooks.secrets must be whsec_"),
    ] {
        let problems = read(text).unwrap_err();
        assert!(problems.iter().any(|it| it.starts_with(told)), "{text}: {problems:?}");
        assert!(problems.iter().all(|it| !it.contains("hush")), "{problems:?}");
    }
}

#[test]
fn the_file_may_start_what_it_names_and_secrets_are_not_shown() {
    let settings = read(WHOLE).unwrap();
    let startable = settings.startable();
    assert_eq!(startable.programs, ["/usr/bin/other"], "a shell of the file is no shell for all");
    let commands: Vec<_> = startable.commands.iter().map(|it| &*it.command).collect();
    assert_eq!(commands, ["a\nb \"c\"", "/usr/bin/job"]);
    let text = format!("[webhooks]\nsecrets = [{SECRET:?}]");
    let shown = show::toml(&read(&text).unwrap());
    assert!(!shown.contains("MfKQ") && shown.contains("# secrets = [ 1"), "{shown}");
}

#[test]
fn passwords_are_not_shown() {
    let shown = mainspring_store_postgres::address::shown;
    assert_eq!(shown("postgres://u:s@h:5433/db"), "postgres://u:***@h:5433/db");
    assert!(!shown("postgres://h/db?password=hunter2").contains("hunter2"));
}

#[test]
fn templates_are_schedules_that_make_sense() {
    let one = |entry: &str| read(&format!("[templates.x]\njob_type = \"a\"\n{entry}"));
    let settings = one("cron = \"0 2 * * *\"\ntimezone = \"Asia/Shanghai\"").unwrap();
    let template = &settings.templates[0];
    assert_eq!((&*template.name, template.spec.name.as_deref()), ("x", Some("x")));
    assert_eq!(template.spec.job_type.as_str(), "a");
    let Rhythm::Cron { cron, zone, .. } = &template.spec.rhythm else { panic!("{template:?}") };
    assert_eq!((cron.as_str(), zone.name()), ("0 2 * * *", "Asia/Shanghai"));
    // Every difference in what an entry says makes another of it; its name and place do not.
    let entries = [
        "cron = \"0 2 * * *\"\ntimezone = \"Asia/Shanghai\"",
        "cron = \"0 2 * * *\"",
        "cron = \"0 3 * * *\"",
        "interval_seconds = 2",
        "interval_seconds = 3",
    ];
    let digests = entries.map(|entry| one(entry).unwrap().templates[0].entry);
    for (place, entry) in digests.iter().enumerate() {
        assert!(!digests[..place].contains(entry), "{}", entries[place]);
    }
    assert_eq!(
        one("timezone = \"UTC\"\ncron = \"0 2 * * *\"").unwrap().templates[0].entry,
        digests[1]
    );
    for (entry, told) in [
        ("", "1: templates.x.interval_seconds or cron must be set, one of the two"),
        ("cron = \"* * * *\"", "3: templates.x.cron is refused"),
        ("cron = \"0 0 31 2 *\"", "3: templates.x.cron is refused"),
        ("cron = \"@daily\"\ntimezone = \"Nowhere\"", "4: templates.x.timezone must be the name"),
        ("interval_seconds = 31622401", "3: templates.x.interval_seconds must be between"),
        ("interval_seconds = 60\ntimezone = \"UTC\"", "4: templates.x.timezone belongs to cron"),
        ("interval_seconds = 60\npayload = \"{}\"", "4: unknown key \"payload\" in [templates.x]"),
    ] {
        let problems = one(entry).unwrap_err();
        assert!(problems.iter().any(|it| it.starts_with(told)), "{entry}: {problems:?}");
    }
    let many: String = (0..257)
        .map(|nth| format!("[templates.x{nth}]\njob_type = \"a\"\ninterval_seconds = 5\n"))
        .collect();
    assert!(read(&many).unwrap_err()[0].contains("more than 256 templates"));
    let long = "x".repeat(201);
    let text = format!("[templates.{long}]\njob_type = \"a\"\ninterval_seconds = 5\n");
    assert!(read(&text).unwrap_err()[0].contains("makes no schedule: name"));
}

#[test]
fn the_quant_example_holds_the_31_types_and_4_templates() {
    let settings = read(include_str!("../../../../examples/quant.toml")).unwrap();
    assert_eq!((settings.types.len(), settings.templates.len()), (31, 4));
    let scope = mainspring_kernel::registry::ConcurrencyScope::User;
    assert!(settings.types.iter().all(|spec| spec.concurrency_scope == scope));
    let tier = |priority| settings.types.iter().filter(|spec| spec.priority == priority).count();
    assert_eq!((tier(100), tier(50), tier(10)), (4, 24, 3));
    for template in &settings.templates {
        assert!(settings.types.iter().any(|spec| spec.name == template.spec.job_type));
    }
}

/// The page people read says what holds when nobody says anything.
#[test]
fn the_page_of_limits_shows_the_settings_that_hold() {
    const BEGIN: &str = "<!-- settings: written by `cargo xtask bless` -->";
    const END: &str = "<!-- end of settings -->";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md");
    let kept = std::fs::read_to_string(path).unwrap();
    let (before, rest) = kept.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let shown = show::toml(&Settings::standard());
    let fresh = format!("{before}{BEGIN}\n\n```toml\n{shown}```\n\n{END}{after}");
    if std::env::var_os("MAINSPRING_BLESS").is_some() {
        std::fs::write(path, &fresh).unwrap();
        return;
    }
    assert!(kept == fresh, "docs/limits.md is stale: run `cargo xtask bless` and read the diff");
}
