//! Every way in which a machine can fail: told with its name, and nothing stays
//! behind on any of them.

use super::*;
use fathom_testkit::{require, signal, stat_fields};

#[test]
fn a_machine_killed_in_mid_run_is_named() {
    let lab = require!(Lab::new(4, &[]));
    let bench = Bench::new();
    let run = running(&bench, &lab, "m1,m2,m3,m4", &["--min-hosts", "3"]);
    lab.kill_sessions(2);
    let (code, doc) = document(run);
    let complete = (Some(0), &"complete".into());
    assert_eq!((code, &doc["status"]), complete, "{doc}");
    let told = failures(&doc);
    let lost = ("lost", "m3");
    assert_eq!((told[0].0.as_str(), told[0].1.as_str()), lost, "{told:?}");
    let all = total(&doc);
    assert_eq!(all["clients"], 3);
    let doubts = all["read"]["verdict"].to_string();
    assert!(doubts.contains("hosts_missing"), "{doubts}");
    // The others ran to their end: jobs of 12 s by fio's own clock.
    assert!(all["read"]["runtime_ms"].as_u64() > Some(11_000), "{doc}");
    // Killed with all it had begun, it is tidied by the one who lost it.
    (0..4).for_each(|place| nothing_left(&lab, place));
}

/// The agent alone is killed: what it began ends with it.
#[test]
fn an_agent_killed_in_mid_run_takes_its_jobs_with_it() {
    let lab = require!(Lab::new(2, &[]));
    let bench = Bench::new();
    let run = running(&bench, &lab, "m1,m2", &[]);
    let agents = lab.processes(1).into_iter();
    let is_agent = |command: &str| command.contains("/fathom ") && command.ends_with("agent ");
    let agents: Vec<u32> = agents
        .filter(|(_, command)| is_agent(command) && !command.starts_with("sh "))
        .map(|(pid, _)| pid)
        .collect();
    assert_eq!(agents.len(), 1, "{:?}", lab.processes(1));
    let mut kill = Command::new("kill");
    let killed = kill.args(["-KILL", &agents[0].to_string()]).status();
    assert!(killed.unwrap().success());
    let (code, doc) = document(run);
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    let told = failures(&doc);
    let lost = ("lost", "m2");
    assert_eq!((told[0].0.as_str(), told[0].1.as_str()), lost, "{told:?}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}

/// A cable that is pulled: nobody is told, neither here nor there.
#[test]
fn a_machine_that_is_cut_off_is_named_and_ends_by_itself() {
    let lab = require!(Lab::new(2, &[]));
    let bench = Bench::new();
    let job = bench.job(&null_job(600));
    let args = ["job", "run", &job, "--json", "-q", "--hosts", "m1,m2"];
    let run = bench.command(&lab, &args).spawn().unwrap();
    await_that("both have samples", || bench.measured().len() == 2);
    lab.cut(1);
    let (code, doc) = document(run);
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    let told = failures(&doc);
    let lost = ("lost", "m2");
    assert_eq!((told[0].0.as_str(), told[0].1.as_str()), lost, "{told:?}");
    // The one is told; the other is asked no more, and ends by itself.
    (0..2).for_each(|place| nothing_left(&lab, place));
}

#[test]
fn an_interrupt_and_a_kill_leave_nothing_on_the_machines() {
    let lab = require!(Lab::new(2, &[]));
    let bench = Bench::new();
    let run = running(&bench, &lab, "m1,m2", &[]);
    signal(&run, "-INT");
    let (code, doc) = document(run);
    let interrupted = (Some(130), &"interrupted".into());
    assert_eq!((code, &doc["status"]), interrupted, "{doc}");
    let n = total(&doc)["read"]["clat"]["n"].as_u64();
    assert!(n > Some(0), "what was measured is kept: {doc}");
    (0..2).for_each(|place| nothing_left(&lab, place));
    // Nobody is left here to tell them: the agents notice that their input ends.
    let bench = Bench::new();
    let mut run = running(&bench, &lab, "m1,m2", &[]);
    signal(&run, "-KILL");
    run.wait().unwrap();
    (0..2).for_each(|place| nothing_left(&lab, place));
}

/// What keeps a machine from taking part is told in the words of who knows it,
/// before anything runs on any of them.
#[test]
fn a_machine_that_cannot_take_part_is_told_before_anything_runs() {
    let lab = require!(Lab::new(4, &[]));
    require!(lab.fill_tmp(3));
    let bench = Bench::new();
    let job = bench.job(&null_job(1));
    lab.forget_key(1);
    lab.refuse_key(2);
    let list = bench.0.path().join("hosts");
    fs::write(&list, "# all\nm1\n\nm2\nm3\nm4\nnosuch.invalid\n").unwrap();
    let list = list.to_str().unwrap();
    let run = |least: &str| {
        let args = ["job", "run", &job, "--hosts", list, "--min-hosts", least];
        bench.json(&lab, &args)
    };
    let (code, doc) = run("5");
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    assert!(doc["jobs"].as_array().unwrap().is_empty(), "{doc}");
    let told = failures(&doc);
    for (host, words) in [
        ("m2", "Host key verification failed"),
        ("m3", "Permission denied"),
        ("m4", "/tmp) is full"),
        ("nosuch.invalid", "nosuch.invalid"),
    ] {
        let is_it = |(_, subject, message): &&(String, String, String)| {
            subject == host && message.contains(words)
        };
        assert!(told.iter().any(|it| is_it(&it)), "{host}: {told:?}");
    }
    let (code, doc) = run("1");
    assert_eq!(code, Some(0), "{doc}");
    assert_eq!(doc["jobs"][0]["hostname"], "m1");
    assert_eq!(total(&doc)["clients"], 1, "{doc}");
    (0..4).for_each(|place| nothing_left(&lab, place));
}

/// A job that one of the machines must not run is refused by that machine.
#[test]
fn a_device_that_one_machine_must_not_write_is_refused_there() {
    let lab = require!(Lab::new(2, &[]));
    let disk = require!(fathom_testkit::LoopDevice::new(1 << 20));
    let bench = Bench::new();
    let target = disk.path().display();
    let text = format!("[a]\nfilename={target}\nrw=write\nbs=4k\nsize=64k\n");
    let job = bench.job(&text);
    let (code, doc) = bench.json(&lab, &["job", "run", &job, "--hosts", "m1,m2"]);
    assert_eq!((code, &doc["status"]), (Some(4), &"failed".into()), "{doc}");
    let told = failures(&doc);
    assert_eq!(told.len(), 2, "{told:?}");
    let advice = |failure: &Value| failure["advice"].as_str().map(str::to_owned);
    let all = doc["failures"].as_array().unwrap().iter();
    assert!(
        all.map(advice)
            .all(|advice| advice.is_some_and(|it| it.contains("--destroy"))),
        "{doc}"
    );
    (0..2).for_each(|place| nothing_left(&lab, place));
}

/// The line by which a process names itself as the owner of a folder.
fn owner(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let started = stat_fields(&stat)[19];
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let namespace = fs::read_link("/proc/self/ns/pid").unwrap();
    format!("{} {} {pid} {started}\n", boot.trim(), namespace.display())
}

/// What a run left behind that was killed with everything it had begun, is
/// removed by the next one; what may belong to a living one is not, on this
/// machine or on others that share the folder.
#[test]
fn only_what_was_surely_left_behind_is_removed_by_the_next_run() {
    let lab = require!(Lab::new(1, &[]));
    let folder = |name: &str, line: Option<&str>| {
        let folder = lab.tmp(0).join(format!("fathom-{name}-sent"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("fathom"), "a program").unwrap();
        if let Some(line) = line {
            fs::write(folder.join(".fathom-owner"), line).unwrap();
        }
        folder
    };
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let gone = owner(child.id());
    drop(child.stdin.take());
    child.wait().unwrap();
    let own = owner(std::process::id());
    let (first, started) = own.trim_end().rsplit_once(' ').unwrap();
    let started: u64 = started.parse().unwrap();
    let boot = gone.split(' ').next().unwrap();
    let namespace = gone.split(' ').nth(1).unwrap();
    let removed = [
        folder("dead", Some(&gone)),
        folder("another", Some(&format!("{first} {}\n", started - 1))),
    ];
    let kept = [
        folder("alive", Some(&own)),
        folder("neighbour", Some(&gone.replace(boot, "0f0e"))),
        folder("container", Some(&gone.replace(namespace, "pid:[1]"))),
        folder("begun", Some(gone.trim_end())),
        folder("strange", None),
    ];
    let outer = folder("outer", Some(&gone));
    fs::create_dir(outer.join("fathom-inner")).unwrap();
    fs::write(outer.join("fathom-inner/.fathom-owner"), &own).unwrap();
    let bench = Bench::new();
    let job = bench.job(&null_job(1));
    let (code, doc) = bench.json(&lab, &["job", "run", &job, "--hosts", "m1"]);
    assert_eq!(code, Some(0), "{doc}");
    let left = |folder: &&PathBuf| folder.exists();
    assert_eq!(removed.iter().find(left), None);
    assert_eq!(kept.iter().chain([&outer]).filter(left).count(), 6);
}

/// The folders in /tmp that name a process as their owner.
fn owned_by(pid: u32) -> Vec<PathBuf> {
    let named = |folder: &PathBuf| {
        let line = fs::read_to_string(folder.join(".fathom-owner")).unwrap_or_default();
        line.split(' ').nth(2) == Some(&pid.to_string())
    };
    let folders = fs::read_dir("/tmp").unwrap().flatten();
    folders.map(|entry| entry.path()).filter(named).collect()
}

/// What a killed driver leaves on its own machine, others cannot look into, and
/// its next run removes.
#[test]
fn the_folders_of_a_killed_driver_are_private_and_removed_by_the_next_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let lab = require!(Lab::new(1, &[]));
    let bench = Bench::new();
    let job = bench.job(&null_job(600));
    let args = ["job", "run", &job, "-q", "--hosts", "m1"];
    let mut run = bench.command(&lab, &args).spawn().unwrap();
    await_that("it has samples", || bench.measured().len() == 1);
    let folders = owned_by(run.id());
    assert!(!folders.is_empty());
    for folder in &folders {
        let mode = folder.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }
    // While it lives they stay, whatever else runs.
    let job = bench.job(&null_job(1));
    let other = ["job", "run", &job, "--hosts", "m1"];
    assert_eq!(bench.json(&lab, &other).0, Some(0));
    assert_eq!(owned_by(run.id()), folders);
    signal(&run, "-KILL");
    run.wait().unwrap();
    assert_eq!(bench.json(&lab, &other).0, Some(0));
    assert_eq!(owned_by(run.id()), Vec::<PathBuf>::new());
}

#[test]
fn hosts_that_are_none_are_refused() {
    let bench = Bench::new();
    let job = bench.job(&null_job(1));
    for (args, words) in [
        (["--hosts", "m1,m1"], "named twice"),
        (["--hosts=-oProxyCommand=x", "-q"], "is no host"),
        (["--min-hosts", "2"], "--hosts"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        let command = command.args(["job", "run", &job]).args(args);
        let refused = command.current_dir(bench.0.path()).output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
}
