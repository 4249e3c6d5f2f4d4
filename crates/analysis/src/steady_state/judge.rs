//! A window that slides over a series.

use std::collections::VecDeque;

use super::twofold::Twofold;
use super::{FittedWindow, SeriesValue, SteadyOutcome, SteadyVerdict, Term, WindowRule};

/// Judges a series value by value.
///
/// Each costs the same, whatever the length of the window: sums are carried on
/// from one window to the next, least and greatest are kept in queues. Memory
/// is for the values of one window.
#[derive(Debug, Clone)]
pub struct SteadyJudge {
    rule: WindowRule,
    taken: usize,
    missing: usize,
    values: VecDeque<SeriesValue>,
    missing_in_window: usize,
    /// Σ y.
    sum: Twofold,
    /// Σ i·y, where i is the place in the window.
    weighted: Twofold,
    /// Σ y².
    squares: Twofold,
    least: Extreme,
    most: Extreme,
    steady: Option<FittedWindow>,
    last: Option<FittedWindow>,
    closest: Option<(f64, FittedWindow)>,
}

impl SteadyJudge {
    /// A judge that has seen nothing.
    pub fn new(rule: WindowRule) -> Self {
        Self {
            rule,
            taken: 0,
            missing: 0,
            values: VecDeque::new(),
            missing_in_window: 0,
            sum: Twofold::default(),
            weighted: Twofold::default(),
            squares: Twofold::default(),
            least: Extreme::default(),
            most: Extreme::default(),
            steady: None,
            last: None,
            closest: None,
        }
    }

    /// Takes the next value. True as soon as a window was steady within the
    /// rounds of the rule, and from then on.
    pub fn take(&mut self, value: SeriesValue) -> bool {
        self.taken += 1;
        self.missing += usize::from(figure(&value).is_none());
        if self.steady.is_none() {
            self.slide(value);
            self.look();
        }
        self.attained()
    }

    /// Whether steady state was attained within the rounds of the rule.
    pub fn attained(&self) -> bool {
        self.steady.is_some_and(|window| self.is_in_time(&window))
    }

    /// Whether as many values were taken as the rule gives, and none of their
    /// windows was steady.
    pub fn is_over(&self) -> bool {
        let max = self.rule.max_rounds();
        !self.attained() && max.is_some_and(|max| self.taken >= max)
    }

    fn is_in_time(&self, window: &FittedWindow) -> bool {
        self.rule.max_rounds().is_none_or(|max| window.last <= max)
    }

    /// The verdict on what was taken so far.
    pub fn verdict(&self) -> SteadyVerdict {
        let outcome = match &self.steady {
            Some(window) if self.is_in_time(window) => SteadyOutcome::Attained,
            Some(_) => SteadyOutcome::TooLate,
            None if self.taken < self.rule.window() => SteadyOutcome::TooShort,
            None if self.closest.is_none() => SteadyOutcome::NoValues,
            None => SteadyOutcome::NotAttained,
        };
        let window = self.steady.or(self.last);
        let terms = window.map(|window| self.rule.terms(&window).collect());
        let closest = self.closest.filter(|_| self.steady.is_none());
        SteadyVerdict {
            attained: outcome == SteadyOutcome::Attained,
            outcome,
            rule: self.rule,
            rule_name: self.rule.name(),
            rounds: self.taken,
            missing: self.missing,
            window,
            terms: terms.unwrap_or_default(),
            closest: closest.map(|(_, window)| window),
        }
    }

    /// Moves the window on by one. A missing value stands as 0 in the sums: no
    /// window is judged while it is in it.
    fn slide(&mut self, value: SeriesValue) {
        if self.values.len() == self.rule.window() {
            let gone = self.values.pop_front();
            let figure_gone = gone.as_ref().and_then(figure);
            self.missing_in_window -= usize::from(figure_gone.is_none());
            let gone = figure_gone.unwrap_or(0.0);
            self.sum = self.sum.minus(gone.into());
            self.squares = self.squares.minus(Twofold::product(gone, gone));
            // All that stay move one place to the front.
            self.weighted = self.weighted.minus(self.sum);
        }
        let new = figure(&value);
        self.missing_in_window += usize::from(new.is_none());
        let new = new.unwrap_or(0.0);
        let place = self.values.len() as f64;
        self.sum = self.sum.plus(new.into());
        self.squares = self.squares.plus(Twofold::product(new, new));
        self.weighted = self.weighted.plus(Twofold::product(place, new));
        self.values.push_back(value);
        let first = self.taken + 1 - self.values.len();
        self.least.take(self.taken, -new, first);
        self.most.take(self.taken, new, first);
    }

