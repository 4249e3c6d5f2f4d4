//! `fathom compare` and `fathom history`: whether runs are faster, and where they changed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use fathom_model::{
    Direction, DirectionResult, Environment, Event, JobResult, Latency, Results, RunStatus, Sample,
};
use fathom_record::{Header, Writer};
use serde_json::{Value, json};

fn fathom(runs: &Path, line: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .arg("--runs")
        .arg(runs)
        .args(line.split(' '))
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A run of 60 seconds with these IOPS, `minute` minutes after the first.
fn record(runs: &Path, name: &str, minute: u64, iops: u64, kernel: &str) -> String {
    record_of(runs, (name, "mix", Direction::Read), minute, iops, kernel)
}

/// The same of another job, or in another direction.
fn record_of(
    runs: &Path,
    (name, job, dir): (&str, &str, Direction),
    minute: u64,
    iops: u64,
    kernel: &str,
) -> String {
    let header = Header {
        started_ms: 1_795_266_457_250 + minute * 60_000,
        environment: Some(Environment {
            hostname: "box".into(),
            kernel: kernel.into(),
            ..Environment::default()
        }),
        facts: [("tags".to_owned(), json!({ "kernel": kernel }))]
            .into_iter()
            .collect(),
        ..Header::new(name, "job run")
    };
    let mut writer = Writer::create(runs, &header).unwrap();
    let mut append = |event| writer.append(&event).unwrap();
    let names = vec![job.to_owned()];
    let hosts = Vec::new();
    append(Event::Jobs { names, hosts });
    for second in 1..=60 {
        // 2 % up and down, with no period that fits the minute.
        let ios = iops + (second * 7 % 11) * iops / 500;
        append(Event::Sample(Sample {
            t_ms: second * 1000,
            span_ms: 1000,
            job: 0,
            dir,
            ios,
            bytes: ios * 4096,
            clat: None,
            lat: None,
        }));
        append(Event::Interval {
            t_ms: second * 1000,
            remaining_ms: None,
        });
    }
    let mean_ns = 8e9 / iops as f64;
    let result = DirectionResult {
        total_ios: iops * 60,
        io_bytes: iops * 60 * 4096,
        iops: iops as f64,
        bw_bytes: (iops * 4096) as f64,
        runtime_ms: 60_000,
        clat: Some(Latency {
            mean_ns,
            max_ns: 1_000_000_000,
            ..Latency::default()
        }),
        ..DirectionResult::default()
    };
    let is_read = dir == Direction::Read;
    let rw = if is_read { "randread" } else { "randwrite" };
    let options = [("rw", rw), ("iodepth", "8")];
    let job = JobResult {
        name: job.into(),
        options: options
            .map(|(name, value)| (name.into(), value.into()))
            .into(),
        read: is_read.then(|| result.clone()),
        write: (!is_read).then_some(result),
        ..JobResult::default()
    };
    let results = Box::new(Results {
        jobs: vec![job],
        ..Results::default()
    });
    append(Event::Finished { results });
    append(Event::Ended {
        status: RunStatus::Complete,
    });
    let id = writer.dir().file_name().unwrap();
    id.to_string_lossy().into_owned()
}

/// Three runs of each side, in turn: the second is 30 % faster, on another kernel.
fn sides(runs: &Path) -> (String, String) {
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for (n, (old, new)) in (0..).zip([(1000, 1300), (1008, 1291), (995, 1309)]) {
        a.push(record(runs, "old", 4 * n, old, "6.1"));
        b.push(record(runs, "new", 4 * n + 2, new, "6.9"));
    }
    (a.join(" "), b.join(" "))
}

#[test]
fn repetitions_tell_which_side_is_faster_and_what_differs() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = sides(dir.path());
    let shown = stdout(&fathom(dir.path(), &format!("compare {a} --with {b}")));
    assert!(shown.contains("kernel") && shown.contains("6.9"), "{shown}");
    assert!(
        shown.contains("faster") && !shown.contains("slower"),
        "{shown}"
    );
    let found = fathom(dir.path(), &format!("compare {a} --with {b} --json"));
    let doc: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(doc["schema"], "fathom.compare/1");
    assert_eq!(doc["rows"][0]["figure"], "iops");
    assert_eq!(doc["rows"][0]["verdict"], "faster");
    assert_eq!(doc["rows"][0]["runs"], json!([3, 3]));
    // The same by tags.
    let tagged = fathom(
        dir.path(),
        "compare --tag kernel=6.1 --with-tag kernel=6.9 --json",
    );
    assert_eq!(tagged.stdout, found.stdout);
}

