//! What goes wrong around the native engine: each time a clear message, and the
//! run ends.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fathom_model::FailureKind;
use fathom_testkit::{
    FaultFs, FaultOp, ProgramUnderTest, await_that, deny, require, signal_until_it_ends,
};
use serde_json::Value;

use crate::proof::{Folder, document, stderr};

/// A series that goes past failed writes.
const GROUP: &str = r#"
format = "fathom-quick-group"
version = 1
name = "faulty"
size = "2M"
runtime_s = 1
options = ["fallocate=none", "continue_on_error=all"]
native_aio = { Linux = "libaio" }
[[series]]
title = "writes"
tests = [{ name = "1 file, writes", files = 1, engine = "sync", depth = 1, bs = "64k", rw = "write", init = true }]
"#;

const URING: &str =
    "[a]\nrw=randread\nioengine=io_uring\niodepth=8\nbs=1m\nsize=16m\nfilename=f\nnumjobs=2\n";

/// A command that leaves 4 MiB of memory to be locked, to root too: room for the
/// rings of everybody who tests (the kernel lets go of them late), not for the
/// 8 MiB of buffers.
fn little_locked_memory() -> Result<Vec<String>, String> {
    fathom_testkit::root()?;
    let mut command = vec![fathom_testkit::program("setpriv")?.display().to_string()];
    command.extend(["--bounding-set", "-ipc_lock"].map(str::to_owned));
    command.push(fathom_testkit::program("prlimit")?.display().to_string());
    command.push("--memlock=4194304:4194304".to_owned());
    Ok(command)
}

/// What a run has recorded so far.
fn events(run: &Path) -> String {
    fs::read_to_string(run.join("events.jsonl")).unwrap_or_default()
}

#[test]
fn buffers_that_cannot_be_locked_are_used_unregistered() {
    let under = require!(little_locked_memory());
    let folder = Folder::new();
    folder.job(URING);
    let (doc, code) = folder.document(&under, &["--engine=native"]);
    assert_eq!((code, &doc["status"]), (0, &"complete".into()), "{doc}");
    let notes = doc["notes"].as_array().unwrap();
    let told = |note: &&Value| note.as_str().unwrap().contains("buffers not registered");
    assert_eq!(notes.iter().filter(told).count(), 1, "{notes:?}");

    folder.job(&format!("{URING}fixedbufs=1\n"));
    let (doc, code) = folder.document(&under, &["--engine=native"]);
    assert_eq!((code, &doc["status"]), (1, &"failed".into()));
    let failure = &doc["failures"][0];
    assert_eq!(failure["kind"], "permission", "{failure}");
    let message = failure["message"].as_str().unwrap();
    assert!(message.contains("ulimit -l"), "{message}");
    folder.advises(FailureKind::Permission.advice());
}

#[test]
fn ways_to_the_kernel_that_are_closed_are_named_before_anything_is_touched() {
    let uring = [libc::SYS_io_uring_setup];
    let aio = [libc::SYS_io_setup];
    let cases = [
        (
            libc::EPERM,
            &uring,
            "io_uring",
            "io_uring is forbidden here",
        ),
        (
            libc::ENOSYS,
            &uring,
            "io_uring",
            "there is no io_uring here",
        ),
        (libc::EPERM, &aio, "libaio", "Linux AIO is forbidden"),
        (libc::ENOSYS, &aio, "libaio", "there is no Linux AIO here"),
    ];
    for (errno, calls, engine, said) in cases {
        let under = require!(deny(errno, calls));
        let folder = Folder::new();
        folder.job(&format!(
            "[a]\nrw=write\nsize=64k\nfilename=f\nioengine={engine}\n"
        ));
        for wish in ["native", "auto"] {
            let output = folder.run(&under, &["--engine", wish]);
            assert_eq!(output.status.code(), Some(5), "{engine} {wish}: {output:?}");
            let told = stderr(&output);
            let line = format!("job.fio:5:1: job a: {said}");
            // Both engines lack the same: it is told once.
            assert_eq!(told.matches(&line).count(), 1, "{wish}: {told}");
        }
        assert!(!folder.path().join("f").exists());
        // The other ways are open.
        folder.job("[a]\nrw=write\nsize=64k\nfilename=f\nioengine=psync\n");
        let (doc, code) = folder.document(&under, &["--engine=native"]);
        assert_eq!(code, 0, "{doc}");
    }
}

