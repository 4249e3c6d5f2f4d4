//! A worker's thread: what it sets up, when it starts, what it leaves.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;

use fathom_model::{Failure, FailureKind};

use super::backend::calls::{CallStyle, Calls};
use super::backend::one_by_one::OneByOne;
use super::backend::{Backend, OpenFile, burner, fileops, mmap, null, nvme, offload, posixaio};
use super::backend::{libaio, scsi, uring};
use super::buffer::LockedMemory;
use super::clock::TickClock;
use super::commands::{self, CommandTime::After, CommandTime::Before};
use super::files::{self, FilePlace, FilePlan};
use super::job::{IoEngine, NativeJob, Queue};
use super::kernel;
use super::members::Member;
use super::rng::{Rng, mix};
use super::stats::WorkerPhase;
use super::this_thread;
use super::usage::Usage;
use super::verify::VerifyState;
use super::worker::{FlowShare, Worker, WorkerParts};
use fathom_engine::checked::PathChanged;

/// Opens when all workers of a batch are ready, so that they start together.
#[derive(Default)]
pub(super) struct StartGate {
    open: Mutex<bool>,
    opened: Condvar,
}

impl StartGate {
    pub(super) fn open(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.opened.notify_all();
    }

    fn pass(&self) {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        while !*open {
            open = self
                .opened
                .wait(open)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// What a worker's thread tells.
pub(super) enum WorkerReport {
    /// Files are open and memory is there.
    Ready,
    /// What is not as the user may expect.
    Note(String),
    /// It is over.
    Ended {
        failure: Option<Failure>,
        usage: Usage,
    },
}

/// What a thread is started with.
pub(super) struct WorkerStart {
    pub(super) member: usize,
    pub(super) job: Arc<NativeJob>,
    pub(super) parts: WorkerParts,
    pub(super) clone: u32,
    pub(super) gate: Arc<StartGate>,
    pub(super) stop: Arc<AtomicBool>,
    pub(super) tell: Sender<(usize, WorkerReport)>,
}

/// What a member's thread needs of it; its plan must be there.
pub(super) fn start_of(
    place: usize,
    members: &[Member],
    plan: &Arc<files::MemberFiles>,
    clock: TickClock,
    gate: &Arc<StartGate>,
    tell: Sender<(usize, WorkerReport)>,
) -> WorkerStart {
    let member = &members[place];
    // Whose data a job repeats: its own first, then those of the jobs behind it.
    let alike = match member.job.content.dedupe_global {
        true => members.len(),
        false => 1,
    };
    let seeds = members.iter().cycle().skip(place).take(alike);
    WorkerStart {
        member: place,
        job: Arc::clone(&member.job),
        clone: member.clone,
        parts: WorkerParts {
            job: Arc::clone(&member.job),
            plan: Arc::clone(plan),
            stats: Arc::clone(&member.stats),
            stop: Arc::clone(&member.stop),
            clock,
            classes: Arc::clone(&member.classes),
            targets: Vec::new(),
            seed: member.seed,
            data_seeds: seeds.map(|member| mix(member.seed, 7)).collect(),
            ring: member.ring.clone(),
            iolog: member.iolog.clone(),
            flow: take_share(member),
        },
        gate: Arc::clone(gate),
        stop: Arc::clone(&member.stop),
        tell,
    }
}

fn take_share(member: &Member) -> Option<FlowShare> {
    let share = member.flow.lock();
    share.unwrap_or_else(PoisonError::into_inner).take()
}

/// How a worker ended and what its thread used (before it began, inside of it), or what
/// kept it from beginning.
type ThreadOutcome = Result<(Option<Failure>, Usage), Failure>;

/// The whole life of a worker's thread.
pub(super) fn run(start: WorkerStart) {
    let (member, tell) = (start.member, start.tell.clone());
    let name = start.job.name.clone();
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| live(start)));
    let lived = outcome.unwrap_or_else(|_| {
        let what = "its worker stopped by a fault in Fathom itself";
        Err(Failure::new(FailureKind::Other, what).about(name))
    });
    let (failure, usage) = lived.unwrap_or_else(|failure| (Some(failure), Usage::default()));
    // Nobody listens any more when the run was given up.
    let _ = tell.send((member, WorkerReport::Ended { failure, usage }));
}

fn live(start: WorkerStart) -> ThreadOutcome {
    let WorkerStart {
        member,
        job,
        mut parts,
        clone,
        gate,
        stop,
        tell,
    } = start;
    settle(&job, clone)?;
    let _locked = locked_memory(&job)?;
    let plan = Arc::clone(&parts.plan);
    let open = open_files(&job, &plan, &stop)?;
    let files = open.iter().zip(&plan.files);
    parts.targets = files
        .map(|(open, file)| files::target(open, file))
        .collect();
    let until = VerifyState::load(&job, &plan.place.work_dir, member)?;
    let targets = parts.targets.clone();
    let stats = Arc::clone(&parts.stats);
    let (least, most) = job.times.start_delay;
    let start_delay = least + (most - least).mul_f64(Rng::new(mix(parts.seed, 5)).unit());
    let mut worker = Worker::new(parts).map_err(|error| no_memory(&job, &error))?;
    worker.verify_until(until);
    let remark = |text: &str| {
        let text = format!("job {}: {text}", job.name);
        let _ = tell.send((member, WorkerReport::Note(text)));
    };
    let ready = |note: Option<&str>| {
        note.into_iter().for_each(remark);
        let _ = tell.send((member, WorkerReport::Ready));
        gate.pass();
        delay(start_delay, &stop);
        stats.set_phase(WorkerPhase::Ramp); // all is set up
        run_before(&job, &plan.place, &stop)?;
        Ok(this_thread::usage())
    };
    let lived = with_backend(&job, &targets, &plan.files, &mut worker, ready);
    let (failure, before) = lived.map_err(|error| backend_failure(&job, &error))??;
    let state = worker.verify_state();
    drop(worker);
    let usage = this_thread::usage().since(&before);
    let saved = state.map(|state| state.save(&job.name, &plan.place, member));
    let failure = failure.or(saved.and_then(Result::err));
    if let Some(told) = run_after(&job, &plan.place) {
        remark(&told);
    }
    Ok((failure.map(|f| name(f, &job)), usage))
}

/// exec_prerun.
fn run_before(job: &NativeJob, place: &FilePlace, stop: &AtomicBool) -> Result<(), Failure> {
    let Some(command) = &job.order.before else {
        return Ok(());
    };
    commands::run(&job.name, Before, command, place, || stop.load(Relaxed))
}

/// exec_postrun; what is to be said of it. It may undo what the other did: whoever stops
/// the run waits for it, and its failure is none of the job's (backend.c, thread_main).
fn run_after(job: &NativeJob, place: &FilePlace) -> Option<String> {
    let command = job.order.after.as_ref()?;
    let ended = commands::run(&job.name, After, command, place, || false);
    ended.err().map(|failure| failure.message)
}

fn no_memory(job: &NativeJob, error: &io::Error) -> Failure {
    let huge = match job.memory.huge {
        true => "; it takes huge pages, of which vm.nr_hugepages says how many there are",
        false => "",
    };
    let depth = job.depth();
    let message = format!("no memory for the buffers of {depth} I/Os: {error}{huge}");
    Failure::new(FailureKind::Other, message).about(job.name.clone())
}

/// A failure that names no file is about the job.
fn name(mut failure: Failure, job: &NativeJob) -> Failure {
    let file = failure.subject.take().filter(|subject| !subject.is_empty());
    failure.message = match &file {
        Some(file) => format!("{file}: {}", failure.message),
        None => failure.message,
    };
    failure.about(format!("job {}", job.name))
}

/// Makes the backend, then starts; errors are those of making it.
fn with_backend(
    job: &NativeJob,
    targets: &[OpenFile],
    plans: &[FilePlan],
    worker: &mut Worker,
    ready: impl FnOnce(Option<&str>) -> Result<Usage, Failure>,
) -> io::Result<ThreadOutcome> {
    if job.queue.offload {
        return with_threads(job, targets, worker, ready);
    }
    let depth = job.depth() as usize;
    let files = targets.to_vec();
    macro_rules! go {
        ($backend:expr) => {
            Ok(start($backend, worker, ready))
        };
    }
    match job.engine {
        IoEngine::Null => go!(null::Null::new(depth)),
        IoEngine::Sync => go!(OneByOne::new(Calls::new(files, CallStyle::Seek)?)),
        IoEngine::Psync => go!(OneByOne::new(Calls::new(files, CallStyle::Positioned)?)),
        IoEngine::Sg => go!(OneByOne::new(scsi::Scsi::new(targets, job.scsi)?)),
        IoEngine::Splice => go!(OneByOne::new(Calls::new(files, CallStyle::Spliced)?)),
        IoEngine::Falloc => go!(OneByOne::new(Calls::new(files, CallStyle::Allocate)?)),
        IoEngine::Ftruncate => go!(OneByOne::new(Calls::new(files, CallStyle::Truncate)?)),
        IoEngine::Cpuio => go!(OneByOne::new(burner::Burner::new(&job.burn))),
        IoEngine::FileOp(op) => go!(OneByOne::new(fileops::FileOps::new(plans, op, job.stat)?)),
        IoEngine::Pvsync2 => {
            go!(OneByOne::new(Calls::new(files, vectored(&job.queue))?))
        }
        IoEngine::Posixaio => go!(posixaio::threads(targets, depth)?),
        IoEngine::Mmap => {
            let mapped = mmap::Mmap::new(targets, job.writes(), job.files.direct)?;
            go!(OneByOne::new(mapped))
        }
        IoEngine::Libaio => go!(libaio::Libaio::new(files, depth, job.queue.rw_flags())?),
        IoEngine::IoUring => {
            let ring = uring::Uring::new(targets, Some(worker.buffers()), &job.queue)?;
            go!(ring)
        }
        IoEngine::IoUringCmd => go!(nvme::ring(targets, worker.buffers(), &job.queue)?),
    }
}

/// The same with a thread for each I/O under way, of which each has an engine of its own.
fn with_threads(
    job: &NativeJob,
    targets: &[OpenFile],
    worker: &mut Worker,
    ready: impl FnOnce(Option<&str>) -> Result<Usage, Failure>,
) -> io::Result<ThreadOutcome> {
    let files = targets.to_vec();
    let queue = Queue {
        depth: 1,
        ..job.queue.clone()
    };
    macro_rules! go {
        ($engine:expr) => {{
            let threads = offload::threads(targets, job.depth() as usize, $engine)?;
            Ok(start(threads, worker, ready))
        }};
    }
    let style = match job.engine {
        IoEngine::Null => return go!(|| Ok(null::Null::new(1))),
        IoEngine::IoUring => return go!(move || uring::Uring::new(&files, None, &queue)),
        IoEngine::Libaio => {
            let flags = queue.rw_flags();
            return go!(move || libaio::Libaio::new(files.clone(), 1, flags));
        }
        IoEngine::Sg => {
            let options = job.scsi;
            return go!(move || scsi::Scsi::new(&files, options).map(OneByOne::new));
        }
        IoEngine::Splice => CallStyle::Spliced,
        IoEngine::Falloc => CallStyle::Allocate,
        IoEngine::Ftruncate => CallStyle::Truncate,
        IoEngine::Pvsync2 => vectored(&job.queue),
        // The threads share the descriptors, whose position only one could have. Mappings
        // and whole files have no threads of their own (options, of_threads).
        IoEngine::Sync
        | IoEngine::Psync
        | IoEngine::Posixaio
        | IoEngine::Mmap
        | IoEngine::IoUringCmd
        | IoEngine::Cpuio
        | IoEngine::FileOp(_) => CallStyle::Positioned,
    };
    go!(move || Calls::new(files.clone(), style).map(OneByOne::new))
}

/// How pvsync2 calls.
fn vectored(queue: &Queue) -> CallStyle {
    CallStyle::Vectored {
        flags: queue.rw_flags(),
        poll_percent: if queue.hipri { queue.poll_percent } else { 0 },
    }
}

/// Runs the job over its backend.
fn start<B: Backend>(
    mut backend: B,
    worker: &mut Worker,
    ready: impl FnOnce(Option<&str>) -> Result<Usage, Failure>,
) -> ThreadOutcome {
    let before = ready(backend.note())?;
    Ok((worker.run(&mut backend), before))
}

fn backend_failure(job: &NativeJob, error: &io::Error) -> Failure {
    let (kind, message) = match PathChanged::is(error) {
        true => (FailureKind::Refused, error.to_string()),
        false => kernel::refusal(job.engine, job.depth(), error),
    };
    let failure = Failure::new(kind, message).about(format!("job {}", job.name));
    match error.raw_os_error() {
        Some(errno) => failure.with_errno(errno),
        None => failure,
    }
}

/// Opens the files of a job, and reads them if it wants that beforehand.
fn open_files(
    job: &NativeJob,
    plan: &files::MemberFiles,
    stop: &AtomicBool,
) -> Result<Vec<File>, Failure> {
    if !job.engine.opens_files() {
        return Ok(Vec::new());
    }
    let open = |file| {
        let opened = files::open(job, file)?;
        if job.files.pre_read {
            files::pre_read(file, &|| stop.load(Relaxed))?;
        }
        Ok(opened)
    };
    plan.files.iter().map(open).collect()
}

/// lockmem.
fn locked_memory(job: &NativeJob) -> Result<Option<LockedMemory>, Failure> {
    let bytes = job.memory.locked;
    let locked = (bytes > 0).then(|| LockedMemory::new(bytes)).transpose();
    locked.map_err(|error| {
        let message = format!("lockmem: {bytes} bytes cannot be locked: {error}");
        Failure::new(FailureKind::Permission, message).about(format!("job {}", job.name))
    })
}

/// CPUs and priority of the thread itself.
fn settle(job: &NativeJob, clone: u32) -> Result<(), Failure> {
    if let Some(cpus) = &job.cpus {
        let mut set = rustix::thread::CpuSet::new();
        let chosen = if job.cpus_split {
            &cpus[clone as usize % cpus.len()..][..1]
        } else {
            &cpus[..]
        };
        chosen.iter().for_each(|&cpu| set.set(cpu));
        rustix::thread::sched_setaffinity(None, &set).map_err(|error| {
            let message = format!("cpus_allowed: the thread cannot be bound: {error}");
            Failure::new(FailureKind::Other, message).about(format!("job {}", job.name))
        })?;
    }
    super::numa::settle(&job.numa).map_err(|message| {
        Failure::new(FailureKind::Other, message).about(format!("job {}", job.name))
    })?;
    if let Some(nice) = job.nice {
        this_thread::set_nice(nice).map_err(|error| {
            let message = format!("nice={nice} cannot be set: {error}");
            Failure::new(FailureKind::Permission, message).about(format!("job {}", job.name))
        })?;
    }
    if let Some(priority) = job.priority.thread {
        this_thread::set_priority(priority).map_err(|error| {
            let message = format!("prio, prioclass: the I/O priority cannot be set: {error}");
            Failure::new(FailureKind::Permission, message).about(format!("job {}", job.name))
        })?;
    }
    Ok(())
}

fn delay(time: Duration, stop: &AtomicBool) {
    let begun = std::time::Instant::now();
    while begun.elapsed() < time && !stop.load(Relaxed) {
        std::thread::sleep(
            time.saturating_sub(begun.elapsed())
                .min(Duration::from_millis(20)),
        );
    }
}

/// Starts the thread; it is not joined: one that a dead device holds would
/// hold the run too.
pub(super) fn spawn(start: WorkerStart) -> io::Result<Thread> {
    let name: String = start.job.name.chars().take(15).collect();
    fathom_device::threads::room()?;
    let handle = std::thread::Builder::new()
        .name(name.replace('\0', ""))
        .spawn(move || run(start))?;
    Ok(handle.thread().clone())
}
