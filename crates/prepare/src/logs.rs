//! Progress logs below `logs/` of a campaign's folder, in the form of fio-tests:
//! `Action|DUT|seconds since 1970|details`. Scripts follow them; Fathom itself
//! never reads them.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::precondition::PreconditionMethod;

/// Writes the logs of one campaign.
#[derive(Debug, Clone)]
pub struct Logs {
    dir: PathBuf,
    dut: PathBuf,
    /// `nvme0n1` of `/dev/nvme0n1`.
    device: String,
    /// Whether the points are measured on a device that was made ready.
    provisioned: bool,
}

impl Logs {
    /// Those of a campaign's folder, for this device under test.
    pub fn new(folder: &Path, dut: &Path) -> Self {
        let device = dut
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Self {
            dir: folder.join("logs"),
            dut: dut.to_owned(),
            device: device.unwrap_or_else(|| "unknown".to_owned()),
            provisioned: false,
        }
    }

    /// For points that are measured on a device that was made ready, or not.
    pub fn provisioned(self, provisioned: bool) -> Self {
        Self {
            provisioned,
            ..self
        }
    }

    /// The run begins, or goes on.
    pub fn start(&self, goes_on: bool) -> io::Result<()> {
        // Whoever waits for END must not find the one of an earlier run.
        match fs::remove_file(self.dir.join("runs/END")) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        if !(goes_on && self.dir.join("runs/START").exists()) {
            self.epoch("START")?;
        }
        let action = if goes_on { "Resume run" } else { "Start run" };
        self.line("runs", action, &[])
    }

    /// The run is over; `whole`: every point of the campaign had its turn.
    pub fn finish(&self, whole: bool, status: &str) -> io::Result<()> {
        self.line("runs", "Finished run", &[status])?;
        match whole {
            true => self.epoch("END"),
            false => Ok(()),
        }
    }

    /// A point begins.
    pub fn start_point(&self, id: &str) -> io::Result<()> {
        self.line(&self.performance(), "Start test", &[id])
    }

    /// A point is over: `OK`, or why it has failed or was left out.
    pub fn finish_point(&self, id: &str, came: &str) -> io::Result<()> {
        self.line(&self.performance(), "Finished test", &[id, came])
    }

    /// A point is left out.
    pub fn skip_point(&self, id: &str, reason: &str) -> io::Result<()> {
        self.line(&self.performance(), "Skipped test", &[id, reason])
    }

    /// The wait until the device is energized begins.
    pub fn start_energizing(&self) -> io::Result<()> {
        self.line("energized", "Energizing", &[])
    }

    /// The device is energized.
    pub fn finish_energizing(&self) -> io::Result<()> {
        self.line("energized", "Energized", &[])
    }

