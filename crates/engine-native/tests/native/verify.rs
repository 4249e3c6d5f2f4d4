//! verify=crc32c: what is written is read back, in fio's layout.

use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_engine::Outcome;
use fathom_fio_output::json;
use fathom_model::{FailureKind, Results};
use fathom_testkit::require;

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
    require!(fathom_testkit::program("fio"));
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
    require!(fathom_testkit::program("fio"));
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

/// All that `verify=` takes and that holds more than a name.
const KINDS: [&str; 17] = [
    "verify=meta",
    "verify=md5",
    "verify=crc64",
    "verify=crc32",
    "verify=crc32c",
    "verify=crc32c-intel",
    "verify=crc16",
    "verify=crc7",
    "verify=sha256",
    "verify=sha3-224",
    "verify=sha3-256",
    "verify=sha3-384",
    "verify=sha3-512",
    "verify=xxhash",
    "verify=sha1",
    "verify_pattern=0xdeadbeef%o\"x\"",
    "verify=pattern\nverify_pattern=%o\"abc\"-12",
];

/// Blocks of odd sizes in which hashes have something to pad, patterns, headers that
/// stand further behind, compressible data.
#[test]
fn each_engine_verifies_every_kind_of_the_other() {
    require!(fathom_testkit::program("fio"));
    let shapes = [
        "bs=4k",
        "bs=3000\nverify_interval=1000",
        "bs=8k\nverify_interval=512\nverify_offset=160",
        "bs=4k\nbuffer_compress_percentage=70",
    ];
    let all = |rw: &str| {
        let each = KINDS
            .iter()
            .flat_map(|kind| shapes.map(|shape| (kind, shape)));
        let job = |(n, (kind, shape)): (usize, (&&str, &str))| {
            format!("[j{n}]\nfilename=f{n}\n{kind}\n{shape}\n")
        };
        let jobs: String = each.enumerate().map(job).collect();
        format!("[global]\nsize=120000\nverify_state_save=0\nthread\nrw={rw}\n{jobs}")
    };
    let dir = folder();
    run(dir.path(), &all("write"));
    assert!(fio(dir.path(), &all("read")).0, "native wrote, fio read");
    assert!(fio(dir.path(), &all("write")).0);
    let seen = run(dir.path(), &all("read"));
    assert!(seen.results().jobs.iter().all(|job| job.error == 0));
    // A byte behind every header.
    for n in 0..KINDS.len() * shapes.len() {
        flip(&dir.path().join(format!("f{n}")), 350);
    }
    let mut seen = Seen::default();
    let outcome = try_run(dir.path(), &all("read"), &mut seen).unwrap();
    assert_eq!(outcome, Outcome::Failed);
    for (n, job) in seen.results().jobs.iter().enumerate() {
        let kind = KINDS[n / shapes.len()];
        let expected = if kind == "verify=meta" {
            0
        } else {
            libc::EILSEQ
        };
        assert_eq!(job.error, expected, "{kind} {}", shapes[n % shapes.len()]);
    }
}

/// What fio writes of a seed the native engine makes again: what it dumps as expected is
/// what was there.
#[test]
fn a_mismatch_is_dumped_with_what_was_expected() {
    require!(fathom_testkit::program("fio"));
    for verify in [
        "md5",
        "crc32c\nbuffer_compress_percentage=30",
        "pattern\nverify_pattern=0xabcdef",
    ] {
        let dir = folder();
        let job = format!(
            "[j]\nfilename=f\nsize=256k\nbs=16k\nverify_interval=4k\nverify_state_save=0\nverify={verify}\nverify_dump=1\n"
        );
        assert!(fio(dir.path(), &format!("{job}rw=write\n")).0);
        let whole = fs::read(dir.path().join("f")).unwrap();
        flip(&dir.path().join("f"), 41_000);
        // What has the file's name is replaced, not written to.
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "untouched").unwrap();
        let dumped = |dir: &Path, kind: &str| dir.join(format!("f.40960.{kind}"));
        std::os::unix::fs::symlink(&elsewhere, dumped(dir.path(), "received")).unwrap();
        let mut seen = Seen::default();
        let outcome = try_run(dir.path(), &format!("{job}rw=read\n"), &mut seen).unwrap();
        assert_eq!(outcome, Outcome::Failed, "{verify}");
        let said = &seen.failures()[0].message;
        assert!(said.contains("f.40960.received holds it"), "{said}");
        let damaged = fs::read(dir.path().join("f")).unwrap();
        let read = |kind| fs::read(dumped(dir.path(), kind)).unwrap();
        assert!(read("received") == damaged[40_960..45_056], "{verify}");
        assert!(read("expected") == whole[40_960..45_056], "{verify}");
        assert_eq!(fs::read(&elsewhere).unwrap(), b"untouched");
        // A header that cannot be believed names no seed.
        flip(&dir.path().join("f"), 0);
        if !verify.starts_with("pattern") {
            let mut seen = Seen::default();
            try_run(dir.path(), &format!("{job}rw=read\n"), &mut seen).unwrap();
            assert!(dir.path().join("f.0.hdr_fail").is_file(), "{verify}");
        }
    }
}

