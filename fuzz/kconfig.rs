//! What the fuzzer does with a Kconfig tree. The test `fuzz_seeds` of
//! `fathom-kconfig` runs the same function over its seeds.
//!
//! It may not panic, hang, or take memory without bound.

use std::sync::Arc;

use fathom_kconfig::{Config, Loader, MemoryFiles};

/// A tree: read, given values, written; what was written reads as the same
/// again. The part behind a line `===` is a `.config`, and the tree can source
/// itself.
pub fn kconfig(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (kconfig, dotconfig) = text.split_once("\n===\n").unwrap_or((&text, ""));
    let files = MemoryFiles::from_iter([("Kconfig", kconfig), ("empty", "")]);
    let loader = Loader::new(&files)
        .env(|name| (name == "DEV").then(|| "$(DEV)\"\\".to_owned()))
        .shell(|command| Ok(command.to_owned()));
    let tree = match loader.load("Kconfig") {
        Ok(tree) => tree,
        Err(error) => return drop(error.to_string()),
    };
    let mut config = Config::new(Arc::new(tree));
    config.read(dotconfig, ".config");
    let _ = (config.warnings(), config.write_min(""));
    let _ = config.rows(config.tree().root(), true);
    config.all_yes();
    config.randomize(data.len() as u64);
    let written = config.write("");
    config.read(&written, "again");
    assert_eq!(config.write(""), written);
}
