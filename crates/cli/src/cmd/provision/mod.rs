//! `fathom provision`: brings many drives into a known state at once.

use std::path::PathBuf;

use fathom_device::drives::Transport;
use fathom_engine::Control;
use fathom_flow::RunOptions;
use fathom_flow::plan_log::PlannedStage;
use fathom_model::Exit;
use fathom_prepare::precondition::PreconditionMethod;
use fathom_prepare::provision::{
    self, DriveCost, DriveEvent, DriveOutcome, Provision, Skipped, SteadyFor,
};
use fathom_record::{Header, now_ms};
use fathom_suites::snia::method;

use super::Global;
use super::campaign::Budget;
use super::campaign::Flags;
use super::failed;
use super::measuring::ExportArg;
use super::metrics::MetricsArgs;
use super::notify::NotifyArg;
use crate::live::LiveOptions;
use crate::{out, signals};

mod ask;
mod dashboard;
pub(in crate::cmd) mod document;
mod dry;
mod refused;
mod row;
mod summary;

use dashboard::Dashboard;
use row::DriveRow;

/// Bring drives into steady state, all at the same time
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Purges each drive, fills it, and writes the wanted load until it is steady; every drive with a
record and an engine of its own. A drive that fails does not stop the others. Nothing is written
before every drive is free and named. In the folder of a campaign its configuration says how, and
its device is the one where none is named; else the defaults of a campaign hold. A drive that is
in the wanted state already is left as it is, unless --force.

Examples:
  fathom provision --all nvme                          what is there, and how to confirm it
  fathom provision /dev/nvme1n1 --destroy ACME_1234    one drive, for random work
  fathom provision --all nvme --workload mixed --destroy S1 --destroy S2
                                                       even drives sequential, odd ones random
  fathom provision /dev/sda /dev/sdb --dry-run         every command; nothing is run
  fathom provision --resume --destroy S1 --destroy S2  goes on after Ctrl-C, a kill, a power cut")]
pub struct Args {
    /// The drives
    #[arg(value_name = "DEV")]
    devices: Vec<PathBuf>,
    /// All drives of this kind that nobody uses
    #[arg(long, value_enum, value_name = "KIND", conflicts_with = "devices")]
    all: Option<Attachment>,
    /// Folder of the campaign whose configuration holds [default: the current
    /// one, if it is one]
    #[arg(short = 'C', value_name = "DIR")]
    campaign: Option<PathBuf>,
    /// The load for which the drives are to be steady [default: random, or what
    /// the campaign says]
    #[arg(long, value_enum, value_name = "LOAD")]
    workload: Option<SteadyFor>,
    /// How they get there [default: sc, or what the campaign says]
    #[arg(long, value_enum)]
    method: Option<PreconditionMethod>,
    /// How they are purged first (fathom purge --help) [default: auto]
    #[arg(long, value_name = "METHOD", value_parser = method)]
    purge: Option<String>,
    /// Do not purge them first
    #[arg(long, conflicts_with = "purge")]
    no_purge: bool,
    /// Also drives that are in the wanted state already
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    options: RunOptions,
    /// Show every command that would be executed, and run nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    _notify: NotifyArg,
    /// Go on with the drives of the last start that are not done
    #[arg(long, conflicts_with_all = ["all", "workload", "method", "purge", "no_purge", "force"])]
    resume: bool,
    /// Folder below which logs/ gets a log of each drive in fio-tests' form
    /// [default: that of the campaign]
    #[arg(long, value_name = "DIR")]
    logs: Option<PathBuf>,
    #[command(flatten)]
    budget: Budget,
    #[command(flatten)]
    _metrics: MetricsArgs,
    #[command(flatten)]
    _exports: ExportArg,
}

impl Args {
    /// As `fathom resume` was told.
    pub fn with(self, flags: Flags) -> Self {
        Self {
            options: flags.request.options,
            dry_run: flags.dry_run,
            budget: flags.request.budget,
            ..self
        }
    }
}

/// How drives are attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Attachment {
    /// NVMe namespaces
    Nvme,
    /// SCSI disks: SAS, Fibre Channel, iSCSI, virtual ones
    Scsi,
    /// ATA disks
    Ata,
}

