//! verify=crc32c: what is written is read back, in fio's layout.

use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_engine::Outcome;
use fathom_engine::fio::json;
use fathom_model::{FailureKind, Results};
use fathom_testkit::skip;

use crate::native::{Seen, folder, run, try_run};

/// Runs fio on a job; whether all went well, and its results.
fn fio(dir: &Path, text: &str) -> (bool, Results) {
    fs::write(dir.join("fio.fio"), text).unwrap();
    let output = Command::new("fio")
        .args(["--output-format=json", "fio.fio"])
        .current_dir(dir)
        .output()
        .unwrap();
    let results = json::scan(&output.stdout).documents.remove(0).results;
    (output.status.success(), results)
}

/// (I/Os, bytes) read and written.
fn amounts(results: &Results) -> [(u64, u64); 2] {
    let job = &results.jobs[0];
    [&job.read, &job.write].map(|dir| {
        let dir = dir.clone().unwrap_or_default();
        (dir.total_ios, dir.io_bytes)
    })
}

const ENGINES: [&str; 6] = ["psync", "sync", "libaio", "io_uring", "posixaio", "mmap"];

#[test]
fn every_engine_reads_back_what_it_wrote() {
    for engine in ENGINES {
        let dir = folder();
        let text = format!(
            "[j]\nioengine={engine}\niodepth=8\nrw=randwrite\nbs=4k\nsize=1m\nfilename=f\nverify=crc32c\n"
        );
        let seen = run(dir.path(), &text);
        let both = [(256, 1 << 20); 2];
        assert_eq!(amounts(seen.results()), both, "{engine}");
        let read = seen.read(0);
        assert_eq!(read.clat.as_ref().unwrap().n, Some(256), "{engine}");
        let whole = seen.results().jobs[0].runtime_ms.unwrap();
        // Both parts are rounded up.
        let parts = read.runtime_ms + seen.write(0).runtime_ms;
        assert!(
            (whole..=whole + 2).contains(&parts),
            "{engine}: {parts} of {whole}"
        );
    }
}

/// When fio reads back, and how much: the same I/Os of the same sizes.
#[test]
fn fio_reads_back_as_often_and_as_much() {
    let test = "fio_reads_back_as_often_and_as_much";
    if let Err(reason) = fathom_testkit::program("fio") {
        return skip(test, &reason);
    }
    let jobs = [
        "rw=randwrite\nsize=1m",
        "rw=write\nsize=1m\nloops=2",
        "rw=randwrite\nsize=256k\nio_size=1m",
        "rw=write\nsize=256k\nio_size=512k\nloops=2",
        "rw=write\nsize=1m\nio_size=100k",
        "rw=write\nsize=1m\nnumber_ios=100",
        "rw=randwrite\nsize=1m\ndo_verify=0",
        "rw=write\nsize=1m\nnrfiles=3",
        "rw=randwrite\nsize=1m\nioengine=libaio\niodepth=16\niodepth_batch_submit=4",
        "rw=write\nsize=1m\nverify=0",
    ];
    for options in jobs {
        let (ours, theirs) = (folder(), folder());
        let text = format!("[j]\nbs=4k\nverify=crc32c\n{options}\n");
        let (well, results) = fio(theirs.path(), &text);
        assert!(well, "{options}");
        let native = run(ours.path(), &text);
        assert_eq!(amounts(native.results()), amounts(&results), "{options}");
    }
}

/// Sizes, patterns and repetition of writes whose layout both must agree on.
const LAYOUTS: [&str; 6] = [
    "rw=write\nbs=4k",
    "rw=randwrite\nbs=8k\nioengine=libaio\niodepth=8",
    "rw=randwrite\nbsrange=4k-16k",
    "rw=randwrite\nbssplit=4k/30:8k/30:16k/40",
    "rw=randwrite\nbs=4k\nnorandommap\nio_size=4m",
    "rw=randrw\nbs=4k\nloops=2",
];

