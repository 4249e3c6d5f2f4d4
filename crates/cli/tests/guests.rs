//! The machines with emulated disks that the tests share. A disk is of one test
//! alone, known by its serial number and size: the kernel's names change from boot to
//! boot.

use std::path::Path;

use fathom_testkit::{Guest, GuestPlan, SharedGuest};

pub(crate) const MIB: u64 = 1 << 20;

/// One of Debian 12, without fio.
pub(crate) static GUEST: SharedGuest = SharedGuest::new(|| {
    Ok(with_fathom(GuestPlan::new())
        // Of guest.rs.
        .device("nvme,id=safe-one,serial=FATHOM-NVME-1")
        .disk(64 * MIB, "nvme-ns,bus=safe-one,nsid=3", "")
        .device("virtio-scsi-pci,id=hba")
        .disk(48 * MIB, "scsi-hd,bus=hba.0,serial=FATHOM-SCSI-1", "")
        .device("nvme,id=safe-two,serial=FATHOM-NVME-2")
        .disk(
            32 * MIB,
            "nvme-ns,bus=safe-two,nsid=7,logical_block_size=4096,physical_block_size=4096",
            "",
        )
        .disk(16 * MIB, "nvme-ns,bus=safe-two,nsid=4", "")
        .disk(64 * MIB, "scsi-hd,bus=hba.0,serial=PLAIN", "")
        .disk(64 * MIB, "scsi-hd,bus=hba.0,serial=VANISHES", "")
        .disk(48 * MIB, "scsi-hd,bus=hba.0,serial=STALLS", "")
        .disk(24 * MIB, "scsi-hd,bus=hba.0,serial=BY-COMMAND", "")
        // Of guest_preparing.rs.
        .device("nvme,id=ready,serial=READY-NVME")
        .disk(64 * MIB, "nvme-ns,bus=ready,nsid=1", "")
        // Of guest_purge.rs.
        .device("nvme,id=purge-two,serial=PURGE-TWO")
        .disk(32 * MIB, "nvme-ns,bus=purge-two,nsid=7", "")
        .disk(16 * MIB, "nvme-ns,bus=purge-two,nsid=4", "")
        .device("nvme,id=purge-one,serial=PURGE-ONE")
        .disk(24 * MIB, "nvme-ns,bus=purge-one,nsid=5", "")
        .disk(48 * MIB, "scsi-hd,bus=hba.0,serial=PURGE-SCSI", "")
        // Of ledger.rs.
        .device("nvme,id=ledger,serial=LEDGER-NVME")
        .disk(64 * MIB, "nvme-ns,bus=ledger,nsid=3", "")
        .disk(64 * MIB, "scsi-hd,bus=hba.0,serial=LEDGER-SCSI", "")
        .disk(64 * MIB, "virtio-blk-pci,serial=LEDGER-VIRTIO", "")
        // Of guest_stacks.rs.
        .disk(40 * MIB, "scsi-hd,bus=hba.0,serial=STACK-A", "")
        .disk(40 * MIB, "scsi-hd,bus=hba.0,serial=STACK-B", ""))
});

/// One of Debian 13 with its own fio, and with this machine's as /guest/fio.
pub(crate) static NEWER_GUEST: SharedGuest = SharedGuest::new(|| {
    Ok(with_fathom(GuestPlan::newer())
        .program("fio")?
        // Of guest.rs.
        .device("virtio-scsi-pci,id=hba")
        .disk(
            64 * MIB,
            "scsi-hd,bus=hba.0,serial=THROTTLED",
            "throttling.iops-total=200",
        )
        // Of guest_nvme.rs.
        .device("nvme,id=generic,serial=GENERIC")
        .disk(
            32 * MIB,
            "nvme-ns,bus=generic,nsid=3,logical_block_size=4096,physical_block_size=4096",
            "",
        )
        .device("nvme,id=zns,serial=ZONED")
        .disk(
            64 * MIB,
            "nvme-ns,bus=zns,nsid=1,zoned=true,zoned.zone_size=4M,zoned.zone_capacity=3M,zoned.max_open=4,zoned.max_active=6",
            "",
        )
        // Of guest_prio.rs.
        .device("ahci,id=sata")
        .disk(16 * MIB, "ide-hd,bus=sata.0,serial=SATA", "")
        // Of guest_purge.rs.
        .disk(40 * MIB, "ide-hd,bus=ide.0,serial=PURGE-ATA", ""))
});

pub(crate) fn with_fathom(plan: GuestPlan) -> GuestPlan {
    plan.file(Path::new(env!("CARGO_BIN_EXE_fathom")), "fathom")
}

/// The name of the disk with this serial and size, once it is there.
pub(crate) fn disk_of(guest: &mut Guest, serial: &str, bytes: u64) -> String {
    let name = guest.must(&format!(
        "udevadm settle; until lsblk -dnbo NAME,SERIAL,SIZE | awk '$2 == \"{serial}\" && $3 == {bytes} {{print $1; n++}} END {{exit n != 1}}'; do usleep 100000; done"
    ));
    let name = name.trim().to_owned();
    let sectors = guest.must(&format!("cat /sys/block/{name}/size"));
    assert_eq!(
        sectors.trim(),
        (bytes / 512).to_string(),
        "{serial}: {name}"
    );
    name
}
