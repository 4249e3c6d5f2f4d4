//! What is written is what is read, listed and found.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use fathom_model::{
    Direction, DirectionResult, Event, Failure, FailureKind, Histogram, JobResult, Latency, Point,
    Results, RunStatus, Sample, SkipCause,
};
use fathom_record::{
    Chain, EVENTS, Entries, Header, Record, RecordError, RunSummary, Writer, find,
};
use proptest::prelude::*;

fn header(name: &str, started_ms: u64) -> Header {
    Header {
        started_ms,
        ..Header::new(name, "test")
    }
}

fn write(runs: &Path, header: &Header, events: &[Event]) -> String {
    let mut writer = Writer::create(runs, header).unwrap();
    for event in events {
        writer.append(event).unwrap();
    }
    let dir = writer.finish(RunStatus::Complete).unwrap();
    dir.file_name().unwrap().to_string_lossy().into_owned()
}

/// All runs of a folder, which can all be read.
fn list(runs: &Path) -> Result<Vec<RunSummary>, RecordError> {
    let listed = fathom_record::list(runs)?;
    listed.into_iter().map(|run| run.summary).collect()
}

fn note(text: &str) -> Event {
    Event::Note { text: text.into() }
}

/// What a kill can leave behind the last check: the rest of the line of [`sample`].
const SAMPLE: &str = r#""t_ms":7,"span_ms":1000,"job":0,"dir":"read","ios":1,"bytes":4096}"#;

fn append_raw(dir: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new()
        .append(true)
        .open(dir.join(EVENTS))
        .unwrap();
    file.write_all(bytes).unwrap();
}

#[test]
fn folders_carry_time_and_name_and_the_files_of_a_run() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path().join("not/yet/there");
    let mut writer = Writer::create(&runs, &header("rand/read", 1_795_266_165_000)).unwrap();
    writer.append(&note("x")).unwrap();
    let jobs = writer.jobs_dir().unwrap();
    assert!(jobs.is_dir() && writer.jobs_dir().unwrap() == jobs);
    assert!(writer.raw_dir().unwrap().ends_with("raw"));
    let dir = writer.finish(RunStatus::Complete).unwrap();
    assert_eq!(dir, runs.join("20261121T130245Z-rand-read"));
    assert_eq!(
        Record::open(&dir).unwrap().id(),
        "20261121T130245Z-rand-read"
    );
}

#[test]
fn a_run_reads_as_running_until_its_writer_is_gone() {
    let runs = tempfile::tempdir().unwrap();
    let writer = Writer::create(runs.path(), &header("x", 0)).unwrap();
    let dir = writer.dir().to_owned();
    assert_eq!(Record::open(&dir).unwrap().status(), None);
    drop(writer);
    let status = Record::open(&dir).unwrap().status();
    assert_eq!(status, Some(RunStatus::Interrupted));
    assert_eq!(list(runs.path()).unwrap()[0].status, status);
}

#[test]
fn samples_wait_for_their_interval_and_survive_a_writer_that_is_dropped() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), &header("x", 0)).unwrap();
    let dir = writer.dir().to_owned();
    let count = || Record::open(&dir).unwrap().entries.len();
    writer.append(&sample(0)).unwrap();
    assert_eq!(count(), 0);
    let remaining_ms = None;
    writer
        .append(&Event::Interval {
            t_ms: 0,
            remaining_ms,
        })
        .unwrap();
    assert_eq!(count(), 2);
    writer.append(&sample(1)).unwrap();
    drop(writer);
    assert_eq!(count(), 3);
}

fn sample(t_ms: u64) -> Event {
    Event::Sample(Sample {
        t_ms,
        span_ms: 1_000,
        job: 0,
        dir: Direction::Read,
        ios: 1,
        bytes: 4_096,
        clat: None,
        lat: None,
    })
}

