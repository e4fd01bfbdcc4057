//! The class of a failure, by the registry of codes. Whoever brings a failure about, by hand or by
//! a worker, does not change what class its code has.

use crate::job::Failure;

/// What kind of failure a code stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// The request itself was wrong.
    Validation,
    /// A rule of the business said no.
    BusinessRule,
    /// It may pass by itself.
    Transient,
    /// No retry can mend it.
    Permanent,
    /// It touches who may do what.
    SecuritySensitive,
}

impl ErrorClass {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            ErrorClass::Validation => "validation",
            ErrorClass::BusinessRule => "business_rule",
            ErrorClass::Transient => "transient",
            ErrorClass::Permanent => "permanent",
            ErrorClass::SecuritySensitive => "security_sensitive",
        }
    }

    /// The class of `failure`: its code's, or, if nobody registered the code, what the worker said.
    pub fn of(failure: &Failure) -> Self {
        match (registered(&failure.code), failure.retryable) {
            (Some(class), _) => class,
            (None, true) => ErrorClass::Transient,
            (None, false) => ErrorClass::Permanent,
        }
    }
}

/// Whether trying again can help against `code`; so it is for a code that nobody registered.
pub fn is_retryable(code: &str) -> bool {
    registered(code).is_none_or(|class| class == ErrorClass::Transient)
}

fn registered(code: &str) -> Option<ErrorClass> {
    CODES.iter().find(|(known, _)| *known == code).map(|(_, class)| *class)
}

const CODES: &[(&str, ErrorClass)] = &[
    ("DOC_PARSE_OUTPUT_NOT_FOUND", ErrorClass::Permanent),
    ("MINERU_BBOX_FORMAT_INVALID", ErrorClass::Permanent),
    ("TEXT_ENCODING_UNSUPPORTED", ErrorClass::Permanent),
    ("DOC_PARSE_SCHEMA_INVALID", ErrorClass::Transient),
    ("PARSER_FALLBACK_EXHAUSTED", ErrorClass::Transient),
    ("RAG_UPSTREAM_UNAVAILABLE", ErrorClass::Transient),
    ("INTERNAL_DEBUG_FORCED_FAIL", ErrorClass::Transient),
    ("TASK_TIMEOUT", ErrorClass::Transient),
    ("TASK_LEASE_LOST", ErrorClass::Transient),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_code_keeps_its_class_whatever_is_said() {
        let of = |code: &str, retryable| {
            ErrorClass::of(&Failure { code: code.into(), message: "".into(), retryable })
        };
        for retryable in [true, false] {
            assert_eq!(of("RAG_UPSTREAM_UNAVAILABLE", retryable), ErrorClass::Transient);
            assert_eq!(of("TEXT_ENCODING_UNSUPPORTED", retryable), ErrorClass::Permanent);
        }
        assert_eq!(of("MY_OWN", true), ErrorClass::Transient);
        assert_eq!(of("MY_OWN", false), ErrorClass::Permanent);
        assert!(is_retryable("MY_OWN") && !is_retryable("TEXT_ENCODING_UNSUPPORTED"));
    }
}
