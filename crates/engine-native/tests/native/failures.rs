//! What goes wrong, said clearly.

use fathom_engine::Outcome;
use fathom_model::FailureKind;
use fathom_testkit::{FaultFs, FaultOp, LoopDevice, SmallFs, require};

use crate::native::content::holds;
use crate::native::{Seen, folder, try_run};

fn fails(text: &str) -> Seen {
    let dir = folder();
    let mut seen = Seen::default();
    assert_eq!(
        try_run(dir.path(), text, &mut seen).unwrap(),
        Outcome::Failed
    );
    seen
}

#[test]
fn an_unknown_option_is_refused_by_name_and_line_before_anything_is_touched() {
    let dir = folder();
    let mut seen = Seen::default();
    let text = "[a]\nfilename=f\nsize=1m\nrw=write\ncgroup=x\nioengine=rbd\n";
    let message = try_run(dir.path(), text, &mut seen)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("job.fio:5") && message.contains("cgroup"),
        "{message}"
    );
    assert!(
        message.contains("job.fio:6") && message.contains("rbd"),
        "{message}"
    );
    assert!(seen.events.is_empty() && !dir.path().join("f").exists());
}

#[test]
fn a_missing_size_folder_or_device_is_a_failure_of_its_job() {
    let seen = fails("[a]\nrw=write\nfilename=nothing\n");
    assert_eq!(seen.failures()[0].kind, FailureKind::NoSize);
    let seen = fails("[a]\nrw=read\nfilename=/dev/nvme99n9\nsize=1m\n");
    assert_eq!(seen.failures()[0].kind, FailureKind::NoDevice);
    let seen = fails("[a]\nrw=write\ndirectory=nowhere\nsize=1m\n");
    assert_eq!(seen.failures()[0].kind, FailureKind::Open);
    let seen = fails("[a]\nrw=write\nfilename=f\nsize=1m\nallow_file_create=0\n");
    assert_eq!(seen.failures()[0].kind, FailureKind::Open);
}

#[test]
fn a_full_disk_ends_the_job_with_its_offset() {
    let small = require!(SmallFs::new(16 << 20, ""));
    for engine in ["psync", "io_uring", "libaio", "posixaio"] {
        let mut seen = Seen::default();
        let text = format!(
            "[a]\nioengine={engine}\nrw=write\nfilename=f\nsize=64m\nbs=1m\nfallocate=none\nunlink=1\n"
        );
        assert_eq!(
            try_run(small.path(), &text, &mut seen).unwrap(),
            Outcome::Failed
        );
        let failure = seen.failures()[0];
        assert_eq!(failure.kind, FailureKind::NoSpace, "{failure}");
        assert!(failure.message.contains("at offset"), "{failure}");
        // A short write came before the error: its bytes are there, and it is not counted as done.
        assert!(seen.write(0).total_ios < 16, "{engine}");
    }
    let mut seen = Seen::default();
    let outcome = try_run(
        small.path(),
        "[a]\nrw=read\nfilename=g\nsize=64m\n",
        &mut seen,
    );
    assert_eq!(outcome.unwrap(), Outcome::Failed);
    assert_eq!(seen.failures()[0].kind, FailureKind::NoSpace);
}

#[test]
fn an_io_error_ends_the_job_or_is_gone_past() {
    let faultfs = require!(FaultFs::new());
    for engine in ["psync", "io_uring", "libaio", "posixaio"] {
        std::fs::write(faultfs.path().join("f"), vec![1u8; 1 << 20]).unwrap();
        let job = format!("[a]\nioengine={engine}\nrw=randwrite\nbs=4k\nfilename=f\nsize=1m\n");
        faultfs.fail_once(FaultOp::Write, 10, libc::EIO);
        let mut seen = Seen::default();
        assert_eq!(
            try_run(faultfs.path(), &job, &mut seen).unwrap(),
            Outcome::Failed,
            "{engine}"
        );
        assert_eq!(
            (seen.failures()[0].kind, seen.failures()[0].errno),
            (FailureKind::Io, Some(libc::EIO))
        );
        faultfs.clear();
        faultfs.fail_once(FaultOp::Write, 10, libc::EIO);
        let mut seen = Seen::default();
        let text = format!("{job}continue_on_error=io\n");
        assert_eq!(
            try_run(faultfs.path(), &text, &mut seen).unwrap(),
            Outcome::Complete,
            "{engine}"
        );
        let job = &seen.results().jobs[0];
        assert_eq!(
            (job.total_errors, job.error, seen.write(0).total_ios),
            (Some(1), libc::EIO, 255),
            "{engine}"
        );
        faultfs.clear();
    }
}

