//! The guard's own work, the same in a process of its own and in a thread.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait, waitpid};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::{Order, Place, Report, tree};

/// How long killed processes get to be gone. Fathom promises that nothing
/// survives its own end by 2 s.
pub const KILL_PATIENCE: Duration = Duration::from_millis(1500);

/// Runs `command`, obeys the orders on `line`, and returns when nothing of it is left.
pub fn supervise(line: &UnixStream, mut command: Command, place: Place) {
    // Registered before fio is started: an end at once is an end seen.
    let Ok(child_ended) = prepare(place) else {
        tell(line, &Report::CannotStart(0));
        return;
    };
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            tell(
                line,
                &Report::CannotStart(error.raw_os_error().unwrap_or(0)),
            );
            return;
        }
    };
    drop(command); // closes this side of the outputs where they are pipes of a thread
    tell(line, &Report::Started(child.id()));
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    let watch = Watch {
        line,
        child_ended,
        pid,
        place,
    };
    watch.until_the_end();
}

fn prepare(place: Place) -> io::Result<UnixStream> {
    let (read_end, write_end) = UnixStream::pair()?;
    read_end.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, write_end)?;
    if place == Place::Process {
        become_a_process_apart()?;
    }
    Ok(read_end)
}

/// A session of its own keeps the terminal's Ctrl-C away; adopting orphans
/// keeps jobs findable that have left every group.
fn become_a_process_apart() -> io::Result<()> {
    // Handlers rather than "ignore", which fio would inherit. Whoever stops a
    // whole service signals the guard as well, which has to see fio's end.
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
    }
    let _ = rustix::process::setsid();
    #[cfg(target_os = "linux")]
    {
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        rustix::thread::set_name(c"fio-guard")?;
    }
    Ok(())
}

/// A lost report means that Fathom has gone, which the next read tells.
fn tell(mut line: &UnixStream, report: &Report) {
    let _ = line.write_all(report.line().as_bytes());
}

struct Watch<'l> {
    line: &'l UnixStream,
    child_ended: UnixStream,
    pid: Pid,
    place: Place,
}

impl Watch<'_> {
    fn until_the_end(&self) {
        let status = loop {
            if let Some(status) = self.reap() {
                break status;
            }
            match self.next_order() {
                Next::Order(Order::Interrupt) => self.signal(Signal::INT),
                Next::Order(Order::Status) => self.signal(Signal::USR1),
                Next::Order(Order::Kill) => {
                    if let Some(status) = self.kill_all() {
                        break status;
                    }
                    // What does not die now is in the kernel's hands.
                    return;
                }
                Next::FathomIsGone => {
                    self.kill_all();
                    return;
                }
                Next::LookAgain => {}
            }
        };
        self.clear_orphans();
        let last = match (status.code(), status.signal()) {
            (Some(code), _) => Report::Exited(code),
            (None, signal) => Report::Signaled(signal.unwrap_or(0)),
        };
        tell(self.line, &last);
    }

    fn signal(&self, signal: Signal) {
        let _ = kill_process(self.pid, signal);
    }

    /// Collects ended children; fio's status when it is among them. As a
    /// thread it waits for fio alone: other children are not its own.
    fn reap(&self) -> Option<ExitStatus> {
        while let Ok(Some((pid, status))) = self.wait() {
            if pid == self.pid {
                return Some(ExitStatus::from_raw(status.as_raw()));
            }
        }
        None
    }

    /// An ended child, if there is one. (`waitpid(None)` would look into this
    /// process group only, which orphans have left.)
    fn wait(&self) -> rustix::io::Result<Option<(Pid, WaitStatus)>> {
        match self.place {
            Place::Process => wait(WaitOptions::NOHANG),
            Place::Thread => waitpid(Some(self.pid), WaitOptions::NOHANG),
        }
    }

    fn next_order(&self) -> Next {
        let mut fds = [
            PollFd::new(self.line, PollFlags::IN),
            PollFd::from_borrowed_fd(self.child_ended.as_fd(), PollFlags::IN),
        ];
        if poll(&mut fds, None).is_err() {
            return Next::LookAgain; // a signal came in between
        }
        let order_came = !fds[0].revents().is_empty();
        // What is in there only says that a child ended, however often.
        let _ = (&self.child_ended).read(&mut [0; 64]);
        if !order_came {
            return Next::LookAgain;
        }
        let mut byte = [0];
        match (&*self.line).read(&mut byte) {
            Ok(1) => Order::from_byte(byte[0]).map_or(Next::LookAgain, Next::Order),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => Next::LookAgain,
            _ => Next::FathomIsGone,
        }
    }

    fn root(&self) -> tree::Root {
        let pid = |pid: Pid| pid.as_raw_nonzero().get().unsigned_abs();
        match self.place {
            Place::Process => tree::Root::Below(pid(rustix::process::getpid())),
            Place::Thread => tree::Root::Including(pid(self.pid)),
        }
    }

    /// Kills fio and everything below; reports what did not die in time.
    fn kill_all(&self) -> Option<ExitStatus> {
        let mut status = None;
        let left = tree::kill(self.root(), KILL_PATIENCE, || {
            if status.is_none() {
                status = self.reap();
            }
        });
        for pid in &left {
            tell(self.line, &Report::Stuck(*pid));
        }
        status
    }

    /// After fio's end: nothing it started may live on.
    fn clear_orphans(&self) {
        if self.place == Place::Thread {
            return; // they are no longer below anything this thread could look at
        }
        // Without children there is nothing to look for, which is the rule.
        if self.wait().is_err() {
            return;
        }
        for pid in tree::alive(self.root()) {
            tell(self.line, &Report::Orphan(pid));
        }
        self.kill_all();
    }
}

enum Next {
    Order(Order),
    FathomIsGone,
    LookAgain,
}
