//! The socket: accepting, bounding and ending connections, encrypted or not. A handshake is part of
//! a connection's first request: it has a seat, has to be over as soon as a head, and makes room
//! for others like any client that is waited for.

use crate::answer::Body;
use crate::app::{App, Ids};
use crate::config::Config;
use crate::contracts;
use crate::limits::UNSENT_BYTES_MAX;
use crate::paced::{Paced, Patience};
use crate::refusal::{self, Refusal};
use crate::rung::Rung;
use crate::seal;
use crate::seats::{Seat, Seats};
use crate::tls::Tls;
use bytes::Bytes;
use hyper::Response;
use hyper::body::Incoming;
use hyper::rt::{Read, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mainspring_engine::Engine;
use socket2::SockRef;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;

/// How long to wait when the system has no more file handles to give.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `engine` on `listener` until `shutdown`: then no connection is taken any more, long
/// polls and streams end, and requests under way may finish within the grace. The engine itself is
/// left for the caller to shut down.
///
/// # Errors
/// If the listener's address cannot be read.
pub async fn serve(
    listener: TcpListener,
    engine: Engine,
    config: Config,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let address = listener.local_addr()?;
    let patience = Patience {
        head: config.header_timeout,
        idle: config.idle_timeout,
        write: config.write_timeout,
    };
    let grace = config.shutdown_grace;
    let seats =
        Seats::new(config.connections.all.max(1), config.connections_kept, config.evict_after);
    let stopping = engine.stopping();
    let app = App::new(engine, config);
    let looking = tokio::spawn({
        let app = app.clone();
        async move { app.dashboard.look(app.engine.clone()).await }
    });
    let sealing = app.engine.fatal().watch("the sealer", seal::run(app.clone()));
    let sealing = tokio::spawn(sealing);
    tracing::info!(%address, "listening");
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            () = stopping.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                let has_room = seats.make_room();
                tracing::warn!(%error, has_room, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
                continue;
            }
        };
        let Some(seat) = seats.take(Instant::now()) else {
            // Without a handshake there is no way to say why; and no room for one.
            if app.config.tls.is_none() {
                turn_away(&stream, &refusal::too_many_connections(), &app);
            }
            continue;
        };
        tokio::spawn(connection(stream, seat, app.clone(), patience, stopping.clone()));
    }
    drop(listener);
    stopping.cancel();
    looking.abort();
    sealing.abort();
    if tokio::time::timeout(grace, seats.empty()).await.is_err() {
        tracing::warn!("some requests did not finish in time");
    }
    Ok(())
}

async fn connection(
    stream: TcpStream,
    seat: Seat,
    app: Arc<App>,
    patience: Patience,
    stopping: CancellationToken,
) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    if let Err(error) = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_BYTES_MAX) {
        tracing::debug!(%error, "cannot set TCP_NOTSENT_LOWAT");
    }
    let Some(tls) = app.config.tls.clone() else {
        let io = Paced::new(TokioIo::new(stream), seat.pace.clone(), patience);
        return converse(io, seat, app, stopping).await;
    };
    let shaken = tokio::select! {
        shaken = shake(stream, &tls, &seat, &app, patience) => shaken,
        () = seat.pace.is_put_out() => return,
        () = stopping.cancelled() => return,
    };
    if let Some(io) = shaken {
        Box::pin(converse(TokioIo::new(io), seat, app, stopping)).await;
    }
}

/// A connection whose bytes are encrypted before they are paced: the client has to take what is
/// really sent, handshake and all.
type Encrypted = TlsStream<TokioIo<Paced<TokioIo<TcpStream>>>>;

/// The first byte of every handshake.
const HANDSHAKE: u8 = 0x16;

/// Agrees with the client on how to encrypt, as long as a head may take.
async fn shake(
    stream: TcpStream,
    tls: &Tls,
    seat: &Seat,
    app: &App,
    patience: Patience,
) -> Option<Box<Encrypted>> {
    let deadline = Instant::now() + patience.head;
    let mut first = [0];
    match timeout_at(deadline, stream.peek(&mut first)).await {
        Ok(Ok(1)) if first[0] == HANDSHAKE => {}
        Ok(Ok(1)) => {
            turn_away(&stream, &refusal::tls_required(), app);
            // What is left unread would make the system take the answer back.
            let _ = stream.try_read(&mut [0; 4 << 10]);
            return None;
        }
        Ok(_) | Err(_) => return None,
    }
    let io = TokioIo::new(Paced::new(TokioIo::new(stream), seat.pace.clone(), patience));
    match timeout_at(deadline, TlsAcceptor::from(tls.config()).accept(io)).await {
        Ok(Ok(io)) => Some(Box::new(io)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "no handshake");
            None
        }
        Err(_) => {
            tracing::debug!("a handshake took too long");
            None
        }
    }
}

/// How a connection is ended from outside.
enum End {
    AtOnce,
    Gracefully,
}

/// Answers one request after the other.
async fn converse<T>(io: T, seat: Seat, app: Arc<App>, stopping: CancellationToken)
where
    T: Read + Write + Unpin + 'static,
{
    let pace = seat.pace.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let (app, pace, busy) = (app.clone(), pace.clone(), pace.begin());
        async move {
            let response: Response<Body> = app.respond_on(request, Some(pace)).await;
            Ok::<_, Infallible>(response.map(|body| body.holding(busy)))
        }
    });
    let mut served = pin!(http1::Builder::new().serve_connection(io, service));
    let end = Rung::new(async {
        tokio::select! {
            () = seat.pace.is_put_out() => End::AtOnce,
            () = stopping.cancelled() => End::Gracefully,
        }
    });
    let mut end = pin!(end);
    let ended = tokio::select! {
        biased;
        ended = served.as_mut() => ended,
        end = end.as_mut() => match end {
            End::AtOnce => {
                tracing::debug!("a connection makes room for another");
                return;
            }
            End::Gracefully => {
                served.as_mut().graceful_shutdown();
                served.await
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

/// Tells a client why it is not served, without waiting for it.
fn turn_away(stream: &TcpStream, refusal: &Refusal, app: &App) {
    let bits = app.engine.fresh_bits();
    let ids = Ids {
        trace: format!("trace_{bits:032x}"),
        request: format!("req_{bits:032x}"),
        is_trace_given: false,
        is_trace_bad: false,
    };
    let response = contracts::word_of_nobody()(refusal, &ids);
    let mut text = format!("HTTP/1.1 {}\r\n", response.status());
    for (name, value) in response.headers() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{name}: {}\r\n", value.to_str().unwrap_or_default());
    }
    let body: Bytes = response.into_body().into_bytes();
    let _ = write!(text, "content-length: {}\r\n\r\n", body.len());
    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(&body);
    if let Err(error) = stream.try_write(&bytes) {
        tracing::debug!(%error, "cannot turn a connection away politely");
    }
}
