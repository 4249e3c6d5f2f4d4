//! Hardware that the machine of the test need not have, as a recorded tree: the
//! folders, links and values are those the kernel makes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use fathom_device::drives::{self, Transport};
use fathom_device::names::words;
use fathom_device::safety::Confirmations;
use fathom_device::usage::{Use, of_device};
use fathom_device::{SysBlock, environment, identity};

use crate::tree::Tree;

const NVME: &str = "/sys/devices/pci0000:00/0000:00:1d.0/0000:02:00.0";
const SATA: &str = "/sys/devices/pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0";
const SAS: &str = "/sys/devices/pci0000:00/0000:00:18.0/host1/target1:0:0/1:0:0:0";

const VIRTIO: &str = "/sys/devices/pci0000:00/0000:00:04.0/virtio1/block";

fn given(word: &str) -> Confirmations {
    Confirmations(vec![word.into()])
}

impl Tree {
    fn partition(&self, disk: &str, name: &str, number: &str, sectors: u64) -> SysBlock {
        self.write(&format!("{disk}/{name}/partition"), "1\n");
        self.write(&format!("{disk}/{name}/start"), "2048\n");
        self.block(&format!("{disk}/{name}"), number, sectors)
    }

    fn by_id(&self, name: &str, device: &str) {
        self.by("id", name, device);
    }

    fn by_path(&self, name: &str, device: &str) {
        self.by("path", name, device);
    }

    fn by(&self, what: &str, name: &str, device: &str) {
        let link = self.at(&format!("/dev/disk/by-{what}/{name}"));
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(format!("../../{device}"), link).unwrap();
    }

    /// A SCSI disk of 1 MiB full of `content`.
    fn lun(&self, name: &str, number: &str, wwid: &str, content: u8) -> SysBlock {
        let minor = number.rsplit(':').next().unwrap();
        let device = format!("/sys/devices/pci0/host0/target0:0:{minor}/0:0:{minor}:0");
        let dir = format!("{device}/block/{name}");
        let node = self.disk(&dir, number, 2048);
        self.link(&format!("{dir}/device"), &device);
        self.write(&format!("{device}/wwid"), wwid);
        self.write(&format!("{dir}/serial"), "LUN");
        self.write(&format!("/dev/{name}"), vec![content; 1 << 20]);
        node
    }

    /// A virtio disk of 32 MiB; it has no identifier but its serial number.
    fn virtio(&self, name: &str, number: &str, serial: &str) -> SysBlock {
        let dir = format!("{VIRTIO}/{name}");
        self.write(&format!("{dir}/serial"), serial);
        self.disk(&dir, number, 65536)
    }

    /// An NVMe drive of `namespaces`, with a partition on the first.
    fn nvme(&self, namespaces: u32) -> Vec<SysBlock> {
        let controller = format!("{NVME}/nvme/nvme0");
        self.write(
            &format!("{controller}/model"),
            "SAMSUNG MZVL21T0HCLR-00B00              \n",
        );
        self.write(&format!("{controller}/serial"), "S676NX0R123456      \n");
        self.write(&format!("{controller}/firmware_rev"), "GXA7801Q\n");
        self.write(&format!("{NVME}/current_link_speed"), "8.0 GT/s PCIe\n");
        self.write(&format!("{NVME}/current_link_width"), "4\n");
        self.write(&format!("{NVME}/max_link_speed"), "16.0 GT/s PCIe\n");
        self.write(&format!("{NVME}/max_link_width"), "4\n");
        (1..=namespaces)
            .map(|n| {
                let dir = format!("{controller}/nvme0n{n}");
                let node = self.disk(&dir, &format!("259:{}", n * 10), 2_000_409_264);
                self.link(&format!("{dir}/device"), &controller);
                self.write(&format!("{dir}/wwid"), format!("eui.00253{n}\n"));
                self.write(&format!("{dir}/queue/logical_block_size"), "512\n");
                self.write(&format!("{dir}/queue/physical_block_size"), "4096\n");
                self.write(
                    &format!("{dir}/queue/scheduler"),
                    "[none] mq-deadline kyber\n",
                );
                self.write(&format!("{dir}/queue/nr_requests"), "1023\n");
                self.write(&format!("{dir}/queue/write_cache"), "write back\n");
                self.write(&format!("{dir}/queue/rotational"), "0\n");
                node
            })
            .collect()
    }

