//! Every row of the table of failures, made to happen.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::Duration;

use fathom_engine::{Control, Outcome, Request};
use fathom_model::{Event, FailureKind};
use fathom_testkit::{FaultFs, FaultOp, SmallFs, require};

use crate::fio::bench::{Bench, pid_of};

const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const TIMED: &str = "[global]\nsize=4m\ntime_based\nrate_iops=1000\nrw=randread\nfilename=data\n";

/// The processes that this one has started.
fn children(pid: u32) -> Vec<String> {
    let output = Command::new("pgrep")
        .args(["-P", &pid.to_string()])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(str::to_owned).collect()
}

fn kill(signal: &str, pid: &str) {
    assert!(
        Command::new("kill")
            .args([signal, pid])
            .status()
            .unwrap()
            .success()
    );
}

/// Runs until the first sample, then does something to fio, once. An interval may end
/// before fio has begun. A fio that loses a job while it asks for figures waits for ever,
/// so it is not asked again soon.
fn strike(bench: &Bench, job: &str, blow: &mut dyn FnMut(u32)) -> crate::fio::bench::Told {
    strike_within(bench, job, Duration::from_secs(3), blow)
}

fn strike_within(
    bench: &Bench,
    job: &str,
    interval: Duration,
    blow: &mut dyn FnMut(u32),
) -> crate::fio::bench::Told {
    let (mut pid, mut struck) = (None, false);
    let request = Request {
        interval,
        ..bench.request(job)
    };
    bench.run_with(&request, &Control::default(), &mut |event| {
        pid = pid.or(pid_of(event));
        if let (Event::Sample(_), Some(pid), false) = (event, pid, struck) {
            struck = true;
            blow(pid);
        }
        ControlFlow::Continue(())
    })
}

#[test]
fn a_job_killed_by_a_signal_is_no_success() {
    let bench = Bench::new();
    // The victim is the first child, and alive until then.
    let job = format!("{TIMED}[victim]\nruntime=600\n[other]\nruntime=5\n");
    let told = strike(&bench, &job, &mut |fio| kill("-9", &children(fio)[0]));
    let failure = told.failure(FailureKind::JobKilled);
    assert!(failure.message.contains("signal 9"), "{failure}");
    assert_eq!(failure.subject.as_deref(), Some("victim"), "{failure}");
    assert!(told.results().is_some(), "the other job's figures are kept");
}

#[test]
fn a_job_killed_while_fio_asks_it_does_not_keep_the_run_from_ending() {
    let bench = Bench::new();
    let job = format!("{TIMED}[victim]\nruntime=600\n[other]\nruntime=1\n");
    let told = strike_within(&bench, &job, Duration::from_millis(200), &mut |fio| {
        let victim = &children(fio)[0];
        kill("-STOP", victim);
        // fio asks it for the next document and waits for its answer.
        std::thread::sleep(Duration::from_secs(1));
        kill("-9", victim);
    });
    let failure = told.failure(FailureKind::JobKilled);
    assert!(failure.message.contains("signal 9"), "{failure}");
    assert!(told.samples().count() > 0);
}

#[test]
fn fio_killed_is_a_failure_and_the_samples_stay() {
    let bench = Bench::new();
    let job = format!("{TIMED}runtime=30\nthread\n[a]\n");
    let told = strike(&bench, &job, &mut |fio| kill("-9", &fio.to_string()));
    let failure = told.failure(FailureKind::EngineKilled);
    assert!(failure.message.contains("signal 9"), "{failure}");
    assert!(
        told.results().is_none(),
        "an interval's document is no final report"
    );
    assert!(told.samples().count() > 0);
}

#[test]
fn fio_ended_from_outside_is_an_interrupted_run() {
    let bench = Bench::new();
    let job = format!("{TIMED}runtime=30\n[a]\n");
    let told = strike(&bench, &job, &mut |fio| kill("-TERM", &fio.to_string()));
    assert_eq!(told.outcome, Outcome::Interrupted, "{:?}", told.failures());
    assert!(told.results().is_some() && !told.notes().is_empty());
}

