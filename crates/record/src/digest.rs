//! What the closed segments of a log add up to, so that nobody reads millions of
//! samples for a total.
//!
//! `events/digest.jsonl` has a group of lines for each segment: its events but samples
//! and intervals, as they stand in it, and in the place of these what they add up to.
//! It is derived: where it lacks a group, or does not hold, the segment itself is read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use fathom_model::histogram::bucket_of;
use fathom_model::{
    Direction, Entry, Event, EvidenceInterval, EvidenceSum, Histogram, Moments, Sample,
};
use serde::{Deserialize, Serialize};

use crate::chain::Chain;
use crate::line::parse;
use crate::lines::{BlockReader, NextEntry};
use crate::live::LogPlace;
use crate::reader::RecordPart;
use crate::segment::{FOLDER, SegmentSource, regular};

/// Format of the file.
const FORMAT: &str = "fathom-digest";
const VERSION: u32 = 2;
/// Intervals of which the extremes are kept and the others merged.
const SLOT: usize = 64;
/// Times without I/O that are kept of a stretch.
const STALLS_MOST: usize = 64;
/// Columns of buckets of a [`DigestRow`], in percent; the last one is the maximum.
pub const ROW_PERCENTS: [f64; 4] = [50.0, 99.0, 99.9, 100.0];

/// What the samples of one job and direction add up to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleSum {
    /// Which job: its place in the last [`Event::Jobs`].
    pub job: u32,
    /// Direction of the I/O.
    pub dir: Direction,
    /// How many samples.
    pub n: u64,
    /// Begin of the first, ms since the run's start.
    pub begin_ms: u64,
    /// End of the last.
    pub end_ms: u64,
    /// I/Os of all.
    pub ios: u64,
    /// Bytes of all.
    pub bytes: u64,
    /// The IOPS of each.
    pub iops: Moments,
    /// The bandwidth of each.
    pub bw_bytes: Moments,
    /// The latencies of all; absent when none had any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clat: Option<Histogram>,
    /// The longest interval, in ms.
    #[serde(default)]
    pub interval_ms: u64,
    /// The lengths of times without I/O between two with some, in ms; the first of many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls_ms: Vec<u64>,
    /// Begin of the first sample with I/O, ms since the run's start.
    pub io_begin_ms: u64,
    /// End of the last.
    pub io_end_ms: u64,
}

impl SampleSum {
    fn new(sample: &Sample) -> Self {
        let mut sum = Self {
            job: sample.job,
            dir: sample.dir,
            n: 0,
            begin_ms: u64::MAX,
            end_ms: 0,
            ios: 0,
            bytes: 0,
            iops: Moments::default(),
            bw_bytes: Moments::default(),
            clat: None,
            interval_ms: 0,
            stalls_ms: Vec::new(),
            io_begin_ms: u64::MAX,
            io_end_ms: 0,
        };
        sum.add(sample);
        sum
    }

    fn add(&mut self, sample: &Sample) {
        self.n += 1;
        self.interval_ms = self.interval_ms.max(sample.span_ms);
        let stall_ms = sample.stall_after(self.io_end_ms, self.interval_ms);
        let room = STALLS_MOST.saturating_sub(self.stalls_ms.len());
        self.stalls_ms.extend(stall_ms.iter().take(room));
        let begin_ms = sample.t_ms.saturating_sub(sample.span_ms);
        if sample.ios > 0 {
            self.io_begin_ms = self.io_begin_ms.min(begin_ms);
            self.io_end_ms = self.io_end_ms.max(sample.t_ms);
        }
        self.begin_ms = self.begin_ms.min(begin_ms);
        self.end_ms = self.end_ms.max(sample.t_ms);
        self.ios = self.ios.saturating_add(sample.ios);
        self.bytes = self.bytes.saturating_add(sample.bytes);
        if let (Some(iops), Some(bw_bytes)) = (sample.iops(), sample.bw_bytes()) {
            self.iops.add(iops);
            self.bw_bytes.add(bw_bytes);
        }
        if let Some(clat) = &sample.clat {
            self.clat.get_or_insert_default().merge(clat);
        }
    }

