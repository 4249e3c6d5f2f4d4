use fathom_model::{
    Direction, DirectionResult, Event, Failure, FailureKind, Histogram, JobResult, Latency,
    Outcome, Point, Results, RunStatus, Sample, Stage, StageEnd, StageKind,
};

use super::*;
use crate::steady_state::Metric;

/// A capacity that is no round number of anything.
const CAPACITY: u64 = 1_000_204_886_016;

fn setup(test: SniaTest) -> Setup {
    Setup::specified(test, DriveClass::Enterprise, CAPACITY)
}

fn stage(setup: &Setup, part: &str, round: u32) -> Event {
    Event::Stage {
        stage: Box::new(Stage {
            id: setup.stage_id(part, &format!("round-{round:02}")),
            kind: StageKind::Round,
            title: format!("round {round}"),
            round: Some(round),
        }),
    }
}

fn ended(setup: &Setup, part: &str, round: u32) -> Event {
    Event::StageEnded {
        id: setup.stage_id(part, &format!("round-{round:02}")),
        end: StageEnd::Done,
    }
}

fn step(cell: SniaCell) -> Event {
    let settings = [
        ("rw", "randrw".to_owned()),
        ("rwmixread", cell.reads_percent.to_string()),
        ("bs", cell.block()),
    ];
    Event::Step {
        step: 1,
        of: 1,
        name: cell.to_string(),
        point: Some(Box::new(Point {
            id: cell.to_string(),
            series: String::new(),
            x: "bs".into(),
            settings: settings.map(|(k, v)| (k.to_owned(), v)).into(),
            repetition: 1,
        })),
    }
}

/// Figures of a cell: so many IOPS of the whole, for a minute.
fn finished(cell: SniaCell, iops: f64) -> Event {
    let dir = |share: f64| {
        let mut histogram = Histogram::new();
        histogram.add(100_000, (iops * share) as u64);
        DirectionResult {
            total_ios: (iops * share * 60.0) as u64,
            io_bytes: (iops * share * 60.0) as u64 * cell.block_bytes,
            iops: iops * share,
            bw_bytes: iops * share * cell.block_bytes as f64,
            clat: Some(Latency {
                mean_ns: 1e9 / iops,
                max_ns: 1_000_000,
                histogram: Some(histogram),
                ..Latency::default()
            }),
            ..DirectionResult::default()
        }
    };
    let reads = f64::from(cell.reads_percent) / 100.0;
    let results = Results {
        jobs: vec![JobResult {
            read: Some(dir(reads)),
            write: Some(dir(1.0 - reads)),
            ..JobResult::default()
        }],
        ..Results::default()
    };
    Event::Finished {
        results: Box::new(results),
    }
}

const STEP_ENDED: Event = Event::StepEnded {
    outcome: Outcome::Complete,
};

/// Ten seconds of samples around a rate.
fn samples(iops: impl Fn(u64) -> f64) -> Vec<Event> {
    let second = |n: u64| {
        let sample = Sample {
            t_ms: n * 1000,
            span_ms: 1000,
            job: 0,
            dir: Direction::Write,
            ios: iops(n) as u64,
            bytes: 4096 * iops(n) as u64,
            clat: None,
            lat: None,
        };
        [
            Event::Sample(sample),
            Event::Interval {
                t_ms: n * 1000,
                remaining_ms: None,
            },
        ]
    };
    (1..=10).flat_map(second).collect()
}

/// A whole round in which every cell has this rate.
fn round(collector: &mut RoundCollector, part: &str, n: u32, iops: impl Fn(SniaCell) -> f64) {
    let setup = collector.setup().clone();
    collector.take(&stage(&setup, part, n));
    for cell in setup.cells(part) {
        collector.take(&step(cell));
        collector.take(&finished(cell, iops(cell)));
        collector.take(&STEP_ENDED);
    }
    collector.take(&ended(&setup, part, n));
}

fn rounds(setup: Setup, rates: impl IntoIterator<Item = f64>) -> Findings {
    let mut collector = RoundCollector::new(setup);
    for (n, rate) in (1..).zip(rates) {
        round(&mut collector, "", n, |_| rate);
    }
    find(&collector)
}

