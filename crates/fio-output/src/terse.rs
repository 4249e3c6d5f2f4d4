//! fio's terse (`--minimal`) output, versions 2 to 5.
//!
//! A line a job, fields between semicolons (`stat.c`,
//! `show_thread_status_terse_all`): header, one block of fields for each
//! direction, a tail, then what may follow: disks, errors, a description. How
//! many directions there are is not said; a direction begins with a plain
//! number and the tail with a percentage.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use fathom_model::result::{CpuUse, Spread};
use fathom_model::{Direction, DirectionResult, DiskUse, JobResult, Latency, ReasonKind, Results};

/// Queue depths of the tail's first seven percentages, as fio's JSON names them.
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// Latency classes that follow: ten of µs, twelve of ms.
const LATENCY_CLASSES: usize = 22;
/// Fields of a disk, its name included.
const DISK_FIELDS: usize = 9;
/// Fewest fields of a job: header, one direction of the oldest layout, tail.
const FEWEST_FIELDS: usize = 4 + 20 + 5 + DEPTHS.len() + LATENCY_CLASSES;

/// What a terse output holds.
#[derive(Debug, Default)]
pub struct Terse {
    /// Version of the format, 2 to 5, as the first line says.
    pub version: u8,
    /// The jobs and disks.
    pub results: Results,
    /// What is doubtful or was left out, a sentence each.
    pub warnings: Vec<String>,
    /// The line before is a job of version 2 without a description.
    may_describe: bool,
    /// Place of each disk in the results.
    disks: HashMap<String, usize>,
}

/// Reads every terse line of `input`; `None` when there is none.
pub fn parse(input: &[u8]) -> Option<Terse> {
    let text = String::from_utf8_lossy(input);
    let lines: Vec<&str> = text.lines().collect();
    let mut terse = Terse::default();
    let mut at = 0;
    while at < lines.len() {
        at += terse.take(&lines[at..], at + 1);
    }
    (terse.version > 0).then_some(terse)
}

/// Where a terse line begins in a line of text: messages of fio and its
/// progress can stand before it.
fn line_start(line: &str) -> Option<usize> {
    let from_version_3 = memchr::memmem::find_iter(line.as_bytes(), b";fio-")
        .filter_map(|at| at.checked_sub(1))
        .find(|&at| matches!(line.as_bytes()[at], b'3'..=b'5'));
    from_version_3.or_else(|| {
        let start = line.rfind('\r').map_or(0, |at| at + 1);
        line[start..].starts_with("2;").then_some(start)
    })
}

impl Terse {
    /// Takes the first line, and what belongs to it; returns the number of lines.
    fn take(&mut self, lines: &[&str], number: usize) -> usize {
        if let Some(rest) = lines[0].strip_prefix(';') {
            self.continuation(rest);
            return 1;
        }
        if std::mem::take(&mut self.may_describe) && self.description(lines[0]) {
            return 1;
        }
        let Some(start) = line_start(lines[0]) else {
            return 1;
        };
        let line = &lines[0][start..];
        if line.matches(';').count() + 1 < FEWEST_FIELDS && !line.contains("fio: ") {
            if lines[0].starts_with("2;") {
                return 1;
            }
            self.warnings
                .push(format!("line {number}: cut off; left out"));
            return 1;
        }
        let (parsed, used) = match job_line(line) {
            Err(reason) => match mended(line, lines.get(1)).map(|line| job_line(&line)) {
                Some(Ok(parsed)) => (Ok(parsed), 2),
                _ => (Err(reason), 1),
            },
            parsed => (parsed, 1),
        };
        match parsed {
            Ok(line) => self.add(line, number, used),
            Err(reason) => self
                .warnings
                .push(format!("line {number}: {reason}; left out")),
        }
        used
    }

    fn add(&mut self, line: TerseLine, number: usize, used: usize) {
        if self.version == 0 {
            self.version = line.version;
        }
        if used > 1 {
            self.warnings.push(format!(
                "line {number}: a message of fio was taken out of it"
            ));
        }
        if line.not_numbers > 0 {
            self.warnings.push(format!(
                "line {number}: {} figures are not numbers (nan); they are left out",
                line.not_numbers
            ));
        }
        self.results.engine_version = self.results.engine_version.take().or(line.engine_version);
        self.may_describe = line.version == 2 && line.job.description.is_none();
        self.results.jobs.push(line.job);
        self.add_disks(line.disks);
    }

