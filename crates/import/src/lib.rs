//! Results of other tools, from their published formats.
//!
//! What a tool tells becomes loads with fio's options, so that they can be drawn beside
//! fio's own; what it does not tell is absent, and [`ForeignTool::loss`] says what that
//! is. A file is read whole, so its size is bounded here, and so is the number of loads.

#![forbid(unsafe_code)]

pub mod configuration;
mod diskmark;
mod diskspd;
mod elbencho;
pub mod fio_tests;
mod iostat;
#[cfg(test)]
mod tests;
mod tkperf;
mod vdbench;
mod xml;

use std::collections::BTreeMap;
use std::fmt;

pub use iostat::IostatLog;

use fathom_model::verdict::ReasonKind;
use fathom_model::{DirectionResult, JobResult, Latency, Results};

/// Larger files are no results of these tools, which have some KB.
pub const BYTES_MAX: usize = 64 << 20;
/// Loads of a file at most.
const LOADS_MAX: usize = 10_000;
/// How much of a file tells which tool wrote it.
const HEAD: usize = 64 << 10;

/// A tool whose results are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForeignTool {
    /// elbencho (`--csvfile`, `--jsonfile`).
    Elbencho,
    /// CrystalDiskMark and what writes its text: KDiskMark, others.
    DiskMark,
    /// DISKSPD (`-Rxml`).
    Diskspd,
    /// vdbench (summary, totals, or what it prints).
    Vdbench,
    /// TKperf (`TEST.xml`).
    Tkperf,
    /// `iostat -x -t`, which stands beside a run.
    Iostat,
}

impl fmt::Display for ForeignTool {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Elbencho => "elbencho",
            Self::DiskMark => "CrystalDiskMark text",
            Self::Diskspd => "DISKSPD XML",
            Self::Vdbench => "vdbench summary",
            Self::Tkperf => "TKperf XML",
            Self::Iostat => "iostat -x -t",
        })
    }
}

impl ForeignTool {
    /// What its results do not tell, in a sentence.
    pub fn loss(self) -> &'static str {
        match self {
            Self::Elbencho => {
                "elbencho tells whole rates up to the end of the slowest thread, and latencies as \
                 minimum, mean and maximum: I/Os are worked out of rates and times, and there are \
                 no percentiles; phases without data (directories, sync, caches) are left out"
            }
            Self::DiskMark => {
                "CrystalDiskMark's text has the best of several measurements, rates and mean \
                 latencies: there are no counts of I/Os, no percentiles, no smallest and largest \
                 latency"
            }
            Self::Diskspd => {
                "DISKSPD's XML has counts, and percentiles of all threads and targets together; \
                 what its targets do not agree on is not told as an option"
            }
            Self::Vdbench => {
                "vdbench's summary has means of the intervals after the warm-up: I/Os are worked \
                 out of the rate and the time, there are no percentiles, and whether I/O was \
                 random or sequential is not told"
            }
            Self::Tkperf => {
                "TKperf's XML has one figure for each mix and block size of a round, reads and \
                 writes together: the rounds of its steady state are read, as repetitions, and all \
                 of them where none is told; latencies are smallest, largest and mean, IOPS of the \
                 latency test are worked out of the mean; write saturation is the mean of its \
                 rounds; preconditioning and SMART values are left out"
            }
            Self::Iostat => {
                "iostat tells rates and means from report to report: counts are worked out of them, \
                 times of requests to the ms; its first report, which tells of the time since the \
                 start of the machine, and what it tells of discards and flushes are left out"
            }
        }
    }
}

/// Why a result cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ForeignError {
    /// A place in it.
    #[error("{tool}, line {line}, column {column}: {what}")]
    At {
        /// Which format it is in.
        tool: ForeignTool,
        /// From 1.
        line: usize,
        /// From 1, in characters.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// There is nothing in it that was measured.
    #[error("{0}: no result in it")]
    Nothing(ForeignTool),
    /// It is larger than such results are.
    #[error("{tool}: larger than such results are: at most 64 MiB and 10,000 loads")]
    TooLarge {
        /// Which format it is in.
        tool: ForeignTool,
    },
}