#[test]
fn two_hundred_and_fifty_six_failed_jobs_are_not_exit_code_0() {
    let bench = Bench::new();
    let job = "[many]\nrw=write\nsize=4k\nnumjobs=256\nthread\nfilename=/dev/full\n";
    let told = bench.run(job);
    let failure = told.failure(FailureKind::NoSpace);
    assert_eq!(failure.subject.as_deref(), Some("many"));
    assert_eq!(told.results().unwrap().jobs.len(), 256);
}

#[test]
fn a_bad_option_is_named() {
    let bench = Bench::new();
    let told = bench.run("[a]\nrw=read\nsize=64k\nbogus=1\n");
    let failure = told.failure(FailureKind::BadOption);
    assert!(failure.message.contains("bogus=1"), "{failure}");
    let told = bench.run("[a]\nrw=foo\nsize=64k\n");
    assert!(
        told.failure(FailureKind::BadOption)
            .message
            .contains("rw=foo")
    );
    let told = bench.run("ioengine=null\n[a]\nrw=read\n");
    assert!(
        told.failure(FailureKind::BadOption)
            .message
            .contains("ioengine=null")
    );
    assert_eq!(told.results(), None);
}

#[test]
fn a_job_file_that_is_not_there_is_named() {
    let bench = Bench::new();
    let mut request = bench.request("");
    request.job_file = bench.path().join("nosuch.fio");
    let told = bench.run_with(&request, &Control::default(), &mut |_| {
        ControlFlow::Continue(())
    });
    let failure = told.failure(FailureKind::Open);
    assert!(
        failure.subject.as_ref().unwrap().ends_with("nosuch.fio"),
        "{failure}"
    );
}

#[test]
fn an_ioengine_that_is_missing_is_named() {
    let bench = Bench::new();
    let told = bench.run("[a]\nrw=read\nsize=64k\nioengine=nosuch\n");
    let failure = told.failure(FailureKind::EngineMissing);
    assert_eq!(failure.subject.as_deref(), Some("nosuch"));
    assert!(
        bench.raw("fio.err").contains("not loadable"),
        "fio's own words are kept"
    );
}

#[test]
fn a_missing_size_is_explained() {
    let told = Bench::new().run("[a]\nrw=read\n");
    let failure = told.failure(FailureKind::NoSize);
    assert_eq!(failure.subject.as_deref(), Some("a"));
}

#[test]
fn a_file_that_may_not_be_created_is_a_failure() {
    let told = Bench::new().run("[a]\nrw=read\nsize=64k\nfilename=nosuch\nallow_file_create=0\n");
    let failures = told.failures();
    let no_device = failures.iter().find(|f| f.kind == FailureKind::NoDevice);
    let said = no_device
        .unwrap_or_else(|| panic!("{failures:?}"))
        .to_string();
    assert!(said.ends_with(FailureKind::NoDevice.advice()), "{said}");
}

#[test]
fn the_limit_on_aio_contexts_is_explained() {
    let bench = Bench::new();
    let limit = fs::read_to_string("/proc/sys/fs/aio-max-nr").unwrap();
    let limit: u64 = limit.trim().parse().unwrap();
    // One job that asks for more than there can be.
    let told = bench.run(&format!(
        "[a]\nrw=randread\nsize=64k\nioengine=libaio\niodepth={}\n",
        limit + 1
    ));
    let failure = told.failure(FailureKind::AioLimit);
    assert!(failure.to_string().contains("fs.aio-max-nr"), "{failure}");
}

#[test]
fn a_full_file_system_is_told_with_the_file() {
    let small = require!(SmallFs::new(8 << 20, ""));
    let bench = Bench::new();
    let told = bench.run(&format!(
        "[big]\nrw=write\nsize=32m\nbs=64k\nfallocate=none\nfilename={}/data\n",
        small.path().display()
    ));
    let failure = told.failure(FailureKind::NoSpace);
    assert_eq!(failure.errno, Some(ENOSPC));
    assert_eq!(failure.subject.as_deref(), Some("big"));
    assert!(failure.message.contains("data"), "{failure}");
}

