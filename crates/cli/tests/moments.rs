//! The first and the last moments of a run: a kill before anything was measured or after
//! everything was, and runs of any kind that are looked at while they go on.

use std::fs;
use std::path::{Path, PathBuf};

use fathom_testkit::{ProgramUnderTest, await_that, signal};
use serde_json::Value;

const JOB: &str = "[a]\nrw=randread\nfilename=x\nsize=1m\nbs=4k\ntime_based\nruntime=3\n";

fn program() -> ProgramUnderTest {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("a.fio", JOB);
    program
}

fn json(program: &ProgramUnderTest, args: &[&str]) -> Value {
    serde_json::from_slice(&program.good(args).stdout).unwrap()
}

/// Takes the lines from the first event of this kind on away, as a kill before it would.
fn cut_before(record: &Path, event: &str) {
    let log = record.join("events.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let at = text.find(&format!("\"event\":\"{event}\"")).unwrap();
    let line = text[..at].rfind('\n').unwrap() + 1;
    fs::write(&log, &text[..line]).unwrap();
}

fn last(program: &ProgramUnderTest) -> PathBuf {
    program.records().pop().unwrap()
}

/// Every kind that runs under sim, with its arguments.
const KINDS: [&[&str]; 5] = [
    &["repeat", "a.fio", "--times", "2"],
    &["soak", "a.fio", "--hours", "0.002", "--period", "4s"],
    &["job", "run", "a.fio"],
    &["find", "a.fio", "--knee"],
    &["ab", "a.fio", "--b", "a.bs=8k", "--each", "1s"],
];

#[test]
fn a_run_that_was_killed_after_its_last_step_is_complete_once_resumed() {
    for kind in KINDS {
        let program = program();
        program.good(&[kind, &["--engine", "sim", "-q"]].concat());
        let record = last(&program);
        let status = || json(&program, &["status", "--json"])["status"].clone();
        assert_eq!(status(), "complete", "{kind:?}");
        cut_before(&record, "ended");
        assert_eq!(status(), "interrupted", "{kind:?}");
        program.good(&["resume", "-q"]);
        assert_eq!(status(), "complete", "{kind:?}");
        // Then there is nothing to do, and nothing is written.
        let before = fs::read(record.join("events.jsonl")).unwrap();
        program.good(&["resume", "-q"]);
        assert_eq!(fs::read(record.join("events.jsonl")).unwrap(), before);
    }
}

#[test]
fn a_run_that_was_killed_before_its_plan_was_written_says_so() {
    let program = program();
    program.good(&["job", "run", "a.fio", "--engine", "sim", "-q"]);
    let record = last(&program);
    cut_before(&record, "step");
    fs::remove_file(record.join("plan.jsonl")).unwrap();
    let refused = program.run(&["resume"]);
    let told = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(4), "{told}");
    assert!(told.contains("stopped before its first step"), "{told}");
    assert!(told.contains("to do: start it again"), "{told}");
}

#[test]
fn a_run_that_is_killed_leaves_no_file_without_use() {
    let program = program();
    let mut child = program.start(&["job", "run", "a.fio", "--engine", "native", "-q"]);
    // Until then the plan has a name of its own, under which the next start writes it.
    await_that("the plan is there", || {
        let record = program.records().pop();
        record.is_some_and(|it| it.join("plan.jsonl").exists())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let names = fs::read_dir(last(&program)).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    let hidden = names
        .iter()
        .filter(|name| name.to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "{names:?}");
}

#[test]
fn a_soak_takes_as_long_as_its_hours_say() {
    let program = program();
    let soak = |more: &[&str]| {
        let args = [&["soak", "a.fio", "--engine", "sim", "--json", "-q"], more].concat();
        json(&program, &args)
    };
    let short = soak(&["--hours", "0.01"]);
    assert_eq!(short["period_ms"], 36_000);
    assert_eq!(short["periods"].as_array().unwrap().len(), 1);
    let uneven = soak(&["--hours", "0.015", "--period", "36s"]);
    assert_eq!(uneven["period_ms"], 27_000);
    assert_eq!(uneven["periods"].as_array().unwrap().len(), 2);
}

#[test]
fn status_and_watch_find_runs_of_every_kind_in_any_folder() {
    let program = program();
    fs::create_dir(program.path().join("lab")).unwrap();
    for kind in KINDS {
        let runs = program.path().join("lab/fathom-runs");
        let _ = fs::remove_dir_all(&runs);
        let runs = runs.to_str().unwrap();
        program.good(&[kind, &["--runs", runs, "--engine", "sim", "-q"]].concat());
        let id = fs::read_dir(runs)
            .unwrap()
            .next()
            .unwrap()
            .unwrap()
            .file_name();
        for command in ["status", "watch"] {
            let doc = json(&program, &[command, "-C", "lab", "--json"]);
            assert_eq!(doc["id"], id.to_str().unwrap(), "{kind:?}: {doc}");
        }
    }
}

#[test]
fn what_runs_now_is_shown_before_the_last_of_a_campaign() {
    let program = program();
    let long = JOB.replace("runtime=3", "runtime=600");
    program.file("long.fio", &long);
    let mut child = program.start(&["job", "run", "long.fio", "--engine", "native", "-q"]);
    await_that("it runs", || {
        let status = program.run(&["status", "--json"]);
        serde_json::from_slice::<Value>(&status.stdout).is_ok_and(|doc| doc["status"] == "running")
    });
    // Later, and over.
    program.good(&["job", "run", "a.fio", "--engine", "sim", "-q"]);
    let doc = json(&program, &["status", "--json"]);
    signal(&child, "-INT");
    child.wait().unwrap();
    assert_eq!(doc["status"], "running", "{doc}");
}
