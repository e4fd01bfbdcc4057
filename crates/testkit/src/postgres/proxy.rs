//! A network that fails on command: forwards to a cluster, and can cut, refuse, swallow or delay
//! what goes through. With one for each server, one server can be cut off alone.

use super::Admin;
use super::place::free_port;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

/// What happens to bytes and connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Forward,
    /// Nobody listens; what is connected goes on.
    Refuse,
    /// Connections are accepted and stay open, and nothing gets through.
    Swallow,
    /// The proxy is gone.
    End,
}

#[derive(Debug, Clone, Copy)]
struct State {
    mode: Mode,
    /// How often everything was cut.
    cuts: u64,
    /// How long every piece is held back.
    delay: Duration,
}

/// A running proxy.
#[derive(Debug)]
pub struct Proxy {
    admin: Admin,
    state: watch::Sender<State>,
    bytes_back: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// Starts one in front of the cluster.
    ///
    /// # Panics
    /// If it cannot listen.
    pub fn start(cluster: &Admin) -> Self {
        let admin = Admin { port: free_port(), ..cluster.clone() };
        let target = address(cluster);
        let (state, seen) =
            watch::channel(State { mode: Mode::Forward, cuts: 0, delay: Duration::ZERO });
        let here = address(&admin);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        // Bound and never listened at: while nobody listens, the port stays ours.
        let kept = bound(here);
        let first = runtime.block_on(async { listening(here) });
        let bytes_back = Arc::new(AtomicU64::new(0));
        let line = Line { target, seen, bytes_back: bytes_back.clone() };
        let thread = std::thread::spawn(move || runtime.block_on(serve(first, kept, line)));
        Proxy { admin, state, bytes_back, thread: Some(thread) }
    }

    /// How to reach the cluster through it.
    pub fn admin(&self) -> &Admin {
        &self.admin
    }

    /// Bytes that came back from the cluster so far.
    pub fn bytes_back(&self) -> u64 {
        self.bytes_back.load(Ordering::Relaxed)
    }

    /// Breaks every connection with a reset; new ones work.
    pub fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Breaks every connection and refuses new ones.
    pub fn refuse(&self) {
        self.state.send_modify(|state| {
            state.mode = Mode::Refuse;
            state.cuts += 1;
        });
    }

    /// Keeps every connection open, takes new ones, and lets nothing through.
    pub fn swallow(&self) {
        self.state.send_modify(|state| state.mode = Mode::Swallow);
    }

    /// Holds every piece back for this long, in both directions.
    pub fn delay(&self, delay: Duration) {
        self.state.send_modify(|state| state.delay = delay);
    }

    /// Works as it should again. What was held back arrives now.
    pub fn heal(&self) {
        self.state.send_modify(|state| {
            state.mode = Mode::Forward;
            state.delay = Duration::ZERO;
        });
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.state.send_modify(|state| {
            state.mode = Mode::End;
            state.cuts += 1;
        });
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn address(admin: &Admin) -> SocketAddr {
    let host = admin.host.parse().expect("the host is an address");
    SocketAddr::new(host, admin.port)
}

/// What every connection has to know.
#[derive(Clone)]
struct Line {
    target: SocketAddr,
    seen: watch::Receiver<State>,
    bytes_back: Arc<AtomicU64>,
}

/// A socket that shares its port with others of this process.
fn bound(here: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.set_reuseaddr(true).and(socket.set_reuseport(true)).expect("Linux can");
    socket.bind(here).expect("the port is free");
    socket
}

fn listening(here: SocketAddr) -> TcpListener {
    bound(here).listen(1024).expect("it listens")
}

async fn serve(first: TcpListener, _kept: TcpSocket, line: Line) {
    let mut seen = line.seen.clone();
    let here = first.local_addr().expect("it is bound");
    let mut listener = Some(first);
    loop {
        let state = *seen.borrow_and_update();
        match state.mode {
            Mode::End => return,
            Mode::Refuse => listener = None,
            Mode::Forward | Mode::Swallow if listener.is_none() => {
                listener = Some(listening(here));
            }
            Mode::Forward | Mode::Swallow => {}
        }
        let Some(open) = &listener else {
            let _ = seen.changed().await;
            continue;
        };
        tokio::select! {
            _ = seen.changed() => {}
            accepted = open.accept() => {
                if let Ok((client, _)) = accepted {
                    tokio::spawn(connection(client, line.clone()));
                }
            }
        }
    }
}

/// One connection, until a side ends it or it is cut.
async fn connection(mut client: TcpStream, line: Line) {
    let Line { target, mut seen, bytes_back } = line;
    let State { mode, cuts, .. } = *seen.borrow_and_update();
    // Closing then sends a reset, as a firewall or a dead machine's kernel would.
    let _ = client.set_zero_linger();
    if mode == Mode::Refuse {
        // It was taken while the word came that nobody listens any more.
        return;
    }
    let mut cut = seen.clone();
    tokio::select! {
        // First: what was swallowed before a cut must not get through when all is well again.
        biased;
        _ = cut.wait_for(|state| state.cuts > cuts) => {}
        () = async {
            let _ = seen.wait_for(|state| state.mode != Mode::Swallow).await;
            let Ok(mut server) = TcpStream::connect(target).await else { return };
            let _ = (client.set_nodelay(true), server.set_nodelay(true));
            let _ = server.set_zero_linger();
            let ((from_client, to_client), (from_server, to_server)) =
                (client.split(), server.split());
            tokio::select! {
                () = pour(from_client, to_server, seen.clone(), None) => {}
                () = pour(from_server, to_client, seen.clone(), Some(&bytes_back)) => {}
            }
        } => {}
    }
}

/// Forwards in one direction.
async fn pour(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    mut seen: watch::Receiver<State>,
    count: Option<&AtomicU64>,
) {
    let mut piece = vec![0; 64 * 1024];
    loop {
        let Ok(length @ 1..) = from.read(&mut piece).await else { return };
        if let Some(count) = count {
            count.fetch_add(length as u64, Ordering::Relaxed);
        }
        let delay = seen.borrow().delay;
        if delay > Duration::ZERO {
            tokio::time::sleep(delay).await; // paced: a slow network is the point
        }
        let _ = seen.wait_for(|state| state.mode != Mode::Swallow).await;
        if to.write_all(&piece[..length]).await.is_err() {
            return;
        }
    }
}
