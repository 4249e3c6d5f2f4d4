//! What a person is told of many drives: before they start, and at the end.

use fathom_flow::budget::Cost;
use fathom_flow::{Ending, Work};
use fathom_model::ledger::Pattern;
use fathom_model::{Exit, RunStatus, units};
use fathom_prepare::precondition::PreconditionMethod;
use fathom_prepare::provision::{DriveCost, DriveJob, DriveOutcome, Provision, ProvisionDrive};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::{Style, Tone};

use super::document::{Document, DriveEntry};
use crate::cmd::campaign::tell_notes;
use crate::cmd::screen::summary::SIMULATION;
use crate::live::clock;
use crate::out;

/// Characters of a serial number that tell drives of one kind apart: its end.
const SERIAL_END: usize = 6;

/// Model and the end of the serial number, or what stands behind it.
pub fn about(drive: &ProvisionDrive) -> String {
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
    let how = &provision.how;
    let drives = units::counted(provision.left().count(), "drive");
    let mut title = format!(
        "{drives}, {}, {}, {}",
        match how.workload.to_string().as_str() {
            "seq" => "sequential",
            other => other,
        }
        .to_owned(),
        method(how.method),
        how.options.engine().name()
    );
    if how.options.is_simulated() {
        title += &format!("  {SIMULATION}");
    }
    title
}

fn method(method: PreconditionMethod) -> &'static str {
    match method {
        PreconditionMethod::SantaClara => "Santa Clara",
        PreconditionMethod::Snia => "SNIA's way (interpretation)",
    }
}

/// The load of a drive in a word.
pub fn load(one: &DriveJob) -> &'static str {
    match one.load {
        Pattern::Sequential => "sequential",
        Pattern::Random | Pattern::Mixed => "random",
    }
}

/// What it takes, before it starts: a line for each drive, and all together.
pub fn tell_plan(provision: &Provision, plan: &[DriveCost]) {
    let style = Style {
        color: false,
        width: out::progress_size().map(|(columns, _)| columns),
    };
    let mut grid = Grid::new([
        words("drive", 0),
        words("for", 1),
        figures("stages", 2),
        figures("takes", 0),
        figures("writes", 0),
        figures("of its endurance", 1),
    ]);
    let mut all = Cost::default();
    for planned in plan {
        let one = &provision.drives[planned.place];
        let [time, bytes] = costs(&planned.cost);
        grid.line([
            GridCell::from(one.drive.name.clone()),
            GridCell::from(load(one)),
            GridCell::from(planned.tasks.len().to_string()),
            GridCell::from(time),
            GridCell::from(bytes),
            GridCell::from(share(planned)),
        ]);
        // Drives work side by side: the longest time counts, and all bytes.
        all.duration = all.duration.max(planned.cost.duration);
        all.endless += planned.cost.endless;
        all.write_bytes = all.write_bytes.saturating_add(planned.cost.write_bytes);
        all.unbounded += planned.cost.unbounded;
    }
    if plan.len() > 1 {
        let [time, bytes] = costs(&all);
        let cells = [
            "all".to_owned(),
            String::new(),
            String::new(),
            time,
            bytes,
            String::new(),
        ];
        grid.line(cells.map(GridCell::from));
    }
    out::note(grid.render(style).trim_end());
    for planned in plan {
        let name = &provision.drives[planned.place].drive.name;
        let skip = planned.tasks.iter().find_map(|task| match &task.work {
            Work::Skip(reason) => Some(format!("{reason} (--force does it again)")),
            _ => None,
        });
        let notes: Vec<String> = skip.into_iter().chain(planned.notes.clone()).collect();
        let notes: Vec<String> = notes.iter().map(|note| format!("{name}: {note}")).collect();
        tell_notes(&notes);
    }
}

/// What of its rated endurance a drive loses.
fn share(planned: &DriveCost) -> String {
    let cost = &planned.cost;
    match planned.endurance.share(cost.write_bytes) {
        None => "unknown".to_owned(),
        Some(share) if cost.unbounded > 0 => format!("> {:.2} %", share.least * 100.0),
        Some(share) => format!("≤ {:.2} %", share.most * 100.0),
    }
}

/// Time and bytes, each with a mark where it may be more.
fn costs(cost: &Cost) -> [String; 2] {
    let more = |unknown: usize| if unknown > 0 { "> " } else { "" };
    let time = units::duration(cost.duration.as_millis() as u64);
    let bytes = units::bytes(cost.write_bytes as f64);
    [
        format!("{}{time}", more(cost.endless)),
        format!("{}{bytes}", more(cost.unbounded)),
    ]
}

/// The exit code: that of the drive that fared worst; the codes grow with it.
pub fn worst(came: &[(usize, DriveOutcome)], stopped: bool) -> Exit {
    let of = |came: &DriveOutcome| match came {
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
            GridCell::from(drive.name.clone()),
            GridCell::from(drive.workload.to_string()),
            GridCell::new(tone, text),
            GridCell::from(units::bytes(drive.written_bytes as f64)),
            GridCell::from(clock(drive.took_ms)),
            GridCell::from(drive.run.clone().unwrap_or_default()),
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
        text += "\nnext  fathom provision --resume continues with what is left\n";
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
