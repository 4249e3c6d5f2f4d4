//! On a machine of its own: drives whose names can belong to two things, with the protocols
//! that make them.

use fathom_testkit::{Guest, GuestAnswer, GuestPlan, SharedGuest, require};

use crate::guests::{MIB, with_fathom};

/// Two disks with one serial number, two paths to one, one to be parted, and an NVMe drive
/// with two controllers, of which the second has a namespace of its own.
static TWINS: SharedGuest = SharedGuest::new(|| {
    Ok(with_fathom(GuestPlan::newer())
        .program("sfdisk")?
        .disk(32 * MIB, "virtio-blk-pci,serial=DUPSERIAL", "")
        .disk(32 * MIB, "virtio-blk-pci,serial=DUPSERIAL", "")
        .disk(64 * MIB, "virtio-blk-pci,serial=PARTED", "")
        .device("virtio-scsi-pci,id=paths")
        .disk_twice(
            48 * MIB,
            [
                "scsi-hd,bus=paths.0,scsi-id=1,serial=TWIN,wwn=0x5000c50000000001",
                "scsi-hd,bus=paths.0,scsi-id=2,serial=TWIN,wwn=0x5000c50000000001",
            ],
        )
        .device("nvme-subsys,id=both,nqn=nqn.both")
        .device("nvme,subsys=both,serial=BOTH,id=first")
        .device("nvme,subsys=both,serial=BOTH,id=second")
        .disk(24 * MIB, "nvme-ns,nsid=5,shared=on,bus=first", "")
        .disk(16 * MIB, "nvme-ns,nsid=7,shared=off,bus=second", "")
        .disk(40 * MIB, "virtio-blk-pci,serial=SERVED", "")
        .disk(40 * MIB, "virtio-blk-pci,serial=STORED", ""))
});

/// The names of the disks of this size, in their order.
fn disks(guest: &mut Guest, mib: u64) -> Vec<String> {
    let bytes = mib * MIB;
    let found = guest.must(&format!(
        "udevadm settle; lsblk -dnbo NAME,SIZE | awk '$2 == {bytes} {{print $1}}' | sort"
    ));
    found.lines().map(str::to_owned).collect()
}

/// Its name by its place.
fn by_path(guest: &mut Guest, disk: &str) -> String {
    let name = guest.must(&format!(
        "for link in /dev/disk/by-path/*; do [ $(readlink -f $link) != /dev/{disk} ] || {{ basename $link; break; }}; done"
    ));
    name.trim().to_owned()
}

fn purge(guest: &mut Guest, path: &str, word: &str) -> GuestAnswer {
    guest.run(&format!(
        "cd /tmp && fathom purge {path} -q --samples 64 --destroy '{word}'"
    ))
}

fn refused(answer: &GuestAnswer, why: &str) {
    assert_eq!(answer.code, 4, "{answer:?}");
    assert!(answer.stderr.contains(why), "{why}: {answer:?}");
}

#[test]
fn drives_with_names_in_common_are_told_apart() {
    let mut guest = require!(TWINS.take());
    two_disks_with_one_serial_number(&mut guest);
    a_partition_has_a_name_of_its_own(&mut guest);
    a_link_that_moves_takes_no_confirmation_along(&mut guest);
    two_paths_to_one_disk(&mut guest);
    two_paths_under_a_multipath_map(&mut guest);
    a_namespace_of_the_second_controller(&mut guest);
    what_the_kernel_serves_is_in_use(&mut guest);
}

fn two_disks_with_one_serial_number(guest: &mut Guest) {
    let both = disks(guest, 32);
    let [one, other] = &both[..] else {
        panic!("{both:?}")
    };
    for disk in &both {
        for word in ["DUPSERIAL", "virtio-DUPSERIAL"] {
            let answer = purge(guest, &format!("/dev/{disk}"), word);
            refused(&answer, "does not name it");
        }
    }
    refused(
        &purge(
            guest,
            "/dev/disk/by-id/virtio-DUPSERIAL",
            "virtio-DUPSERIAL",
        ),
        "--destroy",
    );
    // What is known of the one is not known of the other.
    let fill = |guest: &mut Guest, disk: &str| {
        let word = by_path(guest, disk);
        guest.must(&format!(
            "cd /tmp && fathom provision /dev/{disk} -q --engine native --max-time 2m --destroy {word}; true"
        ));
        guest.must(&format!("fathom ledger --json | grep -c duplicate || true; cat /sys/block/{disk}/stat | awk '{{print $7}}'"))
    };
    fill(guest, one);
    let written = fill(guest, other);
    let sectors: u64 = written.lines().last().unwrap().trim().parse().unwrap();
    assert!(sectors >= 32 * 2048, "{other} was not filled: {written}");
}

