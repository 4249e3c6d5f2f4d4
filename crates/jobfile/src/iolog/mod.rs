//! Logs of I/Os that are replayed (`read_iolog`): fio's own text logs and binary block
//! traces. One reader, for whoever asks which files a log names and for whoever does
//! what stands in it.

mod block_trace;
mod merge;
mod text;

use std::collections::HashMap;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use block_trace::{ByteOrder, TraceDepth};
pub use merge::{MergedTrace, merge};
use text::TextVersion;
pub use text::{MOST_NAME, TIMED_HEADLINE};

/// Most files of one log: each is open while it is replayed.
const MOST_FILES: usize = 4096;

/// What an entry asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IologOp {
    /// A read.
    Read,
    /// A write.
    Write,
    /// A discard.
    Trim,
    /// fsync.
    Sync,
    /// fdatasync.
    DataSync,
    /// The file is one of those that follow.
    Add,
    /// The file is opened.
    Open,
    /// The file is closed.
    Close,
    /// Nothing is done until so many ms have passed since the start.
    Wait,
}

/// One entry of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IologEntry {
    /// What it asks for.
    pub op: IologOp,
    /// Place of its file among [`IologReader::files`].
    pub file: u32,
    /// In bytes; of a wait in ms.
    pub offset: u64,
    /// In bytes.
    pub len: u32,
    /// When it was logged; 0 where the log has no times.
    pub at_ns: u64,
}

/// Why a log is not replayed.
#[derive(Debug, thiserror::Error)]
pub enum IologFault {
    /// The system does not let it be read.
    #[error("{name}: {source}")]
    Unreadable {
        /// The log.
        name: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// What stands in a line of a text log cannot be done.
    #[error("{name}:{line}:{column}: {what}")]
    Line {
        /// The log.
        name: String,
        /// Counted from 1.
        line: u64,
        /// Counted from 1, in characters.
        column: usize,
        /// What is wrong.
        what: String,
    },
    /// The same of a record of a block trace, counted from 1.
    #[error("{name}: record {number}: {what}")]
    Record {
        /// The log.
        name: String,
        /// Its place.
        number: u64,
        /// What is wrong.
        what: String,
    },
}

/// How a log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IologFormat {
    Text(TextVersion),
    BlockTrace(ByteOrder),
}

/// The name of the device with these numbers, a path.
pub type DeviceName = fn(major: u32, minor: u32) -> Option<String>;

/// Reads one log from its begin to its end, whatever its size.
pub struct IologReader {
    /// As it is called in messages.
    name: String,
    input: BufReader<Box<dyn Read + Send>>,
    format: IologFormat,
    /// Lines, or records, taken so far.
    taken: u64,
    device_name: DeviceName,
    files: Vec<String>,
    by_name: HashMap<String, u32>,
    by_device: HashMap<u32, u32>,
    depth: TraceDepth,
}

impl std::fmt::Debug for IologReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "IologReader({}, {:?})", self.name, self.format)
    }
}

impl IologReader {
    /// Begins with a log that is called `name`.
    ///
    /// # Errors
    /// When it cannot be read, or is no log.
    pub fn new(
        name: &str,
        mut input: Box<dyn Read + Send>,
        device_name: DeviceName,
    ) -> Result<Self, IologFault> {
        let mut head = Vec::new();
        let read = input.by_ref().take(4).read_to_end(&mut head);
        let order = ByteOrder::of(&head);
        let whole: Box<dyn Read + Send> = Box::new(Cursor::new(head).chain(input));
        let mut reader = Self {
            name: name.to_owned(),
            input: BufReader::new(whole),
            format: IologFormat::Text(TextVersion::Untimed),
            taken: 0,
            device_name,
            files: Vec::new(),
            by_name: HashMap::new(),
            by_device: HashMap::new(),
            depth: TraceDepth::default(),
        };
        read.map_err(|error| reader.unreadable(error))?;
        reader.format = match order {
            Some(order) => IologFormat::BlockTrace(order),
            None => IologFormat::Text(reader.text_version()?),
        };
        Ok(reader)
    }

    /// The next entry; `None` at the end.
    ///
    /// # Errors
    /// When it cannot be read, or cannot be done.
    pub fn next_entry(&mut self) -> Result<Option<IologEntry>, IologFault> {
        match self.format {
            IologFormat::Text(version) => self.next_of_text(version),
            IologFormat::BlockTrace(order) => self.next_of_trace(order),
        }
    }

    /// The files and devices named so far, as the log names them.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// Whether it is a binary trace of the block layer.
    pub fn is_block_trace(&self) -> bool {
        matches!(self.format, IologFormat::BlockTrace(_))
    }

    /// How many I/Os of a block trace were under way at once, as far as it was read.
    pub fn depth(&self) -> u32 {
        self.depth.most()
    }

    fn unreadable(&self, source: io::Error) -> IologFault {
        IologFault::Unreadable {
            name: self.name.clone(),
            source,
        }
    }

    /// The place of a file; of a new one behind those there are.
    fn add_file(&mut self, name: &str) -> Option<u32> {
        if let Some(&place) = self.by_name.get(name) {
            return Some(place);
        }
        let place = u32::try_from(self.files.len()).ok()?;
        if self.files.len() >= MOST_FILES {
            return None;
        }
        self.files.push(name.to_owned());
        self.by_name.insert(name.to_owned(), place);
        Some(place)
    }
}

/// Whether an I/O ends where a file may (off_t).
fn ends_in_range(offset: u64, len: u32) -> bool {
    let end = offset.checked_add(u64::from(len));
    end.is_some_and(|end| i64::try_from(end).is_ok())
}

/// The block device with these numbers, as the kernel calls it.
pub fn device_here(major: u32, minor: u32) -> Option<String> {
    let path = format!("/sys/dev/block/{major}:{minor}/uevent");
    let told = std::fs::read_to_string(Path::new(&path)).ok()?;
    let name = told
        .lines()
        .find_map(|line| line.strip_prefix("DEVNAME="))?;
    Some(format!("/dev/{name}"))
}

/// For a log that goes to another device: only who is who counts.
pub fn device_numbers(major: u32, minor: u32) -> Option<String> {
    Some(format!("{major}:{minor}"))
}

#[cfg(test)]
mod tests;
