//! The machine itself: kernel, processors, privileges, room for records.

use std::path::Path;

use fathom_device::Sys;
use fathom_model::{text, units};

use super::{CheckState, Topic, read};

pub fn look(topic: &mut Topic) {
    let machine = fathom_device::environment(&[]);
    topic.ok(
        "kernel",
        format!("{} {} {}", machine.os, machine.kernel, machine.arch),
    );
    let model = machine.cpu_model.as_deref().unwrap_or("unnamed");
    topic.ok("processors", format!("{} × {model}", machine.cpus));
    match machine.cpu_governor.as_deref() {
        Some("performance") => topic.ok("governor", "performance"),
        Some(governor) => topic.add(
            "governor",
            CheckState::Note,
            format!("{governor}: the clock follows the load, latencies vary with it"),
            Some("cpupower frequency-set -g performance".to_owned()),
        ),
        None => topic.ok("governor", "not for this system to choose"),
    }
    if let Some(bytes) = machine.memory_bytes {
        topic.ok("memory", units::bytes(bytes as f64));
    }
    clock(topic);
    privileges(topic);
    cgroup(topic);
}

/// fio reads the clock several times per I/O; without TSC each is a system call or worse.
fn clock(topic: &mut Topic) {
    match read("/sys/devices/system/clocksource/clocksource0/current_clocksource") {
        Some(clock) if clock == "hpet" || clock == "acpi_pm" => topic.add(
            "clock",
            CheckState::Note,
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
        topic.add("privileges", CheckState::Note, found, fix);
    }
}

/// What the control groups of this process, and those above, allow it.
fn cgroup(topic: &mut Topic) {
    let limits = fathom_device::cgroup::limits(&Sys::live());
    let of = |what: String, group: &str| match group {
        "/" => what,
        group => format!("{what} (of {})", text::line(group)),
    };
    let mut found: Vec<String> = Vec::new();
    if let Some(cpus) = &limits.cpus {
        found.push(of(format!("time of {:.2} CPUs", cpus.most), &cpus.group));
    }
    if let Some(cpuset) = &limits.cpuset {
        found.push(format!("the CPUs {cpuset}"));
    }
    if let Some(memory) = &limits.memory {
        let bytes = units::bytes(memory.most as f64);
        found.push(of(format!("{bytes} of memory"), &memory.group));
    }
    for io in &limits.io {
        found.push(of(format!("I/O {}", text::line(&io.most)), &io.group));
    }
    let hidden = match limits.is_cut_off {
        true => "; a namespace hides the groups above, which may allow less",
        false => "",
    };
    if found.is_empty() {
        topic.ok("control group", format!("sets no limit{hidden}"));
    } else {
        let found = format!(
            "allows {}{hidden}: what is measured may be this limit",
            found.join(", ")
        );
        topic.add("control group", CheckState::Note, found, None);
    }
}

/// A record of a long run with its samples and raw outputs stays below this.
const ROOM_BYTES: u64 = 1 << 30;

pub fn room_for_runs(topic: &mut Topic, runs: &Path) {
    let other = Some("choose another folder with --runs DIR".to_owned());
    let space = match fathom_device::space::of(runs) {
        Ok(space) => space,
        Err(error) => return topic.add("room", CheckState::Note, error.to_string(), other),
    };
    let free = units::bytes(space.free_bytes as f64);
    let place = runs.display();
    if space.read_only {
        let found = format!("{place} lies on a read-only file system");
        topic.add("room", CheckState::Note, found, other);
    } else if space.free_bytes < ROOM_BYTES {
        let found = format!("only {free} free for {place}");
        topic.add("room", CheckState::Note, found, other);
    } else if space.in_memory {
        let found = format!("{place} lies in memory: records do not survive a restart");
        topic.add("room", CheckState::Note, found, other);
    } else {
        topic.ok("room", format!("{free} free for {place}"));
    }
}
