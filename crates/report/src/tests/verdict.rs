//! When a figure is marked, and when it is not.

use fathom_model::environment::FileSystem;
use fathom_model::{ReasonKind, VerdictReason};

use super::*;

/// The kinds of reasons against the first job's reads (or, without any, its writes).
fn kinds(job: JobResult, disks: Vec<DiskUse>) -> Vec<ReasonKind> {
    let doc = document_of(
        RunStatus::Complete,
        vec![started(), finished(vec![job], disks)],
    );
    let job = &doc.jobs[0];
    let read = job.read.as_ref().filter(|read| read.total_ios > 0);
    read.or(job.write.as_ref()).unwrap().kinds()
}

fn with(mut job: JobResult, options: &[(&str, &str)]) -> JobResult {
    for (name, value) in options {
        job.options.insert((*name).into(), (*value).into());
    }
    job
}

fn buffered(options: &[(&str, &str)]) -> JobResult {
    let mut job = with(reader("r"), options);
    job.options.remove("direct");
    job
}

fn writer(options: &[(&str, &str)]) -> JobResult {
    let mut job = buffered(&[("rw", "randwrite")]);
    job.write = job.read.take();
    with(job, options)
}

#[test]
fn buffered_reads_that_no_disk_served_are_marked() {
    assert_eq!(
        kinds(buffered(&[]), vec![disk(100_000)]),
        [ReasonKind::CachedReads]
    );
    assert_eq!(kinds(buffered(&[]), vec![disk(4_100_000)]), []);
    // Without a disk there is no evidence.
    assert_eq!(kinds(buffered(&[]), Vec::new()), []);
    assert_eq!(kinds(reader("direct"), vec![disk(0)]), []);
    assert_eq!(
        kinds(buffered(&[("direct", "0")]), vec![disk(0)]),
        [ReasonKind::CachedReads]
    );
}

/// Found with the null engine, whose reads were taken for the page cache's.
#[test]
fn an_engine_that_reads_no_file_reads_no_cache() {
    let null = buffered(&[("ioengine", "null")]);
    assert_eq!(kinds(null, vec![disk(0)]), []);
}

/// Found with a run of 50 ms on a loop device: fio had not read the disk's
/// counters even once, and direct reads looked as if they had come from memory.
#[test]
fn the_disk_figures_of_a_short_run_are_no_evidence() {
    let mut job = buffered(&[]);
    job.read.as_mut().unwrap().runtime_ms = 50;
    assert_eq!(kinds(job, vec![disk(0)]), [ReasonKind::Short]);
}

#[test]
fn sequential_reads_come_in_larger_requests() {
    // 16 GiB in 131,072 requests of 128 KiB: read-ahead, not the cache.
    assert_eq!(kinds(buffered(&[("rw", "read")]), vec![disk(131_072)]), []);
    assert_eq!(
        kinds(buffered(&[("rw", "read")]), vec![disk(4_096)]),
        [ReasonKind::CachedReads]
    );
}

#[test]
fn what_the_direct_jobs_of_a_step_read_does_not_speak_for_the_buffered_one() {
    let events = vec![finished(
        vec![buffered(&[]), reader("direct")],
        vec![disk(4_200_100)],
    )];
    let doc = document_of(RunStatus::Complete, events);
    let marked: Vec<_> = doc
        .jobs
        .iter()
        .map(|job| job.read.as_ref().unwrap().kinds())
        .collect();
    assert_eq!(marked, [vec![ReasonKind::CachedReads], vec![]]);
}

#[test]
fn writes_that_nothing_waits_for_are_marked() {
    assert_eq!(kinds(writer(&[]), Vec::new()), [ReasonKind::UnsyncedWrites]);
    assert_eq!(
        kinds(writer(&[("fdatasync", "0")]), Vec::new()),
        [ReasonKind::UnsyncedWrites]
    );
    for option in ["fsync", "fdatasync", "end_fsync", "sync", "direct"] {
        assert_eq!(kinds(writer(&[(option, "1")]), Vec::new()), [], "{option}");
    }
    assert_eq!(kinds(writer(&[("ioengine", "null")]), Vec::new()), []);
    let mut unknown = writer(&[]);
    unknown.options.clear();
    assert_eq!(kinds(unknown, Vec::new()), [], "no options, no judgement");
}

