//! Tells a service manager when the server takes work and when it stops (`sd_notify`). Without one,
//! nobody is told.

use std::ffi::OsStr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Names the socket.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The server takes work.
pub(super) fn ready() {
    tell("READY=1\nSTATUS=taking work");
}

/// The server is about to end.
pub(super) fn stopping() {
    tell("STOPPING=1\nSTATUS=stopping");
}

fn tell(state: &str) {
    let Some(name) = std::env::var_os(SOCKET).filter(|name| !name.is_empty()) else { return };
    let sent = address(&name)
        .and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, "the service manager cannot be told");
    }
}

/// A path, or a name of the abstract kind, which begins with `@`.
fn address(name: &OsStr) -> std::io::Result<SocketAddr> {
    match name.as_bytes().split_first() {
        Some((b'@', rest)) => SocketAddr::from_abstract_name(rest),
        Some(_) | None => SocketAddr::from_pathname(name),
    }
}
