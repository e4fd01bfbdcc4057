//! The OpenAPI document, made from the table of routes, the shared types, and the values that
//! `openapi/fields.rs` allows in them.

mod fields;
mod values;

use crate::config::Config;
use crate::contracts::Spoken;
use crate::route::{Route, Rule, Takes};
use hyper::Method;
use mainspring_api::envelope::{Failure, Meta};
use mainspring_api::{TENANT_HEADER, TRACE_HEADER};
use serde_json::{Value, json};
use utoipa::openapi::path::{
    HttpMethod, OperationBuilder, Parameter, ParameterBuilder, ParameterIn,
};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{
    AnyOfBuilder, ArrayBuilder, Object, ObjectBuilder, Schema, SchemaType, Type,
};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{
    ComponentsBuilder, ContentBuilder, InfoBuilder, OpenApiBuilder, PathItem, PathsBuilder, Ref,
    RefOr, Required, ResponseBuilder,
};
use utoipa::{PartialSchema, ToSchema};
use values::Allowed;

/// Adds a type and all it refers to, and answers with its name.
pub(crate) type Shape = fn(&mut Schemas) -> String;

/// The types a document refers to.
pub(crate) type Schemas = Vec<(String, RefOr<Schema>)>;

/// The [`Shape`] of a type.
pub(crate) fn shape<T: ToSchema>(schemas: &mut Schemas) -> String {
    T::schemas(schemas);
    let name = T::name().into_owned();
    schemas.push((name.clone(), T::schema()));
    name
}

