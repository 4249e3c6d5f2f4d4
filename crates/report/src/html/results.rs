//! The tables: best points, points, jobs, steps, disks.

use std::collections::BTreeSet;

use fathom_analysis::{Curve, PointResult, RepeatedFigures, SweepOutcome, best};
use fathom_model::{Certainty, Direction, DirectionResult, JobResult, Latency, ReasonKind, units};

use super::curves::{of_points, short};
use super::marks::DoubtMarks;
use super::markup::{HtmlCell, HtmlTable, PageSection};
use super::nodes::volumes_table;
use super::story::{Story, StoryStep};
use crate::table::every_latency;
use fathom_sheet::html::escape;

/// Every table of figures.
pub fn section(story: &Story, marks: &DoubtMarks) -> Option<PageSection> {
    let body = if story.is_campaign() {
        let best = best_points(story);
        let heading = if best.is_empty() {
            ""
        } else {
            "<h3>Best points</h3>\n"
        };
        let points = points(story, marks);
        // Of steps that are no points: what brought the device into its state.
        let others = jobs(story, marks);
        format!("{heading}{best}<h3>Points</h3>\n{points}{others}")
    } else {
        jobs(story, marks)
    };
    PageSection::new(
        "figures",
        "Figures",
        body + &disks(story) + &volumes_table(story),
    )
}

/// The best points of each series and direction.
fn best_points(story: &Story) -> String {
    let mut table = HtmlTable::new(
        "best",
        &[
            "series",
            "direction",
            "of",
            "#bandwidth",
            "#at",
            "#IOPS",
            "#at",
            "#mean latency",
            "#at",
        ],
    );
    for series in &story.sweep.series {
        for dir in [Direction::Read, Direction::Write, Direction::Trim] {
            let best = best(series, dir);
            let at = |place: Option<usize>| x_cell(series, place.map(|p| &series.points[p]));
            let figure = |place: Option<usize>, value: fn(&RepeatedFigures) -> Option<f64>| {
                value(series.points.get(place?)?.figures(dir)?)
            };
            let bw = figure(best.bandwidth, |f| Some(f.bw_bytes.mean));
            if bw.is_none() {
                continue;
            }
            table.row([
                HtmlCell::text(&series.name).class("name"),
                HtmlCell::text(dir.name()),
                HtmlCell::text(of_points(series).unwrap_or_default()).class("doubtful"),
                HtmlCell::number(bw, units::bytes_per_second),
                at(best.bandwidth),
                HtmlCell::number(figure(best.iops, |f| Some(f.iops.mean)), units::count),
                at(best.iops),
                HtmlCell::number(
                    figure(best.latency, |f| Some(f.clat_mean_ns?.mean)),
                    units::latency,
                ),
                at(best.latency),
            ]);
        }
    }
    table.finish()
}

/// Where a point stands on its axis, as the job file has it.
fn x_cell(series: &Curve, point: Option<&PointResult>) -> HtmlCell {
    let value = point.and_then(|point| point.point.x_value());
    let text = point.and_then(|point| point.point.settings.get(&series.x));
    HtmlCell::number(value.map(|v| v as f64), |v| {
        let at = text.cloned().unwrap_or_else(|| v.to_string());
        format!("{} {at}", series.x)
    })
}

/// Every point in every direction.
fn points(story: &Story, marks: &DoubtMarks) -> String {
    let mut table = HtmlTable::new(
        "points",
        &[
            "series",
            "#at",
            "direction",
            "verdict",
            "#n",
            "#bandwidth",
            "#IOPS",
            "#mean latency",
            "#± 95 %",
            "#p50",
            "#p99",
            "#p99.9",
            "#max",
        ],
    );
    let names: BTreeSet<&str> = (story.sweep.series.iter())
        .map(|series| short(&series.name))
        .collect();
    let told_apart = names.len() == story.sweep.series.len();
    let mut number = 0;
    for series in &story.sweep.series {
        let name = match told_apart {
            true => short(&series.name),
            false => &series.name,
        };
        for point in &series.points {
            let dirs = [Direction::Read, Direction::Write, Direction::Trim];
            let good = point.outcome == SweepOutcome::Done;
            let measured: Vec<_> = (dirs.into_iter())
                .filter_map(|dir| Some((dir.name(), Some(point.figures(dir)?))))
                .filter(|_| good)
                .collect();
            let rows = if measured.is_empty() {
                vec![("", None)]
            } else {
                measured
            };
            for (place, (dir, figures)) in rows.into_iter().enumerate() {
                let cells = point_cells((series, name), (number, point), dir, figures, marks);
                table.row_of_point(number, place == 0, cells);
            }
            number += 1;
        }
    }
    table.finish_searchable("rows")
}

