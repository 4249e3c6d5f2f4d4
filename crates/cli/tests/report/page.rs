//! What stands on the page, of every kind of run.

use std::fs;
use std::path::Path;

use fathom_model::{Event, Failure, FailureKind, RunStatus};
use fathom_record::Writer;
use serde_json::{Value, json};

use crate::report::records::{self, HOSTILE};
use crate::report::{data, fathom, report, stderr};

#[test]
fn a_campaign_is_told_from_its_best_points_to_its_job_files() {
    let runs = tempfile::tempdir().unwrap();
    let record = records::campaign(runs.path(), 2);
    let (_, page) = report(runs.path(), &record);
    let order = [
        "class=\"verdicts\"",
        "class=\"answers\"",
        "class=\"hero\"",
        "id=\"overview\"",
        "id=\"series\"",
        "id=\"tradeoff\"",
        "id=\"figures\"",
        "id=\"time\"",
        "id=\"failures\"",
        "id=\"steps\"",
        "id=\"environment\"",
        "id=\"job-files\"",
        "id=\"reading\"",
    ];
    let places: Vec<usize> = order.iter().map(|id| page.find(id).expect(id)).collect();
    assert!(places.is_sorted(), "{places:?}");
    for told in [
        "18 points: 16 done, 1 failed, 1 skipped",
        ">1 point failed</a>, one cause: ",
        "the guard ended the series",
        "most IOPS",
        "lowest latency",
        "read (best of 7 of 9 points): ",
    ] {
        assert!(page.contains(told), "{told}");
    }
    let data = data(&page);
    assert_eq!(data["schema"], "fathom.report/1");
    let [mixed, plain] = &data["series"].as_array().unwrap()[..] else {
        panic!("{data}")
    };
    assert_eq!(mixed["at"], json!([1, 2, 4, 8, 16, 32, 64, 128, 256]));
    assert_eq!(mixed["dirs"]["write"]["bw"].as_array().unwrap().len(), 9);
    assert!(mixed["dirs"]["read"]["iops_error"][3].as_f64().unwrap() > 0.0);
    // The failed point has no figures and is no best point; the skipped one neither.
    assert_eq!(plain["failed"], json!([7]));
    assert_eq!(plain["dirs"]["read"]["bw"][7], Value::Null);
    assert_eq!(
        plain["dirs"]["read"]["best"],
        json!({"bw": 6, "iops": 6, "clat": 0})
    );
}

#[test]
fn what_happened_to_many_points_is_told_once() {
    let runs = tempfile::tempdir().unwrap();
    let record = records::failing(runs.path(), 60);
    let (_, page) = report(runs.path(), &record);
    for told in [
        ">40 points failed</a>, one cause: ",
        "fio: pid=…, the limit fs.aio-max-nr is reached",
        "<summary>40 points</summary>",
        "and 16 more",
        "<li>fio: pid=…, used 1–58 % of a CPU (20 times)</li>",
    ] {
        assert!(page.contains(told), "{told}");
    }
    assert_eq!(page.matches("used 1").count(), 1);
    let points = &data(&page)["points"];
    assert_eq!(points.as_array().unwrap().len(), 60);
    assert_eq!(points[0]["outcome"], "failed");
    assert_eq!(points[1]["outcome"], Value::Null);
    assert_eq!(points[1]["settings"], json!({"iodepth": "2"}));
    assert!(page.contains("<tr id=p1>"));
}

