//! What comes next: direction, file, offset and size of each I/O of a worker.

use super::files::MemberFiles;
use super::job::{DirIndex, FileOrder, FileService, IoPattern, NativeJob, Sizes};
use super::offsets::{Distribution, FreeMap, OffsetSampler, Permutation};
use super::rng::{Rng, mix};
use super::zones::{StridedZones, ZoneStep};

/// One I/O to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextIo {
    pub(super) dir: DirIndex,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
}

/// How offsets of a file are found.
#[derive(Debug)]
enum Picker {
    Sequential,
    /// No start twice, in blocks of `unit`.
    Once {
        blocks: Permutation,
        unit: u32,
    },
    /// Several block sizes, no block twice; counted in blocks of `unit`.
    Free {
        map: FreeMap,
        unit: u32,
    },
    /// With repetition: blocks of `unit`.
    Again {
        draw: OffsetSampler,
        unit: u32,
    },
}

#[derive(Debug)]
struct FileState {
    start: u64,
    len: u64,
    /// Where each direction's last I/O ended, and where it began.
    positions: [u64; 3],
    starts: [u64; 3],
    /// Bytes of this pass.
    issued: u64,
    pickers: Vec<Picker>,
    /// Each direction's place among them.
    picker_of: [usize; 3],
}

/// The I/Os of one worker, one after the other.
#[derive(Debug)]
#[repr(C)] // what most jobs need stands together, as in `Worker`
pub(super) struct IoSource {
    files: Vec<FileState>,
    rng: Rng,
    /// Of a job with one direction.
    only: Option<DirIndex>,
    /// Of a job whose I/Os go to one file, are of this size, and whose places follow
    /// from nothing but their picker.
    one_size: Option<u32>,
    pattern: IoPattern,
    service: FileService,
    /// Which file it is the turn of, in parts of a file, where some are more popular.
    popular: Option<OffsetSampler>,
    /// The last one, and how many more I/Os it has in a row.
    current: Option<usize>,
    in_row: u32,
    /// I/Os until the next one at a random place (`rw=randread:8`).
    until_random: u32,
    /// `trimwrite`: the block that was trimmed and is to be written.
    rewrite: Option<NextIo>,
    /// `zonemode=strided`, of the only file.
    zones: Option<StridedZones>,
    seed: u64,
}

impl IoSource {
    pub(super) fn new(job: &NativeJob, plan: &MemberFiles, seed: u64) -> Self {
        let zones = job.extent.zones.strided(plan.files.len());
        let zones = zones.map(|of| StridedZones::new(of, plan.files[0].start, plan.files[0].end));
        let files = plan
            .files
            .iter()
            .enumerate()
            .map(|(place, file)| {
                let len = zones.as_ref().map_or(file.len, StridedZones::range);
                let (pickers, picker_of) = pickers(&job.pattern, len, mix(seed, place as u64));
                FileState {
                    start: file.start,
                    len,
                    positions: [0; 3],
                    starts: [0; 3],
                    issued: 0,
                    pickers,
                    picker_of,
                }
            })
            .collect();
        let alone = plan.files.len() == 1 && zones.is_none();
        Self {
            only: job.pattern.only_direction(),
            one_size: job.pattern.one_size().filter(|_| alone),
            pattern: job.pattern.clone(),
            popular: popular(&job.files.service, plan.files.len(), mix(seed, 1 << 33)),
            service: job.files.service.clone(),
            files,
            current: None,
            in_row: 0,
            rng: offsets_rng(seed),
            until_random: 0,
            rewrite: None,
            zones,
            seed,
        }
    }

    /// As it was at first: the same I/Os come again.
    pub(super) fn rewind(&mut self) {
        self.rng = offsets_rng(self.seed);
        (self.until_random, self.rewrite) = (0, None);
        (self.current, self.in_row) = (None, 0);
        if let Some(zones) = &mut self.zones {
            zones.rewind();
        }
        for file in &mut self.files {
            (file.positions, file.starts, file.issued) = ([0; 3], [0; 3], 0);
            file.pickers.iter_mut().for_each(Picker::rewind);
        }
    }

