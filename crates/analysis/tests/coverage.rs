//! Whether what is told of uncertainty holds: simulated series and comparisons whose
//! truth is known.
//!
//! The suite runs a small part. All of it takes a minute with optimisation, and writes
//! the tables of docs/METHODOLOGY.md:
//! `FATHOM_BLESS=1 cargo test --release -p fathom-analysis --test coverage`

// Without optimisation all of it would take an hour.
#![cfg_attr(debug_assertions, allow(dead_code, unused_imports))]

use std::fmt::Write as _;
use std::path::Path;

use fathom_analysis::compare::{CompareVerdict, FigureSides, RunValue, WhyNot, compare};
use fathom_analysis::correlated::CorrelatedMean;
use fathom_analysis::level_shift::{SHIFTS_MANY, level_shifts};

#[path = "../src/random.rs"]
mod random;

use random::Random;

impl Random {
    fn autoregressive(&mut self, n: usize, rho: f64) -> Vec<f64> {
        let mut x = self.normal();
        (0..n)
            .map(|_| {
                let value = x;
                x = rho * x + (1.0 - rho * rho).sqrt() * self.normal();
                value
            })
            .collect()
    }
}

type Series = Box<dyn Fn(&mut Random, usize) -> Vec<f64>>;

/// A process, and the mean it has in the long run.
struct Process {
    name: String,
    mean: f64,
    series: Series,
}

fn process(name: &str, mean: f64, series: Series) -> Process {
    let name = name.to_owned();
    Process { name, mean, series }
}

fn processes() -> Vec<Process> {
    let mut all = correlated();
    all.extend(heavy_tailed());
    all.extend(devices());
    all
}

fn correlated() -> Vec<Process> {
    let mut all = Vec::new();
    let mut add = |name: &str, mean, series| all.push(process(name, mean, series));
    for rho in [0.0, 0.3, 0.6, 0.8, 0.9, 0.95] {
        let name = match rho {
            0.0 => "independent".to_owned(),
            rho => format!("AR(1), ρ {rho}"),
        };
        add(
            &name,
            100.0,
            Box::new(move |random, n| {
                let each = random.autoregressive(n, rho).into_iter();
                each.map(|x| 100.0 + 5.0 * x).collect()
            }),
        );
    }
    all
}

fn heavy_tailed() -> Vec<Process> {
    let mut all = Vec::new();
    let mut add = |name: &str, mean, series| all.push(process(name, mean, series));
    add(
        "Student's t, 3 degrees",
        100.0,
        Box::new(|random, n| {
            let one = |random: &mut Random| {
                let squares: f64 = (0..3).map(|_| random.normal().powi(2)).sum();
                100.0 + random.normal() / (squares / 3.0).sqrt()
            };
            (0..n).map(|_| one(random)).collect()
        }),
    );
    add(
        "lognormal, σ 1",
        100.0 + 0.5f64.exp(),
        Box::new(|random, n| (0..n).map(|_| 100.0 + random.normal().exp()).collect()),
    );
    add(
        "Pareto, α 3",
        101.5,
        Box::new(|random, n| {
            (0..n)
                .map(|_| 100.0 + random.share().powf(-1.0 / 3.0))
                .collect()
        }),
    );
    all
}

/// What devices do: garbage collection, modes.
fn devices() -> Vec<Process> {
    let mut all = Vec::new();
    let mut add = |name: &str, mean, series| all.push(process(name, mean, series));
    for period in [10usize, 60] {
        add(
            &format!("garbage collection, period {period}"),
            91.0,
            Box::new(move |random, n| {
                let phase = (random.share() * period as f64) as usize;
                let level = |i: usize| {
                    if (i + phase) % period < period / 10 {
                        10.0
                    } else {
                        100.0
                    }
                };
                (0..n)
                    .map(|i| level(i) * (1.0 + 0.05 * random.normal()))
                    .collect()
            }),
        );
    }
    for switches in [5.0, 20.0, 50.0] {
        add(
            &format!("two levels, {switches} switches"),
            75.0,
            Box::new(move |random, n| {
                let mut is_high = random.share() < 0.5;
                (0..n)
                    .map(|_| {
                        is_high ^= random.share() < switches / n as f64;
                        (if is_high { 100.0 } else { 50.0 }) * (1.0 + 0.03 * random.normal())
                    })
                    .collect()
            }),
        );
    }
    all
}

/// What came of the trials of a cell, as shares of all of them.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    told: f64,
    wrong: f64,
    shifted: f64,
}

