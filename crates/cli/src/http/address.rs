//! Where to listen, as it is written on the command line.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// `HOST:PORT`, `HOST`, `:PORT` or `PORT`; without a host the loopback address, without a
/// port the command's own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListenAddress {
    host: Option<String>,
    port: Option<u16>,
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not HOST:PORT, HOST or PORT");
        if text.is_empty() {
            return Ok(Self::default());
        }
        if let Ok(port) = text.parse() {
            return Ok(Self {
                host: None,
                port: Some(port),
            });
        }
        // An address of version 6 has colons of its own.
        let is_bare = text.parse::<IpAddr>().is_ok();
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) if !is_bare && !text.ends_with(']') => {
                (host, Some(port.parse().map_err(|_| wrong())?))
            }
            _ => (text, None),
        };
        let host = host
            .strip_prefix('[')
            .map_or(host, |host| host.strip_suffix(']').unwrap_or(host));
        let is_name = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
        if !host.chars().all(is_name) || (host.is_empty() && port.is_none()) {
            return Err(wrong());
        }
        let host = (!host.is_empty()).then(|| host.to_owned());
        Ok(Self { host, port })
    }
}

impl ListenAddress {
    /// As it is told.
    pub fn shown(&self, default_port: u16) -> String {
        let port = self.port.unwrap_or(default_port);
        match self.host.as_deref() {
            Some(host) if host.contains(':') => format!("[{host}]:{port}"),
            host => format!("{}:{port}", host.unwrap_or("127.0.0.1")),
        }
    }

    /// The addresses that it stands for.
    pub fn resolve(&self, default_port: u16) -> io::Result<Vec<SocketAddr>> {
        let port = self.port.unwrap_or(default_port);
        let local = IpAddr::from(Ipv4Addr::LOCALHOST);
        match &self.host {
            None => Ok(vec![SocketAddr::new(local, port)]),
            Some(host) => Ok((host.as_str(), port).to_socket_addrs()?.collect()),
        }
    }
}
