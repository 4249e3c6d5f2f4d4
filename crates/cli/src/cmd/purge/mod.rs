//! `fathom purge`: takes all data away from a device, and looks whether they are gone.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_campaign::ledger::Ledgers;
use fathom_campaign::purge::{self as campaign, Run};
use fathom_device::command::Live;
use fathom_device::purge::{Choice, Format, Method, Progress, Purge, PurgeError, Want};
use fathom_device::safety::Confirmations;
use fathom_device::{Hold, Sys};
use fathom_model::purge::{PURGE_SCHEMA, PassedOver, PurgeDocument};
use fathom_model::{
    Event, Exit, Failure, FailureKind, Issued, Purged, RunStatus, Stage, StageEnd, StageKind,
};
use fathom_record::{Header, Writer};
use serde_json::json;

use super::job::duration;
use super::{ExitError, Global};
use crate::{out, signals};

mod list;
mod screen;

/// The command in records and ledgers.
const COMMAND: &str = "purge";
/// The document in a purge's record.
const DOCUMENT: &str = "purge.json";

/// Take all data away from a device, and look whether they are gone
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
    method: Choice,
    /// Why, for the log and the ledger
    #[arg(long, value_name = "TEXT", default_value = "asked for by hand")]
    reason: String,
    /// Confirm that a device may be purged: its serial number, its name in
    /// /dev/disk/by-id, or PATH=SIZE where it has neither (may be repeated)
    #[arg(long, value_name = "WORDS")]
    destroy: Vec<String>,
    /// Show what the device can do, what each way promises and how long the
    /// device expects it to take; change nothing
    #[arg(long, conflicts_with = "dry_run")]
    list: bool,
    /// Show every command that would be executed, and do nothing
    #[arg(long)]
    dry_run: bool,
    /// Blocks that get known content before and are looked for afterwards
    #[arg(long, value_name = "N", default_value_t = Want::SAMPLES)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    samples: u64,
    /// Have the device try a method, or settings, that it says it lacks
    #[arg(long)]
    unchecked: bool,
    #[command(flatten)]
    format: FormatArgs,
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
            format: Format {
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

    /// Whether settings of a format were given that another way would not heed.
    fn format_is_meant(&self) -> bool {
        let Format {
            nsid,
            lbaf,
            ms,
            pi,
            pil,
            ses,
            timeout,
            reset,
        } = self.want().format;
        [lbaf, ms, pi, pil, ses].iter().any(Option::is_some)
            || nsid.is_some()
            || timeout.is_some()
            || reset
    }
}

/// Runs the command.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let sys = Sys::live();
    let want = args.want();
    if args.list {
        return list::show(global, &sys, &want, &args.device);
    }
    let purge = Purge::new(&sys, &Live, &want, &args.device).map_err(failed)?;
    if args.format_is_meant() && purge.method != Method::NvmeFormat {
        return Err(ExitError {
            exit: Exit::Usage,
            message: format!(
                "settings of nvme-format were given, and {} would be purged by {}; nothing was done{}\n  to do: leave them out, or add --method nvme-format",
                args.device.display(),
                purge.method,
                passed_over(&purge),
            ),
        }
        .into());
    }
    let confirmed = Confirmations(args.destroy.clone());
    let refused = purge
        .check(&confirmed)
        .map_err(|refusal| failed(refusal.into()));
    if args.dry_run {
        list::steps(global, &purge)?;
        return refused.map(|()| Exit::Success);
    }
    refused?;
    let _hold = Hold::of([args.device.as_path()]).map_err(|refusal| failed(refusal.into()))?;
    let control = signals::control()?;
    let (dir, document, exit) = recorded(global, args, &purge, &confirmed, &control)?;
    if global.json {
        out::json(&document)?;
    } else {
        out::text(fathom_report::purge::text(
            &document,
            out::style(global.color),
        ));
        out::note(format_args!("Recorded in {}", dir.display()));
    }
    Ok(exit)
}

/// Ways that came before, each in a line.
fn passed_over(purge: &Purge) -> String {
    let lines = purge.passed_over.iter();
    lines
        .map(|(method, reason)| format!("\n  - {method}: {reason}"))
        .collect()
}

fn failed(error: PurgeError) -> anyhow::Error {
    ExitError {
        exit: error.exit(),
        message: error.to_string(),
    }
    .into()
}

fn record_error(error: impl std::fmt::Display) -> anyhow::Error {
    ExitError {
        exit: Exit::Record,
        message: error.to_string(),
    }
    .into()
}

