//! fio's text for people.

use std::fmt::Write as _;

use fathom_model::result::Spread;
use fathom_model::{Direction, DirectionResult, DiskUse, JobResult, Latency, units};
use serde_json::Value;

use super::classes::{self, NAMES};
use super::figures::{self, TimeUnit, UnitStep, finite, per_second, whole};
use super::{GroupDirection, JobFacts, LatencyClasses, OutputReport, ReportingGroup, ShownSection};

/// Digits of the smallest and largest latency.
const LATENCY_DIGITS: usize = 6;
/// Classes of a line of the latency tables.
const CLASSES_A_LINE: usize = 5;
/// Columns for percentiles: 80 without the bar and what stands before it.
const PERCENTILE_COLUMNS: usize = 73;
/// Digits behind the point of a percent (fio's default `percentile_precision`).
const PRECISION: usize = 2;

/// `write!` to a String, which cannot fail.
macro_rules! put {
    ($out:expr, $($what:tt)*) => {{ let _ = write!($out, $($what)*); }};
}

pub fn render(report: &OutputReport) -> String {
    let mut text = NormalText { out: String::new() };
    text.announce(report);
    text.out.push('\n');
    for (job, facts) in report.jobs() {
        text.job(report, job, facts);
    }
    text.groups(report);
    if !report.results.disks.is_empty() {
        text.out.push_str("\nDisk stats (read/write):\n");
    }
    report.results.disks.iter().for_each(|disk| text.disk(disk));
    text.out
}

struct NormalText {
    out: String,
}

impl NormalText {
    /// What fio says before it starts: the sections, its version, how many jobs.
    fn announce(&mut self, report: &OutputReport) {
        let sections = &report.facts.sections;
        sections.iter().for_each(|section| self.section(section));
        put!(self.out, "{}\n", report.version());
        let jobs = |is_thread| -> u64 {
            let these = sections
                .iter()
                .filter(|section| section.is_thread == is_thread);
            these.map(|section| u64::from(section.numjobs.max(1))).sum()
        };
        let (threads, processes) = (jobs(true), jobs(false));
        let mut parts = Vec::new();
        if threads > 0 {
            parts.push(units::counted(threads, "thread"));
        }
        if processes > 0 {
            parts.push(units::counted(processes, "process"));
        }
        if !parts.is_empty() {
            put!(self.out, "Starting {}\n", parts.join(" and "));
        }
    }

    fn section(&mut self, section: &ShownSection) {
        put!(
            self.out,
            "{}: (g={}): rw={}, bs=",
            section.name,
            section.group,
            section.rw
        );
        for (name, (min, max)) in ["(R)", "(W)", "(T)"].iter().zip(section.block_bytes) {
            let size = |bytes| figures::bytes(bytes, UnitStep::Binary);
            put!(self.out, "{name} {}-{}, ", size(min), size(max));
        }
        put!(
            self.out,
            "ioengine={}, iodepth={}\n",
            section.ioengine,
            section.iodepth
        );
        if section.numjobs > 1 {
            self.out.push_str("...\n");
        }
    }

