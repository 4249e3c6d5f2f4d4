//! `fathom job run --hosts` on machines of their own: network namespaces with a
//! real sshd each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fathom_testkit::{FaultFs, Lab, ProgramUnderTest, SmallFs, await_that, require, skip};
use serde_json::Value;
use tempfile::TempDir;

mod answers;
mod commands;
mod doors;
mod failures;
mod ledger;
mod variables;
mod waits;

/// A folder to run in.
struct Bench(TempDir);

impl Bench {
    fn new() -> Self {
        Self(TempDir::with_prefix("fathom-hosts-").unwrap())
    }

    fn job(&self, text: &str) -> String {
        let path = self.0.path().join("a.fio");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }

    fn command(&self, lab: &Lab, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command
            .args(args)
            .current_dir(self.0.path())
            .env("FATHOM_SSH", lab.command())
            .env("XDG_STATE_HOME", self.state())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Where the machine that drives the runs keeps what outlives them.
    fn state(&self) -> PathBuf {
        self.0.path().join("state")
    }

    /// The places of the jobs that have samples in the record that is written.
    fn measured(&self) -> BTreeSet<u64> {
        let runs = fs::read_dir(self.0.path().join("fathom-runs")).into_iter();
        let last = runs.flatten().flatten().map(|run| run.path()).max();
        let log = last.map(|run| fs::read_to_string(run.join("events.jsonl")).unwrap_or_default());
        let log = log.unwrap_or_default();
        // The last line may be being written.
        let lines = log.lines().flat_map(serde_json::from_str::<Value>);
        lines
            .filter(|line| line["event"] == "sample")
            .flat_map(|line| line["job"].as_u64())
            .collect()
    }

    fn json(&self, lab: &Lab, args: &[&str]) -> (Option<i32>, Value) {
        document(
            self.command(lab, &[args, &["--json", "-q"]].concat())
                .spawn()
                .unwrap(),
        )
    }
}

fn document(child: Child) -> (Option<i32>, Value) {
    let output = child.wait_with_output().unwrap();
    let doc = serde_json::from_slice(&output.stdout);
    let doc = doc.unwrap_or_else(|e| panic!("{e}: {output:?}"));
    (output.status.code(), doc)
}

fn total(doc: &Value) -> &Value {
    let jobs = doc["jobs"].as_array().unwrap();
    let is_sum = |job: &&Value| job["name"] == "All clients";
    jobs.iter()
        .find(is_sum)
        .unwrap_or_else(|| panic!("no sum: {doc}"))
}

fn failures(doc: &Value) -> Vec<(String, String, String)> {
    let all = doc["failures"].as_array().into_iter().flatten();
    all.map(|failure| {
        let text = |name: &str| failure[name].as_str().unwrap_or_default().to_owned();
        (text("kind"), text("subject"), text("message"))
    })
    .collect()
}

/// Nothing of Fathom is left on a machine: no process, no file.
fn nothing_left(lab: &Lab, place: usize) {
    let left = || {
        let files = fs::read_dir(lab.tmp(place)).map_or(0, Iterator::count);
        (lab.processes(place), files)
    };
    let started = Instant::now();
    while left() != (Vec::new(), 0) {
        // A machine that is cut off waits 30 s for a sign of life, then ends its jobs.
        let late = started.elapsed() > Duration::from_secs(120);
        assert!(!late, "left on {}: {:?}", lab.name(place), left());
        thread::sleep(Duration::from_millis(50));
    }
}

fn null_job(seconds: u32) -> String {
    format!(
        "[a]\nioengine=null\nrw=randread\nsize=1g\nrate_iops=200\ntime_based\nruntime={seconds}\n"
    )
}

/// Starts a long run on machines, one job each, and waits until there are figures
/// of all.
fn running(bench: &Bench, lab: &Lab, hosts: &str, args: &[&str]) -> Child {
    let job = bench.job(&null_job(12));
    let all = [
        &[
            "job",
            "run",
            &job,
            "--json",
            "-q",
            "--interval",
            "250ms",
            "--hosts",
            hosts,
        ],
        args,
    ]
    .concat();
    let child = bench.command(lab, &all).spawn().unwrap();
    let count = hosts.split(',').count();
    await_that("all machines have samples", || {
        bench.measured().len() == count
    });
    child
}

#[test]
fn four_machines_make_one_record_and_nothing_stays_behind() {
    let lab = require!(Lab::new(4, &[]));
    let bench = Bench::new();
    let text = null_job(2)
        + "[b]\nstonewall\nioengine=null\nrw=randwrite\nsize=1g\nrate_iops=100\ntime_based\nruntime=1\n";
    let job = bench.job(&text);
    let run = bench
        .command(
            &lab,
            &["job", "run", &job, "--hosts", "m1,m2,m3,m4", "--json"],
        )
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stderr);
    let doc: Value = serde_json::from_slice(&run.stdout).unwrap_or_else(|e| panic!("{e}: {said}"));
    assert_eq!(
        (run.status.code(), &doc["status"]),
        (Some(0), &"complete".into()),
        "{doc}"
    );
    assert!(said.contains("4 of 4 machines are ready"), "{said}");
    let jobs = doc["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 10, "two jobs of four machines, and two sums");
    let sums: Vec<&Value> = jobs.iter().filter(|job| job["clients"] == 4).collect();
    assert_eq!(sums[0]["name"], "All clients: a");
    let n: u64 = jobs[..8]
        .iter()
        .filter_map(|job| job["read"]["clat"]["n"].as_u64())
        .sum();
    assert_eq!(sums[0]["read"]["clat"]["n"].as_u64(), Some(n));
    assert!(sums[0]["read"]["clat"]["percentiles_ns"]["99"].is_u64());
    for host in doc["hosts"].as_array().unwrap() {
        let clock = &host["clock"];
        assert!(clock["n"].as_u64() >= Some(8), "{host}");
        // All machines are this one: their clocks agree within the error that is stated.
        let (offset, error) = (
            clock["offset_ms"].as_f64().unwrap(),
            clock["error_ms"].as_f64().unwrap(),
        );
        assert!(offset.abs() <= error + 0.1, "{host}");
        assert!(
            host["start_ms"].is_f64() && host["end_ms"].is_f64() && host["environment"].is_object(),
            "{host}"
        );
    }
    assert!(
        doc["notes"].to_string().contains("4 hosts began within"),
        "{}",
        doc["notes"]
    );
    (0..4).for_each(|place| nothing_left(&lab, place));
    let record = bench
        .0
        .path()
        .join("fathom-runs")
        .join(doc["id"].as_str().unwrap());
    for host in ["m1", "m4"] {
        assert!(
            record.join("raw").join(host).join("fio.out").is_file(),
            "{host}"
        );
    }
    assert!(record.join("jobs/a.fio").is_file());
    let log = fs::read_to_string(record.join("events.jsonl")).unwrap();
    assert!(!log.contains("PRIVATE KEY") && !log.contains("IdentityFile"));
    // What is shown later is the same.
    let again = bench.command(&lab, &["show", "--json"]).output().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&again.stdout).unwrap(), doc);
}