/// What a file holds.
#[derive(Debug, Clone, PartialEq)]
pub struct ForeignResults {
    /// Who wrote it.
    pub tool: ForeignTool,
    /// Its loads, each with the one job that it is.
    pub loads: Vec<Results>,
    /// What a machine did beside a run; there are no loads then.
    pub beside: Option<IostatLog>,
}

/// Reads the results of another tool; `None` where none of them wrote it.
pub fn read(bytes: &[u8]) -> Option<Result<ForeignResults, ForeignError>> {
    let head = text_of(&bytes[..bytes.len().min(HEAD)]);
    let tool = tool_of(&head)?;
    if bytes.len() > BYTES_MAX {
        return Some(Err(ForeignError::TooLarge { tool }));
    }
    let text = text_of(bytes);
    let loads = match tool {
        ForeignTool::Iostat => {
            return Some(iostat::read(&text).map(|log| ForeignResults {
                tool,
                loads: Vec::new(),
                beside: Some(log),
            }));
        }
        ForeignTool::Elbencho => elbencho::read(&text),
        ForeignTool::DiskMark => diskmark::read(&text),
        ForeignTool::Diskspd => diskspd::read(&text),
        ForeignTool::Vdbench => vdbench::read(&text),
        ForeignTool::Tkperf => tkperf::read(&text),
    };
    Some(loads.and_then(|loads| match loads.len() {
        0 => Err(ForeignError::Nothing(tool)),
        1..=LOADS_MAX => Ok(ForeignResults {
            tool,
            loads,
            beside: None,
        }),
        _ => Err(ForeignError::TooLarge { tool }),
    }))
}

fn tool_of(head: &str) -> Option<ForeignTool> {
    if tkperf::detect(head) {
        return Some(ForeignTool::Tkperf);
    }
    if iostat::detect(head) {
        return Some(ForeignTool::Iostat);
    }
    let begin = head.trim_start();
    if (begin.starts_with("<?xml") || begin.starts_with("<Results"))
        && begin
            .chars()
            .take(512)
            .collect::<String>()
            .contains("<Results")
    {
        return Some(ForeignTool::Diskspd);
    }
    if head.contains("IOPS [last]") && head.contains("operation") {
        return Some(ForeignTool::Elbencho);
    }
    if head.contains("Starting RD=")
        || head.lines().any(|line| line.contains(" avg_")) && head.contains("1024**2")
    {
        return Some(ForeignTool::Vdbench);
    }
    let is_mark = |line: &str| line.contains("(Q=") && line.contains("MB/s");
    head.lines().any(is_mark).then_some(ForeignTool::DiskMark)
}

/// Text of Windows, too: UTF-16 with its mark, or UTF-8 with one.
fn text_of(bytes: &[u8]) -> String {
    if let Some(wide) = bytes.strip_prefix(b"\xff\xfe") {
        let units = wide
            .chunks_exact(2)
            .map(|two| u16::from_le_bytes([two[0], two[1]]));
        let decoded = char::decode_utf16(units);
        return decoded
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect();
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    String::from_utf8_lossy(bytes).into_owned()
}

/// A number that can be a figure: finite and not negative.
fn figure(text: &str) -> Option<f64> {
    let value: f64 = text.trim().parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

/// Rates of one direction, as most tools tell them, over a time in ms.
struct ToldRates {
    iops: f64,
    bw_bytes: f64,
    runtime_ms: Option<f64>,
    clat: Option<Latency>,
}

impl ToldRates {
    /// Counts are worked out of the rates.
    fn result(self) -> DirectionResult {
        let ms = self.runtime_ms.unwrap_or(0.0);
        DirectionResult {
            total_ios: (self.iops * ms / 1000.0).round() as u64,
            io_bytes: (self.bw_bytes * ms / 1000.0).round() as u64,
            bw_bytes: self.bw_bytes,
            iops: self.iops,
            runtime_ms: ms.round() as u64,
            clat: self.clat.filter(|clat| clat.mean_ns > 0.0),
            told: vec![ReasonKind::RoundedCounts],
            ..DirectionResult::default()
        }
    }
}

fn load(version: &str, job: JobResult) -> Results {
    Results {
        engine_version: Some(version.to_owned()),
        jobs: vec![job],
        ..Results::default()
    }
}

fn options<const N: usize>(pairs: [(&str, Option<String>); N]) -> BTreeMap<String, String> {
    let told = pairs.into_iter();
    told.filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .collect()
}