    fn job(&mut self, report: &OutputReport, job: &JobResult, facts: &JobFacts) {
        // fio says nothing of a job that moved nothing.
        if job
            .directions()
            .all(|(_, dir)| dir.io_bytes == 0 && dir.total_ios == 0)
        {
            return;
        }
        let members = job.members.unwrap_or(1);
        put!(
            self.out,
            "{}: (groupid={}, jobs={members}): err={:2}",
            job.name,
            job.group,
            job.error
        );
        if job.error != 0 {
            put!(self.out, " ({})", facts.error_text);
        }
        put!(
            self.out,
            ": pid={}: {}\n",
            facts.pid,
            report.time().unwrap_or_default()
        );
        if let Some(description) = &job.description {
            put!(self.out, "  Description  : [{description}]\n");
        }
        for (dir, result) in job.directions() {
            let group = report.groups.get(&(job.group, dir));
            let resets = job.zone_resets.unwrap_or(0);
            self.direction(&GroupDirection { dir, result, group }, resets);
        }
        let counted = || LatencyClasses::of(job);
        let classes = facts.latency_classes.clone().unwrap_or_else(counted);
        self.classes("nsec", &classes.ns);
        self.classes("usec", &classes.us);
        self.classes("msec", &classes.ms);
        if let Some(sync) = &job.sync {
            self.out.push_str("  fsync/fdatasync/sync_file_range:\n");
            self.latency("sync", sync);
            self.percentiles("sync", sync);
        }
        self.cpu(job);
        self.queue(job, facts);
        self.issued(job);
        if let Some(total) = job.total_errors {
            let name = std::io::Error::from_raw_os_error(job.error).to_string();
            let name = name.split(" (os error").next().unwrap_or_default();
            let name = if job.error == 0 { "Success" } else { name };
            put!(
                self.out,
                "     errors    : total={total}, first_error={}/<{name}>\n",
                job.error
            );
        }
        if let Some(latency) = facts.latency(job) {
            put!(
                self.out,
                "     latency   : target={}, window={}, percentile={:.2}%, depth={}\n",
                latency.target_ns,
                latency.window_us,
                latency.percentile,
                latency.depth
            );
        }
        if let Some(steady) = &job.fio_steady_state {
            self.steady_state(steady);
        }
    }

    fn direction(&mut self, block: &GroupDirection, zone_resets: u64) {
        let result: &DirectionResult = block.result;
        if result.runtime_ms == 0 {
            return;
        }
        let bw = per_second(result.io_bytes, result.runtime_ms);
        put!(
            self.out,
            "  {}: IOPS={}, BW={} ({})({}/{}msec)",
            block.dir.name(),
            figures::count(per_second(result.total_ios, result.runtime_ms)),
            figures::rate(bw, UnitStep::Binary),
            figures::rate(bw, UnitStep::Decimal),
            figures::bytes(result.io_bytes, UnitStep::Binary),
            result.runtime_ms,
        );
        match block.dir {
            Direction::Write => put!(self.out, "; {zone_resets} zone resets\n"),
            _ => self.out.push('\n'),
        }
        let kinds = [
            (" lag", &result.lag),
            ("slat", &result.slat),
            ("clat", &result.clat),
            (" lat", &result.lat),
        ];
        for (name, latency) in kinds {
            if let Some(latency) = latency {
                self.latency(name, latency);
            }
        }
        let kind = match super::has_lat_percentiles(result) {
            true => "lat",
            false => "clat",
        };
        let clat_n = result.clat.as_ref().and_then(|clat| clat.n).unwrap_or(0);
        for priority in &result.priorities {
            self.latency(
                &format!("{kind} prio {}", priority_name(priority)),
                &priority.clat,
            );
        }
        for (name, latency) in kinds {
            if let Some(latency) = latency {
                self.percentiles(name.trim_start(), latency);
            }
        }
        for priority in &result.priorities {
            let share = priority.clat.n.unwrap_or(0) as f64 * 100.0 / clat_n.max(1) as f64;
            let name = format!(
                "{kind} prio {} ({share:.2}% of IOs)",
                priority_name(priority)
            );
            self.percentiles(&name, &priority.clat);
        }
        self.intervals(block);
    }

    fn latency(&mut self, name: &str, latency: &Latency) {
        let stddev_ns = finite(latency.stddev_ns.unwrap_or(0.0));
        let unit = figures::unit_of_latency(latency.min_ns, latency.max_ns, stddev_ns);
        let scale = unit.ns as f64;
        let limit = |ns: u64| figures::scaled(ns / unit.ns, LATENCY_DIGITS, UnitStep::Decimal);
        put!(
            self.out,
            "    {name} ({}): min={}, max={}, avg={:5.2}, stdev={:5.2}\n",
            unit.name,
            limit(latency.min_ns),
            limit(latency.max_ns),
            finite(latency.mean_ns) / scale,
            stddev_ns / scale,
        );
    }