/// With a backlog as much is read back as fio reads, within the pass and at its end.
#[test]
fn a_backlog_is_read_back_as_fio_does() {
    require!(fathom_testkit::program("fio"));
    let jobs = [
        "rw=write\nverify_backlog=16",
        "rw=randwrite\nverify_backlog=100\nioengine=libaio\niodepth=8",
        "rw=randwrite\nverify_backlog=32\nverify_backlog_batch=8",
        "rw=write\nverify_backlog=8\nverify_backlog_batch=64",
        "rw=write\nverify_backlog=1\nverify_async=2\nexperimental_verify=0",
        "rw=randwrite\nverify_backlog=1000000\nverify_fatal=1",
    ];
    for options in jobs {
        let (ours, theirs) = (folder(), folder());
        let text = format!("[j]\nbs=4k\nsize=1m\nfilename=f\nverify=md5\n{options}\n");
        let (well, results) = fio(theirs.path(), &text);
        assert!(well, "{options}");
        let native = run(ours.path(), &text);
        assert_eq!(amounts(native.results()), amounts(&results), "{options}");
    }
    let text = "[j]\nbs=4k\nsize=1m\nfilename=f\nverify=md5\nrw=randwrite\nnorandommap\nio_size=4m\nverify_backlog=64\nioengine=io_uring\niodepth=8\n";
    let seen = run(folder().path(), text);
    // Of 64 writes to 256 blocks some go to the same; what is left is read once.
    let read = seen.read(0).total_ios;
    assert_eq!(seen.write(0).total_ios, 1024);
    assert!((700..1024).contains(&read), "{read}");
}

/// verify_only: the blocks of an earlier run are read, none is written.
#[test]
fn an_earlier_run_is_verified_without_a_write() {
    let dir = folder();
    let job = "[j]\nfilename=f\nsize=1m\nbs=4k\nrw=randwrite\nverify=sha256\nverify_state_save=0\n";
    let has_fio = fathom_testkit::program("fio").is_ok();
    for by_fio in [false, true] {
        match by_fio {
            true if has_fio => assert!(fio(dir.path(), job).0),
            true => continue,
            false => drop(run(dir.path(), job)),
        }
        let before = fs::read(dir.path().join("f")).unwrap();
        let seen = run(dir.path(), &format!("{job}verify_only=1\n"));
        assert_eq!(amounts(seen.results()), [(256, 1 << 20), (0, 0)]);
        assert!(fs::read(dir.path().join("f")).unwrap() == before);
    }
    flip(&dir.path().join("f"), 70_000);
    let mut seen = Seen::default();
    let outcome = try_run(dir.path(), &format!("{job}verify_only=1\n"), &mut seen).unwrap();
    assert_eq!(outcome, Outcome::Failed);
    let said = &seen.failures()[0].message;
    assert!(
        said.contains("at offset 69632 failed: its data has changed (sha256 "),
        "{said}"
    );
}

#[test]
fn a_fatal_mismatch_ends_a_job_that_would_go_on() {
    let dir = folder();
    let job = "[j]\nfilename=f\nsize=1m\nbs=4k\nverify=md5\ncontinue_on_error=verify\n";
    run(dir.path(), &format!("{job}rw=write\n"));
    flip(&dir.path().join("f"), 5000);
    flip(&dir.path().join("f"), 500_000);
    let seen = run(dir.path(), &format!("{job}rw=read\n"));
    assert_eq!(seen.results().jobs[0].total_errors, Some(2));
    let mut seen = Seen::default();
    let read = format!("{job}rw=read\nverify_fatal=1\n");
    assert_eq!(
        try_run(dir.path(), &read, &mut seen).unwrap(),
        Outcome::Failed
    );
    assert_eq!(seen.results().jobs[0].total_errors, Some(1));
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
    let faultfs = require!(fathom_testkit::FaultFs::new());
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
    let faultfs = require!(fathom_testkit::FaultFs::new());
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

/// What one engine says of how far its writes came, the other goes by.
#[test]
fn a_verify_state_tells_how_far_there_is_anything_to_verify() {
    require!(fathom_testkit::program("fio"));
    let write = "[j]\nfilename=f\nsize=1m\nbs=4k\nrw=write\nverify=crc32c\ndo_verify=0\n\
        number_ios=100\nverify_state_save=1\n";
    let reads = "[j]\nfilename=f\nsize=1m\nbs=4k\nrw=read\nverify=crc32c\nverify_state_save=0\n";
    let load = format!("{reads}verify_state_load=1\n");
    for depth in ["", "ioengine=libaio\niodepth=8\n"] {
        let (write, load) = (format!("{write}{depth}"), format!("{load}{depth}"));
        let dir = folder();
        run(dir.path(), &write);
        assert!(dir.path().join("local-j-0-verify.state").exists());
        // Behind the hundredth block nothing was written.
        let mut seen = Seen::default();
        let whole = try_run(dir.path(), reads, &mut seen).unwrap();
        assert_eq!(whole, Outcome::Failed);
        let wanted = [(100, 100 * 4096), (0, 0)];
        assert_eq!(amounts(run(dir.path(), &load).results()), wanted, "{depth}");
        let (well, results) = fio(dir.path(), &load);
        assert!(well, "fio goes by the state: {depth}");
        assert_eq!(amounts(&results), wanted, "{depth}");

        let dir = folder();
        let (well, _) = fio(dir.path(), &write);
        assert!(well && dir.path().join("local-j-0-verify.state").exists());
        assert_eq!(amounts(run(dir.path(), &load).results()), wanted, "{depth}");
    }
    // Of a random order the engine knows its own.
    let random = |text: &str| text.replace("rw=", "rw=rand");
    let dir = folder();
    run(dir.path(), &random(write));
    let seen = run(dir.path(), &random(&load));
    assert_eq!(amounts(seen.results()), [(100, 100 * 4096), (0, 0)]);

    fs::write(dir.path().join("local-j-0-verify.state"), "x").unwrap();
    let mut seen = Seen::default();
    let refused = try_run(dir.path(), &load, &mut seen).unwrap();
    assert_eq!(refused, Outcome::Failed);
    let said = format!("{:?}", seen.failures());
    assert!(
        said.contains("verify_state_load: it is too short"),
        "{said}"
    );
}
