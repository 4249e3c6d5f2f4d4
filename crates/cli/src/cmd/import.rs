//! `fathom import`: fio's outputs of any age become a record.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_fio_output::import::{self, FioOutput};
use fathom_import::configuration::{self, ImportedLoad};
use fathom_model::{Event, Exit, Outcome, Point, Results, RunStatus, units};
use fathom_record::{Header, RecordError, Writer};
use serde_json::json;

mod beside;
mod fio_tests;
mod sources;

use super::{ExitError, Global, show};
use crate::out;
use beside::{MachinesBeside, time_of};
use sources::{
    MOST_FILES, Source, SourceFormat, input_error, name_of, read_all, results_of_fio_tests,
};

/// Turn outputs of fio and of other tools, or a folder of fio-tests, into a record
///
/// Reads json and json+ (fio 2.x to 3.x, client mode too, also with other text
/// around it), terse v2 to v5, and the normal text output. Of a folder, every
/// file in it and below that fio wrote. Every file becomes a step of one run.
///
/// Results of other tools are read as well: elbencho (CSV, JSON), the text of
/// CrystalDiskMark and KDiskMark, DISKSPD's XML, vdbench's summary, TKperf's XML; and iostat's
/// (`-x -t`) beside a run, of which the report then has the devices. What each of them
/// does not tell is said.
///
/// What varies among all (depth, jobs, block size, mix, host and any other option)
/// makes points and series, which `fathom graph` and `fathom report` draw as curves:
/// from the options that the outputs tell, and from names only where they tell none.
///
/// A folder of fio-tests (job files with .out, .res, .OK, .BAD beside them)
/// becomes a campaign: every test a point, with depth, jobs, block size and
/// batch from its .ini where that is there, else from the names.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom import result.json                 one output of fio
  fathom import before.json after.json      two steps of one run
  fathom import results/ --name qualify     every output in a folder
  fathom import elbencho.csv mark.txt       results of other tools
  fathom import result.json iostat.txt      a run, and what iostat -x -t told meanwhile
  fathom import fio-tests/tests             a whole campaign of fio-tests, or a part of it
  fio --output-format=json+ job.fio | fathom import - --name job

The run is 'failed' when a job in it reported an error, and 'interrupted' when
fio was told to stop; both are imported, with exit code 0. What is damaged in a
folder is named and left out, with exit code 1.")]
pub struct Args {
    /// Outputs of fio or of other tools, or folders of them; '-' reads stdin
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Name of the run [default: that of the first path]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

/// More files than this are summed up.
const MOST_LINES: usize = 8;

/// Imports.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    let first = &args.paths[0];
    let name = args.name.clone().unwrap_or_else(|| name_of(first));
    let mut unread = Vec::new();
    let dir = match results_of_fio_tests(&args.paths)? {
        Some(found) => {
            unread = found.unread;
            let dir = fio_tests::import(global, &name, first, &found.files, &mut unread)?;
            show::present(global, &dir, false)?;
            dir
        }
        None => {
            let sources = read_all(&args.paths, &mut unread)?;
            if sources.iter().all(|source| source.beside.is_some()) {
                let path = sources
                    .first()
                    .map_or(first, |source| &source.path)
                    .display();
                let what = "iostat tells what devices did beside a run; name the run's output, too";
                return Err(input_error(format!("{path}: {what}")));
            }
            let told = Told::of(&sources);
            let recorded = write_record(global, &name, &sources, &told);
            let dir = recorded.map_err(|error| ExitError::new(Exit::Record, error))?;
            show::present(global, &dir, false)?;
            if !global.quiet {
                summary(&sources).iter().for_each(out::note);
                told.series().iter().for_each(out::note);
            }
            dir
        }
    };
    if !global.quiet {
        out::note(format_args!("recorded as {}", dir.display()));
    }
    Ok(tell_unread(&unread))
}

/// Names what could not be read beside what was imported.
fn tell_unread(unread: &[String]) -> Exit {
    for reason in unread.iter().take(MOST_LINES) {
        out::note(format_args!("not imported: {reason}"));
    }
    if let Some(more) = unread
        .len()
        .checked_sub(MOST_LINES)
        .filter(|&more| more > 0)
    {
        out::note(format_args!("and {more} more"));
    }
    match unread {
        [] => Exit::Success,
        _ => Exit::Failed,
    }
}

