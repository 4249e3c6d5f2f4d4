//! `fathom find --map`: the p99 of reads over reads and writes.

use std::path::{Path, PathBuf};

use fathom_analysis::find::{LoadMap, MapOutcome};
use fathom_campaign::find::{COMMAND, MapConfig, MapScript};
use fathom_campaign::flow::{History, JobStep};
use fathom_model::FigureVerdict;
use fathom_record::Record;
use fathom_report::load_map;
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

    /// The table, and the graph.
    pub fn show(&self, global: &Global, dir: &Path) -> anyhow::Result<()> {
        let record = Record::open(dir)?;
        let history = History::of(&record.entries);
        let blank = JobStep::new((1, 1), COMMAND, String::new(), &[]);
        let map = self.script(blank).state(&history).0;
        if let Some(file) = &self.svg {
            write_named(file, load_map::svg(&map))?;
        }
        if global.json {
            return out::json(&MapDocument {
                schema: "fathom.find-map/1",
                run: record.id(),
                map,
                verdict: fathom_report::read(dir)?.verdict,
            });
        }
        out::text(load_map::table(&map, out::style(global.color)));
        let is_open = |it: &fathom_analysis::find::MapCell| it.outcome == MapOutcome::Open;
        if map.cells.is_empty() || map.cells.iter().any(is_open) {
            out::line(super::show::unfinished());
        }
        Ok(())
    }
}
