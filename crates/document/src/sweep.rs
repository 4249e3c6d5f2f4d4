//! A campaign's curves, read from its record.

use std::path::Path;

use fathom_analysis::{Sweep, SweepCollector, verdict};
use fathom_model::{Entry, Event, Results, RunDocument};
use fathom_record::{Entries, Header, RecordError, RecordPart};

use crate::{RunReader, apply_globals};

/// What graphs, exports and reports of a campaign are made of.
#[derive(Debug, Clone)]
pub struct CampaignRecord {
    /// The record's first line.
    pub header: Header,
    /// The run: its name, status, times, environment, notes, and every failure.
    /// Of its jobs only those of steps that are no points (pre-conditioning).
    pub run: RunDocument,
    /// The engines that measured, each once, with their versions: `fio-3.33`,
    /// `native-0.1.0`. Figures of several are comparable only with care.
    pub engines: Vec<String>,
    /// The curves; none when the run was no campaign.
    pub sweep: Sweep,
}

impl CampaignRecord {
    /// What says that a part of the record could not be read.
    pub fn damage(&self) -> impl Iterator<Item = &str> {
        let notes = self.run.notes.iter().map(String::as_str);
        notes.filter(|note| note.contains("damaged"))
    }
}

/// Reads the curves of a record folder, in memory for its points, not for its
/// samples. Damaged lines are left out, and a note says so; in a record of version 1
/// they end the reading.
///
/// # Errors
/// When the folder is no record, is of a newer Fathom, or cannot be read.
pub fn read_sweep(dir: &Path) -> Result<CampaignRecord, RecordError> {
    read_along(dir, |_| ())
}

/// As [`read_sweep`], of a record that has been opened.
pub fn sweep_of(entries: Entries) -> CampaignRecord {
    along(entries, |_| ())
}

/// [`read_sweep`], which gives every part to `each` as it goes by.
pub fn read_along(
    dir: &Path,
    each: impl FnMut(&RecordPart),
) -> Result<CampaignRecord, RecordError> {
    Ok(along(Entries::summed(dir)?, each))
}

fn along(mut entries: Entries, mut each: impl FnMut(&RecordPart)) -> CampaignRecord {
    let run = RunReader::of(&entries);
    let imported = entries.header.command == "import";
    let mut collector = SweepCollector::new();
    let mut engines: Vec<String> = Vec::new();
    let mut in_point = false;
    let mut run = run.read(&mut entries, |run, part| {
        each(part);
        let entry = match part {
            RecordPart::Entry(entry) => entry,
            // The sweep tells of these, and in less memory.
            RecordPart::Sums(_) if in_point => return run.take_evidence(part),
            RecordPart::Sums(_) => return run.take_part(part),
        };
        if let Event::Step { point, .. } = &entry.event {
            in_point = point.is_some();
        }
        if let Some(engine) = engine_of(&entry.event, imported)
            && !engines.contains(&engine)
        {
            engines.push(engine);
        }
        match &entry.event {
            Event::Finished { results } if in_point => {
                let mut results = results.clone();
                judge(&mut results, run);
                let event = Event::Finished { results };
                let at_ms = entry.at_ms;
                collector.take(&Entry { at_ms, event });
            }
            // As of sums.
            Event::Sample(_) | Event::Jobs { .. } if in_point => run.take_evidence(part),
            Event::Skipped { .. } => collector.take(entry),
            _ => {
                collector.take(entry);
                run.take(entry);
            }
        }
    });
    if engines.len() > 1 {
        let text = "measured by different engines, whose figures are comparable with care";
        run.notes.push(format!("{text}: {}", engines.join(", ")));
    }
    run.engine_version = run.engine_version.or_else(|| engines.first().cloned());
    CampaignRecord {
        header: entries.header,
        run,
        engines,
        sweep: collector.finish(),
    }
}

/// Judges the figures of a step; `run` tells of its targets and engine, and lends its
/// place for jobs.
fn judge(results: &mut Results, run: &mut RunReader) {
    apply_globals(results);
    let evidence = std::mem::take(&mut run.evidence).closed();
    let doc = &mut run.doc;
    std::mem::swap(&mut doc.jobs, &mut results.jobs);
    std::mem::swap(&mut doc.disks, &mut results.disks);
    verdict::judge(doc, &[evidence]);
    doc.verdict = None;
    std::mem::swap(&mut doc.jobs, &mut results.jobs);
    std::mem::swap(&mut doc.disks, &mut results.disks);
}

/// What an event tells of the engine; imports start none, and their figures do.
fn engine_of(event: &Event, imported: bool) -> Option<String> {
    match event {
        Event::EngineStarted {
            engine, version, ..
        } => Some(version.clone().unwrap_or_else(|| engine.clone())),
        Event::Finished { results } if imported => results.engine_version.clone(),
        _ => None,
    }
}
