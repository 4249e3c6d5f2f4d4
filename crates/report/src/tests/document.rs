//! What the document of a run says.

use fathom_model::result::{LatencyTarget, Spread};
use fathom_model::{
    Direction, Failure, FailureKind, FigureVerdict, JobResult, ReasonKind, RunStatus,
};

use super::*;

fn complete(jobs: Vec<JobResult>, disks: Vec<DiskUse>) -> RunDocument {
    let events = vec![started(), finished(jobs, disks), ended(RunStatus::Complete)];
    document_of(RunStatus::Complete, events)
}

#[test]
fn a_complete_run_shows_what_the_engine_reported() {
    let doc = complete(vec![reader("r")], vec![disk(4_200_000)]);
    assert_eq!(doc.schema, "fathom.run/1");
    assert_eq!(doc.id, "20261121T130737Z-mixed");
    assert_eq!(doc.started, "2026-11-21T13:07:37.250Z");
    assert_eq!(doc.ended.as_deref(), Some("2026-11-21T13:07:40.250Z"));
    assert_eq!(
        (doc.engine.as_str(), doc.engine_version.as_deref()),
        ("fio", Some("fio-3.33"))
    );
    let mut told = reader("r");
    told.read.as_mut().unwrap().verdict = Some(FigureVerdict::default());
    assert_eq!(doc.jobs, vec![told]);
    assert!(!doc.from_samples && doc.notes.is_empty() && doc.failures.is_empty());
}

#[test]
fn what_a_search_for_a_depth_came_to_is_told_beside_the_figures() {
    let mut job = reader("r");
    job.latency_target = Some(LatencyTarget {
        depth: 11,
        target_ns: 5_000_000,
        percentile: 99.5,
        window_us: 200_000,
    });
    let mut doc = complete(vec![job], Vec::new());
    let told = "r: latency_target 5 ms for 99.5 % of the I/Os in windows of 200 ms: its search ended at depth 11";
    assert_eq!(doc.notes, [told]);
    let shown = crate::table(&doc, fathom_sheet::style::Style::default()).replace('\n', " ");
    assert!(shown.contains("its search ended at depth 11"), "{shown}");
    let json = serde_json::to_value(&doc).unwrap();
    assert_eq!(json["jobs"][0]["latency_target"]["depth"], 11);
    assert_eq!(json["jobs"][0]["latency_target"]["target_ns"], 5_000_000);
    // fio ends a job that keeps it at no depth with ETIMEDOUT.
    doc.jobs[0].error = 110;
    doc.jobs[0].latency_target.as_mut().unwrap().depth = 1;
    let failed = complete(doc.jobs, Vec::new());
    assert!(
        failed.notes[0].ends_with("it failed at depth 1"),
        "{:?}",
        failed.notes
    );
}

#[test]
fn every_job_has_three_directions_in_json() {
    let mut job = reader("r");
    job.write = None;
    let doc = complete(vec![job], Vec::new());
    let json = serde_json::to_value(&doc).unwrap();
    let job = &json["jobs"][0];
    assert_eq!(job["read"]["total_ios"], 4_200_000);
    assert_eq!(job["read"]["iops"], 140_000.0);
    assert_eq!(job["read"]["clat"]["percentiles_ns"]["99.9"], 2_037_600);
    assert_eq!(job["write"]["total_ios"], 0);
    assert_eq!(job["trim"]["iops"], 0.0);
    // One without any figures has none: missing is not zero.
    let doc = complete(vec![JobResult::default()], Vec::new());
    let json = serde_json::to_value(&doc).unwrap();
    assert!(json["jobs"][0].as_object().unwrap()["read"].is_null());
}

