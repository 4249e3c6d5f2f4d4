//! One run of fio, from its start to the verdict.

use std::borrow::Cow;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use fathom_device::threads;
use fathom_fio_output::failures::{Evidence, FioEnd, by_signal, errno_text_of, judge};
use fathom_fio_output::intervals::{Intervals, eta_s};
use fathom_fio_output::json;
use fathom_fio_output::messages::{Message, NO_JOB_PROCESS, NO_JOB_THREAD, classify};
use fathom_fio_output::raw::RawOutputs;
use fathom_fio_output::stream::{OUTPUT_FORMAT, OutputCutter, Piece};
use fathom_fio_output::version::Version;
use fathom_model::{Event, Failure, FailureKind, Results};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Fio;
use super::arrivals::Arrivals;
use super::client::{QUIT_WAIT, ServerSet};
use super::held_job::HeldJob;
use super::layout::Layout;
use fathom_engine::checked::PathChanged;
use fathom_engine::guard::{self, FioSupervisor, GuardOrder, GuardReport};
use fathom_engine::{Control, EngineError, Outcome, Request, Sink, expect};

/// How long fio may take to end after SIGINT: its jobs wait for the I/O in
/// flight, and a disk may need its own timeout (30 s in Linux's SCSI layer).
const GRACE: Duration = Duration::from_secs(35);
/// How long after the order to kill everything must be gone; the guard itself
/// gives up a little earlier and says what is left.
const KILL_WAIT: Duration = Duration::from_secs(3);
/// How many documents of a fio that has lost a job must be missing before it is ended;
/// a job that waits for its disk holds them up as well, for [`GRACE`] at most.
const SILENT_INTERVALS: u32 = 5;
/// How long outputs may stay open after fio's end.
const OUTPUTS_WAIT: Duration = Duration::from_secs(1);
/// How often a stop, a status request and the deadlines are looked at. fio's
/// output wakes the loop by itself.
const TICK: Duration = Duration::from_millis(100);
/// Most messages of fio that are kept for the verdict.
const MESSAGES_MAX: usize = 1000;

/// Runs one job file with fio; see [`fathom_engine::Engine::run`].
pub(super) fn run(
    fio: &Fio,
    request: &Request,
    control: &Control,
    sink: &mut dyn Sink,
) -> Result<Outcome, EngineError> {
    let hosts = match &fio.servers {
        Some(servers) => Some(ServerSet::open(servers, request, control)?),
        None => None,
    };
    if hosts.is_some() && control.stop_requests() > 0 {
        return Ok(Outcome::Interrupted);
    }
    if let Some(hosts) = hosts.as_ref().filter(|hosts| hosts.too_few()) {
        return Ok(hosts.give_up(sink));
    }
    let argv = argv(fio, request, hosts.as_ref())?;
    let held = match hosts {
        Some(_) => None,
        None => HeldJob::new(request).map_err(not_held)?,
    };
    let raw = RawOutputs::new(&request.raw_dir);
    let named_dir = hosts.as_ref().map_or(&*request.work_dir, ServerSet::dir);
    let given = held.as_ref().map(|held| held.argv(&argv));
    let work_dir = held.as_ref().and_then(HeldJob::work_dir);
    let work_dir = work_dir.as_deref().unwrap_or(named_dir);
    let given = given.as_deref().unwrap_or(&argv);
    let leash = FioSupervisor::start(fio.guard, given, work_dir).map_err(|e| {
        let what = format!("the guard process of fio cannot be started: {e}");
        EngineError::Failed(not_started(&e, FailureKind::Other, what))
    })?;
    let mut run = FioRun {
        fio,
        request,
        control,
        sink,
        hosts,
        held,
        argv,
        leash,
        raw,
        started: Instant::now(),
        pid: None,
        announced: false,
        end: None,
        stop: StopStage::No,
        sink_is_full: false,
        timed_out: false,
        waits_forever: false,
        job_killed: false,
        ready: false,
        stream: OutputCutter::default(),
        arrivals: Arrivals::default(),
        intervals: Intervals::default(),
        layout: Layout::default(),
        messages: Vec::new(),
        failures: Vec::new(),
        results: None,
        unreadable: None,
        status: Status::default(),
    };
    run.watch()?;
    run.conclude()
}