    /// Judges the window that ends here.
    fn look(&mut self) {
        if self.values.len() < self.rule.window() {
            return;
        }
        self.last = None;
        if self.missing_in_window > 0 {
            return;
        }
        let Some(window) = self.window() else {
            return;
        };
        self.last = Some(window);
        if self.rule.holds(&window) {
            self.steady = Some(window);
            return;
        }
        let worst = self.rule.terms(&window).map(|term| Term::ratio(&term));
        let worst = worst.fold(0.0, f64::max);
        if self.closest.is_none_or(|(closest, _)| worst < closest) {
            self.closest = Some((worst, window));
        }
    }

    fn window(&self) -> Option<FittedWindow> {
        let (first, last) = (self.values.front()?, self.values.back()?);
        let n = self.values.len() as f64;
        let (min, max) = (-self.least.value()?, self.most.value()?);
        let sum = self.sum.value();
        let mean = sum / n;
        // Twice Σ (i − ī)·y. Σ (i − ī)² is n·(n² − 1)/12.
        let tilt = self.weighted.times(2.0).minus(self.sum.times(n - 1.0));
        let tilt = tilt.value();
        let slope = 6.0 * tilt / (n * (n * n - 1.0));
        // n·Σ (y − ȳ)².
        let spread = self.squares.times(n).minus(self.sum.squared()).value();
        let places = n * n * (n * n - 1.0) / 12.0;
        let correlation = (max > min && spread > 0.0)
            .then(|| (n * tilt / 2.0 / (spread * places).sqrt()).clamp(-1.0, 1.0));
        // One rounding, of the quotient of numbers that are exact for whole
        // values: a window just at its limit is judged as what it is.
        let percent = |part: f64, of: f64| (sum > 0.0).then(|| 100.0 * part / of);
        let above = Twofold::product(max, n).minus(self.sum).value();
        let below = self.sum.minus(Twofold::product(min, n)).value();
        let range = max - min;
        Some(FittedWindow {
            first: self.taken + 1 - self.values.len(),
            last: self.taken,
            begin_ms: first.begin_ms,
            end_ms: last.end_ms,
            n: self.values.len(),
            mean,
            min,
            max,
            range,
            deviation: above.max(below) / n,
            slope,
            intercept: mean - slope * (n - 1.0) / 2.0,
            slope_excursion: slope.abs() * (n - 1.0),
            correlation,
            range_percent: percent(range * n, sum),
            deviation_percent: percent(above.max(below), sum),
            slope_percent: percent(6.0 * tilt.abs(), (n * n - 1.0) * sum),
            slope_excursion_percent: percent(6.0 * tilt.abs(), (n + 1.0) * sum),
        })
    }
}

/// Judges a whole series.
pub fn judge(rule: WindowRule, values: impl IntoIterator<Item = SeriesValue>) -> SteadyVerdict {
    let mut judge = SteadyJudge::new(rule);
    for value in values {
        judge.take(value);
    }
    judge.verdict()
}

/// The figure of a value, when it is one.
fn figure(value: &SeriesValue) -> Option<f64> {
    value.value.filter(|value| value.is_finite())
}

/// The greatest value of a window that slides: those that can still become it,
/// descending. Each goes in and out once.
#[derive(Debug, Clone, Default)]
struct Extreme(VecDeque<(usize, f64)>);

impl Extreme {
    /// Takes the value at `place`; those before `first` are gone.
    fn take(&mut self, place: usize, value: f64, first: usize) {
        while self.0.pop_back_if(|last| last.1 <= value).is_some() {}
        self.0.push_back((place, value));
        while self.0.pop_front_if(|front| front.0 < first).is_some() {}
    }

    fn value(&self) -> Option<f64> {
        self.0.front().map(|&(_, value)| value)
    }
}
