//! On a machine of its own: purges of NVMe, SCSI and ATA disks as QEMU has them,
//! some of which say that they did it and did not.

use fathom_testkit::{Guest, GuestAnswer, require};
use serde_json::Value;

use crate::guests::{GUEST, MIB, NEWER_GUEST, disk_of};

/// The word that names it.
fn word(guest: &mut Guest, disk: &str) -> String {
    let wwid = format!("cat /sys/block/{disk}/wwid 2>/dev/null || lsblk -dno SERIAL /dev/{disk}");
    guest.must(&wwid).trim().to_owned()
}

/// Purges a disk that answers to `words`, as a document.
fn purge(guest: &mut Guest, disk: &str, words: &[&str], options: &str) -> (GuestAnswer, Value) {
    let destroy: Vec<String> = words
        .iter()
        .map(|word| format!("--destroy '{word}'"))
        .collect();
    let answer = guest.run(&format!(
        "cd /tmp && fathom purge /dev/{disk} -q --json --samples 128 {options} {}",
        destroy.join(" ")
    ));
    let doc = serde_json::from_str(&answer.stdout).unwrap_or(Value::Null);
    (answer, doc)
}

/// Purges it and expects that to go well; gives what was found.
fn purged(guest: &mut Guest, disk: &str, words: &[&str], options: &str) -> Value {
    let (answer, doc) = purge(guest, disk, words, options);
    assert_eq!(answer.code, 0, "{disk} {options}: {answer:?}");
    assert_eq!(doc["status"], "complete");
    let seen = &doc["purged"]["verification"];
    assert_eq!(
        (seen["kept"].as_u64(), seen["unreadable"].as_u64()),
        (Some(0), Some(0)),
        "{doc}"
    );
    doc
}

/// Fills the first MiB with a letter.
fn write(guest: &mut Guest, disk: &str) {
    guest.must(&format!(
        "head -c 1048576 /dev/zero | tr '\\0' x | dd of=/dev/{disk} bs=64k iflag=fullblock oflag=direct 2>/dev/null"
    ));
}

/// How many of the letters are still there.
fn letters(guest: &mut Guest, disk: &str) -> u64 {
    let line =
        format!("dd if=/dev/{disk} bs=1M count=1 iflag=direct 2>/dev/null | tr -dc x | wc -c");
    guest.must(&line).trim().parse().unwrap()
}

#[test]
fn nvme_namespaces_are_formatted_by_their_id_and_no_other() {
    let mut guest = require!(GUEST.take());
    let seven = disk_of(&mut guest, "PURGE-TWO", 32 * MIB);
    let four = disk_of(&mut guest, "PURGE-TWO", 16 * MIB);
    let (word7, word4) = (word(&mut guest, &seven), word(&mut guest, &four));
    assert!(
        !seven.ends_with("n7") && !four.ends_with("n4"),
        "{seven} {four}"
    );
    let list = guest.must(&format!("fathom purge /dev/{seven} --list"));
    assert!(
        list.contains("nvme-format") && list.contains("0*: 512+0"),
        "{list}"
    );
    assert!(
        list.contains(&format!("/dev/{four} (namespace 4)")),
        "{list}"
    );
    for ses in [0, 1] {
        write(&mut guest, &seven);
        write(&mut guest, &four);
        let doc = purged(
            &mut guest,
            &seven,
            &[&word7],
            &format!("--ses {ses} --reason test"),
        );
        assert_eq!(
            (&doc["method"], &doc["reason"]),
            (&"nvme-format".into(), &"test".into())
        );
        let command = doc["commands"][1]["command"].as_str().unwrap();
        assert!(
            command.starts_with(&format!("nvme format --namespace-id=0x7 --ses={ses} ")),
            "{command}"
        );
        assert_eq!(letters(&mut guest, &seven), 0, "ses {ses}");
        assert_eq!(
            letters(&mut guest, &four),
            MIB,
            "ses {ses}: the other namespace"
        );
    }
    what_the_drive_cannot_do_is_refused(&mut guest, [&seven, &word7], &four);
    for method in ["blkdiscard", "overwrite", "overwrite-random"] {
        purged(&mut guest, &four, &[&word4], &format!("--method {method}"));
    }
    every_namespace_must_be_free_and_named(&mut guest, [&seven, &word7], [&four, &word4]);
    other_blocks_and_a_reset(&mut guest);
}

