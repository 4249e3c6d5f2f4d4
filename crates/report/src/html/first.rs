//! The first screen: what was measured on what, whether it can be believed, and the
//! answers people come for, with one picture.

use std::fmt::Write as _;

use fathom_analysis::{Curve, PointResult, SweepOutcome, best, knee};
use fathom_model::environment::Target;
use fathom_model::{Direction, RunStatus, VerdictLevel, units};

use super::PageExtras;
use super::against;
use super::answer;
use super::curves::{GraphData, of_points, short, time_card};
use super::story::Story;
use crate::graphs::unnumbered;
use fathom_document::folding::Folded;
use fathom_document::rfc3339;
use fathom_sheet::answer::RunAnswer;
use fathom_sheet::html::escape;

/// Causes that are told; the others are counted.
const CAUSES: usize = 2;
/// Characters of a cause: the whole stands where the line leads.
const CAUSE_CHARS: usize = 150;
const MOST_BANDWIDTH: &str = "most bandwidth";
/// Targets that are named; campaigns have one.
const TARGETS: usize = 2;

/// The header of the page.
pub fn screen(story: &Story, data: &GraphData, extras: PageExtras<'_>) -> String {
    let doc = &story.doc;
    let class = match doc.status {
        RunStatus::Complete => "good",
        RunStatus::Interrupted | RunStatus::Running => "doubt",
        RunStatus::Failed => "bad",
    };
    let mut html = format!(
        "<h1>{}<span class=\"badge {class}\">{}</span></h1>\n",
        escape(&doc.name),
        doc.status
    );
    for line in [vec![circumstances(story)], targets(story)].concat() {
        let _ = writeln!(html, "<p class=\"lead\">{}</p>", escape(&line));
    }
    let nothing = RunAnswer::default();
    let answer = extras.answer.unwrap_or(&nothing);
    let said = verdicts(story)
        + &answer::first(answer)
        + &answers(story)
        + &against::lines(extras.against);
    let picture = answer::picture(answer).or_else(|| picture(story, data));
    let picture = picture.unwrap_or_default();
    let class = if picture.is_empty() { " alone" } else { "" };
    if !said.is_empty() || !picture.is_empty() {
        let _ = write!(
            html,
            "<div class=\"first{class}\">\n<div class=\"said\">\n{said}</div>\n{picture}</div>\n"
        );
    }
    html
}

/// When, for how long, with what, where.
fn circumstances(story: &Story) -> String {
    let doc = &story.doc;
    let took = units::duration(story.last_ms.saturating_sub(story.started_ms));
    let mut parts: Vec<String> = doc.label.iter().cloned().collect();
    parts.push(match doc.command == "import" {
        true => format!("imported {}", minutes(story.started_ms)),
        false => format!("{}, {took}", minutes(story.started_ms)),
    });
    parts.push(match story.engines.is_empty() {
        true => doc.engine.clone(),
        false => story.engines.join(", "),
    });
    if let Some(environment) = &doc.environment {
        parts.push(format!("on {}", environment.hostname));
    }
    parts.join(" · ")
}

/// `2026-11-21 13:07 UTC`.
fn minutes(ms: u64) -> String {
    let text = rfc3339(ms).replace('T', " ");
    format!("{} UTC", text.get(..16).unwrap_or(&text))
}

fn targets(story: &Story) -> Vec<String> {
    let environment = story.doc.environment.as_ref();
    let all = environment.map_or(&[][..], |environment| &environment.targets);
    let mut lines: Vec<String> = all.iter().take(TARGETS).map(target_line).collect();
    if all.len() > TARGETS {
        lines.push(format!("and {} more targets", all.len() - TARGETS));
    }
    lines
}

fn target_line(target: &Target) -> String {
    let disk = target.device.as_ref();
    let fs = target.file_system.as_ref();
    let mut parts = vec![target.path.display().to_string()];
    parts.extend(fs.map(|fs| fs.kind.clone()));
    if let Some(device) = disk.or(fs.and_then(|fs| fs.device.as_ref())) {
        parts.extend(device.model.clone());
        let serial = device.serial.as_ref();
        parts.extend(serial.map(|serial| format!("serial {serial}")));
        parts.push(units::bytes(device.capacity_bytes as f64));
        parts.extend(device.pcie_link.clone());
    }
    parts.join(" · ")
}

// ---- Whether it can be believed ------------------------------------------------

