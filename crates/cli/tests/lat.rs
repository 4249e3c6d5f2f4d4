//! `fathom lat` on logs that the real fio wrote, and on broken ones.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

fn lat(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_fathom"))
        .arg("lat")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stdout(output: Output) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap()
}

fn document(args: &[&str]) -> Value {
    let mut with = args.to_vec();
    with.push("--json");
    let text = stdout(lat(&with));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["schema"], "fathom.lat/1");
    document["files"][0].clone()
}

/// A log of the real fio with these options besides.
fn fio_log(test: &str, dir: &Path, options: &[&str]) -> Option<PathBuf> {
    fio_log_by(Path::new("fio"), test, dir, options)
}

fn fio_log_by(fio: &Path, test: &str, dir: &Path, options: &[&str]) -> Option<PathBuf> {
    let prefix = dir.join("t");
    let done = Command::new(fio)
        .args(["--name=t", "--ioengine=null", "--rw=randrw", "--bs=4k"])
        .args(["--size=8m", "--per_job_logs=0", "--output=/dev/null"])
        .arg(format!("--write_lat_log={}", prefix.display()))
        .args(options)
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match done {
        Ok(status) => {
            assert!(status.success(), "fio {options:?}");
            Some(dir.join("t_lat.log"))
        }
        Err(_) => {
            fathom_testkit::skip(test, "fio is not installed");
            None
        }
    }
}

/// One line of a log as the plainest of readers sees it.
struct Plain {
    time_ms: u64,
    value: u64,
    dir: String,
    prio: u64,
}

fn plain(log: &Path, prio: usize) -> Vec<Plain> {
    let read = |line: &str| {
        let fields: Vec<&str> = line.split(", ").collect();
        let number = match fields[prio].strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).unwrap(),
            None => fields[prio].parse().unwrap(),
        };
        Plain {
            time_ms: fields[0].parse().unwrap(),
            value: fields[1].parse().unwrap(),
            dir: ["read", "write"][fields[2].parse::<usize>().unwrap()].to_owned(),
            prio: number,
        }
    };
    let text = fs::read_to_string(log).unwrap();
    text.lines().map(read).collect()
}

fn assert_group(group: &Value, of: &[&Plain]) {
    let mut values: Vec<u64> = of.iter().map(|line| line.value).collect();
    values.sort_unstable();
    let n = values.len();
    assert_eq!(group["n"], n, "{group}");
    assert_eq!(group["min_ns"], values[0]);
    assert_eq!(group["max_ns"], values[n - 1]);
    for (name, p) in [("1", 0.01), ("50", 0.5), ("99.5", 0.995), ("99.99", 0.9999)] {
        let element = ((n as f64 * p) as usize).max(1);
        assert_eq!(group["percentiles_ns"][name], values[element - 1], "{name}");
    }
}

#[test]
fn every_form_of_the_real_fio_is_read() {
    let prios = ["--log_prio=1", "--prioclass=2", "--prio=3"];
    let cases: &[(&[&str], usize, &str)] = &[
        (&[], 4, "real_time"),
        (&["--log_offset=1"], 5, "real_time"),
        (&prios, 4, "value"),
        (
            &[prios[0], prios[1], prios[2], "--log_offset=1"],
            5,
            "value",
        ),
        (&["--log_avg_msec=1"], 4, "real_time"),
    ];
    for (options, prio, column) in cases {
        let dir = tempfile::tempdir().unwrap();
        let Some(log) = fio_log("every_form_of_the_real_fio_is_read", dir.path(), options) else {
            return;
        };
        let file = document(&[log.to_str().unwrap(), "--interval", "1ms"]);
        let lines = plain(&log, *prio);
        assert_eq!(file["lines"], lines.len(), "{options:?}");
        assert_eq!(file["priority_column"], *column, "{options:?}");
        assert_eq!(file["averaged"], options.contains(&"--log_avg_msec=1"));
        assert_eq!(file["exact"], true);
        let runtime_ms = lines.iter().map(|line| line.time_ms).max().unwrap();
        assert_eq!(file["runtime_ms"], runtime_ms);
        assert_group(&file["all"], &lines.iter().collect::<Vec<_>>());
        for group in file["directions"].as_array().unwrap() {
            let dir = group["direction"].as_str().unwrap();
            let of: Vec<&Plain> = lines.iter().filter(|line| line.dir == dir).collect();
            assert_group(group, &of);
        }
        let over_time = file["intervals"].as_array().unwrap();
        let sum: u64 = over_time
            .iter()
            .map(|interval| interval["all"]["n"].as_u64().unwrap())
            .sum();
        assert_eq!(sum, lines.len() as u64);
        if options.contains(&"--prio=3") {
            let priority = &file["priorities"][0];
            assert_eq!(lines[0].prio, 0x4003);
            assert_eq!(priority["value"], 0x4003);
            assert_eq!(priority["class"], "BE");
            assert_eq!(
                (&priority["level"], &priority["hint"]),
                (&3.into(), &0.into())
            );
        }
    }
}

