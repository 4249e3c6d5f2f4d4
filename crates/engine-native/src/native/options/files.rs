//! The files: names, how they are made, opened and synced.

use fathom_jobfile::split_names;

use crate::native::job::{
    Advise, Fallocate, FileOrder, FileService, IoEngine, NativeJob, OpenSync,
};
use crate::native::offsets::Distribution;

use super::value::{self, Outcome};
use super::{OptionRow, differs, idle, io, same};

/// Names of so many files take some 300 MiB of memory.
const MOST_FILES: u32 = 1 << 22;

pub(super) const FILES: &[OptionRow] = &[
    same(&["filename"], |job, v| {
        // fio adds up the names of all filename options, globals included.
        job.files
            .names
            .extend(split_names(v.text()?).into_iter().map(Into::into));
        Ok(())
    }),
    same(&["directory"], |job, v| {
        job.files.directories = split_names(v.text()?).into_iter().map(Into::into).collect();
        Ok(())
    }),
    same(&["filename_format"], |job, v| {
        job.files.format = v.0.map(str::trim).unwrap_or_default().to_owned();
        if job.files.format.is_empty() {
            job.files.format = "$jobname.$jobnum.$filenum".to_owned();
        }
        Ok(())
    }),
    differs(
        &["opendir"],
        "in the order of their names; without size files smaller than a block are left out; not with directory",
        |job, v| {
            job.files.trees.push(v.text()?.into());
            Ok(())
        },
    ),
    idle(
        &["unique_filename"],
        "no effect: nothing comes from a client of fio's server",
        |_, v| v.flag().map(|_| ()),
    ),
    differs(
        &["nrfiles", "nr_files"],
        "at most 4194304 files",
        |job, v| {
            let count = v.number::<u32>()?.max(1);
            if count > MOST_FILES {
                return Err(format!("{count} files are too many: {MOST_FILES} at most"));
            }
            job.files.count = count;
            Ok(())
        },
    ),
    same(&["file_service_type"], |job, v| {
        job.files.service = service(v.text()?)?;
        Ok(())
    }),
    field!(["direct"], files.direct = flag),
    same(&["buffered"], |job, v| {
        job.files.direct = !v.flag()?;
        Ok(())
    }),
    same(&["sync"], |job, v| {
        job.files.open_sync = match v.0.map(str::trim) {
            None | Some("" | "1" | "sync") => OpenSync::Sync,
            Some("0" | "none") => OpenSync::No,
            Some("dsync") => OpenSync::Dsync,
            Some(other) => return Err(format!("'{other}' is not one of none, sync, dsync, 0, 1")),
        };
        Ok(())
    }),
    field!(["fsync"], files.fsync_every = number),
    field!(["fdatasync"], files.fdatasync_every = number),
    field!(["end_fsync"], files.end_fsync = flag),
    field!(["fsync_on_close"], files.fsync_on_close = flag),
    differs(
        &["sync_file_range"],
        "called by the job's own thread, with io_uring too",
        |job, v| {
            let (flags, every) = sync_range(v.text()?)?;
            (job.files.sync_range_flags, job.files.sync_range_every) = (flags, every);
            Ok(())
        },
    ),
    idle(
        &["write_barrier"],
        "no effect: none of its I/O engines has barriers (of fio's only libpmem)",
        |_, v| v.number::<u32>().map(|_| ()),
    ),
    differs(
        &["write_hint"],
        "with direct=1 of the file, too, where the kernel has hints of files only (from 5.17 on; fio 3.33 fails there)",
        |job, v| {
            // include/uapi/linux/fcntl.h, from RWH_WRITE_LIFE_NONE on.
            let names = ["none", "short", "medium", "long", "extreme"];
            let text = v.text()?;
            let place = names.iter().position(|name| *name == text);
            let place = place.ok_or_else(|| {
                format!("'{text}' is not one of none, short, medium, long, extreme")
            })?;
            job.files.write_hint = Some(place as u64 + 1);
            Ok(())
        },
    ),
    field!(
        ["file_append"],
        files.append = flag,
        "only jobs that write, and what the file holds stays (fio lays it out anew where the job reads, too)"
    ),
    field!(
        ["fill_device", "fill_fs"],
        files.fill = flag,
        "only jobs that write, without size in order"
    ),
    field!(["create_only"], files.create_only = flag),
    field!(["create_on_open"], files.create_on_open = flag),
    field!(["create_fsync"], files.create_fsync = flag),
    field!(["allow_file_create"], files.allow_create = flag),
    same(&["fallocate"], |job, v| {
        job.files.fallocate = match v.text()? {
            "none" | "0" => Fallocate::None,
            "native" | "posix" | "1" => Fallocate::Allocate,
            "keep" => Fallocate::KeepSize,
            "truncate" => Fallocate::Truncate,
            other => {
                return Err(format!(
                    "'{other}' is not one of none, native, posix, keep, truncate, 0, 1"
                ));
            }
        };
        Ok(())
    }),
    field!(["invalidate"], files.invalidate = flag),
    same(&["pre_read"], |job, v| {
        job.files.pre_read = v.flag()?;
        // init.c, fixup_options: what was read shall be found again.
        job.files.invalidate &= !job.files.pre_read;
        Ok(())
    }),
    idle(
        &["openfiles"],
        "no effect: only with filecreate, filestat and filedelete, which keep no file open",
        |job, v| {
            job.files.open_at_once = Some(v.number::<u32>()?).filter(|&count| count > 0);
            Ok(())
        },
    ),
    same(&["fadvise_hint"], |job, v| {
        job.files.advise = match v.text()? {
            "0" => Advise::Nothing,
            "1" => Advise::AsPattern,
            "random" => Advise::Random,
            "sequential" => Advise::Sequential,
            other => return Err(format!("'{other}' is not one of 0, 1, random, sequential")),
        };
        Ok(())
    }),
    field!(["unlink"], files.unlink = flag),
    field!(["overwrite"], files.overwrite = flag),
];

