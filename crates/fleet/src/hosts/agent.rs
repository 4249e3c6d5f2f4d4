//! The side of a run on several machines that is driven: it waits for the word
//! before each step, tells its time when asked, and ends when nobody asks any more.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use fathom_device::threads::{self, NoThread};
use fathom_engine::{Control, StepBarrier};
use fathom_model::{Event, RunStatus};
use fathom_record::Entries;

use super::file_parts::read_files;
use super::wire::{SILENCE, Say, Wire, now_ms};

/// Passes a line on to the driving side.
pub type Send = Arc<dyn Fn(&Wire) + std::marker::Send + Sync>;

/// Longest line from the driving side: its job files.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// How long this side may take to end after the other one has gone; the engine's
/// own patience is 35 s.
const END_WAIT: Duration = Duration::from_secs(45);
/// How often the wait for the word looks at the requests to end.
const TICK: Duration = Duration::from_millis(20);
/// How often it is looked whether the other side is silent.
const SILENCE_LOOK: Duration = Duration::from_millis(250);

/// The line to the driving side.
pub struct DriverLine {
    control: Control,
    send: Send,
    jobs: Mutex<Receiver<Say>>,
    goes: Mutex<Receiver<f64>>,
    record: Mutex<Recorded>,
    /// Whether the other side has enough of what runs: another job may follow.
    enough: Arc<AtomicBool>,
}

/// What is known of the run's record.
#[derive(Debug, Default)]
struct Recorded {
    dir: Option<PathBuf>,
    /// How it was closed.
    status: Option<RunStatus>,
    /// Files that were given to the other side.
    given: BTreeSet<PathBuf>,
}

impl fmt::Debug for DriverLine {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Line").finish_non_exhaustive()
    }
}

impl DriverLine {
    /// Listens on `input`. Its end asks `control` to stop, and so does silence;
    /// when stopping takes too long after that, `kill` is called.
    pub fn open(
        input: impl Read + std::marker::Send + 'static,
        control: Control,
        send: Send,
        kill: impl Fn() + std::marker::Send + 'static,
    ) -> Result<Self, NoThread> {
        let (job_sender, jobs) = mpsc::channel();
        let (go_sender, goes) = mpsc::channel();
        let born = Instant::now();
        let heard_ms = Arc::new(AtomicU64::new(0));
        let answer = Arc::clone(&send);
        let (heard, stop) = (Arc::clone(&heard_ms), control.clone());
        let enough = Arc::new(AtomicBool::new(false));
        let has_enough = Arc::clone(&enough);
        threads::spawn("agent-input", move || {
            let mut input = BufReader::new(input);
            let mut line = Vec::new();
            loop {
                line.clear();
                let read = input
                    .by_ref()
                    .take(LINE_BYTES_MAX)
                    .read_until(b'\n', &mut line);
                if !matches!(read, Ok(1..)) {
                    break;
                }
                heard.store(ms(born.elapsed()), Ordering::Relaxed);
                match serde_json::from_slice(&line) {
                    Ok(Say::Clock { tag }) => answer(&Wire::Clock {
                        tag,
                        at_ms: now_ms(),
                    }),
                    Ok(say @ (Say::Job { .. } | Say::File { .. })) => {
                        forget(&has_enough, &stop);
                        drop(job_sender.send(say));
                    }
                    Ok(Say::Go { at_ms }) => drop(go_sender.send(at_ms)),
                    Ok(Say::Enough) => {
                        has_enough.store(true, Ordering::SeqCst);
                        stop.stop();
                    }
                    // Not understood is as good as gone.
                    Ok(Say::End) | Err(_) => break,
                }
            }
            stop.stop();
        })?;
        let stop = control.clone();
        threads::spawn("agent-silence", move || {
            let mut stopped: Option<Instant> = None;
            loop {
                thread::sleep(SILENCE_LOOK);
                let quiet = ms(born.elapsed()) - heard_ms.load(Ordering::Relaxed);
                if stopped.is_none() && quiet > ms(SILENCE) {
                    stop.stop();
                }
                if stop.stop_requests() == 0 {
                    stopped = None;
                    continue;
                }
                let since = *stopped.get_or_insert_with(Instant::now);
                // A write to a connection that is dead waits for ever.
                if since.elapsed() > END_WAIT {
                    kill();
                }
            }
        })?;
        Ok(Self {
            control,
            send,
            jobs: Mutex::new(jobs),
            goes: Mutex::new(goes),
            record: Mutex::default(),
            enough,
        })
    }