/// What a log of fio ≥ 3.37 holds, as the plainest of readers sees it.
struct Newer {
    /// Columns that stand before the direction: time, value and perhaps the largest.
    dir: usize,
    averaged: bool,
    since_1970: bool,
}

#[test]
fn every_form_of_a_newer_fio_is_read() {
    let test = "every_form_of_a_newer_fio_is_read";
    let fio = match fathom_testkit::newer_fio() {
        Ok(fio) => fio,
        Err(reason) => return fathom_testkit::skip(test, &reason),
    };
    let form = |dir, averaged, since_1970| Newer {
        dir,
        averaged,
        since_1970,
    };
    let (offset, issue, prio) = ("--log_offset=1", "--log_issue_time=1", "--log_prio=1");
    let (both, avg) = ("--log_window_value=both", "--log_avg_msec=2");
    let epoch = "--log_alternate_epoch=1";
    let cases: &[(&[&str], Newer)] = &[
        (&[], form(2, false, false)),
        (&[offset, issue], form(2, false, false)),
        (
            &[offset, issue, prio, "--prioclass=2", "--prio=3"],
            form(2, false, false),
        ),
        (&[both, avg], form(3, true, false)),
        (&[both, avg, prio], form(3, true, false)),
        (&[both, avg, offset, issue, prio], form(3, true, false)),
        (&["--log_window_value=max", avg], form(2, true, false)),
        // The column is there and says nothing.
        (&[both], form(3, false, false)),
        (&[both, prio], form(3, false, false)),
        (&[both, offset, issue, prio], form(3, false, false)),
        (&[epoch], form(2, false, true)),
        (&["--rw=randwrite", both], form(3, false, false)),
    ];
    for (options, newer) in cases {
        let dir = tempfile::tempdir().unwrap();
        let Some(log) = fio_log_by(&fio, test, dir.path(), options) else {
            return;
        };
        assert_newer(options, newer, &log);
    }
}

fn assert_newer(options: &[&str], newer: &Newer, log: &Path) {
    let file = document(&[log.to_str().unwrap()]);
    let text = fs::read_to_string(log).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split(", ").collect()).collect();
    let number = |line: &[&str], at: usize| line[at].parse::<u64>().unwrap();
    assert_eq!(file["lines"], lines.len(), "{options:?}");
    assert_eq!(file["averaged"], newer.averaged, "{options:?}");
    let values = |dir: u64| -> Vec<u64> {
        let of = lines.iter().filter(|line| number(line, newer.dir) == dir);
        let mut values: Vec<u64> = of.map(|line| number(line, 1)).collect();
        values.sort_unstable();
        values
    };
    for (name, dir) in [("read", 0), ("write", 1)] {
        let values = values(dir);
        let groups = file["directions"].as_array().unwrap();
        let group = groups.iter().find(|group| group["direction"] == name);
        assert_eq!(group.is_some(), !values.is_empty(), "{options:?} {name}");
        let Some(group) = group else { continue };
        assert_eq!(group["n"], values.len(), "{options:?}");
        assert_eq!(group["min_ns"], values[0], "{options:?}");
        let bytes = (!newer.averaged).then_some(4096.0 * values.len() as f64);
        assert_eq!(group["io_bytes"].as_f64(), bytes, "{options:?}");
    }
    let largest = match newer.dir {
        3 if newer.averaged => 2,
        _ => 1,
    };
    let largest = lines
        .iter()
        .map(|line| number(line, largest))
        .max()
        .unwrap();
    assert_eq!(file["all"]["max_ns"], largest, "{options:?}");
    let times = || lines.iter().map(|line| number(line, 0));
    let runtime_ms = match newer.since_1970 {
        true => times().max().unwrap() - times().next().unwrap(),
        false => times().max().unwrap(),
    };
    assert_eq!(file["runtime_ms"], runtime_ms, "{options:?}");
    if options.contains(&"--prio=3") {
        assert_eq!(file["priorities"][0]["value"], 0x4003);
    }
}

