//! What stands around the figures: headline, failures, environment, job files,
//! how to read it all.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_analysis::{RepeatedFigures, SweepOutcome, best};
use fathom_model::environment::{BlockDevice, FileSystem, Target};
use fathom_model::{Direction, Environment, Failure, RunStatus, units};
use serde_json::Value;

use super::curves::{of_points, short};
use super::markup::{HtmlCell, HtmlTable, PageSection, escape, facts};
use super::story::Story;
use crate::document::rfc3339;

/// Targets that are described; campaigns have one.
const TARGETS: usize = 16;
/// A longer job file is cut: it stands in the record.
const FILE_BYTES: usize = 64 << 10;
/// Job files together; the others stand in the record.
const FILES_BYTES: usize = 8 << 20;

/// What ran, on what, when, how it ended, and the figures people ask for first.
pub fn headline(story: &Story) -> String {
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
    let is_import = doc.command == "import";
    let took = units::duration(story.last_ms.saturating_sub(story.started_ms));
    let mut when = vec![match is_import {
        true => format!("imported {}", minutes(story.started_ms)),
        false => format!("{}, {took}", minutes(story.started_ms)),
    }];
    when.push(match story.engines.is_empty() {
        true => doc.engine.clone(),
        false => story.engines.join(", "),
    });
    if let Some(environment) = &doc.environment {
        when.push(format!("on {}", environment.hostname));
    }
    let _ = writeln!(html, "<p class=\"lead\">{}</p>", escape(&when.join(" · ")));
    let targets = doc.environment.as_ref().map_or(&[][..], |e| &e.targets);
    for target in targets.iter().take(3) {
        let _ = writeln!(
            html,
            "<p class=\"lead\">{}</p>",
            escape(&target_line(target))
        );
    }
    if targets.len() > 3 {
        let _ = writeln!(
            html,
            "<p class=\"lead\">and {} more targets</p>",
            targets.len() - 3
        );
    }
    html + &tiles(story)
}

/// `2026-11-21 13:07 UTC`.
fn minutes(ms: u64) -> String {
    let text = rfc3339(ms).replace('T', " ");
    format!("{} UTC", text.get(..16).unwrap_or(&text))
}

