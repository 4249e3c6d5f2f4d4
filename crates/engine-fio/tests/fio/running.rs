//! Runs that go well, are stopped, or are asked for their state.

use std::ops::ControlFlow;
use std::process::Command;
use std::time::Duration;

use fathom_engine::{Control, Outcome, Request};
use fathom_fio_output::stream::{OutputFormat, select};
use fathom_model::{Direction, Event, FailureKind, Histogram};

use crate::fio::bench::Bench;

const TIMED: &str = "[global]\nsize=4m\ntime_based\nrate_iops=2000\nfilename=data\n";

#[test]
fn the_samples_add_up_to_the_report() {
    let bench = Bench::new();
    let told = bench.run(&format!(
        "{TIMED}runtime=1\n[r]\nrw=randread\n[w]\nrw=randwrite\nfilename=other\n"
    ));
    assert_eq!(told.outcome, Outcome::Complete, "{:?}", told.failures());
    let results = told.results().expect("fio reports at its end");
    let names: Vec<_> = results.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["r", "w"]);
    for (place, dir) in [(0, Direction::Read), (1, Direction::Write)] {
        let (_, whole) = results.jobs[place]
            .directions()
            .find(|(d, _)| *d == dir)
            .unwrap();
        let mut ios = 0;
        let mut clat = Histogram::new();
        for sample in told.samples().filter(|s| s.job as usize == place) {
            assert_eq!(sample.dir, dir);
            ios += sample.ios;
            clat.merge(sample.clat.as_ref().unwrap());
        }
        assert!(ios > 0);
        assert_eq!(ios, whole.total_ios);
        assert_eq!(
            &clat,
            whole.clat.as_ref().unwrap().histogram.as_ref().unwrap()
        );
    }
    let intervals = told
        .events
        .iter()
        .filter(|e| matches!(e, Event::Interval { .. }))
        .count();
    assert!(intervals > 0);
}

#[test]
fn a_job_shorter_than_an_interval_has_its_samples() {
    let bench = Bench::new();
    let told = bench.run("[short]\nrw=read\nsize=64k\nbs=4k\n");
    assert_eq!(told.outcome, Outcome::Complete, "{:?}", told.failures());
    assert_eq!(told.samples().map(|s| s.ios).sum::<u64>(), 16);
    assert!(
        told.events
            .iter()
            .any(|e| matches!(e, Event::Preparing { .. })),
        "it laid out a file"
    );
}

#[test]
fn a_ramp_gives_no_samples_and_a_job_that_waits_none_either() {
    let bench = Bench::new();
    let told = bench.run(&format!(
        "{TIMED}rw=randread\n[ramp]\nramp_time=2\nruntime=3\n[late]\nstonewall\nruntime=500ms\n"
    ));
    assert_eq!(told.outcome, Outcome::Complete, "{:?}", told.failures());
    let results = told.results().unwrap();
    for (place, job) in results.jobs.iter().enumerate() {
        let ios: u64 = told
            .samples()
            .filter(|s| s.job as usize == place)
            .map(|s| s.ios)
            .sum();
        assert_eq!(ios, job.read.as_ref().unwrap().total_ios, "{}", job.name);
    }
    let ramp = Event::Preparing {
        what: "ramp of ramp".into(),
    };
    assert!(told.events.contains(&ramp));
}

#[test]
fn a_stop_ends_fio_and_keeps_the_figures() {
    let bench = Bench::new();
    let control = Control::default();
    let request = bench.request(&format!("{TIMED}runtime=60\n[a]\nrw=randread\nnumjobs=2\n"));
    let told = bench.run_with(&request, &control, &mut |event| {
        if matches!(event, Event::Interval { .. }) && control.stop_requests() == 0 {
            control.stop();
        }
        ControlFlow::Continue(())
    });
    assert_eq!(told.outcome, Outcome::Interrupted);
    assert!(told.failures().is_empty(), "{:?}", told.failures());
    assert_eq!(
        told.results().expect("fio reports what it has").jobs.len(),
        2
    );
}

#[test]
fn a_second_stop_kills_forked_jobs_too() {
    let bench = Bench::new();
    let control = Control::default();
    let request = bench.request(&format!("{TIMED}runtime=60\n[a]\nrw=randread\nnumjobs=4\n"));
    let told = bench.run_with(&request, &control, &mut |event| {
        if matches!(event, Event::Interval { .. }) {
            control.stop();
            control.stop();
        }
        ControlFlow::Continue(())
    });
    assert_eq!(told.outcome, Outcome::Interrupted);
    let job_file = request.job_file.to_str().unwrap();
    let pgrep = Command::new("pgrep")
        .args(["-f", job_file])
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8_lossy(&pgrep.stdout),
        "",
        "processes of fio are left"
    );
}

