//! Steps of job files: the files are read and checked with the plan file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_campaign::error::{Fault, FilePosition, meant};
use fathom_jobfile::table::{nearest, table};
use fathom_jobfile::{CheckedJobFile, JobFile, Severity, spec};
use fathom_model::{Direction, JobSpec};
use serde::{Deserialize, Serialize};

use super::expand::{ExpandedStep, is_inline};
use super::fields::{StudyFields, StudyReader};
use super::tree::TomlNode;

/// A step of job files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StudyJob {
    /// The job file.
    pub source: JobSource,
    /// Options to set in every job, in order.
    pub set: Vec<(String, String)>,
    /// The sections to run; all where there are none.
    pub sections: Vec<String>,
    /// Time after which the step is stopped.
    pub timeout: Option<Duration>,
}

/// Where the jobs of a step are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobSource {
    /// In a file.
    File(PathBuf),
    /// In the plan file: the text of a job file.
    Text(String),
}

/// What is known of a job before it runs.
#[derive(Debug, Clone)]
pub(super) struct PlannedJob {
    pub(super) name: String,
    /// What it does; `None`: that shows only when it runs.
    pub(super) directions: Option<Vec<Direction>>,
}

/// Reads a step of job files.
pub(super) fn job(reading: &mut StudyReader, step: &ExpandedStep) -> (StudyJob, Vec<PlannedJob>) {
    let fields = StudyFields(&step.node);
    let text = fields.text("job").unwrap_or_default();
    let source = match is_inline(text) {
        true => JobSource::Text(text.to_owned()),
        false => JobSource::File(reading.path(text)),
    };
    let file = file(reading, step, &source);
    let set = settings(reading, step.node.get("set"));
    let found = StudyJob {
        source,
        set,
        sections: fields.texts("section"),
        timeout: fields.time("timeout"),
    };
    let jobs = file.map_or_else(Vec::new, |file| planned(reading, step, file, &found));
    (found, jobs)
}

/// The job file, if nothing is wrong with it.
fn file(reading: &mut StudyReader, step: &ExpandedStep, source: &JobSource) -> Option<JobFile> {
    let node = step.written.get("job")?;
    let at = node.span.start;
    // Messages about a text in the plan file name that file.
    let inline = reading.folder.join("job");
    let checked = match source {
        JobSource::File(path) => match read(reading, path) {
            Ok(checked) => checked,
            Err(error) => {
                let near = similar(path);
                reading.fault(at, format!("job: {}: {error}{near}", path.display()));
                return None;
            }
        },
        JobSource::Text(text) => parsed(reading, text, &inline),
    };
    for found in &checked.diagnostics {
        if found.severity != Severity::Error {
            continue;
        }
        let near = found.suggestion.as_ref();
        let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
        let is_inside = matches!(source, JobSource::Text(_)) && found.path == inline;
        let place = match is_inside {
            true => inside(reading, node, found.line, found.column),
            false => Some(FilePosition {
                file: found.path.display().to_string().into(),
                line: found.line,
                column: found.column,
            }),
        };
        let message = format!("{}{near}", found.message);
        match place {
            Some(place) => reading.add(Fault { place, message }),
            None => reading.fault(at, format!("line {} of the job: {message}", found.line)),
        }
    }
    if !checked.has_errors() && checked.file.jobs().is_empty() {
        reading.fault(at, "job: there is no job in it");
    }
    (!checked.has_errors()).then_some(checked.file)
}

fn read(reading: &StudyReader, path: &Path) -> std::io::Result<CheckedJobFile> {
    match reading.is_on_hosts {
        true => JobFile::read_unexpanded(path, reading.env),
        false => JobFile::read(path, reading.env),
    }
}

fn parsed(reading: &StudyReader, text: &str, path: &Path) -> CheckedJobFile {
    match reading.is_on_hosts {
        true => JobFile::parse_unexpanded(text.as_bytes(), path, reading.env),
        false => JobFile::parse(text, path, reading.env),
    }
}