#[test]
fn a_killed_run_is_counted_from_its_samples() {
    let doc = document_of(
        RunStatus::Interrupted,
        vec![
            started(),
            jobs(&["a", "b"]),
            sample(1000, 0, Direction::Read, 100, 5_000),
            sample(2000, 0, Direction::Read, 300, 50_000),
            sample(2000, 1, Direction::Write, 10, 7_000),
        ],
    );
    assert!(doc.from_samples && doc.ended.is_none());
    let read = doc.jobs[0].read.as_ref().unwrap();
    assert_eq!(
        (read.total_ios, read.runtime_ms, read.iops),
        (400, 2000, 200.0)
    );
    assert_eq!(read.bw_bytes, 200.0 * 4096.0);
    assert_eq!(read.kinds(), [ReasonKind::FromSamples]);
    let clat = read.clat.as_ref().unwrap();
    assert_eq!((clat.n, clat.percentiles_ns.len()), (Some(400), 17));
    let near = |value: u64, wanted: f64| (value as f64 / wanted - 1.0).abs() < 0.008;
    assert!(near(clat.percentile_ns(20.0).unwrap(), 5_000.0));
    assert!(near(clat.percentile_ns(30.0).unwrap(), 50_000.0));
    assert!(clat.min_ns <= 5_000 && clat.max_ns >= 50_000);
    assert!(near(clat.mean_ns as u64, 38_750.0));
    assert_eq!(doc.jobs[0].write.as_ref().unwrap().total_ios, 0);
    // The second job was seen for its own second only.
    assert_eq!(doc.jobs[1].write.as_ref().unwrap().iops, 10.0);
    assert!(doc.notes[0].starts_with("all jobs: counted from the interval samples"));
}

#[test]
fn a_killed_run_without_samples_still_names_its_jobs() {
    let doc = document_of(RunStatus::Interrupted, vec![started(), jobs(&["a"])]);
    assert_eq!(doc.jobs[0].name, "a");
    assert!(doc.jobs[0].read.is_none() && !doc.from_samples);
}

#[test]
fn a_job_killed_by_a_signal_gets_its_figures_from_the_samples() {
    // fio reports such a job with error 0, no run time and iops 0.
    let mut killed = reader("killed");
    killed.read = Some(DirectionResult {
        total_ios: 77,
        ..DirectionResult::default()
    });
    let doc = document_of(
        RunStatus::Failed,
        vec![
            started(),
            jobs(&["killed", "fine"]),
            sample(1000, 0, Direction::Read, 80, 5_000),
            sample(1000, 1, Direction::Read, 1, 5_000),
            Event::Failure(Failure::new(FailureKind::JobKilled, "killed by signal 9")),
            finished(vec![killed, reader("fine")], Vec::new()),
            ended(RunStatus::Failed),
        ],
    );
    let read = |place: usize| doc.jobs[place].read.as_ref().unwrap();
    assert_eq!((read(0).total_ios, read(0).iops), (80, 80.0));
    // 80 I/Os a second of 5 µs each are no depth of 32.
    let kinds = [ReasonKind::FromSamples, ReasonKind::DepthNotReached];
    assert_eq!(read(0).kinds(), kinds);
    assert_eq!((read(1).total_ios, read(1).kinds()), (4_200_000, vec![]));
    assert_eq!(doc.failures.len(), 1);
}

/// fio counts the rounds of its CPU burner as reads of no bytes in no time.
#[test]
fn an_engine_that_moves_nothing_gets_no_figures_from_samples() {
    let mut burner = reader("burn");
    burner.read = Some(DirectionResult {
        total_ios: 2,
        ..DirectionResult::default()
    });
    let mut round = sample(1000, 0, Direction::Read, 2, 50_000);
    if let Event::Sample(sample) = &mut round {
        sample.bytes = 0;
    }
    let events = vec![
        started(),
        jobs(&["burn"]),
        round,
        finished(vec![burner], Vec::new()),
        ended(RunStatus::Complete),
    ];
    let doc = document_of(RunStatus::Complete, events);
    assert!(!doc.from_samples);
    assert_eq!(doc.jobs[0].read.as_ref().unwrap().iops, 0.0);
}

#[test]
fn steps_are_kept_apart_and_an_unfinished_one_comes_from_samples() {
    let doc = document_of(
        RunStatus::Interrupted,
        vec![
            step(1, 2, "one.fio"),
            started(),
            jobs(&["r"]),
            sample(1000, 0, Direction::Read, 5, 5_000),
            finished(vec![reader("r")], vec![disk(4_200_000)]),
            step(2, 2, "two.fio"),
            started(),
            jobs(&["r"]),
            sample(31_000, 0, Direction::Read, 7, 5_000),
        ],
    );
    let seen: Vec<_> = doc
        .jobs
        .iter()
        .map(|job| {
            (
                job.step.as_deref().unwrap(),
                job.read.as_ref().unwrap().total_ios,
            )
        })
        .collect();
    assert_eq!(seen, [("one.fio", 4_200_000), ("two.fio", 7)]);
    assert_eq!(doc.disks[0].step.as_deref(), Some("one.fio"));
    assert_eq!(
        doc.groups.len(),
        2,
        "group 0 of each step is a group of its own"
    );
}

