//! The envelope: `success`, then `data` or `error`, then `meta`. For the contracts that have one;
//! the others write what they answer themselves.

use crate::answer::{Body, Reply, refused as refused_with};
use crate::app::Ids;
use crate::refusal::Refusal;
use crate::write::Out;
use hyper::{Response, StatusCode};

impl Out {
    /// An answer whose `data` comes next, with room for about `bytes` of it.
    pub(crate) fn data(bytes: usize) -> Self {
        let mut out = Out::sized(bytes + 160);
        out.raw("{\"success\":true,\"data\":");
        out
    }
}

impl Reply {
    /// An envelope begun with [`Out::data`].
    pub(crate) fn json(status: StatusCode, out: Out) -> Self {
        Reply::begun(status, out, |out, ids| {
            out.raw(",\"message\":\"ok\"");
            end(out, ids);
        })
    }

    /// 200 and `data`.
    pub(crate) fn data(data: &impl serde::Serialize) -> Self {
        Self::status_data(StatusCode::OK, data)
    }

    /// A status and `data`.
    pub(crate) fn status_data(status: StatusCode, data: &impl serde::Serialize) -> Self {
        let mut out = Out::data(512);
        out.serde(data);
        Self::json(status, out)
    }
}

/// A refusal in an envelope.
pub(crate) fn refused(status: StatusCode, refusal: &Refusal, ids: &Ids) -> Response<Body> {
    let mut out = Out::sized(320);
    out.raw("{\"success\":false,\"error\":");
    error(refusal, &mut out);
    end(&mut out, ids);
    refused_with(status, out.0, refusal, ids)
}

/// The `error` object.
fn error(refusal: &Refusal, out: &mut Out) {
    out.raw("{\"code\":\"");
    out.raw(refusal.code);
    out.raw("\",\"message\":");
    out.string(&refusal.message);
    out.raw(",\"class\":\"");
    out.raw(refusal.class.as_str());
    out.raw("\",\"retryable\":");
    out.flag(refusal.retryable);
    out.raw(",\"details\":");
    match (&refusal.details, &refusal.field) {
        (Some(details), _) => out.serde(details),
        (None, Some(field)) => {
            out.raw("{\"path\":");
            out.string(field);
            out.raw("}");
        }
        (None, None) => out.raw("null"),
    }
    out.raw("}");
}

fn end(out: &mut Out, ids: &Ids) {
    out.raw(",\"meta\":{\"trace_id\":");
    out.string(&ids.trace);
    out.raw(",\"request_id\":");
    out.string(&ids.request);
    out.raw("}}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::refusal;

    #[test]
    fn an_error_is_json_whatever_it_says() {
        let mut out = Out::default();
        error(&refusal::invalid("a\"b", "is \\ wrong"), &mut out);
        let body: mainspring_api::ErrorBody = serde_json::from_slice(&out.0).unwrap();
        assert_eq!(body.code, "REQ_VALIDATION_FAILED");
        assert_eq!(body.details.unwrap().get(), r#"{"path":"a\"b"}"#);
    }
}
