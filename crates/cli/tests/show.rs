//! `fathom runs` and `fathom show`: what was recorded, ended or not.

use std::path::Path;
use std::process::{Command, Output};

use fathom_model::{
    Direction, DirectionResult, Event, Failure, FailureKind, Histogram, JobResult, Results,
    RunStatus, Sample,
};
use fathom_record::{Header, Writer};
use serde_json::Value;

fn fathom(runs: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .arg("--runs")
        .arg(runs)
        .args(args)
        .env_remove("CLICOLOR_FORCE")
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn json(runs: &Path, args: &[&str]) -> Value {
    let output = fathom(runs, args);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// A run that has begun and seen `seconds` of reads.
fn begin(runs: &Path, name: &str, seconds: u64) -> Writer {
    let mut writer = Writer::create(runs, &Header::new(name, "job run")).unwrap();
    let mut append = |event| writer.append(&event).unwrap();
    append(Event::EngineStarted {
        engine: "fio".into(),
        version: Some("fio-3.33".into()),
        argv: Vec::new(),
        pid: None,
    });
    append(Event::Jobs {
        names: vec![name.into()],
        hosts: Vec::new(),
    });
    for second in 1..=seconds {
        let mut clat = Histogram::new();
        clat.add(226_000, 1000);
        append(Event::Sample(Sample {
            t_ms: second * 1000,
            span_ms: 1000,
            job: 0,
            dir: Direction::Read,
            ios: 1000,
            bytes: 4_096_000,
            clat: Some(clat),
            lat: None,
        }));
        append(Event::Interval {
            t_ms: second * 1000,
            remaining_ms: None,
        });
    }
    writer
}

fn finish(mut writer: Writer, name: &str, status: RunStatus) {
    let read = DirectionResult {
        total_ios: 3000,
        io_bytes: 12_288_000,
        bw_bytes: 4_096_000.0,
        iops: 1000.0,
        runtime_ms: 3000,
        ..DirectionResult::default()
    };
    let job = JobResult {
        name: name.into(),
        read: Some(read),
        ..JobResult::default()
    };
    let results = Box::new(Results {
        jobs: vec![job],
        ..Results::default()
    });
    writer.append(&Event::Finished { results }).unwrap();
    writer.finish(status).unwrap();
}

#[test]
fn runs_are_listed_oldest_first_with_their_key_figure() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    let output = fathom(runs, &["runs"]);
    assert!(output.status.success() && output.stdout.is_empty());
    assert!(stderr(&output).contains("no runs under"));

    finish(begin(runs, "first", 3), "first", RunStatus::Complete);
    std::thread::sleep(std::time::Duration::from_millis(5));
    finish(begin(runs, "second", 3), "second", RunStatus::Failed);
    std::fs::create_dir(runs.join("broken")).unwrap();
    std::fs::write(runs.join("broken/events.jsonl"), "no header\n").unwrap();

    let list = json(runs, &["runs", "--json"]);
    assert_eq!(list["schema"], "fathom.runs/1");
    let names: Vec<_> = list["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| &r["name"])
        .collect();
    assert_eq!(
        names,
        [&Value::from("first"), &"second".into(), &Value::Null]
    );
    let broken = &list["runs"][2];
    assert_eq!(
        (&broken["id"], &broken["status"]),
        (&"broken".into(), &"unreadable".into())
    );
    assert!(
        broken["reason"].as_str().unwrap().contains("line 1"),
        "{broken}"
    );
    assert_eq!(list["runs"][0]["status"], "complete");
    assert_eq!(list["runs"][0]["iops"], 1000.0);
    let output = fathom(runs, &["runs"]);
    let lines: Vec<String> = stdout(&output).lines().map(str::to_owned).collect();
    assert!(
        lines[2].contains("second") && lines[2].contains("failed"),
        "{lines:?}"
    );
    // Its size stands behind.
    assert!(lines[2].contains("1k  3.91 MiB/s  "), "{lines:?}");
    assert!(
        stderr(&output).contains("broken"),
        "what cannot be read is named"
    );
    assert!(
        lines[3].starts_with("broken") && lines[3].contains("unreadable"),
        "{lines:?}"
    );
    let last = json(runs, &["runs", "--json", "-n", "1"]);
    assert_eq!(last["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn the_last_run_is_named_when_it_cannot_be_read_and_what_is_intact_can_be_had() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    finish(begin(runs, "first", 3), "first", RunStatus::Complete);
    std::thread::sleep(std::time::Duration::from_millis(5));
    let writer = begin(runs, "second", 3);
    let dir = writer.dir().to_owned();
    finish(writer, "second", RunStatus::Complete);
    let log = dir.join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text.replacen("{\"format\"", "{\"\0\0\0mat\"", 1)).unwrap();
    for args in [
        &["show"][..],
        &["report"],
        &["export", "csv"],
        &["graph"],
        &["steady"],
        &["prio", "show"],
        &["snia", "show"],
    ] {
        let output = fathom(runs, args);
        assert!(
            !output.status.success() && output.stdout.is_empty(),
            "{args:?}"
        );
        assert!(
            stderr(&output).contains("second: line 1 of events.jsonl is damaged"),
            "{args:?}"
        );
    }
    let doc = json(runs, &["show", "--salvage", "--json"]);
    assert_eq!(doc["jobs"][0]["read"]["iops"], 1000.0);
    assert!(
        doc["notes"][0]
            .as_str()
            .unwrap()
            .contains("1 damaged lines"),
        "{doc}"
    );
    let text = stdout(&fathom(runs, &["show", "--salvage"]));
    assert!(text.contains("second: complete"), "{text}");
    let csv = stdout(&fathom(runs, &["show", "--salvage", "--samples=csv"]));
    assert_eq!(csv.lines().count(), 4);
}

#[test]
fn show_without_a_name_is_the_last_run_and_a_beginning_is_enough() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    finish(begin(runs, "first", 3), "first", RunStatus::Complete);
    std::thread::sleep(std::time::Duration::from_millis(5));
    finish(begin(runs, "second", 3), "second", RunStatus::Complete);
    let doc = json(runs, &["show", "--json"]);
    assert_eq!(
        (&doc["schema"], &doc["name"]),
        (&"fathom.run/1".into(), &"second".into())
    );
    assert_eq!(doc["jobs"][0]["read"]["iops"], 1000.0);
    assert_eq!(doc["jobs"][0]["write"]["total_ios"], 0);
    let id = doc["id"].as_str().unwrap();
    assert_eq!(json(runs, &["show", "--json", id])["id"], id);
    let folder = runs.join(id);
    assert_eq!(
        json(runs, &["show", "--json", folder.to_str().unwrap()])["id"],
        id
    );
    let text = stdout(&fathom(runs, &["show"]));
    assert!(text.starts_with("second: complete"), "{text}");

    let output = fathom(runs, &["show", "nothing-like-it"]);
    assert_eq!(output.status.code(), Some(5));
    assert!(output.stdout.is_empty() && stderr(&output).contains("nothing-like-it"));
}

#[test]
fn a_killed_run_is_shown_as_interrupted_and_a_going_one_as_running() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    let mut writer = begin(runs, "going", 3);
    let failure = Failure::new(FailureKind::Io, "a read failed").about("going");
    writer.append(&Event::Failure(failure)).unwrap();
    let doc = json(runs, &["show", "--json"]);
    assert_eq!(
        (&doc["status"], &doc["from_samples"]),
        (&"running".into(), &true.into())
    );
    assert_eq!(doc["jobs"][0]["read"]["total_ios"], 3000);
    assert_eq!(
        json(runs, &["runs", "--json"])["runs"][0]["status"],
        "running"
    );

    // A process that is killed lets go of its record without a last line.
    drop(writer);
    let doc = json(runs, &["show", "--json"]);
    assert_eq!(doc["status"], "interrupted");
    assert_eq!(doc["ended"], Value::Null);
    let read = &doc["jobs"][0]["read"];
    assert_eq!(
        (&read["iops"], &read["verdict"]["reasons"][0]["kind"]),
        (&1000.0.into(), &"from_samples".into())
    );
    assert!(read["clat"].get("histogram").is_none());
    let doc = json(runs, &["show", "--json", "--histograms"]);
    assert!(doc["jobs"][0]["read"]["clat"]["histogram"].is_array());
    let text = stdout(&fathom(runs, &["show"]));
    assert!(text.starts_with("going: interrupted, 3.0 s seen"), "{text}");
    assert!(
        text.contains("✗ going: a read failed") && text.contains("to do: "),
        "{text}"
    );
}

#[test]
fn samples_come_as_a_table_csv_lines_or_one_document() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    finish(begin(runs, "r", 3), "r", RunStatus::Complete);
    let csv = stdout(&fathom(runs, &["show", "--samples=csv"]));
    assert_eq!(csv.lines().count(), 4);
    assert!(
        csv.lines()
            .nth(2)
            .unwrap()
            .starts_with("2000,1000,,0,r,read,1000,4096000,1000,")
    );
    let lines = stdout(&fathom(runs, &["show", "--samples=jsonl"]));
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["t_ms"], &last["iops"]),
        (&3000.into(), &1000.0.into())
    );
    let doc = json(runs, &["show", "--samples", "--json"]);
    assert_eq!(doc["schema"], "fathom.samples/1");
    assert_eq!(doc["samples"][2], last);
    let table = stdout(&fathom(runs, &["show", "--samples"]));
    assert!(
        table
            .lines()
            .nth(1)
            .unwrap()
            .starts_with("r    read  1.0 s    1k  3.91 MiB/s")
    );
}

