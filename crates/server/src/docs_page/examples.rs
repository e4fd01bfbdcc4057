//! A request of every route in four languages, made from the OpenAPI document: what a caller needs
//! to send at least, with values that look like the real ones. Address and token come from the
//! environment, so that an example can be pasted as it is.

#[cfg(test)]
use super::entries;
use serde_json::{Map, Value, json};
use std::fmt::Write;

/// How deep a body is filled in.
const DEPTH_MAX: usize = 6;

/// Values by the name of their field; whatever is not here is made from its schema.
const KNOWN: &[(&str, &str)] = &[
    ("job_type", "\"hello\""),
    ("type", "\"hello\""),
    ("payload", "{\"name\": \"world\"}"),
    ("result", "{\"ok\": true}"),
    ("input_payload", "{\"name\": \"world\"}"),
    ("worker_id", "\"w1\""),
    ("lease_token", "\"LEASE_TOKEN\""),
    ("job_id", "\"job_01k5zq8y3v0000000000000000\""),
    ("error_code", "\"UPSTREAM_BUSY\""),
    ("message", "\"the upstream was busy\""),
    ("reason", "\"looked into it\""),
    ("tenant_id", "\"default\""),
    ("user_id", "\"ann\""),
    ("roles", "[\"submitter\", \"worker\"]"),
    ("kind", "\"cron\""),
    ("cron", "\"0 9 * * MON-FRI\""),
    ("timezone", "\"Europe/Berlin\""),
    ("version", "1"),
];

