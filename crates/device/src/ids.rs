//! What a disk reports as its own: serial number and WWID.

use std::fs;

use crate::sys::{Sys, SysBlock, printable};

/// Serial number from where the kind of device keeps it: virtio in `serial`,
/// NVMe and MMC in `device/serial`, SCSI and ATA in VPD page 80h (SPC-4 7.8.18:
/// length in byte 3, text from byte 4); else what udev noted.
pub fn serial(sys: &Sys, disk: &SysBlock) -> Option<String> {
    disk.text("serial")
        .or_else(|| disk.text("device/serial"))
        .or_else(|| {
            let page = fs::read(disk.dir.join("device/vpd_pg80")).ok()?;
            let length = usize::from(*page.get(3)?);
            printable(page.get(4..)?.get(..length)?)
        })
        .or_else(|| noted_by_udev(sys, disk, "ID_SERIAL_SHORT"))
}

/// A property of a device as udev noted it.
pub fn noted_by_udev(sys: &Sys, disk: &SysBlock, property: &str) -> Option<String> {
    let (major, minor) = disk.number()?;
    let notes = fs::read(sys.path(format!("/run/udev/data/b{major}:{minor}"))).ok()?;
    String::from_utf8_lossy(&notes)
        .lines()
        .find_map(|line| {
            line.strip_prefix("E:")?
                .strip_prefix(property)?
                .strip_prefix('=')
        })
        .and_then(|value| printable(value.as_bytes()))
}

/// The identifier that the kernel makes of what a device reports: EUI-64, NGUID, UUID or
/// WWN, or model, serial number and namespace where it has none of these.
pub fn wwid(disk: &SysBlock) -> Option<String> {
    disk.text("wwid").or_else(|| disk.text("device/wwid"))
}
