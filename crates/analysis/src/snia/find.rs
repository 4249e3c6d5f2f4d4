//! What came of a test.

use fathom_model::{Histogram, Stage, StageEnd, StageKind};
use serde::Serialize;

use super::collect::{CellFigures, Interruption, RoundCollector, SniaCell, SniaRound};
use super::setup::{Setup, SniaTest, TrackedVariable};
use crate::steady_state::{FittedWindow, Metric, SeriesValue, Term, judge};

/// A percentile that is shown of latencies: "five nines".
const FIVE_NINES: f64 = 99.999;

/// Everything that was found, with what it was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Findings {
    /// What was asked for.
    pub setup: Setup,
    /// Whether every part attained steady state.
    pub attained: bool,
    /// The parts, in their order.
    pub parts: Vec<TestPart>,
    /// The cell of the histogram at the end; null when there is none (yet).
    pub histogram: Option<CellFigures>,
    /// What led to the rounds: purges and fills, with their ends.
    pub stages: Vec<Passed>,
    /// Where the flow stood still; it allows no unplanned gap.
    pub interruptions: Vec<Interruption>,
    /// What is otherwise than in the specification, a sentence each.
    pub deviations: Vec<String>,
    /// What was noted while it ran, a sentence each.
    pub notes: Vec<String>,
}

/// A stage that is no round.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Passed {
    /// The stage.
    #[serde(flatten)]
    pub stage: Stage,
    /// How it ended; null when it has not.
    pub ended: Option<StageEnd>,
}

/// How the rounds of a part came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartEnding {
    /// Steady within the rounds that there may be.
    Attained,
    /// Steady, but only beyond the rounds that there may be (soft limit).
    AttainedLate,
    /// The rounds are over and no window was steady: a result, with its numbers.
    NotAttained,
    /// Write saturation: it is over before a window could be judged.
    TooShort,
    /// It has not come to an end: it goes on, or was broken off.
    Unfinished,
}

/// One part: purged and made steady by itself.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TestPart {
    /// Its block size, or empty when there is but one.
    pub part: String,
    /// How it came out.
    pub ending: PartEnding,
    /// Whether it was steady.
    pub attained: bool,
    /// Rounds that have ended.
    pub rounds: usize,
    /// Number of the first round of the window, from 1, and of the last: the
    /// first window that is steady, else the last one, which is *not*.
    pub window: Option<(usize, usize)>,
    /// The tracked variables.
    pub tracked: Vec<Tracked>,
    /// The cells over the rounds of the window.
    pub cells: Vec<CellSummary>,
    /// fio-tests' all-cells criterion, whether or not it decides.
    pub all_cells: AllCells,
    /// Write saturation: the samples and what ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub saturation: Option<Saturation>,
    /// Every round, as measured.
    pub measured: Vec<SniaRound>,
}

/// One tracked variable.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Tracked {
    /// The cell.
    #[serde(flatten)]
    pub cell: SniaCell,
    /// What is tracked of it.
    pub metric: Metric,
    /// Its value in every round; null where there is none.
    pub values: Vec<Option<f64>>,
    /// The window, judged; null when no window is full and without a hole.
    pub determination: Option<Determination>,
}

/// The judgement of a window: what the specification's determination box shows.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Determination {
    /// Average, range, slope and the rest. Its places are numbers of rounds.
    #[serde(flatten)]
    pub window: FittedWindow,
    /// Data and slope excursion, allowed and measured.
    pub terms: Vec<Term>,
    /// Whether both keep their limits.
    pub holds: bool,
    /// The fit, in rounds from 1: `y = 12.5·x + 98200`.
    pub formula: String,
}