#[test]
fn a_figure_that_is_not_a_number_is_refused_and_nothing_else_is_lost() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), &header("x", 0)).unwrap();
    let finished = |bw_bytes| {
        let read = Some(DirectionResult {
            bw_bytes,
            ..DirectionResult::default()
        });
        let job = JobResult {
            read,
            ..JobResult::default()
        };
        Event::Finished {
            results: Box::new(Results {
                jobs: vec![job],
                ..Results::default()
            }),
        }
    };
    let error = writer.append(&finished(f64::NAN)).unwrap_err();
    assert!(error.to_string().contains("not a number"), "{error}");
    writer.append(&finished(1.5)).unwrap();
    let dir = writer.finish(RunStatus::Complete).unwrap();
    assert_eq!(Record::open(&dir).unwrap().entries.len(), 2);
}

#[test]
fn a_torn_last_line_is_left_out_and_counted() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), &header("x", 0)).unwrap();
    writer.append(&note("kept")).unwrap();
    let dir = writer.dir().to_owned();
    drop(writer);
    append_raw(&dir, b"{\"at_ms\":1,\"event\":\"no");
    let record = Record::open(&dir).unwrap();
    assert_eq!((record.entries.len(), record.torn_bytes), (1, 22));
    assert_eq!(record.status(), Some(RunStatus::Interrupted));
}

#[test]
fn a_damaged_line_is_named_and_what_stands_before_it_is_kept() {
    let runs = tempfile::tempdir().unwrap();
    let id = write(
        runs.path(),
        &header("x", 0),
        &[note("a"), note("b"), note("c")],
    );
    let dir = runs.path().join(id);
    let log = dir.join(EVENTS);
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replace("\"b\"", "\0\0\0")).unwrap();
    let error = Record::open(&dir).unwrap_err();
    assert!(matches!(error, RecordError::Damaged { line: 3, .. }));
    let shown = format!("{}:3: damaged", log.display());
    assert!(error.to_string().starts_with(&shown), "{error}");
    let before = Entries::open(&dir).unwrap().map_while(Result::ok).count();
    assert_eq!(before, 1);
    let mut salvaged = Entries::salvage(&dir).unwrap();
    let intact = salvaged.by_ref().collect::<Result<Vec<_>, _>>().unwrap();
    assert_eq!(
        (intact.len(), salvaged.damaged.count, salvaged.damaged.first),
        (3, 1, 3)
    );
    assert_eq!(salvaged.status, Some(RunStatus::Complete));
}

#[test]
fn intact_lines_are_read_behind_a_first_line_that_is_damaged_or_gone() {
    let runs = tempfile::tempdir().unwrap();
    let id = write(
        runs.path(),
        &header("x", 1_795_266_165_000),
        &[note("a"), note("b")],
    );
    let dir = runs.path().join(id);
    let log = dir.join(EVENTS);
    let whole = fs::read(&log).unwrap();
    let end = whole.iter().position(|&b| b == b'\n').unwrap();
    let zeros = vec![0; end];
    for (first, damaged) in [
        (&zeros[..], 1),
        (b"{\"format\":\"fathom-record\",\"version\":1}", 1),
        (b"", 0),
    ] {
        let rest = if first.is_empty() { end + 1 } else { end };
        fs::write(&log, [first, &whole[rest..]].concat()).unwrap();
        let error = Record::open(&dir).unwrap_err().to_string();
        assert!(
            error.contains("line 1") && error.contains("--salvage"),
            "{error}"
        );
        let mut salvaged = Entries::salvage(&dir).unwrap();
        let by_the_first_line = salvaged.by_ref().next().unwrap().unwrap().at_ms;
        assert_eq!(salvaged.header.started_ms, by_the_first_line);
        assert_eq!(salvaged.by_ref().filter_map(Result::ok).count(), 2);
        assert_eq!(salvaged.damaged.count, damaged);
    }
}

