//! Conditions of plan files, judged by documents of runs.

use fathom_model::{Exit, RunDocument};
use fathom_planfile::{Study, evaluate, exit};
use fathom_testkit::ProgramUnderTest;

const STUDY: &str = r#"
assert = [
  "mix.read.iops >= 1k",
  "mix.write.bw > 1MB/s",
  "mix.read.p99.9 <= 1s",
  "mix.read.slat.p99 <= 1s",
  "seq.read.n >= 1",
  "seq.read.iops < 1",
]
[[step]]
job = "mix.fio"
[[step]]
job = "seq.fio"
"#;

/// Runs the job files on the simulated device, and gives the document.
fn measured(program: &ProgramUnderTest, files: &[&str]) -> RunDocument {
    let mut args = vec!["job", "run", "--engine", "sim", "--json"];
    args.extend(files);
    let output = program.run(&args);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
}

#[test]
fn conditions_are_judged_by_the_document_of_a_run() {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    let job = |rw: &str| format!("[{rw}]\nrw={rw}\nfilename=x\nsize=1g\ntime_based\nruntime=20\n");
    program.file("mix.fio", &job("randrw"));
    program.file("seq.fio", &job("read"));
    let study = Study::read(&program.file("study.toml", STUDY), &|_| None).unwrap();
    let run = measured(&program, &["mix.fio", "seq.fio"]);
    let verdicts = evaluate(&study.assertions, &run);
    let holds: Vec<bool> = verdicts.iter().map(|verdict| verdict.holds).collect();
    let words = verdicts.iter().map(ToString::to_string);
    let words: Vec<String> = words.collect();
    assert_eq!(holds, [true, true, true, false, true, false], "{words:#?}");
    assert!(
        words[3].contains("the record of randrw has no such figure"),
        "{words:#?}"
    );
    assert_eq!(exit(&verdicts), Exit::ConditionFailed);
    // A run of one step does not name it.
    let run = measured(&program, &["mix.fio"]);
    assert_eq!(exit(&evaluate(&study.assertions[..3], &run)), Exit::Success);
}