/// Two priorities, one with a hint; times up to 1 s.
fn two_priorities(dir: &Path) -> PathBuf {
    let line = |n: u64| {
        let prio = if n.is_multiple_of(5) {
            "0x4008"
        } else {
            "0x0000"
        };
        format!("{}, {}, 0, 131072, {prio}\n", n, 1_000_000 + n * 1001)
    };
    let log = dir.join("two_lat.log");
    fs::write(&log, (1..=1000).map(line).collect::<String>()).unwrap();
    log
}

#[test]
fn the_text_has_the_form_people_know() {
    let dir = tempfile::tempdir().unwrap();
    let log = two_priorities(dir.path());
    let text = stdout(lat(&[log.to_str().unwrap(), "--by", "priority"]));
    let (_, blocks) = text.split_once('\n').unwrap();
    insta::assert_snapshot!("lat_text", blocks);
    let all = stdout(lat(&[log.to_str().unwrap(), "--interval", "250ms"]));
    let shown = all.replace(dir.path().to_str().unwrap(), "DIR");
    insta::assert_snapshot!("lat_text_over_time", shown);
}

/// A block of its own would repeat that of all I/Os, and there was no word of it.
#[test]
fn the_only_priority_of_reads_and_writes_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("mix_lat.log");
    let line = |n: u64| format!("{n}, {}, {}, 4096, 0x4008\n", 1_000_000 + n, n % 2);
    fs::write(&log, (1..=100).map(line).collect::<String>()).unwrap();
    let text = stdout(lat(&[log.to_str().unwrap()]));
    let head = text.lines().next().unwrap();
    let named = ", all of priority 0x4008, class BE, level 0, hint 1";
    assert!(head.ends_with(named), "{head}");
    assert!(!text.contains("\nPriority"), "{text}");
}

#[test]
fn csv_has_the_columns_people_know_and_a_first_one_when_asked() {
    let dir = tempfile::tempdir().unwrap();
    let log = two_priorities(dir.path());
    let log = log.to_str().unwrap();
    let csv = stdout(lat(&[log, "--format", "csv", "--head", "--label", "32"]));
    insta::assert_snapshot!("lat_csv", csv);
    let plain = stdout(lat(&[log, "--format", "csv"]));
    let columns = |line: &str| line.split(',').count();
    assert!(plain.lines().all(|line| columns(line) == 25), "{plain}");
    assert!(plain.starts_with("NONE,0,0,"), "{plain}");
}

#[test]
fn a_histogram_is_within_its_error_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let log = two_priorities(dir.path());
    let log = log.to_str().unwrap();
    let (exact, near) = (document(&[log]), document(&[log, "--memory", "0"]));
    assert_eq!(
        (&exact["exact"], &near["exact"]),
        (&true.into(), &false.into())
    );
    assert_eq!(near["percentile_error_percent"], 0.79);
    assert_eq!(exact["all"]["stdev_ns"], near["all"]["stdev_ns"]);
    for (percent, ns) in exact["all"]["percentiles_ns"].as_object().unwrap() {
        let (ns, near) = (ns.as_f64(), near["all"]["percentiles_ns"][percent].as_f64());
        let (ns, near) = (ns.unwrap(), near.unwrap());
        assert!(
            (ns - near).abs() <= 0.0079 * ns,
            "{percent}: {near} for {ns}"
        );
    }
    // What does not fit becomes a histogram on the way.
    assert_eq!(document(&[log, "--memory", "100"])["all"], near["all"]);
}

#[test]
fn gzip_reads_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let log = two_priorities(dir.path());
    let plain = document(&[log.to_str().unwrap()]);
    let done = Command::new("gzip").arg(&log).status().unwrap();
    assert!(done.success());
    let packed = document(&[&format!("{}.gz", log.display())]);
    assert_eq!(plain["all"], packed["all"]);
    assert_eq!(plain["priorities"], packed["priorities"]);
}

