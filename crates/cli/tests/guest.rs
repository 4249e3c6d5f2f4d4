//! On a machine of its own: used disks are refused, NVMe and SCSI ones, and named
//! ones are written; throttled disks give the latencies that both engines must
//! find; and Fathom does without fio.

use fathom_testkit::{Guest, GuestAnswer, require};
use serde_json::Value;

use crate::guests::{GUEST, MIB, NEWER_GUEST, disk_of};

/// Sectors that the kernel has written to a disk (Documentation/block/stat.rst).
fn written(guest: &mut Guest, disk: &str) -> String {
    guest.must(&format!("awk '{{print $7}}' /sys/block/{disk}/stat"))
}

/// Runs a job that writes the first MiB of a disk; `words` confirm it.
fn write(guest: &mut Guest, disk: &str, words: &str) -> GuestAnswer {
    let job = format!(
        "printf '[w]\\nrw=write\\nbs=64k\\nsize=1m\\ndirect=1\\nbuffer_pattern=0x5a\\nfilename=/dev/{disk}\\n' >/tmp/w.fio"
    );
    guest.must(&job);
    let destroy = match words {
        "" => String::new(),
        words => format!("--destroy '{words}'"),
    };
    guest.run(&format!(
        "cd /tmp && fathom job run w.fio -q --json --engine native {destroy}"
    ))
}

/// A way to use a disk: what does it, what must be said of it, what undoes it.
/// `D` stands for the disk.
const USES: [(&str, &str, &str, &str); 8] = [
    (
        "a partition table",
        "echo ',8M' | sfdisk -q /dev/D && udevadm settle",
        "partition table",
        "wipefs -qa /dev/D && partx -d /dev/D; udevadm settle",
    ),
    (
        "a mounted file system",
        // Nothing that the kernel would write later, of itself.
        "mkfs.ext4 -q -O ^has_journal -E lazy_itable_init=0 /dev/D && mkdir -p /mnt && mount /dev/D /mnt",
        "mounted on /mnt",
        "umount /mnt",
    ),
    ("a file system", "true", "ext2/3/4", "wipefs -qa /dev/D"),
    (
        "swap in use",
        "mkswap /dev/D && swapon /dev/D",
        "swap",
        "swapoff /dev/D && wipefs -qa /dev/D",
    ),
    (
        "a physical volume",
        "pvcreate -qq /dev/D",
        "LVM",
        "pvremove -qq /dev/D",
    ),
    (
        "a logical volume on it",
        "pvcreate -qq /dev/D && vgcreate -qq vg /dev/D && lvcreate -qq -Zn -L 8M -n lv vg",
        "vg-lv",
        "vgchange -qq -an vg && vgremove -qq -f vg && pvremove -qq /dev/D",
    ),
    (
        "a mapped device on it",
        "dmsetup create upon --table '0 2048 linear /dev/D 0'",
        "dm-",
        "dmsetup remove upon",
    ),
    (
        "a loop device over it",
        "losetup /dev/loop7 /dev/D",
        "loop7",
        "losetup -d /dev/loop7",
    ),
];