/// A line of the verdicts: what happened to how many, and its causes.
fn verdict_line(class: &str, what: &str, causes: &Folded, link: &str) -> String {
    let all = causes.causes();
    let mut told: Vec<&_> = all.iter().collect();
    told.sort_by_key(|cause| std::cmp::Reverse(cause.count));
    let texts = told.iter().take(CAUSES).map(|cause| {
        let count = match all.len() {
            1 => String::new(),
            _ => format!(" ({})", cause.count),
        };
        escape(&clipped(&cause.sentence())) + &count
    });
    let mut texts: Vec<String> = texts.collect();
    if all.len() > CAUSES {
        texts.push(format!("{} more", all.len() - CAUSES));
    }
    let causes = match all.len() {
        0 => String::new(),
        1 => format!(", one cause: {}", texts[0]),
        n => format!(", {n} causes: {}", texts.join("; ")),
    };
    format!("<li class=\"{class}\"><a href=\"#{link}\">{what}</a>{causes}</li>\n")
}

fn clipped(text: &str) -> String {
    match text.char_indices().nth(CAUSE_CHARS) {
        Some((end, _)) => text[..end].to_owned() + "…",
        None => text.to_owned(),
    }
}

fn verdicts(story: &Story) -> String {
    let html = match story.is_campaign() {
        true => of_points_all(story),
        false => of_jobs(story),
    };
    match html.is_empty() {
        true => html,
        false => format!("<ul class=\"verdicts\">\n{html}</ul>\n"),
    }
}

/// The verdict of a campaign: how many points came out how.
fn of_points_all(story: &Story) -> String {
    let mut html = String::new();
    let (mut failed, mut skipped) = (Folded::default(), Folded::default());
    let (mut done, mut doubtful, mut unfinished) = (0, 0, 0);
    let mut doubts = Folded::default();
    for point in story.points() {
        match &point.outcome {
            SweepOutcome::Done => {
                done += 1;
                doubtful += usize::from(!point.doubts.is_empty());
                for doubt in &point.doubts {
                    doubts.add(doubt);
                }
            }
            SweepOutcome::Failed(why) => {
                failed.add(&why.join("; "));
            }
            SweepOutcome::Skipped(why) => {
                skipped.add(why);
            }
            SweepOutcome::Unfinished => unfinished += 1,
        }
    }
    let sum = |folded: &Folded| folded.causes().iter().map(|cause| cause.count).sum();
    let (n_failed, n_skipped): (usize, usize) = (sum(&failed), sum(&skipped));
    let parts = [
        (done, "done"),
        (n_failed, "failed"),
        (n_skipped, "skipped"),
        (unfinished, "not finished"),
    ];
    let told = parts.iter().filter(|(n, _)| *n > 0);
    let told: Vec<String> = told.map(|(n, word)| format!("{n} {word}")).collect();
    let all: usize = parts.iter().map(|(n, _)| n).sum();
    let class = if done == all && doubtful == 0 {
        "good"
    } else {
        "plain"
    };
    let _ = writeln!(
        html,
        "<li class=\"{class}\">{}: {}{}</li>",
        units::counted(all, "point"),
        told.join(", "),
        if class == "good" {
            ", no reason against their figures"
        } else {
            ""
        }
    );
    if n_failed > 0 {
        let what = units::counted(n_failed, "point") + " failed";
        html += &verdict_line("bad", &what, &failed, "failures");
    }
    if doubtful > 0 {
        let what = units::counted(doubtful, "point") + " doubtful";
        html += &verdict_line("doubt", &what, &doubts, "doubts");
    }
    if n_skipped > 0 {
        let what = units::counted(n_skipped, "point") + " skipped";
        html += &verdict_line("plain", &what, &skipped, "failures");
    }
    html
}

