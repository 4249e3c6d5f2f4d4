//! The drives of a machine, by the way they are attached: which of them are
//! there, and which of those nobody uses.
//!
//! Found from /sys and /proc alone. A drive that is free by these may still
//! carry data that is wanted: [`crate::safety::check_write`] looks at that.

use std::fmt;
use std::path::Path;

use crate::paths;
use crate::sys::{Sys, SysBlock};
use crate::usage::{self, Use};

/// How a drive is attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transport {
    /// An NVMe namespace, by PCIe or over a fabric.
    Nvme,
    /// A SCSI disk: SAS, Fibre Channel, iSCSI, one of a virtual machine.
    Scsi,
    /// An ATA disk, also behind a SAS adapter.
    Ata,
    /// A SCSI disk by way of USB.
    Usb,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Self::Nvme => "NVMe",
            Self::Scsi => "SCSI",
            Self::Ata => "ATA",
            Self::Usb => "USB",
        })
    }
}

/// One drive.
#[derive(Debug, Clone)]
pub struct FoundDrive {
    /// The whole device.
    pub node: SysBlock,
    /// How it is attached.
    pub transport: Transport,
    /// What keeps it from being written to, each a sentence; empty: nothing
    /// that sysfs or /proc know of.
    pub against: Vec<String>,
}

/// How the device is attached, as its place in sysfs tells; `None` for one that
/// is no drive (a loop device, a device of the device mapper) or of another kind.
pub fn transport(node: &SysBlock) -> Option<Transport> {
    let disk = node.whole();
    let parts: Vec<&str> = disk
        .dir
        .components()
        .filter_map(|part| part.as_os_str().to_str())
        .collect();
    // `…/0000:02:00.0/nvme/nvme0/nvme0n1`; with multipath
    // `/sys/devices/virtual/nvme-subsystem/nvme-subsys0/nvme0n1`; over a fabric
    // `/sys/devices/virtual/nvme-fabrics/ctl/nvme0/nvme0n1`.
    if parts.iter().any(|part| {
        matches!(*part, "nvme" | "nvme-subsystem" | "nvme-fabrics") && disk.name.starts_with("nvme")
    }) {
        return Some(Transport::Nvme);
    }
    if !parts.iter().any(|part| is_scsi_address(part)) {
        return None;
    }
    // USB bridges call themselves ATA's or anything else.
    if parts.iter().any(|part| numbered(part, "usb")) {
        return Some(Transport::Usb);
    }
    // libata and the translation of SAS adapters put `ATA` in the place of the
    // maker (SAT-4, 8.1.2).
    let is_ata = parts.iter().any(|part| numbered(part, "ata"))
        || disk.text("device/vendor").as_deref() == Some("ATA");
    Some(match is_ata {
        true => Transport::Ata,
        false => Transport::Scsi,
    })
}

/// `host:channel:target:lun`, as the kernel names SCSI devices.
fn is_scsi_address(part: &str) -> bool {
    let numbers = part.split(':').map(str::parse::<u64>);
    part.matches(':').count() == 3 && numbers.into_iter().all(|number| number.is_ok())
}

/// `ata1` for `ata`.
fn numbered(part: &str, name: &str) -> bool {
    part.strip_prefix(name)
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// All drives of this kind, in the order of their numbers. Drives by USB come
/// along with the SCSI ones, and are never free: they are named one by one.
pub fn of(sys: &Sys, wanted: Transport) -> Vec<FoundDrive> {
    let mut drives: Vec<FoundDrive> = sys
        .disks()
        .into_iter()
        // The paths to a namespace that a multipath node stands for.
        .filter(|node| node.value::<u8>("hidden") != Some(1))
        .filter(is_disk)
        .filter_map(|node| {
            let transport = transport(&node)?;
            let by_usb = wanted == Transport::Scsi && transport == Transport::Usb;
            (transport == wanted || by_usb).then(|| FoundDrive {
                against: against(sys, &node, transport),
                node,
                transport,
            })
        })
        .collect();
    drives.sort_by_cached_key(|drive| natural(&drive.node.name));
    // Of several paths to one drive the first stands for it.
    for last in 1..drives.len() {
        let (before, from) = drives.split_at_mut(last);
        let paths = paths::of(sys, &from[0].node);
        if let Some(first) = before.iter().find(|drive| paths.contains(&drive.node)) {
            let first = first.node.dev_path();
            from[0].against = vec![format!("it is another path to {}", first.display())];
        }
    }
    drives
}

/// SCSI tapes, CD drives and enclosures are block devices at the most by
/// accident: type 0 is a disk, 14h one of zones (SPC-5, table 150).
fn is_disk(node: &SysBlock) -> bool {
    match node.value::<u8>("device/type") {
        Some(kind) => matches!(kind, 0 | 0x14),
        None => !node.name.starts_with("sr"),
    }
}

fn against(sys: &Sys, node: &SysBlock, transport: Transport) -> Vec<String> {
    let uses = usage::of_device(sys, node);
    if let Some(system) = uses.iter().find(|found| found.is_system()) {
        return vec![format!("it holds the running system ({system})")];
    }
    let mut against: Vec<String> = uses.iter().map(Use::to_string).collect();
    if transport == Transport::Usb {
        against.push("it is attached by USB: name it itself if it is meant".to_owned());
    }
    if node.size_bytes() == 0 {
        against.push("it has no medium, or no capacity".to_owned());
    }
    if node.value::<u8>("ro") == Some(1) {
        against.push("it is read-only".to_owned());
    }
    if let Some(model) = node
        .text("queue/zoned")
        .filter(|zoned| zoned == "host-managed")
    {
        against.push(format!(
            "it has zones ({model}), which take no writes at random"
        ));
    }
    against
}

/// `nvme10n1` behind `nvme9n1`, and `sdaa` behind `sdz`.
fn natural(name: &str) -> (Vec<u64>, usize, String) {
    let numbers = name
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok());
    (numbers.collect(), name.len(), name.to_owned())
}

/// The number of a drive that decides which of two loads it gets where they
/// alternate: the controller's of an NVMe namespace (`nvme4n1`: 4), as fio-tests
/// says it; the place of the letters of a disk (`sdc`: 2); else the first number
/// in its name. `None`: it has none.
pub fn number(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?;
    if let Some(letters) = name.strip_prefix("sd")
        && !letters.is_empty()
        && letters.bytes().all(|b| b.is_ascii_lowercase())
    {
        let place = letters.bytes().fold(0u64, |place, letter| {
            place
                .wrapping_mul(26)
                .wrapping_add(u64::from(letter - b'a') + 1)
        });
        return Some(place.wrapping_sub(1));
    }
    let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
    let end = digits
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(digits.len());
    digits[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drives_have_numbers_by_their_names() {
        for (path, expected) in [
            ("/dev/nvme4n1", Some(4)),
            ("/dev/nvme11n2", Some(11)),
            ("/dev/sda", Some(0)),
            ("/dev/sdc", Some(2)),
            ("/dev/sdaa", Some(26)),
            ("/dev/loop7", Some(7)),
            ("/dev/mapper/data", None),
        ] {
            assert_eq!(number(Path::new(path)), expected, "{path}");
        }
    }

    #[test]
    fn names_are_ordered_by_their_numbers() {
        let mut names = ["nvme10n1", "nvme9n1", "sdaa", "sdz", "nvme9n10", "nvme9n2"];
        names.sort_by_cached_key(|name| natural(name));
        let expected = ["sdz", "sdaa", "nvme9n1", "nvme9n2", "nvme9n10", "nvme10n1"];
        assert_eq!(names, expected);
    }
}
