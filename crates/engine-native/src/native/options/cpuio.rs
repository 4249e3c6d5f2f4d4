//! ioengine=cpuio: how much a processor is kept busy (engines/cpu.c).

use std::time::Duration;

use super::{OptionRow, differs, same};
use crate::native::job::{FileAmount, IoEngine, IoExtent, IoPattern, JobFiles, NativeJob, Sizes};

/// A chunk is not interrupted: whoever stops the run waits for its end.
const LONGEST: Duration = Duration::from_secs(1);

pub(super) const LOAD: &[OptionRow] = &[
    same(&["cpuload"], |job, v| {
        job.burn.load = v.number::<u32>()?.min(100);
        Ok(())
    }),
    differs(&["cpuchunks"], "at most 1 s", |job, v| {
        job.burn.chunk = Duration::from_micros(v.number()?);
        match job.burn.chunk > LONGEST {
            true => Err(format!("at most {}", LONGEST.as_micros())),
            false => Ok(()),
        }
    }),
    same(&["cpumode"], |job, v| {
        job.burn.sorts = match v.text()? {
            "noop" => false,
            "qsort" => true,
            other => return Err(format!("'{other}' is not one of noop, qsort")),
        };
        Ok(())
    }),
    field!(["exit_on_io_done"], burn.ends_with_io = flag),
];

pub(super) fn fault(job: &NativeJob) -> Option<(&'static str, String)> {
    let idle = job.engine == IoEngine::Cpuio && job.burn.load == 0;
    idle.then(|| ("ioengine", "cpuio needs cpuload".to_owned()))
}

/// Makes of it what fio does: reads of nothing, each with a pause behind it, until the
/// time is up.
pub(super) fn settle(job: &mut NativeJob) {
    if job.engine != IoEngine::Cpuio {
        return;
    }
    job.pattern = IoPattern {
        sizes: [const { Sizes::Fixed(0) }; 3],
        ..IoPattern::default()
    };
    job.files = JobFiles::default();
    job.extent = IoExtent {
        size: Some(FileAmount::Bytes(1)),
        loops: 1,
        number_ios: job.extent.number_ios,
        ..IoExtent::default()
    };
    let chunk = u64::try_from(job.burn.chunk.as_micros()).unwrap_or(u64::MAX);
    let pace = &mut job.pace;
    pace.think = Duration::from_micros(job.burn.pause(chunk));
    pace.think_spin = Duration::ZERO;
    (pace.think_blocks, pace.think_by_issue) = (Some(1), false);
}