/// The command: fio's own status-interval is what Fathom's samples come from.
/// Servers do not know it; they are asked by Fathom itself.
fn argv(
    fio: &Fio,
    request: &Request,
    hosts: Option<&ServerSet>,
) -> Result<Vec<OsString>, EngineError> {
    let job_file = std::path::absolute(&request.job_file).map_err(|source| EngineError::File {
        path: request.job_file.clone(),
        source,
    })?;
    let mut argv: Vec<OsString> = vec![
        fio.program.path.clone().into(),
        format!("--output-format={OUTPUT_FORMAT}").into(),
        "--eta=never".into(),
    ];
    if fio.servers.is_none() {
        let interval_ms = request.interval.as_millis().max(1);
        argv.push(format!("--status-interval={interval_ms}ms").into());
    }
    argv.extend(
        request
            .sections
            .iter()
            .map(|section| format!("--section={section}").into()),
    );
    argv.extend(request.extra_args.iter().map(OsString::from));
    match (hosts, &fio.servers) {
        (Some(hosts), _) => argv.extend(hosts.argv(job_file.into())),
        (None, Some(servers)) => argv.extend(servers.argv(job_file.into())),
        (None, None) => argv.push(job_file.into()),
    }
    Ok(argv)
}

/// The command as [`run`] would execute it.
pub(super) fn command(fio: &Fio, request: &Request) -> Result<Vec<String>, EngineError> {
    let argv = argv(fio, request, None)?;
    Ok(argv
        .iter()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect())
}

/// How far the end has been ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopStage {
    No,
    Interrupted(Instant),
    Killed(Instant),
}

/// Which documents somebody has asked for.
#[derive(Debug, Default)]
struct Status {
    /// Orders that wait for fio to be ready for signals.
    wanted: bool,
    /// The next document is the answer.
    awaited: bool,
    /// A document that came too early to be an interval's; who follows it
    /// decides whether it was fio's last.
    early: Option<Box<Results>>,
    last_document: Option<Instant>,
}

struct FioRun<'r> {
    fio: &'r Fio,
    request: &'r Request,
    control: &'r Control,
    sink: &'r mut dyn Sink,
    /// The servers that run the jobs, when it is not this machine.
    hosts: Option<ServerSet>,
    /// What fio opens of this machine.
    held: Option<HeldJob>,
    /// The command as it is told.
    argv: Vec<OsString>,
    leash: FioSupervisor,
    raw: RawOutputs,
    started: Instant,
    pid: Option<u32>,
    /// fio's start has been told.
    announced: bool,
    end: Option<FioEnd>,
    stop: StopStage,
    sink_is_full: bool,
    timed_out: bool,
    /// fio waits for a job that it could not start or that is gone, and does not
    /// end by itself.
    waits_forever: bool,
    /// A signal has ended a job.
    job_killed: bool,
    /// fio has installed its signal handlers.
    ready: bool,
    stream: OutputCutter,
    arrivals: Arrivals,
    intervals: Intervals,
    layout: Layout,
    messages: Vec<String>,
    failures: Vec<Failure>,
    /// Figures of the last document.
    results: Option<Results>,
    unreadable: Option<String>,
    status: Status,
}

