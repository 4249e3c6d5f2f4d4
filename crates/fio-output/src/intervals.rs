//! From fio's running totals to what each interval brought.

use std::time::Duration;

use fathom_model::{Direction, DirectionResult, Event, Histogram, JobResult, Results, Sample};

/// fio's "not known yet" for the time that is left: the largest int, and what
/// is near it after its own arithmetic (eta.c).
const ETA_UNKNOWN_S: u64 = i32::MAX as u64 - 1;

/// Turns successive documents into samples.
#[derive(Debug, Default)]
pub struct Intervals {
    names: Vec<String>,
    before: Vec<[JobTotals; 4]>,
    /// Time of the last document, ms since the run's start.
    last_ms: u64,
    ramping: bool,
}

/// Where a job stood in one direction.
#[derive(Debug, Clone, Default)]
struct JobTotals {
    ios: u64,
    bytes: u64,
    runtime_ms: u64,
    clat: Option<Histogram>,
}

impl Intervals {
    /// The events of one document of `at` after the run's start.
    pub fn document(&mut self, results: &Results, at: Duration, eta_s: Option<u64>) -> Vec<Event> {
        let t_ms = millis(at);
        let mut events = Vec::new();
        self.announce(results, &mut events);
        self.watch_ramp(results, &mut events);
        let interval_ms = t_ms.saturating_sub(self.last_ms);
        for (place, job) in results.jobs.iter().enumerate() {
            let ramping = is_ramping(results, job);
            for (dir, before) in Direction::MEASURED.into_iter().zip(&mut self.before[place]) {
                let now = totals(job, dir);
                if !ramping && now.awaits_bytes(before, job) {
                    continue;
                }
                let brought = now.since(before, interval_ms);
                *before = now;
                // fio itself throws away what was counted in a ramp.
                if ramping || (brought.ios == 0 && brought.bytes == 0) {
                    continue;
                }
                events.push(Event::Sample(Sample {
                    t_ms,
                    span_ms: brought.runtime_ms,
                    job: u32::try_from(place).unwrap_or(u32::MAX),
                    dir,
                    ios: brought.ios,
                    bytes: brought.bytes,
                    clat: brought.clat,
                    lat: None,
                }));
            }
        }
        self.last_ms = t_ms;
        events.push(Event::Interval {
            t_ms,
            remaining_ms: eta_s.filter(|&s| s < ETA_UNKNOWN_S).map(|s| s * 1000),
        });
        events
    }

    fn announce(&mut self, results: &Results, events: &mut Vec<Event>) {
        let names = results.jobs.iter().map(|job| &job.name);
        if names.clone().eq(self.names.iter()) {
            return;
        }
        self.names = names.cloned().collect();
        self.before = vec![Default::default(); self.names.len()];
        events.push(Event::Jobs {
            names: self.names.clone(),
            hosts: Vec::new(),
        });
    }

