use fathom_model::LogEntry;
use fathom_sheet::chart::drawn::check;
use fathom_sheet::chart::{Shape, Theme};

use super::*;

fn log(job: u64, lines: u64, dirs: u64, value: impl Fn(u64) -> u64) -> JobLog {
    let mut timeline = Timeline::new(true);
    for n in 0..lines {
        let entry = LogEntry {
            time_ms: n / 20,
            value: value(n),
            max: None,
            dir: if n % dirs == 0 {
                Direction::Read
            } else {
                Direction::Write
            },
            bs: 4096,
            offset: None,
            prio: 0,
            issue_ns: None,
        };
        timeline.add(&entry);
    }
    timeline.end();
    JobLog {
        job: format!("job {job}"),
        kind: LogKind::Lat,
        timeline,
        classes: Vec::new(),
        prio: PrioColumn::Absent,
    }
}

fn logs(logs: Vec<JobLog>) -> Logs {
    Logs {
        name: "out".to_owned(),
        logs,
        bin_error_percent: None,
        lines: false,
    }
}

/// Spreads over ten powers of ten, never alike twice: the worst to draw.
fn anything(n: u64) -> u64 {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    1 + (mixed >> 29 >> (n % 33))
}

#[test]
fn the_worst_logs_have_svgs_below_a_megabyte() {
    for (jobs, lines) in [(1, 300_000), (64, 6_000)] {
        let all = (1..=jobs).map(|job| log(job, lines, 2, |n| anything(n * 64 + job)));
        let graphs = of_logs(&logs(all.collect()));
        let names: Vec<&str> = graphs.iter().map(|graph| graph.path.as_str()).collect();
        assert_eq!(
            names,
            [
                "out-lat",
                "out-lat-percentiles",
                "out-lat-heat",
                "out-lat-cdf"
            ]
        );
        for graph in graphs {
            let svg = graph.chart.svg(&Theme::LIGHT, graph.size);
            assert!(svg.len() < 1 << 20, "{}: {} bytes", graph.path, svg.len());
            check(&svg).unwrap();
        }
    }
}

/// Highest y of all that a plot draws.
fn highest(graph: &Graph) -> f64 {
    let layers = graph.chart.panels.iter().flat_map(|panel| &panel.layers);
    let values = layers.flat_map(|layer| -> Vec<f64> {
        match &layer.shape {
            Shape::Line(points) => points.iter().map(|point| point.1).collect(),
            Shape::Band(spans) => spans.iter().map(|span| span.2).collect(),
            Shape::Cells(cells) => cells.iter().map(|cell| cell.y.1).collect(),
            other => panic!("{other:?}"),
        }
    });
    values.fold(0.0, f64::max)
}

#[test]
fn the_slowest_of_a_million_ios_is_on_every_plot() {
    let value = |n: u64| {
        if n == 654_321 {
            3_000_000_000
        } else {
            90_000 + n % 5000
        }
    };
    let graphs = of_logs(&logs(vec![log(1, 1_000_000, 1, value)]));
    for graph in &graphs[..2] {
        assert_eq!(highest(graph), 3e9, "{}", graph.path);
    }
    // A cell ends where its row does.
    assert!((3e9..3.3e9).contains(&highest(&graphs[2])));
}

#[test]
fn a_stall_is_no_io_at_all_in_a_counted_log() {
    let mut one = log(1, 100_000, 1, |_| 1);
    one.kind = LogKind::Iops;
    let graphs = of_logs(&logs(vec![one]));
    let Shape::Line(points) = &graphs[0].chart.panels[0].layers[0].shape else {
        panic!("a line");
    };
    // 20 I/Os in each ms.
    assert!(
        points.iter().all(|point| (point.1 - 20_000.0).abs() < 1.0),
        "{points:?}"
    );
    let mut timeline = Timeline::new(false);
    for n in (0..40_000u64).chain(60_000..100_000) {
        let entry = LogEntry {
            time_ms: n / 20,
            value: 1,
            max: None,
            dir: Direction::Read,
            bs: 4096,
            offset: None,
            prio: 0,
            issue_ns: None,
        };
        timeline.add(&entry);
    }
    timeline.end();
    let stalled = JobLog {
        job: String::new(),
        kind: LogKind::Iops,
        timeline,
        classes: Vec::new(),
        prio: PrioColumn::Absent,
    };
    let graphs = of_logs(&logs(vec![stalled]));
    let Shape::Line(points) = &graphs[0].chart.panels[0].layers[0].shape else {
        panic!("a line");
    };
    let in_the_stall = points
        .iter()
        .filter(|point| (2100.0..2900.0).contains(&point.0));
    assert!(in_the_stall.clone().count() > 5 && in_the_stall.clone().all(|point| point.1 == 0.0));
}

