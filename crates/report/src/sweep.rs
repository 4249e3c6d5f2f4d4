//! A campaign's curves, read from its record.

use std::path::Path;

use fathom_analysis::{Collector, Sweep};
use fathom_model::{Event, RunStatus};
use fathom_record::{Entries, Header, RecordError};

/// What graphs, exports and reports of a campaign are made of.
#[derive(Debug, Clone)]
pub struct CampaignRecord {
    /// Name of the record's folder.
    pub id: String,
    /// The record's first line.
    pub header: Header,
    /// How the run ended; [`RunStatus::Running`] while it goes on.
    pub status: RunStatus,
    /// The engines that measured, each once, with their versions: `fio-3.33`,
    /// `native-0.1.0`. Figures of several are comparable only with care.
    pub engines: Vec<String>,
    /// The curves; none when the run was no campaign.
    pub sweep: Sweep,
    /// What is to know of the record itself, a sentence each.
    pub notes: Vec<String>,
}

/// Reads the curves of a record folder, in memory for its points, not for its
/// samples. A damaged line ends the reading, and a note says so.
///
/// # Errors
/// When the folder is no record, is of a newer Fathom, or cannot be read.
pub fn read_sweep(dir: &Path) -> Result<CampaignRecord, RecordError> {
    let mut entries = Entries::open(dir)?;
    let mut collector = Collector::new();
    let mut engines: Vec<String> = Vec::new();
    let mut notes = Vec::new();
    while let Some(entry) = entries.next() {
        match entry {
            Ok(entry) => {
                if let Some(engine) = engine_of(&entry.event, entries.header.command == "import")
                    && !engines.contains(&engine)
                {
                    engines.push(engine);
                }
                collector.take(&entry);
            }
            Err(damage) => notes.push(damage.to_string()),
        }
    }
    if entries.unknown_events > 0 {
        notes.push(unknown_events(entries.unknown_events));
    }
    Ok(CampaignRecord {
        id: entries.id(),
        status: entries.status.unwrap_or(RunStatus::Running),
        header: entries.header,
        engines,
        sweep: collector.finish(),
        notes,
    })
}

/// What an event tells of the engine; imports start none, and their figures do.
fn engine_of(event: &Event, imported: bool) -> Option<String> {
    match event {
        Event::EngineStarted {
            engine, version, ..
        } => Some(match version {
            Some(version) if version.starts_with(engine.as_str()) => version.clone(),
            Some(version) => format!("{engine}-{version}"),
            None => engine.clone(),
        }),
        Event::Finished { results } if imported => results.engine_version.clone(),
        _ => None,
    }
}

/// That events of a newer Fathom were passed over.
pub(crate) fn unknown_events(count: u64) -> String {
    format!(
        "{count} events of kinds this Fathom does not know were passed over: a newer one wrote them"
    )
}
