//! From the events of a run to the rounds that are judged.

use fathom_model::{Direction, Event, Histogram, JobResult, Outcome, Point, Results, Sample};

use super::{Metric, SeriesValue};
use crate::rate::Rate;

/// What a round is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoundSpan {
    /// Each interval of the samples.
    Interval,
    /// So many ms of samples. A round ends with the interval whose end comes
    /// closest to it, and begins where the one before ends.
    Time(u64),
    /// Each repetition of a point of a campaign, by the figures of its end.
    Point,
}

/// What is to be gathered of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// What is judged; each is gathered on the same run of I/O.
    pub metrics: Vec<Metric>,
    /// What a round is.
    pub span: RoundSpan,
    /// Only the jobs of this name; `None`: all together.
    pub job: Option<String>,
    /// Only this direction; `None`: all that move data together.
    pub dir: Option<Direction>,
}

impl Ask {
    /// A round of all jobs and directions for each interval.
    pub fn of(metrics: impl Into<Vec<Metric>>) -> Self {
        Self {
            metrics: metrics.into(),
            span: RoundSpan::Interval,
            job: None,
            dir: None,
        }
    }

    fn wants(&self, dir: Direction) -> bool {
        // Of syncs only latencies are known.
        dir != Direction::Sync && self.dir.is_none_or(|wanted| wanted == dir)
    }

    fn wants_job(&self, name: Option<&str>) -> bool {
        self.job.is_none() || self.job.as_deref() == name
    }
}

/// One round.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyRound {
    /// Begin, ms since the run's start.
    pub begin_ms: u64,
    /// End, ms since the run's start.
    pub end_ms: u64,
    /// A figure for each metric asked for; `None` where there is none.
    pub values: Vec<Option<f64>>,
}

/// The rounds of one step of a run, or of one point of a campaign.
#[derive(Debug, Clone, PartialEq)]
pub struct RoundSeries {
    /// The step's name; the point's id; empty when the run has but one step.
    pub name: String,
    /// In their order.
    pub rounds: Vec<SteadyRound>,
    /// Rest of an interval or round at the end, too short to be one, in ms.
    pub left_over_ms: u64,
    /// The repetition of each round, where rounds are those of a point.
    repetitions: Vec<u32>,
}

impl RoundSeries {
    fn new(name: String) -> Self {
        Self {
            name,
            rounds: Vec::new(),
            left_over_ms: 0,
            repetitions: Vec::new(),
        }
    }

    /// The values of the metric at `place` in [`Ask::metrics`].
    pub fn values(&self, place: usize) -> impl Iterator<Item = SeriesValue> + '_ {
        self.rounds.iter().map(move |round| SeriesValue {
            begin_ms: round.begin_ms,
            end_ms: round.end_ms,
            value: round.values.get(place).copied().flatten(),
        })
    }

    /// The middle one of the lengths of its rounds, in ms; 0 without rounds.
    pub fn round_ms(&self) -> u64 {
        let lengths = self.rounds.iter().map(|r| r.end_ms - r.begin_ms);
        let mut lengths: Vec<u64> = lengths.collect();
        lengths.sort_unstable();
        lengths.get(lengths.len() / 2).copied().unwrap_or(0)
    }
}

/// Gathers rounds while events go by.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds {
    ask: Ask,
    series: Vec<RoundSeries>,
    names: Vec<String>,
    /// Time of the last interval.
    now_ms: u64,
    interval: OpenRound,
    round: Filling,
    /// Idle intervals while other jobs were at work: they count once it is
    /// known that the jobs asked for were not over.
    idle: Vec<(u64, u64)>,
    /// Longest interval so far.
    longest_ms: u64,
    /// The measurement of a point that goes on.
    attempt: Option<PointAttempt>,
}

/// Samples of the interval in progress.
#[derive(Debug, Clone, Default, PartialEq)]
struct OpenRound {
    rate: Rate,
    span_ms: u64,
    wanted: bool,
    others: bool,
}

/// A round that is not full yet.
#[derive(Debug, Clone, Default, PartialEq)]
struct Filling {
    begin_ms: u64,
    length_ms: u64,
    /// Sums over its intervals: rate × length.
    iops_ms: f64,
    bw_bytes_ms: f64,
    clat: Histogram,
    /// The mean as an engine reports it, where one does.
    clat_mean_ns: Option<f64>,
}

