//! The plan of a campaign in its record's folder: what there is to do, for
//! those who only read the record.

use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fathom_model::{Point, Stage};
use fathom_record::RecordError;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Ready, RunError};
use crate::flow::{Luck, Work};
use crate::plan::{Phase, Plan};

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
    /// The campaign's folder.
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

/// Every other line: a step.
#[derive(Debug, Serialize)]
struct Line<'p> {
    point: &'p Point,
    job_file: &'p Path,
    phase: Phase,
    duration_ms: Option<u64>,
    write_bytes: Option<u64>,
    guarded: bool,
}

/// A step, as far as its progress is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planned {
    /// The point.
    pub id: String,
    /// Which measurement of it.
    pub repetition: u32,
    /// Ramp and run time in ms, where they are known.
    pub duration_ms: Option<u64>,
}

/// Writes the plan into a record's folder, in place of an earlier one.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write(dir: &Path, ready: &Ready, plan: &Plan) -> io::Result<()> {
    let engine = ready.selected.engine().name();
    let (partial, flags) = (ready.options.partial, ready.options.flags.clone());
    let head = Head::of(plan, &ready.folder, engine, partial, flags);
    write_lines(dir, &head, &stages(ready), plan)
}

impl Head {
    /// What there is to say of a plan.
    pub(super) fn of(
        plan: &Plan,
        folder: &Path,
        engine: &str,
        partial: bool,
        flags: Value,
    ) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            folder: folder.to_owned(),
            dut: plan.dut.clone(),
            engine: engine.to_owned(),
            partial,
            flags,
        }
    }
}

/// As [`write()`], of a plan whose stages are known.
///
/// # Errors
/// When it cannot be written.
pub(super) fn write_lines(
    dir: &Path,
    head: &Head,
    stages: &[PlannedStage],
    plan: &Plan,
) -> io::Result<()> {
    let fresh = dir.join(".plan.jsonl");
    let mut file = BufWriter::new(File::create(&fresh)?);
    push(&mut file, head)?;
    for stage in stages {
        push(&mut file, stage)?;
    }
    for step in &plan.steps {
        let line = Line {
            point: &step.point,
            job_file: &step.job_file,
            phase: step.phase,
            duration_ms: step.duration.map(|time| time.as_millis() as u64),
            write_bytes: step.write_bytes,
            guarded: step.guarded,
        };
        push(&mut file, &line)?;
    }
    file.into_inner()?.sync_data()?;
    fs::rename(fresh, dir.join(PLAN_FILE))
}

/// The stages that have ended, and those that are left.
fn stages(ready: &Ready) -> Vec<PlannedStage> {
    let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let history = ready.history.resumed();
    let ended = history.stages().iter().filter(|past| past.end.is_some());
    let mut all: Vec<PlannedStage> = ended
        .map(|past| PlannedStage {
            stage: past.stage.clone(),
            write_bytes: None,
            least_ms: 0,
            most_ms: None,
        })
        .collect();
    all.extend(
        ready
            .stages(Luck::Best)
            .into_iter()
            .map(|(_, task)| PlannedStage {
                write_bytes: match &task.work {
                    Work::Fill(fill) => fill.bytes,
                    _ => None,
                },
                least_ms: ms(task.work.least_time()),
                most_ms: task.work.time(Luck::Worst, None).map(ms),
                stage: task.stage,
            }),
    );
    all
}

fn push(file: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *file, line)?;
    file.write_all(b"\n")
}

/// Reads the plan of a record's folder.
///
/// # Errors
/// When there is none, or it is none of this version.
pub(super) fn read(dir: &Path) -> io::Result<(Head, Vec<PlannedStage>, Vec<Planned>)> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Read {
        Stage(PlannedStage),
        Step {
            point: Point,
            duration_ms: Option<u64>,
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
            Read::Stage(stage) => stages.push(stage),
            Read::Step { point, duration_ms } => steps.push(Planned {
                id: point.id,
                repetition: point.repetition,
                duration_ms,
            }),
        }
    }
    Ok((head, stages, steps))
}
