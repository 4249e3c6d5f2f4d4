//! `fathom ab`: which of some settings is faster, and that all is put back.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_testkit::{LoopDevice, ProgramUnderTest, Throttle, await_that, require, signal, skip};
use serde_json::Value;

const JOB: &str = "[a]\nrw=randread\nfilename=x\nsize=4m\nbs=4k\niodepth=1\n";

fn program() -> ProgramUnderTest {
    let program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
    program.file("a.fio", JOB);
    program
}

fn json(output: &Output, code: i32) -> Value {
    assert_eq!(output.status.code(), Some(code), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn verdict(document: &Value) -> &str {
    document["rows"][0]["verdict"].as_str().unwrap()
}

const SIM: [&str; 6] = ["--engine", "sim", "--json", "-q", "--seed", "1"];

#[test]
fn a_deeper_queue_of_a_simulated_drive_is_told_and_conditions_are_judged() {
    let program = program();
    let ab = ["ab", "a.fio", "--b", "a.iodepth=8", "--fail-if", "faster"];
    let found = json(&program.run(&[&ab[..], &SIM].concat()), 7);
    assert_eq!(found["schema"], "fathom.ab/1");
    assert_eq!(verdict(&found), "faster");
    assert_eq!(found["ended"], true);
    assert_eq!(found["sides"][0]["label"], "as it stands");
    assert_eq!(found["sides"][1]["label"], "a.iodepth=8");
    // A warm-up, and at least six pairs.
    let measured = found["measured"].as_array().unwrap();
    assert!(measured.len() >= 13, "{measured:?}");
    let shown = json(&program.run(&["show", "--json"]), 0);
    assert_eq!(shown["jobs"].as_array().unwrap().len(), measured.len());
    // What it did not come to is not left.
    let status = json(&program.run(&["status", "--json"]), 0);
    assert_eq!(
        (&status["steps"], &status["left"]),
        (&measured.len().into(), &0.into())
    );
    // The same seed gives the same order.
    let again = json(&program.run(&[&ab[..], &SIM].concat()), 7);
    assert_eq!(again["measured"], found["measured"]);
}

#[test]
fn of_several_values_each_is_judged_against_the_first() {
    let program = program();
    let ab = [
        "ab",
        "a.fio",
        "--vary",
        "a.bs=4k,4k,64k",
        "--figure",
        "bw,p99",
    ];
    let found = json(&program.run(&[&ab[..], &SIM].concat()), 0);
    let rows = found["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(rows[2]["side"], 2);
    assert_eq!(rows[2]["figure"], "bw_bytes");
    assert_eq!(rows[2]["verdict"], "faster");
}

#[test]
fn the_same_twice_is_the_same() {
    let program = program();
    let sim =
        "format = \"fathom-sim-device\"\nversion = 1\nnoise_percent = 3\nwander_percent = 0.2\n";
    program.file("sim.toml", sim);
    for seed in ["1", "2", "3"] {
        let ab = ["ab", "a.fio", "--engine", "sim", "--sim", "sim.toml"];
        let args = [&ab[..], &["--json", "-q", "--seed", seed]].concat();
        let found = json(&program.run(&args), 0);
        assert!(
            ["same", "cannot_tell"].contains(&verdict(&found)),
            "{found}"
        );
    }
}

#[test]
fn what_cannot_be_compared_is_refused_before_anything_is_done() {
    let program = program();
    let refused = |args: &[&str], code: i32, why: &str| {
        let output = program.run(&[&["ab", "a.fio"], args].concat());
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    };
    refused(&["--b", "elevator=bfq"], 2, "scheduler, nr_requests");
    refused(&["--b", "vm.swappiness=1"], 2, "vm.dirty_ratio");
    refused(&["--b", "fio=/nosuch/fio"], 5, "no such program");
    refused(&["--b", "fio=/bin/sh"], 5, "is not fio");
    refused(
        &["--b", "fio=fio", "--engine", "native"],
        2,
        "--engine native",
    );
    refused(&["--b", "kernel="], 2, "uname -r");
    refused(&["--b", "z.bs=8k"], 3, "no section [z]");
    refused(&["--b", "a.blocksize_of=8k"], 3, "blocksize_of");
    refused(&["--vary", "scheduler=none"], 2, "two values");
    refused(&["--undo", "true"], 2, "there is none");
    refused(&["--b", "a.bs=4k", "--b", "a.bs=8k"], 2, "twice");
    let sim = ["--engine", "sim"];
    refused(
        &[&["--b", "scheduler=bfq"], &sim[..]].concat(),
        2,
        "a simulated device",
    );
    refused(
        &[&["--b", "kernel=6.1"], &sim[..]].concat(),
        2,
        "no machine",
    );
    refused(
        &[&["--b-do", "true"], &sim[..]].concat(),
        2,
        "a simulated device",
    );
    assert_eq!(program.records(), Vec::<PathBuf>::new());
}

/// A job in a file system that is made, and the options for that.
fn in_file_system(program: &ProgramUnderTest, device: &LoopDevice) -> [String; 4] {
    let job = "[a]\nrw=randread\nbs=4k\nsize=1m\nrate_iops=300\nioengine=psync\n";
    program.file("a.fio", job);
    let path = device.path().display();
    let words = [format!("ext4:{path}"), format!("{path}=32MiB")];
    let [mkfs, word] = words;
    ["--mkfs".into(), mkfs, "--destroy".into(), word]
}

/// Where a device is mounted, and with which options.
fn mounted(device: &LoopDevice) -> Vec<String> {
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    let its = |line: &&str| line.starts_with(&format!("{} ", device.path().display()));
    mounts.lines().filter(its).map(str::to_owned).collect()
}

#[test]
fn mount_options_are_compared_in_a_file_system_that_is_made() {
    let device = require!(LoopDevice::new(32 << 20));
    let program = program();
    let made = in_file_system(&program, &device);
    let made: Vec<&str> = made.iter().map(String::as_str).collect();
    let ab = ["ab", "a.fio", "--b", "mount=noatime", "--each", "300ms"];
    let ab = [&ab[..], &["--margin", "50%", "--json", "-q"]].concat();
    let refused = |args: &[&str], code: i32, why: &str| {
        let output = program.run(args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {said}");
        assert!(said.contains(why), "{args:?}: {said}");
    };
    refused(&ab, 2, "add --mkfs");
    refused(&[&ab[..], &made[..2]].concat(), 4, "--destroy");
    program.file("b.fio", "[a]\nrw=randread\nfilename=../x\n");
    let elsewhere = [&["ab", "b.fio"], &made[..]].concat();
    refused(&elsewhere, 2, "not in the file system");
    assert_eq!(program.records(), Vec::<PathBuf>::new());
    let all = [&ab[..], &made[..]].concat();
    let found = json(&program.run(&all), 0);
    assert_eq!(verdict(&found), "same", "{found}");
    assert_eq!(found["sides"][1]["mount"], "noatime");
    assert_eq!(mounted(&device), Vec::<String>::new());
    let log = fs::read_to_string(program.records()[0].join("events.jsonl")).unwrap();
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("\"stage\":{\"id\":\"mkfs\""), 1, "it is made once");
    let measured = found["measured"].as_array().unwrap().len();
    assert_eq!(count("\"title\":\"mount with "), measured);
    // What is on the device now may be wanted.
    refused(&all, 4, "ext2/3/4");
}

#[test]
fn a_file_system_is_unmounted_after_a_kill_and_mounted_again_by_a_resume() {
    let device = require!(LoopDevice::new(32 << 20));
    let program = program();
    let made = in_file_system(&program, &device);
    let made: Vec<&str> = made.iter().map(String::as_str).collect();
    let ab = ["ab", "a.fio", "--b", "mount=noatime", "-q", "--each", "2s"];
    let ab = [&ab[..], &["--margin", "50%"], &made[..]].concat();
    let mut run = program.command(&ab).spawn().unwrap();
    let is_b = || mounted(&device).iter().any(|line| line.contains("noatime"));
    await_that("the second side is mounted", is_b);
    run.kill().unwrap();
    run.wait().unwrap();
    // fio ends with it, and what it has open a moment later.
    let restored = program.run(&["restore"]);
    assert_eq!(restored.status.code(), Some(0), "{restored:?}");
    assert_eq!(mounted(&device), Vec::<String>::new());
    // Devices are named again.
    let refused = program.run(&["resume"]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    // What else runs beside this test may have made a namespace meanwhile, with a copy of the
    // mount, and the device is in use as long as that lasts.
    let mut resumed = program.run(&["resume", "--json", "-q", made[2], made[3]]);
    for _ in 0..20 {
        if !String::from_utf8_lossy(&resumed.stderr).contains("is in use") {
            break;
        }
        std::thread::sleep(std::time::Duration::from_secs(1));
        resumed = program.run(&["resume", "--json", "-q", made[2], made[3]]);
    }
    let found = json(&resumed, 0);
    assert_eq!((verdict(&found), &found["ended"]), ("same", &true.into()));
    assert_eq!(mounted(&device), Vec::<String>::new());
}

/// Another fio, by what it says of itself, which runs the installed one.
fn other_fio(program: &ProgramUnderTest, version: &str) -> PathBuf {
    let text =
        format!("#!/bin/sh\n[ \"$1\" = --version ] && echo {version} && exit\nexec fio \"$@\"\n");
    program.file("other-fio", &text);
    let path = program.path().join("other-fio");
    let mut mode = fs::metadata(&path).unwrap().permissions();
    mode.set_mode(0o755);
    fs::set_permissions(&path, mode).unwrap();
    path
}

#[test]
fn two_fios_are_compared_and_their_versions_stand_in_it() {
    let test = "two_fios_are_compared_and_their_versions_stand_in_it";
    if Command::new("fio").arg("--version").output().is_err() {
        return skip(test, "fio is not installed");
    }
    let program = program();
    program.file(
        "a.fio",
        "[a]\nioengine=null\nrw=read\nsize=1g\nrate_iops=200\n",
    );
    let other = other_fio(&program, "fio-3.99");
    let b = format!("fio={}", other.display());
    let args = [
        "ab", "a.fio", "--b", &b, "--each", "300ms", "--margin", "50%", "--json", "-q",
    ];
    let found = json(&program.run(&args), 0);
    assert_eq!(found["sides"][1]["fio"]["version"], "fio-3.99", "{found}");
    let label = found["sides"][1]["label"].as_str().unwrap();
    assert!(label.ends_with("other-fio (fio-3.99)"), "{label}");
    let installed = found["sides"][0]["fio"]["version"].as_str().unwrap();
    assert!(installed.starts_with("fio-") && installed != "fio-3.99");
    // Each measurement has been made by its own.
    let log = fs::read_to_string(program.records()[0].join("events.jsonl")).unwrap();
    let events = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let started: Vec<Value> = events
        .filter(|it: &Value| it["event"] == "engine_started")
        .collect();
    let measured = found["measured"].as_array().unwrap();
    assert_eq!(started.len(), measured.len());
    for (started, measured) in started.iter().zip(measured) {
        let is_other = started["argv"][0].as_str().unwrap().ends_with("other-fio");
        assert_eq!(is_other, measured["side"] == 1, "{started}");
    }
    // It does not go on with another one.
    other_fio(&program, "fio-3.100");
    let refused = program.run(&["resume"]);
    assert_eq!(refused.status.code(), Some(4), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("fio-3.99"));
}

/// A device, a job that reads it, and where its settings are.
fn device(program: &ProgramUnderTest) -> Result<(LoopDevice, PathBuf), String> {
    let device = LoopDevice::new(16 << 20)?;
    let path = device.path().display();
    let job = format!("[a]\nrw=randread\nfilename={path}\nsize=16m\nbs=4k\nioengine=psync\n");
    program.file("disk.fio", &job);
    let name = device.path().file_name().unwrap();
    let queue = Path::new("/sys/class/block").join(name).join("queue");
    Ok((device, queue))
}

fn setting(queue: &Path, name: &str) -> String {
    let text = fs::read_to_string(queue.join(name)).unwrap();
    text.trim().to_owned()
}

#[test]
fn settings_of_a_device_are_judged_changed_and_put_back() {
    let program = program();
    let (_device, queue) = require!(device(&program));
    let refused = program.run(&["ab", "disk.fio", "--b", "scheduler=fast"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("does not take scheduler=fast: it has none"),
        "{said}"
    );
    let before = ["read_ahead_kb", "nomerges"].map(|name| setting(&queue, name));
    let sides = [
        "--a",
        "read_ahead_kb=64",
        "--b",
        "nomerges=2",
        "--engine",
        "native",
    ];
    let args = [
        &[
            "ab", "disk.fio", "--pairs", "6", "--each", "100ms", "--json", "-q",
        ],
        &sides[..],
    ];
    let found = json(&program.run(&args.concat()), 0);
    // What a side does not set is as it stood.
    let values = |side: usize| {
        let values = found["sides"][side]["values"].as_array().unwrap().iter();
        values
            .map(|it| it["value"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(values(0), ["64", &before[1]]);
    assert_eq!(values(1), [&before[0], "2"]);
    assert_eq!(
        ["read_ahead_kb", "nomerges"].map(|name| setting(&queue, name)),
        before
    );
}

#[test]
fn what_a_killed_comparison_has_changed_is_put_back() {
    let program = program();
    let (_device, queue) = require!(device(&program));
    let before = setting(&queue, "read_ahead_kb");
    let sides = ["--a", "read_ahead_kb=60", "--b", "read_ahead_kb=64", "-q"];
    let ab = ["ab", "disk.fio", "--engine", "native", "--pairs", "6"];
    let kill = |each: &str| {
        let mut child = program.start(&[&ab[..], &sides, &["--each", each]].concat());
        await_that("a setting is changed", || {
            ["60", "64"].contains(&setting(&queue, "read_ahead_kb").as_str())
        });
        // Nobody takes it from a run that goes on.
        assert_eq!(program.run(&["restore"]).status.code(), Some(1));
        child.kill().unwrap();
        child.wait().unwrap();
    };
    kill("30s");
    program.good(&["restore"]);
    assert_eq!(setting(&queue, "read_ahead_kb"), before);
    // The next start does it, too, and finds how it stood.
    kill("30s");
    let args = [
        &[
            "ab",
            "disk.fio",
            "--engine",
            "native",
            "--b",
            "read_ahead_kb=64",
        ][..],
        &["--pairs", "6", "--each", "100ms", "--json", "-q"],
    ];
    let found = json(&program.run(&args.concat()), 0);
    assert_eq!(found["sides"][0]["values"][0]["value"], before.as_str());
    assert_eq!(setting(&queue, "read_ahead_kb"), before);
    // As does a run that goes on.
    kill("200ms");
    program.good(&["resume", "-q"]);
    assert_eq!(setting(&queue, "read_ahead_kb"), before);
}

/// `ioscheduler` of a job is undone like any other setting, also if nobody lived to do it.
#[test]
fn the_scheduler_of_a_killed_job_is_put_back() {
    let test = "the_scheduler_of_a_killed_job_is_put_back";
    let program = program();
    let (_device, queue) = require!(device(&program));
    let before = setting(&queue, "scheduler");
    let other = before
        .split_whitespace()
        .find(|name| !name.starts_with('['));
    let Some(other) = other else {
        return skip(test, "the kernel has one scheduler only");
    };
    let job = fs::read_to_string(program.path().join("disk.fio")).unwrap();
    let job = job + &format!("ioscheduler={other}\ntime_based\nruntime=600\nrate_iops=100\n");
    program.file("sched.fio", &job);
    let run = ["job", "run", "sched.fio", "--engine", "native", "-q"];
    let kill = || {
        let mut child = program.start(&run);
        await_that("the scheduler is changed", || {
            setting(&queue, "scheduler").contains(&format!("[{other}]"))
        });
        // The engine would put it back by itself when Fathom is gone.
        signal(&child, "-STOP");
        let engines = children_of(child.id());
        assert!(!engines.is_empty());
        let killed = Command::new("kill").arg("-KILL").args(&engines).status();
        assert!(killed.unwrap().success());
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(setting(&queue, "scheduler").contains(&format!("[{other}]")));
    };
    kill();
    program.good(&["restore"]);
    assert_eq!(setting(&queue, "scheduler"), before);
    // So does the next run, which finds how it stood.
    kill();
    program.file("sched.fio", &job.replace("runtime=600", "runtime=100ms"));
    program.good(&run);
    assert_eq!(setting(&queue, "scheduler"), before);
}

/// Pids of its children, whichever thread has started them.
fn children_of(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let children = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")));
    let children: Vec<String> = children.map(Result::unwrap).collect();
    let pids = children.iter().flat_map(|pids| pids.split_whitespace());
    pids.map(str::to_owned).collect()
}

#[test]
fn a_tenth_more_of_a_throttled_device_is_told_and_commands_are_undone() {
    let program = program();
    // So little that a busy machine does it, too.
    let made = device(&program).and_then(|(device, _)| {
        let slow = Throttle::new(device.path(), 200)?;
        Ok((device, slow))
    });
    let (_device, slow) = require!(made);
    let job = fs::read_to_string(program.path().join("disk.fio")).unwrap();
    program.file(
        "disk.fio",
        &(job + "direct=1\niodepth=8\nioengine=libaio\n"),
    );
    let (a, b) = (slow.limit_command(200), slow.limit_command(220));
    let ab = [
        "ab", "disk.fio", "--engine", "native", "--pairs", "40", "--each", "1s",
    ];
    let does = [
        "--a-do",
        &a,
        "--b-do",
        &b,
        "--undo",
        "touch undone",
        "--json",
        "-q",
    ];
    let words = slow.command();
    let inner = program.command(&[&ab[..], &does].concat());
    let mut command = Command::new(&words[0]);
    command
        .args(&words[1..])
        .arg(inner.get_program())
        .args(inner.get_args());
    for (name, value) in inner.get_envs() {
        value.map(|value| command.env(name, value));
    }
    let found = json(&command.current_dir(program.path()).output().unwrap(), 0);
    assert_eq!(verdict(&found), "faster", "{found}");
    let ratio = found["rows"][0]["ratio"].as_f64().unwrap();
    assert!((1.0..1.25).contains(&ratio), "{found}");
    assert!(program.path().join("undone").exists());
}

#[test]
fn a_device_is_tuned_and_stands_as_it_did() {
    let program = program();
    let (device, queue) = require!(device(&program));
    let names = ["scheduler", "nr_requests", "nomerges", "rq_affinity"];
    let before = names.map(|name| setting(&queue, name));
    let path = device.path().to_str().unwrap();
    let args = [
        "tune",
        "--for",
        "randread 4k iodepth 4 at iops",
        path,
        "--pairs",
        "6",
    ];
    let how = ["--each", "50ms", "--engine", "native", "--json", "-q"];
    let found = json(&program.run(&[&args[..], &how].concat()), 0);
    assert_eq!(found["schema"], "fathom.tune/1");
    assert_eq!(found["ended"], true);
    let tried: Vec<&str> = found["trials"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|trial| trial["setting"].as_str())
        .collect();
    assert_eq!(
        tried,
        ["scheduler", "nr_requests", "rq_affinity", "nomerges"]
    );
    let rule = found["udev_rule"].as_str();
    assert_eq!(rule.is_some(), found["is_better"] == true, "{found}");
    program.good(&["report", "-o", "page.html"]);
    let page = fs::read_to_string(program.path().join("page.html")).unwrap();
    let said = ["better than how it stood", "leave it as it is"];
    assert!(said.iter().any(|said| page.contains(said)));
    assert!(page.contains("a: nomerges=0, b: nomerges=1"));
    assert_eq!(names.map(|name| setting(&queue, name)), before);
    let sim = program.run(&[&args[..], &["--engine", "sim"]].concat());
    assert_eq!(sim.status.code(), Some(2));
    let missing = program.run(&["tune", "--for", "randread 4k at p99", "a.fio"]);
    assert_eq!(missing.status.code(), Some(5));
    // What is read ahead matters only for what is buffered.
    let load = [
        "tune",
        "--for",
        "read 64k buffered at bw",
        path,
        "--pairs",
        "6",
    ];
    let before = setting(&queue, "read_ahead_kb");
    let found = json(&program.run(&[&load[..], &how].concat()), 0);
    assert_eq!(found["trials"][1]["setting"], "read_ahead_kb", "{found}");
    assert_eq!(setting(&queue, "read_ahead_kb"), before);
    // A quarter of 4 KiB is less than a page, and the kernel keeps 0: it once ended there.
    fs::write(queue.join("read_ahead_kb"), "4").unwrap();
    let found = json(&program.run(&[&load[..], &how].concat()), 0);
    assert_eq!(
        (&found["ended"], setting(&queue, "read_ahead_kb")),
        (&Value::Bool(true), "4".to_owned())
    );
    let sides = found["trials"][1]["sides"].as_array().unwrap();
    let labels: Vec<&str> = sides
        .iter()
        .map(|side| side["label"].as_str().unwrap())
        .collect();
    let taken = ["read_ahead_kb=4", "read_ahead_kb=16", "read_ahead_kb=64"];
    assert_eq!(labels, taken);
    // A cache without flushes is tried for no load that waits for none.
    let refused = program.run(&[&load[..], &["--write-cache"]].concat());
    assert_eq!(refused.status.code(), Some(2));
}

/// A boot of this machine, played: a name of its own, and a kernel that says another release.
struct PlayedBoot<'p> {
    program: &'p ProgramUnderTest,
    kernel: String,
    nth: u32,
}

/// What `uname -r` says under this program and its arguments.
fn release(words: &[&str]) -> Result<String, String> {
    let output = Command::new(words[0]).args(&words[1..]).output();
    let output = output.map_err(|error| format!("{}: {error}", words[0]))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{words:?}: {output:?}")),
    }
}

impl PlayedBoot<'_> {
    fn run(&self, own: &str, args: &[&str]) -> Output {
        let id = format!("boot-{}", self.nth);
        self.program.file(&id, &format!("{id}\n"));
        let enter = "mount --bind \"$0\" /proc/sys/kernel/random/boot_id && exec \"$@\"";
        let inner = self.program.command(args);
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", enter]);
        command.arg(self.program.path().join(&id));
        if self.kernel != own {
            command.args(["setarch", "--uname-2.6"]);
        }
        command.arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            value.map(|value| command.env(name, value));
        }
        let folder = self.program.path();
        command.current_dir(folder).output().unwrap()
    }
}

/// Kernel and boot of each step, as the record tells.
fn boots_of_steps(program: &ProgramUnderTest) -> Vec<(Value, Value)> {
    let log = fs::read_to_string(program.records()[0].join("events.jsonl")).unwrap();
    let mut boots = Vec::new();
    let mut now = Value::Null;
    for line in log.lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        match event["event"].as_str() {
            Some("booted") => now = event,
            Some("step") => boots.push((now["kernel"].clone(), now["boot"].clone())),
            _ => {}
        }
    }
    boots
}

#[test]
fn two_kernels_are_compared_across_reboots_each_measurement_in_a_boot_of_its_own() {
    let program = program();
    let made = device(&program).and_then(|made| {
        let old = release(&["unshare", "-m", "setarch", "--uname-2.6", "uname", "-r"])?;
        Ok((made, release(&["uname", "-r"])?, old))
    });
    let ((_device, queue), own, old) = require!(made);
    let before = setting(&queue, "nomerges");
    let mut boot = PlayedBoot {
        program: &program,
        kernel: own.clone(),
        nth: 0,
    };
    let b = format!("kernel={old}");
    let ab = [
        "ab",
        "disk.fio",
        "--b",
        &b,
        "--b",
        "nomerges=2",
        "--each",
        "50ms",
        "--pairs",
        "6",
        "--margin",
        "90%",
        "--engine",
        "native",
        "--seed",
        "1",
        "--json",
        "-q",
    ];
    let mut output = boot.run(&own, &ab);
    let label = format!("as it stands (kernel {own})");
    while output.status.code() == Some(8) {
        let found = json(&output, 8);
        assert_eq!(found["sides"][0]["label"], label.as_str());
        assert_eq!(setting(&queue, "nomerges"), before, "put back at each stop");
        let status = json(&program.run(&["status", "--json"]), 0);
        let waits = status["waits"].as_str().unwrap();
        let next = found["next_kernel"].as_str().unwrap();
        assert!(waits.starts_with(&format!("boot into {next}")), "{waits}");
        // Neither this boot again, nor one of the other kernel.
        let refused = boot.run(&own, &["resume", "-q"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(4), "{said}");
        assert!(said.contains(waits), "{said}");
        boot.nth += 1;
        assert!(boot.nth < 30, "it does not end");
        next.clone_into(&mut boot.kernel);
        output = boot.run(&own, &["resume", "--json", "-q"]);
    }
    let found = json(&output, 0);
    assert_eq!(found["ended"], true);
    let measured = found["measured"].as_array().unwrap();
    assert_eq!(measured.len(), 24, "six pairs, each with its warm-up");
    let boots = boots_of_steps(&program);
    for (measured, boots) in measured.chunks(2).zip(boots.chunks(2)) {
        assert_eq!(boots[0], boots[1], "the warm-up is in its boot");
        let is_b = measured[1]["side"] == 1;
        assert_eq!(boots[0].0, if is_b { old.as_str() } else { own.as_str() });
    }
    let mut names: Vec<String> = boots.iter().map(|(_, boot)| boot.to_string()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 12);
}
