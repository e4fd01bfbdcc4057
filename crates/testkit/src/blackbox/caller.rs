//! Somebody with a token, and what they say most often.

use super::http::{Request, Response};
use serde_json::{Value, json};
use std::net::SocketAddr;

/// Somebody with a token.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Where the server is.
    pub address: SocketAddr,
    /// The access token.
    pub token: String,
}

impl Caller {
    /// A request with the token on it.
    pub fn request(&self, method: &str, path: &str) -> Request {
        Request::new(method, path).token(&self.token)
    }

    /// GET.
    pub fn get(&self, path: &str) -> Response {
        self.request("GET", path).send(self.address)
    }

    /// POST with a JSON body.
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.request("POST", path).json(body).send(self.address)
    }

    /// POST without a body.
    pub fn poke(&self, path: &str) -> Response {
        self.request("POST", path).send(self.address)
    }

    /// PUT with a JSON body.
    pub fn put(&self, path: &str, body: &Value) -> Response {
        self.request("PUT", path).json(body).send(self.address)
    }

    /// DELETE.
    pub fn delete(&self, path: &str) -> Response {
        self.request("DELETE", path).send(self.address)
    }

    /// Submits a job and answers with it.
    #[track_caller]
    pub fn submit(&self, wish: &Value) -> Value {
        self.post("/api/v1/jobs", wish).data()
    }

    /// Submits a job that needs nothing but its type, and answers with its id.
    #[track_caller]
    pub fn submit_plain(&self, job_type: &str) -> String {
        text(&self.submit(&json!({ "job_type": job_type, "payload": {} })), "job_id")
    }

    /// Reads a job.
    #[track_caller]
    pub fn job(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/jobs/{id}")).data()
    }

    /// Reads a job's history.
    #[track_caller]
    pub fn events(&self, id: &str) -> Vec<Value> {
        items(self.get(&format!("/api/v1/jobs/{id}/events")).data())
    }

    /// The states a job went through, the first one included.
    #[track_caller]
    pub fn path(&self, id: &str) -> Vec<String> {
        self.events(id).iter().map(|event| text(event, "to_state")).collect()
    }

    /// Pulls jobs of one type.
    #[track_caller]
    pub fn pull(&self, job_type: &str, limit: usize) -> Vec<Value> {
        self.pull_with(json!({ "worker_id": "w-1", "types": [job_type], "limit": limit }))
    }

    /// Pulls jobs.
    #[track_caller]
    pub fn pull_with(&self, wish: Value) -> Vec<Value> {
        let mut data = self.post("/api/v1/work/pull", &wish).data();
        serde_json::from_value(data["jobs"].take()).expect("a list of jobs")
    }

    /// Pulls the one job of a type that is due, or that soon will be.
    #[track_caller]
    pub fn pull_one(&self, job_type: &str) -> Value {
        let wish = json!({ "worker_id": "w-1", "types": [job_type], "limit": 1, "wait_ms": 30000 });
        self.pull_with(wish).pop().expect("a job within half a minute")
    }

    /// Reports about one attempt; `verb` is `complete`, `fail` or `release`, `more` its fields.
    #[track_caller]
    pub fn report(&self, verb: &str, grant: &Value, more: Value) -> Value {
        let mut item = json!({ "job_id": grant["job_id"], "lease_token": grant["lease_token"] });
        if let (Some(item), Value::Object(more)) = (item.as_object_mut(), more) {
            item.extend(more);
        }
        let wish = json!({ "items": [item] });
        let answer = self.post(&format!("/api/v1/work/{verb}"), &wish);
        items(answer.data()).pop().expect("one answer per item")
    }

    /// Completes an attempt.
    #[track_caller]
    pub fn complete(&self, grant: &Value) -> Value {
        self.report("complete", grant, json!({}))
    }

    /// Fails an attempt.
    #[track_caller]
    pub fn fail(&self, grant: &Value, code: &str, retryable: bool) -> Value {
        let more = json!({ "error_code": code, "message": "as told", "retryable": retryable });
        self.report("fail", grant, more)
    }
}

/// The items of a list.
///
/// # Panics
/// If there is none.
#[track_caller]
pub fn items(mut data: Value) -> Vec<Value> {
    serde_json::from_value(data["items"].take()).expect("a list of items")
}

/// A field that must be text.
///
/// # Panics
/// If it is not.
#[track_caller]
pub fn text(value: &Value, field: &str) -> String {
    match value[field].as_str() {
        Some(text) => text.to_owned(),
        None => panic!("{field} is no text in {value}"),
    }
}
