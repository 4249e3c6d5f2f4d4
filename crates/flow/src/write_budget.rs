//! What a run has written while it goes on, against what it may write.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use fathom_device::{Sys, WriteCounter, threads};
use fathom_engine::{Control, Engine, Outcome, Request};
use fathom_fleet::local::Session;
use fathom_model::{Event, units};

use crate::budget::SpendLimits;
use crate::ledger::BytesWritten;

/// How often the kernel is asked while a step with a limit runs. All processes are
/// looked at where targets are files.
const LOOK: Duration = Duration::from_millis(20);
/// What is written in so long is kept back: an engine needs a moment to end, on a busy
/// machine a long one, and what is under way then is written too.
const REACTION: Duration = Duration::from_secs(1);
/// A rate is that of this time. Until then that of the step before counts, for this
/// time: that may have been a fill, and this be random.
const RATE_OVER: Duration = Duration::from_millis(100);
/// A difference below is no more than what file systems and partition tables write.
const NO_DIFFERENCE_BYTES: u64 = 1 << 20;

/// Counts what a run writes, and ends its steps in time.
pub struct WriteBudget {
    pub limits: SpendLimits,
    written: RefCell<BytesWritten>,
    /// `None` where nothing of this machine is written to.
    counter: Option<WriteCounter>,
    /// What the kernel has counted that the record knows.
    recorded: Cell<u64>,
    /// Bytes a second of the step before: a new one may be as fast from the start.
    rate: AtomicU64,
}

