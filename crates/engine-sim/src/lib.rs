//! The simulation: jobs on a device that does not exist, with a clock of its own.
//!
//! It measures nothing. It is there to see what a campaign does with devices
//! that get worse, never settle, fail, stall or vanish, in milliseconds instead
//! of hours and the same each time. Never chosen by `auto`, and named in every
//! record and on every screen. It reads rw, rwmixread, bs, iodepth, numjobs,
//! size, runtime, ramp_time and rate_iops of a job and passes over everything
//! else; all jobs of a file run side by side, and no file or device is touched.
//! Under a rate latencies count from the intended start.

#![forbid(unsafe_code)]

mod device;
mod life;
mod rate;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fathom_jobfile::spec;
use fathom_model::value::Amount;
use fathom_model::{
    Direction, DirectionResult, Event, Failure, FailureKind, Histogram, JobResult, JobSpec,
    Latency, Results, Sample,
};

pub use device::{Fail, SettlingRate, SimDevice, Stall, Swing};
use life::{Life, StateReplay};
use rate::OfferedRate;

use fathom_engine::requested::{bad, jobs};
use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink};

/// Behind the name of every run on a simulated device, wherever it is listed.
pub const SIMULATED: &str = " (simulated)";
/// What results name as the engine's version.
pub const VERSION: &str = "sim-1";
/// How long a device may be silent behind the end of its jobs before they count
/// as hung: as long as the native engine waits for its workers.
const GRACE: Duration = Duration::from_secs(5);
/// Shape of the latencies of an interval: factors of the mean and their shares
/// in percent, whose mean is 1.
const SHAPE: [(f64, u64); 4] = [(0.7, 50), (1.0, 39), (2.0, 10), (6.0, 1)];

/// The simulation of one device, whose life goes on from run to run.
#[derive(Debug)]
pub struct Sim {
    device: SimDevice,
    life: Mutex<Life>,
}

impl Sim {
    /// A new device of this kind.
    pub fn new(device: SimDevice) -> Self {
        let life = Mutex::new(Life::new());
        Self { device, life }
    }

    /// Size of the device in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.device.capacity_bytes()
    }

    /// Takes all data away: the device is as new, and no younger.
    pub fn purge(&self) {
        let mut life = self.life();
        life.purged = life.now;
    }

    /// Takes up its life where the record with these events has left it, so that a run
    /// that goes on meets the device that it would have met. What was cut short is done
    /// anew and has not happened.
    ///
    /// # Errors
    /// The first event that cannot be read.
    pub fn restore<E>(&self, events: impl IntoIterator<Item = Result<Event, E>>) -> Result<(), E> {
        let mut so_far = StateReplay::new();
        for event in events {
            so_far.take(&self.device, &event?);
        }
        *self.life() = so_far.life();
        Ok(())
    }

    /// A new device as a file describes it; without one a healthy device.
    ///
    /// # Errors
    /// A sentence that names the file and what is wrong with it.
    pub fn read(path: Option<&Path>) -> Result<Self, String> {
        let device = path.map_or_else(|| Ok(SimDevice::default()), SimDevice::read)?;
        Ok(Self::new(device))
    }

    /// Whether the jobs have what the simulation needs.
    ///
    /// # Errors
    /// A sentence for each job that has not.
    pub fn runs(specs: &[JobSpec]) -> Result<(), Vec<String>> {
        let reasons: Vec<String> = specs
            .iter()
            .filter_map(|s| JobLoad::of(s, 1).err())
            .collect();
        if reasons.is_empty() {
            Ok(())
        } else {
            Err(reasons)
        }
    }

    fn life(&self) -> MutexGuard<'_, Life> {
        // A number and a factor are whole whenever the lock is free.
        self.life.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets real time pass, at its pace.
    fn sleep(&self, time: Duration) {
        let real = self.device.pace_ms / 1000.0 * time.as_secs_f64();
        if real > 0.0 {
            std::thread::sleep(Duration::from_secs_f64(real));
        }
    }

    /// Lets it work for a time in a run that began at `began`.
    fn live_on(&self, time: Duration, began: Duration) -> Life {
        self.sleep(time);
        let mut life = self.life();
        let ran_ms = |now: Duration| now.saturating_sub(began).as_millis() as u64;
        let times = [ran_ms(life.now), ran_ms(life.now + time)];
        life.now += time;
        life.wander(&self.device, began, times);
        *life
    }
}