    /// Says once when jobs begin to ramp.
    fn watch_ramp(&mut self, results: &Results, events: &mut Vec<Event>) {
        let ramping: Vec<&str> = results
            .jobs
            .iter()
            .filter(|job| is_ramping(results, job))
            .map(|job| job.name.as_str())
            .collect();
        if !ramping.is_empty() && !self.ramping {
            let what = format!("ramp of {}", ramping.join(", "));
            events.push(Event::Preparing { what });
        }
        self.ramping = !ramping.is_empty();
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Whether a job is in its `ramp_time`: it moves data, and fio measures no
/// latencies of it yet (`ramp_time_over` in libfio.c guards them). A job that
/// never measures any cannot be told apart, and is not held back.
fn is_ramping(results: &Results, job: &JobResult) -> bool {
    let option = |name: &str| {
        let own = job.options.get(name);
        own.or_else(|| results.global_options.get(name))
    };
    let has_ramp = option("ramp_time").is_some_and(|value| value != "0");
    let measures = ["disable_clat", "disable_lat", "gtod_reduce"]
        .iter()
        .all(|name| option(name).is_none_or(|value| value == "0"));
    let mut directions = job.directions().peekable();
    has_ramp
        && measures
        && directions.peek().is_some()
        && directions.all(|(_, dir)| {
            dir.clat
                .as_ref()
                .is_none_or(|clat| clat.n.unwrap_or(0) == 0)
        })
}

fn totals(job: &JobResult, dir: Direction) -> JobTotals {
    let result = match dir {
        Direction::Read => &job.read,
        Direction::Write => &job.write,
        Direction::Trim => &job.trim,
        Direction::Mixed => &job.mixed,
        Direction::Sync => &None,
    };
    result
        .as_ref()
        .map_or_else(JobTotals::default, JobTotals::of)
}

impl JobTotals {
    fn of(result: &DirectionResult) -> Self {
        Self {
            ios: result.total_ios,
            bytes: result.io_bytes,
            runtime_ms: result.runtime_ms,
            clat: result.clat.as_ref().and_then(|clat| clat.histogram.clone()),
        }
    }

    /// Whether I/Os were counted whose bytes and time the next document has. fio
    /// takes down the bytes and the time of all jobs first, then waits until each
    /// has told its CPU time, and prints the I/Os and latencies that were counted
    /// meanwhile (`__show_running_run_stats` in stat.c): on a busy machine that is
    /// long. I/Os that failed have no bytes, and are not waited for.
    fn awaits_bytes(&self, before: &Self, job: &JobResult) -> bool {
        let all_succeeded = job.error == 0 && job.total_errors.unwrap_or(0) == 0;
        all_succeeded && self.ios > before.ios && self.bytes == before.bytes
    }

    /// What has been added since `before`; `runtime_ms` is then the span.
    fn since(&self, before: &Self, interval_ms: u64) -> Self {
        let clat = self.clat.as_ref().map(|now| match &before.clat {
            Some(before) => now.since(before),
            None => now.clone(),
        });
        let ran = self.runtime_ms.checked_sub(before.runtime_ms);
        let span = ran.filter(|&ms| ms > 0).unwrap_or(interval_ms);
        if let (Some(ios), Some(bytes)) = (
            self.ios.checked_sub(before.ios),
            self.bytes.checked_sub(before.bytes),
        ) {
            return Self {
                ios,
                bytes,
                runtime_ms: span,
                clat,
            };
        }
        // The end of a ramp: fio has started its counters anew. In a group some
        // members count on; then the latencies tell how many I/Os were counted
        // in the interval, and the average size of an I/O their bytes.
        let counted = clat.as_ref().map_or(0, Histogram::total);
        let ios = if counted > 0 {
            counted.min(self.ios)
        } else {
            self.ios
        };
        Self {
            ios,
            bytes: share(self.bytes, ios, self.ios),
            runtime_ms: if ran.is_none() { self.runtime_ms } else { span },
            clat,
        }
    }
}

/// `part` of `whole` units of which all are `total`.
fn share(total: u64, part: u64, whole: u64) -> u64 {
    if whole == 0 {
        return 0;
    }
    let share = u128::from(total) * u128::from(part) / u128::from(whole);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// The seconds that are left, as the first job of a document says (all say the
/// same: fio estimates the whole run).
pub fn eta_s(json: &[u8]) -> Option<u64> {
    let name = b"\"eta\" : ";
    let at = memchr::memmem::find(json, name)? + name.len();
    let digits = json[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let text: Vec<u8> = digits.copied().collect();
    std::str::from_utf8(&text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fathom_model::Latency;

    fn job(ios: u64, runtime_ms: u64, clat_n: u64) -> JobResult {
        let mut histogram = Histogram::new();
        histogram.add(1000, clat_n);
        JobResult {
            name: "a".into(),
            read: Some(DirectionResult {
                total_ios: ios,
                io_bytes: ios * 4096,
                runtime_ms,
                clat: Some(Latency {
                    n: Some(clat_n),
                    histogram: Some(histogram),
                    ..Latency::default()
                }),
                ..DirectionResult::default()
            }),
            ..JobResult::default()
        }
    }

    fn results(job: JobResult) -> Results {
        Results {
            jobs: vec![job],
            ..Results::default()
        }
    }

    fn samples(events: &[Event]) -> Vec<(u64, u64, u64, u64)> {
        events
            .iter()
            .filter_map(|event| match event {
                Event::Sample(s) => {
                    let counted = s.clat.as_ref().map_or(0, Histogram::total);
                    Some((s.ios, s.bytes / 4096, s.span_ms, counted))
                }
                _ => None,
            })
            .collect()
    }

    #[test]
    fn an_interval_is_the_difference_of_two_documents() {
        let mut intervals = Intervals::default();
        let at = Duration::from_millis;
        let first = intervals.document(&results(job(100, 500, 100)), at(600), Some(2));
        assert_eq!(
            first[0],
            Event::Jobs {
                names: vec!["a".into()],
                hosts: Vec::new(),
            }
        );
        assert_eq!(samples(&first), [(100, 100, 500, 100)]);
        assert_eq!(
            first.last(),
            Some(&Event::Interval {
                t_ms: 600,
                remaining_ms: Some(2000)
            })
        );
        let second =
            intervals.document(&results(job(250, 1500, 250)), at(1600), Some(4_294_967_294));
        assert_eq!(samples(&second), [(150, 150, 1000, 150)]);
        assert_eq!(
            second.last(),
            Some(&Event::Interval {
                t_ms: 1600,
                remaining_ms: None
            })
        );
        let idle = intervals.document(&results(job(250, 1500, 250)), at(2600), None);
        assert_eq!(samples(&idle), []);
    }

    /// As the real fio prints it when one of its jobs is stopped for two seconds
    /// while it waits for the CPU times of all.
    #[test]
    fn ios_whose_bytes_come_a_document_later_are_shown_with_them() {
        let mut intervals = Intervals::default();
        let at = Duration::from_millis;
        let with_bytes_of = |ios: u64, counted: u64, runtime_ms| {
            let mut job = job(counted, runtime_ms, counted);
            job.read.as_mut().unwrap().io_bytes = ios * 4096;
            results(job)
        };
        let early = intervals.document(&with_bytes_of(0, 40, 0), at(1000), None);
        assert_eq!(samples(&early), []);
        let whole = intervals.document(&with_bytes_of(900, 900, 900), at(2000), None);
        assert_eq!(samples(&whole), [(900, 900, 900, 900)]);
        let failed = |ios| {
            let mut failed = with_bytes_of(900, ios, 1900);
            failed.jobs[0].total_errors = Some(ios - 900);
            failed
        };
        let failed = intervals.document(&failed(950), at(3000), None);
        assert_eq!(samples(&failed), [(50, 0, 1000, 50)]);
    }

    #[test]
    fn the_counters_of_a_ramp_are_no_samples() {
        let mut intervals = Intervals::default();
        let ramping = |ios, ms, n| {
            let mut job = job(ios, ms, n);
            job.options.insert("ramp_time".into(), "2".into());
            results(job)
        };
        let at = Duration::from_millis;
        let events = intervals.document(&ramping(900, 900, 0), at(1000), None);
        assert_eq!(samples(&events), []);
        assert!(matches!(&events[1], Event::Preparing { what } if what == "ramp of a"));
        let again = intervals.document(&ramping(1900, 1900, 0), at(2000), None);
        assert!(!again.iter().any(|e| matches!(e, Event::Preparing { .. })));
        let events = intervals.document(&ramping(500, 500, 500), at(3000), None);
        assert_eq!(samples(&events), [(500, 500, 500, 500)]);
        let events = intervals.document(&ramping(1500, 1500, 1500), at(4000), None);
        assert_eq!(samples(&events), [(1000, 1000, 1000, 1000)]);
    }

    #[test]
    fn a_group_of_which_one_member_ends_its_ramp_counts_by_latencies() {
        let mut intervals = Intervals::default();
        let at = Duration::from_millis;
        intervals.document(&results(job(2383, 793, 794)), at(800), None);
        let events = intervals.document(&results(job(1903, 1299, 1903)), at(1300), None);
        assert_eq!(samples(&events), [(1109, 1109, 506, 1109)]);
    }

    #[test]
    fn the_time_left_is_read_from_the_document() {
        assert_eq!(eta_s(b"{ \"eta\" : 17,\n"), Some(17));
        assert_eq!(eta_s(b"{ \"eta\" : -1,\n"), None);
        assert_eq!(eta_s(b"{}"), None);
    }
}
