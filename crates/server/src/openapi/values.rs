//! Which values fields and parameters may have, told from the constants and the predicates that the
//! rules themselves use: nothing here is a bound of its own. `fields.rs` beside this file says
//! where they belong.
//!
//! Patterns are written so that ECMAScript, Python and Rust read them alike.

use serde_json::{Value, json};

/// What may stand somewhere.
pub(super) enum Allowed {
    /// Anything of the type.
    Any,
    /// Text of so many bytes that matches a pattern.
    Text { least: usize, most: usize, pattern: Option<String> },
    /// Text of any length with something to say.
    Said,
    /// One of these words.
    Words(Vec<&'static str>),
    /// A whole number.
    Whole { least: u64, most: u64 },
    /// A number from 0 to 1.
    Share,
    /// A number in a range.
    Number { least: f64, most: f64 },
    /// An instant as RFC 3339 has them.
    Instant,
    /// True or false.
    Flag,
    /// A list of so many.
    Each { least: usize, most: Option<usize>, item: Box<Allowed> },
    /// A list of so many that is read item by item: one that is wrong gets an error in its place.
    Items { most: usize },
    /// A list of dates and ranges of dates.
    Dates { most: usize },
    /// An object of texts: so many, with names and values of so many bytes.
    Labels { most: usize, bytes: usize },
}

impl Allowed {
    /// A list of at least and at most so many.
    pub(super) fn each(self, least: usize, most: impl Into<Option<usize>>) -> Self {
        Allowed::Each { least, most: most.into(), item: Box::new(self) }
    }

    /// The schema of a value that is always of this type.
    pub(super) fn schema(&self) -> Value {
        let kind = match self {
            Allowed::Any => return json!({}),
            Allowed::Text { .. } | Allowed::Said | Allowed::Words(_) | Allowed::Instant => "string",
            Allowed::Whole { .. } => "integer",
            Allowed::Share | Allowed::Number { .. } => "number",
            Allowed::Flag => "boolean",
            Allowed::Each { .. } | Allowed::Items { .. } | Allowed::Dates { .. } => "array",
            Allowed::Labels { .. } => "object",
        };
        let mut schema = json!({ "type": kind });
        self.narrow(&mut schema);
        schema
    }

    /// Narrows the schema of a field down to what is allowed; null stays what it is.
    pub(super) fn narrow(&self, schema: &mut Value) {
        match self {
            Allowed::Any | Allowed::Flag => {}
            Allowed::Text { least, most, pattern } => {
                if *least > 0 {
                    schema["minLength"] = json!(least);
                }
                // A character has one to four bytes, so the bound on characters follows.
                schema["maxLength"] = json!(most);
                schema["x-max-bytes"] = json!(most);
                if let Some(pattern) = pattern {
                    schema["pattern"] = json!(pattern);
                }
            }
            Allowed::Said => {
                schema["minLength"] = json!(1);
                schema["pattern"] = json!(not_blank());
            }
            Allowed::Words(words) => {
                let mut words: Vec<Value> = words.iter().map(|word| json!(word)).collect();
                if is_nullable(schema) {
                    words.push(Value::Null);
                }
                schema["enum"] = words.into();
            }
            Allowed::Whole { least, most } => {
                schema["minimum"] = json!(least);
                schema["maximum"] = json!(most);
                // `int32` and the like say less than the bounds do, and sometimes something else.
                schema.as_object_mut().map(|schema| schema.remove("format"));
            }
            Allowed::Share => {
                schema["minimum"] = json!(0);
                schema["maximum"] = json!(1);
            }
            Allowed::Number { least, most } => {
                schema["minimum"] = json!(least);
                schema["maximum"] = json!(most);
            }
            Allowed::Instant => schema["format"] = json!("date-time"),
            Allowed::Each { least, most, item } => {
                if *least > 0 {
                    schema["minItems"] = json!(least);
                }
                if let Some(most) = most {
                    schema["maxItems"] = json!(most);
                }
                if schema["items"].is_object() {
                    item.narrow(&mut schema["items"]);
                } else {
                    schema["items"] = item.schema();
                }
            }
            Allowed::Items { most } => {
                schema["maxItems"] = json!(most);
                let item = schema["items"].take();
                // Not `{}`: readers that simplify would forget what a good item looks like.
                let other = json!({ "not": item, "description": "Answered with an error." });
                schema["items"] = json!({ "anyOf": [item, other] });
            }
            Allowed::Dates { most } => {
                let date = json!({ "type": "string", "format": "date",
                    "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$", "maxLength": 10 });
                let range = json!({ "type": "object", "properties": { "from": date, "to": date },
                    "required": ["from", "to"], "additionalProperties": false });
                schema["maxItems"] = json!(most);
                schema["items"] = json!({ "anyOf": [date, range] });
            }
            Allowed::Labels { most, bytes } => {
                let text = Allowed::Text { least: 0, most: *bytes, pattern: Some(no_control()) };
                schema["type"] = json!(["object", "null"]);
                schema["maxProperties"] = json!(most);
                schema["propertyNames"] = text.schema();
                schema["additionalProperties"] = text.schema();
            }
        }
    }
}

fn is_nullable(schema: &Value) -> bool {
    schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("null")))
}

