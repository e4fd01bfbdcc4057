//! One request and its answer, over a connection of their own to an address that was checked. No
//! proxy, no redirect, no second look at the name, and an end to how much is read.

use super::address::Target;
use crate::limits::{ANSWER_HEAD_BYTES_MAX, OUTPUT_BYTES_MAX};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;

/// An answer.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    /// How long to wait before the next try, if it says so in seconds.
    pub(super) retry_after: Option<Duration>,
    pub(super) body: Vec<u8>,
}

/// No answer.
#[derive(Debug)]
pub(super) enum Broken {
    /// It has no end within bounds.
    TooLarge,
    /// Something failed on the way.
    Failed(String),
}

impl Broken {
    fn of(what: &str, error: &dyn std::fmt::Display) -> Self {
        Broken::Failed(format!("{what}: {error}"))
    }
}

/// How connections are made. What the system trusts is read once.
#[derive(Clone, Default)]
pub(crate) struct Exchange {
    tls: Arc<OnceLock<Result<Arc<ClientConfig>, String>>>,
}

/// Ends the connection when dropped.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Exchange {
    /// Sends `body` to the first of `addresses` that takes a connection.
    pub(super) async fn post(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
        headers: &[(&'static str, String)],
        body: Vec<u8>,
    ) -> Result<Answer, Broken> {
        let mut request = Request::post(target.path())
            .header(HOST, target.authority())
            .header(CONNECTION, "close")
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("mainspring/", env!("CARGO_PKG_VERSION")));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| Broken::of("the request cannot be made", &error))?;
        let stream = connect(addresses).await?;
        if !target.is_encrypted() {
            return exchange(stream, request).await;
        }
        let name = ServerName::try_from(target.name())
            .map_err(|_| Broken::Failed("the host is no name for a certificate".to_owned()))?;
        let connector = TlsConnector::from(self.tls().map_err(Broken::Failed)?);
        let stream = connector.connect(name, stream).await;
        exchange(stream.map_err(|error| Broken::of("no encryption", &error))?, request).await
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        self.tls.get_or_init(config).clone()
    }
}

fn config() -> Result<Arc<ClientConfig>, String> {
    let mut roots = RootCertStore::empty();
    // One odd certificate among many must not keep us from the others.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err("no certificates are installed on this system; install ca-certificates".into());
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(Arc::new(config.with_root_certificates(roots).with_no_client_auth()))
}

async fn connect(addresses: &[SocketAddr]) -> Result<TcpStream, Broken> {
    let mut last = Broken::Failed("there is no address".to_owned());
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Broken::of(&format!("no connection to {address}"), &error),
        }
    }
    Err(last)
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<Answer, Broken>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut connection = http1::Builder::new();
    connection.max_buf_size(ANSWER_HEAD_BYTES_MAX);
    let shaken = connection.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = shaken.map_err(|error| Broken::of("no connection", &error))?;
    let _driver = Driver(tokio::spawn(async move {
        // Why it ended is told to whoever waits for the answer.
        let _ = connection.await;
    }));
    let answer = sender.send_request(request).await;
    read(answer.map_err(|error| Broken::of("the answer did not come", &error))?).await
}

async fn read(answer: Response<Incoming>) -> Result<Answer, Broken> {
    let status = answer.status().as_u16();
    let wait = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let retry_after = wait.and_then(|text| text.trim().parse().ok()).map(Duration::from_secs);
    let body = Limited::new(answer.into_body(), OUTPUT_BYTES_MAX).collect().await;
    match body {
        Ok(body) => Ok(Answer { status, retry_after, body: body.to_bytes().to_vec() }),
        Err(error) if error.is::<LengthLimitError>() => Err(Broken::TooLarge),
        Err(error) => Err(Broken::of("the answer broke off", &error)),
    }
}
