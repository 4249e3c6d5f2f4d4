//! Logs of I/Os: what one engine writes the other replays, with the same I/Os in the
//! same order; and nothing but what can be judged.

use std::fs;
use std::path::Path;
use std::process::Command;

use fathom_engine::Outcome;

use crate::native::{Seen, folder, run, try_run};

/// I/Os as a log has them: direction, bytes, offset.
type IoList = Vec<(u32, u64, u64)>;

/// What a replay did, from its own log with offsets.
fn done(folder: &Path) -> IoList {
    let log = fs::read_to_string(folder.join("did_clat.1.log"));
    // fio's exit says nothing of a job that a signal ended.
    let said = || fs::read_to_string(folder.join("fio.out")).unwrap_or_default();
    let text = log.unwrap_or_else(|error| panic!("{error}: {}", said()));
    let number = |word: &str| word.trim().parse::<u64>().unwrap();
    let io = |line: &str| {
        let words: Vec<&str> = line.split(',').collect();
        (number(words[2]) as u32, number(words[3]), number(words[4]))
    };
    text.lines().map(io).collect()
}

/// What a text log asks for.
fn logged(path: &Path) -> IoList {
    let text = fs::read_to_string(path).unwrap();
    let mut ios = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let kinds = ["read", "write", "trim"];
        if words.len() == 5
            && let Some(dir) = kinds.iter().position(|&kind| kind == words[2])
        {
            let [offset, len] = [words[3], words[4]].map(|word| word.parse().unwrap());
            ios.push((dir as u32, len, offset));
        }
    }
    ios
}

const DID: &str = "write_lat_log=did\nlog_offset=1\n";

/// Runs fio itself; whether it is there.
fn fio(dir: &Path, text: &str) -> bool {
    fs::write(dir.join("fio.fio"), text).unwrap();
    let told = Command::new("fio")
        .args(["--output=fio.out", "fio.fio"])
        .current_dir(dir)
        .output();
    let Ok(told) = told else { return false };
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(told.status.success(), "{said}");
    true
}

/// The jobs of which a log is written: several files, sizes, syncs and depths.
const WRITTEN: [&str; 4] = [
    "rw=randrw\nbsrange=4k-16k\nsize=256k\nfilename=data\n",
    "rw=write\nbs=4k\nsize=64k\nnrfiles=3\nfsync=4\n",
    "rw=randwrite\nbs=4k\nsize=128k\nioengine=libaio\niodepth=8\nfilename=data\nloops=2\n",
    "rw=write\nbs=4k\nsize=64k\nfilename=data\nverify=crc32c\n",
];

#[test]
fn a_log_of_one_engine_is_replayed_by_the_other() {
    let test = "a_log_of_one_engine_is_replayed_by_the_other";
    for options in WRITTEN {
        let text = format!("[j]\n{options}write_iolog=log\n");
        let replay = format!("[j]\nread_iolog=log\nreplay_no_stall=1\n{DID}");
        let dir = folder();
        let seen = run(dir.path(), &text);
        let wanted = logged(&dir.path().join("log"));
        let direction = |job: &mut fathom_model::JobResult, dir| {
            let result = job.direction_mut(dir).unwrap().clone().unwrap_or_default();
            result.total_ios
        };
        let mut job = seen.results().jobs[0].clone();
        use fathom_model::Direction::{Read, Write};
        let ios = direction(&mut job, Read) + direction(&mut job, Write);
        assert_eq!(wanted.len() as u64, ios, "{options}");
        if !fio(dir.path(), &replay) {
            return fathom_testkit::skip(test, "fio is not installed");
        }
        assert_eq!(done(dir.path()), wanted, "fio replays {options}");
        run(dir.path(), &replay);
        assert_eq!(done(dir.path()), wanted, "its own of {options}");

        let dir = folder();
        assert!(fio(dir.path(), &text));
        let wanted = logged(&dir.path().join("log"));
        run(dir.path(), &replay);
        assert_eq!(done(dir.path()), wanted, "fio's of {options}");
        let chunked = format!("{replay}read_iolog_chunked=1\n");
        run(dir.path(), &chunked);
        assert_eq!(done(dir.path()), wanted, "in parts: {options}");
    }
}

