//! What a device can do, as other programs read it: the kernel's I/O controller, Seastar.
//!
//! Six loads are measured, each at the smallest depth that is enough: whole streams of
//! 1 MiB, and 4 KiB in order and at random, read and written. That is what the linear
//! model of the kernel is made of (Documentation/admin-guide/cgroup-v2.rst, io.cost.model),
//! and Seastar's file has four of them.

use std::fmt::Write as _;

use clap::ValueEnum;
use fathom_analysis::find::FindEnd;
use fathom_device::Sys;
use fathom_model::environment::{BlockDevice, Target};
use fathom_model::{Direction, RunDocument, VerdictLevel, units};
use fathom_questions::find::{FindRow, RowFound};
use serde::{Deserialize, Serialize};

use super::show::error_percent;
use crate::cmd::screen::summary::SIMULATION;

/// For whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindEmit {
    /// Lines for io.cost.model and io.cost.qos of the kernel
    Iocost,
    /// Seastar's io_properties.yaml
    IoProperties,
    /// The document that --json prints
    Json,
}

/// The name of a coefficient of the kernel's model, `rw` and `bs` of its load, and the
/// bytes of its unit: 1 of a bandwidth in I/Os of so many.
const MODEL: [(&str, &str, &str, u64); 6] = [
    ("rbps", "read", "1m", 1 << 20),
    ("rseqiops", "read", "4k", 1),
    ("rrandiops", "randread", "4k", 1),
    ("wbps", "write", "1m", 1 << 20),
    ("wseqiops", "write", "4k", 1),
    ("wrandiops", "randwrite", "4k", 1),
];
/// What Seastar's file calls some of them.
const PROPERTIES: [(&str, &str); 4] = [
    ("read_iops", "rrandiops"),
    ("read_bandwidth", "rbps"),
    ("write_iops", "wrandiops"),
    ("write_bandwidth", "wbps"),
];
/// The percentile of latencies by which the kernel sees that a device has too much, and
/// how far it then may slow down and speed up, in percent of the model. The kernel's own
/// for solid-state drives begin at 95 (block/blk-iocost.c); the bounds are nobody's
/// measurement.
const QOS: (f64, f64, f64) = (95.0, 50.0, 150.0);

impl FindEmit {
    /// What is measured for it.
    pub fn rows(self) -> Vec<FindRow> {
        let is_wanted = |name: &str| match self {
            Self::IoProperties => PROPERTIES.iter().any(|(_, of)| *of == name),
            Self::Iocost | Self::Json => true,
        };
        let model = MODEL.iter().filter(|(name, ..)| is_wanted(name));
        model
            .map(|(name, rw, bs, _)| FindRow {
                name: (*name).to_owned(),
                options: vec![
                    ("rw".to_owned(), (*rw).to_owned()),
                    ("bs".to_owned(), (*bs).to_owned()),
                ],
            })
            .collect()
    }

    /// The text.
    pub fn text(self, found: &[RowFound], document: &RunDocument) -> String {
        let emission = Emission { found, document };
        let mut text = emission.comments();
        let lines = match self {
            Self::Iocost => emission.iocost(),
            Self::IoProperties => emission.properties(),
            Self::Json => None,
        };
        match lines {
            Some(lines) if emission.is_good() => text += &lines,
            Some(lines) => {
                text += "# not to be used as long as figures are invalid:\n";
                lines
                    .lines()
                    .for_each(|line| _ = writeln!(text, "# {line}"));
            }
            None => text += "# not all was measured: fathom resume goes on\n",
        }
        text
    }
}

/// What was measured.
struct Emission<'f> {
    found: &'f [RowFound],
    document: &'f RunDocument,
}