/// The verdict of any other run: that of its figures, and what failed.
fn of_jobs(story: &Story) -> String {
    let mut html = String::new();
    let messages = story.doc.failures.iter().map(|failure| failure.happened());
    let messages: Vec<String> = messages.collect();
    let failures = Folded::of(messages.iter().map(String::as_str));
    if !messages.is_empty() {
        let what = units::counted(messages.len(), "failure");
        html += &verdict_line("bad", &what, &failures, "failures");
    }
    let Some(verdict) = &story.doc.verdict else {
        return html;
    };
    let against = verdict.reasons.iter();
    let against = against.filter(|reason| reason.level == verdict.level);
    let reasons = Folded::of(against.map(|reason| reason.sentence.as_str()));
    let (class, what) = match verdict.level {
        VerdictLevel::Valid => ("good", "every figure is valid"),
        VerdictLevel::Suspect => ("doubt", "figures are suspect"),
        VerdictLevel::Invalid => ("bad", "figures are invalid"),
    };
    if verdict.level == VerdictLevel::Valid {
        let _ = writeln!(html, "<li class=\"{class}\">{what}</li>");
    } else {
        html += &verdict_line(class, what, &reasons, "doubts");
    }
    html
}

// ---- The answers ------------------------------------------------------------------

/// A figure and the point that has it.
struct Answer {
    /// What is compared.
    rank: f64,
    text: String,
    p99_ns: Option<u64>,
    at: String,
    /// The point's number on the page.
    point: usize,
}

const DIRECTIONS: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

fn answers(story: &Story) -> String {
    match story.is_campaign() {
        true => of_series(story),
        false => tiles(story),
    }
}

/// Most load, knee and lowest latency of all series, a column for each direction.
fn of_series(story: &Story) -> String {
    type Find = fn(&Curve, Direction) -> Option<(f64, usize, String)>;
    let questions: [(&str, Find); 4] = [
        ("most IOPS", |series, dir| {
            let place = best(series, dir).iops?;
            let iops = series.points[place].figures(dir)?.iops.mean;
            Some((iops, place, units::count(iops)))
        }),
        (MOST_BANDWIDTH, |series, dir| {
            let place = best(series, dir).bandwidth?;
            let bw = series.points[place].figures(dir)?.bw_bytes.mean;
            Some((bw, place, units::bytes_per_second(bw)))
        }),
        ("knee", |series, dir| {
            // At its first point a series says only that less load was not tried.
            let found = knee(series, dir).filter(|found| found.place > 0)?;
            let best = series.points[found.best].figures(dir)?.bw_bytes.mean;
            let iops = series.points[found.place].figures(dir)?.iops.mean;
            Some((best, found.place, units::count(iops) + " IOPS"))
        }),
        ("lowest latency", |series, dir| {
            let place = best(series, dir).latency?;
            let ns = series.points[place].figures(dir)?.clat_mean_ns?.mean;
            Some((-ns, place, units::latency(ns)))
        }),
    ];
    let found = questions.map(|(name, find)| {
        let each = DIRECTIONS.map(|dir| over_all(story, dir, |series| find(series, dir)));
        (name, each)
    });
    let has = |d: &usize| found.iter().any(|(_, each)| each[*d].is_some());
    let dirs: Vec<usize> = (0..DIRECTIONS.len()).filter(has).collect();
    if dirs.is_empty() {
        return String::new();
    }
    let mut html = String::from("<table class=\"answers\">\n<thead><tr><td></td>");
    for &d in &dirs {
        let _ = write!(html, "<th scope=\"col\">{}</th>", DIRECTIONS[d].name());
    }
    html += "</tr></thead>\n<tbody>\n";
    for (name, each) in &found {
        if each.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(html, "<tr><th scope=\"row\">{name}</th>");
        for &d in &dirs {
            html += &match &each[d] {
                None => "<td>–</td>".to_owned(),
                Some(answer) => format!(
                    "<td><b>{}</b>{} <a href=\"#p{}\">{}</a></td>",
                    escape(&answer.text),
                    answer.beside(name, story).unwrap_or_default(),
                    answer.point,
                    escape(&answer.at)
                ),
            };
        }
        html += "</tr>\n";
    }
    html + "</tbody></table>\n"
}

impl Answer {
    /// The latency that a knee is paid with, what a bandwidth is of the link; the others
    /// are asked for by themselves.
    fn beside(&self, question: &str, story: &Story) -> Option<String> {
        let text = match question {
            "knee" => format!("p99 {}", units::latency(self.p99_ns? as f64)),
            MOST_BANDWIDTH => against::of_link(story, self.rank)?,
            _ => return None,
        };
        Some(format!("<span>{}</span>", escape(&text)))
    }
}

