//! The same job on both engines: the same I/Os, the same files.

use std::process::Command;

use fathom_fio_output::json;

use crate::native::{folder, run};

/// Runs fio itself; `None` where it is not installed.
fn fio(dir: &std::path::Path, text: &str) -> Option<fathom_model::Results> {
    let job_file = dir.join("fio.fio");
    std::fs::write(&job_file, text).unwrap();
    let output = Command::new("fio")
        .args(["--output-format=json", "fio.fio"])
        .current_dir(dir)
        .output()
        .ok()?;
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(json::scan(&output.stdout).documents.remove(0).results)
}

/// Jobs that end by their sizes.
const SIZED: &[&str] = &[
    "rw=write\nbs=4k\nsize=10k",
    "rw=write\nbs=4k\nsize=64k\nio_size=10k",
    "rw=randwrite\nbs=4k\nsize=64k\nio_size=10k",
    "rw=randwrite\nbs=4k\nsize=1m\noffset=64k",
    "rw=randwrite\nbs=4k\nsize=256k\nio_size=1m",
    "rw=write\nbs=8k\nsize=128k\nloops=3",
    "rw=write\nbs=4k\nsize=64k\nfilesize=256k",
    "rw=randread\nbs=16k\nsize=1m",
    "rw=read\nbs=4k\nsize=1m\nnrfiles=4",
    "rw=write\nbs=4k\nsize=1m\nnrfiles=3",
    "rw=randwrite\nbs=4k\nsize=1m\nnrfiles=7",
    "rw=read\nbs=512\nsize=5001\nnrfiles=2",
    "rw=write:4k\nbs=4k\nsize=256k",
    "rw=write:12k\nbs=4k\nsize=256k",
    "rw=write:-8k\nbs=4k\nsize=256k",
    "rw=read:8k\nbs=16k\nsize=256k",
    "rw=write:100k\nbs=4k\nsize=256k\noffset=64k",
    "rw=read:4k\nbs=4k\nsize=64k\nfilesize=256k\nloops=2",
    "rw=randwrite:4\nbs=4k\nsize=1m",
    "rw=randwrite:4\nrw_sequencer=identical\nbs=4k\nsize=1m",
    "rw=write\nbs=4k\nfilesize=64k-64k\nsize=64k",
    "rw=write\nbs=4k\nkb_base=1000\nsize=1024k",
    "rw=write\nbs=4k\nsize=4k",
    "rw=write\nbs=4k\nsize=1m\nnumber_ios=1",
    "rw=write\nbs=4k\nsize=1m\nnumber_ios=100",
    "rw=randwrite\nbs=4k\nsize=50%\nfilesize=1m",
    "rw=write\nbs=64k\nsize=1m\nnumjobs=3\noffset_increment=1m\nfilename=shared\ngroup_reporting",
    "rw=write:112k\nbs=16k\nsize=1m\nio_size=1m\noffset=1m\nloops=2\nverify=crc32c\nverify_backlog=1\nverify_state_save=0",
    "rw=write:112k\nbs=16k\nsize=1m\nio_size=1m\noffset=1m\nloops=2\nverify=crc32c\nverify_state_save=0",
    "rw=write\nbs=4k\nsize=64k\nio_size=256k\nverify=crc32c\nverify_backlog=4\nverify_state_save=0",
    "rw=write\nbs=4k\nsize=64k\nio_size=256k\nverify=crc32c\nverify_backlog=4\nverify_backlog_batch=2\nverify_state_save=0",
    "rw=write\nbs=4k,64k\nsize=1m\nbs_is_seq_rand=1",
    "rw=randwrite\nbs=4k,64k\nsize=1m\nbs_is_seq_rand=1\nnorandommap",
    "rw=write\nbssplit=4k/50:6k/50\nsize=1m",
    "rw=randwrite\nbs=4k\nsize=1m\npercentage_random=50",
    "rw=write\nbs=4k\nsize=64k\nfile_append=1",
    "rw=write\nbs=4k\nsize=64k\ncreate_only=1",
    "rw=write\nbs=4k\nsize=512k\nfilesize=1m\noffset=33%\noffset_align=64k",
    "rw=write\nbs=4k\nsize=256k\nnrfiles=4\nfile_service_type=roundrobin:3\nnumber_ios=16\nfallocate=none",
];

#[test]
fn a_fixed_size_gives_the_same_bytes_ios_and_file_sizes() {
    for options in SIZED {
        let (ours, theirs) = (folder(), folder());
        let text = format!("[j]\nioengine=psync\n{options}\n");
        let Some(fio) = fio(theirs.path(), &text) else {
            let test = "a_fixed_size_gives_the_same_bytes_ios_and_file_sizes";
            return fathom_testkit::skip(test, "fio is not installed");
        };
        let native = run(ours.path(), &text);
        for dir in [
            fathom_model::Direction::Read,
            fathom_model::Direction::Write,
        ] {
            let of = |results: &fathom_model::Results| {
                let mut job = results.jobs[0].clone();
                let result = job.direction_mut(dir).unwrap().clone().unwrap_or_default();
                (result.io_bytes, result.total_ios)
            };
            assert_eq!(of(native.results()), of(&fio), "{options}: {dir:?}");
        }
        for entry in std::fs::read_dir(theirs.path()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            if name.to_string_lossy().ends_with(".fio") {
                continue;
            }
            let size = std::fs::metadata(ours.path().join(&name))
                .map(|meta| meta.len())
                .ok();
            let wanted = entry.metadata().unwrap().len();
            assert_eq!(size, Some(wanted), "{options}: {name:?}");
        }
    }
}