    fn sata(&self) -> SysBlock {
        let dir = format!("{SATA}/block/sda");
        let node = self.disk(&dir, "8:0", 11_721_045_168);
        self.link(&format!("{dir}/device"), SATA);
        self.write(&format!("{SATA}/vendor"), "ATA     \n");
        self.write(&format!("{SATA}/model"), "HGST HUS726060AL\n");
        self.write(&format!("{SATA}/rev"), "T517\n");
        self.write(
            &format!("{SATA}/vpd_pg80"),
            b"\0\x80\0\x14            K1G2H3AB",
        );
        let mut page = vec![0; 60 + 512];
        let mut words = |from: usize, text: &str| {
            for (word, pair) in text.as_bytes().chunks(2).enumerate() {
                page[60 + 2 * (from + word)] = pair[1];
                page[60 + 2 * (from + word) + 1] = pair[0];
            }
        };
        words(23, "APGNT517");
        words(27, "HGST HUS726060ALE610                    ");
        self.write(&format!("{SATA}/vpd_pg89"), page);
        self.write(&format!("{dir}/queue/scheduler"), "none [mq-deadline]\n");
        self.write(&format!("{dir}/queue/rotational"), "1\n");
        node
    }
}

#[test]
fn an_nvme_drive_is_told_with_its_link_and_settings() {
    let tree = Tree::new();
    tree.nvme(1);
    tree.by_id("nvme-eui.002531", "nvme0n1");
    tree.by_id("nvme-eui.002531-part1", "nvme0n1p1");
    let dir = format!("{NVME}/nvme/nvme0/nvme0n1");
    let partition = tree.partition(&dir, "nvme0n1p1", "259:11", 4096);

    let target = identity::target(&tree.sys(), Path::new("/dev/nvme0n1p1"));
    let device = target.device.unwrap();
    assert_eq!(device, identity::block_device(&tree.sys(), &partition));
    assert_eq!(device.name, "nvme0n1");
    assert_eq!(device.model.as_deref(), Some("SAMSUNG MZVL21T0HCLR-00B00"));
    assert_eq!(device.serial.as_deref(), Some("S676NX0R123456"));
    assert_eq!(device.firmware.as_deref(), Some("GXA7801Q"));
    assert_eq!(device.by_id, ["nvme-eui.002531"]);
    assert_eq!(device.capacity_bytes, 1_024_209_543_168);
    assert_eq!(
        (device.logical_block_bytes, device.physical_block_bytes),
        (512, 4096)
    );
    assert_eq!(device.scheduler.as_deref(), Some("none"));
    assert_eq!(device.nr_requests, Some(1023));
    assert_eq!(device.write_cache.as_deref(), Some("write back"));
    assert_eq!(device.rotational, Some(false));
    assert_eq!(
        device.pcie_link.as_deref(),
        Some("8.0 GT/s x4 of 16.0 GT/s x4")
    );
    assert_eq!(device.backing, None);
    let place = device.partition.unwrap();
    assert_eq!(
        (place.name.as_str(), place.start_bytes, place.size_bytes),
        ("nvme0n1p1", 1 << 20, 2 << 20)
    );
}

/// Both lie in the folder of the controller.
#[test]
fn a_generic_device_is_its_block_device() {
    let tree = Tree::new();
    let disk = tree.nvme(1).remove(0);
    let folder = disk.dir.parent().unwrap().join("ng0n1");
    let folder = Path::new("/").join(folder.strip_prefix(tree.at("/")).unwrap());
    let folder = folder.to_str().unwrap();
    tree.write(&format!("{folder}/dev"), "235:4\n");
    tree.link("/sys/dev/char/235:4", folder);
    tree.write("/sys/class/nvme-generic/x", "");
    tree.write("/sys/class/tty/x", "");
    tree.link(&format!("{folder}/subsystem"), "/sys/class/nvme-generic");
    assert_eq!(tree.sys().by_generic(235, 4), Some(disk));
    assert_eq!(tree.sys().by_generic(235, 5), None);
    std::fs::remove_file(tree.at(&format!("{folder}/subsystem"))).unwrap();
    tree.link(&format!("{folder}/subsystem"), "/sys/class/tty");
    assert_eq!(tree.sys().by_generic(235, 4), None, "of another class");
}

