//! fio's normal output, the text for people, of any age.
//!
//! Indentation is not looked at: texts that went through a web page or a mail
//! have lost it. Figures that fio rounded stay rounded; the numbers of I/Os are
//! exact, from the line `issued`, and so are the IOPS made from them.

use std::collections::{BTreeMap, BTreeSet};

use fathom_model::{Direction, DirectionResult, JobResult, ReasonKind, Results};

use super::json::most_jobs;

mod figures;
mod lines;

use lines::LatencyKind;

/// What a normal output holds.
#[derive(Debug, Default)]
pub struct Normal {
    /// One for each run or state that the text shows, in order.
    pub results: Vec<Results>,
    /// What is doubtful, a sentence each.
    pub warnings: Vec<String>,
}

/// Reads every report in `input`; `None` when there is none.
pub fn parse(input: &[u8]) -> Option<Normal> {
    let text = String::from_utf8_lossy(input);
    let mut reader = NormalReader {
        jobs_left: most_jobs(input.len()),
        ..NormalReader::default()
    };
    for line in text.lines() {
        // Progress is overwritten with a carriage return.
        let line = line
            .rsplit('\r')
            .find(|part| !part.is_empty())
            .unwrap_or("");
        reader.take(line.trim());
    }
    reader.end_report();
    (!reader.normal.results.is_empty()).then_some(reader.normal)
}

/// Reads line by line.
#[derive(Default)]
struct NormalReader {
    normal: Normal,
    results: Results,
    /// Job in progress; its last direction; what the next percentiles are of.
    job: Option<JobResult>,
    dir: Option<Direction>,
    percentiles: Option<(LatencyKind, f64)>,
    issued: Option<lines::IssuedIos>,
    /// Names of the groups' jobs as announced at the start; none for a group
    /// of several.
    announced: BTreeMap<u32, Option<String>>,
    /// Group whose lines are being read, those that have jobs, and those whose
    /// jobs are not in the text.
    group: Option<u32>,
    groups_with_jobs: BTreeSet<u32>,
    lone_groups: BTreeMap<u32, JobResult>,
    /// How many more jobs are believed.
    jobs_left: usize,
    /// Host of the next job, in client mode.
    host: Option<String>,
    is_client: bool,
}

impl NormalReader {
    fn take(&mut self, line: &str) {
        if line.is_empty() {
            return;
        }
        if line.starts_with("fio-") && !line.contains(' ') {
            if self.has_jobs() {
                self.end_report();
                self.announced.clear();
            }
            self.results.engine_version = Some(line.to_owned());
        } else if let Some((group, name)) = lines::announced(line) {
            // Jobs are announced before the version is said.
            if self.has_jobs() {
                self.end_report();
                self.announced.clear();
            }
            self.announce(group, name);
        } else if let Some(version) = client_of(line) {
            self.results.engine_version = Some(version.to_owned());
        } else if let Some(host) = host(line) {
            self.is_client = true;
            self.host = Some(host.to_owned());
        } else if let Some(job) = lines::job(line) {
            self.begin_job(job);
        } else if let Some(group) = lines::group_begins(line) {
            self.end_job();
            self.group = Some(group);
        } else if let Some(mut disk) = lines::disk(line) {
            self.end_job();
            disk.host = self
                .results
                .jobs
                .last()
                .and_then(|job| job.hostname.clone());
            self.results.disks.push(disk);
        } else if let Some(group) = self.group {
            self.group_line(group, line);
        } else {
            self.job_line(line);
        }
    }

    fn has_jobs(&self) -> bool {
        self.job.is_some() || !self.results.jobs.is_empty() || !self.lone_groups.is_empty()
    }

    fn announce(&mut self, group: u32, name: &str) {
        let known = self.announced.get(&group);
        let is_other = known.is_some_and(|known| known.as_deref() != Some(name));
        let name = (!is_other).then(|| name.to_owned());
        self.announced.insert(group, name);
    }

