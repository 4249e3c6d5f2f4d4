//! Names from elsewhere that would do something to a terminal, a spreadsheet or
//! a page: they are shown, and do nothing.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_model::text::is_hidden;
use fathom_model::{Direction, Event, Failure, FailureKind, RunStatus, SkipCause};
use fathom_record::Writer;
use serde_json::Value;

use crate::report::records;

/// Sets a title, a colour, clears the screen, turns the order of characters and
/// breaks lines; ends a script and opens an element.
const FOREIGN: &str = "=x\u{1b}]0;title\u{7}\u{1b}[35m\u{1b}[32m\u{9b}2J\u{202e}\u{2066}\u{2028}\u{2029}</script><b>\rend";
/// What is left of its beginning.
const SHOWN: &str =
    "=x\u{fffd}]0;title\u{fffd}\u{fffd}[35m\u{fffd}[32m\u{fffd}2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}";

fn fathom(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.args(["--runs", "runs"]).args(args);
    command.current_dir(dir).output().unwrap()
}

/// A run of two jobs on two hosts that failed, with a foreign word in every place.
fn run(runs: &Path) -> String {
    let mut header = records::header(FOREIGN, "job run");
    let environment = header.environment.as_mut().unwrap();
    environment.hostname = FOREIGN.into();
    environment.cpu_model = Some(FOREIGN.into());
    let device = environment.targets[0].device.as_mut().unwrap();
    (device.name, device.model, device.serial) =
        (FOREIGN.into(), Some(FOREIGN.into()), Some(FOREIGN.into()));
    environment.targets[0].path = PathBuf::from(format!("/dev/{FOREIGN}"));
    let mut writer = Writer::create(runs, &header).unwrap();
    let mut append = |event: Event| writer.append(&event).unwrap();
    let names = vec![FOREIGN.to_owned(), format!("{FOREIGN} two")];
    for step in 1..=2 {
        append(Event::Step {
            step,
            of: 2,
            name: FOREIGN.into(),
            point: None,
        });
        append(Event::EngineStarted {
            engine: "fio".into(),
            version: Some(format!("fio-3.33 {FOREIGN}")),
            argv: vec![FOREIGN.into()],
            pid: None,
        });
        append(Event::Jobs {
            names: names.clone(),
            hosts: vec![FOREIGN.into(), format!("{FOREIGN} two")],
        });
        for second in 1..=3 {
            for job in 0..2 {
                let sample = records::sample(second * 1000, job, Direction::Read, 1000, 90_000);
                append(Event::Sample(sample));
            }
            append(records::interval(second * 1000));
        }
        append(Event::Note {
            text: FOREIGN.into(),
        });
        let failure = Failure::new(FailureKind::Io, FOREIGN);
        append(Event::Failure(failure.about(FOREIGN)));
        let jobs = names.iter().map(|name| {
            let figures = records::figures(1000.0, 90_000.0, 3000);
            fathom_model::JobResult {
                error: 5,
                hostname: Some(FOREIGN.into()),
                ..records::job(name, figures)
            }
        });
        append(records::finished(jobs.collect()));
    }
    let dir = writer.finish(RunStatus::Failed).unwrap();
    dir.file_name().unwrap().to_str().unwrap().to_owned()
}

/// A campaign whose series, points and settings are foreign.
fn campaign(runs: &Path, over: &str) -> String {
    let mut writer = Writer::create(runs, &records::header(FOREIGN, "run")).unwrap();
    let mut append = |event: Event| writer.append(&event).unwrap();
    let series = FOREIGN.replace('/', "∕");
    for (step, depth) in [1, 2, 4].into_iter().enumerate() {
        let mut point = records::point(&series, depth, 1);
        point.settings.insert(FOREIGN.into(), FOREIGN.into());
        point.x = over.into();
        append(Event::Step {
            step: step as u32 + 1,
            of: 4,
            name: FOREIGN.into(),
            point: Some(Box::new(point)),
        });
        records::begin(&mut append, &[FOREIGN]);
        let sample = records::sample(1000, 0, Direction::Read, 1000, 90_000);
        append(Event::Sample(sample));
        append(records::interval(1000));
        let figures = records::figures(1000.0, 90_000.0, 3000);
        append(records::finished(vec![records::job(FOREIGN, figures)]));
        append(records::STEP_ENDED);
    }
    append(Event::Skipped {
        point: Box::new(records::point(&series, 8, 1)),
        reason: FOREIGN.into(),
        cause: SkipCause::NotNeeded,
    });
    let dir = writer.finish(RunStatus::Complete).unwrap();
    dir.file_name().unwrap().to_str().unwrap().to_owned()
}

/// The text without the colours that Fathom itself gives it.
fn without_colours(text: &str) -> String {
    ["0", "1", "2", "31", "32", "33"]
        .iter()
        .fold(text.to_owned(), |text, code| {
            text.replace(&format!("\u{1b}[{code}m"), "")
        })
}