/// A cell over the rounds of a window.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CellSummary {
    /// The cell.
    #[serde(flatten)]
    pub cell: SniaCell,
    /// Rounds with good figures.
    pub n: usize,
    /// Average of the rounds, reads and writes added up.
    pub iops: Option<f64>,
    /// Bytes per second, likewise.
    pub bw_bytes: Option<f64>,
    /// Average of the rounds' mean latencies in ns.
    pub lat_mean_ns: Option<f64>,
    /// 99.999th percentile in ns, of the merged histograms.
    pub lat_p99999_ns: Option<u64>,
    /// Number of values in them.
    pub lat_n: u64,
    /// The longest in ns.
    pub lat_max_ns: Option<u64>,
}

/// fio-tests' criterion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct AllCells {
    /// Whether so many rounds in a row had all their cells keep fio's rule.
    pub attained: bool,
    /// The round at which they had, from 1.
    pub at: Option<usize>,
    /// For every round how many cells keep it, and how many there are.
    pub steady: Vec<(usize, usize)>,
}

/// How write saturation went.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Saturation {
    /// Samples that make a round of the criterion.
    pub samples_a_round: usize,
    /// Bytes written, in multiples of the capacity.
    pub drive_fills: f64,
    /// Time of I/O in ms.
    pub io_ms: u64,
    /// What ended it, or nothing yet.
    pub ended_by: Option<&'static str>,
}

/// Judges what a collector has gathered.
pub fn find(collector: &RoundCollector) -> Findings {
    let setup = collector.setup();
    let parts = setup.parts().into_iter();
    let parts: Vec<TestPart> = parts
        .map(|part| TestPart::of(setup, &part, collector.rounds(&part)))
        .collect();
    let mut deviations = setup.deviations();
    for (stage, end) in collector.stages() {
        if let (StageKind::Purge, Some(StageEnd::Skipped { reason })) = (stage.kind, end) {
            deviations.push(format!("{} was left out: {reason}", stage.id));
        }
    }
    for gap in collector.interruptions() {
        deviations.push(gap.sentence());
    }
    Findings {
        setup: setup.clone(),
        attained: parts.iter().all(|part| part.attained),
        parts,
        histogram: collector.histogram().cloned(),
        stages: collector
            .stages()
            .iter()
            .filter(|(stage, _)| stage.kind != StageKind::Round)
            .map(|(stage, ended)| Passed {
                stage: stage.clone(),
                ended: ended.clone(),
            })
            .collect(),
        interruptions: collector.interruptions().to_vec(),
        deviations,
        notes: collector.notes().to_vec(),
    }
}

impl Interruption {
    /// What it means.
    pub fn sentence(&self) -> String {
        let gap = fathom_model::units::duration(self.gap_ms);
        let place = if self.within { "in" } else { "after" };
        let stage = &self.stage;
        format!("it was interrupted for {gap} {place} {stage}: the flow allows no unplanned gap")
    }
}