#[test]
fn a_log_that_would_be_waited_for_is_no_record() {
    let runs = tempfile::tempdir().unwrap();
    let dir = runs.path().join("x");
    fs::create_dir(&dir).unwrap();
    let log = dir.join(EVENTS);
    for what in ["/proc/kmsg", "/dev/zero", "fifo"] {
        match what {
            "fifo" => rustix::fs::mkfifoat(rustix::fs::CWD, &log, rustix::fs::Mode::RUSR).unwrap(),
            link => std::os::unix::fs::symlink(link, &log).unwrap(),
        }
        let error = Record::open(&dir).unwrap_err();
        assert!(matches!(error, RecordError::NotARecord { .. }), "{error}");
        assert!(
            fathom_record::list(runs.path()).unwrap()[0]
                .summary
                .is_err()
        );
        fs::remove_file(&log).unwrap();
    }
}

#[test]
fn the_last_run_is_the_last_one_whether_it_can_be_read_or_not() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    let readable = write(runs, &header("a", 1_000_000), &[]);
    let damaged = write(runs, &header("b", 2_000_000), &[]);
    let newer = write(runs, &header("c", 3_000_000), &[]);
    let change = |id: &str, from: &str, to: &str| {
        let log = runs.join(id).join(EVENTS);
        let text = fs::read_to_string(&log).unwrap();
        fs::write(&log, text.replacen(from, to, 1)).unwrap();
    };
    fs::write(runs.join(&damaged).join(EVENTS), "\0\n").unwrap();
    change(&newer, "\"version\":2", "\"version\":3");
    assert_eq!(find(runs, None).unwrap(), runs.join(&newer));
    let listed = fathom_record::list(runs).unwrap();
    let of = |at: usize| {
        (
            listed[at].id.as_str(),
            listed[at].started_ms,
            listed[at].summary.is_ok(),
        )
    };
    assert_eq!(of(0), (readable.as_str(), 1_000_000, true));
    assert_eq!(of(1), (damaged.as_str(), 2_000_999, false));
    assert_eq!(of(2), (newer.as_str(), 3_000_000, false));
    assert_eq!(listed[1].command, None);
    assert_eq!(listed[2].command.as_deref(), Some("test"));
    assert!(Entries::salvage(&runs.join(&newer)).is_err());
}

/// The last line of a record that was written before the clock was set back.
#[test]
fn a_record_that_goes_on_after_the_clock_was_set_back_goes_on_in_its_own_time() {
    let runs = tempfile::tempdir().unwrap();
    let dir = runs
        .path()
        .join(write(runs.path(), &header("x", 0), &[note("a")]));
    let log = dir.join(EVENTS);
    let ahead = fathom_record::now_ms() + 86_400_000;
    append_raw(
        &dir,
        format!("{{\"at_ms\":{ahead},\"event\":\"sample\",{SAMPLE}\n").as_bytes(),
    );
    let mut writer = Writer::reopen(&dir).unwrap();
    writer.append(&note("c")).unwrap();
    writer.finish(RunStatus::Complete).unwrap();
    let record = Record::open(&dir).unwrap();
    let times: Vec<u64> = record.entries.iter().map(|entry| entry.at_ms).collect();
    assert!(
        times.is_sorted() && times[times.len() - 1] < ahead + 600_000,
        "{times:?}"
    );
    let gaps = record.entries.iter().filter_map(|entry| match entry.event {
        Event::Resumed { gap_ms, .. } => Some(gap_ms),
        _ => None,
    });
    assert_eq!(gaps.collect::<Vec<_>>(), [0]);
    assert!(fs::read_to_string(log).unwrap().ends_with("\n"));
}

#[test]
fn a_run_whose_log_is_gone_is_not_taken_for_one_whose_name_begins_alike() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    let meant = write(runs, &header("x", 0), &[]);
    write(runs, &header("x", 0), &[]);
    fs::remove_file(runs.join(&meant).join(EVENTS)).unwrap();
    let error = find(runs, Some(&meant)).unwrap_err().to_string();
    assert!(error.contains("it has no events.jsonl"), "{error}");
}

