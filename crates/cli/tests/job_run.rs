//! `fathom job run` and `fathom engines` with the real fio, as a user meets them.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read};
use std::ops::Deref;
use std::path::Path;
use std::process::{Child, Command, Output};

use fathom_model::FailureKind;
use fathom_testkit::{
    LoopDevice, ProgramUnderTest, SmallFs, await_that, require, signal, signal_until_it_ends,
};
use serde_json::Value;

const LONG: &str =
    "[global]\nsize=1m\ntime_based\nruntime=600\nrw=randread\nrate_iops=500\n[a]\nnumjobs=4\n";

/// Fathom in a folder of its own, where trigger files are looked for too.
struct Bench(ProgramUnderTest);

impl Deref for Bench {
    type Target = ProgramUnderTest;

    fn deref(&self) -> &ProgramUnderTest {
        &self.0
    }
}

impl Bench {
    fn new() -> Self {
        Self(ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom")))
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    }

    /// Starts a run and waits for its first interval, which it tells on stderr.
    fn start(&self, args: &[&str]) -> (Child, BufReader<std::process::ChildStderr>) {
        let mut child = self.command(args).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("IOPS") {
            line.clear();
            assert!(
                stderr.read_line(&mut line).unwrap() > 0,
                "the run ended early"
            );
        }
        (child, stderr)
    }

    /// Command lines that name this folder.
    fn processes(&self) -> Vec<String> {
        let own = self.path().to_str().unwrap();
        let mut found = Vec::new();
        for entry in fs::read_dir("/proc").unwrap().flatten() {
            let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            // fio's command line names a descriptor instead of the job file: find it by its folder.
            let folder = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            if command.contains(own) || folder.starts_with(own) {
                found.push(command);
            }
        }
        found
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_run_is_recorded_and_its_document_printed() {
    let bench = Bench::new();
    let written = "[global]\nsize=${SIZE}\n[a] ; the only one\nrw=randread\n";
    bench.file("small.fio", written);
    let output = bench
        .command(&["job", "run", "small.fio", "--json"])
        .env("SIZE", "256k")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(doc["status"], "complete");
    assert_eq!(doc["jobs"][0]["read"]["total_ios"], 64);
    assert!(doc["jobs"][0]["read"]["iops"].is_number());
    let [record] = &bench.records()[..] else {
        panic!("one record")
    };
    let as_run = fs::read_to_string(record.join("jobs/small.fio")).unwrap();
    assert!(
        as_run.contains("size=256k"),
        "variables are resolved: {as_run}"
    );
    let kept = fs::read_to_string(record.join("jobs/small.fio.as-written")).unwrap();
    assert_eq!(kept, written);
    assert!(record.join("raw/fio.out").exists());
    assert_eq!(bench.json(&["show", "--json"])["status"], "complete");
}

/// fio puts nothing in the place of a variable that is not set, and runs.
#[test]
fn a_path_with_a_variable_that_is_not_set_is_refused() {
    let bench = Bench::new();
    // Without it this is the file "f" of the folder that the run is in.
    bench.file(
        "a.fio",
        "[a]\nfilename=./${FATHOM_UNSET}f\nrw=write\nsize=4k\n",
    );
    for args in [
        &["job", "run", "a.fio"][..],
        &["job", "run", "a.fio", "--engine=native"],
        &["job", "check", "a.fio"],
        &["job", "show", "a.fio"],
    ] {
        let output = bench.command(args).env_remove("FATHOM_UNSET").output();
        let output = output.unwrap();
        let said = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(3), "{args:?}: {said}");
        assert!(said.contains("FATHOM_UNSET is not set"), "{args:?}: {said}");
    }
    assert!(!bench.path().join("f").exists() && bench.records().is_empty());
    let output = bench
        .command(&["job", "run", "a.fio"])
        .env("FATHOM_UNSET", "x")
        .output();
    assert_eq!(output.unwrap().status.code(), Some(0));
    assert!(bench.path().join("xf").exists());
}

#[test]
fn a_variable_of_a_setting_is_replaced_before_anything_is_judged() {
    let bench = Bench::new();
    bench.file("a.fio", "[a]\nrw=write\nsize=4k\n");
    let args = ["job", "show", "a.fio", "--set", "filename=${FATHOM_X}/f"];
    let shown = bench.command(&args).env("FATHOM_X", "there").output();
    let shown = String::from_utf8(shown.unwrap().stdout).unwrap();
    assert!(shown.contains("filename=there/f"), "{shown}");
    let output = bench.command(&args).env_remove("FATHOM_X").output();
    assert_eq!(output.unwrap().status.code(), Some(3));
}

#[test]
fn several_files_are_steps_and_a_failed_one_does_not_keep_the_next() {
    let bench = Bench::new();
    bench.file("one.fio", "[a]\nrw=read\nsize=64k\nioengine=nosuch\n");
    bench.file("two.fio", "[b]\nrw=read\nsize=64k\n");
    let output = bench.run(&[
        "job", "run", "--engine", "fio", "--json", "one.fio", "two.fio", "--name", "both",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(doc["status"], "failed");
    assert_eq!(doc["jobs"][0]["step"], "two");
    assert_eq!(doc["failures"][0]["kind"], "engine_missing");
    let record = &bench.records()[0];
    assert!(record.to_str().unwrap().ends_with("-both"));
    assert!(record.join("jobs/01-one.fio").exists());
    assert!(record.join("raw/02-two/fio.out").exists());
}

#[test]
fn a_job_given_as_fio_options_runs() {
    let bench = Bench::new();
    let args = [
        "job",
        "run",
        "--json",
        "--",
        "--max-jobs=8",
        "--name=a",
        "--rw=read",
        "--size=64k",
    ];
    let doc = bench.json(&args);
    assert_eq!(doc["status"], "complete");
    assert_eq!(
        (&doc["name"], &doc["jobs"][0]["name"]),
        (&"a".into(), &"a".into())
    );
}

#[test]
fn sections_and_settings_choose_what_runs() {
    let bench = Bench::new();
    bench.file(
        "two.fio",
        "[a]\nrw=read\nsize=64k\n[b]\nrw=read\nsize=64k\n",
    );
    let doc = bench.json(&[
        "job",
        "run",
        "--json",
        "two.fio",
        "--section=b",
        "--set",
        "size=128k",
    ]);
    assert_eq!(doc["jobs"].as_array().unwrap().len(), 1);
    assert_eq!(doc["jobs"][0]["name"], "b");
    assert_eq!(doc["jobs"][0]["read"]["io_bytes"], 131_072);
    // Given behind the --, nobody waits for the report of the other.
    let doc = bench.json(&["job", "run", "--json", "two.fio", "--", "--section", "b"]);
    assert_eq!(doc["status"], "complete", "{}", doc["failures"]);
    let output = bench.run(&["job", "run", "two.fio", "--section=c"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
}

#[test]
fn what_fio_wrote_is_written_as_it_is() {
    let bench = Bench::new();
    bench.file("small.fio", "[a]\nrw=read\nsize=64k\n");
    for (format, begin) in [
        ("normal", "a: (g=0)"),
        ("terse", "3;fio-"),
        ("json+", "{\n"),
        ("json,normal", "a: (g=0)"),
        ("json,terse", "3;fio-"),
    ] {
        let output = bench.run(&["job", "run", "-q", "small.fio", "--output-format", format]);
        assert!(
            String::from_utf8_lossy(&output.stdout).starts_with(begin),
            "{output:?}"
        );
    }
    let args = [
        "job",
        "run",
        "-q",
        "small.fio",
        "--output-format=json",
        "--output=out.json",
    ];
    let output = bench.run(&args);
    assert!(output.stdout.is_empty());
    let text = fs::read_to_string(bench.path().join("out.json")).unwrap();
    assert!(!text.contains("\"bins\""));
    let doc: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(doc["jobs"][0]["read"]["total_ios"], 16);
}

#[test]
fn nothing_survives_a_kill_of_fathom() {
    let bench = Bench::new();
    bench.file("long.fio", LONG);
    let (mut child, _stderr) = bench.start(&["job", "run", "long.fio", "--interval=200ms"]);
    let before = bench.processes();
    assert!(
        before.len() >= 5,
        "fio and its four forked jobs: {before:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    await_that("nothing is left of fio", || bench.processes().is_empty());
    let doc = bench.json(&["show", "--json"]);
    assert_eq!(doc["status"], "interrupted");
    let jobs = doc["jobs"].as_array().unwrap();
    assert!(
        jobs.iter()
            .any(|job| job["read"]["total_ios"].as_u64() > Some(0))
    );
}

#[test]
fn ctrl_c_keeps_the_record_and_ends_with_130() {
    let bench = Bench::new();
    bench.file("long.fio", LONG);
    let (child, _stderr) = bench.start(&["job", "run", "long.fio", "--json", "--interval=200ms"]);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(doc["status"], "interrupted");
    assert_eq!(doc["jobs"].as_array().unwrap().len(), 4);
    assert!(bench.processes().is_empty(), "{:?}", bench.processes());
}

#[test]
fn a_second_ctrl_c_does_not_wait_for_fio() {
    let bench = Bench::new();
    bench.file("long.fio", LONG);
    let (child, _stderr) = bench.start(&["job", "run", "long.fio", "--interval=200ms"]);
    let fio = fs::read_to_string(bench.records()[0].join("events.jsonl")).unwrap();
    let started = fio
        .lines()
        .find(|line| line.contains("engine_started"))
        .unwrap();
    let pid = serde_json::from_str::<Value>(started).unwrap()["pid"].to_string();
    // fio that does not answer: SIGINT stays pending.
    assert!(
        Command::new("kill")
            .args(["-STOP", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = signal_until_it_ends(child, "-INT");
    assert_eq!(output.status.code(), Some(130));
    assert!(bench.processes().is_empty(), "{:?}", bench.processes());
}

#[test]
fn the_state_is_shown_on_demand_and_the_run_goes_on() {
    let bench = Bench::new();
    bench.file("long.fio", LONG);
    let (child, mut told) = bench.start(&["job", "run", "long.fio"]);
    let text = std::thread::spawn(move || {
        let mut text = String::new();
        told.read_to_string(&mut text).map(|_| text)
    });
    let log = bench.records()[0].join("events.jsonl");
    let count = |event: &str| {
        let events = fs::read_to_string(&log).unwrap();
        events.matches(&format!("\"event\":\"{event}\"")).count()
    };
    signal(&child, "-USR1");
    await_that("a status", || count("status") == 1);
    let trigger = bench.path().join("fathom-dump-status");
    fs::write(&trigger, "").unwrap();
    await_that("another status", || count("status") == 2);
    assert!(!trigger.exists(), "the trigger file is taken away");
    let before = count("interval");
    await_that("it goes on", || count("interval") > before + 1);
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let text = text.join().unwrap().unwrap();
    // A document of fio that comes late, so that the next follows at once, passes for one that
    // fio was asked for: on a busy machine there is one more.
    let jobs = text.matches("read clat").count();
    assert!(
        jobs >= 8 && jobs % 4 == 0,
        "two states of four jobs: {text}"
    );
}

#[test]
fn a_closed_stdout_does_not_harm_the_record() {
    let bench = Bench::new();
    bench.file("small.fio", "[a]\nrw=read\nsize=64k\n");
    let mut child = bench
        .command(&["job", "run", "-q", "small.fio"])
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(bench.json(&["show", "--json"])["status"], "complete");
}

#[test]
fn a_process_that_outlives_fio_is_killed_and_told() {
    let bench = Bench::new();
    let script = bench.file("orphan.sh", "sleep 60\n: this line keeps the shell\n");
    let job = format!(
        "[a]\nrw=read\nsize=64k\nexec_prerun=setsid sh {} &\n",
        script.display()
    );
    bench.file("orphan.fio", &job);
    for engine in ["fio", "native"] {
        let output = bench.run(&["job", "run", "--json", "orphan.fio", "--engine", engine]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(doc["failures"][0]["kind"], "orphan", "{doc:#}");
        let shown = bench.run(&["show"]);
        let shown = String::from_utf8_lossy(&shown.stdout);
        assert!(shown.contains(FailureKind::Orphan.advice()), "{shown}");
        assert!(bench.processes().is_empty(), "{:?}", bench.processes());
    }
}

/// Commands around a job see what the other has begun, and their end is told.
#[test]
fn commands_of_a_job_run_before_it_and_after_it() {
    let bench = Bench::new();
    let job = "[a]\nrw=write\nsize=64k\nfilename=f\n\
               exec_prerun=(sleep 600 & echo $! >beside && echo before)\n\
               exec_postrun=(kill $(cat beside) && stat -c %s f && exit 3)\n\
               [b]\nstonewall\nrw=read\nsize=64k\nfilename=f\nexec_prerun=exit 4\n";
    bench.file("around.fio", job);
    for engine in ["fio", "native"] {
        let output = bench.run(&["job", "run", "--json", "around.fio", "--engine", engine]);
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(doc["jobs"][0]["write"]["io_bytes"], 64 << 10, "{doc:#}");
        assert!(doc["jobs"][1]["read"]["io_bytes"].as_u64().unwrap_or(0) == 0);
        let printed = |name: &str| fs::read_to_string(bench.path().join(name)).unwrap();
        assert_eq!(printed("a.prerun.txt"), "before\n");
        assert_eq!(printed("a.postrun.txt"), "65536\n");
        assert!(bench.processes().is_empty(), "{:?}", bench.processes());
        if engine == "native" {
            let said = stderr(&output);
            assert!(
                said.contains("exec_prerun: 'exit 4' ended with exit status: 4"),
                "{said}"
            );
            let notes = doc["notes"].to_string();
            assert!(notes.contains("exec_postrun"), "{doc:#}");
        }
        fs::remove_file(bench.path().join("f")).unwrap();
    }
}

#[test]
fn a_device_is_written_to_only_when_it_was_named() {
    let disk = require!(LoopDevice::new(16 << 20));
    let bench = Bench::new();
    let path = disk.path().to_str().unwrap();
    bench.file(
        "disk.fio",
        &format!("[a]\nrw=write\nsize=1m\nfilename={path}\n"),
    );
    let output = bench.run(&["job", "run", "disk.fio"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(
        stderr(&output).contains(&format!("--destroy {path}=16MiB")),
        "{}",
        stderr(&output)
    );
    assert!(bench.records().is_empty(), "nothing was run");
    assert_eq!(
        bench
            .run(&["job", "run", "disk.fio", "--dry-run"])
            .status
            .code(),
        Some(4)
    );
    let words = format!("{path}=16MiB");
    let output = bench.run(&["job", "run", "-q", "disk.fio", "--destroy", &words]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let as_run = fs::read_to_string(bench.records()[0].join("jobs/disk.fio")).unwrap();
    assert!(as_run.contains("allow_file_create=0"), "{as_run}");
    bench.file(
        "read.fio",
        &format!("[a]\nrw=read\nsize=1m\nfilename={path}\n"),
    );
    assert_eq!(
        bench.run(&["job", "run", "-q", "read.fio"]).status.code(),
        Some(0),
        "reading is free"
    );
}

#[test]
fn a_mistyped_device_is_never_created() {
    let bench = Bench::new();
    bench.file(
        "typo.fio",
        "[a]\nrw=read\nsize=1m\nfilename=/dev/fathom-no-such\n",
    );
    let output = bench.run(&["job", "run", "typo.fio"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(
        stderr(&output).contains("no such device"),
        "{}",
        stderr(&output)
    );
    assert!(!Path::new("/dev/fathom-no-such").exists());
    bench.file(
        "folder.fio",
        "[a]\nrw=write\nsize=1m\nfilename=no/such/folder/data\n",
    );
    let output = bench.run(&["job", "run", "folder.fio"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert!(!bench.path().join("no").exists());
}

#[test]
fn a_dry_run_shows_the_commands_and_runs_nothing() {
    let bench = Bench::new();
    bench.file("small.fio", "[a]\nrw=read\nsize=64k\n");
    let output = bench.run(&["job", "run", "small.fio", "--dry-run", "--", "--max-jobs=8"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("--max-jobs=8") && text.contains("size=64k"),
        "{text}"
    );
    assert!(bench.records().is_empty());
    let doc = bench.json(&["job", "run", "small.fio", "--dry-run", "--json"]);
    assert_eq!(doc["steps"][0]["name"], "small");
}

#[test]
fn what_cannot_run_is_refused_before_it_starts() {
    let bench = Bench::new();
    bench.file("bad.fio", "[a]\nrw=read\nsize=64k\nbs=4q\n");
    bench.file("odd.fio", "[a]\nrw=read\nsize=64k\nnosuchoption=1\n");
    let cases: [(&[&str], i32); 7] = [
        (&["bad.fio"], 3),
        (&["odd.fio", "--strict"], 3),
        (&["nosuch.fio"], 3),
        (&["odd.fio", "--fio", "/nosuch/fio"], 5),
        (&[], 2),
        (&["odd.fio", "--", "--output-format=json"], 2),
        (&["odd.fio", "--", "--runtime=1"], 2),
    ];
    for (args, code) in cases {
        let output = bench.run(&[&["job", "run"], args].concat());
        assert_eq!(
            output.status.code(),
            Some(code),
            "{args:?}: {}",
            stderr(&output)
        );
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    assert!(bench.records().is_empty());
}

#[test]
fn a_time_limit_ends_the_run() {
    let bench = Bench::new();
    bench.file("long.fio", LONG);
    let output = bench.run(&["job", "run", "--json", "long.fio", "--timeout=800ms"]);
    assert_eq!(output.status.code(), Some(1));
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(doc["failures"][0]["kind"], "time_limit");
}

#[test]
fn a_full_disk_under_the_records_stops_the_run() {
    let small = require!(SmallFs::new(4 << 20, ""));
    let bench = Bench::new();
    bench.file("long.fio", LONG);
    let runs = small.path().join("runs");
    let args = [
        "--runs",
        runs.to_str().unwrap(),
        "job",
        "run",
        "long.fio",
        "--interval=100ms",
    ];
    let (child, mut told) = bench.start(&args);
    let ballast = fs::File::create(small.path().join("ballast")).unwrap();
    let mut ballast = std::io::BufWriter::new(ballast);
    let filled = std::io::copy(&mut std::io::repeat(0), &mut ballast);
    assert!(filled.is_err(), "the disk is full now");
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(6));
    let output = bench.run(&["--runs", runs.to_str().unwrap(), "show", "--json"]);
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    let mut jobs = doc["jobs"].as_array().unwrap().iter();
    assert!(
        jobs.any(|job| job["read"]["total_ios"].as_u64() > Some(0)),
        "what is there is kept"
    );
    let shown = bench.run(&["--runs", runs.to_str().unwrap(), "show"]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.contains(FailureKind::Record.advice()), "{shown}");
}

#[test]
fn engines_and_their_options_are_listed() {
    let bench = Bench::new();
    let doc = bench.json(&["engines", "--json"]);
    let engines = doc["engines"].as_array().unwrap();
    let psync = engines
        .iter()
        .find(|engine| engine["name"] == "psync")
        .unwrap();
    assert_eq!(psync["fio"], "yes");
    let output = bench.run(&["engines", "net,protocol"]);
    assert!(
        String::from_utf8_lossy(&output.stdout).contains("udpv6"),
        "{output:?}"
    );
    for (what, near) in [("psnyc", "psync"), ("net,portocol", "protocol")] {
        let output = bench.run(&["engines", what]);
        assert_eq!(output.status.code(), Some(5));
        assert!(
            stderr(&output).contains(&format!("did you mean {near}?")),
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn a_device_that_is_not_there_is_refused_once() {
    let bench = Bench::new();
    let job = ["--name=a", "--filename=/dev/fathom-none", "--rw=write"];
    let output = bench.run(&[&["job", "run", "--"][..], &job].concat());
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    assert_eq!(
        stderr(&output).matches("to do:").count(),
        1,
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_record_names_the_folder_that_was_used() {
    let bench = Bench::new();
    let doc = bench.json(&[
        "job",
        "run",
        "--json",
        "--",
        "--name=a",
        "--rw=read",
        "--size=64k",
    ]);
    let path = bench.path().canonicalize().unwrap();
    assert_eq!(
        doc["environment"]["targets"][0]["path"],
        path.to_str().unwrap()
    );
}

/// With fio it failed: "it ended without a single I/O".
#[test]
fn a_job_that_another_one_ends_while_it_waits_has_not_failed() {
    let bench = Bench::new();
    let text = "[global]\nioengine=null\nsize=1m\n[waits]\nstartdelay=60\n[ends]\nexitall\n";
    bench.file("exits.fio", text);
    for engine in ["native", "fio"] {
        let output = bench.run(&["job", "run", "exits.fio", "-q", "--engine", engine]);
        assert!(output.status.success(), "{engine}: {output:?}");
    }
}

/// Nothing is written, and nothing read back.
#[test]
fn a_job_without_a_single_io_is_no_success() {
    let bench = Bench::new();
    let text = "[idle]\nrw=write\nsize=64k\nverify=crc32c\nverify_only\ndo_verify=0\n";
    bench.file("idle.fio", text);
    let output = bench.run(&["job", "run", "idle.fio", "-q", "--engine", "native"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains(FailureKind::NoIo.advice()), "{said}");
}

/// A device with logical blocks of 4096 bytes takes no I/O of 512.
#[test]
fn a_block_that_is_too_small_for_the_device_is_told_with_the_size_that_is_not() {
    let bench = Bench::new();
    let image = bench.path().join("image");
    File::create(&image).unwrap().set_len(1 << 20).unwrap();
    let device = require!(LoopDevice::of_blocks(&image, 4096));
    let job = format!(
        "[a]\nfilename={}\nrw=read\nbs=512\nsize=64k\ndirect=1\n",
        device.path().display()
    );
    bench.file("a.fio", &job);
    for engine in ["fio", "native"] {
        let output = bench.run(&["job", "run", "a.fio", "-q", "--engine", engine]);
        let told = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{engine}: {told}");
        assert!(
            told.contains("logical blocks of 4096 bytes"),
            "{engine}: {told}"
        );
        assert!(told.contains("in multiples of 4096"), "{engine}: {told}");
    }
}

/// Records hold paths as text; a run from a folder whose path is none says so before anything
/// is made.
#[test]
fn a_folder_that_is_not_utf8_is_named() {
    use std::os::unix::ffi::OsStrExt as _;
    let bench = Bench::new();
    let job = bench.file("a.fio", "[a]\nrw=write\nsize=4k\nfilename=f\n");
    let here = bench.path().join(std::ffi::OsStr::from_bytes(b"n\xffx"));
    fs::create_dir(&here).unwrap();
    for words in [
        vec!["job", "run", job.to_str().unwrap()],
        vec!["quick", "here", "."],
    ] {
        let output = bench.command(&words).current_dir(&here).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.contains("n\u{fffd}x: the path of this folder"),
            "{said}"
        );
        assert_eq!(fs::read_dir(&here).unwrap().count(), 0, "{said}");
    }
}
