//! `fathom job run --hosts` on machines of their own: network namespaces with a
//! real sshd each.
#![allow(clippy::unwrap_used)] // a test fails by panicking

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fathom_testkit::{FaultFs, Lab, SmallFs, skip};
use serde_json::Value;
use tempfile::TempDir;

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
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
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

fn wait_until(what: &str, seconds: u64, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(seconds), "{what}");
        thread::sleep(Duration::from_millis(50));
    }
}

/// Nothing of Fathom is left on a machine: no process, no file.
fn nothing_left(lab: &Lab, place: usize, seconds: u64) {
    let left = || {
        let files = fs::read_dir(lab.tmp(place)).map_or(0, Iterator::count);
        (lab.processes(place), files)
    };
    let started = Instant::now();
    while left() != (Vec::new(), 0) {
        let late = started.elapsed() > Duration::from_secs(seconds);
        assert!(!late, "left on {}: {:?}", lab.name(place), left());
        thread::sleep(Duration::from_millis(50));
    }
}

fn null_job(seconds: u32) -> String {
    format!(
        "[a]\nioengine=null\nrw=randread\nsize=1g\nrate_iops=200\ntime_based\nruntime={seconds}\n"
    )
}

/// Starts a long run on all machines and waits until each does I/O.
fn running(bench: &Bench, lab: &Lab, hosts: &str, args: &[&str]) -> Child {
    let job = bench.job(&null_job(12));
    let all = [
        &["job", "run", &job, "--json", "-q", "--hosts", hosts],
        args,
    ]
    .concat();
    let child = bench.command(lab, &all).spawn().unwrap();
    let runs = |place: usize| {
        let fio = lab.processes(place);
        fio.iter()
            .filter(|(_, command)| command.contains("fio ") && command.contains("a.fio"))
            .count()
            >= 2
    };
    wait_until("all machines run", 120, || {
        (0..hosts.split(',').count()).all(runs)
    });
    thread::sleep(Duration::from_millis(2500));
    child
}

#[test]
fn four_machines_make_one_record_and_nothing_stays_behind() {
    let lab = match Lab::new(4, &[]) {
        Ok(lab) => lab,
        Err(reason) => return skip("four_machines_make_one_record", &reason),
    };
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
    (0..4).for_each(|place| nothing_left(&lab, place, 20));
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
    let slow = match FaultFs::new() {
        Ok(slow) => slow,
        Err(reason) => return skip("a_slow_machine_and_a_full_one", &reason),
    };
    let small = match SmallFs::new(16 << 20, "") {
        Ok(small) => small,
        Err(reason) => return skip("a_slow_machine_and_a_full_one", &reason),
    };
    let good = [0, 1, 2].map(|_| TempDir::with_prefix("fathom-good-").unwrap());
    let data: Vec<&Path> = good
        .iter()
        .map(TempDir::path)
        .chain([slow.path()])
        .collect();
    let lab = match Lab::new(4, &data) {
        Ok(lab) => lab,
        Err(reason) => return skip("a_slow_machine_and_a_full_one", &reason),
    };
    let bench = Bench::new();
    slow.delay(Duration::from_millis(20));
    let text = format!(
        "[a]\ndirectory={}\nfilename=f\nrw=write\nbs=4k\nsize=1m\nrate_iops=200\ntime_based\nruntime=2\nfdatasync=0\nend_fsync=0\n",
        lab.data().display()
    );
    let job = bench.job(&text);
    let (code, doc) = bench.json(&lab, &["job", "run", &job, "--hosts", "m1,m2,m3,m4"]);
    assert_eq!(code, Some(0), "{doc}");
    let jobs = doc["jobs"].as_array().unwrap();
    let doubts = |job: &Value| job["write"]["doubts"].to_string();
    for job in jobs {
        let is_slow = job["hostname"] == "m4" || job["name"] == "All clients";
        assert_eq!(doubts(job).contains("slow_host"), is_slow, "{job}");
    }
    let notes = doc["notes"].to_string();
    assert!(notes.contains("m4: one host is far slower"), "{notes}");
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
    (0..2).for_each(|place| nothing_left(&lab, place, 20));
}