    fn begin_job(&mut self, mut job: JobResult) {
        self.end_job();
        // Groups and disks end a report; in client mode each host has its own.
        if !self.is_client && (self.group.is_some() || !self.results.disks.is_empty()) {
            let version = self.results.engine_version.clone();
            self.end_report();
            self.results.engine_version = version;
        }
        self.group = None;
        job.hostname = self.host.take();
        self.job = Some(job);
    }

    fn job_line(&mut self, line: &str) {
        let Some(job) = self.job.as_mut() else {
            return;
        };
        if let Some((dir, result)) = lines::direction(line) {
            if let Some(place) = job.direction_mut(dir) {
                *place = Some(result);
                self.dir = Some(dir);
            }
        } else if line.starts_with('|') {
            if let (Some((kind, unit)), Some(dir)) = (self.percentiles, self.dir)
                && let Some(latency) = lines::placed(job, dir, kind)
            {
                let more = lines::percentiles(line, unit);
                latency.percentiles_ns.extend(more);
            }
        } else if let Some(of) = lines::percentiles_of(line) {
            self.percentiles = Some(of);
        } else if line.starts_with("fsync/") {
            self.dir = Some(Direction::Sync);
        } else if let Some((kind, latency)) = lines::latency(line) {
            if let Some(dir) = self.dir {
                lines::place(job, dir, kind, latency);
            }
        } else if let Some((is_bandwidth, spread)) = lines::intervals(line) {
            if let Some(Some(result)) = self.dir.and_then(|dir| job.direction_mut(dir)) {
                let place = if is_bandwidth {
                    &mut result.bw_intervals
                } else {
                    &mut result.iops_intervals
                };
                *place = Some(spread);
            }
        } else {
            self.job_figures(line);
        }
    }

    /// Lines of the job as a whole.
    fn job_figures(&mut self, line: &str) {
        let Some(job) = self.job.as_mut() else {
            return;
        };
        if let Some(cpu) = lines::cpu(line) {
            job.cpu = Some(cpu);
        } else if let Some(depths) = lines::depths(line) {
            job.iodepth_percent = depths;
        } else if let Some(issued) = lines::issued(line) {
            self.issued = Some(issued);
        } else if let Some((total, first)) = lines::errors(line) {
            job.total_errors = Some(total);
            if job.error == 0 {
                job.error = first;
            }
        } else if let Some(steady) = lines::steady_state(line) {
            job.fio_steady_state = Some(steady);
        } else if let Some(target) = lines::latency_target(line) {
            job.latency_target = Some(target);
        } else if let Some(text) = lines::after_label(line, "Description") {
            let text = text.trim_start_matches('[').trim_end_matches(']');
            job.description = Some(text.to_owned());
        }
    }

    fn end_job(&mut self) {
        self.dir = None;
        self.percentiles = None;
        let issued = self.issued.take();
        let Some(mut job) = self.job.take() else {
            return;
        };
        count_ios(&mut job, issued);
        job.runtime_ms = job.directions().map(|(_, dir)| dir.runtime_ms).max();
        self.groups_with_jobs.insert(job.group);
        if self.may_add_job() {
            self.results.jobs.push(job);
        }
    }

    fn may_add_job(&mut self) -> bool {
        if self.jobs_left == 0 {
            return false;
        }
        self.jobs_left -= 1;
        if self.jobs_left == 0 {
            let text = "more jobs than fio can have written; the rest is left out";
            self.normal.warnings.push(text.to_owned());
        }
        true
    }