/// Everything that must hold for one disk that answers to `serial`.
fn a_disk_is_safe(guest: &mut Guest, disk: &str, serial: &str, size: u64) {
    let before = written(guest, disk);
    let unnamed = write(guest, disk, "");
    assert_eq!(unnamed.code, 4, "{disk}: {unnamed:?}");
    let offered = format!("--destroy {serial}");
    assert!(unnamed.stderr.contains(&offered), "{unnamed:?}");
    // Path and size do for disks without a name of their own only.
    let by_size = write(guest, disk, &format!("/dev/{disk}={}MiB", size / MIB));
    assert_eq!(by_size.code, 4, "{disk}: {by_size:?}");
    assert_eq!(
        written(guest, disk),
        before,
        "{disk}: something was written"
    );

    for (name, use_it, said, undo) in USES {
        guest.must(&use_it.replace("/dev/D", &format!("/dev/{disk}")));
        guest.must("sync");
        let before = written(guest, disk);
        let refused = write(guest, disk, serial);
        assert_eq!(refused.code, 4, "{disk} with {name}: {refused:?}");
        assert!(
            refused.stderr.contains(said),
            "{disk} with {name}: {refused:?}"
        );
        let after = written(guest, disk);
        assert_eq!(after, before, "{disk} with {name}: something was written");
        guest.must(&undo.replace("/dev/D", &format!("/dev/{disk}")));
    }

    let by_id = guest.must(&format!(
        "for l in /dev/disk/by-id/*; do [ $(readlink -f $l) = /dev/{disk} ] && echo $l; done; true"
    ));
    let by_id: Vec<&str> = by_id.lines().collect();
    assert!(!by_id.is_empty(), "{disk}: udev names it");
    for word in [serial, by_id[0]] {
        let named = write(guest, disk, word);
        assert_eq!(named.code, 0, "{disk} as {word}: {named:?}");
        let doc: Value = serde_json::from_str(&named.stdout).unwrap();
        assert_eq!(doc["jobs"][0]["write"]["io_bytes"], MIB);
        let device = &doc["environment"]["targets"][0]["device"];
        assert_eq!(device["serial"], serial, "{device}");
        assert_eq!(device["capacity_bytes"], size, "{device}");
        let told: Vec<_> = device["by_id"].as_array().unwrap().iter().collect();
        let links = by_id.iter().map(|link| link.rsplit('/').next().unwrap());
        assert_eq!(told, links.collect::<Vec<_>>(), "{device}");
        let line = format!("head -c 1048576 /dev/{disk} | tr -d 'Z' | wc -c");
        assert_eq!(guest.must(&line).trim(), "0", "{disk}: not all was written");
        guest.must(&format!(
            "dd if=/dev/zero of=/dev/{disk} bs=1M count=1 conv=fsync 2>/dev/null"
        ));
    }
}

#[test]
fn used_disks_are_refused_and_named_ones_written() {
    let mut guest = require!(GUEST.take());
    for (serial, size) in [("FATHOM-NVME-1", 64 * MIB), ("FATHOM-SCSI-1", 48 * MIB)] {
        let disk = disk_of(&mut guest, serial, size);
        a_disk_is_safe(&mut guest, &disk, serial, size);
    }
}

/// `/dev/nvme0nY` is not namespace Y, and the drive's serial names none of its
/// namespaces.
#[test]
fn namespaces_of_one_drive_are_told_apart() {
    let mut guest = require!(GUEST.take());
    for (nsid, size, block) in [(7, 32 * MIB, 4096), (4, 16 * MIB, 512)] {
        let disk = disk_of(&mut guest, "FATHOM-NVME-2", size);
        let by_serial = write(&mut guest, &disk, "FATHOM-NVME-2");
        assert_eq!(by_serial.code, 4, "{disk}: {by_serial:?}");
        let wwid = guest.must(&format!("cat /sys/block/{disk}/wwid"));
        assert!(by_serial.stderr.contains(wwid.trim()), "{by_serial:?}");
        let named = write(&mut guest, &disk, wwid.trim());
        assert_eq!(named.code, 0, "{disk}: {named:?}");
        let doc: Value = serde_json::from_str(&named.stdout).unwrap();
        let device = &doc["environment"]["targets"][0]["device"];
        assert_eq!(device["nsid"], nsid, "{device}");
        assert_eq!(device["capacity_bytes"], size, "{device}");
        assert_eq!(device["logical_block_bytes"], block, "{device}");
    }
    let shown = guest.must("cd /tmp && fathom show");
    assert!(shown.contains("namespace 4"), "{shown}");
}

/// I/Os that a disk has written, those that the kernel merged as well, and the ms
/// that they took it (Documentation/block/stat.rst), once they are `least`.
fn served(guest: &mut Guest, disk: &str, least: u64) -> (u64, f64) {
    // The kernel counts an I/O just after it has told that it is done.
    let line = guest.must(&format!(
        "until set -- $(cat /sys/block/{disk}/stat); [ $(($5 + $6)) -ge {least} ]; do usleep 10000; done; echo $(($5 + $6)) $8"
    ));
    let (ios, ms) = line.trim().split_once(' ').unwrap();
    (ios.parse().unwrap(), ms.parse().unwrap())
}

