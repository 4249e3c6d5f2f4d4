//! On this machine.

use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_testkit::{SmallFs, require, skip};
use serde_json::Value;

use crate::quick::support::{
    Ended, Place, SECOND, SMALL_GROUP, await_that, btrfs, programs_without, script, signal,
};

const TAG: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";
const SERIES: [&str; 6] = [
    "Testgroup \"small (GROUP)\"",
    "===   write series    ===",
    "2 files, seq 64k writes: N write iops",
    "2 files, rnd 4k writes: N write iops",
    "=== native aio series ===",
    "2 files, rnd 4k readwrites, native aio: N read iops, N write iops",
];

/// The lines that a run of the small group prints.
fn expected(place: &Place) -> Vec<String> {
    let group = place.path().join("small.toml").display().to_string();
    SERIES
        .iter()
        .map(|line| line.replace("GROUP", &group))
        .collect()
}

#[test]
fn a_run_prints_its_lines_and_is_recorded() {
    let place = Place::new();
    let ended = place
        .run(&["quick", "here", "target", "--group", "small.toml"])
        .code(0);
    assert_eq!(ended.series(), expected(&place));
    let first = format!("Running tests in \"{}\" on ", place.test_folder().display());
    let ended = ended.says(&first).says("Tests complete on ").says("took ");
    let ended = ended.says("Files remain. To clean up, add argument \"cleanup\".");
    assert!(!ended.stdout.contains('\x1b'), "colours only on a terminal");
    assert_eq!(ended.stderr, "");
    let tag = fs::read_to_string(place.test_folder().join("CACHEDIR.TAG")).unwrap();
    assert_eq!(tag, TAG);
    let log = place.log();
    assert!(
        log.contains("\"complete\"") && log.contains(SECOND),
        "{log}"
    );
    let job = fs::read_to_string(place.records()[0].join("jobs/02.fio")).unwrap();
    assert!(
        job.starts_with(&format!("[{SECOND}]\n")) && job.contains("\nruntime=1\n"),
        "{job}"
    );
}

#[test]
fn the_document_is_the_runs_with_the_series_in_it() {
    let place = Place::new();
    let args = ["quick", "here", "target", "--group", "small.toml", "--json"];
    let ended = place
        .run(&args)
        .code(0)
        .complains("2 files, rnd 4k writes: ");
    let document = ended.json();
    assert_eq!(document["status"], "complete");
    assert_eq!(document["jobs"].as_array().unwrap().len(), 3);
    assert!(document["jobs"][1]["write"]["iops"].as_f64().unwrap() > 0.0);
    let quick = &document["quick"];
    assert_eq!(quick["tests"][1]["name"], SECOND);
    assert!(quick["tests"][2]["figures"]["read_iops"].as_u64().unwrap() > 0);
    assert_eq!(quick["shortened"], false);
    assert_eq!(quick["baselines"], serde_json::json!([]));
}

#[test]
fn one_test_repeats_only_after_a_full_run() {
    let place = Place::new();
    let args = ["quick", "here", "target", SECOND, "--group", "small.toml"];
    place
        .run(&args)
        .code(5)
        .complains("Test directory must pre-exist to repeat a specific test");
    assert!(!place.test_folder().exists() && place.records().is_empty());
    place
        .run(&["quick", "here", "target", "--group", "small.toml"])
        .code(0);
    let ended = place.run(&args).code(0);
    let command = format!(
        "cd {} && fio --name='{SECOND}' ",
        place.test_folder().display()
    );
    let ended = ended.says(&command).says(" --rw=randwrite ");
    // The command is one that can be run as it stands.
    let line = ended
        .stdout
        .lines()
        .find(|line| line.starts_with("cd "))
        .unwrap();
    let again = Command::new("sh")
        .args(["-c", &format!("{line} --runtime=1")])
        .output()
        .unwrap();
    assert!(
        again.status.success(),
        "{}",
        String::from_utf8_lossy(&again.stderr)
    );
    place
        .run(&[
            "quick",
            "here",
            "target",
            SECOND,
            "--group",
            "small.toml",
            "--size",
            "4M",
        ])
        .code(5)
        .complains("--size of the full run");
}

