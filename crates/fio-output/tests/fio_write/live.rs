//! Runs of the real fio in all formats at once: its text and terse lines,
//! against those written from its json+.

use std::process::Command;

use fathom_fio_output::json;
use fathom_fio_output::stream::select;
use fathom_fio_output::write::{
    FormatFacts, LatencyClasses, OutputFormat, ShownSection, render, render_all,
};
use fathom_model::{JobResult, Results};
use fathom_testkit::{LoopDevice, require, skip};
use jiff::tz::TimeZone;

use crate::fio_write::facts;

/// What every run has.
const COMMON: [&str; 5] = [
    "--size=4m",
    "--time_based",
    "--runtime=1",
    "--allow_file_create=0",
    "--output-format=normal,terse,json+",
];

/// The output of fio, or why there is none.
fn fio(args: &[&str]) -> Result<String, String> {
    let version = Command::new("fio").arg("--version").output();
    let version = version.map_err(|_| "fio is not installed".to_owned())?;
    let version = String::from_utf8(version.stdout).unwrap();
    if version.trim() != "fio-3.33" {
        let version = version.trim();
        return Err(format!("the layout is of fio-3.33, and here is {version}"));
    }
    let dir = tempfile::tempdir().unwrap();
    let file = std::fs::File::create(dir.path().join("f")).unwrap();
    file.set_len(4 << 20).unwrap();
    let output = Command::new("fio").current_dir(&dir).args(args).output();
    Ok(String::from_utf8(output.unwrap().stdout).unwrap())
}

/// fio's text cut by formats, what was read of it, and what was written of that.
struct Run {
    results: Results,
    facts: FormatFacts,
    terse: String,
    normal: String,
}

impl Run {
    fn of(output: &str, terse_version: u8, sections: Vec<ShownSection>) -> Self {
        let mut documents = json::scan(output.as_bytes()).documents;
        assert_eq!(documents.len(), 1, "{output}");
        let document = documents.remove(0);
        let mut results = document.results;
        let mut facts = facts::of(&output[document.raw], TimeZone::system());
        facts.terse_version = terse_version;
        facts.sections = sections;
        let part = |format| String::from_utf8(select(output.as_bytes(), &[format])).unwrap();
        let (terse, normal) = (part(OutputFormat::Terse), part(OutputFormat::Normal));
        // JSON has no processes, sizes of groups, or errors in words.
        let heads = normal.lines().filter(|line| line.contains(": (groupid="));
        for (head, (job, facts)) in heads.zip(results.jobs.iter_mut().zip(&mut facts.jobs)) {
            let behind = |label: &str| head.split_once(label).unwrap().1;
            let number = |text: &str| -> u32 {
                let end = text.find(|c: char| !c.is_ascii_digit()).unwrap();
                text[..end].parse().unwrap()
            };
            facts.pid = number(behind(": pid="));
            job.members = Some(number(behind("jobs=")));
            facts.latency_classes = facts
                .latency_classes
                .take()
                .map(|shown| unrounded(shown, job));
            if job.error != 0 {
                let text = head.split_once(" (file:").unwrap().1;
                let text = text.rsplit_once("): pid=").unwrap().0;
                facts.error_text = format!("file:{text}");
            }
        }
        Self {
            results,
            facts,
            terse,
            normal,
        }
    }

    fn assert_equal(&self) {
        let ours = render(&self.results, &self.facts, OutputFormat::Terse);
        assert_lines(&self.terse, &ours);
        let ours = render(&self.results, &self.facts, OutputFormat::Normal);
        assert_lines(&self.normal, &ours);
    }
}

/// A steady state's bandwidth without that in kB/s: fio prints the number of KiB.
fn without_wrong_kb(line: &str) -> String {
    let is_steady = line.starts_with("  steadystate  :");
    match (line.split_once(" ("), line.split_once("), ")) {
        (Some((before, _)), Some((_, after))) if is_steady => format!("{before}, {after}"),
        _ => line.to_owned(),
    }
}