/// As fio does (td_error.c): EIO and EILSEQ, or what ignore_error names instead.
#[test]
fn continue_on_error_goes_past_the_errors_that_fio_goes_past() {
    let faultfs = require!(FaultFs::new());
    for (errno, options, outcome) in [
        (libc::EIO, "continue_on_error=write\n", Outcome::Complete),
        (libc::EIO, "continue_on_error=read\n", Outcome::Failed),
        (libc::ENOSPC, "continue_on_error=all\n", Outcome::Failed),
        (libc::ENOSPC, "ignore_error=,ENOSPC\n", Outcome::Complete),
        (
            libc::EIO,
            "continue_on_error=io\nignore_error=62,62\n",
            Outcome::Failed,
        ),
    ] {
        faultfs.fail_once(FaultOp::Write, 3, errno);
        let text = format!("[a]\nrw=write\nbs=4k\nfilename=f\nsize=64k\nfallocate=none\n{options}");
        let mut seen = Seen::default();
        let came = try_run(faultfs.path(), &text, &mut seen).unwrap();
        assert_eq!(came, outcome, "{errno} {options}");
        assert_eq!(
            seen.results().jobs[0].total_errors,
            Some(1),
            "{errno} {options}"
        );
        faultfs.clear();
    }
}

#[test]
fn a_short_write_is_finished_and_counted() {
    let faultfs = require!(FaultFs::new());
    // Not io_uring and libaio: to them the kernel answers FUSE's short writes with EIO.
    for engine in ["psync", "sync", "pvsync2", "posixaio"] {
        faultfs.short_write(5);
        let mut seen = Seen::default();
        let text = format!(
            "[a]\nioengine={engine}\nrw=randwrite\nbs=4k\nfilename=f\nsize=256k\niodepth=4\n"
        );
        assert_eq!(
            try_run(faultfs.path(), &text, &mut seen).unwrap(),
            Outcome::Complete,
            "{engine}: {:?}",
            seen.failures()
        );
        assert_eq!(
            (seen.write(0).total_ios, seen.write(0).short_ios),
            (64, Some(1)),
            "{engine}"
        );
        let data = std::fs::read(faultfs.path().join("f")).unwrap();
        for (sector, bytes) in data.chunks(512).enumerate() {
            assert!(holds(bytes, sector as u64 * 512), "{engine}: {sector}");
        }
        faultfs.clear();
    }
}

#[test]
fn a_stalled_device_is_named_and_the_run_ends_all_the_same() {
    let faultfs = require!(FaultFs::new());
    std::fs::write(faultfs.path().join("f"), vec![1u8; 1 << 20]).unwrap();
    faultfs.hold_reads_from(1);
    let dir = folder();
    let mut seen = Seen::default();
    let path = faultfs.path().join("f");
    let text = format!(
        "[a]\nrw=randread\nfilename={}\nsize=1m\ndirect=1\n",
        path.display()
    );
    seen.stop_twice_after_intervals = Some(10);
    assert_eq!(
        try_run(dir.path(), &text, &mut seen).unwrap(),
        Outcome::Interrupted
    );
    let failure = seen.failures()[0];
    assert_eq!(failure.kind, FailureKind::Hung, "{failure}");
    assert!(
        failure.message.contains("read of 4096 bytes at offset"),
        "{failure}"
    );
    faultfs.release();
}