/// The second run finds what the first one wrote.
#[test]
fn a_file_is_written_on_from_its_end_and_what_it_holds_stays() {
    let test = "a_file_is_written_on_from_its_end_and_what_it_holds_stays";
    let first = "[j]\nrw=write\nbs=4k\nsize=64k\nfilename=f\nbuffer_pattern=0xab\n";
    let append =
        "[j]\nrw=randwrite\nbs=4k\nsize=32k\nfilename=f\nbuffer_pattern=0xcd\nfile_append=1\n";
    let (ours, theirs) = (folder(), folder());
    for text in [first, append] {
        if fio(theirs.path(), text).is_none() {
            return fathom_testkit::skip(test, "fio is not installed");
        }
        run(ours.path(), text);
    }
    let [ours, theirs] = [ours, theirs].map(|dir| std::fs::read(dir.path().join("f")).unwrap());
    assert!(ours[..64 << 10].iter().all(|byte| *byte == 0xab));
    assert!(ours[64 << 10..].iter().all(|byte| *byte == 0xcd));
    assert!(ours == theirs, "{} and {} bytes", ours.len(), theirs.len());
}

#[test]
fn a_full_file_system_ends_a_job_that_fills_it_without_an_error() {
    let test = "a_full_file_system_ends_a_job_that_fills_it_without_an_error";
    let small = match fathom_testkit::SmallFs::new(32 << 20, "") {
        Ok(small) => small,
        Err(reason) => return fathom_testkit::skip(test, &reason),
    };
    // What is said of it has its place elsewhere.
    let dir = folder();
    let file = small.path().join("f");
    let text = "[j]\nrw=write\nbs=64k\nfilename=FILE\nfill_device=1\n[k]\nstonewall\nrw=read\nfilename=g\nsize=4k\nbs=4k\ncreate_only=1\n"
        .replace("FILE", file.to_str().unwrap());
    let seen = run(dir.path(), &text);
    let filled = seen.results().jobs[0].write.clone().unwrap();
    let length = std::fs::metadata(&file).unwrap().len();
    assert_eq!(seen.results().jobs[0].error, 0);
    // The last block may be written in part, which is not counted.
    assert!(
        length > 16 << 20 && length - filled.io_bytes < 64 << 10,
        "{length}"
    );
    std::fs::remove_file(&file).unwrap();
    let Some(fio) = fio(dir.path(), &text) else {
        return fathom_testkit::skip(test, "fio is not installed");
    };
    let theirs = fio.jobs[0].write.clone().unwrap();
    assert!(theirs.io_bytes.abs_diff(filled.io_bytes) < 2 << 20);
}

/// fio closes and opens its files between two passes, which drops their pages:
/// without that a looping read job would measure memory.
#[test]
fn every_pass_over_a_file_begins_with_a_cold_cache_when_invalidate_is_on() {
    // A disk of its own: nobody else's reads are counted.
    let small = match fathom_testkit::SmallFs::new(64 << 20, "") {
        Ok(small) => small,
        Err(reason) => {
            return fathom_testkit::skip(
                "every_pass_over_a_file_begins_with_a_cold_cache_when_invalidate_is_on",
                &reason,
            );
        }
    };
    let read = |loops: u32| {
        let text = format!("[j]\nrw=read\nbs=1m\nsize=32m\nloops={loops}\nfilename=f\n");
        run(small.path(), &text).results().disks[0].read_ios
    };
    // The first run lays the file out.
    let (_, once, four_times) = (read(1), read(1), read(4));
    assert!(
        once > 0 && four_times >= 3 * once,
        "once {once}, four times {four_times}"
    );
}

/// A job that draws its blocks anew comes to no end at which fio would open the files
/// again: what has been read once is in memory.
#[test]
fn a_time_based_job_that_draws_anew_keeps_the_cache() {
    let test = "a_time_based_job_that_draws_anew_keeps_the_cache";
    let small = match fathom_testkit::SmallFs::new(64 << 20, "") {
        Ok(small) => small,
        Err(reason) => return fathom_testkit::skip(test, &reason),
    };
    let text = "[j]\nrw=randread\nbs=4k\nsize=4m\nnorandommap\ntime_based\nruntime=120\nnumber_ios=8192\nfilename=f\n";
    let seen = run(small.path(), text);
    // The file system's own reads come to a few hundred.
    let (from_disk, all) = (seen.results().disks[0].read_ios, seen.read(0).total_ios);
    assert!(from_disk < 2048 && all == 8192, "{from_disk} of {all}");
}
