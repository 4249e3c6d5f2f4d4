//! Engines beside those that read and write by a system call each: what they do to files.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use fathom_fio_output::json;
use fathom_testkit::skip;

use crate::native::{Seen, folder, run, try_run};

/// Names, lengths and allocated pieces of 32 KiB (the file system's own blocks come and go)
/// of what is in a folder, job files apart.
fn files(dir: &Path) -> BTreeMap<String, (u64, u64)> {
    let entries = std::fs::read_dir(dir).unwrap().map(Result::unwrap);
    let named = entries.map(|entry| (entry.file_name().into_string().unwrap(), entry));
    let kept = named.filter(|(name, _)| !name.ends_with(".fio") && name != "fio.out");
    let of = |entry: std::fs::DirEntry| {
        entry
            .metadata()
            .map(|meta| (meta.len(), meta.blocks() / 64))
    };
    kept.map(|(name, entry)| (name, of(entry).unwrap()))
        .collect()
}

/// What a job does and leaves, under both engines alike; whether fio is installed.
fn alike(options: &str, before: &[(&str, usize)]) -> bool {
    let (ours, theirs) = (folder(), folder());
    for dir in [ours.path(), theirs.path()] {
        for (name, len) in before {
            std::fs::write(dir.join(name), vec![7; *len]).unwrap();
        }
    }
    let text = format!("[j]\nbs=4k\n{options}\n");
    std::fs::write(theirs.path().join("j.fio"), &text).unwrap();
    let mut fio = Command::new("fio");
    let fio = fio.args(["--output-format=json", "j.fio"]);
    let Ok(output) = fio.current_dir(theirs.path()).output() else {
        return false;
    };
    assert!(output.status.success(), "{options}: {output:?}");
    let found = json::scan(&output.stdout).documents.remove(0).results;
    let seen = run(ours.path(), &text);
    let amounts = |results: &fathom_model::Results| {
        let job = &results.jobs[0];
        [&job.read, &job.write, &job.trim].map(|dir| {
            let dir = dir.clone().unwrap_or_default();
            (
                dir.total_ios,
                dir.io_bytes,
                dir.clat.and_then(|clat| clat.n).unwrap_or(0),
            )
        })
    };
    assert_eq!(amounts(seen.results()), amounts(&found), "{options}");
    assert_eq!(files(ours.path()), files(theirs.path()), "{options}");
    true
}

#[test]
fn engines_do_to_files_what_fios_do() {
    let jobs: [(&str, &[(&str, usize)]); 10] = [
        (
            "ioengine=filecreate\nfilesize=4k\nnrfiles=20\nopenfiles=1\ncreate_on_open=1\nfallocate=none",
            &[],
        ),
        ("ioengine=filestat\nfilesize=4k\nnrfiles=20", &[]),
        (
            "ioengine=filedelete\nfilesize=4k\nnrfiles=20\nunlink=0",
            &[],
        ),
        (
            "ioengine=filedelete\nfilesize=4k\nfilename=f:g",
            &[("f", 4096), ("g", 4096), ("h", 1)],
        ),
        (
            "ioengine=falloc\nrw=write\nsize=256k\nfilename=f\nfallocate=none",
            &[],
        ),
        (
            "ioengine=falloc\nrw=randtrim\nsize=256k\nfilename=f",
            &[("f", 256 << 10)],
        ),
        (
            "ioengine=ftruncate\nrw=write\nsize=256k\nfilename=f",
            &[("f", 256 << 10)],
        ),
        (
            "ioengine=splice\nrw=write\nsize=256k\nfilename=f\nfallocate=none",
            &[],
        ),
        (
            "ioengine=splice\nrw=randread\nbs=128k\nsize=1m\nfilename=f",
            &[("f", 1 << 20)],
        ),
        ("ioengine=null\nrw=randtrimwrite\nsize=256k", &[]),
    ];
    for (options, before) in jobs {
        if !alike(options, before) {
            return skip("engines_do_to_files_what_fios_do", "fio is not installed");
        }
    }
}

/// Data come and go whole through the pipe, also more than it holds.
#[test]
fn splice_moves_data_whole() {
    let dir = folder();
    let write = "[j]\nioengine=splice\nfilename=f\nsize=1m\nbs=200k\nverify=crc32c\nrw=";
    let seen = run(dir.path(), &format!("{write}write\n"));
    assert_eq!(seen.read(0).total_ios, 5);
    run(
        dir.path(),
        &format!("{}randread\n", write.replace("splice", "psync")),
    );
    run(dir.path(), &format!("{write}randread\n"));
}

/// What is done to a file as a whole stands in the log of clat alone, without bytes.
#[test]
fn files_as_a_whole_are_logged_as_fio_does() {
    let text = "[j]\nioengine=filestat\nnrfiles=3\nfilesize=4k\nwrite_lat_log=l\n\
        write_bw_log=l\nwrite_iops_log=l\nlog_offset=1\n";
    let logs = |dir: &Path| {
        let of = |kind: &str| {
            let log = std::fs::read_to_string(dir.join(format!("l_{kind}.1.log"))).unwrap();
            let entry = |line: &str| line.split(", ").skip(2).collect::<Vec<_>>().join(", ");
            log.lines().map(entry).collect::<Vec<String>>()
        };
        ["slat", "clat", "lat", "bw", "iops"].map(of)
    };
    let (ours, theirs) = (folder(), folder());
    std::fs::write(theirs.path().join("j.fio"), text).unwrap();
    let fio = Command::new("fio")
        .arg("j.fio")
        .current_dir(theirs.path())
        .output();
    if fio.is_err() {
        return skip(
            "files_as_a_whole_are_logged_as_fio_does",
            "fio is not installed",
        );
    }
    run(ours.path(), text);
    assert_eq!(logs(ours.path()), logs(theirs.path()));
}

/// cpuio does no I/O: its chunks are reads of nothing, with pauses that make up the load.
#[test]
fn cpuio_keeps_a_processor_busy() {
    let dir = folder();
    let seen = run(
        dir.path(),
        "[j]\nioengine=cpuio\ncpuload=50\ncpuchunks=2000\nnumber_ios=5\nrw=write\nsize=1g\n",
    );
    let read = seen.read(0);
    assert_eq!((read.total_ios, read.io_bytes), (5, 0));
    assert!(read.clat.as_ref().unwrap().min_ns >= 2_000_000);
    let written = seen.results().jobs[0].write.as_ref();
    assert!(written.is_none_or(|write| write.total_ios == 0));
    // As long as any job does I/O, also one that comes later.
    let text = "[global]\nsize=64k\n[c]\nioengine=cpuio\ncpuload=100\ncpumode=qsort\n\
        exit_on_io_done=1\n[i]\nioengine=null\n[k]\nioengine=null\nwait_for=i\n";
    let seen = run(dir.path(), text);
    assert!(seen.results().jobs.iter().all(|job| job.error == 0));
    let mut seen = Seen::default();
    let idle = try_run(dir.path(), "[j]\nioengine=cpuio\nruntime=1\n", &mut seen);
    assert!(idle.unwrap_err().to_string().contains("needs cpuload"));
}