    /// The next file, or what is to run ([`Say::File`], [`Say::Job`]); `None` when
    /// the other side went away first.
    pub fn job(&self) -> Option<Say> {
        let job = self.wait(&self.jobs, &|| self.enough.load(Ordering::SeqCst))?;
        // A word that the job before did not wait for.
        let goes = self.goes.lock().unwrap_or_else(PoisonError::into_inner);
        goes.try_iter().for_each(drop);
        Some(job)
    }

    /// Ends the run: gives what is left of its record, and says how it has ended;
    /// `status` where nothing was recorded.
    pub fn end(&self, status: RunStatus) {
        let is_whole = self.give_files();
        let status = match is_whole {
            true => self.recorded().status.unwrap_or(status),
            false => RunStatus::Failed,
        };
        // Before another job can come.
        forget(&self.enough, &self.control);
        (self.send)(&Wire::Event {
            happened: Box::new(Event::Ended { status }),
        });
    }

    fn recorded(&self) -> MutexGuard<'_, Recorded> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the files of the record that were not given before: between steps
    /// none is being written. Events were given as they came. Whether it could.
    fn give_files(&self) -> bool {
        let mut recorded = self.recorded();
        let Some(dir) = recorded.dir.clone() else {
            return true;
        };
        let given = &recorded.given;
        let is_new = |name: &Path| {
            let is_log = fathom_record::is_log(name);
            let hidden = name.to_string_lossy().starts_with('.');
            !(is_log || hidden || given.contains(name))
        };
        let mut now = BTreeSet::new();
        let mut give = |path: String, text, more| {
            now.insert(PathBuf::from(&path));
            (self.send)(&Wire::File { path, text, more });
        };
        let done = read_files(&dir, &is_new, &mut give);
        recorded.given.append(&mut now);
        if let Err(error) = &done {
            let text = format!("its record cannot be read: {error}");
            (self.send)(&Wire::Text { text });
        }
        done.is_ok()
    }

    /// Says that a step could begin and waits until it may; whether it may.
    fn pass(&self, step: u32) -> bool {
        self.give_files();
        (self.send)(&Wire::Gate { step });
        let Some(at_ms) = self.wait(&self.goes, &|| false) else {
            return false;
        };
        loop {
            let left_ms = at_ms - now_ms();
            if left_ms <= 0.0 || self.control.stop_requests() > 0 {
                break;
            }
            // A sleep ends some tenths of a ms late. To look at the clock instead
            // would take its CPU from those that have to wake at this moment too.
            let left = Duration::from_secs_f64(left_ms / 1000.0);
            thread::sleep(left.min(TICK));
        }
        (self.send)(&Wire::Began { at_ms: now_ms() });
        self.control.stop_requests() == 0
    }

    /// Waits for something, until the run is to end; `goes_on`: that is no reason.
    fn wait<T>(&self, from: &Mutex<Receiver<T>>, goes_on: &dyn Fn() -> bool) -> Option<T> {
        let from = from.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match from.recv_timeout(TICK) {
                Ok(what) => return Some(what),
                Err(RecvTimeoutError::Timeout)
                    if self.control.stop_requests() == 0 || goes_on() => {}
                Err(_) => return None,
            }
        }
    }
}

impl StepBarrier for DriverLine {
    fn record(&self, dir: &Path) {
        if let Ok(entries) = Entries::open(dir) {
            let header = Box::new(entries.header);
            (self.send)(&Wire::Header { header });
        }
        *self.recorded() = Recorded {
            dir: Some(dir.to_owned()),
            ..Recorded::default()
        };
    }

