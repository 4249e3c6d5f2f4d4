//! The lines of fio's normal output, one function each.

use fathom_model::result::{CpuUse, LatencyTarget, PriorityResult, Spread};
use fathom_model::{Direction, DirectionResult, DiskUse, JobResult, Latency};

use super::figures::{Era, bytes, count, msec, percent, time_unit, value, whole};

/// More priorities than a job can use: they are searched one after the other.
const MOST_PRIORITIES: usize = 256;

/// `name: (groupid=0, jobs=2): err= 5 (file:…): pid=1: Tue …`.
pub fn job(line: &str) -> Option<JobResult> {
    let (name, rest) = line.split_once(": (groupid=")?;
    let (group, rest) = rest.split_once(", jobs=")?;
    let (members, rest) = rest.split_once("): err=")?;
    let error = rest.trim_start();
    let end = error
        .find(|c: char| !c.is_ascii_digit() && c != '-')
        .unwrap_or(error.len());
    Some(JobResult {
        name: name.to_owned(),
        group: group.trim().parse().ok()?,
        members: members.trim().parse().ok(),
        error: error[..end].parse().map_or(0, i32::saturating_abs),
        ..JobResult::default()
    })
}

/// `name: (g=0): rw=…`: name and group of a job that is going to run.
pub fn announced(line: &str) -> Option<(u32, &str)> {
    let (name, rest) = line.split_once(": (g=")?;
    let (group, _) = rest.split_once("): rw=")?;
    Some((group.parse().ok()?, name))
}

/// `read : io=…` (2.x), `read: IOPS=…` (3.x), and the same for the others.
pub fn direction(line: &str) -> Option<(Direction, DirectionResult)> {
    let (name, rest) = line.split_once(':')?;
    let dir = match name.trim_end() {
        "read" => Direction::Read,
        "write" => Direction::Write,
        "trim" => Direction::Trim,
        "mixed" => Direction::Mixed,
        _ => return None,
    };
    let rest = rest.trim_start();
    let result = if rest.starts_with("IOPS=") {
        let (io, runtime) = moved(rest)?;
        DirectionResult {
            io_bytes: whole(bytes(io, Era::Three)?)?,
            bw_bytes: bytes(value(rest, "BW")?, Era::Three)?,
            iops: count(value(rest, "IOPS")?)?,
            runtime_ms: msec(runtime)?,
            ..DirectionResult::default()
        }
    } else {
        DirectionResult {
            io_bytes: whole(bytes(value(rest, "io")?, Era::Two)?)?,
            bw_bytes: bytes(value(rest, "bw")?, Era::Two)?,
            // fio 1.x does not print it always.
            iops: value(rest, "iops").and_then(count).unwrap_or(0.0),
            runtime_ms: msec(value(rest, "runt")?)?,
            ..DirectionResult::default()
        }
    };
    Some((dir, result))
}

/// The last bracket of a 3.x line: `(800KiB/1001msec)`.
fn moved(line: &str) -> Option<(&str, &str)> {
    let end = line.find("msec)")? + "msec".len();
    let begin = line[..end].rfind('(')? + 1;
    line[begin..end].split_once('/')
}

/// What latencies are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatencyKind {
    /// Of the native engine only.
    Lag,
    Submission,
    Completion,
    Total,
    Sync,
    /// Of one priority, with the kernel's value.
    Priority(u16),
}

/// From `clat`, `lat prio 1/3`, `high prio_clat`, `high prio (12.00%) clat`.
fn kind(label: &str) -> Option<LatencyKind> {
    let label = label.trim();
    if let Some(rest) = label.strip_prefix("high prio") {
        // fio 3.18 to 3.28 knew class RT and the others only.
        return rest
            .ends_with("lat")
            .then_some(LatencyKind::Priority(1 << 13));
    }
    if let Some(rest) = label.strip_prefix("low prio") {
        return rest.ends_with("lat").then_some(LatencyKind::Priority(0));
    }
    if let Some((_, priority)) = label.split_once("lat prio ") {
        let priority = priority.split(' ').next().unwrap_or(priority);
        let mut parts = priority.split('/').map(|part| part.parse::<u16>().ok());
        let (class, level) = (parts.next()??, parts.next()??);
        let hint = parts.next().flatten().unwrap_or(0);
        let value = (class & 0x7) << 13 | (hint & 0x3ff) << 3 | (level & 0x7);
        return Some(LatencyKind::Priority(value));
    }
    Some(match label {
        "lag" => LatencyKind::Lag,
        "slat" => LatencyKind::Submission,
        "clat" => LatencyKind::Completion,
        "lat" => LatencyKind::Total,
        "sync" => LatencyKind::Sync,
        _ => return None,
    })
}

