//! The line from fio's client to one server, with Fathom in the middle of it.

use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use fathom_device::bounded::Bounded;
use fathom_model::{Failure, FailureKind};

use super::address::Address;
use super::frame::{self, Frame, ServerProgress, op};
use super::quota::FrameQuota;

/// How long a server may take to accept a connection: three attempts of TCP,
/// the last of which begins 3 s after the first (RFC 6298, initial timeout 1 s).
const CONNECT_WAIT: Duration = Duration::from_secs(6);
/// The tag of Fathom's own questions; fio's are addresses of its memory.
const OUR_TAG: u64 = 1;
/// What to do about something else that listens there.
const NAME_A_SERVER: &str = "name the address of a fio server ('fathom serve' makes one); its port is 8765 unless it is named";
/// What to do about a server that wants what none may.
const DISTRUST: &str = "no fio server does that: find out what runs there before it is used again";
/// Most bytes that wait for one side before no more are read from the other.
const BACKLOG_BYTES: usize = 1 << 20;
/// Most reads in one turn: who sends without a pause holds up nobody else.
const READS_A_TURN: usize = 16;

/// Connects to a server.
///
/// # Errors
/// Why not, about that server.
pub fn connect(address: &Address) -> Result<OwnedFd, Failure> {
    let failed = |error: &io::Error| {
        let what = match error.kind() {
            ErrorKind::ConnectionRefused => {
                "it refuses the connection: no fio server listens there".to_owned()
            }
            ErrorKind::TimedOut => {
                format!("it does not answer within {} s", CONNECT_WAIT.as_secs())
            }
            _ => format!("it cannot be reached: {}", one_line(error)),
        };
        let failure = Failure::new(FailureKind::NoServer, what).about(address.to_string());
        match error.raw_os_error() {
            Some(errno) => failure.with_errno(errno),
            None => failure,
        }
    };
    match address {
        Address::Sock(path) => UnixStream::connect(path).map(OwnedFd::from),
        Address::Ip { host, port, v6 } => connect_ip(host, *port, *v6).map(OwnedFd::from),
    }
    .and_then(|fd| {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(fd)
    })
    .map_err(|error| failed(&error))
}

