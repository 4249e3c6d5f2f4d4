//! fio's JSON: two blanks a level, `"name" : value`, decimals with six places.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fathom_model::histogram::{FIO_SATURATION_NS, bucket_of, middle_of};
use fathom_model::result::{PriorityResult, Spread};
use fathom_model::{Direction, DirectionResult, DiskUse, Histogram, JobResult, Latency};
use serde_json::Value;

use super::figures::{finite, whole};
use super::{GroupDirection, JobFacts, LatencyClasses, OutputReport, classes};

/// Names of the batch sizes of submission and completion.
const BATCHES: [&str; 7] = ["0", "4", "8", "16", "32", "64", ">=64"];
/// Names of the queue depths.
const DEPTHS: [&str; 7] = ["1", "2", "4", "8", "16", "32", ">=64"];
/// `eta` of a job that has ended: fio's "not known", INT_MAX.
const ETA_UNKNOWN: u64 = 2_147_483_647;
/// Order of the names in `steadystate`; others follow.
const STEADY: [&str; 7] = [
    "ss",
    "duration",
    "attained",
    "criterion",
    "max_deviation",
    "slope",
    "data",
];
const STEADY_DATA: [&str; 4] = ["bw_mean", "iops_mean", "iops", "bw"];

pub fn render(report: &OutputReport, bins: bool) -> String {
    let mut json = JsonWriter {
        bins,
        ..JsonWriter::default()
    };
    json.object(None, |json| {
        json.text("fio version", &report.version());
        let ms = report.results.timestamp_ms.unwrap_or(0);
        json.count("timestamp", ms / 1000);
        json.count("timestamp_ms", ms);
        json.text("time", &report.time().unwrap_or_default());
        let global = (&report.facts.global_options, &report.results.global_options);
        json.options("global options", global.0, global.1);
        json.array("jobs", report.jobs(), |json, (job, facts)| {
            json.job(report, job, facts);
        });
        let disks = &report.results.disks;
        if !disks.is_empty() {
            json.array("disk_util", disks, |json, disk| {
                json.object(None, |json| json.disk(disk));
            });
        }
    });
    json.out.push('\n');
    json.out
}

#[derive(Default)]
struct JsonWriter {
    out: String,
    depth: usize,
    /// Whether the innermost object or list holds something already.
    is_filled: bool,
    /// Whether histograms are wanted (json+).
    bins: bool,
}

impl JsonWriter {
    /// Begins a member, or an element when it has no name.
    fn begin(&mut self, name: Option<&str>) {
        if std::mem::replace(&mut self.is_filled, true) {
            self.out.push(',');
        }
        if self.depth > 0 {
            self.new_line();
        }
        if let Some(name) = name {
            self.string(name);
            self.out.push_str(" : ");
        }
    }

