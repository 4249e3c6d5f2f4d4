//! `fathom query` and the rows of `fathom export`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_model::host::Host;
use fathom_model::result::CpuUse;
use fathom_model::{Direction, Event, Failure, FailureKind, JobResult, ReasonKind, RunStatus};
use fathom_record::{RunRemarks, Writer};
use fathom_report::query::{KEPT_TABLES, TABLES};
use fathom_testkit::{require, skip};
use serde_json::{Value, json};

use crate::report::records;

fn fathom(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
    command.args(["--runs", "runs"]).args(args);
    command.current_dir(dir).output().unwrap()
}

/// What a command says that has to succeed.
fn says(dir: &Path, args: &[&str]) -> String {
    let output = fathom(dir, args);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

fn rows(dir: &Path, args: &[&str]) -> Vec<Value> {
    let said = says(dir, &[&["query", "--json"], args].concat());
    let document: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(document["schema"], "fathom.query/1");
    document["rows"].as_array().unwrap().clone()
}

/// How a command ends that has to fail, and what it says.
fn fails(dir: &Path, args: &[&str]) -> (i32, String) {
    let output = fathom(dir, args);
    assert!(output.stdout.is_empty(), "{args:?}");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), told)
}

fn id(dir: &Path) -> String {
    dir.file_name().unwrap().to_str().unwrap().to_owned()
}

/// A run of one job with a tag and options, so fast.
fn tagged(runs: &Path, kernel: &str, iops: f64) -> PathBuf {
    let mut header = records::header("nightly", "job run");
    header
        .facts
        .insert("tags".into(), json!({"kernel": kernel}));
    let mut writer = Writer::create(runs, &header).unwrap();
    let mut append = |event: Event| writer.append(&event).unwrap();
    records::begin(&mut append, &["nightly"]);
    for second in 1..=12 {
        let ios = iops as u64 + second % 3;
        let sample = records::sample(second * 1000, 0, Direction::Read, ios, 900_000);
        append(Event::Sample(sample));
        append(records::interval(second * 1000));
    }
    let options = [
        ("rw", "randrw"),
        ("bs", "4k"),
        ("iodepth", "8"),
        ("direct", "0"),
    ];
    let options = options.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let figures = records::figures(iops, 900_000.0, 12_000);
    append(records::finished(vec![JobResult {
        options: BTreeMap::from(options),
        write: Some(figures.clone()),
        sync: figures.clat.clone(),
        cpu: Some(CpuUse {
            user_percent: 60.0,
            system_percent: 39.5,
            ..CpuUse::default()
        }),
        ..records::job("nightly", figures)
    }]));
    writer.finish(RunStatus::Complete).unwrap()
}

/// A run of two hosts, one of which failed an I/O.
fn on_hosts(runs: &Path) -> PathBuf {
    let mut writer = Writer::create(runs, &records::header("pair", "job run")).unwrap();
    let mut append = |event: Event| writer.append(&event).unwrap();
    let hosts = ["one", "two"].map(|name| Host {
        name: name.into(),
        start_ms: Some(if name == "one" { 0.0 } else { 12.5 }),
        end_ms: Some(3000.0),
        environment: Some(Box::new(records::environment())),
        ..Host::default()
    });
    append(Event::Jobs {
        names: vec!["pair".into(), "pair".into()],
        hosts: vec!["one".into(), "two".into()],
    });
    for second in 1..=3 {
        for job in 0..2 {
            let sample = records::sample(second * 1000, job, Direction::Read, 500, 90_000);
            append(Event::Sample(sample));
        }
        append(records::interval(second * 1000));
    }
    append(Event::Doubted {
        doubt: ReasonKind::InMemory,
    });
    let failure = Failure::new(FailureKind::Io, "input/output error");
    append(Event::Failure(failure.about("/dev/x").with_errno(5)));
    let jobs = ["one", "two"].map(|host| JobResult {
        hostname: Some(host.into()),
        ..records::job("pair", records::figures(500.0, 90_000.0, 3000))
    });
    append(Event::Hosts {
        hosts: hosts.to_vec(),
    });
    append(records::finished(jobs.to_vec()));
    writer.finish(RunStatus::Failed).unwrap()
}

/// Runs of every kind that the docs ask for.
fn some_runs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    records::campaign(&runs, 2);
    tagged(&runs, "6.1", 8000.0);
    tagged(&runs, "6.9", 9000.0);
    on_hosts(&runs);
    dir
}

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/QUERY.md");

