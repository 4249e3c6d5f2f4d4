//! `fathom purge`: takes all data away from a device, and looks whether they are gone.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::Parser as _;
use fathom_campaign::acts::Purging;
use fathom_device::Sys;
use fathom_device::command::KernelDevices;
use fathom_device::purge::{
    FormatNvm, Purge, PurgeError, PurgeMethod, PurgeMethods, PurgeProgress, Want,
};
use fathom_device::safety::Confirmations;
use fathom_engine_native::Native;
use fathom_engines::select::EngineHandle;
use fathom_flow::ledger::Ledgers;
use fathom_flow::{
    Act, ActionContext, ActionResult, Checked, Finish, Flow, KeptPlan, OneStage, RunOptions, Task,
    Work,
};
use fathom_model::environment::BlockDevice;
use fathom_model::purge::{PURGE_SCHEMA, PassedOver, PurgeDocument};
use fathom_model::{
    Event, Exit, Failure, FailureKind, Issued, LedgerEvent, Purged, RunStatus, Stage,
};
use fathom_record::Header;
use serde_json::json;

use super::hosts::usage;
use super::measuring::ExportArg;
use super::metrics::MetricsArgs;
use super::notify::NotifyArg;
use super::run::{Flags, failed as run_failed};
use super::{Cli, Command, ExitError, Global, header_facts};
use crate::{out, signals};
use fathom_flow::options::duration;

pub mod list;
mod screen;

/// The command in records and ledgers.
pub const COMMAND: &str = "purge";
/// The document in a purge's record.
const DOCUMENT: &str = "purge.json";

/// Erase a device and verify that nothing is left
///
/// Known content is written all over the device first and looked for afterwards: neither exit codes
/// nor the device's own answers are believed. What a method promises and what it was proven on is
/// told in docs/PURGE.md.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Methods: auto takes the first that the device can do, in the order of --list. Or one by its name:
nvme-format, nvme-sanitize[-block|-crypto|-overwrite], ata-sanitize[-…], ata-security-erase,
ata-security-erase-enhanced, scsi-sanitize[-…], scsi-format, blkdiscard, blkdiscard-secure,
overwrite, overwrite-random.

Examples:
  fathom purge /dev/nvme0n1 --list                        what it can do; changes nothing
  fathom purge /dev/nvme0n1 --dry-run --destroy S4EWNX0   every command, none of them done
  fathom purge /dev/nvme0n1 --destroy S4EWNX0 --reason 'before the SNIA run'
  fathom purge /dev/nvme0n1 --method nvme-format --ses 2 --destroy S4EWNX0
  fathom purge /dev/sdb --method overwrite-random --destroy wwn-0x5000c500a1b2c3d4
  fathom purge /dev/loop3 --destroy /dev/loop3=512MiB")]
pub struct Args {
    /// The device
    device: PathBuf,
    /// How
    #[arg(long, value_name = "NAME", default_value = "auto")]
    method: PurgeMethods,
    /// Why, for the log and the ledger
    #[arg(long, value_name = "TEXT", default_value = "asked for by hand")]
    reason: String,
    #[command(flatten)]
    options: RunOptions,
    /// Show what the device can do, what each way promises and how long the
    /// device expects it to take; change nothing
    #[arg(long, conflicts_with = "dry_run")]
    list: bool,
    /// Show every command that would be executed, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    _notify: NotifyArg,
    /// Blocks that get known content before and are looked for afterwards
    #[arg(long, value_name = "N", default_value_t = Want::SAMPLES)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    samples: u64,
    /// Have the device try a method, or settings, that it says it lacks
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    format: FormatArgs,
    #[command(flatten)]
    _metrics: MetricsArgs,
    #[command(flatten)]
    _exports: ExportArg,
}