#[test]
fn the_tests_are_those_of_the_specification() {
    let iops = setup(SniaTest::Iops);
    assert_eq!(iops.cells("").len(), 56);
    let all: Vec<String> = iops.cells("").iter().map(SniaCell::to_string).collect();
    assert_eq!(
        (&*all[0], &*all[1], &*all[7]),
        ("100/0 1024k", "100/0 128k", "100/0 512")
    );
    assert_eq!(all[55], "0/100 512");
    let names = |setup: &Setup, part: &str| -> Vec<String> {
        setup
            .tracked(part)
            .iter()
            .map(SniaCell::to_string)
            .collect()
    };
    assert_eq!(names(&iops, ""), ["0/100 4k", "65/35 64k", "100/0 1024k"]);
    assert_eq!(
        (iops.iodepth, iops.jobs, iops.active_bytes),
        (32, 4, CAPACITY / 4096 * 4096)
    );
    let client = Setup::specified(SniaTest::Iops, DriveClass::Client, CAPACITY);
    assert_eq!((client.iodepth, client.jobs), (16, 2));
    assert_eq!(client.active_bytes, CAPACITY * 3 / 4 / 4096 * 4096);
    assert_eq!(
        (client.write_cache.wanted, iops.write_cache.wanted),
        (Some(true), Some(false))
    );
    let throughput = setup(SniaTest::Throughput);
    assert_eq!(throughput.parts(), ["1024k", "128k"]);
    assert_eq!(names(&throughput, "128k"), ["100/0 128k", "0/100 128k"]);
    assert_eq!((throughput.iodepth, throughput.jobs), (32, 1));
    let latency = setup(SniaTest::Latency);
    assert_eq!(latency.cells("").len(), 9);
    assert_eq!(
        (latency.iodepth, latency.jobs, latency.histogram_ms),
        (1, 1, 1_200_000)
    );
    assert_eq!(names(&latency, ""), ["0/100 4k"]);
    let wsat = setup(SniaTest::Wsat);
    assert_eq!(
        (wsat.fill_loops, wsat.stop_fills, wsat.stop_ms),
        (0, 4.0, 21_600_000)
    );
    for setup in [iops, throughput, latency, wsat] {
        assert!(setup.deviations().is_empty(), "{:?}", setup.deviations());
        let text = serde_json::to_string(&setup).unwrap();
        assert_eq!(serde_json::from_str::<Setup>(&text).unwrap(), setup);
    }
}

#[test]
fn stages_tell_their_test_and_part() {
    let throughput = setup(SniaTest::Throughput);
    let id = throughput.stage_id("128k", "round-07");
    assert_eq!(id, "throughput/128k/round-07");
    assert_eq!(throughput.part_of(&id), Some(("128k", "round-07")));
    assert_eq!(setup(SniaTest::Iops).part_of(&id), None);
    assert_eq!(
        setup(SniaTest::Iops).part_of("iops/purge"),
        Some(("", "purge"))
    );
}

#[test]
fn the_same_test_in_two_steps_has_stages_of_its_own_in_each() {
    let of_step = |scope: &str| Setup {
        scope: scope.to_owned(),
        ..setup(SniaTest::Iops)
    };
    let id = of_step("cold/").stage_id("", "round-01");
    assert_eq!(id, "cold/iops/round-01");
    assert_eq!(of_step("cold/").part_of(&id), Some(("", "round-01")));
    assert_eq!(of_step("warm/").part_of(&id), None);
    assert_eq!(setup(SniaTest::Iops).part_of(&id), None);
    assert_eq!(of_step("cold/").title(), "IOPS (cold)");
}

#[test]
fn level_rounds_are_steady_at_the_fifth() {
    let found = rounds(setup(SniaTest::Iops), [1000.0; 5]);
    let part = &found.parts[0];
    assert!(found.attained && part.ending == PartEnding::Attained && part.is_over());
    assert_eq!(part.window, Some((1, 5)));
    assert_eq!(part.tracked.len(), 3);
    let determination = part.tracked[0].determination.as_ref().unwrap();
    assert!(determination.holds);
    assert_eq!(determination.window.mean, 1000.0);
    assert_eq!(determination.window.correlation, None);
    assert_eq!(part.cells.len(), 56);
    assert_eq!(
        rounds(setup(SniaTest::Iops), [1000.0; 4]).parts[0].ending,
        PartEnding::Unfinished
    );
}

#[test]
fn reads_and_writes_are_added_up_never_averaged() {
    let found = rounds(setup(SniaTest::Iops), [1000.0; 5]);
    let mixed = found.parts[0]
        .cells
        .iter()
        .find(|c| c.cell.to_string() == "65/35 64k");
    let mixed = mixed.unwrap();
    assert!((mixed.iops.unwrap() - 1000.0).abs() < 1e-9, "{mixed:?}");
    assert!((mixed.bw_bytes.unwrap() - 65_536_000.0).abs() < 1e-3);
    assert_eq!(mixed.lat_n, 5 * 1000);
}

