//! Fathom sends itself to another machine, runs there, and streams its record
//! back: header and events as they come, the other files at the end.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Component, Path, PathBuf};
use std::process::{Child, ChildStdout};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use fathom_device::threads::{self, NoThread};
use fathom_engine::Control;
use fathom_model::{Event, Failure, FailureKind, RunStatus};
use fathom_record::{Header, Writer};

use super::session::SSH_FAILED;
use super::{SshError, SshSession, client, open_all};
use crate::hosts::allowance::{Allowance, Allowed};
use crate::hosts::file_parts::write_part;
use crate::hosts::machine::{Connection, HostLines, Machine};
use crate::hosts::wire::{READY_WAIT, SILENCE, Say, Wire, write_line};

/// How it went.
#[derive(Debug)]
pub enum Deployed {
    /// It ran; the record is here.
    Ran {
        /// The record's folder.
        dir: PathBuf,
        /// How the run ended.
        status: RunStatus,
    },
    /// The connection was cut, or the other side died; what had come until then
    /// is in the record.
    Cut {
        /// The record's folder; `None` when it was stopped before anything came.
        dir: Option<PathBuf>,
        /// What happened to the connection.
        reason: String,
    },
    /// This program does not run on that machine.
    CannotRun,
    /// The Fathom over there refused.
    Refused {
        /// Exit code, as in [`fathom_model::Exit`].
        exit: u8,
        /// Why.
        message: String,
    },
}

