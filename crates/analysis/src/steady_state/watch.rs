//! Several metrics judged live, on one run of I/O.

use fathom_model::Event;

use super::{Ask, Metric, Rounds, SeriesValue, SteadyJudge, SteadyVerdict, WindowRule};

/// Judges a run while its events go by. A new step starts anew: steady state is
/// that of one load. For rounds that are intervals or times; those of points
/// lie in several series, and want a [`SteadyJudge`] each.
#[derive(Debug)]
pub struct SteadyWatch {
    rule: WindowRule,
    metrics: Vec<Metric>,
    rounds: Rounds,
    judges: Vec<SteadyJudge>,
    /// Series and rounds in it that the judges have seen.
    seen: (usize, usize),
}

impl SteadyWatch {
    /// Watches what is asked for by one rule.
    pub fn new(rule: WindowRule, ask: Ask) -> Self {
        let metrics = ask.metrics.clone();
        Self {
            rule,
            judges: metrics.iter().map(|_| SteadyJudge::new(rule)).collect(),
            metrics,
            rounds: Rounds::new(ask),
            seen: (0, 0),
        }
    }

    /// Takes the next event. True as soon as every metric has attained steady
    /// state, and as long as this load goes on.
    pub fn take(&mut self, event: &Event) -> bool {
        self.rounds.take(event);
        let series = self.rounds.series();
        if series.len() != self.seen.0 || matches!(event, Event::Step { .. }) {
            self.seen = (series.len(), 0);
            self.judges.fill(SteadyJudge::new(self.rule));
        }
        let rounds = series.last().map_or(&[][..], |series| &series.rounds);
        for round in rounds.iter().skip(self.seen.1) {
            for (judge, value) in self.judges.iter_mut().zip(&round.values) {
                judge.take(SeriesValue {
                    begin_ms: round.begin_ms,
                    end_ms: round.end_ms,
                    value: *value,
                });
            }
        }
        self.seen.1 = rounds.len();
        self.judges.iter().all(SteadyJudge::attained)
    }

    /// Whether the rounds of the rule are over and a metric is not steady.
    pub fn is_over(&self) -> bool {
        self.judges.iter().any(SteadyJudge::is_over)
    }

    /// The verdicts so far, one for each metric.
    pub fn verdicts(&self) -> impl Iterator<Item = (Metric, SteadyVerdict)> + '_ {
        let judges = self.judges.iter().map(SteadyJudge::verdict);
        self.metrics.iter().copied().zip(judges)
    }
}