fn what_the_drive_cannot_do_is_refused(guest: &mut Guest, [seven, word7]: [&str; 2], four: &str) {
    for (options, code, said) in [
        ("--ses 2", 3, "no cryptographic erase"),
        ("--lbaf 40", 3, "no LBA format 40"),
        (
            "--nsid 4",
            3,
            "namespace 4 is not this device, which is namespace 7",
        ),
        ("--method nvme-sanitize", 5, "no such sanitize"),
        ("--method nvme-sanitize-block --unchecked", 4, four),
        ("--method scsi-format", 5, "no SCSI device"),
    ] {
        let (answer, _) = purge(guest, seven, &[word7], options);
        assert_eq!(answer.code, code, "{options}: {answer:?}");
        assert!(answer.stderr.contains(said), "{options}: {answer:?}");
    }
}

/// A format of all namespaces.
fn every_namespace_must_be_free_and_named(
    guest: &mut Guest,
    [seven, word7]: [&str; 2],
    [four, word4]: [&str; 2],
) {
    let all = "--nsid 0xffffffff --method nvme-format";
    guest.must(&format!(
        "mkfs.ext4 -q -O ^has_journal /dev/{four} && mkdir -p /mnt && mount -o ro /dev/{four} /mnt"
    ));
    let refused = |guest: &mut Guest, words: &[&str], said: &str| {
        let before = guest.must(&format!("md5sum /dev/{four} /dev/{seven}"));
        let (answer, _) = purge(guest, seven, words, all);
        assert_eq!(answer.code, 4, "{answer:?}");
        assert!(answer.stderr.contains(said), "{said}: {answer:?}");
        assert_eq!(
            guest.must(&format!("md5sum /dev/{four} /dev/{seven}")),
            before
        );
    };
    refused(
        guest,
        &[word7, word4],
        &format!("/dev/{four} is mounted on /mnt"),
    );
    guest.must("umount /mnt");
    refused(
        guest,
        &[word7, word4],
        &format!("/dev/{four} carries ext2/3/4"),
    );
    guest.must(&format!("wipefs -qa /dev/{four}"));
    refused(
        guest,
        &[word7],
        &format!("/dev/{four} (16 MiB) would be overwritten"),
    );
    write(guest, four);
    let doc = purged(guest, seven, &[word7, word4], all);
    assert_eq!(doc["touched"][0], format!("/dev/{four}"));
    assert_eq!(letters(guest, four), 0);
    let ledgers = guest.must("cat ~/.local/state/fathom/devices/*.jsonl");
    assert!(
        ledgers.contains("\"deed\":\"purged\",\"method\":\"nvme-format\",\"verified\":true"),
        "{ledgers}"
    );
}

/// Another LBA format and back, and a controller that is reset.
fn other_blocks_and_a_reset(guest: &mut Guest) {
    let disk = disk_of(guest, "PURGE-ONE", 24 * MIB);
    // The only namespace: the serial names it.
    let words = ["PURGE-ONE"];
    let list = guest.must(&format!("fathom purge /dev/{disk} --list --json"));
    let list: Value = serde_json::from_str(&list).unwrap();
    let formats = list["lba_formats"].as_array().unwrap();
    let large = formats
        .iter()
        .position(|f| f["data_bytes"] == 4096 && f["metadata_bytes"] == 0);
    for (lbaf, block) in [(large.unwrap(), "4096"), (0, "512")] {
        let doc = purged(guest, &disk, &words, &format!("--lbaf {lbaf}"));
        assert_eq!(doc["purged"]["bytes_after"], 24 * MIB, "{doc}");
        let now = guest.must(&format!("cat /sys/block/{disk}/queue/logical_block_size"));
        assert_eq!(now.trim(), block);
    }
    let doc = purged(guest, &disk, &words, "--reset --timeout 30s");
    let commands = doc["commands"].to_string();
    assert!(commands.contains("reset_controller"), "{commands}");
    let (sanitize, doc) = purge(
        guest,
        &disk,
        &words,
        "--method nvme-sanitize-block --unchecked",
    );
    assert_eq!(sanitize.code, 1, "{sanitize:?}");
    assert!(
        doc["error"].as_str().unwrap().contains("the drive says no"),
        "{doc}"
    );
    let shown = guest.must("cd /tmp && fathom show");
    assert!(
        shown.contains("NOT purged") && shown.contains("nvme-sanitize-block"),
        "{shown}"
    );
}