#[test]
fn each_engine_verifies_what_the_other_wrote() {
    let test = "each_engine_verifies_what_the_other_wrote";
    if let Err(reason) = fathom_testkit::program("fio") {
        return skip(test, &reason);
    }
    for layout in LAYOUTS {
        let dir = folder();
        let write =
            format!("[j]\nfilename=f\nsize=1m\nverify=crc32c\nverify_state_save=0\n{layout}\n");
        // All of the file must have headers for the read to pass: random mixes
        // and repetition leave holes, which a plain write has filled before.
        let fill =
            "[j]\nfilename=f\nsize=1m\nverify=crc32c\nverify_state_save=0\nrw=write\nbs=4k\n";
        let bs = if layout.contains("bs=8k") { "8k" } else { "4k" };
        let read = format!("[j]\nfilename=f\nsize=1m\nverify=crc32c\nrw=randread\nbs={bs}\n");
        let blocks = if bs == "8k" { 128 } else { 256 };
        run(dir.path(), fill);
        run(dir.path(), &write);
        let (well, results) = fio(dir.path(), &read);
        assert!(well, "native wrote, fio read: {layout}");
        assert_eq!(amounts(&results)[0].0, blocks, "{layout}");
        fs::remove_file(dir.path().join("f")).unwrap();
        assert!(
            fio(dir.path(), fill).0 && fio(dir.path(), &write).0,
            "{layout}"
        );
        let seen = run(dir.path(), &read);
        assert_eq!(seen.read(0).total_ios, blocks, "{layout}");
    }
}

/// Flips a byte of a file.
fn flip(path: &Path, at: usize) {
    let mut data = fs::read(path).unwrap();
    data[at] ^= 0x10;
    fs::write(path, data).unwrap();
}

#[test]
fn a_flipped_byte_is_found_with_its_file_and_offset_and_fails_the_job() {
    let dir = folder();
    let write = "[j]\nfilename=f\nsize=1m\nbs=16k\nrw=write\nverify=crc32c\nverify_state_save=0\n";
    let has_fio = fathom_testkit::program("fio").is_ok();
    // In a header, at its end, in the data, the last byte.
    for at in [0, 16_384 + 20, 5 * 16_384 + 43, 100_000, (1 << 20) - 1] {
        run(dir.path(), write);
        flip(&dir.path().join("f"), at);
        for engine in ENGINES {
            let mut seen = Seen::default();
            let read = format!(
                "[j]\nfilename=f\nsize=1m\nbs=16k\nrw=read\nverify=crc32c\nioengine={engine}\niodepth=4\n"
            );
            let outcome = try_run(dir.path(), &read, &mut seen).unwrap();
            assert_eq!(outcome, Outcome::Failed, "{engine} {at}");
            let failure = seen.failures()[0];
            assert_eq!(failure.kind, FailureKind::Corrupt, "{failure}");
            assert_eq!(failure.errno, Some(libc::EILSEQ), "{failure}");
            let place = format!("at offset {} failed", at / 16_384 * 16_384);
            assert!(
                failure.message.contains("/f: verify of 16384 bytes")
                    && failure.message.contains(&place),
                "{failure}"
            );
            assert_eq!(seen.results().jobs[0].error, libc::EILSEQ);
        }
        if has_fio {
            let read = "[j]\nfilename=f\nsize=1m\nbs=16k\nrw=read\nverify=crc32c\n";
            let (well, results) = fio(dir.path(), read);
            assert!(!well && results.jobs[0].error == libc::EILSEQ, "{at}");
        }
    }
}

