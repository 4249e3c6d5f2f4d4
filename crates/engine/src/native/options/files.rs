//! The files: names, how they are made, opened and synced.

use crate::jobfile::split_names;
use crate::native::job::{Advise, Fallocate, FileService, OpenSync};

use super::{OptionRow, differs, idle, same};

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
    same(&["nrfiles", "nr_files"], |job, v| {
        job.files.count = v.number::<u32>()?.max(1);
        Ok(())
    }),
    differs(
        &["file_service_type"],
        "roundrobin, sequential, random; no counts",
        |job, v| {
            job.files.service = match v.text()? {
                "roundrobin" => FileService::RoundRobin,
                "sequential" => FileService::Sequential,
                "random" => FileService::Random,
                other => {
                    return Err(format!(
                        "'{other}' is not one of roundrobin, sequential, random"
                    ));
                }
            };
            Ok(())
        },
    ),
    same(&["direct"], |job, v| {
        job.files.direct = v.flag()?;
        Ok(())
    }),
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
    same(&["fsync"], |job, v| {
        job.files.fsync_every = v.number()?;
        Ok(())
    }),
    same(&["fdatasync"], |job, v| {
        job.files.fdatasync_every = v.number()?;
        Ok(())
    }),
    same(&["end_fsync"], |job, v| {
        job.files.end_fsync = v.flag()?;
        Ok(())
    }),
    same(&["fsync_on_close"], |job, v| {
        job.files.fsync_on_close = v.flag()?;
        Ok(())
    }),
    same(&["create_on_open"], |job, v| {
        job.files.create_on_open = v.flag()?;
        Ok(())
    }),
    same(&["create_fsync"], |job, v| {
        job.files.create_fsync = v.flag()?;
        Ok(())
    }),
    same(&["allow_file_create"], |job, v| {
        job.files.allow_create = v.flag()?;
        Ok(())
    }),
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
    same(&["invalidate"], |job, v| {
        job.files.invalidate = v.flag()?;
        Ok(())
    }),
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
    same(&["unlink"], |job, v| {
        job.files.unlink = v.flag()?;
        Ok(())
    }),
    same(&["overwrite"], |job, v| {
        job.files.overwrite = v.flag()?;
        Ok(())
    }),
];