/// Each in a folder of its own below the SCSI device.
#[test]
fn a_generic_scsi_device_is_its_disk() {
    let tree = Tree::new();
    let device = "/sys/devices/pci0/host0/target0:0:0/0:0:0:0";
    let [disk, generic] = ["block/sdq", "scsi_generic/sg3"].map(|at| format!("{device}/{at}"));
    tree.write(&format!("{disk}/dev"), "65:0\n");
    tree.write(&format!("{generic}/dev"), "21:3\n");
    tree.link("/sys/dev/char/21:3", &generic);
    tree.write("/sys/class/scsi_generic/x", "");
    tree.link(&format!("{generic}/subsystem"), "/sys/class/scsi_generic");
    let found = tree.sys().by_generic(21, 3).unwrap();
    assert_eq!(
        (found.name.as_str(), found.number()),
        ("sdq", Some((65, 0)))
    );
    // A tape has no disk.
    std::fs::remove_dir_all(tree.at(&disk)).unwrap();
    assert_eq!(tree.sys().by_generic(21, 3), None);
}

#[test]
fn a_sata_disk_is_told_in_full_and_a_sas_disk_with_its_maker() {
    let tree = Tree::new();
    let sata = identity::block_device(&tree.sys(), &tree.sata());
    assert_eq!(sata.model.as_deref(), Some("HGST HUS726060ALE610"));
    assert_eq!(sata.firmware.as_deref(), Some("APGNT517"));
    assert_eq!(sata.serial.as_deref(), Some("K1G2H3AB"));
    assert_eq!(sata.scheduler.as_deref(), Some("mq-deadline"));
    assert_eq!((sata.rotational, sata.pcie_link), (Some(true), None));

    let dir = format!("{SAS}/block/sdb");
    let node = tree.disk(&dir, "8:16", 100);
    tree.link(&format!("{dir}/device"), SAS);
    tree.write(&format!("{SAS}/vendor"), "SEAGATE \n");
    tree.write(&format!("{SAS}/model"), "ST4000NM0023    \n");
    tree.write(&format!("{SAS}/rev"), "0004\n");
    tree.write(
        "/run/udev/data/b8:16",
        "S:disk/by-id/x\nE:ID_SERIAL_SHORT=5000c50\n",
    );
    let sas = identity::block_device(&tree.sys(), &node);
    assert_eq!(sas.model.as_deref(), Some("SEAGATE ST4000NM0023"));
    assert_eq!(
        (sas.firmware.as_deref(), sas.serial.as_deref()),
        (Some("0004"), Some("5000c50"))
    );
}

#[test]
fn devices_that_are_no_hardware_say_what_they_are() {
    let tree = Tree::new();
    let sys = tree.sys();
    let at = |name: &str| format!("/sys/devices/virtual/block/{name}");
    let looped = tree.disk(&at("loop3"), "7:3", 8);
    tree.write(&at("loop3/loop/backing_file"), "/srv/a disk.img\n");
    let zram = tree.disk(&at("zram0"), "251:0", 8);
    let mapped = tree.disk(&at("dm-0"), "253:0", 8);
    tree.write(&at("dm-0/dm/name"), "vg-root\n");
    tree.write(&at("dm-0/dm/uuid"), "LVM-abcdef\n");
    tree.link(&at("dm-0/slaves/loop3"), &at("loop3"));
    let array = tree.disk(&at("md0"), "9:0", 8);
    tree.write(&at("md0/md/level"), "raid1\n");
    let backing = |node: &SysBlock| identity::block_device(&sys, node).backing.unwrap();
    assert_eq!(backing(&looped), "/srv/a disk.img");
    assert_eq!(backing(&zram), "zram");
    assert_eq!(backing(&mapped), "LVM vg-root on loop3");
    assert_eq!(backing(&array), "md raid1");
}

#[test]
fn a_serial_that_several_namespaces_share_names_none_of_them() {
    let tree = Tree::new();
    let sys = tree.sys();
    let path = Path::new("/dev/nvme0n1");
    let one = tree.nvme(1).remove(0);
    assert_eq!(words(&sys, path, &one), ["S676NX0R123456", "eui.002531"]);

    let tree = Tree::new();
    let sys = tree.sys();
    let both = tree.nvme(2);
    assert_eq!(words(&sys, path, &both[0]), ["eui.002531"]);
    tree.by_id("nvme-eui.002532", "nvme0n2");
    let second = words(&sys, Path::new("/dev/nvme0n2"), &both[1]);
    assert_eq!(second, ["nvme-eui.002532", "eui.002532"]);

    for right in [
        "nvme-eui.002532",
        "/dev/disk/by-id/nvme-eui.002532",
        " eui.002532\n",
    ] {
        assert!(given(right).name(&sys, &both[1], &second), "{right}");
    }
    // A device that has a name of its own is not confirmed by path and size.
    for wrong in [
        "S676NX0R123456",
        "eui.002531",
        "/dev/nvme0n2=1000204632KiB",
        "nvme-eui",
        "",
    ] {
        assert!(!given(wrong).name(&sys, &both[1], &second), "{wrong}");
    }
}