impl WriteBudget {
    /// For a run that has written `before` in earlier starts, and now writes to
    /// `targets` of this machine.
    pub fn new<'p>(
        mut before: BytesWritten,
        targets: impl IntoIterator<Item = &'p Path>,
        limits: SpendLimits,
    ) -> Self {
        before.begin_again();
        Self {
            limits,
            written: RefCell::new(before),
            counter: WriteCounter::of(&Sys::live(), targets),
            recorded: Cell::new(0),
            rate: AtomicU64::new(0),
        }
    }

    /// Takes the next event of the run, once it is recorded.
    pub fn take(&self, event: &Event) {
        let mut written = self.written.borrow_mut();
        if matches!(event, Event::Interval { .. }) {
            written.take(&self.counted());
        }
        written.take(event);
    }

    /// Bytes that all starts have written, by the greater of figures and kernel.
    pub fn bytes(&self) -> u64 {
        let mut written = self.written.borrow_mut();
        written.take(&self.counted());
        written.bytes()
    }

    /// What the ledger has of it.
    pub fn of_jobs(&self) -> u64 {
        self.written.borrow().of_jobs()
    }

    /// Whether the limit leaves no room for something that writes so many bytes, or,
    /// where nobody knows, `least` and perhaps as many as the last interval had.
    pub fn has_no_room(&self, writes: Option<u64>, least: impl FnOnce() -> u64) -> bool {
        let spent = self.bytes();
        let may_be = || match least() {
            0 => 0,
            least => least.max(self.written.borrow().in_interval()),
        };
        self.limits.is_over(spent, writes.unwrap_or_else(may_be))
    }

    fn counted_bytes(&self) -> u64 {
        self.counter.as_ref().map_or(0, WriteCounter::bytes)
    }

    fn counted(&self) -> Event {
        let written_bytes = self.counted_bytes();
        Event::KernelCounted { written_bytes }
    }

    /// Runs a step; gives whether it was ended because no more may be written. One
    /// whose bytes are known was asked for room before: nothing is kept back of it.
    pub fn run(
        &self,
        is_sized: bool,
        session: &mut Session<'_>,
        engine: &dyn Engine,
        request: &Request,
        control: &Control,
        watch: &mut dyn FnMut(&Event) -> ControlFlow<()>,
    ) -> (Outcome, bool) {
        let control = control.of_step();
        let spent = AtomicBool::new(false);
        let mut watch = |event: &Event| {
            // Samples of an interval are recorded as a whole.
            let ends = matches!(event, Event::Interval { .. });
            if ends && !is_sized && self.next_is_too_much() {
                spent.store(true, Ordering::Relaxed);
            }
            match spent.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => watch(event),
            }
        };
        let reaction = if is_sized { Duration::ZERO } else { REACTION };
        let outcome = self.watched(&spent, reaction, &control, &mut || {
            session.run(engine, request, &control, &mut watch)
        });
        self.record(session);
        let spent = spent.load(Ordering::Relaxed) && outcome == Outcome::Interrupted;
        (outcome, spent)
    }

    /// Whether another interval like the last one would pass the limit.
    fn next_is_too_much(&self) -> bool {
        let written = self.written.borrow();
        let next = written.bytes().saturating_add(written.in_interval());
        self.limits.is_spent(next)
    }

    /// Does `step` while the kernel's count is looked at, where there is one and a
    /// limit: not every engine tells of all that it writes, nor as often.
    fn watched(
        &self,
        spent: &AtomicBool,
        reaction: Duration,
        control: &Control,
        step: &mut dyn FnMut() -> Outcome,
    ) -> Outcome {
        let (Some(counter), Some(limit)) = (&self.counter, self.limits.bytes) else {
            return step();
        };
        let rate = &self.rate;
        let counted = counter.bytes();
        let left = limit.saturating_sub(self.bytes());
        let (ends, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let look = move || {
                if looks_until_spent(
                    counter,
                    (rate, reaction),
                    counted.saturating_add(left),
                    &ended,
                ) {
                    spent.store(true, Ordering::Relaxed);
                    control.end_step();
                }
            };
            // Without it the intervals alone end the step.
            let _ = threads::spawn_scoped(scope, "write-budget", look);
            let outcome = step();
            drop(ends);
            outcome
        })
    }

    /// Does something else than I/O of jobs, and puts into the record what the kernel
    /// counts in it.
    pub fn beside<T>(
        &self,
        session: &mut Session<'_>,
        act: impl FnOnce(&mut Session<'_>) -> T,
    ) -> T {
        use fathom_engine::Sink as _;
        let before = self.counted_bytes();
        let done = act(session);
        let bytes = self.counted_bytes().saturating_sub(before);
        if bytes > 0 {
            let _ = session.event(Event::WrittenBeside { bytes });
        }
        done
    }

    /// That the kernel has counted more for the devices than Fathom knows of.
    pub fn difference(&self) -> Option<String> {
        let counter = self.counter.as_ref()?;
        let (devices, kernel) = (counter.devices(), counter.bytes());
        let figures = self.written.borrow().figures();
        let more = kernel.saturating_sub(figures);
        let names: Vec<String> = devices.iter().map(|it| it.display().to_string()).collect();
        (!names.is_empty() && more > NO_DIFFERENCE_BYTES.max(figures / 100)).then(|| {
            format!(
                "the kernel counted {} written to {}, {} more than the figures of this run: ramp \
                 time is in none of them, nor is what other programs wrote",
                units::bytes(kernel as f64),
                names.join(" and "),
                units::bytes(more as f64),
            )
        })
    }

    /// Puts into the record what the kernel has counted so far: of a run that is
    /// killed later, that is all that remains of it.
    fn record(&self, session: &mut Session<'_>) {
        use fathom_engine::Sink as _;
        let written_bytes = self.counted_bytes();
        if written_bytes > self.recorded.replace(written_bytes) {
            let _ = session.event(Event::KernelCounted { written_bytes });
        }
    }
}

/// Looks until the step has ended; true: the count comes near `most`.
fn looks_until_spent(
    counter: &WriteCounter,
    (known_rate, reaction): (&AtomicU64, Duration),
    most: u64,
    ended: &mpsc::Receiver<()>,
) -> bool {
    let mut begin = (Instant::now(), counter.bytes());
    let written_in = |rate: u64, time: Duration| (rate as f64 * time.as_secs_f64()) as u64;
    let mut kept_back = written_in(known_rate.load(Ordering::Relaxed), reaction.min(RATE_OVER));
    while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
        let bytes = counter.bytes();
        let since = begin.0.elapsed();
        if since >= RATE_OVER {
            let moved = bytes.saturating_sub(begin.1) as f64;
            let rate = (moved / since.as_secs_f64()) as u64;
            known_rate.store(rate, Ordering::Relaxed);
            kept_back = written_in(rate, reaction);
            begin = (Instant::now(), bytes);
        }
        if bytes.saturating_add(kept_back) >= most {
            return true;
        }
    }
    false
}