    /// As one sample from the first I/O to the last, without its latencies.
    pub fn as_io_sample(&self) -> Sample {
        Sample {
            t_ms: self.io_end_ms,
            span_ms: self.io_end_ms.saturating_sub(self.io_begin_ms),
            ..self.as_sample()
        }
    }

    /// As one sample, without its latencies.
    pub fn as_sample(&self) -> Sample {
        Sample {
            t_ms: self.end_ms,
            span_ms: self.end_ms.saturating_sub(self.begin_ms),
            job: self.job,
            dir: self.dir,
            ios: self.ios,
            bytes: self.bytes,
            clat: None,
            lat: None,
        }
    }
}

/// What the samples of a stretch of intervals add up to.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DigestSums {
    /// When the last of them was written, ms since 1970 UTC.
    pub at_ms: u64,
    /// End of the last interval, ms since the run's start; absent when none was closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub t_ms: Option<u64>,
    /// How many lines of the log.
    pub entries: u64,
    /// One for each job and direction.
    pub sums: Vec<SampleSum>,
    /// What the machines did meanwhile, one for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceSum>,
    /// How they went.
    #[serde(skip)]
    pub tracks: Vec<DigestTrack>,
}

impl DigestSums {
    /// How many samples they are of.
    pub fn samples(&self) -> u64 {
        let all = self.sums.iter().map(|sum| sum.n);
        all.fold(0, u64::saturating_add)
    }

    /// The line that closes the last interval, where one does.
    pub fn interval(&self) -> Option<Entry> {
        let t_ms = self.t_ms?;
        Some(Entry {
            at_ms: self.at_ms,
            event: Event::Interval {
                t_ms,
                remaining_ms: None,
            },
        })
    }
}

/// How one job, or all of them together, went in one direction: of every 64 intervals
/// those with the lowest and the highest IOPS, the highest 99th percentile and the
/// longest latency as they are, and between them the others merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DigestTrack {
    /// The job; absent: all together, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<u32>,
    /// The direction.
    pub dir: Direction,
    /// In the order of time.
    pub rows: Vec<DigestRow>,
}

/// One interval, or several as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "[u64; 9]", into = "[u64; 9]")]
pub struct DigestRow {
    /// Its end, ms since the run's start.
    pub t_ms: u64,
    /// Its length.
    pub span_ms: u64,
    /// I/Os.
    pub ios: u64,
    /// Bytes.
    pub bytes: u64,
    /// Mean latency; 0: not measured.
    pub mean_ns: u64,
    /// The histogram's buckets of [`ROW_PERCENTS`], counted from 1; 0: not measured.
    pub buckets: [u64; ROW_PERCENTS.len()],
}

impl From<[u64; 9]> for DigestRow {
    fn from(of: [u64; 9]) -> Self {
        let [t_ms, span_ms, ios, bytes, mean_ns, buckets @ ..] = of;
        Self {
            t_ms,
            span_ms,
            ios,
            bytes,
            mean_ns,
            buckets,
        }
    }
}

impl From<DigestRow> for [u64; 9] {
    fn from(row: DigestRow) -> Self {
        let [a, b, c, d] = row.buckets;
        let DigestRow {
            t_ms,
            span_ms,
            ios,
            bytes,
            mean_ns,
            ..
        } = row;
        [t_ms, span_ms, ios, bytes, mean_ns, a, b, c, d]
    }
}

impl DigestRow {
    /// The row of a sample.
    pub fn of(sample: &Sample) -> Self {
        let clat = sample.clat.as_ref().filter(|clat| !clat.is_empty());
        let bucket = |percent| Some(bucket_of(clat?.percentile_ns(percent)?) as u64 + 1);
        Self {
            t_ms: sample.t_ms,
            span_ms: sample.span_ms,
            ios: sample.ios,
            bytes: sample.bytes,
            // A mean below half a ns would read as not measured.
            mean_ns: clat
                .and_then(Histogram::mean_ns)
                .map_or(0, |mean| (mean.round() as u64).max(1)),
            buckets: ROW_PERCENTS.map(|percent| bucket(percent).unwrap_or(0)),
        }
    }