/// `clat (usec): min=1, max=5581, avg=100.62, stdev=18.40`.
pub fn latency(line: &str) -> Option<(LatencyKind, Latency)> {
    let (label, figures) = line.split_once("): ")?;
    let (label, unit) = label.rsplit_once('(')?;
    let (kind, unit) = (kind(label)?, time_unit(unit)?);
    let ns = |name| Some(count(value(figures, name)?)? * unit);
    let latency = Latency {
        min_ns: whole(ns("min")?)?,
        max_ns: whole(ns("max")?)?,
        mean_ns: ns("avg")?,
        stddev_ns: ns("stdev"),
        ..Latency::default()
    };
    Some((kind, latency))
}

/// `clat percentiles (usec):` and its like: of what, and ns a unit.
pub fn percentiles_of(line: &str) -> Option<(LatencyKind, f64)> {
    let (label, unit) = line.split_once(" percentiles (")?;
    let unit = time_unit(unit.strip_suffix("):")?)?;
    Some((kind(label)?, unit))
}

/// `| 1.00th=[   66], 5.00th=[   88], …`.
pub fn percentiles(line: &str, unit: f64) -> Vec<(f64, u64)> {
    line.trim_start_matches('|')
        .split(',')
        .filter_map(|entry| {
            let (percent, value) = entry.trim().split_once("th=[")?;
            let value: f64 = value.trim_end_matches(']').trim().parse().ok()?;
            let percent: f64 = percent.parse().ok()?;
            let is_percent = percent > 0.0 && percent <= 100.0;
            Some((percent, whole(value * unit)?)).filter(|_| is_percent)
        })
        .collect()
}

/// `bw (KB /s): min=…`, `bw (  KiB/s): min=…` in bytes per second; `iops : min=…`.
pub fn intervals(line: &str) -> Option<(bool, Spread)> {
    let (label, figures) = line.split_once(": ")?;
    let (is_bandwidth, scale) = match label.trim_end().strip_prefix("bw (") {
        None if label.trim_end() == "iops" => (false, 1.0),
        None => return None,
        Some(unit) => {
            let unit: String = unit.chars().filter(|c| !c.is_whitespace()).collect();
            let unit = unit.strip_suffix(')')?;
            // `KB` is 2.x's; 3.x with kb_base=1000 writes `kB`, and `MiB` for MB.
            let era = if unit.contains('i') || unit.starts_with('k') {
                Era::Three
            } else {
                Era::Two
            };
            (true, bytes(&format!("1{unit}"), era)?)
        }
    };
    let spread = Spread {
        n: value(figures, "samples").and_then(|n| n.parse().ok()),
        min: count(value(figures, "min")?)? * scale,
        max: count(value(figures, "max")?)? * scale,
        mean: count(value(figures, "avg")?)? * scale,
        stddev: value(figures, "stdev")
            .and_then(count)
            .map(|dev| dev * scale),
    };
    Some((is_bandwidth, spread))
}

/// `cpu : usr=8.43%, sys=24.57%, ctx=1220128, majf=0, minf=65`.
pub fn cpu(line: &str) -> Option<CpuUse> {
    let figures = after_label(line, "cpu")?;
    let number = |name| value(figures, name)?.parse().ok();
    Some(CpuUse {
        user_percent: percent(value(figures, "usr")?)?,
        system_percent: percent(value(figures, "sys")?)?,
        context_switches: number("ctx")?,
        major_faults: number("majf")?,
        minor_faults: number("minf")?,
    })
}

/// `IO depths : 1=100.0%, 2=0.0%, …, >=64=0.0%`.
pub fn depths(line: &str) -> Option<Vec<(String, f64)>> {
    let figures = after_label(line, "IO depths")?;
    let levels = figures.split(',').filter_map(|entry| {
        let (name, value) = entry.trim().rsplit_once('=')?;
        Some((name.to_owned(), percent(value)?))
    });
    Some(levels.collect())
}

/// What follows `label   :`.
pub fn after_label<'l>(line: &'l str, label: &str) -> Option<&'l str> {
    let rest = line.strip_prefix(label)?.trim_start();
    Some(rest.strip_prefix(':')?.trim_start())
}

/// Counts of reads, writes, trims of one kind.
type Counts = [Option<u64>; 3];