#[test]
fn a_condition_ends_with_exit_code_7() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = sides(dir.path());
    let of = |a: &str, b: &str, condition: &str| {
        let line = format!("compare {a} --with {b} --fail-if");
        let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
            .arg("--runs")
            .arg(dir.path())
            .args(line.split(' '))
            .arg(condition)
            .output()
            .unwrap();
        code(&output)
    };
    assert_eq!(of(&b, &a, "slower > 5%"), 7);
    assert_eq!(of(&b, &a, "slower > 40%"), 0);
    assert_eq!(of(&a, &b, "slower"), 0);
    assert_eq!(of(&a, &b, "worse"), 2);
}

#[test]
fn one_run_of_each_is_told_by_earlier_ones_only() {
    let dir = tempfile::tempdir().unwrap();
    let a = record(dir.path(), "old", 0, 1000, "6.1");
    let b = record(dir.path(), "new", 2, 1300, "6.9");
    let shown = stdout(&fathom(dir.path(), &format!("compare {a} {b}")));
    assert!(
        shown.contains("cannot tell: 2 more runs of each"),
        "{shown}"
    );
    for (n, iops) in (2..).zip([1004, 991, 1009, 1001, 996]) {
        record(dir.path(), "old", 2 * n, iops, "6.1");
    }
    let found = fathom(dir.path(), &format!("compare {a} {b} --json"));
    let doc: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(doc["earlier"].as_array().unwrap().len(), 5);
    assert_eq!(doc["rows"][0]["verdict"], "faster");
}

#[test]
fn options_in_which_simulated_runs_differ_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let sides = [1, 8].map(|depth| {
        let job = dir.path().join("mix.fio");
        let text = format!(
            "[mix]\nrw=randread\nbs=4k\niodepth={depth}\nruntime=60\ntime_based\nfilename=/nosuch\n"
        );
        fs::write(&job, text).unwrap();
        let line = format!("--json job run --engine sim -q {}", job.display());
        let output = fathom(dir.path(), &line);
        let doc: Value = serde_json::from_str(&stdout(&output)).unwrap();
        doc["id"].as_str().unwrap().to_owned()
    });
    let line = format!("compare {} {} --json", sides[0], sides[1]);
    let doc: Value = serde_json::from_str(&stdout(&fathom(dir.path(), &line))).unwrap();
    let differs = json!([{"what": "mix: iodepth", "a": ["1"], "b": ["8"]}]);
    assert_eq!(doc["differences"], differs, "{doc}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let a = record(dir.path(), "old", 0, 1000, "6.1");
    let b = record(dir.path(), "new", 2, 1300, "6.9");
    for (line, exit, word) in [
        (format!("compare {a} {b} {a}"), 2, "--with"),
        (format!("compare {a}"), 2, "--with"),
        (format!("compare {a} {a}"), 2, "named twice"),
        (
            format!("compare {a} {b} --margin 100%"),
            2,
            "less than 100%",
        ),
        (
            format!("compare {a} {b} --margin=-1%"),
            2,
            "no share like 5%",
        ),
        (format!("compare {a} missing"), 5, "missing"),
        (
            "compare --tag kernel=7 --with-tag kernel=6.9".to_owned(),
            5,
            "no run",
        ),
        (format!("show {a} --tag x=y"), 2, "--tag is for"),
    ] {
        let output = fathom(dir.path(), &line);
        assert_eq!(code(&output), exit, "{line}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(word),
            "{line}: {}",
            stderr(&output)
        );
    }
}

