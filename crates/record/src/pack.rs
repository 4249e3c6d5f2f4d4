//! What is done to closed segments while a run goes on, a little at each interval: each
//! is compressed, and what it adds up to is noted in the digest. Nothing waits for it,
//! and a reader misses nothing where it has not been done.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::chain::Chain;
use crate::digest::{self, Digest, Fold};
use crate::lines::{BlockReader, NextEntry};
use crate::live::{LogPlace, place};
use crate::segment::{self, SegmentSource};

/// zstd's level: samples become a tenth smaller than by its own default of 3, at some 40
/// MB/s, and a second of them is a few KB.
const LEVEL: i32 = 9;
/// How far back it looks for what repeats, as a power of two: it takes a few times as
/// much memory. Samples resemble the last ones, not those of long ago.
const WINDOW_LOG: u32 = 20;
/// So much of a segment is worked on at an interval, at the least: a ms.
const STEP_BYTES: u64 = 32 << 10;
/// And so many times what was written since: the work ends before the next segment does.
const STEP_TIMES: u64 = 4;
/// The kernel writes back what is as old as this (30 s, every 5 s; `vm.dirty_…`), with
/// time to spare: from then on the compressed segment needs its text no more.
const WRITTEN_BACK: Duration = Duration::from_secs(60);
/// A group of the digest longer than this would be read only as a whole.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// One at a time in a process: the records of hundreds of machines would take hundreds
/// of times the memory.
static BUSY: AtomicBool = AtomicBool::new(false);

#[derive(Debug)]
struct Permit;

impl Permit {
    fn take() -> Option<Self> {
        (!BUSY.swap(true, Ordering::Acquire)).then_some(Self)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        BUSY.store(false, Ordering::Release);
    }
}

/// Works on the closed segments of one record.
#[derive(Debug)]
pub(crate) struct SegmentPacker {
    dir: PathBuf,
    /// Those that are to be worked on, the first one first.
    queue: VecDeque<u32>,
    work: Option<(Option<Permit>, PackWork)>,
    /// Those whose text lies beside its compressed form, and since when.
    twice: Vec<(u32, Instant)>,
    digest: DigestFile,
    /// The last attempt failed; the next segment that is closed brings another one.
    waits: bool,
    /// The run has ended: nothing is waited for.
    ends: bool,
}

/// What is being done to a segment.
enum PackWork {
    Compress(Compress),
    Sum(Box<Summing>),
}

impl std::fmt::Debug for PackWork {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            Self::Compress(_) => "Compress",
            Self::Sum(_) => "Sum",
        })
    }
}

struct Compress {
    text: File,
    part: PathBuf,
    encoder: zstd::Encoder<'static, File>,
}

struct Summing {
    lines: BlockReader,
    fold: Fold,
}

impl Drop for Compress {
    fn drop(&mut self) {
        // Gone already when it has become the segment.
        let _ = fs::remove_file(&self.part);
    }
}

impl SegmentPacker {
    /// Of a record whose live file has this number; what earlier runs left undone is
    /// done first.
    pub(crate) fn new(dir: &Path, live: u32) -> Self {
        let digest = DigestFile::open(dir);
        let is_undone =
            |&number: &u32| segment::plain(dir, number).exists() || number > digest.segment;
        let _ = fs::remove_file(part_of(dir));
        Self {
            dir: dir.to_owned(),
            queue: (1..live).filter(is_undone).collect(),
            work: None,
            twice: Vec::new(),
            digest,
            waits: false,
            ends: false,
        }
    }

    /// A segment was closed.
    pub(crate) fn closed(&mut self, number: u32) {
        self.queue.push_back(number);
        self.waits = false;
        let dir = &self.dir;
        self.twice.retain(|&(number, since)| {
            let is_sure = since.elapsed() >= WRITTEN_BACK;
            !is_sure || fs::remove_file(segment::plain(dir, number)).is_err()
        });
    }