    fn event(&self, event: &Event) {
        let happened = Box::new(event.clone());
        (self.send)(&Wire::Event { happened });
    }

    fn may_begin(&self, step: u32) -> bool {
        self.pass(step)
    }

    fn closed(&self, status: RunStatus) {
        self.recorded().status = Some(status);
    }
}

/// That the other side had enough of what has run says nothing of what follows.
fn forget(enough: &AtomicBool, control: &Control) {
    if enough.swap(false, Ordering::SeqCst) {
        control.begin_anew();
    }
}

fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A [`Send`] whose lines never mix.
pub fn one_at_a_time(send: impl FnMut(&Wire) + std::marker::Send + 'static) -> Send {
    let send = Mutex::new(send);
    Arc::new(move |wire| {
        // Poisoned by a panic while writing: the stream is broken anyway.
        if let Ok(mut send) = send.lock() {
            send(wire);
        }
    })
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // a test that gets no thread fails by panicking
mod tests {
    use super::*;
    use std::io::Write;

    fn line(input: std::io::PipeReader) -> (DriverLine, Control, Receiver<Wire>) {
        let (sender, told) = mpsc::channel();
        let send = one_at_a_time(move |wire: &Wire| drop(sender.send(wire.clone())));
        let control = Control::default();
        let line = DriverLine::open(input, control.clone(), send, || {}).unwrap();
        (line, control, told)
    }

    fn say(pipe: &mut impl Write, say: &Say) {
        writeln!(pipe, "{}", serde_json::to_string(say).unwrap()).unwrap();
    }

    #[test]
    fn a_step_waits_for_the_word_and_the_time_is_told_meanwhile() {
        let (input, mut pipe) = std::io::pipe().unwrap();
        let (line, _, told) = line(input);
        let waiting = thread::spawn(move || line.pass(3));
        assert_eq!(told.recv(), Ok(Wire::Gate { step: 3 }));
        say(&mut pipe, &Say::Clock { tag: 7 });
        assert!(matches!(told.recv(), Ok(Wire::Clock { tag: 7, at_ms }) if at_ms > 1e12));
        let at_ms = now_ms() + 30.0;
        say(&mut pipe, &Say::Go { at_ms });
        let began = told.recv().unwrap();
        assert!(
            matches!(began, Wire::Began { at_ms: began } if began >= at_ms),
            "{began:?}"
        );
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn enough_of_one_job_is_not_enough_of_the_next() {
        let (input, mut pipe) = std::io::pipe().unwrap();
        let (line, control, told) = line(input);
        let job = Say::Job {
            host: "m1".into(),
            args: Vec::new(),
            variables: std::collections::BTreeMap::new(),
            plan: serde_json::Value::Null,
        };
        say(&mut pipe, &job);
        assert_eq!(line.job(), Some(job.clone()));
        say(&mut pipe, &Say::Enough);
        assert!(!line.pass(1), "it ends while it waits");
        assert_eq!(told.recv(), Ok(Wire::Gate { step: 1 }));
        line.end(RunStatus::Interrupted);
        assert_eq!(control.stop_requests(), 0);
        // Said too late: the job has ended.
        say(&mut pipe, &Say::Enough);
        say(&mut pipe, &Say::Go { at_ms: 0.0 });
        say(&mut pipe, &job);
        assert_eq!(line.job(), Some(job));
        assert_eq!(control.stop_requests(), 0);
        let waiting = thread::spawn(move || line.pass(1));
        say(&mut pipe, &Say::Go { at_ms: now_ms() });
        assert!(waiting.join().unwrap());
    }

    #[test]
    fn the_end_of_the_line_ends_the_wait() {
        let (input, pipe) = std::io::pipe().unwrap();
        let (line, control, told) = line(input);
        let waiting = thread::spawn(move || line.pass(1));
        assert_eq!(told.recv(), Ok(Wire::Gate { step: 1 }));
        drop(pipe);
        assert!(!waiting.join().unwrap());
        assert_eq!(control.stop_requests(), 1);
    }
}