impl From<Attachment> for Transport {
    fn from(kind: Attachment) -> Self {
        match kind {
            Attachment::Nvme => Self::Nvme,
            Attachment::Scsi => Self::Scsi,
            Attachment::Ata => Self::Ata,
        }
    }
}

/// Provisions the drives.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let asked = ask::asked(global, args)?;
    let provision = &asked.provision;
    if !global.quiet && !global.json {
        tell_skipped(&asked.skipped);
    }
    if args.dry_run {
        return dry::run(global, &asked);
    }
    if provision.left().next().is_none() {
        return nothing_left(global, &asked);
    }
    if let Err(refused) = provision.check() {
        return Err(refused::error(provision, &refused).into());
    }
    let plan = provision.plan().map_err(failed)?;
    if !global.quiet {
        summary::tell_plan(provision, &plan);
    }
    // Taken over before anything starts: an early Ctrl-C leaves no engine behind.
    let control = signals::control()?;
    let came = observed(global, provision, &plan, &control);
    conclude(global, &asked, came, &control)
}

/// Drives that are left alone, with their reasons.
fn tell_skipped(skipped: &[Skipped]) {
    for skipped in skipped {
        out::note(format_args!("left alone: {skipped}"));
    }
}

/// All of the batch are done. That one did not become steady is its result, and
/// is said again.
fn nothing_left(global: &Global, asked: &ask::ProvisionRequest) -> anyhow::Result<Exit> {
    let document = document::Document::of(asked, &[])?;
    let unsteady: Vec<&str> = document.unsteady().collect();
    if !global.quiet {
        out::note("Nothing is left to do: all drives of the last start are done.");
    }
    show(global, &document)?;
    if unsteady.is_empty() {
        return Ok(Exit::Success);
    }
    out::note(format_args!(
        "not steady, and that is the result: {}\n  to do: fathom provision DEV… starts over",
        unsteady.join(", ")
    ));
    Ok(Exit::Failed)
}

/// Runs them before somebody's eyes; gives what came of each.
fn observed(
    global: &Global,
    provision: &Provision,
    plan: &[DriveCost],
    control: &Control,
) -> Vec<(usize, DriveOutcome)> {
    let live = LiveOptions::new(global.quiet, global.color);
    // By the place among all drives.
    let mut rows = vec![None; provision.drives.len()];
    let (mut shown, mut names) = (Vec::new(), Vec::new());
    for planned in plan {
        rows[planned.place] = Some(shown.len());
        let drive = &provision.drives[planned.place].drive;
        let name = drive.name.clone();
        global
            .metrics
            .begin_with(&name, "", &Header::new(&name, provision::COMMAND));
        names.push(name.clone());
        shown.push(DriveRow::new(
            name,
            summary::about(drive),
            planned.tasks.iter().map(PlannedStage::of).collect(),
        ));
    }
    let title = summary::title(provision);
    let mut dashboard = Dashboard::new(live, title, shown, now_ms());
    let mut observer = |told: Option<(usize, DriveEvent)>| {
        let now_ms = now_ms();
        if let Some((place, told)) = told
            && let Some(row) = rows[place]
        {
            match told {
                DriveEvent::Event(event) => {
                    global.metrics.take_of(&names[row], &event);
                    dashboard.take(row, now_ms, &event);
                }
                DriveEvent::Failed(reason) => dashboard.fail(row, now_ms, &reason),
            }
        }
        dashboard.draw(now_ms);
    };
    let came = provision.run(control, &mut observer);
    dashboard.finish();
    for finish in came.iter().filter_map(|(_, came)| came.as_ref().ok()) {
        global.requirement.note(&finish.dir);
    }
    came
}

/// The summary or the document, and the exit code: the worst of all drives.
fn conclude(
    global: &Global,
    asked: &ask::ProvisionRequest,
    came: Vec<(usize, DriveOutcome)>,
    control: &Control,
) -> anyhow::Result<Exit> {
    show(global, &document::Document::of(asked, &came)?)?;
    Ok(summary::worst(&came, control.stop_requests() > 0))
}

fn show(global: &Global, document: &document::Document) -> anyhow::Result<()> {
    match global.json {
        true => out::json(document),
        false => {
            out::text(summary::text(document, out::style(global.color)));
            Ok(())
        }
    }
}