#[test]
fn a_machine_killed_in_mid_run_is_named() {
    let lab = match Lab::new(4, &[]) {
        Ok(lab) => lab,
        Err(reason) => return skip("a_machine_killed_in_mid_run", &reason),
    };
    let bench = Bench::new();
    let run = running(&bench, &lab, "m1,m2,m3,m4", &["--min-hosts", "3"]);
    lab.kill_sessions(2);
    let (code, doc) = document(run);
    assert_eq!(
        (code, &doc["status"]),
        (Some(0), &"complete".into()),
        "{doc}"
    );
    let told = failures(&doc);
    assert_eq!(
        (told[0].0.as_str(), told[0].1.as_str()),
        ("lost", "m3"),
        "{told:?}"
    );
    assert_eq!(total(&doc)["clients"], 3);
    assert!(
        total(&doc)["read"]["doubts"]
            .to_string()
            .contains("hosts_missing")
    );
    assert!(
        total(&doc)["read"]["runtime_ms"].as_u64() > Some(11_000),
        "{doc}"
    );
    [0, 1, 3]
        .into_iter()
        .for_each(|place| nothing_left(&lab, place, 20));
}

/// A cable that is pulled: nobody is told, neither here nor there.
#[test]
fn a_machine_that_is_cut_off_is_named_and_ends_by_itself() {
    let lab = match Lab::new(2, &[]) {
        Ok(lab) => lab,
        Err(reason) => return skip("a_machine_that_is_cut_off", &reason),
    };
    let bench = Bench::new();
    let job = bench.job(&null_job(120));
    let mut command = bench.command(
        &lab,
        &["job", "run", &job, "--json", "-q", "--hosts", "m1,m2"],
    );
    let run = command.spawn().unwrap();
    let runs = |place| {
        lab.processes(place)
            .iter()
            .any(|(_, command)| command.contains("a.fio"))
    };
    wait_until("both run", 120, || runs(0) && runs(1));
    thread::sleep(Duration::from_millis(1500));
    lab.cut(1);
    let (code, doc) = document(run);
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    let told = failures(&doc);
    assert_eq!(
        (told[0].0.as_str(), told[0].1.as_str()),
        ("lost", "m2"),
        "{told:?}"
    );
    nothing_left(&lab, 0, 20);
    // It is asked no more, ends its jobs, and removes what was sent.
    nothing_left(&lab, 1, 120);
}

#[test]
fn an_interrupt_and_a_kill_leave_nothing_on_the_machines() {
    let lab = match Lab::new(2, &[]) {
        Ok(lab) => lab,
        Err(reason) => return skip("an_interrupt_and_a_kill", &reason),
    };
    let bench = Bench::new();
    let run = running(&bench, &lab, "m1,m2", &[]);
    signal(run.id(), "INT");
    let (code, doc) = document(run);
    assert_eq!(
        (code, &doc["status"]),
        (Some(130), &"interrupted".into()),
        "{doc}"
    );
    assert!(
        total(&doc)["read"]["clat"]["n"].as_u64() > Some(0),
        "what was measured is kept"
    );
    (0..2).for_each(|place| nothing_left(&lab, place, 20));
    let mut run = running(&bench, &lab, "m1,m2", &[]);
    signal(run.id(), "KILL");
    run.wait().unwrap();
    (0..2).for_each(|place| nothing_left(&lab, place, 60));
}

#[test]
fn an_unknown_key_and_a_missing_machine_are_refused_before_anything_runs() {
    let lab = match Lab::new(2, &[]) {
        Ok(lab) => lab,
        Err(reason) => return skip("an_unknown_key", &reason),
    };
    let bench = Bench::new();
    let job = bench.job(&null_job(1));
    lab.forget_key(1);
    let (code, doc) = bench.json(&lab, &["job", "run", &job, "--hosts", "m1,m2"]);
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    assert_eq!(failures(&doc)[0].1, "m2");
    assert!(doc["jobs"].as_array().unwrap().is_empty(), "{doc}");
    let list = bench.0.path().join("hosts");
    fs::write(&list, "# all\nm1\n\nnosuch.invalid\n").unwrap();
    let (code, doc) = bench.json(
        &lab,
        &[
            "job",
            "run",
            &job,
            "--min-hosts",
            "1",
            "--hosts",
            list.to_str().unwrap(),
        ],
    );
    assert_eq!(code, Some(0), "{doc}");
    assert_eq!(failures(&doc)[0].1, "nosuch.invalid");
    assert_eq!(doc["jobs"][0]["hostname"], "m1");
    for (args, words) in [
        (["--hosts", "m1,m1"], "named twice"),
        (["--hosts", "-oProxyCommand=x"], ""),
        (["--min-hosts", "2"], "--hosts"),
    ] {
        let refused = bench
            .command(&lab, &[&["job", "run", &job], &args[..]].concat())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
    nothing_left(&lab, 0, 20);
}

fn signal(pid: u32, name: &str) {
    let _ = Command::new("kill")
        .args([&format!("-{name}"), &pid.to_string()])
        .status();
}
