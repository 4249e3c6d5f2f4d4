//! `fathom plot`: plots of fio's logs.

mod find;
mod read;

use std::path::{Path, PathBuf};

use fathom_logs::graphs::{Logs, of_logs};
use fathom_model::Exit;
use fathom_sheet::graph::Graph;
use serde::Serialize;

use self::find::FoundLog;
use super::fiolog::LogReading;
use super::{ExitError, Global};
use crate::out;
use crate::pictures::{self, PictureFormat, PictureStyle};

/// Draw fio's logs: bandwidth, IOPS and latencies over time
///
/// A plot of each kind of log there is (write_bw_log, write_iops_log,
/// write_lat_log), a line for each job; the percentiles of latencies over time, a
/// heat map and the distribution of them, each priority by itself where there are
/// several, from logs of single I/Os or of histograms (write_hist_log).
/// Logs may have any length and form, plain or gzip: what is drawn is reduced to
/// what can be seen, and the highest and lowest values stay. Nothing else is needed.
///
/// The runs that Fathom records have samples instead of logs: `fathom graph` draws
/// those.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --save or --out the plots are shown on the desktop; where there is none
they are saved. docs/PLOTS.md says what each one shows.

Examples:
  fathom plot out                        what write_lat_log=out and others have written
  fathom plot out --save --png           out-lat.png and so on, beside the logs
  fathom plot before after --out ~/plots two runs, their jobs in one plot each
  fathom plot out_lat.*.log.gz           only these logs
  fathom plot .                          all logs of this folder")]
pub struct Args {
    /// Prefixes of logs, as fio's options have them; logs; or folders of logs
    #[arg(required = true, value_name = "PREFIX|FILE|DIR")]
    logs: Vec<PathBuf>,
    /// Write the plots beside the logs
    #[arg(long)]
    save: bool,
    /// Write the plots into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write SVG, the default: sharp at every size
    #[arg(long)]
    svg: bool,
    /// Write PNG; with --svg both
    #[arg(long)]
    png: bool,
    /// Width in pixels [default: 900]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(160..=8000))]
    width: Option<u16>,
    /// Height in pixels [default: what suits each plot]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(160..=8000))]
    height: Option<u16>,
    /// Light on dark
    #[arg(long)]
    dark: bool,
    /// A line for each job, also of more than 8: their sum and a band otherwise
    #[arg(long)]
    lines: bool,
    #[command(flatten)]
    reading: LogReading,
    /// Leave malformed lines out and count them
    #[arg(long)]
    skip_bad: bool,
    /// Threads; without, one a CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document {
    /// `fathom.plots/1`
    schema: &'static str,
    folder: PathBuf,
    /// Names in `folder`.
    files: Vec<String>,
    notes: Vec<String>,
}

/// Draws.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let found = find::logs(global, &args.logs)?;
    let read = read::all(&found, args.reading, args.skip_bad, args.threads);
    for error in &read.failed {
        out::note(format_args!("fathom: {error}; not drawn"));
    }
    let logs = Logs {
        name: find::name(&found),
        logs: read.logs,
        bin_error_percent: read.bin_error_percent,
        lines: args.lines,
    };
    let drawn = of_logs(&logs);
    if drawn.is_empty() {
        let exit = match read.failed.is_empty() {
            true => Exit::Missing,
            false => Exit::Input,
        };
        let message = "nothing to draw: no log has a whole line".to_owned();
        return Err(ExitError::new(exit, message).into());
    }
    let notes = read.notes;
    notes.iter().for_each(out::note);
    put(global, args, &found, &logs.name, &drawn, notes)?;
    Ok(match read.failed.is_empty() {
        true => Exit::Success,
        false => Exit::Failed,
    })
}

fn look(args: &Args) -> PictureStyle {
    let png = args.png.then_some(PictureFormat::Png);
    let svg = (args.svg || !args.png).then_some(PictureFormat::Svg);
    PictureStyle {
        formats: svg.into_iter().chain(png).collect(),
        width: args.width.map(f64::from),
        height: args.height.map(f64::from),
        scale: 1.0,
        dark: args.dark,
    }
}

/// Shows the plots, or writes them.
fn put(
    global: &Global,
    args: &Args,
    found: &[FoundLog],
    name: &str,
    drawn: &[Graph],
    notes: Vec<String>,
) -> anyhow::Result<()> {
    let look = look(args);
    // A folder, a format or a document to print are words for files.
    let writes = args.save || args.out.is_some() || args.svg || args.png || global.json;
    if !writes && pictures::has_display() {
        let page = pictures::show(drawn, name, &look, "--save writes them beside the logs")?;
        out::line(format_args!("{}", page.display()));
        return Ok(());
    }
    let folder = args.out.clone().unwrap_or_else(|| beside(found));
    let files = pictures::write_all(&folder, drawn, &look)?;
    if global.json {
        return out::json(&Document {
            schema: "fathom.plots/1",
            folder,
            files,
            notes,
        });
    }
    for file in files {
        out::line(folder.join(file).display());
    }
    Ok(())
}

/// The folder of the first log.
fn beside(found: &[FoundLog]) -> PathBuf {
    let parent = found.first().and_then(|found| found.path.parent());
    parent
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
        .to_owned()
}