    fn new_line(&mut self) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n("  ", self.depth));
    }

    fn string(&mut self, text: &str) {
        // serde_json writes the quotes and escapes what JSON does not allow.
        self.out.push_str(&Value::from(text).to_string());
    }

    fn nested(&mut self, brackets: [char; 2], fill: impl FnOnce(&mut Self)) {
        self.out.push(brackets[0]);
        self.depth += 1;
        self.is_filled = false;
        fill(self);
        if !self.is_filled {
            self.out.push('\n');
        }
        self.depth -= 1;
        self.new_line();
        self.out.push(brackets[1]);
        self.is_filled = true;
    }

    fn object(&mut self, name: Option<&str>, fill: impl FnOnce(&mut Self)) {
        self.begin(name);
        self.nested(['{', '}'], fill);
    }

    fn array<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        mut write: impl FnMut(&mut Self, T),
    ) {
        self.begin(Some(name));
        self.nested(['[', ']'], |json| {
            items.into_iter().for_each(|item| write(json, item));
        });
    }

    fn text(&mut self, name: &str, text: &str) {
        self.begin(Some(name));
        self.string(text);
    }

    fn count(&mut self, name: &str, value: impl Into<i128>) {
        self.begin(Some(name));
        // Writing to a String cannot fail.
        let _ = write!(self.out, "{}", value.into());
    }

    fn decimal(&mut self, name: &str, value: f64) {
        self.begin(Some(name));
        let _ = write!(self.out, "{:.6}", finite(value));
    }

    /// Percentages by class name.
    fn shares(&mut self, name: &str, classes: &[&str], percent: &[f64]) {
        self.object(Some(name), |json| {
            for (class, percent) in classes.iter().zip(percent) {
                json.decimal(class, *percent);
            }
        });
    }

    fn options(
        &mut self,
        name: &str,
        in_order: &[(String, String)],
        others: &BTreeMap<String, String>,
    ) {
        if in_order.is_empty() && others.is_empty() {
            return;
        }
        self.object(Some(name), |json| {
            for (name, value) in in_order {
                json.text(name, value);
            }
            if in_order.is_empty() {
                others
                    .iter()
                    .for_each(|(name, value)| json.text(name, value));
            }
        });
    }

    fn job(&mut self, report: &OutputReport, job: &JobResult, facts: &JobFacts) {
        self.object(None, |json| {
            json.text("jobname", &job.name);
            json.count("groupid", job.group);
            if let Some(start_ms) = facts.start_ms {
                json.count("job_start", start_ms);
            }
            json.count("error", job.error);
            json.count("eta", facts.eta_s.unwrap_or(ETA_UNKNOWN));
            json.count("elapsed", facts.elapsed_s);
            json.options("job options", &facts.options, &job.options);
            let blocks = report.blocks(job, true);
            let is_unified = blocks.len() == 1;
            let (mixed, data): (Vec<_>, Vec<_>) = blocks
                .iter()
                .partition(|block| block.dir == Direction::Mixed);
            data.iter().for_each(|block| json.direction(report, block));
            if !is_unified {
                json.sync(job.sync.as_ref().unwrap_or(&report.unmeasured));
            }
            mixed.iter().for_each(|block| json.direction(report, block));
            let runtime_ms = facts.runtime_sum_ms.or(job.runtime_ms);
            json.count("job_runtime", runtime_ms.unwrap_or(0));
            json.job_figures(job, facts);
            if let Some(total) = job.total_errors {
                json.count("total_err", total);
                json.count("first_error", job.error);
            }
            if let Some(latency) = facts.latency(job) {
                json.count("latency_depth", latency.depth);
                json.count("latency_target", latency.target_ns);
                json.decimal("latency_percentile", latency.percentile);
                json.count("latency_window", latency.window_us);
            }
            if let Some(description) = &job.description {
                json.text("desc", description);
            }
            if let Some(steady) = &job.fio_steady_state {
                json.value(Some("steadystate"), steady, &STEADY);
            }
        });
    }

    fn job_figures(&mut self, job: &JobResult, facts: &JobFacts) {
        let cpu = job.cpu.clone().unwrap_or_default();
        self.decimal("usr_cpu", cpu.user_percent);
        self.decimal("sys_cpu", cpu.system_percent);
        self.count("ctx", cpu.context_switches);
        self.count("majf", cpu.major_faults);
        self.count("minf", cpu.minor_faults);
        self.object(Some("iodepth_level"), |json| {
            if job.iodepth_percent.is_empty() {
                DEPTHS.iter().for_each(|name| json.decimal(name, 0.0));
            }
            for (name, percent) in &job.iodepth_percent {
                json.decimal(name, *percent);
            }
        });
        self.shares("iodepth_submit", &BATCHES, &facts.submit_percent);
        self.shares("iodepth_complete", &BATCHES, &facts.complete_percent);
        let counted = || LatencyClasses::of(job);
        let latencies = facts.latency_classes.clone().unwrap_or_else(counted);
        self.shares(
            "latency_ns",
            &classes::NAMES,
            &latencies.ns.map(classes::shown),
        );
        self.shares(
            "latency_us",
            &classes::NAMES,
            &latencies.us.map(classes::shown),
        );
        self.shares(
            "latency_ms",
            &classes::NAMES,
            &latencies.ms.map(classes::shown),
        );
    }

    fn direction(&mut self, report: &OutputReport, block: &GroupDirection) {
        let result: &DirectionResult = block.result;
        self.object(Some(block.dir.name()), |json| {
            json.count("io_bytes", result.io_bytes);
            json.count("io_kbytes", result.io_bytes / 1024);
            let bw_bytes = whole(result.bw_bytes);
            json.count("bw_bytes", bw_bytes);
            json.count("bw", bw_bytes / 1024);
            json.decimal("iops", result.iops);
            json.count("runtime", result.runtime_ms);
            json.count("total_ios", result.total_ios);
            json.count("short_ios", result.short_ios.unwrap_or(0));
            json.count("drop_ios", result.drop_ios.unwrap_or(0));
            if let Some(lag) = &result.lag {
                json.latency("lag_ns", lag);
            }
            let kinds = [
                ("slat_ns", &result.slat),
                ("clat_ns", &result.clat),
                ("lat_ns", &result.lat),
            ];
            for (name, latency) in kinds {
                json.latency(name, latency.as_ref().unwrap_or(&report.unmeasured));
            }
            if !result.priorities.is_empty() {
                let name = match super::has_lat_percentiles(result) {
                    true => "lat_ns",
                    false => "clat_ns",
                };
                json.array("prios", &result.priorities, |json, priority| {
                    json.priority(priority, name);
                });
            }
            let percent = block.percent_of_group();
            json.intervals(result, percent);
        });
    }

    /// Interval statistics: bandwidths in KiB/s.
    fn intervals(&mut self, result: &DirectionResult, bw_percent: f64) {
        let bw = result.bw_intervals.clone().unwrap_or_default();
        self.count("bw_min", whole(bw.min / 1024.0));
        self.count("bw_max", whole(bw.max / 1024.0));
        self.decimal("bw_agg", bw_percent);
        self.decimal("bw_mean", bw.mean / 1024.0);
        self.decimal("bw_dev", bw.stddev.unwrap_or(0.0) / 1024.0);
        self.count("bw_samples", bw.n.unwrap_or(0));
        let iops: Spread = result.iops_intervals.clone().unwrap_or_default();
        self.count("iops_min", whole(iops.min));
        self.count("iops_max", whole(iops.max));
        self.decimal("iops_mean", iops.mean);
        self.decimal("iops_stddev", iops.stddev.unwrap_or(0.0));
        self.count("iops_samples", iops.n.unwrap_or(0));
    }

    fn sync(&mut self, latency: &Latency) {
        self.object(Some("sync"), |json| {
            json.count("total_ios", latency.n.unwrap_or(0));
            json.latency("lat_ns", latency);
        });
    }

    /// `name` says which of its latencies a job has by priority.
    fn priority(&mut self, priority: &PriorityResult, name: &str) {
        let (class, hint, level) = priority.parts();
        self.object(None, |json| {
            json.count("prioclass", class);
            json.count("prio", level);
            // Hints came with fio 3.36.
            if hint > 0 {
                json.count("priohint", hint);
            }
            json.latency(name, &priority.clat);
        });
    }

    fn latency(&mut self, name: &str, latency: &Latency) {
        self.object(Some(name), |json| {
            json.count("min", latency.min_ns);
            json.count("max", latency.max_ns);
            json.decimal("mean", latency.mean_ns);
            json.decimal("stddev", latency.stddev_ns.unwrap_or(0.0));
            json.count("N", latency.n.unwrap_or(0));
            // As in fio, there are bins where there are percentiles.
            if latency.percentiles_ns.is_empty() {
                return;
            }
            json.object(Some("percentile"), |json| {
                for &(percent, ns) in &latency.percentiles_ns {
                    json.count(&format!("{percent:.6}"), ns);
                }
            });
            if let Some(histogram) = latency.histogram.as_ref().filter(|_| json.bins) {
                json.object(Some("bins"), |json| {
                    for (value_ns, count) in bins(histogram) {
                        json.count(&value_ns.to_string(), count);
                    }
                });
            }
        });
    }

    fn disk(&mut self, disk: &DiskUse) {
        self.text("name", &disk.name);
        self.count("read_ios", disk.read_ios);
        self.count("write_ios", disk.write_ios);
        self.count("read_merges", disk.read_merges);
        self.count("write_merges", disk.write_merges);
        self.count("read_ticks", disk.read_ticks_ms);
        self.count("write_ticks", disk.write_ticks_ms);
        self.count("in_queue", disk.in_queue_ms);
        self.decimal("util", disk.util_percent);
    }

    /// A value as it is, an object's `first` names in this order in front.
    fn value(&mut self, name: Option<&str>, value: &Value, first: &[&str]) {
        self.begin(name);
        match value {
            Value::Object(members) => self.nested(['{', '}'], |json| {
                let known = first.iter().filter_map(|name| members.get_key_value(*name));
                let others = members
                    .iter()
                    .filter(|(name, _)| !first.contains(&name.as_str()));
                for (name, value) in known.chain(others) {
                    json.value(Some(name), value, &STEADY_DATA);
                }
            }),
            Value::Array(items) => self.nested(['[', ']'], |json| {
                items.iter().for_each(|item| json.value(None, item, &[]));
            }),
            Value::Number(number) if number.is_f64() => {
                let _ = write!(self.out, "{:.6}", number.as_f64().unwrap_or(0.0));
            }
            other => self.out.push_str(&other.to_string()),
        }
    }
}

/// The buckets by the values that stand for them. Fio's histogram ends at 17 s,
/// and programs search in its buckets alone (`fio_jsonplus_clat2csv` without
/// end): what is longer is in the last one, as fio has it.
fn bins(histogram: &Histogram) -> BTreeMap<u64, u64> {
    let last = bucket_of(FIO_SATURATION_NS - 1);
    let mut bins = BTreeMap::new();
    for (bucket, count) in histogram.buckets() {
        let bin: &mut u64 = bins.entry(middle_of(bucket.min(last))).or_default();
        *bin = bin.saturating_add(count);
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_end_where_those_of_fio_do() {
        let mut histogram = Histogram::new();
        histogram.add(900, 1);
        histogram.add(17_000_000_000, 2);
        histogram.add(60_000_000_000, 4);
        histogram.add(u64::MAX, 8);
        // fio 3.33 prints 17112760320 for everything above its end.
        let expected = BTreeMap::from([(900, 1), (16_978_542_592, 2), (17_112_760_320, 12)]);
        assert_eq!(bins(&histogram), expected);
    }
}