/// One measurement of a point.
#[derive(Debug, Clone, PartialEq)]
struct PointAttempt {
    point: Point,
    begin_ms: u64,
    round: Option<SteadyRound>,
}

impl Rounds {
    /// Has seen nothing.
    pub fn new(ask: Ask) -> Self {
        Self {
            ask,
            series: Vec::new(),
            names: Vec::new(),
            now_ms: 0,
            interval: OpenRound::default(),
            round: Filling::default(),
            idle: Vec::new(),
            longest_ms: 0,
            attempt: None,
        }
    }

    /// Takes the next event. A round that is full is the last one of the last
    /// of [`Rounds::series`] then.
    pub fn take(&mut self, event: &Event) {
        match event {
            Event::Step {
                of, name, point, ..
            } => self.step(*of, name, point.as_deref()),
            Event::StepEnded { outcome } => self.end_attempt(*outcome),
            Event::Jobs { names, .. } => self.names.clone_from(names),
            Event::Sample(sample) if self.ask.span != RoundSpan::Point => self.sample(sample),
            Event::Interval { t_ms, .. } => self.interval(*t_ms),
            Event::Finished { results } => self.finished(results),
            // What was broken off is measured again.
            Event::Ended { .. } | Event::Resumed { .. } => self.attempt = None,
            _ => {}
        }
    }

    /// What has been gathered so far.
    pub fn series(&self) -> &[RoundSeries] {
        &self.series
    }

    /// Everything; the end of a record is the end of what it measured last,
    /// unless it says that it was interrupted.
    pub fn finish(self) -> Vec<RoundSeries> {
        let mut series = self.series;
        if let Some(last) = series.last_mut() {
            last.left_over_ms += self.round.length_ms;
        }
        series.retain(|series| !series.rounds.is_empty() || series.left_over_ms > 0);
        series
    }

    fn step(&mut self, of: u32, name: &str, point: Option<&Point>) {
        self.attempt = None;
        self.round = Filling::default();
        self.interval = OpenRound::default();
        self.idle.clear();
        self.longest_ms = 0;
        if self.ask.span == RoundSpan::Point {
            self.attempt = point.map(|point| PointAttempt {
                point: point.clone(),
                begin_ms: self.now_ms,
                round: None,
            });
            return;
        }
        let name = match point {
            Some(point) if point.repetition > 1 => format!("{}.r{}", point.id, point.repetition),
            Some(point) => point.id.clone(),
            None if of > 1 => name.to_owned(),
            None => String::new(),
        };
        // Measured again: the last attempt counts.
        let is_point = point.is_some();
        self.series.retain(|s| !is_point || s.name != name);
        self.series.push(RoundSeries::new(name));
    }

    fn sample(&mut self, sample: &Sample) {
        let name = self.names.get(sample.job as usize).map(String::as_str);
        if !self.ask.wants(sample.dir) || !self.ask.wants_job(name) {
            self.interval.others |= sample.ios > 0;
            return;
        }
        self.interval.wanted = true;
        self.interval.span_ms = self.interval.span_ms.max(sample.span_ms);
        self.interval.rate.add(sample);
    }

    fn interval(&mut self, t_ms: u64) {
        let began_ms = std::mem::replace(&mut self.now_ms, t_ms);
        if self.ask.span == RoundSpan::Point {
            return;
        }
        let interval = std::mem::take(&mut self.interval);
        let begun =
            self.round.length_ms > 0 || self.series.last().is_some_and(|s| !s.rounds.is_empty());
        if interval.wanted {
            for (begin_ms, end_ms) in std::mem::take(&mut self.idle) {
                self.add(begin_ms, end_ms, &Rate::default());
            }
            let begin_ms = t_ms.saturating_sub(interval.span_ms);
            self.add(begin_ms, t_ms, &interval.rate);
        } else if begun {
            // Nothing came back. Before the first I/O there is the ramp.
            self.idle.push((began_ms, t_ms));
            if !interval.others {
                for (begin_ms, end_ms) in std::mem::take(&mut self.idle) {
                    self.add(begin_ms, end_ms, &Rate::default());
                }
            }
        }
    }

