//! What goes wrong, said clearly.

use fathom_engine::Outcome;
use fathom_model::FailureKind;

use crate::{Seen, folder, try_run};

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
    let text = "[a]\nfilename=f\nsize=1m\nrw=write\ndedupe_percentage=10\nioengine=rbd\n";
    let message = try_run(dir.path(), text, &mut seen)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("job.fio:5") && message.contains("dedupe_percentage"),
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
    for engine in ["psync", "io_uring", "libaio"] {
        // Writing to /dev/full always fails; a file of no space needs a mount.
        let seen = fails(
            &format!(
                "[a]\nioengine={engine}\nrw=write\nfilename=f\nsize=10g\nbs=1m\nfile_that_is=not\n"
            )
            .replace("file_that_is=not\n", "filesize=1000t\nfallocate=native\n"),
        );
        let failure = seen.failures()[0];
        assert!(
            matches!(failure.kind, FailureKind::NoSpace | FailureKind::Open),
            "{failure}"
        );
    }
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