/// What uses a disk, what is said of it, what undoes it; `D` is the disk.
const USES: [(&str, &str, &str); 6] = [
    (
        "echo ',8M' | sfdisk -q /dev/D && udevadm settle",
        "partition table",
        "wipefs -qa /dev/D && partx -d /dev/D; udevadm settle",
    ),
    (
        "mkfs.ext4 -q -O ^has_journal /dev/D && mkdir -p /mnt && mount -o ro /dev/D /mnt",
        "mounted on /mnt",
        "umount /mnt",
    ),
    ("true", "ext2/3/4", "wipefs -qa /dev/D"),
    (
        "mkswap /dev/D && swapon /dev/D",
        "swap",
        "swapoff /dev/D && wipefs -qa /dev/D",
    ),
    (
        "pvcreate -qq /dev/D && vgcreate -qq vg /dev/D && lvcreate -qq -Zn -L 8M -n lv vg",
        "vg-lv",
        "vgchange -qq -an vg && vgremove -qq -f vg && pvremove -qq /dev/D",
    ),
    (
        "dmsetup create upon --table '0 2048 linear /dev/D 0'",
        "dm-",
        "dmsetup remove upon",
    ),
];

#[test]
fn scsi_disks_are_purged_or_found_out() {
    let mut guest = require!(GUEST.take());
    let scsi = disk_of(&mut guest, "PURGE-SCSI", 48 * MIB);
    let words = ["PURGE-SCSI"];
    for (use_it, said, undo) in USES {
        guest.must(&use_it.replace("/dev/D", &format!("/dev/{scsi}")));
        guest.must("sync");
        let before = guest.must(&format!("awk '{{print $7, $15}}' /sys/block/{scsi}/stat"));
        let (refused, _) = purge(&mut guest, &scsi, &words, "");
        assert_eq!(refused.code, 4, "{said}: {refused:?}");
        assert!(refused.stderr.contains(said), "{said}: {refused:?}");
        let after = guest.must(&format!("awk '{{print $7, $15}}' /sys/block/{scsi}/stat"));
        assert_eq!(before, after, "{said}: something was written");
        guest.must(&undo.replace("/dev/D", &format!("/dev/{scsi}")));
    }
    // UNMAP and WRITE SAME, as the kernel has them.
    for mode in ["unmap", "writesame_16", "writesame_10"] {
        guest.must(&format!(
            "echo {mode} >$(ls -d /sys/block/{scsi}/device/scsi_disk/*)/provisioning_mode"
        ));
        let doc = purged(&mut guest, &scsi, &words, "--method blkdiscard");
        let seen = &doc["purged"]["verification"];
        assert_eq!(seen["zeros"], seen["samples"], "{mode}: {doc}");
    }
    // QEMU takes FORMAT UNIT, says that it is done, and does nothing.
    let (lie, doc) = purge(&mut guest, &scsi, &words, "--method scsi-format");
    assert_eq!(lie.code, 1, "{lie:?}");
    let seen = &doc["purged"]["verification"];
    assert_eq!(seen["kept"], seen["samples"], "{doc}");
    assert_eq!(doc["commands"][1]["status"], 0, "{doc}");
    let (refused, _) = purge(
        &mut guest,
        &scsi,
        &words,
        "--method scsi-sanitize-block --unchecked",
    );
    assert_eq!(refused.code, 1, "{refused:?}");
}

/// QEMU's ATA disks have no security and no sanitize, and abort them. The kernel
/// of the other guest has no driver for AHCI.
#[test]
fn ata_disks_behind_ahci_are_purged_or_found_out() {
    let mut guest = require!(NEWER_GUEST.take());
    let ata = disk_of(&mut guest, "PURGE-ATA", 40 * MIB);
    let driver = guest.must(&format!("readlink -f /sys/block/{ata}/device"));
    assert!(driver.contains("/ata"), "{driver}");
    let words = ["PURGE-ATA"];
    for method in ["ata-security-erase", "ata-sanitize-block"] {
        let (lacks, _) = purge(&mut guest, &ata, &words, &format!("--method {method}"));
        assert_eq!(lacks.code, 5, "{method}: {lacks:?}");
        let options = format!("--method {method} --unchecked");
        let (aborted, doc) = purge(&mut guest, &ata, &words, &options);
        assert_eq!(aborted.code, 1, "{method}: {aborted:?}");
        let error = doc["error"].as_str().unwrap();
        assert!(error.contains("aborted"), "{method}: {error}");
    }
    write(&mut guest, &ata);
    let doc = purged(&mut guest, &ata, &words, "");
    assert_eq!(letters(&mut guest, &ata), 0, "{doc}");
}
