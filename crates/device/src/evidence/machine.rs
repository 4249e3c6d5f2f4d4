//! The machine: CPUs, pressure, memory, clocks.

use std::fs;

use super::EvidenceReading;
use crate::sys::{Sys, names_in, text};

/// USER_HZ is 100 on every architecture that Fathom runs on
/// (include/asm-generic/param.h).
const TICK_MS: u64 = 10;
/// Fields of a line of /proc/stat (proc_stat(5)).
const CPU: [&str; 8] = [
    "user_ms",
    "nice_ms",
    "system_ms",
    "idle_ms",
    "iowait_ms",
    "irq_ms",
    "softirq_ms",
    "steal_ms",
];
const IDLE: usize = 3;
const IOWAIT: usize = 4;
const IRQ: usize = 5;
const SOFTIRQ: usize = 6;

/// The CPU times of the reading before, one line for each CPU.
#[derive(Debug, Default)]
pub(super) struct CpuTimes {
    last: Vec<[u64; CPU.len()]>,
}

impl CpuTimes {
    pub(super) fn read(&mut self, sys: &Sys, reading: &mut EvidenceReading) {
        let Ok(text) = fs::read_to_string(sys.path("/proc/stat")) else {
            return;
        };
        let mut cpus = Vec::new();
        for line in text.lines() {
            let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
            match name {
                "cpu" => {
                    let ticks = times(rest);
                    for (figure, ticks) in CPU.iter().zip(ticks) {
                        // Idle time may go back a little (proc_stat(5)).
                        reading.count("cpu", figure, Some(ticks.saturating_mul(TICK_MS)));
                    }
                }
                "procs_running" => {
                    let running = rest.trim().parse().ok();
                    reading.gauge("cpu", "running", running);
                }
                _ if name.starts_with("cpu") => cpus.push(times(rest)),
                _ => {}
            }
        }
        reading.gauge("cpu", "cpus", Some(cpus.len() as f64));
        self.busiest(&cpus, reading);
        self.last = cpus;
    }

    /// The CPU that was busiest since the reading before, and the one with most
    /// interrupts, in percent of one CPU.
    fn busiest(&self, now: &[[u64; CPU.len()]], reading: &mut EvidenceReading) {
        // CPUs can come and go.
        if now.len() != self.last.len() {
            return;
        }
        let (mut busiest, mut interrupts): (Option<f64>, Option<f64>) = (None, None);
        for (now, then) in now.iter().zip(&self.last) {
            let mut spent = [0u64; CPU.len()];
            for (spent, (now, then)) in spent.iter_mut().zip(now.iter().zip(then)) {
                *spent = now.saturating_sub(*then);
            }
            let all: u64 = spent.iter().sum();
            if all == 0 {
                continue;
            }
            let percent = |ticks: u64| ticks as f64 * 100.0 / all as f64;
            let busy = percent(all - spent[IDLE] - spent[IOWAIT]);
            let irq = percent(spent[IRQ] + spent[SOFTIRQ]);
            busiest = Some(busiest.unwrap_or(0.0).max(busy));
            interrupts = Some(interrupts.unwrap_or(0.0).max(irq));
        }
        reading.gauge("cpu", "busiest_percent", busiest.map(f64::round));
        reading.gauge("cpu", "busiest_irq_percent", interrupts.map(f64::round));
    }
}

fn times(fields: &str) -> [u64; CPU.len()] {
    let mut times = [0; CPU.len()];
    let fields = fields.split_ascii_whitespace();
    for (time, field) in times.iter_mut().zip(fields) {
        *time = field.parse().unwrap_or(0);
    }
    times
}

/// What is read at every interval.
pub(super) fn read(sys: &Sys, reading: &mut EvidenceReading) {
    pressure(sys, reading);
    memory(sys, reading);
    let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    reading.setting("clock", "source", text(&sys.path(clock)));
    let page = sys.is_live().then(rustix::param::page_size);
    reading.setting("memory", "page_bytes", page.map(|bytes| bytes.to_string()));
}

