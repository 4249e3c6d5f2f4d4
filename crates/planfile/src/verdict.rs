//! Whether assertions hold, by the document of a run.

use std::fmt;

use fathom_model::result::ALL_CLIENTS;
use fathom_model::{Direction, DirectionResult, Exit, JobResult, Latency, ReasonKind, RunDocument};
use serde::Serialize;

use super::assertion::{AssertedFigure, Assertion, Comparator, LatencyPart, LatencyValue};

/// What came of an assertion.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AssertionVerdict {
    /// The assertion, as it is written.
    pub assertion: String,
    /// Whether it holds; what has no figure does not.
    pub holds: bool,
    /// The figure; of several the one that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figure: Option<f64>,
    /// What it was compared with.
    pub limit: f64,
    /// The unit of both: `iops`, `bytes_per_second`, `ios`, `bytes`, `ns`.
    pub unit: &'static str,
    /// What makes the figure doubtful.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<ReasonKind>,
    /// Why there is no figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The figure for people.
    #[serde(skip)]
    shown: String,
}

impl fmt::Display for AssertionVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = if self.holds { "holds" } else { "does not hold" };
        let what = self.reason.as_ref().unwrap_or(&self.shown);
        write!(f, "{} {verb}: {what}", self.assertion)?;
        for (n, doubt) in self.doubts.iter().enumerate() {
            let begin = if n == 0 { "; doubtful" } else { "" };
            write!(f, "{begin}: {}", doubt.meaning())?;
        }
        Ok(())
    }
}

/// Judges each assertion by the figures of a run.
pub fn evaluate(assertions: &[Assertion], run: &RunDocument) -> Vec<AssertionVerdict> {
    assertions
        .iter()
        .map(|assertion| judge(assertion, run))
        .collect()
}

/// The exit code of a run that has ended well: whether all assertions hold.
pub fn exit(verdicts: &[AssertionVerdict]) -> Exit {
    match verdicts.iter().all(|verdict| verdict.holds) {
        true => Exit::Success,
        false => Exit::ConditionFailed,
    }
}

fn judge(assertion: &Assertion, run: &RunDocument) -> AssertionVerdict {
    let verdict = AssertionVerdict {
        assertion: assertion.written.clone(),
        holds: false,
        figure: None,
        limit: assertion.limit,
        unit: assertion.figure.unit(),
        doubts: Vec::new(),
        reason: None,
        shown: String::new(),
    };
    let found = figures(assertion, run);
    match found.and_then(|found| Ok((decisive(assertion, &found)?, found))) {
        Ok((figure, found)) => {
            let mut doubts: Vec<ReasonKind> = found
                .iter()
                .flat_map(|(_, doubts)| doubts.clone())
                .collect();
            doubts.sort();
            doubts.dedup();
            AssertionVerdict {
                holds: assertion.comparison.holds(figure, assertion.limit),
                figure: Some(figure),
                doubts,
                shown: assertion.figure.show(figure, assertion.limit),
                ..verdict
            }
        }
        Err(reason) => AssertionVerdict {
            reason: Some(reason),
            ..verdict
        },
    }
}

/// The figures that it is about, with what makes each doubtful; else why there is none.
fn figures(
    assertion: &Assertion,
    run: &RunDocument,
) -> Result<Vec<(f64, Vec<ReasonKind>)>, String> {
    let prepares = |job: &JobResult| {
        let step = job.step.as_ref();
        step.is_some_and(|step| run.preparations.contains(step))
    };
    let of_step = run
        .jobs
        .iter()
        .filter(|job| is_of_step(job, &assertion.step) && !prepares(job));
    let jobs: Vec<&JobResult> = of_step.collect();
    if jobs.is_empty() {
        return Err(format!("no figures: {} was not measured", assertion.step));
    }
    let mut jobs = of_job(jobs, assertion.job.as_deref());
    if jobs.is_empty() {
        let job = assertion.job.as_deref().unwrap_or_default();
        return Err(format!("no figures: the job {job} was not measured"));
    }
    if let Some(job) = jobs.iter().find(|job| job.has_failed()) {
        return Err(format!("no figures to go by: the job {} failed", job.name));
    }
    // Of all results of a step those count that do something in this direction.
    let direction = assertion.direction;
    jobs.retain(|job| has_direction(job, direction));
    if jobs.is_empty() {
        return Err(format!("no {} figures were measured", direction.name()));
    }
    // Jobs that run at once add up; one after the other they do not.
    if adds_up(assertion.figure) && are_members_of_one(&jobs) {
        let parts: Result<Vec<_>, _> = jobs.iter().map(|job| figure(assertion, job)).collect();
        let parts = parts?;
        let sum = parts.iter().map(|(value, _)| value).sum();
        let doubts = parts.into_iter().flat_map(|(_, doubts)| doubts).collect();
        return Ok(vec![(sum, doubts)]);
    }
    jobs.into_iter().map(|job| figure(assertion, job)).collect()
}

