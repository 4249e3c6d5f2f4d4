//! What makes the device ready, in the plan.

use std::time::Duration;

use fathom_campaign::plan::ResolvedCampaign;
use fathom_flow::budget::Speed;
use fathom_flow::{Case, Work};
use fathom_model::{DevicePhase, StageKind, units};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use serde::Serialize;

use super::millis;

/// A stage.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub struct StageRow {
    id: String,
    kind: StageKind,
    title: String,
    /// For which work.
    phase: DevicePhase,
    /// If all goes well; null where nobody knows.
    duration_ms: Option<u64>,
    /// If the device is not steady before the limit.
    duration_most_ms: Option<u64>,
    /// Null where nobody knows: loads write as fast as the device takes it.
    write_bytes: Option<u64>,
    #[serde(skip)]
    load: bool,
}

/// The stages of a plan.
pub fn entries(plan: &ResolvedCampaign, speed: Option<Speed>) -> Vec<StageRow> {
    let entry = |(phase, task): (DevicePhase, fathom_flow::Task)| StageRow {
        duration_ms: task.work.time(Case::Best, speed).map(millis),
        duration_most_ms: task.work.time(Case::Worst, speed).map(millis),
        write_bytes: task.work.write_bytes(Case::Best, speed),
        load: matches!(task.work, Work::Settle(_)),
        id: task.stage.id,
        kind: task.stage.kind,
        title: task.stage.title,
        phase,
    };
    plan.stages(Case::Best).into_iter().map(entry).collect()
}

impl StageRow {
    /// Its time and bytes, if all goes well.
    pub fn part(&self) -> (Option<Duration>, Option<u64>) {
        let time = self.duration_ms.map(Duration::from_millis);
        (time, self.write_bytes)
    }

    /// The time beyond that, if it does not go well.
    pub fn more(&self) -> Duration {
        let most = self.duration_most_ms.unwrap_or(0);
        Duration::from_millis(most.saturating_sub(self.duration_ms.unwrap_or(0)))
    }

    /// Whether it writes for some time, as fast as the device takes it.
    pub fn is_load(&self) -> bool {
        self.load
    }
}

/// The stages as a table.
pub fn grid(stages: &[StageRow]) -> Grid {
    let mut grid = Grid::new([
        words("stage", 0),
        words("", 1),
        figures("time", 0),
        figures("writes at most", 0),
    ]);
    for stage in stages {
        let duration = units::duration;
        let time = match (stage.duration_ms, stage.duration_most_ms) {
            (Some(least), Some(most)) if most > least => {
                GridCell::from(format!("{} to {}", duration(least), duration(most)))
            }
            (Some(ms), _) => GridCell::from(duration(ms)),
            (None, _) if stage.kind == StageKind::Fill => {
                GridCell::new(Tone::Doubtful, "by its speed")
            }
            (None, _) => GridCell::new(Tone::Doubtful, "unknown"),
        };
        let writes = match stage.write_bytes {
            Some(0) => GridCell::from("nothing"),
            Some(bytes) => GridCell::from(units::bytes(bytes as f64)),
            None if stage.is_load() => GridCell::new(Tone::Doubtful, "as it takes"),
            None => GridCell::new(Tone::Doubtful, "all of it"),
        };
        let id = GridCell::from(stage.id.as_str());
        grid.line([id, GridCell::from(stage.title.as_str()), time, writes]);
    }
    grid
}
