//! The plan in a record's folder: what there is to do, for those who only read the record.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_model::DevicePhase;
use fathom_model::{Point, Stage};
use fathom_record::{Header, RecordError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::RunError;
use crate::{Case, History, JobStep, Script, Task, Work, outlook};

/// Its name.
pub const PLAN_FILE: &str = "plan.jsonl";
/// What its first line says.
const FORMAT: &str = "fathom-campaign-plan";
/// The version that is written, and the highest that is read.
const VERSION: u32 = 2;

/// First line of [`PLAN_FILE`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    format: String,
    version: u32,
    /// The campaign's folder; empty: the run is not one of a campaign.
    pub folder: PathBuf,
    /// The device (or file) under test.
    pub dut: PathBuf,
    /// The engine: `fio`, `native`, `sim`.
    pub engine: String,
    /// Whether steps were left out on purpose (`--only`).
    pub partial: bool,
    /// The flags of the command line that made the plan, so that `resume` makes
    /// the same one.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub flags: Value,
}

impl Head {
    /// What the plan in a record's folder says of itself; `None`: there is none,
    /// because the run was killed as it began.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(dir: &Path) -> Result<Option<Self>, RunError> {
        let read = || -> io::Result<Self> {
            let mut line = String::new();
            BufReader::new(File::open(dir.join(PLAN_FILE))?).read_line(&mut line)?;
            Ok(serde_json::from_str(&line)?)
        };
        match read() {
            Ok(head) => Ok(Some(head)),
            Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(RunError::Record(RecordError::File {
                path: dir.join(PLAN_FILE),
                source,
            })),
        }
    }
}

/// A line for each stage that makes the device ready, before the steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlannedStage {
    /// The stage.
    pub stage: Stage,
    /// Bytes that it writes, where that is known.
    pub write_bytes: Option<u64>,
    /// The least time it takes, in ms; of a fill 0, it goes by the device's speed.
    pub least_ms: u64,
    /// The most time it takes, in ms, where that is known.
    pub most_ms: Option<u64>,
}

impl PlannedStage {
    /// What a task will do.
    pub fn of(task: &Task) -> Self {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            stage: task.stage.clone(),
            write_bytes: match &task.work {
                Work::Fill(fill) => fill.bytes,
                _ => None,
            },
            least_ms: ms(task.work.least_time()),
            most_ms: task.work.time(Case::Worst, None).map(ms),
        }
    }
}

/// Every other line: a step.
#[derive(Debug, Serialize)]
pub struct StepLine<'p> {
    /// Its number, where it measures no point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// What it measures.
    pub point: Cow<'p, Point>,
    /// Its job file, in the campaign's folder or the record's.
    pub job_file: &'p Path,
    /// What the device is led to before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<DevicePhase>,
    /// How long it takes, in ms, where its jobs say so.
    pub duration_ms: Option<u64>,
    /// The most it writes, in bytes, where its jobs say so.
    pub write_bytes: Option<u64>,
    /// Whether it may be left out for what others came to.
    pub guarded: bool,
}

impl<'p> StepLine<'p> {
    /// Of a step that is the `nth` of its name.
    fn of_job(step: &'p JobStep, nth: u32) -> Self {
        let (number, point) = match &step.point {
            Some(point) => (None, Cow::Borrowed(point)),
            None => (Some(step.number), Cow::Owned(unnamed(&step.name, nth))),
        };
        Self {
            step: number,
            point,
            job_file: &step.job_file,
            phase: None,
            duration_ms: step.load.duration.map(|time| time.as_millis() as u64),
            write_bytes: step.load.write_bytes,
            guarded: false,
        }
    }
}

/// A step that measures no point of a curve, as one by its name.
pub fn unnamed(name: &str, repetition: u32) -> Point {
    Point {
        id: name.to_owned(),
        series: String::new(),
        x: String::new(),
        settings: BTreeMap::new(),
        repetition,
    }
}

/// A step, as far as its progress is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedStep {
    /// The point.
    pub id: String,
    /// Which measurement of it.
    pub repetition: u32,
    /// Ramp and run time in ms, where they are known.
    pub duration_ms: Option<u64>,
    /// Its number, where it measures no point.
    pub step: Option<u32>,
}

