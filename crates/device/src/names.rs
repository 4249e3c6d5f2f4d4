//! The names that confirm a device: each belongs to it and to no other drive here.
//!
//! A name is not an identity. Docks and RAID bridges give every disk one serial
//! number, a cloned disk keeps its PARTUUIDs, and of two devices that claim a link
//! in /dev/disk udev points it to the one it saw last. So a name counts only if
//! nothing else here could answer to it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use fathom_model::units::format_size;

use crate::ids::{noted_by_udev, serial, wwid};
use crate::paths;
use crate::sys::{Sys, SysBlock, names_in};

/// The prefix by which mount(8) and fstab(5) name a partition.
pub(crate) const PARTUUID: &str = "PARTUUID=";

/// The names that confirm a device, the most specific first: its links in
/// /dev/disk/by-id, the serial number and WWID of a whole disk, the PARTUUID of a
/// partition. If none of these is its alone: its links in /dev/disk/by-path; if it has
/// none: its path and exact size, `PATH=SIZE`.
///
/// A partition never answers to a name of its disk.
pub fn words(sys: &Sys, path: &Path, node: &SysBlock) -> Vec<String> {
    let mut paths = paths::certain(sys, node);
    paths.insert(0, node.clone());
    let others = Others::of(sys, &paths);
    let links = |kind| links(sys, kind, &paths);
    let mut words: Vec<String> = links(Links::Id)
        .into_iter()
        .filter(|name| !others.answer_to(name))
        .collect();
    words.sort_by_key(|name| kind(name));
    if node.is_partition() {
        words.extend(part_uuid(sys, &paths).map(|uuid| format!("{PARTUUID}{uuid}")));
    } else {
        let own = [serial(sys, node), wwid(node)].into_iter().flatten();
        words.extend(own.filter(|name| !others.have(name)));
    }
    if words.is_empty() {
        words = links(Links::Path);
    }
    if words.is_empty() {
        let size = exact_size(node.size_bytes());
        words.push(format!("{}={size}", path.display()));
    }
    words
}

/// How much a link says of one device: identifiers of a namespace or logical unit come
/// before names made of model and serial number.
fn kind(name: &str) -> u8 {
    const UNIQUE: [&str; 6] = [
        "nvme-eui.",
        "nvme-uuid.",
        "wwn-",
        "scsi-3",
        "dm-uuid-",
        "md-uuid-",
    ];
    u8::from(!UNIQUE.iter().any(|kind| name.starts_with(kind)))
}

/// A folder of links in /dev/disk.
#[derive(Debug, Clone, Copy)]
enum Links {
    Id,
    Path,
    PartUuid,
}

impl Links {
    fn folder(self) -> &'static str {
        match self {
            Self::Id => "by-id",
            Self::Path => "by-path",
            Self::PartUuid => "by-partuuid",
        }
    }
}

/// The links that lead to a device, by any of its paths, and that no other drive claims.
fn links(sys: &Sys, kind: Links, paths: &[SysBlock]) -> Vec<String> {
    let folder = kind.folder();
    let linked = paths.iter().flat_map(|node| linked(sys, folder, node));
    linked
        .filter(|name| !is_claimed_elsewhere(sys, folder, name, paths))
        .collect()
}

/// The links in a folder of /dev/disk that lead to a device.
pub(crate) fn linked(sys: &Sys, folder: &str, node: &SysBlock) -> Vec<String> {
    let dir = sys.path(format!("/dev/disk/{folder}"));
    names_in(&dir)
        .into_iter()
        .filter(|name| {
            let target = fs::read_link(dir.join(name)).unwrap_or_default();
            target.file_name() == Some(OsStr::new(&node.name))
        })
        .collect()
}

/// Whether another device wants the same link: udev keeps all who do in
/// /run/udev/links, a folder for each link and in it an entry for each device, such as
/// `b8:16` (systemd, src/udev/udev-node.c).
fn is_claimed_elsewhere(sys: &Sys, folder: &str, name: &str, paths: &[SysBlock]) -> bool {
    let slash = r"\x2f";
    let claims = [slash, ""].map(|first| {
        let link = format!("{first}disk{slash}{folder}{slash}{name}");
        sys.path(Path::new("/run/udev/links").join(link))
    });
    let stack: Vec<SysBlock> = paths.iter().flat_map(relatives).collect();
    claims
        .iter()
        .flat_map(|dir| names_in(dir))
        .filter_map(|claim| by_claim(sys, &claim))
        .any(|other| !paths.contains(&other) && !stack.contains(&other))
}

fn by_claim(sys: &Sys, claim: &str) -> Option<SysBlock> {
    let (major, minor) = claim.strip_prefix('b')?.split_once(':')?;
    sys.by_number(major.parse().ok()?, minor.parse().ok()?)
}

/// The UUID of a partition in its table: as the kernel has it since Linux 6.13, as udev
/// noted it, or by its link. `None` if another partition has the same, as those of
/// cloned disks do.
fn part_uuid(sys: &Sys, paths: &[SysBlock]) -> Option<String> {
    let noted = |node: &SysBlock| {
        let uevent = fs::read_to_string(node.dir.join("uevent")).unwrap_or_default();
        let told = uevent.lines().find_map(|line| line.strip_prefix(PARTUUID));
        told.map(str::to_owned)
            .or_else(|| noted_by_udev(sys, node, "ID_PART_ENTRY_UUID"))
    };
    let own = match paths.iter().find_map(noted) {
        Some(uuid) => uuid,
        None => links(sys, Links::PartUuid, paths).pop()?,
    };
    let partitions = sys.disks().into_iter().flat_map(|disk| disk.partitions());
    let shared = partitions
        .filter(|other| !paths.contains(other))
        .any(|other| noted(&other).is_some_and(|uuid| uuid.eq_ignore_ascii_case(&own)));
    let claimed = is_claimed_elsewhere(sys, Links::PartUuid.folder(), &own, paths);
    (!shared && !claimed).then_some(own)
}

