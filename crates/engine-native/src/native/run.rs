//! One run: files, threads, samples, results. The only part that waits for
//! anything but I/O, and every wait has an end.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use fathom_device::threads::NoThread;
use fathom_model::{Event, Failure, FailureKind};

use super::clock::TickClock;
use super::disks::Disks;
use super::files::{self, FileLayout, FilePlace, FilePlan};
use super::floor::RateFloor;
use super::job::{ExitWhat, IoEngine};
use super::logs::LogWriter;
use super::members::{Member, ReportUnit, units};
use super::results::{self, BatchShares, ResultSources, measured_ns};
use super::sampler::Sampler;
use super::scheduler::Schedulers;
use super::stats::WorkerPhase;
use super::steady::WatchedUnit;
use super::thread::{self, StartGate, WorkerReport};
use super::usage::Usage;
use fathom_engine::checked::PathChanged;
use fathom_engine::{Control, Outcome, Request, Sink, layout};

/// How often the run looks for a stop or a status request.
const LOOK: Duration = Duration::from_millis(20);
/// How long workers may take to finish what is under way after a stop; the
/// kernel gives up on a SCSI command after 30 s by default (drivers/scsi/sd.h,
/// SD_TIMEOUT), but whoever presses Ctrl-C does not want to wait for that.
const GRACE: Duration = Duration::from_secs(5);
/// The same where no I/O is under way: then a worker waits for a processor, and no device
/// is to blame. Below the time after which the engine's process is left behind.
const GRACE_WITHOUT_IO: Duration = Duration::from_secs(25);
/// An I/O older than this is named: no healthy device needs as long.
const STUCK: Duration = Duration::from_secs(10);

/// Where a member stands for the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemberState {
    Waiting,
    Running,
    Over,
}

pub(super) struct NativeRun<'a> {
    request: &'a Request,
    control: &'a Control,
    sink: &'a mut dyn Sink,
    clock: TickClock,
    members: Vec<Member>,
    units: Vec<ReportUnit>,
    states: Vec<MemberState>,
    usage: Vec<Option<Usage>>,
    errors: Vec<i32>,
    steady: Vec<Option<WatchedUnit>>,
    sampler: Sampler,
    disks: Disks,
    begun: Instant,
    stopped_at: Option<Instant>,
    /// The sink or the user wants an end.
    interrupted: bool,
    failed: bool,
    tell: Sender<(usize, WorkerReport)>,
    told: Receiver<(usize, WorkerReport)>,
    next_sample: Instant,
    named_stuck: Option<Instant>,
    noted: BTreeSet<String>,
    logs: LogWriter,
    schedulers: Schedulers,
    floors: Vec<RateFloor>,
    /// How members failed that were told to end for it.
    broken: Vec<Option<Failure>>,
}

impl<'a> NativeRun<'a> {
    pub(super) fn new(
        request: &'a Request,
        control: &'a Control,
        sink: &'a mut dyn Sink,
        clock: TickClock,
        members: Vec<Member>,
        begun: Instant,
    ) -> Self {
        let units = units(&members);
        let (tell, told) = channel();
        let count = members.len();
        let disks = Disks::under(std::iter::empty());
        Self {
            sampler: Sampler::new(units.len()),
            states: vec![MemberState::Waiting; count],
            usage: vec![None; count],
            errors: vec![0; count],
            steady: units
                .iter()
                .map(|unit| WatchedUnit::of(unit, &members))
                .collect(),
            stopped_at: None,
            interrupted: false,
            failed: false,
            next_sample: begun + request.interval,
            named_stuck: None,
            noted: BTreeSet::new(),
            logs: LogWriter::default(),
            schedulers: Schedulers::default(),
            floors: vec![RateFloor::default(); count],
            broken: vec![None; count],
            request,
            control,
            sink,
            clock,
            members,
            units,
            disks,
            begun,
            tell,
            told,
        }
    }

