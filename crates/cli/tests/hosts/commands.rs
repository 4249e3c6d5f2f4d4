//! `--hosts` of quick, run and prio.

use fathom_testkit::LoopDevice;

use super::*;

/// Two tests of a second, on small files.
const GROUP: &str = r#"
format = "fathom-quick-group"
version = 1
name = "small"
size = "2M"
runtime_s = 1
options = ["fallocate=none", "group_reporting"]
native_aio = { Linux = "libaio" }
[[series]]
title = "write series"
tests = [
  { name = "2 files, seq 64k writes", files = 2, engine = "sync", depth = 1, bs = "64k", rw = "write", options = ["end_fsync=1"], init = true },
  { name = "2 files, rnd 4k writes", files = 2, engine = "sync", depth = 1, bs = "4k", rw = "randwrite" },
]
"#;

/// What each machine sees as its data.
fn folders<const N: usize>() -> [TempDir; N] {
    std::array::from_fn(|_| TempDir::with_prefix("fathom-data-").unwrap())
}

fn lab(data: &[TempDir]) -> Result<Lab, String> {
    let paths: Vec<&Path> = data.iter().map(TempDir::path).collect();
    Lab::new(data.len(), &paths)
}

/// The sums of all machines: step, and how many took part.
fn sums(doc: &Value) -> Vec<(&str, u64)> {
    let jobs = doc["jobs"].as_array().unwrap().iter();
    jobs.filter(|job| job["clients"].is_u64())
        .map(|job| {
            let step = job["step"].as_str().unwrap_or_default();
            (step, job["clients"].as_u64().unwrap())
        })
        .collect()
}

fn said(output: &std::process::Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    text(&output.stdout) + &text(&output.stderr)
}

#[test]
fn the_quick_series_runs_on_three_machines_test_by_test() {
    let data = folders::<3>();
    let lab = require!(lab(&data));
    let bench = Bench::new();
    fs::write(bench.0.path().join("small.toml"), GROUP).unwrap();
    let place = lab.data().display().to_string();
    let args = ["quick", "--hosts", "m1,m2,m3", &place];
    let more = ["--group", "./small.toml", "--engine", "native"];
    let (code, doc) = bench.json(&lab, &[&args[..], &more].concat());
    assert_eq!(code, Some(0), "{doc}");
    let first = ("2 files, seq 64k writes", 3);
    assert_eq!(sums(&doc), [first, ("2 files, rnd 4k writes", 3)], "{doc}");
    let parts = doc["parts"].as_array().unwrap();
    let hosts: Vec<&str> = parts.iter().flat_map(|p| p["host"].as_str()).collect();
    assert_eq!(hosts, ["m1", "m2", "m3"]);
    for part in parts {
        let tests = part["quick"]["tests"].as_array().unwrap();
        assert_eq!(tests.len(), 2, "{part}");
        assert!(tests[1]["figures"]["write_iops"].is_u64(), "{part}");
        // Each machine's own record is whole.
        let record = part["record"].as_str().unwrap();
        let shown = bench.command(&lab, &["show", record, "--json"]);
        let shown: Value = serde_json::from_slice(&{ shown }.output().unwrap().stdout).unwrap();
        assert_eq!(shown["status"], "complete");
        assert!(Path::new(record).is_absolute() || bench.0.path().join(record).exists());
    }
    // One test again, of which one machine has no files any more.
    fs::remove_dir_all(data[1].path().join("stb-testdir")).unwrap();
    let one = ["2 files, rnd 4k writes", "--group", "./small.toml"];
    let (code, doc) = bench.json(&lab, &[&args[..], &one].concat());
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    assert_eq!(failures(&doc)[0].1, "m2", "{doc}");
    assert!(failures(&doc)[0].2.contains("must pre-exist"), "{doc}");
    assert_eq!(sums(&doc), [], "nothing ran anywhere");
    let clean = bench
        .command(&lab, &[&args[..], &["cleanup"]].concat())
        .output();
    let clean = clean.unwrap();
    assert!(clean.status.success(), "{clean:?}");
    assert!(said(&clean).contains("m3: removed"), "{clean:?}");
    assert!(said(&clean).contains("m2: there is no"), "{clean:?}");
    for (place, folder) in data.iter().enumerate() {
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        nothing_left(&lab, place);
    }
}