#[test]
fn global_options_count_for_every_job_unless_it_sets_its_own() {
    let results = Results {
        global_options: [("bs", "4k"), ("direct", "1")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into(),
        jobs: vec![JobResult {
            options: [("bs".to_owned(), "16k".to_owned())].into(),
            ..JobResult::default()
        }],
        ..Results::default()
    };
    let results = Box::new(results);
    let doc = document_of(RunStatus::Complete, vec![Event::Finished { results }]);
    assert_eq!(doc.jobs[0].options["bs"], "16k");
    assert_eq!(doc.jobs[0].options["direct"], "1");
}

#[test]
fn what_is_not_a_number_never_reaches_json() {
    let mut job = reader("r");
    let read = job.read.as_mut().unwrap();
    (read.iops, read.bw_bytes) = (f64::NAN, f64::INFINITY);
    let clat = read.clat.as_mut().unwrap();
    (clat.mean_ns, clat.stddev_ns) = (f64::NAN, Some(f64::NAN));
    read.slat = Some(Latency::default());
    read.iops_intervals = Some(Spread {
        mean: f64::NAN,
        ..Spread::default()
    });
    job.cpu.as_mut().unwrap().user_percent = f64::NAN;
    let mut disk = disk(1);
    disk.util_percent = f64::NAN;
    let doc = complete(vec![job], vec![disk]);
    let read = doc.jobs[0].read.as_ref().unwrap();
    assert_eq!(read.iops, 140_000.0);
    assert_eq!(
        read.slat, None,
        "a latency of nothing is no latency of 0 ns"
    );
    assert!(read.iops_intervals.is_none() && doc.jobs[0].cpu.is_none());
    let text = serde_json::to_string(&doc).unwrap();
    let back: RunDocument = serde_json::from_str(&text).unwrap();
    assert_eq!(back, doc, "a NaN would have become null and not read back");
}

#[test]
fn groups_add_up_as_fio_does() {
    let mut slow = reader("slow");
    slow.read = Some(direction(30_000, 60_000, 1000.0));
    let mut other = reader("other");
    other.group = 1;
    let doc = complete(vec![reader("fast"), slow, other], Vec::new());
    assert_eq!(doc.groups.len(), 2);
    let group = &doc.groups[0];
    assert_eq!(
        (group.total_ios, group.io_bytes),
        (4_230_000, 4_230_000 * 4096)
    );
    assert_eq!(group.iops, 70_500.0);
    // Bytes of the group over its longest run time, not the sum of the two.
    assert_eq!(group.bw_bytes, 4_230_000.0 * 4096.0 / 60.0);
    assert_eq!(
        (group.bw_bytes_min, group.bw_bytes_max),
        (500.0 * 4096.0, 140_000.0 * 4096.0)
    );
    assert_eq!(
        (group.runtime_ms_min, group.runtime_ms_max),
        (30_000, 60_000)
    );
}

#[test]
fn the_sum_over_all_hosts_is_not_counted_as_one_more_job() {
    let host = |name: &str| JobResult {
        hostname: Some("h".into()),
        ..reader(name)
    };
    let doc = complete(vec![host("r"), host("r"), host("All clients")], Vec::new());
    assert_eq!(doc.groups[0].io_bytes, 2 * 4_200_000 * 4096);
}

#[test]
fn a_disk_that_was_not_read_in_time_is_no_row_of_zeros() {
    let idle = || DiskUse {
        name: "vda".into(),
        ..DiskUse::default()
    };
    let mut short = reader("r");
    short.runtime_ms = Some(400);
    assert_eq!(complete(vec![short.clone()], vec![idle()]).disks, []);
    assert_eq!(complete(vec![short], vec![disk(9)]).disks.len(), 1);
    // After a second these zeros are measured: the page cache did it all.
    assert_eq!(complete(vec![reader("r")], vec![idle()]).disks.len(), 1);
}
