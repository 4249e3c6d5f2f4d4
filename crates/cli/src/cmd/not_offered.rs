//! The options that some commands do not take, and why.

use fathom_analysis::snia::SniaTest;

/// What is not offered: the command as docs/ARCHITECTURE.md names it, the options, and why.
const NOT_OFFERED: &str = "\
quick: destroy: a quick series writes to files only
quick: sim: a quick series measures a file system, and a simulated device has none
plan: destroy sim fio max-errors label: a plan touches nothing
resume: label: a run keeps the label that it was begun with; fathom runs tag adds to what is said of it
snia resume: label: a run keeps the label that it was begun with; fathom runs tag adds to what is said of it
provision: require: it makes drives ready, and its figures are no results
provision: hosts: drives have other names on each machine; provision them there, or by a plan file with hosts
snia: hosts: a test is about a drive of one machine; run it there, or as a step of a plan file with hosts
purge: require: a purge measures nothing
tune: hosts: drives have other names on each machine; tune them there
tune: sim: a simulated device has no settings
purge: hosts: drives have other names on each machine; purge them there
purge: max-time max-written: a purge that is cut short leaves a device of unknown content; --list says what each method takes
purge: engine sim fio max-errors: a purge gives a device its own commands, and no engine takes part
cluster: hosts: its machines are the nodes of the cluster; --ninstances says how many servers there are
cluster: max-time max-written: its limits are those of each phase; --maxwait, --runtime, --fsz-gb
cluster: fio: the image of the pods has its own
cluster: max-errors: fio itself counts the errors of its servers
cluster: destroy: it writes only to volumes that it has claimed itself
cluster: sim: no simulated device has a storage class";

/// Command, options and reason: the lines of [`NOT_OFFERED`], and the options that a test of
/// SNIA's specification does not use.
pub fn not_offered() -> impl Iterator<Item = (String, Vec<&'static str>, &'static str)> {
    let lines = NOT_OFFERED.lines().filter_map(|line| {
        let (command, rest) = line.split_once(": ")?;
        let (options, why) = rest.split_once(": ")?;
        Some((command.to_owned(), options.split(' ').collect(), why))
    });
    let of_test = |test: SniaTest| {
        let unused = test.unused().iter();
        unused.map(move |(options, why)| (format!("snia {}", test.name()), options.to_vec(), *why))
    };
    lines.chain(SniaTest::ALL.into_iter().flat_map(of_test))
}

/// Why a command does not take an option.
pub fn why_not(command: &str, option: &str) -> Option<&'static str> {
    let is_it = |options: &[&str]| options.contains(&option);
    not_offered()
        .find_map(|(name, options, why)| (name == command && is_it(&options)).then_some(why))
}
