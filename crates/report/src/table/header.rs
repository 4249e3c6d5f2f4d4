//! What ran, where, on what.

use fathom_model::environment::{BlockDevice, FileSystem, Target};
use fathom_model::{
    Environment, FigureVerdict, JobResult, RunDocument, RunStatus, VerdictLevel, units,
};
use jiff::Timestamp;

use super::{BLOCKS, jobs};
use fathom_sheet::style::{self, Style, Tone, width, wrap};

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
    // Of an import only the time of the import is known.
    let is_import = doc.command == "import";
    match duration_ms(doc) {
        Some(_) if is_import => {}
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
    if let Some(own) = &doc.label {
        line("label", own);
    }
    let label = if is_import { "read" } else { "started" };
    line(label, &format!("{started} UTC, {version}"));
    if let Some(verdict) = &doc.verdict {
        line(
            "verdict",
            &verdict_words(&fathom_analysis::verdict::results(doc), verdict),
        );
    }
    if let Some(environment) = &doc.environment {
        line("host", &host(environment));
        let mut label = "target";
        let targets = by_disk(&environment.targets);
        for text in targets.iter().flat_map(|targets| target_lines(targets)) {
            line(label, &text);
            label = "";
        }
        for stack in environment.stacks() {
            line("stack", &stack);
        }
    }
    if doc.jobs.len() > BLOCKS {
        let shared = jobs::shared_settings(&doc.jobs);
        let count = doc.jobs.len();
        match shared.as_str() {
            "" => line("jobs", &count.to_string()),
            shared => line("jobs", &format!("{count}, each {shared}")),
        }
    }
    text
}

/// `valid`, or of how many figures there are reasons not to be.
fn verdict_words(jobs: &[&JobResult], verdict: &FigureVerdict) -> String {
    let name = verdict.level.name();
    let figures = jobs.iter().flat_map(|job| job.directions());
    let levels = figures.filter_map(|(_, result)| Some(result.verdict.as_ref()?.level));
    let (all, its) = levels.fold((0, 0), |(all, its), level| {
        (all + 1, its + u32::from(level == verdict.level))
    });
    match verdict.level {
        VerdictLevel::Valid => name.to_owned(),
        _ if all == 1 => name.to_owned(),
        _ => format!("{name}: {its} of {all} figures"),
    }
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
pub(super) fn labelled(label: &str, value: &str, style: Style) -> String {
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

/// Targets that lie on the same, together, in the order of the first of each.
fn by_disk(targets: &[Target]) -> Vec<Vec<&Target>> {
    let place = |target: &Target| {
        let fs = target.file_system.as_ref().map(|fs| fs.mount_point.clone());
        (target.device.as_ref().map(|device| device.name.clone()), fs)
    };
    let mut groups: Vec<Vec<&Target>> = Vec::new();
    for target in targets {
        match groups
            .iter_mut()
            .find(|group| place(group[0]) == place(target))
        {
            Some(group) => group.push(target),
            None => groups.push(vec![target]),
        }
    }
    groups
}

/// The paths of targets that lie on the same, and what that is: a device, or a
/// file system and, on a line of its own, the device below it.
fn target_lines(targets: &[&Target]) -> Vec<String> {
    /// Paths that are named before the others are counted.
    const NAMED: usize = 3;
    let named = targets
        .iter()
        .take(NAMED)
        .map(|target| target.path.display().to_string());
    let mut paths = named.collect::<Vec<_>>().join(", ");
    if targets.len() > NAMED {
        paths += &format!(" and {} more", targets.len() - NAMED);
    }
    let Some(target) = targets.first() else {
        return vec![paths];
    };
    let about = |name: &str, facts: &[String]| format!("{name}: {}", style::facts(facts));
    match (&target.device, &target.file_system) {
        (Some(device), _) => vec![about(&paths, &block_device(device))],
        (None, Some(fs)) => {
            let below = fs.device.as_ref();
            let below =
                below.map(|device| about(&format!("on {}", device.name), &block_device(device)));
            let lines = [about(&paths, &file_system(fs))];
            lines.into_iter().chain(below).collect()
        }
        (None, None) => vec![paths],
    }
}

fn file_system(fs: &FileSystem) -> Vec<String> {
    // The line of the device below tells the name of a whole disk again.
    let named = fs
        .device
        .as_ref()
        .is_some_and(|device| fs.source == format!("/dev/{}", device.name));
    let kind = match named {
        true => fs.kind.clone(),
        false => format!("{} on {}", fs.kind, fs.source),
    };
    vec![
        kind,
        format!(
            "{} of {} free",
            units::bytes(fs.free_bytes as f64),
            units::bytes(fs.size_bytes as f64)
        ),
    ]
}

fn block_device(device: &BlockDevice) -> Vec<String> {
    let labelled = |label: &str, value: &Option<String>| {
        let value = value.as_ref().filter(|value| !value.is_empty())?;
        Some(format!("{label}{value}"))
    };
    let turning = match device.rotational {
        Some(true) => Some("rotational".to_owned()),
        _ => None,
    };
    [
        labelled("", &device.model),
        labelled("serial ", &device.serial),
        device.nsid.map(|id| format!("namespace {id}")),
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
        device.partition.as_ref().map(|partition| {
            format!(
                "{}: {} of it",
                partition.name,
                units::bytes(partition.size_bytes as f64)
            )
        }),
    ]
    .into_iter()
    .flatten()
    .collect()
}
