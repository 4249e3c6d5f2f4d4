//! A program under test, in a folder of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

/// A program, and a folder in which it runs and keeps everything: records in
/// `fathom-runs`, its state in `state`, temporary files. Gone when it is dropped.
#[derive(Debug)]
pub struct ProgramUnderTest {
    path: PathBuf,
    dir: TempDir,
    /// What is set, and what is taken away.
    environment: Vec<(OsString, Option<OsString>)>,
}

impl ProgramUnderTest {
    /// The program at `path`, which a test of its crate has as
    /// `env!("CARGO_BIN_EXE_…")`.
    ///
    /// # Panics
    /// When no folder can be made.
    pub fn new(path: &str) -> Self {
        Self::below(path, &std::env::temp_dir())
    }

    /// The same with its folder below another.
    ///
    /// # Panics
    /// When no folder can be made.
    pub fn below(path: &str, parent: &Path) -> Self {
        let dir = TempDir::with_prefix_in("fathom-test-", parent);
        Self {
            path: PathBuf::from(path),
            dir: dir.expect("a temporary folder can be made"),
            environment: Vec::new(),
        }
    }

    /// With a variable in its environment.
    pub fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.environment.push((name.into(), Some(value.into())));
    }

    /// Without a variable of the one who runs the tests.
    pub fn unset(&mut self, name: &str) {
        self.environment.push((name.into(), None));
    }

    /// Its folder.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Writes a file into its folder.
    ///
    /// # Panics
    /// When it cannot be written.
    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::write(&path, text).expect("the folder is ours");
        path
    }

    /// The program with these arguments, with its output to be read.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command
            .args(args)
            .current_dir(self.path())
            // What the one who runs the tests has set must not matter.
            .env_remove("DEV")
            .env_remove("CLICOLOR_FORCE")
            .env("HOME", self.path())
            .env("TMPDIR", self.path())
            .env("XDG_STATE_HOME", self.path().join("state"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    /// Runs it to its end.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn run(&self, args: &[&str]) -> Output {
        let output = self.command(args).output();
        output.expect("the program can be started")
    }

    /// Runs it; it must succeed.
    ///
    /// # Panics
    /// When it does not.
    pub fn good(&self, args: &[&str]) -> Output {
        let output = self.run(args);
        assert!(output.status.success(), "{args:?}: {output:#?}");
        output
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(&self, args: &[&str]) -> Child {
        let child = self.command(args).spawn();
        child.expect("the program can be started")
    }

    /// The folders of its records, oldest first.
    pub fn records(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.path().join("fathom-runs"));
        let entries = entries.into_iter().flatten().flatten();
        let mut records: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        records.sort();
        records
    }
}
