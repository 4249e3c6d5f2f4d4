//! The native engine: each of its I/O engines goes over a small file here and now,
//! because system call filters and limits cannot be told in any other way.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;
use std::{fs, io};

use fathom_device::Scratch;
use fathom_engine::{Control, Engine, EngineError, Outcome, Request, Sink};
use fathom_engine_native::Native;
use fathom_model::{Event, Failure};

use super::{CheckState, Topic};

/// No read of 128 KiB from memory takes as long.
const DEADLINE: Duration = Duration::from_secs(5);
const JOB: &str = "bs=4k\nsize=128k\niodepth=32\nfilename=probe\n";
/// It takes whole SCSI disks, and this is none.
const NOT_TRIED: &str = "sg";
/// Buffers that are registered count against the limit on locked memory.
const LOCKED: &str = "io_uring\nfixedbufs=1";

/// What works of it.
pub fn look(topic: &mut Topic) {
    let scratch = match Scratch::new() {
        Ok(scratch) => scratch,
        Err(error) => {
            let folder = std::env::temp_dir();
            let found = format!("not tried: {}: {error}", folder.display());
            return topic.add("native", CheckState::Note, found, None);
        }
    };
    let tried: Vec<_> = fathom_engine_native::io_engines()
        .filter(|engine| *engine != NOT_TRIED)
        .chain([LOCKED])
        .map(|engine| (engine, attempt(scratch.path(), engine)))
        .collect();
    let works: Vec<&str> = tried
        .iter()
        .filter(|(_, tried)| tried.is_ok())
        .map(|(engine, _)| *engine)
        .filter(|engine| *engine != LOCKED)
        .collect();
    if works.is_empty() {
        let found = "none of its I/O engines works here";
        topic.add("native", CheckState::Absent, found, None);
    } else {
        let found = format!(
            "{}: {}; {NOT_TRIED} was not tried, it takes whole SCSI disks",
            fathom_engine_native::version(),
            works.join(", ")
        );
        topic.ok("native", found);
    }
    for (engine, tried) in &tried {
        if let Err(failure) = tried {
            // The message says what to do about it.
            let found = format!("{}: {}", engine.replace('\n', " "), failure.message);
            topic.add("native", CheckState::Note, found, None);
        }
    }
}

/// One pass over a small file.
fn attempt(folder: &Path, engine: &str) -> Result<(), Failure> {
    let job_file = folder.join("probe.fio");
    let unwritable = |error: io::Error| {
        let kind = fathom_model::FailureKind::Open;
        Failure::new(kind, format!("not tried: {error}"))
    };
    let rw = match engine {
        // It has nothing to read.
        "ftruncate" => "write",
        _ => "read",
    };
    let job = format!("[probe]\nioengine={engine}\nrw={rw}\n{JOB}");
    fs::write(&job_file, job).map_err(unwritable)?;
    let request = Request {
        job_file,
        sections: Vec::new(),
        extra_args: Vec::new(),
        work_dir: folder.to_owned(),
        raw_dir: folder.to_owned(),
        interval: DEADLINE,
        deadline: Some(DEADLINE),
        fio: None,
        checked: None,
    };
    let mut first = FirstFailure(None);
    let ran = Native::new().run(&request, &Control::default(), &mut first);
    match (ran, first.0) {
        (Ok(Outcome::Complete), _) => Ok(()),
        (_, Some(failure)) | (Err(EngineError::Failed(failure)), None) => Err(failure),
        (ran, None) => {
            let kind = fathom_model::FailureKind::Other;
            Err(Failure::new(kind, format!("did not end well: {ran:?}")))
        }
    }
}

/// Keeps the first failure.
struct FirstFailure(Option<Failure>);

impl Sink for FirstFailure {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        if let (Event::Failure(failure), None) = (event, &self.0) {
            self.0 = Some(failure);
        }
        ControlFlow::Continue(())
    }
}
