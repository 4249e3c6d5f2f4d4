use proptest::{prop_assert, prop_assert_eq, proptest};

use super::*;
use crate::native::files::FileLayout;

const SEAL: Seal = Seal {
    offset: 81_920,
    number: 7,
    at_ns: 5_000_000_123,
    seed: 42,
};

fn sealed(len: usize, interval: u32) -> Vec<u8> {
    let mut block: Vec<u8> = (0..len).map(|i| (i * 31 % 251) as u8).collect();
    seal(&mut block, interval, &SEAL);
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
        let mut block = sealed(parts * 512, 512);
        prop_assert_eq!(check(&block, 512, SEAL.offset, Some(7)), Ok(()));
        let at = at.index(block.len());
        block[at] ^= 1 << bit;
        let mismatch = check(&block, 512, SEAL.offset, Some(7)).unwrap_err();
        prop_assert_eq!(mismatch.offset, SEAL.offset + (at / 512 * 512) as u64);
        prop_assert_eq!(mismatch.len, 512);
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
        history.settle();
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
        }],
        pass_bytes: len * 10,
        total_bytes: len * 10,
    }
}

#[test]
fn a_mismatch_says_what_is_wrong() {
    let says =
        |block: &[u8], offset, number| check(block, 4096, offset, number).unwrap_err().to_string();
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
    history.settle();
    let order: Vec<_> = std::iter::from_fn(|| history.next())
        .map(|written| (written.offset / 4096, written.number))
        .collect();
    assert_eq!(order, [(5, 0), (1, 1), (3, 3)]);
}

#[test]
fn the_interval_divides_every_write() {
    let mut pattern = IoPattern {
        dirs: [false, true, false],
        ..IoPattern::default()
    };
    let mut of = |sizes: Sizes| {
        pattern.sizes = [Sizes::Fixed(4096), sizes, Sizes::Fixed(4096)];
        interval(&pattern)
    };
    assert_eq!(of(Sizes::Fixed(8192)), 8192);
    assert_eq!(of(Sizes::Range(4096, 65_536)), 4096);
    assert_eq!(of(Sizes::Split(vec![(4096, 50), (6144, 100)])), 2048);
}
