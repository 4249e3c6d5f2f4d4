//! A list of runs, side by side: what is different, and what it gave.

use std::path::PathBuf;

use fathom_cluster::Parameters;
use fathom_model::{Direction, DirectionResult, RunDocument, RunStatus, units};
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::cmd::Global;
use crate::out;

/// Name and version of the document.
const SCHEMA: &str = "fathom.cluster-runs/1";

/// The runs of a list.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub struct ClusterComparison {
    schema: &'static str,
    runs: Vec<ComparedRun>,
}

#[derive(Debug, Serialize, schemars::JsonSchema)]
struct ComparedRun {
    /// Name of its record.
    id: String,
    status: RunStatus,
    /// The parameters in which the runs differ, as this one has them.
    different: Map<String, Value>,
    phases: Vec<PhaseFigures>,
    /// The run's own document.
    run: RunDocument,
}

/// What all servers together did in a phase, in one direction.
#[derive(Debug, Serialize, schemars::JsonSchema)]
struct PhaseFigures {
    phase: String,
    dir: Direction,
    bw_bytes: f64,
    iops: f64,
    /// Whether a mark stands at these figures where the run is shown.
    doubtful: bool,
}

/// Shows what the runs gave: a line for each, or one document of all.
pub fn present(global: &Global, all: &[Parameters], dirs: &[PathBuf]) -> anyhow::Result<()> {
    let mut different = differences(all)?.into_iter();
    let mut runs = Vec::new();
    for dir in dirs {
        let mut doc = fathom_document::read(dir)?;
        fathom_document::drop_histograms(&mut doc);
        runs.push(ComparedRun {
            id: doc.id.clone(),
            status: doc.status,
            different: different.next().unwrap_or_default(),
            phases: phases(&doc),
            run: doc,
        });
    }
    if global.json {
        let schema = SCHEMA;
        return out::json(&ClusterComparison { schema, runs });
    }
    out::text(format_args!("\n{}", lines(&runs, out::style(global.color))));
    Ok(())
}

/// Of each run the parameters that are not the same in all.
fn differences(all: &[Parameters]) -> anyhow::Result<Vec<Map<String, Value>>> {
    let mut maps = Vec::new();
    for parameters in all {
        match serde_json::to_value(parameters)? {
            Value::Object(map) => maps.push(map),
            _ => maps.push(Map::new()),
        }
    }
    let first = maps.first().cloned().unwrap_or_default();
    let is_same =
        |name: &String, value: &Value| maps.iter().all(|map| map.get(name) == Some(value));
    let same: Vec<String> = first
        .iter()
        .filter(|(name, value)| is_same(name, value))
        .map(|(name, _)| name.clone())
        .collect();
    for map in &mut maps {
        map.retain(|name, _| !same.contains(name));
    }
    Ok(maps)
}

/// The phases of a run in their order: the sum over its servers, or what its
/// only one did.
fn phases(doc: &RunDocument) -> Vec<PhaseFigures> {
    let mut all: Vec<PhaseFigures> = Vec::new();
    let has_sum = |step: &Option<String>| {
        let mut jobs = doc.jobs.iter();
        jobs.any(|job| job.step == *step && job.clients.is_some())
    };
    for job in &doc.jobs {
        if has_sum(&job.step) && job.clients.is_none() {
            continue;
        }
        // A run of one phase has no steps.
        let phase = job.step.as_ref().unwrap_or(&doc.name);
        for (dir, result) in job.directions().filter(|(_, result)| result.io_bytes > 0) {
            match all
                .iter_mut()
                .find(|one| one.phase == *phase && one.dir == dir)
            {
                Some(one) => one.add(result),
                None => all.push(PhaseFigures {
                    phase: phase.clone(),
                    dir,
                    bw_bytes: result.bw_bytes,
                    iops: result.iops,
                    doubtful: !result.kinds().is_empty(),
                }),
            }
        }
    }
    all
}

impl PhaseFigures {
    fn add(&mut self, result: &DirectionResult) {
        self.bw_bytes += result.bw_bytes;
        self.iops += result.iops;
        self.doubtful |= !result.kinds().is_empty();
    }

    /// The phase; with its direction where it has several.
    fn title(&self, all: &[PhaseFigures]) -> String {
        let is_only = all.iter().filter(|one| one.phase == self.phase).count() == 1;
        match is_only {
            true => self.phase.clone(),
            false => format!("{} {}", self.phase, self.dir.name()),
        }
    }
}

fn lines(runs: &[ComparedRun], style: fathom_sheet::style::Style) -> String {
    let mut titles: Vec<String> = Vec::new();
    let of = |run: &ComparedRun| -> Vec<String> {
        let phases = run.phases.iter();
        phases.map(|phase| phase.title(&run.phases)).collect()
    };
    for title in runs.iter().flat_map(of) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    let mut columns = vec![words("", 0), words("", 0)];
    columns.extend(titles.iter().map(|_| figures("", 0)));
    columns.push(words("", 1));
    let mut grid = Grid::new(columns);
    let faint = |text: &str| GridCell::new(Tone::Faint, text);
    let mut head = vec![faint("different"), faint("")];
    head.extend(titles.iter().map(|title| faint(title)));
    head.push(faint("run"));
    grid.line(head);
    for run in runs {
        let mut cells = vec![
            GridCell::new(Tone::Strong, told(&run.different)),
            status(run.status),
        ];
        for title in &titles {
            let phase = run
                .phases
                .iter()
                .find(|phase| phase.title(&run.phases) == *title);
            cells.push(phase.map_or_else(
                || GridCell::from("–"),
                |phase| {
                    let mark = if phase.doubtful { "?" } else { "" };
                    GridCell::from(units::bytes_per_second(phase.bw_bytes))
                        .marked(Tone::Doubtful, mark)
                },
            ));
        }
        cells.push(faint(&run.id));
        grid.line(cells);
    }
    let mut text = grid.render(style);
    if runs
        .iter()
        .flat_map(|run| &run.phases)
        .any(|phase| phase.doubtful)
    {
        text += "? doubtful: the run itself says why\n";
    }
    text
}

fn status(status: RunStatus) -> GridCell {
    match status {
        RunStatus::Complete => GridCell::from(""),
        RunStatus::Failed => GridCell::new(Tone::Bad, status.to_string()),
        _ => GridCell::new(Tone::Doubtful, status.to_string()),
    }
}

/// `storageclass=fast njobs=8`.
fn told(different: &Map<String, Value>) -> String {
    let one = |(name, value): (&String, &Value)| match value {
        Value::Number(bytes) if name.ends_with("_bytes") => {
            let bytes = bytes.as_f64().unwrap_or(0.0);
            format!(
                "{}={}",
                name.trim_end_matches("_bytes"),
                units::bytes(bytes)
            )
        }
        Value::Object(_) => match value.get("read_iops") {
            // Of a load in the background the rate says most.
            Some(_) => format!("{name}={}", calm(value)),
            None => format!("{name}={value}"),
        },
        Value::Array(list) => {
            let parts: Vec<String> = list.iter().map(plain).collect();
            format!("{name}={}", parts.join(","))
        }
        other => format!("{name}={}", plain(other)),
    };
    let all: Vec<String> = different.iter().map(one).collect();
    match all.is_empty() {
        true => "the same".to_owned(),
        false => all.join(" "),
    }
}

fn calm(value: &Value) -> String {
    let number = |name: &str| value[name].as_u64().unwrap_or(0);
    let iops = number("read_iops") + number("write_iops");
    format!("{}×{iops} IOPS", number("ninstances"))
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}
