//! `fathom ab` on real devices: how often a setting differs from itself, and whether a real
//! tenth is told.

use std::fmt::Write as _;

use fathom_testkit::Throttle;
use serde_json::{Value, json};

use crate::{Lab, Place, THROTTLE_IOPS};

/// Comparisons of a setting with itself, on all places together.
const EQUAL: usize = 20;
/// So many of them may tell a difference.
const FALSE_MOST: usize = 2;
/// Comparisons of settings that differ by a tenth, each kind.
const TENTHS: usize = 10;
/// So many of them have to be told.
const TOLD_LEAST: usize = 9;
/// Pairs of each comparison at the most.
const PAIRS: &str = "10";
/// How long each measurement takes; a throttle is exact over a second.
const EACH: &str = "400ms";
const EACH_THROTTLED: &str = "1s";
/// What think time makes a tenth: a sleep takes some 60 µs longer than it is to.
const THINK_US: (u32, u32) = (1000, 905);

/// What is measured, in full or short.
pub fn measured(lab: &Lab, places: &[Place<'_>], is_full: bool) -> Value {
    let often = |full: usize| if is_full { full } else { 1 };
    let equal = (0..often(EQUAL)).map(|nth| {
        let place = &places[nth % places.len()];
        row(
            lab,
            place,
            "the same twice",
            &lab.job(place, "iodepth=8\n"),
            &[],
        )
    });
    let mut rows: Vec<Value> = equal.collect();
    for (place, nth) in places
        .iter()
        .flat_map(|place| (0..often(TENTHS)).map(move |n| (place, n)))
    {
        // Every second one the other way round.
        let turned = |sides: (String, String)| match nth % 2 {
            0 => sides,
            _ => (sides.1, sides.0),
        };
        if let Some(throttle) = place.throttle {
            let limit = |iops: u32| throttle.limit_command(iops);
            let sides = turned((limit(THROTTLE_IOPS), limit(THROTTLE_IOPS / 10 * 11)));
            let does = ["--a-do", &sides.0, "--b-do", &sides.1];
            let job = lab.job(place, "iodepth=8\n");
            rows.push(row(lab, place, "a tenth of the limit", &job, &does));
        } else if place.name == "zram" {
            let think = |us: u32| format!("job.thinktime={us}us");
            let sides = turned((think(THINK_US.0), think(THINK_US.1)));
            let does = ["--a", &sides.0, "--b", &sides.1];
            let job = lab.job(place, "iodepth=1\nthinktime=1ms\n");
            rows.push(row(lab, place, "a tenth by think time", &job, &does));
        }
    }
    // As it was.
    let limits = places.iter().filter_map(|place| place.throttle);
    limits.for_each(|throttle: &Throttle| throttle.limit(THROTTLE_IOPS).unwrap());
    Value::Array(rows)
}

/// One comparison.
fn row(lab: &Lab, place: &Place<'_>, what: &str, job: &str, sides: &[&str]) -> Value {
    let each = match place.throttle {
        Some(_) if !sides.is_empty() => EACH_THROTTLED,
        _ => EACH,
    };
    let ab = ["ab", job, "--pairs", PAIRS, "--each", each];
    let found = lab.run(place, &[&ab[..], sides].concat());
    let of = |name: &str| found["rows"][0][name].clone();
    let row = json!({
        "what": what,
        "place": place.name,
        "verdict": of("verdict"),
        "ratio": of("ratio"),
        "pairs": of("pairs"),
    });
    println!("{row}");
    row
}

/// What came of comparisons of one kind: how many there are, how many told a difference.
fn told(rows: &[Value], what: &str) -> (usize, Vec<Value>) {
    let of = rows.iter().filter(|row| row["what"] == what);
    let is_told = |row: &&Value| row["verdict"] == "faster" || row["verdict"] == "slower";
    (of.clone().count(), of.filter(is_told).cloned().collect())
}

/// Of how many kinds too few or too many differences were told.
pub fn misses(rows: &Value) -> usize {
    let rows = rows.as_array().unwrap();
    let equal = told(rows, "the same twice").1.len() > FALSE_MOST;
    let tenths = ["a tenth of the limit", "a tenth by think time"];
    let missed = tenths
        .iter()
        .filter(|what| told(rows, what).1.len() < TOLD_LEAST);
    usize::from(equal) + missed.count()
}

/// The part of the page.
pub fn page(rows: &Value) -> String {
    let rows = rows.as_array().unwrap();
    let mut page = "\n## Settings in pairs\n\n| `fathom ab` of | comparisons | told | pairs (mean) | ratios |\n|---|---|---|---|---|\n".to_owned();
    for what in [
        "the same twice",
        "a tenth of the limit",
        "a tenth by think time",
    ] {
        let (all, told) = told(rows, what);
        let figures =
            |name: &str| -> Vec<f64> { told.iter().filter_map(|row| row[name].as_f64()).collect() };
        let (pairs, ratios) = (figures("pairs"), figures("ratio"));
        let mean = match pairs.is_empty() {
            true => "–".to_owned(),
            false => format!("{:.1}", pairs.iter().sum::<f64>() / pairs.len() as f64),
        };
        let ratios = ratios.iter().map(|ratio| format!("{ratio:.3}"));
        let ratios = ratios.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            page,
            "| {what} | {all} | {} | {mean} | {ratios} |",
            told.len()
        );
    }
    let _ = write!(
        page,
        "\nAt most {PAIRS} pairs of {EACH}, of {EACH_THROTTLED} where limits differ. The same setting twice on all three devices: at most {FALSE_MOST} of {EQUAL} may tell a difference. {THROTTLE_IOPS} against {} IOPS of the throttled device, {} against {} µs of think time on zram, every second time the other way round: {TOLD_LEAST} of {TENTHS} have to be told.\n",
        THROTTLE_IOPS / 10 * 11,
        THINK_US.0,
        THINK_US.1,
    );
    page
}
