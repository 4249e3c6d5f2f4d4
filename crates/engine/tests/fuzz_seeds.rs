//! The fuzz targets over their seeds: whole, cut short, and with bytes changed.
//! The seeds are the captured outputs and job files of the other tests.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/targets.rs"]
mod targets;

/// Longer inputs are left to the fuzzer.
const MAX_BYTES: usize = 64 * 1024;
/// Cuts, and as many changes, of each seed for each target.
const VARIANTS: usize = 4;
/// What a changed byte becomes: the characters that mean something to a parser.
const MEANINGFUL: &[u8] = b"-\"[]{};:,%=.\n\0e9\xff";

fn seeds() -> Vec<PathBuf> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open: Vec<PathBuf> = [
        "../import/tests/fixtures",
        "../fio-output/tests/fixtures",
        "../jobfile/tests/corpus",
        "../../fuzz/seeds",
    ]
    .map(|dir| crate_dir.join(dir))
    .into();
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
        } else if path.is_file() {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Numbers that look random and are the same every time (xorshift64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }
}

#[test]
fn no_seed_and_no_broken_seed_makes_a_parser_panic() {
    let seeds = seeds();
    assert!(!seeds.is_empty());
    let mut numbers = Numbers(0x2545_f491_4f6c_dd1d);
    for path in seeds {
        let mut seed = fs::read(&path).unwrap();
        seed.truncate(MAX_BYTES);
        for (name, target) in targets::ALL {
            // Shown when the target panics.
            println!("{name} {}", path.display());
            target(&seed);
            for _ in 0..VARIANTS {
                target(&seed[..numbers.below(seed.len())]);
                let mut changed = seed.clone();
                if let Some(byte) = changed.get_mut(numbers.below(seed.len())) {
                    *byte = MEANINGFUL[numbers.below(MEANINGFUL.len())];
                }
                target(&changed);
            }
        }
    }
}