/// A line a file: `imported result.json: json of fio-3.33, 2 jobs`; of many
/// files a line for each kind there is.
fn summary(sources: &[Source]) -> Vec<String> {
    let kind = |source: &Source| {
        let version = source
            .results
            .iter()
            .find_map(|r| r.engine_version.as_deref());
        let version = version.map_or_else(String::new, |version| format!(" of {version}"));
        format!("{}{version}", source.format)
    };
    let jobs = |source: &Source| -> usize {
        let last = loads(source).into_iter();
        last.map(|report| report.last.jobs.len()).sum()
    };
    if sources.len() > MOST_LINES {
        let mut kinds = BTreeMap::<String, (usize, usize)>::new();
        for source in sources {
            let (files, all) = kinds.entry(kind(source)).or_default();
            *files += 1;
            *all += jobs(source);
        }
        let line = |(kind, (files, jobs))| {
            format!(
                "imported {}: {kind}, {}",
                units::counted(files, "file"),
                units::counted(jobs, "job")
            )
        };
        return kinds.into_iter().map(line).collect();
    }
    let line = |source: &Source| {
        if let Some(log) = &source.beside {
            let (path, reports) = (
                source.path.display(),
                units::counted(log.samples.len(), "report"),
            );
            return format!(
                "imported {path}: {}, {reports} of {}",
                source.format, log.host
            );
        }
        let (path, jobs) = (source.path.display(), units::counted(jobs(source), "job"));
        format!("imported {path}: {}, {jobs}", kind(source))
    };
    sources.iter().map(line).collect()
}

/// A report and those that came before it while its run went on.
struct ImportedReport<'r> {
    name: String,
    states: Vec<&'r Results>,
    last: Cow<'r, Results>,
}

/// All reports of an import, by their source, and the points that they are of.
struct Told<'r> {
    reports: Vec<Vec<ImportedReport<'r>>>,
    points: Vec<Option<Point>>,
}

impl<'r> Told<'r> {
    fn of(sources: &'r [Source]) -> Self {
        let reports: Vec<Vec<ImportedReport>> = sources.iter().map(loads).collect();
        let text = |source: &'r Source| {
            let is_normal = source.format == SourceFormat::Fio(FioOutput::Normal);
            is_normal.then(|| String::from_utf8_lossy(&source.bytes))
        };
        let texts: Vec<Option<Cow<str>>> = sources.iter().map(text).collect();
        let mut all = Vec::new();
        for ((reports, text), source) in reports.iter().zip(&texts).zip(sources) {
            all.extend(reports.iter().map(|report| ImportedLoad {
                of_fio: matches!(source.format, SourceFormat::Fio(_)),
                name: &report.name,
                results: &report.last,
                text: text.as_deref(),
            }));
        }
        let points = configuration::points(&all);
        Self { reports, points }
    }

    /// `24 points in 4 series: iodepth on the x axis`
    fn series(&self) -> Option<String> {
        let points: Vec<&Point> = self.points.iter().flatten().collect();
        let mut series: Vec<&str> = points.iter().map(|point| point.series.as_str()).collect();
        series.sort_unstable();
        series.dedup();
        let mut axes: Vec<&str> = points.iter().map(|point| point.x.as_str()).collect();
        axes.sort_unstable();
        axes.dedup();
        let others = match self.points.len() - points.len() {
            0 => String::new(),
            others => format!(
                "; {} say nothing of their load",
                units::counted(others, "report")
            ),
        };
        (!points.is_empty()).then(|| {
            format!(
                "{} in {} series over {}{others}: `fathom graph` draws them",
                units::counted(points.len(), "point"),
                series.len(),
                axes.join(", ")
            )
        })
    }
}

/// The reports of a source; jobs of different loads, one after the other, are reports
/// of their own.
fn loads(source: &Source) -> Vec<ImportedReport<'_>> {
    let mut all = Vec::new();
    if let SourceFormat::Other(_) = source.format {
        let name = |of: &Results| match (&source.results[..], &of.jobs[..]) {
            ([_, _, ..], [job, ..]) => format!("{}/{}", source.step, job.name),
            _ => source.step.clone(),
        };
        all.extend(source.results.iter().map(|of| ImportedReport {
            name: name(of),
            states: Vec::new(),
            last: Cow::Borrowed(of),
        }));
        return all;
    }
    for report in reports(source) {
        if !configuration::one_after_the_other(&report.last) {
            all.push(report);
            continue;
        }
        for job in &report.last.jobs {
            let alone = Results {
                jobs: vec![job.clone()],
                // What the disks did is known of all jobs together.
                disks: Vec::new(),
                ..report.last.clone().into_owned()
            };
            all.push(ImportedReport {
                name: format!("{}/{}", report.name, job.name),
                states: Vec::new(),
                last: Cow::Owned(alone),
            });
        }
    }
    all
}

