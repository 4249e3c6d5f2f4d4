//! A campaign as a person reads it: a table for each series.

use fathom_analysis::{
    Best, Curve, Estimate, PointResult, RepeatedFigures, SweepOutcome, best, measured_of,
};
use fathom_model::{Direction, units};

use super::{Marks, SIGNS, failures, header, item, job_figures, jobs, notes};
use crate::knee;
use fathom_document::sweep::CampaignRecord;
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone, wrap};

/// Stands behind the best figure of a series.
const BEST: &str = "*";
/// Directions with lines of their own.
const DIRECTIONS: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

/// The campaign as text, ending in a newline.
pub fn campaign_table(campaign: &CampaignRecord, style: Style) -> String {
    let mut sections = vec![header::header(&campaign.run, style) + &counts(campaign, style)];
    let doubts = Doubts::of(campaign);
    let series = &campaign.sweep.series;
    sections.extend(series.iter().map(|series| table(series, &doubts, style)));
    let marks = Marks::of(&campaign.run);
    if !campaign.run.jobs.is_empty() {
        sections.push(job_figures(&campaign.run, &marks, style));
    }
    sections.push(legend(campaign, &doubts, style) + &notes(&campaign.run, &marks, style));
    sections.push(failures(&campaign.run, style));
    sections.retain(|section| !section.is_empty());
    sections.join("\n")
}

/// How many points there are and what came of them.
fn counts(campaign: &CampaignRecord, style: Style) -> String {
    let series = &campaign.sweep.series;
    let mut seen = [0usize; 4];
    for point in series.iter().flat_map(|series| &series.points) {
        let kind = match point.outcome {
            SweepOutcome::Done => 0,
            SweepOutcome::Failed(_) => 1,
            SweepOutcome::Skipped(_) => 2,
            SweepOutcome::Unfinished => 3,
        };
        seen[kind] += 1;
    }
    let all: usize = seen.iter().sum();
    let names = ["done", "failed", "left out", "not finished"];
    let parts = seen.iter().zip(names).filter(|(count, _)| **count > 0);
    let parts: Vec<String> = parts
        .map(|(count, name)| format!("{count} {name}"))
        .collect();
    let text = format!("{all} in {} series: {}", series.len(), parts.join(", "));
    header::labelled("points", &text, style)
}

/// What makes figures of points doubtful, each sentence once.
struct Doubts<'c>(Vec<&'c str>);

impl<'c> Doubts<'c> {
    fn of(campaign: &'c CampaignRecord) -> Self {
        let mut all: Vec<&str> = Vec::new();
        let points = campaign
            .sweep
            .series
            .iter()
            .flat_map(|series| &series.points);
        for doubt in points.flat_map(|point| &point.doubts) {
            if !all.contains(&doubt.as_str()) {
                all.push(doubt);
            }
        }
        Self(all)
    }

    /// The signs of a point's doubts; beyond the ninth there are none.
    fn signs(&self, point: &PointResult) -> String {
        let place = |doubt: &String| self.0.iter().position(|known| known == doubt);
        let signs = point.doubts.iter().filter_map(place);
        let signs = signs.filter_map(|place| SIGNS.chars().nth(place));
        signs.map(String::from).collect::<Vec<_>>().join(",")
    }
}

fn legend(campaign: &CampaignRecord, doubts: &Doubts, style: Style) -> String {
    let mut text = String::new();
    let has_best = |series: &Curve| {
        let found = DIRECTIONS.map(|dir| best(series, dir));
        found.iter().any(|best| *best != Best::default())
    };
    if campaign.sweep.series.iter().any(has_best) {
        text += &item(BEST, "best of its series", Tone::Good, style);
    }
    let signs: Vec<String> = SIGNS.chars().map(String::from).collect();
    for (place, doubt) in doubts.0.iter().enumerate() {
        let sign = signs.get(place).map_or("-", String::as_str);
        text += &item(sign, doubt, Tone::Doubtful, style);
    }
    text
}

fn table(series: &Curve, doubts: &Doubts, style: Style) -> String {
    let mut text = format!("{}\n", style.paint(Tone::Strong, &series.name));
    for line in wrap(&shared_settings(series), style.columns()) {
        text += &format!("{}\n", style.paint(Tone::Faint, &line));
    }
    let mut grid = Grid::new([
        figures(x_title(&series.x), 0),
        words("", 0),
        figures("bandwidth", 0),
        figures("IOPS", 0),
        figures("± IOPS", 1),
        figures("clat mean", 0),
        figures("p99", 0),
        figures("n", 2),
    ]);
    let bests = DIRECTIONS.map(|dir| best(series, dir));
    for (place, point) in series.points.iter().enumerate() {
        let mut x = x_of(point);
        if let Some((tone, word)) = state(&point.outcome) {
            let mut cells = vec![GridCell::from(x), GridCell::new(tone, word)];
            cells.resize(8, GridCell::default());
            grid.line(cells);
            continue;
        }
        for (dir, best) in DIRECTIONS.into_iter().zip(&bests) {
            if let Some(figures) = point.figures(dir) {
                let x = std::mem::take(&mut x);
                grid.line(line(x, dir, figures, place, best, &doubts.signs(point)));
            }
        }
    }
    let knees = knee::sentences(series).into_iter();
    let knees: String = knees
        .map(|said| item("▸", &said, Tone::Good, style))
        .collect();
    text + &grid.render(style) + &knees + &partial(series, &bests, style) + &reasons(series, style)
}

