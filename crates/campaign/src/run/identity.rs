//! Whether the device under test is still the one that a record speaks of.

use std::path::Path;

use fathom_model::Environment;
use fathom_model::environment::{BlockDevice, Target};

/// The device or file under test, as an environment describes it.
pub(crate) fn dut<'e>(environment: Option<&'e Environment>, dut: &Path) -> Option<&'e Target> {
    let targets = &environment?.targets;
    targets.iter().find(|target| target.path == dut)
}

/// What tells the target of today from that of a record; `None`: it is the same.
pub(crate) fn difference(before: &Target, now: &Target) -> Option<String> {
    match (&before.device, &now.device) {
        (Some(before), Some(now)) => other_device(before, now),
        (None, None) => (before.path != now.path).then(|| {
            format!(
                "it was measured on {}, now it is {}",
                before.path.display(),
                now.path.display()
            )
        }),
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
pub(crate) fn changes(before: &Environment, now: &Environment) -> Vec<String> {
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
            file_system: None,
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
