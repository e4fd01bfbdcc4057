//! The OpenAPI document as a page for people: plain HTML, no script, nothing from elsewhere. Routes
//! come in the order in which a newcomer needs them, each with a request in four languages.

mod examples;

use examples::Example;
use serde_json::Value;
use std::cmp::Reverse;
use std::fmt::Write;

/// What is needed first, in this order; the rest follows in the order of the document.
const FIRST: &[&str] = &[
    "put /api/v1/types/{name}",
    "post /api/v1/jobs",
    "get /api/v1/jobs/{job_id}",
    "get /api/v1/jobs",
    "get /api/v1/jobs/{job_id}/explain",
    "post /api/v1/work/pull",
    "post /api/v1/work/heartbeat",
    "post /api/v1/work/complete",
    "post /api/v1/work/fail",
    "get /api/v1/dlq/groups",
    "get /api/v1/dlq/items",
    "post /api/v1/schedules",
    "post /api/v1/schedules/preview",
    "get /api/v1/runtime",
    "get /api/v1/whoami",
    "post /api/v1/tokens",
];
/// The chapters, in the order of first use; others follow.
const CHAPTERS: &[&str] = &[
    "jobs",
    "work",
    "registry",
    "dlq",
    "schedules",
    "admin",
    "alerts",
    "bulk",
    "subscriptions",
    "triggers",
    "audit",
    "governance",
    "tasks",
    "orchestration",
    "agent",
    "scheduler",
    "internal",
    "outside",
];

/// The page's style sheet.
pub(crate) const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884;--soft:#8882;--accent:#2a6fdb}
body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
h1{margin-bottom:.2rem}h2{margin-top:2.5rem;border-bottom:1px solid var(--line)}
section{margin:1.5rem 0;padding:1rem;border:1px solid var(--line);border-radius:.5rem}
section h3{margin:0;font:600 1rem ui-monospace,monospace;overflow-wrap:anywhere}
section p{margin:.4rem 0}code{font:.92em ui-monospace,monospace}
.verb{display:inline-block;min-width:4.5rem;color:var(--accent)}
table{border-collapse:collapse;width:100%;margin:.5rem 0}
td,th{text-align:left;vertical-align:top;padding:.25rem .6rem .25rem 0}
tr+tr{border-top:1px solid var(--soft)}td:first-child{white-space:nowrap}
nav{display:flex;flex-wrap:wrap;gap:.3rem 1rem}a{color:var(--accent)}.soft{opacity:.7}
details{margin:.3rem 0}summary{cursor:pointer}
pre{overflow-x:auto;margin:.3rem 0;padding:.7rem;border-radius:.3rem;background:var(--soft);
font:.85rem/1.45 ui-monospace,monospace}
@media(max-width:40rem){body{margin:1rem auto}section{padding:.7rem}
table,tbody,tr,td{display:block;width:100%}td:first-child{white-space:normal;padding-top:.4rem}
td{padding:0 0 .2rem;overflow-wrap:anywhere}}
";

/// Renders the page.
pub(crate) fn page(document: &Value) -> String {
    let mut html = String::with_capacity(64 << 10);
    html.push_str("<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">");
    html.push_str("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
    html.push_str("<title>Mainspring API</title><link rel=\"stylesheet\" href=\"/docs.css\">");
    html.push_str("</head><body><h1>Mainspring API</h1>");
    put(&mut html, "<p>", &document["info"]["description"], "</p>");
    html.push_str("<p><a href=\"/openapi.json\">OpenAPI document</a></p><nav>");
    let tags = tags(document);
    for tag in &tags {
        let tag = escaped(tag);
        // Writing to a string cannot fail, here and below.
        let _ = write!(html, "<a href=\"#{tag}\">{tag}</a>");
    }
    html.push_str("<a href=\"#shapes\">shapes</a></nav>");
    for tag in &tags {
        let _ = write!(html, "<h2 id=\"{0}\">{0}</h2>", escaped(tag));
        for (verb, path, operation) in operations(document, tag) {
            write_operation(&mut html, (verb, path), operation, document);
        }
    }
    html.push_str("<h2 id=\"shapes\">shapes</h2>");
    for (name, schema) in entries(&document["components"]["schemas"]) {
        let _ = write!(html, "<section id=\"shape-{0}\"><h3>{0}</h3>", escaped(name));
        put(&mut html, "<p>", &schema["description"], "</p>");
        write_fields(&mut html, schema);
        html.push_str("</section>");
    }
    html.push_str("</body></html>");
    html
}

/// The operations of a chapter, those that are needed first before the others.
fn operations<'a>(document: &'a Value, tag: &str) -> Vec<(&'a str, &'a str, &'a Value)> {
    let mut found = Vec::new();
    for (path, item) in entries(&document["paths"]) {
        for (verb, operation) in entries(item) {
            // What comes before everything else opens the first chapter, whatever it is about.
            let is_first = format!("{verb} {path}") == FIRST[0];
            let chapter =
                if is_first { CHAPTERS.first().copied() } else { operation["tags"][0].as_str() };
            if chapter == Some(tag) {
                found.push((verb, path, operation));
            }
        }
    }
    let place = |verb: &str, path: &str| {
        let name = format!("{verb} {path}");
        FIRST.iter().position(|first| *first == name).unwrap_or(FIRST.len())
    };
    found.sort_by_key(|(verb, path, _)| place(verb, path));
    found
}

/// The tags in the order of first use.
fn tags(document: &Value) -> Vec<String> {
    let mut tags: Vec<String> = Vec::new();
    for (_, item) in entries(&document["paths"]) {
        for (_, operation) in entries(item) {
            let tag = operation["tags"][0].as_str().unwrap_or_default();
            if !tags.iter().any(|known| known == tag) {
                tags.push(tag.to_owned());
            }
        }
    }
    let place = |tag: &String| CHAPTERS.iter().rev().position(|chapter| chapter == tag);
    tags.sort_by_key(|tag| Reverse(place(tag)));
    tags
}

fn write_operation(
    html: &mut String,
    (verb, path): (&str, &str),
    operation: &Value,
    document: &Value,
) {
    let example = Example::of(verb, path, operation, document);
    let verb = verb.to_uppercase();
    let _ = write!(
        html,
        "<section><h3><span class=\"verb\">{}</span>{}</h3>",
        escaped(&verb),
        escaped(path)
    );
    put(html, "<p>", &operation["summary"], "</p>");
    put(html, "<p class=\"soft\">", &operation["description"], "</p>");
    let query: Vec<_> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|parameter| parameter["in"] == "query")
        .collect();
    if !query.is_empty() {
        html.push_str("<table>");
        for parameter in query {
            put(html, "<tr><td><code>?", &parameter["name"], "=</code></td>");
            put(html, "<td>", &parameter["description"], "</td></tr>");
        }
        html.push_str("</table>");
    }
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !body.is_null() {
        let _ = write!(html, "<p>Takes {}</p>", kind(body));
    }
    for (status, response) in entries(&operation["responses"]).filter(|(one, _)| *one != "default")
    {
        for (content_type, content) in entries(&response["content"]) {
            let data = &content["schema"]["properties"]["data"];
            let told = if data.is_null() { escaped(content_type) } else { kind(data) };
            let _ = write!(html, "<p>Gives <code>{}</code> {told}</p>", escaped(status));
        }
    }
    let id = escaped(operation["operationId"].as_str().unwrap_or_default());
    for (language, text) in example.languages() {
        let is_open = if language == "curl" { " open" } else { "" };
        let _ = write!(html, "<details name=\"{id}\"{is_open}><summary>{language}</summary>");
        let _ = write!(html, "<pre><code>{}</code></pre></details>", escaped(&text));
    }
    html.push_str("</section>");
}