#[test]
fn a_comparison_as_markdown_and_as_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = sides(dir.path());
    let page = dir.path().join("page.html");
    let line = format!(
        "compare {a} --with {b} --markdown --html {}",
        page.display()
    );
    let shown = stdout(&fathom(dir.path(), &line));
    assert!(
        shown.contains("| `mix read` | IOPS |") && shown.contains("**faster**"),
        "{shown}"
    );
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("class=\"good\"") && !page.contains("<script"));
    // Both sides over time, of the one step that the runs of either have.
    for told in [
        "Over time",
        "old / new",
        "Read IOPS",
        "A, 3 runs",
        "B, 3 runs",
    ] {
        assert!(page.contains(told), "{told}");
    }
    assert_eq!(page.matches("<svg").count(), 1);
}

#[test]
fn a_history_says_where_it_changed() {
    let dir = tempfile::tempdir().unwrap();
    for n in 0..16 {
        let (iops, kernel) = if n < 10 { (1000, "6.1") } else { (900, "6.9") };
        record(dir.path(), "night", n, iops + n % 3, kernel);
    }
    let found = fathom(dir.path(), "history night --json");
    let doc: Value = serde_json::from_slice(&found.stdout).unwrap();
    let change = &doc["series"][0]["changes"][0];
    assert_eq!(
        (&change["place"], &change["verdict"]),
        (&json!(10), &json!("slower"))
    );
    assert_eq!(change["differences"][0]["what"], "kernel");
    let (svg, page) = (dir.path().join("night.svg"), dir.path().join("night.html"));
    let line = format!(
        "history night --figure mean --svg {} --html {} --fail-if slower>5%",
        svg.display(),
        page.display()
    );
    let output = fathom(dir.path(), &line);
    assert_eq!(code(&output), 7, "{}", stderr(&output));
    assert!(stdout(&output).contains("  slower from "));
    assert!(fs::read_to_string(svg).unwrap().starts_with("<svg"));
    // A file by itself has nothing to lead to.
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("slower from") && !page.contains("href"));
    assert_eq!(
        code(&fathom(
            dir.path(),
            "history --tag kernel=6.1 --fail-if slower"
        )),
        0
    );
    assert_eq!(code(&fathom(dir.path(), "history nothing")), 5);
}

/// What docs/ci has for every night, on runs of before that are slower since the tenth.
#[test]
fn the_examples_for_every_night_fail_only_where_it_got_slower() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ci");
    let workflow = fs::read_to_string(docs.join("workflow.yml")).unwrap();
    let steps = workflow.lines().filter_map(|line| {
        let line = line.trim().trim_start_matches("- ");
        line.strip_prefix("run: ")
    });
    let steps: Vec<&str> = steps.collect();
    let [measure, judge] = steps[..] else {
        panic!("{steps:?}");
    };
    let bin = Path::new(env!("CARGO_BIN_EXE_fathom")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    for (slower, exit) in [(1000, 0), (900, 7)] {
        let dir = tempfile::tempdir().unwrap();
        let runs = dir.path().join("fathom-runs");
        fs::create_dir(&runs).unwrap();
        for n in 0..16 {
            let iops = if n < 10 { 1000 } else { slower };
            let id = record(&runs, "nightly", n, iops + n % 3, "6.1");
            let tag = fathom(&runs, &format!("runs tag {id} host={}", host()));
            assert_eq!(code(&tag), 0, "{}", stderr(&tag));
        }
        // The job file, smaller and shorter, and for any file system.
        let job = fs::read_to_string(docs.join("nightly.fio")).unwrap();
        let job = job
            .replace("size=4g", "size=2m")
            .replace("runtime=60", "runtime=1");
        let job = job.replace("libaio", "psync");
        let is_kept = |line: &&str| {
            let left_out = ["ramp_time", "direct", "iodepth"];
            !left_out.iter().any(|option| line.starts_with(option))
        };
        let job: Vec<&str> = job.lines().filter(is_kept).collect();
        let job = job.join("\n");
        fs::write(dir.path().join("nightly.fio"), job).unwrap();
        fs::copy(docs.join("nightly.sh"), dir.path().join("nightly.sh")).unwrap();
        let sh = |words: &[&str]| {
            let mut command = Command::new("sh");
            command.args(words).current_dir(dir.path());
            command.env("PATH", &path).env("RUNS", &runs);
            command
                .env("GITHUB_SHA", "0123")
                .env("GITHUB_STEP_SUMMARY", "summary");
            command.output().unwrap()
        };
        let cron = sh(&["./nightly.sh"]);
        assert_eq!(code(&cron), exit, "{}", stderr(&cron));
        // cron mails what is printed.
        let said = stdout(&cron) + &stderr(&cron);
        assert_eq!(said.contains("  slower from "), exit == 7, "{said}");
        assert_eq!(said.is_empty(), exit == 0, "{said}");
        let measured = sh(&["-c", measure]);
        assert_eq!(code(&measured), 0, "{}", stderr(&measured));
        let judged = sh(&["-c", judge]);
        assert_eq!(code(&judged), exit, "{}", stderr(&judged));
        let summary = fs::read_to_string(dir.path().join("summary")).unwrap();
        assert!(summary.contains("mix read, IOPS"), "{summary}");
        assert!(dir.path().join("history.svg").exists());
    }
}