#[test]
fn events_of_a_later_kind_are_passed_over_and_counted() {
    let runs = tempfile::tempdir().unwrap();
    let dir = runs
        .path()
        .join(write(runs.path(), &header("x", 0), &[note("a")]));
    let mut line = b"{\"at_ms\":1,\"event\":\"t\\u0065lepathy\",\"of\":[1,{}]}\n".to_vec();
    Chain::of(&fs::read(dir.join(EVENTS)).unwrap()).seal(&mut line);
    append_raw(&dir, &line);
    let mut writer = Writer::reopen(&dir).unwrap();
    writer.append(&note("after")).unwrap();
    writer.finish(RunStatus::Complete).unwrap();
    let record = Record::open(&dir).unwrap();
    assert_eq!((record.entries.len(), record.unknown_events), (5, 1));
}

#[test]
fn a_newer_version_is_refused_by_name_and_listed() {
    let runs = tempfile::tempdir().unwrap();
    let id = write(runs.path(), &header("x", 0), &[]);
    write(runs.path(), &header("y", 1), &[]);
    let dir = runs.path().join(id);
    let log = dir.join(EVENTS);
    let text = fs::read_to_string(&log).unwrap();
    fs::write(
        &log,
        text.replacen("\"version\":2", "\"version\":3,\"x\":0", 1),
    )
    .unwrap();
    let error = Record::open(&dir).unwrap_err().to_string();
    assert!(error.contains("newer Fathom"), "{error}");
    let listed = fathom_record::list(runs.path()).unwrap();
    assert!(listed[0].summary.is_err() && listed[1].summary.is_ok());
}

#[test]
fn what_is_no_record_is_an_error_and_no_panic() {
    let runs = tempfile::tempdir().unwrap();
    for content in [
        &b""[..],
        b"\n",
        b"{}\n",
        b"[1]\n",
        b"null\n",
        b"{\"format\":\"x\",\"version\":1}\n",
        b"{\"format\":\"fathom-record\",\"version\":1}\n",
        b"\xff\xfe\n",
        b"no end of line",
    ] {
        fs::write(runs.path().join(EVENTS), content).unwrap();
        let error = Record::open(runs.path()).unwrap_err();
        assert!(matches!(error, RecordError::NotARecord { .. }), "{error}");
    }
    assert!(Record::open(&runs.path().join("nowhere")).is_err());
    assert!(list(&runs.path().join("nowhere")).unwrap().is_empty());
}

#[test]
fn runs_are_found_by_path_name_unique_beginning_and_as_the_last() {
    let tmp = tempfile::tempdir().unwrap();
    let runs = &tmp.path().join("runs");
    let missing = find(runs, None).unwrap_err().to_string();
    assert!(missing.contains("there are no runs under"), "{missing}");
    let late = write(runs, &header("late", 1_795_266_165_000), &[]);
    let early = write(runs, &header("early", 1_000_000), &[]);
    let twin = write(runs, &header("early", 1_000_000), &[]);
    assert_eq!(twin, format!("{early}.2"));
    fs::create_dir(runs.join("2026-no-record")).unwrap();

    let ids: Vec<String> = list(runs).unwrap().into_iter().map(|s| s.id).collect();
    assert_eq!(ids, [early.clone(), twin.clone(), late.clone()]);
    assert_eq!(find(runs, None).unwrap(), runs.join(&late));
    assert_eq!(find(runs, Some("2026")).unwrap(), runs.join(&late));
    assert_eq!(find(runs, Some(&early)).unwrap(), runs.join(&early));
    let path = runs.join(&twin);
    assert_eq!(find(tmp.path(), path.to_str()).unwrap(), path);
    let several = find(runs, Some("1970")).unwrap_err().to_string();
    assert!(
        several.contains(&early) && several.contains(&twin),
        "{several}"
    );
    for nothing in ["", "nosuch", "2026-no"] {
        let error = find(runs, Some(nothing)).unwrap_err();
        assert!(matches!(error, RecordError::NotFound(_)), "{error}");
    }
}

