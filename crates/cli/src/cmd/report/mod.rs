//! `fathom report`: one recorded run as one HTML file, or as a page that follows it.

mod baselines;
pub mod live;

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;

use anyhow::Context;
use fathom_model::{Exit, RunStatus, units};
use fathom_report::html::{self, AgainstBaseline, HtmlError, PageExtras};
use serde::Serialize;

use super::{Global, answered, archived, pages, show};
use crate::http::{ListenAddress, Request, Response, Server};
use crate::out;
use crate::pictures;

use baselines::WantedBaselines;
use live::{LivePage, RecordState};

/// The port of a live report where none is told: the one behind that of fio's servers.
const PORT: u16 = 8766;
/// Where the report lies when no place is named.
const FILE_NAME: &str = "report.html";
/// Of one that does not say whose the run is.
const REDACTED: &str = "report.redacted.html";

/// Write one HTML file with everything about a run
///
/// Figures, graphs to zoom into, samples, failures, doubts, environment and job files, in one
/// file that needs no network and opens from a disk or as an attachment.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A run that goes on, or was killed, is reported as far as it went.

Examples:
  fathom report                           the last run, as report.html in its folder
  fathom report --open                    and shown in the browser
  fathom report --baseline mydisk         with the figures in percent of a baseline
  fathom report --redact -o public.html   without names of hosts, users, drives and paths
  fathom report 20261121T1307 -o qd.html  that run, somewhere else
  fathom report --out - | ssh web 'cat > run.html'
  fathom report --live                    a page that follows a run while it goes on
  ssh -L 8766:localhost:8766 lab1 fathom --runs /srv/runs report --live")]
pub struct Args {
    /// A record folder, or its name or a part of it; without, the last run
    run: Option<String>,
    /// Write it there; '-' is stdout [default: report.html in the run's folder]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Give pseudonyms (host-1, serial-1) to serial numbers, WWNs, hosts, users, paths and
    /// addresses, to show it to others [default file: report.redacted.html]
    #[arg(long)]
    redact: bool,
    /// Measure the run against this baseline ('fathom baseline'), on the first screen; several
    /// with commas or repeated [default: of the quick series HDD]
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    baseline: Vec<String>,
    /// Serve it as a page that follows the run while it goes on, until Ctrl-C
    /// [default ADDR: 127.0.0.1:8766, or any port that is free]
    #[arg(long, value_name = "ADDR", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", conflicts_with_all = ["out", "redact"])]
    live: Option<ListenAddress>,
    /// Show it in the browser
    #[arg(long)]
    open: bool,
}

/// What `--json` prints.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(in crate::cmd) struct Document {
    /// `fathom.report-file/1`
    schema: &'static str,
    run: String,
    file: PathBuf,
    bytes: u64,
}

/// Writes the report of one run.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let own = show::find(global, args.run.as_deref())?;
    let baselines = WantedBaselines::named(&args.baseline)?;
    if let Some(address) = &args.live {
        return follow(
            global,
            address,
            args.open,
            LivePage::new(own.clone(), baselines),
            &own,
        );
    }
    let (dir, name) = match args.redact {
        true => (
            archived::redacted(slice::from_ref(&own))?.remove(0),
            REDACTED,
        ),
        false => (own.clone(), FILE_NAME),
    };
    let page = WrittenPage {
        dir,
        against: baselines.against(&own)?,
    };
    if args.out.as_deref() == Some(Path::new("-")) {
        return to_stdout(global, &page);
    }
    let file = args
        .out
        .clone()
        .unwrap_or_else(|| archived::beside(&own, name));
    crate::cmd::may_write(&file)?;
    if fathom_fleet::named_file::is_stream(&file) {
        // Nothing takes the place of a pipe or of /dev/stderr.
        let pipe =
            fathom_fleet::named_file::stream(&file).with_context(|| file.display().to_string())?;
        page.write(&mut BufWriter::with_capacity(1 << 20, pipe))?;
        return Ok(Exit::Success);
    }
    let bytes = to_file(&page, &file)?;
    if global.json {
        out::json(&Document {
            schema: "fathom.report-file/1",
            run: fathom_record::Entries::open(&page.dir)?.id(),
            file: file.clone(),
            bytes,
        })?;
    } else if !global.quiet {
        out::line(format_args!(
            "{} ({})",
            file.display(),
            units::bytes(bytes as f64)
        ));
    }
    if args.open {
        pictures::open(file.as_os_str()).map_err(|error| {
            anyhow::anyhow!(
                "{} is written, and {error}; open it in any browser",
                file.display()
            )
        })?;
    }
    Ok(Exit::Success)
}

/// A page that is written once.
struct WrittenPage {
    dir: PathBuf,
    against: Vec<AgainstBaseline>,
}

impl WrittenPage {
    fn write(&self, out: &mut impl Write) -> Result<(), HtmlError> {
        let extras = PageExtras {
            against: &self.against,
            answer: Some(&answered::of(&self.dir)),
            ..PageExtras::default()
        };
        html::write_with(&self.dir, extras, out)?;
        Ok(out.flush()?)
    }
}

/// Serves the page until somebody ends it, and says when the run has ended.
fn follow(
    global: &Global,
    address: &ListenAddress,
    open: bool,
    page: LivePage,
    dir: &Path,
) -> anyhow::Result<Exit> {
    // What cannot be read is told here, not in a browser.
    let mut status = RecordState::of(dir)?.status;
    let server = Server::bind_or_any(address, PORT)?;
    let answer = move |request: &Request| match request.path.as_str() {
        "/" => page.page(),
        "/state" => page.state(),
        _ => Response::not_found(),
    };
    let tell = |status: RunStatus| {
        if status != RunStatus::Running && !global.quiet {
            out::note(format_args!("the run has ended: {status}; its page stays"));
        }
    };
    let mut has_told = false;
    pages::serve(global, server, open, Arc::new(answer), &mut || {
        // A record that is gone is told by the page.
        let now = RecordState::of(dir).map_or(status, |state| state.status);
        if now != status || !has_told {
            tell(now);
        }
        (status, has_told) = (now, true);
    })
}

/// The whole page goes to stdout; a closed pipe ends it quietly.
fn to_stdout(global: &Global, page: &WrittenPage) -> anyhow::Result<Exit> {
    anyhow::ensure!(!global.json, "--json and --out - both want stdout");
    struct Stdout;
    impl Write for Stdout {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            out::bytes(bytes);
            match out::is_stopped() {
                true => Err(io::ErrorKind::BrokenPipe.into()),
                false => Ok(bytes.len()),
            }
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    match page.write(&mut BufWriter::new(Stdout)) {
        // Why stdout is closed is told at the end of the program.
        Err(HtmlError::Write(_)) => Ok(Exit::Success),
        written => Ok(written.map(|()| Exit::Success)?),
    }
}

/// Writes the page and puts it in place whole: one that is shown somewhere is never half
/// a page. Gives its size.
fn to_file(page: &WrittenPage, file: &Path) -> anyhow::Result<u64> {
    let written = fathom_fleet::named_file::write(file, |out| {
        let mut out = BufWriter::with_capacity(1 << 20, out);
        page.write(&mut out)?;
        Ok::<u64, HtmlError>(out.get_ref().metadata()?.len())
    });
    written.with_context(|| format!("cannot write {}", file.display()))
}
