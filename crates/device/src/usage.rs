//! Who uses a device: mounts of every namespace, swap, device mapper, MD and
//! bcache holders, loop devices, what the kernel serves to others, and whatever is stacked
//! on those.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::exports::{self, Export};
pub use crate::exports::{are_unseen_exports_ignored, ignore_unseen_exports};
use crate::identity::backing;
use crate::loop_status;
use crate::mounts::{self, MountNamespace, unescape};
use crate::openers::{Opened, Openers};
use crate::paths;
use crate::signature::Signature;
use crate::stack;
use crate::sys::{Sys, SysBlock, numbers};

/// One use of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Use {
    /// A file system on it is mounted.
    Mounted {
        /// Path of the device.
        device: PathBuf,
        /// Where.
        point: PathBuf,
        /// A process that sees the mount, when this one does not.
        pid: Option<u32>,
    },
    /// Memory is swapped to it.
    Swap {
        /// Path of the device or file.
        device: PathBuf,
    },
    /// Another device is made of it.
    Held {
        /// Path of the device.
        device: PathBuf,
        /// Path of the other one.
        by: PathBuf,
        /// What the other one is, for example `LVM vg-root on sda2`.
        what: Option<String>,
    },
    /// A loop device stands on it.
    Loop {
        /// Path of the device.
        device: PathBuf,
        /// Path of the loop device.
        by: PathBuf,
    },
    /// The kernel serves it to other machines.
    Exported {
        /// Path of the device or file.
        device: PathBuf,
        /// As whom.
        by: String,
        /// The command that ends it.
        end: String,
    },
    /// A module is loaded that serves devices to other machines, and its list is not
    /// visible.
    ExportsUnseen {
        /// Path of the device.
        device: PathBuf,
        /// The module, or several.
        modules: String,
    },
    /// It carries something that may still be wanted.
    Signature {
        /// Path of the device.
        device: PathBuf,
        /// Its size in bytes.
        size_bytes: u64,
        /// What.
        signature: Signature,
    },
    /// Another program keeps it locked (flock), as Fathom does while it writes.
    Locked {
        /// Path of the device.
        device: PathBuf,
    },
    /// Another program has it open for itself alone (O_EXCL).
    Exclusive {
        /// Path of the device.
        device: PathBuf,
    },
    /// A process has it open for writing.
    Open {
        /// Path of the device or file.
        device: PathBuf,
        /// The process.
        pid: u32,
        /// The name it goes by.
        command: String,
    },
    /// Somebody whom this process does not see has it open for writing.
    OpenElsewhere {
        /// Path of the file.
        device: PathBuf,
    },
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Mounted { device, point, pid } => {
                write!(f, "{} is mounted on {}", device.display(), point.display())?;
                match pid {
                    Some(pid) => write!(f, " (seen by process {pid}, in another mount namespace)"),
                    None => Ok(()),
                }
            }
            Self::Swap { device } => write!(f, "{} is in use as swap", device.display()),
            Self::Held { device, by, what } => {
                write!(f, "{} is held by {}", device.display(), by.display())?;
                match what {
                    Some(what) => write!(f, " ({what})"),
                    None => Ok(()),
                }
            }
            Self::Loop { device, by } => {
                write!(
                    f,
                    "{} is behind loop device {}",
                    device.display(),
                    by.display()
                )
            }
            Self::Exported { device, by, .. } => {
                write!(
                    f,
                    "{} is served to other machines as {by}",
                    device.display()
                )
            }
            Self::ExportsUnseen { device, modules } => write!(
                f,
                "{} may be served to other machines: {modules} is loaded, and what it serves is not visible",
                device.display()
            ),
            Self::Signature {
                device, signature, ..
            } => {
                write!(f, "{} carries {signature}", device.display())
            }
            Self::Locked { device } => {
                write!(
                    f,
                    "{} is locked by another program, as Fathom does while it measures",
                    device.display()
                )
            }
            Self::Exclusive { device } => {
                write!(
                    f,
                    "{} is open exclusively in another program",
                    device.display()
                )
            }
            Self::Open {
                device,
                pid,
                command,
            } => write!(
                f,
                "{} is open for writing in process {pid} ({command})",
                device.display()
            ),
            Self::OpenElsewhere { device } => write!(
                f,
                "{} is open for writing, or mapped, by somebody who is not seen from here (a container, a server in the kernel)",
                device.display()
            ),
        }
    }
}

