//! CrystalDiskMark's text (versions 5 to 8) and that of tools that write the same, such
//! as KDiskMark: `SEQ    1MiB (Q=  8, T= 1):   194.805 MB/s [    185.8 IOPS] < 42830.02 us>`
//! below `[Read]`, `[Write]` or `[Mix]`; older ones have the direction in the line.

use fathom_model::verdict::ReasonKind;
use fathom_model::{Direction, DirectionResult, JobResult, Latency, Results};

use super::{ForeignError, ForeignTool, ToldRates, figure, load, options};

/// What its sections say.
#[derive(Clone, Copy)]
struct Section {
    dir: Direction,
    /// Share of reads of a mix.
    reads: Option<u32>,
}

pub(super) fn read(text: &str) -> Result<Vec<Results>, ForeignError> {
    let version = version(text);
    let measured_ms = measured_ms(text);
    let mut section = Section {
        dir: Direction::Read,
        reads: None,
    };
    let mut loads = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let trimmed = line.trim();
        match trimmed.split(']').next() {
            Some("[Read") => section.dir = Direction::Read,
            Some("[Write") => section.dir = Direction::Write,
            Some("[Mix") => {
                section.dir = Direction::Mixed;
                let (_, behind) = trimmed.split_once('R').unwrap_or_default();
                section.reads = behind
                    .split('%')
                    .next()
                    .and_then(|percent| percent.trim().parse().ok());
            }
            _ => {}
        }
        if !(line.contains("(Q=") && line.contains("MB/s")) || trimmed.starts_with('*') {
            continue;
        }
        let job = job(line, section, measured_ms).ok_or_else(|| ForeignError::At {
            tool: ForeignTool::DiskMark,
            line: number,
            column: line
                .find("(Q=")
                .map_or(1, |at| line[..at].chars().count() + 1),
            what: "queues, threads and MB/s are expected".to_owned(),
        })?;
        loads.push(load(&version, job));
    }
    Ok(loads)
}

fn job(line: &str, section: Section, measured_ms: Option<f64>) -> Option<JobResult> {
    let (name, behind) = line.split_once("(Q=")?;
    let (told, rates) = behind.split_once(')')?;
    let (queues, threads) = told.split_once(',')?;
    let queues: u32 = queues.trim().parse().ok()?;
    let threads = threads
        .trim()
        .strip_prefix("T=")?
        .trim()
        .parse::<u32>()
        .ok()?;
    let rates = rates.trim_start_matches([' ', ':']);
    let (mb, behind) = rates.split_once("MB/s")?;
    let bw_bytes = figure(mb)? * 1e6;
    let inside = |from: char, to: &str| figure(behind.split_once(from)?.1.split_once(to)?.0);
    let words = name.to_ascii_lowercase();
    let size = size(&words);
    let dir = if words.contains("write") {
        Direction::Write
    } else if words.contains("read") {
        Direction::Read
    } else {
        section.dir
    };
    let iops = inside('[', "IOPS").or_else(|| Some(bw_bytes / size? as f64));
    let mut result: DirectionResult = ToldRates {
        iops: iops.unwrap_or(0.0),
        bw_bytes,
        runtime_ms: measured_ms,
        clat: inside('<', "us").map(|us| Latency {
            mean_ns: us * 1000.0,
            ..Latency::default()
        }),
    }
    .result();
    if iops.is_none() {
        result.told = vec![ReasonKind::UnknownCounts];
    }
    let random = words.contains("rnd") || words.contains("random");
    let pattern = match (random, dir) {
        (false, Direction::Read) => "read",
        (false, Direction::Write) => "write",
        (false, _) => "rw",
        (true, Direction::Read) => "randread",
        (true, Direction::Write) => "randwrite",
        (true, _) => "randrw",
    };
    let mut job = JobResult {
        name: format!("{pattern} q{queues} t{threads}"),
        options: options([
            ("rw", Some(pattern.to_owned())),
            ("bs", size.map(|bytes| bytes.to_string())),
            ("iodepth", Some(queues.to_string())),
            ("numjobs", Some(threads.to_string())),
            (
                "rwmixread",
                section
                    .reads
                    .filter(|_| dir == Direction::Mixed)
                    .map(|r| r.to_string()),
            ),
        ]),
        runtime_ms: measured_ms.map(|ms| ms as u64),
        ..JobResult::default()
    };
    *job.direction_mut(dir)? = Some(result);
    Some(job)
}

/// `seq    1mib`, `random 4 kib`: bytes of an I/O.
fn size(words: &str) -> Option<u64> {
    let units = [("kib", 1u64 << 10), ("mib", 1 << 20)];
    units.into_iter().find_map(|(unit, bytes)| {
        let (before, _) = words.split_once(unit)?;
        let digits = before
            .trim_end()
            .rsplit(|c: char| !c.is_ascii_digit())
            .next()?;
        digits
            .parse::<u64>()
            .ok()?
            .checked_mul(bytes)
            .filter(|&bytes| bytes > 0)
    })
}

/// `CrystalDiskMark 8.0.4`, `KDiskMark 1.6.0`: what the head says.
fn version(text: &str) -> String {
    for line in text.lines().take(10) {
        let mut words = line
            .split_whitespace()
            .skip_while(|word| !word.ends_with("DiskMark"));
        if let (Some(tool), Some(version)) = (words.next(), words.next()) {
            let version = version.trim_matches(['(', ')', ':']);
            return format!("{tool} {version}").chars().take(60).collect();
        }
    }
    "CrystalDiskMark".to_owned()
}

/// `Time: Measure 5 sec / Interval 5 sec`
fn measured_ms(text: &str) -> Option<f64> {
    let (_, behind) = text.split_once("Measure ")?;
    let seconds = behind.split_whitespace().next()?.parse::<f64>().ok()?;
    (seconds > 0.0 && seconds <= 86_400.0).then_some(seconds * 1000.0)
}