/// A device that falls and then stays: the window is the first that holds.
#[test]
fn a_device_that_settles_has_the_first_window_that_holds() {
    let rates = [
        4000.0, 3000.0, 2200.0, 1500.0, 1200.0, 1010.0, 1000.0, 1000.0, 1000.0, 1000.0,
    ];
    // Rounds 6 to 10: range 10 of 1002. Rounds 5 to 9: 200 of 1042, 19.2 %, and
    // a slope of −41·4 = 164, 15.7 %.
    let found = rounds(setup(SniaTest::Iops), rates);
    assert_eq!(found.parts[0].window, Some((6, 10)));
}

#[test]
fn a_drift_just_within_the_slope_limit_is_steady_and_one_just_beyond_is_not() {
    // y = 1000 + s·(x − 2) has the mean 1000 and the excursion 4·s, in data and fit.
    let line = |s: f64| (0..5).map(move |x| 1000.0 + s * (f64::from(x) - 2.0));
    let within = rounds(setup(SniaTest::Iops), line(25.0));
    assert!(within.attained, "10 % is not more than 10 %");
    let window = within.parts[0].tracked[0].determination.as_ref().unwrap();
    assert_eq!(window.window.slope_excursion_percent, Some(10.0));
    assert_eq!(window.formula, "y = 25.000·x + 925.00");
    let beyond = rounds(setup(SniaTest::Iops), line(25.1));
    assert!(!beyond.attained);
    let found = beyond.parts[0].tracked[0].determination.as_ref().unwrap();
    assert!(found.terms[0].holds && !found.terms[1].holds);
}

#[test]
fn a_swing_just_within_the_data_limit_is_steady_and_one_just_beyond_is_not() {
    // Symmetric about the middle round: the fit is level.
    let swing = |range: f64| {
        let low = 1000.0 - 0.4 * range;
        [low, low + range, low, low + range, low]
    };
    let within = rounds(setup(SniaTest::Iops), swing(200.0));
    assert!(within.attained, "{:?}", within.parts[0].tracked[0]);
    let beyond = rounds(setup(SniaTest::Iops), swing(200.1));
    assert!(!beyond.attained);
    let found = beyond.parts[0].tracked[0].determination.as_ref().unwrap();
    assert!(!found.terms[0].holds && found.terms[1].holds);
}

#[test]
fn all_tracked_variables_have_to_be_steady_over_the_same_window() {
    let mut collector = RoundCollector::new(setup(SniaTest::Iops));
    // The 4k writes are steady from round 1 on, the 64k mix from round 4 on.
    for n in 1..=8 {
        round(&mut collector, "", n, |cell| {
            match (cell.reads_percent, n) {
                (65, 1..=3) => 9000.0 / f64::from(n),
                _ => 1000.0,
            }
        });
    }
    assert_eq!(find(&collector).parts[0].window, Some((4, 8)));
}

#[test]
fn what_never_settles_is_not_attained_after_the_last_round_and_its_window_says_so() {
    let found = rounds(
        setup(SniaTest::Iops),
        (0..25).map(|n| 100.0 * 1.1_f64.powi(n)),
    );
    let part = &found.parts[0];
    assert_eq!(
        (part.ending, part.attained, part.rounds),
        (PartEnding::NotAttained, false, 25)
    );
    assert_eq!(
        part.window,
        Some((21, 25)),
        "the last one, which is not steady"
    );
    assert!(!part.tracked[0].determination.as_ref().unwrap().holds);
    let soft = Setup {
        limits: RoundLimits {
            soft: true,
            ..RoundLimits::SNIA
        },
        ..setup(SniaTest::Iops)
    };
    let grows = |n: i32| 100.0 * 1.1_f64.powi(n.min(26));
    let goes_on = rounds(soft.clone(), (0..28).map(grows));
    assert_eq!(goes_on.parts[0].ending, PartEnding::Unfinished);
    assert!(goes_on.parts[0].is_late(&soft));
    let late = rounds(soft, (0..40).map(grows));
    assert_eq!(late.parts[0].ending, PartEnding::AttainedLate);
    assert!(late.attained);
}