/// What the receiving side is told while it goes on.
#[derive(Debug)]
pub enum Received<'t> {
    /// A sentence for the person who waits.
    Text(&'t str),
    /// The run begins. The header may be changed before it is kept.
    Header(&'t mut Header),
    /// Something happened.
    Event(&'t Event),
}

/// Removes the user's own folders of this kind whose owners are surely gone, as
/// [`fathom_device::scratch`] says it, and knows itself: `me` is the line that
/// names this shell as an owner, empty where the system does not tell. `read`
/// and its redirection are the shell's own, so that /proc/self is the shell.
macro_rules! tidy {
    () => {
        "t=${TMPDIR:-/tmp}; \
         begun() { { read -r s <\"/proc/$1/stat\"; } 2>/dev/null || return 1; \
           s=${s##*\") \"}; set -- $s; shift 19; echo \"$1\"; }; \
         bi=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null); \
         ns=$(readlink /proc/self/ns/pid 2>/dev/null); \
         m=; { read -r m s </proc/self/stat; } 2>/dev/null; me=; \
         [ \"$m\" = $$ ] && [ -n \"$bi\" ] && [ -n \"$ns\" ] && me=\"$bi $ns $$ $(begun $$)\"; \
         gone() { [ -n \"$me\" ] && [ -O \"$1\" ] && read -r b n p w r <\"$1\" && \
           [ \"$b $n\" = \"$bi $ns\" ] && [ -z \"$r\" ] && \
           [ \"$p\" -gt 0 ] && [ \"$w\" -gt 0 ] || return 1; \
           w2=$(begun \"$p\") || return 0; [ \"$w2\" = \"$w\" ] && return 1; return 0; }; \
         tidy() { for o in \"$t\"/fathom-*; do \
           [ -L \"$o\" ] && continue; [ -O \"$o\" ] && [ -f \"$o/.fathom-owner\" ] || continue; \
           l=1; for f in \"$o\"/.fathom-owner \"$o\"/*/.fathom-owner; do \
             [ -e \"$f\" ] || continue; gone \"$f\" 2>/dev/null || l=; done; \
           [ -n \"$l\" ] && rm -rf \"$o\"; done; :; }; tidy; "
    };
}
/// As `tidy` says, for a machine that was lost: what still ends there, in the
/// folder `$1`, is waited for, for as long as [`PATIENCE`] has it.
const TIDY: &str = concat!(
    tidy!(),
    "i=0; while [ -d \"$t/$1\" ] && [ $i -lt 20 ]; do sleep 1; i=$((i+1)); tidy; done"
);
/// Takes the first `$1` bytes of stdin as the program, in a private folder `$2`
/// that is removed whatever happens, and runs it with the other arguments. What
/// follows on stdin, its end above all, reaches the program. `head -c` and `-O`
/// are not POSIX, but on every Linux, and only Linux is sent to.
const RECEIVE: &str = concat!(
    tidy!(),
    "umask 077; n=$1; d=$t/$2; shift 2; \
    mkdir \"$d\" || { echo '{\"wire\":\"cannot_run\"}'; exit 1; }; \
    trap 'rm -rf \"$d\"' EXIT; trap 'exit 1' HUP INT TERM; \
    [ -n \"$me\" ] && echo \"$me\" > \"$d/.fathom-owner\"; \
    { head -c \"$n\" > \"$d/fathom\" && chmod 700 \"$d/fathom\" && \"$d/fathom\" --version </dev/null >/dev/null 2>&1; } \
    || { echo '{\"wire\":\"cannot_run\"}'; exit 1; }; \
    TMPDIR=$d \"$d/fathom\" --runs \"$d/runs\" \"$@\""
);
/// How long the other side may take to end after it was asked to.
const PATIENCE: Duration = Duration::from_secs(20);
/// The same once somebody asked to stop, of one that has nothing more to say or
/// has not begun: nothing is waited for that could be missing later.
const STOP_WAIT: Duration = Duration::from_millis(500);
/// How often the wait for lines looks at the requests to end.
const TICK: Duration = Duration::from_millis(50);
/// More than any line of a record or raw output of one test; a longer one is a fault.
const LINE_LIMIT_BYTES: u64 = 256 << 20;

/// Runs this very program on the other machine with `args`, a sample every
/// `interval`, and keeps its record under `runs_dir`.
///
/// # Errors
/// When ssh does not start, the answer makes no sense, or the record cannot be
/// written here.
pub fn self_deploy(
    session: &SshSession,
    args: &[String],
    (runs_dir, interval): (&Path, Duration),
    control: &Control,
    told: &mut dyn FnMut(Received),
) -> Result<Deployed, SshError> {
    let program = Arc::new(read_program()?);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut child = receive(session, program.len(), &args)?;
    let stdout = child.stdout.take().expect("spawned with a pipe");
    let lines = read_lines(stdout)?;
    let mut far = RemoteProcess::new(child, program, session.stop(), None)?;
    let mut inbox = Inbox {
        session,
        runs_dir,
        writer: None,
        stray: None,
        allowance: Allowance::new(interval),
        heard: None,
    };
    let began = Instant::now();
    loop {
        if far.poll_stop(control, inbox.writer.is_some()) {
            return inbox.cut(None, true, told);
        }
        let (limit, since) = match inbox.heard {
            Some(heard) => (SILENCE * 2, heard),
            None => (READY_WAIT, began),
        };
        if since.elapsed() > limit {
            far.kill();
            return inbox.silent(limit, told);
        }
        match lines.recv_timeout(TICK) {
            Ok(line) => {
                if let Some(end) = inbox.take(&line, told)? {
                    return Ok(end);
                }
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                let code = far.finish();
                return inbox.cut(code, control.stop_requests() > 0, told);
            }
        }
    }
}

/// This program, to be sent.
///
/// # Errors
/// When its file cannot be read.
pub(crate) fn read_program() -> Result<Vec<u8>, SshError> {
    fs::read(own_program()).map_err(|source| SshError::Local {
        what: "reading this program to send it",
        source,
    })
}

/// Starts the other side, which waits for a program of so many bytes and runs it
/// with `args`.
///
/// # Errors
/// When ssh does not start.
pub(crate) fn receive(
    session: &SshSession,
    program_bytes: usize,
    args: &[&str],
) -> Result<Child, SshError> {
    let (length, folder) = (program_bytes.to_string(), session.folder_name());
    let script_args: Vec<&str> = [length.as_str(), folder.as_str()]
        .into_iter()
        .chain(args.iter().copied())
        .collect();
    let mut child = session.spawn(RECEIVE, &script_args)?;
    client::pass_stderr_on(&mut child)?;
    Ok(child)
}

/// Connects to all machines without asking anything on the terminal: of several
/// at a time nobody could tell whose question it is.
pub fn connect(names: &[String], control: &Control) -> Vec<Machine> {
    let program = read_program().map(Arc::new);
    let program = Arc::new(program);
    let sessions = open_all(names, control).into_iter();
    let machine = |(session, name): (Result<SshSession, SshError>, &String)| {
        let program = Arc::clone(&program);
        Machine {
            name: name.clone(),
            node: None,
            begin: Box::new(move |lines| {
                let far = over_ssh(session, &program, lines);
                far.map_err(|error| error.to_string())
            }),
        }
    };
    sessions.zip(names).map(machine).collect()
}

/// Sends the program to a machine and starts it there.
fn over_ssh(
    session: Result<SshSession, SshError>,
    program: &Result<Arc<Vec<u8>>, SshError>,
    lines: HostLines,
) -> Result<Box<dyn Connection>, SshError> {
    let session = session?;
    let program = program.as_ref().map_err(SshError::again)?;
    let mut child = receive(&session, program.len(), &["agent"])?;
    let stdout = child.stdout.take().expect("spawned with a pipe");
    threads::spawn("host-lines", move || {
        if take_lines(stdout, |line| lines.line(line)) {
            lines.end();
        }
    })?;
    let stop = session.stop().clone();
    let far = RemoteProcess::new(child, Arc::clone(program), &stop, Some(session))?;
    Ok(Box::new(far))
}

/// The client process, and through it the program on the other side.
pub(crate) struct RemoteProcess {
    child: Child,
    /// To the thread that writes the program, then every line. Its end is the
    /// end of the other side's input, which asks it to end.
    lines: Option<Sender<Say>>,
    asked: Option<Instant>,
    stop: Control,
    /// The connection, which must not end before the client.
    session: Option<SshSession>,
}

impl RemoteProcess {
    pub(crate) fn new(
        mut child: Child,
        program: Arc<Vec<u8>>,
        stop: &Control,
        session: Option<SshSession>,
    ) -> Result<Self, NoThread> {
        let mut stdin = child.stdin.take().expect("spawned with a pipe");
        let (lines, said) = mpsc::channel();
        threads::spawn("host-input", move || {
            // A far side that takes no more of it says so on stdout.
            let _ = stdin.write_all(&program);
            let _ = stdin.flush();
            drop(program);
            for say in said {
                write_line(&mut stdin, &say);
            }
        })?;
        Ok(Self {
            child,
            lines: Some(lines),
            asked: None,
            stop: stop.clone(),
            session,
        })
    }

    /// Asks the other side to end: its input ends, once the program is sent.
    pub(crate) fn end_input(&mut self) {
        self.lines = None;
    }

    /// Hands a request to stop on; a second one, or one that is not followed,
    /// cuts the line, which ends the other side too. One that has not `begun` has
    /// nothing to report. Whether the line was cut.
    fn poll_stop(&mut self, control: &Control, begun: bool) -> bool {
        if control.stop_requests() == 0 {
            return false;
        }
        let asked = *self.asked.get_or_insert_with(Instant::now);
        self.end_input();
        let patience = if begun { PATIENCE } else { STOP_WAIT };
        let is_cut = asked.elapsed() > patience || control.stop_requests() > 1;
        if is_cut {
            self.kill();
        }
        is_cut
    }

    /// Cuts the line.
    fn kill(&mut self) {
        client::kill(&mut self.child, true);
    }

    /// Waits for the end, so that the other side has removed its folder; gives
    /// the exit status.
    pub(crate) fn finish(&mut self) -> Option<i32> {
        self.end_input();
        let started = Instant::now();
        let patience = || match self.stop.stop_requests() {
            0 => PATIENCE,
            _ => STOP_WAIT,
        };
        while started.elapsed() < patience() {
            match self.child.try_wait() {
                Ok(None) => thread::sleep(TICK),
                Ok(Some(status)) => return status.code(),
                Err(_) => return None,
            }
        }
        self.kill();
        None
    }
}

impl Connection for RemoteProcess {
    fn say(&self, say: &Say) {
        if let Some(lines) = &self.lines {
            // A writer that has ended was told by the connection's end.
            let _ = lines.send(say.clone());
        }
    }

    fn end_input(&mut self) {
        RemoteProcess::end_input(self);
    }

    fn cut(&mut self) {
        self.kill();
    }

    fn finish(&mut self) -> Option<i32> {
        RemoteProcess::finish(self).filter(|&code| code != SSH_FAILED)
    }

    fn give_up(mut self: Box<Self>) {
        let session = self.session.take();
        drop(self);
        if let Some(session) = session {
            session.attempt(TIDY, &[&session.folder_name()]);
        }
    }
}

impl Drop for RemoteProcess {
    fn drop(&mut self) {
        self.finish();
    }
}

/// This program's file; on Linux the one that runs, even if it was replaced.
fn own_program() -> PathBuf {
    let proc = Path::new("/proc/self/exe");
    if proc.exists() {
        proc.into()
    } else {
        std::env::current_exe().unwrap_or_default()
    }
}

fn read_lines(stdout: ChildStdout) -> Result<Receiver<String>, NoThread> {
    let (sender, receiver) = mpsc::sync_channel(64);
    let read = move || {
        take_lines(stdout, |line| sender.send(line).is_ok());
    };
    threads::spawn("host-lines", read)?;
    Ok(receiver)
}

/// Gives every whole line to `take` as long as it wants more; whether the
/// stream ended first. What nobody wants is read all the same: a client that
/// cannot write does not end.
pub(crate) fn take_lines(stdout: ChildStdout, mut take: impl FnMut(String) -> bool) -> bool {
    let mut reader = BufReader::new(stdout);
    loop {
        let mut line = Vec::new();
        let read = reader
            .by_ref()
            .take(LINE_LIMIT_BYTES)
            .read_until(b'\n', &mut line);
        // A line without an end was cut.
        if read.is_err() || line.last() != Some(&b'\n') {
            return true;
        }
        if !take(String::from_utf8_lossy(&line).into_owned()) {
            let _ = io::copy(&mut reader, &mut io::sink());
            return false;
        }
    }
}

struct Inbox<'i> {
    session: &'i SshSession,
    runs_dir: &'i Path,
    writer: Option<Writer>,
    /// The first line that was none of ours: what to show when nothing else came.
    stray: Option<String>,
    allowance: Allowance,
    /// When a line of ours came last.
    heard: Option<Instant>,
}

impl Inbox<'_> {
    /// Takes one line; gives the end when it was the last.
    fn take(
        &mut self,
        line: &str,
        told: &mut dyn FnMut(Received),
    ) -> Result<Option<Deployed>, SshError> {
        let wire: Wire = match serde_json::from_str(line) {
            Ok(wire) => wire,
            Err(_) => {
                // Login scripts may print; that is not part of the stream.
                self.stray
                    .get_or_insert_with(|| line.trim().chars().take(200).collect());
                return Ok(None);
            }
        };
        self.heard = Some(Instant::now());
        match self.allowance.take(&wire, line.len()) {
            Allowed::Yes => {}
            Allowed::LeftOut => return Ok(None),
            Allowed::FirstLeftOut(text) => {
                told(Received::Text(&text));
                return Ok(None);
            }
            Allowed::TooMuch(what) => return self.end_with(&what, told).map(Some),
        }
        match wire {
            Wire::CannotRun => return Ok(Some(Deployed::CannotRun)),
            Wire::Refused { exit, message } => {
                return Ok(Some(Deployed::Refused { exit, message }));
            }
            Wire::Text { text } => told(Received::Text(&text)),
            Wire::Header { mut header } => {
                told(Received::Header(&mut header));
                self.writer = Some(Writer::create(self.runs_dir, &header)?);
            }
            Wire::File { path, text, more } => self.keep(&path, &text, more)?,
            // These are for runs on several machines.
            Wire::Here { .. } | Wire::Clock { .. } | Wire::Gate { .. } | Wire::Began { .. } => {}
            Wire::Event { happened } => return self.event(&happened, told),
        }
        Ok(None)
    }

    fn event(
        &mut self,
        event: &Event,
        told: &mut dyn FnMut(Received),
    ) -> Result<Option<Deployed>, SshError> {
        let Some(writer) = &mut self.writer else {
            return Err(self.nonsense("an event before the header"));
        };
        if let Event::Ended { status } = event {
            let writer = self.writer.take().expect("checked above");
            let dir = writer.finish(*status)?;
            told(Received::Event(event));
            return Ok(Some(Deployed::Ran {
                dir,
                status: *status,
            }));
        }
        writer.append(event)?;
        told(Received::Event(event));
        Ok(None)
    }

    /// Keeps a file of the record.
    fn keep(&mut self, path: &str, text: &str, more: bool) -> Result<(), SshError> {
        let Some(writer) = &self.writer else {
            return Err(self.nonsense("a file before the header"));
        };
        let kept = match place(path) {
            Some((RecordFolder::Jobs, rest)) => writer.jobs_dir()?.join(rest),
            Some((RecordFolder::Raw, rest)) => writer.raw_dir()?.join(rest),
            None => return Err(self.nonsense(&format!("a file named {path:?}"))),
        };
        let has_room = self.allowance.file(&kept, text.len());
        has_room
            .and_then(|()| write_part(&kept, text, more))
            .map_err(|source| SshError::Local {
                what: "keeping a file of the record",
                source,
            })
    }

    /// The other side says nothing any more.
    fn silent(self, limit: Duration, told: &mut dyn FnMut(Received)) -> Result<Deployed, SshError> {
        if self.writer.is_none() {
            let target = self.session.target().to_owned();
            let seconds = limit.as_secs();
            return Err(SshError::Late { target, seconds });
        }
        self.cut(None, false, told)
    }

    /// Ends the run because of what the other side sends.
    fn end_with(
        &mut self,
        what: &str,
        told: &mut dyn FnMut(Received),
    ) -> Result<Deployed, SshError> {
        let error = self.nonsense(what);
        let reason = error.to_string();
        let Some(writer) = self.writer.take() else {
            return Err(error);
        };
        let failure = Failure::new(FailureKind::Mismatch, reason.as_str());
        interrupted(writer, Some(failure), reason, told)
    }

    /// The stream ended before the run did.
    fn cut(
        mut self,
        code: Option<i32>,
        stopped: bool,
        told: &mut dyn FnMut(Received),
    ) -> Result<Deployed, SshError> {
        let is_lost = code.is_none_or(|code| code == SSH_FAILED);
        let error = match code {
            Some(code) if !is_lost => {
                let stray = self
                    .stray
                    .take()
                    .map_or(String::new(), |stray| format!(": {stray}"));
                self.nonsense(&format!(
                    "fathom ended there with status {code} and said nothing{stray}"
                ))
            }
            _ => self.session.lose(),
        };
        let reason = error.to_string();
        let Some(writer) = self.writer.take() else {
            return if stopped {
                Ok(Deployed::Cut { dir: None, reason })
            } else {
                Err(error)
            };
        };
        let failure = (!stopped).then(|| Failure::new(FailureKind::Other, reason.as_str()));
        interrupted(writer, failure, reason, told)
    }

    fn nonsense(&self, answer: &str) -> SshError {
        SshError::Answer {
            target: self.session.target().to_owned(),
            answer: answer.to_owned(),
        }
    }
}