#[test]
fn a_closed_pipe_ends_quietly_and_a_full_disk_does_not() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    finish(begin(runs, "long", 3000), "long", RunStatus::Complete);
    let bash = |script: &str| {
        Command::new("bash")
            .args(["-c", script, env!("CARGO_BIN_EXE_fathom")])
            .arg(runs)
            .output()
            .unwrap()
    };
    for command in [
        "show --samples=csv",
        "show --samples",
        "show --json --samples",
    ] {
        let output = bash(&format!(
            "\"$0\" --runs \"$1\" {command} | head -n 1 >/dev/null; exit ${{PIPESTATUS[0]}}"
        ));
        assert_eq!(
            (output.status.code(), stderr(&output)),
            (Some(0), String::new()),
            "{command}"
        );
    }
    let output = bash("\"$0\" --runs \"$1\" show > /dev/full");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("cannot write to stdout: No space left"));
}

#[test]
fn what_fio_wrote_comes_as_it_was_written() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    let writer = begin(runs, "r", 1);
    let output = fathom(runs, &["show", "--output-format=terse"]);
    assert_eq!(output.status.code(), Some(5), "nothing was written yet");
    for (step, name) in [("1-a", "a"), ("10-b", "b"), ("2-c", "c")] {
        let folder = writer.raw_dir().unwrap().join(step);
        std::fs::create_dir(&folder).unwrap();
        let kept =
            format!("3;fio-3.33;{name};0;0\n{{\n  \"jobs\" : [\n  ]\n}}\n\n{name}: err= 0\n");
        std::fs::write(folder.join("fio.out"), kept).unwrap();
        std::fs::write(folder.join("fio.err"), "3;not;this\n").unwrap();
    }
    let terse = stdout(&fathom(runs, &["show", "--output-format=terse"]));
    assert_eq!(
        terse,
        "3;fio-3.33;a;0;0\n3;fio-3.33;c;0;0\n3;fio-3.33;b;0;0\n"
    );
    let json = stdout(&fathom(runs, &["show", "--output-format=json+"]));
    assert_eq!(json.matches("\"jobs\" : [").count(), 3);
}