    fn percentiles(&mut self, name: &str, latency: &Latency) {
        let values = || latency.percentiles_ns.iter().map(|&(_, ns)| ns);
        let (Some(min), Some(max)) = (values().min(), values().max()) else {
            return;
        };
        let unit: TimeUnit = figures::unit_of_range(min, max);
        put!(self.out, "    {name} percentiles ({}):\n", unit.name);
        let width = max.div_ceil(unit.ns).to_string().len().max(5);
        let a_line = PERCENTILE_COLUMNS / (PRECISION + 10 + width);
        let all = &latency.percentiles_ns;
        let lines: Vec<String> = all
            .chunks(a_line.max(1))
            .map(|chunk| {
                let entry = |&(percent, ns): &(f64, u64)| {
                    format!(
                        " {percent:5.PRECISION$}th=[{:width$}]",
                        ns.div_ceil(unit.ns)
                    )
                };
                let entries: Vec<String> = chunk.iter().map(entry).collect();
                format!("     |{}", entries.join(","))
            })
            .collect();
        put!(self.out, "{}\n", lines.join(",\n"));
    }

    fn intervals(&mut self, block: &GroupDirection) {
        let percent = block.percent_of_group();
        if let Some(bw) = &block.result.bw_intervals {
            // In MiB/s once a GiB/s is reached.
            let is_large = bw.mean / 1024.0 > 1024.0 * 1024.0;
            let (unit, scale) = if is_large {
                ("MiB", 1024.0 * 1024.0)
            } else {
                ("KiB", 1024.0)
            };
            put!(
                self.out,
                "   bw ({unit:>5}/s): min={:5}, max={:5}, per={percent:.2}%, avg={:5.2}, \
                 stdev={:5.2}, samples={}\n",
                whole(bw.min / scale),
                whole(bw.max / scale),
                finite(bw.mean) / scale,
                finite(bw.stddev.unwrap_or(0.0)) / scale,
                bw.n.unwrap_or(0),
            );
        }
        if let Some(iops) = &block.result.iops_intervals {
            let iops: &Spread = iops;
            put!(
                self.out,
                "   iops        : min={:5}, max={:5}, avg={:5.2}, stdev={:5.2}, samples={}\n",
                whole(iops.min),
                whole(iops.max),
                finite(iops.mean),
                finite(iops.stddev.unwrap_or(0.0)),
                iops.n.unwrap_or(0),
            );
        }
    }

    /// The classes that hold something, five a line.
    fn classes(&mut self, unit: &str, percent: &[f64]) {
        let entry =
            |(name, percent): (&&str, &f64)| format!("{name}={:.2}%", classes::shown(*percent));
        let named = NAMES
            .iter()
            .zip(percent)
            .filter(|(_, percent)| **percent > 0.0);
        let entries: Vec<String> = named.map(entry).collect();
        for line in entries.chunks(CLASSES_A_LINE) {
            put!(self.out, "  lat ({unit})   : {}\n", line.join(", "));
        }
    }

    fn cpu(&mut self, job: &JobResult) {
        let cpu = job.cpu.clone().unwrap_or_default();
        put!(
            self.out,
            "  cpu          : usr={:.2}%, sys={:.2}%, ctx={}, majf={}, minf={}\n",
            finite(cpu.user_percent),
            finite(cpu.system_percent),
            cpu.context_switches,
            cpu.major_faults,
            cpu.minor_faults,
        );
    }

    fn queue(&mut self, job: &JobResult, facts: &JobFacts) {
        const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
        const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
        let mut levels = [0.0; DEPTHS.len()];
        for (place, (_, percent)) in levels.iter_mut().zip(&job.iodepth_percent) {
            *place = *percent;
        }
        let lines = [
            ("  IO depths    : ", DEPTHS, levels),
            ("     submit    : ", BATCHES, facts.submit_percent),
            ("     complete  : ", BATCHES, facts.complete_percent),
        ];
        for (label, names, percent) in lines {
            let entry = |(name, percent): (&str, f64)| format!("{name}={:.1}%", finite(percent));
            let entries: Vec<String> = names.into_iter().zip(percent).map(entry).collect();
            put!(self.out, "{label}{}\n", entries.join(", "));
        }
    }

