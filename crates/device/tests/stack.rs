//! What lies under a path, of recorded trees.

use std::path::Path;

use fathom_device::stack;

use crate::tree::Tree;

/// A GiB.
const SECTORS: u64 = 2 << 20;
const ARRAY: &str = "/sys/devices/virtual/block/md0";
const VOLUME: &str = "/sys/devices/virtual/block/dm-0";

impl Tree {
    fn line(&self, path: &str) -> String {
        let stack = stack::of(&self.sys(), Path::new(path)).unwrap();
        stack.to_string()
    }
}

#[test]
fn a_volume_is_followed_through_an_array_to_the_disks() {
    let tree = Tree::new();
    let disk = |name: &str| format!("/sys/devices/pci0000:00/host0/block/{name}");
    tree.block(&disk("sda"), "8:0", SECTORS);
    tree.block(&disk("sdb"), "8:16", SECTORS);
    for (name, number) in [("sda", "8:1"), ("sdb", "8:17")] {
        let part = format!("{}/{name}1", disk(name));
        tree.block(&part, number, SECTORS);
        tree.write(&format!("{part}/partition"), "1\n");
        tree.link(&format!("{ARRAY}/slaves/{name}1"), &part);
    }
    tree.block(ARRAY, "9:0", SECTORS);
    tree.write(&format!("{ARRAY}/md/level"), "raid1\n");
    tree.block(VOLUME, "253:0", SECTORS);
    tree.write(&format!("{VOLUME}/dm/uuid"), "LVM-abc\n");
    tree.write(&format!("{VOLUME}/dm/name"), "vg-data\n");
    tree.link(&format!("{VOLUME}/slaves/md0"), ARRAY);
    assert_eq!(
        tree.line("/dev/dm-0"),
        "dm-0 (LVM vg-data) → md0 (md raid1) → [sda1 → sda (1 GiB)] + [sdb1 → sdb (1 GiB)]"
    );
}

#[test]
fn what_is_made_in_memory_is_told_apart_from_disks_and_may_have_one_below() {
    let tree = Tree::new();
    tree.block(
        "/sys/devices/pci0000:00/virtio0/block/vda",
        "254:0",
        SECTORS,
    );
    let zram = "/sys/devices/virtual/block/zram0";
    tree.block(zram, "251:0", SECTORS);
    tree.write(&format!("{zram}/backing_dev"), "none\n");
    assert_eq!(tree.line("/dev/zram0"), "zram0 (1 GiB)");
    tree.write(&format!("{zram}/backing_dev"), "/dev/vda\n");
    assert_eq!(tree.line("/dev/zram0"), "zram0 (1 GiB) → vda (1 GiB)");
}

#[test]
fn loop_devices_on_each_other_end() {
    let tree = Tree::new();
    for (name, number, under) in [("loop0", "7:0", "loop1"), ("loop1", "7:1", "loop0")] {
        let dir = format!("/sys/devices/virtual/block/{name}");
        tree.block(&dir, number, SECTORS);
        tree.write(
            &format!("{dir}/loop/backing_file"),
            format!("/dev/{under}\n"),
        );
    }
    assert!(tree.line("/dev/loop0").len() < 1000);
}