fn assert_harmless(what: &str, text: &str) {
    let bare = without_colours(text);
    let found = bare
        .chars()
        .find(|&c| is_hidden(c) && !matches!(c, '\n' | '\t'));
    assert_eq!(found, None, "{what}: {text:?}");
}

/// All strings of a document.
fn strings(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(text.clone()),
        Value::Array(list) => list.iter().for_each(|value| strings(value, found)),
        Value::Object(map) => map.values().for_each(|value| strings(value, found)),
        _ => {}
    }
}

#[test]
fn foreign_words_are_shown_and_never_obeyed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let run = run(&dir.join("runs"));
    let campaign = campaign(&dir.join("runs"), "iodepth");
    let log = FOREIGN.replace('/', "∕");
    fs::write(dir.join(&log), "1, 1000, 0, 4096, 0\n2, 1000, 0, 4096, 0\n").unwrap();
    fs::write(dir.join("bad.cdl"), format!("{FOREIGN}\n")).unwrap();
    fs::write(
        dir.join("bad.fio"),
        format!("[{FOREIGN}]\nrw={FOREIGN}\n{FOREIGN}\n"),
    )
    .unwrap();
    fs::write(dir.join("said.txt"), format!("fio: {FOREIGN}\n")).unwrap();
    let (run, campaign) = (run.as_str(), campaign.as_str());
    // Whether the words themselves are to be seen in it.
    let commands: &[(bool, &[&str])] = &[
        (true, &["show", run]),
        (true, &["show", campaign]),
        (true, &["show", run, "--samples"]),
        (true, &["show", run, "--samples=csv"]),
        (false, &["runs"]),
        (true, &["steady", run, "--rule=fio"]),
        (true, &["steady", campaign]),
        (false, &["status", campaign]),
        (false, &["export", "csv", campaign, "--out", "csv"]),
        (false, &["export", "ssv", campaign, "--out", "ssv"]),
        (true, &["export", "csv", campaign, "--out", "-"]),
        (false, &["graph", campaign, "--out", "graphs"]),
        (true, &["lat", &log]),
        (true, &["lat", &log, &log, "--format", "csv", "--head"]),
        (false, &["plot", &log, "--out", "plots"]),
        (true, &["import", "said.txt"]),
        (true, &["import", &log]),
        (true, &["prio", "pages", "bad.cdl"]),
        (true, &["prio", "pages", &log]),
        (true, &["job", "check", "bad.fio"]),
        (true, &["job", "show", "bad.fio"]),
        (false, &["report", run, "--out", "report.html"]),
        (true, &["show", &log]),
        (false, &["show", "run", FOREIGN]),
        (true, &["baseline", "show", &log]),
    ];
    assert_shown(dir, commands);
    // Files that people open elsewhere.
    let files = files_below(dir, &["csv", "ssv", "graphs", "plots", "report.html"]);
    assert!(files.len() > 6, "{files:?}");
    for file in files {
        let name = file.strip_prefix(dir).unwrap().to_str().unwrap();
        assert!(
            !name.contains(is_hidden) || name.contains(".png"),
            "{name:?}"
        );
        if let Ok(text) = fs::read_to_string(&file) {
            assert_harmless(name, &text);
            let is_markup = name.ends_with(".svg") || name.ends_with(".html");
            assert!(!is_markup || !text.contains("<b>end"), "{name}");
        }
    }
}

/// Runs commands; of those that are marked the words themselves are to be seen.
fn assert_shown(dir: &Path, commands: &[(bool, &[&str])]) {
    for (seen, args) in commands {
        for color in ["always", "never"] {
            let output = fathom(dir, &[&["--color", color], *args].concat());
            for stream in [&output.stdout, &output.stderr] {
                let text = String::from_utf8(stream.clone()).unwrap();
                assert_harmless(&format!("{args:?}"), &text);
            }
            let both = [output.stdout, output.stderr].concat();
            let text = without_colours(&String::from_utf8(both).unwrap());
            assert!(
                !seen || text.contains("=x\u{fffd}]0;title"),
                "{args:?}: {text}"
            );
        }
    }
}

#[test]
fn foreign_words_in_tables_are_shown_and_never_obeyed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let run = run(&dir.join("runs"));
    campaign(&dir.join("runs"), "iodepth");
    let run = run.as_str();
    assert_shown(
        dir,
        &[
            (true, &["query", "SELECT * FROM jobs", run]),
            (true, &["query", "SELECT * FROM jobs", "--format", "csv"]),
            (false, &["query", "SELECT * FROM jobs", "--format", "md"]),
            (false, &["query", FOREIGN]),
            (false, &["query", "SELECT run AS '\u{1b}[31m' FROM runs"]),
            (
                true,
                &["query", "SELECT * FROM samples", run, "--format", "csv"],
            ),
            (
                true,
                &["query", "SELECT * FROM environment", "--db", "x.db"],
            ),
            (true, &["export", "csv", "--all", run, "--out", "-"]),
            (false, &["export", "csv", "--samples", run, "--out", "csv"]),
        ],
    );
    let sheet = fs::read_to_string(dir.join("csv/samples.csv")).unwrap();
    assert_harmless("samples.csv", &sheet);
    assert!(sheet.contains(",'=x"), "a formula: {sheet}");
}

