//! The campaign that Fathom carries in itself: `campaigns/` of its sources.

use std::sync::Arc;

use fathom_kconfig::{Config, Loader, MemoryFiles};

/// The shipped configuration with every symbol at its default, with these
/// variables of the environment.
///
/// # Errors
/// A mistake in the shipped files.
pub fn config(env: &dyn Fn(&str) -> Option<String>) -> Result<Config, fathom_kconfig::Error> {
    let files: MemoryFiles = FILES.iter().copied().collect();
    let tree = Loader::new(&files).env(env).load("Kconfig")?;
    Ok(Config::new(Arc::new(tree)))
}

/// A shipped file: its place in a campaign's folder, and its text.
pub type File = (&'static str, &'static str);

macro_rules! shipped {
    ($($to:literal from $from:literal,)*) => {
        &[$(($to, include_str!(concat!("../../../campaigns/", $from))),)*]
    };
}

/// Every shipped file.
pub const FILES: &[File] = shipped! {
    "Kconfig" from "Kconfig",
    "kconfig/budget.kconfig" from "kconfig/budget.kconfig",
    "kconfig/debug.kconfig" from "kconfig/debug.kconfig",
    "kconfig/dut.kconfig" from "kconfig/dut.kconfig",
    "kconfig/performance.kconfig" from "kconfig/performance.kconfig",
    "kconfig/results.kconfig" from "kconfig/results.kconfig",
    "kconfig/run.kconfig" from "kconfig/run.kconfig",
    "kconfig/snia.kconfig" from "kconfig/snia.kconfig",
    "kconfig/steady-state.kconfig" from "kconfig/steady-state.kconfig",
    "tests/0001-basic-tests.toml" from "tests/0001-basic-tests.toml",
    "tests/0002-iobatch.toml" from "tests/0002-iobatch.toml",
    "tests/0003-maxiobatch-single-job.toml" from "tests/0003-maxiobatch-single-job.toml",
    "tests/0004-maxiobatch-jobs.toml" from "tests/0004-maxiobatch-jobs.toml",
    "profiles/0001-seqwrite.toml" from "profiles/0001-seqwrite.toml",
    "profiles/0002-seqread.toml" from "profiles/0002-seqread.toml",
    "profiles/0003-randwrite.toml" from "profiles/0003-randwrite.toml",
    "profiles/0004-randread.toml" from "profiles/0004-randread.toml",
    "profiles/0005-randwrite-70-30.toml" from "profiles/0005-randwrite-70-30.toml",
    "profiles/0006-randwrite-97-3.toml" from "profiles/0006-randwrite-97-3.toml",
    "templates/performance.fio" from "templates/performance.fio",
    "defconfigs/all-tests" from "configs/all-tests",
    "defconfigs/debug-quick" from "configs/debug-quick",
    "defconfigs/nvme2n1-all" from "configs/nvme2n1-all",
    "defconfigs/provision-random" from "configs/provision-random",
    "defconfigs/provision-seq" from "configs/provision-seq",
    "defconfigs/survey-10min" from "configs/survey-10min",
    "Makefile" from "folder/Makefile",
    ".gitignore" from "folder/gitignore",
    "README.md" from "folder/README.md",
};

/// The shipped defconfigs, by name.
pub fn defconfigs() -> impl Iterator<Item = File> {
    FILES
        .iter()
        .filter_map(|(path, text)| Some((path.strip_prefix("defconfigs/")?, *text)))
}