    /// Which direction comes next.
    #[inline]
    pub(super) fn direction(&mut self) -> DirIndex {
        if let Some(only) = self.only {
            return only;
        }
        if self.rewrite.is_some() {
            return DirIndex::Write;
        }
        match self.pattern.dirs {
            [true, true, _] => {
                if self.rng.percent(self.pattern.read_percent) {
                    DirIndex::Read
                } else {
                    DirIndex::Write
                }
            }
            [true, ..] => DirIndex::Read,
            [_, _, true] => DirIndex::Trim,
            _ => DirIndex::Write,
        }
    }

    /// The next I/O in this direction.
    #[inline(always)]
    pub(super) fn next(&mut self, dir: DirIndex) -> NextIo {
        if let Some(size) = self.one_size {
            let picked = self.files[0].pick(dir, &Sizes::Fixed(size), 0, &mut self.rng);
            let (offset, len) = picked;
            return NextIo {
                dir,
                file: 0,
                offset,
                len,
            };
        }
        self.next_of_many(dir)
    }

    /// The same where more has a say.
    fn next_of_many(&mut self, dir: DirIndex) -> NextIo {
        if let Some(write) = self.rewrite.take() {
            if let Some(zones) = &mut self.zones {
                zones.did(write.len);
            }
            return write;
        }
        if let Some(zones) = &mut self.zones
            && let ZoneStep::From(start) = zones.step()
        {
            self.files[0].begin_zone(start);
        }
        let place = if self.files.len() == 1 {
            0
        } else {
            self.choose_file()
        };
        let follows = self.pattern.random && self.until_random > 0;
        self.until_random = if follows {
            self.until_random - 1
        } else {
            self.pattern.run - 1
        };
        let file = &mut self.files[place];
        let percent = self.pattern.random_percent[dir as usize];
        let (pattern, rng) = (&self.pattern, &mut self.rng);
        let followed = if follows {
            file.follow(dir, pattern, rng)
        } else if percent < 100 && pattern.random && !rng.percent(percent) {
            Some(file.go_on(dir, pattern, rng))
        } else {
            None
        };
        let (offset, len) = followed.unwrap_or_else(|| {
            let sizes = pattern.sizes_of(dir, pattern.random);
            file.pick(dir, sizes, pattern.skip, rng)
        });
        file.issued += u64::from(len);
        if let Some(zones) = &mut self.zones {
            zones.did(len);
        }
        let next = NextIo {
            dir,
            file: place as u32,
            offset,
            len,
        };
        if self.pattern.trimwrite {
            self.rewrite = Some(NextIo {
                dir: DirIndex::Write,
                ..next
            });
        }
        next
    }

    /// Where the only file's next I/O in order begins.
    pub(super) fn position(&self, dir: DirIndex) -> u64 {
        let file = &self.files[0];
        file.start + file.positions[dir as usize]
    }

    /// The last I/O of a file ended here, whatever was drawn.
    #[inline]
    pub(super) fn went(&mut self, dir: DirIndex, file: u32, end: u64) {
        let file = &mut self.files[file as usize];
        file.positions[dir as usize] = end.saturating_sub(file.start);
    }

    /// A file that is not through yet; when all are, a new pass begins.
    fn choose_file(&mut self) -> usize {
        let count = self.files.len();
        let min = u64::from(self.pattern.min_block());
        let open = |file: &FileState| file.issued + min <= file.len;
        if !self.files.iter().any(open) {
            self.files.iter_mut().for_each(|file| file.issued = 0);
        }
        if let Some(current) = self.current
            && self.in_row > 0
            && open(&self.files[current])
        {
            self.in_row -= 1;
            return current;
        }
        let first = match (&self.service.order, &self.popular) {
            (FileOrder::RoundRobin, _) => self.current.map_or(0, |current| current + 1),
            (FileOrder::Sequential, _) => self.current.unwrap_or(0),
            (_, None) => self.rng.below(count as u64) as usize,
            (_, Some(draw)) => {
                let mut draws = std::iter::repeat_with(|| draw.next(&mut self.rng) / FILE_PARTS);
                let drawn = draws.by_ref().take(MOST_DRAWS);
                let mut places = drawn.map(|place| place as usize);
                places.find(|&at| open(&self.files[at])).unwrap_or(0)
            }
        };
        let place = (0..count)
            .map(|step| (first + step) % count)
            .find(|&place| open(&self.files[place]))
            .unwrap_or(0);
        self.current = Some(place);
        self.in_row = self.service.run.max(1) - 1;
        place
    }
}