/// JSON shows at least 0.01 % for a class that holds anything: how little that
/// is, which terse adds up, the histograms tell.
fn unrounded(mut shown: LatencyClasses, job: &JobResult) -> LatencyClasses {
    let counted = LatencyClasses::of(job);
    for (shown, counted) in shown.ns.iter_mut().zip(counted.ns) {
        if *shown == 0.01 {
            *shown = counted;
        }
    }
    shown
}

/// fio asks the clock anew for each format: a second may have begun in between.
fn without_second(line: &str) -> String {
    match line.split_once(" pid=").and(line.rsplit_once(':')) {
        Some((begin, rest)) if rest.len() == "SS YYYY".len() => format!("{begin}{}", &rest[2..]),
        _ => line.to_owned(),
    }
}

fn assert_lines(fio: &str, ours: &str) {
    // Messages are no part of the layout; neither is what disks above others
    // have more (aggr…), which results do not hold.
    let kept = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| !line.starts_with("fio: "));
        let is_disk_of_disks = text.contains("aggr") || text.contains("slaves;");
        let is_disk = |line: &str| line.contains(": ios=") || line.contains(';');
        lines
            .filter(|line| !(is_disk_of_disks && is_disk(line)))
            .map(|line| without_second(&without_wrong_kb(line)))
            .collect()
    };
    let (fio, ours) = (kept(fio), kept(ours));
    for (fio, ours) in fio.iter().zip(&ours) {
        assert!(
            is_same_but_for_rounding(fio, ours),
            "fio writes\n{fio}\nand we\n{ours}"
        );
    }
    assert_eq!(fio.len(), ours.len(), "{fio:#?}\n{ours:#?}");
}

/// Whether two lines have the same text and numbers. The last digit of a
/// decimal may differ by one: JSON has six, and rounding what was rounded
/// already can go the other way.
fn is_same_but_for_rounding(fio: &str, ours: &str) -> bool {
    if fio == ours {
        return true;
    }
    let tokens = |line: &str| -> Vec<String> {
        let mut tokens = vec![String::new()];
        let mut was_number = false;
        for c in line.chars() {
            let is_number = c.is_ascii_digit() || c == '.';
            if is_number != was_number {
                tokens.push(String::new());
                was_number = is_number;
            }
            tokens.last_mut().unwrap().push(c);
        }
        tokens
    };
    let (fio, ours) = (tokens(fio), tokens(ours));
    let is_same = |(fio, ours): (&String, &String)| {
        let decimals = |text: &str| text.split_once('.').map(|(_, rest)| rest.len());
        fio == ours
            || match (fio.parse::<f64>(), ours.parse::<f64>(), decimals(fio)) {
                (Ok(a), Ok(b), Some(digits)) if decimals(ours) == Some(digits) => {
                    (a - b).abs() < 1.5 * 10f64.powi(-i32::try_from(digits).unwrap())
                }
                _ => false,
            }
    };
    fio.len() == ours.len() && fio.iter().zip(&ours).all(is_same)
}

fn section(
    name: &str,
    rw: &str,
    kib: [(u64, u64); 3],
    ioengine: &str,
    iodepth: u32,
) -> ShownSection {
    ShownSection {
        name: name.to_owned(),
        rw: rw.to_owned(),
        block_bytes: kib.map(|(min, max)| (min << 10, max << 10)),
        ioengine: ioengine.to_owned(),
        iodepth,
        numjobs: 1,
        ..ShownSection::default()
    }
}

/// Runs fio and compares in the test's name; the file `f` is there already.
fn compare(test: &str, args: &[&str], terse_version: u8, sections: Vec<ShownSection>) {
    let version = format!("--terse-version={terse_version}");
    let has_file = args.iter().any(|arg| arg.starts_with("--filename="));
    let file: &[&str] = if has_file { &[] } else { &["--filename=f"] };
    let args = [&args[..1], &COMMON, file, &[&version], &args[1..]].concat();
    match fio(&args) {
        Err(reason) => skip(test, &reason),
        Ok(output) => Run::of(&output, terse_version, sections).assert_equal(),
    }
}