/// A log of windows has no I/Os to count, whatever is drawn beside it.
#[test]
fn windows_beside_single_ios_keep_their_rates() {
    let mut timeline = Timeline::new(false);
    for n in 1..=40 {
        timeline.add(&LogEntry {
            time_ms: n * 50,
            value: 5000,
            max: None,
            dir: Direction::Read,
            bs: 0,
            offset: None,
            prio: 0,
            issue_ns: None,
        });
    }
    timeline.end();
    let mut windows = JobLog {
        job: "averaged".to_owned(),
        kind: LogKind::Iops,
        timeline,
        classes: Vec::new(),
        prio: PrioColumn::Absent,
    };
    let mut singles = log(2, 40_000, 1, |_| 1);
    for kind in [LogKind::Bandwidth, LogKind::Iops] {
        (windows.kind, singles.kind) = (kind, kind);
        let both = logs(vec![windows, singles]);
        let graphs = of_logs(&both);
        let lines = graphs[0].chart.panels[0].layers.iter();
        let lines: Vec<_> = lines
            .filter_map(|layer| match &layer.shape {
                Shape::Line(points) => Some(points),
                _ => None,
            })
            .collect();
        let unit = match kind {
            LogKind::Bandwidth => 1024.0,
            _ => 1.0,
        };
        assert!(lines[0].iter().all(|point| point.1 == 5000.0 * unit));
        assert!(lines[1].iter().all(|point| point.1 > 19_000.0));
        let [first, second] = <[JobLog; 2]>::try_from(both.logs).ok().unwrap();
        (windows, singles) = (first, second);
    }
}

type NamedLine<'g> = (Option<&'g str>, &'g [(f64, f64)]);

fn lines_of(graph: &Graph, panel: usize) -> Vec<NamedLine<'_>> {
    let layers = graph.chart.panels[panel].layers.iter();
    layers
        .filter_map(|layer| match &layer.shape {
            Shape::Line(points) => Some((layer.name.as_deref(), points.as_slice())),
            _ => None,
        })
        .collect()
}

#[test]
fn many_jobs_are_a_sum_with_a_band_and_lines_when_asked_for() {
    let one = |job: u64| JobLog {
        kind: LogKind::Iops,
        ..log(job, 40_000, 1, |_| 1)
    };
    let mut many = logs((1..=64).map(one).collect());
    let graphs = of_logs(&many);
    assert_eq!(graphs[0].chart.panels.len(), 2);
    // 20 I/Os in each ms, of 64 jobs.
    let sum = lines_of(&graphs[0], 0);
    assert!(
        sum[0].1.iter().all(|at| (at.1 - 1_280_000.0).abs() < 10.0),
        "{sum:?}"
    );
    let each = lines_of(&graphs[0], 1);
    assert_eq!((each.len(), each[0].0), (1, Some("median job")));
    assert!(
        each[0].1.iter().all(|at| (at.1 - 20_000.0).abs() < 1.0),
        "{each:?}"
    );
    many.lines = true;
    assert_eq!(lines_of(&of_logs(&many)[0], 0).len(), 64);
    // Of latencies there is no sum: the slowest of any job is in the grey.
    let slow = |job: u64| {
        log(job, 4000, 1, move |n| {
            1000 * job + n % 7 + if n == 99 { 9_000_000 } else { 0 }
        })
    };
    let graphs = of_logs(&logs((1..=10).map(slow).collect()));
    assert_eq!(graphs[0].chart.panels.len(), 1);
    assert!(highest(&graphs[0]) > 9e6);
    let median = lines_of(&graphs[0], 0)[0].1.last().unwrap().1;
    assert!((5000.0..5010.0).contains(&median), "{median}");
}

#[test]
fn priorities_are_a_dimension_of_their_own() {
    let (mut low, mut high) = (Timeline::new(true), Timeline::new(true));
    for n in 0..40_000u64 {
        let timeline = if n % 4 == 0 { &mut high } else { &mut low };
        timeline.add(&LogEntry {
            time_ms: n / 20,
            value: if n % 4 == 0 { 10_000 } else { 90_000 } + n % 100,
            max: None,
            dir: if n % 2 == 0 {
                Direction::Read
            } else {
                Direction::Write
            },
            bs: 4096,
            offset: None,
            prio: 0,
            issue_ns: None,
        });
    }
    low.end();
    high.end();
    let one = JobLog {
        timeline: Timeline::of(vec![low.coarser(u64::MAX), high.coarser(u64::MAX)]),
        classes: vec![(0, low), (0x2003, high)],
        prio: PrioColumn::Value,
        ..log(1, 1, 1, |_| 1)
    };
    let graphs = of_logs(&logs(vec![one]));
    let names: Vec<&str> = graphs.iter().map(|graph| graph.path.as_str()).collect();
    let expected = [
        "out-lat",
        "out-lat-percentiles",
        "out-lat-heat",
        "out-lat-cdf",
        "out-lat-priorities",
        "out-lat-heat-NONE-0",
        "out-lat-heat-RT-3",
    ];
    assert_eq!(names, expected);
    let rates = lines_of(&graphs[4], 0);
    assert_eq!(rates.len(), 2);
    assert!(
        rates[1].1.iter().all(|at| (at.1 - 5000.0).abs() < 100.0),
        "{rates:?}"
    );
    let latencies = lines_of(&graphs[4], 1);
    assert!(latencies.iter().any(|line| line.0 == Some("RT 3 p99")));
    // The lines end where all I/Os are, one for each class.
    let share = lines_of(&graphs[3], 0);
    assert_eq!(
        (share[1].0, share[1].1.last().unwrap()),
        (Some("RT 3"), &(10_096.0, 100.0))
    );
    assert_eq!(
        classes::name(PrioColumn::Value, 2 << 13 | 1 << 3 | 7),
        "BE 7 hint 1"
    );
    assert_eq!(classes::name(PrioColumn::RealTime, 1), "RT");
}
