//! The grammar as a whole: ordinary charts, and data that nobody hopes for.
//!
//! `FATHOM_GALLERY=DIR cargo test -p fathom-report gallery` writes all of them
//! as SVG and PNG, to be looked at.

use proptest::prelude::*;

use super::drawn::check;
use super::palette::{Dash, Ink, Marker};
use super::*;

fn axis(title: &str, quantity: Quantity, scale: Scale, ends: Ends) -> ChartAxis {
    ChartAxis {
        title: title.to_owned(),
        quantity,
        scale,
        ends,
    }
}

fn depth() -> ChartAxis {
    axis("I/O depth", Quantity::Binary, Scale::Log2, Ends::Values)
}

fn bandwidth() -> ChartAxis {
    axis(
        "Bandwidth",
        Quantity::BytesPerSecond,
        Scale::Linear,
        Ends::Ticks,
    )
}

fn latency(scale: Scale) -> ChartAxis {
    axis(
        "Mean completion latency",
        Quantity::Latency,
        scale,
        Ends::Ticks,
    )
}

fn layer(name: Option<&str>, shape: Shape, ink: Ink) -> Layer {
    Layer {
        name: name.map(str::to_owned),
        shape,
        ink,
    }
}

fn note(at: (f64, f64), first: &str, second: &str) -> Note {
    Note {
        hollow: false,
        color: None,
        at,
        lines: vec![first.to_owned(), second.to_owned()],
        kind: NoteKind::Leader,
    }
}

fn one(title: &str, panel: Panel) -> Chart {
    Chart {
        title: title.to_owned(),
        subtitle: vec!["Example SSD 1 TB · rw=randrw rwmixread=70 bs=4k numjobs=1".to_owned()],
        panels: vec![panel],
        ..Chart::default()
    }
}

const MIB: f64 = 1_048_576.0;

/// A curve with a knee, as drives have it.
fn knee() -> Vec<(f64, f64)> {
    let values = [
        12.0, 24.0, 47.0, 90.0, 160.0, 245.0, 310.0, 360.0, 390.0, 402.0, 380.0, 371.0, 368.0,
    ];
    let depths = (0..13).map(|power| f64::from(1 << power));
    depths.zip(values.map(|value| value * MIB)).collect()
}

fn sweep() -> Panel {
    let points = knee();
    let mut panel = Panel::new(depth(), bandwidth());
    panel.notes = vec![
        note(points[9], "best bandwidth, IOPS", "402 MiB/s at 512"),
        note(points[2], "best latency", "47 MiB/s at 4"),
    ];
    let bars = points
        .iter()
        .map(|&(x, y)| (x, y * 0.93, y * 1.07))
        .collect();
    panel.layers = vec![
        layer(
            Some("95 % interval"),
            Shape::ErrorBars(bars),
            Ink::of_place(1),
        ),
        layer(None, Shape::Curve(points), Ink::of_place(1)),
        layer(
            Some("failed"),
            Shape::OnAxis(vec![2048.0, 8192.0]),
            Ink {
                marker: Marker::Cross,
                ..Ink::new(Theme::LIGHT.bad)
            },
        ),
        layer(
            Some("skipped"),
            Shape::OnAxis(vec![16384.0]),
            Ink {
                marker: Marker::Ring,
                ..Ink::new(Theme::LIGHT.soft)
            },
        ),
    ];
    panel
}

/// A line over time with so many points that columns of pixels hold hundreds.
fn noise(count: u32) -> Vec<(f64, f64)> {
    let mut state = 1u32;
    (0..count)
        .map(|n| {
            // Numerical Recipes' generator: any noise will do.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let stall = if n % (count / 7 + 1) > count / 9 {
                1.0
            } else {
                0.2
            };
            (f64::from(n) * 10.0, stall * (90e3 + f64::from(state >> 18)))
        })
        .collect()
}

