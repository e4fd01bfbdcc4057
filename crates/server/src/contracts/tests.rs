//! The shell around contracts, tried with one that says everything differently.

use super::*;
use crate::answer::{Reply, refused};
use crate::ask::Ask;
use crate::follow::{self, Plainly, Words};
use crate::openapi::Doc;
use crate::refusal::Kind;
use crate::route::table::{ANYONE, get, open, post, roles};
use crate::route::{Route, Takes};
use crate::write::Out;
use crate::{App, bootstrap_admin};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode};
use mainspring_api::envelope::Failure;
use mainspring_engine::store::LoggedMove;
use mainspring_engine::{Engine, SystemClock, SystemEntropy};
use mainspring_kernel::command::Submit;
use mainspring_kernel::view::tasks;
use mainspring_kernel::{Command, JobType, Principal, TenantId, UserId};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use std::fs;
use std::path::Path;
use std::sync::Arc;

const ADMIN: &str = "an admin token of our own";

/// A contract whose every refusal is a teapot's.
static TEA: Contract = Contract {
    name: "tea",
    prefix: "/tea",
    routes: tea_routes,
    word: |refusal, ids| {
        let body = format!("{:?} {}", refusal.kind, refusal.code);
        refused(StatusCode::IM_A_TEAPOT, body, refusal, ids)
    },
    failure: crate::openapi::shape::<Failure>,
    codes: &[],
};

fn tea_routes(_: &Config) -> Vec<Route> {
    let doc = |id| Doc::new("tea", id, "Tea");
    vec![
        get("/tea/cups", roles!(ANYONE, cups), doc("cups").query(&[("limit", "How many.")])),
        post("/tea/cups", roles!(ANYONE, cups), Takes::Json, doc("brew")),
        get("/tea/break", open!(Open, spill), doc("break")),
        get("/tea/moves", roles!(ANYONE, moves), doc("moves").query(&[("after", "Position.")])),
    ]
}

async fn cups(ask: Ask, _who: Principal) -> Result<Reply, Refusal> {
    match ask.query.as_deref() {
        Some("limit=0") => Err(Rejection::LeaseLost.into()),
        _ => Ok(Reply::other("application/json", "[]").with_status(StatusCode::ACCEPTED)),
    }
}

async fn spill(_ask: Ask) -> Result<Reply, Refusal> {
    panic!("on purpose: the answer is the contract's all the same")
}

async fn moves(ask: Ask, who: Principal) -> Result<Reply, Refusal> {
    let words = Words { name: "tea", teller: || Box::new(Plainly(write_move)) };
    follow::moves(&ask, &who, words).await
}

/// A move as the contract of tasks would show it, from what the stream brings along and no more.
fn write_move(logged: &LoggedMove, out: &mut Out) {
    let step = &logged.transition;
    let last = match step.from {
        Some(from) => tasks::shown(from, logged.run_at, logged.created_at),
        None => tasks::State::Pending,
    };
    for shown in tasks::moves(last, step, logged.run_at) {
        let (job_type, attempt, who) = (&logged.job_type, step.attempt, &step.actor);
        out.raw(&format!("{job_type} {attempt} {who} {} {}\n", shown.from, shown.to));
    }
}

async fn app(contracts: Vec<&'static Contract>, config: Config) -> Arc<App> {
    let store = Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(1)));
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy::default()));
    let settings = mainspring_engine::Config {
        are_types_strict: false,
        ..mainspring_engine::Config::standard()
    };
    let engine = Engine::start(store, clock, entropy, settings).await.unwrap();
    bootstrap_admin(&engine, Some(ADMIN.to_owned())).await.unwrap();
    App::speaking(Spoken(contracts), engine, config)
}

/// Status and body of what is answered to `METHOD path`, with these headers.
async fn ask(app: &Arc<App>, line: &str, headers: &[(&str, &str)]) -> (u16, String) {
    let (method, path) = line.split_once(' ').unwrap();
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = app.respond(request.body(Full::new(Bytes::from("{}"))).unwrap()).await;
    let status = response.status().as_u16();
    (status, String::from_utf8(response.into_body().into_bytes().to_vec()).unwrap())
}

fn bearer() -> (&'static str, String) {
    ("authorization", format!("Bearer {ADMIN}"))
}