/// Settings of `nvme-format`; what is not given stays as the namespace has it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Settings of nvme-format")]
struct FormatArgs {
    /// Secure erase: 0 none, 1 user data, 2 cryptographic [default: 1]
    #[arg(long, value_name = "N")]
    ses: Option<u8>,
    /// LBA format, by its number in --list
    #[arg(long, value_name = "N")]
    lbaf: Option<u8>,
    /// Metadata: 0 in a buffer of its own, 1 at the end of each block
    #[arg(long, value_name = "N")]
    ms: Option<u8>,
    /// Protection information: 0 none, or type 1, 2, 3
    #[arg(long, value_name = "N")]
    pi: Option<u8>,
    /// Its place in the metadata: 0 the last, 1 the first bytes
    #[arg(long, value_name = "N")]
    pil: Option<u8>,
    /// Namespace id, in place of the one in sysfs; 0xffffffff: every namespace
    #[arg(long, value_name = "ID", value_parser = namespace)]
    nsid: Option<u32>,
    /// How long the format may take [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    timeout: Option<Duration>,
    /// Reset the controller afterwards
    #[arg(long)]
    reset: bool,
}

fn namespace(text: &str) -> Result<u32, String> {
    let id = match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => text.parse(),
    };
    id.map_err(|error| error.to_string())
}

impl Args {
    fn want(&self) -> Want {
        let format = &self.format;
        Want {
            choice: self.method.clone(),
            format: FormatNvm {
                nsid: format.nsid,
                lbaf: format.lbaf,
                ms: format.ms,
                pi: format.pi,
                pil: format.pil,
                ses: format.ses,
                timeout: format.timeout,
                reset: format.reset,
            },
            check: !self.unchecked,
            samples: self.samples,
        }
    }
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    if args.list {
        return list::show(global, &Sys::live(), &args.want(), &args.device);
    }
    args.run(global, None)
}

/// Does anew what was stopped or killed in this record; a purge that has ended is shown.
pub fn resume(
    global: &Global,
    flags: &Flags,
    dir: PathBuf,
    header: &Header,
) -> anyhow::Result<Exit> {
    if let Some(document) = of_record(&dir)
        && document.status != RunStatus::Interrupted
    {
        out::note(format_args!("Nothing is left to do in {}.", dir.display()));
        return show(global, &document, Exit::Failed);
    }
    let words = header.facts.get("command").cloned().unwrap_or_default();
    let words: Vec<String> = serde_json::from_value(words).unwrap_or_default();
    let asked = Cli::try_parse_from(words).map(|cli| cli.command);
    let Ok(Command::Purge(mut args)) = asked else {
        let dir = dir.display();
        return Err(refused(format!(
            "{dir}: the record does not say how it was to purge\n  to do: purge the device by fathom purge"
        )));
    };
    let given = &flags.request.options;
    args.options.again(given).map_err(run_failed)?;
    args.dry_run = flags.dry_run;
    args.run(global, Some((dir, header)))
}

fn refused(message: String) -> anyhow::Error {
    ExitError::new(Exit::Refused, message).into()
}

impl Args {
    /// Purges the device, into a new record or the one to go on with.
    fn run(&self, global: &Global, past: Option<(PathBuf, &Header)>) -> anyhow::Result<Exit> {
        let want = self.want();
        let purge =
            Purge::new(&Sys::live(), &KernelDevices, &want, &self.device).map_err(failed)?;
        self.check_format(&purge)?;
        if let Some((dir, header)) = &past {
            must_be_same(&purge, dir, header)?;
        }
        let against = purge.check(&Confirmations(self.options.destroy.clone()));
        let against = against.map_err(|refusal| failed(refusal.into()));
        if self.dry_run {
            list::steps(global, &purge)?;
            return against.map(|()| Exit::Success);
        }
        against?;
        let act = Rc::new(ShownPurge {
            purging: Purging::new(&self.device, want, &self.options.destroy, &self.reason),
            purge,
            screen: RefCell::new(screen::Screen::new(global)),
            commands: RefCell::default(),
            done: RefCell::default(),
        });
        let finish = self.execute(global, &act, past.map(|(dir, _)| dir))?;
        global.requirement.note(&finish.dir);
        let Some(done) = act.done.take() else {
            // It was stopped before it began.
            return Ok(Exit::Interrupted);
        };
        let document = document(self, &act.purge, act.commands.take(), &done);
        write(&finish.dir, &document)?;
        let exit = show(
            global,
            &document,
            done.map_or_else(|it| it.exit(), |_| Exit::Success),
        );
        if !global.json {
            out::note(format_args!("Recorded in {}", finish.dir.display()));
        }
        exit
    }