/// Logs with what verify makes of them: written twice, read in between, of several sizes.
const VERIFIED: [(&str, &str); 7] = [
    ("", "write 0 4096\nwrite 4096 4096\nwrite 8192 4096"),
    ("", "write 8192 4096\nwrite 0 4096\nwrite 8192 4096"),
    // fio 3.33 finds fault with reads between writes that do not come in order.
    (
        "",
        "write 0 4096\nread 0 4096\nwrite 8192 4096\nread 4096 512",
    ),
    (
        "",
        "write 0 8192\nwrite 8192 16384\nwrite 4096 4096\nwrite 40960 512",
    ),
    ("bs=1k\n", "write 8192 4096\nwrite 0 1024"),
    ("do_verify=0\n", "write 8192 4096\nwrite 0 4096"),
    (
        "verify_backlog=2\n",
        "write 8192 4096\nwrite 0 4096\nwrite 4096 4096\nwrite 20480 4096\nwrite 16384 4096",
    ),
];

#[test]
fn a_log_is_verified_as_fio_does() {
    let test = "a_log_is_verified_as_fio_does";
    for (options, ios) in VERIFIED {
        let [ours, theirs] = [folder(), folder()];
        let lines: String = ios.lines().map(|io| format!("data {io}\n")).collect();
        let log = format!("fio version 2 iolog\ndata add\ndata open\n{lines}data close\n");
        for dir in [&ours, &theirs] {
            fs::write(dir.path().join("log"), &log).unwrap();
            // What each has written the other then reads.
            let reads = log.replace("write", "read");
            fs::write(dir.path().join("reads"), reads).unwrap();
        }
        let text = format!("[j]\nread_iolog=log\nverify=crc32c\n{options}{DID}");
        if !fio(theirs.path(), &text) {
            return fathom_testkit::skip(test, "fio is not installed");
        }
        run(ours.path(), &text);
        assert_eq!(done(ours.path()), done(theirs.path()), "{log}");
        let chunked = format!("{text}read_iolog_chunked=1\n");
        run(ours.path(), &chunked);
        assert_eq!(done(ours.path()), done(theirs.path()), "in parts: {log}");
        if options.is_empty() && !ios.contains("read") && !ios.contains("512") {
            let reads = text.replace("=log", "=reads");
            assert!(fio(ours.path(), &reads));
            run(theirs.path(), &reads);
        }
    }
}

/// A replay of an earlier one's log, in which a block is no longer what was written.
#[test]
fn what_a_log_wrote_is_checked_without_writing_it_anew() {
    let dir = folder();
    let log = "fio version 2 iolog\ndata add\ndata write 8192 4096\ndata read 0 512\n\
        data sync 0 0\ndata write 0 4096\n";
    fs::write(dir.path().join("log"), log).unwrap();
    let text = format!("[j]\nread_iolog=log\nverify=md5\n{DID}");
    let only = format!("{text}verify_only=1\n");
    run(dir.path(), &text);
    run(dir.path(), &only);
    assert_eq!(done(dir.path()), [(0, 4096, 0), (0, 4096, 8192)]);
    let path = dir.path().join("data");
    let mut data = fs::read(&path).unwrap();
    data[8192 + 100] ^= 1;
    fs::write(&path, &data).unwrap();
    let said = refusal(dir.path(), &only);
    assert!(said.contains("offset 8192 failed"), "{said}");
    assert_eq!(fs::read(&path).unwrap(), data);
}

/// A log is written behind what its file holds, and both parts are replayed.
#[test]
fn a_log_goes_on_where_it_ended() {
    let dir = folder();
    let text = "[j]\nrw=write\nbs=4k\nsize=16k\nfilename=data\nwrite_iolog=log\n";
    run(dir.path(), text);
    run(dir.path(), text);
    let log = fs::read_to_string(dir.path().join("log")).unwrap();
    assert_eq!(log.matches("fio version 3 iolog\n").count(), 2);
    let seen = run(dir.path(), "[j]\nread_iolog=log\n");
    assert_eq!(seen.write(0).total_ios, 8);
    assert!(fs::metadata(dir.path().join("data")).unwrap().len() == 16 << 10);
}

/// A record of a block trace: kind, sector, bytes.
pub(super) fn record(
    order: fn(u32) -> [u8; 4],
    kind: u32,
    sector: u32,
    bytes: u32,
    at: u32,
) -> Vec<u8> {
    // Fields of eight bytes are small: their upper half is 0.
    let eight = |n: u32| match order(1) == 1u32.to_le_bytes() {
        true => [order(n), order(0)].concat(),
        false => [order(0), order(n)].concat(),
    };
    [
        order(0x6561_7407).to_vec(),
        order(0).to_vec(),
        eight(at),
        eight(sector),
        order(bytes).to_vec(),
        order(kind << 16 | 1).to_vec(),
        [order(1), order(7 << 20), order(0), order(0)].concat(),
    ]
    .concat()
}