#[test]
fn a_malformed_line_ends_it_unless_it_is_to_be_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("bad_lat.log");
    fs::write(
        &log,
        "1, 5, 0, 512, 0\n2, 6, 0, 512\n3, 7, 0, 512, 0\n4, 8, 0, 5",
    )
    .unwrap();
    let log = log.to_str().unwrap();
    let output = lat(&[log]);
    assert_eq!(output.status.code(), Some(3));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    let wanted = "line 2, column 13: the line ends before the priority; --skip-bad";
    assert!(said.contains(wanted), "{said}");
    let file = document(&[log, "--skip-bad"]);
    assert_eq!(
        (&file["lines"], &file["skipped_lines"]),
        (&2.into(), &1.into())
    );
    let notes = file["notes"].to_string();
    assert!(notes.contains("line 2, column 13"), "{notes}");
    assert!(
        notes.contains("the last line has no end (10 bytes)"),
        "{notes}"
    );
}

#[test]
fn what_has_no_latencies_is_refused_or_said() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let output = lat(&[&write("a_bw.1.log", "1, 5, 0, 512, 0\n")]);
    assert_eq!(output.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&output.stderr).contains("a log of bandwidth"));
    let empty = write("empty_lat.log", "");
    assert!(stdout(lat(&[&empty])).ends_with("empty_lat.log: no I/O\n"));
    assert_eq!(document(&[&empty])["lines"], 0);
    assert_eq!(lat(&["/nowhere_lat.log"]).status.code(), Some(3));
}

#[test]
fn the_latencies_of_each_priority_are_written_in_their_order() {
    let dir = tempfile::tempdir().unwrap();
    let log = two_priorities(dir.path());
    stdout(lat(&[log.to_str().unwrap(), "--save-priolat", "-q"]));
    let saved = |prio: &str| {
        let text = fs::read_to_string(format!("{}.{prio}.lat", log.display())).unwrap();
        text.lines()
            .map(|line| line.parse().unwrap())
            .collect::<Vec<u64>>()
    };
    let of = |wanted: &dyn Fn(u64) -> bool| -> Vec<u64> {
        (1..=1000)
            .filter(|&n| wanted(n))
            .map(|n| 1_000_000 + n * 1001)
            .collect()
    };
    assert_eq!(saved("0x4008"), of(&|n| n.is_multiple_of(5)));
    assert_eq!(saved("0x0000"), of(&|n| !n.is_multiple_of(5)));
}