/// What an answer carries.
#[derive(Clone, Copy)]
pub(crate) enum Gives {
    /// Nothing that is documented.
    Nothing,
    /// An envelope around one thing.
    One(Shape),
    /// An envelope around one of two things.
    Either(Shape, Shape),
    /// An envelope around a page of things.
    Page(Shape),
    /// An envelope without `meta` around one thing.
    Answer(Shape),
    /// An envelope without `meta` around a list of things.
    Answers(Shape),
    /// Something that is not an envelope, by its content type.
    Text(&'static str),
    /// One thing, without an envelope.
    Bare(Shape),
    /// One of two things, without an envelope.
    EitherBare(Shape, Shape),
    /// Server-sent events whose data is one of two things, by the name of the event.
    Events([(&'static str, Shape); 2]),
}

/// What a route makes of an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyRule {
    /// It needs none and does not look at one.
    None,
    /// It is a public write; its key comes in the header.
    Header,
    /// The same, or the key comes in the body.
    HeaderOrBody,
    /// Each item of the body has its own; one for all is refused.
    Items,
}

/// What the document says about a route.
pub(crate) struct Doc {
    tag: &'static str,
    id: &'static str,
    summary: &'static str,
    text: Option<&'static str>,
    pub(crate) query: Vec<(&'static str, &'static str)>,
    pub(crate) key: KeyRule,
    takes: Option<Shape>,
    narrowed: Option<Value>,
    headers: Vec<(&'static str, &'static str)>,
    status: u16,
    gives: Gives,
    also: Option<(u16, &'static str, Gives)>,
}

impl Doc {
    pub(crate) fn new(tag: &'static str, id: &'static str, summary: &'static str) -> Self {
        Doc {
            tag,
            id,
            summary,
            text: None,
            query: Vec::new(),
            key: KeyRule::None,
            takes: None,
            narrowed: None,
            headers: Vec::new(),
            status: 200,
            gives: Gives::Nothing,
            also: None,
        }
    }

    /// A route for people, not for programs.
    pub(crate) fn hidden() -> Self {
        Doc::new("", "", "")
    }

    pub(crate) fn text(mut self, text: &'static str) -> Self {
        self.text = Some(text);
        self
    }

    pub(crate) fn query(mut self, query: &[(&'static str, &'static str)]) -> Self {
        self.query = query.to_vec();
        self
    }

    pub(crate) fn key(mut self, key: KeyRule) -> Self {
        self.key = key;
        self
    }

    pub(crate) fn takes(mut self, shape: Shape) -> Self {
        self.takes = Some(shape);
        self
    }

    /// Fields of the body that this route wants otherwise than others that take the same.
    pub(crate) fn narrowed(mut self, properties: Value) -> Self {
        self.narrowed = Some(properties);
        self
    }

    /// A header that only this route looks at.
    pub(crate) fn header(mut self, name: &'static str, told: &'static str) -> Self {
        self.headers.push((name, told));
        self
    }

    /// Another answer that is a success, too.
    pub(crate) fn also(mut self, status: u16, told: &'static str, gives: Gives) -> Self {
        self.also = Some((status, told, gives));
        self
    }

    pub(crate) fn gives(mut self, status: u16, gives: Gives) -> Self {
        self.status = status;
        self.gives = gives;
        self
    }
}

/// The document of a server that speaks every contract, with or without the internal routes, as
/// JSON text.
pub fn document(has_internal: bool) -> String {
    let config = Config { has_internal_routes: has_internal, ..Config::standard() };
    let spoken = Spoken::of(&config);
    let document = of(&spoken, &spoken.routes(&config));
    serde_json::to_string_pretty(&document).expect("our own document is JSON")
}

/// The document of a table of routes.
pub(crate) fn of(spoken: &Spoken, table: &[Route]) -> Value {
    let mut schemas: Schemas = Vec::new();
    shape::<Meta>(&mut schemas);
    shape::<Failure>(&mut schemas);
    let mut paths = PathsBuilder::new();
    for route in table.iter().filter(|route| !route.doc.id.is_empty()) {
        let operation = operation(spoken, route, &mut schemas);
        paths = paths.path(route.path, PathItem::new(method(&route.method), operation));
    }
    let bearer = Http::builder()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some("An access token, as `POST /api/v1/tokens` shows it once."))
        .build();
    let components = ComponentsBuilder::new()
        .schemas_from_iter(schemas)
        .security_scheme("token", SecurityScheme::Http(bearer))
        .build();
    let info = InfoBuilder::new()
        .title("Mainspring")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Mainspring accepts work, holds it until it is due, hands it to exactly one worker at \
             a time and retries it by the rules. Every answer is an envelope with `success`, \
             `data` or `error`, and `meta`. Times are RFC 3339 in UTC with microseconds. Whole \
             numbers may be written as `5`, `5.0` or `5e0`. Text is bounded in bytes of UTF-8: \
             `x-max-bytes` has the bound, which `maxLength` repeats in characters.",
        ))
        .build();
    let document =
        OpenApiBuilder::new().info(info).paths(paths.build()).components(Some(components)).build();
    let mut document = serde_json::to_value(document).expect("our own document is JSON");
    narrow_fields(&mut document["components"]["schemas"]);
    document
}

/// Says in every type what its fields may hold.
fn narrow_fields(schemas: &mut Value) {
    for (name, schema) in schemas.as_object_mut().into_iter().flatten() {
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for (field, values) in properties.into_iter().flatten() {
            if let Some(allowed) = fields::field(name, field) {
                allowed.narrow(values);
            }
        }
        for field in fields::required(name) {
            match schema.get_mut("required").and_then(Value::as_array_mut) {
                Some(known) => known.push(json!(field)),
                None => schema["required"] = json!([field]),
            }
        }
        for (word, rule) in fields::together(name).iter().flat_map(Value::as_object).flatten() {
            schema[word] = rule.clone();
        }
    }
}

fn method(method: &Method) -> HttpMethod {
    match method.as_str() {
        "POST" => HttpMethod::Post,
        "PUT" => HttpMethod::Put,
        "DELETE" => HttpMethod::Delete,
        _ => HttpMethod::Get,
    }
}

fn operation(
    spoken: &Spoken,
    route: &Route,
    schemas: &mut Schemas,
) -> utoipa::openapi::path::Operation {
    let doc = &route.doc;
    let mut text = access(&route.rule);
    if let Some(more) = doc.text {
        text = format!("{more}\n\n{text}");
    }
    let mut operation = OperationBuilder::new()
        .tag(doc.tag)
        .operation_id(Some(doc.id))
        .summary(Some(doc.summary))
        .description(Some(text))
        .parameters(Some(parameters(spoken, route)));
    if let Some(takes) = doc.takes {
        let required =
            if route.takes == Takes::MaybeJson { Required::False } else { Required::True };
        let content = ContentBuilder::new().schema(Some(taken(takes, doc, schemas))).build();
        let body = RequestBodyBuilder::new()
            .content("application/json", content)
            .required(Some(required))
            .build();
        operation = operation.request_body(Some(body));
    }
    operation = match &route.rule {
        Rule::Roles(..) | Rule::Internal(_) => operation.security(bearer()),
        Rule::Open(_) | Rule::Lease(_) | Rule::Local(..) | Rule::Page(..) => operation,
    };
    operation = operation.response(doc.status.to_string(), answer(doc.summary, doc.gives, schemas));
    if let Some((status, told, gives)) = doc.also {
        operation = operation.response(status.to_string(), answer(told, gives, schemas));
    }
    let failure = spoken.contract(route.path).map_or(shape::<Failure> as Shape, |it| it.failure);
    let failure = ContentBuilder::new().schema(Some(reference(&failure(schemas)))).build();
    let refused = ResponseBuilder::new()
        .description("What went wrong, with a stable code.")
        .content("application/json", failure);
    operation.response("default", refused.build()).build()
}

/// The schema of the body that a route takes.
fn taken(takes: Shape, doc: &Doc, schemas: &mut Schemas) -> RefOr<Schema> {
    let reference = reference(&takes(schemas));
    match &doc.narrowed {
        None => RefOr::Ref(reference),
        Some(properties) => {
            let narrowed = json!({ "type": "object", "properties": properties });
            let both = json!({ "allOf": [reference, narrowed] });
            serde_json::from_value(both).expect("a schema of our own is one")
        }
    }
}

fn bearer() -> SecurityRequirement {
    SecurityRequirement::new("token", [] as [&str; 0])
}

/// Who may, in words.
fn access(rule: &Rule) -> String {
    match rule {
        Rule::Open(_) => "Open to anyone.".to_owned(),
        Rule::Lease(_) => "For whoever holds the lease token; no access token needed.".to_owned(),
        Rule::Internal(_) => {
            "For the role `internal` itself, with the header `x-internal-debug: true`.".to_owned()
        }
        Rule::Roles(roles, _) if roles.len() == mainspring_kernel::Role::ALL.len() => {
            "For any access token, within what its owner may see.".to_owned()
        }
        Rule::Roles(roles, _) => format!("For the roles {}.", listed(roles)),
        Rule::Page(roles, _) => {
            format!("For whoever is signed in with the roles {}.", listed(roles))
        }
        Rule::Local(roles, _) => {
            format!("Open on a loopback address; elsewhere for the roles {}.", listed(roles))
        }
    }
}

fn listed(roles: &[mainspring_kernel::Role]) -> String {
    let mut names: Vec<_> = roles.iter().map(|role| format!("`{}`", role.as_str())).collect();
    if !roles.contains(&mainspring_kernel::Role::Admin) {
        names.push("`admin`".to_owned());
    }
    names.join(", ")
}

fn parameters(spoken: &Spoken, route: &Route) -> Vec<Parameter> {
    let mut all = Vec::new();
    for part in route.path.split('/') {
        if let Some(name) = part.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let schema = schema(&fields::path_value(route.path, name));
            let parameter = ParameterBuilder::new().name(name).parameter_in(ParameterIn::Path);
            all.push(parameter.required(Required::True).schema(Some(schema)).build());
        }
    }
    for (name, told) in &route.doc.query {
        let allowed = fields::query_value(route.path, name);
        all.push(optional(name, ParameterIn::Query, told, &allowed));
    }
    for (name, told) in headers(spoken, route) {
        let allowed = fields::header_value(name);
        let mut parameter = optional(name, ParameterIn::Header, told, &allowed);
        if name == INTERNAL_HEADER {
            parameter.required = Required::True;
        }
        all.push(parameter);
    }
    all
}

