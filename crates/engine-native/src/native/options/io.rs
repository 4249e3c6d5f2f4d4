//! What the I/Os are, how they are queued, what they carry.

use crate::native::job::{IoEngine, NativeJob, ScsiWrite, Sizes, StatCall};
use crate::native::offsets::Distribution;

use super::value::{self, OptionValue, Outcome};
use super::{OptionRow, differs, idle, pattern, same};

/// No kernel interface takes more I/Os at once (io_uring 32768, libaio as many as
/// `aio-max-nr` says: by default 65536).
const MOST_DEPTH: u32 = 1 << 20;

pub(super) const PATTERN: &[OptionRow] = &[
    differs(
        &["rw", "readwrite"],
        "with holes (`read:8k`) and several sizes or directions it begins again at the end of its extent (fio: only where the file ends there, too, and offset is 0)",
        direction,
    ),
    same(&["rw_sequencer"], |job, v| {
        job.pattern.run_stays = match v.text()? {
            "sequential" => false,
            "identical" => true,
            other => return Err(format!("'{other}' is neither sequential nor identical")),
        };
        Ok(())
    }),
    field!(["rwmixread"], pattern.read_percent = percent),
    same(&["rwmixwrite"], |job, v| {
        job.pattern.read_percent = 100 - v.percent()?;
        Ok(())
    }),
    same(&["bs", "blocksize"], |job, v| {
        job.pattern.sizes = v.triple(&job.pattern.sizes, |text| {
            Ok(Sizes::Fixed(v.block_in(text)?))
        })?;
        Ok(())
    }),
    same(&["bsrange", "blocksize_range"], |job, v| {
        job.pattern.sizes = v.triple(&job.pattern.sizes, |text| {
            let (low, high) = text
                .split_once(['-', ':'])
                .ok_or_else(|| format!("'{text}' is not a range such as 4k-64k"))?;
            Ok(Sizes::Range(v.block_in(low)?, v.block_in(high)?))
        })?;
        Ok(())
    }),
    same(&["bssplit"], |job, v| {
        job.pattern.sizes = v.triple(&job.pattern.sizes, |text| split(v, text))?;
        Ok(())
    }),
    field!(
        ["bs_unaligned", "blocksize_unaligned"],
        pattern.unaligned = flag
    ),
    field!(["bs_is_seq_rand"], pattern.sizes_by_order = flag),
    same(&["blockalign", "ba"], |job, v| {
        job.pattern.align = v.triple(&job.pattern.align, |text| Ok(Some(v.block_in(text)?)))?;
        Ok(())
    }),
    field!(["norandommap"], pattern.repetition = flag),
    idle(
        &["softrandommap"],
        "no effect: never needed, the map takes no memory for one block size",
        |_, v| v.flag().map(|_| ()),
    ),
    field!(
        ["randrepeat", "allrandrepeat"],
        pattern.repeatable = flag,
        "repeats this engine's own sequence, not fio's"
    ),
    field!(
        ["randseed"],
        pattern.seed = some number,
        "seeds this engine's own sequence"
    ),
    differs(
        &["random_generator"],
        "the engine's own generators: xoshiro256++ for tausworthe and tausworthe64; for lfsr, and where no block may come twice, a keyed bijection that, too, visits every block once before one comes again",
        |job, v| {
            job.pattern.full_cycle = match v.text()? {
                "tausworthe" | "tausworthe64" => false,
                "lfsr" => true,
                other => {
                    return Err(format!(
                        "'{other}' is not one of tausworthe, tausworthe64, lfsr"
                    ));
                }
            };
            Ok(())
        },
    ),
    differs(
        &["percentage_random"],
        "where the file ends, what is in order goes on at its start (fio: with time_based only, else at a random place)",
        |job, v| {
            job.pattern.random_percent = v.triple(&job.pattern.random_percent, value::percent)?;
            Ok(())
        },
    ),
    same(&["random_distribution"], |job, v| {
        job.pattern.distribution = distribution(v)?;
        Ok(())
    }),
];

