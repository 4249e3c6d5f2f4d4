//! The figures of a run, made from what the real fio wrote.

use std::path::Path;
use std::process::Command;

use fathom_fio_output::json;
use fathom_model::{Direction, Event, JobResult, ReasonKind, RunDocument, RunStatus};
use fathom_record::{Header, Writer};
use fathom_testkit::{SmallFs, program, require, skip};

/// Runs fio in `dir`; gives the document of its figures and its text for people.
fn run(fio: &Path, dir: &Path, args: &[&str]) -> (RunDocument, String) {
    let output = Command::new(fio)
        .args(["--output-format=json,normal", "--eta=never"])
        .args(args)
        .current_dir(dir)
        .output()
        .unwrap();
    let mut scan = json::scan(&output.stdout);
    let document = scan.documents.pop().expect("fio writes a document");
    let runs = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(runs.path(), &Header::new("r", "job run")).unwrap();
    let results = Box::new(document.results);
    writer.append(&Event::Finished { results }).unwrap();
    let record = writer.finish(RunStatus::Complete).unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (fathom_document::read(&record).unwrap(), text)
}

/// The numbers before and after the dash of `run=1000-1001msec`.
fn times(line: &str) -> (u64, u64) {
    let range = line.rsplit_once("run=").unwrap().1;
    let (least, most) = range.trim_end_matches("msec").split_once('-').unwrap();
    (least.parse().unwrap(), most.parse().unwrap())
}

/// The three rates in bytes per second of `(aggregate), min-max (min-max), io=`:
/// those in brackets, which are decimal.
fn rates(line: &str) -> [f64; 3] {
    let brackets = line
        .split('(')
        .skip(1)
        .map(|part| part.split_once(')').unwrap().0);
    let mut found = brackets
        .filter(|text| text.contains("/s"))
        .flat_map(|text| text.split('-'));
    [(); 3].map(|()| {
        let text = found.next().unwrap().strip_suffix("B/s").unwrap();
        let digits = text.trim_end_matches(|c: char| c.is_alphabetic());
        let scale = match &text[digits.len()..] {
            "" => 1.0,
            "k" => 1e3,
            "M" => 1e6,
            _ => 1e9,
        };
        digits.parse::<f64>().unwrap() * scale
    })
}

#[test]
fn groups_are_those_of_fios_own_group_lines() {
    let fio = require!(program("fio"));
    let dir = tempfile::tempdir().unwrap();
    let job = "--name=global --size=4m --bs=4k --ioengine=psync \
               --name=reads --rw=randread --runtime=1 --time_based --rate_iops=1000 \
               --name=both --rw=randrw --runtime=1 --time_based --rate_iops=300 --numjobs=2 \
               --name=later --stonewall --rw=write";
    let args: Vec<&str> = job.split_whitespace().collect();
    let (doc, text) = run(&fio, dir.path(), &args);
    let groups = &doc.groups;
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" run=")).collect();
    let kinds: Vec<_> = groups
        .iter()
        .map(|group| (group.group, group.dir))
        .collect();
    assert_eq!(
        kinds,
        [
            (0, Direction::Read),
            (0, Direction::Write),
            (1, Direction::Write)
        ]
    );
    assert_eq!(lines.len(), 3, "{text}");
    for (group, line) in groups.iter().zip(lines) {
        assert!(
            line.trim_start()
                .to_lowercase()
                .starts_with(group.dir.name()),
            "{line}"
        );
        assert_eq!((group.runtime_ms_min, group.runtime_ms_max), times(line));
        // fio prints three or four digits of its rates.
        let ours = [group.bw_bytes, group.bw_bytes_min, group.bw_bytes_max];
        for (ours, fios) in ours.into_iter().zip(rates(line)) {
            assert!(
                (ours / fios - 1.0).abs() < 0.01,
                "{ours} is not {fios} of {line}"
            );
        }
    }
}

#[test]
fn reads_that_only_the_page_cache_served_are_marked() {
    let name = "reads_that_only_the_page_cache_served_are_marked";
    let (fio, fs) = match (program("fio"), SmallFs::new(64 << 20, "")) {
        (Ok(fio), Ok(fs)) => (fio, fs),
        (Err(reason), _) | (_, Err(reason)) => return skip(name, &reason),
    };
    let doubts = |args: &[&str]| {
        let common = [
            "--name=r",
            "--filename=f",
            "--size=16m",
            "--bs=4k",
            "--ioengine=psync",
        ];
        let (doc, _) = run(&fio, fs.path(), &[&common[..], args].concat());
        let job: &JobResult = &doc.jobs[0];
        // fio has no figures of disks for a shorter run.
        if job.runtime_ms >= Some(1000) {
            assert_eq!(doc.disks.len(), 1, "the loop device under the file");
        }
        // How fast this machine is is not the question.
        let asked = |doubt: &ReasonKind| {
            matches!(doubt, ReasonKind::CachedReads | ReasonKind::UnsyncedWrites)
        };
        let all = job.directions().flat_map(|(_, result)| result.kinds());
        all.filter(asked).collect::<Vec<ReasonKind>>()
    };
    assert_eq!(doubts(&["--rw=write"]), [ReasonKind::UnsyncedWrites]);
    assert_eq!(doubts(&["--rw=write", "--end_fsync=1"]), []);
    // A second, so that there are figures of the disk.
    let reads = |options: &[&str]| {
        let second = ["--rw=randread", "--time_based", "--runtime=1100ms"];
        doubts(&[&second[..], options].concat())
    };
    assert_eq!(reads(&["--invalidate=0"]), [ReasonKind::CachedReads]);
    assert_eq!(reads(&["--direct=1"]), []);
    assert_eq!(
        reads(&["--invalidate=0", "--rw=read"]),
        [ReasonKind::CachedReads]
    );
}