    /// Runs everything; how it ended, and the batches of each unit.
    pub(super) fn go(mut self, place: &FilePlace) -> (Outcome, Vec<BatchShares>) {
        let names = self.units.iter().map(|unit| unit.name.clone()).collect();
        let hosts = Vec::new();
        self.emit(Event::Jobs { names, hosts });
        let opened = self.open_logs(place);
        if let Err(failure) = opened.and_then(|()| self.schedulers.set(&self.members)) {
            self.fail(failure);
            self.end_all();
        }
        self.lay_out();
        let paths: Vec<PathBuf> = self.file_plans().map(|file| file.path.clone()).collect();
        self.disks = Disks::under(paths.iter().map(PathBuf::as_path));
        self.next_sample = Instant::now() + self.request.interval;
        while self.states.iter().any(|&state| state != MemberState::Over) {
            self.start_ready();
            self.wait();
            self.watch();
            if self.given_up() {
                break;
            }
        }
        self.sample();
        self.drain_logs(true);
        let waits = self.logs.waits();
        if waits > 0 {
            let text = format!(
                "workers waited {waits} times for their logs to be written: the rates are too low"
            );
            self.emit(Event::Note { text });
        }
        let results = Box::new(self.results());
        self.emit(Event::Finished { results });
        self.remove_files();
        let outcome = if self.interrupted {
            Outcome::Interrupted
        } else if self.failed {
            Outcome::Failed
        } else {
            Outcome::Complete
        };
        (outcome, results::batches(&self.members, &self.units))
    }

    fn emit(&mut self, event: Event) {
        if self.sink.event(event).is_break() {
            self.interrupted = true;
            self.end_all();
        }
    }

    fn fail(&mut self, failure: Failure) {
        self.failed = true;
        self.emit(Event::Failure(failure));
    }

    fn end_all(&mut self) {
        for member in &self.members {
            member.stop.store(true, Relaxed);
        }
        self.stopped_at.get_or_insert_with(Instant::now);
    }

    fn file_plans(&self) -> impl Iterator<Item = &FilePlan> {
        self.members
            .iter()
            .filter_map(|member| member.plan.as_ref().ok())
            .flat_map(|plan| &plan.files)
    }

    /// Makes the files of all jobs first, as fio does; members that share one
    /// get the largest that any of them needs.
    fn lay_out(&mut self) {
        let mut wanted: BTreeMap<PathBuf, (usize, FilePlan)> = BTreeMap::new();
        for (place, member) in self.members.iter().enumerate() {
            let Ok(plan) = &member.plan else { continue };
            for file in plan
                .files
                .iter()
                .filter(|file| file.layout != FileLayout::Nothing)
            {
                let known = wanted
                    .entry(file.path.clone())
                    .or_insert_with(|| (place, file.clone()));
                let end = (known.1.start + known.1.len).max(file.start + file.len);
                known.1.start = 0;
                known.1.len = end;
                if file.layout == FileLayout::Data {
                    known.1.layout = FileLayout::Data;
                }
            }
        }
        let size = |file: &FilePlan| match file.layout {
            FileLayout::Data => file.len,
            _ => 0,
        };
        let sizes = wanted.values().map(|(_, file)| size(file));
        let of_bytes = sizes.fold(0, u64::saturating_add);
        let mut before = 0;
        for (place, file) in wanted.into_values() {
            if file.layout == FileLayout::Data {
                let size = fathom_model::units::bytes(file.len as f64);
                let what = format!("laying out {} ({size})", file.path.display());
                self.emit(Event::Preparing { what });
            }
            let job = Arc::clone(&self.members[place].job);
            let control = self.control;
            let interrupted = self.interrupted;
            let told = LayoutTold::new(before, size(&file), self.request.interval);
            let sink = RefCell::new(&mut *self.sink);
            let stopped = || {
                if let Some(done_bytes) = told.block() {
                    let event = Event::LayingOut {
                        done_bytes,
                        of_bytes,
                    };
                    // A full sink stops the run at the next event that it does not take.
                    let _ = sink.borrow_mut().event(event);
                }
                control.stop_requests() > 0 || interrupted
            };
            let laid_out = files::lay_out(&job, &file, &stopped);
            before += size(&file);
            if let Err(failure) = laid_out {
                // Every member that uses the file fails with it, each in its turn.
                for member in &mut self.members {
                    let uses = member
                        .plan
                        .as_ref()
                        .is_ok_and(|plan| plan.files.iter().any(|f| f.path == file.path));
                    if uses {
                        member.plan = Err(failure.clone());
                    }
                }
            }
        }
    }

