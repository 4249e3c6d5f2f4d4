//! Reads what a machine does and is set to while something is measured on it.
//!
//! A [`Sampler`] reads small files of /proc and /sys, at every interval the same ones;
//! what costs a drive or the firmware something (its temperature, its link, clock
//! frequencies) at the begin and the end and at most once a minute. What a machine does
//! not have is absent. Of two readings in a row only the difference is told.

mod block;
mod cgroup;
mod drive;
mod machine;
mod tasks;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use fathom_model::EvidenceInterval;

use crate::Sys;
use crate::cgroup::Groups;

/// What asks drives and firmware is read no more often.
const SELDOM: Duration = Duration::from_secs(60);
/// Readings in shorter intervals would be of counters that have not moved: the kernel
/// counts CPU time in ticks of 10 ms.
const LEAST: Duration = Duration::from_millis(200);
/// Counters that start with the engine and are read after it has ended. A count of 0 is
/// recorded, too.
const WITH_ENGINE: [&str; 2] = ["job.read_bytes", "job.loop_read_bytes"];

/// How much is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Detail {
    /// At every interval.
    Interval,
    /// And what asks drives and firmware.
    Seldom,
    /// And what takes its time: before the first I/O, and behind the last.
    Ends,
}

/// Everything at one moment: counters since whenever they began.
#[derive(Debug, Clone, Default)]
struct EvidenceReading {
    counts: BTreeMap<String, u64>,
    gauges: BTreeMap<String, f64>,
    settings: BTreeMap<String, String>,
}

impl EvidenceReading {
    fn count(&mut self, subject: &str, figure: &str, value: Option<u64>) {
        let name = || format!("{subject}.{figure}");
        self.counts.extend(value.map(|value| (name(), value)));
    }

    fn gauge(&mut self, subject: &str, figure: &str, value: Option<f64>) {
        let name = || format!("{subject}.{figure}");
        // Four digits are more than any rule looks at.
        let rounded = value.filter(|value| value.is_finite()).map(four_digits);
        self.gauges.extend(rounded.map(|value| (name(), value)));
    }

    fn setting(&mut self, subject: &str, figure: &str, value: Option<String>) {
        let name = || format!("{subject}.{figure}");
        self.settings.extend(value.map(|value| (name(), value)));
    }
}

/// A number to four significant digits.
fn four_digits(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    // Whole powers of ten only, which are exact: no digits are made up.
    let digits = value.abs().log10().floor() as i32 - 3;
    let scale = 10f64.powi(digits.abs());
    match digits {
        0.. => (value / scale).round() * scale,
        _ if scale.is_finite() => (value * scale).round() / scale,
        _ => value,
    }
}

/// Reads a machine again and again while a step runs.
#[derive(Debug)]
pub struct Sampler {
    sys: Sys,
    began: Instant,
    /// When the last two kinds of readings were made.
    read: Instant,
    read_seldom: Instant,
    devices: block::Devices,
    groups: Groups,
    cpus: machine::CpuTimes,
    tasks: tasks::Tasks,
    last: EvidenceReading,
}

impl Sampler {
    /// Begins to read for a step with these targets and a record in this folder; its first
    /// reading names all that can be read.
    pub fn begin(
        sys: &Sys,
        targets: &[PathBuf],
        record: Option<PathBuf>,
    ) -> (Self, EvidenceInterval) {
        let now = Instant::now();
        let devices = block::Devices::of(sys, targets, record.as_deref());
        let mut sampler = Self {
            sys: sys.clone(),
            began: now,
            read: now,
            read_seldom: now,
            devices,
            groups: Groups::of(sys),
            cpus: machine::CpuTimes::default(),
            tasks: tasks::Tasks::before(sys, targets),
            last: EvidenceReading::default(),
        };
        let mut reading = sampler.reading(Detail::Ends);
        drive::read_hidden_capacity(sys, sampler.devices.hardware(), &mut reading);
        let first = EvidenceInterval {
            counts: reading
                .counts
                .keys()
                .map(|name| (name.clone(), 0))
                .collect(),
            gauges: reading.gauges.clone(),
            settings: reading.settings.clone(),
            ..EvidenceInterval::default()
        };
        sampler.last = reading;
        (sampler, first)
    }

    /// The engine runs in this process, and in those that it starts.
    pub fn watch(&mut self, process: u32) {
        self.tasks.watch(&self.sys, process);
        for name in ["job.run_us", "job.wait_us"].iter().chain(&WITH_ENGINE) {
            self.last.counts.insert((*name).to_owned(), 0);
        }
    }

    /// What has changed since the reading before; `None` right after it.
    pub fn interval(&mut self) -> Option<EvidenceInterval> {
        let detail = match self.read_seldom.elapsed() >= SELDOM {
            true => Detail::Seldom,
            false => Detail::Interval,
        };
        (self.read.elapsed() >= LEAST).then(|| self.read(detail))
    }

    /// As [`Sampler::interval`], and whatever is read seldom, too.
    pub fn end(&mut self) -> EvidenceInterval {
        self.read(Detail::Ends)
    }

    fn read(&mut self, detail: Detail) -> EvidenceInterval {
        let now = Instant::now();
        let span = now.duration_since(self.read);
        self.read = now;
        if detail >= Detail::Seldom {
            self.read_seldom = now;
        }
        let reading = self.reading(detail);
        let counts = reading.counts.iter().filter_map(|(name, value)| {
            // One that went back began anew: nobody knows what it had come to.
            let grown = value.checked_sub(*self.last.counts.get(name)?)?;
            (grown > 0 || WITH_ENGINE.contains(&&**name)).then(|| (name.clone(), grown))
        });
        let gauges = reading.gauges.iter();
        let gauges = gauges.filter(|(name, value)| self.last.gauges.get(*name) != Some(*value));
        let settings = reading.settings.iter();
        let settings =
            settings.filter(|(name, value)| self.last.settings.get(*name) != Some(*value));
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let evidence = EvidenceInterval {
            t_ms: ms(now.duration_since(self.began)),
            // 0 is the mark of the first.
            span_ms: ms(span).max(1),
            host: None,
            counts: counts.collect(),
            gauges: gauges.map(|(name, value)| (name.clone(), *value)).collect(),
            settings: settings
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        };
        self.last.counts.extend(reading.counts);
        self.last.gauges.extend(reading.gauges);
        self.last.settings.extend(reading.settings);
        evidence
    }

    fn reading(&mut self, detail: Detail) -> EvidenceReading {
        let mut reading = EvidenceReading::default();
        self.devices.read(&self.sys, &mut reading, detail);
        self.groups.read(&self.sys, &mut reading);
        self.cpus.read(&self.sys, &mut reading);
        self.tasks.read(&self.sys, &mut reading);
        machine::read(&self.sys, &mut reading);
        if detail >= Detail::Ends {
            let (tasks, sys) = (&self.tasks, &self.sys);
            reading.count("job", "read_bytes", tasks.read_bytes(sys));
            reading.count("job", "loop_read_bytes", tasks.loop_read_bytes(sys));
        }
        if detail >= Detail::Seldom {
            machine::read_seldom(&self.sys, &mut reading);
            drive::read(&self.sys, self.devices.hardware(), &mut reading);
        }
        reading
    }
}
