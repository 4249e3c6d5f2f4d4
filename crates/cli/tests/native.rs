//! The native engine as a user meets it, beside fio where fio is the measure.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::ops::Deref;
use std::path::Path;
use std::process::Output;

use fathom_model::FailureKind;
use fathom_testkit::{
    FaultFs, FaultOp, LoopDevice, ProgramUnderTest, SmallFs, await_that, require, signal, skip,
};
use serde_json::Value;

/// Fathom in a folder of its own.
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

    fn below(parent: &Path) -> Self {
        Self(ProgramUnderTest::below(
            env!("CARGO_BIN_EXE_fathom"),
            parent,
        ))
    }

    /// Hides fio.
    fn without_fio(mut self) -> Self {
        let nowhere = self.path().to_owned();
        self.0.set("PATH", nowhere);
        self.0.unset("FATHOM_FIO");
        self
    }

    /// The document of `job run --json` and the exit code.
    fn document(&self, args: &[&str]) -> (Value, i32) {
        let output = self.run(&[&["job", "run", "-q", "--json"], args].concat());
        let document = serde_json::from_slice(&output.stdout);
        let document = document.unwrap_or_else(|e| panic!("{e}: {output:?}"));
        (document, output.status.code().unwrap())
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The names of all members below a value, each with its place: its form.
fn form(value: &Value, place: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                form(value, &format!("{place}.{name}"), found);
            }
        }
        _ => found.push(place.to_owned()),
    }
}

#[test]
fn both_engines_do_the_same_ios_and_tell_them_in_the_same_form() {
    require!(fathom_testkit::program("fio"));
    let bench = Bench::new();
    bench.file(
        "mix.fio",
        "[global]\nsize=1m\nbs=4k\ngroup_reporting\n\
         [fill]\nrw=write\nfilename=f\nend_fsync=1\n\
         [random]\nstonewall\nrw=randwrite\nnumjobs=2\nio_size=512k\n\
         [read]\nstonewall\nnew_group\nrw=randread\nfilename=f\nioengine=libaio\niodepth=8\n",
    );
    let run = |engine| bench.document(&["mix.fio", "--engine", engine]);
    let ((fio, fio_code), (native, native_code)) = (run("fio"), run("native"));
    assert_eq!((fio_code, native_code), (0, 0));
    assert_eq!(
        (&fio["engine"], &native["engine"]),
        (&"fio".into(), &"native".into())
    );
    let jobs = |doc: &Value| doc["jobs"].as_array().unwrap().len();
    assert_eq!(jobs(&fio), jobs(&native));
    for (job, ours) in native["jobs"].as_array().unwrap().iter().enumerate() {
        for dir in ["read", "write", "trim"] {
            for what in ["total_ios", "io_bytes"] {
                let theirs = &fio["jobs"][job][dir][what];
                assert_eq!(&ours[dir][what], theirs, "{} {dir} {what}", ours["name"]);
            }
        }
        let (mut ours_form, mut theirs_form) = (Vec::new(), Vec::new());
        form(&ours["read"]["clat"], "clat", &mut ours_form);
        form(&fio["jobs"][job]["read"]["clat"], "clat", &mut theirs_form);
        assert_eq!(ours_form, theirs_form, "{}", ours["name"]);
    }
    let notes = native["notes"].to_string();
    assert!(
        notes.contains("compare with figures of fio only with care"),
        "{notes}"
    );
    assert!(!fio["notes"].to_string().contains("only with care"));
    let shown = bench.run(&["show"]);
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("native-"), "{shown}");
}

/// Exit code and words of a block that is not what was written.
#[test]
fn a_flipped_byte_ends_a_verifying_job_as_fio_ends_it() {
    let bench = Bench::new();
    bench.file(
        "write.fio",
        "[w]\nfilename=f\nsize=1m\nbs=4k\nrw=write\nverify=crc32c\n",
    );
    bench.file(
        "read.fio",
        "[r]\nfilename=f\nsize=1m\nbs=4k\nrw=read\nverify=crc32c\n",
    );
    let (document, code) = bench.document(&["write.fio", "--engine", "native"]);
    assert_eq!(
        (code, &document["jobs"][0]["read"]["total_ios"]),
        (0, &256.into())
    );
    let path = bench.path().join("f");
    let mut data = fs::read(&path).unwrap();
    data[40_000] ^= 1;
    fs::write(&path, data).unwrap();
    let (document, code) = bench.document(&["read.fio", "--engine", "native"]);
    assert_eq!((code, &document["status"]), (1, &"failed".into()));
    let failure = &document["failures"][0];
    assert_eq!(failure["kind"], "corrupt");
    let message = failure["message"].as_str().unwrap();
    assert!(
        message.contains("/f: verify of 4096 bytes at offset 36864 failed"),
        "{message}"
    );
    if fathom_testkit::program("fio").is_ok() {
        let (document, code) = bench.document(&["read.fio", "--engine", "fio"]);
        assert_eq!((code, &document["status"]), (1, &"failed".into()));
        assert_eq!(document["jobs"][0]["error"], 84);
    }
}