/// The job file of the same folder that was probably meant.
fn similar(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let entries = path.parent().and_then(|dir| std::fs::read_dir(dir).ok());
    let files = entries.into_iter().flatten().flatten();
    let mut files: Vec<String> = files
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    files.sort();
    meant(&name, files.iter().map(String::as_str))
}

/// A place in a job file that stands in the plan file; `None` where it does not stand
/// there line by line.
fn inside(reading: &StudyReader, node: &TomlNode, line: u32, column: u32) -> Option<FilePosition> {
    let text = node.text().unwrap_or_default();
    let begin = reading.text.within(&node.span, text, 0);
    // A text that stands there as it is begins behind its quotes.
    let begin = (begin > node.span.start).then(|| reading.text.place(begin))?;
    Some(FilePosition {
        file: begin.file,
        line: begin.line + line.saturating_sub(1),
        column: match line {
            0 | 1 => begin.column + column.saturating_sub(1),
            _ => column,
        },
    })
}

/// The options to set.
fn settings(reading: &mut StudyReader, set: Option<&TomlNode>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for field in set.map_or(&[][..], TomlNode::fields) {
        let name = &field.name;
        if table().find(name).next().is_none() {
            let near = nearest(name, table().names());
            let near = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
            reading.fault(field.at, format!("set: fio has no option '{name}'{near}"));
        }
        match field.node.scalar() {
            Some(value) if !value.chars().any(char::is_control) => all.push((name.clone(), value)),
            _ => {
                let said = format!("set: give {name} a text of one line, or a number");
                reading.fault(field.node.span.start, said);
            }
        }
    }
    all
}

/// The jobs of a step as they will be, with its sections and options.
fn planned(
    reading: &mut StudyReader,
    step: &ExpandedStep,
    mut file: JobFile,
    found: &StudyJob,
) -> Vec<PlannedJob> {
    let names: Vec<String> = file.jobs().into_iter().map(|job| job.name).collect();
    let sections = step.node.get("section").map_or(&[][..], TomlNode::items);
    for section in sections {
        let name = section.text().unwrap_or_default();
        if !name.is_empty() && !names.iter().any(|known| known == name) {
            let near = meant(name, names.iter().map(String::as_str));
            let said = format!("section: the job file has no section {name}{near}");
            reading.fault(section.span.start, said);
        }
    }
    file.keep_sections(&found.sections);
    if let Some(set) = step.node.get("set").filter(|_| !found.set.is_empty()) {
        for (name, value) in &found.set {
            file.set(name, Some(value));
        }
        let path = file.path().to_owned();
        let checked = parsed(reading, &file.render(), &path);
        let errors = checked.diagnostics.iter();
        for error in errors.filter(|found| found.severity == Severity::Error) {
            reading.fault(set.span.start, format!("set: {}", error.message));
        }
    }
    let mut jobs: Vec<PlannedJob> = Vec::new();
    for job in file.jobs() {
        let known = PlannedJob {
            directions: directions(&job),
            name: job.name,
        };
        // Sections of one name report under one.
        match jobs.iter_mut().find(|job| job.name == known.name) {
            Some(job) => {
                let both = job.directions.take().zip(known.directions);
                job.directions = both.map(|(one, other)| [one, other].concat());
            }
            None => jobs.push(known),
        }
    }
    jobs
}

/// What a job does, as far as its options tell.
fn directions(job: &JobSpec) -> Option<Vec<Direction>> {
    // Whether its figures are one or two is the engine's business.
    if spec::option(job, "unified_rw_reporting").is_some() {
        return None;
    }
    // A replayed log does what stands in it.
    if spec::option(job, "read_iolog").is_some() {
        return None;
    }
    let rw = spec::rw(job)?;
    let mut all = vec![Direction::Sync];
    all.extend(rw.reads.then_some(Direction::Read));
    all.extend(rw.writes.then_some(Direction::Write));
    all.extend(rw.trims.then_some(Direction::Trim));
    Some(all)
}
