//! The control groups that this process, and with it the engine, is in: their limits,
//! and how long they held it back.

use std::fs;
use std::path::Path;

use super::EvidenceReading;
use crate::cgroup::{Groups, field, io_limits};
use crate::sys::{Sys, text};

impl Groups {
    pub(super) fn read(&self, sys: &Sys, reading: &mut EvidenceReading) {
        let (mut throttled_us, mut stops) = (None, None);
        for group in self.each() {
            for folder in &group.folders {
                if group.has("cpu") {
                    let stat = fs::read_to_string(folder.join("cpu.stat")).unwrap_or_default();
                    let field = |name: &str| field(&stat, name);
                    // Version 1 has ns, version 2 µs.
                    let ns = field("throttled_time").map(|ns| ns / 1000);
                    add(&mut throttled_us, field("throttled_usec").or(ns));
                    add(&mut stops, field("nr_throttled"));
                    if field("nr_throttled").is_some_and(|stops| stops > 0) {
                        let name = group.name(folder);
                        reading.setting("cgroup", "cpu_throttled_in", Some(name));
                    }
                }
                if group.has("blkio") {
                    limits(sys, folder, &group.name(folder), reading);
                }
                if group.has("memory") {
                    let events =
                        fs::read_to_string(folder.join("memory.events")).unwrap_or_default();
                    let high = ["high", "max"]
                        .iter()
                        .filter_map(|name| field(&events, name));
                    let failed = text(&folder.join("memory.failcnt")).and_then(|n| n.parse().ok());
                    let mut reclaims = None;
                    high.chain(failed).for_each(|n| add(&mut reclaims, Some(n)));
                    let known = reading.counts.get("cgroup.memory_reclaims").copied();
                    add(&mut reclaims, known);
                    reading.count("cgroup", "memory_reclaims", reclaims);
                }
            }
        }
        reading.count("cgroup", "cpu_throttled_us", throttled_us);
        reading.count("cgroup", "cpu_throttles", stops);
    }
}

fn add(sum: &mut Option<u64>, more: Option<u64>) {
    if let Some(more) = more {
        *sum = Some(sum.unwrap_or(0).saturating_add(more));
    }
}

/// The limits of a group for I/O of each device; the lowest of several counts.
fn limits(sys: &Sys, folder: &Path, group: &str, reading: &mut EvidenceReading) {
    for limit in io_limits(sys, folder) {
        let Some(device) = limit.device else { continue };
        let figure = format!("limit_{}", limit.figure);
        let known = reading.gauges.get(&format!("{}.{figure}", device.name));
        if known.is_none_or(|&known| limit.most < known) {
            reading.gauge(&device.name, &figure, Some(limit.most));
            let figure = format!("{figure}_group");
            reading.setting(&device.name, &figure, Some(group.to_owned()));
        }
    }
}
