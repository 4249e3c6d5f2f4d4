//! The fuzz target over its seeds: whole, cut short, and with bytes changed.
//! The seeds are the trees of the other tests and of the campaigns.

use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../../fuzz/kconfig.rs"]
mod kconfig;
use crate::random;

/// Cuts, and as many changes, of each seed.
const VARIANTS: usize = 60;
/// What a changed byte becomes: the characters that mean something to a parser.
const MEANINGFUL: &[u8] = b"$()\"'\\#=!<>&|,\n\t yif\0\xff";

fn seeds() -> Vec<PathBuf> {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open: Vec<PathBuf> = [
        "tests/trees",
        "../../campaigns/kconfig",
        "../../fuzz/seeds/kconfig",
    ]
    .map(|dir| crate_dir.join(dir))
    .into();
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        match path.is_dir() {
            true => open.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            ),
            false => found.push(path),
        }
    }
    found.sort();
    found
}

#[test]
fn no_seed_and_no_broken_seed_makes_the_parser_panic() {
    let seeds = seeds();
    assert!(seeds.len() > 30);
    let mut numbers = random::Numbers::new(9);
    for path in seeds {
        // Shown when the target panics.
        println!("{}", path.display());
        let seed = fs::read(&path).unwrap();
        kconfig::kconfig(&seed);
        for _ in 0..VARIANTS {
            kconfig::kconfig(&seed[..numbers.below(seed.len())]);
            let mut changed = seed.clone();
            if let Some(byte) = changed.get_mut(numbers.below(seed.len())) {
                *byte = MEANINGFUL[numbers.below(MEANINGFUL.len())];
            }
            kconfig::kconfig(&changed);
        }
    }
}
