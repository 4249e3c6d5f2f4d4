//! Results of campaigns: folders of fio-tests imported, shown, exported.
//!
//! The folders in the fixtures are two of a run on an NVMe drive in 2018: fio's
//! own terse lines, what fio-tests took from them (`.res`), and its exit codes.
#![allow(clippy::unwrap_used)] // a test that cannot go on fails

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fathom_analysis::{Curve, SweepOutcome, best};
use fathom_document::sweep::{CampaignRecord, read_sweep};
use fathom_model::Direction;
use serde_json::Value;

const MIX: &str = "0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30";
const TWO_ATTEMPTS: &str = "0001-basic-tests/0005-randwrite-70-30";

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../campaign/tests/fixtures/fio-tests")
}

struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn fathom(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_fathom"))
            .current_dir(self.path())
            .args(args)
            .env_remove("CLICOLOR_FORCE")
            .output()
            .unwrap()
    }

    fn good(&self, args: &[&str]) -> Output {
        let output = self.fathom(args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        output
    }

    fn import(&self, folder: &Path) -> CampaignRecord {
        self.good(&["import", folder.to_str().unwrap()]);
        read_sweep(&self.run()).unwrap()
    }

    /// The one run there is.
    fn run(&self) -> PathBuf {
        let mut runs = fs::read_dir(self.path().join("fathom-runs")).unwrap();
        let run = runs.next().unwrap().unwrap().path();
        assert!(runs.next().is_none());
        run
    }

    /// Files of a test of fio-tests, by their endings.
    fn test(&self, name: &str, files: &[(&str, &str)]) {
        for (ending, text) in files {
            let path = self
                .path()
                .join("tests")
                .join(format!("{name}.ini{ending}"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn tests(&self) -> PathBuf {
        self.path().join("tests")
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn series<'c>(campaign: &'c CampaignRecord, name: &str) -> &'c Curve {
    let mut all = campaign.sweep.series.iter();
    all.find(|series| series.name == name).unwrap()
}

/// A terse line of the fixtures.
fn terse(name: &str) -> String {
    fs::read_to_string(fixtures().join(format!("{name}.ini.out"))).unwrap()
}

fn good_line() -> String {
    terse(&format!("{MIX}/0001-bs4k-1j-1qd-randrw"))
}

#[test]
fn the_figures_of_the_page_of_fio_tests() {
    let place = Place::new();
    let campaign = place.import(&fixtures());
    let series = series(&campaign, MIX);
    assert_eq!((series.x.as_str(), series.points.len()), ("iodepth", 13));
    let best = best(series, Direction::Write);
    let depth = |at: Option<usize>| series.points[at.unwrap()].point.x_value();
    let write = |at: Option<usize>| series.points[at.unwrap()].write.clone().unwrap();
    let mib = |bytes: f64| bytes / f64::from(1 << 20);
    assert_eq!(
        (depth(best.bandwidth), depth(best.iops)),
        (Some(512), Some(512))
    );
    let fastest = write(best.bandwidth);
    assert_eq!(mib(fastest.bw_bytes.mean).floor(), 402.0);
    let clat_ms = fastest.clat_mean_ns.unwrap().mean / 1e6;
    assert_eq!(format!("{clat_ms:.4}"), "0.1720");
    assert_eq!(depth(best.latency), Some(4));
    assert_eq!(mib(write(best.latency).bw_bytes.mean).floor(), 47.0);
}

#[test]
fn exported_columns_are_what_fio_tests_took_from_the_outputs() {
    let place = Place::new();
    place.import(&fixtures());
    place.good(&["export", "ssv"]);
    place.good(&["export", "csv"]);
    let exports = place.run().join("exports");
    let mut compared = 0;
    for name in [MIX, TWO_ATTEMPTS] {
        let mut expected: Vec<(u64, String)> = Vec::new();
        for entry in fs::read_dir(fixtures().join(name)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "res") {
                let name = path.file_name().unwrap().to_str().unwrap();
                let depth = name.split('-').find_map(|part| part.strip_suffix("qd"));
                let res = fs::read_to_string(&path).unwrap();
                expected.push((depth.unwrap().parse().unwrap(), res.trim().to_owned()));
            }
        }
        expected.sort();
        compared += expected.len();
        let rows = expected
            .iter()
            .map(|(depth, res)| format!("{depth},{res}\n"));
        let rows: String = rows.collect();
        let ssv = fs::read_to_string(exports.join(format!("{name}.ssv"))).unwrap();
        assert_eq!(ssv, rows.replace(',', " "));
        let csv = fs::read_to_string(exports.join(format!("{name}.csv"))).unwrap();
        let header = "IO depth,Read IO throughput (KiB/s),Read IOPS,Read completion latency,\
             Write IO throughput (KiB/s),Write IOPS,Write completion latency,Verdict";
        let (first, csv) = csv.split_once('\n').unwrap();
        assert_eq!(first, header);
        // Behind the columns of fio-tests stands Fathom's own.
        let figures = csv.lines().map(|line| {
            let (figures, verdict) = line.rsplit_once(',').unwrap();
            assert!(["valid", "suspect", "invalid"].contains(&verdict), "{line}");
            format!("{figures}\n")
        });
        assert_eq!(figures.collect::<String>(), rows);
    }
    assert_eq!(compared, 26);
    assert!(!exports.join("failures.csv").exists());
}

#[test]
fn of_two_attempts_the_output_decides() {
    let place = Place::new();
    let campaign = place.import(&fixtures());
    let points = &series(&campaign, TWO_ATTEMPTS).points;
    assert!(
        points
            .iter()
            .all(|point| point.outcome == SweepOutcome::Done)
    );
    let notes = campaign.run.notes.join("\n");
    assert!(
        notes.contains("7 tests") && notes.contains("two attempts"),
        "{notes}"
    );
    assert_eq!(campaign.engines, ["fio-3.1"]);
}

#[test]
fn a_part_of_the_tree_has_the_same_names() {
    let whole = Place::new();
    let whole = whole.import(&fixtures());
    let part = Place::new();
    let part = part.import(&fixtures().join(MIX));
    assert_eq!(part.sweep.series, [series(&whole, MIX).clone()]);
}

#[test]
fn options_come_from_the_job_file_where_it_is_there() {
    let place = Place::new();
    let ini = "[global]\nbs=4k\nblocksize=16k\niodepth=8\nnumjobs=2\nfilename=/dev/null\n\
               iodepth_batch_submit=64\n[r]\nrw=randrw\nrwmixread=70\n";
    let line = good_line();
    let name = "0003-maxiobatch-single-job/0005-maxiobatch-randwrite-70-30/0001-bs4k-1j-1qd-randrw";
    place.test(name, &[("", ini), (".out", &line), (".OK", "0\n")]);
    let campaign = place.import(&place.tests());
    let point = &campaign.sweep.series[0].points[0].point;
    assert_eq!(point.id, name);
    let setting = |option: &str| point.settings.get(option).map(String::as_str);
    let options = [
        "bs",
        "iodepth",
        "numjobs",
        "iodepth_batch_submit",
        "rwmixread",
    ];
    let expected = ["16k", "8", "2", "64", "70"].map(Some);
    assert_eq!(options.map(setting), expected);
    assert!(
        place
            .run()
            .join("jobs")
            .join(format!("{name}.ini"))
            .exists()
    );
    assert!(
        place
            .run()
            .join("raw")
            .join(format!("{name}.ini.out"))
            .exists()
    );
}

#[test]
fn ranges_of_jobs_in_folders_of_one_depth_or_batch() {
    let place = Place::new();
    let line = good_line();
    let folder = "0002-iobatch/0004-iobatch-randread/0001-32iobs-randread";
    for (number, jobs) in [(1, 1), (2, 2), (3, 64)] {
        let name = format!("{folder}/000{number}-bs4k-{jobs}j-128qd-randread");
        place.test(&name, &[(".out", &line), (".res", "x")]);
    }
    let campaign = place.import(&place.tests());
    let series = series(&campaign, folder);
    assert_eq!(series.x, "numjobs");
    let x: Vec<_> = series.points.iter().map(|p| p.point.x_value()).collect();
    assert_eq!(x, [Some(1), Some(2), Some(64)]);
    let batch = &series.points[0].point.settings["iodepth_batch_submit"];
    assert_eq!(batch, "32");
    place.good(&["export", "csv"]);
    let csv = place.run().join("exports").join(format!("{folder}.csv"));
    assert!(
        fs::read_to_string(csv)
            .unwrap()
            .starts_with("Threads,Read IO throughput (KiB/s),Read IOPS,")
    );
}

/// What fio 3.33 leaves when fs.aio-max-nr is exceeded: a message, and a line
/// of zeros with the errno.
fn aio_limit() -> String {
    let idle = good_line();
    let mut fields: Vec<&str> = idle.trim().split(';').collect();
    fields[4] = "11";
    for field in [5, 6, 7, 8, 46, 47, 48, 49] {
        fields[field] = "0";
    }
    format!(
        "fio: pid=7, err=11/file:engines/libaio.c:425, func=io_queue_init, error=Resource temporarily unavailable\n{}\n",
        fields.join(";")
    )
}

/// A range of jobs: two good points; one that met fs.aio-max-nr, one that fio
/// said to be bad although its figures look good, one without a report; one
/// that was only pretended to run, one that never ran.
fn jobs_that_fail(place: &Place) {
    let line = good_line();
    let name = |n: u32, jobs: u32| {
        format!(
            "0004-maxiobatch-jobs/0004-maxiobatch-randread/0004-2048qd-randread/000{n}-bs4k-{jobs}j-2048qd-randread"
        )
    };
    place.test(&name(1, 1), &[(".out", &line), (".res", "x"), (".OK", "0")]);
    place.test(
        &name(2, 2),
        &[
            (".out", &aio_limit()),
            (".res", "0,0,0.0,0,0,0.0"),
            (".BAD", "1"),
        ],
    );
    // The figures look good, but fio said that they are not.
    place.test(&name(3, 4), &[(".out", &line), (".BAD", "3")]);
    place.test(
        &name(4, 8),
        &[(".out", ""), (".res", ",,,,,"), (".BAD", "1")],
    );
    place.test(
        &name(5, 16),
        &[
            (".out", "This test never ran -- dry-run\n"),
            (".res", "0,0,0,0,0,0"),
            (".OK", "0"),
        ],
    );
    place.test(
        &name(6, 32),
        &[("", "[r]\nrw=randread\niodepth=2048\nnumjobs=32\n")],
    );
    place.test(&name(7, 64), &[(".out", &line), (".OK", "0")]);
}

#[test]
fn failed_points_have_a_reason() {
    let place = Place::new();
    jobs_that_fail(&place);
    let campaign = place.import(&place.tests());
    let outcomes: Vec<_> = campaign.sweep.series[0]
        .points
        .iter()
        .map(|p| &p.outcome)
        .collect();
    assert_eq!(
        [outcomes[0], outcomes[6]],
        [&SweepOutcome::Done, &SweepOutcome::Done]
    );
    let reason = |at: usize| match outcomes[at] {
        SweepOutcome::Failed(reasons) => reasons.join("; "),
        SweepOutcome::Skipped(reason) => format!("skipped: {reason}"),
        other => panic!("{other:?}"),
    };
    assert!(reason(1).contains("fs.aio-max-nr"), "{}", reason(1));
    assert_eq!(reason(2), "fio ended with exit code 3");
    assert!(reason(3).contains("empty"), "{}", reason(3));
    assert!(
        reason(4).starts_with("skipped: ") && reason(4).contains("dry run"),
        "{}",
        reason(4)
    );
    assert!(reason(5).starts_with("skipped: "), "{}", reason(5));

    let shown = stdout(&place.good(&["show"]));
    for text in [
        "7 in 1 series: 2 done, 3 failed, 2 left out",
        "fs.aio-max-nr",
        "to do: raise the limit",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
}

#[test]
fn failed_points_are_listed_and_never_exported() {
    let place = Place::new();
    jobs_that_fail(&place);
    let campaign = place.import(&place.tests());
    let output = place.good(&["export", "ssv"]);
    for n in 2..=6 {
        assert!(
            stderr(&output).contains(&format!("/000{n}-")),
            "{}",
            stderr(&output)
        );
    }
    let exports = place.run().join("exports");
    let ssv = exports.join(format!("{}.ssv", campaign.sweep.series[0].name));
    let ssv = fs::read_to_string(ssv).unwrap();
    let jobs: Vec<&str> = ssv
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(jobs, ["1", "64"]);
    let list = fs::read_to_string(exports.join("failures.csv")).unwrap();
    assert_eq!(list.lines().count(), 6);
    assert!(list.contains(",failed,") && list.contains(",skipped,"));

    let document = place.good(&["export", "json", "--out", "-"]);
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!(document["schema"], "fathom.export/1");
    assert_eq!(document["series"][0]["points"].as_array().unwrap().len(), 2);
    assert_eq!(
        document["series"][0]["left_out"].as_array().unwrap().len(),
        5
    );
}

#[test]
fn without_an_output_its_six_figures_are_used() {
    let place = Place::new();
    for (n, depth, res) in [
        (1, 1, "100,25,10.5,0,0,0.000000"),
        (2, 2, "200,50,20.25,0,0,0.000000"),
    ] {
        let name = format!("0001-basic-tests/0004-randread/000{n}-bs4k-1j-{depth}qd-randread");
        place.test(&name, &[(".res", res), (".OK", "0")]);
    }
    let campaign = place.import(&place.tests());
    let notes = campaign.run.notes.join("\n");
    assert!(
        notes.contains("2 tests") && notes.contains("all that is known"),
        "{notes}"
    );
    let only = ["export", "ssv", "--only", "randread", "--out", "-"];
    let expected = "1 100 25 10.500000 0 0 0.000000\n2 200 50 20.250000 0 0 0.000000\n";
    assert_eq!(stdout(&place.good(&only)), expected);
}

#[test]
fn rounds_and_pre_conditioning_are_kept_as_steps() {
    let place = Place::new();
    let json = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fio-output/tests/fixtures/rw.json");
    let json = fs::read_to_string(json).unwrap();
    place.test(
        "0001-basic-tests/0004-randread/0001-bs4k-1j-1qd-randread",
        &[(".out", &good_line()), (".OK", "0")],
    );
    place.test(
        "pre-conditioning/snia/0001-iops/0002-read/0001-bs4k-4j-32qd-read",
        &[(".json", &json), (".OK", "0")],
    );
    let campaign = place.import(&place.tests());
    let ids: Vec<_> = campaign
        .sweep
        .series
        .iter()
        .flat_map(|s| &s.points)
        .map(|p| p.point.id.as_str())
        .collect();
    assert_eq!(
        ids,
        ["0001-basic-tests/0004-randread/0001-bs4k-1j-1qd-randread"]
    );
    let steps: Vec<_> = campaign
        .run
        .jobs
        .iter()
        .filter_map(|job| job.step.as_deref())
        .collect();
    assert!(
        steps
            .iter()
            .all(|step| step.starts_with("pre-conditioning/snia/"))
            && !steps.is_empty(),
        "{steps:?}"
    );
}

#[test]
fn states_reported_meanwhile_count_once() {
    let place = Place::new();
    let last = good_line();
    let mut fields: Vec<String> = last.trim().split(';').map(str::to_owned).collect();
    for at in [5, 46] {
        let half = fields[at].parse::<u64>().unwrap() / 2;
        fields[at] = half.to_string();
    }
    for at in [8, 49] {
        fields[at] = "120000".to_owned();
    }
    let text = format!("{}\n{last}", fields.join(";"));
    place.test(
        "0003-x/0001-y/0001-bs4k-1j-1qd-randrw",
        &[(".out", &text), (".OK", "0")],
    );
    let campaign = place.import(&place.tests());
    let read = campaign.sweep.series[0].points[0].read.clone().unwrap();
    assert_eq!(read.iops.mean, 7809.0);
}

#[test]
fn folders_that_hold_nothing_are_refused() {
    let place = Place::new();
    place.test(
        "0001-basic-tests/0004-randread/0001-bs4k-1j-1qd-randread",
        &[
            (".out", "This test never ran -- dry-run\n"),
            (".res", "0,0,0,0,0,0"),
            (".OK", "0"),
        ],
    );
    let tests = place.tests();
    let output = place.fathom(&["import", tests.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("none with results"),
        "{}",
        stderr(&output)
    );
    let fixtures = fixtures();
    let output = place.fathom(&["import", fixtures.to_str().unwrap(), "other.json"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("by themselves"),
        "{}",
        stderr(&output)
    );
    assert!(!place.path().join("fathom-runs").exists());
}

#[test]
fn tables_fit_the_terminal_and_mark_the_best() {
    let place = Place::new();
    place.import(&fixtures());
    let shown = stdout(&place.good(&["show", "--color=never"]));
    let line = shown
        .lines()
        .find(|line| line.contains("402 MiB/s*"))
        .unwrap();
    assert!(line.contains("103k*"), "{line}");
    assert!(shown.contains("* best of its series"));
    assert!(
        shown.contains("rw=randrw rwmixread=70 bs=4k numjobs=1"),
        "{shown}"
    );
    let document = place.good(&["show", "--json"]);
    let document: Value = serde_json::from_slice(&document.stdout).unwrap();
    assert_eq!(document["jobs"].as_array().unwrap().len(), 26);
}

#[test]
fn what_is_no_campaign_cannot_be_exported() {
    let place = Place::new();
    let json = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fio-output/tests/fixtures/rw.json");
    place.good(&["import", json.to_str().unwrap()]);
    let output = place.fathom(&["export", "csv"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(
        stderr(&output).contains("is no campaign"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_demo_is_unpacked_drawn_and_has_its_knee() {
    let place = Place::new();
    let output = place.good(&["demo"]);
    assert!(stdout(&output).contains("cd fathom-demo"));
    let runs = place.path().join("fathom-demo/fathom-runs");
    let run = fs::read_dir(&runs).unwrap().next().unwrap().unwrap().path();
    let graphs = run.join("graphs/0001-basic-tests/0004-randread-iopsr.svg");
    assert!(graphs.exists(), "{}", graphs.display());
    assert!(run.join("report.html").exists());

    let campaign = read_sweep(&run).unwrap();
    assert_eq!(campaign.header.command, "run");
    let reads = series(&campaign, "0001-basic-tests/0004-randread");
    assert_eq!(reads.points.len(), 8);
    for point in &reads.points {
        assert_eq!(point.outcome, SweepOutcome::Done);
        let iops = point.read.as_ref().unwrap().iops;
        // The kernel held the device to this many; it counts in slices of time.
        assert!(iops.n == 3 && iops.mean < 16_000.0 * 1.1, "{iops:?}");
    }
    let best = best(reads, Direction::Read);
    let fastest = reads.points[best.iops.unwrap()].read.as_ref().unwrap();
    assert!(fastest.iops.mean > 16_000.0 * 0.9);

    let again = place.fathom(&["demo"]);
    assert_eq!(again.status.code(), Some(3));
    assert!(stderr(&again).contains("is there already"));
}

/// What stands behind a damaged line is missing, and it is said.
#[test]
fn an_export_of_a_damaged_record_says_that_it_is_not_whole() {
    let place = Place::new();
    place.good(&["demo"]);
    let runs = place.path().join("fathom-demo/fathom-runs");
    let mut logs = std::fs::read_dir(&runs).unwrap();
    let log = logs.next().unwrap().unwrap().path().join("events.jsonl");
    let text = std::fs::read_to_string(&log).unwrap();
    let half = text[text.len() / 2..].find('\n').unwrap() + text.len() / 2 + 1;
    std::fs::write(&log, [&text[..half], "\0", &text[half + 1..]].concat()).unwrap();
    let runs = runs.to_str().unwrap();
    for args in [&["export", "csv"][..], &["graph"]] {
        let output = place.fathom(&[&["--runs", runs], args].concat());
        assert!(output.status.success(), "{output:?}");
        assert!(
            stderr(&output).contains(": damaged: "),
            "{args:?}: {output:?}"
        );
    }
}
