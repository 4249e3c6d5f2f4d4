//! `iostat -x -t`: what the devices of a machine did beside a run, report after report.
//!
//! Reports hold rates and means over the time since the report before; they become the
//! counts that Fathom's own statistics of nodes have. The first report tells of the time
//! since the machine was started, or of one that nobody tells (`-y`), and is left out.

use fathom_model::NodeSample;
use fathom_model::node::{CpuTime, DeviceCounts};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::{ForeignError, ForeignTool, figure};

const TOOL: ForeignTool = ForeignTool::Iostat;
/// Lines of devices of a log at most: a day of ten, every second.
const LINES_MAX: usize = 1_000_000;
/// Reports lie closer together, or something was going on that no rate tells.
const SPAN_MS_MAX: u64 = 3_600_000;
/// The most of a count, 17 TB: what a million lines come to fits into 64 bits.
const COUNT_MAX: f64 = (1u64 << 44) as f64;
/// Forms of a time without its zone, as most locales have them; years of two digits first,
/// for they are years, too. Where the month may be first it is.
const TIMES: [&str; 8] = [
    "%m/%d/%y %I:%M:%S %p",
    "%m/%d/%y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%m/%d/%Y %H:%M:%S",
    "%d.%m.%Y %H:%M:%S",
    "%Y-%m-%d %H:%M:%S",
    "%d/%m/%y %H:%M:%S",
    "%d/%m/%Y %H:%M:%S",
];

/// What `iostat` wrote on a machine.
#[derive(Debug, Clone, PartialEq)]
pub struct IostatLog {
    /// The machine's name.
    pub host: String,
    /// What it did from report to report.
    pub samples: Vec<NodeSample>,
    /// Whether its times have their zone (`S_TIME_FORMAT=ISO`); else they stand as if they
    /// were UTC.
    pub has_zone: bool,
}

pub(super) fn detect(head: &str) -> bool {
    let is_head = |line: &str| line.starts_with("Device") && line.contains("%util");
    head.starts_with("Linux ") && head.lines().any(is_head)
}

/// What is being read.
struct IostatReader {
    log: IostatLog,
    cpus: f64,
    /// The report in progress.
    at_ms: Option<u64>,
    span_ms: Option<u64>,
    sample: NodeSample,
    /// Names of the columns behind the device's, where lines of devices follow.
    columns: Vec<String>,
    wants_cpu: bool,
    lines: usize,
}

pub(super) fn read(text: &str) -> Result<IostatLog, ForeignError> {
    let mut reader = IostatReader {
        log: IostatLog {
            host: String::new(),
            samples: Vec::new(),
            has_zone: true,
        },
        cpus: 1.0,
        at_ms: None,
        span_ms: None,
        sample: NodeSample::default(),
        columns: Vec::new(),
        wants_cpu: false,
        lines: 0,
    };
    for (number, line) in (1..).zip(text.lines()) {
        reader
            .line(line)
            .map_err(|(column, what)| ForeignError::At {
                tool: TOOL,
                line: number,
                column,
                what,
            })?;
        if reader.lines > LINES_MAX {
            return Err(ForeignError::TooLarge { tool: TOOL });
        }
    }
    reader.end_report();
    match reader.log.samples.is_empty() {
        true => Err(ForeignError::Nothing(TOOL)),
        false => Ok(reader.log),
    }
}

/// The column, from 1, and what is wrong there.
type LineFault = (usize, String);

impl IostatReader {
    fn line(&mut self, line: &str) -> Result<(), LineFault> {
        if let Some(rest) = line.strip_prefix("Linux ") {
            self.begin(rest);
        } else if line.trim().is_empty() {
            self.columns.clear();
        } else if line.starts_with("avg-cpu:") {
            self.wants_cpu = true;
        } else if self.wants_cpu {
            self.cpu(line)?;
        } else if line.starts_with("Device") {
            let told = line.split_whitespace().skip(1);
            self.columns = told.map(str::to_owned).collect();
            if self.at_ms.is_none() {
                return Err((
                    1,
                    "a report without its time: iostat -t writes it".to_owned(),
                ));
            }
        } else if !self.columns.is_empty() {
            self.device(line)?;
        } else {
            let (at_ms, has_zone) =
                time(line.trim()).ok_or((1, format!("'{}' is no time", short(line))))?;
            self.begin_report(at_ms, has_zone);
        }
        Ok(())
    }

    /// `6.1.0-28-amd64 (bench-07) \t11/24/2026 \t_x86_64_\t(16 CPU)`; another start of
    /// iostat begins anew.
    fn begin(&mut self, rest: &str) {
        self.end_report();
        (self.at_ms, self.span_ms) = (None, None);
        self.columns.clear();
        let within = |text: &str| Some(text.split_once('(')?.1.split_once(')')?.0.to_owned());
        if let Some(host) = within(rest).filter(|_| self.log.host.is_empty()) {
            self.log.host = host.chars().take(64).collect();
        }
        let cpus = rest
            .rsplit_once('(')
            .and_then(|(_, last)| last.split_once(' '));
        let cpus = cpus.and_then(|(count, _)| figure(count));
        self.cpus = cpus
            .filter(|count| (1.0..=65536.0).contains(count))
            .unwrap_or(1.0);
    }

