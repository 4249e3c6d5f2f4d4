//! A line of progress for each machine of a run.

use std::collections::BTreeMap;

use fathom_analysis::rate::Rates;
use fathom_model::{Sample, units};

/// As many machines have a line on a terminal: more would push it off the screen.
const LINES_MAX: usize = 16;

/// What each machine does in the interval in progress.
#[derive(Debug, Default)]
pub struct HostRates {
    /// Where each job runs, by its place.
    of_job: Vec<String>,
    rates: BTreeMap<String, Rates>,
}

impl HostRates {
    /// The machines of the jobs that samples refer to by place.
    pub fn begin(&mut self, hosts: &[String]) {
        self.of_job = hosts.to_vec();
        self.rates.clear();
    }

    /// Adds a sample.
    pub fn add(&mut self, sample: &Sample) {
        if let Some(host) = self.of_job.get(sample.job as usize) {
            let rates = self.rates.entry(host.clone()).or_default();
            rates.entry(sample.dir).or_default().add(sample);
        }
    }

    /// The lines of the interval that ends: one for each machine, in the order
    /// in which they were named; of very many those that do least.
    pub fn lines(&mut self) -> Vec<String> {
        let rates = std::mem::take(&mut self.rates);
        let mut hosts: Vec<&String> = Vec::new();
        for host in &self.of_job {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        if hosts.len() < 2 {
            return Vec::new();
        }
        let all = hosts.len();
        if all > LINES_MAX {
            let bandwidth = |host: &String| -> f64 {
                let rates = rates.get(host).into_iter().flatten();
                rates.map(|(_, rate)| rate.bw_bytes).sum()
            };
            hosts.sort_by(|a, b| bandwidth(a).total_cmp(&bandwidth(b)));
            hosts.truncate(LINES_MAX);
        }
        let width = hosts.iter().map(|host| host.chars().count()).max();
        let width = width.unwrap_or(0);
        let line = |host: &&String| {
            let rates = rates.get(*host).into_iter().flatten();
            let each = rates.map(|(dir, rate)| {
                let bandwidth = units::bytes_per_second(rate.bw_bytes);
                let iops = units::count(rate.iops);
                format!("{:<5} {iops:>5} IOPS  {bandwidth:>10}", dir.name())
            });
            let each: Vec<String> = each.collect();
            let what = match each.is_empty() {
                true => "no I/O".to_owned(),
                false => each.join("  "),
            };
            format!("  {host:<width$}  {what}")
        };
        let mut lines: Vec<String> = hosts.iter().map(line).collect();
        if all > hosts.len() {
            lines.push(format!("  … and {} more that do more", all - hosts.len()));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::Direction;

    #[test]
    fn every_machine_has_a_line_also_one_that_does_nothing() {
        let mut hosts = HostRates::default();
        assert!(hosts.lines().is_empty());
        hosts.begin(&["a".into(), "bench2".into()]);
        hosts.add(&Sample {
            t_ms: 1000,
            span_ms: 1000,
            job: 1,
            dir: Direction::Read,
            ios: 1000,
            bytes: 1000 << 12,
            clat: None,
        });
        let wanted = ["  a       no I/O", "  bench2  read     1k IOPS  3.91 MiB/s"];
        assert_eq!(hosts.lines(), wanted);
        assert_eq!(hosts.lines()[1], "  bench2  no I/O");
    }
}
