//! Logs of I/Os, written and replayed.

use fathom_jobfile::split_names;

use crate::native::job::{DirIndex, IoEngine, NativeJob, ReplayOptions};

use super::value::{self, OptionValue, Outcome};
use super::{OptionRow, differs, same};

pub(super) const IOLOGS: &[OptionRow] = &[
    differs(
        &["write_iolog"],
        "all files are opened at the start and closed at the end; not with several clones, nor for names with blanks, which no log can hold",
        |job, v| {
            job.logs.iolog = Some(v.text()?.to_owned());
            Ok(())
        },
    ),
    differs(
        &["read_iolog"],
        "regular files only; all files are open from the start to the end; a line that cannot be understood is a fault (fio passes over it); with verify no trims besides writes, and blocks smaller than verify_interval or a multiple of it; reads between writes in any order (fio 3.33 then finds faults that are none)",
        |job, v| {
            let names = split_names(v.text()?);
            if names.iter().any(|name| name == "-") {
                return Err("standard input cannot be judged before it is replayed".to_owned());
            }
            replay(job, |replay| replay.logs = names)
        },
    ),
    differs(
        &["read_iolog_chunked"],
        "the log is read as it is replayed, once it was judged",
        |job, v| {
            let chunked = v.flag()?;
            replay(job, |replay| replay.chunked = chunked)
        },
    ),
    same(&["replay_no_stall"], |job, v| {
        let no_stall = v.flag()?;
        replay(job, |replay| replay.no_stall = no_stall)
    }),
    same(&["replay_time_scale"], |job, v| match v.number()? {
        0 => Err("at least 1 percent".to_owned()),
        percent => replay(job, |replay| replay.time_percent = percent),
    }),
    same(&["replay_redirect"], |job, v| {
        let device = v.text()?.to_owned();
        replay(job, |replay| replay.redirect = Some(device))
    }),
    same(&["replay_align"], |job, v| {
        let align = v.number::<u32>()?;
        if align > 0 && !align.is_power_of_two() {
            return Err(format!("{align} is not a power of two"));
        }
        replay(job, |replay| replay.align = align)
    }),
    same(&["replay_scale"], |job, v| {
        let scale = v.number()?;
        replay(job, |replay| replay.scale = scale)
    }),
    same(&["replay_skip"], skip),
    differs(
        &["merge_blktrace_file"],
        "as documented (fio 3.33 ends with a short read); flushes are left out",
        |job, v| {
            let file = v.text()?.to_owned();
            replay(job, |replay| replay.merged = Some(file))
        },
    ),
    same(&["merge_blktrace_scalars"], |job, v| {
        let percents = numbers(v)?;
        replay(job, |replay| replay.merge_percents = percents)
    }),
    same(&["merge_blktrace_iters"], |job, v| {
        let times = numbers(v)?;
        if let Some(many) = times.iter().find(|&&times| times > MOST_TIMES) {
            return Err(format!("{many} is more than {MOST_TIMES} times"));
        }
        replay(job, |replay| replay.merge_times = times)
    }),
];

/// Most times that a trace is repeated: each is written out.
const MOST_TIMES: u64 = 65_536;

/// `50:100`, each at least 1.
fn numbers(v: OptionValue<'_>) -> Outcome<Vec<u64>> {
    let one = |part: &str| match value::plain::<u64>(part)? {
        0 => Err("at least 1".to_owned()),
        number => Ok(number),
    };
    v.text()?.split(':').map(one).collect()
}

fn replay(job: &mut NativeJob, set: impl FnOnce(&mut ReplayOptions)) -> Outcome<()> {
    set(&mut job.replay);
    Ok(())
}

fn skip(job: &mut NativeJob, v: OptionValue<'_>) -> Outcome<()> {
    for kind in v.text()?.split(',') {
        match kind.trim() {
            "read" => job.replay.skips[DirIndex::Read as usize] = true,
            "write" => job.replay.skips[DirIndex::Write as usize] = true,
            "trim" => job.replay.skips[DirIndex::Trim as usize] = true,
            "sync" => job.replay.skips_syncs = true,
            other => return Err(format!("'{other}' is not one of read, write, trim, sync")),
        }
    }
    Ok(())
}

/// What does not go with a log.
pub(super) fn faults(job: &NativeJob) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let mut refuse = |option, what: &str| found.push((option, what.to_owned()));
    if job.logs.iolog.is_some() && job.order.clones > 1 {
        refuse("write_iolog", "each clone would need a log of its own");
    }
    let merges = job.replay.merged.is_some();
    let paired = [
        ("merge_blktrace_scalars", job.replay.merge_percents.len()),
        ("merge_blktrace_iters", job.replay.merge_times.len()),
    ];
    for (option, count) in paired.into_iter().filter(|(_, count)| *count > 0) {
        if !merges {
            refuse(option, "needs merge_blktrace_file");
        } else if count != job.replay.logs.len() {
            refuse(option, "needs a number for each log of read_iolog");
        }
    }
    if job.replay.logs.is_empty() {
        if merges {
            refuse("merge_blktrace_file", "needs the traces: read_iolog");
        }
        return found;
    }
    if job.logs.iolog.is_some() {
        refuse("write_iolog", "what is replayed from a log has one already");
    }
    if !job.engine.moves_data() && job.engine != IoEngine::Null || job.engine == IoEngine::Mmap {
        let what = "a log is replayed by engines that read and write at any place";
        refuse("ioengine", what);
    }
    if !job.files.directories.is_empty() {
        refuse(
            "directory",
            "the log that is replayed names its files itself",
        );
    }
    if job.verify.state_load {
        refuse(
            "verify_state_load",
            "what is replayed from a log is not read back in the order of its writes",
        );
    }
    if job.extent.zones != super::super::job::ZoneOptions::default() {
        refuse(
            "zonemode",
            "the log that is replayed says where its I/Os go",
        );
    }
    if job.latency.target.is_some() {
        refuse("latency_target", "the log that is replayed sets the pace");
    }
    found
}
