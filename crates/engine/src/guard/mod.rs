//! Keeps fio and all its jobs on a leash.
//!
//! fio's forked jobs call `setsid()`: they are in no process group that could
//! be killed, and go on when fio itself is killed. So on Linux fio is started
//! by a process in between, the *guard*: Fathom's own executable once more,
//! session leader and reaper of orphans. It holds one end of a socket; when
//! the other end closes, because Fathom was killed, it kills everything below
//! itself. It also waits for fio, looks for jobs that outlived it, and reports.
//!
//! Elsewhere, and in tests of this crate, a thread does the same work as far
//! as it can: without reaping orphans.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitCode, Stdio};

use fathom_device::threads;
use fathom_model::{Failure, FailureKind};

use fathom_jobfile::variables::set_given;

mod supervise;
mod tree;

#[cfg(target_os = "linux")]
pub use supervise::clear_orphans;

/// First argument of the process that is a guard and nothing else.
const ARGUMENT: &str = "__guard";

/// Where the guard lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardPlace {
    /// A process of its own: Fathom's executable, which must call [`entry`]
    /// before anything else. Linux only; elsewhere this is a thread too.
    Process,
    /// A thread of this process.
    Thread,
}

/// What the guard tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GuardReport {
    /// fio runs as this process.
    Started(u32),
    /// fio could not be executed; the errno.
    CannotStart(i32),
    /// This process outlived fio and was killed.
    Orphan(u32),
    /// This process cannot be killed now.
    Stuck(u32),
    /// fio ended by itself with this code.
    Exited(i32),
    /// fio was ended by this signal.
    Signaled(i32),
}

impl GuardReport {
    fn line(&self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::CannotStart(errno) => format!("cannot-start {errno}\n"),
            Self::Orphan(pid) => format!("orphan {pid}\n"),
            Self::Stuck(pid) => format!("stuck {pid}\n"),
            Self::Exited(code) => format!("exited {code}\n"),
            Self::Signaled(signal) => format!("signaled {signal}\n"),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let (word, number) = line.split_once(' ')?;
        Some(match word {
            "started" => Self::Started(number.parse().ok()?),
            "cannot-start" => Self::CannotStart(number.parse().ok()?),
            "orphan" => Self::Orphan(number.parse().ok()?),
            "stuck" => Self::Stuck(number.parse().ok()?),
            "exited" => Self::Exited(number.parse().ok()?),
            "signaled" => Self::Signaled(number.parse().ok()?),
            _ => return None,
        })
    }

    /// Whether nothing comes after it.
    pub fn is_last(&self) -> bool {
        matches!(
            self,
            Self::CannotStart(_) | Self::Exited(_) | Self::Signaled(_)
        )
    }
}

/// A process below `whose` that was left when all else had ended.
pub fn outlived(whose: &str, pid: u32) -> Failure {
    let what = format!("this process of {whose} outlived it and was killed");
    Failure::new(FailureKind::Orphan, what).about(format!("process {pid}"))
}

/// One that is not gone, though it was killed.
pub fn undying(whose: &str, pid: u32) -> Failure {
    let what = format!("this process of {whose} does not die: it waits in the kernel");
    Failure::new(FailureKind::Hung, what).about(format!("process {pid}"))
}

/// What Fathom orders; one byte on the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuardOrder {
    /// SIGINT to fio: it ends and reports what it has.
    Interrupt,
    /// SIGUSR1 to fio: it reports what it has and goes on.
    Status,
    /// SIGKILL to fio and all its jobs.
    Kill,
}

impl GuardOrder {
    fn byte(self) -> u8 {
        match self {
            Self::Interrupt => b'i',
            Self::Status => b's',
            Self::Kill => b'k',
        }
    }

    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Interrupt, Self::Status, Self::Kill]
            .into_iter()
            .find(|order| order.byte() == byte)
    }
}

/// fio under guard: its outputs, and the line to its guard.
#[derive(Debug)]
pub struct FioSupervisor {
    line: UnixStream,
    unread: Vec<u8>,
    guard: Option<Child>,
    /// fio's process, once the guard has told it.
    fio: Option<u32>,
    /// fio's standard output.
    pub stdout: OwnedFd,
    /// fio's standard error.
    pub stderr: OwnedFd,
}

impl FioSupervisor {
    /// Starts `argv` in `work_dir` under a guard.
    ///
    /// # Errors
    /// When the guard cannot be started; that fio cannot is a [`GuardReport`].
    pub fn start(place: GuardPlace, argv: &[OsString], work_dir: &Path) -> io::Result<Self> {
        let (line, far_end) = UnixStream::pair()?;
        line.set_nonblocking(true)?;
        if cfg!(target_os = "linux") && place == GuardPlace::Process {
            Self::in_process(line, far_end, argv, work_dir)
        } else {
            Self::in_thread(line, far_end, argv, work_dir)
        }
    }