impl FioRun<'_> {
    fn emit(&mut self, event: Event) {
        if self.sink.event(event).is_break() {
            self.sink_is_full = true;
        }
    }

    /// Takes everything in until fio has ended and its outputs are read.
    fn watch(&mut self) -> Result<(), EngineError> {
        let mut outputs = Outputs::default();
        let mut chunk = vec![0; 1 << 16];
        let mut ended_at = None;
        while !(self.end.is_some() && outputs.closed()) {
            let ready = self.wait(&outputs);
            self.arrivals.look(self.started.elapsed());
            if ready.stdout {
                outputs.stdout_closed = self.read_stdout(&mut chunk);
            }
            if ready.stderr {
                outputs.stderr_closed = self.read_stderr(&mut chunk);
            }
            if ready.line {
                self.hear_guard()?;
            }
            self.hear_hosts();
            self.poll_stop();
            if self.end.is_some() {
                let since = *ended_at.get_or_insert_with(Instant::now);
                if since.elapsed() > OUTPUTS_WAIT {
                    break;
                }
            } else if matches!(self.stop, StopStage::Killed(since) if since.elapsed() > KILL_WAIT) {
                let what = "fio did not die after SIGKILL";
                self.failures.push(Failure::new(FailureKind::Hung, what));
                self.end = Some(FioEnd::Unknown);
                break;
            }
        }
        let mut stream = std::mem::take(&mut self.stream);
        stream.finish(&mut |piece| self.piece(piece));
        self.stream = stream;
        Ok(())
    }

    fn wait(&self, outputs: &Outputs) -> FioReady {
        let flags = |closed: bool| {
            if closed {
                PollFlags::empty()
            } else {
                PollFlags::IN
            }
        };
        let line = self.leash.line();
        let mut fds = [
            PollFd::new(&self.leash.stdout, flags(outputs.stdout_closed)),
            PollFd::new(&self.leash.stderr, flags(outputs.stderr_closed)),
            PollFd::new(&line, flags(self.end.is_some())),
        ];
        let tick = Timespec {
            tv_sec: 0,
            tv_nsec: i64::from(TICK.subsec_nanos()),
        };
        if poll(&mut fds, Some(&tick)).is_err() {
            return FioReady::default(); // a signal came in between
        }
        let is = |at: usize, closed: bool| !closed && !fds[at].revents().is_empty();
        FioReady {
            stdout: is(0, outputs.stdout_closed),
            stderr: is(1, outputs.stderr_closed),
            line: is(2, self.end.is_some()),
        }
    }

    /// Reads what is there; whether the output has ended.
    fn read_stdout(&mut self, chunk: &mut [u8]) -> bool {
        let read = read_some(&self.leash.stdout, chunk);
        let text = self.named(0, read.map(|n| &chunk[..n]));
        let mut stream = std::mem::take(&mut self.stream);
        stream.push(&text, &mut |piece| self.piece(piece));
        self.stream = stream;
        read.is_none()
    }

    /// What was read of a stream, or is left at its end, with the names of the job file.
    fn named<'t>(&mut self, stream: usize, read: Option<&'t [u8]>) -> Cow<'t, [u8]> {
        match (&mut self.held, read) {
            (Some(held), Some(text)) => held.pass(stream, text).into(),
            (Some(held), None) => held.rest(stream).into(),
            (None, text) => text.unwrap_or_default().into(),
        }
    }

    fn read_stderr(&mut self, chunk: &mut [u8]) -> bool {
        let read = read_some(&self.leash.stderr, chunk);
        let text = self.named(1, read.map(|n| &chunk[..n]));
        let lines = self.raw.stderr(&text);
        for line in lines {
            self.message(&line);
        }
        read.is_none()
    }

    fn piece(&mut self, piece: Piece) {
        match piece {
            Piece::Message(line) => self.message(line),
            Piece::Document(json) => self.document(json),
        }
    }

    /// Says once that fio has started: when it has told its version, which
    /// costs less than to ask for it, or has something else to tell.
    fn announce(&mut self, version: Option<Version>) {
        if std::mem::replace(&mut self.announced, true) {
            return;
        }
        let argv = self.argv.iter().map(|arg| arg.to_string_lossy());
        self.emit(Event::EngineStarted {
            engine: "fio".into(),
            version: version.map(|version| version.to_string()),
            argv: argv.map(Cow::into_owned).collect(),
            pid: self.pid,
        });
    }

    fn message(&mut self, line: &str) {
        if let Some(version) = Version::parse(line) {
            self.announce(Some(version));
        }
        if line.starts_with("Starting ") {
            // Printed once the handlers are installed (run_threads in backend.c).
            self.ready = true;
        } else if self.layout.message(line, self.pid) {
            self.emit(Event::Preparing {
                what: line.to_owned(),
            });
        }
        // fio waits for ever for jobs that it could not start.
        self.waits_forever |= line.starts_with(NO_JOB_THREAD) || line == NO_JOB_PROCESS;
        self.job_killed |= matches!(classify(line), Message::KilledJob { .. });
        if self.messages.len() < MESSAGES_MAX
            && self.messages.last().is_none_or(|last| last != line)
        {
            self.messages.push(line.to_owned());
        }
    }

    fn document(&mut self, bytes: &[u8]) {
        self.announce(None);
        self.ready = true;
        let read_at = self.started.elapsed();
        let results = match json::parse_document(bytes) {
            Ok(results) => results,
            Err(error) => {
                self.unreadable = Some(error.to_string());
                self.results = None;
                return;
            }
        };
        self.unreadable = None;
        if self.hosts.is_some() {
            self.results = Some(results);
            return;
        }
        if let Some(results) = self.status.early.take() {
            self.emit(Event::Status { results });
        }
        let at = self.arrivals.date(read_at, results.timestamp_ms);
        let now = self.started + at;
        let before = self.status.last_document.replace(now);
        let events = self.intervals.document(&results, at, eta_s(bytes));
        if events.iter().any(|event| matches!(event, Event::Sample(_))) {
            self.layout.end();
        }
        let laid_out = self.layout.progress(self.pid);
        if let Some(event) = laid_out.clone() {
            self.emit(event);
        }
        for mut event in events {
            if let (Some(_), Event::Interval { remaining_ms, .. }) = (&laid_out, &mut event) {
                // That of jobs which have not begun.
                *remaining_ms = None;
            }
            self.emit(event);
        }
        if std::mem::take(&mut self.status.awaited) {
            // The interval's own document may follow at once and is not an answer.
            self.status.last_document = before;
            self.emit(Event::Status {
                results: Box::new(results.clone()),
            });
        } else if before.is_some_and(|before| now - before < self.request.interval / 2) {
            // Nobody asked Fathom, so fio was asked: by SIGUSR1 or fio-dump-status.
            self.status.early = Some(Box::new(results.clone()));
        }
        self.results = Some(results);
    }

    fn hear_guard(&mut self) -> Result<(), EngineError> {
        let reports = self.leash.reports().unwrap_or(None);
        let Some(reports) = reports else {
            // Only a guard that was killed itself leaves without a last report.
            if let Some(pid) = self.pid {
                FioSupervisor::kill_below(pid);
            }
            if self.stop == StopStage::No {
                let what = "the guard process of fio ended; fio was killed";
                self.failures
                    .push(Failure::new(FailureKind::EngineKilled, what));
            }
            self.end = Some(FioEnd::Unknown);
            return Ok(());
        };
        for report in reports {
            match report {
                GuardReport::Started(pid) => self.pid = Some(pid),
                GuardReport::CannotStart(errno) => return Err(self.cannot_start(errno)),
                GuardReport::Orphan(pid) => {
                    self.failures.push(guard::outlived("fio", pid));
                }
                GuardReport::Stuck(pid) => {
                    // It is not gone, as was told of it before.
                    let subject = Some(format!("process {pid}"));
                    self.failures.retain(|failure| {
                        failure.kind != FailureKind::Orphan || failure.subject != subject
                    });
                    self.failures.push(guard::undying("fio", pid));
                }
                GuardReport::Exited(code) => self.end = Some(FioEnd::Exited(code)),
                GuardReport::Signaled(signal) => self.end = Some(FioEnd::Signaled(signal)),
            }
        }
        Ok(())
    }

    fn cannot_start(&self, errno: i32) -> EngineError {
        let kind = if errno == rustix::io::Errno::NOENT.raw_os_error() {
            FailureKind::FioMissing
        } else {
            FailureKind::Open
        };
        let what = format!("cannot be executed: {}", errno_text_of(errno));
        let program = self.fio.program.path.display().to_string();
        let failure = not_started(&io::Error::from_raw_os_error(errno), kind, what);
        EngineError::Failed(failure.about(program).with_errno(errno))
    }

    /// What the servers have told meanwhile.
    fn hear_hosts(&mut self) {
        let events = self.hosts.as_mut().map_or_else(Vec::new, ServerSet::hear);
        for event in events {
            self.emit(event);
        }
    }

    /// Whether fio waits for the usage of a job that is gone: it asks every job for
    /// each document and waits for the answer, without end when the job was killed
    /// in between (`__show_running_run_stats` in stat.c).
    fn asks_the_dead(&self) -> bool {
        let silence = GRACE.max(self.request.interval * SILENT_INTERVALS);
        self.job_killed
            && self.hosts.is_none()
            && self.stop == StopStage::No
            && self
                .status
                .last_document
                .is_some_and(|last| last.elapsed() > silence)
    }

    /// Whether somebody wants it to end, or it cannot go on.
    fn is_told_to_end(&self) -> bool {
        let is_asked = self.control.stop_requests() > 0 || self.sink_is_full;
        is_asked || self.timed_out || self.waits_forever
    }

    /// Passes on what was asked of the run, and keeps its deadlines.
    fn poll_stop(&mut self) {
        if self.end.is_some() {
            return;
        }
        if self
            .request
            .deadline
            .is_some_and(|limit| self.started.elapsed() > limit)
        {
            self.timed_out = true;
        }
        if self.asks_the_dead() {
            self.waits_forever = true;
            let text = "fio waited for a job that was killed and would not have ended: \
                        Fathom ended it"
                .to_owned();
            self.emit(Event::Note { text });
        }
        let asked = self.control.stop_requests();
        let too_few = self.hosts.as_ref().is_some_and(ServerSet::too_few);
        let stop_wanted = self.is_told_to_end() || too_few;
        match self.stop {
            StopStage::No if stop_wanted => {
                self.leash.order(GuardOrder::Interrupt);
                self.stop = StopStage::Interrupted(Instant::now());
            }
            StopStage::Interrupted(since)
                if asked > 1 || self.waits_forever || since.elapsed() > GRACE =>
            {
                self.leash.order(GuardOrder::Kill);
                self.stop = StopStage::Killed(Instant::now());
            }
            // Servers that do not end would keep fio from reporting the others.
            StopStage::Interrupted(since) if since.elapsed() > QUIT_WAIT => {
                if let Some(hosts) = &mut self.hosts {
                    let after = QUIT_WAIT.as_secs();
                    hosts.cut_all(&format!("it did not end within {after} s of being told to"));
                }
            }
            _ => {}
        }
        self.status.wanted |= self.control.take_status_request();
        // Before it has installed its handlers the signal would kill fio.
        if self.status.wanted && self.ready && self.stop == StopStage::No {
            self.status.wanted = false;
            self.status.awaited = true;
            self.leash.order(GuardOrder::Status);
        }
    }

    /// fio has ended: keeps its report, judges, and says how it went.
    fn conclude(mut self) -> Result<Outcome, EngineError> {
        let events = self.hosts.as_mut().map_or_else(Vec::new, ServerSet::end);
        for event in events {
            self.emit(event);
        }
        if !self.announced {
            self.announce(self.fio.program.version().ok());
        }
        let end = self.end.unwrap_or(FioEnd::Unknown);
        let reported = matches!(end, FioEnd::Exited(_));
        let results = self.results.take().filter(|_| reported);
        if let Err(error) = self.raw.finish(&self.stream) {
            let what = format!("fio's output cannot be kept: {error}");
            self.failures.push(Failure::new(FailureKind::Record, what));
        }
        if let Some(Err(error)) = self.held.as_ref().map(HeldJob::end) {
            let what = format!("names in what fio has left cannot be put right: {error}");
            self.failures.push(Failure::new(FailureKind::Record, what));
        }
        if let Some(hosts) = self.hosts.take() {
            return Ok(self.conclude_hosts(hosts, end, results));
        }
        let verdict = judge(&Evidence {
            end,
            stopped: self.stop != StopStage::No,
            messages: &self.messages,
            results: results.as_ref(),
            normal: &String::from_utf8_lossy(&self.stream.last_set().normal),
            cut: self.stream.is_cut(),
            unreadable: self.unreadable.take(),
            expected: &expect::reporting_jobs(self.request),
        });
        self.tell_time_limit();
        if let Some(results) = results {
            self.emit(Event::Finished {
                results: Box::new(results),
            });
        }
        for text in verdict.notes {
            self.emit(Event::Note { text });
        }
        self.failures.extend(verdict.failures);
        let failed = !self.failures.is_empty();
        for failure in std::mem::take(&mut self.failures) {
            self.emit(Event::Failure(failure));
        }
        let interrupted = self.control.stop_requests() > 0 || self.sink_is_full;
        Ok(if interrupted {
            Outcome::Interrupted
        } else if failed {
            Outcome::Failed
        } else if verdict.ended_from_outside {
            Outcome::Interrupted
        } else {
            Outcome::Complete
        })
    }

    fn tell_time_limit(&mut self) {
        if self.timed_out {
            let limit = self.request.deadline.unwrap_or_default().as_secs_f64();
            let what = format!("the time limit of {limit} s was reached");
            self.failures
                .push(Failure::new(FailureKind::TimeLimit, what));
        }
    }

    /// As [`FioRun::conclude`], for jobs of servers: each of them is judged by
    /// itself, because fio's own exit tells of none.
    fn conclude_hosts(
        mut self,
        hosts: ServerSet,
        end: FioEnd,
        mut results: Option<Results>,
    ) -> Outcome {
        self.tell_time_limit();
        if let Some(results) = &mut results {
            hosts.name(results);
        }
        hosts.keep_logs(&self.request.work_dir, &mut self.failures);
        // That too few servers are left is for the verdict to explain.
        let stopped = self.is_told_to_end();
        let expected = match hosts.runs_remote_job() {
            true => Vec::new(),
            false => expect::reporting_jobs(self.request),
        };
        let verdict = hosts.verdict(results.as_ref(), stopped, &expected);
        if let (FioEnd::Signaled(signal), false) = (end, stopped) {
            let what = format!("fio's client was killed by signal {signal}");
            let failure = Failure::new(FailureKind::EngineKilled, what);
            self.failures.push(by_signal(failure, signal));
        } else if let (Some(reason), false) = (self.unreadable.take(), stopped) {
            let what = format!("fio's report cannot be read: {reason}");
            self.failures
                .push(Failure::new(FailureKind::NoReport, what));
        }
        let interrupted = self.control.stop_requests() > 0 || self.sink_is_full;
        let good = self.failures.is_empty() && verdict.is_good;
        self.failures.extend(verdict.failures);
        self.emit(Event::Hosts {
            hosts: verdict.hosts,
        });
        if let Some(results) = results {
            self.emit(Event::Finished {
                results: Box::new(results),
            });
        }
        for text in verdict.notes {
            self.emit(Event::Note { text });
        }
        for failure in std::mem::take(&mut self.failures) {
            self.emit(Event::Failure(failure));
        }
        match (interrupted, good) {
            (true, _) => Outcome::Interrupted,
            (false, true) => Outcome::Complete,
            (false, false) => Outcome::Failed,
        }
    }
}