impl TestPart {
    /// Judges the rounds of a part.
    pub fn of(setup: &Setup, part: &str, rounds: &[SniaRound]) -> Self {
        let cells = setup.cells(part);
        let whole: Vec<&SniaRound> = rounds.iter().take_while(|r| r.is_whole(&cells)).collect();
        let grouped = setup.samples_a_round.max(1);
        let metric = setup.test.metric();
        let cells_tracked = setup.tracked(part);
        let series = |&cell: &SniaCell| -> Vec<SeriesValue> {
            let groups = whole.chunks_exact(grouped);
            groups.map(|group| value_of(group, cell, metric)).collect()
        };
        let values: Vec<Vec<SeriesValue>> = cells_tracked.iter().map(series).collect();
        let first = setup.first_judged(&whole, grouped);
        let by_tracked = steady_window(setup, &values, first);
        let all_cells = AllCells::of(setup, &whole);
        let count = values.first().map_or(0, Vec::len);
        let at = match setup.criterion {
            TrackedVariable::Tracked => by_tracked,
            TrackedVariable::AllCells => all_cells.at,
        };
        let can_be_judged = count >= first.saturating_add(setup.limits.window);
        let last = at.or(can_be_judged.then_some(count));
        let window = last.map(|last| (last + 1 - setup.limits.window.min(last), last));
        let tracked = cells_tracked.into_iter().zip(values).map(|(cell, values)| {
            let determination = window.and_then(|w| Determination::of(setup, &values, w));
            Tracked {
                cell,
                metric,
                values: values.iter().map(|value| value.value).collect(),
                determination,
            }
        });
        let tracked: Vec<Tracked> = tracked.collect();
        let in_window = window.map_or(&[][..], |(first, last)| {
            &whole[(first - 1) * grouped..last * grouped]
        });
        let saturation = (setup.test == SniaTest::Wsat).then(|| Saturation::of(setup, &whole, at));
        let is_over = match &saturation {
            Some(saturation) => saturation.ended_by.is_some(),
            None => count >= setup.limits.max_rounds && !setup.limits.soft,
        };
        let ending = match at {
            Some(at) if at <= setup.limits.max_rounds || setup.test == SniaTest::Wsat => {
                PartEnding::Attained
            }
            Some(_) => PartEnding::AttainedLate,
            None if is_over && !can_be_judged && saturation.is_some() => PartEnding::TooShort,
            None if is_over => PartEnding::NotAttained,
            None => PartEnding::Unfinished,
        };
        Self {
            part: part.to_owned(),
            ending,
            attained: at.is_some(),
            rounds: count,
            window,
            tracked,
            cells: cells
                .iter()
                .map(|&c| CellSummary::of(c, in_window))
                .collect(),
            all_cells,
            saturation,
            measured: rounds.to_vec(),
        }
    }

    /// Whether its rounds are over, steady or not.
    pub fn is_over(&self) -> bool {
        self.ending != PartEnding::Unfinished
    }

    /// Whether it goes on beyond the rounds that there may be.
    pub fn is_late(&self, setup: &Setup) -> bool {
        setup.test != SniaTest::Wsat && self.rounds >= setup.limits.max_rounds
    }
}

impl Setup {
    /// The first round of the criterion that a window may hold, from 0. Write
    /// saturation begins on a purged device, which is level for a while: only
    /// what comes after the whole range was written once is judged.
    fn first_judged(&self, rounds: &[&SniaRound], grouped: usize) -> usize {
        if self.test != SniaTest::Wsat {
            return 0;
        }
        let mut written = 0;
        let mut filled = |round: &&SniaRound| {
            written += round.written_bytes();
            written >= self.active_bytes
        };
        match rounds.iter().position(&mut filled) {
            Some(place) => (place + 1).div_ceil(grouped),
            None => usize::MAX,
        }
    }
}