/// Kinds of a block trace (include/uapi/linux/blktrace_api.h).
pub(super) const READ: u32 = 1;
pub(super) const WRITE: u32 = 2;
const DISCARD: u32 = 1 << 13;

#[test]
fn a_block_trace_is_replayed_as_fio_does() {
    let test = "a_block_trace_is_replayed_as_fio_does";
    for order in [u32::to_le_bytes, u32::to_be_bytes] {
        let ios = [
            (WRITE, 0, 65_536),
            (WRITE, 128, 4096),
            (READ, 8, 512),
            (READ, 17, 3072),
            (DISCARD, 64, 8192),
            (WRITE, 40, 1024),
        ];
        let trace: Vec<u8> = (1..)
            .zip(ios)
            .flat_map(|(n, (kind, sector, bytes))| record(order, kind, sector, bytes, n * 1000))
            .collect();
        // fio trims devices only.
        for options in [
            "replay_skip=trim\n",
            "replay_skip=read,trim\n",
            "replay_skip=trim\nreplay_align=4096\n",
            "replay_skip=trim\nreplay_scale=2\n",
            "replay_skip=trim\nreplay_scale=2\nreplay_align=1024\nread_iolog_chunked=1\n",
        ] {
            let [ours, theirs] = [folder(), folder()];
            for dir in [&ours, &theirs] {
                fs::write(dir.path().join("trace"), &trace).unwrap();
                fs::write(dir.path().join("data"), vec![7; 1 << 20]).unwrap();
            }
            let text =
                format!("[j]\nread_iolog=trace\nreplay_redirect=data\n{options}{DID}iodepth=1\n");
            run(ours.path(), &text);
            // How much fio reads in parts depends on the time it takes.
            if !fio(theirs.path(), &text.replace("read_iolog_chunked=1\n", "")) {
                return fathom_testkit::skip(test, "fio is not installed");
            }
            assert_eq!(done(ours.path()), done(theirs.path()), "{options}");
            assert!(!done(ours.path()).is_empty());
        }
        let dir = folder();
        fs::write(dir.path().join("trace"), &trace).unwrap();
        fs::write(dir.path().join("data"), vec![7; 1 << 20]).unwrap();
        run(
            dir.path(),
            &format!("[j]\nread_iolog=trace\nreplay_redirect=data\n{DID}iodepth=1\n"),
        );
        let wanted = ios.map(|(kind, sector, bytes)| {
            let dir = [READ, WRITE, DISCARD].iter().position(|&k| k == kind);
            (
                dir.unwrap() as u32,
                u64::from(bytes),
                u64::from(sector) * 512,
            )
        });
        assert_eq!(done(dir.path()), wanted);
        let data = fs::read(dir.path().join("data")).unwrap();
        assert!(data[64 * 512..][..8192].iter().all(|&byte| byte == 0));
    }
}