fn host() -> String {
    let name = Command::new("uname").arg("-n").output().unwrap();
    stdout(&name).trim().to_owned()
}

#[test]
fn a_run_keeps_its_tags() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.fio");
    fs::write(
        &file,
        "[a]\nrw=randread\nfilename=/dev/sim\nsize=1M\nruntime=2\ntime_based\n",
    )
    .unwrap();
    let runs = dir.path().join("runs");
    let line = format!(
        "job run {} --engine sim --tag host=a --quiet",
        file.display()
    );
    let output = fathom(&runs, &line);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    assert_eq!(code(&fathom(&runs, "history --tag host=a")), 0);
    assert_eq!(code(&fathom(&runs, "history --tag host=b")), 5);
}

/// A gate that could not judge once let everything pass, with exit code 0.
#[test]
fn a_gate_that_cannot_judge_does_not_pass() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = sides(dir.path());
    let (fast, slow) = (b, a);
    let first = |side: &str| side.split(' ').next().unwrap().to_owned();
    let others = |job: &str, dir_of: Direction| {
        let runs = [1, 3, 5].map(|n| record_of(dir.path(), ("x", job, dir_of), n, 1000 + n, "6.1"));
        runs.join(" ")
    };
    let writes = others("mix", Direction::Write);
    let other = others("other", Direction::Write);
    let renamed = others("other", Direction::Read);
    for (what, line, allowed, result) in [
        ("slower", format!("{fast} --with {slow}"), 7, "regressed"),
        ("faster", format!("{slow} --with {fast}"), 0, "passed"),
        (
            "one run of each",
            format!("{} --with {}", first(&fast), first(&slow)),
            0,
            "cannot_judge",
        ),
        (
            "no direction in common",
            format!("{fast} --with {writes}"),
            7,
            "cannot_judge",
        ),
        (
            "no job in common",
            format!("{fast} --with {other}"),
            7,
            "cannot_judge",
        ),
        (
            "the same by another name",
            format!("{fast} --with {renamed}"),
            7,
            "cannot_judge",
        ),
    ] {
        let gate = |more: &str| {
            let line = format!("compare {line} --fail-if slower{more}");
            fathom(dir.path(), &line)
        };
        let expected = if result == "passed" { 0 } else { 7 };
        assert_eq!(code(&gate("")), expected, "{what}");
        assert_eq!(code(&gate(" --allow-inconclusive")), allowed, "{what}");
        let doc: Value = serde_json::from_slice(&gate(" --json").stdout).unwrap();
        assert_eq!(doc["gate"]["result"], result, "{what}");
        let text = stdout(&gate(""));
        let word = result.replace('_', " ");
        assert!(text.starts_with(&word), "{what}: {text}");
    }
}