#[test]
fn a_mix_with_syncs_is_written_as_fio_does() {
    let args = [
        "--name=mix",
        "--rw=randrw",
        "--bs=4k,8k",
        "--rate_iops=500",
        "--ioengine=libaio",
        "--iodepth=4",
        "--fsync=32",
        "--continue_on_error=all",
        "--description=one; two",
    ];
    let section = section("mix", "randrw", [(4, 4), (8, 8), (8, 8)], "libaio", 4);
    let test = "a_mix_with_syncs_is_written_as_fio_does";
    compare(test, &args, 2, vec![section]);
}

#[test]
fn a_search_for_the_depth_that_keeps_a_latency_is_written_as_fio_does() {
    let args = [
        "--name=kept",
        "--rw=randread",
        "--bs=4k",
        "--rate_iops=500",
        "--ioengine=libaio",
        "--iodepth=8",
        "--latency_target=10s",
        "--latency_window=50ms",
        "--latency_percentile=99.5",
        "--latency_run=1",
    ];
    let section = section("kept", "randread", [(4, 4); 3], "libaio", 8);
    let test = "a_search_for_the_depth_that_keeps_a_latency_is_written_as_fio_does";
    compare(test, &args, 3, vec![section]);
}

#[test]
fn fast_groups_of_threads_are_written_as_fio_does() {
    let args = [
        "--name=a",
        "--rw=read",
        "--bs=4k-128k",
        "--ioengine=null",
        "--thread",
        "--numjobs=2",
        "--group_reporting",
        "--filename=f",
        "--name=b",
        "--rw=write",
        "--bs=64k",
        "--ioengine=null",
        "--filename=f",
        "--size=4m",
        "--time_based",
        "--runtime=1",
        "--new_group",
    ];
    let mut a = section("a", "read", [(4, 128), (4, 128), (4, 128)], "null", 1);
    a.block_bytes[0] = (4096, 4096);
    a.block_bytes[1] = (128 << 10, 128 << 10);
    a.block_bytes[2] = (128 << 10, 128 << 10);
    (a.numjobs, a.is_thread) = (2, true);
    let mut b = section("b", "write", [(64, 64); 3], "null", 1);
    b.group = 1;
    let test = "fast_groups_of_threads_are_written_as_fio_does";
    compare(test, &args, 5, vec![a, b]);
}

#[test]
fn parts_of_a_group_are_written_as_fio_does() {
    let args = [
        "--name=slow",
        "--rw=randread",
        "--rate_iops=17",
        "--filename=f",
        "--name=slower",
        "--rw=randread",
        "--filename=f",
        "--size=4m",
        "--time_based",
        "--runtime=1",
        "--rate_iops=7",
    ];
    let sections = ["slow", "slower"].map(|n| section(n, "randread", [(4, 4); 3], "psync", 1));
    let test = "parts_of_a_group_are_written_as_fio_does";
    compare(test, &args, 3, sections.to_vec());
}

#[test]
fn all_latencies_percentiles_are_written_as_fio_does() {
    let args = [
        "--name=p",
        "--rw=randread",
        "--rate_iops=400",
        "--ioengine=libaio",
        "--iodepth=8",
        "--lat_percentiles=1",
        "--slat_percentiles=1",
        "--percentile_list=0.5:50:99.99:100",
    ];
    let test = "all_latencies_percentiles_are_written_as_fio_does";
    let section = section("p", "randread", [(4, 4); 3], "libaio", 8);
    compare(test, &args, 4, vec![section]);
}

#[test]
fn no_latencies_are_written_as_fio_does() {
    let args = [
        "--name=n",
        "--rw=read",
        "--rate_iops=400",
        "--gtod_reduce=1",
    ];
    let test = "no_latencies_are_written_as_fio_does";
    compare(
        test,
        &args,
        3,
        vec![section("n", "read", [(4, 4); 3], "psync", 1)],
    );
}

