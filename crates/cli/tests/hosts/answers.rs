//! `--hosts` of find, ab and tune: the answer is about the sum of all machines.

use super::*;

/// Each machine does 200 of these a second, whatever else it is told.
const LIMITED: &str =
    "[a]\nioengine=null\nrw=randread\nsize=1g\nrate_iops=200\ntime_based\nruntime=1\n";

fn lab(name: &str) -> Option<Lab> {
    Lab::new(2, &[])
        .inspect_err(|reason| skip(name, reason))
        .ok()
}

fn said(output: &std::process::Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn a_knee_is_found_of_two_machines_together_over_two_starts() {
    let Some(lab) = lab("a_knee_of_two_machines") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.job(LIMITED);
    let args = ["find", &job, "--knee", "--to", "4", "--hosts", "m1,m2"];
    let times = ["--look", "1s", "--probe", "1s", "--engine", "native"];
    // Room for one look.
    let cut = ["--max-time", "2500ms"];
    let (code, begun) = bench.json(&lab, &[&args[..], &times, &cut].concat());
    assert_eq!(code, Some(1), "{begun}");
    assert_eq!(begun["answer"], Value::Null, "{begun}");
    let before = begun["probes"].as_array().unwrap().clone();
    let others = bench
        .command(&lab, &["resume", "--hosts", "m1"])
        .output()
        .unwrap();
    assert_eq!(others.status.code(), Some(2), "{others:?}");
    assert!(said(&others).contains("of m1, m2"), "{others:?}");
    let (code, found) = bench.json(&lab, &["resume"]);
    assert_eq!((code, &found["run"]), (Some(0), &begun["run"]), "{found}");
    let probes = found["probes"].as_array().unwrap();
    assert!(probes.len() > before.len() && probes.starts_with(&before));
    assert_eq!(found["hosts"], 2, "{found}");
    // A job that a busy machine keeps from its rate for a moment finds more at the next load.
    let load = found["answer"]["load"].as_f64().unwrap();
    assert!((1.0..=2.0).contains(&load), "{found}");
    let iops = found["answer"]["iops"].as_f64().unwrap();
    assert!((300.0..500.0).contains(&iops), "{found}");
    // The record has both machines in every step.
    let (_, shown) = bench.json(&lab, &["show"]);
    let jobs = shown["jobs"].as_array().unwrap();
    let sums = jobs.iter().filter(|job| job["clients"] == 2);
    assert_eq!(sums.count(), probes.len(), "{shown}");
    let record = bench
        .0
        .path()
        .join("fathom-runs")
        .join(shown["id"].as_str().unwrap());
    for host in ["m1", "m2"] {
        let raw = record.join("raw/01-iodepth-1").join(host).join("fio.out");
        assert!(raw.is_file(), "{}", raw.display());
    }
    let text = bench.command(&lab, &["show"]).output().unwrap();
    assert!(text.status.success(), "{text:?}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}

#[test]
fn a_rate_is_shared_by_the_machines_and_its_percentile_is_of_all() {
    let Some(lab) = lab("a_rate_is_shared_by_the_machines") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.job("[a]\nioengine=null\nrw=randread\nsize=1g\n");
    let args = ["find", &job, "--p99", "500ms", "--hosts", "m1,m2"];
    let times = ["--look", "400ms", "--probe", "400ms"];
    let (code, found) = bench.json(&lab, &[&args[..], &times].concat());
    assert_eq!(code, Some(0), "{found}");
    let probes = found["probes"].as_array().unwrap();
    let (_, shown) = bench.json(&lab, &["show"]);
    let record = bench
        .0
        .path()
        .join("fathom-runs")
        .join(shown["id"].as_str().unwrap());
    let mut shared = 0;
    for (place, probe) in (1..).zip(probes) {
        let Some(rate) = probe["probe"]["load"].as_f64() else {
            continue;
        };
        let job = record.join(format!("jobs/{place:02}-rate_iops-{rate:.0}.fio"));
        let text = fs::read_to_string(&job).unwrap();
        let each = text
            .lines()
            .find_map(|line| line.strip_prefix("rate_iops="));
        let each: f64 = each.unwrap().parse().unwrap();
        assert!((2.0 * each - rate).abs() <= 1.0, "{rate}: {text}");
        shared += 1;
    }
    assert!(shared > 0, "{found}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}

#[test]
fn what_one_machine_refuses_or_loses_ends_the_search() {
    let Some(lab) = lab("what_one_machine_refuses_ends_the_search") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.job(LIMITED);
    let closed = [
        "find", &job, "--knee", "--to", "2", "--look", "1s", "--probe", "1s",
    ];
    for (more, words) in [
        (&["--hosts", "m1,m2", "--min-hosts", "1"][..], "--min-hosts"),
        (&["--hosts", "m1,m2", "--engine", "sim"], "simulation"),
        (&["--hosts", "m1,m1"], "named twice"),
    ] {
        let refused = bench.command(&lab, &[&closed[..], more].concat()).output();
        let refused = refused.unwrap();
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(said(&refused).contains(words), "{words}: {refused:?}");
    }
    let dry = ["--hosts", "m1,m2", "--dry-run"];
    let shown = bench.command(&lab, &[&closed[..], &dry].concat()).output();
    let shown = said(&shown.unwrap());
    assert!(shown.contains("ssh m2 fathom agent"), "{shown}");
    assert!(shown.contains("that each machine chooses"), "{shown}");
    let (code, doc) = bench.json(&lab, &[&closed[..], &["--hosts", "m1,nosuch"]].concat());
    assert_eq!((code, &doc["answer"]), (Some(1), &Value::Null), "{doc}");
    let (_, shown) = bench.json(&lab, &["show"]);
    assert_eq!(failures(&shown)[0].1, "nosuch", "{shown}");
    // A device that nobody has confirmed: nothing is written.
    let Ok(disk) = fathom_testkit::LoopDevice::new(1 << 20) else {
        return skip("what_one_machine_refuses", "no loop device");
    };
    let target = disk.path().display();
    let job = bench.job(&format!(
        "[a]\nfilename={target}\nrw=randwrite\nbs=4k\nioengine=libaio\n"
    ));
    let again = ["find", &job, "--knee", "--to", "2", "--hosts", "m1,m2"];
    let (code, doc) = bench.json(&lab, &again);
    assert_eq!((code, &doc["answer"]), (Some(4), &Value::Null), "{doc}");
    let (_, shown) = bench.json(&lab, &["show"]);
    assert!(
        failures(&shown).iter().all(|(kind, ..)| kind == "refused"),
        "{shown}"
    );
    assert!(fs::read(disk.path()).unwrap().iter().all(|byte| *byte == 0));
    (0..2).for_each(|place| nothing_left(&lab, place));
}

#[test]
fn a_machine_that_is_lost_ends_the_search_and_an_interrupt_keeps_it() {
    let Some(lab) = lab("a_machine_that_is_lost_ends_the_search") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.job(LIMITED);
    let args = [
        "find", &job, "--knee", "--to", "2", "--hosts", "m1,m2", "--json", "-q",
    ];
    let args = [&args[..], &["--look", "20s", "--probe", "20s"]].concat();
    let both = || bench.measured().len() == 2;
    let run = bench.command(&lab, &args).spawn().unwrap();
    await_that("both machines have samples", both);
    lab.kill_sessions(1);
    let (code, doc) = document(run);
    assert_eq!((code, &doc["answer"]), (Some(1), &Value::Null), "{doc}");
    let (_, shown) = bench.json(&lab, &["show"]);
    assert_eq!(failures(&shown)[0].1, "m2", "{shown}");
    // It goes on, and is interrupted: what was measured of the probe is kept.
    let run = bench.command(&lab, &["resume", "--json", "-q"]).spawn();
    let run = run.unwrap();
    let begun = || {
        let (_, shown) = bench.json(&lab, &["show"]);
        shown["status"] == "running" && both()
    };
    await_that("it goes on", begun);
    fathom_testkit::signal(&run, "-INT");
    let (code, doc) = document(run);
    assert_eq!((code, &doc["answer"]), (Some(130), &Value::Null), "{doc}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}

#[test]
fn options_of_jobs_are_compared_on_two_machines_together() {
    let Some(lab) = lab("options_are_compared_on_two_machines") else {
        return;
    };
    let bench = Bench::new();
    let job = bench.job(LIMITED);
    let args = ["ab", &job, "--b", "a.rate_iops=400", "--hosts", "m1,m2"];
    let times = ["--each", "300ms", "--engine", "native", "--seed", "1"];
    let (code, found) = bench.json(&lab, &[&args[..], &times].concat());
    assert_eq!(code, Some(0), "{found}");
    assert_eq!(found["rows"][0]["verdict"], "faster", "{found}");
    let a = found["rows"][0]["a"].as_f64().unwrap();
    assert!((300.0..500.0).contains(&a), "of both: {found}");
    let settings = ["ab", &job, "--b", "scheduler=none", "--hosts", "m1,m2"];
    let refused = bench.command(&lab, &settings).output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(said(&refused).contains("this machine only"), "{refused:?}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}