/// The disk takes its time, and the kernel says how long: whoever measures it has
/// waited at least so long, and for no more than four I/Os at a time.
#[test]
fn both_engines_find_the_latency_of_a_throttled_disk() {
    const IOS: u64 = 400;
    const DEPTH: f64 = 4.0;
    /// The kernel's time of an I/O ends a little after it has told that it is done.
    const AFTER: f64 = 0.9;
    let mut guest = require!(NEWER_GUEST.take());
    let disk = disk_of(&mut guest, "THROTTLED", 64 * MIB);
    guest.must(&format!(
        "printf '[w]\\nrw=randwrite\\nbs=4k\\ndirect=1\\nioengine=libaio\\niodepth={DEPTH}\\nnumber_ios={IOS}\\nfilename=/dev/{disk}\\n' >/tmp/w.fio"
    ));
    for engine in ["fio", "native"] {
        let before = served(&mut guest, &disk, 0);
        let ran = guest.must(&format!(
            "cd /tmp && fathom job run w.fio -q --json --engine {engine} --destroy THROTTLED"
        ));
        let after = served(&mut guest, &disk, before.0 + IOS);
        let doc: Value = serde_json::from_str(&ran).unwrap();
        assert_eq!(doc["engine"], engine);
        let figures = &doc["jobs"][0]["write"];
        assert_eq!(
            (&figures["total_ios"], after.0 - before.0),
            (&IOS.into(), IOS)
        );
        let ms = |value: &Value, unit: f64| value.as_f64().unwrap() * unit;
        let waited_ms = ms(&figures["lat"]["mean_ns"], 1e-6) * IOS as f64;
        let (of_disk_ms, most_ms) = (
            after.1 - before.1,
            DEPTH * (ms(&figures["runtime_ms"], 1.0) + 1.0),
        );
        let seen = format!("{engine}: {of_disk_ms} {waited_ms} {most_ms}");
        assert!(
            AFTER * of_disk_ms <= waited_ms && waited_ms <= most_ms,
            "{seen}"
        );
    }
}

const GROUP: &str = concat!(
    "format = \"fathom-quick-group\"\\nversion = 1\\nname = \"small\"\\nsize = \"2M\"\\nruntime_s = 1\\n",
    "options = [\"refill_buffers\"]\\n[[series]]\\ntitle = \"series\"\\ntests = [\\n",
    "{ name = \"one\", files = 2, engine = \"sync\", depth = 1, bs = \"64k\", rw = \"write\", init = true },\\n",
    "{ name = \"two\", files = 2, engine = \"io_uring\", depth = 4, bs = \"4k\", rw = \"randread\" },\\n]\\n",
);

#[test]
fn a_machine_without_fio_needs_none() {
    let mut guest = require!(GUEST.take());
    let disk = disk_of(&mut guest, "PLAIN", 64 * MIB);
    guest.must(&format!(
        "mkfs.ext4 -q /dev/{disk} && mkdir -p /mnt && mount /dev/{disk} /mnt"
    ));
    guest.must(&format!("cd /mnt && printf '{GROUP}' >small.toml"));
    assert_ne!(guest.run("command -v fio").code, 0);
    let series = guest.run("cd /mnt && fathom quick here /mnt --group small.toml --no-install");
    assert_eq!(series.code, 0, "{series:?}");
    for said in ["one: ", "two: ", "engine   native-"] {
        assert!(series.stdout.contains(said), "{said} in {series:?}");
    }
    assert!(
        series.stderr.contains("the native engine runs the tests"),
        "{series:?}"
    );
    guest.must("printf '[j]\\nrw=randrw\\nsize=1m\\nfilename=f\\n' >/mnt/j.fio");
    for engine in ["auto", "native"] {
        let ran = guest.must(&format!(
            "cd /mnt && fathom job run j.fio -q --json --engine {engine}"
        ));
        let doc: Value = serde_json::from_str(&ran).unwrap();
        assert_eq!(
            (&doc["engine"], &doc["status"]),
            (&"native".into(), &"complete".into())
        );
    }
    let shown = guest.must("cd /mnt && fathom show && fathom runs");
    assert!(shown.contains("native-"), "{shown}");
}

/// A job of blocks of 64 KiB on a disk, with a blank between its options.
pub(crate) fn job_on(guest: &mut Guest, options: &str, disk: &str, words: &str) -> GuestAnswer {
    let job = options.replace(' ', "\\n");
    guest.must(&format!(
        "printf '[j]\\n{job}\\nbs=64k\\nfilename=/dev/{disk}\\n' >/tmp/sg.fio"
    ));
    guest.run(&format!(
        "cd /tmp && fathom job run sg.fio -q --json --engine native {words}"
    ))
}

