//! Statistics of nodes beside the event log: `stats/NODE.jsonl`, appended to by
//! whoever reads that node and nobody else.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use fathom_model::NodeSample;
use serde::{Deserialize, Serialize};

use crate::{RecordError, now_ms};

/// Name and version of the format.
pub const STATS_FORMAT: &str = "fathom.node-stats/1";
/// Folder of the files in a record.
const FOLDER: &str = "stats";

/// First line of a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatsHeader {
    /// [`STATS_FORMAT`].
    pub format: String,
    /// Name of the node.
    pub node: String,
    /// Time between two readings that was asked for, in ms.
    pub interval_ms: u64,
}

/// One line behind the header.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StatsLine {
    /// The node could not be read.
    Missed {
        /// When, ms since 1970 UTC.
        at_ms: u64,
        /// Why.
        missed: String,
    },
    /// What it did since the line before.
    Sample(Box<NodeSample>),
}

/// Appends to the statistics of one node.
#[derive(Debug)]
pub struct StatsWriter {
    path: PathBuf,
    file: File,
}

impl StatsWriter {
    /// Begins the file of a node in a record.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn create(record: &Path, node: &str, interval_ms: u64) -> Result<Self, RecordError> {
        let folder = record.join(FOLDER);
        // Names of nodes are DNS names; whatever else a cluster may say stays here.
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let name: String = node
            .chars()
            .map(|c| if plain(c) { c } else { '-' })
            .collect();
        let path = folder.join(format!("{name}.jsonl"));
        let made = fs::create_dir_all(&folder).and_then(|()| File::create(&path));
        let file = made.map_err(|source| RecordError::file(&path, source))?;
        let mut writer = Self { path, file };
        writer.line(&StatsHeader {
            format: STATS_FORMAT.to_owned(),
            node: node.to_owned(),
            interval_ms,
        })?;
        Ok(writer)
    }

    /// Appends a sample.
    ///
    /// # Errors
    /// Those of writing.
    pub fn sample(&mut self, sample: NodeSample) -> Result<(), RecordError> {
        self.line(&StatsLine::Sample(Box::new(sample)))
    }

    /// Appends that the node could not be read.
    ///
    /// # Errors
    /// Those of writing.
    pub fn missed(&mut self, why: &str) -> Result<(), RecordError> {
        self.line(&StatsLine::Missed {
            at_ms: now_ms(),
            missed: why.to_owned(),
        })
    }

    /// In one write(2): a kill cuts no line.
    fn line(&mut self, line: &impl Serialize) -> Result<(), RecordError> {
        let mut text =
            serde_json::to_vec(line).map_err(|e| RecordError::file(&self.path, e.into()))?;
        text.push(b'\n');
        let written = self.file.write_all(&text);
        written.map_err(|source| RecordError::file(&self.path, source))
    }
}

/// The statistics of one node, read line by line.
#[derive(Debug)]
pub struct NodeStats {
    /// The first line.
    pub header: StatsHeader,
    lines: std::io::Lines<BufReader<File>>,
}

impl NodeStats {
    /// Opens the statistics of every node of a record, in the order of their
    /// names. A file that is not one is left out.
    pub fn of_record(record: &Path) -> Vec<Self> {
        let entries = fs::read_dir(record.join(FOLDER)).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
        paths.sort();
        paths.iter().filter_map(|path| Self::open(path)).collect()
    }

    fn open(path: &Path) -> Option<Self> {
        let mut lines = BufReader::new(File::open(path).ok()?).lines();
        let header: StatsHeader = serde_json::from_str(&lines.next()?.ok()?).ok()?;
        (header.format == STATS_FORMAT).then_some(Self { header, lines })
    }
}

impl Iterator for NodeStats {
    type Item = StatsLine;

    /// The next line. The first that cannot be read ends it: a kill has cut it.
    fn next(&mut self) -> Option<StatsLine> {
        serde_json::from_str(&self.lines.next()?.ok()?).ok()
    }
}
