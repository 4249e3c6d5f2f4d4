//! A recorded run of the series.

use std::collections::BTreeMap;

use fathom_model::{Entry, Environment, Event, RunStatus, units};
use fathom_record::Record;
use serde::Serialize;

use super::QuickError;
use super::baseline::Conditions;
use super::plan::SeriesFacts;
use super::series::{SeriesLine, Teller, TestFigures};

/// A run of the series, read from its record.
#[derive(Debug, Clone)]
pub struct QuickRun {
    /// Name of the record.
    pub id: String,
    /// How it ended; a run without an end was interrupted.
    pub status: RunStatus,
    /// What was asked.
    pub facts: SeriesFacts,
    /// Engine and version, for example `fio-3.33`.
    pub engine: Option<String>,
    /// Where it ran.
    pub environment: Option<Environment>,
    /// Start, ms since 1970 UTC.
    pub started_ms: u64,
    /// From the start to the last thing recorded, without the time between two starts, ms.
    pub took_ms: u64,
    /// Every test of the group (or the one that was asked for).
    pub tests: Vec<TestResult>,
}

/// One test of a recorded run.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct TestResult {
    /// Headline of its series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Name.
    pub name: String,
    /// Its fio options.
    pub options: Vec<String>,
    /// Whether it reads through the page cache: then only a low figure tells.
    pub cached_reads: bool,
    /// What it measured; absent when it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub figures: Option<TestFigures>,
    /// Why it was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

impl QuickRun {
    /// Reads the run from its record.
    ///
    /// # Errors
    /// When the record is not one of the quick series.
    pub fn of(record: &Record) -> Result<Self, QuickError> {
        let facts = SeriesFacts::of(&record.header)
            .ok_or_else(|| QuickError::Input(format!("run {} is no quick series", record.id())))?;
        let status = record.status().unwrap_or(RunStatus::Interrupted);
        let mut teller = Teller::new(facts.clone());
        let mut lines: Vec<SeriesLine> = record
            .entries
            .iter()
            .flat_map(|entry| teller.event(&entry.event))
            .collect();
        lines.extend(teller.end(status));
        let figures = |wanted: &str| {
            // A test that was stopped was run again by the next start.
            lines.iter().rev().find_map(|line| match line {
                SeriesLine::Ends { name, figures } if name == wanted => Some(figures.clone()),
                _ => None,
            })
        };
        let tests = facts.tests.iter().map(|test| TestResult {
            series: test.series.clone(),
            name: test.name.clone(),
            options: test.options.clone(),
            cached_reads: test.cached_reads,
            figures: figures(&test.name),
            skipped: test.skipped.clone(),
        });
        let gap = |entry: &Entry| match entry.event {
            Event::Resumed { gap_ms, .. } => gap_ms,
            _ => 0,
        };
        let gaps_ms = record.entries.iter().map(gap).sum();
        let started_ms = record.header.started_ms;
        let last_ms = record
            .entries
            .last()
            .map_or(started_ms, |entry| entry.at_ms);
        Ok(Self {
            id: record.id(),
            status,
            engine: engine_version(record),
            environment: record.header.environment.clone(),
            started_ms,
            took_ms: last_ms.saturating_sub(started_ms).saturating_sub(gaps_ms),
            tests: tests.collect(),
            facts,
        })
    }

    /// What its figures depend on.
    pub fn conditions(&self) -> Conditions {
        Conditions::of(&self.facts)
    }

    /// What makes its figures doubtful, a sentence each.
    pub fn doubts(&self) -> Vec<String> {
        let mut doubts = self.facts.warnings.clone();
        if self.facts.shortened {
            doubts.push(format!(
                "a shortened trial ({} s a test, {} a set of files): \
                 not comparable to the shipped baselines",
                self.facts.runtime_s,
                units::format_size(self.facts.size_bytes),
            ));
        }
        if self
            .tests
            .iter()
            .any(|test| test.cached_reads && test.figures.is_some())
        {
            doubts.push(
                "reads go through the page cache, which cannot be flushed reliably: \
                 high figures are memory's, only low figures are meaningful"
                    .into(),
            );
        }
        if let Some(only) = &self.facts.only {
            doubts.push(format!(
                "only \"{only}\" was repeated: compare and share full runs"
            ));
        }
        for test in &self.tests {
            let failures = test.figures.iter().flat_map(|figures| &figures.failures);
            doubts.extend(failures.map(|failure| format!("\"{}\" failed: {failure}", test.name)));
        }
        doubts
    }

    /// The figures to rely on, by the tests' names.
    pub fn iops(&self) -> BTreeMap<String, u64> {
        let figure = |test: &TestResult| {
            let iops = test.figures.as_ref()?.good_iops()?;
            (iops > 0).then(|| (test.name.clone(), iops))
        };
        self.tests.iter().filter_map(figure).collect()
    }

    /// The result of a test by its name.
    pub fn test(&self, name: &str) -> Option<&TestResult> {
        self.tests.iter().find(|test| test.name == name)
    }
}

/// The engine as its own reports name it, or as it was called when it started.
pub(super) fn engine_version(record: &Record) -> Option<String> {
    let events = || record.entries.iter().map(|entry| &entry.event);
    let reported = events().find_map(|event| match event {
        Event::Finished { results } => results.engine_version.clone(),
        _ => None,
    });
    reported.or_else(|| {
        events().find_map(|event| match event {
            Event::EngineStarted {
                engine, version, ..
            } => Some(version.clone().unwrap_or_else(|| engine.clone())),
            _ => None,
        })
    })
}