    fn begin_report(&mut self, at_ms: u64, has_zone: bool) {
        self.end_report();
        self.log.has_zone &= has_zone;
        let span = self.at_ms.and_then(|before| at_ms.checked_sub(before));
        self.span_ms = span.filter(|span| (1..=SPAN_MS_MAX).contains(span));
        self.at_ms = Some(at_ms);
    }

    fn end_report(&mut self) {
        let sample = std::mem::take(&mut self.sample);
        self.columns.clear();
        self.wants_cpu = false;
        if let (Some(at_ms), Some(span_ms)) = (self.at_ms, self.span_ms.take()) {
            self.log.samples.push(NodeSample {
                at_ms,
                span_ms,
                ..sample
            });
        }
    }

    /// `%user %nice %system %iowait %steal %idle`.
    fn cpu(&mut self, line: &str) -> Result<(), LineFault> {
        self.wants_cpu = false;
        let told: Option<Vec<f64>> = line.split_whitespace().map(number).collect();
        let Some([user, nice, system, iowait, steal, idle]) = told.as_deref() else {
            return Err((
                1,
                "six percentages of the CPUs stand below avg-cpu".to_owned(),
            ));
        };
        let all_ms = self.span_ms.unwrap_or(0) as f64 * self.cpus;
        let part = |percent: f64| (all_ms * percent.min(100.0) / 100.0).round() as u64;
        self.sample.cpu = CpuTime {
            user_ms: part(user + nice),
            system_ms: part(*system),
            iowait_ms: part(*iowait),
            steal_ms: part(*steal),
            idle_ms: part(*idle),
        };
        Ok(())
    }

    fn device(&mut self, line: &str) -> Result<(), LineFault> {
        self.lines += 1;
        let mut words = line.split_whitespace();
        let name = words.next().unwrap_or_default();
        let told: Option<Vec<f64>> = words.map(number).collect();
        let told = told.filter(|told| told.len() == self.columns.len());
        let told = told.ok_or_else(|| {
            let columns = self.columns.len();
            (
                1,
                format!("'{}' with {columns} figures was expected", short(name)),
            )
        })?;
        let Some(span_ms) = self.span_ms else {
            return Ok(());
        };
        let of = |names: &[&str]| -> f64 {
            let place = self
                .columns
                .iter()
                .position(|name| names.contains(&name.as_str()));
            place.map_or(0.0, |place| told[place])
        };
        let seconds = span_ms as f64 / 1000.0;
        let count = |value: f64| value.min(COUNT_MAX).round() as u64;
        let bytes = |kib: &str, mib: &str, sectors: &str| {
            let rate = of(&[kib]) * 1024.0 + of(&[mib]) * 1_048_576.0 + of(&[sectors]) * 512.0;
            count(rate * seconds)
        };
        let (reads, writes) = (of(&["r/s"]) * seconds, of(&["w/s"]) * seconds);
        let counts = DeviceCounts {
            name: name.chars().take(64).collect(),
            read_ios: count(reads),
            read_bytes: bytes("rkB/s", "rMB/s", "rsec/s"),
            read_ms: count(reads * of(&["r_await", "await"])),
            write_ios: count(writes),
            write_bytes: bytes("wkB/s", "wMB/s", "wsec/s"),
            write_ms: count(writes * of(&["w_await", "await"])),
            busy_ms: count(of(&["%util"]).min(100.0) * span_ms as f64 / 100.0),
            queue_ms: count(of(&["aqu-sz", "avgqu-sz"]) * span_ms as f64),
        };
        if counts.busy_ms + counts.read_ios + counts.write_ios > 0 {
            self.sample.devices.push(counts);
        }
        Ok(())
    }
}

/// As locales write it: `1.05` or `1,05`.
fn number(word: &str) -> Option<f64> {
    figure(&word.replace(',', "."))
}

/// ms since 1970 UTC, and whether the text has the zone.
fn time(text: &str) -> Option<(u64, bool)> {
    let zoned = Timestamp::strptime("%Y-%m-%dT%H:%M:%S%z", text).ok();
    let at = zoned.or_else(|| {
        let plain = TIMES
            .iter()
            .find_map(|form| DateTime::strptime(form, text).ok());
        Some(plain?.to_zoned(TimeZone::UTC).ok()?.timestamp())
    })?;
    Some((u64::try_from(at.as_millisecond()).ok()?, zoned.is_some()))
}

fn short(text: &str) -> String {
    text.trim().chars().take(40).collect()
}
