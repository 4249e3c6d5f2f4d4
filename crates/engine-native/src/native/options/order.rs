//! How much, how long, how fast; the order of jobs; errors, priorities.

use std::time::Duration;

use fathom_model::value::BareTimeUnit;

use super::value::{self, OptionValue, Outcome};
use super::{OptionRow, differs, idle, same};
use crate::native::job::{ExitWhat, SteadyMetric, SteadyRule};
use crate::native::numa::{MemoryPolicy, NodeList};

pub(super) const TIMES: &[OptionRow] = &[
    field!(
        ["size"],
        extent.size = some amount,
        "beyond a device's end it is refused, not cut"
    ),
    field!(["io_size", "io_limit"], extent.io_size = some amount),
    same(&["filesize"], |job, v| {
        job.extent.file_size = Some(v.range(|part| v.bytes(part))?).filter(|range| range.1 > 0);
        Ok(())
    }),
    field!(["offset", "fileoffset"], extent.offset = some amount),
    same(&["offset_align"], |job, v| {
        job.extent.offset_align = Some(v.number::<u64>()?.max(1));
        Ok(())
    }),
    field!(["offset_increment"], extent.offset_increment = some amount),
    same(&["loops"], |job, v| {
        job.extent.loops = v.number::<u64>()?.max(1);
        Ok(())
    }),
    same(&["number_ios"], |job, v| {
        job.extent.number_ios = Some(v.number::<u64>()?).filter(|&n| n > 0);
        Ok(())
    }),
    same(&["runtime", "timeout"], |job, v| {
        job.times.runtime = Some(v.time(BareTimeUnit::Seconds)?).filter(|time| !time.is_zero());
        Ok(())
    }),
    field!(["time_based"], times.time_based = flag),
    same(&["ramp_time"], |job, v| {
        job.times.ramp = v.time(BareTimeUnit::Seconds)?;
        Ok(())
    }),
    same(&["startdelay"], |job, v| {
        job.times.start_delay = v.range(|part| value::time(part, BareTimeUnit::Seconds))?;
        Ok(())
    }),
    differs(
        &["rate"],
        "lat counts from the intended start of each I/O, slat and clat from its issue; lag, what lies between, is told beside them; an I/O that is late is not skipped",
        |job, v| {
            job.pace.bytes_per_second = rates(v)?;
            Ok(())
        },
    ),
    differs(&["rate_iops"], "as rate", |job, v| {
        job.pace.ios_per_second = rates(v)?;
        Ok(())
    }),
    field!(
        ["rate_ignore_thinktime"],
        pace.forgets_think = flag,
        "of all directions (fio: of the last one before the pause)"
    ),
    same(&["rate_process"], |job, v| {
        job.pace.poisson = match v.text()? {
            "linear" => false,
            "poisson" => true,
            other => return Err(format!("'{other}' is neither linear nor poisson")),
        };
        Ok(())
    }),
    same(&["rate_min", "ratemin"], |job, v| {
        job.pace.least_bytes_per_second = rates(v)?;
        Ok(())
    }),
    same(&["rate_iops_min"], |job, v| {
        job.pace.least_ios_per_second = rates(v)?;
        Ok(())
    }),
    same(&["rate_cycle", "ratecycle"], |job, v| {
        job.pace.cycle = Duration::from_millis(v.number()?);
        Ok(())
    }),
    same(&["max_latency"], |job, v| {
        let one = |text: &str| value::time(text, BareTimeUnit::Micros).map(Some);
        let limits = v.triple(&[None; 3], one)?;
        job.pace.max_latency = limits.map(|limit| limit.filter(|limit| !limit.is_zero()));
        Ok(())
    }),
    same(&["latency_target"], |job, v| {
        let target = v.time(BareTimeUnit::Micros)?;
        job.latency.target = Some(target).filter(|time| !time.is_zero());
        Ok(())
    }),
    same(&["latency_window"], |job, v| {
        job.latency.window = v.time(BareTimeUnit::Micros)?;
        Ok(())
    }),
    same(&["latency_percentile"], |job, v| {
        job.latency.percent = value::plain(v.text()?)?;
        match job.latency.percent {
            0.0..=100.0 => Ok(()),
            other => Err(format!("{other} is not a percentile")),
        }
    }),
    field!(["latency_run"], latency.goes_on = flag),
    same(&["flow"], |job, v| {
        job.pace.flow = v.number()?;
        match job.pace.flow {
            // flow.h, FLOW_MAX_WEIGHT.
            0..=1000 => Ok(()),
            other => Err(format!("{other} is more than 1000")),
        }
    }),
    field!(["flow_id"], pace.flow_id = number),
    same(&["flow_sleep"], |job, v| {
        job.pace.flow_sleep = v.time(BareTimeUnit::Micros)?;
        Ok(())
    }),
    same(&["thinktime"], |job, v| {
        job.pace.think = v.time(BareTimeUnit::Micros)?;
        Ok(())
    }),
    same(&["thinktime_blocks"], |job, v| {
        job.pace.think_blocks = Some(v.number::<u64>()?.max(1));
        Ok(())
    }),
    same(&["thinktime_blocks_type"], |job, v| {
        job.pace.think_by_issue = match v.text()? {
            "complete" => false,
            "issue" => true,
            other => return Err(format!("'{other}' is neither complete nor issue")),
        };
        Ok(())
    }),
    same(&["thinktime_iotime"], |job, v| {
        job.pace.think_every = v.time(BareTimeUnit::Seconds)?;
        Ok(())
    }),
    same(&["thinktime_spin"], |job, v| {
        job.pace.think_spin = v.time(BareTimeUnit::Micros)?;
        Ok(())
    }),
];