    /// Gives the room back that a segment takes which is not compressed yet.
    pub(crate) fn stop(&mut self) {
        self.work = None;
        self.waits = true;
    }

    /// Works on for a while, after an interval of so many bytes.
    pub(crate) fn step(&mut self, written: u64) {
        let mut left = STEP_BYTES.max(written.saturating_mul(STEP_TIMES));
        while left > 0 && !self.waits && !(self.queue.is_empty() && self.work.is_none()) {
            let Ok(done) = self.advance(left) else {
                // Full, most likely: the text is there.
                return self.stop();
            };
            left = left.saturating_sub(done);
            if self.work.is_none() && done == 0 {
                return;
            }
        }
    }

    /// Does what is left, for no longer than this, and makes it durable; only then the
    /// texts go.
    pub(crate) fn finish(&mut self, patience: Duration) {
        let began = Instant::now();
        (self.waits, self.ends) = (false, true);
        while began.elapsed() < patience
            && !self.waits
            && !(self.queue.is_empty() && self.work.is_none())
        {
            self.step(STEP_BYTES);
        }
        self.work = None;
        for (number, _) in std::mem::take(&mut self.twice) {
            let synced = File::open(segment::packed(&self.dir, number))
                .and_then(|file| file.sync_data())
                .and_then(|()| sync_dir(&self.dir.join(segment::FOLDER)));
            if synced.is_ok() {
                // What stays takes room and nothing else.
                let _ = fs::remove_file(segment::plain(&self.dir, number));
            }
        }
    }

    /// Works on up to so many bytes; how many it was. 0 without work: none can begin.
    fn advance(&mut self, most: u64) -> io::Result<u64> {
        let Some(&number) = self.queue.front() else {
            return Ok(0);
        };
        match self.work.as_mut().map(|(_, work)| work) {
            None => {
                let permit = Permit::take();
                if permit.is_none() && !self.ends {
                    return Ok(0);
                }
                let work = self.begin(number)?;
                self.work = work.map(|work| (permit, work));
                if self.work.is_none() {
                    self.queue.pop_front();
                }
                Ok(1)
            }
            Some(PackWork::Compress(compress)) => {
                let done = compress.step(most)?;
                if done < most
                    && let Some((permit, PackWork::Compress(compress))) = self.work.take()
                {
                    compress.finish(&segment::packed(&self.dir, number))?;
                    self.twice.push((number, Instant::now()));
                    self.work = self.summing(number)?.map(|work| (permit, work));
                    if self.work.is_none() {
                        self.queue.pop_front();
                    }
                }
                Ok(done.max(1))
            }
            Some(PackWork::Sum(summing)) => {
                let done = summing.step(most)?;
                if let Some(group) = done.group {
                    self.digest.append(number, group);
                    self.work = None;
                    self.queue.pop_front();
                }
                Ok(done.bytes.max(1))
            }
        }
    }

    fn begin(&self, number: u32) -> io::Result<Option<PackWork>> {
        let plain = segment::plain(&self.dir, number);
        let text = match File::open(&plain) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.summing(number),
            text => text?,
        };
        let room = rustix::fs::statvfs(&self.dir)?;
        let needed = text.metadata()?.len();
        if room.f_bavail.saturating_mul(room.f_frsize) < needed {
            // The run itself needs what is left.
            return Err(io::ErrorKind::StorageFull.into());
        }
        let part = part_of(&self.dir);
        let mut encoder = zstd::Encoder::new(File::create(&part)?, LEVEL)?;
        encoder.include_checksum(true)?;
        encoder.window_log(WINDOW_LOG)?;
        Ok(Some(PackWork::Compress(Compress {
            text,
            part,
            encoder,
        })))
    }

    /// Begins to add up a segment; `None` where that has been done, or is in vain.
    fn summing(&self, number: u32) -> io::Result<Option<PackWork>> {
        if !self.digest.wants(number) {
            return Ok(None);
        }
        let (path, input) = SegmentSource::open(&self.dir, number);
        let mut lines = BlockReader::new(path, input?, false);
        let first = lines.first()?;
        let fold = Fold::new(place(lines.line()), number);
        Ok(match first {
            NextEntry::Line => Some(PackWork::Sum(Box::new(Summing { lines, fold }))),
            _ => None,
        })
    }
}