/// Parts of a file that some files have more of than others (options.h, FIO_FSERVICE_SHIFT).
const FILE_PARTS: u64 = 1 << 10;

/// Draws after which the next file does that is not through, whatever its popularity.
const MOST_DRAWS: usize = 1000;

/// What popular files are drawn by.
fn popular(service: &FileService, files: usize, seed: u64) -> Option<OffsetSampler> {
    match &service.order {
        FileOrder::Random(by) if *by != Distribution::Uniform => {
            Some(OffsetSampler::in_order(files as u64 * FILE_PARTS, by, seed))
        }
        _ => None,
    }
}

/// What the random offsets of a worker come from.
fn offsets_rng(seed: u64) -> Rng {
    Rng::new(mix(seed, 1 << 32))
}

impl Picker {
    /// Every block is free again, as it was at first.
    fn rewind(&mut self) {
        match self {
            Self::Once { blocks, .. } => blocks.rewind(),
            Self::Free { map, .. } => map.reset(),
            Self::Sequential | Self::Again { .. } => {}
        }
    }

    /// Every block is free again, in another order.
    fn renew(&mut self) {
        match self {
            Self::Once { blocks, .. } => blocks.renew(),
            other => other.rewind(),
        }
    }
}

/// The pickers of a file, and which direction has which.
fn pickers(pattern: &IoPattern, len: u64, seed: u64) -> (Vec<Picker>, [usize; 3]) {
    if !pattern.random {
        return (vec![Picker::Sequential], [0; 3]);
    }
    if pattern.draws_anew() || pattern.maps_by_direction() {
        let of = |dir| picker(pattern, &[dir], len, mix(seed, dir as u64));
        return (DirIndex::ALL.map(of).into(), [0, 1, 2]);
    }
    let used: Vec<_> = DirIndex::ALL
        .into_iter()
        .filter(|&dir| pattern.uses(dir))
        .collect();
    (vec![picker(pattern, &used, len, seed)], [0; 3])
}

/// The picker that these directions share; their smallest blocks are alike.
fn picker(pattern: &IoPattern, dirs: &[DirIndex], len: u64, seed: u64) -> Picker {
    let dir = dirs.first().map_or(0, |&dir| dir as usize);
    let least = pattern.sizes[dir].min().max(1);
    if pattern.draws_anew() {
        let unit = pattern.align[dir].unwrap_or(least).max(1);
        // The last block must fit from its offset on.
        let drawn = dirs.iter().map(|&dir| pattern.sizes_of(dir, true).min());
        let drawn = u64::from(drawn.max().unwrap_or(least));
        let blocks = len.saturating_sub(drawn) / u64::from(unit) + 1;
        let draw = OffsetSampler::new(blocks, u64::from(unit), &pattern.distribution[dir], seed);
        return Picker::Again { draw, unit };
    }
    let blocks = (len / u64::from(least)).max(1);
    let one_size = dirs
        .iter()
        .all(|&dir| *pattern.sizes_of(dir, true) == Sizes::Fixed(least));
    if one_size || pattern.full_cycle {
        let blocks = Permutation::new(blocks, seed);
        Picker::Once {
            blocks,
            unit: least,
        }
    } else {
        let map = FreeMap::new(blocks);
        Picker::Free { map, unit: least }
    }
}

impl FileState {
    /// All goes to the zone that begins here, of which nothing is used.
    fn begin_zone(&mut self, start: u64) {
        self.start = start;
        (self.positions, self.starts) = ([0; 3], [0; 3]);
        self.pickers.iter_mut().for_each(Picker::renew);
    }

