//! Block devices: the targets, and what lies under them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use fathom_model::StackLayer;

use super::{Detail, EvidenceReading};
use crate::cow;
use crate::extents::WrittenParts;
use crate::identity;
use crate::stack;
use crate::sys::{Sys, SysBlock, text};

/// Devices that are read: an array of more says no more by each of them.
const MOST: usize = 16;

/// What `stat` counts, in its order (Documentation/block/stat.rst); `sectors` are of 512
/// bytes whatever the device's own are.
const STAT: [&str; 17] = [
    "read_ios",
    "read_merges",
    "read_sectors",
    "read_ms",
    "write_ios",
    "write_merges",
    "write_sectors",
    "write_ms",
    "in_flight",
    "busy_ms",
    "queue_ms",
    "discard_ios",
    "discard_merges",
    "discard_sectors",
    "discard_ms",
    "flush_ios",
    "flush_ms",
];

/// Settings of a queue that change what is measured
/// (Documentation/ABI/stable/sysfs-block).
const SETTINGS: [&str; 6] = [
    "scheduler",
    "nr_requests",
    "wbt_lat_usec",
    "write_cache",
    "max_sectors_kb",
    "read_ahead_kb",
];

/// Work of a drive or array beside the job's (Documentation/admin-guide/md.rst).
const SYNC_ACTION: &str = "md/sync_action";

/// A device and what it is to the step.
#[derive(Debug)]
struct ReadDevice {
    node: SysBlock,
    role: &'static str,
}

/// The devices of a step.
#[derive(Debug, Default)]
pub(super) struct Devices {
    all: Vec<ReadDevice>,
    /// Of each file system that targets lie on: its kind and the folder of btrfs.
    exclusive: Vec<PathBuf>,
    /// The record, and whether it lies on a target.
    record: Option<(PathBuf, bool)>,
    /// Targets that are not devices.
    files: Vec<PathBuf>,
    /// The whole disks among the targets that are named themselves, not a file on them.
    named: Vec<SysBlock>,
}

impl Devices {
    pub(super) fn of(sys: &Sys, targets: &[PathBuf], record: Option<&Path>) -> Self {
        let mut found = Self::default();
        for target in targets {
            let itself = sys.by_path(target);
            match &itself {
                Some(node) if *node == node.whole() => found.named.push(node.clone()),
                Some(_) => {}
                None => found.files.push(target.clone()),
            }
            if let Some(stack) = stack::of(sys, target) {
                found.add(sys, &stack, "target");
            }
        }
        if !found.all.is_empty() {
            found.record = record.and_then(|record| {
                let on = stack::disks(sys, record);
                let is_known = on.iter().any(|disk| found.knows(disk));
                (!on.is_empty()).then(|| (record.to_owned(), is_known))
            });
        }
        let btrfs = (found.all.iter()).filter_map(|it| cow::btrfs_folder(sys, &it.node));
        let each: BTreeSet<PathBuf> = btrfs.collect();
        let files = each.iter().map(|dir| dir.join("exclusive_operation"));
        found.exclusive = files.collect();
        found
    }

    fn knows(&self, node: &SysBlock) -> bool {
        self.all.iter().any(|known| known.node == *node)
    }

    /// The first devices on the way down are the targets. What is done to other partitions
    /// of a disk is done to the same disk.
    fn add(&mut self, sys: &Sys, layer: &StackLayer, role: &'static str) {
        let mut below = role;
        if layer.is_device()
            && let Some(node) = sys.by_name(&layer.name).map(|node| node.whole())
        {
            below = "under";
            if !self.knows(&node) && self.all.len() < MOST {
                self.all.push(ReadDevice { node, role });
            }
        }
        for layer in &layer.under {
            self.add(sys, layer, below);
        }
    }

    /// The devices that are hardware.
    pub(super) fn hardware(&self) -> impl Iterator<Item = &SysBlock> {
        let all = self.all.iter().map(|it| &it.node);
        all.filter(|node| {
            !node
                .dir
                .components()
                .any(|part| part.as_os_str() == "virtual")
        })
    }

    pub(super) fn read(&self, sys: &Sys, reading: &mut EvidenceReading, detail: Detail) {
        for device in &self.all {
            stat(&device.node, reading);
            changing(&device.node, reading);
            if detail >= Detail::Seldom {
                fixed(sys, device, reading);
            }
        }
        for (n, file) in self.exclusive.iter().enumerate() {
            reading.setting(&format!("btrfs{n}"), "exclusive_operation", text(file));
        }
        if let Some((record, is_on_target)) = &self.record
            && detail >= Detail::Seldom
        {
            reading.setting(
                "record",
                "on_target",
                Some(u8::from(*is_on_target).to_string()),
            );
            reading.count("record", "bytes", Some(bytes_in(record)));
        }
        if detail == Detail::Ends {
            written(&self.files, "files", "", reading);
            for node in &self.named {
                if let Some(file) = node.text("loop/backing_file") {
                    written(&[file.into()], &node.name, "backing_", reading);
                }
            }
        }
    }
}

