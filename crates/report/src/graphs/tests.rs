//! Graphs of records that are written here and read back.

use std::collections::BTreeMap;
use std::path::Path;

use fathom_analysis::Sweep;
use fathom_model::{
    Direction, DirectionResult, Event, Failure, FailureKind, Histogram, JobResult, Latency,
    Outcome, Point, ReasonKind, Results, RunStatus, Sample, SkipCause,
};
use fathom_record::{Header, Writer};

use super::*;
use fathom_document::sweep::read_sweep;
use fathom_sheet::chart::drawn::check;
use fathom_sheet::chart::palette::Marker;
use fathom_sheet::chart::{Note, NoteKind, Scale, Shape, Theme};

/// What is measured at a point: (IOPS, mean latency in ns) of reads and writes.
type Measured = (Option<(f64, f64)>, Option<(f64, f64)>);

fn point(series: &str, x: &str, settings: &[(&str, u64)], repetition: u32) -> Box<Point> {
    let mut all: BTreeMap<String, String> = settings
        .iter()
        .map(|(option, value)| ((*option).to_owned(), value.to_string()))
        .collect();
    let place = all[x].clone();
    all.insert("rw".to_owned(), "randrw".to_owned());
    all.entry("bs".to_owned())
        .or_insert_with(|| "4k".to_owned());
    Box::new(Point {
        id: format!("{series}/{place}{x}"),
        series: series.to_owned(),
        x: x.to_owned(),
        settings: all,
        repetition,
    })
}

fn figures((iops, latency_ns): (f64, f64)) -> DirectionResult {
    DirectionResult {
        total_ios: (iops * 10.0) as u64,
        io_bytes: (iops * 10.0) as u64 * 4096,
        iops,
        bw_bytes: iops * 4096.0,
        runtime_ms: 10_000,
        clat: Some(Latency {
            mean_ns: latency_ns,
            percentiles_ns: vec![
                (50.0, latency_ns as u64),
                (99.0, 3 * latency_ns as u64),
                (99.9, 9 * latency_ns as u64),
            ],
            ..Latency::default()
        }),
        ..DirectionResult::default()
    }
}

/// A record in the making.
struct Campaign {
    dir: tempfile::TempDir,
    writer: Writer,
}

impl Campaign {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let writer = Writer::create(dir.path(), &Header::new("campaign", "run")).unwrap();
        Self { dir, writer }
    }

    fn event(&mut self, event: Event) {
        self.writer.append(&event).unwrap();
    }

    fn step(&mut self, point: Box<Point>) {
        self.event(Event::Step {
            step: 1,
            of: 1,
            name: point.id.clone(),
            point: Some(point),
        });
    }

    fn measure(&mut self, point: Box<Point>, (read, write): Measured) {
        self.step(point);
        let job = JobResult {
            name: "job".to_owned(),
            read: read.map(figures),
            write: write.map(figures),
            ..JobResult::default()
        };
        self.event(Event::Finished {
            results: Box::new(Results {
                jobs: vec![job],
                ..Results::default()
            }),
        });
        let outcome = Outcome::Complete;
        self.event(Event::StepEnded { outcome });
    }

    fn fail(&mut self, point: Box<Point>, why: &str) {
        self.step(point);
        self.event(Event::Failure(Failure::new(FailureKind::AioLimit, why)));
        let outcome = Outcome::Failed;
        self.event(Event::StepEnded { outcome });
    }

    fn finish(self) -> (tempfile::TempDir, std::path::PathBuf) {
        let path = self.writer.finish(RunStatus::Complete).unwrap();
        (self.dir, path)
    }
}

/// A series over depths whose bandwidth is best at 8, its latency at 1.
fn knee(campaign: &mut Campaign, series: &str) {
    for (depth, iops) in [(1u32, 10e3), (2, 19e3), (4, 33e3), (8, 40e3), (16, 38e3)] {
        let latency_ns = f64::from(depth) / iops * 1e9;
        let at = point(
            series,
            "iodepth",
            &[("iodepth", depth.into()), ("numjobs", 1)],
            1,
        );
        campaign.measure(at, (None, Some((iops, latency_ns))));
    }
}

fn draw(dir: &Path) -> (Vec<Graph>, Vec<NotDrawn>) {
    of_campaign(&read_sweep(dir).unwrap(), &|_| true)
}

