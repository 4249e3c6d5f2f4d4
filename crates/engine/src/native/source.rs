//! What comes next: direction, file, offset and size of each I/O of a worker.

use super::files::MemberFiles;
use super::job::{DirIndex, FileService, IoPattern, NativeJob, Sizes};
use super::offsets::{Draw, FreeMap, Permutation};
use super::rng::{Rng, mix};

/// One I/O to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NextIo {
    pub(super) dir: DirIndex,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) len: u32,
}

/// How random offsets of a file are found.
#[derive(Debug)]
enum Picker {
    Sequential,
    /// One block size, no block twice.
    Once {
        blocks: Permutation,
        size: u32,
    },
    /// Several block sizes, no block twice; counted in blocks of `unit`.
    Free {
        map: FreeMap,
        unit: u32,
    },
    /// With repetition, by direction: blocks of a unit.
    Again(Box<[(Draw, u64); 3]>),
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
    picker: Picker,
}

/// The I/Os of one worker, one after the other.
#[derive(Debug)]
pub(super) struct IoSource {
    pattern: IoPattern,
    service: FileService,
    files: Vec<FileState>,
    current: usize,
    rng: Rng,
    /// I/Os until the next one at a random place (`rw=randread:8`).
    until_random: u32,
    /// `trimwrite`: the block that was trimmed and is to be written.
    rewrite: Option<NextIo>,
}

impl IoSource {
    pub(super) fn new(job: &NativeJob, plan: &MemberFiles, seed: u64) -> Self {
        let files = plan
            .files
            .iter()
            .enumerate()
            .map(|(place, file)| FileState {
                start: file.start,
                len: file.len,
                positions: [0; 3],
                starts: [0; 3],
                issued: 0,
                picker: picker(&job.pattern, file.len, mix(seed, place as u64)),
            })
            .collect();
        Self {
            pattern: job.pattern.clone(),
            service: job.files.service,
            files,
            current: 0,
            rng: Rng::new(mix(seed, 1 << 32)),
            until_random: 0,
            rewrite: None,
        }
    }

    /// Which direction comes next.
    #[inline]
    pub(super) fn direction(&mut self) -> DirIndex {
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
    #[inline]
    pub(super) fn next(&mut self, dir: DirIndex) -> NextIo {
        if let Some(write) = self.rewrite.take() {
            return write;
        }
        let place = if self.files.len() == 1 {
            0
        } else {
            self.choose_file()
        };
        let size = size(&self.pattern.sizes[dir as usize], &mut self.rng);
        let min = self.pattern.sizes[dir as usize].min();
        let follows = self.pattern.random && self.until_random > 0;
        self.until_random = if follows {
            self.until_random - 1
        } else {
            self.pattern.run - 1
        };
        let file = &mut self.files[place];
        let followed = if follows {
            file.follow(dir, size, min, self.pattern.run_stays)
        } else {
            None
        };
        let (offset, len) =
            followed.unwrap_or_else(|| file.pick(dir, size, min, self.pattern.skip, &mut self.rng));
        file.issued += u64::from(len);
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

    /// A file that is not through yet; when all are, a new pass begins.
    fn choose_file(&mut self) -> usize {
        let count = self.files.len();
        let min = u64::from(self.pattern.min_block());
        let open = |file: &FileState| file.issued + min <= file.len;
        if !self.files.iter().any(open) {
            self.files.iter_mut().for_each(|file| file.issued = 0);
        }
        let first = match self.service {
            FileService::RoundRobin => self.current + 1,
            FileService::Sequential => self.current,
            FileService::Random => self.rng.below(count as u64) as usize,
        };
        let place = (0..count)
            .map(|step| (first + step) % count)
            .find(|&place| open(&self.files[place]))
            .unwrap_or(0);
        self.current = place;
        place
    }
}

fn picker(pattern: &IoPattern, len: u64, seed: u64) -> Picker {
    if !pattern.random {
        return Picker::Sequential;
    }
    let unit = pattern.min_block().max(1);
    if pattern.draws_anew() {
        return Picker::Again(Box::new(DirIndex::ALL.map(|dir| {
            let unit = pattern.align[dir as usize]
                .unwrap_or(pattern.sizes[dir as usize].min())
                .max(1);
            // The last block must fit from its offset on.
            let least = u64::from(pattern.sizes[dir as usize].min().max(1));
            let blocks = len.saturating_sub(least) / u64::from(unit) + 1;
            let draw = Draw::new(
                blocks,
                u64::from(unit),
                &pattern.distribution[dir as usize],
                mix(seed, dir as u64),
            );
            (draw, u64::from(unit))
        })));
    }
    let blocks = (len / u64::from(unit)).max(1);
    let one_size = DirIndex::ALL
        .into_iter()
        .filter(|&dir| pattern.uses(dir))
        .all(|dir| pattern.sizes[dir as usize] == Sizes::Fixed(unit));
    if one_size && pattern.run == 1 {
        Picker::Once {
            blocks: Permutation::new(blocks, seed),
            size: unit,
        }
    } else {
        Picker::Free {
            map: FreeMap::new(blocks),
            unit,
        }
    }
}

impl FileState {
    #[inline]
    fn pick(&mut self, dir: DirIndex, size: u32, min: u32, skip: i64, rng: &mut Rng) -> (u64, u32) {
        let (relative, len) = match &mut self.picker {
            Picker::Once { blocks, size } => (blocks.next() * u64::from(*size), *size),
            Picker::Sequential => {
                let position = self.positions[dir as usize];
                let at = skipped(position, skip, self.len);
                let at = if at + u64::from(min) > self.len {
                    0
                } else {
                    at
                };
                (at, fit(size, min, self.len - at))
            }
            Picker::Free { map, unit } => {
                let (block, count) = map.take(rng, u64::from(size / *unit).max(1));
                (block * u64::from(*unit), count as u32 * *unit)
            }
            Picker::Again(draws) => {
                let (draw, unit) = &draws[dir as usize];
                let at = draw.next(rng) * unit;
                (at, fit(size, min, self.len - at))
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

    /// The next I/O of a run: behind the last one or at its place; `None` when
    /// the file ends there.
    fn follow(&mut self, dir: DirIndex, size: u32, min: u32, stays: bool) -> Option<(u64, u32)> {
        let at = if stays {
            self.starts[dir as usize]
        } else {
            self.positions[dir as usize]
        };
        if at + u64::from(min) > self.len {
            return None;
        }
        let len = fit(size, min, self.len - at);
        if let Picker::Free { map, unit } = &mut self.picker {
            let unit = u64::from(*unit);
            map.use_up(at / unit, u64::from(len) / unit);
        }
        Some(self.went(dir, at, len))
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

/// `size`, or as many smallest blocks as there is room for.
#[inline]
fn fit(size: u32, min: u32, room: u64) -> u32 {
    if u64::from(size) <= room {
        return size;
    }
    (room / u64::from(min) * u64::from(min)) as u32
}

#[inline]
fn size(sizes: &Sizes, rng: &mut Rng) -> u32 {
    match sizes {
        Sizes::Fixed(size) => *size,
        Sizes::Range(low, high) => {
            let steps = (high - low) / low;
            low + rng.below(u64::from(steps) + 1) as u32 * low
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
