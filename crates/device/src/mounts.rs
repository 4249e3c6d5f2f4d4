//! What is mounted where (`/proc/<pid>/mountinfo`, proc_pid_mountinfo(5)).

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::paths::existing;
use crate::sys::{Sys, SysBlock, names_in, numbers};

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Device number of the file system; major 0 for those without a device.
    pub number: (u32, u32),
    /// Where it is mounted.
    pub point: PathBuf,
    /// Options of the mount, then those of the file system, each once.
    pub options: String,
    /// Type, for example `ext4`.
    pub kind: String,
    /// What is mounted.
    pub source: PathBuf,
}

impl Mount {
    /// The device that is mounted; of a file system on several, one of them.
    pub fn device(&self, sys: &Sys) -> Option<SysBlock> {
        match self.number {
            (0, _) => sys.by_path(&self.source),
            (major, minor) => sys.by_number(major, minor),
        }
    }
}

/// The mounts of one namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountNamespace {
    /// A process that sees them; `None` for those this process itself sees.
    pub pid: Option<u32>,
    /// The mounts in their order: a later one covers an earlier one.
    pub mounts: Vec<Mount>,
}

/// Reads the text of a mountinfo file; lines it does not understand are left out.
pub fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|&b| b == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|&b| b == b' ');
    let number = std::str::from_utf8(fields.nth(2)?).ok()?;
    let (major, minor) = number.split_once(':')?;
    let point = path(fields.nth(1)?);
    let options = String::from_utf8_lossy(fields.next()?).into_owned();
    // Optional fields, as many as there are, end with a single hyphen.
    fields.by_ref().find(|&field| field == b"-")?;
    let kind = String::from_utf8_lossy(fields.next()?).into_owned();
    let source = path(fields.next()?);
    let of_file_system = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
    Some(Mount {
        number: (major.parse().ok()?, minor.parse().ok()?),
        point,
        options: join_options(&options, &of_file_system),
        kind,
        source,
    })
}

fn join_options(mount: &str, file_system: &str) -> String {
    let mut all: Vec<&str> = mount.split(',').collect();
    for option in file_system.split(',') {
        // A mount that is `ro` of a file system that is `rw` is read-only.
        let known = all.contains(&option) || matches!(option, "rw" | "ro" | "");
        if !known {
            all.push(option);
        }
    }
    all.join(",")
}

fn path(field: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(unescape(field)))
}

/// The kernel writes blank, tab, newline and backslash as `\` and three octal
/// digits (fs/seq_file.c, `mangle_path`).
pub fn unescape(field: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .filter(|d| d.iter().all(|b| (b'0'..b'8').contains(b)));
        match octal {
            Some(digits) if first == b'\\' => {
                let value = digits
                    .iter()
                    .fold(0u32, |value, &digit| value * 8 + u32::from(digit - b'0'));
                out.push(u8::try_from(value & 0xff).unwrap_or(first));
                rest = &tail[3..];
            }
            _ => {
                out.push(first);
                rest = tail;
            }
        }
    }
    out
}

/// The mount a path lies on: of those of its file system (`number`, the file's
/// st_dev) the one with the longest mount point that holds it. btrfs gives its
/// subvolumes numbers that no mount has; then the longest mount point decides.
pub fn holding<'m>(mounts: &'m [Mount], path: &Path, number: (u32, u32)) -> Option<&'m Mount> {
    let longest = |same_device: bool| {
        mounts
            .iter()
            .filter(|m| path.starts_with(&m.point) && (!same_device || m.number == number))
            .max_by_key(|m| m.point.as_os_str().len())
    };
    longest(true).or_else(|| longest(false))
}

/// The mount of a path, or of the nearest folder above it that exists, and which that is.
pub(crate) fn of_path<'m>(mounts: &'m [Mount], path: &Path) -> Option<(PathBuf, &'m Mount)> {
    let path = existing(path)?;
    let number = numbers(fs::metadata(&path).ok()?.dev());
    let mount = holding(mounts, &path, number)?;
    Some((path, mount))
}

/// The mounts that this process sees.
pub fn own(sys: &Sys) -> Vec<Mount> {
    let text = fs::read(sys.path("/proc/self/mountinfo"));
    text.map(|text| parse(&text)).unwrap_or_default()
}

/// The mounts of every namespace that can be looked into, this process's first.
pub fn everywhere(sys: &Sys) -> Vec<MountNamespace> {
    let proc = sys.path("/proc");
    let id = |process: &str| fs::read_link(proc.join(process).join("ns/mnt"));
    let mut seen: Vec<PathBuf> = id("self").into_iter().collect();
    let mut all = vec![MountNamespace {
        pid: None,
        mounts: own(sys),
    }];
    for name in names_in(&proc) {
        let Ok(pid) = name.parse::<u32>() else {
            continue;
        };
        let Ok(namespace) = id(&name) else {
            continue;
        };
        if seen.contains(&namespace) {
            continue;
        }
        // A process that is gone by now does not speak for its namespace.
        if let Ok(text) = fs::read(proc.join(&name).join("mountinfo"))
            && !text.is_empty()
        {
            seen.push(namespace);
            all.push(MountNamespace {
                pid: Some(pid),
                mounts: parse(&text),
            });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 master:2 - ext4 /dev/vda rw,discard
30 27 7:3 / /mnt/a\\040b\\134c ro,noatime - xfs /dev/loop3 rw,attr2
31 27 0:40 /@home /home rw - btrfs /dev/sdb1 rw,subvol=/@home
32 27 7:3 /sub /mnt rw - xfs /dev/loop3 rw
nonsense
33 27 7:x / /y rw - z";

    #[test]
    fn lines_are_read_with_their_escapes() {
        let mounts = parse(TEXT);
        assert_eq!(mounts.len(), 5);
        assert_eq!(mounts[1].options, "rw,relatime,discard");
        assert_eq!(mounts[1].source, Path::new("/dev/vda"));
        assert_eq!(mounts[2].point, Path::new("/mnt/a b\\c"));
        assert_eq!(mounts[2].options, "ro,noatime,attr2");
        assert_eq!(unescape(b"\\04\\"), b"\\04\\");
        assert_eq!(unescape(b"\\777"), [0xff]);
    }

    #[test]
    fn the_longest_mount_point_of_the_device_wins() {
        let mounts = parse(TEXT);
        let point = |path: &str, number| {
            let mount = holding(&mounts, Path::new(path), number).unwrap();
            mount.point.to_str().unwrap().to_owned()
        };
        assert_eq!(point("/mnt/a b\\c/file", (7, 3)), "/mnt/a b\\c");
        assert_eq!(point("/mnt/other", (7, 3)), "/mnt");
        assert_eq!(point("/mnt/other", (254, 0)), "/");
        assert_eq!(point("/home/me", (0, 99)), "/home");
        assert_eq!(point("/homely", (0, 99)), "/");
    }
}