/// Text without control characters, as `kernel/src/text.rs` has them.
pub(super) fn no_control() -> String {
    format!("^[^{}]*$", class(char::is_control))
}

/// Text that neither starts nor ends with a space, as `kernel/src/name.rs` wants names.
pub(super) fn unpadded() -> String {
    let edge = class(|letter| letter.is_control() || letter.is_whitespace());
    let inner = class(char::is_control);
    format!("^[^{edge}]([^{inner}]*[^{edge}])?$")
}

/// Text that has something to say.
pub(super) fn not_blank() -> String {
    format!("[^{}]", class(char::is_whitespace))
}

/// A name that may stand between spaces.
pub(super) fn padded() -> String {
    let (control, edge) =
        (class(char::is_control), class(|letter| letter.is_control() || letter.is_whitespace()));
    format!("^[^{control}]*[^{edge}][^{control}]*$")
}

/// A label to look for: a name, an equals sign and a value.
pub(super) fn label() -> String {
    let control = class(char::is_control);
    format!("^[^={control}]+=[^{control}]*$")
}

/// The inside of a character class of all characters that `belongs` picks.
fn class(belongs: impl Fn(char) -> bool) -> String {
    let mut text = String::new();
    let mut open: Option<(u32, u32)> = None;
    // Nothing beyond the first plane is a control character or a space; a test looks.
    for code in 0..=0x1_0000 {
        let is_in = code < 0x1_0000 && char::from_u32(code).is_some_and(&belongs);
        open = match (open, is_in) {
            (Some((first, _)), true) => Some((first, code)),
            (None, true) => Some((code, code)),
            (Some((first, last)), false) => {
                text.push_str(&escaped(first));
                if last > first {
                    text.push('-');
                    text.push_str(&escaped(last));
                }
                None
            }
            (None, false) => None,
        };
    }
    text
}

fn escaped(code: u32) -> String {
    if code < 0x100 { format!("\\x{code:02x}") } else { format!("\\u{code:04x}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_what_its_predicate_picks() {
        assert_eq!(class(char::is_control), r"\x00-\x1f\x7f-\x9f");
        let spaces = r"\x09-\x0d\x20\x85\xa0\u1680\u2000-\u200a\u2028-\u2029\u202f\u205f\u3000";
        assert_eq!(class(char::is_whitespace), spaces);
        let beyond = ('\u{10000}'..=char::MAX).any(|c| c.is_control() || c.is_whitespace());
        assert!(!beyond, "a class must look beyond the first plane");
    }

    #[test]
    fn null_stays_allowed_where_it_was() {
        let mut schema = json!({ "type": ["string", "null"] });
        Allowed::Words(vec!["a"]).narrow(&mut schema);
        assert_eq!(schema["enum"], json!(["a", null]));
        let mut schema = json!({ "type": "string" });
        Allowed::Words(vec!["a"]).narrow(&mut schema);
        assert_eq!(schema["enum"], json!(["a"]));
    }
}