impl Use {
    /// What it is, for programs.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Mounted { .. } => "mounted",
            Self::Swap { .. } => "swap",
            Self::Held { .. } => "held",
            Self::Loop { .. } => "loop",
            Self::Exported { .. } => "exported",
            Self::ExportsUnseen { .. } => "exports_unseen",
            Self::Signature { .. } => "signature",
            Self::Locked { .. } => "locked",
            Self::Exclusive { .. } => "exclusive",
            Self::Open { .. } => "open",
            Self::OpenElsewhere { .. } => "open_elsewhere",
        }
    }

    /// The device or file that is used.
    pub fn device(&self) -> &Path {
        match self {
            Self::Mounted { device, .. }
            | Self::Swap { device }
            | Self::Held { device, .. }
            | Self::Loop { device, .. }
            | Self::Exported { device, .. }
            | Self::ExportsUnseen { device, .. }
            | Self::Signature { device, .. }
            | Self::Locked { device }
            | Self::Exclusive { device }
            | Self::Open { device, .. }
            | Self::OpenElsewhere { device } => device,
        }
    }

    /// Whether it is the root of the running system, whose use nobody can end.
    pub fn is_system(&self) -> bool {
        matches!(self, Self::Mounted { point, .. } if point == Path::new("/"))
    }

    /// What ends this use.
    pub fn remedy(&self) -> String {
        match self {
            Self::Mounted { .. } if self.is_system() => {
                "choose another device: this one holds the running system".to_owned()
            }
            Self::Mounted { point, .. } => format!("umount {}", point.display()),
            Self::Swap { device } => format!("swapoff {}", device.display()),
            Self::Held { by, .. } => format!(
                "take {} down (vgchange -an, dmsetup remove, mdadm --stop)",
                by.display()
            ),
            Self::Loop { by, .. } => format!("losetup -d {}", by.display()),
            Self::Exported { end, .. } => end.clone(),
            Self::ExportsUnseen { .. } => {
                "mount -t configfs none /sys/kernel/config, or say --no-export-check".to_owned()
            }
            Self::Signature {
                device,
                size_bytes,
                signature,
            } => {
                let removal = signature.removal(device, *size_bytes);
                format!("{removal} (gives up what it carries)")
            }
            Self::Locked { device } => {
                format!("let the other program end (fuser -v {})", device.display())
            }
            Self::Exclusive { device } => format!(
                "end the program that has it open (fuser -v {})",
                device.display()
            ),
            Self::Open { pid, command, .. } => format!("end process {pid} ({command})"),
            Self::OpenElsewhere { .. } => "stop the program that writes to it".to_owned(),
        }
    }
}

/// What stands behind a loop device.
#[derive(Debug)]
enum Backing {
    Device(SysBlock),
    /// A file, by device and inode number.
    File(u64, u64),
    /// A path that leads nowhere in this mount namespace.
    Elsewhere(PathBuf),
}

/// The uses that are known of a device and of all that is stacked on it;
/// signatures and exclusive opening are not asked for here.
pub fn of_device(sys: &Sys, node: &SysBlock) -> Vec<Use> {
    let taken = Occupied::now(sys);
    let mut walk = Walk::new(sys, &taken);
    if let Some((modules, false)) = exports::unseen(sys) {
        walk.uses.push(Use::ExportsUnseen {
            device: node.dev_path(),
            modules,
        });
    }
    for path in std::iter::once(node.clone()).chain(paths::of(sys, node)) {
        walk.visit(&path);
        if path.is_partition() {
            // Its neighbours may be in use, the disk as a whole may not.
            walk.look_at(&path.whole());
        }
    }
    walk.uses
}

fn exported(device: &Path, export: &Export) -> Use {
    Use::Exported {
        device: device.to_owned(),
        by: export.by.clone(),
        end: export.end.clone(),
    }
}

/// The processes that have a device, its partitions, the disk it is part of, what it is
/// made of, or the file behind it open for writing.
pub(crate) fn openers(sys: &Sys, openers: &Openers, node: &SysBlock) -> Vec<Use> {
    let mut nodes = vec![node.clone()];
    nodes.extend(paths::of(sys, node));
    nodes.extend(all_under(node));
    let mut all: Vec<SysBlock> = Vec::new();
    for node in nodes {
        let mut its = node.partitions();
        if node.is_partition() {
            its.push(node.whole());
        }
        its.push(node);
        for node in its {
            // Two parts of one disk have that disk in common.
            if !all.contains(&node) {
                all.push(node);
            }
        }
    }
    let mut paths: Vec<PathBuf> = all.iter().map(SysBlock::dev_path).collect();
    paths.extend(node.text("loop/backing_file").map(PathBuf::from));
    paths
        .iter()
        .flat_map(|path| openers_of(sys, openers, path))
        .collect()
}