fn series_over_time() -> Chart {
    let time = || axis("Time", Quantity::Time, Scale::Time, Ends::Values);
    let mut iops = Panel::new(
        time(),
        axis("IOPS", Quantity::Rate, Scale::Linear, Ends::Ticks),
    );
    iops.layers = vec![
        layer(Some("read"), Shape::Line(noise(60_000)), Ink::of_place(0)),
        layer(
            Some("write"),
            Shape::Line(noise(60_000).iter().map(|p| (p.0, p.1 * 0.4)).collect()),
            Ink::of_place(1),
        ),
    ];
    let mut clat = Panel::new(time(), latency(Scale::Log10));
    let mean: Vec<(f64, f64)> = noise(60_000).iter().map(|p| (p.0, 3.2e10 / p.1)).collect();
    let band = mean
        .iter()
        .step_by(200)
        .map(|p| (p.0, p.1 * 0.5, p.1 * 8.0))
        .collect();
    clat.layers = vec![
        layer(Some("min … max"), Shape::Band(band), Ink::of_place(0)),
        layer(
            Some("read"),
            Shape::Steps(mean.into_iter().step_by(1500).collect()),
            Ink::of_place(0),
        ),
    ];
    Chart {
        title: "0010-bs4k-1j-512qd-randrw over time".to_owned(),
        panels: vec![iops, clat],
        ..Chart::default()
    }
}

fn heat_map() -> Chart {
    let names = |values: &[u32]| Scale::Ordinal(values.iter().map(u32::to_string).collect());
    let (jobs, depths) = ([1, 2, 4, 8, 16, 32, 64], [256, 512, 1024, 2048, 4096]);
    let mut panel = Panel::new(
        axis("Jobs", Quantity::Binary, names(&jobs), Ends::Values),
        axis("I/O depth", Quantity::Binary, names(&depths), Ends::Values),
    );
    let mut cells = Vec::new();
    for (row, depth) in depths.iter().enumerate() {
        for (column, job) in jobs.iter().enumerate() {
            let load = f64::from(depth * job);
            cells.push(HeatCell {
                x: (column as f64 - 0.5, column as f64 + 0.5),
                y: (row as f64 - 0.5, row as f64 + 0.5),
                value: (load < 200_000.0).then(|| 529.0 * MIB * load / (load + 2000.0)),
            });
        }
    }
    panel.layers = vec![layer(None, Shape::Cells(cells), Ink::of_place(0))];
    panel.colors = Some(bandwidth());
    one("Write bandwidth by depth and jobs", panel)
}

fn many_curves() -> Chart {
    let mut panel = Panel::new(depth(), latency(Scale::Log10));
    panel.layers = (0..8)
        .map(|n| {
            let points = knee()
                .iter()
                .map(|&(x, _)| (x, (60e3 + x * 900.0) * (1.0 + f64::from(n) * 0.4)))
                .collect();
            layer(
                Some(&format!("maxiobatch-randwrite-profile-{n}")),
                Shape::Curve(points),
                Ink::of_place(n as usize),
            )
        })
        .collect();
    one("Eight profiles", panel)
}

fn simple(title: &str, y: ChartAxis, points: Vec<(f64, f64)>) -> Chart {
    let mut panel = Panel::new(depth(), y);
    panel.notes = points
        .first()
        .into_iter()
        .chain(points.last())
        .map(|&at| note(at, "best bandwidth, IOPS, latency", "a value at a depth"))
        .collect();
    panel.layers = vec![layer(None, Shape::Curve(points), Ink::of_place(0))];
    one(title, panel)
}

/// Noise that leaves no room for labels.
fn full() -> Chart {
    let points: Vec<(f64, f64)> = noise(20_000)
        .iter()
        .enumerate()
        .map(|(n, p)| (p.0, if n % 2 == 0 { 0.0 } else { p.1 / 1e5 * 90.0 }))
        .collect();
    let time = axis("Time", Quantity::Time, Scale::Time, Ends::Values);
    let mut panel = Panel::new(
        time,
        axis("Utilisation", Quantity::Percent, Scale::Linear, Ends::Ticks),
    );
    panel.notes = vec![
        note(points[5000], "highest", "90 % at 50 s"),
        note(points[15_000], "lowest", "0 % at 150 s"),
    ];
    panel.layers = vec![layer(None, Shape::Area(points), Ink::of_place(2))];
    one("No room for labels", panel)
}

