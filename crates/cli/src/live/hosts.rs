//! A line of progress for each machine of a run.

use fathom_analysis::rate::HostRates;
use fathom_model::units;

/// A line for each machine, the slowest first, and no more than `room` of them: it is
/// the slowest that everything waits for.
pub fn host_lines(hosts: &HostRates, room: usize) -> Vec<String> {
    let mut hosts = hosts.slowest_first();
    let all = hosts.len();
    if all > room {
        hosts.truncate(room.saturating_sub(1).max(1));
    }
    let width = hosts.iter().map(|(host, _)| host.chars().count()).max();
    let width = width.unwrap_or(0);
    let mut lines = Vec::new();
    for (host, rates) in &hosts {
        let each = rates.iter().map(|(dir, rate)| {
            let bandwidth = units::bytes_per_second(rate.bw_bytes);
            let iops = units::count(rate.iops);
            format!("{:<5} {iops:>5} IOPS  {bandwidth:>10}", dir.name())
        });
        let what = match rates.is_empty() {
            true => "no I/O".to_owned(),
            false => each.collect::<Vec<_>>().join("  "),
        };
        lines.push(format!("  {host:<width$}  {what}"));
    }
    if all > hosts.len() {
        lines.push(format!("  … and {} more that do more", all - hosts.len()));
    }
    lines
}

#[cfg(test)]
mod tests {
    use fathom_model::{Direction, Event, Sample};

    use super::*;

    fn second(hosts: &mut HostRates, ios_of_each: &[u64]) {
        for (job, ios) in (0..).zip(ios_of_each) {
            let sample = Sample {
                t_ms: 1000,
                span_ms: 1000,
                job,
                dir: Direction::Read,
                ios: *ios,
                bytes: ios << 12,
                clat: None,
                lat: None,
            };
            hosts.take(&Event::Sample(sample));
        }
        hosts.take(&Event::Interval {
            t_ms: 1000,
            remaining_ms: None,
        });
    }

    fn of(names: &[&str]) -> HostRates {
        let mut hosts = HostRates::default();
        hosts.take(&Event::Jobs {
            names: Vec::new(),
            hosts: names.iter().map(|name| (*name).to_owned()).collect(),
        });
        hosts
    }

    #[test]
    fn every_machine_has_a_line_also_one_that_does_nothing_and_the_slowest_is_first() {
        assert!(host_lines(&of(&["alone"]), 9).is_empty());
        let mut hosts = of(&["a", "bench2"]);
        second(&mut hosts, &[1000]);
        let wanted = ["  bench2  no I/O", "  a       read     1k IOPS  3.91 MiB/s"];
        assert_eq!(host_lines(&hosts, 9), wanted);
    }

    #[test]
    fn there_are_as_many_machines_as_fit() {
        let mut hosts = of(&["a", "b", "c", "d"]);
        second(&mut hosts, &[4000, 1000, 3000, 2000]);
        let names = |room| -> Vec<String> {
            let lines = host_lines(&hosts, room).into_iter();
            let name = |line: String| line.split_whitespace().next().map(str::to_owned);
            lines.filter_map(name).collect()
        };
        assert_eq!(names(4), ["b", "d", "c", "a"]);
        assert_eq!(names(3), ["b", "d", "…"]);
        let lines = host_lines(&hosts, 3);
        assert_eq!(lines[2], "  … and 2 more that do more");
    }
}