    /// Adds an interval to the round.
    fn add(&mut self, begin_ms: u64, end_ms: u64, rate: &Rate) {
        if self.series.is_empty() {
            self.series.push(RoundSeries::new(String::new()));
        }
        let length_ms = end_ms - begin_ms;
        self.longest_ms = self.longest_ms.max(length_ms);
        let round = &mut self.round;
        if round.length_ms == 0 {
            round.begin_ms = begin_ms;
        }
        round.length_ms += length_ms;
        round.iops_ms += rate.iops * length_ms as f64;
        round.bw_bytes_ms += rate.bw_bytes * length_ms as f64;
        round.clat.merge(&rate.clat);
        let wanted_ms = match self.ask.span {
            RoundSpan::Time(ms) => ms,
            RoundSpan::Interval | RoundSpan::Point => 0,
        };
        // The rest behind the last whole interval is no interval.
        let wanted_ms = wanted_ms.max(self.longest_ms).max(1);
        if round.length_ms + self.longest_ms / 2 < wanted_ms {
            return;
        }
        let full = std::mem::take(&mut self.round);
        let values = self.ask.metrics.iter().map(|&metric| full.figure(metric));
        let values = values.collect();
        if let Some(series) = self.series.last_mut() {
            series.rounds.push(SteadyRound {
                begin_ms: full.begin_ms,
                end_ms,
                values,
            });
        }
    }

    fn finished(&mut self, results: &Results) {
        let figures = Filling::of(&self.ask, results);
        let end_ms = self.now_ms;
        if let Some(attempt) = &mut self.attempt {
            let metrics = self.ask.metrics.iter();
            attempt.round = Some(SteadyRound {
                begin_ms: attempt.begin_ms.min(end_ms),
                end_ms,
                values: metrics.map(|&metric| figures.figure(metric)).collect(),
            });
        }
    }

    /// Keeps the round of a measurement that was good; a repetition that was
    /// measured again replaces what there was.
    fn end_attempt(&mut self, outcome: Outcome) {
        let attempt = self.attempt.take();
        let Some(attempt) = attempt.filter(|_| outcome == Outcome::Complete) else {
            return;
        };
        let Some(round) = attempt.round else {
            return;
        };
        let known = self.series.iter().position(|s| s.name == attempt.point.id);
        let place = known.unwrap_or_else(|| {
            self.series.push(RoundSeries::new(attempt.point.id));
            self.series.len() - 1
        });
        let series = &mut self.series[place];
        let repetition = attempt.point.repetition;
        match series.repetitions.binary_search(&repetition) {
            Ok(at) => series.rounds[at] = round,
            Err(at) => {
                series.repetitions.insert(at, repetition);
                series.rounds.insert(at, round);
            }
        }
    }
}

impl Filling {
    /// The round that a measurement's own figures are.
    fn of(ask: &Ask, results: &Results) -> Self {
        let mut round = Self {
            length_ms: 1,
            ..Self::default()
        };
        let jobs = results.jobs.iter().filter(|job| !job.is_sum_of_clients());
        let jobs = jobs.filter(|job| ask.wants_job(Some(&job.name)));
        let found = jobs.flat_map(JobResult::directions);
        let (mut ios, mut waited_ns) = (0, 0.0);
        for (_, result) in found.filter(|(dir, _)| ask.wants(*dir)) {
            round.iops_ms += result.iops;
            round.bw_bytes_ms += result.bw_bytes;
            if let Some(clat) = &result.clat {
                ios += result.total_ios;
                waited_ns += clat.mean_ns * result.total_ios as f64;
                round
                    .clat
                    .merge(clat.histogram.as_ref().unwrap_or(&Histogram::new()));
            }
        }
        round.clat_mean_ns = (ios > 0).then(|| waited_ns / ios as f64);
        round
    }

    fn figure(&self, metric: Metric) -> Option<f64> {
        let length_ms = self.length_ms as f64;
        match metric {
            Metric::Iops => Some(self.iops_ms / length_ms),
            Metric::Bandwidth => Some(self.bw_bytes_ms / length_ms),
            Metric::Latency => self.clat_mean_ns.or_else(|| self.clat.mean_ns()),
            Metric::Percentile(percent) => self.clat.percentile_ns(percent).map(|ns| ns as f64),
        }
    }
}
