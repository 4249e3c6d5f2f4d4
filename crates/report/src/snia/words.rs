//! What is said of findings, the same on screens and on pages.

use fathom_analysis::snia::{
    Findings, PartEnding, Setup, SniaTest, TestPart, Tracked, TrackedVariable,
};
use fathom_analysis::steady_state::{Metric, Term, TermKind};
use fathom_model::StageEnd;
use fathom_model::units;

/// A value of a tracked variable with its unit.
pub(super) fn value(metric: Metric, value: f64) -> String {
    match metric {
        Metric::Iops => units::count(value),
        Metric::Bandwidth => units::bytes_per_second(value),
        Metric::Latency | Metric::Percentile(_) => units::latency(value),
    }
}

/// What a metric is called on an axis.
pub(super) fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Iops => "IOPS",
        Metric::Bandwidth => "Throughput",
        Metric::Latency => "Mean latency",
        Metric::Percentile(_) => "Latency",
    }
}

/// A tracked variable: `IOPS of 0/100 4k`.
pub(super) fn tracked(tracked: &Tracked) -> String {
    format!("{} of {}", metric(tracked.metric), tracked.cell)
}

/// One inequality: what is compared.
pub(super) fn term(term: &Term) -> &'static str {
    match term.term {
        TermKind::DataExcursion => "data excursion",
        TermKind::SlopeExcursion => "slope excursion",
        TermKind::Deviation => "distance from the mean",
        TermKind::Slope => "slope per sample",
    }
}

/// Percent with two decimals.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "no I/O".to_owned(), |value| format!("{value:.2} %"))
}

/// How a part came out, a sentence.
pub(super) fn outcome(setup: &Setup, part: &TestPart) -> String {
    let rounds = part.rounds;
    let what = match part.part.as_str() {
        "" => "Steady state".to_owned(),
        name => format!("{name}: steady state"),
    };
    let what = format!("{what} by {}", setup.criterion_name());
    let by = match setup.criterion {
        TrackedVariable::Tracked => "",
        TrackedVariable::AllCells => " All cells kept fio's rule.",
    };
    match (part.ending, part.window, &part.saturation) {
        (PartEnding::Attained, Some((first, last)), _) => {
            format!("{what} attained: rounds {first} to {last}.{by}")
        }
        (PartEnding::AttainedLate, Some((first, last)), _) => format!(
            "{what} attained late: rounds {first} to {last}, beyond the {} that there may be.{by}",
            setup.limits.max_rounds
        ),
        (PartEnding::NotAttained, _, Some(saturation)) => format!(
            "Ended by {}, after {:.2} drive fills and {} of I/O. {what} not attained.",
            saturation.ended_by.unwrap_or("nothing"),
            saturation.drive_fills,
            units::duration(saturation.io_ms)
        ),
        (PartEnding::TooShort, _, saturation) => {
            let (by, fills, io_ms) = match saturation {
                Some(it) => (it.ended_by, it.drive_fills, it.io_ms),
                None => (None, 0.0, 0),
            };
            format!(
                "Ended by {}, after {fills:.2} drive fills and {} of I/O. Too short to judge: \
                 {what} wants {} rounds of {} samples behind the first fill.",
                by.unwrap_or("nothing"),
                units::duration(io_ms),
                setup.limits.window,
                setup.samples_a_round,
            )
        }
        (PartEnding::NotAttained, Some((first, last)), _) => format!(
            "{what} NOT attained in {rounds} rounds: the figures of rounds {first} to {last} are \
             not those of a steady device."
        ),
        (PartEnding::NotAttained, None, _) => {
            format!("{what} NOT attained in {rounds} rounds: no window is full and without a hole.")
        }
        (PartEnding::Unfinished, _, _) | (_, None, _) => {
            format!("{what} not decided: {rounds} rounds have ended.")
        }
    }
}