fn direction(job: &mut NativeJob, v: OptionValue<'_>) -> Outcome<()> {
    let text = v.text()?;
    let (name, more) = text.split_once(':').unwrap_or((text, ""));
    let (random, dirs) = match name {
        "read" => (false, [true, false, false]),
        "write" => (false, [false, true, false]),
        "trim" => (false, [false, false, true]),
        "randread" => (true, [true, false, false]),
        "randwrite" => (true, [false, true, false]),
        "randtrim" => (true, [false, false, true]),
        "rw" | "readwrite" => (false, [true, true, false]),
        "randrw" => (true, [true, true, false]),
        "trimwrite" => (false, [false, true, true]),
        "randtrimwrite" => (true, [false, true, true]),
        _ => {
            return Err(format!(
                "'{name}' is not one of read, write, trim, randread, randwrite, randtrim, rw, randrw, trimwrite, randtrimwrite"
            ));
        }
    };
    (job.pattern.run, job.pattern.skip) = (1, 0);
    match (random, more) {
        (_, "") => {}
        (_, _) if name.ends_with("trimwrite") => {
            return Err(format!("'{more}': {name} takes no number"));
        }
        (true, _) => job.pattern.run = value::plain::<u32>(more)?.max(1),
        (false, _) => {
            let (sign, bytes) = match more.strip_prefix('-') {
                Some(bytes) => (-1, bytes),
                None => (1, more),
            };
            let bytes = i64::try_from(v.bytes(bytes)?).map_err(|e| e.to_string())?;
            job.pattern.skip = sign * bytes;
        }
    }
    job.pattern.random = random;
    job.pattern.dirs = dirs;
    job.pattern.trimwrite = name.ends_with("trimwrite");
    Ok(())
}

/// `4k/60:64k/30:1m` – sizes without a share divide what is left.
fn split(v: OptionValue<'_>, text: &str) -> Outcome<Sizes> {
    let mut parts: Vec<(u32, Option<u8>)> = Vec::new();
    for part in text.split(':') {
        let (size, share) = part.split_once('/').unwrap_or((part, ""));
        let share = if share.is_empty() {
            None
        } else {
            Some(value::percent(share)?)
        };
        parts.push((v.block_in(size)?, share));
    }
    let given: u32 = parts.iter().filter_map(|part| part.1).map(u32::from).sum();
    if given > 100 {
        return Err(format!("'{text}' adds up to {given} percent"));
    }
    let open = parts.iter().filter(|part| part.1.is_none()).count() as u32;
    if open == 0 && given < 100 {
        return Err(format!("'{text}' adds up to {given} percent only"));
    }
    let mut left = 100 - given;
    let mut missing = open;
    let mut upto = 0u8;
    let parts = parts.into_iter().map(|(size, share)| {
        let share = share.unwrap_or_else(|| {
            let share = left / missing.max(1);
            left -= share;
            missing -= 1;
            share as u8
        });
        upto += share;
        (size, upto)
    });
    Ok(Sizes::Split(parts.collect()))
}

/// `zipf:1.2:0.25`, `zoned:60/10:40/90`.
fn distribution(v: OptionValue<'_>) -> Outcome<[Distribution; 3]> {
    let text = v.text()?;
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    if name == "zoned" || name == "zoned_abs" {
        let zone = |text: &str| match name {
            "zoned" => zoned(text),
            _ => zoned_abs(v, text),
        };
        let default = [const { Distribution::Uniform }; 3];
        return OptionValue(Some(rest), v.1)
            .triple(&default, zone)
            .map_err(|e| format!("{text}: {e}"));
    }
    let one = match text {
        "random" => Some(Distribution::Uniform),
        _ => named_distribution(name, rest)?,
    };
    let one = one.ok_or_else(|| {
        format!("'{text}' is not one of random, zipf, pareto, normal, zoned, zoned_abs")
    })?;
    Ok([one.clone(), one.clone(), one])
}

/// `zipf:1.2:0.25`, `pareto:0.3`, `normal:20`; `None`: it has another name.
pub(super) fn named_distribution(name: &str, rest: &str) -> Outcome<Option<Distribution>> {
    let (parameter, center) = rest.split_once(':').unwrap_or((rest, ""));
    let center = match center {
        "" => None,
        center => match value::plain::<f64>(center)? {
            center if (0.0..=1.0).contains(&center) => Some(center),
            other => return Err(format!("the centre {other} is not between 0 and 1")),
        },
    };
    let parameter = |default: f64| match parameter {
        "" => Ok(default),
        text => value::plain::<f64>(text),
    };
    // The defaults of fio.h, FIO_DEF_ZIPF and FIO_DEF_PARETO.
    let known = match name {
        "zipf" => match parameter(1.1)? {
            theta if theta > 0.0 && theta <= 100.0 => Distribution::Zipf(theta, center),
            theta => return Err(format!("zipf needs a value above 0, not {theta}")),
        },
        "pareto" => match parameter(0.2)? {
            h if h > 0.0 && h < 1.0 => Distribution::Pareto(h, center),
            h => return Err(format!("pareto needs a value between 0 and 1, not {h}")),
        },
        "normal" => match parameter(0.0)? {
            deviation if (0.0..100.0).contains(&deviation) => {
                Distribution::Normal(deviation, center)
            }
            other => {
                return Err(format!(
                    "normal needs a deviation of 0 or more and below 100 percent, not {other}"
                ));
            }
        },
        _ => return Ok(None),
    };
    Ok(Some(known))
}