#[test]
fn no_name_gets_out_of_its_place() {
    let runs = tempfile::tempdir().unwrap();
    let record = records::campaign(runs.path(), 1);
    let (_, page) = report(runs.path(), &record);
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;window.harmed=1"));
    assert!(page.contains("Größe"));
    for harm in ["<script>window.harmed", "<img", "\u{202e}"] {
        assert!(!page.contains(harm), "{harm}");
    }
    // Scripts, styles and data are all there is, and the page's policy names the
    // first two by a word that no record knows.
    let nonce = page
        .split("'nonce-")
        .nth(1)
        .unwrap()
        .split('\'')
        .next()
        .unwrap();
    for element in page.split("<script").skip(1) {
        let attributes = element.split('>').next().unwrap();
        let known = attributes.contains(&format!("nonce=\"{nonce}\""))
            || attributes.contains("type=\"application/json\"")
            || attributes.contains("type=track");
        assert!(known, "<script{attributes}>");
    }
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let runs = tempfile::tempdir().unwrap();
    let (_, page) = report(runs.path(), &records::campaign(runs.path(), 1));
    assert!(page.contains("default-src 'none'"));
    for loads in [
        "src=\"",
        "<link",
        "@import",
        "url(",
        "<iframe",
        "fetch(",
        "XMLHttpRequest",
    ] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn a_run_that_goes_on_and_one_that_was_killed_are_told_as_far_as_they_went() {
    let runs = tempfile::tempdir().unwrap();
    let writer = records::begun(runs.path(), 1, 3);
    let record = writer.dir().to_owned();
    let (_, page) = report(runs.path(), &record);
    assert!(page.contains(">running</span>"), "the badge");
    // Closed without its last line, as a kill leaves it.
    drop(writer);
    let (_, page) = report(runs.path(), &record);
    assert!(page.contains(">interrupted</span>"), "the badge");
    assert!(page.contains("counted from the interval samples"));
    assert!(page.contains("href=\"#doubt-1\""), "a mark at the figures");
    assert_eq!(page.matches("<script type=track").count(), 1);
}

#[test]
fn jobs_of_a_step_are_there_each_and_together() {
    let runs = tempfile::tempdir().unwrap();
    let writer = records::begun(runs.path(), 3, 5);
    let record = writer.finish(RunStatus::Interrupted).unwrap();
    let (_, page) = report(runs.path(), &record);
    for job in ["all", "0", "1", "2"] {
        let block = format!("data-of=0,{job},");
        assert_eq!(page.matches(&block).count(), 1, "{job}");
    }
    assert_eq!(
        data(&page)["steps"][0]["jobs"],
        json!(["job 1", "job 2", "job 3"])
    );
}

#[test]
fn several_job_files_failures_and_facts_are_told() {
    let runs = tempfile::tempdir().unwrap();
    let mut header = records::header("two files", "quick");
    let facts = json!({"group": "current", "tests": [{"name": "randread"}], "warnings": [HOSTILE]});
    header.facts.insert("quick".into(), facts);
    let mut writer = Writer::create(runs.path(), &header).unwrap();
    let mut append = |event: Event| writer.append(&event).unwrap();
    for (place, name) in (1..).zip(["fill", "read"]) {
        append(Event::Step {
            step: place,
            of: 2,
            name: name.into(),
            point: None,
        });
        records::begin(&mut append, &["job"]);
    }
    let failure = Failure::new(FailureKind::NoSpace, "the disk is full");
    append(Event::Failure(failure));
    let record = writer.finish(RunStatus::Failed).unwrap();
    let (_, page) = report(runs.path(), &record);
    for told in [
        ">failed</span>",
        "the disk is full",
        "free space or lower size",
        "quick.tests[0].name",
        "Commands as executed",
    ] {
        assert!(page.contains(told), "{told}");
    }
}

#[test]
fn an_import_is_told_without_samples_and_environment() {
    let runs = tempfile::tempdir().unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fio-output/tests/fixtures");
    let file = fixtures.join("eio-on.plus.json");
    let imported = fathom(runs.path(), &["--json", "import", file.to_str().unwrap()]);
    assert!(imported.status.success(), "{}", stderr(&imported));
    let document: Value = serde_json::from_slice(&imported.stdout).unwrap();
    let record = runs.path().join(document["id"].as_str().unwrap());
    let (_, page) = report(runs.path(), &record);
    assert!(page.contains("imported 20"));
    assert!(page.contains("fio counts them as done"), "the doubt");
    assert!(!page.contains("id=\"time\"") && !page.contains("<script type=track"));
}

#[test]
fn a_real_run_of_the_native_engine_is_told() {
    let runs = tempfile::tempdir().unwrap();
    let job = runs.path().join("read.fio");
    let file = runs.path().join("file");
    let text = format!(
        "[read]\nfilename={}\nsize=4m\nrw=randread\nioengine=psync\ntime_based\nruntime=2\n",
        file.display()
    );
    fs::write(&job, text).unwrap();
    let ran = fathom(
        runs.path(),
        &[
            "-q",
            "job",
            "run",
            "--engine",
            "native",
            job.to_str().unwrap(),
        ],
    );
    assert!(ran.status.success(), "{}", stderr(&ran));
    let made = fathom(runs.path(), &["--json", "report"]);
    assert!(made.status.success(), "{}", stderr(&made));
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let page = fs::read_to_string(made["file"].as_str().unwrap()).unwrap();
    assert_eq!(made["bytes"], page.len() as u64);
    assert!(page.contains("read.fio") && page.contains("rw=randread"));
    assert!(page.contains("<script type=track data-of=0,0,read>"));
}

#[test]
fn a_report_that_cannot_be_written_leaves_nothing_behind() {
    let runs = tempfile::tempdir().unwrap();
    let record = records::begun(runs.path(), 1, 1)
        .finish(RunStatus::Complete)
        .unwrap();
    let record = record.to_str().unwrap();
    let output = fathom(
        runs.path(),
        &["report", record, "--out", "/no/such/place.html"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("/no/such/place.html"),
        "{}",
        stderr(&output)
    );
    let output = fathom(runs.path(), &["report", "nosuch"]);
    assert_eq!(output.status.code(), Some(5), "{}", stderr(&output));
    let output = fathom(runs.path(), &["report", record, "--out", "-"]);
    assert!(output.stdout.starts_with(b"<!DOCTYPE html>") && output.status.success());
}

/// A run of one job, `b`, that read with 10,000 IOPS over a link of 3.94 GB/s.
fn linked(runs: &Path) -> std::path::PathBuf {
    let mut header = records::header("linked", "job run");
    let device = &mut header.environment.as_mut().unwrap().targets[0].device;
    device.as_mut().unwrap().pcie_link = Some("8.0 GT/s x4 of 16.0 GT/s x4".into());
    let mut writer = Writer::create(runs, &header).unwrap();
    let mut append = |event| writer.append(&event).unwrap();
    records::begin(&mut append, &["b"]);
    let job = records::job("b", records::figures(10_000.0, 90_000.0, 1000));
    append(records::finished(vec![job]));
    append(records::STEP_ENDED);
    writer.finish(RunStatus::Complete).unwrap()
}

#[test]
fn the_first_screen_answers_against_baseline_and_link() {
    let dir = tempfile::tempdir().unwrap();
    let (runs, home) = (dir.path().join("runs"), dir.path().join("home"));
    let record = linked(&runs);
    let file = dir.path().join("report.html");
    let called = |args: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_fathom"));
        command.env("XDG_DATA_HOME", &home).arg("--runs").arg(&runs);
        command.args(args).output().unwrap()
    };
    let shelf = home.join("fathom/baselines");
    fs::create_dir_all(&shelf).unwrap();
    fs::write(
        shelf.join("mydisk.toml"),
        "format = \"fathom-baseline\"\nversion = 1\nname = \"mydisk\"\nabout = \"a run\"\n[iops]\na = 1\nb = 8000\n",
    )
    .unwrap();
    let page = |names: &str| {
        let (run, out) = (record.to_str().unwrap(), file.to_str().unwrap());
        let done = called(&["report", run, "-o", out, "--baseline", names]);
        assert!(done.status.success(), "{}", stderr(&done));
        fs::read_to_string(&file).unwrap()
    };
    let said = page("mydisk");
    for told in [
        "<b>125 % of mydisk</b> b",
        "options, size and run time were not compared",
        "<span>1 % of its link (3.67 GiB/s)</span>",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
    // One that has nothing of this run says why; without a name there is none.
    assert!(page("HDD").contains("it is of the quick series, this run is not"));
    let (_, plain) = report(&runs, &record);
    assert!(!plain.contains("class=\"against\""));
    let refused = called(&["report", record.to_str().unwrap(), "--baseline", "none"]);
    assert_eq!(refused.status.code(), Some(5), "{}", stderr(&refused));
    assert!(stderr(&refused).contains("known are HDD, mydisk"));
}

#[test]
fn the_quick_series_is_measured_against_its_baseline_unasked() {
    let runs = tempfile::tempdir().unwrap();
    let mut header = records::header("quick", "quick");
    let facts = json!({
        "group": "current", "host": "bench-07", "folder": "/mnt/stb-testdir",
        "runtime_s": 5, "size_bytes": 536_870_912, "shortened": false, "tests": [],
    });
    header.facts.insert("quick".into(), facts);
    let mut writer = Writer::create(runs.path(), &header).unwrap();
    let mut append = |event| writer.append(&event).unwrap();
    for (step, name, iops) in [
        (1, "1 file, 1 thread, seq 1M writes, simple", 191.0),
        (2, "1 file, 1 thread, rnd 16k writes, simple", 409.0),
    ] {
        append(Event::Step {
            step,
            of: 2,
            name: name.into(),
            point: None,
        });
        records::begin(&mut append, &["test"]);
        let job = records::job("test", records::figures(iops, 90_000.0, 1000));
        append(records::finished(vec![job]));
        append(records::STEP_ENDED);
    }
    let record = writer.finish(RunStatus::Complete).unwrap();
    let (_, page) = report(runs.path(), &record);
    let told = "<b>81 % of HDD</b>, the median of 2 figures; 1 of them reach it; \
                from 57 % (1 file, 1 thread, rnd 16k writes, simple) to 105 % (";
    assert!(page.contains(told), "{page}");
}