/// A thread in a call that does not return keeps a process from ending, even by
/// SIGKILL: whoever waited for Fathom waited for the device.
#[test]
fn a_run_ends_although_its_device_never_answers() {
    for (engine, rw) in [("psync", "randread"), ("libaio", "randwrite")] {
        let stalled = require!(FaultFs::new());
        // What the first run leaves behind keeps its file open for writing.
        let files = ["first", "second"].map(|name| stalled.path().join(name));
        for file in &files {
            fs::write(file, vec![1u8; 1 << 20]).unwrap();
        }
        stalled.delay(Duration::from_secs(600));
        let folder = Folder::new();
        let job = |file: &Path| {
            folder.job(&format!(
                "[a]\nrw={rw}\nioengine={engine}\niodepth=4\ndirect=1\nsize=1m\nfilename={}\n",
                file.display()
            ));
        };
        job(&files[0]);
        let begun = Instant::now();
        let (doc, code) = folder.document(&[], &["--engine=native", "--timeout=3s"]);
        // Not how long it takes, but that the device is not waited for.
        assert!(begun.elapsed() < Duration::from_secs(300));
        assert_eq!((code, &doc["status"]), (1, &"failed".into()), "{doc}");
        let failures = doc["failures"].as_array().unwrap();
        let kinds: Vec<_> = failures
            .iter()
            .map(|f| f["kind"].as_str().unwrap())
            .collect();
        assert_eq!(kinds, ["time_limit", "hung"], "{engine}");
        folder.advises(FailureKind::TimeLimit.advice());
        folder.advises(FailureKind::Hung.advice());
        let hung = failures[1]["message"].as_str().unwrap();
        assert!(hung.contains("of 4096 bytes at offset"), "{hung}");
        // The age is that of the I/O, not of the machine.
        let age = hung.rsplit_once(" for ").unwrap().1.trim_end_matches(" s");
        assert!(
            age.parse::<f64>().unwrap() < begun.elapsed().as_secs_f64(),
            "{hung}"
        );

        job(&files[1]);
        let child = folder
            .command(&[], &["--engine=native", "--json"])
            .spawn()
            .unwrap();
        await_that("the second run goes on", || {
            let runs = folder.runs();
            runs.len() == 2 && events(&runs[1]).contains("\"interval\"")
        });
        let (doc, code) = document(&signal_until_it_ends(child, "-INT"));
        assert_eq!(
            (code, &doc["status"]),
            (130, &"interrupted".into()),
            "{engine}"
        );
    }
}

/// fio's process waits in the kernel (state D) for what never comes: SIGKILL does not
/// end it.
#[test]
fn a_process_of_fio_that_cannot_end_is_told_and_left_behind() {
    let stalled = require!(FaultFs::new());
    let file = stalled.path().join("f");
    fs::write(&file, vec![1u8; 1 << 20]).unwrap();
    stalled.hold_reads_from(1);
    let folder = Folder::new();
    let job = "[a]\nrw=randread\nioengine=psync\ndirect=1\nsize=1m\nfilename=";
    folder.job(&format!("{job}{}\n", file.display()));
    let child = folder.command(&[], &["--engine=fio", "--json"]).spawn();
    await_that("it waits for its read", || stalled.held() > 0);
    let (doc, code) = document(&signal_until_it_ends(child.unwrap(), "-INT"));
    assert_eq!(
        (code, &doc["status"]),
        (130, &"interrupted".into()),
        "{doc}"
    );
    let failures = doc["failures"].as_array().unwrap();
    let hung = failures.iter().find(|failure| failure["kind"] == "hung");
    let message = hung.unwrap()["message"].as_str().unwrap();
    // Its guard says so of a process of it, and where the guard is late Fathom of fio.
    let says = ["does not die", "did not die after SIGKILL"];
    assert!(says.iter().any(|it| message.contains(it)), "{doc}");
    // It is not said to be gone.
    assert!(
        failures.iter().all(|failure| failure["kind"] != "orphan"),
        "{doc}"
    );
    folder.advises(FailureKind::Hung.advice());
}

