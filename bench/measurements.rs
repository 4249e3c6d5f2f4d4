//! The measurements of runs and their records, one function each.

use std::fs;
use std::process::Command;

use fathom_analysis::steady_state::{SeriesValue, WindowRule, judge};
use fathom_fio_output::json;
use fathom_testkit::Browser;

use crate::results::{Beside, Row};
use crate::timing::{median, peak_rss_kib, take_turns, time_of, wall_ms, which};
use crate::{Lab, inputs};

/// Fathom with its records in the lab's folder.
pub fn fathom(lab: &Lab, args: &[&str]) -> Command {
    let mut command = Command::new(&lab.fathom);
    command.args(["--runs".as_ref(), lab.path("runs").as_os_str()]);
    command.args(args);
    command
}

/// `fathom --version`, beside the shortest program there is.
pub fn start_up(lab: &Lab) -> Row {
    let rounds = lab.rounds(101);
    let mut version = Command::new("fio");
    version.arg("--version");
    let mut own = Command::new(&lab.fathom);
    own.arg("--version");
    let times = take_turns(rounds, &mut [own, Command::new("true"), version]);
    Row {
        what: "start-up of `fathom --version`",
        unit: "ms",
        value: times[0],
        limit: Some(5.0),
        rounds,
        beside: vec![
            Beside::new("`true`", times[1]),
            Beside::new("`fio --version`", times[2]),
        ],
    }
}

/// Wall time of a recorded run beyond the plain fio command.
pub fn cost_per_run(lab: &Lab) -> Row {
    let rounds = lab.rounds(15);
    let job = inputs::one_second(lab);
    let job = job.to_str().unwrap();
    let mut plain = Command::new("fio");
    plain.args(["--output-format=json+", job]);
    // The file is laid out once, outside of what is measured.
    wall_ms(&mut plain);
    let recorded = fathom(lab, &["job", "run", "--quiet", job]);
    let times = take_turns(rounds, &mut [recorded, plain]);
    Row {
        what: "cost of `fathom job run` beyond `fio`",
        unit: "ms",
        value: times[0] - times[1],
        limit: Some(30.0),
        rounds,
        beside: vec![
            Beside::new("`fathom job run`, whole", times[0]),
            Beside::new("`fio`, whole", times[1]),
        ],
    }
}

/// Memory of Fathom and its guard while sixteen jobs run.
pub fn memory(lab: &Lab) -> Row {
    let job = inputs::many_jobs(lab);
    let args = ["job", "run", "--quiet", job.to_str().unwrap()];
    Row {
        what: "peak memory while 16 jobs run",
        unit: "MiB",
        value: peak_rss_kib(&mut fathom(lab, &args)) / 1024.0,
        limit: Some(30.0),
        rounds: 1,
        beside: Vec::new(),
    }
}

/// Reading fio's document of 300 clients, beside what scripts use for it.
pub fn parse_clients(lab: &Lab) -> Row {
    let rounds = lab.rounds(15);
    let path = inputs::clients(lab, if lab.full { 300 } else { 3 });
    let document = fs::read(&path).unwrap();
    let value = time_of(rounds, || {
        let scan = json::scan(&document);
        assert_eq!(scan.documents.len(), 1);
    });
    let mut beside = Vec::new();
    for (name, program, args) in [
        (
            "`python3 -c json.load`",
            "python3",
            ["-c", "import json, sys; json.load(open(sys.argv[1]))"],
        ),
        ("`jq .`", "jq", ["-e", ".client_stats[0].jobname"]),
    ] {
        if which(program).is_some() {
            let mut command = Command::new(program);
            command.args(args).arg(&path);
            beside.push(Beside::new(name, take_turns(rounds, &mut [command])[0]));
        }
    }
    beside.push(Beside::new("size in MB", document.len() as f64 / 1e6));
    Row {
        what: "parsing a 300-client json+ document",
        unit: "ms",
        value,
        limit: Some(30.0),
        rounds,
        beside,
    }
}

/// A month at one sample a second and direction, made once.
fn month(lab: &Lab) -> std::path::PathBuf {
    let runs = lab.path("month");
    if let Some(made) = fs::read_dir(&runs).ok().and_then(|mut runs| runs.next()) {
        return made.unwrap().path();
    }
    let seconds = if lab.full { 30 * 86_400 } else { 60 };
    inputs::long_record(&runs, seconds)
}

fn of_month(lab: &Lab, what: &'static str, limit: f64, args: &[&str]) -> Row {
    let rounds = lab.rounds(5);
    let record = month(lab);
    let bytes = fathom_record::log_bytes(&record);
    let page = lab.path("month.html");
    let command = || {
        let mut command = fathom(lab, args);
        command.arg(&record);
        if args.contains(&"report") {
            command.arg("-o").arg(&page);
        }
        command
    };
    let peak_mib = peak_rss_kib(&mut command()) / 1024.0;
    let mut beside = vec![
        Beside::new("peak memory in MiB", peak_mib),
        Beside::new("size in MB", bytes as f64 / 1e6),
    ];
    let value = take_turns(rounds, &mut [command()])[0];
    if let Ok(page) = fs::metadata(&page) {
        beside.push(Beside::new("page in MB", page.len() as f64 / 1e6));
    }
    Row {
        what,
        unit: "ms",
        value,
        limit: Some(limit),
        rounds,
        beside,
    }
}