fn point_cells(
    (series, series_name): (&Curve, &str),
    (number, point): (usize, &PointResult),
    dir: &str,
    figures: Option<&RepeatedFigures>,
    marks: &DoubtMarks,
) -> [HtmlCell; 13] {
    let signs = marks.of_points([point]);
    let (class, outcome, why) = judged(point, marks);
    let why = match why.is_empty() {
        true => why,
        false => format!("<small>{}</small>", escape(&why)),
    };
    let clat = figures.and_then(|f| f.clat_mean_ns);
    let percentile = |percent| {
        let ns = figures.and_then(|f| f.percentile_ns(percent));
        HtmlCell::number(ns.map(|ns| ns as f64), units::latency)
    };
    [
        HtmlCell::text(series_name).class("series"),
        x_cell(series, Some(point)).link(&format!("p{number}")),
        HtmlCell::text(dir),
        HtmlCell::text(outcome).class(class).and(&why),
        HtmlCell::number(figures.map(|f| f64::from(f.iops.n)), |n| n.to_string()),
        HtmlCell::number(figures.map(|f| f.bw_bytes.mean), units::bytes_per_second).and(&signs),
        HtmlCell::number(figures.map(|f| f.iops.mean), units::count).and(&signs),
        HtmlCell::number(clat.map(|clat| clat.mean), units::latency).and(&signs),
        HtmlCell::number(clat.and_then(|clat| clat.half_width_95), units::latency),
        percentile(50.0),
        percentile(99.0),
        percentile(99.9),
        percentile(100.0),
    ]
}

/// A point's verdict: the class of the style sheet, the word, and why.
fn judged(point: &PointResult, marks: &DoubtMarks) -> (&'static str, &'static str, String) {
    match &point.outcome {
        SweepOutcome::Done if point.doubts.is_empty() => ("good", "done", String::new()),
        SweepOutcome::Done => {
            let doubts = marks.numbers_of([point]).into_iter();
            // What to do about it stands with the whole sentence.
            let short = doubts.map(|n| {
                let sentence = &marks.sentences()[n - 1];
                sentence.split("; ").next().unwrap_or(sentence).to_owned()
            });
            ("doubtful", "doubtful", short.collect::<Vec<_>>().join("; "))
        }
        SweepOutcome::Failed(why) => ("bad", "failed", why.join("; ")),
        SweepOutcome::Skipped(why) => ("faint", "skipped", why.clone()),
        SweepOutcome::Unfinished => ("doubtful", "not finished", String::new()),
    }
}

/// Every job in every direction: rates, then latencies.
fn jobs(story: &Story, marks: &DoubtMarks) -> String {
    let has_steps = story.doc.jobs.iter().any(|job| job.step.is_some());
    let mut rates = HtmlTable::new(
        "jobs",
        &[
            "step",
            "job",
            "direction",
            "#IOPS",
            "#bandwidth",
            "#moved",
            "#run time",
            "#mean latency",
            "#CPU usr + sys",
            "#errors",
        ][usize::from(!has_steps)..],
    );
    let most = (story.doc.jobs.iter())
        .flat_map(JobResult::directions)
        .map(|(_, result)| result.iops)
        .fold(0.0, f64::max);
    let mut latencies = HtmlTable::new(
        "latencies",
        &[
            "step", "job", "latency", "#mean", "#stddev", "#min", "#p50", "#p90", "#p99", "#p99.9",
            "#p99.99", "#max",
        ][usize::from(!has_steps)..],
    );
    for job in &story.doc.jobs {
        let lead = || {
            let step = HtmlCell::text(job.step.as_deref().unwrap_or_default()).class("name");
            let job = HtmlCell::text(job.title(&story.doc.hosts)).class("name");
            [step, job].into_iter().skip(usize::from(!has_steps))
        };
        let active: Vec<_> = (job.directions())
            .filter(|(_, result)| result.total_ios > 0 || result.io_bytes > 0)
            .collect();
        if active.is_empty() {
            let known = job.directions().next().is_some();
            let word = if known { "no I/O" } else { "no figures" };
            let rest = (0..5).map(|_| HtmlCell::number(None, units::count));
            let cells = lead()
                .chain([HtmlCell::text(word).class("bad")])
                .chain(rest);
            rates.row(cells.chain(cpu_and_errors(job)));
        }
        for (dir, result) in active {
            rates.row(
                lead()
                    .chain(rate_cells(dir, result, most, marks))
                    .chain(cpu_and_errors(job)),
            );
        }
        for (name, latency, doubts) in every_latency(job) {
            let cells = latency_cells(&name, latency, &marks.of_doubts(&doubts));
            latencies.row(lead().chain(cells));
        }
    }
    let (rates, latencies) = (
        rates.finish_searchable("rows of rates"),
        latencies.finish_searchable("rows of latencies"),
    );
    let told = fathom_document::certainty::sentences(&story.doc);
    let told: String = (told.iter())
        .map(|sentence| format!("<p class=\"lead\">± {}</p>\n", escape(sentence)))
        .collect();
    match (rates.is_empty(), latencies.is_empty()) {
        (true, true) => String::new(),
        (_, true) => format!("<h3>Rates</h3>\n{rates}{told}"),
        _ => format!("<h3>Rates</h3>\n{rates}<h3>Latencies</h3>\n{latencies}{told}"),
    }
}

