//! What stands around the figures: failures, environment,
//! how to read it all.

use std::fmt::Write as _;

use fathom_analysis::{PointResult, SweepOutcome};
use fathom_model::environment::{BlockDevice, FileSystem, Target};
use fathom_model::{Environment, Failure, units};
use serde_json::Value;

use super::markup::{HtmlCell, HtmlTable, PageSection, facts};
use super::story::Story;
use fathom_document::folding::by_cause;
use fathom_sheet::html::escape;

/// Targets that are described; campaigns have one.
const TARGETS: usize = 16;

/// Points of one cause that are named.
const NAMED: usize = 24;

/// What went wrong, and what was left out, each cause once.
pub fn failures(story: &Story) -> Option<PageSection> {
    let mut body = String::new();
    let mut table = HtmlTable::new("failures", &["what happened", "#times", "to", "what to do"]);
    let told: Vec<(String, &str, &str)> = (story.doc.failures.iter())
        .map(|failure| {
            let unaddressed = Failure {
                subject: None,
                ..failure.clone()
            };
            let subject = failure.subject.as_deref().unwrap_or_default();
            (unaddressed.happened(), failure.to_be_done(), subject)
        })
        .collect();
    for (cause, places) in by_cause(told.iter().map(|(happened, _, _)| happened.as_str())) {
        let (_, to_do, first) = &told[places[0]];
        let more = match places.iter().any(|&place| told[place].2 != *first) {
            true => ", …",
            false => "",
        };
        table.row([
            HtmlCell::text(cause).class("name"),
            HtmlCell::number(Some(places.len() as f64), |n| n.to_string()),
            HtmlCell::text(format!("{first}{more}")),
            HtmlCell::text(to_do),
        ]);
    }
    body += &table.finish_searchable("failures");
    let mut points = HtmlTable::new("left-out", &["outcome", "#points", "why", "which"]);
    let left_out: Vec<(usize, &PointResult)> = (story.points().enumerate())
        .filter(|(_, point)| point.outcome != SweepOutcome::Done)
        .collect();
    let whys: Vec<String> = left_out
        .iter()
        .map(|(_, point)| left_out_text(point))
        .collect();
    for (cause, places) in by_cause(whys.iter().map(String::as_str)) {
        let (class, word) = match left_out[places[0]].1.outcome {
            SweepOutcome::Failed(_) => ("bad", "failed"),
            SweepOutcome::Skipped(_) => ("faint", "skipped"),
            SweepOutcome::Done | SweepOutcome::Unfinished => ("doubtful", "not finished"),
        };
        let links = places.iter().take(NAMED).map(|&place| {
            let (number, point) = left_out[place];
            format!("<a href=\"#p{number}\">{}</a>", escape(&point.point.id))
        });
        let mut links = links.collect::<Vec<_>>().join("<br>");
        if places.len() > NAMED {
            let _ = write!(links, "<br>and {} more", places.len() - NAMED);
        }
        let which = match places.len() {
            1 => links,
            n => format!("<details><summary>{n} points</summary>{links}</details>"),
        };
        points.row([
            HtmlCell::text(word).class(class),
            HtmlCell::number(Some(places.len() as f64), |n| n.to_string()),
            HtmlCell::text(cause.split_once(": ").map_or("", |(_, why)| why)).class("name"),
            HtmlCell::default().and(&which).class("name"),
        ]);
    }
    if points.len() > 0 {
        body += "<h3>Points without figures</h3>\n";
        body += &points.finish_searchable("causes");
    }
    PageSection::new("failures", "Failures and skips", body)
}

/// The outcome and its reason, as one sentence.
fn left_out_text(point: &PointResult) -> String {
    match &point.outcome {
        SweepOutcome::Failed(why) => format!("failed: {}", why.join("; ")),
        SweepOutcome::Skipped(why) => format!("skipped: {why}"),
        SweepOutcome::Done | SweepOutcome::Unfinished => String::new(),
    }
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
    let stack = target.stack.as_ref().filter(|it| !it.under.is_empty());
    let mut html = facts([("stack", stack.map(ToString::to_string))]);
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

/// What the words mean.
pub fn reading() -> Option<PageSection> {
    let body = include_str!("../../assets/reading.html").to_owned();
    PageSection::new("reading", "How to read this", body)
}
