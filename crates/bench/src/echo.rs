//! The bare handler: hyper reads the body and answers with a few hundred bytes. What HTTP itself
//! costs on this machine, and so the ceiling of one request per job.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use tokio::net::TcpListener;

/// About what the answer to a submission weighs.
const ANSWER_BYTES: usize = 400;

/// Serves until the process ends.
pub(crate) async fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let listener = TcpListener::bind(address).await?;
    let text = format!("{{\"text\":\"{}\"}}", "x".repeat(ANSWER_BYTES - 11));
    let answer = Bytes::from(text);
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| reply(request, answer.clone()));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            // A client that goes away is no error.
            let _ = connection.await;
        });
    }
}

async fn reply(
    request: Request<Incoming>,
    answer: Bytes,
) -> Result<Response<Full<Bytes>>, Infallible> {
    // The body is read, as any handler would; one that breaks off is answered all the same.
    let _ = request.into_body().collect().await;
    let mut response = Response::new(Full::new(answer));
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(hyper::header::CONTENT_TYPE, json);
    Ok(response)
}