#[test]
fn a_window_with_a_failed_cell_or_without_io_is_never_steady() {
    let mut collector = RoundCollector::new(setup(SniaTest::Iops));
    for n in 1..=5 {
        let setup = collector.setup().clone();
        collector.take(&stage(&setup, "", n));
        for cell in setup.cells("") {
            collector.take(&step(cell));
            if n == 3 && cell.to_string() == "65/35 64k" {
                collector.take(&Event::Failure(Failure::new(FailureKind::Io, "EIO")));
            }
            collector.take(&finished(cell, 1000.0));
            collector.take(&STEP_ENDED);
        }
        collector.take(&ended(&setup, "", n));
    }
    let found = find(&collector);
    assert_eq!(found.parts[0].ending, PartEnding::Unfinished);
    assert!(found.parts[0].tracked[1].determination.is_none());
    assert!(!rounds(setup(SniaTest::Iops), [0.0; 5]).attained);
}

#[test]
fn a_round_that_was_broken_off_is_measured_anew_and_the_gap_is_told() {
    let mut collector = RoundCollector::new(setup(SniaTest::Iops));
    round(&mut collector, "", 1, |_| 1000.0);
    let setup = collector.setup().clone();
    collector.take(&stage(&setup, "", 2));
    let cells = setup.cells("");
    collector.take(&step(cells[0]));
    collector.take(&finished(cells[0], 5.0));
    collector.take(&STEP_ENDED);
    collector.take(&step(cells[1]));
    collector.take(&finished(cells[1], 5.0));
    collector.take(&Event::Resumed {
        after: None,
        gap_ms: 90_000,
    });
    assert_eq!(find(&collector).parts[0].rounds, 1);
    round(&mut collector, "", 2, |_| 1000.0);
    collector.take(&Event::Resumed {
        after: Some(RunStatus::Interrupted),
        gap_ms: 5000,
    });
    let found = find(&collector);
    let values = &found.parts[0].tracked[0].values;
    assert_eq!(values.len(), 2);
    assert!((values[1].unwrap() - 1000.0).abs() < 1e-9, "{values:?}");
    assert_eq!(found.interruptions.len(), 2);
    assert!(found.interruptions[0].within && !found.interruptions[1].within);
    let told = found.deviations.join("\n");
    assert!(
        told.contains("interrupted for 1m30s in iops/round-02"),
        "{told}"
    );
}

/// The stricter criterion looks into every cell and has to be asked for.
#[test]
fn the_criterion_of_fio_tests_wants_every_cell_to_keep_fios_rule() {
    let all_cells = Setup {
        criterion: TrackedVariable::AllCells,
        cell_ms: 10_000,
        cell_rule: CellRule {
            mean_percent: 20.0,
            mean_ms: 10_000,
            slope_percent: 10.0,
            slope_ms: 10_000,
        },
        ..setup(SniaTest::Latency)
    };
    let run = |noisy_round: u32| {
        let mut collector = RoundCollector::new(all_cells.clone());
        for n in 1..=6 {
            let setup = collector.setup().clone();
            collector.take(&stage(&setup, "", n));
            for cell in setup.cells("") {
                collector.take(&step(cell));
                let noisy = n == noisy_round && cell.block_bytes == 8192;
                for event in samples(|s| if noisy && s == 7 { 700.0 } else { 1000.0 }) {
                    collector.take(&event);
                }
                collector.take(&finished(cell, 1000.0));
                collector.take(&STEP_ENDED);
            }
            collector.take(&ended(&setup, "", n));
        }
        find(&collector)
    };
    let calm = run(0);
    assert_eq!(calm.parts[0].all_cells.at, Some(5));
    assert!(calm.attained && calm.deviations.iter().any(|d| d.contains("all-cells")));
    let noisy = run(1);
    assert_eq!(noisy.parts[0].all_cells.steady[0], (6, 9));
    assert_eq!(
        (noisy.parts[0].all_cells.at, noisy.parts[0].window),
        (Some(6), Some((2, 6)))
    );
    let noisy = run(3);
    assert!(!noisy.attained);
    // SNIA's criterion does not look there.
    assert!(
        noisy.parts[0].tracked[0]
            .determination
            .as_ref()
            .unwrap()
            .holds
    );
}

