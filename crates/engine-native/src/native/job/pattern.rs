//! What the I/Os of a job are: directions, places, sizes, and whose turn it is.

use super::DirIndex;
use crate::native::offsets::Distribution;

/// Sizes of the I/Os of one direction, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::native) enum Sizes {
    Fixed(u32),
    /// Multiples of the smallest, both ends included.
    Range(u32, u32),
    /// Of any length in between (bs_unaligned).
    Any(u32, u32),
    /// (size, percent up to here), ascending in percent; the last is 100.
    Split(Vec<(u32, u8)>),
}

impl Sizes {
    pub(in crate::native) fn min(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Range(size, _) | Self::Any(size, _) => *size,
            Self::Split(parts) => parts.iter().map(|part| part.0).min().unwrap_or(0),
        }
    }

    pub(in crate::native) fn max(&self) -> u32 {
        match self {
            Self::Fixed(size) | Self::Range(_, size) | Self::Any(_, size) => *size,
            Self::Split(parts) => parts.iter().map(|part| part.0).max().unwrap_or(0),
        }
    }
}

/// What the I/Os are.
#[derive(Debug, Clone)]
pub(in crate::native) struct IoPattern {
    /// Which of read, write, trim.
    pub(in crate::native) dirs: [bool; 3],
    pub(in crate::native) random: bool,
    /// Share of the random I/Os that are, by direction, in percent; the others go behind
    /// the last.
    pub(in crate::native) random_percent: [u8; 3],
    /// `rw=randread:8`: random I/Os of a run, the first of it at a random place.
    pub(in crate::native) run: u32,
    /// The others of a run go to the same place, else each behind the last.
    pub(in crate::native) run_stays: bool,
    /// `rw=read:8k`: bytes left out behind each sequential I/O; may be negative.
    pub(in crate::native) skip: i64,
    /// Trim each block, then write it.
    pub(in crate::native) trimwrite: bool,
    /// Share of reads when reads and writes are mixed, in percent.
    pub(in crate::native) read_percent: u8,
    /// Sizes by direction.
    pub(in crate::native) sizes: [Sizes; 3],
    /// Sizes need not be multiples of the smallest.
    pub(in crate::native) unaligned: bool,
    /// The first of the sizes is that of I/Os in order, the second of random ones,
    /// whatever their direction.
    pub(in crate::native) sizes_by_order: bool,
    /// Alignment of random offsets by direction; `None` is the smallest block.
    pub(in crate::native) align: [Option<u32>; 3],
    pub(in crate::native) repetition: bool,
    /// `random_generator=lfsr`: goes through all blocks before one comes again,
    /// whatever `norandommap` says (io_u.c, __get_next_rand_offset).
    pub(in crate::native) full_cycle: bool,
    pub(in crate::native) distribution: [Distribution; 3],
    pub(in crate::native) seed: Option<u64>,
    /// The same sequence in every run.
    pub(in crate::native) repeatable: bool,
}

impl IoPattern {
    /// How often each block is done: trimwrite does it twice, and counts neither
    /// its bytes nor its I/Os as more (backend.c, do_io).
    pub(in crate::native) fn touches(&self) -> u64 {
        if self.trimwrite { 2 } else { 1 }
    }

    pub(in crate::native) fn uses(&self, dir: DirIndex) -> bool {
        self.dirs[dir as usize]
    }

    /// Whether any I/O may be in this direction: in a mix of which it has no share none
    /// is, whatever it owes to a rate (backend.c, rate_ddir).
    pub(in crate::native) fn has_share(&self, dir: DirIndex) -> bool {
        let is_mix = self.uses(DirIndex::Read) && self.uses(DirIndex::Write);
        let share = match dir {
            DirIndex::Read if is_mix => self.read_percent,
            DirIndex::Write if is_mix => 100u8.saturating_sub(self.read_percent),
            _ => 100,
        };
        self.uses(dir) && share > 0
    }

    /// The direction of all its I/Os, if it is one.
    pub(in crate::native) fn only_direction(&self) -> Option<DirIndex> {
        let mut used = DirIndex::ALL.into_iter().filter(|&dir| self.uses(dir));
        let first = used.next();
        first.filter(|_| used.next().is_none() && !self.trimwrite)
    }

    /// The size of all its I/Os, where each is at a place that says nothing of the next.
    pub(in crate::native) fn one_size(&self) -> Option<u32> {
        if self.trimwrite || self.skip != 0 || self.mixes_order() {
            return None;
        }
        let size = self.max_block();
        let fixed = |sizes: &Sizes| *sizes == Sizes::Fixed(size);
        self.all_sizes().all(fixed).then_some(size)
    }

