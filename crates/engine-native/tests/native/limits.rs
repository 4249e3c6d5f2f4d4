//! Jobs that hold each other back, fail by a limit, or take others with them: as fio.

use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use fathom_engine::{Control, Engine, Outcome, Request, Sink};
use fathom_engine_native::Native;
use fathom_fio_output::json;
use fathom_jobfile::table::{ValueKind, table};
use fathom_model::{Event, Failure, Results};
use fathom_testkit::{require, skip, stat_fields};

use crate::native::{Seen, folder, request, run, try_run};

/// What fio finds; `None` where it is not installed.
fn fio(dir: &Path, text: &str) -> Option<Results> {
    std::fs::write(dir.join("fio.fio"), text).unwrap();
    let mut fio = Command::new("fio");
    let output = fio
        .args(["--output-format=json", "fio.fio"])
        .current_dir(dir)
        .output()
        .ok()?;
    Some(json::scan(&output.stdout).documents.remove(0).results)
}

/// Both engines on a job file, native first, however they end.
fn both(text: &str) -> Option<[Results; 2]> {
    let (ours, theirs) = (folder(), folder());
    let found = fio(theirs.path(), text)?;
    let mut seen = Seen::default();
    try_run(ours.path(), text, &mut seen).unwrap();
    Some([seen.results().clone(), found])
}

fn reads(results: &Results, job: usize) -> u64 {
    let read = results.jobs[job].read.as_ref();
    read.map_or(0, |read| read.total_ios)
}

#[test]
fn flows_share_by_weight() {
    // Without its weight the first would do millions; the other does 8000 a second, also
    // when it has to catch up.
    let text = "[global]\nioengine=null\nrw=randread\nnorandommap\nbs=4k\nsize=1g\ntime_based\nthread\n\
                [a]\nflow=1\nruntime=1\n[b]\nflow=8\nruntime=3\nrate_iops=8000\n";
    let Some(all) = both(text) else {
        return skip("flows_share_by_weight", "fio is not installed");
    };
    for results in all {
        let first = reads(&results, 0);
        assert!((1..2000).contains(&first), "{first}");
    }
    // Other ids, and jobs without a weight, hold nobody back.
    let text = "[global]\nioengine=null\nbs=4k\nsize=40m\nflow_sleep=100\n\
                [a]\nflow=1\n[b]\nflow=8\nflow_id=2\n[c]\n";
    let seen = run(folder().path(), text);
    assert_eq!([0, 1, 2].map(|job| reads(seen.results(), job)), [10_240; 3]);
}

#[test]
fn an_io_that_takes_too_long_fails_the_job() {
    let text = "[j]\nfilename=f\nrw=read\nbs=4k\nsize=4m\nmax_latency=1us\n[k]\nstonewall\nfilename=f\nrw=read\nbs=4k\nsize=4m\nmax_latency=60s\n";
    let Some(all) = both(text) else {
        return skip(
            "an_io_that_takes_too_long_fails_the_job",
            "fio is not installed",
        );
    };
    for results in all {
        assert_eq!(results.jobs[0].error, libc::ETIMEDOUT);
        assert!(reads(&results, 0) < 1024);
        assert_eq!((results.jobs[1].error, reads(&results, 1)), (0, 1024));
    }
}

#[test]
fn a_job_below_its_least_rate_fails() {
    let text = "[global]\nioengine=null\nrw=read\nbs=4k\nsize=1g\ntime_based\nruntime=60\nthinktime=5000\n\
                rate_cycle=200\n[a]\nrate_iops_min=1000\n[b]\nrate_min=100m\n[c]\nrate_iops_min=1\nruntime=4\n";
    let Some(all) = both(text) else {
        return skip("a_job_below_its_least_rate_fails", "fio is not installed");
    };
    for results in all {
        let errors: Vec<_> = results.jobs.iter().map(|job| job.error).collect();
        assert_eq!(errors, [libc::EIO, libc::EIO, 0]);
        assert!(reads(&results, 0) < 200 * 60 && reads(&results, 1) < 200 * 60);
    }
}