#[test]
fn a_partition_answers_to_no_name_of_its_disk() {
    let tree = Tree::new();
    let sys = tree.sys();
    tree.sata();
    let at = format!("{SATA}/block/sda");
    let partition = tree.partition(&at, "sda1", "8:1", 4096);
    let path = Path::new("/dev/sda1");
    assert_eq!(words(&sys, path, &partition), ["/dev/sda1=2MiB"]);
    tree.by_path("pci-0000:00:17.0-ata-1-part1", "sda1");
    assert_eq!(
        words(&sys, path, &partition),
        ["pci-0000:00:17.0-ata-1-part1"]
    );

    tree.by_id("ata-HGST_K1G2H3AB", "sda");
    tree.by_id("ata-HGST_K1G2H3AB-part1", "sda1");
    tree.write("/run/udev/data/b8:1", "E:ID_PART_ENTRY_UUID=6c61-01\n");
    let names = words(&sys, path, &partition);
    assert_eq!(names, ["ata-HGST_K1G2H3AB-part1", "PARTUUID=6c61-01"]);
    for right in [
        "ata-HGST_K1G2H3AB-part1",
        "6c61-01",
        "PARTUUID=6c61-01",
        "/dev/disk/by-partuuid/6c61-01",
    ] {
        assert!(given(right).name(&sys, &partition, &names), "{right}");
    }
    for wrong in ["K1G2H3AB", "ata-HGST_K1G2H3AB", "/dev/sda1=2MiB"] {
        assert!(!given(wrong).name(&sys, &partition, &names), "{wrong}");
    }

    // A cloned disk has the same PARTUUIDs.
    tree.virtio("vda", "253:0", "CLONE");
    let clone = tree.partition(&format!("{VIRTIO}/vda"), "vda1", "253:1", 4096);
    tree.write("/run/udev/data/b253:1", "E:ID_PART_ENTRY_UUID=6C61-01\n");
    assert_eq!(words(&sys, path, &partition), ["ata-HGST_K1G2H3AB-part1"]);
    assert_eq!(
        words(&sys, Path::new("/dev/vda1"), &clone),
        ["/dev/vda1=2MiB"]
    );
}

#[test]
fn a_link_that_leads_to_either_of_two_disks_names_neither() {
    let tree = Tree::new();
    let sys = tree.sys();
    let one = tree.virtio("vda", "253:0", "DUPSERIAL");
    tree.by_id("virtio-DUPSERIAL", "vda");
    let path = Path::new("/dev/vda");
    assert_eq!(words(&sys, path, &one), ["virtio-DUPSERIAL", "DUPSERIAL"]);

    let two = tree.virtio("vdb", "253:16", "DUPSERIAL");
    assert_eq!(words(&sys, path, &one), ["/dev/vda=32MiB"]);
    tree.by_path("pci-0000:00:04.0", "vda");
    let names = words(&sys, path, &one);
    assert_eq!(names, ["pci-0000:00:04.0"]);
    assert!(given("/dev/disk/by-path/pci-0000:00:04.0").name(&sys, &one, &names));
    for wrong in ["virtio-DUPSERIAL", "DUPSERIAL", "/dev/vda=32MiB"] {
        assert!(!given(wrong).name(&sys, &one, &names), "{wrong}");
    }
    // Nor its partitions, whose links have the serial number in them, too.
    let partition = tree.partition(&format!("{VIRTIO}/vdb"), "vdb1", "253:17", 4096);
    tree.by_id("virtio-DUPSERIAL-part1", "vdb1");
    assert_eq!(
        words(&sys, Path::new("/dev/vdb1"), &partition),
        ["/dev/vdb1=2MiB"]
    );
    assert_eq!(words(&sys, Path::new("/dev/vdb"), &two), ["/dev/vdb=32MiB"]);
}

/// The bridge in a dock gives all disks its own number, and the disks say theirs by
/// themselves: only udev knows who else wants the link.
#[test]
fn a_link_that_another_device_claims_is_no_name() {
    let tree = Tree::new();
    let sys = tree.sys();
    let one = tree.virtio("vda", "253:0", "");
    tree.virtio("vdb", "253:16", "");
    tree.by_id("usb-Dock_0-0:0", "vda");
    let path = Path::new("/dev/vda");
    assert_eq!(words(&sys, path, &one), ["usb-Dock_0-0:0"]);
    let claims = r"/run/udev/links/\x2fdisk\x2fby-id\x2fusb-Dock_0-0:0";
    tree.write(&format!("{claims}/b253:0"), "0:/dev/vda");
    assert_eq!(words(&sys, path, &one), ["usb-Dock_0-0:0"]);
    tree.write(&format!("{claims}/b253:16"), "0:/dev/vdb");
    assert_eq!(words(&sys, path, &one), ["/dev/vda=32MiB"]);
}