fn refusal(dir: &Path, text: &str) -> String {
    let mut seen = Seen::default();
    match try_run(dir, text, &mut seen) {
        Err(error) => error.to_string(),
        Ok(outcome) => {
            assert_eq!(outcome, Outcome::Failed, "{text}");
            let told = seen.failures().into_iter().map(|f| format!("{f:?}"));
            told.collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn what_cannot_be_replayed_is_refused_and_touches_nothing() {
    let dir = folder();
    let file = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
    file("short", "some words");
    let log = |lines: &str| file("log", &format!("fio version 2 iolog\n{lines}"));
    let refused = |lines: &str, more: &str, what: &str| {
        log(lines);
        let said = refusal(dir.path(), &format!("[j]\nread_iolog=log\n{more}\n"));
        assert!(said.contains(what), "{lines} {more}: {said}");
    };
    let io = "new add\nnew open\nnew write 0 4096\nnew close\n";
    refused(
        "new add\nnew write 0 x\n",
        "",
        "log:3:13: 'x' is not a number",
    );
    refused("new write 0 1\n", "", "'new' was not added");
    refused("new add\n", "", "holds no I/O");
    refused("new add\nnew read 0 1\n", "", "only reads it");
    refused("short add\nshort read 0 4096\n", "", "goes up to 4096");
    let most = "new add\nnew write 0 4294967295\n";
    refused(most, "", "in memory");
    let device = "/dev/fathom-none add\n/dev/fathom-none write 0 1\n";
    refused(device, "", "is not there");
    refused(io, "allow_file_create=0", "forbids to make it");
    refused(io, "directory=d", "names its files itself");
    let odd = "new add\nnew write 0 6144\n";
    refused(odd, "verify=crc32c", "every 4096");
    refused(io, "verify=crc32c\nverify_state_load=1", "in the order");
    let trims = "new add\nnew trim 0 4096\nnew write 0 4096\n";
    refused(trims, "verify=crc32c", "what is trimmed");
    let small = "new add\nnew write 0 40\n";
    refused(small, "verify=crc32c", "44 bytes of their header");
    refused(io, "ioengine=mmap", "engines that read and write");
    refused(io, "write_iolog=other", "has one already");
    refused(io, "replay_align=3000", "power of two");
    refused(io, "replay_skip=fsync", "'fsync' is not one of");
    refused(io, "read_iolog=-", "standard input");
    refused(io, "read_iolog=.", "is a directory");
    refused(io, "read_iolog=none", "No such file");
    let clones = "[j]\nrw=write\nsize=4k\nnumjobs=2\nwrite_iolog=own\n";
    assert!(refusal(dir.path(), clones).contains("each clone"));
    let both = "[global]\nrw=write\nsize=4k\nwrite_iolog=own\n[a]\n[b]\n";
    assert!(refusal(dir.path(), both).contains("another job has the log 'own'"));
    let blank = "[j]\nrw=write\nsize=4k\nfilename=a b\nwrite_iolog=own\n";
    assert!(refusal(dir.path(), blank).contains("no log can hold"));
    for name in ["new", "own", "other", "j.0.0"] {
        assert!(!dir.path().join(name).exists(), "{name}");
    }
    assert_eq!(fs::read(dir.path().join("short")).unwrap(), b"some words");
}

/// Each clone takes the next of several logs; with more clones from the first again.
#[test]
fn clones_take_the_logs_in_turn() {
    let dir = folder();
    for (log, count) in [("x", 1), ("y", 3)] {
        let ios: String = (0..count)
            .map(|n| format!("{log}f write {n} 1\n"))
            .collect();
        let text = format!("fio version 2 iolog\n{log}f add\n{ios}");
        fs::write(dir.path().join(log), text).unwrap();
    }
    let seen = run(dir.path(), "[j]\nread_iolog=x:y\nnumjobs=3\n");
    let ios: Vec<u64> = (0..3).map(|job| seen.write(job).total_ios).collect();
    assert_eq!(ios, [1, 3, 1]);
}

#[test]
fn block_traces_are_merged_by_time() {
    let dir = folder();
    let at = |name: &str| dir.path().join(name);
    let little = u32::to_le_bytes;
    let first = [(1, 1000), (2, 3000)].map(|(n, at)| record(little, WRITE, n * 8, 512, at));
    let second =
        [(11, 1500), (12, 2000)].map(|(n, at)| record(u32::to_be_bytes, READ, n * 8, 512, at));
    fs::write(at("first"), first.concat()).unwrap();
    fs::write(at("second"), second.concat()).unwrap();
    fs::write(at("data"), vec![7; 1 << 20]).unwrap();
    let text = format!(
        "[j]\nread_iolog=first:second\nmerge_blktrace_file=merged\nreplay_redirect=data\n\
         iodepth=1\n{DID}"
    );
    let sectors = |options: &str| -> Vec<u64> {
        run(dir.path(), &format!("{text}{options}"));
        let done = done(dir.path());
        done.iter().map(|(_, _, offset)| offset / 4096).collect()
    };
    assert_eq!(sectors(""), [1, 11, 12, 2]);
    // The second in its half: 750 and 1000, behind the first's.
    assert_eq!(sectors("merge_blktrace_scalars=100:50\n"), [11, 1, 12, 2]);
    // It comes again from 2000 on: 3500 and 4000.
    let twice = [1, 11, 12, 2, 11, 12];
    assert_eq!(sectors("merge_blktrace_iters=1:2\n"), twice);
    // What was merged is a trace like any other, for fio, too.
    let replay = format!("[j]\nread_iolog=merged\nreplay_redirect=data\niodepth=1\n{DID}");
    if fio(dir.path(), &replay) {
        let done = done(dir.path());
        let sectors: Vec<u64> = done.iter().map(|(_, _, offset)| offset / 4096).collect();
        assert_eq!(sectors, twice);
    }
    let refused = |options: &str, what: &str| {
        let said = refusal(dir.path(), &format!("{text}{options}"));
        assert!(said.contains(what), "{options}: {said}");
    };
    refused("merge_blktrace_iters=2\n", "for each log");
    refused("merge_blktrace_iters=0:1\n", "at least 1");
    refused("merge_blktrace_file=second\n", "is one of the logs");
    refused("read_iolog=first:job.fio\n", "job.fio:1:1");
    assert_eq!(fs::read(at("second")).unwrap(), second.concat());
}
