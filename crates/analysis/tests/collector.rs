//! The collector over events as runs, kills and resumed runs write them.

use std::collections::BTreeMap;

use fathom_analysis::{PointResult, Sweep, SweepCollector, SweepOutcome, engines_of};
use fathom_model::result::LatencyTarget;
use fathom_model::{
    DirectionResult, Entry, Event, Failure, FailureKind, Histogram, JobResult, Latency, Point,
    ReasonKind, Results, RunStatus, SkipCause, StageEnd, with_step_ends,
};

fn point(depth: u64, repetition: u32) -> Point {
    Point {
        id: format!("a/{depth}"),
        series: "a".into(),
        x: "iodepth".into(),
        settings: BTreeMap::from([("iodepth".into(), depth.to_string())]),
        repetition,
    }
}

fn step(depth: u64, repetition: u32) -> Event {
    let point = point(depth, repetition);
    Event::Step {
        step: 1,
        of: 9,
        name: point.id.clone(),
        point: Some(Box::new(point)),
    }
}

fn skipped(depth: u64, repetition: u32, reason: &str) -> Event {
    Event::Skipped {
        point: Box::new(point(depth, repetition)),
        reason: reason.into(),
        cause: SkipCause::NotNeeded,
    }
}

fn job(name: &str, ios: u64, clat_ns: u64) -> JobResult {
    let mut histogram = Histogram::new();
    histogram.add(clat_ns, ios);
    JobResult {
        name: name.into(),
        read: Some(DirectionResult {
            total_ios: ios,
            io_bytes: ios * 4096,
            bw_bytes: ios as f64 * 4096.0,
            iops: ios as f64,
            runtime_ms: 1000,
            clat: Some(Latency {
                n: Some(ios),
                mean_ns: clat_ns as f64,
                percentiles_ns: vec![(99.0, clat_ns)],
                histogram: Some(histogram),
                ..Latency::default()
            }),
            ..DirectionResult::default()
        }),
        write: Some(DirectionResult::default()),
        ..JobResult::default()
    }
}

fn finished(jobs: Vec<JobResult>) -> Event {
    let results = Results {
        jobs,
        ..Results::default()
    };
    Event::Finished {
        results: Box::new(results),
    }
}

fn good(ios: u64) -> Event {
    finished(vec![job("j", ios, 100)])
}

fn failure(message: &str) -> Event {
    Event::Failure(Failure::new(FailureKind::Io, message))
}

const KILLED: Event = Event::Resumed {
    after: None,
    gap_ms: 1,
};

fn ended(status: RunStatus) -> Event {
    Event::Ended { status }
}

fn sweep(events: impl IntoIterator<Item = Event>) -> Sweep {
    let mut collector = SweepCollector::new();
    for event in with_step_ends(events) {
        collector.take(&Entry { at_ms: 0, event });
    }
    collector.finish()
}

/// The points of the one curve there is.
fn points(events: impl IntoIterator<Item = Event>) -> Vec<PointResult> {
    let mut sweep = sweep(events);
    assert_eq!(sweep.series.len(), 1);
    sweep.series.remove(0).points
}

fn outcomes(points: &[PointResult]) -> Vec<(u64, SweepOutcome)> {
    let of = |p: &PointResult| (p.point.x_value().unwrap_or(0), p.outcome.clone());
    points.iter().map(of).collect()
}