    /// I/Os and ms compared as a rate, without dividing.
    fn slower_than(&self, other: &Self) -> bool {
        let cross = |a: &Self, b: &Self| u128::from(a.ios) * u128::from(b.span_ms);
        cross(self, other) < cross(other, self)
    }
}

/// Some intervals that become one.
#[derive(Debug, Clone, Default)]
pub struct RowMerge {
    /// How many they are.
    pub intervals: u32,
    t_ms: u64,
    span_ms: u64,
    ios: u64,
    bytes: u64,
    clat: Histogram,
}

impl RowMerge {
    /// Adds an interval that follows.
    pub fn then(&mut self, sample: &Sample) {
        self.intervals += 1;
        self.t_ms = sample.t_ms;
        self.span_ms += sample.span_ms;
        self.count(sample);
    }

    /// Adds what another job did in the same interval.
    pub fn beside(&mut self, sample: &Sample) {
        self.intervals = 1;
        self.t_ms = self.t_ms.max(sample.t_ms);
        self.span_ms = self.span_ms.max(sample.span_ms);
        self.count(sample);
    }

    fn count(&mut self, sample: &Sample) {
        self.ios = self.ios.saturating_add(sample.ios);
        self.bytes = self.bytes.saturating_add(sample.bytes);
        if let Some(clat) = &sample.clat {
            self.clat.merge(clat);
        }
    }

    /// The one.
    pub fn into_sample(self, dir: Direction) -> Sample {
        Sample {
            t_ms: self.t_ms,
            span_ms: self.span_ms,
            job: 0,
            dir,
            ios: self.ios,
            bytes: self.bytes,
            clat: (!self.clat.is_empty()).then_some(self.clat),
            lat: None,
        }
    }
}

/// The samples of one track that have not become rows yet.
#[derive(Debug, Default)]
struct Slots {
    open: Vec<Sample>,
    rows: Vec<DigestRow>,
}

impl Slots {
    fn add(&mut self, sample: Sample) {
        self.open.push(sample);
        if self.open.len() == SLOT {
            self.close();
        }
    }

    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        let rows: Vec<DigestRow> = open.iter().map(DigestRow::of).collect();
        let extreme = |beats: fn(&DigestRow, &DigestRow) -> bool| {
            let all = 0..rows.len();
            all.reduce(|best, at| {
                if beats(&rows[at], &rows[best]) {
                    at
                } else {
                    best
                }
            })
        };
        let kept: BTreeSet<usize> = [
            extreme(|row, best| row.slower_than(best)),
            extreme(|row, best| best.slower_than(row)),
            extreme(|row, best| row.buckets[1] > best.buckets[1]),
            extreme(|row, best| row.buckets[3] > best.buckets[3]),
        ]
        .into_iter()
        .flatten()
        .collect();
        let mut merge = RowMerge::default();
        let dir = open.first().map_or(Direction::Read, |sample| sample.dir);
        let end = |merge: &mut RowMerge, rows: &mut Vec<DigestRow>| {
            let merge = std::mem::take(merge);
            if merge.intervals > 0 {
                rows.push(DigestRow::of(&merge.into_sample(dir)));
            }
        };
        for (at, sample) in open.iter().enumerate() {
            if kept.contains(&at) {
                end(&mut merge, &mut self.rows);
                self.rows.push(rows[at]);
            } else {
                merge.then(sample);
            }
        }
        end(&mut merge, &mut self.rows);
    }
}

/// What samples add up to so far.
#[derive(Debug, Default)]
struct OpenInterval {
    at_ms: u64,
    t_ms: Option<u64>,
    entries: u64,
    sums: BTreeMap<(u32, Direction), SampleSum>,
    evidence: BTreeMap<Option<String>, EvidenceSum>,
    tracks: BTreeMap<(Option<u32>, Direction), Slots>,
}