    /// Every job repeats all disks; the last state holds.
    fn add_disks(&mut self, disks: Vec<DiskUse>) {
        for disk in disks {
            match self.disks.entry(disk.name.clone()) {
                Entry::Occupied(place) => self.results.disks[*place.get()] = disk,
                Entry::Vacant(place) => {
                    place.insert(self.results.disks.len());
                    self.results.disks.push(disk);
                }
            }
        }
    }

    /// fio's own documentation shows the description of version 2 in a line of
    /// its own without a semicolon. Returns whether the line is one.
    fn description(&mut self, line: &str) -> bool {
        let is_other = line.trim().is_empty()
            || line_start(line).is_some()
            || line.starts_with(['{', '<'])
            || line.starts_with("fio")
            || line.contains(": (groupid=");
        match self.results.jobs.last_mut() {
            Some(job) if !is_other => {
                job.description = Some(line.trim().to_owned());
                true
            }
            _ => false,
        }
    }

    /// A line that goes on with a semicolon: the description (version 2) or
    /// the disks (client mode) of the job before.
    fn continuation(&mut self, rest: &str) {
        self.may_describe = false;
        let Some(job) = self.results.jobs.last_mut() else {
            return;
        };
        let fields: Vec<&str> = rest.split(';').collect();
        let disks = extras(&fields, job);
        self.add_disks(disks);
    }
}

/// The line without a message that was printed into it and ended it early.
fn mended<'l>(line: &'l str, next: Option<&&'l str>) -> Option<Cow<'l, str>> {
    let message = line.find("fio: ")?;
    Some(Cow::Owned(format!("{}{}", &line[..message], next?)))
}

/// One line, read.
struct TerseLine {
    version: u8,
    engine_version: Option<String>,
    job: JobResult,
    disks: Vec<DiskUse>,
    not_numbers: usize,
}

fn job_line(line: &str) -> Result<TerseLine, String> {
    let all: Vec<&str> = line.split(';').collect();
    let version: u8 = all[0].parse().map_err(|_| "no version".to_owned())?;
    let mut fields = Fields {
        all: &all,
        at: 1,
        not_numbers: 0,
    };
    let engine_version = match version {
        2 => None,
        _ => Some(fields.text()?.to_owned()),
    };
    let mut job = JobResult {
        name: fields.text()?.to_owned(),
        group: fields.count()?.try_into().unwrap_or(0),
        ..JobResult::default()
    };
    job.error = fields.errno()?;
    let mut blocks = Vec::new();
    while !fields.peek()?.ends_with('%') {
        // Four is the most: reads, writes, trims and all of them together.
        if blocks.len() == 4 {
            return Err(format!("field {} should be a percentage", fields.at + 1));
        }
        blocks.push(direction(&mut fields)?);
    }
    for (dir, block) in directions(version, blocks.len()).iter().zip(blocks) {
        if let Some(place) = job.direction_mut(*dir) {
            *place = block;
        }
    }
    job.runtime_ms = job.directions().map(|(_, dir)| dir.runtime_ms).max();
    tail(&mut fields, &mut job)?;
    let not_numbers = fields.not_numbers;
    let disks = extras(&all[fields.at..], &mut job);
    Ok(TerseLine {
        version,
        engine_version,
        job,
        disks,
        not_numbers,
    })
}

/// Which directions so many blocks are: version 3 has no trims, with
/// `unified_rw_reporting=mixed` there is one block, with `=both` one more.
fn directions(version: u8, blocks: usize) -> &'static [Direction] {
    use Direction::{Mixed, Read, Trim, Write};
    match (version, blocks) {
        (_, 1) => &[Mixed],
        (3, 3) => &[Read, Write, Mixed],
        _ => &[Read, Write, Trim, Mixed],
    }
}