#[test]
fn cleanup_removes_only_what_carries_the_tag() {
    let place = Place::new();
    let home = place.path().join("home/stb-testdir");
    // A first argument cleanup is the home directory's, also where a folder has that name.
    fs::create_dir(place.path().join("cleanup")).unwrap();
    place
        .run(&["quick", "here", "cleanup"])
        .code(0)
        .says("Nothing to clean up");
    place
        .run(&["quick", "here", "--group", "small.toml", "-q"])
        .code(0);
    assert!(home.join("CACHEDIR.TAG").exists());
    let removed = format!("Removed \"{}\".", home.display());
    place
        .run(&["quick", "here", "cleanup"])
        .code(0)
        .says(&removed);
    assert!(!home.exists());
    place
        .run(&["quick", "here", "cleanup", SECOND])
        .code(3)
        .complains("./cleanup");
    fs::create_dir(place.test_folder()).unwrap();
    fs::write(place.test_folder().join("thesis.txt"), "years of work").unwrap();
    place
        .run(&["quick", "here", "target", "cleanup"])
        .code(4)
        .complains("CACHEDIR.TAG");
    place
        .run(&["quick", "here", "target", "--group", "small.toml"])
        .code(4);
    assert!(place.test_folder().join("thesis.txt").exists());
    let json = place
        .run(&["quick", "here", "cleanup", "--json"])
        .code(0)
        .json();
    assert_eq!(json["removed"], false);
}

#[test]
fn percentages_of_saved_baselines_stand_beside_each_other() {
    let place = Place::new();
    let args = ["quick", "here", "target", "--group", "small.toml", "-q"];
    let run = |extra: &[&str]| place.run(&[&args[..], extra].concat());
    run(&[]).code(0);
    let before = place.records()[0]
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    place
        .run(&["baseline", "save", "mine", &before])
        .code(0)
        .says("Baseline mine saved");
    place.run(&["baseline", "save", "other", &before]).code(0);
    let nowhere = ["baseline", "save", "mine", "nowhere"];
    place.run(&nowhere).code(5).complains("nowhere");
    place
        .run(&["baseline", "save", "hdd", &before])
        .code(4)
        .complains("comes with fathom");
    place
        .run(&["baseline", "list"])
        .code(0)
        .says("HDD")
        .says("mine")
        .says("other");
    place
        .run(&["baseline", "show", "mine"])
        .code(0)
        .says(SECOND)
        .says("kernel = ");
    let ended = place
        .run(&[
            "quick",
            "here",
            "target",
            "--group",
            "small.toml",
            "--baseline",
            "mine,other",
        ])
        .code(0);
    let line = ended
        .stdout
        .lines()
        .find(|line| line.starts_with(SECOND))
        .unwrap();
    assert!(
        line.contains("% mine, ") && line.ends_with("% other)"),
        "{line}"
    );
    // A shortened trial is another thing than the run of the baseline.
    let short = run(&["--size", "1M", "--baseline", "mine"]).code(0);
    short
        .says("not comparable to baseline mine")
        .says("not comparable to the shipped baselines");
    run(&["--baseline", "none"])
        .code(5)
        .complains("known are HDD, mine, other");
    place.run(&["baseline", "remove", "other"]).code(0);
    let json = place.run(&["baseline", "list", "--json"]).code(0).json();
    assert_eq!(json["baselines"].as_array().unwrap().len(), 2);
}

#[test]
fn a_job_run_can_be_a_baseline_by_the_names_of_its_jobs() {
    let place = Place::new();
    let name = format!("--name={SECOND}");
    let job = ["job", "run", "-q", "--", &name, "--rw=read", "--size=64k"];
    place.run(&job).code(0);
    let id = place.records()[0].file_name().unwrap().to_owned();
    place
        .run(&["baseline", "save", "job", id.to_str().unwrap()])
        .code(0);
    place.run(&["baseline", "list"]).code(0).says("job run");
    let args = ["quick", "here", "target", "--group", "small.toml"];
    place
        .run(&[&args[..], &["--baseline", "job"]].concat())
        .code(0)
        .says("% job)")
        .says("its jobs' options, size and run time were not compared");
}

