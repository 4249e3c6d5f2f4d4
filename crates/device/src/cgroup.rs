//! The control groups that this process is in, and what they allow: of version 1 and 2, with
//! those above them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::mounts;
use crate::sys::{Sys, SysBlock, text};

/// From here on a limit of memory in version 1 is none (`PAGE_COUNTER_MAX`,
/// include/linux/page_counter.h: the largest signed number, in whole pages).
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// The folders of a group and of those above it, of one hierarchy.
#[derive(Debug)]
pub(crate) struct GroupFolders {
    /// The controllers; empty for version 2, which has all.
    controllers: Vec<String>,
    /// Where the hierarchy is mounted: names of groups begin there.
    point: PathBuf,
    /// The group's own first.
    pub(crate) folders: Vec<PathBuf>,
}

impl GroupFolders {
    /// The name of one of its groups, for example `/system.slice`.
    pub(crate) fn name(&self, folder: &Path) -> String {
        let below = folder.strip_prefix(&self.point).unwrap_or(folder);
        format!("/{}", below.display())
    }

    /// Whether it has a controller.
    pub(crate) fn has(&self, controller: &str) -> bool {
        self.controllers.is_empty() || self.controllers.iter().any(|it| it == controller)
    }

    /// Whether groups above the first that is seen are hidden by a namespace: the root of a
    /// machine has no limits of its own (Documentation/admin-guide/cgroup-v2.rst).
    fn is_cut_off(&self) -> bool {
        self.controllers.is_empty() && self.point.join("memory.max").exists()
    }
}

/// The groups of this process.
#[derive(Debug, Default)]
pub(crate) struct Groups(Vec<GroupFolders>);

impl Groups {
    pub(crate) fn of(sys: &Sys) -> Self {
        let own = fs::read_to_string(sys.path("/proc/self/cgroup")).unwrap_or_default();
        let mounts = mounts::own(sys);
        let folders = own.lines().filter_map(|line| {
            // `4:memory:/some/group`, `0::/some/group` (cgroups(7)).
            let mut parts = line.splitn(3, ':').skip(1);
            let (names, path) = (parts.next()?, parts.next()?);
            // The controllers of a hierarchy of version 1 stand among its mount options.
            let is_its = |mount: &&mounts::Mount| match names {
                "" => mount.kind == "cgroup2",
                _ => {
                    let mut options = mount.options.split(',');
                    mount.kind == "cgroup"
                        && options.any(|it| names.split(',').any(|name| name == it))
                }
            };
            let point = &mounts.iter().find(is_its)?.point;
            let point = sys.path(point);
            let own = point.join(path.trim_start_matches('/'));
            let above = own.ancestors().take_while(|dir| dir.starts_with(&point));
            let folders = above.map(PathBuf::from).collect();
            Some(GroupFolders {
                controllers: names
                    .split(',')
                    .filter(|it| !it.is_empty())
                    .map(str::to_owned)
                    .collect(),
                folders,
                point,
            })
        });
        Self(folders.collect())
    }

    /// Bytes of memory that they allow.
    fn memory(&self) -> Option<GroupLimit<u64>> {
        let mut least = None;
        for group in self.each().filter(|group| group.has("memory")) {
            for folder in &group.folders {
                let number = |file: &str| -> Option<u64> { text(&folder.join(file))?.parse().ok() };
                let bytes = number("memory.max").or_else(|| number("memory.limit_in_bytes"));
                let bytes = bytes.filter(|&bytes| bytes < NO_LIMIT_BYTES);
                lower(&mut least, bytes, &group.name(folder));
            }
        }
        least
    }

    /// Each hierarchy.
    pub(crate) fn each(&self) -> impl Iterator<Item = &GroupFolders> {
        self.0.iter()
    }
}

/// A limit, and the group that sets it.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupLimit<T> {
    /// The lowest of all groups.
    pub most: T,
    /// Its name, as this process sees it.
    pub group: String,
}

