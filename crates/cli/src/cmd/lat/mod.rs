//! `fathom lat`: statistics of fio's latency logs.

use std::path::{Path, PathBuf};

use fathom_analysis::latlog::Breakdown;
use fathom_logs::latlog::{self, LatLog, Leading};
use fathom_model::Exit;
use fathom_model::value::{self, BareTimeUnit, Base};

use self::read::PopulationRead;
use super::fiolog::LogReading;
use super::{ExitError, Global};
use crate::out;

mod read;
mod save;

/// What standard input is called on the command line.
const STDIN: &str = "-";

/// Show the statistics of fio's latency logs (write_lat_log, write_hist_log)
///
/// For all I/Os, by direction, priority, job and host in any combination: share, IOPS, bandwidth, minimum,
/// maximum, mean, standard deviation and percentiles of the latency. Takes every
/// form of the logs: priorities in hexadecimal (log_prio) or as 0 and 1, with
/// offsets, issue times, windows with their maximum; plain or gzip. The last line
/// is left out when it has no end: fio may still be writing it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Percentiles are exact where all latencies fit the memory (4 bytes each, 8 above
4.29 s); beyond, they come from a histogram and are within 0.79 % of the exact
ones. Those over time always do. docs/LATENCY-LOGS.md has every definition.

Examples:
  fathom lat randread.log_lat.log
  fathom lat randread                                   all jobs' logs of it, as one
  fathom lat randread --by all,job+direction --interval 10s
  fathom lat a_clat_hist.1.log b_clat_hist.1.log --merge
  fathom lat randread --format cdf --head               to draw the distribution
  fathom lat out_lat.*.log --format csv --head
  fathom lat randread.log_lat.log --interval 10s
  ssh host cat randread.log_lat.log | fathom lat -
  fathom lat ~/sdh_cdl_bench --format csv --head        every log of a folder
  fathom lat randread.log_lat.log.gz --json | jq '.files[0].all.percentiles_ns'")]
pub struct Args {
    /// Logs, or - for standard input; prefixes, as fio's options have them; of a folder, all _lat logs in it and below
    #[arg(required = true, value_name = "FILE|PREFIX|DIR")]
    files: Vec<PathBuf>,
    /// The format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: LatencyFormat,
    /// Print a line with the titles of the columns before CSV
    #[arg(long)]
    head: bool,
    /// First column of CSV lines; without, the file when there are several
    #[arg(long, value_name = "TEXT")]
    label: Option<String>,
    /// Take everything that is named as one population; a prefix is one by itself
    #[arg(long)]
    merge: bool,
    /// Which I/Os: all, direction, priority, job, host, together with + (job+direction); without, what differs, in CSV priority
    #[arg(long, value_name = "WHICH", value_delimiter = ',', value_parser = breakdown)]
    by: Vec<Breakdown>,
    /// Also show what happened over time, a line for each TIME, such as 1s or 500ms
    #[arg(long, value_name = "TIME", value_parser = interval)]
    interval: Option<u64>,
    /// Memory for exact percentiles; 0: always a histogram
    #[arg(long, value_name = "SIZE", default_value = "1g", value_parser = memory)]
    memory: usize,
    #[command(flatten)]
    reading: LogReading,
    /// Leave malformed lines out and count them
    #[arg(long)]
    skip_bad: bool,
    /// Also write the latencies of each priority to FILE.PRIORITY.lat, in ns, a line each
    #[arg(long)]
    save_priolat: bool,
    /// Threads; without, one a CPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
}

/// A format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum LatencyFormat {
    /// For people
    #[default]
    Text,
    /// Columns between commas
    Csv,
    /// The distribution: for each latency the percent of I/Os that took at most that, as CSV
    Cdf,
    /// A document with everything, as with --json
    Json,
}

/// `direction+priority`.
fn breakdown(text: &str) -> Result<Breakdown, String> {
    let mut by = Breakdown::ALL;
    for word in text.split('+') {
        match word {
            "all" => {}
            "direction" => by.direction = true,
            "priority" => by.priority = true,
            "job" => by.job = true,
            "host" => by.host = true,
            _ => {
                return Err(
                    "take all, direction, priority, job, host, or several with + between them"
                        .to_owned(),
                );
            }
        }
    }
    Ok(by)
}