/// `read,write,trim`; 0 and what is left out have no limit.
fn rates(v: OptionValue<'_>) -> Outcome<[Option<u64>; 3]> {
    let text = v.text()?;
    let mut rates = [None; 3];
    let parts: Vec<_> = text.split(',').collect();
    if parts.len() > 3 {
        return Err(format!(
            "'{text}' has more than the three values of read, write and trim"
        ));
    }
    for (place, rate) in rates.iter_mut().enumerate() {
        let part = if parts.len() == 1 {
            Some(&parts[0])
        } else {
            parts.get(place)
        };
        if let Some(part) = part.filter(|part| !part.trim().is_empty()) {
            *rate = Some(v.bytes(part)?).filter(|&rate| rate > 0);
        }
    }
    Ok(rates)
}

pub(super) const STEADY: &[OptionRow] = &[
    differs(
        &["steadystate", "ss"],
        "iops, bw and lat (the mean clat, in percent only), each with _slope; a window without I/O is never steady",
        |job, v| {
            job.steady = Some(steady_rule(v.text()?)?);
            Ok(())
        },
    ),
    same(&["steadystate_duration", "ss_dur"], |job, v| {
        job.steady_seconds = v.time(BareTimeUnit::Seconds)?.as_secs();
        Ok(())
    }),
    same(&["steadystate_ramp_time", "ss_ramp"], |job, v| {
        job.steady_ramp = v.time(BareTimeUnit::Seconds)?;
        Ok(())
    }),
];

/// `iops:5%`, `bw_slope:0.3`.
fn steady_rule(text: &str) -> Outcome<SteadyRule> {
    let (name, limit) = text
        .split_once(':')
        .ok_or_else(|| format!("'{text}' has no limit, as iops:5%"))?;
    let (metric, slope) = match name {
        "iops" => (SteadyMetric::Iops, false),
        "iops_slope" => (SteadyMetric::Iops, true),
        "bw" => (SteadyMetric::Bw, false),
        "bw_slope" => (SteadyMetric::Bw, true),
        "lat" => (SteadyMetric::Lat, false),
        "lat_slope" => (SteadyMetric::Lat, true),
        _ => {
            return Err(format!(
                "'{name}' is not one of iops, bw, lat, iops_slope, bw_slope, lat_slope"
            ));
        }
    };
    let (number, percent) = match limit.strip_suffix('%') {
        Some(number) => (number, true),
        None if metric == SteadyMetric::Lat => return Err(format!("'{limit}' is not in percent")),
        None => (limit, false),
    };
    match value::plain::<f64>(number)? {
        limit if limit >= 0.0 => Ok(SteadyRule {
            metric,
            slope,
            limit,
            percent,
        }),
        limit => Err(format!("{limit} is no limit")),
    }
}