    /// Settings of a format are for nothing where another way is taken.
    fn check_format(&self, purge: &Purge) -> anyhow::Result<()> {
        let is_given = self.want().format != FormatNvm::default();
        if !is_given || purge.method == PurgeMethod::NvmeFormat {
            return Ok(());
        }
        Err(usage(format!(
            "settings of nvme-format were given, and {} would be purged by {}; nothing was done{}\n  to do: leave them out, or add --method nvme-format",
            self.device.display(),
            purge.method,
            passed_over(purge),
        )))
    }

    fn execute(
        &self,
        global: &Global,
        act: &Rc<ShownPurge>,
        record: Option<PathBuf>,
    ) -> anyhow::Result<Finish> {
        let purge = &act.purge;
        let script = OneStage(Task {
            stage: Stage {
                title: format!("purge of {} by {}", self.device.display(), purge.method),
                ..Purging::stage()
            },
            work: Work::Act(act.clone()),
        });
        let mut facts = header_facts();
        facts.insert("method".into(), json!(purge.method.to_string()));
        facts.insert("reason".into(), json!(self.reason));
        let flow = Flow {
            script: &script,
            command: COMMAND,
            name: &format!("purge {}", purge.capabilities.device.name),
            // What a purge writes is in its document: nobody else counts it.
            device: None,
            work_dir: PathBuf::from("/"),
            options: self.options.clone(),
            engine_needs: Vec::new(),
            interval: Duration::from_secs(1),
            runs_dir: global.runs.clone(),
            record,
            ledgers: Ledgers::of_user(),
            facts,
            // The command line says it all.
            kept: KeptPlan::Nothing,
        };
        let ready = flow.checked(Checked {
            // It is asked for nothing.
            selected: EngineHandle::Native(Native::in_own_process()),
            is_here: true,
            environment: fathom_device::environment(std::slice::from_ref(&self.device)),
            written: vec![self.device.clone()],
            notes: Vec::new(),
            layouts: Vec::new(),
            refusal: None,
        });
        let control = signals::control()?;
        let finish = ready.map_err(run_failed)?;
        let mut begun = |dir: &Path| global.metrics.begin(dir);
        let mut observe = |event: &Event| global.metrics.take(event);
        let finish = finish.run(&control, &mut begun, &mut observe);
        act.screen.borrow_mut().finish();
        Ok(finish.map_err(run_failed)?)
    }
}

/// A purge before somebody's eyes.
#[derive(Debug)]
struct ShownPurge {
    purging: Purging,
    purge: Purge,
    screen: RefCell<screen::Screen>,
    commands: RefCell<Vec<Issued>>,
    /// What came of it.
    done: RefCell<Option<Result<Purged, PurgeError>>>,
}

impl Act for ShownPurge {
    fn commands(&self) -> Vec<String> {
        self.purging.commands()
    }

    fn run(&self, doing: &mut ActionContext<'_>) -> ActionResult {
        let purging = Purging {
            logs: Some(doing.record.to_owned()),
            ..self.purging.clone()
        };
        let (acted, done) = purging.give(doing, &self.purge, &mut |progress| {
            self.screen.borrow_mut().show(progress);
            if let PurgeProgress::End { issued } = progress {
                self.commands.borrow_mut().push((*issued).clone());
            }
        });
        match (&done, &acted) {
            (Ok(purged), _) => {
                let bytes = purged.bytes_written;
                let notes = doing.book.append(LedgerEvent::Written { bytes });
                let mut tell = |text| (doing.tell)(Event::Note { text });
                notes.into_iter().for_each(&mut tell);
            }
            (Err(error), ActionResult::Ended { .. }) => {
                let failure = Failure::new(FailureKind::Other, error.to_string());
                let path = self.purging.dut.display().to_string();
                (doing.tell)(Event::Failure(failure.about(path)));
            }
            (Err(_), ActionResult::Interrupted { .. }) => {}
        }
        self.done.replace(Some(done));
        acted
    }
}