#[tokio::test]
async fn what_the_shell_refuses_is_worded_by_the_contract_of_the_path() {
    let app = app(vec![&native::CONTRACT, &TEA], Config::standard()).await;
    let (name, token) = bearer();
    let admin = (name, &*token);
    for (line, headers, told) in [
        ("GET /tea/cups", &[][..], "Unproven AUTH_UNAUTHORIZED"),
        ("GET /tea", &[admin][..], "Unknown REQ_NOT_FOUND"),
        ("GET /tea/pots", &[admin][..], "Unknown REQ_NOT_FOUND"),
        ("GET /tea/cups/", &[admin][..], "Unknown REQ_NOT_FOUND"),
        ("DELETE /tea/cups", &[admin][..], "Method METHOD_NOT_ALLOWED"),
        ("GET /tea/cups?colour=red", &[admin][..], "Wrong REQ_VALIDATION_FAILED"),
        ("GET /tea/cups?limit=0", &[admin][..], "Conflict LEASE_LOST"),
        ("POST /tea/cups", &[admin][..], "Form CONTENT_TYPE_UNSUPPORTED"),
        ("GET /tea/cups", &[admin, ("x-tenant-id", "")][..], "Wrong REQ_VALIDATION_FAILED"),
        ("GET /tea/cups", &[admin, ("x-trace-id", " ")][..], "Wrong REQ_VALIDATION_FAILED"),
        ("GET /tea/cups", &[admin, ("host", "two")][..], "Wrong REQ_VALIDATION_FAILED"),
        ("GET /tea/break", &[][..], "Broken INTERNAL_ERROR"),
    ] {
        assert_eq!(ask(&app, line, headers).await, (418, told.to_owned()), "{line}");
    }
    assert_eq!(ask(&app, "GET /tea/cups", &[admin]).await, (202, "[]".to_owned()));
    // A path that only looks like it, and those of nobody, are the native contract's to word.
    for line in ["GET /teapot", "GET /", "GET /none", "GET /api/v1/none", "GET /tea%2fcups"] {
        let (status, told) = ask(&app, line, &[admin]).await;
        let expected = if line == "GET /" { 303 } else { 404 };
        assert_eq!(status, expected, "{line}: {told}");
        assert_eq!(told.contains("\"success\":false"), status == 404, "{line}: {told}");
    }
}

#[tokio::test]
async fn a_contract_that_is_not_spoken_is_not_there() {
    let app = app(vec![&TEA], Config::standard()).await;
    let (name, token) = bearer();
    let admin = (name, &*token);
    let (status, told) = ask(&app, "GET /api/v1/jobs", &[admin]).await;
    assert_eq!(status, 404, "{told}");
    assert!(told.contains("REQ_NOT_FOUND") && told.contains("\"meta\""), "{told}");
    for outside in ["GET /healthz", "GET /readyz", "GET /metrics", "GET /openapi.json"] {
        assert_eq!(ask(&app, outside, &[]).await.0, 200, "{outside}");
    }
    let document = ask(&app, "GET /openapi.json", &[]).await.1;
    assert!(document.contains("/tea/cups") && !document.contains("/api/v1/jobs\""));
}

#[tokio::test]
async fn strictness_holds_in_every_contract() {
    let config = Config { is_trace_required: true, ..Config::standard() };
    let app = app(vec![&TEA], config).await;
    let (name, token) = bearer();
    let admin = (name, &*token);
    let told = (418, "Wrong TRACE_ID_REQUIRED".to_owned());
    assert_eq!(ask(&app, "GET /tea/cups", &[admin]).await, told);
    assert_eq!(ask(&app, "GET /tea/cups", &[admin, ("x-trace-id", "t")]).await.0, 202);
    assert_eq!(ask(&app, "GET /healthz", &[]).await.0, 200);
}