impl Cell {
    fn of(process: &Process, n: usize, trials: usize) -> Self {
        let mut random = Random::new(n as u64);
        let mut cell = Self::default();
        let each = 1.0 / trials as f64;
        for _ in 0..trials {
            let values = (process.series)(&mut random, n);
            if (1..SHIFTS_MANY).contains(&level_shifts(&values).len()) {
                cell.shifted += each;
                continue;
            }
            let mean = CorrelatedMean::of(&values).expect("more than two values");
            if let Some(half) = mean.half_width_95 {
                cell.told += each;
                if (mean.mean - process.mean).abs() > half {
                    cell.wrong += each;
                }
            }
        }
        cell
    }

    fn held(self) -> f64 {
        1.0 - self.wrong / self.told
    }

    /// `0.95`; in brackets the share of trials in which it was told, where not in all.
    fn shown(self) -> String {
        let held = match self.told {
            told if told < 0.005 => "too short".to_owned(),
            told if told < 0.3 => format!("({:.0} %)", 100.0 * told),
            told if told > 0.985 => format!("{:.3}", self.held()),
            told => format!("{:.3} ({:.0} %)", self.held(), 100.0 * told),
        };
        match self.shifted {
            share if share < 0.1 => held,
            share if share > 0.9 => "shift".to_owned(),
            share => format!("{held}, shift {:.0} %", 100.0 * share),
        }
    }
}

const LENGTHS: [usize; 6] = [60, 120, 300, 600, 1200, 3600];

/// Errors of a share of 2,000 trials are 0.5 %, three of them are allowed.
fn check(process: &Process, n: usize, cell: Cell, errors: f64) {
    let about = format!("{}, {n}: {cell:?}", process.name);
    assert!(cell.wrong <= 0.05 + errors, "{about}");
    let is_bounded = process.name.starts_with("AR") || process.name.starts_with('i');
    if cell.told >= 0.3 && is_bounded {
        assert!(
            (0.93 - errors..=0.97 + errors).contains(&cell.held()),
            "{about}"
        );
    }
    if cell.told >= 0.3 && process.name.starts_with("garbage") {
        assert!(cell.held() >= 0.93, "{about}");
    }
    if process.name == "two levels, 5 switches" && n >= 120 {
        assert!(cell.shifted >= 0.9, "{about}");
    }
}

#[test]
fn intervals_hold_what_they_promise() {
    for process in processes() {
        for n in [60, 300] {
            let trials = 120;
            // Three standard errors of a share of 5 %.
            check(&process, n, Cell::of(&process, n, trials), 0.06);
        }
    }
}

#[cfg(not(debug_assertions))]
#[test]
fn intervals_hold_in_two_thousand_trials_of_each_kind() {
    let mut table = String::from("| series |");
    LENGTHS
        .iter()
        .for_each(|n| write!(table, " {n} |").unwrap());
    table += &format!("\n|---|{}\n", "---|".repeat(LENGTHS.len()));
    for process in processes() {
        write!(table, "| {} |", process.name).unwrap();
        for n in LENGTHS {
            let cell = Cell::of(&process, n, 2000);
            check(&process, n, cell, 0.015);
            write!(table, " {} |", cell.shown()).unwrap();
        }
        table.push('\n');
    }
    in_methodology("coverage", &table);
}

/// How figures of runs vary though nothing differs.
#[derive(Debug, Clone, Copy)]
enum Variation {
    Independent,
    /// Neighbouring runs are alike, and all grow slower; measured in turn.
    DriftInTurn,
    /// The same, one side after the other.
    DriftInSequence,
    Bimodal,
}

/// A table of figures that rise and fall with each other, of two equal sides.
fn equal_sides(random: &mut Random, variation: Variation, runs: usize) -> Vec<FigureSides> {
    const FIGURES: usize = 12;
    let noise: Vec<f64> = match variation {
        Variation::Independent => (0..2 * runs).map(|_| 0.03 * random.normal()).collect(),
        Variation::Bimodal => {
            let mode = |random: &mut Random| if random.share() < 0.5 { 0.0 } else { 0.4 };
            (0..2 * runs)
                .map(|_| mode(random) + 0.01 * random.normal())
                .collect()
        }
        Variation::DriftInTurn | Variation::DriftInSequence => {
            let own = random.autoregressive(2 * runs, 0.3);
            let slope = 0.04 * random.share();
            let each = own.iter().enumerate();
            each.map(|(n, x)| 0.01 * x - slope * n as f64).collect()
        }
    };
    let place = |side: usize, n: usize| match variation {
        Variation::DriftInSequence => side * runs + n,
        // A B, B A, A B: what changes steadily changes both alike.
        _ => 2 * n + (side + n) % 2,
    };
    (0..FIGURES)
        .map(|_| {
            let mut side = |side: usize| -> Vec<RunValue> {
                let each = (0..runs).map(|n| place(side, n));
                each.map(|at| RunValue {
                    value: (noise[at] + 0.01 * random.normal()).exp(),
                    own_error: Some(0.005),
                    at_ms: at as u64 * 60_000,
                })
                .collect()
            };
            let (a, b) = (side(0), side(1));
            FigureSides {
                a,
                b,
                more_is_better: true,
                ..FigureSides::default()
            }
        })
        .collect()
}

