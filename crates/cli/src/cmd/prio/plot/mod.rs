//! `fathom prio plot`: the plots of a folder of results.

mod folder;

use std::path::PathBuf;

use fathom_model::Exit;
use fathom_report::graphs::prio::{PrioPlot, of_workload};
use fathom_sheet::graph::Graph;
use serde::Serialize;

use crate::cmd::{ExitError, Global};
use crate::out;
use crate::pictures::{self, PictureFormat, PictureStyle};

/// Draw the results of `fathom prio --outdir` or of cdl_bench
///
/// For every workload in the folder: IOPS, average and 99th percentile of the
/// latency against the queue depth (the baseline, all I/Os, and each class of
/// them), the distribution of the latencies of each class with a line for each
/// depth, and the share of I/Os that missed their limit. What of the folder is
/// damaged or not there yet is told, and the rest drawn.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --save the plots are shown on the desktop. `fathom lat DIR` prints the
statistics of the same folder.

Examples:
  fathom prio plot ~/sdh_cdl_bench                     shown
  fathom prio plot --save ~/sdh_cdl_bench              into ~/sdh_cdl_bench/plots
  fathom prio plot --save --w 1600 --h 1200 results")]
pub struct Args {
    /// Folder of the results, with baseline, ncqprio, cdlsingle or cdlmulti in it
    #[arg(value_name = "DIR")]
    dir: PathBuf,
    /// Save the plots as PNG files in DIR/plots
    #[arg(long)]
    save: bool,
    /// Width in pixels
    #[arg(long, value_name = "N", default_value_t = 800)]
    #[arg(value_parser = clap::value_parser!(u16).range(160..=8000))]
    w: u16,
    /// Height in pixels
    #[arg(long, value_name = "N", default_value_t = 600)]
    #[arg(value_parser = clap::value_parser!(u16).range(160..=8000))]
    h: u16,
    /// Leave malformed lines of logs out and count them
    #[arg(long)]
    skip_bad: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct Document {
    /// `fathom.plots/1`
    schema: &'static str,
    folder: PathBuf,
    /// Names in `folder`.
    files: Vec<String>,
    notes: Vec<String>,
}

/// What is told about the parts of a folder, while they are read.
#[derive(Default)]
struct FolderNotices {
    quiet: bool,
    notes: Vec<String>,
    /// Whether something was damaged.
    damaged: bool,
}

impl FolderNotices {
    fn line(&self, line: &str) {
        if !self.quiet {
            out::line(line);
        }
    }

    fn note(&mut self, note: String) {
        out::note(format_args!("fathom: {note}"));
        self.notes.push(note);
    }
}

/// Draws.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let mut told = FolderNotices {
        quiet: global.quiet || global.json,
        ..FolderNotices::default()
    };
    let found = folder::workloads(&args.dir)?;
    if !args.save {
        // Before minutes of reading.
        pictures::display(&instead(args))?;
    }
    let mut graphs: Vec<Graph> = Vec::new();
    let mut baseline: Option<PrioPlot> = None;
    for found in &found {
        told.line(found.kind.processing);
        let workload = folder::read(found, args.skip_bad, &mut told);
        if workload.depths.is_empty() {
            told.note(format!("{}: no results yet", found.dir.display()));
            continue;
        }
        for step in of_workload(&workload, baseline.as_ref()) {
            told.line(&format!("  Plotting {}", step.what));
            graphs.push(step.graph);
        }
        if workload.stem == "baseline" {
            baseline = Some(workload);
        }
    }
    if graphs.is_empty() {
        let message = format!("nothing to draw in {}", args.dir.display());
        return Err(ExitError::new(Exit::Input, message).into());
    }
    put(global, args, &graphs, &told)?;
    Ok(match told.damaged {
        true => Exit::Failed,
        false => Exit::Success,
    })
}

/// What to do where nothing can be shown.
fn instead(args: &Args) -> String {
    let folder = args.dir.join("plots");
    format!("--save writes them into {}", folder.display())
}

fn put(global: &Global, args: &Args, graphs: &[Graph], told: &FolderNotices) -> anyhow::Result<()> {
    let look = PictureStyle {
        formats: [PictureFormat::Png].into(),
        width: Some(f64::from(args.w)),
        height: Some(f64::from(args.h)),
        scale: 1.0,
        dark: false,
    };
    let folder = args.dir.join("plots");
    if !args.save {
        let title = args.dir.display().to_string();
        let page = pictures::show(graphs, &title, &look, &instead(args))?;
        told.line(&format!("shown: {}", page.display()));
        return Ok(());
    }
    let files = pictures::write_all(&folder, graphs, &look)?;
    if global.json {
        return out::json(&Document {
            schema: "fathom.plots/1",
            folder,
            files,
            notes: told.notes.clone(),
        });
    }
    told.line(&format!("{} plots in {}", files.len(), folder.display()));
    Ok(())
}
