//! The engine in a process of its own: Fathom's executable once more.
//!
//! A call that waits for a dead device cannot be interrupted, and a process with
//! such a thread cannot end, not even by SIGKILL. So the I/O is done by a process
//! that can be left behind: the run ends all the same, with its record, and
//! whoever waits for Fathom gets its exit code.
//!
//! ```text
//! Fathom ──socket── engine's process
//!    ├─ [`EngineOrder`]: the request, stop, status         a line of JSON each
//!    └─ [`EngineAnswer`]: events, the end                    a line of JSON each
//! ```
//!
//! When Fathom is killed the socket closes, which stops the engine.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use fathom_device::threads;
use fathom_fio_output::failures::by_signal;
use fathom_jobfile::variables::set_given;
use fathom_model::{Event, Failure, FailureKind};
use serde::{Deserialize, Serialize};

use super::Native;
use fathom_engine::guard::{self, GuardReport, clear_orphans};
use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink};

/// First argument of the process that is an engine and nothing else.
const ARGUMENT: &str = "__native";
/// How often the run looks for requests to stop.
const LOOK: Duration = Duration::from_millis(20);
/// How long the process may take after a stop or its deadline; it gives up on
/// I/Os that do not come back after 5 s itself (`run.rs`, `GRACE`), unless the
/// thread that would do so waits for the device too.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a process that has told everything may take to end.
const FAREWELL: Duration = Duration::from_secs(1);

/// To the engine's process.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
enum EngineOrder {
    Run(Box<Request>),
    Stop,
    Status,
}

/// From the engine's process.
#[derive(Debug, Serialize, Deserialize, schemars::JsonSchema)]
enum EngineAnswer {
    Event(Box<Event>),
    Complete,
    Interrupted,
    Failed,
    /// It could not run.
    Refused(Failure),
    /// A file of the run could not be read or written.
    File {
        path: PathBuf,
        message: String,
    },
}

impl EngineAnswer {
    fn of(ended: Result<Outcome, EngineError>) -> Self {
        match ended {
            Ok(Outcome::Complete) => Self::Complete,
            Ok(Outcome::Interrupted) => Self::Interrupted,
            Ok(Outcome::Failed) => Self::Failed,
            Err(EngineError::Failed(failure)) => Self::Refused(failure),
            Err(EngineError::File { path, source }) => Self::File {
                path,
                message: source.to_string(),
            },
        }
    }

    /// The event, or how the run ended.
    fn heard(self) -> Result<Event, Result<Outcome, EngineError>> {
        Err(match self {
            Self::Event(event) => return Ok(*event),
            Self::Complete => Ok(Outcome::Complete),
            Self::Interrupted => Ok(Outcome::Interrupted),
            Self::Failed => Ok(Outcome::Failed),
            Self::Refused(failure) => Err(EngineError::Failed(failure)),
            Self::File { path, message } => Err(EngineError::File {
                path,
                source: io::Error::other(message),
            }),
        })
    }
}

fn send(mut line: &UnixStream, message: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(message)?;
    text.push(b'\n');
    line.write_all(&text)
}

/// Passes on what comes until the other end is gone.
fn listen<T: for<'a> Deserialize<'a> + Send>(line: UnixStream, tell: &Sender<T>) {
    for text in BufReader::new(line).lines() {
        let Some(heard) = text.ok().and_then(|text| serde_json::from_str(&text).ok()) else {
            return;
        };
        if tell.send(heard).is_err() {
            return;
        }
    }
}

/// An engine's process that waits for its request, or runs it.
#[derive(Debug)]
pub(super) struct EngineProcess {
    line: UnixStream,
    words: Receiver<EngineAnswer>,
    process: Child,
}

impl EngineProcess {
    /// Starts one.
    pub(super) fn start() -> io::Result<Self> {
        let (line, far_end) = UnixStream::pair()?;
        let process = set_given(&mut Command::new("/proc/self/exe"))
            .arg(ARGUMENT)
            .stdin(Stdio::from(OwnedFd::from(far_end)))
            // Left behind, it must not hold a pipe that somebody reads to its end.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for Fathom, which passes it on.
            .process_group(0)
            .spawn()?;
        let (tell, words) = channel();
        let listening = line.try_clone()?;
        let far = Self {
            line,
            words,
            process,
        };
        // Without it the line closes, at which the process ends.
        threads::spawn("native-words", move || listen(listening, &tell))?;
        Ok(far)
    }

