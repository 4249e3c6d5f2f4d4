//! On a machine of its own: NVMe namespaces by their generic devices, and those with zones,
//! beside fio.

use fathom_testkit::{Guest, GuestAnswer, long, require};

use crate::guest::job_on;
use crate::guests::{MIB, NEWER_GUEST, disk_of};

const NAMED: &str = "--destroy GENERIC";

/// The same job by fio, which says nothing where all is well.
fn fio_on(guest: &mut Guest, fio: &str, options: &str, disk: &str) -> GuestAnswer {
    let options = options.split(' ').map(|option| format!("--{option}"));
    let options: Vec<String> = options.collect();
    guest.run(&format!(
        "cd /tmp && {fio} --name=j --bs=64k --filename=/dev/{disk} --verify_state_save=0 --output=/dev/null {}",
        options.join(" ")
    ))
}

/// What the native engine writes by commands is what fio reads by them and by blocks, and
/// the other way round; every option of rings has it all.
#[test]
fn commands_by_a_generic_nvme_device_reach_its_disk() {
    let mut guest = require!(NEWER_GUEST.take());
    let disk = disk_of(&mut guest, "GENERIC", 32 * MIB);
    let generic = disk.replace("nvme", "ng");
    guest.must(&format!("test -c /dev/{generic}"));
    is_judged_by_its_disk(&mut guest, &disk, &generic);

    // Poll queues come with a reset (drivers/nvme/host/pci.c, `poll_queues`).
    guest.must("echo 1 >/sys/module/nvme/parameters/poll_queues");
    guest.must(&format!(
        "echo 1 >/sys/block/{disk}/device/reset_controller && until [ $(cat /sys/block/{disk}/device/state) = live ]; do usleep 100000; done"
    ));
    let seeds = [
        "iodepth=8",
        "iodepth=8 fixedbufs registerfiles",
        "iodepth=1",
    ];
    for (seed, more) in (1..).zip(
        seeds
            .iter()
            .chain(&["iodepth=4 hipri", "iodepth=4 sqthread_poll"]),
    ) {
        let ours = format!(
            "ioengine=io_uring_cmd rw=randwrite size=2m verify=crc32c randseed={seed} {more}"
        );
        let ran = job_on(&mut guest, &ours, &generic, NAMED);
        assert_eq!(ran.code, 0, "{more}: {ran:?}");
        let doc: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        for dir in ["read", "write"] {
            assert_eq!(doc["jobs"][0][dir]["io_bytes"], 2 * MIB, "{ran:?}");
        }
        for (engine, disk) in [("io_uring_cmd", &generic), ("psync", &disk)] {
            let read = format!("ioengine={engine} rw=read size=2m verify=crc32c");
            let theirs = fio_on(&mut guest, "/guest/fio", &read, disk);
            assert_eq!(theirs.code, 0, "{more}: {theirs:?}");
        }
    }
    let theirs = "ioengine=io_uring_cmd rw=randwrite size=2m verify=crc32c do_verify=0 iodepth=8";
    for fio in ["/guest/fio", "fio"] {
        let wrote = fio_on(&mut guest, fio, theirs, &generic);
        assert_eq!(wrote.code, 0, "{fio}: {wrote:?}");
        for (engine, disk) in [
            ("io_uring_cmd cmd_type=nvme iodepth=4", &generic),
            ("psync", &disk),
        ] {
            let read = format!("ioengine={engine} rw=read size=2m verify=crc32c");
            let read = job_on(&mut guest, &read, disk, "");
            assert_eq!(read.code, 0, "{fio}, {engine}: {read:?}");
        }
    }
    what_fio_refuses_is_refused(&mut guest, &disk, &generic);
}

/// What is true of the disk is true of the generic device.
fn is_judged_by_its_disk(guest: &mut Guest, disk: &str, generic: &str) {
    let write = "ioengine=io_uring_cmd rw=write size=1m";
    let unnamed = job_on(guest, write, generic, "");
    assert_eq!(unnamed.code, 4, "{unnamed:?}");
    for word in ["--destroy GENERIC", &format!("/dev/{disk}")] {
        assert!(unnamed.stderr.contains(word), "{word}: {unnamed:?}");
    }
    for (taken, said, free) in [
        (
            "mkfs.ext4 -q /dev/D && mount /dev/D /mnt",
            "is mounted on /mnt",
            "umount /mnt",
        ),
        ("true", "ext2/3/4 file system", "wipefs -qa /dev/D"),
        (
            "mkswap /dev/D >/dev/null && swapon /dev/D",
            "swap",
            "swapoff /dev/D && wipefs -qa /dev/D",
        ),
        (
            "sleep 1000 <>/dev/G & echo $! >/tmp/sleeper",
            "sleep",
            "kill $(cat /tmp/sleeper)",
        ),
    ] {
        let line = |line: &str| {
            line.replace("/dev/D", &format!("/dev/{disk}"))
                .replace("/dev/G", &format!("/dev/{generic}"))
        };
        guest.must(&line(taken));
        for (engine, target) in [("io_uring_cmd", generic), ("psync", disk)] {
            let write = format!("ioengine={engine} rw=write size=1m");
            let refused = job_on(guest, &write, target, NAMED);
            assert_eq!(refused.code, 4, "{taken}: {refused:?}");
            assert!(refused.stderr.contains(said), "{taken}: {refused:?}");
        }
        guest.must(&line(free));
    }
}