#[test]
fn two_runs_stand_side_by_side() {
    let place = Place::new();
    let args = ["quick", "here", "target", "--group", "small.toml", "-q"];
    place.run(&args).code(0);
    place.run(&args).code(0);
    place.run(&[&args[..], &["--size", "1M"]].concat()).code(0);
    let records = place.records();
    let id = |at: usize| records[at].file_name().unwrap().to_str().unwrap();
    let compared = place.run(&["quick", "compare", id(0), id(1)]).code(0);
    compared
        .says(SECOND)
        .says("cannot tell: 2 more runs of each");
    let json = place
        .run(&["quick", "compare", id(0), id(2), "--json"])
        .code(0)
        .json();
    assert!(json["rows"].as_array().unwrap().len() >= 3);
    let differences = json["differences"].as_array().unwrap();
    let is_size = |one: &&serde_json::Value| one["what"].as_str().unwrap().ends_with(": size");
    assert!(
        differences.iter().any(|one| is_size(&one)),
        "{differences:?}"
    );
}

#[test]
fn a_test_that_fails_is_a_line_and_the_run_goes_on() {
    let place = Place::new();
    let broken = SMALL_GROUP.replace(
        "rw = \"randwrite\"",
        "rw = \"randwrite\", options = [\"ioscheduler=none_such\", \"bogus=1\"]",
    );
    fs::write(place.path().join("broken.toml"), broken).unwrap();
    let ended = place
        .run(&["quick", "here", "target", "--group", "broken.toml"])
        .code(1);
    ended
        .says("2 files, rnd 4k writes: 0 read iops, 0 write iops (FAIL!)")
        .says("2 files, rnd 4k readwrites, native aio: ")
        .says("1 failed")
        .says("\"2 files, rnd 4k writes\" failed: ");
}

#[test]
fn an_interrupt_keeps_the_record_and_leaves_no_fio() {
    let place = Place::new();
    let child = place.start(&[
        "quick",
        "here",
        "target",
        "--group",
        "small.toml",
        "--runtime",
        "600",
    ]);
    place.wait_for_second("\"event\":\"sample\"");
    signal(&child, "-INT");
    let ended = Ended::of(child.wait_with_output().unwrap()).code(130);
    ended
        .says("write iops (interrupted)")
        .says("Interrupted on ")
        .says("2 files, seq 64k writes: ");
    await_that("no fio is left", || !place.fio_runs());
    assert!(place.log().contains("\"interrupted\""));
}

#[test]
fn a_folder_in_use_is_refused_a_second_run() {
    let place = Place::new();
    let args = ["quick", "here", "target", "--group", "small.toml"];
    let first = place.start(&[&args[..], &["--runtime", "600"]].concat());
    place.wait_for_second("\"event\":\"sample\"");
    place.run(&args).code(4).complains("another run uses");
    place
        .run(&["quick", "here", "target", "cleanup"])
        .code(4)
        .complains("another run uses");
    signal(&first, "-INT");
    Ended::of(first.wait_with_output().unwrap()).code(130);
}

/// A run of the small group here, with more words.
fn small<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["quick", "here", "target", "--group", "small.toml"], more].concat()
}

#[test]
fn a_dry_run_shows_every_test_and_changes_nothing() {
    let place = Place::new();
    let shown = place.run(&small(&["--engine", "fio", "--dry-run"])).code(0);
    let head = format!("# {SECOND}: {SECOND}, 1.0 s\n");
    shown.says(&head).says("fathom-runs/RUN/jobs/03.fio");
    let args = small(&["--engine", "native", "--dry-run", "--json"]);
    let document = place.run(&args).code(0).json();
    assert_eq!(document["schema"], "fathom.dry-run/1");
    assert_eq!(document["engine"], "native");
    assert_eq!(document["steps"].as_array().unwrap().len(), 3);
    let job = document["steps"][1]["job_file"].as_str().unwrap();
    assert!(job.starts_with(&format!("[{SECOND}]\n")), "{job}");
    assert!(!place.test_folder().exists() && place.records().is_empty());
}

#[test]
fn a_dry_run_on_several_machines_shows_what_they_are_sent() {
    let place = Place::new();
    let args = ["quick", "--hosts", "m1,m2", "--max-time", "1h"];
    let args = [&args[..], &["--max-written", "1G", "--dry-run"]].concat();
    let shown = place.run(&args).code(0);
    let limits = ["\"max_written\": 1073741824", "\"secs\": 3600"];
    let shown = shown.says("ssh m2 fathom agent");
    limits.iter().fold(shown, |shown, limit| shown.says(limit));
}