    #[inline(always)]
    fn pick(&mut self, dir: DirIndex, sizes: &Sizes, skip: i64, rng: &mut Rng) -> (u64, u32) {
        let (relative, len) = match &mut self.pickers[self.picker_of[dir as usize]] {
            Picker::Once { blocks, unit } => {
                let at = blocks.next() * u64::from(*unit);
                (at, fitting(sizes, self.len - at, rng))
            }
            Picker::Sequential => {
                let position = self.positions[dir as usize];
                let at = skipped(position, skip, self.len);
                let at = if at + u64::from(sizes.min()) > self.len {
                    0
                } else {
                    at
                };
                (at, fitting(sizes, self.len - at, rng))
            }
            Picker::Free { map, unit } => {
                let size = size(sizes, rng);
                let (block, count) = map.take(rng, u64::from(size.div_ceil(*unit)));
                (block * u64::from(*unit), size.min(count as u32 * *unit))
            }
            Picker::Again { draw, unit } => {
                let at = draw.next(rng) * u64::from(*unit);
                (at, fitting(sizes, self.len - at, rng))
            }
        };
        self.went(dir, relative, len)
    }

    /// Notes where an I/O goes.
    #[inline]
    fn went(&mut self, dir: DirIndex, relative: u64, len: u32) -> (u64, u32) {
        self.starts[dir as usize] = relative;
        self.positions[dir as usize] = relative + u64::from(len);
        (self.start + relative, len)
    }

    /// The next I/O of a run: behind the last one or at its place, whatever was done
    /// there (io_u.c, IO_U_F_BUSY_OK); `None` when the file ends there.
    fn follow(&mut self, dir: DirIndex, pattern: &IoPattern, rng: &mut Rng) -> Option<(u64, u32)> {
        let at = if pattern.run_stays {
            self.starts[dir as usize]
        } else {
            self.positions[dir as usize]
        };
        self.fits_at(dir, pattern, at)
            .then(|| self.in_order(dir, pattern, at, rng))
    }

    /// One of the I/Os of a random job that are in order: behind the last one, at the
    /// file's end from its start on.
    fn go_on(&mut self, dir: DirIndex, pattern: &IoPattern, rng: &mut Rng) -> (u64, u32) {
        let behind = self.positions[dir as usize];
        let at = match self.fits_at(dir, pattern, behind) {
            true => behind,
            false => 0,
        };
        self.in_order(dir, pattern, at, rng)
    }

    fn fits_at(&self, dir: DirIndex, pattern: &IoPattern, at: u64) -> bool {
        at + u64::from(pattern.sizes_of(dir, false).min()) <= self.len
    }

    fn in_order(
        &mut self,
        dir: DirIndex,
        pattern: &IoPattern,
        at: u64,
        rng: &mut Rng,
    ) -> (u64, u32) {
        let len = fitting(pattern.sizes_of(dir, false), self.len - at, rng);
        self.went(dir, at, len)
    }
}

/// Where a sequential I/O goes that leaves out `skip` bytes, backwards when
/// they are negative; the first one is at the start (io_u.c,
/// get_next_seq_offset).
#[inline]
fn skipped(position: u64, skip: i64, len: u64) -> u64 {
    if skip == 0 || position == 0 {
        return position;
    }
    match position.checked_add_signed(skip) {
        Some(at) if at < len => at,
        _ if skip > 0 => 0,
        _ => len.saturating_add_signed(skip),
    }
}

/// A size that there is room for, drawn anew until there is (io_u.c,
/// get_next_buflen); the smallest fits.
#[inline]
fn fitting(sizes: &Sizes, room: u64, rng: &mut Rng) -> u32 {
    if let Sizes::Fixed(size) = sizes {
        return u64::from(*size).min(room) as u32;
    }
    // More than ever needed: a size of one percent is missed once in a million.
    for _ in 0..1400 {
        let size = size(sizes, rng);
        if u64::from(size) <= room {
            return size;
        }
    }
    u64::from(sizes.min()).min(room) as u32
}

#[inline]
fn size(sizes: &Sizes, rng: &mut Rng) -> u32 {
    match sizes {
        Sizes::Fixed(size) => *size,
        Sizes::Range(low, high) => {
            let steps = (high - low) / low;
            low + rng.below(u64::from(steps) + 1) as u32 * low
        }
        // As much above the largest as below the smallest; cut to the largest.
        Sizes::Any(low, high) => {
            let size = u64::from(*low) + rng.below(u64::from(*high));
            size.min(u64::from(*high)) as u32
        }
        Sizes::Split(parts) => {
            let roll = rng.below(100) as u8;
            let part = parts.iter().find(|part| roll < part.1).or(parts.last());
            part.map_or(0, |part| part.0)
        }
    }
}

#[cfg(test)]
mod tests;