/// What one machine refuses none does.
#[test]
fn a_refusal_of_one_machine_keeps_all_from_writing() {
    let data = folders::<2>();
    let lab = require!(lab(&data));
    let bench = Bench::new();
    // Not made by the series: it is not touched, on either machine.
    fs::create_dir(data[1].path().join("stb-testdir")).unwrap();
    fs::write(data[1].path().join("stb-testdir/mine"), "x").unwrap();
    let place = lab.data().display().to_string();
    let args = ["quick", "--hosts", "m1,m2", &place, "--engine", "native"];
    let (code, doc) = bench.json(&lab, &args);
    assert_eq!((code, &doc["status"]), (Some(4), &"failed".into()), "{doc}");
    assert_eq!(failures(&doc)[0].1, "m2", "{doc}");
    assert_eq!(fs::read_dir(data[0].path()).unwrap().count(), 0);
    for (args, words) in [
        (&["quick", "--remote-mode", "fio"][..], "--remote-mode"),
        (
            &["prio", "--dev", "/dev/x", "--baseline", "--outdir", "o"],
            "--outdir",
        ),
        (&["run", "--engine", "sim"], "simulation"),
        (&["quick", "--min-hosts", "3"], "there are 2 hosts"),
    ] {
        let args = [args, &["--hosts", "m1,m2"]].concat();
        let refused = bench.command(&lab, &args).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        assert!(said(&refused).contains(words), "{words}: {refused:?}");
    }
    (0..2).for_each(|place| nothing_left(&lab, place));
}

#[test]
fn a_soak_and_a_plan_file_run_on_two_machines_at_once() {
    let data = folders::<2>();
    let lab = require!(lab(&data));
    let bench = Bench::new();
    let job = bench.job(&null_job(1));
    let hosts = ["--hosts", "m1,m2"];
    let soak = ["soak", &job, "--hours", "0.001", "--period", "1800ms"];
    let (code, doc) = bench.json(&lab, &[&soak[..], &hosts].concat());
    assert_eq!(code, Some(0), "{doc}");
    let periods = doc["periods"].as_array().unwrap();
    let iops = periods.iter().map(|it| it["iops"].as_f64().unwrap());
    let iops: Vec<f64> = iops.collect();
    assert_eq!(iops.len(), 2, "{doc}");
    // Each machine is held at 200 a second: the sum of both, once.
    assert!(
        iops.iter().all(|iops| *iops > 250.0 && *iops < 450.0),
        "{doc}"
    );

    let seen = lab.data();
    let (m1, m2) = (seen.display(), seen.join("own"));
    fs::create_dir(data[1].path().join("own")).unwrap();
    let study = format!(
        r#"
engine = "native"
hosts = ["m1", "m2"]
assert = ["write-8k.write.n == 256", "write-8k.write.iops > 1T"]
[target]
path = "{m1}"
[target.host.m2]
path = "{}"
[[step]]
command = "touch ${{made}}"
[[step]]
for = {{ bs = ["4k", "8k"] }}
[[step.step]]
name = "write-${{bs}}"
job = "w.fio"
set = {{ bs = "${{bs}}" }}
"#,
        m2.display()
    )
    .replace("${made}", &format!("{m1}/made"));
    fs::write(bench.0.path().join("study.toml"), study).unwrap();
    fs::write(bench.0.path().join("w.fio"), "[w]\nrw=write\nsize=1m\n").unwrap();
    let (code, doc) = bench.json(&lab, &["run", "study.toml"]);
    assert_eq!(code, Some(7), "{doc}");
    assert_eq!(sums(&doc), [("write-4k", 2), ("write-8k", 2)], "{doc}");
    let holds = |at: usize| doc["assertions"][at]["holds"].as_bool();
    assert_eq!((holds(0), holds(1)), (Some(true), Some(false)), "{doc}");
    let is_there = |place: usize, name: &str| data[place].path().join(name).exists();
    assert!(is_there(0, "w.0.0") && is_there(1, "own/w.0.0"));
    assert!(is_there(0, "made") && is_there(1, "made") && !is_there(1, "w.0.0"));
    let shown = bench
        .command(&lab, &["plan", "study.toml"])
        .output()
        .unwrap();
    assert!(said(&shown).contains("step: write-8k"), "{shown:?}");
    let simulated = bench.command(&lab, &["run", "study.toml", "--engine", "sim"]);
    let refused = { simulated }.output().unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}