fn rate_cells(
    dir: Direction,
    result: &DirectionResult,
    most: f64,
    marks: &DoubtMarks,
) -> [HtmlCell; 6] {
    let rate_doubts: Vec<ReasonKind> = result
        .kinds()
        .into_iter()
        .filter(|&doubt| doubt != ReasonKind::SaturatedPercentiles)
        .collect();
    let signs = marks.of_doubts(&rate_doubts);
    let known = !result.is(ReasonKind::UnknownCounts);
    let iops = Some(result.iops).filter(|_| known);
    let clat = result.clat.as_ref().or(result.lat.as_ref());
    [
        HtmlCell::text(dir.name()),
        HtmlCell::number(iops, |iops| {
            let sure =
                fathom_document::certainty::share(iops, result.certainty.map(|rates| rates.iops));
            match signs.is_empty() {
                true => format!("{}{sure}", units::count(iops)),
                false => units::count(iops),
            }
        })
        .and(&signs)
        .and(&bar(iops, most)),
        HtmlCell::number(Some(result.bw_bytes), units::bytes_per_second).and(&signs),
        HtmlCell::number(Some(result.io_bytes as f64), units::bytes),
        HtmlCell::number(Some(result.runtime_ms as f64), |ms| {
            units::duration(ms as u64)
        }),
        HtmlCell::number(clat.map(|clat| clat.mean_ns), units::latency),
    ]
}

/// How much of the most a figure is.
pub(super) fn bar(value: Option<f64>, most: f64) -> String {
    let Some(value) = value.filter(|_| most > 0.0) else {
        return String::new();
    };
    let percent = value / most * 100.0;
    format!(
        "<svg class=\"bar\" aria-hidden=\"true\"><rect width=\"{percent:.1}%\" height=\"100%\" rx=\"2\"/></svg>"
    )
}

fn cpu_and_errors(job: &JobResult) -> [HtmlCell; 2] {
    let cpu = job
        .cpu
        .as_ref()
        .map(|cpu| (cpu.user_percent, cpu.system_percent));
    let sampled = (job.directions()).any(|(_, r)| r.is(ReasonKind::FromSamples));
    // Samples tell of no errors: that there were none is not known then.
    let unknown = sampled || job.directions().next().is_none();
    let errors = match (job.total_errors, job.error) {
        (None, 0) if unknown => HtmlCell::number(None, units::count),
        (None | Some(0), 0) => HtmlCell::number(Some(0.0), units::count),
        (None | Some(0), errno) => HtmlCell::text(format!("errno {errno}")).class("bad"),
        (Some(count), _) => HtmlCell::text(count.to_string()).class("bad"),
    };
    [
        HtmlCell::number(cpu.map(|(user, system)| user + system), |_| {
            cpu.map_or_else(String::new, |(user, system)| {
                format!("{user:.1} + {system:.1} %")
            })
        }),
        errors,
    ]
}

fn latency_cells(name: &str, latency: &Latency, signs: &str) -> Vec<HtmlCell> {
    let figure = |ns: Option<f64>| HtmlCell::number(ns, units::latency);
    let certainty = latency.certainty.as_ref();
    let error = certainty.and_then(|certainty| certainty.mean_ns.half_width());
    let mean = HtmlCell::number(Some(latency.mean_ns), |mean| match error {
        Some(error) => format!("{} ± {}", units::latency(mean), units::latency(error)),
        None => units::latency(mean),
    });
    let percentiles = [50.0, 90.0, 99.0, 99.9, 99.99].map(|percent| {
        let value = latency.percentile_ns(percent).map(|ns| ns as f64);
        let sure = certainty.and_then(|certainty| certainty.percentile(percent));
        match sure {
            Some(Certainty::Interval { low, high, .. }) => figure(value).hint(&format!(
                "95 %: {} to {}",
                units::latency(low),
                units::latency(high)
            )),
            _ => figure(value),
        }
    });
    [
        HtmlCell::text(name),
        mean.and(signs),
        figure(latency.stddev_ns),
        figure(Some(latency.min_ns as f64)),
    ]
    .into_iter()
    .chain(percentiles)
    .chain([figure(Some(latency.max_ns as f64))])
    .collect()
}

