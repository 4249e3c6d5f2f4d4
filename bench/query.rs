//! Questions to many runs in SQL.

use std::fs;
use std::process::Command;

use crate::results::{Beside, Row};
use crate::timing::take_turns;
use crate::{Lab, inputs};

/// Runs of a minute, a sample a second and direction.
const RUNS: usize = 1000;
const SECONDS: u64 = 60;
const FIGURES: &str = "SELECT run, dir, iops, clat_p99_ns, verdict FROM figures ORDER BY iops";
const SAMPLES: &str = "SELECT dir, avg(iops), max(clat_p99_ns) FROM samples GROUP BY dir";

fn asked(lab: &Lab, words: &[&str]) -> Command {
    let mut command = Command::new(&lab.fathom);
    command.arg("--runs").arg(lab.path("asked"));
    command.args(["query", "--format", "csv"]).args(words);
    command
}

/// The figures of all runs: from the records, then from the index.
pub fn figures(lab: &Lab) -> Row {
    let rounds = lab.rounds(5);
    let runs = if lab.full { RUNS } else { 3 };
    for _ in 0..runs {
        inputs::long_record(&lab.path("asked"), SECONDS);
    }
    let db = lab.path("many.db");
    let db = db.to_str().unwrap();
    let first = take_turns(rounds, &mut [asked(lab, &[FIGURES])])[0];
    let made = take_turns(1, &mut [asked(lab, &[FIGURES, "--db", db])])[0];
    let again = take_turns(rounds, &mut [asked(lab, &[FIGURES, "--db", db])])[0];
    let samples = take_turns(1, &mut [asked(lab, &[SAMPLES])])[0];
    Row {
        what: "`fathom query` of the figures of 1,000 runs, from their index",
        unit: "ms",
        value: again,
        limit: Some(300.0),
        rounds,
        beside: vec![
            Beside::new("from the records (limit 3000)", first),
            Beside::new("making the index", made),
            Beside::new("of 120,000 samples", samples),
            Beside::new("MB of index", fs::metadata(db).unwrap().len() as f64 / 1e6),
        ],
    }
}