#[test]
fn the_most_specific_name_comes_first() {
    let tree = Tree::new();
    let sys = tree.sys();
    let names = [
        "nvme-SAMSUNG_MZVL21T0HCLR-00B00_S676NX0R123456",
        "nvme-SAMSUNG_MZVL21T0HCLR-00B00_S676NX0R123456_1",
        "nvme-eui.002531",
    ];
    let both = tree.nvme(2);
    tree.write(&format!("{NVME}/nvme/nvme0/nvme0n1/nsid"), "1\n");
    tree.write(&format!("{NVME}/nvme/nvme0/nvme0n2/nsid"), "2\n");
    for name in names {
        tree.by_id(name, "nvme0n1");
    }
    // One of two namespaces: the name without its number is the drive's.
    assert_eq!(
        words(&sys, Path::new("/dev/nvme0n1"), &both[0]),
        [names[2], names[1], "eui.002531"]
    );
}

#[test]
fn a_use_of_one_path_is_a_use_of_the_drive() {
    let tree = Tree::new();
    let sys = tree.sys();
    let [sda, sdb] = [("sda", "8:0"), ("sdb", "8:16")].map(|(name, number)| {
        let disk = tree.lun(name, number, "naa.5000c5", 7);
        tree.partition(
            &format!(
                "/{}",
                disk.dir.strip_prefix(tree.at("/")).unwrap().display()
            ),
            &format!("{name}1"),
            &format!("{number}1"),
            4096,
        );
        disk
    });
    tree.write(
        "/proc/self/mountinfo",
        "1 0 8:161 / /data rw - xfs /dev/sdb1 rw\n",
    );
    assert_eq!(
        told(&of_device(&sys, &sda)),
        ["/dev/sdb1 is mounted on /data"]
    );
    assert_eq!(
        told(&of_device(&sys, &sda.partitions()[0])),
        ["/dev/sdb1 is mounted on /data"]
    );
    // The name of the drive confirms either path, and both are known as one drive.
    assert_eq!(
        words(&sys, Path::new("/dev/sda"), &sda),
        ["LUN", "naa.5000c5"]
    );
    let [one, other] = [&sda, &sdb].map(|disk| identity::block_device(&sys, disk));
    assert!(!one.is_duplicate && one.is_same_drive(&other));

    tree.write("/proc/self/mountinfo", "");
    let listed = drives::of(&sys, Transport::Scsi);
    let against: Vec<String> = listed
        .iter()
        .map(|drive| drive.against.join("; "))
        .collect();
    assert_eq!(against, ["", "it is another path to /dev/sda"]);
}

#[test]
fn a_wwid_of_two_drives_with_different_content_identifies_neither() {
    let tree = Tree::new();
    let sys = tree.sys();
    let sda = tree.lun("sda", "8:0", "naa.5000c5", 7);
    let alone = identity::block_device(&sys, &sda);
    assert_eq!(alone.unique_id.as_deref(), Some("naa.5000c5"));
    assert!(!alone.is_duplicate);
    let sdb = tree.lun("sdb", "8:16", "naa.5000c5", 8);
    tree.write(
        "/proc/self/mountinfo",
        "1 0 8:16 / /data rw - xfs /dev/sdb rw\n",
    );
    assert_eq!(told(&of_device(&sys, &sda)), [""; 0]);
    assert_eq!(words(&sys, Path::new("/dev/sda"), &sda), ["/dev/sda=1MiB"]);
    let [one, other] = [&sda, &sdb].map(|disk| identity::block_device(&sys, disk));
    assert!(one.is_duplicate && other.is_duplicate);
    assert!(one.is_same_drive(&one) && !one.is_same_drive(&other));
    assert!(
        !alone.is_same_drive(&other),
        "the record of one, and then the other"
    );
}

#[test]
fn a_device_repeats_the_names_of_the_disks_below_it() {
    let tree = Tree::new();
    let sys = tree.sys();
    let disk = tree.virtio("vda", "253:0", "LUN1");
    let mapped = "/sys/devices/virtual/block/dm-0";
    let multipath = tree.disk(mapped, "254:0", 65536);
    tree.link(&format!("{mapped}/slaves/vda"), &format!("{VIRTIO}/vda"));
    tree.link(&format!("{VIRTIO}/vda/holders/dm-0"), mapped);
    tree.by_id("dm-uuid-mpath-LUN1", "dm-0");
    let names = words(&sys, Path::new("/dev/dm-0"), &multipath);
    assert_eq!(names, ["dm-uuid-mpath-LUN1"]);
    assert_eq!(words(&sys, Path::new("/dev/vda"), &disk), ["LUN1"]);
}

