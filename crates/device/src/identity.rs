//! What a target is: a block device with its identity and settings, or a file
//! on a file system.

use std::fs;
use std::path::Path;

use fathom_model::environment::{BlockDevice, FileSystem, Partition, Target};

use crate::ids::{serial, wwid};
use crate::mounts::{self, Mount};
use crate::names;
use crate::paths::{self, Twin};
use crate::stack;
use crate::sys::{Sys, SysBlock, printable, text};

/// Describes what stands behind a path. A path that does not exist yet is
/// described by the folder that would hold it.
pub fn target(sys: &Sys, path: &Path) -> Target {
    let device = sys.by_path(path).map(|node| block_device(sys, &node));
    let mounts = mounts::own(sys);
    let file_system = match device {
        Some(_) => None,
        None => file_system_among(sys, &mounts, path),
    };
    Target {
        path: path.to_owned(),
        device,
        file_system,
        stack: stack::among(sys, &mounts, path),
        leads_to: None,
    }
}

/// Identity and settings of a device. Of a partition, those of the disk it is
/// on, and its own place there.
pub fn block_device(sys: &Sys, node: &SysBlock) -> BlockDevice {
    let disk = node.whole();
    let ata = ata_identity(&disk);
    let (ata_model, ata_firmware) = ata.map_or((None, None), |a| (a.model, a.firmware));
    let is_duplicate = is_duplicate(sys, &disk);
    BlockDevice {
        model: ata_model.or_else(|| model(&disk)),
        serial: serial(sys, &disk),
        unique_id: wwid(&disk),
        is_duplicate,
        by_path: match is_duplicate {
            true => names::linked(sys, "by-path", &disk),
            false => Vec::new(),
        },
        nsid: disk.value("nsid"),
        firmware: ata_firmware.or_else(|| first(&disk, &["firmware_rev", "rev", "fwrev"])),
        by_id: names::linked(sys, "by-id", &disk),
        capacity_bytes: disk.size_bytes(),
        logical_block_bytes: disk.value("queue/logical_block_size").unwrap_or(512),
        physical_block_bytes: disk.value("queue/physical_block_size").unwrap_or(512),
        scheduler: disk.text("queue/scheduler").map(|all| chosen(&all)),
        nr_requests: disk.value("queue/nr_requests"),
        write_cache: disk.text("queue/write_cache"),
        rotational: disk.value::<u8>("queue/rotational").map(|flag| flag != 0),
        pcie_link: pcie_link(&disk),
        backing: backing(&disk),
        partition: node.is_partition().then(|| Partition {
            name: node.name.clone(),
            start_bytes: node.value::<u64>("start").unwrap_or(0).saturating_mul(512),
            size_bytes: node.size_bytes(),
        }),
        name: disk.name,
    }
}

/// The first of these attributes of the device behind the disk that is there.
fn first(disk: &SysBlock, names: &[&str]) -> Option<String> {
    names
        .iter()
        .find_map(|name| disk.text(&format!("device/{name}")))
}

/// NVMe and SCSI name it `model`, MMC `name`. SCSI cuts it to 16 bytes and puts
/// the maker beside it, which for ATA disks says only `ATA`.
fn model(disk: &SysBlock) -> Option<String> {
    let model = first(disk, &["model"]).or_else(|| match disk.name.starts_with("mmcblk") {
        true => first(disk, &["name"]),
        false => None,
    })?;
    match disk.text("device/vendor") {
        // The vendor of a PCI device is a number.
        Some(vendor) if vendor != "ATA" && !vendor.starts_with("0x") => {
            Some(format!("{vendor} {model}"))
        }
        _ => Some(model),
    }
}

/// Whether another drive here reports the identifier of a disk: its WWID where it has
/// one, else its serial number. The namespaces of one NVMe drive share that, and paths
/// to one drive share everything.
fn is_duplicate(sys: &Sys, disk: &SysBlock) -> bool {
    if wwid(disk).is_some() {
        let twins = paths::twins(sys, disk);
        return twins.iter().any(|(_, what)| *what != Twin::Path);
    }
    shares_serial(sys, disk)
}

/// Whether another drive here has the serial number (and namespace) of a disk.
pub fn shares_serial(sys: &Sys, disk: &SysBlock) -> bool {
    let named = |disk: &SysBlock| Some((serial(sys, disk)?, disk.value::<u32>("nsid")));
    let Some(own) = named(disk) else {
        return false;
    };
    let mut same = names::relatives(disk);
    same.extend(paths::certain(sys, disk));
    let mut others = sys.disks().into_iter();
    others.any(|other| {
        let is_other = other != *disk && other.value::<u8>("hidden") != Some(1);
        is_other && !same.contains(&other) && named(&other).as_ref() == Some(&own)
    })
}