#[test]
fn a_file_system_whose_server_dies_is_an_io_error() {
    for engine in ["psync", "libaio", "io_uring", "posixaio"] {
        let mut dying = require!(FaultFs::new());
        let file = dying.path().join("f");
        fs::write(&file, vec![1u8; 1 << 20]).unwrap();
        let folder = Folder::new();
        folder.job(&format!(
            "[a]\nrw=randread\nioengine={engine}\niodepth=4\ndirect=1\nsize=1m\ntime_based\nruntime=600\nrate_iops=500\nfilename={}\n",
            file.display()
        ));
        let options = ["--engine=native", "--json", "--interval=100ms"];
        let child = folder.command(&[], &options).spawn().unwrap();
        await_that("it reads", || {
            let runs = folder.runs();
            runs.first()
                .is_some_and(|run| events(run).contains("\"sample\""))
        });
        dying.kill();
        let (doc, code) = document(&child.wait_with_output().unwrap());
        assert_eq!((code, &doc["status"]), (1, &"failed".into()), "{doc}");
        let failure = &doc["failures"][0];
        assert_eq!(failure["kind"], "io", "{engine}: {failure}");
        let message = failure["message"].as_str().unwrap();
        assert!(
            message.contains("read of 4096 bytes at offset"),
            "{message}"
        );
        let subject = failure.to_string();
        assert!(subject.contains(&file.display().to_string()), "{subject}");
    }
}

/// One rule for both engines: what a job goes past leaves its run complete, and is
/// counted; `--max-errors` draws the line elsewhere.
#[test]
fn failed_reads_that_a_job_goes_past_come_to_the_same_verdict_with_both_engines() {
    let faulty = require!(FaultFs::new());
    let file = faulty.path().join("f");
    fs::write(&file, vec![1u8; 64 << 10]).unwrap();
    let job = format!(
        "[a]\nrw=read\nioengine=psync\ndirect=1\nbs=4k\nsize=64k\nfilename={}\n",
        file.display()
    );
    let cases: [(&str, &[&str], i32); 7] = [
        ("", &[], 1),
        ("continue_on_error=write\n", &[], 1),
        ("continue_on_error=io\n", &[], 0),
        ("ignore_error=EIO\n", &[], 0),
        ("continue_on_error=all\n", &["--max-errors=4"], 0),
        ("continue_on_error=all\n", &["--max-errors=3"], 1),
        ("continue_on_error=all\n", &["--max-errors=24.9%"], 1),
    ];
    for engine in ["--engine=fio", "--engine=native"] {
        for (options, limit, code) in &cases {
            faulty.clear();
            faulty.fail_from(FaultOp::Read, 13, libc::EIO);
            let folder = Folder::new();
            folder.job(&format!("{job}{options}"));
            let (doc, came) = folder.document(&[], &[&[engine], *limit].concat());
            let status = if *code == 0 { "complete" } else { "failed" };
            let about = format!("{engine} {options} {limit:?}: {doc}");
            assert_eq!((came, &doc["status"]), (*code, &status.into()), "{about}");
            let goes_on =
                options.contains("io\n") || options.contains("all") || options.contains("EIO");
            let errors = doc["jobs"][0]["total_errors"].as_u64();
            if goes_on {
                assert_eq!(errors, Some(4), "{about}");
                let told = doc["notes"].to_string();
                assert!(told.contains("went on after 4 failed I/Os"), "{about}");
            }
            if !limit.is_empty() && *code == 1 {
                let message = doc["failures"][0]["message"].as_str().unwrap();
                assert!(message.starts_with("4 of 16 I/Os failed"), "{about}");
            }
        }
    }
}