/// Does it, with a record and a line in the device's ledger.
fn recorded(
    global: &Global,
    args: &Args,
    purge: &Purge,
    confirmed: &Confirmations,
    control: &fathom_engine::Control,
) -> anyhow::Result<(PathBuf, PurgeDocument, Exit)> {
    let mut writer = begin(global, args, purge)?;
    let dir = writer.dir().to_owned();
    let ledgers = Ledgers::of_user();
    let touched = purge
        .touches
        .iter()
        .filter_map(|other| other.path.as_deref());
    let devices: Vec<&Path> = touched.chain([args.device.as_path()]).collect();
    let notes = ledgers.begin(devices.iter().copied(), COMMAND, Some(&dir));
    notes.iter().for_each(out::note);
    let mut screen = screen::Screen::new(global);
    let mut commands: Vec<Issued> = Vec::new();
    let mut unrecorded = None;
    let run = Run {
        purge,
        confirmed,
        reason: &args.reason,
        folder: Some(&dir),
    };
    let done = run.go(&Live, control, &mut |progress| {
        screen.show(&progress);
        if let Some(event) = campaign::event(&progress)
            && let Err(error) = writer.append(&event)
        {
            unrecorded.get_or_insert(error);
        }
        if let Progress::End { issued } = progress {
            commands.push(issued.clone());
        }
    });
    screen.finish();
    if let Some(deed) = run.deed(&done) {
        for device in devices {
            let notes = ledgers.did(device, COMMAND, Some(&dir), deed.clone());
            notes.iter().for_each(out::note);
        }
    }
    let document = document(args, purge, commands, &done);
    let exit = done
        .as_ref()
        .map_or_else(PurgeError::exit, |_| Exit::Success);
    let ended = conclude(writer, &document, &done);
    let written = done.as_ref().map_or(0, |purged| purged.bytes_written);
    ledgers
        .end(COMMAND, &dir, written)
        .iter()
        .for_each(out::note);
    match (unrecorded, ended) {
        (Some(error), _) => Err(record_error(error)),
        (None, Err(error)) => Err(error),
        (None, Ok(())) => Ok((dir, document, exit)),
    }
}

fn begin(global: &Global, args: &Args, purge: &Purge) -> anyhow::Result<Writer> {
    let device = &purge.capabilities.device.name;
    let mut header = Header::new(&format!("purge {device}"), COMMAND);
    header.environment = Some(fathom_device::environment(std::slice::from_ref(
        &args.device,
    )));
    let command: Vec<_> = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .collect();
    header.facts.insert("command".into(), json!(command));
    header
        .facts
        .insert("method".into(), json!(purge.method.to_string()));
    header.facts.insert("reason".into(), json!(args.reason));
    let mut writer = Writer::create(&global.runs, &header).map_err(record_error)?;
    let stage = Stage {
        id: COMMAND.to_owned(),
        kind: StageKind::Purge,
        title: format!("purge of {} by {}", args.device.display(), purge.method),
        round: None,
    };
    let stage = Event::Stage {
        stage: Box::new(stage),
    };
    writer.append(&stage).map_err(record_error)?;
    for (method, reason) in &purge.passed_over {
        let text = format!("{method} was passed over: {reason}");
        writer.append(&Event::Note { text }).map_err(record_error)?;
    }
    Ok(writer)
}

/// Ends the record: how the stage ended, and the document.
fn conclude(
    mut writer: Writer,
    document: &PurgeDocument,
    done: &Result<Purged, PurgeError>,
) -> anyhow::Result<()> {
    let id = COMMAND.to_owned();
    if let Some(end) = campaign::end(done) {
        if let StageEnd::Failed { reason } = &end {
            let failure = Failure::new(FailureKind::Other, reason.clone());
            let failure = failure.about(document.path.display().to_string());
            writer
                .append(&Event::Failure(failure))
                .map_err(record_error)?;
        }
        writer
            .append(&Event::StageEnded { id, end })
            .map_err(record_error)?;
    }
    let path = writer.dir().join(DOCUMENT);
    let text = serde_json::to_vec_pretty(document)?;
    let kept = fathom_record::replace(&path, |file: &mut File| file.write_all(&text));
    kept.map_err(|error| record_error(format!("{}: {error}", path.display())))?;
    writer.finish(document.status).map_err(record_error)?;
    Ok(())
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
    PurgeDocument {
        schema: PURGE_SCHEMA.to_owned(),
        status,
        path: args.device.clone(),
        device: purge.capabilities.device.clone(),
        reason: args.reason.clone(),
        method: purge.method.to_string(),
        touched: purge
            .touches
            .iter()
            .filter_map(|other| other.path.clone())
            .collect(),
        passed_over: passed_over.collect(),
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
