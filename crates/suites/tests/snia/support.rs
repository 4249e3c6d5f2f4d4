//! A test on a simulated device.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use fathom_analysis::snia::{DriveClass, Findings, RoundCollector, Setup, SniaTest, find};
use fathom_engine::Control;
use fathom_engines::EngineName;
use fathom_flow::ledger::Ledgers;
use fathom_flow::{Act, ActionContext, ActionResult, Finish, Flow, KeptPlan, RunOptions};
use fathom_model::{Event, StageEnd};
use fathom_record::Record;
use fathom_suites::snia::{FACTS, Snia, SniaChoices};
use serde_json::Map;
use tempfile::TempDir;

/// Bytes of the simulated device.
pub const CAPACITY: u64 = 1 << 30;
/// Cells of ten seconds; a round of nine takes a minute and a half.
pub const CELL: Duration = Duration::from_secs(10);

/// The test with nine cells a round, which have all tracked variables.
pub fn wanted() -> SniaChoices {
    SniaChoices {
        mixes: Some("100/0,65/35,0/100".into()),
        blocks: Some("1024k,64k,4k".into()),
        cell: Some(CELL),
        histogram: Some(CELL),
        interval: Some(Duration::from_secs(1)),
        stop: Some(Duration::from_secs(600)),
        ..SniaChoices::default()
    }
}

pub fn setup(test: SniaTest, wanted: &SniaChoices) -> Setup {
    wanted
        .setup(test, DriveClass::Enterprise, CAPACITY)
        .unwrap()
}

/// A purge of which nothing but its being there matters.
#[derive(Debug)]
struct Nothing;

impl Act for Nothing {
    fn commands(&self) -> Vec<String> {
        vec!["# nothing".into()]
    }

    fn run(&self, _: &mut ActionContext<'_>) -> ActionResult {
        ActionResult::Ended {
            end: StageEnd::Done,
            deed: None,
        }
    }
}

pub fn script(setup: Setup) -> Snia {
    Snia {
        setup,
        dut: "/dev/nothing".into(),
        ioengine: "libaio".into(),
        start: Rc::new(Nothing),
    }
}

/// A folder with records, and a simulated device without noise.
pub struct Place {
    dir: Rc<TempDir>,
}

impl Place {
    pub fn new(device: &str) -> Self {
        // In memory where there is such a place: a record syncs at every step.
        let memory = Path::new("/dev/shm");
        let dir = match memory.is_dir() {
            true => TempDir::with_prefix_in("fathom-snia-", memory),
            false => TempDir::with_prefix("fathom-snia-"),
        };
        let dir = dir.unwrap();
        let head = "format = \"fathom-sim-device\"\nversion = 1\nnoise_percent = 0\n";
        std::fs::write(dir.path().join("device.toml"), format!("{head}{device}")).unwrap();
        Self { dir: Rc::new(dir) }
    }

    fn flow<'f>(&self, script: &'f Snia, record: Option<PathBuf>) -> Flow<'f> {
        let mut facts = Map::new();
        facts.insert(FACTS.to_owned(), script.facts());
        Flow {
            script,
            command: "snia test",
            name: "snia",
            device: Some("/dev/nothing".into()),
            work_dir: "/".into(),
            options: RunOptions {
                engine: Some(EngineName::Sim),
                sim: vec![self.dir.path().join("device.toml")],
                ..RunOptions::default()
            },
            kept: KeptPlan::Tasks,
            engine_needs: Vec::new(),
            interval: Duration::from_millis(script.setup.interval_ms),
            runs_dir: self.dir.path().join("runs"),
            record,
            ledgers: Ledgers::none(),
            facts,
        }
    }

    /// Runs it to its end.
    pub fn run(&self, script: &Snia) -> Ran {
        self.go_on(script, None, &Control::default(), &mut |_| {})
    }

    pub fn go_on(
        &self,
        script: &Snia,
        record: Option<PathBuf>,
        control: &Control,
        observer: &mut dyn FnMut(&Event),
    ) -> Ran {
        let ready = self.flow(script, record).look().unwrap();
        let finish = ready.run(control, &mut |_| {}, observer).unwrap();
        Ran {
            setup: script.setup.clone(),
            finish,
            _dir: Rc::clone(&self.dir),
        }
    }
}

pub struct Ran {
    setup: Setup,
    pub finish: Finish,
    _dir: Rc<TempDir>,
}

impl Ran {
    pub fn events(&self) -> Vec<Event> {
        let record = Record::open(&self.finish.dir).unwrap();
        record
            .entries
            .into_iter()
            .map(|entry| entry.event)
            .collect()
    }

    /// What its record tells, judged again.
    pub fn findings(&self) -> Findings {
        let mut collector = RoundCollector::new(self.setup.clone());
        for event in self.events() {
            collector.take(&event);
        }
        find(&collector)
    }

    /// Ids of the stages in the order of their begins.
    pub fn stages(&self) -> Vec<String> {
        let stages = self.events().into_iter().filter_map(|event| match event {
            Event::Stage { stage } => Some(stage.id),
            _ => None,
        });
        stages.collect()
    }
}