fn svg_of(graphs: &[Graph], path: &str) -> String {
    let graph = graphs.iter().find(|graph| graph.path == path);
    let paths: Vec<&str> = graphs.iter().map(|graph| graph.path.as_str()).collect();
    let graph = graph.unwrap_or_else(|| panic!("{path} is not among {paths:?}"));
    let svg = graph.chart.svg(&Theme::LIGHT, graph.size);
    check(&svg).unwrap_or_else(|wrong| panic!("{path}: {wrong}"));
    svg
}

#[test]
fn files_are_named_after_series_and_metric_and_what_was_not_measured_has_none() {
    let mut campaign = Campaign::new();
    knee(&mut campaign, "0003-single/0005-randwrite");
    let (_dir, path) = campaign.finish();
    let (graphs, not_drawn) = draw(&path);
    let paths: Vec<&str> = graphs.iter().map(|graph| graph.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "0003-single/0005-randwrite-bww",
            "0003-single/0005-randwrite-iopsw",
            "0003-single/0005-randwrite-clatw",
            "0003-single/0005-randwrite-iops-clat",
            "0003-single/0005-randwrite-clatw-percentiles",
        ]
    );
    assert!(not_drawn.is_empty());
    for path in paths {
        svg_of(&graphs, path);
    }
}

#[test]
fn best_points_stand_on_every_graph_with_their_value_and_place() {
    let mut campaign = Campaign::new();
    knee(&mut campaign, "s");
    let (_dir, path) = campaign.finish();
    let (graphs, _) = draw(&path);
    for (name, best, latency) in [
        ("s-bww", "156 MiB/s at depth 8", "39.1 MiB/s at depth 1"),
        ("s-iopsw", "40k at depth 8", "10k at depth 1"),
        ("s-clatw", "200 µs at depth 8", "100 µs at depth 1"),
    ] {
        let svg = svg_of(&graphs, name);
        for text in ["best bandwidth and IOPS", best, "best latency", latency] {
            assert!(
                svg.contains(&format!(">{text}</text>")),
                "{name}: {text}\n{svg}"
            );
        }
    }
}

#[test]
fn failed_and_skipped_points_stand_on_the_axis_and_break_the_curve() {
    let mut campaign = Campaign::new();
    for depth in [1, 2, 4, 8, 16] {
        let at = point("s", "iodepth", &[("iodepth", depth)], 1);
        match depth {
            4 => campaign.fail(at, "fs.aio-max-nr is exceeded"),
            16 => campaign.event(Event::Skipped {
                point: at,
                reason: "the guard ended the series".to_owned(),
                cause: SkipCause::NotNeeded,
            }),
            _ => campaign.measure(at, (Some((1000.0, 1e5)), None)),
        }
    }
    let (_dir, path) = campaign.finish();
    let (graphs, _) = draw(&path);
    let svg = svg_of(&graphs, "s-bwr");
    for text in [
        "failed",
        "skipped",
        "skipped at depth 16: the guard ended the series",
    ] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text}\n{svg}");
    }
    assert!(svg.contains("failed at depth 4: "), "{svg}");
    let panel = &graphs[0].chart.panels[0];
    let on_axis: Vec<&Vec<f64>> = panel
        .layers
        .iter()
        .filter_map(|layer| match &layer.shape {
            Shape::OnAxis(at) => Some(at),
            _ => None,
        })
        .collect();
    assert_eq!(on_axis, [&vec![4.0], &vec![16.0]]);
}

#[test]
fn a_series_without_figures_is_named_with_its_reason() {
    let mut campaign = Campaign::new();
    campaign.fail(
        point("bad", "iodepth", &[("iodepth", 1)], 1),
        "no such device",
    );
    let (_dir, path) = campaign.finish();
    let (graphs, not_drawn) = draw(&path);
    assert!(graphs.is_empty());
    assert_eq!(not_drawn[0].series, "bad");
    assert!(
        not_drawn[0].reason.contains("1 of 1 failed"),
        "{not_drawn:?}"
    );
}

#[test]
fn repetitions_have_error_bars() {
    let mut campaign = Campaign::new();
    for depth in [1, 2] {
        for repetition in 1..=3 {
            let at = point("s", "iodepth", &[("iodepth", depth)], repetition);
            let iops = 1000.0 + 10.0 * f64::from(repetition);
            campaign.measure(at, (Some((iops, 1e5)), None));
        }
    }
    let (_dir, path) = campaign.finish();
    let svg = svg_of(&draw(&path).0, "s-iopsr");
    assert!(
        svg.contains(">95 % confidence interval, n = 3</text>"),
        "{svg}"
    );
    // 10 · 4.303 / √3 = 24.8 of 1020.
    assert!(svg.contains("1.02k ± 2.4 % at depth 1"), "{svg}");
}

