//! Counters of nodes and volumes, from recorded files.

use std::path::Path;

use fathom_device::node::{NodeReading, VolumeReading, dump, files};
use fathom_model::node::{CpuTime, DeviceCounts};

const FIRST: &str = include_str!("reading-1.txt");
const SECOND: &str = include_str!("reading-2.txt");
/// A server's view with a volume of each kind.
const VOLUMES: &str = include_str!("volumes.txt");

#[test]
fn what_a_machine_did_between_two_readings() {
    let (first, second) = (
        NodeReading::parse(FIRST).unwrap(),
        NodeReading::parse(SECOND).unwrap(),
    );
    let sample = second.since(&first, 7).unwrap();
    assert_eq!((sample.at_ms, sample.span_ms), (7, 3030));
    let cpu = CpuTime {
        user_ms: 4400,
        system_ms: 1600,
        iowait_ms: 0,
        steal_ms: 0,
        idle_ms: 40,
    };
    assert_eq!(sample.cpu, cpu);
    // The partition is a part of its disk, and loop0 and loop1 did nothing.
    let vda = DeviceCounts {
        name: "vda".to_owned(),
        read_ios: 69,
        read_bytes: 3656 * 512,
        read_ms: 21,
        write_ios: 77,
        write_bytes: 129_128 * 512,
        write_ms: 508,
        busy_ms: 40,
        queue_ms: 547,
    };
    assert_eq!(sample.devices, [vda]);
    let memory = sample.memory;
    assert_eq!(memory.total_bytes, 24_684_084 << 10);
    assert_eq!(memory.page_cache_bytes, (16_066_312 + 89_092 - 8_872) << 10);
    assert_eq!(memory.dirty_bytes, 446_268 << 10);
    // One that has begun since counts whole, and its name may hold anything.
    let busiest: Vec<(&str, u64)> = sample
        .processes
        .iter()
        .map(|one| (one.name.as_str(), one.cpu_ms))
        .take(2)
        .collect();
    assert_eq!(busiest, [("a) R 1 (b", 420), ("kube-apiserver", 40)]);
    assert!(sample.interfaces.is_empty(), "{:?}", sample.interfaces);
}

#[test]
fn a_machine_that_was_started_again_did_nothing_that_is_known() {
    let (first, second) = (
        NodeReading::parse(FIRST).unwrap(),
        NodeReading::parse(SECOND).unwrap(),
    );
    assert_eq!(first.since(&second, 7), None);
    assert_eq!(first.since(&first, 7), None);
    let (clock, _) = FIRST.split_once("==> /host/proc/diskstats").unwrap();
    let error = NodeReading::parse(clock).unwrap_err();
    assert!(error.contains("clock"), "{error}");
}

#[test]
fn this_machine_is_read_by_the_same_code() {
    let mut text = Vec::new();
    dump(&files("/proc"), &mut text).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    NodeReading::parse(&text).unwrap();
}

fn moved(point: &str) -> Result<(u64, u64), String> {
    VolumeReading::parse(VOLUMES, Path::new(point))
        .unwrap()
        .moved
}

#[test]
fn a_volume_has_the_counters_of_its_own_partition() {
    let volume = VolumeReading::parse(VOLUMES, Path::new("/dataset")).unwrap();
    assert_eq!((volume.number, volume.device.as_str()), ((8, 17), "sdb1"));
    assert_eq!(volume.moved, Ok((2048 * 512, 4096 * 512)));
    assert_eq!(VolumeReading::parse(VOLUMES, Path::new("/none")), None);
}

#[test]
fn an_nfs_mount_has_the_counters_of_its_calls() {
    assert_eq!(moved("/nfs"), Ok((1_048_576, 2_097_152)));
}

#[test]
fn what_no_single_device_counts_nobody_can_tell() {
    for (point, kind) in [
        ("/ceph", "ceph"),
        ("/", "overlay"),
        ("/btrfs", "btrfs"),
        ("/realtime", "xfs"),
    ] {
        let why = moved(point).unwrap_err();
        assert!(why.contains(&format!(", {kind},")), "{why}");
    }
}
