//! Results of fio-tests, as its folders hold them: for every job file `X.ini`
//! that ran an output of fio (`X.ini.out`: terse version 3; `X.ini.json` where it
//! looked for a steady state), six figures taken from it (`X.ini.res`), and the
//! exit code of fio in `X.ini.OK` or `X.ini.BAD`.

pub(crate) mod names;
mod res;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use fathom_device::regular;
use fathom_fio_output::failures::{Evidence, FioEnd, judge};
use fathom_fio_output::import::{self, FioOutput};
use fathom_jobfile::variables::variable;
use fathom_jobfile::{JobFile, table};
use fathom_model::{Failure, FailureKind, Point, Results};

/// Larger files are no reports of fio.
const BYTES_MAX: u64 = 1 << 30;
/// What fio-tests leaves of a job file, and what it says.
const ENDINGS: [(&str, TestKind); 6] = [
    (".ini", TestKind::JobFile),
    (".ini.out", TestKind::Out),
    (".ini.json", TestKind::Json),
    (".ini.res", TestKind::Res),
    (".ini.OK", TestKind::Ok),
    (".ini.BAD", TestKind::Bad),
];
/// What it writes in place of an output when it only pretends to run.
const DRY_RUN: &[u8] = b"This test never ran";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TestKind {
    JobFile,
    Out,
    Json,
    Res,
    Ok,
    Bad,
}