fn gallery() -> Vec<(&'static str, Chart)> {
    let depths = || (0..13).map(|power| f64::from(1 << power));
    let decades = depths().map(|x| (x, 10f64.powf(3.0 + 5.0 * x.log2() / 12.0)));
    let decades: Vec<(f64, f64)> = decades.collect();
    let long = "0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30-".repeat(6);
    let mut broken = knee();
    broken[4].1 = f64::NAN;
    broken[6].1 = f64::INFINITY;
    vec![
        (
            "sweep",
            one("Write bandwidth · 0005-maxiobatch-randwrite-70-30", sweep()),
        ),
        ("time", series_over_time()),
        ("heat", heat_map()),
        ("many", many_curves()),
        (
            "one-point",
            simple("One point", bandwidth(), vec![(64.0, 3e8)]),
        ),
        (
            "equal",
            simple(
                "All equal",
                bandwidth(),
                depths().map(|x| (x, 5e8)).collect(),
            ),
        ),
        (
            "zero",
            simple(
                "All zero",
                bandwidth(),
                depths().map(|x| (x, 0.0)).collect(),
            ),
        ),
        (
            "decades-linear",
            simple("Five decades", latency(Scale::Linear), decades.clone()),
        ),
        (
            "decades",
            simple("Five decades", latency(Scale::Log10), decades),
        ),
        (
            "no-data",
            simple("Nothing was measured", bandwidth(), Vec::new()),
        ),
        (
            "broken",
            simple("Points without a value", bandwidth(), broken),
        ),
        ("long-names", simple(&long, bandwidth(), knee())),
        ("full", full()),
    ]
}

#[test]
fn the_gallery_is_valid_and_the_same_every_time() {
    let folder = std::env::var_os("FATHOM_GALLERY").map(std::path::PathBuf::from);
    for (name, chart) in gallery() {
        let size = Size::default();
        let svg = chart.svg(&Theme::LIGHT, size);
        assert_eq!(svg, chart.svg(&Theme::LIGHT, size), "{name}");
        check(&svg).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
        assert!(svg.len() < 120_000, "{name}: {} bytes", svg.len());
        if let Some(folder) = &folder {
            let small = Size {
                width: 420.0,
                height: 280.0,
            };
            std::fs::create_dir_all(folder).unwrap();
            std::fs::write(folder.join(format!("{name}.svg")), &svg).unwrap();
            let write = |end: &str, svg: &str, scale| {
                let path = folder.join(format!("{name}{end}.png"));
                std::fs::write(path, png::png(svg, scale).unwrap()).unwrap();
            };
            write("", &svg, 1.5);
            write("-small", &chart.svg(&Theme::LIGHT, small), 1.5);
            write("-dark", &chart.svg(&Theme::DARK, size), 1.0);
        }
    }
}

/// Anything that is a number, most of it of an ordinary size.
fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        8 => 0.0..1e10f64,
        1 => prop::num::f64::ANY,
        1 => Just(0.0),
        1 => Just(-5.0),
    ]
}

fn scale() -> impl Strategy<Value = Scale> {
    prop_oneof![
        Just(Scale::Linear),
        Just(Scale::Log2),
        Just(Scale::Log10),
        Just(Scale::Time)
    ]
}

fn quantity() -> impl Strategy<Value = Quantity> {
    prop_oneof![
        Just(Quantity::Number),
        Just(Quantity::Binary),
        Just(Quantity::Rate),
        Just(Quantity::BytesPerSecond),
        Just(Quantity::Latency),
        Just(Quantity::Time),
        Just(Quantity::Percent),
    ]
}