/// What the disks did, in the names of iostat(1).
fn disks(story: &Story) -> String {
    let has_steps = story.doc.disks.iter().any(|disk| disk.step.is_some());
    let mut table = HtmlTable::new(
        "disks",
        &[
            "step", "disk", "#reads", "#merged", "#r_await", "#writes", "#merged", "#w_await",
            "#util",
        ][usize::from(!has_steps)..],
    );
    let each = |ticks_ms: u64, ios: u64| {
        let ns = (ios > 0).then(|| ticks_ms as f64 * 1e6 / ios as f64);
        HtmlCell::number(ns, units::latency)
    };
    let count = |value: u64| HtmlCell::number(Some(value as f64), units::count);
    for disk in &story.doc.disks {
        let name = match &disk.host {
            Some(host) => format!("{} on {host}", disk.name),
            None => disk.name.clone(),
        };
        let step = HtmlCell::text(disk.step.as_deref().unwrap_or_default()).class("name");
        let cells = [
            step,
            HtmlCell::text(name),
            count(disk.read_ios),
            count(disk.read_merges),
            each(disk.read_ticks_ms, disk.read_ios),
            count(disk.write_ios),
            count(disk.write_merges),
            each(disk.write_ticks_ms, disk.write_ios),
            HtmlCell::number(Some(disk.util_percent), |percent| format!("{percent:.1} %")),
        ];
        table.row(cells.into_iter().skip(usize::from(!has_steps)));
    }
    if table.len() == 0 {
        return String::new();
    }
    format!(
        "<h3>Disks</h3>\n{}",
        table.finish_searchable("rows of disks")
    )
}

/// The steps as they ran, and their commands.
pub fn steps(story: &Story) -> Option<PageSection> {
    const COMMANDS: usize = 24;
    let mut table = HtmlTable::new(
        "steps",
        &[
            "#no.",
            "step",
            "#began after",
            "#took",
            "engine",
            "#samples",
            "outcome",
        ],
    );
    let last = story.steps.len().saturating_sub(1);
    for (place, step) in story.steps.iter().enumerate() {
        let (begin, end) = step.time_ms;
        let ms = |ms: u64| HtmlCell::number(Some(ms as f64), |ms| units::duration(ms as u64));
        // Of an import only the time of the import is known.
        let timed = story.doc.command != "import";
        let time = |ms_of: u64| {
            if timed {
                ms(ms_of)
            } else {
                HtmlCell::number(None, units::count)
            }
        };
        let (class, word) = outcome(story, step, place == last);
        table.row([
            HtmlCell::number(Some(place as f64 + 1.0), |n| n.to_string()),
            HtmlCell::text(story.name_of(step)).class("name"),
            time(begin.saturating_sub(story.started_ms)),
            time(end.saturating_sub(begin)),
            HtmlCell::text(&step.engine),
            HtmlCell::number(Some(step.samples as f64), |n| n.to_string()),
            HtmlCell::text(word).class(class),
        ]);
    }
    let mut body = table.finish_searchable("steps");
    let commands: String = (story.steps.iter().take(COMMANDS))
        .filter(|step| !step.argv.is_empty())
        .map(|step| escape(&step.argv.join(" ")) + "\n")
        .collect();
    if !commands.is_empty() {
        body += &format!(
            "<details><summary>Commands as executed</summary><pre>{commands}</pre></details>\n"
        );
    }
    PageSection::new("steps", "Steps", body)
}

fn outcome(story: &Story, step: &StoryStep, is_last: bool) -> (&'static str, &'static str) {
    use fathom_model::RunStatus::Running;
    if !step.counts {
        return ("faint", "broken off, measured again");
    }
    match (step.failures.is_empty(), step.finished) {
        (false, _) => ("bad", "failed"),
        (true, true) => ("good", "done"),
        (true, false) if is_last && story.doc.status == Running => ("doubtful", "running"),
        (true, false) => ("doubtful", "not finished"),
    }
}
