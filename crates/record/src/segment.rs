//! The files of a log: the live one, and the segments before it that were closed.
//!
//! `events.jsonl` is written to. Once it is long it becomes `events/000001.jsonl`, and
//! a new one begins that names its number; later the closed one is compressed into
//! `events/000001.jsonl.zst`. What has the number of the live file, or a higher one, is
//! what a kill left behind, and nobody reads it.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use crate::EVENTS;

/// The folder of closed segments.
pub(crate) const FOLDER: &str = "events";
/// Read at once: long enough that a record of many samples takes few calls.
const READ_BYTES: usize = 64 << 10;

/// What a compressed segment may ask of memory, as a power of two: eight times what is
/// needed, and little.
const WINDOW_LOG_MAX: u32 = 23;

/// Whether a file, named from the record's folder on, is a part of its log.
pub fn is_log(name: &Path) -> bool {
    name == Path::new(EVENTS) || name.starts_with(FOLDER)
}

/// How many bytes the log of a record takes on its device.
pub fn log_bytes(dir: &Path) -> u64 {
    let closed = fs::read_dir(dir.join(FOLDER)).into_iter().flatten();
    let paths = closed.filter_map(|entry| Some(entry.ok()?.path()));
    paths
        .chain([dir.join(EVENTS)])
        .filter_map(|path| fs::metadata(path).ok())
        .map(|kind| kind.len())
        .sum()
}

/// The text of a closed segment.
pub(crate) fn plain(dir: &Path, number: u32) -> PathBuf {
    dir.join(FOLDER).join(format!("{number:06}.jsonl"))
}

/// A closed segment, compressed.
pub(crate) fn packed(dir: &Path, number: u32) -> PathBuf {
    dir.join(FOLDER).join(format!("{number:06}.jsonl.zst"))
}

/// The numbers of all closed segments, in no order.
fn numbers(dir: &Path) -> impl Iterator<Item = u32> {
    let files = fs::read_dir(dir.join(FOLDER)).into_iter().flatten();
    let number = |name: &str| {
        let name = name.strip_suffix(".zst").unwrap_or(name);
        name.strip_suffix(".jsonl")?.parse::<u32>().ok()
    };
    files.filter_map(move |file| number(file.ok()?.file_name().to_str()?))
}

/// The highest number of a closed segment; 0 without any.
pub(crate) fn last(dir: &Path) -> u32 {
    numbers(dir).max().unwrap_or(0)
}

/// The lowest number from this one on that is there.
pub(crate) fn first_from(dir: &Path, number: u32) -> Option<u32> {
    numbers(dir).filter(|&there| there >= number).min()
}

/// Where the bytes of a segment come from.
pub(crate) enum SegmentSource {
    /// A file as it is.
    Plain(BufReader<File>),
    /// None.
    Nothing(io::Empty),
    /// A compressed one.
    Packed(BufReader<zstd::Decoder<'static, BufReader<File>>>),
}

impl std::fmt::Debug for SegmentSource {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Plain(_) => "Plain",
            Self::Nothing(_) => "Nothing",
            Self::Packed(_) => "Packed",
        })
    }
}

impl SegmentSource {
    pub(crate) fn of(file: File) -> Self {
        Self::Plain(BufReader::with_capacity(READ_BYTES, file))
    }

    /// A closed segment. Its text comes first: it is there until the compressed one is
    /// sure to be on the device.
    pub(crate) fn open(dir: &Path, number: u32) -> (PathBuf, io::Result<Self>) {
        let path = plain(dir, number);
        match regular(&path) {
            Ok(file) => return (path, Ok(Self::of(file))),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return (path, Err(error)),
            Err(_) => {}
        }
        let path = packed(dir, number);
        let decoder = || {
            let mut decoder = zstd::Decoder::new(regular(&path)?)?;
            decoder.window_log_max(WINDOW_LOG_MAX)?;
            Ok(BufReader::with_capacity(READ_BYTES, decoder))
        };
        let input = decoder().map(Self::Packed);
        (path, input)
    }

    pub(crate) fn reader(&mut self) -> &mut dyn BufRead {
        match self {
            Self::Plain(file) => file,
            Self::Nothing(nothing) => nothing,
            Self::Packed(decoder) => decoder,
        }
    }
}

/// Opens a file; what is none (a FIFO would be waited for) is an error.
pub(crate) fn regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("no regular file"));
    }
    File::open(path)
}