fn connect_ip(host: &str, port: u16, v6: bool) -> io::Result<TcpStream> {
    let known = (host, port).to_socket_addrs()?;
    let mut last = io::Error::new(ErrorKind::NotFound, "no address of that family is known");
    for address in known.filter(|address| address.is_ipv6() == v6) {
        match TcpStream::connect_timeout(&address, CONNECT_WAIT) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn one_line(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// One end of the line.
#[derive(Debug)]
pub struct LinkEnd {
    fd: OwnedFd,
    input: Vec<u8>,
    output: Vec<u8>,
    is_finished: bool,
}

impl LinkEnd {
    fn new(fd: OwnedFd) -> Self {
        Self {
            fd,
            input: Vec::new(),
            output: Vec::new(),
            is_finished: false,
        }
    }

    /// Reads what is there, a turn's worth; whether the other side has closed.
    fn read(&mut self, chunk: &mut [u8]) -> bool {
        for _ in 0..READS_A_TURN {
            match rustix::io::read(self.fd.as_fd(), &mut *chunk) {
                Ok(0) => return true,
                Ok(n) => {
                    self.input.extend_from_slice(&chunk[..n]);
                    if n < chunk.len() {
                        return false;
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return false,
                Err(_) => return true,
            }
        }
        false
    }

    /// Tells that nothing more comes, once everything is written.
    fn finish(&mut self) {
        if self.output.is_empty() && !std::mem::replace(&mut self.is_finished, true) {
            let _ = rustix::net::shutdown(&self.fd, rustix::net::Shutdown::Write);
        }
    }

    /// Writes what the other side takes. An error shows when reading.
    fn write(&mut self) {
        while !self.output.is_empty() {
            match rustix::io::write(self.fd.as_fd(), &self.output) {
                Ok(n) => drop(self.output.drain(..n)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) => return,
                Err(_) => self.output.clear(),
            }
        }
    }
}

/// How far a server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServerStep {
    /// fio's client has not come to its socket yet.
    Waiting,
    /// It has been asked who it is.
    Greeting,
    /// It reads the jobs.
    Preparing,
    /// It could begin.
    Ready,
    /// It was told to begin.
    Released,
    /// Its jobs have ended.
    Over,
    /// Nothing more will come of it.
    Gone,
}

/// What a server has told.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerMessage {
    /// Who it is: host name, version of fio.
    Name(Option<String>, Option<String>),
    /// It could begin; how many jobs will report.
    Ready(Option<u32>),
    /// Its jobs begin.
    Began,
    /// How its jobs went since it was asked before, over that time.
    Progress(Duration, ServerProgress),
    /// A line of its output.
    Text(String),
    /// There is more of its output than is kept.
    LeftOut,
    /// Its jobs have ended, with this errno.
    Ended(i32),
    /// It is lost.
    Lost(Failure),
}

/// How far a server has warmed up.
///
/// Between the order to begin and the begin fio measures the clock of its CPU
/// (`handle_run_cmd` in server.c calls `fio_time_init`): 65 to 250 ms of CPU, so
/// that servers which share CPUs would begin far apart. It does so until its
/// choice of a clock is the one it was measured with (`fio_clock_init` in
/// gettime.c), which takes it two times for each connection. So each is told to
/// begin so often before it has any jobs: it measures its clock, finds nothing to
/// do, and says that this has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Warm {
    Not,
    /// Told to begin nothing: how many words about its end are still to come.
    Told(u32),
    Done,
}

/// How often a server begins nothing.
const WARMINGS: u32 = 2;
/// What it says each time: that its jobs have ended, and that it has no more to say.
const WORDS_OF_AN_END: [u16; 2] = [op::STOP, op::QUIT];

/// The line to one server.
#[derive(Debug)]
pub struct Link {
    /// How far it is.
    pub step: ServerStep,
    /// When it was last heard of.
    pub heard: Instant,
    /// What it has told since last asked.
    pub said: Vec<(Instant, ServerMessage)>,
    name: String,
    /// Until fio's client has come.
    listener: Option<UnixListener>,
    near: Option<LinkEnd>,
    far: Option<LinkEnd>,
    /// Version of this side's fio.
    version: Option<u16>,
    /// What fio said before the server had said who it is.
    held: Vec<u8>,
    /// fio's own order to begin, kept back; of one that the server has begun to
    /// read, the last byte.
    run: Option<Vec<u8>>,
    /// The operation whose payload goes on, and whether it is passed on.
    going_on: Option<(u16, bool)>,
    quota: FrameQuota,
    /// How much of its output is kept.
    texts: Bounded,
    warm: Warm,
    began: Option<Instant>,
    /// When it was last asked how far it is, and when it was before that.
    asked: Option<Instant>,
    answered: Option<Instant>,
}

impl Link {
    /// The line from who comes to `listener` to the connected server `far`.
    /// Unless a job writes logs none are taken from it (`quota`): fio's client would
    /// put them under the name that the server gives.
    pub fn new(name: String, listener: UnixListener, far: OwnedFd, quota: FrameQuota) -> Self {
        let now = Instant::now();
        Self {
            step: ServerStep::Waiting,
            heard: now,
            said: Vec::new(),
            name,
            listener: Some(listener),
            near: None,
            far: Some(LinkEnd::new(far)),
            version: None,
            held: Vec::new(),
            run: None,
            going_on: None,
            quota,
            texts: Bounded::default(),
            warm: Warm::Not,
            began: None,
            asked: None,
            answered: None,
        }
    }

    /// What to wait for: reading, and writing where something is left to write.
    pub fn interests(&self) -> Vec<(BorrowedFd<'_>, bool, bool)> {
        let mut all = Vec::with_capacity(2);
        if let Some(listener) = &self.listener {
            all.push((listener.as_fd(), true, false));
        }
        for (end, other) in [(&self.near, &self.far), (&self.far, &self.near)] {
            let Some(end) = end else { continue };
            let (reads, writes) = (has_room(other.as_ref()), !end.output.is_empty());
            if reads || writes {
                all.push((end.fd.as_fd(), reads, writes));
            }
        }
        all
    }

    /// Takes and passes on what there is.
    pub fn turn(&mut self, chunk: &mut [u8]) {
        if self.step == ServerStep::Gone {
            return;
        }
        if let Some(listener) = &self.listener
            && let Ok((near, _)) = listener.accept()
            && near.set_nonblocking(true).is_ok()
        {
            self.near = Some(LinkEnd::new(near.into()));
            self.listener = None;
            self.step = self.step.max(ServerStep::Greeting);
            self.heard = Instant::now();
        }
        let near_closed =
            has_room(self.far.as_ref()) && self.near.as_mut().is_some_and(|near| near.read(chunk));
        self.take_near();
        let far_closed =
            has_room(self.near.as_ref()) && self.far.as_mut().is_some_and(|far| far.read(chunk));
        self.take_far();
        for end in [&mut self.near, &mut self.far].into_iter().flatten() {
            end.write();
        }
        if near_closed {
            self.near = None;
            self.hang_up();
        } else if far_closed {
            self.far_closed();
        }
        match &mut self.near {
            // What the server has said reaches fio before the end does. fio has
            // to close first: writing to a closed socket would kill it (SIGPIPE).
            Some(near) if self.far.is_none() => near.finish(),
            None if self.far.is_none() => self.step = ServerStep::Gone,
            _ => {}
        }
    }

    fn take_near(&mut self) {
        let Some(mut near) = self.near.take() else {
            return;
        };
        let mut at = 0;
        // What this side's fio says is well-formed.
        while let Ok(Some(frame)) = frame::first(&near.input[at..]) {
            at += frame.bytes.len();
            self.version.get_or_insert(frame.version);
            if frame.op == op::RUN && self.step < ServerStep::Released {
                self.run = Some(frame.bytes.to_vec());
            } else if self.warm == Warm::Not && frame.op != op::PROBE {
                // The jobs come behind the warming up.
                self.held.extend_from_slice(frame.bytes);
            } else if let Some(far) = &mut self.far {
                far.output.extend_from_slice(frame.bytes);
            }
        }
        near.input.drain(..at);
        self.near = Some(near);
    }

    fn take_far(&mut self) {
        let Some(mut far) = self.far.take() else {
            return;
        };
        let (mut at, mut passed) = (0, Vec::new());
        let was_told = self.warm != Warm::Not;
        let mut refused = None;
        while refused.is_none() {
            match frame::first(&far.input[at..]) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    at += frame.bytes.len();
                    match self.hear(&frame) {
                        Ok(true) => passed.extend_from_slice(frame.bytes),
                        Ok(false) => {}
                        Err(failure) => refused = Some(failure),
                    }
                }
                Err(frame::NoFrame) => {
                    let what = "what answers there is no fio server";
                    let failure = self.failure(FailureKind::Mismatch, what);
                    refused = Some(failure.to_do(NAME_A_SERVER));
                }
            }
        }
        far.input.drain(..at);
        if !was_told && let (Warm::Told(..), Some(version)) = (self.warm, self.version) {
            let run = frame::simple(version, op::RUN, 0);
            (0..WARMINGS).for_each(|_| far.output.extend_from_slice(&run));
            far.output.append(&mut self.held);
        }
        self.far = Some(far);
        if let Some(near) = &mut self.near {
            near.output.extend_from_slice(&passed);
        }
        if let Some(failure) = refused {
            self.lose(failure);
        }
    }

    /// Understands a frame of the server; whether it is to be passed on.
    fn hear(&mut self, frame: &Frame) -> Result<bool, Failure> {
        let now = Instant::now();
        if let Some(ours) = self.version.filter(|&version| version != frame.version) {
            let what = format!(
                "its fio is another version: it speaks protocol {}, fio here {ours}",
                frame.version
            );
            return Err(self.failure(FailureKind::Mismatch, what));
        }
        let goes_on = self.going_on.filter(|(op, _)| *op == frame.op);
        let too_much = |link: &Self, what| {
            let failure = link.failure(FailureKind::Mismatch, what);
            Err(failure.to_do(DISTRUST))
        };
        if let Err(what) = self.quota.bytes(frame, goes_on.is_some()) {
            return too_much(self, what);
        }
        let is_asked = self.is_our_answer(frame) && self.asked.is_some();
        // Who only talks, or tells what nobody has asked, is not heard to get on.
        if frame.op != op::TEXT && goes_on.is_none() {
            if !is_asked && let Err(what) = self.quota.message(frame) {
                return too_much(self, what);
            }
            if is_asked || !self.is_our_answer(frame) {
                self.heard = now;
            }
        }
        let passes = match goes_on {
            Some((_, passes)) => passes,
            None => self.understand(frame, now)?,
        };
        self.going_on = frame.more.then_some((frame.op, passes));
        Ok(passes)
    }

    fn is_our_answer(&self, frame: &Frame) -> bool {
        frame.op == op::ETA && frame.tag == OUR_TAG
    }

    /// Understands the first frame of a message; whether it is to be passed on.
    fn understand(&mut self, frame: &Frame, now: Instant) -> Result<bool, Failure> {
        if self.is_our_answer(frame) {
            self.progress(frame.payload);
            return Ok(false);
        }
        if self.is_of_warming(frame.op) {
            return Ok(false);
        }
        let said = match frame.op {
            op::IOLOG if !self.quota.takes_logs() => {
                let what =
                    "it sent a log that no job writes: fio would put it where the server wants";
                return Err(self.failure(FailureKind::Mismatch, what).to_do(DISTRUST));
            }
            op::SENDFILE | op::VTRIGGER => {
                let what =
                    "it asked for a file or a command of this machine, which it does not get";
                return Err(self.failure(FailureKind::Mismatch, what).to_do(DISTRUST));
            }
            op::PROBE => {
                self.step = self.step.max(ServerStep::Preparing);
                self.warm = Warm::Told(WARMINGS * 2);
                let (name, version) = frame::probe(frame.payload);
                ServerMessage::Name(name, version)
            }
            op::START => {
                self.step = self.step.max(ServerStep::Ready);
                ServerMessage::Ready(frame::reports(frame.payload))
            }
            op::SERVER_START => {
                self.began = Some(now);
                ServerMessage::Began
            }
            op::TEXT => match self.texts.fit(frame.payload) {
                (_, true) => {
                    self.said.push((now, ServerMessage::LeftOut));
                    return Ok(false);
                }
                ([], false) => return Ok(false),
                (fits, false) => ServerMessage::Text(frame::text(fits)),
            },
            op::STOP => {
                self.step = self.step.max(ServerStep::Over);
                ServerMessage::Ended(frame::error(frame.payload))
            }
            op::QUIT => {
                self.step = self.step.max(ServerStep::Over);
                return Ok(true);
            }
            _ => return Ok(true),
        };
        self.said.push((now, said));
        Ok(true)
    }

    /// Whether a word is about the begin of nothing, which fio did not order.
    fn is_of_warming(&mut self, op: u16) -> bool {
        let Warm::Told(left) = self.warm else {
            return false;
        };
        // A server that refuses the jobs says the second word without the first.
        if op != WORDS_OF_AN_END[left as usize % 2] {
            return false;
        }
        self.warm = match left {
            1 => Warm::Done,
            _ => Warm::Told(left - 1),
        };
        true
    }

    fn progress(&mut self, payload: &[u8]) {
        // What nobody asked for would be more samples than intervals.
        let Some(asked) = self.asked.take() else {
            return;
        };
        // A server counts from its begin, then from the question before.
        let since = self.answered.replace(asked).or(self.began);
        if let (Some(progress), Some(since)) = (frame::progress(payload), since) {
            let span = asked.saturating_duration_since(since);
            // It is what the server knew when it was asked, as near as can be told.
            self.said
                .push((asked, ServerMessage::Progress(span, progress)));
        }
    }

    /// Whether it could begin: its jobs are read, and fio wants it to.
    pub fn is_ready(&self) -> bool {
        self.step == ServerStep::Ready && self.run.is_some() && self.warm == Warm::Done
    }

    /// Gives it the order to begin but for its last byte.
    ///
    /// A server looks for orders once a second (`handle_connection` in server.c
    /// polls, and sleeps in between), so that orders given at one moment are
    /// obeyed over a whole second. One that it has begun to read it waits for.
    pub fn lean(&mut self) {
        let Some(run) = &mut self.run else { return };
        let last = run.split_off(run.len().saturating_sub(1));
        let begun = std::mem::replace(run, last);
        if let Some(far) = &mut self.far {
            far.output.extend_from_slice(&begun);
            far.write();
        }
    }

    /// Lets it begin.
    pub fn release(&mut self) {
        if let (Some(run), Some(far)) = (self.run.take(), &mut self.far) {
            far.output.extend_from_slice(&run);
            far.write();
            self.step = ServerStep::Released;
            self.heard = Instant::now();
        }
    }

    /// Asks how far it is, unless the last question is still open.
    pub fn ask(&mut self, now: Instant) {
        if self.step != ServerStep::Released || self.asked.is_some() || self.began.is_none() {
            return;
        }
        if let (Some(version), Some(far)) = (self.version, &mut self.far) {
            self.asked = Some(now);
            let question = frame::simple(version, op::SEND_ETA, OUR_TAG);
            far.output.extend_from_slice(&question);
            far.write();
        }
    }

    /// Whether a question is open.
    pub fn is_asked(&self) -> bool {
        self.step == ServerStep::Released && self.asked.is_some()
    }

    /// A failure of this server.
    pub fn failure(&self, kind: FailureKind, what: impl Into<String>) -> Failure {
        Failure::new(kind, what).about(self.name.as_str())
    }

    /// Gives it up: it is told to end, and fio's client that it is gone.
    pub fn lose(&mut self, failure: Failure) {
        self.said
            .push((Instant::now(), ServerMessage::Lost(failure)));
        self.hang_up();
    }

    fn far_closed(&mut self) {
        self.far = None;
        if self.step >= ServerStep::Over {
            return;
        }
        let failure = match self.step {
            ServerStep::Waiting | ServerStep::Greeting => {
                let what = "it closed the connection instead of saying who it is: it is no fio server, or one of another version";
                self.failure(FailureKind::Mismatch, what)
            }
            _ => {
                let what = "the connection was lost: its fio server has ended, or the machine, or the network";
                self.failure(FailureKind::Lost, what)
            }
        };
        self.lose(failure);
    }

    /// Leaves the server, which goes on with its jobs unless it is told to quit.
    /// fio's client learns of it once it has been told what the server said.
    pub fn hang_up(&mut self) {
        if let Some(mut far) = self.far.take()
            && self.step < ServerStep::Over
        {
            let version = self.version.unwrap_or_default();
            let quit = frame::simple(version, op::QUIT, 0);
            far.output.extend_from_slice(&quit);
            far.write();
        }
        self.listener = None;
        self.step = self.step.max(ServerStep::Over);
    }
}

/// Whether more may be read for this side.
fn has_room(end: Option<&LinkEnd>) -> bool {
    end.is_none_or(|end| end.output.len() < BACKLOG_BYTES)
}