    fn in_process(
        line: UnixStream,
        far_end: UnixStream,
        argv: &[OsString],
        work_dir: &Path,
    ) -> io::Result<Self> {
        let mut guard = set_given(&mut Command::new("/proc/self/exe"))
            .arg(ARGUMENT)
            .args(argv)
            .current_dir(work_dir)
            .stdin(Stdio::from(OwnedFd::from(far_end)))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let stdout = guard.stdout.take().map(ChildStdout::into);
        let stderr = guard.stderr.take().map(ChildStderr::into);
        Ok(Self {
            line,
            unread: Vec::new(),
            guard: Some(guard),
            fio: None,
            stdout: stdout.expect("stdout was asked to be a pipe"),
            stderr: stderr.expect("stderr was asked to be a pipe"),
        })
    }

    fn in_thread(
        line: UnixStream,
        far_end: UnixStream,
        argv: &[OsString],
        work_dir: &Path,
    ) -> io::Result<Self> {
        let (stdout, stdout_end) = io::pipe()?;
        let (stderr, stderr_end) = io::pipe()?;
        let mut command = fio_command(argv);
        command
            .current_dir(work_dir)
            .stdout(Stdio::from(stdout_end))
            .stderr(Stdio::from(stderr_end));
        std::thread::Builder::new()
            .name("fio-guard".into())
            .spawn(move || supervise::supervise(&far_end, command, GuardPlace::Thread))?;
        Ok(Self {
            line,
            unread: Vec::new(),
            guard: None,
            fio: None,
            stdout: stdout.into(),
            stderr: stderr.into(),
        })
    }

    /// Gives an order. A guard that has gone already needs none.
    pub fn order(&self, order: GuardOrder) {
        let _ = (&self.line).write_all(&[order.byte()]);
    }

    /// What is readable when the guard has something to tell.
    pub fn line(&self) -> BorrowedFd<'_> {
        self.line.as_fd()
    }

    /// Reports that have arrived, without waiting; `None` when the guard is gone.
    ///
    /// # Errors
    /// When the line breaks.
    pub fn reports(&mut self) -> io::Result<Option<Vec<GuardReport>>> {
        let mut chunk = [0; 512];
        match (&self.line).read(&mut chunk) {
            Ok(0) => return Ok(None),
            Ok(n) => self.unread.extend_from_slice(&chunk[..n]),
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
                ) => {}
            Err(e) => return Err(e),
        }
        let mut reports = Vec::new();
        while let Some(end) = self.unread.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let report = GuardReport::parse(String::from_utf8_lossy(&line).trim_end());
            if let Some(GuardReport::Started(pid)) = report {
                self.fio = Some(pid);
            }
            reports.extend(report);
        }
        Ok(Some(reports))
    }

    /// Kills jobs of a fio server whose connection has ended without them, as that of
    /// a client that was killed does: they have come to the guard, and would run to
    /// their end. What jobs have started themselves is left to them.
    pub fn kill_abandoned_jobs(&self) {
        let (Some(guard), Some(fio)) = (&self.guard, self.fio) else {
            return;
        };
        let program = |pid: u32| std::fs::read_link(format!("/proc/{pid}/exe")).ok();
        let of_fio = program(fio);
        for pid in tree::children(guard.id()) {
            if pid != fio && of_fio.is_some() && program(pid) == of_fio {
                Self::kill_below(pid);
            }
        }
    }

    /// Kills what is left below `pid` when the guard has died without a report.
    pub fn kill_below(pid: u32) {
        tree::kill(tree::Root::Including(pid), supervise::KILL_PATIENCE, || ());
    }
}

impl Drop for FioSupervisor {
    fn drop(&mut self) {
        // The guard ends right after its last report, or is on its way to.
        if let Some(mut guard) = self.guard.take() {
            let _ = self.line.shutdown(std::net::Shutdown::Both);
            // Where there is no thread to be had, it is reaped with this process.
            let _ = threads::spawn("guard-end", move || guard.wait());
        }
    }
}

/// The guard's process: call this before anything else in `main`. `None` when
/// this process is not a guard.
pub fn entry(mut args: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    if args.nth(1)? != ARGUMENT {
        return None;
    }
    let argv: Vec<OsString> = args.collect();
    let stdin = io::stdin();
    // Started by hand there is no socket to anybody.
    let Ok(line) = stdin.as_fd().try_clone_to_owned().map(UnixStream::from) else {
        return Some(ExitCode::FAILURE);
    };
    if argv.is_empty() || line.peer_addr().is_err() {
        return Some(ExitCode::FAILURE);
    }
    supervise::supervise(&line, fio_command(&argv), GuardPlace::Process);
    Some(ExitCode::SUCCESS)
}

fn fio_command(argv: &[OsString]) -> Command {
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]).stdin(Stdio::null());
    command
}