#[test]
fn a_limit_ends_a_series_and_resume_goes_on() {
    let place = Place::new();
    let spent = place.run(&small(&["--max-written", "1M"])).code(1);
    spent
        .complains("the run stopped: ")
        .complains("than the 1 MiB that may be")
        .says("2 not run");
    assert!(place.log().contains("\"interrupted\""));
    place
        .run(&["resume", "--max-written", "1T"])
        .code(0)
        .says("1 of 1")
        .says("2 of 2");
    assert_eq!(place.log().matches("\"step_ended\"").count(), 3);
    place
        .run(&["resume"])
        .code(0)
        .complains("Nothing is left to do");
    fs::remove_dir_all(&place.records()[0]).unwrap();
    // The second test alone takes as long.
    place
        .run(&small(&["--max-time", "1s"]))
        .code(1)
        .complains("would end after the time limit of 1.0 s")
        .says("2 files, seq 64k writes: ");
}

#[test]
fn what_a_series_cannot_be_told_is_refused_with_the_reason() {
    let place = Place::new();
    let refused = |args: &[&str], code, why| {
        place.run(args).code(code).complains(why);
    };
    let files = "a quick series writes to files only";
    refused(&small(&["--destroy", "sda"]), 2, files);
    let simulated = "a simulated device has none";
    refused(&small(&["--engine", "sim"]), 2, simulated);
    refused(&small(&["--sim", "drive.toml"]), 2, simulated);
    let there = "--dry-run is for this machine";
    refused(&["quick", "bench1", "--dry-run"], 2, there);
    fs::create_dir(place.test_folder()).unwrap();
    fs::write(place.test_folder().join("CACHEDIR.TAG"), TAG).unwrap();
    let cleanup = ["quick", "here", "target", "cleanup", "--dry-run"];
    refused(&cleanup, 3, "cleanup has no dry run");
    assert!(place.test_folder().join("CACHEDIR.TAG").exists());
    assert!(place.records().is_empty());
}

#[test]
fn a_fio_that_is_named_is_the_one_that_runs() {
    let place = Place::new();
    let fio = place.path().join("my-fio");
    script(place.path(), "my-fio", "exec fio \"$@\"");
    let args = small(&["--engine", "fio", "--dry-run", "--fio"]);
    let named = fio.to_str().unwrap();
    place
        .run(&[&args[..], &[named]].concat())
        .code(0)
        .says(&format!("\n{named} "));
    place
        .run(&[&args[..], &["/bin/true"]].concat())
        .code(5)
        .complains("/bin/true: is not fio: --version says ");
}

#[test]
fn a_file_system_without_room_or_read_only_is_refused() {
    let small = require!(SmallFs::new(32 << 20, ""));
    let place = Place::new();
    let at = small.path().to_str().unwrap();
    let ended = place.run(&["quick", "here", at]).code(4);
    ended
        .complains("no room in ")
        .complains("the test files need 1 GiB more");
    assert!(!small.path().join("stb-testdir").exists());
    let remounted = Command::new("mount")
        .args(["-o", "remount,ro", at])
        .status()
        .unwrap();
    assert!(remounted.success());
    place
        .run(&["quick", "here", at, "--group", "small.toml"])
        .code(4)
        .complains("read-only");
}

#[test]
fn memory_is_warned_about_before_anything_runs() {
    let name = "memory_is_warned_about_before_anything_runs";
    if !Path::new("/dev/shm").is_dir() {
        return skip(name, "there is no tmpfs at /dev/shm");
    }
    let shm = tempfile::TempDir::new_in("/dev/shm").unwrap();
    let place = Place::new();
    let at = shm.path().to_str().unwrap();
    let ended = place
        .run(&["quick", "here", at, "--group", "small.toml"])
        .code(0);
    ended
        .complains("warning: ")
        .complains("every figure is memory's")
        .says("doubt ");
}