/// Ends the record of a run that the other side does not end, with the reason where there
/// is one.
fn interrupted(
    mut writer: Writer,
    failure: Option<Failure>,
    reason: String,
    told: &mut dyn FnMut(Received),
) -> Result<Deployed, SshError> {
    if let Some(failure) = failure.map(Event::Failure) {
        writer.append(&failure)?;
        told(Received::Event(&failure));
    }
    let status = RunStatus::Interrupted;
    let dir = Some(writer.finish(status)?);
    told(Received::Event(&Event::Ended { status }));
    Ok(Deployed::Cut { dir, reason })
}

/// The two folders of a record that take files.
#[derive(Debug, PartialEq, Eq)]
enum RecordFolder {
    Jobs,
    Raw,
}

/// Where a file belongs. The path comes from another machine: only plain names
/// in the two folders are taken, in `raw` also in a folder of theirs.
fn place(path: &str) -> Option<(RecordFolder, PathBuf)> {
    let parts: Vec<Component> = Path::new(path).components().collect();
    let (first, rest) = parts.split_first()?;
    let is_plain = parts
        .iter()
        .all(|part| matches!(part, Component::Normal(_)));
    let folder = match (first.as_os_str().to_str()?, rest.len()) {
        ("jobs", 1) => RecordFolder::Jobs,
        ("raw", 1 | 2) => RecordFolder::Raw,
        _ => return None,
    };
    is_plain.then(|| (folder, rest.iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_other_side_stay_in_their_folders() {
        assert_eq!(
            place("jobs/01.fio"),
            Some((RecordFolder::Jobs, "01.fio".into()))
        );
        assert_eq!(
            place("raw/01/fio.out"),
            Some((RecordFolder::Raw, "01/fio.out".into()))
        );
        for bad in [
            "events.jsonl",
            "jobs",
            "/etc/passwd",
            "jobs/../events.jsonl",
            "raw/../../x",
            "jobs/a/b",
            "raw/a/b/c",
            "",
            "raw/./../../x",
        ] {
            assert_eq!(place(bad), None, "{bad}");
        }
    }

    #[test]
    fn the_script_passes_through_any_login_shell() {
        assert!(!RECEIVE.contains('\n') && !RECEIVE.contains('!'));
    }
}