/// What the control groups of this process allow it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GroupLimits {
    /// Bytes of memory.
    pub memory: Option<GroupLimit<u64>>,
    /// Time of so many CPUs.
    pub cpus: Option<GroupLimit<f64>>,
    /// The CPUs, as a list like `0-3,8`, where not all of the machine are allowed.
    pub cpuset: Option<String>,
    /// I/O of a device, as `vda rbps=1048576`.
    pub io: Vec<GroupLimit<String>>,
    /// Whether a namespace hides the groups above.
    pub is_cut_off: bool,
}

/// The memory that this process may have.
pub fn memory(sys: &Sys) -> Option<GroupLimit<u64>> {
    Groups::of(sys).memory()
}

/// What limits this process.
pub fn limits(sys: &Sys) -> GroupLimits {
    let groups = Groups::of(sys);
    let mut limits = GroupLimits {
        memory: groups.memory(),
        ..GroupLimits::default()
    };
    for group in groups.each() {
        limits.is_cut_off |= group.is_cut_off();
        for folder in &group.folders {
            let name = group.name(folder);
            let read = |file: &str| text(&folder.join(file));
            let number = |file: &str| -> Option<u64> { read(file)?.parse().ok() };
            if group.has("cpu") {
                let v2 = read("cpu.max").and_then(|it| quota(&it));
                let v1 = || {
                    let quota: f64 = read("cpu.cfs_quota_us")?.parse().ok()?;
                    Some(quota / number("cpu.cfs_period_us")? as f64)
                };
                let cpus = v2.or_else(v1).filter(|&cpus| cpus > 0.0);
                lower(&mut limits.cpus, cpus, &name);
            }
            if group.has("blkio") || group.has("io") {
                let told = |limit: IoLimit| {
                    let IoLimit { figure, most, .. } = limit;
                    let device = limit.device.map_or(limit.number, |device| device.name);
                    GroupLimit {
                        most: format!("{device} {figure}={most}"),
                        group: name.clone(),
                    }
                };
                let lines = io_limits(sys, folder).into_iter();
                limits.io.extend(lines.map(told));
            }
        }
    }
    limits.cpuset = cpuset(sys);
    limits
}

/// A limit for I/O of a device.
pub(crate) struct IoLimit {
    /// Of the device, as `8:0`.
    number: String,
    /// The device; `None` where this machine has none of that number.
    pub(crate) device: Option<SysBlock>,
    /// What is limited: `rbps`, `wbps`, `riops`, `wiops`.
    pub(crate) figure: String,
    /// In bytes or I/Os a second.
    pub(crate) most: f64,
}

/// What limits I/O of a device, in version 1
/// (Documentation/admin-guide/cgroup-v1/blkio-controller.rst).
const IO_LIMITS: [(&str, &str); 4] = [
    ("blkio.throttle.read_bps_device", "rbps"),
    ("blkio.throttle.write_bps_device", "wbps"),
    ("blkio.throttle.read_iops_device", "riops"),
    ("blkio.throttle.write_iops_device", "wiops"),
];

/// What a group allows of I/O, in version 1 and 2.
pub(crate) fn io_limits(sys: &Sys, folder: &Path) -> Vec<IoLimit> {
    let mut found = Vec::new();
    let mut add = |number: &str, figure: &str, most: &str| {
        // `max` is none.
        let Ok(most) = most.parse() else { return };
        let numbers = number.split_once(':');
        let numbers = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        found.push(IoLimit {
            number: number.to_owned(),
            device: numbers.and_then(|(major, minor)| sys.by_number(major, minor)),
            figure: figure.to_owned(),
            most,
        });
    };
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_default();
    for (file, figure) in IO_LIMITS {
        for line in read(file).lines() {
            if let Some((number, most)) = line.split_once(' ') {
                add(number, figure, most.trim());
            }
        }
    }
    // `8:0 rbps=1048576 wbps=max riops=max wiops=max`.
    for line in read("io.max").lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(number) = words.next() else { continue };
        for (figure, most) in words.filter_map(|word| word.split_once('=')) {
            add(number, figure, most);
        }
    }
    found
}