/// What lies directly over and under a device. An LVM volume or a multipath device may
/// repeat the identifiers of the disks below it.
pub(crate) fn relatives(node: &SysBlock) -> Vec<SysBlock> {
    let mut stack = node.linked("slaves");
    stack.extend(node.linked("holders"));
    stack
}

/// The other drives here, by what identifies them.
#[derive(Debug)]
struct Others {
    /// What the device in question reports itself.
    own: Vec<String>,
    /// `SERIAL_NSID` of an NVMe namespace, as its links end.
    own_namespace: Option<(u32, String)>,
    each: Vec<Other>,
}

#[derive(Debug)]
struct Other {
    nsid: Option<u32>,
    identifiers: Vec<String>,
}

impl Others {
    /// The drives that are neither the one of these paths nor stacked with it.
    fn of(sys: &Sys, paths: &[SysBlock]) -> Self {
        let disks: Vec<SysBlock> = paths.iter().map(SysBlock::whole).collect();
        let stack: Vec<SysBlock> = disks.iter().flat_map(relatives).collect();
        let own_namespace = disks
            .first()
            .and_then(|disk| disk.value("nsid").zip(serial(sys, disk)));
        let is_other = |other: &SysBlock| {
            // The kernel hides the paths below an NVMe namespace that has several.
            other.value::<u8>("hidden") != Some(1)
                && !disks.contains(other)
                && !stack.contains(other)
        };
        Self {
            own: disks
                .iter()
                .flat_map(|disk| identifiers(sys, disk))
                .collect(),
            own_namespace: own_namespace
                .map(|(nsid, serial): (u32, String)| (nsid, plain(&format!("{serial}_{nsid}")))),
            each: sys
                .disks()
                .into_iter()
                .filter(is_other)
                .map(|other| Other {
                    nsid: other.value("nsid"),
                    identifiers: identifiers(sys, &other),
                })
                .collect(),
        }
    }

    /// Whether one of them reports this identifier, too.
    fn have(&self, identifier: &str) -> bool {
        let identifier = plain(identifier);
        let mut all = self.each.iter().flat_map(|other| &other.identifiers);
        all.any(|other| *other == identifier)
    }

    /// Whether a link's name holds what identifies one of them: such a link may lead
    /// to that drive as well.
    fn answer_to(&self, link: &str) -> bool {
        let name = plain(strip_partition(link));
        let said = |identifier: &String| {
            // One or two characters stand in many a name by chance.
            (identifier.len() > 2 || self.own.contains(identifier)) && has_word(&name, identifier)
        };
        self.each
            .iter()
            .filter(|other| !self.is_told_apart(&name, other))
            .any(|other| other.identifiers.iter().any(said))
    }

    /// Whether a name ends in a namespace's number, and the other drive has another.
    fn is_told_apart(&self, name: &str, other: &Other) -> bool {
        match (&self.own_namespace, other.nsid) {
            (Some((own, ending)), Some(nsid)) => *own != nsid && name.ends_with(ending),
            _ => false,
        }
    }
}

/// All that a drive reports as its own, and what udev makes links of.
fn identifiers(sys: &Sys, disk: &SysBlock) -> Vec<String> {
    const NOTED: [&str; 4] = [
        "ID_SERIAL_SHORT",
        "ID_SERIAL",
        "ID_WWN",
        "ID_WWN_WITH_EXTENSION",
    ];
    let noted = NOTED.map(|property| noted_by_udev(sys, disk, property));
    let reported = [serial(sys, disk), wwid(disk)];
    let mut all: Vec<String> = reported
        .into_iter()
        .chain(noted)
        .flatten()
        .map(|identifier| plain(&identifier))
        .collect();
    all.retain(|identifier| !identifier.is_empty());
    all
}

/// Letters and digits in words joined by one `_` each. udev, too, puts `_` for blanks
/// and for what a file name should not have.
fn plain(text: &str) -> String {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join("_")
}

/// Whether a plain name has these words one behind the other.
fn has_word(name: &str, words: &str) -> bool {
    format!("_{name}_").contains(&format!("_{words}_"))
}

/// The name of the disk in the name of a partition: without `-part3`.
fn strip_partition(link: &str) -> &str {
    match link.rsplit_once("-part") {
        Some((disk, number)) if number.chars().all(|c| c.is_ascii_digit()) => disk,
        _ => link,
    }
}

/// What somebody typed, without the folder that it may stand in.
pub(crate) fn bare(word: &str) -> &str {
    let link = [Links::Id, Links::Path, Links::PartUuid]
        .into_iter()
        .find_map(|kind| {
            let rest = word.strip_prefix("/dev/disk/")?;
            rest.strip_prefix(kind.folder())?.strip_prefix('/')
        });
    link.unwrap_or(word)
}

/// Whether a word is the name `known`.
pub(crate) fn is_named(known: &str, word: &str) -> bool {
    known == word || known == bare(word) || known.strip_prefix(PARTUUID) == Some(bare(word))
}

/// Whether a name is `PATH=SIZE`.
pub(crate) fn is_sized(known: &str) -> bool {
    known.contains('=') && !known.starts_with(PARTUUID)
}

/// A size as a whole number of the largest unit that fits: `512MiB`.
pub(crate) fn exact_size(bytes: u64) -> String {
    let text = format_size(bytes);
    match text.strip_suffix('k') {
        Some(number) => format!("{number}KiB"),
        None if text.ends_with(|c: char| c.is_ascii_uppercase()) => format!("{text}iB"),
        None => text,
    }
}
