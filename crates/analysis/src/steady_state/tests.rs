use fathom_model::{Direction, Event, Histogram, Point, Results, RunStatus, Sample};
use fathom_model::{DirectionResult, JobResult, with_step_ends};
use proptest::prelude::*;

use super::*;

fn values(figures: impl IntoIterator<Item = f64>) -> Vec<SeriesValue> {
    let value = |(second, figure): (u64, f64)| SeriesValue {
        begin_ms: second * 1000,
        end_ms: second * 1000 + 1000,
        value: Some(figure).filter(|figure| figure.is_finite()),
    };
    (0..).zip(figures).map(value).collect()
}

fn judged(rule: WindowRule, figures: impl IntoIterator<Item = f64>) -> SteadyVerdict {
    judge(rule, values(figures))
}

fn fio(mean: impl Into<Option<f64>>, slope: impl Into<Option<f64>>, window: usize) -> WindowRule {
    WindowRule::Fio {
        mean_limit_percent: mean.into(),
        slope_limit_percent: slope.into(),
        window,
    }
}

fn snia(window: usize) -> WindowRule {
    WindowRule::Snia {
        data_limit_percent: SNIA_DATA_PERCENT,
        slope_limit_percent: SNIA_SLOPE_PERCENT,
        window,
        max_rounds: usize::MAX,
    }
}

fn line(mean: f64, slope: f64, n: usize) -> impl Iterator<Item = f64> {
    (0..n).map(move |i| mean + slope * (i as f64 - (n as f64 - 1.0) / 2.0))
}

/// Real output of fio: 0.23 % and attained. Over its window the fit changes by
/// 13.7 % of the mean.
#[test]
fn the_worked_example_is_steady_by_fios_rule_and_not_by_snias() {
    let verdict = judged(fio(None, 10.0, 60), line(823.0, 1.906, 60));
    assert!(verdict.attained && verdict.window.unwrap().last == 60);
    let [term] = verdict.terms[..] else { panic!() };
    assert!((term.measured - 1.906).abs() < 1e-9 && term.strict);
    assert_eq!(format!("{:.2}", term.measured_percent.unwrap()), "0.23");

    let verdict = judged(snia(60), line(823.0, 1.906, 60));
    assert_eq!(verdict.outcome, SteadyOutcome::NotAttained);
    let window = verdict.window.unwrap();
    assert!((window.mean - 823.0).abs() < 1e-9);
    assert!((window.slope_excursion - 112.454).abs() < 1e-9);
    assert!((window.intercept - (823.0 - 1.906 * 29.5)).abs() < 1e-9);
    assert!((window.correlation.unwrap() - 1.0).abs() < 1e-12);
    let [data, slope] = verdict.terms[..] else {
        panic!()
    };
    assert!(data.holds && !slope.holds && !slope.strict);
    assert_eq!(format!("{:.1}", slope.measured_percent.unwrap()), "13.7");
    assert_eq!(
        verdict.rule_name,
        "SNIA's criterion (interpretation), other limits"
    );
}

#[test]
fn a_limit_that_is_reached_is_kept_by_snia_and_missed_by_fio() {
    // Range 20 of an average of 100; the fit is level.
    let flat = [90.0, 110.0, 100.0, 110.0, 90.0];
    assert!(judged(WindowRule::SNIA, flat).attained);
    assert!(!judged(WindowRule::SNIA, [89.0, 110.0, 101.0, 110.0, 90.0]).attained);
    // Slope 2.5 over 4 steps: 10 of an average of 100, exactly; then one more.
    assert!(judged(WindowRule::SNIA, line(100.0, 2.5, 5)).attained);
    assert!(!judged(WindowRule::SNIA, line(100.0, 2.5001, 5)).attained);
    assert!(!judged(fio(10.0, None, 5), flat).attained);
    assert!(judged(fio(10.001, None, 5), flat).attained);
    assert!(!judged(fio(None, 2.5, 5), line(100.0, 2.5, 5)).attained);
    assert!(judged(fio(None, 2.5, 5), line(100.0, -2.4999, 5)).attained);
    // Without limits there is nothing to attain.
    assert!(!judged(fio(None, None, 5), flat).attained);
}

#[test]
fn a_drive_that_settles_is_steady_when_it_has() {
    let settle = |i: usize| 1000.0 + 3000.0 * (-(i as f64) / 3.0).exp();
    let verdict = judged(WindowRule::SNIA, (0..25).map(settle));
    let window = verdict.window.unwrap();
    assert!(verdict.attained);
    assert_eq!((window.n, window.last - window.first), (5, 4));
    // The window before it was not.
    let before = (0..window.last - 1).map(settle);
    assert_eq!(
        judged(WindowRule::SNIA, before).outcome,
        SteadyOutcome::NotAttained
    );
}