    /// Starts every member that need not wait any longer, together.
    fn start_ready(&mut self) {
        if self.stopped_at.is_some() {
            for state in &mut self.states {
                if *state == MemberState::Waiting {
                    *state = MemberState::Over;
                }
            }
            return;
        }
        let ready: Vec<usize> = (0..self.members.len())
            .filter(|&place| self.may_start(place))
            .collect();
        if ready.is_empty() {
            return;
        }
        let gate = Arc::new(StartGate::default());
        let mut setting_up = 0;
        for place in ready {
            let plan = self.members[place].plan.clone();
            match plan {
                Err(failure) => self.over(place, Some(failure), Usage::default()),
                Ok(_) if self.members[place].job.files.create_only => {
                    self.over(place, None, Usage::default());
                }
                Ok(plan) => {
                    let start = thread::start_of(
                        place,
                        &self.members,
                        &plan,
                        self.clock,
                        &gate,
                        self.tell.clone(),
                    );
                    match thread::spawn(start) {
                        Ok(_) => {
                            self.states[place] = MemberState::Running;
                            setting_up += 1;
                        }
                        Err(error) => {
                            let failure = Failure::from(NoThread::new(&error));
                            self.over(place, Some(failure), Usage::default());
                        }
                    }
                }
            }
        }
        self.await_ready(setting_up);
        gate.open();
        self.end_burners();
    }

    /// exit_on_io_done: what only keeps processors busy ends when all jobs are over that
    /// do I/O, if there were some (backend.c, fio_running_or_pending_io_threads).
    fn end_burners(&self) {
        let burns = |member: &Member| member.job.engine == IoEngine::Cpuio;
        let mut others = self.members.iter().zip(&self.states);
        let mut with_io = others
            .by_ref()
            .filter(|(member, _)| !burns(member))
            .peekable();
        if with_io.peek().is_none() || !with_io.all(|(_, state)| *state == MemberState::Over) {
            return;
        }
        for member in self.members.iter().filter(|member| burns(member)) {
            if member.job.burn.ends_with_io {
                member.stop.store(true, Relaxed);
            }
        }
    }

