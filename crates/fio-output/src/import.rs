//! Which of fio's outputs a file holds, and what is in it.

use std::fmt;

use fathom_model::{Failure, JobResult, Results, text};

use super::failures::{errno_text_of, is_tolerated, kind_of};
use super::{json, normal, terse};

/// Most messages of fio that are passed on, and the longest one in characters.
const MOST_MESSAGES: usize = 20;
const LONGEST_MESSAGE: usize = 200;

/// An output of fio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioOutput {
    /// `json` and `json+`.
    Json,
    /// `terse`, with its version.
    Terse(u8),
    /// `normal`, the text for people.
    Normal,
}

impl fmt::Display for FioOutput {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Json => f.write_str("json"),
            Self::Terse(version) => write!(f, "terse v{version}"),
            Self::Normal => f.write_str("normal"),
        }
    }
}

/// Why nothing can be read from a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImportError {
    /// There is nothing in it.
    #[error("the file is empty")]
    Empty,
    /// None of fio's outputs is in it.
    #[error("not an output of fio (json, terse or normal): line {line} is '{text}'")]
    NotFio {
        /// First line that is not blank, from 1.
        line: usize,
        /// What stands there.
        text: String,
    },
    /// fio wrote a report without a single job.
    #[error("fio reported no job{}", said(.0))]
    NoJobs(Vec<String>),
    /// There is a JSON document of fio in it, and it cannot be read.
    #[error(transparent)]
    Json(#[from] json::JsonError),
}

fn said(messages: &[String]) -> String {
    match messages {
        [] => String::new(),
        messages => format!("; it said: {}", messages.join("; ")),
    }
}

/// Reads an output of fio: its format, the reports in it in their order, and
/// what is doubtful about them, a sentence each.
///
/// Where a file holds the same figures in several formats the most exact one
/// is read (json, then terse, then normal).
///
/// # Errors
/// When it is no output of fio, or nothing in it can be read.
pub fn read(input: &[u8]) -> Result<(FioOutput, Vec<Results>, Vec<String>), ImportError> {
    if input.iter().all(u8::is_ascii_whitespace) {
        return Err(ImportError::Empty);
    }
    let scan = json::scan(input);
    if !scan.documents.is_empty() || scan.truncated || !scan.malformed.is_empty() {
        return from_json(scan, input.len()).or_else(|error| {
            // Text that only looks like a document may stand in another format.
            from_text(input).ok_or(error)
        });
    }
    from_text(input).ok_or_else(|| {
        let text = String::from_utf8_lossy(input);
        let lines = text.lines().enumerate();
        let mut numbered = lines.map(|(at, line)| (at + 1, line.trim()));
        let first = numbered.find(|(_, line)| !line.is_empty());
        let (line, text) = first.unwrap_or((1, ""));
        ImportError::NotFio {
            line,
            text: shown(text, 60),
        }
    })
}

type Read = (FioOutput, Vec<Results>, Vec<String>);

fn from_json(scan: json::Scan, bytes: usize) -> Result<Read, ImportError> {
    let mut warnings = Vec::new();
    let other = scan.text.join("\n");
    let other = other.as_bytes();
    let (is_terse, is_normal) = (
        terse::parse(other).is_some(),
        normal::parse(other).is_some(),
    );
    for (found, format) in [(is_terse, "terse"), (is_normal, "normal")] {
        if found {
            warnings.push(format!("there is also {format} output in it; json is read"));
        }
    }
    let said = if is_terse || is_normal {
        messages(scan.text.iter().map(String::as_str), true)
    } else {
        messages(scan.text.iter().map(String::as_str), false)
    };
    if scan.truncated {
        warnings.push("a JSON document is cut off; it is left out".to_owned());
    }
    let several = scan.documents.len() > 1;
    let mut all = Vec::new();
    for (nth, document) in scan.documents.into_iter().enumerate() {
        let place = if several {
            format!("document {}: ", nth + 1)
        } else {
            String::new()
        };
        warnings.extend(
            document
                .warnings
                .into_iter()
                .map(|text| place.clone() + &text),
        );
        all.push(document.results);
    }
    if let Some(error) = scan.malformed.into_iter().next() {
        if all.is_empty() {
            return Err(error.into());
        }
        warnings.push(format!("a document is left out: {error}"));
    }
    if all.is_empty() {
        return Err(json::JsonError::Cut { bytes }.into());
    }
    all.retain(|results| !results.jobs.is_empty());
    if all.is_empty() {
        return Err(ImportError::NoJobs(said));
    }
    warnings.extend(said.into_iter().map(|text| format!("fio said: {text}")));
    Ok((FioOutput::Json, all, warnings))
}

