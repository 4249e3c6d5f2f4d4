//! What a machine does while something is measured on it: of recorded trees, whose
//! files change between two readings, and of this machine.

use std::path::{Path, PathBuf};

use fathom_device::Sys;
use fathom_device::evidence::Sampler;
use fathom_model::{EvidenceInterval, EvidenceSum};

use crate::tree::Tree;

const DRIVE: &str = "/sys/devices/pci0000:00/0000:02:00.0/nvme/nvme0/nvme0n1";
const PCI: &str = "/sys/devices/pci0000:00/0000:02:00.0";
const MEMBER: &str = "/sys/devices/pci0000:00/0000:00:17.0/host0/block/sda";
const ARRAY: &str = "/sys/devices/virtual/block/md0";
const GROUP: &str = "/sys/fs/cgroup/lab";

impl Tree {
    /// A machine with an NVMe drive, an array on a disk, and version 2 of control groups.
    fn machine() -> Self {
        let tree = Self::new();
        for (dir, number) in [(DRIVE, "259:0"), (MEMBER, "8:0"), (ARRAY, "9:0")] {
            let name = dir.rsplit('/').next().unwrap();
            tree.write(&format!("{dir}/dev"), number);
            tree.write(&format!("{dir}/size"), "1000");
            tree.stat(dir, 0);
            tree.write(&format!("/dev/{name}"), "");
            tree.link(&format!("/sys/class/block/{name}"), dir);
            tree.link(&format!("/sys/dev/block/{number}"), dir);
        }
        tree.link(&format!("{ARRAY}/slaves/sda"), MEMBER);
        tree.write(&format!("{ARRAY}/md/sync_action"), "idle\n");
        tree.write(&format!("{DRIVE}/queue/scheduler"), "[none] mq-deadline\n");
        tree.write(&format!("{DRIVE}/queue/physical_block_size"), "4096\n");
        tree.write(&format!("{PCI}/current_link_speed"), "16.0 GT/s PCIe\n");
        tree.write(&format!("{PCI}/max_link_speed"), "16.0 GT/s PCIe\n");
        tree.write(&format!("{PCI}/current_link_width"), "2\n");
        tree.write(&format!("{PCI}/max_link_width"), "4\n");
        tree.write(
            &format!("{PCI}/aer_dev_correctable"),
            "RxErr 1\nTOTAL_ERR_COR 3\n",
        );
        tree.write(&format!("{PCI}/nvme/nvme0/hwmon3/temp1_input"), "41850\n");
        tree.link(&format!("{DRIVE}/device"), &format!("{PCI}/nvme/nvme0"));
        tree.write("/proc/self/cgroup", "0::/lab\n");
        tree.write(
            "/proc/self/mountinfo",
            "30 24 0:26 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
        );
        tree.write(
            &format!("{GROUP}/cpu.stat"),
            "nr_throttled 0\nthrottled_usec 0\n",
        );
        tree.write(
            &format!("{GROUP}/io.max"),
            "259:0 rbps=1048576 wbps=max riops=500 wiops=max\n",
        );
        tree.write(
            "/proc/stat",
            "cpu  0 0 0 0 0 0 0 0 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\nprocs_running 1\n",
        );
        let cpu = "/sys/devices/system/cpu/cpu0";
        tree.write(
            &format!("{cpu}/thermal_throttle/core_throttle_count"),
            "5\n",
        );
        tree.write(&format!("{cpu}/cpufreq/scaling_cur_freq"), "1200000\n");
        tree.write(&format!("{cpu}/cpufreq/cpuinfo_max_freq"), "3600000\n");
        tree.write(
            "/proc/pressure/io",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=10\n",
        );
        tree
    }

    /// Counters of a device after so many reads of 4 KiB.
    fn stat(&self, dir: &str, reads: u64) {
        let sectors = reads * 8;
        self.write(
            &format!("{dir}/stat"),
            format!("{reads} 0 {sectors} 9 0 0 0 0 2 7 9"),
        );
    }

    fn begin(&self, target: &str) -> (Sampler, EvidenceInterval) {
        Sampler::begin(&self.sys(), &[PathBuf::from(target)], None)
    }
}

