//! The graphs: what the script draws them from, and their places on the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use fathom_analysis::{Curve, Estimate, RepeatedFigures, SweepOutcome, best, measured_of};
use fathom_model::{Direction, units};
use serde::Serialize;

use super::SampleReading;
use super::marks::DoubtMarks;
use super::markup::PageSection;
use super::nodes;
use super::points::{self, HtmlPoint};
use super::story::Story;
use crate::knee;
use fathom_sheet::html::escape;

/// Name and version of what is embedded.
pub const SCHEMA: &str = "fathom.report/1";
/// Steps that have a card each; of more, one card shows the one that is chosen.
const CARDS: usize = 12;
/// More series are drawn smaller.
const FEW: usize = 6;
/// Directions that a point can have figures for.
const DIRECTIONS: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

/// The data of the graphs, without the samples.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct GraphData<'s> {
    schema: &'static str,
    series: Vec<HtmlCurve<'s>>,
    /// Places in `series` that share a graph of IOPS against latency.
    tradeoffs: Vec<Vec<usize>>,
    /// The points of all series, in their order.
    points: Vec<HtmlPoint<'s>>,
    /// What makes figures of points doubtful, by number - 1.
    doubts: &'s [String],
    steps: Vec<StepJobs<'s>>,
    /// What the nodes did over time.
    pub nodes: nodes::NodesData,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct StepJobs<'s> {
    /// Empty for the measurement of a point that names it.
    name: String,
    jobs: &'s [String],
    /// Where each of the jobs runs, when they run on several machines.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hosts: &'s [String],
}

/// One series. All lists have the points' order; missing is null.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct HtmlCurve<'s> {
    name: &'s str,
    /// The last part of the name.
    short: &'s str,
    /// The option on the x axis.
    x: &'s str,
    /// What all its points have, as a job file has it.
    settings: BTreeMap<&'s str, &'s str>,
    log2: bool,
    at: Vec<u64>,
    dirs: BTreeMap<&'static str, CurveFigures>,
    /// Places in `at` of failed points.
    failed: Vec<usize>,
}

/// Whether no point has it.
fn is_empty(list: &[Option<f64>]) -> bool {
    list.iter().all(Option::is_none)
}

/// The figures of one direction, bytes/s, 1/s, ns; `_error`: half the width of
/// the 95 % interval, absent where no point has one.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
struct CurveFigures {
    bw: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "is_empty")]
    bw_error: Vec<Option<f64>>,
    iops: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "is_empty")]
    iops_error: Vec<Option<f64>>,
    clat: Vec<Option<f64>>,
    #[serde(skip_serializing_if = "is_empty")]
    clat_error: Vec<Option<f64>>,
    p50: Vec<Option<u64>>,
    p99: Vec<Option<u64>>,
    p999: Vec<Option<u64>>,
    max: Vec<Option<u64>>,
    best: BestPlaces,
}

/// Places in the lists.
#[derive(Debug, Default, Serialize, schemars::JsonSchema)]
struct BestPlaces {
    bw: Option<usize>,
    iops: Option<usize>,
    clat: Option<usize>,
}

impl<'s> GraphData<'s> {
    /// Everything the script needs of a run.
    pub fn of(story: &'s Story, nodes: nodes::NodesData, marks: &'s DoubtMarks) -> Self {
        let series: Vec<HtmlCurve> = story.sweep.series.iter().map(HtmlCurve::of).collect();
        let mut tradeoffs: Vec<(&str, Vec<usize>)> = Vec::new();
        for (place, curve) in series.iter().enumerate() {
            let folder = curve.name.rsplit_once('/').map_or("", |(folder, _)| folder);
            match tradeoffs.iter_mut().find(|(name, _)| *name == folder) {
                Some((_, places)) => places.push(place),
                None => tradeoffs.push((folder, vec![place])),
            }
        }
        Self {
            schema: SCHEMA,
            series,
            tradeoffs: tradeoffs.into_iter().map(|(_, places)| places).collect(),
            points: points::of(story, marks),
            doubts: marks.sentences(),
            steps: story
                .steps
                .iter()
                .map(|step| StepJobs {
                    name: match step.point.as_deref() == Some(step.name.as_str())
                        && step.repetition <= 1
                    {
                        true => String::new(),
                        false => story.name_of(step),
                    },
                    jobs: &step.jobs,
                    hosts: &step.hosts,
                })
                .collect(),
            nodes,
        }
    }