    /// Waits until the new workers are set up or have failed to.
    fn await_ready(&mut self, mut setting_up: usize) {
        let since = Instant::now();
        while setting_up > 0 {
            match self.told.recv_timeout(LOOK) {
                Ok((_, WorkerReport::Ready)) => setting_up -= 1,
                Ok((_, WorkerReport::Note(text))) => self.note(text),
                Ok((place, WorkerReport::Ended { failure, usage })) => {
                    // A member of an earlier batch may end meanwhile: it was measuring already.
                    if self.members[place].stats.phase() == WorkerPhase::Setup {
                        setting_up -= 1;
                    }
                    self.over(place, failure, usage);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.watch();
                    if self.stopped_at.is_some() && since.elapsed() > GRACE {
                        return;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }

    fn may_start(&self, place: usize) -> bool {
        let member = &self.members[place];
        let waits_for = |other: usize| {
            let name = &self.members[other].job.name;
            other < member.after || member.job.order.wait_for.as_ref() == Some(name)
        };
        self.states[place] == MemberState::Waiting
            && (0..self.members.len())
                .filter(|&other| other != place && self.members[other].section != member.section)
                .all(|other| !waits_for(other) || self.states[other] == MemberState::Over)
    }

    /// Notes that a member is over.
    fn over(&mut self, place: usize, failure: Option<Failure>, usage: Usage) {
        self.states[place] = MemberState::Over;
        self.usage[place] = Some(usage);
        let member = &self.members[place];
        member.stats.set_phase(WorkerPhase::Done);
        let failure = failure.or(self.broken[place].take());
        let order = &member.job.order;
        // exitall of any job is about all (options.c, str_exitall_cb).
        let exits = self.members.iter().any(|member| member.job.order.exit_all)
            || (order.exit_all_on_error && failure.is_some());
        if let Some(failure) = failure {
            self.errors[place] = failure.errno.unwrap_or(libc::EINVAL);
            let failure = match failure.subject {
                Some(_) => failure,
                None => failure.about(format!("job {}", member.job.name)),
            };
            self.fail(failure);
        } else {
            let errors = member.stats.errors.load(Relaxed);
            if errors > 0 {
                let first =
                    std::io::Error::from_raw_os_error(member.stats.first_error.load(Relaxed));
                let text = format!(
                    "job {}: went on after {errors} failed I/Os, first: {first}",
                    member.job.name
                );
                self.emit(Event::Note { text });
            }
        }
        if exits {
            self.exit(place);
        }
        self.end_burners();
    }

    /// exitall: ends the jobs that a member takes with it (backend.c,
    /// fio_terminate_threads).
    fn exit(&mut self, place: usize) {
        let (what, group) = (
            self.members[place].job.order.exit_what,
            self.members[place].group,
        );
        if what == ExitWhat::All {
            return self.end_all();
        }
        for (member, state) in self.members.iter().zip(&self.states) {
            let ends = match what {
                ExitWhat::Stonewall => *state == MemberState::Running,
                _ => member.group == group,
            };
            if ends {
                member.stop.store(true, Relaxed);
            }
        }
    }

    /// Ends members that fall below their least rates.
    fn look_at_floors(&mut self) {
        for (place, member) in self.members.iter().enumerate() {
            if self.states[place] == MemberState::Running
                && self.broken[place].is_none()
                && let Some(failure) = self.floors[place].look(member, &self.clock)
            {
                self.broken[place] = Some(failure);
                member.stop.store(true, Relaxed);
            }
        }
    }

    /// Waits for news of a worker, a short while at most.
    fn wait(&mut self) {
        let until_sample = self.next_sample.saturating_duration_since(Instant::now());
        match self.told.recv_timeout(LOOK.min(until_sample)) {
            Ok((place, WorkerReport::Ended { failure, usage })) => {
                self.over(place, failure, usage);
            }
            Ok((_, WorkerReport::Note(text))) => self.note(text),
            _ => {}
        }
    }

    /// Clones tell the same.
    fn note(&mut self, text: String) {
        if self.noted.insert(text.clone()) {
            self.emit(Event::Note { text });
        }
    }

    fn open_logs(&mut self, place: &FilePlace) -> Result<(), Failure> {
        let opened = LogWriter::new(&self.members, place);
        self.logs =
            opened.map_err(|(path, error)| log_failure(&path.display().to_string(), &error))?;
        Ok(())
    }

    fn drain_logs(&mut self, end: bool) {
        if let Err(error) = self.logs.drain(&self.members, &self.clock, end) {
            self.logs = LogWriter::default();
            self.fail(log_failure("the job's logs", &error));
            self.end_all();
        }
    }

    /// What must happen in time: logs, stops, statuses, samples.
    fn watch(&mut self) {
        self.drain_logs(false);
        if self.control.stop_requests() > 0 && !self.interrupted {
            self.interrupted = true;
            self.end_all();
        }
        if let Some(deadline) = self.request.deadline
            && self.begun.elapsed() > deadline
            && self.stopped_at.is_none()
        {
            let limit = deadline.as_secs_f64();
            let message = format!("the time limit of {limit} s was reached");
            self.fail(Failure::new(FailureKind::TimeLimit, message));
            self.end_all();
        }
        self.end_steady();
        self.look_at_floors();
        while self.control.take_status_request() {
            let results = Box::new(self.results());
            self.emit(Event::Status { results });
        }
        if Instant::now() >= self.next_sample {
            self.sample();
            // A late sampler does not make up for the intervals it missed.
            while self.next_sample <= Instant::now() {
                self.next_sample += self.request.interval.max(LOOK);
            }
            self.name_stuck();
        }
    }

    /// Ends the units that have become steady by fio's rule.
    fn end_steady(&mut self) {
        for (unit, watched) in self.units.iter().zip(&mut self.steady) {
            if let Some(watched) = watched
                && watched.look(unit, &self.members, &self.clock)
            {
                for &member in &unit.members {
                    self.members[member].stop.store(true, Relaxed);
                }
            }
        }
    }

    fn sample(&mut self) {
        let elapsed = self.begun.elapsed();
        for sample in self
            .sampler
            .take(&self.members, &self.units, &self.clock, elapsed)
        {
            self.emit(Event::Sample(sample));
        }
        let t_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let remaining_ms = self.remaining_ms();
        self.emit(Event::Interval { t_ms, remaining_ms });
    }

    /// The time the running and waiting jobs still need, where their runtimes or
    /// the bytes done so far tell.
    fn remaining_ms(&self) -> Option<u64> {
        let mut longest = 0;
        for (member, state) in self.members.iter().zip(&self.states) {
            if *state == MemberState::Over {
                continue;
            }
            let times = &member.job.times;
            let done_ns = measured_ns(member, &self.clock);
            let by_time = times.runtime.map(|runtime| {
                let ramp = if done_ns == 0 {
                    times.ramp
                } else {
                    Duration::ZERO
                };
                (runtime + ramp).as_millis() as u64
            });
            let by_bytes = member.plan.as_ref().ok().and_then(|plan| {
                let issued = member.stats.issued_bytes.load(Relaxed);
                let left = plan.total_bytes.saturating_sub(issued) as f64;
                (issued > 0 && done_ns > 0 && !times.time_based && plan.has_end())
                    .then(|| (left / issued as f64 * done_ns as f64 / 1e6) as u64)
            });
            let left = match (
                by_time.map(|all| all.saturating_sub(done_ns / 1_000_000)),
                by_bytes,
            ) {
                (Some(time), Some(bytes)) => time.min(bytes),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => return None,
            };
            longest = longest.max(left);
        }
        Some(longest)
    }

    fn results(&self) -> fathom_model::Results {
        results::results(&ResultSources {
            members: &self.members,
            units: &self.units,
            usage: &self.usage,
            intervals: &self.sampler.intervals,
            errors: &self.errors,
            clock: &self.clock,
            disks: self.disks.since(),
            steady: &self.steady,
        })
    }

    /// The oldest I/Os under way that are older than `age`, and how many there are.
    fn stuck(&self, age: Duration) -> Option<(usize, String)> {
        let now = self.clock.now();
        let mut count = 0;
        let mut oldest: Option<(u64, String)> = None;
        for (member, state) in self.members.iter().zip(&self.states) {
            if *state != MemberState::Running {
                continue;
            }
            for cell in &member.stats.slots {
                let Some(op) = cell.op() else { continue };
                let under = cell.get();
                // Of a call that does not return the first stands there, too.
                let since = under.issued.max(under.intended);
                let waited = self.clock.ns(now.saturating_sub(since));
                if Duration::from_nanos(waited) < age {
                    continue;
                }
                count += 1;
                if oldest.as_ref().is_none_or(|(most, _)| waited > *most) {
                    let file = under.file as usize;
                    let path = member
                        .plan
                        .as_ref()
                        .ok()
                        .and_then(|plan| plan.files.get(file));
                    let text = format!(
                        "job {}: {} of {} bytes at offset {} of {} for {:.1} s",
                        member.job.name,
                        op.name(),
                        under.len,
                        under.offset,
                        path.map_or_else(String::new, |file| file.path.display().to_string()),
                        waited as f64 / 1e9,
                    );
                    oldest = Some((waited, text));
                }
            }
        }
        oldest.map(|(_, text)| (count, text))
    }

    /// Says once in a while which I/Os do not come back.
    fn name_stuck(&mut self) {
        if self.named_stuck.is_some_and(|at| at.elapsed() < STUCK) {
            return;
        }
        if let Some((count, oldest)) = self.stuck(STUCK) {
            self.named_stuck = Some(Instant::now());
            let text = format!(
                "{count} I/Os wait for longer than {} s, the oldest: {oldest}",
                STUCK.as_secs()
            );
            self.emit(Event::Note { text });
        }
    }

    /// Whether workers that were told to end do not, or need not be waited for.
    fn given_up(&mut self) -> bool {
        let Some(at) = self.stopped_at else {
            return false;
        };
        let running = self.states.contains(&MemberState::Running);
        let is_urgent = self.control.stop_requests() > 1;
        let patience = if is_urgent {
            Duration::from_secs(1)
        } else {
            GRACE
        };
        if !running || at.elapsed() < patience {
            return false;
        }
        let (stuck, command) = (self.stuck(Duration::ZERO), self.in_command());
        let is_idle = stuck.is_none() && command.is_none();
        if is_idle && !is_urgent && at.elapsed() < GRACE_WITHOUT_IO {
            return false;
        }
        let hung = |message: String| Failure::new(FailureKind::Hung, message);
        let failure = match (stuck, command) {
            (Some((count, oldest)), _) => hung(format!(
                "{count} I/Os did not come back, the oldest: {oldest}"
            )),
            (None, Some(job)) => hung(format!(
                "exec_postrun of job {job} did not end, and was killed"
            ))
            .to_do("have it end within 5 s of a stop, or run it behind Fathom"),
            (None, None) => hung("a worker did not end when told to".to_owned()),
        };
        self.fail(failure);
        true
    }

    /// A job of which only the command is left that follows it.
    fn in_command(&self) -> Option<&str> {
        let mut all = self.members.iter().zip(&self.states);
        let found = all.find(|(member, state)| {
            let over = member.stats.phase() == WorkerPhase::Done;
            **state == MemberState::Running && over && member.job.order.after.is_some()
        });
        found.map(|(member, _)| member.job.name.as_str())
    }

    /// unlink=1.
    fn remove_files(&self) {
        for member in self.members.iter().filter(|member| member.job.files.unlink) {
            let Ok(plan) = &member.plan else { continue };
            for file in plan.files.iter().filter(|file| !file.is_device) {
                let _ = file.checked.remove(&file.path);
            }
        }
    }
}

fn log_failure(subject: &str, error: &std::io::Error) -> Failure {
    let kind = match error.raw_os_error() {
        _ if PathChanged::is(error) => FailureKind::Refused,
        Some(libc::ENOSPC | libc::EDQUOT) => FailureKind::NoSpace,
        _ => FailureKind::Open,
    };
    Failure::new(kind, format!("the log cannot be written: {error}")).about(subject)
}
/// Counts what is laid out of a file, and says once an interval how far all of it is.
struct LayoutTold {
    before: u64,
    len: u64,
    interval: Duration,
    blocks: Cell<u64>,
    last: Cell<Instant>,
}

impl LayoutTold {
    fn new(before: u64, len: u64, interval: Duration) -> Self {
        Self {
            before,
            len,
            interval,
            blocks: Cell::new(0),
            last: Cell::new(Instant::now()),
        }
    }

    /// Another block is about to be written; the bytes so far, when they are to be told.
    fn block(&self) -> Option<u64> {
        let blocks = self.blocks.replace(self.blocks.get() + 1);
        if self.last.get().elapsed() < self.interval {
            return None;
        }
        self.last.set(Instant::now());
        let done = blocks.saturating_mul(layout::BLOCK as u64);
        Some(self.before + done.min(self.len))
    }
}