/// A run of one step does not name it.
fn is_of_step(job: &JobResult, step: &str) -> bool {
    let Some(own) = &job.step else {
        return true;
    };
    let behind = own.strip_prefix(step);
    behind.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The results of a job: the sum over hosts, where there is one.
fn of_job<'d>(jobs: Vec<&'d JobResult>, name: Option<&str>) -> Vec<&'d JobResult> {
    let (sums, parts): (Vec<_>, Vec<_>) = jobs.into_iter().partition(|job| job.is_sum_of_clients());
    let Some(name) = name else {
        return if sums.is_empty() { parts } else { sums };
    };
    let is_alone = parts.iter().all(|job| job.name == name);
    let own = format!("{ALL_CLIENTS}: {name}");
    let sum = sums
        .iter()
        .filter(|sum| sum.name == own || is_alone && sum.name == ALL_CLIENTS);
    let sums: Vec<_> = sum.copied().collect();
    match sums.is_empty() {
        true => parts.into_iter().filter(|job| job.name == name).collect(),
        false => sums,
    }
}

fn has_direction(job: &JobResult, direction: Direction) -> bool {
    match direction {
        Direction::Sync => job.sync.is_some(),
        _ => of_direction(job, direction).is_some(),
    }
}

fn of_direction(job: &JobResult, direction: Direction) -> Option<&DirectionResult> {
    let mut all = job.directions();
    // A direction without I/O has no figures, only zeros.
    let did_io = |result: &DirectionResult| result.total_ios > 0 || result.io_bytes > 0;
    let own = all.find(|(dir, result)| *dir == direction && did_io(result));
    own.map(|(_, result)| result)
}

fn adds_up(figure: AssertedFigure) -> bool {
    !matches!(figure, AssertedFigure::Latency(..))
}

/// Whether these are the processes of one job, each reporting for itself.
fn are_members_of_one(jobs: &[&JobResult]) -> bool {
    let same = |one: &JobResult, other: &JobResult| {
        (&one.name, &one.step, one.hostname.as_ref())
            == (&other.name, &other.step, other.hostname.as_ref())
    };
    jobs.len() > 1 && jobs.windows(2).all(|pair| same(pair[0], pair[1]))
}

fn figure(assertion: &Assertion, job: &JobResult) -> Result<(f64, Vec<ReasonKind>), String> {
    let result = of_direction(job, assertion.direction);
    let doubts = result.map_or_else(Vec::new, |result| result.kinds());
    let unknown = doubts.contains(&ReasonKind::UnknownCounts);
    let value = match (assertion.figure, result) {
        (AssertedFigure::Iops | AssertedFigure::N, _) if unknown => None,
        (AssertedFigure::Iops, Some(result)) => Some(result.iops),
        (AssertedFigure::Bw, Some(result)) => Some(result.bw_bytes),
        (AssertedFigure::N, Some(result)) => Some(result.total_ios as f64),
        (AssertedFigure::Bytes, Some(result)) => Some(result.io_bytes as f64),
        (AssertedFigure::Latency(part, value), result) => {
            let latency = match (part, assertion.direction) {
                (_, Direction::Sync) => job.sync.as_ref(),
                (LatencyPart::Slat, _) => result.and_then(|result| result.slat.as_ref()),
                (LatencyPart::Clat, _) => result.and_then(|result| result.clat.as_ref()),
                (LatencyPart::Lat, _) => result.and_then(|result| result.lat.as_ref()),
                (LatencyPart::Lag, _) => result.and_then(|result| result.lag.as_ref()),
            };
            latency.and_then(|latency| latency_value(latency, value))
        }
        (_, None) => None,
    };
    let value = value.filter(|value| value.is_finite());
    let value = value.ok_or_else(|| format!("the record of {} has no such figure", job.name))?;
    Ok((value, doubts))
}

