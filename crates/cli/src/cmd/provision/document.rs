//! What came of all drives, as one document: `fathom.provision/1`.

use std::path::Path;

use fathom_analysis::steady_state::{Metric, SteadyVerdict};
use fathom_flow::{Ending, Past};
use fathom_model::ledger::Pattern;
use fathom_model::{RunStatus, StageEnd, StageKind};
use fathom_prepare::precondition::PreconditionMethod;
use fathom_prepare::provision::{self, DriveJob, DriveOutcome, Skipped};
use serde::Serialize;

use super::ask::ProvisionRequest;

/// All drives of a batch.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct Document {
    /// `fathom.provision/1`
    pub schema: &'static str,
    /// `complete` when every drive is; else `failed` when one has failed, else
    /// `interrupted`.
    pub status: RunStatus,
    /// `seq`, `random` or `mixed`.
    pub workload: String,
    /// `sc` or `snia`.
    pub method: PreconditionMethod,
    /// The engine that was asked for.
    pub engine: String,
    /// Bytes written by all drives.
    pub written_bytes: u64,
    /// The longest time of a drive, in ms.
    pub took_ms: u64,
    pub drives: Vec<DriveEntry>,
    /// Drives that are left alone.
    pub skipped: Vec<SkippedEntry>,
}

/// One drive.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct DriveEntry {
    pub path: String,
    pub name: String,
    pub model: Option<String>,
    pub serial: Option<String>,
    pub capacity_bytes: Option<u64>,
    /// The load for which it is to be steady.
    pub workload: Pattern,
    /// Name of its record.
    pub run: Option<String>,
    /// `complete`, `interrupted` or `failed`.
    pub status: RunStatus,
    /// Whether it is in the wanted state; null: nobody looked.
    pub steady: Option<bool>,
    /// Why it is not.
    pub reason: Option<String>,
    pub written_bytes: u64,
    pub took_ms: u64,
    pub stages: Vec<StageEntry>,
}

