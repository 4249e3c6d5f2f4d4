//! Threads that do I/Os one at a time, each taking from a line in which they wait.

#![allow(unsafe_code)] // each block says why it is sound

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Backend, CompletedIo, Io};

/// An I/O on its way to a thread.
struct QueuedIo(Io);

// SAFETY: the pointer is to a slot that the worker does not touch before the
// ticket's `CompletedIo`; the thread that has the ticket is its only user.
unsafe impl Send for QueuedIo {}

/// What worker and threads share. Locks are the nature of what they stand for: it
/// passes every request through one.
#[derive(Default)]
struct SharedQueue {
    done: Mutex<VecDeque<CompletedIo>>,
    over: Condvar,
}

/// I/Os in their order, and whether no more will come.
#[derive(Default)]
struct RequestLine {
    waiting: Mutex<(VecDeque<QueuedIo>, bool)>,
    more: Condvar,
}

/// What a thread does with an I/O: bytes or -errno.
pub(super) type Execute = Box<dyn FnMut(&Io) -> i64>;

/// Lines of I/Os and their threads: one line for all of them, or one for each file.
pub(in crate::native) struct IoPool {
    depth: usize,
    shared: Arc<SharedQueue>,
    lines: Vec<Arc<RequestLine>>,
    threads: Vec<JoinHandle<()>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IoPool {
    /// For so many I/Os at once.
    pub(super) fn new(depth: usize) -> Self {
        let shared = SharedQueue {
            done: Mutex::new(VecDeque::with_capacity(depth)),
            over: Condvar::new(),
        };
        Self {
            depth,
            shared: Arc::new(shared),
            lines: Vec::new(),
            threads: Vec::new(),
        }
    }

    /// One more line; its number.
    pub(super) fn add_line(&mut self) -> usize {
        self.lines.push(Arc::new(RequestLine {
            waiting: Mutex::new((VecDeque::with_capacity(self.depth), false)),
            more: Condvar::new(),
        }));
        self.lines.len() - 1
    }

    /// One more thread for a line; it makes what it works with itself.
    pub(super) fn add_thread<M>(&mut self, line: usize, name: &str, make: M) -> io::Result<()>
    where
        M: FnOnce() -> io::Result<Execute> + Send + 'static,
    {
        let (line, shared) = (Arc::clone(&self.lines[line]), Arc::clone(&self.shared));
        // Not a channel: one allocates where it has to wait, and a run where it need not
        // would seem to allocate less.
        let begun = Arc::new((Mutex::new(None), Condvar::new()));
        let tell = Arc::clone(&begun);
        let work = move || {
            let (execute, said) = match make() {
                Ok(execute) => (Some(execute), Ok(())),
                Err(error) => (None, Err(error)),
            };
            *locked(&tell.0) = Some(said);
            tell.1.notify_one();
            if let Some(mut execute) = execute {
                serve(&mut execute, &line, &shared);
            }
        };
        fathom_device::threads::room()?;
        let thread = std::thread::Builder::new().name(name.to_owned());
        self.threads.push(thread.spawn(work)?);
        let mut said = locked(&begun.0);
        loop {
            match said.take() {
                Some(said) => return said,
                None => said = begun.1.wait(said).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Backend for IoPool {
    const QUEUES_SYNCS: bool = true;

    fn push(&mut self, io: Io) {
        let line = match &self.lines[..] {
            [one] => one,
            each => &each[io.file as usize],
        };
        locked(&line.waiting).0.push_back(QueuedIo(io));
        line.more.notify_one();
    }

    fn submit(&mut self, _waiting: bool) -> io::Result<()> {
        Ok(())
    }

    fn reap(
        &mut self,
        min: usize,
        max: usize,
        wait: Option<Duration>,
        done: &mut Vec<CompletedIo>,
    ) -> io::Result<()> {
        let over = &self.shared.over;
        let mut ready = locked(&self.shared.done);
        while ready.len() < min {
            let Some(limit) = wait else {
                ready = over.wait(ready).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = over.wait_timeout(ready, limit);
            let (guard, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            ready = guard;
            if timeout.timed_out() {
                break;
            }
        }
        let count = max.min(ready.len());
        done.extend(ready.drain(..count));
        Ok(())
    }
}

fn serve(execute: &mut Execute, line: &RequestLine, shared: &SharedQueue) {
    loop {
        let ticket = {
            let mut waiting = locked(&line.waiting);
            loop {
                if let Some(ticket) = waiting.0.pop_front() {
                    break ticket;
                }
                if waiting.1 {
                    return;
                }
                waiting = line
                    .more
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        };
        let result = execute(&ticket.0);
        locked(&shared.done).push_back(CompletedIo {
            slot: ticket.0.slot,
            result,
        });
        shared.over.notify_one();
    }
}

impl Drop for IoPool {
    fn drop(&mut self) {
        for line in &self.lines {
            locked(&line.waiting).1 = true;
            line.more.notify_all();
        }
        // Threads finish what they have first: their slots must stay until then.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