/// The last of each: whether fio fails there, too. It leaves out what it cannot send, and
/// cuts a size that is too long.
fn what_fio_refuses_is_refused(guest: &mut Guest, disk: &str, generic: &str) {
    let by_commands = "ioengine=io_uring_cmd size=1m";
    for (options, target, said, fails) in [
        (
            format!("{by_commands} rw=trim"),
            generic,
            "reads and writes only",
            false,
        ),
        (
            format!("{by_commands} rw=write fsync=1"),
            generic,
            "fsync",
            false,
        ),
        (
            format!("{by_commands} rw=read direct=1"),
            generic,
            "directly",
            true,
        ),
        (
            format!("{by_commands} rw=read nowait=1"),
            generic,
            "nowait",
            true,
        ),
        (
            format!("{by_commands} rw=read"),
            disk,
            "no generic NVMe device",
            true,
        ),
        (
            "ioengine=psync rw=read size=1m".to_owned(),
            generic,
            "io_uring_cmd",
            true,
        ),
        (
            "ioengine=io_uring_cmd rw=read size=64m".to_owned(),
            generic,
            "holds",
            false,
        ),
        (
            format!("{by_commands} rw=read offset=1k"),
            generic,
            "whole blocks",
            false,
        ),
    ] {
        let ours = job_on(guest, &options, target, NAMED);
        assert_ne!(ours.code, 0, "{ours:?}");
        assert!(ours.stderr.contains(said), "{said}: {ours:?}");
        let theirs = fio_on(guest, "/guest/fio", &options, target);
        assert_eq!(theirs.code != 0, fails, "{options}: {theirs:?}");
    }
}

/// A job on the zoned disk, by the native engine.
fn zoned_on(guest: &mut Guest, options: &str, disk: &str, words: &str) -> GuestAnswer {
    let job = options.replace(' ', "\\n");
    guest.must(&format!(
        "printf '[j]\\nzonemode=zbd\\nfilename=/dev/{disk}\\n{job}\\n' >/tmp/z.fio"
    ));
    guest.run(&format!(
        "cd /tmp && fathom job run z.fio -q --json --engine native {words}"
    ))
}

/// The same by fio, and what it says of its writes.
fn fio_on_zones(guest: &mut Guest, options: &str, disk: &str) -> GuestAnswer {
    let options: Vec<String> = options.split(' ').map(|it| format!("--{it}")).collect();
    guest.run(&format!(
        "cd /tmp && /guest/fio --name=j --thread --zonemode=zbd --filename=/dev/{disk} --verify_state_save=0 {}",
        options.join(" ")
    ))
}

fn zone_resets(answer: &GuestAnswer) -> u64 {
    let doc: serde_json::Value = serde_json::from_str(&answer.stdout).unwrap();
    doc["jobs"][0]["zone_resets"].as_u64().unwrap()
}

/// What fio prints behind its writes.
fn resets_of_fio(answer: &GuestAnswer) -> u64 {
    let line = answer
        .stdout
        .lines()
        .find(|line| line.contains("zone resets"));
    let line = line.unwrap_or_else(|| panic!("{answer:?}"));
    let count = line.rsplit("; ").next().unwrap().split(' ').next();
    count.unwrap().parse().unwrap()
}

/// Zones with data, as the drive has them.
fn zones_with_data(guest: &mut Guest, disk: &str) -> usize {
    let report = guest.must(&format!("blkzone report /dev/{disk}"));
    report.lines().filter(|line| !line.contains("(em)")).count()
}