impl Compress {
    /// Compresses so many bytes, or as many as are left.
    fn step(&mut self, most: u64) -> io::Result<u64> {
        io::copy(&mut (&self.text).take(most), &mut self.encoder)
    }

    /// Puts it in its place.
    fn finish(mut self, path: &Path) -> io::Result<()> {
        self.encoder.do_finish()?;
        fs::rename(&self.part, path)
    }
}

/// What adding up some lines gave.
struct Summed {
    bytes: u64,
    /// The group, at the end.
    group: Option<Vec<u8>>,
}

impl Summing {
    fn step(&mut self, most: u64) -> io::Result<Summed> {
        let mut bytes = 0;
        let number = self.fold.segment;
        let of_damaged = |bytes| {
            let group = Some(Fold::of_damaged(number));
            Ok(Summed { bytes, group })
        };
        while bytes < most {
            match self.lines.next() {
                Ok(NextEntry::Line) => {
                    let line = self.lines.line();
                    bytes += line.len() as u64 + 1;
                    self.fold.take(line);
                }
                Ok(NextEntry::End) => {
                    let place = LogPlace::default();
                    let fold = std::mem::replace(&mut self.fold, Fold::new(place, number));
                    let group = fold.finish(self.lines.chain);
                    return match group.len() > GROUP_BYTES_MAX || self.lines.torn_bytes > 0 {
                        true => of_damaged(bytes),
                        false => Ok(Summed {
                            bytes,
                            group: Some(group),
                        }),
                    };
                }
                Ok(NextEntry::Damage(_)) | Err(_) => return of_damaged(bytes),
            }
            if self.fold.bytes() > GROUP_BYTES_MAX {
                return of_damaged(bytes);
            }
        }
        Ok(Summed { bytes, group: None })
    }
}

/// The digest that is appended to.
#[derive(Debug)]
struct DigestFile {
    path: PathBuf,
    /// The last segment that it has.
    segment: u32,
    bytes: u64,
    chain: Chain,
    /// It cannot be written.
    failed: bool,
}

impl DigestFile {
    /// As far as it is whole.
    fn open(dir: &Path) -> Self {
        let path = digest::path(dir);
        let (segment, bytes, chain) =
            Digest::open(dir).map_or((0, 0, Chain::default()), Digest::whole);
        Self {
            path,
            segment,
            bytes,
            chain,
            failed: false,
        }
    }

    /// Whether the group of a segment follows the last one that it has.
    fn wants(&self, number: u32) -> bool {
        !self.failed && number == self.segment + 1
    }

    /// Appends the group of a segment. Where that fails there will be no more of them.
    fn append(&mut self, segment: u32, mut group: Vec<u8>) {
        let mut chain = self.chain;
        let mut lines = Vec::new();
        if self.bytes == 0 {
            chain = Chain::default();
            lines = digest::file_head();
            chain.seal(&mut lines);
        }
        chain.seal(&mut group);
        lines.append(&mut group);
        let write = || {
            let mut file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&self.path)?;
            file.set_len(self.bytes)?;
            file.write_all(&lines)
        };
        match write() {
            Ok(()) => {
                self.bytes += lines.len() as u64;
                (self.segment, self.chain) = (segment, chain);
            }
            // A part of a group is none: no check has followed it.
            Err(_) => self.failed = true,
        }
    }
}

/// The compressed segment that is not whole yet; one at a time.
fn part_of(dir: &Path) -> PathBuf {
    dir.join(segment::FOLDER).join(".part")
}

/// Makes what was renamed in a folder durable.
pub(crate) fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
