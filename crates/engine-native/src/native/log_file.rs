//! One of fio's log files: lines, or what `log_store_compressed` asks for.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::job::LogOptions;
use fathom_engine::checked::CheckedPaths;

/// Bits of a stored sample's direction: it has an offset, its priority is whole
/// (iolog.h, LOG_OFFSET_SAMPLE_BIT and LOG_PRIO_SAMPLE_BIT).
const HAS_OFFSET: u32 = 0x8000_0000;
const HAS_PRIORITY: u32 = 0x4000_0000;

/// One entry.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogSample {
    pub(super) at_ms: u64,
    pub(super) value: u64,
    pub(super) dir: u8,
    pub(super) len: u32,
    pub(super) offset: u64,
    pub(super) priority: u16,
}

/// A file that is written from its begin to its end.
#[derive(Debug)]
pub(super) enum LogFile {
    Lines(BufWriter<File>),
    /// fio's samples as they lie in its memory, through zlib, for `fio --inflate-log`.
    Stored(GzEncoder<BufWriter<File>>),
}

impl LogFile {
    /// The name of a log with these options.
    pub(super) fn path(path: PathBuf, options: &LogOptions) -> PathBuf {
        if options.compressed() {
            path.with_added_extension("fz")
        } else {
            path
        }
    }

    pub(super) fn create(path: &Path, checked: &CheckedPaths) -> io::Result<Self> {
        let file = BufWriter::new(checked.create(path)?);
        Ok(match path.extension().is_some_and(|end| end == "fz") {
            true => Self::Stored(GzEncoder::new(file, Compression::fast())),
            false => Self::Lines(file),
        })
    }

    pub(super) fn sample(&mut self, options: &LogOptions, sample: &LogSample) -> io::Result<()> {
        match self {
            Self::Lines(out) => line(out, options, sample),
            Self::Stored(out) => out.write_all(&stored(options, sample)),
        }
    }

    /// What is not made of samples: histograms are lines in any file.
    pub(super) fn lines(&mut self) -> &mut dyn Write {
        match self {
            Self::Lines(out) => out,
            Self::Stored(out) => out,
        }
    }

    pub(super) fn end(&mut self) -> io::Result<()> {
        match self {
            Self::Lines(out) => out.flush(),
            Self::Stored(out) => {
                out.try_finish()?;
                out.get_mut().flush()
            }
        }
    }
}

fn line(out: &mut impl Write, options: &LogOptions, of: &LogSample) -> io::Result<()> {
    write!(out, "{}, {}, {}, {}", of.at_ms, of.value, of.dir, of.len)?;
    if options.offset {
        write!(out, ", {}", of.offset)?;
    }
    if options.prio && options.avg_ms == 0 {
        writeln!(out, ", {:#06x}", of.priority)
    } else {
        // iolog.c: without log_prio only whether it is real time.
        writeln!(out, ", {}", u8::from(of.priority >> 13 == 1))
    }
}

/// `struct io_sample`, and the offset behind it (iolog.h), as x86-64 lays them out.
fn stored(options: &LogOptions, of: &LogSample) -> Vec<u8> {
    let mut flags = u32::from(of.dir);
    for (flag, is_set) in [(HAS_OFFSET, options.offset), (HAS_PRIORITY, options.prio)] {
        flags |= if is_set { flag } else { 0 };
    }
    let mut bytes = Vec::with_capacity(40);
    bytes.extend(of.at_ms.to_ne_bytes());
    bytes.extend(of.value.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(of.priority.to_ne_bytes());
    bytes.extend([0; 2]);
    bytes.extend(u64::from(of.len).to_ne_bytes());
    if options.offset {
        bytes.extend(of.offset.to_ne_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_sample_is_as_long_as_fios() {
        let sample = LogSample {
            at_ms: 7,
            value: 9,
            dir: 1,
            len: 4096,
            offset: 65_536,
            priority: 0,
        };
        let mut options = LogOptions::default();
        assert_eq!(stored(&options, &sample).len(), 32);
        options.offset = true;
        let bytes = stored(&options, &sample);
        assert_eq!((bytes.len(), bytes[16], bytes[24]), (40, 1, 0));
        assert_eq!(bytes[19] & 0x80, 0x80);
        assert_eq!(bytes[32..], 65_536u64.to_ne_bytes());
    }

    #[test]
    fn both_options_are_needed_to_store_a_log() {
        let mut options = LogOptions {
            store_compressed: true,
            ..LogOptions::default()
        };
        let path = |options: &LogOptions| LogFile::path("a_bw.1.log".into(), options);
        assert_eq!(path(&options), Path::new("a_bw.1.log"));
        options.compression = 10_240;
        assert_eq!(path(&options), Path::new("a_bw.1.log.fz"));
    }
}