/// One direction; `None` when it did nothing.
fn direction(fields: &mut Fields) -> Result<Option<DirectionResult>, String> {
    let mut result = DirectionResult {
        io_bytes: fields.count()?.saturating_mul(1024),
        ..DirectionResult::default()
    };
    let reported_kib = fields.count()?;
    // Twelve fields on stands the first percentile; the oldest layout, of fio
    // 1.x, has none and no IOPS either.
    let has_percentiles = fields.ahead(10).is_some_and(|field| field.contains("%="));
    let iops = if has_percentiles {
        Some(fields.count()?)
    } else {
        None
    };
    result.runtime_ms = fields.count()?;
    // From the bytes, because the rate is cut to whole KiB.
    result.bw_bytes = match result.runtime_ms {
        0 => reported_kib as f64 * 1024.0,
        ms => result.io_bytes as f64 * 1000.0 / ms as f64,
    };
    result.slat = latency(fields)?;
    result.clat = latency(fields)?;
    let mut percentiles = Vec::new();
    while fields.peek()?.contains("%=") {
        percentiles.extend(percentile(fields.text()?)?);
    }
    result.lat = latency(fields)?;
    // With `lat_percentiles` they are of `lat`, which the line does not say.
    if let Some(latency) = result.clat.as_mut().or(result.lat.as_mut()) {
        latency.percentiles_ns = percentiles;
    }
    intervals(fields, &mut result)?;
    match iops {
        Some(iops) => {
            result.iops = iops as f64;
            result.total_ios = fewest_ios(iops, result.runtime_ms);
            result.told = vec![ReasonKind::RoundedCounts];
        }
        None => result.told = vec![ReasonKind::UnknownCounts],
    }
    let is_idle = result.io_bytes == 0 && result.runtime_ms == 0;
    Ok((!is_idle).then_some(result))
}

/// The smallest number of I/Os that gives these IOPS, which fio cuts to a whole
/// number (`stat.c`): for runs of a second or so the only one.
pub fn fewest_ios(iops: u64, runtime_ms: u64) -> u64 {
    let ios = (u128::from(iops) * u128::from(runtime_ms)).div_ceil(1000);
    u64::try_from(ios).unwrap_or(u64::MAX)
}

/// Minimum, maximum, mean and deviation in µs; `None` when all are 0, which is
/// how fio prints what was not measured.
fn latency(fields: &mut Fields) -> Result<Option<Latency>, String> {
    let (min, max) = (fields.count()?, fields.count()?);
    let (mean, stddev) = (fields.decimal()?, fields.decimal()?);
    let Some(mean) = mean.filter(|mean| *mean != 0.0 || max > 0) else {
        return Ok(None);
    };
    Ok(Some(Latency {
        min_ns: min.saturating_mul(1000),
        max_ns: max.saturating_mul(1000),
        mean_ns: mean * 1000.0,
        stddev_ns: stddev.map(|dev| dev * 1000.0),
        ..Latency::default()
    }))
}

/// `99.000000%=1656`, in µs; `0%=0` fills the list up to twenty.
fn percentile(field: &str) -> Result<Option<(f64, u64)>, String> {
    let pair = field.split_once("%=").and_then(|(percent, value)| {
        Some((percent.parse::<f64>().ok()?, value.parse::<u64>().ok()?))
    });
    let (percent, us) = pair.ok_or_else(|| format!("'{field}' is no percentile"))?;
    Ok((percent > 0.0 && percent <= 100.0).then(|| (percent, us.saturating_mul(1000))))
}

/// Bandwidth over intervals in KiB/s; version 5 adds the number of intervals
/// and the same for IOPS.
fn intervals(fields: &mut Fields, result: &mut DirectionResult) -> Result<(), String> {
    let (min, max) = (fields.count()?, fields.count()?);
    let _percent_of_group = fields.decimal()?;
    let (mean, stddev) = (fields.decimal()?, fields.decimal()?);
    let spread = |n, min, max, mean: Option<f64>, stddev: Option<f64>, scale| {
        let mean = mean.filter(|mean| *mean != 0.0 || max > 0)?;
        Some(Spread {
            n,
            min: min as f64 * scale,
            max: max as f64 * scale,
            mean: mean * scale,
            stddev: stddev.map(|dev| dev * scale),
        })
    };
    let mut n = None;
    if fields.all[0] == "5" {
        n = Some(fields.count()?);
        let (min, max) = (fields.count()?, fields.count()?);
        let (mean, stddev) = (fields.decimal()?, fields.decimal()?);
        let n = Some(fields.count()?);
        result.iops_intervals = spread(n, min, max, mean, stddev, 1.0);
    }
    result.bw_intervals = spread(n, min, max, mean, stddev, 1024.0);
    Ok(())
}

