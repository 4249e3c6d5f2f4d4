//! Wall time and memory of commands; medians.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The program of this name in `PATH`.
pub fn which(name: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}

/// The middle value; of two, the mean of both.
pub fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let half = values.len() / 2;
    if values.len() % 2 == 1 {
        values[half]
    } else {
        (values[half - 1] + values[half]) / 2.0
    }
}

/// Wall time of a command that must succeed, in ms.
pub fn wall_ms(command: &mut Command) -> f64 {
    let begin = Instant::now();
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let ms = begin.elapsed().as_secs_f64() * 1000.0;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    ms
}

/// Medians in ms of commands that take turns, so that what the machine does
/// besides hits all of them alike.
pub fn take_turns(rounds: usize, commands: &mut [Command]) -> Vec<f64> {
    let mut times = vec![Vec::new(); commands.len()];
    for _ in 0..rounds {
        for (command, times) in commands.iter_mut().zip(&mut times) {
            times.push(wall_ms(command));
        }
    }
    times.iter_mut().map(|times| median(times)).collect()
}

/// Median wall time in ms of a function.
pub fn time_of(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let begin = Instant::now();
            work();
            begin.elapsed().as_secs_f64() * 1000.0
        })
        .collect();
    median(&mut times)
}

/// Highest resident memory in KiB of all processes named `fathom` that a command
/// consists of, added up: Fathom and its guard, without fio.
pub fn peak_rss_kib(command: &mut Command) -> f64 {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut peaks = std::collections::BTreeMap::new();
    let before = fs::read_link("/proc/self/exe").unwrap();
    while child.try_wait().unwrap().is_none() {
        // Until it has become the other program, the memory is this one's.
        if fs::read_link(format!("/proc/{}/exe", child.id())).ok() == Some(before.clone()) {
            continue;
        }
        for pid in fathoms_below(child.id()) {
            if let Some(kib) = status_number(pid, "VmHWM:") {
                peaks.insert(pid, kib);
            }
        }
        // Peaks only grow: what is missed is the growth of the last moment.
        thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success(), "{command:?}");
    peaks.values().sum()
}

/// The process itself and its children that run the same program.
fn fathoms_below(pid: u32) -> Vec<u32> {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let exe = |pid: u32| fs::read_link(format!("/proc/{pid}/exe")).ok();
    let own = exe(pid);
    let mut found = vec![pid];
    found.extend(
        children
            .unwrap_or_default()
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok())
            .filter(|&pid| exe(pid) == own),
    );
    found
}

/// A line `name   number kB` of `/proc/PID/status`.
fn status_number(pid: u32, name: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}
