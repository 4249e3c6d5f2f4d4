//! A small flow, and devices for it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_analysis::steady_state::{Ask, Metric, RoundSpan, WindowRule};
use fathom_engine::Control;
use fathom_engines::EngineName;
use fathom_flow::ledger::Ledgers;
use fathom_flow::{
    Criterion, Ending, Fill, Finish, Flow, History, KeptPlan, Next, RoundPoint, RunOptions, Script,
    SteadyLoad, Task, Work,
};
use fathom_model::{Event, Pattern, Point, Stage, StageEnd, StageKind};
use fathom_record::Record;
use serde_json::Map;
use tempfile::TempDir;

/// Fills once, settles, then measures two rounds of one cell.
pub struct Small {
    pub rule: WindowRule,
    pub metrics: Vec<Metric>,
    /// Longest time of the settling, in s.
    pub limit_s: u64,
    /// Whether it goes on to the rounds when steady state was not attained.
    pub soft: bool,
}

impl Default for Small {
    fn default() -> Self {
        Self {
            rule: fio_rule(60),
            metrics: vec![Metric::Iops, Metric::Bandwidth],
            limit_s: 300,
            soft: false,
        }
    }
}

/// fio's rule with fio-tests' limits over so many seconds.
pub fn fio_rule(window: usize) -> WindowRule {
    WindowRule::Fio {
        mean_limit_percent: Some(20.0),
        slope_limit_percent: Some(10.0),
        window,
    }
}

pub fn stage(id: &str, kind: StageKind, round: Option<u32>) -> Stage {
    Stage {
        id: id.into(),
        kind,
        title: format!("the stage {id}"),
        round,
    }
}

impl Small {
    fn fill() -> Work {
        Work::Fill(Fill {
            job_text: "[fill]\nrw=write\nbs=128k\nsize=8g\niodepth=32\n".into(),
            pattern: Pattern::Sequential,
            bs_bytes: 128 << 10,
            range_percent: 100.0,
            bytes: Some(8 << 30),
        })
    }

    fn settle(&self) -> Work {
        let limit = self.limit_s;
        Work::Settle(SteadyLoad {
            job_text: format!(
                "[settle]\nrw=randwrite\nbs=4k\niodepth=32\ntime_based\nsize=8g\nruntime={limit}\n"
            ),
            pattern: Pattern::Random,
            bs_bytes: 4096,
            range_percent: 100.0,
            criteria: vec![Criterion {
                rule: self.rule,
                ask: Ask {
                    span: RoundSpan::Interval,
                    ..Ask::of(self.metrics.clone())
                },
            }],
            interval: None,
            least: Duration::from_secs(60),
            most: Duration::from_secs(limit),
        })
    }

    fn round(n: u32) -> Work {
        Work::Cells(vec![RoundPoint {
            point: Point {
                id: "cell".into(),
                series: "round".into(),
                x: "bs".into(),
                settings: [("bs".to_owned(), "4k".to_owned())].into(),
                repetition: n,
            },
            job_text: "[cell]\nrw=randread\nbs=4k\ntime_based\nsize=8g\nruntime=10\n".into(),
            time: Duration::from_secs(10),
            write_share: 0.0,
        }])
    }
}

impl Script for Small {
    fn next(&self, history: &History) -> Next {
        let stages = [
            (stage("fill", StageKind::Fill, None), Self::fill()),
            (stage("settle", StageKind::Settle, None), self.settle()),
            (stage("round-1", StageKind::Round, Some(1)), Self::round(1)),
            (stage("round-2", StageKind::Round, Some(2)), Self::round(2)),
        ];
        for (stage, work) in stages {
            match history.ended(&stage.id) {
                None => return Next::Do(Task { stage, work }),
                Some(StageEnd::NotAttained { reason }) if !self.soft => {
                    return Next::End(Ending::NotAttained(reason.clone()));
                }
                Some(StageEnd::Failed { reason }) => {
                    return Next::End(Ending::Failed(reason.clone()));
                }
                Some(_) => {}
            }
        }
        Next::End(Ending::Complete)
    }
}

/// A folder with records, and a simulated device.
pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new(device: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let head = "format = \"fathom-sim-device\"\nversion = 1\n";
        std::fs::write(dir.path().join("device.toml"), format!("{head}{device}")).unwrap();
        Self { dir }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    pub fn flow<'f>(&self, script: &'f dyn Script, record: Option<PathBuf>) -> Flow<'f> {
        Flow {
            script,
            command: "test",
            name: "small",
            device: Some("/dev/none".into()),
            work_dir: "/".into(),
            options: RunOptions {
                engine: Some(EngineName::Sim),
                sim: vec![self.path().join("device.toml")],
                ..RunOptions::default()
            },
            kept: KeptPlan::Tasks,
            engine_needs: Vec::new(),
            interval: Duration::from_secs(1),
            runs_dir: self.path().join("runs"),
            record,
            ledgers: Ledgers::none(),
            facts: Map::new(),
        }
    }

    /// Runs it to its end.
    pub fn run(&self, script: &dyn Script) -> Ran {
        self.go_on(script, None, &Control::default(), &mut |_| {})
    }

    pub fn go_on(
        &self,
        script: &dyn Script,
        record: Option<PathBuf>,
        control: &Control,
        observer: &mut dyn FnMut(&Event),
    ) -> Ran {
        let ready = self.flow(script, record).look().unwrap();
        let finish = ready.run(control, &mut |_| {}, observer).unwrap();
        Ran { finish }
    }
}

pub struct Ran {
    pub finish: Finish,
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

    /// Ids of the stages that begin, in order, with how they end.
    pub fn stages(&self) -> Vec<(String, Option<StageEnd>)> {
        let mut stages: Vec<(String, Option<StageEnd>)> = Vec::new();
        for event in self.events() {
            match event {
                Event::Stage { stage } => stages.push((stage.id, None)),
                Event::StageEnded { id, end } => {
                    let last = stages.last_mut().unwrap();
                    assert_eq!(last.0, id);
                    last.1 = Some(end);
                }
                _ => {}
            }
        }
        stages
    }

    pub fn history(&self) -> History {
        let mut history = History::default();
        for event in self.events() {
            history.take(&event);
        }
        history
    }
}
