//! A small HTTP/1.1 server for what is looked at and never changed: GET and HEAD, one
//! request a connection, on the loopback address unless another is told.
//!
//! Everything is bounded: how many connections there are, how long each lasts, how long a
//! request is. A page of elsewhere cannot read what is served on the loopback address by
//! a name of its own that leads there: the Host header has to name this machine.
//! No path is one of the file system; what is served is what the handler makes.

mod address;
mod request;
#[cfg(test)]
mod tests;

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use fathom_device::threads::{self, NoThread};
use fathom_model::Exit;

pub use address::ListenAddress;
pub use request::Request;

use crate::exit_error::ExitError;
use request::{HEAD_BYTES_MAX, Parsed};

/// Connections at a time; who comes beyond is told to come again.
const CONNECTIONS_MAX: usize = 32;
/// How long a request may take to arrive.
const REQUEST_TIME: Duration = Duration::from_secs(10);
/// How long an answer may take to leave: a page of some MB over a slow line.
const ANSWER_TIME: Duration = Duration::from_secs(120);
/// How long a single write may wait.
const WRITE_TIME: Duration = Duration::from_secs(20);
/// Bytes written between two looks at the clock.
const PIECE_BYTES: usize = 64 << 10;
/// How long to wait where no connection can be taken, as when descriptors are used up.
const RETRY: Duration = Duration::from_millis(100);

/// What is answered to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    status: &'static str,
    content_type: &'static str,
    body: Vec<u8>,
}

impl Response {
    /// What was asked for.
    pub fn ok(content_type: &'static str, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status: "200 OK",
            content_type,
            body: body.into(),
        }
    }

    /// Why there is nothing: `status` as in `404 Not Found`.
    pub fn refusal(status: &'static str, why: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{why}\n").into_bytes(),
        }
    }

    /// There is nothing of this name.
    pub fn not_found() -> Self {
        Self::refusal("404 Not Found", "there is nothing here")
    }

    fn head(&self) -> String {
        let allow = match self.status.starts_with("405") {
            true => "Allow: GET, HEAD\r\n",
            false => "",
        };
        format!(
            "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}\
             Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n\
             X-Frame-Options: DENY\r\nCross-Origin-Resource-Policy: same-origin\r\n\
             Referrer-Policy: no-referrer\r\nConnection: close\r\n\r\n",
            self.status,
            self.content_type,
            self.body.len()
        )
    }
}

/// What answers requests, each on a thread of its own.
pub type Handler = dyn Fn(&Request) -> Response + Send + Sync;

/// A server that listens and does not answer yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens on an address of this machine.
    ///
    /// # Errors
    /// Exit 5 where it is none, or is taken.
    pub fn bind(asked: &ListenAddress, default_port: u16) -> anyhow::Result<Self> {
        let name = asked.shown(default_port);
        let lack = |error: io::Error| {
            let what = match error.kind() {
                io::ErrorKind::AddrInUse => format!(
                    "cannot listen on {name}: another program does\n  to do: name another port, or port 0 for any that is free"
                ),
                io::ErrorKind::AddrNotAvailable => {
                    format!("cannot listen on {name}: it is no address of this machine")
                }
                _ => format!("cannot listen on {name}: {error}"),
            };
            ExitError::new(Exit::Missing, what)
        };
        let listener = TcpListener::bind(&*asked.resolve(default_port).map_err(lack)?);
        let listener = listener.map_err(lack)?;
        let address = listener.local_addr().map_err(lack)?;
        Ok(Self { listener, address })
    }

    /// As [`Server::bind`]; where no address was told and the port is taken, on another.
    ///
    /// # Errors
    /// As [`Server::bind`].
    pub fn bind_or_any(asked: &ListenAddress, default_port: u16) -> anyhow::Result<Self> {
        let bound = Self::bind(asked, default_port);
        match *asked == ListenAddress::default() {
            true => bound.or_else(|_| Self::bind(asked, 0)),
            false => bound,
        }
    }

    /// Where it is reached, for a browser on this machine: `http://127.0.0.1:8766/`.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Whether others than this machine reach it.
    pub fn is_public(&self) -> bool {
        !self.address.ip().is_loopback()
    }

    /// Answers from now on, until the program ends.
    ///
    /// # Errors
    /// When no thread can be had for it.
    pub fn serve(self, handler: Arc<Handler>) -> Result<(), NoThread> {
        let Self { listener, address } = self;
        let is_local = address.ip().is_loopback();
        let open = Arc::new(AtomicUsize::new(0));
        let work = move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    std::thread::sleep(RETRY);
                    continue;
                };
                let place = Place::take(&open);
                let handler = Arc::clone(&handler);
                let Some(place) = place else {
                    busy(&stream);
                    continue;
                };
                // Without a thread the connection is closed, and whoever asks asks again.
                let _ = threads::spawn("http connection", move || {
                    let _place = place;
                    let _ = converse(stream, is_local, &*handler);
                });
            }
        };
        threads::spawn("http", work).map(drop)
    }
}

/// One of the connections that there may be.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(open: &Arc<AtomicUsize>) -> Option<Self> {
        let place = Self(Arc::clone(open));
        let before = open.fetch_add(1, Ordering::Relaxed);
        // Given back by its end.
        (before < CONNECTIONS_MAX).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn busy(mut stream: &TcpStream) {
    let answer = Response::refusal("503 Service Unavailable", "too many connections");
    // It fits into the socket's buffer: nothing is waited for.
    let _ = stream
        .set_nonblocking(true)
        .and_then(|()| stream.write_all(answer.head().as_bytes()));
}

/// Reads one request and answers it.
fn converse(mut stream: TcpStream, is_local: bool, handler: &Handler) -> io::Result<()> {
    let head = read_head(&mut stream)?;
    let (answer, with_body) = match Parsed::of(&head, is_local) {
        Ok(parsed) => (handler(&parsed.request), !parsed.is_head),
        Err(refusal) => (refusal, true),
    };
    stream.set_write_timeout(Some(WRITE_TIME))?;
    let until = Instant::now() + ANSWER_TIME;
    stream.write_all(answer.head().as_bytes())?;
    for piece in answer.body.chunks(PIECE_BYTES).take_while(|_| with_body) {
        if Instant::now() > until {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.write_all(piece)?;
    }
    stream.shutdown(std::net::Shutdown::Write)
}

/// What comes before the empty line behind the headers, or what has come of it when it is
/// too long.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let until = Instant::now() + REQUEST_TIME;
    let mut head = Vec::new();
    let mut piece = [0; 2048];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let n = stream.read(&mut piece)?;
        head.extend_from_slice(&piece[..n]);
        let ends = head.windows(4).any(|four| four == b"\r\n\r\n");
        if n == 0 || ends || head.len() > HEAD_BYTES_MAX {
            return Ok(head);
        }
    }
}
