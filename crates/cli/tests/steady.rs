//! `fathom steady` on records of simulated devices, whose verdicts are known
//! beforehand, and of real runs.

use std::path::Path;
use std::process::{Command, Output};

use fathom_testkit::{program, require};
use serde_json::Value;

fn fathom(dir: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(args)
        .current_dir(dir)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap()
}

fn good(dir: &Path, args: &[&str]) -> String {
    let output = fathom(dir, args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// A job that writes for so long on a simulated device, in a folder of its own.
fn simulated(device: &str, runtime: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let head = "format = \"fathom-sim-device\"\nversion = 1\nnoise_percent = 0\n";
    std::fs::write(dir.path().join("sim.toml"), format!("{head}{device}")).unwrap();
    let runtime = format!("--runtime={runtime}");
    let run = [
        "-q", "job", "run", "--engine", "sim", "--sim", "sim.toml", "--",
    ];
    let job = [
        "--name=w",
        "--rw=write",
        "--bs=1m",
        "--time_based",
        &runtime,
    ];
    // A device that stalls fails, and is judged all the same.
    fathom(dir.path(), &[&run[..], &job[..]].concat());
    dir
}

fn steady(dir: &Path, options: &[&str]) -> Value {
    let all = [&["steady", "--json"], options].concat();
    let found: Value = serde_json::from_str(&good(dir, &all)).unwrap();
    assert_eq!(found["schema"], "fathom.steady/1");
    found
}

/// The outcome of a device by SNIA's criterion, and the round.
fn outcome(device: &str) -> (String, u64) {
    let dir = simulated(device, "40m");
    let found = steady(dir.path(), &[]);
    let verdict = &found["verdicts"][0];
    let last = verdict["window"]["last"].as_u64().unwrap_or(0);
    (verdict["outcome"].as_str().unwrap().to_owned(), last)
}

#[test]
fn the_verdict_on_each_kind_of_device_is_known_beforehand() {
    let of = |device: &str| outcome(device);
    assert_eq!(of(""), ("attained".to_owned(), 5));
    let (settles, round) = of("[settle]\nfresh_percent = 400\nseconds = 240\n");
    assert_eq!(settles, "attained");
    assert!((10..=20).contains(&round), "{round}");
    let slower = of("[settle]\nfresh_percent = 1000\nseconds = 600\n");
    assert_eq!(slower.0, "too_late".to_owned());
    // Rounds of a minute of e^(x·t): the fit changes by 4·x over five of them.
    // x = 2.47 % and 2.53 % a minute, which is so much in an hour:
    assert_eq!(of("drift_percent_per_hour = 340.2\n").0, "attained");
    assert_eq!(of("drift_percent_per_hour = 356.3\n").0, "not_attained");
    // Rounds are half a wave: they lie 2/π of its height above and below, and a
    // range of 2·h/(1 + h/5) is 19.5 % and 20.3 %.
    let swing = |percent| of(&format!("[swing]\npercent = {percent}\nseconds = 120\n"));
    assert_eq!(swing(15.6), ("attained".to_owned(), 5));
    assert_eq!(swing(16.3).0, "not_attained");
    assert_eq!(of("drift_percent_per_hour = 2000\n").0, "not_attained");
}

#[test]
fn a_device_that_stalls_is_not_steady_while_it_does() {
    let stall = "[stall]\nafter_s = 0\n";
    let dir = simulated(stall, "6m");
    let found = steady(
        dir.path(),
        &["--metric", "iops,lat", "--rule", "fio", "--window", "60s"],
    );
    assert_eq!(found["attained"], false);
    assert_eq!(found["verdicts"][0]["outcome"], "not_attained");
    assert_eq!(
        found["verdicts"][0]["terms"][0]["measured_percent"],
        Value::Null
    );
    assert_eq!(found["verdicts"][1]["outcome"], "no_values");
    let found = steady(dir.path(), &["--metric", "bw"]);
    assert_eq!(found["verdicts"][0]["outcome"], "not_attained");
}

#[test]
fn a_record_is_judged_again_with_other_limits_and_told_in_80_columns() {
    let dir = simulated("drift_percent_per_hour = 500\n", "30m");
    let strict = steady(dir.path(), &["--metric=iops", "--metric=p99"]);
    assert_eq!(strict["rule_name"], "SNIA's criterion (interpretation)");
    assert_eq!(strict["verdicts"].as_array().unwrap().len(), 2);
    assert_eq!(strict["verdicts"][0]["attained"], false);
    assert!(strict["verdicts"][0]["closest"]["n"] == 5);
    let loose = steady(dir.path(), &["--slope", "15"]);
    assert_eq!(loose["attained"], true);
    assert!(
        loose["rule_name"]
            .as_str()
            .unwrap()
            .ends_with("other limits")
    );
    let short = steady(dir.path(), &["--round", "20s"]);
    assert_eq!(short["attained"], true, "a third of the drift in a window");
    let by_fio = steady(dir.path(), &["--rule=fio", "--window=60", "--slope=10"]);
    assert_eq!(by_fio["rule_name"], "fio's rule");
    assert_eq!(by_fio["attained"], true);
    assert_eq!(by_fio["verdicts"][0]["terms"].as_array().unwrap().len(), 1);
    let text = good(dir.path(), &["steady", "--metric=iops,bw,lat,p99.9"]);
    assert!(text.contains("fails by"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn what_cannot_be_judged_is_missing_and_says_why() {
    let dir = simulated("", "2m");
    let refused = |args: &[&str]| {
        let output = fathom(dir.path(), &[&["steady"], args].concat());
        let message = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), message)
    };
    let (code, message) = refused(&["--job", "x"]);
    assert_eq!(code, 5);
    assert!(message.contains("no job x; its jobs: w"), "{message}");
    assert_eq!(refused(&["--round", "point"]).0, 5);
    assert_eq!(refused(&["--dir", "read"]).0, 5);
    assert_eq!(refused(&["nothing-of-that-name"]).0, 5);
    for wrong in ["--window=1", "--metric=slat", "--limit=-1", "--round=x"] {
        assert_eq!(refused(&[wrong]).0, 2, "{wrong}");
    }
    // Two rounds are not five: a verdict, and no error.
    let found = steady(dir.path(), &[]);
    assert_eq!(found["verdicts"][0]["outcome"], "too_short");
}

#[test]
fn a_native_run_is_judged_by_its_samples() {
    let dir = tempfile::tempdir().unwrap();
    let job = "--name=r --ioengine=null --rw=randread --size=1g --rate_iops=1000 \
               --time_based --runtime=2s";
    let job: Vec<&str> = job.split_whitespace().collect();
    let run = [
        "-q",
        "job",
        "run",
        "--engine=native",
        "--interval=100ms",
        "--",
    ];
    good(dir.path(), &[&run[..], &job[..]].concat());
    let options = [
        "--rule=fio",
        "--window=4",
        "--limit=1000",
        "--metric=iops,bw",
    ];
    let found = steady(dir.path(), &options);
    assert_eq!(found["attained"], true, "{found}");
    let mean = found["verdicts"][0]["window"]["mean"].as_f64().unwrap();
    assert!((10.0..4000.0).contains(&mean), "{mean}");
}

#[test]
fn fios_own_verdict_follows_from_the_values_it_gives() {
    require!(program("fio"));
    for ss in ["iops:60%", "iops_slope:90%"] {
        let dir = tempfile::tempdir().unwrap();
        let job = "--name=r --ioengine=psync --rw=randread --size=4m --rate_iops=400 \
                   --time_based --runtime=6s --ss_dur=2s";
        let ss_option = format!("--ss={ss}");
        let job = job.split_whitespace().chain([ss_option.as_str()]);
        let run = ["-q", "job", "run", "--engine=fio", "--interval=500ms", "--"];
        let args: Vec<&str> = run.into_iter().chain(job).collect();
        good(dir.path(), &args);
        let found = steady(dir.path(), &["--rule=fio", "--window=2", "--limit=90"]);
        let fio = &found["fio"][0];
        assert!(fio["ss"].as_str().unwrap().starts_with(&ss[..4]), "{fio}");
        assert_eq!(fio["recomputed_attained"], fio["attained"], "{fio}");
        assert_eq!(fio["remark"], Value::Null, "{fio}");
        assert_eq!(fio["n"], 2);
    }
}