fn optional(name: &str, place: ParameterIn, told: &str, allowed: &Allowed) -> Parameter {
    ParameterBuilder::new()
        .name(name)
        .parameter_in(place)
        .required(Required::False)
        .description(Some(told))
        .schema(Some(schema(allowed)))
        .build()
}

/// The schema of a parameter: what has no bound of its own is still text.
fn schema(allowed: &Allowed) -> RefOr<Schema> {
    let is_any = matches!(allowed, Allowed::Any);
    let schema = if is_any { json!({ "type": "string" }) } else { allowed.schema() };
    serde_json::from_value(schema).expect("a schema of our own is one")
}

/// The headers a route looks at.
fn headers(spoken: &Spoken, route: &Route) -> Vec<(&'static str, &'static str)> {
    let mut all = route.doc.headers.clone();
    if spoken.contract(route.path).is_none() {
        return all;
    }
    if matches!(route.doc.key, KeyRule::Header | KeyRule::HeaderOrBody) {
        all.push((KEY_HEADER, "The same key again is the same request."));
    }
    match route.rule {
        Rule::Roles(..) => all.push((TENANT_HEADER, TENANT_TOLD)),
        Rule::Internal(_) => {
            all.push((TENANT_HEADER, TENANT_TOLD));
            all.push((INTERNAL_HEADER, "Says that this is meant."));
        }
        Rule::Open(_) | Rule::Lease(_) | Rule::Local(..) | Rule::Page(..) => {}
    }
    all.push((TRACE_HEADER, "The trace of the request; one is made if there is none."));
    all
}