/// What sg writes by commands is found by them and by the block layer, and only whole
/// disks are taken: commands count from the disk's start.
#[test]
fn scsi_commands_write_where_the_block_layer_reads() {
    let mut guest = require!(GUEST.take());
    let named = "--destroy BY-COMMAND";
    let disk = disk_of(&mut guest, "BY-COMMAND", 24 * MIB);
    let write = "ioengine=sg rw=randwrite size=8m verify=crc32c";
    let written = job_on(&mut guest, write, &disk, named);
    assert_eq!(written.code, 0, "{written:?}");
    let doc: Value = serde_json::from_str(&written.stdout).unwrap();
    for dir in ["read", "write"] {
        assert_eq!(doc["jobs"][0][dir]["io_bytes"], 8 * MIB, "{written:?}");
    }
    for engine in ["psync", "sg"] {
        let read = format!("ioengine={engine} rw=read size=8m verify=crc32c");
        let read = job_on(&mut guest, &read, &disk, "");
        assert_eq!(read.code, 0, "{engine}: {read:?}");
    }
    // What it is asked to write, and what is there then, as tr has it. (QEMU says GOOD to
    // WRITE SAME without data, and writes nothing.)
    for (mode, byte, there) in [
        ("write", 0x5a, "132"),
        ("write_and_verify", 0xab, "253"),
        ("verify_bytchk_00", 0x5a, "253"),
        ("write_same", 0x5a, "132"),
    ] {
        let job = format!(
            "ioengine=sg rw=write size=1m sg_write_mode={mode} buffer_pattern={byte} scramble_buffers=0"
        );
        let ran = job_on(&mut guest, &job, &disk, named);
        assert_eq!(ran.code, 0, "{mode}: {ran:?}");
        let found = guest.must(&format!(
            "dd if=/dev/{disk} iflag=direct bs=64k count=16 2>/dev/null | tr -cd '\\{there}' | wc -c"
        ));
        assert_eq!(found.trim(), MIB.to_string(), "{mode}");
    }
    by_its_generic_device(&mut guest, &disk);
    let odd = "ioengine=sg rw=read size=8m offset=100";
    let odd = job_on(&mut guest, odd, &disk, "");
    assert_ne!(odd.code, 0, "{odd:?}");
    assert!(odd.stderr.contains("whole blocks"), "{odd:?}");
    guest.must(&format!(
        "echo ',8M' | sfdisk -q /dev/{disk} && udevadm settle"
    ));
    let part = format!("{disk}1");
    let part = job_on(&mut guest, "ioengine=sg rw=read size=1m", &part, "");
    assert_ne!(part.code, 0, "{part:?}");
    assert!(part.stderr.contains("whole SCSI disks"), "{part:?}");
    guest.must(&format!(
        "wipefs -qa /dev/{disk} && partx -d /dev/{disk}; udevadm settle"
    ));
}

/// /dev/sgN is its disk: in what it may be used for, and in what it holds.
fn by_its_generic_device(guest: &mut Guest, disk: &str) {
    guest.must("modprobe sg && udevadm settle");
    let generic = guest.must(&format!("ls /sys/block/{disk}/device/scsi_generic"));
    let generic = generic.trim();
    let write = "ioengine=sg rw=randwrite size=8m verify=crc32c fsync=16 end_fsync=1";
    let unnamed = job_on(guest, write, generic, "");
    assert_eq!(unnamed.code, 4, "{unnamed:?}");
    for word in ["--destroy BY-COMMAND", &format!("/dev/{disk}")] {
        assert!(unnamed.stderr.contains(word), "{word}: {unnamed:?}");
    }
    let written = job_on(guest, write, generic, "--destroy BY-COMMAND");
    assert_eq!(written.code, 0, "{written:?}");
    for (engine, by) in [("psync", disk), ("sg", generic)] {
        let read = format!("ioengine={engine} rw=read size=8m verify=crc32c");
        let read = job_on(guest, &read, by, "");
        assert_eq!(read.code, 0, "{engine}: {read:?}");
    }
    for (options, said) in [
        ("ioengine=sg rw=trim size=1m", "takes no trims"),
        ("ioengine=psync rw=read size=1m", "neither a file nor"),
    ] {
        let refused = job_on(guest, options, generic, "--destroy BY-COMMAND");
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.stderr.contains(said), "{options}: {refused:?}");
    }
}