#[test]
fn a_missing_fio_is_installed_or_refused_or_not_needed() {
    let place = Place::new();
    let farm = programs_without(&place, &["fio", "apt-get", "dnf", "yum", "pkg"]);
    let place = place.set("PATH", farm.display().to_string());
    let args = ["quick", "here", "target", "--group", "small.toml"];
    let with_fio = [&args[..], &["--engine", "fio"]].concat();
    let forbidden = ["--no-install"];
    place
        .run(&[&with_fio[..], &forbidden].concat())
        .code(5)
        .complains("--no-install forbids");
    assert!(place.records().is_empty() && !place.test_folder().exists());
    place
        .run(&[&args[..], &forbidden].concat())
        .code(0)
        .complains("--no-install forbids")
        .complains("the native engine runs the tests")
        .says("engine   native-");
    if fathom_testkit::root().is_err() {
        place
            .run(&with_fio)
            .code(5)
            .complains("only root can install it");
        place
            .run(&args)
            .code(0)
            .complains("the native engine runs the tests");
        return;
    }
    place
        .run(&with_fio)
        .code(5)
        .complains("apt-get, dnf, yum or pkg");
    script(&farm, "dnf", "echo \"dnf was asked: $*\" >&2; exit 1");
    let shown = place.run(&[&args[..], &["--dry-run"]].concat()).code(0);
    let shown = shown.complains("a dry run does not install it");
    assert!(!shown.stderr.contains("dnf was asked"), "{}", shown.stderr);
    place
        .run(&args)
        .code(0)
        .complains("dnf was asked: install -y fio")
        .complains("failed")
        .says("engine   native-");
    // As on a machine whose package lists are empty: the first attempt fails.
    let install = "if [ \"$1\" = update ]; then touch \"${0%/*}/updated\"; exit 0; fi; \
                   [ -e \"${0%/*}/updated\" ] || exit 100; ln -s /usr/bin/fio \"${0%/*}/fio\"";
    script(&farm, "apt-get", install);
    place
        .run(&args)
        .code(0)
        .complains("installing it")
        .says("engine   fio-");
}

#[test]
fn every_shipped_test_is_one_that_fio_takes() {
    let place = Place::new();
    for group in ["current", "v1"] {
        let args = ["quick", "list", "--group", group, "--json"];
        let json = place.run(&args).code(0).json();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let lines = |options: &Value| -> String {
            let options = options.as_array().unwrap().iter();
            options
                .map(|option| format!("{}\n", text(option)))
                .collect()
        };
        let mut jobs = format!("[global]\nfilename=x\nsize=1M\n{}", lines(&json["options"]));
        let series = json["series"].as_array().unwrap();
        for test in series
            .iter()
            .flat_map(|one| one["tests"].as_array().unwrap())
        {
            jobs.push_str(&format!(
                "[{}]\nioengine={}\nbs={}\nrw={}\n{}",
                text(&test["name"]),
                text(&test["engine"]).replace("native aio", "libaio"),
                text(&test["bs"]),
                text(&test["rw"]),
                lines(&test["options"]),
            ));
        }
        let file = place.path().join("all.fio");
        fs::write(&file, jobs).unwrap();
        let output = Command::new("fio")
            .arg("--parse-only")
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && !said.contains("Bad option"),
            "{said}"
        );
    }
}

#[test]
fn a_mistyped_order_is_explained() {
    let place = Place::new();
    let quick = |args: &[&str]| place.run(&[&["quick"], args].concat());
    quick(&["here", "target", "1 file, 1 thread, rnd 16k writes, simpel"])
        .code(3)
        .complains("did you mean \"1 file, 1 thread, rnd 16k writes, simple\"?");
    quick(&["here", "nowhere"])
        .code(3)
        .complains("nowhere: No such file");
    quick(&["here", "/dev/null"])
        .code(3)
        .complains("is not a folder");
    quick(&["here", "target", "--size", "1M"])
        .code(3)
        .complains("the smallest size is 16M");
    quick(&["here", "target", "--size", "many"])
        .code(2)
        .complains("not a size");
    quick(&["here", "target", "--runtime", "0"]).code(2);
    quick(&["here", "target", "--group", "v7"])
        .code(3)
        .complains("known are current, v1");
    quick(&["here", SECOND, "--group", "small.toml"])
        .code(3)
        .complains("is a test; name the folder");
    quick(&[]).code(2).complains("here|USER@HOST");
}

