//! `fathom baseline`: figures to measure the quick series against.

use std::path::Path;

use clap::Subcommand;
use fathom_model::Exit;
use fathom_model::units::format_size;
use fathom_sheet::grid::{Grid, GridCell, figures, words};
use fathom_sheet::style::Tone;
use fathom_suites::quick::{Baseline, Conditions};
use schemars::JsonSchema;
use serde::Serialize;

use super::Global;
use super::quick::{failed, record, shelf};
use crate::out;

/// Save, list, show and remove baselines of the quick series
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  fathom baseline save mydisk RUN       keep the figures of a run, by its tests or jobs
  fathom quick here --baseline HDD,mydisk
                                        \"105% HDD, 42% mydisk\"
  fathom baseline list
  fathom baseline show mydisk
  fathom baseline remove mydisk")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Keep the figures of a recorded run under a name
    #[command(after_help = "Examples:\n  fathom baseline save mydisk 20261121T130744Z-quick")]
    Save {
        /// Name of the baseline
        name: String,
        /// Run: a folder, or its name under --runs
        run: String,
    },
    /// List the baselines there are
    #[command(after_help = "Examples:\n  fathom baseline list --json")]
    List,
    /// Show one baseline: its figures and where they come from
    #[command(after_help = "Examples:\n  fathom baseline show HDD")]
    Show {
        /// Name of the baseline
        name: String,
    },
    /// Remove a saved baseline
    #[command(after_help = "Examples:\n  fathom baseline remove mydisk")]
    Remove {
        /// Name of the baseline
        name: String,
    },
}

/// Calls the subcommand.
pub fn run(global: &Global, args: &Args) -> anyhow::Result<Exit> {
    match &args.command {
        Command::Save { name, run } => save(global, name, run)?,
        Command::List => list(global)?,
        Command::Show { name } => show(global, name)?,
        Command::Remove { name } => {
            let path = shelf().remove(name).map_err(failed)?;
            done(global, "removed", name, &path)?;
        }
    }
    Ok(Exit::Success)
}

fn save(global: &Global, name: &str, run: &str) -> anyhow::Result<()> {
    let record = record(global, run)?;
    let baseline = Baseline::from_record(name, &record).map_err(failed)?;
    let path = shelf().save(&baseline).map_err(failed)?;
    done(global, "saved", name, &path)
}

fn done(global: &Global, what: &str, name: &str, path: &Path) -> anyhow::Result<()> {
    if global.json {
        return out::json(&ChangeDocument {
            schema: "fathom.baseline-change/1",
            change: what,
            name,
            file: path,
        });
    }
    if !global.quiet {
        out::line(format_args!("Baseline {name} {what}: {}", path.display()));
    }
    Ok(())
}

fn list(global: &Global) -> anyhow::Result<()> {
    let all = shelf().list().map_err(failed)?;
    if global.json {
        return out::json(&ListDocument {
            schema: "fathom.baselines/1",
            baselines: all.iter().map(ListedBaseline::of).collect(),
        });
    }
    let mut grid = Grid::new([
        words("name", 0),
        words("group", 0),
        figures("tests", 0),
        figures("runtime", 2),
        figures("size", 2),
        words("measured on", 1),
    ]);
    for one in &all {
        let given = |text: &dyn Fn(&Conditions) -> String| {
            GridCell::from(one.conditions.as_ref().map_or("–".to_owned(), text))
        };
        grid.line([
            GridCell::new(Tone::Strong, one.name.as_str()),
            given(&|of| of.group.clone()),
            GridCell::from(one.iops.len().to_string()),
            given(&|of| format!("{} s", of.runtime_s)),
            given(&|of| format_size(of.size_bytes)),
            GridCell::from(one.about.as_str()),
        ]);
    }
    out::text(grid.render(out::style(global.color)));
    Ok(())
}

fn show(global: &Global, name: &str) -> anyhow::Result<()> {
    let baseline = shelf().find(name).map_err(failed)?;
    if global.json {
        return out::json(&ShownBaseline {
            schema: "fathom.baseline/1",
            baseline: ListedBaseline::of(&baseline),
        });
    }
    let mut grid = Grid::new([words("test", 0), figures("IOPS", 0)]);
    for (test, iops) in &baseline.iops {
        grid.line([
            GridCell::from(test.as_str()),
            GridCell::from(iops.to_string()),
        ]);
    }
    let style = out::style(global.color);
    out::line(format_args!(
        "{}: {}",
        style.paint(Tone::Strong, &baseline.name),
        baseline.about
    ));
    if let Some(conditions) = &baseline.conditions {
        out::line(format_args!(
            "group \"{}\", {} s a test, {} a set of files",
            conditions.group,
            conditions.runtime_s,
            format_size(conditions.size_bytes)
        ));
    }
    out::line("");
    out::text(grid.render(style));
    if !baseline.environment.is_empty() {
        out::line(format_args!(
            "\nMeasured on:\n{}",
            baseline.environment.to_string().trim_end()
        ));
    }
    Ok(())
}

/// What `save` and `remove` print.
#[derive(Serialize, JsonSchema)]
pub struct ChangeDocument<'a> {
    schema: &'static str,
    /// `saved` or `removed`
    change: &'a str,
    name: &'a str,
    file: &'a Path,
}

/// What `list` prints.
#[derive(Serialize, JsonSchema)]
pub struct ListDocument<'a> {
    schema: &'static str,
    baselines: Vec<ListedBaseline<'a>>,
}

/// What `show` prints.
#[derive(Serialize, JsonSchema)]
pub struct ShownBaseline<'a> {
    schema: &'static str,
    #[serde(flatten)]
    baseline: ListedBaseline<'a>,
}

/// A baseline as its file has it, and whether it is one of Fathom's own.
#[derive(Serialize, JsonSchema)]
struct ListedBaseline<'a> {
    #[serde(flatten)]
    baseline: &'a Baseline,
    shipped: bool,
}

impl<'a> ListedBaseline<'a> {
    fn of(baseline: &'a Baseline) -> Self {
        Self {
            baseline,
            shipped: baseline.is_shipped,
        }
    }
}
