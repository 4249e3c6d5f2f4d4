//! The machine a run takes place on.

use std::path::PathBuf;

use fathom_model::Environment;
use fathom_model::environment::Boot;

use crate::identity;
use crate::sys::{Sys, names_in, text};

/// Describes this machine and the targets.
pub fn capture(targets: &[PathBuf]) -> Environment {
    capture_from(&Sys::live(), targets)
}

/// The boot of this machine that goes on.
pub fn booted() -> Boot {
    Boot {
        kernel: rustix::system::uname()
            .release()
            .to_string_lossy()
            .into_owned(),
        boot: crate::health::boot(&Sys::live()),
    }
}

/// Major and minor number of a kernel's release: (6, 15) of `6.15.0-rc1`; `None` where it does
/// not begin with them.
pub fn kernel_number(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '-', '+']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// As [`capture`], with /proc, /sys and /dev from `sys`; names and numbers that
/// only the running kernel can tell come from that one.
pub fn capture_from(sys: &Sys, targets: &[PathBuf]) -> Environment {
    let uname = rustix::system::uname();
    let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
    Environment {
        fathom_version: env!("CARGO_PKG_VERSION").to_owned(),
        hostname: word(uname.nodename()),
        os: word(uname.sysname()),
        kernel: word(uname.release()),
        arch: word(uname.machine()),
        cpu_model: cpu_model(sys),
        cpus: cpus(),
        cpu_governor: cpu_governor(sys),
        memory_bytes: memory_bytes(sys),
        targets: targets
            .iter()
            .map(|path| identity::target(sys, path))
            .collect(),
    }
}

/// x86 calls it `model name`, POWER and s390 `cpu`; Arm gives numbers only, so
/// the board's name from the device tree stands in.
fn cpu_model(sys: &Sys) -> Option<String> {
    let cpuinfo = text_lines(sys, "/proc/cpuinfo");
    ["model name", "cpu", "Processor"]
        .iter()
        .find_map(|&wanted| field(&cpuinfo, wanted))
        .or_else(|| text(&sys.path("/proc/device-tree/model")))
}

/// Pages of the cache that wait to be written, in bytes.
pub(crate) fn dirty_bytes(sys: &Sys) -> Option<u64> {
    of_memory(sys, "Dirty")
}

fn memory_bytes(sys: &Sys) -> Option<u64> {
    of_memory(sys, "MemTotal")
}

fn of_memory(sys: &Sys, name: &str) -> Option<u64> {
    let total = field(&text_lines(sys, "/proc/meminfo"), name)?;
    // "16319808 kB", in truth KiB (proc_meminfo(5)).
    let kib: u64 = total.split_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

fn text_lines(sys: &Sys, path: &str) -> String {
    std::fs::read(sys.path(path))
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default()
}

/// The value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        let value = value.trim();
        (key.trim() == name && !value.is_empty()).then(|| value.to_owned())
    })
}

/// The governors in use, each once: `performance`, `performance, powersave`.
fn cpu_governor(sys: &Sys) -> Option<String> {
    let dir = sys.path("/sys/devices/system/cpu");
    let mut governors: Vec<String> = names_in(&dir)
        .iter()
        .filter_map(|cpu| text(&dir.join(cpu).join("cpufreq/scaling_governor")))
        .collect();
    governors.sort();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(", "))
}

/// CPUs in this process's affinity mask.
#[cfg(target_os = "linux")]
fn cpus() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count())
}

/// CPUs that the system offers this process.
#[cfg(not(target_os = "linux"))]
fn cpus() -> u32 {
    std::thread::available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}