    /// Whether random offsets are drawn without a look at those before.
    pub(in crate::native) fn draws_anew(&self) -> bool {
        let odd = |dir: DirIndex| {
            let place = dir as usize;
            let unit = self.sizes[place].min();
            self.align[place].is_some_and(|align| align != unit)
                || self.distribution[place] != Distribution::Uniform
        };
        let mut used = DirIndex::ALL.into_iter().filter(|&dir| self.uses(dir));
        self.random && ((self.repetition && !self.full_cycle) || used.any(odd))
    }

    /// Whether the directions have maps of their own: their smallest blocks differ.
    pub(in crate::native) fn maps_by_direction(&self) -> bool {
        let used = DirIndex::ALL.into_iter().filter(|&dir| self.uses(dir));
        let mut units = used.map(|dir| self.sizes[dir as usize].min());
        let first = units.next();
        units.any(|unit| Some(unit) != first)
    }

    /// Whether a pass may come to a block more than once.
    pub(in crate::native) fn may_repeat(&self) -> bool {
        // Blocks of several sizes from starts that an LFSR gives may overlap, and
        // those of two directions do.
        let overlap = self.full_cycle || self.maps_by_direction();
        let several = self.max_block() > self.min_block();
        let odd = self.random && several && overlap;
        self.draws_anew() || self.skip != 0 || self.mixes_order() || odd
    }

    /// Whether some I/Os of a random job are in order.
    fn mixes_order(&self) -> bool {
        let mut used = DirIndex::ALL.into_iter().filter(|&dir| self.uses(dir));
        self.run > 1 || used.any(|dir| self.random_percent[dir as usize] < 100)
    }

    /// Sizes of the I/Os of a direction, random ones or those in order.
    pub(in crate::native) fn sizes_of(&self, dir: DirIndex, random: bool) -> &Sizes {
        match (self.sizes_by_order, random) {
            (false, _) => &self.sizes[dir as usize],
            (true, false) => &self.sizes[0],
            (true, true) => &self.sizes[1],
        }
    }

    /// Sizes of all its I/Os, and those that its offsets are counted by.
    fn all_sizes(&self) -> impl Iterator<Item = &Sizes> {
        let used = DirIndex::ALL.into_iter().filter(|&dir| self.uses(dir));
        let random = self.random.then_some(true);
        let in_order = (!self.random || self.mixes_order()).then_some(false);
        used.flat_map(move |dir| {
            let orders = random.into_iter().chain(in_order);
            orders
                .map(move |random| self.sizes_of(dir, random))
                .chain(self.random.then(|| &self.sizes[dir as usize]))
        })
    }

    pub(in crate::native) fn max_block(&self) -> u32 {
        self.all_sizes().map(Sizes::max).max().unwrap_or(0)
    }

    pub(in crate::native) fn min_block(&self) -> u32 {
        self.all_sizes().map(Sizes::min).min().unwrap_or(0)
    }

    /// Sizes that a rate of I/Os is counted by.
    pub(in crate::native) fn paced_sizes(&self) -> [Sizes; 3] {
        match self.sizes_by_order {
            false => self.sizes.clone(),
            true => DirIndex::ALL.map(|dir| {
                let least = self.sizes[dir as usize].min();
                Sizes::Range(least, self.max_block().max(least))
            }),
        }
    }

    /// Bytes at the end of an amount in which no block may have room.
    pub(in crate::native) fn slack(&self) -> u64 {
        match self.unaligned {
            true => u64::from(self.min_block().saturating_sub(1)),
            false => 0,
        }
    }

    /// Makes the sizes what they are together with `bs_unaligned` (io_u.c,
    /// get_next_buflen).
    pub(in crate::native) fn settle(&mut self) {
        for sizes in &mut self.sizes {
            let least = sizes.min().max(1);
            match sizes {
                Sizes::Range(low, high) if self.unaligned => *sizes = Sizes::Any(*low, *high),
                Sizes::Split(parts) if !self.unaligned => {
                    parts.iter_mut().for_each(|part| part.0 -= part.0 % least);
                }
                _ => {}
            }
        }
    }
}

/// Which of several files comes next, and how many I/Os it then has in a row.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::native) struct FileService {
    pub(in crate::native) order: FileOrder,
    pub(in crate::native) run: u32,
}

/// Order of the files of a job.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::native) enum FileOrder {
    RoundRobin,
    Sequential,
    /// The first ones are the popular ones.
    Random(Distribution),
}