/// The same line for series and campaigns, whose points fail by it.
#[test]
fn a_limit_on_failed_ios_holds_for_series_and_campaigns_too() {
    let faulty = require!(FaultFs::new());
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("group.toml", GROUP);
    let target = faulty.path().join("f");
    fs::write(&target, vec![1u8; 1 << 20]).unwrap();
    program.good(&["init", "campaign"]);
    program.good(&["config", "-C", "campaign", "defconfig", "debug-quick"]);
    let template = program.path().join("campaign/templates/performance.fio");
    let text = fs::read_to_string(&template).unwrap();
    fs::write(&template, text.replace("on_error=none", "on_error=all")).unwrap();
    let dut = format!("DUT_FILENAME={}", target.display());
    let set = ["config", "-C", "campaign", "set", &dut, "DUT_IOSIZE=64k"];
    let small = [
        "DUT_RUNTIME=200ms",
        "DUT_TEST_MAX_IODEPTH=1",
        "STEADY_STATE_PROVISIONING=n",
    ];
    program.good(&[&set[..], &small].concat());
    let mount = faulty.path().to_str().unwrap();
    let series = ["quick", "here", mount, "--group", "group.toml"];
    let campaign = ["run", "-C", "campaign", "--again", "--only", "randread"];
    for (command, op, from) in [
        (&series[..], FaultOp::Write, 20),
        (&campaign, FaultOp::Read, 3),
    ] {
        for (limit, code) in [
            (None, 0),
            (Some("--max-errors=100%"), 0),
            (Some("--max-errors=2"), 1),
        ] {
            faulty.clear();
            faulty.fail_from(op, from, libc::EIO);
            let limit: Vec<&str> = limit.into_iter().collect();
            let args = [command, &["--engine", "native"], &limit].concat();
            let ended = program.run(&args);
            let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &stderr(&ended);
            assert_eq!(ended.status.code(), Some(code), "{args:?}: {said}");
            let told = said.contains("--max-errors allows 2");
            assert_eq!(told, code == 1, "{args:?}: {said}");
        }
    }
    // What goes on keeps it.
    faulty.clear();
    faulty.fail_from(FaultOp::Read, 3, libc::EIO);
    let resumed = program.run(&[
        "resume",
        "-C",
        "campaign",
        "--retry-failed",
        "--engine",
        "native",
    ]);
    assert_eq!(resumed.status.code(), Some(1), "{resumed:?}");
}

#[test]
fn an_engine_that_is_killed_is_a_failure_of_the_run() {
    let folder = Folder::new();
    folder.job("[a]\nioengine=null\nrw=read\nsize=1g\ntime_based\nruntime=600\nrate_iops=1000\n");
    let options = ["--engine=native", "--json", "--interval=100ms"];
    let child = folder.command(&[], &options).spawn().unwrap();
    await_that("its engine works", || {
        let runs = folder.runs();
        runs.first()
            .is_some_and(|run| events(run).contains("\"sample\""))
    });
    // Another thread than the first may have started it.
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let children = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")));
    let children: String = children.map(Result::unwrap_or_default).collect();
    let engine = children.split_whitespace().next().unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-KILL", engine])
        .status();
    assert!(killed.unwrap().success());
    let (doc, code) = document(&child.wait_with_output().unwrap());
    assert_eq!((code, &doc["status"]), (1, &"failed".into()), "{doc}");
    assert_eq!(doc["failures"][0]["kind"], "engine_killed", "{doc}");
}