/// Starts a reading job in the background; its document will be in /tmp/doc.
fn start_reading(guest: &mut Guest, disk: &str, options: &str) {
    guest.must(&format!(
        "printf '[r]\\nrw=randread\\nbs=4k\\ndirect=1\\niodepth=4\\nruntime=1h\\ntime_based\\nfilename=/dev/{disk}\\n{options}' >/tmp/r.fio"
    ));
    guest.must("cd /tmp && rm -f code && { (fathom job run r.fio -q --json --interval 100ms --engine native >doc 2>err & echo $! >pid; wait $!; echo $? >code) & }");
    guest
        .must("until grep -q '\"sample\"' /tmp/fathom-runs/*/events.jsonl; do usleep 100000; done");
}

/// Waits for it; its document and exit code.
fn end_of_reading(guest: &mut Guest) -> (Value, String) {
    guest.must("until [ -s /tmp/code ]; do usleep 100000; done");
    let doc = guest.must("cat /tmp/doc");
    let code = guest.must("cat /tmp/code; rm -rf /tmp/fathom-runs");
    let doc = serde_json::from_str(&doc).unwrap_or_else(|e| panic!("{e}: {doc}"));
    (doc, code.trim().to_owned())
}

/// A disk that is pulled out, one that never answers, and a full table of contexts.
#[test]
fn disks_that_vanish_or_stall_end_a_run_with_their_names() {
    let mut guest = require!(GUEST.take());
    let disk = disk_of(&mut guest, "STALLS", 48 * MIB);
    let table = format!("dmsetup create slow --table '0 65536 linear /dev/{disk} 0'");
    for engine in ["psync", "libaio", "io_uring"] {
        guest.must(&table);
        start_reading(&mut guest, "mapper/slow", &format!("ioengine={engine}\\n"));
        // Every I/O from now on waits until it is resumed, and one is under way when an
        // interval has gone by without any.
        guest.must("dmsetup suspend --noflush --nolockfs slow");
        guest.must("until tail -n 2 /tmp/fathom-runs/*/events.jsonl | grep -q '\"ios\":0'; do usleep 100000; done");
        // Several that come at once are one to it.
        guest.must("until [ -s /tmp/code ]; do kill -INT $(cat /tmp/pid); sleep 1; done 2>&1");
        let (doc, code) = end_of_reading(&mut guest);
        let kinds: Vec<_> = doc["failures"].as_array().unwrap().iter().collect();
        let hung = kinds.last().unwrap();
        assert_eq!(hung["kind"], "hung", "{engine}: {doc}");
        let message = hung["message"].as_str().unwrap();
        assert!(
            message.contains("read of 4096 bytes at offset"),
            "{message}"
        );
        assert!(message.contains("/dev/mapper/slow"), "{message}");
        assert_eq!(code, "130", "{engine}");
        guest.must("dmsetup resume slow && until dmsetup remove slow; do usleep 100000; done");
    }

    let disk = disk_of(&mut guest, "VANISHES", 64 * MIB);
    start_reading(&mut guest, &disk, "ioengine=libaio\\n");
    guest.must(&format!("echo 1 >/sys/block/{disk}/device/delete"));
    let (doc, code) = end_of_reading(&mut guest);
    assert_eq!(
        (code.as_str(), &doc["status"]),
        ("1", &"failed".into()),
        "{doc}"
    );
    let failure = &doc["failures"][0];
    assert_eq!(failure["kind"], "no_device", "{failure}");
    let told = failure.to_string();
    assert!(
        told.contains("disappeared") && told.contains(&format!("/dev/{disk}")),
        "{failure}"
    );

    a_full_aio_table_is_told(&mut guest);
}

fn a_full_aio_table_is_told(guest: &mut Guest) {
    guest.must("echo 64 >/proc/sys/fs/aio-max-nr");
    guest.must("printf '[a]\\nrw=read\\nsize=1m\\nfilename=f\\nioengine=libaio\\niodepth=128\\n' >/tmp/a.fio");
    let full = guest.run("cd /tmp && fathom job run a.fio -q --engine native");
    assert_eq!(full.code, 1, "{full:?}");
    for said in [
        "no room for 128 more",
        "fs.aio-max-nr 64",
        "sysctl -w fs.aio-max-nr=",
    ] {
        assert!(full.stderr.contains(said), "{said}: {full:?}");
    }
}