#[test]
fn a_sink_that_is_full_stops_the_run() {
    let bench = Bench::new();
    let request = bench.request(&format!("{TIMED}runtime=60\n[a]\nrw=randread\n"));
    let told = bench.run_with(&request, &Control::default(), &mut |event| match event {
        Event::Interval { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    assert_eq!(told.outcome, Outcome::Interrupted);
}

#[test]
fn a_time_limit_stops_the_run_and_says_so() {
    let bench = Bench::new();
    let mut request = bench.request(&format!("{TIMED}runtime=600\n[a]\nrw=randread\n"));
    // Time enough for fio to begin.
    request.deadline = Some(Duration::from_secs(5));
    let told = bench.run_with(&request, &Control::default(), &mut |_| {
        ControlFlow::Continue(())
    });
    told.failure(FailureKind::TimeLimit);
    assert!(told.results().is_some());
}

#[test]
fn a_status_is_given_while_the_run_goes_on() {
    let bench = Bench::new();
    let control = Control::default();
    // Asked at once: fio would die of the signal before it is ready for it.
    control.request_status();
    let (mut statuses, mut after) = (0, 0);
    let told = bench.run_with(&endless(&bench), &control, &mut |event| {
        statuses += usize::from(matches!(event, Event::Status { .. }));
        after += usize::from(statuses > 0 && matches!(event, Event::Interval { .. }));
        stop_if(after >= 3)
    });
    assert_eq!(told.outcome, Outcome::Interrupted, "{:?}", told.failures());
    // Where fio's own reports come late, the next is soon behind and looks like one that
    // somebody asked fio for.
    assert!(statuses >= 1);
}

#[test]
fn a_status_that_fio_itself_was_asked_for_is_told() {
    let bench = Bench::new();
    let (mut pid, mut is_asked) = (None, false);
    let told = bench.run_with(&endless(&bench), &Control::default(), &mut |event| {
        pid = pid.or(crate::fio::bench::pid_of(event));
        if let (Event::Interval { .. }, Some(pid), false) = (event, pid, is_asked) {
            is_asked = true;
            let kill = Command::new("kill")
                .args(["-USR1", &pid.to_string()])
                .status();
            assert!(kill.unwrap().success());
        }
        stop_if(matches!(event, Event::Status { .. }))
    });
    assert_eq!(told.outcome, Outcome::Interrupted, "{:?}", told.failures());
    let is_status = |event: &Event| matches!(event, Event::Status { .. });
    assert!(told.events.iter().any(is_status));
}

/// A run that is ended by what it tells.
fn endless(bench: &Bench) -> Request {
    let mut request = bench.request(&format!("{TIMED}runtime=600\n[a]\nrw=randread\n"));
    request.interval = Duration::from_secs(1);
    request
}

fn stop_if(enough: bool) -> ControlFlow<()> {
    if enough {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

#[test]
fn what_is_kept_is_what_fio_writes() {
    let bench = Bench::new();
    let job = "[a]\nrw=randrw\nsize=256k\n[b]\nrw=trimwrite\nsize=64k\nioengine=null\nclat_percentiles=0\n";
    let told = bench.run(job);
    assert_eq!(told.outcome, Outcome::Complete, "{:?}", told.failures());
    let kept = bench.raw("fio.out");
    let formats = [
        ("normal", OutputFormat::Normal),
        ("terse", OutputFormat::Terse),
        ("json", OutputFormat::Json),
        ("json+", OutputFormat::JsonPlus),
    ];
    for (name, format) in formats {
        let plain = Command::new("fio")
            .arg(format!("--output-format={name}"))
            .arg("test.fio")
            .current_dir(bench.path())
            .output()
            .unwrap();
        let ours = shape(&select(kept.as_bytes(), &[format]), name);
        let theirs = shape(&plain.stdout, name);
        assert_eq!(ours, theirs, "{name}");
    }
}

/// A text without what differs from run to run: numbers and dates, the lines
/// that only one kind of disk or a busy machine has, histogram bins.
fn shape(text: &[u8], format: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut in_bins = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        let varies = match format {
            "normal" => {
                line.contains("Laying out")
                    || line.trim_start().starts_with("lat (")
                    || line.starts_with("   bw (")
                    || line.starts_with("   iops ")
                    || line.contains("ios=")
                    || line.starts_with("     |")
                    || line.starts_with("    clat")
            }
            "json+" if in_bins => {
                in_bins = !line.trim().starts_with('}');
                in_bins
            }
            _ => false,
        };
        in_bins |= line.contains("\"bins\" : {");
        if varies {
            continue;
        }
        let words = line.split_whitespace().map(|word| {
            if word.chars().any(|c| c.is_ascii_digit()) {
                "#"
            } else {
                word
            }
        });
        let mut words: Vec<&str> = if format == "terse" {
            line.split(';').map(|_| "#").collect()
        } else {
            words.collect()
        };
        if line.contains("\"time\" : ") || line.contains("err=") {
            words.truncate(3);
        }
        lines.push(words.join(" "));
    }
    lines
}
