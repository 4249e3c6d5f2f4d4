//! What the native engine promises, proven: beside fio, and under faults.

mod beside_fio;
mod faults;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder to run in, on a disk: /tmp may be a tmpfs, which knows no `O_DIRECT`.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::with_prefix_in("proof-", env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a job file.
    pub(crate) fn job(&self, text: &str) -> PathBuf {
        let path = self.path().join("job.fio");
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `fathom job run -q job.fio`, with `options`, started by `under`: a command
    /// that takes a program and its arguments.
    pub(crate) fn command(&self, under: &[String], options: &[&str]) -> Command {
        let mut words = under.to_vec();
        words.push(env!("CARGO_BIN_EXE_fathom").to_owned());
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .args(["job", "run", "-q", "job.fio"])
            .args(options)
            .current_dir(self.path())
            .env("HOME", self.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, under: &[String], options: &[&str]) -> Output {
        self.command(under, options).output().unwrap()
    }

    /// The folders of its records, oldest first.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let runs = std::fs::read_dir(self.path().join("fathom-runs"));
        let runs = runs.into_iter().flatten().flatten();
        let mut runs: Vec<PathBuf> = runs.map(|entry| entry.path()).collect();
        runs.sort();
        runs
    }

    /// That the last run says what to do.
    pub(crate) fn advises(&self, advice: &str) {
        let mut show = Command::new(env!("CARGO_BIN_EXE_fathom"));
        let shown = show.arg("show").current_dir(self.path()).output().unwrap();
        let said = String::from_utf8_lossy(&shown.stdout).into_owned() + &stderr(&shown);
        assert!(
            said.contains(&format!("to do: {advice}")),
            "{advice}: {said}"
        );
    }

    /// The document of a run on an engine and its exit code.
    pub(crate) fn document(&self, under: &[String], options: &[&str]) -> (Value, i32) {
        document(&self.run(under, &[&["--json"], options].concat()))
    }
}

pub(crate) fn document(output: &Output) -> (Value, i32) {
    let document = serde_json::from_slice(&output.stdout);
    let document = document.unwrap_or_else(|e| panic!("{e}: {output:?}"));
    (document, output.status.code().unwrap())
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
