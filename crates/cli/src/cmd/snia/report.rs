//! What came of a test: on the terminal, as a document, as pages.

use std::path::{Path, PathBuf};

use fathom_model::{Exit, units};
use fathom_record::now_ms;
use fathom_report::snia::{self, Document};
use serde::Serialize;

use crate::cmd::{ExitError, Global, archived, show, write_named};
use crate::out;

/// Where the pages lie when no place is named.
const FILE_NAME: &str = "snia.html";

/// Arguments of `fathom snia show`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom snia show
  fathom snia show 2026 --json | jq '.tests[].parts[] | {part, ending, window}'")]
pub struct ShowArgs {
    /// A record folder, or its name or a part of it; without, the last run
    run: Option<String>,
}

/// Arguments of `fathom snia report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A browser prints it as PDF, one page a sheet: chromium --headless --print-to-pdf=snia.pdf snia.html

Examples:
  fathom snia report                        the last run, as snia.html in its folder
  fathom snia report 20261121T1307 -o q.html")]
pub struct ReportArgs {
    /// A record folder, or its name or a part of it; without, the last run
    run: Option<String>,
    /// Write it there [default: snia.html in the run's folder]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// The findings of a record.
pub fn read(dir: &Path) -> anyhow::Result<Document> {
    let found = snia::read(dir)?;
    let missing = || {
        ExitError::new(
            Exit::Missing,
            format!(
                "{}: not a fathom snia run\n  to do: fathom runs lists what there is",
                dir.display()
            ),
        )
    };
    Ok(found.ok_or_else(missing)?)
}

/// Shows one run.
pub fn show(global: &Global, args: &ShowArgs) -> anyhow::Result<Exit> {
    let doc = read(&show::find(global, args.run.as_deref())?)?;
    present(global, &doc)?;
    Ok(Exit::Success)
}

/// The document, or its text.
pub fn present(global: &Global, doc: &Document) -> anyhow::Result<()> {
    match global.json {
        true => out::json(doc),
        false => {
            out::text(snia::text(doc, out::style(global.color)));
            Ok(())
        }
    }
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Written {
    /// `fathom.report-file/1`
    schema: &'static str,
    run: String,
    file: PathBuf,
    bytes: u64,
}

/// Writes the pages of one run.
pub fn report(global: &Global, args: &ReportArgs) -> anyhow::Result<Exit> {
    let dir = show::find(global, args.run.as_deref())?;
    let doc = read(&dir)?;
    let file = args
        .out
        .clone()
        .unwrap_or_else(|| archived::beside(&dir, FILE_NAME));
    let mut page = Vec::new();
    snia::write(&doc, now_ms(), &mut page)?;
    write_named(&file, &page)?;
    let bytes = page.len() as u64;
    if global.json {
        out::json(&Written {
            schema: "fathom.report-file/1",
            run: doc.run.clone(),
            file,
            bytes,
        })?;
    } else if !global.quiet {
        let size = units::bytes(bytes as f64);
        out::line(format_args!("{} ({size})", file.display()));
    }
    Ok(Exit::Success)
}