/// A disk: sda1 is mounted; sda2 is LVM, on it dm-0, mounted as / and, under
/// another number, by btrfs; sda3 is swap.
fn busy() -> (Tree, SysBlock) {
    let tree = Tree::new();
    let disk = tree.sata();
    let at = format!("{SATA}/block/sda");
    for n in 1..=4 {
        tree.partition(&at, &format!("sda{n}"), &format!("8:{n}"), 4096);
    }
    let mapped = "/sys/devices/virtual/block/dm-0";
    tree.disk(mapped, "253:0", 8);
    tree.write(&format!("{mapped}/dm/name"), "vg-root\n");
    tree.write(&format!("{mapped}/dm/uuid"), "LVM-abcdef\n");
    tree.link(&format!("{at}/sda2/holders/dm-0"), mapped);
    tree.write("/dev/mapper/x", "");
    fs::remove_file(tree.at("/dev/mapper/x")).unwrap();
    tree.link("/dev/mapper/vg-root", "/dev/dm-0");
    tree.write(
        "/proc/self/mountinfo",
        "1 0 8:1 / /boot rw - ext4 /dev/sda1 rw\n\
         2 0 0:40 / / rw - btrfs /dev/mapper/vg-root rw\n\
         3 0 0:5 / /proc rw - proc proc rw\n",
    );
    tree.write(
        "/proc/77/mountinfo",
        "1 0 8:4 / /data rw - xfs /dev/sda4 rw\n2 0 8:1 / /boot rw - ext4 /dev/sda1 rw\n",
    );
    fs::create_dir_all(tree.at("/proc/77/ns")).unwrap();
    symlink("mnt:[2]", tree.at("/proc/77/ns/mnt")).unwrap();
    tree.write(
        "/proc/swaps",
        "Filename\tType\tSize\tUsed\tPriority\n/dev/sda3   partition\t2097148\t0\t-2\n",
    );
    (tree, disk)
}

fn told(uses: &[Use]) -> Vec<String> {
    uses.iter().map(Use::to_string).collect()
}

#[test]
fn everything_stacked_on_a_disk_is_found() {
    let (tree, disk) = busy();
    assert_eq!(
        told(&of_device(&tree.sys(), &disk)),
        [
            "/dev/sda1 is mounted on /boot",
            "/dev/sda2 is held by /dev/dm-0 (LVM vg-root)",
            "/dev/dm-0 is mounted on /",
            "/dev/sda3 is in use as swap",
            "/dev/sda4 is mounted on /data (seen by process 77, in another mount namespace)",
        ]
    );
}

#[test]
fn a_partition_is_free_while_its_neighbours_are_in_use() {
    let (tree, _) = busy();
    let at = format!("{SATA}/block/sda");
    let free = tree.partition(&at, "sda5", "8:5", 4096);
    assert_eq!(told(&of_device(&tree.sys(), &free)), [""; 0]);
    // Unless something holds the disk as a whole.
    tree.disk("/sys/devices/virtual/block/md0", "9:0", 8);
    tree.link(
        &format!("{at}/holders/md0"),
        "/sys/devices/virtual/block/md0",
    );
    let uses = told(&of_device(&tree.sys(), &free));
    assert_eq!(uses, ["/dev/sda is held by /dev/md0 (md)"]);
}

#[test]
fn a_loop_device_set_up_in_another_namespace_counts_by_its_files_name() {
    let tree = Tree::new();
    let disk = tree.sata();
    let looped = "/sys/devices/virtual/block/loop3";
    tree.disk(looped, "7:3", 8);
    tree.write(&format!("{looped}/loop/backing_file"), "/host/dev/sda\n");
    let uses = told(&of_device(&tree.sys(), &disk));
    assert_eq!(uses, ["/dev/sda is behind loop device /dev/loop3"]);
}