/// A campaign of four points, whose device is a file of each machine.
fn campaign(bench: &Bench, lab: &Lab, data: &[TempDir]) {
    for folder in data {
        let file = fs::File::create(folder.path().join("dut")).unwrap();
        file.set_len(16 << 20).unwrap();
    }
    let good = |args: &[&str]| {
        let output = bench.command(lab, args).output().unwrap();
        assert!(output.status.success(), "{args:?}: {output:?}");
    };
    good(&["init", "--force", "."]);
    good(&["config", "defconfig", "debug-quick"]);
    let dut = format!("DUT_FILENAME={}", lab.data().join("dut").display());
    let set = [
        "config",
        "set",
        "DUT_TEST_MAX_IODEPTH=2",
        "DUT_RUNTIME=2s",
        "STEADY_STATE_PROVISIONING=n",
    ];
    good(&[&set[..], &[&dut]].concat());
}

const ONLY: [&str; 4] = ["--only", "*-randread", "--only", "*-randwrite"];

/// Waits until the campaign's last record has so many steps that have begun.
fn steps_begun(bench: &Bench, wanted: usize) {
    await_that("steps begin", || {
        let runs = fs::read_dir(bench.0.path().join("fathom-runs")).into_iter();
        let last = runs.flatten().flatten().map(|run| run.path()).max();
        let log = last.map(|run| fs::read_to_string(run.join("events.jsonl")));
        let log = log.and_then(Result::ok).unwrap_or_default();
        let begun = log
            .lines()
            .filter(|line| line.contains("\"event\":\"step\""));
        begun.count() >= wanted
    });
}

#[test]
fn a_campaign_on_three_machines_goes_on_after_one_has_died() {
    let data = folders::<3>();
    let lab = require!(lab(&data));
    let bench = Bench::new();
    campaign(&bench, &lab, &data);
    let hosts = ["run", "--hosts", "m1,m2,m3", "--json", "-q"];
    let run = bench.command(&lab, &[&hosts[..], &ONLY].concat());
    let run = { run }.spawn().unwrap();
    steps_begun(&bench, 2);
    lab.kill_sessions(2);
    let (code, doc) = document(run);
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    assert_eq!(failures(&doc)[0].1, "m3", "{doc}");
    let whole: Vec<String> = sums(&doc)
        .into_iter()
        .filter(|(_, n)| *n == 3)
        .map(|(step, _)| step.to_owned())
        .collect();
    assert!(!whole.is_empty(), "the first point has its figures: {doc}");
    // Not on this machine, nor with another one.
    for args in [&["run"][..], &["run", "--hosts", "m1,m2"]] {
        let refused = bench.command(&lab, args).output().unwrap();
        assert_eq!(refused.status.code(), Some(4), "{refused:?}");
        assert!(said(&refused).contains("m1, m2, m3"), "{refused:?}");
    }
    let (code, doc) = bench.json(&lab, &["resume"]);
    assert_eq!(
        (code, &doc["status"]),
        (Some(0), &"complete".into()),
        "{doc}"
    );
    let mut all: Vec<&str> = sums(&doc)
        .into_iter()
        .filter(|(_, n)| *n == 3)
        .map(|(step, _)| step)
        .collect();
    let begun = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!((all.len(), begun), (4, 4), "each point once: {doc}");
    assert_eq!(doc["parts"].as_array().unwrap().len(), 3);
    for part in doc["parts"].as_array().unwrap() {
        assert_eq!(part["campaign"]["done"], 4, "{part}");
    }
    let status = bench.command(&lab, &["status", "--json"]).output().unwrap();
    let status: Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["done"], 4, "{status}");
    (0..3).for_each(|place| nothing_left(&lab, place));
}

