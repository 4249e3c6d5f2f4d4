//! The machine itself: kernel, processors, privileges, room for records.

use std::path::Path;

use fathom_model::units;

use super::{State, Topic, read};

pub fn look(topic: &mut Topic) {
    let uname = rustix::system::uname();
    topic.ok(
        "kernel",
        format!(
            "{} {} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy(),
            uname.machine().to_string_lossy()
        ),
    );
    processors(topic);
    privileges(topic);
    cgroup(topic);
}

fn processors(topic: &mut Topic) {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let model = read("/proc/cpuinfo").and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let model = model.unwrap_or_else(|| "unnamed".to_owned());
    topic.ok("processors", format!("{cpus} × {model}"));

    match read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") {
        Some(governor) if governor != "performance" => topic.add(
            "governor",
            State::Note,
            format!("{governor}: the clock follows the load, latencies vary with it"),
            Some("cpupower frequency-set -g performance".to_owned()),
        ),
        Some(governor) => topic.ok("governor", governor),
        None => topic.ok("governor", "the machine does not let one choose"),
    }
    // fio reads the clock several times per I/O; without TSC each is a system call or worse.
    match read("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        Some(clock) if clock == "hpet" || clock == "acpi_pm" => topic.add(
            "clock",
            State::Note,
            format!("{clock}: reading it is slow and costs time in every I/O"),
            Some("see the kernel log for why tsc was given up".to_owned()),
        ),
        Some(clock) => topic.ok("clock", clock),
        None => {}
    }
}

/// Capabilities that something in Fathom or fio asks for
/// (`include/uapi/linux/capability.h`).
const CAPABILITIES: [(u32, &str, &str); 4] = [
    (14, "CAP_IPC_LOCK", "memory locked beyond memlock"),
    (17, "CAP_SYS_RAWIO", "commands straight to a drive"),
    (
        21,
        "CAP_SYS_ADMIN",
        "dropping caches, loop devices, drive settings",
    ),
    (23, "CAP_SYS_NICE", "the realtime I/O class"),
];

fn privileges(topic: &mut Topic) {
    let root = rustix::process::geteuid().is_root();
    let effective = read("/proc/self/status").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
        u64::from_str_radix(line.trim(), 16).ok()
    });
    let Some(effective) = effective else {
        topic.ok("user", if root { "root" } else { "not root" });
        return;
    };
    let lacking: Vec<String> = CAPABILITIES
        .iter()
        .filter(|(bit, _, _)| effective >> bit & 1 == 0)
        .map(|(_, name, what)| format!("{name} ({what})"))
        .collect();
    let user = if root { "root" } else { "not root" };
    if lacking.is_empty() {
        topic.ok("privileges", user);
    } else {
        let fix = (!root).then(|| "run as root what needs it".to_owned());
        let found = format!("{user}; without {}", lacking.join(", "));
        topic.add("privileges", State::Note, found, fix);
    }
}

/// Limits of the control group this process lives in (version 2).
fn cgroup(topic: &mut Topic) {
    let Some(path) = read("/proc/self/cgroup").and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("0::"))?;
        Some(line.to_owned())
    }) else {
        return;
    };
    let dir = format!("/sys/fs/cgroup{}", path.trim_end_matches('/'));
    let limits: Vec<String> = ["cpu.max", "memory.max", "io.max"]
        .iter()
        .filter_map(|name| Some((name, read(&format!("{dir}/{name}"))?)))
        .filter(|(_, value)| !value.is_empty() && !value.starts_with("max"))
        .map(|(name, value)| format!("{name} {}", value.replace('\n', ", ")))
        .collect();
    if limits.is_empty() {
        topic.ok("control group", "sets no limit");
    } else {
        let found = format!("{}: what is measured may be this limit", limits.join("; "));
        topic.add("control group", State::Note, found, None);
    }
}

/// A record of a long run with its samples and raw outputs stays below this.
const ROOM_BYTES: u64 = 1 << 30;

pub fn room_for_runs(topic: &mut Topic, runs: &Path) {
    let absolute = std::path::absolute(runs).unwrap_or_else(|_| runs.to_owned());
    // The folder is made by the first run: until then its parent counts.
    let there = absolute.ancestors().find(|path| path.exists());
    let Some((there, stat)) = there.and_then(|path| Some((path, rustix::fs::statvfs(path).ok()?)))
    else {
        return;
    };
    let free = stat.f_bavail.saturating_mul(stat.f_frsize);
    let found = format!("{} free in {}", units::bytes(free as f64), there.display());
    let other = Some("choose another folder with --runs DIR".to_owned());
    if rustix::fs::access(there, rustix::fs::Access::WRITE_OK).is_err() {
        let found = format!("{} cannot be written to", there.display());
        topic.add("room", State::Note, found, other);
    } else if free < ROOM_BYTES {
        topic.add("room", State::Note, found, other);
    } else if is_tmpfs(there) {
        let found = format!("{found}, which is memory: records do not survive a restart");
        topic.add("room", State::Note, found, other);
    } else {
        topic.ok("room", found);
    }
}

#[cfg(target_os = "linux")]
fn is_tmpfs(path: &Path) -> bool {
    // TMPFS_MAGIC of include/uapi/linux/magic.h.
    rustix::fs::statfs(path).is_ok_and(|stat| stat.f_type == 0x0102_1994)
}

#[cfg(not(target_os = "linux"))]
fn is_tmpfs(_path: &Path) -> bool {
    false
}
