//! `fathom runs archive`: runs in one file.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fathom_model::{Exit, units};
use fathom_record::{RecordError, archive};
use serde::Serialize;

use crate::cmd::{ExitError, Global, archived, may_write, show};
use crate::out;

/// Put runs into one file, to keep or to give away
///
/// A tar compressed by Zstandard, with everything in their folders. The commands that read a run
/// read it as it is: FILE, or FILE/NAME where there are several in it. 'tar -C fathom-runs -xf
/// FILE' makes folders of it again.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom runs archive 20261121T1307             as NAME.tar.zst in this folder
  fathom runs archive A1 A2 B1 B2 -o ab.tar.zst
  fathom runs archive 1307 --redact -o public.tar.zst
  fathom show ab.tar.zst/A1                     and report, compare, runs, …")]
pub struct Args {
    /// Record folders, or their names or parts of them
    #[arg(value_name = "RUN", required = true)]
    run: Vec<String>,
    /// Give pseudonyms (host-1, serial-1) to serial numbers, WWNs, hosts, users, paths and
    /// addresses, in every file of the runs
    #[arg(long)]
    redact: bool,
    /// Write it there [default: the name of the one run with .tar.zst]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document {
    /// `fathom.runs-archive/1`
    schema: &'static str,
    file: PathBuf,
    /// Of the file.
    bytes: u64,
    /// Of all files in it.
    unpacked_bytes: u64,
    /// Names of the runs.
    runs: Vec<String>,
}

/// Archives.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut dirs = Vec::new();
    for name in &args.run {
        let dir = show::find_only(global, Some(name))?.canonicalize()?;
        if !dirs.contains(&dir) {
            dirs.push(dir);
        }
    }
    if args.redact {
        dirs = archived::redacted(&dirs)?;
    }
    let runs: Vec<String> = dirs.iter().map(|dir| name_of(dir)).collect();
    if let Some(twice) = (1..runs.len()).find(|&n| runs[..n].contains(&runs[n])) {
        let message = format!("two of the runs have the name {}", runs[twice]);
        return Err(ExitError::new(Exit::Usage, message).into());
    }
    let file = match (&args.out, &runs[..]) {
        (Some(file), _) => file.clone(),
        (None, [one]) => PathBuf::from(format!("{one}{}", archive::ENDING)),
        _ => {
            let message = "what is the file to be called?\n  to do: add --out FILE.tar.zst";
            return Err(ExitError::new(Exit::Usage, message).into());
        }
    };
    may_write(&file)?;
    let (archived, bytes) = write(&dirs, &file)?;
    for path in &archived.left_out {
        out::note(format_args!(
            "fathom: {}: left out: it is no file",
            path.display()
        ));
    }
    if global.json {
        out::json(&Document {
            schema: "fathom.runs-archive/1",
            file,
            bytes,
            unpacked_bytes: archived.bytes,
            runs,
        })?;
    } else if !global.quiet {
        let sizes = [bytes, archived.bytes].map(|bytes| units::bytes(bytes as f64));
        out::line(format_args!(
            "{} ({} of {})",
            file.display(),
            sizes[0],
            sizes[1]
        ));
    }
    Ok(Exit::Success)
}

fn name_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Writes the archive whole or not at all; its size.
fn write(dirs: &[PathBuf], file: &Path) -> anyhow::Result<(archive::ArchivedRuns, u64)> {
    let done = fathom_fleet::named_file::write(file, |to: &mut File| {
        let archived = archive::pack(dirs, &*to).map_err(ArchiveError::Record)?;
        Ok((archived, to.metadata()?.len()))
    });
    match done {
        Ok(done) => Ok(done),
        Err(ArchiveError::Record(error @ RecordError::Busy { .. })) => {
            Err(ExitError::new(Exit::Refused, error).into())
        }
        Err(ArchiveError::Record(error)) => Err(error.into()),
        Err(ArchiveError::File(error)) => {
            Err(error).with_context(|| format!("cannot write {}", file.display()))
        }
    }
}

/// Why there is no archive.
enum ArchiveError {
    Record(RecordError),
    File(std::io::Error),
}

impl From<std::io::Error> for ArchiveError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}