impl Engine for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn now(&self) -> Duration {
        self.life().now
    }

    fn pass(&self, time: Duration) {
        self.sleep(time);
        self.life().now += time;
    }

    fn run(
        &self,
        request: &Request,
        control: &Control,
        sink: &mut dyn Sink,
    ) -> Result<Outcome, EngineError> {
        let specs = jobs(request, self.name())?;
        let loads: Result<Vec<JobLoad>, String> = specs
            .iter()
            .map(|spec| JobLoad::of(spec, self.capacity_bytes()))
            .collect();
        let loads = loads.map_err(bad)?;
        let mut run = SimRun {
            sim: self,
            control,
            sink,
            interval: request.interval,
            loads,
            begun: self.now(),
            deadline: request.deadline,
            interrupted: false,
        };
        run.emit(Event::EngineStarted {
            engine: self.name().to_owned(),
            version: Some(VERSION.to_owned()),
            argv: Vec::new(),
            pid: None,
        });
        Ok(run.go())
    }
}

/// What a job asks of the device, and what it got.
#[derive(Debug)]
struct JobLoad {
    name: String,
    options: BTreeMap<String, String>,
    /// Share of the reads among its I/Os.
    reads: f64,
    block_bytes: f64,
    in_flight: u64,
    /// How many begin, where that is set.
    offered: Option<OfferedRate>,
    runtime: Option<Duration>,
    ramp: Duration,
    /// All that it moves, where that ends it.
    size_bytes: Option<f64>,
    done: [SimulatedWork; 2],
    moved_bytes: f64,
    /// How long its I/Os have been waiting for a silent device.
    waited: Duration,
}

/// What a job did in one direction.
#[derive(Debug, Default)]
struct SimulatedWork {
    ios: u64,
    clat: Histogram,
    /// Of an I/O that has only begun: rates are no whole numbers.
    rest: f64,
}

/// I/Os that a silent device has kept waiting, and their latency.
#[derive(Debug, Clone, Copy)]
struct Late {
    ios: u64,
    ns: f64,
}

impl Late {
    /// Those of a direction that has this share.
    fn share(self, share: f64) -> Self {
        Self {
            ios: (self.ios as f64 * share).ceil() as u64,
            ..self
        }
    }
}

const DIRECTIONS: [Direction; 2] = [Direction::Read, Direction::Write];

impl JobLoad {
    fn of(spec: &JobSpec, capacity_bytes: u64) -> Result<Self, String> {
        let wrong = |what: &str| format!("job {}: the simulation {what}", spec.name);
        let rw = spec::rw(spec).ok_or_else(|| wrong("does not understand its rw"))?;
        let blocks = spec::bs(spec).ok_or_else(|| wrong("knows one block size only"))?;
        let mix = spec::number(spec, "rwmixread").unwrap_or(50).min(100) as f64 / 100.0;
        let clones = spec::numjobs(spec).max(1);
        let offered = OfferedRate::of(spec, &rw, clones).map_err(|what| wrong(&what))?;
        let reads = match (rw.reads, rw.writes) {
            (true, true) => offered.as_ref().map_or(mix, |rate| rate.reads),
            (true, false) => 1.0,
            (false, true) => 0.0,
            (false, false) => return Err(wrong("knows reads and writes only")),
        };
        let time_based = spec::time_based(spec);
        let runtime = spec::runtime(spec);
        let bytes_of = |size, whole: u64| match size {
            Amount::Percent(percent) => Some(whole * u64::from(percent) / 100),
            size => size.number(),
        };
        let size = spec::size(spec).and_then(|size| bytes_of(size, capacity_bytes));
        let io_size = spec::amount(spec, "io_size");
        let size = match io_size.and_then(|io_size| bytes_of(io_size, size.unwrap_or(0))) {
            Some(0) | None => size,
            io_size => io_size,
        };
        let size_bytes = size.map(|size| size as f64 * clones as f64);
        if runtime.is_none() && size_bytes.is_none() {
            return Err(wrong("needs a runtime, or a size in bytes"));
        }
        Ok(Self {
            name: spec.name.clone(),
            options: spec.by_name(),
            reads,
            block_bytes: blocks[usize::from(!rw.reads)].max(1) as f64,
            in_flight: spec::iodepth(spec).max(1) * clones,
            offered,
            ramp: spec::ramp_time(spec).unwrap_or_default(),
            size_bytes: size_bytes.filter(|_| !time_based || runtime.is_none()),
            runtime,
            done: [SimulatedWork::default(), SimulatedWork::default()],
            moved_bytes: 0.0,
            waited: Duration::ZERO,
        })
    }