/// `fathom show` of a month: from the digest, not from 2.6 million intervals.
pub fn show_month(lab: &Lab) -> Row {
    let what = "`fathom show` of a month, a sample a second";
    of_month(lab, what, 300.0, &["show"])
}

/// `fathom report` of it.
pub fn report_month(lab: &Lab) -> Row {
    let what = "`fathom report` of a month, a sample a second";
    of_month(lab, what, 2000.0, &["report"])
}

/// `fathom show` of a day at one sample a second and direction.
pub fn show_long_record(lab: &Lab) -> Row {
    let rounds = lab.rounds(5);
    let seconds = if lab.full { 86_400 } else { 60 };
    let record = inputs::long_record(&lab.path("runs"), seconds);
    let log = fathom_record::log_bytes(&record);
    let show = fathom(lab, &["show", record.to_str().unwrap()]);
    Row {
        what: "`fathom show` of a day, a sample a second",
        unit: "ms",
        value: take_turns(rounds, &mut [show])[0],
        limit: None,
        rounds,
        beside: vec![Beside::new("size in MB", log as f64 / 1e6)],
    }
}

/// Judging steady state of a day of samples, one a second: three metrics by
/// one rule would be three times that.
pub fn judge_day(lab: &Lab) -> Row {
    let rounds = lab.rounds(15);
    let seconds = if lab.full { 86_400 } else { 600 };
    let value = |second: u64| SeriesValue {
        begin_ms: second * 1000,
        end_ms: second * 1000 + 1000,
        // Never steady: every window has to be looked at.
        value: Some(100_000.0 + 60_000.0 * (second % 7) as f64 + second as f64),
    };
    let day: Vec<SeriesValue> = (0..seconds).map(value).collect();
    let judge_by = |window: usize| {
        let rule = WindowRule::Fio {
            mean_limit_percent: Some(20.0),
            slope_limit_percent: Some(10.0),
            window,
        };
        time_of(rounds, || {
            assert!(!judge(rule, day.iter().copied()).attained);
        })
    };
    let value = judge_by(900);
    let short = judge_by(5);
    let long = judge_by(if lab.full { 21_600 } else { 300 });
    let record = inputs::long_record(&lab.path("runs-steady"), seconds);
    let steady = fathom(lab, &["steady", record.to_str().unwrap()]);
    Row {
        what: "judging steady state of a day, a sample a second, window 15 min",
        unit: "ms",
        value,
        limit: Some(20.0),
        rounds,
        beside: vec![
            Beside::new("window of 5", short),
            Beside::new("window of 6 h", long),
            Beside::new(
                "`fathom steady`, whole",
                take_turns(lab.rounds(5), &mut [steady])[0],
            ),
        ],
    }
}

/// `fathom report` of a million samples, opened in Chromium: from the start of the
/// navigation until the first graph is drawn, as the page's own clock has it.
pub fn open_report(lab: &Lab) -> Row {
    let rounds = lab.rounds(5);
    let seconds = if lab.full { 500_000 } else { 60 };
    let record = inputs::long_record(&lab.path("runs"), seconds);
    let page = lab.path("report.html");
    let (record, file) = (record.to_str().unwrap(), page.to_str().unwrap());
    let made = wall_ms(&mut fathom(lab, &["report", record, "--out", file]));
    let (mut drawn, mut painted) = (Vec::new(), Vec::new());
    let mut why_not = None;
    for _ in 0..rounds {
        match Browser::start() {
            Ok(mut browser) => {
                // High enough that the graph is in view.
                browser.look(1280, 2000, false).unwrap();
                browser.open(&page).unwrap();
                let mark = "performance.getEntriesByName('fathom-drawn')";
                let paint = "performance.getEntriesByName('first-contentful-paint')";
                browser
                    .wait_for(&format!("{mark}.length === 1 && {paint}.length === 1"))
                    .unwrap();
                let mut time = |entry| browser.eval(&format!("{entry}[0].startTime")).unwrap();
                drawn.push(time(mark).as_f64().unwrap());
                painted.push(time(paint).as_f64().unwrap());
            }
            Err(reason) => why_not = Some(reason),
        }
    }
    if let Some(reason) = why_not {
        // A machine without Chromium measures everything else.
        fathom_testkit::skip("open_report", &reason);
        (drawn, painted) = (vec![f64::NAN], vec![f64::NAN]);
    }
    let megabytes = fs::metadata(&page).unwrap().len() as f64 / 1e6;
    Row {
        what: "report of 10⁶ samples in Chromium, until its graph is drawn",
        unit: "ms",
        value: median(&mut drawn),
        limit: Some(2000.0),
        rounds,
        beside: vec![
            Beside::new("first paint", median(&mut painted)),
            Beside::new("`fathom report`", made),
            Beside::new("size in MB", megabytes),
        ],
    }
}