#[test]
fn series_of_a_folder_share_charts_and_make_heat_maps_when_they_make_a_grid() {
    let mut campaign = Campaign::new();
    for depth in [256, 512, 1024] {
        let series = format!("0004-jobs/0005-randrw/{depth}qd");
        for jobs in [1, 2, 4] {
            let at = point(
                &series,
                "numjobs",
                &[("iodepth", depth), ("numjobs", jobs)],
                1,
            );
            let iops = (depth * jobs) as f64;
            campaign.measure(at, (Some((iops, 1e6)), Some((iops, 1e6))));
        }
    }
    // Not of the grid: another folder, alone in it.
    knee(&mut campaign, "0001-basic/0001-seqwrite");
    let (_dir, path) = campaign.finish();
    let (graphs, _) = draw(&path);
    let svg = svg_of(&graphs, "0004-jobs/0005-randrw/overview-bwr");
    for text in ["256qd", "512qd", "1024qd", "Jobs"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text}\n{svg}");
    }
    // Every point has its value, in the colour of its curve.
    let overview = "0004-jobs/0005-randrw/overview-iopsr";
    let graph = graphs.iter().find(|graph| graph.path == overview).unwrap();
    let panel = &graph.chart.panels[0];
    for layer in &panel.layers {
        let Shape::Curve(points) = &layer.shape else {
            panic!("{layer:?}");
        };
        let of_curve = |note: &&Note| note.color == Some(layer.ink.color);
        let noted: Vec<(f64, f64)> = panel
            .notes
            .iter()
            .filter(of_curve)
            .map(|note| note.at)
            .collect();
        assert_eq!(&noted, points);
    }
    assert!(svg_of(&graphs, overview).contains(">4.10k</text>"));
    let svg = svg_of(&graphs, "0004-jobs/0005-randrw/heat-iopsw");
    for text in ["I/O depth", "Jobs", "1024", "4.10k"] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text}\n{svg}");
    }
    let heat = graphs.iter().filter(|graph| graph.path.contains("heat-"));
    assert_eq!(heat.count(), 6);
    assert!(
        !graphs
            .iter()
            .any(|graph| graph.path.starts_with("0001-basic/overview"))
    );
}

/// The points that are drawn as rings.
fn rings(graph: &Graph) -> Vec<(f64, f64)> {
    let layers = graph.chart.panels.iter().flat_map(|panel| &panel.layers);
    layers
        .filter(|layer| layer.ink.marker == Marker::Ring)
        .filter_map(|layer| match &layer.shape {
            Shape::Points(points) => Some(points.clone()),
            _ => None,
        })
        .flatten()
        .collect()
}

#[test]
fn versions_of_an_engine_stand_on_the_graphs_of_their_own_series_and_mixing_is_told() {
    let mut campaign = Campaign::new();
    for (series, depth, version) in [
        ("f/same", 1, "fio-3.33"),
        ("f/mixed", 1, "fio-3.38"),
        ("f/same", 2, "fio-3.33"),
        ("f/mixed", 2, "fio-3.1"),
    ] {
        campaign.event(Event::EngineStarted {
            engine: "fio".into(),
            version: Some(version.into()),
            argv: Vec::new(),
            pid: None,
        });
        let at = point(series, "iodepth", &[("iodepth", depth)], 1);
        campaign.measure(at, (Some((1000.0 * depth as f64, 1e5)), None));
    }
    let (_dir, path) = campaign.finish();
    let record = read_sweep(&path).unwrap();
    let told = "measured by different engines, whose figures are comparable with care: \
                fio-3.33, fio-3.38, fio-3.1";
    assert!(record.run.notes.contains(&told.to_owned()), "{record:?}");
    let (graphs, _) = draw(&path);
    let same = svg_of(&graphs, "f/same-bwr");
    assert!(
        same.contains("fio-3.33 ·") && !same.contains("fio-3.38"),
        "{same}"
    );
    assert!(!same.contains("doubtful"), "{same}");
    let mixed = svg_of(&graphs, "f/mixed-bwr");
    assert!(mixed.contains("fio-3.38 · fio-3.1 ·"), "{mixed}");
    assert!(
        mixed.contains("different engines: fio-3.38, fio-3.1"),
        "{mixed}"
    );
}