struct AtaIdentity {
    model: Option<String>,
    firmware: Option<String>,
}

/// Model and firmware in full, which SCSI's fields cut: VPD page 89h holds the
/// IDENTIFY DEVICE data from byte 60 (SAT-4 12.4.2); in it firmware is words
/// 23–26, model words 27–46, the bytes of each word swapped (ACS-4 7.12.7).
fn ata_identity(disk: &SysBlock) -> Option<AtaIdentity> {
    let page = fs::read(disk.dir.join("device/vpd_pg89")).ok()?;
    let words = |from: usize, to: usize| {
        let bytes = page.get(60 + 2 * from..60 + 2 * to + 2)?;
        let swapped: Vec<u8> = bytes.chunks_exact(2).flat_map(|w| [w[1], w[0]]).collect();
        printable(&swapped)
    };
    Some(AtaIdentity {
        model: words(27, 46),
        firmware: words(23, 26),
    })
}

/// The scheduler in brackets: `none [mq-deadline] kyber`.
pub(crate) fn chosen(all: &str) -> String {
    let inside = all
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(all, |(name, _)| name).to_owned()
}

/// The link of the nearest PCIe device above, `16.0 GT/s x4 of 16.0 GT/s x4`.
/// Devices inside the chipset have no link and say `Unknown`.
fn pcie_link(disk: &SysBlock) -> Option<String> {
    let pci = disk
        .dir
        .ancestors()
        .find(|dir| dir.join("current_link_speed").exists())?;
    let link = |which: &str| {
        let speed = text(&pci.join(format!("{which}_link_speed")))?;
        let width = text(&pci.join(format!("{which}_link_width")))?;
        let speed = speed.trim_end_matches(" PCIe");
        (speed != "Unknown" && width != "0").then(|| format!("{speed} x{width}"))
    };
    Some(match (link("current")?, link("max")) {
        (now, Some(most)) => format!("{now} of {most}"),
        (now, None) => now,
    })
}

/// Which driver made a device of others, and what it is called: `LVM vg-data`, `CRYPT home`, `md raid1`.
pub(crate) fn made_by(disk: &SysBlock) -> Option<String> {
    let (maker, detail) = if disk.dir.join("dm").exists() {
        // dm's uuid begins with the subsystem that made it: LVM-, CRYPT-, mpath-.
        let uuid = disk.text("dm/uuid").unwrap_or_default();
        let maker = uuid.split_once('-').map(|(maker, _)| maker.to_owned());
        let maker = maker.unwrap_or_else(|| "device mapper".to_owned());
        (maker, disk.text("dm/name"))
    } else if disk.dir.join("md").exists() {
        ("md".to_owned(), disk.text("md/level"))
    } else {
        return None;
    };
    Some(
        format!("{maker} {}", detail.unwrap_or_default())
            .trim()
            .to_owned(),
    )
}

/// The file, devices or driver behind a device that is not hardware.
pub(crate) fn backing(disk: &SysBlock) -> Option<String> {
    if let Some(file) = disk.text("loop/backing_file") {
        return Some(file);
    }
    let is_virtual = || disk.dir.components().any(|c| c.as_os_str() == "virtual");
    let by_name = || {
        let kind = disk.name.trim_end_matches(|c: char| c.is_ascii_digit());
        is_virtual().then(|| kind.to_owned())
    };
    let kind = made_by(disk).or_else(by_name)?;
    let under: Vec<String> = disk.linked("slaves").into_iter().map(|n| n.name).collect();
    Some(match under.is_empty() {
        true => kind,
        false => format!("{kind} on {}", under.join(", ")),
    })
}

/// The file system a path lies on, or will lie on once it is made.
pub fn file_system(sys: &Sys, path: &Path) -> Option<FileSystem> {
    file_system_among(sys, &mounts::own(sys), path)
}

fn file_system_among(sys: &Sys, mounts: &[Mount], path: &Path) -> Option<FileSystem> {
    let (path, mount) = mounts::of_path(mounts, path)?;
    let room = rustix::fs::statvfs(&path).ok()?;
    let disk = mount.device(sys);
    Some(FileSystem {
        kind: mount.kind.clone(),
        mount_point: mount.point.clone(),
        source: mount.source.to_string_lossy().into_owned(),
        options: mount.options.clone(),
        size_bytes: room.f_blocks.saturating_mul(room.f_frsize),
        free_bytes: room.f_bavail.saturating_mul(room.f_frsize),
        device: disk.map(|node| block_device(sys, &node)),
    })
}