/// exitall ends the jobs of the same group, or those that run, or all.
#[test]
fn exit_what_says_which_jobs_end_too() {
    for (what, expected) in [
        ("group", [false, true, true]),
        ("stonewall", [false, false, true]),
        ("all", [false, false, false]),
    ] {
        let text = format!(
            "[global]\nioengine=null\nrw=read\nbs=4k\nsize=1g\nthread\nexitall\nrate_iops=1000\n\
             [a]\nnumber_ios=500\nexit_what={what}\n\
             [same]\nnumber_ios=1500\n\
             [other]\nnew_group\nnumber_ios=1500\n\
             [after]\nstonewall\nnumber_ios=10\n"
        );
        let Some(all) = both(&text) else {
            return skip("exit_what_says_which_jobs_end_too", "fio is not installed");
        };
        for results in all {
            let through = [1, 2, 3].map(|job| {
                let wanted = [0, 1500, 1500, 10][job];
                reads(&results, job) >= wanted
            });
            assert_eq!(through, expected, "{what}");
        }
    }
}

#[test]
fn what_is_read_beforehand_comes_from_memory() {
    let small = require!(fathom_testkit::SmallFs::new(64 << 20, ""));
    let reads = |options: &str| {
        let text =
            format!("[j]\nrw=randread\nbs=4k\nsize=16m\nnumber_ios=1\nfilename=f\n{options}\n");
        run(small.path(), &text).results().disks[0].read_ios
    };
    // The first run lays the file out.
    let (_, one, all) = (reads(""), reads(""), reads("pre_read=1"));
    // In reads of a few MiB at most.
    assert!(all >= one + 8, "{one} {all}");
}

/// Looks at the nice value of the thread that bears the job's name.
struct NiceOf(Option<String>);