#[test]
fn the_machine_is_described_from_what_it_says() {
    let tree = Tree::new();
    tree.write(
        "/proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Xeon(R) Gold 6230\n",
    );
    tree.write(
        "/proc/meminfo",
        "MemTotal:       16319808 kB\nMemFree: 1 kB\n",
    );
    for (cpu, governor) in [(0, "performance"), (1, "performance"), (2, "powersave")] {
        tree.write(
            &format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"),
            governor,
        );
    }
    let machine = fathom_device::environment::capture_from(&tree.sys(), &[]);
    assert_eq!(machine.cpu_model.as_deref(), Some("Xeon(R) Gold 6230"));
    assert_eq!(
        machine.cpu_governor.as_deref(),
        Some("performance, powersave")
    );
    assert_eq!(machine.memory_bytes, Some(16_319_808 << 10));
    assert!(machine.cpus > 0 && !machine.kernel.is_empty());

    let nothing = fathom_device::environment::capture_from(&Tree::new().sys(), &[]);
    assert_eq!(
        (
            nothing.cpu_model,
            nothing.cpu_governor,
            nothing.memory_bytes
        ),
        (None, None, None)
    );
}

#[test]
fn files_are_told_by_their_file_system_and_a_missing_one_by_its_folder() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("not/yet");
    let machine = environment(&[path.clone(), PathBuf::from("/dev/shm")]);
    let first = machine.targets[0].clone();
    assert_eq!((first.path, first.device), (path.clone(), None));
    let file_system = first.file_system.unwrap();
    assert!(dir.path().starts_with(&file_system.mount_point));
    assert!(file_system.size_bytes >= file_system.free_bytes && file_system.free_bytes > 0);
    let shared = machine.targets[1].file_system.clone().unwrap();
    assert_eq!(shared.kind, "tmpfs");
    assert_eq!(shared.device, None);

    let space = fathom_device::space::of(&path).unwrap();
    assert_eq!(space.size_bytes, file_system.size_bytes);
    assert!(!space.read_only);
    let shared = fathom_device::space::of(Path::new("/dev/shm/x")).unwrap();
    assert!(shared.in_memory);
    assert!(fathom_device::space::of(Path::new("/proc/1")).is_ok());
}

fn listed(tree: &Tree, kind: Transport) -> Vec<(String, Vec<String>)> {
    drives::of(&tree.sys(), kind)
        .into_iter()
        .map(|drive| (drive.node.name, drive.against))
        .collect()
}

#[test]
fn the_drives_of_a_kind_are_listed_with_what_keeps_each_from_being_written() {
    let (tree, _) = busy();
    tree.nvme(2);
    let hidden = format!("{NVME}/nvme/nvme0/nvme0c0n1");
    tree.disk(&hidden, "259:99", 100);
    tree.write(&format!("{hidden}/hidden"), "1\n");
    let more = |host: &str, name: &str, number: &str, sectors| {
        let address = format!("/sys/devices/pci0000:00/{host}");
        let dir = format!("{address}/block/{name}");
        tree.disk(&dir, number, sectors);
        tree.link(&format!("{dir}/device"), &address);
        (address, dir)
    };
    let (sas, _) = more("host1/target1:0:0/1:0:0:0", "sdb", "8:16", 100);
    tree.write(&format!("{sas}/vendor"), "SEAGATE \n");
    tree.write(&format!("{sas}/type"), "0\n");
    // A SATA disk behind a SAS adapter.
    let (behind, dir) = more("host1/target1:0:1/1:0:1:0", "sdc", "8:32", 100);
    tree.write(&format!("{behind}/vendor"), "ATA     \n");
    tree.write(&format!("{dir}/ro"), "1\n");
    let (stick, _) = more("usb2/2-1/host9/target9:0:0/9:0:0:0", "sdd", "8:48", 100);
    tree.write(&format!("{stick}/vendor"), "SanDisk \n");
    let (cd, _) = more("ata2/host2/target2:0:0/2:0:0:0", "sr0", "11:0", 0);
    tree.write(&format!("{cd}/type"), "5\n");
    more("host1/target1:0:2/1:0:2:0", "sdaa", "8:416", 0);

    let named = |name: &str, against: &[&str]| {
        let against = against.iter().map(|text| (*text).to_owned());
        (name.to_owned(), against.collect::<Vec<_>>())
    };
    assert_eq!(
        listed(&tree, Transport::Nvme),
        [named("nvme0n1", &[]), named("nvme0n2", &[])]
    );
    // The first one holds the running system: nothing else is said of it.
    assert_eq!(
        listed(&tree, Transport::Ata),
        [
            named(
                "sda",
                &["it holds the running system (/dev/dm-0 is mounted on /)"]
            ),
            named("sdc", &["it is read-only"]),
        ]
    );
    assert_eq!(
        listed(&tree, Transport::Scsi),
        [
            named("sdb", &[]),
            named(
                "sdd",
                &["it is attached by USB: name it itself if it is meant"]
            ),
            named("sdaa", &["it has no medium, or no capacity"]),
        ]
    );
}