fn any_axis() -> impl Strategy<Value = ChartAxis> {
    let ends = prop_oneof![Just(Ends::Ticks), Just(Ends::Values)];
    ("\\PC{0,40}", quantity(), scale(), ends).prop_map(|(title, quantity, scale, ends)| ChartAxis {
        title,
        quantity,
        scale,
        ends,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_input_gives_valid_xml_and_clear_labels(
        title in any::<String>(),
        x in any_axis(),
        y in any_axis(),
        points in prop::collection::vec((value(), value()), 0..20),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        width in 200.0..1200.0f64,
        height in 150.0..700.0f64,
    ) {
        let mut panel = Panel::new(x, y);
        if !points.is_empty() {
            panel.notes = picks
                .iter()
                .map(|pick| note(*pick.get(&points), "best bandwidth", "402 MiB/s at 512"))
                .collect();
        }
        let spans = points.iter().map(|&(x, y)| (x, y - 1.0, y + 1.0)).collect();
        panel.layers = vec![
            layer(Some("bars"), Shape::ErrorBars(spans), Ink::of_place(1)),
            layer(Some("curve"), Shape::Curve(points.clone()), Ink::of_place(0)),
            layer(Some("failed"), Shape::OnAxis(points.iter().map(|p| p.0).collect()), Ink::of_place(2)),
        ];
        let chart = one(&title, panel);
        let svg = chart.svg(&Theme::LIGHT, Size { width, height });
        let checked = check(&svg);
        prop_assert_eq!(checked, Ok(()));
    }

    #[test]
    fn ticks_rise_and_lie_on_their_axis(
        axis in any_axis(),
        a in value(),
        b in value(),
        wanted in 1usize..20,
    ) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assume!(low.is_finite() && high.is_finite());
        let fitted = scale::fit(&axis, Some((low, high)), wanted, &|_| true);
        prop_assert!(fitted.ticks.len() <= 300);
        prop_assert!(fitted.ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
        for tick in &fitted.ticks {
            let place = fitted.place(tick.at).unwrap();
            prop_assert!((-1e-3..=1.001).contains(&place), "{tick:?} {place}");
        }
        for value in [low, high] {
            if let Some(place) = fitted.place(value) {
                let inside = (-1e-3..=1.001).contains(&place);
                prop_assert!(inside || axis.scale.is_logarithmic() && low <= 0.0, "{value}: {place}");
            }
        }
    }
}

#[test]
fn numbers_are_text() {
    let svg = one("Write bandwidth", sweep()).svg(&Theme::LIGHT, Size::default());
    for text in [
        "402 MiB/s at 512",
        "Bandwidth (MiB/s)",
        "I/O depth",
        "4096",
        "failed",
    ] {
        assert!(svg.contains(&format!(">{text}</text>")), "{text}");
    }
}

#[test]
fn a_small_chart_as_it_is_written() {
    let mut panel = Panel::new(depth(), bandwidth());
    let ink = Ink {
        dash: Dash::Dashed,
        ..Ink::of_place(1)
    };
    let points = vec![(1.0, 40.0 * MIB), (2.0, 70.0 * MIB), (4.0, 65.0 * MIB)];
    panel.notes = vec![note(points[1], "best", "70 MiB/s at 2")];
    panel.layers = vec![layer(Some("write"), Shape::Curve(points), ink)];
    let svg = one("Small & simple", panel).svg(
        &Theme::LIGHT,
        Size {
            width: 360.0,
            height: 240.0,
        },
    );
    insta::assert_snapshot!(svg);
}

#[test]
fn a_picture_has_the_size_of_its_drawing() {
    let svg = one("Picture", sweep()).svg(&Theme::LIGHT, Size::default());
    let picture = png::png(&svg, 2.0).unwrap();
    // PNG specification, 11.2.2: width and height follow the name of the header.
    let side = |at: usize| u32::from_be_bytes(picture[at..at + 4].try_into().unwrap());
    assert_eq!((side(16), side(20)), (1520, 920));
    assert!(matches!(png::png("<svg", 1.0), Err(png::PngError::Svg(_))));
    assert!(matches!(
        png::png(&svg, 100.0),
        Err(png::PngError::TooLarge { .. })
    ));
}

#[test]
fn letters_of_points_beside_each_other_become_one() {
    let mut panel = Panel::new(depth(), bandwidth());
    panel.notes = vec![
        note(
            (1.0, 5e8),
            "best bandwidth and IOPS of all",
            "a very long value in words",
        ),
        note(
            (1.0, 5.05e8),
            "best latency of all of them",
            "another very long value",
        ),
        note(
            (4096.0, 5e8),
            "the best of everything there is",
            "yet another long value",
        ),
    ];
    let points = panel.notes.iter().map(|note| note.at).collect();
    panel.layers = vec![layer(None, Shape::Curve(points), Ink::of_place(0))];
    let size = Size {
        width: 200.0,
        height: 150.0,
    };
    let svg = one("Hardly any room", panel).svg(&Theme::LIGHT, size);
    check(&svg).unwrap();
    for (letter, count) in [("A", 1), ("B", 1), ("C", 0)] {
        assert_eq!(
            svg.matches(&format!(">{letter}</text>")).count(),
            count,
            "{svg}"
        );
    }
}

/// A device at its limit gives the same rate at every depth: of the points of
/// IOPS against latency, all in one column of pixels, some once were not drawn.
#[test]
fn points_one_above_the_other_are_all_drawn() {
    let points: Vec<(f64, f64)> = (0..7).map(|n| (1000.0, f64::from(1 << n) * 1e5)).collect();
    let mut panel = Panel::new(depth(), latency(Scale::Log10));
    panel.layers = vec![layer(None, Shape::Curve(points), Ink::of_place(0))];
    let svg = one("At the limit", panel).svg(&Theme::LIGHT, Size::default());
    assert_eq!(svg.matches("<circle").count(), 7, "{svg}");
}
