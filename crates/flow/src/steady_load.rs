//! A load that is watched until it is steady: live, by the same code that judges
//! its record later.

use std::fmt;
use std::ops::ControlFlow;

use fathom_analysis::steady_state::{
    Ask, Metric, RoundSpan, SteadyVerdict, SteadyWatch, TermKind, WindowRule,
};
use fathom_engine::Outcome;
use fathom_model::{Event, Failure, StageEnd, units};

use super::runner::StepWatch;

/// What has to hold of a run: a rule, and what it is asked of.
#[derive(Debug, Clone, PartialEq)]
pub struct Criterion {
    /// The rule.
    pub rule: WindowRule,
    /// The metrics, and what a round is.
    pub ask: Ask,
}

/// `iops, bw: fio's rule, distance from the mean < 20 %, slope per sample < 10 %
/// in 900 × 1.0 s`: with its limits, because what was attained by others says
/// something else of a device.
impl fmt::Display for Criterion {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let metrics: Vec<String> = self.ask.metrics.iter().map(ToString::to_string).collect();
        write!(f, "{}: {}", metrics.join(", "), self.rule.name())?;
        match self.rule {
            WindowRule::Fio {
                mean_limit_percent,
                slope_limit_percent,
                ..
            } => {
                if let Some(limit) = mean_limit_percent {
                    write!(f, ", distance from the mean < {limit} %")?;
                }
                if let Some(limit) = slope_limit_percent {
                    write!(f, ", slope per sample < {limit} %")?;
                }
            }
            WindowRule::Snia {
                data_limit_percent: data,
                slope_limit_percent: slope,
                ..
            } => write!(f, ", range ≤ {data} %, change of the fit ≤ {slope} %")?,
        }
        let window = self.rule.window();
        match self.ask.span {
            RoundSpan::Time(ms) => write!(f, " in {window} × {}", units::duration(ms)),
            RoundSpan::Interval => write!(f, " in {window} intervals"),
            RoundSpan::Point => write!(f, " in {window} rounds"),
        }
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Settled {
    /// Whether everything held.
    pub attained: bool,
    /// One for each criterion and metric.
    pub verdicts: Vec<(Metric, SteadyVerdict)>,
}

/// Watches one run of I/O.
pub struct Watching {
    watches: Vec<SteadyWatch>,
    attained: bool,
}

impl Watching {
    pub fn new(criteria: &[Criterion]) -> Self {
        let watch = |c: &Criterion| SteadyWatch::new(c.rule, c.ask.clone());
        Self {
            watches: criteria.iter().map(watch).collect(),
            attained: false,
        }
    }

    fn is_over(&self) -> bool {
        self.attained || self.watches.iter().any(SteadyWatch::is_over)
    }

    pub fn settled(&self) -> Settled {
        Settled {
            attained: self.attained,
            verdicts: self
                .watches
                .iter()
                .flat_map(SteadyWatch::verdicts)
                .collect(),
        }
    }
}

impl StepWatch for Watching {
    /// Says stop as soon as everything holds, and as soon as the rounds of a rule
    /// are over.
    fn take(&mut self, event: &Event) -> ControlFlow<()> {
        let mut all = !self.watches.is_empty();
        for watch in &mut self.watches {
            all &= watch.take(event);
        }
        self.attained |= all;
        match self.is_over() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// That it has ended the load is what was wanted.
    fn judge(&self, outcome: Outcome) -> Result<Outcome, Failure> {
        Ok(match self.is_over() && outcome == Outcome::Interrupted {
            true => Outcome::Complete,
            false => outcome,
        })
    }
}

impl Settled {
    /// How the stage ended.
    pub fn end(&self) -> StageEnd {
        match self.attained || self.verdicts.is_empty() {
            true => StageEnd::Done,
            false => StageEnd::NotAttained {
                reason: self.numbers(),
            },
        }
    }

    /// Every term of every inequality, in one sentence.
    pub fn numbers(&self) -> String {
        let each = self.verdicts.iter();
        let each: Vec<String> = each.map(|(metric, v)| in_words(*metric, v)).collect();
        each.join("; ")
    }
}

/// A verdict in words: `iops attained by fio's rule: largest distance from the
/// mean 3.1 % (limit < 20 %), …`.
fn in_words(metric: Metric, verdict: &SteadyVerdict) -> String {
    let attained = match verdict.attained {
        true => "steady",
        false => "not steady",
    };
    let mut text = format!("{metric} {attained} by {}", verdict.rule_name);
    let Some(window) = &verdict.window else {
        let why = match verdict.missing {
            0 => format!(
                "{} values, and a window has {}",
                verdict.rounds,
                verdict.rule.window()
            ),
            missing => format!("{missing} of {} values are missing", verdict.rounds),
        };
        return format!("{text}: {why}");
    };
    let mean = match metric {
        Metric::Iops => units::count(window.mean),
        Metric::Bandwidth => units::bytes_per_second(window.mean),
        Metric::Latency | Metric::Percentile(_) => units::latency(window.mean),
    };
    text += &format!(
        " in values {} to {} (mean {mean})",
        window.first, window.last
    );
    for term in &verdict.terms {
        let what = match term.term {
            TermKind::Deviation => "largest distance from the mean",
            TermKind::Slope => "slope per sample",
            TermKind::DataExcursion => "range",
            TermKind::SlopeExcursion => "change of the fit over the window",
        };
        let found = term.measured_percent;
        let found = found.map_or_else(|| "none, there was no I/O".to_owned(), percent);
        let sign = match term.strict {
            true => "<",
            false => "≤",
        };
        text += &format!(", {what} {found} (limit {sign} {} %)", term.allowed_percent);
    }
    text
}

/// With the digits that tell it from its limit.
fn percent(percent: f64) -> String {
    match percent {
        0.1.. => format!("{percent:.2} %"),
        _ => format!("{percent:.5} %"),
    }
}