/// Writes and merged writes that the kernel has counted for a device.
fn writes_of(device: &Path) -> u64 {
    let name = device.file_name().unwrap().to_str().unwrap();
    let stat = fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    let figures: Vec<u64> = stat
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    // Documentation/block/stat.rst: write I/Os, write merges.
    figures[4] + figures[5]
}

#[test]
fn a_device_is_written_only_when_named_and_each_block_once() {
    const BLOCKS: u64 = 2048;
    let device = require!(LoopDevice::new(BLOCKS * 4096));
    let bench = Bench::new();
    let path = device.path().display().to_string();
    bench.file(
        "disk.fio",
        &format!(
            "[a]\nrw=randwrite\nbs=4k\ndirect=1\nioengine=libaio\niodepth=8\nfilename={path}\n"
        ),
    );
    let before = writes_of(device.path());
    let output = bench.run(&["job", "run", "disk.fio", "--engine=native"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    let words = format!("{path}=8MiB");
    assert!(stderr(&output).contains(&words), "{}", stderr(&output));
    assert_eq!(writes_of(device.path()), before);
    let confirmed = ["disk.fio", "--engine=native", "--destroy", &words];
    let (doc, code) = bench.document(&confirmed);
    assert_eq!(code, 0, "{doc}");
    assert_eq!(doc["jobs"][0]["write"]["total_ios"], BLOCKS);
    assert_eq!(doc["jobs"][0]["options"]["allow_file_create"], "0");
    // The kernel counts an I/O just after it has told that it is done.
    await_that("all writes are counted", || {
        writes_of(device.path()) >= before + BLOCKS
    });
    // As many writes as blocks, and no block without one: each was written once.
    assert_eq!(writes_of(device.path()) - before, BLOCKS);
    let content = fs::read(device.behind()).unwrap();
    let untouched = content
        .chunks(4096)
        .filter(|block| block.iter().all(|&b| b == 0));
    assert_eq!(untouched.count(), 0);
    let nowhere = bench.file(
        "gone.fio",
        "[a]\nrw=write\nsize=1m\nfilename=/dev/nosuchdisk\n",
    );
    let output = bench.run(&["job", "run", nowhere.to_str().unwrap(), "--engine=native"]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
}

#[test]
fn what_it_does_not_take_is_refused_by_name_and_line_before_anything_is_touched() {
    let bench = Bench::new();
    bench.file(
        "both.fio",
        "[global]\nrw=write\nsize=64k\n[a]\nlockfile=exclusive\n[b]\nioengine=rbd\n",
    );
    let output = bench.run(&["job", "run", "both.fio", "--engine=native"]);
    assert_eq!(output.status.code(), Some(3));
    let said = stderr(&output);
    for part in [
        "both.fio:5:1: job a: lockfile",
        "both.fio:7:1: job b: ioengine",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let with_options = [
        "job",
        "run",
        "both.fio",
        "--engine=native",
        "--",
        "--debug=io",
    ];
    let output = bench.run(&with_options);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("--debug=io"),
        "{}",
        stderr(&output)
    );
    let left: Vec<_> = fs::read_dir(bench.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the job file: {left:?}");
}

#[test]
fn auto_takes_what_is_here_and_says_what_is_missing() {
    let bench = Bench::new();
    bench.file("plain.fio", "[a]\nrw=read\nsize=64k\n");
    bench.file("fios.fio", "[a]\nrw=read\nsize=64k\nlockfile=exclusive\n");
    bench.file("nobodys.fio", "[a]\nrw=read\nsize=64k\n\nbogus=1\n");
    if fathom_testkit::program("fio").is_ok() {
        assert_eq!(bench.document(&["plain.fio"]).0["engine"], "fio");
        assert_eq!(bench.document(&["fios.fio"]).0["engine"], "fio");
        let output = bench.run(&["job", "run", "nobodys.fio"]);
        assert_eq!(output.status.code(), Some(3));
        let said = stderr(&output);
        for part in [
            "fio: nobodys.fio:5:1: bogus: this fio does not have this option",
            "native: nobodys.fio:5:1: job a: bogus",
        ] {
            assert!(said.contains(part), "{part} in {said}");
        }
    }
    let bench = bench.without_fio();
    let (doc, code) = bench.document(&["plain.fio"]);
    assert_eq!((code, &doc["engine"]), (0, &"native".into()));
    let notes = doc["notes"].to_string();
    assert!(notes.contains("fio is not installed"), "{notes}");
    let output = bench.run(&["job", "run", "fios.fio"]);
    assert_eq!(output.status.code(), Some(5));
    let said = stderr(&output);
    for part in [
        "fio: fio is not installed",
        "native: fios.fio:4:1: job a: lockfile",
        "to do: ",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
    let output = bench.run(&["job", "run", "plain.fio", "--engine=fio"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(
        stderr(&output).contains(FailureKind::FioMissing.advice()),
        "{}",
        stderr(&output)
    );
    let output = bench.run(&["job", "run", "plain.fio", "--dry-run", "--json"]);
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(doc["engine"], "native");
    let output = bench.run(&["engines", "--json"]);
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    let engines = doc["engines"].as_array().unwrap();
    assert!(doc["fio"].is_null());
    assert!(engines.iter().all(|engine| engine["native"] == true));
}

#[test]
fn faults_are_failures_of_the_run() {
    let test = "faults_are_failures_of_the_run";
    match FaultFs::new() {
        Err(reason) => skip(test, &reason),
        Ok(faulty) => {
            let bench = Bench::new();
            let file = faulty.path().join("f");
            fs::write(&file, vec![1u8; 1 << 20]).unwrap();
            let job = format!("[a]\nrw=write\nsize=1m\nfilename={}\n", file.display());
            bench.file("eio.fio", &job);
            faulty.fail_once(FaultOp::Write, 10, libc::EIO);
            let (doc, code) = bench.document(&["eio.fio", "--engine=native"]);
            assert_eq!((code, &doc["status"]), (1, &"failed".into()));
            assert_eq!(doc["failures"][0]["kind"], "io", "{}", doc["failures"]);
            assert_eq!(doc["jobs"][0]["error"], libc::EIO);
        }
    }
    match SmallFs::new(8 << 20, "") {
        Err(reason) => skip(test, &reason),
        Ok(small) => {
            let bench = Bench::new();
            let file = small.path().join("f");
            let job = format!(
                "[a]\nrw=write\nbs=64k\nsize=64m\nfallocate=none\nfilename={}\n",
                file.display()
            );
            bench.file("full.fio", &job);
            let (doc, code) = bench.document(&["full.fio", "--engine=native"]);
            assert_eq!(code, 1);
            assert_eq!(
                doc["failures"][0]["kind"], "no_space",
                "{}",
                doc["failures"]
            );
        }
    }
}

/// I/Os of all jobs.
fn reads(doc: &Value) -> u64 {
    let jobs = doc["jobs"].as_array().unwrap().iter();
    jobs.map(|job| job["read"]["total_ios"].as_u64().unwrap())
        .sum()
}

#[test]
fn signals_and_the_timeout_end_a_run_and_keep_it() {
    let bench = Bench::new();
    bench.file(
        "long.fio",
        "[a]\nrw=randread\nsize=1m\ntime_based\nruntime=600\nrate_iops=500\nnumjobs=2\n",
    );
    for name in ["-INT", "-TERM"] {
        let args = [
            "job",
            "run",
            "long.fio",
            "--engine=native",
            "--interval=100ms",
            "--json",
        ];
        let mut child = bench.command(&args).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let wait_for = |stderr: &mut BufReader<_>, what: &str| {
            let mut line = String::new();
            while !line.contains(what) {
                line.clear();
                assert!(
                    stderr.read_line(&mut line).unwrap() > 0,
                    "ended before {what}"
                );
            }
        };
        wait_for(&mut stderr, "IOPS");
        signal(&child, "-USR1");
        wait_for(&mut stderr, "read clat");
        signal(&child, name);
        let mut text = String::new();
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let doc: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(doc["status"], "interrupted");
        assert!(reads(&doc) > 0);
    }
    let (doc, code) = bench.document(&["long.fio", "--engine=native", "--timeout=3s"]);
    assert_eq!((code, &doc["status"]), (1, &"failed".into()));
    assert_eq!(doc["failures"][0]["kind"], "time_limit");
    assert!(reads(&doc) > 0);
}

#[test]
fn a_killed_run_keeps_its_samples_and_leaves_nothing() {
    let bench = Bench::new();
    bench.file(
        "long.fio",
        "[a]\nrw=read\nsize=1m\ntime_based\nruntime=600\nrate_iops=500\n",
    );
    let args = [
        "job",
        "run",
        "long.fio",
        "--engine=native",
        "--interval=100ms",
    ];
    let mut child = bench.command(&args).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("IOPS") {
        line.clear();
        assert!(stderr.read_line(&mut line).unwrap() > 0);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    // Its engine works in the same folder.
    let works_here = || {
        let mut processes = fs::read_dir("/proc").unwrap();
        processes.any(|entry| {
            let folder = fs::read_link(entry.unwrap().path().join("cwd"));
            folder.is_ok_and(|folder| folder == bench.path())
        })
    };
    await_that("its engine ends", || !works_here());
    let shown = bench.run(&["show", "--json"]);
    let doc: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(doc["status"], "interrupted");
    assert_eq!(doc["from_samples"], true);
    assert!(doc["jobs"][0]["read"]["total_ios"].as_u64().unwrap() > 0);
}

#[test]
fn a_run_is_written_in_fios_formats_and_read_back() {
    let bench = Bench::new();
    // Long enough to be seen: fio's text leaves out what took less than 1 ms.
    bench.file(
        "a.fio",
        "[a]\nrw=randwrite\nsize=64k\nnumjobs=2\nrate_iops=400\n",
    );
    let begins = [
        ("normal", "a: (g=0)"),
        ("terse", "3;fio-"),
        ("json", "{\n"),
        ("json+", "{\n"),
    ];
    for (format, begin) in begins {
        let args = [
            "job",
            "run",
            "-q",
            "a.fio",
            "--engine=native",
            "--output-format",
            format,
        ];
        let output = bench.run(&args);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.starts_with(begin), "{format}: {text}");
        assert_eq!(text.contains("\"bins\""), format == "json+", "{format}");
        let name = format!("{format}.out");
        bench.file(&name, &text);
        let output = bench.run(&["import", "-q", "--json", &name]);
        let doc: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|e| panic!("{format}: {e}: {output:?}"));
        let bytes = doc["jobs"].as_array().unwrap().iter();
        let bytes = bytes.map(|job| job["write"]["io_bytes"].as_u64().unwrap());
        assert_eq!(bytes.sum::<u64>(), 131_072, "{format}");
    }
}

/// Runs the whole series in a folder, timed tests for a second each.
fn whole_series(bench: &Bench, engine: &str) -> Value {
    let args = [
        "quick",
        "here",
        ".",
        "--runtime=1",
        "--size=16M",
        "--no-install",
        "--json",
    ];
    let output = bench.run(&args);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = format!(" with {engine}-");
    assert!(stderr(&output).contains(&said), "{}", stderr(&output));
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(doc["engine"], engine);
    let told = doc["quick"]["engine"].as_str().unwrap();
    assert!(told.starts_with(&format!("{engine}-")), "{told}");
    for test in doc["quick"]["tests"].as_array().unwrap() {
        let figures = &test["figures"];
        let iops = ["read_iops", "write_iops"].map(|name| figures[name].as_u64().unwrap_or(0));
        assert!(iops.iter().sum::<u64>() > 0, "{test}");
        let failures = figures["failures"].as_array().map_or(0, Vec::len);
        assert_eq!(failures, 0, "{test}");
    }
    doc
}

#[test]
fn the_whole_quick_series_runs_on_both_engines() {
    // In memory: what is tested is that everything runs, not the disk.
    let shm = Path::new("/dev/shm");
    let bench = || match shm.is_dir() {
        true => Bench::below(shm),
        false => Bench::new(),
    };
    let fio = fathom_testkit::program("fio").map(|_| {
        // Beside each other: each waits for its seconds most of the time.
        let bench = bench();
        std::thread::spawn(move || whole_series(&bench, "fio"))
    });
    let without = bench().without_fio();
    let native = whole_series(&without, "native");
    let names = |doc: &Value| -> Vec<String> {
        let tests = doc["quick"]["tests"].as_array().unwrap().iter();
        tests.map(|test| test["name"].to_string()).collect()
    };
    assert_eq!(names(&native).len(), 26);
    match fio {
        Ok(fio) => assert_eq!(names(&fio.join().unwrap()), names(&native)),
        Err(reason) => skip("the_whole_quick_series_runs_on_both_engines", &reason),
    }
}