    /// What is left of it after `ran` (ramp included): its time, or the time
    /// its data would take at `bandwidth` bytes per second.
    fn left(&self, ran: Duration, bandwidth: f64) -> Duration {
        let by_time = self
            .runtime
            .map(|runtime| (self.ramp + runtime).saturating_sub(ran));
        let by_size = self.size_bytes.map(|size| {
            let seconds = (size - self.moved_bytes).max(0.0) / bandwidth.max(1.0);
            Duration::from_secs_f64(seconds.min(1e9))
        });
        match (by_time, by_size) {
            (Some(time), Some(size)) => time.min(size),
            (Some(one), None) | (None, Some(one)) => one,
            (None, None) => Duration::ZERO,
        }
    }
}

/// One run of the jobs of a file.
struct SimRun<'r> {
    sim: &'r Sim,
    control: &'r Control,
    sink: &'r mut dyn Sink,
    interval: Duration,
    loads: Vec<JobLoad>,
    begun: Duration,
    deadline: Option<Duration>,
    interrupted: bool,
}

impl SimRun<'_> {
    fn emit(&mut self, event: Event) {
        if self.sink.event(event).is_break() {
            self.interrupted = true;
        }
    }

    fn go(mut self) -> Outcome {
        let names = self.loads.iter().map(|load| load.name.clone()).collect();
        let hosts = Vec::new();
        self.emit(Event::Jobs { names, hosts });
        let failure = self.measure();
        let errno = failure.as_ref().and_then(|failure| failure.errno);
        let results = self.results(errno);
        self.emit(Event::Finished {
            results: Box::new(results),
        });
        match failure {
            _ if self.interrupted => Outcome::Interrupted,
            Some(failure) => {
                self.emit(Event::Failure(failure));
                Outcome::Failed
            }
            None => Outcome::Complete,
        }
    }

    /// Goes through the intervals; what ended them before their time.
    fn measure(&mut self) -> Option<Failure> {
        let in_flight: u64 = self.loads.iter().map(|load| load.in_flight).sum();
        loop {
            let life = *self.sim.life();
            let ran = life.now.saturating_sub(self.begun);
            self.interrupted |= self.control.stop_requests() > 0;
            if self.interrupted {
                return None;
            }
            if let Some(limit) = self.deadline.filter(|&limit| ran >= limit) {
                let what = format!("the time limit of {} s was reached", limit.as_secs_f64());
                return Some(Failure::new(FailureKind::TimeLimit, what));
            }
            let at_s = life.now.as_secs_f64();
            if let Some(errno) = self.sim.device.errno(at_s, in_flight) {
                return Some(io_failure(errno));
            }
            let silent = self.sim.device.stalls(at_s);
            let left = self.left(&life, ran, in_flight);
            if left.is_zero() && !silent {
                return None;
            }
            let ends = self
                .loads
                .iter()
                .map(|l| l.ramp + l.runtime.unwrap_or_default());
            if silent && ran >= ends.max().unwrap_or_default() + GRACE {
                let what = match in_flight {
                    1 => "an I/O did not come back".to_owned(),
                    n => format!("{n} I/Os did not come back"),
                };
                return Some(Failure::new(FailureKind::Hung, what));
            }
            let span = match silent {
                true => self.interval,
                false => self.interval.min(left),
            };
            self.step(span, in_flight, silent);
        }
    }

    fn left(&self, life: &Life, ran: Duration, in_flight: u64) -> Duration {
        let of = |load: &JobLoad| {
            let share = load.in_flight as f64 / in_flight as f64;
            let device = &self.sim.device;
            let service = device.serve(in_flight as f64, load.block_bytes, life);
            let most = service.iops * share;
            let iops = load.offered.as_ref().map_or(most, |rate| rate.done(most));
            load.left(ran, iops * load.block_bytes)
        };
        self.loads.iter().map(of).max().unwrap_or_default()
    }

    /// One interval.
    fn step(&mut self, span: Duration, in_flight: u64, silent: bool) {
        // At least a ms: a rest of some ns would never end.
        let span = span.max(Duration::from_millis(1));
        let life = self.sim.live_on(span, self.begun);
        let ran = life.now.saturating_sub(self.begun);
        let t_ms = ran.as_millis() as u64;
        let mut samples = Vec::new();
        for (job, load) in (0..).zip(&mut self.loads) {
            let device = &self.sim.device;
            let mut service = device.serve(in_flight as f64, load.block_bytes, &life);
            let share = load.in_flight as f64 / in_flight as f64;
            if let Some(rate) = &mut load.offered {
                let alone = device.serve(1.0, load.block_bytes, &life);
                let most = if silent { 0.0 } else { service.iops * share };
                let served = rate.serve(most, alone.latency_ns, device.parallel, span);
                (service.iops, service.latency_ns) = (served.iops / share, served.latency_ns);
            }
            let ios = match silent || ran <= load.ramp {
                true => 0.0,
                false => service.iops * share * span.as_secs_f64(),
            };
            load.moved_bytes += ios * load.block_bytes;
            // What was under way when the device fell silent comes back now.
            let waited_ns = match silent {
                true => {
                    load.waited += span;
                    0.0
                }
                false => std::mem::take(&mut load.waited).as_nanos() as f64,
            };
            let late = Late {
                ios: if waited_ns > 0.0 { load.in_flight } else { 0 },
                ns: waited_ns + service.latency_ns,
            };
            let parts = [load.reads, 1.0 - load.reads];
            for (place, dir) in DIRECTIONS.into_iter().enumerate() {
                if parts[place] == 0.0 || ran <= load.ramp {
                    continue;
                }
                let (ios, clat) = load.done[place].add(
                    ios * parts[place],
                    service.latency_ns,
                    late.share(parts[place]),
                );
                samples.push(Sample {
                    t_ms,
                    span_ms: span.as_millis() as u64,
                    job,
                    dir,
                    ios,
                    bytes: ios * load.block_bytes as u64,
                    clat: Some(clat),
                    lat: None,
                });
            }
        }
        for sample in samples {
            self.emit(Event::Sample(sample));
        }
        let remaining_ms = Some(self.left(&life, ran, in_flight).as_millis() as u64);
        self.emit(Event::Interval { t_ms, remaining_ms });
    }

    fn results(&self, errno: Option<i32>) -> Results {
        let ran = self.sim.now().saturating_sub(self.begun);
        let job = |load: &JobLoad| {
            let runtime = ran.saturating_sub(load.ramp);
            let mut result = JobResult {
                name: load.name.clone(),
                error: errno.unwrap_or(0),
                runtime_ms: Some(runtime.as_millis() as u64),
                options: load.options.clone(),
                ..JobResult::default()
            };
            for (done, dir) in load.done.iter().zip(DIRECTIONS) {
                if let Some(place) = result.direction_mut(dir) {
                    *place = Some(done.result(load.block_bytes, runtime));
                }
            }
            result
        };
        Results {
            engine_version: Some(VERSION.to_owned()),
            jobs: self.loads.iter().map(job).collect(),
            ..Results::default()
        }
    }
}