    /// The graph that says most: IOPS against latency in the folder of the series that
    /// does most, or that series where no latencies are known. The attribute that names
    /// it, its place, and its caption.
    pub fn telling(&self) -> Option<(&'static str, usize, String)> {
        let most = |curve: &HtmlCurve| {
            let all = curve.dirs.values().flat_map(|figures| &figures.iops);
            all.flatten().copied().fold(0.0, f64::max)
        };
        // Over block sizes the one follows from the other, and where the load is too high
        // from the first point on there is no curve to see.
        let is_load = |curve: &HtmlCurve| {
            let all = curve.dirs.values().flat_map(|figures| &figures.iops);
            let least = all.flatten().copied().fold(f64::INFINITY, f64::min);
            matches!(curve.x, "iodepth" | "numjobs") && most(curve) >= 2.0 * least
        };
        let rank = |curve: &HtmlCurve| (is_load(curve), most(curve));
        let (place, curve) = (self.series.iter().enumerate()).max_by(|a, b| {
            let (a_rank, b_rank) = (rank(a.1), rank(b.1));
            let by_most = a_rank.1.total_cmp(&b_rank.1);
            a_rank.0.cmp(&b_rank.0).then(by_most).then(b.0.cmp(&a.0))
        })?;
        let has_latency = |figures: &CurveFigures| figures.clat.iter().any(Option::is_some);
        let folder = curve.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let behind = if folder.is_empty() { "" } else { ": " };
        let together = self.tradeoffs.iter().position(|all| all.contains(&place));
        match together.filter(|_| curve.dirs.values().any(has_latency)) {
            Some(group) => {
                let caption = format!("IOPS against latency{behind}{folder}");
                Some(("tradeoff", group, caption))
            }
            None => Some(("series", place, format!("IOPS: {}", curve.name))),
        }
    }
}

impl<'s> HtmlCurve<'s> {
    fn of(series: &'s Curve) -> Self {
        // A point that tells no place on the axis is in the tables only.
        let placed = |point: &fathom_analysis::PointResult| point.point.x_value();
        let kept: Vec<usize> = (0..series.points.len())
            .filter(|&place| placed(&series.points[place]).is_some())
            .collect();
        let at: Vec<u64> = series.points.iter().filter_map(placed).collect();
        let place_of = |place: Option<usize>| kept.iter().position(|&kept| Some(kept) == place);
        let mut dirs = BTreeMap::new();
        for dir in DIRECTIONS {
            let mut lines = CurveFigures::default();
            for &place in &kept {
                let point = &series.points[place];
                let good = point.outcome == SweepOutcome::Done;
                lines.push(point.figures(dir).filter(|_| good));
            }
            if lines.bw.iter().all(Option::is_none) {
                continue;
            }
            let best = best(series, dir);
            lines.best = BestPlaces {
                bw: place_of(best.bandwidth),
                iops: place_of(best.iops),
                clat: place_of(best.latency),
            };
            dirs.insert(dir.name(), lines);
        }
        let failed =
            |&place: &usize| matches!(series.points[kept[place]].outcome, SweepOutcome::Failed(_));
        Self {
            name: &series.name,
            short: short(&series.name),
            x: &series.x,
            settings: points::shared_settings(series),
            // What is set in powers of two reads best with one step for each.
            log2: at.len() > 2 && at.iter().all(|at| at.is_power_of_two()),
            failed: (0..kept.len()).filter(failed).collect(),
            at,
            dirs,
        }
    }
}

impl CurveFigures {
    fn push(&mut self, figures: Option<&RepeatedFigures>) {
        let mean = |estimate: Option<Estimate>| estimate.map(|e| rounded(e.mean));
        let error = |estimate: Option<Estimate>| estimate.and_then(|e| e.half_width_95);
        let error = |estimate| error(estimate).map(rounded);
        let (bw, iops) = (figures.map(|f| f.bw_bytes), figures.map(|f| f.iops));
        let clat = figures.and_then(|f| f.clat_mean_ns);
        self.bw.push(mean(bw));
        self.bw_error.push(error(bw));
        self.iops.push(mean(iops));
        self.iops_error.push(error(iops));
        self.clat.push(mean(clat));
        self.clat_error.push(error(clat));
        let percentile = |percent| figures.and_then(|f| f.percentile_ns(percent));
        self.p50.push(percentile(50.0));
        self.p99.push(percentile(99.0));
        self.p999.push(percentile(99.9));
        self.max.push(percentile(100.0));
    }
}