#[test]
fn one_that_oscillates_never_is_and_the_closest_window_is_told() {
    let swing = |i: usize| 1000.0 + 200.0 * f64::from(if i.is_multiple_of(2) { 1 } else { -1 });
    let verdict = judged(WindowRule::SNIA, (0..25).map(swing));
    assert_eq!(verdict.outcome, SteadyOutcome::NotAttained);
    assert!(!verdict.terms[0].holds && verdict.terms[1].holds);
    // The last window has 1040 as its mean, the one before 960: closest is the first.
    assert_eq!(verdict.window.unwrap().last, 25);
    assert_eq!(verdict.closest.unwrap().last, 5);
}

#[test]
fn one_that_gets_faster_for_ever_is_never_steady() {
    let faster = (0..200).map(|i| 1000.0 * 1.05f64.powi(i));
    let verdict = judged(snia(5), faster);
    assert_eq!(verdict.outcome, SteadyOutcome::NotAttained);
    assert!(!verdict.terms[1].holds);
}

#[test]
fn what_is_steady_after_the_last_round_is_too_late() {
    let late = |n: usize| {
        (0..n).map(|i| {
            if i < 22 {
                2000.0 - 50.0 * i as f64
            } else {
                900.0
            }
        })
    };
    let mut judge = SteadyJudge::new(WindowRule::SNIA);
    let over: Vec<bool> = values(late(25))
        .into_iter()
        .map(|value| {
            judge.take(value);
            judge.is_over()
        })
        .collect();
    assert!(over[24] && !over[23]);
    assert_eq!(judge.verdict().outcome, SteadyOutcome::NotAttained);
    let verdict = judged(WindowRule::SNIA, late(30));
    assert_eq!(verdict.outcome, SteadyOutcome::TooLate);
    assert!(!verdict.attained && verdict.window.unwrap().last > 25);
}

/// fio says "attained" of it, with a criterion of -nan%.
#[test]
fn a_window_without_io_is_never_steady() {
    for rule in [fio(20.0, 10.0, 5), WindowRule::SNIA] {
        let verdict = judged(rule, [0.0; 10]);
        assert_eq!(verdict.outcome, SteadyOutcome::NotAttained);
        assert_eq!(verdict.terms[0].measured_percent, None);
        // Latencies: there is no value at all.
        let verdict = judged(rule, [f64::NAN; 10]);
        assert_eq!(verdict.outcome, SteadyOutcome::NoValues);
        assert_eq!((verdict.missing, verdict.window), (10, None));
        let verdict = judged(rule, [1.0, 1.0, f64::NAN, 1.0, 1.0, 1.0, 1.0, 1.0]);
        assert_eq!(verdict.window.unwrap().first, 4);
        assert_eq!(judged(rule, [5.0; 4]).outcome, SteadyOutcome::TooShort);
    }
}

#[test]
fn metrics_are_named_as_people_do() {
    for name in ["iops", "bw", "lat", "p99", "p99.9", "p100"] {
        assert_eq!(name.parse::<Metric>().unwrap().to_string(), name);
    }
    for wrong in ["", "p", "p101", "pNaN", "p-1", "slat"] {
        assert!(wrong.parse::<Metric>().is_err(), "{wrong}");
    }
}

/// What the definitions say, from the values of the window alone.
fn plain(rule: WindowRule, values: &[f64]) -> (f64, f64, f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let middle = (n - 1.0) / 2.0;
    let deviation = values.iter().map(|v| (v - mean).abs()).fold(0.0, f64::max);
    let (mut above, mut below) = (0.0, 0.0);
    for (place, value) in values.iter().enumerate() {
        above += (place as f64 - middle) * (value - mean);
        below += (place as f64 - middle).powi(2);
    }
    let slope = above / below;
    let max = values.iter().copied().fold(f64::MIN, f64::max);
    let min = values.iter().copied().fold(f64::MAX, f64::min);
    match rule {
        WindowRule::Fio { .. } => (
            mean,
            slope,
            100.0 * deviation / mean,
            100.0 * slope.abs() / mean,
        ),
        WindowRule::Snia { .. } => {
            let excursion = slope.abs() * (n - 1.0);
            (
                mean,
                slope,
                100.0 * (max - min) / mean,
                100.0 * excursion / mean,
            )
        }
    }
}

