//! Reach of an address (this machine, private network, public), and a resolver that enforces a limit.

use std::net::{IpAddr, SocketAddr};

/// Reach of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// This machine.
    Here,
    /// A network that is not routed on the internet.
    Private,
    /// A name: known after the look-up.
    Unknown,
    Public,
}

impl Reach {
    pub(super) fn of(host: &url::Host<&str>) -> Self {
        match host {
            url::Host::Domain(name) => {
                let name = name.trim_end_matches('.').to_ascii_lowercase();
                if name == "localhost" || name.ends_with(".localhost") {
                    Self::Here
                } else {
                    Self::Unknown
                }
            }
            url::Host::Ipv4(ip) => Self::of_ip((*ip).into()),
            url::Host::Ipv6(ip) => Self::of_ip((*ip).into()),
        }
    }

    pub(super) fn of_ip(ip: IpAddr) -> Self {
        let private = match ip.to_canonical() {
            ip if ip.is_loopback() || ip.is_unspecified() => return Self::Here,
            // 100.64.0.0/10 is shared address space: carriers and overlay networks use it.
            IpAddr::V4(ip) => {
                ip.is_private() || ip.is_link_local() || (ip.octets()[0] == 100 && ip.octets()[1] & 0xC0 == 64)
            }
            IpAddr::V6(ip) => ip.is_unique_local() || ip.is_unicast_link_local(),
        };
        if private { Self::Private } else { Self::Public }
    }
}

/// The system's resolver, with a limit on where the peer of a plain connection may turn out to be.
pub(super) struct Resolver {
    /// The peer's name and how far away it may be. Other names are those of proxies.
    pub(super) only: Option<(String, Reach)>,
}

/// The look-up failed.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub(super) struct NameError {
    pub(super) host: String,
    pub(super) source: std::io::Error,
}

/// A name of a plain peer led out of the private network.
#[derive(Debug, thiserror::Error)]
#[error("{address} is not a private address")]
pub(super) struct NotPrivate {
    pub(super) address: IpAddr,
}

impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, name: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let host = name.as_str().to_owned();
        let farthest = match &self.only {
            Some((peer, Reach::Here)) if *peer == host => Reach::Here,
            Some((peer, Reach::Private | Reach::Unknown | Reach::Public)) if *peer == host => Reach::Private,
            Some(_) | None => Reach::Public,
        };
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await.map(Vec::from_iter);
            let found: Vec<SocketAddr> = found.map_err(|source| NameError { host, source })?;
            if let Some(far) = found.iter().find(|it| Reach::of_ip(it.ip()) > farthest) {
                return Err(NotPrivate { address: far.ip() }.into());
            }
            Ok(Box::new(found.into_iter()) as reqwest::dns::Addrs)
        })
    }
}