#[test]
fn doubtful_points_are_hollow_in_every_graph_and_the_jobs_axis_is_log2() {
    let mut campaign = Campaign::new();
    for depth in [1, 2] {
        for jobs in [1u64, 2, 4, 8] {
            let settings = [("iodepth", depth), ("numjobs", jobs)];
            let at = point(&format!("f/{depth}qd"), "numjobs", &settings, 1);
            campaign.step(at);
            let mut read = figures((1000.0 * jobs as f64, 1e5));
            // The best of all, and one in the middle.
            if jobs == 8 || jobs == 2 {
                read.told = vec![ReasonKind::Short];
            }
            let job = JobResult {
                name: "job".to_owned(),
                read: Some(read),
                ..JobResult::default()
            };
            let results = Results {
                jobs: vec![job],
                ..Results::default()
            };
            campaign.event(Event::Finished {
                results: Box::new(results),
            });
            let outcome = Outcome::Complete;
            campaign.event(Event::StepEnded { outcome });
        }
    }
    let (_dir, path) = campaign.finish();
    let (graphs, _) = draw(&path);
    assert_eq!(graphs.len(), 2 * 5 + 3 + 3, "{graphs:?}");
    for graph in &graphs {
        let of_one = if graph.path.contains("percentiles") {
            3
        } else {
            1
        };
        let series = if graph.path.starts_with("f/overview") || graph.path.starts_with("f/heat") {
            2
        } else {
            1
        };
        assert_eq!(rings(graph).len(), 2 * of_one * series, "{}", graph.path);
        svg_of(&graphs, &graph.path);
        if graph.path == "f/1qd-iopsr" {
            assert_eq!(graph.chart.panels[0].x.scale, Scale::Log2);
            let notes = &graph.chart.panels[0].notes;
            let best = notes.iter().find(|note| note.at.0 == 8.0).unwrap();
            assert!(best.hollow, "{best:?}");
            // Every other point has its value.
            let mut beside: Vec<f64> = notes.iter().map(|note| note.at.0).collect();
            beside.sort_by(f64::total_cmp);
            assert_eq!(beside, [1.0, 2.0, 4.0, 8.0]);
        }
    }
}

#[test]
fn the_best_of_a_series_that_was_cut_says_of_how_many_points() {
    let mut campaign = Campaign::new();
    for depth in [1, 2, 4, 8] {
        let at = point("s", "iodepth", &[("iodepth", depth)], 1);
        match depth {
            8 => campaign.event(Event::Skipped {
                point: at,
                reason: "the guard ended the series".to_owned(),
                cause: SkipCause::NotNeeded,
            }),
            _ => campaign.measure(at, (Some((1000.0 * depth as f64, 1e5)), None)),
        }
    }
    let (_dir, path) = campaign.finish();
    let record = read_sweep(&path).unwrap();
    let svg = svg_of(&draw(&path).0, "s-bwr");
    assert!(
        svg.contains("best bandwidth and IOPS of 3 of 4 points"),
        "{svg}"
    );
    let table = crate::campaign_table(&record, fathom_sheet::style::Style::default());
    let told = "* best of 3 of 4 points: the others may be better";
    assert!(table.contains(told), "{table}");
    let document = crate::export::document(&record, &record.sweep.series);
    let document = serde_json::to_value(document).unwrap();
    assert_eq!(document["series"][0]["best_of_points"], 3);
}

#[test]
fn numbers_at_points_say_the_depth_of_a_rate_and_its_latency() {
    let mut campaign = Campaign::new();
    knee(&mut campaign, "s");
    let (_dir, path) = campaign.finish();
    let (graphs, _) = draw(&path);
    let graph = graphs
        .iter()
        .find(|graph| graph.path == "s-iops-clat")
        .unwrap();
    let notes = &graph.chart.panels[0].notes;
    assert!(notes.iter().all(|note| note.kind == NoteKind::Beside));
    assert_eq!(notes[3].at, (40e3, 8.0 / 40e3 * 1e9));
    assert_eq!(notes[3].lines, ["8"]);
}