/// Seven digits: more than any pixel or figure shows.
fn rounded(value: f64) -> f64 {
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// The last part of a series' name.
pub fn short(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// Tabs that choose what the graphs below show.
fn tabs(label: &str, metrics: &[(&str, &str)]) -> String {
    let mut html = format!("<div role=\"tablist\" aria-label=\"{label}\">");
    for (place, (metric, title)) in metrics.iter().enumerate() {
        let (selected, index) = if place == 0 {
            ("true", 0)
        } else {
            ("false", -1)
        };
        let _ = write!(
            html,
            "<button type=\"button\" role=\"tab\" data-metric=\"{metric}\" \
             aria-selected=\"{selected}\" tabindex=\"{index}\">{title}</button>"
        );
    }
    html + "</div>\n"
}

/// Every point of a campaign at once: a map for each folder, drawn by the script, and what
/// chooses among the points on the whole page.
pub fn overview(story: &Story) -> Option<PageSection> {
    if !story.is_campaign() {
        return None;
    }
    let metrics = [
        ("iops", "IOPS"),
        ("bw", "Bandwidth"),
        ("clat", "Mean latency"),
        ("p99", "p99"),
    ];
    let body = format!(
        "<form class=\"tools\" id=\"pick\" aria-label=\"Which points\" hidden></form>\n\
         <div data-metric=\"iops\">\n{}<p class=\"lead\">A row for each series, a column for each \
         place on its axis; the darker, the more. ✗ failed, – skipped, ? doubtful. A cell leads to \
         everything about its point.</p>\n\
         <figure class=\"chart maps\" data-maps><div class=\"plot\"></div></figure></div>\n",
        tabs("What the maps show", &metrics)
    );
    PageSection::new("overview", "Overview", body)
}

/// A graph for each curve.
pub fn series(story: &Story, marks: &DoubtMarks) -> Option<PageSection> {
    let mut cards = String::new();
    for (place, series) in story.sweep.series.iter().enumerate() {
        let _ = writeln!(
            cards,
            "<figure class=\"chart\" data-series=\"{place}\"><figcaption>{}{}</figcaption>\
             <div class=\"plot\"></div>{}</figure>",
            escape(&series.name),
            marks.of_points(&series.points),
            best_lines(series)
        );
    }
    if cards.is_empty() {
        return None;
    }
    let metrics = [
        ("bw", "Bandwidth"),
        ("iops", "IOPS"),
        ("clat", "Mean latency"),
        ("percentiles", "Percentiles"),
    ];
    let body = format!(
        "<div data-metric=\"bw\">\n{}<p class=\"lead\">Best points: ▲ bandwidth, ■ IOPS, ● mean \
         latency. Bars are 95 % intervals over repetitions; a red cross stands where a point failed. \
         Drag to zoom, double-click for the whole range, click a name to hide its line.</p>\n\
         <div class=\"cards{}\" data-few>\n{cards}</div></div>\n",
        tabs("What the graphs show", &metrics),
        if story.sweep.series.len() > FEW {
            " small"
        } else {
            ""
        }
    );
    PageSection::new("series", "Series", body)
}

/// `of 7 of 9 points` where the best points are not those of the whole series.
pub fn of_points(series: &Curve) -> Option<String> {
    let (measured, all) = measured_of(series);
    (measured < all).then(|| format!("of {measured} of {all} points"))
}

/// The best points of a curve in words.
fn best_lines(series: &Curve) -> String {
    let mut html = String::new();
    for dir in DIRECTIONS {
        let best = best(series, dir);
        let told = |place: Option<usize>, text: &dyn Fn(&RepeatedFigures) -> Option<String>| {
            let point = series.points.get(place?)?;
            let value = text(point.figures(dir)?)?;
            let at = point.point.settings.get(&series.x)?;
            Some((value, at.clone()))
        };
        let three = [
            (
                "▲",
                told(best.bandwidth, &|f| {
                    Some(units::bytes_per_second(f.bw_bytes.mean))
                }),
            ),
            (
                "■",
                told(best.iops, &|f| Some(units::count(f.iops.mean) + " IOPS")),
            ),
            (
                "●",
                told(best.latency, &|f| {
                    Some(units::latency(f.clat_mean_ns?.mean))
                }),
            ),
        ];
        let known: Vec<String> = three
            .into_iter()
            .filter_map(|(sign, told)| {
                let (value, at) = told?;
                Some(format!(
                    "{sign} <b>{}</b> at {}",
                    escape(&value),
                    escape(&at)
                ))
            })
            .collect();
        if !known.is_empty() {
            let _ = write!(
                html,
                "<p class=best>{}{}: {}</p>",
                dir.name(),
                of_points(series).map_or_else(String::new, |of| format!(" (best {of})")),
                known.join(" · ")
            );
        }
    }
    for sentence in knee::sentences(series) {
        let _ = write!(html, "<p class=best>{}</p>", escape(&sentence));
    }
    html
}

/// IOPS against latency, the curves of a folder in one graph.
pub fn tradeoff(story: &Story, data: &GraphData) -> Option<PageSection> {
    let mut cards = String::new();
    for (place, group) in data.tradeoffs.iter().enumerate() {
        let first = &story.sweep.series[*group.first()?];
        let folder = first.name.rsplit_once('/').map_or("", |(folder, _)| folder);
        let _ = writeln!(
            cards,
            "<figure class=\"chart\" data-tradeoff=\"{place}\"><figcaption>{}</figcaption>\
             <div class=\"plot\"></div></figure>",
            escape(folder)
        );
    }
    if cards.is_empty() {
        return None;
    }
    let body = format!(
        "<p class=\"lead\">Along a curve the load grows. Where it turns upwards more load only waits.</p>\n\
         <div class=\"cards\">\n{cards}</div>\n"
    );
    PageSection::new("tradeoff", "IOPS against latency", body)
}

/// The samples of each step over time.
pub fn time(story: &Story, how: &SampleReading) -> Option<PageSection> {
    let merged = how.merged;
    let sampled: Vec<(usize, String)> = (story.sampled())
        .map(|(place, step)| (place, story.name_of(step)))
        .collect();
    let (first, _) = sampled.first()?;
    let metrics = [("iops", "IOPS"), ("bw", "Bandwidth"), ("clat", "Latency")];
    let mut body = format!(
        "<div data-metric=\"iops\">\n{}",
        tabs("What the time series show", &metrics)
    );
    if how.by_digest {
        body += "<p class=\"lead\">The record holds more samples than are shown one by one: of \
                 every 64 intervals the lowest and the highest IOPS, the highest p99 and the \
                 longest latency are as they were, the others between them are merged, with \
                 their histograms.</p>\n";
    }
    if merged > 1 {
        let _ = writeln!(
            body,
            "<p class=\"lead\">The record holds more samples than the page: {merged} \
             intervals each are merged into one, with their histograms.</p>"
        );
    }
    if sampled.len() > CARDS {
        body += "<div class=\"tools steps\"><button type=\"button\" data-by=\"-1\">Previous</button>\
                 <select class=\"step\" data-card=\"of-step\" aria-label=\"Step\"></select>\
                 <button type=\"button\" data-by=\"1\">Next</button></div>\n";
        let name = &sampled[0].1;
        let only = time_card(" id=\"of-step\"", *first, name);
        let _ = writeln!(body, "<div class=\"cards wide\">{only}</div></div>");
    } else {
        let wide = if sampled.len() == 1 { " wide" } else { "" };
        let cards: String = (sampled.iter())
            .map(|(place, name)| time_card("", *place, name))
            .collect();
        let _ = writeln!(body, "<div class=\"cards{wide}\">\n{cards}</div></div>");
    }
    PageSection::new("time", "Over time", body)
}

/// The graph of a step over time.
pub fn time_card(id: &str, place: usize, name: &str) -> String {
    format!(
        "<figure class=\"chart\"{id} data-step=\"{place}\"><figcaption>\
         <span class=\"caption\">{}</span><select class=\"job\" aria-label=\"Job\" hidden></select>\
         </figcaption><div class=\"plot\"></div><p class=\"merged\"></p></figure>\n",
        escape(name)
    )
}
