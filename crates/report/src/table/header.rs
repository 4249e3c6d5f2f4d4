//! What ran, where, on what.

use fathom_model::environment::{BlockDevice, FileSystem, Target};
use fathom_model::{Environment, RunDocument, RunStatus, units};
use jiff::Timestamp;

use super::{BLOCKS, jobs};
use crate::style::{self, Style, Tone, width, wrap};

/// Columns of the labels.
const LABELS: usize = 8;

/// Name and status, then a line for each thing that is known of the run.
pub fn header(doc: &RunDocument, style: Style) -> String {
    let tone = match doc.status {
        RunStatus::Complete => Tone::Good,
        RunStatus::Interrupted | RunStatus::Running => Tone::Doubtful,
        RunStatus::Failed => Tone::Bad,
    };
    let name = style.paint(Tone::Strong, &doc.name);
    let mut text = format!("{name}: {}", style.paint(tone, &doc.status.to_string()));
    match duration_ms(doc) {
        Some(ms) => text += &format!(", {}", units::duration(ms)),
        None => text += &seen(doc),
    }
    text.push('\n');
    let mut line = |label, value: &str| text += &labelled(label, value, style);
    let version = doc.engine_version.as_deref().unwrap_or(&doc.engine);
    // 2026-11-21T13:07:37.250Z is for programs.
    let started = doc.started.replace('T', " ");
    let started = started.split('.').next().unwrap_or(&started);
    line("run", &doc.id);
    line("started", &format!("{started} UTC, {version}"));
    if let Some(environment) = &doc.environment {
        line("host", &host(environment));
        let mut label = "target";
        for target in &environment.targets {
            line(label, &target_line(target));
            label = "";
        }
    }
    if doc.jobs.len() > BLOCKS {
        let shared = jobs::shared_settings(&doc.jobs);
        line("jobs", &format!("{}, each {shared}", doc.jobs.len()));
    }
    text
}

/// From start to end, for a run that ended.
fn duration_ms(doc: &RunDocument) -> Option<u64> {
    let started: Timestamp = doc.started.parse().ok()?;
    let ended: Timestamp = doc.ended.as_ref()?.parse().ok()?;
    u64::try_from(ended.as_millisecond() - started.as_millisecond()).ok()
}

/// How much was seen of a run that has not ended, or was killed.
fn seen(doc: &RunDocument) -> String {
    let longest = doc.jobs.iter().filter_map(|job| job.runtime_ms).max();
    longest.map_or_else(String::new, |ms| format!(", {} seen", units::duration(ms)))
}

/// A label and a value that hangs beside it.
fn labelled(label: &str, value: &str, style: Style) -> String {
    let mut lead = format!(
        "{}{}",
        style.paint(Tone::Faint, label),
        " ".repeat(LABELS.saturating_sub(width(label)))
    );
    let mut lines = String::new();
    for line in wrap(value, style.columns().saturating_sub(LABELS)) {
        lines += &format!("{lead}{line}\n");
        lead = " ".repeat(LABELS);
    }
    lines
}

fn host(environment: &Environment) -> String {
    let mut facts = vec![format!("{} {}", environment.os, environment.kernel)];
    let cpus = environment.cpus;
    facts.push(match &environment.cpu_model {
        Some(model) => format!("{cpus} × {model}"),
        None => format!("{cpus} CPUs"),
    });
    if let Some(governor) = &environment.cpu_governor {
        facts.push(format!("governor {governor}"));
    }
    if let Some(memory) = environment.memory_bytes {
        facts.push(units::bytes(memory as f64));
    }
    format!("{}: {}", environment.hostname, style::facts(&facts))
}

fn target_line(target: &Target) -> String {
    let mut facts = Vec::new();
    if let Some(fs) = &target.file_system {
        facts.extend(file_system(fs));
    }
    let disk = target
        .file_system
        .as_ref()
        .and_then(|fs| fs.device.as_ref());
    if let Some(device) = target.device.as_ref().or(disk) {
        facts.extend(block_device(device, target.device.is_none()));
    }
    let path = target.path.display();
    if facts.is_empty() {
        return path.to_string();
    }
    format!("{path}: {}", style::facts(&facts))
}

fn file_system(fs: &FileSystem) -> [String; 2] {
    [
        format!("{} on {}", fs.kind, fs.source),
        format!(
            "{} of {} free",
            units::bytes(fs.free_bytes as f64),
            units::bytes(fs.size_bytes as f64)
        ),
    ]
}

fn block_device(device: &BlockDevice, named: bool) -> Vec<String> {
    let named = named.then(|| device.name.clone());
    let labelled = |label: &str, value: &Option<String>| {
        let value = value.as_ref().filter(|value| !value.is_empty())?;
        Some(format!("{label}{value}"))
    };
    let turning = match device.rotational {
        Some(true) => Some("rotational".to_owned()),
        _ => None,
    };
    [
        named,
        labelled("", &device.model),
        labelled("serial ", &device.serial),
        labelled("firmware ", &device.firmware),
        labelled("", &device.backing),
        Some(units::bytes(device.capacity_bytes as f64)),
        Some(format!(
            "blocks {}/{}",
            device.logical_block_bytes, device.physical_block_bytes
        )),
        turning,
        labelled("scheduler ", &device.scheduler),
        device.nr_requests.map(|n| format!("nr_requests {n}")),
        labelled("cache ", &device.write_cache),
        labelled("PCIe ", &device.pcie_link),
    ]
    .into_iter()
    .flatten()
    .collect()
}