#[test]
fn samples_of_all_jobs_add_up_over_time() {
    let mut campaign = Campaign::new();
    let id = point("s", "iodepth", &[("iodepth", 8)], 2);
    campaign.step(id);
    for second in 1..=5u64 {
        for job in 0..2 {
            let mut clat = Histogram::new();
            clat.add(100_000 * (u64::from(job) + 1), 500);
            campaign.event(Event::Sample(Sample {
                t_ms: 60_000 + second * 1000,
                span_ms: 1000,
                job,
                dir: Direction::Read,
                ios: 500,
                bytes: 500 * 4096,
                clat: Some(clat),
                lat: None,
            }));
        }
        campaign.event(Event::Interval {
            t_ms: 60_000 + second * 1000,
            remaining_ms: None,
        });
    }
    // Its end: 184 I/Os in 8 ms are 23,000 a second, and no peak of the load.
    campaign.event(Event::Sample(Sample {
        t_ms: 65_008,
        span_ms: 8,
        job: 0,
        dir: Direction::Read,
        ios: 184,
        bytes: 184 * 4096,
        clat: None,
        lat: None,
    }));
    campaign.event(Event::Interval {
        t_ms: 65_008,
        remaining_ms: None,
    });
    let (_dir, path) = campaign.finish();
    let graphs = time::over_time(&path, &|name| name.contains("8iodepth")).unwrap();
    let [graph] = &graphs[..] else {
        panic!("{graphs:?}")
    };
    let Shape::Line(all) = &graph.chart.panels[0].layers[0].shape else {
        panic!("{graph:?}")
    };
    assert_eq!(all.len(), 5, "{all:?}");
    assert_eq!(graph.path, "s/8iodepth-r2-time");
    let Shape::Line(iops) = &graph.chart.panels[0].layers[0].shape else {
        panic!("{graph:?}")
    };
    assert_eq!(iops[0], (1000.0, 1000.0));
    assert_eq!(iops[4], (5000.0, 1000.0));
    // Half of the merged values at 100 µs, half at 200 µs.
    let Shape::Line(mean) = &graph.chart.panels[2].layers[0].shape else {
        panic!("{graph:?}")
    };
    assert!((mean[0].1 - 150_000.0).abs() < 1500.0, "{mean:?}");
    svg_of(&graphs, "s/8iodepth-r2-time");
    assert!(time::over_time(&path, &|_| false).unwrap().is_empty());
}

#[test]
fn numbers_that_order_folders_are_no_part_of_a_name() {
    for (name, told) in [
        ("0005-randwrite-70-30", "randwrite-70-30"),
        ("0001-32iobs-read", "32iobs-read"),
        ("12-mix", "mix"),
        ("100-0", "100-0"),
        ("0-100", "0-100"),
        ("5-95", "5-95"),
        ("0001-", "0001-"),
    ] {
        assert_eq!(super::unnumbered(name), told);
    }
}

/// A campaign of one series, so many I/Os a second at depths 1, 2 and 4.
fn of_depths(series: &str, most: f64, fails_at: u64) -> Sweep {
    let mut campaign = Campaign::new();
    for depth in [1, 2, 4] {
        let point = point(series, "iodepth", &[("iodepth", depth)], 1);
        match depth == fails_at {
            true => campaign.fail(point, "too many"),
            false => campaign.measure(point, (Some((most * depth as f64, 1e5)), None)),
        }
    }
    let (_dir, record) = campaign.finish();
    read_sweep(&record).unwrap().sweep
}

#[test]
fn both_sides_of_a_comparison_share_a_graph() {
    let a = [of_depths("t/a", 1000.0, 0), of_depths("t/a", 1200.0, 4)];
    let b = [of_depths("t/b", 2000.0, 0)];
    let [chart] = &overlay::curves([&a, &b])[..] else {
        panic!("one direction of the only series");
    };
    assert_eq!(chart.title, "Read · t/a / t/b");
    let titles: Vec<&str> = chart.panels.iter().map(|it| it.y.title.as_str()).collect();
    assert_eq!(titles, ["IOPS", "Mean latency", "p99 latency"]);
    let layers = &chart.panels[0].layers;
    let named = |name: &str| {
        let found = layers
            .iter()
            .find(|layer| layer.name.as_deref() == Some(name));
        found
            .unwrap_or_else(|| panic!("{name}: {layers:#?}"))
            .shape
            .clone()
    };
    // Where one of the runs failed the other is the mean, and has no spread.
    let mean = vec![(1.0, 1100.0), (2.0, 2200.0), (4.0, 4000.0)];
    assert_eq!(named("A, mean of 2 runs"), Shape::Curve(mean));
    let spread = vec![(1.0, 1000.0, 1200.0), (2.0, 2000.0, 2400.0)];
    assert_eq!(named("lowest to highest run"), Shape::Band(spread));
    assert!(matches!(named("B"), Shape::Curve(_)));
    assert_eq!(named("failed"), Shape::OnAxis(vec![4.0]));
    assert_eq!(chart.footer, ["A: failed at depth 4: too many"]);

    let others = [of_depths("t/c", 1.0, 0), of_depths("t/a", 1.0, 0)];
    assert_eq!(
        overlay::curves([&others, &b]).len(),
        0,
        "no series is in both"
    );
    assert_eq!(overlay::curves([&others, &a]).len(), 1);
}