/// 16 zones of 4 MiB, of which 3 MiB hold data, and 4 may be open.
#[test]
fn zones_are_written_at_their_pointers_as_by_fio() {
    require!(long());
    let mut guest = require!(NEWER_GUEST.take());
    let named = "--destroy ZONED";
    let disk = disk_of(&mut guest, "ZONED", 64 * MIB);
    let generic = disk.replace("nvme", "ng");
    let unnamed = zoned_on(&mut guest, "rw=write bs=64k direct=1 size=4z", &disk, "");
    assert_eq!(unnamed.code, 4, "{unnamed:?}");
    assert_eq!(zones_with_data(&mut guest, &disk), 0);

    // Each engine verifies what the other wrote; passes empty the zones first.
    for (engine, disk) in [
        ("psync direct=1", &disk),
        ("io_uring_cmd", &generic),
        ("io_uring direct=1", &disk),
    ] {
        let write = format!("ioengine={engine} rw=write bs=64k size=4z offset=2z verify=crc32c");
        let ran = zoned_on(&mut guest, &write, disk, named);
        assert_eq!(ran.code, 0, "{engine}: {ran:?}");
        let doc: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
        for dir in ["read", "write"] {
            assert_eq!(doc["jobs"][0][dir]["io_bytes"], 12 * MIB, "{ran:?}");
        }
        assert_eq!(zones_with_data(&mut guest, &disk.replace("ng", "nvme")), 4);
        let read = format!("ioengine={engine} rw=read bs=64k verify=crc32c");
        let theirs = fio_on_zones(&mut guest, &read, disk);
        assert_eq!(theirs.code, 0, "{engine}: {theirs:?}");
        assert!(theirs.stdout.contains("total=192,0,0,0"), "{theirs:?}");
        let wrote = fio_on_zones(&mut guest, &write, disk);
        assert_eq!(wrote.code, 0, "{engine}: {wrote:?}");
        let ours = zoned_on(&mut guest, &read, disk, "");
        assert_eq!(ours.code, 0, "{engine}: {ours:?}");
    }
    limits_are_kept(&mut guest, &disk, named);

    // A trim is a reset, and what is empty has nothing to read.
    let trim = "rw=trim bs=4m";
    let trimmed = zoned_on(&mut guest, trim, &disk, named);
    assert_eq!(trimmed.code, 0, "{trimmed:?}");
    assert_eq!(zones_with_data(&mut guest, &disk), 0);
    for (beyond, bytes) in [(0, 0), (1, MIB)] {
        let read =
            format!("rw=randread bs=64k direct=1 io_size=1m norandommap read_beyond_wp={beyond}");
        let read = zoned_on(&mut guest, &read, &disk, "");
        let doc: serde_json::Value = serde_json::from_str(&read.stdout).unwrap();
        assert_eq!(doc["jobs"][0]["read"]["io_bytes"], bytes, "{read:?}");
    }
}

/// Writes all over the disk open no more zones than the drive takes, which would refuse
/// them; full ones are reset as often as by fio.
fn limits_are_kept(guest: &mut Guest, disk: &str, named: &str) {
    for more in [
        "rw=randwrite",
        "rw=randwrite numjobs=2 group_reporting=1 job_max_open_zones=2",
        "rw=write io_size=80m",
    ] {
        let write = format!("{more} bs=256k direct=1 randseed=3");
        guest.must(&format!("blkzone reset /dev/{disk}"));
        let ours = zoned_on(guest, &write, disk, named);
        assert_eq!(ours.code, 0, "{more}: {ours:?}");
        guest.must(&format!("blkzone reset /dev/{disk}"));
        let theirs = fio_on_zones(guest, &write, disk);
        assert_eq!(theirs.code, 0, "{more}: {theirs:?}");
        let (ours, theirs) = (zone_resets(&ours), resets_of_fio(&theirs));
        // Which zones are partly written at the end differs with the random numbers.
        // Two jobs of fio's now and then end without a single one, in a slow guest.
        let fell_short = theirs == 0 && more.contains("numjobs");
        let alike = ours.abs_diff(theirs) <= 8;
        assert!(alike || fell_short, "{more}: {ours}, fio {theirs}");
        assert!(ours > 0, "{more}");
    }
    for (options, said) in [
        (
            "rw=randwrite bs=256k direct=1 ignore_zone_limits=1",
            "failed",
        ),
        (
            "rw=write bs=256k direct=1 max_open_zones=5",
            "max_open_zones",
        ),
        ("rw=write bs=256k", "direct=1 only"),
        ("rw=write bs=256k direct=1 zonesize=8m", "zonesize"),
        ("rw=trim bs=1m", "whole zones"),
    ] {
        guest.must(&format!("blkzone reset /dev/{disk}"));
        let ours = zoned_on(guest, options, disk, named);
        assert_eq!(ours.code, 1, "{options}: {ours:?}");
        assert!(ours.stderr.contains(said), "{options}: {ours:?}");
        guest.must(&format!("blkzone reset /dev/{disk}"));
        let theirs = fio_on_zones(guest, options, disk);
        assert_ne!(theirs.code, 0, "{options}: {theirs:?}");
    }
}
