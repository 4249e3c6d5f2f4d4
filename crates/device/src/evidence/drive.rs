//! What only the drive, its link or its firmware can tell.

use std::fs;

use super::EvidenceReading;
use crate::command::KernelDevices;
use crate::health::{Health, LimitCount, limit_counts};
use crate::purge::hidden;
use crate::sys::{Sys, SysBlock, names_in, text};

/// Reads the links and drives of devices.
pub(super) fn read<'d>(
    sys: &Sys,
    devices: impl Iterator<Item = &'d SysBlock>,
    reading: &mut EvidenceReading,
) {
    for device in devices {
        link(device, reading);
        temperature(device, reading);
        errors(device, reading);
        let local = device.text("device/local_cpulist").or_else(|| {
            let above = device.dir.ancestors();
            above
                .take(8)
                .find_map(|dir| text(&dir.join("local_cpulist")))
        });
        reading.setting(&device.name, "local_cpus", local);
        health(sys, device, reading);
    }
}

/// The PCIe link of the nearest device above that has one
/// (Documentation/ABI/testing/sysfs-bus-pci), and what it counted of errors (AER).
fn link(device: &SysBlock, reading: &mut EvidenceReading) {
    let mut above = device.dir.ancestors();
    let Some(pci) = above.find(|dir| dir.join("current_link_speed").exists()) else {
        return;
    };
    let number = |file: &str| -> Option<f64> {
        let text = text(&pci.join(file))?;
        // `16.0 GT/s PCIe`; devices inside the chipset say `Unknown`.
        text.split_ascii_whitespace().next()?.parse().ok()
    };
    for (figure, file) in [
        ("link_gts", "current_link_speed"),
        ("link_most_gts", "max_link_speed"),
        ("link_lanes", "current_link_width"),
        ("link_most_lanes", "max_link_width"),
    ] {
        reading.gauge(
            &device.name,
            figure,
            number(file).filter(|&value| value > 0.0),
        );
    }
    let mut sum = None;
    for file in ["aer_dev_correctable", "aer_dev_nonfatal", "aer_dev_fatal"] {
        let errors = fs::read_to_string(pci.join(file)).unwrap_or_default();
        let total = errors.lines().find_map(|line| line.strip_prefix("TOTAL_"));
        let total = total.and_then(|line| line.split_ascii_whitespace().nth(1)?.parse().ok());
        sum = total.map(|total: u64| sum.unwrap_or(0) + total).or(sum);
    }
    reading.count(&device.name, "link_errors", sum);
}

/// Of hwmon, the device's own or its controller's, in thousandths of a degree.
fn temperature(device: &SysBlock, reading: &mut EvidenceReading) {
    let hwmon = ["device/hwmon", "device/device/hwmon"].map(|place| device.dir.join(place));
    let folders = hwmon
        .iter()
        .flat_map(|dir| names_in(dir).into_iter().map(move |name| dir.join(name)));
    // NVMe drives have theirs as hwmon* right in the controller's folder.
    let own = names_in(&device.dir.join("device")).into_iter();
    let own = own
        .filter(|name| name.starts_with("hwmon"))
        .map(|name| device.dir.join("device").join(name));
    let read = folders.chain(own).find_map(|dir| {
        let number = |file: &str| -> Option<f64> { text(&dir.join(file))?.parse().ok() };
        Some((number("temp1_input")?, number("temp1_max")))
    });
    reading.gauge(&device.name, "celsius", read.map(|(now, _)| now / 1000.0));
    reading.gauge(
        &device.name,
        "most_celsius",
        read.and_then(|(_, most)| Some(most? / 1000.0)),
    );
}

/// Commands that came back with an error, of SCSI and ATA devices
/// (Documentation/ABI/testing/sysfs-bus-scsi-devices, in hexadecimal digits).
fn errors(device: &SysBlock, reading: &mut EvidenceReading) {
    let errors = device.text("device/ioerr_cnt").and_then(|text| {
        let digits = text.strip_prefix("0x").unwrap_or(&text);
        u64::from_str_radix(digits, 16).ok()
    });
    reading.count(&device.name, "command_errors", errors);
}

/// What the drive says of itself.
fn health(sys: &Sys, device: &SysBlock, reading: &mut EvidenceReading) {
    // A recorded tree has no drive behind it.
    if !sys.is_live() {
        return;
    }
    let health = Health::of(&KernelDevices, sys, device);
    reading.count(&device.name, "media_errors", health.media_errors);
    reading.count(&device.name, "error_log_entries", health.error_log_entries);
    reading.count(
        &device.name,
        "thermal_transitions",
        health.thermal_transitions,
    );
    reading.count(&device.name, "thermal_s", health.thermal_s);
    reading.gauge(&device.name, "spare_percent", health.spare_percent);
    limits(&limit_counts(&KernelDevices, device), device, reading);
    let known = reading
        .gauges
        .contains_key(&format!("{}.celsius", device.name));
    let celsius = health.temperature_celsius.filter(|_| !known);
    reading.gauge(&device.name, "celsius", celsius);
}

/// The capacity that no block of a device reaches. It does not change during a step, and the
/// kernel issues the ATA commands for it only once the drive's queue is empty
/// (`ata_std_qc_defer`): read it before the step.
pub(super) fn read_hidden_capacity<'d>(
    sys: &Sys,
    devices: impl Iterator<Item = &'d SysBlock>,
    reading: &mut EvidenceReading,
) {
    // A recorded tree has no drive behind it.
    for device in devices.filter(|_| sys.is_live()) {
        let hidden = hidden::of(device, &KernelDevices);
        let bytes: u64 = hidden.iter().map(|it| it.bytes).sum();
        let bytes = (bytes > 0).then_some(bytes as f64);
        reading.gauge(&device.name, "overprovisioned_bytes", bytes);
    }
}

/// I/Os that missed a duration limit, as the disk counts them: `cdl_t2a_1_duration`.
fn limits(counts: &[LimitCount], device: &SysBlock, reading: &mut EvidenceReading) {
    for count in counts {
        let figure = count.missed.figure(count.page, count.number);
        reading.count(&device.name, &figure, Some(count.n));
    }
}