/// Ways that came before, each in a line.
fn passed_over(purge: &Purge) -> String {
    let lines = purge.passed_over.iter();
    lines
        .map(|(method, reason)| format!("\n  - {method}: {reason}"))
        .collect()
}

fn failed(error: PurgeError) -> anyhow::Error {
    let findings = match &error {
        PurgeError::Refused(refusal) => refusal.findings(),
        _ => Vec::new(),
    };
    let failed = ExitError::new(error.exit(), error);
    failed.with_findings(findings).into()
}

/// Whether a record is of this device, whatever its path is now.
fn must_be_same(purge: &Purge, dir: &Path, header: &Header) -> anyhow::Result<()> {
    let is_same = |before: &BlockDevice, now: &BlockDevice| match before.has_identifier() {
        true => before.is_same_drive(now),
        false => !now.has_identifier() && before.backing == now.backing,
    };
    let before = header.environment.iter().flat_map(|it| &it.targets);
    let before = before.filter_map(|target| target.device.as_ref()).next();
    let now = &purge.capabilities;
    if before.is_none_or(|before| is_same(before, &now.device)) {
        return Ok(());
    }
    Err(refused(format!(
        "{}: it was to purge another device than {} is now\n  to do: purge that one by fathom purge",
        dir.display(),
        now.path.display(),
    )))
}

/// Puts the document into the record.
fn write(dir: &Path, document: &PurgeDocument) -> anyhow::Result<()> {
    let path = dir.join(DOCUMENT);
    let text = serde_json::to_vec_pretty(document)?;
    let kept = fathom_record::replace(&path, |file: &mut File| file.write_all(&text));
    kept.map_err(|error| {
        let message = format!("{}: {error}", path.display());
        ExitError::new(Exit::Record, message).into()
    })
}

/// Shows what came of a purge; `exit` is that of one that is not complete.
fn show(global: &Global, document: &PurgeDocument, exit: Exit) -> anyhow::Result<Exit> {
    match global.json {
        true => out::json(document)?,
        false => out::text(fathom_report::purge::text(
            document,
            out::style(global.color),
        )),
    }
    Ok(match document.status {
        RunStatus::Complete => Exit::Success,
        _ => exit,
    })
}

fn document(
    args: &Args,
    purge: &Purge,
    commands: Vec<Issued>,
    done: &Result<Purged, PurgeError>,
) -> PurgeDocument {
    let status = match done {
        Ok(_) => RunStatus::Complete,
        Err(PurgeError::Stopped { .. }) => RunStatus::Interrupted,
        Err(_) => RunStatus::Failed,
    };
    let purged = match done {
        Ok(purged) => Some(purged.clone()),
        Err(PurgeError::Kept { purged, .. }) => Some((**purged).clone()),
        Err(_) => None,
    };
    let passed_over = purge.passed_over.iter().map(|(method, reason)| PassedOver {
        method: method.to_string(),
        reason: reason.clone(),
    });
    let method = match &purged {
        Some(purged) => purged.method.clone(),
        None => purge.method.to_string(),
    };
    PurgeDocument {
        schema: PURGE_SCHEMA.to_owned(),
        status,
        path: args.device.clone(),
        device: purge.capabilities.device.clone(),
        reason: args.reason.clone(),
        method,
        touched: purge.touched().map(Path::to_owned).collect(),
        passed_over: passed_over.collect(),
        hidden: purge.capabilities.hidden.clone(),
        commands,
        purged,
        error: done.as_ref().err().map(ToString::to_string),
    }
}

/// The document of a purge's record; `None`: it is no purge, or one that was
/// killed.
pub fn of_record(dir: &Path) -> Option<PurgeDocument> {
    let text = std::fs::read(dir.join(DOCUMENT)).ok()?;
    let document: PurgeDocument = serde_json::from_slice(&text).ok()?;
    (document.schema == PURGE_SCHEMA).then_some(document)
}