fn write_fields(html: &mut String, schema: &Value) {
    let required = schema["required"].as_array();
    html.push_str("<table>");
    for (name, field) in entries(&schema["properties"]) {
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == name));
        let _ = write!(
            html,
            "<tr><td><code>{}</code>{}</td><td class=\"soft\">{}</td>",
            escaped(name),
            if is_required { "" } else { " <span class=\"soft\">optional</span>" },
            kind(field)
        );
        let told = field["description"].as_str().unwrap_or_default();
        let _ = write!(html, "<td>{}</td></tr>", escaped(told));
    }
    html.push_str("</table>");
}

/// What kind of value a schema stands for, in a word, with a link if it has a name.
fn kind(schema: &Value) -> String {
    if let Some(reference) = schema["$ref"].as_str() {
        let name = escaped(reference.rsplit('/').next().unwrap_or_default());
        return format!("<a href=\"#shape-{name}\">{name}</a>");
    }
    for several in ["oneOf", "anyOf", "allOf"] {
        if let Some(kinds) = schema[several].as_array() {
            return kinds.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    if schema["items"].is_object() {
        return format!("list of {}", kind(&schema["items"]));
    }
    if schema["properties"]["items"].is_object() {
        return format!("page, {}", kind(&schema["properties"]["items"]));
    }
    match &schema["type"] {
        Value::String(name) => escaped(name),
        Value::Array(names) => {
            let names = names.iter().filter_map(Value::as_str).map(escaped);
            names.collect::<Vec<_>>().join(" or ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => "any JSON".to_owned(),
    }
}

fn entries(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

/// Text between two pieces of HTML; nothing if there is no text.
fn put(html: &mut String, before: &str, text: &Value, after: &str) {
    if let Some(text) = text.as_str() {
        html.push_str(before);
        html.push_str(&escaped(text));
        html.push_str(after);
    }
}

fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            other => html.push(other),
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_tells_every_route_and_links_nowhere_else() {
        let document = crate::openapi::document(true);
        let page = page(&serde_json::from_str(&document).unwrap());
        for path in ["/api/v1/jobs/batch", "/api/v1/work/pull", "/api/v1/dlq/items"] {
            assert!(page.contains(path), "{path}");
        }
        // An example may name a place; nothing is loaded from one or leads there.
        assert!(!page.contains("=\"http"));
        assert!(!page.contains("<script") && !page.contains("style=\""));
        let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(at("id=\"jobs\"") < at("id=\"work\"") && at("id=\"work\"") < at("id=\"outside\""));
        assert!(at("/api/v1/jobs</h3>") < at("/api/v1/jobs/batch</h3>"), "first things first");
        assert_eq!(page.matches("<summary>curl").count(), page.matches("<summary>Rust").count());
        assert!(page.matches("<summary>Python").count() > 100);
        for link in page.split("href=\"#").skip(1) {
            let target = link.split('"').next().unwrap();
            assert!(page.contains(&format!("id=\"{target}\"")), "{target} leads nowhere");
        }
    }

    #[test]
    fn text_cannot_become_markup() {
        assert_eq!(escaped("<a href='x'>&\""), "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
    }
}