    /// Whether pre-conditioning was left out, and why: the log is there only then.
    pub fn skip_preconditioning(&self, reason: Option<&str>) -> io::Result<()> {
        const LOG: &str = "skip-precon";
        match reason {
            Some(reason) => self.line(LOG, "Skipping preconditioning", &[reason]),
            None => match fs::remove_file(self.dir.join(LOG).join(&self.device)) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => Ok(()),
            },
        }
    }

    /// The device is made ready, by this method.
    pub fn start_provisioning(&self, method: PreconditionMethod) -> io::Result<()> {
        let (log, name) = provisioning(method);
        self.line(log, "Start provisioning", &[name])
    }

    /// The device is ready, or is not.
    pub fn finish_provisioning(&self, method: PreconditionMethod, came: &str) -> io::Result<()> {
        let (log, name) = provisioning(method);
        self.line(log, "Finished provisioning", &[name, came])
    }

    /// The points begin.
    pub fn start_evaluation(&self, points: usize) -> io::Result<()> {
        self.evaluation("Start", points)
    }

    /// The points are over.
    pub fn finish_evaluation(&self, points: usize) -> io::Result<()> {
        self.evaluation("Finished", points)
    }

    fn evaluation(&self, verb: &str, points: usize) -> io::Result<()> {
        let word = self.word();
        let action = format!("{verb} {word} performance evaluation");
        let tests = format!("Number of tests: {points}");
        self.line(&self.performance(), &action, &[&tests])
    }

    fn word(&self) -> &'static str {
        match self.provisioned {
            true => "provisioned",
            false => "unprovisioned",
        }
    }

    fn performance(&self) -> String {
        format!("performance-evaluation/{}", self.word())
    }

    /// A purge begins: the command, as a person would type it, and why.
    pub fn start_purge(&self, command: &str, reason: &str) -> io::Result<()> {
        self.line("purge", "Start purge", &[command, reason])
    }

    /// A purge is over: 0 when the data are gone.
    pub fn finish_purge(&self, code: u32) -> io::Result<()> {
        self.line("purge", "Finished purge", &[&code.to_string()])
    }

    fn epoch(&self, name: &str) -> io::Result<()> {
        let dir = self.dir.join("runs");
        fs::create_dir_all(&dir)?;
        let line = format!("{}\n", now());
        fathom_record::replace(&dir.join(name), |file| file.write_all(line.as_bytes()))
    }

    /// Writes a line to the device's file in the folder `log` of the logs.
    pub fn line(&self, log: &str, action: &str, details: &[&str]) -> io::Result<()> {
        let dir = self.dir.join(log);
        fs::create_dir_all(&dir)?;
        let mut line = format!("{action}|{}|{}", self.dut.display(), now());
        for detail in details {
            line.push('|');
            // A line is a line, and a column a column.
            line.extend(
                detail
                    .chars()
                    .map(|c| if c == '\n' || c == '|' { ' ' } else { c }),
            );
        }
        line.push('\n');
        // A link or a device in this folder is nobody's log.
        let path = fathom_record::destination(&dir.join(&self.device))?;
        let mut file = OpenOptions::new().append(true).create(true).open(path)?;
        file.write_all(line.as_bytes())
    }
}

/// The log of a method, and what it is called there.
pub fn provisioning(method: PreconditionMethod) -> (&'static str, &'static str) {
    match method {
        PreconditionMethod::SantaClara => ("provisioning/santa-clara", "Santa Clara"),
        PreconditionMethod::Snia => ("provisioning/snia/iops", "SNIA IOPS"),
    }
}

fn now() -> u64 {
    fathom_record::now().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_columns_of_fio_tests_and_end_stands_after_a_full_run_only() {
        let folder = tempfile::tempdir().unwrap();
        let logs = Logs::new(folder.path(), Path::new("/dev/loop7"));
        let read = |name: &str| fs::read_to_string(folder.path().join("logs").join(name));
        logs.start(false).unwrap();
        let start: u64 = read("runs/START").unwrap().trim().parse().unwrap();
        logs.start_point("a/b").unwrap();
        logs.finish_point("a/b", "x|y\nz").unwrap();
        logs.finish(false, "interrupted").unwrap();
        assert!(read("runs/END").is_err());
        logs.start(true).unwrap();
        logs.finish(true, "complete").unwrap();
        assert!(read("runs/END").unwrap().trim().parse::<u64>().unwrap() >= start);
        let runs = read("runs/loop7").unwrap();
        let actions: Vec<&str> = runs.lines().map(|l| l.split('|').next().unwrap()).collect();
        assert_eq!(
            actions,
            ["Start run", "Finished run", "Resume run", "Finished run"]
        );
        let points = read("performance-evaluation/unprovisioned/loop7").unwrap();
        let last: Vec<&str> = points.lines().last().unwrap().split('|').collect();
        assert_eq!((last[0], last[1]), ("Finished test", "/dev/loop7"));
        assert_eq!((last[3], last[4], last.len()), ("a/b", "x y z", 5));
        logs.start(false).unwrap();
        assert!(read("runs/END").is_err());
    }
}