/// I/Os issued: total, short, dropped.
pub struct IssuedIos {
    pub total: Counts,
    pub short: Counts,
    pub dropped: Counts,
}

/// `issued rwts: total=200,201,0,47 short=0,0,0,0 dropped=0,0,0,0` (3.x),
/// `issued rwt: total=1,2,3, short=…` and
/// `issued : total=r=1/w=2/d=3, short=r=0/w=0/d=0` (2.x).
pub fn issued(line: &str) -> Option<IssuedIos> {
    let rest = line.strip_prefix("issued")?;
    let of = |names: &[&str]| -> Counts {
        let found = names.iter().find_map(|name| {
            let at = rest.find(&format!("{name}="))?;
            Some(&rest[at + name.len() + 1..])
        });
        let mut counts = [None; 3];
        let Some(text) = found else { return counts };
        let end = text.find(' ').unwrap_or(text.len());
        let parts = text[..end]
            .split([',', '/'])
            .filter(|part| !part.is_empty());
        for (place, part) in counts.iter_mut().zip(parts) {
            *place = part.trim_start_matches(['r', 'w', 'd', '=']).parse().ok();
        }
        counts
    };
    let issued = IssuedIos {
        total: of(&["total"]),
        short: of(&["short"]),
        dropped: of(&["dropped", "drop"]),
    };
    issued.total[0].is_some().then_some(issued)
}

/// `errors : total=288, first_error=5/<Input/output error>`.
pub fn errors(line: &str) -> Option<(u64, i32)> {
    let figures = after_label(line, "errors")?;
    let first = value(figures, "first_error")?
        .split('/')
        .next()?
        .parse()
        .ok()?;
    Some((value(figures, "total")?.parse().ok()?, first))
}

/// `latency   : target=5000000, window=200000, percentile=99.50%, depth=16`, with a
/// target of 0 where there is none.
pub fn latency_target(line: &str) -> Option<LatencyTarget> {
    let figures = after_label(line, "latency")?;
    let number = |name| value(figures, name)?.parse::<u64>().ok();
    let percentile = value(figures, "percentile")?.strip_suffix('%')?;
    Some(LatencyTarget {
        depth: number("depth")?.try_into().ok()?,
        target_ns: number("target").filter(|&ns| ns > 0)?,
        percentile: percentile.parse().ok().filter(|p: &f64| p.is_finite())?,
        window_us: number("window")?,
    })
}

/// `steadystate : attained=yes, bw=…, iops=400, iops mean dev=0.125%`, under
/// the names fio's JSON has.
pub fn steady_state(line: &str) -> Option<serde_json::Value> {
    let figures = after_label(line, "steadystate")?;
    let attained = u8::from(value(figures, "attained")? == "yes");
    let (rule, criterion) = figures.rsplit_once(", ")?.1.rsplit_once('=')?;
    let iops_mean = value(figures, "iops").and_then(count);
    Some(serde_json::json!({
        "attained": attained,
        "ss": rule,
        "criterion": criterion,
        "data": { "iops_mean": iops_mean },
    }))
}

/// `Run status group 5 (all jobs):`.
pub fn group_begins(line: &str) -> Option<u32> {
    let rest = line.strip_prefix("Run status group ")?;
    rest.split(' ').next()?.parse().ok()
}

/// A group's line: `READ: io=…, aggrb=…` (2.x), `READ: bw=…, io=…, run=…` (3.x).
pub fn group(line: &str) -> Option<(Direction, DirectionResult)> {
    let (name, rest) = line.split_once(": ")?;
    let dir = match name {
        "READ" => Direction::Read,
        "WRITE" => Direction::Write,
        "TRIM" => Direction::Trim,
        "MIXED" => Direction::Mixed,
        _ => return None,
    };
    let (era, bw, runtime) = match value(rest, "aggrb") {
        Some(bw) => (Era::Two, bw, msec(value(rest, "maxt")?)?),
        None => {
            let run = value(rest, "run")?;
            (
                Era::Three,
                value(rest, "bw")?,
                msec(run.split_once('-')?.1)?,
            )
        }
    };
    let result = DirectionResult {
        io_bytes: whole(bytes(value(rest, "io")?, era)?)?,
        bw_bytes: bytes(bw, era)?,
        runtime_ms: runtime,
        ..DirectionResult::default()
    };
    Some((dir, result))
}

