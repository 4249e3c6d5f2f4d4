//! Where a fio server is, or is to be: the forms that fio itself takes
//! (`fio_server_parse_string` in server.c), read here so that a mistake is told
//! before anything is started.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

use fathom_device::regular;

/// fio's own port (`FIO_NET_PORT` in server.h).
pub const DEFAULT_PORT: u16 = 8765;
/// Longest host file that is read: a thousand names of the longest kind.
const HOST_FILE_BYTES_MAX: u64 = 256 << 10;

/// The address of a fio server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Address {
    /// A host's name or IPv4 address (`ip:`), or one of IPv6 (`ip6:`).
    Ip {
        /// Name or address; empty for every address of this machine.
        host: String,
        /// TCP port.
        port: u16,
        /// IPv6.
        v6: bool,
    },
    /// A socket of this machine (`sock:`).
    Sock(PathBuf),
}

/// An address that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no address of a fio server: {reason}")]
pub struct BadAddress {
    text: String,
    reason: String,
}

impl Address {
    /// Reads one of fio's forms: `host`, `ip:host,4444`, `ip6:::1,4444`, `,4444`,
    /// `1.2.3.4`, `sock:/path`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, BadAddress> {
        let bad = |reason: &str| BadAddress {
            text: text.to_owned(),
            reason: reason.to_owned(),
        };
        if let Some(path) = text.strip_prefix("sock:") {
            return match path {
                "" => Err(bad("write sock:PATH")),
                path => Ok(Self::Sock(path.into())),
            };
        }
        let (rest, forced_v6) = match text.strip_prefix("ip6:") {
            Some(rest) => (rest, true),
            None => {
                let rest = text.strip_prefix("ip4:").or(text.strip_prefix("ip:"));
                (rest.unwrap_or(text), false)
            }
        };
        let (host, port) = match rest.rsplit_once(',') {
            None => (rest, DEFAULT_PORT),
            Some((host, port)) => {
                let port = port.trim().parse().ok().filter(|&port| port > 0);
                (
                    host,
                    port.ok_or_else(|| bad("the port behind the comma is 1 to 65535"))?,
                )
            }
        };
        let host = host.trim();
        let v6 = forced_v6 || host.parse::<std::net::Ipv6Addr>().is_ok();
        if !v6 && host.contains(':') {
            return Err(bad("put a comma before the port: host,4444"));
        }
        if host.contains(|c: char| c.is_whitespace() || c == '/' || c == ',') {
            return Err(bad("a host's name has no blanks, slashes and commas"));
        }
        if host.starts_with('-') {
            return Err(bad("a host's name does not begin with a dash"));
        }
        let host = host.to_owned();
        Ok(Self::Ip { host, port, v6 })
    }

    /// Whether it stands for every address of this machine.
    pub fn is_everywhere(&self) -> bool {
        match self {
            Self::Sock(_) => false,
            Self::Ip { host, .. } => {
                host.is_empty()
                    || host
                        .parse::<std::net::IpAddr>()
                        .is_ok_and(|ip| ip.is_unspecified())
            }
        }
    }

    /// Its name in figures: the host, or the socket's path.
    pub fn name(&self) -> String {
        match self {
            Self::Ip { host, .. } => host.clone(),
            Self::Sock(path) => path.display().to_string(),
        }
    }

    /// Its port in figures.
    pub fn port(&self) -> Option<u16> {
        match self {
            Self::Ip { port, .. } => Some(*port),
            Self::Sock(_) => None,
        }
    }
}

/// As fio's `--client` and `--server` take it.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let (prefix, host, port) = match self {
            Self::Sock(path) => return write!(f, "sock:{}", path.display()),
            Self::Ip { host, port, v6 } => (if *v6 { "ip6:" } else { "" }, host, *port),
        };
        match port {
            DEFAULT_PORT if !host.is_empty() => write!(f, "{prefix}{host}"),
            port => write!(f, "{prefix}{host},{port}"),
        }
    }
}