#[test]
fn every_example_of_the_docs_answers() {
    let dir = some_runs();
    let docs = fs::read_to_string(DOCS).unwrap();
    let examples: Vec<&str> = docs
        .split("```sql\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(examples.len() >= 20, "{}", examples.len());
    for sql in examples {
        assert!(!rows(dir.path(), &[sql]).is_empty(), "no rows: {sql}");
    }
}

#[test]
fn docs_have_the_tables_of_the_program() {
    const BEGIN: &str = "<!-- tables: made by a test -->\n";
    const END: &str = "<!-- tables: end -->\n";
    let mut text = String::new();
    for (at, table) in TABLES.iter().enumerate() {
        let when = if at < KEPT_TABLES {
            ""
        } else {
            ", read on demand"
        };
        text += &format!(
            "\n### {}\nA row is {}{when}.\n\n",
            table.name, table.meaning
        );
        text += "| column | type | unit | what it says |\n|---|---|---|---|\n";
        for column in table.columns {
            let kind = column.kind.sql().to_lowercase();
            text += &format!(
                "| {} | {kind} | {} | {} |\n",
                column.name, column.unit, column.meaning
            );
        }
    }
    text += "\n";
    let docs = fs::read_to_string(DOCS).unwrap();
    let (before, rest) = docs.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let made = format!("{before}{BEGIN}{text}{END}{after}");
    if std::env::var_os("FATHOM_BLESS").is_some() {
        fs::write(DOCS, &made).unwrap();
    } else {
        assert!(made == docs, "FATHOM_BLESS=1 writes docs/QUERY.md");
    }
    // And it says the same itself.
    let listed = rows(Path::new("/"), &["--tables"]);
    let columns: usize = TABLES.iter().map(|table| table.columns.len()).sum();
    assert_eq!(listed.len(), columns);
}

#[test]
fn a_query_only_reads() {
    let dir = some_runs();
    let dir = dir.path();
    for (sql, code) in [
        ("DELETE FROM runs", 4),
        ("INSERT INTO tags VALUES ('a', 'b', 'c')", 4),
        ("UPDATE runs SET status = 'complete'", 4),
        ("DROP TABLE runs", 4),
        ("CREATE TABLE mine (a)", 4),
        ("CREATE TEMP VIEW mine AS SELECT 1", 4),
        ("ATTACH 'other.db' AS other", 4),
        ("VACUUM INTO 'other.db'", 4),
        ("PRAGMA writable_schema = 1", 4),
        ("SELECT * FROM pragma_table_info('runs')", 4),
        ("BEGIN", 4),
        ("SELECT 1; DELETE FROM runs", 4),
        (
            "WITH a AS (SELECT 1) INSERT INTO tags SELECT 1, 2, 3 FROM a",
            4,
        ),
        ("SELECT 1; SELECT 2", 3),
        ("SELECT load_extension('x')", 3),
        ("SELECT nowhere FROM runs", 3),
        ("", 3),
    ] {
        for db in [&[] as &[&str], &["--db", "runs.db"]] {
            let (found, told) = fails(dir, &[&["query", sql], db].concat());
            assert_eq!(found, code, "{sql}: {told}");
        }
    }
    assert!(!dir.join("other.db").exists());
    assert_eq!(
        rows(dir, &["SELECT * FROM runs", "--db", "runs.db"]).len(),
        4
    );
    let (_, told) = fails(dir, &["query", "SELECT 1\nFROM runs WHERE\n  nowhere = 1"]);
    assert!(
        told.contains("line 3, column 3: no such column: nowhere"),
        "{told}"
    );
    // What fills memory or a value without end.
    let long = "SELECT zeroblob(1000000000)";
    assert_eq!(fails(dir, &["query", long]).0, 1);
}

#[test]
fn a_query_ends_when_it_is_told_to() {
    let dir = some_runs();
    let endless = "WITH RECURSIVE all_of_them(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM \
                   all_of_them) SELECT count(*) FROM all_of_them";
    let mut child = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(["--runs", "runs", "query", endless])
        .current_dir(dir.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let status = PathBuf::from(format!("/proc/{}/status", child.id()));
    fathom_testkit::await_that("it watches for signals", || {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let caught = text.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
        caught.is_some_and(|mask| u64::from_str_radix(mask, 16).unwrap_or(0) & 0b10 != 0)
    });
    fathom_testkit::signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn rows_are_those_of_the_documents() {
    let dir = some_runs();
    let dir = dir.path();
    for run in fs::read_dir(dir.join("runs")).unwrap() {
        let run = id(&run.unwrap().path());
        let document: Value = serde_json::from_str(&says(dir, &["show", &run, "--json"])).unwrap();
        let sql = "SELECT * FROM figures WHERE dir <> 'sync' ORDER BY figure";
        let figures = rows(dir, &[sql, &run]);
        let mut of_document = Vec::new();
        for job in document["jobs"].as_array().unwrap() {
            for dir in ["read", "write", "trim", "mixed"] {
                if job[dir]["total_ios"].as_u64().unwrap_or(0) > 0 {
                    of_document.push((job, dir));
                }
            }
        }
        assert_eq!(figures.len(), of_document.len(), "{run}");
        for (row, (job, dir)) in figures.iter().zip(of_document) {
            let figure = &job[dir];
            assert_eq!(row["run"], run.as_str());
            assert_eq!(row["dir"], dir);
            assert_eq!(row["step"], job["step"]);
            for name in ["iops", "bw_bytes", "total_ios", "io_bytes", "runtime_ms"] {
                assert_eq!(row[name].as_f64(), figure[name].as_f64(), "{run} {name}");
            }
            assert_eq!(row["clat_mean_ns"], figure["clat"]["mean_ns"]);
            assert_eq!(row["clat_p99_ns"], figure["clat"]["percentiles_ns"]["99"]);
            assert_eq!(row["verdict"], figure["verdict"]["level"]);
        }
        let samples = rows(dir, &["SELECT * FROM samples", &run]);
        let series = says(dir, &["show", &run, "--samples=jsonl"]);
        assert_eq!(samples.len(), series.lines().count());
        let means = "SELECT weighted_mean(iops, span_ms) AS mean, sum(ios) * 1e3 / sum(span_ms) AS rate, \
             weighted_mean(NULL, 1) AS none FROM samples";
        let means = &rows(dir, &[means, &run])[0];
        let [mean, rate] = ["mean", "rate"].map(|name| means[name].as_f64().unwrap());
        assert!((mean - rate).abs() <= 1e-9 * rate, "{means}");
        assert!(means["none"].is_null());
        for (row, line) in samples.iter().zip(series.lines()) {
            let line: Value = serde_json::from_str(line).unwrap();
            for name in ["t_ms", "ios", "bytes", "step", "dir", "iops", "clat_p99_ns"] {
                assert_eq!(row[name], line[name], "{run} {name}");
            }
        }
        let sql = "SELECT figure, dir, sum(n) AS n FROM histograms WHERE kind = 'clat' GROUP BY 1";
        let counts = rows(dir, &[sql, &run]);
        let whole = "SELECT sum(clat_n) AS n FROM figures";
        let n: i64 = counts.iter().filter_map(|row| row["n"].as_i64()).sum();
        // The histogram of the test's records has some more in its tail.
        assert!(n >= rows(dir, &[whole, &run])[0]["n"].as_i64().unwrap());
    }
}

/// What is asked of an index, and of the records.
const ALL: &str = "SELECT runs.*, figures.*, value FROM runs LEFT JOIN figures USING (run) \
                   LEFT JOIN tags USING (run) ORDER BY runs.run, figure";

/// The question to the records themselves.
const RECORDS: &[&str] = &["query", ALL, "--format", "csv"];

/// The answer of the index, which must be that of the records.
fn indexed(dir: &Path) -> String {
    let told = says(dir, &[RECORDS, &["--db", "runs.db"]].concat());
    assert_eq!(told, says(dir, RECORDS));
    told
}

#[test]
fn an_index_tells_what_the_records_tell() {
    let dir = some_runs();
    let dir = dir.path();
    let runs = dir.join("runs");
    let first = indexed(dir);
    let written = fs::metadata(dir.join("runs.db")).unwrap().mtime_nsec();
    assert_eq!(indexed(dir), first);
    let again = fs::metadata(dir.join("runs.db")).unwrap().mtime_nsec();
    assert_eq!(again, written, "nothing had changed");
    // A run more, with a name that no time and no number can hold.
    let more = tagged(&runs, "one-more", 1234.0);
    let second = indexed(dir);
    assert!(
        second.contains("one-more") && second.contains(",1234,"),
        "{second}"
    );
    // One whose log is another one of the same length and age.
    let log = more.join(fathom_record::EVENTS);
    let was = fs::metadata(&log).unwrap().modified().unwrap();
    let text = fs::read_to_string(&log)
        .unwrap()
        .replace("one-more", "one-else");
    fs::write(&log, text).unwrap();
    let file = fs::File::options().write(true).open(&log).unwrap();
    file.set_times(fs::FileTimes::new().set_modified(was))
        .unwrap();
    drop(file);
    let third = indexed(dir);
    assert_ne!(third, second);
    // One of which something is said later.
    let mut remarks = RunRemarks::default();
    remarks.note("a note of later").unwrap();
    remarks.tag(&"kernel=one-said".parse().unwrap());
    remarks.write(&more).unwrap();
    let said = indexed(dir);
    assert!(
        said.contains("a note of later") && said.contains("one-said") && !said.contains("one-else")
    );
    // One that cannot be read, and one that is gone.
    let lost = tagged(&runs, "one-lost", 4321.0);
    assert!(indexed(dir).contains("one-lost"));
    fs::write(lost.join(fathom_record::EVENTS), "no record\n").unwrap();
    let fourth = indexed(dir);
    assert!(
        fourth.contains("unreadable") && !fourth.contains("one-lost"),
        "{fourth}"
    );
    fs::remove_dir_all(&lost).unwrap();
    fs::remove_dir_all(&more).unwrap();
    assert_eq!(indexed(dir), first);
    // One that goes on.
    let writer = records::begun(&runs, 1, 3);
    assert!(indexed(dir).contains("running"));
    drop(writer);
    assert!(!indexed(dir).contains("running"));
    // The others' reader finds the same.
    let script = "import sqlite3, sys\n\
                  db = sqlite3.connect(sys.argv[1])\n\
                  print(db.execute('SELECT count(*) FROM figures').fetchone()[0])";
    match Command::new("python3")
        .args(["-c", script, "runs.db"])
        .current_dir(dir)
        .output()
    {
        Ok(output) => {
            let n = rows(dir, &["SELECT count(*) AS n FROM figures"])[0]["n"].to_string();
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(said.trim(), n, "{told}");
        }
        Err(_) => skip(
            "an_index_tells_what_the_records_tell",
            "there is no python3",
        ),
    }
}

#[test]
fn what_is_no_index_is_left_as_it_is() {
    let dir = some_runs();
    let dir = dir.path();
    let ask = |file: &str| fails(dir, &["query", "SELECT 1 FROM runs", "--db", file]);
    let stays = |name: &str, bytes: &[u8], word: &str| {
        fs::write(dir.join(name), bytes).unwrap();
        let (code, told) = ask(name);
        assert_eq!(code, 4, "{told}");
        assert!(told.contains(word), "{name}: {told}");
        assert!(
            fs::read(dir.join(name)).unwrap() == bytes,
            "{name} was changed"
        );
    };
    stays("notes.txt", b"my notes\n", "no index of Fathom");
    let other = rusqlite::Connection::open(dir.join("other.db")).unwrap();
    other.execute_batch("CREATE TABLE runs (a)").unwrap();
    drop(other);
    let other = fs::read(dir.join("other.db")).unwrap();
    stays("other.db", &other, "no index of Fathom");
    // One of ours, damaged.
    says(
        dir,
        &["query", "SELECT count(*) FROM runs", "--db", "ours.db"],
    );
    let ours = fs::read(dir.join("ours.db")).unwrap();
    stays("cut.db", &ours[..ours.len() / 2], "damaged");
    let mut bent = ours.clone();
    let middle = bent.len() / 2;
    bent[middle..].fill(0xa5);
    stays("bent.db", &bent, "damaged");
    // One that others gave a table to, and one of another folder.
    let changed = dir.join("changed.db");
    fs::write(&changed, &ours).unwrap();
    let theirs = rusqlite::Connection::open(&changed).unwrap();
    theirs
        .execute_batch("CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM tags; END")
        .unwrap();
    drop(theirs);
    assert_eq!(ask("changed.db").0, 4);
    fs::rename(dir.join("runs"), dir.join("moved")).unwrap();
    fs::create_dir(dir.join("runs")).unwrap();
    let elsewhere = [
        "--runs",
        "moved",
        "query",
        "SELECT 1 FROM runs",
        "--db",
        "ours.db",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(elsewhere)
        .current_dir(dir)
        .output();
    assert_eq!(output.unwrap().status.code(), Some(4));
    // Of another version: made anew.
    fs::remove_dir(dir.join("runs")).unwrap();
    fs::rename(dir.join("moved"), dir.join("runs")).unwrap();
    let older = dir.join("older.db");
    fs::write(&older, &ours).unwrap();
    let theirs = rusqlite::Connection::open(&older).unwrap();
    theirs
        .execute_batch("DROP TABLE figures; PRAGMA user_version = 1")
        .unwrap();
    drop(theirs);
    let told = rows(
        dir,
        &["SELECT count(*) AS n FROM figures", "--db", "older.db"],
    );
    assert!(told[0]["n"].as_i64() > Some(0));
    let device = fails(dir, &["query", "SELECT 1 FROM runs", "--db", "/dev/null"]);
    assert_eq!(device.0, 4, "{}", device.1);
}

#[test]
fn forms_say_the_same() {
    let dir = some_runs();
    let dir = dir.path();
    let sql = "SELECT run, dir, iops, clat_n FROM figures ORDER BY run, figure";
    let of = |form: &str| says(dir, &["query", sql, "--format", form]);
    let list: Vec<Value> = serde_json::from_str(&of("json")).unwrap();
    assert_eq!(list, rows(dir, &[sql]));
    let jsonl = of("jsonl");
    let lines: Vec<Value> = jsonl
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines, list);
    assert!(
        jsonl.starts_with("{\"run\":"),
        "in the order of the question: {jsonl}"
    );
    let csv = of("csv");
    assert_eq!(csv.lines().next(), Some("run,dir,iops,clat_n"));
    assert_eq!(csv.lines().count(), list.len() + 1);
    assert_eq!(of("md").lines().count(), list.len() + 2);
    assert_eq!(of("table").lines().count(), list.len() + 1);
    let parquet = fathom(dir, &["query", sql, "--format", "parquet"]).stdout;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    for form in [&["--json"] as &[&str], &["--format", "parquet"]] {
        let (code, told) = fails(dir, &[&["query", "SELECT 1 AS a, 2 AS a"], form].concat());
        assert!(
            code == 3 && told.contains("two columns are called 'a'"),
            "{told}"
        );
    }
    assert_eq!(
        says(
            dir,
            &["query", "SELECT * FROM runs WHERE 0", "--format", "json"]
        ),
        "[\n]\n"
    );
    assert_eq!(
        says(dir, &["query", "SELECT NULL, 9e999, -1"])
            .lines()
            .count(),
        2
    );
    let many = "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 10001) \
                SELECT n FROM a";
    let output = fathom(dir, &["query", many]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("more than 10000 rows"));
    assert_eq!(
        output.stdout.iter().filter(|&&byte| byte == b'\n').count(),
        10_001
    );
    assert_eq!(
        says(dir, &["query", many, "--format", "csv"])
            .lines()
            .count(),
        10_002
    );
}

#[test]
fn a_question_may_come_from_a_program() {
    let dir = some_runs();
    let ask = |sql: &[u8]| {
        fs::write(dir.path().join("question.sql"), sql).unwrap();
        let question = fs::File::open(dir.path().join("question.sql")).unwrap();
        Command::new(env!("CARGO_BIN_EXE_fathom"))
            .args(["--runs", "runs", "query", "-", "--format", "csv"])
            .current_dir(dir.path())
            .stdin(question)
            .output()
            .unwrap()
    };
    let output = ask(b"-- how many?\nSELECT count(*) AS n FROM runs;\n");
    assert_eq!(output.stdout, b"n\n4\n");
    assert_eq!(ask(&vec![b' '; 2 << 20]).status.code(), Some(3));
}

#[test]
fn a_run_is_exported_row_by_row() {
    let dir = some_runs();
    let dir = dir.path();
    let run = id(&tagged(&dir.join("runs"), "6.1", 5000.0));
    for (option, table, count) in [("--all", "figures", 3), ("--samples", "samples", 12)] {
        let asked = rows(dir, &[&format!("SELECT * FROM {table}"), &run]);
        assert_eq!(asked.len(), count);
        let jsonl = says(dir, &["export", "jsonl", option, &run, "--out", "-"]);
        let lines: Vec<Value> = jsonl
            .lines()
            .map(|it| serde_json::from_str(it).unwrap())
            .collect();
        assert_eq!(lines, asked);
        says(dir, &["export", "json", option, &run, "--out", "to"]);
        let file = fs::read_to_string(dir.join(format!("to/{table}.json"))).unwrap();
        assert_eq!(serde_json::from_str::<Vec<Value>>(&file).unwrap(), asked);
        says(dir, &["export", "csv", option, &run]);
        let path = dir.join(format!("runs/{run}/exports/{table}.csv"));
        let file = fs::read_to_string(path).unwrap();
        let titles: Vec<&str> = file.lines().next().unwrap().split(',').collect();
        let columns = TABLES.iter().find(|it| it.name == table).unwrap().names();
        assert_eq!(titles, columns.collect::<Vec<_>>());
        assert_eq!(file.lines().count(), count + 1);
    }
    let line = says(dir, &["export", "jsonl", &run, "--out", "-"]);
    let document: Value = serde_json::from_str(line.trim_end()).unwrap();
    assert_eq!(document["schema"], "fathom.run/1");
    for wrong in [
        &["export", "ssv", "--all"] as &[&str],
        &["export", "parquet"],
        &["export", "csv", "--all", "--samples"],
        &["export", "csv", "--all", "--only", "x"],
    ] {
        assert_eq!(fails(dir, wrong).0, 2, "{wrong:?}");
    }
}

/// How others read what is exported: by what, and what prints rows, columns and the sum
/// of the IOPS.
const READERS: [(&str, &str); 9] = [
    (
        "csv of Python",
        "import csv\nr = list(csv.DictReader(open('figures.csv')))\n\
         print(len(r), len(r[0]), sum(float(x['iops']) for x in r if x['iops']))",
    ),
    (
        "json of Python",
        "import json\nr = [json.loads(x) for x in open('figures.jsonl')]\n\
         print(len(r), len(r[0]), sum(x['iops'] for x in r if x['iops'] is not None))",
    ),
    (
        "pandas",
        "import pandas\nr = pandas.read_csv('figures.csv')\n\
         j = pandas.read_json('figures.jsonl', lines=True)\nassert j.shape == r.shape\n\
         print(len(r), len(r.columns), r['iops'].sum())",
    ),
    (
        "pandas, Parquet",
        "import pandas\nr = pandas.read_parquet('figures.parquet')\n\
         assert r['iops'].dtype == 'float64' and r['figure'].dtype == 'int64', r.dtypes\n\
         assert r['host'].isna().all() and r['job_name'].notna().all()\n\
         print(len(r), len(r.columns), r['iops'].sum())",
    ),
    (
        "polars",
        "import polars\nr = polars.read_csv('figures.csv')\n\
         j = polars.read_ndjson('figures.jsonl')\nassert j.shape == r.shape\n\
         print(len(r), len(r.columns), r['iops'].sum())",
    ),
    (
        "polars, Parquet",
        "import polars\nr = polars.read_parquet('figures.parquet')\n\
         assert r['iops'].dtype == polars.Float64 and r['job_name'].dtype == polars.String\n\
         assert r['figure'].dtype == polars.Int64 and r['host'].null_count() == len(r)\n\
         print(len(r), len(r.columns), r['iops'].sum())",
    ),
    (
        "DuckDB",
        "import duckdb\nr = duckdb.sql(\"FROM 'figures.csv'\")\n\
         j = duckdb.sql(\"FROM 'figures.jsonl'\")\nassert j.shape == r.shape\n\
         print(*r.shape, r.sum('iops').fetchall()[0][0])",
    ),
    (
        "DuckDB, Parquet",
        "import duckdb\nr = duckdb.sql(\"FROM 'figures.parquet'\")\n\
         types = dict(zip(r.columns, map(str, r.types)))\n\
         assert (types['iops'], types['figure'], types['run']) == ('DOUBLE', 'BIGINT', 'VARCHAR')\n\
         print(*r.shape, r.sum('iops').fetchall()[0][0])",
    ),
    (
        "R",
        "r <- read.csv('figures.csv'); cat(nrow(r), ncol(r), sum(r$iops, na.rm=TRUE))",
    ),
];

#[test]
fn exports_are_read_by_other_programs() {
    let name = "exports_are_read_by_other_programs";
    let python = fathom_testkit::readers().inspect_err(|why| skip(name, why));
    let r = fathom_testkit::program("Rscript").inspect_err(|why| skip(name, why));
    let dir = some_runs();
    let dir = dir.path();
    let run = id(&tagged(&dir.join("runs"), "6.1", 5000.0));
    for form in ["csv", "jsonl", "parquet"] {
        says(dir, &["export", form, "--all", &run, "--out", "."]);
    }
    let columns = TABLES.iter().find(|it| it.name == "figures").unwrap();
    let columns = columns.columns.len();
    for (reader, reads) in READERS {
        let (program, how) = match reader {
            "R" => (&r, "-e"),
            _ => (&python, "-c"),
        };
        let Ok(program) = program else { continue };
        let mut command = Command::new(program);
        let output = command
            .args([how, reads])
            .current_dir(dir)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let said: Vec<f64> = said
            .split_whitespace()
            .map(|it| it.parse().unwrap())
            .collect();
        assert_eq!(said, [3.0, columns as f64, 10_000.0], "{reader}: {told}");
    }
}

/// Prints every value of two files beside each other, and how they differ.
const SAME_ROWS: &str = "import json, sys, duckdb, polars, pyarrow.parquet\n\
    rows = [json.loads(line) for line in open('all.jsonl')]\n\
    readers = {\n\
    'pyarrow': lambda f: pyarrow.parquet.read_table(f).to_pylist(),\n\
    'polars': lambda f: polars.read_parquet(f).to_dicts(),\n\
    'duckdb': lambda f: duckdb.sql(f\"FROM '{f}'\").pl().to_dicts()}\n\
    for name, read in readers.items():\n\
    \x20   found = read('all.parquet')\n\
    \x20   assert len(found) == len(rows), (name, len(found), len(rows))\n\
    \x20   for a, b in zip(rows, found):\n\
    \x20       assert a == b, (name, a, b)\n\
    print(len(rows))";

#[test]
fn a_parquet_file_has_every_value_of_every_row() {
    let python = require!(fathom_testkit::readers());
    let dir = some_runs();
    let dir = dir.path();
    // More rows than a group and a page have, values of every kind, words of others, and
    // columns that change their kind on the way or have no value at all.
    let many = "WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 70001) \
                SELECT n, -n * 100000000000000 AS large, n / 7.0 AS part, NULL AS absent, \
                CASE n % 3 WHEN 0 THEN 'é ' || n WHEN 1 THEN '' END AS words, \
                CASE WHEN n > 30000 THEN n / 2.0 ELSE n END AS widened, \
                CASE WHEN n % 70000 = 0 THEN 'end' END AS late, '=1+1' AS \"a \"\"b\"\"\" FROM a";
    let ask = |sql: &str| {
        for form in ["jsonl", "parquet"] {
            let output = fathom(dir, &["query", sql, "--format", form]);
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{told}");
            fs::write(dir.join(format!("all.{form}")), output.stdout).unwrap();
        }
    };
    let same = || {
        let mut command = Command::new(&python);
        let output = command.args(["-c", SAME_ROWS]).current_dir(dir).output();
        let output = output.unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{told}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    ask(many);
    assert_eq!(same(), "70001");
    ask("SELECT * FROM figures WHERE 0");
    assert_eq!(same(), "0");
    // A table of a run, whose groups are written as they fill.
    let run = id(&long_run(&dir.join("runs")));
    for form in ["jsonl", "parquet"] {
        says(dir, &["export", form, "--samples", &run, "--out", "."]);
        let file = dir.join(format!("samples.{form}"));
        fs::rename(file, dir.join(format!("all.{form}"))).unwrap();
    }
    assert_eq!(same(), "70000");
}

/// A run with more samples than a group of Parquet has rows.
fn long_run(runs: &Path) -> PathBuf {
    let mut writer = Writer::create(runs, &records::header("long", "job run")).unwrap();
    let mut append = |event: Event| writer.append(&event).unwrap();
    records::begin(&mut append, &["long"; 100]);
    for second in 1..=700 {
        for job in 0..100 {
            let ios = second % 97 + job as u64;
            let sample = records::sample(second * 1000, job, Direction::Read, ios, 900_000);
            append(Event::Sample(sample));
        }
        append(records::interval(second * 1000));
    }
    writer.finish(RunStatus::Complete).unwrap()
}
