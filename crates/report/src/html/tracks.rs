//! The interval samples, packed for the page (docs/FORMAT.md).
//!
//! A *track* is what one job, or all jobs of a step together, did in one
//! direction. It is written in blocks as the record is read, so that memory is
//! needed for a block of each track of one step, however long the record is.
//!
//! Numbers are stored as differences in LEB128, most of them in one byte; bench/
//! has the size of a million samples. Deflate on top would make the page wait for
//! the browser's asynchronous streams before it can draw.

use std::collections::BTreeMap;
use std::io::{self, Write};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fathom_model::{Direction, Event, Sample};
use fathom_record::digest::{DigestRow, DigestTrack, ROW_PERCENTS, RowMerge};

/// Samples in a block: large enough that its frame does not count, small enough
/// that blocks of many jobs fit into memory.
const BLOCK: usize = 4096;
/// More samples are not embedded: a browser would not open the page in good
/// time. Neighbouring intervals are merged then, with their histograms.
const SAMPLES_MAX: u64 = 2_000_000;
/// Of more samples, two days of two directions, those that the record has added up are
/// drawn by their digest, which keeps extremes ([`DigestTrack`]): to read them all would
/// take longer than anybody waits.
const SAMPLES_READ_MAX: u64 = 400_000;

/// Of a campaign of many points: its samples show what a point did, and stand in the
/// record one by one.
const SAMPLES_OF_POINTS: u64 = 16_000;

/// A campaign of more points shows what each did, not each of its intervals.
const MANY_POINTS: usize = 100;

/// The most samples that are read one by one, where the record has added them up.
pub fn read_max(points: usize) -> u64 {
    match points > MANY_POINTS {
        true => SAMPLES_OF_POINTS,
        false => SAMPLES_READ_MAX,
    }
}

/// How many intervals have to become one, so that `samples` fit.
pub fn merged_for(samples: u64, points: usize) -> u32 {
    let most = match points > MANY_POINTS {
        true => SAMPLES_OF_POINTS,
        false => SAMPLES_MAX,
    };
    u32::try_from(samples.div_ceil(most))
        .unwrap_or(u32::MAX)
        .max(1)
}

/// Whose samples a track holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    /// All jobs together.
    All,
    /// The job in this place.
    Job(u32),
}

#[derive(Debug, Default)]
struct HtmlTrack {
    merge: RowMerge,
    rows: Vec<DigestRow>,
}

/// Packs the samples of a run as its events go by.
#[derive(Debug)]
pub struct Packer<'o, W: Write> {
    out: &'o mut W,
    merged: u32,
    /// Place of the step in progress, counted from 0.
    step: usize,
    /// Number of jobs that samples of the step refer to.
    jobs: usize,
    tracks: BTreeMap<(Whose, Direction), HtmlTrack>,
    /// What all jobs did in the interval in progress.
    together: BTreeMap<Direction, RowMerge>,
}

impl<'o, W: Write> Packer<'o, W> {
    /// Writes to `out`, `merged` intervals as one.
    pub fn new(out: &'o mut W, merged: u32) -> Self {
        Self {
            out,
            merged,
            step: 0,
            jobs: 0,
            tracks: BTreeMap::new(),
            together: BTreeMap::new(),
        }
    }

    /// Takes the next event, which belongs to the step in this place.
    pub fn take(&mut self, step: usize, event: &Event) -> io::Result<()> {
        if step != self.step {
            self.end_step()?;
            self.step = step;
        }
        match event {
            Event::Jobs { names, .. } => self.jobs = names.len(),
            Event::Sample(sample) => {
                if self.jobs > 1 {
                    let together = self.together.entry(sample.dir).or_default();
                    together.beside(sample);
                }
                self.add((Whose::Job(sample.job), sample.dir), sample)?;
            }
            Event::Interval { .. } => self.end_interval()?,
            _ => {}
        }
        Ok(())
    }

    fn end_interval(&mut self) -> io::Result<()> {
        for (dir, merge) in std::mem::take(&mut self.together) {
            let sample = merge.into_sample(dir);
            self.add((Whose::All, dir), &sample)?;
        }
        Ok(())
    }