/// The highest of all series.
fn over_all(
    story: &Story,
    dir: Direction,
    find: impl Fn(&Curve) -> Option<(f64, usize, String)>,
) -> Option<Answer> {
    let mut highest: Option<Answer> = None;
    let mut before = 0;
    for series in &story.sweep.series {
        if let Some((rank, place, text)) = find(series)
            && highest.as_ref().is_none_or(|so_far| rank > so_far.rank)
        {
            highest = Some(Answer {
                rank,
                text,
                p99_ns: (series.points[place].figures(dir))
                    .and_then(|figures| figures.percentile_ns(99.0)),
                at: place_of(series, &series.points[place]),
                point: before + place,
            });
        }
        before += series.points.len();
    }
    highest
}

/// `iodepth 32, 0004-randread`.
fn place_of(series: &Curve, point: &PointResult) -> String {
    let at = point.point.settings.get(&series.x);
    let at = at.map_or_else(String::new, |at| format!("{} {at}, ", series.x));
    let of = of_points(series).map_or_else(String::new, |of| format!(" (best {of})"));
    format!("{at}{}{of}", unnumbered(short(&series.name)))
}

fn tile(html: &mut String, name: &str, value: &str, at: &str) {
    let _ = writeln!(
        html,
        "<li><span>{}</span><b>{}</b><span>{}</span></li>",
        escape(name),
        escape(value),
        escape(at)
    );
}

/// The figures of a run of one step, or what all hosts did together.
fn tiles(story: &Story) -> String {
    let mut html = String::new();
    if story.doc.jobs.iter().any(|job| job.across.is_some()) {
        sum_tiles(story, &mut html);
    } else if story.steps.iter().filter(|step| step.counts).count() <= 1 {
        for group in &story.doc.groups {
            let dir = group.dir.name();
            if group.total_ios > 0 {
                let name = format!("{dir} IOPS");
                tile(&mut html, &name, &units::count(group.iops), "");
            }
            let bw = units::bytes_per_second(group.bw_bytes);
            let link = against::of_link(story, group.bw_bytes).unwrap_or_default();
            tile(&mut html, &format!("{dir} bandwidth"), &bw, &link);
        }
        if let [job] = &story.doc.jobs[..] {
            for (dir, result) in job.directions().filter(|(_, r)| r.total_ios > 0) {
                let clat = result.clat.as_ref();
                if let Some(ns) = clat.and_then(|clat| clat.percentile_ns(99.0)) {
                    let name = format!("{} clat p99", dir.name());
                    tile(&mut html, &name, &units::latency(ns as f64), "");
                }
            }
        }
    }
    match html.is_empty() {
        true => html,
        false => format!("<ul class=\"tiles\">\n{html}</ul>\n"),
    }
}

/// What all hosts did together; of a run of many steps the first ones.
fn sum_tiles(story: &Story, html: &mut String) {
    const TILES: usize = 12;
    let sums = story.doc.jobs.iter().filter(|job| job.across.is_some());
    let figures = sums.flat_map(|job| job.directions().map(move |figures| (job, figures)));
    let moved = figures.filter(|(_, (_, result))| result.total_ios > 0);
    for (job, (dir, result)) in moved.take(TILES / 2) {
        let step = job.step.as_ref();
        let at = step.map_or_else(String::new, |step| format!("{step}, "));
        let hosts = job.clients.map(|n| format!("{n} hosts together"));
        let (dir, at) = (dir.name(), format!("{at}{}", hosts.unwrap_or_default()));
        tile(
            html,
            &format!("{dir} IOPS"),
            &units::count(result.iops),
            &at,
        );
        let bw = units::bytes_per_second(result.bw_bytes);
        tile(html, &format!("{dir} bandwidth"), &bw, &at);
    }
}

// ---- The picture --------------------------------------------------------------------

/// The graph that carries the most: of a campaign IOPS against latency in the folder of
/// the highest load, of another run what its first step did over time.
fn picture(story: &Story, data: &GraphData) -> Option<String> {
    if story.is_campaign() {
        let (attribute, place, caption) = data.telling()?;
        return Some(format!(
            "<div class=\"hero\" data-metric=\"iops\"><figure class=\"chart\" data-{attribute}=\"{place}\">\
             <figcaption>{}</figcaption><div class=\"plot\"></div></figure></div>\n",
            escape(&caption)
        ));
    }
    let (place, step) = story.sampled().next()?;
    let caption = format!("IOPS over time: {}", story.name_of(step));
    let card = time_card("", place, &caption);
    Some(format!(
        "<div class=\"hero\" data-metric=\"iops\">{card}</div>\n"
    ))
}
