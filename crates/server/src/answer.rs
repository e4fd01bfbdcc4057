//! An answer on its way out: what handlers return, and how it becomes a response.

use crate::app::Ids;
use crate::paced::Busy;
use crate::refusal::{Kind, Refusal};
use crate::write::Out;
use bytes::Bytes;
use futures_util::Stream;
use hyper::body::{Frame, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use mainspring_api::{REQUEST_HEADER, TRACE_HEADER};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Pieces of a body that has no end yet.
pub(crate) type Pieces = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// The body of a response.
pub struct Body {
    content: Content,
    /// Tells the connection that it is busy for as long as the body is being sent.
    busy: Option<Busy>,
}

enum Content {
    Whole(Option<Bytes>),
    Pieces(Pieces),
}

impl Body {
    fn new(content: Content) -> Self {
        Body { content, busy: None }
    }

    pub(crate) fn holding(mut self, busy: Busy) -> Self {
        self.busy = Some(busy);
        self
    }

    /// The bytes of a body that is there as a whole.
    pub(crate) fn into_bytes(self) -> Bytes {
        match self.content {
            Content::Whole(bytes) => bytes.unwrap_or_default(),
            Content::Pieces(_) => Bytes::new(),
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut self.content {
            Content::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Pieces(pieces) => {
                pieces.as_mut().poll_next(cx).map(|next| next.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Pieces(_) => SizeHint::default(),
        }
    }
}

/// What a handler answers.
pub(crate) struct Reply {
    status: StatusCode,
    content: Answered,
    /// The trace of what was made, if the caller named none.
    trace: Option<String>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

enum Answered {
    /// JSON that lacks only its end, which tells the request's ids.
    Begun(Out, End),
    /// Anything else.
    Other(Content),
}

/// Writes the end of an answer.
pub(crate) type End = fn(&mut Out, &Ids);

impl Reply {
    /// JSON whose end is written when the request's ids are known.
    pub(crate) fn begun(status: StatusCode, out: Out, end: End) -> Self {
        Reply { status, content: Answered::Begun(out, end), trace: None, headers: Vec::new() }
    }

    /// Something that is whole, 200 unless said otherwise.
    pub(crate) fn other(content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Reply {
            status: StatusCode::OK,
            content: Answered::Other(Content::Whole(Some(body.into()))),
            trace: None,
            headers: vec![(header::CONTENT_TYPE, HeaderValue::from_static(content_type))],
        }
    }

    /// Server-sent events.
    pub(crate) fn stream(pieces: Pieces) -> Self {
        let mut reply = Self::other("text/event-stream", Bytes::new());
        reply.content = Answered::Other(Content::Pieces(pieces));
        reply.with(HeaderName::from_static("x-accel-buffering"), "no")
    }

    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    pub(crate) fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// With a header whose value is made for this answer.
    pub(crate) fn with_value(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Names the trace of what was made; shown if the caller named none.
    pub(crate) fn with_trace(mut self, trace: String) -> Self {
        self.trace = Some(trace);
        self
    }

    pub(crate) fn into_response(self, mut ids: Ids) -> Response<Body> {
        if let Some(trace) = self.trace.filter(|_| !ids.is_trace_given) {
            ids.trace = trace;
        }
        let (content, is_json) = match self.content {
            Answered::Begun(mut out, end) => {
                end(&mut out, &ids);
                (Content::Whole(Some(out.0.into())), true)
            }
            Answered::Other(content) => (content, false),
        };
        let mut response = framed(self.status, content, &ids);
        if is_json {
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        for (name, value) in self.headers {
            // Cookies are several headers; of any other, what the handler says counts.
            if name == header::SET_COOKIE {
                response.headers_mut().append(name, value);
            } else {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// The response of a request that is refused: what a contract says, as JSON, and the headers that
/// go with it in every contract.
pub(crate) fn refused(
    status: StatusCode,
    body: impl Into<Bytes>,
    refusal: &Refusal,
    ids: &Ids,
) -> Response<Body> {
    let mut response = framed(status, Content::Whole(Some(body.into())), ids);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if refusal.closes {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    if let Some(after) = refusal.retry_after {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(after.as_secs()));
    }
    if let Some(Ok(allow)) = refusal.allow.as_deref().map(HeaderValue::from_str) {
        headers.insert(header::ALLOW, allow);
    }
    if refusal.kind == Kind::Unproven {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Headers of an answer, about.
const HEADERS: usize = 12;

fn framed(status: StatusCode, content: Content, ids: &Ids) -> Response<Body> {
    let mut response = Response::new(Body::new(content));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    // Once, not step by step: these, what the answer adds, and what hyper does.
    headers.reserve(HEADERS);
    for (name, value) in [(TRACE_HEADER, &ids.trace), (REQUEST_HEADER, &ids.request)] {
        // Ids are checked or made here; a job's own trace may hold letters no header can.
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_says_so_whatever_other_headers_come_along() {
        let begun = || Reply::begun(StatusCode::OK, Out::default(), |out, _| out.raw("{}"));
        let name = HeaderName::from_static("x-next-cursor");
        let more = begun().with_value(name.clone(), HeaderValue::from_static("c"));
        for (reply, cursor) in [(begun(), None), (more, Some("c"))] {
            let ids = Ids {
                trace: "t".to_owned(),
                request: "r".to_owned(),
                is_trace_given: false,
                is_trace_bad: false,
            };
            let headers = reply.into_response(ids).headers().clone();
            assert_eq!(headers[header::CONTENT_TYPE], "application/json");
            assert_eq!(headers.get(&name).map(HeaderValue::as_bytes), cursor.map(str::as_bytes));
        }
    }
}