impl Sink for NiceOf {
    fn event(&mut self, event: Event) -> ControlFlow<()> {
        if matches!(event, Event::Sample(_)) {
            let tasks = std::fs::read_dir("/proc/self/task").unwrap();
            let stats = tasks
                .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("stat")).ok());
            for stat in stats.filter(|stat| stat.contains("(gentle)")) {
                // proc(5): the nineteenth field.
                self.0 = stat_fields(&stat).get(16).map(|&nice| nice.to_owned());
            }
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn a_job_has_its_nice_value() {
    let dir = folder();
    let text = "[gentle]\nioengine=null\nrw=read\nsize=1g\ntime_based\nruntime=1\nnice=7\n";
    std::fs::write(dir.path().join("job.fio"), text).unwrap();
    let mut sink = NiceOf(None);
    let request = request(dir.path().join("job.fio"), dir.path());
    let outcome = Native::new().run(&request, &Control::default(), &mut sink);
    assert_eq!(outcome.unwrap(), Outcome::Complete);
    assert_eq!(sink.0.as_deref(), Some("7"));
}

/// The depth that a search comes to, and that a job whose every I/O is late fails.
#[test]
fn a_latency_target_is_searched_for_as_fio_does() {
    let test = "a_latency_target_is_searched_for_as_fio_does";
    let base = "[j]\nioengine=null\nrw=randread\nnorandommap\nbs=4k\nsize=1t\niodepth=16\nlatency_window=30ms\n";
    for (options, depth, error) in [
        ("latency_target=10s", 16, 0),
        ("latency_target=10s\nlatency_percentile=99", 16, 0),
        ("latency_target=10s\nlatency_run=1\nruntime=1", 16, 0),
    ] {
        let Some(all) = both(&format!("{base}{options}\n")) else {
            return skip(test, "fio is not installed");
        };
        for results in all {
            let found = results.jobs[0].latency_target.unwrap();
            assert_eq!(
                (found.depth, results.jobs[0].error),
                (depth, error),
                "{options}"
            );
            assert!(reads(&results, 0) > 0, "{options}");
        }
    }
    // One I/O at a time takes longer than that.
    let text =
        "[j]\nrw=randread\nbs=4k\nsize=1m\nfilename=f\nlatency_target=1us\nlatency_window=10ms\n";
    for results in both(text).unwrap() {
        assert_eq!(results.jobs[0].error, libc::ETIMEDOUT);
    }
}

/// With lat_percentiles what priorities have is lat, which is longer than clat.
#[test]
fn priorities_have_the_latency_whose_percentiles_are_wanted() {
    for wanted in ["lat", "clat"] {
        let dir = folder();
        let text = format!(
            "[j]\nioengine=libaio\niodepth=4\nrw=randread\nbs=4k\nsize=4m\nfilename=f\ncmdprio_percentage=40\n\
             lat_percentiles={}\n",
            u8::from(wanted == "lat")
        );
        let seen = run(dir.path(), &text);
        let read = seen.read(0);
        let all = match wanted {
            "lat" => read.lat.as_ref().unwrap(),
            _ => read.clat.as_ref().unwrap(),
        };
        let prios = &read.priorities;
        assert_eq!(prios.len(), 2);
        let sum = |prio: &fathom_model::result::PriorityResult| {
            prio.clat.mean_ns * prio.clat.n.unwrap() as f64
        };
        let mean = prios.iter().map(sum).sum::<f64>() / all.n.unwrap() as f64;
        assert!(
            (mean / all.mean_ns - 1.0).abs() < 1e-9,
            "{wanted}: {mean} {}",
            all.mean_ns
        );
        let theirs = folder();
        let Some(fio) = fio(theirs.path(), &text) else {
            return skip(
                "priorities_have_the_latency_whose_percentiles_are_wanted",
                "no fio",
            );
        };
        assert_eq!(fio.jobs[0].read.as_ref().unwrap().priorities.len(), 2);
    }
}

/// Sizes beyond all numbers once wrapped, and the run was "complete" with nothing written.
#[test]
fn no_extreme_value_of_an_option_wraps() {
    const VALUES: [&str; 9] = [
        "0",
        "1",
        "4096p",
        "2147483647",
        "4294967295",
        "9223372036854775807",
        "9223372036854775808",
        "18446744073709551615",
        "-1",
    ];
    const JOBS: [&str; 2] = [
        "filename=f\nrw=randrw\nsize=64k\nnumber_ios=4\n",
        "rw=randwrite\nnrfiles=3\nnumjobs=2\nfilesize=64k\nnumber_ios=4\n",
    ];
    let takes_numbers = |kind: &ValueKind| {
        matches!(
            kind,
            ValueKind::Int | ValueKind::Time | ValueKind::Range | ValueKind::BsSplit
        )
    };
    let dir = folder();
    let job_file = dir.path().join("job.fio");
    // Allocating or locking as much as is asked for is what these are about.
    let of_numbers = fathom_engine_native::options().filter(|listed| {
        let takes_numbers = table()
            .find(listed.names[0])
            .any(|spec| takes_numbers(&spec.kind));
        takes_numbers && listed.group != "Memory"
    });
    for listed in of_numbers {
        for job in JOBS {
            for value in VALUES {
                let name = listed.names[0];
                let text = format!("[j]\nioengine=null\n{job}{name}={value}\n");
                std::fs::write(&job_file, &text).unwrap();
                let request = Request {
                    // What waits for ages is not waited for.
                    deadline: Some(Duration::from_millis(50)),
                    ..request(job_file.clone(), dir.path())
                };
                let mut seen = Seen::default();
                let control = seen.control.clone();
                let outcome = Native::new().run(&request, &control, &mut seen);
                let panicked =
                    |failure: &&Failure| failure.message.contains("a fault in Fathom itself");
                assert!(
                    !seen.failures().iter().any(panicked),
                    "{text}{:?}",
                    seen.failures()
                );
                if let Ok(Outcome::Complete) = outcome {
                    let idle = fathom_engine::idle::idle_jobs(&request, seen.results());
                    assert!(idle.is_empty(), "{text}complete without any I/O");
                }
            }
        }
    }
}

/// What the job of each of these asks for does not fit into 64 bits.
#[test]
fn sizes_that_wrap_are_refused_by_name() {
    for (options, said) in [
        (
            "numjobs=5\noffset_increment=4096p\nsize=64k",
            "offset_increment",
        ),
        ("offset=9223372036854775807\nsize=64k", "offset"),
        ("nrfiles=2147483647\nsize=64k", "nrfiles"),
    ] {
        let dir = folder();
        let text = format!("[j]\nioengine=null\nrw=write\n{options}\n");
        let mut seen = Seen::default();
        let outcome = try_run(dir.path(), &text, &mut seen);
        let told = format!("{outcome:?} {:?}", seen.failures());
        assert!(!matches!(outcome, Ok(Outcome::Complete)), "{options}");
        assert!(told.contains(said), "{options}: {told}");
    }
    for options in [
        "fill_device=1\nnrfiles=16\nnumber_ios=4",
        "filesize=4096p\nnrfiles=4\nnumber_ios=4",
    ] {
        let dir = folder();
        let seen = run(
            dir.path(),
            &format!("[j]\nioengine=null\nrw=write\n{options}\n"),
        );
        assert_eq!(seen.write(0).total_ios, 4, "{options}");
    }
}
