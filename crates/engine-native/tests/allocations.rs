//! After its start a worker allocates nothing: as many allocations for five
//! thousand I/Os as for two hundred. What it needs grows with its depth alone.
#![allow(unsafe_code)] // each block says why it is sound
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use fathom_engine::{Control, Engine, Outcome, Request, Sink};
use fathom_engine_native::Native;
use fathom_model::Event;

/// Allocations of all threads but those that said they are not counted.
static COUNTED: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(true) };
}

struct Counting;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_COUNTED.try_with(Cell::get).unwrap_or(false) {
            COUNTED.fetch_add(1, Relaxed);
        }
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

struct Deaf;

impl Sink for Deaf {
    fn event(&mut self, _: Event) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Allocations of the workers of a job that does so many I/Os.
fn of(dir: &Path, options: &str, ios: u64) -> u64 {
    let job_file = dir.join("job.fio");
    let text =
        format!("[j]\nfilename=f\nbs=4k\nsize=4m\nio_size=1g\n{options}\nnumber_ios={ios}\n");
    std::fs::write(&job_file, text).unwrap();
    let request = Request {
        job_file,
        sections: Vec::new(),
        extra_args: Vec::new(),
        work_dir: dir.to_owned(),
        raw_dir: dir.to_owned(),
        interval: Duration::from_millis(50),
        deadline: Some(Duration::from_secs(300)),
        fio: None,
        checked: None,
    };
    let before = COUNTED.load(Relaxed);
    let outcome = Native::new().run(&request, &Control::default(), &mut Deaf);
    assert_eq!(outcome.unwrap(), Outcome::Complete, "{options}");
    COUNTED.load(Relaxed) - before
}

#[test]
fn the_number_of_allocations_does_not_grow_with_that_of_the_ios() {
    // Samples, logs and results are made by this thread.
    IS_COUNTED.set(false);
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let jobs = [
        "ioengine=null\nrw=randrw\niodepth=16",
        "ioengine=io_uring\nrw=randread\niodepth=32",
        "ioengine=io_uring\nrw=randrw\niodepth=8\niodepth_batch_submit=4\nbssplit=4k/60:8k/40",
        "ioengine=libaio\nrw=randwrite\niodepth=8\nrefill_buffers\nfdatasync=500",
        "ioengine=posixaio\nrw=randread\niodepth=8",
        "ioengine=psync\nrw=write\nverify=crc32c",
        "ioengine=psync\nrw=randread:4\nrandom_distribution=zipf:1.2",
        "ioengine=sync\nrw=read\nwrite_lat_log=l",
        "ioengine=mmap\nrw=randwrite\nnorandommap",
        "ioengine=null\nrw=randread\nrate_iops=200000\nrate_process=poisson",
    ];
    for options in jobs {
        of(dir.path(), options, 10);
        let (few, many) = (of(dir.path(), options, 200), of(dir.path(), options, 5_000));
        assert!(few > 0, "{options}");
        assert_eq!(few, many, "{options}");
    }
}
