//! `.res`: six figures on a line, taken from fio's terse output.

use fathom_model::{DirectionResult, JobResult, Latency, Results};

/// Reads, then writes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SsvFigures([SsvDirection; 2]);

/// One direction; zeros for one that moved nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
struct SsvDirection {
    bw_kib: u64,
    iops: u64,
    clat_us: f64,
}

/// `None` for what tells nothing: of a run that failed the fields can be empty
/// or text, of a pretended one all are 0.
pub(super) fn parse(bytes: &[u8]) -> Option<SsvFigures> {
    let text = std::str::from_utf8(bytes).ok()?;
    let fields: Vec<&str> = text.trim().split(',').collect();
    let direction = |fields: &[&str]| {
        Some(SsvDirection {
            bw_kib: fields[0].parse().ok()?,
            iops: fields[1].parse().ok()?,
            clat_us: fields[2].parse().ok().filter(|us: &f64| us.is_finite())?,
        })
    };
    if fields.len() != 6 {
        return None;
    }
    let figures = [direction(&fields[..3])?, direction(&fields[3..])?];
    let moved = figures.iter().any(|direction| direction.bw_kib > 0);
    moved.then_some(SsvFigures(figures))
}

impl SsvFigures {
    /// All that can be known of the test from them.
    pub(super) fn results(&self) -> Results {
        let result = |direction: SsvDirection| {
            (direction.bw_kib > 0).then(|| DirectionResult {
                bw_bytes: direction.bw_kib as f64 * 1024.0,
                iops: direction.iops as f64,
                clat: (direction.clat_us > 0.0).then(|| Latency {
                    mean_ns: direction.clat_us * 1000.0,
                    ..Latency::default()
                }),
                ..DirectionResult::default()
            })
        };
        let job = JobResult {
            name: "job".to_owned(),
            read: result(self.0[0]),
            write: result(self.0[1]),
            ..JobResult::default()
        };
        Results {
            jobs: vec![job],
            ..Results::default()
        }
    }

    /// Whether an output has the same figures. Its rates are worked out from
    /// bytes and time, these are cut to whole numbers.
    pub(super) fn agree_with(&self, results: &Results) -> bool {
        let [job] = results.jobs.as_slice() else {
            return false;
        };
        let pairs = [(self.0[0], &job.read), (self.0[1], &job.write)];
        pairs.into_iter().all(|(told, result)| match result {
            None => told.bw_kib == 0,
            Some(result) => {
                let clat = result.clat.as_ref().map_or(0.0, |clat| clat.mean_ns);
                (result.bw_bytes / 1024.0 - told.bw_kib as f64).abs() <= 1.0
                    && (result.iops - told.iops as f64).abs() <= 1.0
                    && (clat / 1000.0 - told.clat_us).abs() < 0.001
            }
        })
    }
}
