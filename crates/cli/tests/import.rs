//! `fathom import` as a person and a program use it.

#![allow(clippy::unwrap_used)] // a test that cannot go on fails

use std::path::{Path, PathBuf};
use std::process::Output;

use assert_cmd::Command;
use serde_json::Value;

fn fixture(name: &str) -> PathBuf {
    let of = match name.starts_with("foreign") {
        true => "../import/tests/fixtures",
        false => "../fio-output/tests/fixtures",
    };
    Path::new(env!("CARGO_MANIFEST_DIR")).join(of).join(name)
}

struct Import {
    dir: tempfile::TempDir,
}

impl Import {
    fn new() -> Self {
        Self {
            dir: tempfile::tempdir().unwrap(),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::cargo_bin("fathom").unwrap();
        command.arg("--runs").arg(self.dir.path().join("runs"));
        command
    }

    fn import(&self, paths: &[PathBuf], more: &[&str]) -> Output {
        let mut command = self.command();
        command.arg("import").args(paths).args(more);
        command.output().unwrap()
    }

    /// The document of an import that must work.
    fn document(&self, names: &[&str], more: &[&str]) -> Value {
        let paths: Vec<_> = names.iter().map(|name| fixture(name)).collect();
        let output = self.import(&paths, &[&["--json"], more].concat());
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn runs(&self) -> Vec<PathBuf> {
        let Ok(runs) = std::fs::read_dir(self.dir.path().join("runs")) else {
            return Vec::new();
        };
        runs.map(|entry| entry.unwrap().path()).collect()
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn an_import_is_a_run_that_show_shows_again() {
    let import = Import::new();
    let document = import.document(&["rw.plus.json"], &["--name", "mix"]);
    assert_eq!(document["status"], "complete");
    assert_eq!(document["name"], "mix");
    assert_eq!(document["command"], "import");
    assert_eq!(document["engine"], "fio");
    assert_eq!(document["engine_version"], "fio-3.33");
    assert_eq!(document["jobs"][0]["read"]["total_ios"], 401);
    assert!(document.get("environment").is_none());
    let output = import.command().args(["show", "--json"]).output().unwrap();
    let shown: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(shown, document);
    // What was read lies in the record, to be read again.
    let run = &import.runs()[0];
    let raw = std::fs::read(run.join("raw/0001-rw.plus.json")).unwrap();
    assert_eq!(raw, std::fs::read(fixture("rw.plus.json")).unwrap());
    let events = std::fs::read_to_string(run.join("events.jsonl")).unwrap();
    let header: Value = serde_json::from_str(events.lines().next().unwrap()).unwrap();
    assert_eq!(header["facts"]["files"][0]["format"], "json");
}

#[test]
fn several_files_are_steps_and_a_job_error_fails_the_run() {
    let import = Import::new();
    let document = import.document(&["rw.normal", "eio.v3.terse", "page-v2.terse"], &[]);
    assert_eq!(document["status"], "failed");
    let jobs = document["jobs"].as_array().unwrap();
    let steps: Vec<_> = jobs
        .iter()
        .map(|job| job["step"].as_str().unwrap())
        .collect();
    assert_eq!(steps, ["rw", "eio.v3", "page-v2"]);
    assert_eq!(document["failures"][0]["errno"], 5);
    assert_eq!(document["failures"][0]["kind"], "io");
    let verdict = &jobs[2]["read"]["verdict"];
    assert_eq!(verdict["reasons"][0]["kind"], "unknown_counts");
}

/// As when Fathom runs it: what a job goes past (continue_on_error) is counted.
#[test]
fn errors_that_a_job_went_past_leave_an_import_complete() {
    for name in ["eio-on.json", "eio-on.v3.terse", "eio-on.normal"] {
        let document = Import::new().document(&[name], &[]);
        assert_eq!(document["status"], "complete", "{name}");
        let errors = document["jobs"][0]["total_errors"].as_u64();
        assert!(errors.is_some_and(|errors| errors > 0), "{name}");
    }
}

#[test]
fn a_run_that_was_told_to_stop_is_interrupted() {
    let document = Import::new().document(&["int.json"], &[]);
    assert_eq!(document["status"], "interrupted");
}

#[test]
fn states_of_one_run_are_one_step() {
    let document = Import::new().document(&["status.plus.json"], &[]);
    let jobs = document["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1);
    assert_eq!(jobs[0]["read"]["total_ios"], 1200);
}

#[test]
fn a_folder_gives_every_output_of_fio_in_it() {
    let import = Import::new();
    let folder = import.dir.path().join("results/deep");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["rw.normal", "rw.v2.terse", "rw.json"] {
        std::fs::copy(fixture(name), folder.join(name)).unwrap();
    }
    std::fs::write(folder.join("notes.txt"), "nothing of fio\n").unwrap();
    std::fs::write(folder.join(".hidden"), "").unwrap();
    let output = import.import(&[import.dir.path().join("results")], &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["name"], "results");
    assert_eq!(document["jobs"].as_array().unwrap().len(), 3);
    assert!(
        stderr(&output).contains("passed over 1 file "),
        "{}",
        stderr(&output)
    );
    let empty = import.import(&[import.dir.path().join("results/deep/notes.txt")], &[]);
    assert_eq!(empty.status.code(), Some(3));
}

/// What is damaged is named; what would be waited for is not opened.
#[test]
fn one_bad_file_of_a_folder_does_not_stop_the_others() {
    let import = Import::new();
    let folder = import.dir.path().join("results");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::copy(fixture("rw.json"), folder.join("good.json")).unwrap();
    let whole = std::fs::read(fixture("rw.json")).unwrap();
    std::fs::write(folder.join("cut.json"), &whole[..900]).unwrap();
    std::fs::copy(fixture("client-bad.json"), folder.join("refused.json")).unwrap();
    std::os::unix::fs::symlink("/proc/kmsg", folder.join("kmsg")).unwrap();
    std::os::unix::fs::symlink("nowhere", folder.join("gone.json")).unwrap();
    let large = std::fs::File::create(folder.join("large.img")).unwrap();
    large.set_len(1 << 42).unwrap();
    let made = std::process::Command::new("mkfifo")
        .arg(folder.join("fifo"))
        .status();
    assert!(made.unwrap().success());
    let output = import.import(std::slice::from_ref(&folder), &["--json"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["jobs"].as_array().unwrap().len(), 1);
    let told = stderr(&output);
    assert!(told.contains("passed over 3 files "), "{told}");
    for (name, reason) in [
        ("cut.json", "cut off after 900 bytes"),
        ("refused.json", "fio reported no job"),
        ("gone.json", "No such file"),
    ] {
        let named = format!("not imported: {}: ", folder.join(name).display());
        let line = told.lines().find(|line| line.starts_with(&named));
        assert!(line.is_some_and(|line| line.contains(reason)), "{told}");
    }
    for name in ["fifo", "large.img"] {
        let output = import.import(&[folder.join(name)], &[]);
        assert_eq!(output.status.code(), Some(3), "{output:?}");
    }
}

#[test]
fn results_of_fio_tests_are_imported_beside_one_that_cannot_be_read() {
    let import = Import::new();
    let folder = import.dir.path().join("tests/0002-x");
    std::fs::create_dir_all(&folder).unwrap();
    for name in ["a-qd1-1j", "a-qd2-1j"] {
        std::fs::copy(
            fixture("rw.v3.terse"),
            folder.join(format!("{name}.ini.out")),
        )
        .unwrap();
        std::fs::write(folder.join(format!("{name}.ini.OK")), "0\n").unwrap();
    }
    let unread = folder.join("a-qd2-1j.ini.out");
    std::fs::remove_file(&unread).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&unread).status();
    assert!(made.unwrap().success());
    let output = import.import(&[import.dir.path().join("tests")], &[]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let told = stderr(&output);
    assert!(told.contains("imported 1 test of fio-tests"), "{told}");
    let named = format!("not imported: {}: no regular file", unread.display());
    assert!(told.contains(&named), "{told}");
}

#[test]
fn stdin_is_read_when_asked_for() {
    let import = Import::new();
    let mut command = import.command();
    let json = std::fs::read(fixture("group.json")).unwrap();
    let output = command
        .args(["import", "-"])
        .write_stdin(json)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let table = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(table.starts_with("stdin: complete\n"), "{table}");
    assert!(stderr(&output).contains("json of fio-3.33, 2 jobs"));
}

#[test]
fn what_fio_did_not_write_is_refused_before_anything_is_recorded() {
    let import = Import::new();
    let file = import.dir.path().join("file");
    let cut = std::fs::read(fixture("rw.json")).unwrap()[..900].to_vec();
    let cases: [(&[u8], &str); 4] = [
        (b"", "the file is empty"),
        (
            b"\nhello\n",
            "not an output of fio (json, terse or normal): line 2 is 'hello'",
        ),
        (b"{\"a\": 1}", "line 1 is '{\"a\": 1}'"),
        (&cut, "the JSON document is cut off after 900 bytes"),
    ];
    for (content, message) in cases {
        std::fs::write(&file, content).unwrap();
        let output = import.import(&[fixture("rw.json"), file.clone()], &[]);
        assert_eq!(output.status.code(), Some(3), "{message}");
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    let output = import.import(&[fixture("client-bad.json")], &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(stderr(&output).contains("Bad option <bogus=1>"));
    let output = import.import(&[import.dir.path().join("missing")], &[]);
    assert_eq!(output.status.code(), Some(3));
    assert!(import.runs().is_empty());
}

/// fio-plot's way to lay results out: the options tell, not the names.
#[test]
fn a_folder_of_outputs_that_vary_is_drawn_as_curves() {
    let import = Import::new();
    let folder = import.dir.path().join("results");
    std::fs::create_dir_all(&folder).unwrap();
    let text = std::fs::read_to_string(fixture("rw.json")).unwrap();
    let begin = text.find('{').unwrap();
    for (nth, (depth, jobs)) in [(1, 1), (4, 1), (16, 1), (1, 2), (4, 2), (16, 2)]
        .iter()
        .enumerate()
    {
        let mut document: Value = serde_json::from_str(&text[begin..]).unwrap();
        let options = &mut document["jobs"][0]["job options"];
        options["iodepth"] = depth.to_string().into();
        options["numjobs"] = jobs.to_string().into();
        std::fs::write(folder.join(format!("r{nth}.json")), document.to_string()).unwrap();
    }
    let output = import.import(&[folder], &[]);
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    assert!(said.contains("6 points in 2 series over iodepth"), "{said}");
    let out = import.dir.path().join("graphs");
    let drawn = import
        .command()
        .arg("graph")
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    assert!(drawn.status.success(), "{drawn:?}");
    let below = out.join("randrw-bs4k");
    assert!(
        below.is_dir() && std::fs::read_dir(&below).unwrap().count() > 2,
        "{drawn:?}"
    );
}

#[test]
fn what_iostat_told_stands_beside_the_run() {
    let import = Import::new();
    let pair = [fixture("beside/run.json"), fixture("beside/iostat.txt")];
    let output = import.import(&pair, &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let doc: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    // Its times were those of another zone.
    let notes = doc["notes"].to_string();
    assert!(notes.contains("-2h00m puts them beside the run"), "{notes}");
    assert!(notes.contains("iostat tells rates and means"), "{notes}");
    let node = &doc["nodes"][0];
    assert_eq!(
        (&node["node"], &node["samples"]),
        (&"vm".into(), &4.into()),
        "{doc:#}"
    );
    assert!(node["user_percent"]["mean"].is_f64(), "{node:#}");
    // Nobody told of its memory: missing is not zero.
    assert!(
        node["memory_bytes"].is_null() && node["dirty_bytes"].is_null(),
        "{node:#}"
    );
    let disk = &node["devices"][0];
    assert_eq!(disk["name"], "vda");
    assert!(disk["read_iops"]["mean"].as_f64() > Some(0.0), "{disk:#}");
    let report = import.dir.path().join("report.html");
    let made = import
        .command()
        .arg("report")
        .arg("-o")
        .arg(&report)
        .output();
    assert!(made.unwrap().status.success());
    let page = std::fs::read_to_string(&report).unwrap();
    for (graph, is_there) in [
        ("util", true),
        ("queue", true),
        ("await", true),
        ("memory", false),
    ] {
        let figure = format!("data-graph=\"{graph}\"");
        assert_eq!(page.contains(&figure), is_there, "{graph}");
    }
    // By itself it is no run.
    let alone = import.import(&pair[1..], &[]);
    assert_eq!(alone.status.code(), Some(3));
    assert!(
        stderr(&alone).contains("name the run's output, too"),
        "{alone:?}"
    );
}

#[test]
fn results_of_other_tools_are_imported_with_what_they_do_not_tell() {
    let import = Import::new();
    let folder = fixture("foreign");
    let output = import.import(&[folder], &["--json"]);
    assert!(output.status.success(), "{output:?}");
    let said = stderr(&output);
    for tool in [
        "elbencho tells whole rates",
        "DISKSPD's XML has counts",
        "vdbench's summary",
        "TKperf's XML has one figure",
    ] {
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(text.contains(tool), "{text}");
    }
    assert!(
        said.contains("points in") && said.contains("series over bs, iodepth"),
        "{said}"
    );
    // Beside outputs of fio, and alone.
    let both = import.import(&[fixture("foreign/kdiskmark.txt"), fixture("rw.json")], &[]);
    assert!(both.status.success(), "{both:?}");
    assert!(
        stderr(&both).contains("CrystalDiskMark text of KDiskMark 1.6.0"),
        "{both:?}"
    );
    let cut = import.dir.path().join("cut.csv");
    let csv = std::fs::read_to_string(fixture("foreign/elbencho.csv")).unwrap();
    std::fs::write(&cut, &csv[..csv.len() - 60]).unwrap();
    let refused = import.import(&[cut], &[]);
    assert_eq!(refused.status.code(), Some(3));
    assert!(stderr(&refused).contains("elbencho, line 4"), "{refused:?}");
}
