//! A campaign's folder for a test.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The tree that ships.
pub fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../campaigns")
}

/// A folder with the shipped tree, gone when it is dropped.
pub struct Campaign {
    dir: tempfile::TempDir,
}

impl Campaign {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::copy(shipped().join("Kconfig"), dir.path().join("Kconfig")).unwrap();
        fs::create_dir(dir.path().join("kconfig")).unwrap();
        for entry in fs::read_dir(shipped().join("kconfig")).unwrap() {
            let entry = entry.unwrap();
            let to = dir.path().join("kconfig").join(entry.file_name());
            fs::copy(entry.path(), to).unwrap();
        }
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn file(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).unwrap()
    }

    pub fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// `fathom config` in the folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fathom"));
        command.arg("config").args(args).current_dir(self.path());
        command.env_remove("DEV").env("COLUMNS", "100");
        command
    }

    pub fn config(&self, args: &[&str]) -> Output {
        self.command(args).stdin(Stdio::null()).output().unwrap()
    }

    /// The same, with an input from a pipe.
    pub fn answer(&self, args: &[&str], input: &str) -> Output {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // Whoever has ended does not read.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().unwrap()
    }

    /// What a command that must succeed writes to stdout.
    pub fn says(&self, args: &[&str]) -> String {
        let output = self.config(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The exit code of a command that must fail, and what it says.
    pub fn fails(&self, args: &[&str]) -> (i32, String) {
        let output = self.config(args);
        assert!(!output.status.success(), "{args:?}: {output:?}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{args:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        (output.status.code().unwrap(), said)
    }

    pub fn json(&self, args: &[&str]) -> serde_json::Value {
        let mut all = args.to_vec();
        all.push("--json");
        serde_json::from_str(&self.says(&all)).unwrap()
    }
}
