//! The ssh client as a process that is waited for: until it ends, until somebody
//! asks to stop, or until its time is up; and heard only as far as what it says
//! is bounded.

use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fathom_device::bounded::{Bounded, LEFT_OUT, TEXT_BYTES_MAX};
use fathom_device::threads::{self, NoThread};
use fathom_engine::Control;
use fathom_model::text;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// How often requests to stop and the deadline are looked at; words wake the loop.
const TICK: Duration = Duration::from_millis(20);
/// How long a client may take to end by itself: it puts the terminal in order.
const END_WAIT: Duration = Duration::from_millis(300);
/// Most pieces that are read once a client has ended: what it started may go on
/// to write.
const REST_PIECES_MAX: usize = 128;

/// One of the two outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    Stdout,
    Stderr,
}

/// Who hears what a client says.
pub(super) trait Listener {
    /// Takes what was said; whether more is wanted.
    fn take(&mut self, from: From, bytes: &[u8]) -> ControlFlow<()>;
    /// How long the client may take; asked again and again.
    fn limit(&self) -> Option<Duration>;
    /// Whether so many requests to stop end it; asked again and again.
    fn is_over(&mut self, requests: u8) -> bool {
        requests > 0
    }
}

/// How a client ended.
#[derive(Debug)]
pub(super) enum ClientEnd {
    /// By itself.
    Exited(ExitStatus),
    /// Somebody asked to stop.
    Stopped,
    /// Its time was up.
    Late(Duration),
    /// It said more than its listener takes.
    TooMuch,
}

/// Whether ssh can ask somebody at a terminal.
pub(super) fn has_terminal() -> bool {
    std::fs::File::open("/dev/tty").is_ok()
}

/// Runs a client to its end, its outputs into `listener` where they are not
/// directed elsewhere. `apart`: in a process group of its own, so that the
/// terminal's Ctrl-C does not reach it; it must not ask anybody anything then.
pub(super) fn run(
    mut command: Command,
    apart: bool,
    stop: &Control,
    listener: &mut dyn Listener,
) -> io::Result<ClientEnd> {
    if apart {
        command.process_group(0);
    }
    let mut child = command.spawn()?;
    // The command holds the other ends of what it was given.
    drop(command);
    let mut outputs = [
        child.stdout.take().map(|fd| (From::Stdout, fd.into())),
        child.stderr.take().map(|fd| (From::Stderr, fd.into())),
    ];
    let started = Instant::now();
    let ended = loop {
        if let Some(status) = child.try_wait()? {
            // An older ssh leaves the pipe to its connection: there is no end of it.
            let rest = hear(&mut outputs, Duration::ZERO, listener);
            return Ok(match rest {
                ControlFlow::Continue(()) => ClientEnd::Exited(status),
                ControlFlow::Break(()) => ClientEnd::TooMuch,
            });
        }
        if listener.is_over(stop.stop_requests()) {
            break ClientEnd::Stopped;
        }
        if let Some(limit) = listener.limit().filter(|limit| started.elapsed() > *limit) {
            break ClientEnd::Late(limit);
        }
        if hear(&mut outputs, TICK, listener).is_break() {
            break ClientEnd::TooMuch;
        }
    };
    kill(&mut child, apart);
    Ok(ended)
}

/// Waits for words and gives them on, a piece of each output.
fn hear(
    outputs: &mut [Option<(From, OwnedFd)>; 2],
    wait: Duration,
    listener: &mut dyn Listener,
) -> ControlFlow<()> {
    let mut chunk = [0; 1 << 14];
    for _ in 0..REST_PIECES_MAX {
        let open = outputs.iter().flatten();
        let mut fds: Vec<PollFd> = open.map(|(_, fd)| PollFd::new(fd, PollFlags::IN)).collect();
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        // A signal came in between: the caller looks.
        if poll(&mut fds, Some(&tick)).unwrap_or(0) == 0 {
            return ControlFlow::Continue(());
        }
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        drop(fds);
        let mut ready = ready.into_iter();
        for output in outputs.iter_mut() {
            let Some((from, fd)) = output else { continue };
            if ready.next() != Some(true) {
                continue;
            }
            match rustix::io::read(fd.as_fd(), &mut chunk) {
                Ok(0) => *output = None,
                Ok(n) => listener.take(*from, &chunk[..n])?,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => *output = None,
            }
        }
        if !wait.is_zero() || outputs.iter().all(Option::is_none) {
            break;
        }
    }
    ControlFlow::Continue(())
}