#[test]
fn a_folder_means_all_latency_logs_in_it_by_depth() {
    let dir = tempfile::tempdir().unwrap();
    for depth in ["16", "2"] {
        let at = dir.path().join("cdlsingle").join(depth);
        fs::create_dir_all(&at).unwrap();
        two_priorities(&at);
        fs::write(at.join("two_bw.log"), "1, 5, 0, 512, 0\n").unwrap();
        stdout(lat(&[at.to_str().unwrap(), "--save-priolat", "-q"]));
    }
    let csv = stdout(lat(&[
        dir.path().to_str().unwrap(),
        "--format",
        "csv",
        "--head",
    ]));
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(
        lines.len(),
        5,
        "a head, and two priorities of each log: {csv}"
    );
    assert!(lines[0].starts_with("file,class,"), "{csv}");
    assert!(lines[1].contains("cdlsingle/2/two_lat.log,NONE"), "{csv}");
    assert!(lines[3].contains("cdlsingle/16/two_lat.log,NONE"), "{csv}");
    let empty = tempfile::tempdir().unwrap();
    let output = lat(&[empty.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(5));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no latency logs"));
}

/// IOPS, spans and percentiles of raw lines, counted without Fathom.
fn assert_counted(file: &Value, text: &str, unit_ns: u64, origin_ms: u64) {
    let fields = |line: &str| -> Vec<u64> {
        let numbers = line.split(", ").take(3);
        numbers.map(|number| number.parse().unwrap()).collect()
    };
    let lines: Vec<Vec<u64>> = text.lines().map(fields).collect();
    let span_ms = lines.iter().map(|line| line[0]).max().unwrap() - origin_ms;
    assert_eq!(file["runtime_ms"], span_ms);
    let iops = lines.len() as f64 * 1000.0 / span_ms as f64;
    assert_eq!(file["all"]["iops"], iops);
    let mut values: Vec<u64> = lines.iter().map(|line| line[1] * unit_ns).collect();
    values.sort_unstable();
    for (percent, ns) in file["all"]["percentiles_ns"].as_object().unwrap() {
        // The element int(n · p), counted from 1, as awk computes it.
        let fraction: f64 = format!("{percent}e-2").parse().unwrap();
        let element = ((values.len() as f64 * fraction) as usize).max(1);
        assert_eq!(*ns, values[element - 1], "{percent}");
    }
    for interval in file["intervals"].as_array().into_iter().flatten() {
        let [start, end] = ["start_ms", "end_ms"].map(|at| interval[at].as_u64().unwrap());
        let is_last = end == span_ms;
        let within = |line: &&Vec<u64>| {
            let time = line[0] - origin_ms;
            time >= start && (time < end || is_last)
        };
        assert_eq!(interval["all"]["n"], lines.iter().filter(within).count());
    }
}

/// 1000 I/Os in a second, from this time on.
fn second_from(first_ms: u64, last_columns: &str) -> String {
    let line = |n: u64| {
        let value = 100 + n * 7919 % 1009;
        format!("{}, {value}, 0, 4096{last_columns}\n", first_ms + n)
    };
    (0..1000).map(line).collect()
}

fn noted(file: &Value, word: &str) -> bool {
    let notes = file["notes"].as_array().unwrap();
    notes
        .iter()
        .any(|note| note.as_str().unwrap().contains(word))
}

#[test]
fn monotonic_epochs_are_counted_from_the_first_line_and_ramps_from_0() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("boot_lat.log");
    let log = log.to_str().unwrap();
    for (first_ms, is_clock) in [
        (0, false),
        (2_000, false),
        (60_000, false),
        (599_999, false),
        (1_471_754, true),
        (864_000_000, true),
        (1_795_288_900_472, true),
    ] {
        let text = second_from(first_ms, ", 0");
        fs::write(log, &text).unwrap();
        let origin_ms = if is_clock { first_ms } else { 0 };
        let file = document(&[log, "--interval", "300ms"]);
        assert_counted(&file, &text, 1, origin_ms);
        let said = noted(&file, "counted from the first line");
        assert_eq!(said, is_clock, "{first_ms}: {}", file["notes"]);
        if first_ms > 0 {
            let file = document(&[log, "--times-from", "first"]);
            assert_counted(&file, &text, 1, first_ms);
            let file = document(&[log, "--times-from", "zero"]);
            assert_counted(&file, &text, 1, 0);
        }
    }
    // An hour before 40 s may be either: as it stands, and said.
    let text = second_from(3_600_000, ", 0") + "3640000, 5, 0, 4096, 0\n";
    fs::write(log, &text).unwrap();
    let file = document(&[log]);
    assert_counted(&file, &text, 1, 0);
    assert!(noted(&file, "--times-from first"), "{}", file["notes"]);
}

/// fio counts anew behind a ramp and a startdelay; its clocks are told.
#[test]
fn ramps_and_clocks_of_the_real_fio_are_told_apart() {
    let test = "ramps_and_clocks_of_the_real_fio_are_told_apart";
    let rate = ["--rate_iops=500", "--time_based=1", "--runtime=300ms"];
    let clock: &[&str] = &[
        "--log_alternate_epoch=1",
        "--log_alternate_epoch_clock_id=1",
    ];
    let behind: &[&str] = &["--ramp_time=300ms", "--startdelay=300ms"];
    for (options, has_clock) in [(behind, false), (clock, true)] {
        let dir = tempfile::tempdir().unwrap();
        let options = [&rate, options].concat();
        let Some(log) = fio_log(test, dir.path(), &options) else {
            return;
        };
        let text = fs::read_to_string(&log).unwrap();
        let first: u64 = text.split(',').next().unwrap().parse().unwrap();
        assert!(has_clock || first < 1000, "fio counts anew: {first}");
        // A clock of less than 10 min cannot be told from a ramp.
        let origin_ms = if first >= 600_000 { first } else { 0 };
        assert_counted(&document(&[log.to_str().unwrap()]), &text, 1, origin_ms);
    }
}

