//! merge_blktrace_file: several block traces become one, in the order of their times.

use std::io::{self, Write};
use std::path::PathBuf;

use fathom_device::regular;

use super::block_trace::{ByteOrder, TraceRecord};
use super::{IologFault, IologFormat, IologReader, device_numbers};

/// One of the traces to merge.
#[derive(Debug, Clone)]
pub struct MergedTrace {
    /// Its file.
    pub path: PathBuf,
    /// What its times are stretched to, in percent.
    pub percent: u64,
    /// How often it comes, one after the other.
    pub times: u64,
}

/// How far a trace has been taken.
struct TraceCursor {
    of: MergedTrace,
    reader: IologReader,
    order: ByteOrder,
    /// Times it has come whole, and how long it is.
    round: u64,
    length_ns: u64,
    last_ns: u64,
    /// Whether it holds any I/O.
    any: bool,
    next: Option<TraceRecord>,
}

impl TraceCursor {
    fn new(of: MergedTrace) -> Result<Self, IologFault> {
        let (reader, order) = open(&of)?;
        let mut cursor = Self {
            of,
            reader,
            order,
            round: 0,
            length_ns: 0,
            last_ns: 0,
            any: false,
            next: None,
        };
        cursor.advance()?;
        Ok(cursor)
    }

    /// Goes on to the next record that counts, with its time in the merged trace.
    fn advance(&mut self) -> Result<(), IologFault> {
        self.next = None;
        while self.round < self.of.times {
            while let Some(mut record) = self.reader.record(self.order)? {
                if !record.is_data() {
                    continue;
                }
                self.any = true;
                self.last_ns = record.time_ns;
                let before = u128::from(self.round) * u128::from(self.length_ns);
                let at = (u128::from(record.time_ns) + before) * u128::from(self.of.percent) / 100;
                record.time_ns = u64::try_from(at).unwrap_or(u64::MAX);
                self.next = Some(record);
                return Ok(());
            }
            if self.round == 0 {
                self.length_ns = self.last_ns;
            }
            self.round += 1;
            // A trace without I/Os stays one, however often it comes.
            if !self.any {
                return Ok(());
            }
            if self.round < self.of.times {
                (self.reader, self.order) = open(&self.of)?;
            }
        }
        Ok(())
    }
}

fn open(of: &MergedTrace) -> Result<(IologReader, ByteOrder), IologFault> {
    let name = of.path.display().to_string();
    let file = regular::open(&of.path).map_err(|source| IologFault::Unreadable {
        name: name.clone(),
        source,
    })?;
    let reader = IologReader::new(&name, Box::new(file), device_numbers)?;
    match reader.format {
        IologFormat::BlockTrace(order) => Ok((reader, order)),
        IologFormat::Text(_) => Err(IologFault::Unreadable {
            name,
            source: io::Error::other("is no block trace: only those are merged"),
        }),
    }
}

/// Writes the I/Os of all traces by their time, those of one time in the order of the
/// traces.
pub fn merge(traces: Vec<MergedTrace>, out: &mut dyn Write) -> Result<(), IologFault> {
    let cursors = traces.into_iter().map(TraceCursor::new);
    let mut cursors = cursors.collect::<Result<Vec<_>, _>>()?;
    loop {
        let ahead = cursors.iter_mut().filter(|cursor| cursor.next.is_some());
        let time = |cursor: &&mut TraceCursor| cursor.next.map_or(u64::MAX, |next| next.time_ns);
        let Some(earliest) = ahead.min_by_key(time) else {
            return Ok(());
        };
        if let Some(record) = earliest.next {
            out.write_all(&record.bytes())
                .map_err(|source| IologFault::Unreadable {
                    name: "merge_blktrace_file".to_owned(),
                    source,
                })?;
        }
        earliest.advance()?;
    }
}
