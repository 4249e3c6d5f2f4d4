//! A map of loads: the latency of reads over reads and writes, as table and graph.

use fathom_analysis::find::{LoadMap, MapCell, MapOutcome};
use fathom_model::units;

use fathom_sheet::chart::palette::Ink;
use fathom_sheet::chart::{Chart, ChartAxis, Ends, HeatCell, Layer, Panel, Quantity, Scale, Shape};
use fathom_sheet::grid::{Grid, GridCell, figures};
use fathom_sheet::style::Tone;

/// Reads from left to right, writes from top to bottom.
pub fn grid(map: &LoadMap) -> Grid {
    let mut columns = vec![figures("writes", 0), figures("reads:", 0)];
    columns.extend((1..map.steps).map(|_| figures("", 0)));
    let mut grid = Grid::new(columns);
    let heads = row(map, 0).map(|cell| GridCell::from(units::count(cell.read_iops)));
    grid.line(
        std::iter::once(GridCell::default())
            .chain(heads)
            .collect::<Vec<_>>(),
    );
    for write in 0..=map.steps {
        let mut cells = row(map, write).peekable();
        let Some(first) = cells.peek() else { continue };
        let head = GridCell::from(units::count(first.write_iops));
        let line = std::iter::once(head).chain(cells.map(|cell| {
            let latency = cell.latency_ns.map_or("–".to_owned(), units::latency);
            match cell.outcome {
                MapOutcome::Done => GridCell::from(latency),
                MapOutcome::Behind => GridCell::new(Tone::Doubtful, "too much"),
                MapOutcome::LeftOut => GridCell::from("–".to_owned()),
                MapOutcome::Open => GridCell::from("?".to_owned()),
            }
        }));
        grid.line(line.collect::<Vec<_>>());
    }
    grid
}

/// What writes cost the reads, in a sentence: reads of a middle rate alone, and beside the
/// most writes that were done with them.
pub fn sentence(map: &LoadMap) -> Option<String> {
    let done = |it: &&MapCell| it.outcome == MapOutcome::Done && it.latency_ns.is_some();
    let beside = |read: u32| {
        let cells = map.cells.iter().filter(|cell| cell.read == read);
        cells.filter(done).max_by_key(|cell| cell.write)
    };
    // The rate of reads that lies nearest to the middle and has both.
    let mut reads: Vec<u32> = (1..=map.steps).collect();
    reads.sort_by_key(|read| (2 * read).abs_diff(map.steps));
    let found = reads.into_iter().find_map(|read| {
        let alone = row(map, 0).filter(done).find(|cell| cell.read == read)?;
        let beside = beside(read).filter(|cell| cell.write > 0)?;
        Some((alone, beside))
    });
    let (alone, beside) = found?;
    Some(format!(
        "{} reads/s have a p{} of {} alone, and of {} beside {} writes/s",
        units::count(alone.read_iops),
        map.percent,
        units::latency(alone.latency_ns?),
        units::latency(beside.latency_ns?),
        units::count(beside.write_iops),
    ))
}

fn row(map: &LoadMap, write: u32) -> impl Iterator<Item = &MapCell> {
    map.cells.iter().filter(move |cell| cell.write == write)
}

/// As a heat map.
pub fn chart(map: &LoadMap) -> Chart {
    let axis = |title: &str, quantity, scale| ChartAxis {
        title: title.to_owned(),
        quantity,
        scale,
        ends: Ends::Values,
    };
    let names = |values: Vec<f64>| Scale::Ordinal(values.into_iter().map(units::count).collect());
    let reads = row(map, 0).map(|cell| cell.read_iops).collect();
    let writes = (0..=map.steps).filter_map(|write| row(map, write).next());
    let writes = writes.map(|cell| cell.write_iops).collect();
    let mut panel = Panel::new(
        axis("Reads per second", Quantity::Rate, names(reads)),
        axis("Writes per second", Quantity::Rate, names(writes)),
    );
    let measured = map.cells.iter();
    let measured =
        measured.filter(|it| matches!(it.outcome, MapOutcome::Done | MapOutcome::Behind));
    let around = |n: f64| (n - 0.5, n + 0.5);
    let cells = measured.map(|cell| HeatCell {
        x: around(f64::from(cell.read) - 1.0),
        y: around(f64::from(cell.write)),
        // Of a queue that grows the latency is a matter of time.
        value: cell.latency_ns.filter(|_| cell.outcome == MapOutcome::Done),
    });
    panel.layers.push(Layer {
        name: None,
        shape: Shape::Cells(cells.collect()),
        ink: Ink::of_place(0),
    });
    let colors = axis(
        &format!("p{} of reads", map.percent),
        Quantity::Latency,
        Scale::Log10,
    );
    panel.colors = Some(ChartAxis {
        ends: Ends::Ticks,
        ..colors
    });
    let is_behind = |cell: &MapCell| cell.outcome == MapOutcome::Behind;
    let behind = map.cells.iter().any(is_behind);
    let behind = behind.then(|| "grey: less was done than was offered; more was not tried".into());
    Chart {
        title: format!("p{} of reads beside writes", map.percent),
        panels: vec![panel],
        footer: behind.into_iter().collect(),
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use fathom_analysis::find::{MapLoad, MapResult};

    use super::*;
    use fathom_sheet::chart::{Size, Theme};
    use fathom_sheet::style::Style;

    /// A device that does 1,000 I/Os a second in all, writes counting twice.
    fn map() -> LoadMap {
        let mut results = Vec::new();
        loop {
            let map = LoadMap::of(4, 99.0, &results);
            let Some(load) = map.next() else { return map };
            let (reads, writes) = match load {
                MapLoad::MostReads => (1000.0, 0.0),
                MapLoad::MostWrites => (0.0, 500.0),
                MapLoad::Offered {
                    read_iops,
                    write_iops,
                    ..
                } => (read_iops, write_iops),
            };
            let used: f64 = (reads + 2.0 * writes) / 1000.0;
            results.push(MapResult {
                load,
                read_iops: reads / used.max(1.0),
                write_iops: writes / used.max(1.0),
                latency_ns: (reads > 0.0).then(|| 1e5 / (1.01 - used.min(1.0))),
                seconds: 30.0,
            });
        }
    }

    #[test]
    fn what_is_more_than_too_much_is_left_out() {
        let map = map();
        let outcome = |read, write| {
            let found = map
                .cells
                .iter()
                .find(|it| (it.read, it.write) == (read, write));
            found.unwrap().outcome
        };
        assert_eq!(map.cells.len(), 4 * 5);
        assert_eq!(outcome(3, 1), MapOutcome::Done);
        assert_eq!(outcome(4, 1), MapOutcome::Behind);
        assert_eq!(outcome(4, 2), MapOutcome::LeftOut);
        assert!(
            map.cells
                .iter()
                .all(|cell| cell.outcome != MapOutcome::Open)
        );
    }

    #[test]
    fn a_map_is_a_table_and_a_graph() {
        let style = Style {
            color: false,
            width: Some(120),
        };
        let text = grid(&map()).render(style);
        assert!(text.contains("too much"), "{text}");
        assert_eq!(text.lines().count(), 7, "{text}");
        let svg = chart(&map()).svg(&Theme::LIGHT, Size::default());
        assert!(svg.starts_with("<svg"));
        assert_eq!(
            sentence(&map()).as_deref(),
            Some("500 reads/s have a p99 of 196 µs alone, and of 10.0 ms beside 250 writes/s")
        );
    }
}