#[test]
fn points_are_sorted_by_x_and_series_by_their_first_point() {
    let mut other = point(1, 1);
    (other.id, other.series) = ("b/1".into(), "b".into());
    let other = Event::Step {
        step: 1,
        of: 9,
        name: "b/1".into(),
        point: Some(Box::new(other)),
    };
    let end = ended(RunStatus::Complete);
    let sweep = sweep([
        step(16, 1),
        good(1),
        other,
        good(2),
        step(2, 1),
        good(3),
        end,
    ]);
    let names: Vec<&str> = sweep.series.iter().map(|s| s.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(sweep.series[0].x, "iodepth");
    let found = outcomes(&sweep.series[0].points);
    assert_eq!(found, [(2, SweepOutcome::Done), (16, SweepOutcome::Done)]);
    assert_eq!(sweep.series[0].points[0].write, None, "it wrote nothing");
}

#[test]
fn figures_alone_do_not_end_a_measurement() {
    // The failure stands behind the figures, where a kill can cut it off.
    let cut = points([step(1, 1), good(1)]);
    assert_eq!(outcomes(&cut), [(1, SweepOutcome::Unfinished)]);
    assert_eq!(cut[0].read, None);
    // A stopped job gives figures too.
    let stopped = points([step(1, 1), good(1), ended(RunStatus::Interrupted)]);
    assert_eq!(outcomes(&stopped), [(1, SweepOutcome::Unfinished)]);
    let killed = points([step(1, 1), good(1), KILLED, step(2, 1), good(1), step(3, 1)]);
    let expected = [
        (1, SweepOutcome::Unfinished),
        (2, SweepOutcome::Done),
        (3, SweepOutcome::Unfinished),
    ];
    assert_eq!(outcomes(&killed), expected);
}

#[test]
fn a_step_that_was_run_again_counts_once() {
    let end = || ended(RunStatus::Complete);
    let killed = points([step(1, 1), KILLED, step(1, 1), good(7), end()]);
    assert_eq!(outcomes(&killed), [(1, SweepOutcome::Done)]);
    let read = killed[0].read.as_ref().unwrap();
    assert_eq!((read.iops.mean, read.iops.n), (7.0, 1));

    let failed_first = [step(1, 1), failure("no"), step(1, 1), good(7), end()];
    assert_eq!(outcomes(&points(failed_first)), [(1, SweepOutcome::Done)]);
    let good_first = points([step(1, 1), good(7), step(1, 1), failure("no"), end()]);
    let failed = SweepOutcome::Failed(vec!["no".into()]);
    assert_eq!(outcomes(&good_first), [(1, failed)]);
    assert_eq!(good_first[0].read, None);
    // What did not come to its end takes nothing away.
    let cut_again = points([step(1, 1), good(7), step(1, 1), good(9)]);
    assert_eq!(cut_again[0].read.as_ref().unwrap().iops.mean, 7.0);
}

#[test]
fn repetitions_become_an_estimate_and_merged_percentiles() {
    let measured = |r, ios, ns| [step(1, r), finished(vec![job("j", ios, ns)])];
    let events = [
        measured(1, 100, 10),
        measured(2, 200, 20),
        measured(3, 300, 30),
    ];
    let end = ended(RunStatus::Complete);
    let all = points(events.into_iter().flatten().chain([end]));
    assert_eq!(all[0].point.repetition, 1);
    let read = all[0].read.as_ref().unwrap();
    assert_eq!((read.iops.mean, read.iops.n), (200.0, 3));
    assert!(read.iops.half_width_95.unwrap() > 200.0);
    let clat = read.clat.as_ref().unwrap();
    assert_eq!((clat.total(), clat.percentile_ns(50.0)), (600, Some(20)));
    assert!(read.percentiles_ns.is_empty());
}

#[test]
fn one_failed_repetition_fails_the_point_and_one_left_out_does_not() {
    let end = || ended(RunStatus::Failed);
    let failed = points([step(1, 1), good(5), step(1, 2), failure("gone"), end()]);
    let reasons = vec!["repetition 2: gone".to_owned()];
    assert_eq!(outcomes(&failed), [(1, SweepOutcome::Failed(reasons))]);
    let left_out = points([step(1, 1), good(5), skipped(1, 2, "guard"), end()]);
    assert_eq!(outcomes(&left_out), [(1, SweepOutcome::Done)]);
    assert_eq!(left_out[0].doubts, ["repetition 2: left out: guard"]);
    let skipped = points([skipped(1, 1, "guard"), skipped(1, 2, "guard"), end()]);
    assert_eq!(
        outcomes(&skipped),
        [(1, SweepOutcome::Skipped("guard".into()))]
    );
}

#[test]
fn several_jobs_are_one_figure() {
    let mut slow = job("b", 100, 400);
    slow.read.as_mut().unwrap().runtime_ms = 2000;
    let events = [
        step(1, 1),
        finished(vec![job("a", 300, 200), slow]),
        ended(RunStatus::Complete),
    ];
    let read = points(events)[0].read.clone().unwrap();
    // 400 I/Os in the 2 s of the longest job.
    assert_eq!(read.iops.mean, 200.0);
    assert_eq!(read.clat_mean_ns.unwrap().mean, 250.0);
    assert_eq!(read.clat.unwrap().total(), 400);
}

#[test]
fn percentiles_of_a_single_measurement_stay_as_reported() {
    let mut plain = job("j", 10, 100);
    plain
        .read
        .as_mut()
        .unwrap()
        .clat
        .as_mut()
        .unwrap()
        .histogram = None;
    let again = |r| [step(1, r), finished(vec![plain.clone()])];
    let end = || [ended(RunStatus::Complete)];
    let once = points(again(1).into_iter().chain(end()));
    let read = once[0].read.as_ref().unwrap();
    assert_eq!(read.percentiles_ns, [(99.0, 100)]);
    assert_eq!(read.clat, None);
    // Of several they would have to be averaged, which is wrong.
    let twice = points(again(1).into_iter().chain(again(2)).chain(end()));
    assert!(twice[0].read.as_ref().unwrap().percentiles_ns.is_empty());
}

#[test]
fn errors_and_nothing_moved_are_failures_also_when_nobody_said_so() {
    let end = || ended(RunStatus::Complete);
    let mut broken = job("j", 10, 100);
    broken.error = 5;
    let events = [step(1, 1), finished(vec![broken]), end()];
    let reasons = vec!["j: error 5".to_owned()];
    assert_eq!(
        outcomes(&points(events)),
        [(1, SweepOutcome::Failed(reasons))]
    );
    let idle = [step(1, 1), finished(vec![JobResult::default()]), end()];
    let reasons = vec!["the job moved no data".to_owned()];
    assert_eq!(
        outcomes(&points(idle)),
        [(1, SweepOutcome::Failed(reasons))]
    );
}

/// Of jobs that go past errors (continue_on_error) the engine tells which failed.
#[test]
fn errors_that_a_job_went_past_leave_its_point_done() {
    let mut past = job("j", 100, 100);
    (past.error, past.total_errors) = (5, Some(3));
    past.latency_target = Some(LatencyTarget {
        depth: 7,
        target_ns: 1000,
        percentile: 99.0,
        window_us: 10,
    });
    let points_of = |more: Vec<Event>| {
        let head = [step(1, 1), finished(vec![past.clone()])];
        points(
            head.into_iter()
                .chain(more)
                .chain([ended(RunStatus::Complete)]),
        )
    };
    let done = points_of(Vec::new());
    assert_eq!(done[0].outcome, SweepOutcome::Done);
    assert_eq!(done[0].latency_targets[0].depth, 7);
    let failed = points_of(vec![failure("it ended the job")]);
    assert!(matches!(failed[0].outcome, SweepOutcome::Failed(_)));
}

#[test]
fn doubts_of_the_figures_are_kept() {
    let mut doubtful = job("j", 10, 100);
    let read = doubtful.read.as_mut().unwrap();
    read.told = vec![ReasonKind::RoundedCounts, ReasonKind::FromSamples];
    let events = [
        step(1, 1),
        finished(vec![doubtful]),
        ended(RunStatus::Complete),
    ];
    assert_eq!(
        points(events)[0].doubts,
        [ReasonKind::FromSamples.meaning()]
    );
}

#[test]
fn points_of_a_device_that_did_not_become_steady_are_marked() {
    let settled = |end: StageEnd| Event::StageEnded {
        id: "settle-seq".into(),
        end,
    };
    let reason = "iops not steady".to_owned();
    let all = points([
        settled(StageEnd::NotAttained { reason }),
        step(1, 1),
        good(5),
        settled(StageEnd::Done),
        step(2, 1),
        good(5),
        ended(RunStatus::Complete),
    ]);
    assert!(
        all[0].doubts[0].contains("had not become steady"),
        "{all:?}"
    );
    assert!(all[1].doubts.is_empty(), "{all:?}");
}

#[test]
fn steps_that_are_no_points_are_passed_over() {
    let plain = Event::Step {
        step: 1,
        of: 1,
        name: "job".into(),
        point: None,
    };
    let events = [plain, good(1), failure("x"), ended(RunStatus::Failed)];
    assert_eq!(sweep(events), Sweep::default());
}

fn started(version: &str) -> Event {
    Event::EngineStarted {
        engine: "fio".into(),
        version: Some(version.into()),
        argv: Vec::new(),
        pid: None,
    }
}

#[test]
fn a_series_names_the_engines_of_its_own_points_and_tells_that_they_differ() {
    let other = |depth| {
        let Event::Step {
            step,
            of,
            name,
            point,
        } = step(depth, 1)
        else {
            unreachable!()
        };
        let mut point = point.unwrap();
        point.series = "b".into();
        point.id = format!("b/{depth}");
        Event::Step {
            step,
            of,
            name,
            point: Some(point),
        }
    };
    let sweep = sweep(vec![
        step(1, 1),
        started("fio-3.33"),
        good(10),
        other(1),
        started("fio-3.38"),
        good(10),
        step(2, 1),
        started("fio-3.33"),
        good(20),
        other(2),
        started("native-0.1.0"),
        good(20),
        ended(RunStatus::Complete),
    ]);
    let [same, mixed] = &sweep.series[..] else {
        panic!("{sweep:?}")
    };
    assert_eq!(engines_of(&same.points), ["fio-3.33"]);
    assert!(same.points.iter().all(|point| point.doubts.is_empty()));
    assert_eq!(engines_of(&mixed.points), ["fio-3.38", "native-0.1.0"]);
    let told = "points of the series were measured by different engines: fio-3.38, native-0.1.0";
    assert!(
        mixed.points.iter().all(|point| point.doubts == [told]),
        "{mixed:?}"
    );
}
