//! A campaign's folder, and what the tests ask of it.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::ops::Deref;
use std::path::Path;
use std::process::Output;

use fathom_testkit::ProgramUnderTest;
pub use fathom_testkit::{await_that, signal};
use serde_json::Value;

/// A campaign made by `fathom init` with the debug setting.
pub struct Campaign(ProgramUnderTest);

impl Deref for Campaign {
    type Target = ProgramUnderTest;

    fn deref(&self) -> &ProgramUnderTest {
        &self.0
    }
}

impl Campaign {
    /// On `dut`, points up to a depth of `depth_max` that take `runtime`.
    pub fn new(dut: &Path, depth_max: u32, runtime: &str) -> Self {
        let mut program = ProgramUnderTest::new(env!("CARGO_BIN_EXE_fathom"));
        program.set("DEV", dut);
        let campaign = Self(program);
        campaign.good(&["init", "."]);
        campaign.good(&["config", "defconfig", "debug-quick"]);
        let depth = format!("DUT_TEST_MAX_IODEPTH={depth_max}");
        let runtime = format!("DUT_RUNTIME={runtime}");
        campaign.good(&["config", "set", &depth, &runtime, "GUARD=n"]);
        // A busy machine is never steady.
        let easy = [
            "IOPS_WD_SS_MEAN_LIMIT",
            "IOPS_WD_SS_SLOPE",
            "BW_WD_SS_MEAN_LIMIT",
            "BW_WD_SS_SLOPE",
        ];
        let easy = easy.map(|limit| format!("{limit}=100000%"));
        let easy: Vec<&str> = easy.iter().map(String::as_str).collect();
        campaign.good(&[&["config", "set"], &easy[..]].concat());
        campaign
    }

    /// The same on a simulated device.
    pub fn simulated(device: &str) -> Self {
        let campaign = Self::new(Path::new("/dev/nothing"), 4096, "1s");
        let head = "format = \"fathom-sim-device\"\nversion = 1\n";
        fs::write(campaign.path().join("sim.toml"), format!("{head}{device}")).unwrap();
        campaign
    }

    /// The same, with the device as it is: nothing is done to it before.
    pub fn found_as_it_is(self) -> Self {
        self.good(&["config", "set", "STEADY_STATE_PROVISIONING=n"]);
        self
    }

    pub fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    }

    pub fn status(&self) -> Value {
        self.json(&["status", "--json"])
    }

    /// The events of the last record; none while it is still being made.
    pub fn events(&self) -> Vec<Value> {
        let Some(dir) = self.records().pop() else {
            return Vec::new();
        };
        let text = match fs::read_to_string(dir.join("events.jsonl")) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Vec::new(),
            text => text.unwrap(),
        };
        text.lines()
            .skip(1)
            // The last line may just be written, or have been cut by a kill.
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// The points that have ended well, as the record's events tell by themselves.
    pub fn done(&self) -> BTreeSet<String> {
        let mut done = BTreeSet::new();
        let mut open: Option<(String, bool)> = None;
        for event in self.events() {
            let kind = event["event"].as_str().unwrap();
            match (kind, &mut open) {
                ("finished", Some((_, figures))) => *figures = true,
                ("failure", _) => open = None,
                ("step" | "step_ended" | "ended", _) => {
                    let how = [&event["status"], &event["outcome"]];
                    let whole = how.iter().all(|how| *how != "interrupted");
                    if let Some((id, true)) = open.take().filter(|_| whole) {
                        done.insert(id);
                    }
                    // Steps that are no points make the device ready.
                    let id = event["point"]["id"].as_str();
                    open = id.map(|id| (id.to_owned(), false));
                }
                ("resumed", _) => open = None,
                _ => {}
            }
        }
        done
    }
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
