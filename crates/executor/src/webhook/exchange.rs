//! Requests and their answers, over a connection to an address that was checked: of their own for a
//! job, one after another for a subscription. No proxy, no redirect, no second look at the name,
//! and an end to how much is read.

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
use tokio_rustls::client::TlsStream;

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
    /// Sends `body` to the first of `addresses` that takes a connection, which ends with the
    /// answer.
    pub(super) async fn post(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
        headers: &[(&str, String)],
        body: Vec<u8>,
    ) -> Result<Answer, Broken> {
        self.line(target, addresses).await?.ask(target, headers, body, "close").await
    }

    /// A connection to the first of `addresses` that takes one.
    pub(super) async fn line(
        &self,
        target: &Target,
        addresses: &[SocketAddr],
    ) -> Result<Line, Broken> {
        let stream = connect(addresses).await?;
        if !target.is_encrypted() {
            return Line::over(stream).await;
        }
        let stream = self.encrypted(target.name(), stream).await.map_err(Broken::Failed)?;
        Line::over(stream).await
    }

    /// The same connection, encrypted for whoever can prove to be `name`.
    pub(crate) async fn encrypted(
        &self,
        name: String,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, String> {
        let name = ServerName::try_from(name)
            .map_err(|_| "the host is no name for a certificate".to_owned())?;
        let connector = TlsConnector::from(self.tls()?);
        let stream = connector.connect(name, stream).await;
        stream.map_err(|error| format!("no encryption: {error}"))
    }

    fn tls(&self) -> Result<Arc<ClientConfig>, String> {
        self.tls.get_or_init(config).clone()
    }
}

/// A connection, for one request after another.
pub(super) struct Line {
    sender: http1::SendRequest<Full<Bytes>>,
    _driver: Driver,
}

impl Line {
    async fn over<S>(stream: S) -> Result<Self, Broken>
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut connection = http1::Builder::new();
        connection.max_buf_size(ANSWER_HEAD_BYTES_MAX);
        let shaken = connection.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = shaken.map_err(|error| Broken::of("no connection", &error))?;
        let driver = Driver(tokio::spawn(async move {
            // Why it ended is told to whoever waits for the answer.
            let _ = connection.await;
        }));
        Ok(Line { sender, _driver: driver })
    }

    /// Whether the other end may still be there.
    pub(super) fn is_open(&self) -> bool {
        !self.sender.is_closed()
    }

    /// Sends `body` and waits for the answer; `after` says what becomes of the connection then.
    pub(super) async fn ask(
        &mut self,
        target: &Target,
        headers: &[(&str, String)],
        body: Vec<u8>,
        after: &'static str,
    ) -> Result<Answer, Broken> {
        let mut request = Request::post(target.path())
            .header(HOST, target.authority())
            .header(CONNECTION, after)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, concat!("mainspring/", env!("CARGO_PKG_VERSION")));
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| Broken::of("the request cannot be made", &error))?;
        let broken = |error| Broken::of("the answer did not come", &error);
        self.sender.ready().await.map_err(broken)?;
        read(self.sender.send_request(request).await.map_err(broken)?).await
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
