//! `fathom find`: how much load is enough, and how much a latency allows.

use std::fs;

use fathom_testkit::ProgramUnderTest;
use serde_json::Value;

const JOB: &str = "[a]\nrw=randread\nfilename=x\nsize=4m\nbs=4k\ntime_based\nruntime=3\n";

fn program() -> ProgramUnderTest {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("a.fio", JOB);
    program
}

fn json(program: &ProgramUnderTest, args: &[&str]) -> Value {
    let output = program
        .command(&[args, &["--json", "-q"]].concat())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_knee_of_a_simulated_drive_is_found_and_the_record_says_the_same() {
    let program = program();
    let found = json(
        &program,
        &["find", "a.fio", "--knee", "--to", "64", "--engine", "sim"],
    );
    assert_eq!(found["schema"], "fathom.find/1");
    let probes = found["probes"].as_array().unwrap();
    // Every depth was looked at.
    assert!(probes.len() >= 7, "{probes:?}");
    let load = found["answer"]["load"].as_f64().unwrap();
    assert!([1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0].contains(&load));
    let shown = json(&program, &["show"]);
    assert_eq!(shown["jobs"].as_array().unwrap().len(), probes.len());
}

#[test]
fn a_limit_on_a_simulated_drive_is_kept_by_what_is_found() {
    let program = program();
    let args = [
        "find", "a.fio", "--p99", "2ms", "--closed", "--engine", "sim",
    ];
    let found = json(&program, &args);
    let answer = &found["answer"];
    match answer["load"].as_f64() {
        Some(_) => assert!(answer["latency_ns"].as_f64().unwrap() <= 2e6, "{answer}"),
        None => assert_eq!(answer["ended_by"], "nothing"),
    }
}

#[test]
fn a_rate_is_found_for_real() {
    let program = program();
    let job = JOB.replace("[a]\n", "[a]\nioengine=psync\n");
    program.file("a.fio", &job);
    let args = [
        "find", "a.fio", "--p99", "500ms", "--probe", "300ms", "--look", "300ms",
    ];
    let found = json(&program, &args);
    let answer = &found["answer"];
    // What a busy machine can take is its own affair.
    match answer["load"].as_f64() {
        Some(rate) => assert!(rate > 0.0, "{answer}"),
        None => assert_eq!(answer["ended_by"], "nothing", "{answer}"),
    }
    assert!(found["probes"].as_array().unwrap().len() <= 40);
    let text = fs::read_to_string(program.records()[0].join("events.jsonl")).unwrap();
    assert!(text.contains("\"native\""));
}

#[test]
fn what_an_engine_cannot_do_is_refused() {
    let program = program();
    for engine in ["fio", "sim"] {
        let output = program
            .command(&["find", "a.fio", "--p99", "1ms", "--engine", engine])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("--closed"));
    }
    let output = program
        .command(&["find", "a.fio", "--engine", "sim"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}