#[test]
fn a_job_goes_past_mismatches_when_told_to() {
    let dir = folder();
    let write = "[j]\nfilename=f\nsize=1m\nbs=4k\nrw=write\nverify=crc32c\n";
    run(dir.path(), write);
    flip(&dir.path().join("f"), 5000);
    flip(&dir.path().join("f"), 90_000);
    for (option, goes_on) in [
        ("continue_on_error=verify", true),
        ("continue_on_error=all", true),
        ("ignore_error=,,EILSEQ", true),
        ("continue_on_error=io", false),
        ("ignore_error=EILSEQ", false),
    ] {
        let mut seen = Seen::default();
        let read = format!("[j]\nfilename=f\nsize=1m\nbs=4k\nrw=read\nverify=crc32c\n{option}\n");
        let outcome = try_run(dir.path(), &read, &mut seen).unwrap();
        let job = &seen.results().jobs[0];
        if goes_on {
            assert_eq!(outcome, Outcome::Complete, "{option}");
            assert_eq!(
                (job.total_errors, job.error),
                (Some(2), libc::EILSEQ),
                "{option}"
            );
            assert_eq!(seen.read(0).total_ios, 256, "{option}");
        } else {
            assert_eq!(outcome, Outcome::Failed, "{option}");
        }
    }
    // None so far is known, where a job would go on.
    let text = "[j]\nfilename=f\nsize=1m\nrw=write\ncontinue_on_error=all\n";
    assert_eq!(
        run(dir.path(), text).results().jobs[0].total_errors,
        Some(0)
    );
}

/// Writes that a disk says it did but did not: the older block is still there.
#[test]
fn a_lost_write_is_found_when_it_is_read_back() {
    let faultfs = match fathom_testkit::FaultFs::new() {
        Ok(faultfs) => faultfs,
        Err(reason) => return skip("a_lost_write_is_found_when_it_is_read_back", &reason),
    };
    let job = "[j]\nfilename=f\nsize=256k\nbs=4k\nrw=randwrite\nverify=crc32c\n";
    run(faultfs.path(), job);
    let old = fs::read(faultfs.path().join("f")).unwrap();
    // The second run writes other blocks in the same places; the copy of the
    // first run's comes back for one of them.
    let text = format!("{job}do_verify=0\n");
    run(faultfs.path(), &text);
    let mut data = fs::read(faultfs.path().join("f")).unwrap();
    assert_ne!(data, old);
    data[8192..12_288].copy_from_slice(&old[..4096]);
    fs::write(faultfs.path().join("f"), &data).unwrap();
    let mut seen = Seen::default();
    let read = "[j]\nfilename=f\nsize=256k\nbs=4k\nrw=read\nverify=crc32c\n";
    assert_eq!(
        try_run(faultfs.path(), read, &mut seen).unwrap(),
        Outcome::Failed
    );
    let failure = seen.failures()[0];
    assert!(
        failure
            .message
            .contains("at offset 8192 failed: it holds the block of offset 0"),
        "{failure}"
    );
}

#[test]
fn failed_writes_are_not_read_back() {
    let faultfs = match fathom_testkit::FaultFs::new() {
        Ok(faultfs) => faultfs,
        Err(reason) => return skip("failed_writes_are_not_read_back", &reason),
    };
    fs::write(faultfs.path().join("f"), vec![1u8; 1 << 20]).unwrap();
    faultfs.fail_once(fathom_testkit::FaultOp::Write, 10, libc::EIO);
    let text = "[j]\nfilename=f\nsize=1m\nbs=4k\nrw=randwrite\ndirect=1\nverify=crc32c\ncontinue_on_error=io\n";
    let seen = run(faultfs.path(), text);
    assert_eq!(
        (seen.write(0).total_ios, seen.read(0).total_ios),
        (255, 255)
    );
    faultfs.clear();
}

#[test]
fn a_time_based_job_reads_back_every_whole_pass() {
    let dir = folder();
    let text =
        "[j]\nfilename=f\nsize=256k\nbs=4k\nrw=randwrite\nverify=crc32c\ntime_based\nruntime=1\n";
    let seen = run(dir.path(), text);
    let (read, write) = (seen.read(0).total_ios, seen.write(0).total_ios);
    assert!(
        read > 64 && write >= read && write - read <= 64,
        "{read} {write}"
    );
}