impl OpenInterval {
    /// Adds an interval, closed at `t_ms` or not.
    fn add(&mut self, interval: DigestInterval, t_ms: Option<u64>, of_many: bool) {
        self.at_ms = interval.at_ms;
        self.t_ms = t_ms;
        let lines = interval.samples.len() + interval.evidence.len();
        self.entries += lines as u64 + u64::from(t_ms.is_some());
        for evidence in &interval.evidence {
            let sum = self.evidence.entry(evidence.host.clone()).or_default();
            sum.add(evidence);
        }
        let mut together: BTreeMap<Direction, RowMerge> = BTreeMap::new();
        for sample in interval.samples {
            let sum = self.sums.entry((sample.job, sample.dir));
            sum.and_modify(|sum| sum.add(&sample))
                .or_insert_with(|| SampleSum::new(&sample));
            if of_many {
                together.entry(sample.dir).or_default().beside(&sample);
            }
            let track = self.tracks.entry((Some(sample.job), sample.dir));
            track.or_default().add(sample);
        }
        for (dir, merge) in together {
            let track = self.tracks.entry((None, dir)).or_default();
            track.add(merge.into_sample(dir));
        }
    }
}

/// The samples of one interval, and what the machines did.
#[derive(Debug, Default)]
struct DigestInterval {
    at_ms: u64,
    samples: Vec<Sample>,
    evidence: Vec<EvidenceInterval>,
}

impl DigestInterval {
    fn members(&self) -> BTreeSet<u32> {
        self.samples.iter().map(|sample| sample.job).collect()
    }
}

/// Makes the group of a segment from its lines.
#[derive(Debug)]
pub(crate) struct Fold {
    /// Of which segment.
    pub segment: u32,
    lines: Vec<u8>,
    jobs: usize,
    on_hosts: bool,
    open: OpenInterval,
    interval: DigestInterval,
    /// On hosts: the interval that was closed last, and its end. What all hosts did in
    /// the time that they shared is counted from whom each interval has seen
    /// (`analysis::hosts::Overlap`): as one go only intervals that have seen the same
    /// ones, and the last of them by itself.
    last: Option<(DigestInterval, u64)>,
    members: BTreeSet<u32>,
}

/// First line of a group.
#[derive(Serialize, Deserialize)]
struct DigestHead {
    segment: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    follows: Option<String>,
    /// Some of its lines could not be read: the segment itself is to be read.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    damaged: bool,
}

/// Last line of a group.
#[derive(Serialize, Deserialize)]
struct DigestEnd {
    end: u32,
    /// The check of the whole segment.
    crc: String,
}

#[derive(Serialize, Deserialize)]
struct SumsLine {
    sums: DigestSums,
}

#[derive(Serialize, Deserialize)]
struct TracksLine {
    tracks: Vec<DigestTrack>,
}

/// First line of the file.
#[derive(Serialize, Deserialize)]
struct FileHead {
    format: String,
    version: u32,
}

fn push(lines: &mut Vec<u8>, line: &impl Serialize) {
    let begin = lines.len();
    match serde_json::to_writer(&mut *lines, line) {
        Ok(()) => lines.push(b'\n'),
        // Nothing of these can fail.
        Err(_) => lines.truncate(begin),
    }
}

/// The first line of the file.
pub(crate) fn file_head() -> Vec<u8> {
    let mut line = Vec::new();
    let format = FORMAT.to_owned();
    let version = VERSION;
    push(&mut line, &FileHead { format, version });
    line
}

impl Fold {
    /// Of the segment that begins so.
    pub(crate) fn new(place: LogPlace, segment: u32) -> Self {
        let mut lines = Vec::new();
        let follows = place.follows;
        let damaged = false;
        push(
            &mut lines,
            &DigestHead {
                segment,
                follows,
                damaged,
            },
        );
        Self {
            segment,
            lines,
            jobs: place.jobs,
            on_hosts: place.on_hosts,
            open: OpenInterval::default(),
            interval: DigestInterval::default(),
            last: None,
            members: BTreeSet::new(),
        }
    }