    /// A line of a group. Its figures are made from its jobs; where the text
    /// has none of them (somebody left them out), they stand for the jobs.
    fn group_line(&mut self, group: u32, line: &str) {
        let Some((dir, mut result)) = lines::group(line) else {
            return;
        };
        if self.groups_with_jobs.contains(&group) {
            return;
        }
        if !self.lone_groups.contains_key(&group) && !self.may_add_job() {
            return;
        }
        let name = match self.announced.get(&group) {
            Some(Some(name)) => name.clone(),
            _ => format!("group {group}"),
        };
        let job = self.lone_groups.entry(group).or_insert_with(|| JobResult {
            name,
            group,
            ..JobResult::default()
        });
        result.told = vec![ReasonKind::UnknownCounts];
        job.runtime_ms = job.runtime_ms.max(Some(result.runtime_ms));
        if let Some(place) = job.direction_mut(dir) {
            *place = Some(result);
        }
    }

    fn end_report(&mut self) {
        self.end_job();
        self.group = None;
        self.groups_with_jobs.clear();
        let lone = std::mem::take(&mut self.lone_groups);
        for (group, job) in lone {
            self.normal.warnings.push(format!(
                "group {group}: its jobs are not in the text; read from the group's line"
            ));
            self.results.jobs.push(job);
        }
        self.results.jobs.sort_by_key(|job| job.group);
        let results = std::mem::take(&mut self.results);
        if !results.jobs.is_empty() {
            self.normal.results.push(results);
        }
    }
}

/// `<host>` at the beginning of a line, as fio's client marks what hosts say.
fn host(line: &str) -> Option<&str> {
    let (host, rest) = line.strip_prefix('<')?.split_once('>')?;
    rest.trim().is_empty().then_some(host)
}

/// fio's version in what its client says of a host: `hostname=vm, be=0, …, fio=fio-3.33, …`.
fn client_of(line: &str) -> Option<&str> {
    line.starts_with("hostname=")
        .then(|| figures::value(line, "fio"))?
}

/// Puts exact numbers of I/Os in, or works them out from the rounded rates.
fn count_ios(job: &mut JobResult, issued: Option<lines::IssuedIos>) {
    let is_unified = job.mixed.is_some() && job.directions().count() == 1;
    let data = [Direction::Read, Direction::Write, Direction::Trim];
    let (mut ios, mut io_bytes) = (0u64, 0u64);
    for (place, dir) in data.into_iter().enumerate() {
        let dir = if is_unified && place == 0 {
            Direction::Mixed
        } else {
            dir
        };
        let Some(Some(result)) = job.direction_mut(dir) else {
            continue;
        };
        match &issued {
            Some(issued) => exact(result, issued, place),
            None => from_rate(result),
        }
        ios = ios.saturating_add(result.total_ios);
        io_bytes = io_bytes.saturating_add(result.io_bytes);
    }
    // unified_rw_reporting=both: fio 3.33 prints zeros for the sum.
    if let Some(mixed) = job.mixed.as_mut().filter(|_| !is_unified) {
        mixed.total_ios = ios;
        if mixed.io_bytes == 0 {
            mixed.io_bytes = io_bytes;
            mixed.bw_bytes = per_second(io_bytes, mixed.runtime_ms).unwrap_or(0.0);
        }
        mixed.iops = per_second(ios, mixed.runtime_ms).unwrap_or(0.0);
    }
}

fn exact(result: &mut DirectionResult, issued: &lines::IssuedIos, place: usize) {
    let Some(total) = issued.total[place] else {
        return from_rate(result);
    };
    result.total_ios = total;
    result.iops = per_second(total, result.runtime_ms).unwrap_or(result.iops);
    result.short_ios = issued.short[place];
    result.drop_ios = issued.dropped[place];
}

fn from_rate(result: &mut DirectionResult) {
    let ios = result.iops * result.runtime_ms as f64 / 1000.0;
    result.total_ios = figures::whole(ios).unwrap_or(0);
    result.told.push(ReasonKind::RoundedCounts);
}

fn per_second(count: u64, runtime_ms: u64) -> Option<f64> {
    (runtime_ms > 0).then(|| count as f64 * 1000.0 / runtime_ms as f64)
}
