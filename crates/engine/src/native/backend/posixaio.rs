//! POSIX AIO as glibc does it: a thread for each file takes that file's
//! requests one after the other (sysdeps/pthread/aio_misc.c chains requests of
//! one descriptor). So a deeper queue on one file keeps a thread busy and no more.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::{Backend, CompletedIo, Io, OpenFile, calls};

/// An I/O on its way to a file's thread.
struct Ticket(Io);

// SAFETY: the pointer is to a slot that the worker does not touch before the
// ticket's `CompletedIo`; the thread that has the ticket is its only user.
unsafe impl Send for Ticket {}

/// What worker and file threads share. Locks are the nature of this engine:
/// what it stands for passes every request through one.
#[derive(Default)]
struct SharedQueue {
    done: Mutex<VecDeque<CompletedIo>>,
    over: Condvar,
}

#[derive(Default)]
struct RequestLine {
    waiting: Mutex<(VecDeque<Ticket>, bool)>,
    more: Condvar,
}

/// The threads of one worker's files.
pub(in crate::native) struct PosixAio {
    shared: Arc<SharedQueue>,
    lines: Vec<Arc<RequestLine>>,
    threads: Vec<JoinHandle<()>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code under these locks can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PosixAio {
    pub(in crate::native) fn new(files: &[OpenFile], depth: usize) -> io::Result<Self> {
        let shared = Arc::new(SharedQueue {
            done: Mutex::new(VecDeque::with_capacity(depth)),
            over: Condvar::new(),
        });
        let mut aio = Self {
            shared: Arc::clone(&shared),
            lines: Vec::new(),
            threads: Vec::new(),
        };
        for &file in files {
            let line = Arc::new(RequestLine {
                waiting: Mutex::new((VecDeque::with_capacity(depth), false)),
                more: Condvar::new(),
            });
            let (its_line, its_shared) = (Arc::clone(&line), Arc::clone(&shared));
            aio.lines.push(line);
            aio.threads.push(
                std::thread::Builder::new()
                    .name("posixaio".to_owned())
                    .spawn(move || serve(&file, &its_line, &its_shared))?,
            );
        }
        Ok(aio)
    }
}

fn serve(file: &OpenFile, line: &RequestLine, shared: &SharedQueue) {
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
        let result = calls::execute(file, &ticket.0);
        locked(&shared.done).push_back(CompletedIo {
            slot: ticket.0.slot,
            result,
        });
        shared.over.notify_one();
    }
}

impl Backend for PosixAio {
    const QUEUES_SYNCS: bool = true;

    fn push(&mut self, io: Io) {
        let line = &self.lines[io.file as usize];
        locked(&line.waiting).0.push_back(Ticket(io));
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
        let mut ready = locked(&self.shared.done);
        while ready.len() < min {
            match wait {
                None => {
                    ready = self
                        .shared
                        .over
                        .wait(ready)
                        .unwrap_or_else(PoisonError::into_inner)
                }
                Some(limit) => {
                    let (guard, timeout) = self
                        .shared
                        .over
                        .wait_timeout(ready, limit)
                        .unwrap_or_else(PoisonError::into_inner);
                    ready = guard;
                    if timeout.timed_out() {
                        break;
                    }
                }
            }
        }
        let count = max.min(ready.len());
        done.extend(ready.drain(..count));
        Ok(())
    }
}

impl Drop for PosixAio {
    fn drop(&mut self) {
        for line in &self.lines {
            locked(&line.waiting).1 = true;
            line.more.notify_one();
        }
        // Threads finish what they have first: their slots must stay until then.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