/// Why a folder cannot be read as results of fio-tests.
#[derive(Debug, thiserror::Error)]
pub enum FioTestsError {
    /// A file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// One test, run or not.
#[derive(Debug)]
pub struct FioTestsTest {
    /// Its job file without the ending, below the folder of all tests.
    pub name: String,
    /// The point it measured; `None` for pre-conditioning, rounds of the SNIA
    /// tests, and when neither names nor a job file tell depth or jobs.
    pub point: Option<Point>,
    /// The figures, where there are any.
    pub results: Option<Results>,
    /// Which output they are from: `terse v3`, `json`, `.res`.
    pub format: String,
    /// What went wrong.
    pub failures: Vec<Failure>,
    /// Why there is no measurement although nothing went wrong.
    pub not_run: Option<String>,
    /// What is to know of it, a sentence each.
    pub notes: Vec<String>,
    /// The job file.
    pub job_file: Option<PathBuf>,
    /// What the figures were read from.
    pub source: Option<PathBuf>,
}

/// The files of one test by their kind.
type Files = BTreeMap<TestKind, PathBuf>;

/// Whether files are results of fio-tests: exit codes, figures beside outputs,
/// or outputs whose names tell depth and jobs.
pub fn are_results(files: &[PathBuf]) -> bool {
    files.iter().any(|path| match split(path) {
        Some((_, TestKind::Ok | TestKind::Bad | TestKind::Res)) => true,
        Some((stem, TestKind::Out)) => {
            let told = names::settings(&stem);
            told.contains_key("iodepth") && told.contains_key("numjobs")
        }
        _ => false,
    })
}

/// Reads every test among `files`, which lie in `root` or below it, in the order
/// of their names, and why others among them cannot be read. Other files are passed
/// over.
pub fn read(root: &Path, files: &[PathBuf]) -> (Vec<FioTestsTest>, Vec<FioTestsError>) {
    let absolute = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let above = names::numbered_end(&absolute);
    let mut found: BTreeMap<String, Files> = BTreeMap::new();
    for path in files {
        let below = path.strip_prefix(root).unwrap_or(path);
        let Some((stem, kind)) = split(below) else {
            continue;
        };
        let id = match above.as_str() {
            "" => stem.strip_prefix("tests/").unwrap_or(&stem).to_owned(),
            above => format!("{above}/{stem}"),
        };
        found.entry(id).or_default().insert(kind, path.clone());
    }
    let (mut tests, mut unread) = (Vec::new(), Vec::new());
    for (id, files) in found {
        match test(id, &files) {
            Ok(test) => tests.push(test),
            Err(error) => unread.push(error),
        }
    }
    set_x(&mut tests);
    (tests, unread)
}

/// A path without the ending that fio-tests gave it, and which it was.
fn split(path: &Path) -> Option<(String, TestKind)> {
    let text = path.to_str()?;
    let (ending, kind) = ENDINGS.iter().find(|(ending, _)| text.ends_with(ending))?;
    Some((text.strip_suffix(ending)?.to_owned(), *kind))
}

fn read_file(path: &Path) -> Result<Vec<u8>, FioTestsError> {
    regular::read(path, BYTES_MAX).map_err(|source| FioTestsError::File {
        path: path.to_owned(),
        source,
    })
}

fn test(id: String, files: &Files) -> Result<FioTestsTest, FioTestsError> {
    let mut settings = names::settings(&id);
    if let Some(path) = files.get(&TestKind::JobFile) {
        settings.extend(written(&read_file(path)?, path));
    }
    let known = settings.contains_key("iodepth") || settings.contains_key("numjobs");
    let series = id.rsplit_once('/').map_or("", |(folder, _)| folder);
    let point = (known && !names::is_preparation(&id)).then(|| Point {
        id: id.clone(),
        series: series.to_owned(),
        x: String::new(),
        settings,
        repetition: 1,
    });
    let mut test = FioTestsTest {
        name: id,
        point,
        results: None,
        format: String::new(),
        failures: Vec::new(),
        not_run: None,
        notes: Vec::new(),
        job_file: files.get(&TestKind::JobFile).cloned(),
        source: None,
    };
    test.take_results(files)?;
    Ok(test)
}

/// The options of a job file that tell points from one another: those of its
/// first job that Fathom's own points have too.
fn written(bytes: &[u8], path: &Path) -> Vec<(String, String)> {
    const TOLD: [&str; 8] = [
        "rw",
        "rwmixread",
        "bs",
        "iodepth",
        "numjobs",
        "iodepth_batch_submit",
        "iodepth_batch_complete_min",
        "iodepth_batch_complete_max",
    ];
    let text = String::from_utf8_lossy(bytes);
    let checked = JobFile::parse(&text, path, &variable);
    let Some(job) = checked.file.jobs().into_iter().next() else {
        return Vec::new();
    };
    let named = job.options.iter().filter_map(|option| {
        let canonical = |name| table::table().canonical(name);
        let name = canonical(&option.name);
        let told = TOLD.iter().find(|told| canonical(told) == name)?;
        Some(((*told).to_owned(), option.value.clone()?))
    });
    named.collect()
}

impl FioTestsTest {
    fn take_results(&mut self, files: &Files) -> Result<(), FioTestsError> {
        let output = [TestKind::Out, TestKind::Json]
            .iter()
            .find_map(|kind| files.get(kind));
        let figures = match files.get(&TestKind::Res) {
            Some(path) => res::parse(&read_file(path)?),
            None => None,
        };
        let mut unreadable = None;
        let mut messages = Vec::new();
        if let Some(path) = output {
            let bytes = read_file(path)?;
            if bytes.starts_with(DRY_RUN) {
                self.not_run = Some("fio-tests only pretended to run it (dry run)".to_owned());
                return Ok(());
            }
            messages = said(&bytes);
            match import::read(&bytes) {
                Ok((format, all, warnings)) => {
                    self.notes = warnings;
                    self.take_output(path, format, all, figures.as_ref());
                }
                Err(error) => unreadable = Some(error.to_string()),
            }
        }
        let (has_ok, has_bad) = (
            files.contains_key(&TestKind::Ok),
            files.contains_key(&TestKind::Bad),
        );
        if self.results.is_none()
            && let (Some(figures), Some(path), false) =
                (figures, files.get(&TestKind::Res), has_bad)
        {
            self.results = Some(figures.results());
            self.source = Some(path.clone());
            self.format = ".res".to_owned();
            return Ok(());
        }
        if output.is_none() && !has_ok && !has_bad {
            self.not_run = Some("there are no results of it".to_owned());
            return Ok(());
        }
        // With both, of two attempts, what the output itself says decides.
        let code = match (has_ok, has_bad) {
            (true, true) => 0,
            _ => exit_code(files)?,
        };
        self.judge(code, &messages, unreadable);
        if has_ok && has_bad && self.failures.is_empty() {
            let text = "has .OK and .BAD, of two attempts; its figures are good";
            self.notes.push(text.to_owned());
        }
        Ok(())
    }