/// What each value of `--client` names: a server, or a file with one a line
/// (blank lines and those that begin with `#` are passed over).
///
/// # Errors
/// A sentence about the value, with the file's line.
pub fn servers(values: &[String]) -> Result<Vec<Address>, String> {
    let mut all: Vec<Address> = Vec::new();
    for value in values {
        let path = Path::new(value);
        let found = match path.is_file() {
            true => of_file(path)?,
            false => vec![
                Address::parse(value).map_err(|bad| match value.contains('/') {
                    true => format!("{value}: there is no such host file ({bad})"),
                    false => bad.to_string(),
                })?,
            ],
        };
        for address in found {
            if address.name().is_empty() {
                return Err(format!("{value:?} names no host to connect to"));
            }
            if all.contains(&address) {
                return Err(format!("the server {address} is named twice"));
            }
            all.push(address);
        }
    }
    Ok(all)
}

fn of_file(path: &Path) -> Result<Vec<Address>, String> {
    let shown = path.display();
    let read = regular::read(path, HOST_FILE_BYTES_MAX).map_err(|e| format!("{shown}: {e}"))?;
    let text = String::from_utf8(read).map_err(|_| format!("{shown} is no text"))?;
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let address = Address::parse(line).map_err(|bad| format!("{shown}:{number}: {bad}"))?;
        found.push(address);
    }
    match found.is_empty() {
        true => Err(format!("{shown} names no host")),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(host: &str, port: u16, v6: bool) -> Address {
        let host = host.to_owned();
        Address::Ip { host, port, v6 }
    }

    #[test]
    fn every_form_of_fio_is_read_and_written() {
        for (text, address, written) in [
            ("bench1", ip("bench1", 8765, false), "bench1"),
            ("1.2.3.4", ip("1.2.3.4", 8765, false), "1.2.3.4"),
            ("ip:bench1,4444", ip("bench1", 4444, false), "bench1,4444"),
            ("ip4:1.2.3.4", ip("1.2.3.4", 8765, false), "1.2.3.4"),
            ("bench1,4444", ip("bench1", 4444, false), "bench1,4444"),
            ("ip6:::1,4444", ip("::1", 4444, true), "ip6:::1,4444"),
            ("ip6:fe80::1", ip("fe80::1", 8765, true), "ip6:fe80::1"),
            ("::1", ip("::1", 8765, true), "ip6:::1"),
            (",4444", ip("", 4444, false), ",4444"),
            ("", ip("", 8765, false), ",8765"),
            ("sock:/tmp/s", Address::Sock("/tmp/s".into()), "sock:/tmp/s"),
        ] {
            let parsed = Address::parse(text).unwrap();
            assert_eq!(parsed, address, "{text}");
            assert_eq!(parsed.to_string(), written);
            assert_eq!(Address::parse(written), Ok(address), "{written}");
        }
        for wrong in ["a,0", "a,x", "a,70000", "a:80", "sock:", "a b", "/x", "-a"] {
            assert!(Address::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn everywhere_is_known() {
        for text in [",4444", "", "0.0.0.0", "ip6:::", "ip6:,4444"] {
            assert!(Address::parse(text).unwrap().is_everywhere(), "{text}");
        }
        for text in ["127.0.0.1", "ip6:::1", "sock:/tmp/x", "bench1"] {
            assert!(!Address::parse(text).unwrap().is_everywhere(), "{text}");
        }
    }

    #[test]
    fn a_host_file_has_a_server_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("hosts");
        let value = path.to_str().unwrap().to_owned();
        std::fs::write(&path, "# lab\n10.0.0.1\n\n ip6:::1,4444 \nsock:/s\n").unwrap();
        let all = servers(&["first".to_owned(), value.clone()]).unwrap();
        let all: Vec<String> = all.iter().map(Address::to_string).collect();
        assert_eq!(all, ["first", "10.0.0.1", "ip6:::1,4444", "sock:/s"]);
        std::fs::write(&path, "a\nb:80\n").unwrap();
        let wrong = servers(std::slice::from_ref(&value)).unwrap_err();
        assert!(wrong.contains("hosts:2: \"b:80\""), "{wrong}");
        std::fs::write(&path, "a\na\n").unwrap();
        assert!(servers(std::slice::from_ref(&value)).is_err());
        assert!(servers(&[",4444".to_owned()]).is_err());
        let missing = servers(&["/no/such/hosts".to_owned()]).unwrap_err();
        assert!(missing.contains("no such host file"), "{missing}");
    }
}
