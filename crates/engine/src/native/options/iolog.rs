//! Logs of I/Os, written and replayed.

use crate::jobfile::split_names;
use crate::native::job::{DirIndex, IoEngine, NativeJob, ReplayOptions};

use super::value::{OptionValue, Outcome};
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
        "regular files only; all files are open from the start to the end; a line that cannot be understood is a fault (fio passes over it)",
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
];

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
    if job.replay.logs.is_empty() {
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
    if job.verify.sum.is_some() {
        refuse("verify", "what is replayed from a log is not verified");
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