#[test]
fn a_job_that_uses_up_its_cpu_has_a_note_and_nothing_against_it() {
    let mut job = reader("r");
    job.cpu.as_mut().unwrap().system_percent = 83.0;
    assert_eq!(kinds(job.clone(), Vec::new()), []);
    let doc = document_of(
        RunStatus::Complete,
        vec![started(), finished(vec![job], Vec::new())],
    );
    let read = doc.jobs[0].read.as_ref().unwrap();
    let reasons = &read.verdict.as_ref().unwrap().reasons;
    let is_told = |reason: &&VerdictReason| reason.kind == ReasonKind::CpuBound;
    assert!(reasons.iter().any(|reason| is_told(&reason)), "{reasons:?}");
}

#[test]
fn latencies_at_the_end_of_fios_histogram_are_marked() {
    let mut job = reader("r");
    job.read.as_mut().unwrap().clat.as_mut().unwrap().max_ns = 17_179_869_184;
    assert_eq!(kinds(job, Vec::new()), [ReasonKind::SaturatedPercentiles]);
}

#[test]
fn failed_ios_in_the_count_and_short_runs_are_marked() {
    let mut job = reader("r");
    job.total_errors = Some(7);
    job.read.as_mut().unwrap().runtime_ms = 900;
    assert_eq!(
        kinds(job, Vec::new()),
        [ReasonKind::FailedIosCounted, ReasonKind::Short]
    );
}

#[test]
fn the_native_engine_does_not_count_failed_ios() {
    let mut job = reader("r");
    job.total_errors = Some(7);
    let mut doc = document_of(
        RunStatus::Complete,
        vec![started(), finished(vec![job], Vec::new())],
    );
    doc.engine = "native".to_owned();
    assert_eq!(fathom_analysis::verdict::reasons(&doc, &[]), []);
}

#[test]
fn files_in_memory_are_marked_and_files_on_a_disk_are_not() {
    let on = |kind: &str| {
        let mut header = header();
        header.environment.as_mut().unwrap().targets = vec![Target {
            file_system: Some(FileSystem {
                kind: kind.into(),
                ..FileSystem::default()
            }),
            ..Target::default()
        }];
        let entry = Entry {
            at_ms: 1,
            event: finished(vec![reader("r")], Vec::new()),
        };
        let doc = fathom_document::compose("id".into(), RunStatus::Complete, &header, &[entry]);
        doc.jobs[0].read.as_ref().unwrap().kinds()
    };
    assert_eq!(on("tmpfs"), [ReasonKind::InMemory]);
    assert_eq!(on("ext4"), []);
}

#[test]
fn one_sentence_tells_of_all_jobs_it_holds_for() {
    let mut short = reader("a");
    short.read.as_mut().unwrap().runtime_ms = 10;
    let named = |name: &str| JobResult {
        name: name.into(),
        ..short.clone()
    };
    let notes = |jobs| document_of(RunStatus::Complete, vec![finished(jobs, Vec::new())]).notes;
    let starts = |notes: Vec<String>, with: &str| notes.len() == 1 && notes[0].starts_with(with);
    assert!(starts(
        notes(vec![named("a"), named("b")]),
        "all jobs: less than a second"
    ));
    assert!(starts(notes(vec![named("a"), reader("b")]), "a: "));
    assert!(starts(
        notes(vec![named("a"), named("b"), reader("c")]),
        "a and b: "
    ));
    let four = vec![named("a"), named("b"), named("c"), reader("d")];
    assert!(starts(notes(four), "a and 2 more jobs: "));
}
