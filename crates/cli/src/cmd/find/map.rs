//! `fathom find --map`: the p99 of reads over reads and writes.

use std::path::{Path, PathBuf};

use fathom_analysis::find::{LoadMap, MapOutcome};
use fathom_flow::{History, JobStep};
use fathom_model::FigureVerdict;
use fathom_questions::find::{COMMAND, MapConfig, MapScript};
use fathom_record::Record;
use fathom_report::load_map;
use fathom_sheet::answer::{AnswerTable, RunAnswer};
use fathom_sheet::chart::{Size, Theme};
use fathom_sheet::style::Tone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Args, Global};
use crate::cmd::{may_write, write_named};
use crate::out;

/// Percentile of the latencies of reads.
const PERCENT: f64 = 99.0;

/// What a record keeps of a map.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct MapPlan {
    pub config: MapConfig,
    /// Where the graph goes.
    pub svg: Option<PathBuf>,
}

/// What `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct MapDocument {
    /// `fathom.find-map/1`
    schema: &'static str,
    /// The record's folder.
    run: String,
    #[serde(flatten)]
    map: LoadMap,
    /// Whether the figures are true: the worst of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<FigureVerdict>,
}

impl MapPlan {
    /// Where one is asked for; `hosts`: how many machines run it together.
    ///
    /// # Errors
    /// That the graph may not be written.
    pub fn of(args: &Args, hosts: Option<u32>) -> anyhow::Result<Option<Self>> {
        let Some(steps) = args.goal.map else {
            return Ok(None);
        };
        let svg = args.svg.as_deref().map(std::path::absolute).transpose()?;
        svg.as_deref().map_or(Ok(()), may_write)?;
        Ok(Some(Self {
            config: MapConfig {
                steps,
                percent: PERCENT,
                hosts,
                look: args.look,
                probe: args.probe,
            },
            svg,
        }))
    }

    /// Its script.
    pub fn script(&self, job: JobStep) -> MapScript {
        MapScript {
            job,
            config: self.config.clone(),
        }
    }

    /// The map of a record, as far as it has come.
    fn of_record(&self, record: &Record) -> LoadMap {
        let history = History::of(&record.entries);
        let blank = JobStep::new((1, 1), COMMAND, String::new(), &[]);
        self.script(blank).state(&history).0
    }

    /// What reports and graphs of the run show first.
    pub fn answer(&self, dir: &Path) -> anyhow::Result<RunAnswer> {
        let map = self.of_record(&Record::open(dir)?);
        let mut answer = RunAnswer::default();
        if map.cells.is_empty() || is_open(&map) {
            answer.say(Tone::Doubtful, super::show::unfinished());
        }
        if let Some(said) = load_map::sentence(&map) {
            let verdict = fathom_document::read(dir)?.verdict;
            answer.say(super::show::tone(verdict.as_ref()), said);
        }
        if !map.cells.is_empty() {
            answer.draw("map", load_map::chart(&map));
            let title = format!("p{} of reads, beside writes", map.percent);
            let grid = load_map::grid(&map);
            answer.tables.push(AnswerTable { title, grid });
        }
        Ok(answer)
    }

    /// The table, and the graph.
    pub fn show(&self, global: &Global, dir: &Path) -> anyhow::Result<()> {
        let record = Record::open(dir)?;
        let map = self.of_record(&record);
        if let Some(file) = &self.svg {
            let svg = load_map::chart(&map).svg(&Theme::LIGHT, Size::default());
            write_named(file, svg)?;
        }
        if global.json {
            return out::json(&MapDocument {
                schema: "fathom.find-map/1",
                run: record.id(),
                map,
                verdict: fathom_document::read(dir)?.verdict,
            });
        }
        out::text(load_map::grid(&map).render(out::style(global.color)));
        if map.cells.is_empty() || is_open(&map) {
            out::line(super::show::unfinished());
        }
        Ok(())
    }
}

/// Whether a place of it has not been measured.
fn is_open(map: &LoadMap) -> bool {
    let mut cells = map.cells.iter();
    cells.any(|cell| cell.outcome == MapOutcome::Open)
}