fn stat(node: &SysBlock, reading: &mut EvidenceReading) {
    let Some(text) = node.text("stat") else {
        return;
    };
    for (figure, value) in STAT.iter().zip(text.split_ascii_whitespace()) {
        let value: Option<u64> = value.parse().ok();
        match figure.strip_suffix("_sectors") {
            Some(of) => {
                let bytes = value.map(|sectors| sectors.saturating_mul(512));
                reading.count(&node.name, &format!("{of}_bytes"), bytes);
            }
            None if *figure == "in_flight" => {
                reading.gauge(&node.name, figure, value.map(|n| n as f64));
            }
            None => reading.count(&node.name, figure, value),
        }
    }
}

/// What may change while a step runs.
fn changing(node: &SysBlock, reading: &mut EvidenceReading) {
    for setting in SETTINGS {
        let value = node.text(&format!("queue/{setting}"));
        let value = value.map(|value| match setting {
            "scheduler" => identity::chosen(&value),
            _ => value,
        });
        reading.setting(&node.name, setting, value);
    }
    reading.setting(&node.name, "sync_action", node.text(SYNC_ACTION));
    // Pages that hold one value over and over are kept as that value, without memory
    // (Documentation/admin-guide/blockdev/zram.rst, mm_stat).
    if let Some(stat) = node.text("mm_stat") {
        let pages: Vec<Option<u64>> = stat
            .split_ascii_whitespace()
            .map(|value| value.parse().ok())
            .collect();
        let bytes = |at: usize| pages.get(at).copied().flatten().map(|n| n as f64);
        reading.gauge(&node.name, "zram_data_bytes", bytes(0));
        reading.gauge(&node.name, "zram_compressed_bytes", bytes(1));
        reading.gauge(&node.name, "zram_same_pages", bytes(5));
    }
}

/// What does not.
fn fixed(sys: &Sys, device: &ReadDevice, reading: &mut EvidenceReading) {
    let ReadDevice { node, role } = device;
    reading.setting(&node.name, "role", Some((*role).to_owned()));
    for (figure, attribute) in [
        ("logical_block_bytes", "queue/logical_block_size"),
        ("physical_block_bytes", "queue/physical_block_size"),
        ("fua", "queue/fua"),
        ("iostats", "queue/iostats"),
        ("rotational", "queue/rotational"),
        ("backing_file", "loop/backing_file"),
        ("direct", "loop/dio"),
    ] {
        reading.setting(&node.name, figure, node.text(attribute));
    }
    if let Some(file) = node.text("loop/backing_file") {
        let on = identity::file_system(sys, Path::new(&file)).map(|on| on.kind);
        reading.setting(&node.name, "backing_file_system", on);
    }
    let bytes = Some(node.size_bytes()).filter(|&bytes| bytes > 0);
    reading.gauge(&node.name, "size_bytes", bytes.map(|bytes| bytes as f64));
}

/// How long files are, how much of that was written, and of a single file where.
fn written(files: &[PathBuf], subject: &str, prefix: &str, reading: &mut EvidenceReading) {
    let known: Vec<WrittenParts> = files
        .iter()
        .filter_map(|file| WrittenParts::of(file))
        .collect();
    let sum = |of: fn(&WrittenParts) -> u64| known.iter().map(of).sum::<u64>() as f64;
    let size = sum(|file| file.size);
    if size == 0.0 {
        return;
    }
    let figure = |name: &str| format!("{prefix}{name}");
    reading.gauge(subject, &figure("size_bytes"), Some(size));
    let bytes = sum(|file| file.written);
    reading.gauge(subject, &figure("written_bytes"), Some(bytes));
    let encoded = sum(|file| file.encoded);
    reading.gauge(subject, &figure("encoded_bytes"), Some(encoded));
    let shared = sum(|file| file.shared);
    reading.gauge(subject, &figure("shared_bytes"), Some(shared));
    if let ([only], [_]) = (&known[..], files) {
        reading.setting(subject, &figure("written_map"), Some(only.map()));
    }
}

/// Bytes of the files right in a folder.
fn bytes_in(dir: &Path) -> u64 {
    let names = crate::sys::names_in(dir).into_iter();
    let files = names.filter_map(|name| fs::metadata(dir.join(name)).ok());
    files
        .filter(fs::Metadata::is_file)
        .map(|file| file.len())
        .sum()
}
