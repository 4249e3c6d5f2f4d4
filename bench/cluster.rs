//! What a run in a cluster takes beyond its I/O.
//!
//! `make bench-cluster` starts a single-node cluster, measures in full and writes
//! `bench/cluster.md` and `bench/cluster.json`.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a program for developers
#![allow(dead_code)] // its parts are those of other programs

use std::fs;
use std::path::Path;
use std::time::Instant;

use serde_json::Value;

#[path = "../crates/cli/tests/cluster/cluster.rs"]
mod cluster;
mod machine;
mod results;
mod timing;

use cluster::{Place, document};
use results::{Beside, Row};

/// Rounds, and the time of their I/O in s.
const ROUNDS: usize = 3;
const IO_S: u32 = 60;
/// Server pods.
const SERVERS: &str = "3";
/// What the whole may take beyond the I/O, in s.
const LIMIT_S: f64 = 15.0;

/// One run: its whole, and its parts in s.
struct Round {
    beyond: f64,
    start: f64,
    in_phase: f64,
    end: f64,
}

fn main() {
    let mut rounds: Vec<Round> = (0..ROUNDS).map(|_| round()).collect();
    let row = Row {
        what: "a run of three pods and one minute, beyond its I/O",
        unit: "s",
        value: middle(&mut rounds, |round| round.beyond),
        limit: Some(LIMIT_S),
        rounds: ROUNDS,
        beside: vec![
            Beside::new(
                "rights, pods and volumes",
                middle(&mut rounds, |round| round.start),
            ),
            Beside::new(
                "in the phase, laying out files",
                middle(&mut rounds, |round| round.in_phase),
            ),
            Beside::new(
                "logs, removal, figures",
                middle(&mut rounds, |round| round.end),
            ),
        ],
    };
    let machine = machine::Machine::here(Path::new(env!("CARGO_BIN_EXE_fathom")));
    let is_over = row.is_over();
    println!(
        "\n{}",
        results::markdown(&machine, std::slice::from_ref(&row))
    );
    let bench = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench");
    results::write(&bench, "cluster", &machine, &[row]).unwrap();
    if is_over {
        println!("over the limit");
        std::process::exit(1);
    }
}

fn middle(rounds: &mut [Round], part: impl Fn(&Round) -> f64) -> f64 {
    timing::median(&mut rounds.iter().map(part).collect::<Vec<_>>())
}

fn round() -> Round {
    let place = Place::new("bench");
    let job = place.file(
        "minute.fio",
        &format!(
            "[minute]\nrw=randread\ndirectory=/dataset\nsize=64m\nbs=4k\nioengine=libaio\ndirect=1\n\
             iodepth=4\nrate_iops=200\ntime_based=1\nruntime={IO_S}\n"
        ),
    );
    let mut command = place.small("job", &[&job, "--ninstances", SERVERS, "--json"]);
    let began = Instant::now();
    let output = command.output().unwrap();
    let whole = began.elapsed().as_secs_f64();
    assert!(output.status.success(), "{output:?}");
    let doc = document(&output);
    let jobs = doc["jobs"].as_array().unwrap().iter();
    let io = jobs
        .filter_map(|job| job["read"]["runtime_ms"].as_f64())
        .fold(0.0, f64::max)
        / 1000.0;
    let events = fs::read_to_string(place.record().join("events.jsonl")).unwrap();
    let at = |name: &str| -> f64 {
        let of = |line: &str| {
            serde_json::from_str::<Value>(line)
                .ok()
                .filter(|e| e["event"] == name)
        };
        events
            .lines()
            .find_map(of)
            .and_then(|event| event["at_ms"].as_f64())
            .unwrap()
            / 1000.0
    };
    place.wait_for_nothing();
    let (step, finished) = (at("step"), at("finished"));
    // What happens before the first event and after the last is counted with its
    // neighbours.
    let before = step - at("preparing");
    let in_phase = finished - step - io;
    Round {
        beyond: whole - io,
        start: before,
        in_phase,
        end: whole - io - before - in_phase,
    }
}
