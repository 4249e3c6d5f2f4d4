//! What a measurement was made on and with.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

/// Where it was measured.
#[derive(Debug, Serialize)]
pub struct Machine {
    pub date: String,
    pub processor: String,
    pub cpus: usize,
    pub kernel: String,
    pub fio: String,
    pub fathom: String,
    pub binary_bytes: u64,
    /// Processes that wanted a CPU in the last minute, those of the bench included.
    pub load: String,
}

impl Machine {
    pub fn here(fathom: &Path) -> Self {
        let said = |program: &Path, arg: &str| {
            let output = Command::new(program).arg(arg).output().unwrap();
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        };
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
        Self {
            date: said("date".as_ref(), "+%F"),
            processor: model.map_or_else(|| "unknown".to_owned(), |(_, m)| m.trim().to_owned()),
            cpus: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: said("uname".as_ref(), "-sr"),
            fio: said("fio".as_ref(), "--version"),
            fathom: said(fathom, "--version"),
            binary_bytes: fs::metadata(fathom).map_or(0, |meta| meta.len()),
            load: fs::read_to_string("/proc/loadavg")
                .ok()
                .and_then(|text| Some(text.split_whitespace().next()?.to_owned()))
                .unwrap_or_else(|| "unknown".to_owned()),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} × {}, {}, load {}; {}, {} ({:.1} MiB)",
            self.date,
            self.cpus,
            self.processor,
            self.kernel,
            self.load,
            self.fio,
            self.fathom,
            self.binary_bytes as f64 / f64::from(1 << 20),
        )
    }
}
