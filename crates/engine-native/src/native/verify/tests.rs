use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::native::files::FilePlace;
use crate::native::files::{FileLayout, FilePlan, MemberFiles};

const SEAL: Seal = Seal {
    offset: 81_920,
    number: 7,
    at_ns: 5_000_000_123,
    seed: 42,
};

fn layout(sum: Checksum, interval: u32) -> BlockLayout {
    let mut job = NativeJob::new("t");
    job.pattern.sizes[DirIndex::Write as usize] = Sizes::Fixed(interval);
    job.verify.sum = Some(sum);
    BlockLayout::of(&job).unwrap()
}

fn sealed(len: usize, interval: u32) -> Vec<u8> {
    let mut block = vec![0; len];
    layout(Checksum::Crc32c, interval).make(&mut block, &SEAL);
    block
}

#[test]
fn a_header_is_laid_out_as_fios() {
    let block = sealed(4096, 4096);
    // magic, kind, length, seed, offset, seconds, ns, thread, number.
    assert_eq!(block[..4], [0xca, 0xac, 5, 0]);
    assert_eq!(block[4..8], 4096u32.to_le_bytes());
    assert_eq!(block[8..16], 42u64.to_le_bytes());
    assert_eq!(block[16..24], 81_920u64.to_le_bytes());
    assert_eq!(block[24..28], 5u32.to_le_bytes());
    assert_eq!(block[28..32], 123u32.to_le_bytes());
    assert_eq!(block[34..36], 7u16.to_le_bytes());
    assert_eq!(block[36..40], crc32c(&block[..36]).to_le_bytes());
    assert_eq!(block[40..44], crc32c(&block[44..]).to_le_bytes());
}

proptest! {
    #[test]
    fn every_flipped_bit_is_found_in_its_part(
        parts in 1usize..5,
        at: proptest::sample::Index,
        bit in 0u8..8,
    ) {
        let at = at.index(parts * 512);
        let patterns = [("pattern behind a header", Checksum::PatternHeader, 0)];
        for &(name, sum, _) in Checksum::NAMES.iter().chain(&patterns) {
            let mut layout = layout(sum, 512);
            let needs = matches!(sum, Checksum::PatternHeader | Checksum::Pattern);
            let pattern = DataPattern { bytes: vec![1, 2, 3], offsets: Vec::new() };
            layout.pattern = needs.then_some(pattern);
            let mut block = vec![0; parts * 512];
            layout.make(&mut block, &SEAL);
            prop_assert_eq!(layout.check(&mut block, SEAL.offset, Some(7)), Ok(()), "{}", name);
            block[at] ^= 1 << bit;
            let checked = layout.check(&mut block, SEAL.offset, Some(7));
            let sees_data = !matches!(sum, Checksum::Null | Checksum::Meta);
            if sees_data || (sum == Checksum::Meta && at % 512 < HEADER) {
                let mismatch = checked.unwrap_err();
                prop_assert_eq!(mismatch.offset, SEAL.offset + (at / 512 * 512) as u64);
                prop_assert_eq!(mismatch.len, 512);
            } else {
                prop_assert_eq!(checked, Ok(()));
            }
        }
    }

    #[test]
    fn what_was_written_over_is_not_read_back(
        writes in proptest::collection::vec((0u64..60, 1u32..5), 1..200),
    ) {
        let mut job = NativeJob::new("t");
        job.pattern.dirs = [false, true, false];
        job.pattern.random = true;
        job.pattern.repetition = true;
        let mut history = WriteHistory::new(&job, &plan(64 * 4096)).unwrap();
        let mut last = [None; 64];
        for (number, &(block, blocks)) in writes.iter().enumerate() {
            history.push(0, block * 4096, blocks * 4096);
            for block in block..block + u64::from(blocks) {
                last[block as usize] = Some(number as u32);
            }
        }
        history.settle(usize::MAX);
        let mut end = 0;
        while let Some(written) = history.next() {
            // In the order of the file, none twice, each as it was last written.
            prop_assert!(written.offset >= end);
            end = written.offset + u64::from(written.len);
            for block in written.offset / 4096..end / 4096 {
                prop_assert_eq!(last[block as usize], Some(written.number));
            }
        }
        prop_assert!(history.is_through());
    }
}

fn plan(len: u64) -> MemberFiles {
    MemberFiles {
        files: vec![FilePlan {
            path: "f".into(),
            is_device: false,
            start: 0,
            len,
            end: len,
            layout: FileLayout::Nothing,
            zones: None,
            read_only: false,
            checked: std::sync::Arc::default(),
        }],
        pass_bytes: len * 10,
        total_bytes: len * 10,
        place: FilePlace::default(),
        replay: None,
    }
}