#[test]
fn a_part_of_a_name_finds_the_last_run_that_has_it() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    for n in 1..=11 {
        let id = format!("20261121T1307{n:02}Z-randread-{n}");
        let mut writer =
            Writer::create_in(&runs.join(&id), &Header::new("randread", "job run")).unwrap();
        writer.append(&Event::Note { text: id }).unwrap();
        writer.finish(RunStatus::Complete).unwrap();
    }
    let last = "20261121T130711Z-randread-11";
    for part in ["2026", "randread", "rand"] {
        let shown = fathom(runs, &["show", part, "--json"]);
        let document: Value = serde_json::from_slice(&shown.stdout).unwrap();
        assert_eq!(document["id"], last, "{part}");
        let told = format!("'{part}' fits 11 runs; this is the last of them: {last}\n");
        assert_eq!(stderr(&shown), told);
    }
    // A whole name and a beginning go before a part that others have, too.
    for (word, id) in [
        ("20261121T130701Z-randread-1", "20261121T130701Z-randread-1"),
        ("20261121T130702", "20261121T130702Z-randread-2"),
        ("randread-7", "20261121T130707Z-randread-7"),
    ] {
        assert_eq!(json(runs, &["show", word, "--json"])["id"], id);
    }
    // Where something is done with a run it must be the only one.
    let refused = fathom(runs, &["snia", "resume", "2026"]);
    assert_eq!(refused.status.code(), Some(5));
    assert!(stderr(&refused).contains("'2026' fits 11 runs: 20261121T130711Z-randread-11, "));
    assert_eq!(fathom(runs, &["show", "write"]).status.code(), Some(5));
}

#[test]
fn the_lines_of_a_log_are_printed_however_they_are_stored_and_damage_is_told() {
    let runs = tempfile::tempdir().unwrap();
    let runs = runs.path();
    let mut writer = begin(runs, "long", 20);
    let dir = writer.dir().to_owned();
    writer.set_segment_bytes(500);
    let remaining_ms = None;
    let t_ms = 20_000;
    let interval = Event::Interval { t_ms, remaining_ms };
    writer.append(&interval).unwrap();
    finish(writer, "long", RunStatus::Complete);
    let segment = dir.join("events/000001.jsonl.zst");
    assert!(segment.exists());

    let printed = stdout(&fathom(runs, &["show", "--events"]));
    let lines: Vec<Value> = printed
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds = |kind: &str| lines.iter().filter(|line| line["event"] == kind).count();
    assert_eq!((kinds("sample"), kinds("interval")), (20, 21));
    assert_eq!((kinds("finished"), kinds("ended")), (1, 1));
    let figures = |mut doc: Value| {
        // How sure they are each interval tells.
        let read = doc["jobs"][0]["read"].as_object_mut().unwrap();
        read.remove("certainty");
        if let Some(clat) = read.get_mut("clat").and_then(Value::as_object_mut) {
            clat.remove("certainty");
        }
        (doc["jobs"].clone(), doc["status"].clone())
    };
    let whole = figures(json(runs, &["show", "--json"]));

    let mut bytes = std::fs::read(&segment).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).unwrap();
    let output = fathom(runs, &["show", "--events"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("events/000001.jsonl.zst:"),
        "{}",
        stderr(&output)
    );
    assert!(stdout(&output).contains("\"finished\""));
    // What it added up to is known.
    assert_eq!(figures(json(runs, &["show", "--json"])), whole);
}