pub(super) const ORDER: &[OptionRow] = &[
    same(&["numjobs"], |job, v| {
        job.order.clones = v.number()?;
        match job.order.clones {
            0 => Err("at least 1".to_owned()),
            // fio's REAL_MAX_JOBS (os/os.h).
            4097.. => Err("at most 4096".to_owned()),
            _ => Ok(()),
        }
    }),
    field!(["stonewall", "wait_for_previous"], order.stonewall = flag),
    same(&["wait_for"], |job, v| {
        job.order.wait_for = Some(v.text()?.to_owned());
        Ok(())
    }),
    differs(
        &["exec_prerun"],
        "all that it prints is in NAME.prerun.txt, of several commands, too; that it failed is told",
        |job, v| {
            job.order.before = Some(v.text()?.to_owned());
            Ok(())
        },
    ),
    differs(
        &["exec_postrun"],
        "as exec_prerun; the job's logs are whole when the run is over, not before",
        |job, v| {
            job.order.after = Some(v.text()?.to_owned());
            Ok(())
        },
    ),
    field!(["new_group"], order.new_group = flag),
    field!(["exitall"], order.exit_all = flag),
    field!(
        ["exitall_on_error", "exit_all_on_error"],
        order.exit_all_on_error = flag
    ),
    same(&["exit_what"], |job, v| {
        job.order.exit_what = match v.text()? {
            "group" => ExitWhat::Group,
            "stonewall" => ExitWhat::Stonewall,
            "all" => ExitWhat::All,
            other => return Err(format!("'{other}' is not one of group, stonewall, all")),
        };
        Ok(())
    }),
    idle(
        &["error_dump"],
        "no effect: every error that is not gone past is told",
        |_, v| v.flag().map(|_| ()),
    ),
    idle(
        &["create_serialize"],
        "no effect: files are made one after the other, before all jobs",
        |_, v| v.flag().map(|_| ()),
    ),
    same(&["nice"], |job, v| {
        job.nice = Some(value::plain::<i32>(v.text()?)?);
        match job.nice {
            Some(-20..=19) => Ok(()),
            _ => Err("a nice value is between -20 and 19".to_owned()),
        }
    }),
    differs(
        &["numa_cpu_nodes"],
        "nodes and ranges with commas, or all; fails where there is no such node",
        |job, v| {
            job.numa.cpu_nodes = Some(nodes(v.text()?)?);
            Ok(())
        },
    ),
    differs(
        &["numa_mem_policy"],
        "as numa_cpu_nodes; the job's buffers follow it",
        |job, v| {
            job.numa.memory = Some(memory_policy(v.text()?)?);
            Ok(())
        },
    ),
    differs(
        &["continue_on_error"],
        "a failed I/O is not counted as done",
        |job, v| {
            let (io, verify) = match v.0.map(str::trim) {
                None | Some("" | "1" | "all") => ([true; 3], true),
                Some("io") => ([true; 3], false),
                Some("0" | "none") => ([false; 3], false),
                Some("verify") => ([false; 3], true),
                Some("read") => ([true, false, false], false),
                Some("write") => ([false, true, true], false),
                Some(other) => {
                    return Err(format!(
                        "'{other}' is not one of none, read, write, io, verify, all"
                    ));
                }
            };
            (job.errors.go_on, job.errors.go_on_verify) = (io, verify);
            Ok(())
        },
    ),
    differs(
        &["ignore_error"],
        "a failed I/O is not counted as done; errors by number or by name, such as EIO, ENOSPC or ETIME",
        |job, v| {
            let mut lists: [Vec<i32>; 3] = Default::default();
            for (place, list) in v.text()?.split(',').enumerate() {
                let into = lists.get_mut(place).ok_or("more than three lists")?;
                for error in list.split(':').filter(|error| !error.is_empty()) {
                    into.push(errno(error)?);
                }
            }
            let [read, write, verify] = lists;
            job.errors.ignore = [read, write.clone(), write, verify];
            Ok(())
        },
    ),
    same(&["cpus_allowed"], |job, v| {
        job.cpus = Some(number_list(v.text()?)?);
        Ok(())
    }),
    same(&["cpumask"], |job, v| {
        let mask: u32 = v.number()?;
        let cpus = (0..32).filter(|cpu| mask >> cpu & 1 == 1);
        job.cpus = Some(cpus.collect()).filter(|_| mask != 0);
        Ok(())
    }),
    same(&["cpus_allowed_policy"], |job, v| {
        job.cpus_split = match v.text()? {
            "shared" => false,
            "split" => true,
            other => return Err(format!("'{other}' is neither shared nor split")),
        };
        Ok(())
    }),
    same(&["prio"], |job, v| {
        let level = level(v.text()?)?;
        let old = job.priority.thread.unwrap_or(0);
        job.priority.thread = Some(old & !7 | u16::from(level));
        Ok(())
    }),
    same(&["prioclass"], |job, v| {
        let class = class(v.text()?)?;
        let old = job.priority.thread.unwrap_or(0);
        job.priority.thread = Some(old & 0x1fff | u16::from(class) << 13);
        Ok(())
    }),
    same(&["priohint"], |job, v| {
        let hint = hint(v.text()?)?;
        let old = job.priority.thread.unwrap_or(0);
        job.priority.thread = Some(old & !(0x3ff << 3) | hint << 3);
        Ok(())
    }),
    same(&["cmdprio_percentage"], |job, v| {
        job.priority.percent = v.triple(&job.priority.percent, value::percent)?;
        Ok(())
    }),
    same(&["cmdprio_class"], |job, v| {
        job.priority.class = v.triple(&job.priority.class, class)?;
        Ok(())
    }),
    same(&["cmdprio"], |job, v| {
        job.priority.level = v.triple(&job.priority.level, level)?;
        Ok(())
    }),
    same(&["cmdprio_hint"], |job, v| {
        job.priority.hint = v.triple(&job.priority.hint, hint)?;
        Ok(())
    }),
    same(&["cmdprio_bssplit"], |job, v| {
        job.priority.split = v.triple(&job.priority.split, |text| prio_split(v, text))?;
        Ok(())
    }),
];