#[test]
fn a_namespace_of_a_fabric_and_one_of_several_paths_are_nvme_and_a_loop_device_is_no_drive() {
    let tree = Tree::new();
    let over = tree.disk(
        "/sys/devices/virtual/nvme-fabrics/ctl/nvme3/nvme3n1",
        "259:1",
        8,
    );
    let paths = tree.disk(
        "/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme4n1",
        "259:2",
        8,
    );
    let looped = tree.disk("/sys/devices/virtual/block/loop3", "7:3", 8);
    let virtio = tree.disk(
        "/sys/devices/pci0000:00/0000:00:02.0/virtio1/block/vda",
        "254:0",
        8,
    );
    let kinds = [&over, &paths, &looped, &virtio].map(drives::transport);
    let nvme = Some(Transport::Nvme);
    assert_eq!(kinds, [nvme, nvme, None, None]);
}

/// As Linux 6.1 shows them (target_core_iblock.c, target_core_file.c, nvmet/configfs.c).
#[test]
fn what_the_kernel_serves_to_other_machines_is_in_use() {
    let tree = Tree::new();
    let disk =
        |name: &str, number: &str| tree.disk(&format!("/sys/devices/pci0/{name}"), number, 1 << 21);
    let [vda, vdb, vdc, vdd] = [
        ("vda", "253:0"),
        ("vdb", "253:16"),
        ("vdc", "253:32"),
        ("vdd", "253:48"),
    ]
    .map(|(name, number)| disk(name, number));
    let namespace = |number: u32, path: &str, enabled: &str| {
        let at = format!("/sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/{number}");
        tree.write(&format!("{at}/device_path"), format!("{path}\n"));
        tree.write(&format!("{at}/enable"), enabled);
    };
    tree.link("/dev/disk/by-id/virtio-A", "/dev/vda");
    namespace(1, "/dev/disk/by-id/virtio-A", "1\n");
    namespace(2, "/dev/vdb", "0\n");
    namespace(3, "(null)", "1\n");
    let core = "/sys/kernel/config/target/core";
    let iblock = "Status: ACTIVATED  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 1280\n        iBlock device: vdc  UDEV PATH: /dev/vdc readonly: 0\n        Major: 253 Minor: 32  CLAIMED: IBLOCK\n";
    tree.write(&format!("{core}/iblock_0/disk/info"), iblock);
    let off = iblock
        .replace("ACTIVATED", "DEACTIVATED")
        .replace("Minor: 32", "Minor: 48");
    tree.write(&format!("{core}/iblock_1/off/info"), off);
    let told = |disk: &SysBlock| -> Vec<(String, String)> {
        let uses = of_device(&tree.sys(), disk);
        uses.iter()
            .map(|it| (it.to_string(), it.remedy()))
            .collect()
    };
    let remedy = "echo 0 > /sys/kernel/config/nvmet/subsystems/nqn.x/namespaces/1/enable";
    let served = "/dev/vda is served to other machines as NVMe subsystem nqn.x, namespace 1";
    assert_eq!(told(&vdb), []);
    assert_eq!(told(&vdd), []);
    let lio = "/dev/vdc is served to other machines as LIO backstore iblock/disk";
    assert_eq!(
        told(&vdc),
        [(lio.into(), "targetcli /backstores/block delete disk".into())]
    );
    assert_eq!(told(&vda), [(served.into(), remedy.into())]);
}

#[test]
fn a_device_is_not_free_where_what_is_served_cannot_be_seen() {
    let tree = Tree::new();
    let disk = tree.disk("/sys/devices/pci0/vda", "253:0", 1 << 21);
    let told = || -> Vec<String> {
        let uses = of_device(&tree.sys(), &disk);
        uses.iter().map(ToString::to_string).collect()
    };
    assert_eq!(told(), [""; 0]);
    tree.write("/sys/module/nvmet/refcnt", "1\n");
    let unseen = "/dev/vda may be served to other machines: nvmet is loaded, and what it serves is not visible";
    assert_eq!(told(), [unseen]);
    // Containers have no configfs.
    let pids = tree.at("/proc/self/ns/pid");
    std::fs::create_dir_all(pids.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink("pid:[4026532000]", pids).unwrap();
    assert_eq!(told(), [""; 0]);
    std::fs::create_dir_all(tree.at("/sys/kernel/config/nvmet")).unwrap();
    assert_eq!(told(), [""; 0]);
}