/// Ends a client and, where it has a group of its own, what it has started.
pub(crate) fn kill(child: &mut Child, apart: bool) {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let signal = |signal: Signal| match pid {
        Some(pid) if apart => kill_process_group(pid, signal),
        Some(pid) => kill_process(pid, signal),
        None => Ok(()),
    };
    let _ = signal(Signal::TERM);
    let asked = Instant::now();
    while asked.elapsed() < END_WAIT && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(TICK);
    }
    // Who outlives the client in its group keeps the group's number taken.
    let _ = match apart {
        true => signal(Signal::KILL),
        false => child.kill().map_err(|_| rustix::io::Errno::SRCH),
    };
    let _ = child.wait();
}

/// Gives another side's messages on to this process's stderr, as far as there is
/// room for them.
#[derive(Debug, Default)]
pub(crate) struct Messages(Bounded);

impl Messages {
    pub fn take(&mut self, bytes: &[u8]) {
        let (fits, is_cut) = self.0.fit(bytes);
        // ssh ends its lines as terminals in raw mode want them.
        let fits = String::from_utf8_lossy(fits).replace('\r', "");
        // Nobody may be there to read them.
        let mut stderr = io::stderr().lock();
        let _ = stderr.write_all(text::lines(&fits).as_bytes());
        if is_cut {
            let _ = writeln!(stderr, "\n{LEFT_OUT}");
        }
    }
}

/// Gives a child's stderr on in the background, bounded, for as long as it lives.
pub(super) fn pass_stderr_on(child: &mut Child) -> Result<(), NoThread> {
    let Some(mut stderr) = child.stderr.take() else {
        return Ok(());
    };
    let pass = move || {
        let mut messages = Messages::default();
        let mut chunk = [0; 1 << 14];
        while let Ok(n @ 1..) = io::Read::read(&mut stderr, &mut chunk) {
            messages.take(&chunk[..n]);
        }
    };
    threads::spawn("ssh-messages", pass).map(drop)
}

/// The answer of a script: all of its stdout, or that it was too much.
#[derive(Debug)]
pub(super) struct ScriptAnswer {
    pub stdout: Vec<u8>,
    messages: Messages,
    limit: Duration,
}

impl ScriptAnswer {
    pub fn within(limit: Duration) -> Self {
        Self {
            stdout: Vec::new(),
            messages: Messages::default(),
            limit,
        }
    }
}

impl Listener for ScriptAnswer {
    fn take(&mut self, from: From, bytes: &[u8]) -> ControlFlow<()> {
        match from {
            From::Stdout if self.stdout.len() + bytes.len() > TEXT_BYTES_MAX => {
                return ControlFlow::Break(());
            }
            From::Stdout => self.stdout.extend_from_slice(bytes),
            From::Stderr => self.messages.take(bytes),
        }
        ControlFlow::Continue(())
    }

    fn limit(&self) -> Option<Duration> {
        Some(self.limit)
    }
}

/// The last words of a client that nobody watches.
#[derive(Debug)]
pub(super) struct LastWords {
    said: Vec<u8>,
    limit: Duration,
}

impl LastWords {
    /// More than a line.
    const BYTES: usize = 1 << 16;

    pub fn within(limit: Duration) -> Self {
        let said = Vec::new();
        Self { said, limit }
    }

    /// All of them.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.said).into_owned()
    }

    /// The last line that says something.
    pub fn line(&self) -> Option<String> {
        let said = self.text();
        let mut lines = said.lines().map(|line| line.trim().trim_end_matches('.'));
        let last = lines.rfind(|line| !line.is_empty())?;
        Some(last.chars().take(500).collect())
    }
}

impl Listener for LastWords {
    fn take(&mut self, _: From, bytes: &[u8]) -> ControlFlow<()> {
        self.said.extend_from_slice(bytes);
        let most = self.said.len().saturating_sub(Self::BYTES);
        self.said.drain(..most);
        ControlFlow::Continue(())
    }

    fn limit(&self) -> Option<Duration> {
        Some(self.limit)
    }
}

/// A command with nothing to read, whose outputs are heard.
pub(super) fn heard(mut command: Command) -> Command {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