/// The confirmation names the disk that the link led to when it was written down.
fn a_link_that_moves_takes_no_confirmation_along(guest: &mut Guest) {
    let link = "/dev/disk/by-id/virtio-DUPSERIAL";
    let first = guest.must(&format!("basename $(readlink -f {link})"));
    let first = first.trim();
    let both = disks(guest, 32);
    let other = both.iter().find(|disk| *disk != first).unwrap();
    let word = by_path(guest, first);
    // udev gives a link to the device of the highest priority that asks for it.
    guest.must(&format!(
        "mkdir -p /run/udev/rules.d && echo 'KERNEL==\"{other}\", OPTIONS+=\"link_priority=100\"' >/run/udev/rules.d/99-link.rules && udevadm control --reload && udevadm trigger --settle /dev/{other}"
    ));
    let moved = guest.must(&format!("basename $(readlink -f {link})"));
    assert_eq!(moved.trim(), other, "udev did not move the link");
    let before = guest.must(&format!("cksum </dev/{other}"));
    refused(&purge(guest, link, &word), "does not name it");
    assert_eq!(guest.must(&format!("cksum </dev/{other}")), before);
}

fn a_partition_has_a_name_of_its_own(guest: &mut Guest) {
    let disk = disks(guest, 64).remove(0);
    guest.must(&format!(
        "printf 'label: gpt\\nsize=16MiB\\nsize=16MiB\\n' | sfdisk -q /dev/{disk} && udevadm settle"
    ));
    let part = format!("/dev/{disk}2");
    refused(&purge(guest, &part, "PARTED"), "PARTUUID");
    refused(&purge(guest, &part, "virtio-PARTED"), "PARTUUID");
    let uuid = guest.must(&format!(
        "blkid --probe --match-tag PART_ENTRY_UUID --output value {part}"
    ));
    let done = purge(guest, &part, uuid.trim());
    assert_eq!(done.code, 0, "{done:?}");
}

fn two_paths_to_one_disk(guest: &mut Guest) {
    let both = disks(guest, 48);
    let [one, other] = &both[..] else {
        panic!("{both:?}")
    };
    let word = guest.must(&format!("cat /sys/block/{one}/device/wwid"));
    let word = word.trim();
    // A use of one path is a use of the drive.
    guest.must(&format!(
        "sleep 1000 <>/dev/{other} & echo $! >/tmp/sleeper"
    ));
    refused(&purge(guest, &format!("/dev/{one}"), word), "sleep");
    guest.must("kill $(cat /tmp/sleeper)");
    let list = guest.run("cd /tmp && fathom provision --all scsi --dry-run --engine native");
    let told = format!("{}{}", list.stdout, list.stderr);
    assert!(told.contains("another path to"), "{told}");
    let done = purge(guest, &format!("/dev/{other}"), word);
    assert_eq!(done.code, 0, "{done:?}");
}

/// The map is the drive: its paths are in use by it, and it is not in use by itself.
fn two_paths_under_a_multipath_map(guest: &mut Guest) {
    let paths = disks(guest, 48);
    let [one, other] = &paths[..] else {
        panic!("{paths:?}")
    };
    guest.must("modprobe dm-multipath && modprobe dm-round-robin");
    let wwid = guest.must(&format!("cat /sys/block/{one}/device/wwid"));
    let wwid = wwid.trim();
    let sectors = 48 * MIB / 512;
    guest.must(&format!(
        "dmsetup create twin --uuid mpath-{wwid} --table \"0 {sectors} multipath 0 0 1 1 round-robin 0 2 1 $(cat /sys/block/{one}/dev) 1 $(cat /sys/block/{other}/dev) 1\" && udevadm settle"
    ));
    for path in &paths {
        refused(&purge(guest, &format!("/dev/{path}"), wwid), "twin");
    }
    let list = guest.run("cd /tmp && fathom provision --all scsi --dry-run --engine native");
    let told = format!("{}{}", list.stdout, list.stderr);
    assert!(told.contains("twin"), "{told}");
    // A process that opens the map or one of its paths uses the drive.
    let map = "/dev/mapper/twin";
    let word = format!("dm-uuid-mpath-{wwid}");
    for opened in [map, &format!("/dev/{one}"), &format!("/dev/{other}")] {
        guest.must(&format!("sleep 1000 <>{opened} & echo $! >/tmp/sleeper"));
        refused(&purge(guest, map, &word), "sleep");
        guest.must("kill $(cat /tmp/sleeper)");
    }
    let done = purge(guest, map, &word);
    assert_eq!(done.code, 0, "{done:?}");
    guest.must("dmsetup remove twin && udevadm settle");
}