#[test]
fn priorities_are_written_as_fio_does() {
    let args = [
        "--name=prio",
        "--rw=randread",
        "--rate_iops=400",
        "--ioengine=libaio",
        "--iodepth=4",
        "--direct=1",
        "--cmdprio_percentage=30",
        "--cmdprio=3",
    ];
    let test = "priorities_are_written_as_fio_does";
    require!(fathom_testkit::root());
    compare(
        test,
        &args,
        5,
        vec![section("prio", "randread", [(4, 4); 3], "libaio", 4)],
    );
}

#[test]
fn an_error_is_written_as_fio_does() {
    // Reads come back, the first write does not.
    let args = ["--name=e", "--rw=randrw", "--filename=/dev/full", "--bs=1k"];
    let test = "an_error_is_written_as_fio_does";
    compare(
        test,
        &args,
        3,
        vec![section("e", "randrw", [(1, 1); 3], "psync", 1)],
    );
}

#[test]
fn a_steady_state_is_written_as_fio_does() {
    let args = [
        "--name=ss",
        "--rw=read",
        "--rate_iops=300",
        "--ss=bw_slope:80%",
        "--ss_dur=2",
        "--runtime=4",
    ];
    let test = "a_steady_state_is_written_as_fio_does";
    compare(
        test,
        &args,
        3,
        vec![section("ss", "read", [(4, 4); 3], "psync", 1)],
    );
}

#[test]
fn all_directions_as_one_are_written_as_fio_does() {
    let args = [
        "--name=u",
        "--rw=randrw",
        "--rate_iops=300",
        "--unified_rw_reporting=1",
    ];
    let test = "all_directions_as_one_are_written_as_fio_does";
    compare(
        test,
        &args,
        4,
        vec![section("u", "randrw", [(4, 4); 3], "psync", 1)],
    );
}

#[test]
fn trims_are_written_as_fio_does() {
    let test = "trims_are_written_as_fio_does";
    let device = require!(LoopDevice::new(8 << 20));
    let file = format!("--filename={}", device.path().display());
    let args = ["--name=t", "--rw=randtrimwrite", &file, "--rate_iops=300"];
    compare(
        test,
        &args,
        4,
        vec![section("t", "randtrimwrite", [(4, 4); 3], "psync", 1)],
    );
}

#[test]
fn a_job_that_cannot_begin_is_written_as_fio_does() {
    let args = ["--name=x", "--filename=nothing", "--rw=read"];
    let args = [&args[..], &COMMON, &["--size=0"]].concat();
    let output = match fio(&args) {
        // fio divides by no I/O for the first latency class of terse.
        Ok(output) => output.replace("-nan%", "0.00%"),
        Err(reason) => {
            return skip("a_job_that_cannot_begin_is_written_as_fio_does", &reason);
        }
    };
    let mut run = Run::of(
        &output,
        3,
        vec![section("x", "read", [(4, 4); 3], "psync", 1)],
    );
    // fio's default of the option: no figure tells of it.
    run.facts.jobs[0].percentiles = vec![
        1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9,
        99.95, 99.99,
    ];
    run.assert_equal();
}

#[test]
fn what_is_kept_of_a_run_is_taken_apart_again() {
    let args = [
        &["--name=k", "--filename=f", "--rw=randrw", "--rate_iops=100"],
        &COMMON[..],
    ]
    .concat();
    let output = require!(fio(&args));
    let sections = vec![section("k", "randrw", [(4, 4); 3], "psync", 1)];
    let run = Run::of(&output, 3, sections);
    let kept = render_all(&run.results, &run.facts);
    let formats = [
        OutputFormat::Normal,
        OutputFormat::Terse,
        OutputFormat::Json,
        OutputFormat::JsonPlus,
    ];
    for format in formats {
        let part = String::from_utf8(select(kept.as_bytes(), &[format])).unwrap();
        assert_eq!(part, render(&run.results, &run.facts, format));
    }
}
