//! Whether the device under test is still the one that a record speaks of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use fathom_device::Sys;
use fathom_engine::checked::CheckedPaths;
use fathom_model::Environment;
use fathom_model::environment::{BlockDevice, Target};

/// The device or file under test, as an environment describes it.
pub fn dut<'e>(environment: Option<&'e Environment>, dut: &Path) -> Option<&'e Target> {
    let targets = &environment?.targets;
    targets.iter().find(|target| target.path == dut)
}

/// What tells the target of today from that of a record; `None`: it is the same.
pub fn difference(before: &Target, now: &Target) -> Option<String> {
    match (&before.device, &now.device) {
        (Some(before), Some(now)) => other_device(before, now),
        (None, None) if before.path == now.path => (before.leads_to != now.leads_to).then(|| {
            let led = |to: &Option<PathBuf>| match to {
                Some(to) => format!("to {}", to.display()),
                None => "nowhere else".to_owned(),
            };
            format!(
                "{} led {}, now it leads {}",
                now.path.display(),
                led(&before.leads_to),
                led(&now.leads_to)
            )
        }),
        (None, None) => Some(format!(
            "it was measured on {}, now it is {}",
            before.path.display(),
            now.path.display()
        )),
        (Some(before), None) => Some(format!(
            "it was measured on the device {}, and {} is none",
            before.name,
            now.path.display()
        )),
        (None, Some(now)) => Some(format!(
            "it was measured on a file, and now it is the device {}",
            now.name
        )),
    }
}

/// What the paths that jobs use lead to.
#[derive(Debug, Default)]
pub struct UsedPaths {
    /// The folders of all of them, each once.
    folders: Vec<Target>,
    /// All of them.
    paths: Vec<Target>,
}

impl UsedPaths {
    /// Follows them.
    pub fn of<'p>(paths: impl Iterator<Item = &'p Path>) -> Self {
        let sys = Sys::live();
        let mut folders = BTreeMap::new();
        let mut used = Self::default();
        for path in paths {
            let folder = path.parent().unwrap_or(path);
            let real = folders
                .entry(folder.to_owned())
                .or_insert_with(|| real_folder(folder));
            let device = sys.by_path(path);
            let device = device.map(|node| fathom_device::identity::block_device(&sys, &node));
            let plain = path.file_name().map(|name| real.join(name));
            let leads_to = Some(CheckedPaths::of([path]).real(path));
            used.paths.push(Target {
                leads_to: leads_to
                    .filter(|to| device.is_none() && Some(to) != plain.as_ref() && to != path),
                device,
                ..of_path(path)
            });
        }
        let each = folders.into_iter().map(|(path, real)| Target {
            leads_to: (real != path).then_some(real),
            ..of_path(&path)
        });
        used.folders = each.collect();
        used
    }

    /// What is kept of them: of most files their folder says enough.
    pub fn kept(&self) -> Vec<Target> {
        let is_special = |path: &&Target| path.device.is_some() || path.leads_to.is_some();
        let special = self.paths.iter().filter(is_special);
        self.folders.iter().chain(special).cloned().collect()
    }

    /// The first difference from those that a record has kept; `None` if there is none.
    pub fn difference(&self, kept: &[Target]) -> Option<String> {
        // A record of an older Fathom says nothing.
        kept.first()?;
        let of = |path: &Path| kept.iter().find(|target| target.path == path);
        let folders = self.folders.iter().map(|now| (of(&now.path), now));
        let paths = self.paths.iter().map(|now| match of(&now.path) {
            Some(before) => (Some(before.clone()), now),
            None => (
                now.path.parent().and_then(of).map(|_| of_path(&now.path)),
                now,
            ),
        });
        let mut all = folders
            .map(|(before, now)| (before.cloned(), now))
            .chain(paths);
        all.find_map(|(before, now)| match before {
            Some(before) => difference(&before, now),
            None => Some(format!(
                "{} is to be used, which it did not use before",
                now.path.display()
            )),
        })
    }
}

fn of_path(path: &Path) -> Target {
    Target {
        path: path.to_owned(),
        ..Target::default()
    }
}

/// A folder without links, also one that is not there yet.
fn real_folder(folder: &Path) -> PathBuf {
    let real = folder.ancestors().find_map(|above| {
        let real = std::fs::canonicalize(above).ok()?;
        Some(real.join(folder.strip_prefix(above).ok()?))
    });
    real.unwrap_or_else(|| folder.to_owned())
        .components()
        .collect()
}