fn files_below(dir: &Path, names: &[&str]) -> Vec<PathBuf> {
    let mut open: Vec<PathBuf> = names.iter().map(|name| dir.join(name)).collect();
    let mut files = Vec::new();
    while let Some(path) = open.pop() {
        match fs::read_dir(&path) {
            Ok(entries) => open.extend(entries.map(|entry| entry.unwrap().path())),
            Err(_) => files.push(path),
        }
    }
    files
}

#[test]
fn documents_hold_foreign_words_whole_and_escaped() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let run = run(&dir.join("runs"));
    let campaign = campaign(&dir.join("runs"), "iodepth");
    for args in [
        &["runs", "--json"] as &[&str],
        &["show", &run, "--json"],
        &["show", &campaign, "--json"],
        &["show", &run, "--samples", "--json"],
        &["show", &run, "--samples=jsonl"],
        &["export", "json", &campaign, "--out", "-"],
        &["export", "json", "--all", &run, "--out", "-"],
        &["export", "jsonl", &run, "--out", "-"],
        &["query", "SELECT * FROM jobs", "--json"],
        &["query", "SELECT * FROM steps", "--format", "jsonl"],
    ] {
        let output = fathom(dir, args);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_harmless(&format!("{args:?}"), &text);
        let mut found = Vec::new();
        for document in serde_json::Deserializer::from_str(&text).into_iter() {
            strings(&document.unwrap(), &mut found);
        }
        let foreign = FOREIGN.replace('/', "∕");
        let whole = |text: &String| text.contains(FOREIGN) || text.contains(&foreign);
        assert!(found.iter().any(whole), "{args:?}: {found:?}");
    }
}

#[test]
fn what_is_exported_or_drawn_stays_in_its_folder_whatever_series_are_called() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // What an export of a series without figures would remove.
    let outside = dir.join("outside.ssv");
    fs::write(&outside, "mine").unwrap();
    for series in ["../outside", outside.with_extension("").to_str().unwrap()] {
        let runs = dir.join("runs");
        let mut writer = Writer::create(&runs, &records::header("foreign", "run")).unwrap();
        let mut append = |event: Event| writer.append(&event).unwrap();
        append(Event::Skipped {
            point: Box::new(records::point(series, 8, 1)),
            reason: "not now".into(),
            cause: SkipCause::NotNeeded,
        });
        let run = writer.finish(RunStatus::Complete).unwrap();
        let run = run.to_str().unwrap();
        for args in [
            &["export", "ssv", run, "--out", "to"] as &[&str],
            &["graph", run, "--out", "to"],
        ] {
            fathom(dir, args);
            assert_eq!(fs::read_to_string(&outside).unwrap(), "mine", "{args:?}");
        }
        // With figures it would have been replaced.
        let mut writer = Writer::create(&runs, &records::header("foreign", "run")).unwrap();
        let mut append = |event: Event| writer.append(&event).unwrap();
        append(Event::Step {
            step: 1,
            of: 1,
            name: "one".into(),
            point: Some(Box::new(records::point(series, 1, 1))),
        });
        records::begin(&mut append, &["job"]);
        let figures = records::figures(1000.0, 90_000.0, 3000);
        append(records::finished(vec![records::job("job", figures)]));
        append(records::STEP_ENDED);
        let run = writer.finish(RunStatus::Complete).unwrap();
        let run = run.to_str().unwrap();
        let exported = fathom(dir, &["export", "ssv", run, "--out", "to"]);
        assert!(exported.status.success(), "{exported:?}");
        assert_eq!(fs::read_to_string(&outside).unwrap(), "mine");
        assert!(!files_below(dir, &["to"]).is_empty());
    }
}

#[test]
fn text_in_a_sheet_is_no_formula() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (run, campaign) = (
        run(&dir.join("runs")),
        campaign(&dir.join("runs"), "iodepth"),
    );
    let samples = fathom(dir, &["show", &run, "--samples=csv"]);
    let samples = String::from_utf8(samples.stdout).unwrap();
    assert!(samples.contains(&format!(",'{SHOWN}")), "{samples}");
    assert!(
        fathom(dir, &["export", "csv", &campaign, "--out", "csv"])
            .status
            .success()
    );
    let failures = fs::read_to_string(dir.join("csv/failures.csv")).unwrap();
    // What the series goes over is the first word of its sheet.
    let campaign = self::campaign(&dir.join("runs"), FOREIGN);
    let sheet = fathom(dir, &["export", "csv", &campaign, "--out", "-"]);
    let sheet = String::from_utf8(sheet.stdout).unwrap();
    assert_harmless("sheet", &sheet);
    assert!(sheet.contains(&format!("'{SHOWN}")), "{sheet}");
    for line in failures.lines().chain(samples.lines()).chain(sheet.lines()) {
        let begins = |field: &str| field.trim_start_matches('"').starts_with(['=', '+', '@']);
        assert!(!line.split(',').any(begins), "{line}");
    }
}