/// No event of a stream needs a read of its job, whichever contract words it.
#[tokio::test]
async fn moves_bring_along_what_a_view_needs() {
    let app = app(vec![&TEA], Config::standard()).await;
    let engine = app.engine.clone();
    let (tenant, user) = (TenantId::new("default").unwrap(), UserId::new("ann").unwrap());
    let submit = |name: &str, delay_ms| {
        let job_type = JobType::new(name).unwrap();
        let plain = Submit::plain(tenant.clone(), user.clone(), job_type);
        engine.submit(Submit { delay_ms, ..plain })
    };
    let now = submit("now", None).await.unwrap().unwrap().job.id;
    let later = submit("later", Some(60_000)).await.unwrap().unwrap().job.id;
    for job in [later, now] {
        let cancel = Command::Cancel { job, by: user.clone(), reason: None };
        engine.execute_one(cancel).await.unwrap().unwrap();
    }
    let (name, token) = bearer();
    let request = Request::get("/tea/moves?after=0").header("host", "localhost");
    let request = request.header(name, token).body(Full::new(Bytes::new())).unwrap();
    let mut body = app.respond(request).await.into_body();
    let mut told = String::new();
    while !told.contains("now 1 user:ann ready cancelled") {
        let frame = body.frame().await.unwrap().unwrap();
        told += std::str::from_utf8(frame.data_ref().unwrap()).unwrap();
    }
    let lines: Vec<&str> = told.lines().filter(|line| line.contains(" 1 ")).collect();
    assert_eq!(
        lines,
        [
            "now 1 user:ann pending ready",
            "later 1 user:ann pending cancelled",
            "now 1 user:ann ready cancelled",
        ]
    );
}

#[test]
fn contracts_keep_to_their_prefix_and_out_of_each_others_way() {
    let config = Config { has_internal_routes: true, ..Config::standard() };
    for contract in ALL {
        let routes = (contract.routes)(&config);
        assert!(!routes.is_empty(), "{}", contract.name);
        for route in routes {
            let found = Spoken::of(&config).contract(route.path).map(|it| it.name);
            assert_eq!(found, Some(contract.name), "{}", route.path);
        }
        let others = ALL.iter().filter(|other| other.name != contract.name);
        for other in others {
            let below = format!("{}/", contract.prefix);
            assert!(!other.prefix.starts_with(&below) && other.prefix != contract.prefix);
        }
    }
    for route in outside::routes() {
        assert!(Spoken::of(&config).contract(route.path).is_none(), "{}", route.path);
    }
    let none = Config { contracts: vec!["nobody"], ..config };
    assert!(Spoken::of(&none).0.is_empty());
}

/// Every source file of this crate, by its path below `src`.
fn sources(folder: &Path, found: &mut Vec<(String, String)>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(root.join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        match root.join(&path).is_dir() {
            true => sources(&path, found),
            false => {
                let text = fs::read_to_string(root.join(&path)).unwrap();
                found.push((path.to_str().unwrap().to_owned(), text));
            }
        }
    }
}

/// Folders cannot forbid each other anything, so this looks.
#[test]
fn the_shell_knows_no_contract_and_only_errors_choose_a_status() {
    let mut files = Vec::new();
    sources(Path::new(""), &mut files);
    assert!(files.len() > 40, "{} files", files.len());
    for (path, text) in files {
        // The dashboard asks the native contract's handlers: it is no part of the shell either.
        let is_shell = !path.starts_with("contracts") && !path.starts_with("dashboard");
        for contract in ALL {
            let inside = format!("contracts::{}", contract.name);
            assert!(!(is_shell && text.contains(&inside)), "{path} knows {inside}");
        }
        let chooses = text.split("StatusCode::").skip(1).any(|rest| {
            let ends = |c: char| !c.is_ascii_uppercase() && c != '_';
            let name = rest.split(ends).next().unwrap_or_default();
            !["", "OK", "CREATED", "ACCEPTED", "SEE_OTHER"].contains(&name)
        });
        let may = path.ends_with("errors.rs") || path.ends_with("tests.rs");
        assert!(may || !chooses, "{path} chooses the status of a refusal");
    }
}

#[test]
fn every_code_has_a_page() {
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    for code in codes() {
        assert!(pages.join(format!("{code}.md")).is_file(), "docs/errors/{code}.md is missing");
        assert!(has_page(code));
    }
    assert!(!has_page("NOBODYS_CODE"));
}

#[test]
fn a_refusal_says_what_the_kernel_said() {
    let refusal = Refusal::from(Rejection::SamePerson);
    assert_eq!((refusal.kind, refusal.rejection.as_deref()), {
        (Kind::Wrong, Some(&Rejection::SamePerson))
    });
}