fn latency_value(latency: &Latency, value: LatencyValue) -> Option<f64> {
    // No I/O takes no time: 0 is not known.
    if latency.max_ns == 0 {
        return None;
    }
    match value {
        LatencyValue::Min => Some(latency.min_ns as f64),
        LatencyValue::Mean => Some(latency.mean_ns),
        LatencyValue::Max => Some(latency.max_ns as f64),
        LatencyValue::Percentile(percent) => latency.percentile_ns(percent).map(|ns| ns as f64),
    }
}

/// Of several figures the one that is furthest on the wrong side: the assertion
/// holds for all when it holds for this one.
fn decisive(assertion: &Assertion, found: &[(f64, Vec<ReasonKind>)]) -> Result<f64, String> {
    let values = found.iter().map(|(value, _)| *value);
    let worst = match assertion.comparison {
        Comparator::Less | Comparator::AtMost => values.reduce(f64::max),
        Comparator::More | Comparator::AtLeast => values.reduce(f64::min),
        Comparator::Equal => values.reduce(
            |one, other| {
                if one == assertion.limit { other } else { one }
            },
        ),
    };
    worst.ok_or_else(|| "no figures".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::assertion::parse;

    fn run(jobs: Value) -> RunDocument {
        let run = json!({
            "schema": "fathom.run/1", "id": "r", "name": "r", "status": "complete",
            "started": "2026-01-01T00:00:00.000Z", "engine": "sim", "jobs": jobs,
        });
        serde_json::from_value(run).unwrap()
    }

    fn job(step: &str, name: &str, iops: f64) -> Value {
        json!({
            "step": step, "name": name, "group": 0, "error": 0,
            "read": {
                "total_ios": 1000, "io_bytes": 4_096_000, "bw_bytes": iops * 4096.0, "iops": iops,
                "runtime_ms": 1000,
                "clat": {
                    "min_ns": 1000, "max_ns": 3_000_000, "mean_ns": 50_000.0,
                    "percentiles_ns": { "99": 3_000_000 },
                },
            },
        })
    }

    fn assertion(text: &str, job: Option<&str>) -> Assertion {
        let parsed = parse(text, false).unwrap();
        Assertion {
            written: text.to_owned(),
            step: parsed.name.unwrap().0,
            job: job.map(str::to_owned),
            direction: parsed.direction.0,
            figure: parsed.figure,
            comparison: parsed.comparison,
            limit: parsed.limit,
        }
    }

    fn said(text: &str, job: Option<&str>, run: &RunDocument) -> (bool, String) {
        let assertion = assertion(text, job);
        let verdict = evaluate(&[assertion], run).remove(0);
        (verdict.holds, verdict.to_string())
    }

    #[test]
    fn an_assertion_holds_or_says_what_was_measured() {
        let run = run(json!([
            job("mix", "mix", 123_456.0),
            job("other", "mix", 5.0)
        ]));
        for (text, holds, words) in [
            (
                "mix.read.iops >= 100k",
                true,
                "mix.read.iops >= 100k holds: 123k",
            ),
            (
                "mix.read.p99 <= 2ms",
                false,
                "mix.read.p99 <= 2ms does not hold: 3 ms",
            ),
            ("mix.read.n == 1k", true, "mix.read.n == 1k holds: 1k"),
            (
                "other.read.iops > 5",
                false,
                "other.read.iops > 5 does not hold: 5",
            ),
        ] {
            assert_eq!(said(text, None, &run), (holds, words.to_owned()));
        }
    }

    #[test]
    fn what_is_missing_does_not_hold_and_says_why() {
        let mut failed = job("failed", "failed", 1e6);
        failed["error"] = json!(5);
        let run = run(json!([job("mix", "mix", 1.0), failed]));
        for (text, job, why) in [
            ("mix.write.iops < 1", None, "no write figures were measured"),
            (
                "gone.read.iops < 1",
                None,
                "no figures: gone was not measured",
            ),
            (
                "mix.read.iops < 2",
                Some("gone"),
                "no figures: the job gone was not measured",
            ),
            (
                "mix.read.p99.9 < 1s",
                None,
                "the record of mix has no such figure",
            ),
            (
                "mix.read.lat.p99 < 1s",
                None,
                "the record of mix has no such figure",
            ),
            (
                "failed.read.iops > 1",
                None,
                "no figures to go by: the job failed failed",
            ),
        ] {
            assert_eq!(
                said(text, job, &run),
                (false, format!("{text} does not hold: {why}"))
            );
        }
    }

    #[test]
    fn a_doubtful_figure_is_said_to_be_so() {
        let mut doubtful = job("mix", "mix", 100.0);
        doubtful["read"]["doubts"] = json!(["short"]);
        let (holds, words) = said("mix.read.iops > 1", None, &run(json!([doubtful])));
        assert!(
            holds && words.contains("holds: 100; doubtful: less than a second"),
            "{words}"
        );
    }

    #[test]
    fn processes_of_a_job_add_up_and_all_keep_a_latency() {
        let mut slow = job("mix", "mix", 40.0);
        slow["read"]["clat"]["percentiles_ns"]["99"] = json!(2_999_999);
        slow["read"]["clat"]["percentiles_ns"]["50"] = json!(10);
        let run = run(json!([job("mix", "mix", 60.0), slow]));
        assert_eq!(
            said("mix.read.iops >= 100", None, &run).1,
            "mix.read.iops >= 100 holds: 100"
        );
        assert!(said("mix.read.p99 <= 3ms", None, &run).0);
        assert!(!said("mix.read.p99 < 3ms", None, &run).0);
        assert!(
            !said("mix.read.p50 < 3ms", None, &run).0,
            "one of two has none"
        );
    }

    #[test]
    fn parts_of_a_step_do_not_add_up() {
        let run = run(json!([
            job("camp/a", "a", 60.0),
            job("camp/b", "b", 40.0),
            job("camping", "c", 1.0)
        ]));
        assert!(said("camp.read.iops >= 40", None, &run).0);
        let (holds, words) = said("camp.read.iops >= 50", None, &run);
        assert!(!holds && words.ends_with("does not hold: 40"), "{words}");
        assert!(said("camp/a.read.iops >= 50", None, &run).0);
    }

    #[test]
    fn what_makes_a_device_ready_is_no_part_of_a_step() {
        let fill = job("camp/fill-seq-1", "fill", 1.0);
        let mut run = run(json!([fill, job("camp/a", "a", 60.0)]));
        run.preparations = [String::from("camp/fill-seq-1")].into();
        assert!(said("camp.read.iops >= 60", None, &run).0);
    }

    #[test]
    fn of_several_hosts_the_sum_counts() {
        let mut sum = job("mix", "All clients", 100.0);
        sum["clients"] = json!(2);
        let parts = [job("mix", "mix", 60.0), job("mix", "mix", 40.0)];
        let run = run(json!([parts[0], parts[1], sum]));
        assert!(said("mix.read.iops >= 100", None, &run).0);
        assert!(said("mix.read.iops >= 100", Some("mix"), &run).0);
    }

    #[test]
    fn the_document_of_a_verdict_has_figure_limit_and_unit() {
        let assertion = assertion("mix.read.bw >= 1M", None);
        let verdicts = evaluate(&[assertion], &run(json!([job("mix", "mix", 100.0)])));
        assert_eq!(exit(&verdicts), Exit::ConditionFailed);
        let document = serde_json::to_value(&verdicts).unwrap();
        let expected = json!([{
            "assertion": "mix.read.bw >= 1M", "holds": false, "figure": 409_600.0,
            "limit": 1e6, "unit": "bytes_per_second",
        }]);
        assert_eq!(document, expected);
    }
}