const COLLIDE: &str = "FATHOM_TEST_COLLIDE_RUNS";
const THREADS: usize = 4;
const RUNS_EACH: usize = 5;

fn write_many(runs: &Path) {
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..RUNS_EACH {
                    write(runs, &header("same", 1_000), &[note("x")]);
                }
            });
        }
    });
}

/// Not a test of its own: one of the processes of [`runs_at_once_do_not_collide`].
#[test]
fn child_writes_runs_of_one_name() {
    if let Some(runs) = std::env::var_os(COLLIDE) {
        write_many(Path::new(&runs));
    }
}

#[test]
fn runs_at_once_do_not_collide() {
    let runs = tempfile::tempdir().unwrap();
    let child = || {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "records::child_writes_runs_of_one_name"])
            .env(COLLIDE, runs.path())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut children = [child(), child()];
    write_many(runs.path());
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let all = list(runs.path()).unwrap();
    assert_eq!(all.len(), 3 * THREADS * RUNS_EACH);
    assert!(all.iter().all(|s| s.status == Some(RunStatus::Complete)));
    let ids: BTreeSet<&str> = all.iter().map(|s| s.id.as_str()).collect();
    assert_eq!(ids.len(), all.len());
    for summary in &all {
        let record = Record::open(&runs.path().join(&summary.id)).unwrap();
        assert_eq!(record.entries.len(), 2);
    }
}

fn a_histogram() -> impl Strategy<Value = Histogram> {
    prop::collection::vec((any::<u64>(), 1..u64::from(u32::MAX)), 0..20).prop_map(|values| {
        let mut histogram = Histogram::new();
        for (value_ns, count) in values {
            histogram.add(value_ns, count);
        }
        histogram
    })
}

fn a_figure() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("JSON has no NaN and no infinity", |f| f.is_finite())
}

prop_compose! {
    fn some_results()(
        name in ".*", error in any::<i32>(), bw_bytes in a_figure(), iops in a_figure(),
        mean_ns in a_figure(), histogram in prop::option::of(a_histogram()),
        timestamp_ms in prop::option::of(any::<u64>()),
    ) -> Box<Results> {
        let clat = Latency { mean_ns, histogram, ..Latency::default() };
        let read = DirectionResult { bw_bytes, iops, clat: Some(clat), ..DirectionResult::default() };
        let job = JobResult { name, error, read: Some(read), ..JobResult::default() };
        Box::new(Results { timestamp_ms, jobs: vec![job], ..Results::default() })
    }
}