#[test]
fn a_group_of_the_users_own_has_its_place() {
    let place = Place::new();
    let groups = place.path().join("home/config/fathom/quick");
    fs::create_dir_all(&groups).unwrap();
    fs::write(groups.join("small.toml"), SMALL_GROUP).unwrap();
    place
        .run(&["quick", "list"])
        .code(0)
        .says("Groups: current, v1, small.");
    place
        .run(&["quick", "list", "--group", "small"])
        .code(0)
        .says(SECOND);
    fs::write(
        groups.join("small.toml"),
        SMALL_GROUP.replace("files = 2", "files = two"),
    )
    .unwrap();
    place
        .run(&["quick", "list", "--group", "small"])
        .code(3)
        .complains("small.toml: TOML parse error at line 12");
}

#[test]
fn a_folder_in_the_place_of_the_host_is_refused() {
    let place = Place::new();
    for (wrong, todo) in [
        ("target", "fathom quick here target"),
        ("./target", "fathom quick here ./target"),
        ("/mnt/none", "fathom quick here /mnt/none"),
    ] {
        for more in [&[][..], &["cleanup"]] {
            let ended = place.run(&[&["quick", wrong], more].concat());
            assert!(ended.code(3).stderr.contains(todo), "{wrong}");
        }
    }
    assert!(place.records().is_empty());
}

#[test]
fn the_folder_that_nobody_named_is_said_before_anything_is_done() {
    let place = Place::new();
    // The home folder is no folder that a run may use: it says it all the same.
    let home = place.path().join("home");
    fs::create_dir(home.join("stb-testdir")).unwrap();
    fs::write(home.join("stb-testdir/mine"), "mine").unwrap();
    let ended = place.run(&["quick", "here", "--group", "small.toml"]);
    let home = home.canonicalize().unwrap();
    let said = format!(
        "No folder was named: the test files go into {}/stb-testdir. \
         'fathom quick here .' takes the current folder.\n",
        home.display()
    );
    assert!(ended.stderr.starts_with(&said), "{}", ended.stderr);
    assert_eq!(fs::read_dir(home.join("stb-testdir")).unwrap().count(), 1);
}

#[test]
fn nothing_is_made_where_no_record_can_be() {
    let place = Place::new();
    std::os::unix::fs::symlink("gone", place.path().join("link")).unwrap();
    let args = ["--runs", "link", "quick", "here", "target"];
    let args = [&args[..], &["--group", "small.toml"]].concat();
    place
        .run(&args)
        .code(6)
        .complains("link: no record can be made there: it is a link that leads nowhere")
        .complains("--runs");
    assert!(!place.test_folder().exists());
}

#[test]
fn test_files_are_made_without_copy_on_write() {
    let btrfs = require!(btrfs());
    let place = Place::new();
    let at = btrfs.path().to_str().unwrap();
    let quick = ["quick", "here", at, "--group", "small.toml"];
    let nocow = [&quick[..], &["--nocow"]].concat();
    place.run(&[&nocow[..], &["--dry-run"]].concat()).code(0);
    assert!(!btrfs.path().join("stb-testdir").exists());
    place.run(&nocow).code(0);
    let file = btrfs.path().join("stb-testdir/2files.1");
    let file = file.to_str().unwrap();
    place
        .run(&["doctor", file])
        .says("btrfs (nocow, no checksums)");
    // It goes on with files that were made so.
    place.run(&nocow).code(0);
    place.run(&["quick", "here", at, "cleanup"]).code(0);
    // Those with data stay as they were made.
    place.run(&quick).code(0);
    let ended = place.run(&nocow).code(4);
    ended.complains("holds test files that are copied on write");
    // A plan file asks for the same.
    place.run(&["quick", "here", at, "cleanup"]).code(0);
    let small = place.path().join("small.toml").display().to_string();
    let plan = format!(
        "engine = \"native\"\n[[step]]\nname = \"one\"\nquick = \"{at}\"\ngroup = \"{small}\"\nnocow = true\n"
    );
    fs::write(place.path().join("plan.toml"), plan).unwrap();
    place.run(&["run", "plan.toml"]).code(0);
    place.run(&["doctor", file]).says("nocow");
    // Other file systems refuse it.
    let place = Place::new();
    let ended = place.run(&[
        "quick",
        "here",
        "target",
        "--group",
        "small.toml",
        "--nocow",
    ]);
    ended.code(4).complains("--nocow is for btrfs, and ");
    assert!(!place.test_folder().exists());
}