fn errno(text: &str) -> Outcome<i32> {
    let known = match text {
        "EIO" => libc::EIO,
        "ENOSPC" => libc::ENOSPC,
        "EAGAIN" => libc::EAGAIN,
        "EINVAL" => libc::EINVAL,
        "ETIME" => libc::ETIME,
        "ETIMEDOUT" => libc::ETIMEDOUT,
        "ENODATA" => libc::ENODATA,
        "EILSEQ" => libc::EILSEQ,
        "EREMOTEIO" => libc::EREMOTEIO,
        "ENOMEM" => libc::ENOMEM,
        _ => value::plain(text)
            .map_err(|_| format!("'{text}' is no error this engine knows; give its number"))?,
    };
    Ok(known)
}

/// `0-3,8`: CPUs, or nodes.
pub(in crate::native) fn number_list(text: &str) -> Outcome<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.split([',', ':']) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (value::plain(first)?, value::plain(last)?);
        // CPU_SETSIZE of the C library.
        if first > last || last >= 1024 {
            return Err(format!("'{part}' is not a range of numbers below 1024"));
        }
        numbers.extend(first..=last);
    }
    Ok(numbers)
}

fn nodes(text: &str) -> Outcome<NodeList> {
    match text {
        "all" => Ok(NodeList::All),
        _ if text.contains(':') => Err(format!("'{text}' is not a list of nodes")),
        _ => Ok(NodeList::These(number_list(text)?)),
    }
}