/// What the rounds of a window are called.
pub(super) fn window(part: &TestPart) -> String {
    match part.window {
        Some((first, last)) if part.attained => format!("rounds {first} to {last}, steady"),
        Some((first, last)) => format!("rounds {first} to {last}, NOT steady"),
        None => "no window".to_owned(),
    }
}

/// How a stage ended.
pub(super) fn ended(end: Option<&StageEnd>) -> String {
    match end {
        None => "not ended".to_owned(),
        Some(StageEnd::Done) => "done".to_owned(),
        Some(StageEnd::Skipped { reason }) => format!("skipped: {reason}"),
        Some(StageEnd::NotAttained { reason }) => format!("not attained: {reason}"),
        Some(StageEnd::Failed { reason }) => format!("FAILED: {reason}"),
        Some(StageEnd::Waits { reason }) => format!("waits: {reason}"),
        Some(StageEnd::Interrupted { reason }) => format!("stopped: {reason}"),
    }
}

/// Which purges and fills there were, in few words.
pub(super) fn stages(findings: &Findings, kind: fathom_model::StageKind) -> Option<String> {
    let of_kind = findings.stages.iter().filter(|p| p.stage.kind == kind);
    let told: Vec<String> = of_kind
        .map(|passed| format!("{}: {}", passed.stage.title, ended(passed.ended.as_ref())))
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// What was found of the device's cache.
pub(super) fn write_cache(setup: &Setup) -> String {
    let cache = &setup.write_cache;
    let on = |on: bool| if on { "on" } else { "off" };
    let mut parts = Vec::new();
    parts.extend(cache.wanted.map(|wanted| format!("wanted {}", on(wanted))));
    parts.push(match cache.device {
        Some(found) => format!("the device says {} at the start", on(found)),
        None => "the device does not tell".to_owned(),
    });
    if cache.wanted.is_some() && cache.wanted != cache.device {
        parts.push(match cache.settable {
            true => "set after the purge, see the notes".to_owned(),
            false => "it cannot be set".to_owned(),
        });
    }
    let kernel = cache.kernel.as_ref();
    parts.extend(kernel.map(|kernel| format!("the kernel takes it for {kernel}")));
    parts.join("; ")
}

/// The part of the device that is used.
pub(super) fn active_range(setup: &Setup) -> String {
    let percent = 100.0 * setup.active_bytes as f64 / setup.capacity_bytes.max(1) as f64;
    format!(
        "{} ({percent:.4} %)",
        units::bytes(setup.active_bytes as f64)
    )
    .replace(".0000 %", " %")
}

/// What its rounds are, in a line.
pub(super) fn stimulus(setup: &Setup) -> String {
    let cell = units::duration(setup.cell_ms);
    let parts = setup.parts();
    let cells = setup.cells(&parts[0]).len();
    match setup.test {
        SniaTest::Wsat => format!("4k random writes, samples of {cell}"),
        SniaTest::Throughput => format!("sequential, {cells} cells of {cell} a round"),
        SniaTest::Iops | SniaTest::Latency => format!("random, {cells} cells of {cell} a round"),
    }
}

/// What its criterion demands.
pub(super) fn criterion(setup: &Setup) -> String {
    let limits = setup.limits;
    let soft = if limits.soft {
        ", then on until it is (soft limit)"
    } else {
        ""
    };
    let within = match setup.test {
        SniaTest::Wsat => String::new(),
        _ => format!(" within {} rounds{soft}", limits.max_rounds),
    };
    let grouped = match setup.samples_a_round {
        0 | 1 => String::new(),
        n => format!(" of {n} samples"),
    };
    match setup.criterion {
        TrackedVariable::Tracked => format!(
            "data excursion ≤ {} %, slope excursion ≤ {} % over {} rounds{grouped}{within}",
            limits.data_percent, limits.slope_percent, limits.window
        ),
        TrackedVariable::AllCells => format!(
            "{}: {} rounds in a row with every cell < {} % from its mean and a slope < {} % a \
             sample{within}",
            setup.criterion,
            limits.window,
            setup.cell_rule.mean_percent,
            setup.cell_rule.slope_percent
        ),
    }
}