#[test]
fn logs_of_fio_2_are_in_us() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("old_lat.log");
    let text = second_from(1, "");
    fs::write(&log, &text).unwrap();
    let log = log.to_str().unwrap();
    let file = document(&[log]);
    assert_counted(&file, &text, 1, 0);
    assert!(noted(&file, "if that was fio 2"), "{}", file["notes"]);
    for (unit, unit_ns) in [("us", 1000), ("ns", 1)] {
        let file = document(&[log, "--unit", unit]);
        assert_counted(&file, &text, unit_ns, 0);
        assert_eq!(file["notes"], serde_json::json!([]));
    }
    let beside = dir.path().join("out.json");
    fs::write(&beside, "{\n  \"fio version\" : \"fio-2.16\",\n").unwrap();
    assert!(noted(&document(&[log]), "out.json is of fio-2.16"));
    fs::write(&beside, "{\n  \"fio version\" : \"fio-3.12\",\n").unwrap();
    assert_eq!(document(&[log])["notes"], serde_json::json!([]));
}

#[test]
fn a_file_without_an_end_of_line_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("zeros_lat.log");
    let log = log.to_str().unwrap();
    for bytes in [vec![0; 100_000], vec![b'7'; 70_000], vec![0; 10]] {
        fs::write(log, &bytes).unwrap();
        let output = lat(&[log]);
        assert_eq!(output.status.code(), Some(3));
        assert!(output.stdout.is_empty());
        let said = String::from_utf8(output.stderr).unwrap();
        let wanted = format!("{log} is not a log of fio: no end of line in its first");
        assert!(said.contains(&wanted), "{said}");
    }
}

#[test]
fn standard_input_is_read_as_a_file_is() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("boot_lat.log");
    let text = second_from(1_471_754, ", 0");
    fs::write(&log, &text).unwrap();
    let piped = Command::new(env!("CARGO_BIN_EXE_fathom"))
        .args(["lat", "-", "--json"])
        .stdin(fs::File::open(&log).unwrap())
        .output()
        .unwrap();
    let piped: Value = serde_json::from_str(&stdout(piped)).unwrap();
    let mut piped = piped["files"][0].clone();
    assert_eq!(piped["file"], "stdin");
    assert_counted(&piped, &text, 1, 1_471_754);
    let log = log.to_str().unwrap();
    piped["file"] = log.into();
    assert_eq!(piped, document(&[log]));
    assert_eq!(lat(&["-", "-"]).status.code(), Some(2));
    let output = lat(&["-", "--save-priolat"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("- is no file"));
}

#[test]
fn a_byte_order_mark_does_not_refuse_a_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("marked_lat.log");
    let text = second_from(0, ", 0");
    fs::write(&log, format!("\u{feff}{text}")).unwrap();
    assert_counted(&document(&[log.to_str().unwrap()]), &text, 1, 0);
}

#[test]
fn a_trace_of_blkparse_has_statistics_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("trace.txt");
    let mut text = String::new();
    for n in 0..100u64 {
        let (at, sector) = (n * 10_000_000, n * 8);
        for (ns, action, last) in [(at, "D", "[fio]"), (at + 200_000 + n, "C", "[0]")] {
            let (s, ns) = (ns / 1_000_000_000, ns % 1_000_000_000);
            text += &format!(
                "  8,0    1   {n}     {s}.{ns:09}   697  {action}   R {sector} + 8 {last}\n"
            );
        }
    }
    text += "  8,0    1   0     9.000000000   697  C   R 1 + 8 [0]\n";
    fs::write(&file, text).unwrap();
    let path = file.to_str().unwrap();
    let document = document(&[path]);
    assert_eq!(document["lines"], 100, "{document:#}");
    let notes = document["notes"].to_string();
    assert!(notes.contains("100 requests from their issue"), "{notes}");
    assert!(
        notes.contains("1 completed and issued before the trace"),
        "{notes}"
    );
    let shown = stdout(lat(&[path]));
    assert!(
        shown.contains("100 I/Os (read)") && shown.contains("min=200.000"),
        "{shown}"
    );
}