/// Identifiers tell devices apart, else serial numbers; where there are none their by-id
/// names, and for loop, zram and the like what stands behind them. Kernel names change
/// from boot to boot. Of two drives with one identifier each is known by its place.
fn other_device(before: &BlockDevice, now: &BlockDevice) -> Option<String> {
    let differ =
        |what: &str, before: &str, now: &str| Some(format!("{what} was {before}, now it is {now}"));
    let named = |device: &BlockDevice| match &device.backing {
        Some(backing) => format!("{} over {backing}", device.name),
        None => device.name.clone(),
    };
    let ids = before.unique_id.as_ref().zip(now.unique_id.as_ref());
    let serials = before.serial.as_ref().zip(now.serial.as_ref());
    let (what, one, other) = match (ids, serials) {
        (Some((one, other)), _) => ("the device's identifier", one.clone(), other.clone()),
        (None, Some((one, other))) => ("the device's serial number", one.clone(), other.clone()),
        _ if !before.by_id.is_empty() && !now.by_id.is_empty() => {
            let common = before.by_id.iter().find(|name| now.by_id.contains(name));
            let of = |device: &BlockDevice| common.unwrap_or(&device.by_id[0]).clone();
            ("the device's name in /dev/disk/by-id", of(before), of(now))
        }
        _ => ("the device", named(before), named(now)),
    };
    if one != other {
        return differ(what, &one, &other);
    }
    if (ids.is_some() || serials.is_some()) && !before.is_same_drive(now) {
        return Some(format!(
            "{what} is {one} as before, but two drives report it, and whether {} is the one of the record is not known",
            now.name
        ));
    }
    if before.capacity_bytes != now.capacity_bytes {
        let bytes = |device: &BlockDevice| format!("{} bytes", device.capacity_bytes);
        return differ("the device's size", &bytes(before), &bytes(now));
    }
    let place = |device: &BlockDevice| {
        let partition = device.partition.as_ref()?;
        Some((partition.start_bytes, partition.size_bytes))
    };
    (place(before) != place(now)).then(|| "the partition is another one".to_owned())
}

/// What else has changed on the machine since a record began, in words.
pub fn changes(before: &Environment, now: &Environment) -> Vec<String> {
    let told = [
        ("the kernel", &before.kernel, &now.kernel),
        ("Fathom", &before.fathom_version, &now.fathom_version),
        ("the host", &before.hostname, &now.hostname),
    ];
    let changed = told.iter().filter(|(_, before, now)| before != now);
    changed
        .map(|(what, before, now)| format!("{what} was {before} before, now it is {now}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_that_was_moved_and_a_path_that_is_new_are_told() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().canonicalize().unwrap().join(name);
        let link = |to: &str, name: &str| {
            let _ = std::fs::remove_file(at(name));
            std::os::unix::fs::symlink(at(to), at(name)).unwrap();
        };
        for folder in ["a", "b"] {
            std::fs::create_dir(at(folder)).unwrap();
            std::fs::write(at(folder).join("f"), "").unwrap();
        }
        link("a", "folder");
        link("a/f", "file");
        let paths = ["folder/f", "folder/new", "file", "a/f", "later/on/f"].map(at);
        let used = || UsedPaths::of(paths.iter().map(PathBuf::as_path));
        let kept = used().kept();
        let names: Vec<_> = kept.iter().map(|it| it.path.clone()).collect();
        let folders = ["", "a", "folder", "later/on", "file"];
        assert_eq!(
            names,
            folders.map(|name| at(name).components().collect::<PathBuf>())
        );
        assert_eq!(used().difference(&kept), None);
        assert_eq!(used().difference(&[]), None);
        std::fs::create_dir_all(at("later/on")).unwrap();
        std::fs::write(at("folder/new"), "").unwrap();
        assert_eq!(used().difference(&kept), None, "what the run made itself");
        link("b/f", "file");
        assert!(used().difference(&kept).unwrap().contains("/b/f"));
        std::fs::remove_file(at("file")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        assert!(used().difference(&kept).unwrap().contains("nowhere else"));
        link("a/f", "file");
        link("b", "folder");
        assert!(used().difference(&kept).unwrap().contains("/b"));
        link("a", "folder");
        link("b/f", "a/f");
        assert!(used().difference(&kept).unwrap().contains("nowhere else"));
        let other = at("b/f");
        let others = UsedPaths::of([other.as_path()].into_iter());
        assert!(others.difference(&kept).unwrap().contains("did not use"));
    }

    fn disk(name: &str, serial: Option<&str>, backing: Option<&str>) -> Target {
        Target {
            path: "/dev/dut".into(),
            device: Some(BlockDevice {
                name: name.into(),
                serial: serial.map(str::to_owned),
                backing: backing.map(str::to_owned),
                capacity_bytes: 1 << 30,
                ..BlockDevice::default()
            }),
            ..Target::default()
        }
    }

    #[test]
    fn the_serial_decides_and_the_kernel_name_does_not() {
        let same = difference(
            &disk("sda", Some("X1"), None),
            &disk("sdb", Some("X1"), None),
        );
        assert_eq!(same, None);
        let other = difference(
            &disk("sda", Some("X1"), None),
            &disk("sda", Some("X2"), None),
        );
        assert!(other.unwrap().contains("X2"));
    }

    #[test]
    fn without_names_of_its_own_what_stands_behind_decides_and_always_the_size() {
        let loop3 = disk("loop3", None, Some("/a"));
        assert_eq!(difference(&loop3, &loop3), None);
        assert!(difference(&loop3, &disk("loop3", None, Some("/b"))).is_some());
        let mut larger = loop3.clone();
        larger.device.as_mut().unwrap().capacity_bytes += 512;
        assert!(difference(&loop3, &larger).unwrap().contains("size"));
        let file = Target {
            path: "/dev/dut".into(),
            ..Target::default()
        };
        assert!(difference(&loop3, &file).is_some() && difference(&file, &loop3).is_some());
        assert_eq!(difference(&file, &file), None);
    }
}
