//! `fathom purge`: takes all data away from a device, and looks whether they are gone.

use std::cell::RefCell;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use clap::Parser as _;
use fathom_device::Sys;
use fathom_device::command::KernelDevices;
use fathom_device::purge::{
    FormatNvm, Purge, PurgeError, PurgeMethod, PurgeProgress, PurgeSettings,
};
use fathom_device::safety::Confirmations;
use fathom_engine::Control;
use fathom_engine_native::Native;
use fathom_engines::select::EngineHandle;
use fathom_flow::ledger::Ledgers;
use fathom_flow::options::duration;
use fathom_flow::{
    Act, ActionContext, ActionResult, Checked, Finish, Flow, KeptPlan, OneStage, Ready, RunOptions,
    Task, Work,
};
use fathom_model::environment::BlockDevice;
use fathom_model::purge::{PURGE_SCHEMA, PassedOver, PurgeDocument};
use fathom_model::{
    Event, Exit, Failure, FailureKind, Issued, LedgerEvent, Purged, RunStatus, Stage,
};
use fathom_prepare::acts::Purging;
use fathom_record::{Entries, Header};
use fathom_suites::snia::method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::drive::{self, Driven, Ended, drive};
use super::failed as run_failed;
use super::hosts::usage;
use super::measuring::ExportArg;
use super::metrics::MetricsArgs;
use super::notify::NotifyArg;
use super::planned::Start;
use super::planned::{RequestKind, RunRequest, kept};
use super::{Cli, Command, ExitError, Global, header_facts};
use crate::out;

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
    #[command(flatten)]
    request: PurgeRequest,
    /// Show what the device can do, what each way promises and how long the
    /// device expects it to take; change nothing
    #[arg(long, conflicts_with = "dry_run")]
    list: bool,
    /// Show every command that would be executed, and do nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    _notify: NotifyArg,
    #[command(flatten)]
    _metrics: MetricsArgs,
    #[command(flatten)]
    _exports: ExportArg,
}

/// What a record keeps of a purge.
#[derive(Debug, Clone, Serialize, Deserialize, clap::Args)]
pub struct PurgeRequest {
    /// The device
    device: PathBuf,
    /// How
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = method)]
    method: String,
    /// Why, for the log and the ledger
    #[arg(long, value_name = "TEXT", default_value = "asked for by hand")]
    reason: String,
    #[command(flatten)]
    options: RunOptions,
    /// Blocks that get known content before and are looked for afterwards
    #[arg(long, value_name = "N", default_value_t = PurgeSettings::SAMPLES)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    samples: u64,
    /// Have the device try a method, or settings, that it says it lacks
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    format: FormatArgs,
}

/// Settings of `nvme-format`; what is not given stays as the namespace has it.
#[derive(Debug, Clone, Serialize, Deserialize, clap::Args)]
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

impl PurgeRequest {
    fn want(&self) -> anyhow::Result<PurgeSettings> {
        let format = &self.format;
        Ok(PurgeSettings {
            choice: self.method.parse().map_err(usage)?,
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
        })
    }
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let request = &args.request;
    if args.list {
        return list::show(global, &Sys::live(), &request.want()?, &request.device);
    }
    Box::new(request.clone()).run(global, Start::new(args.dry_run))
}

/// What an earlier version keeps of a purge in the header of its record: its command line.
pub fn of_record(header: &Header) -> Option<PurgeRequest> {
    let words = header.facts.get("command").cloned()?;
    let words: Vec<String> = serde_json::from_value(words).ok()?;
    match Cli::try_parse_from(words).ok()?.command {
        Command::Purge(args) => Some(args.request),
        _ => None,
    }
}

impl RequestKind for PurgeRequest {
    const NAME: &'static str = COMMAND;
}

impl RunRequest for PurgeRequest {
    fn options(&mut self) -> &mut RunOptions {
        &mut self.options
    }

    /// One that has ended is shown; one that was stopped or killed is done anew.
    fn run(self: Box<Self>, global: &Global, start: Start) -> anyhow::Result<Exit> {
        if let Some(dir) = &start.record
            && let Some(document) = document_of(dir)
            && document.status != RunStatus::Interrupted
        {
            out::note(format_args!("Nothing is left to do in {}.", dir.display()));
            return show(global, &document, Exit::Failed);
        }
        let want = self.want()?;
        let purge =
            Purge::new(&Sys::live(), &KernelDevices, &want, &self.device).map_err(failed)?;
        self.check_format(&want, &purge)?;
        if let Some(dir) = &start.record {
            must_be_same(&purge, dir, &Entries::open(dir)?.header)?;
        }
        let against = purge.check(&Confirmations(self.options.destroy.clone()));
        let against = against.map_err(|refusal| failed(refusal.into()));
        if start.dry_run {
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
        self.execute(global, &act, start)
    }
}

fn refused(message: String) -> anyhow::Error {
    ExitError::new(Exit::Refused, message).into()
}

impl PurgeRequest {
    /// Settings of a format are for nothing where another way is taken.
    fn check_format(&self, want: &PurgeSettings, purge: &Purge) -> anyhow::Result<()> {
        let is_given = want.format != FormatNvm::default();
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

    fn execute(&self, global: &Global, act: &Rc<ShownPurge>, start: Start) -> anyhow::Result<Exit> {
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
            record: start.record,
            ledgers: Ledgers::of_user(),
            facts,
            kept: KeptPlan::Config(kept(self)?),
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
        let driven = DrivenPurge { request: self, act };
        drive(global, ready.map_err(run_failed)?, start.dry_run, &driven)
    }
}

/// A purge with its own document.
struct DrivenPurge<'a> {
    request: &'a PurgeRequest,
    act: &'a ShownPurge,
}

impl Driven<Ready<'_>> for DrivenPurge<'_> {
    fn run(
        &self,
        global: &Global,
        ready: Ready<'_>,
        control: &Control,
    ) -> anyhow::Result<Option<Finish>> {
        let mut begun = |dir: &Path| global.metrics.begin(dir);
        let mut observe = |event: &Event| global.metrics.take(event);
        let finish = ready.run(control, &mut begun, &mut observe);
        self.act.screen.borrow_mut().finish();
        drive::begun(finish)
    }

    fn conclude(&self, global: &Global, ended: &Ended<'_>) -> anyhow::Result<Exit> {
        global.requirement.note(ended.dir);
        let Some(done) = self.act.done.take() else {
            // It was stopped before it began.
            return Ok(Exit::Interrupted);
        };
        let commands = self.act.commands.take();
        let document = document(self.request, &self.act.purge, commands, &done);
        write(ended.dir, &document)?;
        let exit = done.map_or_else(|it| it.exit(), |_| Exit::Success);
        let exit = show(global, &document, exit);
        if !global.json {
            out::note(format_args!("Recorded in {}", ended.dir.display()));
        }
        exit
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
    request: &PurgeRequest,
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
        Err(PurgeError::DataRemains { purged, .. }) => Some((**purged).clone()),
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
        path: request.device.clone(),
        device: purge.capabilities.device.clone(),
        reason: request.reason.clone(),
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
pub fn document_of(dir: &Path) -> Option<PurgeDocument> {
    let text = std::fs::read(dir.join(DOCUMENT)).ok()?;
    let document: PurgeDocument = serde_json::from_slice(&text).ok()?;
    (document.schema == PURGE_SCHEMA).then_some(document)
}
