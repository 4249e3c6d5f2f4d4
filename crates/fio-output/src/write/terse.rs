//! fio's terse formats, versions 2 to 5: a job a line, fields between semicolons.

use std::fmt::Write as _;

use fathom_model::result::Spread;
use fathom_model::{DirectionResult, DiskUse, JobResult, Latency, text};

use super::figures::{finite, per_second, whole};
use super::{GroupDirection, JobFacts, LatencyClasses, OutputReport, classes, percents};

/// Fields for percentiles in every direction; those not used are `0%=0`.
const PERCENTILES: usize = 20;
/// Queue depths in the tail.
const DEPTHS: usize = 7;

pub fn render(report: &OutputReport) -> String {
    let mut out = String::new();
    for (job, facts) in report.jobs() {
        let mut line = TerseFields {
            version: report.facts.terse_version,
            text: String::new(),
        };
        line.job(report, job, facts);
        out.push_str(&line.text);
    }
    out
}

struct TerseFields {
    version: u8,
    text: String,
}

impl TerseFields {
    fn field(&mut self, value: impl std::fmt::Display) {
        if !self.text.is_empty() {
            self.text.push(';');
        }
        // Writing to a String cannot fail.
        let _ = write!(self.text, "{value}");
    }

    /// A text in which the format has no way to write a separator.
    fn name(&mut self, text: &str) {
        self.field(text::line(text).replace(';', ","));
    }

    fn decimal(&mut self, value: f64) {
        self.field(format_args!("{:.6}", finite(value)));
    }

    fn percent(&mut self, value: f64, decimals: usize) {
        self.field(format_args!("{:.decimals$}%", finite(value)));
    }

    fn job(&mut self, report: &OutputReport, job: &JobResult, facts: &JobFacts) {
        self.field(self.version);
        if self.version != 2 {
            self.name(&report.version());
        }
        self.name(&job.name);
        self.field(job.group);
        self.field(job.error);
        let percents = percents(job, facts);
        for block in report.blocks(job, self.version != 3) {
            self.direction(&block, &percents);
        }
        self.tail(job, facts);
        if self.version != 2 {
            report.results.disks.iter().for_each(|disk| self.disk(disk));
        }
        if let Some(total) = job.total_errors {
            self.field(total);
            self.field(job.error);
        }
        if let Some(description) = &job.description {
            if self.version == 2 {
                self.text.push('\n');
            }
            let _ = write!(self.text, ";{}", text::line(description));
        }
        self.text.push('\n');
    }

    fn direction(&mut self, block: &GroupDirection, percents: &[f64]) {
        let result: &DirectionResult = block.result;
        self.field(result.io_bytes / 1024);
        self.field(per_second(result.io_bytes, result.runtime_ms) / 1024);
        self.field(per_second(result.total_ios, result.runtime_ms));
        self.field(result.runtime_ms);
        self.latency(result.slat.as_ref());
        self.latency(result.clat.as_ref());
        self.percentiles(result, percents);
        self.latency(result.lat.as_ref());
        let percent = block.percent_of_group_terse();
        let bw = result.bw_intervals.clone().unwrap_or_default();
        self.field(whole(bw.min / 1024.0));
        self.field(whole(bw.max / 1024.0));
        self.percent(percent, 6);
        self.decimal(bw.mean / 1024.0);
        self.decimal(bw.stddev.unwrap_or(0.0) / 1024.0);
        if self.version == 5 {
            self.field(bw.n.unwrap_or(0));
            let iops: Spread = result.iops_intervals.clone().unwrap_or_default();
            self.field(whole(iops.min));
            self.field(whole(iops.max));
            self.decimal(iops.mean);
            self.decimal(iops.stddev.unwrap_or(0.0));
            self.field(iops.n.unwrap_or(0));
        }
    }

    /// Minimum, maximum, mean and deviation in µs.
    fn latency(&mut self, latency: Option<&Latency>) {
        let of = |value: fn(&Latency) -> f64| latency.map_or(0.0, value) / 1000.0;
        self.field(latency.map_or(0, |latency| latency.min_ns / 1000));
        self.field(latency.map_or(0, |latency| latency.max_ns / 1000));
        self.decimal(of(|latency| latency.mean_ns));
        self.decimal(of(|latency| latency.stddev_ns.unwrap_or(0.0)));
    }

    /// Percentiles in µs: of the whole latency where it has them, else of the completion.
    fn percentiles(&mut self, result: &DirectionResult, percents: &[f64]) {
        let has_some = |latency: &&Latency| !latency.percentiles_ns.is_empty();
        let latency = result
            .lat
            .as_ref()
            .filter(has_some)
            .or(result.clat.as_ref());
        for place in 0..PERCENTILES {
            match percents.get(place) {
                None => self.field("0%=0"),
                Some(&percent) => {
                    let ns = latency.and_then(|latency| latency.raw_percentile_ns(percent));
                    self.field(format_args!("{percent:.6}%={}", ns.unwrap_or(0) / 1000));
                }
            }
        }
    }

    fn tail(&mut self, job: &JobResult, facts: &JobFacts) {
        let cpu = job.cpu.clone().unwrap_or_default();
        self.percent(cpu.user_percent, 6);
        self.percent(cpu.system_percent, 6);
        self.field(cpu.context_switches);
        self.field(cpu.major_faults);
        self.field(cpu.minor_faults);
        for place in 0..DEPTHS {
            let level = job.iodepth_percent.get(place);
            self.percent(level.map_or(0.0, |&(_, percent)| percent), 1);
        }
        let counted = || LatencyClasses::of(job);
        let latencies = facts.latency_classes.clone().unwrap_or_else(counted);
        // The layout is older than latencies in ns: they count as below 2 µs.
        let mut us = latencies.us;
        us[0] += latencies.ns.iter().sum::<f64>();
        for percent in us.iter().chain(&latencies.ms) {
            self.percent(classes::shown(*percent), 2);
        }
    }

    fn disk(&mut self, disk: &DiskUse) {
        self.name(&disk.name);
        let counts = [
            disk.read_ios,
            disk.write_ios,
            disk.read_merges,
            disk.write_merges,
            disk.read_ticks_ms,
            disk.write_ticks_ms,
            disk.in_queue_ms,
        ];
        counts.iter().for_each(|count| self.field(count));
        self.percent(disk.util_percent, 2);
    }
}
