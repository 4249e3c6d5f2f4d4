//! A folder to run in, and what the tests ask of a run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use fathom_testkit::{LoopDevice, SmallFs};
pub use fathom_testkit::{await_that, signal};
use serde_json::Value;
use tempfile::TempDir;

/// Three tests, of which only the second takes its second.
pub const SMALL_GROUP: &str = r#"
format = "fathom-quick-group"
version = 1
name = "small"
size = "2M"
runtime_s = 1
options = ["fallocate=none", "group_reporting", "refill_buffers"]
native_aio = { Linux = "libaio" }
[[series]]
title = "write series"
tests = [
  { name = "2 files, seq 64k writes", files = 2, engine = "sync", depth = 1, bs = "64k", rw = "write", options = ["end_fsync=1"], init = true },
  { name = "2 files, rnd 4k writes", files = 2, engine = "sync", depth = 1, bs = "4k", rw = "randwrite" },
]
[[series]]
title = "native aio series"
tests = [
  { name = "2 files, rnd 4k readwrites, native aio", files = 2, engine = "native aio", depth = 4, bs = "4k", rw = "randrw", init = true },
]
"#;
/// A btrfs of its own.
pub fn btrfs() -> Result<SmallFs, String> {
    let device = LoopDevice::new(256 << 20)?;
    SmallFs::made(device, &["mkfs.btrfs", "-q"], &["-t", "btrfs"])
}

/// The name of its second test.
pub const SECOND: &str = "2 files, rnd 4k writes";

/// A place of its own for a test: current folder, home and XDG folders.
pub struct Place {
    dir: TempDir,
    environment: Vec<(String, String)>,
}

impl Place {
    pub fn new() -> Self {
        let dir = TempDir::with_prefix("fathom-quick-").unwrap();
        fs::create_dir(dir.path().join("home")).unwrap();
        fs::create_dir(dir.path().join("target")).unwrap();
        fs::write(dir.path().join("small.toml"), SMALL_GROUP).unwrap();
        Self {
            dir,
            environment: vec![],
        }
    }

    pub fn set(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The folder that the series is run in.
    pub fn target(&self) -> String {
        self.path().join("target").display().to_string()
    }

    pub fn test_folder(&self) -> PathBuf {
        self.path().join("target/stb-testdir")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let home = self.path().join("home");
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command
            .args(args)
            .current_dir(self.path())
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", home.join("config"))
            .env("XDG_DATA_HOME", home.join("data"))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Ended {
        Ended::of(self.command(args).output().unwrap())
    }

    /// Starts it, to be stopped on its way.
    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Record folders, oldest first.
    pub fn records(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path().join("fathom-runs"));
        let mut records: Vec<PathBuf> = entries
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .collect();
        records.sort();
        records
    }

    /// The whole event log of the only record.
    pub fn log(&self) -> String {
        let records = self.records();
        assert_eq!(records.len(), 1, "{records:?}");
        fs::read_to_string(records[0].join("events.jsonl")).unwrap()
    }

    /// Waits until the second test runs and the log has `event` of it.
    pub fn wait_for_second(&self, event: &str) {
        let log = || fs::read_to_string(self.records().first()?.join("events.jsonl")).ok();
        let has = |log: String| {
            let begun = log.rsplit_once("\"event\":\"step\"");
            begun.is_some_and(|(_, step)| step.contains(SECOND) && step.contains(event))
        };
        await_that(event, || log().is_some_and(has));
    }

    /// Whether a process works in the folder of the test files: fio, and only fio.
    pub fn fio_runs(&self) -> bool {
        let folder = self.test_folder();
        fs::read_dir("/proc").unwrap().any(|entry| {
            let cwd = entry.unwrap().path().join("cwd");
            fs::read_link(cwd).is_ok_and(|cwd| cwd == folder)
        })
    }
}

/// How the program ended.
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    pub fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Ended with this code; both outputs are shown when it did not.
    #[track_caller]
    pub fn code(self, expected: i32) -> Self {
        let Self {
            code,
            stdout,
            stderr,
        } = &self;
        assert_eq!(
            *code,
            Some(expected),
            "stdout:\n{stdout}\nstderr:\n{stderr}"
        );
        self
    }

    #[track_caller]
    pub fn says(self, expected: &str) -> Self {
        assert!(
            self.stdout.contains(expected),
            "{expected:?} in\n{}",
            self.stdout
        );
        self
    }

    #[track_caller]
    pub fn complains(self, expected: &str) -> Self {
        assert!(
            self.stderr.contains(expected),
            "{expected:?} in\n{}",
            self.stderr
        );
        self
    }

    /// The one document on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }

    /// The lines of the series, figures replaced by `N`, times left out.
    pub fn series(&self) -> Vec<String> {
        let until =
            |line: &&str| !line.starts_with("Tests complete") && !line.starts_with("Interrupted");
        let lines = self
            .stdout
            .lines()
            .skip_while(|line| !line.starts_with("Testgroup"));
        lines.take_while(until).map(without_figures).collect()
    }
}

/// `592 write iops` becomes `N write iops`.
fn without_figures(line: &str) -> String {
    let Some((name, figure)) = line.split_once(": ") else {
        return line.to_owned();
    };
    let word = |word: &str| {
        if word.parse::<u64>().is_ok_and(|n| n > 0) {
            "N".into()
        } else {
            word.to_owned()
        }
    };
    let words: Vec<String> = figure.split(' ').map(word).collect();
    format!("{name}: {}", words.join(" "))
}

/// A folder of links to every program of this machine but `without`.
pub fn programs_without(place: &Place, without: &[&str]) -> PathBuf {
    let farm = place.path().join("bin");
    fs::create_dir(&farm).unwrap();
    for dir in ["/usr/bin", "/bin"] {
        for entry in fs::read_dir(dir).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name();
            if !without.iter().any(|gone| name == *gone) {
                // /bin is often /usr/bin: the second link is there already.
                let _ = std::os::unix::fs::symlink(entry.path(), farm.join(name));
            }
        }
    }
    farm
}

/// A program of the test's own among them.
pub fn script(farm: &Path, name: &str, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let path = farm.join(name);
    let _ = fs::remove_file(&path);
    fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}