/// That something cannot be given to fio as it was checked.
fn not_held(error: io::Error) -> EngineError {
    let failure = |kind| Failure::new(kind, error.to_string());
    EngineError::Failed(match PathChanged::of(&error) {
        Some(path) => failure(FailureKind::Refused).about(path.display().to_string()),
        None => failure(FailureKind::Open),
    })
}

/// That a process could not be started: of this kind, unless a limit is the reason.
fn not_started(error: &io::Error, kind: FailureKind, what: String) -> Failure {
    match threads::advice_on(error) {
        Some(advice) => Failure::new(FailureKind::NoThread, what).to_do(advice),
        None => Failure::new(kind, what),
    }
}

#[derive(Debug, Default)]
struct Outputs {
    stdout_closed: bool,
    stderr_closed: bool,
}

impl Outputs {
    fn closed(&self) -> bool {
        self.stdout_closed && self.stderr_closed
    }
}

#[derive(Debug, Default)]
struct FioReady {
    stdout: bool,
    stderr: bool,
    line: bool,
}

/// Bytes that were read, `None` at the end.
fn read_some(from: &OwnedFd, chunk: &mut [u8]) -> Option<usize> {
    match rustix::io::read(from.as_fd(), &mut *chunk) {
        Ok(0) => None,
        Ok(n) => Some(n),
        Err(rustix::io::Errno::INTR) => Some(0),
        Err(_) => None,
    }
}
