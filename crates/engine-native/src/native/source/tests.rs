use std::path::PathBuf;

use proptest::{prop_assert, proptest};

use super::*;
use crate::native::files::FilePlace;
use crate::native::files::{FileLayout, FilePlan};

fn plan(lens: &[u64]) -> MemberFiles {
    MemberFiles {
        files: lens
            .iter()
            .map(|&len| FilePlan {
                path: PathBuf::from("f"),
                is_device: false,
                start: 8192,
                len,
                end: 8192 + len,
                layout: FileLayout::Nothing,
                zones: None,
                read_only: false,
                checked: std::sync::Arc::default(),
            })
            .collect(),
        pass_bytes: lens.iter().sum(),
        total_bytes: lens.iter().sum(),
        place: FilePlace::default(),
        replay: None,
    }
}

fn job(random: bool, sizes: Sizes) -> NativeJob {
    let mut job = NativeJob::new("t");
    job.pattern.random = random;
    job.pattern.sizes = [sizes.clone(), sizes.clone(), sizes];
    job
}

proptest! {
    #[test]
    fn every_io_stays_in_its_file_and_a_pass_touches_each_byte_once(
        blocks in 1u64..300,
        random: bool,
        which in 0usize..3,
        seed: u64,
    ) {
        let sizes = [
            Sizes::Fixed(4096),
            Sizes::Range(4096, 16_384),
            Sizes::Split(vec![(4096, 40), (8192, 70), (65_536, 100)]),
        ][which].clone();
        let len = blocks * 4096;
        let mut source = IoSource::new(&job(random, sizes), &plan(&[len]), seed);
        let mut seen = vec![false; blocks as usize];
        let mut bytes = 0;
        while bytes < len {
            let next = source.next(DirIndex::Read);
            prop_assert!(next.len > 0);
            prop_assert!(next.offset >= 8192 && next.offset + u64::from(next.len) <= 8192 + len);
            for block in (next.offset - 8192) / 4096..(next.offset - 8192 + u64::from(next.len)) / 4096 {
                prop_assert!(!std::mem::replace(&mut seen[block as usize], true));
            }
            bytes += u64::from(next.len);
        }
        prop_assert!(seen.iter().all(|&seen| seen));
    }

    #[test]
    fn with_repetition_every_io_stays_in_its_file(len in 65_536u64..1_000_000, seed: u64, align in 0u32..3) {
        let mut job = job(true, Sizes::Range(4096, 65_536));
        job.pattern.repetition = true;
        job.pattern.align = [[None, Some(512), Some(16_384)][align as usize]; 3];
        let mut source = IoSource::new(&job, &plan(&[len]), seed);
        for _ in 0..300 {
            let next = source.next(DirIndex::Write);
            prop_assert!(next.len >= 4096 && next.offset + u64::from(next.len) <= 8192 + len);
        }
    }
}

#[test]
fn splits_and_ranges_get_their_shares() {
    let mut rng = Rng::new(1);
    let split = Sizes::Split(vec![(4096, 40), (8192, 70), (65_536, 100)]);
    let hits = (0..100_000)
        .filter(|_| size(&split, &mut rng) == 8192)
        .count();
    assert!((29_300..30_700).contains(&hits), "{hits}");
    let range = Sizes::Range(4096, 16_384);
    let hits = (0..100_000)
        .filter(|_| size(&range, &mut rng) == 16_384)
        .count();
    assert!((24_300..25_700).contains(&hits), "{hits}");
}

#[test]
fn an_lfsr_comes_to_every_block_whatever_norandommap_says() {
    let mut job = job(true, Sizes::Fixed(4096));
    (job.pattern.repetition, job.pattern.full_cycle) = (true, true);
    let mut source = IoSource::new(&job, &plan(&[1 << 20]), 1);
    for _ in 0..2 {
        let blocks: std::collections::HashSet<_> = (0..256)
            .map(|_| source.next(DirIndex::Write).offset)
            .collect();
        assert_eq!(blocks.len(), 256);
    }
}

#[test]
fn directions_of_different_sizes_keep_their_sizes_and_alignments() {
    let mut job = job(true, Sizes::Fixed(4096));
    job.pattern.dirs = [true, true, false];
    job.pattern.sizes[1] = Sizes::Fixed(16_384);
    let mut source = IoSource::new(&job, &plan(&[1 << 20]), 1);
    let mut offsets = [0, 1].map(|_| std::collections::HashSet::new());
    for _ in 0..64 {
        for (dir, size) in [(DirIndex::Read, 4096), (DirIndex::Write, 16_384)] {
            let next = source.next(dir);
            assert_eq!((next.len, (next.offset - 8192) % size), (size as u32, 0));
            assert!(offsets[dir as usize].insert(next.offset));
        }
    }
}

#[test]
fn a_run_is_not_marked_in_the_map() {
    let mut job = job(true, Sizes::Fixed(4096));
    job.pattern.run = 4;
    let mut source = IoSource::new(&job, &plan(&[1 << 20]), 1);
    let blocks: Vec<_> = (0..4 * 64)
        .map(|_| (source.next(DirIndex::Read).offset - 8192) / 4096)
        .collect();
    let at_end = |run: &&[u64]| run.contains(&255);
    // At the file's end a run goes on at another place of the map.
    let runs = blocks.chunks(4).filter(|run| !at_end(run));
    let firsts: std::collections::HashSet<_> = runs.clone().map(|run| run[0]).collect();
    assert_eq!(firsts.len(), runs.count());
}

#[test]
fn trimwrite_writes_each_trimmed_block() {
    let mut job = job(false, Sizes::Fixed(4096));
    job.pattern.dirs = [false, true, true];
    job.pattern.trimwrite = true;
    let mut source = IoSource::new(&job, &plan(&[1 << 20]), 1);
    for block in 0..4u64 {
        for expected in [DirIndex::Trim, DirIndex::Write] {
            let dir = source.direction();
            let next = source.next(dir);
            assert_eq!((next.dir, next.offset), (expected, 8192 + block * 4096));
        }
    }
}