/// Time in which tasks waited for a resource (Documentation/accounting/psi.rst).
fn pressure(sys: &Sys, reading: &mut EvidenceReading) {
    for resource in ["cpu", "io", "memory"] {
        let path = sys.path(format!("/proc/pressure/{resource}"));
        let text = fs::read_to_string(path).unwrap_or_default();
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            let total = rest
                .split_once("total=")
                .and_then(|(_, us)| us.trim().parse().ok());
            reading.count("pressure", &format!("{resource}_{kind}_us"), total);
        }
    }
}

/// Of /proc/meminfo (proc_meminfo(5)) and of /proc/vmstat what says that memory ran
/// short: pages that a task had to free itself, and pages that were swapped out. And the
/// pages of the cache that the kernel wrote back, and what all block devices delivered.
fn memory(sys: &Sys, reading: &mut EvidenceReading) {
    let text = fs::read_to_string(sys.path("/proc/meminfo")).unwrap_or_default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(':') else {
            continue;
        };
        let figure = match name {
            "MemTotal" => "total_bytes",
            "MemAvailable" => "available_bytes",
            "Dirty" => "dirty_bytes",
            "Writeback" => "writeback_bytes",
            _ => continue,
        };
        let kib: Option<f64> = value
            .split_ascii_whitespace()
            .next()
            .and_then(|kib| kib.parse().ok());
        // Coarse, so that what hardly moves is not told.
        let bytes = kib.map(|kib| (kib / 4096.0).round() * 4096.0 * 1024.0);
        reading.gauge("memory", figure, bytes);
    }
    let text = fs::read_to_string(sys.path("/proc/vmstat")).unwrap_or_default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else {
            continue;
        };
        let figure = match name {
            "pgscan_direct" => "direct_scan_pages",
            "pswpout" => "swapped_out_pages",
            "nr_written" => "written_back_pages",
            "pgpgin" => "read_kib",
            _ => continue,
        };
        reading.count("memory", figure, value.trim().parse().ok());
    }
}

/// What is read seldom.
pub(super) fn read_seldom(sys: &Sys, reading: &mut EvidenceReading) {
    let dir = sys.path("/sys/devices/system/cpu");
    let (mut throttled, mut now, mut most, mut n) = (None, 0.0, 0.0, 0u32);
    let is_cpu = |name: &&String| {
        let number = name.strip_prefix("cpu").unwrap_or("");
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    };
    for cpu in names_in(&dir).iter().filter(is_cpu) {
        let number = |file: &str| -> Option<u64> { text(&dir.join(cpu).join(file))?.parse().ok() };
        // Documentation/ABI/testing/sysfs-devices-system-cpu.
        let core = number("thermal_throttle/core_throttle_count");
        let package = number("thermal_throttle/package_throttle_count");
        if let Some(count) = core.or(package) {
            let count = count.max(package.unwrap_or(0));
            throttled = Some(throttled.unwrap_or(0u64).saturating_add(count));
        }
        let khz = (
            number("cpufreq/scaling_cur_freq"),
            number("cpufreq/cpuinfo_max_freq"),
        );
        if let (Some(khz), Some(most_khz)) = khz {
            (now, most, n) = (now + khz as f64, most + most_khz as f64, n + 1);
        }
    }
    reading.count("cpu", "thermal_throttles", throttled);
    let mean = |khz: f64| (n > 0).then(|| khz / f64::from(n) / 1000.0);
    reading.gauge("cpu", "mhz", mean(now));
    reading.gauge("cpu", "most_mhz", mean(most));
    let allowed = fs::read_to_string(sys.path("/proc/self/status")).unwrap_or_default();
    let allowed = allowed
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    reading.setting("cpu", "allowed", allowed.map(|list| list.trim().to_owned()));
}