    /// The last of the reports in an output counts: fio-tests has fio report
    /// while it runs, too.
    fn take_output(
        &mut self,
        path: &Path,
        format: FioOutput,
        all: Vec<Results>,
        figures: Option<&res::SsvFigures>,
    ) {
        let mut results = all.into_iter().next_back().unwrap_or_default();
        last_states(&mut results);
        if let (FioOutput::Terse(_), Some(figures)) = (format, figures)
            && !figures.agree_with(&results)
        {
            let text = "its .res says something else than its output; the output is read";
            self.notes.push(text.to_owned());
        }
        self.format = format.to_string();
        self.source = Some(path.to_owned());
        self.results = Some(results);
    }

    fn judge(&mut self, code: i32, messages: &[String], unreadable: Option<String>) {
        let verdict = judge(&Evidence {
            end: FioEnd::Exited(code),
            stopped: false,
            messages,
            results: self.results.as_ref(),
            normal: "",
            cut: false,
            unreadable,
            expected: &[],
        });
        self.failures = verdict.failures;
        if verdict.ended_from_outside {
            let what = "fio was told to end before its time";
            self.failures.push(Failure::new(FailureKind::Other, what));
        }
    }
}

/// The exit code in `.OK` or `.BAD`; 0 when neither is there, 1 when the one
/// that tells of a failure cannot be understood.
fn exit_code(files: &Files) -> Result<i32, FioTestsError> {
    for (kind, otherwise) in [(TestKind::Bad, 1), (TestKind::Ok, 0)] {
        if let Some(path) = files.get(&kind) {
            let bytes = read_file(path)?;
            let code = String::from_utf8_lossy(&bytes).trim().parse::<i32>();
            let code = code.unwrap_or(otherwise);
            // What `.BAD` says is not good even with a 0 in it.
            return Ok(if kind == TestKind::Bad {
                code.max(1)
            } else {
                code
            });
        }
    }
    Ok(0)
}

/// fio's messages, which can stand amid a line of figures.
fn said(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let message = |line: &str| line.find("fio: ").map(|at| line[at..].to_owned());
    text.lines().filter_map(message).collect()
}

/// Of lines that a terse output has of one job, the last: the others are states
/// that were reported while it ran.
fn last_states(results: &mut Results) {
    let alone = |job| Results {
        jobs: vec![job],
        ..Results::default()
    };
    let mut kept: Vec<Results> = Vec::new();
    for job in std::mem::take(&mut results.jobs) {
        let job = alone(job);
        match kept.last_mut() {
            Some(last) if import::is_later_state(last, &job) => *last = job,
            _ => kept.push(job),
        }
    }
    results.jobs = kept.into_iter().flat_map(|one| one.jobs).collect();
}

/// Fills in the x axes, which only all points of a series together tell.
fn set_x(tests: &mut [FioTestsTest]) {
    let mut all: BTreeMap<String, Vec<BTreeMap<String, String>>> = BTreeMap::new();
    for point in tests.iter().filter_map(|test| test.point.as_ref()) {
        let known = all.entry(point.series.clone()).or_default();
        known.push(point.settings.clone());
    }
    let x: BTreeMap<&str, &str> = all
        .iter()
        .map(|(series, known)| (series.as_str(), names::x_of(series, known.iter())))
        .collect();
    for point in tests.iter_mut().filter_map(|test| test.point.as_mut()) {
        point.x = x[point.series.as_str()].to_owned();
    }
}