/// `prefer:1`, `bind:0-1` (options.c, str_numa_mpol_cb).
fn memory_policy(text: &str) -> Outcome<MemoryPolicy> {
    let (name, list) = match text.split_once(':') {
        Some((name, list)) => (name, Some(nodes(list)?)),
        None => (text, None),
    };
    match (name, list) {
        ("default", None) => Ok(MemoryPolicy::Default),
        ("local", None) => Ok(MemoryPolicy::Local),
        ("default" | "local", Some(_)) => Err(format!("{name} takes no nodes")),
        ("prefer", Some(NodeList::These(nodes))) if nodes.len() == 1 => {
            Ok(MemoryPolicy::Prefer(nodes[0]))
        }
        ("prefer", _) => Err("prefer needs one node, as prefer:0".to_owned()),
        ("bind", Some(nodes)) => Ok(MemoryPolicy::Bind(nodes)),
        ("bind", None) => Err("bind needs nodes, as bind:0-1".to_owned()),
        ("interleave", nodes) => Ok(MemoryPolicy::Interleave(nodes.unwrap_or(NodeList::All))),
        _ => Err(format!(
            "'{name}' is not one of default, prefer, bind, interleave, local"
        )),
    }
}

fn class(text: &str) -> Outcome<u8> {
    match value::plain::<u8>(text)? {
        class @ 0..=3 => Ok(class),
        other => Err(format!("{other} is not one of the classes 0 to 3")),
    }
}

fn level(text: &str) -> Outcome<u8> {
    match value::plain::<u8>(text)? {
        level @ 0..=7 => Ok(level),
        other => Err(format!("{other} is not one of the levels 0 to 7")),
    }
}

fn hint(text: &str) -> Outcome<u16> {
    // CDL limits are hints 1 to 7 (include/uapi/linux/ioprio.h); DLDn is how fio's docs call them.
    match value::plain::<u16>(text)? {
        hint @ 0..=1023 => Ok(hint),
        other => Err(format!("{other} is not one of the hints 0 to 1023")),
    }
}

/// The kernel's value of a priority.
pub(in crate::native) fn priority(class: u8, level: u8, hint: u16) -> u16 {
    u16::from(class) << 13 | hint << 3 | u16::from(level)
}

/// `bs/%`, `bs/%/class/level`, `bs/%/class/level/hint`, joined by colons. Without
/// a class the class is 1, real time, as with `cmdprio_percentage`.
fn prio_split(v: OptionValue<'_>, text: &str) -> Outcome<Vec<(u32, u8, u16)>> {
    let mut parts = Vec::new();
    for part in text.split(':') {
        let fields: Vec<_> = part.split('/').collect();
        let (class, level, hint) = match fields.len() {
            2 => (None, 0, 0),
            4 => (Some(class(fields[2])?), level(fields[3])?, 0),
            5 => (Some(class(fields[2])?), level(fields[3])?, hint(fields[4])?),
            _ => {
                return Err(format!(
                    "'{part}' is not one of bs/%, bs/%/class/level, bs/%/class/level/hint"
                ));
            }
        };
        let value = class.map_or(USE_CMDPRIO, |class| priority(class, level, hint));
        parts.push((v.block_in(fields[0])?, value::percent(fields[1])?, value));
    }
    for (size, ..) in &parts {
        let sum: u32 = parts
            .iter()
            .filter(|part| part.0 == *size)
            .map(|part| u32::from(part.1))
            .sum();
        if sum > 100 {
            return Err(format!("block size {size} adds up to {sum} percent"));
        }
    }
    Ok(parts)
}

/// In a split: the priority of `cmdprio_class`, `cmdprio` and `cmdprio_hint`.
/// No priority has this value: the class has two bits that count, and level 7
/// with all hints of class 7 does not exist.
pub(in crate::native) const USE_CMDPRIO: u16 = u16::MAX;