fn an_event() -> impl Strategy<Value = Event> {
    let some_sample = (
        any::<[u64; 4]>(),
        any::<u32>(),
        prop::option::of(a_histogram()),
    )
        .prop_map(|([t_ms, span_ms, ios, bytes], job, clat)| {
            Event::Sample(Sample {
                t_ms,
                span_ms,
                job,
                dir: Direction::Trim,
                ios,
                bytes,
                clat,
                lat: None,
            })
        });
    let point = || {
        let settings = prop::collection::btree_map("[a-z_]{1,12}", ".*", 0..4);
        ("[a-z0-9/-]{1,30}", settings, 1u32..9).prop_map(|(id, settings, repetition)| Point {
            series: "series".into(),
            x: "iodepth".into(),
            id,
            settings,
            repetition,
        })
    };
    prop_oneof![
        3 => some_sample,
        1 => (any::<u64>(), any::<Option<u64>>())
            .prop_map(|(t_ms, remaining_ms)| Event::Interval { t_ms, remaining_ms }),
        1 => (any::<u32>(), any::<u32>(), ".*")
            .prop_map(|(step, of, name)| Event::Step { step, of, name, point: None }),
        1 => (any::<u32>(), any::<u32>(), point()).prop_map(|(step, of, point)| Event::Step {
            step,
            of,
            name: point.id.clone(),
            point: Some(Box::new(point)),
        }),
        1 => (point(), ".*").prop_map(|(point, reason)| Event::Skipped { point: Box::new(point), reason, cause: SkipCause::NotNeeded }),
        1 => (any::<u64>()).prop_map(|gap_ms| Event::Resumed { after: Some(RunStatus::Failed), gap_ms }),
        1 => (".*", any::<Option<String>>(), prop::collection::vec(".*", 0..4), any::<Option<u32>>())
            .prop_map(|(engine, version, argv, pid)| Event::EngineStarted { engine, version, argv, pid }),
        1 => prop::collection::vec(".*", 0..4).prop_map(|names| Event::Jobs { hosts: names.clone(), names }),
        1 => ".*".prop_map(|what| Event::Preparing { what }),
        1 => ".*".prop_map(|text| Event::Note { text }),
        1 => ".*".prop_map(|text| Event::Failure(Failure::new(FailureKind::Io, text).with_errno(5))),
        1 => some_results().prop_map(|results| Event::Status { results }),
        1 => some_results().prop_map(|results| Event::Finished { results }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_event_reads_back_as_it_was(events in prop::collection::vec(an_event(), 0..12)) {
        let runs = tempfile::tempdir().unwrap();
        let id = write(runs.path(), &header("x", 0), &events);
        let record = Record::open(&runs.path().join(id)).unwrap();
        let mut read: Vec<Event> = record.entries.into_iter().map(|e| e.event).collect();
        prop_assert_eq!(read.pop(), Some(Event::Ended { status: RunStatus::Complete }));
        prop_assert_eq!(record.unknown_events, 0);
        prop_assert_eq!(read, events);
    }

    #[test]
    fn a_log_cut_anywhere_after_its_header_reads_as_a_prefix(
        events in prop::collection::vec(an_event(), 1..6), cut in any::<prop::sample::Index>(),
    ) {
        let runs = tempfile::tempdir().unwrap();
        let dir = runs.path().join(write(runs.path(), &header("x", 0), &events));
        let bytes = fs::read(dir.join(EVENTS)).unwrap();
        let first = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
        let end = first + cut.index(bytes.len() - first);
        fs::write(dir.join(EVENTS), &bytes[..end]).unwrap();
        let lines = bytes[first..end].iter().filter(|&&b| b == b'\n').count();
        let record = Record::open(&dir).unwrap();
        prop_assert_eq!(record.entries.len(), lines);
        for (entry, event) in record.entries.iter().zip(&events) {
            prop_assert_eq!(&entry.event, event);
        }
    }

    #[test]
    fn nothing_in_a_log_makes_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let runs = tempfile::tempdir().unwrap();
        let dir = runs.path().join(write(runs.path(), &header("x", 0), &[]));
        append_raw(&dir, &bytes);
        let _ = Entries::open(&dir).unwrap().count();
    }
}

#[test]
fn what_a_kill_has_left_of_job_files_goes_when_the_record_goes_on() {
    let runs = tempfile::tempdir().unwrap();
    let writer = Writer::create(runs.path(), &header("x", 1000)).unwrap();
    let (dir, jobs) = (writer.dir().to_owned(), writer.jobs_dir().unwrap());
    let parts = ["a.fio.4711.part", "a.fio.as-written.1.part"];
    let others = ["a.fio", "b.part", "c.fio.x.part", "7.part"];
    for name in parts.iter().chain(&others) {
        fs::write(jobs.join(name), "[a]").unwrap();
    }
    // Its writer lives.
    assert!(Writer::reopen(&dir).is_err());
    assert!(jobs.join(parts[0]).exists());
    drop(writer);
    drop(Writer::reopen(&dir).unwrap());
    assert!(parts.iter().all(|name| !jobs.join(name).exists()));
    assert!(others.iter().all(|name| jobs.join(name).exists()));
}

#[test]
fn a_record_that_was_killed_goes_on_behind_its_last_whole_line() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), &header("x", 1000)).unwrap();
    writer.append(&note("one")).unwrap();
    let dir = writer.dir().to_owned();
    drop(writer);
    append_raw(&dir, br#"{"at_ms":5,"event":"no"#);
    let mut writer = Writer::reopen(&dir).unwrap();
    assert_eq!(Record::open(&dir).unwrap().status(), None);
    writer.append(&note("two")).unwrap();
    assert!(matches!(
        Writer::reopen(&dir),
        Err(RecordError::Busy { .. })
    ));
    writer.finish(RunStatus::Complete).unwrap();
    let record = Record::open(&dir).unwrap();
    let events: Vec<&Event> = record.entries.iter().map(|entry| &entry.event).collect();
    let [
        one,
        Event::Resumed {
            after: None,
            gap_ms,
        },
        two,
        Event::Ended { .. },
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(
        (one, two, record.torn_bytes),
        (&note("one"), &note("two"), 0)
    );
    assert!(*gap_ms < 60_000);
}

#[test]
fn a_record_that_has_ended_says_how_when_it_goes_on() {
    let runs = tempfile::tempdir().unwrap();
    // A last line longer than what is looked at first.
    let long = note(&"x".repeat(200_000));
    for (events, after) in [
        (vec![], Some(RunStatus::Interrupted)),
        (vec![long.clone()], Some(RunStatus::Failed)),
        (vec![long], None),
    ] {
        let mut writer = Writer::create(runs.path(), &header("x", 1000)).unwrap();
        for event in &events {
            writer.append(event).unwrap();
        }
        let dir = writer.dir().to_owned();
        match after {
            Some(status) => drop(writer.finish(status).unwrap()),
            None => drop(writer),
        }
        drop(Writer::reopen(&dir).unwrap());
        let record = Record::open(&dir).unwrap();
        let Some(Event::Resumed { after: told, .. }) = record.entries.last().map(|e| &e.event)
        else {
            panic!("{record:?}")
        };
        assert_eq!(*told, after);
        assert_eq!(record.status(), Some(RunStatus::Interrupted));
    }
    assert!(Writer::reopen(runs.path()).is_err());
}

#[test]
fn a_log_can_be_followed_while_it_grows() {
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), &header("x", 1000)).unwrap();
    let mut entries = Entries::open(writer.dir()).unwrap();
    let next = |entries: &mut Entries| entries.next().map(|entry| entry.unwrap().event);
    assert_eq!(next(&mut entries), None);
    writer.append(&note("one")).unwrap();
    let dir = writer.dir().to_owned();
    entries.look_again().unwrap();
    assert_eq!(next(&mut entries), Some(note("one")));
    assert_eq!((next(&mut entries), entries.status), (None, None));
    // A line in two parts.
    append_raw(&dir, br#"{"at_ms":5,"#);
    entries.look_again().unwrap();
    assert_eq!((next(&mut entries), entries.torn_bytes), (None, 11));
    append_raw(&dir, format!("\"event\":\"sample\",{SAMPLE}\n").as_bytes());
    entries.look_again().unwrap();
    assert_eq!(next(&mut entries), Some(sample(7)));
    assert_eq!(next(&mut entries), None);
    drop(writer);
    let writer = Writer::reopen(&dir).unwrap();
    writer.finish(RunStatus::Failed).unwrap();
    entries.look_again().unwrap();
    assert!(matches!(next(&mut entries), Some(Event::Resumed { .. })));
    assert!(matches!(next(&mut entries), Some(Event::Ended { .. })));
    assert_eq!(entries.status, Some(RunStatus::Failed));
}