fn target_line(target: &Target) -> String {
    let disk = target.device.as_ref();
    let below = target
        .file_system
        .as_ref()
        .and_then(|fs| fs.device.as_ref());
    let mut parts = vec![target.path.display().to_string()];
    if let Some(fs) = &target.file_system {
        parts.push(fs.kind.clone());
    }
    if let Some(device) = disk.or(below) {
        parts.extend(device.model.clone());
        parts.extend(
            device
                .serial
                .as_ref()
                .map(|serial| format!("serial {serial}")),
        );
        parts.push(units::bytes(device.capacity_bytes as f64));
    }
    parts.join(" · ")
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

fn tiles(story: &Story) -> String {
    let mut html = String::new();
    if story.is_campaign() {
        point_tiles(story, &mut html);
    } else if story.doc.jobs.iter().any(|job| job.across.is_some()) {
        sum_tiles(story, &mut html);
    } else if story.steps.len() <= 1 {
        for group in &story.doc.groups {
            let dir = group.dir.name();
            if group.total_ios > 0 {
                tile(
                    &mut html,
                    &format!("{dir} IOPS"),
                    &units::count(group.iops),
                    "",
                );
            }
            let bw = units::bytes_per_second(group.bw_bytes);
            tile(&mut html, &format!("{dir} bandwidth"), &bw, "");
        }
        if let [job] = &story.doc.jobs[..] {
            for (dir, result) in job.directions() {
                let p99 = result
                    .clat
                    .as_ref()
                    .and_then(|clat| clat.percentile_ns(99.0));
                if let Some(ns) = p99.filter(|_| result.total_ios > 0) {
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
        let at = job
            .step
            .as_ref()
            .map_or_else(String::new, |step| format!("{step}, "));
        let hosts = job
            .clients
            .map_or_else(String::new, |n| format!("{n} hosts together"));
        let (dir, at) = (dir.name(), format!("{at}{hosts}"));
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

/// How many points came out how, and the best of all series.
fn point_tiles(story: &Story, html: &mut String) {
    let counts = [
        ("done", story.count(|o| *o == SweepOutcome::Done)),
        (
            "failed",
            story.count(|o| matches!(o, SweepOutcome::Failed(_))),
        ),
        (
            "skipped",
            story.count(|o| matches!(o, SweepOutcome::Skipped(_))),
        ),
        (
            "not finished",
            story.count(|o| *o == SweepOutcome::Unfinished),
        ),
    ];
    let all: usize = counts.iter().map(|(_, n)| n).sum();
    let parts: Vec<String> = (counts.iter().filter(|(_, n)| *n > 0))
        .map(|(word, n)| format!("{n} {word}"))
        .collect();
    tile(html, "points", &all.to_string(), &parts.join(", "));
    for dir in [Direction::Read, Direction::Write, Direction::Trim] {
        let name = dir.name();
        if let Some((value, at)) = best_of_all(story, dir, |f| Some(f.bw_bytes.mean)) {
            let value = units::bytes_per_second(value);
            tile(html, &format!("best {name} bandwidth"), &value, &at);
        }
        if let Some((value, at)) = best_of_all(story, dir, |f| Some(f.iops.mean)) {
            tile(
                html,
                &format!("best {name} IOPS"),
                &units::count(value),
                &at,
            );
        }
        if let Some((value, at)) = best_of_all(story, dir, |f| Some(-f.clat_mean_ns?.mean)) {
            let value = units::latency(-value);
            tile(html, &format!("lowest {name} latency"), &value, &at);
        }
    }
}

/// The highest value among the best points of all series, and where it is.
fn best_of_all(
    story: &Story,
    dir: Direction,
    value: fn(&RepeatedFigures) -> Option<f64>,
) -> Option<(f64, String)> {
    let mut highest: Option<(f64, String)> = None;
    for series in &story.sweep.series {
        let best = best(series, dir);
        for place in [best.bandwidth, best.iops, best.latency]
            .into_iter()
            .flatten()
        {
            let point = &series.points[place];
            let Some(found) = point.figures(dir).and_then(value) else {
                continue;
            };
            if highest.as_ref().is_none_or(|(so_far, _)| found > *so_far) {
                let at = point.point.settings.get(&series.x);
                let at = at.map_or_else(String::new, |at| format!("{} {at}, ", series.x));
                let of = of_points(series).map_or_else(String::new, |of| format!(" (best {of})"));
                highest = Some((found, format!("{at}{}{of}", short(&series.name))));
            }
        }
    }
    highest
}

/// What went wrong, and what was left out.
pub fn failures(story: &Story) -> Option<PageSection> {
    let mut body = String::new();
    let mut table = HtmlTable::new("failures", &["what happened", "to", "what to do"]);
    for failure in &story.doc.failures {
        let unaddressed = Failure {
            subject: None,
            ..failure.clone()
        };
        table.row([
            HtmlCell::text(unaddressed.happened()).class("name"),
            HtmlCell::text(failure.subject.as_deref().unwrap_or_default()),
            HtmlCell::text(failure.to_be_done()),
        ]);
    }
    body += &table.finish_searchable("failures");
    let mut points = HtmlTable::new("left-out", &["point", "outcome", "why"]);
    for point in story.points() {
        let (class, word, why) = match &point.outcome {
            SweepOutcome::Done => continue,
            SweepOutcome::Failed(why) => ("bad", "failed", why.join("; ")),
            SweepOutcome::Skipped(why) => ("faint", "skipped", why.clone()),
            SweepOutcome::Unfinished => ("doubtful", "not finished", String::new()),
        };
        points.row([
            HtmlCell::text(&point.point.id).class("name"),
            HtmlCell::text(word).class(class),
            HtmlCell::text(why),
        ]);
    }
    if points.len() > 0 {
        body += "<h3>Points without figures</h3>\n";
        body += &points.finish_searchable("points");
    }
    PageSection::new("failures", "Failures and skips", body)
}

/// The machine, the targets, and what the command noted.
pub fn environment(story: &Story) -> Option<PageSection> {
    let mut body = String::new();
    if let Some(environment) = &story.doc.environment {
        body += &machine(environment);
        for target in environment.targets.iter().take(TARGETS) {
            let _ = writeln!(
                body,
                "<h3><code>{}</code></h3>",
                escape(&target.path.display().to_string())
            );
            body += &target_facts(target);
        }
        if environment.targets.len() > TARGETS {
            let more = environment.targets.len() - TARGETS;
            let _ = writeln!(
                body,
                "<p class=\"lead\">and {more} more targets, told by <code>fathom show --json</code></p>"
            );
        }
    }
    let mut told = Vec::new();
    for (name, value) in &story.facts {
        flatten(name, value, &mut told);
    }
    if !told.is_empty() {
        body += "<details><summary>What the command noted</summary>\n";
        body += &facts(
            told.iter()
                .map(|(name, value)| (name.as_str(), Some(value.clone()))),
        );
        body += "</details>\n";
    }
    PageSection::new("environment", "Environment", body)
}

/// Nested facts as lines: `quick.tests[3].name`.
fn flatten(name: &str, value: &Value, told: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                flatten(&format!("{name}.{key}"), value, told);
            }
        }
        Value::Array(list) if list.iter().any(|v| v.is_object() || v.is_array()) => {
            for (place, value) in list.iter().enumerate() {
                flatten(&format!("{name}[{place}]"), value, told);
            }
        }
        Value::Array(list) => {
            let texts: Vec<String> = list.iter().map(plain).collect();
            told.push((name.to_owned(), texts.join(", ")));
        }
        other => told.push((name.to_owned(), plain(other))),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn machine(environment: &Environment) -> String {
    facts([
        ("host", Some(environment.hostname.clone())),
        (
            "system",
            Some(format!(
                "{} {} {}",
                environment.os, environment.kernel, environment.arch
            )),
        ),
        (
            "CPUs",
            Some(match &environment.cpu_model {
                Some(model) => format!("{} × {model}", environment.cpus),
                None => environment.cpus.to_string(),
            }),
        ),
        ("governor", environment.cpu_governor.clone()),
        (
            "memory",
            environment
                .memory_bytes
                .map(|bytes| units::bytes(bytes as f64)),
        ),
        ("Fathom", Some(environment.fathom_version.clone())),
    ])
}

fn target_facts(target: &Target) -> String {
    let mut html = String::new();
    if let Some(fs) = &target.file_system {
        html += &file_system(fs);
        if let Some(device) = &fs.device {
            html += &block_device(device);
        }
    }
    if let Some(device) = &target.device {
        html += &block_device(device);
    }
    html
}

fn file_system(fs: &FileSystem) -> String {
    let (free, size) = (fs.free_bytes as f64, fs.size_bytes as f64);
    facts([
        ("file system", Some(format!("{} on {}", fs.kind, fs.source))),
        ("mounted at", Some(fs.mount_point.display().to_string())),
        ("mount options", Some(fs.options.clone())),
        (
            "free",
            Some(format!("{} of {}", units::bytes(free), units::bytes(size))),
        ),
    ])
}

fn block_device(device: &BlockDevice) -> String {
    let partition = device.partition.as_ref().map(|partition| {
        format!(
            "{}: {} from byte {}",
            partition.name,
            units::bytes(partition.size_bytes as f64),
            partition.start_bytes
        )
    });
    facts([
        ("disk", Some(device.name.clone())),
        ("model", device.model.clone()),
        ("serial", device.serial.clone()),
        ("firmware", device.firmware.clone()),
        ("namespace id", device.nsid.map(|nsid| nsid.to_string())),
        ("by id", Some(device.by_id.join(", "))),
        ("backing", device.backing.clone()),
        (
            "capacity",
            Some(format!(
                "{} ({} bytes)",
                units::bytes(device.capacity_bytes as f64),
                device.capacity_bytes
            )),
        ),
        ("partition", partition),
        (
            "blocks",
            Some(format!(
                "{} logical, {} physical, in bytes",
                device.logical_block_bytes, device.physical_block_bytes
            )),
        ),
        ("scheduler", device.scheduler.clone()),
        ("nr_requests", device.nr_requests.map(|n| n.to_string())),
        ("write cache", device.write_cache.clone()),
        (
            "rotational",
            device
                .rotational
                .map(|yes| if yes { "yes" } else { "no" }.to_owned()),
        ),
        ("PCIe link", device.pcie_link.clone()),
    ])
}

/// The job files as run, each closed.
pub fn job_files(dir: &Path) -> Option<PageSection> {
    let root = dir.join("jobs");
    let mut body = String::new();
    let mut left_out = 0;
    for path in files(&root) {
        let name = path
            .strip_prefix(&root)
            .unwrap_or(&path)
            .display()
            .to_string();
        // What the user wrote before variables and includes were resolved.
        if name.ends_with(".as-written") {
            continue;
        }
        if body.len() > FILES_BYTES {
            left_out += 1;
            continue;
        }
        let text = match fs::read(&path) {
            Ok(bytes) => {
                let cut = if bytes.len() > FILE_BYTES {
                    "\n… (cut)"
                } else {
                    ""
                };
                let shown = &bytes[..bytes.len().min(FILE_BYTES)];
                String::from_utf8_lossy(shown).into_owned() + cut
            }
            Err(error) => format!("cannot be read: {error}"),
        };
        let _ = writeln!(
            body,
            "<details><summary><code>{}</code></summary><pre>{}</pre></details>",
            escape(&name),
            escape(&text)
        );
    }
    if left_out > 0 {
        let _ = writeln!(
            body,
            "<p class=\"lead\">{left_out} more are in the record.</p>"
        );
    }
    PageSection::new("job-files", "Job files as run", body)
}

/// All files below a folder by their names; none when it cannot be read.
fn files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(entry.path()),
                Ok(kind) if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// What the words mean.
pub fn reading() -> Option<PageSection> {
    let body = include_str!("../../assets/reading.html").to_owned();
    PageSection::new("reading", "How to read this", body)
}
