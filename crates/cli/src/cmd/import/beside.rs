//! What `iostat` told of a machine beside the runs of an import.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_import::IostatLog;
use fathom_model::{NodeSample, Results, units};
use fathom_record::{RecordError, StatsWriter};

/// Clocks of the world differ by quarters of an hour, by so many at the most
/// (UTC-12 to UTC+14).
const QUARTER_MS: i64 = 900_000;
const QUARTERS_MOST: i64 = 14 * 4;

/// When a report was measured, ms since 1970 UTC: up to when fio wrote it.
pub fn time_of(results: &Results) -> Option<(u64, u64)> {
    let end_ms = results.timestamp_ms?;
    let runtimes = results.jobs.iter().filter_map(|job| job.runtime_ms);
    Some((end_ms.saturating_sub(runtimes.max()?), end_ms))
}

/// The machines of an import, by their names.
#[derive(Debug, Default)]
pub struct MachinesBeside {
    samples: BTreeMap<String, Vec<NodeSample>>,
    /// What was done to lay them beside the runs, a sentence each.
    pub notes: Vec<String>,
}

impl MachinesBeside {
    /// Lays logs beside what was measured at these times.
    pub fn of<'l>(
        logs: impl Iterator<Item = &'l IostatLog>,
        times: impl Iterator<Item = (u64, u64)>,
    ) -> Self {
        let whole = times.reduce(|one, next| (one.0.min(next.0), one.1.max(next.1)));
        let mut all = Self::default();
        for log in logs {
            let shift_ms = match (log.has_zone, whole, extent(log)) {
                (false, Some(run), Some(own)) => nearest_shift(own, run),
                _ => 0,
            };
            let is_beside = whole
                .zip(extent(log))
                .is_some_and(|(run, own)| overlap(own, run, shift_ms) > 0);
            let host = match log.host.as_str() {
                "" => "machine",
                host => host,
            };
            if shift_ms != 0 && is_beside {
                let by = units::duration(shift_ms.unsigned_abs());
                let sign = if shift_ms < 0 { "-" } else { "+" };
                all.notes.push(format!(
                    "the times of iostat on {host} have no zone: {sign}{by} puts them beside the run"
                ));
            } else if !is_beside {
                all.notes.push(format!(
                    "iostat on {host} told of another time than the run, as far as its output says when it ran"
                ));
            }
            let shifted = log.samples.iter().cloned().map(|mut sample| {
                sample.at_ms = sample.at_ms.saturating_add_signed(shift_ms);
                sample
            });
            all.samples
                .entry(host.to_owned())
                .or_default()
                .extend(shifted);
        }
        for samples in all.samples.values_mut() {
            samples.sort_by_key(|sample| sample.at_ms);
        }
        all
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// Writes them into a record.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn write(self, record: &Path) -> Result<(), RecordError> {
        for (host, samples) in self.samples {
            let interval_ms = samples.first().map_or(0, |sample| sample.span_ms);
            let mut writer = StatsWriter::create(record, &host, interval_ms)?;
            for sample in samples {
                writer.sample(sample)?;
            }
        }
        Ok(())
    }
}

/// Begin and end of a log.
fn extent(log: &IostatLog) -> Option<(u64, u64)> {
    let (first, last) = (log.samples.first()?, log.samples.last()?);
    Some((first.at_ms.saturating_sub(first.span_ms), last.at_ms))
}

/// How long both are there together, in ms, when the one is shifted.
fn overlap(own: (u64, u64), run: (u64, u64), shift_ms: i64) -> u64 {
    let [begin, end] = [own.0, own.1].map(|at| at.saturating_add_signed(shift_ms));
    end.min(run.1).saturating_sub(begin.max(run.0))
}

/// The smallest shift by quarters of an hour with which a log lies beside the run longest.
fn nearest_shift(own: (u64, u64), run: (u64, u64)) -> i64 {
    let shifts = (-QUARTERS_MOST..=QUARTERS_MOST).map(|quarters| quarters * QUARTER_MS);
    let best = shifts.max_by_key(|&shift| (overlap(own, run, shift), -shift.abs()));
    best.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_a_zone_is_laid_beside_the_run() {
        let hour = 3_600_000;
        let run = (10 * hour, 10 * hour + 60_000);
        let at = |begin: u64| (begin, begin + 90_000);
        assert_eq!(nearest_shift(at(10 * hour - 10_000), run), 0);
        assert_eq!(nearest_shift(at(12 * hour - 10_000), run), -2 * hour as i64);
        assert_eq!(
            nearest_shift(at(4 * hour + hour / 2), run),
            (5 * hour + hour / 2) as i64
        );
        // Another day: nothing puts it there.
        assert_eq!(
            overlap(at(90 * hour), run, nearest_shift(at(90 * hour), run)),
            0
        );
    }
}