fn a_namespace_of_the_second_controller(guest: &mut Guest) {
    let disk = disks(guest, 16).remove(0);
    let word = guest.must(&format!("cat /sys/block/{disk}/wwid"));
    let done = guest.run(&format!(
        "cd /tmp && fathom purge /dev/{disk} -q --json --samples 64 --method nvme-format --destroy '{}'",
        word.trim()
    ));
    assert_eq!(done.code, 0, "{done:?}");
    let path = guest.must(&format!(
        "ls -d /sys/class/nvme/nvme*/nvme*c*n* | grep \"n${{X}}$(echo {disk} | sed 's/.*n//')$\""
    ));
    let controller = path.trim().split('/').nth(4).unwrap().to_owned();
    assert!(
        done.stdout.contains(&format!("/dev/{controller}")),
        "{controller}: {done:?}"
    );
}

/// Neither opens its device exclusively, and no process has it open.
fn what_the_kernel_serves_is_in_use(guest: &mut Guest) {
    let both = disks(guest, 40);
    let [served, stored] = &both[..] else {
        panic!("{both:?}")
    };
    guest.must("modprobe nvmet && umount /sys/kernel/config 2>/dev/null; true");
    let path = format!("/dev/{served}");
    refused(&purge(guest, &path, "SERVED"), "--no-export-check");
    let words = "SERVED' --no-export-check --reason 'nobody has it";
    assert_eq!(purge(guest, &path, words).code, 0);
    guest.must("modprobe nvmet-tcp && modprobe nvme-tcp && mount -t configfs none /sys/kernel/config; ip link set lo up 2>/dev/null; ifconfig lo up 2>/dev/null; true");
    guest.must(&format!(
        "cd /sys/kernel/config/nvmet && mkdir subsystems/t1 && echo 1 >subsystems/t1/attr_allow_any_host && mkdir subsystems/t1/namespaces/1 && echo -n /dev/{served} >subsystems/t1/namespaces/1/device_path && echo 1 >subsystems/t1/namespaces/1/enable && mkdir ports/1 && cd ports/1 && echo tcp >addr_trtype && echo ipv4 >addr_adrfam && echo 127.0.0.1 >addr_traddr && echo 4420 >addr_trsvcid && ln -s /sys/kernel/config/nvmet/subsystems/t1 subsystems/t1"
    ));
    guest.must("echo transport=tcp,traddr=127.0.0.1,trsvcid=4420,nqn=t1 >/dev/nvme-fabrics && udevadm settle");
    let word = |guest: &mut Guest, disk: &str| {
        let serial = guest.must(&format!("cat /sys/block/{disk}/serial"));
        serial.trim().to_owned()
    };
    let named = word(guest, served);
    let answer = purge(guest, &format!("/dev/{served}"), &named);
    refused(&answer, "NVMe subsystem t1");
    assert!(answer.stderr.contains("namespaces/1/enable"), "{answer:?}");
    guest.must("modprobe target_core_mod && modprobe target_core_file && modprobe tcm_loop");
    guest.must(&format!(
        "cd /sys/kernel/config/target && mkdir -p core/fileio_0/store && echo fd_dev_name=/dev/{stored},fd_dev_size=41943040 >core/fileio_0/store/control && echo 1 >core/fileio_0/store/enable && mkdir -p loopback/naa.5001405000000001/tpgt_1/lun/lun_0 && echo naa.5001405000000002 >loopback/naa.5001405000000001/tpgt_1/nexus && ln -s /sys/kernel/config/target/core/fileio_0/store loopback/naa.5001405000000001/tpgt_1/lun/lun_0/store && udevadm settle"
    ));
    let named = word(guest, stored);
    let answer = purge(guest, &format!("/dev/{stored}"), &named);
    refused(&answer, "LIO backstore fileio/store");
    // Without them both are free.
    guest.must("for c in /sys/class/nvme/nvme*; do grep -q '^t1$' $c/subsysnqn && echo 1 >$c/delete_controller; done; true");
    guest.must("echo 0 >/sys/kernel/config/nvmet/subsystems/t1/namespaces/1/enable");
    guest.must("cd /sys/kernel/config/target && rm loopback/naa.5001405000000001/tpgt_1/lun/lun_0/store && rmdir loopback/naa.5001405000000001/tpgt_1/lun/lun_0 loopback/naa.5001405000000001/tpgt_1 loopback/naa.5001405000000001 core/fileio_0/store && udevadm settle");
    for disk in [served, stored] {
        let named = word(guest, disk);
        let done = purge(guest, &format!("/dev/{disk}"), &named);
        assert_eq!(done.code, 0, "{done:?}");
    }
}