const KEY_HEADER: &str = "Idempotency-Key";
const INTERNAL_HEADER: &str = "x-internal-debug";
const TENANT_TOLD: &str =
    "The tenant to act in: the token's own, or any for those who may act in every tenant.";

fn worded(words: &[&str]) -> Object {
    ObjectBuilder::new()
        .schema_type(SchemaType::Type(Type::String))
        .enum_values(Some(words.iter().map(|word| (*word).to_owned())))
        .build()
}

fn answer(told: &str, gives: Gives, schemas: &mut Schemas) -> utoipa::openapi::Response {
    let response = ResponseBuilder::new().description(told);
    match gives {
        Gives::Nothing => response.build(),
        Gives::Text(kind) => {
            let text = ObjectBuilder::new().schema_type(SchemaType::Type(Type::String)).build();
            let content = ContentBuilder::new().schema(Some(Schema::Object(text))).build();
            response.content(kind, content).build()
        }
        Gives::Events(kinds) => {
            let names = kinds.map(|(_, shape)| reference(&shape(schemas)));
            let data = json!({ "type": "string", "description": "As JSON text.",
                "contentMediaType": "application/json", "contentSchema": { "anyOf": names } });
            let event = json!({
                "type": "object", "description": "One event of the stream.",
                "properties": {
                    "id": { "type": "string", "pattern": "^[0-9]+$" },
                    "event": { "type": "string", "enum": kinds.map(|(name, _)| name) },
                    "data": data,
                },
                "required": ["id", "event", "data"],
            });
            let event: Schema = serde_json::from_value(event).expect("a schema of our own is one");
            let content = ContentBuilder::new().schema(Some(event)).build();
            response.content("text/event-stream", content).build()
        }
        Gives::One(shape) => {
            let data = RefOr::Ref(Ref::from_schema_name(shape(schemas)));
            response.content("application/json", enveloped(data)).build()
        }
        Gives::Bare(shape) => {
            let content = ContentBuilder::new().schema(Some(reference(&shape(schemas)))).build();
            response.content("application/json", content).build()
        }
        Gives::EitherBare(one, other) => {
            let either = AnyOfBuilder::new()
                .item(reference(&one(schemas)))
                .item(reference(&other(schemas)))
                .build();
            let content = ContentBuilder::new().schema(Some(Schema::AnyOf(either))).build();
            response.content("application/json", content).build()
        }
        Gives::Either(one, other) => {
            let data = AnyOfBuilder::new()
                .item(reference(&one(schemas)))
                .item(reference(&other(schemas)))
                .build();
            response.content("application/json", enveloped(Schema::AnyOf(data).into())).build()
        }
        Gives::Answer(shape) => {
            response.content("application/json", answered(reference(&shape(schemas)))).build()
        }
        Gives::Answers(shape) => {
            let items = ArrayBuilder::new().items(reference(&shape(schemas))).build();
            response.content("application/json", answered(Schema::Array(items))).build()
        }
        Gives::Page(shape) => {
            let items = ArrayBuilder::new().items(reference(&shape(schemas))).build();
            let cursor = SchemaType::from_iter([Type::String, Type::Null]);
            let number = SchemaType::from_iter([Type::Integer, Type::Null]);
            let told = "How many entries the list has; null if more than are counted.";
            let total = ObjectBuilder::new().schema_type(number).description(Some(told)).build();
            let told = "In place of a total: the list has more entries than this.";
            let least = ObjectBuilder::new()
                .schema_type(SchemaType::Type(Type::Integer))
                .description(Some(told))
                .build();
            let page = ObjectBuilder::new()
                .property("items", Schema::Array(items))
                .required("items")
                .property("next_cursor", ObjectBuilder::new().schema_type(cursor).build())
                .property("total", total)
                .property("total_at_least", least)
                .build();
            response.content("application/json", enveloped(Schema::Object(page).into())).build()
        }
    }
}

