use fathom_analysis::snia::{
    Findings, PartEnding as PointOutcome, RoundLimits, SniaTest, TestPart, TrackedVariable,
};
use fathom_flow::Ending;
use fathom_model::RunStatus;
use fathom_suites::snia::SniaChoices;

use super::support::{Place, Ran, script, setup, wanted};

fn iops_on(device: &str) -> (Ran, Findings) {
    let ran = Place::new(device).run(&script(setup(SniaTest::Iops, &wanted())));
    let findings = ran.findings();
    (ran, findings)
}

fn window(findings: &Findings) -> Option<(usize, usize)> {
    findings.parts[0].window
}

/// The relative range and change of the fit of five values: written down once
/// more, by the definitions.
fn excursions(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let (least, most) = values
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(a, b), &v| (a.min(v), b.max(v)));
    let middle = (n - 1.0) / 2.0;
    let places = (0..values.len()).map(|i| i as f64 - middle);
    let up: f64 = places.clone().zip(values).map(|(x, y)| x * y).sum();
    let slope = up / places.map(|x| x * x).sum::<f64>();
    ((most - least) / mean, slope.abs() * (n - 1.0) / mean)
}

fn first_steady(values: &[f64]) -> Option<usize> {
    let steady = |window: &[f64]| {
        let (data, slope) = excursions(window);
        data <= 0.2 && slope <= 0.1
    };
    values.windows(5).position(steady).map(|first| first + 5)
}

#[test]
fn a_level_device_is_steady_at_the_fifth_round() {
    let (ran, findings) = iops_on("");
    assert_eq!(ran.finish.ending, Some(Ending::Complete));
    assert_eq!(window(&findings), Some((1, 5)));
    let stages = ran.stages();
    assert_eq!(stages[..3], ["iops/purge", "iops/fill-1", "iops/fill-2"]);
    assert_eq!(stages.len(), 8);
    assert_eq!(stages[7], "iops/round-05");
    assert!(findings.parts[0].cells.iter().all(|cell| cell.n == 5));
}

/// The rate falls to a third; the window that holds first follows from the
/// values alone, whatever the rule's code says.
#[test]
fn a_device_that_settles_is_steady_when_its_values_say_so() {
    let (_, findings) = iops_on("[settle]\nfresh_percent = 300\nseconds = 200\n");
    let part = &findings.parts[0];
    let at = part.tracked.iter().map(|tracked| {
        let values: Vec<f64> = tracked.values.iter().map(|value| value.unwrap()).collect();
        first_steady(&values)
    });
    let at = at.max().unwrap();
    assert!(at > Some(5), "it was not level at the begin: {at:?}");
    assert_eq!(part.window.map(|(_, last)| last), at);
    assert!(findings.attained);
}

/// Percent an hour by which a rate has to grow so that the fit changes by so much
/// over a window of five rounds, whose begins lie 4 × 90 s apart.
fn drift(excursion: f64) -> String {
    let hours = 4.0 * 90.0 / 3600.0;
    let percent = 100.0 * ((excursion / hours).exp() - 1.0);
    format!("drift_percent_per_hour = {percent}\n")
}

#[test]
fn a_drift_just_within_the_limit_is_steady_and_one_just_beyond_never() {
    let (_, within) = iops_on(&drift(0.0995));
    assert_eq!(window(&within), Some((1, 5)));
    let (ran, beyond) = iops_on(&drift(0.1005));
    assert_eq!(beyond.parts[0].ending, PointOutcome::NotAttained);
    let Some(Ending::NotAttained(numbers)) = &ran.finish.ending else {
        panic!("{:?}", ran.finish.ending);
    };
    assert!(numbers.contains("not attained in 25 rounds"), "{numbers}");
    assert!(numbers.contains("slope excursion 10.0"), "{numbers}");
    // A result, no error.
    assert_eq!(ran.finish.status, RunStatus::Complete);
    assert!(!beyond.attained);
}

#[test]
fn a_device_that_gets_better_for_ever_is_given_up_after_25_rounds() {
    let (ran, findings) = iops_on("drift_percent_per_hour = 900\n");
    assert_eq!(window(&findings), Some((21, 25)));
    assert!(!findings.attained);
    let found = findings.parts[0].tracked[0].determination.as_ref().unwrap();
    assert!(!found.holds && found.window.correlation.unwrap() > 0.98);
    assert_eq!(ran.stages().len(), 3 + 25);
}

/// Two rounds are one turn: what is up in one round is down in the next.
fn swing(percent: f64) -> String {
    format!("[swing]\npercent = {percent}\nseconds = 180\n")
}

#[test]
fn a_swing_beyond_the_limit_is_never_steady_and_a_small_one_is() {
    let (_, findings) = iops_on(&swing(60.0));
    let found = &findings.parts[0];
    assert_eq!(found.ending, PointOutcome::NotAttained);
    let data = |part: &TestPart| {
        let of = part.tracked.iter().filter_map(|t| t.determination.as_ref());
        of.filter_map(|d| d.window.range_percent)
            .fold(0.0, f64::max)
    };
    assert!(data(found) > 20.0);
    let (_, findings) = iops_on(&swing(3.0));
    assert!(findings.attained && data(&findings.parts[0]) < 20.0);
}