    /// Takes the next line, without its end.
    pub(crate) fn take(&mut self, line: &[u8]) {
        let Ok(Some(entry)) = parse(line) else {
            // Of a later kind; who knows it finds it.
            self.event(line);
            return;
        };
        match entry.event {
            Event::Sample(sample) => {
                self.interval.at_ms = entry.at_ms;
                self.interval.samples.push(sample);
                return;
            }
            // What a machine did before the first sample, a ramp or laying out, is apart
            // from what it did beside samples.
            Event::Evidence(evidence) if self.has_samples() && !evidence.is_first() => {
                self.interval.evidence.push(*evidence);
                return;
            }
            Event::Interval { t_ms, .. } => {
                self.interval.at_ms = entry.at_ms;
                self.close(t_ms);
                return;
            }
            Event::Jobs { names, hosts } => {
                self.flush();
                (self.jobs, self.on_hosts) = (names.len(), !hosts.is_empty());
            }
            // Said of the run while samples go on; they are not to end for each.
            Event::Note { .. }
            | Event::Status { .. }
            | Event::KernelCounted { .. }
            | Event::WrittenBeside { .. }
            | Event::Evidence(_)
            | Event::Preparing { .. }
            | Event::LayingOut { .. } => {}
            _ => self.flush(),
        }
        self.event(line);
    }

    fn has_samples(&self) -> bool {
        !(self.open.sums.is_empty() && self.interval.samples.is_empty() && self.last.is_none())
    }

    fn event(&mut self, line: &[u8]) {
        // A check of the segment would read as one of the digest.
        let end = match crate::chain::is_sealed(line) {
            true => line.len() - SEAL_BYTES,
            false => line.len(),
        };
        self.lines.extend_from_slice(&line[..end]);
        self.lines.extend_from_slice(match end == line.len() {
            true => b"\n",
            false => b"}\n",
        });
    }

    /// The interval of the samples so far has ended.
    fn close(&mut self, t_ms: u64) {
        let interval = std::mem::take(&mut self.interval);
        if !self.on_hosts {
            self.open.add(interval, Some(t_ms), self.jobs > 1);
            return;
        }
        let members = interval.members();
        let is_same = members == self.members;
        if let Some((last, end)) = self.last.take() {
            if is_same {
                self.open.add(last, Some(end), true);
            } else {
                self.emit();
                self.open.add(last, Some(end), true);
                self.emit();
            }
        }
        (self.last, self.members) = (Some((interval, t_ms)), members);
    }

    /// Writes down everything that has been added up.
    fn flush(&mut self) {
        self.emit();
        if let Some((last, end)) = self.last.take() {
            self.open.add(last, Some(end), true);
            self.emit();
        }
        let rest = std::mem::take(&mut self.interval);
        if !(rest.samples.is_empty() && rest.evidence.is_empty()) {
            self.open.add(rest, None, self.jobs > 1);
            self.emit();
        }
    }

    fn emit(&mut self) {
        let open = std::mem::take(&mut self.open);
        if open.entries == 0 {
            return;
        }
        let tracks = open.tracks.into_iter().map(|((job, dir), mut slots)| {
            slots.close();
            let rows = slots.rows;
            DigestTrack { job, dir, rows }
        });
        let tracks = tracks.collect();
        push(&mut self.lines, &TracksLine { tracks });
        let sums = DigestSums {
            at_ms: open.at_ms,
            t_ms: open.t_ms,
            entries: open.entries,
            sums: open.sums.into_values().collect(),
            evidence: open.evidence.into_values().collect(),
            tracks: Vec::new(),
        };
        push(&mut self.lines, &SumsLine { sums });
    }

    /// The group of a segment that is damaged.
    pub(crate) fn of_damaged(segment: u32) -> Vec<u8> {
        let mut lines = Vec::new();
        let head = DigestHead {
            segment,
            follows: None,
            damaged: true,
        };
        push(&mut lines, &head);
        let crc = String::new();
        push(&mut lines, &DigestEnd { end: segment, crc });
        lines
    }

