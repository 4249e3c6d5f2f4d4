//! Which priority an I/O gets; a few classes, so that each has its histogram.

use super::job::{DirIndex, NativeJob, PriorityOptions};
use super::options::{USE_CMDPRIO, priority};
use super::rng::Rng;

/// The priorities of a job and how they are drawn.
#[derive(Debug)]
pub(super) struct PriorityDraw {
    /// Kernel values; the first is the thread's own.
    values: Vec<u16>,
    /// By direction: (block size or 0 for all, percent up to here, class).
    table: [Vec<(u32, u8, u8)>; 3],
}

impl PriorityDraw {
    pub(super) fn new(job: &NativeJob) -> Self {
        let mut classes = Self {
            values: vec![job.priority.thread.unwrap_or(0)],
            table: Default::default(),
        };
        for dir in DirIndex::ALL
            .into_iter()
            .filter(|&dir| job.pattern.uses(dir))
        {
            classes.add_direction(&job.priority, dir as usize);
        }
        classes
    }

    fn add_direction(&mut self, of: &PriorityOptions, dir: usize) {
        // engines/cmdprio.c: without a class an I/O of its own priority is real time.
        let class = if of.class[dir] == 0 { 1 } else { of.class[dir] };
        let own = priority(class, of.level[dir], of.hint[dir]);
        if of.percent[dir] > 0 {
            let class = self.class_of(own);
            self.table[dir].push((0, of.percent[dir], class));
        }
        let mut upto: Vec<(u32, u8)> = Vec::new();
        for &(size, percent, value) in &of.split[dir] {
            let class = self.class_of(if value == USE_CMDPRIO { own } else { value });
            let before = upto
                .iter()
                .filter(|part| part.0 == size)
                .map(|part| part.1)
                .sum::<u8>();
            self.table[dir].push((size, before + percent, class));
            upto.push((size, percent));
        }
    }

    fn class_of(&mut self, value: u16) -> u8 {
        let place = self
            .values
            .iter()
            .position(|&known| known == value)
            .unwrap_or_else(|| {
                self.values.push(value);
                self.values.len() - 1
            });
        place as u8
    }

    /// The class of an I/O.
    #[inline]
    pub(super) fn draw(&self, dir: DirIndex, len: u32, rng: &mut Rng) -> u8 {
        let table = &self.table[dir as usize];
        if table.is_empty() {
            return 0;
        }
        let roll = rng.below(100) as u8;
        table
            .iter()
            .find(|&&(size, upto, _)| (size == 0 || size == len) && roll < upto)
            .map_or(0, |&(.., class)| class)
    }

    /// The kernel's value to put on the I/O; 0: the thread's own holds.
    #[inline]
    pub(super) fn on_io(&self, class: u8) -> u16 {
        if class == 0 {
            0
        } else {
            self.values[usize::from(class)]
        }
    }

    /// The kernel's values by class.
    pub(super) fn values(&self) -> &[u16] {
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_get_their_share_by_block_size() {
        let mut job = NativeJob::new("p");
        job.priority.split[0] = vec![
            (4096, 10, priority(2, 0, 1)),
            (4096, 20, priority(2, 0, 2)),
            (8192, 50, USE_CMDPRIO),
        ];
        let classes = PriorityDraw::new(&job);
        assert_eq!(
            classes.values(),
            [0, priority(2, 0, 1), priority(2, 0, 2), priority(1, 0, 0)]
        );
        let mut rng = Rng::new(1);
        let mut counts = [0u32; 4];
        for _ in 0..100_000 {
            counts[usize::from(classes.draw(DirIndex::Read, 4096, &mut rng))] += 1;
        }
        assert!(
            counts[0].abs_diff(70_000) < 900
                && counts[1].abs_diff(10_000) < 600
                && counts[2].abs_diff(20_000) < 800
        );
        assert_eq!(counts[3], 0);
    }
}