/// What was measured without a machine is measured again with it.
#[test]
fn a_campaign_goes_on_without_a_machine_and_later_with_it() {
    let data = folders::<2>();
    let lab = require!(lab(&data));
    let bench = Bench::new();
    campaign(&bench, &lab, &data);
    // It cannot be reached: the other one goes on alone.
    let known = lab.data().with_file_name("known");
    let keys = fs::read(&known).unwrap();
    lab.forget_key(1);
    let run = ["run", "--hosts", "m1,m2", "--min-hosts", "1", "--only"];
    let (code, doc) = bench.json(&lab, &[&run[..], &["*-randread"]].concat());
    assert_eq!(code, Some(0), "{doc}");
    assert_eq!(failures(&doc)[0].1, "m2", "{doc}");
    assert_eq!(
        sums(&doc).iter().map(|sum| sum.1).collect::<Vec<_>>(),
        [1, 1]
    );
    fs::write(&known, keys).unwrap();
    let (code, doc) = bench.json(&lab, &["resume"]);
    assert_eq!(code, Some(0), "{doc}");
    let with_both = sums(&doc).into_iter().filter(|(_, n)| *n == 2);
    assert_eq!(with_both.count(), 2, "{doc}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}

/// The node of a device in a machine's own folder: all have the same name there.
fn node(folder: &Path, device: &LoopDevice) {
    let number = Command::new("stat")
        .args(["-c", "%Hr %Lr"])
        .arg(device.path())
        .output()
        .unwrap();
    let number = String::from_utf8(number.stdout).unwrap();
    let made = Command::new("mknod")
        .arg(folder.join("disk"))
        .arg("b")
        .args(number.split_whitespace())
        .status();
    assert!(made.unwrap().success());
}

#[test]
fn priorities_are_measured_on_a_disk_of_each_machine_and_refused_where_one_has_none() {
    let name = "priorities_are_measured_on_a_disk_of_each_machine";
    let disks = match [LoopDevice::new(16 << 20), LoopDevice::new(16 << 20)] {
        [Ok(one), Ok(other)] => [one, other],
        [Err(reason), _] | [_, Err(reason)] => return skip(name, &reason),
    };
    let data = folders::<2>();
    let lab = require!(lab(&data));
    for (folder, disk) in data.iter().zip(&disks) {
        node(folder.path(), disk);
    }
    let bench = Bench::new();
    let dev = lab.data().join("disk").display().to_string();
    let prio = ["prio", "--dev", &dev, "--hosts", "m1,m2", "--baseline"];
    let short = ["--bs", "4k", "--ramptime", "0", "--runtime", "1"];
    let ncq = ["--ncq-prio", "--percentage", "20"];
    let (code, doc) = bench.json(&lab, &[&prio[..], &short, &ncq].concat());
    assert_eq!((code, &doc["status"]), (Some(1), &"failed".into()), "{doc}");
    let told = failures(&doc);
    assert_eq!(told.len(), 2, "{doc}");
    assert!(told[0].2.contains("has no NCQ priority"), "{told:?}");
    assert_eq!(sums(&doc), []);
    let (code, doc) = bench.json(&lab, &[&prio[..], &short, &["--qds", "1 4"]].concat());
    assert_eq!(code, Some(0), "{doc}");
    assert_eq!(sums(&doc), [("baseline/1", 2), ("baseline/4", 2)], "{doc}");
    for part in doc["parts"].as_array().unwrap() {
        let point = &part["prio"]["workloads"][0]["points"][1];
        assert_eq!(point["iodepth"], 4, "{part}");
        assert!(point["n"].as_u64() > Some(0), "{part}");
    }
    let shown = bench.command(&lab, &["prio", "show"]).output().unwrap();
    assert!(said(&shown).contains("=== m2 ==="), "{shown:?}");
    (0..2).for_each(|place| nothing_left(&lab, place));
}