#[test]
fn a_device_that_stalls_or_fails_is_no_steady_device() {
    // In the third round.
    for (device, what) in [
        ("[stall]\nafter_s = 250\n", "did not come back"),
        ("[fail]\nafter_s = 250\n", "I/O failed"),
        ("vanish_after_s = 250\n", "gone"),
    ] {
        let (ran, findings) = iops_on(device);
        assert_eq!(ran.finish.status, RunStatus::Failed, "{device}");
        let told = format!("{:?} {:?}", ran.finish.ending, ran.finish.stopped);
        assert!(told.contains(what), "{device}: {told}");
        assert!(!findings.attained);
        assert_eq!(findings.parts[0].ending, PointOutcome::Unfinished);
    }
}

#[test]
fn a_soft_limit_goes_on_and_says_that_it_was_late() {
    let soft = SniaChoices {
        max_rounds: Some(6),
        soft: true,
        ..wanted()
    };
    let place = Place::new("[settle]\nfresh_percent = 900\nseconds = 400\n");
    let ran = place.run(&script(setup(SniaTest::Iops, &soft)));
    let findings = ran.findings();
    assert_eq!(findings.parts[0].ending, PointOutcome::AttainedLate);
    assert!(findings.attained && findings.parts[0].rounds > 6);
}

/// fio-tests' criterion looks into the cells: a device that swings within a cell
/// and is level from round to round is steady by SNIA's and not by it.
#[test]
fn the_all_cells_criterion_is_stricter() {
    let swings = "[swing]\npercent = 50\nseconds = 10\n";
    let all_cells = SniaChoices {
        criterion: TrackedVariable::AllCells,
        cell_mean: (None, Some(super::support::CELL)),
        cell_slope: (None, Some(super::support::CELL)),
        ..wanted()
    };
    let (_, by_snia) = iops_on(swings);
    assert!(by_snia.attained && !by_snia.parts[0].all_cells.attained);
    let ran = Place::new(swings).run(&script(setup(SniaTest::Iops, &all_cells)));
    assert!(matches!(ran.finish.ending, Some(Ending::NotAttained(_))));
    let ran = Place::new("").run(&script(setup(SniaTest::Iops, &all_cells)));
    assert_eq!(ran.finish.ending, Some(Ending::Complete));
    assert_eq!(ran.findings().parts[0].all_cells.at, Some(5));
}

#[test]
fn throughput_purges_and_fills_for_each_block_size() {
    let ran = Place::new("").run(&script(setup(SniaTest::Throughput, &wanted())));
    let stages = ran.stages();
    assert_eq!(stages.len(), 2 * (3 + 5), "{stages:?}");
    assert_eq!(stages[0], "throughput/1024k/purge");
    assert_eq!(stages[8], "throughput/128k/purge");
    let findings = ran.findings();
    assert!(findings.attained);
    // The simulated device moves 2000 MiB/s at most, whatever the block size.
    for part in &findings.parts {
        let bw = part.cells[0].bw_bytes.unwrap();
        assert!((bw / (2000.0 * 1_048_576.0) - 1.0).abs() < 0.01, "{bw}");
    }
}

#[test]
fn latency_ends_with_a_histogram() {
    let ran = Place::new("").run(&script(setup(SniaTest::Latency, &wanted())));
    assert_eq!(ran.stages().last().unwrap(), "latency/histogram");
    let findings = ran.findings();
    assert!(findings.attained);
    let cell = findings.histogram.unwrap();
    // 80 µs and the time of the data: about 12 k I/Os a second.
    assert!(cell.lat.total() > 100_000 && cell.failed.is_none());
    let mean = findings.parts[0].tracked[0].values[0].unwrap();
    assert!((mean / 82_000.0 - 1.0).abs() < 0.02, "{mean}");
}

#[test]
fn write_saturation_ends_steady_or_by_what_it_may_write_or_by_its_time() {
    let wsat = |device: &str, wanted: SniaChoices| {
        let ran = Place::new(device).run(&script(setup(SniaTest::Wsat, &wanted)));
        assert_eq!(ran.finish.ending, Some(Ending::Complete));
        let stages = ran.stages();
        assert!(!stages.iter().any(|id| id.contains("fill")), "{stages:?}");
        assert_eq!(stages.last().unwrap(), "wsat/histogram");
        let findings = ran.findings();
        let saturation = findings.parts[0].saturation.clone().unwrap();
        (saturation, findings)
    };
    let every_sample = SniaChoices {
        samples_a_round: Some(1),
        ..wanted()
    };
    // 12.8 k writes a second: the GiB is written within the third sample.
    let slow = "latency_us = 2500\n";
    let (saturation, findings) = wsat(slow, every_sample.clone());
    assert_eq!(saturation.ended_by, Some("steady state"));
    assert_eq!(findings.parts[0].window, Some((4, 8)));
    let swings = format!("{slow}[swing]\npercent = 60\nseconds = 20\n");
    let (saturation, _) = wsat(&swings, every_sample.clone());
    assert_eq!(saturation.ended_by, Some("the capacity it may write"));
    assert!(saturation.drive_fills >= 4.0);
    let short = SniaChoices {
        stop: Some(std::time::Duration::from_secs(20)),
        ..every_sample
    };
    let (saturation, _) = wsat("latency_us = 1000000\n", short);
    assert_eq!(
        (saturation.ended_by, saturation.io_ms),
        (Some("its time"), 20_000)
    );
}

#[test]
fn the_limits_are_snias() {
    let limits = setup(SniaTest::Iops, &SniaChoices::default()).limits;
    assert_eq!(limits, RoundLimits::SNIA);
    assert_eq!((limits.window, limits.max_rounds), (5, 25));
}