proptest! {
    #[test]
    fn sliding_sums_say_what_the_definitions_say(
        figures in prop::collection::vec(0.001f64..1e12, 2..200),
        window in 2usize..40,
        by_fio in any::<bool>(),
        limits in (1.0f64..200.0, 1.0f64..100.0),
    ) {
        let rule = if by_fio { fio(limits.0, limits.1, window) } else {
            WindowRule::Snia {
                data_limit_percent: limits.0,
                slope_limit_percent: limits.1,
                window,
                max_rounds: usize::MAX,
            }
        };
        let mut judge = SteadyJudge::new(rule);
        for (place, value) in values(figures.iter().copied()).into_iter().enumerate() {
            let attained = judge.take(value);
            if place + 1 < window {
                prop_assert!(!attained);
                continue;
            }
            let (mean, slope, first, second) = plain(rule, &figures[place + 1 - window..=place]);
            let found = judge.verdict();
            let at = found.window.unwrap();
            prop_assert_eq!(at.last, place + 1);
            prop_assert!((at.mean / mean - 1.0).abs() < 1e-12);
            prop_assert!((at.slope - slope).abs() <= 1e-9 * mean, "{} {}", at.slope, slope);
            let measured = found.terms.iter().map(|t| t.measured_percent.unwrap());
            for (ours, plain) in measured.zip([first, second]) {
                prop_assert!((ours - plain).abs() <= 1e-9 * plain.max(1.0), "{} {}", ours, plain);
            }
            let close = |a: f64, b: f64| (a - b).abs() < 1e-7 * b;
            if !close(first, limits.0) && !close(second, limits.1) {
                prop_assert_eq!(attained, first < limits.0 && second < limits.1);
            }
            if attained {
                break;
            }
        }
    }
}

#[test]
fn a_day_of_samples_leaves_no_error_behind() {
    // Huge at first, tiny at the end: plain sums would keep what is gone.
    let day = (0..86_400).map(|i| if i < 40_000 { 1e15 + f64::from(i) } else { 3.0 });
    let steep = fio(1e-13, None, 3600);
    let verdict = judged(steep, day);
    let window = verdict.window.unwrap();
    assert!(verdict.attained);
    assert_eq!(
        (window.first, window.mean, window.slope),
        (40_001, 3.0, 0.0)
    );
    assert_eq!(window.correlation, None);
}

fn sample(t_ms: u64, span_ms: u64, job: u32, dir: Direction, ios: u64) -> Event {
    let mut clat = Histogram::new();
    clat.add(100, ios);
    Event::Sample(Sample {
        t_ms,
        span_ms,
        job,
        dir,
        ios,
        bytes: ios * 4096,
        clat: (ios > 0).then_some(clat),
        lat: None,
    })
}

fn interval(t_ms: u64) -> Event {
    Event::Interval {
        t_ms,
        remaining_ms: None,
    }
}

fn gather(ask: Ask, events: &[Event]) -> Vec<RoundSeries> {
    let mut rounds = Rounds::new(ask);
    with_step_ends(events.iter().cloned()).for_each(|event| rounds.take(&event));
    rounds.finish()
}

fn figures(series: &RoundSeries, place: usize) -> Vec<Option<f64>> {
    series.values(place).map(|value| value.value).collect()
}

#[test]
fn reads_and_writes_of_all_jobs_are_summed() {
    let names = vec!["a".to_owned(), "b".to_owned()];
    let mut events = vec![Event::Jobs {
        names,
        hosts: Vec::new(),
    }];
    for second in 1..=4 {
        for (job, dir) in [
            (0, Direction::Read),
            (0, Direction::Write),
            (1, Direction::Write),
        ] {
            events.push(sample(second * 1000, 1000, job, dir, 100));
        }
        events.push(interval(second * 1000));
    }
    let ask = Ask::of([Metric::Iops, Metric::Bandwidth, Metric::Percentile(99.0)]);
    let all = gather(ask.clone(), &events);
    assert_eq!(figures(&all[0], 0), [Some(300.0); 4]);
    assert_eq!(figures(&all[0], 1), [Some(300.0 * 4096.0); 4]);
    assert_eq!(figures(&all[0], 2), [Some(100.0); 4]);
    let job = Some("b".to_owned());
    let b = gather(Ask { job, ..ask.clone() }, &events);
    assert_eq!(figures(&b[0], 0), [Some(100.0); 4]);
    let dir = Some(Direction::Read);
    let span = RoundSpan::Time(2000);
    let reads = gather(Ask { dir, span, ..ask }, &events);
    assert_eq!(figures(&reads[0], 0), [Some(100.0); 2]);
    assert_eq!(reads[0].round_ms(), 2000);
}

