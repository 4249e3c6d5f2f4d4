//! On a machine of its own: devices that the kernel makes of others, each with a file system
//! on it, and zram that writes back to a disk. `FATHOM_TEST_LONG=1` measures on each of them,
//! which takes minutes; otherwise they are only told.

use std::fmt::Write as _;

use fathom_testkit::{Guest, is_long, require};
use serde_json::Value;

use crate::guests::{GUEST, MIB, disk_of};
use crate::stacks::{self, path_line};

/// What is made of the disks A and B, what path it has, and what undoes it.
const MADE: [(&str, &str, &str, &str); 4] = [
    (
        "dm-crypt",
        "dmsetup create secret -u CRYPT-PLAIN-secret --table \"0 $(blockdev --getsz /dev/A) crypt aes-xts-plain64 $(printf '5a%.0s' $(seq 64)) 0 /dev/A 0\"",
        "/dev/mapper/secret",
        "dmsetup remove --retry secret",
    ),
    (
        "LVM striped",
        "pvcreate -qq /dev/A /dev/B && vgcreate -qq vg /dev/A /dev/B && lvcreate -qq -Zn -Wn -i 2 -L 32M -n lv vg",
        "/dev/vg/lv",
        "vgchange -qq -an vg && vgremove -qq -f vg && pvremove -qq /dev/A /dev/B",
    ),
    (
        "MD raid1",
        // As mdadm --build does it, without metadata (Documentation/admin-guide/md.rst).
        "modprobe raid1 && echo md9 >/sys/module/md_mod/parameters/new_array && cd /sys/block/md9/md && echo none >metadata_version && echo raid1 >level && echo 2 >raid_disks && cat /sys/block/A/dev >new_dev && cat /sys/block/B/dev >new_dev && echo 0 >dev-A/slot && echo 1 >dev-B/slot && echo 32768 >component_size && echo none >resync_start && echo active >array_state && cd / && udevadm settle && [ $(cat /sys/block/md9/size) = 65536 ]",
        "/dev/md9",
        "echo clear >/sys/block/md9/md/array_state",
    ),
    (
        "multipath",
        "modprobe dm-round-robin; dmsetup create mpath -u mpath-0test --table \"0 $(blockdev --getsz /dev/A) multipath 0 0 1 1 round-robin 0 1 1 $(cat /sys/block/A/dev) 1000\"",
        "/dev/mapper/mpath",
        "dmsetup remove --retry mpath",
    ),
];

/// Jobs on files of them, and what their verdict says of what reached storage. Each block once,
/// for a little longer than the rules want.
const JOBS: [(&str, &str, Option<&str>); 4] = [
    ("cold direct reads", "rw=randread direct=1", None),
    (
        "warm reads",
        "rw=randread invalidate=0",
        Some("cached_reads"),
    ),
    ("direct writes", "rw=randwrite direct=1", None),
    ("unsynced writes", "rw=randwrite", Some("unsynced_writes")),
];

/// What `fathom doctor PATH` says.
fn line_of(guest: &mut Guest, path: &str) -> String {
    let told = guest.run(&format!("fathom doctor {path} --json"));
    path_line(&serde_json::from_str(&told.stdout).unwrap_or_else(|e| panic!("{e}: {told:?}")))
}

/// The kinds of findings about what lies below.
fn findings(guest: &mut Guest, options: &str, path: &str) -> Vec<String> {
    let options = options.replace(' ', "\\n");
    guest.must(&format!(
        "printf '[j]\\n{options}\\nioengine=psync\\nbs=4k\\nsize=4m\\nrate_iops=900\\nfilename={path}\\n' >/tmp/s.fio"
    ));
    let ran = guest.must("cd /tmp && fathom job run s.fio -q --json --engine native");
    let document: Value = serde_json::from_str(&ran).unwrap();
    let found = stacks::findings(&document).into_iter();
    found.map(|(kind, _)| kind.to_owned()).collect()
}

#[test]
fn devices_made_of_others_are_told_and_judged() {
    let mut guest = require!(GUEST.take());
    let a = disk_of(&mut guest, "STACK-A", 40 * MIB);
    let b = disk_of(&mut guest, "STACK-B", 40 * MIB);
    let on = |line: &str| {
        let line = line.replace("/dev/A", &format!("/dev/{a}"));
        let line = line.replace("/dev/B", &format!("/dev/{b}"));
        let line = line.replace("block/A", &format!("block/{a}"));
        let line = line.replace("block/B", &format!("block/{b}"));
        line.replace("dev-A", &format!("dev-{a}"))
            .replace("dev-B", &format!("dev-{b}"))
    };
    let (mut lines, mut wrong) = (String::new(), Vec::new());
    for (name, make, device, undo) in MADE {
        guest.must(&on(make));
        guest.must(&format!(
            "udevadm settle; mkfs.ext4 -q -F -O ^has_journal -E lazy_itable_init=0 {device} && mkdir -p /mnt && mount {device} /mnt && head -c 4194304 /dev/urandom >/mnt/data && sync"
        ));
        let line = line_of(&mut guest, "/mnt/data");
        let line = line.replace(&a, "A").replace(&b, "B");
        writeln!(lines, "{name}: {line}").unwrap();
        let jobs = JOBS.iter().filter(|_| is_long());
        for &(what, options, wanted) in jobs {
            match what {
                "warm reads" => guest.must("cat /mnt/data >/dev/null"),
                _ => guest.must("sync; echo 3 >/proc/sys/vm/drop_caches"),
            };
            let found = findings(&mut guest, options, "/mnt/data");
            if found != wanted.into_iter().collect::<Vec<_>>() {
                wrong.push(format!("{name}, {what}: {found:?}, wanted {wanted:?}"));
            }
        }
        guest.must("umount /mnt");
        guest.must(&format!("wipefs -qa {device}; {}", on(undo)));
    }
    guest.must(&on(
        "modprobe zram && echo /dev/A >/sys/block/zram0/backing_dev && echo 16M >/sys/block/zram0/disksize && head -c 8388608 /dev/urandom >/dev/zram0",
    ));
    let line = line_of(&mut guest, "/dev/zram0").replace(&a, "A");
    writeln!(lines, "zram with writeback: {line}").unwrap();
    let found = match is_long() {
        true => findings(&mut guest, "rw=randread direct=1", "/dev/zram0"),
        false => Vec::new(),
    };
    guest.must("echo 1 >/sys/block/zram0/reset");
    insta::assert_snapshot!("lines", lines);
    assert!(found.is_empty(), "zram with writeback: {found:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
