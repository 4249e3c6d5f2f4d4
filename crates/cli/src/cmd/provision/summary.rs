//! What a person is told of many drives: before they start, and at the end.

use std::time::Duration;

use fathom_campaign::flow::{Ending, History, Luck, Task, Work, outlook};
use fathom_campaign::provision::{Came, Drive, Method, One, Provision};
use fathom_model::ledger::Pattern;
use fathom_model::{Exit, RunStatus, units};
use fathom_report::grid::{Cell, Grid, figures, words};
use fathom_report::style::{Style, Tone};

use super::document::{Document, DriveEntry};
use super::row::Ahead;
use crate::cmd::Global;
use crate::cmd::run::{failed, summary::SIMULATION};
use crate::live::clock;
use crate::out;

/// Characters of a serial number that tell drives of one kind apart: its end.
const SERIAL_END: usize = 6;

/// Model and the end of the serial number, or what stands behind it.
pub fn about(drive: &Drive) -> String {
    let Some(device) = &drive.device else {
        return String::new();
    };
    let model = device.model.as_deref().or(device.backing.as_deref());
    let model = model.unwrap_or_default().trim();
    match &device.serial {
        Some(serial) => format!("{} {model}", tail(serial)).trim().to_owned(),
        None => model.to_owned(),
    }
}

fn tail(serial: &str) -> String {
    let count = serial.chars().count();
    if count <= SERIAL_END {
        return serial.to_owned();
    }
    let end: String = serial.chars().skip(count - SERIAL_END).collect();
    format!("…{end}")
}

/// What all are: the head of the dashboard.
pub fn title(provision: &Provision) -> String {
    let count = provision.left().count();
    let how = &provision.how;
    let drives = if count == 1 { "drive" } else { "drives" };
    let mut title = format!(
        "{count} {drives}, {}, {}, {}",
        match how.workload.to_string().as_str() {
            "seq" => "sequential",
            other => other,
        }
        .to_owned(),
        method(how.method),
        how.engine
    );
    if how.engine == "sim" {
        title += &format!("  {SIMULATION}");
    }
    title
}

fn method(method: Method) -> &'static str {
    match method {
        Method::Sc => "Santa Clara",
        Method::Snia => "SNIA's way (interpretation)",
    }
}

/// The stages of a drive, as if all went well.
pub fn stages(provision: &Provision, place: usize) -> Vec<Ahead> {
    let script = provision.script(&provision.drives[place]);
    let tasks = script.map(|script| outlook(script.as_ref(), &History::default(), Luck::Best).0);
    let ahead = |task: Task| Ahead {
        id: task.stage.id,
        bytes: match &task.work {
            Work::Fill(fill) => fill.bytes,
            _ => None,
        },
        least_ms: u64::try_from(task.work.least_time().as_millis()).unwrap_or(u64::MAX),
    };
    tasks.unwrap_or_default().into_iter().map(ahead).collect()
}

/// The load of a drive in a word.
pub fn load(one: &One) -> &'static str {
    match one.load {
        Pattern::Sequential => "sequential",
        Pattern::Random | Pattern::Mixed => "random",
    }
}

/// What it takes, before it starts: the longest time, and the bytes of all.
pub fn tell_plan(global: &Global, provision: &Provision) -> anyhow::Result<()> {
    if global.quiet {
        return Ok(());
    }
    let mut longest = Duration::ZERO;
    let mut bytes = 0u64;
    for (_, one) in provision.left() {
        let script = provision.script(one).map_err(failed)?;
        let (tasks, _) = outlook(script.as_ref(), &History::default(), Luck::Worst);
        let time = tasks.iter().map(|task| task.work.least_time()).sum();
        longest = longest.max(time);
        let fills = tasks
            .iter()
            .filter_map(|task| task.work.write_bytes(Luck::Worst, None));
        bytes = bytes.saturating_add(fills.sum());
    }
    let text = format!(
        "{}: fills of {} in all, then loads until steady",
        title(provision),
        units::bytes(bytes as f64),
    );
    out::note(text);
    Ok(())
}

/// The exit code: that of the drive that fared worst; the codes grow with it.
pub fn worst(came: &[(usize, Came)], stopped: bool) -> Exit {
    let of = |came: &Came| match came {
        Err(error) => error.exit(),
        Ok(finish) => match (finish.status, &finish.ending) {
            (RunStatus::Complete, Some(Ending::NotAttained(_))) => Exit::Failed,
            (RunStatus::Complete, _) => Exit::Success,
            (RunStatus::Interrupted, _) if stopped => Exit::Interrupted,
            _ => Exit::Failed,
        },
    };
    let codes = came.iter().map(|(_, came)| of(came));
    codes
        .max_by_key(|exit| exit.code())
        .unwrap_or(Exit::Success)
}

/// All drives, a line each.
pub fn text(document: &Document, style: Style) -> String {
    let mut grid = Grid::new([
        words("drive", 0),
        words("for", 1),
        words("came to", 0),
        figures("written", 1),
        figures("time", 1),
        words("run", 2),
    ]);
    for drive in &document.drives {
        let (tone, text) = came_to(drive);
        grid.line([
            Cell::from(drive.name.clone()),
            Cell::from(drive.workload.to_string()),
            Cell::new(tone, text),
            Cell::from(units::bytes(drive.written_bytes as f64)),
            Cell::from(clock(drive.took_ms)),
            Cell::from(drive.run.clone().unwrap_or_default()),
        ]);
    }
    let mut text = grid.render(style);
    for drive in &document.drives {
        if let Some(reason) = &drive.reason {
            text += &format!("\n{}: {reason}", drive.name);
        }
    }
    if document.drives.iter().any(|drive| drive.reason.is_some()) {
        text += "\n";
    }
    let left = document
        .drives
        .iter()
        .filter(|drive| drive.status != RunStatus::Complete);
    if left.count() > 0 {
        text += "\nnext  fathom provision --resume goes on with what is not done\n";
    }
    text
}

fn came_to(drive: &DriveEntry) -> (Tone, &'static str) {
    match (drive.status, drive.steady) {
        (RunStatus::Complete, Some(false)) => (Tone::Doubtful, "not steady"),
        (RunStatus::Complete, Some(true)) => (Tone::Good, "steady"),
        (RunStatus::Complete, None) => (Tone::Good, "done"),
        (RunStatus::Interrupted, _) => (Tone::Doubtful, "stopped"),
        (RunStatus::Failed, _) => (Tone::Bad, "failed"),
        (RunStatus::Running, _) => (Tone::Plain, "running"),
    }
}