/// Whole bodies, by the operation, where a schema cannot say what a caller would send: which fields
/// belong together, and what they are good for.
const BODIES: &[(&str, &str)] = &[
    ("setType", r#"{"max_retries":3,"timeout_seconds":60}"#),
    ("pull", r#"{"worker_id":"w1","types":["hello"],"limit":10,"wait_ms":20000,"lease_ms":30000}"#),
    (
        "heartbeat",
        r#"{"worker_id":"w1","lease_ms":30000,"items":[{"job_id":"job_01k5zq8y3v0000000000000000","lease_token":"LEASE_TOKEN"}]}"#,
    ),
    (
        "complete",
        r#"{"items":[{"job_id":"job_01k5zq8y3v0000000000000000","lease_token":"LEASE_TOKEN","result":{"ok":true}}]}"#,
    ),
    (
        "fail",
        r#"{"items":[{"job_id":"job_01k5zq8y3v0000000000000000","lease_token":"LEASE_TOKEN","error_code":"UPSTREAM_BUSY","message":"the upstream was busy","retryable":true}]}"#,
    ),
    ("commitEffect", r#"{"lease_token":"LEASE_TOKEN","value":{"receipt":"r-17"}}"#),
    (
        "createSchedule",
        r#"{"job_type":"hello","kind":"cron","cron":"0 9 * * MON-FRI","timezone":"Europe/Berlin"}"#,
    ),
    (
        "previewUnsavedSchedule",
        r#"{"job_type":"hello","kind":"cron","cron":"0 9 * * MON-FRI","timezone":"Europe/Berlin"}"#,
    ),
    ("updateSchedule", r#"{"job_type":"hello","kind":"interval","interval_seconds":900}"#),
    ("backfillSchedule", r#"{"from":"2026-01-01T00:00:00Z","to":"2026-01-02T00:00:00Z"}"#),
    (
        "createBulk",
        r#"{"action":"requeue","filter":{"type":"hello","error_code":"UPSTREAM_BUSY"},"reason":"the upstream is back"}"#,
    ),
    (
        "createSubscription",
        r#"{"name":"billing","url":"https://example.com/hook","events":["job.failed"]}"#,
    ),
    (
        "createTrigger",
        r#"{"type":"recurring","prompt":"summarise what changed","schedule":{"interval":3600}}"#,
    ),
    (
        "createAgentTrigger",
        r#"{"type":"recurring","prompt":"summarise what changed","schedule":{"interval":3600}}"#,
    ),
    ("putObject", r#"{"risk_tier":"high"}"#),
    ("putDueObject", r#"{"risk_tier":"high"}"#),
    (
        "createNamedTask",
        r#"{"task_id":"report-17","schedule_type":"at","scheduled_at":"2027-01-01T09:00:00Z","payload":{"name":"world"}}"#,
    ),
    (
        "submitTask",
        r#"{"taskType":"hello","idempotencyKey":"order-17","payload":{"name":"world"}}"#,
    ),
    ("scheduleByCron", r#"{"taskType":"hello","cronExpr":"0 9 * * MON-FRI"}"#),
    ("scheduleByInterval", r#"{"taskType":"hello","everySeconds":3600}"#),
];

/// One request.
pub(super) struct Example {
    verb: String,
    /// With values in place of its parameters.
    path: String,
    body: Option<Value>,
    is_stream: bool,
}

impl Example {
    pub(super) fn of(verb: &str, path: &str, operation: &Value, document: &Value) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let mut filled = path.to_owned();
        let mut mark = '?';
        for parameter in parameters {
            let name = parameter["name"].as_str().unwrap_or_default();
            match parameter["in"].as_str() {
                Some("path") => {
                    filled = filled.replace(&format!("{{{name}}}"), &in_path(name, path));
                }
                Some("query") if parameter["required"] == true => {
                    let value = sample(name, &parameter["schema"], document, 0);
                    let value = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                    let _ = write!(filled, "{mark}{name}={value}");
                    mark = '&';
                }
                Some(_) | None => {}
            }
        }
        let id = operation["operationId"].as_str().unwrap_or_default();
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let body = (!schema.is_null()).then(|| body(id, schema, document));
        let ok = &operation["responses"]["200"]["content"];
        let is_stream = ok["text/event-stream"].is_object();
        Example { verb: verb.to_uppercase(), path: filled, body, is_stream }
    }

    /// The request in every language, with the language's name.
    pub(super) fn languages(&self) -> [(&'static str, String); 4] {
        [
            ("curl", self.curl()),
            ("Python", self.python()),
            ("TypeScript", self.typescript()),
            ("Rust", self.rust()),
        ]
    }

    fn curl(&self) -> String {
        let how = if self.is_stream { "-sN" } else { "-s" };
        let mut text = format!("curl {how} ");
        if self.verb != "GET" && !(self.verb == "POST" && self.body.is_some()) {
            let _ = write!(text, "-X {} ", self.verb);
        }
        let _ = writeln!(text, "\"$MAINSPRING_URL{}\" \\", self.path);
        text.push_str("  -H \"Authorization: Bearer $MAINSPRING_TOKEN\"");
        if let Some(body) = &self.body {
            // A body has no quotes of this kind.
            let _ = write!(text, " \\\n  -H \"Content-Type: application/json\" \\\n  -d '{body}'");
        }
        text
    }

    fn python(&self) -> String {
        let mut text = String::from("import json, os, urllib.request\n\n");
        let _ = writeln!(text, "request = urllib.request.Request(");
        let _ = writeln!(text, "    os.environ[\"MAINSPRING_URL\"] + \"{}\",", self.path);
        let _ = writeln!(text, "    method=\"{}\",", self.verb);
        if let Some(body) = &self.body {
            let _ = writeln!(text, "    data=json.dumps({}).encode(),", python(body));
        }
        text.push_str("    headers={\n");
        text.push_str(
            "        \"Authorization\": \"Bearer \" + os.environ[\"MAINSPRING_TOKEN\"],\n",
        );
        if self.body.is_some() {
            text.push_str("        \"Content-Type\": \"application/json\",\n");
        }
        text.push_str("    },\n)\nwith urllib.request.urlopen(request) as answer:\n");
        text.push_str(match self.is_stream {
            true => "    for line in answer:\n        print(line.decode().rstrip())",
            false => "    print(answer.read().decode())",
        });
        text
    }

    fn typescript(&self) -> String {
        let mut text = format!(
            "const answer = await fetch(process.env.MAINSPRING_URL + \"{}\", {{\n",
            self.path
        );
        let _ = writeln!(text, "  method: \"{}\",", self.verb);
        text.push_str("  headers: {\n");
        text.push_str("    authorization: `Bearer ${process.env.MAINSPRING_TOKEN}`,\n");
        if self.body.is_some() {
            text.push_str("    \"content-type\": \"application/json\",\n");
        }
        text.push_str("  },\n");
        if let Some(body) = &self.body {
            let _ = writeln!(text, "  body: JSON.stringify({body}),");
        }
        text.push_str("});\n");
        text.push_str(match self.is_stream {
            true => "for await (const part of answer.body) {\n  process.stdout.write(part);\n}",
            false => "console.log(await answer.text());",
        });
        text
    }

    fn rust(&self) -> String {
        let mut text = String::from("let (url, token) = (std::env::var(\"MAINSPRING_URL\")?, ");
        text.push_str("std::env::var(\"MAINSPRING_TOKEN\")?);\n");
        let _ = writeln!(text, "let mut answer = reqwest::Client::new()");
        let method = self.verb.to_ascii_lowercase();
        let _ = writeln!(text, "    .{method}(format!(\"{{url}}{}\"))", self.path);
        text.push_str("    .bearer_auth(token)\n");
        if let Some(body) = &self.body {
            let _ = writeln!(text, "    .json(&serde_json::json!({body}))");
        }
        text.push_str("    .send()\n    .await?;\n");
        text.push_str(match self.is_stream {
            true => "while let Some(part) = answer.chunk().await? {\n    print!(\"{}\", String::from_utf8_lossy(&part));\n}",
            false => "println!(\"{}\", answer.text().await?);",
        });
        text
    }
}

/// A value in Python's words.
fn python(value: &Value) -> String {
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) => {
            format!("[{}]", items.iter().map(python).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(name, value)| format!("\"{name}\": {}", python(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// What stands in a path for a parameter.
fn in_path(name: &str, path: &str) -> String {
    match name {
        "name" if path.contains("/types/") => "hello".to_owned(),
        "name" if path.contains("/queues/") => "default".to_owned(),
        "name" => "quote".to_owned(),
        "gate" => "risk".to_owned(),
        "object_type" => "memory".to_owned(),
        other => other.to_ascii_uppercase(),
    }
}

fn body(id: &str, schema: &Value, document: &Value) -> Value {
    let known = BODIES.iter().find(|(operation, _)| *operation == id);
    let known = known.and_then(|(_, text)| serde_json::from_str(text).ok());
    known.unwrap_or_else(|| sample("", schema, document, 0))
}

fn resolved<'a>(schema: &'a Value, document: &'a Value) -> &'a Value {
    match schema["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
        Some(pointer) => document.pointer(pointer).unwrap_or(schema),
        None => schema,
    }
}

/// A value that a schema admits, as far as its shape says.
fn sample(name: &str, schema: &Value, document: &Value, depth: usize) -> Value {
    let known = KNOWN.iter().find(|(field, _)| *field == name);
    let schema = resolved(schema, document);
    if let Some(values) = schema["enum"].as_array() {
        return values.first().cloned().unwrap_or_default();
    }
    if let Some(text) = known.map(|(_, text)| text) {
        return serde_json::from_str(text).unwrap_or_default();
    }
    if depth > DEPTH_MAX {
        return json!({});
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        let first = schema[several].as_array().and_then(|kinds| kinds.first());
        if let Some(first) = first.filter(|_| schema["properties"].is_null()) {
            return sample(name, first, document, depth + 1);
        }
    }
    let kind = &schema["type"];
    let kind = kind.as_array().and_then(|kinds| kinds.first()).unwrap_or(kind);
    let kind = kind.as_str().unwrap_or_default();
    match kind {
        "object" => {
            let required = schema["required"].as_array().into_iter().flatten();
            let fields: Map<String, Value> = required
                .filter_map(Value::as_str)
                .map(|field| {
                    let value = sample(field, &schema["properties"][field], document, depth + 1);
                    (field.to_owned(), value)
                })
                .collect();
            Value::Object(fields)
        }
        "array" => json!([sample(singular(name), &schema["items"], document, depth + 1)]),
        "integer" | "number" => schema["minimum"].as_u64().filter(|n| *n > 0).unwrap_or(1).into(),
        "boolean" => Value::Bool(false),
        "string" if schema["format"] == "date-time" => "2027-01-01T09:00:00Z".into(),
        "string" => match name {
            "" => "text".into(),
            name => name.to_owned().into(),
        },
        _ => json!({}),
    }
}

/// The name of one of several.
fn singular(name: &str) -> &str {
    match name {
        "types" => "type",
        "roles" => "role",
        _ => "",
    }
}

/// Whether a body has everything that its schema requires, all the way down.
#[cfg(test)]
pub(super) fn has_required(value: &Value, schema: &Value, document: &Value) -> bool {
    let schema = resolved(schema, document);
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let Value::Object(fields) = value else { return true };
    required.clone().all(|name| fields.contains_key(name))
        && entries(&schema["properties"])
            .filter_map(|(name, below)| Some((fields.get(name)?, below)))
            .all(|(value, below)| has_required(value, below, document))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_an_example_with_all_that_is_required() {
        let document: Value = serde_json::from_str(&crate::openapi::document(true)).unwrap();
        let mut count = 0;
        for (path, item) in entries(&document["paths"]) {
            for (verb, operation) in entries(item) {
                let example = Example::of(verb, path, operation, &document);
                count += 1;
                assert!(!example.path.contains('{'), "{verb} {path}: {}", example.path);
                let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
                if let Some(body) = &example.body {
                    assert!(has_required(body, schema, &document), "{verb} {path}: {body}");
                    assert!(!body.to_string().contains('\''), "{body}");
                }
                for (language, text) in example.languages() {
                    assert!(text.contains(&example.path), "{language}: {text}");
                }
            }
        }
        assert!(count > 100, "{count}");
    }

    #[test]
    fn every_body_is_of_an_operation_that_is_there() {
        let document: Value = serde_json::from_str(&crate::openapi::document(true)).unwrap();
        let operations = entries(&document["paths"]).flat_map(|(_, item)| entries(item));
        let names: Vec<&str> =
            operations.filter_map(|(_, operation)| operation["operationId"].as_str()).collect();
        for (operation, text) in BODIES {
            assert!(names.contains(operation), "{operation}");
            assert!(serde_json::from_str::<Value>(text).is_ok(), "{operation}");
        }
    }

    #[test]
    fn the_first_submission_is_what_a_newcomer_would_write() {
        let document: Value = serde_json::from_str(&crate::openapi::document(true)).unwrap();
        let operation = &document["paths"]["/api/v1/jobs"]["post"];
        let example = Example::of("post", "/api/v1/jobs", operation, &document);
        assert_eq!(
            example.curl(),
            "curl -s \"$MAINSPRING_URL/api/v1/jobs\" \\\n  \
             -H \"Authorization: Bearer $MAINSPRING_TOKEN\" \\\n  \
             -H \"Content-Type: application/json\" \\\n  \
             -d '{\"job_type\":\"hello\",\"payload\":{\"name\":\"world\"}}'"
        );
        assert!(example.python().contains("json.dumps({\"job_type\": \"hello\""));
    }
}
