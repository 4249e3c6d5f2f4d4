//! What makes a sum over hosts doubtful, and what it hides, with its numbers.

use fathom_model::result::{Across, RatesOf, SlowBy, SlowHost};
use fathom_model::{Host, JobResult, ReasonKind, RunDocument, VerdictReason, units};

use super::FigureReason;
use crate::hosts;

/// Half of the usual interval between samples: clocks that are known no better
/// cannot say which samples belong together.
const CLOCK_ERROR_MOST_MS: f64 = 500.0;

/// What makes a sum over hosts doubtful.
pub(super) fn of_total(
    doc: &RunDocument,
    place: usize,
    total: &JobResult,
    found: &mut Vec<FigureReason>,
) {
    let of_step = doc.hosts.iter().filter(|host| host.step == total.step);
    let hosts: Vec<Host> = of_step.cloned().collect();
    let parts = hosts::parts_of(total, &doc.jobs, &hosts);
    let missing = total.clients.is_some_and(|n| (n as usize) < hosts.len());
    let apart = total.across.as_ref().is_some_and(hosts::is_apart);
    let slow = total.across.as_ref().map_or(&[][..], |across| &across.slow);
    let uncertain = |host: &Host| {
        let clock = host.clock.as_ref();
        clock.is_some_and(|clock| clock.error_ms > CLOCK_ERROR_MOST_MS)
    };
    let uncertain = hosts.iter().any(uncertain);
    let is_part = |job: usize| parts.iter().any(|part| std::ptr::eq(*part, &doc.jobs[job]));
    let of_parts: Vec<FigureReason> = found.iter().filter(|it| is_part(it.job)).cloned().collect();
    for (dir, _) in total.directions().filter(|(_, r)| r.total_ios > 0) {
        let slow: Vec<&SlowHost> = slow.iter().filter(|slow| slow.dir == dir).collect();
        let mut mark = |job: usize, kind: ReasonKind, holds: bool| {
            if holds {
                let reason = VerdictReason::of(kind);
                found.push(FigureReason { job, dir, reason });
            }
        };
        mark(place, ReasonKind::HostsMissing, missing);
        mark(place, ReasonKind::Apart, apart);
        mark(place, ReasonKind::UncertainClocks, uncertain);
        mark(place, ReasonKind::SlowHost, !slow.is_empty());
        for (job, part) in doc.jobs.iter().enumerate() {
            let label = hosts::label_of(part);
            let is_slow = slow.iter().any(|slow| Some(&slow.host) == label.as_ref());
            mark(job, ReasonKind::SlowHost, is_slow && is_part(job));
        }
        // What makes the parts of a sum doubtful spoils the sum.
        let theirs = of_parts.iter().filter(|it| it.dir == dir);
        found.extend(theirs.map(|it| FigureReason {
            job: place,
            ..it.clone()
        }));
    }
}
/// Hosts that are named before the others are counted.
const NAMED: usize = 4;

/// Which hosts are slow, and by how much. `None` when it is not known.
pub(super) fn slow(carrying: &[&JobResult]) -> Option<String> {
    let mut told: Vec<String> = Vec::new();
    for total in carrying {
        let slow = total.across.as_ref().map_or(&[][..], |across| &across.slow);
        for (place, one) in slow.iter().enumerate() {
            // Of blocks of one size bandwidth and IOPS say the same.
            let said = slow[..place].iter().any(|other| {
                (&other.host, other.dir) == (&one.host, one.dir)
                    && other.figure == SlowBy::Bandwidth
                    && one.figure == SlowBy::Iops
            });
            if !said {
                told.push(one_slow(one, total.step.as_deref()));
            }
        }
    }
    let more = told.len().saturating_sub(NAMED);
    told.truncate(NAMED);
    match (told.is_empty(), more) {
        (true, _) => None,
        (_, 0) => Some(told.join(", ")),
        (_, more) => Some(format!("{} and {more} more", told.join(", "))),
    }
}

fn one_slow(slow: &SlowHost, step: Option<&str>) -> String {
    let share = slow.of_median * 100.0;
    let figure = match slow.figure {
        SlowBy::Bandwidth => format!("{share:.0} % of the median bandwidth"),
        SlowBy::Iops => format!("{share:.0} % of the median IOPS"),
        SlowBy::ClatP99 => format!("p99 {:.1} times the median", slow.of_median),
    };
    let (host, dir) = (&slow.host, slow.dir.name());
    match step {
        Some(step) => format!("{host} in {step} ({dir}, {figure})"),
        None => format!("{host} ({dir}, {figure})"),
    }
}

/// For how much of the time not all hosts ran, and what the rates are then.
pub(super) fn apart(carrying: &[&JobResult]) -> Option<String> {
    let told = |total: &&JobResult| Some(one_apart(total, total.across.as_ref()?));
    let mut told: Vec<String> = carrying.iter().filter_map(told).collect();
    let more = told.len().saturating_sub(NAMED);
    told.truncate(NAMED);
    match (told.is_empty(), more) {
        (true, _) => None,
        (_, 0) => Some(told.join("; ")),
        (_, more) => Some(format!("{}; and {more} more sums", told.join("; "))),
    }
}

fn one_apart(total: &JobResult, across: &Across) -> String {
    let alone_ms = across.span_ms.saturating_sub(across.shared_ms);
    let percent = alone_ms as f64 * 100.0 / across.span_ms.max(1) as f64;
    let name = match &total.step {
        Some(step) => format!("{} of {step}", total.name),
        None => total.name.clone(),
    };
    let rates = match (across.rates, total.runtime_ms) {
        (RatesOf::SharedTime, Some(ms)) => {
            format!(
                "its rates are those of {} that all shared",
                units::duration(ms)
            )
        }
        _ => "its rates are each host's own over its own time, added up".to_owned(),
    };
    format!(
        "{name}: not all ran for {percent:.0} % of {}, {rates}",
        units::duration(across.span_ms)
    )
}