/// CPU, queue depths, and the latency classes, which percentiles say better.
fn tail(fields: &mut Fields, job: &mut JobResult) -> Result<(), String> {
    let (user, system) = (fields.decimal()?, fields.decimal()?);
    let counts = [fields.count()?, fields.count()?, fields.count()?];
    if let (Some(user_percent), Some(system_percent)) = (user, system) {
        job.cpu = Some(CpuUse {
            user_percent,
            system_percent,
            context_switches: counts[0],
            major_faults: counts[1],
            minor_faults: counts[2],
        });
    }
    for depth in DEPTHS {
        if let Some(percent) = fields.decimal()? {
            job.iodepth_percent.push((depth.to_owned(), percent));
        }
    }
    for _ in 0..LATENCY_CLASSES {
        fields.decimal()?;
    }
    Ok(())
}

/// What may follow: disks, the number of errors and the first one
/// (`continue_on_error`), a description, which may hold semicolons itself.
fn extras(mut fields: &[&str], job: &mut JobResult) -> Vec<DiskUse> {
    let mut disks = Vec::new();
    while let Some((first, rest)) = fields.split_at_checked(DISK_FIELDS)
        && let Some(disk) = disk(first)
    {
        // `slaves` is the mean of the disks under the one before.
        if disk.name != "slaves" {
            disks.push(disk);
        }
        fields = rest;
    }
    if let [total, first, rest @ ..] = fields
        && let (Ok(total), Ok(first)) = (total.parse::<u64>(), first.parse::<i32>())
    {
        job.total_errors = Some(total);
        if job.error == 0 {
            job.error = first.saturating_abs();
        }
        fields = rest;
    }
    let description = fields.join(";");
    if !description.trim().is_empty() {
        job.description = Some(description);
    }
    disks
}

fn disk(fields: &[&str]) -> Option<DiskUse> {
    let [name, counts @ .., util] = fields else {
        return None;
    };
    let counts: Vec<u64> = counts
        .iter()
        .map_while(|field| field.parse().ok())
        .collect();
    let &[r_ios, w_ios, r_merges, w_merges, r_ticks, w_ticks, in_queue] = counts.as_slice() else {
        return None;
    };
    Some(DiskUse {
        name: (*name).to_owned(),
        read_ios: r_ios,
        write_ios: w_ios,
        read_merges: r_merges,
        write_merges: w_merges,
        read_ticks_ms: r_ticks,
        write_ticks_ms: w_ticks,
        in_queue_ms: in_queue,
        util_percent: util.strip_suffix('%')?.parse().ok()?,
        ..DiskUse::default()
    })
}

/// The fields of a line, taken one after the other.
struct Fields<'l> {
    all: &'l [&'l str],
    at: usize,
    not_numbers: usize,
}

impl<'l> Fields<'l> {
    fn peek(&self) -> Result<&'l str, String> {
        self.ahead(0)
            .ok_or_else(|| format!("ends after {} fields", self.all.len()))
    }

    fn ahead(&self, by: usize) -> Option<&'l str> {
        self.all.get(self.at + by).copied()
    }

    fn text(&mut self) -> Result<&'l str, String> {
        let field = self.peek()?;
        self.at += 1;
        Ok(field)
    }

    fn count(&mut self) -> Result<u64, String> {
        let field = self.text()?;
        field
            .parse()
            .map_err(|_| format!("field {} is '{}', not a number", self.at, shown(field)))
    }

    /// The absolute value: some versions print `-5`.
    fn errno(&mut self) -> Result<i32, String> {
        let field = self.text()?;
        let value: i32 = field
            .parse()
            .map_err(|_| format!("field {} is '{}', not an error", self.at, shown(field)))?;
        Ok(value.saturating_abs())
    }

    /// A decimal, with or without a percent sign; `None` for `nan`.
    fn decimal(&mut self) -> Result<Option<f64>, String> {
        let field = self.text()?;
        let value: f64 = field
            .trim_end_matches('%')
            .parse()
            .map_err(|_| format!("field {} is '{}', not a number", self.at, shown(field)))?;
        if !value.is_finite() {
            self.not_numbers += 1;
        }
        Ok(Some(value).filter(|value| value.is_finite()))
    }
}

/// A field as an error shows it.
fn shown(field: &str) -> String {
    field.chars().take(40).collect()
}