/// The mean of a figure over the rounds of a group; `None` when one is missing.
fn value_of(group: &[&SniaRound], cell: SniaCell, metric: Metric) -> SeriesValue {
    let cells: Vec<&CellFigures> = group.iter().filter_map(|round| round.cell(cell)).collect();
    let values: Option<Vec<f64>> = cells.iter().map(|cell| cell.value(metric)).collect();
    SeriesValue {
        begin_ms: cells.first().map_or(0, |cell| cell.begin_ms),
        end_ms: cells.last().map_or(0, |cell| cell.end_ms),
        value: values
            .filter(|values| !values.is_empty())
            .map(|values| mean(&values)),
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The number of the first round at which all variables are steady over the
/// same window.
fn steady_window(setup: &Setup, values: &[Vec<SeriesValue>], first: usize) -> Option<usize> {
    let window = setup.limits.window;
    let count = values.first()?.len();
    (first.saturating_add(window)..=count).find(|&last| {
        let mut all = values.iter();
        all.all(|values| judge(setup.limits.rule(), values[last - window..last].to_vec()).attained)
    })
}

impl Determination {
    /// Judges one variable in the window of these rounds.
    fn of(setup: &Setup, values: &[SeriesValue], (first, last): (usize, usize)) -> Option<Self> {
        let rule = setup.limits.rule();
        let mut window = judge(rule, values[first - 1..last].to_vec()).window?;
        window.first = first;
        window.last = last;
        let terms: Vec<Term> = rule.terms(&window).collect();
        // The fit counts places from 0, people count rounds from 1.
        let at_zero = window.intercept - window.slope * first as f64;
        let sign = if at_zero < 0.0 { '−' } else { '+' };
        Some(Self {
            window,
            holds: rule.holds(&window),
            terms,
            formula: format!(
                "y = {}·x {sign} {}",
                figures(window.slope),
                figures(at_zero.abs())
            ),
        })
    }
}

/// A number with five significant digits.
fn figures(value: f64) -> String {
    let whole = value.abs().log10().floor();
    let decimals = match whole.is_finite() {
        true => (4.0 - whole).clamp(0.0, 8.0) as usize,
        false => 0,
    };
    format!("{value:.decimals$}").replace('-', "−")
}

impl CellSummary {
    fn of(cell: SniaCell, rounds: &[&SniaRound]) -> Self {
        let all: Vec<&CellFigures> = rounds.iter().filter_map(|round| round.cell(cell)).collect();
        let good: Vec<&CellFigures> = all.into_iter().filter(|c| c.failed.is_none()).collect();
        let average = |metric| {
            let values: Vec<f64> = good.iter().filter_map(|cell| cell.value(metric)).collect();
            (!values.is_empty()).then(|| mean(&values))
        };
        let mut lat = Histogram::new();
        for cell in &good {
            lat.merge(&cell.lat);
        }
        let lat_max_ns = good.iter().filter_map(|cell| cell.lat_max_ns).max();
        let nines = lat.percentile_ns(FIVE_NINES);
        Self {
            cell,
            n: good.len(),
            iops: average(Metric::Iops),
            bw_bytes: average(Metric::Bandwidth),
            lat_mean_ns: average(Metric::Latency),
            // The middle of the last bucket can be beyond the greatest latency.
            lat_p99999_ns: nines.map(|ns| lat_max_ns.map_or(ns, |most| ns.min(most))),
            lat_n: lat.total(),
            lat_max_ns,
        }
    }
}

impl AllCells {
    fn of(setup: &Setup, rounds: &[&SniaRound]) -> Self {
        let steady = |round: &&SniaRound| {
            let keep =
                |cell: &&CellFigures| cell.failed.is_none() && cell.keeps_fio_rule == Some(true);
            (round.cells.iter().filter(keep).count(), round.cells.len())
        };
        let steady: Vec<(usize, usize)> = rounds.iter().map(steady).collect();
        let window = setup.limits.window;
        let mut in_a_row = steady.windows(window.max(1));
        let at = in_a_row.position(|rounds| rounds.iter().all(|(steady, of)| steady == of));
        let at = at.map(|first| first + window);
        Self {
            attained: at.is_some(),
            at,
            steady,
        }
    }
}

impl Saturation {
    fn of(setup: &Setup, samples: &[&SniaRound], steady_at: Option<usize>) -> Self {
        let written: u64 = samples.iter().map(|round| round.written_bytes()).sum();
        let drive_fills = written as f64 / setup.capacity_bytes.max(1) as f64;
        let mut io_ms = samples.len() as u64 * setup.cell_ms;
        let is_full = drive_fills >= setup.stop_fills;
        if let (true, Some(last)) = (
            is_full,
            samples.last().and_then(|round| round.cells.first()),
        ) {
            // It ended with the last byte, not with its time.
            let ran_ms = last.end_ms.saturating_sub(last.begin_ms);
            io_ms -= setup.cell_ms.saturating_sub(ran_ms);
        }
        let ended_by = match () {
            () if steady_at.is_some() => Some("steady state"),
            () if is_full => Some("the capacity it may write"),
            () if io_ms >= setup.stop_ms => Some("its time"),
            () => None,
        };
        Self {
            samples_a_round: setup.samples_a_round,
            drive_fills,
            io_ms,
            ended_by,
        }
    }
}