impl SimulatedWork {
    /// Counts the I/Os of an interval; gives the whole ones and their latencies.
    fn add(&mut self, ios: f64, mean_ns: f64, late: Late) -> (u64, Histogram) {
        let all = ios + self.rest;
        let whole = all as u64;
        self.rest = all - whole as f64;
        let mut clat = Histogram::new();
        let late_ios = late.ios.min(whole);
        clat.add(late.ns as u64, late_ios);
        let whole_in_time = whole - late_ios;
        let mut left = whole_in_time;
        for (factor, percent) in SHAPE.into_iter().rev() {
            let count = match percent {
                50 => left,
                _ => whole_in_time * percent / 100,
            };
            left -= count;
            clat.add((mean_ns * factor) as u64, count);
        }
        self.ios += whole;
        self.clat.merge(&clat);
        (whole, clat)
    }

    fn result(&self, block_bytes: f64, runtime: Duration) -> DirectionResult {
        let seconds = runtime.as_secs_f64();
        if self.ios == 0 || seconds == 0.0 {
            return DirectionResult::default();
        }
        let mut buckets = self.clat.buckets();
        let bounds = fathom_model::histogram::bounds_of;
        let min_ns = buckets.next().map_or(0, |(bucket, _)| bounds(bucket).0);
        let last = self.clat.buckets().last();
        DirectionResult {
            total_ios: self.ios,
            io_bytes: self.ios * block_bytes as u64,
            bw_bytes: self.ios as f64 * block_bytes / seconds,
            iops: self.ios as f64 / seconds,
            runtime_ms: runtime.as_millis() as u64,
            clat: Some(Latency {
                n: Some(self.ios),
                min_ns,
                max_ns: last.map_or(0, |(bucket, _)| bounds(bucket).1),
                mean_ns: self.clat.mean_ns().unwrap_or(0.0),
                histogram: Some(self.clat.clone()),
                ..Latency::default()
            }),
            ..DirectionResult::default()
        }
    }
}

fn io_failure(errno: i32) -> Failure {
    let error = std::io::Error::from_raw_os_error(errno);
    let (kind, what) = match errno {
        device::ENODEV => (FailureKind::NoDevice, "the device is gone"),
        _ => (FailureKind::Io, "an I/O failed"),
    };
    Failure::new(kind, format!("{what}: {error}")).with_errno(errno)
}

#[cfg(test)]
mod tests;
