//! Campaign folders from the command line and with make.

use std::path::Path;
use std::process::{Command, Output};

use assert_cmd::cargo::cargo_bin;
use fathom_testkit::{program, require};
use serde_json::Value;

fn fathom(dir: &Path, args: &[&str]) -> Output {
    Command::new(cargo_bin("fathom"))
        .args(args)
        .current_dir(dir)
        .env_remove("DEV")
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A campaign with a defconfig.
fn campaign(defconfig: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let done = fathom(
        dir.path(),
        &["init", "--force", ".", "--defconfig", defconfig],
    );
    assert!(done.status.success(), "{}", text(&done.stderr));
    dir
}

#[test]
fn the_way_from_nothing_to_a_checked_campaign() {
    let dir = tempfile::tempdir().unwrap();
    let made = fathom(dir.path(), &["init", "nightly"]);
    assert!(text(&made.stdout).contains("fathom config defconfig survey-10min"));
    let folder = dir.path().join("nightly");
    let early = fathom(&folder, &["gen"]);
    assert_eq!(early.status.code(), Some(5));
    assert!(text(&early.stderr).contains("this folder has no .config"));
    let configured = fathom(&folder, &["config", "defconfig", "survey-10min"]);
    assert!(configured.status.success());
    let plan = fathom(dir.path(), &["plan", "-C", "nightly"]);
    let shown = text(&plan.stdout);
    assert!(shown.contains("0001-basic-tests/0002-seqread"), "{shown}");
    assert!(shown.contains("writes  nothing"), "{shown}");
    let made = fathom(&folder, &["gen"]);
    assert_eq!(
        text(&made.stdout),
        "18 job files: 18 written, 0 as they were\n"
    );
    let checked = fathom(&folder, &["check"]);
    assert!(checked.status.success());
    assert!(text(&checked.stdout).starts_with("18 job files: nothing to complain about\n"));
}

#[test]
fn documents_of_campaigns() {
    let dir = campaign("all-tests");
    let plan = json(&fathom(
        dir.path(),
        &["plan", "--json", "--write-speed", "1M"],
    ));
    assert_eq!(plan["schema"], "fathom.plan/1");
    assert_eq!(plan["totals"]["steps"], 702);
    // The points, and the two loads that are steady at the first window.
    assert_eq!(plan["totals"]["duration_ms"], 702 * 240_000 + 2 * 900_000);
    assert_eq!(plan["totals"]["stages"], 7);
    assert_eq!(plan["totals"]["write_speed"], 1 << 20);
    assert_eq!(plan["totals"]["rated_endurance_share"], Value::Null);
    assert_eq!(plan["steps"][0]["x"], "iodepth");
    assert_eq!(plan["steps"][0]["settings"]["rw"], "write");
    // Nothing is known of the range of a device that is not there.
    let notes = plan["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let note = notes[0].as_str().unwrap();
    let left_out = "the SNIA tests (iops) are not in this plan: ";
    assert!(note.starts_with(left_out), "{note}");
    assert!(note.contains("is not there or has no size"), "{note}");
    let unknown = json(&fathom(dir.path(), &["plan", "--json"]));
    assert_eq!(unknown["totals"]["write_bytes"], Value::Null);
    let made = json(&fathom(
        dir.path(),
        &["gen", "--json", "--only", "0001-basic-tests"],
    ));
    assert_eq!((&made["files"], &made["written"]), (&78.into(), &78.into()));
    let checked = fathom(
        dir.path(),
        &["check", "--json", "--only", "0001-basic-tests"],
    );
    assert_eq!(json(&checked)["errors"], 0);
    assert_eq!(json(&checked)["dut_there"], false);
    let all = fathom(dir.path(), &["check", "--json"]);
    assert_eq!(all.status.code(), Some(3));
    assert_eq!(json(&all)["problems"][0]["files"], 708 - 78);
    let none = fathom(dir.path(), &["plan", "--only", "0009-nothing"]);
    assert_eq!(none.status.code(), Some(3));
}

#[test]
fn mistakes_end_with_the_documented_codes() {
    let dir = campaign("survey-10min");
    let again = fathom(dir.path(), &["init", "."]);
    assert_eq!(again.status.code(), Some(4));
    let nowhere = fathom(Path::new("/"), &["plan", "-C", "/dev"]);
    assert_eq!(nowhere.status.code(), Some(5));
    let template = dir.path().join("templates/performance.fio");
    let text_of = std::fs::read_to_string(&template).unwrap();
    std::fs::write(&template, text_of.replace("{{ iodepth }}", "{{ iodepht }}")).unwrap();
    let wrong = fathom(dir.path(), &["check"]);
    assert_eq!(wrong.status.code(), Some(3));
    let said = text(&wrong.stderr);
    assert!(
        said.contains("templates/performance.fio:5: {{ iodepht }} is no option"),
        "{said}"
    );
    assert!(said.contains("did you mean iodepth?"), "{said}");
}

fn make(dir: &Path, args: &[&str]) -> Output {
    Command::new("make")
        .args(args)
        .current_dir(dir)
        .env_remove("DEV")
        .env("FATHOM", cargo_bin("fathom"))
        .output()
        .unwrap()
}

#[test]
fn the_targets_of_make() {
    require!(program("make"));
    let dir = campaign("survey-10min");
    let run = |args: &[&str]| {
        let done = make(dir.path(), args);
        let (out, said) = (text(&done.stdout), text(&done.stderr));
        assert!(done.status.success(), "make {args:?}: {out}{said}");
        format!("{out}{said}")
    };
    std::fs::write(dir.path().join("defconfigs/ours"), "# For our own drives\n").unwrap();
    let help = run(&["help"]);
    for (name, about) in [
        ("nvme2n1-all", "all-tests for a second NVMe drive"),
        ("survey-10min", "Ten minutes of reads"),
        ("ours", "For our own drives"),
    ] {
        let line = help
            .lines()
            .find(|line| line.contains(&format!("defconfig-{name} ")));
        assert!(line.is_some_and(|line| line.contains(about)), "{help}");
    }
    assert!(run(&["-j8"]).contains("18 job files: 18 written"));
    assert!(run(&["-j8", "ini", "check"]).contains("18 job files: nothing to complain about"));
    assert!(run(&["D=seqread", "plan"]).contains("steps   9"));
    assert!(run(&["D=randread seqread", "plan"]).contains("steps   18"));
    assert!(run(&["D=seqread", "-n", "resume"]).contains("resume --only 'seqread'"));
    let once = run(&["D=seqread", "-n", "once"]);
    assert!(once.contains("run --only 'seqread'"), "{once}");
    run(&["DEV=/dev/loop77"]);
    let file = "0001-basic-tests/0002-seqread/0001-bs4k-1j-1qd-read.ini";
    let job = std::fs::read_to_string(dir.path().join(file)).unwrap();
    assert!(job.contains("\nfilename=/dev/loop77\n"), "{job}");
    for target in [
        "oldconfig",
        "olddefconfig",
        "listnewconfig",
        "savedefconfig",
        "alldefconfig",
    ] {
        run(&[target]);
    }
    assert!(dir.path().join("defconfig").exists());
    run(&["allnoconfig"]);
    assert!(run(&["ini"]).contains("nothing to measure"));
    run(&["randconfig"]);
    run(&["allyesconfig"]);
    assert!(run(&["-j2", "default"]).contains("708 job files: 708 written"));
    run(&["defconfig-nvme2n1-all"]);
    let config = std::fs::read_to_string(dir.path().join(".config")).unwrap();
    assert!(config.contains("CONFIG_DUT_FILENAME=\"/dev/nvme2n1\""));
    assert!(run(&["clean"]).contains("708 job files removed"));
    run(&["mrproper"]);
    assert!(!dir.path().join(".config").exists());
    assert!(dir.path().join("tests/0001-basic-tests.toml").exists());
    let failed = make(dir.path(), &["ini"]);
    assert!(text(&failed.stderr).contains("no .config"));
    assert_eq!(failed.status.code(), Some(2));
}
