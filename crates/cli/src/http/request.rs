//! A request, as far as it is understood.

use super::Response;

/// A longer head is refused: browsers stay far below it.
pub const HEAD_BYTES_MAX: usize = 16 << 10;

/// What somebody wants to see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// The path, decoded, from its first slash on.
    pub path: String,
    /// Names and values behind the `?`, decoded, in their order.
    pub query: Vec<(String, String)>,
    /// The header `Accept`, empty without one.
    pub accept: String,
}

impl Request {
    /// The first value of this name; empty without any.
    pub fn value(&self, name: &str) -> &str {
        let mut pairs = self.query.iter();
        let found = pairs.find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }
}

/// A request that may be answered.
#[derive(Debug, PartialEq, Eq)]
pub struct Parsed {
    pub request: Request,
    /// Without its content.
    pub is_head: bool,
}

impl Parsed {
    /// Reads what has come. `is_local`: only this machine reaches the server, so that the
    /// request must name it.
    pub fn of(bytes: &[u8], is_local: bool) -> Result<Self, Response> {
        let bad = |why| Response::refusal("400 Bad Request", why);
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(end) = end.filter(|end| *end <= HEAD_BYTES_MAX) else {
            return Err(match bytes.len() > HEAD_BYTES_MAX {
                true => Response::refusal(
                    "431 Request Header Fields Too Large",
                    "the request is too long",
                ),
                false => bad("the request is not whole"),
            });
        };
        let text = std::str::from_utf8(&bytes[..end]).map_err(|_| bad("it is not UTF-8"))?;
        let mut lines = text.split("\r\n");
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [method, target, version] = words[..] else {
            return Err(bad("this is no HTTP/1.1"));
        };
        if !version.starts_with("HTTP/1.") {
            return Err(bad("this is no HTTP/1.1"));
        }
        let is_head = match method {
            "GET" => false,
            "HEAD" => true,
            _ => {
                return Err(Response::refusal(
                    "405 Method Not Allowed",
                    "here things are looked at, and never changed",
                ));
            }
        };
        let (mut hosts, mut accept) = (Vec::new(), "");
        for line in lines {
            let (name, value) = line.split_once(':').ok_or_else(|| bad("no header"))?;
            match name.to_ascii_lowercase().as_str() {
                "host" => hosts.push(value.trim()),
                "accept" => accept = value.trim(),
                "content-length" | "transfer-encoding" if value.trim() != "0" => {
                    return Err(bad("a request for a page has no content"));
                }
                _ => {}
            }
        }
        let [host] = hosts[..] else {
            return Err(bad("the header Host must stand there once"));
        };
        if is_local && !names_this_machine(host) {
            return Err(Response::refusal(
                "421 Misdirected Request",
                "the Host header must name this machine: localhost, or its address",
            ));
        }
        let request = target_of(target, accept).ok_or_else(|| bad("no path"))?;
        Ok(Self { request, is_head })
    }
}

/// Whether a browser that sends this asks the loopback address by a name of its own.
fn names_this_machine(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    match address {
        Some(six) => six
            .parse()
            .is_ok_and(|it: std::net::Ipv6Addr| it.is_loopback()),
        None => {
            name.eq_ignore_ascii_case("localhost")
                || name
                    .parse()
                    .is_ok_and(|it: std::net::Ipv4Addr| it.is_loopback())
        }
    }
}

/// The path and what stands behind it; `None`: it is none of this server.
fn target_of(target: &str, accept: &str) -> Option<Request> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let path = decoded(path, false)?;
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let query = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        Some((decoded(name, true)?, decoded(value, true)?))
    });
    path.starts_with('/').then_some(())?;
    Some(Request {
        path,
        query: query.collect::<Option<_>>()?,
        accept: accept.to_owned(),
    })
}

/// Text with its `%41` read; in a query a plus sign is a space.
fn decoded(text: &str, is_query: bool) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                u8::try_from(high * 16 + low).ok()?
            }
            b'+' if is_query => b' ',
            other => other,
        });
    }
    String::from_utf8(bytes)
        .ok()
        .filter(|it| !it.contains('\0'))
}