#[test]
fn a_mismatch_says_what_is_wrong() {
    let says = |block: &[u8], offset, number| {
        let layout = layout(Checksum::Crc32c, 4096);
        let mismatch = layout
            .check(&mut block.to_vec(), offset, number)
            .unwrap_err();
        mismatch.to_string()
    };
    let block = sealed(4096, 4096);
    let offset = SEAL.offset;
    let mut other = block.clone();
    other[0] = 0;
    assert!(says(&other, offset, None).contains("does not begin with a header"));
    other = block.clone();
    other[20] ^= 1;
    assert!(says(&other, offset, None).contains("its header has changed"));
    other = block.clone();
    other[4095] ^= 1;
    assert!(says(&other, offset, None).contains("its data has changed"));
    assert!(says(&block, 0, None).contains("it holds the block of offset 81920"));
    assert!(says(&block, offset, Some(9)).contains("it holds an older write (number 7"));
    assert!(says(&sealed(4096, 512), offset, None).contains("of a block of 512 bytes"));
}

#[test]
fn a_failed_write_is_forgotten_and_order_is_kept_without_repetition() {
    let mut job = NativeJob::new("t");
    job.pattern.dirs = [false, true, false];
    job.pattern.random = true;
    let mut history = WriteHistory::new(&job, &plan(64 * 4096)).unwrap();
    for block in [5, 1, 9, 3] {
        history.push(0, block * 4096, 4096);
    }
    history.forget(2);
    history.settle(usize::MAX);
    let order: Vec<_> = std::iter::from_fn(|| history.next())
        .map(|written| (written.offset / 4096, written.number))
        .collect();
    assert_eq!(order, [(5, 0), (1, 1), (3, 3)]);
}

#[test]
fn the_interval_divides_every_write() {
    let mut job = NativeJob::new("t");
    job.pattern.dirs = [false, true, false];
    let mut of = |sizes: Sizes| {
        job.pattern.sizes[DirIndex::Write as usize] = sizes;
        interval(&job)
    };
    assert_eq!(of(Sizes::Fixed(8192)), 8192);
    assert_eq!(of(Sizes::Range(4096, 65_536)), 4096);
    assert_eq!(of(Sizes::Split(vec![(4096, 50), (6144, 100)])), 2048);
}

/// verify_offset, with blocks of several parts: the header changes places with the data.
#[test]
fn a_header_may_stand_further_behind() {
    let mut layout = layout(Checksum::Md5, 512);
    layout.header_at = 128;
    assert_eq!(layout.fault(), None);
    let mut block = vec![0; 1024];
    layout.make(&mut block, &SEAL);
    assert_eq!(half(&block, 128), MAGIC);
    assert_eq!(half(&block, 512 + 128), MAGIC);
    assert_eq!(layout.check(&mut block, SEAL.offset, None), Ok(()));
    layout.header_at = 500;
    assert!(layout.fault().is_some());
}

/// What a mismatch should have been is made of the seed in its header.
#[test]
fn what_was_expected_can_be_made_again() {
    let layout = layout(Checksum::Crc32c, 512);
    let mut block = vec![0; 1024];
    layout.make(&mut block, &SEAL);
    let whole = block.clone();
    block[700] ^= 1;
    let mismatch = layout.check(&mut block, SEAL.offset, None).unwrap_err();
    let expected = layout.expected(&block, &mismatch, SEAL.offset).unwrap();
    assert_eq!(expected, whole[512..]);
    block[520] ^= 1;
    let mismatch = layout.check(&mut block, SEAL.offset, None).unwrap_err();
    assert_eq!(layout.expected(&block, &mismatch, SEAL.offset), None);
}

#[test]
fn a_backlog_is_read_back_in_parts() {
    let mut job = NativeJob::new("t");
    job.pattern.dirs = [false, true, false];
    let mut history = WriteHistory::new(&job, &plan(64 * 4096)).unwrap();
    for block in 0..5 {
        history.push(0, block * 4096, 4096);
    }
    history.settle(2);
    let read: Vec<_> = std::iter::from_fn(|| history.next())
        .map(|w| w.number)
        .collect();
    assert_eq!((read, history.is_through()), (vec![0, 1], true));
    history.drop_read();
    let number = history.push(0, 5 * 4096, 4096);
    history.forget(number);
    history.settle(usize::MAX);
    let read: Vec<_> = std::iter::from_fn(|| history.next())
        .map(|w| w.number)
        .collect();
    assert_eq!(read, [2, 3, 4]);
}