/// `vda: ios=178/263, merge=0/0, ticks=12/28, in_queue=41, util=0.00%`.
pub fn disk(line: &str) -> Option<DiskUse> {
    let (name, rest) = line.split_once(": ios=")?;
    let rest = format!("ios={rest}");
    let pair = |key| -> Option<(u64, u64)> {
        let (read, write) = value(&rest, key)?.split_once('/')?;
        Some((read.parse().ok()?, write.parse().ok()?))
    };
    let ((read_ios, write_ios), merges, ticks) = (pair("ios")?, pair("merge")?, pair("ticks")?);
    Some(DiskUse {
        name: name.to_owned(),
        read_ios,
        write_ios,
        read_merges: merges.0,
        write_merges: merges.1,
        read_ticks_ms: ticks.0,
        write_ticks_ms: ticks.1,
        in_queue_ms: value(&rest, "in_queue")?.parse().ok()?,
        util_percent: percent(value(&rest, "util")?)?,
        ..DiskUse::default()
    })
}

/// Puts a latency where it belongs.
pub fn place(job: &mut JobResult, dir: Direction, kind: LatencyKind, latency: Latency) {
    if kind == LatencyKind::Sync {
        job.sync = Some(latency);
    } else if let Some(Some(result)) = job.direction_mut(dir) {
        match kind {
            LatencyKind::Lag => result.lag = Some(latency),
            LatencyKind::Submission => result.slat = Some(latency),
            LatencyKind::Completion => result.clat = Some(latency),
            LatencyKind::Total => result.lat = Some(latency),
            LatencyKind::Priority(value) if result.priorities.len() < MOST_PRIORITIES => {
                result.priorities.push(PriorityResult {
                    value,
                    clat: latency,
                });
            }
            LatencyKind::Priority(_) | LatencyKind::Sync => {}
        }
    }
}

/// The latency that percentiles of `kind` belong to.
pub fn placed(job: &mut JobResult, dir: Direction, kind: LatencyKind) -> Option<&mut Latency> {
    if kind == LatencyKind::Sync {
        return job.sync.as_mut();
    }
    let result = job.direction_mut(dir)?.as_mut()?;
    match kind {
        LatencyKind::Lag => result.lag.as_mut(),
        LatencyKind::Submission => result.slat.as_mut(),
        LatencyKind::Completion => result.clat.as_mut(),
        LatencyKind::Total => result.lat.as_mut(),
        LatencyKind::Priority(value) => {
            let prio = result.priorities.iter_mut().find(|p| p.value == value)?;
            Some(&mut prio.clat)
        }
        LatencyKind::Sync => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_of_every_age_are_read() {
        let plain = "vda: ios=178/263, merge=1/2, ticks=12/28, in_queue=41, util=0.50%";
        let newer =
            "vda: ios=178/263, sectors=9/8, merge=1/2, ticks=12/28, in_queue=41, util=0.50%";
        let over_others = format!("{plain}, aggrios=7/7, aggrmerge=7/7, aggrutil=7.00%");
        let expected = disk(plain).unwrap();
        assert_eq!((expected.read_ios, expected.write_merges), (178, 2));
        assert_eq!(disk(newer).as_ref(), Some(&expected));
        assert_eq!(disk(&over_others).as_ref(), Some(&expected));
    }

    #[test]
    fn priorities_of_every_age_are_read() {
        let kinds = [
            ("clat prio 0/0", 0),
            ("lat prio 1/3", 0x2003),
            ("clat prio 2/4/5", 0x4000 | 5 << 3 | 4),
            ("clat prio 1/3 (26.75% of IOs)", 0x2003),
            ("high prio_clat", 0x2000),
            ("low prio (70.00%) lat", 0),
        ];
        for (label, value) in kinds {
            assert_eq!(kind(label), Some(LatencyKind::Priority(value)), "{label}");
        }
        assert_eq!(kind("block lifetime"), None);
    }

    #[test]
    fn groups_of_every_age_are_read() {
        let two = "READ: io=4768.1MB, aggrb=67823KB/s, minb=67823KB/s, maxb=67823KB/s, mint=72001msec, maxt=72002msec";
        let (dir, result) = group(two).unwrap();
        assert_eq!((dir, result.runtime_ms), (Direction::Read, 72002));
        assert_eq!(result.bw_bytes, 67823.0 * 1024.0);
        let three = "WRITE: bw=803KiB/s (822kB/s), 401KiB/s-401KiB/s (411kB/s-411kB/s), io=804KiB (823kB), run=1001-1002msec";
        let (dir, result) = group(three).unwrap();
        assert_eq!((dir, result.runtime_ms), (Direction::Write, 1002));
        assert_eq!(result.io_bytes, 804 * 1024);
    }
}