/// What a point is whose figures are not shown.
fn state(outcome: &SweepOutcome) -> Option<(Tone, &'static str)> {
    match outcome {
        SweepOutcome::Done => None,
        SweepOutcome::Failed(_) => Some((Tone::Bad, "failed")),
        SweepOutcome::Skipped(_) => Some((Tone::Doubtful, "left out")),
        SweepOutcome::Unfinished => Some((Tone::Doubtful, "not finished")),
    }
}

fn line(
    x: String,
    dir: Direction,
    figures: &RepeatedFigures,
    place: usize,
    best: &Best,
    signs: &str,
) -> Vec<GridCell> {
    let mark = |of: Option<usize>| if of == Some(place) { BEST } else { "" };
    let n = figures.iops.n;
    let clat = |ns: Option<f64>| ns.map_or("–".to_owned(), units::latency);
    let p99 = figures.percentile_ns(99.0).map(|ns| ns as f64);
    vec![
        GridCell::from(x),
        GridCell::from(dir.name()).marked(Tone::Doubtful, signs),
        GridCell::from(units::bytes_per_second(figures.bw_bytes.mean))
            .marked(Tone::Good, mark(best.bandwidth)),
        GridCell::new(Tone::Strong, units::count(figures.iops.mean))
            .marked(Tone::Good, mark(best.iops)),
        GridCell::from(spread(&figures.iops)),
        GridCell::from(clat(figures.clat_mean_ns.map(|estimate| estimate.mean)))
            .marked(Tone::Good, mark(best.latency)),
        GridCell::from(clat(p99)),
        GridCell::from(if n > 1 { n.to_string() } else { String::new() }),
    ]
}

/// Half the confidence interval in percent of the mean.
fn spread(estimate: &Estimate) -> String {
    match estimate.half_width_95 {
        Some(half) if estimate.mean > 0.0 => format!("{:.1} %", half / estimate.mean * 100.0),
        _ => String::new(),
    }
}

/// That the best points are not those of the whole series.
fn partial(series: &Curve, bests: &[Best], style: Style) -> String {
    let (measured, all) = measured_of(series);
    if measured == all || bests.iter().all(|best| *best == Best::default()) {
        return String::new();
    }
    let what = format!("best of {measured} of {all} points: the others may be better");
    item(BEST, &what, Tone::Doubtful, style)
}

/// Why points have no figures, points of the same reason together.
fn reasons(series: &Curve, style: Style) -> String {
    let mut told: Vec<(Tone, &str, Vec<String>)> = Vec::new();
    for point in &series.points {
        let (tone, whys) = match &point.outcome {
            SweepOutcome::Failed(whys) => (Tone::Bad, whys.as_slice()),
            SweepOutcome::Skipped(why) => (Tone::Doubtful, std::slice::from_ref(why)),
            SweepOutcome::Done | SweepOutcome::Unfinished => continue,
        };
        for why in whys {
            match told.iter_mut().find(|(_, known, _)| known == why) {
                Some((_, _, points)) => points.push(x_of(point)),
                None => told.push((tone, why, vec![x_of(point)])),
            }
        }
    }
    let mut text = String::new();
    for (tone, why, points) in told {
        let sign = if tone == Tone::Bad { "✗" } else { "-" };
        let what = format!("{}: {why}", points.join(", "));
        text += &item(sign, &what, tone, style);
    }
    text
}

/// Where a point stands on the x axis, as its job file says it.
fn x_of(point: &PointResult) -> String {
    let value = point.point.settings.get(&point.point.x);
    value.map_or_else(|| "?".to_owned(), Clone::clone)
}

fn x_title(x: &str) -> &'static str {
    match x {
        "iodepth" => "IO depth",
        "numjobs" => "jobs",
        "bs" => "block size",
        "iodepth_batch_submit" => "batch",
        _ => "x",
    }
}

/// The settings that all points of a series have, as a job file has them.
fn shared_settings(series: &Curve) -> String {
    let Some(first) = series.points.first() else {
        return String::new();
    };
    let in_all = |name: &String, value: &String| {
        let has = |point: &PointResult| point.point.settings.get(name) == Some(value);
        *name != series.x && series.points.iter().all(has)
    };
    let settings = first.point.settings.iter();
    let mut shared: Vec<(&String, &String)> = settings.filter(|(n, v)| in_all(n, v)).collect();
    let order = |name: &str| jobs::TELLING.iter().position(|told| *told == name);
    shared.sort_by_key(|(name, _)| order(name).unwrap_or(usize::MAX));
    let shared = shared.iter().map(|(name, value)| format!("{name}={value}"));
    shared.collect::<Vec<_>>().join(" ")
}