#[test]
fn an_io_error_ends_the_job_and_names_the_file() {
    let faulty = require!(FaultFs::new());
    let bench = Bench::new();
    faulty.fail_once(FaultOp::Write, 5, EIO);
    let told = bench.run(&job_on(&faulty, ""));
    let failure = told.failure(FailureKind::Io);
    assert_eq!(
        (failure.errno, failure.subject.as_deref()),
        (Some(EIO), Some("w"))
    );
    assert!(failure.message.contains("faulty-data"), "{failure}");
}

#[test]
fn errors_that_a_job_goes_on_after_are_counted() {
    let faulty = require!(FaultFs::new());
    let bench = Bench::new();
    faulty.fail_from(FaultOp::Write, 5, EIO);
    let told = bench.run(&job_on(&faulty, "continue_on_error=all\n"));
    assert!(told.failures().is_empty(), "{:?}", told.failures());
    assert_eq!(told.outcome, Outcome::Complete);
    assert!(told.results().unwrap().jobs[0].total_errors.unwrap() > 1);
}

/// The first error is one that it goes past, the last one is not.
#[test]
fn an_error_that_a_job_does_not_go_past_fails_it_whatever_it_went_past_before() {
    let faulty = require!(FaultFs::new());
    let bench = Bench::new();
    faulty.fail_once(FaultOp::Write, 5, EIO);
    let told = bench.run(&job_on(&faulty, "continue_on_error=verify\n"));
    assert_eq!(told.failure(FailureKind::Io).errno, Some(EIO));
    faulty.clear();
    faulty.fail_once(FaultOp::Write, 5, EIO);
    faulty.fail_from(FaultOp::Write, 9, libc::ENOSPC);
    let told = bench.run(&job_on(&faulty, "continue_on_error=all\n"));
    assert_eq!(told.outcome, Outcome::Failed);
    assert_eq!(told.failure(FailureKind::NoSpace).errno, Some(libc::ENOSPC));
}

/// Limits of a device abort I/Os on purpose: fio reports their error all the same.
#[test]
fn errors_that_a_job_is_to_ignore_are_counted_and_no_failure() {
    let faulty = require!(FaultFs::new());
    let bench = Bench::new();
    faulty.fail_once(FaultOp::Write, 5, EIO);
    let ignoring = "continue_on_error=io\nignore_error=5,5\n";
    let told = bench.run(&job_on(&faulty, ignoring));
    assert!(told.failures().is_empty(), "{:?}", told.failures());
    assert_eq!(told.outcome, Outcome::Complete);
    assert_eq!(told.results().unwrap().jobs[0].total_errors, Some(1));
}

fn job_on(faulty: &FaultFs, more: &str) -> String {
    let file = faulty.path().join("faulty-data");
    format!(
        "[w]\nrw=write\nsize=128k\nbs=4k\nfallocate=none\nfilename={}\n{more}",
        file.display()
    )
}

#[test]
fn a_group_with_a_failed_member_fails() {
    let bench = Bench::new();
    symlink("/dev/full", bench.path().join("full")).unwrap();
    let told =
        bench.run("[global]\ngroup_reporting\nsize=64k\nrw=write\n[good]\n[bad]\nfilename=full\n");
    assert_eq!(told.outcome, Outcome::Failed);
    let failures = told.failures();
    assert!(
        failures.iter().any(|f| f.kind == FailureKind::NoSpace),
        "{failures:?}"
    );
}

#[test]
fn a_remark_of_fio_is_a_note() {
    let told = Bench::new().run("[a]\nrw=read\nsize=64k\niodepth=16\n");
    assert_eq!(told.outcome, Outcome::Complete);
    assert!(
        told.notes().iter().any(|note| note.contains("iodepth")),
        "{:?}",
        told.notes()
    );
}

#[test]
fn a_group_that_reports_in_part_is_no_failure() {
    let told = Bench::new().run(
        "[global]\nioengine=psync\nsize=64k\n[alone]\nrw=read\n\
         [together]\nrw=write\nnumjobs=2\ngroup_reporting\n",
    );
    assert_eq!(told.outcome, Outcome::Complete, "{:?}", told.failures());
}