/// `roundrobin:4`, `zipf:1.2` (options.c, str_fst_cb).
fn service(text: &str) -> Outcome<FileService> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let order = match name {
        "roundrobin" => FileOrder::RoundRobin,
        "sequential" => FileOrder::Sequential,
        "random" => FileOrder::Random(Distribution::Uniform),
        _ => {
            let name = if name == "gauss" { "normal" } else { name };
            let by = io::named_distribution(name, rest)?.ok_or_else(|| {
                format!("'{name}' is not one of roundrobin, sequential, random, zipf, pareto, normal, gauss")
            })?;
            let order = FileOrder::Random(by);
            return Ok(FileService { order, run: 1 });
        }
    };
    let run = match rest {
        "" => 1,
        count => value::plain::<u32>(count)?.max(1),
    };
    Ok(FileService { order, run })
}

/// `write,wait_after:16`: what is waited for, and every how many writes.
fn sync_range(text: &str) -> Outcome<(u32, u64)> {
    let (names, count) = text.split_once(':').unwrap_or((text, ""));
    let mut flags = 0;
    for name in names.split(',') {
        flags |= match name {
            "wait_before" => libc::SYNC_FILE_RANGE_WAIT_BEFORE,
            "write" => libc::SYNC_FILE_RANGE_WRITE,
            "wait_after" => libc::SYNC_FILE_RANGE_WAIT_AFTER,
            other => {
                return Err(format!(
                    "'{other}' is not one of wait_before, write, wait_after"
                ));
            }
        };
    }
    let every = match count {
        "" => 1,
        count => value::plain(count)?,
    };
    Ok((flags, every))
}

/// What does not go with how a job's files are found and made.
pub(super) fn faults(job: &NativeJob) -> Vec<(&'static str, &'static str)> {
    let files = &job.files;
    let only_writes = job.pattern.dirs == [false, true, false];
    let faults = [
        (
            !files.trees.is_empty() && !files.directories.is_empty(),
            "opendir",
            "excludes directory",
        ),
        (
            files.append && !job.writes(),
            "file_append",
            "a job that does not write has nothing to append",
        ),
        (
            files.append && job.engine == IoEngine::Mmap,
            "file_append",
            "a mapping does not make its file longer",
        ),
        (
            files.append && job.extent.file_size.is_some(),
            "file_append",
            "excludes filesize, which says where the file ends",
        ),
        (
            files.fill && !only_writes,
            "fill_device",
            "a job that does not only write does not know when it has filled it",
        ),
        (
            files.fill && job.extent.size.is_none() && job.pattern.random,
            "fill_device",
            "needs a size for writes at random places",
        ),
        (
            files.fill && files.overwrite,
            "fill_device",
            "excludes overwrite, which lays out the file first",
        ),
    ];
    let faults = faults.into_iter().filter(|fault| fault.0);
    faults.map(|(_, option, what)| (option, what)).collect()
}