/// Keeps the lower one.
fn lower<T: PartialOrd>(known: &mut Option<GroupLimit<T>>, most: Option<T>, group: &str) {
    if let Some(most) = most
        && known.as_ref().is_none_or(|known| most < known.most)
    {
        let group = group.to_owned();
        *known = Some(GroupLimit { most, group });
    }
}

/// The CPUs that a quota and its period allow: `200000 100000` is 2, `max 100000` no limit.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.parse::<f64>().ok()?)
}

/// The CPUs that this process may use, where these are not all that are online.
fn cpuset(sys: &Sys) -> Option<String> {
    let status = fs::read_to_string(sys.path("/proc/self/status")).ok()?;
    let mut lines = status.lines();
    let allowed = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let online = text(&sys.path("/sys/devices/system/cpu/online"))?;
    (allowed.trim() != online).then(|| allowed.trim().to_owned())
}

/// `nr_throttled 17`.
pub(crate) fn field(stat: &str, name: &str) -> Option<u64> {
    stat.lines().find_map(|line| {
        let (key, value) = line.split_once(' ')?;
        (key == name).then(|| value.trim().parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Sys) {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let sys = Sys::recorded(dir.path());
        (dir, sys)
    }

    #[test]
    fn the_lowest_limit_of_a_group_and_those_above_counts() {
        let (_dir, sys) = machine(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            (
                "proc/self/mountinfo",
                "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("proc/self/status", "Cpus_allowed_list:\t0\n"),
            ("sys/devices/system/cpu/online", "0-1\n"),
            ("sys/fs/cgroup/a/memory.max", "1048576\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n"),
            ("sys/fs/cgroup/a/cpu.max", "max 100000\n"),
            ("sys/fs/cgroup/a/b/io.max", "8:0 riops=100\n"),
        ]);
        let limits = limits(&sys);
        let memory = limits.memory.unwrap();
        assert_eq!((memory.most, memory.group.as_str()), (1 << 20, "/a"));
        let cpus = limits.cpus.unwrap();
        assert_eq!((cpus.most, cpus.group.as_str()), (0.5, "/a/b"));
        assert_eq!(limits.cpuset.as_deref(), Some("0"));
        assert_eq!(limits.io[0].most, "8:0 riops=100");
        assert!(!limits.is_cut_off);
    }

    #[test]
    fn version_1_has_limits_and_large_numbers_that_are_none() {
        let (_dir, sys) = machine(&[
            ("proc/self/cgroup", "4:memory:/a\n3:cpu,cpuacct:/a\n"),
            (
                "proc/self/mountinfo",
                "30 1 0:27 / /cg/memory rw - cgroup cgroup rw,memory\n31 1 0:28 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
            ),
            ("cg/memory/a/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cg/cpu/a/cpu.cfs_quota_us", "200000\n"),
            ("cg/cpu/a/cpu.cfs_period_us", "100000\n"),
            ("cg/cpu/cpu.cfs_quota_us", "-1\n"),
        ]);
        let limits = limits(&sys);
        assert_eq!(limits.memory, None);
        assert_eq!(limits.cpus.unwrap().most, 2.0);
    }

    #[test]
    fn a_root_that_has_limits_is_the_group_of_a_container() {
        let (_dir, sys) = machine(&[
            ("proc/self/cgroup", "0::/\n"),
            (
                "proc/self/mountinfo",
                "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
            ),
            ("sys/fs/cgroup/memory.max", "4096\n"),
        ]);
        let limits = limits(&sys);
        assert!(limits.is_cut_off);
        assert_eq!(limits.memory.unwrap().group, "/");
    }
}