fn enveloped(data: RefOr<Schema>) -> utoipa::openapi::Content {
    let envelope = ObjectBuilder::new()
        .property("success", bool::schema())
        .required("success")
        .property("data", data)
        .required("data")
        .property("message", worded(&["ok"]))
        .required("message")
        .property("meta", reference("Meta"))
        .required("meta")
        .build();
    ContentBuilder::new().schema(Some(Schema::Object(envelope))).build()
}

fn answered(data: impl Into<RefOr<Schema>>) -> utoipa::openapi::Content {
    let envelope = ObjectBuilder::new()
        .property("success", bool::schema())
        .required("success")
        .property("message", worded(&["ok"]))
        .required("message")
        .property("data", data)
        .required("data")
        .build();
    ContentBuilder::new().schema(Some(Schema::Object(envelope))).build()
}

fn reference(name: &str) -> Ref {
    Ref::from_schema_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The document is part of the contract: a difference is a change that needs a changelog line.
    /// `MAINSPRING_BLESS=1` writes it anew.
    #[test]
    fn the_document_is_the_kept_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/openapi.json");
        let made = document(true) + "\n";
        if std::env::var_os("MAINSPRING_BLESS").is_some() {
            std::fs::write(path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == made, "{path} differs; MAINSPRING_BLESS=1 writes it anew");
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document: serde_json::Value = serde_json::from_str(&document(true)).unwrap();
        let text = document.to_string();
        for part in text.split("\"$ref\":\"#").skip(1) {
            let pointer = part.split('"').next().unwrap();
            assert!(document.pointer(pointer).is_some(), "{pointer} leads nowhere");
        }
        assert!(document["openapi"].as_str().unwrap().starts_with("3.1"));
    }

    /// Types of requests, and what they hold in turn.
    fn requests(document: &Value) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        let operations = document["paths"].as_object().unwrap().values();
        let bodies = operations.flat_map(|item| item.as_object().unwrap().values());
        let mut texts: Vec<String> =
            bodies.map(|operation| operation["requestBody"].to_string()).collect();
        while let Some(text) = texts.pop() {
            for part in text.split("#/components/schemas/").skip(1) {
                let name = part.split('"').next().unwrap().to_owned();
                if !names.contains(&name) {
                    texts.push(document["components"]["schemas"][&name].to_string());
                    names.push(name);
                }
            }
        }
        names
    }

    #[test]
    fn what_every_field_of_a_request_may_hold_is_told() {
        let document: Value = serde_json::from_str(&document(true)).unwrap();
        let names = requests(&document);
        assert!(names.len() > 15, "{names:?}");
        for name in names.iter().filter(|name| *name != "Time") {
            let schema = &document["components"]["schemas"][name];
            let Some(properties) = schema["properties"].as_object() else {
                // One of several things, which are looked at under names of their own.
                assert!(schema["oneOf"].is_array(), "{name} has no fields: {schema}");
                continue;
            };
            for field in properties.keys() {
                assert!(fields::field(name, field).is_some(), "{name}.{field}");
            }
            for field in fields::required(name) {
                assert!(!schema["properties"][field].is_null(), "{name}.{field}");
            }
        }
    }

    #[test]
    fn every_operation_has_its_own_name() {
        let config = Config { has_internal_routes: true, ..Config::standard() };
        let table = Spoken::of(&config).routes(&config);
        let mut ids: Vec<_> =
            table.iter().map(|route| route.doc.id).filter(|id| !id.is_empty()).collect();
        let count = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), count);
    }
}