/// The devices that a device-mapper or MD device is made of, down to the disks. multipathd
/// has its paths open for reading only (libmultipath, `discovery.c`).
fn all_under(node: &SysBlock) -> Vec<SysBlock> {
    let mut found = Vec::new();
    let mut open = node.linked("slaves");
    while let Some(node) = open.pop() {
        if !found.contains(&node) {
            open.extend(node.linked("slaves"));
            found.push(node);
        }
    }
    found
}

/// The processes that have a file or device node open for writing.
pub(crate) fn openers_of(sys: &Sys, openers: &Openers, path: &Path) -> Vec<Use> {
    let meta = fs::metadata(sys.path(path)).ok();
    let Some(opened) = meta.as_ref().and_then(Opened::of) else {
        return Vec::new();
    };
    let uses = openers.of(sys, opened).into_iter().map(|opener| Use::Open {
        device: path.to_owned(),
        pid: opener.pid,
        command: opener.command,
    });
    uses.collect()
}

/// The uses of a regular file: as swap, and of loop devices that stand on it.
pub(crate) fn of_file(sys: &Sys, taken: &Occupied, path: &Path, meta: &fs::Metadata) -> Vec<Use> {
    let mut walk = Walk::new(sys, taken);
    let name = path.file_name().map(PathBuf::from).unwrap_or_default();
    for node in walk.loops_over_file((meta.dev(), meta.ino()), &name) {
        // What is on top first: it is what has to end first.
        walk.visit(&node);
        walk.uses.push(Use::Loop {
            device: path.to_owned(),
            by: node.dev_path(),
        });
    }
    let same = |swap: &PathBuf| {
        fs::metadata(sys.path(swap)).is_ok_and(|m| (m.dev(), m.ino()) == (meta.dev(), meta.ino()))
    };
    let served = |export: &&Export| export.file().is_some_and(|file| same(&file.to_owned()));
    let exports = taken.exports.iter().filter(served);
    walk.uses
        .extend(exports.map(|export| exported(path, export)));
    if taken.swaps.iter().any(same) {
        walk.uses.push(Use::Swap {
            device: path.to_owned(),
        });
    }
    walk.uses
}

/// What is in use on a machine at one moment: many files are judged by one look.
#[derive(Debug)]
pub(crate) struct Occupied {
    namespaces: Vec<MountNamespace>,
    swaps: Vec<PathBuf>,
    loops: Vec<(SysBlock, Backing)>,
    exports: Vec<Export>,
}

impl Occupied {
    pub(crate) fn now(sys: &Sys) -> Self {
        Self {
            namespaces: mounts::everywhere(sys),
            swaps: swaps(sys),
            loops: loops(sys),
            exports: exports::now(sys),
        }
    }
}

struct Walk<'s> {
    sys: &'s Sys,
    taken: &'s Occupied,
    seen: Vec<SysBlock>,
    uses: Vec<Use>,
}

impl<'s> Walk<'s> {
    fn new(sys: &'s Sys, taken: &'s Occupied) -> Self {
        Self {
            sys,
            taken,
            seen: Vec::new(),
            uses: Vec::new(),
        }
    }

    /// A device, its partitions, and what is stacked on them.
    fn visit(&mut self, node: &SysBlock) {
        if self.seen.contains(node) {
            return;
        }
        self.look_at(node);
        for partition in node.partitions() {
            self.visit(&partition);
        }
        self.look_behind(node);
    }

    fn look_at(&mut self, node: &SysBlock) {
        self.seen.push(node.clone());
        self.mounted(node);
        let swapped = |swap: &PathBuf| self.sys.by_path(swap).as_ref() == Some(node);
        let device = node.dev_path();
        if self.taken.swaps.iter().any(swapped) {
            self.uses.push(Use::Swap {
                device: device.clone(),
            });
        }
        for export in &self.taken.exports {
            if export.is_of(self.sys, node) {
                self.uses.push(exported(&device, export));
            }
        }
        for holder in node.linked("holders") {
            if self.seen.contains(&holder) {
                continue;
            }
            self.uses.push(Use::Held {
                device: device.clone(),
                by: holder.dev_path(),
                what: backing(&holder),
            });
            self.visit(&holder);
        }
        for over in self.loops_over(node) {
            if self.seen.contains(&over) {
                continue;
            }
            self.uses.push(Use::Loop {
                device: device.clone(),
                by: over.dev_path(),
            });
            self.visit(&over);
        }
    }

