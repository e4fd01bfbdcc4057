//! The native contract from outside: whole requests against a real engine on a store in memory,
//! without a socket. `native/` has one file per topic; `socket.rs` is about connections.

#![expect(clippy::unwrap_used, reason = "everything here is a test")]

mod native {
    mod access;
    mod bounds;
    mod dlq;
    mod door;
    mod jobs;
    mod leases;
    mod revocation;
    mod server;
    mod socket;
    mod strictness;
    mod values;
    mod work;
}