fn interval(text: &str) -> Result<u64, String> {
    let us = value::time_us(text, BareTimeUnit::Seconds).map_err(|fault| fault.to_string())?;
    let ms = u64::try_from(us / 1000).unwrap_or(0);
    match ms > 0 && us % 1000 == 0 {
        true => Ok(ms),
        false => Err("a log's time is in whole milliseconds".to_owned()),
    }
}

fn memory(text: &str) -> Result<usize, String> {
    let bytes = value::size(text, Base::Binary).map_err(|fault| fault.to_string())?;
    usize::try_from(bytes).map_err(|_| "less than nothing".to_owned())
}

impl Args {
    fn wants_curves(&self) -> bool {
        self.format == LatencyFormat::Cdf
    }

    /// What stands before the columns of a population's lines.
    fn leading<'l>(&'l self, several: bool, name: &'l str) -> Leading<'l> {
        let label = match &self.label {
            Some(label) => Some(("label", label.as_str())),
            None if several => Some(("file", name)),
            None => None,
        };
        Leading {
            label,
            over_time: self.interval.is_some(),
            host: self.by.iter().any(|by| by.host),
            job: self.by.iter().any(|by| by.job),
            direction: self
                .by
                .iter()
                .any(|by| by.direction && *by != Breakdown::DIRECTION),
        }
    }
}

/// Shows statistics.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let json = global.json || args.format == LatencyFormat::Json;
    let populations = read::populations(args)?;
    let several = populations.len() > 1;
    let logs: Vec<&PathBuf> = populations.iter().flat_map(|one| &one.logs).collect();
    check(&logs, args)?;
    if !json && args.head {
        let leading = args.leading(several, "");
        match args.format {
            LatencyFormat::Csv => out::text(latlog::csv_head(leading)),
            LatencyFormat::Cdf => out::text(latlog::cdf_head(leading)),
            _ => {}
        }
    }
    let mut documents = Vec::new();
    for (number, population) in populations.iter().enumerate() {
        let done = read::read(population, args)?;
        if args.save_priolat {
            for log in &population.logs {
                save::save(global, log, args)?;
            }
        }
        if json {
            documents.push(done);
            continue;
        }
        if number > 0 && args.format == LatencyFormat::Text {
            out::line("");
        }
        show(global, args, several, &done);
        if out::is_stopped() {
            return Ok(Exit::Success);
        }
    }
    if json {
        let logs: Vec<LatLog> = documents.iter().map(shown).collect();
        out::json(&latlog::document(&logs))?;
    }
    Ok(Exit::Success)
}

fn show(global: &Global, args: &Args, several: bool, done: &PopulationRead) {
    let shown = shown(done);
    if args.format == LatencyFormat::Text {
        out::text(latlog::text(&shown, &args.by, out::style(global.color)));
        return;
    }
    for note in &shown.notes {
        out::note(format_args!("{}: {note}", done.name));
    }
    let leading = args.leading(several, &done.name);
    out::text(match args.format {
        LatencyFormat::Cdf => latlog::cdf(&shown, &args.by, leading),
        _ => latlog::csv(&shown, &args.by, leading),
    });
}

fn shown(done: &PopulationRead) -> LatLog<'_> {
    LatLog {
        file: done.name.clone(),
        logs: done.logs.clone(),
        prio: done.prio,
        lines: done.lines,
        skipped: done.skipped,
        notes: done.notes.clone(),
        limits: &done.limits,
        statistics: done.statistics.as_ref(),
    }
}

/// Refuses what cannot be: a pipe is read once, and nothing lies beside it.
fn check(files: &[&PathBuf], args: &Args) -> anyhow::Result<()> {
    let exit = Exit::Usage;
    let stdin = files
        .iter()
        .filter(|file| file.as_path() == Path::new(STDIN));
    if stdin.count() > 1 {
        let message = "standard input (-) can be read only once".to_owned();
        return Err(ExitError::new(exit, message).into());
    }
    let is_pipe =
        |file: &&&PathBuf| file.as_path() == Path::new(STDIN) || file.exists() && !file.is_file();
    if let Some(pipe) = files.iter().find(is_pipe).filter(|_| args.save_priolat) {
        let message = format!(
            "--save-priolat reads a log twice and writes beside it: {} is no file",
            pipe.display()
        );
        return Err(ExitError::new(exit, message).into());
    }
    if args.format == LatencyFormat::Cdf && args.interval.is_some() {
        let message = "--format cdf is of the whole time: not with --interval".to_owned();
        return Err(ExitError::new(exit, message).into());
    }
    Ok(())
}