#[test]
fn a_device_gets_each_block_once_and_the_kernel_counted_as_much() {
    let device = require!(LoopDevice::new(4 << 20));
    let dir = folder();
    for engine in ["io_uring", "libaio", "psync"] {
        let text = format!(
            "[a]\nioengine={engine}\niodepth=8\ndirect=1\nrw=randwrite\nbs=4k\nfilename={}\nioscheduler=none\n",
            device.path().display()
        );
        let seen = crate::native::run(dir.path(), &text);
        assert_eq!(seen.write(0).total_ios, 1024, "{engine}");
        let disk = &seen.results().disks[0];
        // Neighbours may have been merged; each merge is one request less.
        assert_eq!(
            disk.write_ios + disk.write_merges,
            1024,
            "{engine}: {disk:?}"
        );
        let data = std::fs::read(device.path()).unwrap();
        for (sector, bytes) in data.chunks(512).enumerate() {
            assert!(holds(bytes, sector as u64 * 512), "{engine}: {sector}");
        }
    }
    let text = format!(
        "[a]\nrw=read\nfilename={}\nsize=8m\n",
        device.path().display()
    );
    let mut seen = Seen::default();
    assert_eq!(
        try_run(dir.path(), &text, &mut seen).unwrap(),
        Outcome::Failed
    );
    assert!(
        seen.failures()[0].message.contains("holds 4194304 bytes"),
        "{}",
        seen.failures()[0]
    );
}

#[test]
fn a_read_past_the_end_says_so() {
    let dir = folder();
    let mut seen = Seen::default();
    // create_on_open leaves the file empty: there is nothing to read.
    let text = "[a]\nrw=read\nfilename=f\nsize=64k\ncreate_on_open=1\n";
    std::fs::write(dir.path().join("f"), b"").unwrap();
    let outcome = try_run(dir.path(), text, &mut seen).unwrap();
    assert_eq!(outcome, Outcome::Failed);
    assert!(
        seen.failures()[0].message.contains("the file ends there"),
        "{}",
        seen.failures()[0]
    );
}

#[test]
fn failed_ios_are_gone_past_when_asked_and_not_counted_as_done() {
    let dir = folder();
    std::fs::write(dir.path().join("f"), vec![1u8; 32 * 1024]).unwrap();
    let mut seen = Seen::default();
    let text = "[a]\nrw=read\nfilename=f\nfilesize=64k\nsize=64k\ncreate_on_open=1\ncontinue_on_error=io\n";
    assert_eq!(
        try_run(dir.path(), text, &mut seen).unwrap(),
        Outcome::Complete
    );
    let job = &seen.results().jobs[0];
    assert_eq!(job.total_errors, Some(8));
    assert_eq!(job.error, libc::EIO);
    assert_eq!(seen.read(0).total_ios, 8);
}

#[test]
fn polling_where_nothing_can_be_polled_says_what_it_needs() {
    let seen = fails("[a]\nrw=read\nioengine=io_uring\nhipri=1\niodepth=4\nsize=64k\nfilename=f\n");
    let failure = seen.failures()[0];
    assert_eq!(failure.kind, FailureKind::Io, "{failure}");
    assert!(failure.message.contains("poll_queues"), "{failure}");
    // Without direct=1 the page cache answers, and preadv2 need not poll.
    let dir = folder();
    let text = "[a]\nrw=read\nioengine=pvsync2\nhipri=1\nsize=64k\nfilename=f\n";
    assert_eq!(crate::native::run(dir.path(), text).read(0).total_ios, 16);
}

#[test]
fn a_short_read_is_gone_on_with_and_counted() {
    let faultfs = require!(FaultFs::new());
    std::fs::write(faultfs.path().join("f"), vec![1u8; 256 << 10]).unwrap();
    for engine in ["psync", "sync", "pvsync2", "io_uring", "libaio", "posixaio"] {
        faultfs.short_read(5);
        let text = format!(
            "[a]\nioengine={engine}\nrw=randread\nbs=4k\nsize=256k\ndirect=1\nfilename=f\n"
        );
        let mut seen = Seen::default();
        let outcome = try_run(faultfs.path(), &text, &mut seen).unwrap();
        assert_eq!(
            outcome,
            Outcome::Complete,
            "{engine}: {:?}",
            seen.failures()
        );
        let read = seen.read(0);
        assert_eq!((read.total_ios, read.short_ios), (64, Some(1)), "{engine}");
        assert_eq!(read.io_bytes, 256 << 10, "{engine}");
        faultfs.clear();
    }
}
