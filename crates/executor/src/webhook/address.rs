//! Where a URL leads. The name is resolved once, and every address that it has must be one of the
//! public network, or none is called: a name that leads to a private address besides others is
//! somebody's try. What is connected to later is one of these addresses, and nothing else.

use crate::failing::DISPATCH_FAILED;
use crate::limits::ADDRESSES_MAX;
use mainspring_worker::Failure;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use url::{Host, Url};

/// A URL that can be called.
#[derive(Debug)]
pub(super) struct Target {
    url: Url,
    host: Host<String>,
    pub(super) port: u16,
}

/// Which addresses may be called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allowed {
    Public,
    Any,
}

impl Target {
    /// Reads a URL. Numbers that stand for an address in any spelling are read as that address.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("the URL is wrong: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("the URL is neither https nor http".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL names a user".to_owned());
        }
        let host = url.host().map(|host| host.to_owned()).ok_or("the URL has no host")?;
        let port = url.port_or_known_default().ok_or("the URL has no port")?;
        Ok(Target { url, host, port })
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The host as certificates name it.
    pub(super) fn name(&self) -> String {
        match &self.host {
            Host::Domain(name) => name.trim_end_matches('.').to_owned(),
            Host::Ipv4(v4) => v4.to_string(),
            Host::Ipv6(v6) => v6.to_string(),
        }
    }

    /// The value of the header `host`.
    pub(super) fn authority(&self) -> String {
        match self.url.port() {
            Some(port) => format!("{}:{port}", self.host),
            None => self.host.to_string(),
        }
    }

    /// What is asked for there.
    pub(super) fn path(&self) -> &str {
        &self.url[url::Position::BeforePath..url::Position::AfterQuery]
    }

    /// The addresses that may be connected to, looked up once.
    pub(super) async fn addresses(&self, allowed: Allowed) -> Result<Vec<SocketAddr>, Failure> {
        let found: Vec<IpAddr> = match &self.host {
            Host::Ipv4(v4) => vec![IpAddr::V4(*v4)],
            Host::Ipv6(v6) => vec![IpAddr::V6(*v6)],
            Host::Domain(name) => {
                let looked_up = tokio::net::lookup_host((name.as_str(), self.port)).await;
                let found = looked_up.map_err(|error| {
                    let message = format!("{name} cannot be resolved: {error}");
                    Failure::retryable(DISPATCH_FAILED, message)
                })?;
                found.map(|address| address.ip()).collect()
            }
        };
        let host = &self.host;
        if let Some(private) =
            found.iter().find(|ip| allowed == Allowed::Public && !is_public(**ip))
        {
            let message = format!(
                "{host} leads to {private}, which is no public address; [webhooks] allow_private \
                 permits such"
            );
            return Err(Failure::permanent(DISPATCH_FAILED, message));
        }
        if found.is_empty() {
            return Err(Failure::retryable(DISPATCH_FAILED, format!("{host} has no address")));
        }
        let sockets = found.into_iter().map(|ip| SocketAddr::new(ip, self.port));
        Ok(sockets.take(ADDRESSES_MAX).collect())
    }
}

/// Whether an address belongs to the public network: not to this machine, not to this network, and
/// to nobody by agreement.
pub(super) fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => is_public_v6(v6),
    }
}

fn is_public_v4(v4: Ipv4Addr) -> bool {
    let [a, b, c, _] = v4.octets();
    let is_special = match (a, b, c) {
        // This network, this machine, multicast, reserved, broadcast.
        (0 | 10 | 127 | 224.., _, _) => true,
        // Shared by carriers; link-local, where metadata services are; private.
        (100, 64..=127, _) | (169, 254, _) | (172, 16..=31, _) | (192, 168, _) => true,
        // Protocol assignments, documentation, relays, benchmarks.
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) => true,
        (198, 51, 100) | (203, 0, 113) => true,
        (_, _, _) => false,
    };
    !is_special
}

fn is_public_v6(v6: Ipv6Addr) -> bool {
    let [a, b, c, d, e, f, g, h] = v6.segments();
    // An IPv4 address in another dress: mapped, or translated.
    if (a, b, c, d, e) == (0, 0, 0, 0, 0) && f == 0xffff
        || (a, b, c, d, e, f) == (0x64, 0xff9b, 0, 0, 0, 0)
    {
        let [g, h] = [g, h].map(u16::to_be_bytes);
        return is_public_v4(Ipv4Addr::new(g[0], g[1], h[0], h[1]));
    }
    // Only 2000::/3 is given out; of that, some to protocols, documentation and tunnels.
    let is_given_out = a & 0xe000 == 0x2000;
    let is_special = (a == 0x2001 && b < 0x200)
        || (a, b) == (0x2001, 0xdb8)
        || a == 0x2002
        || a == 0x3fff && b < 0x1000;
    is_given_out && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_public() {
        for private in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0.0.0.0",
            "::127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "5f00::1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
        for public in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
    }

    /// However an address is spelled, it is read as what a connection would make of it.
    #[tokio::test]
    async fn every_spelling_of_this_machine_is_refused() {
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f000001",
            "017700000001",
            "127.1",
            "0x7f.1",
            "127.0.0.1.",
            "0.0.0.0",
            "0",
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:127.0.0.1]",
            "localhost",
            "LOCALHOST",
            "localhost.",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",
            "169.254.169.254",
            "10.1",
        ] {
            let target = match Target::of(&format!("http://{host}:7/x")) {
                Ok(target) => target,
                // What is no host leads nowhere.
                Err(_) => continue,
            };
            let refused = target.addresses(Allowed::Public).await.expect_err(host);
            assert_eq!(refused.code, DISPATCH_FAILED, "{host}");
            assert!(!target.name().is_empty());
        }
        let own = Target::of("http://2130706433:7/x").unwrap();
        let found = own.addresses(Allowed::Any).await.unwrap();
        assert_eq!(found, [SocketAddr::from(([127, 0, 0, 1], 7))]);
    }

    #[test]
    fn a_url_is_read_once_for_all() {
        let target = Target::of("https://a.example./hook?x=1#part").unwrap();
        assert_eq!((target.path(), target.port), ("/hook?x=1", 443));
        assert_eq!(
            (target.name().as_str(), target.authority().as_str()),
            ("a.example", "a.example.")
        );
        assert!(target.is_encrypted());
        let target = Target::of("http://[::1]:8080").unwrap();
        assert_eq!((target.path(), &*target.authority()), ("/", "[::1]:8080"));
        for bad in ["ftp://a.example", "https://me@a.example", "https://:p@a.example", "https:"] {
            assert!(Target::of(bad).is_err(), "{bad}");
        }
    }
}
