//! `fathom purge` on loop devices, as a person sees it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use fathom_testkit::{LoopDevice, require};
use serde_json::Value;
use tempfile::TempDir;

const SIZE: u64 = 8 << 20;

struct Shell(TempDir);

impl Shell {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command.args(args).current_dir(self.0.path());
        command
            .env("XDG_STATE_HOME", self.0.path())
            .env_remove("CLICOLOR_FORCE");
        command
    }

    fn run(&self, args: &[&str]) -> (i32, String, String) {
        told(&self.command(args).output().unwrap())
    }

    fn json(&self, args: &[&str]) -> Value {
        let (code, stdout, stderr) = self.run(&[args, &["--json", "-q"]].concat());
        assert_eq!(code, 0, "{args:?}: {stderr}");
        serde_json::from_str(&stdout).unwrap()
    }
}

fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().unwrap_or(-1),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn records(shell: &Shell) -> usize {
    std::fs::read_dir(shell.0.path().join("fathom-runs")).map_or(0, Iterator::count)
}

#[test]
fn a_purge_is_listed_shown_refused_done_and_kept() {
    let device = require!(LoopDevice::new(SIZE));
    let shell = Shell::new();
    let path = device.path().to_str().unwrap();
    let word = format!("{path}=8MiB");
    let before = std::fs::read(device.path()).unwrap();

    let (code, list, _) = shell.run(&["purge", path, "--list"]);
    assert_eq!(code, 0);
    assert!(
        list.contains("overwrite-random") && list.contains("Not possible:"),
        "{list}"
    );
    let list = shell.json(&["purge", path, "--list"]);
    assert_eq!(list["schema"], "fathom.purge-methods/1");
    assert_eq!(list["methods"][0]["method"], "blkdiscard");

    let (code, steps, refused) = shell.run(&["purge", path, "--dry-run"]);
    assert_eq!(code, 4);
    assert!(
        steps.contains(&format!("\nblkdiscard --step 1073741824 {path}\n")),
        "{steps}"
    );
    assert!(refused.contains(&format!("--destroy {word}")), "{refused}");
    let plan = shell.json(&["purge", path, "--dry-run", "--destroy", &word]);
    assert_eq!(
        (&plan["schema"], plan["steps"].as_array().unwrap().len()),
        (&"fathom.purge-plan/1".into(), 3)
    );
    for (options, code, said) in [
        (&["--method", "nvme-format"][..], 5, "it is no NVMe device"),
        (&["--method", "hammer"], 2, "there is no such method"),
        (&["--ses", "1"], 2, "would be purged by blkdiscard"),
        (&[], 4, "would be overwritten"),
    ] {
        let (found, _, stderr) = shell.run(&[&["purge", path][..], options].concat());
        assert_eq!(found, code, "{options:?}: {stderr}");
        assert!(stderr.contains(said), "{options:?}: {stderr}");
    }
    assert_eq!(
        std::fs::read(device.path()).unwrap(),
        before,
        "something was written"
    );
    assert_eq!(records(&shell), 0);

    let (code, text, stderr) =
        shell.run(&["purge", path, "--destroy", &word, "--reason", "a test"]);
    assert_eq!(code, 0, "{stderr}");
    for said in ["purged", "blkdiscard", "a test", "zeros (promised: zeros)"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let (_, shown, _) = shell.run(&["show"]);
    assert_eq!(shown, text);
    let doc = shell.json(&["purge", path, "--destroy", &word, "--method", "overwrite"]);
    assert_eq!(
        (&doc["schema"], &doc["status"]),
        (&"fathom.purge/1".into(), &"complete".into())
    );
    assert_eq!(shell.json(&["show"]), doc);
    let runs = shell.json(&["runs"]);
    assert_eq!(runs["runs"][1]["command"], "purge", "{runs}");
    let report = shell.run(&["report"]);
    assert_eq!(report.0, 0, "{report:?}");
}

/// Ctrl-C in the midst of an overwrite.
#[test]
fn an_interrupted_purge_is_recorded_as_interrupted() {
    let device = require!(LoopDevice::new(2 << 30));
    let shell = Shell::new();
    let path = device.path().to_str().unwrap();
    let word = format!("{path}=2GiB");
    let args = [
        "purge",
        path,
        "--destroy",
        &word,
        "--method",
        "overwrite-random",
        "--json",
    ];
    let mut child = shell
        .command(&args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The second step is the overwrite.
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("[2/3]") {
        line.clear();
        assert_ne!(
            std::io::BufRead::read_line(&mut stderr, &mut line).unwrap(),
            0
        );
    }
    let pid = child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let _ = std::io::copy(&mut stderr, &mut std::io::sink());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    let doc: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(doc["status"], "interrupted");
    assert!(
        doc["error"].as_str().unwrap().starts_with("stopped after "),
        "{doc}"
    );
    let run = std::fs::read_dir(shell.0.path().join("fathom-runs"))
        .unwrap()
        .next()
        .unwrap();
    let log = std::fs::read_to_string(run.unwrap().path().join("events.jsonl")).unwrap();
    assert!(
        log.contains("\"event\":\"ended\",\"status\":\"interrupted\""),
        "{log}"
    );
    assert!(!log.contains("stage_ended"), "{log}");
}

/// Killed without notice in the midst of an overwrite.
#[test]
fn a_killed_purge_is_known_as_interrupted() {
    let device = require!(LoopDevice::new(2 << 30));
    let shell = Shell::new();
    let path = device.path().to_str().unwrap();
    let word = format!("{path}=2GiB");
    let method = ["--method", "overwrite-random"];
    let args = [&["purge", path, "--destroy", &word][..], &method].concat();
    let mut child = shell.command(&args).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    while !line.starts_with("[2/3]") {
        line.clear();
        let read = std::io::BufRead::read_line(&mut stderr, &mut line);
        assert_ne!(read.unwrap(), 0);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let runs = shell.json(&["runs"]);
    assert_eq!(runs["runs"][0]["status"], "interrupted", "{runs}");
    let (_, shown, _) = shell.run(&["show"]);
    assert!(shown.contains("interrupted"), "{shown}");
    assert!(!shown.contains("purged"), "{shown}");
}

#[test]
fn resume_purges_anew_what_was_killed_once_the_device_is_named_again() {
    let device = require!(LoopDevice::new(SIZE));
    let shell = Shell::new();
    let path = device.path().to_str().unwrap();
    let word = format!("{path}=8MiB");
    let method = ["--method", "overwrite", "--samples", "64"];
    shell.json(&[&["purge", path, "--destroy", &word][..], &method].concat());
    // As a kill in its midst leaves it.
    let runs = shell.0.path().join("fathom-runs");
    let run = std::fs::read_dir(runs).unwrap().next().unwrap().unwrap();
    let (log, document) = (run.path().join("events.jsonl"), "purge.json");
    let text = std::fs::read_to_string(&log).unwrap();
    let (kept, _) = text.split_once("{\"at_ms\"").unwrap();
    let stage = text
        .lines()
        .find(|line| line.contains("\"stage\""))
        .unwrap();
    std::fs::write(&log, format!("{kept}{stage}\n")).unwrap();
    std::fs::remove_file(run.path().join(document)).unwrap();

    let (code, _, stderr) = shell.run(&["resume"]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("would be overwritten"), "{stderr}");
    let (code, _, stderr) = shell.run(&["resume", "--destroy", &word, "--max-time", "1h"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("cut short"), "{stderr}");
    let (code, steps, stderr) = shell.run(&["resume", "--dry-run", "--destroy", &word]);
    assert_eq!(code, 0, "{stderr}");
    assert!(steps.contains("if=/dev/zero"), "{steps}");
    assert!(!run.path().join(document).exists());
    let doc = shell.json(&["resume", "--destroy", &word]);
    assert_eq!(
        (&doc["status"], &doc["method"]),
        (&"complete".into(), &"overwrite".into())
    );
    assert_eq!(shell.json(&["resume"]), doc);
    assert_eq!(shell.json(&["runs"])["runs"].as_array().unwrap().len(), 1);
    let log = std::fs::read_to_string(&log).unwrap();
    assert_eq!(log.matches("\"event\":\"stage_ended\"").count(), 1, "{log}");
}

#[test]
fn a_file_is_not_purged() {
    let shell = Shell::new();
    let file = shell.0.path().join("disk.img");
    std::fs::File::create(&file)
        .unwrap()
        .write_all(b"wanted")
        .unwrap();
    let name = file.to_str().unwrap();
    let (code, _, stderr) = shell.run(&["purge", name, "--destroy", name]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("only devices are purged"), "{stderr}");
    assert_eq!(std::fs::read(Path::new(name)).unwrap(), b"wanted");
}