/// Writes the plan of a flow: its stages, and its steps.
///
/// # Errors
/// When it cannot be written.
pub fn write_flow(
    dir: &Path,
    head: &Head,
    history: &History,
    script: &dyn Script,
) -> io::Result<()> {
    let is_step = |task: &Task| matches!(task.work, Work::Job(_));
    let left = outlook(script, &history.resumed(), Case::Best).0;
    let stages = stages(history, left.into_iter().filter(|task| !is_step(task)));
    let all = outlook(script, &History::default(), Case::Best).0;
    let mut names: BTreeMap<&str, u32> = BTreeMap::new();
    let steps = all.iter().filter_map(|task| match &task.work {
        Work::Job(step) => {
            let nth = names.entry(&step.name).or_default();
            *nth += 1;
            Some(StepLine::of_job(step, *nth))
        }
        _ => None,
    });
    write_lines(dir, head, &stages, steps)
}

impl Head {
    /// Of a run that is not one of a campaign.
    pub fn of_flow(dut: &Path, engine: &str, flags: Value) -> Self {
        Self {
            flags,
            ..Self::new(Path::new(""), dut, engine)
        }
    }

    /// What there is to say of a plan.
    pub fn new(folder: &Path, dut: &Path, engine: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            folder: folder.to_owned(),
            dut: dut.to_owned(),
            engine: engine.to_owned(),
            partial: false,
            flags: Value::Null,
        }
    }

    /// Of a record without a plan: of what its header says, and before its engine
    /// has told its name.
    pub fn of_record(header: &Header) -> Self {
        let targets = header.environment.iter().flat_map(|it| &it.targets);
        let paths = targets.map(|target| target.path.display().to_string());
        let dut = paths.collect::<Vec<_>>().join(", ");
        Self::new(Path::new(""), Path::new(&dut), "")
    }
}

/// Writes a plan in place of an earlier one.
///
/// # Errors
/// When it cannot be written.
pub fn write_lines<'p>(
    dir: &Path,
    head: &Head,
    stages: &[PlannedStage],
    steps: impl Iterator<Item = StepLine<'p>>,
) -> io::Result<()> {
    let fresh = dir.join(".plan.jsonl");
    let mut file = BufWriter::new(File::create(&fresh)?);
    push(&mut file, head)?;
    for stage in stages {
        push(&mut file, stage)?;
    }
    for step in steps {
        push(&mut file, &step)?;
    }
    file.into_inner()?.sync_data()?;
    fs::rename(fresh, dir.join(PLAN_FILE))
}

/// The stages that have ended, and those that are left.
pub fn stages(history: &History, left: impl Iterator<Item = Task>) -> Vec<PlannedStage> {
    let history = history.resumed();
    let ended = history.stages().iter().filter(|past| past.end.is_some());
    let mut all: Vec<PlannedStage> = ended
        .map(|past| PlannedStage {
            stage: past.stage.clone(),
            write_bytes: None,
            least_ms: 0,
            most_ms: None,
        })
        .collect();
    all.extend(left.map(|task| PlannedStage::of(&task)));
    all
}

fn push(file: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}

/// Reads the plan of a record's folder.
///
/// # Errors
/// When there is none, or it is not one of this version.
pub fn read(dir: &Path) -> io::Result<(Head, Vec<PlannedStage>, Vec<PlannedStep>)> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum ReadPlan {
        Stage(PlannedStage),
        Step {
            point: Point,
            duration_ms: Option<u64>,
            step: Option<u32>,
        },
    }
    let mut lines = BufReader::new(File::open(dir.join(PLAN_FILE))?).lines();
    let first = lines.next().transpose()?.unwrap_or_default();
    let head: Head = serde_json::from_str(&first)?;
    if head.format != FORMAT || head.version > VERSION {
        let what = format!("{} version {}", head.format, head.version);
        return Err(io::Error::other(format!("it is of format {what}")));
    }
    let (mut stages, mut steps) = (Vec::new(), Vec::new());
    for line in lines {
        match serde_json::from_str(&line?)? {
            ReadPlan::Stage(stage) => stages.push(stage),
            ReadPlan::Step {
                point,
                duration_ms,
                step,
            } => steps.push(PlannedStep {
                id: point.id,
                repetition: point.repetition,
                duration_ms,
                step,
            }),
        }
    }
    Ok((head, stages, steps))
}