    /// Runs one request to its end, or until it must be given up.
    pub(super) fn run(
        mut self,
        request: &Request,
        control: &Control,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, EngineError> {
        let begun = Instant::now();
        let mut passed_on = 0;
        let mut stopped_at = None;
        // One that is gone is noticed below.
        let _ = send(&self.line, &EngineOrder::Run(Box::new(request.clone())));
        loop {
            match self.words.recv_timeout(LOOK).map(EngineAnswer::heard) {
                Ok(Ok(mut event)) => {
                    if let Event::EngineStarted { pid, .. } = &mut event {
                        *pid = Some(self.process.id());
                    }
                    if sink.event(event).is_break() {
                        self.stop(&mut stopped_at);
                    }
                }
                Ok(Err(ended)) => {
                    self.end();
                    return ended;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(self.died(sink)),
            }
            while passed_on < control.stop_requests() {
                passed_on += 1;
                self.stop(&mut stopped_at);
            }
            while control.take_status_request() {
                let _ = send(&self.line, &EngineOrder::Status);
            }
            let late = request
                .deadline
                .is_some_and(|limit| begun.elapsed() > limit + PATIENCE);
            if late || stopped_at.is_some_and(|at: Instant| at.elapsed() > PATIENCE) {
                return Ok(self.give_up(sink, stopped_at.is_some()));
            }
        }
    }

    fn stop(&self, stopped_at: &mut Option<Instant>) {
        stopped_at.get_or_insert_with(Instant::now);
        let _ = send(&self.line, &EngineOrder::Stop);
    }

    /// Waits for its end, which a dead device may keep it from.
    fn end(&mut self) -> Option<std::process::ExitStatus> {
        let since = Instant::now();
        while since.elapsed() < FAREWELL {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Some(status);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ = self.process.kill();
        None
    }

    fn died(&mut self, sink: &mut dyn Sink) -> Outcome {
        let failed = |how: String| {
            let message = format!("the process of the native engine {how}");
            Failure::new(FailureKind::EngineKilled, message)
        };
        let status = self.end();
        let failure = match status.and_then(|status| status.signal()) {
            Some(signal) => by_signal(failed(format!("was killed by signal {signal}")), signal),
            None => {
                let how = match status {
                    Some(status) => format!("ended by itself ({status})"),
                    None => "closed its line".to_owned(),
                };
                failed(how).to_do(
                    "that is a fault of Fathom; '--engine fio' runs the same jobs without it",
                )
            }
        };
        let _ = sink.event(Event::Failure(failure));
        Outcome::Failed
    }

    fn give_up(&mut self, sink: &mut dyn Sink, interrupted: bool) -> Outcome {
        let _ = self.process.kill();
        let message = format!(
            "the process of the native engine ({}) does not answer; it is left running",
            self.process.id()
        );
        let _ = sink.event(Event::Failure(Failure::new(FailureKind::Hung, message)));
        match interrupted {
            true => Outcome::Interrupted,
            false => Outcome::Failed,
        }
    }
}

/// The engine's process: call this before anything else in `main`. `None` when
/// this process is not one.
pub fn entry(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if args.nth(1)? != ARGUMENT {
        return None;
    }
    let native = Native::new();
    let stdin = io::stdin();
    // Started by hand there is no socket to anybody.
    let line = stdin.as_fd().try_clone_to_owned().map(UnixStream::from);
    let connected = line.and_then(|line| line.peer_addr().map(|_| line));
    Some(match connected.and_then(|line| serve(&native, &line)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    })
}

fn serve(native: &Native, line: &UnixStream) -> io::Result<()> {
    let (tell, orders) = channel();
    let listening = line.try_clone()?;
    threads::spawn("native-orders", move || listen(listening, &tell))?;
    // Fathom has ended without a run; a stop or status before it is for nothing.
    let Ok(EngineOrder::Run(request)) = orders.recv() else {
        return Ok(());
    };
    // What a job's commands leave behind comes to this process.
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    let control = Control::default();
    let asked = control.clone();
    let obey = move || {
        for order in orders {
            match order {
                EngineOrder::Status => asked.request_status(),
                _ => asked.stop(),
            }
        }
        // Fathom is gone: nobody waits for what is under way.
        asked.stop();
        asked.stop();
    };
    let begun = threads::spawn("native-stop", obey);
    let mut ended = match begun {
        Ok(_) => native.run(&request, &control, &mut EventLine(line)),
        Err(error) => Err(EngineError::Failed(error.into())),
    };
    clear_orphans(&mut |report| {
        let failure = match report {
            GuardReport::Orphan(pid) => guard::outlived("a job", pid),
            GuardReport::Stuck(pid) => guard::undying("a job", pid),
            _ => return,
        };
        let _ = EventLine(line).event(Event::Failure(failure));
        if let Ok(outcome @ Outcome::Complete) = &mut ended {
            *outcome = Outcome::Failed;
        }
    });
    send(line, &EngineAnswer::of(ended))
}

/// Sends events.
struct EventLine<'a>(&'a UnixStream);

impl Sink for EventLine<'_> {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        match send(self.0, &EngineAnswer::Event(Box::new(event))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}
