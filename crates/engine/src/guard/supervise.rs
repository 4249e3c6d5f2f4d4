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

use super::{GuardOrder, GuardPlace, GuardReport, tree};

/// How long killed processes get to be gone. Fathom promises that nothing
/// survives its own end by 2 s.
pub const KILL_PATIENCE: Duration = Duration::from_millis(1500);

/// Runs `command`, obeys the orders on `line`, and returns when nothing of it is left.
pub fn supervise(line: &UnixStream, mut command: Command, place: GuardPlace) {
    // Registered before fio is started: an end at once is an end seen.
    let Ok(child_ended) = prepare(place) else {
        tell(line, &GuardReport::CannotStart(0));
        return;
    };
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            tell(
                line,
                &GuardReport::CannotStart(error.raw_os_error().unwrap_or(0)),
            );
            return;
        }
    };
    drop(command); // closes this side of the outputs where they are pipes of a thread
    tell(line, &GuardReport::Started(child.id()));
    let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return;
    };
    let watch = ProcessWatch {
        line,
        child_ended,
        pid,
        place,
    };
    watch.until_the_end();
}

fn prepare(place: GuardPlace) -> io::Result<UnixStream> {
    let (read_end, write_end) = UnixStream::pair()?;
    read_end.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(SIGCHLD, write_end)?;
    if place == GuardPlace::Process {
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
fn tell(mut line: &UnixStream, report: &GuardReport) {
    let _ = line.write_all(report.line().as_bytes());
}

struct ProcessWatch<'l> {
    line: &'l UnixStream,
    child_ended: UnixStream,
    pid: Pid,
    place: GuardPlace,
}

impl ProcessWatch<'_> {
    fn until_the_end(&self) {
        let status = loop {
            if let Some(status) = self.reap() {
                self.clear_orphans();
                break status;
            }
            match self.next_order() {
                NextWait::Order(GuardOrder::Interrupt) => self.signal(Signal::INT),
                NextWait::Order(GuardOrder::Status) => self.signal(Signal::USR1),
                // What does not die now is in the kernel's hands: to try again would take
                // longer than Fathom waits.
                NextWait::Order(GuardOrder::Kill) => match self.kill_all() {
                    Some(status) => break status,
                    None => return,
                },
                NextWait::FathomIsGone => {
                    self.kill_all();
                    return;
                }
                NextWait::LookAgain => {}
            }
        };
        let last = match (status.code(), status.signal()) {
            (Some(code), _) => GuardReport::Exited(code),
            (None, signal) => GuardReport::Signaled(signal.unwrap_or(0)),
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
            GuardPlace::Process => wait(WaitOptions::NOHANG),
            GuardPlace::Thread => waitpid(Some(self.pid), WaitOptions::NOHANG),
        }
    }

    fn next_order(&self) -> NextWait {
        let mut fds = [
            PollFd::new(self.line, PollFlags::IN),
            PollFd::from_borrowed_fd(self.child_ended.as_fd(), PollFlags::IN),
        ];
        if poll(&mut fds, None).is_err() {
            return NextWait::LookAgain; // a signal came in between
        }
        let order_came = !fds[0].revents().is_empty();
        // What is in there only says that a child ended, however often.
        let _ = (&self.child_ended).read(&mut [0; 64]);
        if !order_came {
            return NextWait::LookAgain;
        }
        let mut byte = [0];
        match (&*self.line).read(&mut byte) {
            Ok(1) => GuardOrder::from_byte(byte[0]).map_or(NextWait::LookAgain, NextWait::Order),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => NextWait::LookAgain,
            _ => NextWait::FathomIsGone,
        }
    }

    fn root(&self) -> tree::Root {
        let pid = |pid: Pid| pid.as_raw_nonzero().get().unsigned_abs();
        match self.place {
            GuardPlace::Process => tree::Root::Below(pid(rustix::process::getpid())),
            GuardPlace::Thread => tree::Root::Including(pid(self.pid)),
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
            tell(self.line, &GuardReport::Stuck(*pid));
        }
        status
    }

    /// After fio's end: nothing it started may live on.
    fn clear_orphans(&self) {
        if self.place == GuardPlace::Thread {
            return; // they are no longer below anything this thread could look at
        }
        clear_orphans(&mut |report| tell(self.line, &report));
    }
}

/// Kills what lives below this process, which has adopted it, and tells of it.
pub fn clear_orphans(tell: &mut dyn FnMut(GuardReport)) {
    // Without children there is nothing to look for, which is the rule.
    if wait(WaitOptions::NOHANG).is_err() {
        return;
    }
    let root = tree::Root::Below(std::process::id());
    for pid in tree::alive(root) {
        tell(GuardReport::Orphan(pid));
    }
    let reap = || while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {};
    for pid in tree::kill(root, KILL_PATIENCE, reap) {
        tell(GuardReport::Stuck(pid));
    }
}

enum NextWait {
    Order(GuardOrder),
    FathomIsGone,
    LookAgain,
}