    /// Writing to a loop device writes to what is behind it, which may be in
    /// use by other ways.
    fn look_behind(&mut self, node: &SysBlock) {
        let behind = self.taken.loops.iter().find(|(over, _)| over == node);
        match behind.map(|(_, backing)| backing) {
            Some(Backing::Device(device)) => {
                let device = device.clone();
                self.visit(&device);
            }
            Some(&Backing::File(device, inode)) => {
                for twin in self.loops_over_file((device, inode), Path::new("")) {
                    self.visit(&twin);
                }
            }
            Some(Backing::Elsewhere(_)) | None => {}
        }
    }

    fn mounted(&mut self, node: &SysBlock) {
        let number = node.number();
        let device = node.dev_path();
        for namespace in &self.taken.namespaces {
            for mount in &namespace.mounts {
                let same = Some(mount.number) == number
                    || (stack::has_others(mount) && stack::devices(self.sys, mount).contains(node));
                let point = &mount.point;
                let known = |known: &Use| matches!(known, Use::Mounted { device: d, point: p, .. } if *d == device && p == point);
                if same && !self.uses.iter().any(known) {
                    self.uses.push(Use::Mounted {
                        device: device.clone(),
                        point: point.clone(),
                        pid: namespace.pid,
                    });
                }
            }
        }
    }

    fn loops_over(&self, node: &SysBlock) -> Vec<SysBlock> {
        let over = |backing: &Backing| match backing {
            Backing::Device(device) => device == node,
            Backing::File(..) => false,
            Backing::Elsewhere(path) => path.file_name() == Path::new(&node.name).file_name(),
        };
        self.loops_where(over)
    }

    /// A path of another namespace counts as this file when it has its name:
    /// one refusal too many is better than one too few.
    fn loops_over_file(&self, file: (u64, u64), name: &Path) -> Vec<SysBlock> {
        self.loops_where(|backing| match backing {
            Backing::Device(_) => false,
            &Backing::File(device, inode) => (device, inode) == file,
            Backing::Elsewhere(path) => path.file_name() == Some(name.as_os_str()),
        })
    }

    fn loops_where(&self, wanted: impl Fn(&Backing) -> bool) -> Vec<SysBlock> {
        self.taken
            .loops
            .iter()
            .filter(|(_, backing)| wanted(backing))
            .map(|(over, _)| over.clone())
            .collect()
    }
}

/// Active swap areas (proc_swaps(5)).
fn swaps(sys: &Sys) -> Vec<PathBuf> {
    use std::os::unix::ffi::OsStringExt as _;
    let text = fs::read(sys.path("/proc/swaps")).unwrap_or_default();
    text.split(|&b| b == b'\n')
        .skip(1)
        .filter_map(|line| line.split(|&b| b == b' ' || b == b'\t').next())
        .filter(|path| !path.is_empty())
        .map(|path| PathBuf::from(std::ffi::OsString::from_vec(unescape(path))))
        .collect()
}

/// The loop devices that are set up, with what is behind them. sysfs does not
/// list them among the holders of a device.
///
/// The kernel's own answer counts. The path in sysfs may lead elsewhere: that of a
/// file that was unlinked, or of one that another mount namespace sees there.
fn loops(sys: &Sys) -> Vec<(SysBlock, Backing)> {
    let of = |node: SysBlock| {
        let path = PathBuf::from(node.text("loop/backing_file")?);
        let told = loop_status::read(&sys.path(node.dev_path()));
        let backing = match told {
            Some(told) if told.device_number != 0 => {
                let (major, minor) = numbers(told.device_number);
                sys.by_number(major, minor).map(Backing::Device)
            }
            Some(told) => Some(Backing::File(told.file_system, told.inode)),
            None => None,
        };
        let by_path = || match (sys.by_path(&path), fs::metadata(sys.path(&path))) {
            (Some(device), _) => Backing::Device(device),
            (None, Ok(meta)) => Backing::File(meta.dev(), meta.ino()),
            (None, Err(_)) => Backing::Elsewhere(path.clone()),
        };
        Some((node, backing.unwrap_or_else(by_path)))
    };
    sys.disks().into_iter().filter_map(of).collect()
}
