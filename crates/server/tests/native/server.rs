//! A server to ask, with tokens for everybody.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, Response, StatusCode};
use mainspring_engine::{Clock, Engine, SystemClock, SystemEntropy};
use mainspring_server::{App, Body, Config, bootstrap_admin};
use mainspring_store_memory::{MemoryConfig, MemoryStore};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const ADMIN: &str = "an admin token of our own";

pub(crate) struct Server {
    pub(crate) app: Arc<App>,
    pub(crate) engine: Engine,
}

/// An answer: status, headers and body.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: hyper::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub(crate) fn data(&self) -> Value {
        assert!(self.status.is_success(), "{} {}", self.status, self.text);
        self.json()["data"].clone()
    }

    pub(crate) fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The body without what differs from request to request.
    pub(crate) fn without_ids(&self) -> Value {
        let mut body = self.json();
        body["meta"] = Value::Null;
        body
    }
}

pub(crate) async fn engine() -> Engine {
    engine_at(Arc::new(SystemClock::new())).await
}

/// An engine that goes by `clock`.
pub(crate) async fn engine_at(clock: Arc<dyn Clock>) -> Engine {
    let config = mainspring_engine::Config {
        are_types_strict: false,
        ..mainspring_engine::Config::standard()
    };
    let store = Arc::new(MemoryStore::ephemeral(MemoryConfig::standard(1)));
    let entropy = Arc::new(SystemEntropy::default());
    let engine = Engine::start(store, clock, entropy, config).await.unwrap();
    bootstrap_admin(&engine, Some(ADMIN.to_owned())).await.unwrap();
    engine
}

impl Server {
    pub(crate) async fn new() -> Self {
        Self::with(Config { has_internal_routes: true, ..Config::standard() }).await
    }

    pub(crate) async fn with(config: Config) -> Self {
        let engine = engine().await;
        Server { app: App::new(engine.clone(), config), engine }
    }

    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Response<Body> {
        self.app.respond(request).await
    }

    pub(crate) async fn ask(&self, request: Request<Full<Bytes>>) -> Answer {
        let response = self.send(request).await;
        let (head, body) = response.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: head.status, headers: head.headers, text }
    }

    pub(crate) async fn get(&self, token: &str, path: &str) -> Answer {
        self.ask(request(Method::GET, path, token, None)).await
    }

    pub(crate) async fn post(&self, token: &str, path: &str, body: Value) -> Answer {
        self.ask(request(Method::POST, path, token, Some(body))).await
    }

    pub(crate) async fn put(&self, token: &str, path: &str, body: Value) -> Answer {
        self.ask(request(Method::PUT, path, token, Some(body))).await
    }

    /// A token of `user` in `tenant`.
    pub(crate) async fn token(&self, tenant: &str, user: &str, roles: &[&str]) -> String {
        let wish = json!({ "tenant_id": tenant, "user_id": user, "roles": roles });
        let answer = self.post(ADMIN, "/api/v1/tokens", wish).await;
        assert_eq!(answer.status, StatusCode::CREATED);
        answer.data()["token"].as_str().unwrap().to_owned()
    }

    /// Submits a job and answers with its id.
    pub(crate) async fn submit(&self, token: &str, body: Value) -> String {
        let answer = self.post(token, "/api/v1/jobs", body).await;
        answer.data()["job_id"].as_str().unwrap().to_owned()
    }

    /// Pulls one job.
    pub(crate) async fn pull(&self, token: &str) -> Value {
        let answer = self.post(token, "/api/v1/work/pull", json!({ "worker_id": "w" })).await;
        answer.data()["jobs"][0].clone()
    }
}

pub(crate) fn request(
    method: Method,
    path: &str,
    token: &str,
    body: Option<Value>,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost:7070");
    if !token.is_empty() {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let body = match body {
        Some(body) => {
            request = request.header("content-type", "application/json");
            Bytes::from(body.to_string())
        }
        None => Bytes::new(),
    };
    request.body(Full::new(body)).unwrap()
}

/// A request with headers and raw bytes.
pub(crate) fn raw(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(Bytes::copy_from_slice(body))).unwrap()
}