/// Zones as (percent of the accesses, size as written), the accesses 100 together.
fn zones(text: &str) -> Outcome<Vec<(u8, &str)>> {
    let mut zones = Vec::new();
    for zone in text.split(':').filter(|zone| !zone.is_empty()) {
        let (access, size) = zone.split_once('/').unwrap_or((zone, ""));
        zones.push((value::percent(access)?, size));
    }
    match zones.iter().map(|zone| u32::from(zone.0)).sum::<u32>() {
        100 => Ok(zones),
        sum => Err(format!("the accesses add up to {sum}, not 100 percent")),
    }
}

/// Sizes in percent; zones without one divide what the others leave, and what is left
/// over then is not used (options.c, zone_split_ddir).
fn zoned(text: &str) -> Outcome<Distribution> {
    let written = zones(text)?;
    let mut sizes = Vec::new();
    for (_, size) in &written {
        let percent = if size.is_empty() {
            0
        } else {
            value::percent(size)?
        };
        sizes.push(Some(percent).filter(|&percent| percent > 0));
    }
    let given: u32 = sizes.iter().flatten().copied().map(u32::from).sum();
    if given > 100 {
        return Err(format!("the zones add up to {given} percent"));
    }
    let open = sizes.iter().filter(|size| size.is_none()).count() as u32;
    let rest = ((100 - given) / open.max(1)) as u8;
    let zones = written.iter().zip(sizes);
    let zones = zones.map(|(&(access, _), size)| (access, size.unwrap_or(rest)));
    Ok(Distribution::Zoned(zones.collect()))
}

/// Sizes in bytes.
fn zoned_abs(v: OptionValue<'_>, text: &str) -> Outcome<Distribution> {
    let mut sized = Vec::new();
    for (access, size) in zones(text)? {
        if size.is_empty() {
            return Err(format!("'{access}' is not a zone such as 60/10g"));
        }
        sized.push((access, v.bytes(size)?));
    }
    Ok(Distribution::ZonedBytes(sized))
}