fn from_text(input: &[u8]) -> Option<Read> {
    let is_normal = normal::parse(input);
    let (format, all, mut warnings) = match (terse::parse(input), is_normal) {
        (Some(terse), normal) => {
            let mut warnings = terse.warnings;
            if normal.is_some() {
                warnings.push("there is also normal output in it; terse is read".to_owned());
            }
            (
                FioOutput::Terse(terse.version),
                vec![terse.results],
                warnings,
            )
        }
        (None, Some(normal)) => (FioOutput::Normal, normal.results, normal.warnings),
        (None, None) => return None,
    };
    let text = String::from_utf8_lossy(input);
    let said = messages(text.lines(), true);
    warnings.extend(said.into_iter().map(|text| format!("fio said: {text}")));
    Some((format, all, warnings))
}

/// Messages of fio among other lines; `only_marked`: those that begin as
/// messages do, because the other lines are figures.
fn messages<'l>(lines: impl Iterator<Item = &'l str>, only_marked: bool) -> Vec<String> {
    let is_message = |line: &str| {
        let line = match line
            .strip_prefix('<')
            .and_then(|line| line.split_once("> "))
        {
            Some((_host, line)) => line,
            None => line,
        };
        let marks = ["fio: ", "note: ", "client: ", "client <"];
        marks.iter().any(|mark| line.starts_with(mark))
    };
    let mut all: Vec<String> = lines
        .map(str::trim)
        .filter(|line| !line.is_empty() && (!only_marked || is_message(line)))
        .take(MOST_MESSAGES)
        .map(|line| shown(line, LONGEST_MESSAGE))
        .collect();
    all.dedup();
    all
}

/// The beginning of a line, without what would disturb a terminal.
fn shown(line: &str, most: usize) -> String {
    let mut text: String = text::line(line).chars().take(most).collect();
    if line.chars().count() > most {
        text.push('…');
    }
    text
}

/// The failures that a report tells of: a job's first error, unless the job was told to
/// go past it.
pub fn failures(results: &Results) -> Vec<Failure> {
    let failed = results
        .jobs
        .iter()
        .filter(|job| !is_tolerated(results, job));
    failed.filter_map(failure).collect()
}

fn failure(job: &JobResult) -> Option<Failure> {
    if job.error == 0 {
        return None;
    }
    let reason = errno_text_of(job.error);
    let message = match job.total_errors {
        Some(total) => format!("{reason}, {total} failed I/Os in all"),
        None => reason,
    };
    let failure = Failure::new(kind_of(job.error, ""), message).about(&job.name);
    Some(failure.with_errno(job.error))
}

/// Whether `later` is the same run as `earlier`, reported again while it went
/// on (`status-interval`): the same jobs, no count went down, and run times
/// grew by as much as time went by.
pub fn is_later_state(earlier: &Results, later: &Results) -> bool {
    if earlier.jobs == later.jobs {
        return true;
    }
    if earlier.jobs.len() != later.jobs.len() {
        return false;
    }
    let mut longest_growth = 0;
    for (a, b) in earlier.jobs.iter().zip(&later.jobs) {
        match growth(a, b) {
            Some(ms) => longest_growth = longest_growth.max(ms),
            None => return false,
        }
    }
    match (earlier.timestamp_ms, later.timestamp_ms) {
        (Some(a), Some(b)) => {
            // In client mode, and in old versions, whole seconds.
            let is_coarse = a % 1000 == 0 && b % 1000 == 0;
            let tolerance = if is_coarse { 1200 } else { 300 };
            b >= a && longest_growth.abs_diff(b - a) <= tolerance
        }
        // Runs of the same length differ by a few ms.
        _ => longest_growth >= 500,
    }
}

/// By how many ms a job ran on from one report to the next; `None` when it is
/// another job or something went back.
fn growth(a: &JobResult, b: &JobResult) -> Option<u64> {
    let key = |job: &JobResult| (job.name.clone(), job.group, job.hostname.clone(), job.port);
    if key(a) != key(b) {
        return None;
    }
    let mut longest = 0;
    for (dir, before) in a.directions() {
        let (_, after) = b.directions().find(|(other, _)| *other == dir)?;
        after.total_ios.checked_sub(before.total_ios)?;
        after.io_bytes.checked_sub(before.io_bytes)?;
        longest = longest.max(after.runtime_ms.checked_sub(before.runtime_ms)?);
    }
    for (dir, after) in b.directions() {
        if !a.directions().any(|(other, _)| other == dir) {
            longest = longest.max(after.runtime_ms);
        }
    }
    Some(longest)
}