#[test]
fn the_first_reading_names_what_can_be_read_and_nothing_else() {
    let tree = Tree::machine();
    let (_, first) = tree.begin("/dev/nvme0n1");
    assert!(first.is_first());
    assert_eq!(first.counts.get("nvme0n1.read_ios"), Some(&0));
    assert_eq!(first.settings["nvme0n1.role"], "target");
    assert_eq!(first.settings["nvme0n1.scheduler"], "none");
    assert_eq!(first.gauges["nvme0n1.link_lanes"], 2.0);
    assert_eq!(first.gauges["nvme0n1.link_most_lanes"], 4.0);
    assert_eq!(first.gauges["nvme0n1.celsius"], 41.85);
    assert_eq!(first.gauges["nvme0n1.limit_riops"], 500.0);
    assert_eq!(
        first.gauges.get("nvme0n1.limit_wiops"),
        None,
        "no limit is none of 0"
    );
    assert_eq!(
        (first.gauges["cpu.mhz"], first.gauges["cpu.most_mhz"]),
        (1200.0, 3600.0)
    );
    for absent in [
        "pressure.cpu_some_us",
        "nvme0n1.flush_ios",
        "memory.direct_scan_pages",
    ] {
        assert_eq!(first.counts.get(absent), None, "{absent}");
    }
    assert!(!first.settings.keys().any(|name| name.starts_with("sda.")));
}

#[test]
fn only_what_has_changed_is_told_and_a_counter_that_began_anew_is_not() {
    let tree = Tree::machine();
    let (mut sampler, first) = tree.begin("/dev/nvme0n1");
    tree.stat(DRIVE, 10);
    tree.write(&format!("{DRIVE}/queue/scheduler"), "none [mq-deadline]\n");
    tree.write(
        &format!("{GROUP}/cpu.stat"),
        "nr_throttled 2\nthrottled_usec 1500\n",
    );
    tree.write(
        "/proc/stat",
        "cpu  50 0 0 40 0 0 5 5 0 0\ncpu0 50 0 0 40 0 0 5 5 0 0\nprocs_running 3\n",
    );
    let second = sampler.end();
    let told: Vec<(&str, u64)> = second
        .counts
        .iter()
        .map(|(k, v)| (k.as_str(), *v))
        .collect();
    assert_eq!(
        told,
        [
            ("cgroup.cpu_throttled_us", 1500),
            ("cgroup.cpu_throttles", 2),
            ("cpu.idle_ms", 400),
            ("cpu.softirq_ms", 50),
            ("cpu.steal_ms", 50),
            ("cpu.user_ms", 500),
            ("nvme0n1.read_bytes", 40_960),
            ("nvme0n1.read_ios", 10),
        ]
    );
    assert_eq!(second.gauges["cpu.busiest_percent"], 60.0);
    let group = GROUP.trim_start_matches("/sys/fs/cgroup");
    assert_eq!(second.settings["cgroup.cpu_throttled_in"], group);
    assert_eq!(second.settings.len(), 2);
    tree.write(
        "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
        "9\n",
    );
    tree.stat(DRIVE, 3);
    let third = sampler.end();
    assert_eq!(third.counts.get("nvme0n1.read_ios"), None);
    assert_eq!(third.counts["cpu.thermal_throttles"], 4);
    let mut sum = EvidenceSum::default();
    [first, second, third].iter().for_each(|one| sum.add(one));
    assert_eq!(sum.setting("nvme0n1.scheduler"), ["none", "mq-deadline"]);
    assert_eq!(sum.count("cpu.steal_ms"), Some(50));
}

#[test]
fn what_lies_under_a_target_is_read_as_well() {
    let tree = Tree::machine();
    let (mut sampler, first) = tree.begin("/dev/md0");
    assert_eq!(first.settings["md0.role"], "target");
    assert_eq!(first.settings["sda.role"], "under");
    assert_eq!(first.settings["md0.sync_action"], "idle");
    tree.write(&format!("{ARRAY}/md/sync_action"), "resync\n");
    tree.stat(MEMBER, 4);
    let second = sampler.end();
    assert_eq!(second.settings["md0.sync_action"], "resync");
    assert_eq!(second.counts["sda.read_ios"], 4);
}

/// What an interval costs is measured by `make bench`; here that the sizes are of the
/// order that the format promises.
#[test]
fn an_interval_of_this_machine_is_small() {
    let target = [PathBuf::from("/")];
    let (mut sampler, first) = Sampler::begin(&Sys::live(), &target, Some(Path::new("/").into()));
    assert!(first.counts.contains_key("cpu.user_ms"));
    let told = sampler.end();
    let n = told.counts.len() + told.gauges.len() + told.settings.len();
    assert!(n < 80, "{told:?}");
}
