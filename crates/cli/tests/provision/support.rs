//! A campaign's folder and drives to provision from it.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Output;

use fathom_testkit::{LoopDevice, ProgramUnderTest, Zram};
pub use fathom_testkit::{await_that, signal};
use serde_json::Value;

/// Size of a drive of the tests.
pub const DRIVE_BYTES: u64 = 32 << 20;

/// A campaign with the debug settings, and a home for ledgers.
pub struct Lab(ProgramUnderTest);

impl Deref for Lab {
    type Target = ProgramUnderTest;

    fn deref(&self) -> &ProgramUnderTest {
        &self.0
    }
}

impl Lab {
    pub fn new() -> Self {
        let lab = Self(ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom")));
        lab.good(&["init", "."]);
        lab.good(&["config", "defconfig", "debug-quick"]);
        lab
    }

    /// For drives of this machine, which has other work: little to do, limits that
    /// everything keeps, and time to get there.
    pub fn gentle(&self) {
        let mut symbols = vec![
            "PURGING=y".to_owned(),
            "PURGE_SAMPLES=64".to_owned(),
            "SANTA_CLARA_ROUND_LIMIT=30".to_owned(),
            "PRECONDITION_NUMJOBS=1".to_owned(),
            "PRECONDITION_IODEPTH=2".to_owned(),
        ];
        for metric in ["IOPS", "BW"] {
            symbols.push(format!("{metric}_WD_SS_MEAN_LIMIT=100000%"));
            symbols.push(format!("{metric}_WD_SS_SLOPE=100000%"));
        }
        self.set(&symbols);
    }

    /// Fills of `range`, and windows of `window`.
    pub fn sizes(&self, range: &str, window: &str) {
        let mut symbols = vec![format!("DUT_IOSIZE={range}")];
        for metric in ["IOPS", "BW"] {
            for limit in ["MEAN_LIMIT", "SLOPE"] {
                symbols.push(format!("{metric}_WD_SS_{limit}_DUR={window}"));
            }
        }
        self.set(&symbols);
    }

    pub fn set(&self, symbols: &[String]) {
        let symbols = symbols.iter().map(String::as_str);
        self.good(
            &["config", "set"]
                .into_iter()
                .chain(symbols)
                .collect::<Vec<_>>(),
        );
    }

    /// For simulated drives that need minutes of their own time, as this file
    /// describes them.
    pub fn simulated(&self, name: &str, device: &str) {
        let head = "format = \"fathom-sim-device\"\nversion = 1\n";
        fs::write(self.path().join(name), format!("{head}{device}")).unwrap();
    }

    /// The document that a command printed, with its exit code.
    pub fn json(&self, args: &[&str]) -> (Value, Option<i32>) {
        let output = self.run(args);
        let document = serde_json::from_slice(&output.stdout);
        let document = document.unwrap_or_else(|e| panic!("{args:?}: {e}: {output:#?}"));
        (document, output.status.code())
    }

    /// The records, oldest first. A folder that a kill has left without a header is
    /// none.
    pub fn records(&self) -> Vec<PathBuf> {
        let mut records = self.0.records();
        let has_header = |dir: &PathBuf| {
            let log = fs::read_to_string(dir.join("events.jsonl"));
            log.is_ok_and(|log| log.contains('\n'))
        };
        records.retain(has_header);
        records
    }

    /// The events of all records so far, by the kind that is asked for.
    pub fn count(&self, event: &str) -> usize {
        let records = self.records().into_iter();
        records.map(|dir| self.count_in(&dir, event)).sum()
    }

    /// The same of one record.
    pub fn count_in(&self, record: &Path, event: &str) -> usize {
        let text = fs::read_to_string(record.join("events.jsonl")).unwrap_or_default();
        text.matches(&format!("\"event\":\"{event}\"")).count()
    }

    /// The actions in a log below `logs/`.
    pub fn actions(&self, log: &str) -> Vec<String> {
        let text = fs::read_to_string(self.path().join("logs").join(log)).unwrap_or_default();
        let action = |line: &str| line.split('|').next().unwrap_or_default().to_owned();
        text.lines().map(action).collect()
    }
}

/// Drives of the machine, one half of them of memory.
pub struct Drives {
    loops: Vec<LoopDevice>,
    zrams: Vec<Zram>,
}

impl Drives {
    pub fn new(count: usize) -> Result<Self, String> {
        let zrams = (0..count / 2).map(|_| Zram::new(DRIVE_BYTES));
        let loops = (count / 2..count).map(|_| LoopDevice::new(DRIVE_BYTES));
        Ok(Self {
            zrams: zrams.collect::<Result<_, _>>()?,
            loops: loops.collect::<Result<_, _>>()?,
        })
    }

    pub fn paths(&self) -> Vec<String> {
        let loops = self.loops.iter().map(LoopDevice::path);
        let all = self.zrams.iter().map(Zram::path).chain(loops);
        all.map(|path| path.to_str().unwrap().to_owned()).collect()
    }

    /// `provision` of all of them, confirmed.
    pub fn args(&self) -> Vec<String> {
        let mut args = vec!["provision".to_owned()];
        args.extend(self.paths());
        for path in self.paths() {
            args.extend(["--destroy".to_owned(), format!("{path}=32MiB")]);
        }
        args
    }
}

/// Words behind others.
pub fn with<'a>(args: &'a [String], more: &[&'a str]) -> Vec<&'a str> {
    args.iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