    /// Takes what the digest of a record has in the place of samples.
    pub fn take_rows(&mut self, step: usize, tracks: &[DigestTrack]) -> io::Result<()> {
        if step != self.step {
            self.end_step()?;
            self.step = step;
        }
        self.end_interval()?;
        for track in tracks {
            let key = (track.job.map_or(Whose::All, Whose::Job), track.dir);
            let known = self.tracks.entry(key).or_default();
            if known.merge.intervals > 0 {
                let merge = std::mem::take(&mut known.merge);
                known
                    .rows
                    .push(DigestRow::of(&merge.into_sample(track.dir)));
            }
            known.rows.extend(&track.rows);
            while self
                .tracks
                .get(&key)
                .is_some_and(|known| known.rows.len() >= BLOCK)
            {
                let known = self.tracks.entry(key).or_default();
                let rest = known.rows.split_off(BLOCK);
                let rows = std::mem::replace(&mut known.rows, rest);
                self.block(key, &rows)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, key: (Whose, Direction), sample: &Sample) -> io::Result<()> {
        let track = self.tracks.entry(key).or_default();
        if self.merged == 1 {
            track.rows.push(DigestRow::of(sample));
        } else {
            track.merge.then(sample);
            if track.merge.intervals < self.merged {
                return Ok(());
            }
            let merge = std::mem::take(&mut track.merge);
            track.rows.push(DigestRow::of(&merge.into_sample(key.1)));
        }
        if track.rows.len() >= BLOCK {
            let rows = std::mem::take(&mut track.rows);
            self.block(key, &rows)?;
        }
        Ok(())
    }

    /// Writes what is left of the step.
    pub fn end_step(&mut self) -> io::Result<()> {
        self.end_interval()?;
        for (key, mut track) in std::mem::take(&mut self.tracks) {
            if track.merge.intervals > 0 {
                track
                    .rows
                    .push(DigestRow::of(&track.merge.into_sample(key.1)));
            }
            if !track.rows.is_empty() {
                self.block(key, &track.rows)?;
            }
        }
        self.jobs = 0;
        Ok(())
    }

    fn block(&mut self, (whose, dir): (Whose, Direction), rows: &[DigestRow]) -> io::Result<()> {
        let step = self.step;
        let job = match whose {
            Whose::All => "all".to_owned(),
            Whose::Job(job) => job.to_string(),
        };
        let (dir, text) = (dir.name(), BASE64_STANDARD.encode(pack(rows)));
        // As short as HTML allows: a campaign has thousands.
        write!(
            self.out,
            "<script type=track data-of={step},{job},{dir}>{text}</script>"
        )
    }
}

/// LEB128.
fn unsigned(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        bytes.push((value & 127) as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Small distances, up or down, become small numbers: 0, -1, 1, -2, … are 0, 1, 2, 3, …
fn signed(bytes: &mut Vec<u8>, from: u64, to: u64) {
    let distance = to.wrapping_sub(from) as i64;
    unsigned(bytes, ((distance << 1) ^ (distance >> 63)) as u64);
}

/// The rows, column by column.
fn pack(rows: &[DigestRow]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(rows.len() * 14);
    unsigned(&mut bytes, rows.len() as u64);
    let mut last = 0;
    for row in rows {
        // Times never go back; if a clock did, the next sample stands at the same time.
        let t_ms = row.t_ms.max(last);
        unsigned(&mut bytes, t_ms - last);
        last = t_ms;
    }
    let mut last: Option<u64> = None;
    for row in rows {
        let t_ms = row.t_ms.max(last.unwrap_or(0));
        let expected = last.map_or(0, |last| t_ms - last);
        signed(&mut bytes, expected, row.span_ms);
        last = Some(t_ms);
    }
    column(&mut bytes, rows, |row| row.ios);
    let mut before: Option<&DigestRow> = None;
    for row in rows {
        // Blocks mostly keep their size; computed exactly as the page does.
        let size = before
            .filter(|before| before.ios > 0)
            .map_or(0.0, |before| before.bytes as f64 / before.ios as f64);
        signed(
            &mut bytes,
            (row.ios as f64 * size).floor() as u64,
            row.bytes,
        );
        before = Some(row);
    }
    column(&mut bytes, rows, |row| row.mean_ns);
    for place in 0..ROW_PERCENTS.len() {
        column(&mut bytes, rows, |row| row.buckets[place]);
    }
    bytes
}

fn column(bytes: &mut Vec<u8>, rows: &[DigestRow], value: impl Fn(&DigestRow) -> u64) {
    let mut last = 0;
    for row in rows {
        let value = value(row);
        signed(bytes, last, value);
        last = value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_short_as_they_can_be() {
        let packed = |from, to| {
            let mut bytes = Vec::new();
            signed(&mut bytes, from, to);
            bytes
        };
        assert_eq!(packed(5, 5), [0]);
        assert_eq!(packed(5, 4), [1]);
        assert_eq!(packed(0, 63), [126]);
        assert_eq!(packed(64, 0), [127]);
        assert_eq!(packed(0, 64), [128, 1]);
        assert_eq!(packed(0, u64::MAX), [1], "wraps, and unwraps the same");
    }

    #[test]
    fn a_year_of_seconds_is_merged() {
        assert_eq!(merged_for(0, 702), 1);
        assert_eq!(merged_for(SAMPLES_MAX, 1), 1);
        assert_eq!(merged_for(365 * 86_400, 0), 16);
        assert_eq!(merged_for(200_000, 702), 13);
    }
}