#[test]
fn a_stall_is_a_value_and_a_ramp_or_a_rest_is_none() {
    let read = |t_ms, span_ms, ios| sample(t_ms, span_ms, 0, Direction::Read, ios);
    let events = [
        Event::Jobs {
            names: vec!["a".to_owned()],
            hosts: Vec::new(),
        },
        interval(1000), // ramp
        read(2000, 1000, 50),
        interval(2000),
        interval(3000), // no sample: nothing came back
        read(4000, 1000, 50),
        interval(4000),
        read(4020, 20, 9),
        interval(4020),
    ];
    let [series] = &gather(Ask::of([Metric::Iops, Metric::Latency]), &events)[..] else {
        panic!()
    };
    assert_eq!(figures(series, 0), [Some(50.0), Some(0.0), Some(50.0)]);
    assert_eq!(figures(series, 1), [Some(100.0), None, Some(100.0)]);
    assert_eq!((series.rounds[0].begin_ms, series.left_over_ms), (1000, 20));
}

#[test]
fn a_job_that_is_over_does_not_stall() {
    let mut events = vec![Event::Jobs {
        names: vec!["a".to_owned(), "b".to_owned()],
        hosts: Vec::new(),
    }];
    for second in 1..=6 {
        let job = u32::from(second > 3);
        events.push(sample(second * 1000, 1000, job, Direction::Read, 10));
        events.push(interval(second * 1000));
    }
    let mut ask = Ask::of([Metric::Iops]);
    for name in ["a", "b"] {
        ask.job = Some(name.to_owned());
        let series = gather(ask.clone(), &events);
        assert_eq!(figures(&series[0], 0), [Some(10.0); 3], "{name}");
    }
}

fn step(step: u32, repetition: u32) -> Event {
    Event::Step {
        step,
        of: 3,
        name: "s/p".to_owned(),
        point: Some(Box::new(Point {
            id: "s/p".to_owned(),
            series: "s".to_owned(),
            x: "iodepth".to_owned(),
            settings: Default::default(),
            repetition,
        })),
    }
}

fn finished(iops: f64) -> Event {
    let result = DirectionResult {
        iops,
        total_ios: 10,
        ..DirectionResult::default()
    };
    let job = JobResult {
        write: Some(result),
        ..JobResult::default()
    };
    Event::Finished {
        results: Box::new(Results {
            jobs: vec![job],
            ..Results::default()
        }),
    }
}

#[test]
fn repetitions_of_a_point_are_rounds_and_what_was_stopped_is_none() {
    let status = RunStatus::Interrupted;
    let events = [
        step(1, 1),
        finished(100.0),
        step(2, 2),
        finished(7.0),
        Event::Ended { status },
        Event::Resumed {
            after: Some(status),
            gap_ms: 5,
        },
        step(2, 2),
        finished(200.0),
        step(3, 3),
        finished(300.0),
        Event::Ended {
            status: RunStatus::Complete,
        },
    ];
    let ask = Ask {
        span: RoundSpan::Point,
        ..Ask::of([Metric::Iops, Metric::Latency])
    };
    let [series] = &gather(ask, &events)[..] else {
        panic!()
    };
    assert_eq!(series.name, "s/p");
    let expected = [100.0, 200.0, 300.0].map(Some);
    assert_eq!(figures(series, 0), expected);
    assert_eq!(figures(series, 1), [None; 3]);
}

#[test]
fn a_run_is_watched_live_for_several_metrics() {
    let mut watch = SteadyWatch::new(WindowRule::SNIA, Ask::of([Metric::Iops, Metric::Latency]));
    let mut attained_at = None;
    for second in 1..=20u64 {
        let ios = 1000 / second.min(4);
        watch.take(&sample(second * 1000, 1000, 0, Direction::Write, ios));
        if watch.take(&interval(second * 1000)) && attained_at.is_none() {
            attained_at = Some(second);
        }
    }
    // The latency is steady at once, the IOPS five rounds after the fourth.
    assert_eq!(attained_at, Some(8));
    let verdicts: Vec<_> = watch.verdicts().collect();
    assert_eq!(verdicts[1].1.window.unwrap().last, 5);
    assert!(!watch.is_over() && verdicts.iter().all(|(_, verdict)| verdict.attained));
    watch.take(&step(2, 1));
    assert!(!watch.take(&interval(21_000)));
}
