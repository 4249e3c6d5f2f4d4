//! `fathom demo`: a recorded campaign to look at.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Parser as _;
use fathom_model::Exit;
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};

use super::{Cli, ExitError, Global, dispatch};
use crate::out;

/// The record, packed by tools/record-demo.sh.
const PACKED: &[u8] = include_bytes!("../../../../campaigns/demo/record.json.gz");
/// Where runs lie in a folder, as `--runs` has it when nothing is said.
const RUNS: &str = "fathom-runs";
/// The commands that draw it.
const DRAWING: [&str; 2] = ["graph", "report"];

/// Unpack a recorded campaign and draw it
///
/// Random reads and a mix of 70 % reads, over I/O depths and over jobs, on a loop
/// device that the kernel held to 16,000 reads and 16,000 writes a second: every
/// curve has its knee there. With --json it is unpacked only.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom demo                    into ./fathom-demo
  fathom demo /tmp/look
  cd fathom-demo && fathom show  the tables; 'fathom export ssv' the columns")]
pub struct Args {
    /// Folder; made when it is missing
    #[arg(value_name = "DIR", default_value = "fathom-demo")]
    dir: PathBuf,
}

/// The files of a record by their path in it.
#[derive(Debug, Deserialize)]
struct Packed {
    /// Name of the record's folder.
    id: String,
    files: BTreeMap<PathBuf, String>,
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document<'d> {
    /// `fathom.demo/1`
    schema: &'static str,
    /// The record.
    run: &'d Path,
}

/// Unpacks.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let packed: Packed = serde_json::from_reader(GzDecoder::new(PACKED))
        .context("the demo in this program is damaged")?;
    let record = args.dir.join(RUNS).join(&packed.id);
    if record.exists() {
        let message = format!(
            "{}: is there already; remove it or choose another folder: fathom demo DIR",
            record.display()
        );
        return Err(ExitError::new(Exit::Input, message).into());
    }
    for (path, text) in &packed.files {
        let path = record.join(path);
        let folder = path.parent().unwrap_or(&record);
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if global.json {
        out::json(&Document {
            schema: "fathom.demo/1",
            run: &record,
        })?;
        return Ok(Exit::Success);
    }
    for command in DRAWING {
        let runs = args.dir.join(RUNS);
        let words = ["fathom".as_ref(), "--runs".as_ref(), runs.as_os_str()];
        let more = [command.as_ref(), packed.id.as_ref()];
        dispatch(&Cli::try_parse_from(words.into_iter().chain(more))?)?;
    }
    let dir = args.dir.display();
    out::text(format_args!(
        "\nA recorded campaign is in {dir}. To look at it:\n\n  \
         cd {dir}\n  \
         fathom show          a table for each series; * marks the best points\n  \
         fathom export csv    the same for a spreadsheet\n  \
         fathom report --open everything on one page, in the browser\n  \
         {graphs}\n                       \
         at which depth does bandwidth end, and what does more depth cost?\n",
        graphs = Path::new(RUNS).join(&packed.id).join("graphs").display()
    ));
    Ok(Exit::Success)
}