    /// How long the group is so far.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.len()
    }

    /// The group, of a segment with this check.
    pub(crate) fn finish(mut self, chain: Chain) -> Vec<u8> {
        self.flush();
        let crc = chain.to_string();
        let end = self.segment;
        push(&mut self.lines, &DigestEnd { end, crc });
        self.lines
    }
}

/// `,"check":"01234567"}`
const SEAL_BYTES: usize = 20;

/// The file of a record.
pub(crate) fn path(dir: &Path) -> PathBuf {
    dir.join(FOLDER).join("digest.jsonl")
}

/// Reads the digest of a record.
#[derive(Debug)]
pub(crate) struct Digest {
    lines: BlockReader,
    /// The group that has been begun.
    segment: u32,
    follows: Option<String>,
    damaged: bool,
    /// The check of the segment whose group has been read.
    pub crc: String,
    tracks: Vec<DigestTrack>,
}

impl Digest {
    /// `None` where there is none that this Fathom can read.
    pub(crate) fn open(dir: &Path) -> Option<Self> {
        let path = path(dir);
        let file = regular(&path).ok()?;
        let mut lines = BlockReader::new(path, SegmentSource::of(file), false);
        lines.only_sealed = true;
        let first = lines.first().ok()?;
        let head: FileHead = serde_json::from_slice(lines.line()).ok()?;
        let is_good = matches!(first, NextEntry::Line) && lines.has_checks();
        (is_good && (head.format.as_str(), head.version) == (FORMAT, VERSION)).then(|| Self {
            lines,
            segment: 0,
            follows: None,
            damaged: false,
            crc: String::new(),
            tracks: Vec::new(),
        })
    }

    /// Goes to the group of a segment; what it says of the one before.
    pub(crate) fn begin(&mut self, segment: u32) -> Option<Option<String>> {
        while self.segment < segment {
            if !matches!(self.lines.next(), Ok(NextEntry::Line)) {
                return None;
            }
            if self.lines.line().starts_with(br#"{"segment":"#) {
                let head: DigestHead = serde_json::from_slice(self.lines.line()).ok()?;
                self.segment = head.segment;
                (self.follows, self.damaged) = (head.follows, head.damaged);
            }
        }
        (self.segment == segment && !self.damaged).then(|| self.follows.take())
    }

    /// The next part of the segment.
    pub(crate) fn next(&mut self) -> Option<RecordPart> {
        loop {
            if !matches!(self.lines.next(), Ok(NextEntry::Line)) {
                return None;
            }
            let line = self.lines.line();
            if line.starts_with(br#"{"tracks":"#) {
                let tracks: TracksLine = serde_json::from_slice(line).ok()?;
                self.tracks = tracks.tracks;
            } else if line.starts_with(br#"{"sums":"#) {
                let SumsLine { mut sums } = serde_json::from_slice(line).ok()?;
                sums.tracks = std::mem::take(&mut self.tracks);
                return Some(RecordPart::Sums(Box::new(sums)));
            } else if line.starts_with(br#"{"end":"#) {
                let end: DigestEnd = serde_json::from_slice(line).ok()?;
                self.crc = end.crc;
                return None;
            } else if let Ok(Some(entry)) = parse(line) {
                return Some(RecordPart::Entry(entry));
            }
        }
    }

    /// How far it goes without a gap: the segment, where its group ends, and the check.
    pub(crate) fn whole(mut self) -> (u32, u64, Chain) {
        let mut bytes = self.lines.line().len() as u64 + 1;
        let mut whole = (0, bytes, self.lines.chain);
        let mut group = 0;
        while matches!(self.lines.next(), Ok(NextEntry::Line)) {
            let line = self.lines.line();
            bytes += line.len() as u64 + 1;
            if line.starts_with(br#"{"segment":"#) {
                let head = serde_json::from_slice(line);
                group = head.map_or(0, |head: DigestHead| head.segment);
            } else if line.starts_with(br#"{"end":"#) {
                if group != whole.0 + 1 {
                    break;
                }
                whole = (group, bytes, self.lines.chain);
            }
        }
        whole
    }
}