pub(super) const QUEUE: &[OptionRow] = &[
    differs(
        &["ioengine"],
        "io_uring, io_uring_cmd (generic NVMe devices such as /dev/ng0n1, judged by their block device; no trims and syncs, which fio leaves out), libaio, posixaio, psync, sync, pvsync2, mmap, sg (whole SCSI disks by their block or generic device, one command at a time; trims by the block layer), splice, falloc, ftruncate, filecreate, filestat and filedelete (one operation for each file, of one block, with lat as clat), cpuio (chunks of work, told as reads of no bytes), null",
        |job, v| {
            let text = v.text()?;
            let known = IoEngine::NAMES.iter().find(|(name, _)| *name == text);
            job.engine = known.map(|&(_, engine)| engine).ok_or_else(|| {
                format!("the native engine has no '{text}'; use --engine fio for it")
            })?;
            Ok(())
        },
    ),
    same(&["iodepth"], |job, v| {
        job.queue.depth = v.number()?;
        match job.queue.depth {
            0 => Err("at least 1".to_owned()),
            depth if depth > MOST_DEPTH => Err(format!("at most {MOST_DEPTH}")),
            _ => Ok(()),
        }
    }),
    differs(
        &["iodepth_batch_submit", "iodepth_batch"],
        "unset, a quarter of the queue is handed over in one call, up to 8 (libaio without direct=1: one at a time, as fio always does)",
        |job, v| {
            job.queue.submit = Some(v.number::<u32>()?.max(1));
            Ok(())
        },
    ),
    same(
        &["iodepth_batch_complete_min", "iodepth_batch_complete"],
        |job, v| {
            job.queue.complete_min = v.number()?;
            Ok(())
        },
    ),
    differs(
        &["iodepth_batch_complete_max"],
        "unset, as many as are handed over at once (fio: iodepth_batch_complete_min); either keeps the queue full",
        |job, v| {
            job.queue.complete_max = Some(v.number::<u32>()?.max(1));
            Ok(())
        },
    ),
    field!(["iodepth_low"], queue.low = some number),
    differs(
        &["io_submit_mode"],
        "with offload sync and posixaio call pread and pwrite; not with mmap",
        |job, v| {
            job.queue.offload = match v.text()? {
                "inline" => false,
                "offload" => true,
                other => return Err(format!("'{other}' is neither inline nor offload")),
            };
            Ok(())
        },
    ),
    field!(["readfua"], scsi.read_fua = flag),
    field!(["writefua"], scsi.write_fua = flag),
    differs(&["sg_write_mode"], "no write_stream", |job, v| {
        job.scsi.write = match v.text()? {
            "write" => ScsiWrite::Write,
            "write_and_verify" | "verify" => ScsiWrite::AndVerify,
            "write_same" | "same" => ScsiWrite::Same,
            "write_same_ndob" => ScsiWrite::SameZeros,
            "verify_bytchk_00" => ScsiWrite::VerifyMedium,
            "verify_bytchk_01" => ScsiWrite::VerifyData,
            "verify_bytchk_11" => ScsiWrite::VerifySame,
            other => return Err(format!("the native engine has no '{other}'")),
        };
        Ok(())
    }),
    same(&["stat_type"], |job, v| {
        job.stat = match v.text()? {
            "stat" => StatCall::Stat,
            "lstat" => StatCall::Lstat,
            "statx" => StatCall::Statx,
            other => return Err(format!("'{other}' is not one of stat, lstat, statx")),
        };
        Ok(())
    }),
    field!(["hipri"], queue.hipri = flag),
    field!(["hipri_percentage"], queue.poll_percent = percent),
    field!(["nowait"], queue.nowait = flag),
    differs(
        &["uncached"],
        "RWF_DONTCACHE, from Linux 6.14 on (fio 3.33: a flag that no kernel has)",
        |job, v| {
            job.queue.uncached = v.number::<u32>()? != 0;
            Ok(())
        },
    ),
    field!(["force_async"], queue.async_every = number),
    field!(["sqthread_poll"], queue.sq_poll = flag),
    field!(["sqthread_poll_cpu"], queue.sq_poll_cpu = some number),
    field!(
        ["fixedbufs"],
        queue.fixed_buffers = flag,
        "buffers are registered without it too, where the kernel takes them; with it the job fails where it does not"
    ),
    idle(
        &["cmd_type"],
        "no effect: nvme is all there is",
        |_, v| match v.text()? {
            "nvme" => Ok(()),
            other => Err(format!("'{other}' is not nvme")),
        },
    ),
    field!(
        ["serialize_overlap"],
        queue.no_overlap = flag,
        "among the I/Os of one clone (fio: with offload, of all jobs that have it)"
    ),
    idle(&["registerfiles"], "no effect: always on", |_, v| {
        v.flag().map(|_| ())
    }),
    idle(&["nonvectored"], "no effect: always on", |_, v| {
        v.flag().map(|_| ())
    }),
    differs(
        &["ioscheduler"],
        "the device gets its own scheduler back at the end",
        |job, v| {
            job.scheduler = Some(v.text()?.to_owned());
            Ok(())
        },
    ),
    idle(
        &["userspace_reap"],
        "no effect: libaio's completions are fetched by system call",
        |_, v| v.flag().map(|_| ()),
    ),
    idle(
        &["thread", "threads"],
        "no effect: jobs are always threads",
        |_, v| v.flag().map(|_| ()),
    ),
];

pub(super) const CONTENT: &[OptionRow] = &[
    field!(["refill_buffers"], content.refill = flag),
    field!(["scramble_buffers"], content.scramble = flag),
    field!(["zero_buffers"], content.zero = flag),
    differs(&["buffer_pattern"], "no file names", |job, v| {
        job.content.pattern = pattern::bytes(v.text()?)?;
        Ok(())
    }),
    same(&["buffer_compress_percentage"], |job, v| {
        job.content.compress_percent = v.percent()?;
        // options.c: asking for compressible data means filling every buffer.
        job.content.refill |= job.content.compress_percent > 0;
        Ok(())
    }),
    same(&["dedupe_percentage"], |job, v| {
        job.content.dedupe_percent = v.percent()?;
        // options.c, str_dedupe_cb.
        job.content.refill = true;
        Ok(())
    }),
    same(&["dedupe_mode"], |job, v| {
        job.content.dedupe_from_set = match v.text()? {
            "repeat" => false,
            "working_set" => true,
            other => return Err(format!("'{other}' is neither repeat nor working_set")),
        };
        Ok(())
    }),
    field!(["dedupe_global"], content.dedupe_global = flag),
    field!(
        ["dedupe_working_set_percentage"],
        content.dedupe_set_percent = percent
    ),
    field!(["buffer_compress_chunk"], content.compress_chunk = block),
];