#[test]
fn latencies_are_averages_of_rounds_and_their_tail_is_of_merged_histograms() {
    let found = rounds(
        setup(SniaTest::Latency),
        [1000.0, 1010.0, 990.0, 1000.0, 1000.0],
    );
    assert!(found.attained);
    let part = &found.parts[0];
    assert_eq!(part.tracked[0].metric, Metric::Latency);
    let cell = &part.cells[0];
    assert_eq!(cell.lat_n, 1000 + 1010 + 990 + 1000 + 1000);
    assert!(cell.lat_p99999_ns.unwrap().abs_diff(100_000) < 1000);
    assert_eq!(cell.lat_max_ns, Some(1_000_000));
    assert!(found.histogram.is_none());
}

#[test]
fn throughput_has_a_part_for_each_block_size() {
    let mut collector = RoundCollector::new(setup(SniaTest::Throughput));
    for n in 1..=5 {
        round(&mut collector, "1024k", n, |_| 1000.0);
    }
    let found = find(&collector);
    assert!(found.parts[0].attained && !found.parts[1].attained && !found.attained);
    for n in 1..=5 {
        round(&mut collector, "128k", n, |_| 8000.0);
    }
    let found = find(&collector);
    assert!(found.attained);
    let bw = found.parts[0].cells[0].bw_bytes.unwrap();
    assert!((bw - 1000.0 * 1_048_576.0).abs() < 1.0);
}

/// A purged device is level at first: that is not its steady state.
#[test]
fn write_saturation_is_not_steady_before_the_range_was_written_once() {
    let small = Setup {
        capacity_bytes: 1000 * 60 * 4096 * 10,
        active_bytes: 1000 * 60 * 4096 * 10,
        samples_a_round: 1,
        ..setup(SniaTest::Wsat)
    };
    // Ten samples of a minute at 1000 IOPS are one drive fill.
    let found = rounds(small.clone(), [1000.0; 14]);
    assert_eq!(found.parts[0].ending, PartEnding::Unfinished);
    let found = rounds(small.clone(), [1000.0; 15]);
    assert_eq!(found.parts[0].window, Some((11, 15)));
    let saturation = found.parts[0].saturation.as_ref().unwrap();
    assert_eq!(saturation.ended_by, Some("steady state"));
    // It never settles: four fills end it, or its time.
    let falls = (0..60).map(|n| 1000.0 * (1.0 + f64::from(n % 2)));
    let found = rounds(small.clone(), falls);
    let saturation = found.parts[0].saturation.as_ref().unwrap();
    assert_eq!(saturation.ended_by, Some("the capacity it may write"));
    assert_eq!(found.parts[0].ending, PartEnding::NotAttained);
    let short = Setup {
        stop_ms: 120_000,
        ..small
    };
    let found = rounds(short, [1000.0; 2]);
    assert_eq!(
        found.parts[0].saturation.as_ref().unwrap().ended_by,
        Some("its time")
    );
}

#[test]
fn what_differs_from_the_specification_is_told() {
    let debug = Setup {
        cell_ms: 1000,
        active_bytes: 4 << 20,
        fill_loops: 1,
        limits: RoundLimits {
            data_percent: 100.0,
            slope_percent: 100.0,
            window: 2,
            max_rounds: 2,
            soft: false,
        },
        ..setup(SniaTest::Iops)
    };
    let told = debug.deviations();
    assert_eq!(told.len(), 5, "{told:#?}");
}

#[test]
fn a_drive_with_blocks_of_4_kib_has_no_cells_of_half_a_kib() {
    let mut setup = Setup::specified(SniaTest::Iops, DriveClass::Enterprise, 1 << 30);
    setup.fit_blocks(512);
    assert_eq!(setup.cells("").len(), 56);
    assert_eq!(setup.deviations().len(), 0, "{:?}", setup.deviations());
    setup.fit_blocks(4096);
    assert_eq!(setup.cells("").len(), 49);
    assert_eq!(setup.tracked("").len(), 3);
    assert_eq!(setup.deviations(), ["there are no cells of 512"]);
}

#[test]
fn no_percentile_is_beyond_the_greatest_latency() {
    let mut lat = Histogram::new();
    lat.add(8_020_000, 10);
    let bucket = lat.percentile_ns(100.0).unwrap();
    let cell = CellFigures {
        cell: SniaCell {
            reads_percent: 0,
            block_bytes: 4096,
        },
        begin_ms: 0,
        end_ms: 1,
        iops: None,
        bw_bytes: None,
        lat_mean_ns: None,
        lat_max_ns: Some(bucket - 1),
        lat,
        written_bytes: 0,
        keeps_fio_rule: None,
        failed: None,
    };
    assert_eq!(cell.percentile_ns(99.999), Some(bucket - 1));
}
