//! A device, a folder for records, and the command.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::{Child, Output};

use fathom_testkit::{LoopDevice, ProgramUnderTest, await_that};
use serde_json::Value;

/// Size of the devices.
pub const BYTES: u64 = 64 << 20;

/// Where tests run.
pub struct Place {
    program: ProgramUnderTest,
    pub device: PathBuf,
    bytes: u64,
    _loop: Option<LoopDevice>,
}

impl Deref for Place {
    type Target = ProgramUnderTest;

    fn deref(&self) -> &ProgramUnderTest {
        &self.program
    }
}

impl Place {
    /// A loop device of its own.
    pub fn new() -> Result<Self, String> {
        let device = LoopDevice::new(BYTES)?;
        let path = device.path().to_owned();
        let mut place = Self::on(&path, BYTES);
        place._loop = Some(device);
        Ok(place)
    }

    /// That device, of so many bytes.
    pub fn on(device: &Path, bytes: u64) -> Self {
        Self {
            program: ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom")),
            device: device.to_owned(),
            bytes,
            _loop: None,
        }
    }

    /// The words that allow it.
    pub fn words(&self) -> String {
        format!("{}={}", self.device.display(), self.bytes)
    }

    /// A test with the debug settings, as short as it can be.
    pub fn args<'a>(&'a self, test: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        let device = self.device.to_str().unwrap();
        let mut args = vec!["snia", test, device, "--debug", "--cell", "100ms", "-q"];
        // Where it is given, another one counts; two tests have none.
        let has_one = ["latency", "wsat"].contains(&test);
        if has_one && !more.contains(&"--histogram") {
            args.extend(["--histogram", "200ms"]);
        }
        args.push("--json");
        // A busy machine is never steady in tenths of a second.
        args.extend(["--data-limit", "1000", "--slope-limit", "1000"]);
        args.extend(more);
        args
    }

    /// Starts one and waits until this stage has begun.
    pub fn start_until(&self, args: &[&str], stage: &str) -> Child {
        let child = self.program.start(args);
        let wanted = format!("\"id\":\"{stage}\"");
        await_that(stage, || self.events().contains(&wanted));
        child
    }

    /// The last record's events.
    pub fn events(&self) -> String {
        let last = self.program.records().pop();
        let events = last.map(|dir| fs::read_to_string(dir.join("events.jsonl")));
        events.and_then(Result::ok).unwrap_or_default()
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(output)))
}