    fn issued(&mut self, job: &JobResult) {
        let is_unified = job.mixed.is_some() && job.directions().count() == 1;
        let first = if is_unified { &job.mixed } else { &job.read };
        let dirs = [first, &job.write, &job.trim];
        let of = |count: fn(&DirectionResult) -> u64| {
            let counts = dirs.map(|dir| dir.as_ref().map_or(0, count).to_string());
            counts.join(",")
        };
        put!(
            self.out,
            "     issued rwts: total={},{} short={},0 dropped={},0\n",
            of(|dir| dir.total_ios),
            job.sync.as_ref().and_then(|sync| sync.n).unwrap_or(0),
            of(|dir| dir.short_ios.unwrap_or(0)),
            of(|dir| dir.drop_ios.unwrap_or(0)),
        );
    }

    fn steady_state(&mut self, steady: &Value) {
        let text = |name: &str| steady[name].as_str().unwrap_or_default();
        let mean = |name: &str| whole(steady["data"][name].as_f64().unwrap_or(0.0));
        let (rule, _) = text("ss").split_once(':').unwrap_or((text("ss"), ""));
        let rule = match rule.strip_suffix("_slope") {
            Some(of) => format!("{of} slope"),
            None => format!("{rule} mean dev"),
        };
        let criterion = text("criterion");
        let unit = if criterion.ends_with('%') { "%" } else { "" };
        let value: f64 = criterion.trim_end_matches('%').parse().unwrap_or(0.0);
        // Cut to whole KiB/s. Of it fio prints the number of KiB as that of kB, too.
        let bw = mean("bw_mean") / 1024 * 1024;
        put!(
            self.out,
            "  steadystate  : attained={}, bw={} ({}), iops={}, {rule}={:.3}{unit}\n",
            if steady["attained"].as_u64() == Some(1) {
                "yes"
            } else {
                "no"
            },
            figures::rate(bw, UnitStep::Binary),
            figures::rate(bw, UnitStep::Decimal),
            figures::count(mean("iops_mean")),
            finite(value),
        );
    }

    fn groups(&mut self, report: &OutputReport) {
        let mut numbers: Vec<u32> = report.results.jobs.iter().map(|job| job.group).collect();
        numbers.sort_unstable();
        numbers.dedup();
        for number in numbers {
            put!(self.out, "\nRun status group {number} (all jobs):\n");
            for dir in Direction::MEASURED {
                if let Some(group) = report.groups.get(&(number, dir)) {
                    self.group(dir, group);
                }
            }
        }
    }

    fn group(&mut self, dir: Direction, group: &ReportingGroup) {
        let rate = figures::rate;
        let (bw, min, max) = (group.bw_bytes(), group.bw_min, group.bw_max);
        let (binary, decimal) = (UnitStep::Binary, UnitStep::Decimal);
        put!(
            self.out,
            "{:>7}: bw={} ({}), {}-{} ({}-{}), io={} ({}), run={}-{}msec\n",
            dir.name().to_uppercase(),
            rate(bw, binary),
            rate(bw, decimal),
            rate(min, binary),
            rate(max, binary),
            rate(min, decimal),
            rate(max, decimal),
            figures::bytes(group.io_bytes, binary),
            figures::bytes(group.io_bytes, decimal),
            group.runtime_ms_min,
            group.runtime_ms_max,
        );
    }

    fn disk(&mut self, disk: &DiskUse) {
        put!(
            self.out,
            "  {}: ios={}/{}, merge={}/{}, ticks={}/{}, in_queue={}, util={:.2}%\n",
            disk.name,
            disk.read_ios,
            disk.write_ios,
            disk.read_merges,
            disk.write_merges,
            disk.read_ticks_ms,
            disk.write_ticks_ms,
            disk.in_queue_ms,
            finite(disk.util_percent),
        );
    }
}

/// Class and level, and the hint where there is one (fio ≥ 3.36): `1/3`.
fn priority_name(priority: &fathom_model::result::PriorityResult) -> String {
    match priority.parts() {
        (class, 0, level) => format!("{class}/{level}"),
        (class, hint, level) => format!("{class}/{level}/{hint}"),
    }
}