impl Emission<'_> {
    fn row(&self, name: &str) -> Option<&RowFound> {
        self.found.iter().find(|row| row.row.name == name)
    }

    /// I/Os or bytes per second.
    fn rate(&self, name: &str) -> Option<u64> {
        let (.., unit) = MODEL.iter().find(|(known, ..)| *known == name)?;
        let iops = self.row(name)?.answer?.iops;
        let rate = (iops * *unit as f64).round() as u64;
        (rate > 0).then_some(rate)
    }

    /// That percentile of the latencies of a load where it is enough, in µs.
    fn latency_us(&self, name: &str, dir: Direction) -> Option<u64> {
        let step = self.row(name)?.step_of_answer()?;
        let jobs = self.document.jobs.iter();
        let mut of_step = jobs.filter(|job| job.step.as_deref() == Some(step));
        let (_, result) = of_step.find_map(|job| job.directions().find(|(it, _)| *it == dir))?;
        let ns = result.clat.as_ref()?.percentile_ns(QOS.0)?;
        Some(ns.div_ceil(1000))
    }

    fn is_good(&self) -> bool {
        let mut verdicts = self.found.iter().filter_map(|row| row.verdict.as_ref());
        verdicts.all(|verdict| verdict.level < VerdictLevel::Invalid)
    }

    fn target(&self) -> Option<&Target> {
        self.document.environment.as_ref()?.targets.first()
    }

    /// The block device under the target, as the kernel names it.
    fn device(&self) -> Option<&BlockDevice> {
        let target = self.target()?;
        let below = || target.file_system.as_ref()?.device.as_ref();
        target.device.as_ref().or_else(below)
    }

    /// Where each figure comes from, and what is to be said of it.
    fn comments(&self) -> String {
        let device = self.device().map_or("an unknown device", |it| &it.name);
        let mut text = format!("# {device:?}, measured by fathom: {:?}\n", self.document.id);
        if self.document.engine == "sim" {
            let _ = writeln!(text, "# {SIMULATION}");
        }
        for row in self.found {
            let name = &row.row.name;
            let Some((answer, rate)) = row.answer.zip(self.rate(name)) else {
                let _ = writeln!(text, "# {name}: not measured");
                continue;
            };
            let value = match name.ends_with("bps") {
                true => units::bytes_per_second(rate as f64),
                false => format!("{} IOPS", units::count(rate as f64)),
            };
            let sure = answer
                .iops_error
                .map_or_else(String::new, |error| format!(" ± {}", error_percent(error)));
            let depth = answer.load.unwrap_or(0.0);
            let verdict = row.verdict.clone().unwrap_or_default();
            let _ = write!(text, "# {name}: {value}{sure} at iodepth={depth:.0}");
            if let Some(jobs) = answer.jobs {
                let _ = write!(text, " of each of {jobs} jobs");
            }
            if answer.ended_by == FindEnd::Range {
                text += ", the last that was tried (--to goes further)";
            }
            let _ = writeln!(text, ", {}", verdict.level.name());
            for reason in verdict.against() {
                let sentence: String = reason
                    .sentence
                    .chars()
                    .filter(|it| !it.is_control())
                    .collect();
                let _ = writeln!(text, "#   {sentence}");
            }
        }
        text
    }

    fn iocost(&self) -> Option<String> {
        let number = self
            .device()
            .and_then(|it| Sys::live().by_name(&it.name)?.number());
        let number = number
            .filter(|_| self.document.engine != "sim")
            .map_or_else(
                || "MAJ:MIN".to_owned(),
                |(major, minor)| format!("{major}:{minor}"),
            );
        let mut model = format!("{number} ctrl=user model=linear");
        for (name, ..) in MODEL {
            let _ = write!(model, " {name}={}", self.rate(name)?);
        }
        let (percent, least, most) = QOS;
        let read = self.latency_us("rrandiops", Direction::Read)?;
        let write = self.latency_us("wrandiops", Direction::Write)?;
        let qos = format!(
            "{number} enable=1 ctrl=user rpct={percent:.2} rlat={read} wpct={percent:.2} wlat={write} min={least:.2} max={most:.2}"
        );
        Some(format!(
            "# /sys/fs/cgroup/io.cost.model\n{model}\n# /sys/fs/cgroup/io.cost.qos: rlat and wlat (µs) are the p{percent:.0} of 4k at random, min and max are not measured\n{qos}\n"
        ))
    }

    fn properties(&self) -> Option<String> {
        let target = self.target();
        let mounted = target.map(|target| match &target.file_system {
            Some(system) => system.mount_point.display().to_string(),
            None => target.path.display().to_string(),
        });
        // A string of JSON is one of YAML.
        let mounted = serde_json::to_string(&mounted.unwrap_or_default()).ok()?;
        let mut text = format!("disks:\n  - mountpoint: {mounted}\n");
        for (name, of) in PROPERTIES {
            let _ = writeln!(text, "    {name}: {}", self.rate(of)?);
        }
        Some(text)
    }
}
