//! Results of fio-tests become the record of a campaign.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use fathom_import::fio_tests::{self, FioTestsTest};
use fathom_model::{Event, Outcome, RunStatus, SkipCause, units};
use fathom_record::{Header, RecordError, Writer};
use serde_json::json;

use super::{MOST_FILES, input_error};
use crate::cmd::{ExitError, Global};
use crate::out;

/// The record made of a folder of results; what is in `unread` could not be read, and
/// what cannot is added.
pub fn import(
    global: &Global,
    name: &str,
    folder: &Path,
    files: &[PathBuf],
    unread: &mut Vec<String>,
) -> anyhow::Result<PathBuf> {
    let (tests, damaged) = fio_tests::read(folder, files);
    unread.extend(damaged.iter().map(ToString::to_string));
    let path = folder.display();
    if tests.iter().all(|test| test.not_run.is_some()) {
        let reason = tests.first().and_then(|test| test.not_run.as_deref());
        let reason = reason.or(unread.first().map(String::as_str));
        let message = format!(
            "{path}: {} of fio-tests, none with results: {}",
            units::counted(tests.len(), "test"),
            reason.unwrap_or_default()
        );
        return Err(input_error(message));
    }
    if tests.len() > MOST_FILES {
        let message = format!("{path}: {} tests; import at most {MOST_FILES}", tests.len());
        return Err(input_error(message));
    }
    let dir = write(global, name, folder, &tests)?;
    if !global.quiet {
        out::note(told(folder, &tests));
    }
    Ok(dir)
}

/// `imported 156 tests of fio-tests from results: 156 points in 12 series`
fn told(folder: &Path, tests: &[FioTestsTest]) -> String {
    let points = tests.iter().filter_map(|test| test.point.as_ref());
    let mut series: Vec<&str> = points.clone().map(|point| point.series.as_str()).collect();
    series.sort_unstable();
    series.dedup();
    format!(
        "imported {} of fio-tests from {}: {} in {} series",
        units::counted(tests.len(), "test"),
        folder.display(),
        units::counted(points.count(), "point"),
        series.len()
    )
}

fn write(
    global: &Global,
    name: &str,
    folder: &Path,
    tests: &[FioTestsTest],
) -> anyhow::Result<PathBuf> {
    let recording = |error: RecordError| ExitError::new(fathom_model::Exit::Record, error);
    let mut header = Header::new(name, "import");
    let facts = json!({ "folder": folder, "tests": tests.len() });
    header.facts.insert("fio_tests".to_owned(), facts);
    let mut writer = Writer::create(&global.runs, &header).map_err(recording)?;
    let run = tests.iter().filter(|test| test.not_run.is_none());
    let of = u32::try_from(run.clone().count()).unwrap_or(u32::MAX);
    for (step, test) in (1..).zip(run) {
        keep_files(&writer, test)?;
        append(&mut writer, step, of, test).map_err(recording)?;
    }
    for test in tests {
        if let (Some(point), Some(reason)) = (&test.point, &test.not_run) {
            let event = Event::Skipped {
                point: Box::new(point.clone()),
                reason: reason.clone(),
                cause: SkipCause::NotNeeded,
            };
            writer.append(&event).map_err(recording)?;
        }
    }
    for text in notes(tests) {
        writer.append(&Event::Note { text }).map_err(recording)?;
    }
    let status = match tests.iter().all(|test| test.failures.is_empty()) {
        true => RunStatus::Complete,
        false => RunStatus::Failed,
    };
    Ok(writer.finish(status).map_err(recording)?)
}

fn append(writer: &mut Writer, step: u32, of: u32, test: &FioTestsTest) -> Result<(), RecordError> {
    writer.append(&Event::Step {
        step,
        of,
        name: test.name.clone(),
        point: test.point.clone().map(Box::new),
    })?;
    if let Some(results) = &test.results {
        let results = Box::new(results.clone());
        writer.append(&Event::Finished { results })?;
    }
    for failure in &test.failures {
        writer.append(&Event::Failure(failure.clone()))?;
    }
    let outcome = match test.failures.is_empty() {
        true => Outcome::Complete,
        false => Outcome::Failed,
    };
    writer.append(&Event::StepEnded { outcome })
}

/// Keeps the output and the job file: what is read from them can be read again.
fn keep_files(writer: &Writer, test: &FioTestsTest) -> anyhow::Result<()> {
    let keep = |from: &Path, below: PathBuf| {
        let folder = below.join(&test.name);
        let folder = folder.parent().unwrap_or(&below);
        let to = folder.join(from.file_name().unwrap_or_default());
        fs::create_dir_all(folder)
            .and_then(|()| fs::copy(from, &to).map(drop))
            .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
    };
    if let Some(source) = &test.source {
        keep(source, writer.raw_dir()?)?;
    }
    if let Some(job_file) = &test.job_file {
        keep(job_file, writer.jobs_dir()?)?;
    }
    Ok(())
}

/// What is to know of the tests, of many a line for all of one kind.
fn notes(tests: &[FioTestsTest]) -> Vec<String> {
    let mut of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for test in tests {
        for note in &test.notes {
            of.entry(note).or_default().push(&test.name);
        }
        if test.format == ".res" {
            let text =
                "only its .res is there: bandwidth, IOPS and mean latency are all that is known";
            of.entry(text).or_default().push(&test.name);
        }
    }
    let line = |(note, names): (&str, Vec<&str>)| match names.as_slice() {
        [one] => format!("{one}: {note}"),
        [first, .., last] => {
            format!(
                "{} ({first} to {last}): {note}",
                units::counted(names.len(), "test")
            )
        }
        [] => note.to_owned(),
    };
    of.into_iter().map(line).collect()
}
