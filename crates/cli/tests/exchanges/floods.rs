//! Pods that say more than was asked for, without an end: they are heard no further,
//! the record stays small, and they are told of.

use std::fs;
use std::path::Path;

use fathom_model::FailureKind;

use super::tape::Answer;
use super::{Played, stderr};

/// Channels of a command in a pod.
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
/// More than a record of this small benchmark takes.
const RECORD_BYTES_MAX: u64 = 8 << 20;

/// A recording in which commands flood whose question has this in it, but for the
/// first of them.
fn flooded(at: &str, channel: u8, but_for: usize) -> Played {
    Played::with("seq", |exchanges| {
        let floods = |asked: &str| asked.contains("/exec?") && asked.contains(at);
        let those = exchanges.iter_mut().filter(|one| floods(&one.asked));
        let those = those.skip(but_for);
        assert!(
            those.map(|one| one.answer = Answer::Flood(channel)).count() > 0,
            "{at}"
        );
    })
}

fn size(path: &Path) -> u64 {
    let entries = fs::read_dir(path).unwrap().flatten();
    entries
        .map(|entry| match entry.file_type().unwrap().is_dir() {
            true => size(&entry.path()),
            false => entry.metadata().unwrap().len(),
        })
        .sum()
}

#[test]
fn a_pod_that_floods_is_heard_no_further_and_ends_the_run() {
    // Before the first phase, and while it is waited for.
    for (at, channel) in [
        ("%2Fproc%2Fmounts", STDOUT),
        ("%2Fproc%2Fmounts", STDERR),
        ("%3B+cat+exit+2", STDOUT),
    ] {
        let played = flooded(at, channel, 0);
        let output = played.seq(&[]);
        assert!(matches!(output.status.code(), Some(1 | 5)), "{output:?}");
        let told = stderr(&output);
        assert!(told.contains("says far more than was asked for"), "{told}");
        assert!(told.contains(FailureKind::Cluster.advice()), "{told}");
        let removed = played.removed().join("\n");
        assert!(removed.contains("statefulsets/server-fio"), "{removed}");
        assert!(size(&played.record()) < RECORD_BYTES_MAX, "{at}");
        assert!(output.stderr.len() < 1 << 16, "{at}");
    }
}

/// What is kept beside the figures only is no reason to end a run.
#[test]
fn a_server_whose_listing_floods_has_that_in_its_place() {
    // Both servers are looked at before the first phase, too.
    let played = flooded("command=ls&", STDOUT, 2);
    let output = played.seq(&["--dropcaches", "pagecache"]);
    assert!(output.status.success(), "{output:?}");
    let record = played.record();
    let kept = fs::read_to_string(record.join("server_fio/server-fio-1/ls_l.seqwr.txt")).unwrap();
    assert!(
        kept.contains("far more than was asked for"),
        "{}",
        kept.len()
    );
    assert!(size(&record) < RECORD_BYTES_MAX);
}