/// Share of tables of equal sides with any difference told.
fn false_differences(variation: Variation, runs: usize, tables: usize) -> f64 {
    let mut random = Random::new(runs as u64);
    let wrong = (0..tables).filter(|_| {
        let found = compare(&equal_sides(&mut random, variation, runs), 0.02);
        found.iter().any(|figure| {
            matches!(
                figure.verdict,
                CompareVerdict::Faster | CompareVerdict::Slower
            )
        })
    });
    wrong.count() as f64 / tables as f64
}

#[test]
fn equal_sides_are_seldom_told_apart() {
    for variation in [
        Variation::Independent,
        Variation::DriftInTurn,
        Variation::DriftInSequence,
        Variation::Bimodal,
    ] {
        let wrong = false_differences(variation, 4, 120);
        // Three standard errors of a share of 5 %.
        assert!(wrong <= 0.11, "{variation:?}: {wrong}");
    }
}

#[cfg(not(debug_assertions))]
#[test]
fn equal_sides_are_told_apart_in_one_table_of_twenty_at_most() {
    let mut table = "| runs vary | 3 and 3 | 5 and 5 | 10 and 10 |\n|---|---|---|---|\n".to_owned();
    for (name, variation) in [
        ("independently", Variation::Independent),
        ("with a drift, measured in turn", Variation::DriftInTurn),
        (
            "with a drift, one side after the other",
            Variation::DriftInSequence,
        ),
        ("between two modes", Variation::Bimodal),
    ] {
        write!(table, "| {name} |").unwrap();
        for runs in [3, 5, 10] {
            let wrong = false_differences(variation, runs, 2000);
            assert!(wrong <= 0.05, "{variation:?}, {runs}: {wrong}");
            write!(table, " {:.1} % |", 100.0 * wrong).unwrap();
        }
        table.push('\n');
    }
    in_methodology("equal sides", &table);
}

#[test]
fn ten_percent_are_told_in_ten_pairs() {
    let mut random = Random::new(7);
    let told = (0..200).filter(|_| {
        let mut side = |mean: f64, first: u64| -> Vec<RunValue> {
            let each = (0..10u64).map(|n| RunValue {
                value: mean * (1.0 + 0.04 * random.normal()),
                own_error: None,
                at_ms: first + 2 * n,
            });
            each.collect()
        };
        let sides = FigureSides {
            a: side(2000.0, 0),
            b: side(2200.0, 1),
            more_is_better: true,
            ..FigureSides::default()
        };
        compare(&[sides], 0.02)[0].verdict == CompareVerdict::Faster
    });
    assert!(told.count() >= 180);
}

#[test]
fn what_is_not_enough_is_told_as_such() {
    let mut random = Random::new(3);
    let sides = equal_sides(&mut random, Variation::Independent, 1);
    for figure in compare(&sides, 0.02) {
        assert_eq!(figure.why_not, Some(WhyNot::SpreadUnknown));
    }
}

/// Writes a table into docs/METHODOLOGY.md between its marks, or finds it there.
fn in_methodology(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/METHODOLOGY.md");
    let text = std::fs::read_to_string(&path).expect("docs/METHODOLOGY.md");
    let (begin, end) = (
        format!("<!-- {name}: made by a test -->\n"),
        format!("<!-- {name}: end -->"),
    );
    let from = text.find(&begin).expect("the mark of the table") + begin.len();
    let to = text.find(&end).expect("the mark of its end");
    if std::env::var_os("FATHOM_BLESS").is_some() {
        let whole = format!("{}{table}{}", &text[..from], &text[to..]);
        std::fs::write(&path, whole).expect("docs/METHODOLOGY.md");
        return;
    }
    assert_eq!(&text[from..to], table, "FATHOM_BLESS=1 writes it");
}