/// One stage of it.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct StageEntry {
    pub id: String,
    pub kind: StageKind,
    pub title: String,
    /// `done`, `skipped`, `not_attained`, `failed`; null: it was interrupted.
    pub end: Option<&'static str>,
    pub reason: Option<String>,
    /// How often it was begun.
    pub attempts: u32,
    pub took_ms: u64,
    pub written_bytes: u64,
    /// How steady it was: one for each metric and rule.
    pub verdicts: Vec<VerdictEntry>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct VerdictEntry {
    pub metric: Metric,
    #[serde(flatten)]
    pub verdict: SteadyVerdict,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct SkippedEntry {
    pub path: String,
    pub reasons: Vec<String>,
}

impl Document {
    /// From the records of the drives, and from what came of those that were
    /// started now.
    pub fn of(asked: &ProvisionRequest, came: &[(usize, DriveOutcome)]) -> anyhow::Result<Self> {
        let provision = &asked.provision;
        let mut drives = Vec::new();
        for (place, one) in provision.drives.iter().enumerate() {
            let came = came.iter().find(|(of, _)| *of == place);
            drives.push(drive(asked, one, came.map(|(_, came)| came))?);
        }
        let status = |wanted| drives.iter().any(|drive| drive.status == wanted);
        Ok(Self {
            schema: "fathom.provision/1",
            status: match () {
                () if status(RunStatus::Failed) => RunStatus::Failed,
                () if status(RunStatus::Interrupted) => RunStatus::Interrupted,
                () => RunStatus::Complete,
            },
            workload: provision.how.workload.to_string(),
            method: provision.how.method,
            engine: provision.how.options.engine().name().to_owned(),
            written_bytes: drives.iter().map(|drive| drive.written_bytes).sum(),
            took_ms: drives.iter().map(|drive| drive.took_ms).max().unwrap_or(0),
            drives,
            skipped: asked.skipped.iter().map(skipped).collect(),
        })
    }

    /// The names of the drives that did not become steady.
    pub fn unsteady(&self) -> impl Iterator<Item = &str> {
        let drives = self.drives.iter();
        let unsteady = drives.filter(|drive| drive.steady == Some(false));
        unsteady.map(|drive| drive.name.as_str())
    }
}

fn skipped(skipped: &Skipped) -> SkippedEntry {
    SkippedEntry {
        path: skipped.path.display().to_string(),
        reasons: skipped.reasons.clone(),
    }
}

fn drive(
    asked: &ProvisionRequest,
    one: &DriveJob,
    came: Option<&DriveOutcome>,
) -> anyhow::Result<DriveEntry> {
    let device = one.drive.device.as_ref();
    let dir = match came {
        Some(Ok(finish)) => Some(finish.dir.as_path()),
        _ => one.record.as_ref().map(|(dir, _)| dir.as_path()),
    };
    let mut entry = DriveEntry {
        path: one.drive.path.display().to_string(),
        name: one.drive.name.clone(),
        model: device.and_then(|device| device.model.clone()),
        serial: device.and_then(|device| device.serial.clone()),
        capacity_bytes: device.map(|device| device.capacity_bytes),
        workload: one.load,
        run: dir.map(id_of),
        status: RunStatus::Interrupted,
        steady: None,
        reason: None,
        written_bytes: 0,
        took_ms: 0,
        stages: Vec::new(),
    };
    if let Some(dir) = dir {
        let script = asked.provision.reread(one).map_err(super::failed)?;
        let outcome = provision::outcome(dir, &script)?;
        entry.status = outcome.status.unwrap_or(RunStatus::Running);
        entry.took_ms = outcome.took_ms;
        for past in outcome.history.stages() {
            let verdicts = outcome.verdicts.iter().find(|(id, _)| *id == past.stage.id);
            let verdicts = verdicts.map(|(_, verdicts)| verdicts.as_slice());
            let mut clock_ms = outcome.stages_ms.iter();
            let clock_ms = clock_ms.find(|(id, _)| *id == past.stage.id);
            let clock_ms = clock_ms.map_or(0, |(_, ms)| *ms);
            entry
                .stages
                .push(stage(past, clock_ms, verdicts.unwrap_or_default()));
        }
        entry.written_bytes = entry.stages.iter().map(|stage| stage.written_bytes).sum();
        entry.judge();
    }
    match came {
        Some(Err(error)) => {
            entry.status = RunStatus::Failed;
            entry.reason = Some(error.to_string());
        }
        Some(Ok(finish)) => match (&finish.ending, &finish.stopped) {
            (Some(Ending::Failed(reason) | Ending::NotAttained(reason)), _) | (_, Some(reason)) => {
                entry.reason = Some(reason.clone())
            }
            (_, None) => {}
        },
        None => {}
    }
    Ok(entry)
}

impl DriveEntry {
    /// Whether the last load that was to become steady did, and what stands
    /// against it.
    fn judge(&mut self) {
        let last = self
            .stages
            .iter()
            .rfind(|stage| matches!(stage.kind, StageKind::Settle | StageKind::Round));
        self.steady = match (self.status, last.and_then(|stage| stage.end)) {
            (_, Some("not_attained")) => Some(false),
            (RunStatus::Complete, Some("done" | "skipped")) => Some(true),
            _ => None,
        };
        let against = self
            .stages
            .iter()
            .rfind(|stage| matches!(stage.end, Some("failed" | "not_attained")));
        self.reason = against.and_then(|stage| stage.reason.clone());
    }
}

fn stage(past: &Past, clock_ms: u64, verdicts: &[(Metric, SteadyVerdict)]) -> StageEntry {
    let (end, reason) = match &past.end {
        None => (None, None),
        Some(StageEnd::Done) => (Some("done"), None),
        Some(StageEnd::Skipped { reason }) => (Some("skipped"), Some(reason)),
        Some(StageEnd::NotAttained { reason }) => (Some("not_attained"), Some(reason)),
        Some(StageEnd::Failed { reason }) => (Some("failed"), Some(reason)),
        Some(StageEnd::Waits { reason }) => (Some("waits"), Some(reason)),
        Some(StageEnd::Interrupted { reason }) => (Some("interrupted"), Some(reason)),
    };
    StageEntry {
        id: past.stage.id.clone(),
        kind: past.stage.kind,
        title: past.stage.title.clone(),
        end,
        reason: reason.cloned(),
        attempts: past.attempts,
        // Simulated time is the run's, that of a purge the clock's.
        took_ms: past.last_ms.saturating_sub(past.begin_ms).max(clock_ms),
        written_bytes: past.written_bytes,
        verdicts: verdicts
            .iter()
            .map(|(metric, verdict)| VerdictEntry {
                metric: *metric,
                verdict: verdict.clone(),
            })
            .collect(),
    }
}

fn id_of(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or(dir.as_os_str());
    name.to_string_lossy().into_owned()
}