/// One host slow, one out of space: seen at their lines and at the sum.
#[test]
fn a_slow_machine_and_a_full_one_do_not_hide_in_the_sum() {
    let slow = require!(FaultFs::new());
    let small = require!(SmallFs::new(16 << 20, ""));
    let good = [0, 1, 2].map(|_| TempDir::with_prefix("fathom-good-").unwrap());
    let data: Vec<&Path> = good
        .iter()
        .map(TempDir::path)
        .chain([slow.path()])
        .collect();
    let lab = require!(Lab::new(4, &data));
    let bench = Bench::new();
    // Five times as long as the rate allows. That others are not called slow is
    // proven with figures (analysis::hosts): here the machine may make them so.
    slow.delay(Duration::from_millis(100));
    let text = format!(
        "[a]\ndirectory={}\nfilename=f\nrw=write\nbs=4k\nsize=1m\nrate_iops=50\ntime_based\nruntime=2\nfdatasync=0\nend_fsync=0\n",
        lab.data().display()
    );
    let job = bench.job(&text);
    let (code, doc) = bench.json(&lab, &["job", "run", &job, "--hosts", "m1,m2,m3,m4"]);
    assert_eq!(code, Some(0), "{doc}");
    let jobs = doc["jobs"].as_array().unwrap();
    let doubts = |job: &Value| job["write"]["verdict"].to_string();
    let is_slow = |job: &&Value| job["hostname"] == "m4" || job["name"] == "All clients";
    for job in jobs.iter().filter(is_slow) {
        assert!(doubts(job).contains("slow_host"), "{job}");
    }
    let notes = doc["notes"].to_string();
    let told = notes.contains("m4 (write, ") && notes.contains("far slower than the other hosts");
    assert!(told, "{notes}");
    drop(lab);
    let data = [good[0].path(), small.path()];
    let lab = Lab::new(2, &data).unwrap();
    let text = format!(
        "[a]\ndirectory={}\nrw=write\nbs=64k\nsize=64m\nfallocate=none\n",
        lab.data().display()
    );
    let job = bench.job(&text);
    let (code, doc) = bench.json(&lab, &["job", "run", &job, "--hosts", "m1,m2"]);
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    let told = failures(&doc);
    let full = told.iter().find(|(kind, ..)| kind == "no_space");
    assert_eq!(full.unwrap().1, "a on m2", "{told:?}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}