/// The runs that a file tells of.
fn reports(source: &Source) -> Vec<ImportedReport<'_>> {
    let mut all: Vec<ImportedReport> = Vec::new();
    for results in &source.results {
        match all.last_mut() {
            Some(report) if import::is_later_state(&report.last, results) => {
                if let Cow::Borrowed(last) = report.last {
                    report.states.push(last);
                }
                report.last = Cow::Borrowed(results);
            }
            _ => all.push(ImportedReport {
                name: source.step.clone(),
                states: Vec::new(),
                last: Cow::Borrowed(results),
            }),
        }
    }
    let several = all.len() > 1;
    for (nth, report) in all.iter_mut().enumerate().filter(|_| several) {
        report.name = format!("{} #{}", source.step, nth + 1);
    }
    all
}

fn write_record(
    global: &Global,
    name: &str,
    sources: &[Source],
    told: &Told,
) -> Result<PathBuf, RecordError> {
    let mut header = Header::new(name, "import");
    header.facts.insert("files".to_owned(), facts(sources));
    let mut writer = Writer::create(&global.runs, &header)?;
    let mut status = RunStatus::Complete;
    let of = told.points.len() as u32;
    let reports = told.reports.iter().flatten();
    let machines = MachinesBeside::of(
        sources.iter().filter_map(|source| source.beside.as_ref()),
        reports.filter_map(|report| time_of(&report.last)),
    );
    let mut step = 0;
    for (nth, (source, reports)) in sources.iter().zip(&told.reports).enumerate() {
        keep_raw(&writer, nth, source)?;
        for report in reports {
            let point = told.points[step as usize].clone().map(Box::new);
            step += 1;
            let name = report.name.clone();
            // Where something was measured beside it, it stands at its own time.
            let time = time_of(&report.last).filter(|_| !machines.is_empty());
            let begin = Event::Step {
                step,
                of,
                name,
                point,
            };
            append_when(&mut writer, time.map(|time| time.0), &begin)?;
            if append_report(&mut writer, report, time.map(|time| time.1))? == Outcome::Failed {
                status = RunStatus::Failed;
            }
        }
        for warning in &source.warnings {
            if warning.contains("terminating on signal") && status == RunStatus::Complete {
                status = RunStatus::Interrupted;
            }
            let text = if sources.len() > 1 {
                format!("{}: {warning}", source.step)
            } else {
                warning.clone()
            };
            writer.append(&Event::Note { text })?;
        }
    }
    for text in &machines.notes {
        writer.append(&Event::Note { text: text.clone() })?;
    }
    machines.write(writer.dir())?;
    writer.finish(status)
}

/// Appends what happened at this time, or now.
fn append_when(writer: &mut Writer, at_ms: Option<u64>, event: &Event) -> Result<(), RecordError> {
    match at_ms {
        Some(at_ms) => writer.append_at(at_ms, event),
        None => writer.append(event),
    }
}

/// The states and figures of a step, and its end.
fn append_report(
    writer: &mut Writer,
    report: &ImportedReport,
    end_ms: Option<u64>,
) -> Result<Outcome, RecordError> {
    for &state in &report.states {
        let results = Box::new(state.clone());
        append_when(writer, end_ms, &Event::Status { results })?;
    }
    let mut outcome = Outcome::Complete;
    for failure in import::failures(&report.last) {
        outcome = Outcome::Failed;
        append_when(writer, end_ms, &Event::Failure(failure))?;
    }
    let results = Box::new(report.last.clone().into_owned());
    append_when(writer, end_ms, &Event::Finished { results })?;
    append_when(writer, end_ms, &Event::StepEnded { outcome })?;
    Ok(outcome)
}

/// Where the figures came from, for the record's header.
fn facts(sources: &[Source]) -> serde_json::Value {
    let fact = |source: &Source| {
        let last = source.results.last();
        json!({
            "path": source.path,
            "format": source.format.to_string(),
            "bytes": source.bytes.len(),
            "engine_version": last.and_then(|r| r.engine_version.clone()),
            "timestamp_ms": last.and_then(|r| r.timestamp_ms),
        })
    };
    sources.iter().map(fact).collect()
}

/// Keeps the file itself: what is read from it can be read again.
fn keep_raw(writer: &Writer, nth: usize, source: &Source) -> Result<(), RecordError> {
    let name = match source.path.file_name() {
        Some(name) if source.path != Path::new("-") => name.to_string_lossy().into_owned(),
        _ => "stdin".to_owned(),
    };
    let path = writer.raw_dir()?.join(format!("{:04}-{name}", nth + 1));
    fs::write(&path, &source.bytes).map_err(|source| RecordError::File { path, source })
}
